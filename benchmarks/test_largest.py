# SPDX-License-Identifier: BSD-2-Clause
"""Test largest.py with made-up runs. Needs no GPU and no PETSc; test_bench.py runs it."""
import contextlib
import io
import sys
import unittest
from unittest import mock

import largest

BYTES = {"aijcusparse": 200, "evchyb": 160}  # per unknown, beside 500 MB


class LargestTest(unittest.TestCase):

    def run_largest(self, *words, left=4.0, own=1.0, gpus="1"):
        asked, said = [], io.StringIO()

        def once(example, mat_type, size, ranks, place):
            n = int(size)
            asked.append((mat_type, n))
            if n**3 * BYTES[mat_type] + 5e8 > 1e9 * left:
                return None, None, None, f"{mat_type}: out of memory"
            return {"unknowns": n**3, "first_ms": 10.0, "iterations": 7.0, "own": own if mat_type == "evchyb" else 1.0}, None, 1.0, None

        class Memory:
            @contextlib.contextmanager
            def watched(self, before):
                yield self

            def used(self):
                return 0.0

            @property
            def megabytes(self):
                mat_type, n = asked[-1]
                return (n**3 * BYTES[mat_type] + 5e8) / 1e6

        arguments = ["largest.py", "--examples", "e", "--library", "l", "--left", str(left), *words, "--", "-types", "aijcusparse,evchyb"]
        with mock.patch.object(largest.petscexamples, "once", once), mock.patch.object(largest.petscexamples, "Memory", Memory), mock.patch.object(sys, "argv", arguments), \
                mock.patch.object(largest, "ballast", lambda left: contextlib.nullcontext()), mock.patch.dict("os.environ", {"GALLOP_GPUS": gpus}), contextlib.redirect_stdout(said):
            status = largest.main()
        return status, said.getvalue(), asked

    def test_largest(self):
        status, said, asked = self.run_largest()
        self.assertFalse(status)
        # 17.5 and 21.9 million unknowns
        self.assertRegex(said, r"256\^3 +aijcusparse .*its largest")
        self.assertRegex(said, r"272\^3 +evchyb .*its largest")
        self.assertRegex(said, r"272\^3 +aijcusparse +aijcusparse: out of memory")
        self.assertRegex(said, r"\n232\^3 +aijcusparse +2997 +240 +10")  # three fourths
        self.assertLess(len(asked), 25)

    def test_start_too_large(self):
        self.assertRegex(self.run_largest("--start", "512")[1], r"256\^3 +aijcusparse .*its largest")

    def test_products_of_another(self):
        status, said, _ = self.run_largest(own=0.5)
        self.assertTrue(status)
        self.assertIn("evchyb: 50% of the products are its own on the GPU", said)

    def test_without_gpu(self):
        status, said, asked = self.run_largest(gpus="0")
        self.assertTrue(status)
        self.assertIn("no GPU was found", said)
        self.assertFalse(asked)


if __name__ == "__main__":
    unittest.main()
