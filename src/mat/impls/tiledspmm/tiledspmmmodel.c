/*
  TiledSpMM's models of a product. What the paper says of one with stages, sections 2.3 and 3; and how long the kernels take: a launch, the longest chain of loads, and the
  traffic of memory, L2 and L1, from the pattern and a few numbers of the GPU.
*/

#include "tiledspmm.h"

/* i and j of tiles: the entries of a row are in order */
static PetscErrorCode TilesToCSR(const TiledSpMM *t, PetscInt i[], PetscInt j[])
{
  PetscInt *next;

  PetscFunctionBegin;
  PetscCall(PetscCalloc1(t->m + 1, &next));
  for (int pass = 0; pass < 2; pass++) { /* counts, then stores */
    for (PetscCount u = 0; u < t->nunit; u++)
      for (PetscCount k = t->tileptr[u]; k < t->tileptr[u + 1]; k++)
        for (int bit = 0; bit < TILEDSPMM_TILE_ROWS * TILEDSPMM_TILE_COLS; bit++) {
          const PetscInt r = t->unitrow[u] + bit / TILEDSPMM_TILE_COLS;

          if (!(t->tile[k].mask >> bit & 1)) continue;
          if (pass) j[next[r]] = (PetscInt)t->tile[k].block * TILEDSPMM_TILE_COLS + bit % TILEDSPMM_TILE_COLS;
          next[r]++;
        }
    if (!pass) {
      i[0] = 0;
      for (PetscInt r = 0; r < t->m; r++) {
        i[r + 1] = i[r] + next[r];
        next[r]  = i[r];
      }
    }
  }
  PetscCall(PetscFree(next));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* CSR's i and j of a structure without stages, on the host */
static PetscErrorCode UnstagedToCSR(const TiledSpMM *t, PetscInt **rows, PetscInt **cols)
{
  PetscInt  *i, *j, r = 0;
  PetscBool *first; /* whether a partial sum is of the first segment of a row */

  PetscFunctionBegin;
  PetscCall(PetscMalloc2(t->m + 1, &i, t->nz, &j));
  *rows = i;
  *cols = j;
  if (t->kernel == TILEDSPMM_TENSOR) {
    PetscCall(TilesToCSR(t, i, j));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscCalloc1(t->nslots, &first));
  for (PetscCount k = 0; k < t->nsplit; k++) first[t->splitptr[k]] = PETSC_TRUE;
  for (PetscCount seg = 0; seg < t->nseg; seg++) {
    const PetscInt begin = t->segptr[seg], end = t->segptr[seg + 1];

    if (!t->segment || t->segrow[seg] >= 0) i[r++] = begin;
    else if (first[-1 - t->segrow[seg]]) i[r++] = begin;
    for (PetscInt e = begin; e < end; e++)
      j[e] = t->kernel == TILEDSPMM_CACHED ? t->col[t->slicedispl[seg / TILEDSPMM_WARP] + (PetscCount)TILEDSPMM_WARP * (e - begin) + seg % TILEDSPMM_WARP] : t->col[e];
  }
  i[t->m] = t->segptr[t->nseg];
  PetscCall(PetscFree(first));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Lines of B's memory that the loads of a stage touch, 32 rows at once: one that begins where a row does, as what is left of it at other places is not lost */
static PetscCount Lines(const TiledSpMM *t, PetscCount stage)
{
  const PetscInt each = PetscMax(1, TILEDSPMM_LINE / (PetscInt)sizeof(PetscScalar)), lines = PetscMax(1, (PetscInt)sizeof(PetscScalar) / TILEDSPMM_LINE);
  PetscCount     num   = 0;
  PetscInt       begin = 0;

  for (PetscCount q = t->mapdispl[stage]; q < t->mapdispl[stage + 1]; q++) {
    const PetscBool first = (PetscBool)((q - t->mapdispl[stage]) % TILEDSPMM_WARP == 0);

    if (!first && t->map[q] - begin < each) continue;
    begin = t->map[q];
    num += lines;
  }
  return num;
}

/* Entries of row r, in all stages of its panel */
static PetscCount RowLength(const TiledSpMM *t, PetscInt r)
{
  const PetscInt p   = r / t->options.panel;
  PetscCount     len = 0;

  for (PetscCount s = t->stagedispl[p]; s < t->stagedispl[p + 1]; s++) len += t->len[s * t->options.panel + r % t->options.panel];
  return len;
}

/* Of a structure without stages: what it would be with them */
static PetscErrorCode ModelOfSegments(const TiledSpMM *t, TiledSpMMModel *model)
{
  GallopCSR  csr;
  PetscInt  *i, *j;
  TiledSpMM *staged;

  PetscFunctionBegin;
  PetscCall(UnstagedToCSR(t, &i, &j));
  PetscCall(PetscMemzero(&csr, sizeof(csr)));
  csr.m      = t->m;
  csr.n      = t->n;
  csr.nz     = t->nz;
  csr.host_i = i;
  csr.host_j = j;
  PetscCall(TiledSpMMInspect(&t->options, &csr, 0, &staged));
  PetscCall(PetscFree2(i, j));
  if (staged) {
    PetscCall(TiledSpMMGetModel(staged, model));
    PetscCall(TiledSpMMFree_Host(&staged));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* TiledSpMMGetModel - What sections 2.3 and 3 of the paper say of products with stages and R columns at once, as the staged kernel has them; all 0 where the structure cannot have stages */
PetscErrorCode TiledSpMMGetModel(const TiledSpMM *t, TiledSpMMModel *model)
{
  const PetscReal value = (PetscReal)sizeof(PetscScalar), index = (PetscReal)sizeof(PetscInt), R = (PetscReal)TiledSpMMStagedColumns(t);
  const size_t    displ = (size_t)(t->panels + t->stages + t->stages * (t->options.panel / TILEDSPMM_WARP) + 3) * sizeof(PetscCount);
  PetscReal       matrix, staged;
  PetscCount      lines = 0, touched = 0;
  char           *seen;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(model, sizeof(*model)));
  if (t->kernel != TILEDSPMM_STAGED) {
    PetscCall(ModelOfSegments(t, model));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  model->mu = (PetscReal)t->nz / t->m;
  for (PetscInt r = 0; r < t->m; r++) model->sigma += PetscSqr((PetscReal)RowLength(t, r) - model->mu) / t->m;
  model->sigma = PetscSqrtReal(model->sigma);
  model->rho   = (PetscReal)t->nz / (PetscReal)t->nmap;
  model->Z     = (PetscReal)t->stored / (PetscReal)t->nz;
  model->delta = ((PetscReal)displ + (PetscReal)(t->stages * t->options.panel) * sizeof(*t->len)) / t->m + (t->reordered ? index : 0);
  PetscCall(PetscCalloc1(t->n, &seen));
  for (PetscCount q = 0; q < t->nmap; q++) {
    touched += !seen[t->map[q]];
    seen[t->map[q]] = 1;
  }
  PetscCall(PetscFree(seen));
  for (PetscCount s = 0; s < t->stages; s++) lines += Lines(t, s);
  model->C         = PetscMax((PetscReal)1.0, (PetscReal)lines * TILEDSPMM_LINE / ((PetscReal)t->nmap * value));
  model->L         = (PetscReal)t->nmap / (PetscReal)touched;
  model->Gamma     = model->C / model->L;
  matrix           = (value + (PetscReal)sizeof(*t->index)) * model->Z / R + index / (model->rho * R) + model->delta / (R * model->mu) + value / model->mu;
  staged           = value / model->rho;
  model->naive     = 2 * model->mu / (model->mu * (value + index) + model->mu * value + value + 2 * index);
  model->tiled     = 2 / (matrix + staged);
  model->effective = 2 / (matrix + staged * model->Gamma);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- time ---- */

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

/* Loads of B by all GPU blocks of a product, for the columns that run side by side */
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

/* Bytes of A for so many of them: what products read */
static PetscLogDouble MatrixBytes(const TiledSpMM *t, PetscLogDouble part)
{
  const PetscLogDouble index = t->kernel == TILEDSPMM_TENSOR ? (PetscLogDouble)sizeof(TiledSpMMTile) * t->ntile : (PetscLogDouble)sizeof(PetscInt) * t->stored;

  return part * (index + (PetscLogDouble)sizeof(PetscScalar) * t->stored);
}

/*
  The loads in the order in which they come: GPU blocks one after the other, each with a share of L1 of its own, its segments side by side. A is nowhere kept, but drives out what is in L2, as C does.
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
    l1.in += l1.size; /* the next GPU block runs elsewhere */
    l2.in += MatrixBytes(t, (PetscLogDouble)entries / (tensor ? t->ntile : t->stored)) + stream * segments * (PetscLogDouble)(end - begin);
  }
  PetscCall(PetscFree(l1.touched));
  PetscCall(PetscFree(l2.touched));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is limited by several things is slower than by each, as they do not overlap all the time */
static PetscLogDouble Limited(PetscLogDouble a, PetscLogDouble b, PetscLogDouble c, PetscLogDouble d)
{
  return sqrt(a * a + b * b + c * c + d * d);
}

/*
  TiledSpMMPredict - How long a product with so many columns takes on a GPU, without stages; j has CSR's columns

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
  const PetscLogDouble latency = 1e-6 * (tensor   ? TENSOR * plan->columns
                                         : cached ? CACHED
                                                  : TRANSPOSED),
                       mean    = (PetscLogDouble)(tensor ? t->ntile : t->stored) / (PetscLogDouble)SegmentNumber(t) / plan->entries;
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
  if (t->kernel != TILEDSPMM_STAGED) PetscCall(UnstagedToCSR(t, &i, &j));
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
