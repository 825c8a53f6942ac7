/* SPDX-License-Identifier: BSD-2-Clause */
/* FASTLOAD on the GPU, the second stage of its build: the blocks and tasks that sorted columns are cut into, and the order of tasks */

#include "../common/bits.h"
#include "fastloadsegments.cuh"

/* The same for the group that begins with sorted column s */
template <typename What>
static __device__ __forceinline__ PetscInt WalkGroupOf(PetscInt ncols, PetscInt limit, const PetscInt *len, PetscInt s, int lane, What what)
{
  const int length = (int)(ncols - s < WarpSize ? ncols - s : WarpSize);

  return WalkGroup(lane < length ? len[s + lane] : PetscInt(0), length, limit, lane, what);
}

__global__ static void CountGroupsKernel(PetscInt groups, PetscInt ncols, PetscInt limit, In<PetscInt> len, PetscInt *blocks, PetscInt *tasks, PetscInt *lines, int *flags)
{
  const PetscCount g       = GallopGlobalThread() / WarpSize;
  const int        lane    = threadIdx.x % WarpSize;
  PetscInt         nblocks = 0, ntasks = 0;

  if (g > groups) return;
  const PetscInt nlines = g == groups ? 0 : WalkGroupOf(ncols, limit, len, (PetscInt)g * WarpSize, lane, [&](const Segment &segment) {
    nblocks += segment.blocks;
    ntasks += segment.Tasks();
  });

  if (lane) return;
  blocks[g] = nblocks;
  tasks[g]  = ntasks;
  lines[g]  = nlines;
  if (ntasks > 1) Raise(&flags[FLAG_CUT]);
  if (g < groups && !len[g * WarpSize]) Raise(&flags[FLAG_EMPTY]);
}

__global__ static void TotalsKernel(In<PetscInt> blocks, In<PetscInt> tasks, In<PetscInt> lines, Found *found)
{
  if (threadIdx.x) return;
  found->blocks = *blocks;
  found->tasks  = *tasks;
  found->lines  = *lines;
}

/* base: entries of each column of a block in the blocks before */
__global__ static void GroupsKernel(PetscInt groups, In<PetscInt> len, In<PetscInt> begin, In<PetscInt> blocks, In<PetscInt> tasks, In<PetscInt> lines, const FastLoad fl, PetscInt *base)
{
  const PetscCount g    = GallopGlobalThread() / WarpSize;
  const int        lane = threadIdx.x % WarpSize;

  if (g >= groups) return;
  const PetscInt line = lines[g];
  PetscInt       b = blocks[g], t = tasks[g];
  PetscCount     ptr = begin[g * WarpSize];

  WalkGroupOf(fl.ncols, fl.height, len, (PetscInt)g * WarpSize, lane, [&](const Segment &segment) {
    for (PetscInt k = lane; k < segment.blocks; k += WarpSize) {
      const PetscInt from = segment.BlockBegin(k), to = segment.BlockEnd(k);

      if (k || segment.begins) fl.taskBlk[t + k - !segment.begins] = b + k;
      fl.blkPtr[b + k]    = ptr + (PetscCount)segment.length * (from - segment.begin);
      fl.blkColIdx[b + k] = (PetscInt)g * WarpSize + segment.first;
      fl.blkHeight[b + k] = to - from;
      fl.blkLength[b + k] = (unsigned char)segment.length;
      fl.blkLine[b + k]   = line + from;
      base[b + k]         = from;
    }
    b += segment.blocks;
    t += segment.Tasks();
    ptr += (PetscCount)segment.length * (segment.end - segment.begin);
  });
}

/* Whether a step of all columns begins at each sorted one */
__global__ static void FlagKernel(PetscInt ncols, In<PetscInt> len, PetscInt *flag)
{
  const PetscCount s = GallopGlobalThread();

  if (s < ncols) flag[s] = !s || len[s] != len[s - 1];
  else if (s == ncols) flag[s] = 0;
}

/* The first column and the last entry of each step */
__global__ static void StepsKernel(PetscInt ncols, In<PetscInt> len, In<PetscInt> step, PetscInt *start, PetscInt *top)
{
  const PetscCount s = GallopGlobalThread();

  if (s < ncols && step[s + 1] > step[s]) {
    start[step[s]] = (PetscInt)s;
    top[step[s]]   = len[s];
  }
}

__global__ static void StepBlocksKernel(PetscInt num, In<FastLoadStep> steps, const FastLoad fl, PetscInt *base)
{
  const PetscCount b = GallopGlobalThread();

  if (b >= fl.blkNum) return;
  const FastLoadBlock block = FastLoadGetBlock(num, steps, fl.ncols, FASTLOAD_LENGTH, fl.height, (PetscInt)b);

  fl.taskBlk[b]   = (PetscInt)b;
  fl.blkPtr[b]    = block.ptr;
  fl.blkColIdx[b] = block.colidx;
  fl.blkHeight[b] = block.height;
  fl.blkLength[b] = (unsigned char)block.length;
  fl.blkLine[b]   = block.height; /* to be added up */
  base[b]         = block.base;
}

