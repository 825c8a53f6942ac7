/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "What the HBP format chooses where options leave it open: sizes of blocks, maps, the limit of long rows, and x in shared memory.\n\n";

#include "hbptest.h"

/* What is chosen without options for a 5-point stencil on a square: maps in all blocks of rows, which take fewer bytes than CSR */
static PetscErrorCode TestStencil(void)
{
  const PetscInt side = 300, n = side * side;
  Mat            A;
  HBP           *h;

  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_SELF, &A));
  PetscCall(MatSetSizes(A, n, n, n, n));
  PetscCall(MatSetType(A, MATHBP));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatSeqAIJSetPreallocation(A, 5, NULL));
  for (PetscInt r = 0; r < n; r++) {
    const PetscInt  cols[] = {r - side, r - 1, r, r + 1, r + side};
    const PetscBool has[]  = {(PetscBool)(r >= side), (PetscBool)(r % side > 0), PETSC_TRUE, (PetscBool)(r % side < side - 1), (PetscBool)(r < n - side)};

    for (int k = 0; k < 5; k++)
      if (has[k]) PetscCall(MatSetValue(A, r, cols[k], TestValue(1, r, cols[k]), INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(TestProductsOf(A, "5-point stencil", &h));
  PetscCheck(n > HBP_MAX_COLS && h->mapped == h->rowBlocks && h->colBlocks == 1 && !h->partialNum && h->alone, PETSC_COMM_SELF, PETSC_ERR_PLIB, "5-point stencil: %" PetscInt_FMT " of %" PetscInt_FMT " blocks of rows have maps, %" PetscInt_FMT " partial sums", h->mapped, h->rowBlocks, h->partialNum);
  PetscCheck(h->bytes < (size_t)h->nz * (sizeof(PetscScalar) + sizeof(PetscInt)) + (size_t)(n + 1) * sizeof(PetscInt), PETSC_COMM_SELF, PETSC_ERR_PLIB, "5-point stencil: %g bytes are no fewer than of CSR",
             (double)h->bytes);
  PetscCall(HBPDestroyHostCopy(&h));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  When blocks of rows have maps, of 4096 chunks at most, and how many rows then. Rows with 8 entries in any place fill 3072 chunks with 384: of 1024, 512 and 256 the last is chosen; with 24 entries, 256 rows
  have more than 4096. Where rows are given there are as many, and maps if these have room. Where columns are given there are maps only where they shall be.
*/
static PetscErrorCode TestChoiceOfMaps(void)
{
  static const struct {
    PetscInt  entries, block_rows, block_cols, maps, N;
    PetscBool mapped;
  } cases[] = {
    {8,  0,    0,     HBP_MAP_CHOOSE, 256,  PETSC_TRUE },
    {8,  0,    0,     HBP_MAP_NEVER,  1024, PETSC_FALSE},
    {8,  0,    65536, HBP_MAP_CHOOSE, 1024, PETSC_FALSE},
    {8,  480,  0,     HBP_MAP_CHOOSE, 480,  PETSC_TRUE },
    {8,  1024, 0,     HBP_MAP_CHOOSE, 1024, PETSC_FALSE},
    {8,  480,  65536, HBP_MAP_CHOOSE, 480,  PETSC_FALSE},
    {8,  480,  65536, HBP_MAP_ALWAYS, 480,  PETSC_TRUE },
    {24, 0,    0,     HBP_MAP_CHOOSE, 1024, PETSC_FALSE},
    {2,  0,    0,     HBP_MAP_CHOOSE, 1024, PETSC_TRUE }
  };
  const PetscInt m = 3000, n = 100000;

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(cases); k++) {
    Mat  A;
    HBP *h;
    char what[64];

    PetscCall(PetscSNPrintf(what, sizeof(what), "choice of maps, case %d", (int)k));
    PetscCall(SetBlocks(cases[k].block_rows, cases[k].block_cols));
    PetscCall(TestSetIntOption("-mat_hbp_map", cases[k].maps));
    PetscCall(MatCreate(PETSC_COMM_SELF, &A));
    PetscCall(MatSetSizes(A, m, n, m, n));
    PetscCall(MatSetType(A, MATHBP));
    PetscCall(MatSetFromOptions(A));
    PetscCall(MatSeqAIJSetPreallocation(A, cases[k].entries, NULL));
    for (PetscInt r = 0; r < m; r++)
      for (PetscInt e = 0; e < cases[k].entries; e++) PetscCall(MatSetValue(A, r, (PetscInt)(TestRandom(3, r, e) * n), TestValue(1, r, e), INSERT_VALUES));
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    PetscCall(TestProductsOf(A, what, &h));
    TestCheck(h->N == cases[k].N && h->mapped == (cases[k].mapped ? h->rowBlocks : 0), "blocks of %" PetscInt_FMT " rows, %" PetscInt_FMT " with maps", what, h->N, h->mapped);
    TestCheck(h->colBlocks == (cases[k].mapped ? 1 : 2), "%" PetscInt_FMT " columns of blocks", what, h->colBlocks);
    PetscCall(HBPDestroyHostCopy(&h));
    PetscCall(MatDestroy(&A));
  }
  PetscCall(SetBlocks(0, 0));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_hbp_map"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Columns so far apart that the GPU finds the chunks of a map by a table: of blocks of rows with few and with more than a map may have, and with chunks that are near each other */
static PetscErrorCode TestScattered(void)
{
  enum { ROWS = 64, BLOCKS = 3, N = 18000000 };
  static const PetscInt len[BLOCKS] = {20, 90, 30};
  const HBPOptions      options     = {.block_rows = ROWS, .block_cols = HBP_MAX_COLS, .map = HBP_MAP_ALWAYS, .shared_x = HBP_SHARED_NEVER, .fixed = -1};
  PetscInt              m, *chunk;
  const PetscInt       *i, *j;
  const PetscScalar    *a, *z;
  GallopCSR             csr;
  HBP                  *h, *host;
  Mat                   A;
  Vec                   x, y;
  PetscBool             done;

  PetscFunctionBegin;
  PetscCall(SetBlocks(ROWS, HBP_MAX_COLS));
  PetscCall(TestSetIntOption("-mat_hbp_map", HBP_MAP_ALWAYS));
  PetscCall(TestSetIntOption("-mat_hbp_shared_x", HBP_SHARED_NEVER));
  PetscCall(MatCreate(PETSC_COMM_SELF, &A));
  PetscCall(MatSetSizes(A, ROWS * BLOCKS, N, ROWS * BLOCKS, N));
  PetscCall(MatSetType(A, MATHBP));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatSeqAIJSetPreallocation(A, 90, NULL));
  for (PetscInt r = 0; r < ROWS * BLOCKS; r++)
    for (PetscInt e = 0; e < len[r / ROWS]; e++) PetscCall(MatSetValue(A, r, r / ROWS < 2 ? (PetscInt)(TestRandom(5, r, e) * N) : 7000000 + r + 17 * e, TestValue(1, r, e), INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecSet(x, 1.0));
  PetscCall(MatMult(A, x, y));
  PetscCall(GetFormat(A, "scattered", &h));
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscCall(MatSeqAIJGetArrayRead(A, &a));
  PetscCall(VecGetArrayRead(y, &z));
  for (PetscInt r = 0; r < m; r++) {
    PetscScalar sum  = 0.0;
    PetscReal   size = 0.0;

    for (PetscInt k = i[r]; k < i[r + 1]; k++) {
      sum += a[k];
      size += PetscAbsScalar(a[k]);
    }
    PetscCheck(PetscAbsScalar(z[r] - sum) <= TEST_ULPS * PETSC_MACHINE_EPSILON * size, PETSC_COMM_SELF, PETSC_ERR_PLIB, "scattered: row %" PetscInt_FMT, r);
  }
  PetscCall(VecRestoreArrayRead(y, &z));
  for (PetscInt rb = 0; rb < BLOCKS; rb++) {
    const PetscInt first = i[rb * ROWS];
    PetscInt       num   = i[(rb + 1) * ROWS] - first;

    PetscCall(PetscMalloc1(num, &chunk));
    for (PetscInt k = 0; k < num; k++) chunk[k] = j[first + k] / HBP_CHUNK * HBP_CHUNK;
    PetscCall(PetscSortRemoveDupsInt(&num, chunk));
    if (num > HBP_MAX_COLS / HBP_CHUNK) num = 0;
    PetscCheck(h->mapPtr[rb + 1] - h->mapPtr[rb] == num && (rb == 1) == !num, PETSC_COMM_SELF, PETSC_ERR_PLIB, "scattered: the map of row block %" PetscInt_FMT " has %" PetscInt_FMT " places, not %" PetscInt_FMT, rb, h->mapPtr[rb + 1] - h->mapPtr[rb], num);
    for (PetscInt k = 0; k < num; k++)
      PetscCheck(h->map[h->mapPtr[rb] + k] == chunk[k], PETSC_COMM_SELF, PETSC_ERR_PLIB, "scattered: place %" PetscInt_FMT " of the map of row block %" PetscInt_FMT, k, rb);
    PetscCall(PetscFree(chunk));
  }
  csr = (GallopCSR){.m = m, .n = N, .nz = i[m], .i = i, .j = j, .a = a, .host_i = i, .host_j = j, .memtype = PETSC_MEMTYPE_HOST};
  PetscCall(HBPBuild_Host(HBP_GROUP, &options, &csr, 0, &host));
  TestSameNumber(host, h, blknz, "scattered");
  TestSameNumber(host, h, segNum, "scattered");
  TestSameNumber(host, h, groupNum, "scattered");
  TestSameNumber(host, h, mapNum, "scattered");
  TestSameArray(host, h, col, h->blknz, "scattered");
  TestSameArray(host, h, group, h->groupNum, "scattered");
  TestSameArray(host, h, data, h->nz, "scattered");
  PetscCall(HBPDestroyHostCopy(&host));
  PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &m, &i, &j, &done));
  PetscCall(HBPDestroyHostCopy(&h));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&A));
  PetscCall(SetBlocks(0, 0));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_hbp_map"));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_hbp_shared_x"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The limit of a row's length that is chosen, for bands of m rows with as many entries: see the manual page */
