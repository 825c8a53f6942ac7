/* SPDX-License-Identifier: BSD-2-Clause */
/* Products with the blocks of point-block Jacobi: src/ksp/ksp/gallopblocksdevice.cu */
#include "testing.h"
#include "ksp/ksp/gallopblocksdevice.cu"

PetscErrorCode GallopDeviceGetProcessors(int *processors)
{
  *processors = 1;
  return PETSC_SUCCESS;
}

static PetscScalar *RandomVector(PetscInt n)
{
  std::vector<PetscScalar> v(n);

  for (auto &e : v) e = (PetscReal)((int)(choice() % 100) - 50); /* sums of products are exact */
  return emu::Guarded(v);
}

/* z = factors[0] B r + factors[1] u + factors[2] x, where u and x may be absent, and x may be z or r */
static void Test(int bs, int nb, int kind)
{
  const PetscInt           n = bs * nb;
  PetscScalar             *column[GALLOP_BLOCK_MOST], *r = RandomVector(n), *z = RandomVector(n);
  PetscScalar             *u = kind % 3 == 0 ? NULL : kind % 3 == 1 ? z : RandomVector(n), *x = kind / 3 == 0 ? NULL : kind / 3 == 1 ? z : kind / 3 == 2 ? r : RandomVector(n);
  const PetscScalar        factors[3] = {2, 3, x ? 5 : 0};
  std::vector<PetscScalar> wanted(n);

  for (int k = 0; k < bs; k++) {
    PetscScalar *unit = RandomVector(n);

    column[k] = RandomVector(n);
    CheckCall(GallopBlocksUnit_Device(n, bs, k, unit));
    for (PetscInt i = 0; i < n; i++)
      if (unit[i] != (PetscScalar)(PetscReal)(i % bs == k)) emu::Fail("column %d of unit blocks of %d rows: row %ld", k, bs, (long)i);
  }
  for (PetscInt i = 0; i < n; i++) {
    PetscScalar sum = 0;

    for (int k = 0; k < bs; k++) sum += column[k][i] * r[i - i % bs + k];
    wanted[i] = factors[0] * sum + (u ? factors[1] * u[i] : 0) + (x ? factors[2] * x[i] : 0);
  }
  CheckCall(GallopBlocksAdd_Device(n, bs, column, r, u, x, factors, z));
  for (PetscInt i = 0; i < n; i++)
    if (z[i] != wanted[i]) emu::Fail("%d blocks of %d rows, kind %d: row %ld", nb, bs, kind, (long)i);
}

int main(int argc, char **argv)
{
  Begin(argc, argv);
  for (int bs = 2; bs <= GALLOP_BLOCK_MOST; bs++)
    for (int nb : {0, 1, 3, 100, 700})
      for (int kind = 0; kind < 12; kind++) Test(bs, nb, kind);
  return End();
}
