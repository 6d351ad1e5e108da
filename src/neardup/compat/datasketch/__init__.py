"""Drop-in replacement for the Python package datasketch, version 2.

Use ``from neardup.compat.datasketch import MinHash, MinHashLSH`` instead of ``from datasketch
import ...``: the calls, the signatures, the answers and the names of modules are the same. For a
program written for datasketch 1.x, whose signatures have the scheme "legacy", import from
`neardup.compat.datasketch.v1`. The page "Coming from datasketch" lists the differences.
"""

from neardup.compat.datasketch.b_bit_minhash import bBitMinHash
from neardup.compat.datasketch.hashfunc import sha1_hash32, sha1_hash64
from neardup.compat.datasketch.lean_minhash import LeanMinHash
from neardup.compat.datasketch.lsh import MinHashLSH
from neardup.compat.datasketch.lshensemble import MinHashLSHEnsemble
from neardup.compat.datasketch.lshforest import MinHashLSHForest
from neardup.compat.datasketch.minhash import MinHash
from neardup.compat.datasketch.weighted_minhash import WeightedMinHash, WeightedMinHashGenerator

_ONLY_IN_DATASKETCH = (
    "HNSW",
    "HyperLogLog",
    "HyperLogLogPlusPlus",
    "MinHashLSHBloom",
    "MinHashLSHInsertionSession",
    "MinHashLSHDeletionSession",
    "AsyncMinHashLSH",
)


def __getattr__(name: str) -> object:
    """Refuse a class that only datasketch has, with a hint."""
    # An ImportError, so that `from ... import HyperLogLog` shows the hint, and not only the name.
    if name in _ONLY_IN_DATASKETCH:
        raise ImportError(
            f"neardup has no {name}: got it from neardup.compat.datasketch. Import it from "
            "datasketch."
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# As in datasketch: the indexes accept signatures of both kinds.
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
