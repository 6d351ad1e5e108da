"""Messages and mailboxes: the text of a message is the one that Python's own parser finds, and
nobody's message takes long.
"""

from __future__ import annotations

import email
import mailbox
import random
import subprocess
import time
from email import policy
from email.message import EmailMessage
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup.documents.batch import BLOCK_BYTES
from neardup.formats import mail, registry
from neardup.formats.message_text import MAX_DEPTH, MAX_PARTS, BadMessage, text_of_message
from reference.office_files import VERSIONS, lines_of, read

FIELDS = "From: Ada <ada@example.org>\nSubject: Report\n"


def message(*lines: str, fields: str = FIELDS) -> bytes:
    return (fields + "\n".join(lines)).encode()


def test_the_message_of_a_contract_has_its_subject_and_its_plain_text():
    """The fixture: plain text in quoted-printable beside HTML, and an attachment."""
    data = (VERSIONS / "contract-4.eml").read_bytes()
    body = email.message_from_bytes(data, policy=policy.default).get_body(("plain",))
    assert body is not None
    expected = ["Service agreement – for signature", *lines_of(body.get_content())]
    assert lines_of(text_of_message(data)) == expected
    assert "VCARD" not in text_of_message(data)


@pytest.mark.parametrize(
    ("fields", "body", "expected"),
    [
        ("", b"one\r\ntwo", "Report\none\ntwo"),
        ("Content-Type: text/html\n", b"<p>one</p><p>two</p>", "Report\none\ntwo"),
        ("Content-Type: text/plain; charset=koi8-r\n", "мир".encode("koi8-r"), "Report\nмир"),
        ("Content-Type: text/plain; charset=gb2312\n", "鎔基".encode("gb18030"), "Report\n鎔基"),
        ("Content-Type: text/plain; charset=nobody\n", "Müll".encode(), "Report\nMüll"),
        ("", "Müll".encode("cp1252"), "Report\nMüll"),
        ("Content-Type: text/plain; charset*=a\0b''x\n", "Müll".encode(), "Report\nMüll"),
        ("Content-Transfer-Encoding: base64\n", b"b25l\nIHR3bw==", "Report\none two"),
        ("Content-Transfer-Encoding: quoted-printable\n", b"one=20t=\nwo", "Report\none two"),
        ("Content-Disposition: attachment\n", b"one", "Report"),
        ("Content-Type: image/png\n", b"one", "Report"),
    ],
    ids=[
        *("plain", "html", "koi8-r", "gb2312", "unknown charset", "no charset"),
        *("damaged charset", "base64"),
        *("quoted-printable", "attachment", "image"),
    ],
)
def test_a_body_is_decoded_as_its_header_says(fields, body, expected):
    assert text_of_message(f"{FIELDS}{fields}\n".encode() + body) == expected


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        (b"Plain", "Plain"),
        (b"=?utf-8?q?M=C3=BCll?=", "Müll"),
        (b"=?utf-8?b?TcO8?= =?utf-8?b?bGw=?=", "Müll"),
        (b"=?koi8-r?b?zcnS?= =?utf-8?q?_?= and more", "мир  and more"),
        (b"a long\n subject\r\n\twith folds", "a long subject\twith folds"),
        ("Müll".encode(), "Müll"),
        ("Müll".encode("cp1252"), "Müll"),
        (b"=?utf-8?b?!?=", "=?utf-8?b?!?="),
        (b"=?nobody?q?one?=", "one"),
        (rb"=?utf-8?q?M=C3=BCll?= in C:\users\U and \u0041", r"Müll in C:\users\U and \u0041"),
        (rb"=?utf-8?q?a\u0041?= \-", r"a\u0041 \-"),
        (rb"C:\users", r"C:\users"),
    ],
    ids=[
        *("plain", "q", "adjacent", "mixed", "folded", "utf-8", "cp1252", "bad base64"),
        *("unknown charset", "backslashes", "a backslash inside", "a path"),
    ],
)
def test_a_subject_is_decoded(subject, expected):
    assert text_of_message(b"Subject: " + subject + b"\n\nbody") == f"{expected}\nbody"


