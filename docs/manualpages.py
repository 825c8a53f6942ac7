#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Make a page of each manual page in the comments of src/ and include/, and check them.

usage: manualpages.py                 check only
       manualpages.py FOLDER          and write pages, an index, a list of options and names.json into FOLDER
       manualpages.py --petsc SOURCE  write docs/petsc-manualpages.txt: which of PETSc's manual pages ours and the docs name,
                                      and in which section of PETSc's site they are, from PETSc's source

A manual page is a comment that begins with /*@ (a function), /*MC (a type or another name), /*S, /*E or /*J (a struct,
an enum, a type that is a string), in the form of PETSc's:

  Name - Summary
  Collective, Not Collective or Logically Collective    of a function
  Input Parameters:, Output Parameters:, Fields:,       lists: one item begins with ".", the first of several
  Options Database Keys:, References:                   with "+", the last with "-", those between with "."
  Level: beginner, intermediate, advanced or developer
  Note:, Notes:, Developer Note:, Developer Notes:      text
  .seealso: `Name`, `Function()`

What is checked: that form; that parameters are those of the prototype and fields those of the struct; that what .seealso
names exists; that each function, type and string macro of include/petscgallop.h has a page, and each option that src/ reads
is described on one; that pages and docs name no option of ours that src/ does not read; that messages in
docs/troubleshooting.md are in src/ or config/, and those of src/ that a user can see on that page. A line FILE:LINE:
MESSAGE tells what is wrong.
"""

import collections
import json
import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEVELS = ("beginner", "intermediate", "advanced", "developer")
LISTS = ("Input Parameter", "Output Parameter", "Input/Output Parameter", "Options Database Key", "Field", "Reference")
TEXTS = ("Note", "Developer Note")
COLLECTIVE = re.compile(r"(Not|Logically) Collective|Collective")
CLOSING = {"@": "@", "MC": "M", "S": "S", "E": "E", "J": "J"}
PETSC_SITE = "https://petsc.org/release/manualpages"
PRINTING = ("PetscCheck", "SETERRQ", "FAIL", "PetscInfo", "PetscErrorPrintf", "PetscFPrintf")  # PetscPrintf(): asked for
NOT_QUOTED = {  # messages, by their beginnings, that docs/troubleshooting.md need not quote, and why
    "PETSc was configured without CUDA": "of functions that nothing calls without CUDA",
    "Packed entries: the new values take another dictionary": "tells of normal work with -info",
    "EVC-HYB: the new values of a": "tells of normal work with -info",
    "EVC-HYB: <> clusters": "tells of normal work with -info",
    "<>: by <>, with": "tells of normal work with -info",
    "NCCL: <> is version": "tells of normal work with -info",
    "CUDA IPC: a stream can": "tells of normal work with -info",
    "Ghost rows: <> columns": "tells of normal work with -info",
    "Units of <> numbers from <>: by <>": "tells of normal work with -info",
    "cuStreamBatchMemOp() failed": "was tried before, and worked",
    "Performing iterative refinement": "PETSc's words with -info",
}

# the other names of a matrix type, MATX, have pages by one text
OTHER_NAMES = {
    "AIJ": """MATAIJ{X} - MAT{X} = "aij{x}" - Another name of `MAT{X}`: `MATSEQAIJ{X}` on one MPI process and `MATMPIAIJ{X}` on several

Options Database Key:
. -mat_type aij{x} - sets the matrix type during `MatSetFromOptions()`

Level: beginner

Note:
`MAT{X}` has the options and tells what the type does.

.seealso: `MAT{X}`, `MATSEQAIJ{X}`, `MATMPIAIJ{X}`, `MATAIJ`, `MATAIJCUSPARSE`, `MatGallopGetStatistics()`
""",
    "SEQAIJ": """MATSEQAIJ{X} - MAT{X} = "seqaij{x}" - `MAT{X}` on one MPI process

Options Database Keys:
+ -mat_type seqaij{x} - sets the matrix type during `MatSetFromOptions()`
- -mat_seqaij_type seqaij{x} - makes every `MATSEQAIJ` matrix one of this type

Level: beginner

Note:
A subclass of `MATSEQAIJCUSPARSE` where there is a GPU, else of `MATSEQAIJ`. `MAT{X}` has the options of the format.

.seealso: `MAT{X}`, `MATAIJ{X}`, `MATMPIAIJ{X}`, `MATSEQAIJ`, `MATSEQAIJCUSPARSE`, `MatGallopGetStatistics()`
""",
    "MPIAIJ": """MATMPIAIJ{X} - MAT{X} = "mpiaij{x}" - `MAT{X}` on several MPI processes: the diagonal and off-diagonal blocks are of type `MATSEQAIJ{X}`

Options Database Key:
. -mat_type mpiaij{x} - sets the matrix type during `MatSetFromOptions()`

Level: beginner

Note:
A subclass of `MATMPIAIJCUSPARSE` where every MPI process finds a GPU, else of `MATMPIAIJ`. `MAT{X}` has the options of the format; they hold for each block.

.seealso: `MAT{X}`, `MATAIJ{X}`, `MATSEQAIJ{X}`, `MATMPIAIJ`, `MATMPIAIJCUSPARSE`, `MatGallopGetStatistics()`
""",
}

Item = collections.namedtuple("Item", "name rest text line")


class Page:
    """What one comment says."""

    def __init__(self, kind, path, line):
        self.kind, self.path, self.line = kind, path, line
        self.name, self.value, self.summary, self.synopsis, self.level, self.collective = "", "", "", "", "", ""
        self.sections, self.seealso = [], []  # (title, line, list of items or of paragraphs), (name, line)

    def items(self, *titles):
        return [item for title, _, body in self.sections if title in titles for item in body]

    def is_function(self):
        return self.kind == "@"


class Reader:
    """Reads the tree's sources; problems are told at the end, with their place."""

    def __init__(self, root):
        self.root, self.pages, self.problems, self.read_options = Path(root), {}, [], {}
        self.files = sorted(
            path
            for folder in ("include", "src")
            for path in (self.root / folder).rglob("*")
            if path.suffix in (".c", ".cu", ".cuh", ".h")
        )
        self.header = self.root / "include" / "petscgallop.h"
        self.petsc = read_petsc(self.root)
        self.texts = {path: path.read_text() for path in self.files}
        self.strings = dict(re.findall(r'^#define\s+(\w+)\s+"(\w+)"', self.texts[self.header], re.M))

    def problem(self, path, line, text):
        self.problems.append((str(Path(path).relative_to(self.root)), line, text))

    # ---- reading -----------------------------------------------------------------------------------------------

    def read(self):
        for path, text in self.texts.items():
            for match in re.finditer(r"^/\*(@|MC|S|E|J)[ \t]*\n(.*?)\*/", text, re.M | re.S):
                line = text.count("\n", 0, match.start()) + 1
                page = Page(match.group(1), path, line)
                body = match.group(2)
                if not body.rstrip(" ").endswith(CLOSING[page.kind]):
                    self.problem(path, line, f"begins with /*{page.kind} but does not end with {CLOSING[page.kind]}*/")
                body = re.sub(r"[@MSEJ][ \t]*$", "", body)
                self.parse(page, body, line + 1)
                self.follow(page, text[match.end() :])
                if page.name in self.pages:
                    other = self.pages[page.name]
                    self.problem(path, line, f"{page.name} has another page in {other.path.name}:{other.line}")
                elif page.name:
                    self.pages[page.name] = page
        for root in [page for page in self.pages.values() if page.kind == "MC"]:
            for prefix, text in OTHER_NAMES.items():
                other = root.name.replace("MAT", f"MAT{prefix}", 1)
                if other in self.strings and other not in self.pages:
                    page = self.pages[other] = Page("MC", root.path, root.line)
                    self.parse(page, text.replace("{X}", root.name[len("MAT") :]).replace("{x}", self.strings[root.name]), root.line)

    def parse(self, page, body, first):
        lines, section = body.split("\n"), None
        indent = next((len(line) - len(line.lstrip()) for line in lines if line.strip()), 0)  # .seealso: has less
        lines = [line[indent:] if line[:indent].isspace() else line for line in lines]
        for number, line in enumerate(lines, first):
            line = line.rstrip()
            heading = re.fullmatch(r"([A-Z][A-Za-z/ ]*[A-Za-z])\s*:", line)
            if not page.name:
                if line.strip():
                    self.title(page, line.strip(), number)
            elif line.startswith(".seealso:"):
                section = ("seealso", number, [])
                self.see(page, line[len(".seealso:") :], number)
            elif section and section[0] == "seealso":
                self.see(page, line, number)
            elif re.match(r"Level\s*:", line):
                page.level, section = line.split(":", 1)[1].strip(), None
                if page.level not in LEVELS:
                    self.problem(page.path, number, f"Level: {page.level} is none of {', '.join(LEVELS)}")
            elif COLLECTIVE.fullmatch(line):
                page.collective, section = line, None
            elif heading:
                title = re.sub(r"(?<=[a-z])s$", "", heading.group(1))
                if title not in LISTS + TEXTS:
                    self.problem(page.path, number, f"no section that pages have: {line}")
                section = (title, number, [])
                page.sections.append(section)
            elif section is None and line:
                section = ("", number, [line.strip()])
                page.sections.append(section)
            elif section and section[0] in LISTS:
                self.item(page, section, line, number)
            elif section:
                self.paragraph(section[2], line)
        for title, number, items in page.sections:
            if title in LISTS:
                self.bullets(page, title, number, items, lines[number - first].rstrip(" :"))

    def title(self, page, line, number):
        match = re.fullmatch(r'(\w+) - (?:(?:\w+ = )?"(\w+)" - )?(\S.*)', line)
        if not match:
            self.problem(page.path, number, f"the first line of a page is `Name - Summary`, not: {line}")
            page.name = re.split(r"\W", line)[0] or "?"
            return
        page.name, page.value, page.summary = match.group(1), match.group(2) or "", match.group(3)

    def see(self, page, line, number):
        for word in filter(None, (word.strip() for word in line.split(","))):
            match = re.fullmatch(r"`([A-Za-z_]\w*(?:\(\))?)`", word)
            if match:
                page.seealso.append((match.group(1), number))
            else:
                self.problem(
                    page.path, number, f".seealso: names stand in `backticks`, with commas between them: {word}"
                )

    def item(self, page, section, line, number):
        match = re.match(r"([+.-]) (?=\S)(.*)", line)
        if match:
            form = {"Options Database Key": r"(-\w+)((?: <[^>]*>| \w+)?)\s+- (\S.*)", "Reference": r"(\*)() - (\S.*)"}
            parts = re.fullmatch(form.get(section[0], r"(\w+)()\s+- (\S.*)"), match.group(2))
            if not parts:
                return self.problem(page.path, number, f"an item is `name - text`, not: {match.group(2)}")
            section[2].append(Item(parts.group(1), parts.group(2).strip(), [match.group(1), parts.group(3)], number))
        elif line and section[2]:
            section[2][-1].text.append(line.strip())
        elif line:
            self.problem(page.path, number, f"an item begins with +, . or -: {line.strip()}")

    def bullets(self, page, title, number, items, heading):
        marks = "".join(item.text.pop(0) for item in items)
        wanted = "." if len(items) == 1 else "+" + "." * (len(items) - 2) + "-"
        if not items:
            self.problem(page.path, number, f"{heading}: has no items")
        elif marks != wanted:
            self.problem(
                page.path, number, f"{heading}: its {len(items)} items begin with {marks}, and should with {wanted}"
            )
        elif title != "Reference" and (len(items) > 1) != heading.endswith("s"):  # PETSc writes References: of one too
            self.problem(page.path, number, f"{heading}: is followed by {len(items)} item{'s' * (len(items) > 1)}")

    @staticmethod
    def paragraph(body, line):
        if not line:
            body.append("")
        elif body and body[-1]:
            body[-1] += "\n" + line
        elif body:
            body[-1] = line
        else:
            body.append(line)

    def follow(self, page, text):
        """What stands after the comment of a function or a struct."""
        if page.kind == "@":
            match = re.match(r"\s*((?:\w+\s+)+\**(\w+)\((.*?)\))\s*[{;]", text, re.S)
            if not match or match.group(2) != page.name:
                return self.problem(page.path, page.line, f"the prototype of {page.name} does not follow its page")
            page.synopsis = re.sub(r"\s+", " ", match.group(1)) + ";"
            arguments = [] if match.group(3).strip() == "void" else re.split(r",(?![^()]*\))", match.group(3))
            names = [re.search(r"\(\*(\w+)\)|(\w+)\s*(?:\[\w*\])*\s*$", argument).group(1, 2) for argument in arguments]
            self.compare(
                page,
                "parameter",
                [name[0] or name[1] for name in names],
                page.items("Input Parameter", "Output Parameter", "Input/Output Parameter"),
                "prototype",
            )
        elif page.kind == "S":
            match = re.match(r"\s*typedef struct\s*\w*\s*\{(.*?)\}\s*(\w+);", text, re.S)
            if not match or match.group(2) != page.name:
                return self.problem(page.path, page.line, f"the struct {page.name} does not follow its page")
            page.synopsis = textwrap.dedent(match.group(0)).strip()
            fields = re.findall(r"(\w+)\s*(?:\[\w*\])*\s*(?=[,;])", match.group(1))
            self.compare(page, "field", fields, page.items("Field"), "struct")

    def compare(self, page, what, wanted, items, where):
        for item in items:
            if item.name not in wanted:
                self.problem(page.path, item.line, f"{item.name} is no {what} in the {where} of {page.name}")
        described = [item.name for item in items]
        for name in wanted:
            if described.count(name) != 1:
                count = "not" if name not in described else "more than once"
                self.problem(page.path, page.line, f"the {what} {name} of {page.name} is {count} described")

    # ---- what pages have to have ---------------------------------------------------------------------------------

    def check(self):
        for page in self.pages.values():
            if not page.level:
                self.problem(page.path, page.line, f"{page.name} has no Level:")
            if page.is_function() and not page.collective:
                self.problem(page.path, page.line, f"{page.name} does not say whether it is collective")
            if not page.seealso:
                self.problem(page.path, page.line, f"{page.name} has no .seealso:")
            if page.value and self.strings.get(page.name, page.value) != page.value:
                self.problem(page.path, page.line, f'{page.name} is "{self.strings[page.name]}" in {self.header.name}')
            if page.name in self.strings and not page.value:
                self.problem(
                    page.path, page.line, f'the first line of {page.name} lacks its value: `Name - "value" - Summary`'
                )
            if page.kind == "MC" and page.name in self.strings:
                page.synopsis = f'#define {page.name} "{self.strings[page.name]}"'
            for name, line in page.seealso:
                self.check_name(page, name, line)
        self.check_header()
        self.check_options()
        self.check_messages()

    def check_name(self, page, name, line):
        bare = name.replace("()", "")
        if bare == page.name:
            self.problem(page.path, line, f".seealso: {name} is this page itself")
        elif bare in self.pages:
            if self.pages[bare].is_function() != (bare != name):
                self.problem(page.path, line, f".seealso: functions, and they only, have (): {name}")
        elif bare not in self.petsc:
            self.problem(
                page.path,
                line,
                f".seealso: neither Gallop nor docs/petsc-manualpages.txt has a page {name} "
                "(PETSc's are added by docs/manualpages.py --petsc)",
            )

    def check_header(self):
        text = self.texts[self.header]
        kinds = (
            ("function", r"^PETSC_EXTERN\s+\w+\s+(\w+)\("),
            ("type", r'^#define\s+(\w+)\s+"'),
            ("struct", r"^\}\s*(\w+);"),
        )
        for kind, pattern in kinds:
            for match in re.finditer(pattern, text, re.M):
                if match.group(1) not in self.pages:
                    line = text.count("\n", 0, match.start()) + 1
                    self.problem(self.header, line, f"the {kind} {match.group(1)} has no manual page")

    def check_options(self):
        formats, suffixes = {}, []
        for path, text in self.texts.items():
            code = re.sub(r"/\*.*?\*/", lambda match: re.sub(r"[^\n]", " ", match.group()), text, flags=re.S)
            for match in re.finditer(r'"(-[a-z]\w+)"', code):
                self.read_options.setdefault(match.group(1), (path, code.count("\n", 0, match.start()) + 1))
            for match in re.finditer(r'"%s(\w+)", prefix\)', code):  # one for every format, by its name
                suffixes.append((match.group(1), path, code.count("\n", 0, match.start()) + 1))
            for match in re.finditer(
                r'^const GallopFormat \w+ = \{\s*\.name\s*= (?:"(\w+)"|(\w+)),.*?^\};', code, re.M | re.S
            ):
                formats[match.group(1) or self.strings[match.group(2)]] = (
                    "build_in_assembly" if ".createseq" in match.group() else ""
                )
        for suffix, path, line in suffixes:
            for name, has in formats.items():
                if suffix in ("memory", has):
                    self.read_options.setdefault(f"-mat_{name}_{suffix}", (path, line))
        described = {item.name for page in self.pages.values() for item in page.items("Options Database Key")}
        for option, (path, line) in self.read_options.items():
            if option not in described:
                self.problem(path, line, f"the option {option} is on no manual page")
        ours = re.compile(rf"(?<![\w-])-(?:mat_(?:{'|'.join(formats)})|gallop)_\w+" if formats else r"(?!)")
        places = [
            (page.path, item.line, item.name)
            for page in self.pages.values()
            for item in page.items("Options Database Key")
        ]
        for path in docs_of(self.root):
            places += [(path, number, line) for number, line in enumerate(path.read_text().split("\n"), 1)]
        for path, line, text in places:
            for option in ours.findall(text):
                if option not in self.read_options:
                    self.problem(path, line, f"{option} is no option that src/ reads")

    def check_messages(self):
        """docs/troubleshooting.md and src/ have the same messages; <placeholders> stand for what differs.

        What the page quotes in a heading, or at the beginning of an item of a list, is printed by src/ or config/. Of each
        message of src/ that a user can see, some code on the page quotes at least half.
        """
        page = self.root / "docs" / "troubleshooting.md"
        if not page.exists():
            return
        literals = []
        for text in self.texts.values():
            literals += re.findall(r'"((?:[^"\\]|\\.)*)"', join_literals(text))
        said = "\n".join(map(placeholders, literals))
        for script in (self.root / "config").glob("*") if (self.root / "config").is_dir() else ():
            said += re.sub(r'"\s*(?:\+ )?f?"', "", re.sub(r"\{[^{}]*\}", "<>", script.read_text()))
        for number, line in enumerate(page.read_text().split("\n"), 1):
            for quoted in re.findall(r"^(?:#{2,4}|-) `([^`]*)`", line):
                for piece in pieces_of(quoted):
                    if piece not in said:
                        self.problem(page, number, f"neither src/ nor config/ has a message with: {piece}")
        quotes = [pieces_of(quoted) for quoted in re.findall(r"`([^`\n]+)`", page.read_text())]
        unused = dict(NOT_QUOTED)
        for path, line, message in self.messages():
            reasons = [start for start in NOT_QUOTED if message.startswith(start)]
            for start in reasons:
                unused.pop(start, None)
            if not reasons and not any(quotes_half(message, pieces) for pieces in quotes):
                self.problem(path, line, f"docs/troubleshooting.md does not quote: {message}")
        if self.root == ROOT:
            for start in unused:
                self.problem(Path(__file__).resolve(), 1, f"NOT_QUOTED has a message that src/ has not: {start}")

    def messages(self):
        """(path, line, text) of all messages but those of errors of our own, PETSC_ERR_PLIB."""
        for path, text in self.texts.items():
            names = dict(re.findall(r'^#define\s+(\w+)\s+"((?:[^"\\]|\\.)*)"', text, re.M))
            for match in re.finditer(rf"(?<!define )\b(?:{'|'.join(PRINTING)})\(", text):
                arguments = arguments_of(text, match.end())
                if "PETSC_ERR_PLIB" in arguments:
                    continue
                formats = [names.get(word, word) for word in arguments if word.startswith('"') or word in names]
                found = re.fullmatch(r'"?((?:[^"\\]|\\.)*)"?', join_literals(formats[0])) if formats else None
                if found and len("".join(pieces_of(placeholders(found.group(1))))) > 3:
                    yield path, text.count("\n", 0, match.start()) + 1, placeholders(found.group(1))


