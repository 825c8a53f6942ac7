/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "Interpolation, restriction and injection of a DM with a Gallop type: by our code, where the DM's vectors are, whichever name of the type the DM was given.\n\n";

#include "../galloptest.h"
#include <petscdmda.h>
#include <petscdmplex.h>
#include <petscdmstag.h>
#include <petscfe.h>

/* A small mesh with dof unknowns per point: -dm da1, da2, da3, stag or plex */
static PetscErrorCode CreateMesh(const char kind[], PetscInt dof, DM *dm)
{
  PetscFunctionBegin;
  if (!strcmp(kind, "da1")) PetscCall(DMDACreate1d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, 17, dof, 1, NULL, dm));
  else if (!strcmp(kind, "da2")) PetscCall(DMDACreate2d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_BOX, 9, 11, PETSC_DECIDE, PETSC_DECIDE, dof, 1, NULL, NULL, dm));
  else if (!strcmp(kind, "da3"))
    PetscCall(DMDACreate3d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, 5, 6, 7, PETSC_DECIDE, PETSC_DECIDE, PETSC_DECIDE, dof, 1, NULL, NULL, NULL, dm));
  else if (!strcmp(kind, "stag")) PetscCall(DMStagCreate2d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, 8, 8, PETSC_DECIDE, PETSC_DECIDE, 0, dof, 1, DMSTAG_STENCIL_BOX, 1, NULL, NULL, dm));
  else {
    PetscCall(DMCreate(PETSC_COMM_WORLD, dm));
    PetscCall(DMSetType(*dm, DMPLEX));
    PetscCall(DMPlexDistributeSetDefault(*dm, PETSC_TRUE));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetUpMesh(const char kind[], PetscInt dof, DM dm)
{
  PetscFE fe;

  PetscFunctionBegin;
  PetscCall(DMSetFromOptions(dm));
  if (strcmp(kind, "plex")) {
    PetscCall(DMSetUp(dm));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscFECreateLagrange(PETSC_COMM_WORLD, 2, dof, PETSC_FALSE, 1, PETSC_DETERMINE, &fe));
  PetscCall(DMSetField(dm, 0, NULL, (PetscObject)fe));
  PetscCall(DMCreateDS(dm));
  PetscCall(PetscFEDestroy(&fe));
  PetscCall(DMPlexSetRegularRefinement(dm, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Refine(const char kind[], DM coarse, DM *fine)
{
  PetscFunctionBegin;
  PetscCall(DMRefine(coarse, PETSC_COMM_WORLD, fine));
  if (!strcmp(kind, "plex")) {
    PetscCall(DMCopyDisc(coarse, *fine));
    PetscCall(DMSetCoarseDM(*fine, coarse));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* That a vector is on the GPU, and nowhere else newer, when it should be there */
static PetscErrorCode CheckPlace(Vec v, PetscBool device, const char what[])
{
  PetscOffloadMask mask;

  PetscFunctionBegin;
  PetscCall(VecGetOffloadMask(v, &mask));
  PetscCheck(!device || mask == PETSC_OFFLOAD_GPU || mask == PETSC_OFFLOAD_BOTH, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s was computed on the host", what);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One of our matrices, or MATMAIJ of one: on the host PETSc computes with that */
static PetscErrorCode CheckTransfer(Mat P, PetscBool device, const char what[])
{
  Mat       inner = P;
  PetscBool maij;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)P, &maij, MATSEQMAIJ, MATMPIMAIJ, ""));
  PetscCheck(!maij || !device, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s is MATMAIJ, which computes on the host", what);
  if (maij) PetscCall(MatMAIJGetAIJ(P, &inner));
  PetscCall(TestHasType(inner, TestFormat("seqaij"), TestFormat("mpiaij"), what));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* x -> z by op of P, which has to be what op of R gives, computed by our code where the vectors are */
static PetscErrorCode CheckProduct(Mat P, Mat R, TestOp op, Vec x, Vec z, PetscBool device, const char what[])
{
  MatGallopStatistics before, after;
  PetscBool           ours;

  PetscFunctionBegin;
  PetscCall(MatGallopIsFormat(P, &ours));
  PetscCall(TestSetVec(x, 3));
  PetscCall(TestSpoilVec(z));
  if (ours) PetscCall(MatGallopGetStatistics(P, &before));
  if (op == TEST_MULT) PetscCall(MatMult(P, x, z));
  else PetscCall(MatMultTranspose(P, x, z));
  PetscCall(CheckPlace(z, device, what));
  PetscCall(TestCompare(R, op, x, NULL, z, what));
  if (!ours) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGallopGetStatistics(P, &after));
  if (op == TEST_MULT) {
    const PetscInt64 there = after.products_device - before.products_device, here = after.products_host - before.products_host;

    PetscCheck(device ? there > 0 && !here : here > 0 && !there, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %" PetscInt64_FMT " products on the GPU, %" PetscInt64_FMT " on the host", what, there, here);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CheckInterpolation(DM coarse, DM fine, DM plaincoarse, DM plainfine, PetscBool device)
{
  Mat       P, R, plain;
  Vec       xc, xf;
  PetscBool has;

  PetscFunctionBegin;
  PetscCall(DMCreateGlobalVector(coarse, &xc));
  PetscCall(DMCreateGlobalVector(fine, &xf));
  PetscCall(DMCreateInterpolation(coarse, fine, &P, NULL));
  PetscCall(CheckTransfer(P, device, "interpolation"));
  PetscCall(DMCreateInterpolation(plaincoarse, plainfine, &plain, NULL));
  PetscCall(MatConvert(plain, MATAIJ, MAT_INITIAL_MATRIX, &R));
  PetscCall(CheckProduct(P, R, TEST_MULT, xc, xf, device, "interpolation"));
  PetscCall(CheckProduct(P, R, TEST_TRANSPOSE, xf, xc, device, "transposed interpolation"));
  PetscCall(MatDestroy(&P));
  PetscCall(MatDestroy(&R));
  PetscCall(MatDestroy(&plain));

  PetscCall(DMHasCreateRestriction(coarse, &has));
  if (has) {
    PetscCall(DMCreateRestriction(coarse, fine, &P));
    PetscCall(CheckTransfer(P, device, "restriction"));
    PetscCall(DMCreateRestriction(plaincoarse, plainfine, &R));
    PetscCall(CheckProduct(P, R, TEST_MULT, xf, xc, device, "restriction"));
    PetscCall(MatDestroy(&P));
    PetscCall(MatDestroy(&R));
  }

  PetscCall(DMHasCreateInjection(coarse, &has));
  if (has) {
    PetscReal norm;
    Vec       plainf, plainc;

    PetscCall(DMCreateInjection(coarse, fine, &P));
    PetscCall(DMCreateInjection(plaincoarse, plainfine, &R));
    PetscCall(DMCreateGlobalVector(plainfine, &plainf));
    PetscCall(DMCreateGlobalVector(plaincoarse, &plainc));
    PetscCall(TestSetVec(xf, 5));
    PetscCall(TestSetVec(plainf, 5));
    PetscCall(MatRestrict(P, xf, xc));
    PetscCall(CheckPlace(xc, device, "injection"));
    PetscCall(MatRestrict(R, plainf, plainc));
    PetscCall(VecAXPY(plainc, -1.0, xc));
    PetscCall(VecNorm(plainc, NORM_INFINITY, &norm));
    PetscCheck(norm == 0, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "injection: differs by %g", (double)norm);
    PetscCall(VecDestroy(&plainf));
    PetscCall(VecDestroy(&plainc));
    PetscCall(MatDestroy(&P));
    PetscCall(MatDestroy(&R));
  }
  PetscCall(VecDestroy(&xc));
  PetscCall(VecDestroy(&xf));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef enum { SET, DM_MAT_TYPE, MAT_TYPE } How; /* DMSetMatType() in the program, -dm_mat_type, -mat_type */

static PetscErrorCode Check(const char kind[], PetscInt dof, const char name[], How how)
{
  const char *const option = how == DM_MAT_TYPE ? "-dm_mat_type" : "-mat_type";
  DM                dm[3], plain[3];
  PetscBool         device = PETSC_FALSE, same;
  MatType           type;
  Mat               A;
  char              vtype[64];

  PetscFunctionBegin;
  PetscCall(TestGetVecType(TestFormat(""), vtype, sizeof(vtype)));
  PetscCall(TestHasDevice(&device));
  PetscCall(CreateMesh(kind, dof, &plain[0]));
  PetscCall(SetUpMesh(kind, dof, plain[0]));
  PetscCall(Refine(kind, plain[0], &plain[1]));

  PetscCall(CreateMesh(kind, dof, &dm[0]));
  if (how == SET) PetscCall(DMSetMatType(dm[0], name));
  else PetscCall(PetscOptionsSetValue(NULL, option, name));
  PetscCall(DMSetVecType(dm[0], vtype));
  PetscCall(SetUpMesh(kind, dof, dm[0]));
  PetscCall(Refine(kind, dm[0], &dm[1]));
  PetscCall(CheckInterpolation(dm[0], dm[1], plain[0], plain[1], device));
  if (strcmp(kind, "plex")) { /* and with a mesh that was coarsened */
    PetscCall(DMCoarsen(dm[1], PETSC_COMM_WORLD, &dm[2]));
    PetscCall(DMCoarsen(plain[1], PETSC_COMM_WORLD, &plain[2]));
    PetscCall(CheckInterpolation(dm[2], dm[1], plain[2], plain[1], device));
    PetscCall(DMDestroy(&dm[2]));
    PetscCall(DMDestroy(&plain[2]));
  }
  PetscCall(DMCreateMatrix(dm[1], &A));
  PetscCall(TestIsOurs(A, PETSC_TRUE, "operator"));
  PetscCall(MatDestroy(&A));
  if (how != MAT_TYPE) { /* the name that the program or the user gave is still the DM's */
    PetscCall(DMGetMatType(dm[0], &type));
    PetscCall(PetscStrcmp(type, name, &same));
    PetscCheck(same, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "The DM's matrix type was %s and is %s", name, type);
  }
  if (how != SET) PetscCall(PetscOptionsClearValue(NULL, option));
  for (int k = 0; k < 2; k++) {
    PetscCall(DMDestroy(&dm[k]));
    PetscCall(DMDestroy(&plain[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char        kind[16] = "da2";
  PetscMPIInt size;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-dm", kind, sizeof(kind), NULL));
  for (PetscInt dof = 1; dof <= 3; dof += 2) {
    const char *const names[] = {TestFormat(""), TestFormat("aij"), TestFormat(size > 1 ? "mpiaij" : "seqaij")};

    for (int k = 0; k < 3; k++)
      for (int how = 0; how < (strcmp(kind, "stag") ? 3 : 2); how++) PetscCall(Check(kind, dof, names[k], (How)how)); /* DMSTAG does not ask for -mat_type */
  }
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    output_file: output/empty.out
    nsize: {{1 4}}
    test:
      suffix: 1
      args: -dm {{da1 da2 da3 stag}}
    test:
      suffix: plex
      args: -dm plex -dm_plex_dim 2 -dm_plex_simplex 0 -dm_plex_box_faces 5,4
    test:
      suffix: other
      args: -dm {{da2 stag}} -format {{csroverlap fastload hbp}}

TEST*/
