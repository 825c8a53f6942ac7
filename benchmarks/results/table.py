#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Make the tables of docs/development/performance.md, of the chapters of the formats and of README.md from measured times.

usage: table.py RUN.tsv                        products beside cuSPARSE
       table.py --setup RUN-setup.txt          times of builds and refreshes
       table.py --windows RUN.tsv              products for several -mat_evchyb_window (types evchyb@wWINDOW, evchyb@first and evchyb)
       table.py --summary                      a few lines, for README.md
       table.py --dense RUN.tsv                products with dense matrices (-k) beside cuSPARSE
       table.py --model RUN.tsv MODEL.tsv      the same beside what the model predicts
       table.py --balance RUN.tsv              speedups without and with rows cut into segments (types evchyb@u and evchyb)
       table.py --compare                      all types beside each other, from the files beside this script
       table.py --paper PAPER.json ID          a table, or the numbers of a figure of bars, of what papers.py measured
       table.py --keep PAPER.json ...          put what the pages need of such files beside this script
       table.py --solves SOLVES.tsv ...        put what `make bench-solves` measured beside this script, and its table into README.md
       table.py --scaling SCALING.tsv          put what `make bench-scaling` measured on GPUs beside this script, with their name, and its tables into docs/mpi.md
       table.py --choice CHOICE.tsv ...        put what `make bench-choice` measured on a GPU beside this script, with its name, and its tables into docs/choose.md and docs/development/choice.md
       table.py --update                       put all of them into the pages, from the files beside this script
       table.py --check                        tell which tables in the pages differ from what --update would put there, and which pictures of papers are of other numbers

A table replaces what stands between <!-- table --> and <!-- /table --> (setup, windows, summary likewise).

Columns of a run: matrix m n nnz what k setup_ms warm_us cold_us GF_warm eff B/nnz err, and others behind them; what is evchyb, or
cuSPARSE's, aijcusparse or one that begins with raw_; others are not shown. Columns of a setup file: matrix nnz product_us convert_ms build_us
refresh_us build/product refresh/product, what, where it is not for evchyb alone, and others behind it. Lines that begin with # are comments, but "# read bandwidth N GB/s" and "# options: ..."
in a run are shown below its table. Of a format docs/development/ has whole tables, docs/ a few rows: docs/csroverlap.md is made from csroverlap-h200.tsv, csroverlap-h200-full.txt and csroverlap-h200-nopack.txt,
docs/tiledspmm.md from tiledspmm-h200.tsv, tiledspmm-h200-model.tsv and tiledspmm-h200-single.tsv,
docs/fastload.md from fastload-h200.tsv and those of its name with -transpose.tsv, -heights.tsv and -setup.txt, docs/hbp.md from hbp-h200.tsv and
hbp-h200-setup.txt, docs/development/packing.md from evchyb-h200.tsv (types evchyb, plain storage, evchyb@p, packed, and evchyb@a, the default) and
evchyb-h200-packed-setup.txt (evchyb and evchyb@p), the pages of the papers, docs/development/papers-*.md, from those with -paper.json, docs/choose.md from the runs of all types.
Products with other numbers than double and 32-bit indices, in docs/development/performance.md, are from those
numbers-KIND-GPU.tsv that are there. Of evchyb-gpus-GPU-paper.json, csroverlap-single-GPU-paper.json, tiledspmm-single-GPU-paper.json, scaling-GPU.tsv and choice-GPU.tsv, whatever the GPU, a page has all that are there.
"""
import hashlib
import json
import math
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parent))
import choicecases
import scaling
from cases import short

LARGE = 1000000  # nonzeros from which a matrix is timed with L2 flushed
NEAR = 1.3  # what the model of products with dense matrices is held to
OURS = "evchyb"
CHOOSES = "gallop"  # the type that chooses among all
CUSPARSE = ("aijcusparse", "raw_")  # what names of its programs begin with
DEFAULT_WINDOW = 4096
NUMBERS = {"double": "double precision", "single": "single precision", "complex": "complex numbers", "int64": "64-bit indices", "complex-int64": "complex numbers, 64-bit indices"}
SWEPT = ["web7M", "uniform8M_8", "web1M", "delaunay_n20", "circuit1447k", "star7_200"]
TYPES = ["evchyb", "csroverlap", "fastload", "hbp"]
KINDS = {
    "stencils, finite elements, bands": ["poisson7_256_c", "box27_140", "star7_200", "elast27b3_56", "star5_1500", "poisson7_100_c", "band9506_158"],
    "graphs with hubs (Kronecker, power law)": ["web7M", "kron20", "kron19", "kron18", "web1M"],
    "entries anywhere, rows alike": ["uniform8M_8", "uniform1M_16", "delaunay_n20"],
    "some rows or columns much longer than others": ["torso_like", "lp_500k", "circuit682k", "kkt_boyd1"],
    "blocks, circuits without long rows, dense": ["tsopf_like", "circuit1447k", "dense4k"],
}
SHOWN = ["poisson7_256_c", "star7_200", "box27_140", "elast27b3_56", "star5_1500", "kron18", "web7M", "uniform8M_8", "web1M", "bcsstk16"]

# what the chapter on EVC-HYB shows, and that on permuted solves, by the paper's names
BRIEF = {
    "poisson7_256_c": "7-point stencil, constant coefficients",
    "star7_200": "7-point stencil",
    "elast27b3_56": "elasticity",
    "mesh100": "unstructured mesh",
    "circuit682k": "circuit, long rows",
    "web1M": "web graph",
}
PERMUTED = ["Circuit_like", "att-pre2_like", "webbase-1M_like", "web-Google_like", "indochina_like", "pwtk_like", "torso1_like"]

# figures of the pages of the papers that plots.py draws
DRAWN_OF = {
    "evchyb": ["figure3", "figure4", "figure5", "figure6", "figure7", "figure8", "figure11", "figure13", "figure15"],
    "csroverlap": ["table2", "figure8"],
    "fastload": ["figure7", "figure8", "figure9", "figure10", "figure11"],
    "hbp": ["figure6", "figure7", "figure8"],
    "tiledspmm": ["figure8", "figure10", "figure11", "figure12", "figure13", "figure14"],
    "evchyb-gpus": [],
    "csroverlap-single": [],
    "tiledspmm-single": ["figure8", "figure10", "figure12", "figure13"],
}
OF_ANY_GPU = ["evchyb-gpus", "csroverlap-single", "tiledspmm-single"]  # those whose tables are shown of each kind of GPU that there is a document of


def lines_of(path):
    return [line.split() for line in Path(path).read_text().splitlines() if line.strip() and not line.startswith("#")]


class Run:
    """The times of a file, by matrix and program."""

    def __init__(self, path, ours=OURS):
        self.nnz, self.time, self.share, self.ours = {}, {}, {}, ours
        self.packed = None  # which are, of matrices as they are stored by default
        text = Path(path).read_text()
        bandwidth, options = re.search(r"^# read bandwidth ([\d.]+)", text, re.M), re.search(r"^# options: (.+)", text, re.M)
        self.variation = {name: float(value) for name, value in re.findall(r"^# (\S+) has rows .*variation ([\d.]+)", text, re.M)}
        self.bandwidth = float(bandwidth.group(1)) if bandwidth else None
        self.options = re.sub(r"-\w+_mat_\S+( [^-\s]\S*)? ?", "", options.group(1)).strip() or None if options else None  # those of other types, named type@prefix, have a prefix
        for fields in lines_of(path):
            name, nnz, what, warm, cold, share = fields[0], int(fields[3]), fields[4], float(fields[7]), float(fields[8]), float(fields[10])
            self.nnz[name] = nnz
            self.time[name, what] = cold if nnz >= LARGE else warm
            if what == ours:
                self.share[name] = share

    def matrices(self):
        return sorted({name for name, what in self.time if what == self.ours}, key=lambda name: -self.nnz[name])

    def cusparse(self, name):
        return min((time for (matrix, what), time in self.time.items() if matrix == name and what.startswith(CUSPARSE)), default=None)


def mean(values):
    return math.exp(sum(math.log(value) for value in values) / len(values))


def speedups(run, reference):
    """Of the matrices of which there are both times: in a run of one's own, cases may have failed."""
    return {name: reference.cusparse(name) / run.time[name, run.ours] for name in run.matrices() if reference.cusparse(name)}


