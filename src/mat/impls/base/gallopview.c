/* SPDX-License-Identifier: BSD-2-Clause */
/* What a Gallop matrix tells of itself: viewers and statistics */

#include <gallop/matgallopimpl.h>

/* The sequential matrices that a matrix consists of on this process */
static PetscErrorCode GetParts(Mat A, Mat parts[2], int *n)
{
  Mat_Gallop *g;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  parts[0] = A;
  *n       = 1;
  if (g->mpi) {
    *n = 2;
    PetscCall(MatGallopGetBlocks(A, &parts[0], &parts[1]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  A structure of a part as it is: what is viewed is what the next product uses. When nothing is built yet the format is built now, unless products have to pay for it first; TiledSpMM and
  the format of the transpose are not, as there may never be such a product.
*/
static PetscErrorCode GetData(Mat part, GallopStructureKind kind, void **data, PetscBool *pays)
{
  Mat_Gallop      *g;
  GallopInstance  *instance;
  PetscBool        device;
  PetscObjectState state;
  GallopPlace      place;

  PetscFunctionBegin;
  *data = NULL;
  *pays = PETSC_TRUE;
  PetscCall(MatGallopGetContext(part, &g));
  instance = g->structure[kind].instance;
  if (kind != GALLOP_FORMAT && !instance[GALLOP_HOST].data && !instance[GALLOP_DEVICE].data) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopDeviceAvailable(&device));
  place = device && !GallopBoundToCPU(part) && !(instance[GALLOP_HOST].data && !instance[GALLOP_DEVICE].data) ? GALLOP_DEVICE : GALLOP_HOST;
  if (kind != GALLOP_TILEDSPMM) PetscCall(MatGallopPays(part, g, kind, place, PETSC_FALSE, pays));
  if (!*pays) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectStateGet((PetscObject)part, &state));
  PetscCall(MatGallopUpdate(part, g, kind, place, state, PETSC_FALSE, data));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether the GPU has the format of a part, and not the parent's copy */
static PetscErrorCode LacksCopy(Mat part, PetscBool *lacks)
{
  Mat_Gallop *g;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(part, &g));
  PetscCall(MatGallopLacksCopy(part, g, lacks));
  if (!g->structure[GALLOP_FORMAT].instance[GALLOP_DEVICE].data) *lacks = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Lines on one structure: what its parts have together, and with detail each part's own. Parts with data NULL have none. */
static PetscErrorCode ViewStructure(Mat A, const GallopFormat *format, PetscBool transpose, int n, void *const data[], PetscBool detail, PetscViewer viewer)
{
  PetscLogDouble figures[GALLOP_MAX_FIGURES], sum[GALLOP_MAX_FIGURES] = {0};
  PetscMPIInt    rank;
  PetscInt       rows;

  PetscFunctionBegin;
  for (int k = 0; k < n; k++) {
    if (!data[k]) continue;
    PetscCall((*format->figures)(data[k], figures));
    for (int f = 0; f < GALLOP_MAX_FIGURES; f++) sum[f] += figures[f];
  }
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, sum, GALLOP_MAX_FIGURES, MPIU_PETSCLOGDOUBLE, MPI_SUM, PetscObjectComm((PetscObject)A)));
  PetscCall(MatGetSize(A, transpose ? NULL : &rows, transpose ? &rows : NULL));
  sum[GALLOP_FIGURE_ROWS] = (PetscLogDouble)rows;
  PetscCall((*format->view)(sum, viewer));
  if (!detail || !format->view_detail) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallMPI(MPI_Comm_rank(PetscObjectComm((PetscObject)A), &rank));
  PetscCall(PetscViewerASCIIPushSynchronized(viewer));
  for (int k = 0; k < n; k++) {
    if (!data[k]) continue;
    if (n > 1) PetscCall(PetscViewerASCIISynchronizedPrintf(viewer, "[%d] %s block\n", rank, k ? "off-diagonal" : "diagonal"));
    PetscCall((*format->view_detail)(data[k], viewer));
  }
  PetscCall(PetscViewerFlush(viewer));
  PetscCall(PetscViewerASCIIPopSynchronized(viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatView_Gallop(Mat A, PetscViewer viewer)
{
  Mat_Gallop       *g;
  PetscViewerFormat vformat;
  PetscBool         ascii;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall((*g->parent.view)(A, viewer));
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &ascii));
  PetscCall(PetscViewerGetFormat(viewer, &vformat));
  if (ascii && (vformat == PETSC_VIEWER_ASCII_INFO || vformat == PETSC_VIEWER_ASCII_INFO_DETAIL) && A->assembled && !A->factortype && !A->structure_only) {
    const PetscBool detail = (PetscBool)(vformat == PETSC_VIEWER_ASCII_INFO_DETAIL);
    Mat             parts[2];
    void           *data[2], *dense[2], *transpose[2];
    int             n;
    PetscBool       some[6] = {PETSC_FALSE, PETSC_FALSE, PETSC_FALSE, PETSC_FALSE,
                               PETSC_FALSE, PETSC_FALSE}; /* on any process: parts without room for a format, with a structure for dense matrices, whose format is not paid for, with a format, with one of the transpose, with CSR arrays on the host alone */

    PetscCall(GetParts(A, parts, &n));
    for (int k = 0; k < n; k++) {
      MatInfo   info;
      PetscBool pays, any;

      PetscCall(GetData(parts[k], GALLOP_FORMAT, &data[k], &pays));
      PetscCall(GetData(parts[k], GALLOP_TILEDSPMM, &dense[k], &any));
      PetscCall(GetData(parts[k], GALLOP_TRANSPOSE, &transpose[k], &any));
      PetscCall(MatGetInfo(parts[k], MAT_LOCAL, &info));
      if (!data[k] && info.nz_used > 0) some[pays ? 0 : 2] = PETSC_TRUE; /* a part without entries needs no format */
      if (dense[k]) some[1] = PETSC_TRUE;
      if (data[k]) some[3] = PETSC_TRUE;
      if (transpose[k]) some[4] = PETSC_TRUE;
      if (data[k]) PetscCall(LacksCopy(parts[k], &any));
      if (data[k] && any) some[5] = PETSC_TRUE;
    }
    PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, some, 6, MPI_C_BOOL, MPI_LOR, PetscObjectComm((PetscObject)A)));
    PetscCall(PetscViewerASCIIPushTab(viewer));
    if (some[3] || !some[2]) PetscCall(ViewStructure(A, g->type->format, PETSC_FALSE, n, data, detail, viewer));
    if (some[0]) PetscCall(PetscViewerASCIIPrintf(viewer, "a part without room for the format: %s computes its products\n", GallopParentType(g->mpi, g->deviceparent)));
    if (some[2]) PetscCall(PetscViewerASCIIPrintf(viewer, "a part whose format is not built, as its products have not paid for it yet: %s computes them\n", GallopParentType(g->mpi, g->deviceparent)));
    if (some[5]) PetscCall(PetscViewerASCIIPrintf(viewer, "CSR arrays: on the host alone, -mat_gallop_csr keep keeps them on the GPU\n"));
    if (some[4]) {
      PetscCall(PetscViewerASCIIPrintf(viewer, "Transpose, for transposed products:\n"));
      PetscCall(PetscViewerASCIIPushTab(viewer));
      PetscCall(ViewStructure(A, g->type->format, PETSC_TRUE, n, transpose, PETSC_FALSE, viewer));
      PetscCall(PetscViewerASCIIPopTab(viewer));
    }
    if (g->mpi) PetscCall(MatGallopExchangeView(A, viewer));
    if (some[1]) PetscCall(ViewStructure(A, g->structure[GALLOP_TILEDSPMM].type->format, PETSC_FALSE, n, dense, detail, viewer));
    PetscCall(PetscViewerASCIIPopTab(viewer));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatGallopGetStatistics - Tells what a Gallop matrix has done: formats built and refreshed, products by our kernels and by the parent's

  Not Collective

  Input Parameter:
. A - a matrix of a Gallop type

  Output Parameter:
. statistics - the counts since `A` was created, on this MPI process; of both blocks of an MPI matrix

  Level: intermediate

  Note:
  A right answer does not show who computed it. `products_host` and `products_device` count what this library's own code did, `fallbacks`
  what `MATAIJ` or `MATAIJCUSPARSE` did for it: products that the format has no kernel for, or has no room for. `dense_products_host`, `dense_products_device` and
  `dense_fallbacks` tell the same of products with a dense matrix, C = A B.

.seealso: `MatGallopStatistics`, `MATEVCHYB`
@*/
PetscErrorCode MatGallopGetStatistics(Mat A, MatGallopStatistics *statistics)
{
  Mat_Gallop *g;
  Mat         parts[2];
  int         n;

  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscAssertPointer(statistics, 2);
  PetscCall(MatGallopGetContext(A, &g));
  PetscCheck(g, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONG, "Not for matrix type %s", ((PetscObject)A)->type_name);
  PetscCall(GetParts(A, parts, &n));
  PetscCall(PetscMemzero(statistics, sizeof(*statistics)));
  if (parts[0] != A) { /* products are those of the blocks */
    if (g->past) *statistics = g->past->stats;
    statistics->exchanges_ipc += g->stats.exchanges_ipc;
    statistics->exchanges_nccl += g->stats.exchanges_nccl;
    statistics->exchanges_sf += g->stats.exchanges_sf;
  }
  for (int k = 0; k < n; k++) {
    PetscCall(MatGallopGetContext(parts[k], &g));
    MatGallopStatisticsAdd(statistics, &g->stats);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A line of GallopStatisticsView(), if there is something to say; *head: the line above the first one is still to come */
static PetscErrorCode ViewTotals(const char name[], const PetscInt64 counts[5], const GallopBytes *bytes, PetscBool *head, PetscViewer viewer)
{
  PetscInt64 all = 0;

  PetscFunctionBegin;
  for (int k = 0; k < 5; k++) all += counts[k];
  if (!all) PetscFunctionReturn(PETSC_SUCCESS);
  if (*head)
    PetscCall(PetscViewerASCIIPrintf(viewer, "%-20s %12s %12s %12s %12s %12s %16s %16s\n", "products", "on the GPU", "on the host", "by AIJ", "builds", "refreshes", "bytes on the GPU", "on the host"));
  *head = PETSC_FALSE;
  PetscCall(PetscViewerASCIIPrintf(viewer, "%-20s", name));
  PetscCall(PetscViewerASCIIUseTabs(viewer, PETSC_FALSE));
  for (int k = 0; k < 5; k++) PetscCall(PetscViewerASCIIPrintf(viewer, " %12" PetscInt64_FMT, counts[k]));
  PetscCall(PetscViewerASCIIPrintf(viewer, " %16" PetscInt64_FMT " %16" PetscInt64_FMT "\n", bytes->most[GALLOP_DEVICE], bytes->most[GALLOP_HOST]));
  PetscCall(PetscViewerASCIIUseTabs(viewer, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  GallopStatisticsView - Shows what the matrices of each type that are gone have done, summed over the processes of the viewer, for -gallop_statistics

  The bytes are the most that each process had at one time.
*/
PetscErrorCode GallopStatisticsView(PetscViewer viewer)
{
  MPI_Comm    comm = PetscObjectComm((PetscObject)viewer);
  PetscMPIInt size;
  GallopType  list;
  PetscBool   ascii, head = PETSC_TRUE, left = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &ascii));
  if (!ascii) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallMPI(MPI_Comm_size(comm, &size));
  PetscCall(GallopTypeGetList(&list));
  PetscCall(PetscViewerASCIIPrintf(viewer, "Gallop statistics, summed over processes: %d\n", size));
  PetscCall(PetscViewerASCIIPushTab(viewer));
  for (GallopType type = list; type; type = type->next) {
    GallopTotals sum = type->totals;
    char         name[64];

    PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &sum, sizeof(sum) / sizeof(PetscInt64), MPIU_INT64, MPI_SUM, comm));
    PetscCall(ViewTotals(type->root, (PetscInt64[]){sum.stats.products_device, sum.stats.products_host, sum.stats.fallbacks, sum.stats.builds, sum.stats.refreshes}, &sum.bytes[GALLOP_FORMAT], &head, viewer));
    PetscCall(PetscSNPrintf(name, sizeof(name), "%s, dense", type->root));
    PetscCall(ViewTotals(name, (PetscInt64[]){sum.stats.dense_products_device, sum.stats.dense_products_host, sum.stats.dense_fallbacks, sum.stats.dense_builds, sum.stats.dense_refreshes}, &sum.bytes[GALLOP_TILEDSPMM], &head, viewer));
    if (sum.matrices) left = PETSC_TRUE;
  }
  if (head) PetscCall(PetscViewerASCIIPrintf(viewer, "no product of a Gallop matrix\n"));
  if (left) PetscCall(PetscViewerASCIIPrintf(viewer, "Matrices that were not destroyed before PetscFinalize() are not counted\n"));
  PetscCall(PetscViewerASCIIPopTab(viewer));
  PetscCall(PetscViewerFlush(viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}