/* What tasks are sorted by where the result is large: the part of it that they begin in */
__global__ static void TaskKeyKernel(const FastLoad fl, PetscInt part, Key *key, PetscInt *number)
{
  const PetscCount t = GallopGlobalThread();

  if (t >= fl.taskNum) return;
  key[t]    = (Key)(fl.lineRow[fl.blkLine[fl.taskBlk[t]]] / part);
  number[t] = (PetscInt)t;
}

/* In an order, or as they come where there is none */
__global__ static void TasksKernel(const FastLoad fl, In<PetscInt> order)
{
  const PetscCount k = GallopGlobalThread();

  if (k >= fl.taskNum) return;
  const PetscCount t = order ? order[k] : k;
  const PetscInt   b = fl.taskBlk[t], *cols = fl.perm + fl.blkColIdx[b];
  bool             follow = true;

  for (int l = 1; l < fl.blkLength[b]; l++) follow = follow && cols[l] == cols[0] + l;
  fl.tasks[k] = {(PetscInt)fl.blkPtr[b], (PetscInt)(fl.blkRow[b] / FASTLOAD_ALIGN),
                 fl.blkLine[b],          follow ? cols[0] : fl.blkColIdx[b],
                 fl.blkHeight[b],        b,
                 fl.taskBlk[t + 1],      fl.blkLength[b],
                 fl.blkClass[b],         follow};
}

