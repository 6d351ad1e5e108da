"""Repeated passages: what a user meets, and the promise of docs/passages.md by brute force."""

from __future__ import annotations

import csv
import io
import json
import random
import signal
import subprocess
import sys
import unicodedata
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import neardup
from neardup.cli.main import cli
from neardup.documents.sinks import open_compressed
from neardup.documents.sources import Source
from neardup.errors import ColumnError, OutputError, ResumeError, SettingError
from neardup.formats.registry import COMPRESSIONS
from reference.browser import Browser
from reference.reports import HOSTILE

NOTICE = (
    "We use cookies to give you the best experience on our site. Déjà vu? If you go on, you accept "
    "all of them. "
)
CHINESE = "本网站使用缓存以便为您提供更好的服务，如果您继续浏览本网站，即表示您同意我们使用缓存，详情请参阅我们的隐私政策和使用条款。"  # noqa: E501
EMOJI = "👩\u200d👩\u200d👧 🇫🇷🇩🇪 e\u0301a\u0308o\u0302 👍🏽 " * 4
LENGTH = 60
EXAMPLES = Path(__file__).parents[2] / "examples" / "data"


def words(chance: random.Random, count: int) -> str:
    return (
        " ".join(f"{chance.choice('bcdfgh')}{chance.randrange(10**6)}" for _ in range(count)) + " "
    )


