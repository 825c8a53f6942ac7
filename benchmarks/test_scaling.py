#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Test scaling.py by a program that prints lines as the real one does, with made-up numbers, and what table.py makes of its file. Needs no GPU and no PETSc; test_bench.py runs it."""
import contextlib
import io
import os
import re
import sys
import unittest
from pathlib import Path
from unittest import mock

import petscexamples
import scaling
from fakes import FakesTest

sys.path.insert(0, str(Path(scaling.__file__).resolve().parent / "results"))
import table

# Starts a program and tells it how many processes it is
FAKE_START = f"""#!{sys.executable} -SE
import os, sys
os.environ["FAKE_PROCESSES"] = sys.argv[2]
os.execv(sys.argv[3], sys.argv[3:])
"""

# On one process a product takes 8 ms, one with 32 columns 80 and an iteration 10; evchyb takes half of it, its own solver a quarter. PetscSF takes a quarter more, and 3 KB per process.
# What goes wrong says the option -ksp_type
FAKE_SCALING = f"""#!{sys.executable} -SE
import os, sys, time
words, processes = sys.argv[1:], int(os.environ["FAKE_PROCESSES"])
def option(name, default=""): return words[words.index(name) + 1] if name in words else default
way, weak, wrong = option("-mat_gallop_exchange"), "-weak" in words, option("-ksp_type")
by_sf = way == "sf" and processes > 1
if wrong == "hang":
    time.sleep(60)
def later(name, what):
    alone = 1000 if "+" in what else 80 if what == "MatMatMult" else 8
    return alone / (1 if weak else processes) / (2 if name == "evchyb" else 1) / (2 if what.startswith("gallop") else 1) * (1.25 if by_sf else 1)
print("# type\\tprocesses\\tunknowns\\twhat\\tfirst_ms\\tlater_ms\\titerations\\thost_KB\\tway\\na warning", flush=True)
for name in option("-types").split(","):
    went = "-" if name != "evchyb" or processes == 1 else "sf" if wrong == "other" and way == "nccl" else way
    for what in ["MatMult"] + ["MatMatMult"] * (option("-columns") != "0") + option("-solvers").split(","):
        if wrong == "error" and way == "ipc" and processes == 2 and not weak and "+" in what:
            sys.exit("[0]PETSC ERROR: --- Error Message ---\\n[0]PETSC ERROR: Out of memory")
        if name == "evchyb" or not what.startswith("gallop"):
            print(name, processes, int(option("-grid")) ** 3 * (processes if weak else 1), what, 2 * later(name, what), later(name, what), 100 if "+" in what else 0, 3 * processes * by_sf, went,
                  sep="\\t", flush=True)
"""


