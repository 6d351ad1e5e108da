"""The outline of a page is the elements that shape it; pages of one template share a name."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.features.outline import (
    MAX_DEPTH,
    MAX_ELEMENTS,
    MAX_LABEL,
    MAX_NAME,
    Line,
    common_lines,
    common_places,
    fold_lines,
    outline,
    outline_name,
    shared_places,
)
from reference import outline as reference

PAGES = st.lists(
    st.sampled_from(
        [
            "<p>",
            "</p>",
            "<div class=a>",
            "<div id=b>",
            "</div>",
            "<ul>",
            "</ul>",
            "<li>",
            "<b>",
            "x",
        ]
    ),
    max_size=30,
).map("".join)
RECIPE = """<!DOCTYPE html><html><head><title>{0}</title><script src=x></script></head><body class="recipe">
<div id="wrap"><main><article class="recipe post-{0}"><h1>Soup {0}</h1><p>How <b>it</b> is <a href=x>made</a>.</p>
<ul class="ingredients">{1}</ul></article></main></div></body></html>"""  # noqa: E501


def recipe(number: int, rows: int) -> str:
    return RECIPE.format(
        number,
        "".join(f'<li id="i{i}"><span class=amount>{i}</span> onions</li>' for i in range(rows)),
    )


def common_outline(pages: Sequence[str]) -> str:
    """Return the name of what the outlines of pages share."""
    first, *others = (outline(page).lines for page in pages)
    return outline_name(first, common_places(first, others))


def shown(page: str) -> list[str]:
    return [
        "  " * line.depth + line.label + (f" ×{line.repeats}" if line.repeats > 1 else "")
        for line in outline(page).lines
    ]


def test_an_outline_has_a_line_for_each_element_that_shapes_the_page():
    assert shown(recipe(7, 12)) == [
        "body.recipe",
        "  div#wrap",
        "    main",
        "      article.post-*.recipe",
        "        h1",
        "        p",
        "        ul.ingredients",
        "          li#i* ×12",
    ]


def test_siblings_are_one_line_only_where_what_is_inside_is_alike_too():
    card = "<div class=card><ul>{}</ul></div>"
    one, two, three = (card.format("<li>" * rows) for rows in (1, 2, 3))
    other = "<div class=card><p></div>"
    assert shown(one + two + three + other + one) == [
        "body",
        "  div.card ×3",
        "    ul",
        "      li",
        "  div.card",
        "    p",
        "  div.card",
        "    ul",
        "      li",
    ]


def test_what_marks_text_is_left_out_and_its_inside_stands_in_its_place():
    assert shown(
        "<div><a href=x><section>s</section></a><script><p></script><svg><rect></svg></div>"
    ) == [
        "body",
        "  div",
        "    section",
    ]


def test_numbers_read_alike_and_the_order_of_classes_plays_no_part():
    assert shown("<p class='b12 a' id=x9><p id=x10 class='a b7'>") == ["body", "  p#x*.a.b* ×2"]


def test_elements_that_a_page_implies_are_shown():
    assert shown("<table><tr><td>x") == ["body", "  table", "    tbody", "      tr", "        td"]


@pytest.mark.parametrize("page", ["", "only text", "<!-- <p> -->", "<", "<p", "</", "<p class='"])
def test_a_page_without_tags_has_no_lines(page):
    assert outline(page).lines == []


def test_a_label_is_bounded_and_reads_the_first_of_repeated_attributes():
    (line,) = outline(f"<body class=first class=second id='{'x' * 10_000}'>").lines
    assert len(line.label) == MAX_LABEL
    assert outline("<body class=first class=second>").lines == [Line("body.first", 0, 1)]


def test_lines_beyond_the_bound_are_counted():
    page = "".join(f"<p class={chr(97 + i % 26)}{chr(97 + i // 26)}>" for i in range(100))
    lines, left_out = outline(page, max_lines=10)
    assert (len(lines), left_out) == (10, 91)


def test_elements_beyond_the_bound_are_counted():
    lines, left_out = outline("<p>" * 2 * MAX_ELEMENTS)
    assert lines == [
        Line("body", 0, 1),
        Line("p", 1, MAX_ELEMENTS - 3),
    ]  # behind html, head and body
    assert left_out == MAX_ELEMENTS + 3


@pytest.mark.parametrize(
    "page",
    [
        "<div>" * 100_000,
        "<p>" * 100_000,
        "<a>" * 100_000,
        "<table><tr><td>" * 30_000,
        "<svg>" * 100_000,
    ],
)
def test_nesting_and_rows_without_end_have_a_short_outline(page):
    lines = outline(page).lines
    assert max(line.depth for line in lines) < MAX_DEPTH
    assert len(lines) <= MAX_DEPTH


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 5)), max_size=40))
def test_folding_is_that_of_the_tree(elements):
    labels = [label for label, _ in elements]
    depths = []
    for _, depth in elements:
        depths.append(min(depth, depths[-1] + 1 if depths else 0))
    assert [tuple(line) for line in fold_lines(labels, depths)] == reference.fold(labels, depths)


@given(
    st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abcd"), max_size=12)
)
def test_common_lines_are_a_longest_common_subsequence(left, right):
    pairs = common_lines(left, right)
    assert [left[place] for place, _ in pairs] == [right[other] for _, other in pairs]
    assert all(before[0] < after[0] and before[1] < after[1] for before, after in pairwise(pairs))
    assert len(pairs) == reference.common_length(left, right)


@pytest.mark.timing
@pytest.mark.parametrize("pattern", ["aab", "ab", "a", "abcdefgh"])
def test_lines_that_repeat_without_end_are_compared_in_bounded_time(pattern):
    begun = time.perf_counter()
    assert len(common_lines(pattern * 1000, pattern[::-1] * 1000)) >= 1000
    assert time.perf_counter() - begun < 10


@given(PAGES, PAGES)
def test_shared_lines_are_as_deep_in_both_and_in_one_order(left, right):
    first = outline(left).lines
    second = outline(right).lines
    places = sorted(shared_places(first, second))
    rest = iter(line[:2] for line in second)
    assert all(first[place][:2] in rest for place in places)
    assert shared_places(first, first) == set(range(len(first)))


def test_pages_of_one_template_share_a_name_that_says_where_they_lead():
    pages = [recipe(1, 5), recipe(2, 50), recipe(33, 7).replace("<main>", "<nav><p></nav><main>")]
    assert (
        common_outline(pages)
        == "body.recipe > div#wrap > main > article.post-*.recipe > ul.ingredients > li#i* ×"
    )


def test_dots_stand_for_what_not_all_pages_have():
    left = "<body id=a><div class=x><p id=end>"
    right = left.replace("class=x", "class=y")
    assert common_outline([left, right]) == "body#a … p#end"
    assert common_outline([left.replace("id=a", ""), right]) == "… p#end"


def test_pages_that_share_nothing_have_no_name():
    assert common_outline(["<body class=a>", "<body class=b>"]) == ""
    assert common_outline(["", "<p>"]) == ""


def test_a_name_goes_to_the_rarer_child():
    lines = outline("<div id=menu><p></div><div id=post></div>").lines
    rarity = {"div#post": 5.0}
    assert (
        outline_name(lines, common_places(lines, []), lambda label: rarity.get(label, 0.1))
        == "body > div#post"
    )


@given(st.lists(st.integers(1, 60), min_size=1, max_size=40))
def test_a_name_is_bounded(lengths):
    page = (
        "".join(f"<div class={'c' * length}>" for length in lengths) + "<p class=a>" + "<p class=b>"
    )
    assert 0 < len(common_outline([page])) <= MAX_NAME
