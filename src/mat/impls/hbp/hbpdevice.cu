/* SPDX-License-Identifier: BSD-2-Clause */
/* HBP on the GPU: memory, and the build from CSR arrays there */

#include "hbpcolumnsdevice.h"
#include "hbphotdevice.h"

/* Small arrays, all filled by one copy */
static void TakeLongRows(GallopCarver *carver, GallopLongRows *l)
{
#define TAKE(array, number) carver->Take(l->array, number);
  HBP_LONG_ROWS(l, TAKE);
#undef TAKE
}

static size_t CarveArrays(HBP *h, void *base)
{
  GallopCarver carver(base);

#define TAKE(array, number) carver.Take(h->array, number);
  HBP_ARRAYS(h, TAKE);
#undef TAKE
  TakeLongRows(&carver, &h->longRows);
  if (h->longest <= HBP_PACKED) h->nnz_perrow = NULL;
  if (!h->mapChunks) h->mapPtr = NULL;
  if (!h->indexed) h->csrIdx = NULL;
  h->bytes = carver.Bytes();
  carver.Take(h->partial, h->partialNum);
  carver.Take(h->longPartial, h->longRows.pieceNum);
  return carver.Bytes();
}

static size_t CarvePlan(HBPPlan *plan, void *base)
{
  GallopCarver carver(base);

  carver.Take(plan->parts, (PetscCount)plan->partNum + 1);
  carver.Take(plan->shares, (PetscCount)plan->shareNum + 1);
  carver.Take(plan->tickets, 2);
  return carver.Bytes();
}

