"""What a stopped run leaves: what it said is said again, and what it finished is on the disk."""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path

import pytest

import verirec as vr
from verirec.data.prepared import prepare as preparing
from verirec.data.prepared.workplace import Workplace
from verirec.exceptions import DroppedRowsWarning, FileFormatError, LabelError, ParameterError, ReusedWorkWarning


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
    (own.parent / "empty").mkdir()
    file = ratings(tmp_path / "ratings.csv", [(1, 1, 5), (1, 2, 1), (2, 1, 4)])
    vr.prepare_log(file, tmp_path / "log", positive_from=4)
    assert {path.name for path in own.parent.iterdir()} == {"empty", "thesis"}
    assert (own / "text").read_text() == "mine"


def stopped_before_the_end(monkeypatch, file, out, **options):
    """Prepare a log up to the last step: all parts are finished."""

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Workplace, "finish", stop)
        with pytest.raises(KeyboardInterrupt):
            vr.prepare_log(file, out, **options)


def removed_halfway(monkeypatch, then):
    """Let all that is removed keep what says that it is finished, and nothing else."""

    def halfway(folder, **_):
        for file in Path(folder).rglob("*.arrow"):
            file.unlink()
        then()

    monkeypatch.setattr(shutil, "rmtree", halfway)


def interrupt():
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    "then",
    [pytest.param(interrupt, id="stopped"), pytest.param(lambda: None, id="files that cannot be removed")],
)
def test_parts_that_were_removed_halfway_are_not_taken_for_finished(tmp_path, monkeypatch, then):
    file = ratings(tmp_path / "ratings.csv", [(1, 1, 5), (1, 2, 1), (2, 1, 4)])
    expected = vr.read_log(file, positive_from=4)
    stopped_before_the_end(monkeypatch, file, tmp_path / "log", positive_from=4)
    with monkeypatch.context() as patched:
        removed_halfway(patched, then)
        stopped_before_the_end(monkeypatch, file, tmp_path / "log", positive_from=5)
    assert expected.equals(vr.scan_log(vr.prepare_log(file, tmp_path / "log", positive_from=4)))
    assert sorted(one.name for one in tmp_path.iterdir()) == ["log", "ratings.csv"]


def test_parts_outlast_a_folder_that_was_made_in_the_logs_place_by_mistake(tmp_path, monkeypatch):
    file = ratings(tmp_path / "ratings.csv", [(1, 1, 5), (1, 2, 1), (2, 1, 4)])
    stopped_before_the_end(monkeypatch, file, tmp_path / "log", positive_from=4)
    (tmp_path / "log").mkdir()
    with pytest.raises(ParameterError, match="is there already"):
        vr.prepare_log(file, tmp_path / "log", positive_from=4)
    (tmp_path / "log").rmdir()
    with pytest.warns(ReusedWorkWarning):
        assert len(vr.scan_log(vr.prepare_log(file, tmp_path / "log", positive_from=4))) == 3


def test_parts_beside_a_finished_log_are_removed_when_its_place_is_asked_for(tmp_path, monkeypatch):
    file = ratings(tmp_path / "ratings.csv", [(1, 1, 5), (1, 2, 1), (2, 1, 4)])
    stopped_before_the_end(monkeypatch, file, tmp_path / "log", positive_from=5)
    vr.prepare_log(file, tmp_path / "other", positive_from=4).rename(tmp_path / "log")
    with pytest.raises(ParameterError, match="is there already"):
        vr.prepare_log(file, tmp_path / "log", positive_from=5)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["log", "ratings.csv"]


def test_a_log_that_another_one_took_the_place_of_is_refused_in_another_process(tmp_path):
    file = ratings(tmp_path / "ratings.csv", [(1, 1, 5), (1, 2, 1), (2, 1, 4)])
    sent = pickle.dumps(vr.scan_log(vr.prepare_log(file, tmp_path / "log", positive_from=4)))
    assert len(pickle.loads(sent)) == 3
    (tmp_path / "log").rename(tmp_path / "before")
    ratings(file, [(1, 1, 1), (1, 2, 5), (2, 1, 4)])
    vr.prepare_log(file, tmp_path / "log", positive_from=4)
    with pytest.raises(FileFormatError, match="has another log than when it was opened: open it again"):
        pickle.loads(sent)


