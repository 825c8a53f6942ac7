#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Time whole solves with PETSc's matrix type, with evchyb, and on a GPU with gallop, and print a table.

usage: solves.py --program repeatsolve [--examples FOLDER --library libgallop.so] [--set quick|full] [--only PATTERN] [--ranks 1,2] --output FILE.tsv [-- OPTION ...]

The cases of repeatsolve each solve with all types in one run. With --examples those of PETSc's own examples follow (petscexamples.py), compiled in FOLDER, a run for
each type. --only takes the cases in whose name the regular expression is found, --ranks runs the examples on so many ranks. OPTIONs are added to each run,
-types aijcusparse,evchyb,hbp too; the first type is what the others are compared with. FILE.tsv is written after each case and has a line per case and type; its first lines say
what the columns are. A case fails when a program does, when a solve does not converge, when products were not those of the type, or when iterations of the types
differ by more than one in twenty, with BiCGStab three. `make bench-solves` calls it; without a GPU it times the host, on small grids.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import petscexamples
from cases import mean, short  # which finds config/ too
from terminal import Progress
from terminal import table as aligned

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
    "CG, multigrid, 7 points": ("-ksp_type cg -pc_type mg -pc_mg_levels 5 -pc_mg_galerkin -mg_levels_pc_type jacobi", 65, 129, 17),
    "CG, Jacobi, new values": ("-ksp_type cg -pc_type jacobi -new_values", 64, 100, 24),
}
PRINTED = ("unknowns", "nonzeros", "setup_ms", "first_ms", "later_ms", "iterations", "residual", "gpu_MB")  # by repeatsolve, after the type
COLUMNS = PRINTED[:2] + ("first_ms", "later_ms") + PRINTED[5:] + ("setup_ms", "products_ms", "builds_ms", "vectors_ms", "assembly_ms")
ABOUT = """Milliseconds. A field is empty where the value is not known or the program does not do it.
first_ms: the first solve and the set-up of its preconditioner, the shorter one of two processes. Examples: KSPSetUp, PCSetUp and KSPSolve; or SNESSolve, TSStep or TaoSolve, which assemble too
later_ms: a later solve; for repeatsolve the median of five
iterations: all linear iterations of the run; for repeatsolve those of one solve
residual: as the program prints it; for repeatsolve the true residual over that of x = 0
gpu_MB: for repeatsolve what the type added; for an example the most memory in use while it ran, with CUDA's context
setup_ms and what follows are parts of first_ms, from the events of -log_view: KSPSetUp and PCSetUp; products with the builds of formats; builds and refreshes of formats;
vector operations; functions, Jacobians and Hessians of the program. On a GPU a separate run with -log_view_gpu_time measures them; its events wait for the GPU.
An example runs three times with each type, the types in turn, and the smallest time counts; once only where a run takes 20 s or more. With a GPU all get -device_enable eager."""


def repeatsolve(arguments, options, types):
    """{type: {column: number}}, in the program's order; or why there is none."""
    log = Path(arguments.folder) / "solves-log.csv"
    command = [arguments.program, *options, *arguments.options, "-types", ",".join(types)]
    measured = ["-solves", "1", "-log_view", f":{log}:ascii_csv", *(petscexamples.OWN_TIME if arguments.gpu else ())]
    log.unlink(missing_ok=True)
    try:
        done, again, logged = (petscexamples.finish(words, arguments.timeout) for words in (command, command + ["-solves", "1"], command + measured))
    except subprocess.TimeoutExpired:
        return None, f"no end after {arguments.timeout:g} s"
    rows, once = ([line.split("\t") for line in run.stdout.splitlines() if line.count("\t") == len(PRINTED) and not line.startswith("#")] for run in (done, again))
    for each in (done, again, logged):
        if each.returncode or not rows or not log.exists():
            return None, petscexamples.reason(each.returncode, each.stdout)
    results, firsts = ({row[0]: dict(zip(PRINTED, map(float, row[1:]))) for row in printed} for printed in (rows, once))
    events = petscexamples.Log(log)
    for name, row in results.items():
        row["first_ms"] = min(each["first_ms"] + each["setup_ms"] for each in (row, firsts[name]))
        row.update({column: time for column, time in petscexamples.parts(events, name, (name, )).items() if column != "setup_ms"})
    return results, None


def same_work(case, types):
    """Whether iterations differ by one in twenty at most; those of BiCGStab depend on rounding more than others'."""
    counts = [row["iterations"] for row in types.values()]
    return max(counts) - min(counts) <= max(1, (0.15 if "BiCGStab" in case else 0.05) * max(counts))


def titled(case, ranks):
    return case + (f", {ranks} ranks" if ranks > 1 else "")


def speedups(base, row):
    """Of first and later solves; None where one of the two times is not known."""
    return [base[column] / row[column] if base.get(column) and row.get(column) else None for column in ("first_ms", "later_ms")]


