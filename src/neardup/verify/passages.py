"""Mark the passages that two texts share, by their shingles."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from neardup.errors import SettingError
from neardup.features.spans import TokenSpan, token_spans
from neardup.settings.shingling import Shingling


class LocatedTokens(NamedTuple):
    """The tokens of a text, with their positions.

    Requires: the three sequences have one length, ``starts`` and ``ends`` are not decreasing, ``ends[-1] <=
    text_length``.
    """

    tokens: Sequence[str]
    """The tokens as compared, in the order of the text."""
    starts: Sequence[int]
    """The start of each token. Tokens may share characters."""
    ends: Sequence[int]
    """The end of each token, exclusive. A token of no width is compared, but not shown."""
    text_length: int
    """Length of the text, in the unit of the positions."""


class Passage(NamedTuple):
    """A passage ``text[start:end]`` that is shared with the other text, or differs from it."""

    start: int
    end: int
    shared: bool


def passages(left: LocatedTokens, right: LocatedTokens, *, ngram: int) -> tuple[list[Passage], list[Passage]]:
    """Return the shared and the differing passages of two texts.

    Parameters
    ----------
    left, right : LocatedTokens
        The two texts.
    ngram : int
        Tokens per shingle, at least 1. A text of fewer tokens is one shingle of all of them.

    Returns
    -------
    tuple of two lists of Passage
        For each text its passages in order, without gaps, from 0 to its end, alternately shared and
        differing; none for an empty text. Characters between two tokens belong to the passage on their left, those
        before the first token to the first passage.

    Raises
    ------
    SettingError
        If ``ngram`` is below 1.

    Notes
    -----
    A token is shared if a shingle that covers it occurs anywhere in the other text, so a moved block is shared,
    with its first and last ``ngram - 1`` tokens. Characters that several tokens come from are
    shared only if all those tokens are. Time is linear in the number of tokens, times ``ngram``.
    """
    if ngram < 1:
        raise SettingError(f"ngram must be at least 1: got {ngram}. Pass the ngram of the comparison.")
    left_shingles = _shingles(left.tokens, ngram)
    right_shingles = _shingles(right.tokens, ngram)
    return (
        _merge(left, _covered(left_shingles, set(right_shingles), len(left.tokens))),
        _merge(right, _covered(right_shingles, set(left_shingles), len(right.tokens))),
    )


def _shingles(tokens: Sequence[str], ngram: int) -> list[tuple[str, ...]]:
    """Return the shingles in order: one of all tokens if there are fewer than `ngram`, none if there are none."""
    width = min(ngram, len(tokens))
    return [tuple(tokens[first : first + width]) for first in range(len(tokens) - width + 1)] if width else []


def _covered(shingles: list[tuple[str, ...]], others: set[tuple[str, ...]], num_tokens: int) -> list[bool]:
    """Return for each token whether a shingle that covers it is among ``others``."""
    shared = [False] * num_tokens
    reach = 0
    for index in range(num_tokens):
        if index < len(shingles) and shingles[index] in others:
            reach = index + len(shingles[index])
        shared[index] = index < reach
    return shared


def _merge(text: LocatedTokens, shared: list[bool]) -> list[Passage]:
    """Return the passages of a text whose tokens are shared or not."""
    if not text.text_length:
        return []
    runs = [next(run) for _, run in groupby(_units(text, shared), key=lambda unit: unit.shared)]
    if not runs:
        return [Passage(0, text.text_length, False)]
    starts = [0, *(run.start for run in runs[1:])]
    ends = [*starts[1:], text.text_length]
    return [Passage(start, end, run.shared) for start, end, run in zip(starts, ends, runs, strict=True)]


def _units(text: LocatedTokens, shared: list[bool]) -> list[Passage]:
    """Return the tokens of some width, with those that share characters merged."""
    units: list[Passage] = []
    for start, end, flag in zip(text.starts, text.ends, shared, strict=True):
        if start == end:
            continue
        if units and start < units[-1].end:
            last = units.pop()
            units.append(Passage(last.start, max(last.end, end), last.shared and flag))
        else:
            units.append(Passage(start, end, flag))
    return units


def spans_of(text: str, method: Shingling) -> list[TokenSpan]:
    """Return the tokens of a text with their positions, as the method cuts it."""
    return token_spans(text, method)


def marked_passages(
    left_text: str, left: list[TokenSpan], right_text: str, right: list[TokenSpan], ngram: int
) -> tuple[list[Passage], list[Passage]]:
    """Return the passages of both texts, alternately shared and differing."""
    sides = [
        LocatedTokens([s.token for s in spans], [s.start for s in spans], [s.end for s in spans], len(text))
        for text, spans in ((left_text, left), (right_text, right))
    ]
    return passages(*sides, ngram=ngram)
