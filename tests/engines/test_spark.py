"""The engine on Spark decides, row for row, as the local engine does."""

from __future__ import annotations

import os
import random
from decimal import Decimal
from operator import methodcaller

import numpy as np
import pyarrow as pa
import pytest

import neardup
from neardup.errors import ColumnError, SettingError
from reference.corpora import random_texts
from reference.places import TESTS
from spark_session import IGNORED, frame_of, removed_by_spark, removed_locally, require_spark

require_spark()
pytestmark = pytest.mark.filterwarnings(IGNORED)

METHODS = {
    "bands": neardup.MinHash(ngram=2, threshold=0.5, recall=0.9),
    "cosine": neardup.MinHash(ngram=1, threshold=0.6, similarity="cosine"),
    "rarity": neardup.MinHash(ngram=1, threshold=0.5, boost_rare=True),
    "above chance": neardup.MinHash(ngram=1, threshold=0.2, above_chance=True),
    "containment": neardup.MinHash(ngram=1, threshold=0.6, similarity="containment"),
    "simhash": neardup.SimHash(max_distance=12),
    "hamming": neardup.SimHash(max_distance=12, confirm="hamming"),
    "tfidf": neardup.SimHash(max_distance=12, weights="tfidf"),
    "wide": neardup.SimHash(bits=128, max_distance=16, ngram=2, threshold=0.3),
}
# Positions, copies and crowded buckets are where engines could differ.
SELECTIONS = (
    {},
    {"keep": "last", "max_bucket_size": 2},
    {"keep": "longest", "max_bucket_size": 1},
    {"linkage": "connected", "max_bucket_size": 3},
)


def both(spark, texts, method, num_partitions, against=(), **selection) -> tuple[list, list]:
    """Return what both engines remove."""
    ids = list(range(1000, 1000 + len(against)))
    ours = neardup.spark.dedup(
        frame_of(spark, texts, num_partitions),
        id_column="id",
        method=method,
        against=frame_of(spark, list(against), num_partitions, 1000) if against else None,
        **selection,
    )
    table = pa.table({"id": list(range(len(texts))), "text": pa.array(texts, pa.string())})
    earlier = (
        pa.table({"id": ids, "text": pa.array(list(against), pa.string())}) if against else None
    )
    expected = neardup.dedup(table, method=method, against=earlier, id_column="id", **selection)
    assert sorted(row["id"] for row in ours.kept.toArrow().to_pylist()) == [
        int(i) for i in expected.kept["id"].to_pylist()
    ]
    return removed_by_spark(ours, method), removed_locally(expected, method)


def random_pages(seed: int) -> list[str | None]:
    """Return pages of few templates around random texts."""
    tags = random.Random(seed)
    templates = [
        "<div><p>{}</p></div>",
        "<table><tr><td>{}</td><td>x</td></tr></table>",
        "<ul><li>{}</li><li>b</li></ul>",
    ]
    return [tags.choice(templates).format(text or "") for text in random_texts(seed, 80)]


SOURCES = {
    "minhash": (METHODS["bands"], random_texts(1)),
    "simhash": (METHODS["simhash"], random_texts(2)),
    "pages": (neardup.method("page", threshold=0.5), random_pages(3)),
}


@pytest.mark.slow
@pytest.mark.parametrize("num_partitions", [1, 16])
@pytest.mark.parametrize("name", SOURCES)
def test_the_partitions_of_a_frame_change_nothing(spark, name, num_partitions):
    method, texts = SOURCES[name]
    found, expected = both(spark, texts, method, num_partitions)
    assert len(expected) > 10
    assert found == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_every_method_gives_the_same_rows(spark, name):
    selection = SELECTIONS[list(METHODS).index(name) % len(SELECTIONS)]
    against = random_texts(7, 25) if "linkage" not in selection else ()
    found, expected = both(spark, random_texts(len(name)), METHODS[name], 3, against, **selection)
    assert expected
    assert found == expected


