/* FASTLOAD: its entry in the list of formats, its options, and what it shows */

#include <gallop/deviceimpl.h>
#include "fastload.h"

GALLOP_FORMAT_TYPES(FASTLOAD)

/*MC
  MATFASTLOAD - MATAIJFASTLOAD = "fastload" - A matrix type for products on GPUs that load matrix and vector coalesced: `MATAIJ` that keeps a second copy of its entries by sorted columns

  Options Database Keys:
+ -mat_type fastload                    - sets the matrix type during `MatSetFromOptions()`; `aijfastload`, `seqaijfastload` and `mpiaijfastload` are accepted too
. -mat_fastload_block_height <1>        - most entries of a column in a block: 1, 2, 4, 8, 16 or 32, or 0 for no limit
. -mat_fastload_build_in_assembly <false> - builds the format in `MatAssemblyEnd()` rather than at the first product
- -mat_fastload_memory <0>              - most memory that the format may take; `MATAIJ` or `MATAIJCUSPARSE` computes the products of a matrix that would take more

  Level: beginner

  Notes:
  The type is a subclass of `MATAIJCUSPARSE` where PETSc has CUDA and there is a GPU, else of `MATAIJ`: assembly, factorizations, sparse products, I/O and
  all else are the parent's. `MatMult()` and `MatMultAdd()` use the format, which is built at the first product, refreshed when only values have changed, and
  built again when the nonzero pattern has changed.

  Columns are sorted by their number of entries and cut into blocks of 32 columns. A warp of the GPU computes a block, each lane the entries of one column, so that neighbouring lanes
  load neighbouring entries of the matrix and of the sorted vector. It adds to the result row by row, by atomic operations where other warps may do so at the same time: on the GPU the
  last bits of a result may differ from run to run.

  References:
. * - J. Hu, H. Luo, H. Jiang, G. Xiao, K. Li, FastLoad: Speeding Up Data Loading of Both Sparse Matrix and Vector for SpMV on GPUs, section IV

.seealso: `MATAIJ`, `MATAIJCUSPARSE`, `MATEVCHYB`, `MATCSROVERLAP`, `MatGallopGetStatistics()`, `MatSetType()`, `MatConvert()`
M*/

/*MC
   MATAIJFASTLOAD - another name of `MATFASTLOAD`

   Level: beginner

.seealso: `MATFASTLOAD`, `MATSEQAIJFASTLOAD`, `MATMPIAIJFASTLOAD`
M*/

/*MC
   MATSEQAIJFASTLOAD - `MATFASTLOAD` on one MPI process

   Level: beginner

.seealso: `MATFASTLOAD`, `MATMPIAIJFASTLOAD`
M*/

/*MC
   MATMPIAIJFASTLOAD - `MATFASTLOAD` on several MPI processes: the diagonal and off-diagonal blocks are of type `MATSEQAIJFASTLOAD`

   Level: beginner

.seealso: `MATFASTLOAD`, `MATSEQAIJFASTLOAD`
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
  o->height = 1; /* the paper's choice for its experiments */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FastLoadOptionsSet(void *options, const char prefix[], PetscOptionItems PetscOptionsObject, PetscBool *rebuild)
{
  FastLoadOptions *o      = (FastLoadOptions *)options;
  PetscInt         height = o->height;

  PetscFunctionBegin;
  (void)prefix;
  PetscCall(PetscOptionsInt("-mat_fastload_block_height", "Most entries of a column in a block, 0 for no limit", "MATFASTLOAD", height, &height, NULL));
  PetscCheck(height >= 0 && height <= 32 && !(height & (height - 1)), PetscOptionsObject->comm, PETSC_ERR_ARG_OUTOFRANGE, "Option -%smat_fastload_block_height is %" PetscInt_FMT ", but must be 1, 2, 4, 8, 16 or 32, or 0",
             PetscOptionsObject->prefix ? PetscOptionsObject->prefix : "", height);
  if (height != o->height) *rebuild = PETSC_TRUE;
  o->height = height;
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
  FIGURE_CLASSES
};

