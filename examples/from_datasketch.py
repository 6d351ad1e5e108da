"""Can I run a program written for datasketch, and use its stored signatures, with neardup?"""

from pathlib import Path

import pyarrow.parquet as pq

from neardup.compat.datasketch import LeanMinHash, MinHash, MinHashLSH, v1

# from datasketch import LeanMinHash, MinHash, MinHashLSH    <- replaced by the line above

DATA = Path(__file__).parent / "data"


def shingles(text):
    words = text.lower().split()
    return [" ".join(words[i : i + 5]).encode() for i in range(max(len(words) - 4, 1))]


table = pq.read_table(DATA / "licenses.parquet", columns=["id", "text"]).slice(0, 120)
ids = table["id"].to_pylist()
signatures = dict(
    zip(ids, MinHash.bulk(map(shingles, table["text"].to_pylist()), num_perm=128), strict=True)
)

index = MinHashLSH(threshold=0.8, num_perm=128)
with index.insertion_session() as session:
    for name, signature in signatures.items():
        session.insert(name, signature)
print(f"{index.b} bands of {index.r} rows, as datasketch chooses them for 0.8")

pairs = {
    tuple(sorted((name, other)))
    for name in ids
    for other in index.query(signatures[name])
    if other != name
}
print(f"{len(pairs)} pairs share a band; those with the lowest estimates:")
for estimate, left, right in sorted((signatures[a].jaccard(signatures[b]), a, b) for a, b in pairs)[
    :3
]:
    print(f"  {estimate:.2f}  {left}  {right}")

# Serialised bytes are compatible in both directions. These were written by datasketch 1.10:
# "Hello", 4 permutations.
stored = bytes.fromhex("010000000000000004000000038ccc2bae3e4439b95e721579696d14")
old = LeanMinHash.deserialize(stored, "<")
print(f"read: scheme {old.scheme!r}, {len(old)} values")

# A program for datasketch 1.x imports from v1, whose signatures use the old scheme by default.
new = v1.MinHash(num_perm=4)
new.update(b"Hello")
print(f"the same set, signed now: Jaccard similarity {new.jaccard(old)}")
