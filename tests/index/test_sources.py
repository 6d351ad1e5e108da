"""An index that tracks sources gives those that `dedup` gives, after any split into increments."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import neardup
from neardup.cli.main import cli
from neardup.errors import InputError, OutputError, SettingError
from neardup.index.sources import entries_of

WORDS = [f"word{number}" for number in range(12)]
CENTRES = [" ".join(f"{word}{centre}" for word in WORDS) for centre in "abcd"]
METHODS = {
    "minhash": neardup.MinHash(ngram=2, threshold=0.5),
    "simhash": neardup.SimHash(max_distance=6),
}


def table_of(draws: list[tuple[int, int, int, str | None]]) -> pa.Table:
    """Return documents near a few texts. draws : the text, the number of its changed word, the
    number of the copy, and the source of each. Equal numbers are a document that is sent again.
    """
    return pa.table(
        {
            "id": [f"{centre}-{word}-{copy}" for centre, word, copy, _ in draws],
            "text": [
                CENTRES[centre].replace(f"{WORDS[word]}{'abcd'[centre]}", f"x{word}")
                for centre, word, *_ in draws
            ],
            "from": pa.array([source for *_, source in draws], pa.string()),
        }
    )


SOURCES = st.sampled_from(["c4", "hplt", "é", "", None])
DRAWS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 1), SOURCES),
    min_size=1,
    max_size=30,
)
DISTINCT = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 11), st.integers(0, 1), SOURCES),
    min_size=1,
    max_size=30,
    unique_by=lambda draw: draw[:3],
)
CUTS = st.lists(st.integers(0, 30), max_size=6)


def increments(table: pa.Table, cuts: list[int]) -> list[pa.Table]:
    limits = sorted({0, len(table), *(min(cut, len(table)) for cut in cuts)})
    return [table.slice(low, high - low) for low, high in itertools.pairwise(limits)]


def rows_of(tables: list[pa.Table]) -> dict[str, tuple[list[str] | None, int | None]]:
    """Return sources and their number of each document, by id."""
    return {
        row["id"]: (row["sources"], row["num_sources"])
        for table in tables
        for row in table.to_pylist()
    }


def batch_rows(table: pa.Table, method: neardup.MinHash | neardup.SimHash) -> dict[str, tuple]:
    return rows_of([neardup.dedup(table, method=method, sources="from").kept])


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("address", ["memory:", pytest.param("folder", marks=pytest.mark.slow)])
@settings(deadline=None)
@given(draws=DISTINCT, cuts=CUTS)
def test_the_export_has_the_sources_of_a_batch_after_any_split(
    name: str, address: str, draws: list, cuts: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    table = table_of(draws)
    place = "memory:" if address == "memory:" else str(tmp_path_factory.mktemp("index") / "a")
    index = neardup.Index.create(place, method=METHODS[name], track_sources=True)
    for part in increments(table, cuts):
        index.add_many_if_new(part, sources="from")
        if address == "folder":  # what was answered survives the process
            index.close()
            index = neardup.Index.open(place)
    exported = [documents.filter(documents["kept"]) for documents in index.documents()]
    assert rows_of(exported) == batch_rows(table, METHODS[name])
    index.close()


def counted_rows(table: pa.Table, index: neardup.Index) -> dict[str, tuple]:
    """Return the sources of kept documents, counted one document after the other: a document that
    was sent several times has the kept document of its first answer.
    """
    stored = pa.concat_tables(index.documents()).to_pylist()
    keeper_of = {row["id"]: row["kept_id"] or row["id"] for row in stored}
    sources: dict[str, set[str]] = {row["id"]: set() for row in stored if row["kept"]}
    for row in table.to_pylist():
        if row["from"]:
            sources[keeper_of[row["id"]]].add(row["from"])
    return {id: (sorted(found, key=str.encode), len(found)) for id, found in sources.items()}


@pytest.mark.parametrize("name", METHODS)
@settings(deadline=None)
@given(draws=DRAWS, cuts=CUTS)
def test_the_export_counts_documents_that_are_sent_again(
    name: str, draws: list, cuts: list[int]
) -> None:
    table = table_of(draws)
    index = neardup.Index.create("memory:", method=METHODS[name], track_sources=True)
    for part in increments(table, cuts):
        index.add_many_if_new(part, sources="from")
    exported = [documents.filter(documents["kept"]) for documents in index.documents()]
    assert rows_of(exported) == counted_rows(table, index)


@pytest.mark.parametrize("name", METHODS)
@settings(deadline=None)
@given(draws=DRAWS, cuts=CUTS)
def test_an_answer_has_the_sources_of_a_batch_of_the_documents_so_far(
    name: str, draws: list, cuts: list[int]
) -> None:
    table = table_of(draws)
    index = neardup.Index.create("memory:", method=METHODS[name], track_sources=True)
    answers = [index.add_many_if_new(part, sources="from") for part in increments(table, cuts)]
    found = pa.concat_tables(answers).to_pylist()
    # The keeper of each document, as the answers name it, and the sources up to the document.
    for number, answer in enumerate(found):
        keeper = answer["kept_id"] or answer["id"]
        members = [
            row["from"]
            for row, other in zip(table.to_pylist()[: number + 1], found, strict=False)
            if (other["kept_id"] or other["id"]) == keeper
        ]
        expected = sorted({member for member in members if member}, key=str.encode)
        assert (answer["sources"], answer["num_sources"]) == (expected, len(expected))


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
@settings(deadline=None, max_examples=8)
@given(draws=DRAWS, cuts=CUTS)
def test_runs_that_update_an_index_leave_the_sources_of_all_documents(
    name: str, draws: list, cuts: list[int]
) -> None:
    table = table_of(draws)
    index = neardup.Index.create("memory:", method=METHODS[name], track_sources=True)
    kept = []
    before: dict[str, list[str] | None] = {}
    for part in increments(table, cuts):
        found = neardup.dedup(part, against=index, update=True, sources="from", id_column="id")
        kept.append(found.kept)
        # As of the end of the run, for the documents that are new.
        of_run = {id: row[0] for id, row in rows_of([found.kept]).items() if id not in before}
        now = sources_now(index)
        assert of_run.items() <= now.items()
        before = now
    exported = [documents.filter(documents["kept"]) for documents in index.documents()]
    assert rows_of(exported) == counted_rows(table, index)
    assert {row["id"] for part in kept for row in part.to_pylist()} == rows_of(exported).keys()


@pytest.mark.filterwarnings("ignore:.*enter it without a source")
def test_a_run_without_sources_warns_that_the_index_tracks_them() -> None:
    index = tracking(("a", TEXT, "c4"))
    table = pa.table({"id": ["b"], "text": [TEXT]})
    found = neardup.dedup(table, against=index, update=True)
    assert "--sources" in found.report["warnings"][0]
    assert sources_now(index) == {"a": ["c4"], "b": None}
    # It enters no index, or one that tracks nothing.
    assert not neardup.dedup(table, against=index).report["warnings"]
    plain = neardup.Index.create("memory:", method=METHODS["minhash"])
    assert not neardup.dedup(table, against=plain, update=True).report["warnings"]


def test_a_run_stores_the_names_of_its_inputs_beside_dates(tmp_path: Path) -> None:
    for name in ("c4", "hplt"):
        (tmp_path / name).mkdir()
        columns = {"id": [name], "text": [TEXT], "date": ["2026-01-01"], "from": ["x"]}
        pq.write_table(pa.table(columns), tmp_path / name / "a.parquet")
    inputs = [str(tmp_path / "c4"), str(tmp_path / "hplt")]
    for sources, expected in (("input", inputs), ("from", ["x"])):
        index = neardup.Index.create("memory:", method=METHODS["minhash"], track_sources=True)
        options = {"update": True, "sources": sources, "dates": "date"}
        kept = neardup.dedup(inputs, against=index, **options).kept
        assert kept["sources"].to_pylist() == [expected]
        assert sources_now(index) == {"c4": expected, "hplt": None}


def sources_now(index: neardup.Index) -> dict[str, list[str] | None]:
    return {row["id"]: row["sources"] for table in index.documents() for row in table.to_pylist()}


TEXT = CENTRES[0]


def tracking(*documents: tuple[str, str, str]) -> neardup.Index:
    """Return an index of documents: id, text and source."""
    index = neardup.Index.create("memory:", method=METHODS["minhash"], track_sources=True)
    columns = dict(
        zip(("id", "text", "from"), map(list, zip(*documents, strict=True)), strict=True)
    )
    index.add_many_if_new(pa.table(columns), sources="from")
    return index


@pytest.mark.parametrize("id", ["a", "b"], ids=["kept", "removed"])
def test_a_document_that_is_sent_again_brings_a_new_source_once(id: str) -> None:
    index = tracking(("a", TEXT, "c4"), ("b", TEXT, "hplt"))
    again = pa.table({"id": [id] * 3, "text": [TEXT] * 3, "from": ["hplt", "x", "x"]})
    for _ in range(2):
        answers = index.add_many_if_new(again, sources="from")
        assert answers["repeated"].to_pylist() == [True] * 3
        assert answers["sources"].to_pylist()[1:] == [["c4", "hplt", "x"]] * 2
    # The new source is that of a removed copy, which has an id of its own.
    copy = pa.concat_tables(index.documents())
    assert copy["kept"].to_pylist() == [True, False, False]
    assert copy["kept_id"].to_pylist() == [None, "a", "a"]
    assert copy["id"].to_pylist()[2].startswith("#")
    assert copy["sources"].to_pylist() == [["c4", "hplt", "x"], None, None]
    assert index.verify() == []


def test_an_import_that_is_removed_takes_away_the_sources_that_it_brought() -> None:
    index = tracking(("a", TEXT, "c4"))
    again = pa.table({"id": ["a"], "text": [TEXT], "from": ["hplt"]})
    index.add_many_if_new(again, sources="from", import_name="monday")
    assert sources_now(index)["a"] == ["c4", "hplt"]
    assert index.remove_import("monday") == 1
    assert sources_now(index) == {"a": ["c4"]}


def test_a_forgotten_document_takes_its_source_away() -> None:
    index = tracking(("a", TEXT, "c4"), ("b", TEXT, "hplt"), ("c", TEXT, "web"))
    index.remove("b")
    assert sources_now(index) == {"a": ["c4", "web"], "c": None}
    (answer,) = index.add_many_if_new(pa.table({"id": ["d"], "text": [TEXT]})).to_pylist()
    assert answer["sources"] == ["c4", "web"]


def test_sources_survive_compaction_and_a_rebuild(tmp_path: Path) -> None:
    index = tracking(
        ("a", TEXT, "c4"), ("x", CENTRES[1], "y"), ("b", TEXT, "hplt"), ("c", TEXT, "c4")
    )
    index.remove("x")
    index.compact()
    rebuilt = index.rebuild(tmp_path / "b", method=neardup.MinHash(ngram=2, threshold=0.6))
    for each in (index, rebuilt):
        (answer,) = each.add_many_if_new(pa.table({"id": ["d"], "text": [TEXT]})).to_pylist()
        assert answer["sources"] == ["c4", "hplt"]
        assert each.verify() == []
    rebuilt.close()


def test_an_import_brings_its_sources_once_it_is_committed() -> None:
    index = tracking(("a", TEXT, "c4"))
    index.open_import("monday")
    index.stage("monday", pa.table({"id": ["b"], "text": [TEXT], "from": ["hplt"]}), sources="from")
    assert sources_now(index) == {"a": ["c4"]}
    assert index.commit_import("monday")["sources"].to_pylist() == [["c4", "hplt"]]


def test_inputs_are_sources_by_the_names_they_were_given(tmp_path: Path) -> None:
    for name in ("c4", "hplt"):
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"id": [name], "text": [TEXT]}), tmp_path / name / "a.parquet")
    inputs = [str(tmp_path / "c4"), str(tmp_path / "hplt/a.parquet")]
    address = str(tmp_path / "i")
    run = CliRunner().invoke(cli, ["index", "create", address, "--track-sources"])
    assert run.exit_code == 0, run.output
    answers = str(tmp_path / "answers.jsonl")
    command = ["index", "add-if-new", address, *inputs, "--sources", "input", "--answers", answers]
    run = CliRunner().invoke(cli, command)
    assert run.exit_code == 0, run.output
    exported = str(tmp_path / "out.parquet")
    assert CliRunner().invoke(cli, ["index", "export", address, "-o", exported]).exit_code == 0
    assert pq.read_table(exported)["sources"].to_pylist() == [sorted(inputs), None]
    assert '"num_sources": 2' in Path(answers).read_text().replace('":2', '": 2')


def test_another_index_has_neither_columns_nor_a_table_of_sources() -> None:
    index = neardup.Index.create("memory:", method=METHODS["minhash"])
    tracked = tracking(("a", TEXT, "c4"))
    table = pa.table({"id": ["a"], "text": [TEXT]})
    assert "sources" not in index.add_many_if_new(table).column_names
    assert all("sources" not in documents.column_names for documents in index.documents())
    stored = index.opened.store.settings
    assert "source" not in stored.schema.names
    assert "track_sources" not in stored.meta["index"]
    assert (stored.meta["format_version"], tracked.info()["format_version"]) == (2, 3)
    assert len(tracked.opened.store.settings.layout.prefix_bits) == 1 + len(
        stored.layout.prefix_bits
    )
    with pytest.raises(
        SettingError, match=r"does not store it. Create an index with track_sources"
    ):
        index.add_many_if_new(table, sources="text")


def test_a_single_text_has_a_source() -> None:
    index = neardup.Index.create("memory:", method=METHODS["minhash"], track_sources=True)
    kept = index.add_if_new(TEXT, id="a", source="hplt")
    removed = index.add_if_new(TEXT, id="b", source="c4")
    assert (kept.sources, kept.num_sources) == (["hplt"], 1)
    assert (removed.sources, removed.num_sources) == (["c4", "hplt"], 2)
    assert index.add(TEXT, id="c", source="").sources == []
    assert sources_now(index) == {"a": ["c4", "hplt"], "b": None, "c": []}
    plain = neardup.Index.create("memory:", method=METHODS["minhash"])
    answer = plain.add_if_new(TEXT)
    assert (answer.sources, answer.num_sources) == (None, None)
    with pytest.raises(SettingError, match="source is where the document comes from: got 'c4'"):
        plain.add_if_new(TEXT, source="c4")
    with pytest.raises(InputError, match="source"):
        index.add_if_new(TEXT, source=7)  # type: ignore[arg-type]


def test_a_single_text_has_a_date() -> None:
    index = neardup.Index.create("memory:", method=METHODS["minhash"], track_dates=True)
    dates = ["2026-05-02", "2026-05-01T12:00:00Z", "", None]
    answers = [
        index.add_if_new(TEXT, id=str(number), source="c4", date=date)
        for number, date in enumerate(dates)
    ]
    assert [(answer.first_date, answer.last_date) for answer in answers] == [
        ("2026-05-02", "2026-05-02"),
        *[("2026-05-01T12:00:00Z", "2026-05-02")] * 3,
    ]
    assert index.add(TEXT, id="1999", date="1999").last_date == "1999"
    for date in ("yesterday", " ", 2026):
        with pytest.raises(InputError, match="date"):
            index.add_if_new(TEXT, date=date)  # type: ignore[arg-type]
    without = neardup.Index.create("memory:", method=METHODS["minhash"], track_sources=True)
    with pytest.raises(SettingError, match="The date is the date of the document: got '2026'"):
        without.add(TEXT, date="2026")


def test_a_line_of_a_stream_has_its_source_in_a_field() -> None:
    index = neardup.Index.create("memory:", method=METHODS["minhash"], track_sources=True)
    sources: list[object] = ["c4", 7, None, "", [], True]
    lines = [
        json.dumps({"id": str(number), "text": TEXT, "meta": {"from": source}}).encode()
        for number, source in enumerate(sources)
    ]
    [answered] = index.answer_lines([lines], sources="meta.from")
    answers = [answer for _, answer in answered]
    expected = [["c4"], ["7", "c4"], ["7", "c4"], ["7", "c4"], None, None]
    assert [answer.get("sources") for answer in answers] == expected
    assert [answer["error"] for answer in answers if "error" in answer] == [
        "'meta.from' is a list, not a string or a number",
        "'meta.from' is a boolean, not a string or a number",
    ]
    with pytest.raises(SettingError, match="names a field of lines"):
        index.answer_lines([lines], sources="input")
    plain = neardup.Index.create("memory:", method=METHODS["minhash"])
    with pytest.raises(SettingError, match="does not store it"):
        plain.answer_lines([lines], sources="meta.from")


def test_files_are_staged_with_their_sources(tmp_path: Path) -> None:
    index = tracking(("a", TEXT, "c4"))
    for number, source in enumerate(["hplt", None]):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table({"id": [f"b{number}"], "text": [TEXT]}), path)
        if not number:
            index.open_import("monday")
        index.stage_files("monday", path, sources=None if source is None else "input")
    index.commit_import("monday")
    assert sources_now(index) == {
        "a": sorted(["c4", str(tmp_path / "0.parquet")]),
        "b0": None,
        "b1": None,
    }


@pytest.mark.parametrize("name", ["out.csv", "out.CSV"])
def test_lists_of_sources_need_a_format_with_lists(tmp_path: Path, name: str) -> None:
    index = tracking(("a", TEXT, "c4"))
    with pytest.raises(OutputError, match=f"CSV has no lists.*{name}"):
        index.export(tmp_path / name)


def test_each_source_of_a_document_is_listed_once() -> None:
    index = tracking(*((f"d{number}", TEXT, ["c4", "hplt"][number % 2]) for number in range(200)))
    table = index.opened.rules.source_table
    with index.opened.store.reading() as snapshot:
        listed = snapshot.find(entries_of(table, np.zeros(1, np.int64), np.ones(1, np.bool_)), 1000)
    assert listed.row.tolist() == [1]  # the row of the kept document has its own source
