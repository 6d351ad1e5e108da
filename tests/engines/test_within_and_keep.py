"""Documents are compared within the values of a column, read from several columns, and kept by
several keys.
"""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import neardup
from neardup.cli.main import cli
from neardup.errors import ColumnError, SettingError

FOX = "the quick brown fox jumps over the lazy dog and runs away from here"


def kept(table: pa.Table, **settings: Any) -> list[Any]:
    return neardup.dedup(table, **settings).kept["id"].to_pylist()


def of_two_sites(texts: list[str]) -> pa.Table:
    """The texts, their sites by turns, then each text with the site of the other."""
    sites = [("a", "b")[i % 2] for i in range(len(texts))]
    both = [*sites, *(("b", "a")[site == "b"] for site in sites)]
    return pa.table({"id": list(map(str, range(2 * len(texts)))), "text": texts * 2, "site": both})


METHODS = {
    "bands": neardup.MinHash(threshold=0.7),
    "samples": neardup.MinHash(similarity="containment"),
    "simhash": neardup.SimHash(),
    "cosine": neardup.MinHash(similarity="cosine"),
}


@pytest.mark.slow
@pytest.mark.parametrize("linkage", ["sieve", "connected"])
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_run_within_a_column_removes_what_runs_over_each_value_remove(
    real_texts, method, linkage: str
) -> None:
    table = of_two_sites(real_texts("en_licenses", 150_000))
    result = neardup.dedup(table, method=method, within="site", linkage=linkage)
    apart = [
        neardup.dedup(part, method=method, linkage=linkage).removed.select(
            ["id", "kept_id", "similarity"]
        )
        for part in (table.filter(pa.compute.equal(table["site"], site)) for site in ("a", "b"))
    ]
    expected = pa.concat_tables(apart)
    assert result.removed.num_rows > 4
    assert sorted(
        map(str, result.removed.select(["id", "kept_id", "similarity"]).to_pylist())
    ) == sorted(map(str, expected.to_pylist()))


def test_documents_without_a_value_are_a_group_of_their_own() -> None:
    table = pa.table({"id": list("abcd"), "text": [FOX] * 4, "lang": ["en", None, "en", None]})
    assert kept(table, within="lang") == ["a", "b"]
    assert kept(table) == ["a"]


def test_an_earlier_collection_is_compared_within_the_column_too() -> None:
    old = pa.table({"id": ["o"], "text": [FOX], "lang": ["en"]})
    new = pa.table({"id": ["a", "b"], "text": [FOX] * 2, "lang": ["en", "fr"]})
    assert kept(new, against=old, within="lang") == ["b"]


def test_within_needs_the_column_and_a_method_that_compares_features() -> None:
    table = pa.table({"text": [FOX], "lang": ["en"]})
    with pytest.raises(ColumnError, match="No column 'language'"):
        neardup.dedup(table, within="language")
    with pytest.raises(
        SettingError, match=r"within='lang' with confirm='hamming'. Use confirm='jaccard'"
    ):
        neardup.dedup(table, within="lang", method=neardup.SimHash(confirm="hamming"))


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_several_text_columns_are_one_text(tmp_path: Path, suffix: str) -> None:
    rows = [
        {"id": "a", "title": "One", "body": FOX},
        {"id": "b", "title": "Two", "body": FOX},
        {"id": "c", "title": "One", "body": FOX.title()},
    ]
    path = tmp_path / f"in.{suffix}"
    if suffix == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif suffix == "csv":
        path.write_text("id,title,body\n" + "".join(",".join(row.values()) + "\n" for row in rows))
    else:
        pq.write_table(pa.Table.from_pylist(rows), path)
    result = neardup.dedup(path, text_column=["title", "body"], threshold=0.95)
    assert result.removed.select(["id", "kept_id"]).to_pylist() == [{"id": "c", "kept_id": "a"}]
    assert result.report["columns"]["text"] == ["title", "body"]


def test_a_null_column_adds_nothing_to_the_text() -> None:
    table = pa.table({"id": list("abc"), "title": [None, FOX, None], "body": [FOX, None, None]})
    assert kept(table, text_column=["title", "body"]) == ["a", "c"]


RANKED = pa.table(
    {
        "id": list("abcd"),
        "text": [FOX, FOX + "!", FOX + "!!", FOX + "?"],
        "date": ["2024-01-02", "2025-01-02", "2025-01-02", None],
        "score": [4.0, 3.0, 2.0, 1.0],
    }
)


@pytest.mark.parametrize(
    ("keep", "id"),
    [
        ("max:date,longest", "c"),
        ("max:date,max:score", "b"),
        ("max:date,last", "c"),
        ("max:date,first", "b"),
        ("longest,min:date", "c"),
        ("min:score", "d"),
        ("source,shortest", "a"),
    ],
)
def test_of_several_keys_the_first_that_differs_decides(keep: str, id: str) -> None:
    assert kept(RANKED, keep=keep) == [id]


def test_the_order_of_the_inputs_is_a_key(tmp_path: Path) -> None:
    for name, texts in (("b", [FOX, FOX + "!"]), ("a", [FOX + "!!!"])):
        pq.write_table(
            pa.table({"id": [name + str(i) for i in range(len(texts))], "text": texts}),
            tmp_path / f"{name}.parquet",
        )
    result = neardup.dedup([tmp_path / "b.parquet", tmp_path / "a.parquet"], keep="source,longest")
    assert result.kept["id"].to_pylist() == ["b1"]