@pytest.mark.parametrize(
    ("fields", "body"),
    [
        (b"Content-Type: text/plain; charset=gb2312\n", "一切照旧"),
        (b"Content-Type: text/plain; charset=gb2312\n", "ok"),
        (
            b"Content-Type: multipart/mixed; boundary=x\n",
            "--x\nContent-Type: text/plain; charset=gbk\n\n一切照旧\n--x--\n",
        ),
    ],
    ids=["declared", "declared, of ASCII", "of a part"],
)
def test_a_subject_that_is_not_utf_8_has_the_encoding_of_the_body(fields, body):
    for subject, encoding in [("会议通知", "gbk"), ("会议通知", "utf-8")]:
        data = fields + b"Subject: " + subject.encode(encoding) + b"\n\n" + body.encode("gbk")
        assert text_of_message(data).startswith("会议通知\n")


@pytest.mark.parametrize(
    "begin",
    [b"", b"\xef\xbb\xbf", b"\r\n\n", b"From a@b Mon Jan  5 10:00:00 2026\n"],
    ids=["nothing", "mark", "empty lines", "line of a mailbox"],
)
def test_a_message_may_begin_with_what_an_editor_or_a_mailbox_adds(tmp_path: Path, begin):
    (tmp_path / "a.eml").write_bytes(begin + message("", "one"))
    assert read(tmp_path / "a.eml") == (["Report\none"], [])


def test_a_message_without_a_subject_is_its_body():
    assert text_of_message(b"From: a\n\nbody") == "body"


# The rules again, by Python's own parser, in plain recursion.


def naive_texts(part: EmailMessage) -> list[tuple[str, str]]:
    """Return the kind and the text of each part to read."""
    kind = part.get_content_type()
    if not part.is_multipart():
        is_text = kind in ("text/plain", "text/html") and not part.is_attachment()
        return [(kind, part.get_content())] if is_text else []
    found = [naive_texts(inner) for inner in part.iter_parts()]
    found = [texts for texts in found if any(text.strip() for _, text in texts)]
    if kind == "multipart/alternative":
        plain = [texts for texts in found if any(kind == "text/plain" for kind, _ in texts)]
        return (plain or found or [[]])[0]
    if kind == "multipart/related":
        return (found or [[]])[0]
    return [text for texts in found for text in texts]


def leaf(kind: str, text: str, encoding: str, is_attached: bool) -> EmailMessage:
    part = EmailMessage()
    content = f"<p>{text}</p>" if kind == "html" else text
    part.set_content(content, subtype=kind, cte=encoding)
    if is_attached:
        part["Content-Disposition"] = "attachment"
    return part


def multipart(kind: str, parts: list[EmailMessage]) -> EmailMessage:
    whole = EmailMessage()
    whole["Content-Type"] = f"multipart/{kind}"
    for part in parts:
        whole.attach(part)
    return whole


messages = st.recursive(
    st.builds(
        leaf,
        st.sampled_from(["plain", "html", "calendar"]),
        st.sampled_from(["one", "two words", "", "--line", "Müll"]),
        st.sampled_from(["base64", "quoted-printable"]),
        st.booleans(),
    ),
    lambda inner: st.builds(
        multipart,
        st.sampled_from(["mixed", "alternative", "related", "signed"]),
        st.lists(inner, min_size=1, max_size=4),
    ),
    max_leaves=8,
)


@given(messages)
def test_any_message_has_the_texts_that_the_parser_of_python_finds(whole):
    data = b"Subject: s\n" + whole.as_bytes()
    parsed = email.message_from_bytes(data, policy=policy.default)
    assert isinstance(parsed, EmailMessage)
    expected = [text.replace("<p>", "").replace("</p>", "") for _, text in naive_texts(parsed)]
    assert text_of_message(data).split() == ["s", *"\n".join(expected).split()]


