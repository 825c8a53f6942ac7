/* SPDX-License-Identifier: BSD-2-Clause */
/* Packed storage on the GPU: other numbers for a dictionary, where all entries that had one number have one again */

#include "packedwork.cuh"

static constexpr int Noted      = 256;                           /* numbers that a byte tells apart */
static constexpr int NoteBlocks = 8;                             /* thread blocks per multiprocessor; more leave too few registers */
static constexpr int NotesOnce  = 64 / (int)sizeof(PetscScalar); /* entries that a lane compares at once */
static constexpr int AsksOnce   = 8;                             /* lines whose codes it asks for at once */
static constexpr int NoteBytes  = 82 * EVCHYB_PACK_ROWS;         /* of words of entries that a warp has in shared memory */

/* Keeps in a register what the compiler would compute anew wherever it is used under a condition */
template <typename T>
static __device__ __forceinline__ T Keep(T value)
{
  if constexpr (sizeof(T) == 8) asm volatile("mov.b64 %0, %0;" : "+l"(value));
  else asm volatile("mov.b32 %0, %0;" : "+r"(value));
  return value;
}

/* An array in shared memory by its address there, for the same reason; of 2, 4 or 8 bytes */
template <typename T>
class Shared {
public:
  using Word = cuda::std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned int>;

  explicit __device__ __forceinline__ Shared(const T *array) : at_(Keep((unsigned int)__cvta_generic_to_shared(array))) { }

  __device__ __forceinline__ unsigned int Address(int k) const { return at_ + (unsigned int)k * (unsigned int)sizeof(T); }

  __device__ __forceinline__ T operator[](int k) const
  {
    Word word;

    if constexpr (sizeof(T) == 8) asm volatile("ld.shared.b64 %0, [%1];" : "=l"(word) : "r"(Address(k)) : "memory");
    else if constexpr (sizeof(T) == 4) asm volatile("ld.shared.b32 %0, [%1];" : "=r"(word) : "r"(Address(k)) : "memory");
    else asm volatile("ld.shared.u16 %0, [%1];" : "=r"(word) : "r"(Address(k)) : "memory");
    return (T)word;
  }

  static __device__ __forceinline__ void Set(unsigned int address, Word value)
  {
    if constexpr (sizeof(T) == 8) asm volatile("st.shared.b64 [%0], %1;" ::"r"(address), "l"(value) : "memory");
    else if constexpr (sizeof(T) == 4) asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
    else asm volatile("st.shared.u16 [%0], %1;" ::"r"(address), "r"(value) : "memory");
  }

private:
  unsigned int at_;
};

/*
  What the numbers of the dictionary have become, the complements of their bits: 0 where that is not known yet. They are compared with entries of a lane, which a From tells: a[Place(u)] is one, and
  CodeOf(u, p) the code of a part of it. Where there are fewer the last one comes several times.
*/
template <EVCHYBPackValues Kind>
struct Notes {
  unsigned long long        *numbers; /* [ndict] */
  unsigned long long        *noted;   /* [Noted] in shared memory, the thread block's own, where a byte tells the numbers apart */
  Shared<unsigned long long> block;   /* the same */

  /* Few numbers are noted by each thread block for itself: L1 could have old ones, and all warps of the grid would exchange the same few places */
  __device__ __forceinline__ unsigned long long Known(int code) const
  {
    if constexpr (Kind == EVCHYB_PACK_DICT8) return block[code];
    else return __ldca(numbers + code);
  }

  /* What the number was before, or now is */
  __device__ __forceinline__ unsigned long long Exchange(int code, unsigned long long bits) const
  {
    unsigned long long is = 0;

    if constexpr (Kind == EVCHYB_PACK_DICT8) {
      is = atomicCAS(noted + code, 0, bits);
      if (!is) is = __ldcg(numbers + code);
    }
    if (!is) is = atomicCAS(numbers + code, 0, bits);
    return is ? is : bits;
  }

