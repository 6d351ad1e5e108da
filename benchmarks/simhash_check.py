"""Judge the answers of run_simhash.py without code of neardup."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
from simhash_data import NEAR, Planted

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
from reference import simhash as naive  # the plain twin of neardup's kernels

_MOST_CHARACTERS = 20_000  # of a text that the plain twin takes
_NUM_TEXTS = 60
_NUM_QUERIES = 50

Answers = Mapping[str, npt.NDArray[Any]]


class Quality(NamedTuple):
    """How good answers are. expected, found : those that must be there, and of these, those that
    are; listed : all that were given; wrong : those that must not be.
    """

    expected: int
    found: int
    listed: int
    wrong: int

    @property
    def sound(self) -> bool:
        return self.found == self.expected and not self.wrong


def judge_texts(answers: Answers, parquet: Path) -> Quality:
    """Compare some fingerprints with those of a plain vote: the peers' job made it, that of neardup
    is made here.
    """
    fingerprints = answers["fingerprints"]
    if "plain" in answers:
        equal = fingerprints[answers["rows"]] == answers["plain"]
    else:
        texts = pq.read_table(parquet, columns=["text"])["text"]
        rows = range(0, len(texts), max(1, len(texts) // _NUM_TEXTS))
        some = {row: text for row in rows if len(text := texts[row].as_py()) < _MOST_CHARACTERS}
        equal = np.array(
            [
                naive.fingerprint(Counter(naive.features_of(text))) == int(fingerprints[row])
                for row, text in some.items()
            ]
        )
    found = int(np.count_nonzero(equal))
    return Quality(len(equal), found, len(fingerprints), len(equal) - found)


def judge_pairs(answers: Answers, planted: Planted) -> Quality:
    """Compare pairs with those that must be found.

    Wrong is a pair that is too far, is a row with itself, or is listed twice; also, where `planted`
    does not hold all pairs, a number beyond what random bits have, by five standard deviations.
    """
    fingerprints = np.load(planted.fingerprints, mmap_mode="r")
    left = answers["left"]
    right = answers["right"]
    keys = np.sort(left << 32 | right)
    wrong = np.count_nonzero(np.bitwise_count(fingerprints[left] ^ fingerprints[right]) > NEAR)
    wrong += np.count_nonzero(left == right) + np.count_nonzero(keys[1:] == keys[:-1])
    found = np.count_nonzero(np.isin(planted.pairs[:, 0] << 32 | planted.pairs[:, 1], keys))
    most = len(planted.pairs) + planted.by_chance + 5 * math.sqrt(planted.by_chance)
    return Quality(
        len(planted.pairs), int(found), len(keys), int(max(wrong, math.ceil(len(keys) - most)))
    )


def judge_queries(answers: Answers, planted: Planted, num_queries: int) -> Quality:
    """Compare what the first batch found with the rows its queries were made from, and some queries
    with brute force.

    Wrong is a match that is too far or is listed twice.
    """
    fingerprints = np.load(planted.fingerprints)
    queries = np.load(planted.queries)[0]
    query = answers["query"]
    row = answers["row"]
    keys = np.sort(query << 32 | row)
    wrong = np.count_nonzero(np.bitwise_count(fingerprints[row] ^ queries[query]) > NEAR)
    wrong += np.count_nonzero(keys[1:] == keys[:-1])
    asked = planted.asked[0, :num_queries]
    must = {(int(one), int(asked[one])) for one in np.flatnonzero(asked >= 0)}
    for one in range(_NUM_QUERIES):
        must |= {
            (one, int(near))
            for near in np.flatnonzero(np.bitwise_count(fingerprints ^ queries[one]) <= NEAR)
        }
    expected = np.array(sorted(must), np.int64)
    found = np.count_nonzero(np.isin(expected[:, 0] << 32 | expected[:, 1], keys))
    return Quality(len(expected), int(found), len(keys), int(wrong))
