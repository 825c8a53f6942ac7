static char help[] = "The package: the check that it fits its PETSc, its log events, and PETSc started more than once.\n\n";

#include "../galloptest.h"

/* What the check compares: as in src/sys/register.c */
typedef struct {
  PetscInt  major, minor;
  size_t    intsize, scalarsize, realsize;
  PetscBool cuda;
} GallopBuild;

PETSC_EXTERN PetscErrorCode GallopCheckBuild_Private(const void *, PetscBool *);

static const GallopBuild mine = {PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR, sizeof(PetscInt), sizeof(PetscScalar), sizeof(PetscReal), (PetscBool)PetscDefined(HAVE_CUDA)};

/* What the check writes to PETSc's stream for errors goes to text */
static PetscErrorCode Check(const GallopBuild *build, PetscBool *fits, char text[], size_t len)
{
  FILE       *saved = PETSC_STDERR, *file = tmpfile();
  size_t      n;
  PetscMPIInt rank;

  PetscFunctionBegin;
  PetscCheck(file, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "no temporary file");
  PETSC_STDERR = file;
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

static PetscErrorCode WrongPETSc(void)
{
  GallopBuild wrong[6] = {mine, mine, mine, mine, mine, mine};
  PetscBool   fits, found[2];
  char        text[1024], *p;

  PetscFunctionBegin;
  PetscCall(Check(&mine, &fits, text, sizeof(text)));
  PetscCheck(fits && !text[0], PETSC_COMM_WORLD, PETSC_ERR_PLIB, "the library does not fit its own PETSc: %s", text);
  wrong[0].major++;
  wrong[1].minor--;
  wrong[2].intsize    = 12 - mine.intsize; /* 4 and 8 change places */
  wrong[3].scalarsize = 2 * mine.scalarsize;
  wrong[4].realsize   = 2 * mine.realsize;
  wrong[5].cuda       = PetscNot(mine.cuda);
  for (int k = 0; k < 6; k++) {
    PetscCall(Check(&wrong[k], &fits, text, sizeof(text)));
    PetscCall(PetscStrstr(text, "libgallop was built for PETSc", &p));
    found[0] = p ? PETSC_TRUE : PETSC_FALSE;
    PetscCall(PetscStrstr(text, "No Gallop matrix type is registered", &p));
    found[1] = p ? PETSC_TRUE : PETSC_FALSE;
    PetscCheck(!fits && found[0] && found[1], PETSC_COMM_WORLD, PETSC_ERR_PLIB, "difference %d: %s, and said \"%s\"", k, fits ? "fits" : "does not fit", text);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode EventCount(const char name[], PetscInt *count, PetscLogDouble *flops)
{
  PetscLogEvent      event;
  PetscEventPerfInfo info;

  PetscFunctionBegin;
  PetscCall(PetscLogEventGetId(name, &event));
  PetscCheck(event >= 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "no event %s", name);
  PetscCall(PetscLogEventGetPerfInfo(PETSC_DETERMINE, event, &info));
  *count = info.count;
  *flops = info.flops;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Events(void)
{
  Mat            A, R;
  Vec            x, y;
  PetscInt       builds[2], refreshes[2], products[2];
  PetscLogDouble flops[2], none;
  MatInfo        info;

  PetscFunctionBegin;
  PetscCall(EventCount("EVCHYBBuild", &builds[0], &none));
  PetscCall(EventCount("EVCHYBRefresh", &refreshes[0], &none));
  PetscCall(EventCount("EVCHYBMult", &products[0], &flops[0]));
  PetscCall(TestCreate(PETSC_COMM_SELF, MATEVCHYB, TestSquare, 0, &A, &R));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecSet(x, 1.0));
  for (int k = 0; k < 5; k++) PetscCall(MatMult(A, x, y));
  PetscCall(MatScale(A, 2.0));
  PetscCall(MatMult(A, x, y));
  PetscCall(EventCount("EVCHYBBuild", &builds[1], &none));
  PetscCall(EventCount("EVCHYBRefresh", &refreshes[1], &none));
  PetscCall(EventCount("EVCHYBMult", &products[1], &flops[1]));
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
