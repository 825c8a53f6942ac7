/* SPDX-License-Identifier: BSD-2-Clause */
/* EVCHYB's product with plain storage, and the dot product that it computes on the way: src/mat/impls/evchyb/plain/plain.cu */
#include "testing.h"
#include "mat/impls/evchyb/plain/plain.cu"
#include "mat/impls/evchyb/launch.c"
#include "mat/impls/evchyb/plain/plainplan.c"

struct Row {
  std::vector<PetscInt>    j;
  std::vector<PetscScalar> a;
};

struct Case {
  const char             *name;
  PetscInt                m, n;
  std::function<int(int)> length;
  int                     split; /* entries of a row from which on several thread blocks compute it */
  bool                    clusters;
  int                     processors;
  PetscInt                rowsmax; /* of a thread */
};

static const PetscInt Longest = 128; /* row of SubELL */

/* The arrays, built as the host does it */
static EVCHYB *Build(const Case &c, const std::vector<Row> &rows)
{
  EVCHYB                  *ev     = new EVCHYB();
  EVCHYBPlain             *p      = new EVCHYBPlain();
  EVCHYBRows               counts = {};
  std::vector<PetscInt>     empty, shorter, longer, perm, clen;
  std::vector<GallopColumn> ellj, csrj;
  std::vector<PetscCount>   bnz{0}, i{0};
  std::vector<PetscScalar>  ella, csra;
  auto                      by    = [&](PetscInt a, PetscInt b) { return rows[a].j.size() < rows[b].j.size(); };
  auto                      store = [&](PetscInt row, size_t k, std::vector<GallopColumn> &j, std::vector<PetscScalar> &a) {
    const bool in = k < rows[row].j.size();
    j.push_back(in ? (GallopColumn)rows[row].j[k] : -1);
    a.push_back(in ? rows[row].a[k] : 0);
  };

  ev->plain           = p;
  ev->m               = c.m;
  ev->n               = c.n;
  ev->processors      = c.processors;
  ev->overlaps        = (PetscBool)c.clusters;
  ev->options.split   = c.split;
  ev->options.rowsmax = c.rowsmax;
  ev->options.columns = 128;
  ev->options.maxell  = Longest;
  for (PetscInt r = 0; r < c.m; r++) {
    const PetscInt length = (PetscInt)rows[r].j.size();
    ev->nz += length;
    (!length ? empty : length <= Longest ? shorter : longer).push_back(r);
  }
  std::stable_sort(shorter.begin(), shorter.end(), by);
  std::stable_sort(longer.begin(), longer.end(), by);
  counts.nempty = ev->nempty = (PetscInt)empty.size();
  counts.nshort              = (PetscInt)shorter.size();
  counts.nlong               = (PetscInt)longer.size();
  EVCHYBPlainSplit(ev, &counts, p);

  perm = shorter;
  perm.insert(perm.end(), longer.begin(), longer.end());
  if (p->nlisted) perm.insert(perm.end(), empty.begin(), empty.end());
  for (PetscInt b = 0; b < p->ell.nb; b++) {
    const PetscInt width = (PetscInt)rows[perm[b * EVCHYB_BLOCK + EVCHYB_BLOCK - 1]].j.size();

    clen.push_back(width);
    p->ell.LCmax = PetscMax(p->ell.LCmax, width);
    p->ell.classes[EVCHYBClass(width)]++;
    for (PetscInt k = 0; k < width; k++)
      for (int r = 0; r < EVCHYB_BLOCK; r++) store(perm[b * EVCHYB_BLOCK + r], k, ellj, ella);
    bnz.push_back((PetscCount)ellj.size());
  }
  for (PetscInt r = p->ell.n; r < counts.nshort + counts.nlong; r++) {
    const size_t room = (rows[perm[r]].j.size() + EVCHYB_BLOCK - 1) / EVCHYB_BLOCK * EVCHYB_BLOCK;

    for (size_t k = 0; k < room; k++) store(perm[r], k, csrj, csra);
    i.push_back((PetscCount)csrj.size());
  }
  p->perm     = emu::Guarded(perm);
  p->ell.nz   = (PetscCount)ellj.size();
  p->ell.bnz  = emu::Guarded(bnz);
  p->ell.clen = emu::Guarded(clen);
  p->ell.j    = emu::Guarded(ellj);
  p->ell.as   = emu::Guarded(ella);
  p->csr.nz   = (PetscCount)csrj.size();
  p->csr.i    = emu::Guarded(i);
  p->csr.j    = emu::Guarded(csrj);
  p->csr.as   = emu::Guarded(csra);
  CheckCall(EVCHYBPlainPlan(ev, p, i.data()));
  p->csr.parts.partial = emu::Guarded(std::vector<PetscScalar>(p->csr.parts.nparts, NAN));
  p->csr.parts.arrived = emu::Guarded(std::vector<int>(p->csr.parts.nsplit, 0));
  return ev;
}

