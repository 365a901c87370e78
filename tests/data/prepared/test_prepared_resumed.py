"""What a stopped run leaves: what it said is said again, and what it finished is on the disk."""

from __future__ import annotations

import os

import pytest

import verirec as vr
from verirec.data.prepared import prepare as preparing
from verirec.data.prepared.workplace import Workplace
from verirec.exceptions import DroppedRowsWarning, ReusedWorkWarning


def test_lines_that_were_left_out_are_counted_again_after_a_stop(tmp_path, monkeypatch):
    file = tmp_path / "ratings.csv"
    file.write_text("user,item,rating\n1,1,5\n1,2\n1,2,1\n2,1\n")
    options = {"positive_from": 4, "drop_missing": True}

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(preparing.Steps, "by_user", stop)
        with pytest.warns(DroppedRowsWarning, match=r"ratings.csv: 2 lines"), pytest.raises(KeyboardInterrupt):
            vr.prepare_log(file, tmp_path / "log", **options)
    with pytest.warns(DroppedRowsWarning, match=r"ratings.csv: 2 lines"), pytest.warns(ReusedWorkWarning):
        assert len(vr.scan_log(vr.prepare_log(file, tmp_path / "log", **options))) == 2


def test_a_part_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    place, synced = Workplace(tmp_path / "log", "key"), []

    def fsync(descriptor):
        synced.append((os.fstat(descriptor).st_ino, place.has("one")))

    def make(folder):
        (folder / "rows.arrow").write_bytes(b"rows")
        return {}

    monkeypatch.setattr(os, "fsync", fsync)
    place.part("one", make)
    part = place.folder / "one"
    before = {inode for inode, named in synced if not named}
    assert before == {one.stat().st_ino for one in (part, part / "rows.arrow", part / "part.json")}
    assert [inode for inode, named in synced if named] == [place.folder.stat().st_ino]
