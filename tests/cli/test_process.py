"""The command as a process: what it loads, signals, pipes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pyarrow.parquet as pq
import pytest

import neardup
from neardup.cli.running import running_into

pytestmark = pytest.mark.slow

ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(Path(neardup.__file__).parents[1]),
    "PYTHONIOENCODING": "utf-8",
}
COMMAND = [sys.executable, "-m", "neardup"]


def run(*arguments: str, cwd: Path, **settings: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=cwd,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
        **settings,
    )


def write_corpus(path: Path, documents: int) -> None:
    words = [f"w{i}" for i in range(97)]
    with path.open("w") as file:
        for i in range(documents):
            text = " ".join(words[(i * 7 + j * (1 + i % 5)) % 97] for j in range(20)) + f" {i // 3}"
            file.write(json.dumps({"id": f"d{i}", "text": text}) + "\n")


def test_help_loads_nothing_heavy(tmp_path):
    code = (
        "import sys\nfrom neardup.cli.main import cli\n"
        "for words in ([], ['dedup'], ['find-pairs'], ['compare'], ['plan']):\n"
        "    try: cli([*words, '--help'], standalone_mode=True)\n"
        "    except SystemExit as end: assert end.code == 0\n"
        "heavy = {'numpy', 'pyarrow', 'numba', 'rich', 'neardup.api'} & set(sys.modules)\n"
        "sys.exit(f'loaded {sorted(heavy)}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr


def test_nothing_but_the_table_is_printed_into_a_pipe(tmp_path):
    write_corpus(tmp_path / "in.jsonl", 50)
    done = run("dedup", "in.jsonl", "-o", "out", cwd=tmp_path)
    assert done.returncode == 0
    lasted = [
        line
        for line in done.stderr.splitlines()
        if not re.match(r"[A-Z][a-z]+: .*, [0-9.]+ s$", line)
    ]
    assert lasted == []  # a stage of ten seconds or more has a line, as on a machine that is busy
    assert "\x1b" not in done.stdout
    table = [line for line in done.stdout.splitlines() if not line.startswith("Warning: ")]
    assert all(line == line.rstrip() and len(line) <= 80 for line in table)


def test_an_error_has_no_traceback(tmp_path):
    done = run("dedup", "nope.jsonl", "-o", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("neardup: error: ")
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "closing", "code"),
    [
        (["compare", "-", "a.txt"], "<&-", 2),
        (["index", "add-if-new", "index", "-", "--stream"], "<&-", 2),
        (["compare", "a.txt", "a.txt", "--json"], ">&-", 0),
    ],
)
def test_a_stream_that_the_shell_closed_has_no_traceback(tmp_path, arguments, closing, code):
    (tmp_path / "a.txt").write_text("a text")
    neardup.Index.create(tmp_path / "index").close()
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closing}', "sh", *COMMAND, *arguments],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    assert (done.returncode, "Traceback" in done.stderr) == (code, False)
    assert ("Standard input is closed" in done.stderr) == (closing == "<&-")


@pytest.mark.slow
def test_a_reader_that_leaves_early_is_no_error_to_talk_about(tmp_path):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as closed:
        done = subprocess.run(
            [*COMMAND, "plan", "--documents", "1e8"],
            env=ENVIRONMENT,
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.stderr == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_an_interrupted_run_says_how_to_go_on_and_resumes_to_the_same_answer(tmp_path, number):
    write_corpus(tmp_path / "in.jsonl", 30_000)
    arguments = ["dedup", "in.jsonl", "-o", "out"]
    slowly = [
        "--batch-rows",
        "1",
    ]  # so that the signal finds it reading, however busy the machine is
    process = subprocess.Popen(
        [*COMMAND, *arguments, *slowly],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    checkpoint = tmp_path / "out.partial" / "scratch" / "checkpoint.json"
    deadline = time.monotonic() + 60
    while not checkpoint.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(number)
    printed, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert printed == ""
    assert said.strip() == (
        "Interrupted. Nothing was written to out. Run the same command with --resume to continue, "
        "or delete out.partial."
    )
    assert not (tmp_path / "out").exists()
    assert run(*arguments, "--resume", "--quiet", cwd=tmp_path).returncode == 0
    assert run("dedup", "in.jsonl", "-o", "whole", "--quiet", cwd=tmp_path).returncode == 0
    resumed = tmp_path / "out"
    whole = tmp_path / "whole"
    assert pq.read_table(resumed / "removed.parquet").equals(
        pq.read_table(whole / "removed.parquet")
    )
    assert (resumed / "kept" / "in.jsonl").read_bytes() == (
        whole / "kept" / "in.jsonl"
    ).read_bytes()
    assert not (tmp_path / "out.partial").exists()


def test_after_its_output_is_published_an_interrupted_run_says_that_it_is_complete(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)

    @running_into("out", resume=False)
    def publish_and_be_interrupted() -> None:
        Path("out").mkdir()
        raise KeyboardInterrupt

    with pytest.raises(click.exceptions.Exit):
        publish_and_be_interrupted()
    assert capsys.readouterr().err.strip() == "Interrupted. The output out is complete."