def join_literals(text):
    """Neighbouring string literals as one, with the macros of formats between them."""
    return re.sub(r'"\s*(?:[A-Z][A-Za-z0-9]*_FMT\s*)?"', lambda match: "d" if "FMT" in match.group() else "", text)


def placeholders(literal):
    """A format of printf() as its reader sees it, with <> for what differs."""
    text = re.sub(r"(?:%[-+0-9.]*l*[a-z])+", "<>", literal).replace('\\"', '"').replace("%%", "%")
    return text.replace("\\n", "\n").strip()


def pieces_of(quoted):
    """What of a quotation or a message is there literally."""
    return [piece.strip() for piece in re.split(r"<[^>]*>|\.\.\.", quoted) if len(piece.strip()) > 3]


def quotes_half(message, pieces):
    """Whether these pieces stand in the message, in their order, and are half of it or more."""
    at = 0
    for piece in pieces:
        at = message.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return 2 * sum(map(len, pieces)) >= len("".join(pieces_of(message)))


def arguments_of(text, begin):
    """The arguments of a call of C, of which `begin` is behind the parenthesis."""
    depth, k, last, arguments = 1, begin, begin, []
    while depth and k < len(text):
        literal = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|/\*.*?\*/', re.S).match(text, k)
        if literal:
            k = literal.end()
            continue
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(text[k], 0)
        if depth == 0 or depth == 1 and text[k] == ",":
            arguments.append(text[last:k].strip())
            last = k + 1
        k += 1
    return arguments


