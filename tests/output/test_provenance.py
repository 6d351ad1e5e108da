"""The columns sources, num_sources, first_seen and last_seen of kept rows, against plain loops over
removed.parquet.
"""

from __future__ import annotations

import datetime
import decimal
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import neardup
from neardup.cli.main import cli
from neardup.decide.outcome import Removals
from neardup.documents.added_columns import append_keys
from neardup.documents.batch import RawLines
from neardup.errors import ColumnError, OutputError, SettingError
from neardup.output.provenance import keepers_of
from neardup.report.rows import result_rows
from neardup.runs.input_names import input_names
from neardup.schemas import EXACT, SIMILARITY
from neardup.verify.measured import measured_of_copies
from spark_session import IGNORED

METHOD = neardup.MinHash(
    ngram=1, threshold=0.5, num_bands=64, rows_per_band=1
)  # misses a pair in 2e-20
FOX = "the quick brown fox jumps over the lazy dog and runs away from here"
NAMES = ["sources", "num_sources", "first_seen", "last_seen"]
SITES = ["b.org", "a.org", "ä.org", "", None]


def made_up(seed: int, num_rows: int = 40) -> list[dict[str, Any]]:
    """Return rows of texts, many of which differ in a word or two, or are copies."""
    rng = random.Random(seed)
    texts = [rng.sample("abcdefghijkl", rng.randint(3, 8)) for _ in range(num_rows // 5)]
    while len(texts) < num_rows:
        words = list(rng.choice(texts))
        for _ in range(rng.randint(0, 2)):
            words[rng.randrange(len(words))] = rng.choice("abcdefghijkl")
        texts.append(words)
    return [
        {
            "id": f"d{row}",
            "text": " ".join(words),
            "site": rng.choice(SITES),
            "day": rng.choice([None, *range(2000, 2012)]),
        }
        for row, words in enumerate(texts)
    ]


def expected_columns(
    rows: list[dict[str, Any]], removed: pa.Table, kept: list[str], source_of: Any
) -> list[dict[str, Any]]:
    """Return the columns of kept rows, by loops over the rows of removed.parquet.

    kept : the ids of kept rows. source_of : returns the source of a row.
    """
    keeper_of = dict(zip(removed["id"].to_pylist(), removed["kept_id"].to_pylist(), strict=True))
    members = {id: [] for id in kept}
    for row in rows:
        keeper = row["id"]
        seen = set()
        while keeper not in members and keeper in keeper_of and keeper not in seen:
            seen.add(keeper)
            keeper = keeper_of[keeper]
        if keeper in members:
            members[keeper].append(row)
    found = []
    for group in members.values():
        sources = {source_of(row) for row in group} - {None, ""}
        days = [row["day"] for row in group if row["day"] is not None]
        found.append(
            {
                "sources": sorted(sources),
                "num_sources": len(sources),
                "first_seen": min(days, default=None),
                "last_seen": max(days, default=None),
            }
        )
    return found


RULES: dict[str, dict[str, Any]] = {
    "the sieve": {},
    "keep longest": {"keep": "longest"},
    "keep of a column": {"keep": "min:day,last"},
    "two copies": {"keep": "longest:2"},
    "no copy": {"keep": "none"},
    "chains": {"linkage": "connected"},
    "groups": {"group_by": "repo"},
    "within": {"within": "repo"},
    "counts": {"count_by": "site"},
    "within the sources": {"within": "site"},
    "rethreshold": {"rethreshold": True},
}


@pytest.mark.parametrize(
    "seeds", [range(2), pytest.param(range(2, 10), marks=pytest.mark.slow)], ids=["few", "many"]
)
@pytest.mark.parametrize("num_against", [0, 4])
@pytest.mark.parametrize("options", RULES.values(), ids=RULES)
def test_kept_rows_have_the_columns_of_a_plain_loop(
    options: dict[str, Any], num_against: int, seeds: range
) -> None:
    several = 0
    for seed in seeds:
        rows = [row | {"repo": f"r{number // 2}"} for number, row in enumerate(made_up(seed))]
        against = pa.Table.from_pylist(rows[:num_against]) if num_against else None
        new = rows[num_against:]
        result = neardup.dedup(
            pa.Table.from_pylist(new),
            against=against,
            method=METHOD,
            sources="site",
            dates="day",
            **options,
        )
        kept = result.kept
        ids = kept["id"].to_pylist()
        expected = expected_columns(new, result.removed, ids, lambda row: row["site"])
        assert kept.select(NAMES).to_pylist() == expected
        assert kept.schema.field("first_seen").type == pa.int64()
        facts = result.report["provenance"]
        assert facts["in_several"] == sum(row["num_sources"] > 1 for row in expected)
        assert facts["undated"] == sum(row["day"] is None for row in new)
        several += facts["in_several"]
    assert several or options.get("keep") == "none" or "within" in options


def test_a_stricter_limit_has_the_columns_of_its_own_decisions() -> None:
    rows = made_up(3)
    options: dict[str, Any] = {"sources": "site", "dates": "day"}
    table = pa.Table.from_pylist(rows)
    result = neardup.dedup(table, method=METHOD, rethreshold=True, **options).rethreshold(0.8)
    expected = expected_columns(
        rows, result.removed, result.kept["id"].to_pylist(), lambda row: row["site"]
    )
    assert result.kept.select(NAMES).to_pylist() == expected
    assert result.report["provenance"]["in_several"] == sum(
        row["num_sources"] > 1 for row in expected
    )


def test_a_keeper_that_is_removed_in_turn_hands_its_documents_on() -> None:
    # 9 -> 8 -> 4 -> 3 -> 1; 5 <-> 6, 7 -> 6; 0, 1 and 2 are kept.
    documents = np.array([3, 4, 5, 6, 7, 8, 9], np.uint32)
    keepers = np.array([1, 3, 6, 5, 6, 4, 8], np.uint32)
    kept = np.arange(10) < 3
    measured = measured_of_copies(len(documents), (SIMILARITY, EXACT))
    found = keepers_of(Removals(documents, keepers, measured), kept)
    assert found.tolist() == [1, 1, -1, -1, -1, 1, 1]


DATES = {
    "date": [datetime.date(2024, 1, day) for day in (3, 1, 2)],
    "time": [datetime.datetime(2024, 1, day, 12, 30, 1, 999) for day in (3, 1, 2)],
    "whole number": [3, -1, 2],
    "number": [2.5, -1e-9, 2.0],
    "decimal": [decimal.Decimal(text) for text in ("2.50", "-1.00", "2.00")],
    "string": ["2024-01-03", "2024-01-01T00:00:00+01:00", "2024-01-02"],
}
TYPES = {
    "date": [pa.date32(), pa.date64()],
    "time": [pa.timestamp("us"), pa.timestamp("ns", "UTC"), pa.timestamp("us", "Europe/Berlin")],
    "whole number": [pa.int8(), pa.int64()],
    "number": [pa.float32(), pa.float64()],
    "decimal": [pa.decimal128(9, 2)],
    "string": [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())],
}
KINDS = [(kind, data_type) for kind, types in TYPES.items() for data_type in types]


@pytest.mark.parametrize(("kind", "data_type"), KINDS, ids=[str(pair[1]) for pair in KINDS])
def test_dates_keep_the_type_of_their_column(kind: str, data_type: pa.DataType) -> None:
    values = pa.array([*DATES[kind], None, None]).cast(data_type)
    texts = [FOX, FOX, FOX, FOX, "no date at all"]
    kept = neardup.dedup(pa.table({"text": texts, "day": values}), dates="day").kept
    plain_type = data_type.value_type if pa.types.is_dictionary(data_type) else data_type
    assert kept.schema.field("first_seen").type == plain_type
    assert kept["first_seen"].to_pylist() == [values[1].as_py(), None]
    assert kept["last_seen"].to_pylist() == [values[0].as_py(), None]


def test_strings_that_are_no_dates_are_counted_and_left_out() -> None:
    table = pa.table({"text": [FOX, FOX, FOX], "day": ["soon", "2024-02-01", "2023-12-31"]})
    result = neardup.dedup(table, dates="day")
    assert result.kept["first_seen"].to_pylist() == ["2023-12-31"]
    assert result.report["provenance"] == {"dates": "day", "undated": 1}


# Files.

ROWS = [
    {"text": FOX, "site": 'a"b', "day": "2024-01-02"},
    {"text": FOX.title(), "site": "ä,\\", "day": "2024-01-01"},
    {"text": "a text about something else", "site": "", "day": ""},
]
COLUMNS = [
    {
        "sources": ['a"b', "ä,\\"],
        "num_sources": 2,
        "first_seen": "2024-01-01",
        "last_seen": "2024-01-02",
    },
    {"sources": [], "num_sources": 0, "first_seen": None, "last_seen": None},
]


def write_jsonl(path: Path) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\r\n" for row in ROWS))


def read_jsonl(path: Path) -> pa.Table:
    return pa.Table.from_pylist([json.loads(line) for line in path.read_text().splitlines()])


def read_csv(path: Path) -> pa.Table:
    delimiter = "\t" if path.suffix == ".tsv" else ","
    rows = pa_csv.read_csv(path, parse_options=pa_csv.ParseOptions(delimiter=delimiter))
    sources = [json.loads(text) for text in rows["sources"].to_pylist()]
    rows = rows.set_column(rows.schema.get_field_index("sources"), "sources", [sources])
    for name in ("first_seen", "last_seen"):  # the parser recognises dates
        texts = rows[name].cast(pa.string())
        rows = rows.set_column(rows.schema.get_field_index(name), name, texts)
    return rows


FORMATS = {
    "in.parquet": (lambda path: pq.write_table(pa.Table.from_pylist(ROWS), path), pq.read_table),
    "in.arrow": (
        lambda path: feather.write_feather(pa.Table.from_pylist(ROWS), path),
        feather.read_table,
    ),
    "in.jsonl": (write_jsonl, read_jsonl),
    "in.csv": (lambda path: pa_csv.write_csv(pa.Table.from_pylist(ROWS), path), read_csv),
    "in.tsv": (
        lambda path: pa_csv.write_csv(
            pa.Table.from_pylist(ROWS), path, pa_csv.WriteOptions(delimiter="\t")
        ),
        read_csv,
    ),
}


@pytest.mark.parametrize("name", FORMATS)
def test_kept_files_have_the_columns_in_their_format(tmp_path: Path, name: str) -> None:
    write, read = FORMATS[name]
    write(tmp_path / name)
    neardup.dedup(tmp_path / name, output=tmp_path / "out", sources="site", dates="day")
    rows = read(tmp_path / "out" / "kept" / name)
    assert rows.column_names == ["text", "site", "day", *NAMES]
    assert rows["text"].to_pylist() == [ROWS[0]["text"], ROWS[2]["text"]]
    assert rows.select(NAMES).to_pylist() == COLUMNS


def test_added_columns_of_a_parquet_file_are_encoded_as_its_own(tmp_path: Path) -> None:
    table = pa.Table.from_pylist(ROWS).replace_schema_metadata({"huggingface": "{}", "own": "x"})
    pq.write_table(table, tmp_path / "in.parquet", compression="zstd")
    neardup.dedup(tmp_path / "in.parquet", output=tmp_path / "out", sources="site")
    file = pq.ParquetFile(tmp_path / "out" / "kept" / "in.parquet")
    group = file.metadata.row_group(0)
    columns = {group.column(index).path_in_schema: group.column(index) for index in range(5)}
    added = [columns["sources.list.element"], columns["num_sources"]]
    assert {column.compression for column in added} == {"ZSTD"}
    assert all(column.is_stats_set and column.has_dictionary_page for column in added)
    # datasets refuses a file whose features do not list all columns.
    assert file.schema_arrow.metadata == {b"own": b"x"}


@pytest.mark.parametrize("seed", range(5))
def test_keys_are_added_to_any_objects_and_all_other_bytes_stay(seed: int) -> None:
    rng = random.Random(seed)
    objects = [rng.choice([{}, {"a": "}"}, {"b": {"c": None}}, {"d": "x" * 99}]) for _ in range(60)]
    ends = [" " * rng.choice([0, 0, 3, 5, 70_000]) + rng.choice(["\n", "\r\n"]) for _ in objects]
    ends[-1] = rng.choice(["", "\n"])
    texts = [json.dumps(value).replace("{}", rng.choice(["{}", "{ \t}"])) for value in objects]
    lines = [(text + end).encode() for text, end in zip(texts, ends, strict=True)]
    offsets = np.cumsum([4, *map(len, lines)])  # after the four bytes of another batch
    added = pa.record_batch(
        {
            "n": pa.array([rng.choice([None, 7]) for _ in objects], pa.int64()),
            "l": pa.array([rng.choice([[], ['"', "ä"]]) for _ in objects], pa.list_(pa.string())),
        }
    )
    found = append_keys(RawLines(b"\n\n\n\n" + b"".join(lines), offsets), added)
    data = bytes(found.data)
    rows = zip(
        found.offsets[:-1], found.offsets[1:], added.to_pylist(), lines, objects, strict=True
    )
    for start, end, values, line, value in rows:
        begin, _, blanks = line.rpartition(b"}")
        assert data[start:end].startswith(begin)
        assert data[start:end].endswith(b"}" + blanks)
        assert json.loads(data[start:end]) == value | values


def test_an_object_without_keys_stays_an_object(tmp_path: Path) -> None:
    lines = [json.dumps({"text": FOX}), "{}", json.dumps({"text": FOX})]
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    neardup.dedup(tmp_path / "in.jsonl", output=tmp_path / "out", sources="input")
    kept = (tmp_path / "out" / "kept" / "in.jsonl").read_text().splitlines()
    added = {"sources": [str(tmp_path / "in.jsonl")], "num_sources": 1}
    assert [json.loads(line) for line in kept] == [{"text": FOX} | added, added]


@pytest.mark.parametrize("name", ["in.txt", "in.py", "in.html"])
def test_formats_without_columns_are_refused_before_they_are_read(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text(f"{FOX}\n")
    with pytest.raises(OutputError, match=rf"sources adds columns .*{name}, whose"):
        neardup.dedup(tmp_path / name, output=tmp_path / "out", sources="input")
    assert not (tmp_path / "out").exists()


def test_without_an_output_texts_have_the_columns(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text(f"{FOX}\n{FOX}\n")
    kept = neardup.dedup([tmp_path / "in.txt"], sources="input").kept
    assert kept.to_pylist() == [
        {"text": FOX, "sources": [str(tmp_path / "in.txt")], "num_sources": 1}
    ]
    assert neardup.dedup([FOX, FOX], sources="input").kept["num_sources"].to_pylist() == [1]


# The inputs as sources.


@pytest.mark.parametrize(
    ("given", "names", "expected"),
    [
        (["a/", "b.jsonl"], ["a/x/1.jsonl", "b.jsonl"], ["a/", "b.jsonl"]),
        (["a", "ab"], ["a/1.jsonl", "ab/1.jsonl"], ["a", "ab"]),
        (["a/*.jsonl", "a/**/*.csv"], ["a/1.jsonl", "a/b/2.csv"], ["a/*.jsonl", "a/**/*.csv"]),
        (["s3://b/c"], ["s3://b/c/d/1.parquet"], ["s3://b/c"]),
        (["file:///a/b"], ["/a/b/1.jsonl"], ["file:///a/b"]),
        (["a/1.jsonl", "a"], ["a/1.jsonl", "a/2.jsonl"], ["a/1.jsonl", "a"]),
        (["a/**/*.csv"], ["a/1.csv"], ["a/**/*.csv"]),
        (["*.csv", "a"], ["1.csv", "a/1.csv"], ["*.csv", "a"]),
        (["file:///a/*.csv"], ["/a/1.csv"], ["file:///a/*.csv"]),
    ],
    ids=[
        "a folder",
        "similar names",
        "patterns",
        "an address",
        "a local address",
        "overlap",
        "no folder below",
        "a pattern beside a folder",
        "a local pattern",
    ],
)
def test_a_file_belongs_to_the_input_that_named_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: list[str],
    names: list[str],
    expected: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert input_names([Path(path) if "://" not in path else path for path in given], names) == [
        str(Path(path)) if "://" not in path else path for path in expected
    ]


@pytest.mark.parametrize("num_against", [0, 1])
def test_inputs_are_folders_files_and_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, num_against: int
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = made_up(5, 60)
    inputs = {}
    for number, name in enumerate(["old.jsonl", "web/a.jsonl", "web/b.jsonl", "news.jsonl"]):
        path = Path(name)
        path.parent.mkdir(exist_ok=True)
        part = rows[number * 15 : number * 15 + 15]
        path.write_text("".join(json.dumps(row) + "\n" for row in part))
        given = "web" if number in (1, 2) else name
        inputs |= {row["id"]: given for row in part}
    names = ["old.jsonl"] * (1 - num_against) + ["web", "news.jsonl"]
    against = ["old.jsonl"] if num_against else None
    result = neardup.dedup(names, against=against, method=METHOD, sources="input", output="out")
    new = [row for row in rows if not num_against or inputs[row["id"]] != "old.jsonl"]
    kept = result.kept
    expected = expected_columns(
        new, result.removed, kept["id"].to_pylist(), lambda row: inputs[row["id"]]
    )
    assert kept.select(NAMES[:2]).to_pylist() == [
        {name: row[name] for name in NAMES[:2]} for row in expected
    ]
    facts = result.report["provenance"]
    assert facts["num_sources"] == len(names)
    assert facts["in_several"] == sum(row["num_sources"] > 1 for row in expected) > 0
    shown = {row.label: row.value for row in result_rows(result.report)}
    assert shown["in two sources or more"] == str(facts["in_several"])
    in_files = []
    for path in [*sorted(Path("out/kept").rglob("*.jsonl"))]:
        in_files += [json.loads(line) for line in path.read_text().splitlines()]
    by_id = {row["id"]: row["sources"] for row in in_files}
    assert by_id == dict(zip(kept["id"].to_pylist(), kept["sources"].to_pylist(), strict=True))


def test_the_keys_of_folders_are_sources(tmp_path: Path) -> None:
    for crawl in ("2023", "2024"):
        folder = tmp_path / f"crawl={crawl}"
        folder.mkdir()
        (folder / "a.jsonl").write_text(json.dumps({"text": FOX}) + "\n")
    kept = neardup.dedup(tmp_path, sources="crawl", dates="crawl").kept
    assert kept.select(NAMES).to_pylist() == [
        {"sources": ["2023", "2024"], "num_sources": 2, "first_seen": "2023", "last_seen": "2024"}
    ]


def test_fields_inside_objects_are_sources(tmp_path: Path) -> None:
    rows = [{"text": FOX, "meta": {"site": site}} for site in ("b", "a")]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    kept = neardup.dedup(tmp_path / "in.jsonl", sources="meta.site").kept
    assert kept["sources"].to_pylist() == [["a", "b"]]


def test_datasets_get_the_columns() -> None:
    datasets = pytest.importorskip("datasets")
    rows = {"text": [FOX, "a text about something else", FOX], "site": ["b", "c", "a"]}
    dataset = datasets.Dataset.from_dict(rows)
    kept = neardup.dedup(dataset, sources="site").dataset
    assert kept["sources"][:] == [["a", "b"], ["c"]]
    splits = datasets.DatasetDict({"train": dataset, "test": dataset})
    kept = neardup.dedup(splits, sources="input").dataset
    assert kept["train"]["sources"][:] == [["test", "train"], ["test", "train"]]
    assert len(kept["test"]) == 0


def test_passages_that_are_cut_leave_the_columns(tmp_path: Path) -> None:
    shared = "this sentence is the same in both of the texts, and it is long enough to be cut "
    texts = [
        f"{shared}one two three four",
        f"{shared}five six seven eight",
        f"{shared}one two three four",
    ]
    table = pa.table({"text": texts, "site": ["b", "a", "c"]})
    pq.write_table(table, tmp_path / "in.parquet")
    result = neardup.dedup(
        tmp_path / "in.parquet", passages=60, sources="site", output=tmp_path / "out"
    )
    kept = pq.read_table(tmp_path / "out" / "kept" / "in.parquet")
    assert kept["sources"].to_pylist() == [["b", "c"], ["a"]]
    assert "same in both" not in kept["text"][1].as_py()
    assert result.kept.equals(kept)


# Runs.


def test_an_interrupted_run_resumes_to_the_same_columns(tmp_path: Path) -> None:
    class Stop(Exception):
        pass

    class Stopping:
        """Ends the run once it has read."""

        def begin(self, stage: str, total: int | None) -> None:
            if stage == "confirm":
                raise Stop

        def advance(self, documents: int, num_bytes: int) -> None: ...

        def end(self, stage: str, seconds: float) -> None: ...

    rows = made_up(4)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "in.parquet")
    given: dict[str, Any] = {"method": METHOD, "sources": "site", "dates": "day"}
    with pytest.raises(Stop):
        neardup.dedup(
            tmp_path / "in.parquet", output=tmp_path / "out", progress=Stopping(), **given
        )
    with pytest.raises(neardup.errors.ResumeError):
        neardup.dedup(tmp_path / "in.parquet", output=tmp_path / "out", resume=True, method=METHOD)
    neardup.dedup(tmp_path / "in.parquet", output=tmp_path / "out", resume=True, **given)
    neardup.dedup(tmp_path / "in.parquet", output=tmp_path / "again", **given)
    kept = [pq.read_table(tmp_path / name / "kept" / "in.parquet") for name in ("out", "again")]
    assert kept[0].equals(kept[1])


def test_the_command_line_and_the_options_of_a_report(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(made_up(2)), tmp_path / "in.parquet")
    command = ["dedup", str(tmp_path / "in.parquet"), "--threshold", "0.5", "--ngram", "1"]
    options = ["--sources", "site", "--dates", "day"]
    done = CliRunner().invoke(cli, [*command, *options, "-o", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "in two sources or more" in done.output
    assert "in two sources or more" in (tmp_path / "out" / "report.html").read_text()
    config = ["dedup", "--config", str(tmp_path / "out" / "report.json")]
    done = CliRunner().invoke(cli, [*config, "-o", str(tmp_path / "again")])
    assert done.exit_code == 0, done.output
    kept = [pq.read_table(tmp_path / name / "kept" / "in.parquet") for name in ("out", "again")]
    assert kept[0].equals(kept[1])
    assert kept[0].column_names[-4:] == NAMES


def test_an_index_decides_and_its_documents_are_no_sources(tmp_path: Path) -> None:
    old = [{"id": "o", "text": FOX, "site": "old"}]
    rows = [row | {"id": f"n{row['id']}"} for row in made_up(1)] + [old[0] | {"id": "copy"}]
    given: dict[str, Any] = {"sources": "site", "dates": "day"}
    rows = [{"day": None} | row for row in rows]
    with neardup.Index.create(tmp_path / "index", method=METHOD) as index:
        index.add_many_if_new(pa.Table.from_pylist(old))
        result = neardup.dedup(pa.Table.from_pylist(rows), against=index, **given)
    kept = result.kept
    ids = kept["id"].to_pylist()
    assert "copy" not in ids
    expected = expected_columns(rows, result.removed, ids, lambda row: row["site"])
    assert kept.select(NAMES).to_pylist() == expected
    assert any(row["num_sources"] > 1 for row in expected)


# Refusals.


@pytest.mark.parametrize(
    ("given", "column"),
    [
        ({"sources": "input"}, "sources"),
        ({"sources": "site"}, "num_sources"),
        ({"dates": "day"}, "first_seen"),
        ({"dates": "day"}, "last_seen"),
    ],
    ids=["sources", "num_sources", "first_seen", "last_seen"],
)
def test_the_names_of_the_columns_are_reserved(given: dict[str, str], column: str) -> None:
    table = pa.Table.from_pylist(ROWS).append_column(column, pa.array(["x"] * 3))
    option = next(iter(given))
    with pytest.raises(ColumnError, match=rf"has a column '{column}', and {option} adds .* Rename"):
        neardup.dedup(table, **given)
    other = {"dates": "day"} if option == "sources" else {"sources": "site"}
    assert column in neardup.dedup(table, **other).kept.column_names


@pytest.mark.parametrize("write", ["mask", "ids", "annotated", "removed"])
@pytest.mark.parametrize("option", ["sources", "dates"])
def test_an_output_without_kept_rows_is_refused(tmp_path: Path, option: str, write: str) -> None:
    with pytest.raises(
        SettingError, match=rf"{option} adds columns to kept rows: got {option}='x'"
    ):
        neardup.dedup([FOX], output=tmp_path / "out", write=write, **{option: "x"})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sources": "nosuch"}, "No column 'nosuch'"),
        ({"dates": "nosuch"}, "No column 'nosuch'"),
        ({"dates": "tags"}, "which cannot be"),
        ({"sources": "tags"}, "which cannot be"),
    ],
)
def test_columns_that_are_missing_or_of_other_types_are_refused(
    given: dict[str, str], message: str
) -> None:
    table = pa.Table.from_pylist(ROWS).append_column("tags", pa.array([["x"]] * 3))
    with pytest.raises(ColumnError, match=message):
        neardup.dedup(table, **given)


def test_dates_of_two_types_are_refused(tmp_path: Path) -> None:
    for name, kind in (("a", pa.timestamp("us")), ("b", pa.string())):
        table = pa.table({"text": [FOX], "day": pa.array(["2024-01-01"]).cast(kind)})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    with pytest.raises(ColumnError, match=r"'day' must have one type .* timestamp\[us\] .* string"):
        neardup.dedup(tmp_path, dates="day")


# Spark.


@pytest.mark.slow
@pytest.mark.filterwarnings(IGNORED)
@pytest.mark.parametrize("tables", [True, False], ids=["by the driver", "by workers"])
@pytest.mark.parametrize("sources", ["site", "input"])
def test_a_run_on_spark_writes_the_files_of_a_local_run(
    spark: Any, tmp_path: Path, sources: str, tables: bool
) -> None:
    rows = made_up(6, 100)
    pq.write_table(pa.Table.from_pylist(rows[:4]), tmp_path / "old.parquet")
    pq.write_table(pa.Table.from_pylist(rows[4:36]), tmp_path / "new.parquet")
    (tmp_path / "web").mkdir()
    for number, name in enumerate(["web/a.jsonl", "web/b.jsonl"]):
        part = rows[36 + number * 32 : 68 + number * 32]
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in part))
    results = [
        neardup.dedup(
            [tmp_path / "new.parquet", tmp_path / "web"],
            against=tmp_path / "old.parquet",
            method=METHOD,
            count_by="site",
            keep="longest",
            sources=sources,
            dates="day",
            engine=engine,
            tables=tables,
            output=tmp_path / engine,
        )
        for engine in ("local", "spark")
    ]
    files = ["new.parquet", "web/a.jsonl", "web/b.jsonl"]
    for name in files:
        paths = [tmp_path / engine / "kept" / name for engine in ("local", "spark")]
        assert paths[0].read_bytes() == paths[1].read_bytes(), name
    facts = [result.report["provenance"] for result in results]
    assert facts[0] == facts[1]
    assert facts[0]["in_several"] > 0
    assert results[0].report["by_value"] == results[1].report["by_value"]


