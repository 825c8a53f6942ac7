/* SPDX-License-Identifier: BSD-2-Clause */
/* HBP: its entry in the list of formats, its options, and what it shows */

#include <gallop/deviceimpl.h>
#include "hbp.h"

GALLOP_FORMAT_TYPES(HBP)

/*MC
  MATHBP - MATAIJHBP = "hbp" - A matrix type for products on GPUs of matrices whose entries lie anywhere: `MATAIJ` that keeps a second copy of its entries by two-dimensional blocks

  Options Database Keys:
+ -mat_type hbp                    - sets the matrix type during `MatSetFromOptions()`; `aijhbp`, `seqaijhbp` and `mpiaijhbp` are accepted too
. -mat_hbp_block_rows <0>          - rows of a block, 1 to 2048; 0 chooses
. -mat_hbp_block_cols <0>          - columns of a block, 1 to 65536; 0 chooses
. -mat_hbp_shared_x <2>            - whether the x of a block is kept in the shared memory of the GPU: 0 for no, 1 for yes if the GPU has room for it, 2 chooses
. -mat_hbp_map <2>                 - whether a block of rows whose entries lie in few chunks of 16 columns, at most a 16th of the columns of a block, has a map of these chunks and so is one block: 0 for no, 1 for yes, 2 chooses, but only where the width of blocks is chosen too; no maps with one column of blocks or with x in shared memory
. -mat_hbp_fixed <-1>              - percent of the work that is shared out beforehand; warps, or thread blocks with x in shared memory, that have done theirs compete for the rest; -1 chooses one part of the work for each, or 75 where there are few parts
. -mat_hbp_long_row <0>            - rows with more entries are kept out of the blocks and stored as in CSR; 0 chooses the lesser of 16 times the mean and a 1024th of all entries, but at least 1024, at least a 4096th of all without maps, and at least 16384 with x in shared memory
. -mat_hbp_lane_entries <0>        - a segment that would give one lane of a warp this many entries has 2 lanes, or 4 if it would give each of two lanes this many, and so on up to 32; at least 2, 0 chooses
. -mat_hbp_columns <0>           - cuts the columns into this many blocks, whose x stays in L2 while all rows are multiplied with it; 0 chooses them for scattered entries and more x than L2 holds, 1 never; `-mat_hbp_block_rows` are the rows of a tile then. A number above 1 does nothing, and `-info` says so, where columns of a row do not increase, a row has more than 255 entries in one of the blocks, or there is no room
. -mat_hbp_keep_x <true>         - with `-mat_hbp_columns`, asks L2 to keep x rather than other data
. -mat_hbp_hot_columns <-1>      - most columns, those with the most entries, whose x is in the shared memory of the GPU in all of the product; 0 for none, -1 chooses as many as it has room for where rows are of very different lengths and these columns have half of the entries. Does nothing where columns are cut into blocks, as with `-mat_hbp_columns` above 1
. -mat_hbp_build_in_assembly <false> - builds the format in `MatAssemblyEnd()` rather than when products pay for it, see `MATEVCHYB` for `-mat_gallop_build`
- -mat_hbp_memory <0>              - most bytes that the format of a matrix, or of a block of an MPI matrix, may take, 0 for no limit; `MATAIJ` or `MATAIJCUSPARSE` computes the products where it would take more

  Level: beginner

  Notes:
  The type is a subclass of `MATAIJCUSPARSE` where PETSc has CUDA and there is a GPU, else of `MATAIJ`: assembly, factorizations, sparse products, I/O and
  all else are the parent's. `MatMult()`, `MatMultTranspose()` and `MatMultHermitianTranspose()`, and those that add, use the format, which is built when products pay for it, refreshed when
  only values have changed, and built again when the nonzero pattern has changed.

  Where PETSc has CUDA but finds no GPU, products are computed on the host, and a warning says so once. `-gallop_warn_no_gpu 0` silences it, as does `-device_enable none`, which asks for
  the host.

  A block of rows whose entries lie in few places, at most 4096 chunks of 16 columns, has a map of these chunks, and its rows are in one block. Other blocks of rows are cut into blocks of
  columns. Where x is large and few entries have others near them, blocks are narrow and their part of x is kept in shared memory.

  Where x is more than the L2 cache of the GPU holds, entries lie anywhere and rows have similar numbers of them, columns are cut into a few blocks instead. A thread block keeps the results
  of a tile of rows in shared memory and takes one block of columns after the other, whose x is in L2 meanwhile.

  Where rows are of very different lengths and few columns have half of the entries, as in graphs, the x of these columns is in shared memory.

  Neither of these two is chosen where one of `-mat_hbp_block_rows`, `-mat_hbp_block_cols`, `-mat_hbp_shared_x`, `-mat_hbp_map`, `-mat_hbp_long_row` and `-mat_hbp_lane_entries` is given,
  with another value than its default.

  There may be at most four blocks per nonzero and 16 million more, those without entries included; a matrix that would have more is left to the parent, and `-info` says so.

  A product computes the sums of all rows of each block, and then adds the sums of each row. A row whose entries are all in one block needs no second step. The result has the same bits in
  every run. A transposed product on the GPU uses a format of the transpose as soon as that pays, see `MATEVCHYB` for
  `-mat_gallop_explicit_transpose`; without one it adds the product of each entry by atomic operations: the last bits of its result may differ from run to run.

  References:
. * - C. Yan, B. Diao, H. Liu, Z. An, Y. Xu, A Nonlinear Hash-based Optimization Method for SpMV on GPUs, section III

.seealso: `MATAIJ`, `MATAIJCUSPARSE`, `MATEVCHYB`, `MATCSROVERLAP`, `MATFASTLOAD`, `TILEDSPMM`, `MatGallopGetStatistics()`, `MatSetType()`, `MatConvert()`
M*/