def docs_of(root):
    return sorted((root / "docs").rglob("*.md")) + [
        path for path in (root / "README.md", root / "benchmarks" / "README.md") if path.exists()
    ]


# ---- PETSc's pages -----------------------------------------------------------------------------------------------


def read_petsc(root):
    """Section by name, from docs/petsc-manualpages.txt."""
    path = root / "docs" / "petsc-manualpages.txt"
    return (
        dict(line.split() for line in path.read_text().splitlines() if line and line[0] != "#") if path.exists() else {}
    )


def section_of(path, text, source):
    """PETSc's own rule: SUBMANSEC of the file, else of the nearest makefile, else MANSEC likewise."""
    for word in ("SUBMANSEC", "MANSEC"):
        found = re.search(rf"^(?:/\* *|)\b{word}\s*=\s*(\w+)", text, re.M)
        folder = path.parent
        while not found and folder != source:
            makefile = folder / "makefile"
            if makefile.exists():
                found = re.search(rf"^{word}\s*=\s*(\w+)", makefile.read_text(), re.M)
                if not found and re.search(r"^MANSEC\s*=", makefile.read_text(), re.M):
                    break
            folder = folder.parent
        if found:
            return found.group(1)
    return None


def write_petsc(root, source):
    wanted = set()
    reader = Reader(root)
    for text in [text for path in docs_of(root) for text in [path.read_text()]] + list(reader.texts.values()) + list(OTHER_NAMES.values()):
        wanted.update(re.findall(r"`([A-Z]\w+)(?:\(\))?`", text))
    sections = {}
    for path in sorted(
        path
        for folder in ("include", "src")
        for path in (source / folder).rglob("*")
        if path.suffix in (".c", ".h", ".cu", ".cxx")
    ):
        text = path.read_text(errors="replace")
        for name in re.findall(r"^ */\*(?:@C?|MC|S|E|J)\s+(\w+) - ", text, re.M):
            if name in wanted and name not in sections:
                sections[name] = section_of(path, text, source)
    lines = [
        "# Manual pages of PETSc 3.26 that ours and the docs name, and the section of PETSc's site that each is in;",
        "# written by docs/manualpages.py --petsc SOURCE",
    ]
    lines += [f"{name} {section}" for name, section in sorted(sections.items()) if section]
    (root / "docs" / "petsc-manualpages.txt").write_text("\n".join(lines) + "\n")


