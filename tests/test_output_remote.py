"""A folder on remote storage appears like a local one: complete once it has report.json."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import fsspec
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import neardup
import servers
from neardup.cli.main import cli
from neardup.errors import MissingExtraError, OutputError
from neardup.output import remote

TEXTS = ["the quick brown fox jumps over it", "The quick brown fox jumps over it!", "another text"]


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return fsspec's file system in memory, which all tests share, empty; the system's temporary folder is `tmp`."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    filesystem = fsspec.filesystem("memory")
    monkeypatch.setattr(type(filesystem), "store", {})
    monkeypatch.setattr(type(filesystem), "pseudo_dirs", [""])
    return filesystem


def test_a_folder_on_remote_storage_has_the_files_of_a_local_one(memory: Any, tmp_path: Path) -> None:
    table = {"text": TEXTS}
    Path("in.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in table["text"]))
    local = neardup.dedup("in.jsonl", output="out")
    result = neardup.dedup("in.jsonl", output="memory://bucket/out")
    assert str(local.output) == "out"
    assert result.output == "memory://bucket/out"
    names = {path.relative_to("out").as_posix() for path in Path("out").rglob("*") if path.is_file()}
    assert {name.removeprefix("/bucket/out/") for name in memory.store} == names
    for name in ("kept/in.jsonl", "rejected.jsonl", "removed.parquet"):
        assert memory.cat(f"/bucket/out/{name}") == Path("out", name).read_bytes()
    assert json.loads(memory.cat("/bucket/out/report.json"))["counts"]["kept"] == 2
    assert os.listdir("tmp") == []
    assert neardup.cluster(TEXTS, output="memory://bucket/clusters").clusters.num_rows == 1
    assert memory.exists("/bucket/clusters/clusters.parquet")


def test_an_output_that_exists_is_refused_before_anything_is_read(memory: Any) -> None:
    memory.pipe("/bucket/out/report.json", b"{}")
    memory.pipe("/bucket/other/file.txt", b"")
    for overwrite in (False, True):
        with pytest.raises(OutputError, match=r"memory://bucket/out already exists, and remote storage is never over"):
            neardup.dedup("no-such-file.parquet", output="memory://bucket/out", overwrite=overwrite)
    with pytest.raises(OutputError, match=r"already exists.* It has no report\.json, so it is not a complete output"):
        neardup.dedup("no-such-file.parquet", output="memory://bucket/other", resume=True)
    with pytest.raises(OutputError, match=r"memory://bucket/other/a and the input memory://bucket/other overlap"):
        neardup.dedup("memory://bucket/other", output="memory://bucket/other/a")
    with pytest.raises((OutputError, MissingExtraError), match="https://localhost:1/out"):  # aiohttp may not be there
        neardup.dedup(TEXTS, output="https://localhost:1/out")
    assert sorted(memory.store) == ["/bucket/other/file.txt", "/bucket/out/report.json"]
    assert os.listdir("tmp") == []


def test_a_copy_that_fails_leaves_nothing_there_and_is_resumed(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    copied, copy = [], pafs.copy_files

    def fail_at_the_last(source: str, target: str, **filesystems: Any) -> None:
        copied.append(Path(source).name)
        if copied[-1] == "report.json":
            raise PermissionError("no access")
        copy(source, target, **filesystems)

    monkeypatch.setattr(remote.pafs, "copy_files", fail_at_the_last)
    with pytest.raises(OutputError, match=r"memory://bucket/out cannot be written: no access"):
        neardup.dedup(TEXTS, output="memory://bucket/out")
    assert sorted(copied)[:-1] != copied
    assert copied[-1] == "report.json"
    assert dict(memory.store) == {}
    (partial,) = Path("tmp").iterdir()
    assert partial.stat().st_mode & 0o077 == 0
    monkeypatch.setattr(remote.pafs, "copy_files", copy)
    memory.pipe("/bucket/out/removed.parquet", b"of a run that was killed")
    with pytest.raises(OutputError, match="already exists"):
        neardup.dedup(TEXTS, output="memory://bucket/out")
    assert neardup.dedup(TEXTS, output="memory://bucket/out", resume=True).report["counts"]["removed"] == 1
    assert memory.cat("/bucket/out/removed.parquet") != b"of a run that was killed"
    assert os.listdir("tmp") == []


def test_the_command_names_the_address_and_takes_a_scratch_folder(memory: Any) -> None:
    Path("in.txt").write_text("\n".join(TEXTS))
    Path("fast").mkdir()
    done = CliRunner().invoke(cli, ["dedup", "in.txt", "-o", "memory://bucket/out/", "--scratch", "fast"])
    assert done.exit_code == 0, done.output
    assert "memory://bucket/out/report.html" in done.output
    assert memory.cat("/bucket/out/kept/in.txt").splitlines() == [TEXTS[0].encode(), TEXTS[2].encode()]
    assert os.listdir("fast") == []


def test_a_scheme_that_needs_a_package_names_it() -> None:
    with pytest.raises(MissingExtraError, match="needs a package that is not installed"):
        neardup.dedup(TEXTS, output="sftp://host/out")


@pytest.mark.slow
def test_a_run_reads_from_s3_and_writes_to_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with servers.S3(servers.s3_program()) as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        storage = pafs.S3FileSystem(
            endpoint_override=server.environment()["AWS_ENDPOINT_URL"],
            allow_bucket_creation=True,
            allow_delayed_open=True,
        )
        storage.create_dir("bucket")
        with storage.open_output_stream("bucket/in/a.txt") as file:
            file.write("\n".join(TEXTS).encode())
        options = "?allow_delayed_open=true"  # moto answers the end of an upload in parts with what Arrow refuses
        result = neardup.dedup("s3://bucket/in/a.txt", output=f"s3://bucket/out/{options}")
        assert result.output == "s3://bucket/out"
        assert result.report["counts"]["removed"] == 1
        found = {info.path for info in storage.get_file_info(pafs.FileSelector("bucket/out", recursive=True))}
        files = {"kept", "kept/a.txt", "rejected.jsonl", "removed.parquet", "report.html", "report.json"}
        assert found == {f"bucket/out/{name}" for name in files}
        assert pq.read_table("bucket/out/removed.parquet", filesystem=storage).num_rows == 1
        with pytest.raises(OutputError, match="s3://bucket/out already exists"):
            neardup.dedup(TEXTS, output=f"s3://bucket/out{options}")
        with pytest.raises(OutputError, match="s3://no-bucket/out cannot be written"):
            neardup.dedup(TEXTS, output=f"s3://no-bucket/out{options}")
