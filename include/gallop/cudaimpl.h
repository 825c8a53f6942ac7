#pragma once

/* For .cu files only */

#define PETSC_SKIP_IMMINTRIN_H_CUDAWORKAROUND 1

#include <petscdevice_cuda.h>
#include <gallop/deviceimpl.h>

static constexpr int WarpSize = 32;

/* What every launcher does after a launch */
#define GallopCheckLaunch() PetscCallCUDA(cudaGetLastError())
