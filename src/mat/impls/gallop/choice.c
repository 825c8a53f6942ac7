/* SPDX-License-Identifier: BSD-2-Clause */
/* MATGALLOP: its entry in the list of formats, which hands each call on to the format that was chosen, its options, and what it shows */

#include <gallop/deviceimpl.h>
#include "measure.h"

GALLOP_FORMAT_TYPES(GALLOP)

/*MC
  MATGALLOP - MATAIJGALLOP = "gallop" - A matrix type for fast products on GPUs that chooses the format of its entries: `MATEVCHYB`, `MATHBP`, `MATCSROVERLAP`, or none where the parent is faster

  Options Database Keys:
+ -mat_type gallop                     - sets the matrix type during `MatSetFromOptions()`; `aijgallop`, `seqaijgallop` and `mpiaijgallop` are accepted too
. -mat_gallop_format <auto>            - `auto` chooses, `evchyb`, `csroverlap`, `hbp` and `fastload` take that format, `parent` none
. -mat_gallop_choose <rules>           - how: by `rules` alone, or `measure`, where by the rules several are near
. -mat_gallop_tune_products <20>       - how long a measurement may take, in products of the parent; 0 for none
. -mat_gallop_tune_share <0.1>         - which share of the time of all products so far it may take, at any time
. -mat_gallop_tune_file <name>         - where choices that were measured are kept for later runs; GALLOP_TUNE_FILE in the environment is the same
- -mat_gallop_build_in_assembly <false> - builds the format in `MatAssemblyEnd()` rather than when products pay for it, see `MATEVCHYB` for `-mat_gallop_build`

  Level: beginner

  Notes:
  The type is a subclass of `MATAIJCUSPARSE` where PETSc has CUDA and there is a GPU, else of `MATAIJ`: assembly, factorizations, sparse products, I/O and
  all else are the parent's. `MatMult()`, `MatMultAdd()` and `MatResidual()` use a format, which is chosen when products pay for one. On the GPU transposed products use a format of the transpose,
  which is chosen for itself.

  Each sequential matrix, and each block of an MPI matrix, is looked at on the GPU, once for each pattern: the lengths of all rows, and how much of x samples of its entries need. Rules tell the format by
  that. With `-mat_gallop_choose rules` no product is timed, so that the same program does the same in each run, to the last bit. Where the format that was chosen finds no room, `MATCSROVERLAP` takes its place, which
  keeps no second copy of the entries of a matrix assembled on the host. On the host the parent computes.

  With `-mat_gallop_choose measure` the rules name up to three candidates, the parent's products among them. Where there are several, they compute the first products one after the other, the parent first, five each, and those are
  timed on the GPU. The host waits for a time only when it is ahead by products that take some 200 microseconds. No product is computed twice, and two formats exist at most. What formats take beyond the fastest, with builds that the rules
  would not have, is limited by `-mat_gallop_tune_products`; and by `-mat_gallop_tune_share`: until such a build is a small share of what products have taken, the fastest so far computes. The fastest stays for the pattern, and other matrices with the same numbers of rows, columns and entries and the same look take it at once. Times differ from run to run, so
  that another format may compute, whose sums round differently: runs with `measure` need not give the same bits. Each process decides for its blocks. Not measured are formats of the transpose, matrices with `-mat_gallop_memory`, and those
  whose arrays do not stay on the GPU, by `-mat_gallop_csr` or since a large matrix gets its format at the first product, before the parent has a copy, as with `-mat_gallop_build first`. When a CUDA graph records
  a product, the measurement ends with the format that is recorded, and other matrices do not take what it found.

  The tune file has a line for each pattern that was measured: library, GPU, the numbers that it is known by, choice and times. Each process reads it once, and appends what it measures; processes may share it. Lines of
  another version of the library or another GPU are ignored, as are damaged ones. With `-mat_gallop_choose rules` the file is not used. Options of formats are not in it: with others, take another file.

  Options of the formats, such as `-mat_evchyb_window`, hold for the one that is chosen, but for limits of memory: `-mat_gallop_memory` is the only one. `-mat_view ::ascii_info` tells which it is and how it was chosen,
  `-mat_view ::ascii_info_detail` the times.

.seealso: `MATAIJGALLOP`, `MATSEQAIJGALLOP`, `MATMPIAIJGALLOP`, `MATEVCHYB`, `MATHBP`, `MATCSROVERLAP`, `MATFASTLOAD`, `MATAIJCUSPARSE`, `MatGallopGetStatistics()`, `MatSetType()`, `MatConvert()`
M*/

