#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the type gallop chooses, by rules and measured, beside all that it can choose from.

usage: choice.py --program FEWPRODUCTS [--seconds N] [--output FILE.tsv] [MATRIX ...] [-- OPTION ...]
       choice.py --read FILE.tsv ...

MATRIX is the name of a generated matrix, as `fewproducts -help` lists them, or a file (.mtx, .mtx.gz, .bin); without any, a
hundred thousand to a hundred million nonzeros of all kinds. Each is a process of its own, and none begins later than N (400) seconds
after the first. Tables: a product's time with each type, from those of 500 and 1000 products, and what gallop chose; the time
of the first k products of a new matrix, whose format is built in between, over the least that any type takes; means and
worst cases; and, where there are enough matrices, thresholds of the rules fitted to half of them and tried on the others. What
gallop measured is forgotten before each new matrix. Options go to fewproducts. --read makes the tables from what --output wrote.
"""
import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "config"))
import bench
import choicecases
from choicecases import CHOSEN, COUNTS, FORMATS
from terminal import table

MATRICES = """star7_100 star5_1500 poisson7_100_c=star7_100_c box27_64 elast27b3_32 mesh100 mesh40_4 highorder_60=star7_60_6 band9506_158=band9506_79
              band9506_86=band9506_43 dense4k=dense4096 tsopf_like=longrows38120_.8_528_8 torso_like=longrows116158_.024_2700_9 longrows50k_.02_2700_9
              lp_500k=lp300k_1M_4 lp100k_300k_4 circuit1447k=circuit1447360_3.8 circuit682k=circuit682k_5_8_390k circuit116k=circuit116800_4_2_114k
              web1M=web1M_3.1_1.6_.6 web2M_8_1.7_.7 web3M_12_1.7_.8 kron16 kron17 kron18 uniform1M_16 uniform2M_8 uniform4M_5 uniform5M_4 uneven1M_18
              shuffled7_100 mesh64_1_262144""".split()
LARGE = "web7M=web7M_20_1.7_.8 poisson7_256_c=star7_256_c kron19 kron20 box27_140 star7_200 uniform6M_8 uniform8M_8".split()  # times are long: measured once
OPTIONS = "-forget -view -rules_mat_gallop_choose rules -measure_mat_gallop_choose measure".split()
ENOUGH = 12  # matrices that the rules look at, for a fit


def add(times, matrix, text, outputs):
    """Takes what fewproducts printed of one matrix, and writes it with what was seen in the views."""
    kept, view, counts = [], [], 0
    for line in text.splitlines():
        if line.startswith("#"):
            if not times.nnz:
                kept.append(line)
            continue
        fields = line.split("\t")
        if len(fields) != 6:
            view.append(line.strip())
            continue
        kept.append("\t".join(fields[:5]))
        counts += 1
        if counts % len(COUNTS) == 0:  # the view stands before a type's last line
            said = [line[len("Gallop: ") :] for line in view if line.startswith("Gallop: ")]
            look = [found for found in map(choicecases.look_of, said) if found]
            if fields[2] in CHOSEN and said:
                kept.append(f"# says\t{bench.label(matrix)}\t{fields[2]}\t{said[0]}")
            if fields[2] == CHOSEN[0] and look:
                kept.append("\t".join(["# look", bench.label(matrix), *look[0]]))
            view = []
    for line in kept:
        times.line(line)
        for file in outputs:
            print(line, file=file, flush=True)


def measure(args, options, times):
    """Whether a matrix failed."""
    begin, failed = time.monotonic(), False
    matrices = args.matrices or MATRICES + LARGE
    bench.check_labels(matrices)
    outputs = [open(args.output, "w")] if args.output else []
    for matrix in matrices:
        if time.monotonic() - begin > args.seconds:
            print(f"not run, as time was up: {matrix}")
            continue
        words = [args.program] + bench.named(matrix) + ["-types", ",".join([args.parent] + FORMATS + CHOSEN), "-k", ",".join(map(str, COUNTS)), "-measurements", "1" if matrix in LARGE else "3"]
        done = subprocess.run(words + OPTIONS + options, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            print(f"choice.py: {matrix} failed with exit status {done.returncode}")
            failed = True
            continue
        add(times, matrix, done.stdout, outputs)
        print(f"{bench.label(matrix)}: {time.monotonic() - begin:.0f} s", flush=True)
    for file in outputs:
        file.close()
    return failed


def show(times):
    for title, rows in (("Microseconds per product", choicecases.products(times)),
                        ("The first products of a new matrix, its build among them: their time over the least of any type", choicecases.first_products(times)),
                        *((f"Over all of {name}", choicecases.summary(times, matrices)) for name, matrices in times.sizes())):
        print(f"\n{title}\n")
        print("\n".join(table(rows)))
    if len(times.look) >= ENOUGH:
        print("\nThresholds of the rules, fitted on one half of the matrices and tried on the other: a product's time over the fastest's\n")
        print("\n".join(table(choicecases.left_out(times))))
        print()
        print("\n".join(table(choicecases.thresholds(times))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    gpu = os.environ.get("GALLOP_GPUS") != "0"  # which make finds out
    parser.add_argument("--program")
    parser.add_argument("--read", nargs="+", default=[])
    parser.add_argument("--output")
    parser.add_argument("--parent", default="aijcusparse" if gpu else "aij", help="what the types are compared with")
    parser.add_argument("--seconds", type=float, default=400)
    parser.add_argument("matrices", nargs="*")
    own = sys.argv[1 : sys.argv.index("--")] if "--" in sys.argv else sys.argv[1:]
    args = parser.parse_args(own)
    if not args.program and not args.read:
        parser.error("--program or --read is wanted")
    options = sys.argv[sys.argv.index("--") + 1 :] if "--" in sys.argv else []
    times, failed = choicecases.Times(), False
    for path in args.read:
        times.read(path)
    if args.program:
        failed = measure(args, options, times)
    if times.nnz:
        show(times)
    wrong = list(choicecases.check_rules(times)) if times.nnz and times.parent == "aijcusparse" else []  # on the host the rules choose nothing
    if wrong:
        print("\n" + "\n".join(wrong))
    return failed or not times.nnz or bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
