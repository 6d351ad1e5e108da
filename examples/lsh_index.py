"""What is each new text like, of all that came before it?

Signatures come one after the other; the index takes what is new, and says of the rest what it is like.
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


old, new = read("terms-old.jsonl.zst"), read("terms-new.jsonl.zst")
index = neardup.LSHIndex(threshold=0.7)
index.add_many(list(old), neardup.sign(list(old.values())))
print(index)

found = {}
for name, text in new.items():  # as they arrive
    alike = index.add_if_new(name, neardup.sign([text]))
    if alike:
        found[name] = alike[0]

print(f"{len(found)} of {len(new)} are like an earlier one; {len(index)} are in the index now")
for name, (earlier, similarity) in list(found.items())[:5]:
    print(f"  {name} is about {similarity:.0%} of {earlier}")
