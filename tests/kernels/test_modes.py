"""The kernel tests pass with bounds checked, and without the compiler, where coverage sees every
line.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reference.places import TESTS

KERNEL_TESTS = [
    str(file)
    for file in sorted((TESTS / "kernels").glob("test_*.py"))
    if file.name != Path(__file__).name
]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["NUMBA_BOUNDSCHECK", "NUMBA_DISABLE_JIT"])
def test_the_kernel_tests_pass_with(mode):
    environment = os.environ | {
        mode: "1",
        "PYTHONPATH": os.pathsep.join([str(TESTS.parent / "src"), *sys.path]),
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--examples",
        "5",
        *KERNEL_TESTS,
    ]
    run = subprocess.run(
        command, env=environment, capture_output=True, text=True, cwd=TESTS.parent, check=False
    )
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]


@pytest.mark.slow
def test_checked_bounds_are_checked_also_when_the_unchecked_code_is_cached():
    """Numba's cache does not ask whether bounds were checked; conftest.py keeps two caches."""
    code = (
        "import sys; sys.path.insert(0, 'tests'); import conftest; import numpy as np\n"
        "from neardup.kernels.decisions import flatten\n"
        "try: flatten(np.array([7], np.uint32))\n"
        "except IndexError: print('checked')\n"
    )
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "PYTHONPATH": str(TESTS.parent / "src")}
    run = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        cwd=TESTS.parent,
        check=True,
    )
    assert run.stdout.strip() == "checked"
