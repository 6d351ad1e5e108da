"""Of several alike, can I keep the longest, or the newest, instead of the first?

`keep` sets the order in which documents pass the sieve. It changes which ones are kept, and a little how many.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

import neardup

DATA = Path(__file__).parent / "data"

with pa.input_stream(DATA / "terms-new.jsonl.zst", compression="zstd") as stream:
    terms = pj.read_json(stream)
# max:COLUMN and min:COLUMN need numbers: the date as one.
dates = pc.strftime(terms["date"], "%Y-%m-%d") if pa.types.is_timestamp(terms["date"].type) else terms["date"]
day = pc.cast(pc.replace_substring(dates, "-", ""), pa.int64())
terms = terms.append_column("day", day)

for keep in ("first", "longest", "max:day"):
    kept = neardup.dedup(terms, keep=keep).kept
    length = pc.mean(pc.utf8_length(kept["text"])).as_py()
    recent = pc.sum(pc.greater_equal(kept["day"], 20250101)).as_py()
    print(f"{keep:8}  {kept.num_rows} kept, {length:,.0f} characters on average, {recent} from 2025 or later")
