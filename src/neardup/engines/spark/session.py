"""Open a Spark session, name its jobs, and translate errors of a cluster into sentences."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark import SparkContext, SparkStageInfo
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import neardup.errors
from neardup.errors import ClusterError, NeardupError
from neardup.files import lines_of
from neardup.progress import Progress

_MIN_JAVA = 17
# Properties of a thread of the driver, which its jobs inherit.
_GROUP = "spark.jobGroup.id"
_DESCRIPTION = "spark.job.description"
_POLL_S = 1.0  # seconds between two reports of the tasks of a stage
# The reason follows the host and the number of the executor, in brackets.
_LOST_TASK = re.compile(r"Lost task [^\n()]*\([^()]*\) \([^()]*\): (.*)")
_INSTALL_ADVICE = (
    "Install it on every worker (pip install neardup), or ship an environment: venv-pack -o "
    "neardup.tar.gz, then spark-submit --archives neardup.tar.gz#environment --conf "
    "spark.pyspark.python=environment/bin/python"
)


def open_session(master: str | None = None) -> SparkSession:
    """Return the active session, or open one.

    Parameters
    ----------
    master : such as local[4] or spark://host:7077. Default: the master of spark-submit, or all
        cores of this machine.

    Raises
    ------
    ClusterError
        If there is no Java that Spark supports, or the cluster cannot be reached.
    """
    # The user's session keeps all of its settings.
    active = SparkSession.getActiveSession()
    if active is None and SparkContext._active_spark_context is not None:
        # Another thread opened it. Without settings, `getOrCreate` returns it as it is.
        active = SparkSession.builder.getOrCreate()
    if active is not None:
        return active
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # spark-submit sets it, and has started Java
        check_java()
    builder = SparkSession.builder.appName("neardup")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    # The driver collects all rows that it decides about or writes; docs/spark.md has the sizes.
    builder = builder.config("spark.driver.maxResultSize", "0")
    if master is None or master.startswith("local"):
        # Otherwise the workers run the `python3` of the path, perhaps without neardup.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        # Java moves few rows, in partitions that the run chooses. The optimisations of long queries
        # would take half of the time.
        builder = builder.config("spark.driver.defaultJavaOptions", "-XX:TieredStopAtLevel=1")
        builder = builder.config("spark.sql.adaptive.enabled", "false")
        builder = builder.config("spark.sql.codegen.wholeStage", "false")
        # Since Spark 4.1, a hash of all shuffled rows tells whether a task that runs again gave
        # other rows. It does not find blocks with the same rows in another order equal.
        for name in ("enabled", "enableFullRetryOnMismatch", "enableQueryLevelRollbackOnMismatch"):
            checksum = f"spark.sql.shuffle.orderIndependentChecksum.{name}"
            builder = builder.config(checksum, "false")
    if master is not None:
        builder = builder.master(master)
    try:
        session = builder.getOrCreate()
    except Exception as error:  # py4j and the launcher raise many types
        raise ClusterError(
            f"Spark cannot start with master={master!r}: {first_line(error)}. Check the address, "
            "or use local[*]."
        ) from error
    # Warnings of Spark would hide the lines of neardup on stderr.
    session.sparkContext.setLogLevel("ERROR")
    return session


def check_java() -> None:
    """Raise ClusterError unless there is a Java that Spark supports."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home, "bin", "java")) if home else shutil.which("java")
    needs = f"Spark needs Java {_MIN_JAVA} or later"
    advice = "Install it (apt install openjdk-17-jre-headless), or set JAVA_HOME to one."
    if program is None or not os.access(program, os.X_OK):
        where = f"JAVA_HOME={home} has none" if home else "there is none on the path"
        raise ClusterError(f"{needs}: {where}. {advice}")
    try:
        finished = subprocess.run(
            [program, "-version"], capture_output=True, text=True, errors="replace", check=False
        )
    except OSError as error:  # such as a program for another processor
        raise ClusterError(
            f"{needs}: {program} cannot be executed: {error.strerror}. {advice}"
        ) from error
    found = re.search(r'version "(?:1\.)?(\d+)', finished.stderr)  # 1.8.0 is Java 8
    if found is None or int(found[1]) < _MIN_JAVA:
        version = f"{finished.stderr.strip()[:200]!r}" if found is None else f"Java {found[1]}"
        raise ClusterError(f"{needs}: got {version} ({program}). {advice}")


