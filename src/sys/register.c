/* Entry points of libgallop.so, the check that it fits the PETSc that loads it, and the registry of formats */

#include <gallop/matgallopimpl.h>

PETSC_INTERN const GallopFormat *const GallopFormats[];

static GallopType GallopTypeList          = NULL;
static PetscBool  GallopPackageInitialized = PETSC_FALSE;

static PetscErrorCode GallopFinalizePackage(void)
{
  PetscFunctionBegin;
  while (GallopTypeList) {
    GallopType next = GallopTypeList->next;

    PetscCall(PetscFree(GallopTypeList));
    GallopTypeList = next;
  }
  GallopPackageInitialized = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopTypeGetList(GallopType *list)
{
  PetscFunctionBegin;
  *list = GallopTypeList;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The registered type that a name, root or sequential or MPI, belongs to; NULL when none does */
PetscErrorCode GallopTypeFind(const char name[], GallopType *type)
{
  PetscBool match = PETSC_FALSE;

  PetscFunctionBegin;
  *type = NULL;
  if (!name) PetscFunctionReturn(PETSC_SUCCESS);
  for (GallopType t = GallopTypeList; t; t = t->next) {
    const char *const names[] = {t->seq, t->mpi, t->root, t->aijroot};

    for (int k = 0; k < 4 && !match; k++) PetscCall(PetscStrcmp(name, names[k], &match));
    if (match) {
      *type = t;
      break;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopTypeOfFormat(const GallopFormat *format, GallopType *type)
{
  PetscFunctionBegin;
  for (*type = GallopTypeList; *type && (*type)->format != format; *type = (*type)->next) { }
  PetscCheck(*type, PETSC_COMM_SELF, PETSC_ERR_ORDER, "Format %s is not registered: call GallopInitializePackage() or GallopFormatRegister() first", format->name);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  GallopFormatRegister - Makes the matrix types, options and log events of a format known to PETSc

  A format is registered once between PetscInitialize() and PetscFinalize(); a second call does nothing.
*/
PetscErrorCode GallopFormatRegister(const GallopFormat *format)
{
  GallopType t, found;
  char       event[64];

  PetscFunctionBegin;
  PetscCall(GallopTypeFind(format->name, &found));
  if (found) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscNew(&t));
  t->format = format;
  PetscCall(PetscSNPrintf(t->root, sizeof(t->root), "%s", format->name));
  PetscCall(PetscSNPrintf(t->aijroot, sizeof(t->aijroot), "aij%s", format->name));
  PetscCall(PetscSNPrintf(t->seq, sizeof(t->seq), "seqaij%s", format->name));
  PetscCall(PetscSNPrintf(t->mpi, sizeof(t->mpi), "mpiaij%s", format->name));
  PetscCall(MatRegister(t->seq, format->createseq));
  PetscCall(MatRegister(t->mpi, format->creatempi));
  /* PETSc goes from a type back to the first root name registered for it, and needs that one to begin with aij */
  PetscCall(MatRegisterRootName(t->aijroot, t->seq, t->mpi));
  PetscCall(MatRegisterRootName(t->root, t->seq, t->mpi));
  PetscCall(MatSeqAIJRegister(t->seq, MatConvert_AIJ_Gallop));
  PetscCall(MatSolverTypeRegister_Gallop(t));
  PetscCall(PetscSNPrintf(event, sizeof(event), "%sBuild", format->ucname));
  PetscCall(PetscLogEventRegister(event, MAT_CLASSID, &t->event_build));
  PetscCall(PetscSNPrintf(event, sizeof(event), "%sRefresh", format->ucname));
  PetscCall(PetscLogEventRegister(event, MAT_CLASSID, &t->event_refresh));
  PetscCall(PetscSNPrintf(event, sizeof(event), "%sMult", format->ucname));
  PetscCall(PetscLogEventRegister(event, MAT_CLASSID, &t->event_mult));
  t->next        = GallopTypeList;
  GallopTypeList = t;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What this library was compiled against; a PETSc that differs in any of it lays out its objects differently. Exported for the test. */
typedef struct {
  PetscInt  major, minor;
  size_t    intsize, scalarsize, realsize;
  PetscBool cuda;
} GallopBuild;

PETSC_EXTERN PetscErrorCode GallopCheckBuild_Private(const void *, PetscBool *);

PetscErrorCode GallopCheckBuild_Private(const void *build, PetscBool *fits)
{
  const GallopBuild *b = (const GallopBuild *)build;
  GallopBuild        p;
  PetscInt           subminor, release;

  PetscFunctionBegin;
  PetscCall(PetscGetVersionNumber(&p.major, &p.minor, &subminor, &release));
  PetscCall(PetscDataTypeGetSize(PETSC_INT, &p.intsize));
  PetscCall(PetscDataTypeGetSize(PETSC_SCALAR, &p.scalarsize));
  PetscCall(PetscDataTypeGetSize(PETSC_REAL, &p.realsize));
  PetscCall(PetscHasExternalPackage("cuda", &p.cuda));
  *fits = (PetscBool)(p.major == b->major && p.minor == b->minor && p.intsize == b->intsize && p.scalarsize == b->scalarsize && p.realsize == b->realsize && p.cuda == b->cuda);
  if (!*fits) {
    PetscCall(PetscFPrintf(PETSC_COMM_WORLD, PETSC_STDERR,
                           "libgallop was built for PETSc %d.%d with %d-byte PetscInt, %d-byte PetscScalar (%d-byte PetscReal), CUDA %s; this program uses PETSc %d.%d with %d-byte PetscInt, %d-byte PetscScalar "
                           "(%d-byte PetscReal), CUDA %s. No Gallop matrix type is registered: build libgallop with this program's PETSC_DIR and PETSC_ARCH.\n",
                           (int)b->major, (int)b->minor, (int)b->intsize, (int)b->scalarsize, (int)b->realsize, b->cuda ? "yes" : "no", (int)p.major, (int)p.minor, (int)p.intsize, (int)p.scalarsize,
                           (int)p.realsize, p.cuda ? "yes" : "no"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  GallopInitializePackage - Registers the Gallop matrix types with PETSc

  Not Collective

  Level: developer

  Notes:
  A program that loads the library with `-dll_append libgallop.so` need not call this. A program linked with the library
  calls it once after `PetscInitialize()`. `PetscFinalize()` undoes it.

  When PETSc differs from the one that the library was built for, in version, integers, scalars or CUDA, a message says so and
  nothing is registered.

.seealso: `MATEVCHYB`, `MatRegister()`
@*/
PetscErrorCode GallopInitializePackage(void)
{
  const GallopBuild mine = {PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR, sizeof(PetscInt), sizeof(PetscScalar), sizeof(PetscReal), (PetscBool)PetscDefined(HAVE_CUDA)};
  PetscBool         fits;

  PetscFunctionBegin;
  if (GallopPackageInitialized) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopCheckBuild_Private(&mine, &fits));
  if (!fits) PetscFunctionReturn(PETSC_SUCCESS);
  GallopPackageInitialized = PETSC_TRUE;
  PetscCall(PetscRegisterFinalize(GallopFinalizePackage));
  PetscCall(MatInitializePackage());
  for (int k = 0; GallopFormats[k]; k++) PetscCall(GallopFormatRegister(GallopFormats[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc calls this when it loads libgallop.so */
PETSC_EXTERN PetscErrorCode PetscDLLibraryRegister_gallop(void)
{
  PetscFunctionBegin;
  PetscCall(GallopInitializePackage());
  PetscFunctionReturn(PETSC_SUCCESS);
}
