"""Cut repeated passages from English, Chinese and code; check the answer by a suffix array; say
what each step took.

    python benchmarks/run_passages.py [FILE.parquet ...] [--data FOLDER] [--worst 10 100] [--results
    FILE]

The suffix array of the text that is kept shows whether two equal stretches remain, and each row is
compared with its source. It needs pydivsufsort (benchmarks/requirements-passages.txt); without it,
only rows are checked. Times are those of the processor, of all threads, so that other work on the
machine matters less. Exit code 1 if an answer is wrong.
"""

from __future__ import annotations

import argparse
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import contamination_corpus as corpus
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from environment import conditions

import neardup
from neardup import kernels
from neardup.arrays import offsets_from_lengths
from neardup.candidates.passages import Anchoring, Counts, Selected, group_anchors
from neardup.decide.passages import decide_passages
from neardup.settings.passages import PassageSettings

try:
    from pydivsufsort import divsufsort, kasai
except ImportError:
    divsufsort = None

SETS = {
    "English": ("en_terms", "en_doc_versions", "en_licenses", "en_bible"),
    "Chinese": ("zh_laws", "zh_poetry"),
}
STAGES = {
    "read": "first reading",
    "propose": "second reading",
    "decide": "decision",
    "write": "writing",
}
_SEPARATOR = 255  # in no text


def _random_letters(size: int, letters: str) -> str:
    chosen = np.random.default_rng(7).integers(0, len(letters), size)
    return np.frombuffer(letters.encode(), np.uint8)[chosen].tobytes().decode()


