/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE /* for RTLD_NEXT */
#include <dlfcn.h>

static char help[] = "The package: the check that it fits its PETSc, its log events, and PETSc started more than once.\n\n";

#include "../galloptest.h"

/* What the check compares: as in src/sys/register.c */
typedef struct {
  int       major, minor, release;
  size_t    intsize, scalarsize, realsize;
  PetscBool cuda;
} GallopBuild;

PETSC_EXTERN PetscErrorCode GallopCheckBuild_Private(const void *, PetscBool *);

static const GallopBuild mine = {PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR, PETSC_VERSION_RELEASE, sizeof(PetscInt), sizeof(PetscScalar), sizeof(PetscReal), (PetscBool)PetscDefined(HAVE_CUDA)};

/*
  The PETSc that the check is to see instead of the one that is there. A program's functions come before those of its
  libraries: libgallop calls the ones here.
*/
static const GallopBuild *pretended = NULL;

PetscErrorCode PetscGetVersionNumber(PetscInt *major, PetscInt *minor, PetscInt *subminor, PetscInt *release)
{
  const GallopBuild *p      = pretended ? pretended : &mine;
  void              *to[]   = {release, subminor, minor, major}; /* backwards: one that is too long shows in the one before */
  const int          from[] = {p->release, 1, p->minor, p->major};

  for (int k = 0; k < 4; k++) {
    if (!to[k]) continue;
    if (p->intsize == 8) {
      const PetscInt64 value = from[k];

      (void)memcpy(to[k], &value, 8);
    } else {
      const PetscInt32 value = from[k];

      (void)memcpy(to[k], &value, 4);
    }
  }
  return PETSC_SUCCESS;
}

