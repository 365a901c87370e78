"""A folder has one writer at a time, and is left as it was where nothing was written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from verirec.exceptions import ParameterError
from verirec.sole_writer import sole_writer


def test_a_second_writer_is_refused_and_the_first_goes_on(tmp_path):
    out = tmp_path / "out"
    with sole_writer(out):
        code = f"from verirec.sole_writer import sole_writer\nwith sole_writer({str(out)!r}): pass"
        second = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert "another run is writing to" in second.stderr
        (out / "a").write_text("kept")
    with sole_writer(out):
        assert (out / "a").read_text() == "kept"


def test_a_folder_made_for_nothing_is_taken_away_again(tmp_path):
    with pytest.raises(ZeroDivisionError), sole_writer(tmp_path / "a" / "b"):
        raise ZeroDivisionError
    assert not list(tmp_path.iterdir())


def test_a_refused_writer_leaves_the_folder_to_the_first(tmp_path, monkeypatch):
    out, exists = tmp_path / "out", Path.exists
    with sole_writer(out):
        # As if the second had looked just before the first made it.
        monkeypatch.setattr(Path, "exists", lambda self: self != out and exists(self))
        with pytest.raises(ParameterError, match="another run"), sole_writer(out):
            pass
        monkeypatch.undo()
        assert out.is_dir()
        (out / "a").write_text("kept")


def test_an_error_of_the_work_is_not_taken_for_a_lock(tmp_path):
    with pytest.raises(BlockingIOError), sole_writer(tmp_path / "out"):
        raise BlockingIOError
