/* SPDX-License-Identifier: BSD-2-Clause */
/* TiledSpMM's model of a product with stages: what the paper says of it, sections 2.3 and 3, and equation 6 where rows are cut */

#include "tiledspmm.h"

/* i and j of tiles: the entries of a row are in order */
static PetscErrorCode TilesToCSR(const TiledSpMM *t, PetscInt i[], PetscInt j[])
{
  PetscInt *next;

  PetscFunctionBegin;
  PetscCall(PetscCalloc1(t->m + 1, &next));
  for (int pass = 0; pass < 2; pass++) { /* counts, then stores */
    for (PetscCount u = 0; u < t->nunit; u++)
      for (PetscCount k = t->tileptr[u]; k < t->tileptr[u + 1]; k++)
        for (int bit = 0; bit < TILEDSPMM_TILE_ROWS * TILEDSPMM_TILE_COLS; bit++) {
          const PetscInt r = t->unitrow[u] + bit / TILEDSPMM_TILE_COLS;

          if (!(t->tile[k].mask >> bit & 1)) continue;
          if (pass) j[next[r]] = (PetscInt)t->tile[k].block * TILEDSPMM_TILE_COLS + bit % TILEDSPMM_TILE_COLS;
          next[r]++;
        }
    if (!pass) {
      i[0] = 0;
      for (PetscInt r = 0; r < t->m; r++) {
        i[r + 1] = i[r] + next[r];
        next[r]  = i[r];
      }
    }
  }
  PetscCall(PetscFree(next));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* TiledSpMMUnstagedToCSR - CSR's i and j of a structure without stages, on the host; PetscFree2() frees them */
PetscErrorCode TiledSpMMUnstagedToCSR(const TiledSpMM *t, PetscInt **rows, PetscInt **cols)
{
  PetscInt *i, *j, r = 0;
  PetscInt *first; /* of a partial sum of the first segment of a row, that row; else -1 */

  PetscFunctionBegin;
  PetscCall(PetscMalloc2(t->m + 1, &i, t->nz, &j));
  *rows = i;
  *cols = j;
  if (t->kernel == TILEDSPMM_TENSOR) {
    PetscCall(TilesToCSR(t, i, j));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscMalloc1(t->nslots, &first));
  for (PetscCount k = 0; k < t->nslots; k++) first[k] = -1;
  for (PetscCount k = 0; k < t->nsplit; k++) first[t->splitptr[k]] = t->splitrow[k];
  for (PetscCount seg = 0; seg < t->nseg; seg++) {
    const PetscInt begin = t->segptr[seg], end = t->segptr[seg + 1];
    const PetscInt row = !t->segment ? (PetscInt)seg : t->segrow[seg] >= 0 ? t->segrow[seg] : first[-1 - t->segrow[seg]];

    while (r <= row) i[r++] = begin; /* rows without segments, too */
    for (PetscInt e = begin; e < end; e++)
      j[e] = t->kernel == TILEDSPMM_CACHED ? t->col[t->slicedispl[seg / TILEDSPMM_WARP] + (PetscCount)TILEDSPMM_WARP * (e - begin) + seg % TILEDSPMM_WARP] : t->col[e];
  }
  while (r <= t->m) i[r++] = t->segptr[t->nseg];
  PetscCall(PetscFree(first));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Lines of B's memory that the loads of a stage touch, 32 rows at once: one that begins where a row does, as what is left of it at other places is not lost */
static PetscCount Lines(const TiledSpMM *t, PetscCount stage)
{
  const PetscInt each = PetscMax(1, TILEDSPMM_LINE / (PetscInt)sizeof(PetscScalar)), lines = PetscMax(1, (PetscInt)sizeof(PetscScalar) / TILEDSPMM_LINE);
  PetscCount     num   = 0;
  PetscInt       begin = 0;

  for (PetscCount q = t->mapdispl[stage]; q < t->mapdispl[stage + 1]; q++) {
    const PetscBool first = (PetscBool)((q - t->mapdispl[stage]) % TILEDSPMM_WARP == 0);

    if (!first && t->map[q] - begin < each) continue;
    begin = t->map[q];
    num += lines;
  }
  return num;
}

/* Entries of row r, or segment r, in all stages of its panel */
static PetscCount RowLength(const TiledSpMM *t, PetscInt r)
{
  const PetscInt p   = r / t->options.panel;
  PetscCount     len = 0;

  for (PetscCount s = t->stagedispl[p]; s < t->stagedispl[p + 1]; s++) len += t->len[s * t->options.panel + r % t->options.panel];
  return len;
}

/* Of a structure without stages: what it would be with them */
static PetscErrorCode ModelOfSegments(const TiledSpMM *t, TiledSpMMModel *model)
{
  GallopCSR  csr;
  PetscInt  *i, *j;
  TiledSpMM *staged;

  PetscFunctionBegin;
  PetscCall(TiledSpMMUnstagedToCSR(t, &i, &j));
  PetscCall(PetscMemzero(&csr, sizeof(csr)));
  csr.m      = t->m;
  csr.n      = t->n;
  csr.nz     = t->nz;
  csr.host_i = i;
  csr.host_j = j;
  PetscCall(TiledSpMMInspect(&t->options, &csr, 0, 0, &staged));
  PetscCall(PetscFree2(i, j));
  if (staged) {
    PetscCall(TiledSpMMGetModel(staged, model));
    PetscCall(TiledSpMMFree_Host(&staged));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* TiledSpMMGetModel - What sections 2.3 and 3 of the paper say of products with stages and R columns at once, as the staged kernel has them, which cuts rows where this one does; all 0 where the structure cannot have stages */
PetscErrorCode TiledSpMMGetModel(const TiledSpMM *t, TiledSpMMModel *model)
{
  const PetscReal value = (PetscReal)sizeof(PetscScalar), index = (PetscReal)sizeof(PetscInt), R = (PetscReal)TiledSpMMStagedColumns(t);
  const PetscReal places = (PetscReal)TiledSpMMPlaces(t), mu = (PetscReal)t->nz / t->m;
  const PetscReal stores = value * ((PetscReal)t->m + 2 * (PetscReal)t->nslots) / (PetscReal)t->nz; /* of C, and partial sums, which are loaded again: bytes for each entry */
  const size_t    displ  = (size_t)(t->panels + t->stages + t->stages * (t->options.panel / TILEDSPMM_WARP) + 3) * sizeof(PetscCount);
  PetscReal       matrix, staged;
  PetscCount      lines = 0, touched = 0;
  char           *seen;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(model, sizeof(*model)));
  if (t->kernel != TILEDSPMM_STAGED) {
    PetscCall(ModelOfSegments(t, model));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  model->mu = (PetscReal)t->nz / places;
  for (PetscInt r = 0; r < TiledSpMMPlaces(t); r++) model->sigma += PetscSqr((PetscReal)RowLength(t, r) - model->mu) / places;
  model->sigma = PetscSqrtReal(model->sigma);
  model->rho   = (PetscReal)t->nz / (PetscReal)t->nmap;
  model->Z     = (PetscReal)t->stored / (PetscReal)t->nz;
  model->delta = ((PetscReal)displ + (PetscReal)(t->stages * t->options.panel) * sizeof(*t->len)) / places + (t->reordered ? index : 0) + (t->segment ? index : 0);
  PetscCall(PetscCalloc1(t->n, &seen));
  for (PetscCount q = 0; q < t->nmap; q++) {
    touched += !seen[t->map[q]];
    seen[t->map[q]] = 1;
  }
  PetscCall(PetscFree(seen));
  for (PetscCount s = 0; s < t->stages; s++) lines += Lines(t, s);
  model->C         = PetscMax((PetscReal)1.0, (PetscReal)lines * TILEDSPMM_LINE / ((PetscReal)t->nmap * value));
  model->L         = (PetscReal)t->nmap / (PetscReal)touched;
  model->Gamma     = model->C / model->L;
  matrix           = (value + (PetscReal)sizeof(*t->index)) * model->Z / R + index / (model->rho * R) + model->delta / (R * model->mu) + stores;
  staged           = value / model->rho;
  model->naive     = 2 * mu / (mu * (value + index) + mu * value + value + 2 * index);
  model->tiled     = 2 / (matrix + staged);
  model->effective = 2 / (matrix + staged * model->Gamma);
  model->miss      = 2 / (matrix + staged * model->C);
  PetscFunctionReturn(PETSC_SUCCESS);
}
