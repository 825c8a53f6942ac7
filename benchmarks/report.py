#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Draw what bench.py and papers.py measured, and put pictures and tables into one HTML file that needs no other.

usage: report.py FILE.json ... [--output FOLDER]

FOLDER (report) gets a PNG for each picture, and report.html with all of them inside. Of bench.py's products, one document with -k or
several, there are speedups, a performance profile and a roofline, of its -setup the set-up against a product; of papers.py's the
figures of the papers. Needs matplotlib: `config/docs --python` prints the path of a Python that has it.
"""
import argparse
import base64
import html
import io
import json
import math
import sys
from pathlib import Path

sys.dont_write_bytecode = True
from matplotlib.ticker import LogLocator, NullFormatter
from cases import LARGE, is_baseline, product_us
from cases import short as cell
from plots import BLACK, CYCLE, MARKERS, bars, name_points, plt, profile, save, style

MOST_BARS = 45  # of one picture
PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 15px/1.45 sans-serif; max-width: 62em; margin: 2em auto; padding: 0 1em; color: #222; }}
table {{ border-collapse: collapse; font-size: 13px; margin: 1em 0; display: block; overflow-x: auto; }}
td, th {{ border-bottom: 1px solid #ccc; padding: 2px 8px; text-align: right; white-space: nowrap; }}
td:first-child, th:first-child {{ text-align: left; }}
img {{ max-width: 100%; }} figure {{ margin: 1.5em 0; }} figcaption, .note {{ color: #555; font-size: 13px; }}
</style></head><body>
{body}
</body></html>
"""


# ---- pictures of what a document calls figures ---------------------------------------------------------------------------

def colors(number):
    return [CYCLE[k % len(CYCLE)][0] for k in range(number)]


def legend(axes):
    """Above the axes, where it covers nothing; as many names in a row as there is room for."""
    names = axes.get_legend_handles_labels()[1]
    if len(names) > 1:
        columns = max(1, min(len(names), int(90 / (max(map(len, names)) + 8))))
        axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, fontsize=9, borderaxespad=0.2)


def short(value):
    return f"{value / 1e6:g} M" if value >= 1e6 else f"{value / 1e3:g} k" if value >= 1e4 else f"{value:g}"


def log_scale(axes, which):
    """With numbers that can be read at enough places, however few decades there are. To be called when all is drawn."""
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    axis, (low, high) = (axes.xaxis, axes.get_xlim()) if which == "x" else (axes.yaxis, axes.get_ylim())
    decades = math.log10(high / low)
    if decades < 2.5:
        many, some, few = (1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 4, 5, 7), (1, 2, 5), (1, 3)
        axis.set_major_locator(LogLocator(subs=many if decades < 0.5 else some if decades < 1.7 else few))
        axis.set_major_formatter(lambda value, place: short(value))
        axis.set_minor_formatter(NullFormatter())


def scales(axes, figure, x="logx", y="logy"):
    for which, key in (("x", x), ("y", y)):
        if figure.get(key):
            log_scale(axes, which)


def canvas(width, height):
    """Room around what is drawn, so that nothing ends at the edge."""
    picture, axes = plt.subplots(figsize=(width, height), layout="constrained")
    picture.get_layout_engine().set(w_pad=0.1, h_pad=0.1)
    return picture, axes


