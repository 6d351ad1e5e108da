"""`Deduplication.rethreshold` answers as a new run at a stricter limit; `least_similar` shows the
weakest removals.
"""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup.errors import InputError, SettingError
from neardup.settings.methods import MethodSettings
from reference import corpora, runs

SEARCH = ("compared", "collisions")  # counts of the search, which is that of the run
ALL_FOUND = {"num_bands": 32, "rows_per_band": 1}


def assert_same(result: neardup.Deduplication, fresh: neardup.Deduplication) -> None:
    """Compare two results row for row, and the parts of their reports about the decisions."""
    assert result.removed.equals(fresh.removed)
    assert result.pairs.equals(fresh.pairs)
    assert result.kept.equals(fresh.kept)
    assert result.mask.tolist() == fresh.mask.tolist()
    for part in (
        "settings",
        "method",
        "inputs",
        "removed_by_inputs",
        "similarities",
        "distances",
        "cluster_sizes",
    ):
        assert result.report[part] == fresh.report[part], part
    assert result.report["by_value"] == fresh.report["by_value"]
    counts = [
        {name: n for name, n in each.report["counts"].items() if name not in SEARCH}
        for each in (result, fresh)
    ]
    assert counts[0] == counts[1]


def limits_of(method: MethodSettings, limit: float) -> MethodSettings:
    """Return a method at another limit."""
    return replace(
        method, **{"max_distance" if isinstance(method, neardup.SimHash) else "threshold": limit}
    )


def again(
    result: neardup.Deduplication, limit: float, method: MethodSettings
) -> neardup.Deduplication:
    """Return the result at another limit."""
    return (
        result.rethreshold(max_distance=int(limit))
        if isinstance(method, neardup.SimHash)
        else result.rethreshold(limit)
    )


METHODS = {
    "jaccard": (neardup.MinHash(ngram=2, threshold=0.3, **ALL_FOUND), [0.3, 0.45, 0.7, 1.0]),
    "cosine of rare words": (
        neardup.MinHash(ngram=2, threshold=0.3, similarity="cosine", boost_rare=True, **ALL_FOUND),
        [0.5, 0.9],
    ),
    "distance": (neardup.SimHash(ngram=1, max_distance=12, confirm="hamming"), [12, 5, 0]),
    "distance and jaccard": (neardup.SimHash(ngram=1, max_distance=12), [12, 5, 0]),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "first": {},
    "longest:3": {"keep": "longest:3"},
    "shortest, within": {"keep": "shortest", "within": "site"},
    "last, counted": {"keep": "last", "count_by": "site"},
}


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize(("method", "limits"), METHODS.values(), ids=METHODS)
def test_the_answer_is_that_of_a_new_run_row_for_row(method, limits, options) -> None:
    if options.get("within") and method.__dict__.get("confirm") == "hamming":
        pytest.skip("fingerprints alone have no groups")
    texts = corpora.random_texts(3, 300)
    table = pa.table({"text": texts, "site": [str(number % 3) for number in range(len(texts))]})
    options = {**options, "max_bucket_size": 1000}
    result = neardup.dedup(table, method=method, rethreshold=True, **options)
    assert_same(result, neardup.dedup(table, method=method, **options))
    stored = pickle.loads(pickle.dumps(result))
    for limit in limits:
        fresh = neardup.dedup(table, method=limits_of(method, limit), **options)
        assert fresh.removed.num_rows
        assert_same(again(result, limit, method), fresh)
        assert_same(again(stored, limit, method), fresh)


@pytest.mark.slow
@given(
    corpora.corpora(),
    corpora.corpora(),
    corpora.methods(),
    st.floats(0, 1),
    st.sampled_from(["first", "shortest"]),
)
def test_the_answer_is_that_of_the_oracle_at_the_higher_threshold(
    against, texts, method, share, keep
) -> None:
    """The bands are given, so that the oracle, which applies them too, finds the pairs of a new
    run.
    """
    result = runs.run(texts, method, against=against, keep=keep, rethreshold=True)
    assert runs.answer_of(result) == runs.expected(texts, method, against=against, keep=keep)
    higher = method.threshold + share * (1 - method.threshold)
    expected = runs.expected(texts, replace(method, threshold=higher), against=against, keep=keep)
    assert runs.answer_of(result.rethreshold(higher)) == expected


