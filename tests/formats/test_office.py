"""Documents of office programs and books: their texts, and files that are damaged or made to
harm.
"""

from __future__ import annotations

import io
import itertools
import json
import random
import struct
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup.errors import InputError, OutputError
from neardup.formats import docx as docx_reader
from neardup.formats import epub as epub_reader
from neardup.formats import odt as odt_reader
from neardup.formats import packages
from neardup.formats.packages import MAX_DEPTH, MAX_LISTED, MAX_MEMBERS, Package, Unreadable
from neardup.runs.columns import choose_columns
from neardup.runs.input_files import list_inputs
from reference.office_files import (
    FORMATS,
    STRICT_WORD,
    WORD,
    docx,
    epub,
    lines_of,
    odt,
    read,
    relationships,
    zipped,
)

GOLDEN = lines_of((FORMATS / "contract.txt").read_text(encoding="utf-8"))
"""The contract from which LibreOffice 7.4 wrote the files: tools/make_office_fixtures.py."""

TEXT_OF = {"docx": docx_reader.text_of, "odt": odt_reader.text_of, "epub": epub_reader.text_of}


@pytest.mark.parametrize("kind", ["docx", "odt"])
def test_a_document_of_libreoffice_has_the_lines_of_its_author_and_its_notes_last(kind):
    text = TEXT_OF[kind]((FORMATS / f"contract.{kind}").read_bytes())
    assert lines_of(text) == GOLDEN


def test_a_book_of_libreoffice_has_the_lines_of_its_author_and_the_numbers_of_its_notes():
    lines = lines_of(epub_reader.text_of((FORMATS / "contract.epub").read_bytes()))
    expected = [line.replace("the original.", "the original.1") for line in GOLDEN]
    expected[-1] = f"1{GOLDEN[-1]}"
    assert lines == expected


# Elements of Word documents, from ISO/IEC 29500-1.


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<w:p><w:r><w:t>one</w:t></w:r><w:r><w:t> two</w:t></w:r></w:p>", "one two\n"),
        ("<w:p><w:r><w:t>one</w:t><w:tab/><w:t>two</w:t></w:r></w:p>", "one\ttwo\n"),
        ("<w:p><w:r><w:t>one</w:t><w:br/><w:t>two</w:t></w:r></w:p>", "one\ntwo\n"),
        ("<w:p><w:r><w:t>e</w:t><w:noBreakHyphen/><w:t>mail</w:t></w:r></w:p>", "e-mail\n"),
        ("<w:p><w:pPr><w:tabs><w:tab/></w:tabs></w:pPr><w:r><w:t>one</w:t></w:r></w:p>", "one\n"),
        ("<w:p><w:ins><w:r><w:t>new</w:t></w:r></w:ins></w:p>", "new\n"),
        ("<w:p><w:del><w:r><w:delText>old</w:delText></w:r></w:del></w:p>", "\n"),
        ("<w:p><w:moveFrom><w:r><w:t>old</w:t></w:r></w:moveFrom></w:p>", "\n"),
        ("<w:p><w:r><w:instrText>PAGE</w:instrText></w:r></w:p>", "\n"),
        (
            "<w:p><mc:AlternateContent><mc:Choice><w:r><w:t>box</w:t></w:r></mc:Choice>"
            "<mc:Fallback><w:r><w:t>box</w:t></w:r></mc:Fallback></mc:AlternateContent></w:p>",
            "box\n",
        ),
        (
            "<w:tbl><w:tblPr/><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r>"
            "<w:t>b</w:t></w:r></w:p></w:tc></w:tr></w:tbl>",
            "a\nb\n",
        ),
        (
            "<w:p><w:r><w:t>one</w:t><w:txbxContent><w:p><w:r><w:t>box</w:t></w:r></w:p>"
            "</w:txbxContent></w:r></w:p>",
            "one\nbox\n\n",
        ),
        (
            "<w:p><w:r><w:ruby><w:rt><w:r><w:t>kan</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>漢</w:t>"
            "</w:r></w:rubyBase></w:ruby></w:r></w:p>",
            "漢\n",
        ),
    ],
    ids=[
        *("runs", "tab", "break", "hyphen", "tab stop", "insertion", "deletion", "move", "field"),
        *("alternative", "table", "text box", "ruby"),
    ],
)
@pytest.mark.parametrize("namespace", [WORD, STRICT_WORD], ids=["transitional", "strict"])
def test_the_text_of_a_word_document_is_the_one_of_the_finished_document(body, expected, namespace):
    assert docx_reader.text_of(docx(body, namespace=namespace)) == expected


