"""Several processes that prepare one log: one does the work, others are refused in a line or wait for it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait

import pytest

import verirec as vr
from refusals import check_refusal
from verirec.data.prepared.workplace import Workplace, sole_preparer
from verirec.exceptions import ParameterError


@pytest.fixture
def ratings(tmp_path, monkeypatch):
    monkeypatch.setenv("VERIREC_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "ratings.csv"
    file.write_text("user,item,rating\n1,1,5\n1,2,1\n")
    return file


def test_a_second_preparer_is_refused_and_leaves_the_work_of_the_first(ratings, tmp_path):
    unfinished = tmp_path / ".log.parts" / f"{7:024x}" / "run-00000-00000.tmp"
    with sole_preparer(tmp_path / "log"):
        unfinished.mkdir(parents=True)
        check_refusal(
            lambda: vr.prepare_log(ratings, tmp_path / "log", positive_from=4), ParameterError, "another run is writing"
        )
        assert unfinished.is_dir()
    assert len(vr.scan_log(vr.prepare_log(ratings, tmp_path / "log", positive_from=4))) == 2
    assert not (tmp_path / ".log.parts").exists()


def test_who_scans_the_same_files_waits_and_takes_what_was_prepared(ratings, tmp_path):
    folder = vr.scan_log(ratings, positive_from=4).folder
    away = folder.rename(tmp_path / "away")
    made = away.stat().st_ino
    with ThreadPoolExecutor(1) as pool:
        with sole_preparer(folder):
            found = pool.submit(vr.scan_log, ratings, positive_from=4)
            wait([found], timeout=0.3)
            assert not found.done()
            away.rename(folder)
        assert found.result(timeout=60).folder == folder
    assert folder.stat().st_ino == made
    assert [one.name for one in folder.parent.iterdir()] == [folder.name]


def test_the_place_stays_held_when_the_work_begins(tmp_path):
    with sole_preparer(tmp_path / "log"):
        Workplace(tmp_path / "log", f"{7:024x}")
        check_refusal(lambda: sole_preparer(tmp_path / "log").__enter__(), ParameterError, "another run is writing")
    assert not (tmp_path / ".log.parts").exists()
