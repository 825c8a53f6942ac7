# SPDX-License-Identifier: BSD-2-Clause
"""Test config/sanitize with a made-up `make check`, and config/kernels with made-up runs. Needs no GPU and no PETSc; test_bench.py runs it."""
import os
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

from fakes import FakesTest

CONFIG = Path(__file__).resolve().parent.parent / "config"
sys.path.insert(0, str(CONFIG))
from scripts import load

SANITIZE = CONFIG / "sanitize"

# In the place of config/with-sanitizer: runs of "bad" fail, with racecheck also those of "race"; "slow" does not end
FAKE_WITH_SANITIZER = f"""#!{sys.executable}
import os, pathlib, subprocess, sys
flag, number, program, *words = sys.argv[1:]
name = pathlib.Path(program).name
pathlib.Path(__file__).parent.joinpath("gpus").open("a").write(os.environ.get("CUDA_VISIBLE_DEVICES", "any") + "\\n")
pathlib.Path(__file__).parent.joinpath("asked").open("a").write(" ".join([os.environ["SANITIZER"], flag, number, name, *words]) + "\\n")
pathlib.Path("written").write_text("in a folder of its own")
if name == "slow":
    subprocess.run(["sleep", "60"])
if name == "bad" or (name == "race" and os.environ["SANITIZER"] == "racecheck"):
    print("found something")
    sys.exit(23)
"""

# In the place of config/with-kernels: part 2 launches two kernels, others one
FAKE_WITH_KERNELS = f"""#!{sys.executable}
import pathlib, sys, tempfile
flag, number, program, *words = sys.argv[1:]
folder = pathlib.Path(tempfile.mkdtemp(prefix="run.", dir=pathlib.Path(__file__).parent))
folder.joinpath("command").write_text("\\n".join([number, program, *words]) + "\\n")
folder.joinpath("ended").write_text("0 100000000\\n")
folder.joinpath("launched").write_text("_Z5Firsti\\n" + "_Z6Secondi\\n" * (words[-1] == "2"))
"""

# In the place of compute-sanitizer: its log is the file that SAID names, the program runs and then it exits with 23
FAKE_SANITIZER = f"""#!{sys.executable}
import os, pathlib, subprocess, sys
words = sys.argv[1:]
pathlib.Path(__file__).parent.joinpath("asked").write_text(" ".join(words))
pathlib.Path(words[words.index("--log-file") + 1].replace("%p", "7")).write_text(pathlib.Path(os.environ["SAID"]).read_text())
sys.exit(23)
"""
REPORT = """========= Uninitialized __global__ memory read of size 4 bytes
=========     at void {kernel}(int *)+0x200
=========     by thread (0,0,0) in block (0,0,0)
=========         Host Frame: cuLaunchKernel [0x1] in libcuda.so.1
=========         Host Frame: {caller} [0x2] in libcusparse.so.12
=========
"""

# Leaves the counts that PETSc's harness leaves: "bad" fails, with racecheck also "race"; "skipped" and "none" do not run; "slow" does not end
FAKE_CHECK = f"""#!{sys.executable}
import os, pathlib, subprocess, sys
folder, tests = pathlib.Path(__file__).parent, next(word for word in sys.argv if word.startswith("TESTS="))[6:].split()
folder.joinpath("asked").open("a").write(os.environ["SANITIZER"] + " " + " ".join(tests) + "\\n")
for name in ("counts", "skipped"):
    folder.joinpath(name).mkdir(exist_ok=True)
    for path in folder.joinpath(name).iterdir():
        path.unlink()
for name in tests:
    if name == "slow":
        subprocess.run(["sleep", "60"])
    failed = name == "bad" or (name == "race" and os.environ["SANITIZER"] == "racecheck")
    if name == "skipped":
        folder.joinpath("skipped", name).write_text("no Python")
    if name != "none":
        folder.joinpath("counts", name + ".counts").write_text(f"total 1\\nsuccess {{int(not failed)}}\\nfailed {{int(failed)}}\\n" + f"failures {{name}}\\n" * failed)
"""


