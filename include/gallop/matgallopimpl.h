/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The AIJ subclass that every format shares: private to src/mat/impls/base, and to src/sys, src/dm and src/ksp */

#include <gallop/formatimpl.h>
#include <gallop/deviceimpl.h>
#include <gallop/exchangeimpl.h>
#include <gallop/ncclimpl.h>
#include <petsc/private/matimpl.h>
#include <petsc/private/vecimpl.h>
#include <petscsf.h>

/* What is kept beside the entries for products, each made by its table of functions: the format, for those with vectors, TiledSpMM, for those with dense matrices, and the format of the transpose, for transposed ones */
typedef enum { GALLOP_FORMAT = 0, GALLOP_TILEDSPMM = 1, GALLOP_TRANSPOSE = 2, GALLOP_STRUCTURES = 3 } GallopStructureKind;

/* The bytes of one kind of structure that all matrices of a type have at each place now, and had at most */
typedef struct {
  PetscInt64 now[2], most[2];
} GallopBytes;

/* What the matrices of a type did on this process: nothing but PetscInt64, so that it is summed over processes as an array */
typedef struct {
  MatGallopStatistics stats;    /* of those that are gone */
  PetscInt64          matrices; /* that there are, blocks of MPI matrices among them */
  GallopBytes         bytes[GALLOP_STRUCTURES];
} GallopTotals;

/* How many products the last two matrices of a size had that are gone, by the bits of the number of their entries: what a new one may expect */
#define GALLOP_SIZES 64
typedef struct {
  PetscInt64 products[2];
} GallopLived;

/* A registered format, or TiledSpMM, with the names and log events that derive from its name */
typedef struct _GallopType *GallopType;
struct _GallopType {
  const GallopFormat *format;
  char                root[32], aijroot[32], seq[32], mpi[32]; /* evchyb, aijevchyb, seqaijevchyb, mpiaijevchyb */
  PetscLogEvent       event_build, event_refresh, event_mult;
  PetscBool           cited, warned, cusparse, loaded; /* cusparse: its factorizations are registered for the type; loaded: its kernels are, by a build */
  GallopTotals        totals;
  GallopLived         lived[GALLOP_STRUCTURES][2][GALLOP_SIZES]; /* by structure and place */
  GallopType          next;
};

/* A PETSc without any GPU support has no such thing */
#if PetscDefined(HAVE_DEVICE)
  #define GallopBoundToCPU(A) ((A)->boundtocpu)
#else
  #define GallopBoundToCPU(A) PETSC_FALSE
#endif

/* Whether a vector has its array on the GPU when it is asked for there: one that is bound to the CPU has not */
static inline PetscBool GallopVecOnDevice(Vec x)
{
  return (PetscBool)(x->ops->getarrayandmemtype != NULL);
}

/* On the GPU, and copied to and from there: for functions that take no vectors of the host */
PETSC_INTERN PetscErrorCode GallopVecCreateOnDevice(Vec, Vec *);
PETSC_INTERN PetscErrorCode GallopVecCopyEntries(Vec, Vec);

PETSC_INTERN PetscErrorCode GallopTypesDestroy(void);
PETSC_INTERN PetscErrorCode GallopTypeFind(const char[], GallopType *);
PETSC_INTERN PetscErrorCode GallopTypeGetList(GallopType *);
PETSC_INTERN PetscErrorCode GallopTypeOfFormat(const GallopFormat *, GallopType *);
PETSC_INTERN PetscErrorCode GallopTypeOfTiledSpMM(GallopType *);

PETSC_INTERN PetscErrorCode GallopDescribePETSc(char[], size_t);
PETSC_INTERN PetscErrorCode GallopStatisticsView(PetscViewer);
PETSC_INTERN PetscErrorCode GallopLogEventRegister(const char[], PetscClassId, PetscLogEvent *);

