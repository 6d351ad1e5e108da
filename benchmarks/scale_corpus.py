"""Make corpora of any size from real text, with known near-duplicates; the truth is written beside
them.

    python scale_corpus.py OUT --text FILE ... --gigabytes 30 --files 32
    python scale_corpus.py OUT --text FILE ... --documents 100000000 --files 32

A document is a list of pieces of real text. Long documents (about 4 KB) are sentences drawn at
random from all texts, so two unrelated documents share a sentence by chance, as real ones do. Short
ones (about 100 bytes) are two runs of eight words and two words. Some documents derive from others:

copy         an exact copy of an earlier document.
edit         an earlier document in which consecutive pieces are replaced: a known share of it is left.
excerpt      the first half of an earlier document.
template     the pieces of a template, two of them filled in anew; a few templates have most documents.
boilerplate  an original with the same five sentences before it as a thousand others.

A batch is made from (seed, number of the batch) alone. So any batch can be made again: files are
written in parallel, a copy may derive from any earlier batch, and memory does not depend on the
size. `truth-NNN.parquet` has a row for each document: id, kind, source_id (the document or template
from which it derives, or -1). Similarities are known from the texts themselves: see scale_check.py.
"""  # noqa: E501

from __future__ import annotations

import argparse
import json
import os
import re
import unicodedata
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
import pyarrow.parquet as pq

KINDS = ("original", "copy", "edit", "excerpt", "template", "boilerplate")
_SHARES = (0.72, 0.06, 0.12, 0.02, 0.05, 0.03)
_LEFT = (0.97, 0.93, 0.9, 0.85, 0.75, 0.5)  # shares of an edited document that stay
_SOURCES = 4  # earlier batches from which those of a batch derive
_NUM_TEMPLATES = 5000
_NUM_BOILERPLATES = 1000
_BOILERPLATE = 5
_SENTENCE = re.compile(r"(?<=[.!?;:])\s+|(?<=[。！？；])|\n+")
_LONG_BATCH = 8192
_SHORT_BATCH = 1 << 17
_RUN_WORDS = 8

Ints = npt.NDArray[np.int64]


