/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "A PetscSF of type gallop gives the bits that one of type basic gives on the host, for graphs, units and operations of all kinds, and each goes the way that it should.\n\
  -sf_gallop_exchange <ipc>  auto, ipc, or shared, which is for the host\n\
  -repeats <12>              communications that nobody waits for in between\n\
  -cycles <300>              graphs that are made and destroyed\n\n";

#include "../galloptest.h"
#include <petsc/private/sfimpl.h>
#include <petscdmda.h>
#include <dirent.h>

typedef enum { RING, ALL, STAR, MANY, SELF, EMPTY, NOBODY, RANDOM, PATTERNS } Pattern;
static const char *const Names[] = {"ring", "all to all", "star", "many leaves of a root", "within processes", "empty processes", "no edges", "random"};

static PetscInt  repeats = 12, cycles = 300;
static uint64_t  state;
static PetscBool ours, device; /* whether communications go our way; whether arrays are on the GPU */

/* Differs from process to process */
static PetscInt Random(PetscInt n)
{
  state = state * 6364136223846793005u + 1442695040888963407u;
  return n > 0 ? (PetscInt)((state >> 33) % (uint64_t)n) : 0;
}

static PetscInt Roots(Pattern pattern, PetscInt rank)
{
  if (pattern == EMPTY && rank % 2) return 0;
  if (pattern == MANY) return rank ? 2 : 3;
  return 5 + 7 * rank % 11;
}

static PetscInt Leaves(Pattern pattern, PetscInt rank, PetscInt size)
{
  if (pattern == NOBODY || (pattern == EMPTY && rank == size - 1)) return 0;
  if (pattern == MANY) return 1500;
  return pattern == RANDOM ? Random(40) : 20;
}

