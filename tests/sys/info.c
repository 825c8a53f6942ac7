/* SPDX-License-Identifier: BSD-2-Clause */
/* gallop-info, with its own main(). With -wrong each matrix that is converted is made a little wrong, which the program has to notice. */
#include <petscmat.h>

static PetscErrorCode ConvertWrong(Mat A, MatType type, MatReuse reuse, Mat *B)
{
  PetscBool wrong = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(MatConvert(A, type, reuse, B));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-wrong", &wrong, NULL));
  if (wrong) PetscCall(MatScale(*B, 1.001));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define MatConvert ConvertWrong
#include "../../src/bin/gallop-info.c"

/*TEST

  test:
    suffix: 1
    nsize: {{1 2}}
    filter: grep ok | sed "s/on the .\+/on the PLACE/"
  testset:
    nsize: {{1 2}}
    test:
      suffix: wrong
      command: ${GALLOP_TESTS}/sys/notok ${GALLOP_MPIEXEC} -n ${insize} ${executable} -wrong
    test:
      suffix: parent
      command: ${GALLOP_TESTS}/sys/notok ${GALLOP_MPIEXEC} -n ${insize} ${executable} -mat_hbp_memory 1
  test:
    suffix: error
    command: ${GALLOP_TESTS}/sys/notok ${executable} -mat_fastload_memory -1

TEST*/