/*MC
  MATAIJGALLOP - MATGALLOP = "aijgallop" - `MATGALLOP` under the name that says what it is a subclass of: `MATSEQAIJGALLOP` on one process, else `MATMPIAIJGALLOP`

  Options Database Key:
. -mat_type aijgallop - sets the matrix type during `MatSetFromOptions()`

  Level: beginner

.seealso: `MATGALLOP`, `MATAIJ`, `MatSetType()`
M*/

/*MC
  MATSEQAIJGALLOP - "seqaijgallop" - `MATGALLOP` on one process

  Options Database Key:
. -mat_type seqaijgallop - sets the matrix type during `MatSetFromOptions()`

  Level: intermediate

.seealso: `MATGALLOP`, `MATSEQAIJ`, `MatSetType()`
M*/

/*MC
  MATMPIAIJGALLOP - "mpiaijgallop" - `MATGALLOP` on several processes

  Options Database Key:
. -mat_type mpiaijgallop - sets the matrix type during `MatSetFromOptions()`

  Level: intermediate

  Note:
  The diagonal and the off-diagonal block of each process have formats of their own, each chosen for itself.

.seealso: `MATGALLOP`, `MATMPIAIJ`, `MatSetType()`
M*/

extern const GallopFormat GallopFormat_EVCHYB, GallopFormat_CSROVERLAP, GallopFormat_HBP, GallopFormat_FASTLOAD;

const GallopFormat *GallopChoiceFormats[GALLOP_CHOICES] = {&GallopFormat_EVCHYB, &GallopFormat_CSROVERLAP, &GallopFormat_HBP, &GallopFormat_FASTLOAD};

static const char *const GallopChoices[] = {"evchyb", "csroverlap", "hbp", "fastload", "parent", "auto", "GallopChoice", "GALLOP_", NULL};
static const char *const ChooseBys[]     = {"rules", "measure", "GallopChooseBy", "GALLOP_CHOOSE_", NULL};

/* GallopChoiceName - As in -mat_gallop_format, and in the tune file */
const char *GallopChoiceName(GallopChoice choice)
{
  return GallopChoices[choice];
}

static const char GallopCitation[] = "@misc{gallop,\n"
                                     "  title = {Gallop: {GPU} matrix types for {PETSc}}\n"
                                     "}\n";

