"""Check every setting that changes the answer against the oracle: kept documents, earlier corpora,
clusters, pairs, tokens.
"""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import neardup
from neardup.settings.methods import MinHash, SimHash
from reference import corpora, runs
from reference.documents import documents_of

pytestmark = pytest.mark.slow

METHODS = st.one_of(
    corpora.methods(),
    corpora.methods(similarity="containment"),
    corpora.methods(similarity="cosine"),
)
POLICIES = ["first", "last", "longest", "shortest", "max:score", "min:score"]
SCORES = st.one_of(
    st.none(), st.just(float("nan")), st.sampled_from([-1.5, 0.0, 2.0, 1e300, float("inf")])
)


def tight(**settings) -> MinHash:
    return MinHash(num_bands=32, rows_per_band=1, **settings)


@pytest.mark.parametrize(
    "keep",
    [
        "max:score",
        *(pytest.param(keep, marks=pytest.mark.slow) for keep in POLICIES if keep != "max:score"),
    ],
)
@given(texts=corpora.corpora(), method=METHODS, data=st.data())
def test_every_policy_of_keeping_is_that_of_the_oracle(keep, texts, method, data):
    ranks = None
    if ":" in keep:
        ranks = data.draw(st.lists(SCORES, min_size=len(texts), max_size=len(texts)))
    answer = runs.answer_of(runs.run(texts, method, keep=keep, ranks=ranks))
    assert answer == runs.expected(texts, method, keep=keep, ranks=ranks)


@pytest.mark.parametrize(
    ("keep", "ranks"),
    [
        ("max:score", [1, 1, 1]),
        ("min:score", [None] * 3),
        ("longest", None),
        ("shortest", None),
    ],
)
def test_of_equal_rank_the_document_read_first_stays(keep, ranks):
    texts = ["a b c d", "a b c d", "a b c d"]
    assert runs.answer_of(runs.run(texts, MinHash(), keep=keep, ranks=ranks)).kept == [0]


@pytest.mark.parametrize(("keep", "kept"), [("max:score", [2]), ("min:score", [1])])
def test_a_missing_rank_comes_last_whichever_end_is_kept(keep, kept):
    texts = ["a b c d", "a b c d", "a b c d"]
    assert (
        runs.answer_of(runs.run(texts, MinHash(), keep=keep, ranks=[None, -2.0, 5.0])).kept == kept
    )


def test_length_is_that_of_the_text_in_bytes():
    assert runs.answer_of(runs.run(["漢漢", "漢漢!!!!"], MinHash(), keep="longest")).kept == [1]
    assert runs.answer_of(
        runs.run(["abcd efgh", "ABCD EFGH."], MinHash(), keep="shortest")
    ).kept == [0]


@given(
    corpora.corpora(max_size=9), corpora.corpora(max_size=9), METHODS, st.sampled_from(POLICIES[:4])
)
@example(["a b", "a b", "b a"], ["b a", "A B", "c"], tight(ngram=1, threshold=0.5), "last")
def test_an_earlier_corpus_is_never_removed_and_comes_first(against, texts, method, keep):
    result = runs.run(texts, method, against=against, keep=keep)
    assert runs.answer_of(result) == runs.expected(texts, method, against=against, keep=keep)
    assert result.report["counts"]["against"] == len(against)
    assert result.report["counts"]["read"] == len(texts)


def test_ranks_of_the_new_documents_count_beside_an_earlier_corpus():
    answer = runs.answer_of(
        runs.run(
            ["a b c", "x y z", "x y z"],
            MinHash(),
            against=["A B C"],
            ranks=[9.0, 1.0, 2.0],
            keep="max:score",
        )
    )
    assert answer.kept == [3]
    assert answer.removals == {1: (0, 1.0, True), 2: (3, 1.0, True)}


@pytest.mark.slow
@given(corpora.corpora(), METHODS, st.sampled_from(POLICIES[:4]))
def test_connected_clusters_are_those_of_a_plain_union_find(texts, method, keep):
    answer = runs.answer_of(runs.run(texts, method, linkage="connected", keep=keep))
    expected = runs.expected_connected(texts, method, keep=keep)
    assert (answer.kept, answer.removals) == (expected.kept, expected.removals)