MIXED = 'Content-Type: multipart/mixed; boundary="x"\n'


def parts(*bodies: str, last: str = "--x--\n") -> bytes:
    return message(*(f"--x\n{body}" for body in bodies), last, fields=f"{FIELDS}{MIXED}\n")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (parts("\none", "\ntwo"), "Report\none\ntwo"),
        (parts("\none", "\ntwo", last=""), "Report\none\ntwo"),
        (parts("\none --x two", "\n--xy"), "Report\none --x two\n--xy"),
        (parts("\none").replace(b"\n", b"\r\n"), "Report\none"),
        (parts("\none").replace(b"--x\n", b"--x  \t\n"), "Report\none"),
    ],
    ids=["two", "cut off", "boundary inside a line", "crlf", "blanks after the boundary"],
)
def test_parts_end_at_the_lines_of_their_boundary(data, expected):
    assert "\n".join(lines_of(text_of_message(data))) == expected


def test_a_footer_beside_a_page_does_not_hide_it():
    """A mailing list adds plain text to messages of HTML: `get_body` of Python has only that."""
    data = parts("Content-Type: text/html\n\n<p>page</p>", "\nlist footer")
    assert text_of_message(data).split() == ["Report", "page", "list", "footer"]


# Messages that cannot be read.


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it is no message"),
        (b"plain text", "it is no message"),
        (message("", "x", fields=f"{FIELDS}{MIXED}"), "its parts cannot be found"),
        (
            message("", "x", fields=f"{FIELDS}Content-Type: multipart/mixed\n"),
            "its parts cannot be found",
        ),
        (
            message("", "x", fields=f"{FIELDS}Content-Type: multipart/mixed; boundary*=a\0b''x\n"),
            "its parts cannot be found",
        ),
        (parts(*["\nx"] * (MAX_PARTS + 1)), "it has more than 1,000 parts"),
        (FIELDS.encode() + b"X: y\n" * 60_000, "a header is longer than 262144 bytes"),
        (
            message("", "x", fields=f"{FIELDS}Content-Type: text/plain{';a=b' * 2000}\n"),
            "a content type has more than 4096 characters",
        ),
        (
            message("", "x", fields=f"{FIELDS}Content-Type: application/pkcs7-mime\n"),
            "its text is encrypted",
        ),
    ],
    ids=[
        *("empty", "no field", "no boundary line", "no boundary", "damaged boundary"),
        *("many parts", "long header", "long field", "S/MIME"),
    ],
)
def test_a_message_that_cannot_be_read_is_named_with_the_reason(tmp_path, data, reason):
    path = tmp_path / "a.eml"
    path.write_bytes(data)
    texts, rejected = read(path)
    assert texts == []
    assert reason in rejected[0].reason
    assert not rejected[0].excluded


def nested(depth: int) -> bytes:
    header = b'Content-Type: multipart/mixed; boundary="b%d"\n\n--b%d\n'
    headers = [header % (level, level) for level in range(depth)]
    return b"".join([b"Subject: s\n", *headers, b"\ntext\n"])


def test_parts_may_be_nested_to_a_depth():
    assert text_of_message(nested(MAX_DEPTH)) == "s\ntext\n"
    with pytest.raises(BadMessage, match="in more than 20 levels"):
        text_of_message(nested(MAX_DEPTH + 1))
    with pytest.raises(BadMessage, match="in more than 20 levels"):
        text_of_message(nested(100_000))


