#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A linear system solved from Python, with a matrix whose products the library computes.

petsc4py has to be that of the PETSc that the library was compiled for; config/petsc4py finds or builds it, and prints the
command that runs Python with it:

  export GALLOP_LIB=/path/to/libgallop.so     # make prints it
  mpiexec -n 2 $(config/petsc4py) examples/solve.py -side 300 -ksp_type cg -pc_type jacobi

Options of PETSc work as in C: -mat_type aij takes PETSc's own matrix instead. The last lines show how a Python program sees
who computed the products: by the type of the matrix, and by the log event EVCHYBMult. The program ends with an error if the
solver does not converge or the library did not compute the products.
"""
import os
import sys

import petsc4py

# before PETSc is imported; with -mat_gallop_build pays, the default, AIJ would compute the first products, until they have paid for a format
petsc4py.init([sys.argv[0], "-dll_append", os.environ["GALLOP_LIB"], "-mat_gallop_build", "first"] + sys.argv[1:])
from petsc4py import PETSc  # noqa: E402


def create_matrix(side):
    """The five-point stencil on a square."""
    matrix = PETSc.Mat().create()
    matrix.setSizes((side * side, side * side))
    matrix.setType("evchyb")
    matrix.setFromOptions()
    matrix.setPreallocationNNZ(5)
    for row in range(*matrix.getOwnershipRange()):
        x, y = row % side, row // side
        matrix[row, row] = 4.0
        if x > 0:
            matrix[row, row - 1] = -1.0
        if x < side - 1:
            matrix[row, row + 1] = -1.0
        if y > 0:
            matrix[row, row - side] = -1.0
        if y < side - 1:
            matrix[row, row + side] = -1.0
    matrix.assemble()
    return matrix


def main():
    PETSc.Log.begin()
    matrix = create_matrix(PETSc.Options().getInt("side", 50))

    # a right-hand side with a known solution: x = 1. The vectors live on the GPU where there is one.
    x, b = matrix.createVecs()
    x.set(1.0)
    matrix.mult(x, b)
    x.set(0.0)

    solver = PETSc.KSP().create()
    solver.setOperators(matrix)
    solver.setFromOptions()
    solver.solve(b, x)
    if not solver.is_converged:
        sys.exit(f"not solved after {solver.its} iterations: reason {solver.reason}")
    residual = b.duplicate()
    matrix.mult(x, residual)
    residual.axpy(-1.0, b)
    x.shift(-1.0)
    PETSc.Sys.Print(f"iterations {solver.its} residual {residual.norm() / b.norm():g} "
                    f"error {x.norm(PETSc.NormType.INFINITY):g}")

    products = PETSc.Log.Event("MatMult").getPerfInfo()["count"]
    ours = PETSc.Log.Event("EVCHYBMult").getPerfInfo()["count"]
    PETSc.Sys.Print(f"matrix {matrix.type}, vectors {x.type}: {products} products, {ours} by the library's code on this "
                    "process, which counts the blocks of a product")
    if matrix.type.endswith("evchyb") and ours < products:
        sys.exit(f"the library computed {ours} of {products} products")


main()
