"""Mark the passages that two texts share, by their shingles."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from neardup.features.spans import TokenSpan


class Passage(NamedTuple):
    """A passage ``text[start:end]`` that is shared with the other text, or differs from it."""

    start: int
    end: int
    shared: bool


def mark_passages(
    left_text: str, left: Sequence[TokenSpan], right_text: str, right: Sequence[TokenSpan], ngram: int
) -> tuple[list[Passage], list[Passage]]:
    """Return the shared and the differing passages of two texts.

    Parameters
    ----------
    left_text, right_text : the texts.
    left, right : their tokens with their positions; neither starts nor ends decrease. Tokens may share characters. A
        token of no width is compared, but not shown.
    ngram : tokens per shingle. A text of fewer tokens is one shingle of all of them.

    Returns
    -------
    tuple of two lists of Passage
        For each text its passages in order, without gaps, from 0 to its end, alternately shared and
        differing; none for an empty text. Characters between two tokens belong to the passage on their left, those
        before the first token to the first passage.

    Notes
    -----
    A token is shared if a shingle that covers it occurs anywhere in the other text, so a moved block is shared,
    with its first and last ``ngram - 1`` tokens. Characters that several tokens come from are
    shared only if all those tokens are. Time is linear in the number of tokens, times ``ngram``.
    """
    shingles, others = _shingles(left, ngram), _shingles(right, ngram)
    return (
        _merge(left_text, left, _covered(shingles, set(others), len(left))),
        _merge(right_text, right, _covered(others, set(shingles), len(right))),
    )


def _shingles(spans: Sequence[TokenSpan], ngram: int) -> list[tuple[str, ...]]:
    """Return the shingles in order: one of all tokens if there are fewer than `ngram`, none if there are none."""
    tokens = [span.token for span in spans]
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


def _merge(text: str, spans: Sequence[TokenSpan], shared: list[bool]) -> list[Passage]:
    """Return the passages of a text whose tokens are shared or not."""
    if not text:
        return []
    runs = [next(run) for _, run in groupby(_units(spans, shared), key=lambda unit: unit.shared)]
    if not runs:
        return [Passage(0, len(text), False)]
    starts = [0, *(run.start for run in runs[1:])]
    ends = [*starts[1:], len(text)]
    return [Passage(start, end, run.shared) for start, end, run in zip(starts, ends, runs, strict=True)]


def _units(spans: Sequence[TokenSpan], shared: list[bool]) -> list[Passage]:
    """Return the tokens of some width, with those that share characters merged."""
    units: list[Passage] = []
    for (start, end, _), flag in zip(spans, shared, strict=True):
        if start == end:
            continue
        if units and start < units[-1].end:
            last = units.pop()
            units.append(Passage(last.start, max(last.end, end), last.shared and flag))
        else:
            units.append(Passage(start, end, flag))
    return units
