"""Fold the markup of texts: decode entities of HTML, and render formulas in LaTeX.

Most signs need no rendering, because all of them separate words:

    &lt;p&gt; caf&eacute;      <p> café
    \\dfrac{1}{2} \\le 2\\pi r    1}{2}   2πr
    \\sqrt{2} √2                \\sqrt{2} sqrt 2
    x^{10} + \\mathbf{b}_{12}    x10 + b12     x¹⁰ and b₁₂ are x10 and b12 in their normal form

A pattern is folded wherever it occurs, formula or not: the folding of a passage depends on no text
around it, so an item and a document that contains it are folded alike.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from html.entities import html5
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.arrays import Mask, Rows, arrow_of, arrow_of_strings

# Commands whose argument is rendered as it is written. With the brace, so that 2\mathbf{b} is 2b.
_FONTS = """
    text textbf textit textrm texttt textsf textnormal emph mbox hbox operatorname
    mathbf mathrm mathit mathsf mathtt mathcal mathbb mathfrak mathscr boldsymbol bm
    vec hat bar tilde widehat widetilde overline underline
"""
# Commands without a rendered word: layout, brackets, signs that separate words.
_SILENT = """
    frac dfrac tfrac cfrac left right middle big Big bigg Bigg bigl bigr Bigl
    Bigr biggl biggr displaystyle textstyle limits quad qquad boxed
    cdot cdots dots ldots vdots ddots times div pm mp ast star prime
    lt gt le leq leqslant ge geq geqslant ne neq approx equiv sim simeq cong propto
    infty in notin ni subset subseteq supset supseteq cap cup emptyset setminus forall exists neg
    land lor wedge vee to rightarrow Rightarrow longrightarrow leftarrow Leftarrow leftrightarrow
    Leftrightarrow mapsto implies iff angle triangle perp parallel mid vert Vert lvert rvert
    lfloor rfloor lceil rceil langle rangle sum prod int partial nabla therefore because
"""
_LETTERS = """
    alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma
    tau upsilon phi chi psi omega
    Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega
"""
_GREEK = dict(zip(_LETTERS.split(), "αβγδεζηθικλμνξοπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩ", strict=True))


def _one_of(names: str) -> str:
    return f"(?:{'|'.join(names.split())})"


# A pattern begins with one of these signs. The search for one sign of a set is fast; the rest of a
# pattern looks back at its sign.
_FIRST = r"[&\\^_²³√°]"
_SQUARE = r"(?<=\^)(?:[23](?![0-9])|\{[23]\})"
_RAISED = "[¹²³\u2070-\u207f\u02b0-\u02b8\u1d2c-\u1d6a]"  # signs of exponents
_PATTERNS = (
    r"(?<=&)(?:amp;){0,9}(?P<entity>#?[A-Za-z0-9]{1,31};)",
    rf"(?<=\\)(?P<font>{_one_of(_FONTS)}(?![A-Za-z])\s*\{{?)",
    rf"(?<=\\)(?:var)?(?P<letter>{_one_of(_LETTERS)})(?![A-Za-z])\s*",
    r"(?<=\\)(?P<half>[dtc]?frac\s*\d\s*\d)",  # \frac12 is one half
    rf"(?<=\\)(?P<silent>{_one_of(_SILENT)}(?![A-Za-z])|(?:begin|end)\{{[a-z*]{{1,20}}\}})",
    # An index or an exponent is rendered as one word with its letter or number; the exponents 2 and
    # 3, which short formulas have, are words, but not as a part of a longer exponent.
    rf"(?P<sign>(?<=[²³])(?<!{_RAISED}.)(?!{_RAISED})|(?<=[√°]))",
    rf"(?<=[A-Za-z0-9}}][_^])(?!{_SQUARE})\{{(?P<script>[A-Za-z0-9]{{1,20}})\}}",
    rf"(?P<opening>(?<=[A-Za-z0-9}}][_^])(?!{_SQUARE})\{{)",
    rf"(?P<power>(?<=[A-Za-z0-9]\^)(?!{_SQUARE})(?=[A-Za-z0-9]))",
    r"(?P<index>(?<![A-Za-z0-9_]..)(?<=[A-Za-z]_)(?=[A-Za-z0-9](?![A-Za-z0-9_])))",
)
_MARKUP = re.compile(f"{_FIRST}(?:{'|'.join(_PATTERNS)})")
# Patterns of RE2 that find the texts with markup. Each begins with one byte, which makes it fast.
_HINTS = (
    "&[A-Za-z0-9#]+;",
    rf"\\(?:var|begin|end|{'|'.join([*_FONTS.split(), *_SILENT.split(), *_LETTERS.split()])})",
    r"\^[A-Za-z0-9{]",
    r"_(?:\{|[A-Za-z0-9](?:[^A-Za-z0-9_]|$))",
    "²",
    "³",
    "√",
    "°",
)


# A pattern that was folded: its characters in the text, and in the folded text.
_EDIT = np.dtype([(name, np.int64) for name in ("start", "end", "folded_start", "folded_end")])


class Folded(NamedTuple):
    """A text without markup. edits : rows of _EDIT, rising."""

    text: str
    edits: np.ndarray

    @property
    def _edits_from_start(self) -> np.ndarray:
        """The edits, and an empty one at the beginning of the text before them."""
        return np.concatenate([np.zeros(1, _EDIT), self.edits])

    def unfold(self, ranges: Rows) -> Rows:
        """Return ranges of characters of the folded text as ranges of the text as it was read.

        ranges : int64 (num_ranges, 2).
        """
        if not len(self.edits):
            return ranges
        return np.column_stack([self._unfold_starts(ranges[:, 0]), self._unfold_ends(ranges[:, 1])])

    def _unfold_starts(self, starts: Rows) -> Rows:
        """Return starts in the text as it was read: of a whole pattern, if one is inside of it."""
        edits = self._edits_from_start
        rows = edits[np.searchsorted(edits["folded_start"], starts, "right") - 1]
        later = rows["end"] + starts - rows["folded_end"]
        return np.where(starts < rows["folded_end"], rows["start"], later)

    def _unfold_ends(self, ends: Rows) -> Rows:
        """Return ends in the text as it was read: of a whole pattern, if one is inside of it."""
        edits = self._edits_from_start
        rows = edits[np.maximum(0, np.searchsorted(edits["folded_start"], ends) - 1)]
        unfolded: Rows = rows["end"] + np.maximum(0, ends - rows["folded_end"])
        return unfolded


def fold_markup(texts: pa.Array) -> pa.Array:
    """Return texts without markup.

    texts : string array of any Arrow string type; a null stays null.
    """
    rows = np.flatnonzero(_has_markup(texts))
    if not len(rows):
        return texts
    folded = [_MARKUP.sub(_fold, text) for text in texts.take(arrow_of(rows)).to_pylist()]
    is_folded = np.zeros(len(texts), np.bool_)
    is_folded[rows] = True
    large = texts.cast(pa.large_string())
    return pc.replace_with_mask(large, arrow_of(is_folded), arrow_of_strings(folded))


def _has_markup(texts: pa.Array) -> Mask:
    """Return whether each text may have markup."""
    is_hinted = np.zeros(len(texts), np.bool_)
    for pattern in _HINTS:
        is_hinted |= np.asarray(pc.match_substring_regex(texts, pattern).fill_null(False))
    return is_hinted


def fold_texts(texts: pa.Array, *, is_marked_up: bool) -> list[Folded]:
    """Return texts without markup, each with the patterns that were folded.

    is_marked_up : False for texts that are returned as they are.
    """
    is_hinted = _has_markup(texts) if is_marked_up else np.zeros(len(texts), np.bool_)
    unedited = np.empty(0, _EDIT)
    return [
        _fold_text(text) if may_have_markup else Folded(text, unedited)
        for text, may_have_markup in zip(texts.to_pylist(), is_hinted.tolist(), strict=True)
    ]


def _fold_text(text: str) -> Folded:
    pieces = []
    edits = []
    end = 0
    folded_end = 0
    for match in _MARKUP.finditer(text):
        piece = _fold(match)
        if piece == match.group():  # an entity without a character
            continue
        folded_start = folded_end + match.start() - end
        pieces += [text[end : match.start()], piece]
        end = match.end()
        folded_end = folded_start + len(piece)
        edits.append((match.start(), end, folded_start, folded_end))
    pieces.append(text[end:])
    return Folded("".join(pieces), np.array(edits, _EDIT))


def _fold(match: re.Match[str]) -> str:
    """Return the folded characters of a pattern."""
    assert match.lastgroup is not None  # each pattern is a group
    return _FOLDED[match.lastgroup](match)


def _decode(match: re.Match[str]) -> str:
    """Return the character of an entity; the entity, if its name has none."""
    name = match["entity"]
    if name[0] != "#" and name not in html5:
        return match.group()
    decoded = html.unescape(f"&{name}")
    return _SIGNS.get(decoded, decoded)


_SIGNS = {"²": " 2 ", "³": " 3 ", "√": " sqrt ", "°": " circ "}
"""Signs that are folded, with the words of the commands of LaTeX."""
_FOLDED: dict[str, Callable[[re.Match[str]], str]] = {
    "entity": _decode,
    "font": lambda match: "",
    "letter": lambda match: _GREEK[match["letter"]],
    "half": lambda match: " ".join(["", *re.findall(r"\d", match["half"]), ""]),
    "silent": lambda match: " ",
    "script": lambda match: match["script"],
    "opening": lambda match: "",
    "power": lambda match: "",
    "index": lambda match: "",
    "sign": lambda match: _SIGNS[match.group()],
}
"""By the group of a pattern: the function that returns its folded characters."""