class Layout(NamedTuple):
    """The make of a corpus. short : documents of two runs of words and two words, instead of
    sentences.
    """

    seed: int
    short: bool
    num_documents: int
    num_files: int

    @property
    def batch(self) -> int:
        """The number of documents of a batch."""
        return _SHORT_BATCH if self.short else _LONG_BATCH

    @property
    def num_batches(self) -> int:
        """The number of batches of all files."""
        return -(-self.num_documents // self.batch)

    def size(self, number: int) -> int:
        """Return the number of documents of one batch."""
        return min(self.batch, self.num_documents - number * self.batch)


class Pieces(NamedTuple):
    """Distinct pieces of text, each with a space behind.

    texts : large_string. num_long : the number of sentences, or runs of words; words follow.
    """

    texts: pa.Array
    num_long: int


class Lists(NamedTuple):
    """Lists of pieces. pieces : int64, of all documents; offsets : int64 (num_documents + 1,)."""

    pieces: Ints
    offsets: Ints


class Batch(NamedTuple):
    """The documents of a batch. kind : int8, a place in KINDS; source : int64, id of a document or
    template, or -1.
    """

    kind: npt.NDArray[np.int8]
    source: Ints
    lists: Lists


def read_pieces(files: Iterable[Path], *, short: bool) -> Pieces:
    """Return the distinct sentences, or runs of words and words, of files of texts: Parquet, or
    JSON lines.
    """
    long_pieces: dict[str, None] = {}
    words: dict[str, None] = {}
    for path in files:
        table = pq.read_table(path) if path.suffix == ".parquet" else _read_json_lines(path)
        for text in table["text"].to_pylist():
            if short:
                cut = (text or "").split()
                words.update(dict.fromkeys(word for word in cut[:200] if 3 <= len(word) <= 12))
                runs = (
                    " ".join(cut[first : first + _RUN_WORDS])
                    for first in range(0, len(cut) - 7, _RUN_WORDS)
                )
                long_pieces.update(
                    dict.fromkeys(run for run in runs if 24 <= len(run.encode()) <= 80)
                )
            else:
                sentences = (
                    piece
                    for piece in _SENTENCE.split(text or "")
                    if 30 <= len(piece.encode()) <= 300
                )
                long_pieces.update(dict.fromkeys(sentences))
    if len(long_pieces) < 100:
        raise SystemExit(
            f"The texts have {len(long_pieces)} pieces: 100 or more are needed. Pass more with "
            "--text."
        )
    kept = [
        [f"{piece} " for piece in some if not _has_marks(piece)] for some in (long_pieces, words)
    ]
    return Pieces(pa.array(kept[0] + kept[1], pa.large_string()), len(kept[0]))


def _has_marks(piece: str) -> bool:
    """Return whether a piece has marks or invisible characters, which the words of scale_check.py
    do not know.
    """
    return not piece.isascii() and any(
        unicodedata.category(character)[0] in "MC"
        for character in unicodedata.normalize("NFKC", piece)
    )


def _read_json_lines(path: Path) -> pa.Table:
    with pa.input_stream(str(path), compression="detect") as stream:
        return pj.read_json(stream, pj.ReadOptions(block_size=64 << 20)).select(["text"])


def originals(layout: Layout, pieces: Pieces, number: int) -> tuple[npt.NDArray[np.int8], Lists]:
    """Return the kind of each document of a batch, and the original from which it would be made."""
    random = np.random.default_rng([layout.seed, number])
    size = layout.size(number)
    kind = random.choice(len(KINDS), size, p=_SHARES).astype(np.int8)
    if number == 0:
        kind[np.isin(kind, [1, 2, 3])] = 0  # nothing is earlier
    if layout.short:
        drawn = random.integers(0, pieces.num_long, (size, 4))
        drawn[:, 2:] = random.integers(pieces.num_long, len(pieces.texts), (size, 2))
        return kind, Lists(drawn.reshape(-1), np.arange(size + 1) * 4)
    lengths = np.clip(random.lognormal(3.4, 0.6, size), 12, 200).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return kind, Lists(random.integers(0, pieces.num_long, int(offsets[-1])), offsets)


def make_batch(layout: Layout, pieces: Pieces, number: int) -> Batch:
    """Return the documents of a batch."""
    kind, own = originals(layout, pieces, number)
    random = np.random.default_rng([layout.seed, number, 1])
    size = len(kind)
    source = np.full(len(kind), -1)
    lists = [own.pieces]
    starts = own.offsets[:-1].copy()
    lengths = np.diff(own.offsets)
    derived = np.flatnonzero((kind >= 1) & (kind <= 3))
    earlier = np.unique(random.integers(0, number, _SOURCES)) if number else []
    for which, batch in enumerate(earlier):
        other_kind, other = originals(layout, pieces, int(batch))
        mine = derived[which :: len(earlier)]
        chosen = random.choice(np.flatnonzero(other_kind == 0), len(mine))
        source[mine] = batch * layout.batch + chosen
        starts[mine] = sum(map(len, lists)) + other.offsets[chosen]
        lengths[mine] = np.diff(other.offsets)[chosen]
        lists.append(other.pieces)
    _take_templates(layout, pieces, kind, source, starts, lengths, lists)
    halved = kind == KINDS.index("excerpt")
    lengths[halved] = np.maximum(1, lengths[halved] // 2)
    before = np.where(kind == KINDS.index("boilerplate"), 0 if layout.short else _BOILERPLATE, 0)
    offsets = np.concatenate([[0], np.cumsum(lengths + before)])
    place = np.arange(offsets[-1]) - np.repeat(offsets[:-1] + before, lengths + before)
    flat = np.concatenate(lists)[np.maximum(place, 0) + np.repeat(starts, lengths + before)]
    _edit(layout, pieces, random, kind, place, Lists(flat, offsets))
    _put_boilerplates(layout, pieces, random, kind, source, place, Lists(flat, offsets))
    assert len(offsets) == size + 1
    return Batch(kind, source, Lists(flat, offsets))


def _take_templates(
    layout: Layout,
    pieces: Pieces,
    kind: npt.NDArray[np.int8],
    source: Ints,
    starts: Ints,
    lengths: Ints,
    lists: list[Ints],
) -> None:
    """Let the documents of templates begin as the template does. A few templates have most of
    them.
    """
    filled = np.flatnonzero(kind == KINDS.index("template"))
    random = np.random.default_rng([layout.seed, len(filled), 2])
    _, templates = originals(
        layout._replace(seed=layout.seed + 1, num_documents=1 << 40), pieces, 0
    )
    source[filled] = np.minimum(random.zipf(1.3, len(filled)), _NUM_TEMPLATES) - 1
    starts[filled] = sum(map(len, lists)) + templates.offsets[source[filled]]
    lengths[filled] = np.diff(templates.offsets)[source[filled]]
    lists.append(templates.pieces)


def _edit(
    layout: Layout,
    pieces: Pieces,
    random: np.random.Generator,
    kind: npt.NDArray[np.int8],
    place: Ints,
    lists: Lists,
) -> None:
    """Replace consecutive pieces of edited documents, and two of those made from templates, in
    place.
    """
    lengths = np.diff(lists.offsets)
    size = len(kind)
    low = pieces.num_long if layout.short else 0
    high = len(pieces.texts) if layout.short else pieces.num_long
    left = np.asarray(_LEFT)[random.integers(0, len(_LEFT), size)]
    edited = kind == KINDS.index("edit")
    if layout.short:
        counts = np.where(
            edited, random.integers(1, 3, size), np.where(kind == KINDS.index("template"), 1, 0)
        )
        first = lengths - counts
    else:
        counts = np.where(edited, np.maximum(1, (lengths * (1 - left)).round().astype(np.int64)), 0)
        counts[kind == KINDS.index("template")] = 2
        first = (random.random(size) * (lengths - counts)).astype(np.int64)
    document = np.repeat(np.arange(size), lengths)
    new = (place >= first[document]) & (place < (first + counts)[document])
    lists.pieces[new] = random.integers(low, high, int(new.sum()))


def _put_boilerplates(
    layout: Layout,
    pieces: Pieces,
    random: np.random.Generator,
    kind: npt.NDArray[np.int8],
    source: Ints,
    place: Ints,
    lists: Lists,
) -> None:
    """Begin documents with one of a thousand boilerplates, in place."""
    sharing = np.flatnonzero(kind == KINDS.index("boilerplate"))
    source[sharing] = random.integers(0, _NUM_BOILERPLATES, len(sharing))
    if layout.short:
        lists.pieces[lists.offsets[sharing]] = source[sharing] % pieces.num_long
        return
    shared = np.random.default_rng([layout.seed, 3]).integers(
        0, pieces.num_long, (_NUM_BOILERPLATES, _BOILERPLATE)
    )
    lists.pieces[place < 0] = shared[source[sharing]].reshape(-1)


def to_texts(pieces: Pieces, lists: Lists) -> pa.Array:
    """Return the text of each list of pieces: the pieces, which end with a space, without another
    copy.
    """
    cells = pieces.texts.take(pa.array(lists.pieces))
    starts = np.frombuffer(cells.buffers()[1], np.int64)[
        cells.offset : cells.offset + len(cells) + 1
    ]
    offsets = pa.py_buffer(starts[lists.offsets])
    return pa.LargeStringArray.from_buffers(len(lists.offsets) - 1, offsets, cells.buffers()[2])


def _write_file(layout: Layout, pieces_file: Path, out: Path, number: int) -> dict[str, Any]:
    """Write one file with its truth; return its counts."""
    pieces = load_pieces(pieces_file)
    path = out / f"part-{number:03d}.parquet"
    truth_path = out / f"truth-{number:03d}.parquet"
    schema = pa.schema([("id", pa.int64()), ("text", pa.large_string())])
    truth_schema = pa.schema([("id", pa.int64()), ("kind", pa.int8()), ("source_id", pa.int64())])
    counts = np.zeros(len(KINDS), np.int64)
    num_bytes = 0
    rows = 0
    first, stop = (layout.num_batches * edge // layout.num_files for edge in (number, number + 1))
    options = {"compression": "zstd", "compression_level": 1}
    with (
        pq.ParquetWriter(f"{path}.tmp", schema, **options, use_dictionary=False) as texts,
        pq.ParquetWriter(f"{truth_path}.tmp", truth_schema, **options) as truth,
    ):
        for batch in range(first, stop):
            made = make_batch(layout, pieces, batch)
            ids = pa.array(np.arange(len(made.kind)) + batch * layout.batch)
            text = to_texts(pieces, made.lists)
            texts.write_table(pa.table([ids, text], schema=schema))
            truth.write_table(
                pa.table([ids, pa.array(made.kind), pa.array(made.source)], schema=truth_schema)
            )
            counts += np.bincount(made.kind, minlength=len(KINDS))
            num_bytes += pc.sum(pc.binary_length(text)).as_py()
            rows += len(made.kind)
    os.replace(f"{truth_path}.tmp", truth_path)
    os.replace(f"{path}.tmp", path)
    return {"documents": rows, "bytes": num_bytes, "kinds": counts.tolist()}


def load_pieces(path: Path) -> Pieces:
    """Return the pieces of a corpus."""
    table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
    return Pieces(table["text"].combine_chunks(), int(table.schema.metadata[b"num_long"]))


def make(out: Path, texts: list[Path], layout: Layout, processes: int) -> dict[str, Any]:
    """Write the corpus, unless it is there; return its facts: documents, bytes of text, documents
    of each kind.
    """
    facts_file = out / "facts.json"
    if not facts_file.exists():
        out.mkdir(parents=True, exist_ok=True)
        pieces_file = out / "pieces.arrow"
        pieces = read_pieces(texts, short=layout.short)
        schema = pa.schema([("text", pa.large_string())], {"num_long": str(pieces.num_long)})
        with pa.OSFile(str(pieces_file), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            writer.write_table(pa.table([pieces.texts], schema=schema))
        with ProcessPoolExecutor(processes) as pool:
            count = layout.num_files
            parts = list(
                pool.map(
                    _write_file,
                    [layout] * count,
                    [pieces_file] * count,
                    [out] * count,
                    range(count),
                )
            )
        facts = {
            "documents": sum(part["documents"] for part in parts),
            "bytes": sum(part["bytes"] for part in parts),
            "disk": sum(path.stat().st_size for path in out.glob("part-*.parquet")),
            "kinds": dict(
                zip(KINDS, np.sum([part["kinds"] for part in parts], axis=0).tolist(), strict=True)
            ),
            **layout._asdict(),
        }
        facts_file.write_text(json.dumps(facts))
    found: dict[str, Any] = json.loads(facts_file.read_text())
    return found


def layout_of(*, seed: int, files: int, gigabytes: float | None, documents: int | None) -> Layout:
    """Return the layout of long documents of so many gigabytes of text, or of so many short
    documents.
    """
    if documents is not None:
        return Layout(seed, True, documents, files)
    assert gigabytes is not None
    return Layout(seed, False, int(gigabytes * 1e9 / MEAN_BYTES), files)


MEAN_BYTES = 4000  # of a long document, roughly: it depends on the texts


def write_templates(out: Path, texts: list[Path], num_documents: int, seed: int = 1) -> Path:
    """Write near-identical documents: half are one template with fillings, half exact copies of one
    document.
    """
    path = out / f"alike-{num_documents}.parquet"
    if path.exists():
        return path
    out.mkdir(parents=True, exist_ok=True)
    pieces = read_pieces(texts, short=False)
    random = np.random.default_rng(seed)
    template = random.integers(0, pieces.num_long, 40)
    drawn = np.tile(template, (num_documents, 1))
    filled = num_documents // 2
    drawn[:filled, 20] = random.integers(0, pieces.num_long, filled)
    drawn[filled:] = random.integers(0, pieces.num_long, 40)
    schema = pa.schema([("id", pa.int64()), ("text", pa.large_string())])
    with pq.ParquetWriter(f"{path}.tmp", schema, compression="zstd", compression_level=1) as writer:
        for first in range(0, num_documents, _LONG_BATCH):
            rows = drawn[first : first + _LONG_BATCH]
            lists = Lists(rows.reshape(-1), np.arange(len(rows) + 1) * 40)
            ids = pa.array(np.arange(first, first + len(rows)))
            writer.write_table(pa.table([ids, to_texts(pieces, lists)], schema=schema))
    os.replace(f"{path}.tmp", path)
    return path


def write_fingerprints(out: Path, count: int, seed: int = 1) -> tuple[Path, Ints]:
    """Write random fingerprints with ids, a ten-thousandth of them planted neighbours; return the
    planted pairs.

    A planted fingerprint is in the batch after that of its neighbour, 1 to 3 bits away.
    """
    path = out / f"fingerprints-{count}.parquet"
    batch = 1 << 22
    out.mkdir(parents=True, exist_ok=True)
    schema = pa.schema([("id", pa.int64()), ("fingerprint", pa.uint64())])
    planted: list[Ints] = []
    before = np.empty(0, np.uint64)
    writer = None
    if not path.exists():
        encodings = {"id": "DELTA_BINARY_PACKED", "fingerprint": "PLAIN"}
        writer = pq.ParquetWriter(
            f"{path}.tmp",
            schema,
            compression="none",
            use_dictionary=False,
            column_encoding=encodings,
        )
    for first in range(0, count, batch):
        random = np.random.default_rng([seed, first])
        values = random.integers(0, 2**64, min(batch, count - first), np.uint64)
        if len(before):
            places = random.choice(len(values), len(values) // 10_000, replace=False)
            chosen = random.integers(0, len(before), len(places))
            bits = random.integers(0, 64, (len(places), 3), dtype=np.uint64)
            # Equal bits cancel out, so a neighbour may be 1 bit away, which changes nothing here.
            values[places] = before[chosen] ^ np.bitwise_xor.reduce(np.uint64(1) << bits, axis=1)
            planted.append(np.stack([first - batch + chosen, first + places], axis=1))
        if writer is not None:
            ids = pa.array(np.arange(first, first + len(values)))
            writer.write_table(pa.table([ids, pa.array(values)], schema=schema))
        before = values
    if writer is not None:
        writer.close()
        os.replace(f"{path}.tmp", path)
    return path, np.concatenate([np.empty((0, 2), np.int64), *planted])


def main() -> None:
    """Make a corpus from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument(
        "--text", type=Path, nargs="+", required=True, help="files of real text, column `text`"
    )
    parser.add_argument(
        "--gigabytes", type=float, help="long documents, of so many gigabytes of text"
    )
    parser.add_argument("--documents", type=int, help="so many short documents")
    parser.add_argument("--files", type=int, default=32)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    if (args.gigabytes is None) == (args.documents is None):
        parser.error("Pass either --gigabytes or --documents.")
    layout = layout_of(
        seed=args.seed, files=args.files, gigabytes=args.gigabytes, documents=args.documents
    )
    print(json.dumps(make(args.out, args.text, layout, args.processes)))


if __name__ == "__main__":
    main()
