#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Draw when the copies and kernels of a product ran, from what -mat_csroverlap_timeline printed.

usage: csroverlap-timeline.py OUTPUT PICTURE.svg [TITLE]

OUTPUT is what a program printed; the last timeline in it is drawn. Needs matplotlib.
"""
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

BLUE, ORANGE = "#0072b2", "#d55e00"  # told apart by colour-blind readers too


def timeline(path):
    """The last one: (big batch, copy from, to, kernel from, to) in microseconds."""
    rows = []
    for line in open(path):
        fields = line.split()
        if line.startswith("CSR-Overlap timeline"):
            rows = []
        elif len(fields) == 5 and fields[0].isdigit():
            rows.append([float(field) for field in fields])
    return rows


def main(args):
    if len(args) not in (2, 3):
        print(__doc__.strip())
        return 2
    rows = timeline(args[0])
    if not rows:
        sys.exit(f"csroverlap-timeline.py: no timeline in {args[0]}")
    figure, axes = plt.subplots(figsize=(9, 2.6), layout="constrained")
    before = 0.0
    for number, copy, copied, kernel, done in sorted(rows, key=lambda row: row[2]):
        copy, before = max(copy, before), copied  # one copy at a time, whatever stream waited for it
        axes.barh(1, (copied - copy) / 1e3, left=copy / 1e3, height=0.6, color=BLUE, edgecolor="white")
        axes.barh(0, (done - kernel) / 1e3, left=kernel / 1e3, height=0.6, color=ORANGE, edgecolor=ORANGE)
        if copied - copy > 0.03 * rows[-1][4]:
            axes.text((copy + copied) / 2e3, 1, f"{number:.0f}", ha="center", va="center", color="white")
    axes.set_yticks([1, 0], ["copies of\nbig batches", "kernels"])
    axes.set_xlabel("milliseconds from the start of the product")
    axes.set_xlim(0, max(row[4] for row in rows) / 1e3 * 1.01)
    axes.set_title(args[2] if len(args) > 2 else "")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(args[1], dpi=150, metadata={"Date": None} if args[1].endswith(".svg") else None)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
