"""Compiled kernels are kept where nobody else can change them, and never run in the place of other
ones.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import neardup
from neardup.kernels import compiled, first_run, numba_internals
from neardup.kernels.mixing import mix

SOURCE = Path(neardup.__file__).parent
NOBODY = 65534
AS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
PRINT_MIXED = (
    "import numpy as np; from neardup.kernels.compiled import cache_folder; from "
    "neardup.kernels.mixing import mix; print(mix(np.uint64(7)), cache_folder())"
)


@pytest.fixture
def room() -> Iterator[Path]:
    """A folder that every user can read, with a copy of the package."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    shutil.copytree(SOURCE, folder / "neardup", ignore=shutil.ignore_patterns("__pycache__"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def run(room: Path, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh process that imports the copy, with no setting of Numba but those
    given.
    """
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "XDG_"))
    }
    kept |= {"PYTHONPATH": str(room), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=kept,
        capture_output=True,
        text=True,
        cwd=room,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def run_as(
    user: dict[str, int], code: str, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run code as another user; skip the test where that user may not even start this Python."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            cwd="/",
            check=False,
            **user,
        )
    except PermissionError:
        pytest.skip("this Python may be run by its owner only")
    if (
        done.returncode
        and "Permission" in done.stderr
        and str(Path(sys.executable).parent.parent) in done.stderr
    ):
        pytest.skip("this Python may be read by its owner only")
    assert done.returncode == 0, done.stderr
    return done


def files_of(folder: Path) -> set[str]:
    return {file.name for file in folder.rglob("*.nb?")}


@pytest.mark.slow
def test_an_upgrade_of_a_helper_reaches_the_kernels_that_inline_it(room):
    code = (
        "import collections; import numpy as np; from neardup.kernels.html_shingles import "
        "hash_elements; make = collections.namedtuple('Elements', 'names depths'); hashes = "
        "np.zeros(1, np.uint64); hash_elements(make(np.array([7], np.uint64), np.zeros(1, "
        "np.int64)), True, hashes); print(hashes[0])"
    )
    old = run(room, code).stdout
    assert run(room, code).stdout == old
    helper = room / "neardup" / "kernels" / "mixing.py"
    text = helper.read_text()
    assert text.count("value *= MIX_2") == 1
    helper.write_text(text.replace("value *= MIX_2", "value *= MIX_1"))
    upgraded = run(room, code).stdout
    fresh = run(room, code, NUMBA_CACHE_DIR=str(room / "fresh")).stdout
    assert upgraded == fresh != old


@pytest.mark.slow
def test_the_second_process_compiles_nothing(room):
    code = (
        "import numpy as np; from neardup.kernels.mixing import mix; print(mix(np.uint64(7))); "
        "print(sum(mix.stats.cache_misses.values()), sum(mix.stats.cache_hits.values()))"
    )
    assert run(room, code).stdout.split()[1:] == ["1", "0"]
    assert run(room, code).stdout.split()[1:] == ["0", "1"]


@pytest.mark.slow
def test_the_first_run_compiles_in_two_processes_once(room):
    """What it compiles ahead is all that a run requires, and it is in no rate."""
    texts = [
        f"{number} is the number of a document, and the rest is the same in each of them"
        for number in range(9)
    ]
    (room / "in.csv").write_text("id,text\n" + "".join(f'{text[0]},"{text}"\n' for text in texts))
    code = "import sys; sys.argv[1:] = {}; from neardup.cli.main import main; main()"
    run(room, code.format(["dedup", "in.csv", "-o", "first"]))
    folder = next((room / "neardup" / "kernels" / "__pycache__").glob("kernels-*"))
    compiled_ahead = {file: file.stat().st_mtime_ns for file in folder.glob("*.nbc")}
    assert len(compiled_ahead) == len(first_run._of_text()) + len(first_run._of_search())
    run(room, code.format(["dedup", "in.csv", "-o", "second"]))
    costs = [json.loads((room / name / "report.json").read_text()) for name in ("first", "second")]
    assert costs[0]["compile_seconds"] > 1 > costs[0]["seconds"]
    assert costs[1]["compile_seconds"] == 0
    for option in ("--quiet", "--progress=none"):
        (folder / "first-run").unlink()
        assert (
            run(room, code.format(["dedup", "in.csv", "-o", "quiet", "--overwrite", option])).stderr
            == ""
        )
    assert {file: file.stat().st_mtime_ns for file in folder.glob("*.nbc")} == compiled_ahead


@pytest.fixture
def no_kernels(tmp_path, monkeypatch) -> Path:
    """Return a folder of compiled kernels, of which a first run compiles none."""
    folder = tmp_path / "kernels"
    folder.mkdir()
    monkeypatch.setattr(compiled, "cache_folder", lambda: folder)
    monkeypatch.setattr(compiled.config, "DISABLE_JIT", 0)
    monkeypatch.setattr(first_run, "_of_text", list)
    return folder


def script(path: Path, line: str) -> str:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("fails", ["exits", "is not there", "never ends"])
def test_a_second_process_that_fails_leaves_its_kernels_to_the_run(
    tmp_path, monkeypatch, no_kernels, fails
):
    program = str(tmp_path / "python3")
    if fails != "is not there":
        script(tmp_path / "python3", "exit 1" if fails == "exits" else "exec sleep 1000")
    monkeypatch.setattr(sys, "executable", program)
    monkeypatch.setattr(first_run, "_MIN_WAIT_S", 0.1)
    started = []
    popen = subprocess.Popen
    monkeypatch.setattr(
        subprocess,
        "Popen",
        lambda command, **rest: started.append(command) or popen(command, **rest),
    )
    for _ in range(2):  # it is tried once
        first_run.compile_kernels()
    assert [command[0] for command in started] == [program]
    assert not compiled.is_compiling()


@pytest.mark.parametrize("name", ["my-app", "uwsgi", "python3"])
def test_no_program_but_an_interpreter_is_started_again(tmp_path, monkeypatch, no_kernels, name):
    monkeypatch.setattr(sys, "executable", script(tmp_path / name, f"touch {tmp_path}/started"))
    monkeypatch.setattr(sys, "frozen", name == "python3", raising=False)
    first_run.compile_kernels()
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("writable_tmp", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_without_a_writable_home_it_runs(room, writable_tmp):
    if AS_ROOT:
        user: dict[str, int] = {"user": NOBODY, "group": NOBODY}
    else:
        user = {}
        (room / "neardup" / "kernels").chmod(0o555)
    tmp = room / "tmp"
    tmp.mkdir()
    tmp.chmod(0o1777 if writable_tmp else 0o555)
    environment = {
        "HOME": "/nonexistent",
        "PATH": os.defpath,
        "PYTHONPATH": str(room),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    code = f"import tempfile; tempfile.tempdir = {str(tmp)!r}; {PRINT_MIXED}"
    done = run_as(user, code, environment)
    if not AS_ROOT:
        (room / "neardup" / "kernels").chmod(0o755)
    assert done.stdout.split()[0] == run(room, PRINT_MIXED).stdout.split()[0]
    assert done.stderr.count("found no folder to cache compiled code in") == (not writable_tmp)
    assert bool(files_of(tmp)) == writable_tmp


@pytest.mark.slow
def test_a_folder_that_others_can_write_to_is_not_used(room):
    package = room / "neardup" / "kernels" / "__pycache__"
    first = Path(run(room, PRINT_MIXED).stdout.split()[1])
    assert first.parent == package
    assert not first.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    first.chmod(0o777)
    home = room / "home"
    second = Path(run(room, PRINT_MIXED, HOME=str(home)).stdout.split()[1])
    assert second.parent == home / ".cache" / "neardup"


@pytest.mark.slow
@pytest.mark.skipif(not AS_ROOT, reason="only root can give a folder to another user")
def test_a_folder_of_another_user_is_not_used(room):
    first = Path(run(room, PRINT_MIXED).stdout.split()[1])
    os.chown(first, NOBODY, NOBODY)
    assert Path(run(room, PRINT_MIXED, HOME=str(room / "home")).stdout.split()[1]) != first


@pytest.mark.slow
def test_a_link_in_the_place_of_the_folder_is_not_followed(room):
    first = Path(run(room, PRINT_MIXED).stdout.split()[1])
    shutil.rmtree(first)
    elsewhere = room / "elsewhere"
    elsewhere.mkdir()
    first.symlink_to(elsewhere)
    assert Path(run(room, PRINT_MIXED, HOME=str(room / "home")).stdout.split()[1]) != first
    assert not files_of(elsewhere)


@pytest.mark.slow
def test_a_damaged_file_is_compiled_anew(room):
    mixed, folder = run(room, PRINT_MIXED).stdout.split()
    for file in Path(folder).iterdir():
        file.write_bytes(file.read_bytes()[:-20])
    assert run(room, PRINT_MIXED).stdout.split() == [mixed, folder]


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Return the function that makes the folder of kernels in tmp_path, as in a new process."""

    def make(base: compiled._Base) -> Path:
        monkeypatch.setattr(compiled, "_bases", lambda: iter([base]))
        return compiled.cache_folder.__wrapped__()

    return make


