#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Time products and solves of one problem on more and more processes, a GPU each, and print a table.

usage: scaling.py --program scaling [--set quick|full] [--ranks 1,2,4] --output FILE.tsv [-- OPTION ...]

The 7-point stencil on a cube, the same for all numbers of processes (strong scaling), and one of that size for each process (weak scaling): 200^3 points with --set full, 100^3
with quick, 24^3 on the host. PETSc's type and evchyb run together, with ghost values by PetscSF; evchyb once more with each other way that they can take. Numbers of processes
beyond that of GPUs, on the host of cores, are left out, with a line that says so. OPTIONs are added to each run. A run fails when the program does, when it takes more than --timeout seconds,
or when ghost values went another way; the exit status is 1 then. FILE.tsv has a line per run and what is timed; its first lines say what the columns are. `make bench-scaling` calls it.
"""

import argparse
import os
import shlex
import subprocess
import sys
from pathlib import Path

import petscexamples
from cases import short  # which finds config/ too
from terminal import Progress
from terminal import table as aligned

COLUMNS = ("type", "processes", "unknowns", "what", "first_ms", "later_ms", "iterations", "host_KB", "way")  # of the program
ABOUT = """first_ms: with builds and set-ups; later_ms: of one product or solve after it, the median of five batches, until all processes have ended
what: MatMatMult with 32 columns; solves end at a relative tolerance of 1e-8 or 100 iterations
host_KB: what all processes together copy between host and GPU in one of them; way: how ghost values of the matrix travel, - where the type has no choice or there are none
asked: the way that was asked for"""
LEGEND = ("Times are those of a product, or of one iteration of a solve; MatMatMult has 32 columns. Way: how ghost values travel. Speedups are over PETSc's type on as many processes, "
          "gallopcg's over its CG. Efficiency is the ideal time over the measured one.",
          "Host KB: what all processes copy between host and GPU in a product or a whole solve, on the most processes.")
PETSC = ("aijcusparse", "aij")  # the types that others are compared with
WAYS = {"sf": "cg+jacobi,gallopcg+jacobi", "ipc": "cg+jacobi,gallopcg+jacobi", "nccl": "cg+jacobi"}  # of ghost values, and what solves with each


# ---- running ---------------------------------------------------------------------------------------------------------


def chosen(arguments):
    """What runs: scaling, processes, way, types. On one process there are no ghost values, and both kinds of scaling begin with the same problem."""
    for scaling in ("strong", "weak"):
        for ranks in arguments.ranks:
            if ranks == 1 and scaling == "weak":
                continue
            for way in WAYS if arguments.gpu and ranks > 1 else ("sf", ):
                yield scaling, ranks, way, f"{PETSC[0] if arguments.gpu else PETSC[1]},evchyb" if way == "sf" else "evchyb"


def command(arguments, scaling, ranks, way, types):
    solvers = WAYS[way] + (",cg+gamg" if scaling == "strong" and way != "nccl" else "")
    return [*arguments.mpiexec, "-n", str(ranks), arguments.program, "-grid", str(arguments.grid), "-types", types, "-mat_gallop_exchange", way, "-solvers", solvers,
            *(["-weak"] if scaling == "weak" else []),
            *arguments.options]


def run(arguments, scaling, ranks, way, types):
    """Rows of one run, and what went wrong."""
    try:
        done = petscexamples.finish(command(arguments, scaling, ranks, way, types), arguments.timeout)
    except subprocess.TimeoutExpired:
        return [], f"no end after {arguments.timeout:g} s"
    except OSError as error:
        return [], str(error)
    rows = [dict(zip(COLUMNS, line.split("\t"))) for line in done.stdout.splitlines() if line.count("\t") == len(COLUMNS) - 1 and not line.startswith("#")]
    if done.returncode or not rows:
        return rows, petscexamples.reason(done.returncode, done.stdout)
    other = sorted({row["way"] for row in rows if row["type"] not in PETSC} - {way}) if ranks > 1 else []
    return ([], f"ghost values went by {', '.join(other)}") if other else (rows, None)


# ---- what was measured -----------------------------------------------------------------------------------------------


def write(path, results, head):
    part = Path(path).with_suffix(".part")
    with part.open("w") as file:
        print(*(f"# {line}" for line in [head, *ABOUT.splitlines()]), sep="\n", file=file)
        print("# scaling", "asked", *COLUMNS, sep="\t", file=file)
        for (scaling, _, way), rows in results.items():
            for row in rows:
                print(scaling, way, *row.values(), sep="\t", file=file)
    part.replace(path)


def read(path):
    """The first line of such a file, and its results."""
    head, *lines = Path(path).read_text().splitlines()
    results = {}
    for scaling, way, *fields in (line.split("\t") for line in lines if not line.startswith("#")):
        row = dict(zip(COLUMNS, fields))
        results.setdefault((scaling, int(row["processes"]), way), []).append(row)
    return head[2:], results


def ratio(one, other):
    return one / other if one and other else None


class Times:
    """Times of cases, each a scaling, what is timed, a type and a way, on several numbers of processes."""

    def __init__(self, results):
        self.rows = {(scaling, row["what"], row["type"], way, ranks): row for (scaling, ranks, way), rows in results.items() for row in rows}
        self.counts = sorted({ranks for _, ranks, _ in results})
        self.base = next((kind for kind in PETSC if any(kind == key[2] for key in self.rows)), None)

    def cases(self):
        """Those of the same problem one after the other; PETSc's type has one way."""
        found = dict.fromkeys(key[:4] for key in self.rows if key[2] not in PETSC or key[3] == "sf")
        problems = list(dict.fromkeys(case[:2] for case in found))
        return sorted(found, key=lambda case: problems.index(case[:2]))

    def row(self, case, ranks):
        scaling, what, kind, way = case
        return self.rows.get((*case, ranks) if ranks > 1 else ("strong", what, kind, "sf", 1))

    def ms(self, case, ranks):
        """Of a product, or of an iteration of a solve."""
        row = self.row(case, ranks)
        return float(row["later_ms"]) / max(1, int(row["iterations"])) if row else None

    def speedup(self, case, ranks):
        scaling, what, _, _ = case
        theirs = scaling, what.replace("gallop", "", 1), self.base, "sf"
        return ratio(self.ms(theirs, ranks), self.ms(case, ranks))

    def efficiency(self, case, ranks):
        """n processes take ideally an nth of the time for the same problem, and as long as one for n times as many unknowns."""
        gain = ratio(self.ms(case, 1), self.ms(case, ranks))
        return gain and (gain / ranks if case[0] == "strong" else gain)

    def host_kilobytes(self, case):
        return next((float(row["host_KB"]) for row in (self.row(case, ranks) for ranks in reversed(self.counts)) if row), None)


