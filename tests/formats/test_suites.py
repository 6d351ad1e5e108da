"""Files of the conformance suites of others: each is read as its reference says, or refused in one
clear line, with an exit code that is not 0.

The suites are beside the repository (../shared/data/suites), which has no copy of them:
apache/parquet-testing 1a2a751, webrecorder/warcio 2a797aa (both Apache 2.0) and nst/JSONTestSuite
(MIT).
"""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import neardup
from neardup.cli.main import cli
from reference.places import SHARED_DATA

pytestmark = pytest.mark.slow

SUITES = SHARED_DATA / "suites"
PARQUET = SUITES / "parquet-testing"
WARCIO = SUITES / "warcio" / "test" / "data"
JSON = SUITES / "JSONTestSuite" / "test_parsing"


def files_of(folder: Path, pattern: str) -> list[Any]:
    """Return the files of a suite as parameters; one that is skipped if the suite is not there."""
    found = sorted(folder.rglob(pattern))
    if not found:
        reason = f"no suite in {folder}: it is not part of the repository"
        return [pytest.param(folder, marks=pytest.mark.skip(reason=reason), id="none")]
    return [pytest.param(path, id=path.relative_to(folder).as_posix()) for path in found]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [*map(str, arguments), "--quiet"], prog_name="neardup")


def assert_is_refused(done: Result, path: Path) -> None:
    """Assert that a command ended with one line that names the file."""
    assert done.exit_code in (1, 2)
    (line,) = done.stderr.splitlines()
    assert line.startswith(("neardup: incomplete: ", "neardup: error: "))
    assert path.name in line


# Parquet


def texts_of(fields: Any, outer: str = "") -> Iterator[str]:
    """Yield the columns that may be text, also inside structs: strings, and the bytes that older
    writers meant as strings.
    """
    for field in fields:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        is_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
        if pa.types.is_string(kind) or pa.types.is_large_string(kind) or is_bytes:
            yield outer + field.name
        elif pa.types.is_struct(kind):
            yield from texts_of(kind, f"{outer}{field.name}.")


def text_of(path: Path) -> str | None:
    """Return the first column of a file that may be text; None if there is none."""
    try:
        schema = pq.read_schema(path)
    except (OSError, pa.ArrowException):
        return None
    strings = [name for name in texts_of(schema) if pa.types.is_string(_type_of(schema, name))]
    return next(iter([*strings, *texts_of(schema)]), None)


def _type_of(schema: pa.Schema, name: str) -> pa.DataType:
    names = {field.name: field.type for field in schema}
    return names.get(name, pa.null())


def reference_of(path: Path) -> pa.Table | None:
    """Return the rows of a file; None if it is damaged or encrypted."""
    try:
        return pq.read_table(path)
    except (OSError, pa.ArrowException):
        return None


BYTES_THAT_ARE_NO_TEXT = {
    f"geography-{shape}.parquet": "well-known binary of shapes"
    for shape in ("lines", "points", "polygons")
}


@pytest.mark.parametrize("path", files_of(PARQUET, "*.parquet*"))
def test_a_parquet_file_comes_back_in_rows_and_schema_or_is_refused(
    path: Path, tmp_path: Path
) -> None:
    column = text_of(path)
    options = [] if column is None else ["--text-column", column]
    out = tmp_path / "out"
    done = run("dedup", path, "--in-format", "parquet", *options, "-o", out)
    reference = None if column is None else reference_of(path)
    if reference is None or path.name in BYTES_THAT_ARE_NO_TEXT:
        assert_is_refused(done, path)
        return
    assert done.exit_code == 0
    (kept,) = (out / "kept").iterdir()
    removed = set(pq.read_table(out / "removed.parquet")["row"].to_pylist())
    stay = [row for row in range(reference.num_rows) if row not in removed]
    table = pq.read_table(kept)
    assert table.schema.equals(reference.schema)
    assert table.equals(reference.take(pa.array(stay, pa.int64())))
    assert kept.suffix != ".parquet" or _codecs(kept) == _written_as(_codecs(path))


def _codecs(path: Path) -> list[str]:
    group = pq.read_metadata(path).row_group(0)
    return [group.column(index).compression for index in range(group.num_columns)]


def _written_as(codecs: list[str]) -> list[str]:
    """Return the codecs of a file in which LZ4, deprecated in two framings, is LZ4_RAW."""
    # pyarrow names LZ4_RAW "LZ4", and Hadoop's framing, which it cannot write, "UNKNOWN".
    return ["LZ4" if codec == "UNKNOWN" else codec for codec in codecs]


@pytest.mark.parametrize("path", files_of(PARQUET, "*lz4*.parquet"))
def test_lz4_of_any_framing_has_the_rows_of_lz4_raw(path: Path, tmp_path: Path) -> None:
    size = "_larger" if "larger" in path.name else ""
    column = "a" if size else "c1"
    raw = pq.read_table(PARQUET / "data" / f"lz4_raw_compressed{size}.parquet")
    result = neardup.dedup(path, text_column=column, output=tmp_path / "out", write="annotated")
    (annotated,) = (tmp_path / "out/annotated").iterdir()
    # One of the writers declares that no value is null, the other does not.
    assert pq.read_table(annotated).select(raw.column_names).to_pydict() == raw.to_pydict()
    assert result.report["counts"]["read"] == raw.num_rows


