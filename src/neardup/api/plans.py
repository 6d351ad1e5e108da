"""Foresee a run."""

from __future__ import annotations

import os
from pathlib import Path

from neardup.candidates.plan import Plan, make_plan
from neardup.errors import InputError
from neardup.methods.minhash import MinHashMethod
from neardup.output.charts import s_curve, save_drawing
from neardup.output.table_file import check_output
from neardup.settings.methods import MinHash


def plan(
    *,
    documents: float,
    document_bytes: float = 4000,
    method: MinHash = MinHash(),  # noqa: B008 - frozen
    plot: str | os.PathLike[str] | None = None,
) -> Plan:
    """Foresee a run: its bands, what it compares, the memory and disk it takes, the S-curve.

    Parameters
    ----------
    documents : how many there are.
    document_bytes : the average size of a text in bytes of UTF-8.
    method : threshold and recall, or bands and rows.
    plot : an .svg file to draw the S-curve to, the chance to be compared over the similarity; one that is there is
        replaced.

    Returns
    -------
    Plan
    """
    for name, value in (("documents", documents), ("document_bytes", document_bytes)):
        if isinstance(value, bool) or not (isinstance(value, (int, float)) and 1 <= value <= 1e15):
            raise InputError(f"{name} must be a number from 1 to 1e15: got {value!r}. Give a number such as 1e8.")
    bands = MinHashMethod(method).bands
    if plot is not None:
        save_drawing(s_curve(*bands, method.threshold), check_output(Path(plot), (".svg",), overwrite=True))
    return make_plan(int(documents), document_bytes, method.threshold, method.recall, bands)
