/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/*
  Matrices of which it can be told what TiledSpMM chooses on a GPU, by -mat_tiledspmm_kernel choose and, for the segments of rows, by staged: tests/mat/tiledspmmchoose.c asks a GPU, and
  tests/emulation/tiledspmmchoose.cpp the same code on the CPU. What is expected depends on nothing of a GPU but its multiprocessors, its L2 cache, and whether tensor cores multiply tiles. Each includes
  its tiledspmm.h before.
*/

/* Which entries a matrix has */
typedef enum {
  CASE_BAND,   /* rows of len entries from the diagonal on: loads of B touch little more than they need */
  CASE_BLOCKS, /* blocks of eight rows and columns on the diagonal, full */
  CASE_FULLER, /* 64 full columns, which are what is looked at first, and behind them len entries, each the only one of its tile */
  CASE_APART,  /* rows of four entries in lines of B that no row near them names */
  CASE_MIXED,  /* rows of two entries, each in another line than those of the rows beside them, in 256 columns that all of their 256 rows share */
  CASE_LONG    /* row m / 2 has len entries, the others are a band of three */
} CasePattern;

/* Sizes that are the GPU's, see CaseSizes() */
enum { CASE_RESIDENT = -1, CASE_FITS = -1, CASE_IS_MORE = -2 };

/* Segments of U mu, see CaseSegment() */
enum { CASE_U_MU = -1 };

typedef struct {
  const char     *what;
  CasePattern     pattern;
  PetscInt        m, n, len;
  PetscBool       staged;                 /* that kernel is asked for, with panels of 32 rows */
  double          utilization, imbalance; /* -1 for what they are without the options */
  TiledSpMMKernel kernel;                 /* where tensor cores multiply tiles */
  TiledSpMMKernel other;                  /* where they do not, or the tiles that were looked at are not what there is, for which TENSOR is expected of the look */
  PetscInt        segment;                /* 0: no row is cut */
} TiledSpMMCase;

#define CASE_PANEL       32
#define CASE_UTILIZATION 0.65 /* without options */
#define CASE_IMBALANCE   1.0

