#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Time products and solves of one problem on more and more processes, a GPU each, and print a table.

usage: scaling.py --program scaling [--set quick|full] [--ranks 1,2,4] --output FILE.tsv [-- OPTION ...]

The 7-point stencil on a cube, the same for all numbers of processes (strong scaling), and one of that size for each process (weak scaling): 200^3 points with --set full, 100^3
with quick, 24^3 on the host. PETSc's type and evchyb run together, with ghost values by PetscSF; evchyb once more with each other way that they can take. Without a GPU for each process
numbers are left out, and said. OPTIONs are added to each run. FILE.tsv has a line per run and what is timed; its first lines say what the columns are. `make bench-scaling` calls it.
"""

import argparse
import os
import re
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
host_KB: what all processes together copy between host and GPU in one of them; way: how ghost values of the matrix travel, - where the type has no choice or there are none"""
SOLVERS = {"sf": "cg+jacobi,gallopcg+jacobi", "ipc": "cg+jacobi,gallopcg+jacobi", "nccl": "cg+jacobi"}


def rows_of(text):
    return [dict(zip(COLUMNS, line.split("\t"))) for line in text.splitlines() if line.count("\t") == len(COLUMNS) - 1 and not line.startswith("#")]


def chosen(arguments):
    """What runs: scaling, processes, way, types."""
    base = "aijcusparse" if arguments.gpu else "aij"
    for scaling in ("strong", "weak"):
        for ranks in arguments.ranks:
            for way in ("sf", "ipc", "nccl") if arguments.gpu and ranks > 1 else ("sf", ):
                if ranks > 1 or scaling == "strong":
                    yield scaling, ranks, way, f"{base},evchyb" if way == "sf" else "evchyb"


def run(arguments, scaling, ranks, way, types):
    """Rows of one run; or why there is none."""
    solvers = SOLVERS[way] + (",cg+gamg" if scaling == "strong" and way != "nccl" else "")
    command = [*arguments.mpiexec, "-n", str(ranks), arguments.program, "-grid", str(arguments.grid), "-types", types, "-mat_gallop_exchange", way, "-solvers", solvers,
               *(["-weak"] if scaling == "weak" else []), *arguments.options]
    try:
        done = petscexamples.finish(command, arguments.timeout)
    except subprocess.TimeoutExpired:
        return None, f"no end after {arguments.timeout:g} s"
    rows = rows_of(done.stdout)
    if done.returncode or not rows:
        return rows, petscexamples.reason(done.returncode, done.stdout)
    other = {row["way"] for row in rows if row["type"] == "evchyb" and row["way"] != way and row["what"] != "MatMatMult"} if ranks > 1 else ()
    return rows, f"ghost values went by {', '.join(sorted(other))}" if other else None


def table(results):
    """A row for each scaling, type and way, with the times on each number of processes, times over PETSc's type's, and how well they scale."""
    counts = sorted({key[1] for key in results})
    times = {(scaling, ranks, row["what"], row["type"], way): row for (scaling, ranks, way), rows in results.items() for row in rows}
    lines, seen = [["scaling", "what", "type", "way", *(f"{n} ms" for n in counts), *(f"over {n}" for n in counts), *(f"scales {n}" for n in counts[1:]), "host KB"]], []
    for scaling, _, what, kind, way in times:
        if (scaling, what, kind, way) in seen or (kind.startswith("aij") and way != "sf"):
            continue
        seen.append((scaling, what, kind, way))

        def row(ranks, of=kind, by=way):
            found = times.get((scaling, ranks, what, of, by)) or (times.get(("strong", 1, what, of, "sf")) if ranks == 1 else None)
            return float(found["later_ms"]) / max(1, float(found["iterations"])) if found else None
        bases = {ranks: next((row(ranks, base, "sf") for base in ("aijcusparse", "aij") if row(ranks, base, "sf")), None) for ranks in counts}
        if what.startswith("gallop"):
            bases = {ranks: next((float(times[key]["later_ms"]) / max(1, float(times[key]["iterations"])) for key in times
                                  if key[1] == ranks and key[2] == what[len("gallop"):] and key[3].startswith("aij") and key[0] == (scaling if ranks > 1 else "strong")), None) for ranks in counts}
        ideal = {ranks: row(1) and (row(1) / ranks if scaling == "strong" else row(1)) for ranks in counts}
        copied = next((times[scaling, ranks, what, kind, way]["host_KB"] for ranks in reversed(counts) if (scaling, ranks, what, kind, way) in times), None)
        lines.append([scaling, what, kind, way, *(short(row(ranks)) for ranks in counts),
                      *(f"{bases[ranks] / row(ranks):.2f}" if bases[ranks] and row(ranks) else "-" for ranks in counts),
                      *(f"{ideal[ranks] / row(ranks):.2f}" if ideal[ranks] and row(ranks) else "-" for ranks in counts[1:]), copied and short(float(copied))])
    return aligned(lines, 4)


def write(path, results, head):
    part = Path(path).with_suffix(".part")
    with part.open("w") as file:
        print(*(f"# {line}" for line in [head, *ABOUT.splitlines()]), sep="\n", file=file)
        print("# scaling", "asked", *COLUMNS, sep="\t", file=file)
        for (scaling, _, way), rows in results.items():
            for row in rows:
                print(scaling, way, *row.values(), sep="\t", file=file)
    part.replace(path)


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
    gpus = int(re.match(r"\d*", os.environ.get("GALLOP_GPUS", "0")).group() or 0)
    arguments.gpu, arguments.grid = gpus > 0, 24 if not gpus else 200 if arguments.set == "full" else 100
    places = gpus or len(os.sched_getaffinity(0))
    left = [str(ranks) for ranks in arguments.ranks if ranks > places]
    arguments.ranks = [ranks for ranks in arguments.ranks if ranks <= places]
    if left:
        print(f"# not on {', '.join(left)} processes: there {'is' if places == 1 else 'are'} {places} {'GPU' if gpus else 'core'}{'' if places == 1 else 's'}")
    return arguments


def main():
    arguments = parsed()
    where = f"GPUs of type {petscexamples.Memory().name or 'unknown'}" if arguments.gpu else "the host"
    runs, results, bad = list(chosen(arguments)), {}, 0
    print(f"Products and solves on {where}, {arguments.grid}^3 points in all (strong) or per process (weak)")
    with Progress("scaling", "runs", len(runs)) as progress:
        for scaling, ranks, way, types in runs:
            progress.detail = f"{scaling}, {ranks} processes, {way}"
            rows, error = run(arguments, scaling, ranks, way, types)
            progress.done += 1
            if error:
                progress.say(f"# FAILED {progress.detail}: {error}")
                bad += 1
            if rows:
                results[scaling, ranks, way] = rows
                write(arguments.output, results, f"Products and solves on {where}, {arguments.grid}^3 points: {arguments.about}")
    if results:
        print("\n".join(["", *table(results), "Times of solves are those of one iteration. over: over those of PETSc's type on as many processes; scales: of the ideal, 1",
                         f"All columns: {arguments.output}"]))
    return 1 if bad or not results else 0


if __name__ == "__main__":
    sys.exit(main())
