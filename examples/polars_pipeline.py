"""How do I drop, mark or count near-duplicates in polars, also over files larger than memory?"""

import tempfile
from pathlib import Path

import polars as pl

import neardup

FILE = Path(__file__).parent / "data" / "licenses.parquet"

# In memory: `mask` has a bool per row, so polars can filter the frame.
frame = pl.read_parquet(FILE)
result = neardup.dedup(frame, threshold=0.8)
kept = frame.filter(pl.Series(result.mask))
print(f"{frame.height} rows, {kept.height} kept")

# Keep all rows, and add the id of the kept document to each removed one.
removed = pl.from_arrow(result.removed).select("row", "kept_id", "similarity")
marked = (
    frame.with_row_index("row")
    .with_columns(pl.col("row").cast(pl.Int64))
    .join(removed, on="row", how="left")
)
print(marked.filter(pl.col("kept_id").is_not_null()).select("id", "kept_id", "similarity").head(3))

# Count removed rows by a column of the frame.
print(
    marked.group_by("kind").agg(pl.len(), pl.col("kept_id").count().alias("removed")).sort("kind")
)

# Larger than memory: neardup reads the files itself and writes mask.parquet; polars streams over
# both.
with tempfile.TemporaryDirectory() as folder:
    output = Path(folder) / "out"
    neardup.dedup(FILE, threshold=0.8, output=output, write="mask", tables=False)
    mask = pl.scan_parquet(output / "mask.parquet").select("kept")
    lazy = pl.concat([pl.scan_parquet(FILE), mask], how="horizontal").filter("kept").drop("kept")
    lazy.sink_parquet(Path(folder) / "clean.parquet")
    print(
        pl.scan_parquet(Path(folder) / "clean.parquet").select(pl.len()).collect().item(),
        "rows in clean.parquet",
    )
