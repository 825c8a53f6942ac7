/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What permuting vectors asks of the GPU */

#include <petscsys.h>

struct CUstream_st; /* what a cudaStream_t points to */
PETSC_INTERN PetscErrorCode GallopDevicePermuteOn(struct CUstream_st *, PetscInt n, const PetscInt order[], PetscBool inverse, const PetscScalar x[], PetscScalar y[]);
PETSC_INTERN PetscErrorCode GallopDevicePermute(PetscInt n, const PetscInt order[], PetscBool inverse, const PetscScalar x[], PetscScalar y[]);
