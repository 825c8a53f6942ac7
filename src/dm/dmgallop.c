/* SPDX-License-Identifier: BSD-2-Clause */
/*
  Interpolations and restrictions of a DM: of the type of its matrices, and where these are.

  DMDA and DMSTAG keep the type that a DM's matrices have for an interpolation only when its name begins with aij, seqaij or mpiaij, and take plain MATAIJ, on the host, else. So a DM with
  the matrix type evchyb bears the name aijevchyb while it makes one. A type that the matrices get by -mat_type, which PETSc's DM does not know of, holds for interpolations too. And
  MATMAIJ, which DMDA uses for several unknowns per point, has no code for the GPU: PETSc makes MATAIJCUSPARSE of it itself, but knows no type of ours.
*/

#include <gallop/matgallopimpl.h>
#include <petsc/private/dmimpl.h>
#include <petscdmda.h>
#include <petscdmstag.h>
#include <petscdmplex.h>

/* What a DM of each of these types had before ours, and whether its DMCreateMatrix() calls MatSetFromOptions(), for a matrix without a prefix */
typedef struct {
  DMType    type;
  PetscBool setsfromoptions;
  PetscErrorCode (*create)(DM);
  PetscErrorCode (*createinterpolation)(DM, DM, Mat *, Vec *);
  PetscErrorCode (*createrestriction)(DM, DM, Mat *);
} ParentDM;

enum { DA, STAG, PLEX, PARENTS };

static ParentDM parents[PARENTS] = {
  {DMDA,   PETSC_TRUE,  NULL, NULL, NULL},
  {DMSTAG, PETSC_FALSE, NULL, NULL, NULL},
  {DMPLEX, PETSC_TRUE,  NULL, NULL, NULL}
};

/* The Gallop type that matrices of a DM get, NULL for another */
static PetscErrorCode MatricesType(DM dm, const ParentDM *parent, GallopType *type)
{
  char      name[64];
  PetscBool set = PETSC_FALSE;

  PetscFunctionBegin;
  if (parent->setsfromoptions) PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_type", name, sizeof(name), &set));
  PetscCall(GallopTypeFind(set ? name : dm->mattype, type));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Lets a DM bear the name of a type as DMDA and DMSTAG want it; its own comes back in own */
static PetscErrorCode BearName(DM dm, GallopType type, char **own)
{
  PetscFunctionBegin;
  *own = NULL;
  if (!type) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscStrallocpy(dm->mattype, own));
  PetscCall(DMSetMatType(dm, type->aijroot));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BearOwnName(DM dm, char **own)
{
  PetscFunctionBegin;
  if (*own) PetscCall(DMSetMatType(dm, *own));
  PetscCall(PetscFree(*own));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With vectors on the host MATMAIJ stays, which is the faster one there */
static PetscErrorCode ConvertMAIJ(DM dm, GallopType type, Mat *A)
{
  PetscBool maij, cuda, device;
  char     *p;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)*A, &maij, MATSEQMAIJ, MATMPIMAIJ, ""));
  PetscCall(PetscStrstr(dm->vectype, "cuda", &p));
  cuda = (PetscBool)(p != NULL);
  if (!maij || !cuda) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGallopDeviceOnAllProcesses(*A, &device));
  if (!device) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatConvert(*A, MATAIJ, MAT_INPLACE_MATRIX, A));
  PetscCall(MatConvert(*A, type->aijroot, MAT_INPLACE_MATRIX, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CreateInterpolation(const ParentDM *parent, DM coarse, DM fine, Mat *A, Vec *scale)
{
  GallopType     type;
  char          *own;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatricesType(coarse, parent, &type));
  PetscCall(BearName(coarse, type, &own));
  ierr = (*parent->createinterpolation)(coarse, fine, A, scale);
  PetscCall(BearOwnName(coarse, &own));
  PetscCall(ierr);
  if (type) PetscCall(ConvertMAIJ(coarse, type, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DMCreateInterpolation_DA_Gallop(DM coarse, DM fine, Mat *A, Vec *scale)
{
  return CreateInterpolation(&parents[DA], coarse, fine, A, scale);
}

static PetscErrorCode DMCreateInterpolation_Stag_Gallop(DM coarse, DM fine, Mat *A, Vec *scale)
{
  return CreateInterpolation(&parents[STAG], coarse, fine, A, scale);
}

static PetscErrorCode DMCreateRestriction_Stag_Gallop(DM coarse, DM fine, Mat *A)
{
  GallopType     type;
  char          *own;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatricesType(coarse, &parents[STAG], &type));
  PetscCall(BearName(coarse, type, &own));
  ierr = (*parents[STAG].createrestriction)(coarse, fine, A);
  PetscCall(BearOwnName(coarse, &own));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Run at the end of DMSetFromOptions() */
static PetscErrorCode TakeMatType(PetscObject dm, PetscOptionItems PetscOptionsObject, PetscCtx ctx)
{
  GallopType type, known;

  PetscFunctionBegin;
  (void)PetscOptionsObject, (void)ctx;
  PetscCall(MatricesType((DM)dm, &parents[PLEX], &type));
  PetscCall(GallopTypeFind(((DM)dm)->mattype, &known));
  if (type && type != known) PetscCall(DMSetMatType((DM)dm, type->aijroot));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DMCreate_DA_Gallop(DM dm)
{
  PetscFunctionBegin;
  PetscCall((*parents[DA].create)(dm));
  parents[DA].createinterpolation = dm->ops->createinterpolation;
  dm->ops->createinterpolation    = DMCreateInterpolation_DA_Gallop;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DMCreate_Stag_Gallop(DM dm)
{
  PetscFunctionBegin;
  PetscCall((*parents[STAG].create)(dm));
  parents[STAG].createinterpolation = dm->ops->createinterpolation;
  parents[STAG].createrestriction   = dm->ops->createrestriction;
  dm->ops->createinterpolation      = DMCreateInterpolation_Stag_Gallop;
  dm->ops->createrestriction        = DMCreateRestriction_Stag_Gallop;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  DMPLEX puts its functions into a DM anew whenever it replaces the mesh, but takes the DM's matrix type for interpolations as it is, and gives it to meshes made of this one: so it is
  enough that the DM knows it.
*/
static PetscErrorCode DMCreate_Plex_Gallop(DM dm)
{
  PetscFunctionBegin;
  PetscCall((*parents[PLEX].create)(dm));
  PetscCall(PetscObjectAddOptionsHandler((PetscObject)dm, TakeMatType, NULL, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The creators of DMs, which PetscFinalize() forgets together with ours */
PetscErrorCode DMRegister_Gallop(void)
{
  PetscErrorCode (*const ours[PARENTS])(DM) = {DMCreate_DA_Gallop, DMCreate_Stag_Gallop, DMCreate_Plex_Gallop};

  PetscFunctionBegin;
  PetscCall(DMInitializePackage());
  PetscCall(DMRegisterAll());
  for (int k = 0; k < PARENTS; k++) {
    PetscErrorCode (*create)(DM) = NULL;

    PetscCall(PetscFunctionListFind(DMList, parents[k].type, &create));
    if (!create || create == ours[k]) continue;
    parents[k].create = create;
    PetscCall(DMRegister(parents[k].type, ours[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
