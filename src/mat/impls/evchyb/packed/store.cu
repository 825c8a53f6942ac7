/* SPDX-License-Identifier: BSD-2-Clause */
/* Packed storage on the GPU: entries are stored, and get new values */

#include "packedlines.cuh"
#include "packedwork.cuh"
#include "packeddevice.h"

/* Two neighbouring places for those of a lane */
template <typename T>
static __device__ __forceinline__ void StorePair(void *at, T first, T second)
{
  static_cast<EVCHYBPackPair<T> *>(at)[threadIdx.x % WarpSize] = {first, second};
}

static __device__ __forceinline__ void StoreOffsets(EVCHYBPackClass kind, unsigned char *at, uint32_t first, uint32_t second)
{
  if (kind == EVCHYB_PACK_8) StorePair<uint8_t>(at, (uint8_t)first, (uint8_t)second);
  else if (kind == EVCHYB_PACK_16) StorePair<uint16_t>(at, (uint16_t)first, (uint16_t)second);
  else if (kind == EVCHYB_PACK_32) StorePair<uint32_t>(at, first, second);
}

/* Both values of a lane in a line, 0 where there is none, whatever was read; false where one cannot be stored so */
template <EVCHYBPackValues Kind>
static __device__ __forceinline__ bool StoreAs(unsigned char *line, const PetscScalar value[2], const bool on[2], const PetscReal *__restrict__ dict, PetscInt ndict)
{
  using Part  = typename EVCHYBPackStoredValue<Kind>::Part;
  using Parts = EVCHYBPackParts<Kind>;
  Parts to[2];
  bool  fits = true;

#pragma unroll
  for (int h = 0; h < 2; h++) {
    const PetscReal *from = reinterpret_cast<const PetscReal *>(&value[h]);

    if constexpr (Kind == EVCHYB_PACK_REAL) fits = fits && (!on[h] || EVCHYBPackIsReal(value[h]));
#pragma unroll
    for (int p = 0; p < Parts::Parts; p++) {
      if constexpr (Kind == EVCHYB_PACK_DICT8 || Kind == EVCHYB_PACK_DICT16) {
        const PetscInt at = on[h] ? EVCHYBPackFind(dict, ndict, from[p]) : 0;

        fits          = fits && at < ndict;
        to[h].part[p] = (Part)at;
      } else {
        if constexpr (Kind == EVCHYB_PACK_SINGLE) fits = fits && (!on[h] || EVCHYBPackIsSingle(from[p]));
        to[h].part[p] = on[h] ? (Part)from[p] : Part(0);
      }
    }
  }
  StorePair<Parts>(line, to[0], to[1]);
  return fits;
}

static __device__ __forceinline__ void StoreMasks(int bytes, unsigned char *at, const uint32_t mask[2])
{
  StoreOffsets(bytes == 1 ? EVCHYB_PACK_8 : bytes == 2 ? EVCHYB_PACK_16 : EVCHYB_PACK_32, at, mask[0], mask[1]);
}

/* A line and its columns, which the lane has told, -1 for none. Returns the units of stream that they took. */
static __device__ __forceinline__ uint32_t StoreColumns(const EVCHYBPack &pack, EVCHYBPackClass kind, PetscInt base, int step, const int column[2], LineBefore *before, int64_t line, int64_t stream)
{
  const bool shared = kind != EVCHYB_PACK_STRIDED && AreShared(column, *before, &base);

  if (shared) before->line.base += (int32_t)base;
  else before->line = kind == EVCHYB_PACK_STRIDED ? EVCHYBPackStrided((int32_t)base, step) : EVCHYBPackStored(kind, (int32_t)base, (uint32_t)stream);
  *before = {
    before->line, {column[0], column[1]}
  };
  if (threadIdx.x % WarpSize == 0) pack.line[line] = before->line;
  if (shared) return 0;
  StoreOffsets(kind, PlaceOf(pack.stream, stream), column[0] >= 0 ? (uint32_t)(column[0] - (int)base) : 0, column[1] >= 0 ? (uint32_t)(column[1] - (int)base) : 0);
  return EVCHYBPackOffsetUnits(kind);
}

