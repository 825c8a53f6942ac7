/* SPDX-License-Identifier: BSD-2-Clause */
/*
  CSROVERLAP's copies of a matrix on the host, in big batches: src/mat/impls/csroverlap/csroverlaptransferplan.cu, csroverlaptransfer.cu and csroverlappack.cu. Copies and kernels run when they
  are asked for, so what waits for what is not tested.
*/
#include "producttest.h"

#define cudaStreamCreateWithFlags(stream, flags)  (*(stream) = NULL, cudaSuccess)
#define cudaStreamDestroy(stream)                 ((void)(stream), cudaSuccess)
#define cudaStreamWaitEvent(stream, event, flags) ((void)(event), cudaSuccess)
#define cudaEventCreate(event)                    (*(event) = NULL, cudaSuccess)
#define cudaEventCreateWithFlags(event, flags)    (*(event) = NULL, cudaSuccess)
#define cudaEventDestroy(event)                   ((void)(event), cudaSuccess)
#define cudaEventRecord(event, stream)            ((void)(event), cudaSuccess)
#define cudaEventSynchronize(event)               ((void)(event), cudaSuccess)
#define cudaEventElapsedTime(ms, begin, end)      (*(ms) = 0, cudaSuccess)

#include "mat/impls/csroverlap/csroverlapproduct.cu"
#include "mat/impls/csroverlap/csroverlapdevice.cu"
#include "mat/impls/csroverlap/csroverlaphost.c"
#include "mat/impls/csroverlap/csroverlaptransferplan.cu"
#include "mat/impls/csroverlap/csroverlaptransfer.cu"
#include "mat/impls/csroverlap/csroverlappack.cu"

PetscErrorCode CSROverlapPartition_Device(const CSROverlapOptions *, PetscInt, PetscInt, PetscCount, const PetscInt[], CSROverlapParts *)
{
  emu::Fail("batches of a large matrix");
}

PetscErrorCode GallopPinnedMalloc(size_t bytes, void **p)
{
  return GallopDeviceMalloc(bytes, p);
}

PetscErrorCode GallopPinnedFree(size_t, void *)
{
  return PETSC_SUCCESS;
}

/* ---- the test ---- */

struct Pattern {
  const char *name;
  PetscInt    m, n;
  Length      length;
};

struct Setting {
  PetscInt         batch, num; /* -mat_csroverlap_max_batch_size, -mat_csroverlap_big_batch_num */
  PetscCount       big;
  CSROverlapPinned pinned;
  bool             streamed;
  PetscCount       pack;
};

/* Bytes of the GPU that half of the entries have room in, beside all else */
static PetscCount Half(const Matrix &A, CSROverlapOptions options)
{
  void      *data;
  PetscCount bytes;

  CheckCall((*CSROverlapDevice.build)(&options, &A.csr, 0, &data));
  bytes = (PetscCount)((CSROverlap *)data)->bytes - A.csr.nz * (PetscCount)(sizeof(PetscScalar) + sizeof(GallopColumn)) / 2;
  CheckCall((*CSROverlapDevice.destroy)(&data));
  return bytes;
}

/* Each product copies entries; those of a resident matrix have new values before it, which are the same ones */
static void Test(const Pattern &p, const Setting &set)
{
  Matrix            A       = NewMatrix(p.m, p.n, p.length);
  CSROverlapOptions options = {};
  CSROverlapPlace   place;
  CSROverlap       *ov;
  void             *data;

  A.csr.memtype = PETSC_MEMTYPE_HOST;
  options       = {
          set.batch, {4, 11, 44, 64, 114},
           PETSC_TRUE, PETSC_TRUE, set.big, set.num, 0, set.pinned, set.pack, PETSC_FALSE
  };
  if (set.streamed) options.device_memory = Half(A, options);
  CheckCall((*CSROverlapDevice.build)(&options, &A.csr, 0, &data));
  if (!data) emu::Fail("%s: no format", p.name);
  ov = (CSROverlap *)data;
  CheckCall(CSROverlapGetPlace(ov, &place));
  if (place.streamed != set.streamed) emu::Fail("%s: the matrix is %sstreamed", p.name, place.streamed ? "" : "not ");
  if (set.num && place.big_batch_num != set.num) emu::Fail("%s: %d big batches, not %d", p.name, (int)place.big_batch_num, (int)set.num);
  TestProducts(p.name, A, CSROverlapDevice, data, 0, 0, [&] {
    for (PetscInt k = 0; k < ov->piece_num; k++)
      if (ov->arrived[k]) emu::Fail("%s: a counter of pieces is not 0 after the product", p.name);
    CheckCall(CSROverlapTransferRefresh(ov, &A.csr));
  });
  CheckCall((*CSROverlapDevice.destroy)(&data));
}

int main(int argc, char **argv)
{
  const Pattern patterns[] = {
    {"short rows",              900,  1000, [](int) { return 4 + (int)(choice() % 5); }                              },
    {"rows of all lengths",     400,  3000, [](int) { return (int)(choice() % 10 ? choice() % 30 : choice() % 400); }},
    {"batches without entries", 4800, 900,  [](int r) { return r / 600 % 2 ? 0 : 3; }                                },
    {"rows of pieces",          300,  9000, [](int r) { return r % 120 ? 3 : 5000; }                                 },
  };
  const Setting settings[] = {
    {0,   0, 0,    CSROVERLAP_PINNED_ALWAYS,   false, 1},
    {0,   0, 0,    CSROVERLAP_PINNED_ALWAYS,   false, 0},
    {0,   2, 1000, CSROVERLAP_PINNED_ALWAYS,   false, 1},
    {96,  5, 0,    CSROVERLAP_PINNED_NEVER,    false, 0},
    {64,  0, 300,  CSROVERLAP_PINNED_ALWAYS,   false, 1}, /* many big batches without a batch: long rows end later */
    {0,   0, 5000, CSROVERLAP_PINNED_NEVER,    false, 1},
    {32,  0, 0,    CSROVERLAP_PINNED_ALWAYS,   true,  1},
    {64,  0, 500,  CSROVERLAP_PINNED_NEVER,    true,  1},
    {512, 0, 1000, CSROVERLAP_PINNED_STREAMED, true,  0},
  };
  Begin(argc, argv);
  emu::processors = 2;
  for (auto &p : patterns)
    for (auto &set : settings) Test(p, set);
  return End();
}
