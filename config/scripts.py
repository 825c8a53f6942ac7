# SPDX-License-Identifier: BSD-2-Clause
"""The scripts of this folder as modules, for each other: their names have no .py."""
import importlib.machinery
import importlib.util
import sys
from pathlib import Path


def load(name):
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader(f"gallop_{name}", str(Path(__file__).with_name(name)))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module
