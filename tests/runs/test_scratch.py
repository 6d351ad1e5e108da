"""Scratch columns: numbers that are appended, checkpointed and mapped."""

from __future__ import annotations

import errno
import tempfile
from pathlib import Path

import numpy as np
import pytest

import neardup
from neardup import schemas
from neardup.errors import OutputError, ResumeError
from neardup.runs.scratch import Scratch, prepare, workspace


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


@pytest.mark.parametrize("record", ["[]", "null", "{}", '{"settings": [], "lengths": []}', "{", ""])
def test_a_damaged_record_of_a_run_is_refused(tmp_path: Path, record: str) -> None:
    with Scratch(tmp_path) as scratch:
        for name in ("run.json", "checkpoint.json"):
            (tmp_path / name).write_text(record)
        with pytest.raises(ResumeError, match=r"run\.json of the interrupted run is damaged"):
            prepare(scratch, [], {}, resume=True)
        with pytest.raises(
            ResumeError, match=r"checkpoint\.json of the interrupted run is damaged"
        ):
            scratch.restore()


def test_a_temporary_folder_that_cannot_be_made_is_an_error_of_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "mkdtemp", raise_full)
    with pytest.raises(OutputError, match=f"cannot be written to the folder {tmp_path}: No space"):
        neardup.dedup(["a text"], scratch=tmp_path)


def test_a_full_temporary_folder_is_an_error_of_output_and_other_errors_stay() -> None:
    with pytest.raises(OutputError, match="the folder of the system: No space"), workspace():
        raise_full()
    with pytest.raises(FileNotFoundError), workspace():
        raise FileNotFoundError(errno.ENOENT, "No such file", "an input")


def raise_full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")
