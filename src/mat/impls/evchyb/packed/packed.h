/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/*
  EVCHYB's packed storage: the same entries as in CSR in fewer bytes, and nothing lost. Here is what is stored, in packedplan.h how it is found.

  Rows come in slices of 64. What stands in the same place of 64 rows is a line: one entry of each row that has one there. Columns of a line are base + stride * (row in the slice) and
  not stored, or offsets of 8 or 16 bits from a base, or 32 bits. Where that takes fewer bytes, a line has the entries of one diagonal: a row that has none there does not shift the others.
  Values are numbers of a dictionary in 8 or 16 bits, or single precision where all of a slice are, or complex ones' real parts where all of a slice have no others, or as they are.

  Long rows come in pieces, which are slices too: a line is 64 entries of the row that follow each other, and last is the number of them in the last line.

  A lane of a warp has rows l and l + 32 of a slice: what is stored for 64 rows is in the order 0 32 1 33 2 34 ..., so that a lane reads both at once, and neighbouring lanes have neighbouring rows.

  This header is read by C and by CUDA: the host and the GPU build the same arrays.
*/

#include "../launch.h"
#include "../rows.h"

/* How work is cut: measured on an H200, docs/development/packing.md */
#define EVCHYB_PACK_EACH   8    /* slices of a warp, one after the other, at most */
#define EVCHYB_PACK_WARPS  16   /* per multiprocessor: a range of thread blocks with 8, 4 or 2 slices per warp ends where no more than that are left for each of these warps */
#define EVCHYB_PACK_BLOCKS 4    /* thread blocks of a product that a multiprocessor has at once */
#define EVCHYB_PIECE       4096 /* entries of a piece */
#define EVCHYB_SHORT_ROW   512  /* entries of a piece that a warp computes, longer ones a thread block */
#define EVCHYB_WARP_ROW    3072 /* the same at most, where long rows are many */

#define EVCHYB_PACK_ROWS    64 /* of a slice */
#define EVCHYB_PACK_UNIT    64 /* bytes in which places in the arrays are counted: 64 numbers of 8 bits */
#define EVCHYB_PACK_CHUNK   32 /* lines whose bits a word of a row's mask has */
#define EVCHYB_PACK_NONE    0xffffffffu
#define EVCHYB_PACK_STRIDES 8     /* the largest stride of rows that is tried */
#define EVCHYB_PACK_WIDEST  65535 /* lines of a slice, at most */
#define EVCHYB_PACK_DICT    65536 /* distinct numbers of a dictionary, at most */

/* How the numbers of a line are stored; EVCHYB_PACK_STRIDED not at all */
typedef enum { EVCHYB_PACK_STRIDED, EVCHYB_PACK_8, EVCHYB_PACK_16, EVCHYB_PACK_32, EVCHYB_PACK_CLASSES } EVCHYBPackClass;

/* Numbers for 64 rows: columns, or the rows themselves. info has the class in its upper two bits, below them the stride, or where in stream the offsets begin. A line shares the offsets of the line before where its columns are that line's, all moved by the same distance. */
typedef struct {
  int32_t  base;
  uint32_t info;
} EVCHYBPackLine;

#define EVCHYB_PACK_INFO_BITS 30

/* How values are stored: EVCHYB_PACK_REAL are complex ones without an imaginary part, which is +0 then */
typedef enum { EVCHYB_PACK_VALUE, EVCHYB_PACK_SINGLE, EVCHYB_PACK_REAL, EVCHYB_PACK_DICT8, EVCHYB_PACK_DICT16, EVCHYB_PACK_VALUES } EVCHYBPackValues;

typedef struct {
  int64_t        line;   /* its first line */
  uint32_t       value;  /* where its values begin */
  uint32_t       mask;   /* where its masks begin in stream, EVCHYB_PACK_NONE where each row has an entry in each line */
  EVCHYBPackLine rows;   /* its rows; the largest offset of a class for none */
  uint16_t       width;  /* lines */
  uint8_t        values; /* EVCHYBPackValues */
  uint8_t        last;   /* of a piece of one row: entries of its last line. 0 where a slice is 64 rows. */
  uint32_t       at;     /* of a piece: lines of the row that come before it. Of 64 rows: what the columns of all lines grow by, 0 where some are stored or do not grow. */
} EVCHYBPackSlice;

/* Numbers of what is stored, for all who show them */
typedef struct {
  PetscCount lines[EVCHYB_PACK_CLASSES]; /* of each class */
  PetscCount strided;                    /* lines of pieces among those whose columns are not stored */
  PetscCount shared;                     /* lines that have the offsets of the line before */
  PetscCount slots[EVCHYB_PACK_VALUES];  /* places for values, entries or not */
} EVCHYBPackFigures;

