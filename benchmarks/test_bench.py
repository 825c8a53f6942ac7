#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Test what bench.py makes of a program that crashes, hangs or errs, by a program that does so when it is asked to; its summary, the
line on progress, and examples/demo. Runs test_choice.py, test_largest.py, test_papers.py, test_sanitize.py and test_scaling.py, too.

The last line says how many tests passed and failed, as config/test-summary does. Needs no GPU and no PETSc, and
matplotlib only for the test of pictures.
"""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import re
import stat
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

import bench
import cases
import exchangemodel
import fakes
import petscexamples
import solves
import terminal
import test_choice
import test_largest
import test_papers
import test_sanitize
import test_scaling

sys.path.insert(0, str(Path(__file__).resolve().parent / "results"))
import table

COLUMNS = "# matrix\tm\tn\tnnz\twhat\tk\tsetup_ms\twarm_us\tcold_us\tGF_warm\teff\tB/nnz\terr\twarm_min\twarm_max\tcold_min\tcold_max"

# Cases one, two, three of a matrix; the name of the matrix says what becomes of the second
FAKE = f"""#!{sys.executable}
import os, signal, sys, time
def say(line): print(line, flush=True)
words = sys.argv[1:]
name = words[words.index("-generate") + 1] if "-generate" in words else "file"
skip = int(words[words.index("-skip") + 1]) if "-skip" in words else 0
early = "-early" in words  # as programs that check results before they time them
say("# Gallop commit abc123\\n# PETSc Release Version 3.26.1\\n# numbers of 4 bytes, indices of 8\\n# machine: a GPU, 1 multiprocessors, 1 MiB")
say("# driver 580.1, CUDA 13.0, cuSPARSE 12.6.3\\n# read bandwidth 4000 GB/s")
say({COLUMNS!r})
if name == "nothing":
    sys.exit("[0]PETSC ERROR: There is no such matrix")
say(f"# {{name}} has rows of 5.0 entries, variation 0.250, the longest 6")
if name == "wrong_crash":
    say("\\t".join([name, "3", "3", "5", "one", "1"] + ["1.5"] * 6 + ["nan"] + ["2.5"] * 4))
    say(f"# WRONG {{name}} one: error nan")
    os.kill(os.getpid(), signal.SIGSEGV)
for number, what in enumerate(("one", "two", "three") if name != "none" else (), 1):
    if number <= skip:
        continue
    if "-announce" in words:
        say(f"# begins\\t{{number}}\\t{{name}}\\t{{what}}\\t1")
    if what == "two" and name == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if what == "two" and name == "hang":
        time.sleep(60)
    if what == "two" and name == "error":
        sys.exit("[0]PETSC ERROR: --- Error Message ---\\n[0]PETSC ERROR: Out of memory")
    err = "nan" if what == "two" and name in ("wrong", "12_3") else "1e-16"
    if err == "nan" and early:
        say(f"# WRONG {{name}} {{what}}: error nan")
    for k in (1, 8) if "-k" in words else (1,):
        say("\\t".join([name, "3", "3", "5", what, str(k)] + ["1.5"] * 6 + [err] + ["2.5"] * 4))
        if err == "nan" and not early:
            say(f"# WRONG {{name}} {{what}}: error nan")
    if "-view" in words:
        say("Mat Object: 1 MPI process")
if "-announce" in words:
    say("# done")
if name in ("wrong", "12_3"):
    sys.exit("[0]PETSC ERROR: 1 results are wrong")
