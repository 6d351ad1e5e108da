"""Near-duplicates of Spark DataFrames, on the cluster: the same decisions as on one machine.

Row for row the result of `neardup.dedup` on the same documents. `pip install neardup[spark]`.
"""

from __future__ import annotations

from neardup.engines.choose import require_spark
from neardup.settings.constraints import ColumnNames

require_spark()

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyspark import Broadcast
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.types import DataType, DecimalType, LongType

from neardup.arrays import arrow_of
from neardup.decide.priority import rank_columns
from neardup.decide.rules import rule_of
from neardup.engines.capabilities import FRAMES
from neardup.engines.spark.found import decide_rows
from neardup.engines.spark.pipeline import BROADCAST_ROWS, Outcome, Run
from neardup.engines.spark.session import first_line, translated
from neardup.engines.spark.source import Frame
from neardup.errors import ColumnError, InputError, SettingError
from neardup.methods.base import Method
from neardup.methods.registry import method_of
from neardup.methods.sketcher import Sketcher
from neardup.methods.stages import Read
from neardup.progress import Stages
from neardup.runs.columns import listed
from neardup.runs.refusals import refuse_together
from neardup.settings.methods import MethodSettings, method_named
from neardup.settings.run import Keep, Linkage, SelectionSettings, split_copies

__all__ = ["Clustering", "Deduplication", "cluster", "dedup", "find_pairs", "sign"]

_NAMES = ("document", "against", "text", "ranks", "within")
_TEXTS, _DATES = ("string", "char", "varchar", "binary"), ("date", "timestamp", "timestamp_ntz")
_WHOLE = ("byte", "short", "integer", "long")
_NUMBERS = (*_WHOLE, "float", "double", "decimal")
_DECIMAL_DIGITS = 36
"""Types of Spark."""


@dataclass(frozen=True)
class Deduplication:
    """The result of `dedup`.

    Attributes
    ----------
    kept : the rows of the source that are kept, with all their columns.
    removed : id, kept_id, kept_role (source or against), and the measures of the method, such as
        similarity.
    rounds : of the sieve on the cluster; 0 if the driver decided.
    """

    kept: DataFrame
    removed: DataFrame
    rounds: int


@dataclass(frozen=True)
class Clustering:
    """The result of `cluster`.

    Attributes
    ----------
    documents : id, size (of its cluster), is_first, first_id (the first document of the cluster)
        and the measures of the document and the first one, such as similarity.
    clusters : first_id and size of each cluster of two documents or more, the largest first.
    rounds : of the sieve on the cluster; 0 if the driver decided.
    """

    documents: DataFrame
    clusters: DataFrame
    rounds: int


def dedup(
    df: DataFrame,
    *,
    text_column: str = "text",
    id_column: ColumnNames = None,
    method: MethodSettings | str = "minhash",
    threshold: float | None = None,
    max_distance: int | None = None,
    keep: Keep = "first",
    within: str | None = None,
    against: DataFrame | None = None,
    linkage: Linkage = "sieve",
    max_bucket_size: int | None = None,
) -> Deduplication:
    """Remove the near-duplicates of a DataFrame.

    Parameters
    ----------
    df : the documents. Workers read it twice, thrice if rare features count more: cache it if it is
        expensive.
    text_column : its column of texts or pages.
    id_column : its column of ids, which differ; documents are in their order. Or several, of
        strings or whole numbers, which are joined as in `neardup.dedup`. Default: None, for a
        DataFrame that is read from Parquet files; documents are then in the order of file and row.
    method, threshold, max_distance, keep, within, linkage, max_bucket_size : as in `neardup.dedup`.
    against : an earlier collection with the same columns. Its documents are never removed, and come
        before all others.

    Returns
    -------
    Deduplication

    Raises
    ------
    ColumnError
        If a column is missing.
    InputError
        If ids repeat, or rows have none.
    SettingError
        If a value is outside its limits.
    ClusterError
        If the run failed on the cluster.
    """
    selection = SelectionSettings(
        keep=keep, within=within, linkage=linkage, max_bucket_size=max_bucket_size
    )
    FRAMES.refuse("dedup", {"keep": split_copies(keep)[0]})
    chosen = _method(method_named(method, threshold, max_distance), text_column)
    if not chosen.keeps_groups_apart:
        refuse_together("fingerprints", within=within)
    run, outcome = _run(df, text_column, id_column, chosen, selection, against)
    removed = _with_ids(outcome, outcome.removed, chosen)
    with run.named("removed"):
        is_few = outcome.removed.count() < BROADCAST_ROWS
    return Deduplication(_kept(df, id_column, removed, is_few), removed, outcome.rounds)