def test_a_key_that_is_none_is_refused() -> None:
    with pytest.raises(
        SettingError, match=r"or several, separated by commas; .*: got 'max:date,longst'"
    ):
        neardup.dedup(RANKED, keep="max:date,longst")


def test_removals_are_counted_by_input_and_by_the_values_of_a_column(tmp_path: Path) -> None:
    table = pa.table(
        {"text": [FOX] * 30 + ["another text about other things"], "source": ["x"] * 30 + [None]}
    )
    pq.write_table(table, tmp_path / "in.parquet")
    result = neardup.dedup(tmp_path / "in.parquet", count_by="source", output=tmp_path / "out")
    assert [row["removed"] for row in result.report["inputs"]] == [29]
    assert result.report["by_value"] == {
        "column": "source",
        "num_values": 2,
        "values": [
            {"value": "x", "documents": 30, "removed": 29},
            {"value": "", "documents": 1, "removed": 0},
        ],
    }
    assert "Removed by source" in (tmp_path / "out/report.html").read_text()
    assert result.report["warnings"][-1].startswith(
        "Nearly all documents of a source were removed: 29 of the 30 documents of source=x."
    )


def test_a_source_of_which_much_stays_causes_no_warning() -> None:
    texts = [f"{FOX} {i} {i * i} {i * 7} and so on {i}" * 3 for i in range(30)]
    assert neardup.dedup(texts * 2).report["warnings"] == []
    assert int(np.count_nonzero(neardup.dedup(texts * 2).mask)) == 30


def test_the_command_lists_no_source_of_one_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        Path(f"{name}.html").write_text(f"<p>{FOX}</p>")
        Path(f"{name}.csv").write_text(f"text\n{FOX}\n{FOX}\n")
    pages = (
        CliRunner()
        .invoke(cli, ["dedup", "a.html", "b.html", "--html", "all", "-o", "pages"])
        .stdout
    )
    assert "Removed " in pages
    assert "Removed by source" not in pages
    lines = CliRunner().invoke(cli, ["dedup", "a.csv", "b.csv", "-o", "lines"]).stdout
    assert "100 % of the 2 documents of b.csv" in lines


LARGE = 2**53
EXACT_RANKS = {
    "int64": pa.array([LARGE, LARGE + 1, LARGE - 1], pa.int64()),
    "uint64": pa.array([2**64 - 2, 2**64 - 1, 2**64 - 3], pa.uint64()),
    "decimal": pa.array(
        [Decimal("1.1"), Decimal("1.1000000000000000001"), Decimal("1")], pa.decimal128(38, 19)
    ),
    "nanoseconds": pa.array([10**18, 10**18 + 1, 10**18 - 1], pa.int64()).cast(pa.timestamp("ns")),
    "text": pa.array([str(LARGE), str(LARGE + 1), str(LARGE - 1)]),
}


@pytest.mark.parametrize("ranks", EXACT_RANKS.values(), ids=EXACT_RANKS)
def test_keep_compares_values_exactly(ranks: pa.Array) -> None:
    table = pa.table({"id": list("abc"), "text": [FOX] * 3, "rank": ranks})
    assert kept(table, keep="max:rank") == ["b"]
    assert kept(table, keep="min:rank") == ["c"]
    assert kept(table.take([2, 1, 0]), keep="max:rank,last") == ["b"]


def test_keep_compares_the_values_of_files_of_different_types_exactly(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"id": ["a"], "text": [FOX], "rank": pa.array([2.0**53])}), tmp_path / "a.parquet"
    )
    pq.write_table(
        pa.table({"id": ["b"], "text": [FOX], "rank": pa.array([LARGE + 1])}),
        tmp_path / "b.parquet",
    )
    line = {"id": "c", "text": FOX, "rank": LARGE + 2}
    (tmp_path / "c.jsonl").write_text(
        json.dumps({"text": "x y z", "id": "z", "rank": 0.5}) + "\n" + json.dumps(line)
    )
    (tmp_path / "d.csv").write_text(f"id,text,rank\nd,{FOX},{LARGE + 3}\n")
    files = sorted(map(str, tmp_path.iterdir()))
    for count, best in enumerate("abcd", 1):
        for order in (files[:count], files[:count][::-1]):
            removed = neardup.dedup(order, keep="max:rank").removed
            assert removed["kept_id"].to_pylist() == [best] * (count - 1)


def test_every_value_that_a_report_lists_has_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neardup.runs.reading._MAX_REMEMBERED", 3)
    values = [f"site {number // 2}" for number in range(200)]
    table = pa.table(
        {
            "text": [FOX if number > 150 else f"{number} {FOX}" for number in range(200)],
            "site": values,
        }
    )
    reports = [
        neardup.dedup(table, count_by="site", batch_rows=rows).report["by_value"]
        for rows in (None, 1, 7, 64)
    ]
    assert reports[0]["num_values"] == 100
    assert sorted(row["value"] for row in reports[0]["values"]) == sorted(set(values))
    assert all(report == reports[0] for report in reports)