"""


class BenchTest(fakes.FakesTest):
    def setUp(self):
        super().setUp()
        self.program = self.fake("fake", FAKE)

    def bench(self, *words, timeout="60"):
        """Exit status, lines for tables, and the document."""
        tsv, document = self.folder / "out.tsv", self.folder / "out.json"
        arguments = ["bench.py", "--program", self.program, "--timeout", timeout, "--output", str(tsv), "--json", str(document), *words]
        with mock.patch.object(sys, "argv", arguments), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            status = bench.main()
            self.printed = sys.stdout.getvalue()
        return status, tsv.read_text().splitlines(), json.loads(document.read_text())

    def statuses(self, document, matrix):
        return [(case["what"], case["status"]) for case in document["cases"] if case["matrix"] == matrix]

    def test_all_is_well(self):
        status, lines, document = self.bench("good", "other", "--", "-min_ms", "5")
        self.assertEqual(status, 0)
        self.assertEqual(self.statuses(document, "good"), [("one", "ok"), ("two", "ok"), ("three", "ok")])
        self.assertEqual(len([line for line in lines if not line.startswith("#")]), 6)
        self.assertEqual([line for line in lines if line.startswith("# matrix\t")], [COLUMNS])
        self.assertFalse([line for line in lines if line.startswith(("# begins", "# done"))])
        self.assertEqual(document["options"], ["-raw", "-min_ms", "5"])

    def test_two_of_one_name(self):
        with self.assertRaises(SystemExit) as stopped:
            self.bench("a/good.mtx", "good=other")
        self.assertIn("several matrices are called good", str(stopped.exception))

    def test_saved_after_each_matrix(self):
        with mock.patch.object(bench, "measure", side_effect=[bench.measure(self.program, "good", [], 60), KeyboardInterrupt]):
            with self.assertRaises(KeyboardInterrupt):
                self.bench("good", "other")
        self.assertEqual(len(json.loads((self.folder / "out.json").read_text())["cases"]), 3)

    def test_machine_and_numbers(self):
        _, _, document = self.bench("good")
        machine = [document[name] for name in ("commit", "driver", "cuda", "cusparse", "read_bandwidth_GBs", "gpu", "scalar_bytes", "index_bytes")]
        self.assertEqual(machine, ["abc123", "580.1", "13.0", "12.6.3", 4000, True, 4, 8])
        case = document["cases"][0]
        numbers = [case[name] for name in ("nnz", "warm_us", "err", "cold_max", "row_variation", "row_longest")]
        self.assertEqual(numbers, [5, 1.5, 1e-16, 2.5, 0.25, 6])

    def test_crash(self):
        status, lines, document = self.bench("crash", "good")
        self.assertEqual(status, 1)
        self.assertEqual(self.statuses(document, "crash"), [("one", "ok"), ("two", "failed"), ("three", "ok")])
        self.assertIn("# FAILED crash two 1 killed by SIGSEGV", lines)
        self.assertEqual(len(self.statuses(document, "good")), 3)
        self.assertEqual(len([line for line in lines if line.startswith("# read bandwidth")]), 1)

    def test_timeout(self):
        status, lines, document = self.bench("hang", "good", timeout="5")
        self.assertEqual(status, 1)
        self.assertEqual(self.statuses(document, "hang"), [("one", "ok"), ("two", "timeout"), ("three", "ok")])
        self.assertIn("# TIMEOUT hang two 1 no end after 5 s", lines)
        self.assertEqual(len(self.statuses(document, "good")), 3)

    def test_error_message(self):
        _, _, document = self.bench("error")
        self.assertEqual(self.statuses(document, "error"), [("one", "ok"), ("two", "failed"), ("three", "ok")])
        self.assertEqual(document["cases"][1]["reason"], "exit status 1: Out of memory")

    def test_wrong_result(self):
        status, lines, document = self.bench("wrong")
        self.assertEqual(status, 1)
        self.assertEqual(self.statuses(document, "wrong"), [("one", "ok"), ("two", "wrong"), ("three", "ok")])
        self.assertIn("# WRONG wrong two: error nan", lines)
        self.assertIsNone(document["cases"][1]["err"])

    def test_wrong_results_of_several_columns(self):
        _, _, document = self.bench("wrong", "--", "-k", "1,8")
        self.assertEqual([case["status"] for case in document["cases"]], ["ok", "ok", "wrong", "wrong", "ok", "ok"])

    def test_wrong_result_told_first(self):
        for announce in (True, False):
            reader = bench.measure(self.program, "wrong", ["-early"], 60, announce=announce)
            self.assertEqual([(case["what"], case["status"]) for case in reader.cases()], [("one", "ok"), ("two", "wrong"), ("three", "ok")])

    def test_crash_after_wrong_result(self):
        reader = bench.measure(self.program, "wrong_crash", [], 60, announce=False)
        self.assertEqual([case["status"] for case in reader.cases()], ["wrong", "failed"])

    def test_name_that_looks_like_a_number(self):
        status, _, document = self.bench("12_3")
        self.assertEqual(status, 1)
        self.assertEqual(self.statuses(document, "12_3"), [("one", "ok"), ("two", "wrong"), ("three", "ok")])

    def test_nothing_timed(self):
        self.assertEqual(self.bench("none")[0], 1)

    def test_failure_without_a_word(self):
        self.assertEqual(bench.reason(1, ""), "exit status 1: no message")

    def test_matrix_that_is_none(self):
        status, lines, document = self.bench("nothing", "good")
        self.assertEqual(status, 1)
        self.assertEqual(self.statuses(document, "nothing"), [(None, "failed")])
        self.assertIn("# FAILED nothing exit status 1: There is no such matrix", lines)
        self.assertEqual(len(self.statuses(document, "good")), 3)

    def test_view(self):
        _, lines, document = self.bench("good", "--", "-view", "::ascii_info")
        self.assertEqual(document["cases"][2]["view"], ["Mat Object: 1 MPI process"])
        self.assertEqual(lines.count("# view Mat Object: 1 MPI process"), 3)

    def test_setup_is_without_raw(self):
        _, _, document = self.bench("good", "--", "-setup")
        self.assertEqual(document["options"], ["-setup"])

    def test_numbers_go_to_the_file(self):
        self.bench("good")
        self.assertNotIn("\t", self.printed)
        self.assertIn("Timing 1 matrices", self.printed)
        self.assertIn(f"make report REPORT={self.folder / 'out.json'}", self.printed)

    def test_failures_are_told(self):
        self.bench("crash", "wrong")
        self.assertIn("failed: crash two: killed by SIGSEGV", self.printed)
        self.assertIn("wrong: wrong two: WRONG wrong two: error nan", self.printed)
        self.assertIn("4 of 6 cases of 2 matrices timed", self.printed)

    def test_nothing_to_report(self):
        self.bench("none")
        self.assertNotIn("make report", self.printed)

    def test_names_of_files(self):
        self.assertEqual([bench.label(name) for name in ("a/b.mtx.gz", "b.bin", "short=star7_20", "kron10")], ["b", "b", "short", "kron10"])


def document(times, gpu=True, options=(), **columns):
    """Times of warm products by matrix and type."""
    return {"gpu": gpu, "machine": "a machine", "options": list(options), "cases": [
        {"status": "ok", "matrix": matrix, "what": what, "nnz": 5000, "k": 1, "warm_us": time, "cold_us": 1e6, **columns}
        for (matrix, what), time in times.items()]}


class SummaryTest(unittest.TestCase):

    def words(self, lines):
        """The words of each line of the table, by its first."""
        return {line.split()[0]: line.split()[1:] for line in lines if line.strip()}

    def test_one_type(self):
        times = {("a", "aijcusparse"): 9.0, ("a", "raw_csr_alg1"): 8.0, ("a", "evchyb"): 2.0, ("b", "raw_csr_alg1"): 3.0, ("b", "evchyb"): 3.0, ("b", "sellcuda"): 1.0}
        rows = self.words(cases.summary(document(times)))
        self.assertEqual(rows["matrix"], "nonzeros (M) best cuSPARSE (µs) evchyb (µs) speedup".split())
        self.assertEqual(rows["a"], ["0.01", "8.0", "2.0", "4.00"])
        self.assertEqual(rows["b"], ["0.01", "3.0", "3.0", "1.00"])
        self.assertEqual(rows["geometric"], ["mean", "2.00"])
        lines = [line.split() for line in cases.summary(document(times))]
        self.assertIn(["worst", "1.00"], lines)
        self.assertIn(["worst", "matrix", "b"], lines)

    def test_several_types(self):
        rows = self.words(cases.summary(document({("a", "aijcusparse"): 8.0, ("a", "evchyb"): 4.0, ("a", "hbp"): 2.0, ("b", "aijcusparse"): 8.0, ("b", "evchyb"): 8.0})))
        self.assertEqual(rows["a"], ["0.01", "8.0", "2.0", "hbp", "2.00", "4.00"])
        self.assertEqual(rows["b"], ["0.01", "8.0", "8.0", "evchyb", "1.00", "-"])
        self.assertEqual(rows["geometric"], ["mean", "1.41", "4.00"])

    def test_without_gpu(self):
        lines = cases.summary(document({("a", "aij"): 8.0, ("a", "evchyb"): 4.0}, gpu=False))
        self.assertEqual(self.words(lines)["a"], ["0.01", "8.0", "4.0", "2.00"])
        self.assertIn("These times say nothing about those of a GPU.", lines[-1])

    def test_without_what_it_is_compared_with(self):
        rows = self.words(cases.summary(document({("a", "evchyb"): 4.0})))
        self.assertEqual(rows["a"], ["0.01", "-", "4.0", "-"])
        self.assertNotIn("geometric", rows)

    def test_builds(self):
        columns = {"product_us": 5.0, "build_us": 20.0, "build/product": 4.0, "refresh_us": 10.0, "refresh/product": 2.0}
        rows = self.words(cases.summary(document({("a", "evchyb"): 1.0, ("b", "raw_csr_alg1"): 1.0}, options=["-setup"], **columns)))
        self.assertEqual(rows["a"], ["evchyb", "5.0", "20.0", "4.0", "10.0", "2.0"])
        self.assertNotIn("b", rows)

    def test_first_products(self):
        rows = self.words(cases.summary(document({("a", "csroverlap"): 1.0}, options=["-first"], **{"copy_ms": 2.0, "first_ms": 1.9, "first/copy": 0.95})))
        self.assertEqual(rows["a"], ["csroverlap", "2", "1.9", "0.95"])

    def test_remarks(self):
        told = document({("a", "aij"): 8.0, ("a", "evchyb"): 4.0})
        told["cases"][1]["remarks"] = ["# a evchyb: 12 products were the parent type's"]
        self.assertEqual(cases.summary(told)[0], "a evchyb: 12 products were the parent type's")


class Terminal(io.StringIO):

    def isatty(self):
        return True


class ProgressTest(unittest.TestCase):

    def text(self, seconds, done=0, **more):
        progress = terminal.Progress("work", **more)
        progress.done = done
        with mock.patch.object(terminal.time, "monotonic", return_value=progress.start + seconds):
            return progress.text()

    def test_time_left(self):
        self.assertEqual(self.text(20, 1, unit="files", total=4), "gallop: work: 1 of 4 files, 0:20, about 1:00 left")
        self.assertEqual(self.text(3600, unit="files", done_of=lambda: (2, 6)), "gallop: work: 2 of 6 files, 1:00:00, about 2:00:00 left")

    def test_nothing_known(self):
        self.assertEqual(self.text(20, unit="files", total=4), "gallop: work: 0 of 4 files, 0:20")
        self.assertEqual(self.text(20), "gallop: work: 0:20")

    def test_as_long_as_it_took(self):
        self.assertEqual(self.text(20, usual=60), "gallop: work: 0:20, about 0:40 left")
        self.assertEqual(self.text(70, usual=60), "gallop: work: 1:10")

    def test_file_that_is_not_there_yet(self):
        self.assertEqual(self.text(5, unit="files", done_of=lambda: (os.stat("/nonexistent"), 1)), "gallop: work: 0:05")

    def shown(self, stream):
        """What is on stderr and on stdout of work that takes half a second."""
        with mock.patch.object(sys, "stderr", stream), mock.patch.object(terminal, "LOG_SECONDS", 0.1), contextlib.redirect_stdout(io.StringIO()) as out:
            with terminal.Progress("work", "files", 2) as progress:
                time.sleep(0.25)
                progress.say("a line that stays")
        return stream.getvalue(), out.getvalue()

    def test_log(self):
        told, out = self.shown(io.StringIO())
        self.assertGreaterEqual(told.count("gallop: work: 0 of 2 files, 0:00\n"), 1)
        self.assertNotIn("\r", told)
        self.assertEqual(out, "a line that stays\n")

    def test_terminal(self):
        told, out = self.shown(Terminal())
        self.assertNotIn("\n", told)
        self.assertTrue(told.endswith("\r\033[K"))  # nothing of the line stays
        self.assertEqual(out, "a line that stays\n")


FAKE_MPIEXEC = f"""#!{sys.executable}
import sys
words = sys.argv[1:]
ours, log = words[words.index("-mat_type") + 1] if "-dll_append" in words else "", words[words.index("-log_view") + 1][1:].split(":")[0]
lines = ["Stage Name,Event Name,Rank,Count,Time"]
for rank in range(int(words[words.index("-n") + 1])):
    times = [("summary", 1, 1.0 if ours else 1.5), ("MatMult", 10, 0.2), ("KSPSolve", 1, 0.25 if ours else 0.5)]
    lines += [f"Main,{{event}},{{rank}},{{count}},{{time}}" for event, count, time in times + [(ours.upper() + "Mult", 10, 0.2)] * bool(ours and "-unused" not in words)]