def _common_text(size: int) -> list[str]:
    """Return documents of 350 random letters around the same 150."""
    text = _random_letters(size * 350 // 500, "abcdefghijklmnopqrstuvwxyz ")
    common = _random_letters(150, "0123456789")
    return [text[i : i + 175] + common + text[i + 175 : i + 350] for i in range(0, len(text), 350)]


# The least favourable texts, each of so many bytes.
WORST = {
    "one document of one letter": lambda size: ["a" * size],
    "one document of one Chinese character": lambda size: ["的" * (size // 3)],
    "one document, a period of 7": lambda size: ["abcdefg" * (size // 7)],
    "copies of a page of 600 letters": lambda size: (
        [_random_letters(600, "abcdefghij ")] * (size // 600)
    ),
    "random, of two letters": lambda size: [_random_letters(size, "ab")],
    "150 common letters in many contexts": _common_text,
}


class InOrder:
    """Measures the step of a run that only one thread can do, because each decision depends on
    those before it.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.resolve = kernels.passages.resolve

    def __call__(self, *arguments: Any) -> Any:
        begun = process_time()
        rows = self.resolve(*arguments)
        self.seconds += process_time() - begun
        return rows


IN_ORDER = kernels.passages.resolve = InOrder()


class Clock:
    """Measures the stages of a run, and what its scratch files take at the end of one; a
    `Progress`.
    """

    def __init__(self, scratch: Path) -> None:
        self.seconds: dict[str, float] = {}
        self.scratch_bytes = 0
        self.scratch = scratch
        self.begun = 0.0
        self.in_order = IN_ORDER.seconds

    def begin(self, stage: str, total: int | None) -> None:
        self.begun = process_time()

    def advance(self, documents: int, num_bytes: int) -> None:
        pass

    def end(self, stage: str, seconds: float) -> None:
        self.seconds[stage] = process_time() - self.begun
        taken = sum(file.stat().st_size for file in self.scratch.rglob("*") if file.is_file())
        self.scratch_bytes = max(self.scratch_bytes, taken)


class Score(NamedTuple):
    """What was found in a text, what it took in processor seconds, and what is wrong.

    cut : the share of its characters. suffix_array : of all the text; None if it was not made.
    """

    name: str
    documents: int
    text_bytes: int
    rows: int
    cut: float
    total: float
    stages: dict[str, float]
    in_order: float
    scratch_bytes: int
    suffix_array: float | None
    faults: list[str]


def code() -> Iterator[str]:
    """Yield the modules that are installed."""
    for name in ("purelib", "stdlib"):
        for path in sorted(Path(sysconfig.get_path(name)).rglob("*.py")):
            yield path.read_text("utf-8", errors="replace")


def write_text(name: str, data: Path, size: int, folder: Path) -> Path:
    """Write so many bytes of a kind of text to Parquet; less if there is less."""
    texts = (
        (row["text"] for one in SETS[name] for row in corpus.read_set(one, data))
        if name in SETS
        else code()
    )
    chosen: list[str] = []
    for text in texts:
        chosen.append(text)
        size -= len(text.encode())
        if size <= 0:
            break
    path = folder / f"{name}.parquet"
    pq.write_table(pa.table({"id": range(len(chosen)), "text": chosen}), path, row_group_size=1000)
    return path


def measure(path: Path, folder: Path, min_length: int, *, check: bool) -> Score:
    """Cut the passages of a file."""
    out = folder / "out"
    clock = Clock(folder / "out.partial" / "scratch")
    begun = process_time()
    options: dict[str, Any] = {
        "output": out,
        "overwrite": True,
        "progress": clock,
        "max_document_bytes": 1 << 31,
    }
    result = neardup.remove_passages(path, min_length=min_length, cut_at="character", **options)
    total = process_time() - begun
    seconds = None
    faults = []
    if check:
        column = pq.read_table(path, columns=["text"])["text"].to_pylist()
        texts = [(text or "").encode() for text in column]
        cuts = np.array([result.passages[name] for name in ("row", "start_byte", "end_byte")]).T
        faults = wrong_rows(texts, cuts, result.passages)
        if divsufsort is not None:
            seconds = suffix_array(b"".join(texts))[2]
            repeated = repeats(texts, cuts, min_length)
            faults += [f"{repeated} stretches remain twice"] * (repeated > 0)
    report = result.report
    counts = report["counts"]
    sizes = (
        report["source_bytes"],
        result.passages.num_rows,
        counts["characters"] / max(1, counts["characters_read"]),
    )
    in_order = IN_ORDER.seconds - clock.in_order
    stages = total, clock.seconds, in_order
    return Score(path.stem, counts["read"], *sizes, *stages, clock.scratch_bytes, seconds, faults)


def wrong_rows(texts: list[bytes], cuts: np.ndarray, passages: pa.Table) -> list[str]:
    """Return the rows whose text is not that of their source, or whose source is cut."""
    faults = []
    first = np.searchsorted(cuts[:, 0], np.arange(len(texts) + 1))
    sources = np.array([passages[name] for name in ("kept_row", "kept_start_byte")]).T
    for (row, start, end), (source, begin) in zip(cuts.tolist(), sources.tolist(), strict=True):
        stop = begin + end - start
        if texts[row][start:end] != texts[source][begin:stop]:
            faults.append(f"row {row}, {start}: not the text of row {source}, {begin}")
        there = cuts[first[source] : first[source + 1]]
        if ((there[:, 1] < stop) & (there[:, 2] > begin)).any():
            faults.append(f"row {row}, {start}: its source, row {source}, {begin}, is cut")
    return faults


def suffix_array(text: bytes) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the suffixes of a text in order, the length of the prefix of each and the next one,
    and the time taken.
    """
    begun = process_time()
    array = np.frombuffer(bytearray(text), np.uint8)
    suffixes = divsufsort(array)
    common = kasai(array, suffixes)
    return suffixes, common, process_time() - begun


def repeats(texts: list[bytes], cuts: np.ndarray, min_length: int) -> int:
    """Return how many stretches of characters occur twice in kept text without an overlap.

    The suffixes that begin with the same `min_length` characters are neighbours. They overlap if
    all begin within the first of them.
    """
    parts = []
    first = np.searchsorted(cuts[:, 0], np.arange(len(texts) + 1))
    for row, text in enumerate(texts):
        ends = [0, *cuts[first[row] : first[row + 1], 1:].ravel().tolist(), len(text)]
        parts += [text[start:stop] for start, stop in zip(ends[::2], ends[1::2], strict=True)]
    joined = bytes([_SEPARATOR]).join(parts)
    suffixes, common, _ = suffix_array(joined)
    kept = np.frombuffer(joined, np.uint8)
    # Of each character, the byte behind the min_length characters from it on; the text's size if
    # they do not exist.
    leads = np.flatnonzero(kept & 0xC0 != 0x80)
    stops = np.append(leads[min_length:], np.full(min(min_length, len(leads)), len(kept)))
    separators = np.append(np.flatnonzero(kept == _SEPARATOR), len(kept))
    whole = (stops <= separators[np.searchsorted(separators, leads)]) & (
        np.arange(len(leads)) + min_length < len(leads)
    )
    width = np.full(len(kept), -1)
    width[leads[whole]] = (stops - leads)[whole]
    ordered = width[suffixes]
    same = np.append(False, (common[:-1] >= ordered[1:]) & (ordered[1:] > 0))
    begins = np.flatnonzero(~same)
    lowest = np.minimum.reduceat(suffixes, begins)
    highest = np.maximum.reduceat(suffixes, begins)
    return int(np.count_nonzero(highest >= lowest + np.maximum(width[lowest], 1)))


def markdown(scores: list[Score]) -> str:
    """Return the table."""
    head = [
        "text",
        "documents",
        "MB",
        "cut",
        "passages",
        *(f"{name}, s" for name in STAGES.values()),
        "all, s",
    ]
    head += ["in order", "MB/s", "scratch, x text", "suffix array, s", "wrong"]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    for score in scores:
        cells = [score.name, f"{score.documents:,}", f"{score.text_bytes / 1e6:.0f}"]
        cells += [f"{100 * score.cut:.1f} %", f"{score.rows:,}"]
        cells += [f"{score.stages[stage]:.2f}" for stage in STAGES]
        cells += [f"{score.total:.2f}", f"{100 * score.in_order / score.total:.1f} %"]
        cells += [f"{score.text_bytes / 1e6 / score.total:.0f}"]
        cells += [f"{score.scratch_bytes / score.text_bytes:.2f}"]
        cells += [
            "" if score.suffix_array is None else f"{score.suffix_array:.1f}",
            str(len(score.faults)),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def measure_worst(sizes: list[float], folder: Path, min_length: int) -> str:
    """Return a table of the speed with the least favourable texts, by size in MB."""
    lines = ["| text | " + " | ".join(f"{size:g} MB, MB/s" for size in sizes) + " | cut |"]
    lines.append("|---|" + "---:|" * (len(sizes) + 1))
    for name, make in WORST.items():
        cells = []
        for size in sizes:
            path = folder / "worst.parquet"
            pq.write_table(
                pa.table({"text": pa.array(make(int(size * 1e6)), pa.large_string())}), path
            )
            score = measure(path, folder, min_length, check=False)
            cells.append(f"{score.text_bytes / 1e6 / score.total:.0f}")
        cells.append(f"{100 * score.cut:.1f} %")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


def measure_kernels(path: Path, min_length: int) -> str:
    """Return what the compiled steps take with the text of a file in memory, on one thread, the
    second time.
    """
    column = pq.read_table(path, columns=["text"])["text"].cast(pa.large_string())
    texts = pa.concat_arrays(column.chunks)
    batches = [texts.slice(first, 500) for first in range(0, len(texts), 500)]
    for _ in range(2):
        times = [process_time()]
        anchoring = Anchoring(min_length)
        hashes = [anchoring.hashes(batch) for batch in batches]
        times.append(process_time())
        counts = Counts(sum(map(len, hashes)))
        for each in hashes:
            counts.add(each)
        selected = [anchoring.select(batch, counts.table) for batch in batches]
        times.append(process_time())
        pieces, places, hashes_of_pieces = joined(selected)
        times.append(process_time())
        groups = group_anchors(pieces, places, hashes_of_pieces, min_length, anchoring.size)
        settings = PassageSettings(min_length=min_length, cut_at="character")
        found = decide_passages(
            pieces,
            places,
            groups,
            settings,
            gram_size=anchoring.size,
            num_against=0,
            on_done=lambda documents: None,
        )
        times.append(process_time())
    anchors, selection, _, decision = np.diff(times).tolist()
    speed = column.nbytes / 1e6 / (anchors + selection + decision)
    return (
        f"The compiled steps alone, {column.nbytes / 1e6:.0f} MB of text in memory, one thread: "
        f"anchors {anchors:.2f} s, "
        f"counting, anchors again and selection {selection:.2f} s, decision {decision:.2f} s: "
        f"{speed:.0f} MB/s; "
        f"{len(found.documents):,} passages.\n"
    )


def joined(selected: list[Selected]) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return the pieces of batches as those of one, the places of the anchors, and their hashes."""
    first = np.zeros(3, np.int64)
    columns = []
    for each in selected:
        documents, text_bytes, anchors = first
        columns.append(
            (each.pieces + np.array([documents, 0, 0, 0, anchors, 0]), each.positions + text_bytes)
        )
        first += [len(each.characters), len(each.text), len(each.positions)]
    rows = np.ascontiguousarray(np.concatenate([pieces for pieces, _ in columns]).T)
    owners, lengths, offsets, before, up_to, bounded = rows
    text = np.concatenate([each.text for each in selected])
    characters = np.concatenate([each.characters for each in selected])
    pieces = kernels.passages.Pieces(
        text,
        offsets_from_lengths(lengths),
        owners,
        offsets,
        before,
        up_to,
        bounded.astype(np.uint8),
        characters,
    )
    places = np.concatenate([places for _, places in columns])
    return pieces, places, np.concatenate([each.hashes for each in selected])


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "files", nargs="*", type=Path, help="more Parquet files, which are measured and not checked"
    )
    parser.add_argument("--data", type=Path, default=corpus.SHARED, help="the real texts")
    parser.add_argument("--mb", type=float, default=100, help="of each kind of text")
    parser.add_argument("--min-length", type=int, default=200)
    parser.add_argument(
        "--worst", type=float, nargs="*", default=[], help="MB of the least favourable texts"
    )
    parser.add_argument(
        "--kernels", type=Path, help="a Parquet file whose texts are kept in memory"
    )
    parser.add_argument("--results", type=Path, help="write the page to this file")
    return parser.parse_args()


def main() -> int:
    args = parse_arguments()
    scores = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        neardup.remove_passages(["a text", "another"])  # compiles
        for kind in (*SETS, "code"):
            path = write_text(kind, args.data, int(args.mb * 1e6), folder)
            scores.append(measure(path, folder, args.min_length, check=True))
            print(markdown(scores[-1:]), *scores[-1].faults[:5], sep="\n", flush=True)
        scores += [measure(path, folder, args.min_length, check=False) for path in args.files]
        more = [measure_kernels(args.kernels, args.min_length)] if args.kernels else []
        more += [measure_worst(args.worst, folder, args.min_length)] if args.worst else []
    caveats = Path(__file__).with_name("passages_caveats.md").read_text("utf-8")
    page = f"{caveats}- {conditions()}\n\n" + "\n".join([markdown(scores), *more])
    print(page)
    if args.results:
        args.results.write_text(page, "utf-8")
    return int(any(score.faults for score in scores))


if __name__ == "__main__":
    sys.exit(main())
