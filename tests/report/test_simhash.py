"""The page of a run by Hamming distance: what a distance is, what is missed, what collided."""

from __future__ import annotations

import re
from typing import Any

import pytest

import neardup
from neardup.report import charts
from neardup.report.dedup_html import render_report
from neardup.report.sections import notebook
from reference.page import Page
from reference.reports import (
    HOSTILE,
    assert_nothing_becomes_markup,
    example,
    hostile,
    simhash_report,
)

CONFIRMED = {"max_distance": 3, "confirm": "jaccard", "threshold": 0.9, "keep": "first"}


def confirmed_report(**changes: Any) -> dict[str, Any]:
    """Return the report of a run in which the features were compared too."""
    near = {**simhash_report()["fingerprints"], "collisions": 1_234}
    edges = {"edges": [0.9, 0.95, 1.0], "counts": [11_011, 12_094]}
    return simhash_report(settings=CONFIRMED, fingerprints=near, similarities=edges, **changes)


def body_of(report: dict[str, Any], *examples) -> str:
    """Return the text of the page, white space evened out."""
    return re.sub(r"\s+", " ", Page(render_report(report, list(examples))).texts["body"][0])


def test_the_page_says_that_no_near_fingerprint_is_missed_and_what_a_fingerprint_cannot_tell():
    said = body_of(simhash_report())
    assert "No pair of fingerprints within 3 bits is missed: cut into more than 3 blocks" in said
    assert "of the fingerprints within 3 bits: none is missed" in said
    assert "(1,004 documents had fewer features than SimHash needs)" in said
    assert "Horvitz" not in said


def test_one_bit_is_said_as_one_bit():
    near = {**simhash_report()["fingerprints"], "max_distance": 1, "short": 1}
    said = body_of(simhash_report(fingerprints=near, distances=[3, 4]), example(distance=1))
    assert "within 1 bit is missed" in said
    assert "of the fingerprints within 1 bit: none is missed" in said
    assert "1 document had fewer features" in said
    assert not re.search(r"\b1 bits", said)


def test_distances_are_bars_with_their_counts():
    page = Page(charts.distance_chart(simhash_report()))
    assert page.texts["title"] == [
        "9,001 documents at distance 0",
        "6,002 documents at distance 1",
        "5,003 documents at distance 2",
        "3,099 documents at distance 3",
    ]
    (drawing,) = page.texts["svg"]
    for label in ("0 bits", "1 bit", "2 bits", "3 bits", "9,001", "6,002", "5,003", "3,099"):
        assert label in drawing
    lengths = [
        float(a["width"] or 0) for tag, a in page.elements if tag == "rect" and a["class"] == "near"
    ]
    assert [round(9_001 * length / lengths[0]) for length in lengths] == pytest.approx(
        [9_001, 6_002, 5_003, 3_099], abs=1
    )


@pytest.mark.parametrize("distances", [None, [], [0, 0, 0, 0]])
def test_where_nothing_was_near_no_distances_are_drawn(distances):
    record = simhash_report(distances=distances, cluster_sizes=[])
    assert charts.distance_chart(record) == ""
    assert "No duplicates were found." in body_of(record)


def test_collisions_are_told_where_they_were_looked_for():
    assert "Collisions" not in body_of(simhash_report())
    said = body_of(confirmed_report())
    assert "Collisions1,234" in said.replace("Collisions ", "Collisions")
    assert "near fingerprints of dissimilar texts, rejected" in said


def test_an_item_shows_the_measure_that_removed_it():
    by_distance = render_report(
        simhash_report(), [example(distance=2), example(distance=0, exact=True)]
    )
    assert re.findall(r'class="similarity">([^<]*)<', by_distance) == ["2 bits", "0 bits"]
    by_similarity = render_report(confirmed_report(), [example(similarity=0.96)])
    assert re.findall(r'class="similarity">([^<]*)<', by_similarity) == ["0.960"]


