"""Sign texts, sets of tokens and weighted sets with MinHash or SimHash, and count the documents of
their features.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Set, Sized
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import chain
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import pyarrow as pa

from neardup.arrays import offsets_from_lengths
from neardup.documents.batch import Losses
from neardup.documents.texts import is_text
from neardup.engines.choose import accepted_by_spark
from neardup.engines.local.sign import Column, sign_column, sign_corpus
from neardup.errors import InputError, SettingError
from neardup.features.feature_strings import split_pairs
from neardup.features.idf import IdfTable
from neardup.features.token_lists import STRING_LISTS, list_strings
from neardup.files import AnyPath, JsonObject
from neardup.fingerprints.fingerprints import Fingerprints
from neardup.fingerprints.signatures import Signatures
from neardup.fingerprints.sketches import Sketches
from neardup.formats.reading import known_total
from neardup.formats.tables import export_of, splits_of
from neardup.methods.base import Method
from neardup.methods.registry import method_of
from neardup.methods.sketcher import Sketcher
from neardup.output.job import Job, open_job
from neardup.output.tables import TableFile
from neardup.progress import Stages
from neardup.report.contents import describe_cost, describe_losses, warn_of_textless
from neardup.runs.reading import count_corpus, count_or_open
from neardup.runs.run import (
    CountOptions,
    EngineOptions,
    Found,
    ReadingOptions,
    Run,
    Source,
    looks_like_path,
    named_paths,
    run_of,
    spelled_out,
)
from neardup.runs.signed import SignedCounts
from neardup.settings.constraints import iterates_over_names, plain, shown
from neardup.settings.methods import (
    DocumentSettings,
    MethodSettings,
    MinHash,
    SimHash,
    method_named,
)
from neardup.version import __version__

if TYPE_CHECKING:
    from typing_extensions import Unpack


_ROWS_AT_ONCE = 4096
_SAMPLE = 16  # rows that tell the length of the rows of a block
_CHARACTERS_AT_ONCE = 1 << 21
_FEATURES_AT_ONCE = 1 << 17  # of fewer, threads wait for one another
_WEIGHTED = pa.large_list(pa.struct([("feature", pa.large_string()), ("weight", pa.float64())]))


@spelled_out(CountOptions)
def document_frequencies(
    source: Source,
    *,
    method: DocumentSettings | str = SimHash(),  # noqa: B008 - frozen
    **options: Unpack[CountOptions],
) -> IdfTable:
    """Count the documents of a corpus that contain each feature, as the table that TF-IDF needs.

    Parameters
    ----------
    source : as in `dedup`.
    method : the settings that cut texts into features, or the name of a method. Of `page`, the
        features of the structure are counted.
    engine, master : as in `dedup`. The driver collects the counts.
    text_column, roles, text_unit, in_format, quote, max_document_bytes : as in `dedup`.
    threads, on_error, max_unreadable, progress : as in `dedup`. The table lists a document that
        cannot be read as `rejected`.

    Returns
    -------
    IdfTable

    Raises
    ------
    SettingError, InputError, ColumnError
        As in `dedup`.

    Examples
    --------
    >>> import neardup
    >>> table = neardup.document_frequencies(["the cat", "the dog", "a bird"])
    >>> neardup.lsh.keywords("the cat", table, top=1)[0][0]
    'cat'
    """
    settings = counted_settings(method)
    run = run_of("document_frequencies", source, options, method=settings)
    on_spark = accepted_by_spark(run)
    inputs = run.find()
    with open_job(run) as job:
        if on_spark:
            from neardup.engines.spark.engine import count_files

            shingling = inputs.settings.shingling
            table = count_files(run, inputs.tasks, shingling, job.stages)
            losses = Losses.of(table.rejected)
        else:
            counts = SignedCounts()
            table = _count_here(job, inputs, counts)
            losses = counts.losses
        job.finished = describe_losses(losses, 0)
    return replace(table, warnings=(*inputs.warnings, *warn_of_textless(losses)))


def counted_settings(method: DocumentSettings | str) -> DocumentSettings:
    """Return the settings that make the features of a method which are counted.

    Raises
    ------
    SettingError
        If it is no method of texts.
    """
    named: DocumentSettings = method_named(method) if isinstance(method, str) else method
    if not isinstance(named, DocumentSettings):
        raise SettingError(
            f"document_frequencies counts shingles of texts: got {named!r:.80}. Use MinHash(...) "
            "or SimHash(...)."
        )
    # Methods of text and structure count the tags: only their structure is weighed.
    return getattr(named, "of_structure", None) or named.shingling


def _count_here(job: Job, inputs: Found, counts: SignedCounts) -> IdfTable:
    """Count the documents of each feature on this machine. counts : takes the rejected rows."""
    run = job.run
    with job.stages.stage("count", known_total(inputs.tasks)) as counting:
        table = count_corpus(
            inputs.tasks,
            inputs.settings.shingling,
            run.threads,
            counting,
            run.rejecter(counts.reject),
            losses=counts.losses,
        )
    return replace(table, rejected=tuple(counts.rejected))


class SketchOptions(ReadingOptions, EngineOptions, total=False):
    """The options of reading and of the engine."""


class SignOptions(SketchOptions, total=False):
    """Options of the file of signatures, besides the options of reading."""

    output: AnyPath | None
    with_hex: bool
    overwrite: bool


_MinHashMethod = MinHash | Literal["minhash", "structure", "content"]
_SimHashMethod = SimHash | Literal["simhash", "tags", "decay", "paths"]


@overload
def sign(
    source: Source, *, method: _MinHashMethod = "minhash", **options: Unpack[SignOptions]
) -> Signatures: ...
@overload
def sign(
    source: Source, *, method: _SimHashMethod, **options: Unpack[SignOptions]
) -> Fingerprints: ...
@overload
def sign(
    source: Source, *, method: MethodSettings | str, **options: Unpack[SignOptions]
) -> Signatures | Fingerprints: ...
@spelled_out(SketchOptions)
def sign(
    source: Source,
    *,
    method: MethodSettings | str = "minhash",
    output: AnyPath | None = None,
    with_hex: bool = False,
    overwrite: bool = False,
    **options: Unpack[SketchOptions],
) -> Any:
    """Return the MinHash signature or the SimHash fingerprint of every document.

    Parameters
    ----------
    source : documents as of `dedup`; or sets of tokens, used unchanged: a list, or an Arrow column,
        of lists of strings; or weighted sets: lists of struct<feature: string, weight: double>,
        maps, dictionaries, or lists of pairs. A str that is not a path, a set, or a dictionary is
        one document. A null row is an empty document; a null or empty token is left out.
    method : signatures of sets of shingles: of a text (minhash), the template (structure) or the
        main text (content) of a page; or fingerprints of weighted words (simhash), tags (tags,
        decay, paths) or vectors (vectors). Or settings. For tokens, only the seed and length of
        signatures, or the bits, hash and weights of fingerprints matter.
    output : a file written batch by batch: .parquet, whose rows are read again when the result is
        used, or .jsonl or .csv, with hexadecimal digits. Default: the rows are kept in memory.
    with_hex : add a column `hex` of hexadecimal digits to a Parquet file.
    overwrite, engine, master : as in `dedup`. Workers sign documents, no sets of tokens; the driver
        collects their rows.
    text_column, roles, id_column, text_unit, in_format, quote, max_document_bytes : as in `dedup`.
    threads, on_error, max_unreadable, progress : as in `dedup`. A document that cannot be read has
        no row; in a list or a column of texts it is an InputError.

    Returns
    -------
    Signatures of MinHash, or Fingerprints of SimHash
        A row for each document. `report` has the counts and times of files, a table or an output.

    Raises
    ------
    InputError
        If a row contains another type, or a weight is outside its limits: for MinHash 0, or from
        1e-100 to 1e100.
    SettingError
        If method uses `min_structure`, or `boost_rare` for lists of tokens.
    OutputError
        As in `dedup`.

    Notes
    -----
    Two signatures agree in a hash with the probability of their (weighted) Jaccard similarity
    (Broder, 1997; Christiani, 2020), and two fingerprints differ in a bit with probability angle /
    pi (Charikar, 2002).

    Examples
    --------
    >>> texts = ["a cat sat on the mat today", "the cat sat on the mat today"]
    >>> signatures = sign(texts, method=MinHash(ngram=2, num_hashes=1024))
    >>> signatures[0].similarity(signatures[1]).round(1).tolist()  # exactly 5 of 7
    [0.7]
    >>> sign(texts, method="simhash").values.shape
    (2, 1)
    >>> sign([{"a": 1.0, "b": 2.0}, {"a": 2.0}]).scheme["name"]
    'weighted-minhash'
    """
    chosen = method_of(method_named(method))
    file = None if output is None else TableFile(output, overwrite=overwrite)
    documents = source
    column = None
    if chosen.settings.vector_length is None and not _names_columns(options):
        documents, column = _as_column(source)
    run = run_of(
        "sign",
        documents,
        options,
        method=chosen.settings,
        outputs=() if file is None else (file.path,),
    )
    take = concatenate if file is None else partial(write_sketches, file=file, with_hex=with_hex)
    on_spark = accepted_by_spark(run)
    if on_spark:
        _refuse_tokens(column)
    if column is not None:
        in_memory = file is None and chosen.counted is None and not on_spark
        if in_memory or not is_text(column.dtype):
            max_bytes = run.inputs.max_document_bytes
            return take(iter([sign_column(column, chosen.sketcher, run.threads, max_bytes)]))
        run = replace(run, settings=replace(run.settings, on_error="stop"))  # a row for each text
    return _perform(run, take, on_spark)


def _names_columns(options: ReadingOptions) -> bool:
    """Return whether options name a part of the source, which is then read as a table or files."""
    names = ("text_column", "roles", "id_column", "in_format")
    return any(options.get(name) is not None for name in names)


def _refuse_tokens(column: Column | None) -> None:
    """Raise InputError if a column has sets of tokens, which workers do not sign."""
    if column is not None and not is_text(column.dtype):
        raise InputError(
            f"On Spark, sign reads documents: got a column of {column.dtype}. Leave engine "
            "(--engine) out to sign sets of tokens."
        )


def _perform(run: Run, take: Callable[[Iterator[Sketches]], Sketches], on_spark: bool) -> Sketches:
    """Sign documents.

    take : makes one of their batches; the first batch has no rows.
    """
    counts = SignedCounts()
    inputs = run.find()
    with open_job(run) as job:
        stages = job.stages
        with ExitStack() as stage:
            if on_spark:
                from neardup.engines.spark.engine import sign_files

                sketcher, batches = sign_files(run, inputs, counts, stages)
            else:
                total = known_total(inputs.tasks)
                sketcher = _counted(run, inputs, job).sketcher
                batches = sign_corpus(
                    inputs.tasks,
                    sketcher,
                    run.threads,
                    counts,
                    progress=stage.enter_context(stages.stage("sign", total)),
                    reject=run.rejecter(counts.reject),
                )
            # First, so that the result has a scheme without any batch.
            no_values = sketcher.allocate(0).values
            no_ids = pa.array([], pa.large_string())
            no_rows = sketcher.method.sketches(no_values, sketcher.scheme, no_ids)
            sketches = take(chain([no_rows], batches))
        warnings = inputs.warnings + sketcher.warnings(counts.short)
        job.finished = sketches.report = _report(sketcher, counts, stages, warnings)
    return sketches


def _counted(run: Run, inputs: Found, job: Job) -> Method:
    """Return the method of a run, with the document frequencies if its weights need them."""
    method = inputs.method
    if method.counted is None:
        return method
    with job.stages.stage("count", known_total(inputs.tasks)) as progress:
        idf = count_or_open(method.counted, inputs.tasks, job.scratch, run.threads, progress)
        return method.with_idf(idf)


def concatenate(batches: Iterator[Sketches]) -> Sketches:
    """Return the rows of several, at least one, of one scheme and with ids of one type."""
    parts = list(batches)
    if len(parts) < 3:  # the first of several has no rows
        return parts[-1]
    first = parts[0]
    return type(first)(
        np.concatenate([part.values for part in parts]),
        first.scheme,
        pa.concat_arrays([part.ids for part in parts]),
        np.concatenate([part.empty for part in parts]),
    )


def write_sketches(batches: Iterator[Sketches], file: TableFile, with_hex: bool) -> Sketches:
    """Write rows to a file: their bytes, their hexadecimal digits, or both; a text format has
    digits alone.

    Returns
    -------
    The rows, which are read from the file once they are used.
    """
    first = next(batches)

    def rows_of(sketches: Sketches) -> pa.Table:
        # A null id is told when ids are needed: the rows of a long run are not lost for it.
        table = sketches._table_of(sketches.ids, with_hex=with_hex or file.is_text)
        return table.drop_columns([sketches.column]) if file.is_text else table

    table = rows_of(first)
    rest = chain.from_iterable(rows_of(sketches).to_batches() for sketches in batches)
    file.write(chain(table.to_batches(), rest), table.schema)
    return first._open_later(file.path, first.scheme)


def _report(
    sketcher: Sketcher, counts: SignedCounts, stages: Stages, warnings: list[str]
) -> JsonObject:
    losses = counts.losses
    return {
        "version": __version__,
        "command": "sign",
        "scheme": sketcher.scheme,
        "counts": {
            "read": counts.read,
            "signed": counts.read - counts.without_features,
            "without_features": counts.without_features,
            "short": counts.short,
            "rejected": losses.rejected,
        },
        **describe_losses(losses, counts.read),
        **describe_cost(stages, counts.read, counts.text_bytes),
        "warnings": warnings + warn_of_textless(losses),
        "rejected": [row._asdict() for row in counts.rejected],
    }


def _as_column(source: Any) -> tuple[Any, Column | None]:
    """Return a source that can be read again, and its column if it is one of texts or of tokens."""
    if splits_of(source) is not None:  # a dictionary, too, but of inputs
        return source, None
    source = plain(source)
    is_one_text = isinstance(source, str) and not looks_like_path(source)
    # A set or a dictionary is one document, too.
    if is_one_text or isinstance(source, (Set, Mapping)):
        source = [source]
    source = _as_arrow(source)
    if isinstance(source, (pa.Array, pa.ChunkedArray)):
        if pa.types.is_struct(source.type):  # a table in this form
            return source, None
        chunks = source.chunks if isinstance(source, pa.ChunkedArray) else [source]
        return source, Column(source.type, len(source), chunks)
    is_path = isinstance(source, (str, os.PathLike))
    if is_path or hasattr(source, "__arrow_c_stream__") or hasattr(source, "features"):
        return source, None
    is_read = isinstance(source, Iterable) and not isinstance(source, bytes)
    if not is_read or iterates_over_names(source):
        raise _refuse(source)
    rows = list(source)
    return rows, None if named_paths(rows) else _python_column(rows)


def _as_arrow(source: Any) -> Any:
    """Return a column as an Arrow array, and any other source as it is."""
    if not isinstance(source, list) and (exported := export_of(source)) is not None:
        source = exported
    has_stream = hasattr(source, "__arrow_c_stream__")
    if has_stream and hasattr(source, "dtype"):  # a Series; a frame has dtypes
        return pa.chunked_array(source)
    if hasattr(source, "__arrow_c_array__") and not has_stream:
        return pa.array(source)
    return source


def _first_filled(rows: list[Any]) -> Any:
    """Return the first row that is neither null nor empty; the first that is not null if all are
    empty.
    """
    present = [row for row in rows if row is not None]
    filled = (
        row for row in present if not isinstance(row, Sized) or isinstance(row, str) or len(row)
    )
    return next(filled, present[0] if present else "")


def _python_column(rows: list[Any]) -> Column:
    """Return Python's rows as a column of the type that the first of them has."""
    first = _first_filled(rows)
    kind = _WEIGHTED
    convert: Callable[[list[Any]], pa.Array] = _from_pairs
    size = _FEATURES_AT_ONCE
    if isinstance(first, (str, bytes)) or not isinstance(first, Iterable):
        kind = pa.large_string()
        convert = partial(pa.array, type=kind)
        size = _CHARACTERS_AT_ONCE
    elif isinstance(first, Mapping):
        convert = _from_mappings
    elif isinstance(next(iter(first), ""), (str, NoneType)):
        kind = STRING_LISTS
        convert = _from_sets
    return Column(kind, len(rows), _blocks(rows, size), partial(_convert, convert=convert))


