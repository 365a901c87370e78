"""Long arrays on disk: room for them is asked for when they are made."""

from __future__ import annotations

import errno
import os
import shutil
import weakref
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

from refusals import check_refusal
from verirec import scratch
from verirec.exceptions import DiskSpaceError


@pytest.fixture(autouse=True)
def small_memory(monkeypatch):
    monkeypatch.setattr(scratch._KEEPER, "memory", 64_000_000)


def test_a_long_array_is_zeros_in_a_file_that_has_room_on_the_disk(monkeypatch):
    sizes = []
    monkeypatch.setattr(scratch.mmap, "mmap", lambda file, size: sizes.append(os.fstat(file)) or bytearray(size))
    monkeypatch.setattr(scratch._KEEPER, "add", lambda one: None)
    assert not scratch.long_array(1_000_000).any()
    (found,) = sizes
    assert found.st_size == 8_000_000
    if hasattr(os, "posix_fallocate"):
        assert found.st_blocks * 512 >= 8_000_000
    assert len(scratch.long_array(100)) == 100
    assert len(sizes) == 1


def test_an_array_that_the_disk_has_no_room_for_is_refused_in_one_line(monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: namedtuple("Usage", "free")(1_000))
    check_refusal(
        lambda: scratch.long_array(1_000_000),
        DiskSpaceError,
        r"^the work needs 8.0 MB in .*, which has 1.0 kB free; \$TMPDIR names another place$",
    )


def test_a_disk_that_others_fill_meanwhile(monkeypatch):
    def full(descriptor, size):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(scratch, "_allocate", full)
    check_refusal(lambda: scratch.long_array(1_000_000), DiskSpaceError, "^the work needs 8.0 MB in ")


def test_an_array_that_is_not_long_takes_no_disk(monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: namedtuple("Usage", "free")(0))
    assert scratch.long_array((10, 10), np.int8).shape == (10, 10)


def test_nothing_of_ours_runs_when_a_map_goes(tmp_path):
    (tmp_path / "file").write_bytes(bytes(10))
    found = scratch.mapped_file(tmp_path / "file")
    assert [ref.__callback__ for ref in weakref.getweakrefs(found)] == [None]
    assert found in scratch._KEEPER._maps()
    del found
    assert not any(len(one) == 10 for one in scratch._KEEPER._maps())


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="the system does not tell what is in memory")
def test_pages_of_some_arrays_leave_memory_and_those_of_others_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(scratch._KEEPER, "memory", 2_000_000_000)

    def mapped(name):
        (tmp_path / name).write_bytes(bytes(1 << 20))
        return np.frombuffer(scratch.mapped_file(tmp_path / name), np.int64)

    one, other = mapped("one"), mapped("other")
    assert one.sum() + other.sum() == 0
    assert (kilobytes_in_memory("one"), kilobytes_in_memory("other")) == (1024, 1024)
    scratch.let_pages_of_go(one[10:20].reshape(2, 5), np.zeros(3))
    assert (kilobytes_in_memory("one"), kilobytes_in_memory("other")) == (0, 1024)


def kilobytes_in_memory(name):
    """Return how much of a mapped file this process has in memory."""
    lines = iter(Path("/proc/self/smaps").read_text().splitlines())
    next(line for line in lines if line.endswith(f"/{name}"))
    return int(next(line for line in lines if line.startswith("Rss:")).split()[1])
