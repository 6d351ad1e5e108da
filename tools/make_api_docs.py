"""Write docs/api.md from the public names, their signatures and docstrings, and the declared
settings.

`python tools/make_api_docs.py` writes it; with `--check` it fails if the page is not what the code
says now.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import neardup
from neardup import errors, suggestion
from neardup.api import index_files
from neardup.runs.options import ReadingSettings
from neardup.settings import methods, run
from neardup.settings.run import IndexSettings
from neardup.stores import base

PAGE = Path(__file__).resolve().parent.parent / "docs" / "api.md"
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
_HEAD = """# API

Everything public can be imported from `neardup`, less common parts from `neardup.lsh`. `tools/make_api_docs.py`
generates this page from the code. Arguments after the first are keyword-only. `neardup.__version__` is the version.
"""  # noqa: E501
_SETTINGS = """## Settings

`MinHash`, `SimHash` and `Vectors` are the settings of a comparison, `Jieba` those of Chinese word segmentation.
The other settings are arguments of `dedup` and `find_pairs`. A value outside its limits raises `SettingError`, which
names the limits. On the command line `num_bands` is `--num-bands`, and so on.
"""  # noqa: E501

_INDEX = """## The index

[The index](index.md) explains it; these are its settings, its methods and their results.
"""
_LSH = """## neardup.lsh

Bands and blocks by themselves, and records that other results contain: `from neardup.lsh import Bands`, or
`neardup.lsh.Bands`.
"""  # noqa: E501


def render() -> str:
    """Return the page."""
    parts = [_HEAD, "## Functions\n", *map(_entry, FUNCTIONS), _SETTINGS]
    parts += [*map(_settings_table, (*METHODS, methods.Jieba)), _limits_table()]
    parts += ["## Methods by name\n", *map(_entry, PAGES)]
    parts += [
        "## Results\n",
        *map(_entry, RESULTS),
        *_methods("Sweep"),
        _entry("Suggestion", suggestion),
        _entry("Grade", suggestion),
        _entry("Differences", suggestion),
    ]
    parts += [_INDEX, _settings_table(IndexSettings)]
    parts += [
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
    doc = inspect.getdoc(thing) or ""
    return (
        f"### {name}\n\n```text\n{_signature(f'{module.__name__}.{name}', thing)}\n\n{doc}\n```\n"
    )


def _methods(name: str) -> list[str]:
    """Return an entry for each public method of a class, in the order of the code."""
    owner = getattr(neardup, name)
    entries = []
    for method in [method for kind in owner.__mro__[:-1] for method in vars(kind)]:
        thing = getattr(owner, method)
        if method.startswith("_") or not callable(thing):
            continue
        signature = (
            _signature(f"{name}.{method}", thing).replace("(self, ", "(").replace("(self)", "()")
        )
        entries.append(
            f"#### {name}.{method}\n\n```text\n{signature}\n\n{inspect.getdoc(thing)}\n```\n"
        )
    return entries


def _signature(name: str, thing: Any) -> str:
    if inspect.isclass(thing):
        return f"class {name}"
    parameters = inspect.signature(thing).parameters.values()
    shown = []
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in shown:
            shown.append("*")
        default = "" if parameter.default is parameter.empty else f"={_default(parameter.default)}"
        stars = "**" * (parameter.kind is parameter.VAR_KEYWORD)
        shown.append(f"{stars}{parameter.name}{default}")
    return f"{name}({', '.join(shown)})"


def _default(value: Any) -> str:
    return f"{type(value).__name__}()" if isinstance(value, METHODS) else repr(value)


def _settings_table(settings: type) -> str:
    """Return the table of a class of settings; a row that `MinHash` has, too, is only named."""
    rows = _rows(settings)
    same = {} if settings is methods.MinHash else _rows(methods.MinHash)
    lines = [f"### {settings.__name__}\n"]
    names = [f"`{name}`" for name, row in rows.items() if same.get(name) == row]
    if names:
        lines.append(f"As in MinHash: {', '.join(names)}.\n")
    lines += ["| name | default | accepted | meaning |", "|---|---|---|---|"]
    lines += [row for name, row in rows.items() if same.get(name) != row]
    return "\n".join(lines) + "\n"


def _rows(settings: type) -> dict[str, str]:
    rows = {}
    for field in dataclasses.fields(settings):
        meaning = field.metadata["constraint"].help
        rows[field.name] = (
            f"| `{field.name}` | `{field.default!r}` | {_accepted(field)} | {meaning} |"
        )
    return rows


def _limits_table() -> str:
    """Return the limits of the arguments of dedup; those that accept any string have none."""
    fields = [
        field
        for settings in ARGUMENTS
        for field in dataclasses.fields(settings)
        if not _accepted(field).startswith("a string or")
    ]
    rows = [f"| `{field.name}` | `{field.default!r}` | {_accepted(field)} |" for field in fields]
    head = [
        "### Limits of the arguments of dedup\n",
        "| name | default | accepted |",
        "|---|---|---|",
    ]
    return "\n".join([*head, *rows]) + "\n"


def _accepted(field: dataclasses.Field[Any]) -> str:
    return re.sub(r"'([^']*)'", r"`\1`", field.metadata["constraint"].describe())


def _errors() -> str:
    names = [name for name in neardup.__all__ if name.endswith("Error")]
    lines = [f"- `{name}`: {inspect.getdoc(getattr(neardup, name))}" for name in names]
    tree = (inspect.getdoc(errors) or "").split("::\n\n", 1)[1].split("\n\n", 1)[0]
    tree = "\n".join(line.removeprefix("    ") for line in tree.splitlines())
    return "\n".join(["## Errors\n", f"```text\n{tree}\n```\n", *lines]) + "\n"


if __name__ == "__main__":
    page = render()
    if "--check" not in sys.argv:
        PAGE.write_text(page, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page:
        sys.exit(
            f"{PAGE.name} is not what the code says now. Run make write-docs, and look at what "
            "changed."
        )
