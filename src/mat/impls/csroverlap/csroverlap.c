/* SPDX-License-Identifier: BSD-2-Clause */
/* CSROVERLAP: its entry in the list of formats, its options, and what it shows */

#include "csroverlap.h"

GALLOP_FORMAT_TYPES(CSROVERLAP)

/*MC
  MATCSROVERLAP - MATAIJCSROVERLAP = "csroverlap" - A matrix type for products on GPUs that overlap copying and computing: `MATAIJ` whose rows are cut into batches

  Options Database Keys:
+ -mat_type csroverlap                    - sets the matrix type during `MatSetFromOptions()`; `aijcsroverlap`, `seqaijcsroverlap` and `mpiaijcsroverlap` are accepted too
. -mat_csroverlap_max_batch_size <0>      - most entries of a batch, 32 to 8192 as far as a thread block's shared memory goes, rounded up to a multiple of 32, or 0 for a size by the lengths of rows; longer rows are computed by thread blocks of their own
. -mat_csroverlap_switch_points <4,11,44,64,114> - five mean row lengths of a batch, in increasing order, from which 2, 4, 8, 16 and 32 threads compute a row
. -mat_csroverlap_rows_in_registers <true> - a thread may hold a short row in registers
. -mat_csroverlap_uneven <true>           - where rows of a batch are uneven, twice as many threads compute a row, and the longest rows wait until warps have time for them
. -mat_csroverlap_big_batch_size <0>      - entries copied from the host to the GPU at a time, at least 32, or 0 to choose
. -mat_csroverlap_big_batch_num <0>       - a matrix that stays on the GPU comes in at most so many big batches, all but the last of one size, whatever `-mat_csroverlap_big_batch_size`; 0 for as many as that gives
. -mat_csroverlap_device_memory <0>       - bytes of the GPU that a sequential matrix or block may take before it is streamed for every product, 0 for what is free; one whose values are on the GPU when it is built stays there
. -mat_csroverlap_pinned <streamed>       - which matrices that are assembled on the host keep a copy of their entries in pinned memory: `never` any, those that are `streamed`, `always` all
. -mat_csroverlap_pack_columns <524288>   - a matrix with at least this many entries has its columns packed when they go from pinned memory to the GPU, 0 for none
. -mat_csroverlap_timeline <false>        - print when the copies and kernels of a product that copies ran, in microseconds
. -mat_csroverlap_build_in_assembly <false> - builds the format in `MatAssemblyEnd()` rather than when products pay for it, see `MATEVCHYB` for `-mat_gallop_build`
- -mat_csroverlap_memory <0>              - most bytes that the format of a matrix, or of a block of an MPI matrix, may take, 0 for no limit; `MATAIJ` or `MATAIJCUSPARSE` computes the products where it would take more

  Level: beginner

  Notes:
  The type is a subclass of `MATAIJCUSPARSE` where PETSc has CUDA and there is a GPU, else of `MATAIJ`: assembly, factorizations, sparse products, I/O and
  all else are the parent's. `MatMult()`, `MatMultAdd()` and `MatResidual()` use the batches, which are made at the first product, of a matrix on the GPU when products pay for them, and made again when the nonzero pattern
  has changed. On the GPU transposed products use batches of the transpose, another copy of the entries.

  Where PETSc has CUDA but finds no GPU, products are computed on the host, and a warning says so once. `-gallop_warn_no_gpu 0` silences it, as does `-device_enable none`, which asks for
  the host.

  On the GPU a block computes a run of batches, and copies the next one to shared memory, without using threads for it, while it computes one
  ("CSR-Partial-Overlap"). No row is split between batches, so that each result is written once; of a row longer than a batch the last block to come adds the sums.

  A matrix that was assembled on the host is copied to the GPU by the first product, and its values by the first one after they changed, while the kernel works on
  what has arrived ("CSR-Full-Overlap"). A matrix that does not fit the GPU, or not within `-mat_csroverlap_device_memory`, is streamed: copied for every product, through a few buffers.
  For that it keeps a copy of its entries in pinned memory of the host, columns in fewer bits where that is shorter. Other matrices have such a copy with `-mat_csroverlap_pinned always`: their
  copies to the GPU are then five times as fast, but to make it takes longer than ten copies without.

  References:
. * - G. Zeng, Y. Zou, Leveraging Memory Copy Overlap for Efficient Sparse Matrix-Vector Multiplication on GPUs, sections 4.1 and 4.2

.seealso: `MATAIJ`, `MATAIJCUSPARSE`, `MATEVCHYB`, `TILEDSPMM`, `MatGallopGetStatistics()`, `MatSetType()`, `MatConvert()`
M*/

