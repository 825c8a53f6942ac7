/* SPDX-License-Identifier: BSD-2-Clause */
static char help[] = "MATGALLOP measures its choice: without room, for transposed products, with a tune file, on several processes, and with real formats, on a GPU by its own clock.\n\n";

#include "tunetest.h"
#include <stdlib.h>
#include <unistd.h>

static PetscErrorCode Rooms(Case *c)
{
  const GallopChosen *chosen;
  PetscInt            lines, matches;

  PetscFunctionBegin;
  PetscCall(Begin(c, "no room for HBP", 5, 4, 6, 10));
  noroom[GALLOP_HBP] = PETSC_TRUE;
  PetscCall(Multiply(c, 3 * TURN));
  PetscCall(Check(c, GALLOP_EVCHYB, GALLOP_BY_TIMES, 1, 0, TURN));
  PetscCall(GetChosen(c, &chosen));
  TestCheck(chosen->nofit, "nobody says so", c->what);
  PetscCall(End(c));

  PetscCall(Begin(c, "no room for EVCHYB beside HBP", 4, 5, 6, 10));
  PetscCall(Multiply(c, TURN + 1));
  noroom[GALLOP_EVCHYB] = PETSC_TRUE;
  PetscCall(Multiply(c, 2 * TURN));
  PetscCall(Check(c, GALLOP_HBP, GALLOP_BY_TIMES, 0, 1, TURN));
  PetscCall(End(c));

  PetscCall(Begin(c, "room for the parent alone, which is a candidate", 4, 5, 6, 10));
  noroom[GALLOP_EVCHYB] = noroom[GALLOP_HBP] = PETSC_TRUE;
  PetscCall(Multiply(c, 2 * TURN));
  PetscCall(Check(c, GALLOP_PARENT, GALLOP_BY_RULES, 0, 0, 2 * TURN));
  PetscCall(End(c));

  /* new values of both formats find no room: all begins anew */
  PetscCall(Begin(c, "no room for new values", 4, 5, 6, 10));
  PetscCall(Multiply(c, 2 * TURN + 2));
  noroom[GALLOP_HBP] = rebuilds = PETSC_TRUE;
  PetscCall(NewValues(c));
  PetscCall(Multiply(c, 3 * TURN));
  PetscCall(Check(c, GALLOP_EVCHYB, GALLOP_BY_TIMES, 3, 1, -1));
  PetscCall(End(c));

  /* whose times say nothing of the one that comes instead */
  PetscCall(Begin(c, "EVCHYB is the fastest", 4, 5, 6, 10));
  PetscCall(Multiply(c, 3 * TURN + 1));
  PetscCall(Check(c, GALLOP_EVCHYB, GALLOP_BY_TIMES, 1, 1, TURN));
  PetscCall(End(c));
  PetscCall(Begin(c, "no room for what is known to be the fastest", 4, 5, 6, 10));
  noroom[GALLOP_EVCHYB] = PETSC_TRUE;
  PetscCall(Multiply(c, 2));
  PetscCall(Check(c, GALLOP_CSROVERLAP, GALLOP_BY_RULES, 0, 0, 0));
  PetscCall(End(c));
  PetscCall(GallopTuneForget());

  /* nor has the parent a time, so that nothing is known */
  PetscCall(Begin(c, "room for CSROVERLAP alone", 4, 5, 0, 10));
  noroom[GALLOP_EVCHYB] = noroom[GALLOP_HBP] = PETSC_TRUE;
  PetscCall(Multiply(c, 2 * TURN));
  PetscCall(Check(c, GALLOP_CSROVERLAP, GALLOP_BY_RULES, 0, 0, TURN));
  PetscCall(End(c));
  PetscCall(TestCaptureBegin());
  PetscCall(Begin(c, "no room for any", 4, 5, 0, 10));
  noroom[GALLOP_EVCHYB] = noroom[GALLOP_HBP] = noroom[GALLOP_CSROVERLAP] = PETSC_TRUE;
  PetscCall(Multiply(c, 2 * TURN));
  TestCheck(!alive, "a format is there", c->what);
  PetscCall(End(c));
  PetscCall(TestCaptureEnd("no room for the GALLOP format", &lines, &matches));
  TestCheck(lines == 1 && matches == 1, "%" PetscInt_FMT " messages, %" PetscInt_FMT " of them right", c->what, lines, matches);

  /* with the rules */
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_choose", "rules"));
  PetscCall(Begin(c, "no room, by rules", 4, 5, 6, 10));
  noroom[GALLOP_HBP] = PETSC_TRUE;
  PetscCall(Multiply(c, 2));
  PetscCall(GetChosen(c, &chosen));
  TestCheck(chosen->tuned.choice == GALLOP_CSROVERLAP && multiplied[GALLOP_CSROVERLAP] == 2, "choice %d", c->what, (int)chosen->tuned.choice);
  PetscCall(End(c));
  PetscCall(Begin(c, "no room for any, by rules", 4, 5, 6, 10));
  noroom[GALLOP_HBP] = noroom[GALLOP_CSROVERLAP] = PETSC_TRUE;
  PetscCall(Multiply(c, 3));
  PetscCall(End(c));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_choose", "measure"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A transposed product is the parent's own, or that of a format of the transpose, which the rules choose: no time of the parent's holds for it */
static PetscErrorCode Transposes(Case *c)
{
  MatGallopStatistics s;

  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_explicit_transpose", "always"));
  PetscCall(Begin(c, "a transpose", 4, 5, 6, 10));
  for (int k = 0; k < 3; k++) {
    PetscCall(TestSpoilVec(c->z));
    PetscCall(MatMultTranspose(c->A, c->x, c->z));
    PetscCall(TestCompare(c->R, TEST_TRANSPOSE, c->x, NULL, c->z, c->what));
  }
  PetscCall(MatGallopGetStatistics(c->A, &s));
  TestCheck(!s.fallbacks && s.products_host == 3 && s.transpose_builds == 1 && !s.builds, "%" PetscInt64_FMT " products by the parent, %" PetscInt64_FMT " by us, %" PetscInt64_FMT " and %" PetscInt64_FMT " builds", c->what, s.fallbacks, s.products_host, s.transpose_builds, s.builds);
  TestCheck(multiplied[GALLOP_HBP] == 3, "another format computed", c->what);
  PetscCall(End(c));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_gallop_explicit_transpose"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is measured goes to the file, and comes back for another process, or for this one that has forgotten it */
static PetscErrorCode File(Case *c, const char what[], const char file[])
{
  PetscFunctionBegin;
  (void)remove(file);
  PetscCall(GallopTuneForget());
  PetscCall(Begin(c, what, 4, 5, 6, 10));
  PetscCall(Multiply(c, 3 * TURN + 1));
  PetscCall(Check(c, GALLOP_EVCHYB, GALLOP_BY_TIMES, 1, 1, TURN));
  PetscCall(End(c));
  PetscCall(GallopTuneForget());
  PetscCall(Begin(c, what, 4, 5, 6, 10));
  PetscCall(Multiply(c, 2));
  PetscCall(Check(c, GALLOP_EVCHYB, GALLOP_BY_FILE, 1, 0, 0));
  PetscCall(End(c));
  PetscCall(GallopTuneForget());
  PetscCall(PetscStrncpy(gpu, "another GPU", sizeof(gpu)));
  PetscCall(Begin(c, what, 4, 5, 6, 10));
  PetscCall(Multiply(c, 2));
  PetscCall(Check(c, GALLOP_PARENT, GALLOP_BY_COMING_TIMES, 0, 0, 2));
  PetscCall(End(c));
  PetscCall(PetscStrncpy(gpu, "a made-up GPU", sizeof(gpu)));
  PetscCall(GallopTuneForget());
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_choose", "rules"));
  PetscCall(Begin(c, what, 4, 5, 6, 10));
  PetscCall(Multiply(c, 2));
  PetscCall(Check(c, GALLOP_HBP, GALLOP_BY_RULES, 0, 1, 0));
  PetscCall(End(c));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_choose", "measure"));
  PetscCall(GallopTuneForget());
  (void)remove(file);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Files(Case *c)
{
  char file[64];

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(file, sizeof(file), "gallop-tune-%d-a", (int)getpid()));
  PetscCheck(!setenv("GALLOP_TUNE_FILE", file, 1), PETSC_COMM_SELF, PETSC_ERR_SYS, "no environment");
  PetscCall(File(c, "a file by the environment", file));
  PetscCall(PetscSNPrintf(file, sizeof(file), "gallop-tune-%d-b", (int)getpid()));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_tune_file", file));
  PetscCall(File(c, "a file by option", file));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_tune_file", ""));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Processes choose for themselves, and differ */
static PetscErrorCode Processes(void)
{
  Mat         A, R;
  Vec         x, z;
  Case        c = {.what = "processes"};
  PetscMPIInt rank;
  const void *data;
  Mat         diagonal, off;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(Begin(&c, "processes", rank ? 7 : 4, 5, 6, 10));
  PetscCall(End(&c));
  PetscCall(Create(PETSC_COMM_WORLD, MATMPIAIJGALLOP, &A));
  PetscCall(Create(PETSC_COMM_WORLD, MATMPIAIJ, &R));
  PetscCall(MatCreateVecs(R, &x, &z));
  PetscCall(TestSetVec(x, 3));
  clockhere.l2 = (PetscCount)((PetscReal)Rows * sizeof(PetscScalar) / (PetscReal)0.9);
  for (PetscInt k = 0; k < 4 * TURN; k++) {
    PetscCall(TestSpoilVec(z));
    PetscCall(MatMult(A, x, z));
    if (k % TURN == 0) PetscCall(TestCompare(R, TEST_MULT, x, NULL, z, c.what));
  }
  PetscCall(TestCompare(R, TEST_MULT, x, NULL, z, c.what));
  PetscCall(MatMPIAIJGetSeqAIJ(A, &diagonal, &off, NULL));
  PetscCall(MatGallopGetFormatData(diagonal, PETSC_MEMTYPE_HOST, &data));
  TestCheck(data, "nothing is chosen", c.what);
  TestCheck(((const GallopChosen *)data)->tuned.choice == (rank ? GALLOP_HBP : GALLOP_EVCHYB), "choice %d", c.what, (int)((const GallopChosen *)data)->tuned.choice);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Real formats, and on a GPU its clock: whatever is chosen, products are right and counted, and one format at most is left */
static PetscErrorCode Real(Case *c, PetscBool device)
{
  const GallopChosen *chosen;
  MatGallopStatistics s;
  const void         *data;
  PetscInt            k;
  Vec                 x, z;

  PetscFunctionBegin;
  StandIn(PETSC_FALSE);
  if (!device) GallopClockHost = &clockhere;
  PetscCall(Begin(c, "real formats", 4, 5, 6, 10));
  if (device) PetscCall(MatCreateVecs(c->A, &x, &z));
  else {
    PetscCall(VecDuplicate(c->x, &x));
    PetscCall(VecDuplicate(c->z, &z));
  }
  PetscCall(TestSetVec(x, 3));
  for (k = 0; k < 100; k++) {
    PetscCall(TestSpoilVec(z));
    PetscCall(MatMult(c->A, x, z));
    if (k % 20 < 3 || !device) PetscCall(TestCompare(c->R, TEST_MULT, x, NULL, z, c->what));
    PetscCall(MatGallopGetFormatData(c->A, device ? PETSC_MEMTYPE_CUDA : PETSC_MEMTYPE_HOST, &data));
    TestCheck(data, "nothing is chosen", c->what);
    chosen = (const GallopChosen *)data;
    if (!chosen->measure) break;
  }
  TestCheck(!chosen->measure, "after 100 products it is still measured", c->what);
  TestCheck(!chosen->best.format, "two formats are kept", c->what);
  PetscCall(MatGallopGetStatistics(c->A, &s));
  TestCheck(s.fallbacks + s.products_host + s.products_device == k + 1, "%" PetscInt64_FMT " products are counted, not %" PetscInt_FMT, c->what, s.fallbacks + s.products_host + s.products_device, k + 1);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscCall(MatDestroy(&c->A));
  StandIn(PETSC_TRUE);
  PetscCall(GallopTuneForget());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A format is measured beside others as long as the GPU has the CSR arrays to build them from; not where these go at once */
static PetscErrorCode Released(Case *c)
{
  const void         *data;
  MatGallopStatistics s;
  Vec                 x, z;

  PetscFunctionBegin;
  StandIn(PETSC_FALSE);
  for (int k = 0; k < 2; k++) {
    PetscCall(PetscOptionsSetValue(NULL, "-mat_gallop_csr", k ? "release" : "keep"));
    PetscCall(Begin(c, k ? "arrays that go" : "arrays that stay", 4, 5, 6, 10));
    PetscCall(MatCreateVecs(c->A, &x, &z));
    PetscCall(TestSetVec(x, 3));
    PetscCall(MatMult(c->A, x, z));
    PetscCall(TestCompare(c->R, TEST_MULT, x, NULL, z, c->what));
    PetscCall(MatGallopGetFormatData(c->A, PETSC_MEMTYPE_CUDA, &data));
    TestCheck(data, "nothing is chosen", c->what);
    TestCheck(!((const GallopChosen *)data)->measure == (k > 0), "formats are %smeasured", c->what, k ? "" : "not ");
    PetscCall(MatGallopGetStatistics(c->A, &s));
    TestCheck(s.csr_releases + s.csr_uploads == k, "%" PetscInt64_FMT " releases, %" PetscInt64_FMT " uploads", c->what, s.csr_releases, s.csr_uploads);
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&z));
    PetscCall(End(c));
    PetscCall(GallopTuneForget());
  }
  PetscCall(PetscOptionsClearValue(NULL, "-mat_gallop_csr"));
  StandIn(PETSC_TRUE);
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Case        c;
  PetscBool   device = PETSC_FALSE;
  PetscMPIInt size;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(GallopInitializePackage());
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(TestHasDevice(&device));
  PetscCall(CaseCreate(&c));
  if (size > 1) PetscCall(Processes());
  else {
    PetscCall(Rooms(&c));
    PetscCall(Transposes(&c));
    PetscCall(Files(&c));
    PetscCall(Real(&c, PETSC_FALSE));
    if (device) {
      PetscCall(Real(&c, PETSC_TRUE));
      PetscCall(Released(&c));
    }
  }
  PetscCall(CaseDestroy(&c));
  PetscCall(PetscFinalize());
  return 0;
}

/*TEST

  test:
    nsize: {{1 2}}
    args: -format gallop
    output_file: output/empty.out

TEST*/
