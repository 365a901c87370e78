"""Runs the tutorials and keeps what they print: `python -m website.run_notebooks`, or with names of notebooks."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "docs" / "tutorials"
SECONDS = 300
"""After which a cell is taken to hang."""


def executed(path: Path) -> nbformat.NotebookNode:
    """Return a notebook with the outputs of a run in an empty folder; raises where a cell fails."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        # What is printed piece by piece is one output.
        client = NotebookClient(notebook, timeout=SECONDS, resources=resources, coalesce_streams=True)
        client.execute()
    for cell in notebook.cells:
        # When a cell ran is not worth a difference between revisions.
        cell.metadata.pop("execution", None)
    return notebook


def main() -> None:
    """Run those that were named, or all."""
    for path in [FOLDER / name for name in sys.argv[1:]] or sorted(FOLDER.glob("*.ipynb")):
        nbformat.write(executed(path), path)


if __name__ == "__main__":
    main()
