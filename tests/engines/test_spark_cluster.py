"""A cluster of processes on this machine: a run survives the loss of a worker, and a worker out of
memory.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import IO, NamedTuple

import pyarrow.parquet as pq
import pytest

import neardup
from reference.places import REPOSITORY
from spark_session import BRIEF, require_spark

require_spark()
pytestmark = pytest.mark.slow

SOURCE = REPOSITORY / "examples" / "data" / "licenses.parquet"
DRIVER = """
import os, signal, sys
import neardup, neardup.spark
import memory_once

class KillWorker:
    def begin(self, stage, total_documents):
        if stage == sys.argv[4]:
            os.kill(int(sys.argv[5]), signal.SIGKILL)
    def advance(self, documents, num_bytes): pass
    def end(self, stage, seconds): pass

if __name__ == "__main__":
    method = neardup.MinHash(tokens=memory_once.tokens if sys.argv[4] == "memory" else "words")
    options = {"engine": "spark", "master": sys.argv[3], "tables": False}
    neardup.dedup(sys.argv[1], output=sys.argv[2], method=method, progress=KillWorker(), **options)
"""
TOKENS = """
import os, pathlib, resource

def tokens(text):
    flag = pathlib.Path(os.environ["MEMORY_FLAG"])
    if not flag.exists():
        flag.touch()
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        bytearray(1 << 31)
    return text.split()
"""


SLOW_ONCE = """
import os, pathlib, time

if "SLOW_FLAG" in os.environ:
    from neardup.output.kept import KeptWriter

    close = KeptWriter.close

    def slow_once(self):
        try:
            pathlib.Path(os.environ["SLOW_FLAG"]).touch(exist_ok=False)
        except FileExistsError:
            return close(self)
        time.sleep(3600)

    KeptWriter.close = slow_once
"""


class Cluster(NamedTuple):
    address: str
    workers: list[subprocess.Popen]
    folder: Path


def _start(folder: Path, host: str, *arguments: str) -> tuple[subprocess.Popen, str]:
    """Start a process of Spark on an address of this machine; return it with the line that says it
    is ready.
    """
    import pyspark

    home = Path(pyspark.__file__).parent
    program = str(home / "bin" / "spark-class")
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_LOCAL_IP": host,
    }
    process = subprocess.Popen(
        [program, *arguments, "--host", host, "--port", "0", "--webui-port", "0"],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    seen = []
    for line in process.stderr:
        seen.append(line)
        if "Starting Spark master at" in line or "Successfully registered with master" in line:
            Thread(
                target=_drain, args=[process.stderr], daemon=True
            ).start()  # or the process would wait when the pipe is full
            return process, line
    raise AssertionError("".join(seen))


def _drain(stream: IO[str]) -> None:
    with stream:
        for _ in stream:
            pass


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Return a master with two workers of one core."""
    package = "org.apache.spark.deploy"
    master, line = _start(tmp_path, "127.0.0.1", f"{package}.master.Master")
    address = re.search(r"spark://\S+", line)[0]
    workers = []
    try:
        for number in range(2):
            host = (
                f"127.0.0.{number + 1}"  # Spark runs two attempts of a task on different hosts only
            )
            options = [
                "--cores",
                "1",
                "--memory",
                "1g",
                "--work-dir",
                str(tmp_path / f"worker-{number}"),
            ]
            workers.append(_start(tmp_path, host, f"{package}.worker.Worker", address, *options)[0])
        yield Cluster(address, workers, tmp_path)
    finally:
        for process in (*workers, master):
            process.kill()
            process.wait(30)


def run(
    cluster: Cluster, event: str, hidden: Path | None = None, source: Path = SOURCE, **more: str
) -> subprocess.CompletedProcess:
    """Run a driver on the cluster, in which the event happens once.

    hidden : a folder that hides neardup there. more : settings of Spark, with _ for a dot, __ for
    _.
    """
    folder = cluster.folder
    (folder / "driver.py").write_text(DRIVER)
    (folder / "memory_once.py").write_text(TOKENS)
    path = os.pathsep.join(map(str, (Path(neardup.__file__).parent.parent, folder)))
    options = {
        "spark.executor.memory": "512m",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.extraJavaOptions": BRIEF,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.executorEnv.PYTHONPATH": str(hidden or path),
        "spark.executorEnv.MEMORY_FLAG": str(folder / "flag"),
    }
    options |= {
        name.replace("__", "-").replace("_", ".").replace("-", "_"): value
        for name, value in more.items()
    }
    shown = " ".join(f"--conf '{name}={value}'" for name, value in options.items())
    environment = {
        **os.environ,
        "PYTHONPATH": path,
        "MEMORY_FLAG": str(folder / "flag"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": f"--driver-memory 512m {shown} pyspark-shell",
    }
    command = [
        sys.executable,
        "driver.py",
        str(source),
        str(folder / "out"),
        cluster.address,
        event,
    ]
    command.append(str(cluster.workers[0].pid))
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600
    )


