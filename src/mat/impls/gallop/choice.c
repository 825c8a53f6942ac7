/* SPDX-License-Identifier: BSD-2-Clause */
/* MATGALLOP: its entry in the list of formats, which hands each call on to the format that was chosen, its options, and what it shows */

#include "choice.h"

GALLOP_FORMAT_TYPES(GALLOP)

/*MC
  MATGALLOP - MATAIJGALLOP = "gallop" - A matrix type for fast products on GPUs that chooses the format of its entries: `MATEVCHYB`, `MATHBP`, `MATCSROVERLAP`, or none where the parent is faster

  Options Database Keys:
+ -mat_type gallop                     - sets the matrix type during `MatSetFromOptions()`; `aijgallop`, `seqaijgallop` and `mpiaijgallop` are accepted too
. -mat_gallop_format <auto>            - `auto` chooses by rules, `evchyb`, `csroverlap`, `hbp` and `fastload` take that format, `parent` none
- -mat_gallop_build_in_assembly <false> - builds the format in `MatAssemblyEnd()` rather than when products pay for it, see `MATEVCHYB` for `-mat_gallop_build`

  Level: beginner

  Notes:
  The type is a subclass of `MATAIJCUSPARSE` where PETSc has CUDA and there is a GPU, else of `MATAIJ`: assembly, factorizations, sparse products, I/O and
  all else are the parent's. `MatMult()`, `MatMultAdd()` and `MatResidual()` use a format, which is chosen when products pay for one. On the GPU transposed products use a format of the transpose,
  which is chosen for itself.

  Each sequential matrix, and each block of an MPI matrix, is looked at on the GPU, once for each pattern: the lengths of all rows, and how much of x samples of its entries need. Rules tell the format by
  that; no product is timed, so that the same program does the same in each run. Where the format that was chosen finds no room, `MATCSROVERLAP` takes its place, which keeps no second copy of the entries of a matrix
  assembled on the host. On the host the parent computes.

  Options of the formats, such as `-mat_evchyb_window`, hold for the one that is chosen, but for limits of memory: `-mat_gallop_memory` is the only one. `-mat_view ::ascii_info` tells which it is.

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

const GallopFormat *const GallopChoiceFormats[GALLOP_CHOICES] = {&GallopFormat_EVCHYB, &GallopFormat_CSROVERLAP, &GallopFormat_HBP, &GallopFormat_FASTLOAD};

static const char *const GallopChoices[] = {"evchyb", "csroverlap", "hbp", "fastload", "parent", "auto", "GallopChoice", "GALLOP_", NULL};

static const char GallopCitation[] = "@misc{gallop,\n"
                                     "  title = {Gallop: {GPU} matrix types for {PETSc}}\n"
                                     "}\n";

static PetscErrorCode GallopChoiceOptionsDefault(void *options)
{
  GallopChoiceOptions *o = (GallopChoiceOptions *)options;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(o, sizeof(*o)));
  o->format = GALLOP_AUTO;
  PetscCall(PetscOptionsGetEnum(NULL, NULL, "-mat_gallop_format", GallopChoices, (PetscEnum *)&o->format, NULL)); /* for all matrices, as the base's options of that beginning */
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
  char                 own[64];

  PetscFunctionBegin;
  (void)prefix;
  PetscCall(PetscOptionsEnum("-mat_gallop_format", "Which format entries have", "MATGALLOP", GallopChoices, (PetscEnum)o->format, (PetscEnum *)&o->format, NULL));
  if (o->format != before) *rebuild = PETSC_TRUE;
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

static const GallopFormatWork *Work(const GallopChosen *chosen, PetscMemType memtype)
{
  return PetscMemTypeCUDA(memtype) ? chosen->format->device : chosen->format->host;
}

