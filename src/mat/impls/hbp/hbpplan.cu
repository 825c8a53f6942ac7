/* SPDX-License-Identifier: BSD-2-Clause */
/* HBP on the GPU: parts of the product's work, of about the same weight, and how to launch */

#include "hbpdevice.h"

static constexpr int PartWeight   = 31 * GroupWeight; /* most of a part, unless it is one group: so it has at most 31 groups, a lane for each, and a lane for the end of the last */
static constexpr int PartsEach    = 8;                /* parts of a warp, or shares of a thread block, where there are enough groups */
static constexpr int FixedPercent = 75;               /* of the work that is shared out beforehand */
static constexpr int LeastUse     = 2;                /* a share weighs at least this much for each number that it loads into shared memory */

/* Sections that a launch takes with it */
struct Sections {
  static constexpr int Most = 64;

  PetscInt   num;
  HBPSection of[Most];
};

/* The weight by which parts are cut. entries is 0 if they do not count. */
static __host__ __device__ __forceinline__ PetscCount Weight(PetscCount entries, PetscCount groups)
{
  return entries + GroupWeight * groups;
}

/* A thread for each part from begin on and before end, which are of these sections: where it begins, and where a share begins. And what ends the arrays. */
__global__ static void PartsKernel(HBP h, HBPPlan plan, PetscCount entries, PetscInt together, Sections sections, PetscInt begin, PetscInt end)
{
  const PetscCount p = begin + GallopGlobalThread();

  if (p >= end) return;
  if (p == plan.partNum) {
    HBPEndParts(h, plan);
    return;
  }
  PetscInt first = 0, last = sections.num - 1;

  while (first < last) { /* the last section that begins at p or before */
    const PetscInt mid = last - (last - first) / 2;

    if (sections.of[mid].part <= p) first = mid;
    else last = mid - 1;
  }
  const HBPSection s      = sections.of[first];
  const PetscInt   within = (PetscInt)p - s.part;
  PetscInt         lo = h.colGroup[s.col], hi = h.colGroup[s.col + 1];

  while (lo < hi) {
    const PetscInt mid = lo + (hi - lo) / 2;

    if (Weight(entries * h.group[mid].begin_ptr, mid) < s.weight + within * s.each) lo = mid + 1;
    else hi = mid;
  }
  plan.parts[p] = {lo, s.col};
  if (plan.shareNum && within % together == 0) plan.shares[s.share + within / together] = (PetscInt)p;
}

/* Cuts columns of blocks into parts; end[cb] is the weight before column cb. The first given parts, or fewer, have weight each, all others weight least. Returns the number of parts. */
static PetscInt CutParts(PetscInt cols, const PetscCount end[], PetscInt given, PetscCount each, PetscCount least, PetscInt *sectionNum, HBPSection sections[])
{
  PetscInt num = 0, n = 0;

  for (PetscInt cb = 0; cb < cols; cb++) {
    PetscCount at = end[cb];

    while (at < end[cb + 1]) {
      const PetscCount weight = num < given ? each : least;
      PetscCount       parts  = (end[cb + 1] - at + weight - 1) / weight;

      if (num < given) parts = PetscMin(parts, given - num);
      sections[n++] = {num, cb, 0, at, weight};
      num += (PetscInt)parts;
      at += parts * weight;
    }
  }
  *sectionNum = n;
  return num;
}

/* Shares of cuts->together parts, or fewer where a section ends. Returns their number. */
static PetscInt CutShares(PetscInt parts, HBPCuts *cuts)
{
  PetscInt shares = 0;

  for (PetscInt k = 0; k < cuts->sectionNum; k++) {
    const PetscInt next = k + 1 < cuts->sectionNum ? cuts->sections[k + 1].part : parts;

    cuts->sections[k].share = shares;
    shares += (next - cuts->sections[k].part + cuts->together - 1) / cuts->together;
  }
  return shares;
}

