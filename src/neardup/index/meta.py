"""The stored settings of an index: JSON, read back by the same or a later version."""

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
from neardup.methods.sketcher import Sketcher
from neardup.settings.constraints import assignments
from neardup.settings.methods import MethodSettings
from neardup.settings.run import IndexSettings
from neardup.version import __version__

FORMAT = "neardup-index"
# Version 1 gave new documents ids made of their rows: two indexes gave the same id.
FORMAT_VERSION = 2
# With a column and a table of sources: an earlier version of neardup does not know them.
_TRACKING_VERSION = 3
# With the date of a document beside its source.
_DATES_VERSION = 4


def fixed(method: Method, settings: IndexSettings) -> Method:
    """Return the method with explicit bands or blocks for an index.

    Another version, with other defaults, then reads the index as it was made.

    Raises
    ------
    SettingError
        If an index cannot store the features that the method needs.
    """
    if settings.storage == FINGERPRINTS and method.confirms_sets:
        raise SettingError(
            "storage='fingerprints' requires SimHash(confirm='hamming'), whose fingerprints alone "
            f"decide: got {type(method.settings).__name__}, which confirms duplicates by their "
            "features. Use storage='features' (--storage features), or SimHash(confirm='hamming') "
            "(--method simhash --confirm hamming)."
        )
    if method.settings.vector_length == 0:
        raise SettingError(
            "An index needs the length of its vectors: got dimensions=None. Set dimensions "
            "(--dimensions) to the number of numbers in each."
        )
    return method.for_index(settings.expected_documents)


def prepare(
    settings: MethodSettings, index: IndexSettings, idf: IdfTable | AnyPath | None
) -> Method:
    """Return the method of a new index.

    Raises
    ------
    SettingError
        If the method needs `idf`, or an index cannot use the method.
    """
    table = idf if isinstance(idf, IdfTable) or idf is None else IdfTable.open(idf)
    chosen = method_of(settings)
    if table is None:
        chosen = chosen.resolve()
    method = fixed(with_table(chosen, table), index)
    example = pa.array(method.examples[:1], "large_string")
    method.sketch(method.describe(example))  # raises if a package is missing
    return method


def attachments_of(method: Method) -> dict[str, bytes]:
    """Return the files of a method to store: its table of document frequencies, if it has one."""
    if method.idf is None:
        return {}
    with TemporaryDirectory(prefix="neardup-") as folder:
        file = Path(folder) / IDF
        # A table knows only how to write a file.
        method.idf.save(file)
        return {IDF: file.read_bytes()}


def table_of(data: bytes | None) -> IdfTable | None:
    """Return the table of document frequencies from the bytes of its file; None for None."""
    if data is None:
        return None
    with TemporaryDirectory(prefix="neardup-") as folder:
        file = Path(folder) / IDF
        file.write_bytes(data)
        return IdfTable.open(file)


def meta_of(method: Method, settings: IndexSettings, created: int) -> JsonObject:
    """Return the settings to store. created : microseconds since 1970."""
    stored = dataclasses.asdict(settings)
    # Earlier versions read format 2, which has no such setting.
    for name in ("track_sources", "track_dates"):
        if not stored[name]:
            del stored[name]
    version = _TRACKING_VERSION if settings.track_sources else FORMAT_VERSION
    return {
        "format": FORMAT,
        "format_version": _DATES_VERSION if settings.track_dates else version,
        "neardup": __version__,
        "created": created,
        "method": settings_to_json(method.settings),
        "index": stored,
        "idf": None if method.idf is None else method.idf.version,
        "scheme": _as_json(method.scheme()),
    }


def _as_json(values: JsonObject) -> JsonObject:
    """Return values as they are after JSON: tuples become lists."""
    parsed: JsonObject = json.loads(json.dumps(values))
    return parsed


