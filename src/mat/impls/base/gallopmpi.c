/* SPDX-License-Identifier: BSD-2-Clause */
/*
  The MPI subclass at work: its blocks, the exchange of ghost values, and the products that run the diagonal block while the values travel.
*/

#include <petscdevice.h>
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
      PetscCall(MatGallopCopyOptions(A, blocks[k]));
      PetscCall(MatGallopGetContext(blocks[k], &b));
    }
    if (!g->past || b->past != g->past) PetscCall(MatGallopShare(g, b));
  }
  if (diagonal) *diagonal = blocks[0];
  if (offdiagonal) *offdiagonal = blocks[1];
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopExchangeReset(GallopExchange *exchange)
{
  PetscFunctionBegin;
  for (int p = 0; p < 2; p++) PetscCall(VecDestroy(&exchange->ghost[p]));
  exchange->id = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  GallopExchangeBegin - Begins to bring the values of x that the off-diagonal block needs; they are in ghost after GallopExchangeEnd()

  ghost lives where x does. Work that needs no ghost value goes between the two calls.
*/
PetscErrorCode GallopExchangeBegin(Mat A, GallopExchange *exchange, Vec x, Vec *ghost)
{
  PetscSF            sf;
  PetscObjectId      id;
  Mat                offdiagonal;
  PetscInt           n;
  const PetscScalar *array;
  PetscMemType       memtype;
  GallopPlace        place;

  PetscFunctionBegin;
  PetscCall(MatGetMultPetscSF(A, &sf));
  PetscCall(PetscObjectGetId((PetscObject)sf, &id));
  PetscCall(MatGallopGetBlocks(A, NULL, &offdiagonal));
  PetscCall(MatGetLocalSize(offdiagonal, NULL, &n));
  if (exchange->id != id || exchange->n != n) { /* a new pattern has a new PetscSF */
    PetscCall(GallopExchangeReset(exchange));
    exchange->id = id;
    exchange->n  = n;
  }
  PetscCall(VecGetArrayReadAndMemType(x, &array, &memtype));
  PetscCall(VecRestoreArrayReadAndMemType(x, &array));
  place = PetscMemTypeCUDA(memtype) ? GALLOP_DEVICE : GALLOP_HOST;
  if (!exchange->ghost[place]) {
    PetscCall(VecCreate(PETSC_COMM_SELF, &exchange->ghost[place]));
    PetscCall(VecSetSizes(exchange->ghost[place], n, n));
    PetscCall(VecSetType(exchange->ghost[place], place == GALLOP_DEVICE ? VECSEQCUDA : VECSEQ));
    if (place == GALLOP_DEVICE) PetscCall(PetscDeviceContextSynchronize(NULL)); /* PETSc zeros new vectors on the default stream, for which a nonblocking one does not wait */
  }
  *ghost = exchange->ghost[place];
  PetscCall(VecScatterBegin(sf, x, *ghost, INSERT_VALUES, SCATTER_FORWARD));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopExchangeEnd(Mat A, GallopExchange *exchange, Vec x, Vec ghost)
{
  PetscSF sf;

  PetscFunctionBegin;
  (void)exchange;
  PetscCall(MatGetMultPetscSF(A, &sf));
  PetscCall(VecScatterEnd(sf, x, ghost, INSERT_VALUES, SCATTER_FORWARD));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* How ghost values would go from process to process, those of a matrix whose vectors are on the GPU where there is one */
PetscErrorCode GallopExchangeView(PetscViewer viewer)
{
  PetscBool device;

  PetscFunctionBegin;
  PetscCall(GallopDeviceAvailable(&device));
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &device, 1, MPI_C_BOOL, MPI_LAND, PetscObjectComm((PetscObject)viewer)));
  if (!device) PetscCall(PetscViewerASCIIPrintf(viewer, "Ghost values: PetscSF, from host to host\n"));
  else if (use_gpu_aware_mpi) PetscCall(PetscViewerASCIIPrintf(viewer, "Ghost values: PetscSF, which hands MPI addresses in GPU memory (-use_gpu_aware_mpi 1)\n"));
  else PetscCall(PetscViewerASCIIPrintf(viewer, "Ghost values: PetscSF, by way of the host: MPI is not handed addresses in GPU memory (-use_gpu_aware_mpi 0)\n"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = A x, z = A x + y, or z = y - A x */
static PetscErrorCode MatMultAddKernel_MPIGallop(Mat A, Vec x, Vec y, Vec z, PetscBool residual)
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
  PetscCall(GallopExchangeBegin(A, &g->exchange, x, &ghost));
  if (residual) PetscUseTypeMethod(diagonal, residual, y, x, z);
  else if (y) PetscUseTypeMethod(diagonal, multadd, x, y, z);
  else PetscUseTypeMethod(diagonal, mult, x, z);
  PetscCall(GallopExchangeEnd(A, &g->exchange, x, ghost));
  PetscCall(MatGetInfo(offdiagonal, MAT_LOCAL, &info));
  if (info.nz_used > 0) {
    if (residual) PetscUseTypeMethod(offdiagonal, residual, z, ghost, z);
    else PetscUseTypeMethod(offdiagonal, multadd, ghost, z, z);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMult_MPIGallop(Mat A, Vec x, Vec z)
{
  PetscFunctionBegin;
  PetscCall(MatMultAddKernel_MPIGallop(A, x, NULL, z, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatMultAdd_MPIGallop(Mat A, Vec x, Vec y, Vec z)
{
  PetscFunctionBegin;
  PetscCall(MatMultAddKernel_MPIGallop(A, x, y, z, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatResidual_MPIGallop(Mat A, Vec b, Vec x, Vec r)
{
  PetscFunctionBegin;
  PetscCall(MatGallopCheckResidual(A, b, x, r));
  PetscCall(MatMultAddKernel_MPIGallop(A, x, b, r, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent adds up columns in new vectors that it takes to be zero. Those of the GPU are so on the GPU, not where it adds: it gets vectors of the host. */
PetscErrorCode MatNorm_MPIGallop(Mat A, NormType type, PetscReal *norm)
{
  Mat_Gallop *g;
  Mat         mats[2] = {A, NULL};
  char       *kept[2];

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(MatMPIAIJGetSeqAIJ(A, NULL, &mats[1], NULL));
  for (int k = 0; k < 2; k++) {
    VecType vectype;

    PetscCall(MatGetVecType(mats[k], &vectype));
    PetscCall(PetscStrallocpy(vectype, &kept[k]));
    PetscCall(MatSetVecType(mats[k], VECSTANDARD));
  }
  PetscCall((*g->parent.norm)(A, type, norm));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatSetVecType(mats[k], kept[k]));
    PetscCall(PetscFree(kept[k]));
  }
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
      PetscCall(MatGallopUpdate(blocks[k], b, GALLOP_FORMAT, device && !GallopBoundToCPU(blocks[k]) ? GALLOP_DEVICE : GALLOP_HOST, state, &data));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
