/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* For .cu files: what planning packed storage on the GPU leaves for storing it */

#include <gallop/cudaimpl.h>
#include "packedplan.h"

struct EVCHYBPackPlans {
  EVCHYBPackPlan   *plans;  /* [nslice] */
  EVCHYBPackPlaces *places; /* [nslice + 1] */
  void             *memory; /* in which they are, for GallopWorkspaceFree() */
};

PETSC_INTERN PetscErrorCode EVCHYBPackPlan_Device(EVCHYBPack *, const GallopCSR *, const EVCHYBPackOrder *, EVCHYBPackPlans *, EVCHYBPackPlaces *);
