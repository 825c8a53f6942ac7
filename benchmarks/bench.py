#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Run gallopbench once for each matrix, so that what fails costs only itself.

usage: bench.py --program PATH [--set quick|full] [--output FILE.tsv] [--json FILE.json] [--timeout SECONDS] [MATRIX ...] [-- OPTION ...]

MATRIX is the name of a generated matrix or a file (.mtx, .mtx.gz, .bin), timed after those of the set. What follows -- goes to
the program, before it -raw unless -setup or -first is given. What the program prints, one header for all, goes to FILE.tsv,
without --output to stdout; a summary is printed at the end. A case, a matrix with one type, that crashes or takes longer than --timeout (300) leaves a line "# FAILED matrix what k
reason" or "# TIMEOUT matrix what k reason", a wrong result one that begins with "# WRONG"; the program goes on behind it. Any of
them makes the exit status 1, and so does a run that timed nothing. FILE.json is one document: machine, driver, versions, commit, options, and the cases with a status:
ok, wrong, failed or timeout.
"""
import argparse
import contextlib
import json
import math
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from cases import summary
from terminal import Progress, clock

QUICK = ["star7_100", "box27_50", "elast27b3_24", "star5_1000", "band9506_79", "kron16", "web1M_3.1", "circuit500k_4_2_200k",
         "uniform1M_8", "longrows50k_.02_2700_9", "lp100k_300k_4"]
# named as in docs/development/performance.md
FULL = ["web7M=web7M_20_1.7_.8", "poisson7_256_c=star7_256_c", "kron20", "box27_140", "uniform8M_8", "star7_200", "kron19", "elast27b3_56",
        "kron18", "dense4k=dense4096", "uniform1M_16", "tsopf_like=longrows38120_.8_528_8", "highorder_60=star7_60_6", "star5_1500",
        "torso_like=longrows116158_.024_2700_9", "poisson7_100_c=star7_100_c", "lp_500k=lp300k_1M_4", "circuit1447k=circuit1447360_3.8",
        "circuit682k=circuit682k_5_8_390k", "web1M=web1M_3.1_1.6_.6", "band9506_158=band9506_79", "circuit116k=circuit116800_4_2_114k",
        "band9506_86=band9506_43"]
BEGINS, DONE = "# begins\t", "# done"  # what the program says between cases with -announce


def is_file(matrix):
    return bool(re.search(r"\.(mtx|mtx\.gz|bin)$", matrix))


def named(matrix):
    """The option by which a program takes it."""
    return ["-f" if is_file(matrix) else "-generate", matrix]


def label(matrix):
    return re.sub(r"\.(mtx|mtx\.gz|bin)$", "", Path(matrix).name) if is_file(matrix) else matrix.split("=")[0]


def check_labels(matrices):
    """Results are told apart by the labels of matrices."""
    labels = [label(matrix) for matrix in matrices]
    twice = sorted({each for each in labels if labels.count(each) > 1})
    if twice:
        sys.exit(f"bench.py: several matrices are called {', '.join(twice)}: rename files, and name generated ones by label=name")


def reason(code, errors):
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    said = [line for line in re.findall(r"PETSC ERROR: (.+)", errors) if not line.startswith(("---", "See "))]
    return f"exit status {code}: {': '.join(said[:2]) or (errors.strip().splitlines() + ['no message'])[0]}"


def start(command, timeout, each):
    """Hand each line of a program's output to a function as it comes. Its exit status, None where no line came for so long, and its errors."""
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
    except OSError as error:
        sys.exit(f"bench.py: {error}")
    lines, errors = queue.Queue(), []
    readers = [threading.Thread(target=lambda: [lines.put(line.rstrip("\n")) for line in process.stdout] and None),
               threading.Thread(target=lambda: errors.append(process.stderr.read()))]
    for reader in readers:
        reader.start()
    late = False
    while readers[0].is_alive() or not lines.empty():
        begin = time.monotonic()
        while True:
            try:
                each(lines.get(timeout=0.1))
                break
            except queue.Empty:
                if not readers[0].is_alive() and lines.empty():
                    break
                if time.monotonic() - begin > timeout:
                    late = True
                    process.kill()
                    break
        if late:
            break
    code = process.wait()
    for reader in readers:
        reader.join()
    return None if late else code, errors[0]


