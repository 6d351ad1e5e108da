"""Draw growth as SVG text: lines over two logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

_WIDTH = 760
_HEIGHT = 440
_LEFT = 64
_RIGHT = 500
_TOP = 44
_BOTTOM = 388
_COLOURS = ("#2a6fb0", "#c4621c", "#3a8a4d", "#8a4da0", "#6f7b88", "#a08a2a")

Points = Sequence[tuple[float, float]]


def growth(lines: Mapping[str, Points], *, title: str, x_label: str, y_label: str) -> str:
    """Return a drawing of lines, each a name and points above zero; a grey line grows as the
    numbers on the x axis.
    """
    lines = {name: sorted(points) for name, points in lines.items() if points}
    across = [x for points in lines.values() for x, _ in points]
    up = [y for points in lines.values() for _, y in points]
    low_x = math.floor(math.log10(min(across)))
    high_x = math.ceil(math.log10(max(across)))
    low_y = math.floor(math.log10(min(up)))
    high_y = math.ceil(math.log10(max(up)))

    def place(x: float, y: float) -> tuple[float, float]:
        right = (math.log10(x) - low_x) / max(high_x - low_x, 1)
        above = (math.log10(y) - low_y) / max(high_y - low_y, 1)
        return _LEFT + right * (_RIGHT - _LEFT), _BOTTOM - above * (_BOTTOM - _TOP)

    parts = [f'<text x="{_LEFT}" y="20" font-size="15">{escape(title)}</text>']
    for power in range(low_x, high_x + 1):
        x, _ = place(10.0**power, 10.0**low_y)
        parts += [
            _line(x, _TOP, x, _BOTTOM, "#ddd"),
            _text(x, _BOTTOM + 18, _power(power), "middle"),
        ]
    for power in range(low_y, high_y + 1):
        _, y = place(10.0**low_x, 10.0**power)
        parts += [_line(_LEFT, y, _RIGHT, y, "#ddd"), _text(_LEFT - 8, y + 4, _power(power), "end")]
    parts += [
        _text((_LEFT + _RIGHT) / 2, _BOTTOM + 40, x_label, "middle"),
        _text(_LEFT, _TOP - 8, y_label, "start"),
    ]
    # In proportion to n: through the first point of the first line.
    first_x, first_y = next(iter(lines.values()))[0]
    last = min(10.0**high_x, first_x * 10.0**high_y / first_y)
    ends = (*place(first_x, first_y), *place(last, first_y * last / first_x))
    parts.append(_line(*ends, "#999", ' stroke-dasharray="5 4"'))
    labels: list[tuple[float, str, str]] = []
    for number, (name, points) in enumerate(lines.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        places = [place(x, y) for x, y in points]
        corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(
            f'<polyline points="{corners}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
        for (x, y), (size, value) in zip(places, points, strict=True):
            shown = escape(f"{name}, {size:,.0f}: {value:.3g}")
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" '
                f'fill="{colour}"><title>{shown}</title></circle>'
            )
        labels.append((places[-1][1], name, colour))
    parts += _legend(labels)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="sans-serif" '
        f'font-size="12" role="img" aria-label="{escape(title)}"><rect width="100%" '
        'height="100%" fill="#fff"/>' + "".join(parts) + "</svg>\n"
    )


def _legend(labels: list[tuple[float, str, str]]) -> list[str]:
    """Return the names beside the plot, those of higher lines first."""
    rows = [
        *((name, colour, "") for _, name, colour in sorted(labels)),
        ("in proportion to n", "#999", "5 4"),
    ]
    parts = []
    for number, (name, colour, dashes) in enumerate(rows):
        y = _TOP + 12 + 20 * number
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        parts += [
            _line(_RIGHT + 14, y - 4, _RIGHT + 38, y - 4, colour, dashed),
            _text(_RIGHT + 44, y, name, "start"),
        ]
    return parts


def _power(power: int) -> str:
    small = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return {0: "1", 1: "10"}.get(power, f"10{small}")


def _line(x: float, y: float, to_x: float, to_y: float, colour: str, more: str = "") -> str:
    return (
        f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="{colour}"{more}/>'
    )


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
