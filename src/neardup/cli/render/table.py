"""Lay out tables, and two texts side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from neardup.report.rows import Row
from neardup.report.wording import translated, visible

# Minimum widths in characters, so that the tables of two runs look alike.
_NAME_WIDTH = 16
_FIGURE_WIDTH = 10
_REMARK_WIDTH = 20
# From this width of the terminal on, two columns are easier to read than two paragraphs.
_TWO_COLUMNS_WIDTH = 100


def is_unicode(console: Console) -> bool:
    """Return whether the terminal shows characters beyond ASCII."""
    return console.encoding.lower().startswith("utf")


def is_plain(console: Console) -> bool:
    """Return whether the terminal shows no colours."""
    return console.color_system is None or console.no_color


def are_columns(console: Console, plain: bool) -> bool:
    """Return whether two texts are shown side by side: in colours, on lines wide enough."""
    return console.width >= _TWO_COLUMNS_WIDTH and not plain


def print_names(names: tuple[str, str], console: Console) -> None:
    """Print the names of two texts that are shown one below the other."""
    console.print(Text(f"- {names[0]}", "bold red"), soft_wrap=True)
    console.print(Text(f"+ {names[1]}", "bold green"), soft_wrap=True)


def table_lines(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    left: Sequence[int] = (0,),
    is_bold: Callable[[Sequence[str]], bool] = lambda _: False,
) -> Iterator[Text]:
    """Yield the lines of a table: cells are right-aligned, except in the columns `left`."""
    heads = [translated(head) for head in heads]
    # Not `len`: a Chinese character takes two columns.
    widths = [max(map(cell_len, column)) for column in zip(heads, *rows, strict=True)]
    for number, row in enumerate((heads, *rows)):
        gaps = [" " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]
        cells = [
            cell + gap if i in left else gap + cell
            for i, (cell, gap) in enumerate(zip(row, gaps, strict=True))
        ]
        style = "bold green" if is_bold(row) else ""
        if number == 0:  # the heads
            style = "dim"
        yield Text(("  " + "  ".join(cells)).rstrip(), style)


def print_table(
    console: Console, heads: Sequence[str], rows: Sequence[Sequence[str]], **layout: Any
) -> None:
    """Print a table below an empty line; layout : as of `table_lines`."""
    console.print()
    for line in table_lines(heads, rows, **layout):
        # Rich would cut lines that are wider than the terminal, and break figures.
        console.print(line, soft_wrap=True)


def two_columns(names: tuple[str, str], console: Console, **column: Any) -> tuple[Table, str]:
    """Return a table of two texts side by side, headed by their names, and the character between
    them.
    """
    bar = "│" if is_unicode(console) else "|"
    # No borders and no title row: the names are a row of the table.
    table = Table.grid(padding=(0, 1, 0, 0), expand=True)
    table.add_column(ratio=1, **column)
    table.add_column(width=1, style="dim")
    table.add_column(ratio=1, **column)
    table.add_row(Text(f"A  {names[0]}", "bold red"), bar, Text(f"B  {names[1]}", "bold green"))
    table.add_row("", bar, "")
    return table, bar


_STYLES = {"found": "bold green", "kept": "bold green", "removed": "bold", "lost": "bold red"}
"""Styles of figures, by the kind of a row."""


class _Line(NamedTuple):
    """A line of a table.

    remark : the text after the figure. None for a long value, such as a path, which is printed
    whole and takes no part in the width of the figures.
    """

    name: str
    value: Text
    remark: str | None


class Rows:
    """A table of a name, a right-aligned figure, and a remark."""

    def __init__(self) -> None:
        self._lines: list[_Line] = []

    def add(self, rows: Iterable[Row]) -> None:
        """Add the rows of a report, without their details."""
        for row in rows:
            if not row.is_detail:
                line = _Line(
                    name="  " * row.depth + row.label,
                    value=Text(row.value, _STYLES.get(row.kind, "")),
                    remark=visible(row.explanation),
                )
                self._lines.append(line)

    def count(self, name: str, value: int, remark: str = "", style: str = "") -> None:
        """Add a count."""
        self.figure(name, f"{value:,}", remark, style)

    def figure(self, name: str, value: str, remark: str = "", style: str = "") -> None:
        """Add a figure."""
        self._lines.append(_Line(translated(name), Text(value, style), translated(remark)))

    def line(self, name: str = "", value: str = "", style: str = "") -> None:
        """Add a line whose value is never broken; an empty line separates sections."""
        self._lines.append(_Line(translated(name), Text(value, style), None))

    def print(self, console: Console) -> None:
        """Print the rows below an empty line."""
        names = [line.name for line in self._lines]
        figures = [line.value for line in self._lines if line.remark is not None]
        name_width = max([_NAME_WIDTH, *map(cell_len, names)])
        figure_width = max([_FIGURE_WIDTH, *map(len, figures)])
        console.print()
        for name, value, remark in self._lines:
            padded = f"  {name}{' ' * (name_width - cell_len(name))}  "
            if remark is None:
                line = Text(padded).append_text(value) if name else Text()
                console.print(line, soft_wrap=True)
            else:
                value.align("right", figure_width)
                line = Text(padded).append_text(value).append("  ")
                console.print(_with_remark(line, remark, console), soft_wrap=True)


def _with_remark(line: Text, remark: str, console: Console) -> Text:
    """Return a line with a remark, whose further lines hang below its first word."""
    indent = " " * line.cell_len
    # The terminal may be narrower than the table.
    width = max(console.width - line.cell_len, _REMARK_WIDTH)
    parts = Text(remark, "dim").wrap(console, width)
    for part in parts:
        part.rstrip()
    line.append_text(Text(f"\n{indent}").join(parts))
    line.rstrip()
    return line