def cache(run, name):
    return "flushed" if run.nnz[name] >= LARGE else "warm"


def product_rows(run, names):
    speedup = speedups(run, run)
    storage = run.packed is not None
    rows = [f"| matrix | nonzeros (millions) | best cuSPARSE (µs) | {run.ours} (µs) | speedup | {'storage' if storage else 'share of read bandwidth, L2 flushed'} | L2 |",
            f"|---|--:|--:|--:|--:|{'---' if storage else '--:'}|---|"]
    if run.variation:
        rows = [rows[0] + " variation of rows |", rows[1] + "--:|"]
    for name in names:
        how = ("packed" if name in run.packed else "plain") if storage else f"{100 * run.share[name]:.0f} %"
        rows.append(f"| {name} | {run.nnz[name] / 1e6:.2f} | {run.cusparse(name):.1f} | {run.time[name, run.ours]:.1f} | {speedup[name]:.2f} "
                    f"| {how} | {cache(run, name)} |" + (f" {run.variation[name]:.2f} |" if run.variation else ""))
    return rows


def spread(run):
    speedup = speedups(run, run)
    worst = min(speedup, key=speedup.get)
    below = sorted((name for name in speedup if speedup[name] < 1), key=speedup.get)
    small = [speedup[name] for name in speedup if run.nnz[name] < LARGE]
    large = [speedup[name] for name in speedup if run.nnz[name] >= LARGE]
    parts = [f"Geometric mean over {len(speedup)} matrices: {mean(speedup.values()):.2f}"]
    if small and large:
        parts[0] += f" ({mean(large):.2f} over the {len(large)} of {LARGE // 1000000} M nonzeros and more, {mean(small):.2f} over the {len(small)} smaller ones)"
    even = [speedup[name] for name in speedup if run.variation.get(name, math.inf) < 1]
    if even:
        parts.append(f"Over the {len(even)} whose variation, the standard deviation of the lengths of rows over their mean, is less than 1: {mean(even):.2f}")
    parts.append(f"Worst: {worst}, {speedup[worst]:.2f}")
    parts.append("Below 1.0: " + (", ".join(f"{name} {speedup[name]:.2f}" for name in below) or "none"))
    slow = sorted((name for name in speedup if run.nnz[name] < LARGE and speedup[name] < 1 / 0.7), key=speedup.get)
    parts.append("Smaller ones that take more than 0.7 of cuSPARSE's time: " + (", ".join(f"{name} {1 / speedup[name]:.2f}" for name in slow) or "none"))
    return [part + ".  " for part in parts]


def products(path, ours=OURS):
    run = Run(path, ours)
    compared = list(speedups(run, run))
    if not compared:
        return [f"{path} has no times of {ours} beside cuSPARSE's."]
    text = product_rows(run, compared) + [""] + spread(run)
    alone = sorted(set(run.nnz) - set(compared))
    if alone:
        text.append(f"Without one of the two times: {', '.join(alone)}.  ")
    if run.bandwidth:
        text.append(f"Read bandwidth measured in the same run: {run.bandwidth:.0f} GB/s.  ")
    text.append(f"Options of the run: {f'`{run.options}`, otherwise ' if run.options else ''}the defaults.")
    return text


def views(path):
    """What a run with -view says of the format of each matrix and type: {(matrix, what): text}."""
    said, case = {}, None
    for line in Path(path).read_text().splitlines():
        if line.startswith("# view"):
            said[case] = said.get(case, "") + line + "\n"
        elif line.strip() and not line.startswith("#"):
            case = line.split()[0], line.split()[4]
    return said


def packed_by_auto(path):
    """Which matrices are packed by default."""
    return [name for (name, what), text in views(path).items() if what == f"{OURS}@a" and ", packed:" in text]


def by_default():
    """evchyb without options, evchyb@a, under its name."""
    path = HERE / f"{OURS}-h200.tsv"
    run = Run(path)
    run.packed = set(packed_by_auto(path))
    run.time.update({(name, OURS): run.time[name, f"{OURS}@a"] for name in run.matrices()})
    return run


def gains_of_packed(path):
    """How many times as fast as plain the matrices are that are packed by default."""
    run = Run(path)
    return {name: run.time[name, OURS] / run.time[name, f"{OURS}@a"] for name in packed_by_auto(path)}


def packed(path):
    """Packed storage (evchyb@p) beside plain (evchyb), what auto takes (evchyb@a) and cuSPARSE; bytes without the CSR arrays that PETSc keeps, from -view."""
    plain, ours, told = Run(path), Run(path, f"{OURS}@p"), views(path)
    size = {fields[0]: int(fields[1]) + int(fields[2]) for fields in lines_of(path)}
    rows = ["| matrix | nonzeros (millions) | best cuSPARSE (µs) | plain (µs) | packed (µs) | auto (µs) | packed over cuSPARSE | over plain | bytes per nonzero: plain | packed | share of read bandwidth | L2 |", "|---|" + "--:|" * 10 + "---|"]
    for name in ours.matrices():
        best, time, nnz = ours.cusparse(name), ours.time[name, f"{OURS}@p"], ours.nnz[name]
        taken = [float(re.search(r" bytes, ([\d.]+) a nonzero", told[name, what]).group(1)) for what in (OURS, f"{OURS}@p")]
        share = f"{(taken[1] * nnz + 8 * size[name]) / (ours.bandwidth * 1e3) / time * 100:.0f} %" if nnz >= LARGE else ""
        cells = f"{taken[0]:.2f} | {taken[1]:.2f} | {share}"
        rows.append(f"| {name} | {nnz / 1e6:.2f} | {best:.1f} | {plain.time[name, OURS]:.1f} | {time:.1f} | {plain.time[name, f'{OURS}@a']:.1f} | {best / time:.2f} | {plain.time[name, OURS] / time:.2f} | {cells} | {cache(ours, name)} |")
    gains, said = gains_of_packed(path), ""
    if gains:
        worst = min(gains, key=gains.get)
        said = f"Auto packs {len(gains)} of these, {mean(gains.values()):.2f} times as fast as plain in the geometric mean, the least {gains[worst]:.2f} ({worst}). "
    return rows + ["", f"{said}Read bandwidth measured in the same run: {ours.bandwidth:.0f} GB/s."]