def table(results):
    """Lines of a table: each type over the first of its case, and what is slower."""
    rows, over = [["case", "type", "unknowns", "iterations", "first ms", "later ms", "first", "later"]], {}
    for key, types in results.items():
        base = next(iter(types.values()))
        for name, row in types.items():
            gains = speedups(base, row)
            over.setdefault(name, {})[titled(*key)] = gains
            rows.append([titled(*key), name, f"{row['unknowns']:.0f}", f"{row['iterations']:.0f}", short(row["first_ms"]), short(row.get("later_ms")),
                         *("-" if gain is None else f"{gain:.2f}" for gain in gains)])
    lines = aligned(rows, 2)
    for name, cases in list(over.items())[1:]:
        lines.append("")
        for place, which in enumerate(("first", "later")):
            known = {case: gains[place] for case, gains in cases.items() if gains[place]}
            if known:
                worst = min(known, key=known.get)
                slower = [f"{case} {gain:.2f}" for case, gain in sorted(known.items(), key=lambda each: each[1]) if gain < 1]
                lines.append(f"{name}: {which} solves {mean(known.values()):.2f} times as fast in the geometric mean of {len(known)} (worst {known[worst]:.2f}, {worst})"
                             + (f"; slower: {'; '.join(slower)}" if slower else ""))
    return lines


def write(path, results, head):
    part = Path(path).with_suffix(".part")
    with part.open("w") as file:
        print(*(f"# {line}" for line in [head, *ABOUT.splitlines()]), sep="\n", file=file)
        print("# case", "type", "ranks", *COLUMNS, sep="\t", file=file)
        for (case, ranks), types in results.items():
            for name, row in types.items():
                print(case, name, ranks, *("" if row.get(column) is None else f"{row[column]:g}" for column in COLUMNS), sep="\t", file=file)
    part.replace(path)


def chosen(arguments, types):
    """Cases by name and ranks: functions that measure them."""
    def size(quick, full, host):
        return str(host if not arguments.gpu else full if arguments.set == "full" else quick)

    def ours(options, grid):
        return lambda: repeatsolve(arguments, ["-grid", grid, "-gallop_warn_no_gpu", "0", *options.split()], types)

    def theirs(example, ranks):
        return lambda: petscexamples.run(example, types, size(example.quick, example.full, example.host), ranks, arguments)

    found = {(name, 1): ours(options, size(*sizes)) for name, (options, *sizes) in CASES.items()}
    for name, example in petscexamples.EXAMPLES.items() if arguments.examples else ():
        found.update({(name, ranks): theirs(example, ranks) for ranks in ((1, ) if example.alone else arguments.ranks or example.ranks)})
    return {key: measure for key, measure in found.items() if re.search(arguments.only, titled(*key))}


def parsed():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    for name in ("--program", "--output"):
        parser.add_argument(name, required=True)
    parser.add_argument("--examples")
    parser.add_argument("--library")
    parser.add_argument("--about", default="")
    parser.add_argument("--mpiexec", type=shlex.split, default=["mpiexec"])
    parser.add_argument("--set", choices=("quick", "full"), default="quick")
    parser.add_argument("--only", default="")
    parser.add_argument("--ranks", type=lambda text: [int(number) for number in text.split(",")])
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("options", nargs="*")
    arguments = parser.parse_args()
    arguments.gpu, arguments.folder = os.environ.get("GALLOP_GPUS", "0") != "0", Path(arguments.output).resolve().parent
    arguments.types = petscexamples.take_types(arguments.options)
    return arguments


def main():
    arguments = parsed()
    where = f"one {petscexamples.Memory().name or 'GPU'}" if arguments.gpu else "the host"
    cases = chosen(arguments, arguments.types or (["aijcusparse", "evchyb", "gallop"] if arguments.gpu else ["aij", "evchyb"]))
    print(f"Whole solves on {where}" + ("" if arguments.gpu else ", as no GPU was found: small grids, and evchyb is made for GPUs") + f"; {len(cases)} cases")
    results, bad = {}, 0
    with Progress("solves", "cases", len(cases)) as progress:
        for key, measure in cases.items():
            progress.detail = titled(*key)
            types, error = measure()
            progress.done += 1
            if error or not same_work(key[0], types):
                counts = types and ", ".join(f"{name} {row['iterations']:.0f}" for name, row in types.items())
                progress.say(f"# FAILED {titled(*key)}: {error or f'iterations differ: {counts}'}")
                bad += 1
                continue
            results[key] = types
            write(arguments.output, results, f"Whole solves on {where}: {arguments.about}")
    if results:
        print("\n".join(["", *table(results), f"All columns: {arguments.output}"]))
    return 1 if bad or not results else 0


if __name__ == "__main__":
    sys.exit(main())
