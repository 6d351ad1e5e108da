"""Lay out names, figures and remarks in three columns."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

_NAME_WIDTH = 16


class Rows:
    """A table of a name, a right-aligned figure, and a remark."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, Text, str | None]] = []

    def count(self, name: str, value: int, remark: str = "", style: str = "") -> None:
        """Add a count."""
        self.figure(name, f"{value:,}", remark, style)

    def figure(self, name: str, value: str, remark: str = "", style: str = "") -> None:
        """Add a figure."""
        self._rows.append((name, Text(value, style), remark))

    def line(self, name: str = "", value: str = "", style: str = "") -> None:
        """Add a line whose value is never broken; an empty line separates sections."""
        self._rows.append((name, Text(value, style), None))

    def print(self, console: Console) -> None:
        """Print the rows below an empty line."""
        name_width = max(_NAME_WIDTH, *(len(name) for name, _, _ in self._rows))
        figure_width = max((len(figure) for _, figure, remark in self._rows if remark is not None), default=0)
        console.print()
        for name, value, remark in self._rows:
            if remark is None:
                line = Text(f"  {name:<{name_width}}  ").append_text(value) if name else Text()
                console.print(line, soft_wrap=True)
                continue
            value.align("right", figure_width)
            line = Text(f"  {name:<{name_width}}  ").append_text(value).append("  ")
            indent = " " * len(line)
            remarks = Text(remark, "dim").wrap(console, max(console.width - len(line), 20))
            for part in remarks:
                part.rstrip()
            line.append_text(Text(f"\n{indent}").join(remarks))
            line.rstrip()
            console.print(line, soft_wrap=True)
