#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Check the links of a site of HTML files, without a network.

usage: checklinks.py SITE [EXTERNAL.txt]

Each link to the site itself has to lead to a file that is there, and to an anchor in it; nothing may be loaded from other
hosts. Links to other hosts are written to EXTERNAL.txt, not followed. No line of code is longer than a window of 1400
pixels shows. A line FILE: MESSAGE tells what is wrong.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FOREIGN = re.compile(r"(?:https?:)?//")
LOADS = {
    "script": "src",
    "img": "src",
    "source": "src",
    "iframe": "src",
    "video": "src",
    "audio": "src",
    "object": "data",
}
LOADING_LINKS = {"stylesheet", "preload", "icon", "prefetch", "preconnect", "dns-prefetch", "modulepreload", "manifest"}

LONGEST = 112  # characters of a line of code, with the font of docs/static/gallop.css


class Page(HTMLParser):
    """The anchors of a page, its links, and what it loads."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.loads, self.code = set(), [], [], ""
        self.in_code = self.wraps = False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.wraps |= tag == "div" and "source" in (given.get("class") or "").split()  # of the page's programs, to its end
        self.in_code |= tag == "pre" and not self.wraps
        self.anchors.update(filter(None, (given.get("id"), given.get("name") if tag == "a" else None)))
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        elif tag == "link" and LOADING_LINKS & set((given.get("rel") or "").split()):
            self.loads.append(given.get("href") or "")
        elif tag == "link" and given.get("href"):
            self.links.append(given["href"])
        elif given.get(LOADS.get(tag)):
            self.loads.append(given[LOADS[tag]])
        if given.get("srcset"):
            self.loads += [part.split()[0] for part in given["srcset"].split(",")]
        self.loads += re.findall(r"url\(['\"]?([^'\")]+)", given.get("style") or "")

    def handle_endtag(self, tag):
        if tag == "pre":
            self.in_code, self.code = False, self.code + "\n"

    def handle_data(self, text):
        if self.in_code:
            self.code += text


def check(site):
    """Problems by page, and links to other hosts."""
    site = Path(site)
    pages = {
        path: Page(path.read_text()) for path in sorted(site.rglob("*.html")) if "_static" not in path.parts
    }  # templates of the theme
    problems, external = {path: [] for path in pages}, {}
    for path, page in pages.items():
        for target in page.links + page.loads:
            parts = urlsplit(target)
            if parts.scheme in ("mailto", "data", "javascript"):
                continue
            if FOREIGN.match(target):
                if target in page.loads:
                    problems[path].append(f"loads from another host: {target}")
                else:
                    external.setdefault(target, path)
                continue
            leads = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
            if leads.is_dir():
                leads /= "index.html"
            if site.resolve() not in leads.resolve().parents or not leads.is_file():
                problems[path].append(f"dead link: {target}")
            elif parts.fragment and leads.suffix == ".html":
                known = pages.get(leads) or next(
                    (other for name, other in pages.items() if name.resolve() == leads.resolve()), None
                )
                if unquote(parts.fragment) not in known.anchors:
                    problems[path].append(f"no such anchor: {target}")
        problems[path] += [f"a line of code is cut: {line}" for line in page.code.split("\n") if len(line) > LONGEST]
    for path in sorted(site.rglob("*.css")):
        foreign = re.findall(r"(?:url\(\s*|@import\s+)['\"]?((?:https?:)?//[^'\")\s]+)", path.read_text())
        if foreign:
            problems[path] = [f"loads from another host: {target}" for target in foreign]
    return {str(path.relative_to(site)): told for path, told in problems.items()}, sorted(external)


def main(args):
    if len(args) not in (1, 2) or args[0].startswith("-"):
        print(__doc__.strip())
        return 0 if args in (["-h"], ["--help"]) else 2
    problems, external = check(args[0])
    for page, told in problems.items():
        for text in told:
            print(f"{page}: {text}")
    if len(args) > 1:
        Path(args[1]).write_text("\n".join(external) + "\n")
    bad = sum(map(len, problems.values()))
    print(f"{len(problems)} pages, {bad} problems, {len(external)} links to other hosts, not followed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
