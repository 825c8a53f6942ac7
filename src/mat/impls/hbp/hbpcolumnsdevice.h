/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* HBP's column blocks on the GPU, for .cu files only: hbpcolumnsbuild.cu makes them of CSR arrays, hbpcolumns.cu has products */

#include "hbpdevice.h"

PETSC_INTERN PetscErrorCode HBPColumnsBuild_Device(HBP *, const GallopCSR *, const HBPSample *, PetscCount, cudaStream_t);
PETSC_INTERN PetscErrorCode HBPColumnsRefresh_Device(HBPColumns *, const GallopCSR *);
PETSC_INTERN PetscErrorCode HBPColumnsPlan(HBPColumns *, const HBPOptions *);
PETSC_INTERN PetscErrorCode HBPColumnsApply_Device(HBPColumns *, const GallopProduct *);
PETSC_INTERN PetscErrorCode HBPColumnsApplyTranspose_Device(HBPColumns *, PetscInt, const GallopProduct *, PetscBool);