PETSC_INTERN PetscErrorCode GallopOrderCheck(IS, PetscInt, PetscInt);
PETSC_INTERN PetscErrorCode GallopOrderKnown(IS, PetscInt, PetscInt);
PETSC_INTERN PetscErrorCode MatGetOrdering_Gallop(Mat, MatOrderingType, IS *, IS *);
PETSC_INTERN PetscErrorCode MatGallopGetOrdering(Mat, MatOrderingType, IS *);
PETSC_INTERN PetscErrorCode PCCreate_GallopReorder(PC);
PETSC_INTERN PetscErrorCode PCRegister_GallopBlockJacobi(void);
PETSC_INTERN PetscErrorCode KSPRegister_GallopCG(void);
PETSC_INTERN PetscErrorCode KSPRegister_GallopBCGS(void);
PETSC_INTERN PetscErrorCode KSPRegister_GallopGMRES(void);
PETSC_INTERN PetscErrorCode KSPRegister_GallopChebyshev(void);
PETSC_INTERN PetscErrorCode KSPRegister_GallopRichardson(void);
PETSC_INTERN PetscErrorCode DMRegister_Gallop(void);
PETSC_INTERN PetscErrorCode PetscSFRegister_Gallop(void);
PETSC_INTERN PetscLogEvent  Gallop_MatPermute, Gallop_VecPermute, Gallop_TermsAdd, Gallop_BlocksAdd, Gallop_GhostBegin, Gallop_GhostEnd;

/* What a built format was made from. Two places in PETSc change the pattern without nonzerostate, MatHeaderReplace() moves the struct to another Mat: hence owner, i, j and nz. */
typedef struct {
  Mat              owner;
  PetscObjectState state, nonzerostate;
  const PetscInt  *i, *j;
  PetscCount       nz;
  PetscInt         rows;       /* that have entries, -1 until they are counted, at the latest for the flops of a product */
  PetscInt         assemblies; /* number of the matrix's assembly that the format was made in, 0 when in none */
} GallopKey;

typedef enum { GALLOP_HOST = 0, GALLOP_DEVICE = 1 } GallopPlace;

typedef enum { GALLOP_READ, GALLOP_WRITE, GALLOP_READ_WRITE } GallopAccess; /* write: what was there does not matter */

static inline const GallopFormatWork *GallopWork(const GallopFormat *format, GallopPlace place)
{
  return place == GALLOP_DEVICE ? format->device : format->host;
}

/* The CSR arrays of the transpose: on the GPU while its format is built or refreshed, on the host for as long as there is one, which may use them */
typedef struct {
  GallopCSR csr;
  void     *memory; /* on the GPU, where all of them are in one piece */
  size_t    bytes;
  PetscInt *host; /* a copy of i, if one was asked for */
} GallopTransposed;

typedef struct {
  GallopKey        key;
  void            *data;
  PetscInt64       bytes;         /* of data, as they were counted last */
  PetscBool        toolarge;      /* did not fit for this key's pattern: not tried again until the pattern changes, or memory of the GPU has become free */
  PetscInt         waited, waits; /* while it is too large: products since free memory was looked at, and those to let pass before that is done */
  size_t           freethen;      /* bytes that were free when it did not fit */
  PetscObjectState seen;          /* -mat_gallop_build pays: the state of the matrix that products are counted for */
  PetscInt64       asked, before; /* products in that state, and in the one before */
  PetscCount       entries;       /* when products were counted last; 0 when none have been */
  PetscBool        older;         /* there was a state before */
  PetscObjectState pattern;       /* likewise: the nonzero state, */
  PetscInt64       waiting;       /* and the products that the parent has computed in it since there was a format */
  GallopTransposed transposed;    /* of the format of the transpose */
} GallopInstance;

/* When a format is built or refreshed: when products pay for it, at the first product, or in MatAssemblyEnd() */
typedef enum { GALLOP_BUILD_PAYS, GALLOP_BUILD_FIRST, GALLOP_BUILD_ASSEMBLY } GallopBuildWhen;

/* Where a format of the transpose is made for transposed products, of formats that have none of their own */
typedef enum { GALLOP_TRANSPOSE_NEVER, GALLOP_TRANSPOSE_GPU, GALLOP_TRANSPOSE_ALWAYS } GallopTransposeWhere;

/* Whether the parent's CSR arrays of a matrix assembled on the host stay on the GPU beside its format: auto releases those of large matrices */
typedef enum { GALLOP_CSR_AUTO, GALLOP_CSR_KEEP, GALLOP_CSR_RELEASE, GALLOP_CSR_HOST } GallopCSRStay;

typedef struct {
  GallopType     type;
  void          *options;  /* those of the transpose are the format's own */
  PetscCount     maxbytes; /* largest size, 0 for no limit */
  GallopInstance instance[2];
  PetscInt64    *builds, *refreshes; /* where these are counted */
  GallopBytes   *bytes;              /* likewise */
} GallopStructure;

