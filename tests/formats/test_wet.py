"""WET files: web archives of texts. The records are those of Common Crawl's files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import neardup
from neardup.errors import InputError
from reference.warc_files import info, members, page, read, record

PLAIN = "text/plain"
WORDS = "one two three four five six seven eight nine ten"
WATER = "water boils at a hundred degrees and freezes at zero near the sea"


def text(words: str, name: str = "a", *, kind: str = "conversion", media_type: str = PLAIN):
    """Return the record of a text, with the field of Common Crawl for its languages."""
    made = record(kind, words.encode(), f"http://{name}.test/", content_type=media_type)
    return made.replace(
        b"Content-Type", b"WARC-Identified-Content-Language: eng,fra\r\nContent-Type", 1
    )


@pytest.mark.parametrize("name", ["a.wet", "a.warc.wet", "a.warc.wet.gz", "A.WET.GZ"])
def test_each_conversion_is_a_document_by_its_url(tmp_path: Path, name: str) -> None:
    records = [info(), text(WORDS, "one"), record("metadata", b"x: y"), text("zwei", "two")]
    path = tmp_path / name
    path.write_bytes(members(*records) if name.lower().endswith("gz") else b"".join(records))
    found, left_out = read(path)
    assert found == {"http://one.test/": (1, WORDS), "http://two.test/": (3, "zwei")}
    assert left_out == []


def test_a_text_is_no_html(tmp_path: Path) -> None:
    words = "if a < b <p> then &amp; stays\n\n<b>so do line ends"
    path = tmp_path / "a.wet"
    path.write_bytes(info() + text(words))
    found, _ = read(path)
    assert found == {"http://a.test/": (1, words)}


def test_the_columns_are_the_fields_of_the_record(tmp_path: Path) -> None:
    path = tmp_path / "a.wet.gz"
    path.write_bytes(members(info(), text(WORDS, "one"), text(WORDS, "two")))
    out = tmp_path / "out"
    neardup.dedup(path, keep="last", within="language", output=out, write="annotated")
    (file,) = (out / "annotated").rglob("*.parquet")
    row, _ = pq.read_table(file).to_pylist()
    assert (row["url"], row["language"], row["text"]) == ("http://one.test/", "eng,fra", WORDS)
    assert row["date"].isoformat() == "2024-05-06T07:08:09+00:00"


@pytest.mark.parametrize("name", ["in.wet", "in.warc.wet.gz"])
def test_kept_records_stand_byte_for_byte_with_those_about_the_file(tmp_path: Path, name) -> None:
    first, copy, other = text(WORDS, "one"), text(WORDS, "two"), text(WATER, "three")
    join = members if name.endswith("gz") else lambda *records: b"".join(records)
    (tmp_path / name).write_bytes(join(info(), first, copy, record("metadata", b"x: y"), other))
    neardup.dedup(tmp_path / name, output=tmp_path / "out")
    assert (tmp_path / "out/kept" / name).read_bytes() == join(info(), first, other)


@pytest.mark.parametrize("name", ["in.wet", "in.wet.gz"])
def test_a_passage_is_cut_from_a_record_whose_header_stays_true(tmp_path: Path, name) -> None:
    repeated = " ".join(f"word{number}" for number in range(80))
    texts = [f"{repeated} {WATER}.", f"Begin. {repeated} {WORDS} é"]
    records = [text(words, f"t{number}") for number, words in enumerate(texts)]
    data = members(info(), *records) if name.endswith("gz") else info() + b"".join(records)
    (tmp_path / name).write_bytes(data)
    neardup.remove_passages(tmp_path / name, output=tmp_path / "out")
    kept = tmp_path / "out/kept" / name
    found, rejected = read(kept)
    assert rejected == []
    (_, first), (_, second) = found.values()
    assert first == texts[0]
    assert len(second) < len(texts[1]) - 300
    assert second.endswith(f"{WORDS} é")
    raw = gzip.decompress(kept.read_bytes()) if name.endswith("gz") else kept.read_bytes()
    changed = raw[raw.index(b"http://t1.test/") :]
    assert b"WARC-Block-Digest" not in changed
    assert b"Content-Length: %d\r\n" % len(second.encode()) in changed
    assert raw.count(b"WARC-Block-Digest") == 2  # of the record about the file, and the first


def test_a_blank_before_a_colon_does_not_hide_a_field_that_changes(tmp_path: Path) -> None:
    repeated = " ".join(f"word{number}" for number in range(80))
    texts = [f"{repeated} {WATER}.", f"Begin. {repeated} {WORDS}"]
    fields = (b"Content-Length", b"WARC-Block-Digest")
    data = b"".join(text(words, f"t{number}") for number, words in enumerate(texts))
    for name in fields:
        data = data.replace(name + b":", name + b" :")
    (tmp_path / "in.wet").write_bytes(data)
    neardup.remove_passages(tmp_path / "in.wet", output=tmp_path / "out")
    found, rejected = read(tmp_path / "out/kept/in.wet")
    assert rejected == []
    assert len(found) == 2
    written = (tmp_path / "out/kept/in.wet").read_bytes()
    assert written.count(b"WARC-Block-Digest") == 1  # of the first text, which did not change


def test_contamination_is_found_in_it(tmp_path: Path) -> None:
    question = "which planet of the sun has the shortest year and no moon at all, as far as we know"
    (tmp_path / "items.jsonl").write_text(json.dumps({"question": question}))
    (tmp_path / "crawl.wet").write_bytes(info() + text(f"{WATER} {question} {WORDS}"))
    found = neardup.find_contamination(tmp_path / "items.jsonl", tmp_path / "crawl.wet")
    assert found.hits["document_id"].to_pylist() == ["http://a.test/"]


def test_texts_that_a_program_stored_are_read_and_other_records_named(tmp_path: Path) -> None:
    path = tmp_path / "a.wet"
    path.write_bytes(
        text(WORDS, "one", kind="resource")
        + text("%PDF", "two", media_type="application/pdf")
        + page(b"<p>three", "http://three.test/")
        + text("", "four")
    )
    found, left_out = read(path)
    assert found == {"http://one.test/": (0, WORDS), "http://four.test/": (3, "")}
    assert [row.reason.partition(":")[0] for row in left_out] == [
        "the record is a conversion of application/pdf",
        "the record is a response of application/http",
    ]


def test_a_text_that_is_not_utf_8_is_rejected_with_its_byte(tmp_path: Path) -> None:
    path = tmp_path / "a.wet"
    bad = record("conversion", b"caf\xe9 au lait", "http://b.test/", content_type=PLAIN)
    path.write_bytes(text(WORDS) + bad)
    found, (rejected,) = read(path)
    assert list(found) == ["http://a.test/"]
    assert rejected.reason == (
        "the text is not valid UTF-8: invalid continuation byte at byte 3 of the text"
    )


def test_a_page_that_is_stored_as_a_resource_is_a_page_and_its_text_is_none(tmp_path: Path) -> None:
    stored = record("resource", b"<p>page", "http://b.test/", content_type="text/html")
    derived = record("resource", b"page", "urn:text:http://b.test/", content_type=PLAIN)
    view = record("resource", b"<p>view", "urn:view:http://b.test/", content_type="text/html")
    picture = record("resource", b"\x89PNG", "http://b.test/a.png", content_type="image/png")
    path = tmp_path / "a.warc"
    path.write_bytes(info() + stored + derived + view + picture)
    found, left_out = read(path)
    assert found == {"http://b.test/": (1, "<p>page")}
    assert ["--in-format wet" in row.reason for row in left_out] == [True, True]


@pytest.mark.parametrize("version", [b"WARC/0.17", b"WARC/0.18", b"WARC/1.1"])
def test_the_drafts_of_the_format_are_read(tmp_path: Path, version: bytes) -> None:
    path = tmp_path / "a.wet"
    path.write_bytes((info() + text(WORDS)).replace(b"WARC/1.0", version))
    found, left_out = read(path)
    assert (list(found), left_out) == (["http://a.test/"], [])


@pytest.mark.parametrize(
    ("name", "advice"),
    [("a.arc.gz", "warcio recompress"), ("a.arc", "before WARC"), ("a.warc.wat.gz", "no texts")],
)
def test_formats_beside_it_are_refused_with_the_next_step(tmp_path: Path, name, advice) -> None:
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(InputError, match=advice):
        neardup.dedup(tmp_path / name)


@pytest.mark.parametrize("name", ["a.warc", "a.wet.gz"])
def test_an_archive_of_other_records_is_named_with_what_it_has(tmp_path: Path, name: str) -> None:
    records = [info(), record("request", b"GET /"), record("request", b"GET /a")]
    data = members(*records) if name.endswith("gz") else b"".join(records)
    (tmp_path / name).write_bytes(data)
    found, (rejected,) = read(tmp_path / name)
    assert found == {}
    assert rejected.rest_of_file
    assert rejected.reason == ("the archive has no document: its records are 2 request, 1 warcinfo")
