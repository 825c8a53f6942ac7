/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "The arrays of the EVC-HYB format for matrices small enough to write them down: where rows are split, merged, padded and distributed.\n\n";

#include "../galloptest.h"
#include "../../src/mat/impls/evchyb/evchyb.h"

/* A matrix with the given row lengths and first columns, columns consecutive, entry k of row r of value 1000 r + k + 1 */
static PetscErrorCode MakeMatrix(PetscInt m, PetscInt n, const PetscInt len[], const PetscInt first[], Mat *A)
{
  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_SELF, A));
  PetscCall(MatSetSizes(*A, m, n, m, n));
  PetscCall(MatSetType(*A, MATEVCHYB));
  for (PetscInt r = 0; r < m; r++)
    for (PetscInt k = 0; k < len[r]; k++) PetscCall(MatSetValue(*A, r, first[r] + k, (PetscScalar)(1000 * r + k + 1), INSERT_VALUES));
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Builds the format by a product and gives a copy of it on the host */
static PetscErrorCode GetFormat(Mat A, EVCHYB **ev)
{
  const void *data;
  Vec         x, y;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecSet(x, 1.0));
  PetscCall(MatMult(A, x, y));
  PetscCall(TestFormatData(A, "MatMult()", &data));
  PetscCall(EVCHYBCopyToHost((const EVCHYB *)data, ev));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define EXPECT(what, value) \
  PetscCheck((PetscInt64)(what) == (PetscInt64)(value), PETSC_COMM_SELF, PETSC_ERR_PLIB, #what " is %" PetscInt64_FMT ", not %" PetscInt64_FMT, (PetscInt64)(what), (PetscInt64)(value))

/* 40 rows of length 2, the last first by column, 30 of length 3, 20 of length 200, 3 empty: 8 rows of length 2 are merged into those of length 3, 6 rows of length 3 go to SubCSR */
static PetscErrorCode TestMerge(void)
{
  enum { M = 93, N = 256 };
  PetscInt len[M], first[M];
  Mat      A;
  EVCHYB  *ev;

  PetscFunctionBegin;
  for (PetscInt r = 0; r < M; r++) {
    len[r]   = r < 40 ? 2 : r < 70 ? 3 : r < 90 ? 200 : 0;
    first[r] = r < 40 ? 39 - r : r < 70 ? r - 40 : 0;
  }
  PetscCall(MakeMatrix(M, N, len, first, &A));
  PetscCall(GetFormat(A, &ev));
  EXPECT(ev->nz, 40 * 2 + 30 * 3 + 20 * 200);
  EXPECT(ev->nempty, 3);
  EXPECT(ev->plain->ell.n, 64);
  EXPECT(ev->plain->ell.nb, 2);
  EXPECT(ev->plain->ell.LCmax, 3);
  EXPECT(ev->plain->ell.clen[0], 2);
  EXPECT(ev->plain->ell.clen[1], 3);
  EXPECT(ev->plain->ell.bnz[0], 0);
  EXPECT(ev->plain->ell.bnz[1], 64);
  EXPECT(ev->plain->ell.bnz[2], 160);
  EXPECT(ev->plain->ell.nz, 160);
  EXPECT(ev->plain->nzell, 40 * 2 + 24 * 3);
  EXPECT(ev->plain->csr.nmerged, 6);
  EXPECT(ev->plain->csr.n, 26);
  for (PetscInt r = 0; r <= 26; r++) EXPECT(ev->plain->csr.i[r], r <= 6 ? 32 * r : 192 + 224 * (r - 6));
  for (PetscInt r = 0; r < 40; r++) EXPECT(ev->plain->perm[r], 39 - r);
  for (PetscInt r = 40; r < 90; r++) EXPECT(ev->plain->perm[r], r);
  EXPECT(ev->plain->nlisted, 3);
  for (PetscInt r = 90; r < 93; r++) EXPECT(ev->plain->perm[r], r);
  /* row 39, 38, ... in the first column block; 7, ..., 0 with one entry of padding, then 40, ... in the second */
  EXPECT(ev->plain->ell.j[0], 0);
  EXPECT(ev->plain->ell.j[31], 31);
  EXPECT(ev->plain->ell.j[32], 1);
  EXPECT(PetscRealPart(ev->plain->ell.as[32]), 39002);
  EXPECT(ev->plain->ell.j[64], 32);
  EXPECT(ev->plain->ell.j[64 + 64], -1);
  EXPECT(PetscRealPart(ev->plain->ell.as[64 + 64]), 0);
  EXPECT(ev->plain->ell.j[64 + 8], 0);
  EXPECT(ev->plain->ell.j[64 + 64 + 8], 2);
  EXPECT(PetscRealPart(ev->plain->ell.as[64 + 64 + 8]), 40003);
  /* row 64 is the first of SubCSR, row 70 the first long one */
  EXPECT(ev->plain->csr.j[0], 24);
  EXPECT(ev->plain->csr.j[2], 26);
  EXPECT(ev->plain->csr.j[3], -1);
  EXPECT(PetscRealPart(ev->plain->csr.as[192 + 199]), 70200);
  EXPECT(ev->plain->csr.j[192 + 200], -1);
  /* SubCSR: the merged rows, padded to 32, take four threads per row, the long ones, padded to 224, take 32 */
  EXPECT(ev->plain->csr.marks.np, 2);
  EXPECT(ev->plain->csr.marks.rmark[1], 6);
  EXPECT(ev->plain->csr.marks.rmark[2], 26);
  EXPECT(ev->plain->csr.marks.count[0], 4);
  EXPECT(ev->plain->csr.marks.count[1], 32);
  EXPECT(ev->plain->csr.marks.gbmark[1], 1);
  EXPECT(ev->plain->csr.marks.gbmark[2], 1 + 3);
  EXPECT(ev->plain->csr.gpublks, 4);
  PetscCall(EVCHYBDestroyHostCopy(&ev));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* n rows of one length: 31, 32 and 33 rows; lengths 128 and 129 at the limit of SubELL */
static PetscErrorCode TestBoundaries(void)
{
  static const PetscInt rows[] = {31, 32, 33}, lens[] = {1, 128, 129};

  PetscFunctionBegin;
  for (int a = 0; a < 3; a++) {
    for (int b = 0; b < 3; b++) {
      PetscInt       len[33], first[33] = {0};
      const PetscInt ell = lens[b] <= 128 && rows[a] >= 32 ? 32 : 0;
      Mat            A;
      EVCHYB        *ev;

      for (PetscInt r = 0; r < 33; r++) len[r] = lens[b];
      PetscCall(MakeMatrix(rows[a], 200, len, first, &A));
      PetscCall(GetFormat(A, &ev));
      EXPECT(ev->plain->ell.n, ell);
      EXPECT(ev->plain->ell.nz, ell * lens[b]);
      EXPECT(ev->plain->csr.n, rows[a] - ell);
      EXPECT(ev->plain->csr.nmerged, lens[b] <= 128 ? rows[a] - ell : 0);
      EXPECT(ev->plain->csr.nz, (rows[a] - ell) * ((lens[b] + 31) / 32 * 32));
      PetscCall(EVCHYBDestroyHostCopy(&ev));
      PetscCall(MatDestroy(&A));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Lengths 64, 20 and 5 with up to 16 rows per thread: one row per thread in (32, 64], two in (16, 32], eight in (4, 8]. A thread block has 8 warps, each with as many column blocks as a thread has rows. */
static PetscErrorCode TestRowsPerThread(void)
{
  enum { M = 3 * 640, N = 100 };
  PetscInt len[M], first[M];
  Mat      A;
  EVCHYB  *ev;

  PetscFunctionBegin;
  for (PetscInt r = 0; r < M; r++) {
    len[r]   = r % 3 == 0 ? 64 : r % 3 == 1 ? 20 : 5;
    first[r] = 0;
  }
  PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_rows_per_thread", "16"));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_columns_per_warp", "128"));
  PetscCall(MakeMatrix(M, N, len, first, &A));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_evchyb_rows_per_thread"));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_evchyb_columns_per_warp"));
  PetscCall(GetFormat(A, &ev));
  EXPECT(ev->plain->ell.nb, 60);
  EXPECT(ev->plain->ell.LCmax, 64);
  EXPECT(ev->plain->ell.marks.np, 3);
  for (PetscInt k = 0; k <= 3; k++) EXPECT(ev->plain->ell.marks.rmark[k], 20 * k);
  if (PetscMemTypeHost(ev->memtype) && !ev->launch.n) PetscCall(PetscInfo(A, "planned for the host\n"));
  if (ev->plain->ell.marks.kind[2] == EVCHYB_RANGE_ELL) { /* a GPU with many processors shares column blocks among warps instead */
    EXPECT(ev->plain->ell.marks.count[0], 8);
    EXPECT(ev->plain->ell.marks.count[1], 2);
    EXPECT(ev->plain->ell.marks.count[2], 1);
    EXPECT(ev->plain->ell.marks.gbmark[1], 1);
    EXPECT(ev->plain->ell.marks.gbmark[2], 1 + 2);
    EXPECT(ev->plain->ell.marks.gbmark[3], 1 + 2 + 3);
    EXPECT(ev->plain->ell.gpublks, 6);
  }
  PetscCall(EVCHYBDestroyHostCopy(&ev));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Long rows: threads per row by powers of two, the longest rows split among thread blocks of 4096 entries. The first thread blocks have the longest rows. */
static PetscErrorCode TestThreadsPerRow(void)
{
  static const PetscInt len[] = {129, 257, 513, 1025, 4096, 4097, 10000}, first[7] = {0}, tpr[] = {32, 64, 128, 256};
  Mat                   A;
  EVCHYB               *ev;
  PetscBool             ongpu;

  PetscFunctionBegin;
  PetscCall(MakeMatrix(7, 10000, len, first, &A));
  PetscCall(GetFormat(A, &ev));
  EXPECT(ev->plain->ell.n, 0);
  EXPECT(ev->plain->csr.n, 7);
  EXPECT(ev->plain->csr.i[7], 160 + 288 + 544 + 1056 + 4096 + 4128 + 10016);
  ongpu = (PetscBool)(ev->plain->csr.split != 4096); /* rows are split finer on a GPU that few rows would leave idle */
  for (PetscInt k = 0; k < 4; k++) EXPECT(ev->plain->csr.marks.count[k], tpr[k]);
  if (!ongpu) {
    EXPECT(ev->plain->csr.marks.np, 5);
    EXPECT(ev->plain->csr.marks.rmark[3], 3);
    EXPECT(ev->plain->csr.marks.rmark[4], 5);
    EXPECT(ev->plain->csr.parts.nsplit, 2);
    EXPECT(ev->plain->csr.parts.splitblk[1], 2);
    EXPECT(ev->plain->csr.parts.splitblk[2], 5);
    EXPECT(ev->plain->csr.marks.gbmark[4], 1 + 1 + 1 + 2);
    EXPECT(ev->plain->csr.gpublks, 10);
  } else {
    EXPECT(ev->plain->csr.split, 1024);
    EXPECT(ev->plain->csr.parts.nsplit, 3); /* a row of at most 2048 entries is not split */
    EXPECT(ev->plain->csr.parts.splitblk[3], 4 + 5 + 10);
  }
  EXPECT(ev->launch.range[0].kind, ev->overlaps ? EVCHYB_RANGE_CLUSTER : EVCHYB_RANGE_SPLIT); /* most entries are in split rows */
  EXPECT(ev->launch.range[ev->launch.n - 1].kind, EVCHYB_RANGE_CSR);
  EXPECT(ev->launch.range[ev->launch.n - 1].first, 0);
  EXPECT(ev->launch.range[ev->launch.n - 1].next, ev->plain->csr.gpublks);
  PetscCall(EVCHYBDestroyHostCopy(&ev));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Windows of 64 rows, and column blocks in order of rows: no row leaves its window, and blocks ascend */
static PetscErrorCode TestOrder(void)
{
  enum { M = 256, N = 64 };
  PetscInt len[M], first[M] = {0};
  Mat      A;
  EVCHYB  *ev;

  PetscFunctionBegin;
  for (PetscInt r = 0; r < M; r++) len[r] = r % 2 ? 3 : 9;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_window", "64"));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_by_row", "1"));
  PetscCall(MakeMatrix(M, N, len, first, &A));
  PetscCall(GetFormat(A, &ev));
  EXPECT(ev->plain->ell.nb, 8);
  for (PetscInt b = 0; b < 8; b++) {
    EXPECT(ev->plain->ell.clen[b], b % 2 ? 3 : 9);
    for (PetscInt r = 0; r < 32; r++) EXPECT(ev->plain->perm[32 * b + r], b / 2 * 64 + 2 * r + b % 2);
  }
  PetscCall(EVCHYBDestroyHostCopy(&ev));
  PetscCall(MatDestroy(&A));
  /* without windows: the same column blocks, of rows of the whole matrix */
  PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_window", "0"));
  PetscCall(MakeMatrix(M, N, len, first, &A));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_evchyb_by_row"));
  PetscCall(GetFormat(A, &ev));
  for (PetscInt b = 0; b < 8; b++)
    for (PetscInt r = 0; r < 32; r++) EXPECT(ev->plain->perm[32 * b + r], b / 2 * 64 + 2 * r + b % 2);
  PetscCall(EVCHYBDestroyHostCopy(&ev));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* 64 rows of length 2 and 40 long ones, the last first by column: in the order of columns, or of the matrix */
static PetscErrorCode TestFirstColumn(void)
{
  static const char *const windows[] = {"0", "300", "2000"};
  enum { M = 104, N = 256 };
  PetscInt len[M], first[M];
  Mat      A;
  EVCHYB  *ev;

  PetscFunctionBegin;
  for (PetscInt r = 0; r < M; r++) {
    len[r]   = r < 64 ? 2 : 200;
    first[r] = r < 64 ? 63 - r : M - 1 - r;
  }
  for (PetscInt w = 0; w < 3; w++) {
    PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_window", windows[w]));
    for (PetscInt sorted = 0; sorted < 2; sorted++) {
      PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_first_column", sorted ? "1" : "0"));
      PetscCall(MakeMatrix(M, N, len, first, &A));
      PetscCall(GetFormat(A, &ev));
      EXPECT(ev->plain->ell.n, 64);
      EXPECT(ev->plain->csr.n, 40);
      EXPECT(ev->plain->inorder, !sorted);
      for (PetscInt r = 0; r < M; r++) EXPECT(ev->plain->perm[r], !sorted ? r : r < 64 ? 63 - r : 64 + M - 1 - r);
      PetscCall(EVCHYBDestroyHostCopy(&ev));
      PetscCall(MatDestroy(&A));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Which rows are short, where the options leave it open: by the mean of their lengths. 64 are as long as told, 64 others make the mean. */
static PetscErrorCode TestLongest(void)
{
  const struct {
    PetscInt len, other, nell;
  } cases[] = {
    {129, 65,  128}, /* 97 in the mean */
    {129, 63,  64 }, /* 96 */
    {256, 200, 128},
    {257, 200, 64 },
    {200, 312, 64 }, /* 256 */
    {200, 314, 0  }  /* 257 */
  };
  PetscInt len[128], first[128] = {0};
  Mat      A;
  EVCHYB  *ev;

  PetscFunctionBegin;
  PetscCall(PetscOptionsClearValue(NULL, "-mat_evchyb_max_ell"));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(cases); k++) {
    for (PetscInt r = 0; r < 128; r++) len[r] = r % 2 ? cases[k].other : cases[k].len;
    PetscCall(MakeMatrix(128, 400, len, first, &A));
    PetscCall(GetFormat(A, &ev));
    EXPECT(ev->plain->ell.n, cases[k].nell);
    PetscCall(EVCHYBDestroyHostCopy(&ev));
    PetscCall(MatDestroy(&A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_window", "0")); /* as in the paper, unless a test says otherwise */
  PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_first_column", "1"));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_evchyb_max_ell", "128"));
  PetscCall(TestMerge());
  PetscCall(TestBoundaries());
  PetscCall(TestRowsPerThread());
  PetscCall(TestThreadsPerRow());
  PetscCall(TestOrder());
  PetscCall(TestFirstColumn());
  PetscCall(TestLongest());
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "as by hand\n"));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:

TEST*/
