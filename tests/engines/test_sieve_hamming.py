"""Check the contract of the sieve, DESIGN.md section 2, for SimHash against an oracle that compares
all pairs.

The first word of a text names its fingerprint, `#5` the number 5, by a weight above that of all
other words; the other words are features without influence on the fingerprint. So fingerprints
collide, or have the distance that an example needs.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import neardup
from neardup.settings.methods import SimHash
from reference import runs
from reference.documents import fingerprinted
from reference.hamming import distance
from reference.sets import jaccard

pytestmark = pytest.mark.slow

NOTHING = (None, "", " ")
BITS = (32, 64, 128, 256)
# Differing bits, by their share of a fingerprint: next to each other, at ends of words and of
# blocks.
PLACES = (0.0, 0.01, 0.02, 0.25, 0.49, 0.5, 0.75, 0.99)
WORDS = ("a", "b", "c", "d")


def words_with_weights(text: str) -> list[tuple[str, int]]:
    return [(word, 100 if place == 0 else 1) for place, word in enumerate(text.split())]


def number_named(feature: bytes) -> int:
    return int(feature[1:]) if feature.startswith(b"#") else 0


def made_up(*, confirm: str = "hamming", **settings) -> SimHash:
    return SimHash(
        tokens=words_with_weights,
        weights="given",
        hash=number_named,
        case_fold=False,
        confirm=confirm,
        **settings,
    )


@st.composite
def corpora(draw: st.DrawFn, bits: int = 64, max_size: int = 12) -> list[str | None]:
    """Return texts with fingerprints of a few bits, many equal and near, some texts without any
    feature.
    """
    texts: list[str | None] = []
    for flips, words in draw(
        st.lists(
            st.one_of(
                st.tuples(
                    st.sets(st.sampled_from(PLACES)), st.lists(st.sampled_from(WORDS), max_size=4)
                ),
                st.tuples(st.none(), st.sampled_from(NOTHING)),
            ),
            max_size=max_size,
        )
    ):
        if flips is None:
            texts.append(words)
        else:
            texts.append(" ".join([f"#{sum(1 << int(bits * place) for place in flips)}", *words]))
    return texts


@st.composite
def cases(draw: st.DrawFn, max_size: int = 12, **fixed) -> tuple[list[str | None], SimHash]:
    """Return texts and settings for them."""
    settings = {
        "bits": draw(st.sampled_from(BITS)),
        "max_distance": draw(st.integers(0, 6)),
        "confirm": draw(st.sampled_from(["hamming", "jaccard"])),
        **fixed,
    }
    if settings["confirm"] == "jaccard":
        settings.setdefault("threshold", draw(st.sampled_from([0.2, 0.4, 0.5, 2 / 3, 1.0])))
    return draw(corpora(settings["bits"], max_size)), made_up(**settings)


@given(cases())
@example((["#0 a", "#1 a", None, "#3 a", "#0 a", "", "#0 b"], made_up(max_distance=1)))
def test_the_answer_is_that_of_the_oracle(case):
    texts, method = case
    assert runs.answer_of(runs.run(texts, method)) == runs.expected(texts, method)


@pytest.mark.slow
@given(cases())
def test_every_removed_document_names_a_kept_one_that_comes_before_and_exactly_their_distance(case):
    texts, method = case
    answer = runs.answer_of(runs.run(texts, method))
    documents = fingerprinted(texts, method)
    for removed, (kept, measured, *similarity, exact) in answer.removals.items():
        assert kept in answer.kept
        assert kept < removed
        assert (
            measured
            == distance(documents[removed].fingerprint, documents[kept].fingerprint)
            <= method.max_distance
        )
        assert exact == (documents[removed].tokens == documents[kept].tokens)
        if similarity:
            assert similarity == [jaccard(documents[removed].features, documents[kept].features)]
            assert similarity[0] >= method.threshold


@given(cases(confirm="hamming"))
def test_no_two_kept_documents_have_fingerprints_within_the_distance(case):
    texts, method = case
    kept = runs.answer_of(runs.run(texts, method)).kept
    documents = fingerprinted(texts, method)
    featured = [documents[number].fingerprint for number in kept if documents[number].features]
    for place, left in enumerate(featured):
        assert all(distance(left, right) > method.max_distance for right in featured[:place])


@pytest.mark.slow
@given(cases())
def test_documents_without_features_are_kept_and_counted(case):
    texts, method = case
    result = runs.run(texts, method)
    bare = [number for number, text in enumerate(texts) if text in NOTHING]
    assert set(bare) <= set(runs.answer_of(result).kept)
    assert result.report["counts"]["without_features"] == len(bare)


def test_a_document_without_features_is_not_near_a_fingerprint_of_zeros():
    assert runs.answer_of(runs.run(["", "#0", None], made_up())).kept == [0, 1, 2]


@pytest.mark.slow
@given(cases())
def test_every_count_of_the_report_follows_from_the_answer(case):
    texts, method = case
    result = runs.run(texts, method)
    counts = result.report["counts"]
    answer = runs.answer_of(result)
    exact = sum(removal[-1] for removal in answer.removals.values())
    assert counts["read"] == len(texts) == counts["kept"] + counts["removed"]
    assert (counts["removed"], counts["removed_exact"]) == (len(answer.removals), exact)
    assert counts["confirmed"] == len(answer.pairs)
    assert counts["confirmed_exact"] == sum(pair[-1] for pair in answer.pairs)
    near = [removal[1] for removal in answer.removals.values() if not removal[-1]]
    assert result.report["distances"] == [
        near.count(bits) for bits in range(method.max_distance + 1)
    ]
    documents = [one for one in fingerprinted(texts, method) if one.features]
    found = result.report["fingerprints"]
    assert found["distinct"] == len(values := sorted({one.fingerprint for one in documents}))
    assert found["near_pairs"] == sum(
        distance(left, right) <= method.max_distance
        for place, left in enumerate(values)
        for right in values[:place]
    )
    assert found["short"] == len(documents)


@pytest.mark.slow
@given(cases(confirm="jaccard"), st.sampled_from([1, 2, 3, 1000]))
@example((["#0 a", "#0 b", "#1 c", "#0 d", "#0 a"], made_up(confirm="jaccard", threshold=0.6)), 1)
def test_near_fingerprints_of_unlike_texts_are_counted_exactly(case, max_bucket_size):
    texts, method = case
    result = runs.run(texts, method, max_bucket_size=max_bucket_size)
    assert runs.answer_of(result) == runs.expected(texts, method, max_bucket_size=max_bucket_size)
    collisions, full = runs.expected_collisions(texts, method, max_bucket_size)
    assert (
        result.report["counts"]["collisions"]
        == result.report["fingerprints"]["collisions"]
        == collisions
    )
    assert result.report["bound"] == {"max_bucket_size": max_bucket_size, "documents": full}
    assert any("max_bucket_size" in warning for warning in result.report["warnings"]) == bool(full)


@pytest.mark.slow
@given(cases(confirm="hamming"))
def test_where_the_distance_alone_decides_no_list_is_ever_full(case):
    texts, method = case
    result = runs.run(texts, method, max_bucket_size=1)
    assert runs.answer_of(result) == runs.expected(texts, method)
    assert result.report["bound"]["documents"] == 0


@pytest.mark.parametrize(("max_distance", "kept"), [(3, [0]), (2, [0, 1])])
def test_a_document_exactly_at_the_distance_is_removed(max_distance, kept):
    result = runs.run(["#0 a", "#7 b"], made_up(max_distance=max_distance))
    assert runs.answer_of(result).kept == kept


def test_the_nearest_kept_document_removes_and_ties_go_to_the_earlier():
    texts = ["#0", "#31", "#24", "#15", "#17"]
    removals = runs.answer_of(runs.run(texts, made_up(max_distance=3))).removals
    assert removals == {2: (0, 2, False), 3: (1, 1, False), 4: (0, 2, False)}


def test_with_jaccard_the_most_similar_removes_though_another_is_nearer():
    texts = ["#0 a b c d", "#1 a b c d e f", "#0 a b c d e f"]
    method = made_up(confirm="jaccard", threshold=0.6)
    assert runs.answer_of(runs.run(texts, method)).removals == {2: (1, 1, 6 / 8, False)}


def test_a_copy_is_exact_and_another_text_of_the_same_fingerprint_is_not():
    removals = runs.answer_of(runs.run(["#5 a", "#5 b", "#5 a"], made_up())).removals
    assert removals == {1: (0, 0, False), 2: (0, 0, True)}


def test_a_chain_is_one_connected_cluster_and_several_documents_to_the_sieve():
    chain = ["#0", "#7", "#63", "#511"]
    assert runs.answer_of(runs.run(chain, made_up())).kept == [0, 2]
    connected = runs.answer_of(runs.run(chain, made_up(), linkage="connected"))
    assert connected.kept == [0]
    assert connected.removals[3] == (0, 9, False)


# Every setting that changes the answer.
POLICIES = ["first", "last", "longest", "shortest", "max:score", "min:score"]


@pytest.mark.slow
@pytest.mark.parametrize("keep", POLICIES)
@settings(max_examples=15)
@given(case=cases(), data=st.data())
def test_every_policy_of_keeping_is_that_of_the_oracle(keep, case, data):
    texts, method = case
    ranks = None
    if ":" in keep:
        scores = st.sampled_from([None, -1.0, 0.0, 2.0])
        ranks = data.draw(st.lists(scores, min_size=len(texts), max_size=len(texts)))
    answer = runs.answer_of(runs.run(texts, method, keep=keep, ranks=ranks))
    assert answer == runs.expected(texts, method, keep=keep, ranks=ranks)


@pytest.mark.slow
@given(cases(max_size=16), st.integers(0, 8), st.sampled_from(POLICIES[:4]))
def test_an_earlier_corpus_is_never_removed_and_comes_first(case, num_against, keep):
    all_texts, method = case
    against = all_texts[:num_against]
    texts = all_texts[num_against:]
    result = runs.run(texts, method, against=against, keep=keep)
    assert runs.answer_of(result) == runs.expected(texts, method, against=against, keep=keep)
    assert result.report["counts"]["against"] == len(against)


@pytest.mark.slow
@given(cases(max_size=14), st.integers(0, 5), st.sampled_from(POLICIES[:4]))
def test_connected_clusters_are_those_of_a_plain_union_find(case, num_against, keep):
    all_texts, method = case
    against = all_texts[:num_against]
    texts = all_texts[num_against:]
    answer = runs.answer_of(
        runs.run(texts, method, against=against, linkage="connected", keep=keep)
    )
    expected = runs.expected_connected(texts, method, against=against, keep=keep)
    assert (answer.kept, answer.removals) == (expected.kept, expected.removals)


@given(cases(), st.sampled_from([1, 2, 1000]))
def test_all_pairs_are_those_of_brute_force_copies_included(case, max_bucket_size):
    texts, method = case
    result = neardup.find_pairs(
        runs.table_of(texts), method=method, max_bucket_size=max_bucket_size
    )
    assert runs.pairs_of(result.pairs) == runs.expected_pairs(texts, method, max_bucket_size)


# What changes no answer.
@pytest.mark.slow
@given(cases(), st.sampled_from([1, 2]), st.sampled_from([1, 2, 3, 7, 1000]))
def test_threads_and_batches_change_nothing(case, threads, batch_rows):
    texts, method = case
    assert runs.answer_of(
        runs.run(texts, method, threads=threads, batch_rows=batch_rows)
    ) == runs.expected(texts, method)


@pytest.mark.slow
@given(cases(), st.data())
def test_the_number_of_blocks_changes_nothing(case, data):
    texts, method = case
    blocks = replace(
        method, num_blocks=data.draw(st.integers(method.max_distance + 1, min(64, method.bits)))
    )
    assert runs.answer_of(runs.run(texts, blocks)) == runs.expected(texts, method)


@pytest.mark.slow
@given(cases(max_size=10), st.randoms(use_true_random=False))
def test_in_another_order_the_answer_is_that_of_the_oracle_for_that_order(case, randomness):
    texts, method = case
    shuffled = list(texts)
    randomness.shuffle(shuffled)
    assert runs.answer_of(runs.run(shuffled, method)) == runs.expected(shuffled, method)


@pytest.mark.slow
@given(cases(confirm="hamming"))
def test_what_was_kept_passes_again_untouched(case):
    texts, method = case
    answer = runs.answer_of(runs.run(texts, method))
    assert not runs.answer_of(runs.run([texts[number] for number in answer.kept], method)).removals


# Real texts.
@pytest.mark.parametrize(
    ("name", "method"),
    [
        pytest.param("en_licenses", SimHash(), marks=pytest.mark.slow),
        pytest.param("en_licenses", SimHash(confirm="hamming"), marks=pytest.mark.slow),
        ("en_licenses", SimHash(max_distance=6, ngram=3, confirm="jaccard", threshold=0.8)),
        ("zh_laws", SimHash(ngram=3, max_distance=5, bits=128, confirm="hamming")),
        pytest.param(
            "zh_laws",
            SimHash(max_distance=8, confirm="jaccard", threshold=0.7, weights="one"),
            marks=pytest.mark.slow,
        ),
    ],
    ids=[
        "en words, as it comes",
        "en words",
        "en shingles, jaccard",
        "zh shingles of 128 bits",
        "zh characters, jaccard",
    ],
)
def test_on_real_texts_the_answer_is_that_of_the_oracle(name, method, real_texts):
    texts = real_texts(name, 100_000 if name == "en_licenses" else 50_000)
    expected = runs.expected(texts, method)
    assert any(not removal[-1] for removal in expected.removals.values())
    for threads, batch_rows, num_blocks in (
        (1, 1, None),
        (2, 7, method.max_distance + 3),
        (2, 1000, None),
    ):
        blocks = replace(method, num_blocks=num_blocks)
        assert (
            runs.answer_of(runs.run(texts, blocks, threads=threads, batch_rows=batch_rows))
            == expected
        )
    pairs = neardup.find_pairs(runs.table_of(texts), method=method)
    assert runs.pairs_of(pairs.pairs) == runs.expected_pairs(texts, method)
