"""The pages say what is so: their code runs, their commands are known, what they list is all there
is.
"""

from __future__ import annotations

import doctest
import importlib
import os
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import click
import pytest
from click.testing import CliRunner

import neardup
from neardup.cli.main import cli, every_command
from neardup.schemas import (
    DISTANCE,
    EXACT,
    SIMILARITY,
    answers_schema,
    cluster_summary_schema,
    clusters_schema,
    groups_schema,
    hits_schema,
    pairs_schema,
    passages_schema,
    removed_schema,
)
from neardup.settings.methods import METHODS

REPOSITORY = Path(__file__).parent.parent
DOCS = REPOSITORY / "docs"
pytestmark = pytest.mark.slow
NEED = {"pyspark": "neardup.engines.spark", "datatrove": "neardup.integrations.datatrove"}
PAGES = [
    REPOSITORY / "README.md",
    REPOSITORY / "README.zh-CN.md",
    REPOSITORY / "CHANGELOG.md",
    REPOSITORY / "CONTRIBUTING.md",
    REPOSITORY / "SECURITY.md",
    *sorted(DOCS.rglob("*.md")),
    *sorted((REPOSITORY / "examples").rglob("*.md")),
    *sorted((REPOSITORY / "benchmarks" / "results").glob("*.md")),
]
MADE_PAGES = {
    "command-line.md": "make_cli_docs.py",
    "api.md": "make_api_docs.py",
    "http.md": "make_http_docs.py",
    "what-works-where.md": "make_engine_docs.py",
}


class Block(NamedTuple):
    """A fenced block: the page, the line its content starts at, its language, its content."""

    page: Path
    line: int
    language: str
    content: str


def blocks_of(page: Path, language: str) -> list[Block]:
    """Return the fenced blocks of a page in one language."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"^```(\w+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    every = [
        Block(page, text.count("\n", 0, match.start(2)) + 1, match[1], match[2]) for match in found
    ]
    return [block for block in every if block.language == language]


def name_of(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


@pytest.fixture
def with_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enter a folder that holds nothing but examples/."""
    (tmp_path / "examples").symlink_to(REPOSITORY / "examples", target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# Code


@pytest.mark.parametrize("page", [page for page in PAGES if blocks_of(page, "python")], ids=name_of)
def test_python_blocks_of_a_page_run_in_order_and_print_what_they_say(
    page: Path, with_examples: Path
) -> None:
    """A comment behind `print(...)`, or on lines of their own after it, is what it prints."""
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks_of(page, "python"):
        code = "\n" * (block.line - 1) + block.content
        printed = StringIO()
        with redirect_stdout(printed), patch.dict(METHODS):  # a page adds one
            exec(compile(code, str(page), "exec", dont_inherit=True), names)
        assert printed.getvalue().splitlines() == expected_output(block), (
            f"{name_of(page)}, line {block.line}"
        )


def expected_output(block: Block) -> list[str]:
    """Return the comments that follow a print, on its line or on lines of their own."""
    expected: list[str] = []
    after_print = False
    for line in block.content.splitlines():
        behind = re.match(r"\s*print\(.*\)  # (.*)$", line)
        if behind:
            expected.append(behind[1])
        elif after_print and line.startswith("# "):
            expected.append(line[2:])
        after_print = bool(re.match(r"\s*print\(", line)) or (after_print and line.startswith("#"))
    return expected


def commands_of(page: Path) -> Iterator[tuple[Block, list[str]]]:
    """Yield the commands in the shell blocks of a page, without comments."""
    for block in blocks_of(page, "sh"):
        for line in block.content.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words:
                yield block, words


def neardup_commands_of(page: Path) -> list[tuple[Block, list[str]]]:
    return [(block, words[1:]) for block, words in commands_of(page) if words[0] == "neardup"]


@pytest.mark.parametrize("page", [page for page in PAGES if neardup_commands_of(page)], ids=name_of)
def test_commands_of_a_page_run_in_order(page: Path, with_examples: Path) -> None:
    """A later command may use what an earlier one wrote, and writes to the same place again."""
    for block, words in neardup_commands_of(page):
        where = f"{name_of(page)}, line {block.line}: neardup {' '.join(words)}"
        if words[0] == "serve":  # which ends when it is stopped: tests/service/test_process.py
            cli.commands["serve"].make_context("serve", words[1:])
            continue
        if "--master" in words:  # of a cluster: tests/engines/test_spark_cluster.py
            cli.commands[words[0]].make_context(words[0], words[1:])
            continue
        for flag, output in pairwise(words):
            if flag in ("-o", "--output", "--answers"):
                remove(with_examples / output)
        done = CliRunner().invoke(cli, words)
        assert done.exit_code == 0, f"{where}\n{done.output}"


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks_of(page, "console")], ids=name_of
)
def test_consoles_of_a_page_show_what_the_commands_print(page: Path, with_examples: Path) -> None:
    """A line of dots stands for the rest of an output. `echo "text" > file` writes the file."""
    for block in (*blocks_of(page, "sh"), *blocks_of(page, "console")):
        for command, shown in console_of(block):
            if command[0] == "echo":
                (with_examples / command[3]).write_text(command[1] + "\n", encoding="utf-8")
                continue
            if "-o" in command:
                remove(with_examples / command[command.index("-o") + 1])
            printed = CliRunner().invoke(cli, command[1:]).output.strip("\n").splitlines()
            expected = shown.strip("\n").splitlines()
            if expected[-1:] == ["..."]:
                printed = [*printed[: len(expected) - 1], "..."]
            if shown:
                assert [line.rstrip() for line in printed] == expected, (
                    f"{name_of(page)}, line {block.line}"
                )


