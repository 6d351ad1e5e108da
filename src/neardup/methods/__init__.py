"""The methods: objects that describe documents, propose pairs, measure them and decide on them.

`register` adds a method of your own; docs/add-a-method.md shows one. Everything that such a method
needs is importable from here.
"""

from neardup.candidates.bands import Bands
from neardup.candidates.blocks import Radius
from neardup.candidates.lookups import BandLookup, DistanceLookup, Lookup
from neardup.features.described import Features, Keys, Lists
from neardup.features.vectors import describe_vectors, vectors_of
from neardup.fingerprints.fingerprints import Fingerprints
from neardup.fingerprints.minhash import band_keys, sign
from neardup.fingerprints.signatures import Signatures
from neardup.methods.base import Curve, Described, Limit, Method, is_exact
from neardup.methods.registry import register
from neardup.methods.sketcher import Sketcher
from neardup.schemas import DISTANCE, EXACT, SIMILARITY, Measure
from neardup.settings.constraints import Constraint, parameter
from neardup.settings.methods import MethodSettings, TextSettings, VectorSettings
from neardup.verify.measured import Measured, similarity_of_lists

__all__ = [
    "DISTANCE",
    "EXACT",
    "SIMILARITY",
    "BandLookup",
    "Bands",
    "Constraint",
    "Curve",
    "Described",
    "DistanceLookup",
    "Features",
    "Fingerprints",
    "Keys",
    "Limit",
    "Lists",
    "Lookup",
    "Measure",
    "Measured",
    "Method",
    "MethodSettings",
    "Radius",
    "Signatures",
    "Sketcher",
    "TextSettings",
    "VectorSettings",
    "band_keys",
    "describe_vectors",
    "is_exact",
    "parameter",
    "register",
    "sign",
    "similarity_of_lists",
    "vectors_of",
]
