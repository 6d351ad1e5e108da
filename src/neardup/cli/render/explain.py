"""Print how two texts become fingerprints, and how an index finds one text by the other."""

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
    """Print the steps from two texts to their fingerprints, and how an index finds the pair.

    Parameters
    ----------
    names : the names of the texts.
    found : the explanations of the texts.
    method : the settings of the fingerprints.
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
        of_each = [_lines(name, one, full) for name, one in zip(names, (left, right), strict=True)]
        lines = chain(*of_each, _block_lines(left, right, lookup.radius))
    for line in lines:
        console.print(line, soft_wrap=True)


def _lines(name: str, found: Explanation, full: bool) -> Iterator[Text]:
    yield from _titled(visible(name) + say("explain.features", count=len(found.features)))
    yield from _features(found, full)
    yield from _titled(say("explain.votes"))
    yield from _sums(found)
    digits = f"{found.fingerprint:0{found.bits}b}"
    # Schemes differ in the bit of a sum of 0.
    of_zero = {digit for digit, value in zip(digits, found.sums, strict=True) if value == 0}
    zero = say("explain.zero", digit=of_zero.pop()) if of_zero else ""
    yield from _titled(f"{say('explain.fingerprint')}{zero}")
    if found.bits <= _WIDEST_IN_BITS:
        yield Text(f"  {digits}")
    yield Text(f"  {found.fingerprint:0{found.bits // 4}x}", "bold cyan")


def _features(found: Explanation, full: bool) -> Iterator[Text]:
    """Yield a line for each feature: the weightiest, in the order of the text."""
    shown = list(range(len(found.features)))
    if not full:
        weightiest = sorted(shown, key=lambda i: -found.weights[i])
        # Chosen by weight, shown in the order of the text.
        shown = sorted(weightiest[:_MAX_FEATURES])
    columns = {
        say("explain.feature"): [_cell(found.features[i]) for i in shown],
        say("explain.count"): [str(found.counts[i]) for i in shown],
    }
    if found.idf is not None:
        columns["idf"] = [f"{found.idf[i]:.2f}" for i in shown]
    columns[say("explain.weight")] = [_number(found.weights[i]) for i in shown]
    columns[say("explain.hash")] = [_hash(found.hashes[i], found.bits) for i in shown]
    rows = list(zip(*columns.values(), strict=True))
    yield from table_lines(list(columns), rows, left=(0, len(columns) - 1))
    if len(shown) < len(found.features):
        left = len(found.features) - len(shown)
        yield Text(f"  {say('explain.more', left=left)}", "dim")


def _block_lines(left: Explanation, right: Explanation, radius: Radius) -> Iterator[Text]:
    """Yield the blocks of two fingerprints.

    At least `num_blocks` - `max_distance` blocks of near-duplicates have no differing bit.
    """
    k = radius.max_distance
    # Without a setting, as few blocks as guarantee one that agrees: differing bits can be in
    # `max_distance` of them.
    num_blocks = radius.num_blocks or radius.max_distance + 1
    same = say("explain.same")
    distance = (left.fingerprint ^ right.fingerprint).bit_count()
    # The highest bits first, as the fingerprint is written.
    masks = cut_blocks(0, left.bits, num_blocks)[::-1]
    rows = [_block_row(left, right, number, mask) for number, mask in enumerate(masks, 1)]
    yield from _titled(say("explain.blocks", k=k, blocks=num_blocks, least=num_blocks - k))
    heads = [say("explain.block"), say("explain.bits"), "A", "B", say("explain.differing")]
    yield from table_lines(heads, rows, left=(2, 3), is_bold=lambda row: row[-1] == same)
    yield Text()
    found = "explain.must" if distance <= k else "explain.may"
    equal = sum(row[-1] == same for row in rows)
    sentence = say(found, distance=distance, k=k, equal=equal, least=num_blocks - k)
    yield Text(f"  {sentence}")


def _block_row(left: Explanation, right: Explanation, number: int, mask: int) -> list[str]:
    """Return the cells of one block: its number, its bits, both values, the differing bits."""
    # The lowest set bit alone.
    low = (mask & -mask).bit_length() - 1
    high = mask.bit_length() - 1
    width = high - low + 1
    values = [_hash((side.fingerprint & mask) >> low, width) for side in (left, right)]
    count = ((left.fingerprint ^ right.fingerprint) & mask).bit_count()
    differing = str(count) if count else say("explain.same")
    return [str(number), f"{high}-{low}", *values, differing]


def _signature_lines(
    names: tuple[str, str],
    found: tuple[SignatureExplanation, SignatureExplanation],
    bands: Bands,
    full: bool,
) -> Iterator[Text]:
    """Yield the shingles of two texts with the number of minima of each, then the bands."""
    rows = _shingle_rows(found)
    union = len(rows)
    # The minima of both texts: neither cell is "-".
    shared = sum("-" not in row[2:] for row in rows)
    a, b = map(visible, names)
    yield from _titled(say("explain.shingles", a=a, b=b, shared=shared, union=union))
    minima = [say("explain.minima", name=name) for name in "AB"]
    heads = [say("explain.shingle"), say("explain.hash"), *minima]
    shown = rows[: union if full else _MAX_FEATURES]
    yield from table_lines(heads, shown, left=(0, 1), is_bold=lambda row: "-" not in row[2:])
    if len(shown) < union:
        yield Text(f"  {say('explain.more_shingles', left=union - len(shown))}", "dim")
    yield from _band_lines(*found, bands)
    chance = percent(float(candidate_probability(shared / union, bands)))
    r = bands.rows_per_band
    b_count = bands.num_bands
    curve = say("explain.curve", s=shared / union, r=r, b=b_count, chance=chance)
    yield Text(f"  {curve}")


def _shingle_rows(found: tuple[SignatureExplanation, SignatureExplanation]) -> list[list[str]]:
    """Return a row for each distinct shingle: its text, its hash, and the minima in either text.

    A text without the shingle has "-".
    """
    rows: dict[int, list[str]] = {}
    for side, explanation in enumerate(found):
        minima = Counter(explanation.minima)
        shingles = zip(explanation.features, explanation.hashes, strict=True)
        # A shingle of both texts has one row: its second cell is filled by the second text.
        for index, (feature, value) in enumerate(shingles):
            row = rows.setdefault(value, [_cell(feature), f"{value:016x}", "-", "-"])
            row[2 + side] = str(minima[index])
    return list(rows.values())


def _band_lines(
    left: SignatureExplanation, right: SignatureExplanation, bands: Bands
) -> Iterator[Text]:
    """Yield a line for each band of two signatures: which hashes are equal, and the keys."""
    hashes_of_both = zip(left.signature, right.signature, strict=True)
    # One sign for each hash of the signatures: the bands are slices of this string.
    equal = "".join("=" if x == y else "." for x, y in hashes_of_both)
    same = say("explain.same")
    rows = []
    for band, (x, y) in enumerate(zip(left.keys, right.keys, strict=True)):
        hashes = equal[band * bands.rows_per_band : (band + 1) * bands.rows_per_band]
        rows.append([str(band + 1), hashes, f"{x:016x}", f"{y:016x}", same if x == y else ""])
    yield from _titled(say("explain.signature", hashes=len(equal), equal=equal.count("=")))
    keys = [say("explain.key", name=name) for name in "AB"]
    heads = [say("explain.band"), say("explain.hashes"), *keys, ""]
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
        sums = found.sums[start : start + _PER_LINE]
        # `written` goes on after this line of sums.
        for value, text in zip(sums, written[start:], strict=False):
            color = "green" if value > 0 else "red" if value < 0 else "yellow"
            line.append(f" {text:>{width}}", color)
        digits = f"{found.fingerprint:0{found.bits}b}"[start : start + _PER_LINE]
        yield line.append(f"   {digits}", "bold not dim")


def _hash(value: int, bits: int) -> str:
    return f"{value:0{bits}b}" if bits <= _WIDEST_IN_BITS else f"{value:0{bits // 4}x}"


def _number(value: float, *, signed: bool = False) -> str:
    sign = "+" if signed else ""
    if isinstance(value, int):
        return f"{value:{sign}d}"
    # The weights of deep elements are small.
    return f"{value:{sign}.2f}" if abs(value) >= 0.1 else f"{value:{sign}.2g}"


def _cell(feature: str) -> str:
    """Return a feature as a cell of a table; line ends and tabs have names."""
    return shortened(visible(feature).replace("\n", "[LF]").replace("\t", "[TAB]"), _MAX_NAME)
