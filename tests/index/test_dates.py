"""An index that tracks dates gives those that `dedup` gives, after any split into increments."""

from __future__ import annotations

import datetime as dt
import itertools
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import neardup
from neardup.cli.main import cli
from neardup.errors import ColumnError, SettingError
from neardup.index.sources import converted, origins_of

WORDS = [f"word{number}" for number in range(12)]
TEXT = " ".join(WORDS)
CENTRES = [" ".join(f"{word}{centre}" for word in WORDS) for centre in "abc"]
METHOD = neardup.MinHash(ngram=2, threshold=0.5)
COLUMNS = ("sources", "num_sources", "first_date", "last_date")


def text_of(centre: int, word: int) -> str:
    """Return a text near the one of a centre: one of its words is another."""
    return CENTRES[centre].replace(f"{WORDS[word]}{'abc'[centre]}", f"x{word}")


DAYS = st.sampled_from(["2024-02-30", "2023-01-01", "2023-01-01 00:00:00", "2020", "", "x", None])
"""Days that do not exist, one moment in two spellings, a number, and values that are no date."""
DRAWS = st.lists(
    st.tuples(
        *(st.integers(0, 2), st.integers(0, 3), st.integers(0, 1)),
        st.sampled_from(["c4", "hplt", "a\x1fb", "", None]),
        st.one_of(DAYS, st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1)).map(str)),
    ),
    min_size=1,
    max_size=24,
)
DISTINCT = DRAWS.map(lambda draws: list({draw[:3]: draw for draw in draws}.values()))
CUTS = st.lists(st.integers(0, 24), max_size=5)


def table_of(draws: list[tuple]) -> pa.Table:
    """Return documents. Equal numbers are a document that is sent again."""
    return pa.table(
        {
            "id": [f"{centre}-{word}-{copy}" for centre, word, copy, *_ in draws],
            "text": [text_of(centre, word) for centre, word, *_ in draws],
            "from": pa.array([source for *_, source, _ in draws], pa.string()),
            "day": pa.array([day for *_, day in draws], pa.string()),
        }
    )


def increments(table: pa.Table, cuts: list[int]) -> list[pa.Table]:
    limits = sorted({0, len(table), *(min(cut, len(table)) for cut in cuts)})
    return [table.slice(low, high - low) for low, high in itertools.pairwise(limits)]


def tracking(address: str = "memory:") -> neardup.Index:
    return neardup.Index.create(address, method=METHOD, track_dates=True)


def exported(index: neardup.Index) -> dict[str, tuple]:
    """Return the tracked columns of the kept documents by id."""
    rows = pa.concat_tables(index.documents()).to_pylist()
    return {row["id"]: tuple(row[name] for name in COLUMNS) for row in rows if row["kept"]}


def batch_rows(table: pa.Table) -> dict[str, tuple]:
    """Return the columns that `dedup` adds, by id."""
    kept = neardup.dedup(table, method=METHOD, sources="from", dates="day").kept
    names = ("sources", "num_sources", "first_seen", "last_seen")
    return {row["id"]: tuple(row[name] for name in names) for row in kept.to_pylist()}


