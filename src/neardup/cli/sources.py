"""Options about what is read, shared by the commands that read collections."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import click

from neardup.cli.settings import Function, SectionOption, SettingType
from neardup.documents.formats import FORMATS
from neardup.settings.limits import Limits

_SECTION = "Input"


class Named(os.PathLike[str]):
    """A path, pattern or address just as it was typed: never taken for a text, its slashes never merged."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __fspath__(self) -> str:
        return self.name


def named(names: Iterable[str]) -> list[Named] | None:
    """Return names as the paths they are; None if there are none."""
    return [Named(name) for name in names] or None


def source_options(function: Function, *, without_id: bool = False) -> Function:
    """Add the options that say how inputs are read."""
    options: list[tuple[str, dict[str, Any]]] = [
        ("--text-column", {"metavar": "NAME", "help": "The column of the text; guessed when obvious."}),
        ("--id-column", {"metavar": "NAME", "help": "The column that names a document; else it has a number."}),
        (
            "--text-unit",
            {
                "type": click.Choice(["auto", "line", "file"]),
                "default": "auto",
                "show_default": True,
                "help": "In text files, a document is a line or a file; auto: a line when one file is named.",
            },
        ),
        (
            "--in-format",
            {
                "type": click.Choice(list(FORMATS)),
                "help": "The format of all inputs, whatever their names; else by suffix, of standard input by its "
                "beginning.",
            },
        ),
        (
            "--max-document-bytes",
            {
                "type": SettingType(Limits("", int, low=1)),
                "metavar": "N",
                "default": 64 << 20,
                "show_default": True,
                "help": "Reject longer documents.",
            },
        ),
    ]
    if without_id:
        del options[1]
    for name, settings in reversed(options):
        function = click.option(name, cls=SectionOption, section=_SECTION, **settings)(function)
    return function


def file_options(said: str) -> Callable[[Function], Function]:
    """Return a decorator that adds --output FILE, with what is said of it, and --overwrite."""

    def decorate(function: Function) -> Function:
        section: dict[str, Any] = {"cls": SectionOption, "section": "Output"}
        function = click.option("--overwrite", is_flag=True, help="Replace FILE once the new one is whole.", **section)(
            function
        )
        return click.option("-o", "--output", metavar="FILE", required=True, help=said, **section)(function)

    return decorate


def folder_option(function: Function) -> Function:
    """Add --output DIR."""
    return click.option(
        "-o", "--output", cls=SectionOption, section="Output", metavar="DIR", required=True, help="The folder to write."
    )(function)


def rewrite_options(function: Function) -> Function:
    """Add --overwrite and --resume, for commands that write a folder."""
    section: dict[str, Any] = {"cls": SectionOption, "section": "Output", "is_flag": True}
    function = click.option("--resume", help="Go on where an interrupted run stopped.", **section)(function)
    return click.option("--overwrite", help="Replace DIR once the new result is whole.", **section)(function)


inputs_argument = click.argument("inputs", metavar="INPUT...", nargs=-1, required=True)


def shown_options(function: Function) -> Function:
    """Add --quiet and --json."""
    section: dict[str, Any] = {"cls": SectionOption, "section": "Printing", "is_flag": True}
    function = click.option("--json", "as_json", help="Print the report as one JSON object.", **section)(function)
    return click.option("-q", "--quiet", help="Print nothing but errors.", **section)(function)
