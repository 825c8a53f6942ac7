/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include <petscsf.h>

PETSC_INTERN PetscErrorCode PetscSFGallopCountReals(MPI_Datatype, PetscInt64 *);
