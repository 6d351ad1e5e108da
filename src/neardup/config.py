"""Settings: frozen values, each declared once with its limits, checked when made.

The command line takes its help and its limits from the same declarations, and a test feeds every parameter a value
outside them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from neardup.errors import SettingError

Tokenizer = Callable[[str], Iterable[str]]


@dataclass(frozen=True)
class Limits:
    """What a parameter accepts: a closed range of numbers, or one of some words; and what it is, in a sentence."""

    help: str
    kind: type = float
    low: float | None = None
    high: float | None = None
    above: float | None = None
    choices: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    optional: bool = False
    or_callable: bool = False

    def describe(self) -> str:
        """Say in words what is accepted."""
        if self.choices:
            words = [repr(choice) for choice in self.choices] + [f"'{prefix}COLUMN'" for prefix in self.prefixes]
            return "one of " + ", ".join(words) + (" or a callable" if self.or_callable else "")
        if self.kind is bool:
            return "True or False"
        noun = "a whole number" if self.kind is int else "a number"
        low = f" above {_number(self.above)}" if self.above is not None else f" of {_number(self.low)} or more"
        high = f" and at most {_number(self.high)}" if self.high is not None else ""
        return noun + low + high + (" or None" if self.optional else "")

    def accepts(self, value: object) -> bool:
        """Return whether a value lies within these limits."""
        if value is None:
            return self.optional
        if self.choices:
            named = isinstance(value, str) and (
                value in self.choices or any(value.startswith(p) and len(value) > len(p) for p in self.prefixes)
            )
            return named or (self.or_callable and callable(value))
        if self.kind is bool or isinstance(value, bool):
            return self.kind is bool and isinstance(value, bool)
        if not isinstance(value, int if self.kind is int else (int, float)):
            return False
        return (
            value == value
            and (self.low is None or value >= self.low)
            and (self.above is None or value > self.above)
            and (self.high is None or value <= self.high)
        )


def _number(value: float | None) -> str:
    """Write a limit in full: 4294967295, not 4.29497e+09."""
    return "any size" if value is None else str(int(value)) if value == int(value) else repr(value)


def parameter(default: Any, limits: Limits) -> Any:
    """Declare a field with its default and its limits."""
    return dataclasses.field(default=default, metadata={"limits": limits})


def limits_of(settings: type) -> dict[str, Limits]:
    """Return the limits of each parameter of a class of settings, by name."""
    return {field.name: field.metadata["limits"] for field in dataclasses.fields(settings)}


class Checked:
    """Base of the settings: checks every field against its limits."""

    def __post_init__(self) -> None:
        for name, limits in limits_of(type(self)).items():
            value = getattr(self, name)
            if not limits.accepts(value):
                option = "--" + name.replace("_", "-")
                raise SettingError(
                    f"{name} must be {limits.describe()}: got {value!r}. {limits.help} Change {name} ({option})."
                )


@dataclass(frozen=True, kw_only=True)
class Shingling(Checked):
    """How a text becomes a set of shingles.

    A text is normalised (Unicode NFKC, then case folding), cut into tokens, and each run of `ngram` tokens is a
    shingle. A text of fewer tokens is one shingle; a text of none has no features and equals nothing.
    """

    tokens: str | Tokenizer = parameter(
        "words",
        Limits(
            "What a token is: Unicode words (a Chinese, Japanese or Thai character is one), code points, or words "
            "between white space; in Python also the strings that a callable returns for a text.",
            str,
            choices=("words", "chars", "whitespace"),
            or_callable=True,
        ),
    )
    ngram: int = parameter(5, Limits("Tokens in a shingle.", int, low=1, high=64))
    nfkc: bool = parameter(True, Limits("Normalise to NFKC, so that full-width letters and ligatures match.", bool))
    case_fold: bool = parameter(True, Limits("Fold case, so that Straße matches STRASSE.", bool))
    fold_chinese: bool = parameter(
        False, Limits("Fold traditional Chinese characters to simplified ones, one by one.", bool)
    )


@dataclass(frozen=True, kw_only=True)
class MinHash(Shingling):
    """MinHash signatures cut into bands: which pairs are compared; and the similarity that confirms them.

    Examples
    --------
    >>> MinHash(threshold=0.7, ngram=3).threshold
    0.7
    """

    threshold: float = parameter(
        0.8, Limits("The similarity from which two documents are duplicates.", above=0.0, high=1.0)
    )
    recall: float = parameter(
        0.99,
        Limits(
            "The share of pairs just at the threshold that must be found; more similar pairs are found more often.",
            above=0.0,
            high=0.999999,
        ),
    )
    similarity: str = parameter(
        "jaccard",
        Limits(
            "How alike two sets of shingles are: shared ones out of all (jaccard), or out of those of the "
            "document that may be removed (containment; excerpts go when the whole text comes before: keep=longest).",
            str,
            choices=("jaccard", "containment"),
        ),
    )
    num_bands: int | None = parameter(
        None,
        Limits(
            "Bands of a signature; chosen from threshold and recall when unset.", int, low=1, high=512, optional=True
        ),
    )
    rows_per_band: int | None = parameter(
        None,
        Limits("Hashes in a band; chosen from threshold and recall when unset.", int, low=1, high=64, optional=True),
    )
    seed: int = parameter(1, Limits("Seed of the permutations; part of the scheme.", int, low=0, high=2**32 - 1))

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.num_bands is None) != (self.rows_per_band is None):
            raise SettingError(
                f"num_bands and rows_per_band go together: got num_bands={self.num_bands}, "
                f"rows_per_band={self.rows_per_band}. Give both, or leave both unset to have them chosen."
            )
        if self.num_bands is not None and self.similarity == "containment":
            raise SettingError(
                f"Bands are for jaccard similarity: got num_bands={self.num_bands} with similarity='containment', "
                "which proposes pairs by samples. Leave num_bands and rows_per_band unset."
            )


@dataclass(frozen=True, kw_only=True)
class Sieve(Checked):
    """Which document of several alike is kept, and how far the search goes."""

    keep: str = parameter(
        "first",
        Limits(
            "Which document of several alike stays: by place, by length, or by a numeric column.",
            str,
            choices=("first", "last", "longest", "shortest"),
            prefixes=("max:", "min:"),
        ),
    )
    clusters: str = parameter(
        "sieve",
        Limits(
            "Remove what resembles a kept document (sieve), or all but one of each chain of resemblances (connected).",
            str,
            choices=("sieve", "connected"),
        ),
    )
    max_bucket: int = parameter(
        1000,
        Limits(
            "Kept documents that one bucket lists at most, so that boilerplate does not turn the work "
            "quadratic; the report says when the bound was met.",
            int,
            low=1,
            high=100_000,
        ),
    )
    audit: int = parameter(
        0,
        Limits(
            "Documents to compare with all others exactly, to measure the recall; 0 for none.", int, low=0, high=100_000
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Running(Checked):
    """How a run uses the machine. Nothing here changes the answer."""

    threads: int | None = parameter(
        None, Limits("Worker threads; all processors of this process when unset.", int, low=1, high=1024, optional=True)
    )
    batch_rows: int | None = parameter(
        None,
        Limits(
            "Documents that are worked on at once; by their size when unset.", int, low=1, high=1_000_000, optional=True
        ),
    )
    on_error: str = parameter(
        "reject",
        Limits(
            "What a document that cannot be read does: land in rejected.jsonl, or stop the run.",
            str,
            choices=("reject", "stop"),
        ),
    )
