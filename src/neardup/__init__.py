"""neardup finds near-duplicate texts and web pages in collections of any size, keeps one of each, and shows why.

Everything public is importable from here, the parts of LSH from neardup.lsh, the kinds of
errors from neardup.errors. Nothing heavy is loaded before it is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from neardup.version import __version__

if TYPE_CHECKING:
    from neardup.api.cluster import cluster
    from neardup.api.dedup import dedup
    from neardup.api.evaluate import compare_methods, evaluate
    from neardup.api.features import document_frequencies
    from neardup.api.index import Index
    from neardup.api.pairs import find_pairs
    from neardup.api.plans import plan
    from neardup.api.sign import minhash, sign
    from neardup.api.sweep import sweep
    from neardup.api.texts import compare
    from neardup.errors import InputError, NeardupError, SettingError
    from neardup.features.idf import IdfTable
    from neardup.fingerprints.explain import explain, simhash
    from neardup.fingerprints.fingerprints import Fingerprints
    from neardup.fingerprints.signatures import Signatures
    from neardup.index.ensemble import LSHEnsemble
    from neardup.index.forest import LSHForest
    from neardup.index.hamming import HammingIndex
    from neardup.index.lsh import LSHIndex
    from neardup.progress import Progress
    from neardup.results import Clustering, Comparison, Deduplication, DuplicatePairs, Evaluation, Sweep
    from neardup.settings.methods import MinHash, SimHash
    from neardup.settings.presets import content, page, structure, tag_weights
    from neardup.settings.shingling import Jieba

_HOMES = {
    "neardup.api.cluster": ("cluster",),
    "neardup.api.dedup": ("dedup",),
    "neardup.api.evaluate": ("compare_methods", "evaluate"),
    "neardup.api.features": ("document_frequencies",),
    "neardup.api.index": ("Index",),
    "neardup.api.pairs": ("find_pairs",),
    "neardup.api.plans": ("plan",),
    "neardup.api.sign": ("minhash", "sign"),
    "neardup.api.sweep": ("sweep",),
    "neardup.api.texts": ("compare",),
    "neardup.settings.methods": ("MinHash", "SimHash"),
    "neardup.fingerprints.explain": ("explain", "simhash"),
    "neardup.errors": ("InputError", "NeardupError", "SettingError"),
    "neardup.features.idf": ("IdfTable",),
    "neardup.fingerprints.fingerprints": ("Fingerprints",),
    "neardup.fingerprints.signatures": ("Signatures",),
    "neardup.index.ensemble": ("LSHEnsemble",),
    "neardup.index.forest": ("LSHForest",),
    "neardup.index.hamming": ("HammingIndex",),
    "neardup.index.lsh": ("LSHIndex",),
    "neardup.progress": ("Progress",),
    "neardup.settings.presets": ("content", "page", "structure", "tag_weights"),
    "neardup.results": ("Clustering", "Comparison", "Deduplication", "DuplicatePairs", "Evaluation", "Sweep"),
    "neardup.settings.shingling": ("Jieba",),
}  # fmt: skip
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Clustering",
    "Comparison",
    "Deduplication",
    "DuplicatePairs",
    "Evaluation",
    "Fingerprints",
    "HammingIndex",
    "IdfTable",
    "Index",
    "InputError",
    "Jieba",
    "LSHEnsemble",
    "LSHForest",
    "LSHIndex",
    "MinHash",
    "NeardupError",
    "Progress",
    "SettingError",
    "Signatures",
    "SimHash",
    "Sweep",
    "__version__",
    "cluster",
    "compare",
    "compare_methods",
    "content",
    "dedup",
    "document_frequencies",
    "evaluate",
    "explain",
    "find_pairs",
    "minhash",
    "page",
    "plan",
    "sign",
    "simhash",
    "structure",
    "sweep",
    "tag_weights",
]


def __getattr__(name: str) -> object:
    """Load a public name from its module when it is first used."""
    if name in ("errors", "lsh", "spark"):
        return importlib.import_module(f"neardup.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'neardup' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
