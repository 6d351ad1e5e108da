"""Print how two texts become fingerprints, step by step, and how an index finds one by the
other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

from rich.console import Console
from rich.text import Text

from neardup.candidates.bands import Bands, candidate_probability
from neardup.candidates.blocks import Radius, cut_blocks
from neardup.cli.render.table import table_lines
from neardup.fingerprints.explain import Explanation, SignatureExplanation
from neardup.methods.registry import method_of
from neardup.report.wording import percent, say, shortened, visible
from neardup.settings.methods import MethodSettings

_MAX_FEATURES = 20
_MAX_NAME = 24
_PER_LINE = 8  # sums of votes
_WIDEST_IN_BITS = 64  # a longer hash is written in hexadecimal digits


def print_explanations(
    names: tuple[str, str],
    found: Sequence[Explanation | SignatureExplanation],
    method: MethodSettings,
    *,
    full: bool,
) -> None:
    """Print how the fingerprints of two texts are computed, and how an index finds one by the
    other.

    Parameters
    ----------
    names : of the texts.
    found : their explanations.
    method : the settings that made them.
    full : print every feature, however many there are.
    """
    console = Console(highlight=False)
    left, right = found
    lookup = method_of(method).lookup
    if isinstance(left, SignatureExplanation) and isinstance(right, SignatureExplanation):
        assert lookup.bands is not None
        lines = _signature_lines(names, (left, right), lookup.bands, full)
    else:
        assert isinstance(left, Explanation)
        assert isinstance(right, Explanation)
        assert lookup.radius is not None
        lines = chain(
            *map(_lines, names, (left, right), [full] * 2), _block_lines(left, right, lookup.radius)
        )
    for line in lines:
        console.print(line, soft_wrap=True)


def _lines(name: str, found: Explanation, full: bool) -> Iterator[Text]:
    yield from _titled(visible(name) + say("explain.features", count=len(found.features)))
    yield from _features(found, full)
    yield from _titled(say("explain.votes"))
    yield from _sums(found)
    digits = f"{found.fingerprint:0{found.bits}b}"
    of_zero = {digit for digit, value in zip(digits, found.sums, strict=True) if value == 0}
    zero = (
        say("explain.zero", digit=of_zero.pop()) if of_zero else ""
    )  # schemes differ in the bit of a sum of 0
    yield from _titled(f"{say('explain.fingerprint')}{zero}")
    if found.bits <= _WIDEST_IN_BITS:
        yield Text(f"  {digits}")
    yield Text(f"  {found.fingerprint:0{found.bits // 4}x}", "bold cyan")


def _features(found: Explanation, full: bool) -> Iterator[Text]:
    """Yield a line for each feature: the weightiest, in the order of the text."""
    order = range(len(found.features))
    shown = (
        list(order)
        if full
        else sorted(sorted(order, key=lambda i: -found.weights[i])[:_MAX_FEATURES])
    )
    columns = {
        say("explain.feature"): [_shown(found.features[i]) for i in shown],
        say("explain.count"): [str(found.counts[i]) for i in shown],
        "idf": [] if found.idf is None else [f"{found.idf[i]:.2f}" for i in shown],
        say("explain.weight"): [_number(found.weights[i]) for i in shown],
        say("explain.hash"): [_hash(found.hashes[i], found.bits) for i in shown],
    }
    columns = {
        head: cells for head, cells in columns.items() if head != "idf" or found.idf is not None
    }
    yield from table_lines(
        list(columns), list(zip(*columns.values(), strict=True)), left=(0, len(columns) - 1)
    )
    if len(shown) < len(found.features):
        left = len(found.features) - len(shown)
        yield Text(f"  {say('explain.more', left=left)}", "dim")


def _block_lines(left: Explanation, right: Explanation, radius: Radius) -> Iterator[Text]:
    """Yield the blocks of two fingerprints: at least `num_blocks` - `max_distance` of them have no
    differing bit.
    """
    k = radius.max_distance
    num_blocks = radius.num_blocks or radius.max_distance + 1
    same = say("explain.same")
    differing = left.fingerprint ^ right.fingerprint
    rows = []
    for number, mask in enumerate(cut_blocks(0, left.bits, num_blocks)[::-1], 1):
        low = (mask & -mask).bit_length() - 1
        high = mask.bit_length() - 1
        cells = (_hash((one.fingerprint & mask) >> low, high - low + 1) for one in (left, right))
        count = (differing & mask).bit_count()
        rows.append([str(number), f"{high}-{low}", *cells, str(count) if count else same])
    yield from _titled(say("explain.blocks", k=k, blocks=num_blocks, least=num_blocks - k))
    heads = [say("explain.block"), say("explain.bits"), "A", "B", say("explain.differing")]
    yield from table_lines(heads, rows, left=(2, 3), is_bold=lambda row: row[-1] == same)
    yield Text()
    found = "explain.must" if differing.bit_count() <= k else "explain.may"
    equal = sum(row[-1] == same for row in rows)
    yield Text(
        f"  {say(found, distance=differing.bit_count(), k=k, equal=equal, least=num_blocks - k)}"
    )


def _signature_lines(
    names: tuple[str, str],
    found: tuple[SignatureExplanation, SignatureExplanation],
    bands: Bands,
    full: bool,
) -> Iterator[Text]:
    """Yield the shingles of two texts, with the number of hashes of which each is the minimum; then
    the bands.
    """
    rows: dict[int, list[str]] = {}
    for side, one in enumerate(found):
        minima = Counter(one.minima)
        for index, (feature, value) in enumerate(zip(one.features, one.hashes, strict=True)):
            row = rows.setdefault(value, [_shown(feature), f"{value:016x}", "-", "-"])
            row[2 + side] = str(minima[index])
    shared = sum("-" not in row[2:] for row in rows.values())
    union = len(rows)
    a, b = map(visible, names)
    yield from _titled(say("explain.shingles", a=a, b=b, shared=shared, union=union))
    heads = [
        say("explain.shingle"),
        say("explain.hash"),
        *(say("explain.minima", name=name) for name in "AB"),
    ]
    shown = list(rows.values())[: union if full else _MAX_FEATURES]
    yield from table_lines(heads, shown, left=(0, 1), is_bold=lambda row: "-" not in row[2:])
    if len(shown) < union:
        yield Text(f"  {say('explain.more_shingles', left=union - len(shown))}", "dim")
    yield from _band_lines(*found, bands)
    chance = percent(float(candidate_probability(shared / union, bands)))
    yield Text(
        f"  {say('explain.curve', s=shared / union, r=bands.rows_per_band, b=bands.num_bands, chance=chance)}"  # noqa: E501
    )


def _band_lines(
    left: SignatureExplanation, right: SignatureExplanation, bands: Bands
) -> Iterator[Text]:
    """Yield a line for each band of two signatures: which hashes are equal, and the keys."""
    equal = "".join(".="[x == y] for x, y in zip(left.signature, right.signature, strict=True))
    same = say("explain.same")
    rows = []
    for band, (x, y) in enumerate(zip(left.keys, right.keys, strict=True)):
        hashes = equal[band * bands.rows_per_band : (band + 1) * bands.rows_per_band]
        rows.append([str(band + 1), hashes, f"{x:016x}", f"{y:016x}", same if x == y else ""])
    yield from _titled(say("explain.signature", hashes=len(equal), equal=equal.count("=")))
    heads = [
        say("explain.band"),
        say("explain.hashes"),
        *(say("explain.key", name=name) for name in "AB"),
        "",
    ]
    yield from table_lines(heads, rows, left=(1, 2, 3, 4), is_bold=lambda row: row[-1] == same)
    yield Text()
    met = sum(row[-1] == same for row in rows)
    yield Text(f"  {say('explain.met' if met else 'explain.unmet', met=met, bands=len(rows))}")


def _titled(title: str) -> Iterator[Text]:
    """Yield a title between two empty lines."""
    yield from (Text(), Text(f"  {title}", "bold"), Text())


def _sums(found: Explanation) -> Iterator[Text]:
    written = [_number(value, signed=True) for value in found.sums]
    width = max(map(len, written))
    for start in range(0, found.bits, _PER_LINE):
        top = found.bits - 1 - start
        last = top - _PER_LINE + 1
        line = Text(say("explain.sums", top=top, last=last), "dim")
        for value, text in zip(
            found.sums[start : start + _PER_LINE], written[start:], strict=False
        ):
            line.append(
                f" {text:>{width}}", "green" if value > 0 else "red" if value < 0 else "yellow"
            )
        digits = f"{found.fingerprint:0{found.bits}b}"[start : start + _PER_LINE]
        yield line.append(f"   {digits}", "bold not dim")


def _hash(value: int, bits: int) -> str:
    return f"{value:0{bits}b}" if bits <= _WIDEST_IN_BITS else f"{value:0{bits // 4}x}"


def _number(value: float, *, signed: bool = False) -> str:
    sign = "+" if signed else ""
    return f"{value:{sign}d}" if isinstance(value, int) else f"{value:{sign}.2f}"


def _shown(feature: str) -> str:
    """Return a feature for a line of a table, with the ends of lines and the tabs of code by their
    names.
    """
    return shortened(visible(feature).replace("\n", "[LF]").replace("\t", "[TAB]"), _MAX_NAME)