def fastest_types():
    """(type, run, speedup over the best cuSPARSE in that run) of what README.md shows, of the two types that choose.md names for products, the faster."""
    runs = [(name, run, speedups(run, run)) for name, run in runs_of_types().items() if name in (OURS, "hbp")]
    return {matrix: max(((name, run, speedup.get(matrix, 0)) for name, run, speedup in runs), key=lambda each: each[2]) for matrix in SHOWN}


def summary():
    """Products for README.md, the speedup where a narrow screen shows it."""
    rows = ["| matrix | speedup | type | Gallop (µs) | best cuSPARSE (µs) | nonzeros (millions) |", "|---|--:|---|--:|--:|--:|"]
    for matrix, (name, run, speedup) in fastest_types().items():
        rows.append(f"| {matrix} | {speedup:.2f} | {name} | {run.time[matrix, name]:.1f} | {run.cusparse(matrix):.1f} | {run.nnz[matrix] / 1e6:.2f} |")
    return rows + ["", f"{spread(by_default())[0].rstrip()} That is with `{OURS}` for all. `{CHOOSES}` takes the type that is named here, but leaves the products of web1M, and of web graphs like it, to cuSPARSE."]


def solve_rows(mine=CHOOSES):
    """Whole solves: (problem, unknowns, which solves, ms with aijcusparse, ms with ours), of a file of solves.py."""
    text = (HERE / "solves.tsv").read_text().splitlines()
    columns = next(line[2:].split("\t") for line in text if line.startswith("# case\t"))
    types = {}
    for row in (dict(zip(columns, line.split("\t"))) for line in text if not line.startswith("#")):
        name = row["case"] + (f", {row['ranks']} ranks" if row["ranks"] != "1" else "")
        types.setdefault((name, int(float(row["unknowns"]))), {})[row["type"]] = row
    pairs = [(*key, which, *(each.get(what, {}).get(f"{which}_ms") for what in ("aijcusparse", mine))) for key, each in types.items() for which in ("later", "first")]
    return [(name, unknowns, which, float(theirs), float(ours)) for name, unknowns, which, theirs, ours in pairs if theirs and ours]


def products_gpu():
    """The GPU that products by default are of."""
    return re.search(r"^# machine: ([^,\n]+)", (HERE / f"{OURS}-h200.tsv").read_text(), re.M).group(1)


def solves_of():
    """GPU and commit that whole solves are of."""
    return re.search(r"^# Whole solves .*?on (one [^:]+): .*Gallop (\S+)", (HERE / "solves.tsv").read_text()).groups()


def solves():
    """A row for each problem, with later and first solves by the type that chooses, and how fast they are with evchyb."""
    rows = ["| solve | unknowns | " + " | ".join(f"{which}: speedup with {CHOOSES} | with {OURS} | aijcusparse (ms)" for which in ("later solves", "first solve")) + " |", "|---|" + "--:|" * 7]
    cells, gains = {}, {CHOOSES: {"later": [], "first": []}, OURS: {"later": [], "first": []}}
    for mine, times in gains.items():
        for problem, unknowns, which, theirs, ours in solve_rows(mine):
            times[which].append(theirs / ours)
            cells.setdefault((problem, unknowns), {}).setdefault(which, {}).update({mine: f"{theirs / ours:.2f}", "ms": short(theirs, digits=3)})
    for (problem, unknowns), each in cells.items():
        rows.append(" | ".join([f"| {problem}", str(unknowns), *(each.get(which, {}).get(what, "") for which in ("later", "first") for what in (CHOOSES, OURS, "ms")), ""]).rstrip())
    gpu, commit = solves_of()
    said = [f"Geometric means with `{mine}`: {means(times)}." for mine, times in gains.items()]
    return rows + ["", f"{' '.join(said)} Speedups are over `aijcusparse`; measured on {gpu}, commit {commit}."]


def means(gains):
    return ", ".join(f"{mean(each):.2f} over {name} (worst {min(each):.2f})" for name, each in (("later solves", gains["later"]), ("first ones", gains["first"])) if each)


def keep_solves(paths):
    """Files of solves.py, each of some cases, become the one beside this script, and their table that of README.md."""
    texts = [Path(path).read_text() for path in paths]
    for path, text in zip(paths, texts):
        if not re.search("^# Whole solves .*on one ", text) or any(f"\t{name}\t" not in text for name in ("aijcusparse", CHOOSES, OURS)):
            sys.exit(f"table.py: {path} has no times of aijcusparse, {CHOOSES} and {OURS} on a GPU")
        if text.partition("\n")[0] != texts[0].partition("\n")[0]:
            sys.exit(f"table.py: {path} is of another GPU, PETSc or commit than {paths[0]}")
    rows = [line for text in texts[1:] for line in text.splitlines(True) if not line.startswith("#")]
    (HERE / "solves.tsv").write_text("".join([texts[0], *rows]))
    splice(ROOT / "README.md", "solves", solves())


def scaling_rows():
    """For each kind of GPU that there is a file of, a table of strong and one of weak scaling."""
    rows = []
    for path in sorted(HERE.glob("scaling-*.tsv")):
        head, results = scaling.read(path)
        gpu, points, commit = re.match(r"Products and solves on GPUs of type (.+), (\d+\^3) points: .*Gallop (\S+)", head).groups()
        columns, *cases = scaling.cells(results)
        for kind, problem in (("strong", f"{points} points, the same for all numbers of processes"), ("weak", f"{points} points per process")):
            found = [row[1:] for row in cases if row[0] == kind]
            if found:
                rows += [f"{gpu}, a process on each, commit {commit}: the 7-point stencil, {problem} ({kind} scaling).", "", f"| {' | '.join(columns[1:])} |",
                         "|" + "---|" * 3 + "--:|" * (len(columns) - 4), *(f"| {' | '.join(row)} |" for row in found), ""]
    return rows + [" ".join(scaling.LEGEND)] if rows else []


def keep_scaling(path):
    """A file of scaling.py becomes the one of its GPU beside this script, and its tables those of docs/mpi.md."""
    text = Path(path).read_text()
    gpu = re.match("# Products and solves on GPUs of type ([^,]+), ", text)
    if not gpu or "\taijcusparse\t" not in text or f"\t{OURS}\t" not in text:
        sys.exit(f"table.py: {path} has no times of aijcusparse and {OURS} on GPUs")
    (HERE / f"scaling-{card(gpu.group(1))}.tsv").write_text(text)
    splice(ROOT / "docs" / "mpi.md", "scaling", scaling_rows())


def brief():
    """A few products with the default options, for docs/evchyb.md."""
    run = by_default()
    speedup = speedups(run, run)
    rows = ["| matrix | speedup | evchyb (µs) | best cuSPARSE (µs) | nonzeros (millions) | storage |", "|---|--:|--:|--:|--:|---|"]
    for name, what in BRIEF.items():
        rows.append(f"| {name}, {what} | {speedup[name]:.2f} | {run.time[name, OURS]:.1f} | {run.cusparse(name):.1f} | {run.nnz[name] / 1e6:.2f} | {'packed' if name in run.packed else 'plain'} |")
    worst = min(speedup, key=speedup.get)
    return rows + ["", f"Geometric mean over {len(speedup)} matrices: {mean(speedup.values()):.2f}, worst {speedup[worst]:.2f} ({worst})."]


