/* SPDX-License-Identifier: BSD-2-Clause */
/* MATGALLOP: what it shows */

#include "measure.h"

PetscCount GallopChoiceBytes(const void *data)
{
  const GallopChosen *chosen = (const GallopChosen *)data;
  const GallopMade   *made[] = {&chosen->now, &chosen->best};
  PetscCount          bytes  = 0;

  for (int k = 0; k < 2; k++)
    if (made[k]->format) bytes += (*made[k]->format->bytes)(made[k]->data);
  return bytes;
}

static const char *Shown(GallopChoice choice)
{
  return choice == GALLOP_PARENT ? "the parent's products" : GallopChoiceName(choice);
}

/* The fastest beside the choice, of those that were timed; GALLOP_AUTO for none */
static GallopChoice Second(const GallopTuned *tuned)
{
  GallopChoice second = GALLOP_AUTO;

  for (int k = 0; k <= GALLOP_CHOICES; k++) {
    if (k == (int)tuned->choice || !(tuned->time[k] > 0)) continue;
    if (second == GALLOP_AUTO || tuned->time[k] < tuned->time[second]) second = (GallopChoice)k;
  }
  return second;
}

static const char *const Ways[] = {"by option", "chosen by rules", "measured", "from the tune file", "being measured"};

/* Figures: how many blocks have each format, or the parent's product; then these */
enum {
  FIGURE_BYTES = GALLOP_CHOICES + 1,
  FIGURE_ENTRIES, /* that have a format */
  FIGURE_NOFIT,
  FIGURE_WAY,                                         /* blocks, by the way of their choice */
  FIGURE_SECOND = FIGURE_WAY + GALLOP_WAYS,           /* and by what was the second best */
  FIGURE_RATIO  = FIGURE_SECOND + GALLOP_CHOICES + 1, /* the logarithm of its time over that of the choice */
  FIGURES
};

PetscErrorCode GallopChoiceFigures(const void *data, PetscLogDouble f[GALLOP_MAX_FIGURES])
{
  const GallopChosen *chosen = (const GallopChosen *)data;
  const GallopTuned  *tuned  = &chosen->tuned;
  const GallopChoice  second = Second(tuned);

  PetscFunctionBegin;
  PetscCall(PetscArrayzero(f, GALLOP_MAX_FIGURES));
  f[tuned->choice]++;
  f[FIGURE_BYTES]   = (PetscLogDouble)GallopChoiceBytes(data);
  f[FIGURE_ENTRIES] = chosen->now.format ? (PetscLogDouble)chosen->nz : 0;
  f[FIGURE_NOFIT]   = chosen->nofit;
  f[FIGURE_WAY + (int)tuned->way]++;
  if ((tuned->way == GALLOP_BY_TIMES || tuned->way == GALLOP_BY_FILE) && second != GALLOP_AUTO) {
    f[FIGURE_SECOND + (int)second]++;
    f[FIGURE_RATIO] = log(tuned->time[second] / tuned->time[tuned->choice]);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* "evchyb", or "evchyb for 2 of 3 blocks, hbp for 1 of 3 blocks" */
static PetscErrorCode ViewCounts(const PetscLogDouble f[], int n, const char *(*name)(GallopChoice), const char *const names[], PetscLogDouble blocks, PetscViewer viewer)
{
  PetscBool first = PETSC_TRUE;

  PetscFunctionBegin;
  for (int k = 0; k < n; k++) {
    if (!f[k]) continue;
    PetscCall(PetscViewerASCIIPrintf(viewer, "%s%s", first ? "" : ", ", name ? (*name)((GallopChoice)k) : names[k]));
    if (f[k] < blocks) PetscCall(PetscViewerASCIIPrintf(viewer, " for %.0f of %.0f blocks", f[k], blocks));
    first = PETSC_FALSE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopChoiceView(const PetscLogDouble f[GALLOP_MAX_FIGURES], PetscViewer viewer)
{
  PetscLogDouble blocks = 0;

  PetscFunctionBegin;
  PetscCheck(FIGURES <= GALLOP_FIGURE_ROWS, PETSC_COMM_SELF, PETSC_ERR_PLIB, "More figures than there is room for");
  for (int k = 0; k <= GALLOP_CHOICES; k++) blocks += f[k];
  PetscCall(PetscViewerASCIIPrintf(viewer, "Gallop: "));
  PetscCall(PetscViewerASCIIUseTabs(viewer, PETSC_FALSE));
  PetscCall(ViewCounts(f, GALLOP_CHOICES + 1, Shown, NULL, blocks, viewer));
  if (!blocks) PetscCall(PetscViewerASCIIPrintf(viewer, "no format yet"));
  if (f[FIGURE_ENTRIES] > 0) PetscCall(PetscViewerASCIIPrintf(viewer, "; %.1f bytes per nonzero", f[FIGURE_BYTES] / f[FIGURE_ENTRIES]));
  if (blocks) PetscCall(PetscViewerASCIIPrintf(viewer, "; "));
  PetscCall(ViewCounts(f + FIGURE_WAY, GALLOP_WAYS, NULL, Ways, blocks, viewer));
  for (int k = 0; k <= GALLOP_CHOICES; k++) /* of several blocks the geometric mean, if they have the same second */
    if (f[FIGURE_SECOND + k] > 0 && f[FIGURE_SECOND + k] == blocks) PetscCall(PetscViewerASCIIPrintf(viewer, ", %.2f times as fast as %s", exp(f[FIGURE_RATIO] / blocks), Shown((GallopChoice)k)));
  if (f[FIGURE_NOFIT]) PetscCall(PetscViewerASCIIPrintf(viewer, "; no room for another format, for %.0f of %.0f blocks", f[FIGURE_NOFIT], blocks));
  PetscCall(PetscViewerASCIIPrintf(viewer, "\n"));
  PetscCall(PetscViewerASCIIUseTabs(viewer, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopChoiceViewDetail(const void *data, PetscViewer viewer)
{
  const GallopChosen   *chosen = (const GallopChosen *)data;
  const GallopLook     *look   = &chosen->look;
  const GallopMade     *now    = &chosen->now;
  const PetscLogDouble *time   = chosen->measure ? chosen->measure->time : chosen->tuned.time;

  PetscFunctionBegin;
  PetscCall(PetscViewerASCIISynchronizedPrintf(viewer, "Gallop: %s, %s\n", Shown(chosen->tuned.choice), chosen->nofit ? "for want of room" : Ways[chosen->tuned.way]));
  if (chosen->looked)
    PetscCall(PetscViewerASCIISynchronizedPrintf(viewer, "Gallop: rows of %.1f entries in the mean, variation %.2f, longest %" PetscInt64_FMT "; %.2f sectors of x per entry, x takes %.2f times the L2 cache\n",
                                                 (double)look->mean, (double)look->variation, look->longest, (double)look->footprint, (double)look->l2));
  for (int k = 0; k <= GALLOP_CHOICES; k++)
    if (time[k] > 0) PetscCall(PetscViewerASCIISynchronizedPrintf(viewer, "Gallop: %s: %.1f us per product\n", Shown((GallopChoice)k), 1e6 * (double)time[k]));
  if (now->format && now->format->view_detail) PetscCall((*now->format->view_detail)(now->data, viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}
