"""Scores against labels: the same as looking at every pair, whatever the method; and what bad input
gets.
"""

from __future__ import annotations

import gzip
import json
import math
import random
import re
import string
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import neardup
from neardup.documents import decompressed
from neardup.errors import (
    ColumnError,
    IncompleteWarning,
    InputError,
    OutputError,
    SettingError,
)
from neardup.schemas import curve_schema, length_schema
from neardup.settings.methods import MethodSettings
from neardup.verify.scores import Score
from reference import evaluation, runs, sets
from reference.clusters import first_members
from reference.corpora import corpora

LABELS = st.sampled_from([None, "", "x", "x", "y", "z"])
CERTAIN = neardup.MinHash(ngram=2, threshold=0.6, num_bands=16, rows_per_band=2)
METHODS: tuple[MethodSettings, ...] = (
    CERTAIN,
    neardup.MinHash(ngram=1, threshold=0.8, num_bands=24, rows_per_band=1),
    neardup.SimHash(max_distance=3, confirm="hamming"),
    neardup.SimHash(max_distance=12, threshold=0.4, ngram=2),
    neardup.SimHash(bits=32, max_distance=2, weights="one", confirm="hamming"),
)


@st.composite
def labelled(draw: st.DrawFn) -> tuple[list[str | None], list[str | None]]:
    """Return texts and their labels, of which at least one is known."""
    texts = draw(corpora())
    labels = draw(st.lists(LABELS, min_size=len(texts), max_size=len(texts)))
    assume(any(labels))
    return texts, labels


def table_of(texts: Sequence[str | None], labels: Sequence[str | None]) -> pa.Table:
    return runs.table_of(texts).append_column("cluster", pa.array(labels, pa.string()))


def found_by(texts: Sequence[str | None], method: MethodSettings) -> set[tuple[int, int]]:
    return {(left, right) for left, right, *_ in runs.expected_pairs(texts, method)}


def counts(score: Score) -> tuple[int, int, int]:
    return score.found, score.correct, score.positives


# Scores


@pytest.mark.slow
@given(labelled(), st.sampled_from(METHODS))
def test_the_scores_are_those_of_looking_at_every_pair(case, method):
    texts, labels = case
    result = neardup.evaluate(table_of(texts, labels), method=method)
    verdict = evaluation.verdict_of_labels(labels)
    found = found_by(texts, method)
    assert counts(result.at_threshold) == evaluation.score(
        len(texts), lambda *pair: pair in found, verdict
    )


@pytest.mark.slow
@settings(max_examples=15)
@given(labelled(), st.sampled_from(METHODS))
def test_a_point_of_the_curve_is_what_the_method_finds_at_that_limit(case, method):
    texts, labels = case
    result = neardup.evaluate(table_of(texts, labels), method=method)
    limit = result.curve.column_names[0]
    verdict = evaluation.verdict_of_labels(labels)
    for row in result.curve.to_pylist():
        found = found_by(texts, replace(method, **{limit: row[limit]}))
        expected = evaluation.score(len(texts), lambda *pair, found=found: pair in found, verdict)
        assert (row["found"], row["correct"], row["positives"]) == expected


@pytest.mark.slow
@given(labelled(), st.sampled_from(METHODS))
def test_a_pair_belongs_to_the_class_of_its_shorter_text(case, method):
    texts, labels = case
    result = neardup.evaluate(table_of(texts, labels), method=method)
    found = found_by(texts, method)
    verdict = evaluation.verdict_of_labels(labels)
    classes = [evaluation.length_class(len(text or "")) for text in texts]
    members = [least for least, label in zip(classes, labels, strict=True) if label]
    assert result.by_length["characters_from"].to_pylist() == sorted(set(members))
    for row in result.by_length.to_pylist():
        least = row["characters_from"]

        def here(left: int, right: int, least: int = least) -> bool | None:
            return verdict(left, right) if min(classes[left], classes[right]) == least else None

        assert row["documents"] == members.count(least)
        expected = evaluation.score(len(texts), lambda *pair: pair in found, here)
        assert (row["found"], row["correct"], row["positives"]) == expected
    totals = [sum(result.by_length[name].to_pylist()) for name in ("found", "correct", "positives")]
    assert tuple(totals) == counts(result.at_threshold)