class Reader:
    """What the program prints of one matrix: header lines, lines of cases with what is said of them, and which case is going on."""

    def __init__(self, name, progress):
        self.name, self.progress = name, progress
        self.header, self.columns, self.entries, self.facts = [], None, [], {}
        self.running, self.last, self.done, self.heading = None, 0, False, True

    def starts(self):
        """The program is about to run, perhaps again: what it says of the machine is kept once."""
        self.running, self.done, self.heading = None, False, True

    def line(self, line):
        if line.startswith(BEGINS):
            number, name, what, k = line[len(BEGINS):].split("\t")
            self.running, self.last = (name, what, int(k)), int(number)
            self.progress(what + (f", {k} columns" if k != "1" else ""))
        elif line == DONE:
            self.running, self.done = None, True
        elif self.heading and line.startswith("#"):
            if not self.columns:
                self.header.append(line)
            if line.startswith("# matrix\t"):
                self.columns, self.heading = line[2:].split("\t"), False
        elif line.startswith("#"):
            fact = re.match(r"# (\S+) has rows of ([\d.]+) entries, variation (\S+), the longest (\d+)", line)
            if fact:
                self.facts = {"row_mean": float(fact.group(2)), "row_variation": float(fact.group(3)), "row_longest": int(fact.group(4))}
            if self.running or ("remark", line) not in self.entries:  # what precedes the cases comes again each time the program starts
                self.entries.append(("remark", line))
        elif self.columns and line.count("\t") == len(self.columns) - 1:
            self.entries.append(("case", line))
        elif line.strip():
            self.entries.append(("view", line))

    def wrong(self):
        return any(kind == "remark" and line.startswith("# WRONG") for kind, line in self.entries)

    def failed(self, status, why):
        """Notes that the case going on has failed. Whether the program can go on behind it."""
        name, what, k = self.running or (self.name, "", 0)
        self.entries.append(("failed", (name, what, k, status, why)))
        running, self.running = self.running, None
        return running is not None

    def text(self):
        """The lines for people and for tables: all that is no case is a comment."""
        for kind, entry in self.entries:
            if kind == "failed":
                name, what, k, status, why = entry
                yield f"# {status.upper()} {name} " + (f"{what} {k} " if what else "") + why
            elif kind == "view":
                yield f"# view {entry}"
            else:
                yield entry

    def cases(self):
        """The same as dictionaries. "# WRONG" follows the line of its case or, where results are checked before they are timed, precedes it."""
        found, early = [], []

        def told_of(case):
            return f"# WRONG {case['matrix']} {case.get('what', case.get('way'))}:"

        for kind, entry in self.entries:
            if kind == "case":
                case = {"status": "ok"}
                for column, text in zip(self.columns, entry.split("\t")):
                    case[column] = text if column in ("matrix", "what", "way") else value(text)  # a name may look like a number
                found.append({**case, **self.facts})
                mine = [remark for remark in early if remark.startswith(told_of(case))]
                if mine:
                    found[-1].update(status="wrong", remarks=mine)
                    early = [remark for remark in early if remark not in mine]
            elif kind == "remark" and entry.startswith("# WRONG") and not (found and entry.startswith(told_of(found[-1]))):
                early.append(entry)
            elif kind == "failed":
                name, what, k, status, why = entry
                found = [case for case in found if not (what and (case["matrix"], case["what"], case.get("k", k)) == (name, what, k))]
                found.append({"status": status, "matrix": name, "what": what or None, "k": k or None, "reason": why, **self.facts})
            elif found:
                if entry.startswith("# WRONG"):
                    found[-1]["status"] = "wrong"
                found[-1].setdefault("view" if kind == "view" else "remarks", []).append(entry.strip())
        return found + [{"status": "wrong", "matrix": self.name, "what": None, "reason": remark} for remark in early]


def value(text):
    """A number where it is one, None for what there is not."""
    if text == "-":
        return None
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else None


def measure(program, matrix, options, timeout, progress=lambda text: None, announce=True):
    """Time the cases of one matrix, each time behind the one that failed, if the program announces them. Returns its Reader."""
    reader, skip = Reader(label(matrix), progress), 0
    while True:
        reader.starts()
        own = (["-announce"] if announce else []) + (["-skip", str(skip)] if skip else [])
        code, errors = start([program] + named(matrix) + options + own, timeout, reader.line)
        if code == 0 or (code is not None and reader.wrong() and (reader.done or "results are wrong" in errors)):
            return reader  # after wrong results the exit status is not 0
        status, why = ("timeout", f"no end after {timeout:g} s") if code is None else ("failed", reason(code, errors))
        if not reader.failed(status, why):
            return reader
        skip = reader.last


