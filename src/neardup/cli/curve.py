"""Draw the S-curve in characters."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text

from neardup.output.wording import percent

_WIDTH, _HEIGHT = 60, 16
_MARGIN = 7
_EIGHTHS, _HALVES = " ▁▂▃▄▅▆▇█", " .:#"
_VAIN, _FOUND, _MARK = "yellow", "green", "bold"


def draw_curve(chance: Callable[[float], float], threshold: float, *, unicode: bool) -> Text:
    """Return the curve of a chance over the similarity as an area, with the threshold marked.

    Parameters
    ----------
    chance : the probability, in [0, 1], of each similarity in [0, 1].
    threshold : where the area turns from pairs that are compared in vain to duplicates that are found.
    unicode : draw with block elements; else with ASCII.

    Returns
    -------
    Text of 60 x 16 characters and the axes; a column stands for the middle of its stretch of similarities.
    """
    fills = _EIGHTHS if unicode else _HALVES
    corner, bar, side, up = ("└", "─", "│", "▲") if unicode else ("+", "-", "|", "^")
    mark = min(_WIDTH - 1, int(threshold * _WIDTH))
    levels = [round(chance((x + 0.5) / _WIDTH) * _HEIGHT * (len(fills) - 1)) for x in range(_WIDTH)]
    picture = Text()
    for row in range(_HEIGHT, 0, -1):
        label = f"{100 * row // _HEIGHT} %" if row % (_HEIGHT // 4) == 0 else ""
        picture.append(f"{label:>{_MARGIN - 1}} {side if not label else _tick(unicode)}")
        for x, level in enumerate(levels):
            fill = fills[min(len(fills) - 1, max(0, level - (row - 1) * (len(fills) - 1)))]
            if x == mark:
                picture.append("│" if unicode else "|", _MARK)
            else:
                picture.append(fill, _VAIN if x < mark else _FOUND)
        picture.append("\n")
    picture.append(f"{'0 %':>{_MARGIN - 1}} {corner}{_axis(bar, unicode)}\n")
    numbers = "".join(f"{x / 5:<{_WIDTH // 5}g}" for x in range(6))
    picture.append(" " * _MARGIN + " " + numbers.rstrip() + "\n")
    said = f"{up} threshold {threshold:g}: {percent(chance(threshold))} found"
    start = _MARGIN + 1 + mark
    picture.append(" " * start + said if start + len(said) <= 79 else f"{said[2:]} {up}".rjust(start + 1), _MARK)
    return picture


def _tick(unicode: bool) -> str:
    return "┤" if unicode else "+"


def _axis(bar: str, unicode: bool) -> str:
    step = _WIDTH // 5
    return "".join(("┬" if unicode else "+") if x % step == 0 and x else bar for x in range(_WIDTH))
