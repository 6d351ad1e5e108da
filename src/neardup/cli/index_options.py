"""The arguments, options and answers that the commands of `neardup index` share."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

import click

import neardup
from neardup.answers import Committed
from neardup.cli import render
from neardup.cli.running import running, show
from neardup.cli.settings import one_or_several, option
from neardup.report.wording import plural, translated
from neardup.settings.constraints import MAX_AGE_S

if TYPE_CHECKING:
    import pyarrow as pa

    from neardup.api.index import Index

address_argument = click.argument("address", metavar="INDEX")

import_option = option(
    "--import-name NAME",
    "Index",
    "A name for these documents, by which `imports remove` can forget them.",
)
payload_option = option(
    "--payload-column NAME...",
    "Index",
    "The column to store with the documents and return with answers; several become a JSON object. "
    "Default: `payload`, if it exists.",
    callback=one_or_several,
)
sources_option = option(
    "--sources COLUMN",
    "Index",
    "The column of the sources of documents, or input for the names of the inputs; for an index "
    "with --track-sources.",
)
dates_option = option(
    "--dates COLUMN",
    "Index",
    "The column of the dates of documents, or of numbers such as the year; for an index with "
    "--track-dates.",
)


@contextmanager
def opened(
    address: str, interrupted: str = "Nothing was changed.", *, read_only: bool = False
) -> Iterator[Index]:
    """Open the index of a command, and explain errors and Ctrl-C.

    interrupted : the state of the index after Ctrl-C, for the message.
    """
    with running(interrupted), neardup.Index.open(address, read_only=read_only) as index:
        yield index


def show_info(index: Index) -> None:
    """Print the size and the settings of an index."""
    info = index.info()
    show(info, lambda: render.index.print_info(info))


def show_forgotten(count: int) -> None:
    """Print the number of documents that were forgotten."""
    show(
        {"forgotten": count},
        lambda: click.echo(translated(f"{plural(count, 'document')} forgotten.")),
    )


def show_merged(answers: pa.Table) -> None:
    """Print the number of documents by answer."""
    counts = {"read": len(answers), **vars(Committed.of(answers))}
    show(counts, lambda: render.index.print_merged(counts))


class Age(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A length of time: 30d, 12h, 90m, 45s, 2w."""

    name = "age"
    _SECONDS: ClassVar = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """Return the length of time, or fail with an error that shows the accepted values."""
        found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,6})?)([smhdw])", str(value))
        # Another text is refused like a time that is too long: both get the same error.
        seconds = float(found[1]) * self._SECONDS[found[2]] if found else math.inf
        if seconds >= MAX_AGE_S:
            self.fail(
                f"must be a number and a unit, such as 30d, 12h, 90m or 45s: got {value!r}.",
                param,
                ctx,
            )
        return timedelta(seconds=seconds)
