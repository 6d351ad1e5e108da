"""Print how a text becomes a fingerprint, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from neardup.cli.render.table import table_lines
from neardup.report.wording import say, shortened, visible

if TYPE_CHECKING:
    from neardup.fingerprints.explain import Explanation

_MAX_FEATURES, _MAX_NAME = 20, 24
_PER_LINE = 8  # sums of votes
_WIDEST_IN_BITS = 64  # a longer hash is written in hexadecimal digits


def print_explanation(name: str, found: Explanation, *, full: bool = False, console: Console | None = None) -> None:
    """Print the features of a text with their weights and hash bits, the sums of the votes, and the fingerprint.

    Parameters
    ----------
    name : what the text is called.
    full : print every feature, however many there are.
    """
    console = console or Console(highlight=False)
    for line in _lines(name, found, full):
        console.print(line, soft_wrap=True)


def _lines(name: str, found: Explanation, full: bool) -> Iterator[Text]:
    yield Text()
    count = len(found.features)
    yield Text(f"  {visible(name)}" + say("explain.features", count=count), "bold")
    yield Text()
    yield from _features(found, full)
    yield Text()
    yield Text(f"  {say('explain.votes')}", "bold")
    yield Text()
    yield from _sums(found)
    yield Text()
    digits = f"{found.fingerprint:0{found.bits}b}"
    of_zero = {digit for digit, value in zip(digits, found.sums, strict=True) if value == 0}
    zero = say("explain.zero", digit=of_zero.pop()) if of_zero else ""  # schemes differ in the bit of a sum of 0
    yield Text(f"  {say('explain.fingerprint')}{zero}", "bold")
    yield Text()
    if found.bits <= _WIDEST_IN_BITS:
        yield Text(f"  {digits}")
    yield Text(f"  {found.fingerprint:0{found.bits // 4}x}", "bold cyan")


def _features(found: Explanation, full: bool) -> Iterator[Text]:
    """Yield a line for each feature: the weightiest, in the order of the text."""
    order = range(len(found.features))
    shown = list(order) if full else sorted(sorted(order, key=lambda i: -found.weights[i])[:_MAX_FEATURES])
    columns = {
        say("explain.feature"): [shortened(visible(found.features[i]), _MAX_NAME) for i in shown],
        say("explain.count"): [str(found.counts[i]) for i in shown],
        "idf": [] if found.idf is None else [f"{found.idf[i]:.2f}" for i in shown],
        say("explain.weight"): [_number(found.weights[i]) for i in shown],
        say("explain.hash"): [_hash(found.hashes[i], found.bits) for i in shown],
    }
    columns = {head: cells for head, cells in columns.items() if head != "idf" or found.idf is not None}
    yield from table_lines(list(columns), list(zip(*columns.values(), strict=True)), left=(0, len(columns) - 1))
    if len(shown) < len(found.features):
        left = len(found.features) - len(shown)
        yield Text(f"  {say('explain.more', left=left)}", "dim")


def _sums(found: Explanation) -> Iterator[Text]:
    written = [_number(value, signed=True) for value in found.sums]
    width = max(map(len, written))
    for start in range(0, found.bits, _PER_LINE):
        top = found.bits - 1 - start
        last = top - _PER_LINE + 1
        line = Text(say("explain.sums", top=top, last=last), "dim")
        for value, text in zip(found.sums[start : start + _PER_LINE], written[start:], strict=False):
            line.append(f" {text:>{width}}", "green" if value > 0 else "red" if value < 0 else "yellow")
        digits = f"{found.fingerprint:0{found.bits}b}"[start : start + _PER_LINE]
        yield line.append(f"   {digits}", "bold not dim")


def _hash(value: int, bits: int) -> str:
    return f"{value:0{bits}b}" if bits <= _WIDEST_IN_BITS else f"{value:0{bits // 4}x}"


def _number(value: float, *, signed: bool = False) -> str:
    sign = "+" if signed else ""
    return f"{value:{sign}d}" if isinstance(value, int) else f"{value:{sign}.2f}"
