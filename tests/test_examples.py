"""The examples run, without a warning, and say something."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_example_runs_from_any_folder(script: Path, tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(EXAMPLES.parent / "src"), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)], cwd=tmp_path, env=environment, capture_output=True, text=True,
        encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert not list(tmp_path.iterdir()), "an example leaves files behind"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_example_opens_with_its_question_and_is_listed(script: Path) -> None:
    first_line = script.read_text(encoding="utf-8").splitlines()[0]
    assert first_line.startswith('"""')
    assert "?" in first_line
    assert f"({script.name})" in (EXAMPLES / "README.md").read_text(encoding="utf-8")


def test_the_sample_collections_are_small_and_described() -> None:
    files = [path for path in (EXAMPLES / "data").iterdir() if path.name != "README.md"]
    assert sum(path.stat().st_size for path in files) < 2_000_000
    page = (EXAMPLES / "data" / "README.md").read_text(encoding="utf-8")
    for path in files:
        assert path.name in page or (path.name.startswith("firefox-terms-") and "firefox-terms-*" in page)
