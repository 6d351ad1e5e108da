"""Write docs/command-line.md from the help texts of the commands.

`python tools/make_cli_docs.py` writes it; with `--check` it fails if the page is not what the code
says now.

An option that several commands have in the same words is described once, in the section of shared
options; each of these commands then names it, with links, and `--help` not even that. `--help-all`
describes all of them. docs/api.md has links to these sections, too.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import click

from neardup.cli.main import cli, every_command
from neardup.cli.settings import PRINTING

PAGE = Path(__file__).resolve().parent.parent / "docs" / "command-line.md"
_HEAD = """# Command line

`neardup COMMAND --help-all` shows all options of a command. This page, which `tools/make_cli_docs.py` generates, describes
options that several commands share [once](#shared-options). Not listed are `--lang` and `--help`, which every command has,
and `--quiet`, `--json` and `--progress`, which commands with a result or a run have.

- An error in a command or an input is one line on standard error and exit code 2. An interrupted run ends with code
  130, after a line that explains how to continue. A run that could not read all input exits with 1.
- An installed wheel has a manual page for each command: `man neardup-dedup`, in a virtual environment
  `man .venv/share/man/man1/neardup-dedup.1`.
- `neardup` is also `python -m neardup`.
"""  # noqa: E501
_SHARED_HEAD = "## Shared options\n"


class Described(NamedTuple):
    """An option as the help of a command describes it."""

    section: str  # the heading
    names: str
    text: str  # without the default
    default: str  # such as "[default: 5]"; empty if the help names none


def render() -> str:
    """Return the page."""
    contexts = _contexts()
    options = {name: _options(context) for name, context in contexts.items()}
    shared = _shared([option for described in options.values() for option in described])
    sections = [_section(name, contexts[name], options[name], shared) for name in contexts]
    return "\n".join([_HEAD, *sections, _SHARED_HEAD, *_sections_of_shared(shared)])


def anchors() -> dict[tuple[str, str], str]:
    """Return the place on the page of each shared option, by its name in Python and its text."""
    options = [option for context in _contexts().values() for option in _options(context)]
    places = {}
    for option in _shared(options).values():
        name = _long_flag(option).removeprefix("--").replace("-", "_")
        text, _, _ = option.text.partition("  [required]")
        places[name, text] = _anchor(_title(option.section))
    return places


def _contexts() -> dict[str, click.Context]:
    """Return a context of each command, by its words."""
    contexts = {"neardup": _context("neardup", cli)}
    return contexts | {
        f"neardup {name}": _context(f"neardup {name}", command) for name, command in every_command()
    }


def _context(name: str, command: click.Command) -> click.Context:
    return click.Context(command, info_name=name, terminal_width=80, **command.context_settings)


def _options(context: click.Context) -> list[Described]:
    """Return the options of a command in the order of its help."""
    described = []
    for param in context.command.get_params(context):
        record = param.get_help_record(context)
        if record is not None and isinstance(param, click.Option):
            section = getattr(param, "section", PRINTING)
            names, help_text = record
            text, mark, value = help_text.partition("  [default: ")
            described.append(Described(section, names.strip(), text, mark.lstrip() + value))
    return described


def _shared(options: list[Described]) -> dict[tuple[str, str], Described]:
    """Return the options that occur at least twice by their names and text, as they occur first.

    Of an option that occurs in several wordings, the most frequent one counts.
    """
    times = Counter(map(_wording, options))
    frequent: dict[str, str] = {}
    for (names, text), number in times.most_common():
        if number > 1:
            frequent.setdefault(names, text)
    shared: dict[tuple[str, str], Described] = {}
    for option in options:
        if frequent.get(option.names) == option.text:
            shared.setdefault(_wording(option), option)
    # The options of printing last: the first command has them before those of its input.
    return dict(sorted(shared.items(), key=lambda item: item[1].section == PRINTING))


def _wording(option: Described) -> tuple[str, str]:
    return (option.names, option.text)


def _section(
    name: str,
    context: click.Context,
    options: list[Described],
    shared: dict[tuple[str, str], Described],
) -> str:
    """Return the section of a command: the help with its own options, then links to the others."""
    command = context.command
    formatter = context.make_formatter()
    command.format_usage(context, formatter)
    command.format_help_text(context, formatter)
    _write_options(formatter, [option for option in options if _wording(option) not in shared])
    if isinstance(command, click.Group):
        _write_commands(command, formatter)
    text = formatter.getvalue().removeprefix("Usage: ")
    text = re.sub(r"\n  Examples:\n((?:    .*\n)+)", _examples(command), text)
    listed = _listed([option for option in options if _wording(option) in shared], shared)
    return f"## {name}\n\n```text\n{text.rstrip()}\n```\n{listed}"


def _examples(command: click.Command) -> Callable[[re.Match[str]], str]:
    """Return a function of the examples of a command in its help to the examples on the page.

    The page leaves out an example without options, which repeats the usage, and the examples of a
    group, which its commands have.
    """

    def shown(found: re.Match[str]) -> str:
        is_usage = found[1].count("\n") == 1 and " -" not in found[1]
        return "" if is_usage or isinstance(command, click.Group) else found[0]

    return shown


def _write_commands(group: click.Group, formatter: click.HelpFormatter) -> None:
    """Write the names of the commands, as their sections follow."""
    with formatter.section("Commands"):
        formatter.write_text(", ".join(sorted(group.commands)))


def _listed(options: list[Described], shared: dict[tuple[str, str], Described]) -> str:
    """Return a paragraph that names the shared options of a command; empty without any."""
    options = [option for option in options if option.section != PRINTING]
    whole = []
    names = []
    for section in dict.fromkeys(option.section for option in options):
        here = [option for option in options if option.section == section]
        all_of_section = {
            wording for wording, option in shared.items() if option.section == section
        }
        other = [o for o in here if o.default != shared[_wording(o)].default]
        if len(here) > 1 and {_wording(option) for option in here} == all_of_section:
            whole.append(section)
            names += [_named(option, shared) for option in other]
        else:
            names += [_named(option, shared) for option in here]
    listed = ", ".join(names)
    if whole:
        listed = f"all of {_ranges(whole, shared)}{'; ' if names else ''}{listed}"
    text = f"Shared options: {listed}."
    wrapped = textwrap.fill(text, 120, break_on_hyphens=False, break_long_words=False)
    return f"\n{wrapped}\n" if options else ""


def _named(option: Described, shared: dict[tuple[str, str], Described]) -> str:
    """Return the flag of an option with a link, and the default if another one is described."""
    described = shared[_wording(option)]
    link = f"[`{_long_flag(option)}`](#{_anchor(_title(described.section))})"
    return link if option.default == described.default else f"{link} {option.default}".rstrip()


def _title(section: str) -> str:
    """Return the heading of a section without the remark in parentheses that it may have."""
    return section.partition(" (")[0]


def _anchor(title: str) -> str:
    return f"{title.lower().replace(' ', '-')}-options"


def _ranges(sections: list[str], shared: dict[tuple[str, str], Described]) -> str:
    """Return sections in the order of the shared options; three or more neighbours as a range."""
    order = list(dict.fromkeys(option.section for option in shared.values()))
    runs: list[list[str]] = []
    for section in sorted(sections, key=order.index):
        title = f"[{_title(section)}](#{_anchor(_title(section))})"
        before = order[order.index(section) - 1]
        if runs and before in sections:
            runs[-1].append(title)
        else:
            runs.append([title])
    return ", ".join(
        f"{titles[0]} to {titles[-1]}" if len(titles) > 2 else ", ".join(titles) for titles in runs
    )


def _sections_of_shared(shared: dict[tuple[str, str], Described]) -> list[str]:
    """Return a section for each heading; headings that differ in the remark are one."""
    sections = []
    for title in dict.fromkeys(_title(option.section) for option in shared.values()):
        here = [option for option in shared.values() if _title(option.section) == title]
        formatter = click.HelpFormatter(width=78)
        formatter.write_dl(list(map(_record, here)), col_max=22)
        remark = here[0].section.removeprefix(title).strip(" ()")
        note = f"With `{remark}`:\n\n" if remark else ""
        block = textwrap.dedent(formatter.getvalue()).rstrip()
        sections.append(f"### {title} options\n\n{note}```text\n{block}\n```\n")
    return sections


def _record(option: Described) -> tuple[str, str]:
    """Return the names and the description of an option in two columns."""
    return option.names.ljust(22), f"{option.text}  {option.default}".rstrip()


def _write_options(formatter: click.HelpFormatter, options: list[Described]) -> None:
    for section in dict.fromkeys(option.section for option in options):
        here = [option for option in options if option.section == section]
        with formatter.section(section):
            formatter.write_dl(list(map(_record, here)), col_max=22)


def _long_flag(option: Described) -> str:
    """Return the flag of an option without its value and its short form."""
    flags = [word.rstrip(",") for word in option.names.split() if word.startswith("-")]
    return next(flag for flag in flags if flag.startswith("--"))


if __name__ == "__main__":
    page = render()
    if "--check" not in sys.argv:
        PAGE.write_text(page, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page:
        sys.exit(
            f"{PAGE.name} is not what the commands say now. Run make write-docs, and look at what "
            "changed."
        )
