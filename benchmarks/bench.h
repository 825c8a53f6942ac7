#pragma once

#include <petscmat.h>

typedef PetscErrorCode (*BenchWork)(void *);

/* Where products are timed. Times are in seconds, memory in bytes, bandwidth in bytes a second. */
typedef struct {
  PetscErrorCode (*start)(PetscLogDouble *bandwidth); /* prints "# " lines on the machine and measures how fast it reads memory */
  PetscErrorCode (*finish)(void);
  PetscErrorCode (*time)(BenchWork, void *, PetscInt n, PetscLogDouble *); /* of all of n times the work, one after the other */
  PetscErrorCode (*timecold)(BenchWork, void *, PetscLogDouble *);         /* of once the work, with caches flushed before it */
  PetscErrorCode (*memory)(PetscLogDouble *);                              /* how much is in use */
  PetscErrorCode (*copy)(PetscLogDouble bytes, PetscLogDouble *);          /* of a copy from pinned memory of the host; NULL on the host */
  PetscInt           nraw;                                                 /* products by a library that is called without PETSc */
  const char *const *rawnames;
  PetscErrorCode (*rawcreate)(Mat, PetscInt which, PetscBool transpose, Vec x, Vec y, void **); /* from a SEQAIJ on the host; x and y are where products are timed */
  PetscErrorCode (*rawapply)(void *);
  PetscErrorCode (*rawdestroy)(void **);
} BenchPlace;

#if defined(PETSC_HAVE_CUDA)
PETSC_INTERN const BenchPlace BenchDevice;
PETSC_INTERN PetscErrorCode   BenchDeviceAvailable(PetscBool *);
#endif