static PetscErrorCode Graph(Pattern pattern, PetscSF sf[2])
{
  PetscMPIInt  rank, size;
  PetscInt     nroots, nleaves, *local;
  PetscSFNode *remote;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  nroots  = Roots(pattern, rank);
  nleaves = Leaves(pattern, rank, size);
  PetscCall(PetscMalloc2(nleaves, &local, nleaves, &remote));
  for (PetscInt k = 0; k < nleaves; k++) {
    PetscInt to = Random(size);

    if (pattern == RING) to = (rank + 1) % size;
    else if (pattern == ALL) to = k % size;
    else if (pattern == STAR) to = 0;
    else if (pattern == SELF) to = rank;
    else if (pattern == EMPTY) to = to / 2 * 2;
    local[k]        = 2 * k + (k % 3 == 0); /* with gaps */
    remote[k].rank  = to;
    remote[k].index = Random(Roots(pattern, to));
  }
  for (PetscInt k = nleaves - 1; k > 0; k--) { /* in no order */
    const PetscInt other = Random(k + 1), here = local[k];

    local[k]     = local[other];
    local[other] = here;
  }
  for (int t = 0; t < 2; t++) {
    PetscCall(PetscSFCreate(PETSC_COMM_WORLD, &sf[t]));
    PetscCall(PetscSFSetType(sf[t], t ? PETSCSFGALLOP : PETSCSFBASIC));
    PetscCall(PetscSFSetGraph(sf[t], nroots, nleaves, local, PETSC_COPY_VALUES, remote, PETSC_COPY_VALUES));
    PetscCall(PetscSFSetUp(sf[t]));
  }
  PetscCall(PetscFree2(local, remote));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* n numbers on the host and, if there is a GPU, there, too */
typedef struct {
  Vec host, array;
} Numbers;

static PetscErrorCode NumbersCreate(PetscInt n, PetscInt seed, Numbers *numbers)
{
  PetscFunctionBegin;
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, n, &numbers->host));
  PetscCall(TestSetVec(numbers->host, seed));
  PetscCall(VecCreate(PETSC_COMM_SELF, &numbers->array));
  PetscCall(VecSetSizes(numbers->array, n, n));
  PetscCall(VecSetType(numbers->array, device ? VECSEQCUDA : VECSEQ));
  PetscCall(VecCopy(numbers->host, numbers->array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NumbersDestroy(Numbers *numbers)
{
  PetscFunctionBegin;
  PetscCall(VecDestroy(&numbers->host));
  PetscCall(VecDestroy(&numbers->array));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NumbersSame(const Numbers *numbers, const char what[])
{
  const PetscScalar *a, *b;
  PetscInt           n;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(numbers->host, &n));
  PetscCall(VecGetArrayRead(numbers->array, &a));
  PetscCall(VecGetArrayRead(numbers->host, &b));
  for (PetscInt i = 0; i < n; i++)
    PetscCheck(memcmp(&a[i], &b[i], sizeof(a[i])) == 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: number %" PetscInt_FMT " is %.17g, by basic %.17g", what, i, (double)PetscRealPart(a[i]), (double)PetscRealPart(b[i]));
  PetscCall(VecRestoreArrayRead(numbers->array, &a));
  PetscCall(VecRestoreArrayRead(numbers->host, &b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One communication, from a vector to another one; NULL where they are empty, as programs do without PETSc's vectors */
typedef struct {
  const PetscScalar *from;
  PetscScalar       *to;
  PetscMemType       mfrom, mto;
} Arrays;

static PetscErrorCode CommBegin(PetscSF sf, MPI_Datatype unit, PetscBool reverse, Vec from, Vec to, MPI_Op op, Arrays *a)
{
  PetscInt n;

  PetscFunctionBegin;
  PetscCall(VecGetArrayReadAndMemType(from, &a->from, &a->mfrom));
  PetscCall(VecGetArrayAndMemType(to, &a->to, &a->mto));
  PetscCall(VecGetLocalSize(from, &n));
  if (!n) {
    PetscCall(VecRestoreArrayReadAndMemType(from, &a->from));
    a->from  = NULL;
    a->mfrom = PETSC_MEMTYPE_HOST;
  }
  if (reverse) PetscCall(PetscSFReduceWithMemTypeBegin(sf, unit, a->mfrom, a->from, a->mto, a->to, op));
  else PetscCall(PetscSFBcastWithMemTypeBegin(sf, unit, a->mfrom, a->from, a->mto, a->to, op));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CommEnd(PetscSF sf, MPI_Datatype unit, PetscBool reverse, Vec from, Vec to, MPI_Op op, Arrays *a)
{
  PetscFunctionBegin;
  if (reverse) PetscCall(PetscSFReduceEnd(sf, unit, a->from, a->to, op));
  else PetscCall(PetscSFBcastEnd(sf, unit, a->from, a->to, op));
  if (a->from) PetscCall(VecRestoreArrayReadAndMemType(from, &a->from));
  PetscCall(VecRestoreArrayAndMemType(to, &a->to));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Comm(PetscSF sf, MPI_Datatype unit, PetscBool reverse, Vec from, Vec to, MPI_Op op)
{
  Arrays a;

  PetscFunctionBegin;
  PetscCall(CommBegin(sf, unit, reverse, from, to, op, &a));
  PetscCall(CommEnd(sf, unit, reverse, from, to, op, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Extents(PetscSF sf, PetscInt *roots, PetscInt *leaves)
{
  PetscFunctionBegin;
  PetscCall(PetscSFGetGraph(sf, roots, NULL, NULL, NULL));
  PetscCall(PetscSFGetLeafRange(sf, NULL, leaves));
  *leaves = PetscMax(*leaves + 1, 0);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* How many have gone our way since the last look; none where nothing has anywhere to go */
static PetscErrorCode CheckWay(PetscSF sf, PetscInt64 n, PetscInt64 others, PetscInt64 last[2], const char what[])
{
  PetscInt64 ipc, basic;
  PetscInt   leaves;

  PetscFunctionBegin;
  PetscCall(PetscSFGallopGetExchanges(sf, &ipc, &basic));
  PetscCall(PetscSFGetGraph(sf, NULL, &leaves, NULL, NULL));
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &leaves, 1, MPIU_INT, MPI_MAX, PETSC_COMM_WORLD));
  if (!ours || !leaves) {
    others += n;
    n = 0;
  }
  PetscCheck(ipc - last[0] == n && basic - last[1] == others, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %" PetscInt64_FMT " communications our way and %" PetscInt64_FMT " by basic, not %" PetscInt64_FMT " and %" PetscInt64_FMT, what, ipc - last[0], basic - last[1], n, others);
  last[0] = ipc;
  last[1] = basic;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A unit of count scalars, or real numbers if it is odd in complex numbers and so no scalars */
static PetscErrorCode UnitCreate(PetscInt count, MPI_Datatype *unit)
{
  PetscFunctionBegin;
  *unit = MPIU_SCALAR;
  if (count == 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallMPI(MPI_Type_contiguous((PetscMPIInt)count, MPIU_SCALAR, unit));
  PetscCallMPI(MPI_Type_commit(unit));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode UnitDestroy(PetscInt count, MPI_Datatype *unit)
{
  PetscFunctionBegin;
  if (count > 1) PetscCallMPI(MPI_Type_free(unit));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Communications in both directions, each of which takes what the last one gave, and several in one direction, in which a process that only sends runs ahead */
static PetscErrorCode Communicate(PetscSF sf[2], PetscInt count, PetscInt n, PetscInt64 last[2], const char what[])
{
  const MPI_Op ops[] = {MPI_REPLACE, MPIU_SUM, MPI_SUM};
  Numbers      root, leaf;
  PetscInt     roots, leaves;
  MPI_Datatype unit;

  PetscFunctionBegin;
  PetscCall(Extents(sf[1], &roots, &leaves));
  PetscCall(NumbersCreate(roots * count, 3, &root));
  PetscCall(NumbersCreate(leaves * count, 4, &leaf));
  PetscCall(UnitCreate(count, &unit));
  PetscCall(TestWaitForDefaultStream());
  for (PetscInt k = 0; k < n; k++) {
    const PetscBool reverse = (PetscBool)(n < 8 ? k % 2 : k / 4 % 2);
    const MPI_Op    op      = ops[k / 2 % 3];

    if (Random(8) == 0) (void)usleep((unsigned int)Random(100));
    PetscCall(Comm(sf[1], unit, reverse, reverse ? leaf.array : root.array, reverse ? root.array : leaf.array, op));
    PetscCall(VecScale(root.array, 0.75));
  }
  for (PetscInt k = 0; k < n; k++) {
    const PetscBool reverse = (PetscBool)(n < 8 ? k % 2 : k / 4 % 2);

    PetscCall(Comm(sf[0], unit, reverse, reverse ? leaf.host : root.host, reverse ? root.host : leaf.host, ops[k / 2 % 3]));
    PetscCall(VecScale(root.host, 0.75));
  }
  PetscCall(NumbersSame(&root, what));
  PetscCall(NumbersSame(&leaf, what));
  PetscCall(CheckWay(sf[1], n, 0, last, what));
  PetscCall(UnitDestroy(count, &unit));
  PetscCall(NumbersDestroy(&root));
  PetscCall(NumbersDestroy(&leaf));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Real numbers as units, one or three: of complex numbers, three are no whole number of them */
static PetscErrorCode Reals(PetscSF sf[2], PetscInt64 last[2])
{
  Numbers      root, leaf;
  PetscInt     roots, leaves;
  MPI_Datatype unit[2] = {MPIU_REAL, MPI_DATATYPE_NULL}, three;

  PetscFunctionBegin;
  PetscCall(Extents(sf[1], &roots, &leaves));
  PetscCallMPI(MPI_Type_contiguous(3, MPIU_REAL, &three));
  PetscCallMPI(MPI_Type_dup(three, &unit[1]));
  PetscCallMPI(MPI_Type_commit(&unit[1]));
  PetscCallMPI(MPI_Type_free(&three));
  PetscCall(NumbersCreate(roots * 3, 3, &root));
  PetscCall(NumbersCreate(leaves * 3, 4, &leaf));
  for (int u = 0; u < 2; u++)
    for (int t = 0; t < 2; t++) {
      PetscCall(Comm(sf[t], unit[u], PETSC_FALSE, t ? root.array : root.host, t ? leaf.array : leaf.host, MPI_REPLACE));
      PetscCall(Comm(sf[t], unit[u], PETSC_TRUE, t ? leaf.array : leaf.host, t ? root.array : root.host, MPIU_SUM));
    }
  PetscCall(NumbersSame(&root, "real numbers"));
  PetscCall(NumbersSame(&leaf, "real numbers"));
  PetscCall(CheckWay(sf[1], 4, 0, last, "real numbers"));
  PetscCallMPI(MPI_Type_free(&unit[1]));
  PetscCall(NumbersDestroy(&root));
  PetscCall(NumbersDestroy(&leaf));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Two at a time, which end in either order, and of one direction or both: the first one goes our way, and so does one that begins when both are done */
static PetscErrorCode Overlapped(PetscSF sf[2], PetscInt64 last[2])
{
  Numbers  root[2], leaf[2];
  PetscInt roots, leaves;

  PetscFunctionBegin;
  PetscCall(Extents(sf[1], &roots, &leaves));
  for (int k = 0; k < 2; k++) {
    PetscCall(NumbersCreate(roots, 3 + k, &root[k]));
    PetscCall(NumbersCreate(leaves, 13 + k, &leaf[k]));
  }
  for (int both = 0; both < 2; both++)
    for (int order = 0; order < 2; order++)
      for (int t = 0; t < 2; t++) {
        Arrays a[2];
        Vec    from[2] = {t ? root[0].array : root[0].host, NULL}, to[2] = {t ? leaf[0].array : leaf[0].host, NULL};

        from[1] = both ? (t ? leaf[1].array : leaf[1].host) : (t ? root[1].array : root[1].host);
        to[1]   = both ? (t ? root[1].array : root[1].host) : (t ? leaf[1].array : leaf[1].host);
        for (int k = 0; k < 2; k++) PetscCall(CommBegin(sf[t], MPIU_SCALAR, (PetscBool)(k && both), from[k], to[k], MPI_REPLACE, &a[k]));
        for (int e = 0; e < 2; e++) {
          const int k = order ? 1 - e : e;

          PetscCall(CommEnd(sf[t], MPIU_SCALAR, (PetscBool)(k && both), from[k], to[k], MPI_REPLACE, &a[k]));
        }
      }
  for (int k = 0; k < 2; k++) {
    PetscCall(NumbersSame(&root[k], "two at a time"));
    PetscCall(NumbersSame(&leaf[k], "two at a time"));
    PetscCall(NumbersDestroy(&root[k]));
    PetscCall(NumbersDestroy(&leaf[k]));
  }
  PetscCall(CheckWay(sf[1], 4, 4, last, "two at a time"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is not ours */
static PetscErrorCode Others(PetscSF sf[2], PetscInt64 last[2])
{
  Numbers   root, leaf;
  PetscInt  roots, leaves, *r[2], *l[2], *update;
  PetscBool same;

  PetscFunctionBegin;
  PetscCall(Extents(sf[1], &roots, &leaves));
  PetscCall(NumbersCreate(roots, 3, &root));
  PetscCall(NumbersCreate(leaves, 4, &leaf));
#if !PetscDefined(USE_COMPLEX)
  for (int t = 0; t < 2; t++) PetscCall(Comm(sf[t], MPIU_SCALAR, PETSC_TRUE, t ? leaf.array : leaf.host, t ? root.array : root.host, MPIU_MAX));
  PetscCall(CheckWay(sf[1], 0, 1, last, "a maximum"));
#endif
  PetscCall(NumbersSame(&root, "a maximum"));
  for (int t = 0; t < 2; t++) {
    PetscCall(PetscCalloc2(roots, &r[t], leaves, &l[t]));
    for (PetscInt k = 0; k < leaves; k++) l[t][k] = k;
    PetscCall(PetscSFReduceBegin(sf[t], MPIU_INT, l[t], r[t], MPI_SUM));
    PetscCall(PetscSFReduceEnd(sf[t], MPIU_INT, l[t], r[t], MPI_SUM));
    PetscCall(PetscSFBcastBegin(sf[t], MPIU_INT, r[t], l[t], MPI_REPLACE));
    PetscCall(PetscSFBcastEnd(sf[t], MPIU_INT, r[t], l[t], MPI_REPLACE));
  }
  PetscCall(PetscArraycmp(r[0], r[1], roots, &same));
  PetscCheck(same, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Integers at roots differ");
  PetscCall(PetscArraycmp(l[0], l[1], leaves, &same));
  PetscCheck(same, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Integers at leaves differ");
  PetscCall(CheckWay(sf[1], 0, 2, last, "integers"));
  PetscCall(PetscCalloc1(leaves, &update));
  PetscCall(PetscSFFetchAndOpBegin(sf[1], MPIU_INT, r[1], l[1], update, MPI_SUM));
  PetscCall(PetscSFFetchAndOpEnd(sf[1], MPIU_INT, r[1], l[1], update, MPI_SUM));
  PetscCall(PetscFree(update));
  for (int t = 0; t < 2; t++) PetscCall(PetscFree2(r[t], l[t]));
  PetscCall(NumbersDestroy(&root));
  PetscCall(NumbersDestroy(&leaf));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Arrays on the host where processes have agreed on the GPU, on some processes or all, at one end or both */
static PetscErrorCode Elsewhere(PetscSF sf[2], PetscInt64 last[2])
{
  Numbers     root, leaf;
  PetscInt    roots, leaves;
  PetscMPIInt rank;

  PetscFunctionBegin;
  if (!device || !ours) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(Extents(sf[1], &roots, &leaves));
  PetscCall(NumbersCreate(roots, 3, &root));
  PetscCall(NumbersCreate(leaves, 4, &leaf));
  for (int k = 0; k < 4; k++) {
    PetscCall(VecBindToCPU(root.array, (PetscBool)(k != 1 && (k != 3 || rank % 2))));
    PetscCall(VecBindToCPU(leaf.array, (PetscBool)(k != 2)));
    for (int t = 0; t < 2; t++) {
      PetscCall(Comm(sf[t], MPIU_SCALAR, PETSC_FALSE, t ? root.array : root.host, t ? leaf.array : leaf.host, MPI_REPLACE));
      PetscCall(Comm(sf[t], MPIU_SCALAR, PETSC_TRUE, t ? leaf.array : leaf.host, t ? root.array : root.host, MPIU_SUM));
    }
  }
  PetscCall(NumbersSame(&root, "arrays elsewhere"));
  PetscCall(NumbersSame(&leaf, "arrays elsewhere"));
  PetscCall(CheckWay(sf[1], 8, 0, last, "arrays elsewhere"));
  PetscCall(NumbersDestroy(&root));
  PetscCall(NumbersDestroy(&leaf));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Graphs(Pattern pattern)
{
  PetscSF    sf[2], copy;
  PetscBool  gallop;
  PetscInt64 last[2] = {0, 0}, lastcopy[2] = {0, 0};

  PetscFunctionBegin;
  PetscCall(Graph(pattern, sf));
  PetscCall(Communicate(sf, 1, repeats, last, Names[pattern]));
  PetscCall(Communicate(sf, 3, repeats, last, Names[pattern]));
  PetscCall(Communicate(sf, 8, 3, last, Names[pattern]));
  PetscCall(Reals(sf, last));
  PetscCall(Overlapped(sf, last));
  PetscCall(Others(sf, last));
  PetscCall(Elsewhere(sf, last));
  PetscCall(Communicate(sf, 1, repeats, last, Names[pattern]));
  PetscCall(PetscSFDuplicate(sf[1], PETSCSF_DUPLICATE_GRAPH, &copy));
  PetscCall(PetscObjectTypeCompare((PetscObject)copy, PETSCSFGALLOP, &gallop));
  PetscCheck(gallop, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A copy is not of the type");
  PetscCall(PetscSFViewFromOptions(sf[1], NULL, "-view"));
  PetscCall(PetscSFDestroy(&sf[1]));
  sf[1] = copy;
  PetscCall(Communicate(sf, 1, repeats, lastcopy, "a copy"));
  PetscCall(PetscSFSetType(sf[1], PETSCSFBASIC));
  PetscCall(PetscSFDestroy(&sf[0]));
  PetscCall(PetscSFDestroy(&sf[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Scatters of parts of vectors, in blocks, to and fro, whose destinations meet */
static PetscErrorCode Scatters(PetscInt bs)
{
  const InsertMode modes[] = {INSERT_VALUES, ADD_VALUES};
  PetscMPIInt      rank, size;
  Vec              x[2], y[2];
  IS               from, to;
  PetscInt         n, N, *indices;
  VecScatter       created, scatter[3]; /* by basic and, twice, by ours */

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  n = rank == 1 ? 0 : 12; /* blocks */
  for (int t = 0; t < 2; t++) {
    PetscCall(VecCreate(PETSC_COMM_WORLD, &x[t]));
    PetscCall(VecSetSizes(x[t], n * bs, PETSC_DECIDE));
    PetscCall(VecSetType(x[t], t && device ? VECCUDA : VECSTANDARD));
    PetscCall(VecDuplicate(x[t], &y[t]));
    PetscCall(TestSetVec(x[t], 5));
    PetscCall(TestSetVec(y[t], 6));
  }
  PetscCall(VecGetSize(x[0], &N));
  N /= bs;
  PetscCall(PetscMalloc1(n, &indices));
  for (PetscInt k = 0; k < n; k++) indices[k] = Random(N);
  PetscCall(ISCreateBlock(PETSC_COMM_WORLD, bs, n, indices, PETSC_COPY_VALUES, &from));
  for (PetscInt k = 0; k < n; k++) indices[k] = (7 * k + rank) % N;
  PetscCall(ISCreateBlock(PETSC_COMM_WORLD, bs, n, indices, PETSC_COPY_VALUES, &to));
  PetscCall(PetscFree(indices));
  PetscCall(PetscOptionsSetValue(NULL, "-sf_type", PETSCSFGALLOP));
  PetscCall(VecScatterCreate(x[1], from, y[1], to, &created)); /* orders its edges by chance */
  PetscCall(PetscOptionsClearValue(NULL, "-sf_type"));
  PetscCall(VecScatterCopy(created, &scatter[1]));
  PetscCall(VecScatterCopy(created, &scatter[2]));
  PetscCall(PetscSFDuplicate(created, PETSCSF_DUPLICATE_GRAPH, &scatter[0]));
  PetscCall(PetscSFSetType(scatter[0], PETSCSFBASIC));
  PetscCall(PetscSFSetUp(scatter[0]));
  PetscCall(VecScatterDestroy(&created));
  for (int s = 1; s < 3; s++) {
    PetscInt64 last[2] = {0, 0};

    for (int k = 0; k < 8; k++) {
      const InsertMode mode = modes[k / 2 % 2];

      for (int t = 0; t < 2; t++) {
        if (k % 2) PetscCall(VecScatterBegin(scatter[t ? s : 0], y[t], x[t], mode, SCATTER_REVERSE));
        else PetscCall(VecScatterBegin(scatter[t ? s : 0], x[t], y[t], mode, SCATTER_FORWARD));
        if (k % 2) PetscCall(VecScatterEnd(scatter[t ? s : 0], y[t], x[t], mode, SCATTER_REVERSE));
        else PetscCall(VecScatterEnd(scatter[t ? s : 0], x[t], y[t], mode, SCATTER_FORWARD));
      }
    }
    PetscCall(NumbersSame(&(Numbers){x[0], x[1]}, "a scatter"));
    PetscCall(NumbersSame(&(Numbers){y[0], y[1]}, "a scatter"));
    PetscCall(CheckWay(scatter[s], 8, 0, last, "a scatter"));
  }
  for (int s = 0; s < 3; s++) PetscCall(VecScatterDestroy(&scatter[s]));
  PetscCall(ISDestroy(&from));
  PetscCall(ISDestroy(&to));
  for (int t = 0; t < 2; t++) {
    PetscCall(VecDestroy(&x[t]));
    PetscCall(VecDestroy(&y[t]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Ghost points of a grid, and sums to the processes that own them */
static PetscErrorCode Grid(void)
{
  DM         dm[2];
  Vec        x[2], l[2];
  VecScatter scatter;
  PetscInt64 last[2] = {0, 0};

  PetscFunctionBegin;
  for (int t = 0; t < 2; t++) {
    if (t) PetscCall(PetscOptionsSetValue(NULL, "-sf_type", PETSCSFGALLOP));
    PetscCall(DMDACreate2d(PETSC_COMM_WORLD, DM_BOUNDARY_PERIODIC, DM_BOUNDARY_GHOSTED, DMDA_STENCIL_BOX, 20, 17, PETSC_DECIDE, PETSC_DECIDE, 2, 1, NULL, NULL, &dm[t]));
    PetscCall(DMSetVecType(dm[t], t && device ? VECCUDA : VECSTANDARD));
    PetscCall(DMSetUp(dm[t]));
    PetscCall(PetscOptionsClearValue(NULL, "-sf_type"));
    PetscCall(DMCreateGlobalVector(dm[t], &x[t]));
    PetscCall(DMCreateLocalVector(dm[t], &l[t]));
    PetscCall(TestSetVec(x[t], 9));
    PetscCall(VecSet(l[t], 0.5));
    for (int k = 0; k < 4; k++) {
      PetscCall(DMGlobalToLocal(dm[t], x[t], k % 2 ? ADD_VALUES : INSERT_VALUES, l[t]));
      PetscCall(VecScale(l[t], 0.25));
      PetscCall(DMLocalToGlobal(dm[t], l[t], ADD_VALUES, x[t]));
    }
  }
  PetscCall(NumbersSame(&(Numbers){x[0], x[1]}, "a grid"));
  PetscCall(NumbersSame(&(Numbers){l[0], l[1]}, "a grid's local vector"));
  PetscCall(DMDAGetScatter(dm[1], &scatter, NULL));
  PetscCall(CheckWay(scatter, 8, 0, last, "a grid"));
  for (int t = 0; t < 2; t++) {
    PetscCall(VecDestroy(&x[t]));
    PetscCall(VecDestroy(&l[t]));
    PetscCall(DMDestroy(&dm[t]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OpenFiles(PetscInt *n)
{
  DIR *dir = opendir("/proc/self/fd");

  PetscFunctionBegin;
  *n = 0;
  while (dir && readdir(dir)) ++*n;
  if (dir) (void)closedir(dir);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Graphs come and go, each with a communication or two: they leave no file open */
static PetscErrorCode Cycles(void)
{
  PetscInt before = 0, after;

  PetscFunctionBegin;
  for (PetscInt c = 0; c < cycles; c++) {
    PetscSF    sf[2];
    PetscInt64 last[2] = {0, 0};

    if (c == PATTERNS) PetscCall(OpenFiles(&before));
    PetscCall(Graph((Pattern)(c % PATTERNS), sf));
    PetscCall(Communicate(sf, 1 + c % 2, 1 + c % 3, last, "made and destroyed"));
    for (int t = 0; t < 2; t++) PetscCall(PetscSFDestroy(&sf[(c + t) % 2]));
  }
  PetscCall(OpenFiles(&after));
  PetscCheck(cycles <= PATTERNS || before == after, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " files were open, and %" PetscInt_FMT " after graphs came and went", before, after);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A process has no memory that others can open, or cannot open theirs: all take basic. Nothing must have been set up before. */
static PetscErrorCode NoMemory(void)
{
  static const char *const fail[] = {"1", "2"};
  const PetscBool          kept   = ours;
  PetscMPIInt              rank, size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  if (size == 1 || !ours) PetscFunctionReturn(PETSC_SUCCESS); /* it needs none */
  for (int k = 0; k < 2; k++) {
    PetscSF    sf[2];
    PetscInt64 last[2] = {0, 0};

    ours = PETSC_FALSE;
    PetscCall(Graph(ALL, sf));
    if (rank == 0) PetscCall(PetscOptionsSetValue(NULL, "-gallop_device_malloc_fail", fail[k]));
    PetscCall(Communicate(sf, 1, 4, last, "a process without memory"));
    if (rank == 0) PetscCall(PetscOptionsClearValue(NULL, "-gallop_device_malloc_fail"));
    for (int t = 0; t < 2; t++) PetscCall(PetscSFDestroy(&sf[t]));
    ours = kept;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What waits for values that go our way: the kernel, if an option says so, which gives the same bits */
static PetscErrorCode Waits(void)
{
  PetscSF   sf[2];
  Numbers   root, leaf;
  PetscInt  roots, leaves, lines = 0;
  PetscBool kernel;
  char      wait[16] = "", line[512], *found;
  FILE     *info     = NULL;

  PetscFunctionBegin;
  if (!ours) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_gallop_exchange_wait", wait, sizeof(wait), NULL));
  PetscCall(PetscStrcmp(wait, "kernel", &kernel));
  PetscCall(Graph(RING, sf));
  PetscCall(Extents(sf[1], &roots, &leaves));
  PetscCall(NumbersCreate(roots, 3, &root));
  PetscCall(NumbersCreate(leaves, 4, &leaf));
  PetscCall(TestInfoBegin());
  PetscCall(Comm(sf[1], MPIU_SCALAR, PETSC_FALSE, root.array, leaf.array, MPI_REPLACE));
  PetscCall(TestInfoEnd(&info));
  while (fgets(line, sizeof(line), info)) {
    PetscCall(PetscStrstr(line, " numbers from roots to leaves: by ", &found));
    if (!found) continue;
    lines++;
    PetscCall(PetscStrstr(found, !device ? "; the process waits for them" : kernel ? "by CUDA IPC; a kernel waits for them" : "by CUDA IPC; ", &found));
    PetscCheck(found, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Something else waits than options say: %s", line);
  }
  PetscCheck(lines == (PetscGlobalRank ? 0 : 1), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " lines tell the way", lines);
  (void)fclose(info);
  PetscCall(NumbersDestroy(&root));
  PetscCall(NumbersDestroy(&leaf));
  for (int t = 0; t < 2; t++) PetscCall(PetscSFDestroy(&sf[t]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscMPIInt rank;
  PetscBool   apart, shared = PETSC_FALSE, basic = PETSC_FALSE, one = PETSC_FALSE;
  char        way[16] = "auto";

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(PetscOptionsGetString(NULL, NULL, "-sf_gallop_exchange", way, sizeof(way), NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-repeats", &repeats, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-cycles", &cycles, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-one", &one, NULL));
  PetscCall(PetscStrcmp(way, "shared", &shared));
  PetscCall(PetscStrcmp(way, "basic", &basic));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-noshared", &apart)); /* PETSc's: as if each process had a host of its own */
  PetscCall(TestHasDevice(&device));
  if (shared) device = PETSC_FALSE;
  ours = (PetscBool)((device || shared) && !apart && !basic);
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  state = 12345 + 77 * (uint64_t)rank;
  if (one) PetscCall(Graphs(RING));
  else {
    if (TestInPart()) PetscCall(NoMemory());
    for (int p = 0; p < PATTERNS; p++)
      if (TestInPart()) PetscCall(Graphs((Pattern)p));
    if (TestInPart()) PetscCall(Scatters(1));
    if (TestInPart()) PetscCall(Scatters(3));
    if (TestInPart()) PetscCall(Grid());
    if (TestInPart()) PetscCall(Cycles());
    if (TestInPart()) PetscCall(Waits());
  }
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    output_file: output/empty.out
    test:
      nsize: {{1 2 3}}
      args: -sf_gallop_exchange {{shared ipc}}
    test:
      suffix: 5
      nsize: 5
      args: -sf_gallop_exchange shared -repeats 24 -cycles 100
    test:
      suffix: 8
      nsize: 8
      args: -sf_gallop_exchange shared -cycles 50
    test:
      suffix: many
      nsize: 2
      args: -sf_gallop_exchange shared -cycles 3000
    test:
      suffix: basic
      nsize: 2
      args: -sf_gallop_exchange basic -cycles 10
    test:
      suffix: apart
      nsize: 2
      args: -one -sf_gallop_exchange shared -noshared
    test:
      suffix: kernel
      nsize: 3
      requires: cuda
      args: -sf_gallop_exchange ipc -cycles 20 -mat_gallop_exchange_wait kernel
      command: ${GALLOP_TESTS}/with-gpus ${label} 1 -n ${insize} ${executable} ${args}

  # what it says
  test:
    suffix: view
    nsize: 2
    requires: !complex
    args: -one -sf_gallop_exchange shared -view
    filter: grep "by \|type:"
  test:
    suffix: host
    nsize: 2
    requires: !complex
    args: -one -sf_gallop_exchange ipc -device_enable none -info
    filter: grep -o "Units of .*" | sort -u

TEST*/