def console_of(block: Block) -> Iterator[tuple[list[str], str]]:
    """Yield the commands of neardup and echo in a block, with the output that a console shows below
    each.
    """
    text = (
        re.sub(r"^neardup", "$ neardup", block.content, flags=re.MULTILINE)
        if block.language == "sh"
        else block.content
    )
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line, shown = part.split("\n", 1)
        words = shlex.split(line, comments=True)
        if words[0] in ("neardup", "echo"):
            yield words, "" if block.language == "sh" else shown


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def test_other_commands_of_the_pages_are_known() -> None:
    makefile = (REPOSITORY / "Makefile").read_text()
    for page in PAGES:
        for block, words in commands_of(page):
            where = f"{name_of(page)}, line {block.line}"
            if words[0] == "make":
                assert re.search(rf"^{words[1]}:", makefile, re.MULTILINE), where
            elif words[0] == "python":
                assert (REPOSITORY / words[1]).is_file(), where
            else:
                assert words[0] in ("neardup", "pip", "curl", "spark-submit", "venv-pack"), where


def test_commands_in_the_help_parse() -> None:
    for name, command in every_command():
        for line in (command.help or "").splitlines():
            found = re.search(rf"neardup {name} (.*?)(?:   .*|\||$)", line)
            if found and line.startswith("  ") and not isinstance(command, click.Group):
                context = click.Context(command, info_name=name)
                command.make_parser(context).parse_args(shlex.split(found[1]))


def modules() -> list[str]:
    found = pkgutil.walk_packages(neardup.__path__, "neardup.")
    return sorted(one.name for one in found if not one.name.endswith("__main__"))


@pytest.mark.parametrize("name", modules())
def test_the_examples_in_docstrings_are_right(name: str) -> None:
    for package, modules_of_it in NEED.items():
        if name.startswith(modules_of_it):
            pytest.importorskip(package, reason=f"no {package}: install it to test {modules_of_it}")
    result = doctest.testmod(
        importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert result.failed == 0


# Completeness


@pytest.mark.parametrize("page", sorted(MADE_PAGES))
def test_pages_that_are_made_from_the_code_are_up_to_date(page: str) -> None:
    tool = REPOSITORY / "tools" / MADE_PAGES[page]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY / "src"), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, str(tool), "--check"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_every_command_and_option_is_documented() -> None:
    page, shared = (DOCS / "command-line.md").read_text(encoding="utf-8").split("## Shared options")
    for name, command in every_command():
        section = page.split(f"## neardup {name}\n", 1)[1].split("\n## ", 1)[0] + shared
        for parameter in command.params:
            for option in parameter.opts + parameter.secondary_opts:
                if option.startswith("-"):
                    assert option in section, f"{name} {option}"


