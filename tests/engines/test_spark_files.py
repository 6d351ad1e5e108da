"""A run over files on Spark writes what a local run writes: kept files byte for byte, and
removed.parquet.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import neardup
import servers
from neardup.errors import ClusterError, ColumnError, InputError, OutputError, SettingError
from neardup.formats.reading import Task
from neardup.output.job import Job
from neardup.runs.directory import OutputDirectory
from neardup.runs.run import Inputs, tasks_of
from neardup.verify.measured import hamming_distance
from reference.corpora import random_texts
from reference.places import REPOSITORY, SHARED_DATA
from spark_session import IGNORED, require_spark

require_spark()
from neardup.engines.spark.output import PartSizes, Written, place_kept, write_parts  # noqa: E402

pytestmark = [pytest.mark.filterwarnings(IGNORED), pytest.mark.slow]

EXAMPLES = REPOSITORY / "examples" / "data"
DATA = REPOSITORY / "tests" / "data"
MORE = os.environ.get("NEARDUP_SPARK_SETS") == "all"  # both methods on each set of the shared data
CASES = {
    "texts of many formats": (
        [EXAMPLES / "licenses.parquet", EXAMPLES / "poems.jsonl.zst", DATA / "zh_ts.jsonl.gz"],
        {},
    ),
    "an earlier collection": (
        EXAMPLES / "terms-new.jsonl.zst",
        {"against": EXAMPLES / "terms-old.jsonl.zst"},
    ),
    "licences by simhash": (
        DATA / "en_licenses.jsonl.gz",
        {"method": "simhash", "max_distance": 6},
    ),
    "poems by longest": (DATA / "zh_poetry.jsonl.gz", {"keep": "longest", "threshold": 0.6}),
    "laws in clusters": (DATA / "zh_laws.jsonl.gz", {"linkage": "connected", "threshold": 0.5}),
    "pages by structure": (EXAMPLES / "pages", {"method": "structure"}),
    "pages by both": (EXAMPLES / "pages", {"method": "page"}),
    "a crawl by content": (EXAMPLES / "crawl.warc.gz", {"method": "content"}),
    "documents, mail and PDF": ([EXAMPLES / "contract", DATA / "office" / "contract.*"], {}),
    "chats by their questions": (
        [DATA / "formats" / "chats.parquet", DATA / "formats" / "chats.jsonl"],
        {"text_column": "messages[].content", "roles": "user"},
    ),
    "crowded clusters": (
        DATA / "en_licenses.jsonl.gz",
        {
            "linkage": "connected",
            "threshold": 0.5,
            "max_bucket_size": 2,
            "against": EXAMPLES / "licenses.parquet",
        },
    ),
}


on_workers = partial(neardup.dedup, engine="spark", tables=False)


def files_below(folder: Path) -> dict[str, bytes]:
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }


def others_below(folder: Path) -> dict[str, bytes]:
    """Return the files of an output: kept documents, rejected rows, tables of the rule; but neither
    reports nor removed.parquet, whose row groups differ.
    """
    own = {"report.json", "report.html", "removed.parquet"}
    return {name: content for name, content in files_below(folder).items() if name not in own}


def compare(spark, tmp_path: Path, source, options: dict) -> dict:
    """Run both engines; return the report of Spark, after everything else was found equal."""
    named = [str(path) for path in source] if isinstance(source, list) else str(source)
    options = {
        name: str(value) if isinstance(value, Path) else value for name, value in options.items()
    }
    report = on_workers(named, output=tmp_path / "spark", **options).report
    local = neardup.dedup(named, output=tmp_path / "local", **options)
    found, expected = (
        pq.read_table(tmp_path / engine / "removed.parquet") for engine in ("spark", "local")
    )
    assert found.schema == expected.schema
    assert found.equals(expected)
    assert others_below(tmp_path / "spark") == others_below(tmp_path / "local")
    assert json.loads((tmp_path / "spark" / "report.json").read_text()) == report
    equal = (
        "inputs",
        "incomplete",
        "unreadable",
        "bound",
        "recall_sample",
        "cluster_sizes",
        "similarities",
        "distances",
    )
    assert report.keys() - {"engine"} == local.report.keys()
    for part in (
        *equal,
        "scheme",
        "settings",
        "warnings",
        "by_value",
        "bytes",
        "source_bytes",
        "removed_bytes",
    ):
        assert report[part] == local.report[part], part
    # Sums of floats: the pairs of a document come in another order.
    assert report["recall"] == (
        local.report["recall"] and pytest.approx(local.report["recall"], rel=1e-12, abs=0)
    )
    for count in set(report["counts"]) - {
        "compared",
        "collisions",
    }:  # Spark does not know beforehand what is kept
        assert report["counts"][count] == local.report["counts"][count], count
    return report


@pytest.mark.parametrize("similarity", ["jaccard", "containment"])
@pytest.mark.parametrize("linkage", ["sieve", "connected"])
def test_spark_stores_nothing_after_a_run(spark, tmp_path, similarity, linkage):
    options = {"method": neardup.MinHash(threshold=0.6, similarity=similarity), "linkage": linkage}
    table = pa.table({"text": [text or "" for text in random_texts(5, 60)]})
    pq.write_table(table, tmp_path / "in.parquet")
    cache = spark._jsparkSession.sharedState().cacheManager()
    cache.clearCache()
    for output in (None, tmp_path / "out"):
        result = neardup.dedup(
            str(tmp_path / "in.parquet"), engine="spark", output=output, **options
        )
        assert result.report["counts"]["removed"] > 0
        assert cache.isEmpty()


@pytest.mark.parametrize("name", CASES)
def test_files_on_spark_give_the_folder_of_a_local_run(spark, tmp_path, name):
    source, options = CASES[name]
    removed = compare(spark, tmp_path, source, options)["counts"]["removed"]
    assert removed or name == "pages by both"  # pages of one template there have different texts


@pytest.mark.parametrize(
    "name", ["texts of many formats", "licences by simhash", "crowded clusters"]
)
def test_a_run_of_more_documents_than_the_driver_collects_gives_the_same(
    spark, tmp_path, monkeypatch, name
):
    monkeypatch.setattr("neardup.engines.spark.pipeline.DRIVER_DOCUMENTS", 0)
    source, options = CASES[name]
    monkeypatch.setattr(
        "neardup.engines.spark.engine.find_here", lambda *_, **__: pytest.fail("the driver decides")
    )
    assert compare(spark, tmp_path, source, options)["counts"]["removed"]


@pytest.mark.parametrize("num_removed", ["some", "none"])
def test_counts_by_value_need_no_documents_on_the_driver(spark, tmp_path, monkeypatch, num_removed):
    monkeypatch.setattr("neardup.engines.spark.pipeline.DRIVER_DOCUMENTS", 0)
    texts = random_texts(23, 120)
    if num_removed == "none":
        texts = [f"one{n} two{n} three{n} four{n} five{n}" for n in range(120)]
    columns = {"text": pa.array(texts, pa.string()), "site": ["a", None, "b", "c"] * 30}
    pq.write_table(pa.table(columns), tmp_path / "in.parquet")
    options = {"threshold": 0.5, "count_by": "site"}
    report = compare(spark, tmp_path, tmp_path / "in.parquet", options)
    assert report["by_value"]["num_values"] == 4
    assert bool(report["counts"]["removed"]) == (num_removed == "some")


@pytest.mark.parametrize("method", ["minhash", "simhash"])
def test_generated_texts_in_shuffled_files_give_the_folder_of_a_local_run(spark, tmp_path, method):
    texts = random_texts(9, 240)
    files = []
    for number in random.Random(9).sample(range(8), 8):
        files.append(tmp_path / f"{number}.parquet")
        pq.write_table(pa.table({"text": pa.array(texts[number::8], pa.string())}), files[-1])
    options = {"threshold": 0.5} if method == "minhash" else {"max_distance": 12}
    assert compare(spark, tmp_path, files, {"method": method, **options})["counts"]["removed"] > 40


def files_of_groups(folder: Path) -> list[Path]:
    """Write three files of texts, some without features and some copies, with values and ranks."""
    draw = random.Random(17)
    texts = random_texts(17, 240)
    files = []
    for number in range(3):
        rows = [
            {
                "text": text,
                "site": draw.choice([None, "", "a", "b"]),
                "repository": str(draw.randrange(40)),
                "year": draw.choice([1, 2]),
                "rank": draw.random(),
            }
            for text in texts[number::3]
        ]
        files.append(folder / f"{number}.jsonl")
        files[-1].write_text("".join(json.dumps(row) + "\n" for row in rows))
    return files


@pytest.mark.parametrize("count_by", [None, "year"])
def test_groups_keys_and_counts_of_files_give_the_folder_of_a_local_run(spark, tmp_path, count_by):
    files = files_of_groups(tmp_path)
    options = {
        "threshold": 0.5,
        "within": "site",
        "count_by": count_by,
        "keep": "min:year,source,max:rank",
    }
    report = compare(spark, tmp_path, files[1:], options | {"against": files[0]})
    assert report["by_value"]["column"] == (count_by or "site")
    assert report["counts"]["removed"] > 10


GROUPS = {"group_by": "repository", "group_share": 0.3}
RULES = {
    "groups": GROUPS,
    "groups of full buckets": GROUPS | {"max_bucket_size": 1, "keep": "longest"},
    "groups beside an earlier collection": GROUPS
    | {"max_bucket_size": 1, "keep": "max:rank", "against": 0},
    "three of a cluster": {"keep": "longest:3"},
    "three of full buckets": {"keep": "last:3", "max_bucket_size": 1, "against": 0},
    "two by several keys": {"keep": "max:rank,longest:2", "max_bucket_size": 1},
    "chains of contained texts in full buckets": {
        "method": neardup.MinHash(ngram=1, threshold=0.6, similarity="containment"),
        "linkage": "connected",
        "max_bucket_size": 3,
        "against": 0,
    },
    "none": {"keep": "none", "against": 0},
    "none of full buckets": {"keep": "none", "max_bucket_size": 1},
    "a sample": {"recall_sample": 60, "within": "year", "against": 0},
    "all as a sample": {
        "recall_sample": 1000,
        "method": neardup.MinHash(threshold=0.25, recall=0.5),
    },
}


@pytest.mark.parametrize("max_bucket_size", [1, 4, 1000])
def test_workers_connect_contained_texts_as_a_local_run(
    spark, tmp_path, monkeypatch, max_bucket_size
):
    monkeypatch.setattr("neardup.engines.spark.pipeline.DRIVER_DOCUMENTS", 0)
    texts = ["fox", "fox dog", "fox", *random_texts(4, 60)]
    pq.write_table(pa.table({"text": pa.array(texts, pa.string())}), tmp_path / "in.parquet")
    options = {
        "method": neardup.MinHash(ngram=1, threshold=0.6, similarity="containment"),
        "linkage": "connected",
        "max_bucket_size": max_bucket_size,
    }
    report = compare(spark, tmp_path, tmp_path / "in.parquet", options)
    assert report["counts"]["removed"] > 10


@pytest.mark.parametrize("name", RULES)
def test_every_rule_gives_the_folder_of_a_local_run(spark, tmp_path, name):
    files = files_of_groups(tmp_path)
    options = {"threshold": 0.5} | RULES[name]
    if "method" in options:
        del options["threshold"]
    if "against" in options:
        options["against"] = files.pop(options["against"])
    report = compare(spark, tmp_path, files, options)
    assert report["counts"]["removed"] > 5
    assert report["counts"]["without_features"] > 0
    if options.get("recall_sample"):
        assert report["recall_sample"]["pairs"] > 0
    if options.get("max_bucket_size"):
        assert report["bound"]["documents"] > 0


def near_of_one_another() -> list[str]:
    """Return three texts: the first is within the distance of both others, and these are not of
    each other.
    """
    drawn = random.Random(5)
    words = [f"word{number}" for number in range(400)]
    base = [drawn.choice(words) for _ in range(40)]
    texts = [base]
    for _ in range(3000):
        changed = list(base)
        for _ in range(drawn.choice([1, 1, 2])):
            changed[drawn.randrange(40)] = drawn.choice(words)
        texts.append(changed)
    joined = [" ".join(text) for text in texts]
    values = neardup.sign(joined, method=neardup.SimHash()).values.reshape(len(joined), -1)[:, 0]
    near = [
        row
        for row in range(1, len(texts))
        if 0 < hamming_distance(int(values[0]), int(values[row])) <= 3
    ]
    left, right = next(
        pair
        for pair in combinations(near, 2)
        if hamming_distance(*(int(values[row]) for row in pair)) > 3
    )
    return [joined[0], joined[left], joined[right]]


def test_copies_look_up_no_buckets_when_groups_are_decided_about(spark, tmp_path):
    """A copy of r, after x, would find x in a bucket that lists x, and r would then remove x."""
    a, z, x = near_of_one_another()
    r = " ".join(reversed(a.split()))  # other words in a row, the same fingerprint
    rest = [" ".join(f"own{row}x{number}" for number in range(30)) for row in range(12)]
    texts = [z, a, r, *rest[:6], x, r, *rest[6:]]
    pq.write_table(
        pa.table({"text": texts, "g": [*"ZA", *"R" * 7, "X", *"C" * 7]}), tmp_path / "in.parquet"
    )
    options = {
        "method": neardup.SimHash(),
        "group_by": "g",
        "group_share": 0.9,
        "max_bucket_size": 1,
    }
    report = compare(spark, tmp_path, tmp_path / "in.parquet", options)
    assert report["groups"]["removed"] == 1


@pytest.mark.parametrize("rule", [{"linkage": "connected"}, {"group_by": "g"}])
def test_hidden_documents_of_an_earlier_collection_are_counted(spark, tmp_path, rule):
    """Texts of the earlier collection share full buckets, although few are duplicates."""
    drawn = random.Random(0)
    common = [f"word{number}" for number in range(30)]
    old = []
    for _ in range(8):
        words = list(common)
        for _ in range(drawn.randint(2, 6)):
            words[drawn.randrange(30)] = f"own{drawn.randrange(1000)}"
        old.append(" ".join(words))
    new = [" ".join(f"new{row}x{number}" for number in range(30)) for row in range(4)]
    for name, texts in (("old", old), ("new", new)):
        pq.write_table(
            pa.table({"text": texts, "g": ["a"] * len(texts)}), tmp_path / f"{name}.parquet"
        )
    method = neardup.MinHash(threshold=0.8, ngram=1)
    options = {"against": tmp_path / "old.parquet", "max_bucket_size": 1, "method": method, **rule}
    report = compare(spark, tmp_path, tmp_path / "new.parquet", options)
    assert report["bound"]["documents"] > 0


def test_spark_stores_nothing_while_the_output_is_written(spark, tmp_path, monkeypatch):
    cache = spark._jsparkSession.sharedState().cacheManager()
    cache.clearCache()
    pq.write_table(pa.table({"text": random_texts(5, 60)}), tmp_path / "in.parquet")
    seen = []
    write = Job._write
    monkeypatch.setattr(Job, "_write", lambda *given: (seen.append(cache.isEmpty()), write(*given)))
    neardup.dedup(str(tmp_path / "in.parquet"), engine="spark", output=tmp_path / "out")
    assert seen == [True]


@pytest.mark.parametrize("tables", [True, False])
def test_spark_stores_nothing_after_a_run_that_failed(spark, tmp_path, monkeypatch, tables):
    def fail(*_given):
        raise neardup.InputError("pairs cannot be measured")

    cache = spark._jsparkSession.sharedState().cacheManager()
    cache.clearCache()
    monkeypatch.setattr("neardup.engines.spark.pipeline.Run._choose_cells", fail)
    pq.write_table(pa.table({"text": random_texts(5, 60)}), tmp_path / "in.parquet")
    with pytest.raises(neardup.InputError, match=r"^pairs cannot be measured"):
        neardup.dedup(
            str(tmp_path / "in.parquet"), engine="spark", output=tmp_path / "out", tables=tables
        )
    assert cache.isEmpty()


@pytest.mark.parametrize("tables", [True, False])
def test_other_limits_give_the_rows_of_a_local_run(spark, tmp_path, tables):
    files = files_of_groups(tmp_path)
    source = [str(file) for file in files[1:]]
    against = str(files[0])
    options = {
        "threshold": 0.5,
        "keep": "longest:2",
        "max_bucket_size": 1,
        "against": against,
        "rethreshold": True,
    }
    results = [
        neardup.dedup(source, engine=engine, tables=tables, output=tmp_path / engine, **options)
        for engine in ("spark", "local")
    ]
    for threshold in (0.6, 0.8):
        found, expected = (result.rethreshold(threshold=threshold) for result in results)
        assert len(expected.removed)
        assert found.removed.equals(expected.removed)
        assert (found.mask == expected.mask).all()
        for part in ("inputs", "cluster_sizes", "similarities", "warnings"):
            assert found.report[part] == expected.report[part], part


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("group_by", "repository"),
        ("keep", "longest:2"),
        ("recall_sample", 9),
        ("rethreshold", True),
        ("sources", "input"),
        ("dates", "year"),
    ],
)
def test_more_documents_than_the_driver_collects_are_refused_what_is_decided_there(
    spark, tmp_path, monkeypatch, option, value
):
    monkeypatch.setattr("neardup.engines.spark.pipeline.DRIVER_DOCUMENTS", 100)
    files = [str(file) for file in files_of_groups(tmp_path)]
    with pytest.raises(SettingError) as caught:
        on_workers(files, output=tmp_path / "out", **{option: value})
    message = str(caught.value)
    assert message.startswith(f"{option} must be ")
    assert "on Spark with 240 documents and " in message
    assert "of which the driver collects 100 documents and 10,000,000 pairs" in message
    assert f"got {value!r}" in message
    assert "decide about fewer documents at once" in message
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        f"{number}.jsonl" for number in range(3)
    ]


SETS = ["en_licenses", "html_sites", "short_pairs", "zh_laws"]


@pytest.mark.parametrize("name", SETS)
def test_shared_data_gives_the_folder_of_a_local_run(spark, tmp_path, name):
    files = sorted(
        file
        for kind in ("gz", "zst", "parquet")
        for file in (SHARED_DATA / name).rglob(f"*.{kind}")
    )
    if not files:
        pytest.skip(f"no shared data: {SHARED_DATA.name}/{name} is not there")
    methods = ["page", "simhash"] if name == "html_sites" else ["minhash", "simhash"]
    columns = {"text_column": ["text_a", "text_b"]} if name == "short_pairs" else {}
    for method in methods if MORE else methods[SETS.index(name) % 2 :][:1]:
        compare(spark, tmp_path / method, files, {"method": method, **columns})


def test_bulk_data_gives_the_rows_of_a_local_run(spark, tmp_path):
    shards = sorted(
        Path(os.environ.get("NEARDUP_BULK", REPOSITORY / "out" / "bulk")).glob("bulk-*.jsonl")
    )
    if not shards:
        pytest.skip("no bulk data: make it with shared/data/make_bulk.py --out out/bulk --mb 500")
    sys.path.insert(0, str(REPOSITORY / "tools"))
    from measure_spark import make_corpus

    make_corpus(shards, 200_000, tmp_path / "corpus")
    assert compare(spark, tmp_path, tmp_path / "corpus", {})["counts"]["removed"] > 50_000


def test_ids_of_several_columns_are_those_of_a_local_run(spark, tmp_path):
    texts = random_texts(3, 60)
    rows = {
        "repo": [f"r:{n % 7}" for n in range(60)],
        "number": list(range(60)),
        "text": pa.array(texts, pa.string()),
    }
    pq.write_table(pa.table(rows), tmp_path / "in.parquet")
    options = {"id_column": ["repo", "number"], "threshold": 0.5}
    report = compare(spark, tmp_path, tmp_path / "in.parquet", options)
    assert report["counts"]["removed"]
    assert report["columns"]["id"] == ["repo", "number"]


def test_damaged_rows_are_rejected_as_locally(spark, tmp_path):
    source = tmp_path / "rows.jsonl"
    source.write_text('{"text": "a b c d e f"}\nnot json\n{"text": "A b c d e f."}\n{"text": 5}\n')
    report = compare(spark, tmp_path, source, {"max_unreadable": 1})
    assert (report["counts"]["rejected"], report["unreadable"]["rows"], report["incomplete"]) == (
        2,
        2,
        None,
    )
    report = compare(spark, tmp_path, source, {"on_error": "skip", "overwrite": True})
    assert "2 of 4 rows of the file cannot be read" in report["incomplete"]["message"]
    with pytest.raises(InputError, match=r"rows\.jsonl.*on_error='stop'"):
        on_workers(str(source), output=tmp_path / "stopped", on_error="stop")
    assert not (tmp_path / "stopped").exists()
    assert not (tmp_path / "stopped.partial").exists()


def test_paths_may_have_any_characters(spark, tmp_path):
    folder = tmp_path / "a b+c%41漢#[x]?"
    (folder / "scratch 漢").mkdir(parents=True)
    source = folder / "licences 1+1%.parquet"
    source.write_bytes((EXAMPLES / "licenses.parquet").read_bytes())
    assert compare(spark, folder, source, {})["counts"]["removed"]
    options = {"write": "removed", "scratch": folder / "scratch 漢"}
    on_workers(str(source), output=folder / "more", **options)
    names = ["licences 1+1%.parquet", "local", "more", "scratch 漢", "spark"]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert list((folder / "scratch 漢").iterdir()) == []
    assert list(tmp_path.iterdir()) == [folder]


class Watched:
    """Progress that notes the number of partitions at the begin of each stage, and whether tasks
    were counted.
    """

    def __init__(self, spark):
        self.spark = spark
        self.partitions = {}
        self.counted = []

    def begin(self, stage: str, total_documents: int | None) -> None:
        self.partitions[stage] = self.spark.conf.get(PARTITIONS)

    def advance(self, documents: int, num_bytes: int) -> None:
        pass

    def end(self, stage: str, seconds: float) -> None:
        pass

    def tasks(self, done: int, total: int) -> None:
        self.counted.append((done, total))


PARTITIONS = "spark.sql.shuffle.partitions"


def test_a_run_names_its_jobs_counts_their_tasks_and_chooses_the_partitions(
    spark, tmp_path, monkeypatch
):
    monkeypatch.setattr("neardup.engines.spark.session._POLL_S", 0.02)
    jobs = spark.sparkContext._jsc.sc().statusStore()
    before = jobs.jobsList(None).size()
    given = spark.conf.get(PARTITIONS)
    context = spark.sparkContext
    watched = Watched(spark)
    try:
        spark.conf.unset(PARTITIONS)
        context.setJobDescription("mine")
        on_workers(str(EXAMPLES / "licenses.parquet"), output=tmp_path / "out", progress=watched)
        assert PARTITIONS not in spark.conf.getAll
        assert context.getLocalProperty("spark.job.description") == "mine"
        assert context.getLocalProperty("spark.jobGroup.id") is None
    finally:
        spark.conf.set(PARTITIONS, given)
        context.setJobDescription(None)
    cores = str(context.defaultParallelism)
    stages = ["describe", "propose", "confirm", "decide", "write", "report"]
    assert watched.partitions == dict.fromkeys(stages, cores) | {"describe": "200"}
    assert any(total > done for done, total in watched.counted)
    found = jobs.jobsList(None)
    names = {
        found.apply(place).description().get() for place in range(found.size() - before)
    }  # the last come first
    # The texts of the report come with the tasks that write.
    assert names == {f"neardup: {stage}" for stage in stages if stage != "report"}
    on_workers(str(EXAMPLES / "licenses.parquet"), output=tmp_path / "more", progress=watched)
    assert set(watched.partitions.values()) == {given}
    assert spark.conf.get(PARTITIONS) == given


def test_the_number_of_partitions_grows_with_the_bytes_and_has_a_limit():
    from neardup.engines.spark.pipeline import fit_partitions

    assert [fit_partitions(0, cores) for cores in (2, 100)] == [2, 100]
    assert fit_partitions(1 << 30, 2) == 16
    assert fit_partitions((1 << 30) + 1, 2) == 17
    assert fit_partitions(25 * 10**9 * 4000, 500) == 64 * 500


def test_the_time_of_compilation_in_workers_is_counted(monkeypatch):
    from neardup.engines.spark import workers

    clock = iter([1.0, 3.5])
    seconds = []
    monkeypatch.setattr(workers, "compile_seconds", lambda: next(clock))
    method = SimpleNamespace(value=None)
    counter = SimpleNamespace(add=seconds.append)
    batches = workers.run_stage(iter("ab"), lambda rows, _: rows, method, counter)
    assert list(batches) == ["a", "b"]
    assert seconds == [2.5]


def test_a_source_that_is_removed_nearly_whole_is_warned_of(spark, tmp_path):
    texts = [
        f"the {word} of one long sentence that is here twenty times"
        for word in ("word", "name") * 15
    ]
    pq.write_table(pa.table({"text": texts}), tmp_path / "in.parquet")
    report = compare(spark, tmp_path, tmp_path / "in.parquet", {"lang": "zh"})
    assert any(
        warning.startswith("Nearly all documents of a source were removed")
        for warning in report["warnings"]
    )
    assert (report["lang"], report["by_value"]) == ("zh", None)


def test_a_second_run_with_the_output_of_another_is_refused_at_once(tmp_path):
    first = OutputDirectory(tmp_path / "out", overwrite=False, resume=False)
    with pytest.raises(OutputError, match="is being written by another run"):
        on_workers(str(EXAMPLES / "licenses.parquet"), output=tmp_path / "out")
    first.discard()
    assert list(tmp_path.iterdir()) == []


ATTEMPT = """
import json, os, sys, time
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
from neardup.runs.run import Inputs, tasks_of
from neardup.engines.spark.output import write_parts
from neardup.output.kept import KeptWriter