open(log, "w").write("\\n".join(lines) + "\\n")
print("Linear solve converged due to CONVERGED_RTOL iterations 42\\nNumber of SNES iterations = 3 fnorm 1e-12\\niterations 42 residual 1e-6")
"""


class DemoTest(unittest.TestCase):

    def demo(self, *mpiexec_options, gpus="0", petsc_options=""):
        with tempfile.TemporaryDirectory() as folder:
            mpiexec = Path(folder, "mpiexec")
            mpiexec.write_text(FAKE_MPIEXEC)
            mpiexec.chmod(mpiexec.stat().st_mode | stat.S_IXUSR)
            loader = importlib.machinery.SourceFileLoader("demo", str(Path(__file__).resolve().parent.parent / "examples" / "demo"))
            module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
            loader.exec_module(module)
            arguments = ["demo", "--library", "/there/libgallop.so", "--programs", folder, "--mpiexec", " ".join([str(mpiexec), *mpiexec_options])]
            environment = {"GALLOP_GPUS": gpus, "PETSC_OPTIONS": petsc_options, "PETSC_DIR": "/petsc"}
            out = io.StringIO()
            with mock.patch.object(sys, "argv", arguments), mock.patch.dict(os.environ, environment), contextlib.redirect_stdout(out), \
                    contextlib.redirect_stderr(io.StringIO()):
                module.main()
            return out.getvalue()

    def test_speedups(self):
        rows = [line.split() for line in self.demo().splitlines() if line.startswith(("Bratu 40^3", "bcsstk16 "))]
        for pair in rows[:2], rows[4:]:
            self.assertEqual([row[-5:] for row in pair], [["0.500", "-", "1.500", "-", "-"], ["0.250", "2.00", "1.000", "1.50", "10"]])

    def test_host(self):
        said = self.demo()
        self.assertTrue(said.startswith("This runs on the host, since there is no GPU, each case with PETSc's aij and with evchyb"))
        self.assertIn("There is no GPU here, so the host was timed", said)
        self.assertIn("./app -dll_append /there/libgallop.so -mat_type gallop\n", said)

    def test_gpu(self):
        said = self.demo(gpus="1", petsc_options="-use_gpu_aware_mpi 0")
        self.assertIn("each case with PETSc's aijcusparse", said)
        self.assertEqual([line.split()[2] for line in said.splitlines() if line.startswith("Bratu 150^3 ")][:3], ["aijcusparse", "evchyb", "gallop"])
        self.assertNotIn("There is no GPU", said)
        self.assertIn("./app -dll_append /there/libgallop.so -mat_type gallop -vec_type cuda -use_gpu_aware_mpi 0\n", said)

    def test_products_of_another(self):
        with self.assertRaises(SystemExit) as stopped:
            self.demo("-unused")
        self.assertIn("our kernel did [0] of [10] products", str(stopped.exception))


# Solves in 2 ms first and 1 ms later, of the second type in half the time, set-ups in 1 ms; BiCG ends with an error, GMRES needs other iterations
FAKE_SOLVES = f"""#!{sys.executable}
import sys
words = sys.argv[1:]
if "bicg" in words:
    sys.exit("[0]PETSC ERROR: --- Error Message ---\\n[0]PETSC ERROR: Out of memory")
