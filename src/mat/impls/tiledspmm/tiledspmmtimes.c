/* SPDX-License-Identifier: BSD-2-Clause */
/*
  TiledSpMM's model of how long the kernels without stages take: a launch, the longest chain of loads, and the traffic of memory, L2 and L1, from the pattern and a few numbers
  of the GPU
*/

#include "tiledspmm.h"

/* L2_USED and those below are fitted to an H200's times, docs/development/tiledspmm.md */
#define SECTOR     32  /* bytes: what L2 sends to L1 */
#define WAVEFRONT  128 /* bytes that L1 reads at once */
#define L2_USED    0.5 /* of L2: the other half of what lies there is on its way, or a second copy for the farther half of the GPU */
#define L2_BYTES   38  /* from L2, for each clock of a multiprocessor */
#define LAUNCH     2.0 /* us: a kernel, with those before and behind it overlapping */
#define CACHED     0.19
#define TRANSPOSED 0.6    /* us: some entries of a segment, one load behind the other: columns, then what they name. The cached kernel has the columns already. */
#define TENSOR     0.0275 /* us: some tiles of a unit, with one column of B; there are more instructions with more */

/* A cache that loses what was touched longest ago: a line is gone when as much as it holds has come in since */
typedef struct {
  PetscLogDouble  size, in; /* bytes */
  PetscLogDouble *touched;  /* [lines] what in was, when the line was touched last */
} Cache;