/* Of the lines of a chunk, whose masks say where the lane's rows have entries; next[h] goes from the first to beyond the last of a row */
template <typename Values>
struct ChunkOf {
  Values   &values;
  uint32_t  mask[2];
  PetscInt *next;

  __device__ __forceinline__ void Move(int k) { (void)values.Move(k, next); }
  __device__ __forceinline__ bool Has(int k, int h) const { return mask[h] >> k & 1; }

  /* Read where there is none, too, so that all reads are under way together */
  __device__ __forceinline__ PetscScalar Take(int k, int h)
  {
    const PetscScalar value = values.At(h, next[h]);

    next[h] += Has(k, h);
    return value;
  }
};

template <EVCHYBPackValues Kind, typename From>
static __device__ __forceinline__ bool StoreLinesAs(const EVCHYBPack &pack, unsigned char *line, int lines, From &from)
{
  bool fits = true;

#pragma unroll 1
  for (int k = 0; k < lines; k += Together, line += Together * EVCHYBPackBytesALine<Kind>()) {
    PetscScalar value[Together][2];
    bool        on[Together][2];

    from.Move(k);
#pragma unroll
    for (int u = 0; u < Together; u++) {
#pragma unroll
      for (int h = 0; h < 2; h++) {
        on[u][h]    = from.Has(k + u, h);
        value[u][h] = from.Take(k + u, h);
      }
    }
#pragma unroll
    for (int u = 0; u < Together; u++)
      if (k + u < lines) fits = StoreAs<Kind>(line + u * EVCHYBPackBytesALine<Kind>(), value[u], on[u], pack.dict, pack.ndict) && fits;
  }
  return fits;
}

/* The values of some lines, which begin at unit; false where one cannot be stored as the others are */
template <typename From>
static __device__ __forceinline__ bool StoreLines(const EVCHYBPack &pack, EVCHYBPackValues kind, int64_t unit, int lines, From from)
{
  unsigned char *line = PlaceOf(pack.value, unit);

  if (kind == EVCHYB_PACK_VALUE) return StoreLinesAs<EVCHYB_PACK_VALUE>(pack, line, lines, from);
  if (EVCHYBPackMayBeSingle && kind == EVCHYB_PACK_SINGLE) return StoreLinesAs<EVCHYB_PACK_SINGLE>(pack, line, lines, from);
  if (EVCHYBPackMayBeReal && kind == EVCHYB_PACK_REAL) return StoreLinesAs<EVCHYB_PACK_REAL>(pack, line, lines, from);
  return kind == EVCHYB_PACK_DICT8 ? StoreLinesAs<EVCHYB_PACK_DICT8>(pack, line, lines, from) : StoreLinesAs<EVCHYB_PACK_DICT16>(pack, line, lines, from);
}

static __device__ void StorePiece(const EVCHYBPack &pack, const PetscInt *__restrict__ j, const PetscScalar *__restrict__ a, const EVCHYBPackPlan &plan, const EVCHYBPackPlaces &at, unsigned char *room, EVCHYBPackSlice *slice)
{
  int64_t         stream = at.stream;
  Lines<PetscInt> columns(j, plan.first, plan.entries, room);
  LineBefore      before;

  if (threadIdx.x % WarpSize == 0) *slice = EVCHYBPackPieceSlice(&plan, &at);
  for (int k = 0; k < plan.width; k++) {
    int                   column[2];
    PetscInt              base;
    const int             step = ColumnsOfLine(columns, k, column);
    const EVCHYBPackClass kind = ClassOfEntries(step, column, &base);

    stream += StoreColumns(pack, kind, base, step, column, &before, at.line + k, stream);
  }
  (void)StoreLines(pack, plan.values, at.value, (int)plan.width, Lines<PetscScalar>(a, plan.first, plan.entries, room));
}

