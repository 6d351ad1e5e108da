"""Cut Chinese texts into words, as jieba does.

The dictionary and the hidden Markov model are jieba's, from the package rjieba (extra ``zh``).
docs/decisions/0009-segmenter.md compares it with others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from importlib import import_module
from importlib.metadata import version
from itertools import accumulate
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neardup.arrays import Bytes, Ints
from neardup.errors import MissingExtraError
from neardup.features.normalise import normalise
from neardup.features.unicode_tables import (
    SINGLE,
    TRANSPARENT,
    WORD,
    classes_of,
    code_points,
    load_tables,
)
from neardup.features.word_files import (
    Entry,
    FileStamp,
    read_stop_words,
    read_user_dict,
    read_word_file,
    stamp_of,
)
from neardup.files import JsonObject
from neardup.settings.methods import Jieba, Shingling

if TYPE_CHECKING:
    import rjieba

PACKAGE = "rjieba"
MAX_PIECE = 65_536
"""Longest text that is cut at once, in characters: working memory is 100 bytes per character."""
_BREAKS = "\n 。，；、！？,;!?"
"""Characters after which a longer text may be cut: no word of jieba contains one of them."""
_HALF_SURROGATE = TRANSPARENT + 1

_lock = Lock()  # two threads at the first batch make one dictionary, not two


class LocatedToken(NamedTuple):
    """A token with its range in the normalised text; an empty range if the text lacks the token."""

    token: str
    start: int
    end: int


class _Words(NamedTuple):
    """The words of a piece of text.

    starts : the offset of each word, empty unless requested. tags : its part of speech, empty
    unless the settings choose by it.
    """

    words: list[str]
    starts: list[int]
    tags: list[str]


def cutter_of(shingling: Shingling) -> Callable[[str], Iterable[Any]] | None:
    """Return the Python function that cuts a normalised text into tokens, or None if a kernel cuts
    it.
    """
    tokens = Jieba() if shingling.tokens == "jieba" else shingling.tokens
    if isinstance(tokens, Jieba):
        return segmenter_of(tokens, shingling)
    return tokens if callable(tokens) else None


def segmenter_of(settings: Jieba, shingling: Shingling = Shingling()) -> Segmenter:  # noqa: B008 - frozen
    """Return the function that cuts normalised texts into Chinese words, shared by calls with the
    same settings.

    Parameters
    ----------
    settings : how to cut.
    shingling : how the texts are normalised; added words and stop words are normalised alike.

    Returns
    -------
    Segmenter
        Called with a text, it returns the words of jieba in order, without words that have no
        letter, digit or underscore (the rule of ``tokens="words"``). Changed files are read again.

    Raises
    ------
    MissingExtraError
        If the package rjieba is not installed.
    InputError
        If a file cannot be read, or a line of the user dictionary cannot be parsed.

    Notes
    -----
    Time is linear in the text, in every mode. A text longer than 65,536 characters is cut into
    pieces of at most this length, each after its last line break, space, comma or full stop, which
    changes no word. Only if 65,536 characters contain none of these, a word may be cut in two.

    Full mode differs from rjieba's, which lists all single characters: here, as in jieba, a single
    character is listed only if no longer word begins there and the word before has ended.
    """
    _package()
    with _lock:
        # The other settings of `shingling` do not change the words, so that calls that differ in
        # them share a segmenter.
        folds = {name: getattr(shingling, name) for name in ("nfkc", "case_fold", "fold")}
        return _segmenter(
            settings,
            Shingling(**folds),
            stamp_of(settings.user_dict),
            stamp_of(settings.stop_words),
        )


def _package() -> Any:
    try:
        return import_module(PACKAGE)
    except ImportError as error:
        raise MissingExtraError(
            f"tokens='jieba' needs the package {PACKAGE}, which is not installed. "
            'Install it: pip install "neardup[zh]". Or use tokens="words", which treats each '
            "Chinese character as a word."
        ) from error


@lru_cache(maxsize=16)
def _segmenter(
    settings: Jieba,
    shingling: Shingling,
    user_dict_stamp: FileStamp | None,
    stop_words_stamp: FileStamp | None,
) -> Segmenter:
    entries = [Entry(word=word, frequency=None, tag=None) for word in settings.words]
    if settings.user_dict is not None:
        # Words from the settings come last, so that they win.
        entries = read_user_dict(settings.user_dict, user_dict_stamp) + entries
    stop_words: list[str] = []
    if settings.stop_words is not None:
        stop_words = read_stop_words(settings.stop_words, stop_words_stamp)

    # Texts are normalised before they are cut, so words can only be found in normalised form.
    normalised = tuple(entry._replace(word=normalise(entry.word, shingling)) for entry in entries)
    return Segmenter(
        settings,
        _dictionary(normalised),
        tags={entry.word: entry.tag for entry in normalised if entry.tag is not None},
        stop_words=frozenset(normalise(word, shingling) for word in stop_words),
    )


@lru_cache(maxsize=4)
def _dictionary(entries: tuple[Entry, ...]) -> rjieba.Jieba:
    """Return jieba's dictionary with added words. It takes 0.1 s and 25 MB, so all modes share
    it.
    """
    dictionary: rjieba.Jieba = _package().Jieba()
    for entry in entries:
        # A frequency of None: the package suggests one, as jieba's suggest_freq does.
        dictionary.add_word(entry.word, entry.frequency, entry.tag)
    return dictionary


def describe_segmenter(settings: Jieba) -> JsonObject:
    """Return everything that affects the words of a text, as values for JSON: fingerprints compare
    if all of it is equal.

    Raises
    ------
    MissingExtraError
        If the package rjieba is not installed.
    InputError
        If a file cannot be read.
    """
    _package()
    return {
        "package": PACKAGE,
        "version": version(PACKAGE),
        "mode": settings.mode,
        "hmm": settings.hmm,
        "user_dict_sha256": _digest(settings.user_dict, "user_dict"),
        "words": list(settings.words),
        "stop_words_sha256": _digest(settings.stop_words, "stop_words"),
        "parts_of_speech": list(settings.parts_of_speech),
    }


def _digest(path: str | None, parameter: str) -> str | None:
    return None if path is None else read_word_file(path, stamp_of(path), parameter).digest


class Segmenter:
    """Cut normalised texts into words, according to one setting; made by `segmenter_of`.

    Threads may share a segmenter: it never changes, and the package releases the GIL.
    """

    def __init__(
        self,
        settings: Jieba,
        dictionary: rjieba.Jieba,
        tags: dict[str, str],
        stop_words: frozenset[str],
    ) -> None:
        self._settings = settings
        self._dictionary = dictionary
        self._tags = tags
        self._stop_words = stop_words

    def __call__(self, text: str) -> list[str]:
        """Return the words of a normalised text."""
        parts_of_speech = self._settings.parts_of_speech
        stop_words = self._stop_words
        visible, _ = _visible(text)
        words: list[str] = []
        for piece in _pieces(visible):
            cut = self._cut(piece, located=False)
            if parts_of_speech:
                tagged = zip(cut.words, cut.tags, strict=True)
                words += [word for word, tag in tagged if tag.startswith(parts_of_speech)]
            else:
                words += cut.words
        # str.isalnum decides nearly all words, at a fraction of the time.
        return [
            word
            for word in words
            if (word.isalnum() or _has_letter(word)) and word not in stop_words
        ]

    def locate(self, text: str) -> list[LocatedToken]:
        """Return the words of a normalised text with their ranges, ``text[start:end]``; slower
        than a call.

        In full and in search mode words overlap; overlapping words share one range, from the start
        of the first to the end of the last.
        """
        visible, positions = _visible(text)
        cut = self._cut_located(visible)
        if not cut.words:
            return []
        starts = np.array(cut.starts, np.int64)
        ends = starts + np.array([len(word) for word in cut.words], np.int64)
        if self._settings.mode != "exact":
            starts, ends = _unite_overlapping(starts, ends)
        # Offsets of the visible text become offsets of the text. A word ends after its last visible
        # character, without the skipped characters that follow.
        starts = positions[starts]
        ends = positions[ends - 1] + 1

        located = list(map(LocatedToken, cut.words, starts.tolist(), ends.tolist()))
        parts_of_speech = self._settings.parts_of_speech
        if parts_of_speech:
            tagged = zip(located, cut.tags, strict=True)
            located = [word for word, tag in tagged if tag.startswith(parts_of_speech)]
        stop_words = self._stop_words
        return [
            word for word in located if word.token not in stop_words and _has_letter(word.token)
        ]

    def _cut_located(self, text: str) -> _Words:
        """Return the words of all pieces of a text, with their starts in the text."""
        whole = _Words(words=[], starts=[], tags=[])
        offset = 0
        for piece in _pieces(text):
            cut = self._cut(piece, located=True)
            whole.words.extend(cut.words)
            whole.starts.extend(start + offset for start in cut.starts)
            whole.tags.extend(cut.tags)
            offset += len(piece)
        return whole

    def _cut(self, piece: str, *, located: bool) -> _Words:
        """Return the words of a piece, white space and punctuation among them."""
        dictionary = self._dictionary
        hmm = self._settings.hmm
        tags: list[str] = []
        if self._settings.parts_of_speech:
            tagged = dictionary.tag(piece, hmm)
            words = [word for word, _ in tagged]
            # For a word that it knew before, the package returns its own tag; jieba returns the
            # user's.
            tags = [self._tags.get(word, tag) or "x" for word, tag in tagged]
        elif self._settings.mode == "exact":
            words = dictionary.cut(piece, hmm)
        elif self._settings.mode == "full":
            return _full_mode(piece, dictionary)
        elif located:  # words of the search mode overlap: their starts do not follow from lengths
            tokens = dictionary.tokenize(piece, "search", hmm)
            words = [token[0] for token in tokens]
            return _Words(words=words, starts=[token[1] for token in tokens], tags=[])
        else:
            words = dictionary.cut_for_search(piece, hmm)
        starts: list[int] = []
        if located:
            starts = [0, *accumulate(map(len, words))][: len(words)]
        return _Words(words=words, starts=starts, tags=tags)


def _visible(text: str) -> tuple[str, Ints]:
    """Return a text without characters that all tokens skip, such as zero-width joiners, and the
    offset in `text` of each remaining character.

    Half surrogates, which the package rejects, become U+FFFD, which is no letter either.
    """
    codes = code_points(text)
    kinds = _kinds()[codes]
    if not (kinds >= TRANSPARENT).any():
        return text, np.arange(len(text))
    positions = np.flatnonzero(kinds != TRANSPARENT)
    visible = codes[positions].astype("<u4").tobytes()
    return visible.decode("utf-32-le", "replace"), positions


def _pieces(text: str) -> Iterator[str]:
    """Yield a text in pieces of at most MAX_PIECE characters, cut after one of _BREAKS."""
    start = 0
    while len(text) - start > MAX_PIECE:
        max_end = start + MAX_PIECE
        end = 1 + max(text.rfind(mark, start, max_end) for mark in _BREAKS)
        if end == 0:  # no break: a word may be cut in two
            end = max_end
        yield text[start:end]
        start = end
    yield text[start:]


def _full_mode(text: str, dictionary: rjieba.Jieba) -> _Words:
    """Return the words of jieba's full mode.

    They are all words of two characters or more, and single characters at which no such word begins
    and the last one has ended. The package returns its words in the order of start and length,
    without offsets: a word that extends the word before it has the same start, any other is the
    next occurrence after that start.
    """
    text = text.replace("\n", " ")  # a line break would be part of the Latin word after it
    words: list[str] = []
    starts: list[int] = []

    def add_singles(start: int, end: int) -> None:
        words.extend(text[start:end])
        starts.extend(range(start, end))

    start = -1  # first character of the last word
    length = 0  # characters of the last word
    reach = 0  # end of the last word
    for word in dictionary.cut_all(text):
        if len(word) == 1:
            continue
        extends_last = len(word) > length and text.startswith(word, start)
        if not extends_last:
            next_start = text.find(word, start + 1)
            add_singles(max(start + 1, reach), next_start)
            start = next_start
        words.append(word)
        starts.append(start)
        length = len(word)
        reach = start + length
        if word.isascii():  # a run of Latin letters contains no other word: continue at its end
            start = reach - 1
            length = 0
    add_singles(max(start + 1, reach), len(text))
    return _Words(words=words, starts=starts, tags=[])


def _unite_overlapping(starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """Return for each range the union of all ranges that overlap it, directly or through others.

    Requires: at least one range.
    """
    order = np.argsort(starts, kind="stable")
    starts = starts[order]
    reaches = np.maximum.accumulate(ends[order])  # the largest end so far

    # A range that begins where all earlier ranges have ended is the first of a union.
    is_first = np.append(True, starts[1:] >= reaches[:-1])
    firsts = np.flatnonzero(is_first)
    lasts = np.append(firsts[1:], len(order)) - 1

    union_numbers = np.empty(len(order), np.int64)
    union_numbers[order] = np.cumsum(is_first) - 1
    return starts[firsts][union_numbers], reaches[lasts][union_numbers]


@lru_cache(maxsize=65_536)
def _has_letter(word: str) -> bool:
    """Return whether a word has a character that ``tokens="words"`` counts."""
    return any(kind in (WORD, SINGLE) for kind in _kinds()[code_points(word)].tolist())


@cache
def _kinds() -> Bytes:
    """Return the token class of each code point; half surrogates have their own class."""
    entries = load_tables(nfkc=False, case_fold=False).entries
    kinds = classes_of(entries).astype(np.uint8)
    kinds[0xD800:0xE000] = _HALF_SURROGATE
    return kinds