def corpus(count: int, seed: int = 0, periods: tuple[str, ...] = ("a", "abcdefg")) -> list[str]:
    """Return texts with whole, partial, nested and repeated copies of passages, in scripts of one
    to four bytes.
    """
    chance = random.Random(seed)
    periodic = [period * (240 // len(period)) for period in periods]
    passages = [NOTICE, CHINESE, EMOJI, *periodic, *(words(chance, 12) for _ in range(5))]
    texts = []
    for number in range(count):
        parts = []
        for _ in range(chance.randrange(1, 7)):
            piece = chance.choice(passages)
            start = chance.choice([0, 0, chance.randrange(len(piece))])
            piece = piece[start : chance.choice([len(piece), start + LENGTH + chance.randrange(9)])]
            parts += [words(chance, chance.randrange(4)), piece * chance.choice([1, 1, 2])]
        texts.append("".join(parts) if number % 9 else "")
        if number % 5 == 4:
            copy = texts[number - 2]
            place = chance.randrange(len(copy) + 1)
            texts[number] = f"{copy[:place]}中{copy[place + 1 :]}"
    return texts


def table_of(texts: list[str | None]) -> pa.Table:
    names = [f"d{number}" for number in range(len(texts))]
    return pa.table({"id": names, "text": pa.array(texts, pa.string()), "n": range(len(texts))})


def check(
    result: neardup.PassageRemoval, source: pa.Table, length: int, against: pa.Table | None = None
) -> None:
    """Check that each row names the same text, which is kept, and that no text of that length is
    kept twice.
    """
    old = (
        {}
        if against is None
        else dict(zip(against["id"].to_pylist(), against["text"].to_pylist(), strict=True))
    )
    texts = old | dict(zip(source["id"].to_pylist(), source["text"].to_pylist(), strict=True))
    cuts: dict[str, list[tuple[int, int]]] = {name: [] for name in texts}
    for row in result.passages.to_pylist():
        text = texts[row["id"]]
        cuts[row["id"]].append((row["start"], row["end"]))
        assert (
            text.encode()[row["start_byte"] : row["end_byte"]].decode()
            == text[row["start"] : row["end"]]
            != ""
        )
        assert not any(
            unicodedata.combining(c) or c == "\u200d"
            for c in (text + " ")[row["end"]] + text[row["start"]]
        )
    kept = {row["id"]: row["text"] for row in result.kept.to_pylist()} | old
    for row in result.passages.to_pylist():
        if row["kept_id"] is None:
            continue
        there = texts[row["kept_id"]]
        begin = row["kept_start"]
        end = begin + row["end"] - row["start"]
        assert there[begin:end] == texts[row["id"]][row["start"] : row["end"]]
        assert len(there[:begin].encode()) == row["kept_start_byte"]
        assert all(stop <= begin or start >= end for start, stop in cuts[row["kept_id"]])
        assert row["kept_id"] in kept or row["kept_id"] == row["id"]
    seen: dict[str, tuple[str, int, int]] = {}
    for name, text in texts.items():
        ends = [0, *(place for cut in sorted(cuts[name]) for place in cut), len(text or "")]
        stretches = list(zip(ends[::2], ends[1::2], strict=True))
        remains = text and "".join(text[start:stop] for start, stop in stretches)
        if name not in kept:
            assert cuts[name]
            continue
        assert kept[name] == remains
        for number, (start, stop) in enumerate(stretches):
            for place in range(start, stop - length + 1):
                first = seen.setdefault(text[place : place + length], (name, number, place))
                if name in old:
                    continue
                assert first[:2] == (name, number), (first, name, place)
                assert place - first[2] < length, (first, name, place)


@pytest.mark.parametrize(
    ("cut_at", "periods"), [("character", ("a", "abcdefg")), ("word", ("a ", "ab cdefg. "))]
)
@pytest.mark.parametrize("options", [{}, {"bridge": 20}, {"max_loss": 0.5}], ids=str)
@pytest.mark.parametrize(
    "seeds", [range(1), pytest.param(range(1, 30), marks=pytest.mark.slow)], ids=["one", "many"]
)
def test_what_is_cut_is_kept_elsewhere_and_nothing_repeats_in_what_is_kept(
    cut_at, periods, options, seeds
):
    for seed in seeds:
        source = table_of(corpus(60, seed, periods))
        result = neardup.remove_passages(source, min_length=LENGTH, cut_at=cut_at, **options)
        check(result, source, LENGTH)
        counts = result.report["counts"]
        assert counts["passages"] > 50
        assert (counts["bridges"] > 0) == ("bridge" in options)
        assert counts["read"] - counts["dropped"] == result.kept.num_rows


def test_nothing_is_cut_from_an_earlier_collection_and_its_text_is_a_source():
    old = table_of(corpus(40, 1))
    new = table_of(corpus(40, 1)[::2] + corpus(20, 2))
    new = new.set_column(0, "id", pa.array([f"new{number}" for number in range(new.num_rows)]))
    result = neardup.remove_passages(new, against=old, min_length=LENGTH, cut_at="character")
    check(result, new, LENGTH, old)
    assert set(result.passages["kept_role"].to_pylist()) == {"source", "against"}
    assert result.report["counts"]["against"] == 40
    copied = [text for text in new["text"].to_pylist()[:20] if len(text) >= LENGTH]
    assert not set(copied) & set(result.kept["text"].to_pylist())


def test_cuts_end_between_words_and_the_white_space_before_them_stays():
    again = ["Apples are here.  " + NOTICE + "Pears\tare there.", NOTICE.rstrip()]
    result = neardup.remove_passages([NOTICE, *again], min_length=LENGTH)
    assert result.kept["text"].to_pylist() == [NOTICE, "Apples are here.  Pears\tare there."]
    inside = neardup.remove_passages(
        [f"x{NOTICE.strip()}x", f"yy{NOTICE.strip()}yy"], min_length=LENGTH
    )
    assert inside.kept["text"].to_pylist()[1] == "yyWe yy"  # a cut does not begin within a word


def test_texts_that_are_missing_or_empty_or_of_one_letter_are_kept():
    result = neardup.remove_passages(
        [None, "", "a" * 199, "", None], min_length=100, cut_at="character"
    )
    assert result.kept["text"].to_pylist() == [None, "", "a" * 199, "", None]
    result = neardup.remove_passages(["a" * 1050], min_length=100, cut_at="character")
    assert result.kept["text"].to_pylist() == ["a" * 150]
    assert result.passages["kept_start"].to_pylist() == [0] * 9
    assert neardup.remove_passages([]).passages.num_rows == 0


def test_a_document_that_loses_too_much_is_dropped_and_is_no_source():
    first = words(random.Random(1), 20)
    second = words(random.Random(2), 9)
    texts = table_of(
        [first, first + second, second + "and this", first[:40] + words(random.Random(3), 40)]
    )
    result = neardup.remove_passages(texts, min_length=LENGTH, max_loss=0.5)
    assert result.kept["id"].to_pylist() == ["d0", "d2", "d3"]
    assert result.kept["text"].to_pylist()[1] == second + "and this"
    assert result.passages["id"].to_pylist() == ["d1"]


def test_a_short_gap_between_passages_is_cut_with_them_and_its_row_names_no_source():
    first = words(random.Random(1), 12)
    second = words(random.Random(2), 12)
    texts = table_of([first, second, f"{first}page 7 {second}"])
    for bridge, kept, rows in ((6, ["page 7 "], 2), (7, [], 3)):
        result = neardup.remove_passages(texts, min_length=LENGTH, bridge=bridge)
        assert result.kept["text"].to_pylist() == [first, second, *kept]
        assert result.passages.num_rows == rows
    bridges = result.passages.filter(pa.compute.is_null(result.passages["kept_id"])).to_pylist()
    assert [(row["start"], row["end"], row["kept_start"]) for row in bridges] == [
        (len(first), len(first) + 7, None)
    ]


def test_a_long_gap_is_cut_wherever_the_anchors_are():
    for seed in range(20):
        chance = random.Random(seed)
        first, second, gap = (words(chance, count) for count in (40, 40, 21))
        texts = [first, second, f"{first}{gap}{second}"]
        result = neardup.remove_passages(texts, bridge=199)
        assert len(gap) > 130
        assert result.passages["kept_id"].to_pylist() == ["0", None, "1"], seed


def test_what_is_dropped_is_counted_whole():
    chance = random.Random(2)
    shared = words(chance, 30)
    texts = [shared + words(chance, 30) for _ in range(6)]
    report = neardup.remove_passages(texts, max_loss=0.0).report
    assert (report["counts"]["dropped"], report["counts"]["characters"]) == (
        5,
        sum(map(len, texts[1:])),
    )


def test_pages_that_lose_all_of_their_text_are_dropped(tmp_path):
    for name in "abc":
        (tmp_path / f"{name}.html").write_text(
            f"<html><body><p>{NOTICE}</p></body></html>{'<br>' * 100}"
        )
    result = neardup.remove_passages(
        tmp_path, min_length=LENGTH, output=tmp_path.with_suffix(".out"), write="removed"
    )
    assert result.report["counts"]["dropped"] == 2
    assert str(result).startswith(
        "66.7 % of the text removed from 2 of 3 documents, 2 of them dropped"
    )


def test_the_occurrences_of_a_passage_count_the_kept_one():
    result = neardup.remove_passages(
        [NOTICE, f"One. {NOTICE}", f"Two. {NOTICE}"], min_length=LENGTH
    )
    assert result.passages["occurrences"].to_pylist() == [3, 3]


TEXTS = [
    NOTICE,
    CHINESE,
    "",
    f"News, {NOTICE}the end",
    f"再见 {CHINESE}🙂 {EMOJI}",
    f"{CHINESE}🙂 {EMOJI}",
    NOTICE,
]
KEPT = {0: NOTICE, 1: CHINESE, 2: "", 3: "News, the end", 4: f"再见 🙂 {EMOJI}"}


def written(path: Path) -> bytes:
    with Source(str(path), str(path), COMPRESSIONS.get(path.suffix)).open_stream() as stream:
        return bytes(stream.read())


def run_file(path: Path, data: bytes) -> bytes:
    """Write a file, compressed as its suffix says, and return what is kept of it."""
    with open_compressed(str(path), COMPRESSIONS.get(path.suffix)) as stream:
        stream.write(data)
    neardup.remove_passages(path, min_length=LENGTH, output=path.parent / "out", overwrite=True)
    return written(path.parent / "out" / "kept" / path.name)


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_text_files_keep_all_but_what_is_cut_byte_for_byte(tmp_path, suffix):
    def lines(texts):
        return "".join(
            (
                f'{{"n" : {row},  "text":{json.dumps(text, ensure_ascii=row % 2 == 0)}, "x": '
                f"1.50e+1 }}\r\n"
            )
            for row, text in texts
        ).encode()

    def rows(texts):
        file = io.StringIO()
        csv.writer(file).writerows(
            [["n", "text", "note"], *([row, text, f'"{row},\n'] for row, text in texts)]
        )
        return file.getvalue().encode()

    assert run_file(tmp_path / f"in.jsonl{suffix}", lines(enumerate(TEXTS))) == lines(KEPT.items())
    kept = run_file(tmp_path / f"in.csv{suffix}", rows(enumerate(TEXTS))).decode()
    assert list(csv.reader(io.StringIO(kept))) == list(
        csv.reader(io.StringIO(rows(KEPT.items()).decode()))
    )
    plain = run_file(tmp_path / f"in.txt{suffix}", "\ufeff".encode() + "\r\n".join(TEXTS).encode())
    assert plain == "\ufeff".encode() + "".join(f"{text}\r\n" for text in KEPT.values()).encode()


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
@pytest.mark.parametrize(
    "text_type", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())], ids=str
)
def test_tables_keep_their_types_and_their_other_columns(tmp_path, kind, text_type):
    tags = pa.array(
        [["a", None], None, [], *[["b"]] * 4], pa.list_(pa.field("element", pa.string()))
    )
    columns = {"id": range(7), "text": pa.array(TEXTS).cast(text_type), "tags": tags}
    table = pa.table(columns).replace_schema_metadata({"maker": "a test"})
    path = tmp_path / f"in.{kind}"
    kept = tmp_path / "out" / "kept" / f"in.{kind}"
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=2)
    else:
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
    result = neardup.remove_passages(path, min_length=LENGTH, output=tmp_path / "out")
    read = pq.read_table(kept) if kind == "parquet" else pa.ipc.open_file(kept).read_all()
    assert read.schema.equals(table.schema, check_metadata=True)
    assert read.drop_columns("text").equals(table.slice(0, len(KEPT)).drop_columns("text"))
    assert read["text"].to_pylist() == result.kept["text"].to_pylist() == list(KEPT.values())


