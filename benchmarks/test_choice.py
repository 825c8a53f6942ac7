# SPDX-License-Identifier: BSD-2-Clause
"""Test choice.py by a program that prints lines as fewproducts does, with made-up times, and the fit of thresholds. Needs no GPU and no PETSc; test_bench.py runs it."""
import contextlib
import io
import sys
import unittest
from unittest import mock

import choice
import choicecases
from fakes import FakesTest

# What a matrix called KIND_NUMBER costs: its look, and a product's microseconds with aijcusparse, evchyb, csroverlap, hbp and fastload
KINDS = {
    "mesh": ((1.0, 0.1, 7, 0.2, 0.2), (20, 10, 15, 18, 20)),
    "wide": ((8.0, 0.3, 20, 0.95, 1.5), (20, 20, 20, 11, 30)),
    "hubs": ((20.0, 6.0, 9000, 0.8, 0.2), (15, 14, 16, 10, 30)),
    "web": ((3.0, 3.0, 3000, 0.4, 0.2), (9, 10, 12, 14, 30)),
}
FAKE = f"""#!{sys.executable} -SE
import sys
words = sys.argv[1:]
def option(name): return words[words.index(name) + 1]
KINDS = {KINDS!r}
name = option("-generate").split("=")[0]
if name.startswith("broken"):
    sys.exit(5)
kind, number = name.split("_")
look, times = KINDS[kind]
nnz = 20000000 + 1000000 * int(number)
print("# Gallop commit abc")
print("# matrix\\tnnz\\ttype\\tk\\tus\\tover")
best = min(times)
names = ["aijcusparse", "evchyb", "csroverlap", "hbp", "fastload"]
winner = names[times.index(best)]
rules = "csroverlap" if "-wrong" in words else winner
for what in option("-types").split(","):
    us = best if what.startswith("gallop") else times[names.index(what)]
    counts = [int(k) for k in option("-k").split(",")]
    for k in counts:
        if k == counts[-1]:
            print("Mat Object: 1 MPI process")
            if what.startswith("gallop"):
                way = "chosen by rules" if what.endswith("rules") else "measured"
                shown = "the parent's products" if (rules if what.endswith("rules") else winner) == "aijcusparse" else rules if what.endswith("rules") else winner
                print(f"  Gallop: {{shown}}; 9.0 bytes per nonzero; {{way}}")
                print(f"  [0] Gallop: {{shown}}, {{way}}")
                print(f"  Gallop: rows of {{look[0]:.1f}} entries in the mean, variation {{look[1]:.2f}}, longest {{look[2]}}; {{look[3]:.2f}} sectors of x per entry, x takes {{look[4]:.2f}} times the L2 cache")
        print(name, nnz, what, k, f"{{100 + us * k:.1f}}", "1.000", sep="\\t")
"""


class ChoiceTest(FakesTest):

    def setUp(self):
        super().setUp()
        self.program = self.fake("fewproducts", FAKE)
        self.output = self.folder / "choice.tsv"

    def run_choice(self, *words):
        said = io.StringIO()
        with mock.patch.object(sys, "argv", ["choice.py", *words]), mock.patch.dict("os.environ", {"GALLOP_GPUS": "1"}), contextlib.redirect_stdout(said):
            status = choice.main()
        return status, said.getvalue()

    def measure(self, *matrices, options=()):
        return self.run_choice("--program", self.program, "--output", str(self.output), *matrices, "--", *options)

    def test_tables(self):
        status, said = self.measure("mesh_1", "wide_2", "web_3")
        self.assertFalse(status, said)
        self.assertRegex(said, r"web_3 +23\.00 +9\.0 +10\.0 +12\.0 +14\.0 +30\.0 +9\.0 +9\.0 +the parent's products; 9.0 bytes per nonzero; chosen by rules +the parent's")
        # the best of each is 10, 11 and 9; evchyb's mean is the third root of 20/11 10/9
        self.assertRegex(said, r"evchyb +1\.264 +1\.82 wide_2")
        self.assertRegex(said, r"gallop, rules +1\.000 +1\.00")
        self.assertRegex(said, r"wide_2 .*1\.00")
        self.assertNotIn("Thresholds", said)  # too few matrices

    def test_file_gives_the_same_tables(self):
        said = self.measure("mesh_1", "wide_2", "web_3")[1]
        again = self.run_choice("--read", str(self.output))[1]
        self.assertEqual(again, said[said.index("\nMicroseconds") :])

    def test_failure(self):
        status, said = self.measure("mesh_1", "broken_2", "web_3")
        self.assertTrue(status)
        self.assertIn("broken_2 failed with exit status 5", said)
        self.assertIn("web_3", said)
        self.assertTrue(self.measure("broken_2")[0])

    def test_time_is_up(self):
        said = self.run_choice("--program", self.program, "--seconds", "-1", "mesh_1")[1]
        self.assertIn("not run, as time was up: mesh_1", said)

    def test_rules_of_the_library_are_those_of_the_script(self):
        status, said = self.measure("mesh_1", "web_3", options=["-wrong"])
        self.assertTrue(status)
        self.assertIn("mesh_1: evchyb by the rules as choicecases.py has them, by the library: csroverlap", said)

    def times(self, *matrices):
        self.measure(*matrices)
        return choicecases.Times().read(self.output)

    def test_fit(self):
        kinds = [f"{kind}_{number}" for kind in KINDS for number in range(6)]
        times = self.times(*kinds)
        first, second = choicecases.halves(times)
        self.assertEqual((len(first), len(second)), (12, 12))
        for kind in KINDS:  # each is in both halves
            self.assertEqual([sum(name.startswith(kind) for name in half) for half in (first, second)], [3, 3])
        for half, other in ((first, second), (second, first)):
            t = choicecases.fit(times, half)
            self.assertEqual({choicecases.chosen(times, matrix, t) == times.best(matrix) for matrix in other}, {True})
            self.assertTrue(0.2 < t["scattered"] < 0.8 or t["scattered"] < 0.2)
        rows = choicecases.left_out(times)
        self.assertEqual({row[3] for row in rows[1:]}, {"1.000"})

    def test_fit_without_a_kind(self):
        """What the fitted half does not have it cannot know: the other half loses what it costs."""
        times = self.times(*[f"mesh_{number}" for number in range(6)], "web_1")
        t = choicecases.fit(times, [f"mesh_{number}" for number in range(6)])
        self.assertEqual(choicecases.chosen(times, "web_1", t), "evchyb")
        self.assertAlmostEqual(choicecases.losses(times, ["web_1"], t)[0], 10 / 9, 3)


if __name__ == "__main__":
    unittest.main()
