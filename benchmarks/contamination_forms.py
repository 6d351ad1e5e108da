"""Write items as they leak: escaped for HTML, with formulas rendered, and with other names.

Written apart from neardup's own folding: a shared error would not show.
"""

from __future__ import annotations

import builtins
import html
import io
import keyword
import re
import tokenize

_SIGNS = {
    "times": "×",
    "cdot": "·",
    "le": "≤",
    "leq": "≤",
    "ge": "≥",
    "geq": "≥",
    "neq": "≠",
    "ne": "≠",
    "pm": "±",
    "circ": "°",
    "infty": "∞",
    "pi": "π",
    "theta": "θ",
    "alpha": "α",
    "beta": "β",
    "omega": "ω",
    "angle": "∠",
    "triangle": "△",
    "in": "∈",
    "dots": "…",
    "ldots": "…",
    "cdots": "⋯",
    "to": "→",
    "quad": "  ",
    "qquad": "    ",
    "div": "÷",
    "equiv": "≡",
    "perp": "⊥",
    "cup": "∪",
    "cap": "∩",
    "sum": "∑",
    "int": "∫",
    "lfloor": "⌊",
    "rfloor": "⌋",
    "lceil": "⌈",
    "rceil": "⌉",
    "left": "",
    "right": "",
    "displaystyle": "",
}
_RAISED = dict(zip("0123456789+-n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", strict=True))
_LOWERED = dict(zip("0123456789+-", "₀₁₂₃₄₅₆₇₈₉₊₋", strict=True))
_GROUP = r"\{((?:[^{}]|\{[^{}]*\})*)\}"  # one level inside


def escape(text: str) -> str:
    """Return a text as the source of a page has it: signs, some spaces and letters beyond ASCII as
    entities.
    """
    escaped = html.escape(text)
    escaped = re.sub(r"(?<=\S \S)(\S*) (\S+) (?=\S)", r"\1 \2&nbsp;", escaped)
    return "".join(
        f"&#x{ord(character):x};" if ord(character) > 127 and character.isalpha() else character
        for character in escaped
    )


def render(text: str) -> str:
    """Return a text whose formulas in LaTeX are rendered as plain text."""
    text = re.sub(r"\\\\", "\n", text)
    text = re.sub(r"\\(?:begin|end)\{[a-z*]+\}", "\n", text)
    for _ in range(3):  # fractions in fractions
        text = re.sub(rf"\\[dtc]?frac\s*{_GROUP}\s*{_GROUP}", r"\1/\2", text)
    text = re.sub(r"\\[dtc]?frac\s*(\d)\s*(\d)", r"\1/\2", text)
    text = re.sub(rf"\\[dt]?binom{_GROUP}{_GROUP}", r"(\1 choose \2)", text)
    text = re.sub(rf"\\sqrt{_GROUP}", r"√\1", text)
    text = re.sub(r"\\sqrt\s*(\w)", r"√\1", text)
    text = re.sub(r"\^\{?\\circ\}?", "°", text)
    text = re.sub(
        r"\\(?:text|textbf|mathrm|mathbf|mathbb|mathcal|overline|operatorname|mbox|vec)"
        rf"\s*{_GROUP}",
        r"\1",
        text,
    )
    text = re.sub(r"\\([A-Za-z]+) ?", lambda match: _SIGNS.get(match[1], match[1] + " "), text)
    text = _as_signs(text, r"\^", _RAISED)
    text = _as_signs(text, "_", _LOWERED)
    return re.sub(r"\\[,;!: ]|[{}$]|\\(?=[\[\]()|%])", "", text)


def _as_signs(text: str, mark: str, signs: dict[str, str]) -> str:
    """Return a text with exponents or indices as signs of their own, where there are such signs."""

    def written(match: re.Match[str]) -> str:
        inside = match[1] if match[1] is not None else match[2]
        if all(character in signs for character in inside):
            return "".join(signs[character] for character in inside)
        return match.group().replace("{", "").replace("}", "")

    return re.sub(rf"{mark}(?:{_GROUP}|([A-Za-z0-9]))", written, text)


_WORDS = ("alfa", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india")


def _blanks(token: tokenize.TokenInfo) -> list[tuple[int, int, int, str]]:
    """Return the edits that remove a token: the row, its characters, and no text."""
    (first, start), (last, end) = token.start, token.end
    edits = []
    for row in range(first, last + 1):
        begins = start if row == first else 0
        ends = end if row == last else 10**6
        edits.append((row - 2, begins, ends, "" if row == last else "\n"))
    return edits


def rename(code: str) -> str:
    """Return Python with other names, and without comments and docstrings. Keywords, builtins and
    attributes stay.

    The lines of a method are indented alike, and begin inside of a class that is not there.
    """
    names: dict[str, str] = {}
    kept = {*keyword.kwlist, *dir(builtins), "self", "cls"}
    lines = code.splitlines(keepends=True)
    edits = []
    before = ""
    try:
        for token in tokenize.generate_tokens(io.StringIO(f"if True:\n{code}").readline):
            if token.type == tokenize.NAME and token.string not in kept and before != ".":
                new = names.setdefault(
                    token.string, f"{_WORDS[len(names) % len(_WORDS)]}_{len(names)}"
                )
                edits.append((token.start[0] - 2, token.start[1], token.end[1], new))
            is_comment = token.type == tokenize.COMMENT
            is_docstring = token.type == tokenize.STRING and not before.strip()
            if is_comment or is_docstring:
                edits += _blanks(token)
            before = token.string
    except (tokenize.TokenError, IndentationError):
        pass
    for row, start, end, new in sorted(edits, reverse=True):
        lines[row] = lines[row][:start] + new + lines[row][end:]
    return "".join(lines)
