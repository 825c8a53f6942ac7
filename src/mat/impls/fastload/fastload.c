/* SPDX-License-Identifier: BSD-2-Clause */
/* FASTLOAD: its entry in the list of formats, its options, and what it shows */

#include <gallop/deviceimpl.h>
#include "fastload.h"

GALLOP_FORMAT_TYPES(FASTLOAD)

/*MC
  MATFASTLOAD - MATAIJFASTLOAD = "fastload" - A matrix type for products on GPUs that load matrix and vector coalesced: `MATAIJ` that keeps a second copy of its entries by sorted columns

  Options Database Keys:
+ -mat_type fastload                    - sets the matrix type during `MatSetFromOptions()`; `aijfastload`, `seqaijfastload` and `mpiaijfastload` are accepted too
. -mat_fastload_block_height <-1>       - most entries of a column in a block of 32 columns: 1, 2, 4, 8, 16 or 32, or 0 for no limit; -1 chooses. A block of few columns has that many times more. No limit with `-mat_fastload_deterministic`
. -mat_fastload_group_steps <true>      - blocks are made of 32 columns at a time; else as in the paper, of all columns, but not with `-mat_fastload_deterministic`
. -mat_fastload_window <0>              - columns are sorted among this many neighbours, rounded up to a multiple of 32; 0 for all. Does nothing with `-mat_fastload_group_steps 0`
. -mat_fastload_long_row <0>            - rows with more entries are kept out of the blocks and stored as in CSR; 0 chooses 16 times the mean or a 1024th of all, whatever is less, 1024 at least. No row is long with `-mat_fastload_deterministic`
. -mat_fastload_sorted_x <false>        - as in the paper, each product on the GPU first puts x in the order of columns, so that all loads of it are coalesced; else a warp loads x of its columns from where it is. Not with
                                          `-mat_fastload_deterministic`, nor for transposed products
. -mat_fastload_sums <all>              - what a warp adds up of a line of a block before it adds to the result: neighbours of one row, by `segments`; `all` also has one sum for lines of one row; `none` lets each lane add
                                          atomically. To measure what sums gain, as the paper does
. -mat_fastload_deterministic <false>   - results are the same in every run, bit by bit, and products take more time and memory
. -mat_fastload_build_in_assembly <false> - builds the format in `MatAssemblyEnd()` rather than when products pay for it, see `MATEVCHYB` for `-mat_gallop_build`
- -mat_fastload_memory <0>              - most bytes that the format of a matrix, or of a block of an MPI matrix, may take, 0 for no limit; `MATAIJ` or `MATAIJCUSPARSE` computes the products where it would take more

  Level: beginner

  Notes:
  The type is a subclass of `MATAIJCUSPARSE` where PETSc has CUDA and there is a GPU, else of `MATAIJ`: assembly, factorizations, sparse products, I/O and
  all else are the parent's. `MatMult()`, `MatMultTranspose()` and `MatMultHermitianTranspose()`, and those that add, use the format, which is built when products pay for it, refreshed when
  only values have changed, and built again when the nonzero pattern has changed.

  Where PETSc has CUDA but finds no GPU, products are computed on the host, and a warning says so once. `-gallop_warn_no_gpu 0` silences it, as does `-device_enable none`, which asks for
  the host.

  Columns are sorted by their number of entries and cut into blocks of 32 columns. A warp of the GPU computes a block, each lane the entries of one column, so that neighbouring lanes
  load neighbouring entries of the matrix and of the sorted vector. It adds to the result row by row, by atomic operations where other warps may do so at the same time: on the GPU the
  last bits of a result may differ from run to run, unless `-mat_fastload_deterministic` is given. Transposed products need no atomic operations where a warp has all entries of a column.

  References:
. * - J. Hu, H. Luo, H. Jiang, G. Xiao, K. Li, FastLoad: Speeding Up Data Loading of Both Sparse Matrix and Vector for SpMV on GPUs, section IV

.seealso: `MATAIJ`, `MATAIJCUSPARSE`, `MATEVCHYB`, `MATCSROVERLAP`, `TILEDSPMM`, `MatGallopGetStatistics()`, `MatSetType()`, `MatConvert()`
M*/

static const char FastLoadCitation[] = "@article{HuLuoJiangXiaoLi2024,\n"
                                       "  author  = {Jinyu Hu and Huizhang Luo and Hong Jiang and Guoqing Xiao and Kenli Li},\n"
                                       "  title   = {{FastLoad}: Speeding Up Data Loading of Both Sparse Matrix and Vector for {SpMV} on {GPU}s},\n"
                                       "  journal = {IEEE Transactions on Parallel and Distributed Systems},\n"
                                       "  volume  = {35},\n"
                                       "  year    = {2024},\n"
                                       "  doi     = {10.1109/TPDS.2024.3477431}\n"
                                       "}\n";

