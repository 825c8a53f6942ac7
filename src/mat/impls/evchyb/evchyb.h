/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/*
  The EVC-HYB format of

    D. Guo, W. Gropp, L. N. Olson, A hybrid format for better performance of sparse matrix-vector multiplication on a GPU

  A build looks whether rows and columns pay for an order of their own (clusters/clusters.h), sorts the rows (rows.h), chooses a storage (choose.c), and builds that: plain storage (plain/plain.h) is the paper's, packed storage (packed/packed.h) has the same entries in fewer
  bytes. Each plans what the thread blocks of its kernel do (launch.h).

  A matrix whose rows come in the order of rows.h already, one that was permuted by EVCHYBOrder_Host(), keeps it when the windows are of one row: plain storage's perm is the identity then.

  This header is read by C and by CUDA.
*/

#include "clusters/clusters.h"
#include "packed/packedplan.h"
#include "plain/plain.h"

typedef enum { EVCHYB_PLAIN, EVCHYB_PACKED, EVCHYB_AUTO } EVCHYBStorage;

struct _EVCHYBOptions {
  PetscInt      window;   /* rows of a window, within which they are sorted, 0: all rows, as in the paper, 1: as they come, but for empty and long ones */
  PetscInt      maxell;   /* longest row that SubELL takes: the paper's is 128; PETSC_DECIDE chooses */
  PetscInt      split;    /* rows of SubCSR longer than this are computed by several thread blocks, each this many entries */
  PetscInt      rowsmax;  /* most rows that a thread computes in SubELL */
  PetscInt      columns;  /* most columns of a column block of SubELL that a warp computes before the block is shared among warps */
  PetscInt      byrow;    /* matrices with this many entries have column blocks in order of rows */
  PetscBool     firstcol; /* rows of one length are sorted by their first column, as in the paper, else they stay as they come */
  EVCHYBStorage storage;
  PetscInt      slices; /* of packed rows, that a warp computes one after the other, 0 chooses */
  EVCHYBOrder   order;  /* of rows and columns of a square matrix */
  PetscInt      after;  /* products of the same values before they get it; PETSC_DECIDE chooses */
};

/* Where it is not asked for, a matrix is packed that has this many slices, with pieces of long rows, and entries per multiprocessor, and at most this many bytes per entry more than a value as it is: measured with such values on an H200, docs/development/packing.md */
#define EVCHYB_PACK_SLICES  10
#define EVCHYB_PACK_ENTRIES 9000
#define EVCHYB_PACK_BYTES   1.6
/* The same where entries take more than that, mostly for columns in 16 bits: warps have a slice each then, and fewer would leave the GPU idle */
#define EVCHYB_PACK_STORED_SLICES 20
#define EVCHYB_PACK_STORED_BYTES  2.6
/* Nor is one packed whose longest short row has more than so many times the mean entries of a short row, and more than this share of the lines that each warp would have: the other warps wait for its slice then */
#define EVCHYB_PACK_UNEVEN 4
#define EVCHYB_PACK_SHARE  0.5

/* What a storage does at a place */
typedef struct {
  PetscErrorCode (*refresh)(EVCHYB *, const GallopCSR *, PetscCount maxbytes, PetscBool *fits); /* fits: the new values can be stored as those before them were */
  PetscErrorCode (*apply)(EVCHYB *, const GallopProduct *);
  PetscErrorCode (*destroy)(EVCHYB *);
} EVCHYBStorageWork;

struct _EVCHYB {
  PetscMemType             memtype;
  PetscInt                 m, n;
  PetscCount               nz;     /* entries of the matrix */
  PetscInt                 nempty; /* rows without entries */
  EVCHYBOptions            options;
  const EVCHYBStorageWork *work;      /* of the storage that was chosen, */
  EVCHYBPlain             *plain;     /* which is this one */
  EVCHYBPacked            *packed;    /* or this one; the other is NULL */
  EVCHYBClusters          *clusters;  /* the order that the storage has rows and columns in, NULL for that of the matrix */
  PetscInt                 after;     /* products until one is looked for, 0 where none is */
  PetscInt                 restarts;  /* new values while it was to be looked for */
  PetscBool                recorded;  /* a CUDA graph has recorded a product meanwhile */
  PetscInt                 products;  /* of the same values, in an order that came later */
  PetscInt                 few;       /* sets of values, one after the other, that had too few of them */
  PetscBool                scattered; /* columns of neighbouring rows lie far from each other, as far as that is known */
  PetscCount               maxbytes;  /* of the build */
  EVCHYBLaunch             launch;    /* for the GPU */
  size_t                   bytes;
  int                      processors; /* multiprocessors of the GPU, 0 on the host */
  PetscBool                overlaps;   /* the GPU can start a kernel while the one before it ends, and has clusters of thread blocks */
  PetscBool                fresh;      /* no product since the arrays were written */
};

