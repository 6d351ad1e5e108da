"""Which passages do my documents repeat, and what is left without them?

Many of the licences in examples/data quote the same paragraphs. One copy of each stays.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

import neardup

LICENSES = Path(__file__).parent / "data" / "licenses.parquet"


def main() -> None:
    """Print the result, and the passages that occur most often."""
    result = neardup.remove_passages(LICENSES, min_length=200, cut_at="sentence")
    print(result)
    source = pq.read_table(LICENSES)
    texts = dict(zip(source["id"].to_pylist(), source["text"].to_pylist(), strict=True))
    shown: set[str] = set()
    for row in sorted(result.passages.to_pylist(), key=lambda row: -row["occurrences"]):
        passage = " ".join(texts[row["id"]][row["start"] : row["end"]].split())
        if passage[:40] not in shown and len(shown) < 5:
            shown.add(passage[:40])
            print(
                f"\n{row['occurrences']} times, kept in {row['kept_id']} from character "
                f"{row['kept_start']} on:"
            )
            print(f"  {passage[:200]}")
    kept = result.kept
    print(
        f"\n{kept.num_rows} of {source.num_rows} documents are left, the others were made of "
        "passages only"
    )


if __name__ == "__main__":
    main()
