"""Every command that writes a folder keeps one contract: whole or absent, resumed, locked, on
remote storage too.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import fsspec
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import neardup
from neardup.cli.main import cli
from neardup.errors import OutputError, ResumeError, SettingError
from neardup.output import job
from neardup.runs import directory, reading
from neardup.runs.scratch import Scratch
from reference.made_up import texts

ITEM = "Which planet of the solar system has the shortest year of all eight?"
NOTICE = (
    "We use cookies to give you the best experience on our site. By going on you accept them all. "
)
TEXTS = [*texts(40), f"{NOTICE}One. {ITEM}", f"{NOTICE}Two.", f"{NOTICE}Three. {ITEM}"]
FILES = {
    "dedup": {"kept", "removed.parquet"},
    "cluster": {"clusters.parquet", "cluster_summary.parquet"},
    "passages": {"kept", "passages.parquet"},
    "contamination": {"kept", "hits.parquet", "items.parquet", "boilerplate.parquet"},
}
REPORTS = {"rejected.jsonl", "report.json", "report.html"}
TABLES = {
    "dedup": {"removed": "removed"},
    "cluster": {"documents": "clusters", "clusters": "cluster_summary"},
    "passages": {"passages": "passages"},
    "contamination": {"hits": "hits", "items": "items", "boilerplate": "boilerplate"},
}
Command = Callable[..., Any]


def find_contamination(corpus: Any, **options: Any) -> neardup.Contamination:
    if options.get("output") is not None:
        options["write"] = "corpus"
    return neardup.find_contamination([ITEM], corpus, **options)


COMMANDS: dict[str, Command] = {
    "dedup": neardup.dedup,
    "cluster": neardup.cluster,
    "passages": partial(neardup.remove_passages, min_length=60),
    "contamination": find_contamination,
}
every_command = pytest.mark.parametrize("name", COMMANDS)


@pytest.fixture(autouse=True)
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file in the current folder, of which each document has a checkpoint of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(reading, "_CHECKPOINT_EVERY", 1)
    Path("fast").mkdir()
    return write_source(TEXTS)


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return fsspec's file system in memory, which all tests share, empty."""
    filesystem = fsspec.filesystem("memory")
    monkeypatch.setattr(type(filesystem), "store", {})
    monkeypatch.setattr(type(filesystem), "pseudo_dirs", [""])
    return filesystem


def write_source(lines: list[str]) -> Path:
    path = Path("in.jsonl")
    path.write_text(
        "".join(
            json.dumps({"id": f"doc-{row}", "text": text}) + "\n" for row, text in enumerate(lines)
        )
    )
    return path


def files_of(folder: Path) -> dict[str, bytes]:
    """Return the contents of an output but for its reports, which have times."""
    files = {
        path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()
    }
    return {
        name: path.read_bytes() for name, path in files.items() if not name.startswith("report.")
    }


