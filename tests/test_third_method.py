"""A method of one's own, in one module: Jaccard similarity of runs of bytes. It touches no other file of neardup."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup.arrays import flatten_strings
from neardup.candidates.propose import Candidates, propose_by_bands
from neardup.features.described import Features, Keys, Lists
from neardup.fingerprints.minhash import band_keys, sign
from neardup.methods.base import Described, Method, Rows, is_exact
from neardup.methods.registry import register
from neardup.schemas import EXACT, SIMILARITY
from neardup.settings.constraints import Constraint, parameter
from neardup.settings.shingling import Shingling
from neardup.verify.measured import Measured
from neardup.verify.similarity import similarity_of_lists

_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, kw_only=True)
class ByteRuns(Shingling):
    """Runs of `width` bytes of UTF-8, compared as sets."""

    width: int = parameter(4, Constraint("Bytes in a run.", int, low=1, high=8))
    threshold: float = parameter(0.5, Constraint("The similarity of duplicates.", exclusive_min=0.0, high=1.0))


@dataclass(frozen=True)
class ByteRunsMethod(Method):
    """Jaccard similarity of sets of byte runs, found by bands of one row."""

    settings: ByteRuns
    feature_name = "runs"
    scheme_fields = Method.scheme_fields | {"width"}

    def describe(self, texts, workspace=None) -> Features:
        data, offsets = flatten_strings(texts)
        runs = [self._runs(data[start:stop]) for start, stop in pairwise(offsets)]
        limits = np.concatenate([[0], np.cumsum([len(run) for run in runs], dtype=np.int64)])
        content = np.array([[hash(tuple(run.tolist())) & (2**64 - 1), len(run)] for run in runs], np.uint64)
        return Features(content.reshape(-1, 2), Lists(np.concatenate([np.empty(0, np.uint64), *runs]), limits))

    def _runs(self, data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
        width = min(self.settings.width, len(data))
        values = np.zeros(len(data) - width + 1 if width else 0, np.uint64)
        for place in range(width):
            values = values * np.uint64(257) + data[place : place + len(values)] + np.uint64(1)
        return values * _MIX ^ (values * _MIX >> np.uint64(29))

    def summarise(self, features: Features) -> Keys:
        keys = band_keys(sign(*features.sets, 64, 1), 64)
        return Keys(keys.T, features.content, features.sets.sizes > 0)

    def propose(self, keys, order, max_bucket_size, *, all_pairs=False) -> Candidates:
        return propose_by_bands(keys, order, max_bucket_size, all_pairs=all_pairs)

    def measure(self, left: Described, right: Described, left_rows: Rows, right_rows: Rows) -> Measured:
        exact = is_exact(left, right, left_rows, right_rows)
        sets = left.features.sets, right.features.sets
        similarity = similarity_of_lists(*sets, left_rows, right_rows, "jaccard")
        return Measured({SIMILARITY.name: np.where(exact, 1.0, similarity), EXACT.name: exact})


register(ByteRuns, ByteRunsMethod)
TEXTS = ["the same text", "the same text", "the same texts", "another one", "the sane text", "", None]


def runs_of(text: str, width: int = 4) -> frozenset[bytes]:
    data = text.encode()
    width = min(width, len(data))
    return frozenset(data[start : start + width] for start in range(len(data) - width + 1) if width)


def jaccard(left: str, right: str) -> float:
    first, second = runs_of(left), runs_of(right)
    return len(first & second) / len(first | second)


@given(st.lists(st.text("ab ", max_size=12), max_size=12))
def test_it_removes_what_the_sieve_by_hand_removes(texts):
    method = ByteRuns(threshold=0.3)
    found = neardup.find_pairs(pa.table({"text": pa.array(texts, pa.string())}), method=method)
    pairs = {(int(row["left_id"]), int(row["right_id"])): row["similarity"] for row in found.pairs.to_pylist()}
    for (left, right), similarity in pairs.items():
        assert similarity == jaccard(texts[left], texts[right]) >= 0.3
    kept: list[int] = []
    removed = {}
    for number in range(len(texts)):
        similar = [(-pairs[other, number], other) for other in kept if (other, number) in pairs]
        if similar:
            removed[number] = min(similar)[1]
        else:
            kept.append(number)
    result = neardup.dedup(pa.table({"text": pa.array(texts, pa.string())}), method=method)
    assert {int(row["id"]): int(row["kept_id"]) for row in result.removed.to_pylist()} == removed


def test_dedup_writes_its_report_and_resumes_by_its_settings(tmp_path):
    result = neardup.dedup(TEXTS, method=ByteRuns(width=3, threshold=0.6), output=tmp_path / "out")
    assert result.removed["id"].to_pylist() == ["1", "2"]
    assert result.removed["kept_id"].to_pylist() == ["0", "0"]
    assert result.removed["similarity"].to_pylist() == [1.0, 11 / 12]
    assert result.report["scheme"]["name"] == "ByteRuns"
    assert result.report["scheme"]["width"] == 3
    assert result.report["settings"]["threshold"] == 0.6
    assert sum(result.report["similarities"]["counts"]) == result.report["counts"]["removed_near"] > 0
    assert result.report["counts"]["without_features"] == 2
    page = (tmp_path / "out" / "report.html").read_text()
    assert "the same texts" in page


def test_pairs_clusters_and_chains_are_found():
    method = ByteRuns(threshold=0.6)
    assert neardup.find_pairs(TEXTS, method=method).pairs.num_rows >= 2
    assert neardup.cluster(TEXTS, method=method).documents["cluster"].to_pylist()[:3] == [0, 0, 0]
    assert neardup.dedup(TEXTS, method=method, linkage="connected").removed.num_rows >= 2


def test_evaluate_scores_it():
    table = pa.table({"text": TEXTS[:5], "cluster": ["a", "a", "a", "b", "c"]})
    result = neardup.evaluate(table, method=ByteRuns(threshold=0.6))
    assert result.at_threshold.limit == 0.6
    assert result.at_threshold.recall == 1.0
    assert result.curve.column_names[0] == "threshold"


def test_compare_measures_two_texts():
    found = neardup.compare("the same text", "the same texts", method=ByteRuns(threshold=0.6))
    assert found.similarity == jaccard("the same text", "the same texts")
    assert found.duplicate
    assert not neardup.compare("the same text", "", method=ByteRuns()).duplicate


def test_settings_without_a_method_are_refused():
    @dataclass(frozen=True, kw_only=True)
    class Nothing(Shingling):
        pass

    with pytest.raises(neardup.SettingError, match=r"method must be .*MinHash or SimHash: got "):
        neardup.dedup(TEXTS, method=Nothing())