class SanitizeTest(FakesTest):

    def setUp(self):
        super().setUp()
        self.check = self.fake("check", FAKE_CHECK)
        self.seen = self.folder / "seen.tsv"

    def run_sanitize(self, tests, *words, commit="abc123", about="real double"):
        """The exit status, what was printed, and which tests each tool was asked to look at."""
        asked = self.folder / "asked"
        asked.unlink(missing_ok=True)
        command = [str(SANITIZE), "--seen", str(self.seen), "--about", about, "--commit", commit, "--counts", str(self.folder), *words, "--", self.check]
        done = subprocess.run(command, input=tests, capture_output=True, text=True)
        return done.returncode, done.stdout, asked.read_text().splitlines() if asked.exists() else []

    def rows(self):
        return [tuple(line.split("\t")) for line in self.seen.read_text().splitlines()[1:]]

    def test_what_is_clean_is_kept_and_left_out(self):
        status, said, asked = self.run_sanitize("a bad race\nskipped none\n", "memcheck", "racecheck")
        self.assertEqual((status, asked), (1, ["memcheck a bad race skipped none", "racecheck a bad race skipped none"]))
        self.assertIn("memcheck: 0 seen clean before, 2 clean now, 1 failed, 2 not reached or skipped", said)
        self.assertIn("racecheck: 0 seen clean before, 1 clean now, 2 failed, 2 not reached or skipped", said)
        self.assertEqual(self.rows(), [("real double", *row, "abc123") for row in (("memcheck", "a"), ("memcheck", "race"), ("racecheck", "a"))])
        status, said, asked = self.run_sanitize("a race", "memcheck", "racecheck", commit="def456")
        self.assertEqual((status, asked), (1, ["racecheck race"]))
        self.assertIn("memcheck: 2 seen clean before, 0 clean now, 0 failed, 0 not reached or skipped", said)
        status, _, asked = self.run_sanitize("a", "memcheck", about="real single")
        self.assertEqual((status, asked), (0, ["memcheck a"]))
        self.assertEqual(len(self.rows()), 4)

    def test_again(self):
        self.run_sanitize("a race", "racecheck", "memcheck")
        self.seen.write_text(self.seen.read_text() + "real double\tracecheck\trace\told\n")
        status, _, asked = self.run_sanitize("a race", "--again", "racecheck", commit="def456")
        self.assertEqual((status, asked), (1, ["racecheck a race"]))
        self.assertEqual(self.rows(), [("real double", "memcheck", "a", "abc123"), ("real double", "memcheck", "race", "abc123"), ("real double", "racecheck", "a", "def456")])

    def test_ends_in_time_and_keeps_what_it_has(self):
        start = time.monotonic()
        status, said, asked = self.run_sanitize("a slow b", "--minutes", "0.03", "memcheck", "racecheck")
        self.assertLess(time.monotonic() - start, 30)
        self.assertEqual((status, asked), (0, ["memcheck a slow b"]))
        self.assertIn("memcheck: 0 seen clean before, 1 clean now, 0 failed, 2 not reached or skipped", said)
        self.assertIn("racecheck: 0 seen clean before, 0 clean now, 0 failed, 3 not reached or skipped", said)
        self.assertEqual(self.rows(), [("real double", "memcheck", "a", "abc123")])

    def test_counts_of_other_runs_say_nothing(self):
        self.run_sanitize("a", "memcheck")
        self.fake("check", f"#!{sys.executable}\nimport sys\nsys.exit('it does not compile')\n")
        _, said, _ = self.run_sanitize("a", "synccheck")
        self.assertIn("synccheck: 0 seen clean before, 0 clean now, 0 failed, 1 not reached or skipped", said)
        self.assertEqual(len(self.rows()), 1)

    def test_each_gpu(self):
        runs, gpus = self.folder / "runs.txt", self.folder / "gpus"
        runs.write_text("-n 2 mat/a\n-n 1 mat/b\n-n 1 mat/c\n")
        self.check = self.fake("with-sanitizer", FAKE_WITH_SANITIZER)
        for environment, expected in (({"GALLOP_GPUS": "1"}, ["any"]), ({"GALLOP_GPUS": "2"}, ["0", "1"]), ({"GALLOP_GPUS": "2", "CUDA_VISIBLE_DEVICES": "4,7"}, ["4", "7"])):
            with mock.patch.dict(os.environ, environment), mock.patch.dict(os.environ):
                if "CUDA_VISIBLE_DEVICES" not in environment:
                    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
                self.assertEqual(self.run_sanitize("", "--again", "--runs", str(runs), "memcheck", "synccheck")[0], 0)
            self.assertEqual(set(gpus.read_text().split()), set(expected))
            gpus.unlink()

    def test_as_many_as_have_memory(self):
        places, cores = load("sanitize").Places, len(os.sched_getaffinity(0))
        self.assertEqual([places(memory).all for memory in (0, 1, 1 << 60)], [cores, cores, 1])

    def test_nothing_is_kept_of_some_kernels(self):
        with mock.patch.dict(os.environ, SANITIZER_FLAGS="--kernel-regex kns=Some"):
            status, said, _ = self.run_sanitize("a", "memcheck")
        self.assertEqual(status, 0)
        self.assertIn("memcheck: 0 seen clean before, 1 clean now, 0 failed, 0 not reached or skipped", said)
        self.assertFalse(self.seen.exists())

    def test_no_test(self):
        self.assertEqual(self.run_sanitize("", "memcheck")[0], 1)
        self.assertFalse(self.seen.exists())

    def test_runs(self):
        runs, check = self.folder / "runs.txt", self.fake("with-sanitizer", FAKE_WITH_SANITIZER)
        runs.write_text("# runs\n-n 1 mat/a -words 'of two'\n-n 2 mat/race\n-n 64 bad\n")
        self.check = check
        status, said, asked = self.run_sanitize("", "--runs", str(runs), "memcheck", "racecheck")
        self.assertEqual((status, sorted(asked)), (1, sorted(f"{tool} {run}" for tool in ("memcheck", "racecheck") for run in ("-n 1 a -words of two", "-n 2 race", "-n 64 bad"))))
        self.assertRegex(said, r"not ok -n 64 bad \(memcheck, \d+ s\)\nfound something")
        self.assertRegex(said, r"(?m)^ok -n 2 mat/race \(memcheck, \d+ s\)$")
        self.assertFalse(Path("written").exists())
        self.assertIn("racecheck: 0 seen clean before, 1 clean now, 2 failed, 0 not reached or skipped", said)
        one, two = "-n 1 mat/a -words 'of two'", "-n 2 mat/race"
        self.assertEqual(self.rows(), [("real double", *row, "abc123") for row in (("memcheck", one), ("memcheck", two), ("racecheck", one))])
        self.assertEqual(self.run_sanitize("", "--runs", str(runs), "memcheck")[2], ["memcheck -n 64 bad"])
        _, said, asked = self.run_sanitize("", "--runs", str(runs), "initcheck")
        self.assertEqual(asked, ["initcheck -n 1 a -words of two"])
        self.assertIn("initcheck: 0 seen clean before, 1 clean now, 0 failed, 0 not reached or skipped", said)
        runs.write_text("-n 1 slow\n-n 1 b\n")
        start = time.monotonic()
        status, said, _ = self.run_sanitize("", "--runs", str(runs), "--minutes", "0.05", "memcheck")
        self.assertLess(time.monotonic() - start, 30)
        self.assertEqual(status, 0)
        self.assertIn("1 not reached or skipped", said)
        status, said, _ = self.run_sanitize("", "--runs", str(runs), "--timeout", "1", "memcheck")
        self.assertEqual(status, 1)
        self.assertIn("not ok -n 1 slow", said)


