"""Clusters are what dedup would remove for one document; each has a size, a name and examples."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup.cli.main import cli
from neardup.decide.clusters import cluster_documents, pick_others
from neardup.errors import InputError, OutputError
from neardup.features.outline import outline
from neardup.methods.registry import method_of
from neardup.output.cluster_names import MAX_NAMED, distinct_names, outline_names, passage_name
from neardup.schemas import cluster_summary_schema, clusters_schema
from reference import groups as reference
from reference import warc_files

METHOD = neardup.MinHash(threshold=0.5, ngram=1)
TEXTS = {
    "lone": "nothing like this stands anywhere else at all",
    "a0": "one two three four five six seven eight nine ten",
    "b0": "red orange yellow green blue indigo violet",
    "a1": "One two three four five six seven eight nine eleven",
    "b1": "red orange yellow green blue indigo brown",
    "empty": "...",
    "a2": "one two three four five six seven eight nine ten!",
}
TEMPLATES = (
    '<body class="shop"><div id="wrap"><ul class="goods">{}</ul></div><p class="terms">',
    '<body class="news"><main><article class="story"><h1></h1><p>{}</p><p></p></article></main>',
)
HOSTILE = "<script>alert(1)</script>\x1b[31m \u202e</td>"
WORDS = st.sampled_from(["ash", "birch", "cedar", "elm", "fir"])


def table_of(texts: dict[str, str]) -> pa.Table:
    return pa.table({"id": list(texts), "text": list(texts.values())})


def page(template: int, rows: int) -> str:
    return TEMPLATES[template].format(
        "".join(f"<li class='item'>{row}</li>" for row in range(rows))
    )


@st.composite
def removals(draw: st.DrawFn) -> tuple[int, dict[int, int]]:
    """Return a number of documents and, of those removed, the first of their cluster."""
    numbers = draw(st.lists(st.integers(0, 5), max_size=30))
    members: dict[int, list[int]] = {}
    for document, number in enumerate(numbers):
        members.setdefault(number, []).append(document)
    firsts = {number: draw(st.sampled_from(documents)) for number, documents in members.items()}
    return len(numbers), {
        document: firsts[number]
        for document, number in enumerate(numbers)
        if document != firsts[number]
    }


@given(removals(), st.integers(1, 4))
def test_clusters_are_those_of_brute_force(case, most):
    num_documents, kept_of = case
    removed = np.array(sorted(kept_of), np.uint32)
    clusters = cluster_documents(
        num_documents, removed, np.array([kept_of[one] for one in sorted(kept_of)], np.uint32)
    )
    expected = reference.groups(num_documents, kept_of)
    assert [list(one) for one in np.split(clusters.members, clusters.offsets[1:-1])] == (
        expected or [[]]
    )
    assert clusters.num_clusters == sum(len(cluster) > 1 for cluster in expected)
    assert all(
        clusters.cluster_of[one] == number
        for number, cluster in enumerate(expected)
        for one in cluster
    )
    documents, offsets = pick_others(clusters, 0, clusters.num_clusters, most)
    for cluster, start, stop in zip(expected, offsets[:-1], offsets[1:], strict=False):
        picked = documents[start:stop].tolist()
        assert len(picked) == min(most, len(cluster) - 1)
        assert picked == sorted(picked, key=cluster.index)
        assert len({*picked, cluster[0]}) == len(picked) + 1
        assert picked[0] == cluster[1]
        assert most == 1 or picked[-1] == cluster[-1]


@pytest.mark.parametrize(
    "keep", ["first", *(pytest.param(keep, marks=pytest.mark.slow) for keep in ("last", "longest"))]
)
@given(st.lists(st.lists(WORDS, max_size=5).map(" ".join), max_size=12))
def test_a_group_is_a_kept_document_with_those_it_removed(keep, texts):
    table = table_of({f"d{number}": text for number, text in enumerate(texts)})
    removed = {
        row["id"]: row for row in neardup.dedup(table, method=METHOD, keep=keep).removed.to_pylist()
    }
    result = neardup.cluster(table, method=METHOD, keep=keep)
    rows = result.documents.to_pylist()
    assert [row["id"] for row in rows] == table["id"].to_pylist()
    first_of = {row["cluster"]: row["id"] for row in rows if row["is_first"]}
    for row in rows:
        assert row["is_first"] == (row["id"] not in removed)
        mine = removed.get(row["id"], {"kept_id": row["id"], "similarity": 1.0, "exact": True})
        assert first_of[row["cluster"]] == mine["kept_id"]
        assert (row["similarity"], row["exact"]) == (mine["similarity"], mine["exact"])
        assert row["size"] == sum(other["cluster"] == row["cluster"] for other in rows)
    sizes = [row["size"] for row in sorted(rows, key=lambda row: row["cluster"])]
    assert sizes == sorted(sizes, reverse=True)
    assert result.clusters["size"].to_pylist() == [len(g) for g in _members(rows) if len(g) > 1]


def _members(rows: list[dict]) -> list[list[str]]:
    clusters: dict[int, list[str]] = {}
    for row in sorted(rows, key=lambda row: row["cluster"]):
        clusters.setdefault(row["cluster"], []).append(row["id"])
    return list(clusters.values())


def test_the_largest_group_is_0_and_each_has_a_name_and_examples():
    result = neardup.cluster(table_of(TEXTS), method=METHOD)
    assert dict(zip(TEXTS, result.documents["cluster"].to_pylist(), strict=True)) == {
        "a0": 0,
        "a1": 0,
        "a2": 0,
        "b0": 1,
        "b1": 1,
        "lone": 2,
        "empty": 3,
    }
    assert result.clusters.to_pylist() == [
        {
            "cluster": 0,
            "size": 3,
            "name": "one two three four five six seven eight nine",
            "first_id": "a0",
            "first_role": "source",
            "example_ids": ["a1", "a2"],
        },
        {
            "cluster": 1,
            "size": 2,
            "name": "red orange yellow green blue indigo",
            "first_id": "b0",
            "first_role": "source",
            "example_ids": ["b1"],
        },
    ]
    assert str(result) == "7 documents read, 2 clusters (5 in clusters, 2 single)"
    assert "one two three four five" in result._repr_html_()
    assert result.report["counts"]["largest"] == 3
    assert set(result.report_table["section"].to_pylist()) >= {"counts", "largest_clusters"}


def test_chains_of_resemblances_are_clusters_with_linkage_connected():
    texts = table_of({"x": "a b c d", "y": "c d a b e f", "z": "c d e f g h"})
    assert neardup.cluster(texts, method=METHOD).clusters["size"].to_pylist() == [2]
    chain = neardup.cluster(texts, method=METHOD, linkage="connected")
    assert chain.clusters["size"].to_pylist() == [3]
    assert chain.documents["similarity"].to_pylist() == [1.0, 4 / 6, 2 / 8]


@pytest.mark.parametrize("texts", [{}, {"a": "one"}, {"a": "...", "b": ""}])
def test_where_no_two_are_alike_there_is_no_cluster(texts):
    result = neardup.cluster(table_of(texts))
    assert result.clusters.num_rows == 0
    assert result.clusters.schema == cluster_summary_schema()
    assert result.documents.num_rows == len(texts)
    assert str(result) == (
        f"{len(texts)} document{'s' * (len(texts) > 1)} read, no two similar"
        if texts
        else "No documents read"
    )


def test_pages_of_one_template_are_a_group_named_by_its_outline():
    pages = {
        f"{template}-{rows}": page(template, rows) for rows in (3, 5, 90) for template in (0, 1)
    }
    groups = neardup.cluster(
        table_of(pages), method=neardup.method("structure")
    ).clusters.to_pylist()
    assert [(group["size"], group["name"], group["first_id"]) for group in groups] == [
        (3, "body.shop > div#wrap > ul.goods > li.item ×", "0-3"),
        (3, "body.news > main > article.story", "1-3"),
    ]


def test_the_pages_of_an_archive_are_grouped_and_known_by_their_urls(tmp_path):
    records = [
        warc_files.page(page(number % 2, 3 + number).encode(), f"http://a.test/{number}")
        for number in range(5)
    ]
    records.insert(
        2,
        warc_files.page(b"%PDF", "http://a.test/pdf", header=b"Content-Type: application/pdf\r\n"),
    )
    (tmp_path / "crawl.warc.gz").write_bytes(warc_files.members(warc_files.info(), *records))
    result = neardup.cluster(tmp_path / "crawl.warc.gz", method=neardup.method("structure"))
    assert result.clusters.select(["name", "first_id", "example_ids"]).to_pylist() == [
        {
            "name": "body.shop > div#wrap > ul.goods > li.item ×",
            "first_id": "http://a.test/0",
            "example_ids": ["http://a.test/2", "http://a.test/4"],
        },
        {
            "name": "body.news > main > article.story",
            "first_id": "http://a.test/1",
            "example_ids": ["http://a.test/3"],
        },
    ]
    assert result.report["counts"]["rejected"] == 1


@pytest.mark.parametrize("method", ["decay", "paths"])
def test_pages_are_named_by_their_outline_whatever_the_features(method):
    pages = {"a": page(0, 3), "b": page(0, 3)}
    (group,) = neardup.cluster(table_of(pages), method=method).clusters.to_pylist()
    assert group["name"] == "body.shop > div#wrap > ul.goods > li.item ×"


def test_pages_of_one_article_are_named_by_their_text():
    story = (
        "<p>"
        + "The river rose again in the night and the old stone bridge was gone by the morning. " * 6
    )
    pages = {"a": f"<main>{story}</main>", "b": f"<body><div><article>{story}</article></div>"}
    (group,) = neardup.cluster(
        table_of(pages), method=neardup.method("content")
    ).clusters.to_pylist()
    assert group["name"].startswith("The river rose again in the night")


def test_a_name_is_one_line_without_control_characters():
    result = neardup.cluster(
        ["one\ntwo \x1b[31m three\u202e four five", "One two [31m three four five"], method=METHOD
    )
    (name,) = result.clusters["name"].to_pylist()
    assert name == "one two [ESC][31m three[U+202E] four five"
    hostile = f"<body class='{HOSTILE}'><p><p id=x>"
    (name,) = (
        neardup.cluster([hostile, hostile], method=neardup.method("structure"))
        .clusters["name"]
        .to_pylist()
    )
    assert not set(name) & {"\x1b", "\u202e", "\n"}


def test_the_longest_passage_that_all_share_names_texts():
    texts = [
        "x1 x2 alpha beta x3 gamma delta epsilon",
        "alpha beta y gamma delta epsilon",
        "gamma delta epsilon",
    ]
    assert passage_name(texts, METHOD) == "gamma delta epsilon"
    assert passage_name(["alone here", "other words"], METHOD) == "alone here"
    assert passage_name(["word " * 500, "word " * 500], METHOD) == "word " * 15 + "word…"


def test_names_of_templates_go_where_they_differ():
    menu = "<div id=menu><ul class=a><li><li></ul><ul class=b></ul></div>"
    pages = [f"<body>{menu}<div id={name}></div>" for name in ("shop", "news")]
    assert outline_names([[outline(one).lines] * 2 for one in pages]) == [
        "body > div#shop",
        "body > div#news",
    ]


def test_only_the_largest_clusters_are_named():
    texts = [f"w{number} x{number} y{number}" for number in range(MAX_NAMED + 5) for _ in range(2)]
    names = neardup.cluster(texts, method=METHOD).clusters["name"].to_pylist()
    assert names[0] == "w0 x0 y0"
    assert [name is None for name in names] == [False] * MAX_NAMED + [True] * 5


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps({"id": name, "text": text}) for name, text in TEXTS.items()]
    Path("in.jsonl").write_text("\n".join(lines) + "\n{broken\n")
    return tmp_path


def run(*arguments: str):
    return CliRunner().invoke(cli, ["cluster", *arguments], prog_name="neardup")


OPTIONS = (
    "in.jsonl",
    "-o",
    "out",
    "--threshold",
    "0.5",
    "--ngram",
    "1",
    "--max-unreadable",
    "100%",
)


@pytest.mark.usefixtures("files")
def test_the_folder_holds_what_the_library_returns():
    result = neardup.cluster("in.jsonl", method=METHOD, max_unreadable=1, output="out")
    assert sorted(os.listdir("out")) == [
        "cluster_summary.parquet",
        "clusters.parquet",
        "rejected.jsonl",
        "report.html",
        "report.json",
    ]
    documents = pq.read_table("out/clusters.parquet")
    clusters = pq.read_table("out/cluster_summary.parquet")
    assert documents.schema.equals(clusters_schema(method_of(METHOD).measures), check_metadata=True)
    assert documents.equals(result.documents)
    assert clusters.equals(result.clusters)
    assert json.loads(Path("out/report.json").read_text()) == result.report
    assert "broken" not in Path("out/report.html").read_text()
    assert len(Path("out/rejected.jsonl").read_text().splitlines()) == 1
    assert not Path("out.partial").exists()


@pytest.mark.usefixtures("files")
def test_the_command_writes_the_same_and_prints_the_largest_clusters():
    result = run(*OPTIONS)
    assert result.exit_code == 0
    assert pq.read_table("out/clusters.parquet").equals(
        neardup.cluster("in.jsonl", method=METHOD, max_unreadable=1).documents
    )
    for said in (
        "Clusters                   2  of similar documents: jaccard 0.5 or more",
        "in clusters",
        "71.4 %",
        "Rejected                   1",
        "3  one two three four five six seven eight nine",
        "   a0  in.jsonl:1",
        "rejected.jsonl",
    ):
        assert said in result.stdout
    assert "already exists" in run(*OPTIONS).stderr
    again = run(*OPTIONS, "--overwrite", "--json")
    assert json.loads(again.stdout) == json.loads(Path("out/report.json").read_text())
    assert run(*OPTIONS, "--overwrite", "--quiet").stdout == ""


@pytest.mark.usefixtures("files")
def test_simhash_tells_distances():
    result = run(
        "in.jsonl",
        "-o",
        "out",
        "--method",
        "simhash",
        "--confirm",
        "hamming",
        "--max-distance",
        "16",
        "--on-error",
        "skip",
    )
    assert result.exit_code == 0
    clusters = pq.read_table("out/clusters.parquet")
    assert "similarity" not in clusters.column_names
    assert clusters.filter(clusters["is_first"])["distance"].to_pylist() == [0] * clusters[
        "is_first"
    ].to_pylist().count(True)


@pytest.mark.usefixtures("files")
def test_a_repeated_id_is_a_warning_and_an_error_where_it_was_asked_for():
    Path("twice.jsonl").write_text('{"id": "a", "text": "one"}\n{"id": "a", "text": "two"}\n')
    (warning,) = neardup.cluster("twice.jsonl").report["warnings"]
    assert "clusters.parquet distinguishes them" in warning
    with pytest.raises(InputError, match="belongs to two documents"):
        neardup.cluster("twice.jsonl", id_column="id")


class Interrupter:
    """Interrupts a run when a stage begins."""

    def __init__(self, stage: str) -> None:
        self.stage = stage

    def begin(self, stage: str, total_documents: int | None) -> None:
        if stage == self.stage:
            raise KeyboardInterrupt

    def advance(self, documents: int, num_bytes: int) -> None: ...

    def end(self, stage: str, seconds: float) -> None: ...


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("stage", ["propose", "name", "write"])
def test_an_interrupted_run_resumes(stage):
    with pytest.raises(KeyboardInterrupt):
        neardup.cluster(
            "in.jsonl", method=METHOD, max_unreadable=1, output="out", progress=Interrupter(stage)
        )
    assert not Path("out").exists()
    resumed = neardup.cluster(
        "in.jsonl", method=METHOD, max_unreadable=1, output="out", resume=True
    )
    assert resumed.documents.equals(
        neardup.cluster("in.jsonl", method=METHOD, max_unreadable=1).documents
    )


@pytest.mark.usefixtures("files")
def test_an_input_that_changes_while_it_is_read_stops_the_run():
    class Writer(Interrupter):
        def begin(self, stage: str, total_documents: int | None) -> None:
            if stage == "name":
                Path("in.jsonl").write_text('{"id": "a", "text": "other"}\n')

    with pytest.raises(InputError, match="changed during the run"):
        neardup.cluster(
            "in.jsonl", method=METHOD, max_unreadable=1, output="out", progress=Writer("")
        )
    assert not Path("out").exists()


@pytest.mark.usefixtures("files")
def test_an_output_inside_the_input_is_refused():
    with pytest.raises(OutputError, match="overlap"):
        neardup.cluster(Path(), output="out")


# Known documents


def test_documents_join_the_known_document_that_they_are_like(tmp_path):
    third = "<body id='forum'><section><dl><dt></dt><dd>{}</dd></dl><form><input><button></button></form></section>"  # noqa: E501
    known = {"shop": page(0, 5), "unused": third.format("<em>x</em>")}
    new = {
        "a": page(0, 7),
        "b": page(1, 3),
        "c": page(0, 9),
        "d": page(1, 5),
        "e": "<body><table><tr><td>alone</table>",
    }
    result = neardup.cluster(
        table_of(new),
        against=table_of(known),
        method="structure",
        output=tmp_path / "out",
        id_column="id",
    )
    rows = {row["id"]: row for row in result.documents.to_pylist()}
    assert list(rows) == list(new)
    assert {id: (row["first_id"], row["first_role"]) for id, row in rows.items()} == {
        "a": ("shop", "against"),
        "c": ("shop", "against"),
        "b": ("b", "source"),
        "d": ("b", "source"),
        "e": ("e", "source"),
    }
    assert [row["is_first"] for row in rows.values()] == [False, True, False, False, True]
    assert [
        (row["first_id"], row["first_role"], row["size"]) for row in result.clusters.to_pylist()
    ] == [
        ("shop", "against", 3),
        ("b", "source", 2),
    ]
    counts = result.report["counts"]
    names = ("read", "clusters", "clustered", "known", "single", "against")
    assert [counts[name] for name in names] == [5, 2, 4, 2, 1, 2]
    assert "known: <bdi" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.usefixtures("files")
def test_the_command_takes_known_documents():
    Path("known.jsonl").write_bytes(Path("in.jsonl").read_bytes())
    result = run(*OPTIONS, "--against", "known.jsonl", "--id-column", "id")
    assert result.exit_code == 0, result.output
    rows = pq.read_table("out/clusters.parquet").to_pylist()
    assert {row["id"]: row["first_role"] for row in rows} == {
        id: "source" if id == "empty" else "against" for id in TEXTS
    }
    assert "of known" in result.stdout


def test_clusters_of_one_name_are_told_apart_and_linked_to_their_files(tmp_path: Path) -> None:
    for number, text in enumerate(
        ("one two three four five six", "one two three four seven eight")
    ):
        for copy in "ab":
            (tmp_path / "in dir").mkdir(exist_ok=True)
            (tmp_path / "in dir" / f"{number}{copy}#.txt").write_text(text)
    named = str(tmp_path / "in dir")
    result = neardup.cluster(named, output=tmp_path / "out" / "put")
    texts = ["one two three four", "one two three four"]
    assert distinct_names([*texts, "x", ""], ["a", "b", "c", "d"]) == [
        *(f"{texts[0]} ({i})" for i in "ab"),
        "x",
        "",
    ]
    assert result.documents["id"].to_pylist()[0] == f"{named}/0a#.txt"
    page = (tmp_path / "out" / "put" / "report.html").read_text()
    links = re.findall(r'<a href="([^"#][^"]*)" rel="noreferrer">', page)
    assert links == [
        "../../in%20dir/0a%23.txt",
        "../../in%20dir/0b%23.txt",
        "../../in%20dir/1a%23.txt",
        "../../in%20dir/1b%23.txt",
    ]
    assert ".txt</bdi>:0" not in page


def test_a_full_bucket_is_no_matter_where_all_that_it_hides_is_in_one_cluster():
    texts = [f"one two three four five six seven eight nine {i}" for i in range(12)]
    method = neardup.MinHash(ngram=1, num_bands=8, rows_per_band=1)
    found = neardup.cluster(texts, method=method, max_bucket_size=3, linkage="connected").report
    assert (found["bound"]["documents"], found["counts"]["clusters"], found["warnings"]) == (
        0,
        1,
        [],
    )
    others = [f"one two {i} {10 * i} {100 * i} {1000 * i}" for i in range(20, 23)]
    found = neardup.cluster(
        [*texts, *others], method=method, max_bucket_size=3, linkage="connected"
    ).report
    assert 0 < found["bound"]["documents"] <= len(others)
    assert "share a bucket with more than 3 earlier documents" in found["warnings"][0]


def test_a_cluster_of_vectors_has_the_id_of_its_first_document_as_its_name():
    rows = pa.FixedSizeListArray.from_arrays(pa.array([1.0, 0.0, 1.0, 0.001, 0.0, 1.0]), 2)
    result = neardup.cluster(
        pa.table({"id": ["a\x1b", "b", "c"], "vector": rows}), method="vectors"
    )
    assert result.clusters["name"].to_pylist() == ["a[ESC]"]
