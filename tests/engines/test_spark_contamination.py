"""A search for items on Spark gives what it gives on this machine: tables, reports and copies."""

from __future__ import annotations

import json
import random
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup
from neardup.engines.capabilities import SPARK
from neardup.errors import SettingError
from spark_session import IGNORED, require_spark

require_spark()
from neardup.engines.spark.contamination import SparkItems  # noqa: E402

pytestmark = [pytest.mark.filterwarnings(IGNORED), pytest.mark.slow]

TIMES = {"timings", "seconds", "compile_seconds", "megabytes_per_second", "documents_per_second"}
MACHINE = TIMES | {"peak_memory_bytes"}
WORDS = [f"word{number}" for number in range(300)]


def items_of(draw: random.Random) -> list[str]:
    """Return items of 4 to 40 words."""
    return [" ".join(draw.choices(WORDS, k=draw.randrange(4, 40))) for _ in range(40)]


def document_of(draw: random.Random, items: list[str]) -> str:
    """Return a document, half of them around one of a few items."""
    words = draw.choices(WORDS, k=60)
    if draw.random() < 0.5:
        place = draw.randrange(60)
        words[place:place] = draw.choice(items).split()
    return " ".join(words)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write items, and files of a corpus: with and without ids, with rows that cannot be read."""
    folder = tmp_path_factory.mktemp("corpus")
    draw = random.Random(1)
    items = items_of(draw)
    lines = "".join(json.dumps({"question": item}) + "\n" for item in items)
    (folder / "items.jsonl").write_text(lines)
    (folder / "train").mkdir()
    for number in range(4):
        rows = {"text": [document_of(draw, items[:20]) for _ in range(150)]}
        if number % 2:
            rows["id"] = [f"{number}-{row}" for row in range(150)]
        pq.write_table(pa.table(rows), folder / "train" / f"{number}.parquet")
    (folder / "train" / "x.jsonl").write_text('{"text": "a b c"}\nnot json\n{"text": ""}\n' * 3)
    return folder


def report_of(result: neardup.Contamination) -> dict:
    """Return a report without times and memory."""
    return {name: value for name, value in result.report.items() if name not in MACHINE}


def files_below(folder: Path) -> dict[str, bytes]:
    """Return the files of an output, except its report."""
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and file.name not in ("report.json", "report.html")
    }


@pytest.mark.parametrize("max_documents", [2, 100])
@pytest.mark.parametrize("write", ["none", "items", "corpus"])
def test_a_search_gives_the_folder_of_a_local_run(spark, corpus, tmp_path, write, max_documents):
    found, expected = (
        neardup.find_contamination(
            str(corpus / "items.jsonl"),
            str(corpus / "train"),
            engine=engine,
            output=tmp_path / engine,
            write=write,
            max_documents=max_documents,
            max_unreadable=1,
        )
        for engine in ("spark", "local")
    )
    assert expected.report["counts"]["contaminated"] > 5
    assert expected.report["counts"]["rejected"] == 3
    assert expected.boilerplate.num_rows > 5
    assert report_of(found) == report_of(expected)
    for name in ("hits", "items", "boilerplate"):
        assert getattr(found, name).equals(getattr(expected, name))
    assert files_below(tmp_path / "spark") == files_below(tmp_path / "local")


def test_answers_markup_and_structure_are_found_as_on_this_machine(spark, tmp_path):
    body = (
        "total = [0]\nfor each in rows:\n    if each > 0:\n        total.append(each + total[-1])\n"
    )
    code = f"def sums(rows):\n{body}return total[1:], len(rows)"
    items = pa.table(
        {
            "question": [
                "Is a < b, and c > d, so that e & f are equal?",
                code,
                "Why is it so, and how is it known?",
            ],
            "answer": ["Yes", None, " ".join(WORDS[:40])],
        }
    )
    pages = [
        "Page. Is a &lt; b, and c &gt; d, so that e &amp; f are equal? Yes.",
        code.replace("rows", "some").replace("total", "sum_of_all").replace("each", "one"),
        f"The answer: {' '.join(WORDS[:40])}",
        "Nothing here.",
    ] * 2
    pq.write_table(pa.table({"text": pages}), tmp_path / "pages.parquet")
    found, expected = (
        neardup.find_contamination(
            items, str(tmp_path / "pages.parquet"), engine=engine, structure=True
        )
        for engine in ("spark", "local")
    )
    assert set(expected.hits["rule"].to_pylist()) == {"perfect", "structure", "answer"}
    assert found.hits.equals(expected.hits)
    assert found.items.equals(expected.items)
    assert report_of(found) == report_of(expected)


def test_the_inputs_of_items_are_searched_for_the_items_of_each_other(spark, corpus):
    splits = [str(corpus / "train" / f"{number}.parquet") for number in range(3)]
    found, expected = (
        neardup.find_contamination(splits, engine=engine, common=1000, threshold=0.1)
        for engine in ("spark", "local")
    )
    assert expected.hits.num_rows > 10
    assert found.hits.equals(expected.hits)
    assert found.report["between"] == expected.report["between"]


def test_an_index_is_searched_on_this_machine_only(spark):
    limit = next(limit for limit in SPARK.limits if limit.option == "corpus")
    with (
        neardup.Index.create("memory:", storage="text") as index,
        pytest.raises(SettingError) as caught,
    ):
        neardup.find_contamination(["a b c d e f g"], index, engine="spark")
    assert caught.value.args[0] == SPARK.refusal(limit, "an index")


def test_a_search_stores_nothing_in_the_session(spark, corpus):
    cache = spark._jsparkSession.sharedState().cacheManager()
    cache.clearCache()
    neardup.find_contamination(
        str(corpus / "items.jsonl"), str(corpus / "train"), engine="spark", max_unreadable=1
    )
    assert cache.isEmpty()


@pytest.mark.parametrize(
    ("has_begun", "is_published", "deletes"),
    [(True, False, True), (False, False, False), (True, True, False)],
    ids=["begun", "refused before it begins", "published"],
)
def test_an_error_deletes_what_workers_copied_to_remote_storage(has_begun, is_published, deletes):
    deleted = []
    remote = SimpleNamespace(delete=lambda: deleted.append("all"))
    folder = SimpleNamespace(is_published=is_published, remote=remote)
    search = SparkItems(SimpleNamespace(folder=folder), None, has_begun=has_begun)
    with pytest.raises(ZeroDivisionError), search:
        raise ZeroDivisionError
    assert deleted == ["all"] * deletes
