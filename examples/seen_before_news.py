"""Texts arrive continuously: was this one, or a similar one, seen before?

An index in a folder stores all earlier texts; every document is on disk when its answer is
returned.
"""

import json
import tempfile
from datetime import timedelta
from pathlib import Path

import pyarrow as pa

import neardup

DATA = Path(__file__).parent / "data"


def read(name: str) -> list[dict[str, str]]:
    with pa.CompressedInputStream(pa.OSFile(str(DATA / name)), "zstd") as stream:
        return [json.loads(line) for line in stream.read().splitlines()]


with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "news.index"

    # Last week's texts: many at once.
    with neardup.Index.create(path, threshold=0.7) as index:
        answers = index.add_many_if_new(DATA / "terms-old.jsonl.zst")
        print(f"{len(answers)} texts came last week, {len(index)} were kept")

    # Today's texts: one by one. The payload comes back with each answer about the document.
    with neardup.Index.open(path) as index:
        found = []
        for text in read("terms-new.jsonl.zst"):
            answer = index.add_if_new(
                text["text"], id=text["id"], payload=f"https://news.example.org/{text['id']}"
            )
            if not answer.kept:
                found.append(answer)
        print(
            f"{len(found)} texts of today were seen before; the index has {len(index)} different "
            "ones"
        )
        for answer in found[:3]:
            print(
                f"  {answer.id} is {answer.similarity:.1%} of {answer.kept_id}, first seen "
                f"{answer.first_seen:%A}"
            )

        # Send an interrupted stream again: each text gets the same answer, and nothing changes.
        again = index.add_if_new(text["text"], id=text["id"])
        print(f"Sent again: kept is {again.kept}, repeated is {again.repeated}")

        # Query without adding.
        for hit in index.query(text["text"], limit=2):
            print(f"  like {hit.id} ({hit.similarity:.1%}), {hit.payload}")

        print(f"Forgotten, as older than 30 days: {index.expire(older_than=timedelta(days=30))}")
        print(index.info()["promise"])