@contextmanager
def translated() -> Iterator[None]:
    """Raise errors of workers and of Spark in the block as errors of neardup."""
    try:
        yield
    # PySpark leaves errors that it does not know to py4j, such as of a worker that was killed.
    except (PySparkException, Py4JError) as error:
        text = str(error)
        if "No module named 'neardup" in text:
            raise ClusterError(
                f"The workers of the cluster have no neardup. {_INSTALL_ADVICE}"
            ) from error
        # A worker's traceback has the error as "neardup.errors.InputError: message". The last
        # error of a chain is the one that was raised to the caller.
        raised = re.findall(r"^neardup\.errors\.(\w+): (.*)$", text, re.MULTILINE)
        if raised:
            name, message = raised[-1]
            kind = getattr(neardup.errors, name, None)
            if isinstance(kind, type) and issubclass(kind, NeardupError):
                raise kind(message) from error
        lost = _LOST_TASK.search(text)
        reason = lost[1][:300] if lost else _last_line(text)
        raise ClusterError(
            f"The run failed on the cluster: {reason.rstrip('.')}. The log of the driver has more."
        ) from error


@contextmanager
def labelled(context: SparkContext, stage: str, progress: Progress) -> Iterator[None]:
    """Name the jobs of the block in Spark's user interface; cancel them after an error."""
    group = f"neardup-{uuid4().hex}"  # unique: `cancelJobGroup` must not reach other runs
    before = {name: context.getLocalProperty(name) for name in (_GROUP, _DESCRIPTION)}
    context.setLocalProperty(_GROUP, group)
    context.setLocalProperty(_DESCRIPTION, f"neardup: {stage}")
    try:
        with _watched(context, group, progress):
            yield
    except BaseException:
        # Java may have ended; the error of the block is the one to raise.
        with suppress(Exception):
            context.cancelJobGroup(group)
        raise
    finally:
        # A thread of the user's may have a group of its own, which comes back.
        for name, value in before.items():
            context.setLocalProperty(name, value)


@contextmanager
def _watched(context: SparkContext, group: str, progress: Progress) -> Iterator[None]:
    """Report the tasks of the jobs of a group to `progress.tasks`, if it has this method."""
    report = getattr(progress, "tasks", None)
    if report is None:
        yield
        return
    has_ended = Event()

    def watch() -> None:
        while not has_ended.wait(_POLL_S):
            running = _running_stages(context, group)
            if running:
                num_done = sum(stage.numCompletedTasks for stage in running)
                report(num_done, sum(stage.numTasks for stage in running))

    thread = Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        has_ended.set()
        thread.join()


def _running_stages(context: SparkContext, group: str) -> list[SparkStageInfo]:
    """Return the running stages of the jobs of a group."""
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = {stage for job in jobs if job is not None for stage in job.stageIds}
    running = [
        tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds() if stage in stages
    ]
    return [stage for stage in running if stage is not None]  # None has just ended


def first_line(error: Exception) -> str:
    """Return the reason of an error; py4j has it on its second line."""
    lines = lines_of(str(error).strip())
    reasons = [line for line in lines if not line.startswith("An error occurred while calling")]
    return reasons[0].strip(": ")[:300] if reasons else type(error).__name__


def _last_line(text: str) -> str:
    """Return the last line of a message that is not of the frames of a Java stack trace."""
    lines = [line for line in lines_of(text) if line.strip() and not line.startswith("\t")]
    return lines[-1].strip()[:300] if lines else "no message"
