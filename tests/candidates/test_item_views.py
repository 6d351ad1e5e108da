"""The structure of code: the kinds of its tokens, in which names do not matter."""

from __future__ import annotations

import pyarrow as pa
import pytest

import neardup
from neardup.candidates.item_views import StructureView, has_code
from neardup.features.spans import token_spans
from neardup.settings.methods import Shingling

PYTHON = '''\
def has_close(numbers, threshold):
    """Tell whether two numbers are close."""
    for index, number in enumerate(numbers):
        for other in numbers[index + 1:]:
            if abs(number - other) < threshold:  # near
                return True
    return False
'''
RENAMED = '''\
def tight(row, gap):
    """Look for a narrow gap."""
    for at, left in walk(row):
        for right in row[at + 2:]:
            if size(left - right) < gap:
                return True
    return False
'''
OTHER = """\
def total(rows, start):
    result = start
    while rows and result > 0:
        result += rows.pop() * 2
        if result in rows:
            rows.remove(result)
    print(result, rows, sep=", ")
"""
KEYWORDS = {"def", "for", "in", "if", "return", "True", "False", "while", "and"}
CODE = Shingling(tokens="uncommented", nfkc=False, case_fold=False)
OTHERS = [f"A page about topic {number} and nothing else, number {number}." for number in range(9)]


def kind(token: str) -> str:
    if token in KEYWORDS:
        return token
    if token[0].isalpha() or token[0] == "_":
        return "$"
    if token[0].isdigit():
        return "0"
    return '"' if token[0] in "\"'`" else token


@pytest.mark.parametrize("text", [PYTHON, RENAMED, OTHER, "x = 'a' # b", "", "ü = 1.5 + _a"])
def test_the_structure_of_code_is_the_kind_of_each_token(text):
    tokens = [text[span.start : span.end] for span in token_spans(text, CODE)]
    expected = " ".join(kind(token) for token in tokens if not token.isspace())
    texts = pa.array(["x", text, "y"])
    assert StructureView().read(texts).to_pylist() == ["$", expected, "$"]
    located = StructureView().locate(texts)
    assert located.cut.to_pylist() == ["$", expected, "$"]
    inside = [text[low:high] for low, high in located.words[1:-1].tolist()]
    assert inside == [token for token in tokens if not token.isspace()]


@pytest.mark.parametrize(
    ("text", "is_code"),
    [
        (PYTHON, True),
        ("int main(void) { return f(a[0], b); }", True),
        ("The function returns a list, and then the program ends (see page 4).", False),
        ("", False),
    ],
    ids=["Python", "C", "prose", "empty"],
)
def test_code_has_many_signs(text, is_code):
    assert has_code(pa.array([text])).tolist() == [is_code]


@pytest.mark.parametrize(
    ("before", "renamed"),
    [
        ("Homework of week 3\n\n", RENAMED),
        ("# def return (row): \n", RENAMED),
        ("", RENAMED.replace("< gap", "< '\u3000'")),
    ],
    ids=["prose", "words of it in a comment", "wide space in a string"],
)
def test_code_with_other_names_is_found_where_it_is(before, renamed):
    page = f"{before}{renamed}\nThat was it."
    found = neardup.find_contamination([PYTHON], [*OTHERS, page], structure=True)
    [hit] = found.hits.to_pylist()
    assert (hit["rule"], hit["grade"]) == ("structure", "clear")
    assert page[hit["start"] : hit["end"]] == renamed.strip()
    assert found.items["shingles"].to_pylist() == [
        neardup.find_contamination([PYTHON], OTHERS).items["shingles"][0].as_py()
    ]
    assert neardup.find_contamination([PYTHON], [page]).hits.num_rows == 0


@pytest.mark.parametrize("page", [OTHER, "Prose of a page, word for word. " * 20], ids=str.split)
def test_other_code_and_prose_are_not_found(page):
    found = neardup.find_contamination([PYTHON], [page], structure=True)
    assert found.items["status"].to_pylist() == ["clean"]


def test_the_code_of_all_columns_is_one_program():
    head, body = PYTHON.split("\n", 2)[0], PYTHON.split("\n", 2)[2]
    items = pa.table({"prompt": [head], "canonical_solution": [body]})
    [hit] = neardup.find_contamination(items, [*OTHERS, RENAMED], structure=True).hits.to_pylist()
    assert hit["rule"] == "structure"
    assert hit["missing"].startswith("def has_close numbers threshold for index")


def test_an_item_with_its_own_names_is_found_by_its_words():
    [hit] = neardup.find_contamination([PYTHON], [PYTHON], structure=True).hits.to_pylist()
    assert hit["rule"] == "whole"


def test_the_documents_with_the_words_of_a_hit_are_no_documents_with_renamed_code():
    corpus = [PYTHON, *(f"{RENAMED} {number}" for number in range(5))]
    hits = neardup.find_contamination([PYTHON], corpus, structure=True).hits
    assert hits["rule"].to_pylist() == ["whole", *["structure"] * 5]
    assert hits["num_documents"].to_pylist() == [1, *[6] * 5]