/* A warp stores a slice as it was planned, and reads its rows once more */
template <bool Long>
__global__ static void __launch_bounds__(Threads, ValuesOfRows<Long>::MinBlocks) StoreKernel(const EVCHYBPack pack, const PetscInt *__restrict__ i, const PetscInt *__restrict__ j, const PetscScalar *__restrict__ a, EVCHYBPackOrder order, const EVCHYBPackPlan *__restrict__ plans, const EVCHYBPackPlaces *__restrict__ places)
{
  __shared__ __align__(16) unsigned char rooms[Threads / WarpSize][ValuesOfRows<Long>::RoomBytes];
  unsigned char                         *room   = rooms[threadIdx.x / WarpSize];
  const PetscCount                       number = WarpOfGrid();

  if (number >= pack.nslice) return;
  EVCHYBPackPlan         plan = plans[number];
  const EVCHYBPackPlaces at   = places[number];

  if (number >= pack.nslice - pack.npiece) {
    StorePiece(pack, j, a, plan, at, room, &pack.slice[number]);
    return;
  }
  const Rows                          s       = GetRows(pack.m, i, order, (PetscInt)number, &plan);
  const int                           bytes   = EVCHYBPackMaskBytes(plan.width);
  int64_t                             stream  = at.stream, masks;
  PetscInt                            next[2] = {s.first[0], s.first[1]}, first[2] = {s.first[0], s.first[1]};
  EVCHYBPackSlice                     slice = {};
  LineBefore                          before;
  const int                           row0 = __shfl_sync(0xffffffffu, s.row[0], 0), row1 = __shfl_sync(0xffffffffu, s.row[0], 1);
  Columns                             columns(j, i[pack.m], s.end, room);
  typename ValuesOfRows<Long>::Values values(a, i[pack.m], s.end, room);

  slice.line   = at.line;
  slice.value  = (uint32_t)at.value;
  slice.width  = (uint16_t)plan.width;
  slice.values = (uint8_t)plan.values;
  slice.at     = plan.lines[EVCHYB_PACK_STRIDED] == plan.width ? (uint32_t)s.step : 0;
  slice.rows   = plan.rows == EVCHYB_PACK_STRIDED ? EVCHYBPackStrided(row0, row1 - row0) : EVCHYBPackStored(plan.rows, s.lo, (uint32_t)stream);
  StoreOffsets(plan.rows, PlaceOf(pack.stream, stream), s.row[0] < 0 ? EVCHYB_PACK_NONE : (uint32_t)(s.row[0] - s.lo), s.row[1] < 0 ? EVCHYB_PACK_NONE : (uint32_t)(s.row[1] - s.lo));
  stream += EVCHYBPackOffsetUnits(plan.rows);
  slice.mask = plan.masks ? (uint32_t)stream : EVCHYB_PACK_NONE;
  masks      = stream;
  stream += plan.masks ? EVCHYBPackMaskUnits(plan.width) : 0;
  if (threadIdx.x % WarpSize == 0) pack.slice[number] = slice;
  for (int chunk = 0; chunk * EVCHYB_PACK_CHUNK < plan.width; chunk++) {
    const int     lines   = min(EVCHYB_PACK_CHUNK, (int)plan.width - chunk * EVCHYB_PACK_CHUNK);
    const int64_t line    = (int64_t)chunk * EVCHYB_PACK_CHUNK;
    uint32_t      mask[2] = {0, 0};

    for (int k = 0; k < lines; k++) {
      EVCHYBPackClass kind  = EVCHYB_PACK_STRIDED;
      bool            on[2] = {next[0] < s.end[0], next[1] < s.end[1]};
      int             column[2];
      PetscInt        base;

      (void)columns.Move(k, next);
      if (plan.diagonals) base = NextDiagonal(s, columns, next, on);
#pragma unroll
      for (int h = 0; h < 2; h++) {
        column[h] = on[h] ? (int)columns.At(h, next[h]) : -1;
        next[h] += on[h];
        mask[h] |= (uint32_t)on[h] << k;
      }
      if (!plan.diagonals) kind = ClassOfEntries(s.step, column, &base);
      stream += StoreColumns(pack, kind, base, s.step, column, &before, at.line + line + k, stream);
    }
    if (plan.masks) StoreMasks(bytes, PlaceOf(pack.stream, masks + (int64_t)chunk * bytes), mask);
    (void)StoreLines(pack, plan.values, at.value + line * EVCHYBPackValueUnits(plan.values), lines,
                     ChunkOf<decltype(values)>{
                       values, {mask[0], mask[1]},
                        first
    });
  }
}

