"""Lay out names, figures and remarks in three columns."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

_NAME_WIDTH = 16


class Rows:
    """A table of a name, a figure set to the right, and a remark."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, Text, str | None]] = []

    def count(self, name: str, value: int, remark: str = "", style: str = "") -> None:
        """Add a count."""
        self.figure(name, f"{value:,}", remark, style)

    def figure(self, name: str, value: str, remark: str = "", style: str = "") -> None:
        """Add a figure."""
        self._rows.append((name, Text(value, style), remark))

    def line(self, name: str = "", value: str = "", style: str = "") -> None:
        """Add a line whose value takes all the room and is never broken; an empty one sets groups apart."""
        self._rows.append((name, Text(value, style), None))

    def print(self, console: Console) -> None:
        """Print the rows below an empty line."""
        name_width = max(_NAME_WIDTH, *(len(name) for name, _, _ in self._rows))
        figure_width = max((len(figure) for _, figure, remark in self._rows if remark is not None), default=0)
        console.print()
        for name, value, remark in self._rows:
            if remark is None:
                said = Text(f"  {name:<{name_width}}  ").append_text(value) if name else Text()
                console.print(said, soft_wrap=True)
                continue
            value.align("right", figure_width)
            said = Text(f"  {name:<{name_width}}  ").append_text(value).append("  ")
            indent = " " * len(said)
            lines = Text(remark, "dim").wrap(console, max(console.width - len(said), 20))
            for line in lines:
                line.rstrip()
            said.append_text(Text(f"\n{indent}").join(lines))
            said.rstrip()
            console.print(said, soft_wrap=True)
