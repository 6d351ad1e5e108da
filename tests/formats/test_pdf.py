"""PDF files: the text of their pages, and files that are damaged or made to harm."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner

import neardup
from neardup.cli.main import cli
from neardup.errors import InputError, MissingExtraError
from neardup.formats import pdf as reader
from neardup.formats import pdf_process, registry
from neardup.formats.packages import Unreadable
from reference.office_files import FORMATS, VERSIONS, lines_of, pdf, read

needs_pdfium = pytest.mark.skipif(
    not registry.FORMATS["pdf"].is_installed, reason="without pypdfium2"
)
GOLDEN = (FORMATS / "contract.txt").read_text(encoding="utf-8")

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # the first bytes of an encrypted .docx

LINES = [
    "The river rose by two metres in the night and the bridge in the old town was closed",
    "Milk and bread and butter and a dozen eggs and three lemons and a bag of flour",
]


@pytest.fixture(autouse=True)
def forget_failures():
    yield
    reader._failures.clear()


@needs_pdfium
def test_a_file_of_libreoffice_has_the_words_of_its_author_and_the_numbers_of_its_notes():
    words = reader.text_of((FORMATS / "contract.pdf").read_bytes()).split()
    expected = GOLDEN.replace("the original.", "the original.1").split()
    note = expected.index("Words")
    # A tab is drawn as a distance, which PDFium may take for none.
    written = " ".join([*expected[:note], "1", *expected[note:]])
    assert words == written.replace("Contractor: Ada", "Contractor:Ada").split()


@needs_pdfium
def test_pages_follow_each_other():
    assert lines_of(reader.text_of(pdf("one two", "three"))) == ["one two", "three"]


@needs_pdfium
def test_five_versions_of_a_contract_are_found_side_by_side(tmp_path: Path):
    """Two .docx, an .odt, an .eml and a .pdf, by the default settings."""
    done = CliRunner().invoke(cli, ["dedup", str(VERSIONS), "-o", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    report = json.loads((tmp_path / "out/report.json").read_text())
    assert (report["counts"]["read"], report["counts"]["removed"]) == (5, 4)
    page = (tmp_path / "out/report.html").read_text()
    for name in ("contract-2.odt", "contract-3.docx", "contract-4.eml", "contract-5.pdf"):
        assert name in page
    assert [path.name for path in (tmp_path / "out/kept").iterdir()] == ["contract-1.docx"]


@needs_pdfium
def test_a_file_without_pages_is_named_with_the_reason():
    with pytest.raises(Unreadable, match=r"^it is damaged, or has no pages$"):
        reader.text_of(pdf())


# Files without a text layer.


@needs_pdfium
def test_files_without_a_text_layer_are_kept_counted_and_named(tmp_path: Path):
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(5):
        (folder / f"scan{number}.pdf").write_bytes(pdf("", ""))
    (folder / "text.pdf").write_bytes(pdf(LINES[0]))
    result = neardup.dedup(folder, output=tmp_path / "out")
    assert result.report["counts"]["kept"] == 6
    assert result.report["counts"]["without_features"] == 5
    (warning,) = result.report["warnings"]
    names = ", ".join(str(folder / f"scan{number}.pdf") for number in range(3))
    assert warning == (
        f"No text layer, 0 words, in 5 PDF files: {names} and 2 more. They count as "
        "empty documents, which match nothing. Add a text layer, for example by ocrmypdf."
    )
    assert len(list((tmp_path / "out/kept").iterdir())) == 6


@pytest.mark.slow
@needs_pdfium
def test_files_without_a_text_layer_are_named_against_an_index_too(tmp_path: Path):
    (tmp_path / "scan.pdf").write_bytes(pdf(""))
    with neardup.Index.create(tmp_path / "a.index") as index:
        index.add(LINES[0])
    result = neardup.dedup(tmp_path / "scan.pdf", against=tmp_path / "a.index")
    assert "1 PDF file: " in result.report["warnings"][0]


_NAMED = {
    "dedup": ["dedup", "in", "-o", "out"],
    "find-pairs": ["find-pairs", "in", "-o", "pairs.parquet"],
    "cluster": ["cluster", "in", "-o", "out"],
    "passages": ["passages", "in", "-o", "out", "--write", "removed"],
    "contamination": ["contamination", "in/a.txt", "--corpus", "in", "-o", "out"],
    "contamination, items": ["contamination", "in", "--corpus", "in/a.txt", "-o", "out"],
    "audit": ["audit", "in", "--kept", "in/a.txt", "-o", "out"],
    "sweep": ["sweep", "in", "--thresholds", "0.8"],
    "sign": ["sign", "in", "-o", "signed.parquet"],
    "document-frequencies": ["document-frequencies", "in", "-o", "idf.parquet"],
    "index add": ["index", "add", "a.index", "in"],
    "index add-if-new": ["index", "add-if-new", "a.index", "in"],
    "index query": ["index", "query", "a.index", "in"],
}


def _write_folder() -> None:
    """Write a text, and files that are not read: three for three different reasons, one empty."""
    Path("in").mkdir()
    Path("in/a.txt").write_text(LINES[0])
    Path("in/empty.txt").touch()
    Path("in/scan.pdf").write_bytes(pdf(""))
    Path("in/logo.png").write_bytes(b"\x89PNG")
    Path("in/secret.docx").write_bytes(_OLE + "EncryptedPackage".encode("utf-16-le"))


@needs_pdfium
@pytest.mark.parametrize("command", _NAMED.values(), ids=_NAMED)
def test_each_command_names_the_files_that_it_did_not_read(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    _write_folder()
    neardup.Index.create("a.index").close()
    done = CliRunner().invoke(cli, command)
    assert done.exit_code == 1
    assert "in 1 PDF file: in/scan.pdf." in done.stdout
    assert "Left out 1 file without a known suffix: in/logo.png." in done.stdout
    assert "in/secret.docx: it is encrypted" in done.stderr


@needs_pdfium
@pytest.mark.parametrize("command", ["contamination", "audit"])
def test_a_gate_does_not_pass_over_files_without_a_text_layer(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    _write_folder()
    Path("in/secret.docx").unlink()
    gate = [*_NAMED[command], "--fail-above", "1", "--quiet"]
    done = CliRunner().invoke(cli, gate)
    assert (done.exit_code, "could be read, so --fail-above" in done.stderr) == (4, True)
    assert CliRunner().invoke(cli, [*gate, "--overwrite", "--on-error", "skip"]).exit_code == 0


@needs_pdfium
def test_the_kept_side_of_an_audit_names_the_files_that_it_did_not_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _write_folder()
    result = neardup.audit("in/a.txt", kept="in", on_error="skip")
    assert "without a known suffix: in/logo.png." in " ".join(result.report["warnings"])


@needs_pdfium
def test_compare_refuses_a_file_without_a_text_layer(tmp_path: Path):
    (tmp_path / "scan.pdf").write_bytes(pdf(""))
    with pytest.raises(InputError, match=r"scan\.pdf has no text layer, 0 words"):
        neardup.compare(tmp_path / "scan.pdf", LINES[0])


# Files that cannot be read.

# Page 1 of an encrypted file, by pypdf 7.1: PdfWriter with `encrypt("secret")`.
_ENCRYPTED = FORMATS / "encrypted.pdf"


@needs_pdfium
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it is damaged, or no PDF file"),
        (b"plain text", "it is damaged, or no PDF file"),
        (pdf(LINES[0])[:200], "it is damaged, or no PDF file"),
        (_ENCRYPTED.read_bytes(), "it is encrypted. Save it without a password"),
    ],
    ids=["empty", "text", "cut off", "encrypted"],
)
def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path, data, reason):
    (tmp_path / "a.pdf").write_bytes(data)
    texts, rejected = read(tmp_path / "a.pdf")
    assert texts == []
    assert reason in rejected[0].reason
    assert not rejected[0].reason.endswith(".")
    assert not rejected[0].excluded
    done = CliRunner().invoke(cli, ["dedup", str(tmp_path / "a.pdf"), "-o", str(tmp_path / "out")])
    assert done.exit_code == 1
    assert "a.pdf" in done.stderr


@pytest.mark.slow
@needs_pdfium
def test_no_damage_ends_a_run(tmp_path: Path):
    sound = (FORMATS / "contract.pdf").read_bytes()
    chance = random.Random(11)
    path = tmp_path / "a.pdf"
    for _ in range(60):
        data = bytearray(sound)
        for _ in range(chance.choice((1, 10, 200))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        path.write_bytes(bytes(data))
        texts, rejected = read(path)
        assert len(texts) + len(rejected) == 1


# Limits.


@needs_pdfium
@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no limit of processor time")
def test_a_file_that_takes_too_long_ends_its_process_once_and_the_next_one_is_read(monkeypatch):
    """A page of 8 million glyphs, listed 2,000 times."""
    limited = "import neardup.formats.pdf_process as p; p.MAX_CPU_S = 1; p.main()"
    monkeypatch.setattr(reader, "_CODE", limited)
    reader._forget()
    endless = pdf(
        "x", num_kids=2000, content=b"BT /F 1 Tf " + b"(xxxxxxxx) Tj " * 1_000_000 + b"ET"
    )
    for _ in range(2):
        with pytest.raises(Unreadable, match="PDFium failed: the file is damaged, or takes more"):
            reader.text_of(endless)
    assert len(reader._failures) == 1
    assert reader.text_of(pdf("one")).split() == ["one"]
    reader._forget()


@needs_pdfium
def test_a_file_with_too_much_text_is_refused(monkeypatch):
    limited = "import neardup.formats.pdf_process as p; p.MAX_TEXT_BYTES = 100; p.main()"
    monkeypatch.setattr(reader, "_CODE", limited)
    reader._forget()
    with pytest.raises(Unreadable, match="it has more than 100 bytes of text"):
        reader.text_of(pdf(*LINES))
    reader._forget()


@needs_pdfium
def test_the_limit_of_a_text_is_in_bytes(monkeypatch):
    data = pdf("caf\\351")  # in the standard encoding
    monkeypatch.setattr(pdf_process, "MAX_TEXT_BYTES", 5)
    assert "".join(pdf_process._pages_of(data)).strip() == "cafØ"
    monkeypatch.setattr(pdf_process, "MAX_TEXT_BYTES", 4)
    with pytest.raises(pdf_process._Unreadable, match="more than 4 bytes of text"):
        list(pdf_process._pages_of(data))


@needs_pdfium
@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="no limit of memory")
def test_a_stream_that_expands_to_gigabytes_takes_no_more_memory_than_its_process_may(monkeypatch):
    limited = "import neardup.formats.pdf_process as p; p.MAX_MEMORY_BYTES = 400 << 20; p.main()"
    monkeypatch.setattr(reader, "_CODE", limited)
    reader._forget()
    bomb = pdf("x", content=bytes(600 << 20))
    assert len(bomb) < 1 << 20
    with pytest.raises(Unreadable, match="PDFium failed"):
        reader.text_of(bomb)
    assert reader.text_of(pdf("one")).split() == ["one"]
    reader._forget()


@needs_pdfium
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_process_that_was_killed_is_replaced():
    assert reader.text_of(pdf("one")).split() == ["one"]
    reader._local.process._process.kill()
    assert reader.text_of(pdf("two")).split() == ["two"]
    assert not reader._failures


@needs_pdfium
def test_threads_read_at_once():
    files = [pdf(f"file {number}") for number in range(40)]
    with ThreadPoolExecutor(4) as pool:
        texts = list(pool.map(reader.text_of, files))
    assert [text.split()[1] for text in texts] == [str(number) for number in range(40)]


@pytest.mark.slow
@needs_pdfium
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_starts_its_own(tmp_path: Path):
    (tmp_path / "run.py").write_text(
        "import os\n"
        "from neardup.formats import pdf\n"
        "from reference.office_files import pdf as made\n"
        "assert pdf.text_of(made('one')).split() == ['one']\n"
        "forked = os.fork()\n"
        "if not forked:\n"
        "    assert not pdf._local.__dict__\n"
        "    assert pdf.text_of(made('two')).split() == ['two']\n"
        "    os._exit(0)\n"
        "assert os.waitpid(forked, 0)[1] == 0\n"
        "assert pdf.text_of(made('three')).split() == ['three']\n"
    )
    paths = os.pathsep.join([str(FORMATS.parents[1]), *filter(None, sys.path)])
    subprocess.run(
        [sys.executable, str(tmp_path / "run.py")],
        check=True,
        env={**os.environ, "PYTHONPATH": paths},
    )


# Without the extra.


@pytest.fixture
def without_pdfium(monkeypatch):
    monkeypatch.setattr(registry, "_is_installed", lambda package: False)


@pytest.mark.usefixtures("without_pdfium")
def test_without_the_extra_a_folder_leaves_its_files_out_and_counts_them(tmp_path: Path):
    (tmp_path / "a.pdf").write_bytes(pdf(LINES[0]))
    (tmp_path / "b.txt").write_text(LINES[1])
    result = neardup.dedup(tmp_path)
    assert result.report["counts"]["read"] == 1
    assert result.report["warnings"] == [
        "Left out 1 file for lack of the extra office (pip install 'neardup[office]'): "
        f"{tmp_path / 'a.pdf'}."
    ]


@pytest.mark.usefixtures("without_pdfium")
@pytest.mark.parametrize("options", [{}, {"in_format": "pdf"}], ids=["suffix", "named format"])
@pytest.mark.parametrize("name", ["", "a.pdf"], ids=["folder", "file"])
def test_without_the_extra_a_file_names_the_command_that_installs_it(tmp_path, name, options):
    (tmp_path / "a.pdf").write_bytes(pdf(LINES[0]))
    message = r"a\.pdf needs the package pypdfium2.*pip install \"neardup\[office\]\""
    with pytest.raises(MissingExtraError, match=message):
        neardup.dedup(tmp_path / name if name else tmp_path, **options)
