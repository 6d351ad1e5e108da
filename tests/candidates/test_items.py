"""The shingles of items: longer ones where words are single characters."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from neardup.candidates.items import build_items
from neardup.settings.contamination import ContaminationSettings
from neardup.settings.methods import Shingling


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("one two three four five", 4),
        ("слово другое третье", 4),
        ("天地玄黃宇宙洪荒", 7),
        ("𠀀𠀁𠀂𠀃𠀄𠀅𠀆𠀇", 7),
        ("天地 one two", 4),
        ("天地玄 one two", 7),
        ("", 4),
    ],
    ids=["ASCII", "Cyrillic", "Chinese", "four bytes", "half", "more than half", "empty"],
)
def test_items_of_single_characters_have_shingles_of_almost_twice_as_many_words(text, words):
    table = build_items(
        pa.array(["ascii only", text, "天地玄黃"], pa.large_string()),
        np.arange(3, dtype=np.int32),
        np.ones(3),
        np.zeros(3, np.uint8),
        num_items=3,
        settings=ContaminationSettings(ngram=4),
        shingling=Shingling(),
    )
    assert table.ngrams.tolist() == [4, words, 7]