def test_folders_of_other_versions_are_removed_but_for_the_last_changed(tmp_path, made):
    old = [tmp_path / f"kernels-{age:020x}" for age in range(7)]
    for age, folder in enumerate(old):
        folder.mkdir()
        os.utime(folder, (1000 - age, 1000 - age))
    (tmp_path / "kernels-of-another-program").mkdir()
    expected = {*old[:3], tmp_path / "kernels-of-another-program"}
    folder = made(compiled._Base(tmp_path))
    assert set(tmp_path.iterdir()) == {folder, *expected}
    assert made(compiled._Base(tmp_path)) == folder
    assert set(tmp_path.iterdir()) == {folder, *expected}


def test_nothing_is_removed_beside_a_base(tmp_path, made):
    """The folder for temporary files has folders of all programs."""
    others = {tmp_path / f"kernels-{age:020x}" for age in range(7)}
    for other in others:
        other.mkdir()
    folder = made(compiled._Base(tmp_path / "neardup-1000", is_shared=True))
    assert set(tmp_path.iterdir()) == {tmp_path / "neardup-1000", *others}
    assert folder.parent == tmp_path / "neardup-1000"


def test_two_signatures_never_share_a_file(tmp_path):
    """Two processes that compile at once both begin with an empty index."""
    first, second = (numba_internals._CacheFile(str(tmp_path), "kernel", "stamp") for _ in range(2))
    first._load_index()
    first.save(("one signature",), "one")
    os.unlink(tmp_path / "kernel.nbi")  # what the second process saw
    second.save(("another signature",), "another")
    assert second.load(("one signature",)) is None
    assert second.load(("another signature",)) == "another"
    first.save(("one signature",), "one")
    assert (first.load(("one signature",)), first.load(("another signature",))) == (
        "one",
        "another",
    )


