"""Scratch columns: numbers that are appended, checkpointed and mapped."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from neardup import schemas
from neardup.runs.scratch import Scratch


def test_a_checkpoint_counts_numbers_that_wait_to_be_written(tmp_path: Path) -> None:
    with Scratch(tmp_path) as scratch:
        scratch.append(schemas.ROWS, np.arange(3))
        scratch.checkpoint({"documents": 3})
        scratch.append(schemas.ROWS, np.arange(2))
        scratch.append(schemas.LENGTHS, np.arange(2))
    with Scratch(tmp_path) as scratch:
        assert scratch.restore() == {"documents": 3}
        assert scratch.column(schemas.ROWS).tolist() == [0, 1, 2]
        assert scratch.column(schemas.LENGTHS).tolist() == []


def test_a_column_has_its_numbers_in_order_whatever_their_layout(tmp_path: Path) -> None:
    words = np.arange(6, dtype=np.uint64).reshape(3, 2)
    many = np.arange(100_000)  # more than wait together
    with Scratch(tmp_path) as scratch:
        scratch.append(schemas.CONTENT, words[:0])
        scratch.append(schemas.CONTENT, words[:, ::-1])
        scratch.append(schemas.ROWS, many[::2])
        scratch.append(schemas.ROWS, many)
        assert scratch.column(schemas.CONTENT).tolist() == words[:, ::-1].tolist()
        assert scratch.column(schemas.ROWS).tolist() == [*range(0, 100_000, 2), *many]
