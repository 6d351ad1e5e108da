"""Run a command's work: interruptions, warnings and incomplete inputs become a line on stderr and
an exit code.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime

import click

from neardup.cli import render
from neardup.cli.settings import is_set
from neardup.errors import IncompleteWarning
from neardup.files import AnyPath, JsonObject, read_json
from neardup.report.wording import for_terminal, say, speaking, translated

INCOMPLETE = 1
"""The exit code if files could not be read completely; an error is 2."""

ABOVE = 3
"""The exit code of a gate that does not pass: a rate is above --fail-above."""

UNREAD = 4
"""The exit code of a gate that did not read all that it should pass."""

_INTERRUPTED = 130  # 128 + SIGINT, as shells have it


@contextmanager
def running(interrupted_message: str | Callable[[], str]) -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C while a run lasts; after either, print the message and exit with
    130.

    The library's warning of incomplete inputs is not shown; `exit_if_incomplete` prints it after
    the result.

    Parameters
    ----------
    interrupted_message : what is left of the run and how to continue; or returns it, once the run
        has cleaned up.
    """
    on_main_thread = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, signal.default_int_handler) if on_main_thread else None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IncompleteWarning)
            yield
    except KeyboardInterrupt:
        message = (
            interrupted_message if isinstance(interrupted_message, str) else interrupted_message()
        )
        click.echo(f"\nInterrupted. {message}", err=True)
        raise click.exceptions.Exit(_INTERRUPTED) from None
    finally:
        if on_main_thread:
            signal.signal(signal.SIGTERM, before)


@contextmanager
def running_into(output: str, resume: bool, scratch: str | None = None) -> Iterator[None]:
    """Do as `running`, with what an interrupted run left: a line if one of this output is
    discarded, and the message.

    resume : whether the interrupted run continues.
    """
    from neardup.runs.directory import is_address, places_of

    partial, folder = places_of(output, scratch)
    checkpoint = folder / "checkpoint.json"
    if not resume and checkpoint.exists():
        with suppress(
            OSError, ValueError, LookupError, TypeError
        ):  # a damaged record of a run that is discarded
            read = read_json(checkpoint)["state"]["tally"]["documents"]
            lost = f"the interrupted run in {partial}, which had read {read:,} documents"
            click.echo(
                translated(f"neardup: discarding {lost}; --resume would continue it."), err=True
            )
    nothing = (
        f"The output {output} is not complete."
        if is_address(output)
        else f"Nothing was written to {output}."
    )
    left = f" Run the same command with --resume to continue, or delete {partial}."
    with running(lambda: nothing + left * partial.exists()):
        yield


def print_json(record: JsonObject) -> None:
    """Print a record as one JSON object, times as in ISO 8601; characters that stdout cannot encode
    are escaped.
    """
    unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    click.echo(json.dumps(record, ensure_ascii=not unicode, indent=2, default=datetime.isoformat))


def show(record: JsonObject, print_it: Callable[[], object]) -> None:
    """Print a result: as JSON with --json, for a reader unless --quiet is given."""
    if is_set("as_json"):
        print_json(record)
    elif not is_set("quiet"):
        with speaking(record.get("lang")):
            print_it()


def finish(report: JsonObject, output: AnyPath) -> None:
    """Print the report of a run that wrote `output`, then do as `exit_if_incomplete`."""
    show(report, lambda: render.reports.print_report(report, output))
    exit_if_incomplete(report)


def is_summary_shown() -> bool:
    """Return whether `show` prints a summary, which mentions the rows that could not be read."""
    return not (is_set("quiet") or is_set("as_json"))


def accepts_losses() -> bool:
    """Return whether --on-error skip accepts that documents could not be read."""
    return bool(click.get_current_context().params["on_error"] == "skip")


def exit_if_incomplete(report: JsonObject, *, is_shown: bool = True) -> None:
    """Exit with 1 if files could not be read completely; do as `tell_losses`."""
    if tell_losses(report, is_shown=is_shown):
        raise click.exceptions.Exit(INCOMPLETE)


def tell_losses(report: JsonObject, *, is_shown: bool = True) -> bool:
    """Print on stderr which inputs could not be read, and return whether the result is incomplete.

    Neither is done if --on-error skip accepts the losses. is_shown : whether the result was shown.
    """
    if accepts_losses():
        return False
    if report["incomplete"] is not None:
        _tell("terminal.incomplete", report["incomplete"]["message"])
        return True
    if report["unreadable"] is not None and not (is_shown and is_summary_shown()):
        _tell("terminal.unreadable_rows", report["unreadable"]["message"])
    return False


def _tell(kind: str, message: str) -> None:
    """Print a line on stderr; kind : the key of its first word."""
    first = click.style(f"neardup: {say(kind).lower()}{say('words.colon')}", fg="red", bold=True)
    click.echo(first + for_terminal(message), err=True)