@pytest.mark.slow
@given(corpora.corpora(max_size=8), corpora.corpora(max_size=8), METHODS)
@example(
    ["a b c d", "b c d é"], ["c d é ß"], tight(ngram=1, threshold=0.6)
)  # joined by two earlier documents
def test_connected_clusters_with_an_earlier_corpus_are_those_of_a_plain_union_find(
    against, texts, method
):
    answer = runs.answer_of(runs.run(texts, method, against=against, linkage="connected"))
    expected = runs.expected_connected(texts, method, against=against)
    assert (answer.kept, answer.removals) == (expected.kept, expected.removals)


@pytest.mark.parametrize("searches", ["with a kernel", "by stages"])
def test_a_copy_that_an_earlier_document_contains_connects_its_first_document_with_it(
    searches, monkeypatch
):
    """The second text contains the third, which is a copy of the first."""
    if searches == "by stages":
        monkeypatch.setattr("neardup.engines.local.searches.FUSED", {})
    method = MinHash(ngram=1, threshold=0.6, similarity="containment")
    answer = runs.answer_of(runs.run(["a", "a b", "a"], method, linkage="connected"))
    assert answer.removals == {1: (0, 0.5, False), 2: (0, 1.0, True)}
    assert answer.pairs == [(1, 2, 1.0, False)]


def test_a_chain_is_one_connected_cluster_and_several_documents_to_the_sieve():
    chain = ["a b c d", "b c d e", "c d e f", "d e f g"]
    method = tight(ngram=1, threshold=0.6)
    assert runs.answer_of(runs.run(chain, method)).kept == [0, 2]
    connected = runs.answer_of(runs.run(chain, method, linkage="connected"))
    assert connected.kept == [0]
    assert connected.removals[3] == (0, 1 / 7, False)


def test_documents_from_which_a_full_bucket_hides_another_cluster_are_counted():
    draw = random.Random(3)
    texts = [" ".join(draw.choices("abcdef", k=6)) for _ in range(120)]
    method = SimHash(ngram=1, max_distance=6)
    short = neardup.dedup(texts, method=method, linkage="connected", max_bucket_size=1)
    whole = neardup.dedup(texts, method=method, linkage="connected", max_bucket_size=1000)
    assert short.report["bound"]["documents"] > 0
    assert whole.report["bound"]["documents"] == 0
    assert short.report["counts"]["kept"] >= whole.report["counts"]["kept"]


@given(corpora.corpora(), METHODS, st.sampled_from([1, 2, 1000]))
def test_all_pairs_are_those_of_the_oracle_copies_included(texts, method, max_bucket_size):
    result = neardup.find_pairs(
        runs.table_of(texts), method=method, max_bucket_size=max_bucket_size
    )
    pairs = runs.pairs_of(result.pairs)
    assert pairs == runs.expected_pairs(texts, method, max_bucket_size)
    assert set(pairs) <= set(runs.expected_pairs(texts, method))
    assert result.report["counts"]["read"] == len(texts)


@pytest.mark.slow
@given(
    corpora.corpora(max_size=9), st.sampled_from([0.6, 0.75, 1.0]), st.integers(1, 3), st.randoms()
)
@example(["a b c d é", "b c d"], 1.0, 1, random.Random(1))
def test_all_pairs_by_containment_are_those_of_the_smaller_in_the_larger_in_every_order(
    texts, threshold, ngram, draw
):
    """Documents of fewer shingles than a sample has are sampled whole, so that no pair is
    missed.
    """
    texts = list(texts)
    draw.shuffle(texts)
    method = MinHash(similarity="containment", threshold=threshold, ngram=ngram)
    found = runs.pairs_of(neardup.find_pairs(runs.table_of(texts), method=method).pairs)
    documents = documents_of(texts, method)
    expected = []
    for (left, one), (right, other) in itertools.combinations(enumerate(documents), 2):
        if one.shingles and other.shingles:
            shared = len(one.shingles & other.shingles)
            similarity = max(shared / len(one.shingles), shared / len(other.shingles))
            if similarity >= threshold:
                expected.append((left, right, similarity, one.tokens == other.tokens))
    assert found == expected