source, attempts, pause = sys.argv[1:]
write = KeptWriter.write
def write_slowly(self, *given, **added):
    write(self, *given, **added)
    print("writing", flush=True)
    sys.stdin.readline()
if pause == "pause":
    KeptWriter.write = write_slowly
tasks = SimpleNamespace(value=tasks_of(Inputs(source), "first"))
removed = pa.array([[1, 2]], pa.list_(pa.int64()))
edits = {"part": pa.array([0]), "removed": removed, "added": pa.nulls(1, pa.binary())}
for batch in write_parts([pa.record_batch(edits)], tasks, Path(attempts), None):
    print(json.dumps(batch.to_pylist()[0]), flush=True)
"""


@pytest.mark.parametrize("counts", ["the first", "the second"])
@pytest.mark.parametrize("ends", ["killed", "finished"])
def test_attempts_of_a_task_that_overlap_do_not_meet(tmp_path, counts, ends):
    source = tmp_path / "rows.jsonl"
    source.write_text("".join(f'{{"text": "{number} {"a" * 1000}"}}\n' for number in range(2000)))
    output = OutputDirectory(tmp_path / "out", overwrite=False, resume=False)
    attempts = output.partial / "attempts"
    attempts.mkdir()

    def start(pause: str) -> subprocess.Popen:
        command = [sys.executable, "-c", ATTEMPT, str(source), str(attempts), pause]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def finish(process: subprocess.Popen) -> Written:
        *_, row = process.communicate("\n" * 9)[0].splitlines()
        return Written(**json.loads(row))

    slow = start("pause")
    assert slow.stdout.readline() == "writing\n"
    written = finish(start("no"))
    if ends == "killed":
        slow.kill()
        slow.communicate()
    else:
        other = finish(slow)
        written = other if counts == "the second" else written
    tasks = tasks_of(Inputs(str(source)), "first")
    place_kept([written], tasks, PartSizes(np.array([2000]), removed=[2]), output)
    kept = (output.result / "kept" / "rows.jsonl").read_text().splitlines()
    assert [json.loads(line)["text"].split()[0] for line in kept] == [
        "0",
        *map(str, range(3, 2000)),
    ]
    output.discard()


class Attempts(NamedTuple):
    """An output in which a worker has written the file `one` for an input of one line."""

    tasks: list[Task]
    output: OutputDirectory


SIZES = PartSizes(np.array([3]), removed=[1])
WRITTEN = Written(part=0, file="one", documents=3, rows=2, bytes=1, texts=[])


@pytest.fixture
def attempts(tmp_path: Path) -> Attempts:
    source = tmp_path / "rows.jsonl"
    source.write_text('{"text": "a"}\n')
    output = OutputDirectory(tmp_path / "out", overwrite=False, resume=False)
    folder = output.partial / "attempts"
    folder.mkdir()
    (folder / "one").write_text("a")
    return Attempts(tasks_of(Inputs(str(source)), "first"), output)


def test_the_file_of_an_attempt_is_moved_to_the_kept_files(attempts):
    place_kept([WRITTEN], attempts.tasks, SIZES, attempts.output)
    assert files_below(attempts.output.result) == {"kept/rows.jsonl": b"a"}


@pytest.mark.parametrize(
    "change",
    [{"documents": 2}, {"rows": 3}, {"part": 1}],
    ids=["fewer documents", "more rows", "another part"],
)
def test_an_input_that_changed_before_it_was_written_ends_the_run(attempts, change):
    with pytest.raises(InputError, match=r"rows\.jsonl changed during the run"):
        place_kept([WRITTEN._replace(**change)], attempts.tasks, SIZES, attempts.output)


@pytest.mark.parametrize(
    "change", [{"bytes": 2}, {"file": "another"}], ids=["another size", "no such file"]
)
def test_a_file_that_is_not_as_its_worker_wrote_it_ends_the_run(attempts, change):
    with pytest.raises(
        OutputError, match=r"has no file kept/rows\.jsonl of \d bytes, as a worker wrote it"
    ):
        place_kept([WRITTEN._replace(**change)], attempts.tasks, SIZES, attempts.output)


def test_a_worker_without_the_folder_of_the_output_ends_the_run(attempts, tmp_path):
    attempts.output.discard()
    removed = pa.array([[]], pa.list_(pa.int64()))
    edits = {"part": pa.array([0]), "removed": removed, "added": pa.nulls(1, pa.binary())}
    batch = pa.record_batch(edits)
    tasks = SimpleNamespace(value=attempts.tasks)
    folder = attempts.output.partial / "attempts"
    with pytest.raises(
        OutputError, match=r"The worker .* has no folder .*attempts\. Use an output that"
    ):
        list(write_parts([batch], tasks, folder, None))
    assert list(tmp_path.iterdir()) == [tmp_path / "rows.jsonl"]


def test_a_missing_column_and_an_existing_output_are_refused_before_anything_runs(tmp_path):
    with pytest.raises(ColumnError, match=r"No column 'texts' in .*licenses.parquet"):
        on_workers(str(EXAMPLES / "licenses.parquet"), output=tmp_path / "out", text_column="texts")
    (tmp_path / "there").mkdir()
    with pytest.raises(OutputError, match="already exists"):
        on_workers(str(EXAMPLES / "licenses.parquet"), output=tmp_path / "there")


def test_a_machine_without_a_fit_java_is_told_which_one(tmp_path, monkeypatch):
    from neardup.engines.spark.session import check_java

    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(
        ClusterError, match=r"needs Java 17 or later: JAVA_HOME=.* has none\. Install it"
    ):
        check_java()
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_402\"' >&2\n")
    program.chmod(0o755)
    with pytest.raises(ClusterError, match=r"needs Java 17 or later: got Java 8 \(.*/bin/java\)"):
        check_java()
    program.write_text("of another processor")
    with pytest.raises(
        ClusterError, match=r"later: .*/bin/java cannot be executed: Exec format error\. Install"
    ):
        check_java()


def test_the_session_of_another_thread_keeps_its_settings(spark):
    from neardup.engines.spark.session import open_session

    names = ("spark.sql.adaptive.enabled", "spark.sql.codegen.wholeStage")
    before = {name: spark.conf.get(name) for name in names}
    try:
        for name in names:
            spark.conf.set(name, "true")
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(open_session).result() is spark
        assert [spark.conf.get(name) for name in names] == ["true", "true"]
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def test_a_worker_that_is_killed_ends_the_run_with_a_sentence(spark):
    from neardup.engines.spark.session import translated

    def die(batches):
        os._exit(3)
        yield from batches

    for act in ("count", "toArrow", "localCheckpoint"):
        frame = spark.range(4, numPartitions=1).mapInArrow(die, "id long")
        with (
            pytest.raises(ClusterError, match=r"failed on the cluster: .*worker exited unexpected"),
            translated(),
        ):
            getattr(frame, act)()


def test_a_run_on_spark_writes_the_folder_of_a_local_run_to_s3(spark, tmp_path):
    (tmp_path / "shared").mkdir()
    source = [str(EXAMPLES / "licenses.parquet"), str(EXAMPLES / "poems.jsonl.zst")]
    with servers.S3(servers.s3_program()) as server:
        # Workers have another environment than this process, so the address has all that their
        # client needs.
        options = f"?endpoint_override=127.0.0.1:{server.port}&scheme=http&allow_delayed_open=true&region=us-east-1"  # noqa: E501
        storage = pafs.S3FileSystem(
            access_key="key",
            secret_key="secret",
            endpoint_override=f"http://127.0.0.1:{server.port}",
            region="us-east-1",
            allow_bucket_creation=True,
        )
        storage.create_dir("bucket")
        on_workers(
            source,
            output=f"s3a://key:secret@bucket/out{options}",
            scratch=tmp_path / "shared",
            threshold=0.7,
        )
        neardup.dedup(source, output=tmp_path / "local", threshold=0.7)
        found = storage.get_file_info(pafs.FileSelector("bucket/out", recursive=True))
        contents = {
            info.path: storage.open_input_file(info.path).read() for info in found if info.is_file
        }
        local = files_below(tmp_path / "local")
        assert {path.removeprefix("bucket/out/") for path in contents} == set(local)
        for name in ("kept/licenses.parquet", "kept/poems.jsonl.zst", "rejected.jsonl"):
            assert contents[f"bucket/out/{name}"] == local[name]
        assert pq.read_table(pa.BufferReader(contents["bucket/out/removed.parquet"])).equals(
            pq.read_table(tmp_path / "local" / "removed.parquet")
        )
        assert list((tmp_path / "shared").iterdir()) == []
        with pytest.raises(OutputError, match="already exists"):
            on_workers(source, output=f"s3a://key:secret@bucket/out{options}")
        with pytest.raises(
            ClusterError, match="S3AFileSystem"
        ):  # this Spark has no client of S3, and no scratch is shared
            on_workers(source, output=f"s3a://key:secret@bucket/other{options}")
        assert storage.get_file_info("bucket/other").type == pafs.FileType.NotFound