class WithSanitizerTest(FakesTest):

    def run_with(self, tool, *said):
        """The exit status and what was shown, where the tool found something and said so."""
        text = self.folder / "said"
        text.write_text("========= COMPUTE-SANITIZER\n" + "".join(said))
        self.fake("compute-sanitizer", FAKE_SANITIZER)
        mpiexec = self.fake("mpiexec", "#!/bin/sh\nshift 2\nexec \"$@\"\n")
        environment = dict(os.environ, SANITIZER=tool, SANITIZER_MPIEXEC=mpiexec, SAID=str(text), PATH=f"{self.folder}:{os.environ['PATH']}")
        done = subprocess.run([str(CONFIG / "with-sanitizer"), "-n", "1", "program", "-option"], env=environment, capture_output=True, text=True)
        return done.returncode, done.stderr

    def test_what_is_known(self):
        """initcheck: what cuSPARSE's SpGEMM reads is passed over, with all else a program fails."""
        known = REPORT.format(kernel="cusparse::partition_kernel", caller="cusparseSpGEMM_copy")
        ours = REPORT.format(kernel="ProductKernel", caller="MatMult")
        self.assertEqual(self.run_with("initcheck", known, known, "========= ERROR SUMMARY: 2 errors\n"), (0, ""))
        self.assertTrue((self.folder / "asked").read_text().endswith(" program -option"))
        status, shown = self.run_with("initcheck", known, ours, known, "========= ERROR SUMMARY: 3 errors\n")
        self.assertEqual((status, shown.count("Uninitialized"), "ProductKernel" in shown), (23, 1, True))
        self.assertNotIn("partition_kernel", shown)
        for line in ("========= Target application returned an error\n", "========= ERROR SUMMARY: 900 errors were not printed. Use --print-limit option to adjust the number of printed errors\n"):
            self.assertEqual(self.run_with("initcheck", known, "========= ERROR SUMMARY: 1 error\n", line), (23, line))
        self.assertEqual(self.run_with("initcheck", ours[:-len("=========\n")])[0], 23)

    def test_other_tools_pass_over_nothing(self):
        known = REPORT.format(kernel="cusparse::partition_kernel", caller="cusparseSpGEMM_copy")
        for tool in ("memcheck", "racecheck", "synccheck"):
            status, shown = self.run_with(tool, known)
            self.assertEqual(status, 23)
            self.assertIn("partition_kernel", shown)


