"""Where the tokens of a text are, in plain Python: the twin of `neardup.features.spans`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
    text: str, tokens: str, nfkc: bool, case_fold: bool, fold_chinese: bool
) -> list[Span]:
    """Return the tokens of a text with their ranges; tokens : words, chars, whitespace or
    letters.
    """
    characters = [
        item
        for item in normalised(text, nfkc, case_fold, fold_chinese)
        if reference.class_of(item.character) != reference.TRANSPARENT
    ]
    return list(SPLITTERS[tokens](characters))


def normalised(text: str, nfkc: bool, case_fold: bool, fold_chinese: bool) -> Iterator[Character]:
    """Yield the characters of the normalised text; those of one inseparable piece share its
    range.
    """

    def normalise(piece: str) -> str:
        return reference.normalise(piece, nfkc, case_fold, fold_chinese)

    for start, end in pieces(text, nfkc, case_fold):
        whole = normalise(text[start:end])
        alone = [normalise(character) for character in text[start:end]]
        if "".join(alone) == whole:
            for position, result in enumerate(alone, start):
                yield from (Character(character, position, position + 1) for character in result)
        else:
            yield from (Character(character, start, end) for character in whole)


def pieces(text: str, nfkc: bool, case_fold: bool) -> Iterator[tuple[int, int]]:
    """Yield the ranges of a text that are normalised by themselves."""
    entries = load_tables(nfkc=nfkc, case_fold=case_fold, fold_chinese=False).entries
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