def _blocks(rows: list[Any], size: int) -> Iterator[list[Any]]:
    """Yield rows that together are about so long, if all are as long as the first of them."""
    start = 0
    while start < len(rows):
        length = sum(len(row) for row in rows[start : start + _SAMPLE] if hasattr(row, "__len__"))
        step = min(_ROWS_AT_ONCE, max(1, _SAMPLE * size // max(1, length)))
        yield rows[start : start + step]
        start += step


def _convert(block: list[Any], first: int, convert: Callable[[list[Any]], pa.Array]) -> pa.Array:
    try:
        return convert(block)
    except (pa.ArrowException, AttributeError, TypeError, ValueError) as error:
        # Row by row: the recursion raises the error of the bad row, with its number.
        if len(block) > 1:
            for offset, row in enumerate(block):
                _convert([row], first + offset, convert)
        raise InputError(
            f"Row {first:,} cannot be signed: got {block[0]!r:.80} ({error}). All rows must be "
            "texts, lists of strings, or dictionaries of a string and its weight, as the first "
            "one is."
        ) from error


def _from_sets(rows: list[Any]) -> pa.Array:
    # A string would pass for a list of characters.
    # Types alone: looking at each row would take longer than converting it.
    if any(issubclass(kind, (str, bytes, Mapping)) for kind in set(map(type, rows))):
        raise TypeError("it is no list of strings")
    return list_strings(rows)


def _from_mappings(rows: list[Any]) -> pa.Array:
    filled = [row or {} for row in rows]  # a null, or an empty row of another type
    features = [feature for row in filled for feature in row]
    weights = [weight for row in filled for weight in row.values()]
    return _weighted(list(map(len, filled)), features, weights)


def _from_pairs(rows: list[Any]) -> pa.Array:
    features, weights = split_pairs([row or [] for row in rows], "the column")
    return _weighted([len(row) for row in features], list(chain(*features)), list(chain(*weights)))


def _weighted(counts: list[int], features: list[Any], weights: list[Any]) -> pa.Array:
    columns = [pa.array(features, pa.large_string()), pa.array(weights, pa.float64())]
    pairs = pa.StructArray.from_arrays(columns, fields=list(_WEIGHTED.value_type))
    return pa.LargeListArray.from_arrays(pa.array(offsets_from_lengths(counts)), pairs).cast(
        _WEIGHTED
    )


def _refuse(source: object) -> InputError:
    return InputError(
        f"Cannot sign {type(source).__name__}: {shown(source)}. Pass documents as dedup takes "
        "them, or a column or a list, of lists of strings or of dictionaries of a string and its "
        "weight."
    )
