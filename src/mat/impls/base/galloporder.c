/* SPDX-License-Identifier: BSD-2-Clause */
/*
  The order in which a format keeps rows: as an ordering of PETSc's, and matrices permuted by it or by another, whose format then permutes nothing.
*/

#include <petscdevice.h>
#include <gallop/matgallopimpl.h>

extern const GallopFormat GallopFormat_EVCHYB; /* whose order matrices take that have none of their own */

static PetscErrorCode CheckSquareAIJ(Mat A)
{
  PetscBool aij, differ;
  PetscInt  m, n;

  PetscFunctionBegin;
  PetscCall(PetscObjectBaseTypeCompareAny((PetscObject)A, &aij, MATSEQAIJ, MATMPIAIJ, ""));
  PetscCheck(aij, PetscObjectComm((PetscObject)A), PETSC_ERR_SUP, "A matrix of type %s has no order of rows: it must be of type %s or derived from it", ((PetscObject)A)->type_name, MATAIJ);
  PetscCheck(A->assembled && !A->factortype, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONGSTATE, "The matrix must be assembled and not factored");
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCheck(A->rmap->N == A->cmap->N, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_SIZ, "A matrix of %" PetscInt_FMT " rows and %" PetscInt_FMT " columns cannot be permuted symmetrically: it must be square",
             A->rmap->N, A->cmap->N);
  differ = (PetscBool)(m != n);
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &differ, 1, MPI_C_BOOL, MPI_LOR, PetscObjectComm((PetscObject)A)));
  PetscCheck(!differ, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_SIZ, "A process with more rows than columns, or fewer, cannot permute them symmetrically: this one has %" PetscInt_FMT " and %" PetscInt_FMT, m, n);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The sequential matrices that an AIJ matrix consists of on this process, and the columns of the second */
static PetscErrorCode GetParts(Mat A, Mat parts[2], int *n, const PetscInt **garray)
{
  PetscBool   mpi;
  Mat_Gallop *g;

  PetscFunctionBegin;
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)A, MATMPIAIJ, &mpi));
  PetscCall(MatGallopGetContext(A, &g));
  parts[0] = A;
  parts[1] = NULL;
  if (garray) *garray = NULL;
  if (mpi && g) PetscCall(MatGallopGetBlocks(A, NULL, NULL)); /* makes them ours */
  if (mpi) PetscCall(MatMPIAIJGetSeqAIJ(A, &parts[0], &parts[1], garray));
  *n = mpi ? 2 : 1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A part of the permuted matrix: rows in their new order, columns by their new numbers and sorted */
static PetscErrorCode PermutePattern(const PetscInt i[], const PetscInt j[], PetscInt m, const PetscInt old[], PetscInt rstart, const PetscInt numbers[], PetscInt bi[], PetscInt bj[], IS *entries)
{
  PetscInt *from, at = 0;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(i[m], &from));
  for (PetscInt r = 0; r < m; r++) {
    const PetscInt begin = i[old[r] - rstart], length = i[old[r] - rstart + 1] - begin;

    bi[r] = at;
    for (PetscInt e = 0; e < length; e++) {
      bj[at + e]   = numbers[j[begin + e]];
      from[at + e] = begin + e;
    }
    PetscCall(PetscSortIntWithArray(length, bj + at, from + at));
    at += length;
  }
  bi[m] = at;
  PetscCall(ISCreateGeneral(PETSC_COMM_SELF, at, from, PETSC_OWN_POINTER, entries));
  PetscCall(GallopOrderKnown(*entries, at, 0)); /* its rows are, and each has its entries */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The order of a matrix on the host in which another order puts its rows and columns first */