static size_t CarvePack(EVCHYBPack *pack, void *base)
{
  GallopCarver carver(base);

  carver.Take(pack->slice, pack->nslice);
  carver.Take(pack->line, pack->nline);
  carver.Take(pack->stream, pack->nstream * EVCHYB_PACK_UNIT);
  carver.Take(pack->value, pack->nvalue * EVCHYB_PACK_UNIT);
  return carver.Bytes();
}

PetscErrorCode EVCHYBPackFinish_Device(EVCHYBPack *pack, const GallopCSR *csr, const EVCHYBPackOrder *order, const EVCHYBPackSurvey *survey, PetscCount maxbytes, PetscBool *done)
{
  const bool       planned = survey && survey->stride && !order->perm && order->stride == survey->stride && !order->pieces && pack->ndict == survey->ndict; /* what is to be stored */
  EVCHYBPackPlans  plans;
  EVCHYBPackPlaces all;
  void            *kept = NULL, *memory = NULL;
  cudaStream_t     stream;

  PetscFunctionBegin;
  *done        = PETSC_FALSE;
  pack->stride = order->perm ? 0 : order->stride;
  pack->npiece = order->pieces;
  pack->nslice = EVCHYBPackNumSlices(order, csr->m) + pack->npiece;
  if (planned) {
    plans         = {survey->plans, survey->places};
    all           = survey->all;
    pack->figures = survey->figures;
    pack->nz      = survey->nz;
  } else {
    PetscCall(EVCHYBPackPlan_Device(pack, csr, order, &plans, &all, &memory));
    if (!memory) PetscFunctionReturn(PETSC_SUCCESS);
  }
  pack->nline   = (PetscCount)all.line;
  pack->nstream = (PetscCount)all.stream;
  pack->nvalue  = (PetscCount)all.value;
  pack->bytes   = EVCHYBPackBytes(pack);
  if (EVCHYBPackPlacesFit(&all) && (!maxbytes || pack->bytes <= (size_t)maxbytes)) PetscCall(GallopDeviceMalloc(CarvePack(pack, NULL), &kept));
  if (kept) {
    const bool haslong = HasLongRows(pack);
    size_t     unused;
    const auto kernel = haslong ? StoreKernel<true> : StoreKernel<false>;

    (void)CarvePack(pack, kept);
    PetscCall(PetscGetCurrentCUDAStream(&stream));
    PetscCall(UnusedShared(haslong, &unused));
    kernel<<<GallopBlocksFor((PetscCount)pack->nslice * WarpSize, Threads), Threads, unused, stream>>>(*pack, csr->i, csr->j, csr->a, *order, plans.plans, plans.places);
    GallopCheckLaunch();
    PetscCallCUDA(GallopKernelOverlaps(kernel, &pack->overlaps));
    *done = PETSC_TRUE;
  }
  PetscCall(GallopWorkspaceFree(memory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode EVCHYBPackFree_Device(EVCHYBPack *pack)
{
  PetscFunctionBegin;
  PetscCall(GallopDeviceFree(pack->slice));
  PetscCall(GallopDeviceFree(pack->dict));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* New values: the entries of a row are where its bits are, in order */
template <bool Long>
__global__ static void __launch_bounds__(Threads, ValuesOfRows<Long>::MinBlocks) ValuesKernel(const EVCHYBPack pack, unsigned int parts, const PetscInt *__restrict__ i, const PetscScalar *__restrict__ a, int *unfit)
{
  __shared__ __align__(16) unsigned char rooms[Threads / WarpSize][ValuesOfRows<Long>::RoomBytes];
  unsigned char                         *room  = rooms[threadIdx.x / WarpSize];
  const Work                             work  = WorkOf(pack, parts);
  const EVCHYBPackSlice                  slice = EVCHYBPackLoadSlice(pack.slice + work.number);
  const EVCHYBPackValues                 kind  = (EVCHYBPackValues)slice.values;
  bool                                   fits  = true;

  if (__any_sync(0xffffffffu, unfit && *(volatile int *)unfit)) return; /* another dictionary comes, or another pack */
  if (slice.last) {
    const Part part = PartOf(slice, i, work.part, parts);

    if (part.lines > 0) fits = StoreLines(pack, kind, slice.value + (int64_t)part.line * EVCHYBPackValueUnits(kind), part.lines, Lines<PetscScalar>(a, part.first, part.entries, room));
    Report(fits, unfit);
    return;
  }
  RowsOf rows(pack, work.number, i);

  rows.Set(pack, slice, i);
  typename ValuesOfRows<Long>::Values values(a, i[pack.m], rows.end, room);

  for (int chunk = 0; chunk * EVCHYB_PACK_CHUNK < slice.width; chunk++) {
    const int                      lines = min(EVCHYB_PACK_CHUNK, slice.width - chunk * EVCHYB_PACK_CHUNK);
    const EVCHYBPackPair<uint32_t> mask  = EVCHYBPackMasksOf(slice, EVCHYBPackLoadMasks(slice, pack.stream, chunk, threadIdx.x % WarpSize));
    const uint32_t                 all   = EVCHYBPackAllLines(lines);

    fits = StoreLines(pack, kind, slice.value + (int64_t)chunk * EVCHYB_PACK_CHUNK * EVCHYBPackValueUnits(kind), lines,
                      ChunkOf<decltype(values)>{
                        values, {mask.first & all, mask.second & all},
                         rows.first
    }) &&
           fits;
  }
  Report(fits, unfit);
}

static PetscErrorCode LaunchValues(const EVCHYBPack *pack, const GallopCSR *csr, int *unfit)
{
  const bool         haslong = HasLongRows(pack);
  const auto         kernel  = haslong ? ValuesKernel<true> : ValuesKernel<false>;
  const unsigned int parts   = WarpsAPiece(pack);
  size_t             unused;
  cudaStream_t       stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(UnusedShared(haslong, &unused));
  kernel<<<GridOfWork(pack, parts), Threads, unused, stream>>>(*pack, parts, csr->i, csr->a, unfit);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* EVCHYBPackRefresh_Device - fits: NULL where the values are known to */
PetscErrorCode EVCHYBPackRefresh_Device(EVCHYBPack *pack, const GallopCSR *csr, PetscBool *fits)
{
  const bool asks   = fits && !EVCHYBPackTakesAny(pack);
  int        unfit  = 0;
  void      *memory = NULL;

  PetscFunctionBegin;
  if (asks) {
    *fits = PETSC_FALSE;
    PetscCall(GallopWorkspaceMalloc(sizeof(unfit), &memory));
    if (!memory) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall(GallopDeviceZero(memory, sizeof(unfit)));
  }
  PetscCall(LaunchValues(pack, csr, (int *)memory));
  if (asks) {
    PetscCall(GallopDeviceCopyOut(&unfit, memory, sizeof(unfit)));
    PetscCall(GallopWorkspaceFree(memory));
  }
  if (fits) *fits = (PetscBool)!unfit;
  PetscFunctionReturn(PETSC_SUCCESS);
}
