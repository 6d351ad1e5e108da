"""How similar are sets, and how many distinct elements have they, from signatures of 2 kB?"""

import tempfile
from pathlib import Path

import neardup

baskets = {
    "mon": {"bread", "milk", "eggs", "butter", "jam", "tea"},
    "tue": {"bread", "milk", "eggs", "butter", "honey", "tea"},
    "wed": {"rice", "beans", "corn", "tea"},
}

# Sets of strings are used unchanged; a list of texts would be split into shingles.
signatures = neardup.sign(list(baskets.values()), method=neardup.MinHash(num_hashes=512))

print("Jaccard similarity to mon, estimated and exact:")
estimates = signatures[0].similarity(signatures)
for (day, basket), estimate in zip(baskets.items(), estimates, strict=True):
    exact = len(basket & baskets["mon"]) / len(basket | baskets["mon"])
    print(f"  {day}  {estimate:.2f}  {exact:.2f}")

week = signatures.union()
print(
    f"distinct things in the week: about {week.cardinality()[0]:.0f} of "
    f"{len(set().union(*baskets.values()))}"
)

# Weighted sets: their signatures estimate the weighted Jaccard similarity, sum(min) / sum(max).
weighted = [{"bread": 2, "milk": 6}, {"bread": 2, "milk": 3, "jam": 1}]
monday, tuesday = neardup.sign(weighted, method=neardup.MinHash(num_hashes=512))
print(f"weighted: {monday.similarity(tuesday)[0]:.2f}, exactly {(2 + 3) / (2 + 6 + 1):.2f}")

# Four bits per hash take an eighth of the space and are nearly as accurate.
packed = signatures.pack(4)
print(
    f"{signatures.values.nbytes} bytes, packed {packed.nbytes}: "
    f"{packed[0].similarity(packed).round(2)}"
)

with tempfile.TemporaryDirectory() as folder:
    signatures.save(Path(folder) / "baskets.parquet", ids=list(baskets))
    print(
        len(neardup.Signatures.open(Path(folder) / "baskets.parquet")), "signatures saved and read"
    )
