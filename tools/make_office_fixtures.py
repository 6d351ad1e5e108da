"""Write examples/data/contract and tests/data/office again, by the programs that people use.

LibreOffice Writer makes the .docx, .odt, .pdf and .epub files from flat OpenDocument, Python's
package email the message. Run: python tools/make_office_fixtures.py (needs soffice).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent
VERSIONS_FOLDER = REPOSITORY / "examples/data/contract"
"""Five versions of a contract."""
FORMATS_FOLDER = REPOSITORY / "tests/data/office"
"""One version in each format, and its text."""

TITLE = "Service agreement"
PARTIES = (
    "This agreement is made on {date} between Northwind Bakery Ltd, of 12 Harbour Street, "
    "Bristol (the “Client”), and Ada Quill, translator, of 4 Mill Lane, Bath (the "
    "“Contractor”)."
)
CLAUSES = [
    "The Contractor translates the recipes, menus and letters that the Client sends her "
    "from French and German into English. Each order is made by e-mail and names the text, "
    "the language and the day on which the translation is due.",
    "The Contractor delivers the translation as a text file. If she sees that she cannot "
    "deliver it in time, she says so at once, and both parties agree on another day.",
    "The Client pays {price} pounds for each thousand words of the original. The Contractor "
    "sends an invoice at the end of the month, and the Client pays it within {days} days.",
    "If an order is changed after work on it has begun, the Contractor is paid for the "
    "words that she has translated. If it is cancelled, the Client pays half of the price "
    "of all other words.",
    "The Client owns the translation once it is paid. Until then the Contractor may ask for "
    "it back, and the Client may not print it.",
    "The Contractor answers the questions of the cooks about her translation without a fee "
    "for three months. Mistakes that the Client finds in this time are corrected within two "
    "working days.",
    "The Contractor keeps the recipes secret, also after this agreement has ended. She may "
    "not work for another bakery in Bristol while it lasts.",
    "The Contractor may have a text translated by a colleague if the Client has agreed to "
    "it in writing. She then answers for the work of the colleague as for her own.",
    "Names of dishes stay in the language of the original unless the Client wishes "
    "otherwise. Weights are given in grams, temperatures in degrees Celsius, and times in "
    "minutes.",
    "The Client prints the name of the Contractor in each book that contains her "
    "translations, and sends her two copies of it. On menus and letters her name is not "
    "printed.",
    "Either party may end this agreement at the end of a month by a letter that the other "
    "has at least {notice} weeks before. Orders that were made until then are still "
    "delivered and paid.",
    "Changes of this agreement are made in writing and signed by both parties. If one of "
    "its clauses is void, the others stay in force.",
    "The law of England and Wales applies. Before they go to a court, the parties try to "
    "agree with the help of a mediator whom both of them trust.",
]
NOTE = "Words are counted by the program of the Contractor; figures count as words."
LAST = "Signed in two copies, one for each party."

FLAT = """<?xml version="1.0" encoding="UTF-8"?>
<office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
 xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"
 xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"
 xmlns:dc="http://purl.org/dc/elements/1.1/" office:version="1.2"
 office:mimetype="application/vnd.oasis.opendocument.text"><office:body><office:text>
{changes}<text:h text:outline-level="1">{title}</text:h>
{paragraphs}
<table:table table:name="Rates"><table:table-column table:number-columns-repeated="2"/>
<table:table-row><table:table-cell><text:p>French</text:p></table:table-cell>
<table:table-cell><text:p>{price} pounds</text:p></table:table-cell></table:table-row>
<table:table-row><table:table-cell><text:p>German</text:p></table:table-cell>
<table:table-cell><text:p>{price} pounds</text:p></table:table-cell></table:table-row>
</table:table>
<text:p>Client:<text:tab/>Northwind Bakery<text:line-break/>Contractor:<text:tab/>Ada   <text:s
text:c="3"/>Quill</text:p>
<text:p>{last}</text:p>
</office:text></office:body></office:document>
"""
CHANGES = """<text:tracked-changes><text:changed-region text:id="ct1"><text:deletion>
<office:change-info><dc:creator>Ada</dc:creator><dc:date>2026-01-31T12:00:00</dc:date>
</office:change-info><text:p>Deleted words about penalties.</text:p></text:deletion>
</text:changed-region></text:tracked-changes>"""
COMMENT = """<office:annotation><dc:creator>Ada</dc:creator><text:p>A comment that nobody
should read.</text:p></office:annotation>"""
FOOTNOTE = """<text:note text:note-class="footnote"><text:note-citation>1</text:note-citation>
<text:note-body><text:p>{note}</text:p></text:note-body></text:note>"""

VERSIONS = {
    "contract-1": {"date": "2 February 2026", "price": 90, "days": 30, "notice": "four"},
    "contract-2": {"date": "2 February 2026", "price": 95, "days": 30, "notice": "four"},
    "contract-3": {"date": "9 February 2026", "price": 95, "days": 21, "notice": "four"},
    "contract-4": {"date": "9 February 2026", "price": 95, "days": 21, "notice": "six"},
    "contract-5": {"date": "16 February 2026", "price": 95, "days": 21, "notice": "six"},
}
FORMATS = {
    "contract-1": "docx",
    "contract-2": "odt",
    "contract-3": "docx",
    "contract-4": "eml",
    "contract-5": "pdf",
}


def clauses_of(values: dict[str, object]) -> list[str]:
    return [PARTIES.format(**values), *(clause.format(**values) for clause in CLAUSES)]


def flat(values: dict[str, object], *, deletes: bool) -> str:
    """Return a contract as flat OpenDocument, with a comment and a footnote.

    deletes : whether words are deleted in it, and marked as changed.
    """
    paragraphs = [f"<text:p>{clause}</text:p>" for clause in clauses_of(values)]
    paragraphs[0] = paragraphs[0].replace("</text:p>", f"{COMMENT}</text:p>")
    if deletes:
        change = '<text:change text:change-id="ct1"/></text:p>'
        paragraphs[2] = paragraphs[2].replace("</text:p>", change)
    paragraphs[3] = paragraphs[3].replace(
        "the original.", f"the original.{FOOTNOTE.format(note=NOTE)}"
    )
    return FLAT.format(
        title=TITLE,
        changes=CHANGES if deletes else "",
        paragraphs="\n".join(paragraphs),
        last=LAST,
        **values,
    )


def plain(values: dict[str, object]) -> str:
    """Return the lines that a reader of a contract sees, the footnote last."""
    price = f"{values['price']} pounds"
    table = ["French", price, "German", price]
    signatures = ["Client:\tNorthwind Bakery", "Contractor:\tAda    Quill"]
    lines = [TITLE, *clauses_of(values), *table, *signatures, LAST, NOTE]
    return "".join(f"{line}\n" for line in lines)


def message(values: dict[str, object]) -> bytes:
    """Return a contract as a message of plain text and HTML, with an attachment."""
    mail = EmailMessage(SMTP)
    mail["From"] = "Ada Quill <ada@example.org>"
    mail["To"] = "Northwind Bakery <office@example.com>"
    mail["Date"] = "Mon, 09 Feb 2026 10:00:00 +0000"
    mail["Message-ID"] = "<contract-4@example.org>"
    mail["Subject"] = f"{TITLE} – for signature"
    clauses = clauses_of(values)
    rates = "French {price} pounds\nGerman {price} pounds".format(**values)
    mail.set_content("\n\n".join([*clauses, rates, NOTE, LAST]))
    html = "".join(f"<p>{clause}</p>" for clause in clauses)
    mail.add_alternative(f"<html><body><h1>{TITLE}</h1>{html}</body></html>", subtype="html")
    mail.add_attachment(
        b"BEGIN:VCARD\nFN:Ada Quill\nEND:VCARD\n", "text", "vcard", filename="a.vcf"
    )
    mail.set_boundary("boundary-of-the-message")
    inner = next(mail.iter_parts())
    inner.set_boundary("boundary-of-the-texts")
    return mail.as_bytes()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, values in VERSIONS.items():
            kind = FORMATS[name]
            if kind == "eml":
                VERSIONS_FOLDER.mkdir(parents=True, exist_ok=True)
                (VERSIONS_FOLDER / f"{name}.eml").write_bytes(message(values))
                continue
            source = Path(folder, f"{name}.fodt")
            source.write_text(flat(values, deletes=kind != "pdf"), encoding="utf-8")
            convert(source, kind, VERSIONS_FOLDER)
        # One contract in all formats: their texts are compared.
        source = Path(folder, "contract.fodt")
        source.write_text(flat(VERSIONS["contract-4"], deletes=False), encoding="utf-8")
        for kind in ("docx", "odt", "pdf", "epub"):
            convert(source, kind, FORMATS_FOLDER)
    text = plain(VERSIONS["contract-4"])
    (FORMATS_FOLDER / "contract.txt").write_text(text, encoding="utf-8")


def convert(source: Path, kind: str, folder: Path) -> None:
    command = ["soffice", "--headless", "--convert-to", kind, "--outdir", str(folder), str(source)]
    subprocess.run(command, check=True, stdout=sys.stderr)


if __name__ == "__main__":
    main()
