"""A rule that neardup does not have, in one module: this one. It runs on every engine that finds
all pairs.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup
from neardup.decide.chains import first_of_clusters
from neardup.decide.outcome import Removals
from neardup.decide.rule import Decision, Found, Measuring, Names, Rule, RuleTable
from neardup.decide.rules import RULES, register
from neardup.settings.run import LINKAGES
from spark_session import IGNORED

METHOD = neardup.MinHash(
    ngram=1, threshold=0.5, num_bands=64, rows_per_band=1
)  # misses a pair in 2e-20
SCHEMA = pa.schema([("id", pa.large_string()), ("sum", pa.float64())])


# The rule: 48 lines.
class Central(Rule):
    """Keep the document of each cluster with the largest sum of similarities; of equal ones, the
    earliest.

    The first document of an earlier collection comes before all others. A copy has the sum of its
    first document.
    """

    compares_more = True
    tables = ("centres",)

    def decide(self, found: Found) -> Decision:
        """Choose the centre of each cluster."""
        queue = found.queue
        pairs = found.confirmed
        size = len(queue.order)
        cluster = first_of_clusters(found)
        sums = np.zeros(size)
        for ends in (pairs.left, pairs.right):
            sums += np.bincount(ends, pairs.measured["similarity"], size)
        sums = sums[queue.representative].round(9)  # that the order of the pairs does not matter
        is_old = np.arange(size) < queue.num_against
        by_cluster = np.lexsort((np.arange(size), np.where(is_old, 0, -sums), ~is_old, cluster))
        starts = np.searchsorted(cluster[by_cluster], cluster)
        centre = by_cluster[starts].astype(np.uint32)
        removed = np.flatnonzero((centre != np.arange(size)) & ~is_old)
        removed = removed[np.argsort(queue.order[removed])]
        documents = queue.order[removed]
        kept = queue.order[centre[removed]]
        centres = np.unique(centre[removed])

        def rows(names: Names) -> Iterator[pa.RecordBatch]:
            ids = names.ids(queue.order[centres]).cast(pa.large_string())
            yield pa.RecordBatch.from_arrays([ids, pa.array(sums[centres])], schema=SCHEMA)

        return Decision(
            removals=Removals(documents, kept, found.measure(kept, documents)),
            left=pairs.left,
            right=pairs.right,
            measured=pairs.measured,
            tables=(RuleTable("centres", SCHEMA, rows),),
            facts={
                "central": {
                    "centres": len(centres),
                    "moved": int(np.count_nonzero(centres != cluster[centres])),
                }
            },
        )


@pytest.fixture(autouse=True)
def central() -> Iterator[None]:
    register("central", Central)
    yield
    del RULES["central"]
    LINKAGES.remove("central")


def made_up(seed: int) -> list[str]:
    rng = random.Random(seed)
    texts = [rng.sample("abcdefghijkl", rng.randint(3, 8)) for _ in range(6)]
    for _ in range(30):
        words = list(rng.choice(texts))
        for _ in range(rng.randint(0, 2)):
            words[rng.randrange(len(words))] = rng.choice("abcdefghijkl")
        texts.append(words)
    return [" ".join(words) for words in texts]


def expected(texts: list[str], num_against: int) -> dict[int, int]:
    """Return the centre of each removed document, by loops over all pairs."""
    sets = [frozenset(text.split()) for text in texts]
    near: dict[int, dict[int, float]] = defaultdict(dict)
    first = {text: texts.index(text) for text in texts}
    for left, right in ((i, j) for i in range(len(texts)) for j in range(len(texts)) if i != j):
        similarity = len(sets[left] & sets[right]) / len(sets[left] | sets[right])
        if similarity >= METHOD.threshold:
            near[left][right] = similarity
    sums = {}
    for document, text in enumerate(texts):
        others = {
            first[texts[other]]: value
            for other, value in near[first[text]].items()
            if texts[other] != text
        }
        sums[document] = round(sum(others.values()), 9)
    named = {}
    seen = set()
    for begin in range(len(texts)):
        members = set()
        waiting = [begin]
        while waiting:
            member = waiting.pop()
            if member not in members | seen:
                members.add(member)
                waiting += near[member]
        seen |= members
        if members:
            centre = min(
                members,
                key=lambda one: (one >= num_against, one if one < num_against else -sums[one], one),
            )
            named |= {
                member: centre for member in members if member != centre and member >= num_against
            }
    return named


def table_of(texts: list[str], first: int) -> pa.Table:
    return pa.table({"id": [f"d{first + row}" for row in range(len(texts))], "text": texts})


def run(texts: list[str], num_against: int, **options: Any) -> neardup.Deduplication:
    against = table_of(texts[:num_against], 0) if num_against else None
    new = table_of(texts[num_against:], num_against)
    return neardup.dedup(new, against=against, method=METHOD, linkage="central", **options)


def named_in(result: neardup.Deduplication) -> dict[int, int]:
    rows = result.removed.select(["id", "kept_id"]).to_pylist()
    return {int(row["id"][1:]): int(row["kept_id"][1:]) for row in rows}


@pytest.mark.parametrize("num_against", [0, 7])
@pytest.mark.parametrize("seed", range(10))
def test_a_rule_in_one_module_decides_as_plain_loops_do(seed: int, num_against: int) -> None:
    texts = made_up(seed)
    result = run(texts, num_against)
    assert named_in(result) == expected(texts, num_against)
    assert result.report["counts"]["kept"] == len(texts) - num_against - len(result.removed)


def test_its_table_and_its_part_of_the_report_are_in_the_result_and_in_the_folder(
    tmp_path: Path,
) -> None:
    texts = made_up(3)
    for _ in range(2):  # the second run replaces an output that has the table
        result = run(texts, 0, output=tmp_path / "out", overwrite=True)
    centres = {f"d{centre}" for centre in expected(texts, 0).values()}
    assert set(result.rule_tables["centres"]["id"].to_pylist()) == centres
    assert pq.read_table(tmp_path / "out" / "centres.parquet").equals(result.rule_tables["centres"])
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["central"]["centres"] == len(centres)


def test_its_copies_may_stay_and_an_unknown_rule_is_refused() -> None:
    texts = made_up(4)
    kept = run(texts, 0, keep="first:2").report["counts"]["kept"]
    assert kept >= run(texts, 0).report["counts"]["kept"]
    none = run(texts, 0, keep="none").report
    assert none["settings"]["linkage"] == "central"
    assert none["counts"]["kept"] < len(texts) - none["central"]["centres"]
    with pytest.raises(
        neardup.errors.SettingError, match="linkage must be one of 'sieve', 'connected', 'central'"
    ):
        neardup.dedup(texts, linkage="centre")


@pytest.mark.parametrize("keep", ["first", "first:2", "none"])
def test_a_method_that_it_refuses_is_refused_however_many_copies_stay(
    keep: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Rule, method: Measuring) -> None:
        raise neardup.errors.SettingError(f"No centre by {method.measures}.")

    monkeypatch.setattr(Central, "refuse", refuse)
    with pytest.raises(neardup.errors.SettingError, match="No centre by"):
        run(made_up(4), 0, keep=keep)


@pytest.mark.slow
def test_the_command_line_takes_it_by_its_name(tmp_path: Path) -> None:
    texts = made_up(5)
    pq.write_table(table_of(texts, 0), tmp_path / "in.parquet")
    folder = Path(__file__).parent
    code = (
        f"import sys; sys.path[:0] = [{str(folder)!r}, {str(folder.parent)!r}]\n"
        "from test_own_rule import Central, register\n"
        "register('central', Central)\n"
        "from neardup.cli.main import cli\n"
        "cli()\n"
    )
    command = [
        sys.executable,
        "-c",
        code,
        "dedup",
        "in.parquet",
        "-o",
        "out",
        "--linkage",
        "central",
        "--ngram",
        "1",
    ]
    command += ["--threshold", "0.5", "--num-bands", "64", "--rows-per-band", "1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    removed = (
        pq.read_table(tmp_path / "out" / "removed.parquet").select(["id", "kept_id"]).to_pylist()
    )
    centres = expected(texts, 0)
    assert {int(row["id"][1:]): int(row["kept_id"][1:]) for row in removed} == centres
    assert re.search(rf"Centres +{len(set(centres.values()))}\n", done.stdout)
    assert "Centres" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.slow
@pytest.mark.filterwarnings(IGNORED)
@pytest.mark.parametrize("tables", [True, False])
def test_the_rule_runs_on_spark(spark: Any, tmp_path: Path, tables: bool) -> None:
    for name, seed in (("old", 5), ("new", 6), ("more", 7)):
        pq.write_table(pa.table({"text": made_up(seed)[:20]}), tmp_path / f"{name}.parquet")
    against, *source = (str(tmp_path / f"{name}.parquet") for name in ("old", "new", "more"))
    method = neardup.MinHash(ngram=1, threshold=0.7, num_bands=64, rows_per_band=1)
    given = {
        "against": against,
        "method": method,
        "linkage": "central",
        "keep": "longest",
        "tables": tables,
    }
    results = [
        neardup.dedup(source, engine=engine, output=tmp_path / engine, **given)
        for engine in ("spark", "local")
    ]
    found, expected = results
    assert expected.report["central"]["moved"] > 0
    for part in ("central", "inputs", "cluster_sizes", "similarities"):
        assert found.report[part] == expected.report[part], part
    for table in ("removed", "centres"):
        pairs = [
            pq.read_table(tmp_path / engine / f"{table}.parquet") for engine in ("spark", "local")
        ]
        assert len(pairs[1])
        assert pairs[0].equals(pairs[1]), table


@pytest.mark.slow
@pytest.mark.filterwarnings(IGNORED)
def test_the_rule_runs_over_a_dataframe(spark: Any) -> None:
    from neardup import spark as over_frames

    table = table_of(made_up(5)[:20], 0).sort_by("id")  # a DataFrame comes in the order of its ids
    frame = spark.createDataFrame(table)
    found = over_frames.dedup(
        frame, id_column="id", method=METHOD, linkage="central"
    ).removed.collect()
    here = (
        neardup.dedup(table, method=METHOD, linkage="central")
        .removed.select(["id", "kept_id"])
        .to_pylist()
    )
    assert {row["id"]: row["kept_id"] for row in found} == {
        row["id"]: row["kept_id"] for row in here
    }