def cells(results):
    """Rows of a table of text, the first its head: scaling, what, type and way, then numbers."""
    def rounded(value):
        return "-" if value is None else f"{value:.2f}"

    times = Times(results)
    counts, several = times.counts, [ranks for ranks in times.counts if ranks > 1]
    rows = [["scaling", "what", "type", "way", *(f"ms on {ranks}" for ranks in counts), *(f"speedup on {ranks}" for ranks in counts), *(f"efficiency on {ranks}" for ranks in several), "host KB"]]
    for case in times.cases():
        rows.append([*case, *(short(times.ms(case, ranks)) for ranks in counts), *(rounded(times.speedup(case, ranks)) for ranks in counts),
                     *(rounded(times.efficiency(case, ranks)) for ranks in several), short(times.host_kilobytes(case))])
    return rows


# ---- the command -----------------------------------------------------------------------------------------------------


def parsed():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    for name in ("--program", "--output"):
        parser.add_argument(name, required=True)
    parser.add_argument("--about", default="")
    parser.add_argument("--mpiexec", type=shlex.split, default=["mpiexec"])
    parser.add_argument("--set", choices=("quick", "full"), default="quick")
    parser.add_argument("--ranks", type=lambda text: [int(number) for number in text.split(",")], default=[1, 2, 4])
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("options", nargs="*")
    arguments = parser.parse_args()
    gpus = int(os.environ.get("GALLOP_GPUS", "0"))
    arguments.gpu, arguments.grid = gpus > 0, 24 if not gpus else 200 if arguments.set == "full" else 100
    arguments.places = gpus or len(os.sched_getaffinity(0))
    return arguments


def main():
    arguments = parsed()
    where = f"GPUs of type {petscexamples.Memory().name or 'unknown'}" if arguments.gpu else "the host"
    left = [str(ranks) for ranks in arguments.ranks if ranks > arguments.places]
    arguments.ranks = [ranks for ranks in arguments.ranks if ranks <= arguments.places]
    runs, results, bad = list(chosen(arguments)), {}, 0
    if left:
        one = arguments.places == 1
        print(f"# not on {', '.join(left)} processes: there {'is' if one else 'are'} {arguments.places} {'GPU' if arguments.gpu else 'core'}{'' if one else 's'}")
    print(f"Products and solves on {where}, {arguments.grid}^3 points in all (strong) or per process (weak)")
    with Progress("scaling", "runs", len(runs)) as progress:
        for scaling, ranks, way, types in runs:
            progress.detail = f"{scaling}, {ranks} process{'es' if ranks > 1 else ''}, {way}"
            rows, error = run(arguments, scaling, ranks, way, types)
            progress.done += 1
            if error:
                progress.say(f"# FAILED {progress.detail}: {error}")
                bad += 1
            if rows:
                results[scaling, ranks, way] = rows
                write(arguments.output, results, f"Products and solves on {where}, {arguments.grid}^3 points: {arguments.about}")
    if results:
        print("\n".join(["", *aligned(cells(results), 4), "", *LEGEND, f"All columns: {arguments.output}"]))
    return 1 if bad or not results else 0


if __name__ == "__main__":
    sys.exit(main())