/* The way of ghost values on the GPU: into the neighbors' memory where all processes of the matrix can, by NCCL, or by PetscSF; of those on the host, for tests, by memory that processes share */
typedef enum { GALLOP_EXCHANGE_AUTO, GALLOP_EXCHANGE_IPC, GALLOP_EXCHANGE_NCCL, GALLOP_EXCHANGE_SF, GALLOP_EXCHANGE_SHARED } GallopExchangeWay;

/* The ghost values of an MPI product: begin, compute the diagonal block, end */
typedef struct {
  GallopExchangeWay way;
  PetscObjectId     id; /* of the PetscSF that the rest was made for */
  PetscInt          n;
  Vec               ghost[2];         /* by PetscSF, and what a transposed product adds to rows of other processes, by place */
  PetscBool         chosen[2];        /* whether processes have agreed on a way, */
  GallopIPC         ipc[2];           /* and if it is not PetscSF: the connections */
  GallopPlace       place;            /* of the product between begin and end */
  PetscBool         reversechosen[3]; /* likewise for transposed products, also of vectors that are not at one place */
  GallopIPC         reverse[2];
} GallopExchange;

/* The ghost rows of a dense matrix, likewise, for a batch of its columns. All is decided by what is the same on all processes. */
typedef struct {
  PetscObjectId     id;
  PetscInt          columns, asked, batch; /* of C, in a batch as the user wants it, in one as it is */
  GallopExchangeWay way;
  GallopPlace       place;
  PetscBool         alike;               /* that is the place on all processes */
  GallopIPC         ipc;                 /* NULL where it is PetscSF, */
  Mat               buffer[2];           /* its buffers as matrices */
  PetscSF           sf[2];               /* for a batch, and for the columns that are left */
  Mat               ghost[2], packed[2]; /* by PetscSF, by place; packed: a matrix whose columns do not follow each other */
} GallopDenseExchange;

/* What blocks of an MPI matrix had counted when PETSc put new ones in their place: the matrix and its blocks share it */
typedef struct {
  MatGallopStatistics stats;
  PetscInt            refct;
} GallopPast;

typedef struct {
  GallopType           type;              /* the format's */
  struct _MatOps       parent;            /* the parent's functions where ours stand in A->ops */
  struct _MatOps      *parentonhost;      /* all of them as they are when a matrix of the GPU is bound to the CPU; NULL until a product there needs one */
  PetscBool            mpi, deviceparent; /* what the parent is: a parallel matrix, one of AIJCUSPARSE */
  char                *lent[2];           /* strings to lend, the parent's name and the host's: the matrix's while they are lent, kept here in between, since products of matrices come often */
  GallopBuildWhen      build;
  PetscInt             products; /* that the user expects of each state of the entries, 0 when unknown */
  GallopTransposeWhere transpose;
  GallopStructure      structure[GALLOP_STRUCTURES];
  MatGallopStatistics  stats;
  GallopPast          *past; /* NULL for a matrix that is no MPI matrix and no block of one */
  GallopExchange       exchange;
  GallopDenseExchange  denseexchange;
  PetscObjectState     seenstate, seennonzerostate; /* of the matrix when the parent's copy on the GPU was used last */
  void                *copied;                      /* data of AIJCUSPARSE's that had a copy on the GPU when they were looked at last, of the pattern of copiednonzerostate: MatHeaderMerge() brings others */
  PetscObjectState     copiednonzerostate;
  PetscCount           maxbytes; /* of all structures and the parent's copy together, at each place; 0 for no limit */
  GallopCSRStay        csr;
  PetscBool            keeps;    /* the parent's copy stays: others than products use it, or values have come to be on the GPU */
  PetscObjectState     released; /* nonzero state of the pattern whose copy went and was not seen again, or 0 */
  PetscObjectState     back;     /* nonzero state of the pattern whose copy went and came back, 0 for none: it stays */
  PetscInt            *rows;     /* CSR's i on the GPU, for refreshes, of the pattern of rowsnonzerostate; NULL before the first that copies values from the host for itself */
  PetscObjectState     rowsnonzerostate;
  PetscBool            denseonhost;  /* a product with a dense matrix is being set up, for the host, since the parent cannot compute it on the GPU */
  PetscBool            refused;      /* of an MPI matrix: a block of some process has more nonzeros than cuSPARSE takes, by the pattern of refusednonzerostate - 1; 0 for none */
  PetscObjectState     refusednonzerostate;
  PetscBool            compresses;   /* AIJCUSPARSE may leave rows without entries out of its copy, by the pattern of compressesnonzerostate with the data compressesof; NULL: not known */
  const void          *compressesof;
  PetscObjectState     compressesnonzerostate;
  PetscBool            optionsasked; /* by MatSetFromOptions(): the parent's options are the database's */
  PetscErrorCode (*setpreallocationcoo)(Mat, PetscCount, PetscInt[], PetscInt[]);
  PetscErrorCode (*setvaluescoo)(Mat, const PetscScalar[], InsertMode);
  PetscErrorCode (*retrievevalues)(Mat);
  PetscErrorCode (*storevalues)(Mat);
  PetscErrorCode (*kron)(Mat, Mat, MatReuse, Mat *);
  PetscErrorCode (*copysubarray)(Mat, PetscInt, const PetscInt[], PetscScalar[]);
  PetscErrorCode (*getlocalmatmerge)(Mat, MatReuse, IS *, Mat *);
} Mat_Gallop;

