# SPDX-License-Identifier: BSD-2-Clause
"""How Sphinx makes the site: config/docs calls it with a copy of this folder, with the pages of docs/manualpages.py."""

import json
import os
import posixpath
import re
from pathlib import Path

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

ROOT = Path(os.environ["GALLOP_ROOT"])
HEADER = (ROOT / "include" / "petscgallop.h").read_text()
NAMES = json.loads((Path(__file__).parent / "manualpages" / "names.json").read_text())

project = "Gallop"
author = "the Gallop authors"
release = version = ".".join(re.findall(r"define GALLOP_VERSION_(?:MAJOR|MINOR|SUBMINOR)\s+(\d+)", HEADER))
extensions = ["myst_parser", "sphinx_copybutton"]
myst_heading_anchors = 4
myst_enable_extensions = ["deflist"]
highlight_language = "text"
suppress_warnings = ["myst.header"]  # README's parts begin at their own level

html_theme = "pydata_sphinx_theme"
html_title = f"Gallop {release}"
html_static_path = ["static"]
html_css_files = ["gallop.css"]
html_copy_source = html_show_sourcelink = False
html_use_index = False
html_last_updated_fmt = None
templates_path = ["templates"]
html_logo = html_favicon = "static/logo.svg"
html_sidebars = {"**": ["sidebar.html"]}
copybutton_exclude = ".linenos, .gp, .go"
html_theme_options = {
    "logo": {"text": f"Gallop {release}"},
    "navbar_center": [],
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": [],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


# the link to the repository, where CITATION.cff knows it
REPOSITORY = re.search(r"^repository-code: *\"?([^\"\n]+)", (ROOT / "CITATION.cff").read_text(), re.M)
if REPOSITORY:
    html_theme_options["icon_links"] = [{"name": "Repository", "url": REPOSITORY.group(1), "icon": "fa-solid fa-code-branch"}]


class LinkNames(SphinxPostTransform):
    """`MatGallopPermute()`, `MATAIJ`, `-mat_evchyb_window 64`: code that names a manual page or an option becomes a link to it."""

    default_priority = 500

    def run(self, **kwargs):
        here, options = self.env.docname, self.env.get_domain("std").progoptions
        for node in list(self.document.findall(nodes.literal)):
            if isinstance(node.parent, (nodes.title, nodes.reference, nodes.term)):
                continue
            text = node.astext()
            name, option = re.sub(r"\(\)$", "", text), re.match(r"(-\w+)( \S+)?$", text)
            if name in NAMES["pages"] and here != f"manualpages/{name}":
                uri = self.app.builder.get_relative_uri(here, f"manualpages/{name}")
            elif name in NAMES["petsc"]:
                uri = NAMES["petsc"][name]
            elif option and option.group(1) in NAMES["options"]:
                page, anchor = options[None, option.group(1)]
                uri = f"{self.app.builder.get_relative_uri(here, page)}#{anchor}"
            else:
                continue
            link = nodes.reference("", "", internal="//" not in uri, refuri=uri)
            node.replace_self(link)
            link += node


def leave_docs(app, docname, source):
    """Links to other folders of the repository: some are pages of the site, as the examples' sources; of the others the text remains."""
    folder = posixpath.join("docs", posixpath.dirname(docname))
    pages = {"benchmarks/README.md": "docs/benchmarks.md", "examples/README.md": "docs/examples.md"}
    if docname == "examples":
        source[0] = re.sub(r"\]\((\w+)\.(c|py|F90)\)", r"](examples/\1-\2.md)", source[0])
        source[0] = re.sub(r"\[([^\]]*)\]\((?!examples/)[^)]*\)", r"\1", source[0])
        return

    def link(match):
        path, hash, anchor = match.group(2).partition("#")
        path = posixpath.normpath(posixpath.join(folder, path))
        path = pages.get(path, path)
        if not path.startswith("docs/"):
            return match.group(1)
        return f"[{match.group(1)}]({posixpath.relpath(path, folder)}{hash}{anchor})"

    source[0] = re.sub(r"(?<!!)\[([^\]]*)\]\((\.\.?/[^)]*)\)", link, source[0])


def setup(app):
    app.add_post_transform(LinkNames)
    app.connect("source-read", leave_docs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