@pytest.mark.slow
@settings(max_examples=15)
@given(labelled(), st.sampled_from(METHODS))
def test_the_adjusted_rand_index_is_that_of_the_clusters_of_dedup(case, method):
    texts, labels = case
    result = neardup.evaluate(table_of(texts, labels), method=method)
    known = [number for number, label in enumerate(labels) if label]
    truth = [ord(str(labels[number])) for number in known]
    for clusters, index in (
        ("sieve", result.adjusted_rand),
        ("connected", result.adjusted_rand_connected),
    ):
        removals = runs.answer_of(runs.run(texts, method, linkage=clusters)).removals
        first = first_members(
            len(texts), [(number, kept) for number, (kept, *_) in removals.items()]
        )
        assert index == pytest.approx(
            evaluation.adjusted_rand([first[number] for number in known], truth), abs=1e-12
        )


@pytest.mark.slow
@settings(max_examples=15)
@given(labelled(), st.sampled_from(METHODS), st.randoms(use_true_random=False))
def test_scores_do_not_depend_on_the_order_of_documents_batches_or_threads(case, method, draw):
    texts, labels = case
    rows = list(zip(texts, labels, strict=True))
    draw.shuffle(rows)
    here = neardup.evaluate(table_of(texts, labels), method=method)
    there = neardup.evaluate(
        table_of(*zip(*rows, strict=True)), method=method, batch_rows=3, threads=1
    )
    assert (here.at_threshold, here.best) == (there.at_threshold, there.best)
    assert here.curve.equals(there.curve)
    assert here.by_length.equals(there.by_length)


@pytest.mark.parametrize("method", [neardup.MinHash(threshold=0.5, recall=0.8), neardup.SimHash()])
def test_what_is_found_is_what_find_pairs_finds(real_texts, method):
    texts = real_texts("en_licenses", 300_000)
    labels = [str(number % 7) for number in range(len(texts))]
    result = neardup.evaluate(table_of(texts, labels), method=method)
    pairs = neardup.find_pairs(texts, method=method).pairs
    same = sum(
        labels[int(a)] == labels[int(b)]
        for a, b, *_ in zip(*pairs.to_pydict().values(), strict=True)
    )
    assert counts(result.at_threshold)[:2] == (pairs.num_rows, same)
    assert result.at_threshold.positives == sum(
        math.comb(labels.count(one), 2) for one in set(labels)
    )


def test_the_curve_shows_the_score_of_the_method_at_its_own_threshold(real_texts):
    """Although other bands would find more. At 0.45 and 0.55 the search misses a pair once in 10^10
    at most.
    """
    texts = real_texts("en_licenses", 300_000)
    method = neardup.MinHash(threshold=0.5, recall=0.5)
    result = neardup.evaluate(table_of(texts, ["one"] * len(texts)), method=method)
    rows = {row["threshold"]: row["found"] for row in result.curve.to_pylist()}
    assert rows[0.5] == result.at_threshold.found
    for threshold in (0.45, 0.55):
        certain = replace(method, threshold=threshold, recall=0.999999)
        assert (
            rows[threshold]
            == neardup.find_pairs(texts, method=certain, max_bucket_size=100_000).pairs.num_rows
        )


def test_fingerprints_with_weights_of_the_corpus_find_what_find_pairs_finds(real_texts):
    texts = real_texts("en_licenses", 60_000)
    method = neardup.SimHash(max_distance=12, weights="tfidf")
    table = table_of(texts, ["x"] * len(texts))
    found = neardup.evaluate(table, method=method).at_threshold.found
    assert found == neardup.find_pairs(table, method=method).pairs.num_rows > 0


def test_a_report_contradicts_itself_nowhere():
    """A cluster larger than a bucket of dedup: its pairs are found by both searches."""
    texts = [
        f"one two three four five six seven eight nine ten eleven twelve {number}"
        for number in range(150)
    ]
    method = neardup.MinHash(threshold=0.8, num_bands=16, rows_per_band=1)
    result = neardup.evaluate(table_of(texts, ["x"] * 150), method=method)
    assert result.at_threshold == Score(0.8, 11_175, 11_175, 11_175)
    assert {row["found"] for row in result.curve.to_pylist() if row["threshold"] <= 0.8} == {11_175}
    assert not any("max_bucket_size" in warning for warning in result.report["warnings"])