/* The parent's type, with device as it computes on the GPU */
static inline MatType GallopParentType(PetscBool mpi, PetscBool device)
{
  if (mpi) return device ? MATMPIAIJCUSPARSE : MATMPIAIJ;
  return device ? MATSEQAIJCUSPARSE : MATSEQAIJ;
}

PETSC_INTERN PetscErrorCode MatGallopGetContext(Mat, Mat_Gallop **);
PETSC_INTERN PetscErrorCode MatGallopDrop(GallopStructure *, GallopPlace);
PETSC_INTERN PetscErrorCode MatGallopReset(GallopStructure *);
PETSC_INTERN void           MatGallopCountBytes(GallopStructure *, GallopPlace);
PETSC_INTERN PetscErrorCode MatGallopShare(Mat_Gallop *, Mat_Gallop *);
PETSC_INTERN void           MatGallopStatisticsAdd(MatGallopStatistics *, const MatGallopStatistics *);
PETSC_INTERN PetscErrorCode MatGallopInstall(Mat);
PETSC_INTERN PetscErrorCode MatGallopRetake(Mat);
PETSC_INTERN PetscErrorCode MatGallopUnbind(Mat, PetscBool *);
PETSC_INTERN PetscErrorCode MatGallopRebind(Mat, PetscBool);
PETSC_INTERN PetscErrorCode MatGallopUninstall(Mat);
PETSC_INTERN PetscErrorCode MatGallopAttach(Mat, GallopType);
PETSC_INTERN PetscErrorCode MatGallopDetach(Mat);
PETSC_INTERN PetscErrorCode MatGallopForget(Mat, Mat);
PETSC_INTERN PetscErrorCode MatGallopCopyOptions(Mat, Mat);
PETSC_INTERN PetscErrorCode MatGallopAdopt(Mat, Mat);
PETSC_INTERN PetscErrorCode MatGallopDeviceOnAllProcesses(Mat, PetscBool *);
PETSC_INTERN PetscErrorCode MatGallopComposeConversions(Mat, GallopType, PetscBool);
PETSC_INTERN PetscErrorCode MatGallopForgetConversions(Mat, GallopType);
PETSC_INTERN PetscErrorCode MatConvert_AIJ_Gallop(Mat, MatType, MatReuse, Mat *);
PETSC_INTERN PetscErrorCode MatGallopSetDefaults(Mat_Gallop *);
PETSC_INTERN PetscErrorCode MatGallopSetOptionsFromDatabase(Mat);
/*
  The CSR arrays at a place, for a build, or for a refresh, without columns where these are not wanted. On the GPU they are the parent's copy, or one that is owned and goes again: of a matrix
  whose parent is on the host, or whose parent's copy is not to stay. fits is false where the GPU has no room for it. Columns and values that are mapped are the host's, which the GPU reads there.
  With restores there are none on the GPU where the host has the newest values, and fits is false where the GPU has not the room to build beside what is there.
*/
typedef struct {
  GallopCSR   csr;
  PetscBool   refresh, columns, restores, owned, ownsrows, fits;
  const void *mappedj, *mappeda;
} GallopCSRAccess;
PETSC_INTERN PetscErrorCode MatGallopGetCSR(Mat, Mat_Gallop *, const GallopFormat *, GallopStructureKind, GallopPlace, GallopCSRAccess *);
PETSC_INTERN PetscErrorCode MatGallopRestoreCSR(Mat, GallopCSRAccess *);
PETSC_INTERN PetscErrorCode MatGallopUploadCSR(Mat, Mat_Gallop *, GallopCSRAccess *);
PETSC_INTERN PetscErrorCode MatGallopMayRestore(const Mat_Gallop *, GallopCSRAccess *);
PETSC_INTERN PetscErrorCode MatGallopFreeCSR(GallopCSRAccess *);
PETSC_INTERN PetscErrorCode MatGallopFreeRows(Mat_Gallop *);
PETSC_INTERN void           MatGallopNoteCopy(Mat, Mat_Gallop *);
PETSC_INTERN PetscErrorCode MatGallopNoteParentProduct(Mat_Gallop *);
PETSC_INTERN PetscErrorCode MatGallopLacksCopy(Mat, Mat_Gallop *, PetscBool *);
PETSC_INTERN PetscErrorCode MatGallopParentIsWorse(Mat, Mat_Gallop *, PetscBool, PetscBool *);
PETSC_INTERN PetscErrorCode MatGallopDropOldCopy(Mat, Mat_Gallop *);
PETSC_INTERN PetscErrorCode MatGallopTakesUpload(Mat, Mat_Gallop *, GallopStructureKind, const GallopCSRAccess *, PetscBool *);
PETSC_INTERN PetscErrorCode MatGallopCopyStays(Mat, Mat_Gallop *, PetscCount *);
PETSC_INTERN PetscErrorCode MatGallopUsed(Mat, Mat_Gallop *, GallopStructureKind, GallopPlace, PetscCount *);
PETSC_INTERN PetscErrorCode MatGallopGetLimit(Mat, Mat_Gallop *, GallopStructureKind, GallopPlace, PetscCount *);
PETSC_INTERN PetscErrorCode MatGallopMakeRoom(Mat_Gallop *, GallopStructureKind, GallopPlace, PetscBool *);
PETSC_INTERN PetscErrorCode MatGallopKeepCopy(Mat);
PETSC_INTERN PetscErrorCode MatGallopReleaseCopy(Mat, Mat_Gallop *);
PETSC_INTERN PetscErrorCode GallopTransposedCreate(const GallopCSR *, PetscCount, GallopTransposed *, PetscBool *);
PETSC_INTERN PetscErrorCode GallopTransposedDestroy(GallopTransposed *);
#if PetscDefined(HAVE_CUDA)
PETSC_INTERN PetscErrorCode GallopTransposedCreate_Device(const GallopCSR *, GallopTransposed *);
#endif
PETSC_INTERN PetscErrorCode MatGallopIsOverfull(Mat, PetscBool *);
PETSC_INTERN PetscErrorCode MatGallopParentCompresses(Mat, PetscBool *);
PETSC_INTERN PetscErrorCode MatGallopParentTakes(Mat, Mat_Gallop *, PetscBool *);
PETSC_INTERN PetscErrorCode MatGallopDeviceCSRFits(Mat, Mat_Gallop *, PetscBool *);
PETSC_INTERN PetscErrorCode MatGallopToDevice(Mat);
PETSC_INTERN PetscBool      MatGallopNewestOnHost(Mat);
PETSC_INTERN PetscErrorCode MatGallopGetHostPattern(Mat, const PetscInt **, const PetscInt **); /* of any sequential AIJ matrix */
PETSC_INTERN PetscErrorCode MatGallopGetValuesRead(Mat, const PetscScalar **, PetscMemType *);
PETSC_INTERN PetscErrorCode MatGallopRestoreValuesRead(Mat, const PetscScalar **, PetscMemType);
PETSC_INTERN PetscErrorCode MatGallopDeviceTakesValues(Mat, PetscBool *);
PETSC_INTERN PetscErrorCode MatGallopGetDeviceValuesWrite(Mat, PetscScalar **); /* asked before whether it can be */
PETSC_INTERN PetscErrorCode MatGallopRestoreDeviceValuesWrite(Mat, PetscScalar **);
PETSC_INTERN PetscErrorCode MatGallopParentFits(Mat, PetscBool, PetscBool *);
PETSC_INTERN PetscErrorCode MatGallopTrustHost(Mat);
PETSC_INTERN PetscErrorCode MatGallopTrustDevice(Mat, PetscObjectState);