/*
  HBPMakePlan - How many parts and shares there are, how they will be cut, and how to launch; the caller frees cuts->sections. ends has what is before each column of blocks.

  Each warp has a few parts of its own and takes others by tickets when it has done these. With x in shared memory thread blocks do so with shares.
*/
PetscErrorCode HBPMakePlan(HBP *h, const HBPOffsets ends[], HBPCuts *cuts)
{
  const PetscInt fixed = h->options.fixed >= 0 ? h->options.fixed : h->shared ? 0 : FixedPercent;
  HBPPlan       *plan;
  HBPRoom        room;
  PetscInt       shares = 0;
  PetscCount    *end, blocks, agents, weight, each, least; /* thread blocks and warps at once; of all groups, and of a part */
  int            warps;

  PetscFunctionBegin;
  *cuts = {};
  PetscCall(PetscNew(&plan));
  h->plan = plan;
  PetscCall(HBPGetRoom(h, &room));
  plan->fresh         = PETSC_TRUE;
  plan->overlaps      = room.overlaps;
  plan->threads       = room.threads;
  plan->shared        = room.shared;
  plan->combineShared = room.combineShared;
  warps               = plan->threads / WarpSize;
  blocks              = (PetscCount)room.sms * room.resident;
  agents              = blocks * warps;
  cuts->entries       = h->groupNum > PartsEach * agents; /* else a part is a group */
  PetscCall(PetscMalloc1(h->colBlocks + 1, &end));
  for (PetscInt cb = 0; cb <= h->colBlocks; cb++) end[cb] = Weight(cuts->entries * ends[cb].nnz, ends[cb].group);
  weight = end[h->colBlocks];
  if (cuts->entries) {
    const PetscCount mean = weight / PetscMax(h->groupNum, 1) + 1; /* of a group */

    least = PetscMin(PartWeight, PetscMax(mean, weight / (PartsEach * agents)));
    each  = h->shared ? least : PetscMin(PartWeight, PetscMax(mean, weight * fixed / 100 / agents + 1));
  } else each = least = GroupWeight;
  plan->fixedEach = cuts->entries && h->options.fixed < 0 ? 1 : (PetscInt)PetscMax(1, weight * fixed / 100 / agents / each); /* the first one needs no ticket */
  PetscCall(PetscMalloc1(h->colBlocks + 1, &cuts->sections));                                                                /* one column may have two */
  plan->partNum  = CutParts(h->colBlocks, end, h->shared ? 0 : plan->fixedEach * (PetscInt)agents, each, least, &cuts->sectionNum, cuts->sections);
  cuts->together = h->shared ? (PetscInt)(PetscMax(weight / (PartsEach * blocks), LeastUse * h->M) / least + 1) : 1;
  if (h->shared) shares = CutShares(plan->partNum, cuts);
  plan->shareNum = shares;
  plan->blocks   = (int)PetscMin(h->shared ? (PetscCount)shares : ((PetscCount)plan->partNum + warps - 1) / warps, blocks);
  plan->groups   = (PetscBool)(!cuts->entries && !h->shared);
  if (h->shared) plan->fixedEach = (PetscInt)PetscMax(1, (PetscReal)shares / PetscMax(plan->blocks, 1) * fixed / 100);
  PetscCall(PetscFree(end));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* HBPCutPlan - Cuts parts and shares on the GPU. Sections go with the launches, so that the host has nothing to copy and nothing to wait for. */
PetscErrorCode HBPCutPlan(const HBP *h, const HBPCuts *cuts, cudaStream_t stream)
{
  const HBPPlan *plan  = (const HBPPlan *)h->plan;
  PetscInt       begin = 0, first = 0;

  PetscFunctionBegin;
  do {
    Sections sections = {};
    PetscInt end      = plan->partNum + 1;

    sections.num = PetscMin(cuts->sectionNum - first, Sections::Most);
    for (PetscInt k = 0; k < sections.num; k++) sections.of[k] = cuts->sections[first + k];
    first += sections.num;
    if (first < cuts->sectionNum) end = cuts->sections[first].part;
    PartsKernel<<<GallopBlocksFor(end - begin, Threads), Threads, 0, stream>>>(*h, *plan, cuts->entries, cuts->together, sections, begin, end);
    GallopCheckLaunch();
    begin = end;
  } while (first < cuts->sectionNum);
  PetscFunctionReturn(PETSC_SUCCESS);
}
