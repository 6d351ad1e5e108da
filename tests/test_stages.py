"""The stages as functions: their composition equals the fused kernels, they run in a bare process,
and a new method needs one module.
"""

from __future__ import annotations

import ast
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup import schemas
from neardup.candidates.sorted_members import BucketPairs, Members
from neardup.decide.sieve import decide
from neardup.engines.local import searches
from neardup.methods.base import Described
from neardup.methods.registry import method_of
from reference.checks import for_every
from reference.runs import run, table_of
from reference.sources import SOURCE, nodes_of

WORDS = ["a", "b", "c", "d", "e", "tree", "漢", "!"]
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join), max_size=24)
PAGE = "<html><body><div class='{}'><p>{}</p><ul><li>x</li></ul></div></body></html>"
METHODS = {
    "bands": neardup.MinHash(ngram=2, threshold=0.5, recall=0.9),
    "one row": neardup.MinHash(ngram=1, threshold=0.3, num_bands=3, rows_per_band=1),
    "cosine": neardup.MinHash(ngram=1, threshold=0.6, similarity="cosine"),
    "boost_rare": neardup.MinHash(ngram=1, threshold=0.5, boost_rare=True),
    "above chance": neardup.MinHash(ngram=1, threshold=0.2, above_chance=True),
    "containment": neardup.MinHash(ngram=1, threshold=0.6, similarity="containment"),
    "contained above chance": neardup.MinHash(
        ngram=1, threshold=0.4, similarity="containment", above_chance=True
    ),
    "simhash": neardup.SimHash(max_distance=12),
    "hamming": neardup.SimHash(max_distance=12, confirm="hamming"),
    "wide": neardup.SimHash(bits=128, max_distance=16, ngram=2, threshold=0.3),
}
SLOW = set(METHODS) - {"bands"}
NAMES = [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in METHODS]


def both_ways(monkeypatch: pytest.MonkeyPatch, find) -> tuple:
    """Return the result of the fused kernels, and that of the composed stages."""
    fused = find()
    with monkeypatch.context() as patch:
        patch.setattr(searches, "FUSED", {})
        patch.setattr(searches, "_PAIRS_AT_ONCE", 3)
        return fused, find()


@pytest.mark.parametrize("name", NAMES)
@given(
    texts=TEXTS,
    against=st.integers(0, 4),
    max_bucket_size=st.sampled_from([1, 2, 3, None]),
    keep=st.sampled_from(["first", "last", "longest"]),
    linkage=st.sampled_from(["sieve", "connected"]),
)
def test_the_fused_kernels_equal_the_composed_stages(
    name, texts, against, max_bucket_size, keep, linkage
):
    def find() -> neardup.Deduplication:
        return run(
            texts[against:],
            METHODS[name],
            against=texts[:against],
            max_bucket_size=max_bucket_size,
            keep=keep,
            linkage=linkage,
        )

    with pytest.MonkeyPatch.context() as patch:
        fused, composed = both_ways(patch, find)
    assert composed.removed.equals(fused.removed)
    assert composed.pairs.equals(fused.pairs)
    assert composed.report["bound"] == fused.report["bound"]
    recall = composed.report["recall"]
    expected = fused.report["recall"]
    assert recall == expected or recall == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
@given(texts=TEXTS, against=st.integers(0, 4), max_bucket_size=st.integers(1, 4))
def test_clusters_of_which_full_buckets_hid_no_document_are_those_of_buckets_without_a_limit(
    name, texts, against, max_bucket_size
):
    source = table_of(texts[against:])
    known = table_of(texts[:against])

    def clusters(size: int) -> neardup.Clustering:
        options = {"method": METHODS[name], "linkage": "connected", "against": known}
        return neardup.cluster(source, max_bucket_size=size, **options)

    found = clusters(max_bucket_size)
    every = clusters(100_000)
    if found.report["bound"]["documents"] == 0:
        assert found.documents.equals(every.documents)


