"""The tokens of documents: given in a column, or cut by a callable or a segmenter of Chinese.

The words of Chinese are those of jieba, from its dictionary and its hidden Markov model, by the
package rjieba (extra ``zh``), which docs/decisions/0009-segmenter.md weighs against others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from itertools import accumulate, chain
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup import kernels
from neardup.arrays import (
    Bytes,
    Ints,
    Mask,
    Words,
    arrow_of,
    flatten_strings,
    offsets_from_lengths,
    view_strings,
)
from neardup.documents.texts import as_text, is_number, is_text, storage_type
from neardup.errors import InputError, MissingExtraError
from neardup.features.normalise import normalise
from neardup.features.unicode_tables import (
    SINGLE,
    TRANSPARENT,
    WORD,
    classes_of,
    code_points,
    load_tables,
)
from neardup.files import JsonObject
from neardup.kernels.token_arrays import Shingles, Text, TokenStrings, make_shingles
from neardup.settings.methods import Jieba, Shingling

if TYPE_CHECKING:
    import rjieba


class HashedTokens(NamedTuple):
    """Tokens that are not empty.

    strings : the tokens. hashes : uint64, of each. offsets : int64 (num_rows + 1,); the tokens of
    row i are offsets[i] to offsets[i + 1].
    """

    strings: pa.Array
    hashes: Words
    offsets: Ints


def list_element(dtype: pa.DataType) -> pa.DataType | None:
    """Return the type of the elements of a column of lists, None if it is of another type; a map is
    a list of pairs.
    """
    t = pa.types
    if t.is_map(dtype):
        return pa.struct([dtype.key_field, dtype.item_field])
    lists = (t.is_list, t.is_large_list, t.is_fixed_size_list, t.is_list_view, t.is_large_list_view)
    return dtype.value_type if any(is_list(dtype) for is_list in lists) else None


def is_weighted(dtype: pa.DataType) -> bool:
    """Return whether a type is that of a token with its weight."""
    return (
        pa.types.is_struct(dtype)
        and dtype.num_fields == 2
        and is_text(dtype[0].type)
        and is_number(dtype[1].type)
    )


def list_offsets(lists: pa.Array, first: int) -> Ints:
    """Return the offsets of lists in their flattened tokens, int64 (num_rows + 1,).

    Parameters
    ----------
    lists : a column of lists, or a part of it.
    first : the number of its first row.

    Raises
    ------
    InputError
        If an offset points outside the column.
    """
    if not isinstance(lists, (pa.ListArray, pa.LargeListArray)) or lists.null_count:
        return offsets_from_lengths(
            pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
        )
    offsets: Ints = lists.offsets.to_numpy().astype(np.int64)
    wrong = (offsets < 0) | (offsets > len(lists.values))
    wrong[1:] |= np.diff(offsets) < 0
    if wrong.any():
        raise damaged_row(first + max(0, int(np.argmax(wrong)) - 1))
    offsets -= offsets[0]
    return offsets


def damaged_row(row: int) -> InputError:
    """Return the error of a row whose memory is damaged."""
    return InputError(
        f"Row {row:,} of the column refers to memory outside of the column. The column is damaged: "
        "column.validate(full=True) locates the fault. Create it again from its source."
    )


def hash_tokens(tokens: pa.Array, row_offsets: Ints) -> tuple[HashedTokens | None, int]:
    """Return the tokens that are not empty and -1; None and the first row of a damaged one, if
    there is one.
    """
    data, offsets = view_tokens(tokens)
    hashes = np.empty(len(tokens), np.uint64)
    damaged = int(kernels.strings.hash_strings(data, offsets, hashes))
    if damaged >= 0:
        return None, int(np.searchsorted(row_offsets, damaged, side="right")) - 1
    filled = np.diff(offsets) > 0
    if not filled.all():
        tokens, hashes = tokens.filter(arrow_of(filled)), hashes[filled]
        row_offsets = offsets_from_lengths(filled)[row_offsets]
    return HashedTokens(_as_strings(tokens), hashes, row_offsets), -1


def is_filled(tokens: pa.Array) -> Mask:
    """Return whether each token has characters, bool (num_tokens,)."""
    return np.greater(np.diff(view_tokens(tokens)[1]), 0)


def view_tokens(tokens: pa.Array) -> tuple[Bytes, Ints]:
    """Return the UTF-8 of tokens and its offsets, as `view_strings` does."""
    return view_strings(_as_strings(tokens))


def _as_strings(tokens: pa.Array) -> pa.Array:
    dtype = storage_type(tokens.type)
    in_place = pa.types.is_string(dtype) or pa.types.is_large_string(dtype)
    return tokens if in_place and dtype == tokens.type else as_text(tokens, "the tokens")[0]


STRING_LISTS = pa.large_list(pa.large_string())


def cut_documents(
    texts: pa.Array, cut: Callable[[str], Iterable[Any]], shingling: Shingling
) -> TokenStrings:
    """Return the tokens that a function cuts normalised texts into; a null has none."""
    lists = [list(cut(normalise(text or "", shingling))) for text in texts.to_pylist()]
    return pack_tokens(lists, None if isinstance(cut, Segmenter) else shingling.tokens)


def pack_tokens(lists: Sequence[list[Any]], source: object = None) -> TokenStrings:
    """Return lists of tokens side by side.

    Parameters
    ----------
    lists : the tokens of each document.
    source : who returned them, for the error; None where they are strings without doubt.

    Raises
    ------
    InputError
        If a token is not a string.
    """
    wrong = (
        []
        if source is None
        else [token for token in chain.from_iterable(lists) if not isinstance(token, str)]
    )
    if wrong:
        raise InputError(
            f"The tokenizer must return strings: got {wrong[0]!r} from {source!r}. Return an "
            "iterable of str."
        )
    # An empty token is none; without any, the lists are taken as they are.
    if any(not all(tokens) for tokens in lists):
        lists = [[token for token in tokens if token] for tokens in lists]
    limits = offsets_from_lengths([len(tokens) for tokens in lists])
    return TokenStrings(*flatten_strings(list_strings(lists).values), limits)


def list_strings(rows: Sequence[Any]) -> pa.LargeListArray:
    """Return lists, tuples or sets of strings as an Arrow column of lists; in less time than
    `pa.array` takes for sets.

    Parameters
    ----------
    rows : collections of strings; None is an empty one.

    Raises
    ------
    TypeError, ValueError, pyarrow.ArrowException
        If a row is no collection, holds anything but strings and None, or a string has no UTF-8.
    """
    offsets = offsets_from_lengths([0 if row is None else len(row) for row in rows])
    strings = pa.array(
        list(chain.from_iterable(row for row in rows if row is not None)), "large_string"
    )
    return pa.LargeListArray.from_arrays(pa.array(offsets), strings)


def shingle_strings(tokens: TokenStrings, ngram: int) -> Shingles:
    """Return the hashes of n-grams of tokens that are strings, and the content hash of each
    document.
    """
    num_documents = len(tokens.document_offsets) - 1
    longest = int(np.diff(tokens.document_offsets).max(initial=0))
    shingles = make_shingles(
        np.empty(int(tokens.document_offsets[-1]) + num_documents, np.uint64), num_documents
    )
    buffer = np.empty(longest, np.uint64)
    kernels.tokens.shingle_tokens(
        Text(tokens.data, tokens.offsets), tokens.document_offsets, ngram, buffer, shingles
    )
    return shingles.trim()


PACKAGE = "rjieba"
MAX_PIECE = 65_536
"""Longest text that is cut at once, in characters: working memory is a hundred bytes a character.
"""
_BREAKS = "\n 。，；、！？,;!?"
"""Where a longer text may be cut without changing a word: jieba's words hold none of these."""

