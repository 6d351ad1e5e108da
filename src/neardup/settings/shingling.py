"""How a document becomes a set of shingles: settings that every method has."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from neardup.errors import SettingError
from neardup.settings.constraints import Validated, parameter

Tokenizer = Callable[[str], Iterable[Any]]  # of strings; for SimHash(weights="given") of (string, weight) pairs
S = TypeVar("S", bound="DocumentSettings")
T = TypeVar("T", bound="Shingling")
PAGE_TOKENS = ("tags", "elements", "paths")
"""Tokens of the structure of HTML pages; all others are tokens of texts."""


@dataclass(frozen=True, kw_only=True)
class Jieba(Validated):
    """Chinese words, as the segmenter jieba cuts them; runs of Latin letters and digits are words of their own.

    user_dict : a dictionary in jieba's format, a line each of a word, its frequency and its part of speech, the
    last two optional. words : words to add to the dictionary. stop_words : a file of words to leave out, one a line.
    parts_of_speech : keep words of these only, by jieba's tags or their first letters: "n" keeps every
    noun, "nr" names of people.

    Examples
    --------
    >>> Jieba(mode="search").mode
    'search'
    """

    mode: str = parameter(
        "exact",
        "Split each sentence into words (exact), list every dictionary word in it (full), or split it and then "
        "split long words again (search).",
        choices=("exact", "full", "search"),
    )
    hmm: bool = parameter(True, "Find words that are not in the dictionary, using a hidden Markov model of characters.")
    user_dict: str | None = parameter(None, "An additional dictionary, in jieba's format.", str)
    words: tuple[str, ...] = parameter((), "Words to add to the dictionary.")
    stop_words: str | None = parameter(None, "A file of words to ignore, one per line.", str)
    parts_of_speech: tuple[str, ...] = parameter((), "Parts of speech to keep. Default: all.")

    def __post_init__(self) -> None:
        super().__post_init__()
        spaced = next((word for word in self.words if word.split() != [word]), None)
        if spaced is not None:
            raise SettingError(
                f"words are whole, without white space: got {spaced!r}. Give the words one by one (--add-word)."
            )
        if self.mode != "exact" and self.parts_of_speech:
            raise SettingError(
                f"parts_of_speech requires mode='exact', which cuts a sentence once: got mode={self.mode!r}. "
                "Leave one of the two out."
            )


class DocumentSettings(Validated):
    """What the documents of a method are: texts, pages or vectors."""

    @property
    def shingling(self) -> Shingling:
        """How documents, as texts, are cut to show what two of them share."""
        return Shingling()

    @property
    def vector_length(self) -> int | None:
        """The numbers in a document that is a vector, 0 for as many as the first has; None if documents are texts."""
        return None

    def of_pages(self: S) -> S:
        """Return the settings for web pages."""
        return self


@dataclass(frozen=True, kw_only=True)
class Shingling(DocumentSettings):
    """How a text becomes a set of shingles.

    A text is normalised (Unicode NFKC, then case folding), cut into tokens, and each run of `ngram` tokens is a
    shingle. A text of fewer tokens is one shingle; a text of none has no features and equals nothing. HTML pages
    are compared by the text that `html` names, or by their tags as tokens.
    """

    tokens: str | Jieba | Tokenizer = parameter(
        "words",
        "The tokens of a text: Unicode words (each Chinese, Japanese or Thai character is a word), code points "
        "(each run of white space counts as one space), words between white space, or Chinese words by jieba "
        "(extra zh). Of an HTML page: its start tags with their attributes; with SimHash also its elements, or "
        "their tag paths. In Python also the strings that a callable returns.",
        choices=("words", "chars", "whitespace", "jieba", "tags"),
        or_callable=True,
        also_accepts=Jieba,
    )
    ngram: int = parameter(5, "Tokens in a shingle.", low=1, high=64)
    nfkc: bool = parameter(True, "Normalise to NFKC, so that full-width letters and ligatures match.")
    case_fold: bool = parameter(True, "Fold case, so that Straße matches STRASSE.")
    fold_chinese: bool = parameter(False, "Fold traditional Chinese characters to simplified ones, one by one.")
    html: str | None = parameter(
        None,
        "Read documents as HTML pages, and compare their main text (extra web) or all visible text.",
        str,
        choices=("main", "all"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tokens in PAGE_TOKENS:
            self._refuse_settings_of_texts()

    @property
    def shingling(self) -> Shingling:
        return self

    def of_pages(self: T) -> T:
        """Return the settings for web pages: they compare the main text, unless they set something else."""
        return self if self.html is not None or self.tokens in PAGE_TOKENS else replace(self, html="main")

    def _refuse_settings_of_texts(self) -> None:
        for name, plain in (("nfkc", True), ("case_fold", True), ("fold_chinese", False), ("html", None)):
            value = getattr(self, name)
            if value != plain:
                raise SettingError(
                    f"tokens={self.tokens!r} reads the tags of a page, and {name} is for texts: got {name}={value!r}. "
                    f"Leave {name} unset, or take tokens of texts."
                )
