"""Pages by structure, by content, by both: whole runs, held against a sieve in plain Python."""

from __future__ import annotations

import dataclasses
import gzip
import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import example, given, settings
from hypothesis import strategies as st

import neardup
from neardup.cli.main import cli
from neardup.documents.page_text import texts_of_pages
from neardup.errors import InputError, SettingError
from neardup.fingerprints import minhash
from neardup.methods.registry import method_of
from neardup.settings.constraints import constraints_of
from neardup.settings.methods import METHODS
from reference import html as html_twin
from reference import shingles
from reference.sets import cosine, jaccard

ALL_FOUND = {
    "num_bands": 32,
    "rows_per_band": 1,
}  # at J = 0.3 a pair is missed with a probability of 1e-5
BLOG = (
    "<html><body class=blog><div "
    "id=wrap><header><nav><ul><li><a>Home</a></ul></nav></header><main><article>{}"
    "</article></main><footer><p class=legal>All</footer></div>"
)
SHOP = (
    "<html><body class=shop><table><tr><td class=menu><a>Cart</a><td class=item><h1>Item</h1><div "
    "class=text>{}</div><form name=buy><input type=submit></form></table>"
)
WHALES = (
    "<p>Whales are large animals of the sea that breathe air and sing to one another across "
    "hundreds of miles.</p>"
)
BREAD = (
    "<p>Bread needs flour, water, salt, and a night of patience; an oven as hot as it gets does "
    "the rest by noon.</p>"
)


def kept_of(pages: Sequence[str], method: neardup.MinHash | neardup.SimHash) -> list[int]:
    table = pa.table({"id": [str(i) for i in range(len(pages))], "html": list(pages)})
    return [int(one) for one in neardup.dedup(table, method=method).kept["id"].to_pylist()]


PAGES = [
    BLOG.format(WHALES),
    SHOP.format(WHALES),
    BLOG.format(BREAD),
    SHOP.format(BREAD),
    BLOG.format(WHALES),
]


def test_one_page_of_each_template_is_kept_whatever_it_says():
    assert kept_of(PAGES, neardup.method("structure")) == [0, 1]


def test_one_page_of_each_article_is_kept_whatever_the_template():
    menus = [page.replace("Home", "").replace("Cart", "") for page in PAGES]
    assert kept_of(menus, neardup.method("content", ngram=2, threshold=0.6)) == [0, 2]


def test_where_both_count_only_the_same_article_in_the_same_template_goes():
    assert kept_of(PAGES, neardup.method("page")) == [0, 1, 2, 3]


@pytest.mark.parametrize("method", ["decay", "paths"])
def test_weighed_elements_tell_templates_apart(method):
    assert kept_of(PAGES, method) == [0, 1]


BLOCKS = st.lists(
    st.sampled_from(
        ["<p>", "<div class=a>", "<ul><li>", "<h2 id=x1>", "</div>", "sea ", "air ", "sing "]
    )
)
RANDOM_PAGES = st.lists(BLOCKS.map("".join), max_size=7).map(
    lambda bodies: [f"<body><main>{body}</main>" for body in bodies]
)


@pytest.mark.slow
@settings(max_examples=60)
@given(
    RANDOM_PAGES, st.sampled_from([0.3, 0.5, 0.8]), st.sampled_from([0.3, 0.6, 1.0]), st.booleans()
)
@example(PAGES, 0.5, 0.4, True)
def test_the_answer_for_both_is_that_of_a_sieve_in_plain_python(pages, threshold, structure, copy):
    pages = [*pages, *pages[:1]] if copy else pages
    method = neardup.MinHash(
        html="all", ngram=1, threshold=threshold, min_structure=structure, **ALL_FOUND
    )
    table = pa.table(
        {"id": [str(i) for i in range(len(pages))], "html": pa.array(pages, pa.string())}
    )
    result = neardup.dedup(table, method=method)
    found = {
        int(row["id"]): (int(row["kept_id"]), row["similarity"], row["structure"])
        for row in result.removed.to_pylist()
    }
    assert found == plain_sieve(pages, threshold, structure)


def plain_sieve(
    pages: Sequence[str], threshold: float, structure: float
) -> dict[int, tuple[int, float, float]]:
    """Return for each removed page the kept one that removed it, and how alike their words and
    their tags are.
    """
    texts = texts_of_pages(pa.array(pages, pa.large_string()), main=False).to_pylist()
    words = [frozenset(shingles.tokens_of(text)) for text in texts]
    tags = counted_by_rarity([runs_of_tags(page) for page in pages])
    kept: list[int] = []
    removed = {}
    for page in range(len(pages)):
        alike = [
            (other, jaccard(words[page], words[other]), cosine(tags[page], tags[other]))
            for other in kept
            if words[page]
        ]
        alike = [one for one in alike if one[1] >= threshold and one[2] >= structure]
        if alike:
            removed[page] = max(alike, key=lambda one: (one[1], -one[0]))
        else:
            kept.append(page)
    return removed


def runs_of_tags(page: str) -> frozenset:
    tokens = [html_twin.token_of(tag) for tag in html_twin.tags_of(page.encode()) if not tag.is_end]
    return frozenset(shingles.ngrams(tokens, 3))


def counted_by_rarity(sets: Sequence[frozenset]) -> list[frozenset]:
    counts = Counter(run for one in sets for run in one)
    root = math.isqrt(len(sets))
    times = {
        run: 1 + (2 <= count <= root) + (2 <= count <= math.isqrt(root))
        for run, count in counts.items()
    }
    return [frozenset((run, copy) for run in one for copy in range(times[run])) for one in sets]


def write_pages(folder: Path) -> Path:
    folder.mkdir()
    for number, page in enumerate(PAGES):
        (folder / f"{number}.html").write_text(page)
    return folder


def write_archive(path: Path) -> Path:
    """Write the pages as responses, a gzip member each."""
    with open(path, "wb") as file:
        for number, page in enumerate(PAGES):
            http = (
                f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n{page}".encode()
            )
            head = (
                "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: "
                f"https://example.org/{number}\r\n"
                "WARC-Date: 2026-11-01T00:00:00Z\r\nContent-Type: application/http; "
                "msgtype=response\r\n"
                f"WARC-Record-ID: <urn:uuid:{number}>\r\nContent-Length: {len(http)}\r\n\r\n"
            )
            file.write(gzip.compress(head.encode() + http + b"\r\n\r\n"))
    return path


def test_pages_are_compared_by_their_main_text_unless_the_method_says_what_else(tmp_path):
    folder = write_pages(tmp_path / "pages")
    settings_of = {
        method: neardup.dedup(folder, method=method).report["scheme"]
        for method in (
            neardup.MinHash(),
            neardup.MinHash(html="all"),
            neardup.SimHash(),
            neardup.method("structure"),
        )
    }
    assert [scheme.get("html") for scheme in settings_of.values()] == ["main", "all", "main", None]


def test_pages_and_texts_in_one_run_are_refused_unless_all_are_read_as_pages(tmp_path):
    folder = write_pages(tmp_path / "pages")
    (folder / "note.txt").write_text("<p>A note.")
    with pytest.raises(
        InputError,
        match=r"Some inputs are web pages and others are texts: .*0\.html and .*note\.txt",
    ):
        neardup.dedup(folder)
    assert neardup.dedup(folder, method=neardup.method("structure")).report["counts"]["read"] == 6


def test_a_page_without_tags_has_no_features_of_structure():
    assert kept_of(["only text", "only text", "<p>x", "<p>y"], neardup.method("structure")) == [
        0,
        1,
        2,
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"tokens": "tags", "nfkc": False},
            "tokens='tags' reads the tags of a page, and nfkc is for texts",
        ),
        ({"tokens": "tags", "html": "main"}, "and html is for texts"),
        (
            {"min_structure": 0.5},
            "min_structure requires web pages that are compared by their text",
        ),
        (
            {"min_structure": 0.5, "html": "all", "boost_rare": True},
            "without boost_rare and above_chance: got",
        ),
    ],
)
def test_settings_that_say_nothing_together_are_refused(given, said):
    with pytest.raises(SettingError, match=said):
        neardup.MinHash(**given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"weights": "depth"}, "weights='depth' requires tokens='elements' or 'paths'"),
        ({"tokens": "paths"}, "weights='depth' requires tokens='elements' or 'paths'"),
        ({"decay": 0.5}, "decay requires weights='depth'"),
        ({"weights": "depth", "tokens": "paths", "ngram": 2}, "weighs single elements"),
        ({"weights": "depth", "tokens": "paths", "hash": "fnv1"}, "use tokens='elements'"),
    ],
)
def test_depth_weighs_elements_and_nothing_else(given, said):
    with pytest.raises(SettingError, match=said):
        neardup.SimHash(**given)


def test_a_named_method_takes_every_setting_of_its_type():
    for name, named in METHODS.items():
        for setting in constraints_of(type(named)):
            assert neardup.method(name, **{setting: getattr(named, setting)}) == named
    changed = neardup.method("structure", threshold=0.55, rows_per_band=3, seed=7)
    assert changed == dataclasses.replace(
        METHODS["structure"], threshold=0.55, rows_per_band=3, seed=7
    )
    assert neardup.method("decay", decay=0.5).decay == 0.5


def test_a_setting_that_a_named_method_does_not_have_is_refused_with_those_it_has():
    with pytest.raises(
        SettingError, match=r"bits does not go with method='page': got bits=32\. Its settings"
    ):
        neardup.method("page", bits=32)
    with pytest.raises(
        SettingError, match=r"method must be one of .*: got 'pages'\. Did you mean 'page'"
    ):
        neardup.method("pages")


def test_structure_is_what_a_page_must_reach_beside_its_text():
    assert neardup.method("page").of_structure == neardup.method("structure")


def run(*arguments: object) -> str:
    result = CliRunner().invoke(cli, [str(one) for one in arguments])
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_the_commands_for_pages(tmp_path):
    archive = write_archive(tmp_path / "crawl.warc.gz")
    folder = write_pages(tmp_path / "pages")
    run("dedup", archive, "-o", tmp_path / "a", "--method", "structure")
    assert pq.read_table(tmp_path / "a" / "removed.parquet")["id"].to_pylist() == [
        "https://example.org/2",
        "https://example.org/3",
        "https://example.org/4",
    ]
    run(
        "dedup",
        folder,
        "-o",
        tmp_path / "b",
        "--method",
        "content",
        "--ngram",
        2,
        "--threshold",
        0.6,
    )
    run("sign", folder, "-o", tmp_path / "fp.parquet", "--method", "tags")
    assert pq.read_table(tmp_path / "fp.parquet").num_rows == 5
    run("sign", archive, "-o", tmp_path / "decay.parquet", "--method", "decay")
    said = run("cluster", archive, "-o", tmp_path / "c", "--method", "structure")
    assert pq.read_table(tmp_path / "c" / "cluster_summary.parquet")["size"].to_pylist() == [3, 2]
    assert "body.shop > table" in said
    said = run("compare", folder / "0.html", folder / "1.html", "--plain")
    assert "Content" in said
    assert "+     table" in said or "+   table" in said
    told = json.loads(
        run("compare", folder / "0.html", folder / "4.html", "--method", "page", "--json")
    )
    assert (told["similarity"], told["structure"], told["duplicate"]) == (1.0, 1.0, True)


def test_pages_are_compared_in_whatever_encoding_they_are(tmp_path):
    page = f"<html><head><meta charset=gb2312></head><body class=news><p>{'鲸鱼在海里唱歌。' * 9}</p></body>"  # noqa: E501
    (tmp_path / "a.html").write_bytes(page.encode("gb18030"))
    (tmp_path / "b.html").write_bytes(page.replace("gb2312", "utf-8").encode())
    told = json.loads(
        run("compare", tmp_path / "a.html", tmp_path / "b.html", "--method", "page", "--json")
    )
    assert (told["similarity"], told["same_text"]) == (1.0, True)


def test_signatures_of_pages_are_those_of_the_text_that_the_method_takes():
    texts = texts_of_pages(pa.array(PAGES, pa.large_string()), main=True)
    signed = neardup.sign(PAGES, method=neardup.method("content", ngram=2))
    assert (signed.values == neardup.sign(texts, method=neardup.MinHash(ngram=2)).values).all()
    assert signed.scheme["features"]["html"] == "main"


def test_signatures_of_structure_count_rare_runs_as_the_method_does():
    signed = neardup.sign(PAGES, method="structure")
    table = neardup.document_frequencies(PAGES, method="structure")
    method = method_of(neardup.method("structure")).with_idf(table)
    sets = method.describe(pa.array(PAGES, pa.large_string())).sets
    assert (signed.values == minhash.sign(*sets, 128, 1)).all()
    assert signed.scheme["features"]["tokens"] == "tags"
    assert signed.scheme["features"]["document_frequencies"] == table.version
    with pytest.raises(
        SettingError, match=r"boost_rare counts the documents .* got lists of tokens"
    ):
        neardup.sign([["a", "b"]], method="structure")


def test_a_signature_is_of_one_set_of_features():
    with pytest.raises(SettingError, match=r"min_structure compares two: got min_structure=0\.4"):
        neardup.sign(PAGES, method="page")