def find_pairs(
    df: DataFrame,
    *,
    text_column: str = "text",
    id_column: ColumnNames = None,
    method: MethodSettings | str = "minhash",
    threshold: float | None = None,
    max_distance: int | None = None,
    max_bucket_size: int | None = None,
) -> DataFrame:
    """Find all pairs of duplicates of a DataFrame.

    Parameters
    ----------
    df, text_column, id_column : as in `dedup`.
    method, threshold, max_distance, max_bucket_size : as in `neardup.find_pairs`.

    Returns
    -------
    DataFrame of left_id, right_id and the measures of the method; `left` is the earlier document.
    """
    chosen = _method(method_named(method, threshold, max_distance), text_column)
    selection = chosen.in_all_pairs(SelectionSettings(max_bucket_size=max_bucket_size))
    _, outcome = _run(df, text_column, id_column, chosen, selection, None, all_pairs=True)
    found = _with_ids(outcome, outcome.found, chosen)
    ends = F.least("id", "kept_id").alias("left_id"), F.greatest("id", "kept_id").alias("right_id")
    return found.select(*ends, *(measure.name for measure in chosen.measures))


def cluster(
    df: DataFrame,
    *,
    text_column: str = "text",
    id_column: ColumnNames = None,
    method: MethodSettings | str = "minhash",
    threshold: float | None = None,
    max_distance: int | None = None,
    keep: Keep = "first",
    within: str | None = None,
    linkage: Linkage = "sieve",
    max_bucket_size: int | None = None,
) -> Clustering:
    """Cluster the similar documents of a DataFrame.

    Parameters
    ----------
    df, text_column, id_column : as in `dedup`.
    method, threshold, max_distance, keep, within, linkage, max_bucket_size : as in
        `neardup.cluster`.

    Returns
    -------
    Clustering
    """
    SelectionSettings(keep=keep).refuse_copies("cluster")
    result = dedup(
        df,
        text_column=text_column,
        id_column=id_column,
        method=method,
        threshold=threshold,
        max_distance=max_distance,
        keep=keep,
        within=within,
        linkage=linkage,
        max_bucket_size=max_bucket_size,
    )
    rows = df.select(_key(df, id_column).alias("id")).join(result.removed, "id", "left")
    rows = rows.withColumns(
        {"is_first": F.isnull("kept_id"), "first_id": F.coalesce("kept_id", "id")}
    )
    rows = rows.withColumn("size", F.count("*").over(Window.partitionBy("first_id")))
    measures = method_of(method_named(method, threshold, max_distance)).measures
    shown = [
        F.coalesce(F.col(each.name), F.lit(each.of_itself)).alias(each.name) for each in measures
    ]
    clusters = (
        rows.filter("is_first and size > 1")
        .select("first_id", "size")
        .orderBy(F.desc("size"), "first_id")
    )
    return Clustering(
        rows.select("id", "size", "is_first", "first_id", *shown), clusters, result.rounds
    )


def sign(
    df: DataFrame,
    *,
    text_column: str = "text",
    id_column: ColumnNames = None,
    method: MethodSettings | str = "simhash",
) -> DataFrame:
    """Return the fingerprint or signature of each document.

    Parameters
    ----------
    df, text_column, id_column : as in `dedup`.
    method : as in `neardup.sign`.

    Returns
    -------
    DataFrame of id and values, an array of long: the words of a SimHash fingerprint, the lowest
        first, as signed
    numbers; or the hashes of a MinHash signature.
    """
    chosen = _method(method_named(method, None, None), text_column)
    frame = _frame(
        df, text_column, id_column, "first", None, chosen.settings.vector_length, against=False
    )
    documents = Frame(frame, chosen.settings.vector_length)
    if chosen.counted is not None:
        raise SettingError(
            "sign on Spark does not count the documents of each feature, by which the method "
            "weighs features: got "
            f"{chosen.settings!r:.80}. Use neardup.sign, or pass the table of "
            "neardup.document_frequencies as idf."
        )
    shared = frame.sparkSession.sparkContext.broadcast(chosen.sketcher)
    id_type = frame.schema["document"].dataType.simpleString()
    return documents.all().mapInArrow(
        partial(_sign, read=documents.read, sketcher=shared), f"id {id_type}, values array<long>"
    )


