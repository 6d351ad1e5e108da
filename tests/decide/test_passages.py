"""What is cut is what a plain loop over windows of characters cuts."""

from __future__ import annotations

import itertools
import random
import unicodedata
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from neardup import kernels
from neardup.arrays import offsets_from_lengths
from neardup.candidates.passage_units import Units
from neardup.candidates.passages import Anchoring, Counts, group_anchors
from neardup.decide.passages import decide_common, decide_passages, decide_units
from reference import tokens
from reference.graphemes import starts_of_clusters

ALPHABETS = [
    "ab",
    "abcd",
    "aé",
    "a中b",
    "é中😀a",
    "ab ",
    "中文字",
    "ab. \n",
    "a\u0301b c",
    "👩\u200d👩🇫🇷 x",
]
ALPHABETS += ["กำ ข", "क\u094d\u200cष ", "하\u1112\u1161\u11ab", "a.\r\n "]
BLANKS = " \t\r\u3000"
CLOSERS = "\"')]}’”»›」』】》）"


def may_end(text, place, cut_at):
    """Whether a unit may end between two characters, with the white space behind it."""
    if place in (0, len(text)):
        return True
    if place not in starts_of_clusters(text):
        return False
    left = text[place - 1]
    right = text[place]
    if cut_at == "character":
        return True
    if cut_at == "paragraph":
        return left == "\n" and not text[: place - 1].rpartition("\n")[2].strip(" \t\r")
    if left == "\n" or cut_at == "line":
        return left == "\n"
    if right.isspace():
        return False
    if cut_at == "word":
        return not (is_letter(left) and is_letter(right))
    return ends_sentence(text, place)


def is_letter(character):
    """Whether a word goes on with a character: not with those of Thai and Chinese, which are words
    by themselves.
    """
    is_word_by_itself = "\u0e00" <= character < "\u0f00" or "\u3000" <= character < "\ua000"
    return not is_word_by_itself and (
        character.isalnum() or unicodedata.category(character)[0] == "M"
    )


def ends_sentence(text, place):
    """Whether a sentence ends before a place."""
    before = text[:place].rstrip(BLANKS + CLOSERS)
    blanks = set(text[len(before) : place + 1]) & set(BLANKS + "\n")
    return before[-1:] in tuple("。？\n") or (before[-1:] in tuple(".!?") and blanks)


def may_stop(text, place, cut_at):
    """Whether a cut may stop between two characters: where a unit ends, or in the white space
    behind one.
    """
    if may_end(text, place, cut_at):
        return True
    if cut_at == "character" or not text[place].isspace() or place not in starts_of_clusters(text):
        return False
    is_at_line_end = text.startswith(("\n", "\r\n"), place)
    return (
        cut_at == "word" or is_at_line_end or (cut_at == "sentence" and ends_sentence(text, place))
    )


def is_far(text, cut_at):
    """Whether the end of a cut has passed more of one word than 64 characters."""
    return cut_at in ("character", "word") and len("".join(text.split())) > 64


def trimmed(text, start, stop, cut_at):
    """The range between the first and the last place where a cut may begin and stop."""

    def first_place(cut_at):
        place = next((each for each in range(start, stop) if may_end(text, each, cut_at)), stop)
        return None if is_far(text[start:place], cut_at) else place

    def last_place(cut_at):
        place = next(
            (each for each in range(stop, start, -1) if may_stop(text, each, cut_at)), start
        )
        return None if is_far(text[place:stop], cut_at) else place

    kinds = dict.fromkeys([cut_at, "character"])
    first = next((first_place(kind) for kind in kinds if first_place(kind) is not None), start)
    return first, next((last_place(kind) for kind in kinds if last_place(kind) is not None), stop)