PetscErrorCode PetscDataTypeFromString(const char name[], PetscDataType *type, PetscBool *found)
{
  PetscErrorCode (*next)(const char[], PetscDataType *, PetscBool *) = NULL;

  PetscFunctionBegin;
  *(void **)&next = dlsym(RTLD_NEXT, "PetscDataTypeFromString");
  PetscCall((*next)(name, type, found));
  if (pretended && !strcmp(name, "real")) *type = pretended->realsize == 4 ? PETSC_FLOAT : PETSC_DOUBLE;
  if (pretended && !strcmp(name, "scalar")) *type = pretended->scalarsize == 4 ? PETSC_FLOAT : pretended->scalarsize == pretended->realsize ? PETSC_DOUBLE : PETSC_COMPLEX;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PetscDataTypeGetSize(PetscDataType type, size_t *size)
{
  PetscErrorCode (*next)(PetscDataType, size_t *) = NULL;

  PetscFunctionBegin;
  *(void **)&next = dlsym(RTLD_NEXT, "PetscDataTypeGetSize");
  PetscCall((*next)(type, size));
  if (pretended && type == PETSC_INT) *size = pretended->intsize;
  if (pretended && type == PETSC_COMPLEX) *size = 2 * pretended->realsize;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PetscHasExternalPackage(const char name[], PetscBool *has)
{
  PetscErrorCode (*next)(const char[], PetscBool *) = NULL;

  PetscFunctionBegin;
  *(void **)&next = dlsym(RTLD_NEXT, "PetscHasExternalPackage");
  PetscCall((*next)(name, has));
  if (pretended && !strcmp(name, "cuda")) *has = pretended->cuda;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Leaves no zeros on the stack where the check keeps its variables */
static void DirtyStack(void)
{
  volatile char dirt[8192];

  for (size_t k = 0; k < sizeof(dirt); k++) dirt[k] = 0x55;
}

/* What the check writes to PETSc's stream for errors goes to text */
static PetscErrorCode Check(const GallopBuild *build, PetscBool *fits, char text[], size_t len)
{
  FILE       *saved = PETSC_STDERR, *file = tmpfile();
  size_t      n;
  PetscMPIInt rank;

  PetscFunctionBegin;
  PetscCheck(file, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "no temporary file");
  PETSC_STDERR = file;
  DirtyStack();
  PetscCall(GallopCheckBuild_Private(build, fits));
  PETSC_STDERR = saved;
  rewind(file);
  n       = fread(text, 1, len - 1, file);
  text[n] = 0;
  (void)fclose(file);
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Bcast(text, (PetscMPIInt)len, MPI_CHAR, 0, PETSC_COMM_WORLD));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Describe(const GallopBuild *b, char text[], size_t len)
{
  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(text, len, "PETSc %d.%d%s (%s, %s precision, %d-bit indices, %s CUDA)", b->major, b->minor, b->release ? "" : "+", b->scalarsize > b->realsize ? "complex" : "real", b->realsize == 4 ? "single" : "double", (int)(8 * b->intsize), b->cuda ? "with" : "without"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A PETSc of each kind that this library was not built for, and this PETSc with a library of each kind */
static PetscErrorCode WrongPETSc(void)
{
  GallopBuild wrong[8] = {mine, mine, mine, mine, mine, mine, mine, mine};
  PetscBool   fits;
  char        text[1024], expected[1024], here[128], other[128];

  PetscFunctionBegin;
  PetscCall(Check(&mine, &fits, text, sizeof(text)));
  PetscCheck(fits && !text[0], PETSC_COMM_WORLD, PETSC_ERR_PLIB, "the library does not fit its own PETSc: %s", text);
  PetscCall(Describe(&mine, here, sizeof(here)));
  wrong[0].major++;
  wrong[1].minor--;
  wrong[2].intsize    = 12 - mine.intsize;                                          /* 4 and 8 change places */
  wrong[3].scalarsize = (mine.scalarsize == mine.realsize ? 2 : 1) * mine.realsize; /* real and complex */
  wrong[4].realsize   = 12 - mine.realsize;                                         /* single and double */
  wrong[4].scalarsize = (mine.scalarsize == mine.realsize ? 1 : 2) * wrong[4].realsize;
  wrong[5].cuda       = PetscNot(mine.cuda);
  wrong[6].intsize    = wrong[2].intsize;
  wrong[6].realsize   = wrong[4].realsize;
  wrong[6].scalarsize = wrong[4].scalarsize;
  wrong[7].release    = 1 - mine.release;
  for (int k = 0; k < 16; k++) {
    const GallopBuild *w = &wrong[k / 2];

    PetscCall(Describe(w, other, sizeof(other)));
    pretended = k % 2 ? w : NULL;
    PetscCall(Check(k % 2 ? &mine : w, &fits, text, sizeof(text)));
    pretended = NULL;
    PetscCall(PetscSNPrintf(expected, sizeof(expected), "libgallop was built for %s; this program uses %s. No Gallop matrix type is registered: build libgallop with this program's PETSC_DIR and PETSC_ARCH.\n", k % 2 ? here : other, k % 2 ? other : here));
    PetscCheck(!fits && !strcmp(text, expected), PETSC_COMM_WORLD, PETSC_ERR_PLIB, "difference %d: %s, and said \"%s\", not \"%s\"", k, fits ? "fits" : "does not fit", text, expected);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Events(void)
{
  Mat            A, R;
  Vec            x, y;
  PetscInt       builds[2] = {0}, refreshes[2] = {0}, products[2] = {0};
  PetscLogDouble flops[2] = {0}, none;
  MatInfo        info;

  PetscFunctionBegin;
  PetscCall(TestEventCount("EVCHYBBuild", &builds[0], &none));
  PetscCall(TestEventCount("EVCHYBRefresh", &refreshes[0], &none));
  PetscCall(TestEventCount("EVCHYBMult", &products[0], &flops[0]));
  PetscCall(TestCreate(PETSC_COMM_SELF, MATEVCHYB, TestSquare, 0, &A, &R));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecSet(x, 1.0));
  for (int k = 0; k < 5; k++) PetscCall(MatMult(A, x, y));
  PetscCall(MatScale(A, 2.0));
  PetscCall(MatMult(A, x, y));
  PetscCall(TestEventCount("EVCHYBBuild", &builds[1], &none));
  PetscCall(TestEventCount("EVCHYBRefresh", &refreshes[1], &none));
  PetscCall(TestEventCount("EVCHYBMult", &products[1], &flops[1]));
  PetscCheck(builds[1] - builds[0] == 1, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " builds logged", builds[1] - builds[0]);
  PetscCheck(refreshes[1] - refreshes[0] == 1, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " refreshes logged", refreshes[1] - refreshes[0]);
  PetscCheck(products[1] - products[0] == 6, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " products logged", products[1] - products[0]);
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  flops[1] = (flops[1] - flops[0]) / (PetscDefined(USE_COMPLEX) ? 4 : 1); /* PETSc counts real operations */
  PetscCheck(flops[1] > 6 * info.nz_used && flops[1] <= 12 * info.nz_used, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%g flops logged, for 6 products of %g entries", flops[1], info.nz_used);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Product(void)
{
  Mat                 A, R;
  MatGallopStatistics last = {0};

  PetscFunctionBegin;
  PetscCall(TestCreate(PETSC_COMM_WORLD, MATEVCHYB, TestSquare, 0, &A, &R));
  PetscCall(TestProducts(A, R, TEST_BUILD, &last, "new matrix"));
  PetscCall(TestDestroy(&A, &R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With -log_sync PETSc has a barrier before events that are collective, and what processes do in products differs */
static PetscErrorCode NotCollective(void)
{
  const char *const events[] = {"EVCHYBBuild", "EVCHYBRefresh", "EVCHYBMult", "GallopTermsAdd", "GallopBlocksAdd", "GallopGhostBegin", "GallopVecPermute", "GallopCGFused", "GallopBCGSFused", "GallopGMRESFused", "GallopChebFused", "GallopRichFused"};
  PetscLogState     state;

  PetscFunctionBegin;
  PetscCall(PetscLogGetState(&state));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(events); k++) {
    PetscLogEvent     event;
    PetscLogEventInfo info;

    PetscCall(PetscLogEventGetId(events[k], &event));
    PetscCheck(event >= 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "There is no event %s", events[k]);
    PetscCall(PetscLogStateEventGetInfo(state, event, &info));
    PetscCheck(!info.collective, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s is collective", events[k]);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscMPIInt provided;

  if (MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided)) return 1;
  PetscFunctionBeginUser;
  for (int k = 0; k < 3; k++) { /* PetscFinalize() forgets the types: they can be registered anew */
    PetscCall(PetscInitialize(&argc, &argv, NULL, help));
    PetscCall(PetscLogDefaultBegin());
    PetscCall(GallopInitializePackage());
    PetscCall(GallopInitializePackage()); /* twice is once */
    PetscCall(WrongPETSc());
    PetscCall(Product());
    PetscCall(Events());
    PetscCall(NotCollective());
    PetscCall(PetscFinalize());
  }
  (void)MPI_Finalize();
  return 0;
}

/*TEST

  test:
    suffix: 1
    output_file: output/empty.out
    nsize: {{1 2}}

TEST*/
