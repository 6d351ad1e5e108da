"""The command `neardup compare`."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neardup.cli.methods import build_method, method_options
from neardup.cli.settings import SectionedCommand, SectionOption
from neardup.errors import InputError, MissingExtraError, SettingError
from neardup.settings.methods import Method, SimHash
from neardup.settings.shingling import PAGE_TOKENS

if TYPE_CHECKING:
    from neardup.fingerprints.explain import Explanation
    from neardup.results import Comparison
    from neardup.verify.outlines import Outlines


@click.command(cls=SectionedCommand, no_args_is_help=True, short_help="Show how alike two texts are, and where.")
@click.argument("left", metavar="A")
@click.argument("right", metavar="B")
@method_options
@click.option(
    "--explain", is_flag=True, cls=SectionOption, section="Printing",
    help="Print how each text becomes its fingerprint: words, weights, hash bits, sums (--method simhash).",
)  # fmt: skip
@click.option(
    "--full", is_flag=True, cls=SectionOption, section="Printing",
    help="Fold no passage, and with --explain leave out no word, however many there are.",
)  # fmt: skip
@click.option(
    "--plain", is_flag=True, cls=SectionOption, section="Printing",
    help="Mark passages by [-...-] and {+...+}, lines by - and +, instead of colours, as when piped.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, cls=SectionOption, section="Printing", help="Print one JSON object.")
def compare(left: str, right: str, explain: bool, full: bool, plain: bool, as_json: bool, **values: Any) -> None:
    """Compare two texts: how alike they are, by which measures, and where.

    A and B are files of UTF-8 text; one of them may be - for standard input. What only A has is red, what only B
    has is green, and long passages that both have are folded to a few words. Of HTML pages (--method structure, as for
    two files named .html) the outlines stand side by side, a line for each element that shapes the page.

    \b
    Examples:
      neardup compare a.txt b.txt
      neardup compare a.txt b.txt --ngram 3 --threshold 0.7
      neardup compare a.txt b.txt --method simhash --explain
      neardup compare a.html b.html
      curl -s https://example.org/ | neardup compare - saved.html --plain
    """
    if left == right == "-":
        raise InputError("A and B are both standard input. Name a file for one of them.")
    texts = [read_text(name) for name in (left, right)]
    from neardup.api import texts as api
    from neardup.cli import comparison, explanation, summary
    from neardup.cli import outlines as printing
    from neardup.verify.outlines import align_outlines

    method = build_method(values, "structure" if all(map(_is_page, (left, right))) else "minhash")
    result = api.compare(*texts, method=method)
    outlines = align_outlines(*texts) if method.tokens in PAGE_TOKENS else None
    content = None if outlines is None else _compare_content(*texts)
    explained = _explain(texts, method) if explain else []
    if as_json:
        record = _record(result) if outlines is None else _page_record(result, outlines, content)
        if explain:
            record["explanations"] = [asdict(one) for one in explained]
        summary.print_json(record)
    else:
        for name, one in zip((left, right), explained, strict=False):
            explanation.print_explanation(name, one, full=full)
        if outlines is None:
            comparison.print_comparison(result, (left, right), method, plain=plain, full=full)
        else:
            comparison.print_similarity(result, method, others=[_say_content(content)])
            printing.print_outlines(outlines, (left, right), plain=plain, full=full)


def _is_page(name: str) -> bool:
    return name.lower().endswith((".html", ".htm"))


def _compare_content(left: str, right: str) -> Comparison | None:
    """Compare the main texts of two pages; None where nothing is installed that finds them."""
    from neardup.api import texts as api

    try:
        return api.compare(left, right, method="content")
    except MissingExtraError:
        return None


def _say_content(content: Comparison | None) -> tuple[str, str, str]:
    if content is None:
        return "Content", "-", 'pip install "neardup[web]" to compare main texts'
    return "Content", f"{content.similarity:.4f}", "Jaccard similarity of the main texts"


def _explain(texts: list[str], method: Method) -> list[Explanation]:
    """Return how each of the texts becomes its fingerprint."""
    if not isinstance(method, SimHash):
        raise SettingError(
            "--explain shows how a SimHash fingerprint is made: got --method minhash. Add --method simhash."
        )
    from neardup.fingerprints.explain import explain

    return [explain(text, method) for text in texts]


def read_text(name: str) -> str:
    """Return the text of a file, of a page in whatever encoding it has, or of standard input for `-`.

    Raises
    ------
    InputError
        If it cannot be read, or is no page and not UTF-8.
    """
    from neardup.documents.page_charset import decode_page

    shown = "Standard input" if name == "-" else name
    try:
        content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise InputError(f"{shown} cannot be read: {error.strerror}. Name a file of text.") from error
    if _is_page(name):
        return decode_page(content)[0].decode("utf-8")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{shown} is not UTF-8: byte {error.start} is 0x{content[error.start]:02x}. Convert it first, for "
            f"example with `iconv -f LATIN1 -t UTF-8`."
        ) from error


def _record(result: Comparison) -> dict[str, Any]:
    return {
        **result.measures._asdict(),
        **(result.bands._asdict() if result.bands is not None else {}),
        "similarity": result.similarity,
        "threshold": result.threshold,
        "duplicate": result.duplicate,
        "left_passages": [passage._asdict() for passage in result.left_passages],
        "right_passages": [passage._asdict() for passage in result.right_passages],
    }


def _page_record(result: Comparison, outlines: Outlines, content: Comparison | None) -> dict[str, Any]:
    record = {name: value for name, value in _record(result).items() if not name.endswith("_passages")}
    return record | {"content_similarity": None if content is None else content.similarity} | outlines.record()