@pytest.mark.timing
@pytest.mark.parametrize(
    "data",
    [
        FIELDS.encode() + b"Content-Type: text/plain" + b';a="' * 1000 + b"\n\nx",
        b"Subject: " + b"=?utf-8?q?" * 20_000 + b"\n\nx",
        b"Subject: " + b"=?a?q?b?= " * 400 + b"\n\nx",
        parts(*["\n" + "--x " * 20] * 900),
        message("", "=" * (8 << 20), fields=f"{FIELDS}Content-Transfer-Encoding: base64\n"),
        message(
            "", "=\n" * (2 << 20), fields=f"{FIELDS}Content-Transfer-Encoding: quoted-printable\n"
        ),
    ],
    ids=["quotes", "words", "more words", "boundaries", "base64", "quoted-printable"],
)
def test_a_message_takes_linear_time(data):
    text_of_message(FIELDS.encode() + b"\nx")
    begun = time.process_time()
    text_of_message(data)
    assert time.process_time() - begun < 1


@pytest.mark.slow
def test_no_damage_is_an_error_of_the_run(tmp_path: Path):
    """The contract with bytes of its header, or of all of it, changed has a text or is rejected."""
    sound = (VERSIONS / "contract-4.eml").read_bytes()
    chance = random.Random(7)
    path = tmp_path / "a.eml"
    alphabet = bytes(range(256)) + b'"=;:\n-?<>' * 30
    for _ in range(400):
        data = bytearray(sound)
        size = chance.choice((700, len(data)))
        for _ in range(chance.choice((1, 3, 10))):
            data[chance.randrange(size)] = chance.choice(alphabet)
        path.write_bytes(bytes(data))
        texts, rejected = read(path)
        assert len(texts) + len(rejected) == 1


# Mailboxes.


def mailbox_of(*messages: bytes) -> bytes:
    return b"".join(b"From a@b Mon Jan  5 10:00:00 2026\n" + each + b"\n\n" for each in messages)


def test_a_mailbox_of_git_has_a_message_for_each_commit(tmp_path: Path):
    def git(*arguments: str) -> bytes:
        name = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
        command = ["git", *name, "-c", "core.hooksPath=/dev/null", *arguments]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True).stdout

    git("init", "-q")
    for number in range(3):
        (tmp_path / "a.txt").write_text(f"line {number}\n")
        git("add", "a.txt")
        git("commit", "-q", "-m", f"Müll number {number}")
    (tmp_path / "a.mbox").write_bytes(git("format-patch", "--root", "--stdout"))
    texts, rejected = read(tmp_path / "a.mbox")
    assert rejected == []
    assert [text.splitlines()[0] for text in texts] == [
        f"[PATCH {number + 1}/3] Müll number {number}" for number in range(3)
    ]


bodies = st.lists(
    st.sampled_from(["one", "", "From here", ">From", ">From there", "From", "two words"]),
    max_size=6,
)


@given(st.lists(bodies, max_size=6))
def test_a_mailbox_has_the_messages_that_python_puts_into_it(tmp_path_factory, lists):
    path = tmp_path_factory.mktemp("mail") / "a.mbox"
    box = mailbox.mbox(path)
    for lines in lists:
        box.add(message("", *lines))
    box.close()
    texts, rejected = read(path)
    assert rejected == []
    # Python quotes a line only if it begins with "From ", so a quoted one loses its quote.
    expected = [
        ["Report", *(line.replace(">From ", "From ") for line in lines if line)] for lines in lists
    ]
    assert [lines_of(text) for text in texts] == expected


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_messages_are_removed_and_the_others_are_written_as_they_were(tmp_path, line_end, suffix):
    import gzip

    words = "The river rose by two metres in the night and the bridge was closed."
    many = [message("", words), message("", "Another one: milk, bread, eggs."), message("", words)]
    data = mailbox_of(*many).replace(b"\n", line_end)
    path = tmp_path / f"a.mbox{suffix}"
    path.write_bytes(gzip.compress(data) if suffix else data)
    result = neardup.dedup(path, output=tmp_path / "out")
    assert result.removed["id"].to_pylist() == [f"{path}:2"]
    assert result.removed["kept_id"].to_pylist() == [f"{path}:0"]
    assert result.removed["row"].to_pylist() == [2]
    written = (tmp_path / f"out/kept/a.mbox{suffix}").read_bytes()
    expected = mailbox_of(*many[:2]).replace(b"\n", line_end)
    assert (gzip.decompress(written) if suffix else written) == expected