def test_a_full_bucket_is_told_of_the_search_that_met_it():
    """At 0.8, bands of several rows tell these texts apart; at 0.1, those of one row do not."""
    texts = [
        f"one two three four five six {number} {number + 1} {number + 2}"
        for number in range(0, 300, 3)
    ]
    result = neardup.evaluate(
        table_of(texts, ["x"] * 100), method=neardup.MinHash(threshold=0.99), max_bucket_size=5
    )
    assert [
        one.partition(" documents share")[0].rpartition(" ")[0] for one in result.report["warnings"]
    ] == ["In the search for the curve,"]


def test_shares_that_mean_nothing_are_null():
    result = neardup.evaluate(table_of(["a b c d e f", "u v w x y z"], ["1", "2"]))
    assert (result.at_threshold.precision, result.at_threshold.recall, result.at_threshold.f1) == (
        None,
        None,
        None,
    )
    assert result.curve.slice(0, 1).to_pylist() == [
        {
            "threshold": 0.2,
            "found": 0,
            "correct": 0,
            "positives": 0,
            "precision": None,
            "recall": None,
            "f1": None,
        }
    ]
    assert str(result).startswith("threshold=0.8: precision -, recall -, F1 -; best threshold=1:")


def test_a_file_that_cannot_be_opened_is_lost_and_the_others_are_scored(tmp_path, monkeypatch):
    rows = "".join(f'{{"text": "some words {n}", "cluster": {n}}}\n' for n in range(3))
    (tmp_path / "a.jsonl").write_text(rows)
    (tmp_path / "b.jsonl").write_text(rows)
    open_raw = decompressed._open_raw

    def refuse(raw):
        if str(raw).endswith("b.jsonl"):
            raise PermissionError(13, "Permission denied", str(raw))
        return open_raw(raw)

    monkeypatch.setattr(decompressed, "_open_raw", refuse)
    with pytest.warns(IncompleteWarning, match="b.jsonl.*Permission denied"):
        report = neardup.evaluate(tmp_path).report
    assert report["truth"]["documents"] == 3


def test_files_that_are_left_out_are_named(tmp_path):
    rows = "".join(f'{{"text": "some words {n}", "cluster": {n}}}\n' for n in range(3))
    (tmp_path / "a.jsonl").write_text(rows)
    (tmp_path / "b.xyz").touch()
    warnings = neardup.evaluate(tmp_path).report["warnings"]
    said = f"Left out 1 file without a known suffix: {tmp_path}/b.xyz."
    assert warnings.count(said) == 1


def test_the_tables_have_their_schemas_and_the_result_shows_itself():
    result = neardup.evaluate(table_of(["a b c d e f g", "A b c d e f g", "x"], ["1", "1", "2"]))
    assert result.curve.schema == curve_schema("threshold")
    assert result.by_length.schema == length_schema()
    assert str(result) == (
        "threshold=0.8: precision 100 %, recall 100 %, F1 100 %; best threshold=1: precision 100 "
        "%, recall 100 %, F1 100 %"
    )
    assert result._repr_html_().startswith("<p>threshold=0.8: precision 100 %")
    assert "<svg " in result._repr_html_()
    distances = neardup.evaluate(table_of(["a", "a"], ["1", "1"]), method=neardup.SimHash())
    assert distances.curve.schema == curve_schema("max_distance")
    assert distances.curve["max_distance"].to_pylist() == list(range(17))


# The curve


def test_the_curve_begins_where_it_is_told_to_and_says_the_same_from_there_on(real_texts):
    texts = real_texts("en_licenses", 100_000)
    labels = [str(number % 7) for number in range(len(texts))]
    whole = neardup.evaluate(table_of(texts, labels), method=CERTAIN, curve_from=0.05)
    part = neardup.evaluate(table_of(texts, labels), method=CERTAIN, curve_from=0.42)
    assert [row["threshold"] for row in part.curve.to_pylist()] == [
        limit / 20 for limit in range(8, 21)
    ]
    assert part.curve.equals(whole.curve.slice(7))


