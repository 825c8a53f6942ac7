/* SPDX-License-Identifier: BSD-2-Clause */
/* What device.cu does on a GPU, for a PETSc without CUDA, and what needs none */

#include <gallop/deviceimpl.h>
#if PetscDefined(HAVE_CUDA)
  #define DISABLE_CUSPARSE_DEPRECATED /* hundreds of warnings */
  #include <cusparse.h>
#endif

/* Looked up at every call, so that a test can change the option; requests are counted from when its value changed */
PetscErrorCode GallopDeviceMallocFails(PetscBool request, PetscBool *fails)
{
  static PetscInt seen = 0, requests = 0;
  PetscInt        n = 0;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-gallop_device_malloc_fail", &n, NULL));
  PetscCheck(n >= 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Option -gallop_device_malloc_fail is %" PetscInt_FMT ", but must be at least 0", n);
  if (n != seen) requests = 0;
  seen = n;
  requests += request;
  *fails = (PetscBool)(n && requests >= n);
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PetscDefined(HAVE_CUDA)
/* 12.5 and 12.6 end in an internal error with more than 2^31 - 128 and 64-bit indices; 12.8 multiplies such matrices */
static PetscCount MostOfCUSPARSE(void)
{
  int major = 0, minor = 0;

  if (cusparseGetProperty(MAJOR_VERSION, &major) != CUSPARSE_STATUS_SUCCESS || cusparseGetProperty(MINOR_VERSION, &minor) != CUSPARSE_STATUS_SUCCESS) major = 0;
  return major > 12 || (major == 12 && minor >= 8) ? PETSC_COUNT_MAX : ((PetscCount)1 << 31) - 128;
}
#else
static PetscCount MostOfCUSPARSE(void)
{
  return PETSC_COUNT_MAX;
}
#endif

PetscErrorCode GallopCUSPARSETakes(PetscCount nz, PetscBool *takes)
{
  static PetscCount most = -1; /* asked before each product of the parent's */

  PetscFunctionBegin;
  if (most < 0) {
    PetscInt  n = 0;
    PetscBool set;

    PetscCall(PetscOptionsGetInt(NULL, NULL, "-gallop_cusparse_nonzeros", &n, &set));
    PetscCheck(n >= 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Option -gallop_cusparse_nonzeros is %" PetscInt_FMT ", but must be at least 0", n);
    most = set ? n : MostOfCUSPARSE();
  }
  *takes = (PetscBool)(nz <= most);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whether options keep PETSc off the GPU: the one for CUDA goes before the one for all kinds of devices */
PetscErrorCode GallopDeviceDisabled(PetscBool *disabled)
{
  const char *const options[] = {"-device_enable_cuda", "-device_enable"};
  PetscBool         set       = PETSC_FALSE;
  char              enable[16];

  PetscFunctionBegin;
  *disabled = PETSC_FALSE;
  for (int k = 0; k < 2 && !set; k++) {
    PetscCall(PetscOptionsGetString(NULL, NULL, options[k], enable, sizeof(enable), &set));
    if (set) PetscCall(PetscStrcasecmp(enable, "none", disabled));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  GallopDeviceWarn - Says once that a matrix of a PETSc with CUDA goes without a GPU, unless the user wants it so

  Input Parameter:
. here - this process has a GPU, and another process of the matrix has none
*/
PetscErrorCode GallopDeviceWarn(PetscBool here)
{
  static PetscBool warned = PETSC_FALSE;
  PetscBool        warn   = PETSC_TRUE, disabled;

  PetscFunctionBegin;
  if (warned) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-gallop_warn_no_gpu", &warn, NULL));
  PetscCall(GallopDeviceDisabled(&disabled));
  if (!warn || disabled) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscFPrintf(PETSC_COMM_WORLD, PETSC_STDERR, "Gallop: PETSc was configured with CUDA, but %s: products of Gallop matrices are computed on the host. -gallop_warn_no_gpu 0 silences this warning\n", here ? "some processes find no GPU" : "no GPU was found"));
  warned = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopCopyToHost(void *host, PetscMemType memtype, const void *from, size_t bytes)
{
  PetscFunctionBegin;
  if (PetscMemTypeHost(memtype)) PetscCall(PetscMemcpy(host, from, bytes));
  else PetscCall(GallopDeviceCopyOut(host, from, bytes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The driver's word is enough where there is twice as much; else an allocation tells */
PetscErrorCode GallopDeviceFits(size_t bytes, PetscBool *fits)
{
  size_t free;

  PetscFunctionBegin;
  PetscCall(GallopDeviceGetFree(&free));
  if (free / 2 >= bytes) {
    PetscCall(GallopDeviceMallocFails(PETSC_TRUE, fits));
    *fits = PetscNot(*fits);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(GallopDeviceTry(bytes, fits));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if !PetscDefined(HAVE_CUDA)
PetscErrorCode GallopDeviceAvailable(PetscBool *available)
{
  PetscFunctionBegin;
  *available = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopDeviceIsCapturing(PetscBool *is)
{
  PetscFunctionBegin;
  *is = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopDeviceView(PetscViewer viewer)
{
  PetscFunctionBegin;
  PetscCall(PetscViewerASCIIPrintf(viewer, "CUDA: PETSc was configured without; products are computed on the host\n"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopDeviceMalloc(size_t bytes, void **ptr)
{
  PetscFunctionBegin;
  (void)bytes;
  *ptr = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopDeviceGetFree(size_t *bytes)
{
  PetscFunctionBegin;
  *bytes = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopDeviceFree(void *ptr)
{
  PetscFunctionBegin;
  (void)ptr;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopDeviceTry(size_t bytes, PetscBool *fits)
{
  PetscFunctionBegin;
  (void)bytes;
  *fits = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopWorkspaceMalloc(size_t bytes, void **ptr)
{
  PetscFunctionBegin;
  PetscCall(GallopDeviceMalloc(bytes, ptr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopWorkspaceFree(void *ptr)
{
  PetscFunctionBegin;
  (void)ptr;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopDeviceFreeKept(PetscBool workspace)
{
  PetscFunctionBegin;
  (void)workspace;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GallopDeviceCopyIn(void *device, const void *host, size_t bytes)
{
  (void)device, (void)host, (void)bytes;
  SETERRQ(PETSC_COMM_SELF, PETSC_ERR_SUP_SYS, "PETSc was configured without CUDA");
}

PetscErrorCode GallopHostMap(const void *host, size_t bytes, void **device)
{
  (void)host, (void)bytes;
  *device = NULL;
  return PETSC_SUCCESS;
}

PetscErrorCode GallopHostUnmap(const void *host, size_t bytes)
{
  (void)host, (void)bytes;
  return PETSC_SUCCESS;
}

PetscErrorCode GallopDeviceCopyOut(void *host, const void *device, size_t bytes)
{
  (void)device, (void)host, (void)bytes;
  SETERRQ(PETSC_COMM_SELF, PETSC_ERR_SUP_SYS, "PETSc was configured without CUDA");
}

PetscErrorCode GallopDeviceCopy(void *to, const void *from, size_t bytes)
{
  (void)to, (void)from, (void)bytes;
  SETERRQ(PETSC_COMM_SELF, PETSC_ERR_SUP_SYS, "PETSc was configured without CUDA");
}

PetscErrorCode GallopDeviceZero(void *ptr, size_t bytes)
{
  (void)ptr, (void)bytes;
  SETERRQ(PETSC_COMM_SELF, PETSC_ERR_SUP_SYS, "PETSc was configured without CUDA");
}

PetscErrorCode GallopDeviceCountRows(PetscInt m, const PetscInt i[], PetscInt *rows)
{
  (void)m, (void)i, (void)rows;
  SETERRQ(PETSC_COMM_SELF, PETSC_ERR_SUP_SYS, "PETSc was configured without CUDA");
}
#endif
