"""Check whether the scratch files of an interrupted run belong to the requested run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from neardup.engines.local.scratch import Scratch
from neardup.errors import ResumeError
from neardup.formats.reading import Task
from neardup.version import __version__


def prepare(scratch: Scratch, tasks: Sequence[Task], settings: dict[str, Any], resume: bool) -> bool:
    """Record the identity of a run, or check the recorded one; return whether there is a run to resume.

    Raises
    ------
    ResumeError
        If the scratch files belong to other inputs, settings or another version; the message lists the differences.
    """
    note = scratch.directory / "run.json"
    this = json.loads(json.dumps(_describe(tasks, settings)))
    if resume and note.exists():
        other = json.loads(note.read_text())
        different = [*_differences(other, this)]
        if different:
            raise ResumeError(
                f"The interrupted run in {scratch.directory.parent} is a different run: it had {'; '.join(different)}. "
                "Use the same inputs and settings, or run without resume (--resume) to start again."
            )
        return True
    scratch.clear()
    note.write_text(json.dumps(this))
    return False


def _describe(tasks: Sequence[Task], settings: dict[str, Any]) -> dict[str, Any]:
    return {
        "version": __version__,
        "settings": settings,
        "inputs": [task.identity for task in tasks],
        "reading": [
            [*task.columns, task.against, task.max_document_bytes, task.part.format, task.part.unit] for task in tasks
        ],
    }


def _differences(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """Return the differences between two records."""
    if old.get("version") != new["version"]:
        yield f"version {old.get('version')}, now {new['version']}"
    before, now = old.get("settings", {}), new["settings"]
    for name in sorted(before.keys() | now.keys()):
        if before.get(name) != now.get(name):
            yield f"{name} {before.get(name)}, now {now.get(name)}"
    if old.get("inputs") != new["inputs"]:
        yield "other inputs, or they have changed since"
    elif old.get("reading") != new["reading"]:
        yield "its inputs read in another way (columns, format, unit or longest document)"
