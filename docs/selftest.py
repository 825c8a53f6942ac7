# SPDX-License-Identifier: BSD-2-Clause
"""That the scripts beside this one find what they are made to find. config/docs runs these tests."""

import tempfile
import unittest
from pathlib import Path

import checklinks
import manualpages

HEADER = '#define MATX "x"\nPETSC_EXTERN PetscErrorCode MatXDo(Mat, PetscInt, PetscInt *);\n'
TYPE = """/*MC
  MATX - "x" - A type

  Options Database Keys:
+ -mat_type x     - sets the type
- -mat_x_size <1> - a size

  Level: beginner

.seealso: `MatXDo()`
M*/
const GallopFormat GallopFormat_X = {
  .name = MATX,
};
PetscCall(PetscOptionsInt("-mat_x_size", "A size", "MATX", n, &n, NULL));
"""
FUNCTION = """/*@
  MatXDo - Does something

  Collective

  Input Parameters:
+ A - the matrix
- n - a number

  Output Parameter:
. m - another

  Level: beginner

.seealso: `MATX`
@*/
PetscErrorCode MatXDo(Mat A, PetscInt n, PetscInt *m)
{
"""


class ManualPages(unittest.TestCase):
    """A tree with one type and one function, and what is wrong when a line of it is changed."""

    def problems(self, old="", new="", extra="", name="docs/extra.md"):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            source = (TYPE + FUNCTION).replace(old, new) if old else TYPE + FUNCTION
            self.assertTrue(not old or old in TYPE + FUNCTION)
            for path, text in (("include/petscgallop.h", HEADER), ("src/x.c", source), (name, extra)):
                (root / path).parent.mkdir(exist_ok=True)
                (root / path).write_text(text)
            return [f"{path}:{line}: {text}" for path, line, text in manualpages.read_and_check(root).problems]

    def one(self, expected, *args, **kwargs):
        found = self.problems(*args, **kwargs)
        self.assertEqual(len(found), 1, found)
        self.assertRegex(found[0], expected)

    def test_good(self):
        self.assertEqual(self.problems(), [])

    def test_summary(self):
        self.assertRegex(
            self.problems("MatXDo - Does something", "MatXDo")[0], r"src/x.c:\d+: the first line of a page"
        )

    def test_level(self):
        self.one("MATX has no Level:", "  Level: beginner\n\n.seealso: `MatXDo", "\n.seealso: `MatXDo")
        self.one("src/x.c:8: Level: simple is none of", "beginner\n\n.seealso: `MatXDo", "simple\n\n.seealso: `MatXDo")

    def test_collective(self):
        self.one("MatXDo does not say whether it is collective", "  Collective\n", "")

    def test_parameters(self):
        found = self.problems("- n - a number", "- k - a number")
        self.assertEqual(len(found), 2, found)
        self.assertRegex(
            " ".join(found), "k is no parameter in the prototype.*the parameter n of MatXDo is not described"
        )
        self.one("n of MatXDo is more than once described", "- n - a number", ". n - a number\n- n - again")

    def test_bullets(self):
        self.one("its 2 items begin with .-, and should with \\+-", "+ A - the matrix", ". A - the matrix")
        self.one("Parameters: is followed by 1 item", "Output Parameter:", "Output Parameters:")

    def test_seealso(self):
        self.one("neither Gallop nor .* has a page MatXUndo", ".seealso: `MATX`", ".seealso: `MatXUndo()`")
        self.one("have \\(\\): MatXDo", ".seealso: `MatXDo()`", ".seealso: `MatXDo`")
        self.one("names stand in", ".seealso: `MATX`", ".seealso: `MATX`, MATX")

    def test_options(self):
        self.one(
            "src/x.c:\\d+: the option -mat_x_more is on no manual page",
            "  .name = MATX,",
            '  .name = MATX, "-mat_x_more"',
        )
        self.one("docs/extra.md:1: -mat_x_none is no option", extra="`-mat_x_none`")

    def test_header(self):
        found = self.problems("MatXDo", "MatXDid")
        self.assertRegex(" ".join(found), "petscgallop.h:2: the function MatXDo has no manual page")

    def test_messages(self):
        self.one(
            "docs/troubleshooting.md:1: neither src/ nor config/ has",
            extra="### `Not <type> said`",
            name="docs/troubleshooting.md",
        )
        self.assertEqual(self.problems(extra="### `A size`", name="docs/troubleshooting.md"), [])
        self.one("has a message with: A side", extra="- `A side`: no", name="docs/troubleshooting.md")

    def test_messages_not_quoted(self):
        def problems(call, extra):
            return self.problems("  .name = MATX,", f"  .name = MATX, {call}", extra, "docs/troubleshooting.md")

        check = 'PetscCheck(f(n, ")"), comm, PETSC_ERR_SUP, "The size is %" PetscInt_FMT ", not %s of it", n, g(n));'
        self.assertRegex(problems(check, "")[0], r"src/x.c:\d+: .* does not quote: The size is <>, not <> of it")
        self.assertEqual(problems(check, "### `The size is <size>, not <part> of it`"), [])
        self.assertEqual(problems(check, "Also `The size is <size>`."), [])
        self.assertEqual(len(problems(check, "Also `of it`.")), 1)
        self.assertEqual(len(problems(check, "Also `of it <and> The size is`.")), 1)
        self.assertEqual(problems(check.replace("PETSC_ERR_SUP", "PETSC_ERR_PLIB"), ""), [])
        self.assertEqual(problems('PetscPrintf(comm, "What was asked for");', ""), [])
        stderr = 'PetscFPrintf(comm, PETSC_STDERR, "No room\\n");'
        self.assertEqual(len(problems(stderr, "")), 1)
        self.assertEqual(problems(stderr, "`No room`"), [])


class Links(unittest.TestCase):
    def problems(self, body):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "a.html").write_text('<p id="here">' + body)
            (Path(folder) / "b.html").write_text('<h1 id="there">')
            return checklinks.check(folder)

    def test_links(self):
        problems, external = self.problems(
            '<a href="#here"></a><a href="b.html#there"></a><a href="https://petsc.org"></a>'
        )
        self.assertEqual((problems, external), ({"a.html": [], "b.html": []}, ["https://petsc.org"]))
        self.assertIn("dead link", self.problems('<a href="c.html"></a>')[0]["a.html"][0])
        self.assertIn("no such anchor", self.problems('<a href="b.html#here"></a>')[0]["a.html"][0])
        self.assertIn("dead link", self.problems('<a href="../b.html"></a>')[0]["a.html"][0])

    def test_long_code(self):
        self.assertEqual(self.problems(f"<pre>{'x' * checklinks.LONGEST}\ny</pre>{'x' * 200}")[0]["a.html"], [])
        self.assertIn("code is cut", self.problems(f"<pre>y\n{'x' * (checklinks.LONGEST + 1)}</pre>")[0]["a.html"][0])

    def test_other_hosts(self):
        for body in (
            '<script src="https://cdn.example/x.js"></script>',
            '<link rel="stylesheet" href="//cdn.example/x.css">',
            '<img src="http://cdn.example/x.png">',
        ):
            self.assertIn("loads from another host", self.problems(body)[0]["a.html"][0])