def naive(texts, length, *, num_against=0, cut_at="character", bridge=0, max_loss=1.0):
    """The rule as it is written in decide/passages.py: document, start, end, document that keeps
    it, its start.
    """
    known = {}
    rows = []
    fragments = []
    dropped = []

    def keep(document, fragment, start, stop):
        for end in range(max(start + 1, fragments[fragment][0] + length), stop + 1):
            found = texts[document][end - length : end]
            known.setdefault(found, (document, end - length, fragment))
        fragments[fragment][1] = stop

    for document, text in enumerate(texts):
        fragments.append([0, 0])
        begun = dict(known)
        fragment = len(fragments) - 1
        i = 0
        mine = []
        if document < num_against:
            keep(document, fragment, 0, len(text))
            continue
        while i < len(text):
            there, start, source = known.get(text[i : i + length], (document, i, fragment))
            if i + length > len(text) or (there == document and start + length > i):
                keep(document, fragment, i, i + 1)
                i += 1
                continue
            stop = i + length
            while (
                stop < len(text)
                and start + stop - i < (i if source == fragment else fragments[source][1])
                and text[stop] == texts[there][start + stop - i]
            ):
                stop += 1
            first, last = trimmed(text, i, stop, cut_at)
            if first >= last:
                keep(document, fragment, i, stop)
                i = stop
                continue
            keep(document, fragment, i, first)
            before = mine[-1][2] if mine else None
            if before is not None and 0 < first - before <= bridge:
                mine.append((document, before, first, None, None))
            mine.append((document, first, last, there, start + first - i))
            fragments.append([last, last])
            fragment = len(fragments) - 1
            i = last
        rows += mine
        if sum(row[2] - row[1] for row in mine) > max_loss * len(text):
            known = begun
            dropped.append(document)
    return rows, dropped


def selected_of(anchoring, texts):
    """The text around the anchors that may repeat."""
    array = pa.array(texts, pa.large_string())
    counts = Counts(0)
    counts.add(anchoring.hashes(array))
    selected = anchoring.select(array, counts.table)
    documents, lengths, offsets, before, up_to, bounded = np.ascontiguousarray(selected.pieces.T)
    starts = offsets_from_lengths(lengths)
    bounded = bounded.astype(np.uint8)
    columns = documents, offsets, before, up_to, bounded, selected.characters
    # Writable, as in a run, for which the kernels are compiled anyway.
    return kernels.passages.Pieces(np.array(selected.text), starts, *columns), selected


def found(
    texts, length, *, size, seed=0, num_against=0, cut_at="character", bridge=0, max_loss=1.0
):
    """The same, by anchors."""
    settings = SimpleNamespace(min_length=length, cut_at=cut_at, bridge=bridge, max_loss=max_loss)
    pieces, selected = selected_of(Anchoring(length, bridge, size=size, seed=seed), texts)
    groups = group_anchors(
        pieces, selected.positions, selected.hashes, length, size, num_against=num_against
    )
    cut = decide_passages(
        pieces,
        selected.positions,
        groups,
        settings,
        gram_size=size,
        num_against=num_against,
        on_done=lambda _: None,
    )
    columns = (cut.documents, cut.first, cut.last, cut.kept, cut.kept_first, cut.is_bridge)
    rows = [
        (*row[:3], *((None, None) if row[5] else row[3:5]))
        for row in zip(*(column.tolist() for column in columns), strict=True)
    ]
    for row, start, end in zip(rows, cut.starts.tolist(), cut.ends.tolist(), strict=True):
        assert texts[row[0]].encode()[start:end].decode() == texts[row[0]][row[1] : row[2]]
    return rows, cut.dropped.tolist()


def emptied(texts, rows):
    """The documents that lose all of their text."""
    lost = [
        sum(row[2] - row[1] for row in rows if row[0] == document) for document in range(len(texts))
    ]
    return [document for document, text in enumerate(texts) if text and lost[document] == len(text)]


def corpus(chance, alphabets=ALPHABETS):
    """Texts of few characters, in which everything repeats: random ones, parts of others, periods,
    single letters.
    """
    letters = chance.choice(alphabets)
    texts = []

    def piece():
        kind = chance.random()
        if kind < 0.4:
            return "".join(chance.choices(letters, k=chance.randrange(1, 40)))
        if kind < 0.6 and texts and chance.choice(texts):
            text = chance.choice(texts)
            start = chance.randrange(len(text) + 1)
            return text[start : start + chance.randrange(1, 60)]
        if kind < 0.8:
            return "".join(chance.choices(letters, k=chance.randrange(1, 5))) * chance.randrange(
                2, 15
            )
        return chance.choice(letters) * chance.randrange(1, 40)

    for _ in range(chance.randrange(1, 6)):
        text = "".join(piece() for _ in range(chance.randrange(1, 6)))
        place = chance.randrange(len(text) + 1)
        texts.append(
            text[:place] + chance.choice(letters) + text[place + 1 :]
            if chance.random() < 0.3
            else text
        )
    return texts


