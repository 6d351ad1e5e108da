"""The commands for an index as a whole: `neardup index info`, `verify`, `compact`, `backup`, `export`."""

from __future__ import annotations

import click

from neardup.cli.index_options import address_argument, opened, show_info
from neardup.cli.running import is_summary_shown, print_json, show
from neardup.cli.settings import command, is_set
from neardup.cli.sources import output_options, printing_options, result_options
from neardup.report.wording import plural, translated

DAMAGED = 1


@command("Show the size, settings and durability of an index.")
@address_argument
@result_options
def info(address: str) -> None:
    """Show the number of documents, size and settings of an index, and the durability of its store.

    \b
    Examples:
      neardup index info news.index
      neardup index info news.index --json
    """
    with opened(address, read_only=True) as index:
        show_info(index)


@command("Check an index for damage.")
@address_argument
@result_options
def verify(address: str) -> None:
    """Check that the files are undamaged, and that each document is found by its own keys.

    Reads the whole index. Prints a line for each damage, and then exits with 1.

    \b
    Examples:
      neardup index verify news.index
    """
    with opened(address, read_only=True) as index:
        damages = index.verify()
    if is_set("as_json"):
        print_json({"index": address, "damages": damages})
    for damage in damages:
        click.echo(f"neardup: damaged: {damage}", err=True)
    if damages:
        raise click.exceptions.Exit(DAMAGED)
    if is_summary_shown():
        click.echo(translated(f"{address}: no damage found."))


@command("Reclaim the space of forgotten documents, and merge files.")
@address_argument
@result_options
def compact(address: str) -> None:
    """Reclaim the space of forgotten documents, and merge files to speed up lookups. Queries continue meanwhile.

    \b
    Examples:
      neardup index compact news.index
    """
    with opened(address, "The index is as before.") as index:
        index.compact()
        show_info(index)


@command("Copy an index while it is in use.")
@address_argument
@click.argument("folder", metavar="DIR")
@result_options
def backup(address: str, folder: str) -> None:
    """Copy the latest state of an index to the new folder DIR, while it is in use. The copy is an index.

    \b
    Examples:
      neardup index backup news.index monday.index
    """
    with opened(address, f"Delete {folder} before you run the command again.", read_only=True) as index:
        index.backup(folder)
    with opened(folder, read_only=True) as copy:
        show_info(copy)


@command("Write the documents of an index to a file.")
@address_argument
@output_options("FILE", "The file to write: .parquet, .jsonl or .csv.")
@printing_options
def export(address: str, output: str, overwrite: bool, progress: bool) -> None:
    """Write all documents of an index, kept and removed, to a file: ids, times, payloads, texts and signatures.

    The column duplicates is the number of documents that each kept document removed; it is null for removed ones.

    \b
    Examples:
      neardup index export news.index -o documents.parquet
    """
    with opened(address, f"Nothing was written to {output}.", read_only=True) as index:
        report = index.export(output, overwrite=overwrite, progress=progress)
    exported = f"{plural(report['counts']['exported'], 'document')} written to {output}."
    show(report, lambda: click.echo(translated(exported)))
