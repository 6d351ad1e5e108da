"""Read every document once and leave its shingles, content hash and fingerprint in the scratch files."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from queue import LifoQueue
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.arrays import arrow_of, flatten_strings
from neardup.candidates.bands import Bands
from neardup.documents.batch import DocumentBatch, Rejected
from neardup.documents.reading import Task
from neardup.engines.local.scratch import Scratch
from neardup.errors import InputError
from neardup.features.extract import readable
from neardup.features.idf import IdfTable
from neardup.features.shingles import Workspace, shingle_documents
from neardup.features.weights import distinct_features, repeat_rare
from neardup.fingerprints.minhash import band_keys, sign
from neardup.fingerprints.simhash_documents import fingerprint_documents
from neardup.progress import Progress
from neardup.settings.methods import IdfSource, Method, MinHash, SimHash

MAX_DOCUMENTS = 2**31 - 2  # a slot of a bucket holds a position in 31 bits, all ones meaning that it is free
_BATCHES_AHEAD = 8  # decoded and waiting: enough to read on while the compiler is loaded
_BYTES_AHEAD = 64 << 20  # and no more than so many, unless one batch alone has more
_CHECKPOINT_EVERY = 64
_SMALL_BYTES, _MAX_PIECES = 1 << 20, 4096  # put together before they are described
MAX_UNREAD_NAMED = 100  # files that could not be read, named in the report
_TEXT = np.uint64(0x9E3779B97F4A7C15)  # sets the hash of a text apart from that of its tags


@dataclass
class Tally:
    """How far the reading is; what a checkpoint holds."""

    part: int = 0
    part_documents: int = 0
    part_rejected: int = 0
    documents: int = 0
    rejected: int = 0
    without_features: int = 0
    unread_files: int = 0
    shingles: int = 0
    structure: int = 0
    text_bytes: int = 0
    id_bytes: int = 0


@dataclass(frozen=True)
class Corpus:
    """What is known after reading; the rest lies in the scratch files.

    part_ends, part_rejected : int64 (num_parts,), where each task's documents end, and its rejected rows. unread : the
    first files that could not be read to their end.
    """

    part_ends: np.ndarray
    part_rejected: np.ndarray
    unread: tuple[str, ...]
    num_against: int
    tally: Tally

    @property
    def num_documents(self) -> int:
        """All documents, those of the earlier corpus included."""
        return self.tally.documents


class Described(NamedTuple):
    """A batch after the kernels.

    hashes : uint64, the shingles, or None where they are not compared; offsets : int64 (num_documents + 1,);
    content : uint64 (num_documents, 2). summary : columns that propose pairs, by name: a key for each band, or the
    fingerprints. structure : hashes and offsets of the structure of pages, where that is compared too.
    """

    hashes: np.ndarray | None
    offsets: np.ndarray
    content: np.ndarray
    summary: dict[str, np.ndarray]
    structure: tuple[np.ndarray, np.ndarray] | None = None


Describer = Callable[[pa.Array, Workspace], Described]


def describer_of(method: Method, bands: Bands | None, idf: IdfSource | None) -> Describer:
    """Return the function that describes a batch of texts as the method asks; hashes may lie in the workspace."""
    if isinstance(method, MinHash):
        return partial(_describe_by_shingles, method, bands, idf)
    return partial(_describe_by_fingerprint, method, idf)


def _describe_by_shingles(
    method: MinHash, bands: Bands | None, idf: IdfSource | None, texts: pa.Array, workspace: Workspace
) -> Described:
    hashes, offsets, content, _ = shingle_documents(readable(texts, method), method, workspace)
    if method.rarity:
        hashes, offsets = _weigh_by_rarity(hashes, offsets, idf)
    structure = None
    if method.of_structure is not None:
        tags = shingle_documents(texts, method.of_structure)
        structure = _weigh_by_rarity(tags.hashes, tags.offsets, idf)
        content = content * _TEXT + tags.content  # pages are copies if they say the same in the same tags
    summary = {}
    if bands is not None:
        signatures = sign(hashes, offsets, bands.num_hashes, method.seed)
        keys = band_keys(signatures, bands.num_bands)
        summary = {f"keys-{band}": keys[band] for band in range(bands.num_bands)}
    return Described(hashes, offsets, content, summary, structure)


def _weigh_by_rarity(hashes: np.ndarray, offsets: np.ndarray, idf: IdfSource | None) -> tuple[np.ndarray, np.ndarray]:
    assert isinstance(idf, IdfTable)
    features = distinct_features(hashes, offsets)
    return repeat_rare(features, idf.document_counts(features.hashes), idf.num_documents)


def _describe_by_fingerprint(
    method: SimHash, idf: IdfSource | None, texts: pa.Array, workspace: Workspace
) -> Described:
    made = fingerprint_documents(texts, method, idf, workspace)
    hashes = made.hashes if method.compares_features else None
    return Described(hashes, made.offsets, made.content, {"fingerprints": made.fingerprints})


class Piece(NamedTuple):
    """The next of one part: rows rejected, then documents, then its end, each if there is any."""

    rejected: list[Rejected]
    batch: DocumentBatch | None
    is_end: bool


class Reading:
    """The reading of all parts into scratch columns; see `read_all`."""

    def __init__(self, tasks: list[Task], scratch: Scratch, keep: str, on_error: str) -> None:
        self.tasks, self.scratch = tasks, scratch
        self.needs_lengths = keep in ("longest", "shortest")
        self.needs_ranks = keep.startswith(("max:", "min:"))
        self.has_ids = any(task.columns.id is not None for task in tasks)
        self.stop_on_error = on_error == "stop"
        self.tally = Tally()
        self.unread: list[str] = []

    def resume(self) -> None:
        """Go on from the last checkpoint, if there is one."""
        state = self.scratch.restore()
        if state is not None:
            self.tally, self.unread = Tally(**state["tally"]), state["unread"]

    def checkpoint(self) -> None:
        """Record what is done."""
        self.scratch.checkpoint({"tally": asdict(self.tally), "unread": self.unread})

    def pieces(self, batch_rows: int | None) -> Iterator[Piece]:
        """Yield what is still to be read."""
        for index in range(self.tally.part, len(self.tasks)):
            first = index == self.tally.part
            documents = self.tally.part_documents if first else 0
            rejected: list[Rejected] = []
            old = self.tally.part_rejected if first else 0
            seen = 0
            for batch in self.tasks[index].read(self._rejecter(rejected)):
                for piece in _cut(batch, batch_rows):
                    seen += len(piece.rows)
                    if seen <= documents:
                        continue
                    skip = max(0, len(piece.rows) - (seen - documents))
                    fresh, old = rejected[old:], max(0, old - len(rejected))
                    rejected.clear()
                    yield Piece(fresh, _slice(piece, skip, len(piece.rows)) if skip else piece, False)
            yield Piece(rejected[old:], None, True)

    def _rejecter(self, rejected: list[Rejected]) -> Callable[[Rejected], None]:
        def reject(row: Rejected) -> None:
            if self.stop_on_error:
                raise InputError(
                    f"{describe_rejected(row)} The run stops at the first such document, as on_error='stop' asks; "
                    "with on_error='reject' it would be listed in rejected.jsonl."
                )
            rejected.append(row)

        return reject

    def store(self, pieces: list[Piece], described: Described | None) -> None:
        """Append pieces to the columns; described : their documents, all together."""
        batches = [piece.batch for piece in pieces if piece.batch is not None]
        if described is not None:
            self._store_described(described)
            self._store_documents(batches)
        for piece in pieces:
            self._store_rejected(piece.rejected)
            if piece.batch is not None:
                self.tally.documents += len(piece.batch.rows)
                self.tally.part_documents += len(piece.batch.rows)
            if piece.is_end:
                self._end_part()
        if self.tally.documents > MAX_DOCUMENTS:
            raise InputError(
                f"One run takes at most {MAX_DOCUMENTS:,} documents. Split the corpus, and run the parts one after "
                "the other with --against."
            )

    def _store_described(self, described: Described) -> None:
        scratch, tally = self.scratch, self.tally
        if described.hashes is not None:
            scratch.append("shingles", described.hashes)
        if described.structure is not None:
            hashes, offsets = described.structure
            scratch.append("structure", hashes)
            scratch.append("structure-starts", offsets[:-1] + tally.structure)
            tally.structure += int(offsets[-1])
        scratch.append("starts", described.offsets[:-1] + tally.shingles)
        scratch.append("content", described.content)
        for name, values in described.summary.items():
            scratch.append(name, values)
        tally.shingles += int(described.offsets[-1])
        tally.without_features += int(np.count_nonzero(np.diff(described.offsets) == 0))

    def _store_documents(self, batches: list[DocumentBatch]) -> None:
        """Append what is known of the documents themselves."""
        scratch, tally = self.scratch, self.tally
        scratch.append("rows", np.concatenate([batch.rows for batch in batches]).astype(np.int64, copy=False))
        if self.has_ids:
            data, offsets = flatten_strings(_ids_of(batches, tally.documents))
            scratch.append("ids", data)
            scratch.append("id_hashes", _hash_strings(data, offsets))
            scratch.append("id_offsets", offsets[1 if tally.documents else 0 :] + tally.id_bytes)
            tally.id_bytes += int(offsets[-1])
        if self.needs_lengths:
            scratch.append("lengths", np.concatenate([np.diff(flatten_strings(batch.text)[1]) for batch in batches]))
        if self.needs_ranks:
            ranks = [np.full(len(one.rows), np.nan) if one.rank is None else one.rank for one in batches]
            scratch.append("ranks", np.concatenate(ranks))
        tally.text_bytes += sum(int(batch.text.nbytes) for batch in batches)

    def _store_rejected(self, rejected: list[Rejected]) -> None:
        """Append rejected rows to rejected.jsonl."""
        for row in rejected:
            line = json.dumps(row._asdict(), ensure_ascii=False) + "\n"
            self.scratch.append("rejected.jsonl", np.frombuffer(line.encode("utf-8", "replace"), np.uint8))
            if row.rest_of_file:
                self.tally.unread_files += 1
                if len(self.unread) < MAX_UNREAD_NAMED:
                    self.unread.append(row.file)
            else:
                self.tally.rejected += 1
        self.tally.part_rejected += len(rejected)

    def _end_part(self) -> None:
        """Note that a part is done."""
        self.scratch.append("part-ends", np.array([self.tally.documents], np.int64))
        self.scratch.append("part-rejected", np.array([self.tally.part_rejected], np.int64))
        self.tally.part += 1
        self.tally.part_documents = self.tally.part_rejected = 0

    def corpus(self) -> Corpus:
        """Return what is known once all is read."""
        ends = self.scratch.column("part-ends", np.int64).copy()
        rejected = self.scratch.column("part-rejected", np.int64).copy()
        num_parts_against = sum(1 for task in self.tasks if task.against)
        num_against = int(ends[num_parts_against - 1]) if num_parts_against else 0
        return Corpus(ends, rejected, tuple(self.unread), num_against, self.tally)


def read_all(
    reading: Reading, describer: Describer, threads: int, batch_rows: int | None, progress: Progress
) -> Corpus:
    """Read all parts, describe their documents on a pool of threads, and store the results in order."""
    waiting: deque[tuple[list[Piece], Future[tuple[Described, Workspace]] | None]] = deque()
    stored = bytes_ahead = 0
    workspaces: LifoQueue[Workspace] = LifoQueue()
    for _ in range(threads + _BATCHES_AHEAD + 2):
        workspaces.put(Workspace())

    def describe(texts: list[pa.Array]) -> tuple[Described, Workspace]:
        workspace = workspaces.get()
        return describer(texts[0] if len(texts) == 1 else pa.concat_arrays(texts), workspace), workspace

    def store_one() -> None:
        nonlocal stored, bytes_ahead
        pieces, future = waiting.popleft()
        bytes_ahead -= _bytes_of(pieces)
        if future is None:
            reading.store(pieces, None)
        else:
            described, workspace = future.result()
            reading.store(pieces, described)
            workspaces.put(workspace)
            for piece in pieces:
                if piece.batch is not None:
                    progress.advance(len(piece.batch.rows), int(piece.batch.text.nbytes))
        stored += 1
        if stored % _CHECKPOINT_EVERY == 0:
            reading.checkpoint()

    with ThreadPoolExecutor(threads) as pool:
        try:
            for pieces in _put_together(reading.pieces(batch_rows), batch_rows):
                texts = [piece.batch.text for piece in pieces if piece.batch is not None]
                waiting.append((pieces, pool.submit(describe, texts) if texts else None))
                bytes_ahead += _bytes_of(pieces)
                while waiting and (
                    len(waiting) > _BATCHES_AHEAD or bytes_ahead > _BYTES_AHEAD or _is_done(waiting[0][1])
                ):
                    store_one()
            while waiting:
                store_one()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    reading.checkpoint()
    reading.scratch.close_columns()
    return reading.corpus()


def _put_together(pieces: Iterator[Piece], batch_rows: int | None) -> Iterator[list[Piece]]:
    """Yield pieces in lists that are not small, but for the last: what a batch costs, whatever is in it, is more than
    the work on a short text, and each file begins one."""
    together: list[Piece] = []
    num_bytes = num_rows = 0
    for piece in pieces:
        count = 0 if piece.batch is None else len(piece.batch.rows)
        if together and batch_rows is not None and num_rows + count > batch_rows:
            yield together
            together, num_bytes, num_rows = [], 0, 0
        together.append(piece)
        num_rows += count
        num_bytes += 0 if piece.batch is None else piece.batch.text.nbytes
        if num_bytes >= _SMALL_BYTES or len(together) >= _MAX_PIECES:
            yield together
            together, num_bytes, num_rows = [], 0, 0
    if together:
        yield together


def _bytes_of(pieces: list[Piece]) -> int:
    return sum(piece.batch.text.nbytes for piece in pieces if piece.batch is not None)


def _ids_of(batches: list[DocumentBatch], first: int) -> pa.Array:
    """Return the ids of documents, of which the first has the running number `first`, and which it names where there
    are none."""
    arrays = []
    for batch in batches:
        ids = arrow_of(np.arange(first, first + len(batch.rows))) if batch.ids is None else batch.ids
        arrays.append(ids.cast(pa.large_string()))
        first += len(batch.rows)
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)


def describe_rejected(row: Rejected) -> str:
    """Say in a sentence what was rejected, where and why."""
    places = [
        f"{name} {value}"
        for name, value in (("row", row.row), ("line", row.line), ("byte", row.byte))
        if value is not None
    ]
    return f"{row.file}{', ' if places else ''}{', '.join(places)}: {row.reason}"


def _hash_strings(data: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    from neardup.kernels.strings import hash_strings

    hashes = np.empty(len(offsets) - 1, np.uint64)
    hash_strings(data, offsets, hashes)
    return hashes


def _is_done(future: Future[Any] | None) -> bool:
    return future is None or future.done()


def _cut(batch: DocumentBatch, batch_rows: int | None) -> Iterator[DocumentBatch]:
    count = len(batch.rows)
    if batch_rows is None or count <= batch_rows:
        yield batch
        return
    for start in range(0, count, batch_rows):
        yield _slice(batch, start, min(count, start + batch_rows))


def _slice(batch: DocumentBatch, start: int, stop: int) -> DocumentBatch:
    return DocumentBatch(
        text=batch.text[start:stop],
        rows=batch.rows[start:stop],
        ids=None if batch.ids is None else batch.ids[start:stop],
        rank=None if batch.rank is None else batch.rank[start:stop],
    )
