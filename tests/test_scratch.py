"""Long arrays on disk: room for them is asked for when they are made."""

from __future__ import annotations

import errno
import os
import shutil
import weakref
from collections import namedtuple

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
