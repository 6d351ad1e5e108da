"""Print how a text becomes a fingerprint, step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from neardup.output.wording import plural, shortened, visible

if TYPE_CHECKING:
    from neardup.fingerprints.explain import Explanation

_MAX_FEATURES, _MAX_NAME = 20, 24
_PER_LINE = 8  # sums of votes
_WIDEST_IN_BITS = 64  # a longer hash is written in hexadecimal digits


def print_explanation(
    name: str,
    found: Explanation,
    *,
    full: bool = False,
    say: Callable[[str], str] = str,
    console: Console | None = None,
) -> None:
    """Print the features of a text with their weights and hash bits, the sums of the votes, and the fingerprint.

    Parameters
    ----------
    name : what the text is called.
    full : print every feature, however many there are.
    say : translates messages.
    """
    console = console or Console(highlight=False)
    for line in _lines(name, found, full, say):
        console.print(line, soft_wrap=True)


def _lines(name: str, found: Explanation, full: bool, say: Callable[[str], str]) -> Iterator[Text]:
    yield Text()
    yield Text(say(f"  {visible(name)}: {plural(len(found.features), 'feature')}"), "bold")
    yield Text()
    yield from _features(found, full, say)
    yield Text()
    yield Text(say("  Votes of each bit, summed: a 1 in the hash adds the weight, a 0 subtracts it"), "bold")
    yield Text()
    yield from _sums(found, say)
    yield Text()
    digits = f"{found.fingerprint:0{found.bits}b}"
    of_zero = {digit for digit, value in zip(digits, found.sums, strict=True) if value == 0}
    yield Text(say(f"  Fingerprint: 1 where the sum is positive{_where_zero(of_zero)}"), "bold")
    yield Text()
    if found.bits <= _WIDEST_IN_BITS:
        yield Text(f"  {digits}")
    yield Text(f"  {found.fingerprint:0{found.bits // 4}x}", "bold cyan")


def _where_zero(digits: set[str]) -> str:
    """Say which bit a sum of 0 gave, if there is such a sum: schemes differ."""
    return f"; {digits.pop()} where it is 0" if digits else ""


def _features(found: Explanation, full: bool, say: Callable[[str], str]) -> Iterator[Text]:
    """Yield a line for each feature: the weightiest, in the order of the text."""
    order = range(len(found.features))
    shown = list(order) if full else sorted(sorted(order, key=lambda i: -found.weights[i])[:_MAX_FEATURES])
    names = [shortened(visible(found.features[i]), _MAX_NAME) for i in shown]
    columns = [
        [say("feature"), *names],
        [say("count"), *(str(found.counts[i]) for i in shown)],
        ["idf", *("" if found.idf is None else f"{found.idf[i]:.2f}" for i in shown)],
        [say("weight"), *(_number(found.weights[i]) for i in shown)],
        [say("hash"), *(_hash(found.hashes[i], found.bits) for i in shown)],
    ]
    if found.idf is None:
        del columns[2]
    widths = [max(map(_width, column)) for column in columns]
    for row, cells in enumerate(zip(*columns, strict=True)):
        first, *numbers, digits = cells
        line = "  " + first + " " * (widths[0] - _width(first))
        line += "".join(
            "  " + " " * (width - _width(cell)) + cell for cell, width in zip(numbers, widths[1:-1], strict=True)
        )
        yield Text(f"{line}  {digits}", "" if row else "dim")
    if len(shown) < len(found.features):
        yield Text(say(f"  ... and {len(found.features) - len(shown):,} of less weight; --full shows them all"), "dim")


def _sums(found: Explanation, say: Callable[[str], str]) -> Iterator[Text]:
    written = [_number(value, signed=True) for value in found.sums]
    width = max(map(len, written))
    for start in range(0, found.bits, _PER_LINE):
        top = found.bits - 1 - start
        line = Text(say(f"  bits {top:>3} to {top - _PER_LINE + 1:>3}  "), "dim")
        for value, text in zip(found.sums[start : start + _PER_LINE], written[start:], strict=False):
            line.append(f" {text:>{width}}", "green" if value > 0 else "red" if value < 0 else "yellow")
        digits = f"{found.fingerprint:0{found.bits}b}"[start : start + _PER_LINE]
        yield line.append(f"   {digits}", "bold not dim")


def _hash(value: int, bits: int) -> str:
    return f"{value:0{bits}b}" if bits <= _WIDEST_IN_BITS else f"{value:0{bits // 4}x}"


def _number(value: float, *, signed: bool = False) -> str:
    sign = "+" if signed else ""
    return f"{value:{sign}d}" if isinstance(value, int) else f"{value:{sign}.2f}"


def _width(text: str) -> int:
    """Return how many columns a text takes on a terminal: two for a Chinese character."""
    return Text(text).cell_len