static PetscErrorCode FastLoadFigures(const void *data, PetscLogDouble f[GALLOP_MAX_FIGURES])
{
  const FastLoad *fl     = (const FastLoad *)data;
  PetscInt       *height = fl->blkHeight;
  unsigned char  *kind   = fl->blkClass;

  PetscFunctionBegin;
  PetscCall(PetscArrayzero(f, GALLOP_MAX_FIGURES));
  f[FIGURE_NZ]      = (PetscLogDouble)fl->nz;
  f[FIGURE_BLOCKS]  = fl->blkNum;
  f[FIGURE_COLUMNS] = fl->ncols;
  f[FIGURE_EMPTY]   = fl->n - fl->ncols;
  f[FIGURE_BYTES]   = (PetscLogDouble)fl->bytes;
  if (PetscMemTypeDevice(fl->memtype)) {
    PetscCall(PetscMalloc2(fl->blkNum, &height, fl->blkNum, &kind));
    PetscCall(GallopDeviceCopyOut(height, fl->blkHeight, (size_t)fl->blkNum * sizeof(*height)));
    PetscCall(GallopDeviceCopyOut(kind, fl->blkClass, (size_t)fl->blkNum * sizeof(*kind)));
  }
  for (PetscInt b = 0; b < fl->blkNum; b++) {
    f[FIGURE_LINES] += height[b];
    f[FIGURE_CLASSES + (kind[b] & ~FASTLOAD_SHARED)]++;
    if (kind[b] & FASTLOAD_SHARED) f[FIGURE_SHARED]++;
  }
  if (PetscMemTypeDevice(fl->memtype)) PetscCall(PetscFree2(height, kind));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FastLoadView(const PetscLogDouble f[GALLOP_MAX_FIGURES], PetscViewer viewer)
{
  const PetscLogDouble nz = f[FIGURE_NZ], places = FASTLOAD_LENGTH * f[FIGURE_LINES];

  PetscFunctionBegin;
  PetscCall(PetscViewerASCIIPrintf(viewer, "FastLoad: %.0f sorted columns, %.0f empty, %.0f blocks of %.1f entries on average, fill %.2f %%\n", f[FIGURE_COLUMNS], f[FIGURE_EMPTY], f[FIGURE_BLOCKS], f[FIGURE_BLOCKS] ? nz / f[FIGURE_BLOCKS] : 0., places ? 100 * nz / places : 0.));
  PetscCall(PetscViewerASCIIPrintf(viewer, "FastLoad: blocks by class: one row %.0f, runs %.0f, distinct %.0f; %.0f share rows with others\n", f[FIGURE_CLASSES + FASTLOAD_ONE_ROW], f[FIGURE_CLASSES + FASTLOAD_RUNS], f[FIGURE_CLASSES + FASTLOAD_DISTINCT], f[FIGURE_SHARED]));
  PetscCall(PetscViewerASCIIPrintf(viewer, "FastLoad: %.0f bytes, %.2f a nonzero\n", f[FIGURE_BYTES], nz ? f[FIGURE_BYTES] / nz : 0.));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FastLoadViewDetail(const void *data, PetscViewer viewer)
{
  const FastLoad *fl = (const FastLoad *)data;

  PetscFunctionBegin;
  PetscCall(
    PetscViewerASCIISynchronizedPrintf(viewer, "FastLoad: %" PetscInt_FMT " blocks, height limit %" PetscInt_FMT ", %" PetscInt_FMT " sorted columns of %" PetscInt_FMT "\n", fl->blkNum, fl->options.height, fl->ncols, fl->n));
  PetscFunctionReturn(PETSC_SUCCESS);
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
  .figures         = FastLoadFigures,
  .view            = FastLoadView,
  .view_detail     = FastLoadViewDetail,
};
