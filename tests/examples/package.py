# SPDX-License-Identifier: BSD-2-Clause
"""Use the installed Python package as a program does; the test tests/examples/pip runs this. Argument: the repository's root."""
import os
import re
import sys
from pathlib import Path

import petsc4py
petsc4py.init(sys.argv[:1])
from petsc4py import PETSc  # noqa: E402
import petsc_gallop  # noqa: E402


def check(condition, text):
    if not condition:
        sys.exit(f"package.py: {text}")


def message(function, *args):
    """What the function's error says."""
    try:
        function(*args)
    except PETSc.Error as error:
        return str(error)
    return "no error"


root = Path(sys.argv[1])
header = (root / "include" / "petscgallop.h").read_text()
numbers = ".".join(re.findall(r"^#define GALLOP_VERSION_\w+ +(\d+)", header, re.M))
check(petsc_gallop.version == numbers, f"version {petsc_gallop.version}, in the header {numbers}")

petsc_gallop.load()
petsc_gallop.load()
file = root / "examples" / "matrices" / "bcsstk16.mtx.gz"
matrix = petsc_gallop.load_matrix_market(file)
plain = petsc_gallop.load_matrix_market(str(file), "aij")
x, product = matrix.createVecs()
x.setRandom()
for _ in range(3):
    matrix.mult(x, product)
expected = plain.createVecLeft()
y = plain.createVecRight()
y.setArray(x.getArray())
plain.mult(y, expected)
norm = expected.norm()
expected.setArray(expected.getArray() - product.getArray())
check(norm > 0 and expected.norm() <= 1e-6 * norm, f"products differ by {expected.norm()} of {norm}")

blocks = matrix.comm.size > 1  # each process has two then
counts = petsc_gallop.statistics(matrix)
place = "device" if os.environ.get("GALLOP_GPUS", "0") != "0" else "host"
check(matrix.type.endswith("aijevchyb"), f"type {matrix.type}")
check(counts["builds"] == 1 + blocks and counts[f"products_{place}"] == 3 * (1 + blocks) and counts["fallbacks"] == 0, f"{place}: {counts}")
declared = re.search(r"typedef struct \{([^}]*)\} MatGallopStatistics;", header).group(1)
check(list(counts) == re.findall(r"\w+(?=[,;])", declared), f"fields {list(counts)}, in the header {declared}")

missing = message(petsc_gallop.load_matrix_market, "/nowhere.mtx")
check("/nowhere.mtx is no file that can be read" in missing, missing)
other = message(petsc_gallop.statistics, plain)
check("Not for matrix type" in other, other)
