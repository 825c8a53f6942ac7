/* SPDX-License-Identifier: BSD-2-Clause */
/* Clusters: when they pay, and what a format keeps of them, at either place */

#include "../evchyb.h"
#include "../../common/bits.h"
#include "../../gallop/choice.h"
#include <gallop/deviceimpl.h>

#if PetscDefined(HAVE_CUDA)
  #define WHERE(memtype, name, ...) (PetscMemTypeHost(memtype) ? name##_Host(__VA_ARGS__) : name##_Device(__VA_ARGS__))
#else
  #define WHERE(memtype, name, ...) name##_Host(__VA_ARGS__)
#endif

PetscErrorCode EVCHYBClusterPermute(const PetscInt order[], const GallopCSR *csr, EVCHYBClusterMatrix *matrix, PetscBool *fits)
{
  return WHERE(csr->memtype, EVCHYBClusterPermute, order, csr, matrix, fits);
}

PetscErrorCode EVCHYBClusterMatrixFree(EVCHYBClusterMatrix *matrix)
{
  PetscInt    *i = (PetscInt *)matrix->csr.i, *j = (PetscInt *)matrix->csr.j;
  PetscScalar *a = (PetscScalar *)matrix->csr.a;

  PetscFunctionBegin;
  if (!matrix->memory) PetscFunctionReturn(PETSC_SUCCESS);
  if (PetscMemTypeHost(matrix->csr.memtype)) PetscCall(PetscFree3(i, j, a));
  else PetscCall(GallopWorkspaceFree(matrix->memory));
  PetscCall(PetscFree(matrix->copied));
  matrix->memory = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode EVCHYBClusterOrderFree(const GallopCSR *csr, EVCHYBClusterOrder *found)
{
  PetscFunctionBegin;
  if (PetscMemTypeHost(csr->memtype)) PetscCall(PetscFree(found->memory));
  else PetscCall(GallopWorkspaceFree(found->memory));
  found->order  = NULL;
  found->memory = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* EVCHYBClustersTries - Whether clusters are to be looked for, as far as that can be told without a look at the pattern; choose: `auto` may find some */
PetscBool EVCHYBClustersTries(const EVCHYBOptions *options, const GallopCSR *csr, PetscBool choose)
{
  if (options->order == EVCHYB_ORDER_NONE || csr->m != csr->n || csr->m < 2 || !csr->nz || GallopBitsFor((uint64_t)csr->m) > 31) return PETSC_FALSE;
  if (options->order == EVCHYB_ORDER_CLUSTER) return PETSC_TRUE;
  return (PetscBool)(choose && csr->m >= EVCHYB_CLUSTER_COLUMNS && csr->nz >= EVCHYB_CLUSTER_ENTRIES);
}

/* Sectors of x per entry, and the lengths of rows; near: x, its copy and z fit into L2 together */
static PetscErrorCode GetLook(const GallopCSR *csr, GallopLook *look, PetscBool *near, PetscBool *fits)
{
  GallopPattern pattern;
  PetscCount    l2 = EVCHYB_CLUSTER_L2;

  PetscFunctionBegin;
  *fits = PETSC_TRUE;
#if PetscDefined(HAVE_CUDA)
  if (PetscMemTypeCUDA(csr->memtype)) PetscCall(GallopPatternGet_Device(csr, GALLOP_SECTOR, &pattern, &l2, fits));
  else
#endif
    PetscCall(GallopPatternGet_Host(csr, GALLOP_SECTOR, &pattern));
  *near = (PetscBool)(3 * (PetscCount)csr->m * (PetscCount)sizeof(PetscScalar) <= l2);
  if (*fits) PetscCall(GallopPatternLook(csr, &pattern, 0, look));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Bytes per row that a product moves between multiprocessors and L2, which is what bounds it where columns lie anywhere: entries and sectors of x, and where there is an order two numbers of it, a sector of
  x that is copied, its copy, and a sector of z instead of a part of one. These come from memory where the vectors are not near: measured, the order then costs about three times as much.
*/
static PetscLogDouble BytesPerRow(const GallopLook *look, PetscReal sectors, PetscBool ordered, PetscBool near)
{
  const PetscLogDouble sector = 32, entry = sizeof(PetscScalar) + sizeof(GallopColumn), most = PetscMax(sector, (PetscLogDouble)sizeof(PetscScalar));

  return look->mean * (entry + sector * sectors) + (ordered ? (near ? 1 : EVCHYB_CLUSTER_FAR) * (2 * sizeof(PetscInt) + 2 * most + sizeof(PetscScalar)) : 0);
}

static PetscBool Pays(const GallopLook *look, PetscReal before, PetscReal after, PetscBool near)
{
  return (PetscBool)(BytesPerRow(look, after, PETSC_TRUE, near) <= EVCHYB_CLUSTER_GAIN * BytesPerRow(look, before, PETSC_FALSE, near));
}

static const PetscReal Best = 1.0 / 16; /* sectors per entry that an order may lead to */

/* EVCHYBClustersMayPay - Whether the best order would, of a matrix that EVCHYBClustersTries() is for */
PetscErrorCode EVCHYBClustersMayPay(const GallopCSR *csr, PetscBool *may)
{
  GallopLook look;
  PetscBool  near = PETSC_FALSE, fits;

  PetscFunctionBegin;
  PetscCall(GetLook(csr, &look, &near, &fits));
  *may = (PetscBool)(fits && Pays(&look, look.footprint, Best, near));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  EVCHYBClustersChoose - An order by clusters where one is asked for, or pays by the sectors of x that a sample of entries needs before and after

  Input Parameter:
. csr - a matrix that EVCHYBClustersTries() is for

  Output Parameters:
+ found   - its order stays NULL where rows and columns are to stay as they are
. matrix  - the matrix in that order; none without an order
- sectors - of x per entry, before and after
*/
PetscErrorCode EVCHYBClustersChoose(const EVCHYBOptions *options, const GallopCSR *csr, EVCHYBClusterOrder *found, EVCHYBClusterMatrix *matrix, PetscReal sectors[2])
{
  const PetscBool asked = (PetscBool)(options->order == EVCHYB_ORDER_CLUSTER);
  PetscBool       fits, near = PETSC_FALSE;
  GallopLook      look;

  PetscFunctionBegin;
  *found         = (EVCHYBClusterOrder){.order = NULL};
  matrix->memory = NULL;
  PetscCall(GetLook(csr, &look, &near, &fits));
  sectors[0] = sectors[1] = fits ? look.footprint : 0;
  if (!asked && !(fits && Pays(&look, sectors[0], Best, near))) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(WHERE(csr->memtype, EVCHYBClusterFind, csr, asked ? 0 : (PetscReal)EVCHYB_CLUSTER_INSIDE, found, &fits));
  if (found->order) PetscCall(EVCHYBClusterPermute(found->order, csr, matrix, &fits));
  if (matrix->memory) PetscCall(GetLook(&matrix->csr, &look, &near, &fits));
  if (matrix->memory && fits) sectors[1] = look.footprint;
  PetscCall(PetscInfo(NULL, "EVC-HYB: %" PetscCount_FMT " clusters, %.2f of the entries within them; %.3f sectors of x per entry as the matrix is, %.3f in their order\n", found->counts.num,
                      (double)found->counts.inside / (double)PetscMax(found->counts.entries, 1), (double)sectors[0], (double)sectors[1]));
  if (!fits || (!asked && !Pays(&look, sectors[0], sectors[1], near))) PetscCall(EVCHYBClusterMatrixFree(matrix));
  if (!matrix->memory) PetscCall(EVCHYBClusterOrderFree(csr, found));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* EVCHYBClustersCreate - What products need of an order. *clusters stays NULL where there is no room, or it would take more than maxbytes, 0 for no limit. */
PetscErrorCode EVCHYBClustersCreate(const GallopCSR *csr, const EVCHYBClusterOrder *found, const PetscReal sectors[2], PetscCount maxbytes, EVCHYBClusters **clusters)
{
  const size_t    n = ((size_t)csr->m + 31) / 32 * 32, bytes = n * (2 * sizeof(PetscInt) + sizeof(PetscScalar)); /* each array as aligned as the first */
  const PetscBool host = PetscMemTypeHost(csr->memtype);
  EVCHYBClusters *c;
  void           *memory = NULL;

  PetscFunctionBegin;
  *clusters = NULL;
  if (maxbytes && bytes >= (size_t)maxbytes) PetscFunctionReturn(PETSC_SUCCESS);
  if (!host) {
    PetscCall(GallopDeviceMalloc(bytes, &memory));
    if (!memory) PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscNew(&c));
  c->m       = csr->m;
  c->memtype = csr->memtype;
  c->num     = found->counts.num;
  c->before  = sectors[0];
  c->after   = sectors[1];
  c->bytes   = bytes;
  if (host) {
    PetscCall(PetscMalloc3(c->m, &c->order, c->m, &c->x, c->m, &c->z));
    PetscCall(PetscArraycpy(c->order, found->order, c->m));
    c->bytes = (size_t)c->m * (sizeof(PetscInt) + 2 * sizeof(PetscScalar));
  } else {
    c->x      = (PetscScalar *)memory;
    c->order  = (PetscInt *)(c->x + n);
    c->places = c->order + n;
    PetscCall(GallopDeviceCopy(c->order, found->order, (size_t)c->m * sizeof(*c->order)));
  }
  *clusters = c;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* EVCHYBClustersCopyToHost - A copy on the host of what is at either place, for tests; EVCHYBClustersDestroy() frees it */
PetscErrorCode EVCHYBClustersCopyToHost(const EVCHYBClusters *clusters, EVCHYBClusters **copy)
{
  EVCHYBClusters *h;

  PetscFunctionBegin;
  PetscCall(PetscNew(&h));
  *h         = *clusters;
  h->memtype = PETSC_MEMTYPE_HOST;
  PetscCall(PetscMalloc3(h->m, &h->order, h->m, &h->x, h->m, &h->z));
  PetscCall(GallopCopyToHost(h->order, clusters->memtype, clusters->order, (size_t)h->m * sizeof(*h->order)));
  *copy = h;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode EVCHYBClustersDestroy(EVCHYBClusters **clusters)
{
  EVCHYBClusters *c = *clusters;

  PetscFunctionBegin;
  if (!c) PetscFunctionReturn(PETSC_SUCCESS);
  if (PetscMemTypeHost(c->memtype)) PetscCall(PetscFree3(c->order, c->x, c->z));
  else PetscCall(GallopDeviceFree(c->x)); /* where the one allocation begins */
  PetscCall(PetscFree(*clusters));
  PetscFunctionReturn(PETSC_SUCCESS);
}
