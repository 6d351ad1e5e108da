"""Write docs/api.md from the public names, their signatures and docstrings, and the declared
settings.

`python tools/make_api_docs.py` writes it; with `--check` it fails if the page is not what the code
says now.

Docstrings repeat for `help()` what a page says once: the page describes the arguments of reading in
a section, writes `**reading` for them in signatures, and lists the errors of `dedup` there only.
Of an argument or a setting that an option of the command line describes in the same words, this
page has the name, the limits and the default, and docs/command-line.md the meaning.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
import textwrap
from functools import cache, cached_property
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import click
from make_cli_docs import anchors

import neardup
from neardup import errors, suggestion
from neardup.api import index_files
from neardup.cli.main import every_command
from neardup.runs.options import ReadingSettings
from neardup.runs.run import ReadingOptions
from neardup.settings import methods, run
from neardup.settings.constraints import Constraint
from neardup.settings.jieba import JIEBA
from neardup.stores import base

PAGE = Path(__file__).resolve().parent.parent / "docs" / "api.md"
WIDTH = 100
FUNCTIONS = (
    "dedup",
    "find_pairs",
    "cluster",
    "remove_passages",
    "find_contamination",
    "audit",
    "compare",
    "evaluate",
    "compare_methods",
    "sweep",
    "plan",
    "sign",
    "explain",
    "document_frequencies",
)
RESULTS = (
    "Deduplication",
    "DuplicatePairs",
    "Clustering",
    "PassageRemoval",
    "Contamination",
    "Audit",
    "Comparison",
    "Evaluation",
    "Sweep",
    "Plan",
    "IdfTable",
    "Signatures",
    "Fingerprints",
    "Progress",
)
OF_INDEX = ("Answer", "Hit", "Document")
INDEXES = ("HammingIndex", "LSHIndex")
PAGES = ("method",)
METHODS = (methods.MinHash, methods.SimHash, methods.Vectors)
ARGUMENTS = (
    ReadingSettings,
    run.SelectionSettings,
    run.GroupSettings,
    run.OutputSettings,
    run.RunSettings,
    run.EngineSettings,
)
READING = tuple(ReadingOptions.__annotations__)
AS_BEFORE = ("as in `dedup`.", "as in `add_many_if_new`.")
"""The descriptions of arguments that the page leaves out."""
OPTIONS = "Described as options: {}.\n"
OF_JIEBA = {field: option for option, field in JIEBA.items()}
"""The options of the fields of `Jieba`."""
COMMANDS = {name: name.replace("_", "-") for name in FUNCTIONS} | {
    "remove_passages": "passages",
    "find_contamination": "contamination",
    "Index.create": "index-create",
    "Sweep.ask": "sweep",
}
"""The commands of functions, as the headings of docs/command-line.md link to them."""
_IMPORT = ">>> import neardup\n"
_HEAD = """# API

