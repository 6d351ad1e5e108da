"""Write docs/command-line.md from the help texts of the commands.

`python tools/make_cli_docs.py` writes it; with `--check` it fails if the page is not what the code
says now.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from neardup.cli.main import cli, every_command
from neardup.cli.settings import Command

PAGE = Path(__file__).resolve().parent.parent / "docs" / "command-line.md"
_HEAD = """# Command line

`neardup COMMAND --help` shows the common options of a command, `neardup COMMAND --help-all` all of them, as on this
page, which `tools/make_cli_docs.py` generates. Defaults and limits are those of the library: both come from one
declaration.

- An error in a command or an input is one line on standard error and exit code 2. An interrupted run ends with code
  130, after a line that explains how to continue. A run that could not read its input to the end exits with 1.
- Progress is shown as bars on a terminal, and elsewhere as a line every 10 seconds. `--quiet` prints
  nothing but errors, `--json` prints the report for a program.
- An installed wheel has a manual page for each command: `man neardup-dedup`, in a virtual environment
  `man .venv/share/man/man1/neardup-dedup.1`.
- `neardup` is also `python -m neardup`.
"""  # noqa: E501


def render() -> str:
    """Return the page."""
    return "\n".join(
        [
            _HEAD,
            _section("neardup", cli),
            *(_section(f"neardup {n}", c) for n, c in every_command()),
        ]
    )


def _section(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=name, terminal_width=80, **command.context_settings)
    text = (
        command.get_help_all(context) if isinstance(command, Command) else command.get_help(context)
    )
    return f"## {name}\n\n```text\n{text.rstrip()}\n```\n"


if __name__ == "__main__":
    page = render()
    if "--check" not in sys.argv:
        PAGE.write_text(page, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page:
        sys.exit(
            f"{PAGE.name} is not what the commands say now. Run make write-docs, and look at what "
            "changed."
        )
