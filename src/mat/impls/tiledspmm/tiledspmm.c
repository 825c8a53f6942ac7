/* SPDX-License-Identifier: BSD-2-Clause */
/* TiledSpMM: its table of functions and its options */

#include "tiledspmm.h"

/*MC
  TILEDSPMM - The structure with which Gallop matrices compute products with dense matrices, C = A B in `MatMatMult()` and `MatProductNumeric()`

  Options Database Keys:
+ -mat_tiledspmm_kernel <choose> - what computes products on the GPU: staged, the paper's; cached, which leaves B to the L1 cache; transposed, which copies B row by row first; tensor, by
                                   tensor cores, tiles of 8 rows and 8 columns; choose, the best one of the last three by the pattern
. -mat_tiledspmm_columns <0>     - R, most columns of B that are computed at once: 1, 2, 4, 8, 16 or 32; 0 chooses 16, by tensor 32. Fewer staged where the shared memory does not hold that many
                                   for a stage, and no more than 16 with panels of more than 256 rows; at most 16 cached, 8 with complex numbers; at least 8 by tensor cores. The transposed kernel has no use for it.
. -mat_tiledspmm_segment <0>     - most entries of a segment: longer rows are cut into segments, by tensor what is more than twice as many tiles of eight rows; 0 chooses: the mean length of rows, at least 32 but staged, where the lengths' standard
                                   deviation is above the mean; and where there are fewer rows than the multiprocessors work on, what gives each of them enough. On the host 0 cuts none.
. -mat_tiledspmm_utilization <0.65> - U, thread blocks of 512 rows, staged of a panel, for each multiprocessor, below which the GPU is underutilized: then rows of at least four times U mu entries, mu being the mean, are
                                   cut into segments of U mu, at least 32 but staged; 0 for never
. -mat_tiledspmm_imbalance <1>   - standard deviation of the lengths of rows over their mean above which rows are cut into segments of the mean length, or of U mu where that is less
. -mat_tiledspmm_panel <256>     - staged, and on the host: rows of a panel, which is what a thread block computes: a multiple of 32, at most 512
. -mat_tiledspmm_stage <512>     - staged, and on the host: most rows of B that a thread block has in shared memory at once, at most 4096
. -mat_tiledspmm_reorder <choose> - staged, and on the host: whether rows with like patterns share panels, wherever they are in the matrix: never, always, or choose, where that takes
                                   at most two thirds of the memory traffic for B and C, with C stored here and there
. -mat_tiledspmm_least <0>       - fewest columns of B with which products are TiledSpMM's; 0 chooses: 2 on the GPU, none on the host. Others `MATAIJ` or `MATAIJCUSPARSE` computes, those with one
                                   column the format of the matrix, as it does for a vector.
. -matproduct_batch_size <0>     - PETSc's own: in MPI, columns of B whose ghost rows travel at once; 0 chooses, so that no process has many more of them than twice its own rows, but 16
                                   columns at least
- -mat_tiledspmm_memory <0>      - most bytes that the structure of a matrix may take, 0 for no limit; `MATAIJ` or `MATAIJCUSPARSE` computes the products where it would take more, in MPI `MatMult()` of that block, one column after the other

  Level: intermediate

  Notes:
  Every Gallop type has it: `MATEVCHYB`, `MATCSROVERLAP`, `MATFASTLOAD` and `MATHBP`. B is of type `MATDENSE` or `MATDENSECUDA`. In MPI the diagonal and the off-diagonal block have one each; the
  rows of B that other processes have travel while the diagonal block computes, and room for them is kept with A. The structure
  is built at the first such product, refreshed when only values have changed and built again when the nonzero pattern has changed. It is a copy of the entries beside the format and the
  parent's. With B transposed it also keeps room for up to 32 columns of B (64 in single precision, 16 complex ones), which -mat_tiledspmm_memory does not count.

  A product runs on the GPU when B and C live there and none of the three is bound to the CPU, else on the host. The result has the type that the parent's product gives it. It must
  not be B itself. The same product gives the same bits in every run.

  `-mat_view ::ascii_info` shows it where it has been built, `::ascii_info_detail` the quantities of the paper's model too and, on the GPU, how long products should
  take. docs/development/tiledspmm.md says what they are.

  `MatTransposeMatMult()` and all other products of matrices are the parent's.

  References:
. * - Optimizing Tiled Sparse Matrix Multiplication with Performance Modeling on GPUs, sections 2.5, 3 and 4

.seealso: `MATEVCHYB`, `MATCSROVERLAP`, `MATFASTLOAD`, `MATHBP`, `MatMatMult()`, `MatProductCreate()`, `MatGallopGetStatistics()`
M*/

