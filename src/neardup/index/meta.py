"""The settings of an index as a store keeps them: JSON, read back by the same or a later
version.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from neardup.errors import SchemeError, SettingError, StoreError
from neardup.features.idf import IdfTable
from neardup.files import AnyPath, JsonObject
from neardup.fingerprints.sketches import require_same
from neardup.index.decisions import Rules
from neardup.index.incoming import FINGERPRINTS
from neardup.methods.base import Method
from neardup.methods.registry import IDF, method_of, settings_from_json, settings_to_json
from neardup.settings.methods import MethodSettings
from neardup.settings.run import IndexSettings
from neardup.version import __version__

FORMAT, FORMAT_VERSION = (
    "neardup-index",
    2,
)  # 1 named documents by their rows, which other documents got, too


def fixed(method: Method, settings: IndexSettings) -> Method:
    """Return the method with the bands or blocks that an index is made with, so that another
    version keeps them.

    Raises
    ------
    SettingError
        If an index cannot store what the method needs.
    """
    if settings.storage == FINGERPRINTS and method.confirms_sets:
        raise SettingError(
            "storage='fingerprints' requires SimHash(confirm='hamming'), whose fingerprints "
            "alone decide: got "
            f"{type(method.settings).__name__}, which confirms duplicates by their features. "
            "Use storage='features' "
            "(--storage features), or SimHash(confirm='hamming') (--method simhash --confirm "
            "hamming)."
        )
    if method.settings.vector_length == 0:
        raise SettingError(
            "An index needs the length of its vectors: got dimensions=None. Set dimensions "
            "(--dimensions) to "
            "the number of numbers in each."
        )
    return method.for_index(settings.expected_documents)


def prepare(
    settings: MethodSettings, index: IndexSettings, idf: IdfTable | AnyPath | None
) -> Method:
    """Return the method of a new index. Raises SettingError if it needs `idf`, or an index cannot
    use it.
    """
    table = idf if isinstance(idf, IdfTable) or idf is None else IdfTable.open(idf)
    chosen = method_of(settings)
    method = fixed(with_table(chosen.resolve() if table is None else chosen, table), index)
    method.sketch(
        method.describe(pa.array(method.examples[:1], "large_string"))
    )  # raises if a package is missing
    return method


def attachments_of(method: Method) -> dict[str, bytes]:
    """Return the files that a store keeps of a method: its table of document frequencies, if it has
    one.
    """
    if method.idf is None:
        return {}
    with TemporaryDirectory(prefix="neardup-") as folder:
        method.idf.save(Path(folder) / IDF)
        return {IDF: (Path(folder) / IDF).read_bytes()}


def table_of(data: bytes | None) -> IdfTable | None:
    """Return the table of document frequencies of its file, None for None."""
    if data is None:
        return None
    with TemporaryDirectory(prefix="neardup-") as folder:
        (Path(folder) / IDF).write_bytes(data)
        return IdfTable.open(Path(folder) / IDF)


def meta_of(method: Method, settings: IndexSettings, created: int) -> JsonObject:
    """Return the settings as a store keeps them."""
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "neardup": __version__,
        "created": created,
        "method": settings_to_json(method.settings),
        "index": dataclasses.asdict(settings),
        "idf": None if method.idf is None else method.idf.version,
        "scheme": json.loads(json.dumps(method.scheme())),
    }


def rules_of(meta: Mapping[str, Any], idf: IdfTable | None, address: str) -> Rules:
    """Return the rules of a stored index.

    Raises
    ------
    StoreError
        If it is of another format, or its table of document frequencies is not the one it was made
        with.
    SchemeError
        If this version of neardup makes other fingerprints; both schemes are named.
    """
    if meta.get("format") != FORMAT or meta.get("format_version") != FORMAT_VERSION:
        raise StoreError(
            f"{address} is not an index of format {FORMAT} {FORMAT_VERSION}: got "
            f"{meta.get('format')} "
            f"{meta.get('format_version')}, written by neardup {meta.get('neardup')}. Use "
            "that version, or create a "
            "new index."
        )
    version = None if idf is None else idf.version
    if meta["idf"] != version:
        raise StoreError(
            f"{address} has a different table of document frequencies than when it was "
            f"created: got {version}, it "
            f"needs {meta['idf']}. Restore it from a backup."
        )
    settings = IndexSettings(**meta["index"])
    method = with_table(method_of(settings_from_json(meta["method"])), idf)
    require_same(
        meta["scheme"],
        json.loads(json.dumps(method.scheme())),
        f"the index {address}",
        "this version",
    )
    return Rules(
        method, method.lookup, settings.storage, settings.max_bucket_size or method.max_bucket_size
    )


def with_table(method: Method, idf: IdfTable | None) -> Method:
    """Return the method with the document frequencies of its features, which become part of its
    scheme.

    Raises
    ------
    SettingError
        If the method needs a table and there is none, or an empty one; or if it needs none.
    SchemeError
        If the table counts other features.
    """
    weighed, table = method.weighed, method.idf if idf is None else idf
    if weighed is None:
        if table is not None:
            raise SettingError(
                "idf is for methods that weigh features by document frequencies: got "
                f"{table!r} for "
                f"{type(method.settings).__name__}, which weighs all alike. Leave idf (--idf) "
                "out, or set "
                "boost_rare=True (--boost-rare)."
            )
        return method
    if table is None or not len(table.hashes):
        tokens = weighed.tokens if isinstance(weighed.tokens, str) else "jieba"
        options = f"--tokens {tokens} --ngram {weighed.ngram}" + (
            f" --html {weighed.html}" if weighed.html else ""
        )
        boosts = getattr(method.settings, "boost_rare", False)
        without = "; or use boost_rare=False (--no-boost-rare), which needs none" if boosts else ""
        raise SettingError(
            "The method weighs features by the number of documents that contain them, and the "
            "index needs the table "
            f"of these counts: got {'none' if table is None else table}. Count documents by "
            "`neardup "
            f"document-frequencies INPUT... {options} -o idf.parquet`, and pass "
            "idf='idf.parquet' (--idf "
            f"idf.parquet){without}."
        )
    table.require(weighed)
    if getattr(method.settings, "idf", None) is not None:
        method = dataclasses.replace(
            method, settings=dataclasses.replace(method.settings, idf=table)
        )
    return method.with_idf(table)


def require_method(meta: Mapping[str, Any], given: Any, address: str) -> None:
    """Raise SchemeError unless an index was made with these settings of a method."""
    ours = settings_to_json(fixed(method_of(given), IndexSettings(**meta["index"])).settings)
    theirs = meta["method"]
    different = [name for name in ours if ours[name] != theirs.get(name)]
    if different:
        different = ["method"] if "method" in different else different
        shown = [
            ", ".join(f"{name}={values.get(name)!r}" for name in different)
            for values in (theirs, ours)
        ]
        raise SchemeError(
            f"The index {address} was created with {shown[0]}: got {shown[1]}. Open it "
            "without a method, or create "
            "another index."
        )
    table = given.idf if isinstance(given, Method) else None
    if table is not None and table.version != meta["idf"]:
        raise SchemeError(
            f"The index {address} weighs features by another table of document frequencies: "
            f"got {table.version}, it "
            f"was created with {meta['idf']}. Create both with the same table (--idf)."
        )


def require_features(ours: Method, theirs: Method, address: str) -> None:
    """Raise SchemeError unless two methods make the same features, and sketches of which one is the
    start of the other.

    ours : of a stored index.
    """
    schemes = [method.scheme() for method in (ours, theirs)]
    lengths = [scheme.pop("num_hashes", 0) for scheme in schemes]
    require_same(schemes[0], schemes[1], f"the index {address}", "the method")
    stored = max(lengths[0], getattr(ours.settings, "num_hashes", None) or 0)
    if lengths[1] > stored:
        raise SchemeError(
            f"The bands take {lengths[1]} hashes, and the index {address} stored {stored} of "
            "each document. Use fewer "
            "bands or rows, or make the index with longer signatures (num_hashes)."
        )