def brief_packed():
    """The same matrices in both storages, for docs/packing.md."""
    path = HERE / f"{OURS}-h200.tsv"
    gains = gains_of_packed(path)
    rows = ["| matrix | speedup | packed (µs) | plain (µs) | bytes per nonzero: plain | packed | `auto` takes |", "|---|" + "--:|" * 5 + "---|"]
    for row in packed(path):
        cells = row.strip("| ").split(" | ")
        if cells[0] in BRIEF:
            rows.append(f"| {cells[0]}, {BRIEF[cells[0]]} | " + " | ".join(cells[k] for k in (7, 4, 3, 8, 9)) + f" | {'packed' if cells[0] in gains else 'plain'} |")
    return rows + ["", f"`auto` packs {len(gains)} of the {len(by_default().nnz)} matrices measured: {mean(gains.values()):.2f} times as fast as plain in the geometric mean, at least {min(gains.values()):.2f}."]


def permuted():
    """Some of the paper's matrices without and with one permutation of rows and columns, for docs/reorder.md."""
    rows = ["| speedup over the best of cuSPARSE | evchyb | permuted once |", "|---|--:|--:|"]
    names, _, *measured = [row.strip("| ").split(" | ") for row in paper(paper_files("evchyb")[0], "figure3")]
    usual, once = names.index("with reordering"), names.index("rows and columns permuted once")
    rows += [f"| {row[0]} | {row[usual]} | {row[once]} |" for row in measured[:-1] if row[0] in PERMUTED]
    return rows + [f"| {measured[-1][0]} of all {len(measured) - 1} | {measured[-1][usual]} | {measured[-1][once]} |"]


def both(path, transposed, ours):
    """Products and transposed ones side by side."""
    run, other = Run(path, ours), Run(transposed, ours)
    speedup, turned = speedups(run, run), speedups(other, other)
    rows = ["| matrix | nonzeros (millions) | variation of rows | best cuSPARSE (µs) | " + ours + " (µs) | speedup | transposed: best cuSPARSE (µs) | " + ours + " (µs) | speedup | L2 |", "|---|" + "--:|" * 8 + "---|"]
    for name in run.matrices():
        rows.append(f"| {name} | {run.nnz[name] / 1e6:.2f} | {run.variation[name]:.2f} | {run.cusparse(name):.1f} | {run.time[name, ours]:.1f} | {speedup[name]:.2f} "
                    f"| {other.cusparse(name):.1f} | {other.time[name, ours]:.1f} | {turned[name]:.2f} | {cache(run, name)} |")
    return rows + ["", "Products:", ""] + spread(run) + ["", "Transposed products:", ""] + spread(other)


def brief_of(run, transposed=None):
    """A few rows for the chapter of a type, beside transposed products where the type is made for them."""
    speedup, turned = speedups(run, run), speedups(transposed, transposed) if transposed else {}
    rows = [f"| matrix | nonzeros (millions) | best cuSPARSE (µs) | {run.ours} (µs) | speedup |", "|---|" + "--:|" * 4]
    if transposed:
        rows = [rows[0] + " transposed: speedup |", rows[1] + "--:|"]
    for name in SHOWN:
        rows.append(f"| {name} | {run.nnz[name] / 1e6:.2f} | {run.cusparse(name):.1f} | {run.time[name, run.ours]:.1f} | {speedup[name]:.2f} |" + (f" {turned[name]:.2f} |" if transposed else ""))
    return rows + ["", spread(run)[0].rstrip()] + (["", "Transposed products: " + spread(transposed)[0].rstrip().replace("Geometric", "geometric")] if transposed else [])


def by_variation(path, transposed, ours):
    run, other = Run(path, ours), Run(transposed, ours)
    speedup, turned = speedups(run, run), speedups(other, other)
    rows = ["| variation of the lengths of rows | matrices | speedup, geometric mean | worst | transposed |", "|---|--:|--:|---|--:|"]
    for low, high in ((0, 0.1), (0.1, 0.3), (0.3, 1), (1, 10), (10, math.inf)):
        names = [name for name in speedup if low <= run.variation[name] < high]
        worst = min(names, key=speedup.get)
        title = f"{low} to {high}" if high < math.inf else f"more than {low}"
        rows.append(f"| {title} | {len(names)} | {mean([speedup[name] for name in names]):.2f} | {worst} {speedup[worst]:.2f} | {mean([turned[name] for name in names]):.2f} |")
    return rows


def heights(path, reference, ours):
    """The paper's blocks, cut at several heights: types ours@pHEIGHT, beside ours of the reference."""
    reference, times = Run(reference, ours), {}
    for fields in lines_of(path):
        times.setdefault(fields[0], {})[int(fields[4].split("@p")[1])] = float(fields[8 if int(fields[3]) >= LARGE else 7])
    order = sorted(next(iter(times.values())), key=lambda height: height or math.inf)
    cases = {str(height) if height else "no limit": {name: reference.cusparse(name) / times[name][height] for name in times} for height in order}
    cases["the defaults"] = {name: reference.cusparse(name) / reference.time[name, ours] for name in times}
    rows = ["| height | " + " | ".join(cases) + " |", "|---" + "|--:" * len(cases) + "|"]
    rows.append("| geometric mean of speedup | " + " | ".join(f"{mean(speedup.values()):.2f}" for speedup in cases.values()) + " |")
    rows.append("| worst | " + " | ".join(f"{min(speedup.values()):.2f} {min(speedup, key=speedup.get)}" for speedup in cases.values()) + " |")
    for name in ("star7_200", "elast27b3_56", "star5_1500", "kron18", "dense4k", "bcsstk16"):
        rows.append(f"| {name} (µs) | " + " | ".join(f"{reference.cusparse(name) / speedup[name]:.1f}" for speedup in cases.values()) + " |")
    return rows + ["", f"{len(times)} matrices."]


def setup(path, ours=OURS):
    rows = ["| matrix | product (µs) | build (µs) | build in products | refresh (µs) | refresh in products | host AIJ to first product (ms) |", "|---|--:|--:|--:|--:|--:|--:|"]
    for fields in lines_of(path):
        if fields[8:9] not in ([], [ours]):
            continue
        product, build, refresh = float(fields[2]), float(fields[4]), float(fields[5])
        rows.append(f"| {re.sub(r'[.]bin$', '', fields[0])} | {product:.1f} | {build:.0f} | {build / product:.1f} | {refresh:.1f} | {refresh / product:.1f} | {float(fields[3]):.1f} |")
    return rows


def packed_setup(path):
    """Builds and refreshes of packed storage (evchyb@p) beside plain (evchyb); what the build takes more, in products."""
    times = {(re.sub(r"[.]bin$", "", fields[0]), fields[8]): [float(value) for value in fields[1:6]] for fields in lines_of(path)}
    rows = ["| matrix | build: plain (µs) | packed (µs) | more, in products | refresh: plain (µs) | packed (µs) | in products |", "|---|" + "--:|" * 6]
    for name in sorted({name for name, _ in times}, key=lambda name: (-times[name, OURS][0], name)):
        plain, ours = times[name, OURS][1:], times[name, f"{OURS}@p"][1:]
        rows.append(f"| {name} | {plain[2]:.0f} | {ours[2]:.0f} | {(ours[2] - plain[2]) / ours[0]:.1f} | {plain[3]:.1f} | {ours[3]:.1f} | {ours[3] / ours[0]:.1f} |")
    return rows


