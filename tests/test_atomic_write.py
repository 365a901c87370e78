"""Files are written whole or not at all, with the permissions that a person expects, and only where files can be."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from verirec.atomic_write import replace_file


def mode(file):
    return stat.S_IMODE(file.stat().st_mode)


@pytest.mark.parametrize(("umask", "wanted"), [(0o077, 0o600), (0o022, 0o644), (0o002, 0o664)])
def test_a_new_file_has_the_permissions_that_the_umask_leaves(tmp_path, umask, wanted):
    before = os.umask(umask)
    try:
        replace_file(tmp_path / "a", b"x")
    finally:
        os.umask(before)
    assert mode(tmp_path / "a") == wanted


def test_a_file_that_is_there_keeps_its_permissions(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "a").chmod(0o640)
    replace_file(tmp_path / "a", b"new")
    assert mode(tmp_path / "a") == 0o640
    assert (tmp_path / "a").read_bytes() == b"new"


def test_a_link_stays_one_and_what_it_points_to_is_written(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there" / "file")
    for content in (b"one", b"two"):
        replace_file(tmp_path / "link", content)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "there" / "file").read_bytes() == content


def test_what_is_no_file_is_left_alone(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", tmp_path):
        with pytest.raises(OSError, match="is not a regular file"):
            replace_file(place, b"x")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert [file.name for file in tmp_path.iterdir()] == ["pipe"]


def test_a_name_as_long_as_names_can_be_is_written(tmp_path):
    for name in ("a" * 255, "ä" * 127):
        replace_file(tmp_path / name, b"x")
        assert (tmp_path / name).read_bytes() == b"x"


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failure_leaves_what_was_there(tmp_path, monkeypatch, call):
    replace_file(tmp_path / "a", b"old")

    def failing(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(*((os, "fsync") if call == "fsync" else (Path, "replace")), failing)
    with pytest.raises(OSError, match="No space"):
        replace_file(tmp_path / "a", b"new")
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {"a": b"old"}