_MAX_FREQUENCY = 2**31 - 1
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_DIGITS = frozenset("0123456789")
_HALF_SURROGATE = TRANSPARENT + 1

_lock = Lock()  # two threads at the first batch make one dictionary, not two


class _Entry(NamedTuple):
    """A line of a user dictionary."""

    word: str
    frequency: int | None
    tag: str | None


class _WordFile(NamedTuple):
    """A file as it was when it was read: the text of its lines, and the SHA-256 of its bytes."""

    lines: list[str]
    digest: str


class _Words(NamedTuple):
    """Words, where each begins in the text, and its part of speech; the last two where they are
    needed.
    """

    words: list[str]
    starts: list[int]
    tags: list[str]


class Segmenter:
    """Cut normalised texts into words, according to one setting; made by `segmenter_of`.

    Threads may share one: nothing changes after it was made, and the package lets other threads run
    meanwhile.
    """

    def __init__(
        self,
        settings: Jieba,
        dictionary: rjieba.Jieba,
        tags: dict[str, str],
        stop_words: frozenset[str],
    ) -> None:
        self._settings, self._dictionary = settings, dictionary
        self._tags, self._stop_words = tags, stop_words

    def __call__(self, text: str) -> list[str]:
        """Return the words of a normalised text."""
        wanted, stop_words = self._settings.parts_of_speech, self._stop_words
        words: list[str] = []
        for piece in _pieces(_visible(text)[0]):
            cut = self._cut(piece, located=False)
            tagged = zip(cut.words, cut.tags, strict=True) if wanted else ()
            words += (
                [word for word, tag in tagged if tag.startswith(wanted)] if wanted else cut.words
            )
        return [
            word
            for word in words
            if (word.isalnum() or _has_letter(word)) and word not in stop_words
        ]

    def places(self, text: str) -> list[tuple[str, int, int]]:
        """Return the words of a normalised text, each with its place, ``text[start:end]``; slower
        than a call.

        In full and in search mode words overlap; those that do share one place, from the first to
        the last of them.
        """
        shown, positions = _visible(text)
        words: list[str] = []
        starts: list[int] = []
        tags: list[str] = []
        before = 0
        for piece in _pieces(shown):
            cut = self._cut(piece, located=True)
            words += cut.words
            starts += [start + before for start in cut.starts]
            tags += cut.tags
            before += len(piece)
        ends = [start + len(word) for word, start in zip(words, starts, strict=True)]
        if words and self._settings.mode != "exact":
            starts, ends = _united(starts, ends)
        begins, stops = (
            positions[np.array(starts, np.int64)],
            positions[np.array(ends, np.int64) - 1] + 1,
        )
        places = zip(words, begins.tolist(), stops.tolist(), strict=True)
        wanted = self._settings.parts_of_speech
        return [
            place
            for place, tag in zip(places, tags or words, strict=True)
            if (not wanted or tag.startswith(wanted))
            and place[0] not in self._stop_words
            and _has_letter(place[0])
        ]

    def _cut(self, piece: str, *, located: bool) -> _Words:
        """Return the words of a piece, white space and punctuation among them."""
        dictionary, hmm, tags = self._dictionary, self._settings.hmm, []
        if self._settings.parts_of_speech:
            # The package keeps its own tag of a word that it knew before; jieba takes the user's.
            tagged, user_tags = dictionary.tag(piece, hmm), self._tags
            words, tags = (
                [word for word, _ in tagged],
                [user_tags.get(word, tag) or "x" for word, tag in tagged],
            )
        elif self._settings.mode == "exact":
            words = dictionary.cut(piece, hmm)
        elif self._settings.mode == "full":
            return _full_mode(piece, dictionary)
        elif located:
            tokens = dictionary.tokenize(piece, "search", hmm)
            return _Words([token[0] for token in tokens], [token[1] for token in tokens], [])
        else:
            words = dictionary.cut_for_search(piece, hmm)
        return _Words(
            words, [0, *accumulate(map(len, words))][: len(words)] if located else [], tags
        )


