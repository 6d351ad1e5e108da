"""Pages of one template have the same structure, whatever they say and however many rows their
lists have.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup.errors import SettingError
from neardup.features.page_structure import shingle_pages, weigh_tags
from neardup.fingerprints.simhash import extend, summarise_weighted, to_integers
from neardup.kernels.html_tree import MAX_DEPTH
from reference import html as reference
from reference import simhash as votes_reference
from reference.signed import fingerprint_of

PAGES = st.lists(
    st.sampled_from(
        [
            "<p>",
            "</p>",
            "<div class=a>",
            "<div class='b c'>",
            "</div>",
            "<a href=x>",
            "<br>",
            "<li>",
            "x",
        ]
    ),
    max_size=30,
).map("".join)


def sets_of(*pages: str | None, ngram: int = 3) -> list[frozenset[int]]:
    shingles = shingle_pages(pa.array(pages, pa.string()), ngram)
    limits = zip(shingles.offsets[:-1], shingles.offsets[1:], strict=True)
    return [frozenset(map(int, shingles.hashes[first:stop])) for first, stop in limits]


def results_page(num_results: int) -> str:
    rows = (
        (
            f"<li class='result row-{i}' id=r{i}><a class=title href=/{i}>Title {i}</a><span "
            f"class=price>{i}</span></li>"
        )
        for i in range(num_results)
    )
    return f"<html><body><ul class=results>{''.join(rows)}</ul><p class=end></body></html>"


def test_ten_results_and_a_hundred_look_alike():
    ten, hundred = sets_of(results_page(10), results_page(100))
    assert ten == hundred


def test_what_a_page_says_does_not_matter():
    left, right = sets_of(
        "<p class=a>one<b>two</b>", "<p class=a>drei <b title=vier>fünf</b><!-- <i> -->"
    )
    assert len(left) == 1
    assert left != right  # the name of an attribute is structure
    assert left == sets_of("<p\n class='a'>drei <b>fünf</b><!-- <i> -->")[0]


@given(st.lists(PAGES, max_size=4), st.integers(1, 4))
def test_shingles_are_the_ngrams_of_start_tags(pages, ngram):
    """Two n-grams have one hash where their tags are the same, and no others do."""
    shingles = shingle_pages(pa.array(pages, pa.string()), ngram)
    ngrams = []
    for index, page in enumerate(pages):
        tokens = [
            reference.token_of(tag) for tag in reference.tags_of(page.encode()) if not tag.is_end
        ]
        size = min(ngram, len(tokens))
        expected = (
            [tuple(tokens[i : i + size]) for i in range(len(tokens) - size + 1)] if tokens else []
        )
        assert shingles.offsets[index + 1] - shingles.offsets[index] == len(expected)
        ngrams += expected
    pairs = set(zip(map(int, shingles.hashes), ngrams, strict=True))
    assert len({hash_ for hash_, _ in pairs}) == len({tags for _, tags in pairs}) == len(pairs)


@given(st.lists(PAGES, min_size=2, max_size=6))
def test_content_is_equal_where_the_start_tags_are(pages):
    content = shingle_pages(pa.array(pages, pa.string()), 3).content
    tags = [
        [reference.token_of(tag) for tag in reference.tags_of(page.encode()) if not tag.is_end]
        for page in pages
    ]
    for i, left in enumerate(tags):
        for j, right in enumerate(tags):
            assert (left == right) == bool((content[i] == content[j]).all())


@given(st.lists(PAGES, min_size=1, max_size=6), st.integers(0, 3))
def test_slices_and_types_of_arrays_do_not_matter(pages, first):
    whole = shingle_pages(pa.array(pages, pa.string()), 3)
    for kind in (pa.large_string(), pa.binary(), pa.large_binary()):
        part = shingle_pages(pa.array(pages, pa.string()).cast(kind)[first:], 3)
        assert list(part.hashes) == list(whole.hashes[whole.offsets[min(first, len(pages))] :])


def test_a_page_without_tags_has_no_features():
    assert sets_of(None, "", "only text, 1 < 2", "<!-- <p> -->") == [frozenset()] * 4
    weighed = weigh_tags(pa.array([None, "", "only text"], pa.string()), 0.45)
    assert list(weighed.offsets) == [0, 0, 0, 0]


def test_an_element_weighs_decay_to_the_power_of_its_depth():
    weighed = weigh_tags(pa.array(["<p>a<div><p>b</div>"]), 0.5)
    html, head, body, paragraph, div, inner = weighed.hashes
    assert paragraph == inner
    assert len({html, head, body, paragraph, div}) == 5
    assert list(weighed.weights) == [1, 0.5, 0.5, 0.25, 0.25, 0.125]


# Worked by hand: six elements, the head implied, with decay 0.45.
#
#   element   depth   0.45 ** depth   of the tag
#   html      0       1               1
#   head      1       0.45            0.45
#   body      1       0.45            0.45
#   ul        2       0.2025          0.2025
#   li, li    3       0.091125 each   0.18225
#
# The hashes, FNV-1a mixed as shingles are, begin with the hexadecimal digits b, 0, 1, a, e in this
# order: bits 1011, 0000, 0001, 1010, 1110. So the first four sums are
#    1 - 0.45 - 0.45 + 0.2025 + 0.18225 =  0.48475
#   -1 - 0.45 - 0.45 - 0.2025 + 0.18225 = -1.92025
#    1 - 0.45 - 0.45 + 0.2025 + 0.18225 =  0.48475
#    1 - 0.45 + 0.45 - 0.2025 - 0.18225 =  0.61525
# and the first digit of the fingerprint is 1011, or b.
LIST = "<html><body><ul><li>a<li>b</ul></body></html>"
LIST_WEIGHTS = {"html": 1, "head": 0.45, "body": 0.45, "ul": 0.2025, "li": 0.18225}
LIST_HASHES = {
    "html": 0xB56E0F014A677145,
    "head": 0x0601060486FF9F59,
    "body": 0x11C4D46855B2370E,
    "ul": 0xABCCF94394CE6AA2,
    "li": 0xE325BE7A97E26465,
}
LIST_SIMHASH = 0xB56C0F0146E77145


def test_the_weights_of_a_tag_add_up_to_those_worked_by_hand():
    weighed = weigh_tags(pa.array([LIST]), 0.45)
    totals = dict.fromkeys(LIST_HASHES, 0.0)
    name_of = {value: name for name, value in LIST_HASHES.items()}
    for hash_, weight in zip(weighed.hashes, weighed.weights, strict=True):
        totals[name_of[int(hash_)]] += weight
    assert totals == pytest.approx(LIST_WEIGHTS, rel=1e-15)


def test_the_simhash_of_weighed_tags_is_that_of_the_votes_worked_by_hand():
    votes = [
        sum(
            weight if LIST_HASHES[name] >> (63 - bit) & 1 else -weight
            for name, weight in LIST_WEIGHTS.items()
        )
        for bit in range(64)
    ]
    assert votes[:4] == pytest.approx([0.48475, -1.92025, 0.48475, 0.61525])
    assert sum(1 << (63 - bit) for bit, vote in enumerate(votes) if vote > 0) == LIST_SIMHASH
    assert fingerprint_of(LIST, method=neardup.method("decay")) == LIST_SIMHASH
    weighed = weigh_tags(pa.array([LIST]), 0.45)
    sums = summarise_weighted(extend(weighed.hashes, 64), weighed.weights, weighed.offsets, 64)
    assert to_integers(sums.fingerprints) == [LIST_SIMHASH]
    assert list(sums.last_sums[::-1]) == pytest.approx(votes)


def test_explain_shows_the_elements_of_a_page_with_their_weights():
    found = neardup.explain(LIST, method="decay")
    assert dict(zip(found.features, found.weights, strict=True)) == pytest.approx(LIST_WEIGHTS)
    assert dict(zip(found.features, found.hashes, strict=True)) == LIST_HASHES
    assert found.counts == (1, 1, 1, 1, 2)
    assert found.sums[:4] == pytest.approx([0.48475, -1.92025, 0.48475, 0.61525])
    assert found.fingerprint == LIST_SIMHASH


def test_explain_shows_paths_from_html_down():
    page = "<!DOCTYPE html><TITLE>t</TITLE><p>a</p></p><table><td>b</table>" + "<i>" * 40
    found = neardup.explain(page, method="paths")
    assert found.features[:9] == (
        "html",
        "html/head",
        "html/head/title",
        "html/body",
        "html/body/p",
        "html/body/table",
        "html/body/table/tbody",
        "html/body/table/tbody/tr",
        "html/body/table/tbody/tr/td",
    )
    assert found.counts[4] == 2  # an end tag without a start makes an element, too
    assert found.features[-1] == "…/" + "/".join(["i"] * 32)
    assert found.fingerprint == fingerprint_of(page, method=neardup.method("paths"))


def test_foreign_hashes_of_weighed_tags_are_those_of_their_names():
    hashes = [
        (votes_reference.fnv(name.encode(), True), LIST_WEIGHTS[name]) for name in LIST_WEIGHTS
    ]
    expected = votes_reference.reduce(votes_reference.sums(hashes, 64), 1)
    method = neardup.method("decay", hash="fnv1")
    assert fingerprint_of(LIST.replace("ul>", "UL>"), method=method) == expected
    assert neardup.explain(LIST, method=method).fingerprint == expected
    pages = [LIST, "", LIST + "<svg><x:é>", "<p>" * 600, LIST]
    signed = neardup.sign(pages, method=method).to_integers()
    assert [signed[0], signed[-1]] == [expected, expected]
    assert signed[3] == fingerprint_of(pages[3], method=method)


@pytest.mark.parametrize("method", ["decay", "paths"])
def test_features_without_a_page_have_no_depth(method):
    with pytest.raises(SettingError, match="Depth is known of the elements of a page alone"):
        neardup.explain(["p", "li"], method=method)


def test_a_path_is_known_by_all_tags_on_it():
    page = "<div><p>a</p></div><p>b</p><div><p>c</p></div>"
    html, head, body, div, inner, outer, again, inner_again = weigh_tags(
        pa.array([page]), 0.45, paths=True
    ).hashes
    assert (div, inner) == (again, inner_again)
    assert len({html, head, body, div, inner, outer}) == 6


@pytest.mark.parametrize("paths", [False, True])
def test_nesting_beyond_the_limit_has_the_weight_of_the_limit(paths):
    weights = weigh_tags(pa.array(["<div>" * 100_000]), 0.99, paths=paths).weights
    assert len(weights) == 100_003
    assert weights.min() == pytest.approx(0.99**MAX_DEPTH)
    assert np.isfinite(weights).all()