def test_several_inputs_are_one_collection_in_their_order(tmp_path):
    for number, texts in enumerate((TEXTS[:3], TEXTS[3:])):
        pq.write_table(
            pa.table({"name": [f"{number}-{row}" for row in range(len(texts))], "body": texts}),
            tmp_path / f"{number}.parquet",
        )
    arguments = [
        *map(str, (tmp_path / "0.parquet", tmp_path / "1.parquet")),
        "-o",
        str(tmp_path / "out"),
    ]
    options = ["--text-column", "body", "--id-column", "name", "--min-length", str(LENGTH)]
    ended = CliRunner().invoke(cli, ["passages", *arguments, *options])
    assert ended.exit_code == 0, ended.output
    out = tmp_path / "out"
    assert {path.name for path in out.iterdir()} == {
        "kept",
        "passages.parquet",
        "rejected.jsonl",
        "report.html",
        "report.json",
    }
    kept = [
        pq.read_table(out / "kept" / f"{number}.parquet")["body"].to_pylist() for number in range(2)
    ]
    assert kept == [TEXTS[:3], list(KEPT.values())[3:]]
    row = pq.read_table(out / "passages.parquet").to_pylist()[0]
    assert (row["id"], row["row"], row["kept_id"], row["kept_row"]) == ("1-0", 0, "0-0", 0)
    assert row["source_file"].endswith("1.parquet")
    assert row["kept_source_file"].endswith("0.parquet")


