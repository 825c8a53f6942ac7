/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "The arrays of the HBP format for matrices small enough to write them down.\n\n";

#include "hbptest.h"

#define GROUP 4 /* threads of a warp, as in Figure 2 */
#define MOST  60
#define ONE   1000000 /* entries for which a segment would have more lanes than one */
#define END   -99

/* The matrix, a string per row in which x is an entry, and the arrays that it must give in blocks of N rows by M columns. There is no add_sign where segments have several lanes. Lists of numbers end by END. */
typedef struct {
  const char *what;
  PetscInt    m, n, N, M, lane_entries;
  const char *rows[16];
  PetscInt    hash[5]; /* a, b, c, d */
  PetscInt    begin_nnz[8], blkRow[8], colGroup[8];
  PetscInt    begin_ptr[10], seg[10], out[10], info[10]; /* of groups */
  PetscInt    output_hash[20], nnz_perrow[20];
  PetscInt    col[MOST], entryRow[MOST], add_sign[MOST];
  PetscInt    partialPtr[8], combinePtr[8], combinePos[20], combineEnd[20]; /* the last of each row of a block with partial sums */
  PetscInt    direct[8];
  PetscBool   alone;
  PetscInt    maps; /* -mat_hbp_map */
  PetscInt    mapPtr[8], map[8];
} Case;

/* A row whose entries are in one block */
#define DIRECT(row) ((row) | HBP_FLAG)
/* Groups of a block of rows, with lanes that have as many entries or not */
#define INFO(rowblock)  (16 * (rowblock))
#define EQUAL(rowblock) (16 * (rowblock) + 8)