@pytest.mark.parametrize("address", ["memory:", pytest.param("folder", marks=pytest.mark.slow)])
@settings(deadline=None, max_examples=10)
@given(draws=DISTINCT, cuts=CUTS)
def test_the_export_has_the_dates_of_a_batch_after_any_split(
    address: str, draws: list, cuts: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    table = table_of(draws)
    place = "memory:" if address == "memory:" else str(tmp_path_factory.mktemp("index") / "a")
    index = tracking(place)
    for part in increments(table, cuts):
        index.add_many_if_new(part, sources="from", dates="day")
        if address == "folder":  # what was answered survives the process
            index.close()
            index = neardup.Index.open(place)
    assert exported(index) == batch_rows(table)
    index.close()


@pytest.mark.slow
@settings(deadline=None, max_examples=15)
@given(draws=DRAWS, cuts=CUTS)
def test_documents_that_are_sent_again_count_for_the_document_of_their_first_answer(
    draws: list, cuts: list[int]
) -> None:
    table = table_of(draws)
    index = tracking()
    answers = [
        index.add_many_if_new(part, sources="from", dates="day") for part in increments(table, cuts)
    ]
    found = pa.concat_tables(answers).to_pylist()
    keepers = [row["kept_id"] or row["id"] for row in found]
    for number, answer in enumerate(found):
        # Brute force: a run over the documents of the keeper up to this one, each a copy.
        members = [row for row in range(number + 1) if keepers[row] == keepers[number]]
        copies = table.take(members).drop_columns(["id", "text"])
        copies = copies.append_column("text", pa.array([TEXT] * len(members)))
        (row,) = neardup.dedup(copies, sources="from", dates="day").kept.to_pylist()
        expected = tuple(
            row[name] for name in ("sources", "num_sources", "first_seen", "last_seen")
        )
        assert tuple(answer[name] for name in COLUMNS) == expected
    # The last answer about a kept document is what the export has.
    last = dict(zip(keepers, found, strict=True))
    assert exported(index) == {id: tuple(row[name] for name in COLUMNS) for id, row in last.items()}


@pytest.mark.parametrize(
    ("dates", "expected"),
    [
        (pa.array([dt.date(2024, 5, 1), dt.date(2023, 5, 1)]), ("2023-05-01", "2024-05-01")),
        (pa.array([9, 10]), ("9", "10")),
        (pa.array([1.5, float("nan")]), ("1.5", "1.5")),
        (
            pa.array([dt.datetime(2024, 1, 1, 2), dt.datetime(2024, 1, 1, 10)]),
            ("2024-01-01 02:00:00.000000", "2024-01-01 10:00:00.000000"),
        ),
        (pa.array(["2024-06-01T00:00:00Z", "2024-05-31"]), ("2024-05-31", "2024-06-01T00:00:00Z")),
        (pa.array([None, None], pa.string()), (None, None)),
    ],
    ids=["dates", "integers", "floats", "times", "strings", "none"],
)
def test_dates_are_compared_as_their_kind_and_are_strings(dates, expected) -> None:
    index = tracking()
    table = pa.table({"id": ["a", "b"], "text": [TEXT, TEXT], "day": dates})
    (answer,) = index.add_many_if_new(table, dates="day").to_pylist()[1:]
    assert (answer["first_date"], answer["last_date"]) == expected
    assert exported(index)["a"] == ([], 0, *expected)


def test_a_column_that_has_neither_dates_nor_numbers_is_refused() -> None:
    table = pa.table({"text": [TEXT], "day": [["2024"]]})
    with pytest.raises(ColumnError, match="day"):
        tracking().add_many_if_new(table, dates="day")


def test_an_index_without_dates_refuses_them() -> None:
    table = pa.table({"id": ["a"], "text": [TEXT], "day": ["2024-01-01"]})
    for index in (
        neardup.Index.create("memory:"),
        neardup.Index.create("memory:", track_sources=True),
    ):
        with pytest.raises(SettingError, match="Create an index with track_dates"):
            index.add_many_if_new(table, dates="day")
        assert "first_date" not in index.add_many_if_new(table).column_names
    assert tracking().info()["format_version"] == 4


def dated(*days: str) -> neardup.Index:
    index = tracking()
    ids = [f"{number}" for number in range(len(days))]
    table = pa.table({"id": ids, "text": [TEXT] * len(days), "day": list(days)})
    index.add_many_if_new(table, dates="day")
    return index


def test_dates_follow_what_is_forgotten_rebuilt_and_imported(tmp_path: Path) -> None:
    index = dated("2024-02-01", "2024-01-01", "2024-03-01")
    index.compact()
    rebuilt = index.rebuild(tmp_path / "b", method=neardup.MinHash(ngram=2, threshold=0.6))
    assert exported(rebuilt)["0"][2:] == ("2024-01-01", "2024-03-01")
    rebuilt.close()
    index.remove("1")
    assert exported(index)["0"][2:] == ("2024-02-01", "2024-03-01")
    index.open_import("monday")
    staged = pa.table({"id": ["9"], "text": [TEXT], "day": ["2020-01-01"]})
    index.stage("monday", staged, dates="day")
    assert exported(index)["0"][2:] == ("2024-02-01", "2024-03-01")
    index.commit_import("monday")
    assert exported(index)["0"][2:] == ("2020-01-01", "2024-03-01")


@pytest.mark.parametrize("dates", [(True, False), (False, True), (True, True)])
def test_indexes_merge_the_origins_that_both_track(dates: tuple[bool, bool]) -> None:
    table = pa.table({"id": ["a"], "text": [TEXT], "from": ["c4"], "day": ["2024-01-01"]})
    indexes = [
        neardup.Index.create("memory:", method=METHOD, track_sources=True, track_dates=has_dates)
        for has_dates in dates
    ]
    options = {"sources": "from"} | ({"dates": "day"} if dates[0] else {})
    indexes[0].add_many_if_new(table, **options)
    indexes[1].merge(indexes[0])
    (row,) = pa.concat_tables(indexes[1].documents()).to_pylist()
    assert row["sources"] == ["c4"]
    if dates[1]:
        assert row["first_date"] == ("2024-01-01" if dates[0] else None)


def test_origins_are_cut_into_the_parts_that_they_were_made_of() -> None:
    sources = pa.array(["c4", "a\x1fb", None, "x", "y"], pa.large_string())
    days = pa.array(["2024-01-01", None, "no day", "7", "8\x1f"], pa.large_string())
    origins = origins_of(sources, days, 5)
    assert origins.to_pylist() == ["c4\x1f2024-01-01", "a\x1fb\x1f", None, "x\x1f7", "y\x1f8"]
    assert converted(origins, dated=True, to_dated=False).equals(sources)


def test_runs_that_update_an_index_store_the_dates_of_their_documents() -> None:
    index = tracking()
    for days in (["2024-02-01", "2024-01-01"], ["2024-03-01"]):
        ids = [f"{day}" for day in days]
        table = pa.table({"id": ids, "text": [TEXT] * len(days), "day": days, "from": days})
        options = {"sources": "from", "dates": "day", "id_column": "id"}
        neardup.dedup(table, against=index, update=True, **options)
    assert exported(index)["2024-02-01"][2:] == ("2024-01-01", "2024-03-01")


def test_the_command_line_tracks_dates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    days = ["2024-02-01", "2024-01-01"]
    pq.write_table(pa.table({"id": ["a", "b"], "text": [TEXT] * 2, "day": days}), "in.parquet")
    for command in (
        ["create", "i", "--track-dates"],
        ["add-if-new", "i", "in.parquet", "--dates", "day", "--answers", "a.parquet"],
        ["export", "i", "-o", "out.parquet"],
    ):
        done = CliRunner().invoke(cli, ["index", *command])
        assert done.exit_code == 0, done.output
    answers = pq.read_table("a.parquet")
    assert answers["first_date"].to_pylist() == ["2024-02-01", "2024-01-01"]
    out = pq.read_table("out.parquet")
    assert out["first_date"].to_pylist() == ["2024-01-01", None]
    assert out["last_date"].to_pylist() == ["2024-02-01", None]


def test_a_line_of_a_stream_has_its_date_in_a_field() -> None:
    index = dated("2024-02-01")
    days: list[object] = ["2024-01-01", 2025, None, "", []]
    lines = [
        json.dumps({"id": f"{number}-", "text": TEXT, "meta": {"day": day}}).encode()
        for number, day in enumerate(days)
    ]
    (answers,) = index.answer_lines([lines], dates="meta.day")
    found = [answer.get("first_date") for _, answer in answers]
    assert found[0] == "2024-01-01"
    assert answers[4][1]["error"] == "'meta.day' is a list, not a string or a number"