Everything public is in `neardup`, less common parts are in `neardup.lsh`. `tools/make_api_docs.py`
generates this page from the code. Arguments after the first are keyword-only. `neardup.__version__` is the version.
`**reading` in a signature stands for the [arguments of reading](#arguments-of-reading).
"""  # noqa: E501
_FUNCTIONS = """## Functions

An argument without a description is as in `dedup`, and so are [errors](#errors) that are not listed. Arguments that are
also options of the command line have a link to their description there. Examples leave out `import neardup`.
"""  # noqa: E501
_SETTINGS = """## Settings

`MinHash`, `SimHash` and `Vectors` are the settings of a comparison, passed as `method=neardup.MinHash(boost_rare=True)`;
`Jieba` has the settings of Chinese words, passed as `tokens=`. The links describe each. `None` is accepted where it is
the default.
"""  # noqa: E501
_RESULTS = """## Results

Tables are Arrow tables; `schemas` is `neardup.schemas`, and [File formats](file-formats.md) describes the columns.
"""  # noqa: E501

_INDEX = """## The index

[The index](index.md) explains it. An argument without a description is as in `add_many_if_new`.
"""
_LSH = """## neardup.lsh

Bands and blocks by themselves, and records of other results, such as `neardup.lsh.Bands`.
"""


class Item(NamedTuple):
    """A parameter, an attribute or an error of a docstring, with its description."""

    names: str
    text: str

    def written(self) -> str:
        """Return the item as a paragraph with an indent."""
        return _filled(f"{self.names}: {self.text}")


def render() -> str:
    """Return the page."""
    parts = [_HEAD, _FUNCTIONS, *map(_entry, FUNCTIONS), _reading(), _SETTINGS]
    parts += [*map(_settings_list, (*METHODS, methods.Jieba))]
    parts += ["## Methods by name\n", *map(_entry, PAGES)]
    parts += [
        _RESULTS,
        *[part for name in RESULTS for part in _result(name)],
        _entry("Suggestion", suggestion),
        _entry("Grade", suggestion),
        _entry("Differences", suggestion),
    ]
    parts += [
        _INDEX,
        _entry("Index"),
        *_methods("Index"),
        *map(_entry, OF_INDEX),
        _entry("FileHits", index_files),
        _entry("Import", base),
    ]
    parts += ["## Indexes in memory\n", *map(_entry, INDEXES)]
    parts += [_LSH, *(_entry(name, neardup.lsh) for name in neardup.lsh.__all__), _errors()]
    return "\n".join(parts)


def _entry(name: str, module: ModuleType = neardup) -> str:
    thing = getattr(module, name)
    block = _described(_signature(f"{module.__name__}.{name}", thing), thing)
    return f"### {name}\n\n{block}{_options_of(name, thing)}"


def _options_of(name: str, thing: Any) -> str:
    """Return a line with the arguments of a function that the command line describes."""
    items = [item for item in _arguments(thing) if _is_option(item)]
    if name not in COMMANDS or not items:
        return ""
    listed = ", ".join(_linked(item, f"neardup-{COMMANDS[name]}") for item in items)
    return "\n" + _page_filled(OPTIONS.format(listed))


def _linked(item: Item, own: str) -> str:
    """Return an item with its limits, its name as a link to the option that describes it.

    own : the place of the options that one command has.
    """
    shown, space, limits = item.names.partition(" ")
    name, _, _ = shown.partition("=")
    shared = [
        place
        for (option, text), place in _places().items()
        if option == name and item.text.startswith(_lowered(text))
    ]
    return f"[`{shown}`](command-line.md#{[*shared, own][0]}){space}{limits}"


@cache
def _places() -> dict[tuple[str, str], str]:
    return anchors()


def _page_filled(text: str) -> str:
    """Return a paragraph in the lines of the page."""
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False) + "\n"


def _result(name: str) -> list[str]:
    """Return the entry of a result, and those of its methods."""
    return [_entry(name), *(_methods(name) if name in ("Deduplication", "Sweep") else [])]


def _methods(name: str) -> list[str]:
    """Return an entry for each public method of a class, in the order of the code, then one for the
    properties, and the methods without parameters or errors to describe.
    """
    owner = getattr(neardup, name)
    entries = []
    short = []
    for method in [method for kind in owner.__mro__[:-1] for method in vars(kind)]:
        thing = getattr(owner, method)
        if method.startswith("_"):
            continue
        if isinstance(thing, property | cached_property):
            if re.search(rf"^{method}[ ,].*:", inspect.getdoc(owner) or "", re.MULTILINE):
                continue  # the class describes it
            prose, sections = _sections(inspect.getdoc(thing) or "")
            short.append(f"{name}.{method}\n{textwrap.indent(prose, '    ')}")
            continue
        if not callable(thing):
            continue
        signature = (
            _signature(f"{name}.{method}", thing).replace("(self, ", "(").replace("(self)", "()")
        )
        prose, sections = _sections(inspect.getdoc(thing) or "")
        if sections:
            options = _options_of(f"{name}.{method}", thing)
            entries.append(f"#### {name}.{method}\n\n{_described(signature, thing)}{options}")
        else:
            short.append(f"{_filled(signature)}\n{textwrap.indent(prose, '    ')}")
    if short:
        entries.append(
            "#### {}: other members\n\n```text\n{}\n```\n".format(name, "\n\n".join(short))
        )
    return entries


def _described(signature: str, thing: Any) -> str:
    """Return the signature and the docstring of a name as a block of text."""
    prose, sections = _sections(inspect.getdoc(thing) or "")
    result = sections.pop("Returns", "")
    if result and "\n" not in result:
        signature = f"{signature} -> {result}"
        result = ""
    # The heading has the name, except of a class that is in no public module.
    is_named = inspect.isclass(thing) and any(
        getattr(module, thing.__name__, None) is thing for module in (neardup, neardup.lsh)
    )
    parts = ["" if is_named else _filled(signature), prose]
    for heading, text in sections.items():
        if heading in ("Parameters", "Attributes"):
            parts.append(_parameters(text, thing))
        else:
            parts += [_returns(result), _raises(text, thing) if heading == "Raises" else text]
            result = ""
    parts.append(_returns(result))
    return "```text\n{}\n```\n".format("\n\n".join(filter(None, parts)))


def _sections(doc: str) -> tuple[str, dict[str, str]]:
    """Return the text of a docstring before its first section, and its sections by heading."""
    prose, *others = re.split(r"(?m)^(\w+)\n-{3,}\n", doc)
    pairs = zip(others[::2], others[1::2], strict=True)
    sections = {heading: text.strip("\n") for heading, text in pairs}
    return _with_colons(prose.strip()), {
        heading: text.removeprefix(_IMPORT) if heading == "Examples" else _with_colons(text)
        for heading, text in sections.items()
    }


def _with_colons(text: str) -> str:
    return re.sub(r"(?<=\S) :(?=\s)", ":", text)


def _items(text: str) -> list[Item]:
    """Return the items of a section; a line without an indent begins one."""
    items = []
    for part in re.split(r"\n(?=\S)", text):
        names, _, rest = _joined(part).partition(": ")
        items.append(Item(names, rest))
    return items


def _filled(text: str) -> str:
    """Return a paragraph of lines, all but the first with an indent."""
    return textwrap.fill(
        text, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )


def _joined(text: str) -> str:
    return " ".join(text.split())


def _parameters(text: str, thing: Any) -> str:
    """Return the parameters, without those of reading and those as in `dedup`."""
    first, *others = text.split("\n\n")
    items = _items(first)
    if any(attrgetter(name)(neardup) == thing for name in COMMANDS):
        items = [_shortened(item) for item in _arguments(thing) if _beyond_option(item) != ""]
    lines = [item.written() for item in items if item.text not in AS_BEFORE]
    return "\n\n".join(filter(None, ["\n".join(lines), *others]))


def _arguments(thing: Any) -> list[Item]:
    """Return the arguments of a function; of `dedup` with limits, without those of reading."""
    _, sections = _sections(inspect.getdoc(thing) or "")
    items = _items(sections.get("Parameters", "").split("\n\n")[0])
    if thing is not neardup.dedup:
        return items
    own = [item for item in items if not set(item.names.split(", ")) <= set(READING)]
    return [_with_limits(item) for item in own]


def _shortened(item: Item) -> Item:
    """Return an item without the description of its option, which also has the limits."""
    beyond = _beyond_option(item)
    return (
        item if beyond is None else Item(item.names.partition(" (")[0], f"as the option. {beyond}")
    )


def _is_option(item: Item) -> bool:
    """Return whether an option of the command line has the name of the item, and describes it."""
    return _beyond_option(item) is not None


def _beyond_option(item: Item) -> str | None:
    """Return the rest of an item after the description of the option of its name, or None."""
    name, _, _ = item.names.partition(" (")
    for described in _options().get(name, ()):
        if item.text.startswith(described):
            return item.text.removeprefix(described).strip()
    return None


@cache
def _options() -> dict[str, set[str]]:
    """Return the descriptions of the options of all commands by the names of the options."""
    found: dict[str, set[str]] = {}
    for _, command in every_command():
        for option in command.params:
            if isinstance(option, click.Option):
                text, _, _ = (option.help or "").partition("  [default: ")
                found.setdefault(str(option.name), set()).add(_lowered(text))
    return found


def _lowered(text: str) -> str:
    """Return a sentence as an argument is described: it begins with a small letter."""
    return text[:1].lower() + text[1:]


def _returns(text: str) -> str:
    """Return the description of a result of several lines; empty if there is none."""
    kind, _, meaning = text.partition("\n    ")
    meaning = meaning[:1].lower() + meaning[1:]
    return _filled(f"Returns {_joined(f'{kind}: {meaning}' if meaning else kind)}") if text else ""


def _raises(text: str, thing: Any) -> str:
    """Return a line with the names of the errors; of `dedup` a line for each, with the reason."""
    names = []
    lines = []
    for part in re.split(r"\n(?=\S)", text):
        name, _, reason = part.partition("\n")
        reason = _joined(reason)
        if reason != "As in `dedup`.":
            names.append(name)
            lines.append(_filled(f"Raises {name} {reason[:1].lower()}{reason[1:]}"))
    if thing is neardup.dedup:
        return "\n".join(lines)
    return _filled(f"Raises {', '.join(names)}.") if names else ""


def _reading() -> str:
    """Return the section of the arguments of reading, as the docstring of `dedup` has them."""
    _, sections = _sections(inspect.getdoc(neardup.dedup) or "")
    items = [i for i in _items(sections["Parameters"]) if set(i.names.split(", ")) <= set(READING)]
    parameters = inspect.signature(neardup.dedup).parameters
    described = []
    options = []
    for item in map(_with_limits, items):
        name, space, limits = item.names.partition(" ")
        default = _default(parameters[name].default)
        shown = item._replace(names=f"{name}={default}{space}{limits}")
        (options if _is_option(item) else described).append(shown)
    block = "\n".join(item.written() for item in described)
    names = ", ".join(re.sub(r"^\S+", r"`\g<0>`", item.names) for item in options)
    line = _page_filled(OPTIONS.format("neardup-options", names))
    return f"### Arguments of reading\n\n```text\n{block}\n```\n\n{line}"


def _signature(name: str, thing: Any) -> str:
    if inspect.isclass(thing):
        return f"class {name}"
    parameters = inspect.signature(thing).parameters
    has_reading = set(READING) <= set(parameters)
    shown = []
    for parameter in parameters.values():
        if has_reading and parameter.name in READING:
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in shown:
            shown.append("*")
        default = "" if parameter.default is parameter.empty else f"={_default(parameter.default)}"
        stars = "**" * (parameter.kind is parameter.VAR_KEYWORD)
        shown.append(f"{stars}{parameter.name}{default}")
    if has_reading:
        shown.append("**reading")
    return f"{name}({', '.join(shown)})"


def _default(value: Any) -> str:
    return f"{type(value).__name__}()" if isinstance(value, METHODS) else repr(value)


def _settings_list(settings: type) -> str:
    """Return the list of a class of settings; one that `MinHash` has, too, is only named."""
    entries = _entries(settings)
    of_minhash = {} if settings is methods.MinHash else _entries(methods.MinHash)
    by_name = {option: place for (option, _), place in _places().items()}
    lines = [f"### {settings.__name__}\n"]
    names = [f"`{name}`" for name, entry in entries.items() if of_minhash.get(name) == entry]
    if names:
        lines.append(f"As in MinHash: {', '.join(names)}.\n")
    for name, entry in entries.items():
        if of_minhash.get(name) != entry:
            accepted = f": {entry.accepted}" if entry.accepted else ""
            option = OF_JIEBA.get(name, name) if settings is methods.Jieba else name
            link = f"command-line.md#{by_name[option]}"
            lines.append(f"- [`{name}={entry.default}`]({link}){accepted}")
    return "\n".join(lines) + "\n"


class Entry(NamedTuple):
    """A setting in a list."""

    default: str
    accepted: str


def _entries(settings: type) -> dict[str, Entry]:
    return {
        field.name: Entry(
            default=repr(field.default),
            accepted=_accepted(field.metadata["constraint"]),
        )
        for field in dataclasses.fields(settings)
    }


def _with_limits(item: Item) -> Item:
    """Return an argument of dedup with the values that it accepts, unless it accepts any string,
    or the command line lists them.
    """
    constraints = {
        field.name: field.metadata["constraint"]
        for settings in ARGUMENTS
        for field in dataclasses.fields(settings)
    }
    constraint = constraints.get(item.names)
    accepted = "" if constraint is None else _accepted(constraint)
    is_listed = constraint is not None and bool(constraint.choices) and _is_option(item)
    if not accepted or is_listed or accepted.startswith("a string or"):
        return item
    return item._replace(names=f"{item.names} ({accepted})")


def _accepted(constraint: Constraint) -> str:
    """Return the accepted values, a range in short; empty if the default shows them."""
    text = re.sub(r"'([^']*)'", r"`\1`", constraint.describe()).removesuffix(" or None")
    text = re.sub(r"^a (whole )?number (of )?", "", text)
    text = re.sub(r"^one of ", "", text)
    if text in ("True or False", "a string", "a list of strings"):
        return ""
    return text.replace(" or more and at most ", " to ").replace(" and at most ", ", at most ")


def _errors() -> str:
    tree = (inspect.getdoc(errors) or "").split("::\n\n", 1)[1].split("\n\n", 1)[0]
    tree = "\n".join(line.removeprefix("    ") for line in tree.splitlines())
    return f"## Errors\n\n```text\n{tree}\n```\n"


if __name__ == "__main__":
    page = render()
    if "--check" not in sys.argv:
        PAGE.write_text(page, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page:
        sys.exit(
            f"{PAGE.name} is not what the code says now. Run make write-docs, and look at what "
            "changed."
        )