def test_the_other_order_of_a_log_that_another_one_took_the_place_of_is_refused(tmp_path):
    file = ratings(tmp_path / "ratings.csv", [(1, 1, 5), (1, 2, 1), (2, 1, 4)])
    opened = pickle.loads(pickle.dumps(vr.scan_log(vr.prepare_log(file, tmp_path / "log", positive_from=4))))
    (tmp_path / "log").rename(tmp_path / "before")
    ratings(file, [(1, 1, 1), (1, 2, 5), (2, 1, 4)])
    vr.prepare_log(file, tmp_path / "log", positive_from=4)
    with pytest.raises(FileFormatError, match="has another log than when it was opened: open it again"):
        _ = opened.by_item


def test_a_log_is_found_wherever_the_process_goes(tmp_path, monkeypatch):
    file = ratings(tmp_path / "ratings.csv", [(1, 1, 5), (1, 2, 1), (2, 1, 4)])
    vr.prepare_log(file, tmp_path / "log", positive_from=4)
    monkeypatch.chdir(tmp_path)
    log = vr.scan_log("log")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    again = pickle.loads(pickle.dumps(log))
    assert again.equals(log)
    assert again.by_item.items.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda file: ratings(file, [(1, 1, 1), (1, 2, 5), (2, 1, 4)]), id="of the same size"),
        pytest.param(lambda file: ratings(file, [(1, 1, 1)]), id="shorter"),
        pytest.param(lambda file: file.unlink(), id="gone"),
    ],
)
def test_a_file_that_changes_while_it_is_read_is_refused_and_nothing_of_it_is_used_again(tmp_path, monkeypatch, change):
    file = ratings(tmp_path / "ratings.csv", [(1, 1, 5), (1, 2, 1), (2, 1, 4)])
    take = preparing.Intake.take

    def taken_while_it_changes(*given):
        change(file)
        return take(*given)

    with monkeypatch.context() as patched:
        patched.setattr(preparing.Intake, "take", taken_while_it_changes)
        with pytest.raises(FileFormatError, match=r"^ratings.csv changed while the log was prepared from it"):
            vr.prepare_log(file, tmp_path / "log", positive_from=4)
    assert not (tmp_path / "log").exists()
    ratings(file, [(3, 1, 1), (3, 2, 5)])
    log = vr.scan_log(vr.prepare_log(file, tmp_path / "log", positive_from=4))
    assert log.user_ids.ids().tolist() == [3]
    assert log.labels.tolist() == [0, 1]


def test_a_file_that_has_its_size_and_time_again_is_another_one(tmp_path, monkeypatch):
    """Neither parts nor a log in the cache are of what it was before."""
    monkeypatch.setenv("VERIREC_CACHE", str(tmp_path / "cache"))
    file = ratings(tmp_path / "ratings.csv", [(1, 1, 5), (1, 2, 1), (2, 1, 4)])
    known = file.stat()

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(preparing.Steps, "by_user", stop)
        with pytest.raises(KeyboardInterrupt):
            vr.prepare_log(file, tmp_path / "log", positive_from=4)
    assert vr.scan_log(file, positive_from=4).labels.tolist() == [1, 0, 1]
    ratings(file, [(1, 1, 1), (1, 2, 5), (2, 1, 4)])
    os.utime(file, ns=(known.st_atime_ns, known.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (known.st_size, known.st_mtime_ns)
    assert vr.scan_log(vr.prepare_log(file, tmp_path / "log", positive_from=4)).labels.tolist() == [0, 1, 1]
    assert vr.scan_log(file, positive_from=4).labels.tolist() == [0, 1, 1]


def test_a_mistake_leaves_no_hidden_folder(tmp_path):
    file = ratings(tmp_path / "ratings.csv", [(1, 1, "five"), (1, 2, 5)])
    with pytest.raises(LabelError):
        vr.prepare_log(file, tmp_path / "log", positive_from=4)
    assert [one.name for one in tmp_path.iterdir()] == ["ratings.csv"]


def test_a_link_that_leads_nowhere_is_taken(tmp_path):
    file = ratings(tmp_path / "ratings.csv", [(1, 1, 5), (1, 2, 1)])
    (tmp_path / "log").symlink_to(tmp_path / "gone")
    with pytest.raises(ParameterError, match="is there already"):
        vr.prepare_log(file, tmp_path / "log", positive_from=4)
