"""Put the measured table into the READMEs, between their marks, from benchmarks/results/latest.md.

`python tools/fill_benchmark.py` writes it; with `--check` it fails if a README has other figures.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
LATEST = REPOSITORY / "benchmarks" / "results" / "latest.md"
BEGIN = "<!-- benchmark -->\n"
END = "<!-- /benchmark -->"
_LINES_WITHOUT_PEERS = 8  # head, rule, three yardsticks, three runs of neardup
_CHOSEN = ("tool", "---", "pyarrow copy", "neardup", "gaoya", "rensa:exact")
COLUMNS = (
    "tool",
    "version",
    "confirmed by",
    "wall, s",
    "peak, MB",
    "x copy",
    "found",
    "removed wrongly",
)
CHINESE = {
    r"(\d+ MB) of text, ([\d,]+) documents:": r"\1 文本，\2 篇文档：",
    r"exact Jaccard": "精确 Jaccard",
    r"estimate from the signatures": "由签名估计",
    r"tool \| version \| confirmed by": "工具 | 版本 | 确认方式",
    r"wall, s \| peak, MB \| x copy": "耗时（秒） | 峰值内存（MB） | 相对复制",
    r"found \| removed wrongly": "找到 | 误删",
}
READMES: dict[str, dict[str, str]] = {"README.md": {}, "README.zh-CN.md": CHINESE}


def render(page: str) -> str:
    """Return the table of the largest corpus that peers ran on, with fewer columns and rows: the
    yardstick, neardup, the fastest peer, and the fastest peer that confirms exactly.
    """
    sections = re.findall(r"^## (.*documents)\n\n((?:\|.*\n)+)", page, re.MULTILINE)
    title, table = max(
        (section for section in sections if section[1].count("\n") > _LINES_WITHOUT_PEERS),
        key=lambda section: float(section[0].split()[0]),
    )
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    chosen = [rows[0].index(name) for name in COLUMNS]
    lines = [
        "| " + " | ".join(row[i] for i in chosen) + " |"
        for row in rows
        if len(row) == len(rows[0]) and row[0] in _CHOSEN
    ]
    return f"\n{title}:\n\n" + "\n".join(lines) + "\n\n"


def fill(readme: str, table: str) -> str:
    """Return the README with the table between its marks."""
    before, rest = readme.split(BEGIN, 1)
    return before + BEGIN + table + END + rest.split(END, 1)[1]


if __name__ == "__main__":
    if not LATEST.exists():
        sys.exit(f"There is no {LATEST.relative_to(REPOSITORY)} yet. Run make bench.")
    for name, words in READMES.items():
        table = render(LATEST.read_text(encoding="utf-8"))
        for pattern, word in words.items():
            table = re.sub(pattern, word, table)
        old = (REPOSITORY / name).read_text(encoding="utf-8")
        new = fill(old, table)
        if "--check" not in sys.argv:
            (REPOSITORY / name).write_text(new, encoding="utf-8")
        elif old != new:
            sys.exit(
                f"{name} has other figures than {LATEST.name}. Run python tools/fill_benchmark.py."
            )
