"""The commands of `neardup index runs`: documents that enter an index together, or leave it together."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from neardup.cli.index_documents import finish, run_on_inputs
from neardup.cli.index_options import address_argument, columns_of, payload_option, result_options
from neardup.cli.running import running
from neardup.cli.settings import Command, settings_options
from neardup.cli.sources import inputs_argument, printing_options, source_options
from neardup.errors import InputError
from neardup.settings.run import RunSettings

_name_argument = click.argument("name", metavar="RUN")


@click.command(cls=Command, no_args_is_help=True, short_help="List the open runs.")
@address_argument
@result_options
def list_runs(address: str, quiet: bool, as_json: bool) -> None:
    """List the open runs, and the documents that are staged in them.

    \b
    Examples:
      neardup index runs list news.index
    """
    from neardup import Index
    from neardup.cli.render import index as rendering

    with Index.open(address, read_only=True) as index:
        rendering.print_runs(index.runs(), quiet=quiet, as_json=as_json)


@click.command(cls=Command, no_args_is_help=True, short_help="Open a run.")
@address_argument
@_name_argument
def open_run(address: str, name: str) -> None:
    """Open a run. Documents staged in it enter the index when the run is committed.

    \b
    Examples:
      neardup index runs open news.index monday
    """
    from neardup import Index

    with Index.open(address) as index:
        index.open_run(name)


@click.command(
    cls=Command, common=("text_column", "id_column", "payload_columns"), no_args_is_help=True,
    short_help="Stage documents in an open run.",
)  # fmt: skip
@address_argument
@_name_argument
@inputs_argument
@source_options
@payload_option
@settings_options(RunSettings, "Running", without=("batch_rows", "cache_bytes"))
@printing_options
def stage(address: str, name: str, inputs: tuple[str, ...], payload_columns: str | None, **values: Any) -> None:
    """Stage documents in an open run. Queries find them only after the run is committed.

    \b
    Examples:
      neardup index runs stage news.index monday pages.jsonl --payload-columns url
    """
    with running(lambda: "Documents before the interruption are staged. Cancel the run, or commit it."):
        from neardup.api.index_files import stage_files

        work = partial(stage_files, run=name, payload_column=columns_of(payload_columns))
        report = run_on_inputs(address, inputs, work, values)
    finish(report, values)


@click.command(cls=Command, no_args_is_help=True, short_help="Add the new documents of a run, all at once.")
@address_argument
@_name_argument
@result_options
def commit(address: str, name: str, quiet: bool, as_json: bool) -> None:
    """Add those documents of a run that are new, all at once, and close the run.

    \b
    Examples:
      neardup index runs commit news.index monday
    """
    with running(lambda: "The run is open as before."):
        from neardup import Index
        from neardup.cli.render import index as rendering

        with Index.open(address) as index:
            rendering.print_merged(index.commit_run(name), quiet=quiet, as_json=as_json)


@click.command(cls=Command, no_args_is_help=True, short_help="Drop an open run with its documents.")
@address_argument
@_name_argument
def cancel(address: str, name: str) -> None:
    """Drop an open run with its documents.

    \b
    Examples:
      neardup index runs cancel news.index monday
    """
    from neardup import Index

    with Index.open(address) as index:
        index.cancel_run(name)


@click.command(cls=Command, no_args_is_help=True, short_help="Forget all documents of a run.")
@address_argument
@_name_argument
@result_options
def remove(address: str, name: str, quiet: bool, as_json: bool) -> None:
    """Forget all documents of a committed run, or of a run named by `add --run`.

    \b
    Examples:
      neardup index runs remove news.index monday
    """
    from neardup import Index
    from neardup.cli.render import index as rendering

    with Index.open(address) as index:
        count = index.remove_run(name)
        if not count:
            raise InputError(
                f"No document was added by a run {name!r}: it is open, or there is none. To drop an open run, use "
                "neardup index runs cancel."
            )
        rendering.print_count("forgotten", count, quiet=quiet, as_json=as_json)


runs = click.Group(
    "runs",
    commands={
        "list": list_runs,
        "open": open_run,
        "stage": stage,
        "commit": commit,
        "cancel": cancel,
        "remove": remove,
    },
    short_help="Add or forget documents together.",
    help="""Stage documents in a run, then add them all at once or drop them.

    \b
    Examples:
      neardup index runs open news.index monday
      neardup index runs stage news.index monday pages.jsonl
      neardup index runs commit news.index monday
      neardup index runs remove news.index monday       to forget them again
    """,
)
