"""A sweep suggests settings, or says why the texts do not decide; answers about pairs decide in any
case.
"""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

import neardup
from neardup.api import choose
from neardup.cli.main import cli
from neardup.cli.render.suggestion import ask
from neardup.errors import InputError, OutputError, SettingError
from neardup.report.wording import speaking
from reference.browser import Browser

pytestmark = pytest.mark.slow

KINDS = 12


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Twelve texts in four versions each, and 40 others; the id of a version begins with the number
    of its text.
    """
    draw = random.Random(5)
    rows = {}
    words = [f"word{i}" for i in range(3000)]
    for kind in range(KINDS):
        first = draw.choices(words, k=60)
        for version in range(4):
            text = [draw.choice(words) if draw.random() < 0.1 else word for word in first]
            rows[f"{kind}-{version}"] = " ".join(text)
    rows |= {f"other{i}-0": " ".join(draw.choices(words, k=60)) for i in range(40)}
    return pa.table({"id": list(rows), "text": list(rows.values())})


@pytest.fixture(scope="module")
def swept(table: pa.Table) -> neardup.Sweep:
    return neardup.sweep(table)


def same_text(pair) -> bool:
    return pair.left_id.split("-")[0] == pair.right_id.split("-")[0]


def test_where_the_texts_decide_a_setting_is_suggested_with_its_reason(swept, table):
    suggestion = swept.suggestion
    assert suggestion.changes
    assert suggestion.method.ngram == 2
    assert f"{4 * KINDS} documents have a neighbour" in suggestion.reason
    assert swept.report["suggestion"] == suggestion.record()
    assert suggestion.record()["threshold"] == suggestion.method.threshold
    result = neardup.dedup(table, method=suggestion.method)
    assert len(result.removed) == 3 * KINDS
    assert len(neardup.dedup(table).removed) == 0


@pytest.mark.parametrize(("copies", "speaks"), [(56, False), (90, True)])
def test_nothing_is_suggested_for_copies_beside_many_pairs_of_all_similarities(copies, speaks):
    texts = []
    for number in range(copies + 15):  # one of the other 15 pairs between each two thresholds
        words = [f"w{number}-{place}" for place in range(400)]
        similarity = 1 if number < copies else 0.125 + 0.05 * (number - copies)
        shared = 1 + round(
            398 * similarity / (1 + similarity)
        )  # words, with as many pairs of words less one
        texts += [" ".join(words[:200]), " ".join(words[:shared] + words[200 : 400 - shared])]
    suggestion = neardup.sweep(texts).suggestion
    assert suggestion.changes == speaks
    assert suggestion.clearest.threshold == 0.1
    if not speaks:
        doubt = (
            "at 0.1, but the groups at 0.85 are clearer, without 21.1 % of these documents, more "
            "than 20 %"
        )
        assert doubt in suggestion.reason


def test_of_thresholds_that_find_the_same_pairs_the_highest_is_suggested():
    draw = random.Random(6)
    texts = [" ".join(draw.choices([f"word{i}" for i in range(3000)], k=60)) for _ in range(40)]
    suggestion = neardup.sweep([*texts, *texts[:20]]).suggestion
    assert suggestion.changes
    assert (
        suggestion.method.threshold == 0.85
    )  # the highest that it compares; each finds the copies alone


def test_the_written_settings_are_those_of_dedup(swept, table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    method = swept.suggestion.method
    assert swept.suggestion.write("sweep.toml") == Path("sweep.toml")
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    run = CliRunner().invoke(
        cli, ["dedup", "in.jsonl", "--config", "sweep.toml", "-o", "out", "--json"]
    )
    assert run.exit_code == 0, run.output
    report = json.loads(run.stdout)
    assert (report["method"]["ngram"], report["method"]["threshold"]) == (
        method.ngram,
        method.threshold,
    )
    assert report["counts"]["removed"] == 3 * KINDS
    with pytest.raises(OutputError, match="already exists"):
        swept.suggestion.write("sweep.toml")
    with pytest.raises(OutputError, match=r"must end in \.toml"):
        swept.suggestion.write("sweep.json")


@pytest.mark.slow
@pytest.mark.parametrize(
    "changed", [{"fold": ["chinese"]}, {"case_fold": False}, {"recall": 0.95}], ids=str
)
def test_settings_of_the_sweep_stay_in_the_file(table, changed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    neardup.sweep(table, method=neardup.MinHash(**changed)).suggestion.write("sweep.toml")
    Path("in.txt").write_text("a b c\n")
    run = CliRunner().invoke(
        cli, ["dedup", "in.txt", "--config", "sweep.toml", "-o", "out", "--json"]
    )
    assert run.exit_code == 0, run.output
    assert json.loads(run.stdout)["method"].items() >= changed.items()


@pytest.mark.parametrize("option", ["--ask", "--page"])
def test_questions_about_another_method_are_refused_before_the_sweep(tmp_path, monkeypatch, option):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(neardup, "sweep", None)
    Path("in.txt").write_text("a = 1\n")
    refused = CliRunner().invoke(
        cli, ["sweep", "in.txt", "--preset", "code", option, "3" if option == "--ask" else "p.html"]
    )
    assert refused.exit_code == 2
    assert f"{option} requires the default method, of which" in refused.output


def test_a_length_of_signatures_which_dedup_has_not_is_not_in_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("in.txt").write_text("one two\n")
    neardup.sweep(
        ["one two"], method=neardup.MinHash(num_hashes=256, threshold=0.7)
    ).suggestion.write("sweep.toml")
    run = CliRunner().invoke(
        cli, ["dedup", "in.txt", "--config", "sweep.toml", "-o", "out", "--json"]
    )
    assert run.exit_code == 0, run.output
    assert json.loads(run.stdout)["method"]["threshold"] == 0.7


@pytest.mark.slow
def test_chinese_words_stay_in_the_file_and_a_function_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("in.txt").write_text("天安门广场升旗仪式\n", encoding="utf-8")
    words = ["--tokens", "jieba", "--add-word", "升旗仪式", "--add-word", "😀", "--no-hmm"]
    made = CliRunner().invoke(cli, ["sweep", "in.txt", *words, "-o", "sweep.toml"])
    assert made.exit_code == 0, made.output
    methods = []
    for number, options in enumerate((["--config", "sweep.toml"], words)):
        run = CliRunner().invoke(cli, ["dedup", "in.txt", *options, "-o", f"out{number}", "--json"])
        assert run.exit_code == 0, run.output
        methods.append(json.loads(run.stdout)["method"])
    assert methods[0] == methods[1]
    with pytest.raises(
        SettingError, match="tokens is a Python function, which a file cannot contain"
    ):
        neardup.sweep(["a b"], method=neardup.MinHash(tokens=str.split)).suggestion.write(
            "function.toml"
        )


@pytest.mark.slow
def test_short_texts_have_shingles_of_one_word_and_given_ones_stay(table):
    short = [" ".join(text.split()[:15]) for text in table["text"].to_pylist()]
    assert neardup.sweep(short).suggestion.clearest.ngram == 1
    assert neardup.sweep(table, method=neardup.MinHash(ngram=3)).suggestion.clearest.ngram == 3


@pytest.mark.slow
def test_where_the_texts_do_not_decide_the_default_stays(table):
    few = neardup.sweep(table.slice(0, 12)).suggestion
    assert not few.changes
    assert few.method == neardup.MinHash()
    assert "The texts do not decide" in few.reason
    assert "fewer than 30" in few.reason
    none = neardup.sweep(["one text", "another thing"]).suggestion
    assert (none.changes, none.clearest) == (False, None)
    assert not neardup.sweep([]).suggestion.changes


@pytest.mark.slow
def test_full_buckets_are_searched_again_with_a_higher_bound_or_nothing_is_suggested(
    table, monkeypatch
):
    wide = neardup.sweep(table).suggestion
    monkeypatch.setattr(choose, "_MIN_BUCKET", 1)
    monkeypatch.setattr(choose, "_MAX_BUCKET", 2)
    monkeypatch.setattr(choose, "_MAX_PAIRS", 0)
    few = neardup.sweep(table).suggestion
    assert (few.changes, few.clearest) == (False, None)
    assert "Too many documents are similar" in few.reason
    monkeypatch.setattr(choose, "_MAX_BUCKET", 100_000)
    monkeypatch.setattr(choose, "_MAX_PAIRS", 175)  # a bound of 1, then of 2 and 4
    monkeypatch.setattr(choose, "_WIDER", 2)
    assert neardup.sweep(table).suggestion.levels == wide.levels
    monkeypatch.setattr(choose, "_MAX_DOCUMENTS", 50)
    assert (
        "88 documents are more than 50. Choose on a part" in neardup.sweep(table).suggestion.reason
    )


def test_given_thresholds_and_other_similarities_have_no_suggestion(table):
    plain = neardup.sweep(table, thresholds=[0.5])
    assert plain.suggestion is None
    with pytest.raises(SettingError, match=r"no pairs to ask about\. Leave thresholds out"):
        plain.ask(same_text)
    cosine = neardup.sweep(table, method=neardup.MinHash(similarity="cosine"))
    assert not cosine.suggestion.changes
    with pytest.raises(SettingError, match="Only the Jaccard similarity of words"):
        cosine.ask(same_text)


def test_answers_choose_a_setting_with_its_precision_and_recall(swept, table):
    asked = []
    found = swept.ask(lambda pair: asked.append(pair) or same_text(pair))
    assert len(asked) == 27
    assert len({(pair.left_id, pair.right_id) for pair in asked}) == 27
    assert found.changes
    assert found.estimate.answers == 27
    for share in (found.estimate.precision, found.estimate.recall):
        assert 0.9 < share.estimated < share.high <= 1.0
    assert "By 27 answers" in str(found)
    assert len(neardup.dedup(table, method=found.method).removed) == 3 * KINDS
    assert not swept.ask(lambda pair: False).changes
    with pytest.raises(InputError, match="An answer is True, False or None: got 'n'"):
        swept.ask(lambda pair: "n")


@pytest.fixture(scope="module")
def many() -> neardup.Sweep:
    """Thirty texts in two versions, and 300 others, of which most pairs share a part of one
    form.
    """
    draw = random.Random(8)
    texts = []
    words = [f"word{i}" for i in range(3000)]
    form = draw.choices(words, k=60)
    for _ in range(30):
        first = draw.choices(words, k=60)
        texts += [
            " ".join(first),
            " ".join(draw.choice(words) if draw.random() < 0.03 else word for word in first),
        ]
    for _ in range(300):
        first = draw.randrange(20)
        last = first + draw.randrange(20, 40)
        texts.append(
            " ".join(
                [
                    *draw.choices(words, k=first),
                    *form[first:last],
                    *draw.choices(words, k=60 - last),
                ]
            )
        )
    ids = [f"{place // 2 if place < 60 else place}-{place}" for place in range(len(texts))]
    return neardup.sweep(pa.table({"id": ids, "text": texts}))


def test_two_wrong_answers_about_pairs_of_low_similarity_keep_their_pairs(many, tmp_path):
    wrong = []

    def answer(pair):
        band = int(pair.similarity * 10)
        if band in (1, 3) and band not in wrong:
            wrong.append(band)
            return True
        return same_text(pair)

    found = many.ask(answer)
    assert wrong == [3, 1]
    assert found.method.threshold > 0.45
    many.ask(answer).write(tmp_path / "sweep.toml")
    assert f"threshold = {found.method.threshold:g}\n" in (tmp_path / "sweep.toml").read_text()


def test_settings_below_the_least_precision_are_not_written(many, tmp_path):
    bands = []

    def answer(pair):  # half of the pairs of each band
        bands.append(int(pair.similarity * 10))
        return bands.count(bands[-1]) % 2 == 0

    file = tmp_path / "answers.jsonl"
    found = many.ask(answer, count=45, answers=file)
    assert not found.changes
    assert found.method == neardup.MinHash()
    assert found.estimate.precision.estimated < 0.6
    assert "no setting is precise enough: at 2 words @ 0." in found.reason
    assert "Check each yes to a pair of low similarity" in found.reason
    found.write(tmp_path / "sweep.toml")
    assert "ngram = 5\nthreshold = 0.8\n" in (tmp_path / "sweep.toml").read_text()
    lower = many.ask(lambda pair: None, count=45, answers=file, min_precision=0.3)
    assert lower.changes
    assert lower.estimate == found.estimate
    assert (lower.method.ngram, lower.method.threshold) == (2, found.estimate.threshold)


def test_where_answers_contradict_each_other_up_to_a_third_more_pairs_of_such_similarities_are_asked_about(  # noqa: E501
    many,
):
    asked = []

    def answer(pair):
        asked.append(pair)
        is_wrong = len(asked) <= 18 and 0.2 <= pair.similarity < 0.3
        return is_wrong or same_text(pair)

    found = many.ask(answer, count=18)
    again = [pair for pair in asked if pair.again]
    assert not any(pair.again for pair in asked[:18])
    assert asked[18:] == again
    assert 0 < len(again) <= 6
    assert found.estimate.answers == len(asked)
    assert all(pair.similarity < 0.6 for pair in again)
    assert len({(pair.left_id, pair.right_id) for pair in asked}) == len(asked)
    asked.clear()
    many.ask(lambda pair: asked.append(pair) or same_text(pair), count=18)
    assert len(asked) == 18


@pytest.mark.parametrize(
    ("language", "note"),
    [
        ("en", "Asked because answers about pairs of such similarities contradict each other."),
        ("zh", "追加提问："),
    ],
)
def test_a_pair_that_is_asked_about_again_says_so(swept, language, note, capsys, monkeypatch):
    monkeypatch.setattr("click.prompt", lambda *_, **__: "y")
    pair = swept.grades.versions.above[0]
    with speaking(language):
        assert ask(pair)
        assert note not in capsys.readouterr().err
        assert ask(pair._replace(again=True))
    assert note in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("wrong", [-0.1, 0.96, "high", None])
def test_a_least_precision_is_a_number_from_0_to_095(swept, wrong):
    with pytest.raises(
        SettingError, match=r"min_precision must be a number of 0 or more and at most 0\.95: got"
    ):
        swept.ask(lambda pair: pytest.fail("asked"), min_precision=wrong)


def test_the_file_of_answers_grows_and_nothing_in_it_is_asked_again(swept, table, tmp_path):
    file = tmp_path / "answers.jsonl"
    asked = []

    def answer(pair):
        asked.append((pair.left_id, pair.right_id))
        return None if len(asked) == 3 else same_text(pair)

    first = swept.ask(answer, count=6, answers=file)
    assert (first.estimate.answers, len(asked)) == (6, 7)
    second = swept.ask(answer, count=10, answers=file)
    assert second.estimate.answers == 10
    assert len(asked) == len(set(asked)) == 11
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(row["left_id"], row["right_id"]) for row in rows] == asked
    assert [row["duplicate"] for row in rows].count(None) == 1
    assert (
        swept.ask(lambda pair: pytest.fail("asked"), count=10, answers=file).estimate
        == second.estimate
    )
    judged = neardup.evaluate(table, pairs=str(file), method=second.method)
    assert judged.at_threshold.positives == sum(row["duplicate"] is True for row in rows)


def test_answers_end_early(swept):
    def answer(pair):
        raise StopIteration

    assert swept.ask(answer).reason == "None of 0 answers is yes."


def test_a_page_asks_and_saves_the_answers_for_the_next_call(swept, tmp_path, browser: Browser):
    page = tmp_path / "pairs.html"
    file = tmp_path / "answers.jsonl"
    assert swept.write_questions(page, count=4) == 4
    browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    browser.show(page)
    assert browser.run("document.title") == "4 pairs: are they duplicates? – neardup"
    assert browser.run("document.querySelector('[name=save]').disabled")
    ids = browser.run(
        "[...document.querySelectorAll('#asked-list > li')].map((e) => "
        "e.querySelector('.id').innerText)"
    )
    for key in "yns":  # the focus moves on to the next pair; the last one has no answer
        browser.press(key)
    browser.wait("document.querySelector('output').value === '3 of 4 answered'")
    browser.run("document.querySelector('[name=save]').click()")
    browser.wait(
        "document.querySelector('output').value.includes('--ask 2 --answers answers.jsonl')"
    )
    deadline = time.monotonic() + 20
    while not file.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert browser.errors == []
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [row["duplicate"] for row in rows] == [True, False, None]
    assert [row["left_id"] for row in rows] == ids[:3]
    found = swept.ask(lambda pair: pytest.fail("asked"), count=2, answers=file)
    assert found.estimate.answers == 2
    assert swept.write_questions(page, count=4, answers=file) == 2
    questions, _, grades = page.read_text().partition('id="grades"')
    assert rows[0]["left_id"] not in questions
    assert "versions of one work: 36 documents at 2 words @" in grades


def test_a_page_shows_the_counts_and_by_thumb_the_next_pair_after_an_answer(
    swept, tmp_path, browser: Browser
):
    page = tmp_path / "pairs.html"
    swept.write_questions(page, count=3)
    browser.call("Emulation.setTouchEmulationEnabled", enabled=True)
    try:
        browser.show(page, width=400)
        browser.run("document.querySelector('#asked-1 [value=n]').click()")
        opened = "[...document.querySelectorAll('#asked-list details')].map((e) => e.open)"
        assert browser.run(opened) == [False, True, True]
        assert browser.run("document.getElementById('asked-2').getBoundingClientRect().top") < 50
        height = browser.run(
            "document.querySelector('#asked-2 .answer label').getBoundingClientRect().height"
        )
        assert height >= 44  # CSS pixels: WCAG 2.2, success criterion 2.5.5, target size
    finally:
        browser.call("Emulation.setTouchEmulationEnabled", enabled=False)
    rows = browser.run(
        "[...document.querySelectorAll('#by_threshold tbody tr')].map("
        "(e) => [...e.cells].map((cell) => cell.textContent))"
    )
    assert rows == [
        [f"{row['threshold']:g}", f"{row['removed']:,}", f"{row['kept']:,}"]
        for row in swept.counts.to_pylist()
    ]


@pytest.mark.parametrize(
    "line",
    ["no json", "{}", "[" * 100_000, '{"left_id": "1", "right_id": "2", "duplicate": "yes"}', "[]"],
)
def test_a_line_that_is_no_answer_is_refused(swept, line, tmp_path):
    (tmp_path / "answers.jsonl").write_text(f"{line}\n")
    with pytest.raises(
        InputError, match=r"Line 1 of .*answers.jsonl is no answer of a sweep: got .*Fix the line"
    ):
        swept.ask(same_text, answers=tmp_path / "answers.jsonl")


@pytest.mark.slow
def test_answers_about_other_documents_do_not_count(swept, table, tmp_path):
    file = tmp_path / "answers.jsonl"
    other = tmp_path / "other.jsonl"
    swept.ask(same_text, count=9, answers=file)
    texts = [
        " ".join(f"other{word}" for word in text.split()) for text in table["text"].to_pylist()
    ]
    changed = neardup.sweep(pa.table({"id": table["id"].to_pylist()[::-1], "text": texts}))
    with pytest.raises(
        InputError, match=r"No answer in .* is about a pair of these documents.*Name another file"
    ):
        changed.ask(lambda pair: pytest.fail("asked"), count=9, answers=file)
    changed.ask(lambda pair: True, count=5, answers=other)
    other.write_text(file.read_text() + other.read_text())
    assert (
        changed.ask(lambda pair: pytest.fail("asked"), count=5, answers=other).estimate.answers == 5
    )


def test_a_repeated_answer_counts_once_and_a_contradiction_is_refused(swept, tmp_path):
    file = tmp_path / "answers.jsonl"
    swept.ask(same_text, count=3, answers=file)
    lines = file.read_text()
    file.write_text(lines * 2)
    assert swept.ask(lambda pair: pytest.fail("asked"), count=3, answers=file).estimate.answers == 3
    file.write_text(lines + lines.replace("true", "false"))
    with pytest.raises(
        InputError, match=r"Line 4 of .* contradicts an earlier answer: got .*-.*\. Remove one"
    ):
        swept.ask(same_text, answers=file)


def test_a_file_of_answers_may_end_without_a_line_end_and_have_separators_in_its_ids(
    table, tmp_path
):
    file = tmp_path / "answers.jsonl"
    ids = [name.replace("-", "-\u2028\x85") for name in table["id"].to_pylist()]
    swept = neardup.sweep(table.set_column(0, "id", pa.array(ids)))
    swept.ask(same_text, count=2, answers=file)
    file.write_bytes(file.read_bytes().rstrip(b"\n"))
    for count in (3, 4):
        assert swept.ask(same_text, count=count, answers=file).estimate.answers == count


@pytest.mark.parametrize("name", ["answers.csv", "missing/answers.jsonl"])
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_asked(swept, tmp_path, name):
    with pytest.raises(OutputError):
        swept.ask(lambda pair: pytest.fail("asked"), answers=tmp_path / name)


def test_a_count_of_answers_is_a_number(swept):
    with pytest.raises(SettingError, match="count must be a whole number of 1 or more: got 0"):
        swept.ask(same_text, count=0)


def test_the_command_suggests_asks_and_writes(table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    shown = CliRunner().invoke(cli, ["sweep", "in.jsonl", "-o", "sweep.toml"])
    assert shown.exit_code == 0, shown.output
    assert "Closest to the line of versions of one work, from above" in shown.stdout
    assert shown.stdout.splitlines()[-2].startswith("Suggestion: --ngram 2 --threshold")
    assert "ngram = 2" in Path("sweep.toml").read_text()
    paged = CliRunner().invoke(cli, ["sweep", "in.jsonl", "--ask", "3", "--page", "pairs.html"])
    assert (
        paged.stdout
        == "pairs.html asks about 3 pairs. Open it in a browser; it saves the answers as a file.\n"
    )
    assert not Path("answers.jsonl").exists()
    asked = CliRunner().invoke(
        cli, ["sweep", "in.jsonl", "--ask", "3", "--json"], input="what\ny\ns\nn\ny\n"
    )
    assert asked.exit_code == 0, asked.output
    shown = asked.stdout[asked.stdout.index("{") :]  # before it, click 8.3 repeats the input
    assert json.loads(shown)["suggestion"]["estimate"]["answers"] == 3
    assert "An answer is y, n, s or q: got 'what'." in asked.stderr
    assert len(Path("answers.jsonl").read_text().splitlines()) == 4
    for option in (["--ask", "9"], ["-o", "other.toml"], ["--page", "pairs.html"]):
        refused = CliRunner().invoke(cli, ["sweep", "in.jsonl", "--thresholds", "0.5", *option])
        assert refused.exit_code == 2
        assert "requires a suggestion, which --thresholds leaves out" in refused.stderr
    alone = CliRunner().invoke(cli, ["sweep", "in.jsonl", "--answers", "answers.jsonl"])
    assert "--answers requires --ask or --page: got --answers answers.jsonl alone." in alone.stderr
    for others in ([], ["--ask", "3", "--page", "pairs.html"], ["--page", "pairs.html"]):
        least = CliRunner().invoke(cli, ["sweep", "in.jsonl", "--min-precision", "0.5", *others])
        assert (
            "--min-precision requires --ask without --page: got --min-precision 0.5. Add --ask 27"
            in least.stderr
        )
    Path("asked.toml").write_text(
        'ask = 3\nanswers = "answers.jsonl"\noutput = "by-answers.toml"\n'
    )
    again = CliRunner().invoke(cli, ["sweep", "in.jsonl", "--config", "asked.toml"])
    assert again.exit_code == 0, again.output
    assert "By 3 answers" in again.stdout
    assert "# By 3 answers" in Path("by-answers.toml").read_text()
    early = CliRunner().invoke(
        cli, ["sweep", "in.jsonl", "--ask", "9", "--answers", "new.jsonl"], input="q\n"
    )
    assert "None of 0 answers is yes." in early.stdout
