"""What is in the result, and how do I look at a whole cluster of near-duplicates?"""

from collections import Counter
from pathlib import Path

import neardup

DATA = Path(__file__).parent / "data"

result = neardup.dedup(DATA / "licenses.parquet", recall_sample=200)

# removed: a row for each removed document; `cluster` is the number of the kept document.
sizes = Counter(result.removed["cluster"].to_pylist())
cluster, size = sizes.most_common(1)[0]
members = [row for row in result.removed.to_pylist() if row["cluster"] == cluster]
print(f"The largest cluster: {members[0]['kept_id']} was kept, {size} others were removed.")
for row in members[:3]:
    print(
        f"  {row['similarity']:.2f}  {row['id']}  (row {row['row']} of "
        f"{Path(row['source_file']).name})"
    )

# pairs: every removed document with all kept ones that are similar enough, not only the most
# similar.
several = Counter(result.pairs["right_id"].to_pylist())
print(
    f"{sum(count > 1 for count in several.values())} documents resemble more than one kept "
    "document."
)

# report: the content of report.json, a dictionary. report_table: the same as an Arrow table.
report = result.report
print("Counts:", report["counts"])
print(
    "Seconds by stage:",
    {timing["stage"]: round(timing["seconds"], 2) for timing in report["timings"]},
)
sample = report["recall_sample"]
print(
    f"Recall sample: {sample['found']} of {sample['pairs']} pairs of {sample['documents']} "
    "documents were proposed."
)
