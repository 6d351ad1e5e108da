"""Write settings down as plain values, for reports and for whoever resumes a run."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from neardup.features.idf import describe_features
from neardup.fingerprints.simhash_documents import scheme_of
from neardup.settings.methods import Method, MinHash, SimHash
from neardup.settings.running import Sieve
from neardup.settings.shingling import Shingling

_SCHEME = {
    *(field.name for field in fields(Shingling)),
    "seed",
    "bits",
    "weights",
    "decay",
    "idf",
    "top",
    "levels",
    "hash",
}


def scheme_settings(method: Method) -> dict[str, Any]:
    """Return the settings that change a document's features or its fingerprint, and no others."""
    if isinstance(method, MinHash):
        return _without_version(describe_features(method)) | {"seed": method.seed}
    scheme = scheme_of(method, getattr(method.idf, "version", None))
    features = _without_version(scheme.pop("features", {}))
    return features | {name: value for name, value in scheme.items() if name not in ("name", "version")}


def other_settings(method: Method, sieve: Sieve) -> dict[str, Any]:
    """Return the settings that say which documents are compared and which of them stays."""
    names = [field.name for field in fields(method) if field.name not in {*_SCHEME, "scheme"}]
    settings = {name: getattr(method, name) for name in names}
    if isinstance(method, SimHash):
        settings["confirm"] = "jaccard" if method.compares_features else "hamming"
    return settings | {field.name: getattr(sieve, field.name) for field in fields(sieve)}


def _without_version(features: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in features.items() if name != "version"}