def fail_to_write(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Let a run fail at the last file that it writes."""

    def fail(_: object) -> bytes:
        raise error

    monkeypatch.setattr(job, "report_bytes", fail)


@every_command
def test_the_folder_has_its_files_and_nothing_is_left_beside_it(name: str, source: Path) -> None:
    result = COMMANDS[name](source, output="out")
    assert result.output == Path("out")
    assert {path.name for path in Path("out").iterdir()} == FILES[name] | REPORTS
    assert json.loads(Path("out/report.json").read_text())["counts"] == result.report["counts"]
    assert sorted(os.listdir()) == ["fast", "in.jsonl", "out"]


@every_command
@pytest.mark.parametrize("scratch", [None, "fast"])
def test_an_error_while_it_is_written_leaves_no_output_and_a_run_to_resume(
    name: str, scratch: str | None, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    perform = partial(COMMANDS[name], source, batch_rows=1)
    perform(output="expected")
    with monkeypatch.context() as patch:
        fail_to_write(patch, OSError(errno.ENOSPC, "No space left on device"))
        with pytest.raises(OutputError, match=r"The disk is full.*Nothing was written to out\."):
            perform(output="out", scratch=scratch)
    assert not Path("out").exists()
    assert not Path("out.partial/result").exists()
    [checkpoint] = Path(".").rglob("checkpoint.json")
    assert checkpoint.is_relative_to("out.partial" if scratch is None else scratch)
    with pytest.raises(ResumeError, match="is a different run"):
        perform(text_column="id", output="out", scratch=scratch, resume=True)
    perform(output="out", scratch=scratch, resume=True)
    assert files_of(Path("out")) == files_of(Path("expected"))
    assert sorted(os.listdir()) == ["expected", "fast", "in.jsonl", "out"]
    assert os.listdir("fast") == []


@every_command
def test_a_run_that_is_resumed_does_not_read_again(
    name: str, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = []
    checkpoint = Scratch.checkpoint

    def count(scratch: Scratch, state: dict[str, Any]) -> None:
        stored.append(state)
        checkpoint(scratch, state)

    monkeypatch.setattr(Scratch, "checkpoint", count)
    with monkeypatch.context() as patch:
        fail_to_write(patch, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            COMMANDS[name](source, output="out", batch_rows=1)
    before = len(stored)
    COMMANDS[name](source, output="out", batch_rows=1, resume=True)
    assert before > len(TEXTS) / 2
    assert len(stored) - before <= 1


@every_command
def test_an_output_is_replaced_once_the_new_one_is_complete(
    name: str, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    perform = COMMANDS[name]
    perform(source, output="out")
    first = files_of(Path("out"))
    write_source(TEXTS[10:])
    with pytest.raises(OutputError, match="The output out already exists"):
        perform(source, output="out")
    with monkeypatch.context() as patch:
        fail_to_write(patch, ZeroDivisionError())
        with pytest.raises(ZeroDivisionError):
            perform(source, output="out", overwrite=True)
    assert files_of(Path("out")) == first
    perform(source, output="out", overwrite=True)
    assert files_of(Path("out")).keys() == first.keys()
    assert files_of(Path("out")) != first
    assert not Path("out.partial").exists()


@every_command
def test_a_second_run_is_refused_while_the_first_writes(name: str, source: Path) -> None:
    stages = []

    class Second:
        """Starts another run with the same output in each stage."""

        def begin(self, stage: str, total_documents: int | None) -> None:
            with pytest.raises(
                OutputError, match="The output out is being written by another run, in process"
            ):
                COMMANDS[name](source, output="out", overwrite=True)
            stages.append(stage)

        def advance(self, documents: int, num_bytes: int) -> None: ...
        def end(self, stage: str, seconds: float) -> None: ...

    COMMANDS[name](source, output="out", progress=Second())
    assert "write" in stages
    assert len(stages) > 2
    assert {path.name for path in Path("out").iterdir()} == FILES[name] | REPORTS


@every_command
def test_an_output_on_remote_storage_is_complete_with_its_report(
    name: str, source: Path, memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "fast"))
    perform = partial(COMMANDS[name], source, output="memory://bucket/out", batch_rows=1)
    expected = files_of(Path(COMMANDS[name](source, output="expected").output))
    write = directory.RemoteFolder._write

    def fail_at_the_report(folder: directory.RemoteFolder, file: Path, name: str) -> None:
        if name == "report.json":
            raise PermissionError("no access")
        write(folder, file, name)

    with monkeypatch.context() as patch:
        patch.setattr(directory.RemoteFolder, "_write", fail_at_the_report)
        with pytest.raises(OutputError, match=r"is not complete.*Then run again with resume=True"):
            perform()
    assert not memory.exists("/bucket/out/report.json")
    assert memory.exists("/bucket/out/incomplete.txt")
    assert perform(resume=True).output == "memory://bucket/out"
    files = {path.removeprefix("/bucket/out/"): memory.cat(path) for path in memory.store}
    assert {
        file: data for file, data in files.items() if not file.startswith("report.")
    } == expected
    assert files.keys() - expected.keys() == {"report.json", "report.html"}
    assert os.listdir("fast") == []
    with pytest.raises(OutputError, match="remote storage is never overwritten"):
        perform(overwrite=True)


@every_command
@pytest.mark.parametrize("output", ["out", "memory://bucket/out", None])
@pytest.mark.usefixtures("memory")
def test_temporary_files_are_in_the_scratch_folder(
    name: str, output: str | None, source: Path
) -> None:
    seen = set[str]()

    class Watch:
        def begin(self, stage: str, total_documents: int | None) -> None:
            seen.update(path.name for path in Path("fast").rglob("*"))
            assert not Path("out.partial/scratch").exists()

        def advance(self, documents: int, num_bytes: int) -> None: ...
        def end(self, stage: str, seconds: float) -> None: ...

    COMMANDS[name](source, output=output, scratch=Path("fast"), progress=Watch())
    assert "run.json" in seen
    assert os.listdir("fast") == []


@every_command
@pytest.mark.parametrize("scratch", ["none", "in.jsonl", 1])
def test_a_scratch_folder_that_does_not_exist_is_refused_before_anything_is_written(
    name: str, scratch: Any, source: Path
) -> None:
    for output in ("out", None):
        with pytest.raises(
            SettingError,
            match=rf"scratch must be an existing folder: got {scratch}\. Create it, or",
        ):
            COMMANDS[name](source, output=output, scratch=scratch)
    assert sorted(os.listdir()) == ["fast", "in.jsonl"]


@every_command
def test_a_run_without_an_output_has_nothing_to_resume(name: str, source: Path) -> None:
    with pytest.raises(SettingError, match="resume continues the run of an output folder"):
        COMMANDS[name](source, resume=True)


@every_command
def test_tables_that_are_not_wanted_are_in_the_files_alone(name: str, source: Path) -> None:
    filled = COMMANDS[name](source)
    result = COMMANDS[name](source, output="out", tables=False)
    without = COMMANDS[name](source, tables=False)
    assert without.report["counts"] == result.report["counts"] == filled.report["counts"]
    for table, file in TABLES[name].items():
        written = pq.read_table(f"out/{file}.parquet")
        assert written.num_rows > 0 or table == "boilerplate"
        assert written.equals(getattr(filled, table))
        with pytest.raises(
            SettingError,
            match=rf"^{table} is not in the result: got tables=False\. Read it from out",
        ):
            getattr(result, table)
        with pytest.raises(
            SettingError,
            match=rf"^{table} is not in the result: got tables=False\. Use tables=True",
        ):
            getattr(without, table)


@every_command
def test_the_command_line_has_the_same_options(
    name: str, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("items.jsonl").write_text(json.dumps({"question": ITEM}) + "\n")
    inputs = ["items.jsonl", "--corpus", str(source)] if name == "contamination" else [str(source)]
    command = [name, *inputs, "-o", "out", "--batch-rows", "1", "--quiet", "--scratch"]
    missing = CliRunner().invoke(cli, [*command, "none"])
    assert missing.exit_code == 2
    assert missing.stderr.endswith(
        "scratch must be an existing folder: got none. Create it, or change --scratch.\n"
    )
    command.append("fast")
    with monkeypatch.context() as patch:
        fail_to_write(patch, KeyboardInterrupt())
        stopped = CliRunner().invoke(cli, command)
    assert stopped.exit_code == 130
    assert "Run the same command with --resume to continue" in stopped.output
    done = CliRunner().invoke(cli, [*command, "--resume"])
    assert (done.exit_code, done.output) == (0, "")
    with monkeypatch.context() as patch:
        fail_to_write(patch, KeyboardInterrupt())
        CliRunner().invoke(cli, [*command, "--overwrite"])
    again = CliRunner().invoke(cli, [*command, "--overwrite"])
    assert (
        f"discarding the interrupted run in out.partial, which had read {len(TEXTS)} documents"
        in again.output
    )
    assert again.exit_code == 0
    assert os.listdir("fast") == []


@every_command
@pytest.mark.parametrize(
    "error", [OSError("gone"), KeyboardInterrupt()], ids=["an error", "an interruption"]
)
def test_an_output_stays_if_the_new_one_cannot_take_its_place(
    name: str, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    COMMANDS[name]("in.jsonl", output="out")
    before = Path("out/report.json").read_bytes()
    move = os.replace

    def fail(source: Any, target: Any) -> None:
        if Path(source).name == "result":
            raise error
        move(source, target)

    monkeypatch.setattr(directory.os, "replace", fail)
    with pytest.raises((OutputError, KeyboardInterrupt)):
        COMMANDS[name]("in.jsonl", output="out", overwrite=True)
    assert Path("out/report.json").read_bytes() == before


@every_command
def test_an_error_after_the_output_is_complete_says_so(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        Scratch, "close", fail_once(OSError(errno.EIO, "Input/output error", "a column"))
    )
    with pytest.raises(
        OutputError, match=r"a column\. The output out is complete, but the run failed"
    ):
        COMMANDS[name]("in.jsonl", output="out")
    assert Path("out/report.json").exists()


def fail_once(error: OSError) -> Callable[[Scratch], None]:
    """Return a way to close scratch files that fails the first time."""
    errors = [error]
    close = Scratch.close

    def closing(scratch: Scratch) -> None:
        close(scratch)
        if errors:
            raise errors.pop()

    return closing


def test_standard_output_leaves_nothing_in_the_folder_for_temporary_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("neardup.output.write.write_kept", interrupt)
    result = CliRunner().invoke(cli, ["dedup", "in.jsonl", "-o", "-", "--scratch", "fast"])
    assert result.exit_code == 130
    assert list(Path("fast").iterdir()) == []


def test_a_second_interruption_does_not_stop_the_deletion_of_temporary_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    delete = shutil.rmtree

    def delete_interrupted(folder: Any, *args: Any, **options: Any) -> None:
        if Path(folder).parent == Path("fast"):
            signal.raise_signal(signal.SIGINT)
        delete(folder, *args, **options)

    monkeypatch.setattr("neardup.output.write.write_kept", interrupt)
    monkeypatch.setattr("shutil.rmtree", delete_interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        result = CliRunner().invoke(cli, ["dedup", "in.jsonl", "-o", "-", "--scratch", "fast"])
        after = signal.getsignal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert result.exit_code == 130
    assert list(Path("fast").iterdir()) == []
    assert after is signal.default_int_handler


def interrupt(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt
