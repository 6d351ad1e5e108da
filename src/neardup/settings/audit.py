"""The settings of an audit of removals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from neardup.settings.constraints import ColumnNames, Validated, collection, parameter


@dataclass(frozen=True, kw_only=True)
class AuditSettings(Validated):
    """The limits of an audit; docs/audit.md explains them."""

    sample: int = parameter(
        1_000,
        "The maximum number of removals to compare with all kept documents, if the search found "
        "no similar one; of more removals, a sample.",
        low=1,
        high=1_000_000,
    )


@dataclass(frozen=True, kw_only=True)
class KeptSettings(Validated):
    """The decisions of the other tool."""

    kept: Any = collection(
        "The documents that were kept: all paths up to the next option; repeatable."
    )
    removed_ids: str | None = parameter(
        None,
        "A list of the removed documents instead of kept: lines of ids, a table with a column of "
        "ids, or a folder of .remove files of datatrove.",
        str,
        sentinels=("PATH",),
    )
    clusters: str | None = parameter(
        None,
        "The clusters of the other tool: a table with a column of ids and a column of clusters, or "
        "a folder of .clusters files of datatrove.",
        str,
        sentinels=("PATH",),
    )
    cluster_column: str | None = parameter(
        None,
        "The column of clusters. Default: the first known name, such as cluster or __CLUSTER__.",
        str,
        sentinels=("NAME",),
    )
    match: Literal["auto", "id", "text"] = parameter(
        "auto",
        "The key that finds kept documents in the original: id, the exact text, or auto: id if "
        "both sides share ids and no id of the original repeats or is null.",
        choices=("auto", "id", "text"),
    )
    count_by: ColumnNames = parameter(
        None,
        "Columns by whose values removals are counted, by commas or repeated. Default: source, "
        "language and lang.",
        list,
        sentinels=("NAME...",),
    )


@dataclass(frozen=True, kw_only=True)
class AuditOutput(Validated):
    """The output of an audit besides its tables."""

    lang: Literal["en", "zh"] = parameter(
        "en",
        "The language of output: English, or simplified Chinese, the default of commands in a "
        "Chinese locale.",
        choices=("en", "zh"),
    )
