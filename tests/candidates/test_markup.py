"""Markup is folded alike in items and documents: entities, and LaTeX as it is rendered."""

from __future__ import annotations

import re
from html import unescape

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.candidates.markup import fold_markup, fold_texts
from neardup.features.feature_strings import Strings, token_strings
from neardup.settings.methods import Shingling

PIECES = [
    "a", "x", "word", " ", "\n", "7", "12", "é", "中", "_", "^", "{", "}", "\\", "&", ";", "$", "#",
    "&amp;", "&lt;", "&#39;", "&#x4e2d;", "&nbsp;", "&bogus;", "&amp;amp;quot;",
    "&sup2;", "&radic;",
    r"\frac", r"\dfrac12", r"\le", r"\left(", r"\mathbf{b}", r"\text{ if }", r"\pi ", r"\Delta",
    r"\varepsilon", r"\begin{pmatrix}", "x^2", "x^{10}", "x^{n+1}", "a_1", "a_{12}", "²", "³", "√",
    "°", "⁴", r"\new", r"\textile",
]  # fmt: skip
marked_up = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


def folded(text: str) -> str:
    [one] = fold_texts(pa.array([text]), is_marked_up=True)
    return one.text


def words(text: str) -> list[str]:
    tokens = token_strings(pa.array([folded(text)]), Shingling())
    return Strings(tokens.data, tokens.offsets).to_list()


@pytest.mark.parametrize(
    ("latex", "rendered"),
    [
        (r"$\frac{a}{b} + \dfrac12$", "a/b + 1/2"),
        (r"$2x \le \left( y \right) \times 3$", "2x ≤ (y) × 3"),
        (r"$2\mathbf{b}$ and $\text{for all } n \in \mathbb{N}$", "2b and for all n ∈ ℕ"),
        (r"$2\pi r$, $\alpha$, $\varepsilon$, $\Omega$", "2πr, α, ε, Ω"),
        (r"$x^2 + y^{3}$", "x² + y³"),
        (r"$x^{10} + e^{-x} + 2^{n+1} + a^n$", "x¹⁰ + e⁻ˣ + 2ⁿ⁺¹ + aⁿ"),
        (r"$x^{12} + y^{32} + a^{2n} + b^{n-2} + c^3$", "x¹² + y³² + a²ⁿ + bⁿ⁻² + c³"),
        (r"$a_1 + a_{12} + a_{n+1}$", "a₁ + a₁₂ + aₙ₊₁"),
        (r"$\sqrt{2} \cdot \sin 30^\circ$", "√2 · sin 30°"),
        (r"\begin{pmatrix} 6 \\ -7 \end{pmatrix}", "6\n-7"),
        ("x&sup2; + y&#xb3; + &radic;2 &middot; sin 30&deg;", "x² + y³ + √2 · sin 30°"),
    ],
    ids=[
        "fractions",
        "signs",
        "fonts",
        "Greek",
        "squares",
        "exponents",
        "exponents with a 2 or 3",
        "indices",
        "root",
        "matrix",
        "entities",
    ],
)
def test_a_formula_has_the_words_of_its_rendering(latex, rendered):
    assert words(latex) == words(rendered)


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("if a &lt; b &amp;&amp; c: caf&eacute;", "if a < b && c: café"),
        ("it&#39;s&nbsp;&#x4e2d;", "it's 中"),
        ("&amp;lt;b&amp;gt;", "<b>"),
        ("AT&T; &bogus; R&D", "AT&T; &bogus; R&D"),
    ],
    ids=["names", "numbers", "twice", "no entity"],
)
def test_entities_are_decoded(page, text):
    assert folded(page) == text.replace("it's 中", "it's\u00a0中")


@pytest.mark.parametrize(
    "text",
    [r"C:\new\textile", r"print('\n\t')", "snake_case_name foo_1", "a ^ b", "__init__", "{}"],
)
def test_other_text_stays(text):
    assert folded(text) == text


@given(marked_up)
def test_a_text_that_is_passed_over_has_no_markup(text):
    # A text that begins with a formula is not passed over.
    expected = folded(f"x^{{10}} % {text}").removeprefix("x10 % ")
    assert fold_markup(pa.array([text])).to_pylist() == [expected]


@given(marked_up, marked_up, marked_up)
def test_a_passage_is_folded_alike_in_any_text(before, passage, after):
    assert folded(f"{before} $ {passage} $ {after}").find(folded(f" {passage} ")) >= 0


@given(marked_up)
def test_a_word_is_at_the_characters_from_which_it_was_folded(text):
    [one] = fold_texts(pa.array([text]), is_marked_up=True)
    spans = [match.span() for match in re.finditer(r"\w+", one.text)]
    ranges = one.unfold(np.array(spans, np.int64).reshape(-1, 2)).tolist()
    assert ranges == sorted(ranges)
    for (start, end), (low, high) in zip(spans, ranges, strict=True):
        assert 0 <= low < high <= len(text)
        inside = unescape(unescape(unescape(text[low:high])))
        first = one.text[start]
        # Letters of Greek, and the names of signs, are of their patterns.
        assert first in inside or "\\" in inside or inside[0] in "√°²³", (inside, first)
        assert end > start


def test_each_text_is_folded_alone_and_nulls_stay():
    assert fold_markup(pa.array([None, "&lt;", "a"])).to_pylist() == [None, "<", "a"]