/* HBPTakeArrays - One allocation for a format and its plan; h->data, where it begins, is NULL if there is no room or they need more than maxbytes */
PetscErrorCode HBPTakeArrays(HBP *h, PetscCount maxbytes)
{
  HBPPlan     *plan  = (HBPPlan *)h->plan;
  const size_t bytes = CarveArrays(h, NULL), planbytes = CarvePlan(plan, NULL);
  void        *base = NULL;

  PetscFunctionBegin;
  if (!maxbytes || bytes + planbytes <= (size_t)maxbytes) PetscCall(GallopDeviceMalloc(bytes + planbytes, &base));
  if (!base) PetscFunctionReturn(PETSC_SUCCESS);
  (void)CarveArrays(h, base);
  (void)CarvePlan(plan, (char *)base + bytes);
  h->bytes += planbytes;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Destroy(void **data)
{
  HBP     *h    = (HBP *)*data;
  HBPPlan *plan = (HBPPlan *)h->plan;

  PetscFunctionBegin;
  PetscCall(HBPColumnsDestroy(&h->columns));
  PetscCall(HBPHotDestroy(&h->hot));
  PetscCall(GallopDeviceFree(h->data));
  if (plan) PetscCall(PetscFree(plan->longRows));
  PetscCall(PetscFree(plan));
  PetscCall(PetscFree(h));
  *data = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPCopyLongRows - Copies the plan of long rows to the GPU, which may do so later: h->plan keeps what it copies from */
PetscErrorCode HBPCopyLongRows(HBP *h, const GallopLongRows *l)
{
  GallopLongRows staged = *l;
  GallopCarver   sizes(NULL);
  void         **base = &((HBPPlan *)h->plan)->longRows;

  PetscFunctionBegin;
  if (!l->num) PetscFunctionReturn(PETSC_SUCCESS);
  TakeLongRows(&sizes, &staged);
  PetscCall(PetscMalloc(sizes.Bytes(), base));
  GallopCarver carver(*base);

  TakeLongRows(&carver, &staged);
#define COPY(array, number) PetscCall(PetscArraycpy(staged.array, l->array, number));
  HBP_LONG_ROWS(l, COPY);
#undef COPY
  PetscCall(GallopDeviceCopyIn(h->longRows.row, *base, sizes.Bytes()));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPReleaseWork - Gives back all workspace, what was taken last first */
PetscErrorCode HBPReleaseWork(HBPWork *w)
{
  PetscFunctionBegin;
  for (void **memory : {&w->fill.memory, &w->sort.memory, &w->count.memory, &w->look.memory}) {
    PetscCall(GallopWorkspaceFree(*memory));
    *memory = NULL;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The stages of a build. Each sets *done to false where the GPU has no room, or where HBP cannot store the matrix. */

/* Blocks, and all numbers if rows are whole: the host waits for both together. Where the matrix gets column blocks or hot columns, that is the whole build. */
static PetscErrorCode Survey(HBP *h, const GallopCSR *csr, HBPLookWork *w, PetscCount maxbytes, HBPSurvey *survey, cudaStream_t stream, PetscBool *done)
{
  HBPOptions options;
  PetscInt   M[2];

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(HBPGetSharedCols(csr, &h->options));
  HBPCandidates(&h->options, M);
  PetscCall(HBPTakeLook(h, w, stream));
  if (!w->memory) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HBPLook(h, csr, M, w, stream));
  PetscCall(HBPCountWhole(h, csr, M, w, stream));
  PetscCall(GallopDeviceCopyOut(survey, w->survey, sizeof(*survey)));
  PetscCall(HBPColumnsBuild_Device(h, csr, &survey->sample, maxbytes, stream));
  if (!h->columns) PetscCall(HBPHotBuild_Device(h, csr, &survey->sample, maxbytes, stream));
  if (!HBPHasBlocks(h)) {
    *done = PETSC_TRUE;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  options    = h->options; /* with what column blocks have found out about the GPU */
  *h         = survey->h;
  h->options = options;
  if (h->mapChunks) h->mapped = survey->found.mapped;
  if (survey->found.plain) survey->whole = 0; /* what was counted is of no use, but for the chunks of maps */
  if (survey->whole && h->mapChunks) {
    h->allMapped = PETSC_TRUE;
    h->colBlocks = 1;
  }
  *done = (PetscBool)HBPFits(h);
  if (!*done) PetscCall(HBPTellRefusal(h, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Numbers where rows may be in several blocks; found is to be freed */
static PetscErrorCode Count(HBP *h, const GallopCSR *csr, HBPMatrix *A, HBPWork *w, HBPFound **found, cudaStream_t stream, PetscBool *done)
{
  PetscFunctionBegin;
  *done = PETSC_FALSE;
  *A    = HBPMatrixOf(h, csr->i, csr->j);
  if (h->mapChunks) A->mapped = w->look.chunks;
  PetscCall(HBPTakeCounts(h, w, stream));
  if (!w->count.memory) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc(FoundBytes(h->colBlocks), (void **)found));
  PetscCall(HBPFindTiles(h, A, w, stream));
  PetscCall(HBPCount(h, A, w, *found, stream));
  if ((*found)->unsorted) {
    if (!HBPCanSortRows(h)) {
      PetscCall(HBPTellRefusal(h, "columns of a row do not increase, and there are too many of them to sort"));
      PetscFunctionReturn(PETSC_SUCCESS);
    }
    PetscCall(HBPSortRows(A, &w->sort, stream));
    if (!w->sort.memory) PetscFunctionReturn(PETSC_SUCCESS);
    h->indexed = PETSC_TRUE;
    PetscCall(HBPCount(h, A, w, *found, stream));
  }
  *done = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Fill(HBP *h, const GallopCSR *csr, const HBPMatrix *A, HBPWork *w, cudaStream_t stream, PetscBool *done)
{
  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(HBPTakeRecords(h, &w->fill));
  if (!w->fill.memory) PetscFunctionReturn(PETSC_SUCCESS);
  if (h->mapChunks) PetscCall(HBPFillMaps(h, A, &w->look, stream));
  PetscCall(HBPFillBounds(h, A, &w->count, stream));
  PetscCall(HBPCollect(h, A, w, stream));
  PetscCall(HBPFillGroups(h, w, stream));
  PetscCall(HBPFillCombine(h, w->fill.partialRow, stream));
  PetscCall(HBPConvert(h, csr, A, w, stream));
  *done = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Build(const void *options, const GallopCSR *csr, PetscCount maxbytes, void **built)
{
  HBP         *h;
  HBPMatrix    A     = {};
  HBPWork      w     = {};
  HBPFound    *found = NULL; /* not of whole rows */
  HBPSurvey    survey;
  void        *data;
  cudaStream_t stream;
  PetscBool    done;

  PetscFunctionBegin;
  *built = NULL;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(HBPCreate(csr, (const HBPOptions *)options, PETSC_MEMTYPE_CUDA, &h));
  data = h;
  PetscCall(Survey(h, csr, &w.look, maxbytes, &survey, stream, &done));
  if (done && HBPHasBlocks(h) && !survey.whole) PetscCall(Count(h, csr, &A, &w, &found, stream, &done));
  if (done && HBPHasBlocks(h) && (found ? found : &survey.found)->longest > HBP_MAX_COLS) { /* some row names columns more than once, and has more entries than two bytes tell */
    PetscCall(HBPTellRefusal(h, HBP_REFUSED_ROW));
    done = PETSC_FALSE;
  }
  if (done && HBPHasBlocks(h)) {
    const HBPOffsets whole[] = {{}, survey.end}; /* of one column of blocks */
    GallopLongRows   l;
    HBPCuts          cuts;

    PetscCall(HBPSetNumbers(h, csr, found ? found : &survey.found, found ? w.count.longRows : w.look.longRows, &l));
    PetscCall(HBPMakePlan(h, found ? found->ends : whole, &cuts));
    PetscCall(HBPTakeArrays(h, maxbytes));
    done = (PetscBool)(h->data != NULL);
    if (done) PetscCall(HBPCopyLongRows(h, &l));
    if (done && found) PetscCall(Fill(h, csr, &A, &w, stream, &done));
    else if (done) {
      PetscCall(HBPCopyLongEntries(h, csr, PETSC_TRUE, stream));
      PetscCall(HBPFillWhole(h, csr, &w.look, stream));
    }
    if (done && (found || !((HBPPlan *)h->plan)->groups)) PetscCall(HBPCutPlan(h, &cuts, stream)); /* else groups are parts already */
    PetscCall(PetscFree(cuts.sections));
    PetscCall(GallopLongRowsFree(&l));
  }
  PetscCall(PetscFree(found));
  if (done) *built = h;
  else PetscCall(Destroy(&data));
  PetscCall(HBPReleaseWork(&w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GallopFormatWork HBPDevice = {Build, HBPRefresh_Device, HBPApply_Device, Destroy, HBPApplyTranspose_Device};
