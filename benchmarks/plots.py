#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Draw the pictures of docs/development/performance.md, of the papers and of the formats from the measured times in results/.

usage: plots.py [FOLDER]   all pictures, into docs/ or FOLDER; `make plots` calls it with a Python that has matplotlib

The functions that draw take names and numbers and give a figure: rows of another source can be drawn with them too.
"""

import json
import math
import re
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE / "results"))
from table import CHOOSES, CUSPARSE, LARGE, OURS, TYPES, Run, by_default, dense_times, fastest_types, lines_of, mark_of, model_rows, pictures, products_gpu, runs_of_types, solve_rows, solves_of, speedups

# told apart by colour-blind readers too (Okabe and Ito)
BLUE, ORANGE, GREEN, SKY, PURPLE, YELLOW, BLACK = "#0072b2", "#d55e00", "#009e73", "#56b4e9", "#cc79a7", "#e69f00", "#000000"
STYLES = {
    "evchyb": (BLUE, "-"),
    "csroverlap": (ORANGE, "--"),
    "fastload": (PURPLE, ":"),
    "hbp": (GREEN, "-."),
    "best cuSPARSE": (BLACK, (0, (1, 1))),
}

# of what has no style of its own
CYCLE = [(BLUE, "-"), (ORANGE, "--"), (GREEN, "-."), (PURPLE, ":"), (SKY, (0, (4, 1, 1, 1, 1, 1))), (YELLOW, (0, (6, 2))), (BLACK, (0, (1, 1)))]
MARKERS = "o^sDvPX"

plt.rcParams.update(
    {
        "font.size": 10,
        "svg.fonttype": "none",
        "svg.hashsalt": "gallop",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "font.family": "sans-serif",
        "axes.axisbelow": True,
    }
)


def style(solver, others=()):
    """Color and line of a solver; of one that has none of its own, what the others leave."""
    if solver in STYLES:
        return STYLES[solver]
    taken = [STYLES[other][0] for other in others if other in STYLES]
    left = [each for each in CYCLE if each[0] not in taken] or CYCLE
    return left[[other for other in others if other not in STYLES].index(solver) % len(left)]


def save(figure, path, mark=None):
    """Text stays text, and the same rows give the same file, in which mark stands."""
    figure.savefig(path, dpi=150, metadata={"Date": None, "Description": mark} if str(path).endswith(".svg") else None)
    plt.close(figure)
    if str(path).endswith(".svg"):  # with what stands for matplotlib's font where that is not installed
        text = Path(path).read_text()
        Path(path).write_text(re.sub(r"'DejaVu Sans'[^;\"]*", "'DejaVu Sans', Verdana, sans-serif", text))


def name_points(axes, named, everything):
    """Write the names of {name: point}, each at that side of its point where it covers the fewest points, names and lines to names. All are placed again when the others have their places."""
    size, placed = 8, {}  # of each name its side, its box and the places on its line
    axes.figure.canvas.draw()
    spots = [axes.transData.transform(point) for point in everything]
    scale = axes.figure.dpi / 72
    sides = [
        (7, 0, "left"),
        (-7, 0, "right"),
        (5, -9, "left"),
        (-5, 9, "right"),
        (5, 9, "left"),
        (-5, -9, "right"),
        (0, -11, "center"),
        (0, 11, "center"),
    ]
    away = [(side[0] * far, side[1] * far, side[2]) for far in (2.2, 3.4, 4.6, 6) for side in sides[2:]]  # with a line to the point

    def on(places, box, room=0):
        return sum(box[0] - room < a < box[2] + room and box[1] - room < b < box[3] + room for a, b in places)

    def cost(name, side):
        x, y = axes.transData.transform(named[name])
        width, height = 0.62 * size * len(name) * scale, 1.2 * size * scale
        left, low = (
            x + side[0] * scale - width * {"left": 0, "center": 0.5, "right": 1}[side[2]],
            y + side[1] * scale - height / 2,
        )
        box, line = (left, low, left + width, low + height), []
        if side in away:
            steps = [(x + (left + width / 2 - x) * k / 20, y + (low + height / 2 - y) * k / 20) for k in range(2, 20)]
            line = [place for place in steps if not on([place], box)]
        outside = box[0] < axes.bbox.x0 or box[2] > axes.bbox.x1 or box[1] < axes.bbox.y0 or box[3] > axes.bbox.y1
        total = 3 * outside + on(spots, box, 4) + 0.2 * sum(on(line, (a, b, a, b), 4) > 0 for a, b in spots)
        for _, other, others_line in placed.values():
            total += 3 * (box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3])
            total += 2 * (on(line, other) > 0) + 2 * (on(others_line, box) > 0)
        return total, (side, box, line)

    for name in 3 * list(named):
        placed.pop(name, None)
        placed[name] = min((cost(name, side) for side in sides + away), key=lambda each: each[0])[1]
    for name, ((dx, dy, align), _, line) in placed.items():
        arrow = {"arrowstyle": "-", "color": "0.6", "lw": 0.6, "shrinkA": 0, "shrinkB": 3} if line else None
        axes.annotate(name, named[name], textcoords="offset points", xytext=(dx, dy), ha=align, va="center", fontsize=size, arrowprops=arrow)


# ---- drawing ---------------------------------------------------------------------------------------------------------


def bars(values, title, label):
    """A horizontal bar for each name, from 1 on: to the right what is faster, to the left what is slower."""
    figure, axes = plt.subplots(figsize=(7, 0.9 + 0.2 * len(values)), layout="constrained")
    places = range(len(values), 0, -1)
    axes.barh(
        places,
        [value - 1 for value in values.values()],
        left=1,
        height=0.7,
        color=[BLUE if value >= 1 else ORANGE for value in values.values()],
    )
    for place, value in zip(places, values.values()):
        axes.annotate(
            f"{value:.2f}",
            (value, place),
            textcoords="offset points",
            xytext=(3, 0) if value >= 1 else (-3, 0),
            ha="left" if value >= 1 else "right",
            va="center",
            fontsize=8,
        )
    axes.axvline(1, color=BLACK, linewidth=0.8)
    axes.set_yticks(list(places), list(values), fontsize=9)
    axes.set_ylim(0.3, len(values) + 0.7)
    axes.set_xlim(min(0.8, min(values.values()) - 0.15), max(values.values()) + 0.2)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", linewidth=0.3)
    axes.set_xlabel(label)
    axes.set_title(title, fontsize=10)
    return figure


def profile(times, most=3.0):
    """For each solver of {solver: {matrix: time}} the share of matrices for which it takes at most x times the best one's time."""
    names = set.intersection(*(set(each) for each in times.values()))
    best = {name: min(each[name] for each in times.values()) for name in names}
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for solver, each in times.items():
        ratios = sorted(each[name] / best[name] for name in names)
        steps = [(ratio, 100 * (k + 1) / len(ratios)) for k, ratio in enumerate(ratios)] + [
            (most, 100 * sum(ratio <= most for ratio in ratios) / len(ratios))
        ]
        steps = [step for step in steps if step[0] <= most]
        color, line = style(solver, times)
        axes.step(*zip(*steps), where="post", color=color, linestyle=line, linewidth=2, label=solver)
    axes.set_xlim(1, most)
    axes.set_ylim(0, 101)
    axes.grid(linewidth=0.3)
    axes.set_xlabel("times the time of the fastest")
    axes.set_ylabel(f"percent of {len(names)} matrices")
    axes.legend(frameon=False, loc="lower right")
    return figure


