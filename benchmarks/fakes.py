# SPDX-License-Identifier: BSD-2-Clause
"""What the tests here share: a folder of their own, with made-up programs in it."""
import stat
import tempfile
import unittest
from pathlib import Path


class FakesTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def fake(self, name, text):
        """The path of a program with that text."""
        path = self.folder / name
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)
