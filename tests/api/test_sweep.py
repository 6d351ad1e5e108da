"""A sweep counts what dedup removes at each of several thresholds, and shows examples on both sides
of each.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

import neardup
from neardup.cli.main import cli
from neardup.cli.sweep import parse_thresholds
from neardup.errors import SettingError

TEXT = "a long text of which the end differs more and more from that of the first one"
WORDS = [*TEXT.split(" ")]
TEXTS = [
    " ".join([*WORDS[: len(WORDS) - i], *(f"other{i}" for _ in range(i))]) for i in range(0, 8, 2)
]
TEXTS += [TEXTS[0].upper(), "something else altogether that nobody has said"]


def test_the_counts_are_those_of_dedup() -> None:
    limits = [0.9, 0.3, 0.6]
    result = neardup.sweep(TEXTS, thresholds=limits, method=neardup.MinHash(ngram=2))
    assert result.counts["threshold"].to_pylist() == sorted(limits)
    for row in result.counts.to_pylist():
        counts = neardup.dedup(
            TEXTS, method=neardup.MinHash(ngram=2, threshold=row["threshold"])
        ).report["counts"]
        assert (row["kept"], row["removed"], row["removed_exact"]) == (
            counts["kept"],
            counts["removed"],
            counts["removed_exact"],
        )


SETTINGS = {
    "jaccard": neardup.MinHash(ngram=2),
    "bands": neardup.MinHash(ngram=2, num_bands=20, rows_per_band=3),
    "containment": neardup.MinHash(ngram=2, similarity="containment"),
    "cosine of rare words": neardup.MinHash(ngram=2, similarity="cosine", boost_rare=True),
}


@pytest.mark.parametrize("keep", ["shortest", pytest.param("first", marks=pytest.mark.slow)])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_one_reading_gives_the_rows_of_a_run_at_each_threshold(settings, keep, real_texts) -> None:
    texts = [*real_texts("en_licenses", 200_000), *TEXTS]
    table = pa.table({"text": texts, "group": [str(number % 2) for number in range(len(texts))]})
    options = {"keep": keep, "within": "group"}
    limits = [0.4, 0.6, 0.65, 0.9, 1.0]
    result = neardup.sweep(table, thresholds=limits, method=settings, **options)
    runs = [
        neardup.dedup(table, method=replace(settings, threshold=limit), **options)
        for limit in limits
    ]
    counts = [run.report["counts"] for run in runs]
    assert [
        [row[name] for name in ("kept", "removed", "removed_exact")]
        for row in result.counts.to_pylist()
    ] == [[count[name] for name in ("kept", "removed", "removed_exact")] for count in counts]
    removed = {
        limit: {(row["id"], row["kept_id"], row["similarity"]) for row in run.removed.to_pylist()}
        for limit, run in zip(limits, runs, strict=True)
    }
    shown = [example for example in result.examples if example.removed_at is not None]
    assert len(shown) > 3
    for example in shown:
        assert (example.id, example.kept_id, example.similarity) in removed[example.removed_at]


def test_an_example_goes_at_its_threshold_and_stays_at_the_next() -> None:
    result = neardup.sweep(TEXTS, thresholds=[0.3, 0.6], method=neardup.MinHash(ngram=2))
    assert result.examples
    for example in result.examples:
        assert example.removed_at is None or example.similarity >= example.removed_at
        assert example.kept_at is None or example.similarity < example.kept_at
        assert example.pair.left == TEXTS[int(example.id)]
        assert example.pair.right == TEXTS[int(example.kept_id)]


def test_the_closest_miss_of_the_first_threshold_is_shown() -> None:
    texts = ["one two three four five six seven eight", "one two three four five six seven nine"]
    (example,) = neardup.sweep(
        texts, thresholds=[0.61], method=neardup.MinHash(recall=0.999)
    ).examples
    assert (example.removed_at, example.kept_at, round(example.similarity, 2)) == (None, 0.61, 0.6)


def test_the_command_prints_counts_and_differences(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    command = ["sweep", "in.txt", "--thresholds", "0.3,0.6", "--ngram", "2"]
    report = json.loads(CliRunner().invoke(cli, [*command, "--json"]).stdout)
    library = neardup.sweep("in.txt", thresholds=[0.3, 0.6], method=neardup.MinHash(ngram=2))
    assert report["thresholds"] == library.report["thresholds"]
    shown = CliRunner().invoke(cli, command)
    assert shown.exit_code == 0, shown.output
    assert "removed at 0.3, kept at 0.6" in shown.stdout
    assert "[-other" in shown.stdout


def test_the_command_names_the_documents_and_says_that_only_the_beginning_of_long_ones_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [f"word{i}" for i in range(1000)]
    Path("in.txt").write_text(f"{' '.join(words)}\n{' '.join(words[:950])}\n")
    shown = CliRunner().invoke(cli, ["sweep", "in.txt", "--thresholds", "0.8"]).stdout
    assert (
        "only the beginning of each is compared here.\n- 1\n+ 0 (kept)\n  No passage differs."
        in shown
    )


def test_thresholds_are_a_range_or_a_list() -> None:
    assert parse_thresholds("0.5..0.65") == [0.5, 0.55, 0.6, 0.65]
    assert parse_thresholds("0.7") == [0.7]


@pytest.mark.parametrize("wrong", ["0.5...0.6", "0.8..0.6", "many", ""])
def test_thresholds_that_are_neither_a_range_nor_a_list_are_refused(wrong: str) -> None:
    with pytest.raises(SettingError, match=r"must be a range or numbers separated by commas"):
        parse_thresholds(wrong)


@pytest.mark.parametrize("limits", [[], [0], [1.5]], ids=["none", "zero", "above one"])
def test_thresholds_out_of_their_range_are_refused(limits: list[float]) -> None:
    with pytest.raises(
        SettingError, match=r"thresholds must be 1 to 50 numbers above 0 and at most 1"
    ):
        neardup.sweep(["a"], thresholds=limits)


def test_a_method_without_bands_is_not_swept() -> None:
    with pytest.raises(SettingError, match="method must be one of minhash, "):
        neardup.sweep(["a"], method="simhash")


def test_a_range_has_its_start_its_steps_and_its_end():
    assert parse_thresholds("0.5..0.52") == [0.5, 0.52]
    assert parse_thresholds("0.5..0.72") == [0.5, 0.55, 0.6, 0.65, 0.7, 0.72]
    assert parse_thresholds("0.8..0.9") == [0.8, 0.85, 0.9]
    assert parse_thresholds("0.99999..1") == [0.99999, 1.0]
    assert parse_thresholds("0.5..0.50000001") == [0.5, 0.50000001]


def test_the_lowest_threshold_may_be_the_lowest_that_bands_can_find():
    swept = neardup.sweep(
        ["a b c d e f"] * 3, method=neardup.method(noise=0.1), thresholds=[0.1, 0.2]
    )
    assert swept.counts["removed"].to_pylist() == [2, 2]


@pytest.mark.slow
def test_the_suggestion_compares_within_a_column_as_the_counts_do():
    texts = [
        f"{place} word{place} text{place} of the same {place} group number{place} here"
        for place in range(40)
    ]
    table = pa.table(
        {"text": [f"{text} {lang}" for text in texts for lang in "ab"], "lang": list("ab") * 40}
    )
    assert neardup.sweep(table).suggestion.levels[0].documents == 80
    assert not neardup.sweep(table, within="lang").suggestion.levels


@pytest.mark.parametrize("thresholds", [[10**400], [True], "1", ["0.5"], [0.5, float("nan"), 0.9]])
def test_thresholds_are_numbers(thresholds):
    with pytest.raises(SettingError, match="thresholds must be "):
        neardup.sweep(["a"], thresholds=thresholds)
