"""Parquet files with encrypted columns, whose footer can be read: Arrow ends the process when it is
asked for the metadata of such a column.
"""

from __future__ import annotations

import base64
import io
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup
from neardup.arrays import arrow_file
from neardup.errors import IncompleteWarning
from neardup.formats.parquet_footer import FooterReader, has_encrypted_columns

encryption = pytest.importorskip("pyarrow.parquet.encryption", reason="Arrow without encryption")

TABLE = pa.table({"text": ["one two three", "four five six"], "secret": ["x", "y"]})


class Keys(encryption.KmsClient):
    """Keys that are wrapped in their names."""

    def wrap_key(self, key: bytes, name: str) -> bytes:
        return base64.b64encode(name.encode() + b":" + key)

    def unwrap_key(self, wrapped: bytes, name: str) -> bytes:
        return base64.b64decode(wrapped).removeprefix(name.encode() + b":")


@pytest.fixture
def encrypted(tmp_path: Path) -> Path:
    """Return a file with one encrypted column and a footer in plain text."""
    settings = encryption.EncryptionConfiguration(
        footer_key="footer",
        column_keys={"column": ["secret"]},
        plaintext_footer=True,
        cache_lifetime=timedelta(minutes=1),
    )
    factory = encryption.CryptoFactory(lambda _: Keys())
    keys = factory.file_encryption_properties(encryption.KmsConnectionConfig(), settings)
    path = tmp_path / "a.parquet"
    with pq.ParquetWriter(path, TABLE.schema, encryption_properties=keys) as writer:
        writer.write_table(TABLE)
    return path


@pytest.mark.parametrize("output", [False, True], ids=["in memory", "copied"])
def test_a_file_with_an_encrypted_column_is_named_though_its_text_is_plain(
    encrypted: Path, *, output: bool
) -> None:
    assert pq.read_table(encrypted, columns=["text"]).num_rows == 2
    folder = encrypted.parent / "out" if output else None
    with pytest.warns(IncompleteWarning, match="it has encrypted columns, and no key is used"):
        neardup.dedup(encrypted, output=folder)


def test_a_file_without_its_signature_is_named_too(encrypted: Path) -> None:
    # 28 bytes of signature follow the plain footer, and count as part of it.
    data = encrypted.read_bytes()
    size = int.from_bytes(data[-8:-4], "little") - 28
    encrypted.write_bytes(data[:-36] + size.to_bytes(4, "little") + b"PAR1")
    with pytest.warns(IncompleteWarning, match="encrypted columns"):
        neardup.dedup(encrypted)


def test_two_bytes_of_a_key_in_a_plain_file_mean_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["\x2c\x19 one two", "\x2c\x19"]}), path)
    with arrow_file(path) as file:
        assert b"\x2c\x19" in path.read_bytes()[-1000:]  # as the least text, in the footer
        assert not has_encrypted_columns(file)
    assert neardup.dedup(path).report["counts"]["read"] == 2


HUGE = b"\xff" * 8 + b"\x7f"
"""A number of 63 bits, seven a byte."""
LIST_OF_BOOLEANS = b"\x19\xf1"
KEY = b"\x2c\x19"
"""The two bytes that a column key begins with: the footer is read field by field."""


def with_field(content: bytes) -> bytes:
    """Return a Parquet file whose footer has one more field: a list of booleans, a byte for each.

    Arrow leaves out the field, which it does not know.
    """
    stream = io.BytesIO()
    pq.write_table(TABLE, stream)
    data = stream.getvalue()
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    head = b"\x09\x28\xf1" + bytes([len(content)])  # field 20 in zigzag, a list with a long count
    footer = data[end:-9] + head + content + b"\0"
    return data[:end] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def test_a_list_of_booleans_is_passed_over(tmp_path: Path) -> None:
    # Read as fields, the booleans would be a list of 2^63 others, which nothing ends.
    path = tmp_path / "a.parquet"
    path.write_bytes(with_field(LIST_OF_BOOLEANS + HUGE + KEY))
    assert pq.read_table(path).num_rows == 2
    assert neardup.dedup(path).report["counts"]["read"] == 2


@pytest.mark.parametrize(
    "footer",
    [
        LIST_OF_BOOLEANS + HUGE,
        b"\x19\xf3" + HUGE,  # a list of bytes
        b"\x19\xfb" + HUGE,  # a list of maps, which no footer has
        b"\x18" + HUGE,  # a text
        b"\x16" + b"\xff" * 100_000,  # a number without end
        b"\x1c" * 100_000,  # structs in structs
        b"",
    ],
)
def test_a_footer_that_does_not_end_is_refused(footer: bytes) -> None:
    with pytest.raises((IndexError, ValueError, RecursionError)):
        FooterReader(footer).read()
