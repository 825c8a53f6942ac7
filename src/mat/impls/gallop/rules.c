/* SPDX-License-Identifier: BSD-2-Clause */
/* MATGALLOP: which format is fastest for a matrix, told by its pattern */

#include "choice.h"

static const PetscCount Small = 1000000; /* entries: below, EVCHYB is the fastest or within an eighth of it for all matrices that were measured (on H200s and H100s), and a look takes as long as several products */

PetscBool GallopNeedsLook(PetscCount nz)
{
  return (PetscBool)(nz >= Small);
}

PetscErrorCode GallopPatternGet_Host(const GallopCSR *csr, PetscInt sector, GallopPattern *p)
{
  const int windows = GallopWindows(csr->nz);
  uint32_t *bits;

  PetscFunctionBegin;
  *p = (GallopPattern){0, 0, 0, 0};
  for (PetscInt r = 0; r < csr->m; r++) {
    const unsigned long long len = (unsigned long long)(csr->i[r + 1] - csr->i[r]);

    p->nonempty += len > 0;
    p->squares += len * len;
    p->longest = PetscMax(p->longest, len);
  }
  PetscCall(PetscMalloc1(GALLOP_BITS / 32, &bits));
  for (int k = 0; k < windows; k++) {
    const PetscCount end = GallopWindowEnd(csr->nz, windows, k);

    PetscCall(PetscArrayzero(bits, GALLOP_BITS / 32));
    for (PetscCount e = GallopWindowBegin(csr->nz, windows, k); e < end; e++) {
      const unsigned int bit = GallopSectorBit(csr->j[e], sector);

      p->marks += !(bits[bit / 32] >> bit % 32 & 1);
      bits[bit / 32] |= 1u << bit % 32;
    }
  }
  PetscCall(PetscFree(bits));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopPatternLook - Numbers for the rules: of what was found in a matrix, and of the bytes of the L2 cache, 0 where there is none */
PetscErrorCode GallopPatternLook(const GallopCSR *csr, const GallopPattern *p, PetscCount l2, GallopLook *look)
{
  const int            windows = GallopWindows(csr->nz);
  const PetscLogDouble rows = (PetscLogDouble)csr->m, mean = (PetscLogDouble)csr->nz / rows, variance = (PetscLogDouble)p->squares / rows - mean * mean;
  const PetscLogDouble set = (PetscLogDouble)p->marks / windows, sectors = -GALLOP_BITS * log(1 - set / GALLOP_BITS); /* bits that several sectors share are made up for */

  PetscFunctionBegin;
  *look = (GallopLook){
    .m         = csr->m,
    .n         = csr->n,
    .nz        = csr->nz,
    .nonempty  = (PetscInt64)p->nonempty,
    .longest   = (PetscInt64)p->longest,
    .mean      = (PetscReal)mean,
    .variation = (PetscReal)(sqrt(PetscMax(variance, 0)) / mean),
    .footprint = (PetscReal)(sectors / (PetscLogDouble)PetscMin(csr->nz, GALLOP_WINDOW)),
    .l2        = (PetscReal)(l2 > 0 ? (PetscLogDouble)csr->n * sizeof(PetscScalar) / (PetscLogDouble)l2 : 0),
  };
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool Within(PetscReal value, const PetscReal range[2])
{
  return (PetscBool)(value > range[0] && value < range[1]);
}

/*
  GallopCandidatesByRules - The formats, or the parent's product, that may be the fastest on the GPU for such a matrix, the most likely one first; where one is clearly the best it is alone

  Each threshold lies between matrices that were measured, see docs/development/choice.md. In brackets what they have, on an H200, whose L2 cache has 60 MiB:

+ Scattered - footprint (uniform columns 1.0; meshes numbered at random in layers 0.63)
. Blocks    - x over the L2 cache from which HBP cuts columns into blocks (uniform5M_4 0.64, where it gains 1.18 over EVCHYB, uniform8M_8 1.02, where it gains 1.7; uniform4M_5 0.51)
. Hubs      - variation of rows (Kronecker graphs 4 to 8; uneven1M_18 0.55)
. Spread    - footprint of such a graph (kron17 0.69, kron20 0.88; torso_like 0.54)
. Graph     - entries from which x of a graph's hubs does not stay in nearer caches, and HBP has hot columns (kron17 10 M, where it gains 1.1, kron20 1.45; kron16 5 M)
- Power, Local, Longest - variation, footprint, and the longest row over the mean, of a power law with many columns near the diagonal (web7M 1.57, 0.23, 880; web1M 3.33, 0.45, 840;
                          circuit682k 62, 0.25, 39,000; torso_like 5.6, 0.54, 37)

  What is near, by the speedup over cuSPARSE:

+ Clear     - an estimate: footprint and x over L2 from which rows alike are HBP's alone
. hubs      - HBP's hot columns gain 1.5 with Kronecker graphs, but HBP asks for more than rows tell before it takes them; EVCHYB gains 1.05 to 1.12
. scattered - columns over a smaller x: EVCHYB gains 1.09 (uniform1M_16) and 1.12 (delaunay_n20)
. NearPower, NearLocal, NearLongest - estimates, around the power laws, where EVCHYB has 0.92 and 0.93
- Graph - entries from which a power law is not EVCHYB's, 1.04 times the parent's time with web2M and web3M; CSROVERLAP has 0.92 of it with web3M on an H100, and 1.05 on an H200

  All others are EVCHYB's, by 1.16 and more. Shapes have no rule of their own: a wide matrix counts by its columns, and transposes of interpolations, 8 times as wide as high, are EVCHYB's by 2. The parent's
  products of a transpose are its transposed ones, which take 1.1 to 1.3 times as long as its others (docs/development/builds.md): no candidate. Nor are they of a matrix that cuSPARSE does not multiply. Matrices on the host do not come here: the parent is theirs.
*/
int GallopCandidatesByRules(const GallopLook *look, GallopChoice candidates[GALLOP_CANDIDATES])
{
  static const PetscReal  Scattered = 0.7, Blocks = 0.625, Hubs = 2, Spread = 0.61, Power[2] = {1.2, 5}, Local[2] = {0.2, 0.5}, Longest = 256;
  static const PetscReal  Clear[2] = {0.9, 1.0}, NearPower[2] = {1, 6}, NearLocal[2] = {0.15, 0.6}, NearLongest = 64;
  static const PetscCount Graph   = 8000000;
  const PetscReal         longest = (PetscReal)look->longest, mean = look->mean;
  const PetscBool         parent = (PetscBool)(!look->transpose && !look->refused), scattered = (PetscBool)(look->footprint > Scattered);
  const PetscBool         hubs      = (PetscBool)(look->footprint > Spread && look->variation > Hubs && look->nz >= Graph);
  const PetscBool         power     = (PetscBool)(Within(look->variation, Power) && Within(look->footprint, Local) && longest > Longest * mean);
  const PetscBool         nearpower = (PetscBool)(Within(look->variation, NearPower) && Within(look->footprint, NearLocal) && longest > NearLongest * mean);
  int                     n         = 0;

  if (!GallopNeedsLook(look->nz)) candidates[n++] = GALLOP_EVCHYB;
  else if (look->footprint > Clear[0] && look->l2 > Clear[1] && look->variation < Hubs) candidates[n++] = GALLOP_HBP;
  else if (hubs || (scattered && look->l2 > Blocks)) {
    candidates[n++] = GALLOP_HBP;
    candidates[n++] = GALLOP_EVCHYB;
    if (parent && !hubs) candidates[n++] = GALLOP_PARENT;
  } else if (parent && power) {
    candidates[n++] = GALLOP_PARENT;
    candidates[n++] = look->nz < Graph ? GALLOP_EVCHYB : GALLOP_CSROVERLAP;
  } else {
    candidates[n++] = GALLOP_EVCHYB;
    if (parent && (scattered || nearpower)) candidates[n++] = GALLOP_PARENT;
  }
  return n;
}

/* GallopChooseByRules - The first of them */
GallopChoice GallopChooseByRules(const GallopLook *look)
{
  GallopChoice candidates[GALLOP_CANDIDATES];

  (void)GallopCandidatesByRules(look, candidates);
  return candidates[0];
}
