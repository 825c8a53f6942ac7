# SPDX-License-Identifier: BSD-2-Clause
"""What bench.py measured, as numbers: cases by matrix and type, speedups over what they are compared with, and a summary for people."""
import math
import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "config"))
from terminal import table

LARGE = 1000000  # nonzeros from which products are timed with L2 flushed


def mean(values):
    values = [value for value in values if value and value > 0]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def product_us(case):
    return case["cold_us"] if case["nnz"] >= LARGE else case["warm_us"]


def is_baseline(what, gpu):
    """Whether a case is of what the types are compared with: cuSPARSE by PETSc or called directly, on the host PETSc's aij."""
    return bool(re.match(r"(seq)?aijcusparse(?![a-z])|raw_" if gpu else r"(seq)?aij(?![a-z])", what))


def gflops(case, time_us=None, k=1):
    return 2e-3 * case["nnz"] * k / (time_us or product_us(case))


def viewed(case, pattern):
    """The numbers in the line of a case's view that fits, or Nones."""
    for line in case.get("view", []):
        found = re.search(pattern, line)
        if found:
            return [float(text) for text in found.groups()]
    return [None] * re.compile(pattern).groups


def short(cell, none="-", digits=4):
    """A cell of a table as text: whole numbers and those of four digits and more whole, others with as many digits."""
    if cell is None:
        return none
    if isinstance(cell, float):
        return f"{cell:.0f}" if cell.is_integer() or abs(cell) >= 1000 else f"{cell:.{digits}g}"
    return str(cell)


class Cases:
    """Cases that went well, by matrix and type."""

    def __init__(self, cases, gpu):
        self.by, self.order, self.gpu = {}, [], gpu
        for case in cases:
            if case["status"] == "ok":
                self.by[case["matrix"], case["what"], case.get("k")] = case
                if case["matrix"] not in self.order:
                    self.order.append(case["matrix"])

    def get(self, matrix, what, k=None):
        found = [case for (name, other, columns), case in self.by.items() if name == matrix and other == what and k in (None, columns)]
        return found[0] if found else None

    def time(self, matrix, what, k=None):
        case = self.get(matrix, what, k)
        return product_us(case) if case else None

    def best(self, matrix, k=None):
        """The fastest of what is compared with: its time and its name."""
        times = [(product_us(case), what) for (name, what, columns), case in self.by.items()
                 if name == matrix and k in (None, columns) and is_baseline(what, self.gpu)]
        return min(times) if times else (None, None)

    def speedup(self, matrix, what, k=None):
        best, mine = self.best(matrix, k)[0], self.time(matrix, what, k)
        return best / mine if best and mine else None


# ---- a summary for people --------------------------------------------------------------------------------------------

OTHERS = re.compile(r"(seq|mpi)?(aij|sell)(cusparse|cuda)?(?![a-z])|raw_|rowmajor_|csc_")  # types and kernels that are not ours


def number(value):
    return short(value) if value is None or value >= 1000 else f"{value:.1f}"


def products(cases, against):
    """Rows: times of what the types are compared with and of the fastest type, and the speedup of each type, with means and the worst."""
    types = list(dict.fromkeys(what for _, what, _ in cases.by if not OTHERS.match(what)))
    if not types:
        return []
    alone = len(types) == 1
    rows = [["matrix", "nonzeros (M)", f"{against} (µs)"] + ([f"{types[0]} (µs)", "speedup"] if alone else ["fastest of ours (µs)", "", *types])]
    gains = {what: {} for what in types}
    for name, k in dict.fromkeys((name, k) for name, what, k in cases.by if what in types):
        title, times = name + (f", {k} columns" if k != 1 else ""), {what: cases.time(name, what, k) for what in types}
        best, fastest = cases.best(name, k)[0], min((what for what in types if times[what]), key=times.get)
        for what in types:
            if best and times[what]:
                gains[what][title] = best / times[what]
        rows.append([title, f"{cases.get(name, fastest, k)['nnz'] / 1e6:.2f}", number(best), number(times[fastest])] + ([] if alone else [fastest])
                    + [f"{gains[what][title]:.2f}" if title in gains[what] else "-" for what in types])
    if any(gains.values()):
        blank = [""] * (2 if alone else 3)
        worst = {what: min(each, key=each.get) for what, each in gains.items() if each}
        rows.append(["geometric mean", ""] + blank + [f"{mean(gains[what].values()):.2f}" if what in worst else "-" for what in types])
        rows.append(["worst", ""] + blank + [f"{gains[what][worst[what]]:.2f}" if what in worst else "-" for what in types])
        rows.append(["worst matrix", ""] + blank + [worst.get(what, "-") for what in types])
    return rows


def builds(cases):
    """Rows of a run with -setup."""
    rows = [["matrix", "type", "product (µs)", "build (µs)", "in products", "refresh (µs)", "in products"]]
    for (name, what, _), case in cases.by.items():
        if not what.startswith(("raw_", "rowmajor_", "csc_")):
            rows.append([name, what] + [number(case.get(column)) for column in ("product_us", "build_us", "build/product", "refresh_us", "refresh/product")])
    return rows


def first_products(cases):
    """Rows of a run with -first."""
    rows = [["matrix", "type", "copy alone (ms)", "first product (ms)", "first product / copy"]]
    return rows + [[name, what] + [short(case.get(column)) for column in ("copy_ms", "first_ms", "first/copy")] for (name, what, _), case in cases.by.items()]


def summary(document):
    """The lines that tell what a run measured, and what went wrong in it."""
    cases, gpu = Cases(document["cases"], document["gpu"]), document["gpu"]
    lines = []
    for case in document["cases"]:
        if case["status"] != "ok":
            lines.append(f"{case['status']}: {case['matrix']} {case['what'] or ''}" + (f", {case['k']} columns" if (case.get("k") or 1) > 1 else "")
                         + "".join(f": {text.lstrip('# ')}" for text in [case.get("reason"), *case.get("remarks", [])] if text))
        else:
            lines += [text.lstrip("# ") for text in case.get("remarks", [])]
    head = f"On {document['machine'] or 'an unknown machine'}" + ("" if gpu else ", one core of the host: there is no GPU")
    if "-setup" in document["options"]:
        return lines + ["", f"{head}. Builds of the formats, and refreshes when only values changed:", ""] + table(builds(cases), 2)
    if "-first" in document["options"]:
        return lines + ["", f"{head}. First products, with the copy of the matrix to the GPU:", ""] + table(first_products(cases), 2)
    against = "best cuSPARSE" if gpu else "aij"
    rows = products(cases, against)
    if len(rows) < 2:
        return lines + ["", "No type of Gallop's was timed."]
    lines += ["", f"{head}. Products, caches flushed for {LARGE // 1000000} M nonzeros and more; speedups are over {against}:", ""]
    last = 3 if any(row[0] == "worst matrix" for row in rows) else 0
    lines += table(rows)
    if last:
        lines.insert(len(lines) - last, "")
    if not gpu:
        lines += ["", *ON_THE_HOST]
    return lines


ON_THE_HOST = [
    "Gallop's formats are made for GPUs, whose threads read the entries side by side. A core of the host reads the rows of aij",
    "one after the other just as well, and no format reads much less than aij. These times say nothing about those of a GPU.",
]
