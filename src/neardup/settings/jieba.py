"""The settings of Chinese words."""

from __future__ import annotations

from dataclasses import dataclass

from neardup.errors import SettingError
from neardup.settings.constraints import Validated, constraints_of, parameter


@dataclass(frozen=True, kw_only=True)
class Jieba(Validated):
    """Chinese words, as the segmenter jieba cuts them; runs of Latin letters and digits are words
    of their own.

    user_dict : a dictionary in jieba's format, a line each of a word, its frequency and its part of
    speech, the last two optional. words : words to add to the dictionary. stop_words : a file of
    words to leave out, one a line. parts_of_speech : the words to keep, by jieba's tags or their
    first letters: "n" keeps every noun, "nr" names of people.

    Examples
    --------
    >>> Jieba(mode="search").mode
    'search'
    """

    mode: str = parameter(
        "exact",
        "Split sentences into words (exact), list every dictionary word in them (full), or split "
        "them and then their long words (search).",
        choices=("exact", "full", "search"),
        flag="--jieba-mode",
    )
    hmm: bool = parameter(
        True,
        "Find words that are not in the dictionary, by a hidden Markov model.",
    )
    user_dict: str | None = parameter(None, "An additional dictionary, in jieba's format.", str)
    words: tuple[str, ...] = parameter(
        (), "Words to add to the dictionary.", sentinels=("WORD...",), flag="--add-word"
    )
    stop_words: str | None = parameter(None, "A file of words to ignore, one per line.", str)
    parts_of_speech: tuple[str, ...] = parameter(
        (),
        "Parts of speech to keep. Default: all.",
        sentinels=("WORD...",),
        flag="--part-of-speech",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        # jieba cuts at white space first, so it would never find such a word.
        spaced = next((word for word in self.words if word.split() != [word]), None)
        if spaced is not None:
            raise SettingError(
                f"words are whole, without white space: got {spaced!r}. Give the words one by one "
                "(--add-word)."
            )
        # jieba tags words only in its exact mode.
        if self.mode != "exact" and self.parts_of_speech:
            raise SettingError(
                "parts_of_speech requires mode='exact', which cuts a sentence once: got "
                f"mode={self.mode!r}. Leave one of the two out."
            )


JIEBA = {
    constraint.flag.removeprefix("--").replace("-", "_") or name: name
    for name, constraint in constraints_of(Jieba).items()
}
"""The fields by their options on the command line: by their flags, if they have any."""
