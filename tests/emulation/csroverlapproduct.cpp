/* SPDX-License-Identifier: BSD-2-Clause */
/* CSROVERLAP's product on the GPU, and the dot product that it computes on the way: src/mat/impls/csroverlap/csroverlapproduct.cu, with the batches that csroverlapdevice.cu makes */
#include "producttest.h"
#include "mat/impls/csroverlap/csroverlapproduct.cu"
#include "mat/impls/csroverlap/csroverlapdevice.cu"
#include "mat/impls/csroverlap/csroverlappack.cu"
#include "mat/impls/csroverlap/csroverlaphost.c"

/* ---- parts of the format that are not tested here: all entries are on the GPU, of a matrix whose batches the host finds ---- */

PetscErrorCode CSROverlapPartition_Device(const CSROverlapOptions *, PetscInt, PetscInt, PetscCount, const PetscInt[], CSROverlapParts *)
{
  emu::Fail("batches of a large matrix");
}

PetscErrorCode CSROverlapTransferCreate(CSROverlap *, const GallopCSR *, const CSROverlapPlan *, PetscCount, CSROverlapTransfer **)
{
  emu::Fail("a matrix on the host");
}

PetscErrorCode CSROverlapTransferDestroy(CSROverlapTransfer **)
{
  return PETSC_SUCCESS;
}

PetscErrorCode CSROverlapTransferRefresh(CSROverlap *, const GallopCSR *)
{
  emu::Fail("a matrix on the host");
}

PetscErrorCode CSROverlapTransferApply(CSROverlap *, const GallopProduct *, PetscBool *)
{
  emu::Fail("a matrix on the host");
}

PetscBool CSROverlapTransferIsDue(const CSROverlap *)
{
  return PETSC_FALSE;
}

/* ---- the test ---- */

enum { REGISTERS = 1, VECTORS = 2, WAITING = 4, WARPS = 8, PIECES = 16, EMPTY = 32 };

struct Case {
  const char *name;
  PetscInt    m, n;
  Length      length;
  PetscInt    batch; /* -mat_csroverlap_max_batch_size */
  int         processors;
  int         kinds; /* of batches and rows that are to be there */
};

static int Kinds(const CSROverlap *ov)
{
  int kinds = ov->busy_num < ov->batch_num ? EMPTY : 0;

  for (PetscInt b = 0; b < ov->batch_num; b++) {
    const int kind = ov->batch_works[b].kind;

    kinds |= kind & CSROVERLAP_KIND_ROWS ? REGISTERS : (kind & CSROVERLAP_KIND_SIZE) == CSROVERLAP_SIZES - 1 ? WARPS : VECTORS;
    if (kind & CSROVERLAP_KIND_UNEVEN) kinds |= WAITING;
  }
  for (PetscInt p = 0; p < ov->piece_num; p++)
    if (ov->pieces[p].pieces > 1) kinds |= PIECES;
  return kinds;
}

static void Test(const Case &c)
{
  const Matrix      A       = NewMatrix(c.m, c.n, c.length);
  CSROverlapOptions options = {
    c.batch, {4, 11, 44, 64, 114},
     PETSC_TRUE, PETSC_TRUE
  };
  CSROverlap *ov;
  void       *data;

  emu::processors = c.processors;
  CheckCall((*CSROverlapDevice.build)(&options, &A.csr, 0, &data));
  ov = (CSROverlap *)data;
  if (c.kinds & ~Kinds(ov)) emu::Fail("%s: there are rows of kinds %x, not %x", c.name, Kinds(ov), c.kinds);
  TestProducts(c.name, A, CSROverlapDevice, data, CSROverlapDotParts(data, PETSC_FALSE), CSROverlapDotParts(data, PETSC_TRUE), [=] {
    for (PetscInt p = 0; p < ov->piece_num; p++)
      if (ov->arrived[p]) emu::Fail("%s: a counter of pieces is not 0 after the product", c.name);
  });
  CheckCall((*CSROverlapDevice.destroy)(&data));
}

int main(int argc, char **argv)
{
  const auto few     = [](int) { return 4 + (int)(choice() % 5); };
  const auto some    = [](int r) { return r % 3 ? (int)(choice() % 9) : 0; };
  const auto mixed   = [](int) { return (int)(choice() % 10 ? choice() % 30 : choice() % 400); };
  const auto uneven  = [](int r) { return r % 17 ? 2 + (int)(choice() % 3) : 100; };
  const auto longer  = [](int r) { return r % 60 ? 3 : 5000; };
  const Case cases[] = {
    {"short rows",                         3000, 1000, few,                                               0,                                     2,   REGISTERS       },
    {"short and empty rows",               2000, 900,  some,                                              512,                                   9,   VECTORS         },
    {"one row",                            1,    1,    [](int) { return 1; },                             0,                                     9,   VECTORS         },
    {"batches without entries",            2000, 500,  [](int r) { return r < 300 ? 3 : 0; },             0,                                     1,   EMPTY           },
    {"rows of all lengths",                2000, 3000, mixed,                                             1024,                                  2,   WAITING         },
    {"rows of all lengths, small batches", 500,  3000, mixed,                                             64,                                    2,   VECTORS         },
    {"rows that wait",                     2000, 3000, uneven,                                            512,                                   2,   WAITING         },
    {"rows that wait, large batches",      2000, 3000, uneven,                                            sizeof(PetscScalar) > 8 ? 4096 : 8192, 1,   WAITING         },
    {"even rows",                          600,  3000, [](int) { return 26 + (int)(choice() % 9); },      1024,                                  2,   VECTORS         },
    {"rows that warps share",              300,  3000, [](int) { return 150 + (int)(choice() % 200); },   1024,                                  2,   WARPS           },
    {"rows of pieces",                     300,  9000, longer,                                            0,                                     2,   PIECES          },
    {"rows of pieces alone",               3,    9000, [](int) { return 6000; },                          512,                                   100, PIECES          },
    {"rows that wait, rows of pieces",     900,  9000, [=](int r) { return r % 300 ? uneven(r) : 5000; }, 512,                                   2,   WAITING | PIECES},
  };
  Begin(argc, argv);
  for (auto &c : cases) Test(c);
  return End();
}
