"""The arguments and options that the commands of `neardup index` share."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any, ClassVar

import click

from neardup.cli.settings import PRINTING, SettingType, composed, option
from neardup.cli.sources import one_or_several
from neardup.settings.constraints import Constraint

address_argument = click.argument("address", metavar="INDEX")

result_options = composed(
    option("-q", "--quiet", section=PRINTING, is_flag=True, help="Print nothing but errors."),
    option("--json", "as_json", section=PRINTING, is_flag=True, help="Print one JSON object."),
)
"""Adds --quiet and --json, of a command without progress."""

import_option = option(
    "--import-name",
    section="Index",
    metavar="NAME",
    help="A name for these documents, by which `imports remove` can forget them.",
)
payload_option = option(
    "--payload-column",
    section="Input",
    metavar="NAME",
    multiple=True,
    callback=one_or_several,
    help="The column to store with the documents and return with answers; repeatable: several become a JSON object. "
    "Default: the column `payload`, if it exists.",
)


def count_option(*names: str, section: str, help: str, default: int | None = None) -> Callable[[Any], Any]:
    """Return a decorator that adds an option of a whole number of 1 or more."""
    return option(
        *names,
        section=section,
        type=SettingType(Constraint("", int, low=1)),
        metavar="N",
        default=default,
        show_default=default is not None,
        help=help,
    )


class Age(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A length of time: 30d, 12h, 90m, 45s, 2w."""

    name = "age"
    _SECONDS: ClassVar = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Return the time; fail with what is accepted."""
        found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,6})?)([smhdw])", str(value))
        if found is None:
            self.fail(f"must be a number and a unit, such as 30d, 12h, 90m or 45s: got {value!r}.", param, ctx)
        return timedelta(seconds=float(found[1]) * self._SECONDS[found[2]])