/* What a matrix at this place gets. On the host products are the parent's. */
static PetscErrorCode Choose(const GallopChoiceOptions *o, const GallopCSR *csr, GallopChosen *chosen)
{
  PetscFunctionBegin;
  chosen->asked  = (PetscBool)(o->format != GALLOP_AUTO);
  chosen->choice = o->format;
  if (chosen->asked) PetscFunctionReturn(PETSC_SUCCESS);
  chosen->choice = GALLOP_PARENT;
  if (!PetscMemTypeCUDA(csr->memtype)) PetscFunctionReturn(PETSC_SUCCESS);
#if PetscDefined(HAVE_CUDA)
  GallopPattern p;
  PetscCount    l2;

  chosen->look = (GallopLook){.m = csr->m, .n = csr->n, .nz = csr->nz};
  if (GallopNeedsLook(csr->nz)) {
    PetscCall(GallopPatternGet_Device(csr, &p, &l2, &chosen->looked));
    if (chosen->looked) PetscCall(GallopPatternLook(csr, &p, l2, &chosen->look));
  }
  chosen->choice = GallopChooseByRules(&chosen->look);
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Build(const GallopChoiceOptions *o, const GallopCSR *csr, PetscCount maxbytes, GallopChosen *chosen)
{
  PetscFunctionBegin;
  chosen->format = GallopChoiceFormats[chosen->choice];
  PetscCall((*Work(chosen, csr->memtype)->build)(o->own[chosen->choice], csr, maxbytes, &chosen->data));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GallopChoiceBuild(const void *options, const GallopCSR *csr, PetscCount maxbytes, void **data)
{
  static PetscBool           cited[GALLOP_CHOICES];
  const GallopChoiceOptions *o = (const GallopChoiceOptions *)options;
  GallopChosen              *chosen;

  PetscFunctionBegin;
  *data = NULL;
  PetscCall(PetscNew(&chosen));
  chosen->nz      = csr->nz;
  chosen->memtype = csr->memtype;
  PetscCall(Choose(o, csr, chosen));
  if (chosen->choice == GALLOP_PARENT && !chosen->asked && maxbytes && maxbytes < (PetscCount)GallopCSRBytes(csr->m, csr->nz))
    chosen->choice = GALLOP_EVCHYB; /* packed, it may take less than the parent's arrays */
  if (chosen->choice != GALLOP_PARENT) {
    PetscCall(Build(o, csr, maxbytes, chosen));
    if (!chosen->data && !chosen->asked && chosen->choice != GALLOP_CSROVERLAP) {
      chosen->nofit  = PETSC_TRUE;
      chosen->choice = GALLOP_CSROVERLAP;
      PetscCall(Build(o, csr, maxbytes, chosen));
    }
    if (!chosen->data) { /* the base says so */
      PetscCall(PetscFree(chosen));
      PetscFunctionReturn(PETSC_SUCCESS);
    }
    PetscCall(PetscCitationsRegister(chosen->format->citation, &cited[chosen->choice]));
  }
  *data = chosen;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GallopChoiceRefresh(void *data, const GallopCSR *csr, PetscCount maxbytes, GallopRefresh *answer)
{
  GallopChosen *chosen = (GallopChosen *)data;

  PetscFunctionBegin;
  if (chosen->format) PetscCall((*Work(chosen, csr->memtype)->refresh)(chosen->data, csr, maxbytes, answer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GallopChoiceApply(void *data, const GallopProduct *product)
{
  GallopChosen *chosen = (GallopChosen *)data;

  PetscFunctionBegin;
  PetscCall((*Work(chosen, chosen->memtype)->apply)(chosen->data, product));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GallopChoiceDestroy(void **data)
{
  GallopChosen *chosen = (GallopChosen *)*data;

  PetscFunctionBegin;
  if (chosen && chosen->format) PetscCall((*Work(chosen, chosen->memtype)->destroy)(&chosen->data));
  PetscCall(PetscFree(*data));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const GallopFormatWork GallopChoiceWork = {GallopChoiceBuild, GallopChoiceRefresh, GallopChoiceApply, GallopChoiceDestroy, NULL};

static PetscBool GallopChoiceLeaves(const void *data)
{
  return (PetscBool) !((const GallopChosen *)data)->format;
}

static PetscBool GallopChoiceRefreshReadsColumns(const void *data)
{
  const GallopChosen *chosen = (const GallopChosen *)data;

  return (PetscBool)(chosen->format && chosen->format->refresh_columns && (*chosen->format->refresh_columns)(chosen->data));
}

static PetscBool GallopChoiceStoresRows(const void *data, PetscBool adds)
{
  const GallopChosen *chosen = (const GallopChosen *)data;

  return (PetscBool)(chosen->format && chosen->format->storesrows && (*chosen->format->storesrows)(chosen->data, adds));
}

static PetscCount GallopChoiceDotParts(const void *data, PetscBool adds)
{
  const GallopChosen *chosen = (const GallopChosen *)data;

  return chosen->format && chosen->format->dotparts ? (*chosen->format->dotparts)(chosen->data, adds) : 0;
}

static PetscCount GallopChoiceBytes(const void *data)
{
  const GallopChosen *chosen = (const GallopChosen *)data;

  return chosen->format ? (*chosen->format->bytes)(chosen->data) : 0;
}

static PetscInt GallopChoiceNonempty(const void *data)
{
  const GallopChosen *chosen = (const GallopChosen *)data;

  if (chosen->looked) return (PetscInt)chosen->look.nonempty;
  return chosen->format && chosen->format->nonempty ? (*chosen->format->nonempty)(chosen->data) : -1;
}

/* Figures: how many blocks have each format, or the parent's product; then these */
enum {
  FIGURE_BYTES = GALLOP_CHOICES + 1,
  FIGURE_ENTRIES, /* that have a format */
  FIGURE_ASKED,
  FIGURE_NOFIT
};

static PetscErrorCode GallopChoiceFigures(const void *data, PetscLogDouble f[GALLOP_MAX_FIGURES])
{
  const GallopChosen *chosen = (const GallopChosen *)data;

  PetscFunctionBegin;
  PetscCall(PetscArrayzero(f, GALLOP_MAX_FIGURES));
  f[chosen->choice]++;
  f[FIGURE_BYTES]   = (PetscLogDouble)GallopChoiceBytes(data);
  f[FIGURE_ENTRIES] = chosen->format ? (PetscLogDouble)chosen->nz : 0;
  f[FIGURE_ASKED]   = chosen->asked;
  f[FIGURE_NOFIT]   = chosen->nofit;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GallopChoiceView(const PetscLogDouble f[GALLOP_MAX_FIGURES], PetscViewer viewer)
{
  PetscLogDouble blocks = 0;
  PetscBool      first  = PETSC_TRUE;

  PetscFunctionBegin;
  for (int k = 0; k <= GALLOP_CHOICES; k++) blocks += f[k];
  PetscCall(PetscViewerASCIIPrintf(viewer, "Gallop: "));
  PetscCall(PetscViewerASCIIUseTabs(viewer, PETSC_FALSE));
  for (int k = 0; k <= GALLOP_CHOICES; k++) {
    if (!f[k]) continue;
    PetscCall(PetscViewerASCIIPrintf(viewer, "%s%s", first ? "" : ", ", k == GALLOP_PARENT ? "the parent's products" : GallopChoiceFormats[k]->name));
    if (f[k] < blocks) PetscCall(PetscViewerASCIIPrintf(viewer, " for %.0f of %.0f blocks", f[k], blocks));
    first = PETSC_FALSE;
  }
  if (first) PetscCall(PetscViewerASCIIPrintf(viewer, "no format yet"));
  if (f[FIGURE_ENTRIES] > 0) PetscCall(PetscViewerASCIIPrintf(viewer, "; %.1f bytes per nonzero", f[FIGURE_BYTES] / f[FIGURE_ENTRIES]));
  if (!first) PetscCall(PetscViewerASCIIPrintf(viewer, "; %s", f[FIGURE_ASKED] ? "by option" : "chosen by rules"));
  if (f[FIGURE_NOFIT]) PetscCall(PetscViewerASCIIPrintf(viewer, "; no room for another format, for %.0f of %.0f blocks", f[FIGURE_NOFIT], blocks));
  PetscCall(PetscViewerASCIIPrintf(viewer, "\n"));
  PetscCall(PetscViewerASCIIUseTabs(viewer, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GallopChoiceViewDetail(const void *data, PetscViewer viewer)
{
  const GallopChosen *chosen = (const GallopChosen *)data;
  const GallopLook   *look   = &chosen->look;

  PetscFunctionBegin;
  PetscCall(PetscViewerASCIISynchronizedPrintf(viewer, "Gallop: %s, %s\n", chosen->format ? chosen->format->name : "the parent's products",
                                               chosen->asked   ? "by option"
                                               : chosen->nofit ? "for want of room"
                                                               : "by rules"));
  if (chosen->looked)
    PetscCall(PetscViewerASCIISynchronizedPrintf(viewer, "Gallop: rows of %.1f entries in the mean, variation %.2f, longest %" PetscInt64_FMT "; %.2f sectors of x per entry, x takes %.2f times the L2 cache\n",
                                                 (double)look->mean, (double)look->variation, look->longest, (double)look->footprint, (double)look->l2));
  if (chosen->format && chosen->format->view_detail) PetscCall((*chosen->format->view_detail)(chosen->data, viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
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
  .storesrows      = GallopChoiceStoresRows,
  .dotparts        = GallopChoiceDotParts,
  .figures         = GallopChoiceFigures,
  .view            = GallopChoiceView,
  .view_detail     = GallopChoiceViewDetail,
  .bytes           = GallopChoiceBytes,
  .nonempty        = GallopChoiceNonempty,
};
