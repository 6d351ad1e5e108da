"""The estimate of an index agrees with indexes on disk."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

import neardup
from neardup import Index, MinHash, SimHash
from neardup.cli.main import cli
from neardup.errors import InputError, SettingError
from neardup.lsh import plan_index
from neardup.methods.registry import method_of
from neardup.verify.similarity import sort_sets

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
    [plan] = plan_index(
        documents=1500, method=method, storage=storage, document_bytes=sum(sizes) / 1500, document_features=features
    )
    measured = {"documents": stored["documents_bytes"] / 1500, "keys": stored["keys_bytes"] / 1500}
    planned = plan.fingerprint_bytes + plan.feature_bytes + plan.text_bytes
    # A text compresses as well as it does; arrays are aligned, and files have headers, which small indexes show.
    assert planned == pytest.approx(measured["documents"], rel=0.25 if storage == "text" else 0.08)
    assert plan.key_bytes == pytest.approx(measured["keys"], rel=0.15)
    assert plan.document_bytes == pytest.approx(plan.key_bytes + planned)


def _count(texts: list[str], method) -> float:
    """Return the average number of distinct features of texts."""
    described = method_of(method).describe(pa.array(texts, pa.large_string()))
    return float(sort_sets(described.sets).sizes.mean())


@pytest.mark.slow
@pytest.mark.parametrize("method", [MinHash(), SimHash()], ids=["minhash", "simhash"])
def test_the_features_of_english_are_estimated(method, real_texts):
    texts = real_texts("en_licenses", 2_000_000)
    size = sum(len(text.encode()) for text in texts) / len(texts)
    features = _count(texts, method)
    [plan] = plan_index(documents=1e6, method=method, storage="features", document_bytes=size)
    assert plan.feature_bytes == pytest.approx(4 + 8 * features, rel=0.4)


def test_all_levels_that_go_with_the_method_are_planned():
    levels = [plan.storage for plan in plan_index(documents=1e8, method=SimHash(confirm="hamming"))]
    assert levels == ["fingerprints", "features", "text"]
    assert [plan.storage for plan in plan_index(documents=1e8)] == ["features", "text"]
    with pytest.raises(SettingError, match="storage='fingerprints' requires"):
        plan_index(documents=1e8, storage="fingerprints")
    with pytest.raises(InputError, match="documents must be a number from 1 to 1e15: got 0"):
        plan_index(documents=0)


def test_the_command_prints_what_the_library_returns():
    command = ["plan", "--index", "--documents", "1e8", "--method", "simhash", "--storage", "features"]
    [plan] = plan_index(documents=1e8, method="simhash", storage="features")
    record = json.loads(CliRunner().invoke(cli, [*command, "--json"]).stdout)["plans"][0]
    assert record["disk_bytes"] == plan.disk_bytes
    assert record["num_tables"] == plan.num_tables
    shown = CliRunner().invoke(cli, command).stdout
    assert "100,000,000" in shown
    assert "bytes a document" in shown


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--index",), "needs --documents"),
        (("--index", "--documents", "1e6", "--max-distance", "2"), "does not apply to --method minhash"),
        (("--index", "--documents", "1e6", "--memory", "4GB"), "--memory has no effect there"),
        (("--documents", "1e6", "--storage", "text"), "--storage requires --index"),
    ],
)
def test_options_without_effect_are_refused(options, told):
    result = CliRunner().invoke(cli, ["plan", *options])
    assert result.exit_code == 2
    assert told in result.stderr


def test_the_names_of_the_plan_are_public():
    assert neardup.lsh.IndexPlan is type(plan_index(documents=1)[0])


def test_the_table_of_the_documentation_is_that_of_the_plan():
    page = (Path(__file__).parent.parent / "docs" / "index.md").read_text(encoding="utf-8")
    methods = {
        "MinHash, threshold 0.8": MinHash(),
        "SimHash": SimHash(),
        "SimHash, `confirm=hamming`": SimHash(confirm="hamming"),
    }
    for name, method in methods.items():
        plans = {plan.storage: f"{plan.document_bytes:,.0f}" for plan in plan_index(documents=1e7, method=method)}
        cells = [plans.get(storage, "-") for storage in ("fingerprints", "features", "text")]
        assert f"| {name} | {' | '.join(cells)} |" in page


@pytest.mark.parametrize(("documents", "num_blocks"), [(1_000, 4), (100_000_000, 4), (1_000_000_000, 5)])
def test_an_index_has_the_fewest_tables_whose_look_ups_take_less_than_a_fifth_of_a_query(documents, num_blocks):
    with Index.create("memory:", method=SimHash(), expected_documents=documents) as index:
        assert index.method.num_blocks == num_blocks
