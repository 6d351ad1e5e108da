"""A sweep names two grades, copies and versions of one work: what each removes, and what its pairs
differ in.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

import neardup
from neardup.api import choose
from neardup.cli.main import cli
from neardup.report.wording import speaking

pytestmark = pytest.mark.slow

WORDS = [f"word{letter}{other}" for letter in "abcdefghijklmnopqrst" for other in "uvwxyz" * 3]
NAMES = ("Ann", "Bea", "Cy", "Dora", "Ed", "Flo", "Gus", "Hal", "Ivo", "Jo")
NUM_WORKS = 40


def sentence(draw: random.Random, length: int) -> str:
    return " ".join(f"{draw.choice(WORDS)}{draw.choice('abcdef')}" for _ in range(length))


def forms(draw: random.Random) -> list[str]:
    """Forms of one frame, each filled in by another person."""
    frame = sentence(draw, 60)
    fields = sentence(draw, 8).split()
    texts = []
    for person in range(NUM_WORKS):
        entries = [f"{field} {draw.choice(NAMES)}{person}" for field in fields]
        texts.append(f"{frame} {' '.join(entries)}")
    return texts


def letters(draw: random.Random) -> list[str]:
    """Letters with two sentences of their own; of each, a second one lacks the last."""
    frame = sentence(draw, 20)
    texts = []
    for _ in range(NUM_WORKS):
        own = sentence(draw, 30)
        texts += [f"{frame} {own} {sentence(draw, 20)}", f"{frame} {own}"]
    return texts


def versions(draw: random.Random) -> list[str]:
    """Texts, each in two versions with every eighth word replaced."""
    texts = []
    for _ in range(NUM_WORKS):
        words = sentence(draw, 64).split()
        texts.append(" ".join(words))
        words[::8] = sentence(draw, 8).split()
        texts.append(" ".join(words))
    return texts


def copies(draw: random.Random) -> list[str]:
    """Texts, each twice with another number at the end."""
    texts = []
    for number in range(NUM_WORKS):
        text = sentence(draw, 100)
        texts += [f"{text} {number}", f"{text} {number + 1000}"]
    return texts


KINDS = {
    "copies": (copies, "copies", "Only names, numbers and dates differ in 100 %"),
    "versions": (versions, "versions", "Words here and there differ in 100 %"),
    "letters": (letters, "versions", "Whole passages differ in 100 %"),
}


@pytest.mark.parametrize(("make", "name", "explanation"), KINDS.values(), ids=KINDS)
def test_a_grade_has_its_count_and_its_line_and_says_what_its_pairs_differ_in(
    make, name, explanation
):
    texts = make(random.Random(3))
    result = neardup.sweep(texts)
    grade = getattr(result.grades, name)
    assert explanation in grade.explanation
    assert grade.removed == NUM_WORKS
    assert result.report["grades"][name] == grade.record()
    assert len(grade.above) == 3
    for pair in grade.above:
        assert pair.similarity >= grade.method.threshold
        assert pair.pair.left == texts[int(pair.left_id)]
        assert int(pair.left_id) // 2 == int(pair.right_id) // 2
    assert all(pair.similarity < grade.method.threshold for pair in grade.below)
    for each in result.grades:
        assert each.removed == len(neardup.dedup(texts, method=each.method).removed)


def test_filled_in_forms_of_many_people_are_named_as_such():
    texts = forms(random.Random(3))
    grade = neardup.sweep(texts).grades.versions
    assert grade.removed == NUM_WORKS - 1
    assert grade.explanation == (
        "Only names, numbers and dates differ in 100 % of these pairs: filled-in forms, or one "
        "notice sent again?"
    )
    assert grade.differences.names == 1


@pytest.fixture
def in_folder(tmp_path, monkeypatch) -> pa.Table:
    """Write versions and a few copies to in.jsonl, in a folder that is the current one."""
    monkeypatch.chdir(tmp_path)
    draw = random.Random(3)
    table = pa.table({"text": versions(draw) + copies(draw)[:6]})
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    return table


@pytest.mark.parametrize(("name", "removed"), [("copies", 3), ("versions", NUM_WORKS + 3)])
def test_the_file_of_a_grade_makes_dedup_remove_as_many_documents(in_folder, name, removed):
    made = CliRunner().invoke(cli, ["sweep", "in.jsonl", "--grade", name, "-o", "grade.toml"])
    assert made.exit_code == 0, made.output
    run = CliRunner().invoke(
        cli, ["dedup", "in.jsonl", "--config", "grade.toml", "-o", "out", "--json"]
    )
    assert run.exit_code == 0, run.output
    assert json.loads(run.stdout)["counts"]["removed"] == removed
    grade = getattr(neardup.sweep(in_folder).grades, name)
    assert grade.removed == removed
    assert grade.write("python.toml").read_text() == Path("grade.toml").read_text()
    assert Path("grade.toml").read_text().startswith(f"# {grade}. {grade.explanation}\n")


def test_terminal_page_and_json_show_the_same_grades(in_folder):
    grades = neardup.sweep(in_folder).grades
    assert str(grades.copies) == "copies: 3 documents at 5 words @ 0.8"
    shown = CliRunner().invoke(cli, ["sweep", "in.jsonl"]).stdout
    page = CliRunner().invoke(cli, ["sweep", "in.jsonl", "--page", "pairs.html"])
    assert page.exit_code == 0, page.output
    report = json.loads(CliRunner().invoke(cli, ["sweep", "in.jsonl", "--json"]).stdout)
    assert report["grades"] == grades.record()
    for grade in grades:
        for sentences in (shown, Path("pairs.html").read_text()):
            assert str(grade) in sentences
            assert grade.explanation in sentences
        assert str(grade) in neardup.sweep(in_folder)._repr_html_()
    assert "Closest to the line of copies, from above" in shown


def test_grades_are_chinese_where_the_terminal_is(in_folder):
    with speaking("zh"):
        shown = CliRunner().invoke(cli, ["sweep", "in.jsonl", "--lang", "zh"]).stdout
    assert "同一文本：3 篇文档，5 个词，阈值 0.8" in shown
    assert "同一作品的版本：43 篇文档，2 个词，阈值" in shown
    assert "这些文本对中有 100 % 只有个别词不同" in shown


def test_a_threshold_of_the_method_is_that_of_the_copies(in_folder):
    result = neardup.sweep(in_folder, method=neardup.MinHash(threshold=0.97))
    removed = len(neardup.dedup(in_folder, threshold=0.97).removed)
    assert (result.grades.copies.method.threshold, result.grades.copies.removed) == (0.97, removed)


@pytest.mark.parametrize("limit", ["_MAX_DOCUMENTS", "_MAX_BUCKET"])
def test_without_a_clearest_setting_versions_have_the_general_one(in_folder, monkeypatch, limit):
    monkeypatch.setattr(choose, limit, 1)
    grades = neardup.sweep(in_folder).grades
    assert (grades.versions.method.ngram, grades.versions.method.threshold) == (2, 0.45)
    assert grades.versions.removed == NUM_WORKS + 3
    if limit == "_MAX_DOCUMENTS":
        assert grades.versions.explanation == "No pair was compared."


def test_nothing_is_compared_where_there_is_nothing():
    grades = neardup.sweep([]).grades
    assert [grade.removed for grade in grades] == [0, 0]
    assert grades.copies.explanation == "No pair was compared."


def test_exact_copies_alone_show_no_difference():
    grades = neardup.sweep([sentence(random.Random(9), 50)] * 3).grades
    assert grades.copies.explanation == "No other pairs than exact copies were drawn."
    assert grades.versions.explanation == "No other pairs than copies were drawn."


def test_a_method_without_a_rule_has_no_grades(in_folder):
    method = neardup.MinHash(similarity="cosine")
    assert neardup.sweep(in_folder, method=method).grades is None
    assert neardup.sweep(in_folder, thresholds=[0.5]).grades is None
    refused = CliRunner().invoke(
        cli, ["sweep", "in.jsonl", "--similarity", "cosine", "--grade", "copies", "-o", "a.toml"]
    )
    assert refused.exit_code == 2
    assert "--grade requires a method whose grades are known" in refused.stderr


@pytest.mark.parametrize("others", [[], ["--ask", "3", "-o", "a.toml"]], ids=["no file", "answers"])
def test_a_grade_needs_a_file_and_no_answers(in_folder, others):
    refused = CliRunner().invoke(cli, ["sweep", "in.jsonl", "--grade", "versions", *others])
    assert refused.exit_code == 2
    assert "--grade requires --output, without --ask: got --grade versions." in refused.stderr
