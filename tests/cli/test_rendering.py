"""What stands on the terminal: the closing table, bars, passages, the S-curve."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

import neardup
from neardup.cli.render.compare import Marks, print_comparison, print_differences
from neardup.cli.render.plan import draw_curve, print_plan
from neardup.cli.render.reports import print_report
from neardup.report.progress_bars import StageBars, clock
from neardup.report.wording import short
from neardup.settings.methods import MinHash
from neardup.verify import alignment
from neardup.verify.alignment import Stretch, align

METHOD = MinHash(ngram=2)
TEXT_PAIRS = [("", "a"), ("a", ""), ("", ""), ("a b c", "x y z"), ("ﬁne print", "fine PRINT")]


class AsciiStream(io.StringIO):
    encoding = "ascii"


def console(
    width: int = 80, *, colours: bool = False, stream: io.StringIO | None = None
) -> Console:
    return Console(
        file=stream or io.StringIO(),
        width=width,
        force_terminal=colours,
        highlight=False,
        legacy_windows=False,
        color_system="standard" if colours else None,
    )


def printed(screen: Console) -> str:
    return screen.file.getvalue()


def compared(left: str, right: str, screen: Console, **settings: bool) -> str:
    print_comparison(
        neardup.compare(left, right, method=METHOD), ("a", "b"), METHOD, console=screen, **settings
    )
    return printed(screen)


def words(first: int, last: int) -> str:
    return " ".join(f"w{i}" for i in range(first, last))


REPORT = {
    "command": "dedup",
    "scheme": {},
    "settings": {"similarity": "jaccard", "threshold": 0.8},
    "counts": {
        "read": 1_234_567_890,
        "kept": 1_000_000_000,
        "removed": 234_567_890,
        "removed_exact": 100_000_000,
        "removed_near": 134_567_890,
        "rejected": 12,
        "without_features": 3,
        "against": 500,
        "compared": 7,
    },
    "incomplete": None,
    "compile_seconds": 0.0,
    "bound": {"max_bucket_size": 64, "documents": 0},
    "recall": {"estimated": 0.9951, "low": 0.994, "high": 0.9962},
    "recall_sample": {
        "documents": 1000,
        "pairs": 500,
        "found": 496,
        "recall": 0.992,
        "low": 0.98,
        "high": 0.999,
    },
    "timings": [{"stage": "read", "seconds": 8000.0}, {"stage": "sort", "seconds": 0.01}],
    "seconds": 8000.01,
    "bytes": 5e12,
    "megabytes_per_second": 625.0,
    "documents_per_second": 154_320,
    "peak_memory_bytes": 12_000_000_000,
    "warnings": ["Something is to be known."],
}


def test_the_closing_table_fits_into_80_columns_and_tells_everything():
    screen = console()
    print_report(REPORT, Path("out"), screen)
    text = printed(screen)
    lines = text.splitlines()
    assert max(len(line) for line in lines) <= 80
    for said in (
        "1,234,567,890  documents, 5.0 TB of text",
        "1,000,000,000  81.0 %",
        "19.0 %",
        "jaccard 0.8 or more",
        "99.5 %  estimated, without copies; 99.4 % to 99.6 %",
        "496 of 500 pairs",
        "2 h 13 min  read 2 h 13 min\n",
        "625 MB/s",
        "12.0 GB",
        "out/report.html",
        "out/rejected.jsonl",
        "Warning: Something is to be known.",
    ):
        assert said in text
    figures = [line for line in lines if line.startswith("  Read") or line.startswith("    copies")]
    assert len({line.index("  ", 34) for line in figures}) == 1


def test_the_closing_table_shows_no_recall_where_full_buckets_may_hide_pairs():
    screen = console(200)
    print_report(
        REPORT | {"bound": {"max_bucket_size": 64, "documents": 1_351}, "recall": None},
        Path("out"),
        screen,
    )
    text = printed(screen)
    assert "-  not known: 1,351 documents not compared with all candidates" in text
    assert (
        "99.2 %  measured, without copies; 98.0 % to 99.9 %; 496 of 500 pairs of 1,000 documents, "
        "with those"
    ) in text


def test_a_differing_word_is_marked_in_both_texts_and_the_rest_is_folded():
    left = f"{words(0, 200)} old {words(200, 400)}"
    text = compared(left, left.replace("old", "new"), console())
    assert "- " in text
    assert "[-old-]" in text
    assert "{+new+}" in text
    assert "⋯ 188 words ⋯" in text
    assert "w100" not in text


def test_full_folds_nothing():
    left = f"{words(0, 200)} old {words(200, 400)}"
    text = compared(left, left.replace("old", "new"), console(), full=True)
    assert "⋯" not in text
    assert "w100" in text


def test_of_many_pairs_the_first_differences_of_each_are_printed():
    shared = f" {words(0, 40)} "
    screen = console()
    left, right = (shared.join(f"{side}{i} {f'{side} ' * 30}" for i in range(9)) for side in "xy")
    marks = Marks(plain=True, unicode=False, full=False)
    print_differences(
        neardup.compare(left, right, method=MinHash(ngram=1)), ("A", "B"), marks, screen, brief=True
    )
    text = printed(screen)
    assert "[-x0 x" in text
    assert "{+y0 y" in text
    assert "x8" not in text
    assert text.splitlines()[-1].strip().startswith("... ")
    assert 480 < sum(len(line) for line in text.splitlines() if line.startswith("- ")) < 700


def test_a_wide_terminal_has_two_columns_in_colour_and_no_brackets():
    left = f"{words(0, 20)} old {words(20, 40)}"
    text = compared(left, left.replace("old", "new"), console(120, colours=True))
    line = next(line for line in text.splitlines() if "w19" in line)
    assert line.count("w19") == 2
    assert "│" in line
    assert "\x1b[1;31mold\x1b[0m" in text
    assert "\x1b[1;32mnew\x1b[0m" in text
    assert "[-" not in text


def test_plain_uses_no_colour_for_marks():
    text = compared("a b c d", "a b c e", console(120, colours=True), plain=True)
    assert "[-d-]" in text
    assert "{+e+}" in text


def test_equal_texts_and_moved_passages_are_said_in_words():
    assert "Copies: the same words in the same order, ignoring case, punctuation" in compared(
        "a + b", "a - B", console()
    )
    assert "No passage differs." in compared("a b c", "a b c", console())
    assert "The passages differ only in case" in compared("a b c", "A b, c", console())
    moved = compared(
        f"{words(0, 50)} {words(50, 100)}", f"{words(50, 100)} {words(0, 50)}", console()
    )
    assert "The same passages in another order." in moved


def test_a_text_without_tokens_is_said_to_equal_nothing():
    assert "B has no token, and equals nothing." in compared("a b c", "...", console())


def test_an_escape_sequence_of_a_text_does_not_reach_the_terminal():
    text = compared("a b \x1b[31mred", "a b \x07c", console())
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[ESC]" in text


def test_where_only_ascii_can_be_shown_only_ascii_is_printed():
    left = f"{words(0, 200)} old {words(200, 400)}"
    screen = console(stream=AsciiStream())
    compared(left, left.replace("old", "new"), screen)
    print_plan(neardup.plan(documents=1e8), screen)
    assert printed(screen).isascii()


def test_stretches_stand_side_by_side_where_the_shared_letters_agree():
    left = "a b x c d"
    right = "a b c d y"
    result = neardup.compare(left, right, method=METHOD)
    assert align(left, result.left_passages, right, result.right_passages) == [
        Stretch("a b ", "a b ", True),
        Stretch("x ", "", False),
        Stretch("c d", "c d ", True),
        Stretch("", "y", False),
    ]


def test_folded_characters_are_no_difference():
    left = "漢字簡化後，這個程式設計師寫的"
    right = "汉字简化后，这个程序员写的"
    result = neardup.compare(left, right, method=neardup.MinHash(ngram=3, fold="chinese"))
    assert align(left, result.left_passages, right, result.right_passages) == [
        Stretch("漢字簡化後，這個程", "汉字简化后，这个程", True),
        Stretch("式設計師寫的", "序员写的", False),
    ]


def test_a_moved_or_repeated_passage_differs_and_the_rest_stands_side_by_side(monkeypatch):
    left = f"{words(0, 50)} {words(50, 60)} {words(60, 90)}"
    right = f"{words(50, 60)} {words(0, 50)} {words(60, 90)}"
    result = neardup.compare(left, right, method=METHOD)
    assert align(left, result.left_passages, right, result.right_passages) == [
        Stretch("", f"{words(50, 60)} ", False),
        Stretch(f"{words(0, 50)} ", f"{words(0, 50)} ", True),
        Stretch(f"{words(50, 60)} ", "", False),
        Stretch(words(60, 90), words(60, 90), True),
    ]
    monkeypatch.setattr(alignment, "_MAX_CELLS", 1000)
    assert align(left, result.left_passages, right, result.right_passages) is None
    again = neardup.compare("一二三四五六七八九", "一二三四五六七八九。一二三四五", method=METHOD)
    stretches = align(again.left, again.left_passages, again.right, again.right_passages)
    assert stretches == [
        Stretch(again.left, "一二三四五六七八九。", True),
        Stretch("", "一二三四五", False),
    ]


@pytest.mark.parametrize(("left", "right"), TEXT_PAIRS)
def test_stretches_cover_both_texts(left, right):
    result = neardup.compare(left, right, method=METHOD)
    stretches = align(left, result.left_passages, right, result.right_passages)
    assert "".join(stretch.left for stretch in stretches) == left
    assert "".join(stretch.right for stretch in stretches) == right


@pytest.mark.parametrize("threshold", [0.001, 0.2, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("unicode", [True, False])
def test_the_curve_fits_into_80_columns_and_marks_the_threshold(threshold, unicode):
    picture = draw_curve(
        tuple((step / 20, step / 20) for step in range(21)), threshold, unicode=unicode
    ).plain
    assert max(len(line) for line in picture.splitlines()) <= 80
    assert len(picture.splitlines()) == 21
    assert picture.count("threshold") == 1
    assert f"threshold {threshold:g}" in picture


def test_a_bar_grows_with_the_chance():
    picture = draw_curve(
        tuple((step / 20, step / 20) for step in range(21)), 1.0, unicode=False
    ).plain.splitlines()
    filled = [line.count("#") for line in picture]
    assert filled == sorted(filled)
    assert (filled[0], filled[20]) == (0, 40)


def test_bars_show_rates_time_left_and_vanish():
    screen = console(colours=True)
    with StageBars(screen) as bars:
        bars.begin("read", 1000)
        bars.advance(250, 5_000_000)
        bars._progress.refresh()
        shown = printed(screen)
        bars.end("read", 2.0)
        bars.begin("confirm", None)
        bars._progress.refresh()
    assert "Read" in shown
    assert "250 docs" in shown
    assert "MB/s" in shown
    assert "Confirm" in printed(screen)
    assert printed(screen).endswith("\x1b[2K")


def test_a_bar_says_that_kernels_are_compiled(monkeypatch):
    screen = console(colours=True)
    monkeypatch.setattr("neardup.report.progress_bars.is_compiling", lambda: True)
    with StageBars(screen) as bars:
        bars.begin("read", 1000)
        bars._progress.refresh()
        assert "compiling for this processor, once" in printed(screen)


def test_rates_and_times_are_short():
    assert [short(v) for v in (0, 812.4, 12_345, 999_949, 4_560_000)] == [
        "0",
        "812",
        "12.3k",
        "1000k",
        "4.56M",
    ]
    assert [clock(v) for v in (5, 754, 3723)] == ["0:05", "12:34", "1:02:03"]
