/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "What -mat_view ::ascii_info and ::ascii_info_detail say of a matrix whose numbers are known by hand.\n\n";

#include "../galloptest.h"

/*
  100 rows and 200 columns: rows 0 to 3 are empty, rows 4 to 67 have 2 entries, rows 68 to 97 and row 99 have 3, row 98 has 130.

  On one process, with all rows sorted: the 64 rows of length 2 are two column blocks of SubELL: NNZ_ELL = 64 * 2 = 128, I_split = 4 + 64 = 68. The 31 rows of length 3 do not
  fill a column block: each is a row of 32 entries in SubCSR, and the long one a row of 160: NNZ_vCSR = 31 * 32 + 160 = 1152. The matrix has
  128 + 93 + 130 = 351 nonzeros: (1280 - 351) / 351 = 264.67 % are added.

  On two processes, each with 50 rows, the first has 46 rows of 2 entries in its diagonal block: a column block of 32, and 14 rows of SubCSR. The second
  has 30 entries of the long row in its diagonal block, and the other 100 in its off-diagonal block, below 18 rows of 2 entries and 31 of 3:
  NNZ_ELL = 32 * 2 + 32 * 3 = 160, NNZ_vCSR = 14 * 32 + 32 + 17 * 32 + 128 = 1152, I_split = 4 + 32 + 49 + 32 = 117.

  Code balance: a row has N_nzr = 351 / 100 entries, whatever blocks it is in, and a product 2 + 3 / N_nzr flops for each of them, for which it loads 12 bytes for each stored entry, 16 / N_nzr of y and
  8 alpha of x: alpha = 200 / 351 on one process; on two, of which the second loads 100 entries that it gets from the first as well, 300 / 351.

  FASTLOAD on one process: columns 3 to 129 have one entry, in row 98, column 2 has 32, columns 0 and 1 have 96, and 70 have none. Sorted in groups of 32, row 98 is in four blocks alone. The last group
  has five columns with it, and the long ones. With a height of 1, as chosen, blocks are cut at each line of 32 columns, at multiples of 8 of 3 columns and of 16 of 2: one block of all 8 columns, 4 with
  31 lines of 3 columns, 4 with 64 lines of 2 columns in one row, two of which have rows 36 to 67, which are in no other block: 4 + 1 + 4 + 2 blocks share rows. 351 entries are in 100 lines of 32 places.
  With the paper's steps and no limit of height the first step is 5 blocks: three of row 98 alone, one of row 98 and of row 68, one of row 4 twice, whose row is in no other. The second is one block of
  31 lines of 3 entries, the third one of 64 lines of 2 entries in one row.

  HBP on one process: one block of all rows is chosen, with 95 rows in 3 groups; row 98, which has 8 lanes, is another. Where rows with more than 100 entries are long, it is in none. With blocks of 32
  rows by 64 columns the first column of blocks has 28, 32, 32 and 4 rows with entries, each a group: row 98 has one lane there as the others, as the shortest row with its hash would have, of 8
  entries. It alone is in the second and the third column, which makes 3 partial sums; the last has none: 6 blocks of 16. A class of the hash has 4 places, in steps of 64 entries.

  A map of such blocks has 4 chunks at most: rows 0 to 95 have entries in columns 0 to 15 only, row 98 in 9 chunks. The blocks are as before, but the hash is that of whole rows, with steps of 128 entries.
  Where row 98 is long, all blocks of rows have maps, and there is one column of 4 blocks.
*/
static PetscInt RowLength(PetscInt i)
{
  if (i < 4) return 0;
  if (i < 68) return 2;
  return i == 98 ? 130 : 3;
}

int main(int argc, char **argv)
{
  Mat      A;
  PetscInt rstart, rend;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, 100, 200));
  PetscCall(MatSetType(A, TestFormat("")));
  PetscCall(MatSetFromOptions(A));
  PetscCall(TestPreallocate(A));
  PetscCall(MatBindToCPU(A, PETSC_TRUE)); /* a GPU needs other launches, and some bytes more */
  PetscCall(MatGetOwnershipRange(A, &rstart, &rend));
  for (PetscInt i = rstart; i < rend; i++) {
    for (PetscInt k = 0; k < RowLength(i); k++) PetscCall(MatSetValue(A, i, k, 1.0, INSERT_VALUES)); /* all columns are the first process's */
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  testset:
    requires: double !complex !defined(PETSC_USE_64BIT_INDICES)
    filter: sed -n "/EVC-HYB.*of memory/d; /EVC-HYB.* bytes,/d; /EVC-HYB/p; /SubELL/p; /SubCSR/p; /diagonal block/p"
    test:
      suffix: info
      args: -mat_evchyb_window 0 -mat_view ::ascii_info
    test:
      suffix: detail
      args: -mat_evchyb_window 0 -mat_view ::ascii_info_detail
    test:
      suffix: packed
      filter: sed -n "/EVC-HYB.*of memory/d; /EVC-HYB.* bytes,/d; /EVC-HYB/p; /Packed/p"
      args: -mat_evchyb_storage packed -mat_view ::ascii_info_detail
    test:
      suffix: info_2
      nsize: 2
      args: -mat_evchyb_window 0 -mat_view ::ascii_info
    test:
      suffix: detail_2
      nsize: 2
      args: -mat_evchyb_window 0 -mat_view ::ascii_info_detail

  testset:
    filter: grep FastLoad | grep -v bytes
    args: -format fastload
    test:
      suffix: fastload
      args: -mat_view ::ascii_info
    test:
      suffix: fastload_no_limit
      args: -mat_fastload_block_height 0 -mat_fastload_group_steps 0 -mat_view ::ascii_info_detail

  testset:
    filter: grep HBP | grep -v bytes
    args: -format hbp
    test:
      suffix: hbp
      args: -mat_view ::ascii_info
    test:
      suffix: hbp_long_row
      args: -mat_hbp_long_row 100 -mat_view ::ascii_info
    test:
      suffix: hbp_blocks
      args: -mat_hbp_block_rows 32 -mat_hbp_block_cols 64 -mat_view ::ascii_info_detail
    test:
      suffix: hbp_maps
      args: -mat_hbp_block_rows 32 -mat_hbp_block_cols 64 -mat_hbp_map 1 -mat_view ::ascii_info_detail
    test:
      suffix: hbp_maps_long_row
      args: -mat_hbp_block_rows 32 -mat_hbp_block_cols 64 -mat_hbp_map 1 -mat_hbp_long_row 100 -mat_view ::ascii_info
    test:
      suffix: hbp_columns
      args: -mat_hbp_columns 3 -mat_hbp_block_rows 32 -mat_view ::ascii_info_detail
    test:
      suffix: hbp_hot
      args: -mat_hbp_hot_columns 20 -mat_view ::ascii_info_detail

  test:
    suffix: pays
    nsize: {{1 2}}
    filter: grep -v allocated | grep -E "EVC-HYB|a part" | sed "s/: .*aij.* computes them/: the parent computes them/"
    args: -mat_gallop_build pays -mat_view ::ascii_info

TEST*/
