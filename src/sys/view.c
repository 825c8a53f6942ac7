/* SPDX-License-Identifier: BSD-2-Clause */
/* What library, PETSc, GPUs and MPI there are */

#include <gallop/matgallopimpl.h>

/* The name and number of MPI, without what else it tells of itself */
static PetscErrorCode DescribeMPI(char text[], size_t len)
{
  char all[MPI_MAX_LIBRARY_VERSION_STRING];
  int  length;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Get_library_version(all, &length));
  all[strcspn(all, ",\n")] = 0;
  for (char *c = all; *c; c++)
    if (*c == '\t') *c = ' ';
  PetscCall(PetscStrncpy(text, all, len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  GallopView - Shows which Gallop this is and what it has to work with: its version and commit, PETSc, MPI, CUDA, the GPUs, and how ghost values go from process to process

  Collective

  Input Parameter:
. viewer - a viewer of type `PETSCVIEWERASCII`; nothing is shown with others

  Options Database Key:
. -gallop_view viewer - calls this function when the library is loaded, with a viewer as `PetscOptionsCreateViewer()` reads it

  Level: beginner

  Notes:
  The GPUs are those that the first process of the viewer finds. The library has kernels for the compute capabilities that are named, and they also run on GPUs of the same major and a
  higher minor number.

  Where there is a GPU, this function has PETSc start it, as the first Gallop matrix would.

  The program `gallop-info`, which is installed with the library, shows the same and checks a product of each format's type.

.seealso: `GallopInitializePackage()`, `GallopGetVersion()`, `GallopGetCommit()`, `MatGallopGetStatistics()`, `PetscOptionsCreateViewer()`
@*/
PetscErrorCode GallopView(PetscViewer viewer)
{
  char      version[32], commit[64], petsc[128], mpi[128];
  PetscBool ascii;

  PetscFunctionBegin;
  PetscValidHeaderSpecific(viewer, PETSC_VIEWER_CLASSID, 1);
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &ascii));
  if (!ascii) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GallopGetVersion(version, sizeof(version)));
  PetscCall(GallopGetCommit(commit, sizeof(commit)));
  PetscCall(GallopDescribePETSc(petsc, sizeof(petsc)));
  PetscCall(DescribeMPI(mpi, sizeof(mpi)));
  PetscCall(PetscViewerASCIIPrintf(viewer, "Gallop %s, commit %s\n", version, commit));
  PetscCall(PetscViewerASCIIPushTab(viewer));
  PetscCall(PetscViewerASCIIPrintf(viewer, "PETSc: %s\n", petsc));
  PetscCall(PetscViewerASCIIPrintf(viewer, "MPI: %s\n", mpi));
  PetscCall(PetscViewerFlush(viewer)); /* to start the GPU may end the program, with a message of PETSc's */
  PetscCall(GallopDeviceView(viewer));
  PetscCall(GallopExchangeView(viewer));
  PetscCall(PetscViewerASCIIPopTab(viewer));
  PetscCall(PetscViewerFlush(viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}
