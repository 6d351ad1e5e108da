"""Estimates: of indexes on disk, fingerprints in memory, and what the command prints."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

from neardup import Index, MinHash, SimHash, plan
from neardup.candidates.blocks import choose_blocks
from neardup.cli.main import cli
from neardup.errors import InputError, SettingError
from neardup.features.described import distinct_lists
from neardup.methods.registry import method_of

CASES = {
    "minhash": (MinHash(), "features"),
    "minhash with texts": (MinHash(), "text"),
    "simhash": (SimHash(), "features"),
    "simhash of 128 bits, with texts": (SimHash(bits=128, max_distance=2), "text"),
    "fingerprints alone": (SimHash(confirm="hamming"), "fingerprints"),
    "containment": (MinHash(similarity="containment", ngram=3), "features"),
}


def documents(real_texts, count: int) -> pa.Table:
    """Return parts of real texts, some hundred words each."""
    words = " ".join(real_texts("en_licenses", 200_000)).split()
    draw = random.Random(7)
    starts = [draw.randrange(len(words) - 400) for _ in range(count)]
    texts = [" ".join(words[start : start + draw.randrange(200, 400)]) for start in starts]
    return pa.table({"id": [f"document-{number:011}" for number in range(count)], "text": texts})


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_bytes_of_an_index_are_those_of_the_plan(case, real_texts, tmp_path):
    method, storage = CASES[case]
    table = documents(real_texts, 1500)
    sizes = [len(text.encode()) for text in table["text"].to_pylist()]
    with Index.create(tmp_path / "an.index", method=method, storage=storage) as index:
        index.add_many(table)
        index.compact()
        stored = index.info()["store"]
        features = _count(table["text"].to_pylist()[:200], method)
    parts = plan(
        documents=1500,
        engine="index",
        method=method,
        storage=storage,
        document_bytes=sum(sizes) / 1500,
        document_features=features,
    ).parts
    measured = {"documents": stored["documents_bytes"] / 1500, "keys": stored["keys_bytes"] / 1500}
    planned = (parts["fingerprints"] + parts["features"] + parts["texts"]) / 1500
    # A text compresses as well as it does; arrays are aligned, and files have headers, which small
    # indexes show.
    assert planned == pytest.approx(measured["documents"], rel=0.25 if storage == "text" else 0.08)
    assert parts["keys"] / 1500 == pytest.approx(measured["keys"], rel=0.15)


def _count(texts: list[str], method) -> float:
    """Return the average number of distinct features of texts."""
    described = method_of(method).describe(pa.array(texts, pa.large_string()))
    return float(distinct_lists(described.sets).sizes.mean())


@pytest.mark.slow
@pytest.mark.parametrize("method", [MinHash(), SimHash()], ids=["minhash", "simhash"])
def test_the_features_of_english_are_estimated(method, real_texts):
    texts = real_texts("en_licenses", 2_000_000)
    size = sum(len(text.encode()) for text in texts) / len(texts)
    features = _count(texts, method)
    parts = plan(documents=1e6, engine="index", method=method, document_bytes=size).parts
    assert parts["features"] / 1e6 == pytest.approx(4 + 8 * features, rel=0.4)


def test_an_estimate_out_of_limits_is_refused():
    with pytest.raises(SettingError, match="storage='fingerprints' requires"):
        plan(documents=1e8, engine="index", storage="fingerprints")
    with pytest.raises(InputError, match="documents must be a number from 1 to 1e15: got 0"):
        plan(documents=0)
    with pytest.raises(
        SettingError, match="engine must be one of local, spark, index, memory: got 'dask'"
    ):
        plan(documents=1, engine="dask")
    with pytest.raises(
        SettingError, match=r"method must be one of simhash, .* or SimHash\(\.\.\.\): got MinHash\."
    ):
        plan(documents=1, engine="memory")
    with pytest.raises(
        SettingError, match=r"method must be one of minhash, .* or MinHash\(\.\.\.\): got SimHash\."
    ):
        plan(documents=1, engine="spark", method="simhash")


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("simhash", {"engine": "index", "storage": "features", "document_features": 100}),
        ("simhash", {"engine": "memory", "max_distance": 4, "memory_bytes": 640e9}),
        ("minhash", {"engine": "spark", "threshold": 0.7}),
        ("minhash", {"threshold": 0.7}),
    ],
)
def test_the_command_prints_what_the_library_returns(method, options):
    estimate = plan(documents=1e8, method=method, **options)
    words = [
        word
        for name, value in options.items()
        for word in (f"--{name.replace('_', '-')}", str(value))
    ]
    command = ["plan", "--documents", "1e8", "--method", method, *words]
    record = json.loads(CliRunner().invoke(cli, [*command, "--json"]).stdout)
    assert (record["disk_bytes"], record["memory_bytes"]) == (
        estimate.disk_bytes,
        estimate.memory_bytes,
    )
    assert {name: record[name] for name in vars(estimate) if name not in ("bands", "curve")} == {
        name: value for name, value in vars(estimate).items() if name not in ("bands", "curve")
    }
    assert (record.get("num_bands"), record.get("rows_per_band")) == (
        estimate.bands or (None, None)
    )
    assert [tuple(point) for point in record["curve"]] == list(estimate.curve)
    assert "100,000,000" in CliRunner().invoke(cli, command).stdout


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--engine", "index"), "Missing option '--documents'"),
        (
            ("--engine", "index", "--documents", "1e6", "--max-distance", "2"),
            "--max-distance belongs to --method",
        ),
        (
            ("--engine", "index", "--documents", "1e6", "--memory-bytes", "4e9"),
            "memory_bytes goes with engine='memory'",
        ),
        (("--documents", "1e6", "--storage", "text"), r"or use --engine index"),
        (
            ("--documents", "1e6", "--engine", "spark", "--plot", "a.svg"),
            "plot goes with engine='local'",
        ),
    ],
)
def test_options_without_effect_are_refused(options, told):
    result = CliRunner().invoke(cli, ["plan", *options])
    assert result.exit_code == 2
    assert told in result.stderr


def test_fingerprints_in_memory_have_the_fastest_blocks_that_fit_or_those_of_the_method():
    """Manku, Jain and Das Sarma (2007), section 3.1: 2^34 fingerprints of 64 bits at distance 3."""
    four = plan(documents=2**34, method=SimHash(num_blocks=4), engine="memory")
    assert (four.num_tables, four.comparisons) == (4, 1_048_576)
    fastest = plan(documents=2**34, method="simhash", engine="memory")
    assert fastest.num_blocks == choose_blocks(2**34, 64, 3).num_blocks
    fitting = plan(documents=2**34, method="simhash", engine="memory", memory_bytes=3e12)
    assert fitting.memory_bytes <= 3e12 < fastest.memory_bytes
    assert fastest.comparisons < fitting.comparisons < four.comparisons


def test_too_little_memory_is_refused_with_what_fits():
    with pytest.raises(
        SettingError, match=r"This memory is enough for [\d,]+ fingerprints"
    ) as caught:
        plan(documents=2**34, method="simhash", engine="memory", memory_bytes=2**32)
    (fits,) = re.findall(r"enough for ([\d,]+) fingerprints", str(caught.value))
    most = int(fits.replace(",", ""))
    plan(documents=most, method="simhash", engine="memory", memory_bytes=2**32)
    with pytest.raises(SettingError):
        plan(documents=most + 1, method="simhash", engine="memory", memory_bytes=2**32)


def test_the_table_of_the_documentation_is_that_of_the_plan():
    page = (Path(__file__).parents[2] / "docs" / "index.md").read_text(encoding="utf-8")
    methods = {
        "MinHash, threshold 0.8": MinHash(),
        "SimHash": SimHash(),
        "SimHash, `confirm=hamming`": SimHash(confirm="hamming"),
    }
    for name, method in methods.items():
        levels = (
            ("features", "text")
            if method_of(method).confirms_sets
            else ("fingerprints", "features", "text")
        )
        sizes = [
            plan(documents=1e7, engine="index", method=method, storage=level).disk_bytes
            for level in levels
        ]
        cells = ["-"] * (3 - len(sizes)) + [f"{size / 1e7:,.0f}" for size in sizes]
        assert f"| {name} | {' | '.join(cells)} |" in page


@pytest.mark.parametrize(
    ("documents", "num_blocks"), [(1_000, 4), (100_000_000, 4), (1_000_000_000, 5)]
)
def test_an_index_has_the_fewest_tables_whose_look_ups_take_less_than_a_fifth_of_a_query(
    documents, num_blocks
):
    with Index.create("memory:", method=SimHash(), expected_documents=documents) as index:
        assert index.method.num_blocks == num_blocks


def test_a_run_without_bands_is_not_planned():
    with pytest.raises(SettingError, match="containment is found by samples"):
        plan(documents=1e6, method=MinHash(similarity="containment"))


def test_the_recall_of_a_cosine_is_that_of_its_jaccard_similarity():
    method = MinHash(similarity="cosine", threshold=0.8)
    # Two sets of equal size with a cosine of 0.8 have a Jaccard similarity of 2/3.
    same_bands = MinHash(threshold=0.8 / 1.2)
    assert (
        plan(documents=1e6, method=method).recall == plan(documents=1e6, method=same_bands).recall
    )


@pytest.mark.parametrize("value", [np.complex128(5), np.timedelta64(5, "s"), True])
def test_other_values_than_real_numbers_are_refused(value):
    with pytest.raises(InputError, match="documents must be a number from 1 to 1e15"):
        plan(documents=value)