static PetscErrorCode TestLimits(void)
{
  static const struct {
    PetscInt m, entries, shared_x, maps, limit;
  } cases[] = {
    {400000, 12,  HBP_SHARED_NEVER,  HBP_MAP_NEVER,  400000 * 12 / 4096},
    {400000, 12,  HBP_SHARED_NEVER,  HBP_MAP_CHOOSE, 1024              },
    {400000, 12,  HBP_SHARED_ALWAYS, HBP_MAP_CHOOSE, 16384             },
    {20000,  100, HBP_SHARED_NEVER,  HBP_MAP_CHOOSE, 16 * 100          },
    {5000,   400, HBP_SHARED_NEVER,  HBP_MAP_CHOOSE, 5000 * 400 / 1024 }
  };

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(cases); k++) {
    const PetscInt   m = cases[k].m, len = cases[k].entries;
    const HBPOptions options = {.shared_x = cases[k].shared_x, .map = cases[k].maps, .fixed = -1};
    GallopCSR        csr     = {.m = m, .n = m, .nz = m * len, .memtype = PETSC_MEMTYPE_HOST};
    PetscInt        *i, *j;
    PetscScalar     *a;
    HBP             *h;

    PetscCall(PetscMalloc2(m + 1, &i, m * len, &j));
    PetscCall(PetscCalloc1(m * len, &a));
    for (PetscInt r = 0; r <= m; r++) i[r] = r * len;
    for (PetscInt e = 0; e < m * len; e++) j[e] = PetscMin(e / len, m - len) + e % len;
    csr.i = csr.host_i = i;
    csr.j              = j;
    csr.a              = a;
    PetscCall(HBPBuild_Host(HBP_GROUP, &options, &csr, 0, &h));
    PetscCheck(h->longRow == cases[k].limit, PETSC_COMM_SELF, PETSC_ERR_PLIB, "limit %d: %" PetscInt_FMT ", not %" PetscInt_FMT, (int)k, h->longRow, cases[k].limit);
    PetscCall(HBPDestroyHostCopy(&h));
    PetscCall(PetscFree2(i, j));
    PetscCall(PetscFree(a));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Blocks whose x is kept in shared memory are as wide as GPUs have room for beside what the kernel has there itself: 16 warps with their groups, two numbers, and the sums of warps. At compute
  capability 7.5 that is less than the 64 KB that are chosen on others, and blocks that are asked for may be too wide.
*/
static PetscErrorCode TestSharedMemory(void)
{
  const size_t   kernel = 16 * (32 * (4 * sizeof(PetscInt) + sizeof(int)) + sizeof(PetscScalar)) + 2 * sizeof(int);
  const PetscInt turing = HBPSharedCols(65536, kernel), wide = (PetscInt)(65536 / sizeof(PetscScalar)), m = 200, len = 20, n = 6 * wide;
  const struct {
    PetscInt  room, block_cols, M;
    PetscBool shared;
  } cases[] = {
    {HBP_MAX_SHARED_COLS, 0,          wide,       PETSC_TRUE },
    {HBP_MAX_SHARED_COLS, 100,        100,        PETSC_TRUE },
    {turing,              0,          turing,     PETSC_TRUE },
    {turing,              turing,     turing,     PETSC_TRUE },
    {turing,              turing + 1, turing + 1, PETSC_FALSE},
    {turing,              wide,       wide,       PETSC_FALSE}
  };
  GallopCSR    csr = {.m = m, .n = n, .nz = m * len, .memtype = PETSC_MEMTYPE_HOST};
  PetscInt    *i, *j;
  PetscScalar *a;

  PetscFunctionBegin;
  PetscCheck(turing % HBP_CHUNK == 0 && turing * sizeof(PetscScalar) + kernel <= 65536 && (turing + HBP_CHUNK) * sizeof(PetscScalar) + kernel > 65536, PETSC_COMM_SELF, PETSC_ERR_PLIB, "64 KB of shared memory have room for %" PetscInt_FMT " columns", turing);
  PetscCheck(HBPSharedCols(232448, kernel) == HBP_MAX_SHARED_COLS && HBPSharedCols(kernel, kernel) == 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Columns of the largest and the smallest shared memory");
  PetscCall(PetscMalloc2(m + 1, &i, m * len, &j));
  PetscCall(PetscCalloc1(m * len, &a));
  for (PetscInt r = 0; r <= m; r++) i[r] = r * len;
  for (PetscInt e = 0; e < m * len; e++) j[e] = e % len * (n / len) + (PetscInt)(TestRandom(4, e, 0) * (n / len));
  csr.i = csr.host_i = i;
  csr.j              = j;
  csr.a              = a;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(cases); k++) {
    const HBPOptions options = {.shared_x = HBP_SHARED_ALWAYS, .map = HBP_MAP_NEVER, .fixed = -1, .block_cols = cases[k].block_cols, .shared_cols = cases[k].room};
    HBP             *h;

    PetscCall(HBPBuild_Host(HBP_GROUP, &options, &csr, 0, &h));
    PetscCheck(h && h->M == cases[k].M && h->shared == cases[k].shared, PETSC_COMM_SELF, PETSC_ERR_PLIB, "room %d: blocks of %" PetscInt_FMT " columns, x %s shared memory", (int)k, h ? h->M : 0, h && h->shared ? "in" : "not in");
    PetscCheck(h->colBlocks == (n - 1) / h->M + 1, PETSC_COMM_SELF, PETSC_ERR_PLIB, "room %d: %" PetscInt_FMT " columns of blocks", (int)k, h->colBlocks);
    for (PetscCount e = 0; e < h->blknz; e++) PetscCheck(h->col[e] < h->M, PETSC_COMM_SELF, PETSC_ERR_PLIB, "room %d: column %d in a block", (int)k, h->col[e]);
    PetscCall(HBPDestroyHostCopy(&h));
  }
  PetscCall(PetscFree2(i, j));
  PetscCall(PetscFree(a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(TestStencil());
  PetscCall(TestChoiceOfMaps());
  PetscCall(TestLimits());
  PetscCall(TestSharedMemory());
  PetscCall(TestScattered());
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    suffix: 1
    args: -mat_gallop_explicit_transpose never
    output_file: output/empty.out

TEST*/