def test_footnotes_and_endnotes_follow_the_text():
    def line(text):
        return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"

    data = docx(
        line("text"),
        endnotes=f"<w:endnote>{line('end')}</w:endnote>",
        footnotes=f"<w:footnote>{line('foot')}</w:footnote>",
    )
    assert docx_reader.text_of(data) == "text\nfoot\nend\n"


def test_the_document_is_the_part_that_the_package_names():
    body = f'<w:document xmlns:w="{WORD}"><w:p><w:r><w:t>one</w:t></w:r></w:p></w:document>'
    data = zipped({"_rels/.rels": relationships(officeDocument="/a/../b.xml"), "b.xml": body})
    assert docx_reader.text_of(data) == "one\n"


# Elements of OpenDocument, from ISO/IEC 26300-1.


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<text:h>Head</text:h><text:p>one <text:span>two</text:span></text:p>", "Head\none two\n"),
        ('<text:p>one<text:s text:c="999999999999"/>two</text:p>', "one two\n"),
        (
            "<text:p>one<text:s/>two<text:tab/>three<text:line-break/></text:p>",
            "one two\tthree\n\n",
        ),
        ("<text:tracked-changes><text:p>old</text:p></text:tracked-changes>", ""),
        (
            "<text:p>one<office:annotation><text:p>why</text:p></office:annotation></text:p>",
            "one\n",
        ),
        (
            "<text:p>one<text:note><text:note-citation>1</text:note-citation><text:note-body>"
            "<text:p>foot</text:p></text:note-body></text:note> two</text:p>",
            "one two\nfoot\n",
        ),
        (
            "<text:p>one<draw:text-box><text:p>box</text:p></draw:text-box></text:p>",
            "one\nbox\n\n",
        ),
        (
            '<text:p>one<draw:frame xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible'
            ':1.0"><draw:image/><svg:title>T</svg:title><svg:desc>a map</svg:desc></draw:frame> two'
            "</text:p>",
            "one two\n",
        ),
        ("<text:p><text:ruby-text>kan</text:ruby-text>漢</text:p>", "漢\n"),
    ],
    ids=[
        *("heading", "many blanks", "marks", "deletion"),
        *("comment", "note", "text box", "picture", "ruby"),
    ],
)
def test_the_text_of_an_open_document_is_the_one_of_the_finished_document(body, expected):
    assert odt_reader.text_of(odt(body)) == expected


# The rules again, in plain recursion over a tree.

_TAG = f"{{{WORD}}}"
_HIDDEN = {_TAG + name for name in ("del", "moveFrom", "pPr")}
_MARKS = {_TAG + "tab": "\t", _TAG + "br": "\n", _TAG + "txbxContent": "\n"}


def naive_text(element: ElementTree.Element) -> str:
    if element.tag in _HIDDEN:
        return ""
    text = element.text or "" if element.tag == _TAG + "t" else _MARKS.get(element.tag, "")
    text += "".join(map(naive_text, element))
    return text + "\n" if element.tag == _TAG + "p" else text


elements = st.recursive(
    st.sampled_from(["<w:t>one</w:t>", "<w:t>two </w:t>", "<w:tab/>", "<w:br/>", "loose"]),
    lambda inner: st.builds(
        lambda name, inside: f"<w:{name}>{''.join(inside)}</w:{name}>",
        st.sampled_from(["p", "r", "del", "ins", "moveFrom", "pPr", "txbxContent", "tbl"]),
        st.lists(inner, max_size=4),
    ),
    max_leaves=20,
)


