/* SPDX-License-Identifier: BSD-2-Clause */
/* The CSR arrays of a matrix, back from EVCHYB's storage */
#pragma once

#include "memory.h"
#include "mat/impls/evchyb/restore.cu"

/* Whether they are those of the matrix that was stored, the values bit by bit; and none where there is no memory for them. All that the storage has is at ends of memory that may be touched. */
static void TestRestore(const char *name, const EVCHYB &ev, const GallopCSR &csr)
{
  const int before[] = {requests, failing};
  GallopCSR pattern  = {}, back;
  void     *memory;

  pattern.m      = csr.m;
  pattern.n      = csr.n;
  pattern.nz     = csr.nz;
  pattern.host_i = csr.i;
  for (int without = 0; without < 2; without++) {
    const size_t allocated = allocations.size();

    failing  = without;
    requests = 0;
    memory   = (void *)name; /* to be overwritten */
    CheckCall(EVCHYBRestore_Device(&ev, &pattern, &back, &memory));
    if (allocations.size() != allocated + !without) emu::Fail("%s: %d pieces of memory for a restoration", name, (int)(allocations.size() - allocated));
    if (without) {
      if (memory || back.i) emu::Fail("%s: restored without memory", name);
      continue;
    }
    if (!memory) emu::Fail("%s: not restored", name);
    for (PetscInt r = 0; r <= csr.m; r++)
      if (back.i[r] != csr.i[r]) emu::Fail("%s: restored, i[%ld] is %ld, not %ld", name, (long)r, (long)back.i[r], (long)csr.i[r]);
    for (PetscCount k = 0; k < csr.nz; k++) {
      if (back.j[k] != csr.j[k]) emu::Fail("%s: restored, entry %ld is in column %ld, not %ld", name, (long)k, (long)back.j[k], (long)csr.j[k]);
      if (memcmp(&back.a[k], &csr.a[k], sizeof(*csr.a))) emu::Fail("%s: restored, entry %ld has another value", name, (long)k);
    }
    CheckCall(GallopDeviceFree(memory));
  }
  pattern.nz++; /* it is another one */
  CheckCall(EVCHYBRestore_Device(&ev, &pattern, &back, &memory));
  if (memory || back.i) emu::Fail("%s: another matrix is restored", name);
  requests = before[0];
  failing  = before[1];
}