/* One file for the process: what is measured holds for all of its matrices */
static PetscErrorCode TuneFileOption(void)
{
  char      name[PETSC_MAX_PATH_LEN];
  PetscBool set;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_gallop_tune_file", name, sizeof(name), &set));
  if (set) PetscCall(GallopTuneFileSet(name));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GallopChoiceOptionsDefault(void *options)
{
  GallopChoiceOptions *o = (GallopChoiceOptions *)options;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(o, sizeof(*o)));
  o->format   = GALLOP_AUTO;
  o->choose   = GALLOP_CHOOSE_RULES; /* the default */
  o->products = 20;
  o->share    = 0.1;
  /* for all matrices, as the base's options of that beginning */
  PetscCall(PetscOptionsGetEnum(NULL, NULL, "-mat_gallop_format", GallopChoices, (PetscEnum *)&o->format, NULL));
  PetscCall(PetscOptionsGetEnum(NULL, NULL, "-mat_gallop_choose", ChooseBys, (PetscEnum *)&o->choose, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-mat_gallop_tune_products", &o->products, NULL));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-mat_gallop_tune_share", &o->share, NULL));
  PetscCall(TuneFileOption());
  for (int k = 0; k < GALLOP_CHOICES; k++) {
    PetscCheck(GallopChoiceFormats[k]->options_size <= GALLOP_OPTIONS_MOST, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Options of %s take more than %d bytes", GallopChoiceFormats[k]->name, GALLOP_OPTIONS_MOST);
    PetscCall((*GallopChoiceFormats[k]->options_default)(o->own[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GallopChoiceOptionsSet(void *options, const char prefix[], PetscOptionItems PetscOptionsObject, PetscBool *rebuild)
{
  GallopChoiceOptions *o      = (GallopChoiceOptions *)options;
  const GallopChoice   before = o->format;
  const GallopChooseBy by     = o->choose;
  PetscReal            share  = o->share;
  char                 own[64], file[PETSC_MAX_PATH_LEN] = "";
  PetscBool            set;

  PetscFunctionBegin;
  (void)prefix;
  PetscCall(PetscOptionsEnum("-mat_gallop_format", "Which format entries have", "MATGALLOP", GallopChoices, (PetscEnum)o->format, (PetscEnum *)&o->format, NULL));
  PetscCall(PetscOptionsEnum("-mat_gallop_choose", "How a format is chosen", "MATGALLOP", ChooseBys, (PetscEnum)o->choose, (PetscEnum *)&o->choose, NULL));
  PetscCall(PetscOptionsReal("-mat_gallop_tune_share", "Which share of the time of all products so far a measurement may take", "MATGALLOP", share, &share, NULL));
  PetscCheck(share > 0, PetscOptionsObject->comm, PETSC_ERR_ARG_OUTOFRANGE, "Option -%smat_gallop_tune_share is %g, but must be positive", PetscOptionsObject->prefix ? PetscOptionsObject->prefix : "", (double)share);
  o->share = share;
  PetscCall(GallopOptionsRangeInt(PetscOptionsObject, "-mat_gallop_tune_products", "How many of the parent's products a measurement may take, in time; 0 for none", "MATGALLOP", &o->products, 0, PETSC_INT_MAX));
  if (!PetscOptionsObject->prefix) { /* the file is the process's, not a matrix's */
    PetscCall(PetscOptionsString("-mat_gallop_tune_file", "Where choices that were measured are kept for later runs", "MATGALLOP", file, file, sizeof(file), &set));
    if (set) PetscCall(GallopTuneFileSet(file));
  }
  if (o->format != before || o->choose != by) *rebuild = PETSC_TRUE;
  for (int k = 0; k < GALLOP_CHOICES; k++) {
    PetscCall(PetscSNPrintf(own, sizeof(own), "-mat_%s_", GallopChoiceFormats[k]->name));
    PetscCall((*GallopChoiceFormats[k]->options_set)(o->own[k], own, PetscOptionsObject, rebuild));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows are put in the order of EVCHYB's, the only format that has one of its own */
static PetscErrorCode GallopChoiceOrder(const void *options, const GallopCSR *csr, PetscInt order[])
{
  PetscFunctionBegin;
  PetscCall((*GallopFormat_EVCHYB.order)(((const GallopChoiceOptions *)options)->own[GALLOP_EVCHYB], csr, order));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void GallopChoiceOptionsInOrder(void *options)
{
  (*GallopFormat_EVCHYB.options_inorder)(((GallopChoiceOptions *)options)->own[GALLOP_EVCHYB]);
}

/* GallopChoiceMake - Builds a format of those to choose from; made->data stays NULL where there is no room */
PetscErrorCode GallopChoiceMake(const GallopChoiceOptions *o, GallopChoice choice, const GallopCSR *csr, PetscCount maxbytes, GallopMade *made)
{
  static PetscBool cited[GALLOP_CHOICES];

  PetscFunctionBegin;
  *made = (GallopMade){GallopChoiceFormats[choice], NULL};
  PetscCall((*GallopMadeWork(made, csr->memtype)->build)(o->own[choice], csr, maxbytes, &made->data));
  if (made->data) PetscCall(PetscCitationsRegister(made->format->citation, &cited[choice]));
  else made->format = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopChoiceUnmake(PetscMemType memtype, GallopMade *made)
{
  PetscFunctionBegin;
  if (made->format) PetscCall((*GallopMadeWork(made, memtype)->destroy)(&made->data));
  *made = (GallopMade){NULL, NULL};
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the pattern looks like where its arrays are */
static PetscErrorCode Look(const GallopCSR *csr, const GallopClock *clock, GallopChosen *chosen)
{
  GallopTuned *tuned = &chosen->tuned;
  PetscCount   l2    = clock->l2;
  PetscBool    takes = PETSC_TRUE;

  PetscFunctionBegin;
  tuned->m     = csr->m;
  tuned->n     = csr->n;
  tuned->nz    = csr->nz;
  chosen->look = (GallopLook){.m = csr->m, .n = csr->n, .nz = csr->nz};
  if (GallopNeedsLook(csr->nz)) {
    chosen->looked = PETSC_TRUE;
    if (PetscMemTypeHost(csr->memtype)) PetscCall(GallopPatternGet_Host(csr, GALLOP_DOUBLES, &tuned->pattern));
#if PetscDefined(HAVE_CUDA)
    else PetscCall(GallopPatternGet_Device(csr, GALLOP_DOUBLES, &tuned->pattern, &l2, &chosen->looked));
#endif
    if (chosen->looked) PetscCall(GallopPatternLook(csr, &tuned->pattern, l2, &chosen->look));
  }
  if (PetscMemTypeDevice(csr->memtype)) PetscCall(GallopCUSPARSETakes(csr->nz, &takes));
  chosen->look.transpose = csr->transpose;
  chosen->look.refused   = PetscNot(takes);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  What a matrix at this place gets: by option, by what is known of its pattern, by rules; or it is measured. On the host products are the parent's.

  Not measured is what would need the arrays again that are gone then, and where memory is limited, since two formats have to fit. The parent's times are of products that are not transposed, so no time holds for a transpose; and what cuSPARSE does not multiply would be timed on the host.
*/
static PetscErrorCode Choose(const GallopChoiceOptions *o, const GallopCSR *csr, PetscCount maxbytes, GallopChosen *chosen)
{
  const GallopClock *clock = GallopClockFor(csr->memtype);
  GallopTuned       *tuned = &chosen->tuned;
  GallopChoice       candidates[GALLOP_CANDIDATES];
  PetscBool          known;
  char               name[GALLOP_GPU_NAME];
  int                n;

  PetscFunctionBegin;
  tuned->way    = o->format == GALLOP_AUTO ? GALLOP_BY_RULES : GALLOP_BY_OPTION;
  tuned->choice = o->format == GALLOP_AUTO ? GALLOP_PARENT : o->format;
  if (o->format != GALLOP_AUTO || !clock) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Look(csr, clock, chosen));
  n             = GallopCandidatesByRules(&chosen->look, candidates);
  tuned->choice = candidates[0];
  if (o->choose == GALLOP_CHOOSE_RULES || n == 1 || csr->transpose || chosen->look.refused) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall((*clock->name)(name, sizeof(name)));
  PetscCall(GallopTuneFind(name, tuned, &known));
  if (!known && o->products > 0 && !csr->passing && !maxbytes) PetscCall(GallopTryBegin(chosen, o, n, candidates));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GallopChoiceBuild(const void *options, const GallopCSR *csr, PetscCount maxbytes, void **data)
{
  const GallopChoiceOptions *o = (const GallopChoiceOptions *)options;
  GallopChosen              *chosen;
  GallopTuned               *tuned;
  PetscBool                  asked;

  PetscFunctionBegin;
  *data = NULL;
  PetscCall(PetscNew(&chosen));
  chosen->nz      = csr->nz;
  chosen->memtype = csr->memtype;
  tuned           = &chosen->tuned;
  PetscCall(Choose(o, csr, maxbytes, chosen));
  asked = (PetscBool)(tuned->way == GALLOP_BY_OPTION);
  if (tuned->choice == GALLOP_PARENT && !asked && maxbytes && maxbytes < (PetscCount)GallopCSRBytes(csr->m, csr->nz)) {
    tuned->choice = GALLOP_EVCHYB; /* packed, it may take less than the parent's arrays */
    tuned->way    = GALLOP_BY_RULES;
  }
  if (tuned->choice != GALLOP_PARENT) {
    PetscCall(GallopChoiceMake(o, tuned->choice, csr, maxbytes, &chosen->now));
    if (!chosen->now.data && !asked && tuned->choice != GALLOP_CSROVERLAP) {
      chosen->nofit = PETSC_TRUE;
      tuned->choice = GALLOP_CSROVERLAP;
      tuned->way    = GALLOP_BY_RULES;
      PetscCall(GallopChoiceMake(o, tuned->choice, csr, maxbytes, &chosen->now));
    }
    if (!chosen->now.data) { /* the base says so */
      PetscCall(PetscFree(chosen));
      PetscFunctionReturn(PETSC_SUCCESS);
    }
  }
  *data = chosen;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GallopChoiceRefresh(void *data, const GallopCSR *csr, PetscCount maxbytes, GallopRefresh *answer)
{
  GallopChosen *chosen = (GallopChosen *)data;

  PetscFunctionBegin;
  if (chosen->measure) PetscCall(GallopTryRefresh(chosen, csr, answer));
  else if (chosen->now.format) PetscCall((*GallopMadeWork(&chosen->now, csr->memtype)->refresh)(chosen->now.data, csr, maxbytes, answer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GallopChoiceApply(void *data, const GallopProduct *product)
{
  GallopChosen *chosen = (GallopChosen *)data;

  PetscFunctionBegin;
  if (chosen->measure) PetscCall(GallopMeasureProduct(chosen->measure, PETSC_FALSE));
  PetscCall((*GallopMadeWork(&chosen->now, chosen->memtype)->apply)(chosen->now.data, product));
  if (chosen->measure) PetscCall(GallopMeasureProduct(chosen->measure, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GallopChoiceDestroy(void **data)
{
  GallopChosen *chosen = (GallopChosen *)*data;

  PetscFunctionBegin;
  if (chosen) {
    PetscCall(GallopTryDestroy(chosen));
    PetscCall(GallopChoiceUnmake(chosen->memtype, &chosen->now));
  }
  PetscCall(PetscFree(*data));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const GallopFormatWork GallopChoiceWork = {GallopChoiceBuild, GallopChoiceRefresh, GallopChoiceApply, GallopChoiceDestroy, NULL};

static PetscBool GallopChoiceLeaves(const void *data)
{
  return (PetscBool) !((const GallopChosen *)data)->now.format;
}

/* Those that may be built again need the columns */
static PetscBool GallopChoiceRefreshReadsColumns(const void *data)
{
  const GallopChosen *chosen = (const GallopChosen *)data;
  const GallopMade   *now    = &chosen->now;

  return (PetscBool)(chosen->measure || (now->format && now->format->refresh_columns && (*now->format->refresh_columns)(now->data)));
}

/* Not while it is measured: the parent, and some formats, can do nothing but the product, and times are compared. Nor do our solvers record CUDA graphs then. */
static PetscBool GallopChoiceStoresRows(const void *data, PetscBool adds)
{
  const GallopChosen *chosen = (const GallopChosen *)data;
  const GallopMade   *now    = &chosen->now;

  return (PetscBool)(!chosen->measure && now->format && now->format->storesrows && (*now->format->storesrows)(now->data, adds));
}

static PetscCount GallopChoiceDotParts(const void *data, PetscBool adds)
{
  const GallopChosen *chosen = (const GallopChosen *)data;
  const GallopMade   *now    = &chosen->now;

  return !chosen->measure && now->format && now->format->dotparts ? (*now->format->dotparts)(now->data, adds) : 0;
}

static PetscInt GallopChoiceNonempty(const void *data)
{
  const GallopChosen *chosen = (const GallopChosen *)data;
  const GallopMade   *now    = &chosen->now;

  if (chosen->looked) return (PetscInt)chosen->look.nonempty;
  return now->format && now->format->nonempty ? (*now->format->nonempty)(now->data) : -1;
}

const GallopFormat GallopFormat_GALLOP = {
  .name            = MATGALLOP,
  .ucname          = "GALLOP",
  .citation        = GallopCitation,
  .createseq       = MatCreate_SeqAIJGALLOP,
  .creatempi       = MatCreate_MPIAIJGALLOP,
  .options_size    = sizeof(GallopChoiceOptions),
  .options_default = GallopChoiceOptionsDefault,
  .options_set     = GallopChoiceOptionsSet,
  .order           = GallopChoiceOrder,
  .options_inorder = GallopChoiceOptionsInOrder,
  .host            = &GallopChoiceWork,
  .device          = PetscDefined(HAVE_CUDA) ? &GallopChoiceWork : NULL,
  .refresh_columns = GallopChoiceRefreshReadsColumns,
  .leaves          = GallopChoiceLeaves,
  .trial           = &GallopChoiceTrial,
  .storesrows      = GallopChoiceStoresRows,
  .dotparts        = GallopChoiceDotParts,
  .figures         = GallopChoiceFigures,
  .view            = GallopChoiceView,
  .view_detail     = GallopChoiceViewDetail,
  .bytes           = GallopChoiceBytes,
  .nonempty        = GallopChoiceNonempty,
};
