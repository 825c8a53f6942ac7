/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* MATGALLOP: a format that is one of the others, or the parent's product, whichever is faster for the matrix */

#include <gallop/formatimpl.h>

/* The formats to choose from, in the order of the names of -mat_gallop_format; GALLOP_PARENT: the parent's product */
typedef enum { GALLOP_EVCHYB, GALLOP_CSROVERLAP, GALLOP_HBP, GALLOP_FASTLOAD, GALLOP_CHOICES, GALLOP_PARENT = GALLOP_CHOICES, GALLOP_AUTO } GallopChoice;

#define GALLOP_CANDIDATES 3 /* at most, among which a choice is measured */

PETSC_EXTERN const GallopFormat *GallopChoiceFormats[GALLOP_CHOICES]; /* tests put others in their place */

/*
  What a look at the pattern finds. A window is GALLOP_WINDOW entries that follow each other; what it needs of x is counted in sectors, what the GPU reads at a time. The number of a sector is
  hashed to one of GALLOP_BITS bits: marks are those that are set, from which the number of sectors follows closely enough.
*/
#define GALLOP_WINDOW  8192
#define GALLOP_WINDOWS 128
#define GALLOP_BITS    65536
#define GALLOP_SECTOR  ((PetscInt)(32 / sizeof(PetscScalar))) /* numbers of x that one has */
#define GALLOP_DOUBLES 4 /* the same in double precision, for which the rules' thresholds are: a pattern is chosen for alike, whatever its numbers are */
typedef struct {
  unsigned long long nonempty, squares, longest; /* rows that have entries; the sum of squared lengths; the length of the longest */
  unsigned long long marks;
} GallopPattern;

/* Windows of a matrix with nz entries, at least one; and where window k of them begins and ends */
static inline int GallopWindows(PetscCount nz)
{
  return (int)PetscMax(1, PetscMin(nz / GALLOP_WINDOW, GALLOP_WINDOWS));
}

#if defined(__CUDACC__)
  #define GALLOP_HD __host__ __device__ static inline
#else
  #define GALLOP_HD static inline
#endif

GALLOP_HD PetscCount GallopWindowBegin(PetscCount nz, int windows, int k)
{
  return (nz - 1) / windows * k;
}

GALLOP_HD PetscCount GallopWindowEnd(PetscCount nz, int windows, int k)
{
  const PetscCount begin = GallopWindowBegin(nz, windows, k);

  return nz - begin < GALLOP_WINDOW ? nz : begin + GALLOP_WINDOW;
}

GALLOP_HD unsigned int GallopSectorBit(PetscInt column, PetscInt sector)
{
  return (unsigned int)((uint64_t)(column / sector) * 0x9e3779b97f4a7c15ull >> 48); /* GALLOP_BITS is 2^16 */
}

/* The same in numbers that do not grow with the matrix */
typedef struct {
  PetscInt   m, n;
  PetscCount nz;
  PetscInt64 nonempty, longest;
  PetscReal  mean, variation; /* of the lengths of rows, the standard deviation over the mean */
  PetscReal  footprint;       /* sectors per entry of a window: 1 where no entry shares a sector, 1/4 to 1/20 for a mesh in a good order */
  PetscReal  l2;              /* bytes of x over those of the L2 cache */
  PetscBool  transpose;       /* the matrix is another's transpose, made for its products: the parent's are its transposed ones */
  PetscBool  refused;         /* cuSPARSE does not multiply it */
} GallopLook;

/* By what a choice was made: -mat_gallop_format, rules, times of this process or of the tune file; or it is being measured */
typedef enum { GALLOP_BY_OPTION, GALLOP_BY_RULES, GALLOP_BY_TIMES, GALLOP_BY_FILE, GALLOP_BY_COMING_TIMES, GALLOP_WAYS } GallopWay;

/* What is known of a pattern: by which it is found again, the choice that was made, and the times of products, 0 where unknown */
typedef struct {
  GallopPattern  pattern;
  PetscInt64     m, n, nz;
  GallopChoice   choice;
  GallopWay      way;
  PetscLogDouble time[GALLOP_CHOICES + 1];
} GallopTuned;

typedef struct _GallopMeasure GallopMeasure; /* measure.h */

