"""tools/mutate.py changes single operators, and lists the changes that no test notices."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from reference.places import REPOSITORY

TOOL = REPOSITORY / "tools" / "mutate.py"
SOURCE = '''"""One."""
LIMIT = 3  # of all


def count(rows: int = 1) -> bool:
    """Return 2."""
    if not rows:
        raise ValueError(f"No {rows + 1}.")
    return rows < LIMIT and True
'''


@pytest.fixture(scope="module")
def mutate():
    spec = importlib.util.spec_from_file_location("mutate", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_operator_and_number_of_the_code_is_changed_alone(mutate):
    mutants = mutate.mutants_of(SOURCE)
    assert [(each.line, each.before, each.after) for each in mutants] == [
        (2, "3", "(4)"),
        (2, "3", "(2)"),
        (5, "1", "(2)"),
        (5, "1", "(0)"),
        (7, "not rows", "(not not rows)"),
        (7, "not rows", "(rows)"),
        (8, 'raise ValueError(f"No {rows + 1}.")', "pass"),
        (9, "rows < LIMIT and True", "(rows < LIMIT or True)"),
        (9, "rows < LIMIT", "(rows <= LIMIT)"),
        (9, "True", "(False)"),
    ]
    for mutant in mutants:
        assert mutant.source == SOURCE.replace(mutant.before, mutant.after, 1) or mutant.line == 5
        compile(mutant.source, "changed", "exec")


def test_at_most_a_third_of_a_sample_changes_a_number(mutate):
    mutants = mutate.mutants_of(SOURCE)
    chosen = mutate.sample(mutants, 6, "seed")
    assert chosen == mutate.sample(mutants, 6, "seed")
    assert (len(chosen), sum(each.before.isdecimal() for each in chosen)) == (6, 2)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the tool forks")
def test_changes_that_a_test_notices_are_counted_alone(monkeypatch):
    monkeypatch.setenv("PYTEST_ADDOPTS", "-k no_test_has_this_name")
    command = [TOOL, "src/neardup/decide/copies.py", "tests/decide/test_chains_and_copies.py"]
    done = subprocess.run(
        [sys.executable, *command, "--mutants", "2"],
        capture_output=True,
        text=True,
        check=True,
        cwd=REPOSITORY,
    )
    assert done.stdout == "src/neardup/decide/copies.py: 2 changes, 0 not noticed\n"
