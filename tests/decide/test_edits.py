"""Ranges are cut from texts, between characters only."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.decide.outcome import Cuts, Edits, cut_texts


def cuts_of(rows: list[tuple[int, int, int]]) -> Cuts:
    documents, starts, ends = zip(*rows, strict=True)
    return Cuts(
        np.array(documents, np.uint32), np.array(starts, np.int64), np.array(ends, np.int64)
    )


@st.composite
def texts_and_cuts(
    draw: st.DrawFn,
) -> tuple[list[str | None], list[tuple[int, int, int]], dict[int, str]]:
    """Draw texts, cuts in bytes, and the rest of each text that is cut, from cuts in characters."""
    texts = draw(st.lists(st.none() | st.text("aé中🙂", max_size=12), min_size=1, max_size=6))
    cuts = []
    rest = {}
    for document, text in enumerate(texts):
        ends = sorted(draw(st.sets(st.integers(0, len(text or "")), max_size=6)))
        pairs = list(zip(ends[::2], ends[1::2], strict=False))
        if text is None or not pairs:
            continue
        left = ""
        done = 0
        for start, end in pairs:
            cuts.append((document, len(text[:start].encode()), len(text[:end].encode())))
            left = left + text[done:start]
            done = end
        rest[document] = left + text[done:]
    return texts, cuts, rest


@given(texts_and_cuts())
def test_the_rest_of_each_text_is_what_is_not_cut(
    drawn: tuple[list[str | None], list[tuple[int, int, int]], dict[int, str]],
) -> None:
    texts, cuts, rest = drawn
    if cuts:
        rows, found = cut_texts(pa.array(texts, pa.large_string()), cuts_of(cuts))
        assert dict(zip(rows.tolist(), found.to_pylist(), strict=True)) == rest
        rows, found = cut_texts(pa.array(texts, pa.large_string()), cuts_of(cuts), marked=True)
        marked = dict(zip(rows.tolist(), found.to_pylist(), strict=True))
        assert {row: re.sub("[⟦⟧]", "", text) for row, text in marked.items()} == {
            row: texts[row] for row in rest
        }
        assert {row: re.sub("⟦[^⟧]*⟧", "", text) for row, text in marked.items()} == rest


@pytest.mark.parametrize(
    "cuts",
    [
        [(0, 1, 2)],  # the second byte of é
        [(0, 0, 1)],
        [(0, 2, 2)],
        [(0, 3, 2)],
        [(0, -1, 2)],
        [(0, 2, 6)],
        [(0, 0, 3), (0, 2, 4)],
        [(0, 3, 4), (0, 0, 2)],
        [(1, 0, 1)],
        [(0, 0, 2), (2, -1, 2)],  # the end of the text before
    ],
)
def test_what_is_no_range_of_characters_is_refused(cuts: list[tuple[int, int, int]]) -> None:
    with pytest.raises(
        ValueError, match=r"cannot be cut from document .*: cuts must be ranges of whole characters"
    ):
        cut_texts(pa.array(["éabc", None, "abc"], pa.large_string()), cuts_of(cuts))


def test_the_edits_of_a_range_of_documents_are_numbered_from_0() -> None:
    edits = Edits(
        np.array([True, False, True, True]), cuts_of([(0, 0, 1), (2, 3, 4), (2, 5, 6), (3, 0, 2)])
    )
    part = edits.between(1, 3)
    assert part.kept.tolist() == [False, True]
    assert part.cuts is not None
    assert [column.tolist() for column in part.cuts] == [[1, 1], [3, 5], [4, 6]]
    assert edits.between(1, 2).cuts is None
    assert Edits(edits.kept).between(1, 3).cuts is None