def test_messages_that_cannot_be_read_are_named_by_row_and_byte(tmp_path: Path):
    first = mailbox_of(message("", "one"))
    (tmp_path / "a.mbox").write_bytes(first + mailbox_of(b"no field") + first)
    texts, rejected = read(tmp_path / "a.mbox")
    assert len(texts) == 2
    (row,) = rejected
    assert (row.row, row.byte) == (1, len(first))
    assert "the message cannot be read: it is no message" in row.reason


def test_a_message_longer_than_the_limit_is_excluded_and_the_next_one_read(tmp_path, monkeypatch):
    monkeypatch.setattr(mail, "MAX_MESSAGE_BYTES", 1 << 20)
    long = message("", "x" * (3 * BLOCK_BYTES))
    data = mailbox_of(message("", "one"), long, message("", "two"))
    (tmp_path / "a.mbox").write_bytes(data)
    texts, rejected = read(tmp_path / "a.mbox")
    assert [text.split()[-1] for text in texts] == ["one", "two"]
    (row,) = rejected
    assert row.excluded
    assert row.too_long
    assert row.row == 1
    (tmp_path / "a.eml").write_bytes(long)
    texts, rejected = read(tmp_path / "a.eml")
    assert texts == []
    assert rejected[0].too_long


def test_the_limit_of_a_message_does_not_depend_on_the_block_in_which_it_is_read(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(mail, "MAX_MESSAGE_BYTES", 1000)
    data = mailbox_of(*[message("", "x" * 2000)] * 3)
    assert len(data) < BLOCK_BYTES
    (tmp_path / "a.mbox").write_bytes(data)
    texts, rejected = read(tmp_path / "a.mbox")
    assert texts == []
    assert [(row.row, row.excluded, row.too_long) for row in rejected] == [
        (row, True, True) for row in range(3)
    ]


@pytest.mark.parametrize("size", range(1, 40))
def test_messages_are_found_however_the_file_is_read(size, monkeypatch):
    import io

    data = mailbox_of(message("", "one"), message("", "", "two", ""), message("", ">From x"))
    monkeypatch.setattr(mail, "BLOCK_BYTES", size)
    found = [each for some in mail._messages_in(io.BytesIO(data), b"") for each in some]
    assert b"".join(each.data for each in found) == data
    assert [each.row for each in found] == [0, 1, 2]
    assert [data[each.byte :].startswith(each.data) for each in found] == [True] * 3


def test_a_mailbox_may_begin_with_a_mark_which_its_first_message_keeps(tmp_path: Path):
    data = b"\xef\xbb\xbf" + mailbox_of(message("", "one"), message("", "two"))
    (tmp_path / "a.mbox").write_bytes(data)
    texts, rejected = read(tmp_path / "a.mbox")
    assert ([text.split() for text in texts], rejected) == (
        [["Report", "one"], ["Report", "two"]],
        [],
    )
    neardup.dedup(tmp_path / "a.mbox", output=tmp_path / "out")
    assert (tmp_path / "out/kept/a.mbox").read_bytes() == data
    assert registry.format_of_bytes(data) == "mbox"


def test_a_file_that_is_no_mailbox_is_named(tmp_path: Path):
    (tmp_path / "a.mbox").write_text("plain text\n")
    texts, rejected = read(tmp_path / "a.mbox")
    assert texts == []
    assert "the file is no mailbox" in rejected[0].reason
    (tmp_path / "b.mbox").write_bytes(b"")
    assert read(tmp_path / "b.mbox") == ([], [])