def test_words_are_explained_as_the_settings_have_them():
    said = body_of(simhash_report())
    assert (
        "A document is removed if a kept document is similar to it (fingerprints within 3 bits); "
        "otherwise"
    ) in said
    assert (
        "its words, weighed by their frequency in it. Each votes with its weight on every one of "
        "64 bits"
    ) in said
    assert "Jaccard" not in said
    said = body_of(confirmed_report())
    assert "is similar to it (fingerprints within 3 bits, jaccard 0.9 or more); otherwise" in said
    assert (
        "Jaccard similarity is the number of features in both, divided by the number in either"
        in said
    )


@pytest.mark.parametrize(
    ("scheme", "sentence"),
    [
        ({"weights": "one", "ngram": 3}, "are its sequences of 3 words, each of the same weight."),
        (
            {"weights": "tfidf"},
            "are its words, weighed by their frequency in it and their rarity in the corpus.",
        ),
        ({"weights": "given", "tokens": "mine.words"}, "are its mine.words. Each votes"),
        ({"tokens": {"package": "rjieba", "mode": "exact"}}, "are its Chinese words, weighed by"),
    ],
)
def test_features_are_said_in_words(scheme, sentence):
    assert sentence in body_of(simhash_report(scheme={**simhash_report()["scheme"], **scheme}))


def test_a_chain_of_near_fingerprints_is_explained_as_one():
    settings = {**simhash_report()["settings"], "linkage": "connected"}
    assert "linked if they are similar (fingerprints within 3 bits); a cluster" in body_of(
        simhash_report(settings=settings)
    )
    settings = {**CONFIRMED, "linkage": "connected"}
    assert (
        "linked if they are similar (fingerprints within 3 bits, jaccard 0.9 or more); a cluster"
        in body_of(simhash_report(settings=settings))
    )


@pytest.mark.parametrize("absent", sorted(simhash_report()))
def test_any_part_of_the_report_may_be_absent_or_null(absent):
    partial = {key: value for key, value in simhash_report().items() if key != absent}
    for record in (partial, partial | {absent: None}):
        Page(render_report(record, [example(distance=1)]))
        Page(notebook(record))


def test_hostile_settings_and_texts_are_shown_and_never_become_markup():
    record = simhash_report(
        settings={"confirm": HOSTILE, "keep": HOSTILE, "threshold": HOSTILE, HOSTILE: HOSTILE},
        scheme={
            "tokens": {HOSTILE: HOSTILE},
            "weights": HOSTILE,
            "bits": HOSTILE,
            "hash": HOSTILE,
            "idf": HOSTILE,
        },
        warnings=[HOSTILE],
    )
    assert_nothing_becomes_markup(record, hostile()._replace(distance=2))


def test_the_notebook_fragment_shows_distances_in_place_of_similarities():
    page = Page(notebook(simhash_report()))
    assert page.count("svg") == 2
    assert "Hamming distance of the near-duplicates" in page.texts["figure"][0]
    assert "of the fingerprints within 3 bits: none is missed" in page.texts["td"]
    page = Page(notebook(simhash_report(bound={"max_bucket_size": 1_002, "documents": 7})))
    assert "not known: 7 documents not compared with all candidates" in page.texts["td"]
    assert Page(notebook(confirmed_report())).count("svg") == 3


@pytest.mark.parametrize("confirm", ["hamming", "jaccard"])
def test_the_page_of_a_run_shows_what_its_result_holds(confirm, real_texts, tmp_path):
    method = neardup.SimHash(max_distance=6, confirm=confirm)
    result = neardup.dedup(
        real_texts("en_licenses", 100_000), method=method, output=tmp_path / "out"
    )
    html = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    shown = re.findall(r'class="similarity">([^<]*)<.*?<bdi class="id">([^<]*)<', html, re.DOTALL)
    removed = {row["id"]: row for row in result.removed.to_pylist()}
    assert shown
    for measure, name in shown:
        if confirm == "hamming":
            bits = removed[name]["distance"]
            assert measure == ("1 bit" if bits == 1 else f"{bits} bits")
        else:
            assert float(measure) <= removed[name]["similarity"] < float(measure) + 0.001
    said = Page(html).texts["body"][0]
    near = [row["distance"] for row in removed.values() if not row["exact"]]
    assert f"{near.count(3):,} document{'s' * (near.count(3) != 1)} at distance 3" in said
    assert Page(result._repr_html_()).count("svg") == (2 if confirm == "hamming" else 3)