def draw_bars(figure):
    """Horizontal bars, so that names can be read: several for each matrix, or one of several parts. Marks on a scale that has no 0."""
    names, series, stacked = figure["x"], figure["series"], figure.get("stacked")
    thick = 0.8 if stacked else 0.8 / len(series)
    picture, axes = canvas(7.5, 1.2 + len(names) * max(0.22, 0.13 * (1 if stacked else len(series))))
    left = [0.0] * len(names)
    for k, (each, color) in enumerate(zip(series, colors(len(series)))):
        values = [value or 0.0 for value in each["y"]]
        places = [-place if stacked or figure.get("logy") else -place + 0.4 - thick * (k + 0.5) for place in range(len(names))]
        if figure.get("logy"):
            shown = [(value, place) for value, place in zip(values, places) if value > 0]
            if shown:
                axes.scatter(*zip(*shown), color=color, marker=MARKERS[k % len(MARKERS)], s=24, label=each["name"], zorder=3)
        else:
            axes.barh(places, values, left=left if stacked else None, height=thick * 0.94, color=color, label=each["name"])
        if stacked:
            left = [before + value for before, value in zip(left, values)]
    if figure.get("line") is not None:
        axes.axvline(figure["line"], color=BLACK, linewidth=0.8)
    axes.set_yticks([-place for place in range(len(names))], names, fontsize=9)
    axes.set_ylim(-len(names) + 0.4, 0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", linewidth=0.3)
    scales(axes, figure, x="logy", y="")
    axes.set_xlabel(figure.get("ylabel", ""))
    legend(axes)
    return picture


def draw_points(figure):
    picture, axes = canvas(7.5, 4.8)
    series = figure["series"]
    if figure.get("over_best"):  # times over the least at the same place
        best = [min(values) for values in zip(*(each["y"] for each in series))]
        series = [{**each, "y": [value / least for value, least in zip(each["y"], best)]} for each in series]
    for k, each in enumerate(series):
        (color, line), marker = CYCLE[k % len(CYCLE)], MARKERS[k % len(MARKERS)]
        if figure["kind"] == "lines":
            axes.plot(each["x"], each["y"], color=color, linestyle=line, marker=marker, markersize=5, label=each["name"])
        else:
            inside = color if k == 0 else "none"
            axes.scatter(each["x"], each["y"], edgecolors=color, facecolors=inside, marker=marker, s=26, label=each["name"], zorder=3)
    if figure.get("line") is not None:
        axes.axhline(figure["line"], color=BLACK, linewidth=0.8)
    axes.margins(0.08)
    if figure.get("over_best"):
        axes.set_ylim(0.99, figure["over_best"])
    if figure["kind"] == "roofline":
        roofline(axes, [(roof["name"], roof["rate"]) for roof in figure["roofs"]])
    scales(axes, figure)
    axes.grid(linewidth=0.3)
    axes.set_xlabel(figure.get("xlabel", ""))
    axes.set_ylabel(figure.get("ylabel", ""))
    legend(axes)
    names = {name: point for each in series[:1] if figure["kind"] != "lines" for name, *point in zip(each["names"], each["x"], each["y"])}
    if len(names) <= 24:
        taken = [point for each in series for point in zip(each["x"], each["y"])]
        if figure.get("line") is not None:  # names should not lie on it, as on no point
            (left, _), (right, _) = axes.transAxes.transform(((0, 0), (1, 0)))
            height = axes.transData.transform((taken[0][0], figure["line"]))[1]
            taken += [tuple(point) for point in axes.transData.inverted().transform([(left + k * (right - left) / 99, height) for k in range(100)])]
        name_points(axes, {name: tuple(point) for name, point in names.items()}, taken)
    return picture


def roofline(axes, roofs):
    """Lines of GB/s over flops a byte, for axes on which all else is drawn."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    low, high = axes.get_xlim()
    for name, rate in roofs:
        axes.plot([low, high], [low * rate, high * rate], color=BLACK, linewidth=1, label=name)
    axes.set_xlim(low, high)
    log_scale(axes, "x")
    log_scale(axes, "y")


def draw_ranks(figure):
    """Matrices side by side in an order, measured points under curves of bounds."""
    names, series = figure["x"], figure["series"]
    picture, axes = canvas(7.5, 4.8)
    for k, (each, color) in enumerate(zip(series, colors(len(series)))):
        shown = [(place, value) for place, value in enumerate(each["y"]) if value]
        if not shown:
            continue
        if each.get("curve"):
            axes.plot(*zip(*shown), color=color, linestyle=CYCLE[k % len(CYCLE)][1], label=each["name"])
        else:
            axes.scatter(*zip(*shown), color=color, marker=MARKERS[k % len(MARKERS)], s=26, label=each["name"], zorder=3)
    axes.set_xticks(range(len(names)), names, rotation=60, ha="right", rotation_mode="anchor", fontsize=8)
    scales(axes, figure)
    axes.grid(axis="y", linewidth=0.3)
    axes.set_ylabel(figure.get("ylabel", ""))
    legend(axes)
    return picture


DRAWN = {"bars": draw_bars, "points": draw_points, "lines": draw_points, "roofline": draw_points, "ranks": draw_ranks}


# ---- pictures of bench.py's documents ------------------------------------------------------------------------------------

def good(document):
    return [case for case in document["cases"] if case["status"] == "ok"]


def times_of(document):
    """Times by what is compared, and by matrix, for each number of columns: the fastest of cuSPARSE's ways, or aij, is one of them."""
    found = {}
    for case in good(document):
        if not case["what"].startswith("rowmajor_"):
            name = baseline_of(document) if is_baseline(case["what"], document["gpu"]) else case["what"]
            times = found.setdefault(case["k"], {}).setdefault(name, {})
            times[case["matrix"]] = min(product_us(case), times.get(case["matrix"], math.inf))
    return found


def baseline_of(document):
    return "best cuSPARSE" if document["gpu"] else "aij"


def columns_of(k):
    return "" if k == 1 else f", {k} columns"


def product_pictures(document, prefix):
    baseline, nnz = baseline_of(document), {case["matrix"]: case["nnz"] for case in good(document)}
    flushed = f"from {LARGE // 1000000} M nonzeros on with {'L2' if document['gpu'] else 'caches'} flushed"
    for k, times in times_of(document).items():
        for what, mine in times.items():
            common = sorted((name for name in mine if name in times.get(baseline, {})), key=lambda name: -nnz[name])[:MOST_BARS]
            if what != baseline and common:
                values = {f"{name}, {nnz[name] / 1e6:.1f} M" if nnz[name] >= LARGE else name: times[baseline][name] / mine[name] for name in common}
                picture = bars(values, f"{what}{columns_of(k)}, {flushed}", f"speedup over {baseline}")
                yield f"{prefix}-speedup-{what}-{k}", f"Speedup of {what}{columns_of(k)}", picture
        complete = set.intersection(*(set(each) for each in times.values())) if times else set()
        if len(times) > 1 and len(complete) > 1:
            yield f"{prefix}-profile-{k}", f"Performance profile{columns_of(k)}", profile(times)
        yield f"{prefix}-roofline-{k}", f"Roofline{columns_of(k)}", roofline_of(document, k)


def scatter_types(axes, series):
    """Points (x, y) of types, for {type: [point]}."""
    for place, (what, points) in enumerate(series.items()):
        marker, color = MARKERS[place % len(MARKERS)], style(what, series)[0]
        axes.scatter(*zip(*points), edgecolors=color, facecolors="none", marker=marker, s=26, label=what, zorder=3)


def roofline_of(document, k):
    """Rates over the flops a byte of the CSR arrays and the vectors, each moved once: what reads more than that is below the roof by itself."""
    series, scalar, index = {}, document.get("scalar_bytes", 8), document.get("index_bytes", 4)
    for case in good(document):
        if case["k"] == k and not case["what"].startswith(("rowmajor_", "raw_")) and case["cold_us"] > 0:
            bytes_ = (scalar + index) * case["nnz"] + index * (case["m"] + 1) + scalar * k * (case["m"] + case["n"])
            series.setdefault(case["what"], []).append((2 * k * case["nnz"] / bytes_, 2e-3 * k * case["nnz"] / case["cold_us"]))
    rate = document["read_bandwidth_GBs"]
    picture, axes = canvas(7.5, 5)
    scatter_types(axes, series)
    roofline(axes, [(f"read bandwidth, {rate} GB/s", rate)])
    axes.grid(linewidth=0.3)
    axes.set_xlabel("flops a byte of the CSR arrays, x and y")
    axes.set_ylabel("Gflop/s, caches flushed")
    legend(axes)
    return picture


def setup_pictures(document, prefix):
    """Builds over products, with lines of 1, 10 and 100 products."""
    series = {}
    for case in good(document):
        if case["build_us"] and case["build_us"] > 0:
            series.setdefault(case["what"], []).append((case["product_us"], case["build_us"]))
    if not series:
        return
    picture, axes = canvas(7.5, 5)
    scatter_types(axes, series)
    axes.set_xscale("log")
    axes.set_yscale("log")
    (low, high), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    for products in (1, 10, 100):
        axes.plot([low, high], [low * products, high * products], color=BLACK, linewidth=0.7)
        x = min(high, top / products) / 1.1
        if bottom < x * products < top:
            text = f"{products} product{'s' if products > 1 else ''}"
            axes.annotate(text, (x, x * products), textcoords="offset points", xytext=(-2, 4), fontsize=8, ha="right")
    axes.set_xlim(low, high)
    axes.set_ylim(bottom, top)
    log_scale(axes, "x")
    log_scale(axes, "y")
    axes.grid(linewidth=0.3)
    axes.set_xlabel("time of a product (µs)")
    axes.set_ylabel("time to build the format (µs)")
    legend(axes)
    yield f"{prefix}-setup", "Set-up against product", picture


# ---- the page ------------------------------------------------------------------------------------------------------------

def table(columns, rows):
    head = "".join(f"<th>{html.escape(str(column))}</th>" for column in columns)
    body = "\n".join("<tr>" + "".join(f"<td>{html.escape(cell(value, '–'))}</td>" for value in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>"


def machine_table(document):
    named = [("machine", "machine"), ("driver", "driver"), ("CUDA", "cuda"), ("cuSPARSE", "cusparse"), ("PETSc", "petsc"),
             ("Gallop commit", "commit"), ("date", "date"), ("read bandwidth (GB/s)", "read_bandwidth_GBs"),
             ("bytes of a number", "scalar_bytes"), ("bytes of an index", "index_bytes")]
    rows = [(title, document[name]) for title, name in named if document.get(name) is not None]
    return table(("", ""), rows).replace("<thead><tr><th></th><th></th></tr></thead>", "")


class Page:
    def __init__(self, folder):
        self.folder, self.parts, self.names = folder, [], set()

    def add(self, *parts):
        self.parts += parts

    def picture(self, name, title, figure):
        given, number = name, 2
        while name in self.names:  # a run of the same name, of another build or another set
            name, number = f"{given}-{number}", number + 1
        self.names.add(name)
        buffer = io.BytesIO()
        figure.savefig(buffer, dpi=120, format="png")
        save(figure, self.folder / f"{name}.png")
        text = base64.b64encode(buffer.getvalue()).decode()
        self.add(f'<figure><img alt="{html.escape(title)}" src="data:image/png;base64,{text}"><figcaption>{html.escape(title)}</figcaption></figure>')

    def bad_cases(self, cases):
        bad = [case for case in cases if case["status"] != "ok"]
        if bad:
            self.add("<h3>Cases that failed or gave wrong results</h3>", table(("matrix", "type", "status", "reason"), [
                (case["matrix"], case.get("what"), case["status"], case.get("reason") or ", ".join(case.get("remarks", []))) for case in bad]))

    def paper(self, document):
        self.add(f"<h2>{html.escape(document['title'])}</h2>", machine_table(document))
        if document["quick"]:
            self.add('<p class="note">A quick look: few and small matrices.</p>')
        for each in document["tables"]:
            note = f'<p class="note">{html.escape(each["note"])}</p>' if each["note"] else ""
            self.add(f"<h3>{html.escape(each['title'])}</h3>", table(each["columns"], each["rows"]), note)
        for each in document["figures"]:
            self.picture(f"{document['paper']}-{each['id']}", each["title"], DRAWN[each["kind"]](each))
        if document["missing"]:
            lines = [f"<li>{html.escape(each['what'])}: {html.escape(each['why'])}</li>" for each in document["missing"]]
            self.add("<h3>Not measured here</h3>", "<ul>", *lines, "</ul>")
        self.bad_cases([case for each in document.get("measurements", {}).values() for case in each["cases"]])

    def bench(self, document, prefix):
        self.add(f"<h2>{'Set-up' if '-setup' in document['options'] else 'Products'}: {html.escape(prefix)}</h2>", machine_table(document))
        if not document["gpu"]:
            self.add('<p class="note">No GPU: products on one core of the host.</p>')
        columns = document["columns"]
        pictures = setup_pictures if "build_us" in columns else product_pictures if "cold_us" in columns else lambda *unused: ()
        for name, title, figure in pictures(document, prefix):
            self.picture(name, title, figure)
        if columns:
            self.add("<h3>All cases</h3>", table(columns, [[case.get(column) for column in columns] for case in good(document)]))
        self.bad_cases(document["cases"])

    def write(self, title):
        path = self.folder / "report.html"
        path.write_text(PAGE.format(title=html.escape(title), body=f"<h1>{html.escape(title)}</h1>\n" + "\n".join(self.parts)))
        return path


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--output", default="report")
    chosen = parser.parse_args()
    folder = Path(chosen.output)
    folder.mkdir(parents=True, exist_ok=True)
    page = Page(folder)
    for name in chosen.files:
        document = json.loads(Path(name).read_text())
        if "paper" in document:
            page.paper(document)
        else:
            page.bench(document, Path(name).stem)
    path = page.write("Gallop's benchmarks")
    print(f"{sum(part.startswith('<figure>') for part in page.parts)} pictures: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
