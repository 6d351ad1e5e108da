"""The commands for an index as a whole, from `neardup index create` to `neardup index export`."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import click

import neardup
from neardup.cli.index_options import (
    address_argument,
    opened,
    payload_option,
    show_info,
    show_merged,
)
from neardup.cli.methods import build_method, is_method_given, method_options, stored_options
from neardup.cli.running import is_summary_shown, print_json, running, show
from neardup.cli.settings import command, composed, is_set, option, setting_option, settings_options
from neardup.cli.sources import output_options, printing_options, result_options
from neardup.errors import SettingError
from neardup.report.wording import plural, translated
from neardup.settings.constraints import Options, constraints_of, flag_of, without_none
from neardup.settings.methods import MethodSettings, MinHash, SimHash
from neardup.settings.run import FileSettings, IndexSettings

DAMAGED = 1  # exit status
_LIMITS = ("threshold", "recall", "num_bands", "rows_per_band", "max_distance", "num_blocks")
# The bands and blocks; None has them chosen by the limits.
_LAYOUT = {"num_bands": None, "rows_per_band": None, "num_blocks": None}


@command(
    "Create an index, empty or from a run.",
    common="method threshold max_distance ngram storage from_run",
)
@address_argument
@option(
    "--from-run DIR",
    "Index",
    "Add the documents that a run of dedup kept, with their ids, and use the method of the run.",
    type=click.Path(exists=True, file_okay=False),
)
@settings_options(IndexSettings, "Index")
@payload_option
@method_options
@stored_options
@result_options
def create(address: str, from_run: str | None, payload_column: Any, **values: Any) -> None:
    """Create an index, empty or with the documents that a run kept.

    INDEX is a new folder or the address of a database. To change the limit of the method later, use
    `neardup index rebuild`.

    \b
    Examples:
      neardup index create pages.index --method structure --idf tags.parquet
      neardup index create news.index --from-run out/
    """
    settings = {field.name: values.pop(field.name) for field in fields(IndexSettings)}
    idf = values.pop("idf")
    is_given = is_method_given(values)
    # The index takes the table, also for a method whose settings have no `idf`, such as MinHash
    # with boost_rare.
    values["idf"] = None
    method = build_method(values)
    with running(f"Delete {address} before you run the command again."):
        if from_run is None:
            if payload_column is not None:
                raise SettingError(
                    f"--payload-column names a column of a run's documents: got {payload_column!r} "
                    "without --from-run. Name the run, or leave it out."
                )
            index = neardup.Index.create(address, method=method, idf=idf, **settings)
        elif is_given:
            # Another method would find other duplicates among the documents that the run kept.
            raise SettingError(
                "--from-run uses the method of the run: got options of a method beside it. Leave "
                "them out."
            )
        else:
            index = neardup.Index.from_run(
                address, from_run, idf=idf, payload_column=payload_column, **settings
            )
        with index:
            show_info(index)


@command("Add the new documents of another index.")
@address_argument
@click.argument("other", metavar="OTHER")
@result_options
def merge(address: str, other: str) -> None:
    """Add the kept documents of OTHER that are new to INDEX. Both must use the same method.

    \b
    Examples:
      neardup index merge news.index monday.index
    """
    interrupted = "The documents before the interruption are stored. Run the same command again."
    # OTHER may be in use: only its writer holds its lock.
    with opened(address, interrupted) as index, opened(other, read_only=True) as source:
        show_merged(index.merge(source))


# The texts of the options are from the method that has the limit; for one of both, from MinHash.
_LIMIT_CONSTRAINTS = {**constraints_of(SimHash), **constraints_of(MinHash)}
_limit_options = composed(
    *(setting_option(name, None, _LIMIT_CONSTRAINTS[name], "Method") for name in _LIMITS)
)


@command("Rebuild an index with other bands, blocks or limits.")
@address_argument
@click.argument("new", metavar="NEW")
@_limit_options
@result_options
def rebuild(address: str, new: str, **limits: Any) -> None:
    """Create the index NEW from the documents of INDEX, with other bands or blocks or another
    limit. Needs no texts.

    Removed documents stay removed; the new limit applies to documents added later.

    \b
    Examples:
      neardup index rebuild news.index wider.index --threshold 0.85
    """
    with opened(
        address, f"Delete {new} before you run the command again.", read_only=True
    ) as index:
        method = _changed(index.method, without_none(limits))
        with index.rebuild(new, method=method) as rebuilt:
            show_info(rebuilt)


def _changed(method: MethodSettings, given: Options) -> MethodSettings:
    """Return the settings with other limits; bands and blocks are chosen again, unless they are
    given, too.
    """
    accepted = constraints_of(type(method))
    for name in given:
        if name not in accepted:
            raise SettingError(
                f"{flag_of(name)} does not apply to this index, which uses "
                f"{type(method).__name__}. Leave it out."
            )
    layout = {name: value for name, value in _LAYOUT.items() if name in accepted} if given else {}
    return replace(method, **{**layout, **given})


@command("Show the size, settings and durability of an index.")
@address_argument
@result_options
def info(address: str) -> None:
    """Show the number of documents, size and settings of an index, and the durability of its store.

    \b
    Examples:
      neardup index info news.index
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
    # Damages go to stderr and into the exit status with --json, too.
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
    """Reclaim the space of forgotten documents, and merge files to speed up lookups. Queries
    continue meanwhile.

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
    """Copy the latest state of an index to the new folder DIR, while it is in use. The copy is an
    index.

    \b
    Examples:
      neardup index backup news.index monday.index
    """
    with opened(
        address, f"Delete {folder} before you run the command again.", read_only=True
    ) as index:
        index.backup(folder)
    # The numbers of the copy, not of the index: this also checks that the copy can be opened.
    with opened(folder, read_only=True) as copy:
        show_info(copy)


@command("Write the documents of an index to a file.")
@address_argument
@output_options(FileSettings, help="The file for the documents: .parquet, .jsonl or .csv.")
@printing_options
def export(address: str, output: str, overwrite: bool, progress: bool) -> None:
    """Write all documents of an index, kept and removed, to a file: ids, times, payloads, texts and
    signatures.

    The column duplicates counts the documents that each kept document removed.

    \b
    Examples:
      neardup index export news.index -o documents.parquet
    """
    with opened(address, f"Nothing was written to {output}.", read_only=True) as index:
        report = index.export(output, overwrite=overwrite, progress=progress)
    exported = f"{plural(report['counts']['exported'], 'document')} written to {output}."
    show(report, lambda: click.echo(translated(exported)))
