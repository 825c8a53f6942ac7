/* SPDX-License-Identifier: BSD-2-Clause */
/* Units of a PetscSF: MPI's types, of which those are ours that consist of real numbers one after the other */

#include <gallop/exchangeimpl.h>
#include "gallopsf.h"

static PetscErrorCode TypeFree(MPI_Datatype *type)
{
  MPIU_Count  n[4];
  PetscMPIInt combiner, m[3];

  PetscFunctionBegin;
#if PetscDefined(HAVE_MPI_LARGE_COUNT) && !PetscDefined(HAVE_MPIUNI)
  (void)m;
  PetscCallMPI(MPI_Type_get_envelope_c(*type, &n[0], &n[1], &n[2], &n[3], &combiner));
#else
  (void)n;
  PetscCallMPI(MPI_Type_get_envelope(*type, &m[0], &m[1], &m[2], &combiner));
#endif
  if (combiner != MPI_COMBINER_NAMED) PetscCallMPI(MPI_Type_free(type));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The type that a copy, or several units one after the other, are made of, and how many; 0 for other types */
static PetscErrorCode Unwrap(MPI_Datatype unit, MPI_Datatype *inner, PetscInt64 *count)
{
  PetscMPIInt combiner;
  int         ints[1] = {1};
  MPI_Aint    aints[1];

  PetscFunctionBegin;
  *count = 0;
#if PetscDefined(HAVE_MPI_LARGE_COUNT) && !PetscDefined(HAVE_MPIUNI)
  {
    MPIU_Count n[4], counts[1] = {1};

    PetscCallMPI(MPI_Type_get_envelope_c(unit, &n[0], &n[1], &n[2], &n[3], &combiner));
    if (combiner != MPI_COMBINER_DUP && combiner != MPI_COMBINER_CONTIGUOUS) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCallMPI(MPI_Type_get_contents_c(unit, n[0], n[1], n[2], n[3], ints, aints, counts, inner));
    *count = n[2] ? (PetscInt64)counts[0] : ints[0];
  }
#else
  {
    PetscMPIInt n[3];

    PetscCallMPI(MPI_Type_get_envelope(unit, &n[0], &n[1], &n[2], &combiner));
    if (combiner != MPI_COMBINER_DUP && combiner != MPI_COMBINER_CONTIGUOUS) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCallMPI(MPI_Type_get_contents(unit, n[0], n[1], n[2], ints, aints, inner));
    *count = ints[0];
  }
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PetscSFGallopCountReals - Real numbers that a unit consists of; 0 where it has something else, or too many */
PetscErrorCode PetscSFGallopCountReals(MPI_Datatype unit, PetscInt64 *reals)
{
  PetscFunctionBegin;
  if (unit == MPIU_SCALAR) *reals = GALLOP_IPC_SCALAR;
  else if (unit == MPIU_REAL) *reals = 1;
  else {
    MPI_Datatype inner;
    PetscInt64   count, each;

    *reals = 0;
    PetscCall(Unwrap(unit, &inner, &count));
    if (!count) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall(PetscSFGallopCountReals(inner, &each));
    PetscCall(TypeFree(&inner));
    if (count <= PETSC_INT32_MAX && each * count <= PETSC_INT32_MAX) *reals = each * count;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
