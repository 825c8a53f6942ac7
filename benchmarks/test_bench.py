#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Test what bench.py makes of a program that crashes, hangs or errs, by a program that does so when it is asked to; its summary, the
line on progress, and examples/demo. Runs test_papers.py, too.

The last line says how many tests passed and failed, as config/test-summary does. Needs no GPU and no PETSc, and
matplotlib only for the test of pictures.
"""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import stat
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

import bench
import cases
import solves
import terminal
import test_papers

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


class BenchTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.program = self.folder / "fake"
        self.program.write_text(FAKE)
        self.program.chmod(self.program.stat().st_mode | stat.S_IXUSR)

    def bench(self, *words, timeout="60"):
        """Exit status, lines for tables, and the document."""
        tsv, document = self.folder / "out.tsv", self.folder / "out.json"
        arguments = ["bench.py", "--program", str(self.program), "--timeout", timeout, "--output", str(tsv), "--json", str(document), *words]
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
        with mock.patch.object(bench, "measure", side_effect=[bench.measure(str(self.program), "good", [], 60), KeyboardInterrupt]):
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
            reader = bench.measure(str(self.program), "wrong", ["-early"], 60, announce=announce)
            self.assertEqual([(case["what"], case["status"]) for case in reader.cases()], [("one", "ok"), ("two", "wrong"), ("three", "ok")])

    def test_crash_after_wrong_result(self):
        reader = bench.measure(str(self.program), "wrong_crash", [], 60, announce=False)
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
ours, log = "evchyb" in words, words[words.index("-log_view") + 1][1:].split(":")[0]
lines = ["Stage Name,Event Name,Rank,Count,Time"]
for rank in range(int(words[words.index("-n") + 1])):
    times = [("MatMult", 10, 0.25 if ours else 0.5), ("SNESSolve", 1, 1.0 if ours else 1.5), ("KSPSolve", 1, 1.0)]
    lines += [f"Main,{{event}},{{rank}},{{count}},{{time}}" for event, count, time in times + [("EVCHYBMult", 10, 0.2)] * (ours and "-unused" not in words)]
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
        self.assertEqual([row[-5:] for row in rows[:2]], [["0.5000", "-", "1.5000", "-", "-"], ["0.2500", "2.00", "1.0000", "1.50", "10"]])
        self.assertEqual([row[-5:] for row in rows[4:]], [["0.5000", "-", "1.0000", "-", "-"], ["0.2500", "2.00", "1.0000", "1.00", "10"]])

    def test_host(self):
        said = self.demo()
        self.assertTrue(said.startswith("This runs on the host, since there is no GPU, each case with PETSc's aij and with evchyb"))
        self.assertIn("There is no GPU here, so the host was timed", said)
        self.assertIn("./app -dll_append /there/libgallop.so -mat_type evchyb\n", said)

    def test_gpu(self):
        said = self.demo(gpus="1", petsc_options="-use_gpu_aware_mpi 0")
        self.assertIn("each case with PETSc's aijcusparse", said)
        self.assertNotIn("There is no GPU", said)
        self.assertIn("./app -dll_append /there/libgallop.so -mat_type evchyb -vec_type cuda -use_gpu_aware_mpi 0\n", said)

    def test_products_of_another(self):
        with self.assertRaises(SystemExit) as stopped:
            self.demo("-unused")
        self.assertIn("our kernel did [0] of [10] products", str(stopped.exception))


# First and later solves in 2 and 1 ms, of the second type in half the time; BiCG ends with an error, GMRES needs other iterations
FAKE_SOLVES = f"""#!{sys.executable}
import sys
words = sys.argv[1:]
if "bicg" in words:
    sys.exit("[0]PETSC ERROR: --- Error Message ---\\n[0]PETSC ERROR: Out of memory")
print("# type\\tunknowns")
print("aij\\t8\\t20\\t1\\t2\\t1\\t100\\t1e-9\\t1")
print("evchyb\\t8\\t20\\t1\\t1\\t0.5\\t" + ("150" if "gmres" in words else "104") + "\\t1e-9\\t1")
"""


class SolvesTest(unittest.TestCase):

    def test_solves(self):
        with tempfile.TemporaryDirectory() as folder:
            program, output = Path(folder, "repeatsolve"), Path(folder, "solves.tsv")
            program.write_text(FAKE_SOLVES)
            program.chmod(program.stat().st_mode | stat.S_IXUSR)
            out = io.StringIO()
            with mock.patch.object(sys, "argv", ["solves.py", "--program", str(program), "--output", str(output)]), contextlib.redirect_stdout(out), \
                    contextlib.redirect_stderr(io.StringIO()):
                status = solves.main()
            said, lines = out.getvalue(), output.read_text().splitlines()
        self.assertEqual(status, 1)
        self.assertIn("# FAILED BiCG, Jacobi, 7 points: [0]PETSC ERROR: Out of memory", said)
        self.assertIn("# FAILED GMRES, Jacobi, 27 points, 3 unknowns: iterations differ", said)
        self.assertIn("evchyb: first solves 2.00 times as fast in the geometric mean (worst 2.00), later solves 2.00 (worst 2.00)", said)
        self.assertEqual(len(lines), 1 + 2 * (len(solves.CASES) - 2))
        self.assertEqual(lines[2].split("\t"), ["CG, Jacobi, 7 points, large", "evchyb", "8", "20", "1", "1", "0.5", "104", "1e-09", "1"])


def main():
    modules = [sys.modules[__name__], test_papers]
    suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromModule(module) for module in modules)
    result = unittest.TextTestRunner(verbosity=2 if "-v" in sys.argv else 1).run(suite)
    bad, skipped = len(result.failures) + len(result.errors), len(result.skipped)
    print(f"{result.testsRun - bad - skipped} passed, {bad} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if bad or not result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main())
