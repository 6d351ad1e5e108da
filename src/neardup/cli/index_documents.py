"""The commands for documents of an index: `neardup index add`, `add-if-new`, `query`, `get`,
`remove`, `expire`.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from queue import Queue
from threading import Thread
from typing import IO, Any

import click

from neardup.cli import render
from neardup.cli.index_options import (
    Age,
    address_argument,
    dates_option,
    import_option,
    opened,
    payload_option,
    show_forgotten,
    sources_option,
)
from neardup.cli.running import exit_if_incomplete, finish, show
from neardup.cli.settings import COUNT, Named, command, composed, is_set, option
from neardup.cli.sources import (
    inputs_argument,
    job_options,
    overwrite_option,
    result_options,
    source_options,
)
from neardup.errors import InputError, SettingError
from neardup.files import JsonObject, lines_of
from neardup.report.wording import plural
from neardup.settings.constraints import Options, flag_of

_READ_BYTES = 1 << 20
# At most 64 MiB wait for answers: then the reader waits, too, and with it the sender.
_CHUNKS_AHEAD = 64
_OPTIONS = (
    "text_column",
    "roles",
    "id_column",
    "payload_column",
    "sources",
    "dates",
    "import_name",
    "max_document_bytes",
    "on_error",
)
_MOST_NAMED = 10  # unknown ids
_UNUSED = ("output", "answers", "in_format", "threads")


def answer_stream(
    address: str,
    inputs: list[Named],
    *,
    stream: bool,
    print_kept: bool,
    only_new: bool,
    **values: Any,
) -> None:
    """Answer the lines of standard input until it ends, a batch for all that have arrived."""
    _refuse_others(inputs, stream, values)
    from neardup.output.tables import json_line
    from neardup.runs.spool import standard_input

    lines = arriving_lines(standard_input())
    with opened(address, "Every line that was answered is stored.") as index:
        output = sys.stdout.buffer
        counts = Counter[str]()
        options = {name: values[name] for name in _OPTIONS}
        for answered in index.answer_lines(lines, **options):
            for line, answer in answered:
                if not print_kept:
                    output.write(json_line(answer).encode())
                elif answer.get("kept") and not (only_new and answer["repeated"]):
                    # The line as it was read: its fields keep their order and spelling.
                    output.write(line + b"\n")
                # The answer has the error itself; kept lines have no place for it.
                if "error" in answer and (print_kept or values["on_error"] == "stop"):
                    _tell(counts.total() + 1, answer["error"], values["on_error"])
                counts[_kind(answer)] += 1
            # A program that waits for these answers may send its next line only then.
            output.flush()
    if not is_set("quiet"):
        kinds = [f"{counts[kind]:,} {kind}" for kind in ("kept", "removed", "repeated", "rejected")]
        # Standard output has nothing but answers or kept lines.
        read = plural(counts.total(), "line")
        print(f"neardup: {read}: {', '.join(kinds)}", file=sys.stderr)


def _kind(answer: JsonObject) -> str:
    if "error" in answer:
        return "rejected"
    return "repeated" if answer["repeated"] else "kept" if answer["kept"] else "removed"


def arriving_lines(stream: IO[bytes]) -> Iterator[list[bytes]]:
    """Yield the lines of a stream in groups: all that have arrived, one at least. Never waits for
    more.

    Of a line that is too long to be read, only as much is kept as shows that. Raises OSError, once
    the lines before it were yielded, if the stream cannot be read to its end.
    """
    from neardup.api.index_lines import MAX_LINE_BYTES

    chunks: Queue[bytes] = Queue(_CHUNKS_AHEAD)
    failures: list[OSError] = []
    # A daemon: the thread stays in a read that nothing interrupts, and must not delay the exit.
    Thread(
        target=_read, args=(stream, chunks, failures), daemon=True, name="neardup-standard-input"
    ).start()
    pending = list[bytes]()
    size = 0
    while chunk := chunks.get():
        arrived = [chunk]
        # An empty chunk is the end of the stream: nothing follows it.
        while arrived[-1] and not chunks.empty():
            arrived.append(chunks.get())
        data = b"".join(arrived)
        # The part after the last line end: the beginning of a line, or empty.
        *lines, rest = data.split(b"\n")
        if lines:
            # The first line began in earlier chunks.
            lines[0] = b"".join([*pending, lines[0]])
            pending = []
            yield lines
            size = 0
        # One byte over the limit: enough for the line to be refused, and the rest of it takes no
        # memory.
        pending.append(rest[: max(0, MAX_LINE_BYTES + 1 - size)])
        size += len(rest)
        if not arrived[-1]:
            break
    # After the lines before the error were answered.
    if failures:
        raise failures[0]
    if any(pending):
        yield [b"".join(pending)]


def _read(stream: IO[bytes], chunks: Queue[bytes], failures: list[OSError]) -> None:
    """Pass on chunks as they arrive, and an empty one at the end; note the error that ends the
    stream.
    """
    try:
        # Returns when any bytes have arrived; `stream.read` would wait for as many as asked.
        while chunk := os.read(stream.fileno(), _READ_BYTES):
            chunks.put(chunk)
    except OSError as error:
        failures.append(error)
    # After an error, too: the consumer would wait for ever.
    chunks.put(b"")


def _tell(number: int, error: str, on_error: str) -> None:
    if on_error == "stop":
        raise SettingError(
            f"Line {number:,} cannot be read: {error}. Lines before it are stored. Use --on-error "
            "reject to continue."
        )
    print(f"neardup: rejected line {number:,}: {error}", file=sys.stderr, flush=True)


def _refuse_others(inputs: list[Named], stream: bool, values: Options) -> None:
    """Raise SettingError if an option has no effect beside --stream."""
    if not stream:
        raise SettingError(
            "--print-kept requires --stream: got it without. Add --stream, or use -o FILE."
        )
    names = [path.name for path in inputs]
    if names != ["-"]:
        raise SettingError(
            f"--stream reads standard input: got {' '.join(names)}. Name - as the only input."
        )
    for name in _UNUSED:
        if values[name] is not None:
            raise SettingError(
                f"{flag_of(name)} does not go with --stream, which prints its answers: got it. "
                "Leave it out."
            )


_COMMON = "text_column id_column payload_column import_name answers overwrite"
_UNSTORED = (
    "Batches before the interruption are stored. Send the same documents again: ids get the same "
    "answers."
)

_answers_options = composed(
    option(
        "--answers FILE",
        "Index",
        "Write a row with the answer about each document: .jsonl, .parquet or .csv.",
    ),
    overwrite_option,
)
_documents_options = composed(
    source_options,
    payload_option,
    sources_option,
    dates_option,
    import_option,
    job_options,
)


@command("Add documents without looking for duplicates.", common=_COMMON)
@address_argument
@inputs_argument
@_answers_options
@_documents_options
def add(address: str, inputs: list[Named], **values: Any) -> None:
    """Add documents without looking for similar ones. A document already stored with the same id
    and content changes nothing.

    \b
    Examples:
      neardup index add news.index corpus.parquet
      neardup index add news.index monday/*.jsonl.zst --payload-column url --payload-column date --import-name monday
    """  # noqa: E501
    _add(address, inputs, if_new=False, output=None, only_new=False, **values)


@command(
    "Add the documents that are new, and remove the others.", common=f"output stream {_COMMON}"
)
@address_argument
@inputs_argument
@option(
    "-o, --output FILE",
    "Output",
    "Write the kept rows in the format of the input; a folder for several inputs.",
)
@_answers_options
@option(
    "--stream",
    "Output",
    "Read JSON lines from standard input, and print an answer to each at once. Dots lead into "
    "nested fields: --text-column response.body.",
)
@option("--print-kept", "Output", "With --stream, print the kept lines instead of the answers.")
@option(
    "--only-new",
    "Output",
    "With -o or --print-kept, leave out documents that the index had already.",
)
@_documents_options
def add_if_new(
    address: str, inputs: list[Named], stream: bool, print_kept: bool, **values: Any
) -> None:
    """Add the documents that are not similar to a kept one. Of the others, only ids and answers are
    stored.

    The decisions equal those of `neardup dedup` on all documents in order of arrival. A document
    stored with the same id and content gets the same answer again, so an interrupted stream can be
    sent again. Kept documents are then written again, unless you use --only-new.

    \b
    Examples:
      neardup index add-if-new news.index stream.jsonl -o kept.jsonl --json
      neardup index add-if-new news.index new.parquet --answers answers.jsonl
      katana -u https://example.org -jsonl | neardup index add-if-new pages.index - --stream --text-column response.body
    """  # noqa: E501
    if values["only_new"] and not print_kept and values["output"] is None:
        raise SettingError(
            "--only-new limits the documents that -o writes or --print-kept prints: got neither. "
            "Add one, or leave --only-new out; the field repeated of an answer has the same "
            "information."
        )
    if stream or print_kept:
        answer_stream(address, inputs, stream=stream, print_kept=print_kept, **values)
        return
    _add(address, inputs, if_new=True, **values)


def _add(address: str, inputs: list[Named], **values: Any) -> None:
    with opened(address, _UNSTORED) as index:
        report = index.add_files(inputs, **values)
    finish(report)


@command(
    "Find kept documents that are similar to given ones.",
    common="output overwrite limit text_column id_column",
)
@address_argument
@inputs_argument
@option(
    "-o, --output FILE",
    "Output",
    "Write a row for each hit: .parquet, .jsonl or .csv. Default: print the hits.",
)
@overwrite_option
@option("--limit N", "Output", "The maximum number of hits per document.", type=COUNT, default=10)
@source_options
@job_options
def query(address: str, inputs: list[Named], output: str | None, **values: Any) -> None:
    """Find the kept documents that each document is similar to, the most similar first. Nothing is
    stored.

    \b
    Examples:
      neardup index query news.index new.jsonl -o hits.parquet
    """
    with opened(address, "Nothing was written.", read_only=True) as index:
        hits, report = index.query_files(inputs, output=output, **values)
    render.index.print_hits(report, hits, output, quiet=is_set("quiet"), as_json=is_set("as_json"))
    exit_if_incomplete(report)


@command("Show documents by id.")
@address_argument
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@result_options
def get(address: str, ids: tuple[str, ...]) -> None:
    """Show documents by id: whether each was kept or which document removed it, when, and its
    payload.

    Exits with 1 if an id is not in the index.

    \b
    Examples:
      neardup index get news.index reuters-8812
    """
    with opened(address, read_only=True) as index:
        # A dict: an id that is given twice is shown once.
        found = {id: index.get(id) for id in ids}
    rows = render.index.rows_of([document for document in found.values() if document is not None])
    show({"documents": rows}, lambda: render.index.print_documents(rows))
    for id in ids:
        # After the documents, so that they are printed even if others are unknown.
        if found[id] is None:
            click.echo(f"neardup: {address} has no document {id!r}.", err=True)
    if None in found.values():
        raise click.exceptions.Exit(1)


def _ids_in(file: IO[bytes]) -> list[str]:
    """Return the ids of a file, one a line. Raises InputError if it is not UTF-8."""
    from neardup.api.texts import decode_text

    return lines_of(decode_text(file.read(), str(getattr(file, "name", "standard input"))))


@command("Forget documents by id.")
@address_argument
@click.argument("ids", metavar="ID...", nargs=-1)
@option(
    "--ids-from FILE",
    "Input",
    "A file of ids, one per line; - for standard input.",
    type=click.File("rb"),
)
@result_options
def remove(address: str, ids: tuple[str, ...], ids_from: Any) -> None:
    """Forget documents by id.

    Exits with 1 if an id is not in the index: the others are forgotten, and the unknown ones are
    named.

    \b
    Examples:
      neardup index remove news.index reuters-8812 reuters-8813
    """
    wanted = [*ids, *([] if ids_from is None else _ids_in(ids_from))]
    if not wanted:
        raise InputError(
            "remove needs ids: got none. Name them, or a file of them with --ids-from."
        )
    from neardup.api.index import array_of_ids

    with opened(address) as index:
        removed = index.opened.remove(array_of_ids(wanted))
    # The known ids are forgotten even if others are unknown: stderr lists these.
    show_forgotten(removed.num_documents)
    for id in removed.unknown[:_MOST_NAMED].to_pylist():
        click.echo(f"neardup: {address} has no document {id!r}.", err=True)
    if len(removed.unknown) > _MOST_NAMED:
        click.echo(
            f"neardup: nor {len(removed.unknown) - _MOST_NAMED:,} others of these ids.", err=True
        )
    if len(removed.unknown):
        raise click.exceptions.Exit(1)


@command("Forget old documents.")
@address_argument
@option(
    "--older-than AGE", "Index", "Forget documents that were added more than AGE ago.", type=Age()
)
@option(
    "--unseen-for AGE",
    "Index",
    "Forget documents that were last added, sent again or found as a duplicate more than AGE ago.",
    type=Age(),
)
@option(
    "--max-documents N",
    "Index",
    "Forget the oldest documents until at most N are left.",
    type=COUNT,
)
@result_options
def expire(address: str, **limits: Any) -> None:
    """Forget old documents, both kept and removed. Write ages as 30d, 12h, 90m or 45s.

    \b
    Examples:
      neardup index expire news.index --unseen-for 12h --max-documents 1e6
    """
    if all(limit is None for limit in limits.values()):
        raise InputError(
            "expire needs a limit: got none. Add --older-than 30d, --unseen-for 12h or "
            "--max-documents 1e6."
        )
    with opened(address) as index:
        show_forgotten(index.expire(**limits))