@pytest.mark.slow
@pytest.mark.filterwarnings(IGNORED)
@pytest.mark.parametrize("options", [{}, {"keep": "longest:2"}, {"keep": "none"}], ids=str)
@pytest.mark.parametrize("num_against", [0, 12])
def test_rows_of_a_dataframe_have_the_columns_of_a_local_run(
    spark: Any, options: dict[str, Any], num_against: int
) -> None:
    from neardup import spark as over_frames

    rows = sorted(made_up(7, 60), key=lambda row: row["id"])  # a DataFrame comes in this order
    new = pa.Table.from_pylist(rows[num_against:])
    against = pa.Table.from_pylist(rows[:num_against]) if num_against else None
    given = {"method": METHOD, "id_column": "id", "sources": "site", "dates": "day", **options}
    expected = neardup.dedup(new, against=against, **given).kept
    frames = [None if table is None else spark.createDataFrame(table) for table in (new, against)]
    found = over_frames.dedup(frames[0], against=frames[1], **given).kept
    assert found.columns == expected.column_names
    by_id = {row["id"]: row.asDict() for row in found.collect()}
    assert by_id == {row["id"]: row for row in expected.to_pylist()}
    with pytest.raises(ColumnError, match="has a column 'num_sources', and sources and dates add"):
        over_frames.dedup(frames[0].withColumnRenamed("day", "num_sources"), sources="site")
