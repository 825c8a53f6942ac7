/* SPDX-License-Identifier: BSD-2-Clause */
/* HBP's product on the GPU, and the dot product that it computes on the way: src/mat/impls/hbp/hbpproduct.cu, with the arrays that the host's build makes, which are the GPU's, and hbpplan.cu */
#include "producttest.h"
#include "mat/impls/hbp/hbpproduct.cu"
#include "mat/impls/hbp/hbpplan.cu"
#include "mat/impls/hbp/hbpcolumns.cu"
#include "mat/impls/hbp/hbphot.cu"
#include "mat/impls/hbp/hbpchoose.c"
#include "mat/impls/hbp/hbpcolumns.c"
#include "mat/impls/hbp/hbphot.c"
#include "mat/impls/hbp/hbphost.c"
#include "mat/impls/common/longrows.c"

/* ---- of the rest of the format ---- */

PetscErrorCode HBPApply_Host(void *, const GallopProduct *)
{
  emu::Fail("a product on the host");
}

PetscErrorCode HBPApplyTranspose_Host(void *, const GallopProduct *, PetscBool)
{
  emu::Fail("a product on the host");
}

/* ---- the test ---- */

enum { COMBINES = 1, DIRECT = 2, LONG = 4, MAPPED_ALL = 8, MAPPED_SOME = 16, SHARED_X = 32, TICKETS = 64, PIECES = 128, DOTS = 256, GROUPS = 512 };

struct Case {
  const char *name;
  PetscInt    m, n;
  Length      length;
  bool        near; /* entries of a row follow each other */
  HBPOptions  options;
  int         kinds, others; /* what is to be there, and what is not */
};

/* The format on the GPU: the host's arrays, each ending where memory ends that may be touched, and a plan */
static HBP *Build(const Matrix &A, const HBPOptions &options)
{
  HBP       *h;
  HBPPlan   *plan;
  HBPCuts    cuts;
  HBPOffsets none = {};

  CheckCall(HBPBuild_Host(HBP_GROUP, &options, &A.csr, 0, &h));
  if (!h) emu::Fail("no format");
  h->memtype = PETSC_MEMTYPE_CUDA;
  if (HBPMapPlaces(h) > h->mapNum) { /* the map of blocks without one */
    std::vector<PetscInt> map(h->map, h->map + h->mapNum);

    for (PetscCount k = h->mapNum; k < HBPMapPlaces(h); k++) map.push_back((PetscInt)(k - h->mapNum) * HBP_CHUNK);
    CheckCall(PetscFree(h->map));
    h->map = emu::Guarded(map);
  }
#define GUARD(array, number) h->array = (decltype(h->array))emu::Guarded(h->array, (size_t)(number) * sizeof(*h->array), alignof(std::remove_pointer_t<decltype(h->array)>));
  HBP_ARRAYS(h, GUARD);
#undef GUARD
  if (h->longest <= HBP_PACKED) h->nnz_perrow = NULL;
  if (!h->mapChunks) h->mapPtr = NULL;
  h->partial     = emu::Guarded(std::vector<PetscScalar>(h->partialNum, NAN));
  h->longPartial = emu::Guarded(std::vector<PetscScalar>(h->longRows.pieceNum, NAN));

  std::vector<HBPOffsets> ends(h->colBlocks + 1, none);
  for (PetscInt cb = 0; cb <= h->colBlocks; cb++) {
    ends[cb].group = h->colGroup[cb];
    ends[cb].nnz   = h->group[h->colGroup[cb]].begin_ptr;
  }
  CheckCall(HBPMakePlan(h, ends.data(), &cuts));
  plan          = (HBPPlan *)h->plan;
  plan->parts   = emu::Guarded(std::vector<Part<PetscInt>>(plan->partNum + 1));
  plan->shares  = emu::Guarded(std::vector<PetscInt>(plan->shareNum + 1));
  plan->tickets = emu::Guarded(std::vector<int>(2));
  CheckCall(HBPCutPlan(h, &cuts, NULL));
  CheckCall(PetscFree(cuts.sections));
  return h;
}

static int Kinds(const HBP *h)
{
  const HBPPlan *plan  = (const HBPPlan *)h->plan;
  int            kinds = (h->partialNum ? COMBINES : 0) | (h->segNum > h->partialNum ? DIRECT : 0) | (h->longRows.num ? LONG : 0) | (h->shared ? SHARED_X : 0) | (HBPDotParts(h, PETSC_FALSE) ? DOTS : 0);

  if (h->mapped) kinds |= h->allMapped ? MAPPED_ALL : MAPPED_SOME;
  if (!h->shared && PartsByTicket(plan)) kinds |= TICKETS;
  if (plan->partNum < h->groupNum) kinds |= GROUPS;
  for (PetscInt rb = 0; rb < h->rowBlocks; rb++)
    if (h->combinePtr[rb + 1] - h->combinePtr[rb] > 1) kinds |= PIECES;
  return kinds;
}

static void Test(const Case &c)
{
  const Matrix A       = NewMatrix(c.m, c.n, c.length, c.near);
  HBP *const   h       = Build(A, c.options);
  const int   *tickets = ((HBPPlan *)h->plan)->tickets;

  emu::occupancy = 1 + (int)(choice() % 2); /* fewer thread blocks may have room with a dot product than without */
  (void)HBPDotParts(h, PETSC_FALSE);
  emu::occupancy = 2;
  if (c.kinds & ~Kinds(h) || c.others & Kinds(h)) emu::Fail("%s: there is %x, not %x, or some of %x", c.name, Kinds(h), c.kinds, c.others);
  TestProducts(c.name, A, {NULL, NULL, HBPApply_Device, NULL, NULL}, h, HBPDotParts(h, PETSC_FALSE), HBPDotParts(h, PETSC_TRUE), [=] {
    if (tickets[0] || tickets[1]) emu::Fail("%s: tickets are not 0 after the product", c.name);
    std::fill_n(h->partial, h->partialNum, NAN);
    std::fill_n(h->longPartial, h->longRows.pieceNum, NAN);
  });
}