@pytest.mark.parametrize("stage", ["propose", "decide"])
def test_a_run_is_right_when_a_worker_is_killed_in_its_middle(cluster, stage):
    done = run(cluster, stage)
    assert done.returncode == 0, done.stderr[-2000:]
    assert cluster.workers[0].wait(30) == -signal.SIGKILL
    expected = neardup.dedup(str(SOURCE)).removed
    assert pq.read_table(cluster.folder / "out" / "removed.parquet").equals(expected)


def test_a_run_is_right_when_a_worker_runs_out_of_memory_once(cluster):
    done = run(cluster, "memory")
    assert done.returncode == 0, done.stderr[-2000:]
    assert (cluster.folder / "flag").exists()
    expected = neardup.dedup(str(SOURCE), method=neardup.MinHash(tokens=str.split)).removed
    assert pq.read_table(cluster.folder / "out" / "removed.parquet").equals(expected)


def test_a_task_that_hangs_is_run_again_by_speculation_and_the_output_is_whole(cluster, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(SLOW_ONCE)  # on the path of the workers
    (tmp_path / "in").mkdir()
    table = pq.read_table(SOURCE)
    for number in range(4):
        pq.write_table(
            table.slice(number * table.num_rows // 4, table.num_rows // 4),
            tmp_path / f"in/{number}.parquet",
        )
    flag = tmp_path / "slow"
    options = {"quantile": "0.5", "minTaskRuntime": "10s"}  # of the hanging task only
    speculation = {"spark_speculation": "true"} | {
        f"spark_speculation_{name}": value for name, value in options.items()
    }
    done = run(
        cluster,
        "none",
        source=tmp_path / "in",
        spark_executorEnv_SLOW__FLAG=str(flag),
        **speculation,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert flag.exists()
    neardup.dedup(str(tmp_path / "in"), output=tmp_path / "local")
    for file in sorted((tmp_path / "local" / "kept").iterdir()):
        assert (tmp_path / "out" / "kept" / file.name).read_bytes() == file.read_bytes()
    assert len(list((tmp_path / "out" / "kept").iterdir())) == 4
    assert not (tmp_path / "out.partial").exists()


def test_workers_without_neardup_are_told_how_to_ship_it(cluster, tmp_path):
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "neardup.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'neardup'\")\n"
    )
    done = run(cluster, "nothing", tmp_path / "hidden")
    assert done.returncode == 1
    assert (
        "ClusterError: The workers of the cluster have no neardup. Install it on every worker"
        in done.stderr
    )
    assert "spark-submit --archives" in done.stderr
    assert not (tmp_path / "out").exists()


def test_spark_submit_runs_the_command(tmp_path):
    import pyspark

    home = Path(pyspark.__file__).parent
    package = Path(neardup.__file__).parent
    options = [
        "--master",
        "local[2]",
        "--conf",
        "spark.ui.enabled=false",
        "--conf",
        "spark.sql.shuffle.partitions=2",
    ]
    command = [
        str(home / "bin" / "spark-submit"),
        *options,
        str(package / "__main__.py"),
        "dedup",
        str(SOURCE),
    ]
    environment = {
        **os.environ,
        "PYTHONPATH": str(package.parent),
        "PYSPARK_PYTHON": sys.executable,
    }
    environment.pop("PYSPARK_SUBMIT_ARGS", None)  # of the session of other tests
    done = subprocess.run(
        [*command, "-o", str(tmp_path / "out"), "--engine", "spark", "--quiet"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert pq.read_table(tmp_path / "out" / "removed.parquet").equals(
        neardup.dedup(str(SOURCE)).removed
    )


def test_a_cluster_that_cannot_be_reached_is_named(tmp_path):
    command = [sys.executable, "-m", "neardup", "dedup", str(SOURCE), "-o", str(tmp_path / "out")]
    command += ["--engine", "spark", "--master", "spark://127.0.0.1:1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    assert "Spark cannot start with master='spark://127.0.0.1:1'" in done.stderr
