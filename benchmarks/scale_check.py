"""Judge a run over a made corpus: every removal that is sampled must be right, and planted
duplicates be found.

Similarities are those of the texts: the Jaccard similarity of sets of word 5-grams, without any
code of neardup.
"""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from peers.words import shingles
from scale_corpus import KINDS, Layout, load_pieces, make_batch, to_texts

THRESHOLD = 0.8
_DERIVED = [KINDS.index(kind) for kind in ("copy", "edit", "excerpt")]


class Quality(NamedTuple):
    """The judgement of a run.

    audited, wrong : removals sampled, and those whose similarity is below the threshold, differs
    from the reported one, or whose kept document is not kept. planted, found : sampled pairs at or
    above the threshold that are no exact copies, and those whose later document is removed.
    expected : the share of these that the bands promise. copies, copies_found : the same for equal
    texts.
    """

    audited: int
    wrong: int
    planted: int
    found: int
    expected: float
    copies: int
    copies_found: int

    @property
    def recall(self) -> float:
        """The share of the planted pairs that were found."""
        return self.found / max(1, self.planted)


def judge(
    corpus: Path, layout: Layout, removed_file: Path, bands: tuple[int, int], sample: int = 10_000
) -> Quality:
    """Return the quality of the removals in a file, from samples. bands : their number, and the
    rows of each.
    """
    removed = pq.read_table(removed_file, columns=["id", "kept_id", "similarity"])
    ids, kept_ids = (removed[name].cast(pa.int64()).to_numpy() for name in ("id", "kept_id"))
    is_removed = np.zeros(layout.num_documents, np.bool_)
    is_removed[ids] = True
    random = np.random.default_rng(7)
    rows = random.choice(len(ids), min(sample, len(ids)), replace=False)
    derived, sources = _planted(corpus, random, sample)
    free = ~is_removed[sources]
    derived = derived[free]
    sources = sources[free]
    sets = _shingles_of(
        corpus, layout, np.unique(np.concatenate([ids[rows], kept_ids[rows], derived, sources]))
    )
    reported = removed["similarity"].to_numpy()[rows]
    audited = _similarities(sets, ids[rows], kept_ids[rows])
    wrong = (
        (audited < THRESHOLD - 1e-9)
        | (np.abs(audited - reported) > 1e-6)
        | is_removed[kept_ids[rows]]
    )
    similarity = _similarities(sets, derived, sources)
    near = (similarity >= THRESHOLD) & (similarity < 1.0)
    equal = similarity == 1.0
    num_bands, rows_per_band = bands
    promised = 1 - (1 - similarity[near] ** rows_per_band) ** num_bands
    return Quality(
        len(rows),
        int(wrong.sum()),
        int(near.sum()),
        int(is_removed[derived[near]].sum()),
        float(promised.mean()) if near.any() else 1.0,
        int(equal.sum()),
        int(is_removed[derived[equal]].sum()),
    )


def _planted(
    corpus: Path, random: np.random.Generator, sample: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return documents that derive from others, and these, from all files alike."""
    files = sorted(corpus.glob("truth-*.parquet"))
    derived = [np.empty(0, np.int64)]
    sources = [np.empty(0, np.int64)]
    for path in files:
        table = pq.read_table(path)
        rows = np.flatnonzero(np.isin(table["kind"].to_numpy(), _DERIVED))
        rows = random.choice(rows, min(len(rows), 2 * sample // len(files)), replace=False)
        derived.append(table["id"].to_numpy()[rows])
        sources.append(table["source_id"].to_numpy()[rows])
    return np.concatenate(derived), np.concatenate(sources)


def _shingles_of(
    corpus: Path, layout: Layout, ids: npt.NDArray[np.int64]
) -> dict[int, frozenset[int]]:
    """Return the hashes of the word 5-grams of documents, whose batches are made again."""
    pieces = load_pieces(corpus / "pieces.arrow")
    sets = {}
    batches = ids // layout.batch
    for batch in np.unique(batches):
        chosen = ids[batches == batch]
        texts = to_texts(pieces, make_batch(layout, pieces, int(batch)).lists)
        for document, text in zip(
            chosen.tolist(),
            texts.take(pa.array(chosen - batch * layout.batch)).to_pylist(),
            strict=True,
        ):
            sets[document] = frozenset(map(hash, shingles(_normalise(text))))
    return sets


def _normalise(text: str) -> str:
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _similarities(
    sets: dict[int, frozenset[int]], left: npt.NDArray[np.int64], right: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    pairs = (
        (sets[one], sets[other]) for one, other in zip(left.tolist(), right.tolist(), strict=True)
    )
    return np.array(
        [len(one & other) / max(1, len(one | other)) for one, other in pairs], np.float64
    )


def same_removals(one: Path, other: Path) -> bool:
    """Return whether two files of removed documents have the same rows in the same order."""
    first = pq.ParquetFile(one)
    second = pq.ParquetFile(other)
    if first.metadata.num_rows != second.metadata.num_rows:
        return False
    batches = zip(first.iter_batches(1 << 20), second.iter_batches(1 << 20), strict=True)
    return all(left.equals(right) for left, right in batches)