  /* L1 may not have what is known since; what is not known a lane exchanges for all that have the number */
  __device__ __forceinline__ bool Note(int code, unsigned long long bits) const
  {
    unsigned long long is = Kind == EVCHYB_PACK_DICT8 ? Known(code) : __ldcg(numbers + code);

    if (!is) {
      const unsigned int same = __match_any_sync(__activemask(), code);
      const int          one  = __ffs(same) - 1;

      if (one == threadIdx.x % WarpSize) is = Exchange(code, bits);
      is = __shfl_sync(same, is, one);
    }
    return is == bits && bits;
  }

  static __device__ __forceinline__ unsigned long long BitsOf(const PetscScalar &value, int part) { return EVCHYBPackBitsOf(reinterpret_cast<const PetscReal *>(&value)[part]); }

  /* False where a number has become two */
  template <typename From>
  __device__ __forceinline__ bool Are(const From &from, const PetscScalar value[NotesOnce]) const
  {
    unsigned int equal = ~0u, most = 0;
    bool         fits = true;

#pragma unroll
    for (int u = 0; u < NotesOnce; u++) {
#pragma unroll
      for (int p = 0; p < EVCHYB_PACK_PARTS; p++) {
        const unsigned long long is = BitsOf(value[u], p), was = Known(from.CodeOf(u, p));

        equal &= (unsigned int)is ^ (unsigned int)was;
        equal &= (unsigned int)(is >> 32) ^ (unsigned int)(was >> 32);
        most = max(most, (unsigned int)(is >> 32));
      }
    }
    if (__all_sync(0xffffffffu, equal == ~0u && most < ~0u)) return true; /* all ones may be the complement of what is not known */
#pragma unroll 1
    for (int u = 0; u < NotesOnce; u++) { /* what is seldom done takes no registers, but loads again */
      const PetscScalar own = from.a[from.Place(u)];

#pragma unroll
      for (int p = 0; p < EVCHYB_PACK_PARTS; p++) fits = Note(from.CodeOf(u, p), ~BitsOf(own, p)) && fits;
    }
    return fits;
  }

  template <typename From>
  static __device__ __forceinline__ void Ask(const From &from, PetscScalar value[NotesOnce])
  {
#pragma unroll
    for (int u = 0; u < NotesOnce; u++) value[u] = GallopLoadOnce(from.a + from.Place(u));
  }
};

/* Entries of a part of a piece, whose codes are in its order: from line k on */
template <EVCHYBPackValues Kind>
struct FromPiece {
  const PetscScalar   *a;    /* the part's first entry */
  const unsigned char *line; /* and line */
  int                  lines, entries, k;

  __device__ __forceinline__ int Place(int u) const { return min((k + u / 2) * EVCHYB_PACK_ROWS + RowInSlice(u % 2), entries - 1); }

  __device__ __forceinline__ int CodeOf(int u, int p) const
  {
    const int             place = Place(u), in = place % EVCHYB_PACK_ROWS;
    EVCHYBPackCodes<Kind> codes;

    codes.Load(line + place / EVCHYB_PACK_ROWS * EVCHYBPackBytesALine<Kind>(), in % WarpSize);
    return codes.Code(in / WarpSize, p);
  }
};

/* A word for an entry: the codes of its parts, and above them its row in the slice */
template <EVCHYBPackValues Kind>
struct NoteWords {
  using Part                = typename EVCHYBPackStoredValue<Kind>::Part;
  static constexpr int Bits = 8 * EVCHYB_PACK_PARTS * (int)sizeof(Part);
  using Word                = cuda::std::conditional_t<Bits == 8, uint16_t, cuda::std::conditional_t<Bits == 32, uint64_t, uint32_t>>;
  static constexpr int Room = NoteBytes / (int)sizeof(Word); /* entries */

  static __device__ __forceinline__ int CodeOf(Word word, int p) { return (int)(Part)(word >> p * 8 * sizeof(Part)); }
  static __device__ __forceinline__ int RowOf(Word word) { return (int)(word >> Bits); }
};

/* Entries of a slice, from the lane's first on. Together: they follow each other in CSR. */
template <EVCHYBPackValues Kind, bool Together>
struct FromSlice {
  using Words = NoteWords<Kind>;