@given(st.lists(elements, max_size=4))
def test_any_tree_has_the_text_of_plain_recursion(bodies):
    root = f'<w:document xmlns:w="{WORD}">{"".join(bodies)}</w:document>'
    assert docx_reader.text_of(docx("".join(bodies))) == naive_text(ElementTree.fromstring(root))


# Books.


def page(text: str) -> str:
    return f'<html xmlns="http://www.w3.org/1999/xhtml"><body><p>{text}</p></body></html>'


def test_the_pages_of_a_book_are_read_in_the_order_of_its_spine_each_once():
    book = epub({"a.xhtml": page("one"), "b.xhtml": page("two")}, ["b.xhtml", "a.xhtml", "b.xhtml"])
    assert epub_reader.text_of(book) == "two\none"


def test_a_page_is_decoded_by_its_declaration_and_its_name_is_percent_encoded():
    latin = f'<?xml version="1.0" encoding="iso-8859-1"?>{page("Müll")}'.encode("latin-1")
    container = epub({"a b.xhtml": latin})
    members = {
        info.filename: zipfile.ZipFile(io.BytesIO(container)).read(info)
        for info in zipfile.ZipFile(io.BytesIO(container)).infolist()
    }
    listed = members["book/package.opf"].replace(b'href="a b.xhtml"', b'href="a%20b.xhtml"')
    assert epub_reader.text_of(zipped(members | {"book/package.opf": listed})) == "Müll"


def test_the_path_of_the_list_of_pages_is_percent_encoded():
    container = zipfile.ZipFile(io.BytesIO(epub({"a.xhtml": page("one")})))
    members = {
        info.filename.replace("book/", "a book/"): container.read(info)
        for info in container.infolist()
    }
    name = "META-INF/container.xml"
    members[name] = members[name].replace(b'"book/', b'"a%20book/')
    assert epub_reader.text_of(zipped(members)) == "one"


def encryption(name: str) -> str:
    return f'<encryption><CipherReference URI="{name}"/></encryption>'


def test_a_book_with_encrypted_fonts_is_read_and_one_with_encrypted_pages_is_not():
    pages = {"a.xhtml": page("one")}
    assert epub_reader.text_of(epub(pages, encryption=encryption("book/font.otf"))) == "one"
    with pytest.raises(Unreadable, match="it is encrypted"):
        epub_reader.text_of(epub(pages, encryption=encryption("book/a.xhtml")))


# Files that cannot be read.

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500)
_PARAGRAPH = "<w:p><w:r><w:t>one</w:t></w:r></w:p>"


def with_flag(data: bytes) -> bytes:
    """Return a ZIP file whose members are marked as encrypted."""
    marked = bytearray(data)
    for magic, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        position = data.find(magic)
        while position >= 0:
            marked[position + offset] |= 1
            position = data.find(magic, position + 1)
    return bytes(marked)


def with_offset(data: bytes, offset: int) -> bytes:
    """Return a ZIP file whose first member has an offset of 64 bits (APPNOTE, section 4.5.3)."""
    begin = data.index(b"PK\x01\x02")
    member = bytearray(data)
    extra = struct.pack("<HHQ", 1, 8, offset)
    name_length = struct.unpack_from("<H", member, begin + 28)[0]
    struct.pack_into("<H", member, begin + 30, len(extra))
    struct.pack_into("<I", member, begin + 42, 2**32 - 1)
    end = begin + 46 + name_length
    member[end:end] = extra
    directory = member.rindex(b"PK\x05\x06")
    struct.pack_into("<I", member, directory + 12, directory - begin)
    return bytes(member)


def entities(body: str) -> bytes:
    """Return a document that declares an entity and uses it."""
    names = {"_rels/.rels": relationships(officeDocument="d.xml")}
    xml = f'<!DOCTYPE w [<!ENTITY a "aaaa">]><w:document xmlns:w="{WORD}">{body}</w:document>'
    return zipped(names | {"d.xml": xml})