@pytest.mark.slow
@pytest.mark.skipif(not AS_ROOT, reason="only root can act as another user")
def test_a_named_folder_made_by_root_serves_those_who_cannot_write_to_it(room):
    """How a container image brings its kernels along."""
    image = room / "image"
    run(room, PRINT_MIXED, NUMBA_CACHE_DIR=str(image))
    environment = {"PATH": os.defpath, "PYTHONPATH": str(room), "NUMBA_CACHE_DIR": str(image)}
    code = f"{PRINT_MIXED}; print(sum(mix.stats.cache_misses.values()))"
    done = run_as({"user": NOBODY}, code, environment)
    assert done.stdout.endswith(" 0\n") or done.stdout.endswith("\n0\n"), done.stderr
    assert not done.stderr


PRIVATE_NAMES = [
    "core.codegen.JITCodeLibrary",
    "core.codegen.CPUCodeLibrary._finalize_final_module",
    "core.codegen.CPUCodeLibrary._optimize_final_module",
    "core.compiler.Compiler",
    "core.caching._CacheLocator",
    "core.event.Listener",
    "core.event.register",
    "core.runtime.nrt.rtsys",
    "core.caching.CompileResultCacheImpl",
    "core.caching.FunctionCache",
    "core.caching.IndexDataCacheFile",
    "core.caching.IndexDataCacheFile._data_name",
    "core.caching.IndexDataCacheFile._load_index",
    "core.caching.IndexDataCacheFile._save_data",
    "core.caching.IndexDataCacheFile._save_index",
    "core.caching.Cache._load_overload",
    "core.dispatcher._DispatcherBase.get_call_template",
]


@pytest.mark.slow
@pytest.mark.parametrize("name", PRIVATE_NAMES)
def test_without_a_private_name_of_numba_each_process_compiles_and_one_warning_says_so(room, name):
    """A later Numba may drop any of them. What Numba itself needs is put back once neardup has
    looked.
    """
    owner, _, attribute = name.rpartition(".")
    code = (
        f"import numba.core.event, numba.core.caching; owner = numba.{owner}; value = "
        f"vars(owner)[{attribute!r}]; delattr(owner, {attribute!r}); import "
        f"neardup.kernels.compiled; setattr(owner, {attribute!r}, value); {PRINT_MIXED}; from "
        "neardup.kernels import first_run; print(first_run.compile_kernels())"
    )
    done = run(room, code)
    assert done.stdout.split() == [str(mix(np.uint64(7))), "None", "None"]
    assert done.stderr.count("lacks a private interface that neardup uses") == 1
    assert done.stderr.count("Warning") == 1


@pytest.mark.slow
def test_without_the_private_names_of_numba_a_run_has_the_same_result(room):
    texts = [
        f"{number} is the number of a document, and the rest is the same in each of them"
        for number in range(9)
    ]
    code = f"import neardup; print(neardup.dedup({texts}).removed.to_pylist())"
    changed = run(room, f"import numba.core.caching as caching; del caching._CacheLocator; {code}")
    assert changed.stdout == run(room, code).stdout
