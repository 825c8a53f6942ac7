/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What a format is to the rest of the library: one table of functions, GallopFormat, and the CSR view that it is built from. */

#include <petscgallop.h>
#include <petsc/private/petscimpl.h>
#include <math.h>

/* A read-only view of an AIJ matrix. i and j lie where a does; host_i and host_j are on the host, for decisions that need the pattern. A transpose on the GPU has none: GallopCSRGetHostI() copies i. */
typedef struct {
  PetscInt           m, n;
  PetscCount         nz;
  const PetscInt    *i, *j;
  const PetscScalar *a;
  const PetscInt    *host_i, *host_j;
  PetscMemType       memtype;
  PetscInt         **copied;    /* where i goes on the host, if host_i is NULL */
  PetscBool          transpose; /* these are of the transpose of a matrix, made for its transposed products */
  PetscBool          passing;   /* they are made for this build, and would have to be made again for another; or are to go at once */
} GallopCSR;

/* A number in what C and CUDA share. CUDA's complex numbers begin at multiples of their size, C's at multiples of half of it: a structure would have two layouts. */
typedef PetscScalar GallopScalar __attribute__((aligned(sizeof(PetscScalar))));

/* A number that C code has placed, perhaps where CUDA's code would not read it at once */
static inline PetscScalar GallopScalarAt(const PetscScalar *a)
{
#if PetscDefined(USE_COMPLEX)
  const PetscReal *parts = (const PetscReal *)a;

  return PetscCMPLX(parts[0], parts[1]);
#else
  return *a;
#endif
}

typedef int32_t GallopColumn; /* of formats that have columns as they are, whatever PetscInt is: a product takes as long as it has bytes */

/* Whether such formats have room for the columns of a matrix */
static inline PetscBool GallopColumnsFit(const GallopCSR *csr)
{
  return (PetscBool)(csr->n <= PETSC_INT32_MAX);
}

/* What the arrays of a matrix take */
static inline size_t GallopCSRBytes(PetscInt m, PetscCount nz)
{
  return ((size_t)m + 1) * sizeof(PetscInt) + (size_t)nz * (sizeof(PetscInt) + sizeof(PetscScalar));
}

PETSC_INTERN PetscErrorCode GallopCSRGetHostI(const GallopCSR *, const PetscInt **);

/* From this many rows on they are counted on the GPU: the host takes 0.5 ns per row, as long as several products. For fewer it takes no longer than to wait for the GPU's answer. */
#define GALLOP_MANY_ROWS 65536

/* The sum of with z over all rows, or of with conj(z), that a product leaves on the GPU: the same bits in every run. Who asks for it has memory for sums of parts and a number that is 0. */
typedef struct {
  const PetscScalar *with;
  PetscBool          conjugate;
  PetscScalar       *result;
  PetscScalar       *partial; /* [room], if room is positive */
  PetscCount         room;
  unsigned int      *ended; /* thread blocks of the kernel that runs */
  PetscBool          adds;  /* to the result, and only what the product adds to z: where y is z, and beta 1 */
} GallopDot;

/*
  What a product does with a row's sum beyond z = alpha sum + beta y: z = d (alpha sum + beta y) + gamma u + delta x, of the same row. u may be z. gamma u is left out where u is NULL, d is 1 where it is NULL.
*/
typedef struct {
  const PetscScalar *d, *u;
  const PetscScalar *gamma, *delta;
  const GallopDot   *dot; /* NULL for none; asked for only where the format's dotparts() says that there is room */
} GallopEpilogue;

/* z = alpha op(A) x + beta y; y may be z; y is not read, and may be NULL, when beta is 0. Scalars go by pointer: C and C++ pass complex numbers by value differently. */
typedef struct {
  const PetscScalar    *alpha, *beta;
  const PetscScalar    *x, *y;
  PetscScalar          *z;
  const GallopEpilogue *epilogue; /* NULL for none: only on the GPU, and where the format's storesrows() says so, or a dot product that adds. y is not z then, unless that is all. */
  const PetscScalar    *xrows;    /* x as rows have it, for the epilogue, where a format has copied x in an order of its own; NULL: x */
} GallopProduct;

/* Whether a product does nothing to z but add a row's sum, perhaps times d: then rows without entries keep what they have */
static inline PetscBool GallopOnlyAdds(const GallopProduct *p)
{
  const GallopEpilogue *e    = p->epilogue;
  const PetscScalar     beta = GallopScalarAt(p->beta);

  if (beta != (PetscScalar)0.0) return (PetscBool)(p->y == p->z && beta == (PetscScalar)1.0 && (!e || (e->dot && e->dot->adds)));
  return (PetscBool)(e && !e->dot && e->u == p->z && GallopScalarAt(e->gamma) == (PetscScalar)1.0 && GallopScalarAt(e->delta) == (PetscScalar)0.0);
}