if "-log_view" in words:
    stages = [f"{{name}},MatMult,0,5,{{time}}\\nOther,MatMult,0,5,1" for name, time in (("aij", 0.5e-3), ("evchyb", 0.25e-3))]
    open(words[words.index("-log_view") + 1][1:].split(":")[0], "w").write("\\n".join(stages) + "\\nevchyb,EVCHYBBuild,0,1,1e-4\\n")
print("# type\\tunknowns")
print("aij\\t8\\t20\\t1\\t2\\t1\\t100\\t1e-9\\t1")
print("evchyb\\t8\\t20\\t1\\t1\\t0.5\\t" + ("150" if "gmres" in words else "104") + "\\t1e-9\\t1")
"""

# An example by mpiexec: what goes wrong says the option -ts_type; the first run of a type takes twice as long as those after it
FAKE_EXAMPLE = f"""#!{sys.executable}
import pathlib, sys
words = sys.argv[1:]
wrong, ranks = words[words.index("-ts_type") + 1] if "-ts_type" in words else "", int(words[words.index("-n") + 1])
mat_type = words[words.index("-dm_mat_type" if "-dm_mat_type" in words else "-mat_type") + 1]
ours, mark = mat_type in ("evchyb", "gallop"), pathlib.Path(__file__).with_name(mat_type)
slow = 2 if not mark.exists() else 1
mark.touch()
if wrong == "error" and ours:
    sys.exit("[0]PETSC ERROR: --- Error Message ---\\n[0]PETSC ERROR: Out of memory")
