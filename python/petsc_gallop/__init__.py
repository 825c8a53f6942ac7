# SPDX-License-Identifier: BSD-2-Clause
"""Gallop's matrix types for petsc4py.

    import petsc_gallop
    petsc_gallop.load()
    matrix = petsc_gallop.load_matrix_market("matrix.mtx.gz")
    ...
    print(petsc_gallop.statistics(matrix))

After load() the types are known to PETSc: matrix.setType("evchyb") and the option -mat_type evchyb work.
"""
import ctypes
import os
from importlib.metadata import version as _version

__all__ = ["LIBRARY", "load", "load_matrix_market", "statistics", "version"]

version = __version__ = _version("petsc-gallop")

#: The library that load() loads; the option -dll_append takes it too
LIBRARY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libgallop.so")

_library = None
_ADVICE = "Install petsc-gallop again with PETSC_DIR and PETSC_ARCH of petsc4py's PETSc"


class _Statistics(ctypes.Structure):
    """MatGallopStatistics of petscgallop.h"""
    _fields_ = [(name, ctypes.c_int64) for name in (
        "builds", "refreshes", "products_host", "products_device", "fallbacks",
        "dense_builds", "dense_refreshes", "dense_products_host", "dense_products_device", "dense_fallbacks",
        "transpose_builds", "transpose_refreshes", "exchanges_ipc", "exchanges_nccl", "exchanges_sf",
        "csr_uploads", "csr_releases", "csr_maps")]


def _petsc():
    try:
        from petsc4py import PETSc
    except ImportError as error:
        raise ImportError("petsc_gallop needs petsc4py, for the PETSc that it was compiled for: " + str(error)) from error
    return PETSc


def _call(function, *args):
    """Call a function of PETSc's kind, and raise its error with PETSc's message."""
    ierr = function(*args)
    if ierr:
        capsule = _petsc().__pyx_capi__["PyPetscError_Set"]  # of petsc4py's interface for C
        name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
        pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
        ctypes.PYFUNCTYPE(None, ctypes.c_int)(pointer(capsule, name(capsule)))(ierr)


def load():
    """Register the matrix types with petsc4py's PETSc, which is initialized if it is not yet.

    Give PETSc its options before: petsc4py.init(sys.argv). All processes call it, as PETSc's finalization is collective then. A second call does nothing.
    """
    global _library
    if _library:
        return
    PETSc = _petsc()
    if not PETSc.Sys.isInitialized() or PETSc.Sys.isFinalized():
        raise RuntimeError("petsc_gallop.load(): PETSc is not running, it was finalized or not initialized")
    running = ctypes.CDLL(PETSc.__file__)  # symbols are looked up in the libraries that it is linked to
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise ImportError(f"petsc_gallop.load(): {LIBRARY} cannot be loaded: {error}. {_ADVICE}") from error
    this, other = (ctypes.c_int.in_dll(which, "PetscInitializeCalled") for which in (running, library))
    if ctypes.addressof(this) != ctypes.addressof(other):
        raise ImportError(f"petsc_gallop.load(): {LIBRARY} is linked to another PETSc than petsc4py, which runs PETSc "
                          f"{'.'.join(map(str, PETSc.Sys.getVersion()))}. {_ADVICE}")
    _call(library.GallopInitializePackage)
    found = ctypes.c_void_p()
    _call(running.PetscFunctionListFind_Private, ctypes.c_void_p.in_dll(running, "MatList"), b"seqaijevchyb", ctypes.byref(found))
    if not found:  # the library has printed what differs
        raise ImportError(f"petsc_gallop.load(): {LIBRARY} was compiled for a PETSc that petsc4py's differs from, in version, "
                          f"integers, scalars or CUDA. {_ADVICE}")
    library.MatGallopLoadMatrixMarket.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    library.MatGallopGetStatistics.argtypes = [ctypes.c_void_p, ctypes.POINTER(_Statistics)]
    _library = library


def load_matrix_market(name, type="evchyb", comm=None):
    """The matrix in a Matrix Market file, .mtx or .mtx.gz, as a petsc4py Mat; all processes of comm call it. Where these are not all processes, all call load() before.

    Its type is the one given, unless the option -mat_type names another.
    """
    load()
    PETSc = _petsc()
    matrix = PETSc.Mat().create(comm)
    matrix.setType(type)
    matrix.setFromOptions()
    _call(_library.MatGallopLoadMatrixMarket, matrix.handle, os.fsencode(name))
    return matrix


def statistics(matrix):
    """What a Gallop matrix has done on this process since it was created, a dict of the fields of MatGallopStatistics."""
    load()
    counts = _Statistics()
    _call(_library.MatGallopGetStatistics, matrix.handle, ctypes.byref(counts))
    return {name: getattr(counts, name) for name, _ in counts._fields_}
