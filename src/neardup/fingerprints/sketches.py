"""Base of signatures and fingerprints: rows of one scheme with ids, as arrays, tables and files."""

from __future__ import annotations

import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neardup.arrays import Array, Bytes, Floats, Ints, Mask, arrow_file, arrow_of
from neardup.errors import ColumnError, InputError, OutputError, SchemeError
from neardup.files import AnyPath, AtomicFile, JsonObject, writing_to
from neardup.settings.constraints import assignments, check_flag, check_kind, check_path

if TYPE_CHECKING:
    from typing_extensions import Self

SCHEME_KEY = b"neardup.scheme"
INDEX_KEY = b"neardup.index"
UNKNOWN = "unknown"  # the name of the scheme if none is recorded
_BATCH_ROWS = 1 << 16

Scheme: TypeAlias = Mapping[str, Any]
"""A name, a version and settings. Only sketches of equal schemes are compared."""

Index = int | slice | Sequence[int] | Array
Ids: TypeAlias = Sequence[Any] | pa.Array | pa.ChunkedArray

# The end of a sealed file. The digest is of the metadata, their length and the magic number:
#
#     pages | _SEAL | digest | metadata | length | "PAR1"
#             16      16       length     4        4        bytes
_SEAL = b"neardup.metadata"
_DIGEST_BYTES = 16
_TAIL_BYTES = 4 + 4


class Rows(NamedTuple):
    """The rows of a table.

    ids : Arrow array (n,). data : uint8 (n, num_bytes). empty : bool (n,), rows without features.
    """

    ids: pa.Array
    data: Bytes
    empty: Mask


def make_table(column: str, rows: Rows, scheme: Scheme, *, with_hex: bool = False) -> pa.Table:
    """Return a table of `id` and a column of fixed-size binary, with the scheme in its metadata.

    Parameters
    ----------
    column : the name of the column of bytes, which is null for an empty row.
    with_hex : adds a column `hex`, the bytes as hexadecimal digits.
    """
    binary = pa.binary(rows.data.shape[1])
    validity = None
    if rows.empty.any():
        # Arrow's bitmap: a bit for each row, the lowest first, set unless the row is null.
        validity = pa.py_buffer(np.packbits(~rows.empty, bitorder="little"))
    buffers = [validity, pa.py_buffer(np.ascontiguousarray(rows.data))]
    cells = pa.FixedSizeBinaryArray.from_buffers(binary, len(rows.ids), buffers)
    columns = {"id": rows.ids, column: cells}
    if with_hex:
        digits = [None if value is None else value.hex() for value in cells.to_pylist()]
        columns["hex"] = pa.array(digits, "string")
    return pa.table(columns, metadata={SCHEME_KEY: json.dumps(dict(scheme)).encode()})


def read_rows(table: pa.Table, column: str, name: str) -> Rows:
    """Return the rows of a table with a column of fixed-size binary.

    Without a column `id`, ids are row numbers as text.

    Raises
    ------
    ColumnError
        If there is no such column, or the id of a row that is not empty is null.
    """
    data, empty = read_cells(table, column, name)
    return Rows(read_ids(table, empty, name), data, empty)


def read_cells(table: pa.Table, column: str, name: str) -> tuple[Bytes, Mask]:
    """Return the bytes of a column of fixed-size binary, uint8 (n, num_bytes), and its nulls.

    Raises ColumnError if there is no such column.
    """
    index = table.schema.get_field_index(column)  # -1 for a missing column, or several
    kind = table.schema.field(index).type if index >= 0 else None
    if kind is None or not pa.types.is_fixed_size_binary(kind):
        raise ColumnError(
            f"{name} has no column {column!r} of fixed-size binary: it has "
            f"{list_columns(table.schema)}. Create one with neardup.sign (neardup sign)."
        )
    cells = one_chunk(table[column])
    empty = cells.is_null().to_numpy(zero_copy_only=False)
    width = kind.byte_width
    data = np.frombuffer(cells.buffers()[1] or b"", np.uint8)
    start = width * cells.offset  # a slice shares the buffer of the whole array
    stop = start + width * len(cells)
    return data[start:stop].reshape(len(cells), width), empty