class KernelsTest(FakesTest):

    def run_kernels(self, *runs, with_kernels=()):
        """Of runs (processes, words, status, milliseconds, kernels launched): the exit status, what was printed, and the list."""
        for k, (processes, words, status, milliseconds, launched) in enumerate(runs):
            folder = self.folder / f"run.{k}"
            folder.mkdir()
            program, *rest = words.split()
            (folder / "command").write_text("\n".join([str(processes), str((self.folder / program).resolve()), *rest]) + "\n")
            (folder / "ended").write_text(f"{status} {milliseconds}000000\n")
            if launched:
                (folder / "launched").write_text("\n".join(launched.split()) + "\n")
                (folder / "launched.all").write_text("_Z5Firsti\n_Z6Secondi\n_Z5Thirdi\n_Z5Neveri\n")
        chosen = self.folder / "chosen.txt"
        command = [str(CONFIG / "kernels"), "--programs", str(self.folder), "--list", str(chosen), *(["--with", with_kernels[0]] if with_kernels else []), str(self.folder), *with_kernels[1:]]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.returncode, done.stdout, chosen.read_text().splitlines()[1:] if chosen.exists() else []

    def test_each_kernel_by_few_runs(self):
        status, said, chosen = self.run_kernels((1, "mat/a -k 1", 0, 100, "_Z5Firsti"), (1, "mat/a -k 2", 0, 100, "_Z5Firsti _Z6Secondi"), (4, "mat/a -k 2", 0, 100, "_Z5Firsti _Z6Secondi"),
                                                (1, "mat/b", 0, 60000, "_Z5Firsti _Z6Secondi _Z5Thirdi"), (1, "mat/c", 0, 100, "_Z5Thirdi"), (1, "mat/d", 0, 10, ""))
        self.assertEqual((status, chosen), (0, ["-n 1 mat/a -k 2", "-n 1 mat/c"]))
        self.assertIn("3 of 4 kernels are launched by 6 runs; 2 of these launch 3", said)
        self.assertRegex(said, r"launched by no test: (Never\(int\)|_Z5Neveri)\n")

    def test_parts_of_runs(self):
        """Of a long run a part that launches what the run does takes its place; where none does, and where it is short, the run stays."""
        fake = self.fake("with-kernels", FAKE_WITH_KERNELS)
        status, _, chosen = self.run_kernels((1, "mat/a -k 1", 0, 33000, "_Z5Firsti _Z6Secondi"), (1, "mat/b", 0, 3000, "_Z5Thirdi"), with_kernels=[fake, "mat/a", "mat/b"])
        self.assertEqual((status, chosen), (0, ["-n 1 mat/a -k 1 -parts 4 -part 2", "-n 1 mat/b"]))
        self.assertEqual(len(list(self.folder.glob("run.*"))), 2 + 4)

    def test_runs_that_cannot_be_repeated(self):
        status, said, chosen = self.run_kernels((1, "bad", 1, 100, "_Z5Firsti"), (1, "a -f /tmp/x", 0, 100, "_Z6Secondi"), (2, "../elsewhere", 0, 100, "_Z6Secondi"), (2, "c", 0, 100, "_Z5Thirdi"))
        self.assertEqual((status, chosen), (0, ["-n 2 c"]))
        self.assertRegex(said, r"launched by no test that can be run alone: (First\(int\)|_Z5Firsti)\n")

    def test_runs_are_kept(self):
        """Of several processes too, for which config/mpiexec starts GALLOP_MPIEXEC, as which make gives the script itself."""
        mpiexec, runs = self.fake("mpiexec", f"#!/bin/sh\necho $GALLOP_KERNELS > {self.folder}/asked\n"), self.folder / "runs"
        runs.mkdir()
        script = str(CONFIG / "with-kernels")
        environment = dict(os.environ, GALLOP_LAUNCHES=str(runs), GALLOP_LAUNCHES_NOTED_BY="", GALLOP_LAUNCHES_MPIEXEC=mpiexec, GALLOP_MPIEXEC=script)
        subprocess.run([script, "-n", "2", "/bin/true", "-n", "of two\\t"], env=environment, check=True, timeout=20)
        folder, = runs.iterdir()
        self.assertEqual((folder / "command").read_text().split("\n"), ["2", os.path.realpath("/bin/true"), "-n", "of two\\t", ""])
        self.assertEqual((folder / "ended").read_text().split()[0], "0")
        self.assertEqual((self.folder / "asked").read_text().strip(), str(folder / "launched"))

    def test_nothing_was_launched(self):
        self.assertEqual(self.run_kernels((1, "a", 0, 100, ""))[0], 1)
