"""Write docs/what-works-where.md from what the engines declare.

`python tools/make_engine_docs.py` writes it; with `--check` it fails if the page is not what the
code says now.
"""

from __future__ import annotations

import sys
from pathlib import Path

from neardup.engines.capabilities import (
    COMMANDS,
    INDEX,
    LARGE_SPARK,
    LOCAL,
    SPARK,
    Capabilities,
    Limit,
)

PAGE = Path(__file__).resolve().parent.parent / "docs" / "what-works-where.md"
COLUMNS = {"this machine": LOCAL, "an index as `against`": INDEX, "Spark": SPARK}
HEAD = """# What works where

The three engines give the same result, row for row. This page is generated from what they declare; everything else is
refused with a sentence. For DataFrames, [`neardup.spark`](spark.md) has `dedup`, `find_pairs`, `cluster`, `sign` and
`document_frequencies`.
"""  # noqa: E501
OPTIONS = """
Every option works with all engines, except these:
"""
LARGE = """
### Large runs on Spark

With `tables=False`, as on the command line, and `write="kept"` or `"removed"`, a run on Spark may have more than
5 million documents or 10 million pairs of duplicates, which the driver does not collect: workers decide then. Also
limited are:
"""  # noqa: E501


def render() -> str:
    """Return the page."""
    lines = [
        HEAD,
        f"| function | {' | '.join(COLUMNS)} |",
        "|---" * (1 + len(COLUMNS)) + "|",
        *map(_row, COMMANDS),
        OPTIONS,
    ]
    for name, engine in COLUMNS.items():
        lines += [f"### {name[0].upper()}{name[1:]}\n", *_limits(engine), ""]
    return "\n".join([*lines[:-1], LARGE, *_limits(LARGE_SPARK), ""])


def _row(function: str) -> str:
    """Return the row of a function."""
    cells = ["yes" if function in engine.commands else "no" for engine in COLUMNS.values()]
    return f"| `{function}` | {' | '.join(cells)} |"


def _limits(engine: Capabilities) -> list[str]:
    """Return a line for each reason of an engine, with the options that it limits."""
    by_reason: dict[str, dict[str, list[str]]] = {}
    for limit in engine.limits:
        options = by_reason.setdefault(limit.reason, {})
        options.setdefault(_accepted(limit), []).append(f"`{limit.option}`")
    lines = []
    for reason, options in by_reason.items():
        limited = [f"{', '.join(names)}: {accepted}" for accepted, names in options.items()]
        lines.append(f"- {'; '.join(limited)} ({reason})")
    return lines


def _accepted(limit: Limit) -> str:
    """Return the accepted values of an option."""
    if not limit.applies:
        return "not applicable"
    words = [str(value) for value in limit.accepted if value]
    return f"only {', '.join(f'`{word}`' for word in words)}" if words else "no"


if __name__ == "__main__":
    page = render()
    if sys.argv[1:] == ["--check"]:
        sys.exit(
            page != PAGE.read_text(encoding="utf-8")
            and f"{PAGE} is not what the code says: run {__file__}"
        )
    PAGE.write_text(page, encoding="utf-8")
