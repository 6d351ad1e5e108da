"""The face of datasketch 1.x: where no scheme is given, it is "legacy", the only one that version has.

``from neardup.compat.datasketch.v1 import MinHash, MinHashLSH`` in the place of ``from datasketch import ...``.
"""

from __future__ import annotations

from neardup.compat import datasketch as latest
from neardup.compat.datasketch import (
    MinHashLSH,
    MinHashLSHEnsemble,
    MinHashLSHForest,
    WeightedMinHash,
    WeightedMinHashGenerator,
    WeightedMinHashLSH,
    WeightedMinHashLSHForest,
    bBitMinHash,
    sha1_hash32,
)

__all__ = [
    "LeanMinHash",
    "MinHash",
    "MinHashLSH",
    "MinHashLSHEnsemble",
    "MinHashLSHForest",
    "WeightedMinHash",
    "WeightedMinHashGenerator",
    "WeightedMinHashLSH",
    "WeightedMinHashLSHForest",
    "bBitMinHash",
    "sha1_hash32",
]


class MinHash(latest.MinHash):
    """A `neardup.compat.datasketch.MinHash` of scheme "legacy", unless another is given.

    >>> one = MinHash(num_perm=4)
    >>> one.update(b"Hello")
    >>> one.hashvalues.tolist()
    [734825475, 960773806, 359816889, 342714745]
    """

    _scheme_if_none = "legacy"


class LeanMinHash(latest.LeanMinHash, MinHash):
    """A `neardup.compat.datasketch.LeanMinHash` of scheme "legacy", unless another is given."""
