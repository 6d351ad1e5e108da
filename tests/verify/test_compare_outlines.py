"""Two outlines side by side: what one page has and the other has not, and nothing hostile on the
terminal.
"""

from __future__ import annotations

import io
import json
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from neardup.cli.main import cli
from neardup.cli.render.outlines import print_outlines
from neardup.features.outline import outline
from neardup.report.wording import speaking
from neardup.verify.alignment import align_outlines

LEFT = "<body><div class=page><h1>a</h1><ul class=list><li>1<li>2</ul><p class=note>x</div>"
RIGHT = (
    "<body><div class=page><h1>b</h1><nav id=menu></nav><ul class=list><li>1<li>2<li>3</ul></div>"
)
PAGES = st.lists(
    st.sampled_from(
        ["<p>", "</p>", "<div class=a>", "<div id=b>", "</div>", "<ul>", "</ul>", "<li>"]
    ),
    max_size=30,
).map("".join)


class AsciiStream(io.StringIO):
    encoding = "ascii"


def printed(
    left: str,
    right: str,
    *,
    width: int = 80,
    colours: bool = False,
    ascii_only: bool = False,
    **how: bool,
) -> str:
    stream = AsciiStream() if ascii_only else io.StringIO()
    screen = Console(
        file=stream,
        width=width,
        force_terminal=colours,
        highlight=False,
        legacy_windows=False,
        color_system="standard" if colours else None,
    )
    print_outlines(align_outlines(left, right), ("a.html", "b.html"), console=screen, **how)
    return stream.getvalue()


def test_lines_of_one_page_alone_have_a_sign():
    assert printed(LEFT, RIGHT).splitlines() == [
        "- a.html",
        "+ b.html",
        "",
        "  body",
        "    div.page",
        "      h1",
        "+     nav#menu",
        "      ul.list",
        "        li ×2  (B: ×3)",
        "-     p.note",
    ]


def test_a_wide_terminal_has_two_columns_in_colour():
    text = printed(LEFT, RIGHT, width=120, colours=True)
    assert "\x1b[32m    nav#menu " in text
    assert "\x1b[31m    p.note " in text
    assert next(line for line in text.splitlines() if "ul.list" in line).count("ul.list") == 2
    assert printed(LEFT, RIGHT, width=120, colours=True, plain=True).count("ul.list") == 1


def test_in_two_columns_what_differs_at_one_place_stands_side_by_side():
    text = printed("<h1><p class=a>", "<h1><p class=b>", width=120, colours=True)
    assert [line for line in text.splitlines() if "p.a" in line and "p.b" in line]


def test_an_element_around_others_is_one_line_more():
    pairs = align_outlines(LEFT, LEFT.replace("<body>", "<body><main>")).pairs
    assert [pair.right.label for pair in pairs if not pair.shared] == ["main"]


def test_long_stretches_that_both_have_are_folded_unless_all_is_asked_for():
    many = "".join(f"<p class={letter}>" for letter in "abcdefghijkl")
    left = f"<div>{many}</div>"
    right = f"<div>{many}<hr></div>"
    assert "  ⋯ 11 lines ⋯" in printed(left, right).splitlines()
    assert "⋯" not in printed(left, right, full=True)


def test_equal_outlines_are_reported():
    assert "The outlines are the same" in printed(LEFT, LEFT)
    assert "The outlines are the same" in printed("", "")


@pytest.mark.parametrize("width", [80, 120])
def test_nothing_hostile_reaches_the_terminal(width):
    hostile = "<body class='\x1b[31mred \u202egnp <script>alert(1)</script> [bold]'><p id='\x07'>"
    text = printed(hostile, LEFT, width=width)
    assert "[ESC]" in text
    assert "[U+202E]" in text
    assert "[BEL]" in text
    assert "[bold]" in text
    assert not set(text) & {"\x1b", "\x07", "\u202e"}


@pytest.mark.parametrize("width", [80, 120])
def test_where_only_ascii_can_be_shown_only_ascii_is_printed(width):
    many = "".join(f"<p class={letter}>" for letter in "abcdefghijkl")
    assert printed(many + LEFT, many + RIGHT, width=width, ascii_only=True).isascii()