static const char TiledSpMMCitation[] = "@misc{TiledSpMM,\n"
                                        "  title = {Optimizing Tiled Sparse Matrix Multiplication with Performance Modeling on {GPU}s}\n"
                                        "}\n";

const char *const TiledSpMMKernels[] = {"staged", "cached", "transposed", "tensor", "choose", "TiledSpMMKernel", "TILEDSPMM_", NULL};

static const char *const TiledSpMMReorders[] = {"never", "always", "choose", "TiledSpMMReorder", "TILEDSPMM_REORDER_", NULL};

static PetscErrorCode TiledSpMMOptionsDefault(void *options)
{
  TiledSpMMOptions *o = (TiledSpMMOptions *)options;

  PetscFunctionBegin;
  o->panel       = 256;
  o->stage       = 512;
  o->columns     = 0;
  o->segment     = 0;
  o->least       = 0;
  o->utilization = 0.65;
  o->imbalance   = 1;
  o->kernel      = TILEDSPMM_CHOOSE;
  o->reorder     = TILEDSPMM_REORDER_CHOOSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TiledSpMMOptionsSet(void *options, const char prefix[], PetscOptionItems PetscOptionsObject, PetscBool *rebuild)
{
  TiledSpMMOptions      *o      = (TiledSpMMOptions *)options;
  const TiledSpMMOptions before = *o;
  const char *const      front  = PetscOptionsObject->prefix ? PetscOptionsObject->prefix : "";

  PetscFunctionBegin;
  (void)prefix;
  PetscCall(GallopOptionsRangeInt(PetscOptionsObject, "-mat_tiledspmm_panel", "Rows of a panel, which a thread block computes: a multiple of 32", "TILEDSPMM", &o->panel, TILEDSPMM_WARP, TILEDSPMM_MAX_PANEL));
  PetscCall(GallopOptionsRangeInt(PetscOptionsObject, "-mat_tiledspmm_stage", "Most rows of B that a thread block has in shared memory at once", "TILEDSPMM", &o->stage, 1, TILEDSPMM_MAX_STAGE));
  PetscCall(GallopOptionsRangeInt(PetscOptionsObject, "-mat_tiledspmm_columns", "Most columns of B that a thread block computes at once: a power of two", "TILEDSPMM", &o->columns, 0, TILEDSPMM_MAX_COLUMNS));
  PetscCall(GallopOptionsRangeInt(PetscOptionsObject, "-mat_tiledspmm_segment", "Most entries of a segment of a row; 0 chooses, on the GPU", "TILEDSPMM", &o->segment, 0, PETSC_INT_MAX));
  PetscCall(PetscOptionsReal("-mat_tiledspmm_utilization", "Thread blocks of rows for each multiprocessor below which long rows are cut, on the GPU", "TILEDSPMM", o->utilization, &o->utilization, NULL));
  PetscCall(PetscOptionsReal("-mat_tiledspmm_imbalance", "Standard deviation of the lengths of rows over their mean above which long rows are cut, on the GPU", "TILEDSPMM", o->imbalance, &o->imbalance, NULL));
  PetscCall(PetscOptionsEnum("-mat_tiledspmm_kernel", "What computes products on the GPU", "TILEDSPMM", TiledSpMMKernels, (PetscEnum)o->kernel, (PetscEnum *)&o->kernel, NULL));
  PetscCall(PetscOptionsEnum("-mat_tiledspmm_reorder", "Whether panels have rows in the order of their patterns", "TILEDSPMM", TiledSpMMReorders, (PetscEnum)o->reorder, (PetscEnum *)&o->reorder, NULL));
  PetscCall(GallopOptionsRangeInt(PetscOptionsObject, "-mat_tiledspmm_least", "Fewest columns of B with which products are not the parent's; 0 chooses", "TILEDSPMM", &o->least, 0, PETSC_INT_MAX));
  PetscCheck(o->utilization >= 0, PetscOptionsObject->comm, PETSC_ERR_ARG_OUTOFRANGE, "Option -%smat_tiledspmm_utilization is %g, but must be at least 0", front, (double)o->utilization);
  PetscCheck(o->imbalance >= 0, PetscOptionsObject->comm, PETSC_ERR_ARG_OUTOFRANGE, "Option -%smat_tiledspmm_imbalance is %g, but must be at least 0", front, (double)o->imbalance);
  PetscCheck(o->panel % TILEDSPMM_WARP == 0, PetscOptionsObject->comm, PETSC_ERR_ARG_OUTOFRANGE, "Option -%smat_tiledspmm_panel is %" PetscInt_FMT ", but must be a multiple of %d", front, o->panel, TILEDSPMM_WARP);
  PetscCheck((o->columns & (o->columns - 1)) == 0, PetscOptionsObject->comm, PETSC_ERR_ARG_OUTOFRANGE, "Option -%smat_tiledspmm_columns is %" PetscInt_FMT ", but must be a power of two", front, o->columns);
  if (o->panel != before.panel || o->stage != before.stage || o->columns != before.columns || o->segment != before.segment || o->kernel != before.kernel || o->utilization != before.utilization ||
      o->imbalance != before.imbalance || o->reorder != before.reorder)
    *rebuild = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether a product with a number of columns is TiledSpMM's, at a place. Where nothing is asked for, none is on the host: staging takes more there than it saves, docs/development/tiledspmm.md. */
static PetscBool TiledSpMMWantsDense(const void *options, PetscMemType memtype, PetscInt columns)
{
  const TiledSpMMOptions *o = (const TiledSpMMOptions *)options;

  return (PetscBool)(o->least ? columns >= o->least : !PetscMemTypeHost(memtype) && columns >= TILEDSPMM_LEAST_DEVICE);
}

enum {
  FIGURE_NZ,
  FIGURE_PANELS,
  FIGURE_STAGES,
  FIGURE_MAP,
  FIGURE_STORED,
  FIGURE_BYTES,
  FIGURE_STAGED,
  FIGURE_CACHED,
  FIGURE_TRANSPOSED,
  FIGURE_TENSOR,
  FIGURE_TILES,
  FIGURE_SEGMENTS,
  FIGURE_SPLIT,
  FIGURE_REORDERED,
  FIGURE_MAPGIVEN
}; /* MAP, and STAGED and so on: entries, by the kernel; STORED of all; REORDERED: entries */

static PetscErrorCode TiledSpMMFigures(const void *data, PetscLogDouble f[GALLOP_MAX_FIGURES])
{
  const TiledSpMM *t = (const TiledSpMM *)data;

  PetscFunctionBegin;
  PetscCall(PetscArrayzero(f, GALLOP_MAX_FIGURES));
  f[FIGURE_NZ]     = (PetscLogDouble)t->nz;
  f[FIGURE_PANELS] = (PetscLogDouble)t->panels;
  f[FIGURE_STAGES] = (PetscLogDouble)t->stages;
  f[FIGURE_MAP]    = (PetscLogDouble)t->nmap;
  f[FIGURE_STORED] = (PetscLogDouble)t->stored;
  f[FIGURE_BYTES]  = (PetscLogDouble)t->bytes;

  f[FIGURE_STAGED + t->kernel] = (PetscLogDouble)t->nz;
  f[FIGURE_TILES]              = (PetscLogDouble)t->ntile;
  f[FIGURE_SEGMENTS]           = (PetscLogDouble)(t->kernel == TILEDSPMM_STAGED ? TiledSpMMPlaces(t) : t->nseg + t->nunit);
  f[FIGURE_SPLIT]              = (PetscLogDouble)t->nsplit;
  f[FIGURE_REORDERED]          = t->reordered ? (PetscLogDouble)t->nz : 0;
  f[FIGURE_MAPGIVEN]           = (PetscLogDouble)t->nmapgiven;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TiledSpMMView(const PetscLogDouble f[GALLOP_MAX_FIGURES], PetscViewer viewer)
{
  PetscFunctionBegin;
  if (f[FIGURE_STAGED] > 0)
    PetscCall(PetscViewerASCIIPrintf(viewer, "TiledSpMM: %.0f panels, %.0f stages with %.0f rows of B, each used %.2f times (rho)\n", f[FIGURE_PANELS], f[FIGURE_STAGES], f[FIGURE_MAP], f[FIGURE_STAGED] / f[FIGURE_MAP]));
  if (f[FIGURE_STAGED] > 0 && f[FIGURE_SPLIT] > 0) PetscCall(PetscViewerASCIIPrintf(viewer, "TiledSpMM: panels have %.0f segments, %.0f rows have several\n", f[FIGURE_SEGMENTS], f[FIGURE_SPLIT]));
  if (f[FIGURE_REORDERED] > 0)
    PetscCall(PetscViewerASCIIPrintf(viewer, "TiledSpMM: rows in the order of their patterns with %.2f of the entries; rho is %.2f in the order of the matrix\n", f[FIGURE_REORDERED] / f[FIGURE_STAGED], f[FIGURE_STAGED] / f[FIGURE_MAPGIVEN]));
  if (f[FIGURE_CACHED] + f[FIGURE_TRANSPOSED] + f[FIGURE_TENSOR] > 0)
    PetscCall(PetscViewerASCIIPrintf(viewer, "TiledSpMM: %.0f segments, %.0f rows have several; %.2f of the entries for the cached kernel, %.2f for the transposed one, %.2f for tensor cores\n", f[FIGURE_SEGMENTS], f[FIGURE_SPLIT], f[FIGURE_CACHED] / f[FIGURE_NZ], f[FIGURE_TRANSPOSED] / f[FIGURE_NZ], f[FIGURE_TENSOR] / f[FIGURE_NZ]));
  if (f[FIGURE_TILES] > 0)
    PetscCall(PetscViewerASCIIPrintf(viewer, "TiledSpMM: %.0f tiles of %d rows and %d columns, %.2f of them entries\n", f[FIGURE_TILES], TILEDSPMM_TILE_ROWS, TILEDSPMM_TILE_COLS, f[FIGURE_TENSOR] / (TILEDSPMM_TILE_ROWS * TILEDSPMM_TILE_COLS * f[FIGURE_TILES])));
  PetscCall(PetscViewerASCIIPrintf(viewer, "TiledSpMM: %.0f bytes, %.2f a nonzero; %.2f of the stored entries are padding\n", f[FIGURE_BYTES], f[FIGURE_BYTES] / f[FIGURE_NZ], 1 - f[FIGURE_NZ] / f[FIGURE_STORED]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TiledSpMMViewDetail(const void *data, PetscViewer viewer)
{
  TiledSpMM     *copy;
  TiledSpMMModel m;

  PetscFunctionBegin;
  PetscCall(TiledSpMMCopyToHost((const TiledSpMM *)data, &copy));
  PetscCall(TiledSpMMGetModel(copy, &m));
  PetscCall(PetscViewerASCIISynchronizedPrintf(viewer, "TiledSpMM: %s of %.3g entries, standard deviation %.3g; rho %.3g, Z %.3g, delta %.3g; C %.3g, L %.3g, Gamma %.3g\n",
                                               copy->kernel == TILEDSPMM_STAGED && copy->segment ? "segments" : "rows", (double)m.mu, (double)m.sigma, (double)m.rho, (double)m.Z, (double)m.delta,
                                               (double)m.C, (double)m.L, (double)m.Gamma));
  PetscCall(PetscViewerASCIISynchronizedPrintf(viewer, "TiledSpMM: %.3g flops a byte with %" PetscInt_FMT " columns at once, %.3g where each load of B misses, %.3g with Gamma 1, %.3g without tiles\n", (double)m.effective,
                                               TiledSpMMStagedColumns(copy), (double)m.miss, (double)m.tiled, (double)m.naive));
#if defined(PETSC_HAVE_CUDA)
  if (!PetscMemTypeHost(((const TiledSpMM *)data)->memtype)) PetscCall(TiledSpMMViewTimes(copy, &m, viewer));
#endif
  PetscCall(TiledSpMMDestroyHostCopy(&copy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscCount TiledSpMMGetBytes(const void *data)
{
  return (PetscCount)((const TiledSpMM *)data)->bytes;
}

/* Tiles have masks, which do not tell where in a row their first entry is */
static PetscBool TiledSpMMRefreshReadsColumns(const void *data)
{
  return (PetscBool)(((const TiledSpMM *)data)->kernel == TILEDSPMM_TENSOR);
}

const GallopFormat GallopFormat_TILEDSPMM = {
  .name            = "tiledspmm",
  .ucname          = "TILEDSPMM",
  .citation        = TiledSpMMCitation,
  .options_size    = sizeof(TiledSpMMOptions),
  .options_default = TiledSpMMOptionsDefault,
  .options_set     = TiledSpMMOptionsSet,
  .host            = &TiledSpMMHost,
  .device          = PetscDefined(HAVE_CUDA) ? &TiledSpMMDevice : NULL,
  .refresh_columns = TiledSpMMRefreshReadsColumns,
  .figures         = TiledSpMMFigures,
  .view            = TiledSpMMView,
  .view_detail     = TiledSpMMViewDetail,
  .bytes           = TiledSpMMGetBytes,
};

const GallopDenseWork GallopDense_TILEDSPMM = {TiledSpMMWantsDense, TiledSpMMApplyDense_Host, PetscDefined(HAVE_CUDA) ? TiledSpMMApplyDense_Device : NULL};
