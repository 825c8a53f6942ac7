/* SPDX-License-Identifier: BSD-2-Clause */
/* HBP's hot columns on the GPU: the build, beside the host's arrays, new values, products: src/mat/impls/hbp/hbphotbuild.cu, hbphot.cu */
#include "producttest.h"
#include "mat/impls/hbp/hbphot.cu"
#include "mat/impls/hbp/hbphotbuild.cu"
#include "mat/impls/hbp/hbphot.c"

/* ---- the test ---- */

struct Case {
  const char *name;
  PetscInt    m, n;
  Length      length;
  PetscInt    hot; /* -mat_hbp_hot_columns */
  bool        longs, colds, has;
};

/* Columns with small numbers have most entries; those of a row are in any order */
static Matrix Graph(const Case &c)
{
  Matrix A;

  A.i.push_back(0);
  for (PetscInt r = 0; r < c.m; r++) {
    for (int k = c.length((int)r); k > 0; k--) {
      const double u = (double)(choice() % 100000) / 100000;

      A.j.push_back((PetscInt)(u * u * u * (double)c.n));
      A.a.push_back(RandomScalar());
    }
    A.i.push_back((PetscInt)A.j.size());
  }
  A.csr = {c.m, c.n, (PetscCount)A.j.size(), emu::Guarded(A.i), emu::Guarded(A.j), emu::Guarded(A.a), A.i.data(), A.j.data(), PETSC_MEMTYPE_CUDA, NULL};
  return A;
}

