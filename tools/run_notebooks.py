"""Run the notebooks in examples/notebooks and store their output: `make notebooks`."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent.parent / "examples" / "notebooks"


def main() -> None:
    """Run each notebook in its folder, and write it with what its cells show."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        NotebookClient(
            notebook,
            timeout=300,
            resources={"metadata": {"path": str(FOLDER)}},
            record_timing=False,
        ).execute()
        nbformat.write(notebook, path)
        print(path.name, file=sys.stderr)


if __name__ == "__main__":
    main()
