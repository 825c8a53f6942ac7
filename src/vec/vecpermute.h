/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What permuting vectors asks of the GPU */

#include <petscsys.h>

PETSC_INTERN PetscErrorCode GallopDevicePermute(PetscInt n, const PetscInt order[], PetscBool inverse, const PetscScalar x[], PetscScalar y[]);
