"""From texts to SimHash fingerprints: where features, weights and votes meet."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.config import IdfSource, SimHash
from neardup.features.shingles import Workspace, shingle_documents
from neardup.features.weights import distinct_features
from neardup.fingerprints.simhash import summarise


class Fingerprinted(NamedTuple):
    """A batch of documents with their fingerprints.

    fingerprints : uint64 (num_documents, num_words), bit i in bit i % 64 of word i // 64, zeros without features.
    content : uint64 (num_documents, 2), equal where the features and their order are; nothing without features.
    hashes, offsets : uint64 and int64 (num_documents + 1,), the features of each document, repeats included; none where
    a text has none, which is then in no pair. hashes may lie in the workspace.
    """

    fingerprints: npt.NDArray[np.uint64]
    content: npt.NDArray[np.uint64]
    hashes: npt.NDArray[np.uint64]
    offsets: npt.NDArray[np.int64]


def fingerprint_documents(
    texts: pa.Array, method: SimHash, idf: IdfSource | None = None, workspace: Workspace | None = None
) -> Fingerprinted:
    """Return the fingerprints, features and content hashes of a batch of documents.

    Parameters
    ----------
    texts : string array of any Arrow string type, shape (num_documents,); a null has no features.
    method : how texts become fingerprints.
    idf : the document frequencies, where method asks for those of a corpus.
    workspace : where the hashes are written; valid until it is used again. None for memory of their own.
    """
    shingles = shingle_documents(texts, method, workspace)
    voters, offsets = shingles.hashes, shingles.offsets
    if method.weights == "one":
        features = distinct_features(voters, offsets)
        voters, offsets = features.hashes, features.offsets
    fingerprints = summarise(voters, offsets, method.bits)
    return Fingerprinted(fingerprints, shingles.content, shingles.hashes, shingles.offsets)