/* a b + c of host products that have to agree to the last bit: rounded once where the processor does so, whatever a compiler makes of sums. Complex numbers are left to it. clang tells by __FMA__ alone. */
static inline PetscScalar GallopMultiplyAdd(PetscScalar a, PetscScalar b, PetscScalar c)
{
#if !defined(PETSC_USE_COMPLEX) && defined(PETSC_USE_REAL_DOUBLE) && (defined(FP_FAST_FMA) || defined(__FMA__))
  return fma(a, b, c);
#elif !defined(PETSC_USE_COMPLEX) && defined(PETSC_USE_REAL_SINGLE) && (defined(FP_FAST_FMAF) || defined(__FMA__))
  return fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

/* z of a row, of its sum: what GallopStore() does on the GPU */
static inline void GallopStoreRow(const GallopProduct *p, PetscInt row, PetscScalar sum)
{
  p->z[row] = *p->beta == (PetscScalar)0.0 ? *p->alpha * sum : GallopMultiplyAdd(*p->alpha, sum, *p->beta * p->y[row]);
}

/* C = A B, or C += A B: B and C are dense, column-major, and have this many columns, at least one */
typedef struct {
  PetscInt           columns;
  const PetscScalar *b;
  PetscInt           ldb;
  PetscScalar       *c;
  PetscInt           ldc;
  PetscBool          add;
} GallopDenseProduct;

#define GALLOP_MAX_FIGURES 24
#define GALLOP_FIGURE_ROWS (GALLOP_MAX_FIGURES - 1) /* in what view() gets: rows of the matrix, which the two blocks of an MPI process have in common */

/* What a refresh answers, which GALLOP_REFRESHED is unless it is set: the new values cannot be stored in the place of those before, so that the format is to be built again */
typedef enum { GALLOP_REFRESHED, GALLOP_REBUILD } GallopRefresh;

/* What a format does at a place, with CSR arrays and vectors that are there. *data stays NULL when the memory does not suffice: the parent takes over then. */
typedef struct {
  PetscErrorCode (*build)(const void *options, const GallopCSR *csr, PetscCount maxbytes, void **data);
  PetscErrorCode (*refresh)(void *data, const GallopCSR *csr, PetscCount maxbytes, GallopRefresh *answer);
  PetscErrorCode (*apply)(void *data, const GallopProduct *product);
  PetscErrorCode (*destroy)(void **data);
  PetscErrorCode (*applytranspose)(void *data, const GallopProduct *product, PetscBool conjugate); /* NULL at either place: the parent computes transposed products */
} GallopFormatWork;

/* Of a format that is one of several, which it tries on products of the matrix and keeps the fastest of */
typedef struct {
  PetscBool (*tries)(const void *data);                                                        /* whether it still does */
  PetscBool (*keeps)(const void *data);                                                        /* and the parent's CSR arrays are to stay on the GPU for it; or NULL, for never */
  PetscBool (*restores)(const void *data);                                                     /* whether next() gets the arrays from the format where the GPU has none: csr has those of the host's pattern alone then; or NULL, for never */
  PetscErrorCode (*records)(void *data, PetscBool *records);                                   /* before a product: whether a CUDA graph records it, which the format notes, as that needs it for as long as the matrix lives */
  PetscErrorCode (*asks)(void *data, PetscBool *asks);                                         /* before a product that no graph records, when values are current: whether next() is to be called first */
  PetscErrorCode (*next)(void *data, const GallopCSR *csr, PetscInt *builds, PetscBool *fits); /* builds another one; csr is NULL, and *fits false, where there is no room for any, and the data is to go */
  PetscErrorCode (*parent)(void *data, PetscBool ends);                                        /* before and after a product of the parent's, where it leaves() */
} GallopFormatTrial;

typedef struct _GallopFormat GallopFormat;
struct _GallopFormat {
  const char *name;     /* lower case: names of types and options derive from it */
  const char *ucname;   /* upper case: names of log events and help */
  const char *citation; /* BibTeX */

  /* creators of the types, made by GALLOP_FORMAT_TYPES(); NULL for TiledSpMM, which no matrix type belongs to */
  PetscErrorCode (*createseq)(Mat);
  PetscErrorCode (*creatempi)(Mat);

  /* options: plain data, copied with the matrix */
  size_t options_size;
  PetscErrorCode (*options_default)(void *options);
  PetscErrorCode (*options_set)(void *options, const char prefix[], PetscOptionItems PetscOptionsObject, PetscBool *rebuild); /* integers by GallopOptionsRangeInt() */

  /*
    Of a format that keeps rows in an order of its own: what order that is, from the pattern on the host, and what its options are for a matrix whose rows have been put in that order,
    so that the format leaves them in it. Both NULL for a format that has none.
  */
  PetscErrorCode (*order)(const void *options, const GallopCSR *csr, PetscInt order[]);
  void (*options_inorder)(void *options);

  const GallopFormatWork *host, *device; /* device is NULL where PETSc has no CUDA: products are the parent's there */

  /* the device's build and refresh take arrays on the host too, csr->memtype tells: of a matrix assembled there the parent uploads nothing then */
  PetscBool device_takes_host;
  PetscBool prefers_transpose;                    /* transposed products of its own are slower than those of a format of the transpose */
  PetscReal build_cost;                           /* time of a build on the GPU over that of EVCHYB's, about, by which products pay for it; 0 for the same */
  PetscBool (*refresh_columns)(const void *data); /* whether a refresh on the GPU reads csr->j, which may be NULL else; or NULL, for never */
  PetscBool (*streams)(const void *data);         /* whether the matrix is too large for the GPU, so that the parent shall compute on the host; or NULL */
  PetscBool (*leaves)(const void *data);          /* whether the parent's products are faster, so that there is no format; or NULL */
  PetscBool (*storesrows)(const void *data, PetscBool adds); /* whether a product on the GPU calls GallopStore() once for each row, so that it can have an epilogue; with adds: for each that has entries, where GallopOnlyAdds(); NULL for never */
  PetscCount (*dotparts)(const void *data, PetscBool adds); /* of how many sums a product adds up a dot product with its result, or with what it adds to z, 0 if it cannot; NULL for never */

  const GallopFormatTrial *trial; /* or NULL */

  /* figures that add up over blocks and MPI processes, and how to show the sums */
  PetscErrorCode (*figures)(const void *data, PetscLogDouble figures[GALLOP_MAX_FIGURES]);
  PetscErrorCode (*view)(const PetscLogDouble figures[GALLOP_MAX_FIGURES], PetscViewer viewer);
  PetscErrorCode (*view_detail)(const void *data, PetscViewer viewer);

  PetscCount (*bytes)(const void *data);  /* of its arrays, at their place */
  PetscInt (*nonempty)(const void *data); /* rows that have entries, -1 where the format does not know; or NULL */
};

extern const GallopFormat GallopFormat_TILEDSPMM;

/* What TiledSpMM does beside its GallopFormat, whose tables have no apply: products with dense matrices */
typedef struct {
  PetscBool (*wants)(const void *options, PetscMemType memtype, PetscInt columns); /* else the parent computes the product */
  PetscErrorCode (*apply_host)(void *data, const GallopDenseProduct *product, PetscBool *done);
  PetscErrorCode (*apply_device)(void *data, const GallopDenseProduct *product, PetscBool *done); /* done: there was room for what it needs meanwhile. NULL where PETSc has no CUDA. */
} GallopDenseWork;

extern const GallopDenseWork GallopDense_TILEDSPMM;

/* Whether a format computes transposed products, at either place */
static inline PetscBool GallopComputesTranspose(const GallopFormat *format)
{
  return (PetscBool)(format->host->applytranspose && (!format->device || format->device->applytranspose));
}

/* Whether what was built of a matrix is that the parent is to compute its products */
static inline PetscBool GallopLeaves(const GallopFormat *format, const void *data)
{
  return (PetscBool)(data && format->leaves && (*format->leaves)(data));
}

/* Whether what was built of a matrix still tries other formats */
static inline PetscBool GallopTries(const GallopFormat *format, const void *data)
{
  return (PetscBool)(data && format->trial && (*format->trial->tries)(data));
}

/* Whether the CSR arrays are to stay on the GPU while it does, for those that are built next */
static inline PetscBool GallopKeepsCSR(const GallopFormat *format, const void *data)
{
  return (PetscBool)(GallopTries(format, data) && format->trial->keeps && (*format->trial->keeps)(data));
}

/* Creation functions take nothing but a Mat, so each format has its own two. */
#define GALLOP_FORMAT_TYPES(NAME) \
  extern const GallopFormat GallopFormat_##NAME; \
  static PetscErrorCode     MatCreate_SeqAIJ##NAME(Mat A) \
  { \
    return MatCreate_SeqGallop(A, &GallopFormat_##NAME); \
  } \
  static PetscErrorCode MatCreate_MPIAIJ##NAME(Mat A) \
  { \
    return MatCreate_MPIGallop(A, &GallopFormat_##NAME); \
  }

PETSC_EXTERN PetscErrorCode MatCreate_SeqGallop(Mat, const GallopFormat *);
PETSC_EXTERN PetscErrorCode MatCreate_MPIGallop(Mat, const GallopFormat *);
PETSC_EXTERN PetscErrorCode GallopFormatRegister(const GallopFormat *);

/* An integer option of a format: name with its dash, text and manual page for -help, and the smallest and the largest value; PETSC_INT_MAX for no largest */
PETSC_EXTERN PetscErrorCode GallopOptionsRangeInt(PetscOptionItems, const char[], const char[], const char[], PetscInt *, PetscInt, PetscInt);

PETSC_EXTERN PetscErrorCode MatGallopGetFormat(Mat, const GallopFormat **); /* of a matrix of ours */

/* the data of the format that a sequential matrix has built at a place, NULL when there is none: for tests that look inside */
PETSC_EXTERN PetscErrorCode MatGallopGetFormatData(Mat, PetscMemType, const void **);
PETSC_EXTERN PetscErrorCode MatGallopGetTiledSpMMData(Mat, PetscMemType, const void **); /* likewise, of products with dense matrices */
