! SPDX-License-Identifier: BSD-2-Clause
!
!  A linear system from Fortran, in a program that includes and links nothing of the library: it comes at run time.
!
!    mpiexec -n 2 ./solve -dll_append /path/to/libgallop.so -mat_type evchyb -side 300 -ksp_type cg -pc_type jacobi -log_view
!
!  The library has to be built for the PETSc that the program is linked to, which has to have Fortran: docs/fortran.md. -log_view lists
!  the products that the library computed as EVCHYBMult; without -dll_append and -mat_type the program runs with PETSc's own matrices.
!
!  The matrix is the five-point stencil on a square. The right-hand side is the product with x = 1, so that the error is known. The
!  program stops with an error if the solver does not converge.
!
program main
#include <petsc/finclude/petscksp.h>
  use petscksp
  implicit none

  Mat                :: A
  Vec                :: x, b
  KSP                :: ksp
  KSPConvergedReason :: reason
  PetscInt           :: side, row, first, last, n, its, columns(5)
  PetscInt           :: rows(1)
  PetscScalar        :: values(5)
  PetscReal          :: error
  PetscScalar        :: one = 1.0
  PetscBool          :: set
  PetscErrorCode     :: ierr
  character(len=128) :: type, text

  PetscCallA(PetscInitialize(ierr))
  side = 50
  PetscCallA(PetscOptionsGetInt(PETSC_NULL_OPTIONS, PETSC_NULL_CHARACTER, '-side', side, set, ierr))

  PetscCallA(MatCreate(PETSC_COMM_WORLD, A, ierr))
  PetscCallA(MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, side*side, side*side, ierr))
  PetscCallA(MatSetFromOptions(A, ierr)) ! -mat_type
  PetscCallA(MatGetOwnershipRange(A, first, last, ierr))
  do row = first, last - 1
    n = 0
    call add(row, 4.0d0)
    if (mod(row, side) > 0) call add(row - 1, -1.0d0)
    if (mod(row, side) < side - 1) call add(row + 1, -1.0d0)
    if (row >= side) call add(row - side, -1.0d0)
    if (row < side*(side - 1)) call add(row + side, -1.0d0)
    rows(1) = row
    PetscCallA(MatSetValues(A, 1_PETSC_INT_KIND, rows, n, columns, values, INSERT_VALUES, ierr))
  end do
  PetscCallA(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY, ierr))
  PetscCallA(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY, ierr))

  PetscCallA(MatCreateVecs(A, x, b, ierr)) ! on the GPU where the matrix takes one
  PetscCallA(VecSet(x, one, ierr))
  PetscCallA(MatMult(A, x, b, ierr))
  PetscCallA(VecZeroEntries(x, ierr))

  PetscCallA(KSPCreate(PETSC_COMM_WORLD, ksp, ierr))
  PetscCallA(KSPSetOperators(ksp, A, A, ierr))
  PetscCallA(KSPSetFromOptions(ksp, ierr))
  PetscCallA(KSPSolve(ksp, b, x, ierr))
  PetscCallA(KSPGetIterationNumber(ksp, its, ierr))
  PetscCallA(KSPGetConvergedReason(ksp, reason, ierr))
  if (reason%v <= 0) then
    SETERRA(PETSC_COMM_WORLD, PETSC_ERR_NOT_CONVERGED, 'The solver has not converged')
  end if

  PetscCallA(VecShift(x, -one, ierr))
  PetscCallA(VecNorm(x, NORM_INFINITY, error, ierr))
  PetscCallA(MatGetType(A, type, ierr))
  write (text, '(3a,i0,a,es8.1,a)') 'matrix ', trim(type), ', iterations ', its, ' error', error, new_line('a')
  PetscCallA(PetscPrintf(PETSC_COMM_WORLD, text, ierr))

  PetscCallA(KSPDestroy(ksp, ierr))
  PetscCallA(VecDestroy(x, ierr))
  PetscCallA(VecDestroy(b, ierr))
  PetscCallA(MatDestroy(A, ierr))
  PetscCallA(PetscFinalize(ierr))

contains

  subroutine add(column, value)
    PetscInt, intent(in)         :: column
    double precision, intent(in) :: value

    n = n + 1
    columns(n) = column
    values(n) = value
  end subroutine add
end program main
