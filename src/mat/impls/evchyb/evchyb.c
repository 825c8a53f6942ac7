/* EVCHYB: its entry in the list of formats, its options, what it shows, and the decisions that host and GPU share */

#include "evchyb.h"
#include "../common/bits.h"
#include <gallop/deviceimpl.h>

GALLOP_FORMAT_TYPES(EVCHYB)

/*MC
  MATEVCHYB - MATAIJEVCHYB = "evchyb" - A matrix type for fast products on GPUs: `MATAIJ` that keeps a second copy of its entries in the EVC-HYB format

  Options Database Keys:
+ -mat_type evchyb                    - sets the matrix type during `MatSetFromOptions()`; `aijevchyb`, `seqaijevchyb` and `mpiaijevchyb` are accepted too
. -mat_evchyb_window <4096>           - rows are sorted by length within windows of so many rows; 0 sorts all rows, as the paper does, 1 keeps short rows as they come
. -mat_evchyb_max_ell <-1>            - longest row that the ELL part takes; -1 chooses: 128, 256 where rows have more than 96 and at most 256 entries in the mean
. -mat_evchyb_split <4096>            - longer rows of the vectorized CSR part are computed by several GPU blocks, each so many entries
. -mat_evchyb_rows_per_thread <1>     - most rows that a thread of the ELL part computes
. -mat_evchyb_columns_per_warp <256>  - most entries of a row of the ELL part that one thread computes before several warps share 32 rows
. -mat_evchyb_first_column <false>    - rows of one length are sorted by their first column, as the paper does, else they come in the order of the matrix
. -mat_evchyb_storage <auto>          - `plain` stores columns and values as the paper does, `packed` in fewer bytes wherever it can be without loss, `auto` packed where that pays, on GPUs
. -mat_evchyb_slices_per_warp <0>     - how many slices of 64 packed rows a warp computes one after the other, at most 8; 0: 8, fewer towards the end of the matrix, 1 where most columns are stored
. -mat_evchyb_by_row <4000000>        - matrices of so many nonzeros have the blocks of their ELL part in order of rows, not of lengths; 0 for none
. -mat_evchyb_build_in_assembly <false> - builds the format in `MatAssemblyEnd()` rather than at the first product
- -mat_evchyb_memory <0>              - most bytes that the format of a matrix, or of a block of an MPI matrix, may take, 0 for no limit; `MATAIJ` or `MATAIJCUSPARSE` computes the
                                        products where it would take more

  Level: beginner

  Notes:
  The type is a subclass of `MATAIJCUSPARSE` where PETSc has CUDA and there is a GPU, else of `MATAIJ`: assembly, factorizations, sparse products, I/O and
  all else are the parent's. `MatMult()` and `MatMultAdd()` use the format, which is built at the first product, refreshed when only values have changed,
  on the GPU when they are there, and built again when the nonzero pattern has changed.

  Where PETSc has CUDA but finds no GPU, products are computed on the host, and a warning says so once. `-gallop_warn_no_gpu 0` silences it, as does `-device_enable none`, which asks for
  the host.

  A product runs on the GPU when all its vectors live there (`-vec_type cuda`, `-dm_vec_type cuda`, `MatCreateVecs()`), else on the host.

  On the GPU `-mat_evchyb_split` and `-mat_evchyb_columns_per_warp` are upper bounds: a matrix that would leave the GPU idle is cut finer.
  `-mat_evchyb_rows_per_thread` has no effect where blocks are in order of rows.

  Rows are sorted by length within windows; those of one length stay in the order of the matrix, so that results that are written together lie together. Rows of at most `-mat_evchyb_max_ell`
  entries are stored 32 at a time in ELLPACK column blocks, longer rows in CSR padded to multiples of 32. One kernel computes both parts, and writes each result to its place.

  Packed, the rows of the ELL part are stored 64 at a time, in the order of the matrix or sorted, whichever takes fewer bytes: columns that grow by the row are not stored,
  nor those that are all as far from the entries before them, others as differences of 8 or 16 bits where that is enough; values in single precision where that is exact, or as numbers of a dictionary of up to 65536. Products of real numbers are the
  same to the last bit. Where new values cannot be stored as those before were, they get another
  dictionary, or the matrix is packed again.

  References:
. * - D. Guo, W. Gropp, L. N. Olson, A hybrid format for better performance of sparse matrix-vector multiplication on a GPU, sections 2.1 and 2.2

.seealso: `MATAIJEVCHYB`, `MATSEQAIJEVCHYB`, `MATMPIAIJEVCHYB`, `MATAIJ`, `MATAIJCUSPARSE`, `TILEDSPMM`, `MatGallopGetStatistics()`, `MatSetType()`, `MatConvert()`
M*/

/*MC
  MATAIJEVCHYB - MATEVCHYB = "aijevchyb" - A matrix type for fast products on GPUs; it is `MATSEQAIJEVCHYB` on one MPI process and `MATMPIAIJEVCHYB` on several

  Options Database Key:
. -mat_type aijevchyb - sets the matrix type during `MatSetFromOptions()`

  Level: beginner

  Note:
  The same type as `MATEVCHYB`, whose page has the options and tells what the type does.

.seealso: `MATEVCHYB`, `MATSEQAIJEVCHYB`, `MATMPIAIJEVCHYB`, `MATAIJCUSPARSE`, `MATAIJ`, `MatGallopGetStatistics()`
M*/

