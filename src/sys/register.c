/* SPDX-License-Identifier: BSD-2-Clause */
/* Entry points of libgallop.so, and the check that it fits the PETSc that loads it */

#include <gallop/matgallopimpl.h>

PETSC_INTERN const GallopFormat *const GallopFormats[];

PetscLogEvent Gallop_MatPermute, Gallop_VecPermute, Gallop_TermsAdd, Gallop_BlocksAdd, Gallop_GhostBegin, Gallop_GhostEnd;

static PetscBool GallopPackageInitialized = PETSC_FALSE;

static PetscViewer StatisticsViewer = NULL; /* of -gallop_statistics */

/*@
  GallopGetVersion - Gets the version of the Gallop library that runs, as text

  Not Collective

  Input Parameter:
. len - length of `version` in characters; a longer text is cut

  Output Parameter:
. version - the version, such as `0.2.0`

  Level: beginner

  Note:
  `GALLOP_VERSION_MAJOR`, `GALLOP_VERSION_MINOR` and `GALLOP_VERSION_SUBMINOR` are those of the header that a program was compiled with.

.seealso: `GallopGetCommit()`, `GallopView()`, `GallopInitializePackage()`, `PetscGetVersion()`
@*/
PetscErrorCode GallopGetVersion(char version[], size_t len)
{
  PetscFunctionBegin;
  PetscAssertPointer(version, 1);
  PetscCall(PetscSNPrintf(version, len, "%d.%d.%d", GALLOP_VERSION_MAJOR, GALLOP_VERSION_MINOR, GALLOP_VERSION_SUBMINOR));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GallopFinalizePackage(void)
{
  PetscFunctionBegin;
  if (StatisticsViewer) PetscCall(GallopStatisticsView(StatisticsViewer));
  PetscCall(PetscViewerDestroy(&StatisticsViewer));
  PetscCall(GallopNCCLFinalize());
  PetscCall(GallopIPCFinalize());
#if PetscDefined(HAVE_CUDA)
  PetscCall(GallopSideStreamDestroy());
#endif
  PetscCall(GallopTypesDestroy());
  GallopPackageInitialized = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What this library was compiled against; a PETSc that differs in any of it lays out its objects differently. Exported for the test. */
typedef struct {
  int       major, minor, release; /* release: 0 between releases, where PETSc's main branch has the numbers of the last one */
  size_t    intsize, scalarsize, realsize;
  PetscBool cuda;
} GallopBuild;

PETSC_EXTERN PetscErrorCode GallopCheckBuild_Private(const void *, PetscBool *);

/* PETSC_INT, PETSC_SCALAR and PETSC_REAL are this library's; only libpetsc knows what their names mean to it */
static PetscErrorCode GetRuntimeSize(const char name[], size_t *size)
{
  PetscDataType type;
  PetscBool     found;

  PetscFunctionBegin;
  PetscCall(PetscDataTypeFromString(name, &type, &found));
  PetscCheck(found, PETSC_COMM_SELF, PETSC_ERR_PLIB, "PETSc has no data type %s", name);
  PetscCall(PetscDataTypeGetSize(type, size));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GetRuntimeBuild(GallopBuild *p)
{
  PetscInt64 version[4] = {0, 0, 0, 0}; /* room for any size of PetscInt: PETSc writes its own, not this library's */
  int        number[4];

  PetscFunctionBegin;
  PetscCall(GetRuntimeSize("int", &p->intsize));
  PetscCall(GetRuntimeSize("scalar", &p->scalarsize));
  PetscCall(GetRuntimeSize("real", &p->realsize));
  PetscCall(PetscGetVersionNumber((PetscInt *)&version[0], (PetscInt *)&version[1], (PetscInt *)&version[2], (PetscInt *)&version[3]));
  for (int k = 0; k < 4; k++) {
    PetscInt32 low;

    (void)memcpy(&low, &version[k], sizeof(low));
    number[k] = p->intsize == sizeof(PetscInt64) ? (int)version[k] : (int)low;
  }
  p->major   = number[0];
  p->minor   = number[1];
  p->release = number[3];
  PetscCall(PetscHasExternalPackage("cuda", &p->cuda));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* In the words of configure's options, as config/petsc describes a PETSc */
static PetscErrorCode DescribeKind(const GallopBuild *b, char text[], size_t len)
{
  const char *const precision = b->realsize == 2 ? "half" : b->realsize == 4 ? "single" : b->realsize == 8 ? "double" : "quadruple";

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(text, len, "%s, %s precision, %d-bit indices, %s CUDA", b->scalarsize > b->realsize ? "complex" : "real", precision, (int)(8 * b->intsize), b->cuda ? "with" : "without"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DescribeBuild(const GallopBuild *b, char text[], size_t len)
{
  char kind[96];

  PetscFunctionBegin;
  PetscCall(DescribeKind(b, kind, sizeof(kind)));
  PetscCall(PetscSNPrintf(text, len, "PETSc %d.%d%s (%s)", b->major, b->minor, b->release ? "" : "+", kind));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The PETSc that runs, which is of the kind that the library was built for */
PetscErrorCode GallopDescribePETSc(char text[], size_t len)
{
  GallopBuild p;
  char        kind[96];
  PetscInt    major, minor, subminor;

  PetscFunctionBegin;
  PetscCall(GetRuntimeBuild(&p));
  PetscCall(DescribeKind(&p, kind, sizeof(kind)));
  PetscCall(PetscGetVersionNumber(&major, &minor, &subminor, NULL));
  PetscCall(PetscSNPrintf(text, len, "%" PetscInt_FMT ".%" PetscInt_FMT ".%" PetscInt_FMT ", %s, %s", major, minor, subminor, kind, PetscDefined(USE_DEBUG) ? "debugging" : "optimized"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopCheckBuild_Private(const void *build, PetscBool *fits)
{
  const GallopBuild *b = (const GallopBuild *)build;
  GallopBuild        p;
  char               built[128], used[128];

  PetscFunctionBegin;
  PetscCall(GetRuntimeBuild(&p));
  *fits = (PetscBool)(p.major == b->major && p.minor == b->minor && p.release == b->release && p.intsize == b->intsize && p.scalarsize == b->scalarsize && p.realsize == b->realsize && p.cuda == b->cuda);
  if (!*fits) {
    PetscCall(DescribeBuild(b, built, sizeof(built)));
    PetscCall(DescribeBuild(&p, used, sizeof(used)));
    PetscCall(PetscFPrintf(PETSC_COMM_WORLD, PETSC_STDERR, "libgallop was built for %s; this program uses %s. No Gallop matrix type is registered: build libgallop with this program's PETSC_DIR and PETSC_ARCH.\n", built, used));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopLogEventRegister - An event of this process's work, which others may not have: with -log_sync PETSc makes all processes wait for each other before an event that it takes to be collective */
PetscErrorCode GallopLogEventRegister(const char name[], PetscClassId classid, PetscLogEvent *event)
{
  PetscFunctionBegin;
  PetscCall(PetscLogEventRegister(name, classid, event));
  PetscCall(PetscLogEventSetCollective(*event, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* -gallop_view */
static PetscErrorCode ViewFromOptions(void)
{
  PetscViewer       viewer;
  PetscViewerFormat format;
  PetscBool         set;

  PetscFunctionBegin;
  PetscCall(PetscOptionsCreateViewer(PETSC_COMM_WORLD, NULL, NULL, "-gallop_view", &viewer, &format, &set));
  if (!set) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopView(viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  GallopInitializePackage - Registers the Gallop matrix types, `MATORDERINGGALLOP`, `PCGALLOPREORDER` and `PETSCSFGALLOP` with PETSc

  Collective

  Options Database Keys:
+ -device_enable <lazy>          - PETSc's own: with `none` this library uses no GPU either, and its types derive from `MATAIJ`
. -device_enable_cuda <lazy>     - PETSc's own, for CUDA alone: where it is given, `-device_enable` does not count for CUDA
. -gallop_view viewer            - calls `GallopView()` when the library is loaded
. -gallop_statistics viewer      - shows in `PetscFinalize()`, for each type, what `MatGallopGetStatistics()` tells of matrices that were destroyed before, summed over all processes: products, by
                                   whom they were computed, formats and structures for products with dense matrices that were built and refreshed, and their bytes, the most that each process had
                                   at one time
. -gallop_warn_no_gpu <true>     - warns once, on the first process, where PETSc was configured with CUDA and the first Gallop matrix finds no GPU, so that products are computed on the host
. -mat_gallop_build <pays>       - when formats are built and refreshed, of all matrices whose own prefix does not say it again: see `MATEVCHYB`
. -mat_gallop_explicit_transpose <gpu> - where transposed products get a format of the transpose, likewise
. -mat_gallop_exchange <auto>    - how ghost values go from process to process, likewise
. -sf_gallop_exchange <auto>     - how those of a `PetscSF` of type `PETSCSFGALLOP` go
. -mat_gallop_exchange_wait <auto> - what waits for them on the GPU, the `stream` or a `kernel`; `auto` takes the stream where the driver says that it can
. -mat_gallop_exchange_stream <auto> - the stream on which they are packed on the GPU: the `same` as that of products, or a `side` stream, which `auto` takes beside long products
. -mat_gallop_nccl <libnccl.so.2>  - the library of NCCL, as dlopen() takes it, for the `nccl` and `auto` of that
. -mat_gallop_csr <auto>         - whether the CSR arrays of matrices assembled on the host stay on the GPU beside formats, likewise
. -mat_gallop_memory <0>         - most bytes of all copies of a matrix together, likewise
. -gallop_cusparse_nonzeros <n>  - most nonzeros of a matrix, or of its blocks on one process, for cuSPARSE to multiply: one with more is not given to it. By default 2^31 - 128 with versions before 12.8 (CUDA 13.3), which end in an error there, and all with others
- -gallop_device_malloc_fail <0> - for tests: as if the GPU had no room at the n-th request of this library for GPU memory, counted from when the option was set, and at all later ones; 0 for never

  Level: developer

  Notes:
  A program that loads the library with `-dll_append /path/to/libgallop.so` need not call this. A program linked with the library
  calls it once after `PetscInitialize()`, on all processes. `PetscFinalize()` undoes it, and waits for all of them. With `-mpi_linear_solver_server` a program gets no further than `PetscInitialize()` on
  all processes but the first, so that the library has to be loaded by `-dll_append` there.

  When PETSc differs from the one that the library was built for, in version, integers, scalars or CUDA, a message says so and
  nothing is registered.

.seealso: `GallopView()`, `MATEVCHYB`, `MatRegister()`
@*/
PetscErrorCode GallopInitializePackage(void)
{
  const GallopBuild mine     = {PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR, PETSC_VERSION_RELEASE, sizeof(PetscInt), sizeof(PetscScalar), sizeof(PetscReal), (PetscBool)PetscDefined(HAVE_CUDA)};
  const char *const others[] = {"-gallop_warn_no_gpu",  "-mat_gallop_build",         "-mat_gallop_products",        "-mat_gallop_explicit_transpose",
                                "-mat_gallop_exchange", "-mat_gallop_exchange_wait", "-mat_gallop_exchange_stream", "-mat_gallop_nccl",
                                "-mat_gallop_csr",      "-mat_gallop_memory",        "-sf_gallop_exchange",       "-gallop_cusparse_nonzeros"}; /* these are not unused where no matrix asks for them */
  PetscBool         fits, set;
  GallopType        tiledspmm;

  PetscFunctionBegin;
  if (GallopPackageInitialized) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopCheckBuild_Private(&mine, &fits));
  if (!fits) PetscFunctionReturn(PETSC_SUCCESS);
  GallopPackageInitialized = PETSC_TRUE;
  PetscCall(PetscOptionsCreateViewer(PETSC_COMM_WORLD, NULL, NULL, "-gallop_statistics", &StatisticsViewer, NULL, NULL)); /* first: PETSc finalizes in the opposite order */
  PetscCall(PetscRegisterFinalize(GallopFinalizePackage));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(others); k++) PetscCall(PetscOptionsHasName(NULL, NULL, others[k], &set));
  PetscCall(MatInitializePackage());
  PetscCall(GallopTypeOfTiledSpMM(&tiledspmm)); /* its log events, on all processes */
  PetscCall(MatSolverTypeRegister_Gallop());
  for (int k = 0; GallopFormats[k]; k++) PetscCall(GallopFormatRegister(GallopFormats[k]));
  PetscCall(PetscLogEventRegister("GallopMatPermute", MAT_CLASSID, &Gallop_MatPermute));
  PetscCall(GallopLogEventRegister("GallopVecPermute", VEC_CLASSID, &Gallop_VecPermute));
  PetscCall(GallopLogEventRegister("GallopTermsAdd", VEC_CLASSID, &Gallop_TermsAdd));
  PetscCall(GallopLogEventRegister("GallopBlocksAdd", VEC_CLASSID, &Gallop_BlocksAdd));
  PetscCall(GallopLogEventRegister("GallopGhostBegin", MAT_CLASSID, &Gallop_GhostBegin));
  PetscCall(GallopLogEventRegister("GallopGhostEnd", MAT_CLASSID, &Gallop_GhostEnd));
  PetscCall(MatOrderingRegister(MATORDERINGGALLOP, MatGetOrdering_Gallop));
  PetscCall(PCRegister(PCGALLOPREORDER, PCCreate_GallopReorder));
  PetscCall(PCRegister_GallopBlockJacobi());
  PetscCall(KSPInitializePackage());
  PetscCall(KSPRegister_GallopCG());
  PetscCall(KSPRegister_GallopBCGS());
  PetscCall(KSPRegister_GallopGMRES());
  PetscCall(KSPRegister_GallopChebyshev());
  PetscCall(KSPRegister_GallopRichardson());
  PetscCall(PetscSFRegister_Gallop());
  PetscCall(DMRegister_Gallop());
  PetscCall(ViewFromOptions());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc calls this when it loads libgallop.so */
PETSC_EXTERN PetscErrorCode PetscDLLibraryRegister_gallop(void)
{
  PetscFunctionBegin;
  PetscCall(GallopInitializePackage());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same where PETSc's configure has put the library beside PETSc's own, as libpetscgallop.so */
PETSC_EXTERN PetscErrorCode PetscDLLibraryRegister_petscgallop(void)
{
  PetscFunctionBegin;
  PetscCall(GallopInitializePackage());
  PetscFunctionReturn(PETSC_SUCCESS);
}
