/* SPDX-License-Identifier: BSD-2-Clause */
/* EVCHYB: its entry in the list of formats, its options and what it shows */

#include "evchyb.h"
#include <gallop/deviceimpl.h>

GALLOP_FORMAT_TYPES(EVCHYB)

/*MC
  MATEVCHYB - MATAIJEVCHYB = "evchyb" - A matrix type for fast products on GPUs: `MATAIJ` that keeps a second copy of its entries in the EVC-HYB format

  Options Database Keys:
+ -mat_type evchyb                    - sets the matrix type during `MatSetFromOptions()`; `aijevchyb`, `seqaijevchyb` and `mpiaijevchyb` are accepted too
. -mat_evchyb_window <4096>           - rows are sorted by length within windows of this many rows; 0 sorts all rows, as the paper does, 1 keeps short rows as they come
. -mat_evchyb_max_ell <-1>            - longest row that the ELL part takes; -1 chooses: 128, 256 where rows have more than 96 and at most 256 entries in the mean
. -mat_evchyb_split <4096>            - longer rows of the vectorized CSR part are computed by several thread blocks, each this many entries
. -mat_evchyb_rows_per_thread <1>     - most rows that a thread of the ELL part computes
. -mat_evchyb_columns_per_warp <256>  - most entries of a row of the ELL part that one thread computes before several warps share 32 rows
. -mat_evchyb_first_column <false>    - rows of one length are sorted by their first column, as the paper does, else they come in the order of the matrix
. -mat_evchyb_storage <auto>          - `plain` stores columns and values as the paper does, `packed` in fewer bytes wherever it can be without loss, `auto` packed where that pays, on GPUs
. -mat_evchyb_slices_per_warp <0>     - how many slices of 64 packed rows a warp computes one after the other, at most 8; 0: 8, fewer towards the end of the matrix, 1 where most columns are stored
. -mat_evchyb_order <auto>            - the order of rows and columns of a square matrix: `none` as they are, `cluster` by clusters of neighbours, `auto` by these where products gain by them, on GPUs; `reorder` so
                                        for `PCGALLOPREORDER` and `MATORDERINGGALLOP`, and in the format as they are
. -mat_evchyb_order_after <-1>        - products of the same values before rows and columns get their order, 0 in the build; -1 chooses: 0 for `cluster`, 1000 for `auto`
. -mat_evchyb_by_row <4000000>        - matrices with this many nonzeros have the blocks of their ELL part in order of rows, not of lengths; 0 for none
. -mat_evchyb_build_in_assembly <false> - builds the format in `MatAssemblyEnd()` rather than when products pay for it
. -mat_gallop_build <pays>            - of all types: when the format is built and refreshed, when it `pays`, at the `first` product, or in `assembly`, see below
. -mat_gallop_products <0>            - of all types: products that are expected before entries change, for `-mat_gallop_build pays`; 0 when unknown
. -mat_gallop_explicit_transpose <gpu> - of all types but `MATFASTLOAD`: where transposed products get a format of the transpose, `never`, on the `gpu`, or `always`, on the host too
. -mat_gallop_exchange <auto>         - of all types: how ghost values on the GPU go from process to process: `ipc`, `nccl`, `sf`, `auto`, or for tests `shared`, see below
. -mat_gallop_nccl <libnccl.so.2>      - for all matrices, without a prefix: the library of NCCL, as `dlopen()` takes it
. -mat_gallop_csr <auto>              - of all types: whether the CSR arrays of a matrix assembled on the host stay on the GPU beside the format, `keep`, go from there, `release`, go and
                                        are read on the `host`, or go where they are large, see below
. -mat_gallop_memory <0>              - of all types: most bytes that the format of a matrix, or of a block of an MPI matrix, that of its transpose, its structure for products with dense
                                        matrices and its CSR arrays on the GPU may take together, on the GPU and on the host each; 0 for no limit
- -mat_evchyb_memory <0>              - most bytes that the format of a matrix, or of a block of an MPI matrix, may take, 0 for no limit; `MATAIJ` or `MATAIJCUSPARSE` computes the
                                        products where it would take more

  Level: beginner

  Notes:
  The type is a subclass of `MATAIJCUSPARSE` where PETSc has CUDA and there is a GPU, else of `MATAIJ`: assembly, factorizations, sparse products, I/O and
  all else are the parent's. `MatMult()`, `MatMultAdd()` and `MatResidual()` use the format, which is built when products pay for it, refreshed when only values have changed,
  on the GPU when they are there, and built again when the nonzero pattern has changed. On the GPU `MatMultTranspose()` and `MatMultTransposeAdd()` use a format of the transpose, another copy
  of the entries, which is made for them.

  Where PETSc has CUDA but finds no GPU, products are computed on the host, and a warning says so once. `-gallop_warn_no_gpu 0` silences it, as does `-device_enable none`, which asks for
  the host.

  With `-mat_gallop_build pays` the parent computes products until those that it has computed since the entries changed have taken 3.6 times as long as a build, or a refresh where only values
  have changed; then the format is built. It is built at once where `-mat_gallop_products`, or the number of products before the last change, or for a new matrix that of the last two of its size, says
  that it pays, and after many states with enough products for a refresh each. Products are counted, not timed.
  The options that begin with `-mat_gallop_` are for all matrices where they have no prefix.

  With `-mat_gallop_exchange auto` or `ipc` processes write ghost values into each other's memory on the GPU, by CUDA IPC, if all processes of the matrix can: MPI is not called, and the host waits
  for nothing. Else, with `nccl`, and with `auto` unless MPI takes GPU pointers (`-use_gpu_aware_mpi`), they are sent by NCCL, if each process has a GPU of its own and finds the library. Else, and with
  `sf`, they travel by `PetscSF`. With `shared` they go through memory of the host where vectors are on the host, which is for tests. By CUDA IPC, `-mat_gallop_exchange_wait` `stream` or
  `kernel` says what waits on the GPU, and `-mat_gallop_exchange_stream` `same` or `side` on which stream values are packed. All of this holds for transposed products and products with dense matrices, too.
  With `-mat_gallop_csr auto` the CSR arrays on the GPU of a matrix whose values the host has are freed after the format was built, if they take 16 MiB or more. New values are copied from the
  host to memory that is given back after the refresh; with `host`, and where less memory is free than six times the arrays take, builds and refreshes read the host's arrays without a copy. The arrays come back when one of the parent's operations needs them there, and stay then; they stay where values were computed on the GPU.

  With 64-bit indices the parent computes products of a matrix, or of a block of an MPI matrix, with more than 2^31 - 1 columns, transposed ones with as many rows.

  Where `-mat_gallop_memory` leaves no room for a format, the CSR arrays go from the GPU, then the structure for products with dense matrices, then the format of the transpose.

  A product runs on the GPU when all its vectors live there (`-vec_type cuda`, `-dm_vec_type cuda`, `MatCreateVecs()`), else on the host.

  On the GPU `-mat_evchyb_split` and `-mat_evchyb_columns_per_warp` are upper bounds: a matrix that would leave the GPU idle is cut finer.
  `-mat_evchyb_rows_per_thread` has no effect where blocks are in order of rows.

  Rows are sorted by length within windows; those of one length stay in the order of the matrix, so that results that are written together lie together. Rows of at most `-mat_evchyb_max_ell`
  entries are stored 32 at a time in ELLPACK column blocks, longer rows in CSR padded to multiples of 32. One kernel computes both parts, and writes each result to its place.

  Packed, the rows of the ELL part are stored 64 at a time, in the order of the matrix or sorted, whichever takes fewer bytes: columns that grow by the row are not stored,
  nor those that are all as far from the entries before them, others as differences of 8 or 16 bits where that is enough; values in single precision where that is exact, complex ones without imaginary parts that are 0, or as numbers of a dictionary of up to 65536. Products of real numbers are the
  same to the last bit. Where new values cannot be stored as those before were, they get another
  dictionary, or the matrix is packed again.

  By clusters, the format has the rows and columns of a square matrix in an order in which neighbours in its graph lie near each other, for meshes that are numbered at random. A product copies
  `x` to that order, and writes each result to its place. `auto` does so for matrices of many rows where a sample of their entries loads so many different sectors of `x` that this pays. The order is that of the
  pattern: new values of the same pattern keep it. Builds and refreshes then take the time of 20 to 50 products: so `auto` builds the format as the matrix is, and again after 1000 products of the same values, unless a CUDA graph of the program has recorded one, or the GPU has little free memory. Where values change
  after fewer than 30 products, twice in a row, the order goes again.
  `PCGALLOPREORDER` permutes the operator by that order once, so that products copy nothing.

  References:
. * - D. Guo, W. Gropp, L. N. Olson, A hybrid format for better performance of sparse matrix-vector multiplication on a GPU, sections 2.1 and 2.2

.seealso: `MATAIJEVCHYB`, `MATSEQAIJEVCHYB`, `MATMPIAIJEVCHYB`, `MATAIJ`, `MATAIJCUSPARSE`, `TILEDSPMM`, `MatGallopGetStatistics()`, `MatSetType()`, `MatConvert()`
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
static const char *const EVCHYBOrders[]   = {"none", "cluster", "auto", "reorder", "EVCHYBOrder", "EVCHYB_ORDER_", NULL};

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
  o->order    = EVCHYB_ORDER_AUTO;
  o->after    = PETSC_DECIDE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode EVCHYBOptionsSet(void *options, const char prefix[], PetscOptionItems PetscOptionsObject, PetscBool *rebuild)
{
  EVCHYBOptions *o = (EVCHYBOptions *)options, before = *o;

  PetscFunctionBegin;
  (void)prefix;
  PetscCall(GallopOptionsRangeInt(PetscOptionsObject, "-mat_evchyb_window", "Rows are sorted by length within windows of this many rows, 0 for all rows", "MATEVCHYB", &o->window, 0, PETSC_INT_MAX));
  PetscCall(GallopOptionsRangeInt(PetscOptionsObject, "-mat_evchyb_max_ell", "Longest row that the ELL part takes, -1 chooses", "MATEVCHYB", &o->maxell, PETSC_DECIDE, 65535));
  PetscCall(GallopOptionsRangeInt(PetscOptionsObject, "-mat_evchyb_split", "Entries of a long row that one thread block computes", "MATEVCHYB", &o->split, EVCHYB_BLOCK, PETSC_INT_MAX));
  PetscCall(GallopOptionsRangeInt(PetscOptionsObject, "-mat_evchyb_rows_per_thread", "Most rows that a thread of the ELL part computes", "MATEVCHYB", &o->rowsmax, 1, 128));
  PetscCall(GallopOptionsRangeInt(PetscOptionsObject, "-mat_evchyb_columns_per_warp", "Most entries of a row of the ELL part that one thread computes", "MATEVCHYB", &o->columns, 1, PETSC_INT_MAX));
  PetscCall(GallopOptionsRangeInt(PetscOptionsObject, "-mat_evchyb_by_row", "Matrices with this many nonzeros have the blocks of their ELL part in order of rows, 0 for none", "MATEVCHYB", &o->byrow, 0, PETSC_INT_MAX));
  PetscCall(PetscOptionsBool("-mat_evchyb_first_column", "Rows of one length are sorted by their first column", "MATEVCHYB", o->firstcol, &o->firstcol, NULL));
  PetscCall(PetscOptionsEnum("-mat_evchyb_storage", "How entries are stored", "MATEVCHYB", EVCHYBStorages, (PetscEnum)o->storage, (PetscEnum *)&o->storage, NULL));
  PetscCall(GallopOptionsRangeInt(PetscOptionsObject, "-mat_evchyb_slices_per_warp", "Slices of packed rows that a warp computes one after the other, 0 chooses", "MATEVCHYB", &o->slices, 0, EVCHYB_PACK_EACH));
  PetscCall(PetscOptionsEnum("-mat_evchyb_order", "The order of rows and columns", "MATEVCHYB", EVCHYBOrders, (PetscEnum)o->order, (PetscEnum *)&o->order, NULL));
  PetscCall(GallopOptionsRangeInt(PetscOptionsObject, "-mat_evchyb_order_after", "Products of the same values before rows and columns get their order, -1 chooses", "MATEVCHYB", &o->after, PETSC_DECIDE, PETSC_INT_MAX));
  o->split = EVCHYBRoundUp(PetscMin(o->split, PETSC_INT_MAX / 2));
  if (o->window != before.window || o->maxell != before.maxell || o->split != before.split || o->rowsmax != before.rowsmax || o->columns != before.columns || o->byrow != before.byrow ||
      o->firstcol != before.firstcol || o->storage != before.storage || o->slices != before.slices || o->order != before.order || o->after != before.after)
    *rebuild = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows that are in order already stay so: sorted by first column they would move, as the first columns of a permuted matrix are others */