/*MC
  MATSEQAIJEVCHYB - MATEVCHYB = "seqaijevchyb" - A sequential matrix type for fast products on GPUs: `MATSEQAIJ` that keeps a second copy of its entries in the EVC-HYB format

  Options Database Keys:
+ -mat_type seqaijevchyb        - sets the matrix type during `MatSetFromOptions()`
- -mat_seqaij_type seqaijevchyb - makes every `MATSEQAIJ` matrix one of this type

  Level: beginner

  Note:
  A subclass of `MATSEQAIJCUSPARSE` where there is a GPU, else of `MATSEQAIJ`. See `MATEVCHYB` for the options of the format.

.seealso: `MATEVCHYB`, `MATAIJEVCHYB`, `MATMPIAIJEVCHYB`, `MATSEQAIJCUSPARSE`, `MATSEQAIJ`, `MatGallopGetStatistics()`
M*/

/*MC
  MATMPIAIJEVCHYB - MATEVCHYB = "mpiaijevchyb" - A parallel matrix type for fast products on GPUs: `MATMPIAIJ` whose two blocks on each process are `MATSEQAIJEVCHYB`

  Options Database Key:
. -mat_type mpiaijevchyb - sets the matrix type during `MatSetFromOptions()`

  Level: beginner

  Note:
  A subclass of `MATMPIAIJCUSPARSE` where every MPI process finds a GPU, else of `MATMPIAIJ`. See `MATEVCHYB` for the options of the format; they hold for each block.

.seealso: `MATEVCHYB`, `MATAIJEVCHYB`, `MATSEQAIJEVCHYB`, `MATMPIAIJCUSPARSE`, `MATMPIAIJ`, `MatGallopGetStatistics()`
M*/

static const char EVCHYBCitation[] = "@article{GuoGroppOlson2016,\n"
                                     "  author  = {Dahai Guo and William Gropp and Luke N. Olson},\n"
                                     "  title   = {A hybrid format for better performance of sparse matrix-vector multiplication on a {GPU}},\n"
                                     "  journal = {International Journal of High Performance Computing Applications},\n"
                                     "  volume  = {30},\n"
                                     "  number  = {1},\n"
                                     "  pages   = {103--120},\n"
                                     "  year    = {2016}\n"
                                     "}\n";

static const char *const EVCHYBStorages[] = {"plain", "packed", "auto", "EVCHYBStorage", "EVCHYB_", NULL};

