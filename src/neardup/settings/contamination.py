"""The settings of a search for items in a corpus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from neardup.settings.constraints import ColumnNames, Validated, collection, parameter
from neardup.settings.folds import FOLD


@dataclass(frozen=True, kw_only=True)
class ContaminationSettings(Validated):
    """The rule by which a document contains an item; docs/contamination.md explains it."""

    threshold: float = parameter(
        0.4,
        "The minimum containment: the share of an item's shingles in a stretch of a document.",
        low=0.05,
        high=1.0,
    )
    ngram: int = parameter(
        3,
        "Words in a shingle of an item; of an item in Chinese, Japanese or Thai, 2N - 1 "
        "characters.",
        low=1,
        high=16,
    )
    min_shingles: int = parameter(
        5,
        "The fewest shingles that show an item, half of them rare; a shorter item must be whole.",
        low=1,
        high=1000,
    )
    common: int = parameter(
        10,
        "The most documents that may have a sequence of eight words of an item, and the most items "
        "that may have a shingle. Beyond that it is boilerplate, which is listed and does not "
        "count.",
        low=1,
        high=1_000_000,
    )
    fold: Sequence[str] = parameter((), FOLD)
    markup: bool = parameter(
        True,
        "Fold markup of items and documents: decode HTML entities, and compare formulas in LaTeX "
        "with rendered ones.",
    )
    answers: bool = parameter(
        True,
        "Find long answers alone: enough of an answer, 20 rare shingles or more, shows an item "
        "without its question.",
    )
    structure: bool = parameter(
        False,
        "Find code with other names: compare the kinds of its tokens, too, so that names, numbers "
        "and strings are each alike.",
    )
    max_documents: int = parameter(
        100,
        "The most documents to list for one item, the best first; among documents with at least "
        "0.95 of a long item, the first. All are counted.",
        low=1,
        high=100_000,
    )

    @property
    def min_rare(self) -> int:
        """The fewest rare shingles among the shingles that show an item."""
        return (self.min_shingles + 1) // 2  # half of them, rounded up


@dataclass(frozen=True, kw_only=True)
class CorpusSettings(Validated):
    """The documents that are searched for items."""

    corpus: Any = collection(
        "The documents to search: all paths up to the next option; repeatable. Or an index that "
        "stores texts. Default: the inputs, each searched for the items of the others."
    )


@dataclass(frozen=True, kw_only=True)
class ItemSettings(Validated):
    """The reading of items."""

    item_columns: ColumnNames = parameter(
        None,
        "The columns of an item, by commas or repeated; with weights: question,answer:0.5. "
        "Default: question, problem, prompt, query, instruction, input or text, and the columns of "
        "choices and answers.",
        list,
        sentinels=("NAME...",),
    )
    item_id_column: str | None = parameter(
        None, "The id column of the items. Default: as of a corpus.", str, sentinels=("NAME",)
    )
    benchmark_column: str | None = parameter(
        None,
        "The column of the benchmark. Default: the name of the input.",
        str,
        sentinels=("NAME",),
    )


@dataclass(frozen=True, kw_only=True)
class ContaminationOutput(Validated):
    """The output of a search for items besides its tables."""

    write: Literal["none", "items", "corpus"] = parameter(
        "none",
        "The clean copies to write: the items that were not found (items), the documents of the "
        "corpus without items (corpus), or none.",
        choices=("none", "items", "corpus"),
    )
    lang: Literal["en", "zh"] = parameter(
        "en",
        "The language of output: English, or simplified Chinese, the default of commands in a "
        "Chinese locale.",
        choices=("en", "zh"),
    )
