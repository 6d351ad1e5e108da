"""What datasketch answers to fixed questions; asked of the package and of our face, by the same
calls.

    python tests/reference/datasketch_cases.py > tests/data/datasketch-2.json

with the package installed writes its answers. Long ones are kept as the beginning of their SHA-256.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import random
from typing import Any

import numpy as np


def digest(values: Any) -> str:
    data = (
        values if isinstance(values, (bytes, bytearray)) else np.ascontiguousarray(values).tobytes()
    )
    return hashlib.sha256(bytes(data)).hexdigest()[:16]


def word_sets(seed: int, num_sets: int = 40) -> list[list[bytes]]:
    """Return sets of words, each followed by one much like it."""
    generator = random.Random(seed)
    sets = []
    for _ in range(num_sets // 2):
        words = [b"word%d" % generator.randrange(80) for _ in range(generator.randint(1, 60))]
        sets += [words, [*words[:-1], b"other"]]
    return sets


def constant(data: bytes) -> int:
    """A hash function of one's own, of 32 bits."""
    return int.from_bytes(hashlib.md5(data).digest()[:4], "big")


def signatures(package: Any, extra: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for num_perm, seed, size in itertools.product(
        (1, 8, 128, 257), (0, 1, 42, 2**32 - 1), (0, 1, 2, 200)
    ):
        one = package.MinHash(num_perm=num_perm, seed=seed, **extra)
        one.update_batch([b"token %d" % i for i in range(size)])
        name = f"{num_perm} {seed} {size}"
        found[name] = [digest(one.permutations), digest(one.hashvalues), str(one.hashvalues.dtype)]
    sets = word_sets(1)
    many = package.MinHash.bulk(sets, num_perm=64, **extra)
    found["first"] = many[0].hashvalues[:8].tolist()
    found["jaccard"] = [many[0].jaccard(one) for one in many[1:9]]
    found["count"] = [float(one.count()).hex() for one in many[:4]]
    found["union"] = digest(package.MinHash.union(*many[:3]).hashvalues)
    own = package.MinHash(num_perm=16, hashfunc=constant, **extra)
    own.update(b"Hello")
    found["own hash"] = own.hashvalues.tolist()
    return found


def stored(package: Any, extra: dict[str, str]) -> dict[str, Any]:
    """Return the bytes of LeanMinHash in each byte order, and of bBitMinHash, and what the latter
    estimate.
    """
    found: dict[str, Any] = {}
    first, second = package.MinHash.bulk(word_sets(2)[:2], num_perm=70, seed=7, **extra)
    short = package.LeanMinHash(package.MinHash.bulk([[b"Hello"]], num_perm=2, **extra)[0])
    for order in "@=<>!":
        buffers = [
            bytearray(short.bytesize(order)),
            bytearray(package.LeanMinHash(first).bytesize(order)),
        ]
        short.serialize(buffers[0], order)
        package.LeanMinHash(first).serialize(buffers[1], order)
        found[order] = [buffers[0].hex(), digest(buffers[1])]
    for b, r in itertools.product((0, 1, 2, 3, 7, 12, 32), (0.0, 0.25)):
        one = package.bBitMinHash(first, b, r)
        other = package.bBitMinHash(second, b, r)
        found[f"{b} {r}"] = [
            one.bytesize(),
            digest(one.__getstate__()),
            one.jaccard(other).hex() if b else None,
        ]
    return found


def weighted(package: Any) -> dict[str, Any]:
    generator = random.Random(3)
    rows = [[generator.choice([0, 0, 1, 2, 300, 0.25]) for _ in range(30)] for _ in range(12)] + [
        [0] * 30
    ]
    maker = package.WeightedMinHashGenerator(30, sample_size=20, seed=9)
    alone = [maker.minhash(row) for row in rows[:-1]]
    together = maker.minhash_many(np.array(rows))
    return {
        "first": alone[0].hashvalues[:4].tolist(),
        "minhash": [digest(one.hashvalues) for one in alone],
        "minhash_many": [None if one is None else digest(one.hashvalues) for one in together],
        "jaccard": [alone[0].jaccard(one) for one in alone],
    }


def chosen(package: Any, **settings: Any) -> list[int] | None:
    """Return the bands and rows that an index has; None where the package refuses the settings."""
    try:
        index = package.MinHashLSH(**settings)
    except ValueError:
        return None
    return [index.b, index.r]


def parameters(package: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        f"{twentieths / 20} {num_perm} {weights}": chosen(
            package, threshold=twentieths / 20, num_perm=num_perm, weights=weights
        )
        for twentieths in range(1, 20, 2)
        for num_perm in (16, 64, 128)
        for weights in ((0.5, 0.5), (0.25, 0.75), (0.0, 1.0))
    }
    for threshold, m in itertools.product((0.2, 0.5, 0.8), (2, 8)):
        ensemble = package.MinHashLSHEnsemble(threshold=threshold, num_perm=64, num_part=1, m=m)
        found[f"containment {threshold} {m}"] = ensemble.params.tolist()
    return found


def indexes(package: Any, extra: dict[str, str]) -> dict[str, Any]:
    sets = word_sets(4, 80)
    many = package.MinHash.bulk(sets, num_perm=64, **extra)
    index = package.MinHashLSH(threshold=0.6, num_perm=64)
    rest = package.MinHashLSH(threshold=0.6, num_perm=64)
    for place, one in enumerate(many):
        (index if place < 60 else rest).insert(place, one)
    index.merge(rest)
    for place in range(0, 80, 7):
        index.remove(place)
    forest = package.MinHashLSHForest(num_perm=64, l=6)
    for place, one in enumerate(many):
        forest.add(place, one)
    forest.index()
    found: dict[str, Any] = {
        "query": [sorted(index.query(one)) for one in many],
        "counts": digest(
            json.dumps(
                [sorted((k.hex(), n) for k, n in t.items()) for t in index.get_counts()]
            ).encode()
        ),
        "forest": [sorted(forest.query(one, 5)) for one in many],
        "forest values": digest(forest.get_minhash_hashvalues(3)),
    }
    for num_part in (1, 2, 5, 40):
        ensemble = package.MinHashLSHEnsemble(threshold=0.7, num_perm=64, num_part=num_part)
        ensemble.index([(place, one, len(set(sets[place]))) for place, one in enumerate(many)])
        found[f"ensemble {num_part}"] = {
            "lowers": [None if size is None else int(size) for size in ensemble.lowers],
            "uppers": [None if size is None else int(size) for size in ensemble.uppers],
            "query": digest(
                repr(
                    [sorted(ensemble.query(one, len(set(s)))) for one, s in zip(many, sets)]  # noqa: B905
                ).encode()
            ),
        }
    return found


def answers(package: Any, schemes: tuple[str | None, ...]) -> dict[str, Any]:
    """Return all answers; the scheme None is left out of the calls, as version 1 has none."""
    found: dict[str, Any] = {"weighted": weighted(package), "parameters": parameters(package)}
    for scheme in schemes:
        extra = {} if scheme is None else {"scheme": scheme}
        found[scheme or "legacy"] = {
            "signatures": signatures(package, extra),
            "stored": stored(package, extra),
            "indexes": indexes(package, extra),
        }
    return found


if __name__ == "__main__":
    import datasketch

    versions = {"datasketch": datasketch.__version__, "numpy": np.__version__}
    schemes = (None,) if datasketch.__version__.startswith("1.") else ("affine32", "affine64")
    lines = [
        f"{json.dumps(part)}: {json.dumps(found)}"
        for part, found in answers(datasketch, schemes).items()
    ]
    print("{\n" + ",\n".join([f'"source": {json.dumps(versions)}', *lines]) + "\n}")
