"""PostgreSQL and Redis (or Valkey), started for the tests on free ports of the loopback
interface.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest


def _open_folder() -> str | None:
    """Return a folder for temporary files that any user may enter: a server does not run as
    root.
    """
    for folder in map(Path, (tempfile.gettempdir(), "/var/tmp", "/tmp")):
        if all(part.stat().st_mode & stat.S_IXOTH for part in (folder, *folder.parents)):
            return str(folder)
    return None


Started = TypeVar("Started", bound="Server")


class Server(ABC):
    """A server with its files in a temporary folder. It can be killed and started again with the
    same files.

    port : of 127.0.0.1. log : the lines it has written.
    """

    ready: str
    stop: signal.Signals

    def __init__(self, program: Path) -> None:
        self.program = program
        self.folder = Path(tempfile.mkdtemp(prefix="neardup-server-", dir=_open_folder()))
        self.port = _free_port()
        self.log: list[str] = []

    @abstractmethod
    def command(self) -> list[str]: ...

    def start(self) -> None:
        """Start the server and wait until it accepts connections."""
        self.process = subprocess.Popen(
            self.command(),
            cwd=self.folder,
            start_new_session=True,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            **self.identity(),
        )
        self.log.clear()
        accepts = threading.Event()
        output = self.process.stdout
        assert output is not None

        def read() -> None:
            for line in output:
                self.log.append(line)
                if self.ready in line:
                    accepts.set()
            output.close()
            accepts.set()

        self.reader = threading.Thread(target=read, daemon=True)
        self.reader.start()
        assert accepts.wait(60), self.log
        assert any(self.ready in line for line in self.log), "".join(self.log)

    def kill(self) -> None:
        """Send SIGKILL to the server and all its processes."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.reader.join()  # its end shows that no process of the server has the pipe open

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop all processes of the server in the block; they keep their connections."""
        children = (
            Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        )
        processes = [self.process.pid, *map(int, children)]
        try:
            _signal(processes, signal.SIGSTOP)
            yield
        finally:
            _signal(processes, signal.SIGCONT)

    def remove(self) -> None:
        """Stop the server for good and delete its files."""
        if self.process.poll() is None:
            self.process.send_signal(self.stop)
            self.process.wait(60)
        shutil.rmtree(self.folder, ignore_errors=True)

    def identity(self) -> dict[str, Any]:
        """Return the user that the server runs as, if not the user of the tests."""
        return {}

    def __enter__(self: Started) -> Started:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


class Postgres(Server):
    """A PostgreSQL cluster with one superuser, `neardup`, without a password, and `limited`, with
    the password `right`.

    As root, its processes run as an unprivileged user, since PostgreSQL refuses root.
    """

    ready = "database system is ready to accept connections"
    stop = signal.SIGQUIT  # without writing what is only in memory

    def __init__(self, program: Path) -> None:
        super().__init__(program)
        if os.geteuid() == 0:
            shutil.chown(self.folder, _unprivileged(), None)
        command = [
            program.with_name("initdb"),
            "-D",
            self.folder / "data",
            "-U",
            "neardup",
            "--auth=trust",
        ]
        made = subprocess.run(
            [*command, "--encoding=UTF8", "--no-locale", "--no-sync", "--no-instructions"],
            capture_output=True,
            cwd=self.folder,
            text=True,
            **self.identity(),
        )
        assert made.returncode == 0, made.stderr
        rules = self.folder / "data" / "pg_hba.conf"
        rules.write_text(
            "local all all trust\nhost all limited 127.0.0.1/32 scram-sha-256\nhost all all "
            "127.0.0.1/32 trust\n"
        )

    def command(self) -> list[str]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": self.folder,
            "logging_collector": "off",
        }
        flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return [str(self.program), "-D", str(self.folder / "data"), *flags]

    def identity(self) -> dict[str, Any]:
        return {"user": _unprivileged(), "extra_groups": []} if os.geteuid() == 0 else {}

    def address(self, index: str = "index", user: str = "neardup") -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/postgres?index={index}"


class Redis(Server):
    """A Redis or Valkey server that appends every command to a file and syncs it, unless arguments
    say otherwise.
    """

    ready = "Ready to accept connections"
    stop = signal.SIGTERM

    def __init__(self, program: Path, *arguments: str) -> None:
        super().__init__(program)
        self.arguments = arguments or ("--appendonly", "yes", "--appendfsync", "always")

    def command(self) -> list[str]:
        place = [
            "--bind",
            "127.0.0.1",
            "--port",
            str(self.port),
            "--dir",
            str(self.folder),
            "--save",
            "",
        ]
        return [str(self.program), *place, *self.arguments]

    def address(self, index: str = "index", database: int = 0) -> str:
        return f"redis://127.0.0.1:{self.port}/{database}?index={index}"


class S3(Server):
    """A server with the interface of Amazon S3; it keeps its objects in memory, and accepts any
    key.
    """

    ready = "Running on"
    stop = signal.SIGTERM

    def command(self) -> list[str]:
        return [str(self.program), "-H", "127.0.0.1", "-p", str(self.port)]

    def environment(self) -> dict[str, str]:
        """Return the variables by which a client finds the server."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }


def _signal(processes: list[int], number: signal.Signals) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)


def s3_program() -> Path:
    """Return the program moto_server; skip the test if there is none."""
    found = shutil.which("moto_server")
    if found is None:
        pytest.skip("no S3 server: pip install 'moto[server]' to test output on S3")
    return Path(found)


def postgres_program() -> Path:
    """Return the newest server program of PostgreSQL; skip the test if there is none."""
    found = shutil.which("postgres")
    versions = {
        int(path.parent.parent.name): path
        for path in Path("/usr/lib/postgresql").glob("[0-9]*/bin/postgres")
    }
    if found is None and not versions:
        pytest.skip("no PostgreSQL server: install postgresql to test the store")
    pytest.importorskip("psycopg", reason="no psycopg: install neardup[postgres] to test the store")
    return Path(found) if found else versions[max(versions)]


def redis_program() -> Path:
    """Return the server program of Redis or Valkey; skip the test if there is none."""
    found = shutil.which("redis-server") or shutil.which("valkey-server")
    if found is None:
        pytest.skip("no Redis server: install redis-server or valkey-server to test the store")
    pytest.importorskip("redis", reason="no redis-py: install neardup[redis] to test the store")
    return Path(found)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    """Return a PostgreSQL server for all tests, which must leave it running."""
    with Postgres(postgres_program()) as server:
        yield server


@pytest.fixture(scope="session")
def redis_server() -> Iterator[Redis]:
    """Return a Redis server for all tests, which must leave it running."""
    with Redis(redis_program()) as server:
        yield server


def _unprivileged() -> str:
    import pwd

    names = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in names)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(params=["postgres", "redis"])
def server(request: pytest.FixtureRequest) -> Postgres | Redis:
    """Each of the servers in turn."""
    found: Postgres | Redis = request.getfixturevalue(f"{request.param}_server")
    return found