def _sign(
    batches: Iterable[pa.RecordBatch], read: Read, sketcher: Broadcast[Sketcher]
) -> Iterator[pa.RecordBatch]:
    """Return the sketches of documents; in a worker."""
    for texts in read(batches):
        out = sketcher.value.allocate(len(texts))
        sketcher.value.sign_texts(texts["text"], out)
        sketch = out.values
        values = arrow_of(sketch.astype(np.uint64).view(np.int64).reshape(-1))
        offsets = arrow_of(np.arange(len(sketch) + 1, dtype=np.int32) * sketch.shape[1])
        lists = pa.ListArray.from_arrays(offsets, values)
        yield pa.RecordBatch.from_arrays([texts["document"], lists], ["id", "values"])


def _method(settings: MethodSettings, text_column: str) -> Method:
    """Return the method; it compares the main text of pages, as `neardup.dedup` does."""
    return method_of(
        settings.of_pages() if text_column.casefold() == "html" else settings
    ).resolve()


def _run(
    df: DataFrame,
    text_column: str,
    id_column: ColumnNames,
    method: Method,
    selection: SelectionSettings,
    against: DataFrame | None,
    *,
    all_pairs: bool = False,
) -> tuple[Run, Outcome]:
    rule = rule_of(selection)
    rule.refuse(method)
    within, length = selection.within, method.settings.vector_length
    frame = _frame(df, text_column, id_column, selection.keep, within, length, against=False)
    if against is not None:
        frame = frame.unionByName(
            _frame(against, text_column, id_column, "first", within, length, against=True)
        )
    corpus = Frame(frame, _first_length(frame) if length == 0 else length)
    given = df.sparkSession, corpus, method, selection, Stages()
    with translated(), Run(*given, all_pairs=all_pairs, distinct=rule.pairs == "distinct") as run:
        search = run.search()
        # Workers perform the sieve and the chains, and keep one document of each cluster.
        by_driver = selection.copies != 1 or selection.linkage not in ("sieve", "connected")
        outcome = decide_rows(run, search, rule) if by_driver else run.decide(search)
        with run.named("ids"):
            _refuse_repeated(outcome.light, id_column)
    return run, outcome


def _frame(
    df: DataFrame,
    text_column: str,
    id_column: ColumnNames,
    keep: Keep,
    within: str | None,
    vector_length: int | None,
    *,
    against: bool,
) -> DataFrame:
    """Return the columns of engines.spark.source.Frame. Raises InputError or ColumnError if they
    cannot be read.
    """
    if not isinstance(df, ClassicDataFrame):
        raise InputError(
            "neardup.spark reads a DataFrame of Spark, but not of Spark Connect: got "
            f"{type(df).__module__}."
            f"{type(df).__name__}. Create it in a session without `remote`, or write it to "
            "files and use "
            "neardup.dedup(engine='spark')."
        )
    if df.isStreaming:
        raise InputError(
            "neardup.spark reads a DataFrame with an end: got a streaming one (isStreaming). "
            "Pass the batches of "
            "foreachBatch, or what spark.read reads; neardup.Index decides about documents as "
            "they come."
        )
    fit = ("the text", _TEXTS) if vector_length is None else ("a vector", ("array",))
    _refuse_type(df, text_column, *fit)
    # As strings, other types differ from those of the other engines.
    kinds = (
        (*_TEXTS, *_NUMBERS, *_DATES, "boolean")
        if len(_several(id_column)) == 1
        else (*_TEXTS, *_WHOLE)
    )
    for name in _several(id_column):
        _refuse_type(df, name, "the id", kinds)
    ranks, group = [], F.lit(None).cast("string")
    for rank in rank_columns(keep):
        _refuse_type(df, rank, "the rank", (*_NUMBERS, *_DATES))
        ranks += _rank(_column(rank), df.schema[rank].dataType)
    if within is not None:
        _refuse_type(df, within, "a value", (*_TEXTS, *_NUMBERS))
        group = F.coalesce(_column(within).cast("string"), F.lit(""))
    packed = F.array(*ranks).cast("array<double>")
    columns = (_key(df, id_column), F.lit(against), _column(text_column), packed, group)
    try:
        return df.select(
            *(column.alias(name) for column, name in zip(columns, _NAMES, strict=True))
        )
    except AnalysisException as error:
        raise ColumnError(
            f"Spark cannot read a column of the DataFrame: {first_line(error)}. Rename its "
            "columns so that they differ."
        ) from error