def test_the_report_of_a_run_repeats_it(tmp_path):
    path, out, again = (str(tmp_path / name) for name in ("in.parquet", "out", "again"))
    pq.write_table(table_of(corpus(40, 3)).rename_columns(["name", "body", "n"]), path)
    options = [
        "--text-column",
        "body",
        "--id-column",
        "name",
        "--min-length",
        "70",
        "--cut-at",
        "character",
    ]
    for arguments in (
        [path, *options, "--bridge", "9", "--write", "removed", "-o", out],
        ["--config", f"{out}/report.json", "-o", again],
    ):
        assert CliRunner().invoke(cli, ["passages", *arguments]).exit_code == 0
    first, second = (
        json.loads((Path(folder) / "report.json").read_text()) for folder in (out, again)
    )
    for key in ("settings", "columns", "counts", "write"):
        assert first[key] == second[key]
    assert first["counts"]["bridges"] > 0


def test_the_report_of_a_run_that_keeps_no_copy_repeats_it(tmp_path):
    path, out, again = (str(tmp_path / name) for name in ("in.parquet", "out", "again"))
    pq.write_table(
        pa.table({"text": [NOTICE, NOTICE, f"A {NOTICE}"], "site": ["a", "b", "a"]}), path
    )
    options = [
        "--keep",
        "none",
        "--within",
        "site",
        "--min-share",
        "0.5",
        "--min-length",
        "70",
        "-o",
        out,
    ]
    for arguments in ([path, *options], ["--config", f"{out}/report.json", "-o", again]):
        assert CliRunner().invoke(cli, ["passages", *arguments]).exit_code == 0
    assert pq.read_table(f"{again}/passages.parquet")["row"].to_pylist() == [0, 2]


