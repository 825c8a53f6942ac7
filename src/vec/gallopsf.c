/* SPDX-License-Identifier: BSD-2-Clause */
/*
  PETSCSFGALLOP: PetscSF's type basic, of which some communications write straight into the memory of other processes, as the ghost values of Gallop matrices go

  What is begun and ended is decided by what all processes know alike: unit, operation, direction, and whether another communication of the PetscSF is under way. Where the arrays are they do not
  know alike, since an empty array can be on the host where others are on the GPU. So the processes agree on that when the first communication of a kind begins.
*/

#include <gallop/matgallopimpl.h>
#include <petsc/private/sfimpl.h>
#include "gallopsf.h"

#define GALLOP_SF "PetscSFGallop"

/* Where arrays are that have edges, as bits */
enum { ON_HOST = 1, ON_GPU = 2, ELSEWHERE = 4 };

/* Communications of one direction and unit */
typedef struct {
  PetscBool   reverse; /* from leaves to roots */
  PetscInt    bs;      /* real numbers of a unit */
  PetscInt    places;  /* bits of all processes */
  PetscInt64  uses;
  GallopPlace place;
  GallopIPC   ipc; /* NULL where basic does it */
} Kind;

/* An array of a communication. With a copy it is not where the kind's arrays are. */
typedef struct {
  void        *array;
  PetscMemType memtype;
  size_t       bytes; /* of units that edges can refer to */
  PetscReal   *copy;
} Array;

typedef struct {
  struct _PetscSFOps parent;
  GallopExchangeWay  way;
  int                nkinds;
  Kind              *kinds;
  PetscInt           underway; /* communications that have begun and not ended */
  PetscBool          ours;     /* whether one of them is ours: */
  int                kind;
  Array              from, to;
  PetscInt64         exchanges[2]; /* by basic, and ours */
} SF_Gallop;

static PetscErrorCode (*ParentCreate)(PetscSF) = NULL;

static const char *const       WayNames[] = {"auto", "ipc", "basic", "shared"};
static const GallopExchangeWay Ways[]     = {GALLOP_EXCHANGE_AUTO, GALLOP_EXCHANGE_IPC, GALLOP_EXCHANGE_SF, GALLOP_EXCHANGE_SHARED};

static PetscErrorCode GetContext(PetscSF sf, SF_Gallop **g)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectContainerQuery((PetscObject)sf, GALLOP_SF, g));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ContextDestroy(PetscCtxRt ctx)
{
  return PetscFree(*(SF_Gallop **)ctx);
}

/* ---------------------------------------------------------------- what processes agree on */

static PetscErrorCode HasEdges(PetscSF sf, PetscBool root, PetscBool *has)
{
  PetscMPIInt     n;
  const PetscInt *offset;

  PetscFunctionBegin;
  if (root) PetscCall(PetscSFGetLeafRanks(sf, &n, NULL, &offset, NULL));
  else PetscCall(PetscSFGetRootRanks(sf, &n, NULL, &offset, NULL, NULL));
  *has = (PetscBool)(n && offset[n] > 0);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscInt PlaceBit(PetscMemType memtype)
{
  if (PetscMemTypeHost(memtype)) return ON_HOST;
  return PetscMemTypeCUDA(memtype) ? ON_GPU : ELSEWHERE;
}

/* Collective: where arrays with edges are, on all processes, and if it is one place that the way is for, connections */
static PetscErrorCode Agree(PetscSF sf, SF_Gallop *g, const PetscMemType memtype[2], Kind *kind)
{
  const GallopIPCTable *table = NULL;
  const GallopIPCKind   what  = {kind->reverse, PETSC_TRUE, -1, kind->bs, 1, PETSC_FALSE};
  const char           *why = "its arrays are not all on the GPU", *direction = kind->reverse ? "leaves to roots" : "roots to leaves", *how;
  PetscBool             has = PETSC_FALSE;

  PetscFunctionBegin;
  kind->places = 0;
  for (int root = 0; root < 2; root++) {
    PetscCall(HasEdges(sf, (PetscBool)root, &has));
    if (has) kind->places |= PlaceBit(memtype[root]);
  }
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, &kind->places, 1, MPIU_INT, MPI_BOR, PetscObjectComm((PetscObject)sf)));
  kind->place = kind->places == ON_GPU ? GALLOP_DEVICE : GALLOP_HOST;
  if (kind->places == ON_GPU || kind->places == ON_HOST) table = GallopExchangeTable(g->way, kind->place);
  if (table) PetscCall(GallopIPCConnect(PetscObjectComm((PetscObject)sf), sf, &what, table, &kind->ipc, &why));
  if (kind->ipc) {
    PetscCall((*table->describe)(kind->ipc, &how));
    PetscCall(PetscInfo(sf, "Units of %" PetscInt_FMT " numbers from %s: by %s; %s waits for them\n", kind->bs, direction, table->name, how));
  } else PetscCall(PetscInfo(sf, "Units of %" PetscInt_FMT " numbers from %s: by basic, since %s\n", kind->bs, direction, why));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Kinds that began with arrays on the host are asked again after 1, 2, 4, ... communications: the program may have moved to the GPU */
