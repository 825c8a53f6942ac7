#!/usr/bin/env python3
"""Draw measured products with dense matrices over what the model says of their traffic.

usage: roofline.py RUN.tsv MODEL.tsv PICTURE.svg [COLUMNS]

RUN.tsv is what bench.py wrote with -k, MODEL.tsv the model's numbers for the same matrices (results/tiledspmm-h200-model.tsv
tells their columns); products with COLUMNS (32) columns are drawn. Needs matplotlib.
"""
import re
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

sys.path.insert(0, str(Path(__file__).resolve().parent / "results"))
from table import dense_times, model_rows

BLUE, ORANGE = "#0072b2", "#d55e00"  # told apart by colour-blind readers too
NAMED = ["star7_200", "box27_140", "elast27b3_56", "uniform1M_16", "kron20", "web7M", "bcsstk29_pat", "kkt_boyd1", "lp_fit2d", "dense4k"]


def main(args):
    if len(args) not in (3, 4):
        print(__doc__.strip())
        return 2
    columns = int(args[3]) if len(args) > 3 else 32
    nnz, measured = dense_times(args[0])
    memory, l2, peak = (float(re.search(rf"^# {what} ([\d.]+)", Path(args[1]).read_text(), re.M).group(1)) for what in ("memory GB/s", "L2 GB/s", "flops GF/s"))
    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    for kind, color, marker, label in (("memory", BLUE, "o", "by bytes of memory"), ("l2", ORANGE, "^", "by bytes of L2, which has all")):
        points = []
        for row in model_rows(args[1]):
            name = row["matrix"]
            if row["k"] != columns or (name, columns) not in measured or (row["memory"] > 0) != (kind == "memory"):
                continue
            flops = 2 * nnz[name] * columns
            points.append((flops / row[kind], flops / measured[name, columns] / 1e3))
            if name in NAMED:
                axes.annotate(name, points[-1], textcoords="offset points", xytext=(5, -9), fontsize=8)
        axes.scatter(*zip(*points), color=color, marker=marker, label=label, zorder=3)
    for rate, color, label in ((memory, BLUE, f"memory, {memory / 1e3:.2f} TB/s"), (l2, ORANGE, f"L2, {l2 / 1e3:.1f} TB/s")):
        axes.plot([0.1, peak / rate, 20], [0.1 * rate, peak, peak], color=color, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("flops a byte, as the model counts bytes")
    axes.set_ylabel(f"measured Gflop/s with {columns} columns")
    axes.legend(frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(args[2], dpi=150, metadata={"Date": None} if args[2].endswith(".svg") else None)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
