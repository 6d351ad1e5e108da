"""Hypothesis strategies: small corpora in which copies and near-duplicates are common."""

from __future__ import annotations

import random

from hypothesis import strategies as st

from neardup.settings.folds import FOLDS
from neardup.settings.methods import MinHash

WORDS = ("a", "b", "c", "d", "é", "漢", "ß", "x" * 17)
NOTHING = (None, "", "...", " \n\t", "—", "\u200b")
FRACTIONS = (0.3, 1 / 3, 0.4, 0.5, 0.6, 2 / 3, 0.7, 0.75, 0.8, 0.9, 1.0)

_word = st.sampled_from(WORDS)
_fresh = st.lists(_word, min_size=1, max_size=9)
# Edit an earlier document: which one, where, what is put there (None takes a word away), how it is
# spelled.
_edit = st.tuples(
    st.integers(0, 30), st.integers(0, 9), st.one_of(st.none(), _word), st.integers(0, 3)
)
_SPELLINGS = (
    " ".join,
    ", ".join,
    lambda words: " ".join(words).upper(),
    lambda words: "  ".join(words) + ".",
)


@st.composite
def corpora(draw: st.DrawFn, max_size: int = 14) -> list[str | None]:
    """Return texts: fresh ones, edits and copies of earlier ones, some without any feature."""
    recipes = draw(
        st.lists(st.one_of(_fresh, _edit, _edit, st.sampled_from(NOTHING)), max_size=max_size)
    )
    words: list[list[str]] = []
    texts: list[str | None] = []
    for recipe in recipes:
        if isinstance(recipe, tuple):
            source, place, word, spelling = recipe
            edited = list(words[source % len(words)]) if words else ["a"]
            if place < len(edited):
                edited[place : place + 1] = [] if word is None else [word]
            words.append(edited)
            texts.append(_SPELLINGS[spelling](edited))
        elif isinstance(recipe, list):
            words.append(recipe)
            texts.append(" ".join(recipe))
        else:
            texts.append(recipe)
    return texts


BANDS = st.sampled_from([(24, 1), (16, 2), (8, 2), (4, 3), (2, 4), (1, 1)])
THRESHOLDS = st.one_of(st.sampled_from(FRACTIONS), st.floats(0.3, 1.0))


@st.composite
def methods(draw: st.DrawFn, similarity: str = "jaccard", tokens: str | None = None) -> MinHash:
    """Return methods of any settings; bands, where there are any, are given, and find more or less
    of what there is.
    """
    num_bands, rows_per_band = draw(BANDS) if similarity != "containment" else (None, None)
    # Below 0.6, samples are large, larger than any of these texts.
    thresholds = (
        THRESHOLDS
        if similarity != "containment"
        else st.sampled_from([one for one in FRACTIONS if one >= 0.6])
    )
    return MinHash(
        tokens=tokens or draw(st.sampled_from(["words", "words", "chars", "whitespace"])),
        ngram=draw(st.integers(1, 5)),
        threshold=draw(thresholds),
        similarity=similarity,
        boost_rare=draw(st.booleans()) if similarity == "cosine" else False,
        num_bands=num_bands,
        rows_per_band=rows_per_band,
        seed=draw(st.integers(0, 3)),
        nfkc=draw(st.booleans()),
        case_fold=draw(st.booleans()),
        fold=draw(st.lists(st.sampled_from(FOLDS), max_size=3)),
    )


def random_texts(seed: int, count: int = 120) -> list[str | None]:
    """Return short texts of few words: chains of similar ones, copies, and some without
    features.
    """
    random_words = random.Random(seed)
    texts: list[str | None] = []
    while len(texts) < count:
        words = random_words.choices(
            ["a", "b", "c", "d", "e", "tree", "漢", "!"], k=random_words.randrange(12)
        )
        texts += [" ".join(words)] * random_words.choice([1, 1, 1, 2, 4])
        texts += [" ".join([*words[1:], "x"]), " ".join([*words, "y"]).upper()]
    texts[5] = None
    random_words.shuffle(texts)
    return texts[:count]