  const PetscScalar           *a; /* the first one of all where they are together, else of the matrix */
  Shared<typename Words::Word> words;
  Shared<PetscInt>             begins; /* of rows, less the entries before them */
  int                          entries, first;

  __device__ __forceinline__ unsigned int Entry(int u) const { return min((unsigned int)(first + u * WarpSize), (unsigned int)(entries - 1)); }
  __device__ __forceinline__ int          CodeOf(int u, int p) const { return Words::CodeOf(words[(int)Entry(u)], p); }

  __device__ __forceinline__ auto Place(int u) const
  {
    if constexpr (Together) return Entry(u);
    else return begins[Words::RowOf(words[(int)Entry(u)])] + (PetscInt)Entry(u);
  }
};

/*
  A slice's entries are compared in the order of CSR, in which values are read: codes, which take an eighth of their bytes, are brought into it, by shared memory. Where they are more than there is room
  for they come in several turns.
*/
template <EVCHYBPackValues Kind>
struct SliceNotes {
  using Words = NoteWords<Kind>;

  Shared<typename Words::Word> words;
  Shared<PetscInt>             begins;

  /* Words of entries from one on, as many as there is room for; at: how many entries there are before the lane's rows. All: there is room for all. */
  template <bool All>
  __device__ __forceinline__ void Bring(const EVCHYBPack &pack, const EVCHYBPackSlice &slice, const int at[2], int from) const
  {
    using Array                = Shared<typename Words::Word>;
    const unsigned char *line  = pack.value + (size_t)slice.value * EVCHYB_PACK_UNIT;
    unsigned int         to[2] = {words.Address(at[0] - from), words.Address(at[1] - from)};
    typename Array::Word row[2];
    uint32_t             mask[2];

#pragma unroll
    for (int h = 0; h < 2; h++) row[h] = Keep((typename Array::Word)RowInSlice(h) << Words::Bits);
#pragma unroll 1
    for (int k = 0; k < slice.width; k += AsksOnce, line += AsksOnce * EVCHYBPackBytesALine<Kind>()) {
      EVCHYBPackCodes<Kind> codes[AsksOnce];

#pragma unroll
      for (int u = 0; u < AsksOnce; u++) codes[u].LoadIf(line + u * EVCHYBPackBytesALine<Kind>(), u < slice.width - k);
      if (k % EVCHYB_PACK_CHUNK == 0) {
        const EVCHYBPackPair<uint32_t> bits = EVCHYBPackMasksOf(slice, EVCHYBPackLoadMasks(slice, pack.stream, k / EVCHYB_PACK_CHUNK, threadIdx.x % WarpSize));
        const uint32_t                 all  = EVCHYBPackAllLines(min(EVCHYB_PACK_CHUNK, slice.width - k));

        mask[0] = bits.first & all;
        mask[1] = bits.second & all;
      }
#pragma unroll
      for (int u = 0; u < AsksOnce; u++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
          const bool on = mask[h] >> u & 1;

          if (on && (All || to[h] - words.Address(0) < NoteBytes)) Array::Set(to[h], row[h] | (h ? codes[u].word >> Words::Bits : codes[u].word & (((uint64_t)1 << Words::Bits) - 1)));
          if (on) to[h] += sizeof(typename Words::Word);
        }
      }
      mask[0] >>= AsksOnce;
      mask[1] >>= AsksOnce;
    }
  }

  template <bool Together>
  __device__ __forceinline__ bool CompareAs(const Notes<Kind> &notes, const EVCHYBPack &pack, const EVCHYBPackSlice &slice, const PetscScalar *__restrict__ a, const int at[2], int entries) const
  {
    bool fits = true;

#pragma unroll 1
    for (int from = 0; from < entries; from += Words::Room) {
      const int                 lane = threadIdx.x % WarpSize;
      FromSlice<Kind, Together> own  = {Keep(a + from), words, begins, min(entries - from, Words::Room), lane};
      PetscScalar               value[NotesOnce];

      if constexpr (Together) notes.Ask(own, value);
      __syncwarp();
      if (entries <= Words::Room) Bring<true>(pack, slice, at, 0);
      else Bring<false>(pack, slice, at, from);
      __syncwarp();
      if constexpr (!Together) notes.Ask(own, value);
#pragma unroll 1
      for (;;) {
        fits = notes.Are(own, value) && fits;
        own.first += NotesOnce * WarpSize;
        if (own.first - lane >= own.entries) break;
        notes.Ask(own, value);
      }
    }
    return fits;
  }

  __device__ __forceinline__ bool Compare(const Notes<Kind> &notes, const EVCHYBPack &pack, const EVCHYBPackSlice &slice, const PetscScalar *__restrict__ a, const RowsOf &rows) const
  {
    const int      lane = threadIdx.x % WarpSize, num[2] = {(int)(rows.end[0] - rows.first[0]), (int)(rows.end[1] - rows.first[1])};
    const PetscInt begin = GallopShuffle(rows.first[0], 0), half = GallopShuffle(rows.first[1], 0), end = GallopShuffle(rows.end[1], WarpSize - 1);
    const PetscInt next[2] = {GallopShuffle(rows.first[0], (lane + 1) % WarpSize), GallopShuffle(rows.first[1], (lane + 1) % WarpSize)};
    const bool     follow  = lane + 1 < WarpSize ? rows.end[0] == next[0] && rows.end[1] == next[1] : rows.end[0] == half;
    int            at[2]   = {(int)(rows.first[0] - begin), (int)(rows.first[1] - begin)};

    if (__all_sync(0xffffffffu, follow)) return CompareAs<true>(notes, pack, slice, a + begin, at, (int)(end - begin));
#pragma unroll
    for (int h = 0; h < 2; h++) at[h] = GallopWarpPrefix(num[h]) - num[h];
    at[1] += __shfl_sync(0xffffffffu, at[0] + num[0], WarpSize - 1);
#pragma unroll
    for (int h = 0; h < 2; h++) begins.Set(begins.Address(RowInSlice(h)), rows.first[h] - at[h]);
    return CompareAs<false>(notes, pack, slice, a, at, __shfl_sync(0xffffffffu, at[1] + num[1], WarpSize - 1));
  }
};

