"""Make benchmarks/work/templates.jsonl.zst: pages by the themes of generators of documentation, a
dozen of each.

    python tools/make_template_pages.py

Run by `make accuracy`, with the packages of benchmarks/requirements-templates.txt. The texts are
invented words, other ones for each theme: two pages of one template share no content, and the seeds
are fixed. Bodies of scripts and styles are emptied. Of Sphinx's own themes those are left out whose
layout differs from another one's in a few tags only (classic, pyramid, sphinxdoc, bizstyle).
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

TARGET = Path(__file__).resolve().parent.parent / "benchmarks" / "work" / "templates.jsonl.zst"
NUM_PAGES = 12
WORDS = (
    "amber",
    "basin",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grove",
    "heron",
    "inlet",
    "jetty",
    "kelp",
    "larch",
    "marsh",
    "north",
    "otter",
    "plume",
    "quarry",
    "ridge",
    "sedge",
    "tarn",
    "umber",
    "vale",
    "willow",
    "yarrow",
    "zephyr",
    "acorn",
    "brook",
    "cliff",
    "dune",
    "elder",
    "fern",
    "gorse",
    "hazel",
    "iris",
    "juniper",
    "knoll",
)
SPHINX = {
    "alabaster": "",
    "agogo": "",
    "haiku": "",
    "scrolls": "",
    "nature": "",
    "furo": "",
    "pydata_sphinx_theme": "",
    "sphinx_rtd_theme": "",
    "sphinx_book_theme": "",
    "piccolo_theme": "",
    "shibuya": "",
    "sphinx_material": "extensions.append('sphinx_material'); html_sidebars = {'**': ['globaltoc.html']}",  # noqa: E501
    "sphinxawesome_theme": "",
}
MKDOCS = (
    "mkdocs",
    "readthedocs",
    "material",
    "cinder",
    "ivory",
    "gitbook",
    "terminal",
    "windmill",
    "cerulean",
)
NIKOLA = ("bootblog4", "base")
NBCONVERT = ("classic", "lab")


# Texts


def words(draw: random.Random, least: int, most: int) -> str:
    """Return a few words."""
    return " ".join(draw.choices(WORDS, k=draw.randint(least, most)))


def paragraph(draw: random.Random) -> str:
    """Return a paragraph, at times with a link, strong words or code."""
    text = words(draw, 5, 25).capitalize() + "."
    link = f" See [{words(draw, 1, 3)}](https://example.org/{draw.choice(WORDS)})."
    return text + draw.choice(
        ["", "", link, f" **{words(draw, 1, 3)}**.", f" `{draw.choice(WORDS)}`."]
    )


def listed(draw: random.Random) -> str:
    """Return a list."""
    return "\n".join(f"- {words(draw, 2, 12)}" for _ in range(draw.randint(2, 12)))


def code(draw: random.Random) -> str:
    """Return a piece of a program."""
    lines = "\n".join(
        f"{draw.choice(WORDS)} = {draw.choice(WORDS)}({draw.randint(1, 99)})"
        for _ in range(draw.randint(1, 8))
    )
    return f"```python\n{lines}\n```"


def table(draw: random.Random) -> str:
    """Return a table."""
    columns = draw.randint(2, 4)
    rows = [
        " | ".join(words(draw, 1, 3) for _ in range(columns)) for _ in range(draw.randint(2, 8))
    ]
    return "\n".join(f"| {row} |" for row in [rows[0], " | ".join(["---"] * columns), *rows[1:]])


def quote(draw: random.Random) -> str:
    """Return a quotation."""
    return f"> {words(draw, 10, 30)}"


BLOCKS = (paragraph, paragraph, paragraph, listed, code, table, quote)


def markdown(draw: random.Random) -> Iterator[str]:
    """Yield the blocks of a page, without its title."""
    yield paragraph(draw)
    for _ in range(draw.randint(1, 7)):
        yield f"## {words(draw, 1, 4).capitalize()}"
        for _ in range(draw.randint(1, 6)):
            yield draw.choice(BLOCKS)(draw)


def module(draw: random.Random) -> str:
    """Return a Python module to document."""
    functions = [f"def {function(draw)}" for _ in range(draw.randint(1, 8))]
    classes = [make_class(draw) for _ in range(draw.randint(0, 4))]
    return "\n".join([f'"""{paragraph(draw)}"""', *functions, *classes]) + "\n"


def function(draw: random.Random) -> str:
    """Return a function, from its name on."""
    return f'{draw.choice(WORDS)}({draw.choice(WORDS)}=1):\n        """{words(draw, 5, 40)}"""'


def make_class(draw: random.Random) -> str:
    """Return a class with methods."""
    methods = [f"    def {function(draw)}" for _ in range(draw.randint(1, 6))]
    return "\n".join(
        [f'class {draw.choice(WORDS).capitalize()}:\n    """{words(draw, 5, 40)}"""', *methods]
    )


def draw_names(draw: random.Random) -> list[str]:
    """Return the names of the pages of a template."""
    return [f"{draw.choice(WORDS)}{number}" for number in range(NUM_PAGES)]


# Generators: each writes sources into a folder and returns the pages it made of them


def run(folder: Path, *arguments: str) -> None:
    """Run a Python module in a folder."""
    called = [sys.executable, "-m", *arguments]
    subprocess.run(
        called, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def write_pages(folder: Path, draw: random.Random, head: str = "# {title}") -> list[str]:
    """Write pages of Markdown and return their names."""
    folder.mkdir(parents=True, exist_ok=True)
    names = draw_names(draw)
    for name in names:
        title = words(draw, 1, 5).capitalize()
        (folder / f"{name}.md").write_text("\n\n".join([head.format(title=title), *markdown(draw)]))
    return names


def sphinx(theme: str, folder: Path, draw: random.Random) -> list[Path]:
    """Build with Sphinx."""
    names = write_pages(folder, draw)
    entries = "\n".join(names)
    (folder / "index.md").write_text(f"# Index\n\n```{{toctree}}\n{entries}\n```\n")
    settings = (
        "project = 'Project'\nextensions = ['myst_parser']\nhtml_theme = "
        f"'{theme}'\n{SPHINX[theme]}\n"
    )
    (folder / "conf.py").write_text(settings)
    run(folder, "sphinx", "-q", "-b", "html", ".", "out")
    return [folder / "out" / f"{name}.html" for name in names]


def mkdocs(theme: str, folder: Path, draw: random.Random) -> list[Path]:
    """Build with MkDocs."""
    names = write_pages(folder / "docs", draw)
    (folder / "docs" / "index.md").write_text("# Index\n")
    (folder / "mkdocs.yml").write_text(f"site_name: Site\ntheme:\n  name: {theme}\n")
    run(folder, "mkdocs", "build", "-q")
    return [folder / "site" / name / "index.html" for name in names]


def nikola(theme: str, folder: Path, draw: random.Random) -> list[Path]:
    """Build a blog with Nikola."""
    run(folder, "nikola", "init", "-q", "-d", "site")
    site = folder / "site"
    settings = (site / "conf.py").read_text().replace('THEME = "bootblog4"', f'THEME = "{theme}"')
    settings = re.sub(
        r"POSTS = \(.*?\n\)",
        'POSTS = (("posts/*.md", "posts", "post.tmpl"),)',
        settings,
        flags=re.DOTALL,
    )
    (site / "conf.py").write_text(settings)
    head = ".. title: {title}\n.. slug: SLUG\n.. date: 2020-01-01 00:00:00 UTC\n.. type: text\n"
    names = write_pages(site / "posts", draw, f"<!--\n{head}-->\n")
    for name in names:
        page = site / "posts" / f"{name}.md"
        page.write_text(page.read_text().replace("SLUG", name))
    run(site, "nikola", "build")
    return [site / "output" / "posts" / name / "index.html" for name in names]


def nbconvert(theme: str, folder: Path, draw: random.Random) -> list[Path]:
    """Convert notebooks: a cell for each block."""
    names = draw_names(draw)
    for name in names:
        cells = [make_cell(block) for block in markdown(draw)]
        (folder / f"{name}.ipynb").write_text(
            json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4})
        )
    run(
        folder,
        "nbconvert",
        "--to",
        "html",
        "--template",
        theme,
        *(f"{name}.ipynb" for name in names),
    )
    return [folder / f"{name}.html" for name in names]


def make_cell(block: str) -> dict[str, object]:
    """Return a cell of a notebook."""
    if not block.startswith("```"):
        return {"cell_type": "markdown", "metadata": {}, "source": block}
    source = block.removeprefix("```python\n").removesuffix("\n```")
    return {
        "cell_type": "code",
        "metadata": {},
        "source": source,
        "outputs": [],
        "execution_count": 1,
    }


def documented(
    command: Callable[[list[str]], list[str]], made: str, folder: Path, draw: random.Random
) -> list[Path]:
    """Document Python modules."""
    names = draw_names(draw)
    for name in names:
        (folder / f"{name}.py").write_text(module(draw))
    run(folder, *command(names))
    return [folder / made.format(name) for name in names]


def pydoc(_: str, folder: Path, draw: random.Random) -> list[Path]:
    """Document with the pydoc of the standard library."""
    return documented(lambda names: ["pydoc", "-w", *names], "{}.html", folder, draw)


def pdoc(_: str, folder: Path, draw: random.Random) -> list[Path]:
    """Document with pdoc."""
    return documented(
        lambda names: ["pdoc", "-o", "out", *(f"{name}.py" for name in names)],
        "out/{}.html",
        folder,
        draw,
    )


TEMPLATES: list[tuple[str, Callable[[str, Path, random.Random], list[Path]], str]] = [
    *(("sphinx", sphinx, theme) for theme in SPHINX),
    *(("mkdocs", mkdocs, theme) for theme in MKDOCS),
    *(("nikola", nikola, theme) for theme in NIKOLA),
    *(("nbconvert", nbconvert, theme) for theme in NBCONVERT),
    ("python", pydoc, "pydoc"),
    ("python", pdoc, "pdoc"),
]


def make() -> None:
    """Write the pages of all templates."""
    lines = []
    for kind, build, theme in TEMPLATES:
        template = f"{kind}: {theme}"
        with tempfile.TemporaryDirectory() as folder:
            made = [
                page.read_text(encoding="utf-8")
                for page in build(theme, Path(folder), random.Random(template))
            ]
        html = [
            re.sub(r"(<(script|style)\b[^>]*>).*?(</\2>)", r"\1\3", page, flags=re.DOTALL)
            for page in made
        ]
        lines += [json.dumps({"site": template, "html": page}) + "\n" for page in html]
        print(f"{template}: {sum(map(len, html)):,} characters", file=sys.stderr)
    codec = pa.Codec("zstd", compression_level=19)
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_bytes(codec.compress("".join(lines).encode(), asbytes=True))
    print(f"{len(lines):,} pages, {TARGET.stat().st_size:,} bytes", file=sys.stderr)


if __name__ == "__main__":
    make()