def times_over_bytes(points, bandwidth, named=()):
    """Points {solver: {matrix: (bytes, microseconds)}} under the line of the bandwidth in GB/s."""
    figure, axes = plt.subplots(figsize=(7, 5), layout="constrained")
    for marker, (solver, each) in zip("o^sD", points.items()):
        axes.scatter(
            *zip(*each.values()),
            edgecolors=style(solver, points)[0],
            facecolors=style(solver, points)[0] if marker == "o" else "none",
            marker=marker,
            s=22,
            label=solver,
            zorder=3,
        )
    first = next(iter(points.values()))
    low, high = min(x for x, _ in first.values()) / 1.3, max(x for x, _ in first.values()) * 1.3
    axes.plot(
        [low, high],
        [low / bandwidth / 1e3, high / bandwidth / 1e3],
        color=BLACK,
        linewidth=1,
        label=f"read bandwidth, {bandwidth / 1e3:.2f} TB/s",
    )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(min(time for each in points.values() for _, time in each.values()) / 2)
    axes.grid(linewidth=0.3)
    axes.set_xlabel("bytes of the CSR arrays, x and y")
    axes.set_ylabel("time of a product, L2 flushed (µs)")
    axes.legend(frameon=False, loc="upper left")
    line = [(x, x / bandwidth / 1e3) for x in (low * (high / low) ** (k / 90) for k in range(91))]
    name_points(axes, {name: first[name] for name in named}, [point for each in points.values() for point in each.values()] + line)
    return figure