@pytest.mark.parametrize("size", [150, None], ids=["equal sizes", "any size"])
def test_pairs_by_containment_do_not_depend_on_the_order_of_documents_or_files(tmp_path, size):
    """Of documents longer than a sample, a part of the pairs is missed: the same part in every
    order.
    """
    draw = random.Random(5)
    texts = {}
    for number in range(60):
        length = size or draw.randrange(100, 200)
        shared = draw.randrange(length // 3, length)
        start = draw.randrange(300 - shared)
        words = [f"s{i}" for i in range(start, start + shared)] + [
            f"own{number}x{i}" for i in range(length - shared)
        ]
        texts[str(number)] = " ".join(words)

    def found(*files: list[str]) -> set[tuple[frozenset[str], float]]:
        paths = [tmp_path / f"{number}.jsonl" for number in range(len(files))]
        for path, ids in zip(paths, files, strict=True):
            path.write_text("".join(f'{{"id": "{one}", "text": "{texts[one]}"}}\n' for one in ids))
        method = MinHash(similarity="containment", threshold=0.5, ngram=1, recall=0.8)
        rows = neardup.find_pairs([str(path) for path in paths], method=method).pairs.to_pylist()
        return {(frozenset((row["left_id"], row["right_id"])), row["similarity"]) for row in rows}

    ids = list(texts)
    expected = found(ids)
    sets = {one: frozenset(texts[one].split()) for one in ids}
    exact = {
        (
            frozenset((one, other)),
            len(sets[one] & sets[other]) / min(len(sets[one]), len(sets[other])),
        )
        for one, other in itertools.combinations(ids, 2)
        if 2 * len(sets[one] & sets[other]) >= min(len(sets[one]), len(sets[other]))
    }
    assert len(exact) > 300
    assert expected < exact
    assert len(expected) > 0.9 * len(exact)
    draw.shuffle(ids)
    assert (
        found(ids)
        == found(ids[:20], ids[20:])
        == found(ids[20:], ids[:20])
        == found(ids[::-1])
        == expected
    )


def test_three_copies_are_three_pairs():
    result = neardup.find_pairs(["a b c", "x", "A b c!", "a, b, c"])
    assert runs.pairs_of(result.pairs) == [(0, 2, 1.0, True), (0, 3, 1.0, True), (2, 3, 1.0, True)]


@pytest.mark.slow
@pytest.mark.parametrize("ngram", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("kind", ["words", "chars", "whitespace", str.split])
@settings(max_examples=12)
@given(texts=corpora.corpora(max_size=10), threshold=corpora.THRESHOLDS)
def test_every_kind_of_token_and_ngram_is_that_of_the_oracle(kind, ngram, texts, threshold):
    method = tight(tokens=kind, ngram=ngram, threshold=threshold)
    assert runs.answer_of(runs.run(texts, method)) == runs.expected(texts, method)


@pytest.mark.slow
@pytest.mark.parametrize("threshold", corpora.FRACTIONS)
def test_bands_chosen_from_the_recall_find_no_less_than_the_oracle_with_those_bands(
    threshold, real_texts
):
    texts = real_texts("zh_poetry", 15_000)
    chosen = neardup.lsh.choose_bands(threshold, 0.9)
    by_recall = MinHash(threshold=threshold, recall=0.9, ngram=2)
    given_bands = MinHash(threshold=threshold, ngram=2, **chosen._asdict())
    result = runs.run(texts, by_recall)
    assert result.report["bands"] == chosen._asdict()
    assert runs.answer_of(result) == runs.expected(texts, given_bands)


def test_traditional_and_simplified_texts_meet_when_folded(real_texts):
    texts = real_texts("zh_ts", 30_000)
    plain, folded = (tight(ngram=2, threshold=0.6, fold=fold) for fold in ((), ("chinese",)))
    removed = [len(runs.answer_of(runs.run(texts, method)).removals) for method in (plain, folded)]
    assert removed[0] < removed[1]
    assert runs.answer_of(runs.run(texts, folded)) == runs.expected(texts, folded)


def test_a_run_over_short_texts_names_the_setting_that_fits():
    texts = [f"line {i} of a poem that has {i} and {2 * i} short words" for i in range(40)]
    (warning,) = neardup.dedup(texts).report["warnings"]
    assert warning == (
        "40 of 40 documents have fewer than 32 shingles of 5 tokens. In such a text one changed "
        "word lowers the similarity below 0.8. Set ngram=2 (--ngram 2), or a lower threshold."
    )
    assert neardup.dedup(texts, method=MinHash(ngram=2)).report["warnings"] == []
    assert neardup.dedup([text * 5 for text in texts]).report["warnings"] == []
