"""Estimate a run or an index beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from neardup.arrays import is_real
from neardup.candidates.bands import Bands, candidate_probability, expected_false_candidates
from neardup.candidates.blocks import choose_blocks, plan_blocks
from neardup.documents.batch_cache import default_cache_bytes
from neardup.errors import InputError, SettingError
from neardup.files import AnyPath
from neardup.index import meta
from neardup.index.incoming import FEATURES, TEXT
from neardup.methods.base import Method
from neardup.methods.minhash import MinHashMethod
from neardup.methods.registry import method_of
from neardup.output.tables import check_output
from neardup.report.charts import s_curve, save_drawing
from neardup.report.page import first_rows
from neardup.report.wording import escape_text
from neardup.settings.constraints import without_none
from neardup.settings.methods import MethodSettings, MinHash, SimHash, method_named, named_as
from neardup.settings.run import IndexSettings, Storage

_BYTES_PER_TOKEN = 6.6  # of English text in UTF-8, a word and its separator
# A run on one machine, bytes per document. On disk: the columns of schemas.py. In memory:
# the limit that tests/engines/test_runs.py checks for whole runs; 47 were measured between half a
# million and two million documents.
_DISK_FIXED = 8 + 16 + 8 + 8
_DISK_BAND = 8 + 4
_DISK_SHINGLE = 8
_MEMORY_DOCUMENT = 64
_MEMORY_BASE = 500e6
# Beyond two threads, for each: a stretch of a file that is decoded ahead, and documents that are
# described. Measured with 16 and 64 threads on 1.9 GB: 60 MB each where a file of JSON lines is
# read in stretches, 30 for Parquet.
_MEMORY_THREAD = 64e6
# For all threads together, the documents that wait between them: up to 148 MB with 8 threads.
_MEMORY_AHEAD = 192e6
# A cached document: its text, and the row that is written if it is kept. Besides, a row number,
# offsets, and its id.
_CACHE_COPIES = 2
_CACHE_DOCUMENT = 64
# On Spark, measured by tools/measure_spark.py on windows of documentation, compressed as Spark
# does. A document in a candidate pair is shuffled once to its cell, and once before if the list of
# such documents is too long to broadcast.
_COLLAPSE_FIXED = 57
_COLLAPSE_BAND = 8
_BAND_ROW = 22.3
_BAND_PAIRS = 74
_FEATURE_COPIES = 2.3
_CLUSTER_SECONDS_PER_GB = 242.0  # of three million documents, the most that were measured
_CORE_MEMORY = 2e9
# An index, bytes a document in the files of docs/index-format.md; tests/api/test_plan.py compares
# them with indexes.
_ENTRY = 8 + 4  # a key with its row
_STARTS = 1.07  # times, for the array of starts
_FIXED = 4 + 1 + 16 + 8 + 0.4  # offset of the id, state, content, first_seen, bits
_OFFSET = 4
_HASH = 8
_ID = 20
_COMPRESSED = 0.41  # of English text, by zstd
_ENGINES = ("local", "spark", "index", "memory")


@dataclass(frozen=True, repr=False)
class Plan:
    """The estimate of a run or of an index; a field that does not apply is None.

    num_tables : bands, or tables of an index. bands, threshold, recall : of MinHash; recall is the
    share of the pairs just at the threshold that are compared. num_blocks : of SimHash.
    false_candidates : pairs below the threshold that a run compares, as in manual pages and
    chapters: 4 a document with the defaults.
    comparisons : of a query with the fingerprints in memory, if all bits are random. curve : pairs
    of a similarity and the probability of a comparison.

    memory_bytes : of a local run, an upper limit, with the cached documents; on Spark, for each
    core of an executor. cache_bytes : of a local run, the part for its documents, 0 if they do not
    fit into a quarter of the memory. parts : bytes by content: of scratch files, an upper limit for
    English (twice as much for Chinese, where a character is a token); shuffled on Spark; or of the
    files of an index after compaction. core_hours : on Spark, of a core like the measured one.
    """

    documents: int
    text_bytes: float
    engine: str
    num_tables: int
    bands: Bands | None = None
    threshold: float | None = None
    recall: float | None = None
    num_blocks: int | None = None
    false_candidates: float | None = None
    comparisons: float | None = None
    memory_bytes: float | None = None
    cache_bytes: float | None = None
    core_hours: float | None = None
    parts: Mapping[str, float] = field(default_factory=dict)
    curve: tuple[tuple[float, float], ...] = ()

    @property
    def disk_bytes(self) -> float:
        """The sum of the parts: scratch files, shuffled bytes, or the files of an index."""
        return sum(self.parts.values())

    def __repr__(self) -> str:
        return f"<Plan: {self}>"

    def __str__(self) -> str:
        """Return the plan in one sentence."""
        search = f"{self.num_tables} tables"
        if self.bands is not None:
            search = f"{self.bands.num_bands} bands of {self.bands.rows_per_band} rows"
        if self.recall is not None:
            search += f" find {self.recall:.1%} of the pairs at {self.threshold:g}"
        sizes = (
            [] if self.memory_bytes is None else [f"{self.memory_bytes / 1e9:,.1f} GB of memory"]
        )
        if self.parts:
            sizes.append(
                f"{self.disk_bytes / 1e9:,.1f} GB "
                f"{'shuffled' if self.engine == 'spark' else 'on disk'}"
            )
        return f"{self.documents:,} documents: {search}; {', '.join(sizes)}"

    def _repr_html_(self) -> str:
        curve = "" if self.bands is None else s_curve(*self.bands, self.threshold)
        parts = pa.table(
            {
                "part": [*self.parts],
                "gigabytes": [round(size / 1e9, 3) for size in self.parts.values()],
            }
        )
        return f"<p>{escape_text(self)}</p>{first_rows(f'{self.engine}: bytes by content', parts)}{curve}"  # noqa: E501


def plan(
    *,
    documents: float,
    document_bytes: float = 4000,
    method: MethodSettings | str = "minhash",
    threshold: float | None = None,
    max_distance: int | None = None,
    engine: str = "local",
    storage: Storage | None = None,
    document_features: float | None = None,
    memory_bytes: float | None = None,
    threads: int | None = None,
    plot: AnyPath | None = None,
) -> Plan:
    """Estimate a run or an index: its bands or blocks, false candidates, memory and disk.

    Parameters
    ----------
    documents : the number of documents; of an index, the kept ones. A removed document takes its
        keys and fingerprint alone.
    document_bytes : the average size of a text in bytes of UTF-8.
    method, threshold, max_distance : as in `dedup`.
    engine : "local" or "spark" for a run with MinHash; "index" for an `Index` in a folder; "memory"
        for a `HammingIndex` of SimHash fingerprints.
    storage : of an index, as in `Index.create`. Default: features.
    document_features : of an index, the average number of distinct features of a text. Default: as
        in English.
    memory_bytes : the maximum memory of a `HammingIndex`, for which the number of blocks is chosen.
        Default: no limit.
    threads : of a local run. Default: 2.
    plot : of a local run, an SVG file for the S-curve, replaced if it exists.

    Returns
    -------
    Plan

    Raises
    ------
    InputError
        If a number is not from 1 to 1e15.
    SettingError
        If the engine is unknown, does not support the method or an argument, or no number of blocks
        fits into the memory.

    Examples
    --------
    >>> import neardup
    >>> method = neardup.SimHash(num_blocks=4)
    >>> neardup.plan(documents=2**34, method=method, engine="memory").comparisons
    1048576.0
    """
    numbers = {"documents": documents, "document_bytes": document_bytes}
    optional = {
        "document_features": document_features,
        "memory_bytes": memory_bytes,
        "threads": threads,
    }
    _check(numbers | without_none(optional))
    _check_engine(
        engine,
        local={"plot": plot, "threads": threads},
        index={"storage": storage, "document_features": document_features},
        memory={"memory_bytes": memory_bytes},
    )
    count = int(documents)
    settings = method_named(method, threshold, max_distance)
    if engine == "index":
        stored = IndexSettings().storage if storage is None else storage
        return _plan_index(settings, stored, count, document_bytes, document_features)
    if engine == "memory":
        return _plan_memory(named_as(SimHash, settings), count, document_bytes, memory_bytes)
    chosen = named_as(MinHash, settings)
    bands = _bands_of(chosen)
    if plot is not None:
        path = check_output(plot, (".svg",), overwrite=True)
        save_drawing(s_curve(*bands, chosen.jaccard_threshold), path)
    if engine == "spark":
        return _plan_spark(chosen, bands, count, document_bytes)
    return _plan_local(chosen, bands, count, document_bytes, 2 if threads is None else threads)


def _check(numbers: Mapping[str, float]) -> None:
    for name, value in numbers.items():
        if not is_real(value) or not 1 <= value <= 1e15:
            raise InputError(
                f"{name} must be a number from 1 to 1e15: got {value!r}. Give a number such as 1e8."
            )


def _check_engine(engine: str, **options: Mapping[str, object]) -> None:
    """Raise SettingError unless the engine is known, and every option that is given is one of its
    options.
    """
    if engine not in _ENGINES:
        raise SettingError(
            f"engine must be one of {', '.join(_ENGINES)}: got {engine!r}. Change engine."
        )
    for other, values in options.items():
        for name, value in values.items():
            if value is not None and engine != other:
                raise SettingError(
                    f"{name} goes with engine={other!r}: got {name}={value!r} and "
                    f"engine={engine!r}. Leave {name} out, or use engine={other!r} (--engine "
                    f"{other})."
                )


def _bands_of(method: MinHash) -> Bands:
    """Return the bands of a run. Raise SettingError if it has none."""
    found = MinHashMethod(method)
    if found.by_samples:
        raise SettingError(
            "A plan of a run estimates bands, and containment is found by samples of shingles: "
            "got similarity='containment'. Use similarity='jaccard' (--similarity jaccard), or "
            "engine='index' (--engine index)."
        )
    return found.bands


def _plan_run(
    engine: str, method: MinHash, bands: Bands, documents: int, document_bytes: float
) -> Plan:
    """Return the figures that the estimates of a run on every engine have."""
    return Plan(
        documents=documents,
        text_bytes=documents * document_bytes,
        engine=engine,
        num_tables=bands.num_bands,
        bands=bands,
        threshold=method.threshold,
        # Bands propose by Jaccard similarity, also for a threshold of the cosine.
        recall=float(candidate_probability(method.jaccard_threshold, bands)),
    )


def _plan_local(
    method: MinHash, bands: Bands, documents: int, document_bytes: float, threads: int
) -> Plan:
    steps = [i / 20 for i in range(21)]
    cache = documents * (_CACHE_COPIES * document_bytes + _CACHE_DOCUMENT)
    # Inputs that do not fit are not cached at all in this estimate.
    cache = cache if cache <= default_cache_bytes() else 0
    return replace(
        _plan_run("local", method, bands, documents, document_bytes),
        false_candidates=documents * expected_false_candidates(bands, method.jaccard_threshold),
        memory_bytes=_MEMORY_BASE
        + _MEMORY_AHEAD * (threads > 2)
        + _MEMORY_THREAD * max(0, threads - 2)
        + _MEMORY_DOCUMENT * documents
        + cache,
        cache_bytes=cache,
        parts={
            "documents": _DISK_FIXED * documents,
            "bands": _DISK_BAND * bands.num_bands * documents,
            "features": _DISK_SHINGLE * document_bytes / _BYTES_PER_TOKEN * documents,
        },
        curve=tuple(zip(steps, candidate_probability(steps, bands).tolist(), strict=True)),
    )


def _plan_spark(method: MinHash, bands: Bands, documents: int, document_bytes: float) -> Plan:
    plan = _plan_run("spark", method, bands, documents, document_bytes)
    return replace(
        plan,
        memory_bytes=_CORE_MEMORY,
        core_hours=_CLUSTER_SECONDS_PER_GB * plan.text_bytes / 1e9 / 3600,
        parts={
            "copies": documents * (_COLLAPSE_FIXED + _COLLAPSE_BAND * bands.num_bands),
            "bands": documents * (_BAND_ROW * bands.num_bands + _BAND_PAIRS),
            "features": _FEATURE_COPIES * _DISK_SHINGLE * plan.text_bytes / _BYTES_PER_TOKEN,
        },
    )


def _plan_index(
    settings: MethodSettings,
    storage: Storage,
    documents: int,
    document_bytes: float,
    num_features: float | None,
) -> Plan:
    """Return the estimate of an index.

    num_features : the number of features of a document; None for the estimate of English text.
    """
    index = IndexSettings(storage=storage, expected_documents=min(documents, 2**32 - 1))
    method = meta.fixed(method_of(settings), index)
    features = method.describe(pa.array([""], pa.large_string()))
    sketch = method.sketch(features)
    num_features = num_features or _num_features(method, document_bytes)
    num_tables = len(method.lookup.layout.prefix_bits)
    by_samples = method.keys_of(sketch, features).samples is not None
    num_entries = (num_features if by_samples else num_tables) + 2  # the tables of ids and contents
    sketch_bytes = sketch.itemsize * int(np.prod(sketch.shape[1:]))
    stores_features = storage == FEATURES or by_samples
    parts = {
        "keys": _STARTS * _ENTRY * num_entries,
        "fingerprints": _FIXED + _ID + sketch_bytes,
        "features": _OFFSET + _HASH * num_features if stores_features else 0.0,
        "texts": _OFFSET + _COMPRESSED * document_bytes if storage == TEXT else 0.0,
    }
    return Plan(
        documents=documents,
        text_bytes=documents * document_bytes,
        engine="index",
        num_tables=num_tables,
        num_blocks=getattr(method.settings, "num_blocks", None),
        parts={name: documents * size for name, size in parts.items()},
    )


def _num_features(method: Method, document_bytes: float) -> float:
    """Return the number of features of an English text, or of a vector."""
    length = method.settings.vector_length
    if length:
        # A feature is a word of 64 bits: two numbers of 32 bits.
        return float(length / 2)
    ngram = getattr(method.settings, "ngram", 1)
    return _distinct(document_bytes / _BYTES_PER_TOKEN, ngram)


def _distinct(tokens: float, ngram: int) -> float:
    """Return the number of distinct n-grams of an English text: of words by Heaps' law; nearly all
    longer ones.
    """
    if ngram == 1:
        return float(min(tokens, 4.0 * tokens**0.62))
    return (0.9 if ngram == 2 else 1.0) * tokens


def _plan_memory(
    method: SimHash, documents: int, document_bytes: float, memory_bytes: float | None
) -> Plan:
    if method.num_blocks is None:
        chosen = choose_blocks(documents, method.bits, method.max_distance, memory_bytes)
    else:
        plans = plan_blocks(documents, method.bits, method.max_distance)
        # The first plan has max_distance + 1 blocks.
        chosen = plans[method.num_blocks - method.max_distance - 1]
    return Plan(
        documents=documents,
        text_bytes=documents * document_bytes,
        engine="memory",
        num_tables=chosen.num_tables,
        num_blocks=chosen.num_blocks,
        comparisons=chosen.comparisons,
        memory_bytes=chosen.memory_bytes,
    )