/* clang-format off */
static const Case cases[] = {
  /*
    Blocks of 8 rows by 8 columns and groups of 4, as in the paper's Figure 2. Lengths of rows in the first block are 3, 1, 0, 5, 0, 2, 1 and 2: rows 1, 6, 5 and 7 are a group, rows 0 and 3 the
    other. The block below has no entries. Rows 0, 3, 5, 8 and 9 have all entries in one block, rows 4 and 10 have none.
  */
  {"2D partition", 12, 20, 8, 8, ONE,
   {"xx.....x" "........" "....",
    "x......." ".x......" "....",
    "........" "x.xx...." "...x",
    "xxxx.x.." "........" "....",
    "........" "........" "....",
    "..x....x" "........" "....",
    "...x...." "..xx...." "x...",
    ".x.x...." "........" ".xx.",

    "........" "....xxxx" "....",
    "........" ".......x" "....",
    "........" "........" "....",
    "........" "x......." "...x"},
   {0, 1, 3, 1, END},
   {0, 14, 20, 26, 30, 31, END}, {0, 0, 1, 0, 1, END}, {0, 2, 4, 6, END},
   {0, 6, 14, 20, 26, 30, 31, END}, {0, 4, 6, 9, 12, 15, 16, END}, {0, -1, 3, 9, 6, 10, -1, END}, {INFO(0), INFO(0), INFO(0), INFO(1), INFO(0), EQUAL(1), END},
   {1, 6, DIRECT(5), 7, DIRECT(0), DIRECT(3), 1, 6, 2, DIRECT(1), 3, DIRECT(0), 2, 6, 7, 3, END}, {0, 0, 1, 1, 2, 4, 0, 1, 2, 0, 0, 3, 0, 0, 1, 0, END},
   {0, 3, 2, 1, 7, 3,   0, 0, 1, 1, 7, 2, 3, 5,   1, 2, 0, 3, 2, 3,   7, 0, 4, 5, 6, 7,   3, 0, 1, 2,   3, END},
   {1, 6, 5, 7, 5, 7,   0, 3, 0, 3, 0, 3, 3, 3,   1, 6, 2, 6, 2, 2,   9, 11, 8, 8, 8, 8,   2, 6, 7, 7,   11, END},
   {-1, -1, 2, 2, -1, -1,   2, 2, 2, 2, -1, 1, 1, -1,   -1, 2, 2, -1, 1, -1,   -1, -1, 1, 1, 1, -1,   -1, -1, 1, -1,   -1, END},
   {0, 9, 11, END}, {0, 1, 2, END}, {0, 4, 7,   1, 5, 2,   3, 6, 8,   0,   1, END}, {0, 2, 4, 4, 4, 4, 7, 9,   0, 0, 0, 2, 2, 2, 2, 2, END}, {1 + 8 + 32, 1 + 2, END}, PETSC_FALSE, HBP_MAP_NEVER, {END}, {END}},
  {"rows of one length", 6, 8, 8, 8, ONE,
   {"xx......", ".xx.....", "..xx....", "...xx...", "....xx..", ".....xx."},
   {0, 1, 2, 1, END},
   {0, 12, END}, {0, END}, {0, 2, END},
   {0, 8, 12, END}, {0, 4, 6, END}, {-1, -1, -1, END}, {EQUAL(0), EQUAL(0), END},
   {DIRECT(0), DIRECT(1), DIRECT(2), DIRECT(3), DIRECT(4), DIRECT(5), END}, {1, 1, 1, 1, 1, 1, END},
   {0, 1, 2, 3, 1, 2, 3, 4,   4, 5, 5, 6, END}, {0, 1, 2, 3, 0, 1, 2, 3,   4, 5, 4, 5, END}, {4, 4, 4, 4, -1, -1, -1, -1,   2, 2, -1, -1, END},
   {0, 0, END}, {0, 0, END}, {END}, {END}, {63, END}, PETSC_TRUE, HBP_MAP_NEVER, {END}, {END}},
  /* no two lengths have the same hash: rows by length */
  {"no collisions", 4, 4, 4, 4, ONE,
   {"xxx.", "...x", "xxxx", ".x.x"},
   {0, 1, 3, 1, END},
   {0, 10, END}, {0, END}, {0, 1, END},
   {0, 10, END}, {0, 4, END}, {-1, -1, END}, {INFO(0), END},
   {DIRECT(1), DIRECT(3), DIRECT(0), DIRECT(2), END}, {0, 1, 2, 3, END},
   {3, 1, 0, 0, 3, 1, 1, 2, 2, 3, END}, {1, 3, 0, 2, 3, 0, 2, 0, 2, 2, END}, {-1, 3, 3, 3, -1, 2, 2, -1, 1, -1, END},
   {0, 0, END}, {0, 0, END}, {END}, {END}, {15, END}, PETSC_TRUE, HBP_MAP_NEVER, {END}, {END}},
  /* classes of two lengths: 8 and 9 are the same */
  {"all collide", 3, 9, 8, 9, ONE,
   {"xxxxxxxxx", "xxxxxxxx.", "xxxxxxxxx"},
   {1, 1, 4, 1, END},
   {0, 26, END}, {0, END}, {0, 1, END},
   {0, 26, END}, {0, 3, END}, {-1, -1, END}, {INFO(0), END},
   {DIRECT(0), DIRECT(1), DIRECT(2), END}, {8, 7, 8, END},
   {0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6, 7, 7, 7, 8, 8, END}, {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 2, END},
   {3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, -1, 2, -1, -1, END},
   {0, 0, END}, {0, 0, END}, {END}, {END}, {7, END}, PETSC_TRUE, HBP_MAP_NEVER, {END}, {END}},
  /* an eighth of the rows is longer than what the classes are for: they are of the last one, in which the longest has the second place */
  {"the last class", 16, 24, 24, 24, ONE,
   {"xxxxxxxxxxxxxxxxxxxxxxxx", "xxxxxxxxx...............", "..x.....................", "...x....................", "....x...................", ".....x..................", "......x.................",
    ".......x................", "........x...............", ".........x..............", "..........x.............", "...........x............", "............x...........", ".............x..........",
    "..............x.........", "...............x........"},
   {0, 3, 4, 1, END},
   {0, 47, END}, {0, END}, {0, 4, END},
   {0, 4, 8, 12, 47, END}, {0, 4, 8, 12, 16, END}, {-1, -1, -1, -1, -1, END}, {EQUAL(0), EQUAL(0), EQUAL(0), INFO(0), END},
   {DIRECT(2), DIRECT(3), DIRECT(4), DIRECT(5), DIRECT(6), DIRECT(7), DIRECT(8), DIRECT(9), DIRECT(10), DIRECT(11), DIRECT(12), DIRECT(13), DIRECT(14), DIRECT(15), DIRECT(1), DIRECT(0), END},
   {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 23, END},
   {2, 3, 4, 5,   6, 7, 8, 9,   10, 11, 12, 13,   14, 15, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, END},
   {2, 3, 4, 5,   6, 7, 8, 9,   10, 11, 12, 13,   14, 15, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, END},
   {-1, -1, -1, -1,   -1, -1, -1, -1,   -1, -1, -1, -1,   -1, -1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, -1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, END},
   {0, 0, END}, {0, 0, END}, {END}, {END}, {65535, END}, PETSC_TRUE, HBP_MAP_NEVER, {END}, {END}},
  {"a long row", 5, 8, 8, 8, ONE,
   {"x.......", "xxxxxxxx", "..x.....", "........", ".......x"},
   {1, 1, 4, 1, END},
   {0, 11, END}, {0, END}, {0, 1, END},
   {0, 11, END}, {0, 4, END}, {-1, -1, END}, {INFO(0), END},
   {DIRECT(0), DIRECT(2), DIRECT(4), DIRECT(1), END}, {0, 0, 0, 7, END},
   {0, 2, 7, 0, 1, 2, 3, 4, 5, 6, 7, END}, {0, 2, 4, 1, 1, 1, 1, 1, 1, 1, 1, END}, {-1, -1, -1, 1, 1, 1, 1, 1, 1, 1, -1, END},
   {0, 0, END}, {0, 0, END}, {END}, {END}, {1 + 2 + 4 + 16, END}, PETSC_FALSE, HBP_MAP_NEVER, {END}, {END}},
  {"rows in all blocks", 3, 4, 2, 2, ONE,
   {"xxxx", "xxxx", "xxxx"},
   {0, 1, 2, 1, END},
   {0, 4, 6, 10, 12, END}, {0, 1, 0, 1, END}, {0, 2, 4, END},
   {0, 4, 6, 10, 12, END}, {0, 2, 3, 5, 6, END}, {0, 4, 2, 5, -1, END}, {EQUAL(0), EQUAL(1), EQUAL(0), EQUAL(1), END},
   {0, 1, 0, 0, 1, 0, END}, {1, 1, 1, 1, 1, 1, END},
   {0, 0, 1, 1,   0, 1,   0, 0, 1, 1,   0, 1, END}, {0, 1, 0, 1,   2, 2,   0, 1, 0, 1,   2, 2, END}, {2, 2, -1, -1,   1, -1,   2, 2, -1, -1,   1, -1, END},
   {0, 4, 6, END}, {0, 1, 2, END}, {0, 2,   1, 3,   0,   1, END}, {2, 4,   2, 2, END}, {0, 0, END}, PETSC_FALSE, HBP_MAP_NEVER, {END}, {END}},
  /* the lanes of the first group whose rows have no partial sum are between those that have */
  {"rows in one block and in two", 6, 3, 6, 2, ONE,
   {"x.x", ".x.", "xxx", "x..", ".xx", "..x"},
   {0, 1, 2, 1, END},
   {0, 6, 10, END}, {0, 0, END}, {0, 2, 3, END},
   {0, 4, 6, 10, END}, {0, 4, 5, 9, END}, {0, 2, 3, -1, END}, {EQUAL(0), EQUAL(0), EQUAL(0), END},
   {0, DIRECT(1), DIRECT(3), 4, 2, 0, 2, 4, DIRECT(5), END}, {0, 0, 0, 0, 1, 0, 0, 0, 0, END},
   {0, 1, 0, 1,   0, 1,   0, 0, 0, 0, END}, {0, 1, 3, 4,   2, 2,   0, 2, 4, 5, END}, {-1, -1, -1, -1,   1, -1,   -1, -1, -1, -1, END},
   {0, 6, END}, {0, 1, END}, {0, 4, 2,   1, 3, 5, END}, {2, 2, 4, 4, 6, 6, END}, {2 + 8 + 32, END}, PETSC_FALSE, HBP_MAP_NEVER, {END}, {END}},
  {"one row", 1, 20, 8, 8, ONE,
   {"x......x" "..x....." "..xx"},
   {0, 1, 2, 1, END},
   {0, 2, 3, 5, END}, {0, 0, 0, END}, {0, 1, 2, 3, END},
   {0, 2, 3, 5, END}, {0, 1, 2, 3, END}, {0, 1, 2, -1, END}, {EQUAL(0), EQUAL(0), EQUAL(0), END},
   {0, 0, 0, END}, {1, 0, 1, END},
   {0, 7,   2,   2, 3, END}, {0, 0,   0,   0, 0, END}, {1, -1,   -1,   1, -1, END},
   {0, 3, END}, {0, 1, END}, {0,   1,   2, END}, {3, 3, 3, 3, 3, 3, 3, 3, END}, {0, END}, PETSC_FALSE, HBP_MAP_NEVER, {END}, {END}},
  {"one column", 9, 1, 4, 1, ONE,
   {"x", "x", ".", "x",  "x", ".", ".", ".",  "x"},
   {0, 1, 1, 1, END},
   {0, 3, 4, 5, END}, {0, 1, 2, END}, {0, 3, END},
   {0, 3, 4, 5, END}, {0, 3, 4, 5, END}, {-1, -1, -1, -1, END}, {EQUAL(0), EQUAL(1), EQUAL(2), END},
   {DIRECT(0), DIRECT(1), DIRECT(3), DIRECT(0), DIRECT(0), END}, {0, 0, 0, 0, 0, END},
   {0, 0, 0, 0, 0, END}, {0, 1, 3, 4, 8, END}, {-1, -1, -1, -1, -1, END},
   {0, 0, 0, 0, END}, {0, 0, 0, 0, END}, {END}, {END}, {1 + 2 + 8, 1, 1, END}, PETSC_FALSE, HBP_MAP_NEVER, {END}, {END}},
  {"empty columns of blocks, empty rows of blocks", 7, 16, 2, 4, ONE,
   {"................", "................", ".........x......", "................", "................", "................", "........x..x...."},
   {0, 1, 2, 1, END},
   {0, 1, 3, END}, {1, 3, END}, {0, 0, 0, 2, 2, END},
   {0, 1, 3, END}, {0, 1, 2, END}, {-1, -1, -1, END}, {EQUAL(1), EQUAL(3), END},
   {DIRECT(0), DIRECT(0), END}, {0, 1, END},
   {1,   0, 3, END}, {2,   6, 6, END}, {-1,   1, -1, END},
   {0, 0, 0, 0, 0, END}, {0, 0, 0, 0, 0, END}, {END}, {END}, {0, 1, 0, 1, END}, PETSC_FALSE, HBP_MAP_NEVER, {END}, {END}},
  {"one entry", 3, 3, 1, 1, ONE,
   {"...", "...", ".x."},
   {0, 1, 1, 1, END},
   {0, 1, END}, {2, END}, {0, 0, 1, 1, END},
   {0, 1, END}, {0, 1, END}, {-1, -1, END}, {EQUAL(2), END},
   {DIRECT(0), END}, {0, END},
   {0, END}, {2, END}, {-1, END},
   {0, 0, 0, 0, END}, {0, 0, 0, 0, END}, {END}, {END}, {0, 0, 1, END}, PETSC_FALSE, HBP_MAP_NEVER, {END}, {END}},
  /*
    A map has 2 chunks at most. Rows 0, 1 and 3 have entries in columns 16 to 31 and 64 to 79; rows 4 to 6 in three chunks, and so in three blocks, with two partial sums of row 4; rows 8 to 11 have none,
    rows 12 and 13 one chunk. The hash is that of whole rows.
  */
  {"blocks of rows with a map and without", 14, 80, 4, 32, ONE,
   {"................" "................" "................" "................" "...............x",
    "................" ".x.............x" "................" "................" "x...............",
    "................" "................" "................" "................" "................",
    "................" "x.x............." "................" "................" ".x....x........x",

    "x..............." "................" ".x.............." "................" "................",
    "................" "................" "...x............" "................" "................",
    "................" "................" "................" "................" "..xx............",
    "................" "................" "................" "................" "................",

    "................" "................" "................" "................" "................",
    "................" "................" "................" "................" "................",
    "................" "................" "................" "................" "................",
    "................" "................" "................" "................" "................",

    "................" "................" "................" "...............x" "................",
    "................" "................" "................" "x.x............." "................"},
   {0, 1, 3, 1, END},
   {0, 9, 10, 13, 15, 17, END}, {0, 1, 3, 1, 1, END}, {0, 3, 4, 5, END},
   {0, 9, 10, 13, 15, 17, END}, {0, 3, 4, 6, 8, 9, END}, {-2, 0, -4, 1, -1, -1, END}, {INFO(0), EQUAL(1), INFO(3), EQUAL(1), EQUAL(1), END},
   {DIRECT(0), DIRECT(1), DIRECT(3), 0, DIRECT(0), DIRECT(1), 0, DIRECT(1), DIRECT(2), END}, {0, 2, 4, 0, 0, 1, 0, 0, 1, END},
   {31, 1, 0, 15, 2, 16, 17, 22, 31,   0,   15, 0, 2,   1, 3,   2, 3, END}, {0, 1, 3, 1, 3, 1, 3, 3, 3,   4,   12, 13, 13,   4, 5,   6, 6, END},
   {-1, 2, 2, 2, 2, -1, 1, 1, -1,   -1,   -1, 1, -1,   -1, -1,   1, -1, END},
   {0, 0, 2, 2, 2, END}, {0, 0, 1, 1, 1, END}, {0, 1, END}, {2, 2, 2, 2, END}, {1 + 2 + 8, 2 + 4, 0, 1 + 2, END}, PETSC_FALSE, HBP_MAP_ALWAYS, {0, 2, 2, 2, 3, END}, {16, 64, 48, END}},
  /* there is one column of blocks then; entries in one place of 16 columns, each block of rows in another */
  {"all blocks of rows with maps", 5, 48, 2, 16, ONE,
   {"................" "................" ".x.............x",
    "................" "................" "x...............",

    "x....x.........." "................" "................",
    "...x...........x" "................" "................",

    "................" ".xx............x" "................"},
   {0, 1, 2, 1, END},
   {0, 3, 7, 10, END}, {0, 1, 2, END}, {0, 3, END},
   {0, 3, 7, 10, END}, {0, 2, 4, 5, END}, {-2, -3, -4, -1, END}, {INFO(0), EQUAL(1), EQUAL(2), END},
   {DIRECT(1), DIRECT(0), DIRECT(0), DIRECT(1), DIRECT(0), END}, {0, 1, 1, 1, 2, END},
   {0, 1, 15,   0, 3, 5, 15,   1, 2, 15, END}, {1, 0, 0,   2, 3, 2, 3,   4, 4, 4, END}, {-1, 1, -1,   2, 2, -1, -1,   1, 1, -1, END},
   {0, 0, 0, 0, END}, {0, 0, 0, 0, END}, {END}, {END}, {1 + 2, 1 + 2, 1, END}, PETSC_TRUE, HBP_MAP_ALWAYS, {0, 1, 2, 3, END}, {32, 0, 16, END}},
  /* blocks have fewer columns than their chunks: 16 of 20, so that one chunk is the most */
  {"a map and columns between two chunks", 2, 40, 1, 20, ONE,
   {"................" "x..............." "x.......",
    "................" "x..............x" "........"},
   {0, 1, 2, 1, END},
   {0, 1, 3, 4, END}, {0, 1, 0, END}, {0, 2, 3, END},
   {0, 1, 3, 4, END}, {0, 1, 2, 3, END}, {0, -2, 1, -1, END}, {EQUAL(0), EQUAL(1), EQUAL(0), END},
   {0, DIRECT(0), 0, END}, {0, 1, 0, END},
   {16,   0, 15,   12, END}, {0,   1, 1,   0, END}, {-1,   1, -1,   -1, END},
   {0, 2, 2, END}, {0, 1, 1, END}, {0, 1, END}, {2, END}, {0, 1, END}, PETSC_FALSE, HBP_MAP_ALWAYS, {0, 0, 1, END}, {16, END}},
  {"no block of rows with a map", 2, 48, 2, 32, ONE,
   {"x..............." "................" "x...............",
    "................" "x..............." "................"},
   {0, 1, 2, 1, END},
   {0, 2, 3, END}, {0, 0, END}, {0, 1, 2, END},
   {0, 2, 3, END}, {0, 2, 3, END}, {0, 1, -1, END}, {EQUAL(0), EQUAL(0), END},
   {0, DIRECT(1), 0, END}, {0, 0, 0, END},
   {0, 16,   0, END}, {0, 1,   0, END}, {-1, -1,   -1, END},
   {0, 2, END}, {0, 1, END}, {0, 1, END}, {2, 2, END}, {2, END}, PETSC_FALSE, HBP_MAP_ALWAYS, {0, 0, END}, {END}},
  /* a segment has as many lanes as leave each 2 entries, or 1 where it has fewer: 2 of 2 and 3 entries, 4 of 5; in a group of 4 lanes there is room for 4, 2 and 1 of them */
  {"lanes", 5, 8, 8, 8, 2,
   {"xxx.....", ".......x", "xx......", "xxxxx...", "...x...x"},
   {0, 1, 3, 1, END},
   {0, 13, END}, {0, END}, {0, 4, END},
   {0, 1, 5, 8, 13, END}, {0, 1, 3, 4, 5, END}, {-1, -1, -1, -1, -1, END}, {EQUAL(0), EQUAL(0) + 1, INFO(0) + 1, INFO(0) + 2, END},
   {DIRECT(1), DIRECT(2), DIRECT(4), DIRECT(0), DIRECT(3), END}, {0, 1, 1, 2, 4, END},
   {7,   0, 1, 3, 7,   0, 1, 2,   0, 1, 2, 3, 4, END}, {1,   2, 2, 4, 4,   0, 0, 0,   3, 3, 3, 3, 3, END}, {END},
   {0, 0, END}, {0, 0, END}, {END}, {END}, {31, END}, PETSC_TRUE, HBP_MAP_NEVER, {END}, {END}},
};
/* clang-format on */