def test_a_best_threshold_at_the_start_of_the_curve_is_told():
    texts = ["a b c d e f g h i", "a b c d x y z v w"]
    labels = ["1", "1"]
    result = neardup.evaluate(
        table_of(texts, labels), method=neardup.MinHash(ngram=1), curve_from=0.25
    )
    assert result.report["warnings"] == [
        "The best threshold is the first one of the curve, 0.25; a lower one may be better. Start "
        "lower: curve_from=0.125 (--curve-from 0.125)."
    ]


@pytest.mark.parametrize("start", [0, 0.01, 1.1, "low", float("nan"), True])
def test_a_start_of_the_curve_that_is_no_threshold_is_refused(start):
    with pytest.raises(SettingError, match=r"curve_from must be a threshold from 0\.05 to 1: got"):
        neardup.evaluate(table_of(["a"], ["1"]), curve_from=start)


def test_a_curve_over_distances_begins_at_0():
    table = table_of(["a", "a"], ["1", "1"])
    with pytest.raises(SettingError, match=r"the curve of SimHash has distances: got 0\.3"):
        neardup.evaluate(table, method="simhash", curve_from=0.3)
    found = neardup.compare_methods(table, ["minhash", "simhash"], curve_from=0.5)
    assert [result.curve[0][0].as_py() for result in found.values()] == [0.5, 0]


# Examples of errors


def shown_pairs(page: Path) -> dict[str, set[tuple[int, int]]]:
    """Return the numbers of the documents of each pair on a page, by kind."""
    items = re.findall(
        r'<li id="(wrong|missed)-\d+".*?First <bdi[^>]*>(\d+)<.*?Second <bdi[^>]*>(\d+)<',
        page.read_text(),
        re.S,
    )
    pairs: dict[str, set[tuple[int, int]]] = {"wrong": set(), "missed": set()}
    for kind, first, second in items:
        pairs[kind].add((min(int(first), int(second)), max(int(first), int(second))))
    return pairs


@pytest.mark.slow
@given(labelled(), st.sampled_from(METHODS))
def test_the_page_of_errors_has_all_wrong_and_missed_pairs_or_twenty(
    tmp_path_factory, case, method
):
    texts, labels = case
    page = tmp_path_factory.mktemp("page") / "errors.html"
    neardup.evaluate(table_of(texts, labels), method=method, errors=page)
    found = {(min(pair), max(pair)) for pair in found_by(texts, method)}
    known = {
        pair for pair in combinations(range(len(texts)), 2) if labels[pair[0]] and labels[pair[1]]
    }
    same = {pair for pair in known if labels[pair[0]] == labels[pair[1]]}
    for kind, expected in (("wrong", found & known - same), ("missed", same - found)):
        shown = shown_pairs(page)[kind]
        assert shown <= expected
        assert len(shown) == min(20, len(expected))


def test_the_page_of_errors_of_judged_pairs_marks_the_differences_and_escapes_the_texts(tmp_path):
    texts = [
        "<b>one two three four five six seven</b>",
        "<b>one two three four five six eight</b>",
        "x y z",
        "X Y Z!",
    ]
    judged = pa.table({"left_id": ["0", "0"], "right_id": ["1", "2"], "duplicate": [False, True]})
    neardup.evaluate(
        runs.table_of(texts),
        pairs=judged,
        method=neardup.MinHash(ngram=1, threshold=0.5),
        errors=tmp_path / "errors.html",
    )
    page = (tmp_path / "errors.html").read_text()
    assert shown_pairs(tmp_path / "errors.html") == {"wrong": {(0, 1)}, "missed": {(0, 2)}}
    assert re.search("&lt;b&gt;one two three four five six ?<del> ?seven", page)
    assert "<b>one" not in page
    assert "<b>1</b> wrong pair, <b>1</b> missed pair" in page
    with pytest.raises(OutputError, match="exists"):
        neardup.evaluate(runs.table_of(texts), pairs=judged, errors=tmp_path / "errors.html")


