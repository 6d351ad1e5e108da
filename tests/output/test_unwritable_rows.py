"""Rows that cannot be written as they were read are refused before a run begins, or written in the
nearest way.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup
from neardup.errors import OutputError
from neardup.formats import parquet_footer

TEXTS = ["one two three four five six", "one two three four five six", "seven eight nine ten"]
CODEC = (4, 1, 3, 4)  # the field of parquet.thrift: row groups, columns, metadata, codec
HADOOP_LZ4 = 5
LZ4_RAW = 7


def with_codec(data: bytes, codec: int) -> bytes:
    """Return a Parquet file whose footer names another codec. Arrow reads pages of LZ4_RAW as those
    of Hadoop, too.
    """
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = bytearray(data[end:-8])
    fields = parquet_footer.FooterReader(bytes(footer)).read().fields
    codecs = [field for field in fields if field.path == CODEC]
    assert codecs
    for field in codecs:
        assert footer[field.start : field.stop] == bytes([2 * LZ4_RAW])
        footer[field.start] = 2 * codec
    return data[:end] + bytes(footer) + data[-8:]


@pytest.mark.parametrize("codec", [HADOOP_LZ4, LZ4_RAW])
@pytest.mark.parametrize("threads", [1, 3])
def test_parquet_of_the_deprecated_lz4_is_written_as_lz4_raw(
    tmp_path: Path, codec: int, threads: int
) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"id": ["a", "b", "c"], "text": TEXTS}), path, compression="lz4")
    path.write_bytes(with_codec(path.read_bytes(), codec))
    shown = pq.read_metadata(path).row_group(0).column(0).compression
    assert (shown == "UNKNOWN") == (codec == HADOOP_LZ4)
    for command in (neardup.dedup, neardup.remove_passages):
        command(path, output=tmp_path / "out", overwrite=True, threads=threads)
        kept = pq.ParquetFile(tmp_path / "out" / "kept" / "in.parquet")
        assert kept.metadata.row_group(0).column(1).compression == "LZ4"
        assert kept.read()["id"].to_pylist()[0] == "a"


UNWRITABLE = pa.table({"text": TEXTS}).append_column(
    "since", pa.array([(1, 2, 3)] * 3, pa.month_day_nano_interval())
)


@pytest.mark.parametrize("command", [neardup.dedup, neardup.remove_passages])
def test_a_table_that_parquet_cannot_hold_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch, command
) -> None:
    def read(*_: object, **__: object) -> None:
        raise AssertionError("the table is read")

    with monkeypatch.context() as patch:
        patch.setattr("neardup.formats.tables.TablePart.read", read)
        with pytest.raises(
            OutputError,
            match=r"The rows of source cannot be written: .*interval.*Convert the column",
        ):
            command(UNWRITABLE, output=tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
    assert (
        neardup.dedup(UNWRITABLE, output=tmp_path / "out", write="ids").report["counts"]["kept"]
        == 2
    )
    assert neardup.dedup(UNWRITABLE).kept.num_rows == 2