@pytest.mark.parametrize("cut_at", ["character", "word", "sentence", "line"])
def test_the_cuts_are_those_of_a_plain_loop(cut_at, pytestconfig):
    cuts = 0
    for seed in range(5000 if pytestconfig.getoption("--thorough") else 100):
        chance = random.Random(f"{cut_at} {seed}")
        texts = corpus(chance)
        length = chance.choice([6, 8, 10, 16])
        options = {
            "num_against": chance.choice([0, 0, 1]),
            "cut_at": cut_at,
            "bridge": chance.choice([0, 0, 2, length - 1]),
            "max_loss": chance.choice([1.0, 1.0, 0.5, 0.8]),
        }
        rows, dropped = naive(texts, length, **options)
        size = chance.choice([1, 2, 4, length // 2])
        expected = rows, sorted({*dropped, *emptied(texts, rows)})
        assert found(texts, length, size=size, seed=seed, **options) == expected, (
            seed,
            texts,
            length,
            options,
        )
        cuts += len(rows)
    assert cuts > 10


@pytest.mark.parametrize("anchors_at_once", [1, 6])
def test_documents_are_decided_in_stretches_as_at_once(anchors_at_once, monkeypatch):
    monkeypatch.setattr("neardup.decide.passages._ANCHORS_AT_ONCE", anchors_at_once)
    for seed in range(40):
        chance = random.Random(f"stretches {seed}")
        texts = corpus(chance)
        length = chance.choice([6, 8, 10, 16])
        options = {
            "num_against": chance.choice([0, 0, 1]),
            "bridge": chance.choice([0, 2, length - 1]),
            "max_loss": chance.choice([1.0, 0.5]),
        }
        rows, dropped = naive(texts, length, **options)
        expected = rows, sorted({*dropped, *emptied(texts, rows)})
        assert found(texts, length, size=2, seed=seed, **options) == expected, seed


@pytest.mark.parametrize(
    ("anchors_at_once", "num_done"), [(1, [1, 2, 3]), (1 << 18, [3])], ids=["one", "all"]
)
def test_the_number_of_decided_documents_follows_each_stretch(
    anchors_at_once, num_done, monkeypatch
):
    monkeypatch.setattr("neardup.decide.passages._ANCHORS_AT_ONCE", anchors_at_once)
    texts = ["abcdefgh" * 3] * 3 + [""]
    pieces, selected = selected_of(Anchoring(8, 0, size=2, seed=1), texts)
    groups = group_anchors(pieces, selected.positions, selected.hashes, 8, 2, num_against=0)
    settings = SimpleNamespace(min_length=8, cut_at="character", bridge=0, max_loss=1.0)
    steps: list[int] = []
    decide_passages(
        pieces,
        selected.positions,
        groups,
        settings,
        gram_size=2,
        num_against=0,
        on_done=steps.append,
    )
    assert steps == num_done


def common(texts, sites, length, share, cut_at="character"):
    """The rule that keeps no copy: what is cut of each text, in characters."""
    rows = []
    for document, text in enumerate(texts):
        members = [other for other, site in enumerate(sites) if site == sites[document]]
        is_cut = [False] * len(text)
        for start in range(len(text) - length + 1):
            having = sum(text[start : start + length] in texts[other] for other in members)
            if having >= max(2, share * len(members)):
                is_cut[start : start + length] = [True] * length
        edges = [
            place
            for place in range(len(text) + 1)
            if [False, *is_cut][place] != [*is_cut, False][place]
        ]
        for start, stop in zip(edges[::2], edges[1::2], strict=True):
            first, last = trimmed(text, start, stop, cut_at)
            if first < last:
                rows.append((document, first, last))
    return rows


@pytest.mark.parametrize("cut_at", ["character", "word"])
def test_what_enough_documents_of_a_site_have_is_cut_from_all_of_them(cut_at, pytestconfig):
    cuts = 0
    for seed in range(3000 if pytestconfig.getoption("--thorough") else 100):
        chance = random.Random(f"{cut_at} {seed} sites")
        texts = [*corpus(chance), *corpus(chance)]
        chance.shuffle(texts)
        sites = [chance.randrange(2) for _ in texts]
        length = chance.choice([6, 8, 10])
        share = chance.choice([0.0, 0.25, 0.5, 1.0])
        size = chance.choice([1, 2, 4])
        pieces, selected = selected_of(Anchoring(length, size=size, seed=seed), texts)
        settings = SimpleNamespace(
            min_length=length, cut_at=cut_at, bridge=0, max_loss=1.0, min_share=share
        )
        numbers = np.array(sites, np.uint64)
        cut = decide_common(
            pieces, selected.positions, selected.hashes, numbers, settings, gram_size=size
        )
        rows = [*zip(cut.documents.tolist(), cut.first.tolist(), cut.last.tolist(), strict=True)]
        assert rows == common(texts, sites, length, share, cut_at), (
            seed,
            texts,
            sites,
            length,
            share,
        )
        cuts += len(rows)
    assert cuts > 50


def test_large_groups_of_anchors_are_divided_and_nothing_is_lost(monkeypatch, pytestconfig):
    monkeypatch.setattr("neardup.candidates.passages._LARGE_GROUP", 2)
    for seed in range(3000 if pytestconfig.getoption("--thorough") else 100):
        chance = random.Random(f"groups {seed}")
        texts = corpus(chance)
        length = chance.choice([6, 8, 10, 16])
        size = chance.choice([1, 2, 4, length // 2])
        num_against = chance.choice([0, 0, 1, 3])
        texts = texts * 2 if num_against == 3 else texts
        rows, _ = naive(texts, length, num_against=num_against)
        assert found(texts, length, size=size, seed=seed, num_against=num_against) == (
            rows,
            emptied(texts, rows),
        )


@pytest.mark.parametrize(("min_length", "size"), [(32, 32), (127, 32), (128, 64), (1000, 64)])
def test_windows_of_two_grams_or_more_have_long_grams(min_length, size):
    assert Anchoring(min_length).size == size


@pytest.mark.parametrize("letter", ["a", "é", "的", "😀"])
def test_a_run_of_one_character_has_few_anchors(letter):
    anchoring = Anchoring(200)
    hashes = anchoring.hashes(pa.array([letter * 100_000], pa.large_string()))
    assert len(set(hashes.tolist())) == 1
    in_each_window = 100_000 / (200 - anchoring.size + 1)
    assert len(hashes) <= 2 * 200 + in_each_window + 1


def test_short_cuts_between_long_texts_leave_many_fragments():
    letters = "abcdefghijklmnopqrstuvwxyz"
    for seed in range(10):
        chance = random.Random(seed)
        shared = (
            "".join(chance.choices(letters, k=70))
            + "\nzz\n"
            + "".join(chance.choices(letters, k=127))
        )
        texts = [
            "".join(chance.choices(letters, k=320))
            + shared
            + "".join(chance.choices(letters, k=320))
            for _ in range(20)
        ]
        assert found(texts, 200, size=64, seed=seed, cut_at="line") == naive(
            texts, 200, cut_at="line"
        )


def test_a_short_text_in_many_contexts_is_compared_with_few():
    chance = random.Random(1)
    letters = "abcdefghijklmnopqrstuvwxyz     "
    common = "".join(chance.choices(letters, k=150))
    around = ["".join(chance.choices(letters, k=175)) for _ in range(400)]
    texts = [
        before + common + after for before, after in zip(around[:200], around[200:], strict=True)
    ]
    anchoring = Anchoring(200)
    pieces, selected = selected_of(anchoring, texts)
    groups = group_anchors(pieces, selected.positions, selected.hashes, 200, anchoring.size)
    before = groups.contexts[:, kernels.passage_groups.BEFORE]
    is_hashed = before != np.iinfo(np.uint64).max  # of few, none is
    compared = [
        is_compared for one, _, is_compared in pairs_of_one_hash(selected, groups) if is_hashed[one]
    ]
    assert len(compared) > 10_000
    # 9 of 14 blocks agree; each of 5 others does by chance in (3/16)**2 + 13/256 of pairs; 6 ways
    # to divide these.
    assert sum(compared) < 10 * 6 * 0.086**5 * len(compared)


def pairs_of_one_hash(selected, groups):
    """Pairs of anchors, and whether one is compared with the other."""
    asked = kernels.passage_groups.asked
    may_share = kernels.passage_groups.may_share
    for one, other in itertools.combinations(range(len(selected.positions)), 2):
        if selected.hashes[one] == selected.hashes[other]:
            in_one_group = groups.numbers[one] == groups.numbers[other] >= 0
            before, after = groups.contexts[other]
            yield (
                one,
                other,
                in_one_group and may_share(asked(before), asked(after), groups.contexts[one]),
            )


def agreement(one, other):
    """How many characters agree before and from two places on; each is the text of a piece, before
    and behind.
    """
    pairs = (reversed(one[0]), reversed(other[0])), (one[1], other[1])
    return sum(
        len([*itertools.takewhile(lambda pair: pair[0] == pair[1], zip(*pair, strict=False))])
        for pair in pairs
    )


@pytest.mark.slow
@pytest.mark.parametrize(("length", "size"), [(200, 64), (128, 64), (90, 32), (40, 32)])
@pytest.mark.parametrize(
    "alphabet", ["abcdefghij klmnopqrst", "aé中😀b文 c字", "中文字天地玄黄宇宙洪荒"]
)
def test_anchors_that_share_a_window_are_in_one_group_and_are_compared(length, size, alphabet):
    chance = random.Random(length)
    common = "".join(chance.choices(alphabet, k=length + 40))
    texts = []
    for _ in range(60):
        start = chance.randrange(60)
        around = ["".join(chance.choices(alphabet, k=chance.randrange(length))) for _ in range(2)]
        texts.append(
            around[0] + common[start : start + length + chance.randint(-30, 10)] + around[1]
        )
    pieces, selected = selected_of(Anchoring(length, size=size), texts)
    groups = group_anchors(pieces, selected.positions, selected.hashes, length, size)
    owners = np.searchsorted(pieces.anchors, np.arange(len(selected.positions)), "right")
    sides = [
        [
            bytes(part).decode()
            for part in (pieces.text[pieces.starts[o] : p], pieces.text[p : pieces.starts[o + 1]])
        ]
        for o, p in zip(owners, selected.positions, strict=True)
    ]
    compared = {
        (one, other): is_compared for one, other, is_compared in pairs_of_one_hash(selected, groups)
    }
    shared = {pair for pair in compared if agreement(*(sides[each] for each in pair)) >= length}
    assert shared
    assert all(compared[pair] for pair in shared)
    assert not all(compared.values())


UNIT_ALPHABETS = [
    "a. \n",
    "aA,\n \n",
    "a\r\n\t",
    "中。\n文",
    "aＡé.\n",
    "a\u0301b! \n",
    "½a\n.\u3000",
    "\n ab. ？\n",
]


def units_of(text, unit):
    """The units of a text, as ranges; line ends belong to the unit before them."""
    places = [p for p in range(1, len(text)) if text[p] not in "\r\n" and may_end(text, p, unit)]
    return [*itertools.pairwise([0, *places, len(text)])] if text else []


def naive_units(
    texts, unit, *, normalise, fold, min_length, keep, share, sites, num_against, max_loss
):
    """The rules: document, start, end, document that keeps it, its start, occurrences; and what is
    dropped.
    """
    content = {}
    for document, text in enumerate(texts):
        for start, stop in units_of(text, unit):
            stripped = text[start:stop].strip()
            normal = (
                tuple(tokens.words(tokens.normalise(stripped, True, True, fold)))
                if normalise
                else stripped
            )
            if len(stripped) >= min_length and normal:
                content[document, start, stop] = normal
    kept = {}
    rows = []
    dropped = []
    for document, text in enumerate(texts):
        before = dict(kept)
        mine = []
        for (owner, start, stop), normal in content.items():
            if owner != document:
                continue
            if keep == "none":
                site = [other for other in range(len(texts)) if sites[other] == sites[document]]
                having = {
                    other
                    for (other, *_), found in content.items()
                    if found == normal and other in site
                }
                if len(having) >= max(2, share * len(site)):
                    mine.append((document, start, stop, None, None, len(having)))
            elif normal in kept and document >= num_against:
                mine.append((document, start, stop, *kept[normal]))
            else:
                kept.setdefault(normal, (document, start))
        rows += mine
        if sum(row[2] - row[1] for row in mine) > max_loss * len(text):
            kept = before
            dropped.append(document)
    counts = Counter(row[3:5] for row in rows)
    return [row if keep == "none" else (*row, counts[row[3:]] + 1) for row in rows], dropped


@pytest.mark.parametrize("unit", ["paragraph", "line", "sentence"])
def test_the_units_that_are_cut_are_those_of_a_plain_loop(unit, monkeypatch, pytestconfig):
    cuts = 0
    for seed in range(4000 if pytestconfig.getoption("--thorough") else 80):
        chance = random.Random(f"{unit} {seed}")
        texts = [*corpus(chance, UNIT_ALPHABETS), *corpus(chance, UNIT_ALPHABETS)]
        options = {
            "normalise": chance.random() < 0.5,
            "fold": chance.choice([(), ("chinese",)]),
            "min_length": chance.choice([1, 1, 2, 4]),
            "keep": chance.choice(["first", "first", "none"]),
            "max_loss": chance.choice([1.0, 1.0, 0.3, 0.6]),
        }
        share = chance.choice([0.0, 0.3, 0.6])
        num_against = chance.choice([0, 0, 2])
        sites = [chance.randrange(2) for _ in texts]
        settings = SimpleNamespace(unit=unit, cut_at="word", bridge=0, min_share=share, **options)
        finder = Units(settings)
        pieces, _ = selected_of(finder, texts)
        with monkeypatch.context() as patch:
            if (
                chance.random() < 0.3 and not options["normalise"]
            ):  # equal hashes of different texts change nothing
                patch.setattr(Units, "_measure", with_few_hashes(Units._measure))
            first = finder.first_equal(pieces, 1)
        cut = decide_units(pieces, first, np.array(sites, np.uint64), settings, num_against)
        columns = cut.documents, cut.first, cut.last, cut.kept, cut.kept_first, cut.occurrences
        rows = [*zip(*(column.tolist() for column in columns), strict=True)]
        if options["keep"] == "none":
            rows = [(*row[:3], None, None, row[5]) for row in rows]
        expected, dropped = naive_units(
            texts, unit, share=share, sites=sites, num_against=num_against, **options
        )
        assert rows == expected, (seed, texts, options)
        assert cut.dropped.tolist() == sorted({*dropped, *emptied(texts, rows)})
        cuts += len(rows)
    assert cuts > 100


@pytest.mark.parametrize("units_at_once", [1, 3])
@pytest.mark.parametrize("normalise", [False, True])
def test_equal_units_do_not_depend_on_how_many_are_measured_at_once(
    normalise, units_at_once, monkeypatch
):
    settings = SimpleNamespace(
        unit="line", cut_at="word", bridge=0, min_length=1, normalise=normalise, fold=()
    )
    lines = ["one\n", "two two\n", "one\n", "three\n", "two two\n", "one\n"]
    pieces, _ = selected_of(Units(settings), ["".join(lines), "".join(lines[:3])])
    texts = [
        bytes(pieces.text[start:stop]).strip()
        for start, stop in itertools.pairwise(pieces.starts.tolist())
    ]
    monkeypatch.setattr("neardup.candidates.passage_units._UNITS_AT_ONCE", units_at_once)
    found = Units(settings).first_equal(pieces, 2)
    assert found.tolist() == [texts.index(text) for text in texts]
    assert len(texts) > 6


@pytest.mark.parametrize("items_per_task", [1, 3])
def test_the_cuts_do_not_depend_on_how_many_groups_are_a_task(items_per_task, monkeypatch):
    monkeypatch.setattr("neardup.candidates.passages._ITEMS_PER_TASK", items_per_task)
    for seed in range(20):
        texts = corpus(random.Random(f"tasks {seed}"))
        rows, _ = naive(texts, 8)
        assert found(texts, 8, size=2, seed=seed) == (rows, emptied(texts, rows))


def with_few_hashes(measure):
    def measured(self, data, bounds):
        found = measure(self, data, bounds)
        return found._replace(keys=found.keys & np.uint64(1))

    return measured
