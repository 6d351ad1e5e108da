"""Source code: what its tokens are, which programs differ, and which files and notebooks are
read.
"""

from __future__ import annotations

import json
import random

import pytest

import neardup
from neardup.arrays import arrow_of_strings
from neardup.errors import SettingError
from neardup.features.feature_strings import Strings, token_strings
from neardup.features.spans import token_spans
from neardup.formats.notebook import source_of
from reference import tokens as twin

CODE = neardup.method(preset="code")
PYTHON = '''def add(a, b):
    """Add."""
    if a != 1.5:  # don't
        return a // b
class Foo:
    pass
'''
C = """#include <a.h>
/* don't */
int main() { char c = '\\''; // it's
    return a->b >= 2; }
"""
PIECES = [*"a1.:()[]\"'`\\#*/=!>-é{;}", "==", "x1", "1.5", "//", "/*", "*/", "'''"]
PIECES += ["\n# A", "\n//", "A {\n"]
PIECES += [
    '"""',
    " ",
    "\n",
    "\n  ",
    "\n\t",
    ":\n",
    "{\n",
    ";\n",
    "\u2028",
    "\r\n",
    "\r",
    "\u200d",
    "\ufeff",
]


def tokens_of(text: str, tokens: str = "code") -> list[str]:
    strings = token_strings(arrow_of_strings([text]), neardup.method(preset="code", tokens=tokens))
    return Strings(strings.data, strings.offsets).to_list()


def test_python_has_its_operators_strings_and_indentation():
    line = ["\n    ", '"""Add."""', "if", "a", "!=", "1.5", ":"]
    rest = ["\n        ", "return", "a", "//", "b", "\n", "class", "Foo", ":", "\n    ", "pass"]
    head = ["def", "add", "(", "a", ",", "b", ")", ":"]
    assert tokens_of(PYTHON) == [*head, *line, "#", "don", "'", "t", *rest]
    assert tokens_of(PYTHON, "uncommented") == [*head, *line, *rest]


def test_c_has_no_indentation_and_other_comments():
    before, remark = (
        ["#", "include", "<", "a", ".", "h", ">"],
        ["/", "*", "don", "'", "t", "*", "/"],
    )
    main = ["int", "main", "(", ")", "{", "char", "c", "=", "'\\''", ";"]
    rest = ["return", "a", "->", "b", ">=", "2", ";", "}"]
    assert tokens_of(C) == [*before, *remark, *main, "//", "it", "'", "s", *rest]
    assert tokens_of(C, "uncommented") == [*before, *main, *rest]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = {1: a // b}", "x = { 1 : a // b }"),
        ("X = {\n  1: 2,\n}\ny = a // b  # c", "X = { 1 : 2 , } y = a // b"),
        (
            "# Two.\nmy $x = 1;\nsub f {\n  return /a/;  # b\n}",
            "my $ x = 1 ; sub f { return / a / ; }",
        ),
        ("# 二\nf() {\n  a;\n}", "f ( ) { a ; }"),
        ("/* Two. */\n#  define A\n#include <b.h>  // c", "# define A # include < b . h >"),
        ("// Two.\nconst a = {\n  b,\n}", "const a = { b , }"),
        (
            "switch (a) {\n  case 1:\n  default:\n}\nb() // c\n// d",
            "switch ( a ) { case 1 : default : } b ( )",
        ),
    ],
)
def test_comments_are_those_that_the_lines_of_a_text_show(text, expected):
    assert tokens_of(text, "uncommented") == expected.split()


@pytest.mark.parametrize("tokens", ["code", "uncommented"])
def test_tokens_are_those_of_regular_expressions_whatever_the_text(tokens):
    draw = random.Random(5)
    texts = ["".join(draw.choices(PIECES, k=draw.randrange(60))) for _ in range(1_000)]
    expected = twin.code if tokens == "code" else twin.uncommented
    assert [tokens_of(text, tokens) for text in texts] == [expected(text) for text in texts]


def test_unclosed_quotes_take_linear_time():
    for text in (
        '"' + '\\"' * 200_000,
        "`" + "\\`" * 200_000,
        "/*" * 200_000,
        '"""' + '\\"""' * 100_000,
    ):
        tokens_of(text)  # hours if each quote is searched to the end