/* Steps of all columns, in w->hostSteps */
static PetscErrorCode PlanSteps(FastLoad *fl, FastLoadWorkspace *w)
{
  PetscInt      num, *start, *top;
  FastLoadStep *steps;

  PetscFunctionBegin;
  FlagKernel<<<GallopBlocksFor((PetscCount)fl->ncols + 1, Threads), Threads, 0, w->stream>>>(fl->ncols, w->len, w->step);
  GallopCheckLaunch();
  PetscCall(FastLoadSum(w, w->step, w->step, (PetscCount)fl->ncols + 1));
  StepsKernel<<<GallopBlocksFor(fl->ncols, Threads), Threads, 0, w->stream>>>(fl->ncols, w->len, w->step, w->start, w->top);
  GallopCheckLaunch();
  PetscCall(GallopDeviceCopyOut(&num, w->step + fl->ncols, sizeof(PetscInt)));
  PetscCall(PetscMalloc1(num, &steps));
  PetscCall(PetscMalloc2(num, &start, num, &top));
  PetscCall(GallopDeviceCopyOut(start, w->start, (size_t)num * sizeof(PetscInt)));
  PetscCall(GallopDeviceCopyOut(top, w->top, (size_t)num * sizeof(PetscInt)));
  for (PetscInt t = 0; t < num; t++) {
    steps[t].start  = start[t];
    steps[t].base   = t ? top[t - 1] : 0;
    steps[t].height = top[t] - steps[t].base;
  }
  PetscCall(PetscFree2(start, top));
  FastLoadPlan(num, steps, fl->ncols, FASTLOAD_LENGTH, fl->height, &fl->blkNum);
  for (PetscInt t = 0; t < num; t++) fl->lineNum += FastLoadCeil(fl->ncols - steps[t].start, WarpSize) * steps[t].height;
  fl->taskNum  = fl->blkNum;
  w->stepNum   = num;
  w->hostSteps = steps;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Blocks, tasks and lines before each group, and of all */
static PetscErrorCode PlanGroups(const FastLoad *fl, FastLoadWorkspace *w)
{
  PetscFunctionBegin;
  w->groups = FastLoadCeil(fl->ncols, WarpSize);
  CountGroupsKernel<<<WarpsFor((PetscCount)w->groups + 1), Threads, 0, w->stream>>>(w->groups, fl->ncols, fl->height, w->len, w->blocks, w->tasknum, w->lines, w->flags);
  GallopCheckLaunch();
  PetscCall(FastLoadSum(w, w->blocks, w->blocks, (PetscCount)w->groups + 1));
  PetscCall(FastLoadSum(w, w->tasknum, w->tasknum, (PetscCount)w->groups + 1));
  PetscCall(FastLoadSum(w, w->lines, w->lines, (PetscCount)w->groups + 1));
  TotalsKernel<<<1, Threads, 0, w->stream>>>(w->blocks + w->groups, w->tasknum + w->groups, w->lines + w->groups, w->found);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* FastLoadPlanLongRows - fl->longNum long rows, which the GPU has found, in pieces, for GallopLongRowsFree() */
PetscErrorCode FastLoadPlanLongRows(FastLoad *fl, const GallopCSR *csr, const PetscInt *found, GallopLongRows *plan)
{
  const PetscInt *host_i = NULL;
  PetscInt       *rows;

  PetscFunctionBegin;
  if (fl->longNum) PetscCall(GallopCSRGetHostI(csr, &host_i));
  PetscCall(PetscMalloc1(fl->longNum, &rows));
  if (fl->longNum) PetscCall(GallopDeviceCopyOut(rows, found, (size_t)fl->longNum * sizeof(PetscInt)));
  PetscCall(GallopLongRowsPlan(host_i, fl->longNum, rows, FASTLOAD_PIECE, plan));
  PetscCall(PetscFree(rows));
  fl->blknz    = csr->nz - plan->nz;
  fl->pieceNum = plan->pieceNum;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* FastLoadPlanBlocks - How many blocks, lines, tasks and long rows there are. FastLoadWorkspaceFreePlan() frees what lies on the host. */
PetscErrorCode FastLoadPlanBlocks(FastLoad *fl, const GallopCSR *csr, FastLoadWorkspace *w)
{
  Found found;

  PetscFunctionBegin;
  if (fl->options.groups) PetscCall(PlanGroups(fl, w));
  else if (fl->ncols) PetscCall(PlanSteps(fl, w));
  PetscCall(GallopDeviceCopyOut(&found, w->found, sizeof(found)));
  if (fl->options.groups) {
    fl->blkNum  = found.blocks;
    fl->taskNum = found.tasks;
    fl->lineNum = found.lines;
  }
  fl->single = (PetscBool)(fl->options.groups && !found.flags[FLAG_CUT]);
  fl->zeros  = (PetscBool)(!fl->options.groups || found.flags[FLAG_EMPTY]);
  PetscCall(FastLoadPlanLongRows(fl, csr, w->columns.longrows, &w->longRowsPlan));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode FastLoadWorkspaceFreePlan(FastLoadWorkspace *w)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(w->hostSteps));
  PetscCall(GallopLongRowsFree(&w->longRowsPlan));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* FastLoadSetBlocks - The arrays of blocks but blkClass and blkRow, of tasks but tasks itself, and w->fill.base */
PetscErrorCode FastLoadSetBlocks(FastLoad *fl, FastLoadWorkspace *w)
{
  PetscFunctionBegin;
  if (!fl->blkNum) PetscCall(GallopDeviceZero(fl->blkPtr, sizeof(PetscCount)));
  else if (fl->options.groups) {
    GroupsKernel<<<WarpsFor(w->groups), Threads, 0, w->stream>>>(w->groups, w->len, w->begin, w->blocks, w->tasknum, w->lines, *fl, w->fill.base);
    GallopCheckLaunch();
  } else {
    PetscCall(GallopDeviceCopyIn(w->steps, w->hostSteps, (size_t)w->stepNum * sizeof(FastLoadStep)));
    StepBlocksKernel<<<GallopBlocksFor(fl->blkNum, Threads), Threads, 0, w->stream>>>(w->stepNum, w->steps, *fl, w->fill.base);
    GallopCheckLaunch();
    PetscCall(FastLoadSum(w, fl->blkLine, fl->blkLine, fl->blkNum));
  }
  if (fl->blkNum) PetscCall(GallopDeviceCopyIn(fl->blkPtr + fl->blkNum, &fl->blknz, sizeof(PetscCount)));
  PetscCall(GallopDeviceCopyIn(fl->blkLine + fl->blkNum, &fl->lineNum, sizeof(PetscInt)));
  PetscCall(GallopDeviceCopyIn(fl->taskBlk + fl->taskNum, &fl->blkNum, sizeof(PetscInt)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  FastLoadOrderTasks - Where the result is large, the order in which tasks that add to the same part of it follow each other, once blocks are filled

  *memory, for GallopWorkspaceFree(), has *order; both are NULL where tasks stay as they are. *fits is false where the GPU has no room.
*/
PetscErrorCode FastLoadOrderTasks(const FastLoad *fl, cudaStream_t stream, void **memory, const PetscInt **order, PetscBool *fits)
{
  FastLoadTaskSort sort = {};

  PetscFunctionBegin;
  *memory = NULL;
  *order  = NULL;
  *fits   = PETSC_TRUE;
  if (!fl->taskNum || !FastLoadIsLarge(fl->m)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(FastLoadTaskSortGet(fl, &sort, stream, memory));
  *fits = (PetscBool)(*memory != NULL);
  if (!*fits) PetscFunctionReturn(PETSC_SUCCESS);
  TaskKeyKernel<<<GallopBlocksFor(fl->taskNum, Threads), Threads, 0, stream>>>(*fl, TaskPart, sort.key, sort.task);
  GallopCheckLaunch();
  PetscCall(FastLoadTaskSortRun(fl, &sort, stream));
  *order = sort.order;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* FastLoadSetTasks - The tasks in an order, or as they come where there is none, once blocks are filled and their offsets have places */
PetscErrorCode FastLoadSetTasks(const FastLoad *fl, const PetscInt *order, cudaStream_t stream)
{
  PetscFunctionBegin;
  if (!fl->blkNum) PetscFunctionReturn(PETSC_SUCCESS);
  TasksKernel<<<GallopBlocksFor(fl->taskNum, Threads), Threads, 0, stream>>>(*fl, order);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}
