"""Estimate a run beforehand."""

from __future__ import annotations

import os

import numpy as np

from neardup.candidates.plan import ClusterPlan, Plan, make_cluster_plan, make_plan
from neardup.errors import InputError
from neardup.index.plan import IndexPlan, storages_of
from neardup.index.plan import make_plan as make_index_plan
from neardup.methods.minhash import MinHashMethod
from neardup.methods.registry import method_of
from neardup.output.charts import s_curve, save_drawing
from neardup.output.table_file import check_output
from neardup.settings.methods import MethodSettings
from neardup.settings.presets import method_named, minhash_named


def plan(
    *,
    documents: float,
    document_bytes: float = 4000,
    method: MethodSettings | str = "minhash",
    threshold: float | None = None,
    plot: str | os.PathLike[str] | None = None,
) -> Plan:
    """Estimate a run with MinHash: its bands, false candidates, memory, disk and S-curve.

    Parameters
    ----------
    documents : the number of documents.
    document_bytes : the average size of a text in bytes of UTF-8.
    method, threshold : as in `dedup`, for a method based on MinHash.
    plot : an SVG file for the plot of the S-curve, the probability of a comparison by similarity. An existing file is
        replaced.

    Returns
    -------
    neardup.lsh.Plan

    Raises
    ------
    InputError
        If a number is not from 1 to 1e15.
    SettingError
        If the method is not based on MinHash.

    Notes
    -----
    `neardup.lsh.plan_index` estimates an index, `neardup.lsh.plan_blocks` the search of SimHash fingerprints.
    """
    _check(documents=documents, document_bytes=document_bytes)
    settings = minhash_named(method, threshold)
    bands = MinHashMethod(settings).bands
    if plot is not None:
        save_drawing(s_curve(*bands, settings.threshold), check_output(plot, (".svg",), overwrite=True))
    return make_plan(int(documents), document_bytes, settings.threshold, settings.recall, bands)


def plan_cluster(
    *,
    documents: float,
    document_bytes: float = 4000,
    method: MethodSettings | str = "minhash",
    threshold: float | None = None,
) -> ClusterPlan:
    """Estimate a run with MinHash on Spark: its shuffled bytes, core-hours and memory.

    Parameters
    ----------
    documents : the number of documents.
    document_bytes : the average size of a text in bytes of UTF-8.
    method, threshold : as in `dedup`, for a method based on MinHash.

    Returns
    -------
    neardup.lsh.ClusterPlan

    Raises
    ------
    InputError
        If a number is not from 1 to 1e15.
    SettingError
        If the method is not based on MinHash.
    """
    _check(documents=documents, document_bytes=document_bytes)
    settings = minhash_named(method, threshold)
    bands = MinHashMethod(settings).bands
    return make_cluster_plan(int(documents), document_bytes, settings.threshold, settings.recall, bands)


def plan_index(
    *,
    documents: float,
    method: MethodSettings | str = "minhash",
    storage: str | None = None,
    document_bytes: float = 4000,
    document_features: float | None = None,
    id_bytes: float = 20,
) -> list[IndexPlan]:
    """Estimate the size of an index in a folder, for each storage level.

    Parameters
    ----------
    documents : the number of documents that are kept. A removed document takes its keys and fingerprint alone.
    method : as in `Index.create`.
    storage : one storage level; all that go with the method when None.
    document_bytes, id_bytes : the average size of a text, and of an id, in bytes of UTF-8.
    document_features : the average number of distinct features of a text; estimated for English when None.

    Returns
    -------
    list of IndexPlan, from the least to the most stored data.

    Raises
    ------
    InputError
        If a number is not from 1 to 1e15.
    SettingError
        If an index cannot use the method, or not with this storage level.
    """
    _check(documents=documents, document_bytes=document_bytes, id_bytes=id_bytes)
    if document_features is not None:
        _check(document_features=document_features)
    chosen = method_of(method_named(method, None, None))
    levels = storages_of(chosen) if storage is None else (storage,)
    numbers = int(documents), document_bytes, id_bytes, document_features
    return [make_index_plan(chosen, level, *numbers) for level in levels]


def _check(**numbers: float) -> None:
    for name, value in numbers.items():
        if isinstance(value, bool) or not (isinstance(value, (int, float, np.number)) and 1 <= value <= 1e15):
            raise InputError(f"{name} must be a number from 1 to 1e15: got {value!r}. Give a number such as 1e8.")
