"""Processes of Python that are started, watched and killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import neardup
from reference.places import TESTS

SOURCE = Path(neardup.__file__).parents[1]


def process(*arguments: object, **options) -> subprocess.Popen:
    """Start a Python process that finds neardup and the reference; its output is text."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(SOURCE), str(TESTS), *sys.path])}
    command = [sys.executable, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, **options)
