/* SPDX-License-Identifier: BSD-2-Clause */
/*
  The registered types: the names, options and log events that derive from the name of a format, and what PETSc is told of them.
*/

#include <gallop/matgallopimpl.h>

static GallopType GallopTypeList = NULL;
static GallopType TiledSpMMType  = NULL; /* not in the list, since no matrix type belongs to it */

PetscErrorCode GallopTypesDestroy(void)
{
  PetscFunctionBegin;
  while (GallopTypeList) {
    GallopType next = GallopTypeList->next;

    PetscCall(PetscFree(GallopTypeList));
    GallopTypeList = next;
  }
  PetscCall(PetscFree(TiledSpMMType));
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

/* The names and log events that derive from the name of a format, or of TiledSpMM */
static PetscErrorCode GallopTypeCreate(const GallopFormat *format, GallopType *type)
{
  GallopType t;
  char       event[64];

  PetscFunctionBegin;
  PetscCall(PetscNew(&t));
  t->format = format;
  PetscCall(PetscSNPrintf(t->root, sizeof(t->root), "%s", format->name));
  PetscCall(PetscSNPrintf(t->aijroot, sizeof(t->aijroot), "aij%s", format->name));
  PetscCall(PetscSNPrintf(t->seq, sizeof(t->seq), "seqaij%s", format->name));
  PetscCall(PetscSNPrintf(t->mpi, sizeof(t->mpi), "mpiaij%s", format->name));
  PetscCall(PetscSNPrintf(event, sizeof(event), "%sBuild", format->ucname));
  PetscCall(GallopLogEventRegister(event, MAT_CLASSID, &t->event_build));
  PetscCall(PetscSNPrintf(event, sizeof(event), "%sRefresh", format->ucname));
  PetscCall(GallopLogEventRegister(event, MAT_CLASSID, &t->event_refresh));
  PetscCall(PetscSNPrintf(event, sizeof(event), "%sMult", format->ucname));
  PetscCall(GallopLogEventRegister(event, MAT_CLASSID, &t->event_mult));
  *type = t;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopTypeOfTiledSpMM(GallopType *type)
{
  PetscFunctionBegin;
  if (!TiledSpMMType) PetscCall(GallopTypeCreate(&GallopFormat_TILEDSPMM, &TiledSpMMType));
  *type = TiledSpMMType;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  GallopFormatRegister - Makes the matrix types, options and log events of a format known to PETSc

  A format is registered once between PetscInitialize() and PetscFinalize(); a second call does nothing.
*/
PetscErrorCode GallopFormatRegister(const GallopFormat *format)
{
  GallopType t, found;

  PetscFunctionBegin;
  PetscCall(GallopTypeFind(format->name, &found));
  if (found) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopTypeCreate(format, &t));
  PetscCall(MatRegister(t->seq, format->createseq));
  PetscCall(MatRegister(t->mpi, format->creatempi));
  /* PETSc goes from a type back to the first root name registered for it, and needs that one to begin with aij */
  PetscCall(MatRegisterRootName(t->aijroot, t->seq, t->mpi));
  PetscCall(MatRegisterRootName(t->root, t->seq, t->mpi));
  PetscCall(MatSeqAIJRegister(t->seq, MatConvert_AIJ_Gallop));
  t->next        = GallopTypeList;
  GallopTypeList = t;
  PetscFunctionReturn(PETSC_SUCCESS);
}
