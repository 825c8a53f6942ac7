# SPDX-License-Identifier: BSD-2-Clause
"""What choice.py measured, as numbers: times by matrix and type, how far from the best a choice is, and thresholds fitted to one half of the matrices and tried on the other."""
import itertools
import math
import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "config"))
from cases import mean

FORMATS = ["evchyb", "csroverlap", "hbp", "fastload"]
RULES, MEASURE = CHOSEN = ["gallop@rules", "gallop@measure"]
COUNTS = [10, 100, 500, 1000]
SMALL = 1000000  # entries below which the rules do not look at a pattern
FITTED = 1.02  # a type that is not this much faster than evchyb is no reason for a rule

# ---- what was measured -----------------------------------------------------------------------------------------------


class Times:
    """Lines of fewproducts, and what -mat_view said: of each matrix the entries, microseconds by type and number of products, and what the rules see in it."""

    def __init__(self):
        self.head, self.nnz, self.us, self.look, self.says = [], {}, {}, {}, {}

    def line(self, line):
        fields = line.split("\t")
        if len(fields) >= 5 and not line.startswith("#"):
            matrix, nnz, what, k, us = fields[:5]
            self.nnz[matrix] = int(nnz)
            self.us.setdefault(matrix, {})[what, int(k)] = float(us)
        elif line.startswith("# look\t"):
            matrix, *numbers = fields[1:]
            self.look[matrix] = Look(self.nnz[matrix], *map(float, numbers))
        elif line.startswith("# says\t"):
            self.says[fields[1], fields[2]] = fields[3]
        elif line.startswith("# ") and not self.nnz:
            self.head.append(line)

    def read(self, path):
        for line in Path(path).read_text().splitlines():
            self.line(line)
        return self

    @property
    def matrices(self):
        return list(self.us)

    @property
    def parent(self):
        return next(what for what, _ in self.us[self.matrices[0]] if what.startswith("aij"))

    def types(self):
        return [self.parent] + FORMATS

    def product(self, matrix, what):
        """A product once the format is there: from what the last 500 take."""
        return (self.us[matrix][what, COUNTS[-1]] - self.us[matrix][what, COUNTS[-2]]) / (COUNTS[-1] - COUNTS[-2])

    def best(self, matrix, among=None):
        return min(among or self.types(), key=lambda what: self.product(matrix, what))

    def over_best(self, matrix, what):
        return self.product(matrix, what) / self.product(matrix, self.best(matrix))

    def first_over_best(self, matrix, what, k):
        """The time of the first k products of a new matrix over the least that any one type takes."""
        return self.us[matrix][what, k] / min(self.us[matrix][each, k] for each in self.types())

    def sizes(self):
        """Matrices that the rules look at, and smaller ones, of which products take as long as their launches: each with what they are called."""
        for name, small in (("1 M nonzeros and more", False), ("fewer than 1 M nonzeros", True)):
            matrices = [matrix for matrix in self.matrices if (self.nnz[matrix] < SMALL) == small]
            if matrices:
                yield f"{name}, {len(matrices)} matrices", matrices


def products(times):
    rows = [["matrix", "nonzeros (millions)", times.parent] + FORMATS + ["gallop, rules", "gallop, measure", "by rules", "measured"]]
    for matrix in times.matrices:
        rows.append([matrix, f"{times.nnz[matrix] / 1e6:.2f}"] + [f"{times.product(matrix, what):.1f}" for what in times.types() + CHOSEN]
                    + [times.says.get((matrix, what), "") for what in CHOSEN])
    return rows


def first_products(times):
    rows = [["matrix"] + [f"{what}, {k}" for what in ["evchyb", "rules", "measure"] for k in COUNTS]]
    for matrix in times.matrices:
        rows.append([matrix] + [f"{times.first_over_best(matrix, what, k):.2f}" for what in ["evchyb"] + CHOSEN for k in COUNTS])
    return rows


def summary(times, matrices):
    """By type: a product's time over the fastest's, and the first products of a new matrix, builds among them, over the least of any type, geometric mean and worst."""
    rows = [["type", "a product: mean", "worst"] + [word for k in COUNTS if k != 500 for word in (f"first {k}: mean", "worst")]]
    for what in times.types() + CHOSEN:
        row = [what.replace("@", ", ")]
        for ratio in [lambda matrix: times.over_best(matrix, what)] + [lambda matrix, k=k: times.first_over_best(matrix, what, k) for k in COUNTS if k != 500]:
            worst, whose = max((ratio(matrix), matrix) for matrix in matrices)
            row += [f"{mean([ratio(matrix) for matrix in matrices]):.3f}", f"{worst:.2f} {whose}"]
        rows.append(row)
    return rows


# ---- thresholds ------------------------------------------------------------------------------------------------------


class Look:
    """What the rules see in a pattern."""

    def __init__(self, nnz, row_mean, variation, longest, footprint, l2):
        self.nnz, self.variation, self.footprint, self.l2, self.longest = nnz, variation, footprint, l2, longest / row_mean


def look_of(text):
    """The numbers of GallopChoiceViewDetail()'s line, or None."""
    found = re.search(r"rows of ([\d.]+) entries in the mean, variation ([\d.]+), longest (\d+); ([\d.]+) sectors of x per entry, x takes ([\d.]+) times", text)
    return found.groups() if found else None


# As in src/mat/impls/gallop/rules.c; check_rules() tells whether they are
THRESHOLDS = {"scattered": 0.7, "blocks": 0.625, "hubs": 2, "spread": 0.61, "graph": 8e6, "power_least": 1.2, "power_most": 5, "local_least": 0.2, "local_most": 0.5, "longest": 256}