def cutter_of(shingling: Shingling) -> Callable[[str], Iterable[Any]] | None:
    """Return the Python function that cuts a normalised text into tokens, or None where a kernel
    does.
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
    shingling : how the texts are normalised, so that added words and stop words can be, too.

    Returns
    -------
    Segmenter: called with a text, it returns the words of jieba in order, without those that have
        no letter, digit or
    underscore, the rule of ``tokens="words"``. Files that changed are read again.

    Raises
    ------
    MissingExtraError
        If the package rjieba is not installed.
    InputError
        If a file cannot be read, or a line of the user dictionary cannot be understood.

    Notes
    -----
    Time is linear in the text, in every mode. A text longer than 65,536 characters is cut into
    pieces of at most so many, behind the last line break, space, comma or full stop of a piece,
    which changes no word; only where 65,536 characters hold none of these, a word may be cut in
    two.

    Full mode differs from that of rjieba, which lists single characters too: here, as in jieba,
    they are listed only where no longer word begins and the word before has ended.
    """
    _package()
    with _lock:
        folds = {name: getattr(shingling, name) for name in ("nfkc", "case_fold", "fold_chinese")}
        return _segmenter(
            settings, Shingling(**folds), _stamp(settings.user_dict), _stamp(settings.stop_words)
        )


