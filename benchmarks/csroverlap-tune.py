#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Find CSROVERLAP's switching points on this GPU: Table 2 of the paper, measured anew.

usage: csroverlap-tune.py --program PATH [--entries N] [--lengths 1,2,4,...] [--output FILE] [-- OPTION ...]

Random matrices of each mean row length, and of about N (8000000) entries, are timed with each vector_size forced, by
-mat_csroverlap_switch_points and -mat_csroverlap_uneven 0, all in one run of gallopbench. What follows -- goes to it; -mat_csroverlap_... for every
vector_size. The vector sizes that are fastest are taken so that they never decrease with the length; where they change,
the switching point lies between the two lengths where the times would be equal.
"""
import argparse
import math
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "config"))
from terminal import Progress

SIZES = [1, 2, 4, 8, 16, 32]
LENGTHS = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256]
NEVER = "1e9"


def command(program, entries, lengths, options):
    matrices = [f"{length}=random{max(round(entries / length), length)}_{length}" for length in lengths]
    words = [program, "-generate", ",".join(matrices), "-types", ",".join(f"csroverlap@v{size}" for size in SIZES)]
    for k, size in enumerate(SIZES):
        points = ["0"] * k + [NEVER] * (len(SIZES) - 1 - k)
        forced = {"switch_points": ",".join(points), "rows_in_registers": "0", "uneven": "0"}
        words += [word for name, value in forced.items() for word in (f"-v{size}_mat_csroverlap_{name}", value)]
    own = False
    for word in options:
        own = word.startswith("-mat_csroverlap_") or own and not word.startswith("-")
        if not own:
            words.append(word)
    given = [(name, value) for name, value in zip(options, options[1:]) if name.startswith("-mat_csroverlap_")]
    return words + [word for size in SIZES for name, value in given for word in (f"-v{size}_{name[1:]}", value)]


def measure(words):
    """Times by mean row length: a list, one for each vector size; and the header's lines."""
    times, header = {}, []
    with Progress("vector sizes", "matrices", words[words.index("-generate") + 1].count(",") + 1) as progress, \
            subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            fields = line.split()
            if line.startswith("#"):
                header += [] if line.startswith("# matrix\t") else [line.strip()]
            else:
                times.setdefault(int(fields[3]) / int(fields[1]), []).append(float(fields[8]))  # with L2 flushed
            progress.done = max(len(times) - 1, 0)  # the last one is going on
    if process.returncode:
        sys.exit(f"csroverlap-tune.py: {words[0]} failed with exit status {process.returncode}")
    return times, header


def best(times):
    """Indices of vector sizes, not decreasing with the length, of the least product of all times."""
    cost, chosen = [0.0] * len(SIZES), [[] for _ in SIZES]
    for length in sorted(times):
        reach = [min(range(k + 1), key=lambda before: cost[before]) for k in range(len(SIZES))]
        chosen = [chosen[reach[k]] + [k] for k in range(len(SIZES))]
        cost = [cost[reach[k]] + math.log(times[length][k]) for k in range(len(SIZES))]
    return chosen[min(range(len(SIZES)), key=lambda k: cost[k])]


def switch_points(times):
    lengths, chosen = sorted(times), best(times)
    points = [0.0] * chosen[0]
    for (shorter, k), (longer, other) in zip(zip(lengths, chosen), list(zip(lengths, chosen))[1:]):
        if k == other:
            continue
        gain, loss = (math.log(times[length][k] / times[length][other]) for length in (longer, shorter))
        share = -loss / (gain - loss) if loss < 0 < gain else 0.5  # of the way, where the two take the same time
        points += [shorter * (longer / shorter) ** share] * (other - k)
    return points + [float(NEVER)] * (len(SIZES) - 1 - len(points))


def main():
    arguments, options = sys.argv[1:], []
    if "--" in arguments:
        arguments, options = arguments[:arguments.index("--")], arguments[arguments.index("--") + 1:]
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("--program", required=True)
    parser.add_argument("--entries", type=float, default=8e6)
    parser.add_argument("--lengths", type=lambda text: [int(word) for word in text.split(",")], default=LENGTHS)
    parser.add_argument("--output")
    chosen = parser.parse_args(arguments)
    times, header = measure(command(chosen.program, chosen.entries, chosen.lengths, options))
    lines = header + ["# time of a product in microseconds, by mean row length and vector_size; caches flushed", "\t".join(["length"] + [str(size) for size in SIZES] + ["best"])]
    for length in sorted(times):
        fastest = SIZES[min(range(len(SIZES)), key=lambda k: times[length][k])]
        lines.append("\t".join([f"{length:.2f}"] + [f"{time:.1f}" for time in times[length]] + [str(fastest)]))
    lines.append("-mat_csroverlap_switch_points " + ",".join(f"{point:.3g}" for point in switch_points(times)))
    print("\n".join(lines))
    if chosen.output:
        with open(chosen.output, "w") as output:
            output.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
