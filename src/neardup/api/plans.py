"""Estimate a run beforehand."""

from __future__ import annotations

import os
from pathlib import Path

from neardup.candidates.plan import Plan, make_plan
from neardup.errors import InputError
from neardup.methods.minhash import MinHashMethod
from neardup.output.charts import s_curve, save_drawing
from neardup.output.table_file import check_output
from neardup.settings.methods import MethodSettings
from neardup.settings.presets import minhash_named


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
    method, threshold : as in `dedup`, of a method of MinHash.
    plot : an .svg file to draw the S-curve to: the probability of a comparison over the similarity. An existing file is
        replaced.

    Returns
    -------
    neardup.lsh.Plan

    Raises
    ------
    InputError
        If a number is not from 1 to 1e15.
    SettingError
        If the method is not of MinHash.

    Notes
    -----
    `neardup.lsh.plan_blocks` estimates an index of SimHash fingerprints.
    """
    for name, value in (("documents", documents), ("document_bytes", document_bytes)):
        if isinstance(value, bool) or not (isinstance(value, (int, float)) and 1 <= value <= 1e15):
            raise InputError(f"{name} must be a number from 1 to 1e15: got {value!r}. Give a number such as 1e8.")
    settings = minhash_named(method, threshold)
    bands = MinHashMethod(settings).bands
    if plot is not None:
        save_drawing(s_curve(*bands, settings.threshold), check_output(Path(plot), (".svg",), overwrite=True))
    return make_plan(int(documents), document_bytes, settings.threshold, settings.recall, bands)