def test_errors_are_examples_by_features_that_the_search_counted(tmp_path):
    texts = ["the red fox", "the red hen", "the blue sky", "the blue sea", "the end"]
    method = neardup.MinHash(ngram=1, threshold=0.4, boost_rare=True)
    neardup.evaluate(table_of(texts, list("xyzzx")), method=method, errors=tmp_path / "errors.html")
    assert (0, 4) in shown_pairs(tmp_path / "errors.html")["missed"]


def test_a_missed_pair_is_measured_by_containment_of_the_smaller_text_in_the_larger(tmp_path):
    page = "one two three four five six seven eight nine ten"
    quote = "two three four five other"
    method = neardup.MinHash(ngram=1, threshold=1.0, similarity="containment")
    for texts in ([page, quote], [quote, page]):
        neardup.evaluate(
            table_of(texts, ["x", "x"]), method=method, errors=tmp_path / "a.html", overwrite=True
        )
        assert 'data-similarity="0.8"' in (tmp_path / "a.html").read_text(encoding="utf-8")


# The classic trial


def trial() -> tuple[list[str], list[tuple[int, int]], int]:
    """Return 1,000 random strings of 10 to 40 of a dozen letters, and 10 copies of some with one
    letter changed.
    """
    draw = random.Random(2010)
    letters = string.ascii_lowercase[:12]
    texts = ["".join(draw.choices(letters, k=draw.randint(10, 40))) for _ in range(1000)]
    # Of shorter strings, bands of 7 miss too many: at 20 letters, 15 of 21 shingles are left, and 1
    # in 16 is missed.
    originals = draw.sample([number for number, text in enumerate(texts) if len(text) >= 32], 10)
    for number in originals:
        place = draw.randrange(len(texts[number]))
        other = draw.choice(letters.replace(texts[number][place], ""))
        texts.append(texts[number][:place] + other + texts[number][place + 1 :])
    return texts, list(zip(originals, range(1000, 1010), strict=True)), 28


@pytest.mark.slow
def test_ten_copies_with_one_letter_changed_are_found_among_a_thousand_random_strings_and_nothing_else():  # noqa: E501
    """200 hashes in bands of 7 make 28 bands, of 196 hashes.

    A string of 32 letters or more has 30 or more shingles of 3. One letter changed takes away at
    most 3 and brings at most 3, so a copy is 27/33 = 0.82 alike or more, or 0.78 where 5 of the
    shingles are repeated: threshold 0.75 takes in all of them. Two of the others would need 7 of 8
    shingles in common at least, against 1,728 different shingles; that none does is seen by looking
    at all pairs. Each copy of similarity s shares a band with the probability 1 - (1 - s^7)^28, so
    that all ten do has a probability above 99 %, whatever the seed.
    """
    texts, copies, num_bands = trial()
    shingles = [{text[i : i + 3] for i in range(len(text) - 2)} for text in texts]
    similarity = [sets.jaccard(shingles[a], shingles[b]) for a, b in copies]
    all_found = math.prod(1 - (1 - s**7) ** num_bands for s in similarity)
    assert min(similarity) >= 0.75
    assert all_found > 0.99
    alike = {
        (a, b)
        for a, b in combinations(range(len(texts)), 2)
        if sets.jaccard(shingles[a], shingles[b]) >= 0.75
    }
    assert alike == set(copies)

    method = neardup.MinHash(
        tokens="chars", ngram=3, threshold=0.75, num_bands=num_bands, rows_per_band=7
    )
    pairs = neardup.find_pairs(texts, method=method).pairs
    assert (
        set(
            zip(
                *(map(int, pairs[side].to_pylist()) for side in ("left_id", "right_id")),
                strict=True,
            )
        )
        == alike
    )
    labels = [str(number) for number in range(1000)] + [str(number) for number, _ in copies]
    result = neardup.evaluate(table_of(texts, labels), method=method)
    assert result.at_threshold == Score(limit=0.75, found=10, correct=10, positives=10)
    assert (result.adjusted_rand, result.adjusted_rand_connected) == (1.0, 1.0)


