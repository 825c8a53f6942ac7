/* SPDX-License-Identifier: BSD-2-Clause */
/* HBP's column blocks: the choice, for host and GPU; on the host the build, new values, and products */

#include <gallop/deviceimpl.h>
#include "hbp.h"

/* Measured on an H200, docs/development/hbp.md */
#define CACHE_USED  0.625 /* of L2 that x of a product without column blocks may take: the entries need some, too */
#define CACHE_BLOCK 4.5   /* blocks of columns that L2 has room for: thread blocks are not all in the same one, and entries pass through it */

/* HBPColumnsGetRoom - Asks the GPU what column blocks are cut for, unless that is known. The host's format gets the same numbers, so that it has the same arrays. */
PetscErrorCode HBPColumnsGetRoom(const GallopCSR *csr, HBPOptions *options)
{
  PetscBool device = PETSC_FALSE;

  PetscFunctionBegin;
  if (options->agents) PetscFunctionReturn(PETSC_SUCCESS);
  options->cache     = HBP_USUAL_CACHE;
  options->tile_rows = PetscMin((PetscInt)(HBP_TILE_BYTES / sizeof(PetscScalar)), HBP_MAX_TILE) / 32 * 32;
  options->agents    = HBP_USUAL_AGENTS;
  if (options->columns > 1 || (!options->columns && (PetscReal)csr->n * sizeof(PetscScalar) > (PetscReal)(CACHE_USED * HBP_USUAL_CACHE)))
    PetscCall(GallopDeviceAvailable(&device)); /* asking loads the kernel: only where columns may be cut */
#if PetscDefined(HAVE_CUDA)
  if (device) PetscCall(HBPColumnsGetRoom_Device(options));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows of a tile: such that all thread blocks have the same number of tiles, one after the other */
static PetscInt TileRows(const HBPOptions *options, PetscInt m)
{
  const PetscCount most = (PetscCount)options->agents * options->tile_rows, passes = (m - 1) / most + 1;

  if (options->block_rows) return options->block_rows;
  return PetscMin((PetscInt)((m - 1) / (passes * options->agents) + 1 + 31) / 32 * 32, options->tile_rows);
}

/*
  Blocks of columns, 1 for none: where x is more than stays in L2, entries lie anywhere, and enough of them in each sector of x that it pays to keep it. Each x is loaded once for all tiles that are
  computed at the same time.
*/
static PetscInt ChooseNumber(const HBPOptions *options, const GallopCSR *csr, const HBPSample *s)
{
  const PetscReal  bytes = (PetscReal)csr->n * sizeof(PetscScalar), sectors = PetscMax(bytes / HBP_SECTOR, 1.0);
  const PetscCount passes = (csr->m - 1) / ((PetscCount)options->agents * options->tile_rows) + 1;

  if (options->columns) return (PetscInt)PetscMin(options->columns, (csr->n - 1) / HBP_CHUNK + 1);
  if (options->block_rows || options->block_cols || options->shared_x != HBP_SHARED_CHOOSE || options->map != HBP_MAP_CHOOSE || options->long_row || options->lane_entries) return 1;
  if (bytes <= CACHE_USED * options->cache || 2 * s->near >= s->entries || 4 * s->chunks <= 3 * s->entries) return 1; /* as in HBPChoose() */
  if ((PetscReal)csr->nz / passes < HBP_SECTOR_ENTRIES * sectors) return 1;
  return (PetscInt)PetscCeilReal(bytes * CACHE_BLOCK / options->cache);
}

/* HBPColumnsTellRefusal - With -info, why a matrix has no column blocks though they are asked for */
PetscErrorCode HBPColumnsTellRefusal(const HBPOptions *options, const GallopCSR *csr, const char why[])
{
  PetscFunctionBegin;
  if (options->columns > 1) PetscCall(PetscInfo(NULL, "-mat_hbp_columns does nothing for a %" PetscInt_FMT " by %" PetscInt_FMT " matrix: %s\n", csr->m, csr->n, why));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPColumnsChoose - *c is NULL unless the matrix is to have column blocks. Whether it can is found out by the build: rows must have increasing columns and similar numbers of entries. */
PetscErrorCode HBPColumnsChoose(const HBPOptions *options, const GallopCSR *csr, const HBPSample *s, PetscMemType memtype, HBPColumns **c)
{
  const PetscInt num = ChooseNumber(options, csr, s), M = ((csr->n - 1) / num / HBP_CHUNK + 1) * HBP_CHUNK, N = TileRows(options, csr->m), tiles = (csr->m - 1) / N + 1;
  const PetscInt blocks = num > 1 ? (csr->n - 1) / M + 1 : 1;

  PetscFunctionBegin;
  *c = NULL;
  if (blocks < 2 || csr->m > PETSC_INT_MAX - HBP_SPARE || csr->nz > PETSC_INT_MAX - HBP_SPARE) PetscFunctionReturn(PETSC_SUCCESS);
  if ((PetscReal)tiles * blocks > PetscMin((PetscReal)HBP_MOST_BLOCKS(csr->nz), (PetscReal)PETSC_INT32_MAX) || M > PETSC_INT32_MAX) {
    PetscCall(HBPColumnsTellRefusal(options, csr, "there would be too many tiles, or columns of a block"));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscNew(c));
  (*c)->memtype = memtype;
  (*c)->m       = csr->m;
  (*c)->nz      = csr->nz;
  (*c)->num     = blocks;
  (*c)->M       = M;
  (*c)->tiles   = tiles;
  (*c)->N       = N;
  (*c)->keep    = options->keep_x;
  (*c)->longest = options->columns ? HBP_MAX_LINES : (PetscInt)PetscMin(PetscMax(HBP_FEW_LINES, HBP_UNEVEN * (csr->nz / csr->m / blocks)), HBP_MAX_LINES);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode HBPColumnsDestroy(HBPColumns **c)
{
  PetscFunctionBegin;
  if (!*c) PetscFunctionReturn(PETSC_SUCCESS);
  if (PetscMemTypeHost((*c)->memtype)) {
#define FREE(array, number) PetscCall(PetscFree((*c)->array));
    HBP_COLUMNS_ARRAYS(*c, FREE);
#undef FREE
    PetscCall(PetscFree((*c)->sums));
  } else PetscCall(GallopDeviceFree((*c)->data)); /* one allocation */
  PetscCall(PetscFree(*c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Allocate(HBPColumns *c)
{
  PetscFunctionBegin;
#define ALLOCATE(array, number) PetscCall(PetscMalloc1(number, &c->array));
  HBP_COLUMNS_ARRAYS(c, ALLOCATE);
#undef ALLOCATE
  PetscCall(PetscMalloc1(c->N, &c->sums));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPColumnsCopyToHost - A copy on the host of what was built at either place */
PetscErrorCode HBPColumnsCopyToHost(const HBPColumns *c, HBPColumns **copy)
{
  PetscFunctionBegin;
  *copy = NULL;
  if (!c) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscNew(copy));
  **copy           = *c;
  (*copy)->memtype = PETSC_MEMTYPE_HOST;
  PetscCall(Allocate(*copy));
#define COPY(array, number) \
  if ((number) > 0) PetscCall(GallopCopyToHost((*copy)->array, c->memtype, c->array, (size_t)(number) * sizeof(*c->array)));
  HBP_COLUMNS_ARRAYS(c, COPY);
#undef COPY
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The number of entries of each row of each stage, stage by stage; whether the matrix can be stored so */
static PetscBool CountEntries(const HBPColumns *c, const GallopCSR *csr, unsigned char len[])
{
  for (PetscInt r = 0; r < csr->m; r++)
    for (PetscInt k = csr->i[r]; k < csr->i[r + 1]; k++) {
      unsigned char *const own = len + ((PetscCount)(r / c->N) * c->num + csr->j[k] / c->M) * c->N + r % c->N;

      if ((k > csr->i[r] && csr->j[k] <= csr->j[k - 1]) || *own == c->longest) return PETSC_FALSE;
      (*own)++;
    }
  return PETSC_TRUE;
}

/* Segments of a stage with more than k entries, for k from 0 to HBP_MAX_LINES */
static void CountLines(const HBPColumns *c, const unsigned char len[], PetscInt size[HBP_MAX_LINES + 1])
{
  for (int k = 0; k <= HBP_MAX_LINES; k++) size[k] = 0;
  for (PetscInt r = 0; r < c->N; r++)
    if (len[r]) size[len[r] - 1]++;
  for (int k = HBP_MAX_LINES; k-- > 0;) size[k] += size[k + 1];
}

/* Lines of all stages, and their segments by length */
static void PlaceSegments(HBPColumns *c, const unsigned char len[])
{
  PetscInt size[HBP_MAX_LINES + 1], ptr = 0, line = 0, seg = 0;

  for (PetscCount s = 0; s < HBPStages(c); s++, len += c->N) {
    CountLines(c, len, size);
    c->linePtr[s] = line;
    c->segPtr[s]  = seg;
    for (int k = 0; size[k]; k++) {
      c->line[line++] = ptr;
      ptr += size[k];
    }
    seg += size[0];
    for (PetscInt r = 0; r < c->N; r++)
      if (len[r]) c->row[c->segPtr[s] + size[len[r]]++] = (unsigned short)r; /* behind those that are longer */
  }
  c->linePtr[HBPStages(c)] = line;
  c->segPtr[HBPStages(c)]  = seg;
  c->line[line]            = ptr;
}

/* HBPColumnsFill_Host - The values of all entries, and their columns if these are wanted. A segment is looked up in its row. */
void HBPColumnsFill_Host(HBPColumns *c, const GallopCSR *csr, PetscBool columns)
{
  for (PetscCount s = 0; s < HBPStages(c); s++) {
    const PetscCount first = (PetscCount)(s % c->num) * c->M;

    for (PetscInt g = 0; g < c->segPtr[s + 1] - c->segPtr[s]; g++) {
      const PetscInt row = (PetscInt)(s / c->num) * c->N + c->row[c->segPtr[s] + g];
      PetscInt       k   = HBPSegmentBegin(csr->j, csr->i[row], csr->i[row + 1], first);

      for (PetscInt l = c->linePtr[s]; l < c->linePtr[s + 1] && g < c->line[l + 1] - c->line[l]; l++, k++) {
        c->data[c->line[l] + g] = csr->a[k];
        if (columns) c->col[c->line[l] + g] = (unsigned int)(csr->j[k] - first);
      }
    }
  }
}

static size_t Bytes(const HBPColumns *c)
{
  size_t bytes = 0;

#define ADD(array, number) bytes += (size_t)(number) * sizeof(*c->array);
  HBP_COLUMNS_ARRAYS(c, ADD);
#undef ADD
  return bytes;
}

/* HBPColumnsBuild_Host - h->columns, NULL where the matrix is to be stored by blocks of rows and columns */
PetscErrorCode HBPColumnsBuild_Host(HBP *h, const GallopCSR *csr, const HBPSample *s, PetscCount maxbytes)
{
  HBPColumns    *c;
  unsigned char *len;
  PetscBool      fits;

  PetscFunctionBegin;
  PetscCall(HBPColumnsGetRoom(csr, &h->options));
  PetscCall(HBPColumnsChoose(&h->options, csr, s, PETSC_MEMTYPE_HOST, &c));
  if (!c) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscCalloc1(HBPStages(c) * c->N, &len));
  fits = CountEntries(c, csr, len);
  if (!fits) PetscCall(HBPColumnsTellRefusal(&h->options, csr, HBP_COLUMNS_ROWS));
  for (PetscCount t = 0; t < HBPStages(c) && fits; t++) {
    PetscInt size[HBP_MAX_LINES + 1];

    CountLines(c, len + t * c->N, size);
    c->segNum += size[0];
    for (int k = 0; size[k]; k++) c->lineNum++;
  }
  c->bytes = Bytes(c);
  if (fits && maxbytes && c->bytes > (size_t)maxbytes) {
    PetscCall(HBPColumnsTellRefusal(&h->options, csr, HBP_COLUMNS_ROOM));
    fits = PETSC_FALSE;
  }
  if (fits) {
    PetscCall(Allocate(c));
    PlaceSegments(c, len);
    HBPColumnsFill_Host(c, csr, PETSC_TRUE);
    h->columns = c;
    h->bytes   = c->bytes;
  } else PetscCall(HBPColumnsDestroy(&c));
  PetscCall(PetscFree(len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The sum of segment g of a stage */
static PetscScalar SegmentSum(const HBPColumns *c, PetscCount s, PetscInt g, const PetscScalar x[])
{
  PetscScalar sum = 0.0;

  for (PetscInt l = c->linePtr[s]; l < c->linePtr[s + 1] && g < c->line[l + 1] - c->line[l]; l++) sum += c->data[c->line[l] + g] * x[c->col[c->line[l] + g]];
  return sum;
}

/* HBPColumnsMultiply_Host - The product */
void HBPColumnsMultiply_Host(const HBPColumns *c, const GallopProduct *p)
{
  for (PetscInt t = 0; t < c->tiles; t++) {
    const PetscInt rows = PetscMin(c->N, c->m - t * c->N);

    for (PetscInt r = 0; r < rows; r++) c->sums[r] = 0.0;
    for (PetscInt b = 0; b < c->num; b++) {
      const PetscCount s = (PetscCount)t * c->num + b;

      for (PetscInt g = 0; g < c->segPtr[s + 1] - c->segPtr[s]; g++) c->sums[c->row[c->segPtr[s] + g]] += SegmentSum(c, s, g, p->x + (PetscCount)b * c->M);
    }
    for (PetscInt r = 0; r < rows; r++) GallopStoreRow(p, t * c->N + r, c->sums[r]);
  }
}

/* HBPColumnsAddTranspose_Host - Adds the transposed product to z */
void HBPColumnsAddTranspose_Host(const HBPColumns *c, const GallopProduct *p, PetscBool conjugate)
{
  for (PetscCount s = 0; s < HBPStages(c); s++) {
    PetscScalar *const z = p->z + (PetscCount)(s % c->num) * c->M;

    for (PetscInt l = c->linePtr[s]; l < c->linePtr[s + 1]; l++)
      for (PetscInt e = c->line[l]; e < c->line[l + 1]; e++) {
        const PetscScalar x = p->x[(PetscInt)(s / c->num) * c->N + c->row[c->segPtr[s] + (e - c->line[l])]];

        z[c->col[e]] += *p->alpha * ((conjugate ? PetscConj(c->data[e]) : c->data[e]) * x);
      }
  }
}
