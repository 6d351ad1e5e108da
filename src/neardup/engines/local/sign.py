"""Sign documents with MinHash or SimHash on threads: those of a corpus, or a column of texts or token lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup import kernels
from neardup.arrays import arrow_of, flatten_strings, view_strings
from neardup.decide.outcome import SHORT
from neardup.documents.batch import Rejected
from neardup.documents.reading import Task
from neardup.documents.texts import as_text, is_number, is_text, storage_type
from neardup.documents.views import num_bytes
from neardup.engines.local.batches import map_batches
from neardup.errors import InputError, SettingError
from neardup.executor import map_all
from neardup.features.foreign_schemes import resolve_scheme
from neardup.features.idf import FEATURES_VERSION, IdfTable, describe_features, resolve_idf
from neardup.features.shingles import scan_of, shingle_documents
from neardup.features.token_lists import offsets_from_lengths, shingle_strings
from neardup.features.weights import distinct_features, sum_weights
from neardup.fingerprints import minhash
from neardup.fingerprints.fingerprints import Fingerprints
from neardup.fingerprints.signatures import Signatures, is_empty
from neardup.fingerprints.simhash import num_words
from neardup.fingerprints.simhash_documents import Described, add_up, fingerprint_documents, scheme_of, weigh
from neardup.fingerprints.sketches import Sketches
from neardup.kernels.token_arrays import TokenStrings
from neardup.progress import Progress
from neardup.settings.methods import MethodSettings, MinHash, SimHash

_LEAST_BYTES, _MOST_BYTES = 1 << 19, 1 << 24  # of a batch; with less, threads wait for each other between batches
_BATCHES_A_THREAD = 4
_LEAST_WEIGHT, _MOST_WEIGHT = 1e-100, 1e100
_GIVEN = {"tokens": "given", "version": FEATURES_VERSION}

Hashes = npt.NDArray[np.uint64]
Limits = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Weights: TypeAlias = npt.NDArray[np.float64]


class Column(NamedTuple):
    """A column of texts or of token lists.

    dtype : the Arrow type of the rows. chunks : Arrow arrays of this type, or lists of Python rows. convert : returns
    the Arrow array of such a list, from the number of its first row.
    """

    dtype: pa.DataType
    num_rows: int
    chunks: Iterable[Any]
    convert: Callable[[list[Any], int], pa.Array] | None = None


@dataclass
class Counts:
    """The documents signed so far. short : documents of fewer features than SimHash needs."""

    read: int = 0
    without_features: int = 0
    short: int = 0
    text_bytes: int = 0
    rejected: list[Rejected] = field(default_factory=list)


class SketchBuffers(NamedTuple):
    """The rows to fill. values : (num_rows, width); empty : bool (num_rows,), set for documents without features."""

    values: npt.NDArray[Any]
    empty: Mask


class HashedTokens(NamedTuple):
    """Tokens that are not empty. strings : the tokens; hashes : uint64; limits : the range of each row."""

    strings: pa.Array
    hashes: Hashes
    limits: Limits


class MinHashSigner:
    """Makes MinHash signatures."""

    sketches = Signatures
    weight_limits = f"0 or a number from {_LEAST_WEIGHT} to {_MOST_WEIGHT}"

    def __init__(self, method: MinHash, _: IdfTable | None = None) -> None:
        self.method = method

    @property
    def scheme(self) -> dict[str, Any]:
        """The scheme of signed texts."""
        return self._scheme(minhash.SCHEME_NAME, describe_features(self.method))

    def scheme_of_tokens(self, weighted: bool) -> dict[str, Any]:
        """Return the scheme of signed token lists."""
        return self._scheme(minhash.WEIGHTED_SCHEME_NAME if weighted else minhash.SCHEME_NAME, _GIVEN)

    def _scheme(self, name: str, features: dict[str, Any]) -> dict[str, Any]:
        parameters = {"seed": self.method.seed, "num_hashes": self.method.signature_length}
        return {"name": name, "version": minhash.SCHEME_VERSION, **parameters, "features": features}

    def allocate(self, num_rows: int) -> SketchBuffers:
        """Return a buffer of `num_rows` rows."""
        # From Arrow, which reuses memory: new pages would take a fifth of the time of signing sets.
        memory = pa.allocate_buffer(4 * num_rows * self.method.signature_length)
        values = np.frombuffer(memory, np.uint32).reshape(num_rows, self.method.signature_length)
        return SketchBuffers(values, np.zeros(num_rows, np.bool_))

    def sign_texts(self, texts: pa.Array, out: SketchBuffers) -> int:
        """Fill the rows of texts; return how many have too few features to be reliable."""
        method, values = self.method, out.values
        scan = scan_of(texts, method)
        if scan is None:
            shingles = shingle_documents(texts, method)
            minhash.sign(shingles.hashes, shingles.offsets, values.shape[1], method.seed, values)
        else:
            flagged = minhash.sign_texts(*scan, method.ngram, method.seed, values)
            if flagged.any():
                shingles = shingle_documents(texts.filter(arrow_of(flagged)), method)
                values[flagged] = minhash.sign(shingles.hashes, shingles.offsets, values.shape[1], method.seed)
        out.empty[:] = is_empty(values)
        return 0

    def sign_tokens(self, tokens: pa.Array, limits: Limits, out: SketchBuffers) -> int:
        """Fill the rows of token lists; return the first list whose memory is damaged, -1 if there is none.

        tokens : all strings. limits : int64 (num_rows + 1,), the tokens of row i are limits[i] to limits[i + 1].
        """
        return minhash.sign_strings(*_view_tokens(tokens), limits, self.method.seed, out.values)

    def sign_weighted(self, hashed: HashedTokens, weights: Weights, out: SketchBuffers) -> None:
        """Fill the rows of token lists with a weight for each token."""
        distinct = distinct_features(hashed.hashes, hashed.limits)
        if len(distinct.hashes) < len(weights):
            weights = sum_weights(weights, hashed.hashes, hashed.limits)
        else:
            weights = weights[distinct.firsts]
        seed, values = self.method.seed, out.values
        minhash.sign_weighted(distinct.hashes, weights, distinct.offsets, values.shape[1], seed, values)

    def is_weight(self, weights: Weights) -> Mask:
        """Return the range of accepted weights, in words."""
        allowed: Mask = (weights == 0) | ((weights >= _LEAST_WEIGHT) & (weights <= _MOST_WEIGHT))
        return allowed


class SimHashSigner:
    """Makes SimHash fingerprints. counted : the document frequencies of the corpus, if the weights need them."""

    sketches = Fingerprints
    weight_limits = "a finite number"

    def __init__(self, method: SimHash, counted: IdfTable | None = None) -> None:
        self.method, self._idf = method, counted or resolve_idf(method)

    @property
    def scheme(self) -> dict[str, Any]:
        """The scheme of signed texts."""
        return scheme_of(self.method, getattr(self._idf, "version", None))

    def scheme_of_tokens(self, weighted: bool) -> dict[str, Any]:
        """Return the scheme of signed token lists."""
        return self.scheme | {"features": _GIVEN} | ({"weights": "given"} if weighted else {})

    def allocate(self, num_rows: int) -> SketchBuffers:
        """Return a buffer of `num_rows` rows."""
        return SketchBuffers(np.empty((num_rows, num_words(self.method.bits)), np.uint64), np.zeros(num_rows, np.bool_))

    def sign_texts(self, texts: pa.Array, out: SketchBuffers) -> int:
        """Fill the rows of texts; return how many have too few features to be reliable."""
        found = fingerprint_documents(texts, self.method, self._idf)
        sizes = np.diff(found.offsets)
        out.values[:], out.empty[:] = found.fingerprints, sizes == 0
        return int(np.count_nonzero((sizes > 0) & (sizes < SHORT)))

    def sign_tokens(self, tokens: pa.Array, limits: Limits, out: SketchBuffers) -> int:
        """Fill the rows of token lists, as of MinHashSigner."""
        hashed, damaged = _hash_tokens(tokens, limits)
        if hashed is not None:
            self.sign_weighted(hashed, None, out)
        return damaged

    def sign_weighted(self, hashed: HashedTokens, weights: Weights | None, out: SketchBuffers) -> None:
        """Fill the rows of token lists, with a weight for each token if there are weights."""
        settings = self._of_tokens(weights is not None)
        tokens = TokenStrings(*flatten_strings(hashed.strings), hashed.limits)
        described = Described(shingle_strings(tokens, 1), tokens, weights, settings)
        out.values[:] = add_up(weigh(described, self._idf), self.method).fingerprints
        out.empty[:] = np.diff(hashed.limits) == 0

    def _of_tokens(self, weighted: bool) -> SimHash:
        """Return the settings for tokens, which are used as features unchanged."""
        method = self.method
        by_text = method.weights in ("given", "depth") or (method.weights == "tfidf" and method.idf == "lines")
        if by_text and not (weighted and method.weights == "given"):
            raise SettingError(
                f"Token lists have no text to compute weights from: got weights={method.weights!r}, "
                f"idf={method.idf!r}. Pass each token with its weight, or use weights='tf'."
            )
        tokens = method.tokens if method.weights == "given" else "whitespace"
        return replace(resolve_scheme(method), tokens=tokens, ngram=1)

    def is_weight(self, weights: Weights) -> Mask:
        """Return the range of accepted weights, in words."""
        return np.isfinite(weights)


Signer: TypeAlias = MinHashSigner | SimHashSigner
_SIGNERS: dict[type, Callable[..., Signer]] = {MinHash: MinHashSigner, SimHash: SimHashSigner}


def signer_of(method: MethodSettings, counted: IdfTable | None = None) -> Signer:
    """Return the signer of a method. counted : the document frequencies of the corpus, if it needs them.

    Raises
    ------
    SettingError
        If it needs them, and there are none.
    """
    return _SIGNERS[type(method)](method, counted)


def sign_corpus(
    tasks: list[Task],
    signer: Signer,
    threads: int,
    counts: Counts,
    progress: Progress,
    reject: Callable[[Rejected], None],
) -> Iterator[Sketches]:
    """Yield the rows of the documents of all tasks, in order; `counts` is updated."""
    scheme = signer.scheme

    def work(texts: pa.Array) -> tuple[SketchBuffers, int]:
        out = signer.allocate(len(texts))
        return out, signer.sign_texts(texts, out)

    for batch, ((values, empty), num_short) in map_batches(tasks, work, threads, progress, reject):
        ids = arrow_of(np.arange(counts.read, counts.read + len(values))) if batch.ids is None else batch.ids
        counts.read += len(values)
        counts.without_features += int(np.count_nonzero(empty))
        counts.short += num_short
        counts.text_bytes += int(batch.text.nbytes)
        yield signer.sketches(values, scheme, ids.cast(pa.string()), empty)


def sign_column(column: Column, signer: Signer, threads: int) -> Sketches:
    """Return the rows of a column of texts, or of token lists with or without weights.

    Raises
    ------
    InputError
        If it has another type, is damaged, or contains a weight outside the accepted range.
    """
    element = list_element(column.dtype)
    if is_text(column.dtype):
        sign, scheme = _sign_texts, signer.scheme
    elif element is not None and is_text(element):
        sign, scheme = _sign_tokens, signer.scheme_of_tokens(False)
    elif element is not None and _is_weighted(element):
        sign, scheme = _sign_weighted, signer.scheme_of_tokens(True)
    else:
        raise InputError(
            "A column to sign contains texts, lists of strings, or lists of a string and its weight (struct or map): "
            f"got {column.dtype}. Pass one such column: table['text']."
        )
    values, empty = signer.allocate(column.num_rows)
    turn, size = Lock(), _batch_bytes(column, threads)

    def work(batch: tuple[int, Any]) -> None:
        first, part = batch
        if column.convert is not None:
            with turn:  # conversion needs the interpreter: one thread at a time, which then has the data in its cache
                part = column.convert(part, first)
        for start, rows in _batches([part], size):
            span = slice(first + start, first + start + len(rows))
            sign(signer, rows, span.start, SketchBuffers(values[span], empty[span]))

    map_all(list(_batches(column.chunks, size)), work, threads)
    return signer.sketches(values, scheme, None, empty)


def _sign_texts(signer: Signer, rows: pa.Array, first: int, out: SketchBuffers) -> None:
    texts, bad = as_text(rows, "the text")
    if bad:
        raise InputError(f"The text in row {first + min(bad):,} is not UTF-8. Correct it, or leave it out.")
    signer.sign_texts(texts, out)


def _sign_tokens(signer: Signer, rows: pa.Array, first: int, out: SketchBuffers) -> None:
    damaged = signer.sign_tokens(rows.flatten(), _limits(rows, first), out)
    if damaged >= 0:
        raise _damaged(first + damaged)


def _sign_weighted(signer: Signer, rows: pa.Array, first: int, out: SketchBuffers) -> None:
    if pa.types.is_map(rows.type):
        rows = rows.cast(pa.list_(list_element(rows.type)))
    limits = _limits(rows, first)
    tokens, column = rows.flatten().flatten()
    weights = column.cast(pa.float64()).fill_null(float("nan")).to_numpy(zero_copy_only=False)
    wrong = ~signer.is_weight(weights)
    if wrong.any():
        index = int(np.argmax(wrong))
        row = first + int(np.searchsorted(limits, index, side="right")) - 1
        raise InputError(
            f"A weight is {signer.weight_limits}: got {column[index].as_py()!r} for {tokens[index].as_py()!r} in row "
            f"{row:,}. Leave such features out, or scale all weights."
        )
    hashed, damaged = _hash_tokens(tokens, limits)
    if hashed is None:
        raise _damaged(first + damaged)
    if len(hashed.hashes) < len(weights):
        weights = weights[_is_filled(tokens)]
    signer.sign_weighted(hashed, weights, out)


def _batch_bytes(column: Column, threads: int) -> int:
    if column.convert is not None:  # in blocks
        return _MOST_BYTES
    total = sum(map(num_bytes, column.chunks))
    return min(_MOST_BYTES, max(_LEAST_BYTES, total // (_BATCHES_A_THREAD * threads)))


def list_element(dtype: pa.DataType) -> pa.DataType | None:
    """Return the type of the elements of a column of lists, None if it is of another type; a map is a list of pairs."""
    t = pa.types
    if t.is_map(dtype):
        return pa.struct([dtype.key_field, dtype.item_field])
    lists = (t.is_list, t.is_large_list, t.is_fixed_size_list, t.is_list_view, t.is_large_list_view)
    return dtype.value_type if any(is_list(dtype) for is_list in lists) else None


def _is_weighted(dtype: pa.DataType) -> bool:
    return pa.types.is_struct(dtype) and dtype.num_fields == 2 and is_text(dtype[0].type) and is_number(dtype[1].type)


def _batches(chunks: Iterable[Any], size: int) -> Iterator[tuple[int, Any]]:
    """Yield the first row of each batch of about `size` bytes, and its rows, without a copy; Python's rows whole."""
    first = 0
    for chunk in chunks:
        if isinstance(chunk, pa.Array):
            step = max(1, len(chunk) // max(1, round(num_bytes(chunk) / size)))
            yield from ((first + start, chunk[start : start + step]) for start in range(0, len(chunk), step))
        else:
            yield first, chunk
        first += len(chunk)


def _limits(lists: pa.Array, first: int) -> Limits:
    """Return the range of each list in what `flatten` makes of them. first : the number of the first row."""
    if not isinstance(lists, (pa.ListArray, pa.LargeListArray)) or lists.null_count:
        return offsets_from_lengths(pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False))
    offsets: Limits = lists.offsets.to_numpy().astype(np.int64)
    wrong = (offsets < 0) | (offsets > len(lists.values))
    wrong[1:] |= np.diff(offsets) < 0
    if wrong.any():
        raise _damaged(first + max(0, int(np.argmax(wrong)) - 1))
    offsets -= offsets[0]
    return offsets


