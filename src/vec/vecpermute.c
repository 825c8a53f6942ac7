/* SPDX-License-Identifier: BSD-2-Clause */
/* Permuting vectors by orders that stay within each MPI process, where the vectors live */

#include <gallop/matgallopimpl.h>
#include "vecpermute.h"

#define ORDER_CONTEXT "GallopOrder"

/* What an index set keeps once it has permuted a vector: that it is a permutation of what each process owns, and its copy on the GPU */
typedef struct {
  PetscInt n, rstart;
  void    *device; /* local numbers; NULL until a vector on the GPU comes */
} Order;

static PetscErrorCode OrderDestroy(PetscCtxRt ctx)
{
  Order *order = *(Order **)ctx;

  PetscFunctionBegin;
  PetscCall(GallopDeviceFree(order->device));
  PetscCall(PetscFree(order));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopOrderCheck - That an index set permutes the n entries that this process owns, from number rstart on */
PetscErrorCode GallopOrderCheck(IS is, PetscInt n, PetscInt rstart)
{
  const PetscInt *order;
  PetscBT         seen;
  PetscInt        local, k = 0, bad = 0;

  PetscFunctionBegin;
  PetscCall(ISGetLocalSize(is, &local));
  PetscCheck(local == n, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "The order has %" PetscInt_FMT " entries on this process, which owns %" PetscInt_FMT, local, n);
  PetscCall(PetscBTCreate(n, &seen));
  PetscCall(ISGetIndices(is, &order));
  while (k < n && order[k] >= rstart && order[k] < rstart + n && !PetscBTLookupSet(seen, order[k] - rstart)) k++;
  if (k < n) bad = order[k];
  PetscCall(ISRestoreIndices(is, &order));
  PetscCall(PetscBTDestroy(&seen));
  PetscCheck(k == n || (bad >= rstart && bad < rstart + n), PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Entry %" PetscInt_FMT " of the order is %" PetscInt_FMT ", not one of %" PetscInt_FMT " to %" PetscInt_FMT ", which this process owns: entries stay on their process", k, bad, rstart, rstart + n - 1);
  PetscCheck(k == n, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The order is no permutation: it has %" PetscInt_FMT " twice", bad);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopOrderKnown - Vectors of this layout may be permuted by an index set that is a permutation for certain */
PetscErrorCode GallopOrderKnown(IS is, PetscInt n, PetscInt rstart)
{
  Order *order;

  PetscFunctionBegin;
  PetscCall(PetscNew(&order));
  order->n      = n;
  order->rstart = rstart;
  PetscCall(PetscObjectContainerCompose((PetscObject)is, ORDER_CONTEXT, order, OrderDestroy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Looked at once for all vectors of one layout */
static PetscErrorCode OrderGet(IS is, PetscInt n, PetscInt rstart, Order **order)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectContainerQuery((PetscObject)is, ORDER_CONTEXT, order));
  if (*order && (*order)->n == n && (*order)->rstart == rstart) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopOrderCheck(is, n, rstart));
  PetscCall(GallopOrderKnown(is, n, rstart));
  PetscCall(PetscObjectContainerQuery((PetscObject)is, ORDER_CONTEXT, order));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PermuteHost(IS is, PetscInt rstart, PetscBool inverse, Vec x, Vec y)
{
  PetscInt           n;
  const PetscInt    *order;
  const PetscScalar *from;
  PetscScalar       *to, *copy = NULL;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(x, &n));
  PetscCall(ISGetIndices(is, &order));
  if (x == y) {
    PetscCall(PetscMalloc1(n, &copy));
    PetscCall(VecGetArray(y, &to));
    PetscCall(PetscArraycpy(copy, to, n));
    from = copy;
  } else {
    PetscCall(VecGetArrayRead(x, &from));
    PetscCall(VecGetArrayWrite(y, &to));
  }
  if (inverse)
    for (PetscInt k = 0; k < n; k++) to[order[k] - rstart] = from[k];
  else
    for (PetscInt k = 0; k < n; k++) to[k] = from[order[k] - rstart];
  if (x == y) PetscCall(VecRestoreArray(y, &to));
  else {
    PetscCall(VecRestoreArrayWrite(y, &to));
    PetscCall(VecRestoreArrayRead(x, &from));
  }
  PetscCall(PetscFree(copy));
  PetscCall(ISRestoreIndices(is, &order));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PetscDefined(HAVE_CUDA)
static PetscErrorCode OrderToDevice(IS is, Order *order)
{
  const PetscInt *k;
  PetscInt       *local;

  PetscFunctionBegin;
  if (order->device || !order->n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopDeviceMalloc(order->n * sizeof(PetscInt), &order->device));
  if (!order->device) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(ISGetIndices(is, &k));
  PetscCall(PetscMalloc1(order->n, &local));
  for (PetscInt i = 0; i < order->n; i++) local[i] = k[i] - order->rstart;
  PetscCall(GallopDeviceCopyIn(order->device, local, order->n * sizeof(PetscInt))); /* pageable memory has been read when this returns */
  PetscCall(PetscFree(local));
  PetscCall(ISRestoreIndices(is, &k));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* done is false where a vector lives on the host, or the GPU has no room for what is needed */
static PetscErrorCode PermuteDevice(IS is, Order *order, PetscBool inverse, Vec x, Vec y, PetscBool *done)
{
  const size_t       bytes = (size_t)order->n * sizeof(PetscScalar);
  const PetscScalar *from;
  PetscScalar       *to;
  PetscMemType       mx, my;
  void              *copy = NULL;

  PetscFunctionBegin;
  if (x == y) {
    PetscCall(VecGetArrayAndMemType(y, &to, &my));
    from = to;
    mx   = my;
  } else {
    PetscCall(VecGetArrayReadAndMemType(x, &from, &mx));
    PetscCall(VecGetArrayWriteAndMemType(y, &to, &my));
  }
  *done = (PetscBool)(PetscMemTypeCUDA(mx) && PetscMemTypeCUDA(my));
  if (*done) PetscCall(OrderToDevice(is, order));
  if (*done && x == y) {
    PetscCall(GallopWorkspaceMalloc(bytes, &copy));
    if (copy) PetscCall(GallopDeviceCopy(copy, to, bytes));
    from = (const PetscScalar *)copy;
  }
  if (order->n && (!order->device || (x == y && !copy))) *done = PETSC_FALSE;
  if (*done) {
    PetscCall(PetscLogGpuTimeBegin());
    PetscCall(GallopDevicePermute(order->n, (const PetscInt *)order->device, inverse, from, to));
    PetscCall(PetscLogGpuTimeEnd());
  }
  if (copy) PetscCall(GallopWorkspaceFree(copy));
  if (x == y) PetscCall(VecRestoreArrayAndMemType(y, &to));
  else {
    PetscCall(VecRestoreArrayWriteAndMemType(y, &to));
    PetscCall(VecRestoreArrayReadAndMemType(x, &from));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/*@
  VecGallopPermute - Permutes the entries that each MPI process owns of a vector, where the vector lives

  Collective

  Input Parameters:
+ x       - the vector
. order   - a permutation of the global numbers of the entries that each process owns, such as `MatGetOrdering()` with `MATORDERINGGALLOP` gives
- inverse - `PETSC_FALSE` for `y[i] = x[order[i]]`, `PETSC_TRUE` for `y[order[i]] = x[i]`, which undoes it

  Output Parameter:
. y - the permuted vector, of the layout of `x`; `x` itself to permute in place

  Level: intermediate

  Notes:
  Vectors that both live on the GPU are permuted there. The first time, `order` is checked and copied to the GPU, where it stays with the `IS`; from then on nothing is copied between host and GPU.
  So its entries must not be changed afterwards: another order is another `IS`.

  In place it takes room for a copy of the vector meanwhile. `VecPermute()` of PETSc works in place and on the host only.

.seealso: `MatGallopPermute()`, `MATORDERINGGALLOP`, `PCGALLOPREORDER`, `VecPermute()`
@*/
PetscErrorCode VecGallopPermute(Vec x, IS order, PetscBool inverse, Vec y)
{
  Order    *o;
  PetscInt  n, rstart, ny;
  PetscBool done = PETSC_FALSE;

  PetscFunctionBegin;
  PetscValidHeaderSpecific(x, VEC_CLASSID, 1);
  PetscValidHeaderSpecific(order, IS_CLASSID, 2);
  PetscValidHeaderSpecific(y, VEC_CLASSID, 4);
  PetscCall(VecGetLocalSize(x, &n));
  PetscCall(VecGetLocalSize(y, &ny));
  PetscCheck(n == ny, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "The vectors differ in local size: %" PetscInt_FMT " and %" PetscInt_FMT, n, ny);
  PetscCall(VecGetOwnershipRange(x, &rstart, NULL));
  PetscCall(OrderGet(order, n, rstart, &o));
  PetscCall(PetscLogEventBegin(Gallop_VecPermute, x, y, 0, 0));
#if PetscDefined(HAVE_CUDA)
  {
    PetscBool device;

    PetscCall(GallopDeviceAvailable(&device));
    if (device) PetscCall(PermuteDevice(order, o, inverse, x, y, &done));
  }
#endif
  if (!done) PetscCall(PermuteHost(order, rstart, inverse, x, y));
  PetscCall(PetscLogEventEnd(Gallop_VecPermute, x, y, 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}