lines = ["Stage Name,Event Name,Rank,Count,Time,Num Messages", "Main Stage,summary,0,1,9,0", ""]
for rank in range(ranks):
    solve = (0.02 if ours else 0.04) * slow / (rank + 1)
    lines += [f"First,{{event}},{{rank}},{{count}},{{time}},0" for event, count, time in (("KSPSetUp", 1, 0.001), ("PCSetUp", 1, 0.009), ("KSPSolve", 1, solve), ("MatMult", 12, 0.008),
              ("VecAXPY", 10, 0.002), ("VecScatterEnd", 10, 9))]
    lines += [f"Later,KSPSolve,{{rank}},1,0.005,0", f"Later,MatMult,{{rank}},10,1,0"]
    lines += [f"First,{{mat_type.upper()}}Mult,{{rank}},{{14 if rank + 1 < ranks or wrong != 'rank' else 3}},0.004,0", f"First,{{mat_type.upper()}}Build,{{rank}},1,0.003,0"] * (ours and wrong != "parent")
if wrong == "events":
    lines = [line for line in lines if "KSPSolve" not in line]
if wrong != "log":
    open(words[words.index("-log_view") + 1][1:].split(":")[0], "w").write("\\n".join(lines) + "\\n")
print("Linear mg_solve of a level\\nLinear solve " + ("did not converge due to DIVERGED_ITS" if wrong == "diverged" else "converged due to CONVERGED_RTOL")
      + f" iterations {{14 if wrong == 'iterations' and ours else 10}}")
for name, rows in ((mat_type, 8), (mat_type, 64), ("aij", 4)):
    print(f"  Mat Object: {{ranks}} MPI process\\n    type: seq{{'aij' if wrong == 'type' else name if not ours else 'aij' + mat_type}}\\n    rows={{rows}}, cols={{rows}}, bs=3\\n    total: nonzeros={{7 * rows}}, allocated")
print("Residual norm 2.5e-08.")
if "-gallop_statistics" in words:
    print("  products               on the GPU  on the host       by AIJ\\n  " + mat_type + "              " + {{"host": "11           12             0   ", "parent": "3             0             2   ", "rank": "14            0             3   "}}.get(wrong, str(14 * ranks) + "            2             4   "))
