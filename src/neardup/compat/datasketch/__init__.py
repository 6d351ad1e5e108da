"""The face of the Python package datasketch, version 2: the same signatures and answers, by the
same calls.

``from neardup.compat.datasketch import MinHash, MinHashLSH`` instead of ``from datasketch import
...``; the modules have datasketch's names as well. For a program written for datasketch 1.x, whose
signatures are of the scheme "legacy", import from `neardup.compat.datasketch.v1`. What differs is
on the page "Coming from datasketch".
"""

from neardup.compat.datasketch.b_bit_minhash import bBitMinHash
from neardup.compat.datasketch.hashfunc import sha1_hash32, sha1_hash64
from neardup.compat.datasketch.lean_minhash import LeanMinHash
from neardup.compat.datasketch.lsh import MinHashLSH
from neardup.compat.datasketch.lshensemble import MinHashLSHEnsemble
from neardup.compat.datasketch.lshforest import MinHashLSHForest
from neardup.compat.datasketch.minhash import MinHash
from neardup.compat.datasketch.weighted_minhash import WeightedMinHash, WeightedMinHashGenerator

_NOT_HERE = (
    "HNSW",
    "HyperLogLog",
    "HyperLogLogPlusPlus",
    "MinHashLSHBloom",
    "MinHashLSHInsertionSession",
    "MinHashLSHDeletionSession",
    "AsyncMinHashLSH",
)


def __getattr__(name: str) -> object:
    """Refuse what only datasketch has, with the way to go on."""
    if name in _NOT_HERE:
        raise ImportError(
            f"neardup has no {name}: got it from neardup.compat.datasketch. Import it from "
            "datasketch."
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


WeightedMinHashLSH = MinHashLSH
WeightedMinHashLSHForest = MinHashLSHForest

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
    "sha1_hash64",
]