/* Why the parent computes: there is no room for the structure, or for the CSR arrays on the GPU, or cuSPARSE does not take so many nonzeros */
typedef enum { GALLOP_LACKS_STRUCTURE, GALLOP_LACKS_CSR, GALLOP_LACKS_PARENT } GallopLack;

PETSC_INTERN PetscErrorCode MatGallopWarnLack(Mat, Mat_Gallop *, GallopStructureKind, GallopPlace, GallopLack);
PETSC_INTERN PetscErrorCode MatGallopPays(Mat, Mat_Gallop *, GallopStructureKind, GallopPlace, PetscBool, PetscBool *);
PETSC_INTERN void           MatGallopPaysNote(Mat_Gallop *);
PETSC_INTERN PetscErrorCode MatGallopUpdate(Mat, Mat_Gallop *, GallopStructureKind, GallopPlace, PetscObjectState, PetscBool product, void **);
PETSC_INTERN PetscErrorCode MatGallopForgetAssembly(Mat);
PETSC_INTERN PetscErrorCode MatGallopTries(Mat, PetscBool *);

/* lends the parent's type name to a matrix while one of the parent's functions that compares exact names runs */
typedef struct {
  Mat            mat[12]; /* the result and three factors, each perhaps with two blocks */
  char          *own[12];
  const char    *lent[12];
  struct _MatOps ops[12]; /* as they were lent */
  int            n;
  PetscBool      host; /* lend seqaij and mpiaij, whatever the parent */
} GallopLoan;
PETSC_INTERN PetscErrorCode GallopLoanBegin(GallopLoan *);
PETSC_INTERN PetscErrorCode GallopLoanAdd(GallopLoan *, Mat);
PETSC_INTERN PetscErrorCode GallopLoanEnd(GallopLoan *);
PETSC_INTERN PetscBool      GallopLoanIsOpen(void);