typedef struct {
  PetscMemType      memtype;
  PetscInt          m, n;
  PetscInt          stride;                            /* of the rows of a slice, 0 where they were given in some order */
  PetscInt          nslice, npiece, ndict;             /* slices, and how many of them, the last ones, are pieces of long rows */
  PetscCount        nz, nlong, nline, nstream, nvalue; /* entries; places of pieces for them; units of stream and value */
  EVCHYBPackSlice  *slice;                             /* [nslice] */
  EVCHYBPackLine   *line;                              /* [nline] */
  unsigned char    *stream;                            /* offsets of columns and rows, masks */
  unsigned char    *value;
  PetscReal        *dict;     /* [ndict] numbers, parts of complex ones too; distinct, and in the order of their bits, when it is made */
  PetscBool         unsorted; /* they are in that order no more: none can be looked up */
  PetscBool         overlaps; /* on the GPU: a kernel may start while the one before it ends */
  size_t            bytes;
  EVCHYBPackFigures figures;
} EVCHYBPack;

/* Whether values are stored as they are, so that all others fit */
static inline PetscBool EVCHYBPackTakesAny(const EVCHYBPack *pack)
{
  return (PetscBool)(pack->figures.slots[EVCHYB_PACK_VALUE] >= pack->nline * EVCHYB_PACK_ROWS);
}

/* EVCHYBPackGainsAhead - Whether columns are asked for ahead: of most lines they are stored in 16 bits, and there are more thread blocks than all multiprocessors have at once anyway */
static inline PetscBool EVCHYBPackGainsAhead(const EVCHYBPack *pack, int processors, unsigned int blocks)
{
  return (PetscBool)(!pack->npiece && 2 * pack->figures.lines[EVCHYB_PACK_16] > pack->nline && blocks > (unsigned int)(EVCHYB_PACK_BLOCKS * processors));
}

#if defined(__CUDACC__)
  #define EVCHYB_PACK_HD static __host__ __device__ __forceinline__
#else
  #define EVCHYB_PACK_HD static inline
#endif

/* Numbers that a value has, and the bits of one */
#define EVCHYB_PACK_PARTS ((int)(sizeof(PetscScalar) / sizeof(PetscReal)))
#if defined(PETSC_USE_REAL_SINGLE)
typedef uint32_t EVCHYBPackBits;
#else
typedef uint64_t EVCHYBPackBits;
#endif

/* Where row l of a slice stands among its 64 */
EVCHYB_PACK_HD int EVCHYBPackPlace(int l)
{
  return 2 * (l % 32) + l / 32;
}

EVCHYB_PACK_HD int EVCHYBPackClassOf(EVCHYBPackLine line)
{
  return (int)(line.info >> EVCHYB_PACK_INFO_BITS);
}

/* The stride of a line that has one */
EVCHYB_PACK_HD int EVCHYBPackStrideOf(EVCHYBPackLine line)
{
  return (int)(line.info << (32 - EVCHYB_PACK_INFO_BITS)) >> (32 - EVCHYB_PACK_INFO_BITS);
}

/* Where in stream the offsets of a line that has no stride begin */
EVCHYB_PACK_HD const unsigned char *EVCHYBPackOffsets(EVCHYBPackLine line, const unsigned char *stream)
{
  return stream + (size_t)(line.info & ((1u << EVCHYB_PACK_INFO_BITS) - 1)) * EVCHYB_PACK_UNIT;
}

EVCHYB_PACK_HD EVCHYBPackLine EVCHYBPackStrided(int32_t base, int stride)
{
  const EVCHYBPackLine line = {base, (uint32_t)stride & ((1u << EVCHYB_PACK_INFO_BITS) - 1)};

  return line;
}

EVCHYB_PACK_HD EVCHYBPackLine EVCHYBPackStored(EVCHYBPackClass kind, int32_t base, uint32_t at)
{
  const EVCHYBPackLine line = {base, (uint32_t)kind << EVCHYB_PACK_INFO_BITS | at};

  return line;
}

/* Units that the offsets of a class take */
EVCHYB_PACK_HD uint32_t EVCHYBPackOffsetUnits(EVCHYBPackClass kind)
{
  return kind == EVCHYB_PACK_STRIDED ? 0 : 1u << (kind - EVCHYB_PACK_8);
}

