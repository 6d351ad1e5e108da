"""Write docs/what-works-where.md from what the engines declare.

`python tools/make_engine_docs.py` writes it; with `--check` it fails if the page is not what the
code says now.
"""

from __future__ import annotations

import sys
from pathlib import Path

from neardup.engines.capabilities import COMMANDS, INDEX, LARGE_SPARK, LOCAL, SPARK, Capabilities

PAGE = Path(__file__).resolve().parent.parent / "docs" / "what-works-where.md"
COLUMNS = {"this machine": LOCAL, "an index as `against`": INDEX, "Spark": SPARK}
ENGINES = (*COLUMNS.values(), LARGE_SPARK)
LARGE = """
With `tables=False`, as on the command line, and `write="kept"` or `"removed"`, a run on Spark may have more than
5 million documents or 10 million pairs of duplicates, which the driver does not collect: workers decide then, and take
less:
"""  # noqa: E501
HEAD = """# What works where

The three engines give the same result, row for row. This page is generated from what they declare; everything else is
refused with a sentence. An option is *not applicable* where it would change nothing, and is refused there too. For
DataFrames, [`neardup.spark`](spark.md) has `dedup`, `find_pairs`, `cluster`, `sign` and `document_frequencies`, with the
parameters that their signatures show.
"""  # noqa: E501


def render() -> str:
    """Return the page."""
    options = dict.fromkeys(limit.option for engine in COLUMNS.values() for limit in engine.limits)
    commands = [
        _row(name, ["yes" if name in engine.commands else "no" for engine in COLUMNS.values()])
        for name in COMMANDS
    ]
    cells = [
        _row(option, [_cell(engine, option) for engine in COLUMNS.values()]) for option in options
    ]
    reasons = [
        f"- `{limit.option}` {engine.where}: {limit.reason}."
        for engine in ENGINES
        for limit in engine.limits
    ]
    return "\n".join(
        [
            HEAD,
            *_head("function"),
            *commands,
            "\nEvery option that is not listed works with all engines.\n",
            *_head("option"),
            *cells,
            LARGE,
            *(
                f"- `{limit.option}`: {_cell(LARGE_SPARK, limit.option)}"
                for limit in LARGE_SPARK.limits
            ),
            "\nThe reasons:\n",
            *reasons,
            "",
        ]
    )


def _head(name: str) -> list[str]:
    return [f"| {name} | {' | '.join(COLUMNS)} |", "|---" * (1 + len(COLUMNS)) + "|"]


def _row(name: str, cells: list[str]) -> str:
    return f"| `{name}` | {' | '.join(cells)} |"


def _cell(engine: Capabilities, option: str) -> str:
    limit = next((limit for limit in engine.limits if limit.option == option), None)
    if limit is None:
        return "yes"
    if not limit.applies:
        return "not applicable"
    words = [str(value) for value in limit.accepted if value]
    return ", ".join(f"`{word}`" for word in words) if words else "no"


if __name__ == "__main__":
    page = render()
    if sys.argv[1:] == ["--check"]:
        sys.exit(
            page != PAGE.read_text(encoding="utf-8")
            and f"{PAGE} is not what the code says: run {__file__}"
        )
    PAGE.write_text(page, encoding="utf-8")