def rules_of(meta: Mapping[str, Any], idf: IdfTable | None, address: str) -> Rules:
    """Return the rules of a stored index.

    Raises
    ------
    StoreError
        If the format differs, or the table of document frequencies is not the one of its creation.
    SchemeError
        If this version of neardup makes other fingerprints; both schemes are named.
    """
    versions = (FORMAT_VERSION, _TRACKING_VERSION, _DATES_VERSION)
    if meta.get("format") != FORMAT or meta.get("format_version") not in versions:
        raise StoreError(
            f"{address} is not an index of format {FORMAT} {FORMAT_VERSION}: got "
            f"{meta.get('format')} {meta.get('format_version')}, written by neardup "
            f"{meta.get('neardup')}. Use that version, or create a new index."
        )
    version = None if idf is None else idf.version
    if meta["idf"] != version:
        raise StoreError(
            f"{address} has a different table of document frequencies than when it was created: "
            f"got {version}, it needs {meta['idf']}. Restore it from a backup."
        )
    settings = IndexSettings(**meta["index"])
    method = with_table(method_of(settings_from_json(meta["method"])), idf)
    scheme = _as_json(method.scheme())
    # A version that computes other features must not add to the index.
    require_same(meta["scheme"], scheme, f"the index {address}", "this version")
    return Rules(
        method=method,
        lookup=method.lookup,
        storage=settings.storage,
        max_bucket_size=settings.max_bucket_size or method.max_bucket_size,
        tracks_sources=settings.track_sources,
        tracks_dates=settings.track_dates,
    )


def with_table(method: Method, idf: IdfTable | None) -> Method:
    """Return the method with the document frequencies of its features, part of its scheme.

    Raises
    ------
    SettingError
        If the method needs a table and there is none, or an empty one; or if it needs none.
    SchemeError
        If the table counts other features.
    """
    weighed = method.weighed
    table = method.idf if idf is None else idf
    if weighed is None:
        if table is not None:
            raise SettingError(
                f"idf is for methods that weigh features by document frequencies: got {table!r} "
                f"for {type(method.settings).__name__}, which weighs all alike. Leave idf (--idf) "
                "out, or set boost_rare=True (--boost-rare)."
            )
        return method
    if table is None or not len(table.hashes):
        tokens = weighed.tokens if isinstance(weighed.tokens, str) else "jieba"
        options = f"--tokens {tokens} --ngram {weighed.ngram}"
        if weighed.html:
            options += f" --html {weighed.html}"
        boosts = getattr(method.settings, "boost_rare", False)
        without = "; or use boost_rare=False (--no-boost-rare), which needs none" if boosts else ""
        raise SettingError(
            "The method weighs features by the number of documents that contain them, and the "
            f"index needs the table of these counts: got {'none' if table is None else table}. "
            f"Count documents by `neardup document-frequencies INPUT... {options} -o idf.parquet`, "
            f"and pass idf='idf.parquet' (--idf idf.parquet){without}."
        )
    table.require(weighed)
    if getattr(method.settings, "idf", None) is not None:
        settings = dataclasses.replace(method.settings, idf=table)
        method = dataclasses.replace(method, settings=settings)
    return method.with_idf(table)


def require_method(meta: Mapping[str, Any], given: Any, address: str) -> None:
    """Raise SchemeError unless an index was created with these settings of a method."""
    method = fixed(method_of(given), IndexSettings(**meta["index"]))
    wanted = settings_to_json(method.settings)
    stored = meta["method"]
    different = [name for name in wanted if wanted[name] != stored.get(name)]
    # Of another method, all settings differ.
    if "method" in different:
        different = ["method"]
    if different:
        raise SchemeError(
            f"The index {address} was created with {assignments(stored, different)}: got "
            f"{assignments(wanted, different)}. Open it without a method, or create another index."
        )
    table = given.idf if isinstance(given, Method) else None
    if table is not None and table.version != meta["idf"]:
        raise SchemeError(
            f"The index {address} weighs features by another table of document frequencies: got "
            f"{table.version}, it was created with {meta['idf']}. Create both with the same table "
            "(--idf)."
        )


def require_features(stored: Method, method: Method, address: str) -> None:
    """Raise SchemeError unless features match and the new sketches are prefixes of the stored ones.

    stored : the method of a stored index. method : the method of an index of its documents.
    """
    stored_scheme = stored.scheme()
    scheme = method.scheme()
    # Lengths may differ, as below.
    stored_scheme.pop("num_hashes", None)
    scheme.pop("num_hashes", None)
    require_same(stored_scheme, scheme, f"the index {address}", "the method")
    # The bands may use fewer hashes than the stored signatures have.
    stored_width = Sketcher(stored).width
    width = Sketcher(method).width
    if width > stored_width:
        raise SchemeError(
            f"The method takes {width} hashes, and the index {address} stored {stored_width} of "
            "each document. Use fewer bands, rows or hashes (num_hashes), or make the index with "
            "longer signatures."
        )