/* The class for numbers whose largest difference this is. Where a number may be missing, the largest of the class says so. */
EVCHYB_PACK_HD EVCHYBPackClass EVCHYBPackClassFor(uint32_t apart, PetscBool missing)
{
  apart += missing ? 1 : 0;
  return apart < 256 ? EVCHYB_PACK_8 : apart < 65536 ? EVCHYB_PACK_16 : EVCHYB_PACK_32;
}

/* Units of 64 values, from a table in a word */
EVCHYB_PACK_HD uint32_t EVCHYBPackValueUnits(EVCHYBPackValues kind)
{
  const uint32_t parts = EVCHYB_PACK_PARTS, real = (uint32_t)sizeof(PetscReal), single = (uint32_t)sizeof(float);
  const uint32_t each = real * parts << 6 * EVCHYB_PACK_VALUE | single * parts << 6 * EVCHYB_PACK_SINGLE | real << 6 * EVCHYB_PACK_REAL | parts << 6 * EVCHYB_PACK_DICT8 | 2 * parts << 6 * EVCHYB_PACK_DICT16;

  return each >> 6 * kind & 0x3f;
}

/* Bytes of a row's word of mask, and units of all masks of a slice */
EVCHYB_PACK_HD int EVCHYBPackMaskBytes(PetscInt width)
{
  return width <= 8 ? 1 : width <= 16 ? 2 : 4;
}

EVCHYB_PACK_HD uint32_t EVCHYBPackMaskUnits(PetscInt width)
{
  return (uint32_t)EVCHYBPackMaskBytes(width) * (uint32_t)((width + EVCHYB_PACK_CHUNK - 1) / EVCHYB_PACK_CHUNK);
}

/* The number that an offset of a line stands for. Where there is no entry, a line that shares its offsets may count to more than 32 bits: that number means nothing, but is defined. */
EVCHYB_PACK_HD int32_t EVCHYBPackFrom(EVCHYBPackLine line, uint32_t offset)
{
  return (int32_t)((uint32_t)line.base + offset);
}

/* A number of a line: place is that of the row. For rows -1 where there is none. */
EVCHYB_PACK_HD PetscInt EVCHYBPackNumber(EVCHYBPackLine line, const unsigned char *stream, int place)
{
  const unsigned char *at = EVCHYBPackOffsets(line, stream);

  switch (EVCHYBPackClassOf(line)) {
  case EVCHYB_PACK_STRIDED:
    return line.base + EVCHYBPackStrideOf(line) * (place / 2 + 32 * (place % 2));
  case EVCHYB_PACK_8:
    return EVCHYBPackFrom(line, at[place]);
  case EVCHYB_PACK_16:
    return EVCHYBPackFrom(line, ((const uint16_t *)at)[place]);
  default:
    return EVCHYBPackFrom(line, ((const uint32_t *)at)[place]);
  }
}

EVCHYB_PACK_HD PetscInt EVCHYBPackRowOf(EVCHYBPackLine line, const unsigned char *stream, int place)
{
  const unsigned char *at   = EVCHYBPackOffsets(line, stream);
  const int            kind = EVCHYBPackClassOf(line);

  if (kind == EVCHYB_PACK_8 && at[place] == 0xff) return -1;
  if (kind == EVCHYB_PACK_16 && ((const uint16_t *)at)[place] == 0xffff) return -1;
  if (kind == EVCHYB_PACK_32 && ((const uint32_t *)at)[place] == EVCHYB_PACK_NONE) return -1;
  return EVCHYBPackNumber(line, stream, place);
}

/* A row's word of the mask of lines 32 chunk to 32 chunk + 31 */
EVCHYB_PACK_HD uint32_t EVCHYBPackMaskOf(const EVCHYBPackSlice *slice, const unsigned char *stream, PetscInt chunk, int place)
{
  const int            bytes = EVCHYBPackMaskBytes(slice->width);
  const unsigned char *at    = stream + ((size_t)slice->mask + (size_t)chunk * bytes) * EVCHYB_PACK_UNIT;

  if (slice->mask == EVCHYB_PACK_NONE) return 0xffffffffu;
  return bytes == 1 ? at[place] : bytes == 2 ? ((const uint16_t *)at)[place] : ((const uint32_t *)at)[place];
}

/* Packed storage of a matrix: the slices, and pieces of long rows, of which the last ones are of rows that have several */
typedef struct {
  EVCHYBPack *pack;
  PetscInt    nlong;   /* rows in pieces, the longest ones last */
  EVCHYBMarks marks;   /* rows here are pieces */
  PetscCount  gpublks; /* thread blocks of pieces */
  EVCHYBParts parts;
} EVCHYBPacked;
