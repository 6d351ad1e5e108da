"""The settings of a search for repeated passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from neardup.errors import SettingError
from neardup.settings.constraints import Validated, collection, flag_of, parameter
from neardup.settings.folds import FOLD

CutAt = Literal["character", "word", "sentence", "line"]
Unit = Literal["paragraph", "line", "sentence"]
MIN_LENGTH = 40
# by default
_LENGTH = 200
_UNIT_LENGTH = 20


@dataclass(frozen=True, kw_only=True)
class PassageSettings(Validated):
    """The rule by which passages are cut; docs/passages.md explains it."""

    min_length: int = parameter(
        None,
        "The fewest characters of a passage, before its ends move to whole words, or of a unit. "
        "Default: 200, with unit 20.",
        int,
        low=1,
        high=100_000,
    )
    unit: Unit | None = parameter(
        None,
        "Cut whole paragraphs (between blank lines), lines or sentences, instead of passages that "
        "may begin anywhere.",
        str,
        choices=("paragraph", "line", "sentence"),
    )
    normalise: bool = parameter(
        False,
        "With unit, compare words as dedup does: without case, width, white space and punctuation.",
    )
    fold: Sequence[str] = parameter((), FOLD)
    cut_at: CutAt = parameter(
        "word",
        (
            "The places where cuts end: between characters as readers see them, words, sentences "
            "or lines."
        ),
        choices=("character", "word", "sentence", "line"),
    )
    bridge: int = parameter(
        0,
        (
            "Also cut the text between two passages, if it has at most this many characters. Less "
            "than min_length."
        ),
        low=0,
        high=99_999,
    )
    keep: Literal["first", "none"] = parameter(
        "first",
        "The copy of a passage that stays: the first one; or none, which cuts passages of at least "
        "min_share of the documents from all of them.",
        choices=("first", "none"),
    )
    min_share: float = parameter(
        0.0,
        (
            "With keep=none, the least share of the documents (with within, of equal value) that "
            "have a passage; at least two documents."
        ),
        low=0.0,
        high=1.0,
    )
    max_loss: float = parameter(
        1.0,
        "Drop a document that loses more than this share of its characters, or all of them.",
        low=0.0,
        high=1.0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        default = _LENGTH if self.unit is None else _UNIT_LENGTH
        # The class is frozen; the default depends on `unit`.
        object.__setattr__(self, "min_length", self.min_length or default)
        self._check_unit()
        if self.bridge >= self.min_length:
            raise SettingError(
                f"bridge must be less than min_length: got bridge={self.bridge} with "
                f"min_length={self.min_length}. Change bridge (--bridge) or min_length "
                "(--min-length)."
            )
        if self.min_share > 0 and self.keep != "none":
            raise SettingError(
                f"min_share needs keep='none': got min_share={self.min_share:g} with "
                f"keep={self.keep!r}. Add keep='none' (--keep none), or leave min_share "
                "(--min-share) out."
            )

    def _check_unit(self) -> None:
        if self.unit is None and self.min_length < MIN_LENGTH:
            raise SettingError(
                f"min_length must be {MIN_LENGTH} or more, or come with unit: got "
                f"min_length={self.min_length}. Change min_length (--min-length), or add unit "
                "(--unit), whose units may be shorter."
            )
        if self.unit is None and self.normalise:
            raise SettingError(
                "normalise needs unit: got normalise=True alone. Add unit (--unit paragraph, line "
                "or sentence), or leave normalise (--normalise) out."
            )
        if self.fold and not self.normalise:
            raise SettingError(
                f"fold needs normalise, which compares words: got fold={list(self.fold)}. Add "
                "normalise (--normalise), or leave fold (--fold) out."
            )
        if self.unit is not None and (self.bridge or self.cut_at != "word"):
            name = "bridge" if self.bridge else "cut_at"
            raise SettingError(
                f"{name} has no meaning with unit, which cuts whole units only: got "
                f"{name}={getattr(self, name)!r} with unit={self.unit!r}. Leave {name} "
                f"({flag_of(name)}) or unit (--unit) out."
            )


@dataclass(frozen=True, kw_only=True)
class PassageInputs(Validated):
    """The earlier collection of a run that cuts passages."""

    against: Any = collection("An earlier collection from which nothing is cut; repeatable.")


@dataclass(frozen=True, kw_only=True)
class PassageOutput(Validated):
    """The output besides passages.parquet."""

    write: Literal["kept", "marked", "removed"] = parameter(
        "kept",
        "The output besides passages.parquet: the documents without the passages, in the format of "
        "the input (kept), all documents with each passage between \u27e6 and \u27e7 (marked), or "
        "nothing (removed).",
        choices=("kept", "marked", "removed"),
    )
    lang: Literal["en", "zh"] = parameter(
        "en",
        "The language of output: English, or simplified Chinese, the default of commands in a "
        "Chinese locale.",
        choices=("en", "zh"),
    )