def test_the_decision_is_written_alone_if_asked(tmp_path):
    page = f"<html><body><p>{NOTICE}</p></body></html>"
    (tmp_path / "a.html").write_text(page)
    (tmp_path / "b.html").write_text(page)
    result = neardup.remove_passages(
        tmp_path, min_length=LENGTH, output=tmp_path.with_suffix(".out"), write="removed"
    )
    assert not (result.output / "kept").exists()
    assert pq.read_table(result.output / "passages.parquet").equals(result.passages)
    assert result.passages.num_rows == 1


def test_what_many_pages_of_a_site_have_is_cut_from_all_of_them_and_from_no_other_site():
    chance = random.Random(3)
    menus = [f"Menu {site}: home, news, sports, weather, about us, help, log in. " for site in "AB"]
    sites, texts = zip(
        *(
            (site, menus[site] * (page < 4) + words(chance, 20))
            for page in range(10)
            for site in range(2)
        ),
        strict=True,
    )
    quote = words(chance, 20)
    source = pa.table(
        {"text": [text + quote * (row in (3, 4)) for row, text in enumerate(texts)], "site": sites}
    )
    result = neardup.remove_passages(
        source, keep="none", within="site", min_share=0.4, min_length=50
    )
    assert result.kept["text"].to_pylist() == [
        text.replace(menus[site], "")
        for text, site in zip(source["text"].to_pylist(), sites, strict=True)
    ]
    assert result.passages["occurrences"].to_pylist() == [4] * 8
    assert result.passages["kept_id"].null_count == 8
    assert not neardup.remove_passages(
        source, keep="none", within="site", min_share=0.5, min_length=50
    ).passages.num_rows
    everywhere = neardup.remove_passages(source, keep="none", min_length=50)
    assert [text.count(quote) for text in everywhere.kept["text"].to_pylist()] == [0] * 20


MENU = "Home | News | About us | Log in"


def test_whole_units_are_cut_and_parts_of_them_stay():
    texts = [
        f"{MENU}\nOne, two.\n{NOTICE}\n",
        f"\n{MENU} \r\n\r\nThree.\n{NOTICE}Four.",
        f"{MENU}, all of it\n{MENU}",
    ]
    result = neardup.remove_passages(texts, unit="line")
    assert result.kept["text"].to_pylist() == [
        texts[0],
        f"\nThree.\n{NOTICE}Four.",
        f"{MENU}, all of it\n",
    ]
    rows = [
        (row["id"], row["start"], row["end"], row["kept_start"])
        for row in result.passages.to_pylist()
    ]
    assert rows == [("1", 1, 1 + len(MENU) + 5, 0), ("2", 43, 43 + len(MENU), 0)]
    assert result.passages["occurrences"].to_pylist() == [3, 3]
    sentences = neardup.remove_passages(texts, unit="sentence")
    assert sentences.kept["text"].to_pylist()[1] == "\nThree.\nDéjà vu? Four."
    paragraphs = [f"{NOTICE}\n{MENU}\n \n{NOTICE}", f"Five.\n\n{NOTICE}\n{MENU}\n\n\nSix."]
    assert neardup.remove_passages(paragraphs, unit="paragraph").kept["text"].to_pylist() == [
        f"{NOTICE}\n{MENU}\n \n{NOTICE}",
        "Five.\n\nSix.",
    ]


def test_normalised_units_are_equal_if_their_words_are():
    texts = [
        MENU,
        "home, news; ABOUT us.\tLog in!\n",
        "Ｈome News about us log in out",
        "--------------------\n" * 2,
    ]
    kept = neardup.remove_passages(texts, unit="line", normalise=True).kept["text"].to_pylist()
    assert kept == [MENU, *texts[2:]]
    spelled = ["Ελληνική γλώσσα και άλλα\n", "ΕΛΛΗΝΙΚΗ ΓΛΩΣΣΑ ΚΑΙ ΑΛΛΑ\nnew"]
    folded = neardup.remove_passages(spelled, unit="line", normalise=True, fold=["greek"])
    assert folded.kept["text"].to_pylist() == [spelled[0], "new"]
    assert neardup.remove_passages(texts, unit="line").kept["text"].to_pylist() == [
        *texts[:3],
        texts[3][:21],
    ]


