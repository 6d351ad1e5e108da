"""Run neardup and the oracle on the same texts, and bring both answers into one form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa

import neardup
from neardup.settings.methods import MethodSettings, SimHash
from reference import near, priority, sieve
from reference.documents import documents_of, fingerprinted

Texts = Sequence[str | None]
MEASURES = ("distance", "similarity", "exact")  # of these each method has its own


class Answer(NamedTuple):
    """A decision for every new document, by running number, documents of the earlier corpus first.

    removals : removed document -> (kept one, similarity, exact). pairs : (left, right, similarity,
    exact), rising. With SimHash the distance stands before the similarity, or for it where it alone
    decides.
    """

    kept: list[int]
    removals: dict[int, tuple]
    pairs: list[tuple]


def table_of(texts: Texts, first: int = 0, ranks: Sequence[float | None] | None = None) -> pa.Table:
    """Return texts as a table in which the id is the running number from `first`."""
    columns: dict[str, Any] = {
        "id": pa.array([str(first + i) for i in range(len(texts))], pa.string()),
        "text": pa.array(texts, pa.string()),
    }
    if ranks is not None:
        columns["score"] = pa.array(ranks, pa.float64())
    return pa.table(columns)


def run(
    texts: Texts,
    method: MethodSettings,
    *,
    against: Texts | None = None,
    ranks: Sequence[float | None] | None = None,
    **options: Any,
) -> neardup.Deduplication:
    """Deduplicate texts held in a table."""
    num_against = len(against or ())
    earlier = None if against is None else table_of(against)
    return neardup.dedup(
        table_of(texts, num_against, ranks), method=method, against=earlier, **options
    )


def answer_of(result: neardup.Deduplication) -> Answer:
    """Return what a run decided. Requires: ids are running numbers."""
    removals = {
        int(row["id"]): (int(row["kept_id"]), *(row[name] for name in MEASURES if name in row))
        for row in result.removed.to_pylist()
    }
    kept = result.kept
    numbers = [int(one) for one in kept["id"].to_pylist()] if kept.num_rows else []
    return Answer(numbers, removals, pairs_of(result.pairs))


def pairs_of(pairs: pa.Table) -> list[tuple]:
    """Return a table of pairs as tuples, rising."""
    rows = pairs.to_pylist()
    return sorted(
        (
            int(row["left_id"]),
            int(row["right_id"]),
            *(row[name] for name in MEASURES if name in row),
        )
        for row in rows
    )


def expected(
    texts: Texts,
    method: MethodSettings,
    *,
    against: Texts = (),
    ranks: Sequence[float | None] | None = None,
    keep: str = "first",
    max_bucket_size: int = 100_000,
) -> Answer:
    """Return what the oracle decides."""
    order, documents, rules = _in_order(texts, method, against, ranks, keep, max_bucket_size)
    decisions = _oracle(method).sieve(documents, rules)
    return _answer(order, len(against), decisions.removals, decisions.pairs)


def expected_connected(
    texts: Texts,
    method: MethodSettings,
    *,
    against: Texts = (),
    ranks: Sequence[float | None] | None = None,
    keep: str = "first",
) -> Answer:
    """Return the connected clusters of the oracle; pairs are left out."""
    order, documents, rules = _in_order(texts, method, against, ranks, keep, 100_000)
    return _answer(order, len(against), _oracle(method).connected(documents, rules), [])


def expected_pairs(
    texts: Texts, method: MethodSettings, max_bucket_size: int = 100_000
) -> list[tuple]:
    """Return all pairs of the oracle."""
    order, documents, rules = _in_order(texts, method, (), None, "first", max_bucket_size)
    if (
        getattr(method, "similarity", None) == "containment"
    ):  # of the smaller document in the larger one
        by_size = sorted(range(len(order)), key=lambda place: -len(documents[place].shingles))
        order = [order[place] for place in by_size]
        documents = [documents[place] for place in by_size]
    return _answer(order, 0, {}, _oracle(method).find_pairs(documents, rules)).pairs


def expected_bound(texts: Texts, method: MethodSettings, max_bucket_size: int) -> int:
    """Return how many documents have earlier ones in a bucket that does not list them."""
    _, documents, rules = _in_order(texts, method, (), None, "first", max_bucket_size)
    return sieve.sieve(documents, rules).left_out


def expected_collisions(
    texts: Texts, method: MethodSettings, max_bucket_size: int = 100_000
) -> tuple[int, int]:
    """Return how many pairs of near fingerprints the sieve finds unlike, and how many documents
    meet a full list.
    """
    _, documents, rules = _in_order(texts, method, (), None, "first", max_bucket_size)
    decisions = near.sieve(documents, rules)
    return decisions.collisions, decisions.full


def _oracle(method: MethodSettings) -> Any:
    return near if isinstance(method, SimHash) else sieve


def _in_order(
    texts: Texts,
    method: MethodSettings,
    against: Texts,
    ranks: Sequence[float | None] | None,
    keep: str,
    max_bucket_size: int,
) -> tuple[list[int], Any, Any]:
    everything = [*against, *texts]
    all_ranks = None if ranks is None else [*([None] * len(against)), *ranks]
    order = priority.order(keep, everything, all_ranks, len(against))
    ordered = [everything[number] for number in order]
    if isinstance(method, SimHash):
        threshold = None if method.confirm == "hamming" else method.threshold
        near_rules = near.Rules(method.max_distance, threshold, max_bucket_size, len(against))
        return order, fingerprinted(ordered, method), near_rules
    rules = sieve.Rules(method.threshold, method.similarity, max_bucket_size, len(against))
    return order, documents_of(ordered, method), rules


def _answer(
    order: list[int], num_against: int, removals: dict[int, Any], pairs: Sequence[Any]
) -> Answer:
    by_number = {
        order[right]: (order[pair.left], *_measured(pair)) for right, pair in removals.items()
    }
    kept = [number for number in range(num_against, len(order)) if number not in by_number]
    numbered = [
        (*sorted((order[pair.left], order[pair.right])), *_measured(pair)) for pair in pairs
    ]
    return Answer(kept, by_number, sorted(numbered))


def _measured(pair: Any) -> list:
    """Return what was measured of a pair, in the order of the columns."""
    return [value for name in MEASURES if (value := getattr(pair, name, None)) is not None]
