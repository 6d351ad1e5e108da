"""Judge the answers of run_minhash.py without code of neardup: against theory, and against a plain
twin of signing.

Bounds are five standard deviations wide: a right answer falls outside one time in two million.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
from minhash_cases import BANDS, HASHES, NGRAM, ROWS
from minhash_data import Planted

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
from reference import minhash as naive  # the plain twins of neardup's kernels
from reference import shingles

_DEVIATIONS = 5.0
_SEED = 1

Answers = Mapping[str, npt.NDArray[Any]]


class Same(NamedTuple):
    """How many signatures of texts were held against the plain twin, and how many are the same."""

    checked: int
    same: int

    @property
    def sound(self) -> bool:
        return 0 < self.checked == self.same


class Estimates(NamedTuple):
    """How far estimates of planted pairs are from their similarities, in standard errors that
    theory gives.

    error : of the mean, at the similarity where it is farthest. spread : the standard deviation of
    single estimates, as a multiple of sqrt(J (1 - J) / 128), where it is largest.
    """

    pairs: int
    error: float
    spread: float

    @property
    def sound(self) -> bool:
        return abs(self.error) <= _DEVIATIONS and self.spread <= 1.1


class Recall(NamedTuple):
    """What an index found. found : of the planted pairs. least, most : what theory allows. wrong :
    listed that are neither planted nor the query itself, listed twice, or queries that did not find
    themselves.
    """

    planted: int
    found: int
    least: int
    most: int
    listed: int
    wrong: int

    @property
    def sound(self) -> bool:
        return self.least <= self.found <= self.most and not self.wrong


def judge_texts(answers: Answers, parquet: Path, tokens: str) -> Same:
    """Compare the signatures of some texts with those of the plain twin."""
    rows = answers["rows"]
    texts = pq.read_table(parquet, columns=["text"])["text"].take(rows).to_pylist()
    factor, *words = (int(word) for word in np.random.Philox(key=_SEED).random_raw(1 + HASHES // 2))
    multipliers = [half | 0x10001 for word in words for half in (word & 0xFFFFFFFF, word >> 32)]
    same = 0
    for text, signature in zip(texts, answers["signatures"].tolist(), strict=True):
        hashes = shingles.shingle_hashes(shingles.tokens_of(text, tokens), NGRAM, tokens)
        same += naive.sign(hashes, [factor | 1], multipliers) == signature
    return Same(len(rows), same)


def judge_sets(answers: Answers, planted: Planted) -> Estimates:
    """Compare estimates of the planted pairs, made here from the signatures, with their
    similarities.

    The spread may be 1.1 times theory's: of 1,000 pairs its own standard deviation is below 0.03.
    """
    signatures = answers["signatures"]  # a row for each of planted.pairs.reshape(-1)
    estimates = (signatures[::2] == signatures[1::2]).mean(axis=1)
    error = spread = 0.0
    for similarity in np.unique(planted.similarity):
        some = estimates[planted.similarity == similarity]
        deviation = math.sqrt(similarity * (1 - similarity) / HASHES)
        error = max(error, (some.mean() - similarity) / (deviation / math.sqrt(len(some))), key=abs)
        spread = max(spread, some.std() / deviation)
    return Estimates(len(estimates), float(error), float(spread))


def judge_index(answers: Answers, planted: Planted) -> Recall:
    """Compare what all sets found with themselves and the planted pairs: unrelated sets share no
    band.
    """
    keys = np.sort(answers["query"] << 32 | answers["row"])
    left, right = planted.pairs.T
    both = np.concatenate([left << 32 | right, right << 32 | left])
    itself = np.arange(planted.size) * ((1 << 32) + 1)
    wrong = np.count_nonzero(~np.isin(keys, np.concatenate([both, itself])))
    wrong += np.count_nonzero(keys[1:] == keys[:-1]) + np.count_nonzero(~np.isin(itself, keys))
    found = np.count_nonzero(np.isin(both[: len(left)], keys))
    chance = 1 - (1 - float(planted.similarity[0]) ** ROWS) ** BANDS
    middle = len(left) * chance
    slack = _DEVIATIONS * math.sqrt(len(left) * chance * (1 - chance))
    least = math.floor(middle - slack)
    most = min(math.ceil(middle + slack), len(left))
    return Recall(len(left), int(found), least, most, len(keys), int(wrong))
