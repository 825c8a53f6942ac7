/* SPDX-License-Identifier: BSD-2-Clause */
/* The example, with its own main(), and as a program that is compiled against the installed library */
#include "../../examples/convert.c"

/*TEST

  test:
    suffix: 1
    nsize: {{1 2}}
    filter: sed -e "s/on the .*, as/as/" -e "s/iterations .\+/ok/"
    output_file: output/convert_1.out
  test:
    suffix: installed
    command: ${GALLOP_TESTS}/examples/installed ${label}
    output_file: output/empty.out
  test:
    suffix: samepetsc
    command: ${GALLOP_TESTS}/examples/samepetsc
    output_file: output/empty.out
  test:
    suffix: otherpetsc
    command: ${GALLOP_TESTS}/examples/otherpetsc
    output_file: output/empty.out

TEST*/
