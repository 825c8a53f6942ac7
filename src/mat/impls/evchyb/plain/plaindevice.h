/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* For .cu files: what the files of plain storage on the GPU share */

#include "../evchyb.h"

PETSC_INTERN PetscErrorCode EVCHYBPlainFill_Device(EVCHYB *, const EVCHYBPlain *, const GallopCSR *, PetscBool);
PETSC_INTERN cudaError_t    EVCHYBPlainOverlaps(PetscBool *);
