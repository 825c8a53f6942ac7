#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The largest problem that a GPU has room for, with PETSc's matrix type and with others.

usage: largest.py --examples FOLDER --library libgallop.so [--left GB] [--start N] [--timeout SECONDS] [-- -types a,b,... OPTION ...]

PETSc's ex14, the Bratu problem in three dimensions, is solved by CG with Jacobi on n^3 points, n a multiple of 8. Each type gets larger and larger grids, from --start (96) on, until the program
fails, or a tenth of the products are not the type's own on the GPU. Then all types solve on the grid that fills three fourths of the memory with the first type, and on the
largest of each. All memory of the GPU but --left (4) GB is taken away meanwhile, so that this is a matter of minutes. OPTIONs go to the program. `make bench-largest` calls it.
"""
import argparse
import contextlib
import ctypes
import os
import shlex
import sys
from pathlib import Path

import petscexamples
from cases import short  # which finds config/ too
from terminal import table

CASE = "snes ex14, Bratu, CG, Jacobi"
STEP = 8  # of n
OWN = 0.9  # of the products of a type of ours


@contextlib.contextmanager
def ballast(left):
    """All memory of the GPU but so many bytes is taken."""
    cuda, device, context, memory = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    for status in (cuda.cuInit(0), cuda.cuDeviceGet(ctypes.byref(device), 0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), cuda.cuCtxSetCurrent(context),
                   cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))):
        if status:
            raise OSError(f"the CUDA driver answers with error {status}")
    if free.value > left and cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(free.value - int(left))):
        raise OSError(f"no {free.value - int(left)} bytes in one piece")
    try:
        yield
    finally:
        cuda.cuDevicePrimaryCtxRelease_v2(device)


def solve(place, mat_type, n):
    """A row of what the program says, with the most memory that it took; or why there is none. One that was killed gives its memory back a little later."""
    with petscexamples.Memory().watched(place.before) as memory:
        row, _, _, error = petscexamples.once(petscexamples.EXAMPLES[CASE], mat_type, str(n), 1, place)
    if not error and row.get("own", 1) < OWN:
        error = f"{mat_type}: {row['own']:.0%} of the products are its own on the GPU"
    return error or {**row, "gpu_MB": memory.megabytes}


def largest(fits, start):
    """The largest n that fits, where all smaller ones do; 0 if none does."""
    low, high = 0, start
    while fits(high):
        low, high = high, max(high + STEP, int(1.25 * high) // STEP * STEP)
    while high - low > STEP:
        middle = (low + high) // 2 // STEP * STEP
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def measure(place, types, left, first):
    """{type: {n: row or error}}, and the largest n of each type."""
    found, most, start = {name: {} for name in types}, {}, first

    def fits(name, n):
        found[name][n] = solve(place, name, n)
        said = found[name][n] if isinstance(found[name][n], str) else f"{short(found[name][n]['gpu_MB'])} MB"
        print(f"{name}, {n}^3 points: {said}", flush=True)
        return not isinstance(found[name][n], str)

    for name in types:
        most[name] = largest(lambda n: fits(name, n), start)
        start = max(most[name], first)
    if most[types[0]]:
        row = found[types[0]][most[types[0]]]
        part = 0.75 * left / (1e6 * row["gpu_MB"] / row["unknowns"])
        for n in sorted({int(part ** (1 / 3)) // STEP * STEP, *most.values()} - {0}):
            for name in types:
                if n not in found[name]:
                    fits(name, n)
    return found, most


def show(found, most):
    rows = [["points", "type", "GPU: MB", "bytes per unknown", "solve: ms", "iterations", ""]]
    sizes = set.intersection(*(set(each) for each in found.values()))
    for n in sorted(sizes):
        for name, each in found.items():
            row = each[n]
            rows.append([f"{n}^3", name] + (["", "", "", "", row] if isinstance(row, str) else
                                            [short(row["gpu_MB"]), f"{1e6 * row['gpu_MB'] / row['unknowns']:.0f}", short(row["first_ms"]), f"{row['iterations']:.0f}",
                                             "its largest" if most[name] == n else ""]))
    return table(rows, 2)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("--examples", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--folder", default=".")
    parser.add_argument("--mpiexec", type=shlex.split, default=["mpiexec"])
    parser.add_argument("--left", type=float, default=4)
    parser.add_argument("--start", type=int, default=96)
    parser.add_argument("--timeout", type=float, default=120)
    parser.add_argument("options", nargs="*")
    place = parser.parse_args()
    types, place.gpu = petscexamples.take_types(place.options) or ["aijcusparse", "evchyb", "gallop"], True
    place.folder = Path(place.folder).resolve()
    if os.environ.get("GALLOP_GPUS", "0") == "0":
        print("The largest problem is a matter of a GPU's memory, and no GPU was found")
        return 1
    with ballast(1e9 * place.left):
        place.before = petscexamples.Memory().used()
        found, most = measure(place, types, 1e9 * place.left, place.start)
    print("\n".join(["", *show(found, most)]))
    return 0 if all(most.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