def windows(path):
    """Products for several -mat_evchyb_window: types evchyb@wWINDOW beside evchyb, whose window is the default, and evchyb@first, its rows of one length by first column."""
    run = Run(path)
    names = run.matrices()
    found = {int(what.split("@w")[1]): what for _, what in run.time if "@w" in what}
    cases = {str(window) if window else "0 (all rows)": what for window, what in sorted({**found, DEFAULT_WINDOW: OURS}.items(), key=lambda case: case[0] or math.inf)}
    cases[f"{DEFAULT_WINDOW}, by first column"] = f"{OURS}@first"
    speedup = {title: {name: run.cusparse(name) / run.time[name, what] for name in names} for title, what in cases.items()}
    rows = ["| window | " + " | ".join(cases) + " |", "|---" + "|--:" * len(cases) + "|"]
    rows.append("| geometric mean of speedup | " + " | ".join(f"{mean(each.values()):.3f}" for each in speedup.values()) + " |")
    rows.append("| worst | " + " | ".join("{:.2f} {}".format(*min((value, name) for name, value in each.items())) for each in speedup.values()) + " |")
    for name in SWEPT:
        rows.append(f"| {name} (µs) | " + " | ".join(f"{run.time[name, what]:.1f}" for what in cases.values()) + " |")
    return rows + ["", f"{len(names)} matrices."]


def full(path, run):
    """First products of matrices from the host: columns matrix nnz copy_ms first_ms first/copy resident_us newvalues_ms, and perhaps the type."""
    rows = ["| matrix | nonzeros (millions) | copy alone (ms) | first product (ms) | first product / copy | speedup by equation 2 | product with new values (ms) |", "|---|--:|--:|--:|--:|--:|--:|"]
    gains = []
    for fields in lines_of(path):
        if len(fields) > 7 and fields[7].split("@")[0] != run.ours:  # cuSPARSE's first products are for papers.py
            continue
        name, bare, first = re.sub(r"[.]bin$", "", fields[0]), float(fields[2]), float(fields[3])
        gains.append((1e3 * (bare - first) + run.cusparse(name)) / run.time[name, run.ours] + 1)
        rows.append(f"| {name} | {int(fields[1]) / 1e6:.2f} | {bare:.2f} | {first:.2f} | {first / bare:.3f} | {gains[-1]:.2f} | {float(fields[6]):.1f} |")
    return rows + ["", f"Mean of the speedups by equation 2: {sum(gains) / len(gains):.2f}."]


def markdown(rows, left=1):
    """A table whose first row is its head; so many columns are set to the left, the others to the right."""
    return [f"| {' | '.join(rows[0])} |", "|" + "---|" * left + "--:|" * (len(rows[0]) - left), *(f"| {' | '.join(row)} |" for row in rows[1:])]


def choices():
    """What choice.py measured, by the name of the GPU, with the commit."""
    for path in sorted(HERE.glob("choice-*.tsv")):
        times = choicecases.Times().read(path)
        head = "\n".join(times.head)
        yield re.search(r"machine: ([^,\n]+)", head).group(1), re.search(r"Gallop commit (\S+)", head).group(1), times


def choice_rows(brief):
    """For docs/choose.md means and worst cases, for docs/development/choice.md the whole tables too."""
    rows = []
    for gpu, commit, times in choices():
        rows += ([""] if rows else []) + [f"{gpu}, commit {commit}:"]
        for name, matrices in times.sizes():
            rows += ["", f"{name}:", "", *markdown(choicecases.summary(times, matrices))]
        if not brief:
            rows += ["", "Microseconds per product:", "", *markdown(choicecases.products(times)),
                     "", "The first products of a new matrix, its build among them, over the least that any type takes:", "", *markdown(choicecases.first_products(times)),
                     "", "Thresholds fitted on one half of the matrices and tried on the other, a product's time over the fastest's:", "", *markdown(choicecases.left_out(times), 2),
                     "", *markdown(choicecases.thresholds(times))]
    return rows


def keep_choice(paths):
    """Files of choice.py, each of some matrices, become the one of their GPU beside this script, and their tables those of the pages."""
    texts = [Path(path).read_text() for path in paths]
    gpus = {re.search(r"^# machine: ([^,\n]+)", text, re.M).group(1) if "# machine: NVIDIA" in text else None for text in texts}
    if len(gpus) > 1 or None in gpus:
        sys.exit(f"table.py: {', '.join(paths)} are not of one kind of GPU")
    (HERE / f"choice-{card(gpus.pop())}.tsv").write_text("".join([texts[0], *(line for text in texts[1:] for line in text.splitlines(True) if not re.match("# (?!look|says)", line))]))
    splice_choice(splice)


def splice_choice(splice):
    splice(ROOT / "docs" / "choose.md", "choice", choice_rows(True))
    splice(ROOT / "docs" / "development" / "choice.md", "choice", choice_rows(False))


def splice(page, marker, rows):
    begin, end = f"<!-- {marker} -->", f"<!-- /{marker} -->"
    text = page.read_text()
    if text.find(begin) < 0 or text.find(end, text.find(begin)) < 0:
        sys.exit(f"table.py: {page} has no {begin} followed by {end}")
    before, rest = text.split(begin, 1)
    after = rest.split(end, 1)[1]
    page.write_text(before + begin + "\n" + "\n".join(rows) + "\n" + end + after)


def runs_of_types():
    return {name: by_default() if name == OURS else Run(HERE / f"{name}-h200.tsv", name) for name in TYPES}


def kinds():
    """Geometric means of the types' speedups by kind of matrix, over the matrices that every run has."""
    runs, turned = runs_of_types(), Run(HERE / "fastload-h200-transpose.tsv", "fastload")
    speedup = {name: speedups(run, run) for name, run in runs.items()}
    common = set.intersection(*(set(each) for each in speedup.values()))
    large = {name for name in common if runs[OURS].nnz[name] >= LARGE}
    groups = {title: [name for name in names if name in large] for title, names in KINDS.items()}
    missing = large - {name for names in groups.values() for name in names}
    if missing:
        sys.exit(f"table.py: KINDS lacks {', '.join(sorted(missing))}")
    groups["fewer than 1 M nonzeros, all kinds"] = sorted(common - large)
    groups["all"] = sorted(common)
    rows = ["| matrices | how many | " + " | ".join(TYPES) + " | fastload, transposed |", "|---|" + "--:|" * (len(TYPES) + 2)]
    for title, names in groups.items():
        means = [mean([speedup[each][name] for name in names]) for each in TYPES]
        cells = [f"**{value:.2f}**" if value == max(means) else f"{value:.2f}" for value in means]
        rows.append(f"| {title} | {len(names)} | " + " | ".join(cells) + f" | {mean([speedups(turned, turned)[name] for name in names]):.2f} |")
    return rows