def test_spans_of_code_are_its_tokens():
    spans = token_spans(PYTHON, CODE)
    assert (
        [PYTHON[start:end] for start, end, _ in spans]
        == [token for *_, token in spans]
        == tokens_of(PYTHON)
    )


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("a + b", "a - b"),
        ("x == 1", "x != 1"),
        ("class Foo", "class foo"),
        ("if a:\n  b\nc", "if a:\n  b\n  c"),
        ("x = 'a\u202eb'", "x = 'ab'"),  # a sign that changes the direction of writing
    ],
)
def test_programs_that_differ_in_a_token_are_no_copies(left, right):
    assert neardup.dedup([left, right], method=CODE).mask.all()
    assert (
        neardup.compare(left, right, method="minhash").similarity == 1.0
    )  # words see no difference


def test_lines_may_end_in_cr_lf_or_lf_and_a_file_may_begin_with_a_byte_order_mark():
    lines = "\ufeff" + PYTHON.replace('"Add."', '"Add.\n  Two."').replace("\n", "\r\n")
    assert (
        neardup.dedup([lines[1:].replace("\r\n", "\n"), lines], method=CODE).report["counts"][
            "removed_exact"
        ]
        == 1
    )
    spans = token_spans(lines, CODE)
    assert [lines[start:end].replace("\r\n", "\n") for start, end, _ in spans] == [
        token for *_, token in spans
    ]


def test_white_space_inside_a_line_does_not_count():
    assert neardup.compare("f(a,b) ;", "f( a, b );", method=CODE).similarity == 1.0


def test_options_take_the_place_of_a_preset():
    chosen = neardup.method(preset="code", threshold=0.9, case_fold=True)
    assert chosen == neardup.MinHash(
        tokens="code", ngram=8, nfkc=False, case_fold=True, threshold=0.9
    )
    words = neardup.method("simhash", preset="code")
    assert words == neardup.SimHash(tokens="code", ngram=8, nfkc=False, case_fold=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"preset": "cod"}, "preset must be one of 'code': got 'cod'. Did you mean 'code'"),
        (
            {"name": "structure", "preset": "code"},
            "goes with method minhash or simhash: got 'structure'",
        ),
    ],
)
def test_what_a_preset_cannot_be_is_said(arguments, message):
    with pytest.raises(SettingError, match=message):
        neardup.method(**arguments)


def test_a_folder_of_code_is_read_file_by_file(tmp_path):
    (tmp_path / "pkg").mkdir()
    for name in ("pkg/__init__.py", "pkg/main.rs", "_Private.java"):
        (tmp_path / name).write_text(f"let name = {name!r};\nlet two = 2;\n")
    (tmp_path / "_SUCCESS").write_text("")
    notebook = {
        "cells": [{"source": ["let a = 1\n", "let b"]}, {"source": "# Text"}, {"source": None}]
    }
    (tmp_path / "n.ipynb").write_text(json.dumps(notebook))
    (tmp_path / "damaged.ipynb").write_text("[" * 100_000)
    result = neardup.dedup(str(tmp_path), method=CODE, on_error="skip")
    assert sorted(result.kept["file"].to_pylist()) == sorted(
        str(tmp_path / name)
        for name in ("_Private.java", "n.ipynb", "pkg/__init__.py", "pkg/main.rs")
    )
    assert result.report["incomplete"]["names"] == [str(tmp_path / "damaged.ipynb")]


def test_the_source_of_a_notebook_is_that_of_its_cells():
    cells = [{"source": ["a = 1\n", "b"]}, {"input": "c"}, {"outputs": []}, 3]
    assert source_of(json.dumps({"cells": cells})) == source_of(
        json.dumps({"worksheets": [{"cells": cells}]})
    )
    assert source_of(json.dumps({"cells": cells})) == "a = 1\nb\n\nc"
    assert source_of(json.dumps({"cells": cells, "worksheets": []})) == "a = 1\nb\n\nc"
    assert source_of('{"cells": [{"source": "\\ud800"}]}') == "?"


@pytest.mark.parametrize("wrong", ["[]", "{}", '{"cells": 1}', "{", '{"worksheets": [1]}', "1"])
def test_a_file_without_cells_is_no_notebook(wrong):
    with pytest.raises(ValueError, match=r"cells|Expecting"):
        source_of(wrong)