def test_short_units_stay_unless_a_shorter_length_is_asked_for():
    texts = ["Yes.\nHome\n", "Yes.\nNo.\n"]
    assert neardup.remove_passages(texts, unit="line").kept["text"].to_pylist() == texts
    assert neardup.remove_passages(texts, unit="line", min_length=1).kept["text"].to_pylist() == [
        texts[0],
        "No.\n",
    ]
    assert (
        neardup.remove_passages(["", None, "\n \n"], unit="line", min_length=1).passages.num_rows
        == 0
    )


def test_units_that_many_pages_of_a_site_have_are_cut_from_all_of_them():
    sites = ["a", "a", "b", "b", "a"]
    texts = [f"{MENU}\nPage {row}" if row != 3 else "Page 3" for row in range(5)]
    source = pa.table({"text": texts, "site": sites})
    result = neardup.remove_passages(source, unit="line", keep="none", within="site", min_share=0.6)
    assert result.kept["text"].to_pylist() == [
        "Page 0",
        "Page 1",
        f"{MENU}\nPage 2",
        "Page 3",
        "Page 4",
    ]
    assert result.passages["occurrences"].to_pylist() == [3, 3, 3]
    assert result.passages["kept_id"].null_count == 3


def test_units_of_an_earlier_collection_are_cut_and_what_loses_too_much_is_dropped_and_no_source():
    old = [f"Old.\n{MENU}"]
    lost = "This line is lost with its document."
    new = [f"{MENU}\n{lost}\n", f"{MENU}\n{lost} Or not.\n{lost}\n{'Long. ' * 30}"]
    result = neardup.remove_passages(new, against=old, unit="line", max_loss=0.4)
    assert result.kept["text"].to_pylist() == [f"{lost} Or not.\n{lost}\n{'Long. ' * 30}"]
    assert result.passages["kept_role"].to_pylist() == ["against", "against"]


@pytest.mark.parametrize("options", [[], ["--keep", "none", "--normalise"]], ids=str)
def test_the_report_of_a_run_over_units_repeats_it(tmp_path, options):
    path, out, again = (str(tmp_path / name) for name in ("in.parquet", "out", "again"))
    pq.write_table(table_of([f"{MENU}\nA", f"B\n{MENU}", MENU.upper()]), path)
    for arguments in (
        [path, "--unit", "line", *options, "--write", "marked", "-o", out],
        ["--config", f"{out}/report.json", "-o", again],
    ):
        assert CliRunner().invoke(cli, ["passages", *arguments]).exit_code == 0
    tables = [pq.read_table(f"{folder}/passages.parquet") for folder in (out, again)]
    assert tables[0].equals(tables[1])
    assert tables[0].num_rows == (3 if options else 1)
    page = (tmp_path / "out" / "report.html").read_text()
    assert (
        "Lines of at least 20 characters are compared; two are equal if their "
        f"{'words' if options else 'ch'}"
    ) in page
    kept = pq.read_table(f"{out}/kept/in.parquet")["text"].to_pylist()
    assert kept[1] == f"B\n⟦{MENU}⟧"


def test_documents_are_written_whole_with_their_passages_marked_if_asked(tmp_path):
    path = tmp_path / "in.jsonl"
    texts = [f"A {NOTICE}", f"B {NOTICE}C", NOTICE]
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    out = tmp_path / "out"
    result = neardup.remove_passages(path, min_length=LENGTH, output=out, write="marked")
    marked = [
        json.loads(line)["text"] for line in (out / "kept" / "in.jsonl").read_text().splitlines()
    ]
    assert marked == [texts[0], f"B ⟦{NOTICE}⟧C", f"⟦{NOTICE}⟧"]
    assert result.report["counts"]["dropped"] == 1


