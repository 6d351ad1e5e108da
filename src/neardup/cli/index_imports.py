"""The commands of `neardup index imports`: documents that enter an index together, or leave it
together.
"""

from __future__ import annotations

from typing import Any

import click

from neardup.cli import render
from neardup.cli.index_options import (
    address_argument,
    dates_option,
    opened,
    payload_option,
    show_forgotten,
    show_merged,
    sources_option,
)
from neardup.cli.running import finish, show
from neardup.cli.settings import Named, command
from neardup.cli.sources import (
    inputs_argument,
    job_options,
    result_options,
    source_options,
)
from neardup.errors import InputError

_name_argument = click.argument("name", metavar="RUN")


@command("List the open imports.", name="list")
@address_argument
@result_options
def list_imports(address: str) -> None:
    """List the open imports, and the documents that are staged in them.

    \b
    Examples:
      neardup index imports list news.index
    """
    with opened(address, read_only=True) as index:
        found = index.imports()
    record = {"imports": [staged._asdict() for staged in found]}
    show(record, lambda: render.index.print_imports(found))


@command("Open an import.", name="open")
@address_argument
@_name_argument
def open_import(address: str, name: str) -> None:
    """Open an import. Documents staged in it enter the index when the import is committed.

    \b
    Examples:
      neardup index imports open news.index monday
    """
    with opened(address) as index:
        index.open_import(name)


@command("Stage documents in an open import.", common="text_column id_column payload_column")
@address_argument
@_name_argument
@inputs_argument
@source_options
@payload_option
@sources_option
@dates_option
@job_options
def stage(address: str, name: str, inputs: list[Named], **values: Any) -> None:
    """Stage documents in an open import. Queries find them only after the import is committed.

    \b
    Examples:
      neardup index imports stage news.index monday pages.jsonl --payload-column url
    """
    interrupted = "Documents before the interruption are staged. Cancel the import, or commit it."
    with opened(address, interrupted) as index:
        report = index.stage_files(name, inputs, **values)
    finish(report)


@command("Add the new documents of an import, all at once.")
@address_argument
@_name_argument
@result_options
def commit(address: str, name: str) -> None:
    """Add the new documents of an import, all at once, and close the import.

    \b
    Examples:
      neardup index imports commit news.index monday
    """
    with opened(address, "The import is open as before.") as index:
        show_merged(index.commit_import(name))


@command("Drop an open import with its documents.")
@address_argument
@_name_argument
def cancel(address: str, name: str) -> None:
    """Drop an open import with its documents.

    \b
    Examples:
      neardup index imports cancel news.index monday
    """
    with opened(address) as index:
        index.cancel_import(name)


@command("Forget all documents of an import.")
@address_argument
@_name_argument
@result_options
def remove(address: str, name: str) -> None:
    """Forget all documents of a committed import, or of an import named by `add --import-name`.

    \b
    Examples:
      neardup index imports remove news.index monday
    """
    with opened(address) as index:
        count = index.remove_import(name)
    if not count:
        raise InputError(
            f"No document was added by an import {name!r}: it is open, or there is none. To drop "
            "an open import, use neardup index imports cancel."
        )
    show_forgotten(count)
