/* SPDX-License-Identifier: BSD-2-Clause */
/*
  Functions of PETSc that change or read the values of a matrix past its copy on the GPU, or past its object state: made to tell. Those that take every vector for one of the GPU, and those that cannot
  read complex values.
*/

#include <gallop/matgallopimpl.h>

/* MatGallopHostIsWritten - The values on the host are the newest, whoever writes them all; increases the object state */
PetscErrorCode MatGallopHostIsWritten(Mat A)
{
  PetscScalar *write;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJGetArrayWrite(A, &write));
  PetscCall(MatSeqAIJRestoreArrayWrite(A, &write));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatGallopBringToHost - Before a function that reads the host's values as they are, however old */
PetscErrorCode MatGallopBringToHost(Mat A)
{
  const PetscScalar *read;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJGetArrayRead(A, &read));
  PetscCall(MatSeqAIJRestoreArrayRead(A, &read));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Some of PETSc's functions write the values on the host and do not say so to the copy on the GPU. Before one of them runs, the host gets the values and is
  declared to be the newer place; for a matrix that lives on the host alone this changes nothing but the object state.
*/
PetscErrorCode MatGallopHostBecomesNewer(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatGallopBringToHost(A));
  PetscCall(MatGallopHostIsWritten(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatRetrieveValues_SeqGallop(Mat A)
{
  Mat_Gallop *g;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(MatGallopHostBecomesNewer(A));
  PetscCall((*g->retrievevalues)(A));
  PetscCall(PetscObjectStateIncrease((PetscObject)A)); /* PETSc's function does not */
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatEliminateZeros_SeqGallop(Mat A, PetscBool keep)
{
  Mat_Gallop *g;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(MatGallopHostBecomesNewer(A));
  PetscCall((*g->parent.eliminatezeros)(A, keep));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent calls the sequential function by its name, past the slots of the blocks */
PetscErrorCode MatEliminateZeros_MPIGallop(Mat A, PetscBool keep)
{
  Mat         blocks[2];
  Mat_Gallop *g;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(MatGallopGetBlocks(A, &blocks[0], &blocks[1]));
  for (int k = 0; k < 2; k++) PetscCall(MatGallopHostBecomesNewer(blocks[k]));
  PetscCall((*g->parent.eliminatezeros)(A, keep));
  PetscCall(PetscObjectStateIncrease((PetscObject)A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc marks ghost columns in a duplicate of its vector of ghost values, and takes it for zero, which nothing has made it while the matrix is bound to the CPU */
PetscErrorCode MatZeroRowsColumns_MPIGallop(Mat A, PetscInt n, const PetscInt rows[], PetscScalar diagonal, Vec x, Vec b)
{
  Mat_Gallop *g;
  PetscBool   bound;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(MatGallopUnbind(A, &bound));
  PetscCall((*g->parent.zerorowscolumns)(A, n, rows, diagonal, x, b));
  PetscCall(MatGallopRebind(A, bound));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where each process asks for the whole matrix, PETSc writes the values of the submatrix after its assembly. The values that it had are all replaced. */
PetscErrorCode MatCreateSubMatrices_MPIGallop(Mat A, PetscInt n, const IS irow[], const IS icol[], MatReuse reuse, Mat *submat[])
{
  Mat_Gallop *g, *s;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  for (int after = reuse == MAT_INITIAL_MATRIX; after < 2; after++) {
    if (after) PetscCall((*g->parent.createsubmatrices)(A, n, irow, icol, reuse, submat));
    for (PetscInt k = 0; k < n; k++) {
      PetscCall(MatGallopGetContext((*submat)[k], &s));
      if (s && !s->mpi) PetscCall(MatGallopHostIsWritten((*submat)[k]));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc writes the values of a transpose that is used again on the host, past those on the GPU. They are all replaced. */
PetscErrorCode MatTranspose_SeqGallop(Mat A, MatReuse reuse, Mat *B)
{
  Mat_Gallop *g, *b = NULL;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  if (reuse == MAT_REUSE_MATRIX) PetscCall(MatGallopGetContext(*B, &b));
  if (b && !b->mpi) PetscCall(MatGallopHostIsWritten(*B));
  PetscCall((*g->parent.transpose)(A, reuse, B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* AIJCUSPARSE fills a copy that is on the GPU, be it of another pattern, and takes it for the newest values: not where these are on the host */
PetscErrorCode MatZeroEntries_SeqGallop(Mat A)
{
  Mat_Gallop     *g;
  const PetscInt *i, *j;
  PetscScalar    *a;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  if (g->deviceparent && !GallopBoundToCPU(A)) PetscCall(MatGallopTrustHost(A));
  if (g->deviceparent && MatGallopNewestOnHost(A) && !A->hash_active && !A->structure_only) {
    PetscCall(MatGallopGetHostPattern(A, &i, &j));
    PetscCall(MatSeqAIJGetArrayWrite(A, &a));
    PetscCall(PetscArrayzero(a, i[A->rmap->n]));
    PetscCall(MatSeqAIJRestoreArrayWrite(A, &a));
    A->transupdated = PETSC_FALSE;
  } else PetscCall((*g->parent.zeroentries)(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatLoad_SeqGallop(Mat A, PetscViewer viewer)
{
  Mat_Gallop *g;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  if (A->preallocated && !A->hash_active) PetscCall(MatGallopHostBecomesNewer(A));
  PetscCall((*g->parent.load)(A, viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatStoreValues() reads the host values, which may be older than those on the GPU */
PetscErrorCode MatStoreValues_SeqGallop(Mat A)
{
  Mat_Gallop *g;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(MatGallopBringToHost(A));
  PetscCall((*g->storevalues)(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where rows have a pattern in common, PETSc sweeps by inodes, over the host values */
PetscErrorCode MatSOR_SeqGallop(Mat A, Vec b, PetscReal omega, MatSORType flag, PetscReal shift, PetscInt its, PetscInt lits, Vec x)
{
  Mat_Gallop *g;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(MatGallopBringToHost(A));
  PetscCall((*g->parent.sor)(A, b, omega, flag, shift, its, lits, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Norms, sums and means of columns, of the host values */
PetscErrorCode MatGetColumnReductions_SeqGallop(Mat A, PetscInt type, PetscReal *reductions)
{
  Mat_Gallop *g;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(MatGallopBringToHost(A));
  PetscCall((*g->parent.getcolumnreductions)(A, type, reductions));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* As MatIsHermitian() does where a type has no function for it: that of AIJ looks at the host values */
PetscErrorCode MatIsHermitian_SeqGallop(Mat A, PetscReal tol, PetscBool *is)
{
  PetscFunctionBegin;
  PetscCall(MatGallopBringToHost(A));
  PetscCall(MatIsHermitianTranspose(A, A, tol, is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopVecCopyEntries - The part that this process has, wherever each vector is */
PetscErrorCode GallopVecCopyEntries(Vec from, Vec to)
{
  const PetscScalar *a;
  PetscScalar       *b;
  PetscInt           n;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(from, &n));
  PetscCall(VecGetArrayRead(from, &a));
  PetscCall(VecGetArrayWrite(to, &b));
  PetscCall(PetscArraycpy(b, a, n));
  PetscCall(VecRestoreArrayWrite(to, &b));
  PetscCall(VecRestoreArrayRead(from, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopVecCreateOnDevice - A sequential vector on the GPU, with room for the part of v that this process has: other processes may need none */
PetscErrorCode GallopVecCreateOnDevice(Vec v, Vec *copy)
{
  PetscInt n;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(v, &n));
  PetscCall(VecCreate(PETSC_COMM_SELF, copy));
  PetscCall(VecSetSizes(*copy, n, n));
  PetscCall(VecSetType(*copy, VECSEQCUDA));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  AIJCUSPARSE takes every vector for one of the GPU (PETSc 3.26). One on the host gets an array there, which is not copied back, and copied there only once: the host sees no diagonal, and the matrix is
  scaled by older numbers, without a word. Such a vector, of which this process has its part, is copied: *copy is NULL for any other.
*/
static PetscErrorCode CreateOnDevice(Mat A, const Mat_Gallop *g, Vec v, Vec *copy)
{
  PetscFunctionBegin;
  *copy = NULL;
  if (!v || !g->deviceparent || GallopBoundToCPU(A) || GallopVecOnDevice(v)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopVecCreateOnDevice(v, copy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* AIJCUSPARSE's MatGetDiagonal(), made to read the host's values */
static PetscErrorCode GetDiagonalOnHost(Mat A, const Mat_Gallop *g, Vec d)
{
  PetscFunctionBegin;
  PetscCall(MatGallopBringToHost(A));
#if PetscDefined(HAVE_DEVICE)
  {
    const PetscOffloadMask mask = A->offloadmask;
    PetscErrorCode         ierr;

    A->offloadmask = PETSC_OFFLOAD_CPU;
    ierr           = (*g->parent.getdiagonal)(A, d);
    A->offloadmask = mask;
    PetscCall(ierr);
  }
#else
  PetscCall((*g->parent.getdiagonal)(A, d));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGetDiagonal_SeqGallop(Mat A, Vec d)
{
  Mat_Gallop *g;
  Vec         copy = NULL;
  PetscBool   host = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  if (g->deviceparent) PetscCall(MatGallopTrustHost(A));
  if (g->deviceparent && !GallopBoundToCPU(A) && !MatGallopNewestOnHost(A)) PetscCall(MatGallopParentCompresses(A, &host));
  if (host) {
    PetscCall(GetDiagonalOnHost(A, g, d));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!MatGallopNewestOnHost(A)) PetscCall(CreateOnDevice(A, g, d, &copy)); /* else the parent reads the host's values */
  PetscCall((*g->parent.getdiagonal)(A, copy ? copy : d));
  if (copy) PetscCall(GallopVecCopyEntries(copy, d));
  PetscCall(VecDestroy(&copy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatGallopCreatePlain - A new matrix of MATSEQAIJ itself, for its functions: its prefix keeps -mat_seqaij_type from it */
PetscErrorCode MatGallopCreatePlain(Mat *B)
{
  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_SELF, B));
  PetscCall(MatSetOptionsPrefix(*B, "gallop_plain_"));
  PetscCall(MatSetSizes(*B, 0, 0, 0, 0));
  PetscCall(MatSetType(*B, MATSEQAIJ));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatGallopGetPlainOps - MATSEQAIJ's functions, which compute on the host */
PetscErrorCode MatGallopGetPlainOps(const struct _MatOps **ops)
{
  static struct _MatOps plain;

  PetscFunctionBegin;
  *ops = &plain;
  if (!plain.mult) {
    Mat B;

    PetscCall(MatGallopCreatePlain(&B));
    plain = *B->ops;
    PetscCall(MatDestroy(&B));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MATSEQAIJ's functions where the GPU has no room for the parent's copy, which would have to be made so that values can be changed there; else NULL */
static PetscErrorCode GetOpsWithoutRoom(Mat A, Mat_Gallop *g, const struct _MatOps **plain)
{
  PetscBool takes = PETSC_TRUE;

  PetscFunctionBegin;
  *plain = NULL;
  if (g->deviceparent) PetscCall(MatGallopTrustHost(A));
  if (g->deviceparent && !GallopBoundToCPU(A) && !A->structure_only && MatGallopNewestOnHost(A)) PetscCall(MatGallopDeviceTakesValues(A, &takes));
  if (takes) PetscFunctionReturn(PETSC_SUCCESS);
  A->transupdated = PETSC_FALSE;
  PetscCall(MatGallopGetPlainOps(plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatScale_SeqGallop(Mat A, PetscScalar a)
{
  Mat_Gallop           *g;
  const struct _MatOps *plain;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(GetOpsWithoutRoom(A, g, &plain));
  if (plain) PetscCall((*plain->scale)(A, a));
  else GallopCallByName(A, NULL, (*g->parent.scale)(A, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatDiagonalScale_SeqGallop(Mat A, Vec l, Vec r)
{
  Mat_Gallop           *g;
  const struct _MatOps *plain;
  Vec                   v[2] = {l, r}, copy[2];

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(GetOpsWithoutRoom(A, g, &plain));
  if (plain) {
    PetscCall((*plain->diagonalscale)(A, l, r));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (int k = 0; k < 2; k++) {
    PetscCall(CreateOnDevice(A, g, v[k], &copy[k]));
    if (!copy[k]) continue;
    PetscCall(GallopVecCopyEntries(v[k], copy[k]));
    v[k] = copy[k];
  }
  GallopCallByName(A, NULL, (*g->parent.diagonalscale)(A, v[0], v[1]));
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&copy[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MPIAIJ's functions while values go to a hash table */
static PetscErrorCode GetHashOps(const struct _MatOps **ops)
{
  static struct _MatOps hash;
  Mat                   M;

  PetscFunctionBegin;
  *ops = &hash;
  if (hash.setvalues) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatCreate(PETSC_COMM_SELF, &M));
  PetscCall(MatSetSizes(M, 0, 0, 0, 0));
  PetscCall(MatSetType(M, MATMPIAIJ));
  PetscCall(MatSetUp(M));
  hash = *M->ops;
  PetscCall(MatDestroy(&M));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  MPIAIJCUSPARSE has its own copies of the functions that put values into a hash table, made by CUDA's compiler: they read a complex number at once from where its address is a multiple of its size,
  which those of the program, or of another process, need not be (PETSc 3.26: a segmentation violation). MPIAIJ's do the same with any address.
*/
PetscErrorCode MatSetUp_MPIGallop(Mat A)
{
  Mat_Gallop           *g;
  const struct _MatOps *ops;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall((*g->parent.setup)(A));
  if (PetscDefined(HAVE_CUDA) && PetscDefined(USE_COMPLEX) && A->hash_active) {
    PetscCall(GetHashOps(&ops));
    A->ops->setvalues      = ops->setvalues;
    A->ops->assemblyend    = ops->assemblyend;
    A->ops->copyhashtoxaij = ops->copyhashtoxaij;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