@pytest.mark.parametrize("confirm", ["hamming", "jaccard"])
def test_fingerprints_beside_an_earlier_collection_decide_as_in_a_new_run(confirm) -> None:
    """Of known documents with one fingerprint a new run lists the earliest only; `pairs` here has
    all of them.
    """
    old = corpora.random_texts(5, 60)
    new = corpora.random_texts(6, 150)
    options = {"against": old, "max_bucket_size": 1000}
    methods = [
        neardup.SimHash(max_distance=distance, confirm=confirm, ngram=1) for distance in (12, 6, 1)
    ]
    result = neardup.dedup(new, method=methods[0], rethreshold=True, **options)
    for method in methods:
        fresh = neardup.dedup(new, method=method, **options)
        stricter = result.rethreshold(max_distance=method.max_distance)
        assert stricter.removed.equals(fresh.removed)
        listed, found = (set(runs.pairs_of(each.pairs)) for each in (fresh, stricter))
        assert listed == found if confirm == "jaccard" else listed <= found


@pytest.mark.parametrize(
    "against", [(), ("w1 w2 w3 w4", "w1 w2 w5 w6", "w1 w2 w7 w8", "w1 w2 w9 w0")]
)
def test_documents_that_a_full_bucket_leaves_out_are_those_of_a_run_that_keeps_no_pairs(
    against,
) -> None:
    texts = corpora.random_texts(3, 300)
    method = neardup.MinHash(ngram=1, threshold=0.3, **ALL_FOUND)
    options = {"against": list(against), "max_bucket_size": 3}
    plain, result = (
        neardup.dedup(texts, method=method, rethreshold=each, **options) for each in (False, True)
    )
    assert 0 < plain.report["bound"]["documents"] < len(texts) - plain.removed.num_rows
    assert result.report["bound"] == plain.report["bound"]
    stricter = result.rethreshold(0.9)
    kept = len(texts) - stricter.removed.num_rows
    assert plain.report["bound"]["documents"] < stricter.report["bound"]["documents"] <= kept


def test_a_document_that_only_a_lower_threshold_removes_is_compared_at_the_higher_one() -> None:
    words = [f"w{i}" for i in range(20)]
    middle = [*words[:17], "x", "y", "z"]
    far = [*words[:16], "v", "x", "y", "z"]
    texts = [" ".join(each) for each in (words, middle, far)]
    method = neardup.MinHash(ngram=1, threshold=0.6, **ALL_FOUND)
    result = neardup.dedup(texts, method=method, rethreshold=True)
    assert result.removed["kept_id"].to_pylist() == [
        "0",
        "0",
    ]  # they share 17 of 23 words, and 16 of 24
    stricter = result.rethreshold(0.8)
    assert stricter.removed.select(["id", "kept_id"]).to_pylist() == [
        {"id": "2", "kept_id": "1"}
    ]  # 19 of 21


def test_an_answer_can_be_asked_again_down_to_the_limit_of_the_run() -> None:
    texts = corpora.random_texts(1)
    result = neardup.dedup(
        texts, method=neardup.MinHash(ngram=2, threshold=0.4, **ALL_FOUND), rethreshold=True
    )
    stricter = result.rethreshold(0.6)
    assert_same(stricter.rethreshold(0.8), result.rethreshold(0.8))
    assert_same(stricter.rethreshold(0.5), result.rethreshold(0.5))
    with pytest.raises(
        SettingError,
        match=r"as strict as that of the run, threshold=0.4: got threshold=0.3. Run dedup",
    ):
        stricter.rethreshold(0.3)


@pytest.mark.parametrize(
    ("options", "limits", "message"),
    [
        (
            {},
            {"threshold": 0.9},
            r"rethreshold needs the pairs of removed documents: got threshold=0.9",
        ),
        (
            {"rethreshold": True},
            {},
            r"rethreshold takes threshold with this method: got .*'threshold': None",
        ),
        (
            {"rethreshold": True},
            {"max_distance": 2},
            r"takes threshold with this method: got .*'max_distance': 2",
        ),
        ({"rethreshold": True}, {"threshold": 1.5}, r"threshold must be .* got 1.5"),
        (
            {"rethreshold": True, "method": "simhash"},
            {"max_distance": 4},
            r"max_distance=3: got max_distance=4",
        ),
    ],
)
def test_a_limit_that_the_pairs_do_not_reach_is_refused(options, limits, message) -> None:
    result = neardup.dedup(["a b c d e f", "A b c d e f"], **options)
    with pytest.raises(SettingError, match=message):
        result.rethreshold(**limits)


@pytest.mark.parametrize(
    ("options", "given"),
    [
        ({"linkage": "connected"}, "linkage='connected', passages=None, group_by=None"),
        ({"keep": "none"}, "linkage='connected', passages=None, group_by=None"),
        ({"passages": 200}, "passages=200, group_by=None"),
    ],
)
def test_a_run_whose_pairs_do_not_decide_is_refused(options, given) -> None:
    with pytest.raises(
        SettingError, match=rf"rethreshold=True keeps pairs.* got .*{given}\. Leave rethreshold out"
    ):
        neardup.dedup(["a text"], rethreshold=True, **options)