# Web archives


class Archive(NamedTuple):
    """The pages of an archive by address, each with its length; or why it has none."""

    pages: tuple[tuple[str, int], ...] = ()
    reason: str = ""


EXAMPLE = "http://example.com/"
# The lengths are those of bodies without chunks and compression.
ARCHIVES = {
    "bad.arc": Archive(reason="it is an ARC file"),
    "example-bad-non-chunked.warc.gz": Archive(pages=((EXAMPLE, 1270),)),
    "example-bad.warc.gz.bad": Archive(reason="ends with '.bad'"),
    "example-digest.warc": Archive(reason="its records are 4 request"),
    "example-iana.org-chunked.warc": Archive(pages=(("http://www.iana.org/", 7223),)),
    "example-resource.warc.gz": Archive(pages=((EXAMPLE, 1303),)),
    "example-space-in-target-uri.warc.gz": Archive(reason="1 warcinfo, 1 resource"),
    "example-space-in-url.arc": Archive(reason="it is an ARC file"),
    "example-trunc.warc": Archive(reason="the body is cut short inside its content encoding gzip"),
    "example-wget-bad-target-uri.warc.gz": Archive(pages=((EXAMPLE, 1270),)),
    "example-wrong-chunks.warc.gz": Archive(pages=((EXAMPLE, 1270),)),
    "example.arc": Archive(reason="it is an ARC file"),
    "example.arc.gz": Archive(reason="it is an ARC file"),
    "example.warc": Archive(pages=((EXAMPLE, 1270),)),
    "example.warc.gz": Archive(pages=((EXAMPLE, 1270),)),
    "post-test.warc.gz": Archive(reason="its content type is application/json"),
}


@pytest.mark.parametrize("path", files_of(WARCIO, "*"))
def test_an_archive_has_its_pages_or_a_line_why_it_has_none(path: Path, tmp_path: Path) -> None:
    expected = ARCHIVES[path.name]
    out = tmp_path / "out"
    done = run("dedup", path, "-o", out, "--write", "annotated")
    if not expected.pages:
        assert_is_refused(done, path)
        assert expected.reason in done.stderr
        return
    assert done.exit_code == 0
    (table,) = (out / "annotated").iterdir()
    rows = pq.read_table(table).to_pylist()
    assert tuple((row["url"], len(row["html"].encode())) for row in rows) == expected.pages


# JSON

NOT_A_NUMBER = "Arrow and Python read it, as many writers write it"
DEVIATIONS = {
    "n_number_-NaN.json": NOT_A_NUMBER,
    "n_number_Inf.json": NOT_A_NUMBER,
    "n_number_NaN.json": NOT_A_NUMBER,
    "n_number_infinity.json": NOT_A_NUMBER,
    "n_number_minus_infinity.json": NOT_A_NUMBER,
    "n_string_unescaped_newline.json": "a line end begins another line; as a blank it is right",
}


@pytest.fixture(scope="module")
def rejected(tmp_path_factory: pytest.TempPathFactory) -> set[int]:
    """Return the rejected rows of a file that has each file of the suite as a value, each after a
    good line.
    """
    path = tmp_path_factory.mktemp("json") / "suite.jsonl"
    with path.open("wb") as file:
        for json_file in FILES_OF_JSON:
            value = json_file.read_bytes().replace(b"\n", b" ")
            file.write(b'{"text": "one two three"}\n{"text": "a b c", "value": ' + value + b"}\n")
    out = path.parent / "out"
    report = neardup.dedup(path, output=out, max_unreadable=1.0).report
    rows = [json.loads(line)["row"] for line in (out / "rejected.jsonl").read_text().splitlines()]
    assert report["counts"]["read"] + len(rows) == 2 * len(FILES_OF_JSON)
    return set(rows)


FILES_OF_JSON = sorted(JSON.rglob("*.json"))


@pytest.mark.parametrize("path", files_of(JSON, "*.json"))
def test_a_json_value_is_read_if_and_only_if_it_is_valid(path: Path, rejected: set[int]) -> None:
    row = 2 * FILES_OF_JSON.index(path) + 1
    assert row - 1 not in rejected
    if path.name.startswith("y_") or path.name in DEVIATIONS:
        assert row not in rejected
    elif path.name.startswith("n_"):
        assert row in rejected


@pytest.mark.parametrize("path", files_of(JSON, "*.json"))
def test_a_json_file_has_documents_or_is_refused(path: Path, tmp_path: Path) -> None:
    done = run("dedup", path, "-o", tmp_path / "out", "--text-column", "a")
    report = tmp_path / "out" / "report.json"
    if done.exit_code == 0:
        counts = json.loads(report.read_text())["counts"]
        is_blank = not path.read_bytes().removeprefix(BOM_UTF8).strip()
        assert (counts["read"] > 0) != is_blank
    else:
        assert_is_refused(done, path)