def describe_segmenter(settings: Jieba) -> JsonObject:
    """Return all that affects the words of a text, as values for JSON: fingerprints compare if all
    of it is equal.

    Raises
    ------
    MissingExtraError
        If the package rjieba is not installed.
    InputError
        If a file cannot be read.
    """
    _package()
    files = (settings.user_dict, "user_dict"), (settings.stop_words, "stop_words")
    digests = [
        None if path is None else _read_lines(path, _stamp(path), name).digest
        for path, name in files
    ]
    return {
        "package": PACKAGE,
        "version": version(PACKAGE),
        "mode": settings.mode,
        "hmm": settings.hmm,
        "user_dict_sha256": digests[0],
        "words": list(settings.words),
        "stop_words_sha256": digests[1],
        "parts_of_speech": list(settings.parts_of_speech),
    }


def _package() -> Any:
    try:
        return import_module(PACKAGE)
    except ImportError as error:
        raise MissingExtraError(
            f"tokens='jieba' needs the package {PACKAGE}, which is not installed. "
            'Install it: pip install "neardup[zh]". Or use tokens="words", which treats each '
            "Chinese character "
            "as a word."
        ) from error


@lru_cache(maxsize=16)
def _segmenter(
    settings: Jieba, shingling: Shingling, user_dict: object, stop_words: object
) -> Segmenter:
    """Return a segmenter; the last two stand for the files' contents, so that a file that changed
    is read again.
    """
    entries = [_Entry(word, None, None) for word in settings.words]
    stops: frozenset[str] = frozenset()
    if settings.user_dict is not None:
        lines = _read_lines(settings.user_dict, user_dict, "user_dict").lines
        filled = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
        entries = [
            _parse_entry(line, number, settings.user_dict) for number, line in filled
        ] + entries
    if settings.stop_words is not None:
        lines = _read_lines(settings.stop_words, stop_words, "stop_words").lines
        stops = frozenset(normalise(line.strip(), shingling) for line in lines if line.strip())
    # Texts come normalised, so a word must be to be found in them.
    normalised = tuple(entry._replace(word=normalise(entry.word, shingling)) for entry in entries)
    tags = {entry.word: entry.tag for entry in normalised if entry.tag is not None}
    return Segmenter(settings, _dictionary(normalised), tags, stops)


@lru_cache(maxsize=4)
def _dictionary(entries: tuple[_Entry, ...]) -> rjieba.Jieba:
    """Return jieba's dictionary with some words added: 0.1 s and 25 MB, hence shared by all
    modes.
    """
    dictionary: rjieba.Jieba = _package().Jieba()
    for entry in entries:
        dictionary.add_word(
            entry.word, entry.frequency, entry.tag
        )  # a frequency of None: as suggest_freq says
    return dictionary


def _pieces(text: str) -> Iterator[str]:
    """Yield a text in pieces of at most MAX_PIECE characters, as `segmenter_of` says."""
    start = 0
    while len(text) - start > MAX_PIECE:
        cut = max(text.rfind(mark, start, start + MAX_PIECE) for mark in _BREAKS) + 1
        cut = cut or start + MAX_PIECE
        yield text[start:cut]
        start = cut
    yield text[start:]


def _full_mode(text: str, dictionary: rjieba.Jieba) -> _Words:
    """Return the words of jieba's full mode.

    All words of two characters or more, and a single character where no such word begins and the
    last one listed has ended. The package lists its words by where they begin, then by length, so
    that each is the first match behind the one before it.
    """
    text = text.replace("\n", " ")  # else a line break is part of the Latin word behind it
    words: list[str] = []
    starts: list[int] = []
    start, length, reach = -1, 0, 0
    for word in dictionary.cut_all(text):
        if len(word) == 1:
            continue
        if len(word) <= length or not text.startswith(word, start):
            at = text.find(word, start + 1)
            singles = range(max(start + 1, reach), at)
            words += text[singles.start : at]
            starts += singles
            start = at
        words.append(word)
        starts.append(start)
        length, reach = len(word), start + len(word)
        if word.isascii():  # a run of Latin letters, which holds no other words
            start, length = reach - 1, 0
    singles = range(max(start + 1, reach), len(text))
    words += text[singles.start :]
    starts += singles
    return _Words(words, starts, [])