static const char HBPCitation[] = "@misc{YanDiaoLiuAnXu2025,\n"
                                  "  author = {Chen Yan and Boyu Diao and Hangda Liu and Zhulin An and Yongjun Xu},\n"
                                  "  title  = {A Nonlinear Hash-based Optimization Method for {SpMV} on {GPU}s},\n"
                                  "  year   = {2025}\n"
                                  "}\n";

static PetscErrorCode HBPOptionsDefault(void *options)
{
  PetscFunctionBegin;
  *(HBPOptions *)options = (HBPOptions){.shared_x = HBP_SHARED_CHOOSE, .map = HBP_MAP_CHOOSE, .fixed = -1, .keep_x = PETSC_TRUE, .hot_columns = -1};
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HBPOptionsSet(void *options, const char prefix[], PetscOptionItems PetscOptionsObject, PetscBool *rebuild)
{
  HBPOptions *o   = (HBPOptions *)options;
  HBPOptions  old = *o;

  PetscFunctionBegin;
  (void)prefix;
  PetscCall(GallopOptionsRangeInt(PetscOptionsObject, "-mat_hbp_block_rows", "Rows of a block, 0 to choose", "MATHBP", &o->block_rows, 0, HBP_MAX_ROWS));
  PetscCall(GallopOptionsRangeInt(PetscOptionsObject, "-mat_hbp_block_cols", "Columns of a block, 0 to choose", "MATHBP", &o->block_cols, 0, HBP_MAX_COLS));
  PetscCall(GallopOptionsRangeInt(PetscOptionsObject, "-mat_hbp_shared_x", "Keep the x of a block in shared memory: 0 no, 1 yes, 2 to choose", "MATHBP", &o->shared_x, HBP_SHARED_NEVER, HBP_SHARED_CHOOSE));
  PetscCall(GallopOptionsRangeInt(PetscOptionsObject, "-mat_hbp_map", "Blocks of rows with entries in few places have maps of their columns: 0 no, 1 yes, 2 to choose", "MATHBP", &o->map, HBP_MAP_NEVER, HBP_MAP_CHOOSE));
  PetscCall(GallopOptionsRangeInt(PetscOptionsObject, "-mat_hbp_fixed", "Percent of the work that is shared out beforehand, -1 to choose", "MATHBP", &o->fixed, -1, 100));
  PetscCall(GallopOptionsRangeInt(PetscOptionsObject, "-mat_hbp_long_row", "Rows with more entries are stored as in CSR, 0 to choose", "MATHBP", &o->long_row, 0, PETSC_INT_MAX));
  PetscCall(GallopOptionsRangeInt(PetscOptionsObject, "-mat_hbp_lane_entries", "Entries for which a segment has more lanes, at least 2, 0 to choose", "MATHBP", &o->lane_entries, 0, PETSC_INT_MAX));
  PetscCall(GallopOptionsRangeInt(PetscOptionsObject, "-mat_hbp_columns", "Blocks of columns that rows are multiplied with one after the other, 0 to choose, 1 for none", "MATHBP", &o->columns, 0, HBP_MAX_COLUMNS));
  PetscCall(PetscOptionsBool("-mat_hbp_keep_x", "L2 is asked to keep x, with blocks of columns", "MATHBP", o->keep_x, &o->keep_x, NULL));
  PetscCall(GallopOptionsRangeInt(PetscOptionsObject, "-mat_hbp_hot_columns", "Columns with the most entries whose x is in shared memory, 0 for none, -1 to choose", "MATHBP", &o->hot_columns, -1, PETSC_INT_MAX));
  PetscCheck(o->lane_entries != 1, PetscOptionsObject->comm, PETSC_ERR_ARG_OUTOFRANGE, "Option -%smat_hbp_lane_entries is 1, but must be at least 2, or 0",
             PetscOptionsObject->prefix ? PetscOptionsObject->prefix : "");
  PetscCheck(o->shared_x != HBP_SHARED_ALWAYS || o->block_cols <= HBP_MAX_SHARED_COLS, PetscOptionsObject->comm, PETSC_ERR_ARG_OUTOFRANGE, "Option -%smat_hbp_block_cols is %" PetscInt_FMT ", but must be 1 to %" PetscInt_FMT ", or 0, with -mat_hbp_shared_x 1: the x of a block is kept in shared memory",
             PetscOptionsObject->prefix ? PetscOptionsObject->prefix : "", o->block_cols, HBP_MAX_SHARED_COLS);
  if (o->block_rows != old.block_rows || o->block_cols != old.block_cols || o->shared_x != old.shared_x || o->map != old.map || o->long_row != old.long_row || o->lane_entries != old.lane_entries ||
      o->fixed != old.fixed || o->columns != old.columns || o->keep_x != old.keep_x || o->hot_columns != old.hot_columns)
    *rebuild = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

enum {
  FIGURE_NZ,
  FIGURE_BLOCKS,
  FIGURE_EMPTY,
  FIGURE_GROUPS,
  FIGURE_SEGMENTS,
  FIGURE_PARTIALS,
  FIGURE_LONG,
  FIGURE_LONGNZ,
  FIGURE_MAPPED,
  FIGURE_CHUNKS,
  FIGURE_BYTES,
  FIGURE_WORKSPACE,
  FIGURE_TILES,
  FIGURE_STAGES,
  FIGURE_STAGESEGMENTS,
  FIGURE_STAGENZ,
  FIGURE_HOT,
  FIGURE_HOTNZ,
  FIGURE_HOTGROUPS,
  FIGURE_HOTGAPS
};

static PetscErrorCode HBPFigures(const void *data, PetscLogDouble f[GALLOP_MAX_FIGURES])
{
  const HBP *h = (const HBP *)data;

  PetscFunctionBegin;
  PetscCall(PetscArrayzero(f, GALLOP_MAX_FIGURES));
  f[FIGURE_NZ]        = (PetscLogDouble)h->nz;
  f[FIGURE_BLOCKS]    = h->blkNum;
  f[FIGURE_EMPTY]     = (PetscLogDouble)h->rowBlocks * h->colBlocks - (PetscLogDouble)h->mapped * (h->colBlocks - 1) - h->blkNum; /* a block of rows with a map has one */
  f[FIGURE_GROUPS]    = h->groupNum;
  f[FIGURE_SEGMENTS]  = h->segNum;
  f[FIGURE_PARTIALS]  = h->partialNum;
  f[FIGURE_LONG]      = h->longRows.num;
  f[FIGURE_LONGNZ]    = HBPHasBlocks(h) ? (PetscLogDouble)(h->nz - h->blknz) : 0;
  f[FIGURE_MAPPED]    = h->mapped;
  f[FIGURE_CHUNKS]    = h->mapNum;
  f[FIGURE_BYTES]     = (PetscLogDouble)h->bytes;
  f[FIGURE_WORKSPACE] = (PetscLogDouble)h->partialNum * sizeof(PetscScalar);
  if (h->columns) {
    f[FIGURE_TILES]         = h->columns->tiles;
    f[FIGURE_STAGES]        = (PetscLogDouble)HBPStages(h->columns);
    f[FIGURE_STAGESEGMENTS] = h->columns->segNum;
    f[FIGURE_STAGENZ]       = (PetscLogDouble)h->nz;
  }
  if (h->hot) {
    f[FIGURE_HOT]       = h->hot->num;
    f[FIGURE_HOTNZ]     = (PetscLogDouble)h->nz;
    f[FIGURE_HOTGROUPS] = h->hot->groupNum;
    f[FIGURE_HOTGAPS]   = 32. * h->hot->lines.hot + 32. * h->hot->lines.cold - (PetscLogDouble)h->nz;
    f[FIGURE_WORKSPACE] = (PetscLogDouble)h->hot->pieceNum * sizeof(PetscScalar);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HBPView(const PetscLogDouble f[GALLOP_MAX_FIGURES], PetscViewer viewer)
{
  const PetscLogDouble nz = f[FIGURE_NZ], segs = f[FIGURE_SEGMENTS], stages = f[FIGURE_STAGES];

  PetscFunctionBegin;
  if (stages > 0)
    PetscCall(PetscViewerASCIIPrintf(viewer, "HBP: blocks of columns one after the other, %.0f for %.0f tiles of rows; %.0f segments of %.2f entries on average\n", stages, f[FIGURE_TILES], f[FIGURE_STAGESEGMENTS], f[FIGURE_STAGENZ] / PetscMax(f[FIGURE_STAGESEGMENTS], 1.)));
  if (f[FIGURE_HOT] > 0)
    PetscCall(PetscViewerASCIIPrintf(viewer, "HBP: x of %.0f hot columns in shared memory; %.0f groups of rows, %.2f places for each entry\n", f[FIGURE_HOT], f[FIGURE_HOTGROUPS], (f[FIGURE_HOTNZ] + f[FIGURE_HOTGAPS]) / PetscMax(f[FIGURE_HOTNZ], 1.)));
  if (nz > f[FIGURE_STAGENZ] + f[FIGURE_HOTNZ] || !(stages + f[FIGURE_HOT] > 0)) {
    PetscCall(PetscViewerASCIIPrintf(viewer, "HBP: %.0f blocks stored, %.0f empty ones not; %.0f segments of %.2f entries on average in %.0f groups of %.1f\n", f[FIGURE_BLOCKS], f[FIGURE_EMPTY], segs, segs ? (nz - f[FIGURE_STAGENZ] - f[FIGURE_HOTNZ] - f[FIGURE_LONGNZ]) / segs : 0., f[FIGURE_GROUPS], f[FIGURE_GROUPS] ? segs / f[FIGURE_GROUPS] : 0.));
    PetscCall(PetscViewerASCIIPrintf(viewer, "HBP: %.0f rows are done in one block, %.0f partial sums are combined; %.0f long rows with %.0f entries\n", segs - f[FIGURE_PARTIALS], f[FIGURE_PARTIALS], f[FIGURE_LONG], f[FIGURE_LONGNZ]));
  }
  if (f[FIGURE_MAPPED] > 0) PetscCall(PetscViewerASCIIPrintf(viewer, "HBP: %.0f blocks of rows have maps, of %.0f chunks of %d columns\n", f[FIGURE_MAPPED], f[FIGURE_CHUNKS], HBP_CHUNK));
  PetscCall(PetscViewerASCIIPrintf(viewer, "HBP: %.0f bytes, %.2f per nonzero, and %.0f bytes of partial sums\n", f[FIGURE_BYTES], nz ? f[FIGURE_BYTES] / nz : 0., f[FIGURE_WORKSPACE]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HBPViewDetail(const void *data, PetscViewer viewer)
{
  const HBP *h = (const HBP *)data;
  HBP       *copy;
  PetscReal  byrow, byhash;

  PetscFunctionBegin;
  if (h->columns) {
    PetscCall(PetscViewerASCIISynchronizedPrintf(viewer, "HBP: %" PetscInt_FMT " blocks of %" PetscInt_FMT " columns, tiles of %" PetscInt_FMT " rows\n", h->columns->num, h->columns->M, h->columns->N));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (h->hot) {
    PetscCall(PetscViewerASCIISynchronizedPrintf(viewer, "HBP: %" PetscInt_FMT " hot columns, %" PetscInt_FMT " lines of their entries and %" PetscInt_FMT " of others, %" PetscInt_FMT " rows in several pieces\n",
                                                 h->hot->num, h->hot->lines.hot, h->hot->lines.cold, h->hot->longNum));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HBPCopyToHost(h, &copy));
  PetscCall(HBPGetDeviations(copy, &byrow, &byhash));
  PetscCall(HBPDestroyHostCopy(&copy));
  PetscCall(PetscViewerASCIISynchronizedPrintf(viewer, "HBP: blocks of %" PetscInt_FMT " rows by %" PetscInt_FMT " columns, x %s shared memory, hash with a = %" PetscInt_FMT ", b = %" PetscInt_FMT ", c = %" PetscInt_FMT ", d = %" PetscInt_FMT "\n", h->N, h->M, h->shared ? "in" : "not in",
                                               h->hash.a, h->hash.b, h->hash.c, h->hash.d));
  PetscCall(PetscViewerASCIISynchronizedPrintf(viewer, "HBP: standard deviation of segments' lengths within warps: %.3g, in order of rows: %.3g\n", (double)byhash, (double)byrow));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscCount HBPGetBytes(const void *data)
{
  const HBP *h = (const HBP *)data;

  return (PetscCount)(h->bytes + HBPWorkspaceBytes(h));
}

/* Entries are found by their columns where no numbers of them are kept */
static PetscBool HBPRefreshReadsColumns(const void *data)
{
  const HBP *h = (const HBP *)data;

  return (PetscBool)(!HBPHasBlocks(h) || (!h->indexed && HBPCutsRows(h)));
}

static PetscBool HBPStoresRows(const void *data, PetscBool adds)
{
  (void)data, (void)adds;
  return PETSC_TRUE;
}

static PetscInt HBPNonempty(const void *data)
{
  const HBP *h = (const HBP *)data;

  return HBPHasBlocks(h) ? h->m - h->empty : -1;
}

const GallopFormat GallopFormat_HBP = {
  .name              = MATHBP,
  .ucname            = "HBP",
  .citation          = HBPCitation,
  .createseq         = MatCreate_SeqAIJHBP,
  .creatempi         = MatCreate_MPIAIJHBP,
  .options_size      = sizeof(HBPOptions),
  .options_default   = HBPOptionsDefault,
  .options_set       = HBPOptionsSet,
  .host              = &HBPHost,
  .device            = PetscDefined(HAVE_CUDA) ? &HBPDevice : NULL,
  .prefers_transpose = PETSC_TRUE,
  .build_cost        = 1.3,
  .refresh_columns   = HBPRefreshReadsColumns,
  .storesrows        = HBPStoresRows,
  .nonempty          = HBPNonempty,
  .dotparts          = PetscDefined(HAVE_CUDA) ? HBPDotParts : NULL,
  .figures           = HBPFigures,
  .view              = HBPView,
  .view_detail       = HBPViewDetail,
  .bytes             = HBPGetBytes,
};