def _rank(value: Column, kind: DataType) -> list[Column]:
    """Return the two numbers of a rank, as neardup.documents.ranks defines them; times count
    microseconds.
    """
    if kind.typeName() in _DATES:
        value, kind = F.unix_micros(value.cast("timestamp")), LongType()
    nearest = value.cast("double")
    rest = F.lit(0.0)
    if isinstance(kind, DecimalType):
        # Of 38 digits, two are left to the difference, whose type Spark would round otherwise.
        digits = DecimalType(min(kind.precision, _DECIMAL_DIGITS), min(kind.scale, _DECIMAL_DIGITS))
        wider = DecimalType(digits.precision + 1, digits.scale)
        rest = (value.try_cast(digits) - nearest.try_cast(wider)).cast("double")
    elif kind.typeName() in _WHOLE:
        whole = value.cast("long")
        high = F.shiftright(whole, 32).cast("double") * F.lit(2.0**32)
        low = whole.bitwiseAND(F.lit(0xFFFFFFFF)).cast("double")
        nearest = high + low
        rest = low - (nearest - high)
    return [F.coalesce(nearest, F.lit(float("nan"))), F.coalesce(rest, F.lit(0.0))]


def _first_length(frame: DataFrame) -> int:
    """Return the length of one of the vectors, which all others must have; 0 if there is none."""
    found = frame.select(F.size("text").alias("length")).filter("length > 0").first()
    return 0 if found is None else int(found["length"])


def _refuse_type(df: DataFrame, name: str, role: str, kinds: tuple[str, ...]) -> None:
    """Raise ColumnError if there is no such column, or one of another type."""
    if name not in df.columns:
        raise ColumnError(
            f"No column '{name}' in the DataFrame: it has {listed(df.columns)}. Name one of these."
        )
    kind = df.schema[name].dataType
    if kind.typeName() not in kinds:
        raise ColumnError(
            f"Column '{name}' in the DataFrame holds {kind.simpleString()}, which cannot be "
            f"{role}. Cast it to one of "
            f"{', '.join(kinds)}, or name another column."
        )


def _column(name: str) -> Column:
    """Return the column of this very name: a dot in it names no field of a struct."""
    return F.col("`" + name.replace("`", "``") + "`")


def _several(names: ColumnNames) -> list[str]:
    """Return one name, several or none as a list."""
    return [names] if isinstance(names, str) else list(names or ())


def _key(df: DataFrame, id_column: ColumnNames) -> Column:
    """Return the column that identifies a row, and orders rows."""
    names = _several(id_column)
    if len(names) == 1:
        return _column(names[0])
    if names:  # as in neardup.documents.texts.join_ids
        parts = [_column(name).cast("string") for name in names]
        for mark, code in (("%", "%25"), (":", "%3A")):
            parts = [F.replace(part, F.lit(mark), F.lit(code)) for part in parts]
        return F.concat(parts[0], *(F.concat(F.lit(":"), part) for part in parts[1:]))
    try:
        file = df.metadataColumn("_metadata")
        # Spark encodes some characters of paths, which would change their order; a plus stands for
        # itself.
        path = F.url_decode(F.replace(file["file_path"], F.lit("+"), F.lit("%2B")))
        key = F.struct(path.alias("file"), file["row_index"].alias("row"))
        _ = df.select(key).schema
    except AnalysisException as error:
        raise InputError(
            "The rows of this DataFrame have no order: it is not read from Parquet files, and "
            "id_column=None. Name a "
            "column of ids, in whose order documents are kept (id_column)."
        ) from error
    return key


def _refuse_repeated(light: DataFrame, id_column: ColumnNames) -> None:
    repeated = (
        light.groupBy("document", "against")
        .count()
        .filter((F.col("count") > 1) | F.isnull("document"))
        .first()
    )
    if repeated is not None:
        raise InputError(
            f"Ids in the column {id_column!r} must differ, and not be null: "
            f"{repeated['document']!r} is in "
            f"{repeated['count']:,} rows. Name another id_column."
        )


def _with_ids(outcome: Outcome, pairs: DataFrame, method: Method) -> DataFrame:
    """Return pairs with the ids of the documents."""
    right = outcome.documents.selectExpr("position as right", "document as id")
    role = F.when(F.col("against"), "against").otherwise("source").alias("kept_role")
    left = outcome.documents.select(
        F.col("position").alias("left"), F.col("document").alias("kept_id"), role
    )
    names = [measure.name for measure in method.measures]
    return (
        pairs.join(right, "right").join(left, "left").select("id", "kept_id", "kept_role", *names)
    )


def _kept(df: DataFrame, id_column: ColumnNames, removed: DataFrame, is_few: bool) -> DataFrame:
    """Return the rows that are not removed. Few ids of removed rows are broadcast, so that texts
    are not shuffled.
    """
    key = f"_neardup_{uuid4().hex}"  # a name that no column of the user has
    gone = removed.select(F.col("id").alias(key))
    gone = F.broadcast(gone) if is_few else gone
    return df.withColumn(key, _key(df, id_column)).join(gone, key, "left_anti").drop(key)