def outgrows(t, look):
    return look.footprint > t["scattered"] and look.l2 > t["blocks"]


def has_hubs(t, look):
    return look.footprint > t["spread"] and look.variation > t["hubs"] and look.nnz >= t["graph"]


def is_power_law(t, look):
    return t["power_least"] < look.variation < t["power_most"] and t["local_least"] < look.footprint < t["local_most"] and look.longest > t["longest"]


def by_rules(t, look, parent):
    """GallopChooseByRules() of rules.c with thresholds t, for matrices that are looked at."""
    if has_hubs(t, look) or outgrows(t, look):
        return "hbp"
    return parent if is_power_law(t, look) else "evchyb"


def chosen(times, matrix, t):
    look = times.look.get(matrix)
    return by_rules(t, look, times.parent) if look else "evchyb"


def check_rules(times):
    """Matrices for which the library's rules chose another format than the ones above."""
    for matrix in times.matrices:
        mine, says = chosen(times, matrix, THRESHOLDS), times.says.get((matrix, RULES), "")
        if not says.startswith("the parent" if mine == times.parent else mine):
            yield f"{matrix}: {mine} by the rules as choicecases.py has them, by the library: {says}"


def losses(times, matrices, t):
    return [times.over_best(matrix, chosen(times, matrix, t)) for matrix in matrices]


def between(values, log=True):
    """Thresholds that tell values apart: one between each and the next, one below and one above all."""
    values = sorted(set(values))
    middle = [math.sqrt(a * b) if log and a > 0 else (a + b) / 2 for a, b in zip(values, values[1:])]
    return [values[0] / 2] + middle + [values[-1] * 2] if values else [1]


def fit(times, matrices):
    """Thresholds by which the products of these matrices are the least above the fastest in the geometric mean; nothing is known of the others. Where HBP cuts columns into blocks is its own threshold."""
    looked = [matrix for matrix in matrices if matrix in times.look]
    looks = {matrix: times.look[matrix] for matrix in looked}
    none = {"scattered": math.inf, "blocks": THRESHOLDS["blocks"], "hubs": math.inf, "spread": 0, "graph": math.inf, "power_least": math.inf, "power_most": math.inf, "local_least": 0, "local_most": math.inf, "longest": 0}

    def loss(t):
        return sum(map(math.log, losses(times, looked, t)))

    def least(t, names):
        """The best of all combinations of these thresholds. Of several that are as good the middle one, which is the farthest from all matrices."""
        features = {"scattered": "footprint", "hubs": "variation", "spread": "footprint", "graph": "nnz"}
        choices = [between([getattr(looks[matrix], features[name]) for matrix in looked]) for name in names]
        tried = [(loss({**t, **dict(zip(names, values))}), values) for values in itertools.product(*choices)]
        lowest = min(tried)[0]
        good = [values for value, values in tried if value < lowest + 1e-9]
        return {**t, **dict(zip(names, good[len(good) // 2]))}

    t = least(none, ["scattered"])
    t = least(t, ["hubs", "spread"])
    t = least(t, ["graph"])
    # around the power laws: halfway from those of which the parent's product is the fastest to the nearest others
    mine = [matrix for matrix in looked if times.best(matrix) == times.parent and times.product(matrix, "evchyb") > FITTED * times.product(matrix, times.parent)]
    before = t
    if mine:
        t = dict(t)
        others = [matrix for matrix in looked if matrix not in mine]
        for name, feature, below in (("power_least", "variation", True), ("power_most", "variation", False), ("local_least", "footprint", True), ("local_most", "footprint", False), ("longest", "longest", True)):
            own = [getattr(looks[matrix], feature) for matrix in mine]
            edge = min(own) if below else max(own)
            beyond = [value for value in (getattr(looks[matrix], feature) for matrix in others) if (value < edge if below else value > edge)]
            if beyond:
                t[name] = math.sqrt(edge * (max(beyond) if below else min(beyond)))
            else:
                t[name] = edge / 2 if below else edge * 2
    return min(before, t, key=loss)


def halves(times):
    """Two halves of the matrices that are looked at, by turns in the order of the fastest type and how rows vary, so that each kind is in both."""
    looked = sorted((matrix for matrix in times.matrices if matrix in times.look), key=lambda matrix: (times.best(matrix), times.look[matrix].variation, times.nnz[matrix]))
    return looked[::2], looked[1::2]


def left_out(times):
    """Thresholds fitted on each half of the matrices, tried on the other: geometric mean and worst of the products' times over the fastest's; the library's thresholds on the same."""
    rows, first, second = [["fitted on", "tried on", "matrices", "mean", "worst", "of", "evchyb alone", "the library's thresholds"]], *halves(times)
    for fitted, tried, names in ((first, first, ("one half", "the same")), (first, second, ("one half", "the other half")), (second, second, ("the other half", "the same")),
                                 (second, first, ("the other half", "the one half"))):
        over = losses(times, tried, fit(times, fitted))
        worst, whose = max(zip(over, tried))
        rows.append([*names, str(len(tried)), f"{mean(over):.3f}", f"{worst:.2f}", whose, f"{mean([times.over_best(matrix, 'evchyb') for matrix in tried]):.3f}",
                     f"{mean(losses(times, tried, THRESHOLDS)):.3f}"])
    return rows


def thresholds(times):
    first, second = halves(times)
    fitted = [fit(times, half) for half in (first, second)]

    def shown(value):
        return "none" if math.isinf(value) else f"{value:.3g}"

    return [["threshold", "the library's", "fitted on one half", "on the other half"]] + [[name, shown(value)] + [shown(t[name]) for t in fitted] for name, value in THRESHOLDS.items()]
