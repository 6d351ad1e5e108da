"""The jobs as the package simhash does them: Simhash of a text or of words, SimhashIndex."""

from __future__ import annotations

import hashlib
import itertools
import logging
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import xxhash
from shared import (
    NEAR,
    Done,
    as_matches,
    as_pairs,
    clock,
    judged_rows,
    main,
    memory,
    read_rows,
    spread,
    vote,
)
from simhash import Simhash, SimhashIndex

_SILENT = logging.getLogger("silent")
_SILENT.setLevel(logging.CRITICAL)  # it warns of every big bucket


def texts(source: str, options: dict[str, Any]) -> Done:
    """Fingerprint texts, which it cuts into runs of 4 characters, or words: listed, or counted and
    hashed faster.
    """
    form = options["form"]
    column = "text" if form == "text" else "words"

    def prepare(first: int, step: int) -> Callable[[], list[int]]:
        values = read_rows(source, column, first, step)
        if form == "counted":
            return lambda: [
                Simhash(Counter(one), hashfunc=xxhash.xxh3_64_digest).value for one in values
            ]
        return lambda: [Simhash(one).value for one in values]

    found, took = spread(prepare, options["threads"])
    hashing = (
        xxhash.xxh3_64_digest if form == "counted" else lambda data: hashlib.md5(data).digest()[8:]
    )
    values = read_rows(source, column)
    rows = judged_rows(len(found))
    features = (_runs(values[row]) if form == "text" else values[row] for row in rows)
    plain = [
        vote(int.from_bytes(hashing(one.encode()), "big") for one in document)
        for document in features
    ]
    return Done(
        [took],
        {"rows": np.array(rows), "fingerprints": found, "plain": np.array(plain, np.uint64)},
        {},
    )


def _runs(text: str) -> list[str]:
    letters = "".join(re.findall(r"[\w\u4e00-\u9fcc]+", text.lower()))
    return [letters[first : first + 4] for first in range(max(len(letters) - 3, 1))]


def pairs(source: str, options: dict[str, Any]) -> Done:
    """Ask for what is near to each before it is added."""
    values = np.load(source).tolist()

    def work() -> list[tuple[str, int]]:
        index = SimhashIndex([], k=NEAR, log=_SILENT)
        found = []
        for row, value in enumerate(values):
            simhash = Simhash(value)
            found += [(other, row) for other in index.get_near_dups(simhash)]
            index.add(str(row), simhash)
        return found

    found, took = clock(work)
    return Done(
        [took], as_pairs([int(left) for left, _ in found], [right for _, right in found]), {}
    )


def queries(source: str, options: dict[str, Any]) -> Done:
    """Fill an index, and query it one by one: it takes no batch."""
    values = np.load(source).tolist()
    batches = np.load(options["queries"])[:, : options["ask"]]
    times = []
    before = memory()
    named = ((str(row), Simhash(value)) for row, value in enumerate(values))
    index, (built, _) = clock(lambda: SimhashIndex(list(named), k=NEAR, log=_SILENT))
    facts = {"build": built, "bytes": float(memory() - before), "queries": batches.shape[1]}
    answers: dict[str, Any] = {}
    for batch in batches.tolist():
        found, took = clock(
            lambda batch=batch: [index.get_near_dups(Simhash(one)) for one in batch]
        )
        times.append(took)
        limits = [0, *itertools.accumulate(map(len, found))]
        answers = answers or as_matches(limits, [int(one) for rows in found for one in rows])
    return Done(times, answers, facts)


if __name__ == "__main__":
    main(texts=texts, pairs=pairs, queries=queries)
