"""Check the contract of the sieve, DESIGN.md section 2, point by point and against the oracle."""

from __future__ import annotations

import json

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import neardup
from neardup.settings.methods import MinHash
from reference import corpora, runs
from reference.documents import documents_of
from reference.sieve import MEASURES

ALL_FOUND = {
    "num_bands": 32,
    "rows_per_band": 1,
}  # at J = 0.5 a pair is missed with a probability of 2e-10


def find_all(**settings) -> MinHash:
    return MinHash(**({} if settings.get("similarity") == "containment" else ALL_FOUND) | settings)


COSINES = corpora.methods(similarity="cosine")  # the rare counting more in some of them
METHODS = st.one_of(
    corpora.methods(), corpora.methods(), corpora.methods(similarity="containment"), COSINES
)


@given(corpora.corpora(), METHODS)
@example(["a b c", "A, b, c", None, "", "a b"], find_all(ngram=2, threshold=0.5))
def test_the_answer_is_that_of_the_oracle(texts, method):
    result = runs.run(texts, method)
    assert runs.answer_of(result) == runs.expected(texts, method)


REAL_CASES = [
    ("en_licenses", {"threshold": 0.7, "similarity": "containment", "ngram": 2}),
    ("zh_ts", {"threshold": 0.6, "ngram": 2, "fold": ("chinese",)}),
]
MORE_REAL_CASES = [
    ("en_licenses", {"threshold": 0.8}),
    ("en_licenses", {"threshold": 0.7, "similarity": "cosine", "boost_rare": True}),
    ("en_licenses", {"threshold": 0.5, "ngram": 3, "num_bands": 6, "rows_per_band": 4}),
    ("en_licenses", {"threshold": 0.6, "tokens": "chars", "num_bands": 4, "rows_per_band": 5}),
    ("zh_laws", {"threshold": 0.8, "num_bands": 16, "rows_per_band": 4}),
    ("zh_laws", {"threshold": 0.4, "similarity": "containment"}),
    ("zh_poetry", {"threshold": 0.5, "ngram": 3, "num_bands": 8, "rows_per_band": 2}),
    ("zh_poetry", {"threshold": 0.3, "ngram": 2, "tokens": "whitespace"}),
]


@pytest.mark.parametrize(
    ("name", "settings"),
    [*REAL_CASES, *(pytest.param(*case, marks=pytest.mark.slow) for case in MORE_REAL_CASES)],
)
def test_on_real_texts_the_answer_is_that_of_the_oracle(name, settings, real_texts):
    texts = real_texts(name, 150_000 if name == "en_licenses" else 60_000)
    method = find_all(**settings)
    answer = runs.answer_of(runs.run(texts, method))
    assert answer == runs.expected(texts, method)
    if name != "zh_ts" or method.fold:
        assert answer.removals


@pytest.mark.slow
@given(corpora.corpora(), METHODS)
def test_every_removed_document_names_a_kept_one_and_exactly_their_similarity(texts, method):
    answer = runs.answer_of(runs.run(texts, method))
    documents = documents_of(texts, method)
    for removed, (kept, similarity, exact) in answer.removals.items():
        assert kept in answer.kept
        measured = MEASURES[method.similarity](
            documents[removed].shingles, documents[kept].shingles
        )
        assert similarity == measured
        assert similarity >= method.threshold
        assert exact == (documents[removed].tokens == documents[kept].tokens)


@pytest.mark.slow
@given(corpora.corpora(), corpora.methods())
def test_no_two_kept_documents_that_share_a_band_reach_the_threshold(texts, method):
    answer = runs.answer_of(runs.run(texts, method))
    documents = documents_of(texts, method)
    kept = [documents[number] for number in answer.kept if documents[number].shingles]
    for i, left in enumerate(kept):
        for right in kept[:i]:
            if set(left.asks) & set(right.asks):
                assert MEASURES["jaccard"](left.shingles, right.shingles) < method.threshold


@pytest.mark.slow
@given(corpora.corpora(), st.sampled_from(["first", "last"]), METHODS)
def test_a_kept_document_comes_before_all_that_it_removed(texts, keep, method):
    answer = runs.answer_of(runs.run(texts, method, keep=keep))
    for removed, (kept, _, _) in answer.removals.items():
        assert kept < removed if keep == "first" else kept > removed


@pytest.mark.slow
@given(corpora.corpora(), METHODS)
def test_documents_without_features_are_kept_and_counted(texts, method):
    result = runs.run(texts, method)
    bare = [number for number, one in enumerate(documents_of(texts, method)) if not one.shingles]
    assert set(bare) <= set(runs.answer_of(result).kept)
    assert result.report["counts"]["without_features"] == len(bare)


@pytest.mark.slow
@given(corpora.corpora(), METHODS)
def test_every_count_of_the_report_follows_from_the_answer(texts, method):
    result = runs.run(texts, method)
    counts = result.report["counts"]
    answer = runs.answer_of(result)
    exact = sum(exact for _, _, exact in answer.removals.values())
    assert counts["read"] == len(texts) == counts["kept"] + counts["removed"]
    assert counts["kept"] == len(answer.kept)
    assert counts["removed"] == len(answer.removals)
    assert (counts["removed_exact"], counts["removed_near"]) == (
        exact,
        len(answer.removals) - exact,
    )
    assert counts["confirmed"] == len(answer.pairs)
    assert counts["rejected"] == 0
    rows = result.removed.to_pylist()
    assert [row["row"] for row in rows] == sorted(answer.removals)
    assert all(row["cluster"] == int(row["kept_id"]) for row in rows)


