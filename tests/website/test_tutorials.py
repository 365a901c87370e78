"""The tutorials run from beginning to end, and what they show was printed by a run."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

pytest.importorskip("nbclient", reason="notebooks are run with verirec[docs]")

from website.run_notebooks import executed

TUTORIALS = sorted((Path(__file__).parents[2] / "docs" / "tutorials").glob("*.ipynb"))


def kinds(notebook):
    """Say what each cell printed: text, a table, a picture."""
    return [[sorted(one.get("data", {"text": ""})) for one in cell.get("outputs", [])] for cell in notebook.cells]


# What the kernel's own libraries warn of is not ours.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::RuntimeWarning:zmq")
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_runs_and_shows_what_it_printed(path):
    kept = nbformat.read(path, as_version=4)
    again = executed(path)
    assert kinds(again) == kinds(kept)
    assert sum(bool(one) for one in kinds(kept)) >= 4