static void EVCHYBOptionsInOrder(void *options)
{
  ((EVCHYBOptions *)options)->window = 1;
  ((EVCHYBOptions *)options)->order  = EVCHYB_ORDER_NONE;
}

/* ---- what it shows ---- */

enum {
  FIGURE_N, /* of all blocks */
  FIGURE_NZ,
  FIGURE_NEMPTY,
  FIGURE_ELLROWS,
  FIGURE_ELLNZ,
  FIGURE_CSRNZ,
  FIGURE_BYTES,
  FIGURE_PACKED,
  FIGURE_LINES,
  FIGURE_SLOTS  = FIGURE_LINES + EVCHYB_PACK_CLASSES,
  FIGURE_SHARED = FIGURE_SLOTS + EVCHYB_PACK_VALUES,
  FIGURE_CLUSTERS,
  FIGURE_BEFORE, /* sectors of x */
  FIGURE_AFTER,
  FIGURE_COUNT
};

_Static_assert(FIGURE_COUNT <= GALLOP_FIGURE_ROWS, "too many figures");

static PetscLogDouble AllSlots(const PetscLogDouble f[GALLOP_MAX_FIGURES])
{
  PetscLogDouble all = 0;

  for (int k = 0; k < EVCHYB_PACK_VALUES; k++) all += f[FIGURE_SLOTS + k];
  return all;
}

