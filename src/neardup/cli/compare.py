"""The command `neardup compare`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

import neardup
from neardup.cli import render
from neardup.cli.methods import build_method, method_options
from neardup.cli.running import print_json
from neardup.cli.settings import PRINTING, command, is_set, option, settings_options
from neardup.cli.sources import json_option
from neardup.errors import InputError, MissingExtraError
from neardup.files import JsonObject
from neardup.report.wording import say, speaking
from neardup.settings.run import OutputSettings

if TYPE_CHECKING:
    from neardup.fingerprints.explain import Explanation, SignatureExplanation
    from neardup.results import Comparison


@command(
    "Compare two texts, and show where they differ.",
    common="method threshold max_distance tokens ngram",
)
@click.argument("left", metavar="A")
@click.argument("right", metavar="B")
@method_options
@option(
    "--explain",
    PRINTING,
    "Show how the fingerprints are computed and found: shingles, minima and bands of MinHash; "
    "words, weights, bits, sums and blocks of SimHash.",
)
@option("--full", PRINTING, "Show all passages in full, and with --explain all words.")
@option(
    "--plain",
    PRINTING,
    (
        "Mark differences with [-...-] and {+...+}, or - and + before lines, instead of colours. "
        "The default when piped."
    ),
)
@settings_options(OutputSettings, PRINTING, only=("lang",))
@json_option
def compare(
    left: str, right: str, explain: bool, full: bool, plain: bool, lang: str, **values: Any
) -> None:
    """Compare two texts: their similarity by several measures, and their differences.

    A and B are files of UTF-8 text, pages, or documents (.docx, .odt, .epub, .eml, .mbox of one
    message, .ipynb, .pdf); one of them can be - for standard input. Text only in A is red, text
    only in B is green, and long common passages are shortened. Of HTML pages (--method structure,
    the default for two .html files) the outlines are shown side by side.

    \b
    Examples:
      neardup compare a.txt b.txt --method simhash --explain
      neardup compare a.html b.html
      curl -s https://example.org/ | neardup compare - saved.html --plain
    """
    if left == right == "-":
        raise InputError("A and B are both standard input. Name a file for one of them.")
    from neardup.api.texts import default_method, text_of

    sides = [_side(name) for name in (left, right)]
    method = build_method(values, default_method(*sides))
    result = neardup.compare(*sides, method=method)
    # A MinHash or SimHash explanation is of one text, so each side is explained by itself;
    # `print_explanations` relates the two.
    explained = [neardup.explain(text_of(side), method=method) for side in sides] if explain else []
    if is_set("as_json"):
        print_json(_record(result, explained))
        return
    with speaking(lang):
        if explained:
            render.explain.print_explanations((left, right), explained, method, full=full)
        if result.outlines is None:
            render.compare.print_comparison(result, (left, right), method, plain=plain, full=full)
        else:
            # Pages with outlines are compared by their structure: the similarity of their main
            # texts is shown beside it.
            content = _content_row(_content_of(result))
            render.compare.print_similarity(result, method, others=[content])
            render.outlines.print_outlines(result.outlines, (left, right), plain=plain, full=full)


def _side(name: str) -> str | Path:
    """Return the text of standard input for `-`, otherwise the path."""
    if name != "-":
        return Path(name)
    from neardup.api.texts import decode_text
    from neardup.runs.spool import standard_input

    return decode_text(standard_input().read(), "Standard input")


def _content_of(result: Comparison) -> Comparison | None:
    """Return the comparison of the main texts of two pages; None without the extra that finds
    them.
    """
    try:
        return result.content
    except MissingExtraError:
        return None


class _Figure(NamedTuple):
    """A row of measures: its name, its figure, and a remark."""

    name: str
    figure: str
    remark: str


def _content_row(content: Comparison | None) -> _Figure:
    """Return the row of the similarity of the main texts."""
    name = say("compare.content")
    if content is None:
        # The extra that finds main texts is not installed: the row says how to get it, and the
        # command does not fail.
        install = 'pip install "neardup[web]"'
        return _Figure(name, "-", remark=say("compare.install", install=install))
    return _Figure(name, f"{content.similarity:.4f}", remark=say("compare.content_means"))


def _record(result: Comparison, explained: list[Explanation | SignatureExplanation]) -> JsonObject:
    """Return a comparison as values for JSON."""
    bands = {} if result.bands is None else result.bands._asdict()
    verdict = {name: getattr(result, name) for name in ("similarity", "threshold", "duplicate")}
    record = {**result.measures._asdict(), **bands, **verdict}
    if result.outlines is None:
        for name in ("left_passages", "right_passages"):
            record[name] = [passage._asdict() for passage in getattr(result, name)]
    else:
        content = _content_of(result)
        record |= {
            "content_similarity": None if content is None else content.similarity
        } | result.outlines.record()
    return record | ({"explanations": [asdict(found) for found in explained]} if explained else {})