class ScalingTest(FakesTest):

    def setUp(self):
        super().setUp()
        self.output = self.folder / "scaling.tsv"
        for name, text in (("scaling", FAKE_SCALING), ("mpiexec", FAKE_START)):
            self.fake(name, text)

    def scaling(self, *words, gpus="4", mpiexec="mpiexec"):
        """Exit status, and rows of the file as {column: text}; its head and what is printed are kept."""
        command = ["scaling.py", "--program", str(self.folder / "scaling"), "--mpiexec", str(self.folder / mpiexec), "--output", str(self.output), "--about", "PETSc 3.26.1, Gallop abc123", *words]
        card = mock.Mock()
        card.name = "NVIDIA H100 80GB HBM3"
        with mock.patch.object(sys, "argv", command), contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()), \
                mock.patch.object(petscexamples, "Memory", lambda: card), mock.patch.dict(os.environ, {"GALLOP_GPUS": gpus}):
            status = scaling.main()
        self.said = out.getvalue()
        lines = self.output.read_text().splitlines() if self.output.exists() else []
        self.head = [line for line in lines if line.startswith("#")]
        return status, [dict(zip(self.head[-1][2:].split("\t"), line.split("\t"))) for line in lines if not line.startswith("#")]

    def numbers(self, *case):
        """Of a row of the table: times, speedups, efficiencies and KB."""
        return next(line.split()[4:] for line in self.said.splitlines() if tuple(line.split()[:4]) == case)

    def runs(self, rows):
        return list(dict.fromkeys((row["scaling"], int(row["processes"]), row["asked"]) for row in rows))

    def test_file(self):
        status, rows = self.scaling()
        self.assertEqual(status, 0)
        self.assertEqual(self.head[0], "# Products and solves on GPUs of type NVIDIA H100 80GB HBM3, 100^3 points: PETSc 3.26.1, Gallop abc123")
        several = [(kind, ranks, way) for kind in ("strong", "weak") for ranks in (2, 4) for way in ("sf", "ipc", "nccl")]
        self.assertEqual(self.runs(rows), [("strong", 1, "sf"), *several])
        self.assertEqual(rows[0], {"scaling": "strong", "asked": "sf", "type": "aijcusparse", "processes": "1", "unknowns": "1000000", "what": "MatMult", "first_ms": "16.0", "later_ms": "8.0",
                                   "iterations": "0", "host_KB": "0", "way": "-"})
        self.assertEqual(rows[-1], {"scaling": "weak", "asked": "nccl", "type": "evchyb", "processes": "4", "unknowns": "4000000", "what": "cg+jacobi", "first_ms": "1000.0", "later_ms": "500.0",
                                    "iterations": "100", "host_KB": "0", "way": "nccl"})
        whats = {(row["scaling"], row["asked"], row["type"]): set() for row in rows}
        for row in rows:
            whats[row["scaling"], row["asked"], row["type"]].add(row["what"])
        products, solved = {"MatMult", "MatMatMult"}, {"cg+jacobi", "gallopcg+jacobi"}
        self.assertEqual(whats, {("strong", "sf", "aijcusparse"): products | {"cg+jacobi", "cg+gamg"}, ("weak", "sf", "aijcusparse"): products | {"cg+jacobi"},
                                 **{("strong", way, "evchyb"): products | solved | {"cg+gamg"} for way in ("sf", "ipc")}, **{("weak", way, "evchyb"): products | solved for way in ("sf", "ipc")},
                                 **{(kind, "nccl", "evchyb"): products | {"cg+jacobi"} for kind in ("strong", "weak")}})

    def test_file_is_read_as_it_was_written(self):
        _, rows = self.scaling()
        head, results = scaling.read(self.output)
        self.assertEqual(f"# {head}", self.head[0])
        self.assertEqual(list(results), self.runs(rows))
        again = self.folder / "again.tsv"
        scaling.write(again, results, head)
        self.assertEqual(again.read_text(), self.output.read_text())

    def test_table(self):
        self.scaling()
        head = next(line for line in self.said.splitlines() if line.startswith("scaling "))
        self.assertEqual(re.split("  +", head), ["scaling", "what", "type", "way", *(f"ms on {ranks}" for ranks in (1, 2, 4)), *(f"speedup on {ranks}" for ranks in (1, 2, 4)),
                                                 "efficiency on 2", "efficiency on 4", "host KB"])
        self.assertEqual(self.numbers("strong", "MatMult", "aijcusparse", "sf"), "8 5 2.5 1.00 1.00 1.00 0.80 0.80 12".split())
        self.assertEqual(self.numbers("strong", "MatMult", "evchyb", "sf"), "4 2.5 1.25 2.00 2.00 2.00 0.80 0.80 12".split())
        self.assertEqual(self.numbers("strong", "MatMult", "evchyb", "ipc"), "4 2 1 2.00 2.50 2.50 1.00 1.00 0".split())
        self.assertEqual(self.numbers("strong", "gallopcg+jacobi", "evchyb", "ipc"), "2.5 1.25 0.625 4.00 5.00 5.00 1.00 1.00 0".split())  # over PETSc's CG, an iteration each
        self.assertEqual(self.numbers("weak", "MatMult", "evchyb", "sf"), "4 5 5 2.00 2.00 2.00 0.80 0.80 12".split())
        self.assertEqual(self.numbers("weak", "cg+jacobi", "evchyb", "nccl"), "5 5 5 2.00 2.50 2.50 1.00 1.00 0".split())
        self.assertIn(f"All columns: {self.output}", self.said)
        cases = [line.split()[:4] for line in self.said.splitlines() if line.startswith(("strong", "weak"))]
        self.assertEqual(cases[:4], [["strong", "MatMult", *of] for of in (("aijcusparse", "sf"), ("evchyb", "sf"), ("evchyb", "ipc"), ("evchyb", "nccl"))])
        self.assertEqual(len(set(map(tuple, cases))), len(cases))

    def test_without_one_process(self):
        status, rows = self.scaling("--ranks", "4,2")
        self.assertEqual((status, {row["processes"] for row in rows}), (0, {"2", "4"}))
        self.assertEqual(self.numbers("strong", "MatMult", "evchyb", "ipc"), "2 1 2.50 2.50 - - 0".split())

    def test_size_and_options(self):
        commands = []
        finish = petscexamples.finish
        with mock.patch.object(petscexamples, "finish", side_effect=lambda words, timeout: commands.append(words) or finish(words, timeout)):
            _, rows = self.scaling("--set", "full", "--ranks", "2", "--", "-iterations", "50")
        self.assertEqual({(row["scaling"], row["unknowns"]) for row in rows}, {("strong", "8000000"), ("weak", "16000000")})
        self.assertEqual([words[-2:] for words in commands], [["-iterations", "50"]] * 6)

    def test_failure(self):
        status, rows = self.scaling("--", "-ksp_type", "error")
        self.assertEqual(status, 1)
        self.assertIn("# FAILED strong, 2 processes, ipc: exit status 1: Out of memory\n", self.said)
        self.assertEqual(self.said.count("# FAILED"), 1)
        self.assertEqual([row["what"] for row in rows if (row["scaling"], row["processes"], row["asked"]) == ("strong", "2", "ipc")], ["MatMult", "MatMatMult"])
        self.assertEqual(self.numbers("strong", "cg+jacobi", "evchyb", "ipc"), "5 - 1.25 2.00 - 2.50 - 1.00 0".split())
        self.assertEqual(len(self.runs(rows)), 13)

    def test_ghost_values_by_another_way(self):
        status, rows = self.scaling("--ranks", "1,2", "--", "-ksp_type", "other")
        self.assertEqual(status, 1)
        for kind in ("strong", "weak"):
            self.assertIn(f"# FAILED {kind}, 2 processes, nccl: ghost values went by sf\n", self.said)
        self.assertEqual(self.said.count("# FAILED"), 2)
        self.assertEqual({row["asked"] for row in rows}, {"sf", "ipc"})

    def test_more_processes_than_gpus(self):
        status, rows = self.scaling("--ranks", "1,2,4,8", gpus="2")
        self.assertEqual((status, {row["processes"] for row in rows}), (0, {"1", "2"}))
        self.assertIn("# not on 4, 8 processes: there are 2 GPUs\n", self.said)
        self.assertNotIn("ms on 4", self.said)
        self.output.unlink()
        self.assertEqual(self.scaling("--ranks", "2", gpus="1"), (1, []))
        self.assertIn("# not on 2 processes: there is 1 GPU\n", self.said)

    def test_host(self):
        with mock.patch.object(os, "sched_getaffinity", lambda _: {0, 1}):
            status, rows = self.scaling("--set", "full", gpus="0")
        self.assertEqual(status, 0)
        self.assertEqual(self.runs(rows), [("strong", 1, "sf"), ("strong", 2, "sf"), ("weak", 2, "sf")])
        self.assertEqual({row["type"] for row in rows}, {"aij", "evchyb"})
        self.assertEqual(rows[0]["unknowns"], str(24**3))
        self.assertIn("# not on 4 processes: there are 2 cores\n", self.said)
        self.assertIn("on the host, 24^3 points", self.head[0])
        self.assertEqual(self.numbers("strong", "MatMult", "evchyb", "sf"), "4 2.5 2.00 2.00 0.80 6".split())

    def test_timeout(self):
        self.assertEqual(self.scaling("--ranks", "1", "--timeout", "1", "--", "-ksp_type", "hang"), (1, []))
        self.assertIn("# FAILED strong, 1 process, sf: no end after 1 s\n", self.said)

    def test_no_mpiexec(self):
        self.assertEqual(self.scaling("--ranks", "1", mpiexec="none"), (1, []))
        self.assertIn("# FAILED strong, 1 process, sf: [Errno 2]", self.said)

    def keep(self, *texts):
        """What is kept in a folder of its own, and the page that the tables are put into."""
        kept, page = self.folder / "results", self.folder / "docs" / "mpi.md"
        kept.mkdir(exist_ok=True)
        page.parent.mkdir(exist_ok=True)
        page.write_text("Before\n\n<!-- scaling -->\n<!-- /scaling -->\n\nbehind\n")
        with mock.patch.object(table, "HERE", kept), mock.patch.object(table, "ROOT", self.folder):
            self.assertEqual(table.scaling_rows(), [])
            for text in texts:
                self.output.write_text(text)
                self.assertFalse(table.main(["--scaling", str(self.output)]))
        return sorted(path.name for path in kept.iterdir()), page.read_text().splitlines()

    def test_tables_of_the_docs(self):
        self.scaling()
        files, lines = self.keep(self.output.read_text())
        self.assertEqual(files, ["scaling-h100.tsv"])
        self.assertEqual((lines[:3], lines[-3:]), (["Before", "", "<!-- scaling -->"], ["<!-- /scaling -->", "", "behind"]))
        self.assertIn("NVIDIA H100 80GB HBM3, a process on each, commit abc123: the 7-point stencil, 100^3 points, the same for all numbers of processes (strong scaling).", lines)
        self.assertIn("| what | type | way | ms on 1 | ms on 2 | ms on 4 | speedup on 1 | speedup on 2 | speedup on 4 | efficiency on 2 | efficiency on 4 | host KB |", lines)
        strong, weak = (lines.index(next(line for line in lines if f"({kind} scaling)" in line)) for kind in ("strong", "weak"))
        self.assertIn("| MatMult | evchyb | ipc | 4 | 2 | 1 | 2.00 | 2.50 | 2.50 | 1.00 | 1.00 | 0 |", lines[strong:weak])
        self.assertIn("| MatMult | evchyb | sf | 4 | 5 | 5 | 2.00 | 2.00 | 2.00 | 0.80 | 0.80 | 12 |", lines[weak:])
        self.assertEqual(len({line.count("|") for line in lines if line.startswith("|")}), 1)

    def test_files_of_several_gpus(self):
        self.scaling("--ranks", "1,2")
        text = self.output.read_text()
        files, lines = self.keep(text, text.replace("NVIDIA H100 80GB HBM3", "NVIDIA H200"), text.replace("abc123", "def456"))
        self.assertEqual(files, ["scaling-h100.tsv", "scaling-h200.tsv"])
        self.assertEqual([line.partition(": ")[0] for line in lines if line.endswith("scaling).")],
                         [f"{gpu}, a process on each, commit {commit}" for gpu, commit in (("NVIDIA H100 80GB HBM3", "def456"), ("NVIDIA H200", "abc123")) for _ in range(2)])

    def test_host_is_not_kept(self):
        self.scaling("--ranks", "1", gpus="0")
        with self.assertRaises(SystemExit) as stopped:
            self.keep(self.output.read_text())
        self.assertIn("has no times of aijcusparse and evchyb on GPUs", str(stopped.exception))

    def test_page_has_a_place(self):
        self.assertRegex((Path(table.ROOT) / "docs" / "mpi.md").read_text(), "(?s)\n<!-- scaling -->\n.*<!-- /scaling -->\n")


if __name__ == "__main__":
    unittest.main()
