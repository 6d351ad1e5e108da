"""The report page: complete, escaped, self-contained; in a real browser where there is one."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup.decide.outcome import Removals
from neardup.output.write import pick_examples
from neardup.report import charts, wording
from neardup.report.dedup_html import cards, render_report
from neardup.report.items import marked_text, removed_list
from neardup.report.page import render_page
from neardup.report.rows import headline
from neardup.report.sections import across_table, notebook
from neardup.verify.measured import Measured
from reference.page import Page
from reference.reports import HOSTILE, assert_nothing_becomes_markup, example, hostile, report


def test_every_count_is_on_the_page() -> None:
    body = Page(render_report(report(), [example()])).texts["body"][0]
    for count in [
        *report()["counts"].values(),
        1_001,
        318,
        316,
        1_002,
        4_120,
        10_001,
        12_030,
        27_234,
    ]:
        assert f"{count:,}" in body
    for words in (
        "estimated, without copies; 99.5 % to 99.9 %",
        "168 MB/s",
        "412.0 MB",
        "3.1 s",
        "in.jsonl:7",
        "0.850",
        "12 documents",
    ):
        assert words in body


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ({"read": 0}, "No documents read"),
        ({"read": 1, "kept": 1, "removed": 0}, "1 document read, 1 kept, none removed"),
        (
            {"read": 3, "kept": 0, "removed": 3, "removed_exact": 1, "removed_near": 2},
            "3 documents read, 0 kept, 3 removed (1 copy, 2 near-duplicates)",
        ),
        (
            {
                "read": 10**15,
                "kept": 10**15 - 1,
                "removed": 1,
                "removed_exact": 0,
                "removed_near": 1,
            },
            (
                "1,000,000,000,000,000 documents read, 999,999,999,999,999 kept, 1 removed (0 "
                "copies, 1 near-duplicate)"
            ),
        ),
    ],
)
def test_the_headline_says_the_result_in_plain_words(counts: dict[str, int], sentence: str) -> None:
    assert headline({"counts": counts}) == sentence
    assert Page(render_report(report(counts=counts), [])).texts["h1"] == [sentence]


def test_an_apostrophe_in_the_name_of_a_file_is_no_number() -> None:
    unread = report(incomplete={"files": 1, "names": ["it's (2).pdf"]})
    page = Page(render_page(unread, "1 file not read: it's (2).pdf", "", []))
    assert page.texts["h1"] == ["1 file not read: it's (2).pdf"]


@pytest.mark.parametrize("absent", [*sorted(report()), "source_bytes"])
def test_any_part_of_the_report_may_be_absent_or_null(absent: str) -> None:
    partial = {key: value for key, value in report().items() if key != absent}
    for given_report in (partial, partial | {absent: None}):
        Page(render_report(given_report, []))
        Page(notebook(given_report))


def test_an_empty_report_is_still_a_page() -> None:
    assert "No documents read" in Page(render_report({}, [])).texts["h1"]


def test_the_page_has_landmarks_headings_in_order_and_captions() -> None:
    page = Page(render_report(report(), [example()]))
    tags = [tag for tag, _ in page.elements]
    assert [tags.count(tag) for tag in ("h1", "main", "header", "nav")] == [1, 1, 1, 1]
    levels = [int(tag[1]) for tag in tags if re.fullmatch("h[1-6]", tag)]
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert page.count("table") == page.count("caption") >= 7
    assert all("aria-label" in attributes for tag, attributes in page.elements if tag == "svg")
    anchors = [attributes["href"] for tag, attributes in page.elements if tag == "a"]
    names = {attributes.get("id") for _, attributes in page.elements}
    assert {str(anchor)[1:] for anchor in anchors} <= names


def test_the_policy_allows_exactly_the_inline_style_and_script() -> None:
    html = render_report(report(), [hostile()])
    page = Page(html)
    (policy,) = (
        a["content"] for _, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    for tag in ("style", "script"):
        (text,) = page.texts[tag]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    attributes = {name for _, a in page.elements for name in a}
    assert not [name for name in attributes if name.startswith("on") or name in {"style", "src"}]


def test_hostile_text_is_shown_and_never_becomes_markup() -> None:
    evil = [HOSTILE]
    record = report(
        warnings=evil,
        version=HOSTILE,
        inputs=[{"name": HOSTILE, "format": HOSTILE, "role": HOSTILE}],
        settings={HOSTILE: HOSTILE, "keep": HOSTILE, "threshold": 0.8, "similarity": HOSTILE},
        scheme={"name": HOSTILE, "ngram": 5, "tokens": HOSTILE},
        timings=[{"stage": HOSTILE, "seconds": 1}],
    )
    assert_nothing_becomes_markup(record, hostile())


def test_hidden_characters_are_named_and_scripts_are_left_alone() -> None:
    (text, _) = re.findall(
        r'<div class="text" dir="auto">(.*?)</div>', removed_list([hostile()], 1), re.S
    )
    for name in ("[NUL]", "[ESC]", "[U+202E]", "[CR]", "[U+FEFF]", "[U+D800]", "مرحبا", "你好"):
        assert name in text
    assert wording.escape_text("a\n\tb") == "a\n\tb"
    assert "[LF]" in wording.escape_text("a\nb", lines=False)
    joined = "نمی\u200cخواهم \u200f👨\u200d👩"
    assert wording.escape_text(joined) == joined


@given(
    st.text("ab <&\n\0", max_size=30),
    st.lists(st.tuples(st.integers(0, 35), st.integers(0, 35), st.booleans()), max_size=5),
)
def test_no_passage_can_lose_a_part_of_the_text(
    text: str, passages: list[tuple[int, int, bool]]
) -> None:
    page = removed_list([example(text=text + "x", passages=passages)], 1)
    (shown,) = re.findall(
        r'class="removed">.*?<div class="text" dir="auto">(.*?)</div>', page, re.S
    )
    assert Page(f"<p>{shown}</p>").texts["p"][0] == wording.visible(text + "x")


def test_only_what_differs_is_marked() -> None:
    page = Page(removed_list([example()], 1))
    assert page.texts["del"][1:] == ["three"]
    assert page.texts["ins"][1:] == ["four"]


def test_a_text_equal_to_the_kept_one_is_shown_once_unless_it_was_cut() -> None:
    same = example(
        kept_text="one two three", exact=True, similarity=1.0, kept_passages=[(0, 13, True)]
    )
    for shown, times in ((same, 1), (same._replace(pair=same.pair._replace(truncated=True)), 2)):
        assert removed_list([shown], 1).count('class="text"') == times


def test_a_long_id_is_cut_in_the_list_and_whole_when_opened() -> None:
    headings = Page(removed_list([example(id="x" * 2_500 + "y" * 2_500)], 1))
    assert len(headings.texts["summary"][-1]) < 250
    assert "xx…yy" in headings.texts["summary"][-1]
    assert "x" * 2_500 + "y" * 2_500 in headings.texts["h3"][0]


# The cards, and what is shown


def titles(examples) -> list[str]:
    return Page(f"<div>{cards(examples)}</div>").texts.get("h3", [])


def test_the_cards_are_the_largest_family_the_most_near_duplicates_and_the_closest_call() -> None:
    examples = [
        example(kept_id="a", family=9, family_near=2),
        example(kept_id="b", family=5, family_near=5, similarity=0.9),
        example(kept_id="c", family=1, family_near=1, similarity=0.81),
    ]
    page = Page(f"<div>{cards(examples)}</div>")
    assert page.texts["h3"] == ["The largest family", "Another family", "The closest call"]
    sentences = [text for text in page.texts["p"] if text != "Read both"]
    assert sentences == [
        "9 documents, 7 copies among them, removed by one text: a",
        "5 near-duplicates removed by one text: b",
        "0.810: b, removed by c",
    ]
    links = [attributes["href"] for tag, attributes in page.elements if tag == "a"]
    assert links == ["#removed-1", "#removed-2", "#removed-3"]


def test_a_card_without_a_case_is_left_out() -> None:
    assert titles([]) == []
    assert titles([example(family_near=1)]) == ["The closest call"]
    assert titles([example(exact=True, family=3)]) == ["The largest family"]


def test_a_card_shows_the_first_difference_of_long_texts() -> None:
    text = "w " * 400 + "one" + " w" * 400
    kept = "w " * 400 + "two" + " w" * 400
    marks = [[(0, 800, True), (800, 803, False), (803, 1603, True)]] * 2
    shown = Page(
        f"<div>{cards([example(text=text, kept_text=kept, passages=marks[0], kept_passages=marks[1])])}</div>"  # noqa: E501
    )
    assert shown.texts["del"] == ["one"]
    assert shown.texts["ins"] == ["two"]
    assert all(len(text) < 400 for text in shown.texts["p"])
    html = cards([example(text=text, kept_text=kept, passages=marks[0], kept_passages=marks[1])])
    assert html.count("…w w") + html.count("… w") == 2


def test_a_card_of_texts_that_differ_after_their_shown_part_does_not_call_them_the_same() -> None:
    same = example(kept_text="one two three", kept_passages=[(0, 13, True)])
    cut = same._replace(pair=same.pair._replace(truncated=True))
    assert [cards([shown]).count("character for character") for shown in (same, cut)] == [1, 0]


WORDS = "word " * 200


@pytest.mark.parametrize(
    ("passages", "folded"),
    [
        pytest.param([(0, 1000, True)], [], id="no difference"),
        pytest.param([(0, 350, True), (350, 355, False)], [], id="short"),
        pytest.param([(0, 500, True), (500, 505, False)], [(0, 384)], id="before a difference"),
        pytest.param([(0, 5, False), (5, 1000, True)], [(125, 1000)], id="after a difference"),
        pytest.param(
            [(0, 5, False), (5, 505, True), (505, 510, False)], [(125, 389)], id="between two"
        ),
    ],
)
def test_all_but_the_ends_of_a_long_equal_passage_is_folded_between_words(passages, folded):
    page = Page(f"<div>{marked_text(WORDS, passages, 'del', fold=True)}</div>")
    summaries = [f"{end - start} characters in both texts" for start, end in folded]
    assert page.texts.get("summary", []) == summaries
    html = marked_text(WORDS, passages, "del", fold=True)
    plain = re.sub(r"<summary>.*?</summary>|<[^>]*>", "", html)
    assert plain == WORDS


@given(st.integers(0, 400), st.integers(1, 6), st.randoms(use_true_random=False))
def test_a_third_of_what_is_shown_is_near_the_threshold_and_the_largest_family_is_there(
    count, families, draw
) -> None:
    nearness = np.array([draw.random() for _ in range(count)])
    kept = np.array([1_000 + draw.randrange(families) for _ in range(count)], np.uint32)
    exact = np.array([draw.random() < 0.3 for _ in range(count)], np.bool_)
    measured = Measured({"similarity": nearness, "exact": exact})
    shown = pick_examples(Removals(np.arange(count, dtype=np.uint32), kept, measured), nearness)
    documents = shown.removals.documents.tolist()
    assert len(documents) <= min(count, 100)
    assert documents == sorted(set(documents))
    assert count > 100 or documents == list(range(count))
    assert set(np.argsort(nearness, kind="stable")[: min(count, 33)].tolist()) <= set(documents)
    assert shown.families.max(initial=0) == max(
        (np.count_nonzero(kept == one) for one in kept), default=0
    )
    assert shown.near_families.tolist() == [
        np.count_nonzero((kept == one) & ~exact) for one in shown.removals.kept
    ]


def test_pages_compared_by_structure_are_shown_as_outlines(tmp_path: Path) -> None:
    page = "<body><div class=a><p>{}<p>x<table><tr><td>1</table>{}</div>"
    texts = [page.format("one", ""), page.format("two", "<footer>f</footer>")]
    neardup.dedup(texts, method="structure", output=tmp_path / "out")
    html = (tmp_path / "out" / "report.html").read_text()
    assert "footer" in Page(html).texts["del"]
    assert "&lt;div" not in html
    assert re.search(r"body\n  div\.a\n    p × 2\n    table\n", html)


def test_removals_are_counted_by_input(tmp_path: Path) -> None:
    texts = {
        "a": ["one two three", "one two three", "x y z"],
        "b": ["one two three", "x y z", "new words here"],
    }
    for name, lines in texts.items():
        (tmp_path / f"{name}.txt").write_text("\n".join(lines) + "\n")
    files = [tmp_path / "a.txt", tmp_path / "b.txt"]
    found = neardup.dedup(files, text_unit="line", output=tmp_path / "out").report[
        "removed_by_inputs"
    ]
    name = {str(file): file.name for file in files}
    assert [
        (name[cell["removed_from"]], name[cell["kept_in"]], cell["documents"]) for cell in found
    ] == [
        ("b.txt", "a.txt", 2),
        ("a.txt", "a.txt", 1),
    ]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Removed, by inputs" in page
    assert "Only the largest numbers are shown" not in page


def test_a_table_of_removals_by_inputs_says_that_it_shows_the_largest_numbers_only() -> None:
    cells = [
        {"removed_from": f"{number}.txt", "kept_in": "first.txt", "documents": 30 - number}
        for number in range(12)
    ]
    assert "Only the largest numbers are shown" in across_table({"removed_by_inputs": cells})
    assert "Only the largest numbers" not in across_table({"removed_by_inputs": cells[:8]})


def test_the_bytes_that_were_removed_are_counted_without_those_of_the_earlier_collection(
    tmp_path: Path,
) -> None:
    (tmp_path / "old.txt").write_text("one two three\nan old text\n")
    (tmp_path / "new.txt").write_text("One, two: three!\né two words\nx y z\nx y z\n")
    old = tmp_path / "old.txt"
    new = tmp_path / "new.txt"
    report = neardup.dedup(
        new, against=old, text_unit="line", output=tmp_path / "out", keep="last"
    ).report
    assert (report["bytes"], report["source_bytes"], report["removed_bytes"]) == (
        13 + 11 + 38,
        38,
        16 + 5,
    )
    assert "21 bytes of text" in (tmp_path / "out" / "report.html").read_text()
    assert "removed_bytes" not in neardup.cluster(new, text_unit="line").report


def test_compared_pairs_below_the_threshold_are_a_grey_bar() -> None:
    counts = {"compared": 1_000, "confirmed": 150, "confirmed_exact": 50}
    chart = charts.pairs_chart({"counts": counts})
    assert re.findall(r'<rect class="(near|exact)"', chart) == ["near", "exact"]
    assert "100 pairs at the threshold or above" in chart
    assert "900 pairs below the threshold" in chart
    assert charts.pairs_chart({"counts": counts | {"compared": 100}}) == ""
    assert charts.pairs_chart({"counts": counts | {"compared": None}}) == ""


def test_only_a_similarity_of_one_reads_one() -> None:
    html = render_report(
        report(), [example(similarity=0.99999), example(similarity=1.0), example(similarity=0.8)]
    )
    assert re.findall(r'class="similarity">([^<]*)<', html) == ["0.999", "1.000", "0.800"]
    assert [wording.percent(share) for share in (0, 1e-9, 0.5, 0.99999, 1)] == [
        "0 %",
        "< 0.1 %",
        "50.0 %",
        "> 99.9 %",
        "100 %",
    ]


def test_the_same_report_gives_the_same_page() -> None:
    examples = [example(), hostile()]
    assert render_report(report(), examples) == render_report(
        json.loads(json.dumps(report())), list(examples)
    )


def test_the_notebook_fragment_holds_the_result_and_two_charts_without_script() -> None:
    page = Page(notebook(report()))
    assert page.count("svg") == 2
    assert headline(report()) in page.texts["p"]
    assert "99.7 %" in page.texts["td"]
    assert "estimated, without copies; 99.5 % to 99.9 %" in page.texts["td"]


def test_charts_draw_nothing_for_nothing() -> None:
    assert charts.histogram([], [], x_label="", y_label="", name="") == ""
    assert charts.histogram([0.8, 1.0], [0], x_label="", y_label="", name="") == ""
    assert charts.bars([], name="") == ""
    assert charts.proportion({"counts": {"kept": 0}}, {"kept": "kept"}, name="") == ""


def test_a_histogram_tells_which_edges_are_missing() -> None:
    with pytest.raises(ValueError, match="2 counts need 3 edges: got 2"):
        charts.histogram([0.8, 1.0], [1, 2], x_label="", y_label="", name="")


@pytest.mark.parametrize("counts", [[1], [1, 2, 3], [10**18, 1], [7] * 200])
def test_bars_stand_inside_their_frame_and_say_their_count(counts: list[int]) -> None:
    edges = [0.8 + 0.2 * index / len(counts) for index in range(len(counts) + 1)]
    page = Page(charts.histogram(edges, counts, x_label="x", y_label="y", name="n"))
    assert [
        int(title.rpartition(": ")[2].replace(",", "")) for title in page.texts["title"]
    ] == counts
    bars = [a for tag, a in page.elements if tag == "rect" and a["class"] == "near"]
    tops = [float(bar["y"] or 0) for bar in bars]
    assert min(tops) == pytest.approx(30)
    assert all(
        top + float(bar["height"] or 0) == pytest.approx(196, abs=0.02)
        for top, bar in zip(tops, bars, strict=True)
    )


def test_cluster_sizes_are_grouped_without_losing_a_document() -> None:
    sizes = [[2, 5], [3, 1], [5, 7], [8, 1], [9, 2], [1000, 1]]
    classes = charts.size_classes(sizes)
    assert [each.sizes for each in classes] == ["2", "3", "5–8", "9–16", "513–1,024"]
    assert sum(each.documents for each in classes) == sum(size * count for size, count in sizes)


@pytest.mark.parametrize("scheme", [0, 1])
def test_text_colours_reach_the_contrast_of_wcag_aa(scheme: int) -> None:
    css = files("neardup.report").joinpath("report.css").read_text(encoding="utf-8")
    colours = dict(
        re.findall(r"--([\w-]+): (#\w{6})", re.findall(r":root \{.*?\}", css, re.S)[scheme])
    )

    def luminance(name: str) -> float:
        parts = [int(colours[name][i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        ]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(one: str, other: str) -> float:
        low, high = sorted((luminance(one), luminance(other)))
        return (high + 0.05) / (low + 0.05)

    for text in ("ink", "dim", "kept", "near"):
        assert min(contrast(text, ground) for ground in ("paper", "raised")) >= 4.5
    assert min(contrast("ink", tint) for tint in ("kept-tint", "near-tint", "warn-tint")) >= 4.5
    assert min(contrast(fill, "paper") for fill in ("kept-fill", "near-fill")) >= 3


# In a real browser.
