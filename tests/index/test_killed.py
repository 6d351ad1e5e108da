"""An index in a folder is as before a call or as after it, at whatever moment the process is
killed.
"""

from __future__ import annotations

import pytest

from reference.killing_process import OPERATIONS
from reference.processes import process


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_killed_operation_is_done_or_not_and_can_be_repeated(tmp_path, operation):
    with process("-m", "reference.killing_process", tmp_path / "source", 4, operation) as child:
        printed = child.stdout.read()
    assert child.returncode == 0, printed
    assert int(printed.split()[1]) >= 5, "it was killed at many moments"