def compare():
    """A row a matrix, with the speedup of each type in its own run."""
    runs = runs_of_types()
    speedup = {name: speedups(run, run) for name, run in runs.items()}
    nnz = {name: run.nnz[name] for run in reversed(list(runs.values())) for name in run.matrices()}
    variation = {name: value for run in reversed(list(runs.values())) for name, value in run.variation.items()}
    rows = ["| matrix | nonzeros (millions) | variation of rows | best cuSPARSE (µs) | " + " | ".join(TYPES) + " |", "|---|" + "--:|" * (len(TYPES) + 3)]
    for name in sorted(nnz, key=lambda name: -nnz[name]):
        values = [speedup[each].get(name) for each in TYPES]
        measured = [value for value in values if value is not None]
        cells = ["" if value is None else f"**{value:.2f}**" if value == max(measured) and len(measured) > 1 else f"{value:.2f}" for value in values]
        first = next(runs[each] for each in TYPES if name in speedup[each])
        rows.append(f"| {name} | {nnz[name] / 1e6:.2f} | {variation[name]:.2f} | {first.cusparse(name):.1f} | " + " | ".join(cells) + " |")
    return rows + ["", f"`evchyb` is packed where the matrix is {', '.join(sorted(runs[OURS].packed))}."]


def number_runs(ours=OURS):
    """The files numbers-KIND-GPU.tsv that are there, by kind and GPU."""
    runs = {}
    for kind in NUMBERS:
        for path in sorted(HERE.glob(f"numbers-{kind}-*.tsv")):
            gpu = path.stem.removeprefix(f"numbers-{kind}-")
            if not gpu.startswith("int64-"):  # that is of another kind, complex-int64
                runs[f"{NUMBERS[kind]}, {gpu.upper()}"] = Run(path, ours)
    return runs


def numbers():
    """Products of evchyb with other numbers and indices beside those in double precision, of the matrices that all runs but one have."""
    runs = number_runs()
    size = {name: run.nnz[name] for run in runs.values() for name in run.matrices()}
    size = {name: nnz for name, nnz in size.items() if sum(name in run.matrices() for run in runs.values()) >= len(runs) - 1}
    speedup = {title: {name: value for name, value in speedups(run, run).items() if name in size} for title, run in runs.items()}
    rows = ["| matrix | nonzeros (millions) | " + " | ".join(f"{title} (µs) | speedup" for title in runs) + " |", "|---|--:|" + "--:|--:|" * len(runs)]
    for name in sorted(size, key=lambda name: -size[name]):
        cells = [f"{run.time[name, OURS]:.1f} | {speedup[title][name]:.2f}" if name in speedup[title] else " | " for title, run in runs.items()]
        rows.append(f"| {name} | {size[name] / 1e6:.2f} | " + " | ".join(cells) + " |")
    rows.append("| geometric mean | | " + " | ".join(f" | {mean(each.values()):.2f}" for each in speedup.values()) + " |")
    return rows + ["| worst | | " + " | ".join(f" | {min(each.values()):.2f}" for each in speedup.values()) + " |"]


def larger_numbers():
    """Geometric means, and the worst, over all matrices of those runs that have the type that chooses as well."""
    runs = number_runs(CHOOSES)
    rows = [f"| | matrices | {OURS} | worst | {CHOOSES} | worst |", "|---|--:|--:|--:|--:|--:|"]
    for title, run in number_runs().items():
        both = [speedups(each, each) for each in (run, runs[title])]
        if all(both):
            rows.append(f"| {title} | {len(both[1])} | " + " | ".join(f"{mean(each.values()):.2f} | {min(each.values()):.2f}" for each in both) + " |")
    return rows