def test_threads_batches_and_repeated_runs_do_not_change_a_byte(tmp_path):
    path = tmp_path / "in.parquet"
    pq.write_table(table_of(corpus(150, 5)), path, row_group_size=20)
    outputs = []
    for threads, batch_rows in ((1, 1000), (2, 1), (7, 13), (2, 1000)):
        out = tmp_path / f"{threads}-{batch_rows}"
        neardup.remove_passages(
            path, min_length=LENGTH, output=out, threads=threads, batch_rows=batch_rows
        )
        outputs.append(
            ((out / "passages.parquet").read_bytes(), pq.read_table(out / "kept" / "in.parquet"))
        )
    assert all(output == outputs[0] for output in outputs)
    assert pq.read_table(tmp_path / "1-1000" / "passages.parquet").num_rows > 50


def test_boilerplate_of_generated_sites_is_cut_and_nothing_else():
    chance = random.Random(4)
    texts = []
    wanted = []
    for site in range(12):
        head = words(chance, 30 + site)
        foot = words(chance, 40)
        for page in range(20):
            own = words(chance, 100 + chance.randrange(100))
            texts.append(head + own + foot)
            wanted.append(own if page else texts[-1])
    result = neardup.remove_passages(texts)
    assert result.kept["text"].to_pylist() == wanted
    share = 1 - sum(map(len, wanted)) / sum(map(len, texts))
    assert 0.25 < share < 0.4
    assert result.report["counts"]["characters"] == sum(map(len, texts)) - sum(map(len, wanted))


@pytest.mark.parametrize(
    ("source", "options", "error", "says"),
    [
        ([NOTICE], {"min_length": 39}, SettingError, "min_length"),
        (
            [NOTICE],
            {"bridge": 200},
            SettingError,
            "bridge must be less than min_length: got bridge=200",
        ),
        (
            [NOTICE],
            {"min_length": 0, "unit": "line"},
            SettingError,
            "min_length must be a whole number of 1 or more",
        ),
        (
            [NOTICE],
            {"unit": "page"},
            SettingError,
            "unit must be one of 'paragraph', 'line', 'sentence'",
        ),
        ([NOTICE], {"normalise": True}, SettingError, "normalise needs unit"),
        ([NOTICE], {"unit": "line", "fold": "greek"}, SettingError, "fold needs normalise"),
        ([NOTICE], {"unit": "line", "bridge": 1}, SettingError, "bridge has no meaning with unit"),
        (
            [NOTICE],
            {"unit": "line", "cut_at": "line"},
            SettingError,
            "cut_at has no meaning with unit",
        ),
        ([NOTICE], {"min_share": 0.5}, SettingError, "min_share needs keep='none'"),
        ([NOTICE], {"within": "site"}, SettingError, "within needs keep='none'"),
        (
            [NOTICE],
            {"keep": "none", "against": [NOTICE]},
            SettingError,
            "against needs keep='first'",
        ),
        ([NOTICE], {"max_loss": 1.5}, SettingError, "max_loss"),
        ([NOTICE], {"cut_at": "page"}, SettingError, "cut_at"),
        ([NOTICE], {"write": "removed"}, SettingError, "output folder"),
        ([NOTICE], {"resume": True}, SettingError, "output folder"),
        (
            pa.table({"title": ["a"], "text": ["b"]}),
            {"text_column": ["title", "text"]},
            OutputError,
            "one text column",
        ),
        (pa.table({"text": ["a"]}), {"text_column": "body"}, ColumnError, "'body'"),
    ],
)
def test_errors_name_what_was_wrong(source, options, error, says):
    with pytest.raises(error, match=says):
        neardup.remove_passages(source, **options)


def page_file(folder):
    path = folder / "a.html"
    path.write_text(f"<p>{NOTICE}</p>" * 2)
    return path


def page_table(_):
    return pa.table({"HTML": [f"<p>{NOTICE}</p>" * 2]})


def file_of_pages(folder):
    path = folder / "a.parquet"
    pq.write_table(page_table(folder), path)
    return path


def archive(_):
    return EXAMPLES / "crawl.warc.gz"


