"""neardup finds near-duplicate texts and web pages in collections of any size, keeps one of each,
and shows why.

Everything public is importable from here, the parts of LSH from neardup.lsh, the kinds of
errors from neardup.errors. Nothing heavy is loaded before it is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from neardup.version import __version__ as __version__

# `as` makes a name public for type checkers, which do not follow `__all__` below; several are on a
# line.
if TYPE_CHECKING:
    from neardup import errors as errors, lsh as lsh, methods as methods  # noqa: I001
    from neardup.answers import Answer as Answer, Document as Document, Hit as Hit
    from neardup.api.audit import Audit as Audit, audit as audit
    from neardup.api.cluster import cluster as cluster
    from neardup.api.contamination import find_contamination as find_contamination
    from neardup.api.dedup import dedup as dedup
    from neardup.api.evaluate import compare_methods as compare_methods, evaluate as evaluate
    from neardup.api.index import Index as Index
    from neardup.api.passages import remove_passages as remove_passages
    from neardup.api.pairs import find_pairs as find_pairs
    from neardup.api.plan import Plan as Plan, plan as plan
    from neardup.api.sign import document_frequencies as document_frequencies, sign as sign
    from neardup.api.sweep import sweep as sweep
    from neardup.api.texts import compare as compare, explain as explain
    from neardup.errors import (
        InputError as InputError,
        NeardupError as NeardupError,
        SettingError as SettingError,
    )
    from neardup.features.idf import IdfTable as IdfTable
    from neardup.fingerprints.fingerprints import Fingerprints as Fingerprints
    from neardup.fingerprints.signatures import Signatures as Signatures
    from neardup.progress import Progress as Progress
    from neardup.results import (
        Clustering as Clustering,
        Comparison as Comparison,
        Contamination as Contamination,
        Deduplication as Deduplication,
        DuplicatePairs as DuplicatePairs,
        Evaluation as Evaluation,
        PassageRemoval as PassageRemoval,
        Sweep as Sweep,
    )
    from neardup.settings.methods import (
        Jieba as Jieba,
        MinHash as MinHash,
        SimHash as SimHash,
        Vectors as Vectors,
    )
    from neardup.settings.methods import method as method
    from neardup.sketches.hamming import HammingIndex as HammingIndex
    from neardup.sketches.lsh import LSHIndex as LSHIndex

_HOMES = {
    "neardup.answers": "Answer Document Hit",
    "neardup.api.audit": "Audit audit",
    "neardup.api.cluster": "cluster",
    "neardup.api.contamination": "find_contamination",
    "neardup.api.dedup": "dedup",
    "neardup.api.evaluate": "compare_methods evaluate",
    "neardup.api.index": "Index",
    "neardup.api.pairs": "find_pairs",
    "neardup.api.passages": "remove_passages",
    "neardup.api.plan": "Plan plan",
    "neardup.api.sign": "document_frequencies sign",
    "neardup.api.sweep": "sweep",
    "neardup.api.texts": "compare explain",
    "neardup.settings.methods": "Jieba MinHash SimHash Vectors method",
    "neardup.errors": "InputError NeardupError SettingError",
    "neardup.features.idf": "IdfTable",
    "neardup.fingerprints.fingerprints": "Fingerprints",
    "neardup.fingerprints.signatures": "Signatures",
    "neardup.sketches.hamming": "HammingIndex",
    "neardup.sketches.lsh": "LSHIndex",
    "neardup.progress": "Progress",
    "neardup.results": (
        "Clustering Comparison Contamination Deduplication DuplicatePairs Evaluation "
        "PassageRemoval Sweep"
    ),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = sorted([*_HOME_OF, "__version__"])


def __getattr__(name: str) -> object:
    """Load a public name from its module when it is first used."""
    if name in ("errors", "lsh", "methods", "spark"):
        return importlib.import_module(f"neardup.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'neardup' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
