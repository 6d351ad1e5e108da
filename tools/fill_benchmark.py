"""Put the measured table into the README, between its marks, from benchmarks/results/latest.md.

`python tools/fill_benchmark.py` writes it; with `--check` it fails if the README has other figures.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
README = REPOSITORY / "README.md"
LATEST = REPOSITORY / "benchmarks" / "results" / "latest.md"
BEGIN, END = "<!-- benchmark -->\n", "<!-- /benchmark -->"
_LINES_WITHOUT_PEERS = 4  # head, rule, wc -w, neardup
COLUMNS = ("tool", "version", "confirmed by", "wall, s", "peak, MB", "x wc -w", "found", "removed wrongly")


def render(page: str) -> str:
    """Return the table of the largest corpus that peers ran on, with fewer columns."""
    sections = re.findall(r"^## (.*documents)\n\n((?:\|.*\n)+)", page, re.MULTILINE)
    title, table = max(
        (section for section in sections if section[1].count("\n") > _LINES_WITHOUT_PEERS),
        key=lambda section: float(section[0].split()[0]),
    )
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    chosen = [rows[0].index(name) for name in COLUMNS]
    lines = ["| " + " | ".join(row[i] for i in chosen) + " |" for row in rows if len(row) == len(rows[0])]
    return f"\n{title}:\n\n" + "\n".join(lines) + "\n\n"


def fill(readme: str, table: str) -> str:
    """Return the README with the table between its marks."""
    before, rest = readme.split(BEGIN, 1)
    return before + BEGIN + table + END + rest.split(END, 1)[1]


if __name__ == "__main__":
    if not LATEST.exists():
        sys.exit(f"There is no {LATEST.relative_to(REPOSITORY)} yet. Run make bench.")
    old = README.read_text(encoding="utf-8")
    new = fill(old, render(LATEST.read_text(encoding="utf-8")))
    if "--check" not in sys.argv:
        README.write_text(new, encoding="utf-8")
    elif old != new:
        sys.exit("The README has other figures than benchmarks/results/latest.md. Run python tools/fill_benchmark.py.")
