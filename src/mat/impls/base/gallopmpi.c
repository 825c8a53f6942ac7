/* SPDX-License-Identifier: BSD-2-Clause */
/*
  The MPI subclass at work: its blocks, and the products that run the diagonal block while ghost values travel.
*/

#include <gallop/matgallopimpl.h>

/*
  MatGallopGetBlocks - Gives the diagonal and the off-diagonal block of an MPI matrix, each a sequential matrix of the same Gallop type

  PETSc makes blocks of the parent's type in several places (preallocation, hash-based assembly, disassembly), so they are looked at here, at
  use, rather than in each of those. On a process with a GPU they stay on the host where the matrix does, because another process has none.
*/
PetscErrorCode MatGallopGetBlocks(Mat A, Mat *diagonal, Mat *offdiagonal)
{
  Mat         blocks[2];
  Mat_Gallop *g, *b;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], NULL));
  for (int k = 0; k < 2; k++) {
    PetscCheck(blocks[k], PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "The matrix has no blocks yet: assemble it first");
    PetscCall(MatGallopGetContext(blocks[k], &b));
    if (!b) {
      if (!g->deviceparent) PetscCall(MatGallopAttach(blocks[k], g->type));
      else PetscCall(MatConvert_AIJ_Gallop(blocks[k], g->type->seq, MAT_INPLACE_MATRIX, &blocks[k]));
      PetscCall(MatGallopGetContext(blocks[k], &b));
    }
    if (!g->past || b->past != g->past) { /* new here */
      PetscCall(MatGallopAdopt(A, blocks[k]));
      PetscCall(MatGallopShare(g, b));
    }
  }
  if (diagonal) *diagonal = blocks[0];
  if (offdiagonal) *offdiagonal = blocks[1];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = A x, z = A x + y, or z = y - A x. terms: NULL, or a dot product of this process's rows that is wanted with the first of them; *dot whether it is there. */
