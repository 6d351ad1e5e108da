"""Check the number of documents that stay of a group against a plain loop over all pairs."""

from __future__ import annotations

import random
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup

pytestmark = pytest.mark.slow

METHOD = neardup.MinHash(
    ngram=2, threshold=0.5, num_bands=64, rows_per_band=1
)  # misses a pair in 2e-20
WORDS = "abcdef"
KEYS = {
    "first": lambda row: 0,
    "last": lambda row: -row["row"],
    "longest": lambda row: -len(row["text"]),
    "shortest": lambda row: len(row["text"]),
    "max:stars": lambda row: -row["stars"],
}


def shingles(text: str) -> frozenset[tuple[str, ...]]:
    words = text.split()
    return frozenset(pairwise(words)) if len(words) > 1 else frozenset([tuple(words)])


def similarity(left: dict, right: dict) -> float:
    left_set = shingles(left["text"])
    right_set = shingles(right["text"])
    return len(left_set & right_set) / len(left_set | right_set)


def made_up(rng: random.Random) -> list[dict]:
    """Return rows of texts; many of them differ in a word or two."""
    texts: list[list[str]] = []
    for _ in range(rng.randint(1, 14)):
        words = (
            list(rng.choice(texts))
            if texts and rng.random() < 0.7
            else rng.choices(WORDS, k=rng.randint(1, 9))
        )
        for _ in range(rng.randint(0, 2)):
            words[rng.randrange(len(words))] = rng.choice(WORDS)
        texts.append(words)
    return [
        {"row": row, "text": " ".join(words), "stars": rng.randint(0, 3)}
        for row, words in enumerate(texts)
    ]


def expected(rows: list[dict], keep: str, copies: int, num_against: int) -> set[int]:
    """Return the removed rows: of each kept row and its near-duplicates, all but the first
    `copies`.
    """
    new = sorted(rows[num_against:], key=KEYS[keep])
    kept = rows[:num_against]
    groups = {row["row"]: [row["row"]] for row in kept}
    for row in new:
        near = [(similarity(row, other), -place, other) for place, other in enumerate(kept)]
        best = max(
            (found for found in near if found[0] >= METHOD.threshold),
            default=None,
            key=lambda found: found[:2],
        )
        if best is None:
            kept.append(row)
            groups[row["row"]] = [row["row"]]
        else:
            groups[best[2]["row"]].append(row["row"])
    return {row for group in groups.values() for row in group[copies:]}


def removed_rows(rows: list[dict], keep: str, num_against: int) -> set[int]:
    table = pa.Table.from_pylist(rows)
    against = None if not num_against else table.slice(0, num_against)
    result = neardup.dedup(table.slice(num_against), against=against, method=METHOD, keep=keep)
    rows_of_source = result.removed["row"].to_pylist()
    assert result.removed["id"].to_pylist() == [str(row + num_against) for row in rows_of_source]
    assert (
        result.report["counts"]["kept"]
        == result.kept.num_rows
        == len(rows) - num_against - len(rows_of_source)
    )
    return {row + num_against for row in rows_of_source}


def check_copies(seed: int) -> None:
    rng = random.Random(seed)
    rows = made_up(rng)
    num_against = rng.choice([0, 0, rng.randint(0, len(rows) - 1)])
    keep = rng.choice([*KEYS])
    copies = rng.randint(1, 4)
    wanted = f"{keep},first:{copies}" if keep == "max:stars" else f"{keep}:{copies}"
    assert removed_rows(rows, wanted, num_against) == expected(rows, keep, copies, num_against)


def check_none(seed: int) -> None:
    rng = random.Random(seed)
    rows = made_up(rng)
    num_against = rng.choice([0, 0, rng.randint(0, len(rows) - 1)])
    near = {
        row["row"]
        for row in rows[num_against:]
        if any(row is not other and similarity(row, other) >= METHOD.threshold for other in rows)
    }
    assert removed_rows(rows, "none", num_against) == near


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("check", [check_copies, check_none])
def test_the_first_of_each_group_stay_or_none_that_has_a_near_duplicate(check, seed):
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("check", [check_copies, check_none])
def test_hundreds_of_tables_are_decided_as_the_plain_loop_decides(check):
    for seed in range(500):
        check(seed)