@pytest.mark.parametrize("name", NAMES)
@given(texts=TEXTS, max_bucket_size=st.sampled_from([1, 3, None]))
def test_all_pairs_of_the_fused_kernels_are_those_of_the_composed_stages(
    name, texts, max_bucket_size
):
    def find() -> neardup.DuplicatePairs:
        return neardup.find_pairs(
            table_of(texts), method=METHODS[name], max_bucket_size=max_bucket_size
        )

    with pytest.MonkeyPatch.context() as patch:
        fused, composed = both_ways(patch, find)
    assert composed.pairs.equals(fused.pairs)


def test_pages_that_must_agree_in_structure_too_are_decided_alike(monkeypatch):
    contents = [
        "one two three four five six seven",
        "one two three four five six eight",
        "seven of nine",
    ]
    pages = [PAGE.format(kind, content * 3) for kind in ("a", "b b", "a c") for content in contents]
    method = neardup.MinHash(html="all", min_structure=0.4, threshold=0.5, ngram=1)
    fused, composed = both_ways(monkeypatch, lambda: run(pages, method))
    assert fused.removed.num_rows > 2
    assert composed.removed.equals(fused.removed)


@given(
    pairs=st.lists(
        st.tuples(st.integers(0, 8), st.integers(0, 8), st.sampled_from([0.5, 0.75, 1.0]))
    ),
    copies=st.lists(st.integers(0, 8), min_size=9, max_size=9),
    against=st.integers(0, 3),
)
def test_decide_is_the_sieve_as_the_design_states_it(pairs, copies, against):
    representative = np.arange(9, dtype=np.uint32)
    for position, first in enumerate(copies):
        representative[position] = representative[min(first, position)]
    pairs = [
        (min(left, right), max(left, right), value) for left, right, value in pairs if left != right
    ]
    columns = list(zip(*pairs, strict=True)) or [(), (), ()]
    left, right = (np.array(column, np.uint32) for column in columns[:2])
    found = decide(left, right, np.array(columns[2], np.float64), representative, against)
    kept: dict[int, bool] = {}
    for position in range(9):
        first = int(representative[position])
        qualified = [(-value, at) for at, other, value in pairs if other == position and kept[at]]
        remover = min(qualified)[1] if qualified else None
        if first != position and kept[first]:
            remover = first
        kept[position] = position < against or remover is None
        assert found.remover[position] == (0xFFFFFFFF if kept[position] else remover)
    assert found.kept.tolist() == list(kept.values())


@pytest.mark.slow
def test_every_stage_runs_in_a_bare_process_on_what_was_pickled(tmp_path):
    texts = pa.array(["a b c d e f", "A b c d e f!", "a b c d e tree", "", None], pa.large_string())
    methods = {name: method_of(settings) for name, settings in METHODS.items()}
    (tmp_path / "in").write_bytes(pickle.dumps((methods, texts)))
    code = """
import pickle
import numpy as np
from neardup.candidates.sorted_members import propose
from neardup.methods.base import Described
methods, texts = pickle.load(open("in", "rb"))
found = {}
for name, method in methods.items():
    features = method.describe(texts)
    keys = pickle.loads(pickle.dumps(method.summarise(features)))
    features = pickle.loads(pickle.dumps(features.take(np.arange(5))))
    documents = Described(features, keys)
    candidates = propose(method.lookup, keys, np.arange(5, dtype=np.uint32), 10)
    measured = method.measure(documents, documents, candidates.left, candidates.right)
    found[name] = candidates, measured, method.is_duplicate(measured)
pickle.dump(found, open("out", "wb"))
"""
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    for name, (candidates, measured, duplicates) in pickle.loads(
        (tmp_path / "out").read_bytes()
    ).items():
        method = methods[name]
        here = Described(features := method.describe(texts), method.summarise(features))
        assert set(zip(candidates.left.tolist(), candidates.right.tolist(), strict=True)) <= {
            (0, 1),
            (0, 2),
            (1, 2),
        }
        again = method.measure(here, here, candidates.left, candidates.right)
        for measure in method.measures:
            np.testing.assert_array_equal(measured[measure.name], again[measure.name])
        assert len(duplicates) == len(candidates.left)


# What the code may not do: ask a method for its type, or name a scratch column where it is used.
def calls_of(path: Path, *names: str) -> list[ast.Call]:
    calls = nodes_of(path, ast.Call)
    return [
        call
        for call in calls
        if getattr(call.func, "id", getattr(call.func, "attr", None)) in names
    ]


