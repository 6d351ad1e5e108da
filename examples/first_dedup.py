"""How do I remove the near-duplicates of a collection?"""

from pathlib import Path

import neardup

DATA = Path(__file__).parent / "data"

result = neardup.dedup(
    DATA / "licenses.parquet"
)  # duplicates share at least 0.8 of their word 5-grams
print(result)

print(
    f"\nKept, with all columns: {result.kept.num_rows} rows of "
    f"{', '.join(result.kept.column_names)}."
)

print("\nThe removed documents nearest to the threshold, each with the kept one that removed it:")
for row in result.removed.sort_by("similarity").slice(0, 5).to_pylist():
    print(f"  {row['similarity']:.3f}  {row['id']}  ->  {row['kept_id']}")

recall = result.report["recall"]
print(f"\nEstimated share of the duplicate pairs that was found: {recall['estimated']:.2%}")