def read_ids(table: pa.Table, empty: Mask, name: str) -> pa.Array:
    """Return the column `id` of a table as int64 or text, or row numbers as text.

    Raises ColumnError as `read_rows` does.
    """
    if "id" not in table.schema.names:
        return _number_ids(np.arange(table.num_rows))
    ids = large_ids(table["id"])
    if ids.null_count and (ids.is_null().to_numpy(zero_copy_only=False) & ~empty).any():
        raise ColumnError(f"{name} has a null in the column 'id'. Give every row an id.")
    try:
        return ids.cast("int64" if pa.types.is_integer(ids.type) else "large_string")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ColumnError(
            f"{name} has ids that are neither text nor int64: {error}. Convert the column 'id'."
        ) from error


def large_ids(ids: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return ids as one array: integers, or large_string.

    The offsets of `string` end at 2 GiB, which 27 million URLs exceed.
    """
    return one_chunk(ids.cast("large_string") if pa.types.is_string(ids.type) else ids)


def _in_arrow(ids: Ids) -> pa.Array | pa.ChunkedArray:
    """Return ids as an Arrow column. Raises InputError if they cannot be ids."""
    if isinstance(ids, (pa.Array, pa.ChunkedArray)):
        return ids
    # The characters of a string are no ids.
    kinds = () if isinstance(ids, (str, bytes)) else Iterable
    check_kind("ids", ids, kinds, "a list or an Arrow column")
    try:
        return pa.array(ids)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise InputError(
            f"ids must be all strings, or all integers: {error}. Change ids."
        ) from error


def read_json(schema: pa.Schema, key: bytes) -> tuple[JsonObject | None, str]:
    """Return the JSON object under a key of the metadata, or None, and the first bytes of its text
    for errors.
    """
    text = (schema.metadata or {}).get(key, b"nothing")
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    return value if isinstance(value, dict) else None, text[:200].decode(errors="replace")


def read_table(path: AnyPath) -> pa.Table:
    """Return the rows of a Parquet file, or raise InputError."""
    with _readable(path):
        return _open(path).read()


def read_batches(path: AnyPath, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """Yield the rows of a Parquet file, some 65,000 at a time; at least one table.

    Raises InputError if the file cannot be read. columns : the columns to read; None for all, with
    row numbers as `id` if the file has no such column.
    """
    with _readable(path):
        file = _open(path)
        empty = file.schema_arrow.empty_table()
        is_numbered = columns is None and "id" not in empty.schema.names
        first = 0
        batches = file.iter_batches(_BATCH_ROWS, columns=columns)
        tables = (pa.Table.from_batches([batch]) for batch in batches)
        for table in chain([empty], tables):
            chosen = table if columns is None else table.select(columns)
            rows = np.arange(first, first + chosen.num_rows)
            first += len(rows)
            yield chosen.append_column("id", _number_ids(rows)) if is_numbered else chosen


def _number_ids(rows: Ints) -> pa.Array:
    """Return row numbers as text."""
    return arrow_of(rows).cast("large_string")


def _open(path: AnyPath) -> pq.ParquetFile:
    """Open a Parquet file whose pages have checksums. Raises OSError if its metadata changed."""
    metadata, seal = _metadata_of(Path(check_path("path", path)))
    if seal.startswith(_SEAL) and seal != _seal(metadata):
        raise OSError(
            "its metadata are damaged. Restore the file from a backup, or create it again"
        )
    # A pre-buffer would hold all columns in memory until the end.
    file = arrow_file(path)
    return pq.ParquetFile(file, pre_buffer=False, page_checksum_verification=True)


def _metadata_of(path: Path) -> tuple[bytes, bytes]:
    """Return the metadata at the end of a Parquet file, and the bytes of a seal before them.

    The metadata include their length and the magic number, 4 bytes each.
    """
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL_BYTES))
        declared = int.from_bytes(file.read(4), "little")
        length = min(size, declared + _TAIL_BYTES)  # a damaged length may be greater than the file
        file.seek(max(0, size - length - len(_SEAL) - _DIGEST_BYTES))
        data = file.read()
    return data[-length:], data[:-length]


def _seal(metadata: bytes) -> bytes:
    """Return the seal of metadata."""
    return _SEAL + hashlib.blake2b(metadata, digest_size=_DIGEST_BYTES).digest()


def write_tables(path: AnyPath, tables: Iterable[pa.Table], overwrite: bool) -> None:
    """Write tables of one schema, at least one, to a Parquet file that appears when it is complete.

    Raises
    ------
    OutputError
        If the file exists and `overwrite` is false, or cannot be written.
    """
    target = Path(check_path("path", path, OutputError))
    may_replace = check_flag("overwrite", overwrite)
    with writing_to(target):  # raises if the name is too long for a file
        exists = target.exists()
    if exists and not may_replace:
        raise OutputError(
            f"The output {target} already exists. Use another file, or pass overwrite=True."
        )
    rows = iter(tables)
    first = next(rows)
    # Hashes are random bits, which do not compress.
    codecs = {name: "zstd" if name == "id" else "none" for name in first.schema.names}
    options = {"compression": codecs, "use_dictionary": ["id"], "write_page_checksum": True}
    with AtomicFile(target) as partial:
        with (
            arrow_file(partial, "wb") as file,
            pq.ParquetWriter(file, first.schema, **options) as writer,
        ):
            for table in chain([first], rows):
                writer.write_table(table)
        _add_seal(partial)


def _add_seal(path: Path) -> None:
    """Insert a digest of the metadata of a Parquet file before them.

    Parquet has checksums for its pages only. Readers ignore bytes between pages and metadata.
    """
    metadata, _ = _metadata_of(path)
    with open(path, "r+b") as file:
        file.seek(-len(metadata), os.SEEK_END)
        file.write(_seal(metadata) + metadata)


def require_same(
    first: Scheme, second: Scheme, first_name: str, second_name: str, *, kind: str = "Fingerprints"
) -> None:
    """Raise SchemeError unless two schemes are equal. kind : the plural noun of the sketches."""
    different = sorted(name for name in {*first, *second} if first.get(name) != second.get(name))
    if different:
        raise SchemeError(
            f"{kind} of different schemes cannot be compared: {first_name} has "
            f"{assignments(first, different)}; {second_name} has "
            f"{assignments(second, different)}. Create both with the same settings."
        )


def list_columns(schema: pa.Schema) -> str:
    """Return names and types of the columns, for errors."""
    return ", ".join(f"{field.name} ({field.type})" for field in schema)


def one_chunk(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return a column as one chunk. `combine_chunks` copies even a single chunk."""
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


@contextmanager
def _readable(path: AnyPath) -> Iterator[None]:
    """Raise the errors of reading a Parquet file as InputError."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise InputError(
            f"{os.fspath(path)} cannot be read as Parquet: {error}. Pass a file of signatures or "
            "fingerprints."
        ) from error


class Sketches(ABC):
    """Base of Signatures, PackedSignatures and Fingerprints: a row of a fixed size per document.

    `sketches[rows]` returns some of the rows: an integer, a slice, integers or a mask.

    Parameters
    ----------
    values : array (num_rows, ...).
    scheme : the scheme of all rows, as values for JSON. Only rows of equal schemes are comparable.
    ids : the ids of the rows; row numbers, as text, when None.
    empty : bool array, the rows of documents without features; no row when None.
    """

    column: ClassVar[str]
    kind: ClassVar[str]
    dtype: ClassVar[type]
    size: ClassVar[tuple[str, int]]
    """The name of the length of a row in a scheme, and the length of one value of a row."""
    values: Array
    scheme: Scheme
    report: JsonObject | None = None
    _path: AnyPath  # the file of rows that `_open_later` has not read

    def __init__(
        self, values: Array, scheme: Scheme, ids: pa.Array | None = None, empty: Mask | None = None
    ) -> None:
        self.values = values
        self.scheme = scheme
        self._empty = empty
        self._ids = None if ids is None else large_ids(ids)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.values)

    def __getitem__(self, rows: Index) -> Self:
        """Return some of the rows; an integer gives an object of one row."""
        count = len(self)
        if isinstance(rows, (int, np.integer)):
            # A range counts negative indices from the end, and raises IndexError beyond it.
            chosen = np.array([range(count)[rows]])
        elif isinstance(rows, slice):
            chosen = np.arange(*rows.indices(count))
        else:
            # NumPy takes a tuple for the indices of several dimensions.
            chosen = np.arange(count)[list(rows) if isinstance(rows, tuple) else rows]
        ids = _number_ids(chosen) if self._ids is None else self._ids.take(arrow_of(chosen))
        empty = None if self._empty is None else self._empty[chosen]
        return type(self)(self.values[chosen], self.scheme, ids, empty)

    def __repr__(self) -> str:
        """Return the number of rows and the name of the scheme."""
        return f"{type(self).__name__}({len(self):,} rows, scheme={self.scheme.get('name')!r})"

    def __getattr__(self, name: str) -> Any:
        """Read the rows of `_open_later` when they are first used.

        Python calls this method only for a missing attribute: rows in memory are as fast as ever.
        """
        if name in ("values", "_ids", "_empty") and "_path" in self.__dict__:
            self.__dict__.update(vars(type(self).open(self._path)))
            return self.__dict__[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def ids(self) -> pa.Array:
        """The ids of the rows: Arrow array of strings or int64."""
        return _number_ids(np.arange(len(self))) if self._ids is None else self._ids

    @property
    def empty(self) -> Mask:
        """The rows of documents without features: bool array of shape (num_rows,)."""
        return np.zeros(len(self), np.bool_) if self._empty is None else self._empty

    @abstractmethod
    def similarity(self, other: Self) -> Floats:
        """Estimate similarities row by row, or of one row with many."""

    def to_table(self, ids: Ids | None = None, *, with_hex: bool = False) -> pa.Table:
        """Return an Arrow table of `id` and the bytes of each row, with the scheme as metadata.

        The bytes of an empty row are null.

        Parameters
        ----------
        ids : an id for each row, instead of the attribute `ids`.
        with_hex : adds a column `hex`, the bytes as hexadecimal digits.

        Returns
        -------
        Table; the column `signature` is fixed-size binary, the hashes as little-endian uint32;
        `fingerprint` is the digits of the integer, the most significant byte first.

        Raises
        ------
        InputError
            If there is not one valid id for each row.
        """
        with_hex = check_flag("with_hex", with_hex)
        row_ids = self.ids if ids is None else large_ids(_in_arrow(ids))
        if len(row_ids) != len(self):
            raise InputError(
                f"There are {len(self):,} {self.kind.lower()}: got {len(row_ids):,} ids. Pass one "
                "id for each."
            )
        table = self._table_of(row_ids, with_hex=with_hex)
        read_ids(table, self.empty, "the table")  # raises for ids that cannot be read again
        return table

    def _table_of(self, ids: pa.Array, *, with_hex: bool) -> pa.Table:
        """Return the table of `to_table`, also with ids that cannot be read again."""
        rows = Rows(ids=ids, data=self._to_bytes(), empty=self.empty)
        return make_table(self.column, rows, self.scheme, with_hex=with_hex)

    @classmethod
    def from_table(cls, table: pa.Table) -> Self:
        """Return the rows of a table from `to_table`; errors as for `open`."""
        check_kind("table", table, pa.Table, "an Arrow table")
        return cls._from_table(table, "the table")

    def save(self, path: AnyPath, ids: Ids | None = None, *, overwrite: bool = False) -> None:
        """Write the table of `to_table` to a Parquet file, which appears when it is complete.

        Raises
        ------
        OutputError
            If the file exists and `overwrite` is false, or cannot be written.
        """
        write_tables(path, [self.to_table(ids)], overwrite)

    @classmethod
    def open(cls, path: AnyPath) -> Self:
        """Read a file that `save`, `sign` or an index wrote.

        Raises
        ------
        InputError
            If the file cannot be read, has no scheme, or has a scheme of rows of another length or
            kind.
        ColumnError
            If it has no column of bytes.
        """
        return cls._from_table(read_table(path), os.fspath(path))

    @classmethod
    def _open_later(cls, path: AnyPath, scheme: Scheme) -> Self:
        """Return the rows of a file of this scheme, read when they are first used."""
        sketches = cls.__new__(cls)
        sketches.scheme = scheme
        sketches._path = path
        return sketches

    @abstractmethod
    def _to_bytes(self) -> Bytes:
        """Return the bytes of each row, uint8 (num_rows, num_bytes)."""

    @classmethod
    @abstractmethod
    def _from_table(cls, table: pa.Table, name: str) -> Self:
        """Return the rows of a table. name : the name of the table in errors."""

    def _actual_scheme(self) -> JsonObject:
        """Return the scheme that rows are compared by."""
        return dict(self.scheme)

    def _num_paired(self, other: Self) -> int:
        """Return the number of compared pairs of rows, or raise as `similarity` does."""
        check_kind("other", other, Sketches, self.kind)
        require_same(
            self._actual_scheme(), other._actual_scheme(), "the first", "the second", kind=self.kind
        )
        if len(self) != len(other) and 1 not in (len(self), len(other)):
            raise InputError(
                f"{self.kind} compare row by row, or one row with many: got {len(self):,} rows and "
                f"{len(other):,}. Pass equal numbers of rows, or a single row: "
                f"{self.kind.lower()}[0]."
            )
        return len(self) if len(other) == 1 else len(other)
