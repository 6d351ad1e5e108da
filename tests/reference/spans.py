"""Where the tokens of a text are, in plain Python: the twin of `neardup.features.spans`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from neardup.features.unicode_tables import COMPOSE, EXPAND, RANK_SHIFT, load_tables

from . import tokens as reference

Span = tuple[int, int, str]
MAX_PIECE = 100


class Character(NamedTuple):
    """A character of the normalised text, and its range in the original text."""

    character: str
    start: int
    end: int


def token_spans(
    text: str, tokens: str, nfkc: bool, case_fold: bool, fold: Sequence[str]
) -> list[Span]:
    """Return the tokens of a text with their ranges; tokens : words, chars, whitespace or
    letters.
    """
    kept = kept_positions(text, nfkc, fold)
    reduced = "".join(text[position] for position in kept)
    characters = [
        Character(item.character, kept[item.start], kept[item.end - 1] + 1)
        for item in normalised(reduced, nfkc, case_fold, fold)
    ]
    if "vietnamese" in fold:
        moved = reference.move_tones("".join(item.character for item in characters))
        characters = [
            item._replace(character=character)
            for item, character in zip(characters, moved, strict=True)
        ]
    return list(SPLITTERS[tokens](characters))


def kept_positions(text: str, nfkc: bool, fold: Sequence[str]) -> list[int]:
    """Return the positions of the characters that are neither transparent nor between the parts of
    a divided word.
    """
    kept = []
    position = 0
    for index, character in enumerate(text):
        if "hyphens" in fold and index >= position:
            # Joining only this break shortens the text by the characters of the break.
            found = re.match("[-\u2010\u00ad][ \t]*(?:\r\n|\r|\n)[ \t]*", text[index:])
            around = text[index - 1 : index] + (text[index + found.end() :][:1] if found else "")
            if found and len(around) == 2 and all(map(reference.is_letter, around)):
                position = index + found.end()
        if index >= position and not reference.is_dropped(character, nfkc):
            kept.append(index)
    return kept


def normalised(text: str, nfkc: bool, case_fold: bool, fold: Sequence[str]) -> Iterator[Character]:
    """Yield the characters of the normalised text; those of one inseparable piece share its
    range.
    """

    def normalise(piece: str) -> str:
        return reference.normalise(piece, nfkc, case_fold, fold)

    for start, end in pieces(text, nfkc, case_fold):
        whole = normalise(text[start:end])
        if "".join(map(normalise, text[start:end])) == whole:
            cuts = range(start + 1, end)
        elif normalise(text[start]) + normalise(text[start + 1 : end]) == whole:
            cuts = [start + 1]  # the marks are reordered, but do not combine with the character
        else:
            cuts = []
        for first, last in pairwise([start, *cuts, end]):
            yield from (
                Character(character, first, last) for character in normalise(text[first:last])
            )


def pieces(text: str, nfkc: bool, case_fold: bool) -> Iterator[tuple[int, int]]:
    """Yield the ranges of a text that are normalised by themselves."""
    entries = load_tables(nfkc=nfkc, case_fold=case_fold).entries
    start = 0
    for position, character in enumerate(text):
        entry = int(entries[ord(character)])
        joins = bool(entry & COMPOSE) or (entry >> RANK_SHIFT != 0 and not entry & EXPAND)
        if position > start and (not joins or position - start == MAX_PIECE):
            yield start, position
            start = position
    if start < len(text):
        yield start, len(text)


def is_space(item: Character) -> bool:
    return item.character.isspace() or item.character == "\0"


def words(characters: Iterable[Character]) -> Iterator[Span]:
    run: list[Character] = []
    for item in characters:
        kind = reference.class_of(item.character)
        if kind == reference.WORD:
            run.append(item)
            continue
        yield from joined(run)
        run = []
        if kind == reference.SINGLE:
            yield item.start, item.end, item.character
    yield from joined(run)


def whitespace_words(characters: Iterable[Character]) -> Iterator[Span]:
    run: list[Character] = []
    for item in characters:
        if is_space(item):
            yield from joined(run)
            run = []
        else:
            run.append(item)
    yield from joined(run)


def single_characters(characters: Iterable[Character]) -> Iterator[Span]:
    spaces: list[Character] = []
    is_first = True
    for item in characters:
        if is_space(item):
            spaces.append(item)
            continue
        if spaces and not is_first:
            yield spaces[0].start, spaces[-1].end, " "
        yield item.start, item.end, item.character
        spaces = []
        is_first = False


def joined(run: list[Character]) -> Iterator[Span]:
    if run:
        yield run[0].start, run[-1].end, "".join(item.character for item in run)


def letters(characters: Iterable[Character]) -> Iterator[Span]:
    for item in characters:
        if (
            reference.class_of(item.character) in (reference.WORD, reference.SINGLE)
            and item.character != "_"
        ):
            yield item.start, item.end, item.character


SPLITTERS = {
    "words": words,
    "chars": single_characters,
    "whitespace": whitespace_words,
    "letters": letters,
}
