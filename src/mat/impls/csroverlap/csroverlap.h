/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/*
  CSROVERLAP: CSR whose rows are cut into batches, each copied to shared memory while the one before it is computed. Names are those of

    G. Zeng, Y. Zou, Leveraging Memory Copy Overlap for Efficient Sparse Matrix-Vector Multiplication on GPUs

  A batch is a run of whole rows with at most max_batch_size entries; longer rows stand apart in long_row_infos (section 4.1.1, Algorithm 3). Beyond the
  paper a batch has at most CSROVERLAP_THREADS rows, so that empty rows do not pile up in one. The partition depends on row lengths alone.

  This header is read by C and by CUDA: the host and the GPU have the same arrays.
*/

#include <gallop/formatimpl.h>

#define CSROVERLAP_THREADS        256 /* T of the paper: threads of a thread block, and most rows of a batch */
#define CSROVERLAP_SIZES          6   /* values of vector_size: 1, 2, 4, 8, 16, 32 */
#define CSROVERLAP_SMALLEST_BATCH 32  /* max_batch_size is a multiple of it */
#define CSROVERLAP_SMALLEST_BIG   32  /* entries of a big batch at least */
#define CSROVERLAP_LARGEST_BATCH  8192
#define CSROVERLAP_UNEVEN         8 /* entries per thread that computes the row: longer rows wait until warps have time for them */

/* Which matrices that are assembled on the host keep a copy of their entries in pinned memory */
typedef enum { CSROVERLAP_PINNED_NEVER, CSROVERLAP_PINNED_STREAMED, CSROVERLAP_PINNED_ALWAYS } CSROverlapPinned;

typedef struct {
  PetscInt         max_batch_size;                      /* 0: CSROverlapBatchSize() chooses */
  PetscReal        switch_points[CSROVERLAP_SIZES - 1]; /* mean row length of a batch from which vector_size is 2, 4, 8, 16, 32 (Table 2) */
  PetscBool        rows_in_registers;                   /* a thread may hold a short row in registers */
  PetscBool        uneven;                              /* vector_size is raised, and rows wait for warps, where rows are uneven */
  PetscCount       big_batch_size;                      /* entries copied to the GPU at a time, 0 to choose */
  PetscInt         big_batch_num;                       /* equal big batches of a matrix that stays on the GPU, 0 for as many as big_batch_size gives */
  PetscCount       device_memory;                       /* bytes of the GPU that a matrix may take before it is streamed, 0 for what is free */
  CSROverlapPinned pinned;
  PetscCount       pack_columns; /* columns of matrices with at least as many entries go to the GPU packed, 0 for none */
  PetscBool        timeline;     /* print when the copies and kernels of a product ran */
} CSROverlapOptions;

/* Rows [start_row, end_row) */
typedef struct {
  PetscInt start_row, end_row;
} BatchInfo;

/* A partition (Algorithm 3): batches, and rows that are longer than these, both in order of rows. CSROverlapBatchesFree() frees it. */
typedef struct {
  PetscInt   batch_num, busy_num, long_row_num; /* busy_num: batches with entries */
  BatchInfo *batch_infos;                       /* [batch_num] */
  PetscInt  *long_row_infos;                    /* [long_row_num] */
} CSROverlapBatches;

/* What the kernel has to know of a batch, in one load */
typedef struct {
  PetscInt       start_row, begin; /* the first row, and where its entries begin */
  int            nnz;
  unsigned short rows, kind; /* CSROverlapKind() */
} BatchWork;

/* A piece of a long row, for one thread block: entries [begin, end). Pieces of a row follow each other; those of rows that have several meet at the first one's number. */
typedef struct {
  PetscInt row, begin, end, first, pieces;
} LongRowPiece;

/* CSR-Full-Overlap (section 4.2): entries that come from the host in big batches, and the side stream that copies them */
typedef struct _CSROverlapTransfer CSROverlapTransfer;