def run(*arguments: str, **settings: object):
    return CliRunner().invoke(cli, ["compare", *arguments], prog_name="neardup", **settings)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("a.html").write_text(LEFT)
    Path("b.html").write_text(RIGHT)
    return tmp_path


@pytest.mark.usefixtures("files")
def test_the_command_compares_structure_and_content_and_shows_the_outlines():
    result = run("a.html", "b.html")
    assert result.exit_code == 0
    for said in (
        "Cosine ",
        "Content ",
        "Not duplicates: the cosine similarity",
        "+     nav#menu",
        "-     p.note",
    ):
        assert said in result.stdout
    assert (
        run("a.html", "-", "--method", "structure", input=LEFT.encode()).stdout.count(
            "Copies: the same tags"
        )
        == 1
    )


@pytest.mark.usefixtures("files")
def test_json_holds_the_outlines_and_no_passages():
    record = json.loads(run("a.html", "b.html", "--json").stdout)
    assert record["outlines"] == align_outlines(LEFT, RIGHT).record()["outlines"]
    assert record["content_similarity"] is not None
    assert "left_passages" not in record


@pytest.mark.usefixtures("files")
def test_other_methods_compare_the_files_as_texts():
    assert "Cosine" not in run("a.html", "b.html", "--method", "minhash").stdout


@pytest.mark.usefixtures("files")
def test_without_the_package_that_finds_main_texts_only_the_content_is_left_out(monkeypatch):
    monkeypatch.setitem(sys.modules, "resiliparse.extract.html2text", None)
    result = run("a.html", "b.html")
    assert result.exit_code == 0
    assert 'pip install "neardup[web]"' in result.stdout


@given(PAGES, PAGES)
def test_the_pairs_are_both_outlines_in_order(left, right):
    pairs = align_outlines(left, right).pairs
    assert [pair.left for pair in pairs if pair.left] == outline(left).lines
    assert [pair.right for pair in pairs if pair.right] == outline(right).lines
    assert all(pair.left.label == pair.right.label for pair in pairs if pair.shared)


@pytest.mark.timing
def test_pages_without_end_are_compared_in_bounded_time_and_the_rest_is_counted():
    names = [chr(97 + i % 26) + chr(97 + i // 26 % 26) for i in range(5_000)]
    pages = ["".join(f"<p class={name}>" for name in order) for order in (names, names[::-1])]
    begun = time.perf_counter()
    outlines = align_outlines(*pages)
    assert time.perf_counter() - begun < 20
    assert outlines.left_out == (4_001, 4_001)
    assert "4,001 further elements of A not shown." in printed(*pages)


def test_the_record_is_plain_json():
    record = json.loads(json.dumps(align_outlines(LEFT, RIGHT).record()))
    assert record["outlines"][3] == {
        "left": None,
        "right": {"label": "nav#menu", "depth": 2, "repeats": 1},
    }
    assert record["left_out"] == [0, 0]


def test_outlines_are_shown_in_the_language_of_the_run():
    many = "".join(f"<p class={letter}>" for letter in "abcdefghijkl")
    with speaking("zh"):
        assert "轮廓相同" in printed(LEFT, LEFT)
        text = printed(f"<ul><li><li></ul>{many}", f"<ul><li></ul>{many}")
    assert "  ⋯ 9 行 ⋯" in text
    assert "(B: 一次)" in text


def test_outlines_that_differ_only_in_repeats_are_not_the_same():
    text = printed("<ul><li><li></ul>", "<ul><li><li><li></ul>")
    assert "li ×2  (B: ×3)" in text
    assert "the same" not in text


def test_outlines_that_differ_only_in_depth_are_not_the_same():
    text = printed("<div><p></p></div><hr><ul></ul>", "<div></div><p></p><hr><ul></ul>")
    assert text.splitlines()[3:] == ["  body", "    div", "      p", "    hr", "    ul"]