/* Likewise for calls of AIJCUSPARSE's functions that make nothing and give no matrix another type: only a debug PETSc has them check the exact name */
#if PetscDefined(USE_DEBUG) && PetscDefined(HAVE_CUDA)
  #define GALLOP_NAMES_CHECKED 1
#else
  #define GALLOP_NAMES_CHECKED 0
#endif
PETSC_INTERN PetscErrorCode GallopNamesCompose(Mat);
PETSC_INTERN PetscErrorCode GallopNamesForget(Mat, const Mat_Gallop *);
#if GALLOP_NAMES_CHECKED
typedef struct {
  Mat   mat[2];
  char *own[2]; /* NULL of a matrix that has the name already, or is not ours */
} GallopNames;
PETSC_INTERN PetscErrorCode GallopNamesLend(GallopNames *, Mat, Mat);
PETSC_INTERN PetscErrorCode GallopNamesReturn(GallopNames *);
PETSC_INTERN PetscErrorCode MatAXPY_SeqGallop(Mat, PetscScalar, Mat, MatStructure);
PETSC_INTERN PetscErrorCode MatSetOption_SeqGallop(Mat, MatOption, PetscBool);

  /* The call of a function that checks the names of A and B, which may be NULL */
  #define GallopCallByName(A, B, ...) \
    do { \
      GallopNames    names_call_; \
      PetscErrorCode ierr_names_call_; \
\
      PetscCall(GallopNamesLend(&names_call_, A, B)); \
      ierr_names_call_ = __VA_ARGS__; \
      PetscCall(GallopNamesReturn(&names_call_)); \
      PetscCall(ierr_names_call_); \
    } while (0)
#else
  #define GallopCallByName(A, B, ...) PetscCall(__VA_ARGS__)
#endif

/* The call that names are lent for: they go back before its error goes on */
#define GallopLoanCall(loan, ...) \
  do { \
    const PetscErrorCode ierr_loan_call_ = __VA_ARGS__; \
    PetscCall(GallopLoanEnd(loan)); \
    PetscCall(ierr_loan_call_); \
  } while (0)

/* z = d (alpha A x + beta y) + gamma u + delta x, where d is 1 and gamma u is left out if they are NULL. dot: NULL, or the dot product of z with with that is wanted, whose with and partial are set here. */
typedef struct {
  PetscScalar alpha, beta, gamma, delta;
  Vec         d, u, with;
  GallopDot  *dot;
} GallopTerms;