typedef struct {
  PetscMemType       memtype;
  PetscInt           m, n;
  PetscCount         nz;
  PetscInt           max_batch_size;
  const PetscInt    *row_offsets;         /* [m + 1]; on the host these three are the matrix's own */
  const PetscInt    *host_column_indices; /* [nz] */
  const PetscScalar *values;              /* [nz] */
  PetscInt           batch_num, long_row_num, piece_num;
  BatchInfo         *batch_infos;    /* [batch_num] */
  PetscInt          *long_row_infos; /* [long_row_num] */
  size_t             bytes;
  CSROverlapOptions  options;

  /* on the GPU */
  const GallopColumn *column_indices; /* [nz] */
  BatchWork          *batch_works;    /* [batch_num], those without entries last */
  PetscInt            busy_num;    /* batches with entries */
  LongRowPiece       *pieces;      /* [piece_num] */
  PetscScalar        *partial;     /* [piece_num] */
  int                *arrived;     /* [piece_num], counted at the first piece of a row */
  PetscBool           even;        /* rows of about the same length */
  PetscInt            nonempty;    /* rows with entries, -1 where they were not counted */
  int                 resident;    /* thread blocks that the GPU holds at a time */
  int                 dotresident; /* likewise, of the kernel with a dot product; 0 before the first one */
  PetscBool           overlaps;    /* the GPU can start a kernel while the one before it ends */
  PetscBool           fresh;       /* no product since the arrays were written */
  CSROverlapTransfer *transfer;    /* NULL where the entries came from the GPU */
} CSROverlap;

/* How the entries of a matrix live on the GPU, for viewers */
typedef struct {
  PetscBool  fromhost, pinned, streamed;
  PetscCount big_batch_size;
  PetscInt   big_batch_num;
  PetscCount column_bytes; /* that columns take on their way to the GPU */
} CSROverlapPlace;

#if defined(__CUDACC__)
  #define CSROVERLAP_HD static inline __host__ __device__
#else
  #define CSROVERLAP_HD static inline
#endif

/* A kind is log2 of vector_size and these */
#define CSROVERLAP_KIND_SIZE   7  /* mask of the size */
#define CSROVERLAP_KIND_ROWS   8  /* a thread has a row in its registers */
#define CSROVERLAP_KIND_UNEVEN 16 /* some rows wait until warps have time for them */

/* Entries of a batch for each thread: a power of 2 */
CSROVERLAP_HD int CSROverlapEach(PetscInt max_batch_size)
{
  int each = 1;

  while (each * CSROVERLAP_THREADS < max_batch_size) each *= 2;
  return each;
}

/* How a batch is computed (Algorithm 6); one vector_size higher where rows are uneven, unless the paper's is asked for */
CSROVERLAP_HD int CSROverlapKind(const CSROverlapOptions *options, int each, PetscInt rows, PetscInt nnz, PetscInt longest)
{
  const PetscReal mean = rows ? (PetscReal)nnz / (PetscReal)rows : 0;
  int             k    = 0;

  if (options->rows_in_registers && longest <= each && 2 * (PetscReal)nnz > (PetscReal)each * (PetscReal)rows) return CSROVERLAP_KIND_ROWS;
  while (k < CSROVERLAP_SIZES - 1 && mean >= options->switch_points[k]) k++;
  if (k == CSROVERLAP_SIZES - 1 || !options->uneven) return k;
  if (k < CSROVERLAP_SIZES - 2 && longest > CSROVERLAP_UNEVEN << k) k++;
  return longest > CSROVERLAP_UNEVEN << k ? k | CSROVERLAP_KIND_UNEVEN : k;
}

