"""Have I seen this article before? Keep 64 bits of each article, and look up every new one."""

from pathlib import Path

import neardup

DATA = Path(__file__).parent / "data"

# Every word has weight 1: with counts, "the" and "of" would dominate in long texts.
method = neardup.SimHash(weights="one")

seen = neardup.sign(DATA / "terms-old.jsonl.zst", method=method)
index = neardup.HammingIndex(bits=64, max_distance=6)
index.add_many(seen.ids, seen)
print(f"{len(index)} texts seen; only their fingerprints are kept, {8 * len(index)} bytes")

arrived = neardup.sign(DATA / "terms-new.jsonl.zst", method=method)
found = {}
for row in index.query_many(arrived).to_pylist():  # nearest first
    found.setdefault(arrived.ids[row["query"]].as_py(), (row["id"], row["distance"]))

print(f"{len(found)} of {len(arrived)} that arrived were seen before, or nearly so:")
for name, (earlier, distance) in list(found.items())[:5]:
    print(f"  {name} is {distance} bits from {earlier}")