DAMAGED = {
    "not a ZIP file": (b"plain text", "it is damaged, or no file of its suffix"),
    "empty": (b"", "it is damaged, or no file of its suffix"),
    "cut off": (docx(_PARAGRAPH * 50)[:-40], "it is damaged, or no file of its suffix"),
    "password": (_OLE + "EncryptedPackage".encode("utf-16-le"), "it is encrypted"),
    "old Office": (_OLE + bytes(64), "it is a file of Office before 2007"),
    "encrypted member": (with_flag(docx(_PARAGRAPH)), "it is encrypted"),
    "offset": (
        with_offset(zipped({"_rels/.rels": relationships()}), 2**63),
        "the file is damaged: Python int too large",
    ),
    "another ZIP file": (zipped({"a.txt": "x"}), "it is a ZIP file, but not of Word"),
    "missing member": (
        zipped({"_rels/.rels": relationships(officeDocument="no.xml")}),
        "it has no member no.xml",
    ),
    "spreadsheet": (
        zipped({"_rels/.rels": relationships(officeDocument="w.xml"), "w.xml": "<workbook/>"}),
        "it is of another kind: its first element is workbook",
    ),
    "entities": (entities("<w:p><w:r><w:t>&a;</w:t></w:r></w:p>"), "its XML declares entities"),
    "not well-formed": (docx("<w:p>"), "the file is damaged: mismatched tag"),
    "unknown encoding": (
        zipped({"_rels/.rels": '<?xml version="1.0" encoding="x-none"?><a/>'}),
        "the file is damaged: unknown encoding: x-none",
    ),
    "lzma": (
        zipped({"_rels/.rels": relationships(officeDocument="w.xml")}, zipfile.ZIP_LZMA),
        "is not compressed by deflate",
    ),
    "too many members": (
        zipped({"_rels/.rels": relationships()}) + b"PK\x01\x02" * (MAX_MEMBERS + 1),
        "it has more than 50,000 members",
    ),
    "too many listed": (
        zipped({"_rels/.rels": f"<a>{'<b/>' * MAX_LISTED}</a>"}),
        "one of its lists has more than 100,000 elements",
    ),
}


@pytest.mark.parametrize(("data", "reason"), DAMAGED.values(), ids=DAMAGED)
def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path, data, reason):
    path = tmp_path / "a.docx"
    path.write_bytes(data)
    texts, rejected = read(path)
    assert texts == []
    (row,) = rejected
    assert row.file == str(path)
    assert reason in row.reason
    assert not row.excluded


def test_an_encrypted_open_document_is_named():
    manifest = '<manifest xmlns="m"><file-entry><encryption-data/></file-entry></manifest>'
    with pytest.raises(Unreadable, match="it is encrypted"):
        odt_reader.text_of(odt("<text:p>x</text:p>", manifest=manifest))


# Bombs.


@pytest.mark.slow
def test_a_member_that_expands_too_much_is_not_read_to_its_end():
    blanks = " " * (65 << 20)
    data = docx(f"<w:p>{blanks}</w:p>")
    assert len(data) < 200 << 10
    with pytest.raises(OSError, match="it expands to more than 200 times its size"):
        docx_reader.text_of(data)


@pytest.mark.slow
def test_a_member_that_is_longer_than_it_declares_is_damaged():
    """A member that declares one byte, and has 65 MiB: it is not decompressed."""
    data = bytearray(docx(f"<w:p>{' ' * (65 << 20)}</w:p>"))
    for magic, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        position = data.find(magic)
        while position >= 0:
            data[position + offset : position + offset + 4] = (1).to_bytes(4, "little")
            position = data.find(magic, position + 1)
    with pytest.raises(zipfile.BadZipFile, match="Bad CRC-32"):
        docx_reader.text_of(bytes(data))


def test_members_are_bounded_together_whatever_their_ratio(monkeypatch):
    monkeypatch.setattr(packages, "MAX_XML_BYTES", 4000)
    package = Package(zipped({"a": bytes(3000), "b": bytes(3000)}, zipfile.ZIP_STORED))
    package.read("a")
    with pytest.raises(Unreadable, match="its text takes more than 4000 bytes of XML"):
        package.read("b")