@pytest.mark.slow
@pytest.mark.parametrize("selection", SELECTIONS, ids=str)
def test_every_selection_gives_the_same_rows(spark, selection):
    found, expected = both(
        spark, random_texts(30), METHODS["bands"], 3, random_texts(31, 25), **selection
    )
    assert expected
    assert found == expected


COPIES = (
    {"keep": "longest:3", "max_bucket_size": 1},
    {"keep": "none"},
    {"keep": "last:2", "linkage": "connected"},
)


@pytest.mark.slow
@pytest.mark.parametrize("selection", COPIES, ids=str)
def test_several_copies_or_none_stay_as_locally(spark, selection):
    found, expected = both(
        spark, random_texts(30), METHODS["bands"], 3, random_texts(31, 25), **selection
    )
    assert expected
    assert found == expected


def test_more_rows_than_the_driver_collects_keep_one_copy(spark, monkeypatch):
    monkeypatch.setattr("neardup.engines.spark.pipeline.DRIVER_DOCUMENTS", 10)
    frame = frame_of(spark, ["one text of some words", "one text of some words"] * 6, 2)
    with pytest.raises(
        neardup.SettingError, match=r"keep must be .* on Spark with 12 documents .*: got 'first:2'"
    ):
        neardup.spark.dedup(frame, id_column="id", keep="first:2")
    with pytest.raises(neardup.SettingError, match="cluster keeps one document of each cluster"):
        neardup.spark.cluster(frame, id_column="id", keep="first:2")


def table_of_groups(texts: list[str | None], seed: int) -> pa.Table:
    """Return the texts with columns of values, some null or empty, and of ranks with many ties."""
    draw = np.random.default_rng(seed)
    sites = [(None, "", "a", "b", "c")[number] for number in draw.integers(0, 5, len(texts))]
    ranks = [None if number == 3 else float(number) for number in draw.integers(0, 4, len(texts))]
    columns = {
        "id": list(range(len(texts))),
        "text": pa.array(texts, pa.string()),
        "site": sites,
        "rank": ranks,
    }
    return pa.table(columns | {"year": draw.integers(0, 3, len(texts))})


