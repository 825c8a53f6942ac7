#pragma once

/* For .cu files: what planning packed storage on the GPU leaves for storing it */

#include <gallop/cudaimpl.h>
#include "packedplan.h"

struct GallopPackPlans {
  GallopPackPlan   *plans;  /* [nslice] */
  GallopPackPlaces *places; /* [nslice + 1] */
  void             *memory; /* in which they are, for GallopDeviceRelease() */
  size_t            bytes;
};

PETSC_INTERN PetscErrorCode GallopPackPlan_Device(GallopPack *, const GallopCSR *, const GallopPackOrder *, GallopPackPlans *, GallopPackPlaces *);