static PetscErrorCode FastLoadOptionsDefault(void *options)
{
  FastLoadOptions *o = (FastLoadOptions *)options;

  PetscFunctionBegin;
  *o = (FastLoadOptions){.height = FASTLOAD_CHOOSE, .groups = PETSC_TRUE};
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const char *const FastLoadSumsNames[] = {"all", "segments", "none", "FastLoadSums", "FASTLOAD_SUMS_", NULL};

static PetscErrorCode FastLoadOptionsSet(void *options, const char prefix[], PetscOptionItems PetscOptionsObject, PetscBool *rebuild)
{
  FastLoadOptions *o   = (FastLoadOptions *)options;
  FastLoadOptions  old = *o;

  PetscFunctionBegin;
  (void)prefix;
  PetscCall(PetscOptionsInt("-mat_fastload_block_height", "Most entries of a column in a block of 32 columns, 0 for no limit, -1 to choose", "MATFASTLOAD", o->height, &o->height, NULL));
  PetscCheck(o->height == FASTLOAD_CHOOSE || (o->height >= 0 && o->height <= FASTLOAD_HIGHEST && !(o->height & (o->height - 1))), PetscOptionsObject->comm, PETSC_ERR_ARG_OUTOFRANGE, "Option -%smat_fastload_block_height is %" PetscInt_FMT ", but must be 1, 2, 4, 8, 16 or 32, or 0, or -1",
             PetscOptionsObject->prefix ? PetscOptionsObject->prefix : "", o->height);
  PetscCall(PetscOptionsBool("-mat_fastload_group_steps", "Make blocks of 32 columns at a time, not of all columns", "MATFASTLOAD", o->groups, &o->groups, NULL));
  PetscCall(GallopOptionsRangeInt(PetscOptionsObject, "-mat_fastload_window", "Columns among which they are sorted, 0 for all", "MATFASTLOAD", &o->window, 0, PETSC_INT_MAX));
  PetscCall(GallopOptionsRangeInt(PetscOptionsObject, "-mat_fastload_long_row", "Rows with more entries are stored as in CSR, 0 to choose", "MATFASTLOAD", &o->long_row, 0, PETSC_INT_MAX));
  PetscCall(PetscOptionsBool("-mat_fastload_deterministic", "The same result in every run, bit by bit", "MATFASTLOAD", o->deterministic, &o->deterministic, NULL));
  PetscCall(PetscOptionsEnum("-mat_fastload_sums", "What is added up in a line before it goes to the result", "MATFASTLOAD", FastLoadSumsNames, (PetscEnum)o->sums, (PetscEnum *)&o->sums, NULL));
  PetscCall(PetscOptionsBool("-mat_fastload_sorted_x", "Put x in the order of columns once per product", "MATFASTLOAD", o->sorted_x, &o->sorted_x, NULL));
  if (o->height != old.height || o->window != old.window || o->long_row != old.long_row || o->groups != old.groups || o->deterministic != old.deterministic || o->sorted_x != old.sorted_x ||
      o->sums != old.sums)
    *rebuild = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

enum {
  FIGURE_NZ,
  FIGURE_BLOCKS,
  FIGURE_LINES,
  FIGURE_SHARED, /* blocks that add atomically to some rows */
  FIGURE_COLUMNS,
  FIGURE_EMPTY,
  FIGURE_BYTES,
  FIGURE_LONG,
  FIGURE_LONGNZ,
  FIGURE_WIDTHS,
  FIGURE_CLASSES = FIGURE_WIDTHS + FASTLOAD_WIDTHS
};

static PetscErrorCode FastLoadFigures(const void *data, PetscLogDouble f[GALLOP_MAX_FIGURES])
{
  const FastLoad *fl   = (const FastLoad *)data;
  unsigned char  *kind = fl->blkClass;

  PetscFunctionBegin;
  PetscCall(PetscArrayzero(f, GALLOP_MAX_FIGURES));
  f[FIGURE_NZ]      = (PetscLogDouble)fl->nz;
  f[FIGURE_BLOCKS]  = fl->blkNum;
  f[FIGURE_LINES]   = fl->lineNum;
  f[FIGURE_COLUMNS] = fl->ncols;
  f[FIGURE_EMPTY]   = fl->n - fl->ncols;
  f[FIGURE_BYTES]   = (PetscLogDouble)fl->bytes;
  f[FIGURE_LONG]    = fl->longNum;
  f[FIGURE_LONGNZ]  = (PetscLogDouble)(fl->nz - fl->blknz);
  if (PetscMemTypeDevice(fl->memtype)) {
    PetscCall(PetscMalloc1(fl->blkNum, &kind));
    PetscCall(GallopDeviceCopyOut(kind, fl->blkClass, (size_t)fl->blkNum * sizeof(*kind)));
  }
  for (PetscInt b = 0; b < fl->blkNum; b++) {
    f[FIGURE_CLASSES + FASTLOAD_ADD(kind[b])]++;
    f[FIGURE_WIDTHS + FASTLOAD_WIDTH(kind[b])]++;
    if (kind[b] & FASTLOAD_SHARED) f[FIGURE_SHARED]++;
  }
  if (PetscMemTypeDevice(fl->memtype)) PetscCall(PetscFree(kind));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FastLoadView(const PetscLogDouble f[GALLOP_MAX_FIGURES], PetscViewer viewer)
{
  const PetscLogDouble nz = f[FIGURE_NZ], inblocks = nz - f[FIGURE_LONGNZ], places = FASTLOAD_LENGTH * f[FIGURE_LINES];

  PetscFunctionBegin;
  PetscCall(PetscViewerASCIIPrintf(viewer, "FastLoad: %.0f sorted columns, %.0f empty ones left out, %.0f blocks of %.1f entries on average, fill %.2f %%\n", f[FIGURE_COLUMNS], f[FIGURE_EMPTY], f[FIGURE_BLOCKS], f[FIGURE_BLOCKS] ? inblocks / f[FIGURE_BLOCKS] : 0., places ? 100 * inblocks / places : 0.));
  PetscCall(PetscViewerASCIIPrintf(viewer, "FastLoad: blocks by class: one row %.0f, runs %.0f, distinct %.0f; %.0f share rows with others\n", f[FIGURE_CLASSES + FASTLOAD_ONE_ROW], f[FIGURE_CLASSES + FASTLOAD_RUNS], f[FIGURE_CLASSES + FASTLOAD_DISTINCT], f[FIGURE_SHARED]));
  PetscCall(PetscViewerASCIIPrintf(viewer, "FastLoad: blocks by how rows are stored: implied %.0f, 8 bits %.0f, 16 bits %.0f, full %.0f; %.0f long rows with %.0f entries\n", f[FIGURE_WIDTHS + FASTLOAD_IMPLIED], f[FIGURE_WIDTHS + FASTLOAD_BYTE], f[FIGURE_WIDTHS + FASTLOAD_SHORT], f[FIGURE_WIDTHS + FASTLOAD_INT], f[FIGURE_LONG], f[FIGURE_LONGNZ]));
  PetscCall(PetscViewerASCIIPrintf(viewer, "FastLoad: %.0f bytes, %.2f a nonzero\n", f[FIGURE_BYTES], nz ? f[FIGURE_BYTES] / nz : 0.));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FastLoadViewDetail(const void *data, PetscViewer viewer)
{
  const FastLoad *fl = (const FastLoad *)data;

  PetscFunctionBegin;
  PetscCall(PetscViewerASCIISynchronizedPrintf(viewer, "FastLoad: %" PetscInt_FMT " blocks in %" PetscInt_FMT " tasks, height limit %" PetscInt_FMT ", window %" PetscInt_FMT ", rows of more than %" PetscInt_FMT " entries are long%s%s\n", fl->blkNum, fl->taskNum, fl->height,
                                               fl->options.window, fl->options.long_row, fl->options.deterministic ? ", deterministic" : "", fl->sortedX ? ", x sorted for each product" : ""));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscInt FastLoadNonempty(const void *data)
{
  return ((const FastLoad *)data)->rows;
}

static PetscCount FastLoadGetBytes(const void *data)
{
  return (PetscCount)((const FastLoad *)data)->bytes;
}

/* Entries are found by their columns where no numbers of them are kept */
static PetscBool FastLoadRefreshReadsColumns(const void *data)
{
  return PetscNot(((const FastLoad *)data)->indexed);
}

const GallopFormat GallopFormat_FASTLOAD = {
  .name            = MATFASTLOAD,
  .ucname          = "FASTLOAD",
  .citation        = FastLoadCitation,
  .createseq       = MatCreate_SeqAIJFASTLOAD,
  .creatempi       = MatCreate_MPIAIJFASTLOAD,
  .options_size    = sizeof(FastLoadOptions),
  .options_default = FastLoadOptionsDefault,
  .options_set     = FastLoadOptionsSet,
  .host            = &FastLoadHost,
  .device          = PetscDefined(HAVE_CUDA) ? &FastLoadDevice : NULL,
  .build_cost      = 1.45,
  .refresh_columns = FastLoadRefreshReadsColumns,
  .figures         = FastLoadFigures,
  .view            = FastLoadView,
  .view_detail     = FastLoadViewDetail,
  .bytes           = FastLoadGetBytes,
  .nonempty        = FastLoadNonempty,
};
