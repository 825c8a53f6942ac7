# SPDX-License-Identifier: BSD-2-Clause
"""Test config/sanitize with a made-up `make check`. Needs no GPU and no PETSc; test_bench.py runs it."""
import os
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

from fakes import FakesTest

SANITIZE = Path(__file__).resolve().parent.parent / "config" / "sanitize"

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

    def test_nothing_is_kept_of_some_kernels(self):
        with mock.patch.dict(os.environ, SANITIZER_FLAGS="--kernel-regex kns=Some"):
            status, said, _ = self.run_sanitize("a", "memcheck")
        self.assertEqual(status, 0)
        self.assertIn("memcheck: 0 seen clean before, 1 clean now, 0 failed, 0 not reached or skipped", said)
        self.assertFalse(self.seen.exists())

    def test_no_test(self):
        self.assertEqual(self.run_sanitize("", "memcheck")[0], 1)
        self.assertFalse(self.seen.exists())
