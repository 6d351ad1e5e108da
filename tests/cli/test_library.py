"""Each command does what one call of the library does: beside every command line stands that
call.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import neardup
from neardup.cli.main import cli
from reference.signed import fingerprint_of

TEXTS = {
    "a": "one two three four five six seven eight nine ten",
    "b": "One two three four five six seven eight nine ten!",
    "c": "one two three four five six seven eight nine eleven",
    "d": "an entirely different text about something else",
}
PAGE = "<html><body class=shop><main>{}<ul>{}</ul></main></body></html>"


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [
        {"id": name, "text": text, "cluster": "2" if name == "d" else "1"}
        for name, text in TEXTS.items()
    ]
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, text in TEXTS.items():
        Path(f"{name}.txt").write_text(text)
    for name, items in (("a", 3), ("b", 9)):
        page = PAGE.format(f"<p>{TEXTS[name]}</p>", "<li>x</li>" * items)
        Path(f"{name}.html").write_bytes(("<meta charset=gb2312>" + page).encode("gb2312"))


def printed(*arguments: str, **settings: Any) -> Any:
    """Run a command with --json, and return what it prints."""
    result = CliRunner().invoke(cli, [*arguments, "--json"], **settings)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def untimed(report: dict[str, Any]) -> dict[str, Any]:
    """Return a report without what differs from run to run."""
    timed = ("second", "timing", "memory")
    return json.loads(
        json.dumps(
            {key: value for key, value in report.items() if not any(t in key for t in timed)}
        )
    )


def test_dedup():
    report = printed(
        "dedup",
        "in.jsonl",
        "-o",
        "out",
        "--threshold",
        "0.7",
        "--keep",
        "last",
        "--linkage",
        "connected",
    )
    result = neardup.dedup(
        "in.jsonl", threshold=0.7, keep="last", linkage="connected", output="library"
    )
    assert untimed(report) == untimed(result.report)
    assert pq.read_table("out/removed.parquet").equals(result.removed)
    assert Path("out/kept/in.jsonl").read_bytes() == Path("library/kept/in.jsonl").read_bytes()


def test_find_pairs():
    report = printed(
        "find-pairs",
        "in.jsonl",
        "-o",
        "pairs.parquet",
        "--method",
        "simhash",
        "--max-distance",
        "16",
    )
    result = neardup.find_pairs(
        "in.jsonl", method="simhash", max_distance=16, output="library.parquet"
    )
    assert untimed(report) == untimed(result.report)
    assert pq.read_table("pairs.parquet").equals(pq.read_table("library.parquet"))


def test_find_pairs_of_fingerprints():
    fingerprints = neardup.sign("in.jsonl", method="simhash")
    printed("sign", "in.jsonl", "-o", "fp.parquet", "--method", "simhash")
    report = printed("find-pairs", "fp.parquet", "-o", "pairs.parquet", "--max-distance", "16")
    result = neardup.find_pairs(fingerprints, max_distance=16)
    assert report["counts"] == result.report["counts"]
    assert pq.read_table("pairs.parquet").equals(result.pairs)


def test_cluster():
    report = printed("cluster", "in.jsonl", "-o", "out", "--threshold", "0.7")
    result = neardup.cluster("in.jsonl", threshold=0.7)
    assert untimed(report) == untimed(result.report)
    assert pq.read_table("out/clusters.parquet").equals(result.documents)
    assert pq.read_table("out/cluster_summary.parquet").equals(result.clusters)


def test_compare():
    record = printed("compare", "a.txt", "c.txt", "--threshold", "0.6")
    result = neardup.compare(Path("a.txt"), Path("c.txt"), threshold=0.6)
    assert (
        (record["similarity"], record["duplicate"])
        == (result.similarity, result.duplicate)
        == (5 / 7, True)
    )
    assert record["left_passages"] == [passage._asdict() for passage in result.left_passages]
    assert result.similarity == neardup.compare(TEXTS["a"], TEXTS["c"]).similarity


def test_compare_of_two_pages_compares_their_structure_and_aligns_their_outlines():
    record = printed("compare", "a.html", "b.html")
    result = neardup.compare(Path("a.html"), Path("b.html"))
    assert record["similarity"] == result.similarity
    assert record["outlines"] == json.loads(json.dumps(result.outlines.record()["outlines"]))
    assert record["content_similarity"] == result.content.similarity == 1.0
    assert neardup.compare(Path("a.html"), Path("b.html"), method="content").outlines is None


def test_compare_explain():
    (explanation, _) = printed("compare", "a.txt", "c.txt", "--method", "simhash", "--explain")[
        "explanations"
    ]
    found = neardup.explain(TEXTS["a"], method="simhash")
    assert explanation["fingerprint"] == found.fingerprint == fingerprint_of(TEXTS["a"])
    assert explanation["features"] == list(found.features)


def test_evaluate():
    report = printed("evaluate", "in.jsonl", "--plot", "cli.svg", "--threshold", "0.7")
    result = neardup.evaluate("in.jsonl", threshold=0.7, plot="library.svg")
    assert untimed(report) == untimed(result.report)
    assert Path("cli.svg").stat().st_size > 1000 < Path("library.svg").stat().st_size


def test_evaluate_compare():
    reports = printed(
        "evaluate",
        "in.jsonl",
        "--compare-methods",
        "minhash",
        "--compare-methods",
        "simhash",
        "--plot",
        "cli.svg",
    )
    results = neardup.compare_methods("in.jsonl", ["minhash", "simhash"], plot="library.svg")
    assert list(reports) == list(results) == ["minhash", "simhash"]
    assert {name: untimed(report) for name, report in reports.items()} == {
        name: untimed(result.report) for name, result in results.items()
    }
    assert Path("cli.svg").read_text() == Path("library.svg").read_text()


@pytest.mark.parametrize(
    ("options", "method"),
    [
        (["--num-hashes", "64"], neardup.MinHash(num_hashes=64)),
        (["--method", "simhash", "--bits", "128"], neardup.SimHash(bits=128)),
    ],
)
def test_sign(options, method):
    report = printed("sign", "in.jsonl", "-o", "signed.parquet", *options)
    signed = neardup.sign("in.jsonl", method=method, output="library.parquet")
    assert untimed(report) == untimed(signed.report)
    assert pq.read_table("signed.parquet").equals(signed.to_table())
    assert pq.read_table("signed.parquet").equals(pq.read_table("library.parquet"))


def test_document_frequencies():
    record = printed(
        "document-frequencies", "in.jsonl", "-o", "idf.parquet", "--tokens", "whitespace"
    )
    table = neardup.document_frequencies("in.jsonl", method=neardup.SimHash(tokens="whitespace"))
    assert (record["documents"], record["version"]) == (4, table.version)
    assert neardup.IdfTable.open("idf.parquet").version == table.version


def test_plan():
    record = printed("plan", "--documents", "1e8", "--threshold", "0.7")
    plan = neardup.plan(documents=1e8, method=neardup.MinHash(threshold=0.7))
    assert (record["memory_bytes"], record["num_bands"]) == (
        plan.memory_bytes,
        plan.bands.num_bands,
    )


def test_sweep():
    report = printed("sweep", "in.jsonl", "--thresholds", "0.6,0.8", "--ngram", "2")
    result = neardup.sweep("in.jsonl", thresholds=[0.6, 0.8], method=neardup.MinHash(ngram=2))
    assert untimed(report) == untimed(result.report)


def test_contamination():
    record = {
        "question": "Which planet of the solar system has the shortest year of all eight planets?"
    }
    Path("items.jsonl").write_text(json.dumps(record) + "\n")
    Path("pages.jsonl").write_text(
        json.dumps({"text": f"Quiz. {record['question']} Mercury!"}) + "\n"
    )
    report = printed(
        "contamination", "items.jsonl", "--corpus", "pages.jsonl", "in.jsonl", "-o", "out"
    )
    result = neardup.find_contamination("items.jsonl", ["pages.jsonl", "in.jsonl"])
    assert untimed(report) == untimed(result.report)
    assert report["counts"]["contaminated"] == 1
    assert pq.read_table("out/hits.parquet").equals(result.hits)


def test_audit():
    rows = Path("in.jsonl").read_text().splitlines(keepends=True)
    Path("kept.jsonl").write_text("".join(rows[1:]))
    report = printed("audit", "in.jsonl", "--kept", "kept.jsonl", "-o", "out")
    result = neardup.audit("in.jsonl", kept="kept.jsonl")
    assert untimed(report) == untimed(result.report)
    assert report["counts"]["removed"] == 1
    assert pq.read_table("out/removals.parquet").equals(result.removals)


def test_passages():
    notice = (
        "We use cookies to give you the best experience on our site; by going on you accept all of "
        "them."
    )
    rows = [{"id": name, "text": f"{name} {notice} {name}"} for name in "ab"]
    Path("pages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    report = printed("passages", "pages.jsonl", "-o", "out", "--min-length", "60")
    result = neardup.remove_passages("pages.jsonl", min_length=60)
    assert untimed(report) == untimed(result.report)
    assert Path("out/kept/pages.jsonl").read_text().splitlines()[1] == json.dumps(
        {"id": "b", "text": "b b"}
    )
    assert pq.read_table("out/passages.parquet").equals(result.passages)


def test_every_command_is_named_here():
    tests = " ".join(name for name in globals() if name.startswith("test_"))
    elsewhere = {"index", "serve"}  # test_cli_index.py, test_service.py
    assert all(
        f"test_{command.replace('-', '_')}" in tests for command in set(cli.commands) - elsewhere
    )