def middle(values):
    return sorted(values)[len(values) // 2]


def memory(path, what, least=0):
    """Bytes a nonzero on the GPU that a type took, the parent's copy too, of matrices of so many nonzeros and more."""
    taken = {fields[0]: float(fields[11]) for fields in lines_of(path) if fields[4] == what and int(fields[3]) >= least}
    return {name: value for name, value in taken.items() if not math.isnan(value)}


def costs():
    """What builds and refreshes take, in products, and memory: medians over the matrices that every file has."""
    times = {}
    for each in TYPES:
        path = HERE / f"{each}-h200-setup.txt"
        if path.exists():
            times[each] = {fields[0]: [float(value) for value in fields[2:6]] for fields in lines_of(path) if fields[8:9] in ([], [each])}
    room = {each: memory(HERE / f"{each}-h200.tsv", each, LARGE) for each in TYPES}
    room["aijcusparse"] = memory(HERE / f"{OURS}-h200.tsv", "aijcusparse", LARGE)
    timed, filled = set.intersection(*(set(each) for each in times.values())), set.intersection(*([set(each) for each in room.values() if each] or [set()]))
    rows = ["| type | build in products | least and most | refresh in products | least and most | bytes per nonzero |", "|---|--:|--:|--:|--:|--:|"]
    for each in ["aijcusparse"] + TYPES:
        cells = " | | | "
        if each in times:
            parts = [[times[each][name][column] / times[each][name][0] for name in timed] for column in (2, 3)]
            cells = " | ".join(f"{middle(part):.1f} | {min(part):.1f}, {max(part):.1f}" for part in parts)
        bytes_taken = f"{middle(list(room[each][name] for name in filled)):.1f}" if room[each] else ""
        rows.append(f"| {each} | {cells} | {bytes_taken} |")
    return rows + ["", f"Medians, over {len(timed)} matrices for times and {len(filled)} of 1 M nonzeros and more for memory."]


def all_dense_times(path):
    """Nonzeros by matrix, and times by matrix, program and number of columns."""
    time, nnz = {}, {}
    for fields in lines_of(path):
        name, what, columns = fields[0], fields[4], int(fields[5])
        nnz[name] = int(fields[3])
        time[name, what, columns] = float(fields[8] if nnz[name] >= LARGE else fields[7])
    return nnz, time


def dense_times(path, ours=OURS):
    """The same, of one program."""
    nnz, time = all_dense_times(path)
    return nnz, {(name, columns): value for (name, what, columns), value in time.items() if what == ours}


def model_rows(path):
    """What the model says, as numbers: lines of matrix nonzeros k kernel memory_bytes l2_bytes predicted_us."""
    return [{"matrix": name, "nnz": int(nnz), "k": int(k), "kernel": kernel, "memory": float(memory), "l2": float(l2), "time": float(time)} for name, nnz, k, kernel, memory, l2, time in lines_of(path)]


def model(path, predicted):
    """A row a matrix: measured times, and predicted ones over them."""
    nnz, measured = dense_times(path)
    rows = model_rows(predicted)
    counts = sorted({row["k"] for row in rows})
    ratio = {(row["matrix"], row["k"]): row["time"] / measured[row["matrix"], row["k"]] for row in rows if (row["matrix"], row["k"]) in measured}
    kernel = {row["matrix"]: row["kernel"] for row in rows}
    text = ["| matrix | kernel | " + " | ".join(f"K = {k} (µs) | predicted / measured" for k in counts) + " |", "|---|---|" + "--:|--:|" * len(counts)]
    for name in sorted(kernel, key=lambda name: -nnz[name]):
        text.append(f"| {name} | {kernel[name]} | " + " | ".join(f"{measured[name, k]:.1f} | {ratio[name, k]:.2f}" if (name, k) in ratio else " | " for k in counts) + " |")
    near = [[1 / NEAR <= value <= NEAR for (_, columns), value in ratio.items() if columns == k] for k in counts]
    return text + [f"| within a factor of {NEAR} | | " + " | ".join(f" | {sum(each)} of {len(each)}" for each in near) + " |"]


def dense_speedups(path, ours=OURS):
    """Nonzeros, times, and speedups by matrix and number of columns."""
    nnz, time = all_dense_times(path)
    best = {}
    for (name, what, columns), value in time.items():
        if what.startswith("raw_"):
            best[name, columns] = min(value, best.get((name, columns), math.inf))
    return nnz, time, {key: value / time[key[0], ours, key[1]] for key, value in best.items() if (key[0], ours, key[1]) in time}


def brief_dense(path):
    """Speedups of a few matrices, and the means over all."""
    nnz, _, speedup = dense_speedups(path)
    counts = sorted({columns for _, columns in speedup if columns > 1})
    rows = ["| matrix | nonzeros (millions) | " + " | ".join(f"{columns} columns" for columns in counts) + " |", "|---|" + "--:|" * (len(counts) + 1)]
    for name in [name for name in SHOWN if name in nnz]:
        rows.append(f"| {name} | {nnz[name] / 1e6:.2f} | " + " | ".join(f"{speedup[name, columns]:.2f}" if (name, columns) in speedup else "" for columns in counts) + " |")
    values = [{name: value for (name, k), value in speedup.items() if k == columns} for columns in counts]
    rows.append("| geometric mean | | " + " | ".join(f"{mean(each.values()):.2f} of {len(each)}" for each in values) + " |")
    return rows + ["| worst | | " + " | ".join(f"{min(each.values()):.2f} {min(each, key=each.get)}" for each in values) + " |"]


def dense(path, ours=OURS):
    """A row a matrix, with the time and the speedup for each number of columns of the run."""
    nnz, time, speedup = dense_speedups(path, ours)
    counts = sorted({columns for _, what, columns in time if what == ours})
    rows = ["| matrix | nonzeros (millions) | " + " | ".join(f"K = {columns} (µs) | speedup" for columns in counts) + " |", "|---|--:|" + "--:|--:|" * len(counts)]
    for name in sorted(nnz, key=lambda name: -nnz[name]):
        cells = [f"{time[name, ours, columns]:.1f} | {speedup[name, columns]:.2f}" if (name, columns) in speedup else " | " for columns in counts]
        rows.append(f"| {name} | {nnz[name] / 1e6:.2f} | " + " | ".join(cells) + " |")
    for title, of in ((f"geometric mean, {LARGE // 1000000} M nonzeros and more", lambda n: n >= LARGE), ("geometric mean, smaller ones", lambda n: n < LARGE), ("geometric mean", lambda n: True)):
        values = [[speedup[name, columns] for name in nnz if (name, columns) in speedup and of(nnz[name])] for columns in counts]
        rows.append(f"| {title} | | " + " | ".join(f" | {mean(each):.2f} of {len(each)}" if each else " | " for each in values) + " |")
    worst = [min(((value, name) for (name, k), value in speedup.items() if k == columns), default=(math.nan, "-")) for columns in counts]
    return rows + ["| worst | | " + " | ".join(f" | {value:.2f} {name}" for value, name in worst) + " |"]


def balance(path, ours=OURS):
    """Speedups of products with dense matrices before (OURS@u) and after load balancing, as the paper's Table 2 has them."""
    nnz, time = all_dense_times(path)
    rows = ["| | minimum | mean | maximum | geometric mean |", "|---|--:|--:|--:|--:|"]
    for title, what in (("no row cut", f"{ours}@u"), ("long rows cut", ours)):
        speedup = {}
        for name, program, columns in time:
            if program == what:
                best = min(value for (other, raw, k), value in time.items() if other == name and k == columns and raw.startswith("raw_"))
                speedup[name] = best / time[name, what, columns]
        least, most = min(speedup, key=speedup.get), max(speedup, key=speedup.get)
        rows.append(f"| {title} | {speedup[least]:.3g} {least} | {sum(speedup.values()) / len(speedup):.2f} | {speedup[most]:.2f} {most} | {mean(speedup.values()):.2f} |")
    return rows + ["", f"{len(nnz)} matrices."]


def paper(path, name):
    """A table that papers.py made, or if there is none of that name, the numbers of a figure of bars, with geometric means of speedups."""
    document = json.loads(Path(path).read_text())
    found = [each for each in document["tables"] if each["id"] == name]
    if found:
        columns, lines, note = found[0]["columns"], found[0]["rows"], found[0]["note"]
        speedups = [k for k, column in enumerate(columns) if column.startswith("speedup")]
    else:
        figure, note = next(each for each in document["figures"] if each["id"] == name), ""
        columns = ["matrix"] + [each["name"] for each in figure["series"]]
        lines = [list(row) for row in zip(figure["x"], *(each["y"] for each in figure["series"]))]
        speedups = range(1, len(columns)) if figure["ylabel"].startswith("speedup") else ()
        if speedups:
            lines.append(["geometric mean"] + [mean([value for value in each["y"] if value]) for each in figure["series"]])
    text = [k for k in range(len(columns)) if any(isinstance(line[k], str) for line in lines)]
    rows = ["| " + " | ".join(columns) + " |", "|" + "|".join("---" if k in text else "--:" for k in range(len(columns))) + "|"]
    return rows + ["| " + " | ".join(f"{value:.2f}" if k in speedups and value is not None else short(value, "", 3) for k, value in enumerate(line)) + " |" for line in lines] + (["", note] if note else [])


def paper_markers():
    """Of each table of the pages of the papers its page, the name of its document and its own."""
    marker = rf"^<!-- ({'|'.join(OF_ANY_GPU)}|\w+)-([\w-]+) -->$"
    return [(page, who, name) for page in sorted((ROOT / "docs" / "development").glob("papers-*.md")) for who, name in re.findall(marker, page.read_text(), re.M)]


def card(gpu):
    """The short name of a kind of GPU: h100 of NVIDIA H100 80GB HBM3."""
    found = re.search(r"\b[A-Z]+\d+\b", gpu)
    return (found.group() if found else re.sub(r"\W+", "-", gpu)).lower()


def kept_as(document):
    """The name of a document's paper beside this script: what was measured in single precision stands beside what was in double."""
    name = {8: document["paper"], 4: f"{document['paper']}-single"}.get(document["scalar_bytes"])
    if name not in DRAWN_OF or document["index_bytes"] != 4:
        sys.exit(f"table.py: no page shows {document['paper']} with numbers of {document['scalar_bytes']} bytes and indices of {document['index_bytes']}")
    return name


def paper_files(who):
    """What is kept of a paper: of one kind of GPU, or of each where OF_ANY_GPU has it."""
    others = [f"{name}-" for name in DRAWN_OF if name.startswith(f"{who}-")]
    return sorted(path for path in HERE.glob(f"{who}-*-paper.json") if not path.name.startswith(tuple(others)))


def paper_rows(who, name):
    """What the pages of the papers show; nothing where nothing is kept of what may be of any GPU."""
    if who not in OF_ANY_GPU:
        return paper(paper_files(who)[0], name)
    rows = []
    for path in paper_files(who):
        document = json.loads(path.read_text())
        rows += ([""] if rows else []) + paper(path, name) + ["", f"Measured on {document['machine'].split(',')[0]}, commit {document['commit']}."]
    return rows


def keep(paths):
    """What the pages of the papers show of documents of papers.py."""
    markers = paper_markers()
    for path in map(Path, paths):
        document = json.loads(path.read_text())
        if not document.get("complete", True):
            sys.exit(f"table.py: {path} is of a run that broke off")
        if not document["gpu"]:
            sys.exit(f"table.py: {path} is of a machine without a GPU")
        kept = kept_as(document)
        named = [name for _, who, name in markers if who == kept]
        document.pop("measurements", None)
        document["tables"] = [each for each in document["tables"] if each["id"] in named]
        document["figures"] = [each for each in document["figures"] if each["id"] in named + DRAWN_OF[kept]]
        gpu = card(document["machine"].split(",")[0])
        for older in paper_files(kept) if kept not in OF_ANY_GPU else []:
            older.unlink()  # a page shows one kind of GPU
        (HERE / f"{kept}-{gpu}-paper.json").write_text(json.dumps(document, indent=1) + "\n")


def differs(page, marker, rows):
    """Like splice(), but only tells whether it would change the page."""
    same = f"<!-- {marker} -->\n" + "\n".join(rows) + f"\n<!-- /{marker} -->" in page.read_text()
    print(f"{page.relative_to(ROOT)}#{marker}: " + ("as measured" if same else "not what benchmarks/results gives: run benchmarks/results/table.py --update"))


def pictures():
    """The pictures of the pages of the papers, and the figures that make plots draws there."""
    for path in sorted(HERE.glob("*-paper.json")):
        document = json.loads(path.read_text())
        name = kept_as(document)
        for figure in document["figures"]:
            if figure["id"] in DRAWN_OF[name]:
                yield ROOT / "docs" / "development" / f"papers-{name}-{figure['id']}.svg", figure


def mark_of(figure):
    """Stands in its picture, and tells which numbers that is of."""
    return "numbers " + hashlib.sha256(json.dumps(figure, sort_keys=True).encode()).hexdigest()[:16]


def check_pictures():
    for path, figure in pictures():
        same = path.exists() and mark_of(figure) in path.read_text()
        print(f"{path.relative_to(ROOT)}#{figure['id']}: " + ("as measured" if same else "not what benchmarks/results gives: run make plots"))


def update_papers(splice):
    for page, who, name in paper_markers():
        rows = paper_rows(who, name)
        if rows:
            splice(page, f"{who}-{name}", rows)


def update(splice=splice):
    page, run = ROOT / "docs" / "development" / "performance.md", HERE / "evchyb-h200.tsv"
    splice(page, "table", products(run))
    splice(page, "setup", setup(HERE / "evchyb-h200-setup.txt"))
    splice(page, "numbers", numbers())
    splice(page, "larger-numbers", larger_numbers())
    splice(ROOT / "docs" / "development" / "evchyb.md", "windows", windows(run))
    splice(ROOT / "docs" / "evchyb.md", "brief", brief())
    splice(ROOT / "docs" / "packing.md", "brief", brief_packed())
    splice(ROOT / "docs" / "reorder.md", "permuted", permuted())
    splice(ROOT / "README.md", "summary", summary())
    splice(ROOT / "README.md", "solves", solves())
    page, run = ROOT / "docs" / "development" / "csroverlap.md", HERE / "csroverlap-h200.tsv"
    splice(ROOT / "docs" / "csroverlap.md", "brief", brief_of(Run(run, "csroverlap")))
    splice(page, "table", products(run, "csroverlap"))
    for marker, name in (("full", "csroverlap-h200-full.txt"), ("nopack", "csroverlap-h200-nopack.txt")):
        splice(page, marker, full(HERE / name, Run(run, "csroverlap")))

    page, run, transposed = ROOT / "docs" / "development" / "fastload.md", HERE / "fastload-h200.tsv", HERE / "fastload-h200-transpose.tsv"
    splice(ROOT / "docs" / "fastload.md", "brief", brief_of(Run(run, "fastload"), Run(transposed, "fastload")))
    splice(page, "table", both(run, transposed, "fastload"))
    splice(page, "variation", by_variation(run, transposed, "fastload"))
    splice(page, "heights", heights(HERE / "fastload-h200-heights.tsv", run, "fastload"))
    splice(page, "setup", setup(HERE / "fastload-h200-setup.txt", "fastload"))

    page, run = ROOT / "docs" / "development" / "tiledspmm.md", HERE / "tiledspmm-h200.tsv"
    splice(ROOT / "docs" / "tiledspmm.md", "brief", brief_dense(run))
    splice(page, "dense", dense(run))
    splice(page, "model", model(run, HERE / "tiledspmm-h200-model.tsv"))
    splice(page, "balance", balance(HERE / "tiledspmm-h200-single.tsv"))

    page, run = ROOT / "docs" / "development" / "hbp.md", HERE / "hbp-h200.tsv"
    splice(ROOT / "docs" / "hbp.md", "brief", brief_of(Run(run, "hbp")))
    splice(page, "table", products(run, "hbp"))
    splice(page, "setup", setup(HERE / "hbp-h200-setup.txt", "hbp"))

    page, run = ROOT / "docs" / "development" / "packing.md", HERE / "evchyb-h200.tsv"
    splice(page, "table", packed(run))
    splice(page, "setup", packed_setup(HERE / "evchyb-h200-packed-setup.txt"))
    update_papers(splice)
    rows = scaling_rows()
    if rows:
        splice(ROOT / "docs" / "mpi.md", "scaling", rows)
    if any(choices()):
        splice_choice(splice)
    for marker, rows in (("kinds", kinds()), ("compare", compare()), ("costs", costs())):
        splice(ROOT / "docs" / "choose.md", marker, rows)


def main(args):
    if args == ["--update"]:
        return update()
    if args == ["--check"]:
        check_pictures()
        return update(differs)
    if args == ["--compare"]:
        rows = kinds() + [""] + compare() + [""] + costs()
    elif len(args) == 1 and not args[0].startswith("-"):
        rows = products(args[0])
    elif len(args) == 2 and args[0] == "--setup":
        rows = setup(args[1])
    elif args == ["--summary"]:
        rows = summary()
    elif len(args) == 2 and args[0] == "--dense":
        rows = dense(args[1])
    elif len(args) == 3 and args[0] == "--model":
        rows = model(args[1], args[2])
    elif len(args) == 2 and args[0] == "--balance":
        rows = balance(args[1])
    elif len(args) == 3 and args[0] == "--paper":
        rows = paper(args[1], args[2])
    elif len(args) > 1 and args[0] == "--keep":
        return keep(args[1:])
    elif len(args) > 1 and args[0] == "--solves":
        return keep_solves(args[1:])
    elif len(args) == 2 and args[0] == "--scaling":
        return keep_scaling(args[1])
    elif len(args) > 1 and args[0] == "--choice":
        return keep_choice(args[1:])
    elif len(args) == 2 and args[0] == "--windows":
        rows = windows(args[1])
    else:
        print(__doc__.strip())
        return 0 if args in (["-h"], ["--help"]) else 2
    print("\n".join(rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
