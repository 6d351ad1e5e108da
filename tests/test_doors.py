"""A collection has one answer, however it is laid out in files, named, encoded, compressed, batched
and read.

Other properties vary the texts. This one varies the doors through which they come in: each corpus
is written in several layouts, and the whole outputs must equal those of the same documents in one
table.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neardup
from neardup.errors import InputError
from reference import corpora

NAMES = (
    "a",
    "a b",
    "é漢",
    "x:y",
    "line\u2028end",
    "next\x85line",
    "[ab]*?",
    "%41#1",
    "+1",
    "-dash",
    "quo'te\"s",
)
LARGE = 2**53  # above it, float64 does not have all integers
SCHEMA = pa.schema(
    [("id", pa.string()), ("text", pa.string()), ("site", pa.string()), ("score", pa.int64())]
)

Rows = list[dict[str, Any]]


@st.composite
def documents(draw: st.DrawFn) -> Rows:
    """Return documents with ids of some length, values of a site, and scores of which no two are
    equal.
    """
    texts = draw(corpora.corpora())
    numbers = draw(
        st.lists(
            st.integers(-4, 2 * len(texts)), min_size=len(texts), max_size=len(texts), unique=True
        )
    )
    sites = draw(
        st.lists(
            st.sampled_from(["a", "b", "", "é漢 " * 20]), min_size=len(texts), max_size=len(texts)
        )
    )
    tail = "x" * draw(st.sampled_from([0, 1, 300]))
    rows = zip(texts, sites, numbers, strict=True)
    return [
        {"id": f"{place}{tail}", "text": text or "", "site": site, "score": LARGE + number}
        for place, (text, site, number) in enumerate(rows)
    ]


class Layout(NamedTuple):
    """A way to lay documents out. order : of the documents; cuts : where the files begin; how :
    writes each file.
    """

    order: list[int]
    cuts: list[int]
    names: list[str]
    how: list[str]
    by_folder: bool
    is_read_only: bool
    options: dict[str, int | None]


@st.composite
def layouts(draw: st.DrawFn, count: int) -> Layout:
    """Return a layout of so many documents."""
    cuts = sorted(draw(st.lists(st.integers(0, count), max_size=3)))
    num_files = len(cuts) + 1
    options = {
        "threads": draw(st.sampled_from([1, 2, 5])),
        "batch_rows": draw(st.sampled_from([None, 1, 2, 5])),
        "cache_bytes": draw(st.sampled_from([None, 0, 1000])),
    }
    return Layout(
        order=draw(st.permutations(range(count))),
        cuts=cuts,
        names=draw(st.lists(st.sampled_from(NAMES), min_size=num_files, max_size=num_files)),
        how=draw(
            st.lists(st.sampled_from(sorted(WRITERS)), min_size=num_files, max_size=num_files)
        ),
        by_folder=draw(st.booleans()),
        is_read_only=draw(st.booleans()),
        options=options,
    )


def of_rows(rows: Rows) -> pa.Table:
    return pa.Table.from_pylist(rows, SCHEMA)


def with_scores(rows: Rows, scores: pa.Array) -> pa.Table:
    return of_rows(rows).set_column(3, "score", scores)


def parquet(rows: Rows, path: Path, **options: Any) -> None:
    pq.write_table(of_rows(rows), path, **options)


def decimals(rows: Rows, path: Path) -> None:
    scores = pa.array([Decimal(row["score"]) for row in rows], pa.decimal128(38, 3))
    pq.write_table(with_scores(rows, scores), path)


def unsigned(rows: Rows, path: Path) -> None:
    table = with_scores(rows, pa.array([row["score"] for row in rows], pa.uint64()))
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)


def floats(rows: Rows, path: Path) -> None:
    """Write the scores as float64 if it has all of them, else as text."""
    has_all = all(int(float(row["score"])) == row["score"] for row in rows)
    kind = pa.float64() if has_all else pa.string()
    values = [float(row["score"]) if has_all else str(row["score"]) for row in rows]
    table = with_scores(rows, pa.array(values, kind))
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table)


def lines(
    rows: Rows, path: Path, *, end: str = "\n", mark: str = "", is_ascii: bool = False
) -> None:
    text = end.join(json.dumps(row, ensure_ascii=is_ascii) for row in rows)
    data = (mark + text).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def delimited(rows: Rows, path: Path, *, end: str = "\n", mark: str = "") -> None:
    buffer = io.StringIO()
    writer = csv.DictWriter(
        buffer, SCHEMA.names, delimiter="\t" if ".tsv" in path.name else ",", lineterminator=end
    )
    writer.writeheader()
    writer.writerows(rows)
    data = (mark + buffer.getvalue()).encode()
    path.write_bytes(pa.compress(data, "zstd", asbytes=True) if path.suffix == ".zst" else data)


Write = Callable[[Rows, Path], None]
WRITERS: dict[str, tuple[str, Write]] = {
    "parquet": (
        ".parquet",
        lambda rows, path: parquet(rows, path, row_group_size=2, compression="zstd"),
    ),
    "plain parquet": (
        ".parquet",
        lambda rows, path: parquet(rows, path, use_dictionary=False, compression="none"),
    ),
    "decimals": (".parquet", decimals),
    "unsigned": (".arrow", unsigned),
    "floats": (".arrow", floats),
    "lines": (".jsonl", lines),
    "marked lines": (
        ".jsonl",
        lambda rows, path: lines(rows, path, end="\r\n", mark="\ufeff", is_ascii=True),
    ),
    "gzip": (".jsonl.gz", lines),
    "csv": (".csv", lambda rows, path: delimited(rows, path, end="\r\n", mark="\ufeff")),
    "tsv": (".tsv", delimited),
    "zstd": (".csv.zst", delimited),
}


@contextmanager
def laid_out(rows: Rows, layout: Layout, folder: Path) -> Iterator[list[str]]:
    """Write documents, and yield the paths to name."""
    ordered = [rows[place] for place in layout.order]
    bounds = [0, *layout.cuts, len(rows)]
    paths = []
    for number, (name, how) in enumerate(zip(layout.names, layout.how, strict=True)):
        suffix, write = WRITERS[how]
        paths.append(folder / f"{name}{number}{suffix}")
        write(ordered[bounds[number] : bounds[number + 1]], paths[-1])
    is_read_only = layout.is_read_only and hasattr(os, "geteuid") and os.geteuid() != 0
    for path in [*paths, folder] if is_read_only else []:
        path.chmod(0o500)
    try:
        yield [str(folder)] if layout.by_folder else list(map(str, paths))
    finally:
        folder.chmod(0o700)


def answer_of(result: neardup.Deduplication) -> dict[str, Any]:
    """Return the whole output of a run, besides the places of the documents and the time."""
    columns = ["id", "kept_id", "similarity", "exact"]
    removed = result.removed.select(columns).sort_by("id").to_pylist()
    return {"removed": removed} | {
        name: result.report[name] for name in ("counts", "by_value", "recall", "warnings")
    }


@settings(max_examples=settings().max_examples // 2)  # each is three runs
@given(data=st.data())
def test_the_layout_of_a_collection_changes_no_answer(tmp_path_factory, monkeypatch, data):
    monkeypatch.setattr("neardup.runs.reading._MAX_REMEMBERED", 1)
    rows = data.draw(documents())
    settings = {
        "keep": data.draw(st.sampled_from(["max:score", "min:score"])),
        "method": data.draw(corpora.methods()),
        "id_column": "id",
        "text_column": "text",
        data.draw(st.sampled_from(["count_by", "within"])): "site",
    }
    expected = answer_of(neardup.dedup(of_rows(rows), **settings))
    for _ in range(2):
        layout = data.draw(layouts(len(rows)))
        with laid_out(rows, layout, tmp_path_factory.mktemp("layout")) as paths:
            found = neardup.dedup(paths, **settings, **layout.options)
            assert answer_of(found) == expected, layout


@pytest.mark.slow
@given(data=st.data())
def test_whether_ids_repeat_does_not_depend_on_the_layout(tmp_path_factory, monkeypatch, data):
    monkeypatch.setattr("neardup.runs.ids._FIRST_CHECK", data.draw(st.sampled_from([2, 1000])))
    rows = data.draw(documents())
    for row in rows:
        row["id"] = data.draw(st.sampled_from([row["id"], row["id"], "", "same"]))
    repeats = len({row["id"] for row in rows}) < len(rows)
    layout = data.draw(layouts(len(rows)))
    with laid_out(rows, layout, tmp_path_factory.mktemp("layout")) as paths:
        if repeats:
            with pytest.raises(InputError, match=r"belongs to two documents"):
                neardup.dedup(paths, id_column="id", **layout.options)
        else:
            neardup.dedup(paths, id_column="id", **layout.options)