@pytest.mark.parametrize("source", [page_file, page_table, file_of_pages, archive])
def test_web_pages_cannot_be_written_back(tmp_path, source):
    pages = source(tmp_path)
    with pytest.raises(OutputError, match=r"cannot be cut from .*: its documents are web pages"):
        neardup.remove_passages(pages, min_length=LENGTH, output=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_output_that_exists_is_not_overwritten(tmp_path):
    neardup.remove_passages([NOTICE], output=tmp_path / "out")
    with pytest.raises(OutputError, match="exists"):
        neardup.remove_passages([NOTICE], output=tmp_path / "out")
    neardup.remove_passages([NOTICE], output=tmp_path / "out", overwrite=True)
    with pytest.raises(OutputError, match="only neardup dedup writes to standard output"):
        neardup.remove_passages([NOTICE], output="-")


def test_the_report_shows_hostile_passages_as_text(tmp_path, browser: Browser):
    text = HOSTILE.replace("\ud800", "") * 3
    neardup.remove_passages([text, f"Again: {text}"], min_length=LENGTH, output=tmp_path / "out")
    browser.show(tmp_path / "out" / "report.html")
    assert browser.run("document.images.length") == 0
    assert browser.run("document.title") != "pwned"
    browser.run("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    assert "<script>document.title='pwned'</script>" in browser.run(
        "document.querySelector('.pairs').innerText"
    )
    assert browser.errors == []


_KILLED_RUN = """
import os, signal, sys
import neardup
class Killer:
    left = None
    def begin(self, stage, total):
        if stage == sys.argv[3]: self.left = int(sys.argv[4])
    def advance(self, documents, num_bytes):
        if self.left is not None:
            self.left -= documents
            if self.left <= 0: os.kill(os.getpid(), signal.SIGKILL)
    def end(self, stage, seconds): pass
neardup.remove_passages(sys.argv[1], min_length=60, output=sys.argv[2], batch_rows=3, threads=2, resume=True,
                        progress=Killer(), **eval(sys.argv[5]))
"""  # noqa: E501


STAGES = ["read", "propose", "decide", "write"]


@pytest.mark.parametrize(
    ("stages", "kills", "options"),
    [
        pytest.param(["decide"], [250], {}, marks=pytest.mark.slow),
        pytest.param(STAGES, [1, 250, 590], {}, marks=pytest.mark.slow),
        pytest.param(
            STAGES, [1, 250, 590], {"unit": "sentence", "normalise": True}, marks=pytest.mark.slow
        ),
    ],
    ids=["one", "each", "units"],
)
def test_a_run_that_is_killed_in_a_stage_resumes_to_the_same_answer(
    tmp_path, stages, kills, options
):
    path = tmp_path / "in.parquet"
    out = tmp_path / "out"
    pq.write_table(table_of(corpus(600, 6)), path, row_group_size=50)
    expected = neardup.remove_passages(
        path, min_length=LENGTH, output=tmp_path / "expected", **options
    )
    assert expected.passages.num_rows > (20 if options else 200)
    for stage in stages:
        for after in kills:
            command = [
                sys.executable,
                "-c",
                _KILLED_RUN,
                str(path),
                str(out),
                stage,
                str(after),
                str(options),
            ]
            assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
            assert not out.exists()
        with pytest.raises(ResumeError, match="a different run"):
            neardup.remove_passages(path, min_length=LENGTH + 1, output=out, resume=True, **options)
        result = neardup.remove_passages(
            path, min_length=LENGTH, output=out, resume=True, overwrite=True, **options
        )
        assert result.report["counts"] == expected.report["counts"]
        assert (out / "passages.parquet").read_bytes() == (
            tmp_path / "expected" / "passages.parquet"
        ).read_bytes()
        assert pq.read_table(out / "kept").equals(pq.read_table(tmp_path / "expected" / "kept"))
        out.rename(tmp_path / stage)


def test_passages_of_notebooks_are_found_and_not_cut(tmp_path):
    book = {"cells": [{"cell_type": "code", "source": NOTICE}]}
    folder = tmp_path / "books"
    output = tmp_path / "out"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.ipynb").write_text(json.dumps(book))
    with pytest.raises(
        OutputError, match=r"cannot be cut from .*a.ipynb: its documents are notebooks"
    ):
        neardup.remove_passages(folder, min_length=40, output=output)
    with pytest.raises(
        OutputError, match=r"cannot be cut from .*a.ipynb: its documents are notebooks"
    ):
        neardup.dedup(folder, passages=40, output=output)
    found = neardup.remove_passages(folder, min_length=40, output=output, write="removed")
    assert found.passages.num_rows == 1
