"""The decisions and measurements of a run, from which the tables and reports are made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from neardup.decide.decisions import Pairs, Removals
from neardup.documents.corpus import Corpus
from neardup.verify.recall import Recall

SHORT = 32  # features under which a text is short: SimHash is then unreliable, see docs/accuracy.md


@dataclass(frozen=True)
class Outcome:
    """The decisions and measurements of a run.

    kept : bool by document. removals : the removed documents. pairs : all pairs measured at or above the threshold.
    compared : pairs measured. num_bucket_overflows : documents with an earlier one in a bucket that does not list it.
    collisions : pairs of near fingerprints whose features are below the threshold. num_fingerprints, num_near_pairs :
    the distinct fingerprints, and the pairs of them within the distance; 0 without fingerprints. recall : the estimate;
    None if the search cannot miss a pair. audited : the recall measured on a sample. short : documents of fewer than
    SHORT features.
    """

    corpus: Corpus
    kept: npt.NDArray[np.bool_]
    removals: Removals
    pairs: Pairs
    compared: int
    num_bucket_overflows: int
    collisions: int
    num_fingerprints: int
    num_near_pairs: int
    recall: Recall | None
    audited: Recall | None
    short: int