def test_a_measure_that_depends_on_the_order_is_refused() -> None:
    method = neardup.MinHash(similarity="containment")
    with pytest.raises(
        SettingError, match="rethreshold=True compares documents in both directions: got similarity"
    ):
        neardup.dedup(["a b c d e f"], method=method, rethreshold=True)


def test_a_threshold_in_the_place_of_true_is_refused() -> None:
    with pytest.raises(
        SettingError,
        match=r"rethreshold must be True or False: got 0.9. Pass the other thresholds to",
    ):
        neardup.dedup(["a text"], rethreshold=0.9)


def test_the_output_of_the_run_is_that_without_the_pairs(tmp_path: Path) -> None:
    texts = corpora.random_texts(2)
    results = [
        neardup.dedup(texts, output=tmp_path / str(keeps), rethreshold=keeps)
        for keeps in (False, True)
    ]
    assert results[0].removed.equals(results[1].removed)
    for name in ("removed.parquet", "rejected.jsonl"):
        assert (tmp_path / "False" / name).read_bytes() == (tmp_path / "True" / name).read_bytes()
    assert results[1].rethreshold(0.9).output is None


def test_the_least_similar_removals_come_first_with_both_texts(tmp_path: Path) -> None:
    words = [f"w{i}" for i in range(20)]
    texts = [
        " ".join([*words[: 20 - changed], *(f"x{i}" for i in range(changed))])
        for changed in (0, 1, 4, 2)
    ]
    (tmp_path / "in.txt").write_text("\n".join([*texts, texts[0].upper()]))
    method = neardup.MinHash(ngram=1, threshold=0.5, **ALL_FOUND)
    result = neardup.dedup(str(tmp_path / "in.txt"), method=method)
    rows = result.least_similar(2).to_pylist()
    assert [(row["id"], row["kept_id"], row["text"], row["kept_text"]) for row in rows] == [
        ("2", "0", texts[2], texts[0]),
        ("3", "0", texts[3], texts[0]),
    ]
    assert [row["similarity"] for row in result.least_similar().to_pylist()] == sorted(
        result.removed["similarity"].to_pylist()
    )
    (tmp_path / "in.txt").unlink()
    assert [row["text"] for row in result.least_similar(2).to_pylist()] == [None, None]
    with pytest.raises(
        InputError, match=r"Cannot open .*in\.txt: it is no longer there"
    ):  # no table without its rows
        _ = result.kept


def test_the_least_similar_fingerprints_are_the_farthest() -> None:
    texts = corpora.random_texts(4)
    method = neardup.SimHash(ngram=1, max_distance=10, confirm="hamming")
    result = neardup.dedup(texts, method=method)
    assert result.least_similar(1)["distance"].to_pylist() == [
        max(result.removed["distance"].to_pylist())
    ]


def test_the_texts_of_an_index_are_not_read_again() -> None:
    with neardup.Index.create("memory:", storage="text") as index:
        index.add("a b c d e f", id="first")
        result = neardup.dedup(["A b c d e f!"], against=index)
    (row,) = result.least_similar().to_pylist()
    assert (row["text"], row["kept_id"], row["kept_text"]) == ("A b c d e f!", "first", None)


@pytest.mark.parametrize("count", [0, -1, True, 1.5, "3"])
def test_the_number_of_removals_is_a_whole_one(tmp_path: Path, count) -> None:
    with pytest.raises(InputError, match=r"n must be a number of removals, 1 or more: got"):
        neardup.dedup(["a text"]).least_similar(count)
    with pytest.raises(
        SettingError, match=r"least_similar is not in the result: got tables=False. Use tables=True"
    ):
        neardup.dedup(["a text"], tables=False, output=tmp_path / "out").least_similar()


def test_the_report_names_the_limit_that_decided() -> None:
    texts = ["a b c d e f g h", "a b c d e f g i", "other words"]
    run = neardup.dedup(texts, method="simhash", max_distance=9, rethreshold=True)
    assert "within 2 bits" in run.rethreshold(max_distance=2)._repr_html_()


def test_limits_and_counts_may_be_numbers_of_numpy() -> None:
    texts = ["a b c d e f g h", "A b c d e f g h", "other words"]
    run = neardup.dedup(texts, method="simhash", max_distance=9, rethreshold=True)
    report = run.rethreshold(max_distance=np.int64(2)).report
    assert json.loads(json.dumps(report))["options"]["max_distance"] == 2
    assert len(run.least_similar(np.int64(1))) == 1