static PetscErrorCode EVCHYBFigures(const void *data, PetscLogDouble f[GALLOP_MAX_FIGURES])
{
  const EVCHYB *ev = (const EVCHYB *)data;

  PetscFunctionBegin;
  PetscCall(PetscArrayzero(f, GALLOP_MAX_FIGURES));
  f[FIGURE_N]      = ev->n;
  f[FIGURE_NZ]     = (PetscLogDouble)ev->nz;
  f[FIGURE_NEMPTY] = ev->nempty;
  f[FIGURE_BYTES]  = (PetscLogDouble)ev->bytes;
  if (ev->clusters) {
    f[FIGURE_CLUSTERS] = (PetscLogDouble)ev->clusters->num;
    f[FIGURE_BEFORE]   = (PetscLogDouble)ev->nz * ev->clusters->before;
    f[FIGURE_AFTER]    = (PetscLogDouble)ev->nz * ev->clusters->after;
  }
  if (ev->plain) {
    f[FIGURE_ELLROWS] = ev->plain->ell.n;
    f[FIGURE_ELLNZ]   = (PetscLogDouble)ev->plain->ell.nz;
    f[FIGURE_CSRNZ]   = (PetscLogDouble)ev->plain->csr.nz;
  } else {
    const EVCHYBPack *pack = ev->packed->pack;

    f[FIGURE_PACKED]  = (PetscLogDouble)pack->nz;
    f[FIGURE_CSRNZ]   = (PetscLogDouble)pack->nlong;
    for (int k = 0; k < EVCHYB_PACK_CLASSES; k++) f[FIGURE_LINES + k] = (PetscLogDouble)pack->figures.lines[k];
    for (int k = 0; k < EVCHYB_PACK_VALUES; k++) f[FIGURE_SLOTS + k] = (PetscLogDouble)pack->figures.slots[k];
    f[FIGURE_SHARED]  = (PetscLogDouble)pack->figures.shared;
    f[FIGURE_ELLROWS] = ev->m - ev->nempty - ev->packed->nlong;
    f[FIGURE_ELLNZ]   = AllSlots(f) - f[FIGURE_CSRNZ];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is stored in which way, in percent of all lines, and of all places for values */
static PetscErrorCode ViewPack(const PetscLogDouble f[GALLOP_MAX_FIGURES], PetscLogDouble slots, PetscViewer viewer)
{
  const PetscLogDouble *l = f + FIGURE_LINES, *v = f + FIGURE_SLOTS, lines = (l[0] + l[1] + l[2] + l[3]) / 100;

  PetscFunctionBegin;
  slots /= 100;
  PetscCall(PetscViewerASCIIPrintf(viewer, "EVC-HYB: columns by strides %.2f %%, in 8 bits %.2f %%, in 16 bits %.2f %%, in 32 bits %.2f %%; shared with the line before %.2f %%\n", l[EVCHYB_PACK_STRIDED] / lines, l[EVCHYB_PACK_8] / lines, l[EVCHYB_PACK_16] / lines, l[EVCHYB_PACK_32] / lines, f[FIGURE_SHARED] / lines));
  if (EVCHYB_PACK_PARTS > 1) PetscCall(PetscViewerASCIIPrintf(viewer, "EVC-HYB: values without an imaginary part %.2f %%\n", v[EVCHYB_PACK_REAL] / slots));
  PetscCall(PetscViewerASCIIPrintf(viewer, "EVC-HYB: values as they are %.2f %%, in single precision %.2f %%, of a dictionary in 8 bits %.2f %%, in 16 bits %.2f %%\n", v[EVCHYB_PACK_VALUE] / slots, v[EVCHYB_PACK_SINGLE] / slots, v[EVCHYB_PACK_DICT8] / slots, v[EVCHYB_PACK_DICT16] / slots));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The columns of the paper's Table 3, and the code balance of its section 3.2. Packed, SubELL has all rows but those of SubCSR. */
static PetscErrorCode EVCHYBView(const PetscLogDouble f[GALLOP_MAX_FIGURES], PetscViewer viewer)
{
  const PetscLogDouble nz = f[FIGURE_NZ], nzell = f[FIGURE_ELLNZ], stored = nzell + f[FIGURE_CSRNZ];
  const PetscLogDouble percent = stored ? 100 / stored : 0, rows = f[FIGURE_NEMPTY] + f[FIGURE_ELLROWS], entry = sizeof(PetscScalar) + sizeof(GallopColumn), value = sizeof(PetscScalar);

  PetscFunctionBegin;
  PetscCall(PetscViewerASCIIPrintf(viewer, "EVC-HYB%s: I_split %.0f, NNZ_ELL %.0f (%.2f %%), NNZ_vCSR %.0f (%.2f %%), NNZ added %.2f %%, empty rows %.0f\n", f[FIGURE_PACKED] ? ", packed" : "", rows, nzell, nzell * percent, f[FIGURE_CSRNZ], f[FIGURE_CSRNZ] * percent, nz ? 100 * (stored - nz) / nz : 0., f[FIGURE_NEMPTY]));
  PetscCall(PetscViewerASCIIPrintf(viewer, "EVC-HYB: %.0f bytes, %.2f a nonzero\n", f[FIGURE_BYTES], nz ? f[FIGURE_BYTES] / nz : 0.));
  if (f[FIGURE_CLUSTERS])
    PetscCall(PetscViewerASCIIPrintf(viewer, "EVC-HYB: rows and columns by %.0f clusters, sectors of x per entry %.3f, as the matrix is %.3f\n", f[FIGURE_CLUSTERS], nz ? f[FIGURE_AFTER] / nz : 0., nz ? f[FIGURE_BEFORE] / nz : 0.));
  if (f[FIGURE_PACKED]) PetscCall(ViewPack(f, AllSlots(f), viewer));
  else if (nz > 0) {
    const PetscLogDouble nnzr = nz / f[GALLOP_FIGURE_ROWS], flops = 2 + 3 / nnzr, matrix = entry * stored / nz, y = 2 * value / nnzr, alpha = f[FIGURE_N] / nz;

    PetscCall(PetscViewerASCIIPrintf(viewer, "EVC-HYB: code balance %.2f bytes/flop when each entry of x is loaded once (alpha %.3f), %.2f when it is loaded for every nonzero (alpha 1)\n", (matrix + alpha * value + y) / flops, alpha, (matrix + value + y) / flops));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MarksView(const char part[], const EVCHYBMarks *marks, PetscViewer viewer)
{
  static const char *const what[] = {"rows per thread", "warps per column block", "threads per row", "entries per thread block", "thread blocks per row", NULL, NULL,
                                     "warps per piece"}; /* by EVCHYBRangeKind */

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
  const EVCHYB    *ev = (const EVCHYB *)data;
  const SubELL     no = {0}, *ell = ev->plain ? &ev->plain->ell : &no;         /* packed storage has slices instead, */
  const PetscInt   ncsr    = ev->plain ? ev->plain->csr.n : ev->packed->nlong; /* and the long rows in pieces */
  const PetscCount gpublks = ev->plain ? ev->plain->csr.gpublks : ev->packed->gpublks;

  PetscFunctionBegin;
  PetscCall(PetscViewerASCIISynchronizedPrintf(viewer, "SubELL: %" PetscInt_FMT " column blocks of %d rows, LCmax %" PetscInt_FMT ", gpublks %" PetscCount_FMT ", window %" PetscInt_FMT "\n", ell->nb, EVCHYB_BLOCK,
                                               ell->LCmax, ell->gpublks, ev->options.window));
  PetscCall(MarksView("SubELL", &ell->marks, viewer));
  PetscCall(PetscViewerASCIISynchronizedPrintf(viewer, "SubCSR: %" PetscInt_FMT " rows, %" PetscInt_FMT " of them merged, gpublks %" PetscCount_FMT "\n", ncsr, ev->plain ? ev->plain->csr.nmerged : 0, gpublks));
  PetscCall(MarksView("SubCSR", ev->plain ? &ev->plain->csr.marks : &ev->packed->marks, viewer));
  if (ev->packed) {
    const EVCHYBPack *pack      = ev->packed->pack;
    char              order[64] = "sorted";

    if (pack->stride) PetscCall(PetscSNPrintf(order, sizeof(order), "%" PetscInt_FMT " apart", pack->stride));
    PetscCall(PetscViewerASCIISynchronizedPrintf(viewer, "Packed: %" PetscInt_FMT " slices of %d rows, %s, %" PetscInt_FMT " numbers in the dictionary, %zu bytes\n", pack->nslice, EVCHYB_PACK_ROWS, order,
                                                 pack->ndict, pack->bytes));
  }
  if (PetscMemTypeCUDA(ev->memtype)) PetscCall(ViewFloor(ev, viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscCount EVCHYBGetBytes(const void *data)
{
  return (PetscCount)((const EVCHYB *)data)->bytes;
}

static PetscInt EVCHYBNonempty(const void *data)
{
  const EVCHYB *ev = (const EVCHYB *)data;

  return ev->m - ev->nempty;
}

/* By their columns entries find their places in the order of clusters */
static PetscBool EVCHYBRefreshReadsColumns(const void *data)
{
  return (PetscBool)(((const EVCHYB *)data)->clusters != NULL);
}

static PetscBool EVCHYBStoresRows(const void *data, PetscBool adds)
{
  const EVCHYB *ev = (const EVCHYB *)data;

  return (PetscBool)(adds || ev->packed || !EVCHYBLeavesRows(ev->plain, ev->nempty));
}

/* Rows that are left alone have no part in what a product adds */
static PetscCount EVCHYBDotParts(const void *data, PetscBool adds)
{
  const EVCHYB *ev = (const EVCHYB *)data;

  if (!ev->launch.n || !EVCHYBStoresRows(data, adds)) return 0;
  return ev->launch.range[ev->launch.n - 1].next + (ev->packed ? ev->packed->parts.nsplit : ev->plain->csr.parts.nsplit);
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
  .trial           = &EVCHYBTrial,
  .host            = &EVCHYBHost,
  .device          = PetscDefined(HAVE_CUDA) ? &EVCHYBDevice : NULL,
  .refresh_columns = EVCHYBRefreshReadsColumns,
  .storesrows      = EVCHYBStoresRows,
  .dotparts        = EVCHYBDotParts,
  .figures         = EVCHYBFigures,
  .view            = EVCHYBView,
  .view_detail     = EVCHYBViewDetail,
  .bytes           = EVCHYBGetBytes,
  .nonempty        = EVCHYBNonempty,
};