# ---- writing -----------------------------------------------------------------------------------------------------


def markdown(text):
    """Text of a page as Markdown: code stays, what Markdown would take for its own is escaped."""
    parts = re.split(r"(`[^`]*`)", text)
    for k in range(0, len(parts), 2):
        parts[k] = re.sub(r"([\\*_<>\[\]#|$])", r"\\\1", parts[k])
        parts[k] = re.sub(
            r"(?<![\w\\/-])(-[a-z](?:\w|\\_)*(?:\\_\w+)+)",
            lambda match: "`" + match.group().replace("\\", "") + "`",
            parts[k],
        )
    return "".join(parts)


def page_lines(page, root):
    lines = [f"# {page.name}", "", markdown(page.summary[0].upper() + page.summary[1:]) + ".", ""]
    if page.synopsis:
        lines += ["## Synopsis", "", "```c", "#include <petscgallop.h>", page.synopsis, "```", ""]
    if page.collective:
        lines += [page.collective + ".", ""]
    for title, _, body in page.sections:
        if title:
            lines += [f"## {title}{'s' * (title in TEXTS or len(body) > 1)}", ""]
        if title == "Options Database Key":
            for item in body:
                lines += [f"```{{option}} {item.name} {item.rest}".rstrip(), markdown(" ".join(item.text)), "```", ""]
        elif title == "Reference":
            lines += ["- " + markdown(" ".join(item.text)) for item in body] + [""]
        elif title in LISTS:
            for item in body:
                lines += [f"`{item.name}`", ": " + markdown(" ".join(item.text)), ""]
        else:
            lines += [line for paragraph in filter(None, body) for line in (markdown(paragraph), "")]
    lines += ["## Level", "", page.level, "", "## See also", "", ", ".join(f"`{name}`" for name, _ in page.seealso), ""]
    return lines + ["## Location", "", f"`{page.path.relative_to(root)}`", ""]


