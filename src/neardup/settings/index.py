"""The settings of an index, besides those of its method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from neardup.settings.constraints import Validated, parameter

Storage = Literal["fingerprints", "features", "text"]


@dataclass(frozen=True, kw_only=True)
class IndexSettings(Validated):
    """What an index stores of each document, and for how many documents it is laid out."""

    storage: Storage = parameter(
        "features",
        "The data stored for a kept document besides its fingerprint: nothing (fingerprints; SimHash with "
        "confirm=hamming), the hashes of its features, which confirm duplicates exactly (features), or its "
        "compressed text, which takes a third of the space of the features and twice the time to confirm a pair "
        "(text).",
        choices=get_args(Storage),
    )
    max_bucket_size: int | None = parameter(
        None,
        "The maximum number of documents in a bucket; later ones are left out. Default: as in dedup.",
        int,
        low=1,
        high=100_000,
    )
    expected_documents: int = parameter(
        10_000_000,
        "The number of documents to choose the blocks of SimHash for. Does not change the results.",
        low=1,
        high=2**32 - 1,
    )
