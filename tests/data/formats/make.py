"""Make the files of this folder by the tools that write each format: sqlite3, jq, zstd, Spark's
parquet-mr, FastWARC and datasets. Each has the same texts.

    python tests/data/formats/make.py     # in the root of the repository
"""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
ROWS = [
    {"id": "a", "text": 'He said: "one two three four", and left'},
    {"id": "b", "text": "five six seven eight nine ten"},
    {"id": "c", "text": '"Eleven twelve thirteen fourteen'},
    {"id": "d", "text": "Five six seven; eight nine ten!"},
]
LINES = "".join(f"{json.dumps(row)}\n" for row in ROWS).encode()


def run(*command: str, data: bytes = b"") -> bytes:
    return subprocess.run(command, input=data, capture_output=True, check=True).stdout


def write(name: str, data: bytes) -> None:
    (FOLDER / name).write_bytes(data)


def tsv_of_sqlite() -> None:
    values = ", ".join(f"('{row['id']}', '{row['text']}')" for row in ROWS)
    statements = f"create table t (id, text); insert into t values {values}; select * from t;"
    write("sqlite.tsv", run("sqlite3", "-header", "-separator", "\t", ":memory:", statements))


def sequence_of_jq() -> None:
    # With --seq, jq reads nothing else but sequences.
    write("jq-seq.json", run("jq", "--seq", "-n", "-c", f"{json.dumps(ROWS)}[]"))
    write("jq-pretty.json", run("jq", ".", data=LINES))


def window_of_zstd() -> None:
    # From a pipe, zstd does not know the length, and declares the whole window.
    write("long-31.jsonl.zst", run("zstd", "--long=31", "--ultra", "-c", data=LINES))


def archives() -> None:
    """Write a WET file by FastWARC, and pages with a dictionary, trained and used by zstd."""
    from fastwarc import GzipWriter, WarcRecordType

    written = io.BytesIO()
    for row in ROWS:
        # `finish` ends the gzip member of a record.
        member = GzipWriter(written)
        _record(WarcRecordType.conversion, row, "text/plain", row["text"].encode()).write(member)
        member.finish()
    write("fastwarc.warc.wet.gz", written.getvalue())

    pages = []
    for row in ROWS:
        header = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
        html = f"<html><title>{row['id']}</title><p>{row['text']}</html>"
        page = io.BytesIO()
        kind = "application/http; msgtype=response"
        _record(WarcRecordType.response, row, kind, (header + html).encode()).write(page)
        pages.append(page.getvalue())
    write("zstd-dictionary.warc.zst", _with_dictionary(pages))


def _record(kind: Any, row: dict[str, str], content_type: str, block: bytes) -> Any:
    from fastwarc import WarcRecord

    record = WarcRecord()
    record.set_bytes_content(block)
    record.init_headers(
        kind, record_urn=b"uuid:00000000-0000-0000-0000-00000000000" + row["id"].encode()
    )
    record.headers["WARC-Date"] = "2026-01-02T03:04:05Z"
    record.headers["WARC-Target-URI"] = f"http://{row['id']}.test/"
    record.headers["Content-Type"] = content_type
    return record


def _with_dictionary(records: list[bytes]) -> bytes:
    """Return records as the IIPC draft has them: the dictionary, compressed, in a skippable frame,
    and a frame for each record.
    """
    with tempfile.TemporaryDirectory() as folder:
        samples = []
        for number, record in enumerate(records * 5):  # zstd trains with some more samples
            samples.append(f"{folder}/{number}")
            Path(samples[-1]).write_bytes(record + b"%d" % number)
        dictionary = f"{folder}/dictionary"
        run("zstd", "--train", *samples, "--maxdict=512", "-o", dictionary)
        compressed = run("zstd", "-c", dictionary)
        frames = [run("zstd", "-c", "-D", dictionary, data=record) for record in records]
    head = b"\x5d\x2a\x4d\x18" + len(compressed).to_bytes(4, "little")
    return head + compressed + b"".join(frames)


def parquet_of_spark() -> None:
    """Write Parquet with the LZ4 of Hadoop."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    with tempfile.TemporaryDirectory() as folder:
        frame = spark.getOrCreate().createDataFrame(ROWS).coalesce(1)
        frame.write.mode("overwrite").option("compression", "lz4").parquet(folder)
        (written,) = Path(folder).glob("*.parquet")
        shutil.copy(written, FOLDER / "spark-lz4.parquet")


def folder_of_datasets() -> None:
    from datasets import Dataset

    shutil.rmtree(FOLDER / "saved", ignore_errors=True)
    Dataset.from_list(ROWS).save_to_disk(FOLDER / "saved")


def chats_of_datasets() -> None:
    """Write chats as they are shared for training: OpenAI's messages, and ShareGPT's."""
    from datasets import Dataset

    asked = "What should I take on a walk of two days in the hills, in autumn?"
    answer = "Take a warm coat, food for three days, water and a map; tell a friend where you go."
    system = {"role": "system", "content": "You are a helpful assistant."}
    question = {"role": "user", "content": asked}
    chats = [
        {"id": "a", "messages": [system, question, {"role": "assistant", "content": answer}]},
        {"id": "b", "messages": [system, question, {"role": "assistant", "content": "A map."}]},
        {"id": "c", "messages": [question, {"role": "assistant", "content": answer}]},
        {"id": "d", "messages": [{"role": "user", "content": "Nothing else?"}]},
        {"id": "e", "messages": [{"role": "assistant", "content": None}]},
        {"id": "f", "messages": []},
        {"id": "g", "messages": None},
    ]
    names = {"system": "system", "user": "human", "assistant": "gpt"}
    shared = [
        {
            "id": chat["id"],
            "conversations": chat["messages"]
            and [
                {"from": names[turn["role"]], "value": turn["content"]} for turn in chat["messages"]
            ],
        }
        for chat in chats
    ]
    Dataset.from_list(chats).to_parquet(FOLDER / "chats.parquet")
    Dataset.from_list(chats).to_json(FOLDER / "chats.jsonl", force_ascii=False)
    shutil.rmtree(FOLDER / "saved-chats", ignore_errors=True)
    Dataset.from_list(chats).save_to_disk(FOLDER / "saved-chats")
    Dataset.from_list(shared).to_parquet(FOLDER / "sharegpt.parquet")
    Dataset.from_list(shared).to_json(FOLDER / "sharegpt.jsonl", force_ascii=False)


if __name__ == "__main__":
    chats_of_datasets()
    tsv_of_sqlite()
    sequence_of_jq()
    window_of_zstd()
    archives()
    folder_of_datasets()
    parquet_of_spark()