# Labels as they come

TEXTS = [
    "one two three four five six",
    "one, two, three, four, five, six!",
    "seven",
    "eight nine ten",
    "...",
]


def expected_of(result: neardup.Evaluation) -> tuple:
    return counts(result.at_threshold), result.adjusted_rand, result.report["truth"]["documents"]


@pytest.mark.parametrize("kind", ["jsonl", "jsonl.gz", "csv", "tsv", "parquet", "arrow"])
@pytest.mark.parametrize(
    "labels", [["7", "7", "8", None, "7"], [7, 7, 8, None, 7]], ids=["text", "numbers"]
)
def test_labels_are_read_from_any_format_as_text_or_numbers(
    tmp_path: Path, kind: str, labels: list
) -> None:
    table = pa.table({"id": ["a", "b", "c", "d", "e"], "text": TEXTS, "topic": labels})
    path = tmp_path / f"labelled.{kind}"
    write(table, path)
    result = neardup.evaluate(path, label="topic")
    assert expected_of(result) == ((1, 1, 3), pytest.approx(1 / 3), 4)
    assert result.report["truth"] == {
        "label": "topic",
        "documents": 4,
        "labels": 2,
        "pairs": 6,
        "found_unknown": 0,
    }


def write(table: pa.Table, path: Path) -> None:
    rows = "".join(json.dumps(row) + "\n" for row in table.to_pylist()).encode()
    if path.name.endswith(".jsonl"):
        path.write_bytes(rows)
    elif path.name.endswith(".jsonl.gz"):
        path.write_bytes(gzip.compress(rows))
    elif path.suffix in (".csv", ".tsv"):
        pa_csv.write_csv(
            table, path, pa_csv.WriteOptions(delimiter="," if path.suffix == ".csv" else "\t")
        )
    elif path.suffix == ".arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    else:
        pq.write_table(table, path)


def test_labels_stay_with_their_documents_where_lines_cannot_be_read_and_in_several_files(
    tmp_path: Path,
) -> None:
    lines = [
        json.dumps({"text": text, "cluster": label})
        for text, label in zip(TEXTS, "xxyzz", strict=True)
    ]
    (tmp_path / "a.jsonl").write_text(
        "\n".join(["{broken", lines[2], lines[0], "[]", lines[3]]) + "\n"
    )
    (tmp_path / "b.jsonl").write_text(
        lines[4] + '\n{"text": "no label"}\n{"text": 5, "cluster": "x"}\n' + lines[1]
    )
    (tmp_path / "c.jsonl").write_text("")
    result = neardup.evaluate(
        [tmp_path / name for name in ("a.jsonl", "b.jsonl", "c.jsonl")], max_unreadable=1
    )
    assert counts(result.at_threshold) == (1, 1, 2)
    assert result.report["counts"]["rejected"] == len(result.report["rejected"]) == 3
    assert result.report["truth"]["documents"] == 5


def test_a_label_that_is_a_list_is_not_known(tmp_path: Path) -> None:
    lines = [json.dumps({"text": text, "cluster": "x"}) for text in TEXTS[:2]]
    (tmp_path / "a.jsonl").write_text(
        "\n".join([*lines, '{"text": "one two three four five six", "cluster": ["x"]}'])
    )
    result = neardup.evaluate(tmp_path / "a.jsonl")
    assert (counts(result.at_threshold), result.report["truth"]["found_unknown"]) == ((1, 1, 1), 2)


# Judged pairs

CORPUS = pa.table({"id": ["a", "b", "c", "007"], "text": [TEXTS[0], TEXTS[1], TEXTS[2], TEXTS[0]]})
JUDGED = [
    ("a", "b", True),
    ("c", "a", True),
    ("b", "007", False),
    ("c", "007", False),
    ("b", "a", True),
]


def judged(rows: Sequence[tuple] = JUDGED, name: str = "duplicate") -> pa.Table:
    left, right, same = zip(*rows, strict=True)
    return pa.table({"left_id": left, "right_id": right, name: same})