int main(int argc, char **argv)
{
  const auto few    = [](int) { return 3 + (int)(choice() % 5); };
  const auto some   = [](int r) { return r % 7 ? 1 + (int)(choice() % 9) : 0; };
  const auto mixed  = [](int) { return 1 + (int)(choice() % 10 ? choice() % 30 : choice() % 400); };
  const auto longer = [](int r) { return r % 60 ? 3 : 5000; };
  /* block_rows, block_cols, shared_x, map, long_row, lane_entries, fixed */
  const Case cases[] = {
    {"short rows",                          3000, 1000, few,                                           false, {},                                                       DOTS | DIRECT | TICKETS,              COMBINES | LONG  },
    {"parts of several groups",             8000, 1000, few,                                           false, {},                                                       DOTS | DIRECT | TICKETS | GROUPS,     COMBINES | LONG  },
    {"one row",                             1,    1,    few,                                           false, {},                                                       DOTS | DIRECT,                        COMBINES | LONG  },
    {"all parts given beforehand",          3000, 1000, few,                                           false, {0, 0, 0, HBP_MAP_NEVER, 0, 0, 100},                      DOTS | DIRECT,                        COMBINES | LONG  },
    {"no parts given beforehand",           3000, 1000, few,                                           false, {0, 0, 0, HBP_MAP_NEVER, 0, 0, 0},                        DOTS | DIRECT | TICKETS,              COMBINES | LONG  },
    {"short and empty rows",                2000, 900,  some,                                          false, {},                                                       DOTS | DIRECT,                        COMBINES | LONG  },
    {"rows of all lengths",                 2000, 3000, mixed,                                         false, {0, 0, 0, HBP_MAP_NEVER, 0, 4, -1},                       DOTS | DIRECT | TICKETS,              COMBINES         },
    {"rows of several segments",            1500, 3000, mixed,                                         false, {256, 700, HBP_SHARED_NEVER, HBP_MAP_NEVER, 0, 0, -1},    DOTS | COMBINES | TICKETS,            LONG             },
    {"segments of one entry",               900,  3000, few,                                           false, {512, 64, HBP_SHARED_NEVER, HBP_MAP_NEVER, 0, 0, -1},     DOTS | COMBINES,                      LONG             },
    {"several pieces of partial sums",      2500, 3000, [](int) { return 20; },                        false, {2048, 200, 0, HBP_MAP_NEVER, 0, 0, -1},                  DOTS | COMBINES | PIECES,             LONG             },
    {"with rows that have none",            2500, 3000, [](int r) { return r % 5 ? 20 : 1; },          false, {2048, 200, 0, HBP_MAP_NEVER, 0, 0, -1},                  DOTS | COMBINES | PIECES | DIRECT,    LONG             },
    {"rows with and without partial sums",  2000, 3000, [](int r) { return r % 400 < 300 ? 1 : 9; },   false, {256, 700, 0, HBP_MAP_NEVER, 0, 0, -1},                   DOTS | COMBINES | DIRECT,             LONG             },
    {"long rows",                           900,  6000, longer,                                        false, {256, 0, 0, HBP_MAP_NEVER, 64, 0, -1},                    DOTS | DIRECT | LONG,                 COMBINES         },
    {"long rows and partial sums",          900,  6000, longer,                                        false, {256, 900, 0, HBP_MAP_NEVER, 64, 0, -1},                  DOTS | COMBINES | LONG,               0                },
    {"long rows alone",                     3,    9000, [](int) { return 6000; },                      false, {256, 900, 0, HBP_MAP_NEVER, 64, 0, -1},                  DOTS | LONG,                          COMBINES | DIRECT},
    {"maps",                                3000, 9000, few,                                           true,  {256, 1500, HBP_SHARED_NEVER, HBP_MAP_ALWAYS, 0, 0, -1},  DOTS | DIRECT | MAPPED_ALL | TICKETS, COMBINES | LONG  },
    {"maps, empty and long rows",           2000, 9000, [=](int r) { return r % 100 ? some(r) : 90; }, true,  {256, 1500, HBP_SHARED_NEVER, HBP_MAP_ALWAYS, 64, 0, -1}, DOTS | DIRECT | MAPPED_ALL | LONG,    COMBINES         },
    {"maps of some",                        2000, 9000, [=](int r) { return r < 512 ? 40 : 5; },       false, {256, 3000, HBP_SHARED_NEVER, HBP_MAP_ALWAYS, 0, 0, -1},  DOTS | COMBINES | MAPPED_SOME,        0                },
    {"x in shared memory",                  1000, 3000, mixed,                                         false, {256, 700, HBP_SHARED_ALWAYS, HBP_MAP_NEVER, 0, 0, -1},   DOTS | COMBINES | SHARED_X,           LONG             },
    {"x in shared memory, no partial sums", 1000, 600,  few,                                           false, {256, 700, HBP_SHARED_ALWAYS, HBP_MAP_NEVER, 0, 0, -1},   DIRECT | SHARED_X,                    DOTS | COMBINES  },
  };
  Begin(argc, argv);
  emu::processors = 3;
  for (auto &c : cases) Test(c);
  return End();
}