PETSC_INTERN PetscErrorCode MatGallopMultTerms(Mat, const GallopTerms *, Vec, Vec, Vec, Vec, PetscBool *);
PETSC_INTERN PetscErrorCode MatGallopMultTerms_Seq(Mat, const GallopTerms *, Vec, Vec, Vec, Vec, PetscBool *, PetscBool *);
PETSC_INTERN PetscErrorCode MatGallopMultDot_Seq(Mat, const GallopTerms *, Vec, PetscBool, Vec, PetscBool *);
PETSC_INTERN PetscErrorCode MatGallopMultTerms_MPI(Mat, const GallopTerms *, Vec, Vec, Vec, Vec, PetscBool *);
PETSC_INTERN PetscErrorCode MatGallopMultDot_MPI(Mat, const GallopTerms *, Vec, Vec, PetscBool *);
PETSC_INTERN PetscErrorCode MatGallopMultAgain_Seq(Mat, Vec, Vec, PetscLogDouble);
PETSC_INTERN PetscErrorCode GallopTermsAdd_Device(PetscInt, const PetscScalar *, const PetscScalar *, const PetscScalar *, const PetscScalar *, const PetscScalar *, const PetscScalar[4], PetscScalar *);

PETSC_INTERN PetscErrorCode MatProductSetFromOptions_Gallop(Mat);
PETSC_INTERN PetscErrorCode MatProductIsDense_Gallop(const Mat_Product *, PetscBool *, PetscBool *);
PETSC_INTERN PetscErrorCode MatMatMultNumeric_SeqGallop_SeqDense(Mat, Mat, Mat, PetscBool, PetscBool *);
PETSC_INTERN PetscErrorCode MatMatMultNumeric_MPIGallop_MPIDense(Mat, Mat, Mat, PetscBool *);
PETSC_INTERN PetscErrorCode MatGallopWantsDense_MPI(Mat, Mat, PetscBool *);
PETSC_INTERN PetscErrorCode MatGallopGetDensePlace(Mat, Mat, Mat, GallopPlace *);
PETSC_INTERN PetscErrorCode MatGallopDenseGetArray(Mat, GallopPlace, GallopAccess, PetscScalar **, PetscMemType *);
PETSC_INTERN PetscErrorCode MatGallopDenseRestoreArray(Mat, GallopPlace, GallopAccess, PetscScalar **);
PETSC_INTERN PetscErrorCode MatSolverTypeRegister_Gallop(void);
PETSC_INTERN PetscErrorCode MatSolverTypeRegisterCUSPARSE_Gallop(GallopType);

PETSC_INTERN PetscErrorCode MatDuplicate_Gallop(Mat, MatDuplicateOption, Mat *);
PETSC_INTERN PetscErrorCode MatGallopHostIsWritten(Mat);
PETSC_INTERN PetscErrorCode MatGallopBringToHost(Mat);
PETSC_INTERN PetscErrorCode MatGallopHostBecomesNewer(Mat);
PETSC_INTERN PetscErrorCode MatRetrieveValues_SeqGallop(Mat);
PETSC_INTERN PetscErrorCode MatStoreValues_SeqGallop(Mat);
PETSC_INTERN PetscErrorCode MatSOR_SeqGallop(Mat, Vec, PetscReal, MatSORType, PetscReal, PetscInt, PetscInt, Vec);
PETSC_INTERN PetscErrorCode MatGetColumnReductions_SeqGallop(Mat, PetscInt, PetscReal *);
PETSC_INTERN PetscErrorCode MatIsHermitian_SeqGallop(Mat, PetscReal, PetscBool *);
PETSC_INTERN PetscErrorCode MatEliminateZeros_SeqGallop(Mat, PetscBool);
PETSC_INTERN PetscErrorCode MatGetDiagonal_SeqGallop(Mat, Vec);
PETSC_INTERN PetscErrorCode MatScale_SeqGallop(Mat, PetscScalar);
PETSC_INTERN PetscErrorCode MatDiagonalScale_SeqGallop(Mat, Vec, Vec);
PETSC_INTERN PetscErrorCode MatZeroEntries_SeqGallop(Mat);
PETSC_INTERN PetscErrorCode MatTranspose_SeqGallop(Mat, MatReuse, Mat *);
PETSC_INTERN PetscErrorCode MatLoad_SeqGallop(Mat, PetscViewer);
PETSC_INTERN PetscErrorCode MatGallopCreatePlain(Mat *);
PETSC_INTERN PetscErrorCode MatGallopGetPlainOps(const struct _MatOps **);
PETSC_INTERN PetscErrorCode MatGetMultiProcBlock_Gallop(Mat, MPI_Comm, MatReuse, Mat *);
PETSC_INTERN PetscErrorCode MatGallopComposeCOO(Mat);
PETSC_INTERN PetscErrorCode MatGallopForgetCOO(Mat, Mat_Gallop *);
PETSC_INTERN PetscErrorCode MatGallopShareCOO(Mat, Mat);
PETSC_INTERN PetscErrorCode MatGallopHasCOO(Mat, PetscBool *);
PETSC_INTERN PetscErrorCode MatAssemblyEnd_SeqGallop(Mat, MatAssemblyType);
PETSC_INTERN PetscErrorCode MatAssemblyEnd_MPIGallop(Mat, MatAssemblyType);
PETSC_INTERN PetscErrorCode MatSetFromOptions_Gallop(Mat, PetscOptionItems);
PETSC_INTERN PetscErrorCode MatView_Gallop(Mat, PetscViewer);
PETSC_INTERN PetscErrorCode MatBindToCPU_Gallop(Mat, PetscBool);