def test_every_public_name_is_documented() -> None:
    page = (DOCS / "api.md").read_text(encoding="utf-8")
    for name in neardup.__all__:
        assert re.search(rf"\b{name}\b", page), name


MEASURES = (SIMILARITY, DISTANCE, EXACT)


@pytest.mark.parametrize(
    "schema",
    [
        removed_schema(MEASURES),
        pairs_schema(MEASURES),
        clusters_schema(MEASURES),
        cluster_summary_schema(),
        answers_schema(MEASURES),
        hits_schema(MEASURES),
        passages_schema(),
        groups_schema(),
    ],
    ids=[
        "removed",
        "pairs",
        "clusters",
        "cluster summary",
        "answers",
        "hits",
        "passages",
        "groups",
    ],
)
def test_every_column_is_documented_with_its_type_and_meaning(schema) -> None:
    page = (DOCS / "file-formats.md").read_text(encoding="utf-8")
    for field in schema:
        meaning = field.metadata[b"meaning"].decode()
        assert f"| `{field.name}` | {field.type} | {meaning} |" in page


def test_every_key_of_the_report_is_documented() -> None:
    page = (DOCS / "file-formats.md").read_text(encoding="utf-8")
    section = page.split("### report.json\n", 1)[1].split("\n### ", 1)[0]
    report = neardup.dedup(["a b c d e f g", "a b c d e f g!", "x"], recall_sample=2).report
    keys = {
        *report,
        *report["counts"],
        *report["inputs"][0],
        *report["recall_sample"],
        *report["bound"],
        *report["scheme"],
    }
    keys -= {"name"}
    for key in sorted(keys):
        assert f"`{key}`" in section or key in ("version",), key


def test_the_readme_is_short_and_names_its_two_commands() -> None:
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 150
    assert "`make demo`" in text
    assert "`make test`" in text


def test_the_changelog_and_the_citation_know_the_version() -> None:
    changelog = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[{re.escape(neardup.__version__)}\]", changelog, re.MULTILINE)
    assert f"version: {neardup.__version__}\n" in (REPOSITORY / "CITATION.cff").read_text(
        encoding="utf-8"
    )


# Links


def anchors_of(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as forges make them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
    }


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(
        r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), target
        assert REPOSITORY.resolve() in [linked, *linked.parents], (
            f"{target} leads out of the repository"
        )
        assert not anchor or anchor in anchors_of(linked), target


def test_the_functions_of_the_walks_are_there() -> None:
    page = (REPOSITORY / "docs" / "walkthroughs.md").read_text(encoding="utf-8")
    named = re.findall(r"`([a-z_/]+)\.py: ([A-Za-z_.]+)`", page)
    assert len(named) == page.count(".py: ")
    for module, name in named:
        source = (Path(neardup.__file__).parent / f"{module}.py").read_text(encoding="utf-8")
        for part in name.split("."):
            assert re.search(rf"^ *(async )?(def|class) {part}\b", source, re.MULTILINE), (
                f"{module}.py: {name}"
            )


@pytest.mark.parametrize("folder", [DOCS, DOCS / "decisions"])
def test_every_page_is_reached_from_an_index(folder) -> None:
    index = (folder / "README.md").read_text(encoding="utf-8")
    for page in folder.glob("*.md"):
        assert page.name == "README.md" or f"({page.name})" in index, page.name


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_pages_name_no_place_on_one_machine(page: Path) -> None:
    found = re.search(
        r"(?<![\w.])/(home|root|work|Users|tmp|opt)/", page.read_text(encoding="utf-8")
    )
    assert found is None, found
