"""dedup, cluster and find_pairs give on Spark what they give on this machine: every table and every
file.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup
from neardup.formats import registry
from reference.corpora import random_texts
from reference.office_files import pdf
from reference.places import REPOSITORY
from spark_session import IGNORED, require_spark

require_spark()
pytestmark = [pytest.mark.filterwarnings(IGNORED), pytest.mark.slow]

EXAMPLES = REPOSITORY / "examples" / "data"
DATA = REPOSITORY / "tests" / "data"
NEW = str(EXAMPLES / "terms-new.jsonl.zst")
OLD = str(EXAMPLES / "terms-old.jsonl.zst")
SOURCES = [str(EXAMPLES / "licenses.parquet"), str(DATA / "en_licenses.jsonl.gz")]
TEXTS = [
    "the quick brown fox jumps over the lazy dog",
    "A quick brown fox jumps over the lazy dog",
    "another text",
]
LANGUAGES = pa.table(
    {
        "text": TEXTS * 8,
        "language": ["en", "en", None, "zh"] * 6,
        "site": ["x", "y", "z"] * 8,
        "length": [*range(12)] * 2,
    }
)
# The second text contains the third, which is a copy of the first.
CONTAINED = ["fox", "fox dog", "fox", *(text or "" for text in random_texts(12, 80))]
CASES = {
    "an earlier collection": (NEW, {"against": OLD}),
    "several inputs": (SOURCES, {"threshold": 0.6, "keep": "last"}),
    "fingerprints": (SOURCES, {"method": "simhash", "max_distance": 6}),
    "groups and counts": (
        LANGUAGES,
        {"within": "language", "count_by": "site", "keep": "min:length,source,last"},
    ),
    "chains": (SOURCES, {"linkage": "connected", "threshold": 0.5}),
    "chains of contained texts": (
        CONTAINED,
        {
            "method": neardup.MinHash(ngram=1, threshold=0.6, similarity="containment"),
            "linkage": "connected",
        },
    ),
}


def files_below(folder: Path) -> dict[str, bytes]:
    reports = {"report.json", "report.html"}
    files = (file for file in folder.rglob("*") if file.is_file() and file.name not in reports)
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def same_counts(spark: dict, local: dict) -> None:
    for count in set(local["counts"]) - {"compared", "collisions"}:
        assert spark["counts"][count] == local["counts"][count], count


@pytest.mark.parametrize("name", CASES)
def test_the_tables_of_dedup_are_those_of_a_local_run(spark, name):
    source, options = CASES[name]
    found, expected = (
        neardup.dedup(source, engine=engine, **options) for engine in ("spark", "local")
    )
    assert found.removed.equals(expected.removed)
    names = found.pairs.column_names
    order = [(name, "ascending") for name in names]
    assert found.pairs.sort_by(order).equals(expected.pairs.sort_by(order))
    assert (found.mask == expected.mask).all()
    assert found.kept.equals(expected.kept)
    same_counts(found.report, expected.report)
    assert found.report["by_value"] == expected.report["by_value"]


@pytest.mark.parametrize("write", ["mask", "ids", "annotated"])
def test_every_output_of_dedup_is_that_of_a_local_run(spark, tmp_path, write):
    for engine in ("spark", "local"):
        neardup.dedup(
            NEW, against=OLD, write=write, engine=engine, output=tmp_path / engine, tables=False
        )
    assert files_below(tmp_path / "spark") == files_below(tmp_path / "local")


@pytest.mark.parametrize("name", CASES)
def test_clusters_are_those_of_a_local_run(spark, tmp_path, name):
    source, options = CASES[name]
    options = {option: value for option, value in options.items() if option != "count_by"}
    for engine in ("spark", "local"):
        neardup.cluster(source, engine=engine, output=tmp_path / engine, **options)
    assert files_below(tmp_path / "spark") == files_below(tmp_path / "local")


@pytest.mark.parametrize(
    ("source", "options"),
    [
        (SOURCES, {"method": "minhash"}),
        (NEW, {"method": neardup.SimHash(weights="tfidf")}),
        (LANGUAGES, {"method": "simhash", "id_column": "language"}),
        (["", *TEXTS], {"method": "simhash", "with_hex": True}),
    ],
    ids=["signatures", "weighted", "table", "texts"],
)
def test_sketches_are_those_of_a_local_run(spark, tmp_path, source, options):
    files = [tmp_path / "spark.parquet", tmp_path / "local.parquet"]
    found, expected = (
        neardup.sign(source, engine=file.stem, output=file, **options).report for file in files
    )
    assert pq.read_table(files[0]).equals(pq.read_table(files[1]))
    assert (found["counts"], found["warnings"]) == (expected["counts"], expected["warnings"])


def test_sketches_in_memory_and_rejected_rows_are_those_of_a_local_run(spark, tmp_path):
    source = tmp_path / "rows.jsonl"
    source.write_text('{"text": "a b c d e f"}\nnot json\n{"text": ""}\n{"text": 5}\n')
    options = {"method": "simhash", "max_unreadable": 1}
    found, expected = (
        neardup.sign(str(source), engine=engine, **options) for engine in ("spark", "local")
    )
    assert found.to_table().equals(expected.to_table())
    assert found.report is not None
    assert expected.report is not None
    assert found.report["rejected"] == expected.report["rejected"]
    assert found.report["counts"] == expected.report["counts"]


def test_sets_of_tokens_are_signed_on_this_machine_only(spark):
    with pytest.raises(
        neardup.InputError, match="On Spark, sign reads documents: got a column of large_list"
    ):
        neardup.sign([["a", "b"]], engine="spark")


@pytest.mark.skipif(not registry.FORMATS["pdf"].is_installed, reason="without pypdfium2")
@pytest.mark.parametrize(
    "report",
    [
        lambda folder: neardup.dedup(folder, engine="spark").report,
        lambda folder: neardup.sign(folder, engine="spark").report,
        lambda folder: neardup.find_contamination([TEXTS[0]], folder, engine="spark").report,
    ],
    ids=["dedup", "sign", "contamination"],
)
def test_files_without_a_text_layer_are_named(spark, tmp_path, report):
    (tmp_path / "a.txt").write_text(TEXTS[0])
    (tmp_path / "empty.txt").touch()
    (tmp_path / "scan.pdf").write_bytes(pdf(""))
    (warning,) = [line for line in report(tmp_path)["warnings"] if "text layer" in line]
    assert f"in 1 PDF file: {tmp_path / 'scan.pdf'}." in warning


@pytest.mark.parametrize("method", ["minhash", "simhash"])
def test_pairs_are_those_of_a_local_run(spark, tmp_path, method):
    for engine in ("spark", "local"):
        neardup.find_pairs(
            SOURCES, method=method, engine=engine, output=tmp_path / f"{engine}.parquet"
        )
    found, expected = (
        pq.read_table(tmp_path / f"{engine}.parquet") for engine in ("spark", "local")
    )
    assert len(expected)
    order = [(name, "ascending") for name in expected.column_names]
    assert found.sort_by(order).equals(expected.sort_by(order))
    assert found.equals(expected)


COUNTED = {
    "words": (SOURCES, neardup.SimHash()),
    "structure of pages": (str(EXAMPLES / "pages"), "page"),
    "table": (LANGUAGES, neardup.MinHash(ngram=2)),
}


@pytest.mark.parametrize("name", COUNTED)
def test_document_frequencies_are_those_of_a_local_run(spark, name):
    source, method = COUNTED[name]
    found, expected = (
        neardup.document_frequencies(source, method=method, engine=engine)
        for engine in ("spark", "local")
    )
    assert len(expected.hashes) >= 10
    assert found.describe() == expected.describe()
    assert (found.hashes == expected.hashes).all()
    assert (found.counts == expected.counts).all()


def test_rows_that_cannot_be_counted_are_those_of_a_local_run(spark, tmp_path):
    sources = []
    for number, line in enumerate(['{"text": "a b"}', "not json", '{"text": 5}']):
        sources.append(str(tmp_path / f"{number}.jsonl"))
        Path(sources[-1]).write_text(f'{line}\n{{"text": "a c"}}\n' * 2)
    found, expected = (
        neardup.document_frequencies(sources, engine=engine, max_unreadable=1)
        for engine in ("spark", "local")
    )
    assert len(expected.rejected) == 4
    assert found.rejected == expected.rejected
    assert found.describe() == expected.describe()


def test_document_frequencies_of_a_frame_are_those_of_a_table(spark):
    texts = pa.table({"text": [*TEXTS, None, ""], "row": range(5)})
    found = neardup.spark.document_frequencies(spark.createDataFrame(texts))
    expected = neardup.document_frequencies(texts)
    assert expected.num_documents == 5
    assert found.describe() == expected.describe()
