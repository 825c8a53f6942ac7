/* SPDX-License-Identifier: BSD-2-Clause */
/*
  The exchange of ghost values for products of MPI matrices: straight to the neighbors' memory or by NCCL, both by gallopexchangeipc.c, or by PetscSF
*/

#include <petscdevice.h>
#include <gallop/matgallopimpl.h>

PetscErrorCode GallopExchangeReset(GallopExchange *exchange)
{
  PetscFunctionBegin;
  for (int p = 0; p < 2; p++) {
    PetscCall(VecDestroy(&exchange->ghost[p]));
    PetscCall(GallopIPCDestroy(&exchange->ipc[p]));
    PetscCall(GallopIPCDestroy(&exchange->reverse[p]));
    exchange->chosen[p] = exchange->reversechosen[p] = PETSC_FALSE;
  }
  exchange->reversechosen[2] = PETSC_FALSE;
  exchange->id               = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What writes into the neighbors' memory, if that is wanted; on all processes alike */
const GallopIPCTable *GallopExchangeTable(GallopExchangeWay way, GallopPlace place)
{
  if (place == GALLOP_HOST) return way == GALLOP_EXCHANGE_SHARED ? &GallopIPCTable_Shared : NULL;
#if PetscDefined(HAVE_CUDA)
  return way == GALLOP_EXCHANGE_SF || way == GALLOP_EXCHANGE_NCCL ? NULL : &GallopIPCTable_Device;
#else
  return NULL;
#endif
}

/* NCCL, if that is wanted where the first way cannot be; on all processes alike. On the host it takes the library of the tests. */
static PetscErrorCode NCCLTableOf(GallopExchangeWay way, GallopPlace place, const GallopIPCTable **table, const char **why)
{
  PetscBool named;

  PetscFunctionBegin;
  *table = NULL;
  *why   = NULL;
  if (way != GALLOP_EXCHANGE_AUTO && way != GALLOP_EXCHANGE_NCCL) PetscFunctionReturn(PETSC_SUCCESS);
  if (place == GALLOP_HOST) {
    PetscCall(PetscOptionsHasName(NULL, NULL, "-mat_gallop_nccl", &named));
    if (named) *table = &GallopIPCTable_NCCLHost;
    else if (way == GALLOP_EXCHANGE_NCCL) *why = "vectors are on the host";
  }
#if PetscDefined(HAVE_CUDA)
  if (place == GALLOP_DEVICE) *table = &GallopIPCTable_NCCLDevice;
#endif
  if (*table && way == GALLOP_EXCHANGE_AUTO && use_gpu_aware_mpi) {
    *table = NULL;
    *why   = "MPI takes GPU pointers";
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  GallopExchangeAside - Whether the product of the diagonal block with so many columns is long enough that it should not begin after the exchange, but beside it

  It takes longer than the host does to launch all of this, which two streams make longer: 10 microseconds on an H200.
*/
PetscErrorCode GallopExchangeAside(Mat A, PetscInt columns, PetscBool *aside)
{
  Mat     diagonal;
  MatInfo info;

  PetscFunctionBegin;
  PetscCall(MatGallopGetBlocks(A, &diagonal, NULL));
  PetscCall(MatGetInfo(diagonal, MAT_LOCAL, &info));
  *aside = (PetscBool)(info.nz_used * columns >= 4e6);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  GallopExchangeAgree - Of a number that tells where vectors are here, whether it is that of all processes

  Collective, but for PetscSF, which does not mind

  It is, since the types of vectors are the same, unless some processes have bound theirs to the host, as -vec_bind_below does where there are few rows.
*/
PetscErrorCode GallopExchangeAgree(Mat A, GallopExchangeWay way, const char what[], int where, PetscBool *alike)
{
  int bits = 1 << where;

  PetscFunctionBegin;
  if (PetscDefined(HAVE_CUDA) && way != GALLOP_EXCHANGE_SF) PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &bits, 1, MPI_INT, MPI_BOR, PetscObjectComm((PetscObject)A)));
  *alike = (PetscBool)(bits == 1 << where);
  if (!*alike) PetscCall(PetscInfo(A, "%s: by PetscSF, since some are on the host and some on the GPU\n", what));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  GallopExchangeConnect - Connects the processes of A by the first way that all of them can go: into the neighbors' memory, or by NCCL; *ipc is NULL where it is PetscSF

  Collective

  Input Parameters:
+ A     - the matrix
. sf    - the edges
. way   - the user's
. place - where vectors are, on all processes alike: GallopExchangeAgree()
. kind  - what is exchanged
- what  - its name, for -info

  Output Parameter:
. ipc - the connections
*/
PetscErrorCode GallopExchangeConnect(Mat A, PetscSF sf, GallopExchangeWay way, GallopPlace place, const GallopIPCKind *kind, const char what[], GallopIPC *ipc)
{
  const GallopIPCTable *table = GallopExchangeTable(way, place), *nccl = NULL;
  const char           *why = NULL, *ncclwhy = NULL, *how;

  PetscFunctionBegin;
  *ipc = NULL;
  if (table) PetscCall(GallopIPCConnect(PetscObjectComm((PetscObject)A), sf, kind, table, ipc, &why));
  else if (way == GALLOP_EXCHANGE_IPC) why = "vectors are on the host";
  if (!*ipc) {
    PetscCall(NCCLTableOf(way, place, &nccl, &ncclwhy));
    if (nccl) PetscCall(GallopIPCConnect(PetscObjectComm((PetscObject)A), sf, kind, nccl, ipc, &ncclwhy));
  }
  if (*ipc) {
    PetscCall((*(*ipc)->table->describe)(*ipc, &how));
    PetscCall(PetscInfo(A, "%s: by %s, with %d neighbors of which %d give values; %s waits for them%s%s\n", what, (*ipc)->table->name, (*ipc)->nneighbors, (*ipc)->ngive, how, why ? "; not straight to the neighbors' memory, since " : "", why ? why : ""));
  } else if (why && ncclwhy) PetscCall(PetscInfo(A, "%s: by PetscSF and not straight to the neighbors' memory, since %s, nor by NCCL, since %s\n", what, why, ncclwhy));
  else if (why) PetscCall(PetscInfo(A, "%s: by PetscSF and not straight to the neighbors' memory, since %s\n", what, why));
  else if (ncclwhy) PetscCall(PetscInfo(A, "%s: by PetscSF and not by NCCL, since %s\n", what, ncclwhy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopExchangeCount - Counts an exchange by its way */
void GallopExchangeCount(Mat_Gallop *g, GallopIPC ipc)
{
  if (!ipc) g->stats.exchanges_sf++;
  else if (ipc->comm) g->stats.exchanges_nccl++;
  else g->stats.exchanges_ipc++;
}

/* The way of the ghost values of vectors at a place */
static PetscErrorCode Choose(Mat A, GallopExchange *exchange, PetscSF sf, GallopPlace place)
{
  GallopIPCKind kind = {PETSC_FALSE, PETSC_FALSE, exchange->n, GALLOP_IPC_SCALAR, 1, PETSC_FALSE};
  PetscBool     alike;

  PetscFunctionBegin;
  if (exchange->chosen[place]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopExchangeAgree(A, exchange->way, "Ghost values", (int)place, &alike));
  if (alike) {
    PetscCall(GallopExchangeAside(A, 1, &kind.aside));
    PetscCall(GallopExchangeConnect(A, sf, exchange->way, place, &kind, "Ghost values", &exchange->ipc[place]));
    exchange->chosen[place] = PETSC_TRUE;
  } else exchange->chosen[GALLOP_HOST] = exchange->chosen[GALLOP_DEVICE] = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GetGhost(GallopExchange *exchange, GallopPlace place, Vec *ghost)
{
  PetscFunctionBegin;
  if (!exchange->ghost[place]) {
    PetscCall(VecCreate(PETSC_COMM_SELF, &exchange->ghost[place]));
    PetscCall(VecSetSizes(exchange->ghost[place], exchange->n, exchange->n));
    PetscCall(VecSetType(exchange->ghost[place], place == GALLOP_DEVICE ? VECSEQCUDA : VECSEQ));
    if (place == GALLOP_DEVICE) PetscCall(PetscDeviceContextSynchronize(NULL)); /* PETSc zeros new vectors on the default stream, for which a nonblocking one does not wait */
  }
  *ghost = exchange->ghost[place];
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BeginSF(GallopExchange *exchange, PetscSF sf, GallopPlace place, Vec x, Vec *ghost)
{
  PetscFunctionBegin;
  PetscCall(GetGhost(exchange, place, ghost));
  PetscCall(VecScatterBegin(sf, x, *ghost, INSERT_VALUES, SCATTER_FORWARD));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A new pattern has a new PetscSF, on all processes */
static PetscErrorCode GetSF(Mat A, GallopExchange *exchange, PetscSF *sf)
{
  PetscObjectId id;
  Mat           offdiagonal;

  PetscFunctionBegin;
  PetscCall(MatGetMultPetscSF(A, sf));
  PetscCall(PetscObjectGetId((PetscObject)*sf, &id));
  if (exchange->id == id) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopExchangeReset(exchange));
  PetscCall(MatGallopGetBlocks(A, NULL, &offdiagonal));
  PetscCall(MatGetLocalSize(offdiagonal, NULL, &exchange->n));
  exchange->id = id;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  GallopExchangeBegin - Begins to bring the values of x that the off-diagonal block needs; they are in ghost after GallopExchangeEnd()

  Collective for the first product with a PetscSF, neighbor-wise collective for later ones

  ghost lives where x does, until the next product. Work that needs no ghost value goes between the two calls.
*/
PetscErrorCode GallopExchangeBegin(Mat A, Mat_Gallop *g, Vec x, Vec *ghost)
{
  GallopExchange    *exchange = &g->exchange;
  PetscSF            sf;
  const PetscScalar *array;
  PetscMemType       memtype;
  GallopPlace        place;

  PetscFunctionBegin;
  PetscCall(GetSF(A, exchange, &sf));
  PetscCall(VecGetArrayReadAndMemType(x, &array, &memtype));
  PetscCall(VecRestoreArrayReadAndMemType(x, &array));
  place = PetscMemTypeCUDA(memtype) ? GALLOP_DEVICE : GALLOP_HOST;
  PetscCall(Choose(A, exchange, sf, place));
  exchange->place = place;
  if (exchange->ipc[place]) {
    PetscCall(PetscLogEventBegin(Gallop_GhostBegin, A, x, 0, 0));
    PetscCall(GallopIPCBegin(exchange->ipc[place], x, ghost));
    PetscCall(PetscLogEventEnd(Gallop_GhostBegin, A, x, 0, 0));
  } else PetscCall(BeginSF(exchange, sf, place, x, ghost));
  GallopExchangeCount(g, exchange->ipc[place]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopExchangeEnd(Mat A, Mat_Gallop *g, Vec x, Vec ghost)
{
  const GallopIPC ipc = g->exchange.ipc[g->exchange.place];
  PetscSF         sf;

  PetscFunctionBegin;
  if (ipc) {
    PetscCall(PetscLogEventBegin(Gallop_GhostEnd, A, x, 0, 0));
    PetscCall(GallopIPCEnd(ipc, ghost));
    PetscCall(PetscLogEventEnd(Gallop_GhostEnd, A, x, 0, 0));
  } else {
    PetscCall(MatGetMultPetscSF(A, &sf));
    PetscCall(VecScatterEnd(sf, x, ghost, INSERT_VALUES, SCATTER_FORWARD));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  GallopExchangeGetReverse - What brings z = A^T x together, whose part for rows of other processes is to be in ghost; *ipc is NULL where it is PetscSF, as with vectors at two places

  Collective for the first product with a PetscSF
*/
PetscErrorCode GallopExchangeGetReverse(Mat A, Mat_Gallop *g, Vec x, Vec z, GallopIPC *ipc, Vec *ghost)
{
  GallopExchange   *exchange = &g->exchange;
  const GallopPlace place    = GallopVecOnDevice(x) ? GALLOP_DEVICE : GALLOP_HOST;
  const PetscBool   apart    = (PetscBool)(GallopVecOnDevice(x) != GallopVecOnDevice(z));
  const int         where    = apart ? 2 : (int)place;
  GallopIPCKind     kind     = {PETSC_TRUE, PETSC_TRUE, 0, GALLOP_IPC_SCALAR, 1, PETSC_FALSE};
  PetscBool         alike;
  PetscSF           sf;

  PetscFunctionBegin;
  *ipc = NULL;
  PetscCall(GetSF(A, exchange, &sf));
  if (!exchange->reversechosen[where]) {
    PetscCall(GallopExchangeAgree(A, exchange->way, "Transposed products", where, &alike));
    if (alike && !apart) {
      kind.leaves = exchange->n;
      PetscCall(GallopExchangeAside(A, 1, &kind.aside));
      PetscCall(GallopExchangeConnect(A, sf, exchange->way, place, &kind, "Transposed products", &exchange->reverse[place]));
    }
    for (int k = 0; k < 3; k++)
      if (!alike || k == where) exchange->reversechosen[k] = PETSC_TRUE;
  }
  if (apart) PetscFunctionReturn(PETSC_SUCCESS);
  *ipc = exchange->reverse[place];
  if (*ipc) PetscCall(GetGhost(exchange, place, ghost));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* How the ghost values of a matrix have gone from process to process, if not by PetscSF */
PetscErrorCode MatGallopExchangeView(Mat A, PetscViewer viewer)
{
  Mat_Gallop *g;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  for (int p = 0; p < 2; p++)
    if (g->exchange.ipc[p]) PetscCall(PetscViewerASCIIPrintf(viewer, "Ghost values: by %s\n", g->exchange.ipc[p]->table->name));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* How ghost values would go from process to process, those of a matrix whose vectors are on the GPU where there is one */
PetscErrorCode GallopExchangeView(PetscViewer viewer)
{
  const GallopNCCLFunctions *functions = NULL;
  PetscBool                  device;

  PetscFunctionBegin;
  PetscCall(GallopDeviceAvailable(&device));
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &device, 1, MPI_C_BOOL, MPI_LAND, PetscObjectComm((PetscObject)viewer)));
  if (!device) PetscCall(PetscViewerASCIIPrintf(viewer, "Ghost values: PetscSF, from host to host\n"));
  else if (use_gpu_aware_mpi) PetscCall(PetscViewerASCIIPrintf(viewer, "Ghost values: CUDA IPC within a host, else PetscSF, which hands MPI addresses in GPU memory (-use_gpu_aware_mpi 1)\n"));
  else {
    PetscCall(GallopNCCLOpen(&functions));
    PetscCall(PetscViewerASCIIPrintf(viewer, "Ghost values: CUDA IPC within a host, else %s, else PetscSF, by way of the host: MPI is not handed addresses in GPU memory (-use_gpu_aware_mpi 0)\n", functions ? GallopNCCLName : "NCCL, which is not there"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
