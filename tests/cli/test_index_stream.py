"""`neardup index add-if-new --stream`: an answer for each line, as soon as the line has come."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import neardup
from neardup import Index, MinHash
from neardup.api import index_lines
from neardup.cli.index_documents import arriving_lines
from neardup.cli.main import cli

pytestmark = pytest.mark.slow

FOX = "the quick brown fox jumps over the lazy dog near the river bank"
OTHER = "an entirely different sentence about databases and their journals"


@pytest.fixture
def index() -> Iterator[Index]:
    with Index.create("memory:", method=MinHash(threshold=0.6, ngram=2)) as made:
        yield made


def answers_of(index: Index, lines: list[bytes], **options: Any) -> list[dict]:
    """Return the answers to one group of lines."""
    return [answer for _, answer in next(index.answer_lines([lines], **options))]


def told(answers: list[dict]) -> list[object]:
    return [answer.get("error", answer.get("kept")) for answer in answers]


def line(**fields: object) -> bytes:
    return json.dumps(fields).encode()


def test_lines_are_decided_in_their_order(index):
    answers = answers_of(
        index, [line(id="a", text=FOX), line(id="b", text=FOX + "!"), line(id="c", text=OTHER)]
    )
    assert told(answers) == [True, False, True]
    assert (answers[1]["kept_id"], answers[1]["exact"]) == ("a", True)


def test_brackets_lead_into_lists_of_lists(index):
    messages = [{"content": [{"text": FOX}, {"text": OTHER}]}]
    lines = [line(messages=messages), line(messages=[{"content": [{"text": f"{FOX}\n{OTHER}"}]}])]
    answers = answers_of(index, lines, text_column="messages[].content[].text")
    assert told(answers) == [True, False]


def test_dotted_names_lead_into_objects(index):
    columns = {
        "text_column": "response.body",
        "id_column": "request.url",
        "payload_column": ["request.url", "time"],
    }
    page = {"request": {"url": "https://a"}, "response": {"body": FOX}, "time": 7}
    [answer] = answers_of(index, [json.dumps(page).encode()], **columns)
    assert (answer["id"], json.loads(answer["payload"])) == (
        "https://a",
        {"request.url": "https://a", "time": 7},
    )
    assert index.get("https://a").kept


def test_a_name_with_a_dot_is_tried_as_it_is_first(index):
    page = json.dumps({"a.b": FOX, "a": {"b": OTHER}}).encode()
    assert told(answers_of(index, [page], text_column="a.b")) == [True]
    assert index.query(FOX)
    assert not index.query(OTHER)


BAD = {
    "not JSON": b"{broken",
    "empty": b"",
    "a list, not an object": b"[1]",
    "not valid UTF-8": b'{"text": "\xff"}',
    "missing or null": line(id="x"),
    "an element of 'text' is a number": line(id="x", text=[1]),
    "'id' is missing": line(text=FOX),
    "'id' is an object": line(id={}, text=FOX),
    "lone surrogate": b'{"id": "x", "text": "\\ud800"}',
    "more than 100": line(id="x", text="long " * 50),
    "nested too deeply": b'{"id": ' + b"[" * 100_000,
}


@pytest.mark.parametrize("reason", BAD)
def test_a_bad_line_gets_an_error_and_stops_nothing(index, reason):
    lines = [line(id="a", text=FOX), BAD[reason], line(id="b", text=OTHER)]
    answers = answers_of(index, lines, max_document_bytes=100)
    assert told(answers)[0] is True
    assert told(answers)[2] is True
    assert reason in answers[1]["error"]
    assert len(index) == 2


def test_lines_after_a_bad_one_are_left_if_asked(index):
    lines = [line(id="a", text=FOX), b"{broken", line(id="b", text=OTHER)]
    answers = answers_of(index, lines, on_error="stop")
    assert len(answers) == 2
    assert index.get("b") is None


def test_a_group_that_can_be_read_once_only_is_answered(index):
    [answers] = index.answer_lines([iter([line(id="a", text=FOX)])])
    assert [answer["id"] for _, answer in answers] == ["a"]


@pytest.mark.parametrize("text_column", [None, "text"])
def test_an_object_without_a_text_does_not_choose_the_id(index, text_column):
    header = line(id="header", url="header")
    answers = answers_of(index, [header, line(url="a", text=FOX)], text_column=text_column)
    assert (told(answers)[1], answers[1]["id"]) == (True, "a")


def test_the_reason_for_a_bad_line_does_not_name_its_byte_order_mark(index):
    mark = b"\xef\xbb\xbf"
    answers = answers_of(index, [mark, mark + b"[1]"])
    assert told(answers) == ["the line is empty", "the line is a list, not an object"]


def test_lines_without_an_id_get_one(index):
    answers = answers_of(index, [line(text=FOX), line(text=OTHER)])
    assert [index.get(answer["id"]).kept for answer in answers] == [True, True]


def test_a_stream_that_is_sent_again_gets_its_answers(index):
    lines = [line(id="a", text=FOX), line(id="b", text=FOX)]
    first, second = (answers_of(index, lines) for _ in range(2))
    assert told(first) == told(second) == [True, False]
    assert [answer["repeated"] for answer in second] == [True, True]


def groups_of(chunks: list[bytes], tmp_path: Path) -> list[list[bytes]]:
    path = tmp_path / "stream"
    path.write_bytes(b"".join(chunks))
    with path.open("rb") as stream:
        return list(arriving_lines(stream))


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_the_last_line_needs_no_line_end(end, tmp_path):
    assert list(chain.from_iterable(groups_of([b"one\ntwo" + end], tmp_path))) == [b"one", b"two"]


def test_a_line_that_arrives_in_pieces_is_put_together():
    read, write = os.pipe()
    with os.fdopen(read, "rb") as stream:
        lines = arriving_lines(stream)
        os.write(write, b"one\ntw")
        assert next(lines) == [b"one"]
        os.write(write, b"o\n")
        assert next(lines) == [b"two"]
        os.close(write)
        assert list(lines) == []


def test_a_line_that_is_too_long_is_rejected_alone(index, monkeypatch):
    monkeypatch.setattr(index_lines, "MAX_LINE_BYTES", 1000)
    read, write = os.pipe()
    sent = [line(id="a", text=FOX), line(id="b", text="x" * 50_000), line(id="c", text=OTHER)]
    with os.fdopen(read, "rb") as stream:
        lines = arriving_lines(stream)
        os.write(write, sent[0] + b"\n" + sent[1][:1500])
        found = [*next(lines)]
        os.write(write, sent[1][1500:] + b"\n" + sent[2] + b"\n")
        os.close(write)
        found += chain.from_iterable(lines)
    answers = answers_of(index, found)
    assert "more than 1000 bytes" in answers[1]["error"]
    assert [answer.get("id") for answer in answers] == ["a", None, "c"]


@pytest.fixture
def stream(tmp_path: Path) -> Iterator[subprocess.Popen]:
    """Start the command on an index in a folder, with pipes."""
    Index.create(tmp_path / "pages.index", method=MinHash(threshold=0.6, ngram=2)).close()
    command = [
        sys.executable,
        "-m",
        "neardup",
        "index",
        "add-if-new",
        str(tmp_path / "pages.index"),
        "-",
        "--stream",
    ]
    environment = os.environ | {"PYTHONPATH": str(Path(neardup.__file__).parent.parent)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as process:
        yield process
        process.kill()


def test_each_line_is_answered_before_the_next_is_sent(stream, tmp_path):
    for number, (text, kept) in enumerate([(FOX, True), (FOX + "!", False), (OTHER, True)]):
        stream.stdin.write(line(id=f"d{number}", text=text) + b"\n")
        stream.stdin.flush()
        answer = json.loads(stream.stdout.readline())
        assert (answer["id"], answer["kept"]) == (f"d{number}", kept)
    stream.stdin.write(b"{broken\n")
    stream.stdin.close()
    assert "not JSON" in json.loads(stream.stdout.readline())["error"]
    assert stream.wait(timeout=60) == 0
    with Index.open(tmp_path / "pages.index") as index:
        assert len(index) == 2


@pytest.mark.slow
def test_every_answered_line_survives_a_kill(stream, tmp_path):
    stream.stdin.write(line(id="a", text=FOX) + b"\n")
    stream.stdin.flush()
    assert json.loads(stream.stdout.readline())["kept"]
    stream.kill()
    stream.wait(timeout=60)
    with Index.open(tmp_path / "pages.index") as index:
        assert index.get("a").kept


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("in.jsonl", "--stream"), "Name - as the only input"),
        (("-", "--print-kept"), "requires --stream"),
        (
            ("-", "--stream", "--only-new"),
            "limits the documents that -o writes or --print-kept prints: got neither",
        ),
        (("-", "--stream", "-o", "kept.jsonl"), "--output does not go with --stream"),
    ],
)
def test_options_that_do_nothing_beside_stream_are_refused(options, told):
    result = CliRunner().invoke(cli, ["index", "add-if-new", "any.index", *options])
    assert result.exit_code == 2
    assert told in result.stderr


@pytest.mark.slow
def test_kept_lines_are_printed_as_they_came(tmp_path):
    Index.create(tmp_path / "pages.index", method=MinHash(threshold=0.6, ngram=2)).close()
    lines = [line(id="a", text=FOX), line(id="b", text=FOX), b"{broken", line(text=OTHER, id="c")]
    command = [
        sys.executable,
        "-m",
        "neardup",
        "index",
        "add-if-new",
        str(tmp_path / "pages.index"),
        "-",
    ]
    environment = os.environ | {"PYTHONPATH": str(Path(neardup.__file__).parent.parent)}

    def print_kept(*options: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*command, "--stream", "--print-kept", *options],
            input=b"\n".join(lines),
            capture_output=True,
            env=environment,
            check=True,
        )

    done = print_kept()
    assert done.stdout.splitlines() == [lines[0], lines[3]]
    assert b"neardup: rejected line 3: the line is not JSON" in done.stderr
    assert b"neardup: 4 lines: 2 kept, 1 removed, 0 repeated, 1 rejected" in done.stderr
    assert print_kept().stdout == done.stdout
    assert print_kept("--only-new").stdout == b""
    stopped = subprocess.run(
        [*command, "--stream", "--on-error", "stop"],
        input=b"\n".join(lines),
        capture_output=True,
        env=environment,
        check=False,
    )
    assert (stopped.returncode, len(stopped.stdout.splitlines())) == (2, 3)
    assert b"Line 3 cannot be read: the line is not JSON" in stopped.stderr


def test_a_stream_that_cannot_be_read_to_its_end_is_an_error(tmp_path: Path):
    class Broken:
        def fileno(self) -> int:
            return folder

    folder = os.open(tmp_path, os.O_RDONLY)  # reading a folder is an error of the system
    try:
        with pytest.raises(IsADirectoryError):
            list(arriving_lines(Broken()))
    finally:
        os.close(folder)