/* A warp takes a slice; several take a piece */
template <EVCHYBPackValues Kind>
__global__ static void __launch_bounds__(Threads, NoteBlocks) NotesKernel(const EVCHYBPack pack, unsigned int parts, const PetscInt *__restrict__ i, const PetscScalar *__restrict__ a, unsigned long long *numbers, int *unfit)
{
  using Words = NoteWords<Kind>;
  __shared__ typename Words::Word rooms[Threads / WarpSize][Words::Room];
  __shared__ PetscInt             begins[Threads / WarpSize][EVCHYB_PACK_ROWS];
  __shared__ unsigned long long   noted[Kind == EVCHYB_PACK_DICT8 ? Noted : 1];
  const int                       warp  = (int)threadIdx.x / WarpSize;
  const Notes<Kind>               notes = {numbers, noted, Shared<unsigned long long>(noted)};
  const Work                      work  = WorkOf(pack, parts);
  const EVCHYBPackSlice           slice = EVCHYBPackLoadSlice(pack.slice + work.number);
  const bool                      known = *(volatile int *)unfit; /* another dictionary comes, or another pack */
  RowsOf                          rows(pack, work.number, i);
  bool                            fits = true;

  GallopLetSuccessorStart();
  if constexpr (Kind == EVCHYB_PACK_DICT8) {
    for (int k = (int)threadIdx.x; k < PetscMin(pack.ndict, Noted); k += Threads) noted[k] = __ldcg(numbers + k);
    __syncthreads();
  }
  if (__any_sync(0xffffffffu, known)) return;
  if (slice.last) {
    const Part      part = PartOf(slice, i, work.part, parts);
    FromPiece<Kind> from = {a + part.first, PlaceOf(pack.value, slice.value + (int64_t)part.line * EVCHYBPackValueUnits(Kind)), part.lines, part.entries, 0};
    PetscScalar     value[NotesOnce];

    for (; from.k < part.lines; from.k += NotesOnce / 2) {
      notes.Ask(from, value);
      fits = notes.Are(from, value) && fits;
    }
  } else {
    const SliceNotes<Kind> of = {Shared<typename Words::Word>(rooms[warp]), Shared<PetscInt>(begins[warp])};

    rows.Set(pack, slice, i);
    fits = of.Compare(notes, pack, slice, a, rows);
  }
  Report(fits, unfit);
}

