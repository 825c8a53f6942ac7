/* SPDX-License-Identifier: BSD-2-Clause */
/*
  Memory that other processes of the host can open: large allocations, which matrices get pieces of

  A process opens an allocation of another one once. Allocations stay until PetscFinalize(), where all processes close what they have opened before any of them frees its own: so it
  does not matter in which order processes destroy matrices. A piece is used again when its matrix is gone, by a matrix of about the same size.
*/

#include <gallop/matgallopimpl.h>
#include <unistd.h>

#define LEAST_ALLOCATION (2 << 20) /* CUDA maps so much at a time: less could be part of an allocation that is somebody else's */
#define LEAST_PIECE      4096

typedef struct {
  GallopIPCAllocation of;
  void               *memory;
  size_t              used;
} Allocation;

typedef struct {
  GallopIPCPiece piece;
  PetscBool      used;
} Piece;

typedef struct {
  const GallopIPCTable *table;
  int                   nallocations, npieces, nopened;
  Allocation           *allocation, *opened;
  Piece                *piece;
} Arena;

static Arena arenas[2]; /* of the host and the GPU */

static Arena *ArenaOf(const GallopIPCTable *table)
{
  Arena *arena = table == &GallopIPCTable_Shared ? &arenas[0] : &arenas[1];

  arena->table = table;
  return arena;
}

/* A new allocation with room for a piece; NULL where there is none */
static PetscErrorCode AllocationCreate(Arena *arena, size_t bytes, Allocation **created)
{
  Allocation  a;
  PetscMPIInt rank;

  PetscFunctionBegin;
  *created = NULL;
  PetscCall(PetscMemzero(&a, sizeof(a)));
  bytes = PetscMax(bytes, LEAST_ALLOCATION);
  PetscCall((*arena->table->allocate)(bytes, &a.memory, &a.of.handle, a.of.device));
  if (!a.memory) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallMPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  a.of.process[0] = (PetscInt64)getpid(); /* the same in two containers, perhaps */
  a.of.process[1] = rank;
  a.of.number     = arena->nallocations;
  a.of.bytes      = (PetscInt64)bytes;
  PetscCall(PetscRealloc((arena->nallocations + 1) * sizeof(a), &arena->allocation));
  *created  = &arena->allocation[arena->nallocations++];
  **created = a;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopIPCPieceGet - A piece of this process's memory that others can open; its memory is NULL where there is none to be had */
PetscErrorCode GallopIPCPieceGet(const GallopIPCTable *table, size_t bytes, GallopIPCPiece *piece)
{
  Arena      *arena = ArenaOf(table);
  Allocation *a     = NULL;
  size_t      size  = LEAST_PIECE;

  PetscFunctionBegin;
  piece->memory = NULL;
  while (size < bytes) size *= 2;
  for (int k = 0; k < arena->npieces; k++) {
    Piece *p = &arena->piece[k];

    if (p->used || p->piece.bytes != size) continue;
    p->used = PETSC_TRUE;
    *piece  = p->piece;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (arena->nallocations) a = &arena->allocation[arena->nallocations - 1];
  if (!a || (size_t)a->of.bytes - a->used < size) PetscCall(AllocationCreate(arena, size, &a));
  if (!a) PetscFunctionReturn(PETSC_SUCCESS);
  piece->allocation = (int)a->of.number;
  piece->offset     = a->used;
  piece->bytes      = size;
  piece->memory     = (char *)a->memory + a->used;
  a->used += size;
  PetscCall(PetscRealloc((arena->npieces + 1) * sizeof(Piece), &arena->piece));
  arena->piece[arena->npieces].piece  = *piece;
  arena->piece[arena->npieces++].used = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopIPCPieceReturn - Nobody writes to the piece any more, nor reads it */
PetscErrorCode GallopIPCPieceReturn(const GallopIPCTable *table, GallopIPCPiece *piece)
{
  Arena *arena = ArenaOf(table);

  PetscFunctionBegin;
  for (int k = 0; k < arena->npieces; k++)
    if (piece->memory && arena->piece[k].piece.memory == piece->memory) arena->piece[k].used = PETSC_FALSE;
  piece->memory = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopIPCPieceGetAllocation(const GallopIPCTable *table, const GallopIPCPiece *piece, GallopIPCAllocation *allocation)
{
  PetscFunctionBegin;
  *allocation = ArenaOf(table)->allocation[piece->allocation].of;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopIPCOpen - Another process's allocation, here; NULL where it cannot be opened, which is not tried a second time */
PetscErrorCode GallopIPCOpen(const GallopIPCTable *table, const GallopIPCAllocation *allocation, void **memory)
{
  Arena      *arena = ArenaOf(table);
  Allocation *o;
  PetscBool   fails;

  PetscFunctionBegin;
  *memory = NULL;
  for (int k = 0; k < arena->nopened; k++) {
    o = &arena->opened[k];
    if (o->of.process[0] == allocation->process[0] && o->of.process[1] == allocation->process[1] && o->of.number == allocation->number) {
      *memory = o->memory;
      PetscFunctionReturn(PETSC_SUCCESS);
    }
  }
  PetscCall(GallopDeviceMallocFails(PETSC_TRUE, &fails)); /* for tests */
  if (fails) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall((*table->open)(allocation, memory));
  PetscCall(PetscRealloc((arena->nopened + 1) * sizeof(Allocation), &arena->opened));
  o         = &arena->opened[arena->nopened++];
  o->of     = *allocation;
  o->memory = *memory;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* GallopIPCFinalize - Collective on PETSC_COMM_WORLD: closes other processes' memory, then frees this one's */
PetscErrorCode GallopIPCFinalize(void)
{
  PetscFunctionBegin;
  for (int a = 0; a < 2; a++) {
    Arena *arena = &arenas[a];

    if (arena->table) PetscCall((*arena->table->finish)());
    for (int k = 0; k < arena->nopened; k++)
      if (arena->opened[k].memory) PetscCall((*arena->table->close)(&arena->opened[k].of, arena->opened[k].memory));
    PetscCall(PetscFree(arena->opened));
    arena->nopened = 0;
  }
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  for (int a = 0; a < 2; a++) {
    Arena *arena = &arenas[a];

    for (int k = 0; k < arena->nallocations; k++) PetscCall((*arena->table->free)(&arena->allocation[k].of, arena->allocation[k].memory));
    PetscCall(PetscFree(arena->allocation));
    PetscCall(PetscFree(arena->piece));
    arena->nallocations = arena->npieces = 0;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