/* Each format's own options stand at a place of their own */
#define GALLOP_OPTIONS_MOST 256
typedef enum { GALLOP_CHOOSE_RULES, GALLOP_CHOOSE_MEASURE } GallopChooseBy;
typedef struct {
  GallopChoice   format; /* GALLOP_AUTO: it is chosen */
  GallopChooseBy choose;
  PetscInt       products; /* of the parent, whose time a measurement may take */
  PetscReal      share;    /* of the time of all products that measurements may take at any time */
  PetscInt64     own[GALLOP_CHOICES][GALLOP_OPTIONS_MOST / sizeof(PetscInt64)];
} GallopChoiceOptions;

typedef struct {
  const GallopFormat *format; /* NULL: the parent's product */
  void               *data;
} GallopMade;

typedef struct {
  GallopMade   now;   /* computes */
  GallopTuned  tuned; /* the choice, which is now's */
  PetscCount   nz;
  PetscMemType memtype; /* of the place */
  PetscBool    nofit;   /* the format that was chosen found no room */
  PetscBool    looked;
  GallopLook   look;
  /* while it is measured, else NULL: times; the fastest so far where that is not now, else no format; and the options, for builds */
  GallopMeasure       *measure;
  GallopMade           best;
  PetscBool            recorded; /* a CUDA graph has recorded the format that computes */
  GallopChoiceOptions *options;
} GallopChosen;

static inline const GallopFormatWork *GallopMadeWork(const GallopMade *made, PetscMemType memtype)
{
  return PetscMemTypeCUDA(memtype) ? made->format->device : made->format->host;
}

PETSC_INTERN PetscErrorCode          GallopChoiceMake(const GallopChoiceOptions *, GallopChoice, const GallopCSR *, PetscCount, GallopMade *);
PETSC_INTERN PetscErrorCode          GallopChoiceUnmake(PetscMemType, GallopMade *);
PETSC_INTERN PetscErrorCode          GallopTryBegin(GallopChosen *, const GallopChoiceOptions *, int, const GallopChoice[]);
PETSC_INTERN PetscErrorCode          GallopTryRefresh(GallopChosen *, const GallopCSR *, GallopRefresh *);
PETSC_INTERN PetscErrorCode          GallopTryDestroy(GallopChosen *);
PETSC_INTERN const GallopFormatTrial GallopChoiceTrial;

PETSC_INTERN PetscErrorCode GallopChoiceFigures(const void *, PetscLogDouble[GALLOP_MAX_FIGURES]);
PETSC_INTERN PetscErrorCode GallopChoiceView(const PetscLogDouble[GALLOP_MAX_FIGURES], PetscViewer);
PETSC_INTERN PetscErrorCode GallopChoiceViewDetail(const void *, PetscViewer);
PETSC_INTERN PetscCount     GallopChoiceBytes(const void *);
PETSC_INTERN const char    *GallopChoiceName(GallopChoice);

#define GALLOP_GPU_NAME 256 /* as long as CUDA's */

/* base/galloppays.c: estimates of what a product of the parent takes on the GPU, in seconds, and of what a build takes beyond its first product, in products of the parent, by rows and entries */
PETSC_INTERN PetscReal GallopParentSeconds(PetscReal, PetscReal);
PETSC_INTERN PetscReal GallopBuildProducts(const GallopFormat *, PetscReal, PetscReal);

/* tunefile.c: what this process, and the tune file, know of patterns */
PETSC_EXTERN PetscErrorCode GallopTuneFileSet(const char[]);
PETSC_EXTERN PetscErrorCode GallopTuneFind(const char[], GallopTuned *, PetscBool *);
PETSC_EXTERN PetscErrorCode GallopTuneAdd(const char[], const GallopTuned *);
PETSC_EXTERN PetscErrorCode GallopTuneForget(void);

PETSC_INTERN PetscBool      GallopNeedsLook(PetscCount nz);                                               /* whether the rules ask for more than the number of entries */
PETSC_EXTERN int            GallopCandidatesByRules(const GallopLook *, GallopChoice[GALLOP_CANDIDATES]); /* for tests, too, as are those below */
PETSC_EXTERN GallopChoice   GallopChooseByRules(const GallopLook *);
PETSC_EXTERN PetscErrorCode GallopPatternGet_Host(const GallopCSR *, PetscInt, GallopPattern *);
PETSC_EXTERN PetscErrorCode GallopPatternLook(const GallopCSR *, const GallopPattern *, PetscCount, GallopLook *);
#if PetscDefined(HAVE_CUDA)
PETSC_EXTERN PetscErrorCode GallopPatternGet_Device(const GallopCSR *, PetscInt, GallopPattern *, PetscCount *, PetscBool *);
#endif
