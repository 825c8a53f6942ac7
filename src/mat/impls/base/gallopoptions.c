/* SPDX-License-Identifier: BSD-2-Clause */
/*
  Options of Gallop matrices: from the database, and from matrix to matrix.
*/

#include <gallop/matgallopimpl.h>

/* The blocks that an MPI matrix has already follow its options; those that it gets later take them over in MatGallopGetBlocks() */
static PetscErrorCode OptionsToBlocks(Mat A, Mat_Gallop *g, const PetscBool changed[])
{
  Mat         blocks[2] = {NULL, NULL};
  Mat_Gallop *b;

  PetscFunctionBegin;
  if (g->mpi && A->preallocated && !A->hash_active) PetscCall(MatMPIAIJGetSeqAIJ(A, &blocks[0], &blocks[1], NULL));
  for (int k = 0; k < 2; k++) {
    if (!blocks[k]) continue;
    PetscCall(MatGallopGetContext(blocks[k], &b));
    if (!b || b->type != g->type) continue;
    PetscCall(MatGallopCopyOptions(A, blocks[k]));
    for (int s = 0; s < GALLOP_STRUCTURES; s++)
      if (changed[s]) PetscCall(MatGallopReset(&b->structure[s]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Options of a block are those of its MPI matrix, options of a copy those of the original */
PetscErrorCode MatGallopCopyOptions(Mat from, Mat to)
{
  const PetscBool changed[GALLOP_STRUCTURES] = {PETSC_TRUE, PETSC_TRUE, PETSC_TRUE};
  Mat_Gallop     *f, *t;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(from, &f));
  PetscCall(MatGallopGetContext(to, &t));
  if (!f || !t || f->type != t->type) PetscFunctionReturn(PETSC_SUCCESS);
  for (int s = 0; s < GALLOP_STRUCTURES; s++) {
    t->structure[s].maxbytes = f->structure[s].maxbytes;
    if (s == GALLOP_TRANSPOSE) continue; /* its options are the format's */
    PetscCall(PetscMemcpy(t->structure[s].options, f->structure[s].options, f->structure[s].type->format->options_size));
  }
  t->build     = f->build;
  t->products  = f->products;
  t->transpose = f->transpose;
  if (t->exchange.way != f->exchange.way) PetscCall(GallopExchangeReset(&t->exchange));
  t->exchange.way = f->exchange.way;
  t->csr          = f->csr;
  t->maxbytes     = f->maxbytes;
  PetscCall(OptionsToBlocks(to, t, changed));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatGallopAdopt - A block takes over the options of its MPI matrix. What was built already, by those of no prefix, goes where they are others: PETSc makes blocks of our type. */
PetscErrorCode MatGallopAdopt(Mat A, Mat block)
{
  Mat_Gallop *g, *b;
  PetscBool   same[GALLOP_STRUCTURES];

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  PetscCall(MatGallopGetContext(block, &b));
  if (b->type != g->type) PetscFunctionReturn(PETSC_SUCCESS);
  for (int s = 0; s < GALLOP_STRUCTURES; s++) {
    PetscCall(PetscMemcmp(b->structure[s].options, g->structure[s].options, g->structure[s].type->format->options_size, &same[s]));
    if (b->structure[s].maxbytes != g->structure[s].maxbytes || b->maxbytes != g->maxbytes) same[s] = PETSC_FALSE;
  }
  PetscCall(MatGallopCopyOptions(A, block));
  for (int s = 0; s < GALLOP_STRUCTURES; s++)
    if (!same[s]) PetscCall(MatGallopReset(&b->structure[s]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSetFromOptions_Gallop(Mat A, PetscOptionItems PetscOptionsObject)
{
  Mat_Gallop *g;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  if (g->parent.setfromoptions) PetscCall((*g->parent.setfromoptions)(A, PetscOptionsObject));
  g->optionsasked = PETSC_TRUE;
  PetscCall(MatGallopSetOptionsFromDatabase(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's PetscOptionsRangeInt() names neither the option nor the other end of the range when a value is outside */
PetscErrorCode GallopOptionsRangeInt(PetscOptionItems PetscOptionsObject, const char option[], const char text[], const char man[], PetscInt *value, PetscInt min, PetscInt max)
{
  const char *const prefix = PetscOptionsObject->prefix ? PetscOptionsObject->prefix : "";
  PetscInt          asked  = *value;

  PetscFunctionBegin;
  PetscCall(PetscOptionsInt(option, text, man, asked, &asked, NULL));
  PetscCheck(max < PETSC_INT_MAX || asked >= min, PetscOptionsObject->comm, PETSC_ERR_ARG_OUTOFRANGE, "Option -%s%s is %" PetscInt_FMT ", but must be at least %" PetscInt_FMT, prefix, option + 1, asked, min);
  PetscCheck(asked >= min && asked <= max, PetscOptionsObject->comm, PETSC_ERR_ARG_OUTOFRANGE, "Option -%s%s is %" PetscInt_FMT ", but must be between %" PetscInt_FMT " and %" PetscInt_FMT, prefix, option + 1, asked, min, max);
  *value = asked;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const char *const Builds[]     = {"pays", "first", "assembly", "GallopBuildWhen", "GALLOP_BUILD_", NULL};
static const char *const Transposes[] = {"never", "gpu", "always", "GallopTransposeWhere", "GALLOP_TRANSPOSE_", NULL};
static const char *const Exchanges[]  = {"auto", "ipc", "nccl", "sf", "shared", "GallopExchangeWay", "GALLOP_EXCHANGE_", NULL};
static const char *const CSRStays[]   = {"auto", "keep", "release", "host", "GallopCSRStay", "GALLOP_CSR_", NULL};

/* What a new matrix begins with. Without a prefix these options are for all matrices: those of a preconditioner have prefixes that a user does not think of. */
PetscErrorCode MatGallopSetDefaults(Mat_Gallop *g)
{
  PetscReal bytes = 0;

  PetscFunctionBegin;
  g->build     = GALLOP_BUILD_PAYS;
  g->transpose = GALLOP_TRANSPOSE_GPU;
  PetscCall(PetscOptionsGetEnum(NULL, NULL, "-mat_gallop_build", Builds, (PetscEnum *)&g->build, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-mat_gallop_products", &g->products, NULL));
  PetscCall(PetscOptionsGetEnum(NULL, NULL, "-mat_gallop_explicit_transpose", Transposes, (PetscEnum *)&g->transpose, NULL));
  PetscCall(PetscOptionsGetEnum(NULL, NULL, "-mat_gallop_exchange", Exchanges, (PetscEnum *)&g->exchange.way, NULL));
  PetscCall(PetscOptionsGetEnum(NULL, NULL, "-mat_gallop_csr", CSRStays, (PetscEnum *)&g->csr, NULL));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-mat_gallop_memory", &bytes, NULL));
  PetscCheck(bytes >= 0 && bytes < (PetscReal)PETSC_COUNT_MAX, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Option -mat_gallop_memory is %.0f, but must be between 0 and %" PetscCount_FMT, (double)bytes, PETSC_COUNT_MAX);
  g->maxbytes = (PetscCount)bytes;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An option that is a number of bytes, 0 for no limit; *changed becomes true where it is another than before */
static PetscErrorCode OptionsBytes(PetscOptionItems PetscOptionsObject, const char option[], const char text[], const char man[], PetscCount *maxbytes, PetscBool *changed)
{
  PetscReal bytes = (PetscReal)*maxbytes;
  PetscBool set;

  PetscFunctionBegin;
  PetscCall(PetscOptionsReal(option, text, man, bytes, &bytes, &set));
  if (!set) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCheck(bytes >= 0 && bytes < (PetscReal)PETSC_COUNT_MAX, PetscOptionsObject->comm, PETSC_ERR_ARG_OUTOFRANGE, "Option -%s%s is %.0f, but must be between 0 and %" PetscCount_FMT,
             PetscOptionsObject->prefix ? PetscOptionsObject->prefix : "", option + 1, (double)bytes, PETSC_COUNT_MAX);
  if (*maxbytes != (PetscCount)bytes) *changed = PETSC_TRUE;
  *maxbytes = (PetscCount)bytes;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode StructureSetOptionsFromDatabase(Mat A, Mat_Gallop *g, GallopStructureKind kind, PetscBool *changed)
{
  GallopStructure    *structure = &g->structure[kind];
  const GallopFormat *format    = structure->type->format;
  char                option[64], prefix[64], man[64], text[128];
  PetscBool           set, inassembly;

  PetscFunctionBegin;
  *changed = PETSC_FALSE;
  PetscCall(PetscSNPrintf(prefix, sizeof(prefix), "-mat_%s_", format->name));
  PetscCall(PetscSNPrintf(man, sizeof(man), "%s%s", kind == GALLOP_FORMAT ? "MAT" : "", format->ucname));
  /* under a title of its own: -help shows a title once, and that of Mat is shown before the type is known */
  PetscCall(PetscSNPrintf(text, sizeof(text), "%s matrix options", format->ucname));
  PetscOptionsBegin(PetscObjectComm((PetscObject)A), ((PetscObject)A)->prefix, text, "Mat");
  PetscOptionsObject->options = ((PetscObject)A)->options;
  PetscCall((*format->options_set)(structure->options, prefix, PetscOptionsObject, changed));
  if (kind == GALLOP_FORMAT) {
    PetscCall(
      PetscOptionsEnum("-mat_gallop_build", "When the format is built: when products pay for it, at the first product, or in MatAssemblyEnd()", man, Builds, (PetscEnum)g->build, (PetscEnum *)&g->build, NULL));
    PetscCall(PetscSNPrintf(option, sizeof(option), "%sbuild_in_assembly", prefix));
    inassembly = (PetscBool)(g->build == GALLOP_BUILD_ASSEMBLY);
    PetscCall(PetscOptionsBool(option, "Build the format in MatAssemblyEnd() rather than when products pay for it", man, inassembly, &inassembly, &set));
    if (set) g->build = inassembly ? GALLOP_BUILD_ASSEMBLY : g->build == GALLOP_BUILD_ASSEMBLY ? GALLOP_BUILD_PAYS : g->build;
    PetscCall(GallopOptionsRangeInt(PetscOptionsObject, "-mat_gallop_products", "Products that are expected before entries change, 0 when unknown", man, &g->products, 0, PETSC_INT_MAX));
    PetscCall(PetscOptionsEnum("-mat_gallop_explicit_transpose", "Where transposed products get a format of the transpose, if the format itself does not compute them", man, Transposes, (PetscEnum)g->transpose,
                               (PetscEnum *)&g->transpose, NULL));
    PetscCall(PetscOptionsEnum("-mat_gallop_exchange", "How ghost values on the GPU go from process to process", man, Exchanges, (PetscEnum)g->exchange.way, (PetscEnum *)&g->exchange.way, NULL));
    PetscCall(PetscOptionsEnum("-mat_gallop_csr", "Whether the CSR arrays of a matrix assembled on the host stay on the GPU beside its format; auto: those of small matrices", man, CSRStays,
                               (PetscEnum)g->csr, (PetscEnum *)&g->csr, NULL));
    PetscCall(OptionsBytes(PetscOptionsObject, "-mat_gallop_memory", "Most bytes that the copies of a matrix, or of a block of an MPI matrix, may take together at each place; 0 for no limit", man, &g->maxbytes, changed));
  }
  PetscCall(PetscSNPrintf(option, sizeof(option), "%smemory", prefix));
  PetscCall(PetscSNPrintf(text, sizeof(text), "Most bytes that the %s copy of a matrix, %smay take; 0 for no limit", format->ucname, kind == GALLOP_FORMAT ? "or of a block of an MPI matrix, " : ""));
  PetscCall(PetscStrcmp(option, "-mat_gallop_memory", &set)); /* MATGALLOP has no other limit than that of all copies together */
  if (!set) PetscCall(OptionsBytes(PetscOptionsObject, option, text, man, &structure->maxbytes, changed));
  PetscOptionsEnd();
  if (*changed) PetscCall(MatGallopReset(structure));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Read when a matrix becomes ours, since MatConvert() and MatDuplicate() call no MatSetFromOptions(), and again in MatSetFromOptions() */
PetscErrorCode MatGallopSetOptionsFromDatabase(Mat A)
{
  Mat_Gallop          *g;
  PetscBool            changed[GALLOP_STRUCTURES];
  GallopTransposeWhere before;
  GallopExchangeWay    way;
  PetscCount           together;

  PetscFunctionBegin;
  PetscCall(MatGallopGetContext(A, &g));
  before   = g->transpose;
  way      = g->exchange.way;
  together = g->maxbytes;
  for (int s = 0; s < GALLOP_TRANSPOSE; s++) PetscCall(StructureSetOptionsFromDatabase(A, g, (GallopStructureKind)s, &changed[s]));
  if (together != g->maxbytes && !changed[GALLOP_TILEDSPMM]) {
    changed[GALLOP_TILEDSPMM] = PETSC_TRUE;
    PetscCall(MatGallopReset(&g->structure[GALLOP_TILEDSPMM]));
  }
  g->structure[GALLOP_TRANSPOSE].maxbytes = g->structure[GALLOP_FORMAT].maxbytes;
  changed[GALLOP_TRANSPOSE]               = (PetscBool)(changed[GALLOP_FORMAT] || g->transpose != before);
  if (changed[GALLOP_TRANSPOSE]) PetscCall(MatGallopReset(&g->structure[GALLOP_TRANSPOSE]));
  if (g->exchange.way != way) PetscCall(GallopExchangeReset(&g->exchange));
  PetscCall(OptionsToBlocks(A, g, changed));
  PetscFunctionReturn(PETSC_SUCCESS);
}