/* What choose.c finds: packed storage, begun, with rows in an order; no pack for plain storage */
typedef struct {
  EVCHYBPack             *pack;
  const EVCHYBPackSurvey *survey; /* NULL where there was none */
  PetscBool               sorted; /* rows are in the order of rows.h, else stride apart */
  PetscInt                stride;
  PetscBool               scattered; /* columns take two bytes of each entry and more, or have not been looked at */
} EVCHYBChoice;

PETSC_INTERN EVCHYBOptions           EVCHYBOptionsFor(const EVCHYBOptions *, const GallopCSR *);
PETSC_INTERN PetscBool               EVCHYBTriesPacked(const EVCHYB *, const GallopCSR *);
PETSC_INTERN void                    EVCHYBPackGetTerms(const EVCHYB *, EVCHYBPackTerms *);
PETSC_INTERN PetscErrorCode          EVCHYBChoose(const EVCHYB *, const GallopCSR *, EVCHYBPackSurvey *, EVCHYBRows *, EVCHYBChoice *);
PETSC_INTERN PetscErrorCode          EVCHYBRowsNeed(const EVCHYB *, const GallopCSR *, EVCHYBRows *, PetscBool *);
PETSC_INTERN PetscErrorCode          EVCHYBLongRowsNeed(const EVCHYB *, const GallopCSR *, EVCHYBRows *, PetscBool *);
PETSC_INTERN PetscErrorCode          EVCHYBCutRows(const GallopCSR *, const EVCHYBRows *, EVCHYBPackOrder *, PetscBool *);
PETSC_INTERN PetscErrorCode          EVCHYBFreePieces(const GallopCSR *, EVCHYBPackOrder *);
PETSC_INTERN PetscErrorCode          EVCHYBPackedBuild(EVCHYB *, const GallopCSR *, const EVCHYBRows *, EVCHYBChoice *, PetscCount, PetscBool *);
PETSC_INTERN PetscErrorCode          EVCHYBPackedPartsToDevice(EVCHYB *, PetscCount, PetscBool *);
PETSC_INTERN PetscErrorCode          EVCHYBPackedRefresh(EVCHYB *, const GallopCSR *, PetscCount, PetscBool *);
PETSC_INTERN PetscErrorCode          EVCHYBPackedRestore_Device(const EVCHYBPacked *, const PetscInt[], PetscInt[], PetscScalar[]);
PETSC_INTERN PetscErrorCode          EVCHYBPackedCopyToHost(const EVCHYBPacked *, PetscMemType, EVCHYBPacked **);
PETSC_INTERN PetscErrorCode          EVCHYBPackedFree_Host(EVCHYBPacked **);
PETSC_INTERN PetscErrorCode          EVCHYBRestore_Device(const EVCHYB *, const GallopCSR *, GallopCSR *, void **);
PETSC_INTERN const GallopFormatTrial EVCHYBTrial;
PETSC_INTERN PetscErrorCode          EVCHYBOrder_Host(const void *, const GallopCSR *, PetscInt[]);

PETSC_INTERN const EVCHYBStorageWork EVCHYBPlainHost, EVCHYBPlainDevice, EVCHYBPackedHost, EVCHYBPackedDevice;
PETSC_INTERN const GallopFormatWork  EVCHYBHost, EVCHYBDevice;

/* a host copy of what the GPU has, for tests and viewers */
PETSC_EXTERN PetscErrorCode EVCHYBCopyToHost(const EVCHYB *, EVCHYB **);
PETSC_EXTERN PetscErrorCode EVCHYBDestroyHostCopy(EVCHYB **);