static PetscErrorCode CacheCreate(PetscLogDouble size, PetscCount lines, Cache *c)
{
  PetscFunctionBegin;
  c->size = size;
  c->in   = 0;
  PetscCall(PetscMalloc1(lines, &c->touched));
  for (PetscCount k = 0; k < lines; k++) c->touched[k] = -PETSC_MAX_REAL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether a line is not there; then it comes in */
static PetscBool CacheMisses(Cache *c, PetscCount line, PetscLogDouble bytes)
{
  const PetscBool misses = (PetscBool)(c->in - c->touched[line] >= c->size);

  if (misses) c->in += bytes;
  c->touched[line] = c->in;
  return misses;
}

/* Loads of B by all thread blocks of a product, for the columns that run side by side */
typedef struct {
  PetscLogDouble loads, l1misses, l2misses; /* sectors, or rows of B transposed, that warps name; those that L1 does not have; bytes that L2 does not have */
} Loads;

/* How many threads, teams or warps have a segment or a unit, and how many entries or tiles it has */
static PetscCount SegmentNumber(const TiledSpMM *t)
{
  return t->kernel == TILEDSPMM_TENSOR ? t->nunit : t->nseg;
}

static PetscCount SegmentLength(const TiledSpMM *t, PetscCount s)
{
  return t->kernel == TILEDSPMM_TENSOR ? t->tileptr[s + 1] - t->tileptr[s] : (PetscCount)(t->segptr[s + 1] - t->segptr[s]);
}

/* What one of them loads at once of a column of B */
static PetscLogDouble LineBytes(const TiledSpMM *t)
{
  const PetscLogDouble value = (PetscLogDouble)sizeof(PetscScalar);

  return t->kernel == TILEDSPMM_TENSOR ? value * TILEDSPMM_TILE_COLS : t->kernel == TILEDSPMM_CACHED ? SECTOR : value;
}

/* Bytes of a part of A, from 0 to 1: what products read of it */
static PetscLogDouble MatrixBytes(const TiledSpMM *t, PetscLogDouble part)
{
  const PetscLogDouble index = t->kernel == TILEDSPMM_TENSOR ? (PetscLogDouble)sizeof(TiledSpMMTile) * t->ntile : (PetscLogDouble)sizeof(*t->col) * t->stored;

  return part * (index + (PetscLogDouble)sizeof(PetscScalar) * t->stored);
}

/*
  The loads in the order in which they come: thread blocks one after the other, each with a share of L1 of its own, its segments side by side. A is nowhere kept, but drives out what is in L2, as C does.
  Columns of B that run side by side are loaded together.
*/
static PetscErrorCode CountLoads(const TiledSpMM *t, const PetscInt j[], const TiledSpMMPlan *plan, const TiledSpMMMachine *machine, PetscLogDouble together, Loads *loads)
{
  const PetscBool      sectors = (PetscBool)(t->kernel != TILEDSPMM_TRANSPOSED), tensor = (PetscBool)(t->kernel == TILEDSPMM_TENSOR);
  const PetscInt       rows  = tensor ? TILEDSPMM_TILE_COLS : sectors ? PetscMax(1, SECTOR / (PetscInt)sizeof(PetscScalar)) : 1; /* of B in a line of these caches */
  const PetscLogDouble value = (PetscLogDouble)sizeof(PetscScalar), stream = value * together;
  const PetscLogDouble line1 = LineBytes(t) * plan->columns, line2 = LineBytes(t) * together;
  const PetscCount     num      = SegmentNumber(t);
  const PetscLogDouble segments = tensor ? TILEDSPMM_TILE_ROWS : 1; /* rows of a segment */
  Cache                l1, l2;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(loads, sizeof(*loads)));
  PetscCall(CacheCreate(machine->l1 / plan->resident, t->n / rows + 1, &l1));
  PetscCall(CacheCreate(machine->l2 * L2_USED, t->n / rows + 1, &l2));
  for (PetscCount begin = 0; begin < num; begin += plan->segments) {
    const PetscCount end  = PetscMin(begin + plan->segments, num);
    PetscCount       most = 0, entries = 0;

    for (PetscCount s = begin; s < end; s++) {
      most = PetscMax(most, SegmentLength(t, s));
      entries += SegmentLength(t, s);
    }
    for (PetscCount k = 0; k < most; k++) {
      PetscCount before = -1; /* neighbours that name a line together load it once */

      for (PetscCount s = begin; s < end; s++) {
        PetscCount line;

        if (tensor || (s - begin) % TILEDSPMM_WARP == 0) before = -1;
        if (SegmentLength(t, s) <= k) continue;
        line = tensor ? t->tile[t->tileptr[s] + k].block : j[t->segptr[s] + k] / rows;
        if (line == before) continue;
        before = line;
        loads->loads++;
        if (!CacheMisses(&l1, line, line1)) continue;
        loads->l1misses++;
        if (CacheMisses(&l2, line, line2)) loads->l2misses += line2;
      }
    }
    l1.in += l1.size; /* the next thread block runs elsewhere */
    l2.in += MatrixBytes(t, (PetscLogDouble)entries / (tensor ? t->ntile : t->stored)) + stream * segments * (PetscLogDouble)(end - begin);
  }
  PetscCall(PetscFree(l1.touched));
  PetscCall(PetscFree(l2.touched));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Seconds that some entries of a segment take, or some tiles of a unit, one load behind the other */
static PetscLogDouble Latency(const TiledSpMM *t, const TiledSpMMPlan *plan)
{
  if (t->kernel == TILEDSPMM_TENSOR) return 1e-6 * (TENSOR * plan->columns);
  return 1e-6 * (t->kernel == TILEDSPMM_TRANSPOSED ? TRANSPOSED : CACHED);
}

/* What is limited by several things is slower than by each, as they do not overlap all the time */
static PetscLogDouble Limited(PetscLogDouble a, PetscLogDouble b, PetscLogDouble c, PetscLogDouble d)
{
  return sqrt(a * a + b * b + c * c + d * d);
}

/*
  TiledSpMMPredict - How long a product with that number of columns takes on a GPU, without stages; j has CSR's columns

  Products are taken to follow each other: what fits in L2 altogether comes from there.
*/
PetscErrorCode TiledSpMMPredict(const TiledSpMM *t, const PetscInt j[], const TiledSpMMPlan *plan, const TiledSpMMMachine *machine, PetscInt columns, TiledSpMMPrediction *p)
{
  const PetscBool      cached = (PetscBool)(t->kernel != TILEDSPMM_TRANSPOSED), tensor = (PetscBool)(t->kernel == TILEDSPMM_TENSOR); /* B is as it is */
  const PetscInt       parts  = (columns + plan->columns - 1) / plan->columns;                                                       /* that the columns of B are computed in */
  const PetscInt       passes = cached ? 1 : parts, groups = cached ? parts : 1;                                                     /* one after the other; side by side */
  const PetscLogDouble value = (PetscLogDouble)sizeof(PetscScalar), together = cached ? columns : plan->columns;
  const PetscLogDouble matrix = MatrixBytes(t, 1), c = value * together * t->m, b = value * together * t->n;
  const PetscLogDouble all    = matrix + value * columns * ((PetscLogDouble)t->m + t->n) + (cached ? 0 : b);
  const PetscBool      fits   = (PetscBool)(all <= machine->l2 * L2_USED);
  const PetscLogDouble clocks = machine->clock * machine->multiprocessors, memory = fits ? 0 : 1 / machine->bandwidth, l2 = 1 / (L2_BYTES * clocks), l1 = 1 / clocks;
  const PetscLogDouble latency = Latency(t, plan), mean = (PetscLogDouble)(tensor ? t->ntile : t->stored) / (PetscLogDouble)SegmentNumber(t) / plan->entries;
  const PetscLogDouble waves   = (PetscLogDouble)((SegmentNumber(t) + plan->segments - 1) / plan->segments) * groups / ((PetscLogDouble)plan->resident * machine->multiprocessors);
  PetscCount           longest = 0;
  PetscLogDouble       seconds, frombytes, frommemory, wavefronts;
  Loads                loads;

  PetscFunctionBegin;
  for (PetscCount s = 0; s < SegmentNumber(t); s++) longest = PetscMax(longest, SegmentLength(t, s));
  PetscCall(CountLoads(t, j, plan, machine, together, &loads));
  frommemory = matrix + c + loads.l2misses;
  frombytes  = (loads.l1misses * LineBytes(t) * plan->columns + matrix) * groups + c + 2 * value * together * (PetscLogDouble)t->nslots;
  /* lanes read A as it lies, or a column and a value for each row of B */
  if (cached) wavefronts = loads.loads * LineBytes(t) * together / WAVEFRONT + matrix / WAVEFRONT * groups;
  else wavefronts = loads.loads * (2 + PetscMax(1, value * plan->columns / WAVEFRONT));
  seconds = 1e-6 * LAUNCH * (1 + !cached + (t->nsplit > t->nmany) + (t->nmany > 0)) + latency * longest / plan->entries;
  seconds += Limited(frommemory * memory, frombytes * l2, wavefronts * l1, waves * latency * (1 + plan->each * mean));
  if (!cached) {
    frommemory += 2 * b; /* B, read and written */
    frombytes += 2 * b;
    seconds += Limited(2 * b * memory, 2 * b * l2, 0, 0);
  }
  p->memory  = fits ? 0 : passes * frommemory;
  p->l2      = passes * frombytes;
  p->seconds = passes * seconds;
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if defined(PETSC_HAVE_CUDA)
/* The paper's: flops over what a byte of memory does for them */
static void PredictStages(const TiledSpMM *t, const TiledSpMMModel *model, const TiledSpMMMachine *machine, PetscInt columns, TiledSpMMPrediction *p)
{
  p->memory  = 2.0 * t->nz * columns / model->effective;
  p->l2      = p->memory;
  p->seconds = 1e-6 * LAUNCH + p->memory / machine->bandwidth;
}

/* TiledSpMMViewTimes - Shows how long products should take, of the structure of which t is a copy on the host */
PetscErrorCode TiledSpMMViewTimes(const TiledSpMM *t, const TiledSpMMModel *model, PetscViewer viewer)
{
  static const PetscInt columns[] = {8, 32, 128};
  TiledSpMMMachine      machine;
  PetscInt             *i = NULL, *j = NULL;

  PetscFunctionBegin;
  PetscCall(TiledSpMMGetMachine(t, &machine));
  if (machine.bandwidth == 0) PetscFunctionReturn(PETSC_SUCCESS);
  if (t->kernel != TILEDSPMM_STAGED) PetscCall(TiledSpMMUnstagedToCSR(t, &i, &j));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(columns); k++) {
    TiledSpMMPlan       plan;
    TiledSpMMPrediction p;

    if (t->kernel == TILEDSPMM_STAGED) PredictStages(t, model, &machine, columns[k], &p);
    else {
      PetscCall(TiledSpMMGetPlan(t, columns[k], &plan));
      PetscCall(TiledSpMMPredict(t, j, &plan, &machine, columns[k], &p));
    }
    PetscCall(PetscViewerASCIISynchronizedPrintf(viewer, "TiledSpMM: %s with %" PetscInt_FMT " columns should take %.1f us: %.3g bytes of memory at %.3g GB/s, %.3g of L2, %.3g flops a byte\n", TiledSpMMKernels[t->kernel], columns[k], 1e6 * p.seconds, p.memory,
                                                 1e-9 * machine.bandwidth, p.l2, 2.0 * t->nz * columns[k] / (p.memory > 0 ? p.memory : p.l2)));
  }
  PetscCall(PetscFree2(i, j));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif
