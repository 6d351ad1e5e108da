"""Groups of documents are kept or removed as a whole, compared with plain loops over all
documents.
"""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import neardup
from neardup.cli.main import cli
from neardup.decide.groups import num_needed
from neardup.errors import SettingError

METHOD = neardup.MinHash(
    ngram=2, threshold=0.5, num_bands=64, rows_per_band=1
)  # misses a pair in 2e-20
WORDS = "abcdef"
KEYS = {
    "first": lambda row: 0,
    "last": lambda row: -row["row"],
    "longest": lambda row: -len(row["text"]),
    "max:stars": lambda row: -row["stars"],
}
Row = dict[str, Any]


def similarity(left: Row, right: Row) -> float:
    """Return the Jaccard similarity of the pairs of words; 0 of an empty text, which is similar to
    nothing.
    """
    one, other = (
        frozenset(pairwise(row["text"].split())) or {row["text"]} for row in (left, right)
    )
    return 0.0 if "" in one | other else len(one & other) / len(one | other)


def made_up(rng: random.Random) -> list[Row]:
    """Return rows of few groups, whose texts often differ in a word or two."""
    texts: list[list[str]] = []
    for _ in range(rng.randint(1, 14)):
        words = (
            list(rng.choice(texts))
            if texts and rng.random() < 0.7
            else rng.choices(WORDS, k=rng.randint(0, 9))
        )
        for _ in range(rng.randint(0, 2) if words else 0):
            words[rng.randrange(len(words))] = rng.choice(WORDS)
        texts.append(words)
    groups = rng.randint(1, 5)
    return [
        {
            "row": row,
            "text": " ".join(words),
            "stars": rng.randint(0, 3),
            "repo": f"r{rng.randint(1, groups)}",
        }
        for row, words in enumerate(texts)
    ]


def expected(
    rows: list[Row], keep: str, share: float, num_against: int
) -> tuple[list[Row], dict[int, int], set[int]]:
    """Return the groups, the kept document that each near-duplicate of a removed group names, and
    all removed rows.
    """
    new = sorted(rows[num_against:], key=KEYS[keep])
    kept = rows[:num_against]
    table = []
    named = {}
    removed = set()
    for repo in dict.fromkeys(row["repo"] for row in new):
        members = [row for row in new if row["repo"] == repo]
        found = {}
        for row in members:
            near = [
                (similarity(row, other), -place, other["row"]) for place, other in enumerate(kept)
            ]
            copies = [
                -place for place, other in enumerate(kept) if other["text"] == row["text"] != ""
            ]
            best = max((each for each in near if each[0] >= METHOD.threshold), default=None)
            if best is not None:
                found[row["row"]] = kept[-max(copies)]["row"] if copies else best[2]
        gone = len(found) > 0 and len(found) >= share * len(members) - 1e-9
        counts = {
            "documents": len(members),
            "near_duplicates": len(found),
            "share": len(found) / len(members),
        }
        table.append({"group": repo, **counts, "removed": gone})
        if gone:
            named |= found
            removed |= {row["row"] for row in members}
        else:
            kept = kept + members
    return table, named, removed


def check(seed: int) -> None:
    rng = random.Random(seed)
    rows = made_up(rng)
    num_against = rng.choice([0, 0, rng.randint(0, len(rows) - 1)])
    keep = rng.choice([*KEYS])
    share = rng.choice([0.01, 0.3, 0.5, 2 / 3, 1.0])
    table, named, removed = expected(rows, keep, share, num_against)
    whole = pa.Table.from_pylist(rows)
    result = neardup.dedup(
        whole.slice(num_against),
        against=whole.slice(0, num_against) if num_against else None,
        method=METHOD,
        keep=keep,
        group_by="repo",
        group_share=share,
        batch_rows=rng.choice([None, 2]),
        threads=rng.choice([1, 2]),
    )
    assert result.groups.to_pylist() == table
    pairs = result.removed.select(["id", "kept_id", "similarity"]).to_pylist()
    assert {int(row["id"]): int(row["kept_id"]) for row in pairs} == named
    for row in pairs:
        assert row["similarity"] == pytest.approx(
            similarity(rows[int(row["id"])], rows[int(row["kept_id"])]), abs=1e-12
        )
    kept = result.kept["row"].to_pylist()
    assert kept == [row["row"] for row in rows[num_against:] if row["row"] not in removed]
    assert not {row["kept_id"] for row in pairs} & set(map(str, removed))
    counts = result.report["counts"]
    assert (counts["kept"], counts["removed"]) == (len(kept), len(named))
    assert counts["removed_with_group"] == len(removed) - len(named)


@pytest.mark.parametrize("seed", range(15))
def test_groups_are_decided_as_the_plain_loop_decides(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize("seed", range(40, 48))
def test_stages_without_a_kernel_decide_the_same(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neardup.engines.local.searches.FUSED", {})
    check(seed)


@pytest.mark.parametrize(
    ("share", "num_documents", "at_least", "needed"),
    [
        (0.5, [1, 2, 3, 4], 1, [1, 1, 2, 2]),
        (0.1, [30, 31], 1, [3, 4]),
        (1.0, [1, 7], 1, [1, 7]),
        (1e-12, [1, 1000], 1, [1, 1]),
        (0.5, [1, 2, 4, 5], 2, [2, 2, 2, 3]),
    ],
    ids=["half", "rounding", "all", "at least one", "at least two"],
)
def test_the_share_of_a_group_is_rounded_up(share, num_documents, at_least, needed) -> None:
    found = num_needed(share, np.array(num_documents), at_least=at_least)
    assert found.tolist() == needed


@pytest.mark.slow
def test_hundreds_of_tables_are_decided_as_the_plain_loop_decides() -> None:
    for seed in range(300):
        check(seed)


def test_a_group_without_near_duplicates_stays_whatever_the_share() -> None:
    rows = [{"repo": "a", "text": "one two three"}, {"repo": "b", "text": "four five six"}]
    result = neardup.dedup(
        pa.Table.from_pylist(rows), method=METHOD, group_by="repo", group_share=1e-12
    )
    assert result.groups["removed"].to_pylist() == [False, False]


FILES = {
    "origin": [
        "one file of the origin, which others copy",
        "another file of the origin, copied too",
        "the origin only",
    ],
    "fork": [
        "one file of the origin, which others copy",
        "another file of the origin, copied too!",
        "new in the fork",
    ],
    "other": [
        "one file of the origin, which others copy",
        "of the other one",
        "also of the other one, and long",
    ],
    "copy": ["new in the fork"],
}
TABLE = pa.Table.from_pylist(
    [
        {"id": f"{repo}/{n}", "repo": repo, "text": text}
        for repo, texts in FILES.items()
        for n, text in enumerate(texts)
    ]
)


@pytest.mark.parametrize(
    "method",
    [
        neardup.MinHash(),
        neardup.MinHash(similarity="cosine"),
        neardup.SimHash(),
        neardup.SimHash(confirm="hamming"),
    ],
    ids=["bands", "cosine", "simhash", "hamming"],
)
def test_a_fork_is_removed_with_its_own_files_and_a_project_that_copies_one_stays(method) -> None:
    result = neardup.dedup(TABLE, method=method, group_by="repo")
    assert result.groups.to_pylist() == [
        {"group": "origin", "documents": 3, "near_duplicates": 0, "share": 0.0, "removed": False},
        {"group": "fork", "documents": 3, "near_duplicates": 2, "share": 2 / 3, "removed": True},
        {"group": "other", "documents": 3, "near_duplicates": 1, "share": 1 / 3, "removed": False},
        {"group": "copy", "documents": 1, "near_duplicates": 0, "share": 0.0, "removed": False},
    ]
    assert result.removed.select(["id", "kept_id"]).to_pylist() == [
        {"id": "fork/0", "kept_id": "origin/0"},
        {"id": "fork/1", "kept_id": "origin/1"},
    ]
    assert result.kept["id"].to_pylist() == [
        id for id in TABLE["id"].to_pylist() if not id.startswith("fork")
    ]
    assert (~result.mask).sum() == 3


def test_documents_without_a_value_are_a_group_and_near_duplicates_within_a_group_stay() -> None:
    text = "a text that is in this table several times"
    table = pa.table({"id": list("abcd"), "text": [text] * 4, "repo": [None, None, "x", "x"]})
    result = neardup.dedup(table, group_by="repo")
    assert result.groups.select(["group", "removed"]).to_pylist() == [
        {"group": "", "removed": False},
        {"group": "x", "removed": True},
    ]
    assert result.kept["id"].to_pylist() == ["a", "b"]


def test_a_group_that_is_removed_is_no_loss_to_warn_of() -> None:
    texts = [f"file number {number} of a repository that is forked" for number in range(30)]
    table = pa.table({"repo": ["a"] * 30 + ["b"] * 30 + ["c"], "text": [*texts * 2, "another one"]})
    result = neardup.dedup(table, group_by="repo", threshold=1.0)
    assert result.report["groups"]["removed"] == 1
    assert result.report["warnings"] == []


def test_what_goes_with_its_group_is_removed_from_its_input(tmp_path: Path) -> None:
    for repo, texts in FILES.items():
        lines = [json.dumps({"text": text, "repo": repo}) for text in ["", *texts]]
        (tmp_path / f"{repo}.jsonl").write_text("\n".join(lines))
    paths = [str(tmp_path / f"{repo}.jsonl") for repo in FILES]
    against = ["--against", str(tmp_path / "against.txt")]
    (tmp_path / "against.txt").write_text("a text\n")
    options = [*against, "--group-by", "repo", "--text-column", "text", "-o", str(tmp_path / "out")]
    ran = CliRunner().invoke(cli, ["dedup", *paths, *options])
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert [row["removed"] for row in report["inputs"]] == [0, 0, 4, 0, 0]
    assert report["counts"]["removed"] + report["counts"]["removed_with_group"] == 4
    assert "nothing to compare: goes with its group" in ran.output
    assert (
        "nothing to compare: goes with its group" in (tmp_path / "out" / "report.html").read_text()
    )


def test_the_folder_the_command_and_its_files_have_the_groups(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "in.parquet")
    (tmp_path / "run.toml").write_text('group-by = "repo"\ngroup-share = 0.6\n')
    options = ["dedup", str(tmp_path / "in.parquet"), "--config", str(tmp_path / "run.toml")]
    first = CliRunner().invoke(cli, [*options, "-o", str(tmp_path / "a")])
    assert first.exit_code == 0, first.output
    assert "Removed with their group" in first.output
    assert "1 of 4 groups of repo" in first.output
    report = [
        "--config",
        str(tmp_path / "a" / "report.json"),
        "-o",
        str(tmp_path / "b"),
        "--write",
        "mask",
    ]
    assert CliRunner().invoke(cli, ["dedup", *report]).exit_code == 0
    for folder in ("a", "b"):
        assert pq.read_table(tmp_path / folder / "groups.parquet")["removed"].to_pylist() == [
            False,
            True,
            False,
            False,
        ]
        shown = json.loads((tmp_path / folder / "report.json").read_text())
        wanted = {
            "column": "repo",
            "share": 0.6,
            "groups": 4,
            "removed": 1,
            "removed_with_group": 1,
        }
        assert shown["groups"] == wanted
        assert "1 of 4 groups of repo removed" in (tmp_path / folder / "report.html").read_text()
    assert pq.read_table(tmp_path / "a/kept/in.parquet").num_rows == 7
    assert (
        pq.read_table(tmp_path / "b/mask.parquet")["kept"].to_pylist()
        == [True] * 3 + [False] * 3 + [True] * 4
    )
    with neardup.Index.from_run("memory:", tmp_path / "a") as index:
        assert index.info()["documents"]["kept"] == 7


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"linkage": "connected"},
            "group_by keeps or removes whole groups, which linkage does not allow for",
        ),
        ({"keep": "longest:2"}, "got keep='longest:2' with group_by='repo'"),
        ({"keep": "none"}, "got keep='none' with group_by='repo'. Leave keep or group_by out"),
        ({"passages": 50}, "got passages=50"),
        ({"within": "repo"}, "got within='repo' with group_by='repo'"),
        (
            {"group_by": None, "group_share": 0.3},
            "got group_share=0.3 without group_by. Name the column",
        ),
        ({"count_by": "id"}, "Leave count_by or group_by out"),
        ({"group_share": 0}, "group_share must be a number above 0 and at most 1: got 0"),
        ({"method": neardup.MinHash(similarity="containment")}, "Use another similarity"),
    ],
)
def test_what_groups_do_not_go_with_is_refused(options: dict[str, Any], message: str) -> None:
    if "engine" in options:
        pytest.importorskip("pyspark")
    with pytest.raises(SettingError, match=message):
        neardup.dedup(TABLE, **{"group_by": "repo", **options})


def test_a_run_that_counted_by_the_column_is_resumed_with_groups(tmp_path: Path) -> None:
    class Stop:  # after the reading, which stores the names of all values
        def begin(self, stage: str, total: int | None) -> None:
            if stage == "propose":
                raise KeyboardInterrupt

        def advance(self, documents: int, num_bytes: int) -> None: ...
        def end(self, stage: str, seconds: float) -> None: ...

    pq.write_table(TABLE, tmp_path / "in.parquet")
    with pytest.raises(KeyboardInterrupt):
        neardup.dedup(
            tmp_path / "in.parquet", output=tmp_path / "out", count_by="repo", progress=Stop()
        )
    fresh = neardup.dedup(tmp_path / "in.parquet", group_by="repo")
    resumed = neardup.dedup(
        tmp_path / "in.parquet", output=tmp_path / "out", group_by="repo", resume=True
    )
    assert resumed.groups.equals(fresh.groups)
    assert resumed.removed.equals(fresh.removed)


def test_an_index_does_not_take_groups_and_one_of_a_run_needs_ids(tmp_path: Path) -> None:
    neardup.Index.create(tmp_path / "a.index").close()
    with pytest.raises(SettingError, match="group_by must be None with an index as against"):
        neardup.dedup(TABLE, against=tmp_path / "a.index", group_by="repo")
    (tmp_path / "in.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in TABLE.drop(["id"]).to_pylist())
    )
    neardup.dedup(tmp_path / "in.jsonl", output=tmp_path / "out", group_by="repo")
    with pytest.raises(neardup.InputError, match="have no ids"):
        neardup.Index.from_run("memory:", tmp_path / "out")
