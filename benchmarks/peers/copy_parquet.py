"""The yardstick of a Parquet file: read it and write it again with pyarrow, in the same codec, or
only read it.

python copy_parquet.py INPUT OUTPUT_FOLDER [--only-read]
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow.parquet as pq

source, folder = sys.argv[1:3]
table = pq.read_table(source)
if "--only-read" not in sys.argv:
    Path(folder).mkdir(parents=True)
    codec = pq.read_metadata(source).row_group(0).column(0).compression
    pq.write_table(table, Path(folder) / "copy.parquet", compression=codec)
