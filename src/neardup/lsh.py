"""Locality-sensitive hashing in parts: bands, their S-curve and blocks, and records that other results contain.

Rarely needed by themselves: `dedup` and the indexes choose bands and blocks on their own.
"""

from __future__ import annotations

from neardup.api.plans import plan_cluster, plan_index
from neardup.candidates.bands import Bands, candidate_probability, choose_bands
from neardup.candidates.blocks import BlockPlan, choose_blocks, plan_blocks
from neardup.candidates.plan import ClusterPlan, Plan
from neardup.fingerprints.explain import Explanation, keywords
from neardup.fingerprints.signatures import PackedSignatures
from neardup.index.plan import IndexPlan
from neardup.verify.hamming import hamming_distance
from neardup.verify.scores import Score

__all__ = [
    "Bands",
    "BlockPlan",
    "ClusterPlan",
    "Explanation",
    "IndexPlan",
    "PackedSignatures",
    "Plan",
    "Score",
    "candidate_probability",
    "choose_bands",
    "choose_blocks",
    "hamming_distance",
    "keywords",
    "plan_blocks",
    "plan_cluster",
    "plan_index",
]
