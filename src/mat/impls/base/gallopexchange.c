/* SPDX-License-Identifier: BSD-2-Clause */
/*
  The exchange of ghost values for products of MPI matrices: into the neighbors' memory, gallopexchangeipc.c, or by PetscSF
*/

#include <petscdevice.h>
#include <gallop/matgallopimpl.h>

PetscErrorCode GallopExchangeReset(GallopExchange *exchange)
{
  PetscFunctionBegin;
  for (int p = 0; p < 2; p++) {
    PetscCall(VecDestroy(&exchange->ghost[p]));
    PetscCall(GallopIPCDestroy(&exchange->ipc[p]));
    exchange->chosen[p] = PETSC_FALSE;
  }
  exchange->id = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What writes into the neighbors' memory, if that is wanted; on all processes alike */
static const GallopIPCTable *TableOf(GallopExchangeWay way, GallopPlace place)
{
  if (place == GALLOP_HOST) return way == GALLOP_EXCHANGE_SHARED ? &GallopIPCTable_Shared : NULL;
#if PetscDefined(HAVE_CUDA)
  return way == GALLOP_EXCHANGE_SF ? NULL : &GallopIPCTable_Device;
#else
  return NULL;
#endif
}

/* The way of the ghost values of vectors at a place. The place is the same on all processes, since the type of the vectors is. */
static PetscErrorCode Choose(Mat A, GallopExchange *exchange, PetscSF sf, GallopPlace place)
{
  const GallopIPCTable *table = TableOf(exchange->way, place);
  const char           *why   = NULL, *how;
  GallopIPC             ipc   = NULL;

  PetscFunctionBegin;
  if (exchange->chosen[place]) PetscFunctionReturn(PETSC_SUCCESS);
  if (table) PetscCall(GallopIPCCreate(PetscObjectComm((PetscObject)A), sf, exchange->n, table, &ipc, &why));
  else if (exchange->way == GALLOP_EXCHANGE_IPC) why = "vectors are on the host";
  if (ipc) {
    PetscCall((*table->describe)(ipc, &how));
    PetscCall(PetscInfo(A, "Ghost values: by %s, with %d neighbors of which %d give values; %s waits for them\n", table->name, ipc->nneighbors, ipc->ngive, how));
  } else if (why) PetscCall(PetscInfo(A, "Ghost values: by PetscSF and not straight to the neighbors' memory, since %s\n", why));
  exchange->ipc[place]    = ipc;
  exchange->chosen[place] = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BeginSF(GallopExchange *exchange, PetscSF sf, GallopPlace place, Vec x, Vec *ghost)
{
  PetscFunctionBegin;
  if (!exchange->ghost[place]) {
    PetscCall(VecCreate(PETSC_COMM_SELF, &exchange->ghost[place]));
    PetscCall(VecSetSizes(exchange->ghost[place], exchange->n, exchange->n));
    PetscCall(VecSetType(exchange->ghost[place], place == GALLOP_DEVICE ? VECSEQCUDA : VECSEQ));
    if (place == GALLOP_DEVICE) PetscCall(PetscDeviceContextSynchronize(NULL)); /* PETSc zeros new vectors on the default stream, for which a nonblocking one does not wait */
  }
  *ghost = exchange->ghost[place];
  PetscCall(VecScatterBegin(sf, x, *ghost, INSERT_VALUES, SCATTER_FORWARD));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  GallopExchangeBegin - Begins to bring the values of x that the off-diagonal block needs; they are in ghost after GallopExchangeEnd()

  Collective for the first product with a PetscSF, neighbor-wise collective for later ones

  ghost lives where x does, until the product after next. Work that needs no ghost value goes between the two calls.
*/
PetscErrorCode GallopExchangeBegin(Mat A, Mat_Gallop *g, Vec x, Vec *ghost)
{
  GallopExchange    *exchange = &g->exchange;
  PetscSF            sf;
  PetscObjectId      id;
  Mat                offdiagonal;
  const PetscScalar *array;
  PetscMemType       memtype;
  GallopPlace        place;

  PetscFunctionBegin;
  PetscCall(MatGetMultPetscSF(A, &sf));
  PetscCall(PetscObjectGetId((PetscObject)sf, &id));
  if (exchange->id != id) { /* a new pattern has a new PetscSF, on all processes */
    PetscCall(GallopExchangeReset(exchange));
    PetscCall(MatGallopGetBlocks(A, NULL, &offdiagonal));
    PetscCall(MatGetLocalSize(offdiagonal, NULL, &exchange->n));
    exchange->id = id;
  }
  PetscCall(VecGetArrayReadAndMemType(x, &array, &memtype));
  PetscCall(VecRestoreArrayReadAndMemType(x, &array));
  place = PetscMemTypeCUDA(memtype) ? GALLOP_DEVICE : GALLOP_HOST;
  PetscCall(Choose(A, exchange, sf, place));
  exchange->current = exchange->ipc[place];
  if (exchange->current) {
    PetscCall(PetscLogEventBegin(Gallop_GhostBegin, A, x, 0, 0));
    PetscCall(GallopIPCBegin(exchange->current, x, ghost));
    PetscCall(PetscLogEventEnd(Gallop_GhostBegin, A, x, 0, 0));
    g->stats.exchanges_ipc++;
  } else {
    PetscCall(BeginSF(exchange, sf, place, x, ghost));
    g->stats.exchanges_sf++;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopExchangeEnd(Mat A, Mat_Gallop *g, Vec x, Vec ghost)
{
  PetscSF sf;

  PetscFunctionBegin;
  if (g->exchange.current) {
    PetscCall(PetscLogEventBegin(Gallop_GhostEnd, A, x, 0, 0));
    PetscCall(GallopIPCEnd(g->exchange.current, ghost));
    PetscCall(PetscLogEventEnd(Gallop_GhostEnd, A, x, 0, 0));
  } else {
    PetscCall(MatGetMultPetscSF(A, &sf));
    PetscCall(VecScatterEnd(sf, x, ghost, INSERT_VALUES, SCATTER_FORWARD));
  }
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
  PetscBool device;

  PetscFunctionBegin;
  PetscCall(GallopDeviceAvailable(&device));
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &device, 1, MPI_C_BOOL, MPI_LAND, PetscObjectComm((PetscObject)viewer)));
  if (!device) PetscCall(PetscViewerASCIIPrintf(viewer, "Ghost values: PetscSF, from host to host\n"));
  else if (use_gpu_aware_mpi) PetscCall(PetscViewerASCIIPrintf(viewer, "Ghost values: CUDA IPC within a host, else PetscSF, which hands MPI addresses in GPU memory (-use_gpu_aware_mpi 1)\n"));
  else PetscCall(PetscViewerASCIIPrintf(viewer, "Ghost values: CUDA IPC within a host, else PetscSF, by way of the host: MPI is not handed addresses in GPU memory (-use_gpu_aware_mpi 0)\n"));
  PetscFunctionReturn(PETSC_SUCCESS);
}