"""


class SolvesTest(fakes.FakesTest):

    def solves(self, *words, examples=None, gpus="0"):
        """Exit status, and rows of the file as {column: text}; what is printed is kept."""
        output, out = self.folder / "solves.tsv", io.StringIO()
        command = ["solves.py", "--program", self.fake("repeatsolve", FAKE_SOLVES), "--mpiexec", self.fake("mpiexec", FAKE_EXAMPLE), "--library", "libgallop.so",
                   "--output", str(output), "--about", "PETSc 3.26.1, Gallop abc123", *(["--examples", "there"] if examples else []), *words]
        with mock.patch.object(sys, "argv", command), contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()), \
                mock.patch.object(petscexamples, "EXAMPLES", examples or {}), mock.patch.dict(os.environ, {"GALLOP_GPUS": gpus}):
            status = solves.main()
        self.said = out.getvalue()
        lines = output.read_text().splitlines() if output.exists() else []
        columns = [line[2:].split("\t") for line in lines if line.startswith("# case\t")]
        return status, [dict(zip(columns[0], line.split("\t"))) for line in lines if not line.startswith("#")]

    def example(self, options="", **more):
        return petscexamples.Example("ksp/ex", f"-n {{0}} {options}", "2", "3", "1", **{"stages": ("First", ), "residual": "Residual norm ", **more})

    def case(self, *words, gpus="0", **more):
        """Rows of the only case, aij's and evchyb's, or why there is none."""
        status, rows = self.solves("--only", "^one", *words, examples={"one": self.example(**more)}, gpus=gpus)
        self.assertEqual(status, 0 if rows else 1)
        return rows or self.said[self.said.index("# FAILED"):].splitlines()[0]

    def test_repeatsolve(self):
        status, rows = self.solves()
        self.assertEqual(status, 1)
        self.assertIn("# FAILED BiCG, Jacobi, 7 points: exit status 1: Out of memory", self.said)
        self.assertIn("# FAILED GMRES, Jacobi, 27 points, 3 unknowns: iterations differ: aij 100, evchyb 150", self.said)
        self.assertIn("evchyb: first solves 1.50 times as fast in the geometric mean of 9 (worst 1.50, CG, Jacobi, 7 points, large)", self.said)
        self.assertIn("evchyb: later solves 2.00 times as fast in the geometric mean of 9 (worst 2.00, CG, Jacobi, 7 points, large)", self.said)
        self.assertNotIn("slower:", self.said)
        self.assertEqual(len(rows), 2 * (len(solves.CASES) - 2))
        known = {"unknowns": "8", "nonzeros": "20", "first_ms": "2", "later_ms": "0.5", "iterations": "104", "residual": "1e-09", "gpu_MB": "1", "setup_ms": "1",
                 "products_ms": "0.25", "builds_ms": "0.1", "vectors_ms": "", "assembly_ms": ""}
        self.assertEqual(rows[1], {"case": "CG, Jacobi, 7 points, large", "type": "evchyb", "ranks": "1", **known})

    def test_example(self):
        plain, ours = self.case()
        known = {"unknowns": "64", "nonzeros": "448", "iterations": "10", "residual": "2.5e-08", "setup_ms": "10", "products_ms": "8", "vectors_ms": "2", "assembly_ms": ""}
        self.assertEqual(plain, {"case": "one", "type": "aij", "ranks": "1", "first_ms": "50", "later_ms": "", "gpu_MB": "", "builds_ms": "", **known})
        self.assertEqual(ours, {"case": "one", "type": "evchyb", "ranks": "1", "first_ms": "30", "later_ms": "", "gpu_MB": "", "builds_ms": "3", **known})
        self.assertNotIn("later solves", self.said)
        self.assertIn("(worst 1.67, one)", self.said)

    def test_example_with_later_solve(self):
        rows = self.case(later=("Later", "KSPSolve"))
        self.assertEqual([row["later_ms"] for row in rows], ["5", "5"])
        self.assertIn("evchyb: later solves 1.00 times as fast", self.said)

    def test_long_runs_once(self):
        with mock.patch.object(petscexamples, "SHORT", 0.0):
            self.assertEqual([row["first_ms"] for row in self.case()], ["90", "50"])

    def test_sum_of_events_of_stages(self):
        rows = self.case(first=("MatMult in Later", ) + petscexamples.LINEAR)
        self.assertEqual([row["first_ms"] for row in rows], ["1050", "1030"])

    def test_ranks(self):
        _, rows = self.solves("--only", "^one", examples={"one": self.example(ranks=(1, 2))})
        self.assertEqual([(row["type"], row["ranks"], row["iterations"]) for row in rows], [("aij", "1", "10"), ("evchyb", "1", "10"), ("aij", "2", "10"), ("evchyb", "2", "10")])
        self.assertIn("one, 2 ranks", self.said)
        _, rows = self.solves("--only", "^one", "--ranks", "3", examples={"one": self.example(ranks=(1, 2))})
        self.assertEqual([row["ranks"] for row in rows], ["3", "3"])

    def test_failures(self):
        reasons = {"error": "evchyb: exit status 1: Out of memory", "diverged": "aij: no convergence", "events": "aij: the log has no event KSPSolve", "log": "aij: exit status 0",
                   "parent": "evchyb: 5 products of evchyb in 10 iterations on 1 rank", "type": "evchyb: the matrix has type seqaij", "iterations": "iterations differ: aij 10, evchyb 14"}
        for wrong, told in reasons.items():
            with self.subTest(wrong):
                self.assertIn(f"# FAILED one: {told}", self.case(options=f"-ts_type {wrong}"))
                (self.folder / "solves.tsv").unlink(missing_ok=True)

    def test_products_of_every_rank(self):
        self.assertIn("# FAILED one, 2 ranks: evchyb: 17 products of evchyb in 10 iterations on 2 ranks", self.case("--ranks", "2", options="-ts_type rank"))

    def test_one_failure_leaves_the_others(self):
        status, rows = self.solves("--only", "^(one|two)", examples={"one": self.example("-ts_type error"), "two": self.example()})
        self.assertEqual((status, [row["case"] for row in rows]), (1, ["two", "two"]))

    def test_written_after_each_case(self):
        examples = {"one": self.example(), "two": self.example()}
        run = petscexamples.run
        with mock.patch.object(petscexamples, "run", side_effect=lambda example, *more: run(example, *more) if example is examples["one"] else sys.exit("stopped")):
            with self.assertRaises(SystemExit):
                self.solves("--only", "^(one|two)", examples=examples)
        self.assertEqual(len([line for line in (self.folder / "solves.tsv").read_text().splitlines() if line.startswith("one\t")]), 2)

    def test_nothing_chosen(self):
        self.assertEqual(self.solves("--only", "no such case"), (1, []))

    def test_gpu(self):
        """Vectors on the GPU for both types, and one run more, in which events wait."""
        commands = []
        finish = petscexamples.finish
        with mock.patch.object(petscexamples, "finish", side_effect=lambda words, timeout: commands.append(words) or finish(words, timeout)):
            rows = self.case(gpus="1")
        self.assertEqual([row["type"] for row in rows], ["aijcusparse", "evchyb", "gallop"])
        self.assertEqual([words[words.index("-dm_mat_type") + 1] for words in commands], ["aijcusparse", "evchyb", "gallop"] * 4)
        self.assertTrue(all(" ".join(words).count("-dm_vec_type cuda -device_enable eager") == 1 for words in commands))
        self.assertEqual([words[-1] == "-log_view_gpu_time" for words in commands], [False] * 9 + [True] * 3)
        self.assertEqual(["-dll_append" in words for words in commands], [False, True, True] * 4)
        self.assertEqual([words[words.index("-n", 3) + 1] for words in commands], ["2"] * 12)

    def test_products_on_the_host(self):
        self.assertIn("# FAILED one: evchyb: 11 products on the GPU and 12 on the host in 10 iterations", self.case(gpus="1", options="-ts_type host"))
        self.assertEqual(len(self.case(options="-ts_type host")), 2)

    def test_types(self):
        _, rows = self.solves("--only", "^one", "--", "-types", "evchyb,aij", "-ksp_rtol", "1e-3", examples={"one": self.example()})
        self.assertEqual([row["type"] for row in rows], ["evchyb", "aij"])
        self.assertIn("aij: first solves 0.60 times as fast in the geometric mean of 1 (worst 0.60, one); slower: one 0.60", self.said)

    def test_log(self):
        path = self.folder / "log.csv"
        path.write_text("Stage Name,Event Name,Rank,Count,Time\nA,summary,0,1,9,0\n\nA,MatMult,0,3,0.5\nA,MatMult,1,2,0.25\nB,MatMult,0,1,1\nB,MatMult,1,1,2\nB,VecNorm,0,1,0.5\nB,VecNormalize,0,1,8\n")
        log = petscexamples.Log(path)
        self.assertEqual((log.ms("MatMult"), log.ms("MatMult", ("A", )), log.ms("MatMultAdd")), (2500, 500, None))
        self.assertEqual(petscexamples.parts(log, "aij", ())["vectors_ms"], 500)

    def test_makefile_has_the_examples(self):
        text = (Path(__file__).resolve().parent.parent / "makefile").read_text().replace("\\\n", " ")
        words = re.search(r"^solved_examples +:= (.*)$", text, re.M).group(1)
        names = {folder + name for folder, group in re.findall(r"\(addprefix ([a-z/]+tutorials/),([^)]*)\)", words) for name in group.split()}
        names |= set(re.findall(r"(?<= )[a-z/]+tutorials/\w+", re.sub(r"addprefix [^,]*,", "", words)))
        self.assertEqual(names, {example.program for example in petscexamples.EXAMPLES.values()})

    def test_tables_of_the_docs(self):
        self.solves("--only", "^one|large", examples={"one": self.example(ranks=(2, ))}, gpus="1")
        text = (self.folder / "solves.tsv").read_text().replace("\taij\t", "\taijcusparse\t")
        (self.folder / "solves.tsv").write_text(text)
        with mock.patch.object(table, "HERE", self.folder):
            self.assertEqual(table.solve_rows(), [("one, 2 ranks", 64, "first", 50.0, 30.0)])
            self.assertEqual(table.solve_rows("evchyb"), [("CG, Jacobi, 7 points, large", 8, "later", 1.0, 0.5), ("CG, Jacobi, 7 points, large", 8, "first", 3.0, 2.0),
                                                          ("one, 2 ranks", 64, "first", 50.0, 30.0)])
            rows = table.solves()
        self.assertIn("| one, 2 ranks | 64 |  |  |  | 1.67 | 1.67 | 50 |", rows)
        self.assertIn("| CG, Jacobi, 7 points, large | 8 |  | 2.00 | 1 |  | 1.50 | 3 |", rows)
        self.assertRegex(rows[-1], r"Geometric means with `gallop`: 1.67 over first ones \(worst 1.67\)\. Geometric means with `evchyb`: 2.00 over later solves \(worst 2.00\), 1.58 over first ones "
                         r"\(worst 1.50\)\. Speedups are over `aijcusparse`; measured on one .*, commit abc123\.")

    def test_solves_are_kept(self):
        examples, paths = {"one": self.example(), "two": self.example()}, []
        for name in examples:
            self.solves("--only", f"^{name}", examples=examples, gpus="1")
            paths.append(self.folder / f"{name}.tsv")
            (self.folder / "solves.tsv").rename(paths[-1])
        with mock.patch.object(table, "HERE", self.folder), mock.patch.object(table, "splice") as splice:
            table.keep_solves(paths)
            self.assertEqual([row[0] for row in table.solve_rows()], ["one", "two"])
            self.assertEqual(splice.call_args.args[1:], ("solves", table.solves()))
            paths[1].write_text(paths[1].read_text().replace("abc123", "def456"))
            with self.assertRaises(SystemExit) as stopped:
                table.keep_solves(paths)
        self.assertIn("is of another GPU, PETSc or commit", str(stopped.exception))

    def test_solves_of_the_host_are_not_kept(self):
        self.solves("--only", "^one", examples={"one": self.example()})
        with self.assertRaises(SystemExit) as stopped:
            table.keep_solves([self.folder / "solves.tsv"])
        self.assertIn("has no times of aijcusparse, gallop and evchyb on a GPU", str(stopped.exception))


class ExchangeModelTest(unittest.TestCase):
    def test_boxes(self):
        self.assertEqual([exchangemodel.boxes(n) for n in (1, 2, 4, 8, 32)], [(1, 1, 1), (2, 1, 1), (2, 2, 1), (2, 2, 2), (4, 4, 2)])
        self.assertEqual([exchangemodel.neighbors(*n) for n in ((1, 1), (2, 1), (1, 2), (1, 4), (2, 2), (4, 1))], [(0, 0), (1, 0), (0, 1), (0, 2), (1, 1), (2, 0)])

    def test_times(self):
        self.assertAlmostEqual(exchangemodel.product(200, 1, "NVLink", 8)[0], 143.68, delta=0.01)  # as measured
        self.assertEqual(exchangemodel.product(20, 8, "NVLink", 8, host=100), (100, "host"))
        far = dict.fromkeys(exchangemodel.LATENCY_US, 1000)
        per_row, none, bandwidth = exchangemodel.measured()
        offdiagonal = exchangemodel.LAUNCH_US + 3 * 100**2 * exchangemodel.GHOST_BYTES / bandwidth
        us, part = exchangemodel.product(200, 8, "NVLink", 8, latency=far)  # three faces over one link
        self.assertEqual((round(us, 6), part), (round(1000 + 3 * 100**2 * 8 / 450e3 + offdiagonal, 6), "exchange"))
        us, part = exchangemodel.product(200, 8, "NVLink", 1, latency=far)
        self.assertEqual((round(us, 6), part), (round(1000 + 3 * 100**2 * 8 / 50e3 + offdiagonal, 6), "exchange"))
        us, _ = exchangemodel.product(400, 64, "NVLink", 8, latency=dict(far, NVLink=1))  # of six faces of the box in the middle three are on other hosts
        self.assertAlmostEqual(us, 1000 + 3 * 100**2 * 8 / 50e3 + 2 * offdiagonal - exchangemodel.LAUNCH_US)

    def test_docs(self):
        page = (Path(__file__).resolve().parent.parent / "docs" / "mpi.md").read_text()
        self.assertIn(exchangemodel.table([200, 400], [1, 2, 4, 8, 16, 32, 64]), page, "the table of docs/mpi.md is that of exchangemodel.py")


def main():
    modules = [sys.modules[__name__], test_choice, test_largest, test_papers, test_sanitize, test_scaling]
    suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromModule(module) for module in modules)
    result = unittest.TextTestRunner(verbosity=2 if "-v" in sys.argv else 1).run(suite)
    bad, skipped = len(result.failures) + len(result.errors), len(result.skipped)
    print(f"{result.testsRun - bad - skipped} passed, {bad} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if bad or not result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main())