TYPES = {"MinHash", "SimHash", "MinHashMethod", "SimHashMethod", "Bands", "Radius", "Samples"}
TYPES |= {"BandLookup", "DistanceLookup", "SampleLookup"}


@for_every(
    [
        path
        for path in SOURCE.rglob("*.py")
        if not {"settings", "methods", "compat"} & set(path.parts)
    ]
)
def test_nothing_outside_settings_and_methods_asks_for_the_type_of_a_method_or_a_search(path):
    # Nor has a table by such types, which asks for them as well.
    asking = [call.args[1] for call in calls_of(path, "isinstance", "issubclass")]
    asking += [key for node in nodes_of(path, ast.Dict) for key in node.keys if key is not None]
    asking += [node.cls for node in nodes_of(path, ast.MatchClass)]
    compared = [part for node in nodes_of(path, ast.Compare) for part in node.comparators]
    asking += [part for part in compared if isinstance(part, ast.Name)]
    for part in asking:
        names = {getattr(node, "id", getattr(node, "attr", None)) for node in ast.walk(part)}
        assert not names & TYPES, f"{path}:{part.lineno}"


@for_every((SOURCE / "engines" / "local").rglob("*.py"))
def test_a_scratch_column_is_never_a_literal(path):
    for call in calls_of(path, "append", "column"):
        assert not (call.args and isinstance(call.args[0], ast.Constant)), f"{path}:{call.lineno}"


# Calls of Spark that name columns in their arguments.
NAMING = """
    agg alias array bitwise_not col collect_list count count_if drop explode expr filter first get_json_object greatest
    groupBy isnull join least max min orderBy partitionBy repartition repartitionByRange select selectExpr
    sortWithinPartitions struct subtract sum withColumn withColumnRenamed withColumns xxhash64
"""  # noqa: E501
SQL = {
    "as",
    "cast",
    "count",
    "false",
    "int",
    "is",
    "left_anti",
    "left_semi",
    "not",
    "null",
    "or",
    "true",
}


def declared_columns() -> set[str]:
    measures = (schemas.SIMILARITY, schemas.DISTANCE, schemas.STRUCTURE, schemas.EXACT)
    tables = [table for table in vars(schemas).values() if isinstance(table, pa.Schema)]
    return {name for table in (*tables, schemas.confirmed_schema(measures)) for name in table.names}


def literals_of(call: ast.Call) -> list[str]:
    parts = [
        *call.args,
        *(key for part in call.args if isinstance(part, ast.Dict) for key in part.keys),
    ]
    return [
        part.value
        for part in parts
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]


@for_every([*(SOURCE / "engines" / "spark").rglob("*.py"), SOURCE / "methods" / "stages.py"])
def test_a_column_between_workers_is_declared_or_named_in_the_same_module(path):
    calls = [node for node in nodes_of(path, ast.Call) if isinstance(node.func, ast.Attribute)]
    known = declared_columns() | SQL
    for call in calls:
        if call.func.attr in ("alias", "withColumn", "withColumns"):
            known |= set(literals_of(call))
        known |= {name for text in literals_of(call) for name in re.findall(r" as (\w+)", text)}
    for call in calls:
        if call.func.attr in NAMING.split():
            for text in literals_of(call):
                assert set(re.findall(r"[a-z_]+", text)) <= known, f"{path}:{call.lineno} {text}"
    subscripts = nodes_of(path, ast.Subscript) if path.name == "stages.py" else []
    for name in (node.slice for node in subscripts if isinstance(node.slice, ast.Constant)):
        assert not isinstance(name.value, str) or name.value in known, (
            f"{path}:{name.lineno} {name.value}"
        )


def test_rows_of_buckets_and_pairs_are_those_of_their_tables():
    assert list(Members._fields) == schemas.ENTRIES.names
    assert [*BucketPairs._fields, "hits"] == schemas.CANDIDATES.names


def test_the_stages_load_no_engine_and_start_no_thread():
    code = (
        "import sys, threading, neardup.methods.stages as stages; print(threading.active_count(), "
        "*sys.modules)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert found[0] == "1"
    assert not {
        name for name in found if name.startswith(("pyspark", "neardup.engines", "neardup.stores"))
    }
