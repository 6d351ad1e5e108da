"""Open a Spark session, name its jobs, and translate what goes wrong on a cluster into
sentences.
"""

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

from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import neardup.errors
from neardup.errors import ClusterError, NeardupError
from neardup.files import lines_of
from neardup.progress import Progress

_LEAST_JAVA = 17
_GROUP, _DESCRIPTION = "spark.jobGroup.id", "spark.job.description"
_POLL_S = 1.0
_SHIP = (
    "Install it on every worker (pip install neardup), or ship an environment: venv-pack -o "
    "neardup.tar.gz, then "
    "spark-submit --archives neardup.tar.gz#environment --conf "
    "spark.pyspark.python=environment/bin/python"
)


def open_session(master: str | None = None) -> SparkSession:
    """Return the active session, or open one.

    Parameters
    ----------
    master : such as local[4] or spark://host:7077. Default: that of spark-submit, or all cores of
        this machine.

    Raises
    ------
    ClusterError
        If there is no Java, or one that Spark does not take, or the cluster cannot be reached.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # else spark-submit has started Java
        check_java()
    builder = SparkSession.builder.appName("neardup").config(
        "spark.ui.showConsoleProgress", "false"
    )
    # The driver collects what it decides about and what it writes; docs/spark.md says how much that
    # is.
    builder = builder.config("spark.driver.maxResultSize", "0")
    if master is None or master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        # Java moves few rows, in partitions that the run chooses: what makes long queries fast
        # takes half of the time.
        builder = builder.config("spark.driver.defaultJavaOptions", "-XX:TieredStopAtLevel=1")
        builder = builder.config("spark.sql.adaptive.enabled", "false")
        builder = builder.config("spark.sql.codegen.wholeStage", "false")
    if master is not None:
        builder = builder.master(master)
    try:
        session = builder.getOrCreate()
    except Exception as error:  # py4j and the launcher have many
        raise ClusterError(
            f"Spark cannot start with master={master!r}: {first_line(error)}. Check the "
            "address, or use local[*]."
        ) from error
    session.sparkContext.setLogLevel("ERROR")
    return session


def check_java() -> None:
    """Raise ClusterError unless there is a Java that Spark takes."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home, "bin", "java")) if home else shutil.which("java")
    needs = f"Spark needs Java {_LEAST_JAVA} or later"
    advice = "Install it (apt install openjdk-17-jre-headless), or set JAVA_HOME to one."
    if program is None or not os.access(program, os.X_OK):
        where = f"JAVA_HOME={home} has none" if home else "there is none on the path"
        raise ClusterError(f"{needs}: {where}. {advice}")
    shown = subprocess.run(
        [program, "-version"], capture_output=True, text=True, check=False
    ).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', shown)
    if found is None or int(found[1]) < _LEAST_JAVA:
        version = f"{shown.strip()[:200]!r}" if found is None else f"Java {found[1]}"
        raise ClusterError(f"{needs}: got {version} ({program}). {advice}")


@contextmanager
def translated() -> Iterator[None]:
    """Raise errors of workers and of Spark as errors of neardup."""
    try:
        yield
    except PySparkException as error:
        text = str(error)
        if "No module named 'neardup" in text:
            raise ClusterError(f"The workers of the cluster have no neardup. {_SHIP}") from error
        raised = re.findall(r"^neardup\.errors\.(\w+): (.*)$", text, re.MULTILINE)
        kind = getattr(neardup.errors, raised[-1][0], None) if raised else None
        if isinstance(kind, type) and issubclass(kind, NeardupError):
            raise kind(raised[-1][1]) from error
        raise ClusterError(
            f"The run failed on the cluster: {_last_line(text)}. The log of the driver has more."
        ) from error


@contextmanager
def labelled(context: SparkContext, stage: str, progress: Progress) -> Iterator[None]:
    """Name the jobs of a stage in Spark's user interface; after an error, cancel those that still
    run.
    """
    group = f"neardup-{uuid4().hex}"
    before = {name: context.getLocalProperty(name) for name in (_GROUP, _DESCRIPTION)}
    context.setLocalProperty(_GROUP, group)
    context.setLocalProperty(_DESCRIPTION, f"neardup: {stage}")
    try:
        with _watched(context, group, progress):
            yield
    except BaseException:
        with suppress(Exception):
            context.cancelJobGroup(group)
        raise
    finally:
        for name, value in before.items():
            context.setLocalProperty(name, value)


@contextmanager
def _watched(context: SparkContext, group: str, progress: Progress) -> Iterator[None]:
    """Report the tasks of the jobs of a group to `progress.tasks`, if there is one."""
    ended, report = Event(), getattr(progress, "tasks", lambda done, total: None)

    def watch() -> None:
        tracker = context.statusTracker()
        while not ended.wait(_POLL_S):
            jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
            ours = {stage for job in jobs if job is not None for stage in job.stageIds}
            active = [
                tracker.getStageInfo(stage)
                for stage in tracker.getActiveStageIds()
                if stage in ours
            ]
            running = [stage for stage in active if stage is not None]
            if running:
                report(
                    sum(stage.numCompletedTasks for stage in running),
                    sum(stage.numTasks for stage in running),
                )

    thread = Thread(target=watch, daemon=True)
    if hasattr(progress, "tasks"):
        thread.start()
    try:
        yield
    finally:
        ended.set()
        if thread.is_alive():
            thread.join()


def first_line(error: Exception) -> str:
    """Return the reason; py4j has it on its second line."""
    lines = [
        line
        for line in lines_of(str(error).strip())
        if not line.startswith("An error occurred while calling")
    ]
    return lines[0].strip(": ")[:300] if lines else type(error).__name__


def _last_line(text: str) -> str:
    lines = [
        line.strip() for line in lines_of(text) if line.strip() and not line.startswith("\tat ")
    ]
    return lines[-1][:300] if lines else "no message"
