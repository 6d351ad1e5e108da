"""Print an index, its documents and its answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timezone

import click
import pyarrow as pa
from rich.console import Console
from rich.text import Text

from neardup.answers import Document
from neardup.cli.render import reports
from neardup.cli.render.table import Rows
from neardup.cli.running import print_json
from neardup.files import JsonObject
from neardup.report.wording import memory, noun, plural, say, translated, visible
from neardup.settings.constraints import Options
from neardup.stores.base import Import

# Settings of the method in the line "Method", and in the line "Tables".
_LIMITS = (
    "similarity",
    "threshold",
    "max_distance",
    "confirm",
    "min_structure",
    "tokens",
    "ngram",
    "html",
)
_LAYOUT = ("num_bands", "rows_per_band", "num_blocks", "bits", "planes")


def print_info(info: JsonObject) -> None:
    """Print the result of `Index.info`."""
    rows = Rows()
    _add_counts(rows, info)
    rows.line()
    rows.line("Index", visible(info["address"]), "bold cyan")
    rows.line("Method", _settings(info["method"], ("method", *_LIMITS)))
    if layout := _settings(info["method"], _LAYOUT):
        rows.line("Tables", layout)
    stored = ("storage", "max_bucket_size", "expected_documents")
    rows.line("Stored", _settings(info["index"], stored))
    if info["idf"]:
        documents = plural(info["idf"]["documents"], "document")
        features = _settings(info["idf"]["scheme"], ("tokens", "ngram", "html"))
        frequencies = f"{documents}, {features}, version {info['idf']['version']}"
        rows.line("Frequencies", translated(frequencies))
    rows.line("Created", translated(f"{_moment(info['created'])}, by neardup {info['neardup']}"))
    rows.line("Durability", translated(info["promise"]))
    rows.print(Console(highlight=False))


def _add_counts(rows: Rows, info: JsonObject) -> None:
    """Add the documents of an index, its size and its open imports."""
    kept = info["documents"]["kept"]
    removed = info["documents"]["removed"]
    rows.count("Kept", kept, noun(kept, "document"), "bold green")
    rows.count("Removed", removed, f"{noun(removed, 'document')}, similar to a kept one")
    if info["bytes"]:
        each = info["bytes_per_document"]
        remark = "" if each is None else f"{each:,.1f} bytes a document"
        rows.figure("Size", memory(info["bytes"]), remark)
    for staged in info["imports"]:
        remark = f"{noun(staged['num_documents'], 'document')} staged in {visible(staged['name'])}"
        rows.count("Open import", staged["num_documents"], remark)


def _settings(values: Options, names: Sequence[str]) -> str:
    """Return the settings that are not None, as `name=value`; the method by its value alone."""
    texts = []
    for name in names:
        value = values.get(name)
        if value is not None:
            texts.append(str(value) if name == "method" else f"{name}={value}")
    return ", ".join(texts)


def _moment(microseconds: int) -> str:
    """Return a time since 1970 to the minute."""
    # In UTC: an index may be read on machines of different zones.
    return datetime.fromtimestamp(microseconds / 1e6, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def print_merged(counts: dict[str, int]) -> None:
    """Print the number of documents by answer."""
    documents = plural(counts["read"], "document")
    answers = (
        f"{counts['kept']:,} kept, {counts['removed']:,} removed, {counts['repeated']:,} already "
        "in the index."
    )
    click.echo(translated(f"{documents}: {answers}"))


def print_hits(
    report: JsonObject, hits: pa.Table, output: str | None, *, quiet: bool, as_json: bool
) -> None:
    """Print the report of a query, and the hits, unless they were written to a file.

    output : the file, or None.
    """
    if as_json:
        # Hits that were written to a file would be printed twice.
        rows = {} if output is not None else {"hits": hits.to_pylist()}
        print_json({**report, **rows})
        return
    counts = report["counts"]
    console = Console(highlight=False)
    if output is None:
        for row in hits.to_pylist():
            console.print(_hit(row), soft_wrap=True)
    if not quiet:
        documents = plural(counts["read"], "document")
        found = f"Found {counts['found']:,} of {documents}: {plural(counts['hits'], 'hit')}."
        written = "" if output is None else f" They were written to {output}."
        click.echo(translated(found + written))
        reports.print_troubles(report, console)


def _hit(row: JsonObject) -> Text:
    """Return the line of a hit: the ids of query and document, their measures, the payload."""
    names = [name for name in ("similarity", "structure") if row.get(name) is not None]
    measures = [translated(f"{row[name]:.4f} {name}") for name in names]
    if row.get("distance") is not None:
        measures.append(plural(row["distance"], "bit"))
    joined = say("words.comma").join(measures)
    first_seen = f"first seen {row['first_seen']:%Y-%m-%d %H:%M}"
    line = Text(f"  {visible(row['query_id'])}", "bold")
    line.append(f"  {visible(row['id'])}", "not bold green")
    line.append(f"  {translated(f'{joined}, {first_seen}')}", "not bold")
    if row["payload"] is not None:
        line.append(f"  {visible(row['payload'])}", "not bold dim")
    return line


def rows_of(documents: Sequence[Document]) -> list[JsonObject]:
    """Return documents of an index as rows of values, sketches as hexadecimal digits."""
    return [
        asdict(document) | {"sketch": document.sketch.tobytes().hex()} for document in documents
    ]


def print_documents(found: Sequence[JsonObject]) -> None:
    """Print documents of an index."""
    for row in found:
        rows = Rows()
        rows.line("Document", visible(row["id"]), "bold cyan")
        answer = "yes" if row["kept"] else f"no: similar to {visible(row['kept_id'])}"
        rows.line("Kept", translated(answer))
        rows.line("First seen", f"{row['first_seen']:%Y-%m-%d %H:%M:%S} UTC")
        rows.line("Last seen", f"{row['last_seen']:%Y-%m-%d %H:%M:%S} UTC")
        for name in ("payload", "import_name", "text"):
            if row[name] is not None:
                rows.line(name.capitalize(), visible(row[name]))
        rows.line("Sketch", row["sketch"])
        rows.print(Console(highlight=False))


def print_imports(imports: Sequence[Import]) -> None:
    """Print the open imports."""
    for staged in imports:
        documents = plural(staged.num_documents, "document")
        click.echo(f"{visible(staged.name)}  {documents}, opened {_moment(staged.opened)}")
    if not imports:
        click.echo(translated("No import is open."))