/* n numbers, of which number k is value */
#define CHECK(name, n, value) \
  for (PetscInt k = 0; k < PetscMax(n, 1); k++) PetscCall(TestCheckList(c->what, #name, n, c->name, END, k, k < (n) ? (PetscInt)(value) : END))

/* Which one of its column a block is, by its first group */
static PetscInt RowOfBlock(const HBP *h, PetscInt block)
{
  PetscInt g = 0;

  while (h->group[g].begin_ptr < h->begin_nnz[block]) g++;
  return HBPInfoRowBlock(h->group[g].info);
}

static PetscErrorCode CheckArrays(const Case *c, const HBP *h)
{
  const PetscInt hash[] = {h->hash.a, h->hash.b, h->hash.c, h->hash.d};
  PetscInt      *add_sign;

  PetscFunctionBegin;
  PetscCheck(h->m == c->m && h->n == c->n && h->N == c->N && h->M == c->M && h->alone == c->alone && h->blknz == h->nz && !h->shared && !h->csrIdx, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: shape", c->what);
  CHECK(hash, 4, hash[k]);
  CHECK(begin_nnz, h->blkNum + 1, h->begin_nnz[k]);
  CHECK(blkRow, h->blkNum, RowOfBlock(h, k));
  CHECK(colGroup, h->colBlocks + 1, h->colGroup[k]);
  CHECK(begin_ptr, h->groupNum + 1, h->group[k].begin_ptr);
  CHECK(seg, h->groupNum + 1, h->group[k].seg);
  CHECK(out, h->groupNum + 1, h->group[k].out);
  CHECK(info, h->groupNum, h->group[k].info);
  CHECK(output_hash, h->segNum, HBPOutputRow(h->output_hash[k]) | (h->output_hash[k] & HBP_FLAG));
  CHECK(nnz_perrow, h->segNum, HBPLength(h->output_hash, h->nnz_perrow, k) - 1);
  CHECK(col, (PetscInt)h->nz, h->col[k]);
  CHECK(partialPtr, h->rowBlocks + 1, h->partialPtr[k]);
  CHECK(combinePtr, h->rowBlocks + 1, h->combinePtr[k]);
  CHECK(combinePos, h->partialNum, h->combinePos[k]);
  CHECK(combineEnd, h->combineNum * h->N, h->combineEnd[k]);
  CHECK(direct, h->rowBlocks * HBPWords(h->N), h->direct[k]);
  CHECK(mapPtr, h->mapPtr ? h->rowBlocks + 1 : 0, h->mapPtr[k]);
  CHECK(map, h->mapNum, h->map[k]);
  CHECK(entryRow, (PetscInt)h->nz, c->entryRow[k]); /* is as long */
  for (PetscInt k = 0, cb = 0; k < h->nz; k++) {
    const PetscInt rb = c->entryRow[k] / c->N;
    PetscInt       column;

    while (k >= h->group[h->colGroup[cb + 1]].begin_ptr) cb++;
    column = c->maps && c->mapPtr[rb] < c->mapPtr[rb + 1] ? c->map[c->mapPtr[rb] + c->col[k] / 16] + c->col[k] % 16 : cb * c->M + c->col[k];
    PetscCheck(h->data[k] == TestValue(1, c->entryRow[k], column), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: data[%" PetscInt_FMT "] is not that of row %" PetscInt_FMT ", column %" PetscInt_FMT, c->what, k, c->entryRow[k], column);
  }
  if (c->lane_entries == ONE) {
    PetscCall(PetscMalloc1(h->nz, &add_sign));
    PetscCall(HBPGetAddSign(h, add_sign));
    CHECK(add_sign, (PetscInt)h->nz, add_sign[k]);
    PetscCall(PetscFree(add_sign));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The rows of a case in CSR; freed by PetscFree3() */
static PetscErrorCode GetCSR(const Case *c, PetscInt **i, PetscInt **j, PetscScalar **a)
{
  PetscInt nz = 0;

  PetscFunctionBegin;
  PetscCall(PetscMalloc3(c->m + 1, i, c->m * c->n, j, c->m * c->n, a));
  (*i)[0] = 0;
  for (PetscInt r = 0; r < c->m; r++) {
    PetscCheck(strlen(c->rows[r]) == (size_t)c->n, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: row %" PetscInt_FMT, c->what, r);
    for (PetscInt col = 0; col < c->n; col++) {
      if (c->rows[r][col] != 'x') continue;
      (*j)[nz]   = col;
      (*a)[nz++] = TestValue(1, r, col);
    }
    (*i)[r + 1] = nz;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Groups of 4, and the memory that the format may take; whether each block is one group, so that those of 32 are the same */
static PetscErrorCode TestArrays(const Case *c, PetscBool *single)
{
  const HBPOptions options = {.block_rows = c->N, .block_cols = c->M, .shared_x = HBP_SHARED_NEVER, .map = c->maps, .lane_entries = c->lane_entries, .fixed = 70};
  GallopCSR        csr     = {.m = c->m, .n = c->n, .memtype = PETSC_MEMTYPE_HOST};
  PetscInt        *i, *j;
  PetscScalar     *a;
  PetscCount       bytes;
  HBP             *h;

  PetscFunctionBegin;
  PetscCall(GetCSR(c, &i, &j, &a));
  csr.nz = i[c->m];
  csr.i = csr.host_i = i;
  csr.j              = j;
  csr.a              = a;
  PetscCall(HBPBuild_Host(GROUP, &options, &csr, 0, &h));
  PetscCall(CheckArrays(c, h));
  *single = (PetscBool)(h->groupNum == h->blkNum);
  bytes   = (PetscCount)(h->bytes + HBPWorkspaceBytes(h));
  PetscCall(HBPDestroyHostCopy(&h));
  PetscCall(HBPBuild_Host(GROUP, &options, &csr, bytes, &h));
  PetscCheck(h, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: not built in the bytes it takes", c->what);
  PetscCall(HBPDestroyHostCopy(&h));
  PetscCall(HBPBuild_Host(GROUP, &options, &csr, bytes - 1, &h));
  PetscCheck(!h, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: built in fewer bytes than it takes", c->what);
  PetscCall(PetscFree3(i, j, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products where the vectors of MatCreateVecs() live, and the arrays there if groups of 32 have the same */
static PetscErrorCode TestMatrix(const Case *c, PetscBool single)
{
  Mat          A;
  PetscInt    *i, *j;
  PetscScalar *a;
  HBP         *h;

  PetscFunctionBegin;
  PetscCall(GetCSR(c, &i, &j, &a));
  PetscCall(SetBlocks(c->N, c->M));
  PetscCall(TestSetIntOption("-mat_hbp_shared_x", HBP_SHARED_NEVER));
  PetscCall(TestSetIntOption("-mat_hbp_map", c->maps));
  PetscCall(TestSetIntOption("-mat_hbp_lane_entries", c->lane_entries));
  PetscCall(MatCreate(PETSC_COMM_SELF, &A));
  PetscCall(MatSetSizes(A, c->m, c->n, c->m, c->n));
  PetscCall(MatSetType(A, MATHBP));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatSeqAIJSetPreallocationCSR(A, i, j, a));
  PetscCall(TestProductsOf(A, c->what, &h));
  if (single) PetscCall(CheckArrays(c, h));
  PetscCall(HBPDestroyHostCopy(&h));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFree3(i, j, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The hash of lengths: some by hand; and of any, that longer ones have none that is smaller, and those beyond the classes are of the last one */
static PetscErrorCode TestHash(void)
{
  static const struct {
    HBPHash  hash;
    PetscInt len, value;
  } cases[] = {
    {{2, 5, 0, 1},  1,      1            }, /* class 0: lengths to 3 */
    {{2, 5, 0, 1},  3,      3            },
    {{2, 5, 0, 1},  4,      5            },
    {{2, 5, 0, 1},  7,      8            },
    {{2, 5, 0, 1},  31,     7 * 5 + 3    },
    {{2, 5, 0, 1},  32,     8 * 5        },
    {{2, 5, 0, 1},  36,     8 * 5 + 4    },
    {{2, 5, 0, 1},  65536,  8 * 5 + 4    }, /* there are no more places */
    {{4, 2, 3, 1},  23,     2            },
    {{4, 2, 3, 1},  24,     2 + 1        },
    {{0, 56, 0, 1}, 7,      7 * 56       },
    {{0, 56, 2, 1}, 8 + 9,  8 * 56 + 2   },
    {{0, 64, 0, 1}, 8 + 4,  8 * 64 + 4   }, /* four places for each power of two: 4, 5, 6, 7; 8, 10, 12, 14; 16, 20, ... */
    {{0, 64, 0, 1}, 8 + 7,  8 * 64 + 7   },
    {{0, 64, 0, 1}, 8 + 8,  8 * 64 + 8   },
    {{0, 64, 0, 1}, 8 + 9,  8 * 64 + 8   },
    {{0, 64, 0, 1}, 8 + 10, 8 * 64 + 9   },
    {{0, 64, 0, 1}, 8 + 15, 8 * 64 + 11  },
    {{0, 64, 0, 1}, 8 + 16, 8 * 64 + 12  },
    {{0, 64, 0, 1}, 8 + 24, 8 * 64 + 14  },
    {{0, 64, 0, 1}, 65536,  8 * 64 + 59  },
    {{0, 1, 0, 1},  7,      7            },
    {{0, 1, 0, 1},  8,      8            },
    {{0, 1, 0, 1},  9,      8            },
    {{13, 3, 9, 1}, 65536,  8 * 3        },
    {{13, 3, 9, 1}, 65535,  7 * 3 + 3 - 1}
  };
  static const PetscInt places[] = {1, 2, 7, 64};

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(cases); k++) {
    const HBPHash *h = &cases[k].hash;

    PetscCheck(HBPHashOf(h, cases[k].len) == cases[k].value, PETSC_COMM_SELF, PETSC_ERR_PLIB, "a %" PetscInt_FMT ", b %" PetscInt_FMT ", c %" PetscInt_FMT ": the hash of %" PetscInt_FMT " is %" PetscInt_FMT ", not %" PetscInt_FMT, h->a, h->b, h->c,
               cases[k].len, HBPHashOf(h, cases[k].len), cases[k].value);
  }
  for (PetscInt fine = 1; fine < 60; fine++) {
    const PetscInt least = HBPCoarse(fine);

    PetscCheck(HBPFine(least) == fine && HBPFine(least - 1) == fine - 1, PETSC_COMM_SELF, PETSC_ERR_PLIB, "the least number of place %" PetscInt_FMT " is %" PetscInt_FMT, fine, least);
  }
  for (size_t b = 0; b < PETSC_STATIC_ARRAY_LENGTH(places); b++) {
    for (PetscInt a = 0; a <= 14; a++) {
      for (PetscInt c = 0; c <= 17; c++) {
        const HBPHash h = {a, places[b], c, 1};

        PetscCheck(HBPHashes(&h) == 9 * h.b, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " hashes", HBPHashes(&h));
        for (PetscInt len = 1, last = 0; len <= HBP_MAX_COLS; len++) {
          const PetscInt hash = HBPHashOf(&h, len);

          PetscCheck(hash >= last && hash < HBPHashes(&h) && hash / h.b == PetscMin(len >> a, 8), PETSC_COMM_SELF, PETSC_ERR_PLIB, "a %" PetscInt_FMT ", b %" PetscInt_FMT ", c %" PetscInt_FMT ": the hash of %" PetscInt_FMT " is %" PetscInt_FMT, a, h.b, c, len, hash);
          last = hash;
        }
      }
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Arrays of the user's own need not have the columns of a row in order: where entries are is stored then. Rows 0 and 3 reach into both blocks; with maps of 3 chunks, row 3's block is one. Where
  all have maps, the order does not matter.
*/
static PetscErrorCode TestUnsorted(void)
{
  static const struct {
    PetscInt step, N, M, maps; /* columns are those below times step */
    PetscInt from[7], col[7];
  } cases[] = {
    {1,  4, 3,  HBP_MAP_NEVER,  {3, 6, 1, 0, 2, 4, 5}, {1, 0, 0, 2, 1, 0, 1}     },
    {16, 2, 48, HBP_MAP_ALWAYS, {3, 1, 0, 6, 4, 5, 2}, {16, 0, 32, 0, 16, 32, 16}},
    {32, 4, 96, HBP_MAP_ALWAYS, {3, 0, 1, 4, 5, 2, 6}, {16, 32, 0, 48, 64, 64, 0}}
  };

  PetscFunctionBegin;
  for (size_t t = 0; t < PETSC_STATIC_ARRAY_LENGTH(cases); t++) {
    PetscInt    i[] = {0, 3, 4, 4, 7}, j[] = {2, 0, 4, 1, 3, 4, 0};
    PetscScalar a[7];
    Mat         A;
    HBP        *h;

    for (int k = 0; k < 7; k++) {
      j[k] *= cases[t].step;
      a[k] = TestValue(5, k, 0);
    }
    PetscCall(SetBlocks(cases[t].N, cases[t].M));
    PetscCall(TestSetIntOption("-mat_hbp_map", cases[t].maps));
    PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, 4, 5 * cases[t].step, i, j, a, &A));
    PetscCall(MatConvert(A, MATHBP, MAT_INPLACE_MATRIX, &A));
    PetscCall(MatSetFromOptions(A));
    PetscCall(TestProductsOf(A, "unsorted rows", &h));
    PetscCheck(!h->csrIdx == (cases[t].N == 4 && cases[t].maps == HBP_MAP_ALWAYS) && h->mapped == (cases[t].maps == HBP_MAP_ALWAYS), PETSC_COMM_SELF, PETSC_ERR_PLIB, "unsorted rows %d: places in CSR, or %" PetscInt_FMT " maps", (int)t, h->mapped);
    for (int k = 0; k < 7; k++)
      PetscCheck((!h->csrIdx || h->csrIdx[k] == cases[t].from[k]) && h->col[k] == cases[t].col[k] && h->data[k] == TestValue(5, cases[t].from[k], 0), PETSC_COMM_SELF, PETSC_ERR_PLIB, "unsorted rows %d: entry %d, col %d", (int)t, k, h->col[k]);
    PetscCall(HBPDestroyHostCopy(&h));
    PetscCall(MatDestroy(&A));
  }
  PetscCall(PetscOptionsClearValue(NULL, "-mat_hbp_map"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A row that names columns more than once may have more entries in a block than two bytes tell: one more, and the parent computes */
static PetscErrorCode TestManyTimes(void)
{
  const PetscInt n = 100000; /* cuSPARSE takes no matrix with more entries than places */

  PetscFunctionBegin;
  PetscCall(SetBlocks(2, HBP_MAX_COLS));
  PetscCall(TestSetIntOption("-mat_hbp_long_row", 1000000));
  for (PetscInt len = HBP_MAX_COLS; len <= HBP_MAX_COLS + 1; len++) {
    MatGallopStatistics last = {0};
    PetscInt           *i, *j;
    PetscScalar        *a;
    Mat                 A, B, R;
    Vec                 x, z;

    PetscCall(PetscMalloc3(4, &i, 2 * len + 1, &j, 2 * len + 1, &a));
    i[0] = 0;
    i[1] = len;
    i[2] = len + 1;
    i[3] = 2 * len + 1;
    for (PetscInt k = 0; k < i[3]; k++) {
      j[k] = k % 1000;
      a[k] = TestValue(6, k, 0);
    }
    PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, 3, n, i, j, a, &B));
    PetscCall(MatDuplicate(B, MAT_COPY_VALUES, &R));
    PetscCall(MatDuplicate(B, MAT_COPY_VALUES, &A));
    PetscCall(MatConvert(A, MATHBP, MAT_INPLACE_MATRIX, &A));
    PetscCall(MatSetFromOptions(A));
    PetscCall(MatCreateVecs(A, &x, &z));
    PetscCall(TestInfoBegin());
    PetscCall(TestMult(A, R, x, z, len > HBP_MAX_COLS ? TEST_FALLBACK : TEST_BUILD, &last, "columns many times"));
    PetscCall(CheckInfo("nonzeros: " HBP_REFUSED_ROW, (PetscBool)(len > HBP_MAX_COLS), "columns many times"));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&z));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&B));
    PetscCall(MatDestroy(&R));
    PetscCall(PetscFree3(i, j, a));
  }
  PetscCall(PetscOptionsClearValue(NULL, "-mat_hbp_long_row"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A full row among short ones: long by its length and by the option, and not long. It has three pieces. */
static PetscErrorCode TestLongRows(void)
{
  static const char *const limits[] = {"0", "4999", "5000"};

  PetscFunctionBegin;
  PetscCall(SetBlocks(0, 0));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(limits); k++) {
    const PetscInt n = 5000, longrows = k < 2;
    Mat            A;
    HBP           *h;
    char           what[64];

    PetscCall(PetscSNPrintf(what, sizeof(what), "a full row, limit %s", limits[k]));
    PetscCall(PetscOptionsSetValue(NULL, "-mat_hbp_long_row", limits[k]));
    PetscCall(MatCreate(PETSC_COMM_SELF, &A));
    PetscCall(MatSetSizes(A, n, n, n, n));
    PetscCall(MatSetType(A, MATHBP));
    PetscCall(MatSetFromOptions(A));
    PetscCall(MatSetUp(A));
    for (PetscInt r = 0; r < n; r++) PetscCall(MatSetValue(A, r, n - 1 - r, TestValue(1, r, 0), INSERT_VALUES));
    for (PetscInt c = 0; c < n; c++) PetscCall(MatSetValue(A, 5, c, TestValue(2, 5, c), INSERT_VALUES));
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    PetscCall(TestProductsOf(A, what, &h));
    TestCheck(h->longRows.num == longrows && h->nz - h->blknz == longrows * n && h->longRows.pieceNum == 3 * longrows, "%" PetscInt_FMT " long rows", what, h->longRows.num);
    PetscCall(HBPDestroyHostCopy(&h));
    PetscCall(MatDestroy(&A));
  }
  PetscCall(PetscOptionsClearValue(NULL, "-mat_hbp_long_row"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The largest block, with a full row at its end: 65536 entries, and others in the next block; and a row below */
static PetscErrorCode TestLargest(void)
{
  const PetscInt m = HBP_MAX_ROWS + 1, n = 70000;
  Mat            A;
  HBP           *h;

  PetscFunctionBegin;
  PetscCall(SetBlocks(HBP_MAX_ROWS, HBP_MAX_COLS));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_hbp_long_row", "70000"));
  PetscCall(MatCreate(PETSC_COMM_SELF, &A));
  PetscCall(MatSetSizes(A, m, n, m, n));
  PetscCall(MatSetType(A, MATHBP));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatSetUp(A));
  for (PetscInt c = 0; c < n; c++) PetscCall(MatSetValue(A, m - 2, c, TestValue(2, m - 2, c), INSERT_VALUES));
  PetscCall(MatSetValue(A, m - 1, n - 1, TestValue(2, m - 1, n - 1), INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(TestProductsOf(A, "the largest block", &h));
  PetscCheck(h->blkNum == 3 && h->segNum == 3 && h->partialNum == 2, PETSC_COMM_SELF, PETSC_ERR_PLIB, "the largest block: %" PetscInt_FMT " blocks", h->blkNum);
  PetscCheck(h->nnz_perrow[0] == 65535 && h->output_hash[0] == HBP_MAX_ROWS - 1 && h->nnz_perrow[1] == n - 65536 - 1 && h->output_hash[1] == HBP_MAX_ROWS - 1, PETSC_COMM_SELF, PETSC_ERR_PLIB, "the largest block: row %d", h->output_hash[0]);
  PetscCheck(h->col[65535] == 65535 && h->col[65536] == 0 && h->output_hash[2] == DIRECT(0), PETSC_COMM_SELF, PETSC_ERR_PLIB, "the largest block: column %d", h->col[65535]);
  PetscCall(HBPDestroyHostCopy(&h));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_hbp_long_row"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Blocks of one entry: 25 million of 5000 entries, which is not tried. The parent computes; warned: whether a process has said its one sentence already. */
static PetscErrorCode TestTooManyBlocks(PetscBool warned)
{
  const TestShape     shape = {5000, 5000, PETSC_FALSE};
  Mat                 A, R;
  Vec                 x, z;
  MatGallopStatistics last  = {0};
  PetscInt            lines = 0, matches = 0;

  PetscFunctionBegin;
  PetscCall(SetBlocks(1, 1));
  PetscCall(TestCaptureBegin());
  PetscCall(TestCreateEmpty(PETSC_COMM_SELF, MATHBP, shape, &A));
  for (PetscInt r = 0; r < shape.m; r++) PetscCall(MatSetValue(A, r, (7 * r) % shape.n, TestValue(1, r, 0), INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatConvert(A, MATSEQAIJ, MAT_INITIAL_MATRIX, &R));
  PetscCall(MatCreateVecs(A, &x, &z));
  PetscCall(TestInfoBegin());
  PetscCall(TestMult(A, R, x, z, TEST_FALLBACK, &last, "too many blocks"));
  PetscCall(CheckInfo("HBP does not store a 5000 by 5000 matrix with 5000 nonzeros: it would have more blocks", PETSC_TRUE, "too many blocks"));
  PetscCall(SetBlocks(1, 2));
  PetscCall(MatSetFromOptions(A));
  PetscCall(TestMult(A, R, x, z, TEST_BUILD, &last, "half as many blocks"));
  PetscCall(TestCaptureEnd("Gallop: no room for the HBP format", &lines, &matches));
  PetscCheck(lines == (warned ? 0 : 1) && matches == lines, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " lines and %" PetscInt_FMT " messages", lines, matches);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* No room on the GPU for the n-th array that is asked for, nor for later ones, for each n. The matrix has rows that are not sorted, maps in some blocks of rows, and a long row. */
static PetscErrorCode TestNoRoom(PetscBool *warned)
{
  const PetscInt most  = 24; /* more than are asked for */
  PetscInt       lines = 0, messages = 0, failed = 0;
  PetscBool      device = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(TestHasDevice(&device));
  PetscCall(SetBlocks(2, 48));
  PetscCall(TestSetIntOption("-mat_hbp_map", HBP_MAP_ALWAYS));
  PetscCall(TestSetIntOption("-mat_hbp_long_row", 4));
  PetscCall(TestCaptureBegin());
  for (PetscInt fail = 1; fail <= most; fail++) {
    PetscInt            i[] = {0, 3, 4, 4, 7, 12}, j[] = {2, 0, 4, 1, 3, 4, 0, 0, 1, 2, 3, 4};
    PetscScalar         a[12];
    Mat                 A, B, R;
    Vec                 x, z;
    MatGallopStatistics stats;

    for (int k = 0; k < 12; k++) {
      j[k] *= 16;
      a[k] = TestValue(5, k, 0);
    }
    if (PetscDefined(USE_DEBUG)) /* such a PETSc refuses them */
      for (PetscInt r = 0; r < 5; r++) PetscCall(PetscSortInt(i[r + 1] - i[r], j + i[r]));
    PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, 5, 80, i, j, a, &B));
    PetscCall(MatDuplicate(B, MAT_COPY_VALUES, &R));
    PetscCall(MatDuplicate(B, MAT_COPY_VALUES, &A));
    PetscCall(MatDestroy(&B));
    PetscCall(MatConvert(A, MATHBP, MAT_INPLACE_MATRIX, &A));
    PetscCall(MatSetFromOptions(A));
    PetscCall(MatCreateVecs(A, &x, &z));
    PetscCall(TestSetVec(x, 5));
    PetscCall(TestSetIntOption("-gallop_device_malloc_fail", fail));
    for (int k = 0; k < 2; k++) {
      PetscCall(TestSpoilVec(z));
      PetscCall(MatMult(A, x, z));
      PetscCall(TestCompare(R, TEST_MULT, x, NULL, z, "no room"));
    }
    PetscCall(PetscOptionsClearValue(NULL, "-gallop_device_malloc_fail"));
    PetscCall(MatGallopGetStatistics(A, &stats));
    PetscCheck(stats.builds == 1 ? !stats.fallbacks : !stats.builds && stats.fallbacks == 2, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Request %" PetscInt_FMT " fails: %" PetscInt64_FMT " builds, %" PetscInt64_FMT " products of the parent", fail,
               stats.builds, stats.fallbacks);
    PetscCheck(stats.builds || failed == fail - 1, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Request %" PetscInt_FMT " fails the build, an earlier one did not", fail);
    if (!stats.builds) failed++;
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&z));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&R));
  }
  PetscCall(TestCaptureEnd("Gallop: ", &lines, &messages));
  PetscCheck(lines == messages && messages == (failed ? 1 : 0), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " builds failed, %" PetscInt_FMT " messages among %" PetscInt_FMT " lines", failed, messages, lines);
  *warned = (PetscBool)(failed > 0);
  PetscCheck(failed < most && (device ? failed >= (PetscDefined(USE_DEBUG) ? 5 : 6) : !failed), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " builds failed", failed);
  PetscCall(PetscOptionsClearValue(NULL, "-mat_hbp_map"));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_hbp_long_row"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool warned;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(TestHash());
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(cases); k++) {
    PetscBool single = PETSC_FALSE;

    PetscCall(TestArrays(&cases[k], &single));
    PetscCall(TestMatrix(&cases[k], single));
  }
  if (!PetscDefined(USE_DEBUG)) PetscCall(TestUnsorted()); /* a PETSc with debugging refuses such arrays */
  PetscCall(TestLongRows());
  PetscCall(TestLargest());
  PetscCall(TestNoRoom(&warned));
  PetscCall(TestTooManyBlocks(warned));
  if (!PetscDefined(USE_DEBUG)) PetscCall(TestManyTimes()); /* a PETSc with debugging refuses such arrays */
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    suffix: 1
    args: -mat_gallop_explicit_transpose never
    output_file: output/empty.out

TEST*/