static PetscErrorCode GetKind(PetscSF sf, SF_Gallop *g, PetscBool reverse, PetscInt bs, const PetscMemType memtype[2], int *number)
{
  Kind *kind;
  int   k = 0;

  PetscFunctionBegin;
  while (k < g->nkinds && (g->kinds[k].reverse != reverse || g->kinds[k].bs != bs)) k++;
  if (k == g->nkinds) {
    PetscCall(PetscRealloc((g->nkinds + 1) * sizeof(*g->kinds), &g->kinds));
    PetscCall(PetscMemzero(&g->kinds[g->nkinds], sizeof(*g->kinds)));
    g->kinds[k].reverse = reverse;
    g->kinds[k].bs      = bs;
    g->nkinds++;
  }
  kind = &g->kinds[k];
  if (!kind->uses || (!kind->ipc && (kind->places & ON_HOST) && !(kind->uses & (kind->uses - 1)))) PetscCall(Agree(sf, g, memtype, kind));
  kind->uses++;
  *number = k;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- arrays that are not where they were when processes agreed */

static PetscErrorCode ArrayBegin(PetscSF sf, PetscBool root, const Kind *kind, void *data, PetscMemType memtype, Array *array)
{
  PetscBool has = PETSC_FALSE;
  PetscInt  last;

  PetscFunctionBegin;
  PetscCall(HasEdges(sf, root, &has));
  *array = (Array){data, memtype, 0, NULL};
  if (!has || PlaceBit(memtype) == kind->places) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscSFGetLeafRange(sf, NULL, &last));
  array->bytes = (size_t)(root ? sf->nroots : last + 1) * (size_t)kind->bs * sizeof(PetscReal);
  if (kind->place == GALLOP_DEVICE) {
    PetscCall(GallopDeviceMalloc(array->bytes, (void **)&array->copy));
    PetscCheck(array->copy, PETSC_COMM_SELF, PETSC_ERR_MEM, "No room on the GPU for a copy of an array of the host");
    PetscCall(GallopDeviceCopyIn(array->copy, data, array->bytes));
    PetscCall(PetscDeviceContextSynchronize(NULL)); /* the host's may be pinned, and change soon */
  } else {
    PetscCall(PetscMalloc(array->bytes, &array->copy));
    PetscCall(GallopCopyToHost(array->copy, memtype, data, array->bytes));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ArrayEnd(const Kind *kind, Array *array, PetscBool write)
{
  PetscFunctionBegin;
  if (!array->copy) PetscFunctionReturn(PETSC_SUCCESS);
  if (kind->place == GALLOP_DEVICE) {
    if (write) PetscCall(GallopCopyToHost(array->array, PETSC_MEMTYPE_CUDA, array->copy, array->bytes));
    PetscCall(GallopDeviceFree(array->copy));
  } else {
    if (write) PetscCall(GallopDeviceCopyIn(array->array, array->copy, array->bytes));
    PetscCall(PetscFree(array->copy));
  }
  array->copy = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscReal *ArrayOf(const Array *array)
{
  return array->copy ? array->copy : (PetscReal *)array->array;
}

/* ---------------------------------------------------------------- communications */

static PetscBool Adds(MPI_Op op)
{
  return (PetscBool)(op == MPI_SUM || op == MPIU_SUM);
}

/* Begins a communication if it is ours; memtype: of leaves and of roots */
static PetscErrorCode Begin(PetscSF sf, SF_Gallop *g, MPI_Datatype unit, PetscBool reverse, const PetscMemType memtype[2], const void *from, void *to, MPI_Op op, PetscBool *ours)
{
  PetscInt64 bs   = 0;
  int        kind = -1;

  PetscFunctionBegin;
  if (g->way != GALLOP_EXCHANGE_SF && (op == MPI_REPLACE || Adds(op))) PetscCall(PetscSFGallopCountReals(unit, &bs));
  if (bs) PetscCall(GetKind(sf, g, reverse, (PetscInt)bs, memtype, &kind));
  *ours = (PetscBool)(bs && g->kinds[kind].ipc && !g->underway);
  g->underway++;
  g->exchanges[*ours]++;
  if (*ours) {
    const Kind *k = &g->kinds[kind];

    g->ours = PETSC_TRUE;
    g->kind = kind;
    PetscCall(ArrayBegin(sf, PetscNot(reverse), k, (void *)from, memtype[reverse ? 0 : 1], &g->from));
    PetscCall(ArrayBegin(sf, reverse, k, to, memtype[reverse ? 1 : 0], &g->to));
    if (sf->unknown_input_stream) PetscCall((*k->ipc->table->finish)());
    PetscCall(GallopIPCScatterBegin(k->ipc, ArrayOf(&g->from), ArrayOf(&g->to), Adds(op)));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Ends a communication if it is ours, as its arrays tell. Two that have the same ones are under way only where nothing is received: which of them ends then does not matter.
*/
static PetscErrorCode End(PetscSF sf, SF_Gallop *g, MPI_Datatype unit, PetscBool reverse, const void *from, const void *to, MPI_Op op, PetscBool *ours)
{
  PetscInt64 bs = 0;

  PetscFunctionBegin;
  *ours = PETSC_FALSE;
  g->underway--;
  if (!g->ours || g->from.array != from || g->to.array != to || g->kinds[g->kind].reverse != reverse) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscSFGallopCountReals(unit, &bs));
  *ours = (PetscBool)(bs == g->kinds[g->kind].bs);
  if (*ours) {
    const Kind          *k     = &g->kinds[g->kind];
    const PetscLogDouble flops = ((PetscLogDouble)k->ipc->list[0].nfrom + (PetscLogDouble)k->ipc->list[1].nfrom) * (PetscLogDouble)bs / GALLOP_IPC_SCALAR; /* as basic counts them */

    PetscCall(GallopIPCScatterEnd(k->ipc, ArrayOf(&g->to), Adds(op)));
    if (sf->unknown_input_stream) PetscCall((*k->ipc->table->finish)());
    PetscCall(ArrayEnd(k, &g->from, PETSC_FALSE));
    PetscCall(ArrayEnd(k, &g->to, PETSC_TRUE));
    if (Adds(op) && k->place == GALLOP_DEVICE) PetscCall(PetscLogGpuFlops(flops));
    else if (Adds(op)) PetscCall(PetscLogFlops(flops));
    g->ours = PETSC_FALSE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PetscSFBcastBegin_Gallop(PetscSF sf, MPI_Datatype unit, PetscMemType rootmtype, const void *rootdata, PetscMemType leafmtype, void *leafdata, MPI_Op op)
{
  const PetscMemType memtype[2] = {leafmtype, rootmtype};
  SF_Gallop         *g;
  PetscBool          ours = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(GetContext(sf, &g));
  PetscCall(Begin(sf, g, unit, PETSC_FALSE, memtype, rootdata, leafdata, op, &ours));
  if (!ours) PetscCall((*g->parent.BcastBegin)(sf, unit, rootmtype, rootdata, leafmtype, leafdata, op));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PetscSFBcastEnd_Gallop(PetscSF sf, MPI_Datatype unit, const void *rootdata, void *leafdata, MPI_Op op)
{
  SF_Gallop *g;
  PetscBool  ours = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(GetContext(sf, &g));
  PetscCall(End(sf, g, unit, PETSC_FALSE, rootdata, leafdata, op, &ours));
  if (!ours) PetscCall((*g->parent.BcastEnd)(sf, unit, rootdata, leafdata, op));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PetscSFReduceBegin_Gallop(PetscSF sf, MPI_Datatype unit, PetscMemType leafmtype, const void *leafdata, PetscMemType rootmtype, void *rootdata, MPI_Op op)
{
  const PetscMemType memtype[2] = {leafmtype, rootmtype};
  SF_Gallop         *g;
  PetscBool          ours = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(GetContext(sf, &g));
  PetscCall(Begin(sf, g, unit, PETSC_TRUE, memtype, leafdata, rootdata, op, &ours));
  if (!ours) PetscCall((*g->parent.ReduceBegin)(sf, unit, leafmtype, leafdata, rootmtype, rootdata, op));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PetscSFReduceEnd_Gallop(PetscSF sf, MPI_Datatype unit, const void *leafdata, void *rootdata, MPI_Op op)
{
  SF_Gallop *g;
  PetscBool  ours = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(GetContext(sf, &g));
  PetscCall(End(sf, g, unit, PETSC_TRUE, leafdata, rootdata, op, &ours));
  if (!ours) PetscCall((*g->parent.ReduceEnd)(sf, unit, leafdata, rootdata, op));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---------------------------------------------------------------- the type */

static PetscErrorCode PetscSFReset_Gallop(PetscSF sf)
{
  SF_Gallop *g;

  PetscFunctionBegin;
  PetscCall(GetContext(sf, &g));
  PetscCheck(!g->ours, PetscObjectComm((PetscObject)sf), PETSC_ERR_ARG_WRONGSTATE, "Outstanding operation has not been completed");
  for (int k = 0; k < g->nkinds; k++) PetscCall(GallopIPCDestroy(&g->kinds[k].ipc));
  PetscCall(PetscFree(g->kinds));
  g->nkinds = 0;
#if PetscDefined(HAVE_DEVICE)
  for (int i = 0; i < 2; i++) PetscCall(PetscSFFree(sf, PETSC_MEMTYPE_DEVICE, sf->rmine_d[i])); /* PetscSFSetType() calls this and forgets how to free them; PetscSFReset() does later */
#endif
  PetscCall((*g->parent.Reset)(sf));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PetscSFDestroy_Gallop(PetscSF sf)
{
  SF_Gallop *g;
  PetscErrorCode (*destroy)(PetscSF);

  PetscFunctionBegin;
  PetscCall(PetscSFReset_Gallop(sf));
  PetscCall(GetContext(sf, &g));
  destroy = g->parent.Destroy;
  PetscCall(PetscObjectCompose((PetscObject)sf, GALLOP_SF, NULL)); /* destroys g */
  PetscCall((*destroy)(sf));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PetscSFSetFromOptions_Gallop(PetscSF sf, PetscOptionItems PetscOptionsObject)
{
  SF_Gallop *g;
  PetscInt   way;
  PetscBool  set;

  PetscFunctionBegin;
  PetscCall(GetContext(sf, &g));
  if (g->parent.SetFromOptions) PetscCall((*g->parent.SetFromOptions)(sf, PetscOptionsObject));
  for (way = 0; Ways[way] != g->way; way++) { }
  PetscCall(PetscOptionsEList("-sf_gallop_exchange", "How values of arrays on the GPU go from process to process", "PETSCSFGALLOP", WayNames, 4, WayNames[way], &way, &set));
  PetscCheck(Ways[way] == g->way || !g->nkinds, PetscObjectComm((PetscObject)sf), PETSC_ERR_ARG_WRONGSTATE, "-sf_gallop_exchange cannot change after the first communication");
  g->way = Ways[way];
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PetscSFDuplicate_Gallop(PetscSF sf, PetscSFDuplicateOption opt, PetscSF newsf)
{
  SF_Gallop *g, *copy;

  PetscFunctionBegin;
  PetscCall(GetContext(sf, &g));
  PetscCall(GetContext(newsf, &copy));
  if (g->parent.Duplicate) PetscCall((*g->parent.Duplicate)(sf, opt, newsf));
  if (copy) copy->way = g->way;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Says how values have gone so far */
static PetscErrorCode PetscSFView_Gallop(PetscSF sf, PetscViewer viewer)
{
  SF_Gallop        *g;
  PetscBool         ascii;
  PetscViewerFormat format;

  PetscFunctionBegin;
  PetscCall(GetContext(sf, &g));
  if (g->parent.View) PetscCall((*g->parent.View)(sf, viewer));
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &ascii));
  if (!ascii) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscViewerGetFormat(viewer, &format));
  for (int k = 0; k < g->nkinds && format != PETSC_VIEWER_ASCII_MATLAB; k++) {
    const Kind *kind = &g->kinds[k];

    PetscCall(
      PetscViewerASCIIPrintf(viewer, "  %s, units of %" PetscInt_FMT " numbers: by %s\n", kind->reverse ? "From leaves to roots" : "From roots to leaves", kind->bs, kind->ipc ? kind->ipc->table->name : PETSCSFBASIC));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  PetscSFGallopGetExchanges - Gets how many communications of a `PetscSF` of type `PETSCSFGALLOP` have begun on this MPI process, by their way

  Not Collective

  Input Parameter:
. sf - the `PetscSF`

  Output Parameters:
+ ipc   - those for which processes wrote into each other's memory
- basic - those that `PETSCSFBASIC` did

  Level: intermediate

  Note:
  Both are 0 for another type. `PetscSFFetchAndOpBegin()` is not counted.

.seealso: `PETSCSFGALLOP`, `MatGallopGetStatistics()`, `PetscSFBcastBegin()`, `PetscSFReduceBegin()`
@*/
PetscErrorCode PetscSFGallopGetExchanges(PetscSF sf, PetscInt64 *ipc, PetscInt64 *basic)
{
  SF_Gallop *g;

  PetscFunctionBegin;
  PetscValidHeaderSpecific(sf, PETSCSF_CLASSID, 1);
  PetscCall(GetContext(sf, &g));
  if (ipc) *ipc = g ? g->exchanges[1] : 0;
  if (basic) *basic = g ? g->exchanges[0] : 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
  PETSCSFGALLOP - "gallop" - PETSc's `PETSCSFBASIC`, of which communications of arrays on the GPU go from GPU to GPU within a host, by CUDA IPC

  Options Database Keys:
+ -sf_type gallop            - takes it, for every `PetscSF` and `VecScatter` that reads options
- -sf_gallop_exchange <auto> - `auto` or `ipc`: by CUDA IPC where all processes can; `basic`: as `PETSCSFBASIC`; `shared`, for tests: by memory of the host that processes share, of arrays on the host

  Level: intermediate

  Notes:
  A process writes values straight into the memory of the others by a kernel, which raises a flag there; the stream of the receiver waits for the flag. MPI is called when the first communication of a
  kind is set up, and not by later ones, and the host waits for nothing. So MPI need not take GPU pointers.

  It does so for `PetscSFBcastBegin()` and `PetscSFReduceBegin()`, and so for `VecScatterBegin()`, with `MPI_REPLACE`, `MPI_SUM` or `MPIU_SUM`, of units that consist of `MPIU_SCALAR` or `MPIU_REAL`, as
  by `MPI_Type_contiguous()`. A sum has one order: that of the processes' ranks, and of the edges of each, as with `PETSCSFBASIC` on the host; one thread adds up what goes to one place, so that
  a root with very many leaves takes long. Everything else is done by `PETSCSFBASIC`: other units and
  operations, `PetscSFFetchAndOpBegin()`, arrays on the host, a communication that begins while another one of the same `PetscSF` has not ended, and processes that cannot open each other's memory, as
  on several hosts.

  The first communication of each unit and direction is collective: the processes agree where arrays are, since those without edges may pass anything, and on the way, which holds for
  later ones. A process whose arrays are elsewhere then copies them, all of the array. Where they were on the host at first, the processes agree again at the 2nd, 3rd, 5th, 9th, ... communication.

  `PetscSFView()` says which way values have gone, and `PetscSFGallopGetExchanges()` counts. `VecScatterRemap()`, which `DMLocalToLocalBegin()` of `DMDA` needs, takes `PETSCSFBASIC` only. Products of
  Gallop matrices need no such `PetscSF`: see `-mat_gallop_exchange` of `MATEVCHYB`.

.seealso: `PetscSFSetType()`, `PetscSFGallopGetExchanges()`, `MATEVCHYB`, `VecScatterBegin()`
M*/
static PetscErrorCode PetscSFCreate_Gallop(PetscSF sf)
{
  SF_Gallop *g;
  PetscInt   way = 0;

  PetscFunctionBegin;
  PetscCall((*ParentCreate)(sf));
  PetscCall(PetscNew(&g));
  g->parent = *sf->ops;
  PetscCall(PetscOptionsGetEList(((PetscObject)sf)->options, ((PetscObject)sf)->prefix, "-sf_gallop_exchange", WayNames, 4, &way, NULL));
  g->way = Ways[way];
  PetscCall(PetscObjectContainerCompose((PetscObject)sf, GALLOP_SF, g, ContextDestroy));
  sf->ops->Reset          = PetscSFReset_Gallop;
  sf->ops->Destroy        = PetscSFDestroy_Gallop;
  sf->ops->SetFromOptions = PetscSFSetFromOptions_Gallop;
  sf->ops->Duplicate      = PetscSFDuplicate_Gallop;
  sf->ops->View           = PetscSFView_Gallop;
  sf->ops->BcastBegin     = PetscSFBcastBegin_Gallop;
  sf->ops->BcastEnd       = PetscSFBcastEnd_Gallop;
  sf->ops->ReduceBegin    = PetscSFReduceBegin_Gallop;
  sf->ops->ReduceEnd      = PetscSFReduceEnd_Gallop;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PetscSFRegister_Gallop(void)
{
  PetscFunctionBegin;
  PetscCall(PetscSFInitializePackage());
  PetscCall(PetscFunctionListFind(PetscSFList, PETSCSFBASIC, &ParentCreate));
  PetscCheck(ParentCreate, PETSC_COMM_SELF, PETSC_ERR_PLIB, "PETSc has no PetscSF of type %s", PETSCSFBASIC);
  PetscCall(PetscSFRegister(PETSCSFGALLOP, PetscSFCreate_Gallop));
  PetscFunctionReturn(PETSC_SUCCESS);
}
