"""Documents of office programs, books and PDF files made by hand, so that tests can break them."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

from neardup.documents.batch import Rejected
from neardup.runs.columns import choose_columns
from neardup.runs.input_files import list_inputs
from reference.places import REPOSITORY, TESTS

VERSIONS = REPOSITORY / "examples/data/contract"
FORMATS = TESTS / "data/office"

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
STRICT_WORD = "http://purl.oclc.org/ooxml/wordprocessingml/main"
_RELATIONSHIPS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_OFFICE = "urn:oasis:names:tc:opendocument:xmlns:office:1.0"
_TEXT = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
_DRAWING = "urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"


def zipped(members: Mapping[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a ZIP file of some members."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return data.getvalue()


def relationships(**targets: str) -> str:
    """Return relationships by the end of their type."""
    entries = "".join(
        f'<Relationship Id="{kind}" Type="{_RELATIONSHIPS}/{kind}" Target="{target}"/>'
        for kind, target in targets.items()
    )
    return f'<Relationships xmlns="urn:relationships">{entries}</Relationships>'


def docx(body: str, *, namespace: str = WORD, **others: str) -> bytes:
    """Return a Word document. others : further parts, "footnotes" or "endnotes"."""

    def part(name: str, inside: str) -> str:
        return (
            f'<w:{name} xmlns:w="{namespace}" '
            f'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006">'
            f"{inside}</w:{name}>"
        )

    members = {
        "_rels/.rels": relationships(officeDocument="word/document.xml"),
        "word/document.xml": part("document", f"<w:body>{body}</w:body>"),
        "word/_rels/document.xml.rels": relationships(**{name: f"{name}.xml" for name in others}),
    }
    members |= {f"word/{name}.xml": part(name, inside) for name, inside in others.items()}
    return zipped(members)


def odt(body: str, **others: str) -> bytes:
    """Return a text of OpenDocument. others : "manifest"."""
    content = (
        f'<office:document-content xmlns:office="{_OFFICE}" xmlns:text="{_TEXT}" '
        f'xmlns:draw="{_DRAWING}"><office:body><office:text>{body}</office:text></office:body>'
        "</office:document-content>"
    )
    manifest = others.get("manifest", "<manifest/>")
    return zipped({"content.xml": content, "META-INF/manifest.xml": manifest})


CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile '
    'full-path="book/package.opf" media-type="application/oebps-package+xml"/></rootfiles>'
    "</container>"
)


def epub(pages: Mapping[str, str | bytes], order: list[str] | None = None, **others: str) -> bytes:
    """Return a book. order : the names of its pages in reading order. others : "encryption"."""
    items = "".join(
        f'<item id="{name}" href="{name}" media-type="application/xhtml+xml"/>' for name in pages
    )
    spine = "".join(f'<itemref idref="{name}"/>' for name in order or pages)
    members = {
        "META-INF/container.xml": CONTAINER,
        "book/package.opf": (
            f'<package xmlns="http://www.idpf.org/2007/opf"><manifest>{items}</manifest>'
            f"<spine>{spine}</spine></package>"
        ),
        **{f"book/{name}": page for name, page in pages.items()},
    }
    if "encryption" in others:
        members["META-INF/encryption.xml"] = others["encryption"]
    return zipped(members)


def pdf(*pages: str, num_kids: int | None = None, content: bytes | None = None) -> bytes:
    """Return a PDF file with a line of ASCII on each page, none for "".

    num_kids : how often the page tree lists each page. content : the drawing of all pages instead.
    """
    objects: dict[int, bytes] = {1: b"<</Type/Catalog/Pages 2 0 R>>"}
    kids = [f"{4 + 2 * index} 0 R" for index in range(len(pages))] * (num_kids or 1)
    count = len(kids)
    objects[2] = f"<</Type/Pages/Count {count}/Kids[{' '.join(kids)}]>>".encode()
    objects[3] = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
    for index, line in enumerate(pages):
        number = 4 + 2 * index
        drawn = f"BT /F 12 Tf 72 700 Td ({line}) Tj ET".encode() if line else b"0 0 m 9 9 l S"
        stream = zlib.compress(drawn if content is None else content, 9)
        objects[number] = (
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents {number + 1} 0 R"
            "/Resources<</Font<</F 3 0 R>>>>>>"
        ).encode()
        head = f"<</Length {len(stream)}/Filter/FlateDecode>>\nstream\n".encode()
        objects[number + 1] = head + stream + b"\nendstream"
    data = b"%PDF-1.4\n"
    offsets = []
    for number in sorted(objects):
        offsets.append(len(data))
        data += f"{number} 0 obj\n".encode() + objects[number] + b"\nendobj\n"
    entries = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    size = len(offsets) + 1
    table = f"xref\n0 {size}\n0000000000 65535 f \n{entries}trailer\n<</Size {size}/Root 1 0 R>>\n"
    return data + table.encode() + f"startxref\n{len(data)}\n%%EOF\n".encode()


def lines_of(text: str) -> list[str]:
    """Return the lines of a text that have words, with single blanks."""
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def read(path: Path) -> tuple[list[str], list[Rejected]]:
    """Return the texts of a file, and the rows that were rejected."""
    rejected: list[Rejected] = []
    (file,) = list_inputs([str(path)])
    columns = choose_columns([file])
    texts = [
        text for batch in file.read(columns, rejected.append) for text in batch.text.to_pylist()
    ]
    return texts, rejected


Reader = Callable[[bytes], str]