/* What the kernel knows of a batch whose longest row has longest entries; each as of CSROverlapEach() */
CSROVERLAP_HD BatchWork CSROverlapDescribe(const CSROverlapOptions *options, int each, BatchInfo info, const PetscInt row_offsets[], PetscInt longest)
{
  BatchWork work;

  work.start_row = info.start_row;
  work.begin     = row_offsets[info.start_row];
  work.rows      = (unsigned short)(info.end_row - info.start_row);
  work.nnz       = (int)(row_offsets[info.end_row] - work.begin);
  work.kind      = (unsigned short)CSROverlapKind(options, each, work.rows, work.nnz, longest);
  return work;
}

#define CSROVERLAP_SAMPLES          4096 /* rows that are looked at */
#define CSROVERLAP_ROW_IN_REGISTERS 8    /* most entries of a row that a thread can hold in its registers, with batches of CSROVERLAP_LARGE_BATCH */
#define CSROVERLAP_LARGE_BATCH      2048
#define CSROVERLAP_SMALL_BATCH      512 /* the smallest that is chosen */

/* Of the lengths of some rows: sums of them and of their squares, and how many do not fit a thread's registers */
typedef struct {
  unsigned long long sum, squares, above;
} CSROverlapSample;

/* Whether rows of the sample fit the registers of threads, but for a few */
CSROVERLAP_HD int CSROverlapSampleFits(PetscInt m, const CSROverlapSample *sample)
{
  return 100 * sample->above < (unsigned long long)(m < CSROVERLAP_SAMPLES ? m : CSROVERLAP_SAMPLES);
}

/* The length of sample k */
CSROVERLAP_HD PetscInt CSROverlapSampleLength(PetscInt m, const PetscInt row_offsets[], PetscInt k)
{
  const PetscInt row = (PetscInt)((PetscCount)k * m / (m < CSROVERLAP_SAMPLES ? m : CSROVERLAP_SAMPLES));

  return row_offsets[row + 1] - row_offsets[row];
}

/* Whether a row is longer than a batch */
CSROVERLAP_HD int CSROverlapIsLong(PetscInt max_batch_size, const PetscInt row_offsets[], PetscInt row)
{
  return row_offsets[row + 1] - row_offsets[row] > max_batch_size;
}

/* The row after the batch that begins with row start, or after that row where it is longer than a batch (Algorithm 3). Searched for: the time does not grow with the rows of a batch. */
CSROVERLAP_HD PetscInt CSROverlapBatchEnd(PetscInt max_batch_size, PetscInt m, const PetscInt row_offsets[], PetscInt start)
{
  PetscInt low = start, high = m - start < CSROVERLAP_THREADS ? m : start + CSROVERLAP_THREADS; /* rows up to low fit */

  while (low < high) {
    const PetscInt mid = high - (high - low) / 2;

    if (row_offsets[mid] - row_offsets[start] <= max_batch_size) low = mid;
    else high = mid - 1;
  }
  return low > start ? low : start + 1;
}

PETSC_INTERN void           CSROverlapTakeSample(PetscInt, const PetscInt[], CSROverlapSample *);
PETSC_INTERN PetscInt       CSROverlapBatchSize(const CSROverlapOptions *, PetscInt, PetscCount, const CSROverlapSample *);
PETSC_INTERN PetscBool      CSROverlapIsEven(PetscInt, PetscCount, const CSROverlapSample *);
PETSC_INTERN PetscErrorCode CSROverlapPartition(PetscInt, PetscInt, const PetscInt[], CSROverlapBatches *);
PETSC_INTERN PetscErrorCode CSROverlapBatchesFree(CSROverlapBatches *);

/* host copies of what either place has, for tests and viewers; to be freed by the caller */
PETSC_EXTERN PetscErrorCode CSROverlapGetBatches(const CSROverlap *, BatchInfo **, PetscInt **, BatchWork **);

PETSC_EXTERN PetscErrorCode CSROverlapGetPlace(const CSROverlap *, CSROverlapPlace *);

PETSC_INTERN PetscCount CSROverlapDotParts(const void *, PetscBool); /* on the GPU */

PETSC_INTERN const GallopFormatWork CSROverlapHost, CSROverlapDevice;
