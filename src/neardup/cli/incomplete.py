"""End a command whose inputs could not all be read to their end."""

from __future__ import annotations

from typing import Any

import click

INCOMPLETE = 1


def exit_if_incomplete(report: dict[str, Any], on_error: str) -> None:
    """Exit with 1 and a line on stderr, unless files that are lost were said to be no error (--on-error skip)."""
    incomplete = report["incomplete"]
    if incomplete is None or on_error == "skip":
        return
    click.echo(click.style("neardup: incomplete: ", fg="red", bold=True) + incomplete["message"], err=True)
    raise click.exceptions.Exit(INCOMPLETE)