@pytest.mark.parametrize("kind", ["jsonl", "jsonl.gz", "csv", "tsv", "parquet", "arrow"])
@pytest.mark.parametrize(
    "kinds", [bool, str, *(pytest.param(kind, marks=pytest.mark.slow) for kind in (int, float))]
)
def test_only_judged_pairs_count_and_each_once(tmp_path: Path, kind: str, kinds: type) -> None:
    path = tmp_path / f"judged.{kind}"
    write(judged([(a, b, kinds(same)) for a, b, same in JUDGED]), path)
    result = neardup.evaluate(CORPUS, pairs=path)
    assert counts(result.at_threshold) == (2, 1, 2)
    assert (result.adjusted_rand, result.adjusted_rand_connected) == (None, None)
    assert result.report["truth"] == {
        "judged_by": str(path),
        "documents": 4,
        "absent_ids": 0,
        "absent_named": [],
        "pairs_lost": 0,
        "pairs": 4,
        "found_unknown": 1,
    }
    assert result.report["warnings"] == []
    assert result.by_length["positives"].to_pylist() == [1, 1, 0]


@pytest.mark.slow
@given(labelled(), st.data())
def test_judged_pairs_score_as_looking_at_each_of_them(case, data):
    texts, labels = case
    every = list(combinations(range(len(texts)), 2))
    assume(every)
    chosen = data.draw(st.lists(st.sampled_from(every), min_size=1, unique=True))
    same = {pair: data.draw(st.booleans()) for pair in chosen}
    pairs = judged([(str(a), str(b), value) for (a, b), value in same.items()])
    result = neardup.evaluate(table_of(texts, labels), pairs=pairs, method=CERTAIN)
    found = found_by(texts, CERTAIN)
    expected = evaluation.score(
        len(texts), lambda *pair: pair in found, lambda *pair: same.get(pair)
    )
    assert counts(result.at_threshold) == expected
    assert sum(result.by_length["positives"].to_pylist()) == expected[2]


def test_ids_that_the_corpus_does_not_have_are_counted_and_named():
    strangers = [(f"x{number}", "a", False) for number in range(7)] + [("b", "x0", True)]
    result = neardup.evaluate(CORPUS, pairs=judged([*JUDGED, *strangers]))
    assert counts(result.at_threshold) == (2, 1, 2)
    assert result.report["truth"]["absent_ids"] == 7
    assert result.report["truth"]["absent_named"] == [f"x{number}" for number in range(7)]
    assert result.report["truth"]["pairs_lost"] == 8
    assert result.report["warnings"] == [
        "pairs names 7 ids that the corpus does not have: 'x0', 'x1', 'x2', 'x3', 'x4' and 2 more. "
        "8 pairs with such an id counted for nothing."
    ]


@pytest.mark.parametrize("name", ["label", "sure"])
def test_a_verdict_that_is_null_counts_for_nothing_and_the_label_names_its_column(name):
    rows = [*JUDGED[:1], ("a", "c", None), (None, "c", True)]
    result = neardup.evaluate(
        CORPUS, pairs=judged(rows, name), label=None if name == "label" else name
    )
    assert (result.at_threshold.positives, result.report["truth"]["pairs"]) == (1, 1)


# Errors


def wrong(expected: type[Exception], said: str, **options) -> None:
    with pytest.raises(expected) as caught:
        neardup.evaluate(options.pop("source", CORPUS), **options)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_column_of_labels_lists_those_there_are():
    wrong(
        ColumnError,
        "No column 'cluster' in source: it has 'id', 'text'. Name the column of labels (label).",
    )
    wrong(
        ColumnError,
        "No column 'ids' in source: it has 'id', 'text'. Did you mean 'id'?",
        label="ids",
    )


def test_labels_that_are_all_null_or_empty_are_no_labels():
    said = "No document has a label: the column 'cluster' is null or empty in all 2 of them."
    wrong(InputError, said, source=table_of(["a", "b"], [None, ""]))


def test_a_column_of_lists_holds_no_labels():
    table = CORPUS.append_column("cluster", pa.array([["x"]] * 4))
    wrong(
        ColumnError,
        "which cannot be a label. Columns of strings or numbers: 'id', 'text'.",
        source=table,
    )