def _damaged(row: int) -> InputError:
    return InputError(
        f"Row {row:,} of the column refers to memory outside of the column. The column is damaged: "
        "column.validate(full=True) locates the fault. Create it again from its source."
    )


def _hash_tokens(tokens: pa.Array, limits: Limits) -> tuple[HashedTokens | None, int]:
    """Return the tokens that are not empty and -1; None and the first row of a damaged one, if there is one."""
    data, offsets = _view_tokens(tokens)
    hashes = np.empty(len(tokens), np.uint64)
    damaged = int(kernels.strings.hash_strings(data, offsets, hashes))
    if damaged >= 0:
        return None, int(np.searchsorted(limits, damaged, side="right")) - 1
    filled = np.diff(offsets) > 0
    if not filled.all():
        tokens, hashes, limits = tokens.filter(arrow_of(filled)), hashes[filled], offsets_from_lengths(filled)[limits]
    return HashedTokens(_as_strings(tokens), hashes, limits), -1


def _is_filled(tokens: pa.Array) -> Mask:
    filled: npt.NDArray[np.bool_] = np.diff(_view_tokens(tokens)[1]) > 0
    return filled


def _view_tokens(tokens: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32 | np.int64]]:
    return view_strings(_as_strings(tokens))


def _as_strings(tokens: pa.Array) -> pa.Array:
    dtype = storage_type(tokens.type)
    in_place = pa.types.is_string(dtype) or pa.types.is_large_string(dtype)
    return tokens if in_place and dtype == tokens.type else as_text(tokens, "the tokens")[0]