def test_every_document_is_kept_removed_or_rejected(tmp_path):
    lines = [
        b'{"id": "a", "text": "one two three four five six"}',
        b'{"id": "b", "text": "one two three four five six"}',
        b'{"id": "c", "text": "broken',
        b'{"id": "d", "text": ""}',
        b'{"id": "e", "text": "not \xff UTF-8"}',
        b'{"id": "f", "text": "another text, unlike the rest"}',
        b"[]",
    ]
    file = tmp_path / "corpus.jsonl"
    file.write_bytes(b"\n".join(lines) + b"\n")
    result = neardup.dedup(str(file), output=tmp_path / "out", max_unreadable=1)
    kept = [
        json.loads(line)["id"]
        for line in (tmp_path / "out" / "kept" / "corpus.jsonl").read_text().splitlines()
    ]
    rejected = [
        json.loads(line) for line in (tmp_path / "out" / "rejected.jsonl").read_text().splitlines()
    ]
    assert kept == result.kept["id"].to_pylist() == ["a", "d", "f"]
    assert result.removed["id"].to_pylist() == ["b"]
    assert [(row["file"], row["line"]) for row in rejected] == [
        (str(file), line) for line in (3, 5, 7)
    ]
    counts = result.report["counts"]
    assert (counts["kept"], counts["removed"], counts["rejected"], counts["without_features"]) == (
        3,
        1,
        3,
        1,
    )


@pytest.mark.parametrize(("threshold", "kept"), [(0.6, [0]), (0.6000000000000001, [0, 1])])
def test_a_document_exactly_at_the_threshold_is_removed(threshold, kept):
    texts = ["a b c d", "a b c e"]  # 3 of 5 words
    assert runs.answer_of(runs.run(texts, find_all(ngram=1, threshold=threshold))).kept == kept


def test_the_most_similar_kept_document_removes_and_ties_go_to_the_earlier():
    method = find_all(ngram=1, threshold=0.55)
    texts = ["a b c d e f x y z", "a b c d e f u v w", "a b c d e f", "a b c d e f u"]
    removals = runs.answer_of(runs.run(texts, method)).removals
    assert removals[2] == (0, 6 / 9, False)  # as similar to 1, which comes later
    assert removals[3] == (1, 7 / 9, False)


def test_a_copy_of_a_removed_document_is_judged_in_its_own_turn():
    text = "a b c d e f g h i j"
    first = "a b c d e f g h k"
    later = "b c d e f g h i j l"
    answer = runs.answer_of(runs.run([first, text, later, text], find_all(ngram=1, threshold=0.6)))
    assert answer.kept == [0, 2]  # 7 of 12 words are common to both
    assert answer.removals == {1: (0, 8 / 11, False), 3: (2, 9 / 11, False)}


def test_the_same_set_in_another_order_is_similar_to_1_but_no_copy():
    answer = runs.answer_of(runs.run(["a b a", "b a", "a b a"], find_all(ngram=1, threshold=1.0)))
    assert answer.removals == {1: (0, 1.0, False), 2: (0, 1.0, True)}


@given(corpora.corpora(), METHODS, st.sampled_from([1, 2, 3]))
def test_with_short_buckets_the_answer_is_sound_and_the_bound_is_counted(
    texts, method, max_bucket_size
):
    result = runs.run(texts, method, max_bucket_size=max_bucket_size)
    answer = runs.answer_of(result)
    bound = result.report["bound"]
    for removed, (kept, similarity, _) in answer.removals.items():
        assert kept in answer.kept
        assert kept < removed
        assert similarity >= method.threshold
    assert answer == runs.expected(texts, method, max_bucket_size=max_bucket_size)
    assert bound["documents"] == runs.expected_bound(texts, method, max_bucket_size)
    if (
        bound["documents"] == 0
    ):  # a removed document may have a more similar kept one that its buckets do not list
        assert answer.kept == runs.expected(texts, method).kept
    else:
        assert any("max_bucket_size" in warning for warning in result.report["warnings"])
        assert result.report["recall"] is None


def test_a_bucket_of_boilerplate_meets_the_bound_and_says_so():
    texts = [f"same words again {i} other{i} third{i}" for i in range(50)]
    method = MinHash(ngram=1, threshold=0.9, num_bands=64, rows_per_band=1)
    result = runs.run(texts, method, max_bucket_size=2)
    assert runs.answer_of(result).kept == list(range(50))
    assert result.report["bound"] == {
        "max_bucket_size": 2,
        "documents": runs.expected_bound(texts, method, 2),
    }
    assert result.report["bound"]["documents"] >= 40


def test_a_full_bucket_is_no_matter_where_all_that_it_hides_from_were_removed():
    texts = [f"one two three four five six seven eight nine ten {i}" for i in range(100)]
    result = runs.run(texts, MinHash(threshold=0.6))
    assert runs.answer_of(result).kept == [0]
    assert result.report["bound"] == {"max_bucket_size": 64, "documents": 0}
    assert not any("max_bucket_size" in warning for warning in result.report["warnings"])
    assert result.report["recall"] is not None


@pytest.mark.slow
@given(corpora.corpora(max_size=10), METHODS, st.randoms(use_true_random=False))
def test_in_another_order_the_answer_is_that_of_the_oracle_for_that_order(
    texts, method, randomness
):
    shuffled = list(texts)
    randomness.shuffle(shuffled)
    assert runs.answer_of(runs.run(shuffled, method)) == runs.expected(shuffled, method)


@pytest.mark.slow
@given(corpora.corpora(), METHODS)
def test_what_was_kept_passes_again_untouched(texts, method):
    # Rare shingles of the kept texts are others than those of all texts.
    assume(not method.boost_rare)
    answer = runs.answer_of(runs.run(texts, method))
    again = runs.answer_of(runs.run([texts[number] for number in answer.kept], method))
    assert not again.removals
