"""Print the outlines of two pages side by side, and fold shared lines."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, starmap, zip_longest
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from neardup.cli.render.table import are_columns, is_plain, is_unicode, print_names, two_columns
from neardup.features.outline import Line
from neardup.report.wording import say, visible
from neardup.verify.alignment import Outlines, Pair

_CONTEXT = 3  # shared lines that are shown next to a difference
_MIN_FOLDED = 4  # fewer shared lines are shown: a note takes a line, too


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
    names : the names of the pages A and B.
    plain : print one column with signs, as without colours or on a narrow terminal.
    full : show all shared lines.
    """
    console = console or Console(highlight=False)
    if all(pair.left == pair.right for pair in outlines.pairs):
        console.print(f"  {say('compare.same_outlines')}")
    else:
        folded = [*_folded(outlines.pairs)]
        # Lines that differ in their depth alone may all be folded: then all are shown.
        is_whole = full or all(isinstance(row, _Fold) for row in folded)
        rows: list[Pair | _Fold] = [*outlines.pairs] if is_whole else folded
        visible_names = (visible(names[0]), visible(names[1]))
        if are_columns(console, plain or is_plain(console)):
            _print_columns(rows, visible_names, console)
        else:
            _print_stacked(rows, visible_names, console)
    for name, left_out in zip("AB", outlines.left_out, strict=True):
        if left_out:
            not_shown = say("compare.left_out", count=left_out, name=name)
            console.print(Text(f"  {not_shown}", "dim"))


def _folded(pairs: list[Pair]) -> Iterator[Pair | _Fold]:
    """Yield the pairs; of a long stretch of equal lines, its ends at differences and a fold."""
    stretches = [(is_equal, list(stretch)) for is_equal, stretch in groupby(pairs, _is_equal)]
    for index, (is_equal, stretch) in enumerate(stretches):
        # stretch[first:last] may be folded: there is no difference before the first stretch, nor
        # after the last one.
        first = _CONTEXT if index > 0 else 0
        last = len(stretch) - (_CONTEXT if index < len(stretches) - 1 else 0)
        if not is_equal or last - first < _MIN_FOLDED:
            yield from stretch
            continue
        yield from stretch[:first]
        yield _Fold(last - first)
        yield from stretch[last:]


def _is_equal(pair: Pair) -> bool:
    """Return whether both pages have a line, as often; its depth may differ."""
    left, right = pair
    return pair.shared and left is not None and right is not None and left.repeats == right.repeats


def _print_columns(rows: list[Pair | _Fold], names: tuple[str, str], console: Console) -> None:
    unicode = is_unicode(console)
    # The ellipsis of Rich is not an ASCII character.
    overflow = "ellipsis" if unicode else "crop"
    table, bar = two_columns(names, console, no_wrap=True, overflow=overflow)
    for row in _join_unshared(rows):
        if isinstance(row, _Fold):
            note = Text(_fold_note(row, unicode), "dim")
            table.add_row(note, bar, note)
            continue
        left = _side(row.left, "" if row.shared else "red", unicode)
        right = _side(row.right, "" if row.shared else "green", unicode)
        table.add_row(left, bar, right)
    console.print(table)


def _side(line: Line | None, style: str, unicode: bool) -> Text:
    return Text("" if line is None else _indented(line, unicode), style)


def _join_unshared(rows: list[Pair | _Fold]) -> Iterator[Pair | _Fold]:
    """Yield the rows, with the lines of A alone and of B alone between shared lines joined.

    ::

        shared    shared            shared    shared
        a         .          ->     a         b
        .         b                 c         .
        c         .
    """
    for is_common, stretch in groupby(rows, lambda row: isinstance(row, _Fold) or row.shared):
        if is_common:
            yield from stretch
            continue
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
            line = Text(f"  {_fold_note(row, unicode)}", "dim")
        else:
            line = _stacked(row, unicode)
        console.print(line, soft_wrap=True)


def _stacked(pair: Pair, unicode: bool) -> Text:
    """Return a pair as one line, after a sign if one page alone has it."""
    if pair.left is None:
        assert pair.right is not None  # a pair has one line at least
        return Text(f"+ {_indented(pair.right, unicode)}", "green")
    if pair.right is None:
        return Text(f"- {_indented(pair.left, unicode)}", "red")
    # Shared lines have equal labels; the number of repeats may differ.
    differs = ""
    if pair.left.repeats != pair.right.repeats:
        once = f" {say('compare.once')}"
        differs = f"  (B:{_repeats(pair.right, unicode) or once})"
    return Text(f"  {_indented(pair.left, unicode)}").append(differs, "dim")


def _indented(line: Line, unicode: bool) -> str:
    """Return a line after its indentation.

    Hidden characters are shown: an ESC must not reach a terminal.
    """
    return "  " * line.depth + visible(line.label) + _repeats(line, unicode)


def _repeats(line: Line, unicode: bool) -> str:
    return f" {'×' if unicode else 'x'}{line.repeats:,}" if line.repeats > 1 else ""


def _fold_note(fold: _Fold, unicode: bool) -> str:
    dots = "⋯" if unicode else "..."
    return f"{dots} {say('folded.lines', count=fold.num_lines)} {dots}"
