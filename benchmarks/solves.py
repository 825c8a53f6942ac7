#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Time whole solves with PETSc's matrix type and with evchyb, and print a table.

usage: solves.py --program repeatsolve [--set quick|full] --output FILE.tsv [-- OPTION ...]

Each case is one run of repeatsolve, which solves with both types; OPTIONs are added to each, -types aijcusparse,evchyb,hbp too. FILE.tsv gets a line per case and type:
case, type, unknowns, set-up, first solve, later solves (ms), iterations, residual, memory. A case fails when the program does, or when iterations of the types differ by more
than one in twenty. `make bench-solves` calls it; without a GPU it times the host, on small grids.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from cases import mean  # which finds config/ too
from terminal import Progress

# case: options without the size; sizes of the grid for quick and full on a GPU, and on the host
CASES = {
    "CG, Jacobi, 7 points, large": ("-ksp_type cg -pc_type jacobi", 100, 180, 32),
    "CG, Jacobi, 7 points, small": ("-ksp_type cg -pc_type jacobi", 40, 40, 16),
    "CG, Jacobi, 27 points": ("-ksp_type cg -pc_type jacobi -box", 64, 130, 24),
    "GMRES, Jacobi, 27 points, 3 unknowns": ("-ksp_type gmres -pc_type jacobi -box -dof 3", 32, 60, 12),
    "BiCG, Jacobi, 7 points": ("-ksp_type bicg -pc_type jacobi", 64, 120, 24),
    "BiCGStab, Jacobi, 7 points": ("-ksp_type bcgs -pc_type jacobi", 64, 100, 24),
    "CG, GAMG, 7 points": ("-ksp_type cg -pc_type gamg", 64, 100, 24),
    "CG, GAMG, 3 unknowns": ("-ksp_type cg -pc_type gamg -box -dof 3", 24, 36, 12),
    "CG, GAMG, new values": ("-ksp_type cg -pc_type gamg -new_values -pc_gamg_reuse_interpolation", 64, 100, 24),
    "CG, Jacobi, new values": ("-ksp_type cg -pc_type jacobi -new_values", 64, 100, 24),
}
COLUMNS = ("unknowns", "nonzeros", "setup_ms", "first_ms", "later_ms", "iterations", "residual", "gpu_MB")


def run(program, options, timeout):
    """{type: {column: number}}, in the program's order; or why there is none."""
    try:
        done = subprocess.run([program, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return None, f"no end after {timeout} s"
    rows = [line.split("\t") for line in done.stdout.splitlines() if line.count("\t") == len(COLUMNS) and not line.startswith("#")]
    if done.returncode or not rows:
        error = next((line for line in done.stdout.splitlines() if "ERROR:" in line and "Error Message" not in line), f"exit status {done.returncode}")
        return None, error
    return {row[0]: dict(zip(COLUMNS, map(float, row[1:]))) for row in rows}, None


def same_work(types):
    counts = [row["iterations"] for row in types.values()]
    return max(counts) - min(counts) <= max(1, 0.05 * max(counts))


def table(results):
    """Lines of a table: each type over the first of its case."""
    lines = [f"{'case':40} {'type':12} {'unknowns':>9} {'iterations':>10} {'first ms':>9} {'later ms':>9} {'first':>6} {'later':>6}"]
    over = {}
    for case, types in results.items():
        base = next(iter(types.values()))
        for name, row in types.items():
            first, later = base["first_ms"] / row["first_ms"], base["later_ms"] / row["later_ms"]
            over.setdefault(name, []).append((first, later))
            lines.append(f"{case:40} {name:12} {row['unknowns']:9.0f} {row['iterations']:10.0f} {row['first_ms']:9.2f} {row['later_ms']:9.2f} {first:6.2f} {later:6.2f}")
    for name, pairs in list(over.items())[1:]:
        first, later = zip(*pairs)
        lines.append(f"{name}: first solves {mean(first):.2f} times as fast in the geometric mean (worst {min(first):.2f}), later solves {mean(later):.2f} (worst {min(later):.2f})")
    return lines


def write(path, results):
    with Path(path).open("w") as file:
        print("# case", "type", *COLUMNS, sep="\t", file=file)
        for case, types in results.items():
            for name, row in types.items():
                print(case, name, *(f"{row[column]:g}" for column in COLUMNS), sep="\t", file=file)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("--program", required=True)
    parser.add_argument("--set", choices=("quick", "full"), default="quick")
    parser.add_argument("--output", required=True)
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("options", nargs="*")
    arguments = parser.parse_args()
    gpu = os.environ.get("GALLOP_GPUS", "0") != "0"
    print("Whole solves on " + ("one GPU" if gpu else "the host, as no GPU was found: small grids, and evchyb is made for GPUs") + f"; {len(CASES)} cases")
    results, bad = {}, 0
    with Progress("solves", "cases", len(CASES)) as progress:
        for case, (options, quick, full, host) in CASES.items():
            grid = host if not gpu else full if arguments.set == "full" else quick
            progress.detail = case
            types, error = run(arguments.program, ["-grid", str(grid), "-gallop_warn_no_gpu", "0", *options.split(), *arguments.options], arguments.timeout)
            progress.done += 1
            if error or not same_work(types):
                progress.say(f"# FAILED {case}: {error or 'iterations differ'}")
                bad += 1
                continue
            results[case] = types
            write(arguments.output, results)
    if results:
        print("\n".join(["", *table(results), f"All columns: {arguments.output}"]))
    return 1 if bad or not results else 0


if __name__ == "__main__":
    sys.exit(main())