/* The same, but for places that no entry has */
static void CheckArrays(const Case &c, const HBPHot *h, const HBPHot *d)
{
  if (h->num != d->num || h->partNum != d->partNum || h->groupNum != d->groupNum || h->longNum != d->longNum || h->pieceNum != d->pieceNum || memcmp(&h->classes, &d->classes, sizeof(h->classes)))
    emu::Fail("%s: numbers differ", c.name);
#define SAME(array, number) \
  if ((number) > 0 && memcmp(h->array, d->array, (size_t)(number) * sizeof(*h->array))) emu::Fail("%s: " #array " differs", c.name)
  SAME(line, h->groupNum + 1);
  SAME(row, h->partNum);
  SAME(len, h->partNum);
  SAME(begin, h->partNum);
  SAME(hotColumn, h->num);
  SAME(rank, h->n);
  SAME(longRow, h->longNum);
  SAME(longPiece, h->longNum + 1);
  SAME(pieceLong, h->pieceNum);
#undef SAME
  for (PetscInt g = 0; g < h->groupNum; g++) {
    PetscInt  first, num;
    const int lanes = HBPHotLanes(HBPHotGroup(&h->classes, g, &first, &num));

    for (PetscInt p = 0; p < num; p++)
      for (PetscInt q = 0; q < PetscInt(h->len[first + p] & 65535) + PetscInt(h->len[first + p] >> 16); q++) {
        const bool       hot = q < PetscInt(h->len[first + p] & 65535);
        const PetscInt   of  = hot ? q : q - PetscInt(h->len[first + p] & 65535);
        const PetscCount at  = ((PetscCount)(hot ? h->line[g].hot : h->line[g].cold) + (of >> lanes)) * 32 + (p << lanes) + (of & ((1 << lanes) - 1));

        if (hot ? h->hotData[at] != d->hotData[at] || h->hotCol[at] != d->hotCol[at] : h->coldData[at] != d->coldData[at] || h->coldCol[at] != d->coldCol[at])
          emu::Fail("%s: an entry of group %ld differs", c.name, (long)g);
      }
  }
}

static PetscErrorCode Apply(void *data, const GallopProduct *p)
{
  return HBPHotApply_Device((HBPHot *)data, p);
}

static void Test(const Case &c)
{
  Matrix    A = Graph(c);
  HBPSample s = {};
  HBP       h = {}, d = {};

  h.options.hot_columns = c.hot;
  h.options.hot_room    = 2000;
  d.options             = h.options;
  CheckCall(HBPHotBuild_Host(&h, &A.csr, &s, 0));
  CheckCall(HBPHotBuild_Device(&d, &A.csr, &s, 0, NULL));
  if (!h.hot != !d.hot || !h.hot == c.has) emu::Fail("%s: %s hot columns", c.name, d.hot ? "there are" : "no");
  if (!h.hot) return;
  if (!h.hot->longNum == c.longs || !h.hot->lines.cold == c.colds) emu::Fail("%s: %ld long rows, %ld lines of other columns", c.name, (long)h.hot->longNum, (long)h.hot->lines.cold);
  CheckArrays(c, h.hot, d.hot);
  for (int less = 0; less < 2; less++) { /* the limit, and one byte less; there are canaries behind the three arrays of workspace */
    HBP e = {};

    e.options = d.options;
    CheckCall(HBPHotBuild_Device(&e, &A.csr, &s, (PetscCount)(d.hot->bytes + HBPHotWorkspaceBytes(d.hot) + 3 * 256) - less, NULL));
    emu::Sync();
    if (!e.hot != less) emu::Fail("%s: %s hot columns in the bytes that they take%s", c.name, e.hot ? "there are" : "no", less ? ", but one" : "");
    CheckCall(HBPHotDestroy(&e.hot));
  }
  TestProducts(c.name, A, {NULL, NULL, Apply, NULL, NULL}, d.hot, HBPHotDotParts(d.hot), 0, [&] {
    for (PetscInt t = 0; t < d.hot->longNum; t++)
      if (d.hot->arrived[t]) emu::Fail("%s: pieces have arrived before the product", c.name);
    std::fill_n(d.hot->partial, d.hot->pieceNum, NAN);
    std::fill_n(d.hot->x, d.hot->num, NAN);
  });
  TestTransposed(c.name, c.m, c.n, A, [&](const GallopProduct *p) { return HBPHotApplyTranspose_Device(d.hot, p, PETSC_TRUE); });
  for (auto &a : A.a) a = RandomScalar();
  A.csr.a = emu::Guarded(A.a);
  HBPHotFill_Host(h.hot, &A.csr, PETSC_FALSE);
  CheckCall(HBPHotRefresh_Device(d.hot, &A.csr));
  emu::Sync();
  CheckArrays(c, h.hot, d.hot);
}

int main(int argc, char **argv)
{
  const auto few     = [](int) { return 3 + (int)(choice() % 9); };
  const auto some    = [](int r) { return r % 7 ? 1 + (int)(choice() % 9) : 0; };
  const auto mixed   = [](int) { return 1 + (int)(choice() % 10 ? choice() % 30 : choice() % 900); };
  const auto longs   = [](int r) { return r % 90 == 7 ? 1000 + (int)(choice() % 4000) : r % 5; };
  const Case cases[] = {
    {"short rows",              1500, 3000, few,                                     200,  false, true,  true },
    {"all columns are hot",     900,  600,  some,                                    1000, false, false, true },
    {"one hot column",          900,  600,  some,                                    1,    false, true,  true },
    {"rows of all lengths",     700,  9000, mixed,                                   2000, false, true,  true },
    {"more than there is room", 700,  9000, mixed,                                   9000, false, true,  true },
    {"long rows",               400,  9000, longs,                                   500,  true,  true,  true },
    {"long rows alone",         5,    9000, [](int) { return 3000; },                500,  true,  true,  true },
    {"one row",                 1,    100,  [](int) { return 9; },                   100,  false, false, true },
    {"empty rows",              900,  100,  [](int r) { return r == 77 ? 100 : 0; }, 100,  false, false, true },
    {"turned off",              900,  600,  some,                                    0,    false, false, false},
  };
  Begin(argc, argv);
  emu::processors = 3;
  for (auto &c : cases) Test(c);
  return End();
}