def test_elements_may_be_nested_to_a_depth():
    def nested(depth: int) -> bytes:
        return docx("<w:r>" * depth + "<w:t>deep</w:t>" + "</w:r>" * depth)

    # Outside of them are the document and its body.
    assert docx_reader.text_of(nested(MAX_DEPTH - 3)) == "deep"
    with pytest.raises(Unreadable, match="its elements are nested deeper than 10,000 levels"):
        docx_reader.text_of(nested(MAX_DEPTH - 2))


def test_a_file_above_the_limit_is_excluded(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(packages, "MAX_FILE_BYTES", 1000)
    (tmp_path / "a.docx").write_bytes(docx(_PARAGRAPH) + bytes(1000))
    texts, rejected = read(tmp_path / "a.docx")
    assert texts == []
    assert rejected[0].excluded
    assert rejected[0].too_long


def test_a_file_that_is_gone_is_named_as_one_that_cannot_be_opened(tmp_path: Path):
    path = tmp_path / "a.docx"
    path.write_bytes(docx(_PARAGRAPH))
    (file,) = list_inputs([str(path)])
    path.unlink()
    with pytest.raises(InputError, match=r"Cannot open .*a\.docx: it is no longer there"):
        list(file.read(choose_columns([file]), print))


SOUND = {
    "docx": docx(_PARAGRAPH * 3, footnotes=_PARAGRAPH),
    "odt": odt("<text:p>one</text:p>" * 3),
    "epub": epub({"a.xhtml": page("one"), "b.xhtml": page("two")}),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SOUND)
def test_no_damage_is_an_error_of_the_run(tmp_path: Path, kind):
    """Each file with some bytes changed, or cut off, has a text or is rejected."""
    chance = random.Random(kind)
    path = tmp_path / f"a.{kind}"
    num_rejected = 0
    for _ in range(300):
        data = bytearray(SOUND[kind])
        for _ in range(chance.choice((1, 1, 3, 10))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        if chance.random() < 0.2:
            del data[chance.randrange(len(data)) :]
        path.write_bytes(bytes(data))
        texts, rejected = read(path)
        assert len(texts) + len(rejected) == 1
        num_rejected += len(rejected)
    assert 30 < num_rejected < 300


# Folders.


def test_a_folder_of_all_formats_is_one_collection(tmp_path: Path):
    texts = ["The river rose by two metres in the night and the bridge was closed for a week."]
    texts.append("Milk, bread, butter, a dozen eggs, three lemons and a bag of flour for the cake.")
    folder = tmp_path / "in"
    folder.mkdir()
    for number, text in enumerate(texts):
        (folder / f"{number}.txt").write_text(text)
        (folder / f"{number}.docx").write_bytes(docx(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"))
        (folder / f"{number}.odt").write_bytes(odt(f"<text:p>{text}</text:p>"))
        (folder / f"{number}.epub").write_bytes(epub({"a.xhtml": page(text)}))
        (folder / f"{number}.eml").write_text(f"From: a@example.org\n\n{text}\n")
        (folder / f"{number}.mbox").write_text(f"From a\nFrom: a@example.org\n\n{text}\n")
    (folder / "~$0.docx").write_bytes(b"lock")
    result = neardup.dedup(folder, output=tmp_path / "out")
    assert result.report["counts"]["read"] == 12
    assert result.report["counts"]["removed_exact"] == 10
    ids = set(result.removed["id"].to_pylist()) | set(result.removed["kept_id"].to_pylist())
    names = itertools.product("01", ("txt", "docx", "odt", "epub", "eml", "mbox:0"))
    assert ids == {str(folder / f"{number}.{kind}") for number, kind in names}
    assert "~$0.docx" in " ".join(result.report["warnings"])
    kept = sorted(path.name for path in (tmp_path / "out/kept").iterdir())
    # A mailbox is written without its messages, as other files of several documents are.
    assert kept == ["0.docx", "0.mbox", "1.docx", "1.mbox"]
    assert (tmp_path / "out/kept/0.docx").read_bytes() == (folder / "0.docx").read_bytes()


@pytest.mark.parametrize("pattern", ["*.docx", "**/*.docx"])
def test_a_pattern_leaves_out_the_locks_of_open_documents(tmp_path: Path, pattern):
    (tmp_path / "a.docx").write_bytes(docx(_PARAGRAPH))
    (tmp_path / "~$a.docx").write_bytes(b"lock")
    assert neardup.dedup(str(tmp_path / pattern)).report["counts"]["read"] == 1


def test_two_documents_are_compared_by_their_texts(tmp_path: Path):
    result = neardup.compare(FORMATS / "contract.docx", FORMATS / "contract.odt")
    assert result.similarity == 1
    (tmp_path / "a.docx").write_bytes(b"x")
    with pytest.raises(InputError, match=r"a\.docx cannot be read: it is damaged"):
        neardup.compare(tmp_path / "a.docx", FORMATS / "contract.odt")


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.docm", "docx"), ("a.dotx", "docx"), ("a.DOTM", "docx"), ("a.ott", "odt")],
)
def test_templates_and_documents_with_macros_are_read_as_their_package_is(
    tmp_path: Path, name, kind
):
    (tmp_path / name).write_bytes(SOUND[kind])
    (tmp_path / f"b.{kind}").write_bytes(SOUND[kind])
    assert neardup.dedup(tmp_path).report["counts"]["removed_exact"] == 1


def test_the_only_message_of_a_mailbox_is_compared_by_its_text(tmp_path: Path):
    one = b"From a@b Mon Jan  5 10:00:00 2026\nSubject: Report\nX-Mailer: x\n\nall is well\n\n"
    (tmp_path / "a.mbox").write_bytes(one)
    assert neardup.compare(tmp_path / "a.mbox", "Report\nall is well").similarity == 1
    (tmp_path / "b.mbox").write_bytes(one + one)
    with pytest.raises(InputError, match=r"b\.mbox has several messages, and compare takes one"):
        neardup.compare(tmp_path / "b.mbox", tmp_path / "a.mbox")
    (tmp_path / "c.mbox").touch()
    with pytest.raises(InputError, match=r"c\.mbox cannot be read: it is empty"):
        neardup.compare(tmp_path / "c.mbox", tmp_path / "a.mbox")


def test_a_notebook_is_compared_by_its_cells(tmp_path: Path):
    cell = {"cell_type": "code", "source": ["one = 1\n", "two = 2"], "metadata": {}}
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "a.ipynb").write_text(json.dumps(notebook))
    assert neardup.compare(tmp_path / "a.ipynb", "one = 1\ntwo = 2").similarity == 1


@pytest.mark.parametrize(
    ("name", "reason"),
    [("folder.docx", "Is a directory"), ("*.docx", "No such file or directory")],
    ids=["folder", "pattern"],
)
def test_a_folder_or_a_pattern_is_no_document_to_compare(tmp_path: Path, name, reason):
    folder = tmp_path / "folder.docx"
    folder.mkdir()
    (folder / "a.docx").write_bytes(SOUND["docx"])
    (folder / "b.docx").write_bytes(SOUND["docx"])
    (tmp_path / "a.docx").write_bytes(SOUND["docx"])
    (tmp_path / "b.docx").write_bytes(SOUND["docx"])
    with pytest.raises(InputError, match=f"cannot be read: {reason}. Pass a text file"):
        neardup.compare(tmp_path / name, FORMATS / "contract.odt")


@pytest.mark.parametrize("kind", [*SOUND, "eml"])
def test_parts_of_a_document_cannot_be_cut(tmp_path: Path, kind):
    path = tmp_path / f"a.{kind}"
    path.write_bytes(SOUND.get(kind, b"Subject: s\n\none"))
    with pytest.raises(OutputError, match=r"Parts of a text cannot be cut from .*a\."):
        neardup.remove_passages(path, output=tmp_path / "out")
    found = neardup.remove_passages(path, output=tmp_path / "out", write="removed")
    assert found.report["counts"]["read"] == 1
