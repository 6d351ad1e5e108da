"""Leave in order when the user or the system interrupts a run."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import click

_EXIT_CODE = 130  # 128 + SIGINT, as shells have it


@contextmanager
def interruptible(farewell: Callable[[], str]) -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C while a run lasts; after either, print the farewell and exit with 130.

    Parameters
    ----------
    farewell : says what is left of the run and how to go on; asked once the run has cleaned up.
    """
    on_main_thread = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, _interrupt) if on_main_thread else None
    try:
        yield
    except KeyboardInterrupt:
        click.echo(f"\nInterrupted. {farewell()}", err=True)
        raise click.exceptions.Exit(_EXIT_CODE) from None
    finally:
        if on_main_thread:
            signal.signal(signal.SIGTERM, before)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def farewell_of_folder(output: str) -> str:
    """Say what an interrupted run left that was to write a folder."""
    from neardup.output.directory import partial_of

    nothing = f"Nothing was written to {output}."
    partial = partial_of(output)
    if not partial.exists():
        return nothing
    return f"{nothing} Run the same command with --resume to go on, or delete {partial}."
