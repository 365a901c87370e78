"""Text files that Arrow reads: whatever ends the reading, nothing of Python's is left in Arrow's threads."""

from __future__ import annotations

import gc
import gzip
import subprocess
import sys
import weakref

import pyarrow.csv
import pytest

import verirec as vr
from verirec.data import lent_text
from verirec.data.lent_text import text_blocks
from verirec.exceptions import DroppedRowsWarning, FileFormatError, FileLimitError

ROWS = 400_000
"""Some ten blocks of a megabyte: Arrow is ahead of whoever reads."""
BROKEN = "u_000001,,x,4,5,2023\n"


def written(file, broken):
    lines = [f"u_{row:06d},i_{row % 700:06d},{row % 5 + 1},{row:09d}\n" for row in range(ROWS)]
    lines.insert(broken, BROKEN)
    file.write_bytes(gzip.compress(("user,item,rating,when\n" + "".join(lines)).encode(), 1))
    return file


@pytest.fixture
def file(tmp_path):
    return written(tmp_path / "log.csv.gz", broken=ROWS // 2)


@pytest.fixture
def lent(monkeypatch):
    """What was lent to Arrow and has not come back."""
    there, made = [], lent_text._Lent

    def lend(stream):
        found = made(stream)
        there.append(weakref.ref(found))
        return found

    monkeypatch.setattr(lent_text, "_Lent", lend)
    gc.disable()
    yield lambda: [one for one in there if one() is not None]
    gc.enable()
    assert there


def test_an_error_leaves_nothing_behind_while_it_is_held(file, lent):
    with pytest.raises(FileFormatError, match=r"Row #200002: Expected 4 columns, got 6.*give drop_missing=True$"):
        vr.read_log(file, positive_from=4)
    assert lent() == []


def test_nor_do_pieces_of_a_log_that_is_prepared(file, lent, tmp_path):
    with pytest.raises(FileFormatError, match="Row #200002: Expected 4 columns, got 6"):
        vr.prepare_log(file, tmp_path / "log", positive_from=4, memory="64MB")
    assert lent() == []


def test_nor_a_header(file, lent):
    with pytest.warns(DroppedRowsWarning):
        vr.read_log(file, positive_from=4, drop_missing=True)
    assert lent() == []


def test_nor_an_interruption(file, lent, tmp_path, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("verirec.data.prepared.intake.cleaned", stopped)
    with pytest.raises(KeyboardInterrupt):
        vr.prepare_log(file, tmp_path / "log", positive_from=4, memory="64MB")
    assert lent() == []


def test_nor_blocks_that_somebody_keeps(file, lent):
    with text_blocks(file, read_options=pyarrow.csv.ReadOptions(block_size=1 << 16)) as blocks:
        assert len(next(blocks)) > 1000
    assert lent() == []
    del blocks


def test_nor_an_error_of_the_stream_itself(file, lent, monkeypatch):
    monkeypatch.setattr("verirec.data.limits._SMALL", 1)
    with vr.read_limits(expansion=1e-3), pytest.raises(FileLimitError, match="unpacks to"):
        vr.read_log(file, positive_from=4)
    assert lent() == []


def test_the_command_ends_with_its_error(tmp_path):
    """Threads that came back to Python while it ended aborted it, more often than not."""
    file = written(tmp_path / "log.csv.gz", broken=1000)
    for _ in range(3):
        command = [sys.executable, "-m", "verirec", "prepare", str(file), "--positive-from", "4", "--out", "log"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        told = "Expected 4 columns, got 6: u_000001,,x,4,5,2023; to leave such lines out, give --drop-missing"
        assert (done.returncode, done.stderr.count("\n"), told in done.stderr) == (2, 1, True), done.stderr
