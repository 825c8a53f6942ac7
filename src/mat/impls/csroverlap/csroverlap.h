#pragma once

/*
  CSROVERLAP: CSR whose rows are cut into batches, each copied to shared memory while the one before it is computed. Names are those of

    G. Zeng, Y. Zou, Leveraging Memory Copy Overlap for Efficient Sparse Matrix-Vector Multiplication on GPUs

  A batch is a run of whole rows with at most max_batch_size entries; longer rows stand apart in long_row_infos (section 4.1.1, Algorithm 3). Beyond the
  paper a batch has at most max_batch_size rows, so that empty rows do not pile up in one. The partition depends on row lengths alone.

  This header is read by C and by CUDA: the host and the GPU have the same arrays.
*/

#include <gallop/formatimpl.h>

#define CSROVERLAP_SIZES 6 /* values of vector_size: 1, 2, 4, 8, 16, 32 */

typedef struct {
  PetscInt  max_batch_size;
  PetscReal switch_points[CSROVERLAP_SIZES - 1]; /* mean row length of a batch from which vector_size is 2, 4, 8, 16, 32 (Table 2) */
} CSROverlapOptions;

/* Rows [start_row, end_row) */
typedef struct {
  PetscInt start_row, end_row;
} BatchInfo;

typedef struct {
  PetscMemType       memtype;
  PetscInt           m, n;
  PetscCount         nz;
  const PetscInt    *row_offsets;    /* [m + 1]; on the host these three are the matrix's own */
  const PetscInt    *column_indices; /* [nz] */
  const PetscScalar *values;         /* [nz] */
  PetscInt           batch_num, long_row_num;
  BatchInfo         *batch_infos;             /* [batch_num] */
  PetscInt          *long_row_infos;          /* [long_row_num] */
  PetscCount         batch_nz;                /* entries in batches */
  PetscLogDouble     sum_squares;             /* of the batches' numbers of entries, for their spread */
  PetscInt           sizes[CSROVERLAP_SIZES]; /* batches of each vector_size */
  size_t             bytes;
  CSROverlapOptions  options;
  int                blocks;   /* GPU blocks that compute batches */
  PetscBool          overlaps; /* the GPU can start a kernel while the one before it ends */
  PetscBool          fresh;    /* no product since the arrays were written */
} CSROverlap;

#if defined(__CUDACC__)
  #define CSROVERLAP_HD static inline __host__ __device__
#else
  #define CSROVERLAP_HD static inline
#endif

/* log2 of the vector_size for a batch (Algorithm 6) */
CSROVERLAP_HD int CSROverlapVectorSize(const CSROverlapOptions *options, PetscInt rows, PetscInt nnz)
{
  const PetscReal mean = rows ? (PetscReal)nnz / (PetscReal)rows : 0;
  int             k    = 0;

  while (k < CSROVERLAP_SIZES - 1 && mean >= options->switch_points[k]) k++;
  return k;
}

PETSC_INTERN PetscErrorCode CSROverlapPartition(const CSROverlapOptions *, PetscInt, const PetscInt[], PetscInt *, BatchInfo **, PetscInt *, PetscInt **);
PETSC_INTERN void           CSROverlapMeasure(CSROverlap *, const PetscInt[], const BatchInfo[]);

PETSC_INTERN const GallopFormatWork CSROverlapHost, CSROverlapDevice;