def roofline(kinds, rooms, peak, columns, named=()):
    """Measured products with dense matrices over the model's flops a byte: kinds are (label, color, marker, {matrix: (flops a byte,
    Gflop/s)}), rooms (label, color, GB/s)."""
    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    for label, color, marker, points in kinds:
        axes.scatter(*zip(*points.values()), color=color, marker=marker, label=label, zorder=3)
    for label, color, rate in rooms:
        axes.plot([0.1, peak / rate, 20], [0.1 * rate, peak, peak], color=color, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("flops a byte, as the model counts bytes")
    axes.set_ylabel(f"measured Gflop/s with {columns} columns")
    axes.legend(frameon=False)
    points = {name: point for _, _, _, each in kinds for name, point in each.items()}
    lines = [(x, min(rate * x, peak)) for _, _, rate in rooms for x in (0.1 * 1.06**step for step in range(91))]
    name_points(axes, {name: points[name] for name in named if name in points}, list(points.values()) + lines)
    return figure


# ---- what is drawn ---------------------------------------------------------------------------------------------------


def draw_speedups(ours, path, results=HERE / "results"):
    run = Run(results / f"{ours}-h200.tsv", ours)
    speedup = speedups(run, run)
    values = {
        f"{name}, {run.nnz[name] / 1e6:.1f} M" if run.nnz[name] >= LARGE else name: speedup[name]
        for name in run.matrices()
    }
    save(
        bars(
            values,
            f"{ours} on one H200, from {LARGE // 1000000} M nonzeros on with L2 flushed",
            "speedup over the best cuSPARSE",
        ),
        path,
    )


def draw_front(path):
    """Whole solves with gallop, and products with the type that it takes, over aijcusparse, for the first page: a row for each problem, with a bar for later solves and a point for the first one."""
    solves = {}
    for problem, _, which, theirs, ours in solve_rows():
        solves.setdefault(problem, {})[which] = theirs / ours
    products = {matrix + (f", {name}" if name != OURS else ""): {"later": run.time[matrix, "aijcusparse"] / run.time[matrix, name]} for matrix, (name, run, _) in fastest_types().items() if (matrix, "aijcusparse") in run.time}
    parts = {f"Whole solves with {CHOOSES}, {solves_of()[0]}": solves, f"Products with {OURS} or hbp, one {products_gpu()}": products}
    figure, axes = plt.subplots(2, 1, figsize=(8, 1.6 + 0.2 * sum(map(len, parts.values()))), sharex=True, height_ratios=[len(part) + 1 for part in parts.values()], layout="constrained")
    for axis, (title, part) in zip(axes, parts.items()):
        order = sorted(part, key=lambda name: (part[name].get("later", 0), part[name].get("first", 0)))
        for row, name in enumerate(order):
            later, first = (part[name].get(which) for which in ("later", "first"))
            if later:
                axis.barh(row, later - 1, left=1, color=BLUE if later >= 1 else ORANGE, height=0.7)
            if first:
                axis.plot(first, row, "o", color=SKY if first >= 1 else ORANGE, markeredgecolor=BLACK, markersize=5, zorder=3)
            text = ", ".join(f"{word}{value:.2f}" for word, value in (("", later), ("first ", first)) if value)
            axis.annotate(text, (max(later or 1, first or 1, 1), row), textcoords="offset points", xytext=(6, 0), va="center", fontsize=8)
        axis.set_yticks(range(len(order)), order, fontsize=9)
        axis.axvline(1, color=BLACK, lw=0.8)
        axis.set_xscale("log")
        axis.set_title(title, loc="left", fontsize=10, fontweight="bold")
        axis.tick_params(axis="y", length=0)
        axis.set_ylim(-0.6, len(order) - 0.4)
    axes[0].barh([], [], color=BLUE, label="later solves")
    axes[0].plot([], [], "o", color=SKY, markeredgecolor=BLACK, markersize=5, label="first solve, with the set-up of the preconditioner")
    axes[0].legend(loc="lower right", fontsize=8, frameon=False)
    most = max(max(each.values()) for part in parts.values() for each in part.values())
    axes[-1].set_xlim(0.85, most * 1.9)
    axes[-1].set_xticks([1, 2, 4, 8], ["1", "2", "4", "8"])
    axes[-1].minorticks_off()
    axes[-1].set_xlabel("times as fast as aijcusparse")
    save(figure, path)


def draw_profile(path):
    """A run's times are taken relative to cuSPARSE's in the same run, as the types were measured in several."""
    times = {"best cuSPARSE": {}}
    for ours, run in runs_of_types().items():
        times[ours] = {name: 1 / value for name, value in speedups(run, run).items()}
        times["best cuSPARSE"].update(dict.fromkeys(times[ours], 1.0))
    save(profile({name: times[name] for name in TYPES + ["best cuSPARSE"]}), path)


def draw_times(path, results=HERE / "results"):
    run, points = Run(results / f"{OURS}-h200.tsv"), {OURS: {}, "best cuSPARSE": {}}
    for fields in lines_of(results / f"{OURS}-h200.tsv"):
        name, rows, columns, nnz, cold = fields[0], *map(int, fields[1:4]), float(fields[8])
        if fields[4] != OURS and not fields[4].startswith(CUSPARSE):
            continue
        solver = OURS if fields[4] == OURS else "best cuSPARSE"
        before = points[solver].get(name, (0, math.inf))[1]
        points[solver][name] = (12 * nnz + 4 * (rows + 1) + 8 * (rows + columns), min(cold, before))
    named = ["web7M", "uniform8M_8", "star7_200", "kron18", "web1M", "star5_1500", "kkt_boyd1"]
    save(times_over_bytes(points, run.bandwidth, named), path)


def draw_roofline(path, run, model, columns=32):
    nnz, measured = dense_times(run)
    said = Path(model).read_text()
    memory, l2, peak = (
        float(re.search(rf"^# {what} ([\d.]+)", said, re.M).group(1))
        for what in ("memory GB/s", "L2 GB/s", "flops GF/s")
    )
    points = {"memory": {}, "l2": {}}
    for row in model_rows(model):
        name, kind = row["matrix"], "memory" if row["memory"] > 0 else "l2"
        if row["k"] == columns and (name, columns) in measured:
            flops = 2 * nnz[name] * columns
            points[kind][name] = (flops / row[kind], flops / measured[name, columns] / 1e3)
    kinds = [
        ("by bytes of memory", BLUE, "o", points["memory"]),
        ("by bytes of L2, which has all", ORANGE, "^", points["l2"]),
    ]
    rooms = [(f"memory, {memory / 1e3:.2f} TB/s", BLUE, memory), (f"L2, {l2 / 1e3:.1f} TB/s", ORANGE, l2)]
    named = [
        "uniform1M_16",
        "poisson7_100_c",
        "kron20",
        "web7M",
        "kron18",
        "tsopf_like",
        "highorder_60",
        "bcsstk29_pat",
        "bcsstk16",
        "kkt_boyd1",
        "memplus_pat",
        "dense4k",
    ]
    save(roofline(kinds, rooms, peak, columns, named), path)


def draw_papers(folder):
    """What papers.py measured, as report.py draws it."""
    from report import DRAWN

    for path, figure in pictures():
        save(DRAWN[figure["kind"]](figure), folder / path.name, mark_of(figure))


def main(args):
    if len(args) > 1 or args and args[0].startswith("-"):
        print(__doc__.strip())
        return 0 if args in (["-h"], ["--help"]) else 2
    folder = Path(args[0]) if args else HERE.parent / "docs"
    for ours in TYPES:
        draw_speedups(ours, (folder / "development" if ours == OURS else folder) / f"{ours}-speedup.svg")
    draw_front(folder / "speedup.svg")
    draw_profile(folder / "performance-profile.svg")
    draw_times(folder / "development" / "performance-bytes.svg")
    draw_roofline(
        folder / "development" / "tiledspmm-roofline.svg",
        HERE / "results" / "tiledspmm-h200.tsv",
        HERE / "results" / "tiledspmm-h200-model.tsv",
    )
    draw_papers(folder / "development")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
