"""Can I keep the longest or the newest of several near-duplicates, instead of the first?

`keep` sets the order in which documents are processed. It changes which documents are kept, and
slightly how many.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

import neardup

DATA = Path(__file__).parent / "data"

with pa.input_stream(DATA / "terms-new.jsonl.zst", compression="zstd") as stream:
    terms = pj.read_json(stream)

for keep in ("first", "longest", "max:date"):  # max: and min: take a column of numbers or dates
    kept = neardup.dedup(terms, keep=keep).kept
    length = pc.mean(pc.utf8_length(kept["text"])).as_py()
    recent = sum(str(date) >= "2025" for date in kept["date"].to_pylist())
    print(
        f"{keep:8}  {kept.num_rows} kept, {length:,.0f} characters on average, {recent} from 2025 "
        "or later"
    )
