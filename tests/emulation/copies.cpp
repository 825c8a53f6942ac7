/* SPDX-License-Identifier: BSD-2-Clause */
/*
  Copies of the CSR arrays on the GPU: when the parent's goes and comes back, and what is copied for a build or a refresh alone. There are no kernels here: a stand-in for AIJCUSPARSE does with its copy
  what PETSc's does, and stops where PETSc would use one that is not there.
*/
#include "testing.h"
#include "memory.h"
#include <algorithm>
#include <petscmat.h>
#include "mat/impls/base/gallopcsr.c"
#include "mat/impls/base/gallopcopy.c"
#include "mat/impls/base/gallopmemory.c"

/* ---- the rest of the library and of the GPU ---- */

static Mat_Gallop *theg;
static size_t      freebytes;
static bool        captures;
static int         optionsread;

PetscErrorCode MatGallopGetContext(Mat, Mat_Gallop **g)
{
  *g = theg;
  return PETSC_SUCCESS;
}

PetscErrorCode MatGallopHasCOO(Mat A, PetscBool *has)
{
  PetscObject coo;

  CheckCall(PetscObjectQuery((PetscObject)A, "__PETSc_MatCOOStruct_Device", &coo));
  *has = (PetscBool)(coo != NULL);
  return PETSC_SUCCESS;
}

PetscErrorCode MatGallopDrop(GallopStructure *structure, GallopPlace place)
{
  structure->instance[place].data  = NULL;
  structure->instance[place].bytes = 0;
  return PETSC_SUCCESS;
}

PetscErrorCode GallopLoanBegin(GallopLoan *loan)
{
  loan->n = 0;
  return PETSC_SUCCESS;
}

PetscErrorCode GallopLoanAdd(GallopLoan *, Mat)
{
  return PETSC_SUCCESS;
}