def index_lines(pages):
    groups = (
        (
            "Matrix types",
            lambda page: page.name.startswith("MAT") and page.kind == "MC" and "ORDERING" not in page.name,
        ),
        ("Other types and names", lambda page: page.kind in ("MC", "E", "J", "S")),
        ("Functions", Page.is_function),
    )
    lines, done = [
        "# Manual pages",
        "",
        "Every function, type and name of `petscgallop.h`. [Options](options.md) lists what the options database takes.",
        "",
    ], set()
    for title, belongs in groups:
        names = sorted((name for name, page in pages.items() if name not in done and belongs(page)), key=str.lower)
        done.update(names)
        lines += [f"## {title}", "", "| name | what it is |", "|---|---|"]
        lines += [f"| [`{name}`]({name}.md) | {markdown(pages[name].summary)} |" for name in names] + [""]
    return (
        lines + ["```{toctree}", ":hidden:", ":titlesonly:", "", "options"] + sorted(done, key=str.lower) + ["```", ""]
    )


def options_lines(pages, options):
    lines = [
        "# Options",
        "",
        "What Gallop reads from the options database. An option of a matrix takes the prefix of that matrix, as PETSc's do.",
        "",
        "| option | default | page |",
        "|---|---|---|",
    ]
    for option in sorted(options):
        for name, page in sorted(pages.items()):
            for item in page.items("Options Database Key"):
                if item.name == option:
                    lines.append(f"| `{option}` | {markdown(item.rest.strip('<>'))} | `{name}` |")
    return lines + [""]