GROUPS = {
    "bands": {"within": "site", "keep": "max:rank,min:year,last"},
    "containment": {"within": "year", "keep": "shortest,max:rank", "linkage": "connected"},
    "simhash": {"within": "site", "keep": "min:rank,longest", "max_bucket_size": 2},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", GROUPS)
def test_groups_and_several_keys_give_the_same_rows(spark, name):
    table = table_of_groups(random_texts(41), 41)
    method = METHODS[name]
    frame = spark.createDataFrame(table).repartition(3, "text")
    found = removed_by_spark(
        neardup.spark.dedup(frame, id_column="id", method=method, **GROUPS[name]), method
    )
    assert found
    assert found == removed_locally(
        neardup.dedup(table, id_column="id", method=method, **GROUPS[name]), method
    )


@pytest.mark.slow
def test_a_frame_has_no_order_of_inputs_and_hashes_alone_no_groups(spark):
    frame = spark.createDataFrame(table_of_groups(["a b c"], 1))
    with pytest.raises(
        neardup.SettingError, match=r"keep must be .* with a DataFrame: got 'max:rank,source'"
    ):
        neardup.spark.dedup(frame, id_column="id", keep="max:rank,source")
    with pytest.raises(neardup.SettingError, match="within needs a method"):
        neardup.spark.dedup(frame, id_column="id", within="site", method=METHODS["hamming"])
    with pytest.raises(ColumnError, match="No column 'lang' in the DataFrame"):
        neardup.spark.dedup(frame, id_column="id", within="lang")


MEMBERS = int(
    os.environ.get("NEARDUP_BUCKET_MEMBERS", "100000")
)  # a million was measured: docs/spark.md


@pytest.mark.slow
def test_a_bucket_with_very_many_members_is_compared_with_its_first_members_only(spark):
    from pyspark.sql import functions as F

    random_word = F.conv(F.xxhash64("id", F.lit(1)).cast("string"), 10, 36)
    texts = spark.range(0, MEMBERS, 1, 8).select(
        "id", F.concat(F.lit("of one template with the word "), random_word).alias("text")
    )
    method = neardup.MinHash(
        ngram=1, threshold=0.9, num_bands=1, rows_per_band=1
    )  # one of few words is the key of all
    found = neardup.spark.dedup(texts, id_column="id", method=method, max_bucket_size=4)
    assert found.removed.count() == 0
    assert found.kept.count() == MEMBERS


@pytest.mark.slow
def test_rounds_on_the_cluster_decide_as_the_driver_does(spark, monkeypatch):
    from neardup.engines.spark.decide import first_of_clusters, removed_by_sieve
    from neardup.engines.spark.source import NEW

    ends = np.sort(np.random.default_rng(3).integers(0, 150, (220, 2)), axis=1)
    chain = np.stack(
        [np.arange(200, 212), np.arange(201, 213)], axis=1
    )  # a round for every second document
    ends = np.concatenate([ends[ends[:, 0] < ends[:, 1]], chain])
    positions = np.where(ends < 20, ends, ends + NEW)  # the first are of an earlier corpus
    table = pa.table({"left": positions[:, 0], "right": positions[:, 1]})
    pairs = spark.createDataFrame(table)

    def rows(frame, *columns: str) -> list[tuple]:
        return sorted(tuple(row.values()) for row in frame.select(*columns).toArrow().to_pylist())

    persist = methodcaller("persist")
    checkpoint = methodcaller("localCheckpoint")
    expected, no_rounds = removed_by_sieve(pairs, checkpoint)
    clusters = rows(first_of_clusters(pairs, persist, checkpoint), "left", "right")
    monkeypatch.setattr("neardup.engines.spark.decide.DRIVER_PAIRS", 0)
    removed, rounds = removed_by_sieve(pairs, checkpoint)
    assert rows(removed, "left") == rows(expected, "left")
    assert rounds >= 6
    assert no_rounds == 0
    assert rows(first_of_clusters(pairs, persist, checkpoint), "left", "right") == clusters


@pytest.mark.slow
@pytest.mark.parametrize("linkage", ["sieve", "connected"])
def test_a_run_that_decides_on_the_cluster_removes_the_same(spark, monkeypatch, linkage):
    monkeypatch.setattr("neardup.engines.spark.decide.DRIVER_PAIRS", 0)
    found, expected = both(
        spark, random_texts(21), METHODS["bands"], 3, random_texts(22, 20), linkage=linkage
    )
    assert found == expected


def frame_and_table(spark, texts: list[str | None]) -> tuple:
    """Return the texts with ids from 0, as a DataFrame and as a table."""
    table = pa.table({"id": range(len(texts)), "text": pa.array(texts, pa.string())})
    return frame_of(spark, texts, 3), table


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bands", "containment"])
def test_pairs_are_those_of_a_local_run(spark, name):
    frame, table = frame_and_table(spark, random_texts(11))
    options = {"id_column": "id", "method": METHODS[name], "max_bucket_size": 3}
    expected = neardup.find_pairs(table, **options).pairs.to_pylist()
    found = neardup.spark.find_pairs(frame, **options).toArrow().to_pylist()
    for row in expected:
        row.update(left_id=int(row["left_id"]), right_id=int(row["right_id"]))
    assert expected
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


@pytest.mark.slow
def test_clusters_are_those_of_a_local_run(spark):
    frame, table = frame_and_table(spark, random_texts(11))
    options = {"id_column": "id", "method": METHODS["bands"]}
    clusters = neardup.cluster(table, **options)
    found = neardup.spark.cluster(frame, **options)
    names = ["id", "size", "is_first", "first_id", "similarity", "exact"]
    assert found.documents.columns == names
    rows = clusters.documents.select(names).to_pylist()
    expected = [row | {"id": int(row["id"]), "first_id": int(row["first_id"])} for row in rows]
    assert sorted(map(repr, found.documents.toArrow().to_pylist())) == sorted(map(repr, expected))

    summary = clusters.clusters.select(["first_id", "size"]).to_pylist()
    found_summary = found.clusters.toArrow().to_pylist()
    assert [row["size"] for row in found_summary] == [row["size"] for row in summary]
    sizes = {row["first_id"]: row["size"] for row in found_summary}
    assert sizes == {int(row["first_id"]): row["size"] for row in summary}


@pytest.mark.slow
def test_fingerprints_are_those_of_a_local_run(spark):
    frame, table = frame_and_table(spark, random_texts(11))
    options = {"id_column": "id", "method": "simhash"}
    rows = neardup.spark.sign(frame, **options).toArrow().to_pylist()
    local = neardup.sign(table, **options)
    ids = map(int, local.ids.to_pylist())
    expected = dict(zip(ids, local.values.view(np.int64).tolist(), strict=True))
    assert {row["id"]: row["values"] for row in rows} == expected


@pytest.mark.slow
def test_chats_of_a_frame_are_joined_first(spark):
    from pyspark.sql import functions as F

    file = TESTS / "data/formats/chats.parquet"
    frame = spark.read.parquet(str(file))
    joined = frame.withColumn("text", F.array_join("messages.content", "\n"))
    local = neardup.dedup(file, text_column="messages[].content", threshold=0.5)
    ours = neardup.spark.dedup(joined, id_column="id", threshold=0.5)
    kept = ours.kept.drop("text").orderBy("id").toArrow().to_pylist()
    assert kept == local.kept.to_pylist()
    assert len(kept) < frame.count()


@pytest.mark.slow
def test_a_frame_of_parquet_files_needs_no_ids(spark, tmp_path):
    import pyarrow.parquet as pq

    texts = random_texts(5, 60)
    for number in range(3):
        part = pa.table({"text": pa.array(texts[number * 20 : number * 20 + 20], pa.string())})
        pq.write_table(part, tmp_path / f"{number}.parquet")
    expected = neardup.dedup(
        str(tmp_path), method=METHODS["bands"], text_column="text"
    ).removed.to_pylist()
    found = (
        neardup.spark.dedup(spark.read.parquet(str(tmp_path)), method=METHODS["bands"])
        .removed.toArrow()
        .to_pylist()
    )
    rows = sorted(
        (row["id"]["file"][-9:-8], row["id"]["row"], row["kept_id"]["row"]) for row in found
    )
    assert rows == sorted(
        (row["source_file"][-9:-8], row["row"], row["kept_row"]) for row in expected
    )


@pytest.mark.slow
def test_columns_may_have_any_names(spark):
    names = ["position", "document", "_neardup_key", "a.`text`", "a.`id`", "max.`x`", "_metadata"]
    rows = [
        [1, "d", "k1", "a b c d", 7, 1.5, "m"],
        [2, "d", "k2", "a b c d", 5, 2.5, "m"],
        [3, "d", "k3", "e f", 1, 0.5, "m"],
    ]
    frame = spark.createDataFrame(rows, names)
    for id_column, kept, keep in (
        ("a.`id`", [1, 5], "first"),
        ("_neardup_key", ["k2", "k3"], "max:max.`x`"),
    ):
        found = neardup.spark.dedup(
            frame, text_column="a.`text`", id_column=id_column, method=METHODS["bands"], keep=keep
        )
        assert found.kept.columns == names
        assert sorted(row[id_column] for row in found.kept.collect()) == kept


@pytest.mark.slow
def test_a_frame_without_an_order_or_a_column_is_refused(spark):
    frame = frame_of(spark, ["a b c", "a b c"], 1)
    with pytest.raises(
        neardup.InputError, match=r"have no order: .* id_column=None\. Name a column of ids"
    ):
        neardup.spark.dedup(frame)
    with pytest.raises(ColumnError, match="No column 'body' in the DataFrame: it has 'id', 'text'"):
        neardup.spark.dedup(frame, text_column="body", id_column="id")
    with pytest.raises(
        neardup.InputError, match=r"Ids in the column 'text' must differ, .* is in 2 rows"
    ):
        neardup.spark.dedup(frame, id_column="text")


@pytest.mark.slow
def test_a_frame_that_cannot_be_read_is_refused_in_one_sentence_before_the_first_job(
    spark, monkeypatch
):
    monkeypatch.setattr(
        "neardup.engines.spark.pipeline.Run", lambda *_, **__: pytest.fail("jobs begin")
    )
    frame = spark.range(2).selectExpr(
        "id",
        "'a b' text",
        "map('a', 1) m",
        "named_struct('a', 1) s",
        "parse_json('1') v",
        "array(1) a",
        "1 number",
    )
    for name, kind in (
        ("m", "map<string,int>"),
        ("s", "struct<a:int>"),
        ("v", "variant"),
        ("a", "array<int>"),
    ):
        with pytest.raises(
            ColumnError,
            match=f"^Column '{name}' in the DataFrame holds {kind}, which cannot be the id",
        ):
            neardup.spark.dedup(frame, id_column=name)
    with pytest.raises(
        ColumnError,
        match=r"^Column 'number' .* holds int, which cannot be the text\. Cast it to one of",
    ):
        neardup.spark.dedup(frame, text_column="number", id_column="id")
    with pytest.raises(
        ColumnError, match=r"^Column 'text' .* holds string, which cannot be the rank"
    ):
        neardup.spark.dedup(frame, id_column="id", keep="max:text")
    with pytest.raises(ColumnError, match=r"^Spark cannot read a column .*ambiguous.*Rename"):
        neardup.spark.dedup(frame.selectExpr("id", "text", "'a' text"), id_column="id")
    with pytest.raises(
        neardup.InputError,
        match=r"^neardup\.spark reads a DataFrame with an end: got a streaming one",
    ):
        neardup.spark.dedup(
            spark.readStream.format("rate").load().selectExpr("value id", "'a' text"),
            id_column="id",
        )
    with pytest.raises(
        neardup.InputError,
        match=r"^neardup\.spark reads a DataFrame of Spark, .*: got builtins\.list",
    ):
        neardup.spark.find_pairs(["a"])
    with pytest.raises(neardup.InputError, match=r"^neardup\.spark reads a DataFrame of Spark, "):
        neardup.spark.dedup(None, id_column="id", sources="text")
    with pytest.raises(neardup.InputError, match=r"^text_column must be a string: got NoneType"):
        neardup.spark.document_frequencies(frame, text_column=None)
    for columns in (5, [5], []):
        with pytest.raises(ColumnError, match=r"^The name of a column must be a string: got "):
            neardup.spark.dedup(frame, id_column=columns)
    with pytest.raises(ColumnError, match=r"has a column 'Sources', and sources and dates add"):
        neardup.spark.dedup(
            frame.selectExpr("id", "text", "text Sources"), id_column="id", sources="text"
        )
    with pytest.raises(SettingError, match=r"^A signature is of one set of features"):
        neardup.spark.sign(frame, id_column="id", method="page")


EXACT_RANKS = {
    "whole": pa.array([2**53, 2**53 + 1, None, -(2**62), -(2**62) - 1], pa.int64()),
    "decimal": pa.array(
        [*map(Decimal, ["1.1", "1.1000000000000000001", "-2", "-2.0000000000000000001"]), None]
    ),
    "time": pa.array([2**60, 2**60 + 1, None, -1, -2], pa.int64()).cast(pa.timestamp("us", "UTC")),
}


@pytest.mark.parametrize("name", EXACT_RANKS)
def test_keep_compares_values_exactly(spark, name):
    ranks = EXACT_RANKS[name]
    table = pa.table(
        {"id": range(len(ranks)), "text": ["one text in five rows"] * len(ranks), "rank": ranks}
    )
    frame = spark.createDataFrame(table).repartition(2)
    for keep in ("max:rank", "min:rank,last"):
        expected = removed_locally(
            neardup.dedup(table, id_column="id", keep=keep), METHODS["bands"]
        )
        assert len(expected) == 4
        found = neardup.spark.dedup(frame, id_column="id", keep=keep)
        assert removed_by_spark(found, METHODS["bands"]) == expected


def test_several_columns_make_one_id(spark):
    columns = {
        "repo": ["a", "b:c", "b", "a"],
        "path": ["100%", "d", "c:d", "é"],
        "number": [0, 1, 2, 3],
    }
    frame = spark.createDataFrame(pa.table(columns | {"text": ["one text in four files"] * 4}))
    for names in (["repo", "path"], ["number", "repo"]):
        found = neardup.spark.dedup(frame, id_column=names)
        first, *others = sorted(
            neardup.cluster(frame.toArrow(), id_column=names).documents["id"].to_pylist()
        )
        assert removed_by_spark(found, METHODS["bands"]) == [
            (id, first, 1.0, True) for id in others
        ]
        assert found.kept.count() == 1
    with pytest.raises(
        ColumnError, match="'score' in the DataFrame holds double, which cannot be the id"
    ):
        neardup.spark.dedup(
            frame.selectExpr("*", "cast(number as double) as score"), id_column=["repo", "score"]
        )


def stored(spark) -> set[int]:
    """Return the numbers of the frames that Spark stores, including checkpoints."""
    return set(spark.sparkContext._jsc.getPersistentRDDs())


@pytest.mark.slow
@pytest.mark.parametrize("linkage", ["sieve", "connected"])
def test_rounds_on_the_cluster_leave_nothing_stored(spark, linkage, monkeypatch):
    monkeypatch.setattr("neardup.engines.spark.decide.DRIVER_PAIRS", 2)
    before = stored(spark)
    result = neardup.spark.dedup(
        frame_of(spark, random_texts(3, 60), 2),
        id_column="id",
        method=METHODS["bands"],
        linkage=linkage,
    )
    assert linkage == "connected" or result.rounds > 0
    assert stored(spark) - before
    result.unpersist()
    assert not stored(spark) - before


@pytest.mark.slow
@pytest.mark.parametrize("linkage", ["sieve", "connected"])
def test_spark_stores_the_result_of_a_frame_until_it_is_dropped(spark, linkage):
    cache = spark._jsparkSession.sharedState().cacheManager()
    cache.clearCache()
    frame = frame_of(spark, random_texts(3, 60), 2)
    options = {"id_column": "id", "method": METHODS["bands"]}
    results = {
        "dedup": neardup.spark.dedup(frame, linkage=linkage, **options),
        "cluster": neardup.spark.cluster(frame, linkage=linkage, **options),
        "find_pairs": neardup.spark.find_pairs(frame, **options),
    }
    assert cache.numCachedEntries() <= len(results)
    assert results["dedup"].removed.is_cached
    removed = results["dedup"].removed.toArrow().sort_by("id")
    for result in results.values():
        result.unpersist()
    assert cache.isEmpty()
    assert results["dedup"].removed.toArrow().sort_by("id").equals(removed)
    assert removed.num_rows > 5


def test_spark_stores_nothing_after_an_error(spark):
    cache = spark._jsparkSession.sharedState().cacheManager()
    cache.clearCache()
    frame = frame_of(spark, ["a b c", "a b c"], 1).selectExpr("1 as id", "text")
    with pytest.raises(neardup.InputError, match="must differ"):
        neardup.spark.dedup(frame, id_column="id")
    assert cache.isEmpty()