static PetscErrorCode MatMultAddKernel_MPIGallop(Mat A, Vec x, Vec y, Vec z, PetscBool residual, const GallopTerms *terms, PetscBool *dot)
{
  Mat_Gallop *g;
  Mat         diagonal, offdiagonal;
  Vec         ghost;
  PetscInt    n;
  MatInfo     info;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(VecGetLocalSize(x, &n));
  PetscCheck(n == A->cmap->n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "Incompatible partition of A (%" PetscInt_FMT ") and x (%" PetscInt_FMT ")", A->cmap->n, n);
  PetscCall(MatGallopGetBlocks(A, &diagonal, &offdiagonal));
  PetscCall(GallopExchangeBegin(A, g, x, &ghost));
  if (terms) PetscCall(MatGallopMultDot_Seq(diagonal, terms, x, PETSC_FALSE, z, dot));
  else if (residual) PetscUseTypeMethod(diagonal, residual, y, x, z);
  else if (y) PetscUseTypeMethod(diagonal, multadd, x, y, z);
  else PetscUseTypeMethod(diagonal, mult, x, z);
  PetscCall(GallopExchangeEnd(A, g, x, ghost));
  PetscCall(MatGetInfo(offdiagonal, MAT_LOCAL, &info));
  if (info.nz_used > 0) {
    if (terms && *dot) PetscCall(MatGallopMultDot_Seq(offdiagonal, terms, ghost, PETSC_TRUE, z, dot));
    else if (residual) PetscUseTypeMethod(offdiagonal, residual, z, ghost, z);
    else PetscUseTypeMethod(offdiagonal, multadd, ghost, z, z);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMult_MPIGallop(Mat A, Vec x, Vec z)
{
  PetscFunctionBegin;
  PetscCall(MatMultAddKernel_MPIGallop(A, x, NULL, z, PETSC_FALSE, NULL, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatGallopMultDot_MPI - MatMult() of an assembled MPI matrix of ours, with the dot product of terms over the rows of this process: that of the diagonal block, to which the other one adds */
PetscErrorCode MatGallopMultDot_MPI(Mat A, const GallopTerms *terms, Vec x, Vec z, PetscBool *dot)
{
  PetscFunctionBegin;
  PetscCall(PetscLogEventBegin(MAT_Mult, A, x, z, 0));
  PetscCall(MatMultAddKernel_MPIGallop(A, x, NULL, z, PETSC_FALSE, terms, dot));
  PetscCall(PetscLogEventEnd(MAT_Mult, A, x, z, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  MatGallopMultTerms_MPI - As MatGallopMultTerms_Seq(): the diagonal block's product has all terms, and to z the other one then adds d alpha B g. w is not z, but for a residual b - A x alone.
*/
PetscErrorCode MatGallopMultTerms_MPI(Mat A, const GallopTerms *terms, Vec x, Vec y, Vec w, Vec z, PetscBool *done)
{
  const GallopTerms adds = {.alpha = terms->alpha, .gamma = 1, .d = terms->d, .u = z};
  Mat_Gallop       *g;
  Mat               diagonal, offdiagonal;
  Vec               ghost;
  MatInfo           info;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(PetscLogEventBegin(MAT_Mult, A, x, z, 0));
  if (w == z) {
    PetscCall(MatMultAddKernel_MPIGallop(A, x, y, z, PETSC_TRUE, NULL, NULL));
    *done = PETSC_TRUE;
  } else {
    PetscCall(MatGallopGetBlocks(A, &diagonal, &offdiagonal));
    PetscCall(GallopExchangeBegin(A, g, x, &ghost));
    PetscCall(MatGallopMultTerms_Seq(diagonal, terms, x, y, w, z, done, NULL));
    PetscCall(GallopExchangeEnd(A, g, x, ghost));
    PetscCall(MatGetInfo(offdiagonal, MAT_LOCAL, &info));
    if (info.nz_used > 0 && *done) PetscCall(MatGallopMultTerms(offdiagonal, &adds, ghost, NULL, w, z, NULL));
    else if (info.nz_used > 0) PetscUseTypeMethod(offdiagonal, multadd, ghost, w, w);
  }
  PetscCall(PetscLogEventEnd(MAT_Mult, A, x, z, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMultAdd_MPIGallop(Mat A, Vec x, Vec y, Vec z)
{
  PetscFunctionBegin;
  PetscCall(MatMultAddKernel_MPIGallop(A, x, y, z, PETSC_FALSE, NULL, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatResidual_MPIGallop(Mat A, Vec b, Vec x, Vec r)
{
  PetscFunctionBegin;
  PetscCall(MatGallopCheckResidual(A, b, x, r));
  PetscCall(MatMultAddKernel_MPIGallop(A, x, b, r, PETSC_TRUE, NULL, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  z = A^T x, or A^T x + y: the off-diagonal block computes what goes to rows of other processes, the diagonal block runs while that travels, and then what has come is added in the order of ranks.
  By PetscSF the parent does the same.
*/
static PetscErrorCode MatMultTransposeAddKernel_MPIGallop(Mat A, Vec x, Vec y, Vec z)
{
  Mat_Gallop        *g;
  Mat                diagonal, offdiagonal;
  GallopIPC          ipc;
  Vec                ghost;
  const PetscScalar *from;
  PetscScalar       *to;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(MatGallopGetBlocks(A, &diagonal, &offdiagonal));
  PetscCall(GallopExchangeGetReverse(A, g, x, z, &ipc, &ghost));
  GallopExchangeCount(g, ipc);
  if (!ipc) {
    if (y) PetscCall((*g->parent.multtransposeadd)(A, x, y, z));
    else PetscCall((*g->parent.multtranspose)(A, x, z));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscUseTypeMethod(offdiagonal, multtranspose, x, ghost);
  PetscCall(PetscLogEventBegin(Gallop_GhostBegin, A, x, 0, 0));
  PetscCall(VecGetArrayReadAndMemType(ghost, &from, NULL));
  PetscCall(GallopIPCScatterBegin(ipc, (const PetscReal *)from, NULL, PETSC_TRUE));
  PetscCall(VecRestoreArrayReadAndMemType(ghost, &from));
  PetscCall(PetscLogEventEnd(Gallop_GhostBegin, A, x, 0, 0));
  if (y) PetscUseTypeMethod(diagonal, multtransposeadd, x, y, z);
  else PetscUseTypeMethod(diagonal, multtranspose, x, z);
  PetscCall(PetscLogEventBegin(Gallop_GhostEnd, A, x, 0, 0));
  PetscCall(VecGetArrayAndMemType(z, &to, NULL));
  PetscCall(GallopIPCScatterEnd(ipc, (PetscReal *)to, PETSC_TRUE));
  PetscCall(VecRestoreArrayAndMemType(z, &to));
  PetscCall(PetscLogEventEnd(Gallop_GhostEnd, A, x, 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMultTranspose_MPIGallop(Mat A, Vec x, Vec z)
{
  PetscFunctionBegin;
  PetscCall(MatMultTransposeAddKernel_MPIGallop(A, x, NULL, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMultTransposeAdd_MPIGallop(Mat A, Vec x, Vec y, Vec z)
{
  PetscFunctionBegin;
  PetscCall(MatMultTransposeAddKernel_MPIGallop(A, x, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent adds up columns in new vectors that it takes to be zero. Those of the GPU are so on the GPU, not where it adds: it gets vectors of the host. */
PetscErrorCode MatNorm_MPIGallop(Mat A, NormType type, PetscReal *norm)
{
  PetscErrorCode ierr;
  Mat_Gallop    *g;
  Mat            mats[2] = {A, NULL};
  char          *kept[2];

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(MatMPIAIJGetSeqAIJ(A, NULL, &mats[1], NULL));
  for (int k = 0; k < 2; k++) {
    VecType vectype;

    PetscCall(MatGetVecType(mats[k], &vectype));
    PetscCall(PetscStrallocpy(vectype, &kept[k]));
    PetscCall(MatSetVecType(mats[k], VECSTANDARD));
  }
  ierr = (*g->parent.norm)(A, type, norm);
  for (int k = 0; k < 2; k++) {
    PetscCall(MatSetVecType(mats[k], kept[k]));
    PetscCall(PetscFree(kept[k]));
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatAssemblyEnd_MPIGallop(Mat A, MatAssemblyType mode)
{
  Mat_Gallop *g;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall((*g->parent.assemblyend)(A, mode));
  if (mode == MAT_FINAL_ASSEMBLY) {
    Mat blocks[2];

    PetscCall(MatGallopGetBlocks(A, &blocks[0], &blocks[1]));
    for (int k = 0; k < 2; k++) { /* blocks that became ours just now have not been built in their own assembly */
      PetscObjectState state;
      void            *data;
      PetscBool        device;
      Mat_Gallop      *b;

      if (g->build != GALLOP_BUILD_ASSEMBLY || A->structure_only) continue;
      PetscCall(MatGallopGetContext(blocks[k], &b));
      PetscCall(GallopDeviceAvailable(&device));
      PetscCall(PetscObjectStateGet((PetscObject)blocks[k], &state));
      PetscCall(MatGallopUpdate(blocks[k], b, GALLOP_FORMAT, device && !GallopBoundToCPU(blocks[k]) ? GALLOP_DEVICE : GALLOP_HOST, state, PETSC_FALSE, &data));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
