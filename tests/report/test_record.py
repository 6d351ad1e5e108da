"""A report is a record, complete when it is made."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup
from neardup.report.record import Part, Record


@dataclass(frozen=True, kw_only=True)
class Counts(Record):
    read: int
    repeated: int | None = None


@dataclass(frozen=True, kw_only=True)
class Example(Record):
    command: str = "example"
    counts: Counts
    cost: Part
    by_value: dict[str, int] | None
    updated: bool | None = None


def test_the_keys_of_a_report_are_the_fields_of_its_record_in_their_order():
    made = Example(counts=Counts(read=2), cost=Part(seconds=1.5), by_value=None, updated=False)
    assert list(made.to_dict().items()) == [
        ("command", "example"),
        ("counts", {"read": 2}),
        ("seconds", 1.5),
        ("by_value", None),
        ("updated", False),
    ]


def test_a_key_is_missing_where_a_field_has_its_default_none():
    assert "updated" not in Example(counts=Counts(read=2), cost=Part(), by_value={}).to_dict()


def test_a_record_cannot_be_made_in_part_or_changed_later():
    with pytest.raises(TypeError, match="by_value"):
        Example(counts=Counts(read=2), cost=Part())
    made = Example(counts=Counts(read=2), cost=Part(), by_value=None)
    with pytest.raises(FrozenInstanceError):
        made.updated = True


def test_what_is_removed_with_its_group_is_in_each_count_and_in_the_warning(tmp_path):
    """Of the 20 files of a repository, 12 are copies; the other 8 are removed with them."""
    first = [
        {"text": f"text number {row} of the first repository", "repo": f"own {row}"}
        for row in range(20)
    ]
    copies = [{"text": row["text"], "repo": "second"} for row in first[:12]]
    others = [
        {"text": f"nobody else has the words {word * 3}", "repo": "second"} for word in "abcdefgh"
    ]
    pq.write_table(pa.Table.from_pylist(first), tmp_path / "first.parquet")
    pq.write_table(pa.Table.from_pylist([*copies, *others]), tmp_path / "second.parquet")
    report = neardup.dedup(tmp_path, group_by="repo", group_share=0.5).report
    counts = report["counts"]
    assert (counts["read"], counts["kept"], counts["removed"], counts["removed_with_group"]) == (
        40,
        20,
        12,
        8,
    )
    assert [row["removed"] for row in report["inputs"]] == [0, 20]
    assert any("20 of the 20 documents of" in warning for warning in report["warnings"])
