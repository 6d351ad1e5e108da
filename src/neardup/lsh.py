"""Locality-sensitive hashing in parts: bands and their S-curve, and records that other results
contain.

Rarely needed by themselves: `dedup` and the indexes choose bands on their own.
"""

from neardup.candidates.bands import Bands, candidate_probability, choose_bands
from neardup.fingerprints.explain import Explanation, SignatureExplanation, keywords
from neardup.fingerprints.signatures import PackedSignatures
from neardup.verify.measured import hamming_distance
from neardup.verify.scores import Score

__all__ = [
    "Bands",
    "Explanation",
    "PackedSignatures",
    "Score",
    "SignatureExplanation",
    "candidate_probability",
    "choose_bands",
    "hamming_distance",
    "keywords",
]
