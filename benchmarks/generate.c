/* SPDX-License-Identifier: BSD-2-Clause */
/* Seeded matrices for the benchmark: CSR arrays made directly, since MatSetValues() would take longer than the measurements */

#include "generate.h"

typedef struct {
  PetscInt     m, n, *i, *j;
  PetscScalar *a;
} CSR;

/* Positions in any order, some of them repeatedly */
typedef struct {
  PetscInt   m, n, *i, *j;
  PetscCount len, room;
} Positions;

static PetscErrorCode CSRDestroy(PetscCtxRt ctx)
{
  CSR *csr = *(CSR **)ctx;

  PetscFunctionBegin;
  PetscCall(PetscFree(csr->i));
  PetscCall(PetscFree(csr->j));
  PetscCall(PetscFree(csr->a));
  PetscCall(PetscFree(csr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- stencils: rows in order, columns sorted ---- */

static PetscErrorCode Stencil(int dim, PetscBool box, PetscInt bs, PetscInt side, PetscInt radius, CSR *csr)
{
  const PetscInt N[3] = {side, dim > 1 ? side : 1, dim > 2 ? side : 1}, R[3] = {radius, dim > 1 ? radius : 0, dim > 2 ? radius : 0};
  PetscInt(*off)[3], noff = 0, row = 0;
  PetscCount nz = 0;

  PetscFunctionBegin;
  PetscCall(PetscIntCast((PetscInt64)N[0] * N[1] * N[2] * bs, &csr->m));
  csr->n = csr->m;
  PetscCall(PetscMalloc1((size_t)(2 * R[0] + 1) * (2 * R[1] + 1) * (2 * R[2] + 1), &off));
  for (PetscInt z = -R[2]; z <= R[2]; z++) {
    for (PetscInt y = -R[1]; y <= R[1]; y++) {
      for (PetscInt x = -R[0]; x <= R[0]; x++) {
        if (!box && !!x + !!y + !!z > 1) continue;
        off[noff][0]   = x;
        off[noff][1]   = y;
        off[noff++][2] = z;
      }
    }
  }
  PetscCall(PetscMalloc1(csr->m + 1, &csr->i));
  PetscCall(PetscMalloc1((size_t)csr->m * PetscMin(noff * bs, csr->n), &csr->j));
  csr->i[0] = 0;
  for (PetscInt z = 0; z < N[2]; z++) {
    for (PetscInt y = 0; y < N[1]; y++) {
      for (PetscInt x = 0; x < N[0]; x++) {
        for (PetscInt b = 0; b < bs; b++) {
          for (PetscInt o = 0; o < noff; o++) {
            const PetscInt p = x + off[o][0], q = y + off[o][1], r = z + off[o][2];

            if (p < 0 || p >= N[0] || q < 0 || q >= N[1] || r < 0 || r >= N[2]) continue;
            for (PetscInt c = 0; c < bs; c++) csr->j[nz++] = ((r * N[1] + q) * N[0] + p) * bs + c;
          }
          PetscCall(PetscIntCast((PetscInt64)nz, &csr->i[++row]));
        }
      }
    }
  }
  PetscCall(PetscFree(off));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- random patterns ---- */

static uint64_t Draw(uint64_t *state)
{
  return BenchMix(*state += 0x9e3779b97f4a7c15u);
}

/* in [0,1) */
static double Share(uint64_t *state)
{
  return (double)(Draw(state) >> 11) * 0x1p-53;
}

/* in 0, 1, ..., n-1 */
static PetscInt Pick(uint64_t *state, PetscInt n)
{
  return (PetscInt)(Share(state) * (double)n);
}

static PetscInt Clip(double column, PetscInt n)
{
  return (PetscInt)PetscClipInterval(column, 0.0, (double)(n - 1));
}

static PetscErrorCode Shape(Positions *p, double m, double n, double room)
{
  PetscFunctionBegin;
  PetscCheck(m >= 1 && n >= 1 && m <= PETSC_INT_MAX && n <= PETSC_INT_MAX && room >= 0 && room < 1e11, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "No matrix can be generated with %g rows, %g columns and %g entries", m, n, room);
  p->m    = (PetscInt)m;
  p->n    = (PetscInt)n;
  p->room = (PetscCount)room + 1024;
  PetscCall(PetscMalloc2(p->room, &p->i, p->room, &p->j));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline void Add(Positions *p, PetscInt i, PetscInt j)
{
  if (p->len >= p->room) PETSCABORT(PETSC_COMM_SELF, PETSC_ERR_PLIB); /* a generator asked Shape() for too little room */
  p->i[p->len]   = i;
  p->j[p->len++] = j;
}

/* Sorts by column, then by row, each time by counting, and drops what is there twice; frees the positions */
static PetscErrorCode Compress(Positions *p, CSR *csr)
{
  const PetscInt m = p->m, n = p->n;
  PetscInt      *rows;
  PetscCount    *first, *end, nz = 0;

  PetscFunctionBegin;
  PetscCall(PetscCalloc2((size_t)n + 1, &first, (size_t)m + 1, &end));
  PetscCall(PetscMalloc1(p->len, &rows));
  for (PetscCount k = 0; k < p->len; k++) first[p->j[k] + 1]++;
  for (PetscInt c = 0; c < n; c++) first[c + 1] += first[c];
  for (PetscCount k = 0; k < p->len; k++) rows[first[p->j[k]]++] = p->i[k]; /* now first[c] is where column c ends */
  for (PetscCount k = 0; k < p->len; k++) end[p->i[k] + 1]++;
  for (PetscInt r = 0; r < m; r++) end[r + 1] += end[r];
  csr->m = m;
  csr->n = n;
  PetscCall(PetscFree2(p->i, p->j));
  PetscCall(PetscMalloc1(p->len, &csr->j));
  PetscCall(PetscMalloc1((size_t)m + 1, &csr->i));
  for (PetscInt c = 0; c < n; c++)
    for (PetscCount k = c ? first[c - 1] : 0; k < first[c]; k++) csr->j[end[rows[k]]++] = c; /* now end[r] is where row r ends */
  csr->i[0] = 0;
  for (PetscInt r = 0; r < m; r++) {
    for (PetscCount k = r ? end[r - 1] : 0, begin = nz; k < end[r]; k++)
      if (nz == begin || csr->j[nz - 1] != csr->j[k]) csr->j[nz++] = csr->j[k];
    PetscCall(PetscIntCast((PetscInt64)nz, &csr->i[r + 1]));
  }
  PetscCall(PetscFree(rows));
  PetscCall(PetscFree2(first, end));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A random order of numbers 0 to n-1, each within its window */
static void Shuffle(uint64_t *rng, PetscInt n, PetscInt window, PetscInt number[])
{
  for (PetscInt k = 0; k < n; k++) {
    const PetscInt first = k / window * window, other = first + Pick(rng, k - first + 1);

    number[k]     = number[other];
    number[other] = k;
  }
}

static PetscErrorCode Kron(const double v[], uint64_t *rng, Positions *p)
{
  const double n = PetscPowRealInt(2, (int)PetscClipInterval(v[0], 0, 30)), edges = n * v[1];
  PetscInt    *name;

  PetscFunctionBegin;
  PetscCall(Shape(p, n, n, 2 * edges));
  PetscCall(PetscMalloc1(p->m, &name));
  Shuffle(rng, p->m, p->m, name);
  for (PetscCount e = 0; e < (PetscCount)edges; e++) {
    PetscInt i = 0, j = 0;
    uint64_t bits = 0;

    for (int level = 0; level < (int)v[0]; level++, bits >>= 16) {
      if (level % 4 == 0) bits = Draw(rng);
      const unsigned u = bits & 0xffff; /* quadrants of probability 0.57, 0.19, 0.19, 0.05 */

      i = 2 * i + (u >= 49807);
      j = 2 * j + ((u >= 37356 && u < 49807) || u >= 62259);
    }
    Add(p, name[i], name[j]);
    Add(p, name[j], name[i]);
  }
  PetscCall(PetscFree(name));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Web(const double v[], uint64_t *rng, Positions *p)
{
  const double n = v[0], mean = v[1], exponent = v[2], local = v[3], least = mean * (exponent - 1) / exponent, most = n / 8;
  uint64_t     again = *rng;
  double       total = 0;

  PetscFunctionBegin;
  for (PetscInt pass = 0; pass < 2; pass++) { /* first the number of entries, then the same rows again */
    uint64_t lengths = again;

    if (pass) PetscCall(Shape(p, n, n, total));
    *rng = BenchMix(again);
    for (PetscInt i = 0; i < (PetscInt)n; i++) {
      const PetscInt len = (PetscInt)PetscMax(1, PetscMin(least * pow(1 - Share(&lengths), -1 / exponent), most));

      total += len;
      for (PetscInt k = 0; pass && k < len; k++) Add(p, i, Share(rng) < local ? Clip((double)i + Pick(rng, 401) - 200, p->n) : (PetscInt)(n * pow(Share(rng), 4)));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Circuit(const double v[], uint64_t *rng, Positions *p)
{
  const double n = v[0], mean = v[1];

  PetscFunctionBegin;
  PetscCall(Shape(p, n, n, n * PetscMax(mean, 1) + 2 * v[2] * v[3] + (v[4] >= 1 ? (n / v[4] + 1) * v[5] : 0)));
  for (PetscInt i = 0; i < p->n; i++) Add(p, i, i);
  for (PetscCount k = 0; k < (PetscCount)(n * (mean - 1)); k++) {
    const PetscInt i = Pick(rng, p->n);

    Add(p, i, Clip((double)i + 300 * tan(PETSC_PI * (Share(rng) - 0.5)), p->n)); /* mostly near, sometimes anywhere */
  }
  for (PetscInt d = 0; d < (PetscInt)v[2]; d++) {
    const PetscInt row = Pick(rng, p->n), len = (PetscInt)(v[3] / (d + 1));

    for (PetscInt k = 0; k < len; k++) {
      const PetscInt col = Pick(rng, p->n);

      Add(p, row, col);
      Add(p, col, row);
    }
  }
  for (PetscInt i = (PetscInt)v[4] / 2; v[4] >= 1 && i < p->n; i += (PetscInt)v[4])
    for (PetscInt k = 0; k < (PetscInt)v[5]; k++) Add(p, i, Clip((double)i + (2 * Share(rng) - 1) * v[5], p->n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Uniform(const double v[], uint64_t *rng, Positions *p)
{
  PetscFunctionBegin;
  PetscCall(Shape(p, v[0], v[0], v[0] * v[1]));
  for (PetscInt i = 0; i < p->m; i++)
    for (PetscInt k = 0; k < (PetscInt)v[1]; k++) Add(p, i, Pick(rng, p->n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Uneven(const double v[], uint64_t *rng, Positions *p)
{
  PetscFunctionBegin;
  PetscCall(Shape(p, v[0], v[0], v[0] * PetscMax(v[1], 1)));
  for (PetscInt i = 0; i < p->m; i++) {
    const PetscInt len = 1 + Pick(rng, (PetscInt)PetscMax(v[1], 1));

    for (PetscInt k = 0; k < len; k++) Add(p, i, Pick(rng, p->n));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Anywhere(const double v[], uint64_t *rng, Positions *p)
{
  PetscFunctionBegin;
  PetscCall(Shape(p, v[0], v[0], v[0] * v[1]));
  for (PetscCount k = 0; k < (PetscCount)(v[0] * v[1]); k++) {
    const PetscInt i = Pick(rng, p->m);

    Add(p, i, Pick(rng, p->n));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LongRows(const double v[], uint64_t *rng, Positions *p)
{
  const double reach = PetscMin(4 * v[2], v[0] / 2);

  PetscFunctionBegin;
  PetscCall(Shape(p, v[0], v[0], v[0] * PetscMax(v[2], v[3])));
  for (PetscInt i = 0; i < p->m; i++) {
    const PetscInt len = (PetscInt)(Share(rng) < v[1] ? v[2] : v[3]);

    for (PetscInt k = 0; k < len; k++) Add(p, i, (PetscInt)fmod((double)i + floor((2 * Share(rng) - 1) * reach) + v[0], v[0]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Wide(const double v[], uint64_t *rng, Positions *p)
{
  PetscFunctionBegin;
  PetscCall(Shape(p, v[0], v[1], v[0] * v[2] + v[3]));
  for (PetscInt i = 0; i < p->m; i++) {
    const PetscCount len = (PetscCount)(i == p->m / 2 && v[3] > 0 ? v[3] : v[2]);

    for (PetscCount k = 0; k < len; k++) Add(p, i, Pick(rng, p->n));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LinearProgram(const double v[], uint64_t *rng, Positions *p)
{
  PetscFunctionBegin;
  PetscCall(Shape(p, v[0], v[1], v[1] * v[2] + 20 * v[1] / 8));
  for (PetscInt j = 0; j < p->n; j++)
    for (PetscInt k = 0; k < (PetscInt)v[2]; k++) Add(p, Pick(rng, p->m), j);
  for (PetscInt i = 0; i < PetscMin(20, p->m); i++)
    for (PetscInt k = 0; k < p->n / 8; k++) Add(p, i, Pick(rng, p->n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A grid whose points are numbered at random within windows: neighbours on all sides, or those along the axes */
static PetscErrorCode Grid(double side, double unknowns, double window, PetscBool box, uint64_t *rng, Positions *p)
{
  const double points = side * side * side;
  PetscInt    *number, n, N, bs;

  PetscFunctionBegin;
  PetscCall(Shape(p, points * unknowns, points * unknowns, points * (box ? 27 : 7) * unknowns * unknowns));
  n  = (PetscInt)points;
  N  = (PetscInt)side;
  bs = (PetscInt)unknowns;
  PetscCall(PetscMalloc1(n, &number));
  Shuffle(rng, n, (PetscInt)PetscMin(window, points), number);
  for (PetscInt k = 0; k < n; k++) {
    const PetscInt x = k % N, y = k / N % N, z = k / N / N;

    for (PetscInt r = PetscMax(z - 1, 0); r <= PetscMin(z + 1, N - 1); r++)
      for (PetscInt q = PetscMax(y - 1, 0); q <= PetscMin(y + 1, N - 1); q++)
        for (PetscInt o = PetscMax(x - 1, 0); o <= PetscMin(x + 1, N - 1); o++) {
          if (!box && (o != x) + (q != y) + (r != z) > 1) continue;
          for (PetscInt b = 0; b < bs * bs; b++) Add(p, number[k] * bs + b / bs, number[(r * N + q) * N + o] * bs + b % bs);
        }
  }
  PetscCall(PetscFree(number));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* As an unstructured mesh in an order that keeps neighbours near: points have no pattern within a window */
static PetscErrorCode Mesh(const double v[], uint64_t *rng, Positions *p)
{
  const double side = floor(v[0]);

  PetscFunctionBegin;
  PetscCall(Grid(side, floor(v[1]), v[2] >= 1 ? v[2] : side * side, PETSC_TRUE, rng, p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* As one in no order */
static PetscErrorCode Shuffled(const double v[], uint64_t *rng, Positions *p)
{
  const double side = floor(v[0]);

  PetscFunctionBegin;
  PetscCall(Grid(side, 1, side * side * side, PETSC_FALSE, rng, p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Lengths of rows: v[0] to v[1], or, of a share v[3], more than that to v[2], each as likely */
static PetscInt Length(const double v[], uint64_t *rng)
{
  return Share(rng) < v[3] ? (PetscInt)v[1] + 1 + Pick(rng, (PetscInt)PetscMax(v[2] - v[1], 1)) : (PetscInt)v[0] + Pick(rng, (PetscInt)(v[1] - v[0]) + 1);
}

static PetscErrorCode ShapeOfLengths(Positions *p, double n, const double v[])
{
  const double mean = (1 - v[3]) * (v[0] + v[1]) / 2 + v[3] * (v[1] + 1 + v[2]) / 2;

  PetscFunctionBegin;
  PetscCheck(v[0] <= v[1] && v[1] <= v[2] && v[3] <= 1, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Lengths of rows are %g to %g and, of a share %g, to %g: they must not decrease", v[0], v[1], v[3], v[2]);
  PetscCall(Shape(p, n, n, n * mean + 100 * v[2] * sqrt(n)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  PetscInt x, y, z;
} Offset;

/* The nearest first, and a definite order of those that are as near */
static int CompareOffsets(const void *a, const void *b)
{
  const Offset  *p = (const Offset *)a, *q = (const Offset *)b;
  const PetscInt d[] = {p->x * p->x + p->y * p->y + p->z * p->z - q->x * q->x - q->y * q->y - q->z * q->z, p->z - q->z, p->y - q->y, p->x - q->x};
  int            k   = 0;

  while (k < 3 && !d[k]) k++;
  return (d[k] > 0) - (d[k] < 0);
}

/* As finite elements of different order, or molecules: each point with those nearest to it, as many as its rows are to have */
static PetscErrorCode Points(const double v[], uint64_t *rng, Positions *p)
{
  const PetscInt bs = (PetscInt)PetscMax(v[1], 1), n = (PetscInt)(v[0] / bs), r = (PetscInt)ceil(cbrt(v[4] / bs)) + 1;
  const double   window = PetscClipInterval(v[6], 1, n);
  PetscInt      *number, noff = 0, N = 1;
  Offset        *off;

  PetscFunctionBegin;
  PetscCheck(n >= 1, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "%g rows are not one point with %" PetscInt_FMT " unknowns", v[0], bs);
  PetscCall(ShapeOfLengths(p, (double)n * bs, v + 2));
  while ((PetscInt64)N * N * N < n) N++;
  PetscCall(PetscMalloc2(n, &number, (size_t)PetscPowInt(2 * r + 1, 3), &off));
  Shuffle(rng, n, (PetscInt)window, number);
  for (PetscInt z = -r; z <= r; z++)
    for (PetscInt y = -r; y <= r; y++)
      for (PetscInt x = -r; x <= r; x++) off[noff++] = (Offset){x, y, z};
  qsort(off, noff, sizeof(*off), CompareOffsets);
  for (PetscInt k = 0; k < n; k++) {
    PetscInt left = Length(v + 2, rng) / bs;

    for (PetscInt o = 0; o < noff && left; o++) {
      const PetscInt x = k % N + off[o].x, y = k / N % N + off[o].y, z = k / N / N + off[o].z;

      if (x < 0 || x >= N || y < 0 || y >= N || z < 0 || z >= N || (z * N + y) * N + x >= n) continue;
      for (PetscInt b = 0; b < bs * bs; b++) Add(p, number[k] * bs + b / bs, number[(z * N + y) * N + x] * bs + b % bs);
      left--;
    }
  }
  PetscCall(PetscFree2(number, off));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* As states of a polymer in DNA electrophoresis, numbered by their digits: neighbours differ in a digit, so columns are 3^k and 2 3^k away */
static PetscErrorCode Cage(const double v[], uint64_t *rng, Positions *p)
{
  PetscInt off[128], noff = 0;

  PetscFunctionBegin;
  PetscCall(ShapeOfLengths(p, v[0], v + 1));
  for (PetscInt power = 1; power <= p->n / 8; power *= 3) {
    for (PetscInt digit = 1; digit <= 2 && digit * power <= p->n / 8; digit++) {
      off[noff++] = -digit * power;
      off[noff++] = digit * power;
    }
  }
  for (PetscInt i = 0; i < p->n; i++) {
    PetscInt left = Length(v + 1, rng) - 1;

    Add(p, i, i);
    for (PetscInt k = 0; k < noff && left > 0; k++) { /* all in a random order, so far as they are wanted */
      const PetscInt other = k + Pick(rng, noff - k), o = off[other];

      off[other] = off[k];
      off[k]     = o;
      if (i + o < 0 || i + o >= p->n) continue;
      Add(p, i, i + o);
      left--;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- names ---- */

#define MOST_NUMBERS 7

typedef struct {
  const char *name;
  int         least, most;            /* how many numbers follow the name */
  double      defaults[MOST_NUMBERS]; /* of those that may be left out */
  PetscErrorCode (*draw)(const double[], uint64_t *, Positions *);
  int       dim; /* of a stencil, which has draw NULL */
  PetscBool box;
  PetscInt  bs;
} Generator;

static const Generator generators[] = {
  {"star5_",     1, 2, {0, 1},          NULL,          2, PETSC_FALSE, 1},
  {"star7_",     1, 2, {0, 1},          NULL,          3, PETSC_FALSE, 1},
  {"box27_",     1, 2, {0, 1},          NULL,          3, PETSC_TRUE,  1},
  {"elast27b3_", 1, 2, {0, 1},          NULL,          3, PETSC_TRUE,  3},
  {"band",       2, 2, {0},             NULL,          1, PETSC_TRUE,  1},
  {"dense",      1, 1, {0, 1e9},        NULL,          1, PETSC_TRUE,  1},
  {"kron",       1, 2, {0, 48},         Kron,          0, PETSC_FALSE, 0},
  {"web",        2, 4, {0, 0, 1.7, .7}, Web,           0, PETSC_FALSE, 0},
  {"circuit",    2, 6, {0},             Circuit,       0, PETSC_FALSE, 0},
  {"uniform",    2, 2, {0},             Uniform,       0, PETSC_FALSE, 0},
  {"uneven",     2, 2, {0},             Uneven,        0, PETSC_FALSE, 0},
  {"random",     2, 2, {0},             Anywhere,      0, PETSC_FALSE, 0},
  {"longrows",   4, 4, {0},             LongRows,      0, PETSC_FALSE, 0},
  {"wide",       3, 4, {0},             Wide,          0, PETSC_FALSE, 0},
  {"lp",         3, 3, {0},             LinearProgram, 0, PETSC_FALSE, 0},
  {"mesh",       1, 3, {0, 1, 0},       Mesh,          0, PETSC_FALSE, 0},
  {"shuffled7_", 1, 1, {0},             Shuffled,      0, PETSC_FALSE, 0},
  {"points",     6, 7, {0},             Points,        0, PETSC_FALSE, 0},
  {"cage",       5, 5, {0},             Cage,          0, PETSC_FALSE, 0},
};

static PetscErrorCode Parse(const char name[], const Generator **generator, double v[MOST_NUMBERS], PetscBool *constant, PetscBool *real)
{
  const Generator *g = generators, *end = generators + PETSC_STATIC_ARRAY_LENGTH(generators);
  PetscBool        match = PETSC_FALSE;
  const char      *rest;
  int              n = 0;

  PetscFunctionBegin;
  for (; g < end; g++) {
    PetscCall(PetscStrbeginswith(name, g->name, &match));
    if (match) break;
  }
  PetscCheck(match, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "No generator is called %s; -help lists them", name);
  *constant = *real = PETSC_FALSE;
  PetscCall(PetscArraycpy(v, g->defaults, MOST_NUMBERS));
  for (rest = name + strlen(g->name); *rest; rest += *rest == '_') {
    char *after;

    if (!strcmp(rest, "c") || !strcmp(rest, "r")) {
      *(*rest == 'c' ? constant : real) = PETSC_TRUE;
      break;
    }
    PetscCheck(n < g->most, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "%s: at most %d numbers belong to %s", name, g->most, g->name);
    v[n] = strtod(rest, &after);
    if (*after == 'k' || *after == 'M') v[n] *= *after++ == 'k' ? 1e3 : 1e6;
    PetscCheck(after > rest && (!*after || *after == '_') && v[n] >= 0 && v[n] <= 1e12, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "%s: where it says %s a number is expected", name, rest);
    rest = after;
    n++;
  }
  PetscCheck(n >= g->least && v[0] >= 1, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "%s: %s wants at least %d numbers, the first not below 1", name, g->name, g->least);
  *generator = g;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BenchGenerate(const char name[], PetscInt seed, Mat *A)
{
  const Generator *g;
  double           v[MOST_NUMBERS];
  PetscBool        constant, real;
  PetscInt         longest = 0;
  CSR             *csr;

  PetscFunctionBegin;
  PetscCall(Parse(name, &g, v, &constant, &real));
  PetscCall(PetscNew(&csr));
  if (g->draw) {
    uint64_t  rng = BenchMix((uint64_t)seed);
    Positions p   = {0, 0, NULL, NULL, 0, 0};

    PetscCall((*g->draw)(v, &rng, &p));
    PetscCall(Compress(&p, csr));
  } else PetscCall(Stencil(g->dim, g->box, g->bs, (PetscInt)PetscMin(v[0], PETSC_INT_MAX), (PetscInt)PetscMin(v[1], v[0] - 1), csr));
  PetscCall(PetscMalloc1(csr->i[csr->m], &csr->a));
  for (PetscInt i = 0; i < csr->m; i++) longest = PetscMax(longest, csr->i[i + 1] - csr->i[i]);
  for (PetscInt i = 0; i < csr->m; i++) {
    for (PetscInt k = csr->i[i]; k < csr->i[i + 1]; k++) {
      const PetscInt j = csr->j[k], low = PetscMin(i, j), high = PetscMax(i, j);

      if (constant) csr->a[k] = i == j ? (PetscReal)(longest - 1) : (PetscReal)-1;
      else csr->a[k] = real ? (PetscScalar)BenchRandom(seed, low, high) : BenchRandomScalar(seed, low, high);
    }
  }
  PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, csr->m, csr->n, csr->i, csr->j, csr->a, A));
  PetscCall(PetscObjectContainerCompose((PetscObject)*A, "BenchGenerate arrays", csr, CSRDestroy)); /* the matrix does not own them */
  PetscFunctionReturn(PETSC_SUCCESS);
}