static PetscErrorCode OrderAfter(const GallopFormat *format, const void *options, const GallopCSR *csr, const PetscInt first[], PetscInt order[])
{
  GallopCSR permuted = *csr;
  PetscInt *i, *j, *numbers;
  IS        entries;

  PetscFunctionBegin;
  PetscCall(PetscMalloc3(csr->m + 1, &i, csr->nz + 1, &j, csr->m, &numbers));
  for (PetscInt k = 0; k < csr->m; k++) numbers[first[k]] = k;
  PetscCall(PermutePattern(csr->i, csr->j, csr->m, first, 0, numbers, i, j, &entries));
  PetscCall(ISDestroy(&entries));
  permuted.i = permuted.host_i = i;
  permuted.j = permuted.host_j = j;
  PetscCall((*format->order)(options, &permuted, order));
  for (PetscInt k = 0; k < csr->m; k++) order[k] = first[order[k]];
  PetscCall(PetscFree3(i, j, numbers));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  MatGallopGetOrdering - The order in which the format of a matrix keeps rows, after another

  Input Parameters:
+ A     - the matrix
- first - an ordering of PETSc's for the block of rows and columns that a process owns, or NULL: rows and columns come in it first, and the format puts them into its own order then, which leaves
          rows of one length as they come

  Output Parameter:
. order - for rows and columns
*/
PetscErrorCode MatGallopGetOrdering(Mat A, MatOrderingType first, IS *order)
{
  const GallopFormat *format  = &GallopFormat_EVCHYB;
  void               *options = NULL;
  Mat_Gallop         *g;
  Mat                 parts[2];
  int                 n;
  GallopCSR           csr = {0};
  PetscInt           *rows, rstart;

  PetscFunctionBegin;
  PetscCall(CheckSquareAIJ(A));
  PetscCall(MatGallopGetContext(A, &g));
  if (g && g->type->format->order) format = g->type->format;
  else g = NULL;
  PetscCall(PetscMalloc(format->options_size, &options));
  if (g) PetscCall(PetscMemcpy(options, g->structure[GALLOP_FORMAT].options, format->options_size));
  else PetscCall((*format->options_default)(options));
  PetscCall(GetParts(A, parts, &n, NULL));
  PetscCall(MatGallopGetHostPattern(parts[0], &csr.host_i, &csr.host_j));
  csr.m       = parts[0]->rmap->n;
  csr.n       = csr.m;
  csr.nz      = csr.host_i[csr.m];
  csr.i       = csr.host_i;
  csr.j       = csr.host_j;
  csr.memtype = PETSC_MEMTYPE_HOST;
  PetscCall(PetscMalloc1(csr.m, &rows));
  if (first) {
    const PetscInt *local;
    IS              row, column;

    PetscCall(MatGetOrdering(parts[0], first, &row, &column));
    PetscCall(ISGetIndices(row, &local));
    PetscCall(OrderAfter(format, options, &csr, local, rows));
    PetscCall(ISRestoreIndices(row, &local));
    PetscCall(ISDestroy(&row));
    PetscCall(ISDestroy(&column));
  } else PetscCall((*format->order)(options, &csr, rows));
  PetscCall(PetscFree(options));
  PetscCall(MatGetOwnershipRange(A, &rstart, NULL));
  for (PetscInt k = 0; k < csr.m; k++) rows[k] += rstart;
  PetscCall(ISCreateGeneral(PetscObjectComm((PetscObject)A), csr.m, rows, PETSC_OWN_POINTER, order));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
  MATORDERINGGALLOP - "gallop" - The order in which the format of a Gallop matrix keeps rows: a `MatOrderingType` for `MatGetOrdering()`

  Options Database Key:
. -pc_factor_mat_ordering_type gallop - the order in which `PCILU`, `PCICC` and the like factor a sequential matrix

  Level: intermediate

  Notes:
  For `MATEVCHYB` rows come by length within windows, as the options of the matrix say, short ones first, then long ones, then empty ones. Other AIJ matrices, also those of Gallop types without an order
  of rows, have the order that they would have as `MATEVCHYB` with its defaults.

  Where the options of a `MATEVCHYB` matrix ask for clusters, or clusters pay, rows and columns are put into their order first.

  Rows stay on their MPI process; their order is that of the diagonal block, whose columns are those that the process owns. The index sets for rows and columns are the same, so `MatPermute()` and
  `MatGallopPermute()` give a matrix permuted symmetrically.

.seealso: `MatGallopPermute()`, `PCGALLOPREORDER`, `VecGallopPermute()`, `MatGetOrdering()`, `MatOrderingType`, `MATEVCHYB`
M*/
PetscErrorCode MatGetOrdering_Gallop(Mat A, MatOrderingType type, IS *rows, IS *columns)
{
  PetscFunctionBegin;
  (void)type;
  PetscCall(MatGallopGetOrdering(A, NULL, rows));
  PetscCall(ISDuplicate(*rows, columns)); /* PETSc may permute one of them further, against zeros on the diagonal */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The format of a matrix, or of the diagonal block, shall take rows in the order in which they come. The other block has rows of lengths of its own. */
static PetscErrorCode KeepOrder(Mat B)
{
  Mat         parts[2];
  Mat_Gallop *g;
  int         n;

  PetscFunctionBegin;
  PetscCall(GetParts(B, parts, &n, NULL));
  PetscCall(MatGallopGetContext(parts[0], &g));
  if (!g || !g->type->format->options_inorder) PetscFunctionReturn(PETSC_SUCCESS);
  (*g->type->format->options_inorder)(g->structure[GALLOP_FORMAT].options);
  PetscCall(MatGallopReset(&g->structure[GALLOP_FORMAT]));
  PetscCall(MatGallopReset(&g->structure[GALLOP_TRANSPOSE]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The new global numbers of the rows of this process and of its ghost columns */
static PetscErrorCode NewNumbers(Mat A, IS order, PetscInt nghosts, const PetscInt garray[], PetscInt own[], PetscInt ghost[])
{
  const PetscInt *old, rstart = A->rmap->rstart;
  PetscSF         sf;

  PetscFunctionBegin;
  PetscCall(ISGetIndices(order, &old));
  for (PetscInt k = 0; k < A->rmap->n; k++) own[old[k] - rstart] = rstart + k;
  PetscCall(ISRestoreIndices(order, &old));
  if (!ghost) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscSFCreate(PetscObjectComm((PetscObject)A), &sf));
  PetscCall(PetscSFSetGraphLayout(sf, A->cmap, nghosts, NULL, PETSC_USE_POINTER, garray));
  PetscCall(PetscSFBcastBegin(sf, MPIU_INT, own, ghost, MPI_REPLACE));
  PetscCall(PetscSFBcastEnd(sf, MPIU_INT, own, ghost, MPI_REPLACE));
  PetscCall(PetscSFDestroy(&sf));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define ENTRIES "GallopEntries" /* what each part of a permuted matrix keeps: which entry of the other's part each of its own comes from */
#define ARRAYS  "GallopArrays"  /* and what it is stored in, which PETSc does not free */

#define WRONG_REUSE "MAT_REUSE_MATRIX takes what MatGallopPermute() gave for a matrix of the same nonzero pattern and the same order: this one differs from it"

typedef struct {
  PetscInt    *i, *j;
  PetscScalar *a;
} Arrays;

static PetscErrorCode ArraysDestroy(PetscCtxRt ctx)
{
  Arrays *arrays = *(Arrays **)ctx;

  PetscFunctionBegin;
  PetscCall(PetscFree(arrays->i));
  PetscCall(PetscFree(arrays->j));
  PetscCall(PetscFree(arrays->a));
  PetscCall(PetscFree(arrays));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether a part of a matrix has this pattern, whose columns are global if garray tells those of the part */
static PetscErrorCode HasPattern(Mat part, const PetscInt garray[], const PetscInt bi[], const PetscInt bj[], PetscBool *has)
{
  const PetscInt m = part->rmap->n, *i, *j;
  PetscInt       r = 0, e = 0;

  PetscFunctionBegin;
  PetscCall(MatGallopGetHostPattern(part, &i, &j));
  while (r < m && i[r + 1] == bi[r + 1]) r++;
  while (r == m && e < i[m] && (garray ? garray[j[e]] : j[e]) == bj[e]) e++;
  *has = (PetscBool)(r == m && e == i[m]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The pattern of the permuted matrix, a part at a time. If there is no *B, it is made, with zeros, of the type of A: of arrays, since MatSetPreallocationCOO() sorts and remembers all entries, which
  takes three times as long. PETSc leaves the arrays alone, so that they stay for as long as B, be it given other ones or not.
*/
static PetscErrorCode SetPattern(Mat A, IS order, Mat *B)
{
  const PetscBool make = *B ? PETSC_FALSE : PETSC_TRUE;
  PetscBool       same = PETSC_TRUE;
  Mat             parts[2];
  int             n;
  PetscInt        nghosts = 0, *numbers[2] = {NULL, NULL};
  const PetscInt  m = A->rmap->n, *garray, *i, *j, *old;
  IS              entries[2];
  Arrays         *arrays[2] = {NULL, NULL};
  MatType         type;
  const char     *prefix;

  PetscFunctionBegin;
  PetscCall(GetParts(A, parts, &n, &garray));
  if (n > 1) PetscCall(MatGetLocalSize(parts[1], NULL, &nghosts));
  PetscCall(PetscMalloc1(m, &numbers[0]));
  if (n > 1) PetscCall(PetscMalloc1(nghosts + 1, &numbers[1]));
  PetscCall(NewNumbers(A, order, nghosts, garray, numbers[0], numbers[1]));
  for (PetscInt r = 0; r < m; r++) numbers[0][r] -= A->cmap->rstart; /* those of the diagonal block are local, of the other global */
  PetscCall(ISGetIndices(order, &old));
  for (int k = 0; k < n; k++) {
    PetscCall(MatGallopGetHostPattern(parts[k], &i, &j));
    PetscCall(PetscNew(&arrays[k]));
    PetscCall(PetscMalloc1(m + 1, &arrays[k]->i));
    PetscCall(PetscMalloc1(i[m] + 1, &arrays[k]->j));
    if (make) PetscCall(PetscCalloc1(i[m] + 1, &arrays[k]->a)); /* -mat_view shows them before SetValues() */
    PetscCall(PermutePattern(i, j, m, old, A->rmap->rstart, numbers[k], arrays[k]->i, arrays[k]->j, &entries[k]));
  }
  PetscCall(ISRestoreIndices(order, &old));
  PetscCall(PetscFree(numbers[0]));
  PetscCall(PetscFree(numbers[1]));
  if (make) {
    PetscCall(MatGetType(A, &type));
    PetscCall(MatGetOptionsPrefix(A, &prefix));
    if (n > 1)
      PetscCall(
        MatCreateMPIAIJWithSplitArrays(PetscObjectComm((PetscObject)A), A->rmap->n, A->cmap->n, A->rmap->N, A->cmap->N, arrays[0]->i, arrays[0]->j, arrays[0]->a, arrays[1]->i, arrays[1]->j, arrays[1]->a, B));
    else PetscCall(MatCreateSeqAIJWithArrays(PetscObjectComm((PetscObject)A), A->rmap->n, A->cmap->n, arrays[0]->i, arrays[0]->j, arrays[0]->a, B));
    PetscCall(MatSetOptionsPrefix(*B, prefix));
    PetscCall(MatConvert(*B, type, MAT_INPLACE_MATRIX, B));
    PetscCall(MatGallopCopyOptions(A, *B));
  }
  PetscCall(GetParts(*B, parts, &n, &garray));
  for (int k = 0; k < n; k++) {
    if (make) PetscCall(PetscObjectContainerCompose((PetscObject)parts[k], ARRAYS, arrays[k], ArraysDestroy));
    else {
      if (same) PetscCall(HasPattern(parts[k], k ? garray : NULL, arrays[k]->i, arrays[k]->j, &same));
      PetscCall(ArraysDestroy((void **)&arrays[k]));
    }
    if (same) PetscCall(PetscObjectCompose((PetscObject)parts[k], ENTRIES, (PetscObject)entries[k]));
    PetscCall(ISDestroy(&entries[k]));
  }
  if (!make) PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &same, 1, MPI_C_BOOL, MPI_LAND, PetscObjectComm((PetscObject)A)));
  PetscCheck(same, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONG, WRONG_REUSE);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A vector that has its entries in an array of either place */
static PetscErrorCode Wrap(PetscInt n, const PetscScalar *array, PetscBool device, Vec *v)
{
  PetscFunctionBegin;
  if (device) PetscCall(VecCreateSeqCUDAWithArray(PETSC_COMM_SELF, 1, n, array, v));
  else PetscCall(VecCreateSeqWithArray(PETSC_COMM_SELF, 1, n, array, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The values of a part, on the GPU when they are newest there and it has room */
static PetscErrorCode SetPartValues(Mat from, Mat to)
{
  IS                 entries;
  PetscInt           n;
  const PetscInt     m = from->rmap->n, *i, *ti, *j;
  const PetscScalar *a;
  PetscScalar       *b, *result;
  PetscMemType       memtype;
  PetscBool          device;
  Vec                x, y;

  PetscFunctionBegin;
  PetscCall(PetscObjectQuery((PetscObject)to, ENTRIES, (PetscObject *)&entries));
  PetscCall(ISGetLocalSize(entries, &n));
  PetscCall(MatGallopGetHostPattern(from, &i, &j));
  PetscCall(MatGallopGetHostPattern(to, &ti, &j));
  PetscCheck(i[m] == n && ti[m] == n, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, WRONG_REUSE);
  if (!n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGallopGetValuesRead(from, &a, &memtype));
  device = PetscMemTypeCUDA(memtype);
  PetscCall(Wrap(n, a, device, &x));
  if (device) PetscCall(MatGallopDeviceTakesValues(to, &device));
  if (device) PetscCall(MatGallopGetDeviceValuesWrite(to, &b));
  else PetscCall(MatSeqAIJGetArrayWrite(to, &b));
  PetscCall(Wrap(n, b, device, &y));
  PetscCall(VecGallopPermute(x, entries, PETSC_FALSE, y));
  if (device) { /* had the GPU no room for the numbers of entries, the result is on the host */
    PetscCall(VecGetArrayAndMemType(y, &result, NULL));
    PetscCall(VecRestoreArrayAndMemType(y, &result));
    PetscCall(PetscDeviceContextSynchronize(NULL)); /* PETSc reads the array on another stream, should the current one be nonblocking */
    PetscCall(MatGallopRestoreDeviceValuesWrite(to, &b));
  } else PetscCall(MatSeqAIJRestoreArrayWrite(to, &b));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatGallopRestoreValuesRead(from, &a, memtype));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetValues(Mat A, Mat B)
{
  Mat       from[2], to[2];
  int       n;
  PetscBool local;

  PetscFunctionBegin;
  PetscCall(GetParts(A, from, &n, NULL));
  PetscCall(GetParts(B, to, &n, NULL));
  for (int k = 0; k < n; k++) PetscCall(SetPartValues(from[k], to[k]));
  PetscCall(MatGetOption(B, MAT_NO_OFF_PROC_ENTRIES, &local));
  PetscCall(MatSetOption(B, MAT_NO_OFF_PROC_ENTRIES, PETSC_TRUE));
  PetscCall(MatAssemblyBegin(B, MAT_FINAL_ASSEMBLY)); /* tells all that the values are others */
  PetscCall(MatAssemblyEnd(B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatSetOption(B, MAT_NO_OFF_PROC_ENTRIES, local));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MAT_REUSE_MATRIX promises a result of before, for the same pattern: what shows at once that it is not */
static PetscErrorCode CheckReuse(Mat A, Mat B)
{
  MatInfo   a, b;
  MatType   type;
  PetscBool same;

  PetscFunctionBegin;
  PetscCall(MatGetType(A, &type));
  PetscCall(PetscObjectTypeCompare((PetscObject)B, type, &same));
  PetscCall(MatGetInfo(A, MAT_LOCAL, &a));
  PetscCall(MatGetInfo(B, MAT_LOCAL, &b));
  PetscCheck(same && A->rmap->n == B->rmap->n && A->cmap->n == B->cmap->n && a.nz_used == b.nz_used, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, WRONG_REUSE);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatGallopPermute - Permutes rows and columns of a square AIJ matrix alike, each MPI process its own; the result has the type and options of the matrix

  Collective

  Input Parameters:
+ A       - the matrix, of type `MATAIJ` or one that derives from it
. rows    - a permutation of the global numbers of the rows that each process owns: the result's row `k` is `A`'s row `rows[k]`
. columns - the same permutation
- reuse   - `MAT_INITIAL_MATRIX`, or `MAT_REUSE_MATRIX` to bring over new values of a matrix whose nonzero pattern is as it was

  Output Parameter:
. B - the permuted matrix

  Level: intermediate

  Notes:
  A permutation of rows other than that of columns is refused: eigenvalues, symmetry and the diagonal would not be kept.

  With the order of `MATORDERINGGALLOP` the format of the result takes rows as they come, and products of `MATEVCHYB` matrices permute nothing; in MPI, those of its diagonal block. That the
  format takes rows as they come holds with any order: one that mixes rows of different lengths makes the format large.

  `MatPermute()` also takes orders for rows and columns that differ, but knows no reuse.

.seealso: `MATORDERINGGALLOP`, `VecGallopPermute()`, `PCGALLOPREORDER`, `MatPermute()`
@*/
PetscErrorCode MatGallopPermute(Mat A, IS rows, IS columns, MatReuse reuse, Mat *B)
{
  PetscBool   same, bound, known = PETSC_TRUE;
  Mat         parts[2];
  int         n;
  PetscObject entries;

  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscValidHeaderSpecific(rows, IS_CLASSID, 2);
  PetscValidHeaderSpecific(columns, IS_CLASSID, 3);
  PetscAssertPointer(B, 5);
  PetscCheck(reuse == MAT_INITIAL_MATRIX || reuse == MAT_REUSE_MATRIX, PetscObjectComm((PetscObject)A), PETSC_ERR_SUP, "A matrix cannot be permuted in place");
  PetscCall(CheckSquareAIJ(A));
  PetscCall(ISEqualUnsorted(rows, columns, &same));
  PetscCheck(same, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_INCOMP, "The permutation of the columns is not that of the rows: only symmetric permutations are supported; MatPermute() takes others");
  PetscCall(GallopOrderCheck(rows, A->rmap->n, A->rmap->rstart));
  PetscCall(PetscLogEventBegin(Gallop_MatPermute, A, 0, 0, 0));
  if (reuse == MAT_REUSE_MATRIX) {
    PetscCall(CheckReuse(A, *B));
    PetscCall(MatBindToCPU(*B, PETSC_FALSE));
    PetscCall(GetParts(*B, parts, &n, NULL));
    for (int k = 0; k < n; k++) {
      PetscCall(PetscObjectQuery((PetscObject)parts[k], ENTRIES, &entries));
      if (!entries) known = PETSC_FALSE;
    }
    PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &known, 1, MPI_C_BOOL, MPI_LAND, PetscObjectComm((PetscObject)A)));
    if (!known) PetscCall(SetPattern(A, rows, B)); /* a duplicate of what was permuted */
  } else {
    *B = NULL;
    PetscCall(SetPattern(A, rows, B));
    PetscCall(KeepOrder(*B));
  }
  PetscCall(SetValues(A, *B));
  PetscCall(MatPropagateSymmetryOptions(A, *B));
  PetscCall(MatBoundToCPU(A, &bound));
  PetscCall(MatBindToCPU(*B, bound));
  PetscCall(PetscLogEventEnd(Gallop_MatPermute, A, 0, 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}
