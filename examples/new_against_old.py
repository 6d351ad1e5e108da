"""Which new documents are not in my existing collection?

All documents of the old collection stay. New documents are removed if they are similar to an old or
an earlier new one.
"""

import tempfile
from pathlib import Path

import neardup

DATA = Path(__file__).parent / "data"

with tempfile.TemporaryDirectory() as folder:
    output = Path(folder) / "out"
    result = neardup.dedup(
        DATA / "terms-new.jsonl.zst", against=DATA / "terms-old.jsonl.zst", output=output
    )
    print(result)
    print("Written:", ", ".join(sorted(path.name for path in output.iterdir())))

kept_new = set(result.kept["id"].to_pylist())
seen_before = [row for row in result.removed.to_pylist() if row["kept_id"] not in kept_new]
print(
    f"{len(seen_before)} new documents resemble an old one, "
    f"{result.removed.num_rows - len(seen_before)} a new one."
)
for row in seen_before[:3]:
    print(f"  {row['id']} is {row['similarity']:.1%} of {row['kept_id']}")