def write(reader, folder):
    folder.mkdir(parents=True, exist_ok=True)
    files = {f"{name}.md": page_lines(page, reader.root) for name, page in reader.pages.items()}
    files["index.md"], files["options.md"] = index_lines(reader.pages), options_lines(reader.pages, reader.read_options)
    names = {
        "pages": sorted(reader.pages),
        "options": sorted(reader.read_options),
        "petsc": {name: f"{PETSC_SITE}/{section}/{name}/" for name, section in reader.petsc.items()},
    }
    files["names.json"] = [json.dumps(names, indent=1)]
    for name, lines in files.items():
        (folder / name).write_text("\n".join(lines))


def read_and_check(root=ROOT):
    reader = Reader(root)
    reader.read()
    reader.check()
    return reader


def main(args):
    if len(args) == 2 and args[0] == "--petsc":
        write_petsc(ROOT, Path(args[1]).resolve())
        return 0
    if len(args) > 1 or args and args[0].startswith("-"):
        print(__doc__.strip())
        return 0 if args in (["-h"], ["--help"]) else 2
    reader = read_and_check()
    for path, line, text in sorted(reader.problems):
        print(f"{path}:{line}: {text}")
    if args:
        write(reader, Path(args[0]))
    print(f"{len(reader.pages)} manual pages, {len(reader.read_options)} options, {len(reader.problems)} problems")
    return 1 if reader.problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
