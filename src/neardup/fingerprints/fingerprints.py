"""SimHash fingerprints of many documents, with their scheme."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neardup import kernels
from neardup.arrays import Bytes, Floats, Ints, Mask, Words, arrow_file
from neardup.errors import ColumnError, InputError
from neardup.files import AnyPath, JsonObject
from neardup.fingerprints.simhash import BITS, to_integers
from neardup.fingerprints.sketches import (
    SCHEME_KEY,
    UNKNOWN,
    Sketches,
    list_columns,
    one_chunk,
    read_cells,
    read_ids,
    read_json,
)


class Fingerprints(Sketches):
    """The SimHash fingerprints of documents, one row each.

    Only fingerprints of equal schemes can be compared. The bits of a document without features are
    zeros; it is similar to nothing. `[rows]` selects rows by an integer, a slice, integers or a
    mask.

    Attributes
    ----------
    values : uint64 array of shape (num_documents, num_words); bit i is bit i % 64 of word i // 64.
    scheme : name, version, bits and the definition of a feature, as values for JSON.
    ids : Arrow array, the id of each row.
    empty : bool array of shape (num_documents,), the documents without features.

    Examples
    --------
    >>> import neardup
    >>> texts = ["a cat sat on the mat", "a cat sat on the hat", ""]
    >>> fingerprints = neardup.sign(texts, method="simhash")
    >>> fingerprints.values.shape, fingerprints.bits
    ((3, 1), 64)
    >>> fingerprints[0].distance(fingerprints[:2]).tolist()
    [0, 14]
    >>> fingerprints[0].similarity(fingerprints).round(2).tolist()
    [1.0, 0.78, 0.0]
    """

    column = "fingerprint"
    kind = "Fingerprints"
    dtype = np.uint64
    size = ("bits", 64)
    values: Words

    @property
    def bits(self) -> int:
        """The length of a fingerprint in bits."""
        return int(self.scheme["bits"])

    def distance(self, other: Fingerprints) -> Ints:
        """Return the Hamming distances of the fingerprints, row by row, or of one with many.

        Parameters
        ----------
        other : fingerprints of the same scheme: as many rows, or one row; any number of rows if
            `self` has one.

        Returns
        -------
        int64 array, the number of different bits; undefined for an empty document.

        Raises
        ------
        SchemeError
            If the schemes differ.
        InputError
            If the numbers of rows differ, and neither is 1.
        """
        distances = np.empty(self._num_paired(other), np.int64)
        shape = (len(distances), self.values.shape[1])
        # Contiguous copies, so that the kernel is compiled for one type of array.
        left = np.array(np.broadcast_to(self.values, shape), order="C")
        right = np.array(np.broadcast_to(other.values, shape), order="C")
        kernels.matches.row_distances(left, right, distances)
        return distances

    def similarity(self, other: Fingerprints) -> Floats:
        """Return the share of equal bits of the fingerprints, row by row, or of one with many.

        Parameters
        ----------
        other : as for `distance`, and errors too.

        Returns
        -------
        float64 array, 1 - distance / bits; 0 if a document is empty.

        Notes
        -----
        Charikar (2002), section 3: unbiased for 1 - angle / pi, the angle between the two vectors
        of feature weights; about 0.5 for unrelated documents.
        """
        distance = self.distance(other)
        return np.where(self.empty | other.empty, 0.0, 1.0 - distance / self.bits)

    def to_integers(self) -> list[int]:
        """Return each fingerprint as one integer, 0 for an empty document."""
        return to_integers(self.values)

    def _to_bytes(self) -> Bytes:
        # The highest word first, each big-endian: the bytes are the digits of the integer.
        digits = np.ascontiguousarray(self.values[:, ::-1]).astype(">u8").view(np.uint8)
        return digits[:, digits.shape[1] - self.bits // 8 :]

    @classmethod
    def _from_table(cls, table: pa.Table, name: str) -> Fingerprints:
        """Return the rows of a table.

        The default scheme is "unknown", and the default ids are row numbers.
        """
        scheme = read_scheme(table.schema, name)
        values, empty = read_values(table, name)
        return cls(values, scheme, read_ids(table, empty, name), empty)


def has_fingerprints(schema: pa.Schema) -> bool:
    """Return whether a table has a column `fingerprint` of 4, 8, 16 or 32 bytes, or of uint64."""
    index = schema.get_field_index("fingerprint")  # -1 for a missing column, or several
    return index >= 0 and _bits(schema.field(index).type) is not None


def is_fingerprint_file(path: AnyPath) -> bool:
    """Return whether a file is Parquet with a column of fingerprints.

    Raises
    ------
    InputError
        If it is a file of signatures, which only an index compares.
    """
    try:
        with arrow_file(path) as file:
            schema = pq.read_schema(file)
    except (OSError, pa.ArrowException):
        return False
    # A user's table may have a column of this name: the scheme shows that neardup wrote it.
    if "signature" in schema.names and SCHEME_KEY in (schema.metadata or {}):
        raise InputError(
            f"{os.fspath(path)} contains signatures, which only estimate similarities. Pass the "
            "documents, or fingerprints (neardup sign --method simhash); LSHIndex.open queries "
            "signatures of MinHash."
        )
    return has_fingerprints(schema)


def read_values(table: pa.Table, name: str) -> tuple[Words, Mask]:
    """Return the fingerprints of a table, uint64 (num_rows, num_words), and its empty rows."""
    column = table[Fingerprints.column]
    if pa.types.is_uint64(column.type):
        cells = one_chunk(column)
        empty = cells.is_null().to_numpy(zero_copy_only=False)
        integers = cells.fill_null(0).to_numpy(zero_copy_only=False)
        return np.array(integers, np.uint64).reshape(-1, 1), empty
    data, empty = read_cells(table, Fingerprints.column, name)
    # The digits of a row, padded on the left to whole words; the first word is the highest.
    num_bytes = data.shape[1]
    padded_bytes = -(-num_bytes // 8) * 8
    digits = np.zeros((len(data), padded_bytes), np.uint8)
    digits[:, padded_bytes - num_bytes :] = np.where(empty[:, None], np.uint8(0), data)
    lowest_first = digits.view(">u8")[:, ::-1]
    return np.ascontiguousarray(lowest_first).astype(np.uint64), empty


def read_scheme(schema: pa.Schema, name: str) -> JsonObject:
    """Return the scheme of a table of fingerprints; the default is the scheme "unknown".

    Raises
    ------
    ColumnError
        If the table has no column of fingerprints.
    InputError
        If the scheme is for fingerprints of another length.
    """
    if not has_fingerprints(schema):
        raise ColumnError(
            f"{name} has no column 'fingerprint' of {', '.join(str(bits // 8) for bits in BITS)} "
            f"bytes or of uint64: it has {list_columns(schema)}. Create one with neardup.sign "
            "(neardup sign)."
        )
    bits = _bits(schema.field("fingerprint").type)
    if SCHEME_KEY not in (schema.metadata or {}):
        return {"name": UNKNOWN, "bits": bits}
    scheme, text = read_json(schema, SCHEME_KEY)
    if scheme is None or scheme.get("bits") != bits:
        raise InputError(
            f"The scheme in the metadata of {name} is not that of fingerprints of {bits} bits: got "
            f"{text}. Create the file again with neardup sign."
        )
    return scheme


def _bits(kind: pa.DataType) -> int | None:
    """Return the number of bits of fingerprints in a column, None if its type has none."""
    if pa.types.is_uint64(kind):
        return 64
    bits = int(kind.byte_width * 8) if pa.types.is_fixed_size_binary(kind) else None
    return bits if bits in BITS else None