def machine(header):
    """What the header lines tell, by name."""
    known, text = {}, "\n".join(header)
    for name, pattern in (("commit", r"^# Gallop commit (.+)"), ("petsc", r"^# PETSc (.+)"), ("machine", r"^# machine: (.+)"),
                          ("driver", r"^# driver (\S+?),"), ("cuda", r"^# driver .*CUDA ([\d.]+)"), ("cusparse", r"cuSPARSE ([\d.]+)"),
                          ("read_bandwidth_GBs", r"^# read bandwidth ([\d.]+)"),
                          ("types_options", r"^# options: (.+)")):
        found = re.search(pattern, text, re.M)
        known[name] = value(found.group(1)) if found and name == "read_bandwidth_GBs" else found.group(1).strip() if found else None
    stream = re.search(r"^# STREAM: copy ([\d.]+) GB/s, triad ([\d.]+)", text, re.M)
    if stream:
        known["stream_copy_GBs"], known["stream_triad_GBs"] = map(value, stream.groups())
    latencies = re.search(r"^# latencies: L1 (\d+), L2 (\d+), memory (\d+) cycles", text, re.M)
    if latencies:
        known["latencies"] = list(map(int, latencies.groups()))
    sizes = re.search(r"^# numbers of (\d+) bytes, indices of (\d+)", text, re.M)
    known["scalar_bytes"], known["index_bytes"] = map(int, sizes.groups()) if sizes else (8, 4)
    known["gpu"] = "# no GPU" not in text
    return known


def document(readers, options, seconds):
    header = next((reader.header for reader in readers if reader.columns), [])
    return {**machine(header), "date": time.strftime("%Y-%m-%d"), "seconds": round(seconds, 1), "options": options,
            "columns": next((reader.columns for reader in readers if reader.columns), []),
            "cases": [case for reader in readers for case in reader.cases()]}


def run(program, matrices, options, timeout=300, outputs=(), title="timing", save=lambda result: None):
    """Time all cases of all matrices, and print each one's lines to the outputs. The document that goes to JSON, saved after each matrix."""
    check_labels(matrices)
    readers, headed, begin = [], False, time.monotonic()
    with Progress(title, "matrices", len(matrices)) as progress:
        for matrix in matrices:
            def announce(case, name=label(matrix)):
                progress.detail = f"{name} {case}"

            announce("")
            reader = measure(program, matrix, options, timeout, announce)
            readers.append(reader)
            progress.done += 1
            for line in (reader.header if reader.columns and not headed else []) + list(reader.text()):
                for file in outputs:
                    progress.say(line, file)
            headed = headed or reader.columns is not None
            save(document(readers, options, time.monotonic() - begin))
    return document(readers, options, time.monotonic() - begin)


def main():
    arguments, options = sys.argv[1:], []
    if "--" in arguments:
        arguments, options = arguments[:arguments.index("--")], arguments[arguments.index("--") + 1:]
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("--program", required=True)
    parser.add_argument("--set", choices=["quick", "full"])
    parser.add_argument("--output")
    parser.add_argument("--json")
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("matrices", nargs="*")
    chosen = parser.parse_args(arguments)
    matrices = (chosen.matrices if not chosen.set else (QUICK if chosen.set == "quick" else FULL) + chosen.matrices) or QUICK
    options = ([] if {"-setup", "-first"} & set(options) else ["-raw"]) + options

    def save(result):
        if chosen.json:
            Path(chosen.json).write_text(json.dumps(result, indent=1) + "\n")

    def say(text):
        print(text, file=sys.stdout if chosen.output else sys.stderr, flush=True)

    kept = [name for name in (chosen.output, chosen.json) if name]
    say(f"Timing {len(matrices)} matrices, one after the other" + (f"; the numbers go to {' and '.join(kept)}" if kept else "")
        + ". The time left is told as if all matrices took equally long.")
    with open(chosen.output, "w") if chosen.output else contextlib.nullcontext(sys.stdout) as output:
        result = run(chosen.program, matrices, options, chosen.timeout, [output], save=save)
    bad = [case for case in result["cases"] if case["status"] != "ok"]
    say("\n".join(summary(result)))
    say(f"\n{len(result['cases']) - len(bad)} of {len(result['cases'])} cases of {len(matrices)} matrices timed in {clock(result['seconds'])}"
        + "".join(f"; {name}" for name in kept))
    if chosen.json and len(bad) < len(result["cases"]):
        say("Next:" + (f"\n  make report REPORT={chosen.json}    # pictures" if "-first" not in options else "")
            + "\n  make bench MATRICES=\"dir/*.mtx.gz\"    # your own matrices, too")
    return 1 if bad or not result["cases"] else 0


if __name__ == "__main__":
    sys.exit(main())
