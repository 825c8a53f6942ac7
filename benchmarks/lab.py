# SPDX-License-Identifier: BSD-2-Clause
"""Runs the benchmark's programs for papers.py and keeps what they say: cases, tables, and what figures show."""
import contextlib
import csv
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import bench
from cases import Cases, short
from terminal import Progress

# ---- running ---------------------------------------------------------------------------------------------------------


class TimeUp(Exception):
    """--minutes are over."""


class Lab:
    """Runs programs and keeps what they say, the tables and the figures."""

    def __init__(self, chosen, title):
        self.chosen, self.title, self.folder, self.quick = chosen, title, Path(chosen.output), chosen.quick
        self.folder.mkdir(parents=True, exist_ok=True)
        self.matrices, self.shown = chosen.matrices, None  # the line on progress
        self.end = time.monotonic() + 60 * chosen.minutes if chosen.minutes else math.inf
        bench.check_labels(self.matrices)
        self.tables, self.figures, self.missing, self.bad, self.complete = [], [], [], 0, False
        probe = bench.document([bench.measure(self.path("gallopbench"), "star5_8", ["-types", "aij", "-min_ms", "1"], chosen.timeout)], [], 0)
        if not probe["commit"]:
            sys.exit(f"papers.py: {self.path('gallopbench')} does not run: {probe['cases'][0]['reason'] if probe['cases'] else 'it prints nothing'}")
        self.machine = {name: value for name, value in probe.items() if name not in ("cases", "columns", "options", "seconds")}
        self.gpu = probe["gpu"]
        self.path_of_all = self.folder / f"{chosen.paper}.json"
        self.earlier = self.read_earlier(self.path_of_all) if chosen.resume else {}
        self.measurements = dict(self.earlier)  # until they are replaced
        self.gpus = int(os.environ.get("GALLOP_GPUS", "1")) if self.gpu else 0
        self.against = "best cuSPARSE" if self.gpu else "aij"
        self.short = ["-min_ms", "10"] if self.quick else []

    def read_earlier(self, path):
        """What a run before this one measured, by the same machine and versions, be it that of another commit."""
        if not path.exists():
            return {}
        document = json.loads(path.read_text())
        for name in ("machine", "driver", "cuda", "cusparse", "petsc", "scalar_bytes", "index_bytes", "types_options"):
            if document.get(name) != self.machine[name]:
                sys.exit(f"papers.py: --resume: {path} has another {name}: {document.get(name)}, not {self.machine[name]}")
        return {name: {"commit": document["commit"], **measured} for name, measured in document["measurements"].items()}

    def resumed(self, name, options, matrices):
        """The earlier run's measurement, but for matrices of which a case went wrong, and the matrices that are left."""
        before = self.earlier.get(name)
        if not before or before["options"] != options:
            return None, matrices
        bad = {case["matrix"] for case in before["cases"] if case["status"] != "ok"}
        known = {bench.label(matrix) for matrix in matrices if matrix in before.get("matrices", matrices)}
        cases = [case for case in before["cases"] if case["matrix"] in known - bad]
        left = [matrix for matrix in matrices if bench.label(matrix) not in {case["matrix"] for case in cases}]
        if cases:
            self.say(f"{name}: {len(cases)} cases are those of commit {before['commit']}")
        return ({**before, "cases": cases} if cases else None), left

    def merged(self, before, document, matrices):
        """Both measurements, matrices in their order. Lines of other columns are left out, they cannot stand in one table."""
        document = {**document, "matrices": list(matrices)}
        if not before or document["columns"] and before["columns"] != document["columns"]:
            return document
        names = list(map(bench.label, matrices))
        commits = [commit for each in (before, document) if each["cases"] and each["commit"] for commit in each["commit"].split(", ")]
        return {**document, "commit": ", ".join(dict.fromkeys(commits)), "seconds": before["seconds"] + document["seconds"], "columns": before["columns"],
                "cases": sorted(before["cases"] + document["cases"], key=lambda case: names.index(case["matrix"]))}

    def path(self, program):
        return str(Path(self.chosen.programs) / program)

    def progress(self, name, unit="", total=0):
        self.shown = Progress(f"{self.chosen.paper}, {name}", unit, total)
        return self.shown

    def steps(self, name, unit, items):
        """Gives the items, with progress while a loop works on them."""
        with self.progress(name, unit, len(items)) as progress:
            for item in items:
                yield item
                progress.done += 1

    def say(self, text):
        (self.shown.say if self.shown else print)(text)

    def lacks(self, what, why):
        self.missing.append({"what": what, "why": why})
        self.say(f"not measured: {what}: {why}")

    def note(self, name, document):
        """What goes to the paper's document, also while there are matrices left: nothing is lost where the run, or the machine, is stopped."""
        self.measurements[name] = {each: document[each] for each in ("options", "matrices", "columns", "cases", "seconds", "commit", "stream_copy_GBs", "stream_triad_GBs", "latencies") if each in document}
        self.write()

    def keep(self, name, document, lines, more=False):
        bad = [case for case in document["cases"] if case["status"] != "ok"]
        self.bad += len(bad)
        self.note(name, document)
        with open(self.folder / f"{self.chosen.paper}-{name}.lines", "a" if more else "w") as file:
            file.writelines(line + "\n" for line in lines)
        for case in bad:
            self.say(f"{case['status']}: {case['matrix']} {case['what'] or ''} {case.get('reason', '')}")
        for remark in (remark for case in document["cases"] for remark in case.get("remarks", [])
                       if remark.startswith("# LEFT OUT") or remark.endswith("products were the parent type's")):
            self.lacks(f"{name}: products of the type itself", remark.lstrip("# "))
        self.say(f"{name}: {len(document['cases']) - len(bad)} of {len(document['cases'])} cases in {document['seconds']:.0f} s")
        return Cases(document["cases"], self.gpu)

    def look_at_clock(self):
        """TimeUp ends the run where --minutes are over."""
        if time.monotonic() > self.end:
            raise TimeUp

    def note_one(self, name, document):
        """A matrix more, after which the run may end."""
        self.latest = document
        self.note(name, document)
        self.look_at_clock()

    def answers(self, name, title, options, matrices, ask, holds=lambda label, answer: True):
        """What ask(matrix) says of each, by label, and where it says nothing, nothing; an earlier run's answers by the same options are taken, if they still hold."""
        before = self.earlier.get(name, {})
        given = before.get("answers", {}) if before.get("options") == options else {}
        answers = {label: given[label] for label in map(bench.label, matrices) if label in given and holds(label, given[label])}
        commits = [commit for commit in (before["commit"] if answers else "", self.machine["commit"]) if commit]
        for matrix in self.steps(title, "matrices", [matrix for matrix in matrices if bench.label(matrix) not in answers]):
            answer = ask(matrix)
            if answer:
                answers[bench.label(matrix)] = answer
            self.measurements[name] = {"options": options, "commit": ", ".join(dict.fromkeys(commits)), "answers": answers}
            self.write()
            self.look_at_clock()
        return answers

    @contextlib.contextmanager
    def piece(self, name, lines, before, pool=None):
        """Keeps what note_one() was given, and what the programs said, where TimeUp ends a measurement; what waits in a pool is not begun."""
        try:
            yield
        except TimeUp:
            if pool:
                pool.shutdown(cancel_futures=True)
            self.keep(name, self.latest, lines(), bool(before))
            raise

    def bench(self, name, types, options=(), matrices=None, raw=True):
        """Time types by gallopbench."""

        class Lines(list):

            def write(self, text):
                self.extend(text.splitlines())

            def flush(self):
                pass

        lines = Lines()
        options = (["-raw"] if raw else []) + ["-types", ",".join(types)] + self.short + list(options)
        matrices = matrices or self.matrices
        before, left = self.resumed(name, options, matrices)
        with self.piece(name, lambda: lines, before):
            document = bench.run(self.path("gallopbench"), left, options, self.chosen.timeout, [lines], f"{self.chosen.paper}, {name}",
                                 lambda part: self.note_one(name, self.merged(before, part, matrices)))
        return self.keep(name, self.merged(before, document, matrices), lines, bool(before))

    def program(self, name, program, options=(), at_once=1):
        """Run another program once for each matrix."""
        begin, options = time.monotonic(), self.short + list(options)
        before, left = self.resumed(name, options, self.matrices)

        def measure(matrix):
            progress.detail = bench.label(matrix)
            return bench.measure(self.path(program), matrix, options, self.chosen.timeout, announce=False)

        def cases_of(readers):
            document = bench.document(readers, options, time.monotonic() - begin)
            document["cases"] = [case for case in document["cases"] if not case["matrix"].startswith("geometric mean")]
            for case in document["cases"]:
                case.setdefault("what", case.pop("way", None))
            return self.merged(before, document, self.matrices)

        readers = []

        def lines():
            return [line for reader in readers for line in list(reader.header) + list(reader.text())]

        with self.progress(name, "matrices", len(left)) as progress, ThreadPoolExecutor(at_once) as pool, self.piece(name, lines, before, pool):
            for reader in pool.map(measure, left):
                readers.append(reader)
                progress.done += 1
                self.note_one(name, cases_of(readers))
        return self.keep(name, cases_of(readers), lines(), bool(before))

    def views(self, name, types, options, view):
        """What a view tells of types, which takes cores and no clock: several matrices at once."""
        return self.program(name, "gallopbench", ["-types", ",".join(types), *options, "-min_ms", "1", "-view", view], min(4, len(os.sched_getaffinity(0))))

    def table(self, name, title, columns, rows, note=""):
        self.tables.append({"id": name, "title": title, "columns": columns, "rows": rows, "note": note})
        text = ["\t".join(columns)] + ["\t".join(map(short, row)) for row in rows]
        (self.folder / f"{self.chosen.paper}-{name}.tsv").write_text("\n".join(text) + "\n")
        self.say(f"\n{title}\n" + "\n".join(text) + (f"\n{note}" if note else "") + "\n")

    def figure(self, name, title, kind, series, **more):
        """series: names and what is drawn, categories and values of bars, or x and y of points."""
        self.figures.append({"id": name, "title": title, "kind": kind, "series": series, **more})

    def bars(self, name, title, matrices, series, **more):
        """Bars by matrix, for {name: {matrix: value}}; no bar where there is no value."""
        shown = [matrix for matrix in matrices if any(each.get(matrix) is not None for each in series.values())]
        if shown:
            self.figure(name, title, "bars", [{"name": each, "y": [values.get(matrix) for matrix in shown]} for each, values in series.items()],
                        x=shown, **more)
        else:
            self.lacks(title, "no case went well")

    def points(self, name, title, series, kind="points", **more):
        """Points, for {name: {matrix: (x, y)}}."""
        clean = {each: {matrix: point for matrix, point in points.items() if None not in point} for each, points in series.items()}
        clean = {each: points for each, points in clean.items() if points}
        if clean:
            self.figure(
                name, title, kind,
                [{"name": each, "names": list(points), "x": [point[0] for point in points.values()], "y": [point[1] for point in points.values()]}
                 for each, points in clean.items()], **more)
        else:
            self.lacks(title, "no case went well")

    def write(self):
        """All of it in one document."""
        commits = [commit for each in self.measurements.values() for commit in (each["commit"] or "").split(", ") if commit]
        document = {"paper": self.chosen.paper, "title": self.title, "quick": self.quick, "complete": self.complete, "against": self.against, **self.machine}
        document.update(commit=", ".join(dict.fromkeys(commits or [self.machine["commit"]])), tables=self.tables, figures=self.figures, missing=self.missing,
                        measurements=self.measurements)
        part = self.path_of_all.with_suffix(".part")
        part.write_text(json.dumps(document, indent=1) + "\n")
        part.replace(self.path_of_all)


def ratio(cases, what, other):
    return {
        matrix: cases.time(matrix, other) / cases.time(matrix, what) for matrix in cases.order
        if cases.time(matrix, what) and cases.time(matrix, other)
    }


GRACE = 5  # seconds to end in


def finish(command, timeout):
    """Run a command, with what it prints in one text. Too late, it is killed with all that it started, which would disturb what comes next: mpiexec ends its processes, which are in groups of their own."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          start_new_session=True) as process:
        try:
            output = process.communicate(timeout=timeout)[0]
        except BaseException:
            os.killpg(process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=GRACE)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, process.returncode, output)


def events(log):
    """The time of an event by its name, the most of all ranks, from -log_view's CSV."""
    found = {}
    with open(log, newline="") as file:
        for row in csv.reader(file):
            if len(row) > 4 and row[2].isdigit() and row[1] != "summary":
                ranks = found.setdefault(row[1], {})
                ranks[row[2]] = ranks.get(row[2], 0.0) + float(row[4])  # summed over stages
    return lambda name: max(found.get(name, {"0": 0.0}).values())