def _united(starts: list[int], ends: list[int]) -> tuple[list[int], list[int]]:
    """Return for each range the one that it and those that overlap with it make up together; one
    range at least.
    """
    order = np.argsort(starts, kind="stable")
    begins, reaches = (
        np.array(starts, np.int64)[order],
        np.maximum.accumulate(np.array(ends, np.int64)[order]),
    )
    is_first = np.append(True, begins[1:] >= reaches[:-1])
    homes = np.empty(len(order), np.int64)
    homes[order] = np.cumsum(is_first) - 1
    lasts = np.append(np.flatnonzero(is_first)[1:] - 1, len(order) - 1)
    return begins[is_first][homes].tolist(), reaches[lasts][homes].tolist()


def _visible(text: str) -> tuple[str, Ints]:
    """Return a text without what all tokens pass over, such as zero-width joiners, and where the
    rest of it stood.

    Half surrogates, which the package does not take, become U+FFFD, which is no letter either.
    """
    codes = code_points(text)
    kinds = _kinds()[codes]
    if not (kinds >= TRANSPARENT).any():
        return text, np.arange(len(text))
    places = np.flatnonzero(kinds != TRANSPARENT)
    return codes[places].astype("<u4").tobytes().decode("utf-32-le", "replace"), places


@lru_cache(maxsize=65_536)
def _has_letter(word: str) -> bool:
    """Return whether a word holds a character that ``tokens="words"`` counts."""
    return any(kind in (WORD, SINGLE) for kind in _kinds()[code_points(word)].tolist())


@cache
def _kinds() -> Bytes:
    """Return the token class of each code point; half surrogates have one of their own."""
    kinds = classes_of(load_tables(nfkc=False, case_fold=False, fold_chinese=False).entries).astype(
        np.uint8
    )
    kinds[0xD800:0xE000] = _HALF_SURROGATE
    return kinds


def _parse_entry(line: str, number: int, path: str) -> _Entry:
    """Return the fields of a line of a user dictionary: a word, then its frequency, its part of
    speech, or both.
    """
    word, *rest = line.split()
    frequency = rest.pop(0) if rest and _DIGITS.issuperset(rest[0]) else None
    tag = rest.pop(0) if rest and _LETTERS.issuperset(rest[0]) else None
    if rest or (frequency is not None and not 1 <= int(frequency[:12]) <= _MAX_FREQUENCY):
        raise InputError(
            f"Line {number} of the user dictionary {path} is not valid: got "
            f"{line.strip()[:100]!r}. A line holds a "
            "word without white space, then optionally its frequency, a whole number from 1 "
            f"to {_MAX_FREQUENCY}, and "
            "its part of speech in Latin letters: '云计算', '云计算 5', '云计算 n' or "
            "'云计算 5 n'. Correct the line, or remove it."
        )
    return _Entry(word, None if frequency is None else int(frequency), tag)


def _stamp(path: str | None) -> tuple[int, int] | None:
    """Return the state of a file, which differs if it was changed; None if unreadable, which
    `_read_lines` reports.
    """
    try:
        status = os.stat(path or "")
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=8)
def _read_lines(path: str, stamp: object, parameter: str) -> _WordFile:
    """Return a file's lines; `stamp` makes a changed file be read again."""
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"Cannot read {parameter} {path!r}: {reason}. It must be a text file in UTF-8. "
            "Check the path."
        ) from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"Line {line} of {parameter} {path} is not UTF-8: got the byte "
            f"0x{data[error.start]:02x}. Save the file "
            "as UTF-8, for example with: iconv -f GB18030 -t UTF-8."
        ) from error
    return _WordFile(text.split("\n"), sha256(data).hexdigest())