PetscErrorCode GallopLoanEnd(GallopLoan *)
{
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceCopyIn(void *to, const void *from, size_t bytes)
{
  memcpy(to, from, bytes);
  return PETSC_SUCCESS;
}

static int keptfreed[2]; /* how often what is kept was given back: all, and of workspaces alone */

PetscErrorCode GallopDeviceFreeKept(PetscBool workspace)
{
  keptfreed[workspace]++;
  return PETSC_SUCCESS;
}

static std::vector<const void *> maps; /* there now */
static bool                      refuses;

PetscErrorCode GallopHostMap(const void *host, size_t, void **device)
{
  *device = refuses ? NULL : (void *)host;
  if (*device) maps.push_back(host);
  return PETSC_SUCCESS;
}

PetscErrorCode GallopHostUnmap(const void *host, size_t)
{
  const auto at = std::find(maps.begin(), maps.end(), host);

  if (at == maps.end()) emu::Fail("memory of the host that is not mapped");
  maps.erase(at);
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceGetFree(size_t *bytes)
{
  *bytes = freebytes;
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceFits(size_t bytes, PetscBool *fits)
{
  *fits = (PetscBool)(++requests != failing && bytes <= freebytes);
  return PETSC_SUCCESS;
}

PetscErrorCode GallopCUSPARSETakes(PetscCount, PetscBool *takes)
{
  *takes = PETSC_TRUE;
  return PETSC_SUCCESS;
}

PetscErrorCode MatGallopGetBlocks(Mat, Mat *, Mat *)
{
  emu::Fail("no matrix here is MPI's");
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceIsCapturing(PetscBool *is)
{
  *is = (PetscBool)captures;
  return PETSC_SUCCESS;
}

extern "C" PetscErrorCode PetscDeviceContextSynchronize(PetscDeviceContext)
{
  return PETSC_SUCCESS;
}

/* ---- the stand-in ---- */

struct Copy {
  std::vector<PetscInt>    i, j;
  std::vector<PetscScalar> a;
  PetscObjectState         nonzerostate = 0;
  bool                     there        = false;
};
static int copies, valuecopies, copiesthere; /* made, renewed, and there now */

static PetscErrorCode (*DestroyAIJ)(Mat);

static PetscErrorCode DestroyStandIn(Mat A)
{
  Copy *copy = (Copy *)A->spptr;

  copiesthere -= copy->there;
  delete copy;
  A->spptr = NULL;
  return (*DestroyAIJ)(A);
}

static PetscErrorCode CreateStandIn(Mat A)
{
  CheckCall(MatSetType(A, MATSEQAIJ));
  CheckCall(PetscObjectChangeTypeName((PetscObject)A, MATSEQAIJCUSPARSE));
  DestroyAIJ      = A->ops->destroy;
  A->ops->destroy = DestroyStandIn;
  A->spptr        = new Copy;
  A->boundtocpu   = PETSC_FALSE;
  A->offloadmask  = PETSC_OFFLOAD_UNALLOCATED;
  return PETSC_SUCCESS;
}

static void Host(Mat A, const PetscInt **i, const PetscInt **j, const PetscScalar **a)
{
  CheckCall(MatGallopGetHostPattern(A, i, j));
  CheckCall(MatSeqAIJGetArrayRead(A, a));
}

/* MatSeqAIJCUSPARSECopyToGPU() */
static void CopyToGPU(Mat A)
{
  Copy              *copy = (Copy *)A->spptr;
  const PetscInt    *i, *j, m = A->rmap->n;
  const PetscScalar *a;

  if (A->offloadmask != PETSC_OFFLOAD_CPU && A->offloadmask != PETSC_OFFLOAD_UNALLOCATED) return;
  Host(A, &i, &j, &a);
  if (copy->nonzerostate == A->nonzerostate) {
    if (!copy->there) emu::Fail("PETSc would write to a copy that is not there");
    valuecopies++;
  } else {
    copies++;
    copiesthere += !copy->there;
    copy->there        = true;
    copy->nonzerostate = A->nonzerostate;
    copy->i.assign(i, i + m + 1);
    copy->j.assign(j, j + i[m]);
  }
  copy->a.assign(a, a + i[m]);
  A->offloadmask = PETSC_OFFLOAD_BOTH;
}

extern "C" PetscErrorCode MatSeqAIJCUSPARSEGetIJ(Mat A, PetscBool, const PetscInt *i[], const PetscInt *j[])
{
  CopyToGPU(A);
  *i = ((Copy *)A->spptr)->i.data();
  *j = ((Copy *)A->spptr)->j.data();
  return PETSC_SUCCESS;
}

extern "C" PetscErrorCode MatSeqAIJCUSPARSEGetArrayRead(Mat A, const PetscScalar *a[])
{
  CopyToGPU(A);
  *a = ((Copy *)A->spptr)->a.data();
  return PETSC_SUCCESS;
}

static PetscErrorCode SetFromOptions(Mat, PetscOptionItems)
{
  optionsread++;
  return PETSC_SUCCESS;
}

/* ---- the tests ---- */

#define CHECK(condition) \
  do { \
    if (!(condition)) emu::Fail("line %d: not " #condition, __LINE__); \
  } while (0)

/* Three entries in each row, and a context as the base makes it */
static Mat Create(PetscInt n, GallopCSRStay csr)
{
  Mat A;

  CheckCall(MatCreate(PETSC_COMM_SELF, &A));
  CheckCall(MatSetSizes(A, n, n, n, n));
  CheckCall(MatSetType(A, MATSEQAIJCUSPARSE));
  CheckCall(MatSeqAIJSetPreallocation(A, 3, NULL));
  for (PetscInt r = 0; r < n; r++)
    for (PetscInt k = 0; k < 3; k++) CheckCall(MatSetValue(A, r, (r + k * 7) % n, RandomReal(), INSERT_VALUES));
  CheckCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  CheckCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  A->offloadmask              = PETSC_OFFLOAD_CPU;
  *theg                       = Mat_Gallop();
  theg->deviceparent          = PETSC_TRUE;
  theg->csr                   = csr;
  theg->optionsasked          = PETSC_TRUE;
  theg->parent.setfromoptions = SetFromOptions;
  copies = valuecopies = optionsread = requests = failing = 0;
  captures = refuses = false;
  freebytes          = (size_t)1 << 40;
  return A;
}

static void NewValues(Mat A)
{
  CheckCall(MatSetValue(A, 0, 0, RandomReal(), INSERT_VALUES));
  CheckCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  CheckCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  A->offloadmask = PETSC_OFFLOAD_CPU; /* as AIJCUSPARSE's functions for the host's array say */
}

static bool mapsj, mapsa; /* whether Get() got the host's */

/* The arrays for a build or a refresh: what they hold, and whose they are */
static bool Get(Mat A, bool refresh, bool columns)
{
  static GallopFormat format;
  GallopCSRAccess     access = {};
  const PetscInt     *i, *j, m = A->rmap->n;
  const PetscScalar  *a;
  const size_t        before = allocations.size() - freed;

  access.refresh = (PetscBool)refresh;
  access.columns = (PetscBool)columns;
  CheckCall(MatGallopGetCSR(A, theg, &format, GALLOP_FORMAT, GALLOP_DEVICE, &access));
  Host(A, &i, &j, &a);
  if (access.fits) {
    CHECK(access.csr.memtype == PETSC_MEMTYPE_CUDA && access.csr.nz == i[m]);
    CHECK(!memcmp(access.csr.i, i, (m + 1) * sizeof(*i)));
    CHECK(!memcmp(access.csr.a, a, i[m] * sizeof(*a)));
    if (columns || !access.owned) CHECK(!memcmp(access.csr.j, j, i[m] * sizeof(*j)));
    else CHECK(!access.csr.j);
    mapsj = columns && access.csr.j == j;
    mapsa = access.csr.a == a;
  }
  CHECK(maps.size() == (size_t)(mapsj + mapsa));
  CheckCall(MatGallopRestoreCSR(A, &access));
  CHECK(maps.empty());
  CHECK(allocations.size() - freed <= before + (theg->rows ? 1 : 0));
  return access.owned;
}

static void Destroy(Mat A)
{
  CheckCall(MatGallopFreeRows(theg));
  CheckCall(MatDestroy(&A));
  CHECK(!copiesthere);
  CHECK(allocations.size() == (size_t)freed);
}

/* The parent never has a copy; values alone are copied for a refresh */
static void Uploads()
{
  Mat             A = Create(50, GALLOP_CSR_RELEASE);
  const PetscInt *rows;

  CHECK(Get(A, false, true) && !theg->rows);
  NewValues(A);
  CHECK(Get(A, true, false) && theg->rows);
  rows = theg->rows;
  NewValues(A);
  CHECK(Get(A, true, false) && theg->rows == rows);
  CHECK(Get(A, true, true));
  CHECK(Get(A, false, true) && !theg->rows);
  CHECK(!copies && theg->stats.csr_uploads == 5);
  for (int k = 1; k <= 3; k++) { /* no room for the k-th array */
    for (bool refresh : {false, true}) {
      requests = 0;
      failing  = k;
      CHECK(Get(A, refresh, !refresh) && !copies);
    }
  }
  failing = 0;
  CHECK(theg->stats.csr_uploads == 6); /* a refresh needs two */
  Destroy(A);
}

/* The parent has a copy, which goes once, comes back, and stays for its pattern */
static void GoesOnce()
{
  Mat   A = Create(50, GALLOP_CSR_RELEASE);
  void *before;

  CopyToGPU(A);
  CHECK(!Get(A, false, true));
  before   = A->spptr;
  captures = true; /* nothing can be freed then */
  CheckCall(MatGallopReleaseCopy(A, theg));
  CHECK(A->spptr == before && copiesthere == 1);
  captures     = false;
  keptfreed[0] = keptfreed[1] = 0;
  CheckCall(MatGallopReleaseCopy(A, theg));
  CHECK(!keptfreed[0] && !keptfreed[1]); /* it is a small matrix */
  CHECK(A->spptr != before && !copiesthere && A->offloadmask == PETSC_OFFLOAD_CPU && theg->stats.csr_releases == 1 && optionsread == 1);
  NewValues(A);
  CHECK(Get(A, true, false) && theg->rows);
  CopyToGPU(A);
  CheckCall(MatGallopTrustHost(A));
  CHECK(copies == 2 && copiesthere == 1);
  NewValues(A);
  CHECK(!Get(A, true, false) && valuecopies == 2 && !theg->rows);
  CheckCall(MatGallopReleaseCopy(A, theg));
  CHECK(copiesthere == 1 && theg->stats.csr_releases == 1);
  A->nonzerostate++; /* another pattern */
  A->offloadmask = PETSC_OFFLOAD_CPU;
  CHECK(Get(A, false, true));
  Destroy(A);
}

/* Arrays are read on the host: by option all, where memory is short values, and columns where there is even less; the parent's copy makes room before the build */
static void ReadOnHost()
{
  const size_t csr = GallopCSRBytes(500000, 1500000);

  for (bool copy : {false, true}) {
    Mat A = Create(50, GALLOP_CSR_HOST);

    if (copy) CopyToGPU(A);
    CHECK(Get(A, false, true) && mapsj && mapsa);
    CHECK(!copiesthere && theg->stats.csr_releases == copy);
    NewValues(A);
    CHECK(Get(A, true, false) && !mapsj && mapsa && theg->rows);
    refuses = true;
    NewValues(A);
    CHECK(Get(A, true, false) && !mapsa);
    CHECK(Get(A, false, true) && !mapsj && !mapsa);
    CHECK(theg->stats.csr_maps == 2 && theg->stats.csr_uploads == 2);
    Destroy(A);
  }
  for (int k = 0; k < 4; k++) {
    Mat A = Create(500000, k == 3 ? GALLOP_CSR_KEEP : GALLOP_CSR_AUTO);

    CopyToGPU(A);
    freebytes = k == 0 ? 5 * csr + 6 : k == 1 ? 3 * csr + 6 : csr / 3; /* beside the parent's copy */
    CHECK(Get(A, false, true) == (k == 1 || k == 2));                  /* else the parent's */
    if (k == 0 || k == 3) CHECK(copiesthere == 1 && !mapsa && !mapsj);
    else CHECK(!copiesthere && theg->stats.csr_releases == 1 && theg->stats.csr_maps == 1 && mapsa && mapsj == (k == 2));
    if (k == 1 || k == 2) {
      NewValues(A);
      CHECK(Get(A, true, false) && mapsa == (k == 2));
      CopyToGPU(A); /* for the parent, of whose copy nobody thinks then */
      CheckCall(MatGallopTrustHost(A));
      CHECK(!Get(A, false, true) && copiesthere == 1);
    }
    Destroy(A);
  }
  { /* a refresh wants twice what it copies, and what has no room as a copy is read on the host */
    Mat A = Create(500000, GALLOP_CSR_AUTO);

    keptfreed[0] = keptfreed[1] = 0;
    CHECK(Get(A, false, true) && !mapsa && !mapsj);
    CHECK(keptfreed[0] == 1 && !keptfreed[1]);
    NewValues(A);
    freebytes = 2 * 1500000 * sizeof(PetscScalar) + 2;
    CHECK(Get(A, true, false) && !mapsa);
    CHECK(keptfreed[0] == 1 && !keptfreed[1]);
    NewValues(A);
    freebytes -= 3;
    CHECK(Get(A, true, false) && mapsa);
    NewValues(A);
    freebytes = (size_t)1 << 40;
    requests  = 0;
    failing   = 1;
    CHECK(Get(A, true, false) && mapsa && theg->stats.csr_maps == 2);
    Destroy(A);
  }
  { /* not while another structure has the parent compute */
    Mat A = Create(50, GALLOP_CSR_HOST);

    CopyToGPU(A);
    theg->structure[GALLOP_TRANSPOSE].instance[GALLOP_DEVICE].asked   = 1;
    theg->structure[GALLOP_TRANSPOSE].instance[GALLOP_DEVICE].pattern = A->nonzerostate;
    CHECK(!Get(A, false, true) && copiesthere == 1);
    theg->structure[GALLOP_TRANSPOSE].instance[GALLOP_DEVICE].asked = 0;
    theg->structure[GALLOP_FORMAT].instance[GALLOP_DEVICE].asked    = 1; /* it is the one that is built */
    theg->structure[GALLOP_FORMAT].instance[GALLOP_DEVICE].pattern  = A->nonzerostate;
    CHECK(Get(A, false, true) && !copiesthere);
    Destroy(A);
  }
  { /* nor while a format tries others, of which the parent may be the fastest */
    Mat               A    = Create(50, GALLOP_CSR_HOST);
    GallopType        type = (GallopType)calloc(1, sizeof(*type));
    GallopInstance   *inst = &theg->structure[GALLOP_FORMAT].instance[GALLOP_DEVICE];
    GallopFormat      table{};
    GallopFormatTrial trial{};

    trial.tries                         = [](const void *) { return PETSC_TRUE; };
    trial.keeps                         = trial.tries;
    table.trial                         = &trial;
    type->format                        = &table;
    theg->structure[GALLOP_FORMAT].type = type;
    inst->data                          = A;
    inst->asked                         = 1;
    inst->pattern                       = A->nonzerostate;
    CopyToGPU(A);
    CHECK(!Get(A, false, true) && copiesthere == 1);
    trial.keeps = NULL; /* none of whose arrays the next one is built from */
    CHECK(Get(A, false, true) && !copiesthere);
    Destroy(A);
    free(type);
  }
  { /* a format that gives the arrays back gets no copy of them, but the parent's if that is there */
    static GallopFormat format;

    for (int k = 0; k < 3; k++) { /* with little room, or where the host's arrays are to be read there, none are given back */
      Mat             A      = Create(500000, k == 1 ? GALLOP_CSR_HOST : GALLOP_CSR_AUTO);
      GallopCSRAccess access = {};

      freebytes       = (k == 0 ? 5 : 7) * GallopCSRBytes(500000, 1500000);
      access.columns  = PETSC_TRUE;
      access.restores = PETSC_TRUE;
      CheckCall(MatGallopGetCSR(A, theg, &format, GALLOP_FORMAT, GALLOP_DEVICE, &access));
      CHECK(!access.fits == (k < 2) && !access.owned && !access.csr.i && !theg->stats.csr_uploads && !theg->stats.csr_maps);
      CheckCall(MatGallopRestoreCSR(A, &access));
      if (k == 2) {
        CopyToGPU(A);
        keptfreed[0] = keptfreed[1] = 0;
        CheckCall(MatGallopReleaseCopy(A, theg));
        CHECK(!copiesthere && !keptfreed[0] && keptfreed[1] == 1);
      }
      Destroy(A);
    }
    for (int there = 0; there < 2; there++) {
      Mat             A      = Create(1500, GALLOP_CSR_RELEASE);
      GallopCSRAccess access = {};
      const size_t    before = allocations.size();

      CheckCall(MatGallopTrustHost(A));
      if (there) CopyToGPU(A);
      access.columns  = PETSC_TRUE;
      access.restores = PETSC_TRUE;
      CheckCall(MatGallopGetCSR(A, theg, &format, GALLOP_FORMAT, GALLOP_DEVICE, &access));
      CHECK(access.fits && !access.owned && access.csr.memtype == PETSC_MEMTYPE_CUDA && access.csr.nz == access.csr.host_i[A->rmap->n]);
      CHECK(!access.csr.i == !there && !access.csr.j == !there && !access.csr.a == !there && !theg->stats.csr_uploads && (there || allocations.size() == before));
      CheckCall(MatGallopRestoreCSR(A, &access));
      Destroy(A);
    }
  }
}

/* What keeps it */
static void Stays()
{
  for (int k = 0; k < 9; k++) {
    Mat A = Create(50, k == 0 ? GALLOP_CSR_KEEP : k == 1 ? GALLOP_CSR_AUTO : GALLOP_CSR_RELEASE);

    if (k == 2) CheckCall(MatGallopKeepCopy(A));
    if (k == 3) captures = true;
    if (k == 3) CheckCall(MatGallopNoteParentProduct(theg)); /* which a graph records */
    CopyToGPU(A);
    if (k == 4) A->offloadmask = PETSC_OFFLOAD_GPU; /* as after MatScale() */
    CheckCall(MatGallopTrustHost(A));
    if (k == 4) A->offloadmask = PETSC_OFFLOAD_BOTH; /* the host has read them */
    if (k == 5) theg->structure[GALLOP_TRANSPOSE].instance[GALLOP_DEVICE].asked = 1;
    if (k == 6) freebytes = 1 << 20;
    if (k == 7) CheckCall(PetscObjectContainerCompose((PetscObject)A, "__PETSc_MatCOOStruct_Device", A, NULL));
    if (k == 8) {
      CheckCall(PetscObjectStateIncrease((PetscObject)A)); /* the host's values may have changed in silence */
      CheckCall(MatGallopReleaseCopy(A, theg));
      CHECK(A->offloadmask == PETSC_OFFLOAD_CPU);
    } else CheckCall(MatGallopReleaseCopy(A, theg));
    CHECK(copiesthere == 1 && !theg->stats.csr_releases);
    CHECK(!Get(A, true, false));
    Destroy(A);
  }
}

/* Large matrices go by themselves; a refresh that reads columns takes the parent's copy where there is much room, and it stays */
static void LargeGoes()
{
  for (bool room : {false, true}) {
    Mat A = Create(500000, GALLOP_CSR_AUTO);

    CHECK(Get(A, false, true) && !copies);
    NewValues(A);
    CHECK(Get(A, true, false) && !copies);
    if (!room) freebytes = (size_t)100 << 20;
    CHECK(Get(A, true, true) == !room && copies == room);
    CheckCall(MatGallopReleaseCopy(A, theg));
    CHECK(copiesthere == room);
    Destroy(A);
  }
}

/* -mat_gallop_memory: small matrices go too, the parent's copy has to fit beside the structures, and structures go in their order */
static void Limit()
{
  Mat             A      = Create(50, GALLOP_CSR_AUTO);
  const size_t    csr    = GallopCSRBytes(50, 150);
  GallopInstance *format = &theg->structure[GALLOP_FORMAT].instance[GALLOP_DEVICE], *dense = &theg->structure[GALLOP_TILEDSPMM].instance[GALLOP_DEVICE];
  GallopType      type = (GallopType)calloc(1, sizeof(*type));
  GallopFormat    table{};
  PetscBool       fits, made, worse;
  PetscCount      limit;

  table.ucname = "FORMAT";
  type->format = &table;
  for (auto &s : theg->structure) s.type = type;
  theg->maxbytes = (PetscCount)csr + 1000;
  CHECK(Get(A, false, true) && !copies);
  format->data  = A;
  format->bytes = 1000;
  CheckCall(MatGallopDeviceCSRFits(A, theg, &fits));
  CHECK(fits);
  format->bytes = 1001;
  CheckCall(MatGallopDeviceCSRFits(A, theg, &fits));
  CHECK(!fits);
  CheckCall(MatGallopParentIsWorse(A, theg, PETSC_FALSE, &worse));
  CHECK(worse);
  CheckCall(MatGallopGetLimit(A, theg, GALLOP_TILEDSPMM, GALLOP_DEVICE, &limit));
  CHECK(limit == (PetscCount)csr - 1);
  dense->data  = A;
  dense->bytes = 500;
  CheckCall(MatGallopGetLimit(A, theg, GALLOP_TRANSPOSE, GALLOP_DEVICE, &limit));
  CHECK(limit == (PetscCount)csr - 501);
  CheckCall(MatGallopMakeRoom(theg, GALLOP_TILEDSPMM, GALLOP_DEVICE, &made));
  CHECK(!made);
  CheckCall(MatGallopMakeRoom(theg, GALLOP_TRANSPOSE, GALLOP_DEVICE, &made));
  CHECK(made && !dense->data && format->data);
  CheckCall(MatGallopMakeRoom(theg, GALLOP_FORMAT, GALLOP_DEVICE, &made));
  CHECK(!made);
  theg->keeps = PETSC_TRUE; /* what stays counts */
  CopyToGPU(A);
  CheckCall(MatGallopGetLimit(A, theg, GALLOP_FORMAT, GALLOP_DEVICE, &limit));
  CHECK(limit == 1000);
  free(type);
  Destroy(A);
}

int main(int argc, char **argv)
{
  Begin(argc, argv);
  if (!HasSameTypes()) {
    printf("  not with other types than those of PETSc, whose matrices are the real ones\n");
    return 0;
  }
  CheckCall(PetscInitializeNoArguments());
  CheckCall(MatRegister(MATSEQAIJCUSPARSE, CreateStandIn));
  theg = (Mat_Gallop *)calloc(1, sizeof(*theg));
  Uploads();
  GoesOnce();
  ReadOnHost();
  Stays();
  LargeGoes();
  Limit();
  CheckCall(PetscFinalize());
  return End();
}