static PetscErrorCode LaunchNotes(const EVCHYBPack *pack, const GallopCSR *csr, unsigned long long *numbers, int *unfit)
{
  const auto         kernel = pack->figures.slots[EVCHYB_PACK_DICT8] ? NotesKernel<EVCHYB_PACK_DICT8> : NotesKernel<EVCHYB_PACK_DICT16>;
  const unsigned int parts  = WarpsAPiece(pack);
  cudaStream_t       stream;

  PetscFunctionBegin;
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  kernel<<<GridOfWork(pack, parts), Threads, 0, stream>>>(*pack, parts, csr->i, csr->a, numbers, unfit);
  GallopCheckLaunch();
  PetscFunctionReturn(PETSC_SUCCESS);
}

struct Renumbered {
  int unfit, unsorted;
};

/* The dictionary's new numbers, if they are, and whether they are in order. The host reads the answer where it is. */
__global__ static void __launch_bounds__(Threads) RenumberKernel(PetscInt ndict, const volatile unsigned long long *numbers, const volatile int *unfit, EVCHYBPackBits *dict, Renumbered *answer)
{
  const PetscInt k = (PetscInt)(blockIdx.x * Threads + threadIdx.x);

  GallopWaitForPredecessor();
  if (k >= ndict) return;
  if (*unfit) {
    if (k == 0) answer->unfit = 1;
    return;
  }
  const EVCHYBPackBits own = numbers[k] ? (EVCHYBPackBits)~numbers[k] : dict[k];

  if (k + 1 < ndict && own > (numbers[k + 1] ? (EVCHYBPackBits)~numbers[k + 1] : dict[k + 1])) answer->unsorted = 1;
  if (numbers[k]) dict[k] = own;
}

typedef struct {
  unsigned long long *numbers;
  int                *unfit;
} RenumberWorkspace;

static size_t CarveRenumber(RenumberWorkspace *w, PetscInt ndict, void *base)
{
  GallopCarver carver(base);

  carver.Take(w->numbers, ndict);
  carver.Take(w->unfit, 1);
  return carver.Bytes();
}

PetscErrorCode EVCHYBPackRenumber_Device(EVCHYBPack *pack, const GallopCSR *csr, PetscBool *done)
{
  RenumberWorkspace w     = {};
  const size_t      bytes = CarveRenumber(&w, pack->ndict, NULL);
  Renumbered       *answer;
  void             *memory, *reply;
  cudaStream_t      stream;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(GallopDeviceGetReply(&reply));
  if (!reply) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopWorkspaceMalloc(bytes, &memory));
  if (!memory) PetscFunctionReturn(PETSC_SUCCESS);
  (void)CarveRenumber(&w, pack->ndict, memory);
  answer  = (Renumbered *)reply;
  *answer = {0, 0};
  PetscCall(PetscGetCurrentCUDAStream(&stream));
  PetscCall(GallopDeviceZero(memory, bytes));
  PetscCall(LaunchNotes(pack, csr, w.numbers, w.unfit));
  PetscCallCUDA(
    GallopLaunch(RenumberKernel, {GallopBlocksFor(pack->ndict, Threads), Threads, 1, 0, stream, (bool)pack->overlaps}, pack->ndict, w.numbers, w.unfit, reinterpret_cast<EVCHYBPackBits *>(pack->dict), answer));
  PetscCall(GallopWorkspaceFree(memory));
  PetscCallCUDA(cudaStreamSynchronize(stream));
  *done = (PetscBool)!answer->unfit;
  if (*done) pack->unsorted = (PetscBool)answer->unsorted;
  PetscFunctionReturn(PETSC_SUCCESS);
}
