"""The examples run, without a warning, and say something."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
NOTEBOOKS = sorted((EXAMPLES / "notebooks").glob("*.ipynb"))
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_example_runs_from_any_folder(script: Path, tmp_path: Path) -> None:
    environment = os.environ | {
        "PYTHONPATH": str(EXAMPLES.parent / "src"),
        "PYTHONIOENCODING": "utf-8",
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
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
        assert path.name in page or (
            path.name.startswith("firefox-terms-") and "firefox-terms-*" in page
        )


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_it_showed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Printed text is the same; how a table looks is a matter of pandas."""
    nbformat = pytest.importorskip("nbformat", reason="no nbformat: pip install nbclient ipykernel")
    nbclient = pytest.importorskip("nbclient", reason="no nbclient: pip install nbclient ipykernel")
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLES.parent / "src"))
    stored = nbformat.read(path, as_version=4)
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": str(path.parent)}}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client.execute()
    assert shown(notebook) == shown(stored)
    assert f"(notebooks/{path.name})" in (EXAMPLES / "README.md").read_text(encoding="utf-8")


def shown(notebook: Any) -> list[str]:
    """Return the plain text that each cell shows; what it prints may come in pieces."""
    return [
        "".join(
            output.get("text") or output["data"]["text/plain"]
            for output in cell.outputs
            if "dataframe" not in output.get("data", {}).get("text/html", "")
        )
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]
