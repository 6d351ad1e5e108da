"""Can I pass a polars, pandas or duckdb table, and use the result in the same library?

Any table with Arrow's PyCapsule interface is accepted; `kept` is a pyarrow table, which all of them
can read.
"""

from pathlib import Path

import duckdb
import pandas as pd
import polars as pl

import neardup

DATA = Path(__file__).parent / "data"
FILE = DATA / "licenses.parquet"

frame = pl.read_parquet(FILE)
kept = pl.from_arrow(neardup.dedup(frame).kept)
print("polars:", frame.shape, "->", kept.shape)

table = pd.read_parquet(FILE)
kept = neardup.dedup(table).kept.to_pandas()
print("pandas:", table.shape, "->", kept.shape)

relation = duckdb.sql(f"SELECT * FROM '{FILE}' WHERE kind = 'text'")
kept = neardup.dedup(relation).kept  # duckdb finds Arrow tables by the name of the variable
print("duckdb:", duckdb.sql("SELECT count(*), count(DISTINCT license) FROM kept").fetchall())