def test_one_copy_is_the_default():
    table = pa.Table.from_pylist(made_up(random.Random(4)))
    tables = [
        neardup.dedup(table, method=METHOD, keep=keep).removed for keep in ("first", "first:1")
    ]
    assert tables[0].num_rows
    assert tables[0].equals(tables[1])


@pytest.mark.parametrize("keep", ["none", "longest:2"])
def test_files_and_batches_do_not_matter(tmp_path, keep):
    rows = [row | {"row": 0} for seed in range(6) for row in made_up(random.Random(seed))]
    whole = pa.Table.from_pylist(rows)
    for place in range(3):
        part = whole.slice(
            place * len(rows) // 3, (place + 1) * len(rows) // 3 - place * len(rows) // 3
        )
        pq.write_table(part, tmp_path / f"{place}.parquet")
    one = neardup.dedup(whole, method=METHOD, keep=keep)
    other = neardup.dedup(tmp_path, method=METHOD, keep=keep, batch_rows=3, threads=2)
    names = ["id", "kept_id", "similarity", "is_exact"]
    names = [name for name in names if name in one.removed.schema.names]
    assert one.removed.select(names).equals(other.removed.select(names))
    assert one.removed.num_rows
    assert one.report["cluster_sizes"] == other.report["cluster_sizes"]


def test_annotated_rows_have_the_number_of_their_duplicates(tmp_path):
    texts = ["a b c d e", "a b c d e!", "x y z", "a b c d e?"]
    found = {}
    for keep in ("first", "first:2", "none"):
        output = tmp_path / keep.replace(":", "-")
        neardup.dedup(pa.table({"text": texts}), keep=keep, output=output, write="annotated")
        (file,) = (output / "annotated").iterdir()
        found[keep] = (
            pq.read_table(file).select(["duplicate_of", "cluster", "duplicates"]).to_pylist()
        )
    assert [(row["duplicate_of"], row["duplicates"]) for row in found["first"]] == [
        (None, 2),
        ("0", None),
        (None, 0),
        ("0", None),
    ]
    assert [row["duplicates"] for row in found["first:2"]] == [1, 0, 0, None]
    assert [row["duplicates"] for row in found["none"]] == [None, None, 0, None]
    assert [row["cluster"] for row in found["none"]] == [0, 0, 2, 0]
    removed = pq.read_table(tmp_path / "none" / "removed.parquet")
    assert removed.select(["id", "kept_id", "cluster"]).to_pylist() == [
        {"id": "0", "kept_id": "1", "cluster": 0},
        {"id": "1", "kept_id": "0", "cluster": 0},
        {"id": "3", "kept_id": "0", "cluster": 0},
    ]


COPIES = ["a b c", "a b c"]


@pytest.mark.parametrize("command", [neardup.cluster, neardup.sweep])
def test_commands_that_keep_one_document_of_each_cluster_refuse_to_keep_none(command):
    with pytest.raises(neardup.SettingError, match="one document of each cluster: got keep='none'"):
        command(COPIES, keep="none")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep": "none,longest"}, r"keep='none' keeps no copy.*got 'none,longest'"),
        (
            {"keep": "none", "method": neardup.MinHash(similarity="containment")},
            r"keep='none' compares documents in both directions.*containment",
        ),
        (
            {"keep": "none", "rethreshold": True},
            r"do not decide about chains.*got keep='none'",
        ),
        ({"keep": "longest:0"}, "keep must be one of"),
        ({"keep": "longest:2,first"}, "keep must be one of"),
        ({"keep": "none:2"}, "keep must be one of"),
        ({"keep": "max:stars:2x"}, "No column 'stars:2x'"),
    ],
    ids=["none and order", "containment", "rethreshold", "0", "2 of one key", "none:2", "2x"],
)
def test_numbers_of_copies_that_cannot_be_kept_are_refused(options, message):
    with pytest.raises(neardup.errors.NeardupError, match=message):
        neardup.dedup(COPIES, **options)


def test_an_index_keeps_one_copy(tmp_path):
    texts = COPIES
    neardup.Index.create(tmp_path / "a.index").close()
    with pytest.raises(neardup.SettingError, match=r"keep must be 'first' .*got 'first:2'"):
        neardup.dedup(texts, against=tmp_path / "a.index", keep="first:2")
