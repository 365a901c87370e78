"""What a stopped run leaves: what it said is said again, and what it finished is on the disk."""

from __future__ import annotations

import os
import pickle

import pytest

import verirec as vr
from verirec.data.prepared import prepare as preparing
from verirec.data.prepared.workplace import Workplace
from verirec.exceptions import DroppedRowsWarning, FileFormatError, ReusedWorkWarning


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


def ratings(file, rows):
    file.write_text("user,item,rating\n" + "".join(f"{user},{item},{rating}\n" for user, item, rating in rows))
    return file


def test_what_somebody_has_where_a_log_is_prepared_stays(tmp_path):
    own = tmp_path / ".log.parts" / "thesis"
    own.mkdir(parents=True)
    (own / "text").write_text("mine")
    file = ratings(tmp_path / "ratings.csv", [(1, 1, 5), (1, 2, 1), (2, 1, 4)])
    vr.prepare_log(file, tmp_path / "log", positive_from=4)
    assert [path.name for path in own.parent.iterdir()] == ["thesis"]
    assert (own / "text").read_text() == "mine"


def test_a_log_that_another_one_took_the_place_of_is_refused_in_another_process(tmp_path):
    file = ratings(tmp_path / "ratings.csv", [(1, 1, 5), (1, 2, 1), (2, 1, 4)])
    sent = pickle.dumps(vr.scan_log(vr.prepare_log(file, tmp_path / "log", positive_from=4)))
    assert len(pickle.loads(sent)) == 3
    (tmp_path / "log").rename(tmp_path / "before")
    ratings(file, [(1, 1, 1), (1, 2, 5), (2, 1, 4)])
    vr.prepare_log(file, tmp_path / "log", positive_from=4)
    with pytest.raises(FileFormatError, match="has another log than when it was opened: open it again"):
        pickle.loads(sent)