def test_plain_text_has_no_labels(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    wrong(ColumnError, "is plain text, which has no columns.", source=tmp_path / "a.txt")
    wrong(InputError, "is a text file, not a table.", pairs=tmp_path / "a.txt")


PAIR_ERRORS = {
    "no right_id": (
        pa.table({"left_id": ["a"], "label": [1]}),
        ColumnError,
        "No column 'right_id' in pairs: it has",
    ),
    "no verdict": (
        judged().drop_columns("duplicate"),
        ColumnError,
        "No column 'duplicate' or 'label' in pairs: it ha",
    ),
    "not a verdict": (
        judged([("a", "b", 1), ("a", "c", 3)]),
        InputError,
        "true or false, 1 or 0: got 3 in row 1.",
    ),
    "words": (
        judged([("a", "b", "yes")]),
        InputError,
        "true or false, 1 or 0: got 'yes' in row 0.",
    ),
    "one word": (
        judged([("a", "b", "True"), ("a", "c", "maybe")]),
        InputError,
        "true or false, 1 or 0: got 'maybe' in row 1.",
    ),
    "both ways": (
        judged([*JUDGED, ("a", "b", False)]),
        InputError,
        "judges 'a' and 'b' both as duplicates and as",
    ),
    "itself": (
        judged([("a", "a", True)]),
        InputError,
        "judges 'a' and 'a' although they are one document",
    ),
    "strangers": (
        judged([("x", "y", True)]),
        InputError,
        "pairs judges no pair of documents of the corpus: its 1",
    ),
    "nothing": (
        judged([("a", "b", None)]),
        InputError,
        "contains no judged pair: no row has a left_id",
    ),
    "bytes": (
        judged([(b"a", b"b\xff", True)]),
        InputError,
        "pairs cannot be read as judged pairs: the id is not valid UTF-8 in row 0.",
    ),
    "a verdict of bytes": (
        judged([("a", "b", b"\xff")]),
        InputError,
        "the verdict is not valid UTF-8 in row 0.",
    ),
    "no rows": (judged().slice(0, 0), InputError, "contains no judged pair: no row has a left_id"),
}


@pytest.mark.parametrize(("pairs", "kind", "said"), PAIR_ERRORS.values(), ids=PAIR_ERRORS)
def test_judged_pairs_that_cannot_be_used_say_why(pairs, kind, said):
    wrong(kind, said, pairs=pairs)


def test_a_named_column_of_verdicts_must_be_there():
    wrong(
        ColumnError,
        "No column 'sure' in pairs: it has 'left_id', 'right_id', 'duplicate'.",
        pairs=judged(),
        label="sure",
    )


def test_an_id_of_two_documents_names_neither():
    wrong(
        InputError,
        "The id 'a' belongs to two documents",
        source=pa.concat_tables([CORPUS, CORPUS]),
        pairs=judged(),
    )


@pytest.mark.parametrize("name", ["a.jsonl", "b.parquet", "c.csv", "d.arrow"])
def test_a_damaged_file_has_no_judged_pairs(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"left_id": "a\n\0\n')
    with pytest.raises(InputError):
        neardup.evaluate(CORPUS, pairs=tmp_path / name)


@pytest.mark.parametrize("name", ["a.jsonl.gz", "c.csv.gz", "c.csv.zst"])
def test_a_damaged_stream_has_no_judged_pairs(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(gzip.compress(b"left_id,right_id,duplicate\na,b,1\n")[:-4])
    wrong(InputError, f"{name} cannot be read as judged pairs: ", pairs=tmp_path / name)


def test_judged_pairs_have_each_id_once(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("left_id,left_id,right_id,duplicate\na,a,b,1\n")
    wrong(ColumnError, "No single column 'left_id' in ", pairs=tmp_path / "c.csv")


def test_judged_pairs_are_in_one_file(tmp_path: Path) -> None:
    for name in ("a.jsonl", "c.csv"):
        (tmp_path / name).touch()
    wrong(
        InputError,
        "Judged pairs must be in one file: got 2",
        pairs=[tmp_path / "a.jsonl", tmp_path / "c.csv"],
    )
