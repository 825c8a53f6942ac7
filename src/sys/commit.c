/* SPDX-License-Identifier: BSD-2-Clause */
/* The commit that the library was built from. The makefile defines GALLOP_COMMIT for this file alone: a new commit compiles no other again. */

#include <petscgallop.h>
#include <petsc/private/petscimpl.h> /* for PetscAssertPointer() */

#if !defined(GALLOP_COMMIT)
  #define GALLOP_COMMIT "$Format:%h$" /* git archive puts the commit here */
#endif

/*@
  GallopGetCommit - Gets the git commit that the Gallop library was built from

  Not Collective

  Input Parameter:
. len - length of `commit` in characters; a longer text is cut

  Output Parameter:
. commit - the abbreviated hash, with `-dirty` behind it when files differed from the commit; `unknown` when the sources were neither a git clone nor made by `make dist`

  Level: intermediate

.seealso: `GallopGetVersion()`, `GallopView()`
@*/
PetscErrorCode GallopGetCommit(char commit[], size_t len)
{
  const char *const text = GALLOP_COMMIT;

  PetscFunctionBegin;
  PetscAssertPointer(commit, 1);
  PetscCall(PetscStrncpy(commit, text[0] == '$' ? "unknown" : text, len));
  PetscFunctionReturn(PETSC_SUCCESS);
}