static PetscErrorCode EVCHYBOptionsDefault(void *options)
{
  EVCHYBOptions *o = (EVCHYBOptions *)options;

  PetscFunctionBegin;
  o->window   = 4096;
  o->maxell   = PETSC_DECIDE;
  o->split    = 4096;
  o->rowsmax  = 1;
  o->columns  = 256;
  o->byrow    = 4000000;
  o->firstcol = PETSC_FALSE;
  o->storage  = EVCHYB_AUTO;
  o->slices   = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode EVCHYBOptionsSet(void *options, const char prefix[], PetscOptionItems PetscOptionsObject, PetscBool *rebuild)
{
  EVCHYBOptions *o = (EVCHYBOptions *)options, before = *o;

  PetscFunctionBegin;
  (void)prefix;
  PetscCall(GallopOptionsRangeInt(PetscOptionsObject, "-mat_evchyb_window", "Rows are sorted by length within windows of so many rows, 0 for all rows", "MATEVCHYB", &o->window, 0, PETSC_INT_MAX));
  PetscCall(GallopOptionsRangeInt(PetscOptionsObject, "-mat_evchyb_max_ell", "Longest row that the ELL part takes, -1 chooses", "MATEVCHYB", &o->maxell, PETSC_DECIDE, 65535));
  PetscCall(GallopOptionsRangeInt(PetscOptionsObject, "-mat_evchyb_split", "Entries of a long row that one GPU block computes", "MATEVCHYB", &o->split, EVCHYB_BLOCK, PETSC_INT_MAX));
  PetscCall(GallopOptionsRangeInt(PetscOptionsObject, "-mat_evchyb_rows_per_thread", "Most rows that a thread of the ELL part computes", "MATEVCHYB", &o->rowsmax, 1, 128));
  PetscCall(GallopOptionsRangeInt(PetscOptionsObject, "-mat_evchyb_columns_per_warp", "Most entries of a row of the ELL part that one thread computes", "MATEVCHYB", &o->columns, 1, PETSC_INT_MAX));
  PetscCall(GallopOptionsRangeInt(PetscOptionsObject, "-mat_evchyb_by_row", "Matrices of so many nonzeros have the blocks of their ELL part in order of rows, 0 for none", "MATEVCHYB", &o->byrow, 0, PETSC_INT_MAX));
  PetscCall(PetscOptionsBool("-mat_evchyb_first_column", "Rows of one length are sorted by their first column", "MATEVCHYB", o->firstcol, &o->firstcol, NULL));
  PetscCall(PetscOptionsEnum("-mat_evchyb_storage", "How entries are stored", "MATEVCHYB", EVCHYBStorages, (PetscEnum)o->storage, (PetscEnum *)&o->storage, NULL));
  PetscCall(GallopOptionsRangeInt(PetscOptionsObject, "-mat_evchyb_slices_per_warp", "Slices of packed rows that a warp computes one after the other, 0 chooses", "MATEVCHYB", &o->slices, 0, EVCHYB_PACK_EACH));
  o->split = EVCHYBRoundUp(o->split);
  if (o->window != before.window || o->maxell != before.maxell || o->split != before.split || o->rowsmax != before.rowsmax || o->columns != before.columns || o->byrow != before.byrow ||
      o->firstcol != before.firstcol || o->storage != before.storage || o->slices != before.slices)
    *rebuild = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows that are in order already stay so: sorted by first column they would move, as the first columns of a permuted matrix are others */
static void EVCHYBOptionsInOrder(void *options)
{
  ((EVCHYBOptions *)options)->window = 1;
}

/* What the options leave open: rows a little longer than the paper's SubELL takes are faster there where most are, measured in docs/evchyb.md */
EVCHYBOptions EVCHYBOptionsFor(const EVCHYBOptions *given, const GallopCSR *csr)
{
  EVCHYBOptions o = *given;

  if (o.maxell == PETSC_DECIDE) o.maxell = csr->nz > 96 * (PetscCount)csr->m && csr->nz <= 256 * (PetscCount)csr->m ? 256 : 128;
  return o;
}

void EVCHYBGetKeyShape(const EVCHYBOptions *options, const GallopCSR *csr, EVCHYBKeyShape *shape)
{
  const int       most       = 62; /* bits left beside the class */
  const int       columns    = GallopBitsFor((uint64_t)PetscMax(csr->n - 1, 0));
  const int       windowbits = options->window && csr->m ? GallopBitsFor((uint64_t)((csr->m - 1) / options->window)) : 0;
  const int       longbits   = GallopBitsFor((uint64_t)csr->nz);                             /* a row that names columns more than once may have more than n entries */
  const PetscBool sorted     = (PetscBool)(options->firstcol && options->window != 1); /* nor are rows of one length sorted, where none are */
  int             shortkey, longkey;

  shape->window       = options->window;
  shape->maxell       = options->maxell;
  shape->lenbits      = GallopBitsFor((uint64_t)options->maxell);
  shape->colbits      = sorted ? PetscMax(0, PetscMin(columns, most - windowbits - shape->lenbits)) : 0;
  shape->colshift     = columns - shape->colbits;
  shape->longcolbits  = sorted ? PetscMax(0, PetscMin(columns, most - longbits)) : 0;
  shape->longcolshift = columns - shape->longcolbits;
  shortkey            = windowbits + shape->lenbits + shape->colbits;
  longkey             = longbits + shape->longcolbits;
  shape->classbit     = PetscMax(shortkey, longkey);
}

/* Where the sorted rows are split, from the number of empty, short and long ones (section 2.1). Packed, only long ones are left. */
void EVCHYBSplit(PetscInt nempty, PetscInt nshort, PetscInt nlong, EVCHYB *ev)
{
  ev->byrow       = (PetscBool)(ev->options.byrow && ev->nz >= ev->options.byrow);
  ev->nempty      = nempty;
  ev->nlisted     = !ev->pack && nempty <= ev->m / 2 ? nempty : 0;
  ev->ell.nb      = ev->pack ? 0 : nshort / EVCHYB_BLOCK;
  ev->ell.n       = ev->ell.nb * EVCHYB_BLOCK;
  ev->csr.nmerged = ev->pack ? 0 : nshort - ev->ell.n;
  ev->csr.n       = ev->csr.nmerged + nlong;
}

/* ---- packed storage ---- */

/* Where most rows are empty, plain storage leaves them alone, and packed slices have them all */
PetscBool EVCHYBWantsPack(const EVCHYB *ev, const GallopCSR *csr, PetscInt nempty)
{
  if (ev->options.storage == EVCHYB_PLAIN || !GallopPackIndicesFit(csr)) return PETSC_FALSE;
  if (ev->options.storage == EVCHYB_PACKED) return PETSC_TRUE;
  return (PetscBool)(ev->processors && csr->nz >= EVCHYB_PACK_ENTRIES * ev->processors && nempty <= csr->m / 2);
}

/* What so many entries take by a sample of them; as much as in CSR where it has none */
static PetscLogDouble BytesBySample(const GallopPackCost *cost, PetscLogDouble n)
{
  const PetscLogDouble csr = sizeof(PetscScalar) + sizeof(int32_t);

  return n * (cost->entries ? (PetscLogDouble)(cost->bytes - cost->saved) / (PetscLogDouble)cost->entries : csr);
}

static PetscInt PiecesOf(PetscCount len)
{
  return (PetscInt)((len + EVCHYB_PIECE - 1) / EVCHYB_PIECE);
}

/* Every so manieth of the pieces of long rows, all of them together, where csr is; FreePieces() frees what this made */
static PetscErrorCode CutRows(const GallopCSR *csr, const PetscInt rows[], PetscInt num, PetscInt all, PetscInt every, GallopPackOrder *order, PetscBool *done)
{
  PetscInt *piece, k = 0, n = 0;

  PetscFunctionBegin;
  *done         = PETSC_TRUE;
  order->pieces = (all + every - 1) / every;
  if (!order->pieces) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1(2 * (PetscCount)order->pieces, &piece));
  for (PetscInt r = 0; r < num; r++) {
    for (PetscInt at = 0; at < csr->host_i[rows[r] + 1] - csr->host_i[rows[r]]; at += EVCHYB_PIECE) {
      if (k++ % every) continue;
      piece[n]                   = rows[r];
      piece[order->pieces + n++] = at;
    }
  }
  order->pieceRow = piece;
  if (PetscMemTypeCUDA(csr->memtype)) {
    const size_t bytes = 2 * (size_t)order->pieces * sizeof(*piece);
    void        *memory;

    PetscCall(GallopDeviceMalloc(bytes, &memory));
    *done = (PetscBool)(memory != NULL);
    if (memory) PetscCall(GallopDeviceCopyIn(memory, piece, bytes));
    PetscCall(PetscFree(piece));
    order->pieceRow = (const PetscInt *)memory;
  }
  order->pieceAt = order->pieceRow ? order->pieceRow + order->pieces : NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FreePieces(const GallopCSR *csr, GallopPackOrder *order)
{
  PetscFunctionBegin;
  if (PetscMemTypeCUDA(csr->memtype)) PetscCall(GallopDeviceRelease(2 * (size_t)order->pieces * sizeof(PetscInt), (void *)order->pieceRow));
  else PetscCall(PetscFree(order->pieceRow));
  order->pieceRow = order->pieceAt = NULL;
  order->pieces                    = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The order of rows: that of the matrix, which reads and writes vectors best, unless sorted ones take a tenth less. What a sample takes in it, and one of the pieces, goes to cost and pieces. */
static PetscErrorCode ChooseOrder(const GallopPack *pack, const GallopCSR *csr, const GallopPackOrder *sorted, GallopPackOrder *order, GallopPackCost *cost, GallopPackCost *pieces)
{
  GallopPackCost costs[GALLOP_PACK_COSTS];

  PetscFunctionBegin;
  PetscCall(GallopPackMeasure(pack, csr, order, costs));
  order->stride = GallopPackPickStride(costs);
  *cost         = costs[order->stride - 1];
  *pieces       = costs[GALLOP_PACK_STRIDES];
  if (!sorted->num) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopPackMeasure(pack, csr, sorted, costs));
  if ((PetscLogDouble)costs[0].bytes * (PetscLogDouble)cost->entries < 0.9 * (PetscLogDouble)cost->bytes * (PetscLogDouble)costs[0].entries) {
    order->perm = sorted->perm;
    order->num  = sorted->num;
    *cost       = costs[0];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  EVCHYBMakePack - Packs the matrix, if that pays or was asked for

  Input Parameters:
+ csr    - the matrix
. sorted - its rows but those of SubCSR, sorted by windows, where csr is
. num    - how many they are
. rows   - those of SubCSR, on the host, the longest ones last
- nrows  - how many they are
*/
PetscErrorCode EVCHYBMakePack(const GallopCSR *csr, const PetscInt sorted[], PetscInt num, const PetscInt rows[], PetscInt nrows, EVCHYB *ev)
{
  const EVCHYBOptions  *o      = &ev->options;
  const GallopPackOrder others = {.perm = sorted, .num = o->window == 1 ? 0 : num, .longest = o->maxell};
  GallopPackOrder       order  = {.num = csr->m, .longest = o->maxell};
  GallopPackCost        cost = {0}, costofpieces = {0};
  const PetscBool       asked  = (PetscBool)(o->storage == EVCHYB_PACKED);
  PetscBool             done   = PETSC_TRUE;
  PetscLogDouble        nlong  = 0;
  PetscInt              pieces = 0, slices; /* and pieces: what warps or GPU blocks take */

  PetscFunctionBegin;
  for (PetscInt k = 0; k < nrows; k++) {
    const PetscInt len = csr->host_i[rows[k] + 1] - csr->host_i[rows[k]];

    nlong += (PetscLogDouble)len;
    pieces += PiecesOf(len);
  }
  slices = (csr->m - nrows) / GALLOP_PACK_ROWS + pieces;
  if (!asked && slices < EVCHYB_PACK_SLICES * ev->processors) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopPackBegin(csr, &ev->pack));
  if (!ev->pack) PetscFunctionReturn(PETSC_SUCCESS);
  order.piece = EVCHYB_SAMPLED;
  if (!asked) PetscCall(CutRows(csr, rows, nrows, pieces, PetscMax(1, (pieces + EVCHYB_SAMPLE - 1) / EVCHYB_SAMPLE), &order, &done));
  if (done) PetscCall(ChooseOrder(ev->pack, csr, &others, &order, &cost, &costofpieces));
  PetscCall(FreePieces(csr, &order));
  if (done && !asked) { /* entries have to take few bytes beside their values */
    const PetscLogDouble most = (PetscLogDouble)sizeof(PetscScalar) + (slices >= EVCHYB_PACK_STORED_SLICES * ev->processors ? EVCHYB_PACK_STORED_BYTES : EVCHYB_PACK_BYTES);

    done = (PetscBool)(BytesBySample(&cost, (PetscLogDouble)csr->nz - nlong) + BytesBySample(&costofpieces, nlong) <= most * (PetscLogDouble)csr->nz);
  }
  if (done) {
    order.piece = EVCHYB_PIECE;
    PetscCall(CutRows(csr, rows, nrows, pieces, 1, &order, &done));
    if (done) PetscCall(GallopPackFinish(ev->pack, csr, &order, ev->maxbytes, &done));
    PetscCall(FreePieces(csr, &order));
  }
  if (!done) PetscCall(GallopPackDestroy(&ev->pack));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* EVCHYBRefreshPack - New values. Where they do not fit as those before did, all is built again at the same place; ev->lost says that there was no room. */
PetscErrorCode EVCHYBRefreshPack(const GallopFormatWork *work, const GallopCSR *csr, EVCHYB *ev, PetscBool *fits)
{
  const EVCHYBOptions options = ev->options;
  EVCHYB              before;
  void               *built;

  PetscFunctionBegin;
  ev->bytes -= ev->pack->bytes;
  PetscCall(GallopPackRefresh(ev->pack, csr, ev->maxbytes ? ev->maxbytes - (PetscCount)ev->bytes : 0, fits));
  ev->bytes += ev->pack->bytes;
  if (*fits) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscInfo(NULL, "EVC-HYB: the new values of a %" PetscInt_FMT " by %" PetscInt_FMT " matrix cannot be stored as those before: it is packed again\n", ev->m, ev->n));
  PetscCall(GallopPackDestroy(&ev->pack));
  PetscCall((*work->build)(&options, csr, ev->maxbytes, &built));
  ev->lost = PetscNot(built);
  if (built) {
    before           = *ev;
    *ev              = *(EVCHYB *)built;
    *(EVCHYB *)built = before;
    PetscCall((*work->destroy)(&built));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool EVCHYBLost(const void *data)
{
  return ((const EVCHYB *)data)->lost;
}

/* ---- the launch plan ---- */

/* Warps a processor that keep the memory of an H200 busy, with EVCHYB_ATONCE entries a thread in flight */
static const PetscInt WarpsWanted = 24;

static void MarksAdd(EVCHYBMarks *marks, PetscInt rows, PetscCount blocks, EVCHYBRangeKind kind, PetscInt count)
{
  const PetscInt k = marks->np++;

  marks->rmark[k + 1]  = marks->rmark[k] + rows;
  marks->gbmark[k + 1] = marks->gbmark[k] + blocks;
  marks->kind[k]       = kind;
  marks->count[k]      = count;
}

/* Threads a row: each has at most eight entries in the paper's Figure 1. Longer rows than the paper's SubELL would take have a warp at least, and more entries a thread where the GPU is busy without more threads. */
static PetscInt ThreadsPerRow(PetscCount len, PetscInt entries)
{
  const PetscBool shorter = (PetscBool)(len <= 4 * EVCHYB_BLOCK);
  PetscInt        tpr     = shorter ? 1 : EVCHYB_BLOCK;

  while (tpr < EVCHYB_THREADS && len > (shorter ? 8 : entries) * tpr) tpr *= 2;
  return tpr;
}

static void LaunchAdd(EVCHYBLaunch *launch, const EVCHYBMarks *marks, PetscInt k)
{
  EVCHYBRange *range = &launch->range[launch->n];

  range->begin = launch->n ? launch->range[launch->n - 1].next : 0;
  range->next  = range->begin + (unsigned int)(marks->gbmark[k + 1] - marks->gbmark[k]);
  range->first = marks->rmark[k];
  range->end   = marks->rmark[k + 1];
  range->kind  = (short)marks->kind[k];
  range->count = (short)marks->count[k];
  launch->n++;
}

/* The order in which a GPU starts blocks is that of their numbers: what takes longest comes first */
static void LaunchPlan(EVCHYB *ev)
{
  const EVCHYBMarks *csr = &ev->csr.marks, *ell = &ev->ell.marks;
  const PetscInt     perblock = EVCHYB_THREADS * 4;
  EVCHYBMarks        empty    = {0};

  ev->launch.n = 0;
  for (PetscInt k = csr->np - 1; k >= 0; k--) LaunchAdd(&ev->launch, csr, k);
  for (PetscInt k = ell->np - 1; k >= 0; k--) LaunchAdd(&ev->launch, ell, k);
  if (ev->pack && ev->pack->nslice > ev->pack->npiece) {
    /* where most lines have columns that are stored, a slice takes long, and slices differ: one a warp */
    const GallopPackFigures *f     = &ev->pack->figures;
    const PetscCount         lines = ev->pack->nline - ev->pack->nlong / GALLOP_PACK_ROWS, strided = f->lines[GALLOP_PACK_STRIDED] - f->strided;
    const PetscInt           places = ev->processors * EVCHYB_PACK_WARPS, given = ev->options.slices, most = given ? given : 2 * strided < lines ? 1 : EVCHYB_PACK_EACH;
    PetscInt                 left   = ev->pack->nslice - ev->pack->npiece;
    EVCHYBMarks              packed = {0};

    /* fewer slices a warp towards the end, which comes for all multiprocessors at about the same time then */
    for (PetscInt each = most; left > 0; each /= 2) {
      const PetscInt ofblock = each * EVCHYB_THREADS / EVCHYB_BLOCK, later = given || each == 1 ? 0 : PetscMin(left, each * places), blocks = (left - later + ofblock - 1) / ofblock, slices = PetscMin(left, blocks * ofblock);

      if (!slices) continue;
      MarksAdd(&packed, slices, blocks, EVCHYB_RANGE_PACKED, each);
      LaunchAdd(&ev->launch, &packed, packed.np - 1);
      left -= slices;
    }
  }
  if (ev->nlisted) {
    MarksAdd(&empty, ev->nlisted, (ev->nlisted + perblock - 1) / perblock, EVCHYB_RANGE_EMPTY, 0);
    LaunchAdd(&ev->launch, &empty, 0);
  }
  /* measured, docs/evchyb.md */
  if (ev->csr.nz > ev->ell.nz) ev->shape = EVCHYB_SHAPE_DEEP;
  else if (ev->byrow) ev->shape = EVCHYB_SHAPE_LARGE;
  else ev->shape = ev->ell.nz <= 6 * (PetscCount)ev->ell.n && 8 * ev->csr.nz <= ev->ell.nz ? EVCHYB_SHAPE_SHORT : EVCHYB_SHAPE_DEEP;
}

/* Packed rows, those of a warp first; and which of the rows at the end have several pieces, a GPU block each */
static PetscErrorCode PlanPieces(EVCHYB *ev, const PetscCount i[], PetscCount **splitblk, PetscInt **splitrow)
{
  const PetscInt warps = EVCHYB_THREADS / EVCHYB_BLOCK, npiece = ev->pack->npiece;
  SubCSR        *csr     = &ev->csr;
  PetscInt       shorter = 0, r, k = 0;
  PetscCount     ofwarp = EVCHYB_SHORT_ROW;

  PetscFunctionBegin;
  /* with fewer, longer rows a GPU block each keeps more warps busy; with many, its warps wait for each other */
  if (ev->processors) ofwarp = PetscMax(ofwarp, PetscMin(EVCHYB_WARP_ROW, (i[csr->n] - i[0]) / ((PetscCount)ev->processors * (WarpsWanted / 2))));
  while (shorter < csr->n && i[shorter + 1] - i[shorter] <= ofwarp) shorter++;
  for (r = shorter; r < csr->n && PiecesOf(i[r + 1] - i[r]) == 1; r++) { }
  if (shorter) MarksAdd(&csr->marks, shorter, (shorter + warps - 1) / warps, EVCHYB_RANGE_PIECES, 1);
  if (npiece > shorter) MarksAdd(&csr->marks, npiece - shorter, npiece - shorter, EVCHYB_RANGE_PIECES, warps);
  csr->gpublks = csr->marks.gbmark[csr->marks.np];
  csr->split   = EVCHYB_PIECE;
  csr->nsplit  = csr->n - r;
  csr->nparts  = npiece - r;
  PetscCall(PetscMalloc2(csr->nsplit + 1, splitblk, csr->nparts, splitrow));
  (*splitblk)[0] = 0;
  for (PetscInt b = 0; b < csr->nsplit; b++) {
    (*splitblk)[b + 1] = (*splitblk)[b] + PiecesOf(i[r + b + 1] - i[r + b]);
    while (k < (*splitblk)[b + 1]) (*splitrow)[k++] = b;
  }
  LaunchPlan(ev);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  EVCHYBPlan - Distributes the GPU blocks: rmark, gbmark and gpublks of both parts

  Input Parameter:
. i - row pointer of SubCSR

  Output Parameters:
+ splitblk - first GPU block of each row that several compute
- splitrow - which of these rows each of the blocks computes a part of; to be freed with it by PetscFree2()
*/
PetscErrorCode EVCHYBPlan(EVCHYB *ev, const PetscCount i[], PetscCount **splitblk, PetscInt **splitrow)
{
  const EVCHYBOptions *o            = &ev->options;
  SubELL              *ell          = &ev->ell;
  SubCSR              *csr          = &ev->csr;
  const PetscInt       warpsinblock = EVCHYB_THREADS / EVCHYB_BLOCK, processors = ev->processors;
  PetscInt             b, r, columns = o->columns, split = o->split, longest = o->split, entries = 8;

  PetscFunctionBegin;
  /* a matrix that would leave the GPU idle is cut finer, until every processor has WarpsWanted warps or a thread has no more entries than it asks for at once */
  if (processors) {
    columns = PetscMin(columns, PetscMax(EVCHYB_ATONCE, (PetscInt)(ell->nz / EVCHYB_BLOCK / (processors * WarpsWanted))));
    entries = PetscMax(8, (PetscInt)PetscMin(64, csr->nz / ((PetscCount)processors * WarpsWanted * EVCHYB_BLOCK)));
    split   = PetscMin(split, PetscMax(4 * EVCHYB_THREADS, EVCHYBRoundUp((PetscInt)(csr->nz / (processors * WarpsWanted / warpsinblock)))));
    longest = PetscMax(split, PetscMin(longest, EVCHYB_ATONCE * EVCHYB_THREADS)); /* what one GPU block has in flight at once is not worth adding up partial sums */
  }
  csr->split = split;
  PetscCall(PetscMemzero(&ell->marks, sizeof(ell->marks)));
  for (int c = 0; c < EVCHYB_CLASSES; c++) {
    EVCHYBRangeKind kind  = EVCHYB_RANGE_ELL;
    PetscInt        warps = 1, rows = 1, perblock, blocks = ell->classes[c];

    if (ev->byrow) { /* in order of rows, lengths are mixed */
      if (c < EVCHYB_LONGCLASS) continue;
      if (c == EVCHYB_LONGCLASS)
        for (int k = 0; k < c; k++) blocks += ell->classes[k];
    }
    if (!blocks) continue;
    while (warps < warpsinblock && ((PetscInt)1 << c) > columns * warps && c > (ev->byrow ? EVCHYB_LONGCLASS : 0)) warps *= 2;
    /* rows half as long as the longest: two a thread, and so on */
    while (kind == EVCHYB_RANGE_ELL && warps == 1 && !ev->byrow && rows < o->rowsmax && ((PetscInt)2 << c) * rows <= ell->LCmax) rows *= 2;
    perblock = warpsinblock / warps * rows;
    if (warps > 1) kind = EVCHYB_RANGE_SHARED;
    MarksAdd(&ell->marks, blocks, (blocks + perblock - 1) / perblock, kind, warps > 1 ? warps : rows);
  }
  ell->gpublks = ell->marks.gbmark[ell->marks.np];

  PetscCall(PetscMemzero(&csr->marks, sizeof(csr->marks)));
  if (ev->pack) {
    PetscCall(PlanPieces(ev, i, splitblk, splitrow));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (r = 0; r < csr->n && i[r + 1] - i[r] <= longest;) {
    PetscInt   next = r + 1, tpr;
    PetscCount most = i[r + 1] - i[r];

    if (r < csr->nmerged) { /* the rows merged from SubELL come in no order of length: one row block */
      for (; next < csr->nmerged; next++) most = PetscMax(most, i[next + 1] - i[next]);
      next = csr->nmerged;
      tpr  = ThreadsPerRow(most, entries);
    } else {
      tpr = ThreadsPerRow(most, entries);
      for (; next < csr->n && i[next + 1] - i[next] <= longest && ThreadsPerRow(i[next + 1] - i[next], entries) == tpr; next++) { }
    }
    MarksAdd(&csr->marks, next - r, ((PetscCount)(next - r) * tpr + EVCHYB_THREADS - 1) / EVCHYB_THREADS, EVCHYB_RANGE_CSR, tpr);
    r = next;
  }
  csr->nsplit = csr->n - r;
  csr->nparts = 0;
  for (b = r; b < csr->n; b++) csr->nparts += (i[b + 1] - i[b] + split - 1) / split;
  PetscCall(PetscMalloc2(csr->nsplit + 1, splitblk, csr->nparts, splitrow));
  (*splitblk)[0] = 0;
  for (b = 0; b < csr->nsplit; b++) {
    (*splitblk)[b + 1] = (*splitblk)[b] + (i[r + b + 1] - i[r + b] + split - 1) / split;
    for (PetscCount k = (*splitblk)[b]; k < (*splitblk)[b + 1]; k++) (*splitrow)[k] = b;
  }
  /* a cluster adds up sooner than blocks that meet in memory, but all blocks of the launch then start by clusters */
  if (csr->nsplit && ev->overlaps && i[csr->n] - i[csr->n - 1] <= EVCHYB_CLUSTER * EVCHYB_ATONCE * EVCHYB_THREADS && 2 * (i[csr->n] - i[r]) > ev->nz)
    MarksAdd(&csr->marks, csr->nsplit, EVCHYB_CLUSTER * csr->nsplit, EVCHYB_RANGE_CLUSTER, EVCHYB_CLUSTER);
  else if (csr->nsplit) MarksAdd(&csr->marks, csr->nsplit, csr->nparts, EVCHYB_RANGE_SPLIT, split);
  csr->gpublks = csr->marks.gbmark[csr->marks.np];
  LaunchPlan(ev);
  PetscFunctionReturn(PETSC_SUCCESS);
}

enum {
  FIGURE_M, /* of all blocks */
  FIGURE_N,
  FIGURE_NZ,
  FIGURE_NEMPTY,
  FIGURE_ELLROWS,
  FIGURE_ELLNZ,
  FIGURE_CSRROWS,
  FIGURE_CSRNZ,
  FIGURE_BYTES,
  FIGURE_PACKED,
  FIGURE_LINES,
  FIGURE_SLOTS  = FIGURE_LINES + GALLOP_PACK_CLASSES,
  FIGURE_SHARED = FIGURE_SLOTS + GALLOP_PACK_VALUES,
  FIGURE_COUNT
};

static PetscErrorCode EVCHYBFigures(const void *data, PetscLogDouble f[GALLOP_MAX_FIGURES])
{
  const EVCHYB *ev = (const EVCHYB *)data;

  PetscFunctionBegin;
  PetscCall(PetscArrayzero(f, GALLOP_MAX_FIGURES));
  f[FIGURE_M]       = ev->m;
  f[FIGURE_N]       = ev->n;
  f[FIGURE_NZ]      = (PetscLogDouble)ev->nz;
  f[FIGURE_NEMPTY]  = ev->nempty;
  f[FIGURE_ELLROWS] = ev->ell.n;
  f[FIGURE_ELLNZ]   = (PetscLogDouble)ev->ell.nz;
  f[FIGURE_CSRROWS] = ev->csr.n;
  f[FIGURE_CSRNZ]   = (PetscLogDouble)ev->csr.nz;
  f[FIGURE_BYTES]   = (PetscLogDouble)ev->bytes;
  if (ev->pack) {
    f[FIGURE_PACKED] = (PetscLogDouble)ev->pack->nz;
    f[FIGURE_CSRNZ]  = (PetscLogDouble)ev->pack->nlong;
    for (int k = 0; k < GALLOP_PACK_CLASSES; k++) f[FIGURE_LINES + k] = (PetscLogDouble)ev->pack->figures.lines[k];
    for (int k = 0; k < GALLOP_PACK_VALUES; k++) f[FIGURE_SLOTS + k] = (PetscLogDouble)ev->pack->figures.slots[k];
    f[FIGURE_SHARED] = (PetscLogDouble)ev->pack->figures.shared;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is stored in which way, in percent of all lines, and of all places for values */
static PetscErrorCode ViewPack(const PetscLogDouble f[GALLOP_MAX_FIGURES], PetscLogDouble slots, PetscViewer viewer)
{
  const PetscLogDouble *l = f + FIGURE_LINES, *v = f + FIGURE_SLOTS, lines = (l[0] + l[1] + l[2] + l[3]) / 100;

  PetscFunctionBegin;
  slots /= 100;
  PetscCall(PetscViewerASCIIPrintf(viewer, "EVC-HYB: columns by strides %.2f %%, in 8 bits %.2f %%, in 16 bits %.2f %%, in 32 bits %.2f %%; shared with the line before %.2f %%\n", l[GALLOP_PACK_STRIDED] / lines, l[GALLOP_PACK_8] / lines, l[GALLOP_PACK_16] / lines, l[GALLOP_PACK_32] / lines, f[FIGURE_SHARED] / lines));
  PetscCall(PetscViewerASCIIPrintf(viewer, "EVC-HYB: values as they are %.2f %%, in single precision %.2f %%, of a dictionary in 8 bits %.2f %%, in 16 bits %.2f %%\n", v[GALLOP_PACK_VALUE] / slots, v[GALLOP_PACK_SINGLE] / slots, v[GALLOP_PACK_DICT8] / slots, v[GALLOP_PACK_DICT16] / slots));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The columns of the paper's Table 3, and the code balance of its section 3.2. Packed, SubELL has all rows but those of SubCSR. */
static PetscErrorCode EVCHYBView(const PetscLogDouble f[GALLOP_MAX_FIGURES], PetscViewer viewer)
{
  const PetscLogDouble nz = f[FIGURE_NZ], slots = f[FIGURE_SLOTS] + f[FIGURE_SLOTS + 1] + f[FIGURE_SLOTS + 2] + f[FIGURE_SLOTS + 3], stored = slots ? slots : f[FIGURE_ELLNZ] + f[FIGURE_CSRNZ], nzell = stored - f[FIGURE_CSRNZ];
  const PetscLogDouble percent = stored ? 100 / stored : 0, rows = f[FIGURE_PACKED] ? f[FIGURE_M] - f[FIGURE_CSRROWS] : f[FIGURE_NEMPTY] + f[FIGURE_ELLROWS], entry = sizeof(PetscScalar) + sizeof(PetscInt), value = sizeof(PetscScalar);

  PetscFunctionBegin;
  PetscCall(PetscViewerASCIIPrintf(viewer, "EVC-HYB%s: I_split %.0f, NNZ_ELL %.0f (%.2f %%), NNZ_vCSR %.0f (%.2f %%), NNZ added %.2f %%, empty rows %.0f\n", f[FIGURE_PACKED] ? ", packed" : "", rows, nzell, nzell * percent, f[FIGURE_CSRNZ], f[FIGURE_CSRNZ] * percent, nz ? 100 * (stored - nz) / nz : 0., f[FIGURE_NEMPTY]));
  PetscCall(PetscViewerASCIIPrintf(viewer, "EVC-HYB: %.0f bytes, %.2f a nonzero\n", f[FIGURE_BYTES], nz ? f[FIGURE_BYTES] / nz : 0.));
  if (f[FIGURE_PACKED]) PetscCall(ViewPack(f, slots, viewer));
  else if (nz > 0) {
    const PetscLogDouble nnzr = nz / f[GALLOP_FIGURE_ROWS], flops = 2 + 3 / nnzr, matrix = entry * stored / nz, y = 2 * value / nnzr, alpha = f[FIGURE_N] / nz;

    PetscCall(PetscViewerASCIIPrintf(viewer, "EVC-HYB: code balance %.2f bytes/flop when each entry of x is loaded once (alpha %.3f), %.2f when it is loaded for every nonzero (alpha 1)\n", (matrix + alpha * value + y) / flops, alpha, (matrix + value + y) / flops));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MarksView(const char part[], const EVCHYBMarks *marks, PetscViewer viewer)
{
  static const char *const what[] = {"rows a thread", "warps a column block", "threads a row", "entries a GPU block", "GPU blocks a row", NULL, NULL, "warps a piece"}; /* by EVCHYBRangeKind */

  PetscFunctionBegin;
  for (PetscInt k = 0; k < marks->np; k++)
    PetscCall(PetscViewerASCIISynchronizedPrintf(viewer, "%s: rmark %" PetscInt_FMT " to %" PetscInt_FMT ", gbmark %" PetscCount_FMT " to %" PetscCount_FMT ", %" PetscInt_FMT " %s\n", part, marks->rmark[k],
                                                 marks->rmark[k + 1], marks->gbmark[k], marks->gbmark[k + 1], marks->count[k], what[marks->kind[k]]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The time in which the GPU reads the format and x, and writes z, once */
static PetscErrorCode ViewFloor(const EVCHYB *ev, PetscViewer viewer)
{
  static PetscLogDouble bandwidth = 0; /* measured once */
  const PetscLogDouble  bytes     = (PetscLogDouble)ev->bytes + ((PetscLogDouble)ev->m + (PetscLogDouble)ev->n) * sizeof(PetscScalar);

  PetscFunctionBegin;
#if PetscDefined(HAVE_CUDA)
  if (bandwidth == 0) PetscCall(GallopDeviceReadBandwidth((size_t)1 << 30, &bandwidth));
#endif
  if (bandwidth > 0) PetscCall(PetscViewerASCIISynchronizedPrintf(viewer, "Floor: %.1f us for %.0f bytes, with vectors, at %.0f GB/s\n", 1e6 * bytes / bandwidth, bytes, 1e-9 * bandwidth));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode EVCHYBViewDetail(const void *data, PetscViewer viewer)
{
  const EVCHYB *ev = (const EVCHYB *)data;

  PetscFunctionBegin;
  PetscCall(PetscViewerASCIISynchronizedPrintf(viewer, "SubELL: %" PetscInt_FMT " column blocks of %d rows, LCmax %" PetscInt_FMT ", gpublks %" PetscCount_FMT ", window %" PetscInt_FMT "\n", ev->ell.nb, EVCHYB_BLOCK,
                                               ev->ell.LCmax, ev->ell.gpublks, ev->options.window));
  PetscCall(MarksView("SubELL", &ev->ell.marks, viewer));
  PetscCall(PetscViewerASCIISynchronizedPrintf(viewer, "SubCSR: %" PetscInt_FMT " rows, %" PetscInt_FMT " of them merged, gpublks %" PetscCount_FMT "\n", ev->csr.n, ev->csr.nmerged, ev->csr.gpublks));
  PetscCall(MarksView("SubCSR", &ev->csr.marks, viewer));
  if (ev->pack) {
    char order[64] = "sorted";

    if (ev->pack->stride) PetscCall(PetscSNPrintf(order, sizeof(order), "%" PetscInt_FMT " apart", ev->pack->stride));
    PetscCall(PetscViewerASCIISynchronizedPrintf(viewer, "Packed: %" PetscInt_FMT " slices of %d rows, %s, %" PetscInt_FMT " numbers in the dictionary, %zu bytes\n", ev->pack->nslice, GALLOP_PACK_ROWS, order,
                                                 ev->pack->ndict, ev->pack->bytes));
  }
  if (PetscMemTypeCUDA(ev->memtype)) PetscCall(ViewFloor(ev, viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GallopFormat GallopFormat_EVCHYB = {
  .name            = MATEVCHYB,
  .ucname          = "EVCHYB",
  .citation        = EVCHYBCitation,
  .createseq       = MatCreate_SeqAIJEVCHYB,
  .creatempi       = MatCreate_MPIAIJEVCHYB,
  .options_size    = sizeof(EVCHYBOptions),
  .options_default = EVCHYBOptionsDefault,
  .options_set     = EVCHYBOptionsSet,
  .options_inorder = EVCHYBOptionsInOrder,
  .order           = EVCHYBOrder_Host,
  .host            = &EVCHYBHost,
  .device          = PetscDefined(HAVE_CUDA) ? &EVCHYBDevice : NULL,
  .figures         = EVCHYBFigures,
  .view            = EVCHYBView,
  .view_detail     = EVCHYBViewDetail,
  .lost            = EVCHYBLost,
};
