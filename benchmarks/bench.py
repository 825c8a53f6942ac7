#!/usr/bin/env python3
"""Run gallopbench once for each matrix, so that one that fails costs only itself.

usage: bench.py --program PATH [--set quick|full] [--output FILE] [--timeout SECONDS] [MATRIX ...] [-- OPTION ...]

MATRIX is the name of a generated matrix or a file (.mtx, .mtx.gz, .bin), timed after those of the set. What
follows -- goes to the program, before it -raw unless -setup is given. What the program prints, one header for all, is
printed and goes to FILE; a matrix that fails leaves a line "# FAILED matrix reason" there, and makes the exit status 1.
"""
import argparse
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

QUICK = ["star7_100", "box27_50", "elast27b3_24", "star5_1000", "band9506_79", "kron16", "web1M_3.1", "circuit500k_4_2_200k",
         "uniform1M_8", "longrows50k_.02_2700_9", "lp100k_300k_4"]
# named as in docs/performance.md
FULL = ["web7M=web7M_20_1.7_.8", "poisson7_256_c=star7_256_c", "kron20", "box27_140", "uniform8M_8", "star7_200", "kron19", "elast27b3_56",
        "kron18", "dense4k=dense4096", "uniform1M_16", "tsopf_like=longrows38120_.8_528_8", "highorder_60=star7_60_6", "star5_1500",
        "torso_like=longrows116158_.024_2700_9", "poisson7_100_c=star7_100_c", "lp_500k=lp300k_1M_4", "circuit1447k=circuit1447360_3.8",
        "circuit682k=circuit682k_5_8_390k", "web1M=web1M_3.1_1.6_.6", "band9506_158=band9506_79", "circuit116k=circuit116800_4_2_114k",
        "band9506_86=band9506_43"]


def is_file(matrix):
    return bool(re.search(r"\.(mtx|mtx\.gz|bin)$", matrix))


def label(matrix):
    return re.sub(r"\.(mtx|mtx\.gz|bin)$", "", Path(matrix).name) if is_file(matrix) else matrix.split("=")[0]


def reason(code, errors):
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    said = [line for line in re.findall(r"PETSC ERROR: (.+)", errors) if not line.startswith(("---", "See "))]
    return f"exit status {code}: {': '.join(said[:2]) or (errors.split(chr(10)) + ['no message'])[0]}"


def run(program, matrix, options, timeout):
    """The lines that the program printed, and why it failed, if it did."""
    command = [program, "-f" if is_file(matrix) else "-generate", matrix] + options
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout)
    except subprocess.TimeoutExpired as expired:
        return (expired.stdout or b"").decode().splitlines(), f"no end after {timeout:g} s"
    except OSError as error:
        sys.exit(f"bench.py: {error}")
    return done.stdout.decode().splitlines(), reason(done.returncode, done.stderr.decode(errors="replace")) if done.returncode else None


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def main():
    arguments, options = sys.argv[1:], []
    if "--" in arguments:
        arguments, options = arguments[:arguments.index("--")], arguments[arguments.index("--") + 1:]
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("--program", required=True)
    parser.add_argument("--set", choices=["quick", "full"])
    parser.add_argument("--output")
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("matrices", nargs="*")
    chosen = parser.parse_args(arguments)
    matrices = (chosen.matrices if not chosen.set else (QUICK if chosen.set == "quick" else FULL) + chosen.matrices) or QUICK
    options = ([] if "-setup" in options else ["-raw"]) + options
    outputs = [sys.stdout] + ([open(chosen.output, "w")] if chosen.output else [])
    headed, failures, begin = False, 0, time.monotonic()
    for k, matrix in enumerate(matrices):
        name, spent = label(matrix), time.monotonic() - begin
        progress(f"{k + 1} of {len(matrices)}: {name}" + (f", about {spent / k * (len(matrices) - k):.0f} s left" if k else ""))
        lines, failure = run(chosen.program, matrix, options, chosen.timeout)
        progress("")
        if failure:
            failures += 1
            lines.append(f"# FAILED {name} {failure}")
        header = any(line.startswith("# matrix\t") for line in lines)
        for line in lines:
            remark = line.startswith(("# FAILED", "# WRONG", f"# {name} "))
            if line.startswith("#") and not remark and (headed or not header):
                continue  # the machine and the options: once for all matrices
            for file in outputs:
                print(line, file=file, flush=True)
        headed = headed or header
    print(f"{len(matrices) - failures} of {len(matrices)} matrices timed in {time.monotonic() - begin:.0f} s" + (f": {chosen.output}" if chosen.output else ""), file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
