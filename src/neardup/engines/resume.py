"""Tell whether the scratch files of an interrupted run are those of the run asked for."""

from __future__ import annotations

import json
from typing import Any

from neardup.config import Method, Sieve
from neardup.engines.scratch import Scratch
from neardup.engines.settings import other_settings, scheme_settings
from neardup.errors import ResumeError
from neardup.version import __version__


def prepare(
    scratch: Scratch, identities: list[tuple[str, int, float]], method: Method, sieve: Sieve, resume: bool
) -> bool:
    """Leave a note of what the run is, or check the one that is there; return whether there is something to resume.

    Raises
    ------
    ResumeError
        If the scratch files belong to other inputs, settings or another version.
    """
    note = scratch.directory / "run.json"
    this = _describe(identities, method, sieve)
    if resume and note.exists():
        other = json.loads(note.read_text())
        different = sorted(name for name in this if this[name] != other.get(name))
        if different:
            raise ResumeError(
                f"The interrupted run in {scratch.directory.parent} had other {' and '.join(different)}. Run with "
                "the same inputs and settings, or without resume (--resume) to start anew."
            )
        return True
    scratch.clear()
    note.write_text(json.dumps(this))
    return False


def _describe(identities: list[tuple[str, int, float]], method: Method, sieve: Sieve) -> dict[str, Any]:
    settings = scheme_settings(method) | other_settings(method, sieve)
    return {"version": __version__, "settings": settings, "inputs": [list(identity) for identity in identities]}
