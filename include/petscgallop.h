/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include <petscksp.h>

#if PETSC_VERSION_LT(3, 26, 0) || PETSC_VERSION_GE(3, 27, 0) /* PETSc's main branch too, after 3.26 */
  #error "Gallop works with PETSc 3.26, a release"
#endif

/* MANSEC = Mat */
/* SUBMANSEC = Gallop */

/* The version of the library: makefile, gallop.pc, docs and packages read it here */
#define GALLOP_VERSION_MAJOR    0
#define GALLOP_VERSION_MINOR    2
#define GALLOP_VERSION_SUBMINOR 0

/* Root names, sequential and MPI names of the matrix types; -mat_type takes any of them */
#define MATGALLOP       "gallop"
#define MATAIJGALLOP    "aijgallop"
#define MATSEQAIJGALLOP "seqaijgallop"
#define MATMPIAIJGALLOP "mpiaijgallop"

#define MATEVCHYB       "evchyb"
#define MATAIJEVCHYB    "aijevchyb"
#define MATSEQAIJEVCHYB "seqaijevchyb"
#define MATMPIAIJEVCHYB "mpiaijevchyb"

#define MATCSROVERLAP       "csroverlap"
#define MATAIJCSROVERLAP    "aijcsroverlap"
#define MATSEQAIJCSROVERLAP "seqaijcsroverlap"
#define MATMPIAIJCSROVERLAP "mpiaijcsroverlap"

#define MATFASTLOAD       "fastload"
#define MATAIJFASTLOAD    "aijfastload"
#define MATSEQAIJFASTLOAD "seqaijfastload"
#define MATMPIAIJFASTLOAD "mpiaijfastload"

#define MATHBP       "hbp"
#define MATAIJHBP    "aijhbp"
#define MATSEQAIJHBP "seqaijhbp"
#define MATMPIAIJHBP "mpiaijhbp"

/* An ordering, and the preconditioner that solves in it */
#define MATORDERINGGALLOP "gallop"
#define PCGALLOPREORDER   "gallopreorder"

/* A PetscSF, and so a VecScatter, from GPU to GPU */
#define PETSCSFGALLOP "gallop"

/* Solvers */
#define KSPGALLOPCG         "gallopcg"
#define KSPGALLOPBCGS       "gallopbcgs"
#define KSPGALLOPGMRES      "gallopgmres"
#define KSPGALLOPCHEBYSHEV  "gallopchebyshev"
#define KSPGALLOPRICHARDSON "galloprichardson"

/*S
  MatGallopStatistics - What a Gallop matrix has done on this MPI process since it was created

  Fields:
+ builds                - times the format was built from the entries of the matrix
. refreshes             - times only the values of an existing format were renewed
. products_host         - products computed by the format's host code
. products_device       - products computed by the format's GPU kernels
. fallbacks             - products that the parent type, `MATAIJ` or `MATAIJCUSPARSE`, computed instead
. dense_builds          - times the structure for products with dense matrices, `TILEDSPMM`, was built
. dense_refreshes       - times only its values were renewed
. dense_products_host   - products with dense matrices computed by its host code, or with one column by the format's
. dense_products_device - likewise by its GPU kernels
. dense_fallbacks       - products with dense matrices that the parent type computed, for lack of room or of columns, or on the host unless `-mat_tiledspmm_least` was given
. transpose_builds      - times a format of the transpose was built, for transposed products that the format itself does not compute
. transpose_refreshes   - times only its values were renewed
. exchanges_ipc         - exchanges for products of an MPI matrix in which processes wrote into each other's memory: one for each product or transposed product with a vector, and one for each batch of columns
                          of a product with a dense matrix
. exchanges_nccl        - exchanges by NCCL, counted as those into each other's memory
. exchanges_sf          - exchanges by `PetscSF`, likewise
. csr_uploads           - times CSR arrays, or their values, were copied to the GPU for a build or a refresh and went again after it
. csr_releases          - times the parent's copy of the CSR arrays went from the GPU, see `-mat_gallop_csr` of `MATEVCHYB`
- csr_maps              - times a build or a refresh on the GPU read CSR arrays where they were, on the host

  Level: intermediate

  Note:
  `MatResidual()` counts as a product. A product of an MPI matrix counts once for its diagonal block and once for its off-diagonal block, if that has entries.

.seealso: `MatGallopGetStatistics()`, `MATEVCHYB`
S*/
typedef struct {
  PetscInt64 builds, refreshes, products_host, products_device, fallbacks;
  PetscInt64 dense_builds, dense_refreshes, dense_products_host, dense_products_device, dense_fallbacks;
  PetscInt64 transpose_builds, transpose_refreshes;
  PetscInt64 exchanges_ipc, exchanges_nccl, exchanges_sf;
  PetscInt64 csr_uploads, csr_releases, csr_maps;
} MatGallopStatistics;

PETSC_EXTERN PetscErrorCode GallopGetVersion(char[], size_t);
PETSC_EXTERN PetscErrorCode GallopGetCommit(char[], size_t);
PETSC_EXTERN PetscErrorCode GallopInitializePackage(void);
PETSC_EXTERN PetscErrorCode GallopView(PetscViewer);
PETSC_EXTERN PetscErrorCode MatGallopGetStatistics(Mat, MatGallopStatistics *);
PETSC_EXTERN PetscErrorCode MatGallopIsFormat(Mat, PetscBool *);
PETSC_EXTERN PetscErrorCode MatGallopLoadMatrixMarket(Mat, const char[]);
PETSC_EXTERN PetscErrorCode MatGallopPermute(Mat, IS, IS, MatReuse, Mat *);
PETSC_EXTERN PetscErrorCode VecGallopPermute(Vec, IS, PetscBool, Vec);
PETSC_EXTERN PetscErrorCode PCGallopReorderGetKSP(PC, KSP *);
PETSC_EXTERN PetscErrorCode PetscSFGallopGetExchanges(PetscSF, PetscInt64 *, PetscInt64 *);
