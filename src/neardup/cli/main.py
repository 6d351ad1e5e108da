"""The entry point: the commands, and their end on errors and interruptions."""

from __future__ import annotations

import atexit
import errno
import gc
import io
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from itertools import pairwise
from typing import Any, cast

import click

from neardup.errors import NeardupError
from neardup.report.wording import for_terminal, say, speaking
from neardup.version import __version__

INTERRUPTED = 130
_COMMANDS = (
    "dedup",
    "find-pairs",
    "cluster",
    "passages",
    "contamination",
    "audit",
    "compare",
    "evaluate",
    "sweep",
    "plan",
    "sign",
    "document-frequencies",
    "index",
    "serve",
)
"""The names of the commands, in the order of the documentation."""


class Failure(click.ClickException):
    """An error that the user can fix: one line on stderr, exit code 2."""

    exit_code = 2

    def __init__(self, message: str) -> None:
        super().__init__(
            # In Chinese the colon is a full-width character.
            f"neardup: {say('terminal.error')}{say('words.colon')}{for_terminal(message)}"
        )

    def show(self, file: Any = None) -> None:
        """Print the line."""
        click.echo(self.message, file=file, err=file is None)


class _Commands(Mapping[str, click.Command]):
    """The commands by name. Each is in the module of its name, which loads when the command is
    used.
    """

    def __getitem__(self, name: str) -> click.Command:
        if name not in _COMMANDS:
            raise KeyError(name)
        function = name.replace("-", "_")
        module = import_module(f"neardup.cli.{function}")
        return cast(click.Command, getattr(module, function))

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


def language_of(environment: Mapping[str, str]) -> str:
    """Return the language of the terminal: zh if its locale is Chinese, otherwise en."""
    names = ("LC_ALL", "LC_MESSAGES", "LANG")
    # The first variable that is set wins, as in setlocale(3).
    locale = next((environment[name] for name in names if environment.get(name)), "")
    return "zh" if locale.startswith("zh") else "en"


def _requested_language(arguments: Sequence[str]) -> str | None:
    """Return the value of --lang among arguments that are not parsed yet; None if it has none."""
    words = []
    for argument in arguments:
        # --lang=zh and --lang zh become the same two words.
        words += argument.split("=", 1)
    next_words = dict(pairwise(words))  # of a repeated option the last one counts
    language = next_words.get("--lang")
    return language if language in ("en", "zh") else None


class Program(click.Group):
    """A group of commands whose errors are one line, not a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; turn an error into a line and an exit code."""
        language = language_of(os.environ)
        if language == "zh":
            # A default: --lang on the command line replaces it.
            ctx.default_map = {name: {"lang": language} for name in _COMMANDS}
        # An error that occurs before click has parsed --lang is in the requested language, too.
        with speaking(_requested_language(ctx.args) or language):
            return self._invoke(ctx)

    def _invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            # click shows the help of a group that is called without a command. It does not export
            # the class of this error.
            if type(error).__name__ == "NoArgsIsHelpError":
                raise
            command = (error.ctx or ctx).command_path
            raise Failure(f"{error.format_message()} See {command} --help.") from error
        except NeardupError as error:
            raise Failure(error.args[0]) from error
        except OSError as error:
            # click exits quietly when the reader of a pipe is gone. An error without a number has
            # no message to show.
            if error.errno in (errno.EPIPE, None):
                raise
            name = f": {error.filename}" if error.filename else ""
            raise Failure(f"{error.strerror}{name}. Fix the problem and run again.") from error
        except KeyboardInterrupt:
            click.echo("\nInterrupted.", err=True)
            ctx.exit(INTERRUPTED)


@click.group(
    cls=Program,
    commands=cast(dict[str, click.Command], _Commands()),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="neardup", message="%(prog)s %(version)s")
def cli() -> None:
    """Find near-duplicate texts and web pages in collections of any size, keep one of each, and
    show why.

    \b
    Examples:
      neardup dedup news.parquet more/*.jsonl.zst -o out/
      neardup cluster pages/ -o out/ --method structure
      neardup contamination evals/*.jsonl --corpus train/ -o out/
      neardup compare a.txt b.txt
      neardup index add-if-new news.index stream.jsonl -o new.jsonl
      neardup plan --documents 1e8 --threshold 0.8 --recall 0.99

    `neardup COMMAND --help` shows the common options of a command, --help-all shows all.
    """


def every_command(
    group: click.Group = cli, prefix: str = ""
) -> Iterator[tuple[str, click.Command]]:
    """Yield the commands with their names, a group before its commands: `index`, `index create`."""
    # Loads every command: only the documentation and the tests list them.
    for name, command in group.commands.items():
        yield prefix + name, command
        if isinstance(command, click.Group):
            yield from every_command(command, f"{prefix}{name} ")


def _load_methods() -> None:
    """Import the modules that NEARDUP_METHODS names, which register other methods; exit if there is
    no such module.
    """
    names = os.environ.get("NEARDUP_METHODS", "")
    try:
        for name in filter(None, names.split(",")):
            # A path, such as ./methods: `import_module` would raise TypeError.
            if name.startswith("."):
                raise ImportError("a name of a module begins with no dot")
            import_module(name)
    except ImportError as error:
        # Shown here: this is before click, which would catch and print it.
        Failure(
            f"NEARDUP_METHODS names modules that register methods: got {names} ({error}). Add the "
            "folder of the module to PYTHONPATH, or correct its name."
        ).show()
        sys.exit(Failure.exit_code)


def prepare() -> None:
    """Set up the process for a run. Requires: neither Arrow nor NumPy is loaded."""
    # Arrow's allocator returns memory to the system at once, and requests it again for the next
    # batch. A delay of ten seconds saves a third of the system time of a run. Arrow reads the
    # variable when it is loaded.
    os.environ.setdefault("MIMALLOC_PURGE_DELAY", "10000")
    # NumPy's linear algebra, unused here, starts a thread for each processor. Each thread spins
    # for a while, which takes 0.1 CPU seconds. NumPy reads the variable when it is loaded.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Loading the libraries creates 170,000 objects that live until the process ends. Scanning them
    # for garbage several times, and once more at exit, took 0.2 seconds.
    gc.set_threshold(250_000)
    atexit.register(gc.freeze)


def main() -> None:
    """Run the command line."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A text may have characters that the terminal cannot show.
        sys.stdout.reconfigure(errors="replace")
    prepare()
    # With -W or PYTHONWARNINGS, the user has asked for warnings.
    if not sys.warnoptions:
        # All of them come from libraries: the warnings of neardup are in the report.
        warnings.simplefilter("ignore")
    # Before the command line is parsed: --method accepts the names that they register.
    _load_methods()
    cli(prog_name="neardup")