static void Test(const Case &c)
{
  std::vector<Row>         rows(c.m);
  std::vector<PetscScalar> xs(c.n), withs(c.m), wanted(c.m);
  PetscScalar              wanteddot = 0, first = 0;
  PetscReal                size = 0;

  for (PetscInt r = 0; r < c.m; r++) {
    const int length = std::min<int>(c.length(r), c.n);
    for (int k = 0; k < length; k++) {
      rows[r].j.push_back((PetscInt)((PetscCount)k * c.n / length));
      rows[r].a.push_back(RandomReal());
    }
  }
  for (auto &e : xs) e = RandomReal();
  for (auto &e : withs) e = RandomReal();
  for (PetscInt r = 0; r < c.m; r++) {
    for (size_t k = 0; k < rows[r].j.size(); k++) wanted[r] += rows[r].a[k] * xs[rows[r].j[k]];
    wanteddot += withs[r] * wanted[r];
    size += PetscAbsScalar(withs[r] * wanted[r]);
  }

  EVCHYB *const      ev     = Build(c, rows);
  const EVCHYBParts &parts  = ev->plain->csr.parts;
  const PetscCount   room   = ev->launch.range[ev->launch.n - 1].next + parts.nsplit;
  const bool         leaves = EVCHYBLeavesRows(ev->plain, ev->nempty); /* then there is no dot product, unless the product adds */
  const PetscScalar  zero = 0, one = 1, *x = emu::Guarded(xs);
  PetscScalar       *z = emu::Guarded(wanted), *partial = emu::Guarded(std::vector<PetscScalar>(room)), dot;
  const PetscReal    small = 2000 * PETSC_MACHINE_EPSILON;
  unsigned int       ended = 0;

  /* z = A x, then z += A x, which adds to the dot product, too */
  for (int run = 0; run < (full ? 12 : 6); run++) {
    const bool     adds = run >= (full ? 6 : 3);
    GallopDot      d    = {emu::Guarded(withs), PETSC_FALSE, &dot, partial, room, &ended, (PetscBool)adds};
    GallopEpilogue e    = {NULL, NULL, &zero, &zero, leaves && !adds ? NULL : &d};
    GallopProduct  p    = {&one, adds ? &one : &zero, x, adds ? z : NULL, z, &e};

    for (PetscCount k = 0; k < room; k++) partial[k] = NAN; /* all are to be written in each product */
    for (PetscInt k = 0; k < c.m; k++) z[k] = adds ? withs[k] : (PetscScalar)NAN;
    dot           = adds ? 0 : NAN;
    emu::resident = 1 + run * 2;
    emu::preempt  = run ? 4 : 0;
    ev->fresh     = (PetscBool)(run == 0);
    CheckCall(Apply(ev, &p));
    for (PetscInt r = 0; r < c.m; r++) {
      const PetscScalar now = wanted[r] + (adds ? withs[r] : (PetscScalar)0);

      if (!(PetscAbsScalar(z[r] - now) <= small * (1 + PetscAbsScalar(wanted[r])))) emu::Fail("%s: row %ld is %g, not %g", c.name, (long)r, (double)PetscRealPart(z[r]), (double)PetscRealPart(now));
    }
    for (PetscInt k = 0; k < parts.nsplit; k++)
      if (parts.arrived[k]) emu::Fail("%s: a counter of thread blocks is not 0 after the product", c.name);
    if (leaves && !adds) continue;
    if (!(PetscAbsScalar(dot - wanteddot) <= small * size)) emu::Fail("%s: the dot product is %g, not %g", c.name, (double)PetscRealPart(dot), (double)PetscRealPart(wanteddot));
    if (run % (full ? 6 : 3) && dot != first) emu::Fail("%s: the dot product has other bits", c.name);
    if (ended) emu::Fail("%s: the counter of ended thread blocks is not 0 after the product", c.name);
    first = dot;
  }

  /* z += d A x: of rows without entries nothing is stored where most have none */
  const GallopEpilogue e = {emu::Guarded(withs), z, &one, &zero, NULL};
  const GallopProduct  p = {&one, &zero, x, NULL, z, &e};

  for (PetscInt r = 0; r < c.m; r++) z[r] = leaves && rows[r].j.empty() ? (PetscScalar)NAN : xs[r % c.n];
  CheckCall(Apply(ev, &p));
  for (PetscInt r = 0; r < c.m; r++) {
    const PetscScalar now = xs[r % c.n] + withs[r] * wanted[r];

    if (leaves && rows[r].j.empty() ? z[r] == z[r] : !(PetscAbsScalar(z[r] - now) <= small * (1 + PetscAbsScalar(wanted[r])))) emu::Fail("%s: row %ld of z += d A x", c.name, (long)r);
  }
}

int main(int argc, char **argv)
{
  const int  never   = 100000;
  auto       mixed   = [](int most) { return [=](int) { return (int)(choice() % 10 ? choice() % 30 : choice() % most); }; };
  auto       few     = [](int r) { return r % 60 == 0 ? 6000 : 3; };
  const Case cases[] = {
    {"short rows",                     1000, 1000, [](int) { return 1 + (int)(choice() % 9); },           never, true,  2,   4},
    {"short and empty rows",           777,  900,  [](int r) { return r % 3 ? (int)(choice() % 9) : 0; }, never, true,  2,   1},
    {"rows of all lengths",            900,  3000, mixed(2000),                                           512,   false, 2,   4},
    {"rows of all lengths, not split", 900,  3000, mixed(1200),                                           never, false, 4,   4},
    {"column blocks of several warps", 200,  3000, [](int) { return 60 + (int)(choice() % 60); },         never, true,  100, 1},
    {"split rows",                     300,  9000, few,                                                   512,   false, 60,  1},
    {"rows of clusters",               300,  9000, few,                                                   512,   true,  60,  1},
    {"rows of clusters alone",         3,    9000, [](int) { return 6000; },                              512,   true,  60,  1},
    {"one row",                        1,    1,    [](int) { return 1; },                                 512,   true,  60,  1},
  };
  Begin(argc, argv);
  for (auto &c : cases) Test(c);
  return End();
}
