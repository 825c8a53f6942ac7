/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* HBP's hot columns on the GPU, for .cu files only: hbphotbuild.cu makes them of CSR arrays, hbphot.cu has products */

#include "hbpdevice.h"

PETSC_INTERN PetscErrorCode HBPHotBuild_Device(HBP *, const GallopCSR *, const HBPSample *, PetscCount, cudaStream_t);
PETSC_INTERN PetscErrorCode HBPHotRefresh_Device(HBPHot *, const GallopCSR *);
PETSC_INTERN PetscErrorCode HBPHotPlan(HBPHot *);
PETSC_INTERN PetscCount     HBPHotDotParts(const HBPHot *);
PETSC_INTERN PetscErrorCode HBPHotApply_Device(HBPHot *, const GallopProduct *);
PETSC_INTERN PetscErrorCode HBPHotApplyTranspose_Device(HBPHot *, const GallopProduct *, PetscBool);
