"""Many parts: more files are open at once than a process may usually have."""

from __future__ import annotations

import errno

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import verirec as vr
from refusals import check_refusal
from verirec import open_files
from verirec.exceptions import OpenFilesError

resource = pytest.importorskip("resource")
USUAL = 96
"""Enough for what Python and the libraries have open."""


@pytest.fixture
def small_limit():
    """Let this process have few files open, and more only if it asks for more."""
    before, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (USUAL, hard))
    yield USUAL
    resource.setrlimit(resource.RLIMIT_NOFILE, (before, hard))


@pytest.fixture
def many_parts(tmp_path):
    """Write a log's rows, twenty a file."""
    random = np.random.default_rng(0)
    for part in range(USUAL):
        columns = {"user": random.integers(0, 50, 20), "item": random.integers(0, 30, 20), "rating": np.arange(20) % 5}
        pq.write_table(pa.table(columns), tmp_path / f"{part:03}.parquet")
    return tmp_path


def prepared(folder):
    return vr.prepare_log(folder / "*.parquet", folder / "log", positive_from=3, duplicates="last")


def test_more_parts_than_files_may_be_open(many_parts, small_limit):
    assert len(vr.scan_log(prepared(many_parts))) > 500
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == small_limit


def test_where_the_system_allows_no_more_the_limit_is_named(many_parts, small_limit, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(open_files, "_ENOUGH", 0)
        check_refusal(
            lambda: prepared(many_parts), OpenFilesError, r"no more files open: raise its limit \(ulimit -n\)"
        )
    assert not (many_parts / "log").exists()
    with pytest.warns(vr.exceptions.ReusedWorkWarning, match="finished parts"):
        prepared(many_parts)


def test_other_errors_of_the_system_stay_what_they_are():
    with pytest.raises(OSError, match="no entry") as caught, open_files.naming_the_limit():
        raise OSError(errno.ENOENT, "no entry")
    assert caught.value.errno == errno.ENOENT
