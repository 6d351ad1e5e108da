"""Which earlier text is each new text similar to?

Signatures arrive one by one. The index stores new ones, and returns the similar documents of the
others.
"""

import json
from pathlib import Path

import pyarrow as pa

import neardup

DATA = Path(__file__).parent / "data"


def read(name: str) -> dict[str, str]:
    with pa.CompressedInputStream(pa.OSFile(str(DATA / name)), "zstd") as stream:
        records = [json.loads(line) for line in stream.read().splitlines()]
    return {record["id"]: record["text"] for record in records}


old = read("terms-old.jsonl.zst")
new = read("terms-new.jsonl.zst")
index = neardup.LSHIndex(threshold=0.7)
index.add_many(list(old), neardup.sign(list(old.values())))
print(index)

found = {}
for name, text in new.items():  # as they arrive
    similar = index.add_if_new(name, neardup.sign([text]))
    if similar:
        found[name] = similar[0]

print(f"{len(found)} of {len(new)} are like an earlier one; {len(index)} are in the index now")
for name, (earlier, similarity) in list(found.items())[:5]:
    print(f"  {name} is about {similarity:.0%} of {earlier}")
