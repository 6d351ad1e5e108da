"""Settings of the documentation site: Sphinx reads the Markdown files where they are, `make site`
builds out/site.

Links in the pages are relative paths to files, as forges follow them. MyST turns them into links of
the site, and the build fails at a broken link. The navigation is made from the tables of
docs/README.md and docs/decisions/README.md.
"""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx

from neardup.version import __version__

project = "neardup"
release = __version__
root_doc = "docs/README"
PROJECT = ["CHANGELOG", "CONTRIBUTING", "SECURITY", "benchmarks/README"]
include_patterns = [
    "docs/**.md",
    "benchmarks/results/*.md",
    "examples/**.md",
    *(f"{page}.md" for page in PROJECT),
]
exclude_patterns = [".venv", "benchmarks/.venv-*", "benchmarks/work", "out", "build", "dist"]

extensions = ["myst_parser"]
myst_heading_anchors = 4
myst_links_external_new_tab = True
suppress_warnings = ["toc.not_included", "myst.header", "misc.highlighting_failure"]

html_theme = "furo"
html_title = "neardup"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_extra_path = ["index.html"]  # leads to the root document

_GROUP = re.compile(r"^\*\*(.+?)\*\*[^\n]*\n(.*?)(?=^\*\*|\Z)", re.DOTALL | re.MULTILINE)
_PAGE = re.compile(r"^\| \[(.+?)\]\(([\w./-]+)\.md\)(?: \| (.+?) \|$)?", re.MULTILINE)


def add_navigation(app: Sphinx, docname: str, source: list[str]) -> None:
    """Append the pages that an index page lists as tables of contents, which the theme shows at the
    side.
    """
    if docname == root_doc:
        for caption, listed in _GROUP.findall(source[0]):
            source[0] += _toctree([page for _, page, _ in _PAGE.findall(listed)], caption)
        source[0] += _toctree(["zh/quickstart"], "中文") + _toctree(
            [f"../{page}" for page in PROJECT], "Project"
        )
    elif Path(docname).parts[:2] == ("docs", "decisions") and Path(docname).name == "README":
        source[0] += _toctree([page for _, page, _ in _PAGE.findall(source[0])], "Decisions")


def _toctree(pages: list[str], caption: str) -> str:
    return "\n".join(["\n```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```\n"])


def setup(app: Sphinx) -> None:
    """Connect the navigation to the reading of pages."""
    app.connect("source-read", add_navigation)