static const char CSROverlapCitation[] = "@article{ZengZou2023,\n"
                                         "  author  = {Guangsen Zeng and Yi Zou},\n"
                                         "  title   = {Leveraging Memory Copy Overlap for Efficient Sparse Matrix-Vector Multiplication on {GPU}s},\n"
                                         "  journal = {Electronics},\n"
                                         "  volume  = {12},\n"
                                         "  number  = {17},\n"
                                         "  pages   = {3687},\n"
                                         "  year    = {2023},\n"
                                         "  doi     = {10.3390/electronics12173687}\n"
                                         "}\n";

static PetscErrorCode CSROverlapOptionsDefault(void *options)
{
  /* Table 2 on an H200: benchmarks/csroverlap-tune.py, rounded */
  static const PetscReal table2[CSROVERLAP_SIZES - 1] = {4, 11, 44, 64, 114};
  CSROverlapOptions     *o                            = (CSROverlapOptions *)options;

  PetscFunctionBegin;
  *o = (CSROverlapOptions){.rows_in_registers = PETSC_TRUE, .uneven = PETSC_TRUE, .pinned = CSROVERLAP_PINNED_STREAMED, .pack_columns = 1 << 19};
  PetscCall(PetscArraycpy(o->switch_points, table2, CSROVERLAP_SIZES - 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const char *const CSROverlapPinneds[] = {"never", "streamed", "always", "CSROverlapPinned", "CSROVERLAP_PINNED_", NULL};

/* Numbers beyond PetscInt, 0 or from min on: PETSc reads them as reals */
static PetscErrorCode CountOption(PetscOptionItems PetscOptionsObject, const char option[], const char text[], PetscCount min, PetscCount *value)
{
  PetscReal real = (PetscReal)*value;
  PetscBool set;

  PetscFunctionBegin;
  PetscCall(PetscOptionsReal(option, text, "MATCSROVERLAP", real, &real, &set));
  if (!set) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCheck(real == 0 || (real >= (PetscReal)min && real < (PetscReal)PETSC_COUNT_MAX), PetscOptionsObject->comm, PETSC_ERR_ARG_OUTOFRANGE, "Option -%s%s is %.0f, but must be at least %" PetscCount_FMT ", or 0",
             PetscOptionsObject->prefix ? PetscOptionsObject->prefix : "", option + 1, (double)real, min);
  *value = (PetscCount)real;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CSROverlapOptionsSet(void *options, const char prefix[], PetscOptionItems PetscOptionsObject, PetscBool *rebuild)
{
  CSROverlapOptions *o = (CSROverlapOptions *)options, before;
  PetscReal          points[CSROVERLAP_SIZES - 1];
  PetscInt           n = CSROVERLAP_SIZES - 1, size = o->max_batch_size;
  PetscBool          set, same;

  PetscFunctionBegin;
  (void)prefix;
  PetscCall(PetscMemcpy(&before, o, sizeof(before)));
  PetscCall(PetscOptionsInt("-mat_csroverlap_max_batch_size", "Most entries of a batch, 0 to choose by the lengths of rows", "MATCSROVERLAP", size, &size, NULL));
  PetscCheck(!size || (size >= CSROVERLAP_SMALLEST_BATCH && size <= CSROVERLAP_LARGEST_BATCH), PetscOptionsObject->comm, PETSC_ERR_ARG_OUTOFRANGE, "Option -%smat_csroverlap_max_batch_size is %" PetscInt_FMT ", but must be between 32 and %d, or 0",
             PetscOptionsObject->prefix ? PetscOptionsObject->prefix : "", size, CSROVERLAP_LARGEST_BATCH);
  o->max_batch_size = (size + CSROVERLAP_SMALLEST_BATCH - 1) / CSROVERLAP_SMALLEST_BATCH * CSROVERLAP_SMALLEST_BATCH;
  PetscCall(PetscArraycpy(points, o->switch_points, CSROVERLAP_SIZES - 1));
  PetscCall(PetscOptionsRealArray("-mat_csroverlap_switch_points", "Mean row lengths of a batch from which 2, 4, 8, 16 and 32 threads compute a row", "MATCSROVERLAP", points, &n, &set));
  if (set) {
    PetscCheck(n == CSROVERLAP_SIZES - 1, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-mat_csroverlap_switch_points wants %d numbers, not %" PetscInt_FMT, CSROVERLAP_SIZES - 1, n);
    for (int k = 0; k < CSROVERLAP_SIZES - 1; k++)
      PetscCheck(points[k] >= (k ? points[k - 1] : 0), PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-mat_csroverlap_switch_points must not be negative and must not decrease");
    PetscCall(PetscArraycpy(o->switch_points, points, CSROVERLAP_SIZES - 1));
  }
  PetscCall(PetscOptionsBool("-mat_csroverlap_rows_in_registers", "A thread may hold a short row in registers", "MATCSROVERLAP", o->rows_in_registers, &o->rows_in_registers, NULL));
  PetscCall(PetscOptionsBool("-mat_csroverlap_uneven", "Uneven rows get more threads than the mean length of rows says", "MATCSROVERLAP", o->uneven, &o->uneven, NULL));
  PetscCall(CountOption(PetscOptionsObject, "-mat_csroverlap_big_batch_size", "Entries copied to the GPU at a time, 0 to choose", CSROVERLAP_SMALLEST_BIG, &o->big_batch_size));
  PetscCall(GallopOptionsRangeInt(PetscOptionsObject, "-mat_csroverlap_big_batch_num", "Big batches of one size of a matrix that stays on the GPU, 0 for as many as their size gives", "MATCSROVERLAP", &o->big_batch_num, 0, PETSC_INT_MAX));
  PetscCall(CountOption(PetscOptionsObject, "-mat_csroverlap_device_memory", "Bytes of the GPU that a matrix may take before it is streamed for every product, 0 for what is free", 1, &o->device_memory));
  PetscCall(PetscOptionsEnum("-mat_csroverlap_pinned", "Which matrices that are assembled on the host keep a copy of their entries in pinned memory", "MATCSROVERLAP", CSROverlapPinneds, (PetscEnum)o->pinned,
                             (PetscEnum *)&o->pinned, NULL));
  PetscCall(CountOption(PetscOptionsObject, "-mat_csroverlap_pack_columns", "A matrix with at least this many entries has its columns packed when they go from pinned memory to the GPU, 0 for none", 1, &o->pack_columns));
  PetscCall(PetscOptionsBool("-mat_csroverlap_timeline", "Print when the copies and kernels of a product that copies ran", "MATCSROVERLAP", o->timeline, &o->timeline, NULL));
  PetscCall(PetscMemcmp(o, &before, sizeof(before), &same));
  if (!same) *rebuild = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

enum {
  FIGURE_BATCHES,
  FIGURE_ENTRIES, /* in batches */
  FIGURE_SQUARES,
  FIGURE_LONG,
  FIGURE_BYTES,
  FIGURE_ROWS, /* batches whose rows are in registers */
  FIGURE_FROMHOST,
  FIGURE_STREAMED,
  FIGURE_BIG,
  FIGURE_SIZES
};
_Static_assert(FIGURE_SIZES + CSROVERLAP_SIZES <= GALLOP_MAX_FIGURES, "too many figures");

static PetscErrorCode GetPlace(const CSROverlap *ov, CSROverlapPlace *place)
{
  PetscFunctionBegin;
#if PetscDefined(HAVE_CUDA)
  PetscCall(CSROverlapGetPlace(ov, place));
#else
  (void)ov;
  PetscCall(PetscMemzero(place, sizeof(*place)));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CSROverlapFigures(const void *data, PetscLogDouble f[GALLOP_MAX_FIGURES])
{
  const CSROverlap *ov = (const CSROverlap *)data;
  BatchInfo        *infos;
  PetscInt         *longs;
  BatchWork        *works;
  CSROverlapPlace   place;

  PetscFunctionBegin;
  PetscCall(PetscArrayzero(f, GALLOP_MAX_FIGURES));
  f[FIGURE_BATCHES] = ov->batch_num;
  f[FIGURE_LONG]    = ov->long_row_num;
  f[FIGURE_BYTES]   = (PetscLogDouble)ov->bytes;
  PetscCall(CSROverlapGetBatches(ov, &infos, &longs, &works));
  for (PetscInt b = 0; b < ov->batch_num; b++) {
    f[FIGURE_ENTRIES] += works[b].nnz;
    f[FIGURE_SQUARES] += (PetscLogDouble)works[b].nnz * works[b].nnz;
    if (works[b].kind & CSROVERLAP_KIND_ROWS) f[FIGURE_ROWS]++;
    else f[FIGURE_SIZES + (works[b].kind & CSROVERLAP_KIND_SIZE)]++;
  }
  PetscCall(PetscFree(infos));
  PetscCall(PetscFree(longs));
  PetscCall(PetscFree(works));
  PetscCall(GetPlace(ov, &place));
  f[FIGURE_FROMHOST] = place.fromhost;
  f[FIGURE_STREAMED] = place.streamed;
  f[FIGURE_BIG]      = place.big_batch_num;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CSROverlapView(const PetscLogDouble f[GALLOP_MAX_FIGURES], PetscViewer viewer)
{
  const PetscLogDouble batches = PetscMax(f[FIGURE_BATCHES], 1), mean = f[FIGURE_ENTRIES] / batches, variance = f[FIGURE_SQUARES] / batches - mean * mean;

  PetscFunctionBegin;
  PetscCall(PetscViewerASCIIPrintf(viewer, "CSR-Overlap: %.0f batches of %.1f entries on average, standard deviation %.1f, %.0f long rows\n", f[FIGURE_BATCHES], mean, (double)PetscSqrtReal((PetscReal)PetscMax(variance, 0)), f[FIGURE_LONG]));
  PetscCall(PetscViewerASCIIPrintf(viewer, "CSR-Overlap: batches by vector_size: in registers: %.0f,", f[FIGURE_ROWS]));
  PetscCall(PetscViewerASCIIUseTabs(viewer, PETSC_FALSE));
  for (int k = 0; k < CSROVERLAP_SIZES; k++) PetscCall(PetscViewerASCIIPrintf(viewer, " %d: %.0f%s", 1 << k, f[FIGURE_SIZES + k], k + 1 < CSROVERLAP_SIZES ? "," : "\n"));
  PetscCall(PetscViewerASCIIUseTabs(viewer, PETSC_TRUE));
  PetscCall(PetscViewerASCIIPrintf(viewer, "CSR-Overlap: %.0f bytes\n", f[FIGURE_BYTES]));
  if (f[FIGURE_FROMHOST])
    PetscCall(PetscViewerASCIIPrintf(viewer, "CSR-Overlap: entries come from the host in %.0f big batches, %s\n", f[FIGURE_BIG], f[FIGURE_STREAMED] ? "for every product" : "once for each set of values"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CSROverlapViewDetail(const void *data, PetscViewer viewer)
{
  const CSROverlap *ov = (const CSROverlap *)data;
  CSROverlapPlace   place;

  PetscFunctionBegin;
  PetscCall(GetPlace(ov, &place));
  PetscCall(PetscViewerASCIISynchronizedPrintf(viewer, "CSR-Overlap: max_batch_size %" PetscInt_FMT ", %" PetscInt_FMT " batches, %" PetscInt_FMT " long rows, entries %s\n", ov->max_batch_size, ov->batch_num, ov->long_row_num,
                                               PetscMemTypeHost(ov->memtype) || place.streamed ? "on the host" : "on the GPU"));
  if (place.fromhost)
    PetscCall(PetscViewerASCIISynchronizedPrintf(viewer, "CSR-Overlap: big_batch_size %" PetscCount_FMT ", %" PetscInt_FMT " big batches, copied from %s memory, %.1f bits per column\n", place.big_batch_size,
                                                 place.big_batch_num, place.pinned ? "pinned" : "pageable", 8.0 * (double)place.column_bytes / (double)ov->nz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool CSROverlapStreams(const void *data)
{
  CSROverlapPlace place;

  return (PetscBool)(!GetPlace((const CSROverlap *)data, &place) && place.streamed);
}

static PetscCount CSROverlapGetBytes(const void *data)
{
  return (PetscCount)((const CSROverlap *)data)->bytes;
}

static PetscInt CSROverlapNonempty(const void *data)
{
  return ((const CSROverlap *)data)->nonempty;
}

static PetscBool CSROverlapStoresRows(const void *data, PetscBool adds)
{
  (void)data, (void)adds;
  return PETSC_TRUE;
}

const GallopFormat GallopFormat_CSROVERLAP = {
  .name              = MATCSROVERLAP,
  .ucname            = "CSROVERLAP",
  .citation          = CSROverlapCitation,
  .createseq         = MatCreate_SeqAIJCSROVERLAP,
  .creatempi         = MatCreate_MPIAIJCSROVERLAP,
  .options_size      = sizeof(CSROverlapOptions),
  .options_default   = CSROverlapOptionsDefault,
  .options_set       = CSROverlapOptionsSet,
  .host              = &CSROverlapHost,
  .device            = PetscDefined(HAVE_CUDA) ? &CSROverlapDevice : NULL,
  .device_takes_host = PETSC_TRUE,
  .build_cost        = 1.2,
  .streams           = CSROverlapStreams,
  .storesrows        = CSROverlapStoresRows,
  .dotparts          = PetscDefined(HAVE_CUDA) ? CSROverlapDotParts : NULL,
  .figures           = CSROverlapFigures,
  .view              = CSROverlapView,
  .view_detail       = CSROverlapViewDetail,
  .bytes             = CSROverlapGetBytes,
  .nonempty          = CSROverlapNonempty,
};