/*
  The mean of "one long row" is 36, the standard deviation of its lengths 15.9 times that, and U is less than 0.6 whatever GPU it is; 2500, a fourth of the long row, is more than U mu, which is 32, the
  least. With stages there is no least: the mean is 3, or U mu what the multiprocessors leave of 79997 entries.
*/
static const TiledSpMMCase tiledspmmcases[] = {
  {"three entries in a row",                     CASE_BAND,   4096,          4099,         3,     PETSC_FALSE, -1,   -1,   TILEDSPMM_CACHED,     TILEDSPMM_CACHED,     0        },
  {"a quarter of the places in tiles",           CASE_BAND,   4096,          4096,         4,     PETSC_FALSE, -1,   -1,   TILEDSPMM_TENSOR,     TILEDSPMM_CACHED,     0        },
  {"full blocks",                                CASE_BLOCKS, 2048,          2048,         8,     PETSC_FALSE, -1,   -1,   TILEDSPMM_TENSOR,     TILEDSPMM_CACHED,     0        },
  {"rows that begin with full tiles",            CASE_FULLER, 64,            12864,        200,   PETSC_FALSE, -1,   -1,   TILEDSPMM_TENSOR,     TILEDSPMM_TRANSPOSED, 32       },
  {"lines that one row names",                   CASE_APART,  2048,          32768,        4,     PETSC_FALSE, -1,   -1,   TILEDSPMM_TRANSPOSED, TILEDSPMM_TRANSPOSED, 0        },
  {"lines that many rows name, B fits in L2",    CASE_MIXED,  1024,          CASE_FITS,    2,     PETSC_FALSE, -1,   -1,   TILEDSPMM_CACHED,     TILEDSPMM_CACHED,     0        },
  {"lines that many rows name, B does not fit",  CASE_MIXED,  1024,          CASE_IS_MORE, 2,     PETSC_FALSE, -1,   -1,   TILEDSPMM_TRANSPOSED, TILEDSPMM_TRANSPOSED, 0        },
  {"one long row",                               CASE_LONG,   300,           10000,        10000, PETSC_FALSE, -1,   -1,   TILEDSPMM_TRANSPOSED, TILEDSPMM_TRANSPOSED, 32       },
  {"one long row, not by imbalance",             CASE_LONG,   300,           10000,        10000, PETSC_FALSE, -1,   1e30, TILEDSPMM_TRANSPOSED, TILEDSPMM_TRANSPOSED, 32       },
  {"one long row, not by utilization",           CASE_LONG,   300,           10000,        10000, PETSC_FALSE, 0,    -1,   TILEDSPMM_TRANSPOSED, TILEDSPMM_TRANSPOSED, 32       },
  {"one long row, by neither",                   CASE_LONG,   300,           10000,        10000, PETSC_FALSE, 0,    1e30, TILEDSPMM_CACHED,     TILEDSPMM_CACHED,     0        },
  {"one long row, more imbalance allowed",       CASE_LONG,   300,           10000,        10000, PETSC_FALSE, 0,    17,   TILEDSPMM_CACHED,     TILEDSPMM_CACHED,     0        },
  {"one long row, hardly so much allowed",       CASE_LONG,   300,           10000,        10000, PETSC_FALSE, 0,    15,   TILEDSPMM_TRANSPOSED, TILEDSPMM_TRANSPOSED, 32       },
  {"one long row, less utilization allowed",     CASE_LONG,   300,           10000,        10000, PETSC_FALSE, 1e-6, 1e30, TILEDSPMM_CACHED,     TILEDSPMM_CACHED,     0        },
  {"enough rows",                                CASE_LONG,   CASE_RESIDENT, 0,            10000, PETSC_FALSE, -1,   1e30, TILEDSPMM_CACHED,     TILEDSPMM_CACHED,     0        },
  {"enough rows, more wanted",                   CASE_LONG,   CASE_RESIDENT, 0,            10000, PETSC_FALSE, 1.01, 1e30, TILEDSPMM_TRANSPOSED, TILEDSPMM_TRANSPOSED, 32       },
  {"stages",                                     CASE_LONG,   20000,         20002,        20000, PETSC_TRUE,  -1,   -1,   TILEDSPMM_STAGED,     TILEDSPMM_STAGED,     3        },
  {"stages, not by imbalance, and enough rows",  CASE_LONG,   20000,         20002,        20000, PETSC_TRUE,  -1,   1e30, TILEDSPMM_STAGED,     TILEDSPMM_STAGED,     0        },
  {"stages, not by imbalance, more rows wanted", CASE_LONG,   20000,         20002,        20000, PETSC_TRUE,  100,  1e30, TILEDSPMM_STAGED,     TILEDSPMM_STAGED,     CASE_U_MU},
};

/* Rows and columns: as many rows as the multiprocessors work on at once, as many columns as 32 columns of B have rows that fit in L2, or one more */
static inline void CaseSizes(const TiledSpMMCase *c, PetscInt processors, size_t l2, PetscInt *m, PetscInt *n)
{
  *m = c->m == CASE_RESIDENT ? 512 * processors : c->m;
  *n = c->m == CASE_RESIDENT ? *m + c->len : c->n;
  if (c->n < 0) *n = (PetscInt)(l2 / (32 * sizeof(PetscScalar))) + (c->n == CASE_IS_MORE);
}

static inline PetscInt CaseLength(const TiledSpMMCase *c, PetscInt m, PetscInt r)
{
  if (c->pattern == CASE_LONG && r != m / 2) return 3;
  return c->pattern == CASE_FULLER ? 64 + c->len : c->len;
}

/* The column of entry k of row r; columns increase */
static inline PetscInt CaseColumn(const TiledSpMMCase *c, PetscInt m, PetscInt n, PetscInt r, PetscInt k)
{
  const PetscInt len = CaseLength(c, m, r);

  switch (c->pattern) {
  case CASE_BLOCKS:
    return r / 8 * 8 + k;
  case CASE_FULLER:
    return k < 64 ? k : 64 * (k - 63) + 8 * (r % 8);
  case CASE_APART:
    return 8192 * k + 37 * 8 * r % 8192; /* eight numbers are a line, or more */
  case CASE_MIXED:
    return r / 256 * 256 + 128 * k + 37 * r % 128;
  default:
    return PetscMin(r, n - len) + k;
  }
}

static inline PetscInt CaseSegment(const TiledSpMMCase *c, PetscCount nz, PetscInt processors)
{
  return c->segment == CASE_U_MU ? (PetscInt)PetscMax(1, nz / (CASE_PANEL * (PetscCount)processors)) : c->segment;
}
