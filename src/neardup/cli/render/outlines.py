"""Print the outlines of two pages side by side, and fold shared lines."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, starmap, zip_longest
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from neardup.cli.render.table import are_columns, is_plain, is_unicode, print_names, two_columns
from neardup.features.outline import Line
from neardup.report.wording import plural, visible
from neardup.verify.alignment import Outlines, Pair

_CONTEXT = 3  # shared lines that are shown next to a difference
_LEAST_FOLDED = 4  # fewer are shown


class _Fold(NamedTuple):
    """Shared lines that are not shown."""

    num_lines: int


def print_outlines(
    outlines: Outlines,
    names: tuple[str, str],
    *,
    plain: bool = False,
    full: bool = False,
    console: Console | None = None,
) -> None:
    """Print two outlines: lines of A alone red or with a -, lines of B alone green or with a +.

    Parameters
    ----------
    names : of the pages.
    plain : one column with signs, as without colours or on a narrow terminal.
    full : fold nothing.
    """
    console = console or Console(highlight=False)
    if all(pair.shared for pair in outlines.pairs):
        console.print(
            "  The outlines are the same; the pages may differ in heads, scripts, attributes and "
            "marked text."
        )
    else:
        rows: list[Pair | _Fold] = [*outlines.pairs] if full else [*_folded(outlines.pairs)]
        names = visible(names[0]), visible(names[1])
        side_by_side = are_columns(console, plain or is_plain(console))
        (_print_columns if side_by_side else _print_stacked)(rows, names, console)
    for name, left_out in zip("AB", outlines.left_out, strict=True):
        if left_out:
            console.print(
                Text(f"  {plural(left_out, 'further element')} of {name} not shown.", "dim")
            )


def _folded(pairs: list[Pair]) -> Iterator[Pair | _Fold]:
    """Yield the pairs, long shared stretches cut to the lines next to a difference."""
    stretches = [
        (shared, list(stretch)) for shared, stretch in groupby(pairs, lambda pair: pair.shared)
    ]
    for index, (shared, stretch) in enumerate(stretches):
        first = _CONTEXT if index > 0 else 0
        last = len(stretch) - (_CONTEXT if index < len(stretches) - 1 else 0)
        if not shared or last - first < _LEAST_FOLDED:
            yield from stretch
            continue
        yield from stretch[:first]
        yield _Fold(last - first)
        yield from stretch[last:]


def _print_columns(rows: list[Pair | _Fold], names: tuple[str, str], console: Console) -> None:
    unicode = is_unicode(console)
    # The ellipsis of Rich is not an ASCII character.
    overflow = "ellipsis" if unicode else "crop"
    table, bar = two_columns(names, console, no_wrap=True, overflow=overflow)
    for row in _beside(rows):
        if isinstance(row, _Fold):
            note = Text(_note(row, unicode), "dim")
            table.add_row(note, bar, note)
            continue
        styles = ("", "") if row.shared else ("red", "green")
        sides = [
            Text(_written(line, unicode) if line else "", style)
            for line, style in zip(row, styles, strict=True)
        ]
        table.add_row(sides[0], bar, sides[1])
    console.print(table)


def _beside(rows: list[Pair | _Fold]) -> Iterator[Pair | _Fold]:
    """Yield the rows; lines of A alone stand next to lines of B alone at the same position."""
    for whole, stretch in groupby(rows, lambda row: isinstance(row, _Fold) or row.shared):
        if whole:
            yield from stretch
            continue
        # Unshared lines of both pages come in turn; zipped, they stand beside each other as far as
        # they go.
        alone = [row for row in stretch if isinstance(row, Pair)]
        left = [row.left for row in alone if row.left]
        right = [row.right for row in alone if row.right]
        yield from starmap(Pair, zip_longest(left, right))


def _print_stacked(rows: list[Pair | _Fold], names: tuple[str, str], console: Console) -> None:
    unicode = is_unicode(console)
    print_names(names, console)
    console.print()
    for row in rows:
        if isinstance(row, _Fold):
            line = Text(f"  {_note(row, unicode)}", "dim")
        elif row.left is not None and row.right is not None:
            # Shared lines have equal labels; the number of repeats may differ.
            other = _times(row.right, unicode)
            differs = f"  (B:{other or ' once'})" if row.left.repeats != row.right.repeats else ""
            line = Text(f"  {_written(row.left, unicode)}").append(differs, "dim")
        elif row.left is not None:
            line = Text(f"- {_written(row.left, unicode)}", "red")
        elif row.right is not None:
            line = Text(f"+ {_written(row.right, unicode)}", "green")
        console.print(line, soft_wrap=True)


def _written(line: Line, unicode: bool) -> str:
    """Return a line after its indentation, hidden characters shown: an ESC must not reach a
    terminal.
    """
    return "  " * line.depth + visible(line.label) + _times(line, unicode)


def _times(line: Line, unicode: bool) -> str:
    return f" {'×' if unicode else 'x'}{line.repeats:,}" if line.repeats > 1 else ""


def _note(fold: _Fold, unicode: bool) -> str:
    dots = "⋯" if unicode else "..."
    return f"{dots} {plural(fold.num_lines, 'line')} {dots}"