PETSC_INTERN PetscErrorCode MatMult_SeqGallop(Mat, Vec, Vec);
PETSC_INTERN PetscErrorCode MatMultAdd_SeqGallop(Mat, Vec, Vec, Vec);
PETSC_INTERN PetscErrorCode MatMultTranspose_SeqGallop(Mat, Vec, Vec);
PETSC_INTERN PetscErrorCode MatMultTransposeAdd_SeqGallop(Mat, Vec, Vec, Vec);
PETSC_INTERN PetscErrorCode MatMultHermitianTranspose_SeqGallop(Mat, Vec, Vec);
PETSC_INTERN PetscErrorCode MatMultHermitianTransposeAdd_SeqGallop(Mat, Vec, Vec, Vec);
PETSC_INTERN PetscErrorCode MatGallopCheckResidual(Mat, Vec, Vec, Vec);
PETSC_INTERN PetscErrorCode MatResidual_SeqGallop(Mat, Vec, Vec, Vec);
PETSC_INTERN PetscErrorCode MatMult_MPIGallop(Mat, Vec, Vec);
PETSC_INTERN PetscErrorCode MatMultAdd_MPIGallop(Mat, Vec, Vec, Vec);
PETSC_INTERN PetscErrorCode MatResidual_MPIGallop(Mat, Vec, Vec, Vec);
PETSC_INTERN PetscErrorCode MatMultTranspose_MPIGallop(Mat, Vec, Vec);
PETSC_INTERN PetscErrorCode MatMultTransposeAdd_MPIGallop(Mat, Vec, Vec, Vec);
PETSC_INTERN PetscErrorCode MatNorm_MPIGallop(Mat, NormType, PetscReal *);
PETSC_INTERN PetscErrorCode MatEliminateZeros_MPIGallop(Mat, PetscBool);
PETSC_INTERN PetscErrorCode MatZeroRowsColumns_MPIGallop(Mat, PetscInt, const PetscInt[], PetscScalar, Vec, Vec);
PETSC_INTERN PetscErrorCode MatCreateSubMatrices_MPIGallop(Mat, PetscInt, const IS[], const IS[], MatReuse, Mat *[]);
PETSC_INTERN PetscErrorCode MatSetUp_MPIGallop(Mat);

PETSC_INTERN PetscErrorCode        MatGallopGetBlocks(Mat, Mat *, Mat *);
PETSC_INTERN PetscErrorCode        GallopExchangeBegin(Mat, Mat_Gallop *, Vec, Vec *);
PETSC_INTERN PetscErrorCode        GallopExchangeEnd(Mat, Mat_Gallop *, Vec, Vec);
PETSC_INTERN PetscErrorCode        GallopExchangeGetReverse(Mat, Mat_Gallop *, Vec, Vec, GallopIPC *, Vec *);
PETSC_INTERN PetscErrorCode        GallopExchangeView(PetscViewer);
PETSC_INTERN PetscErrorCode        MatGallopExchangeView(Mat, PetscViewer);
PETSC_INTERN PetscErrorCode        GallopExchangeReset(GallopExchange *);
PETSC_INTERN PetscErrorCode        GallopExchangeAside(Mat, PetscInt, PetscBool *);
PETSC_INTERN const GallopIPCTable *GallopExchangeTable(GallopExchangeWay, GallopPlace);
PETSC_INTERN PetscErrorCode        GallopExchangeAgree(Mat, GallopExchangeWay, const char[], int, PetscBool *);
PETSC_INTERN PetscErrorCode        GallopExchangeConnect(Mat, PetscSF, GallopExchangeWay, GallopPlace, const GallopIPCKind *, const char[], GallopIPC *);
PETSC_INTERN void                  GallopExchangeCount(Mat_Gallop *, GallopIPC);
PETSC_INTERN PetscErrorCode        GallopDenseExchangeReset(GallopDenseExchange *);
