"""Run a command's work: interruptions, warnings and incomplete inputs become a line on stderr and
an exit code.
"""

from __future__ import annotations

import json
import shutil
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neardup.cli import render
from neardup.cli.settings import is_set
from neardup.errors import IncompleteWarning
from neardup.files import AnyPath, JsonObject, identity_of, read_json
from neardup.report.wording import for_terminal, say, speaking, translated
from neardup.settings.constraints import Options

if TYPE_CHECKING:
    from neardup.runs.directory import Places

INCOMPLETE = 1
"""The exit code if files could not be read completely; an error is 2."""

ABOVE = 3
"""The exit code of a gate that does not pass: a rate is above --fail-above."""

UNREAD = 4
"""The exit code of a gate that did not read all that it should pass."""

_INTERRUPTED = 130  # 128 + SIGINT, as shells have it


@contextmanager
def running(interrupted_message: str | Callable[[], str]) -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C while a run lasts; after either, print the message and exit
    with 130.

    The library's warning of incomplete inputs is not shown; `exit_if_incomplete` prints it after
    the result.

    Parameters
    ----------
    interrupted_message : the state of the output and how to continue; a function is called once
        the run has cleaned up.
    """
    try:
        with (
            _handling(signal.default_int_handler, signal.SIGTERM),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore", IncompleteWarning)
            yield
    except KeyboardInterrupt:
        message = (
            interrupted_message if isinstance(interrupted_message, str) else interrupted_message()
        )
        # On a new line: the terminal shows ^C on this one.
        click.echo(f"\nInterrupted. {message}", err=True)
        raise click.exceptions.Exit(_INTERRUPTED) from None


@contextmanager
def _handling(handler: Any, *signals: int) -> Iterator[None]:
    """Handle signals in another way; afterwards as before, for a program that calls commands."""
    # Python allows handlers in the main thread only; a test or a notebook may call from another.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = [signal.signal(number, handler) for number in signals]
    try:
        yield
    finally:
        for number, earlier in zip(signals, before, strict=True):
            signal.signal(number, earlier)


@contextmanager
def temporary_folder(parent: AnyPath | None) -> Iterator[Path]:
    """Make a temporary folder, and delete it at the end, however often Ctrl-C is pressed.

    parent : its folder. Default: the one of the system.
    """
    folder = tempfile.mkdtemp(prefix="neardup-", dir=parent)
    try:
        yield Path(folder)
    finally:
        # A second signal would interrupt the deletion, and no later run deletes the rest.
        with _handling(signal.SIG_IGN, signal.SIGINT, signal.SIGTERM):
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running_into(output: str, resume: bool, scratch: str | None = None) -> Iterator[None]:
    """Run a command that writes an output folder, and describe the folder after an interruption.

    A line also says that an earlier interrupted run of this output is discarded.

    resume : whether the interrupted run continues.
    """
    from neardup.runs.directory import is_address, places_of

    places = places_of(output, scratch)
    if not resume:
        _print_discarded(places)
    # Of the folder that is there already: `--overwrite` replaces it at the end of the run.
    before = None if is_address(output) else identity_of(output)

    def describe_output() -> str:
        if is_address(output):
            state = f"The output {output} is not complete."
        # The interruption came after the replacement.
        elif before != identity_of(output):
            state = f"The output {output} is complete."
        else:
            state = f"Nothing was written to {output}."
        if not places.partial.exists():
            return state
        return (
            f"{state} Run the same command with --resume to continue, or delete {places.partial}."
        )

    with running(describe_output):
        yield


def write_folder(function: Callable[..., Any], inputs: Any, output: str, values: Options) -> Any:
    """Return the result of a function of the library that writes an output folder."""
    with running_into(output, values["resume"], values["scratch"]):
        return function(inputs, output=output, tables=False, **values)


def _print_discarded(places: Places) -> None:
    """Print that the record of an interrupted run is discarded, if there is one."""
    checkpoint = places.scratch / "checkpoint.json"
    if not checkpoint.exists():
        return
    # A damaged record of a run that is discarded does not matter.
    with suppress(OSError, ValueError, LookupError, TypeError):
        read = read_json(checkpoint)["state"]["tally"]["documents"]
        lost = f"the interrupted run in {places.partial}, which had read {read:,} documents"
        message = f"neardup: discarding {lost}; --resume would continue it."
        click.echo(translated(message), err=True)


def print_json(record: JsonObject) -> None:
    """Print a record as one JSON object with times as in ISO 8601.

    Characters that stdout cannot encode are escaped.
    """
    # JSON may have escapes for any character, a terminal of another encoding may not have the
    # characters.
    # Without a standard output there is no encoding, and nothing is printed.
    encoding = getattr(sys.stdout, "encoding", None) or ""
    unicode = encoding.lower().startswith("utf")
    text = json.dumps(record, ensure_ascii=not unicode, indent=2, default=datetime.isoformat)
    # A name of a file may have bytes that are not UTF-8: in JSON they are escapes.
    click.echo(text.encode("utf-8", "backslashreplace").decode())


def show(record: JsonObject, print_it: Callable[[], object]) -> None:
    """Print a result: as JSON with --json, for a reader unless --quiet is given."""
    if is_set("as_json"):
        print_json(record)
    elif not is_set("quiet"):
        # The language of the run, which --lang or a report may have chosen.
        with speaking(record.get("lang")):
            print_it()


def finish(report: JsonObject, output: AnyPath | None = None) -> None:
    """Print the report of a run that wrote `output`, if any; then do as `exit_if_incomplete`."""
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
    # After the result was printed: it is valid for all that was read.
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
    # The summary has shown the same sentence in its own place.
    if report["unreadable"] is not None and not (is_shown and is_summary_shown()):
        _tell("terminal.unreadable_rows", report["unreadable"]["message"])
    return False


def exit_by_gate(report: JsonObject, gate: Callable[[], int] | None) -> None:
    """Exit with the code of a gate that does not pass, otherwise with the code of lost documents.

    gate : prints why it does not pass, and returns its exit code; 0 if it passes. None without one.
    """
    # The losses are told first: they also apply without a gate.
    code = INCOMPLETE if tell_losses(report) else 0
    if gate is not None:
        code = gate() or code
    if code:
        raise click.exceptions.Exit(code)


def is_all_read(report: JsonObject) -> bool:
    """Return whether a run read all of its inputs: a gate passes over nothing that was not read."""
    is_too_long = report["excluded"] is not None and report["excluded"]["too_long"] > 0
    losses = (report["incomplete"], report["unreadable"], report["textless"])
    return not is_too_long and all(loss is None for loss in losses)


def tell_warnings(report: JsonObject) -> None:
    """Print the warnings of a run on stderr, such as left-out files, before a gate passes; not if
    the summary has shown them, or --on-error skip accepts losses.
    """
    if not (is_summary_shown() or accepts_losses()):
        for warning in report["warnings"]:
            complain(warning)


def complain(message: str) -> None:
    """Print a line to standard error, in the language of the run."""
    click.echo(f"neardup: {translated(message)}", err=True)


def _tell(kind: str, message: str) -> None:
    """Print a line on stderr; kind : the key of its first word."""
    first = click.style(f"neardup: {say(kind).lower()}{say('words.colon')}", fg="red", bold=True)
    click.echo(first + for_terminal(message), err=True)
