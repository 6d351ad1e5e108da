"""A folder on remote storage appears like a local one: complete once it has report.json."""

from __future__ import annotations

import gzip
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import neardup
import servers
from neardup.cli.main import cli
from neardup.documents.sources import resolve
from neardup.errors import MissingExtraError, NeardupError, OutputError
from neardup.runs import directory

TEXTS = ["the quick brown fox jumps over it", "The quick brown fox jumps over it!", "another text"]


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return fsspec's file system in memory, which all tests share, empty; the system's temporary
    folder is `tmp`.
    """
    (tmp_path / "tmp").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    filesystem = fsspec.filesystem("memory")
    monkeypatch.setattr(type(filesystem), "store", {})
    monkeypatch.setattr(type(filesystem), "pseudo_dirs", [""])
    return filesystem


@pytest.mark.parametrize("name", ["in.jsonl", "", "*.jsonl"], ids=["file", "folder", "pattern"])
def test_no_password_of_an_address_is_in_the_output(memory: Any, name: str) -> None:
    memory.pipe("/ada:secret@bucket/in.jsonl", b'{"text": "a text"}\n{"text": 1}\n')
    neardup.dedup(f"memory://ada:secret@bucket/{name}", output="out", max_unreadable=1)
    report = json.loads(Path("out/report.json").read_text())
    assert report["options"]["inputs"] == [f"memory://ada@bucket/{name}"]
    assert [part["name"] for part in report["inputs"]] == ["memory://ada@bucket/in.jsonl"]
    files = [path for path in Path("out").rglob("*") if path.is_file()]
    assert not [path for path in files if b"secret" in path.read_bytes()]


def test_a_folder_on_remote_storage_has_the_files_of_a_local_one(
    memory: Any, tmp_path: Path
) -> None:
    table = {"text": TEXTS}
    with gzip.open("in.jsonl.gz", "wt") as file:
        file.writelines(json.dumps({"text": text}) + "\n" for text in table["text"])
    local = neardup.dedup("in.jsonl.gz", output="out")
    result = neardup.dedup("in.jsonl.gz", output="memory://bucket/out")
    assert str(local.output) == "out"
    assert result.output == "memory://bucket/out"
    names = {
        path.relative_to("out").as_posix() for path in Path("out").rglob("*") if path.is_file()
    }
    assert {name.removeprefix("/bucket/out/") for name in memory.store} == names
    for name in ("kept/in.jsonl.gz", "rejected.jsonl", "removed.parquet"):
        assert memory.cat(f"/bucket/out/{name}") == Path("out", name).read_bytes()
    assert json.loads(memory.cat("/bucket/out/report.json"))["counts"]["kept"] == 2
    assert os.listdir("tmp") == []
    assert neardup.cluster(TEXTS, output="memory://bucket/clusters").clusters.num_rows == 1
    assert memory.exists("/bucket/clusters/clusters.parquet")


def test_an_output_that_exists_is_refused_before_anything_is_read(memory: Any) -> None:
    memory.pipe("/bucket/out/report.json", b"{}")
    memory.pipe("/bucket/other/file.txt", b"")
    for overwrite in (False, True):
        with pytest.raises(
            OutputError,
            match=r"memory://bucket/out already exists, and remote storage is never over",
        ):
            neardup.dedup("no-such-file.parquet", output="memory://bucket/out", overwrite=overwrite)
    with pytest.raises(
        OutputError,
        match=r"already exists.* It has no report\.json, so it is not a complete output",
    ):
        neardup.dedup("no-such-file.parquet", output="memory://bucket/other", resume=True)
    with pytest.raises(
        OutputError, match=r"memory://bucket/other/a and the input memory://bucket/other overlap"
    ):
        neardup.dedup("memory://bucket/other", output="memory://bucket/other/a")
    with pytest.raises(
        (OutputError, MissingExtraError), match="https://localhost:1/out"
    ):  # aiohttp may not be there
        neardup.dedup(TEXTS, output="https://localhost:1/out")
    assert sorted(memory.store) == ["/bucket/other/file.txt", "/bucket/out/report.json"]
    assert os.listdir("tmp") == []


def refuse_uploads(filesystem: Any, monkeypatch: pytest.MonkeyPatch, after: int) -> list[str]:
    """Let uploads fail as files are closed, after so many; return the list of all that were
    tried.
    """
    tried: list[str] = []
    opened = type(filesystem)._open

    def refusing(self: Any, path: str, mode: str = "rb", **options: Any) -> Any:
        file = opened(self, path, mode, **options)
        if "w" in mode:
            tried.append(path.removeprefix("/bucket/out/"))
            if len(tried) > after:
                self.store.pop(path, None)

                def refuse() -> None:
                    file.close = lambda: (
                        None
                    )  # Python 3.13 reports an error when it closes a forgotten file
                    raise PermissionError("no access")

                file.commit = file.close = refuse
        return file

    monkeypatch.setattr(type(filesystem), "_open", refusing)
    return tried


def three_files() -> list[str]:
    for number, text in enumerate(TEXTS):
        Path(f"{number}.txt").write_text(text)
    return [f"{number}.txt" for number in range(3)]


def test_a_copy_that_fails_says_so_and_is_resumed_with_the_rest(
    memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = three_files()
    with monkeypatch.context() as refused:
        tried = refuse_uploads(memory, refused, 3)
        with pytest.raises(OutputError) as raised:
            neardup.dedup(inputs, output="memory://bucket/out")
    assert tried == ["incomplete.txt", "kept/0.txt", "kept/2.txt", "rejected.jsonl"]
    message = str(raised.value)
    assert (
        "memory://bucket/out is not complete: 2 of 6 files were written, report.json was not: no "
        "access"
    ) in message
    assert message.endswith("Then run again with resume=True to copy the rest.")
    assert sorted(memory.store) == [f"/bucket/out/{name}" for name in tried[:3]]
    assert b"complete once report.json is here" in memory.cat("/bucket/out/incomplete.txt")
    (partial,) = Path("tmp").iterdir()
    assert partial.stat().st_mode & 0o077 == 0

    tried = refuse_uploads(memory, monkeypatch, 100)
    assert (
        neardup.dedup(inputs, output="memory://bucket/out", resume=True).report["counts"]["removed"]
        == 1
    )
    assert tried == [
        "incomplete.txt",
        "rejected.jsonl",
        "removed.parquet",
        "report.html",
        "report.json",
    ]
    assert "/bucket/out/incomplete.txt" not in memory.store
    assert os.listdir("tmp") == []


@pytest.mark.parametrize("overwrite", [False, True])
def test_another_run_replaces_what_one_that_failed_has_left(
    memory: Any, monkeypatch: pytest.MonkeyPatch, overwrite: bool
) -> None:
    inputs = three_files()
    with monkeypatch.context() as refused:
        refuse_uploads(memory, refused, 3)
        with pytest.raises(OutputError, match="is not complete"):
            neardup.dedup(inputs, output="memory://bucket/out")
    assert memory.exists("/bucket/out/kept/0.txt")
    neardup.dedup(inputs[1:], output="memory://bucket/out", overwrite=overwrite)
    assert sorted(name for name in memory.store if "/kept/" in name) == [
        "/bucket/out/kept/1.txt",
        "/bucket/out/kept/2.txt",
    ]
    with pytest.raises(OutputError, match="never overwritten"):
        neardup.dedup(inputs, output="memory://bucket/out", overwrite=overwrite, resume=True)


def test_a_file_that_vanishes_while_others_are_copied_is_noticed(
    memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = directory.RemoteFolder._write

    def write_and_lose(self: directory.RemoteFolder, file: Path, name: str) -> None:
        write(self, file, name)
        memory.store.pop("/bucket/out/kept/0.txt", None)

    monkeypatch.setattr(directory.RemoteFolder, "_write", write_and_lose)
    with pytest.raises(
        OutputError, match=r"3 of 6 files were written, report.json was not: kept/0.txt is missing"
    ):
        neardup.dedup(three_files(), output="memory://bucket/out")
    assert not memory.exists("/bucket/out/report.json")


def test_a_run_that_is_refused_leaves_nothing_there(memory: Any) -> None:
    for wrong in ({"source": "no-such-file.txt"}, {"source": TEXTS, "text_column": "body"}):
        with pytest.raises(NeardupError):
            neardup.dedup(**wrong, output="memory://bucket/out")  # type: ignore[arg-type]
    assert dict(memory.store) == {}
    assert not memory.exists("/bucket/out")


def test_the_command_refuses_an_output_that_ends_with_it(memory: Any) -> None:
    Path("in.txt").write_text("\n".join(TEXTS))
    done = CliRunner().invoke(cli, ["dedup", "in.txt", "-o", "memory://bucket/out"])
    assert done.exit_code == 2
    assert (
        "An output in memory is gone when the command ends: got memory://bucket/out." in done.output
    )
    assert dict(memory.store) == {}


def test_the_command_names_the_address_and_takes_a_scratch_folder(
    memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neardup.cli.sources._GONE", "no:")  # this process goes on
    Path("in.txt").write_text("\n".join(TEXTS))
    Path("fast").mkdir()
    done = CliRunner().invoke(
        cli, ["dedup", "in.txt", "-o", "memory://bucket/out/", "--scratch", "fast"]
    )
    assert done.exit_code == 0, done.output
    assert "memory://bucket/out/report.html" in done.output
    assert memory.cat("/bucket/out/kept/in.txt").splitlines() == [
        TEXTS[0].encode(),
        TEXTS[2].encode(),
    ]
    assert os.listdir("fast") == []


def test_an_output_that_exists_is_named_without_the_password(memory: Any) -> None:
    memory.pipe("/ada:secret@bucket/out/kept", b"")
    with pytest.raises(OutputError, match="The output memory://ada@bucket/out already exists"):
        neardup.dedup(TEXTS, output="memory://ada:secret@bucket/out")


def test_the_next_step_after_a_malformed_address_is_named_once() -> None:
    with pytest.raises(OutputError, match=r"^Cannot reach s3://\[x/out: ") as error:
        neardup.dedup(TEXTS, output="s3://[x/out")
    assert str(error.value).count("Check the address") == 1


def test_a_scheme_that_needs_a_package_names_it() -> None:
    with pytest.raises(MissingExtraError, match="needs a package that is not installed"):
        neardup.dedup(TEXTS, output="sftp://host/out")


class Refusing:
    """A server of S3's interface in this process, which answers 403 to all requests of a kind but
    the next `left`.
    """

    def __init__(self, application: Any) -> None:
        self._application = application
        self.left = 1 << 30
        self.methods = ("PUT",)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        if environ["REQUEST_METHOD"] in self.methods and "list-type" not in environ["QUERY_STRING"]:
            if self.left == 0:
                start_response("403 Forbidden", [("Content-Type", "application/xml")])
                return [b"<Error><Code>AccessDenied</Code><Message>Access denied</Message></Error>"]
            self.left -= 1
        return self._application(environ, start_response)


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Refusing, str]]:
    """Return the server, with a bucket, and the options of an address at it."""
    moto = pytest.importorskip(
        "moto.server", reason="no S3 server: pip install 'moto[server]' to test output on S3"
    )
    from werkzeug.serving import make_server

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "any")
    application = Refusing(moto.DomainDispatcherApplication(moto.create_backend_app))
    server = make_server("127.0.0.1", 0, application, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    resolve.cache_clear()  # of file systems of other servers
    place = f"endpoint_override=127.0.0.1:{server.server_port}&scheme=http&region=us-east-1&allow_delayed_open=true"  # noqa: E501
    pafs.FileSystem.from_uri(f"s3://bucket?{place}&allow_bucket_creation=true")[0].create_dir(
        "bucket"
    )
    yield application, f"?{place}"
    resolve.cache_clear()
    server.shutdown()
    thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("after", range(8))
def test_uploads_that_s3_refuses_end_a_run_with_an_error_until_it_is_resumed(
    refusing: tuple[Refusing, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    server, options = refusing
    monkeypatch.chdir(tmp_path)
    command = ["dedup", *three_files(), "-o", f"s3://bucket/{after}{options}", "--scratch", "."]
    client, _ = pafs.FileSystem.from_uri(f"s3://bucket/{options}")

    def sizes() -> dict[str, int]:
        found = client.get_file_info(
            pafs.FileSelector(f"bucket/{after}", recursive=True, allow_not_found=True)
        )
        return {
            info.path.removeprefix(f"bucket/{after}/"): info.size for info in found if info.is_file
        }

    server.left = after
    failed = CliRunner().invoke(cli, command)
    server.left = 1 << 30
    if after == 7:  # incomplete.txt and the six files of the output
        assert failed.exit_code == 0, failed.output
    else:
        assert failed.exit_code == 2, failed.output
        assert (
            f"s3://bucket/{after} {'is not complete' if after else 'cannot be written'}"
            in failed.output
        )
        assert len(sizes()) == after
        assert "report.json" not in sizes()
        resumed = CliRunner().invoke(cli, [*command, "--resume"])
        assert resumed.exit_code == 0, resumed.output
    assert sizes().keys() == {
        "kept/0.txt",
        "kept/2.txt",
        "rejected.jsonl",
        "removed.parquet",
        *directory._REPORTS,
    }
    assert [sizes()["kept/0.txt"], sizes()["kept/2.txt"]] == [33, 12]


@pytest.mark.slow
def test_keys_of_any_characters_are_read_and_written(
    refusing: tuple[Refusing, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, options = refusing
    monkeypatch.chdir(tmp_path)
    client, _ = pafs.FileSystem.from_uri(f"s3://bucket/{options}")
    names = [
        "a b",
        "é",
        "新闻",
        "q?",
        "p%20",
        "%zz",
        "h#",
        "plus+",
        "amp&=",
        "semi;",
        "[x]",
        "'quoted\"",
        "tab\t",
    ]
    for name in names:
        with client.open_output_stream(f"bucket/odd/{name}.txt") as file:
            file.write(f"the text of {name}".encode())
    result = neardup.dedup(
        "s3://bucket/odd", output=f"s3://bucket/of odd é%{options}", text_unit="file"
    )
    assert result.report["counts"]["kept"] + result.report["counts"]["removed"] == len(names)
    assert result.report["incomplete"] is None
    found = client.get_file_info(pafs.FileSelector("bucket/of odd é%/kept"))
    assert len(found) == result.report["counts"]["kept"] > 8
    for name in names:
        if name != "[x]":  # a pattern
            assert neardup.dedup(f"s3://bucket/odd/{name}.txt").report["counts"]["read"] == 1
    assert neardup.dedup("s3://bucket/odd/q?.txt").report["counts"]["read"] == 1


@pytest.mark.slow
def test_an_input_that_s3_refuses_is_named_with_the_reason_and_leaves_no_key(
    refusing: tuple[Refusing, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, options = refusing
    monkeypatch.chdir(tmp_path)
    client, _ = pafs.FileSystem.from_uri(f"s3://bucket/{options}")
    pq.write_table(pa.table({"text": TEXTS}), "a.parquet")
    Path("a.jsonl").write_text('{"text": "a b c"}\n')
    for name in ("a.parquet", "a.jsonl"):
        with client.open_output_stream(f"bucket/secret/{name}") as file:
            file.write(Path(name).read_bytes())
    server.methods = ("GET",)
    server.left = 0
    for name in ("a.parquet", "a.jsonl"):
        neardup.dedup(f"s3://bucket/secret/{name}", output=name + ".out", on_error="skip")
        [reason] = [
            json.loads(line)["reason"]
            for line in Path(name + ".out/rejected.jsonl").read_text().splitlines()
        ]
        assert "cannot be read: " in reason
        assert "AWS Error" in reason
        assert "damage" not in reason
    server.left = 1 << 30
    with pytest.raises(NeardupError, match="No such file or folder"):
        neardup.dedup("s3://bucket/none.txt", output=f"s3://bucket/a/deep/out{options}")
    assert client.get_file_info("bucket/a").type == pafs.FileType.NotFound


@pytest.mark.slow
def test_a_run_reads_from_s3_and_writes_to_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
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
        resolve.cache_clear()  # of servers of other tests
        # moto answers the end of an upload in parts with what Arrow refuses
        options = "?allow_delayed_open=true"
        result = neardup.dedup("s3://bucket/in/a.txt", output=f"s3://bucket/out/{options}")
        assert result.output == "s3://bucket/out"
        assert result.report["counts"]["removed"] == 1
        found = {
            info.path
            for info in storage.get_file_info(pafs.FileSelector("bucket/out", recursive=True))
        }
        files = {
            "kept",
            "kept/a.txt",
            "rejected.jsonl",
            "removed.parquet",
            "report.html",
            "report.json",
        }
        assert found == {f"bucket/out/{name}" for name in files}
        assert pq.read_table("bucket/out/removed.parquet", filesystem=storage).num_rows == 1
        with pytest.raises(OutputError, match="s3://bucket/out already exists"):
            neardup.dedup(TEXTS, output=f"s3://bucket/out{options}")
        with pytest.raises(OutputError, match="s3://no-bucket/out cannot be written"):
            neardup.dedup(TEXTS, output=f"s3://no-bucket/out{options}")
