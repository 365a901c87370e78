"""Logs that scanning keeps: whole ones are used again, damaged ones made again, old ones removed, and nobody else's."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path

import pytest

import verirec as vr
from verirec.data.prepared.workplace import sole_preparer

KEY = f"{7:024x}"
LOG = {"positive_from": 4}


@pytest.fixture
def logs(tmp_path, monkeypatch):
    monkeypatch.setenv("VERIREC_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "logs"


@pytest.fixture
def files(tmp_path):
    """Two logs' files."""
    texts = {"one": "1,1,5\n1,2,1\n2,1,4\n", "two": "1,1,1\n1,2,5\n"}
    for name, rows in texts.items():
        (tmp_path / f"{name}.csv").write_text(f"user,item,rating\n{rows}")
    return [tmp_path / f"{name}.csv" for name in texts]


def made(place):
    place.mkdir(parents=True)
    (place / "file").write_text("mine")
    return place


def grow_old(*folders):
    for folder in folders:
        os.utime(folder, times=(0, 0))


@pytest.mark.parametrize("name", ["experiment-1", "2024", KEY + "0", f".{KEY}", f"{KEY}.parts", f".{KEY}.parts.old"])
def test_a_folder_of_somebodys_own_stays_however_old(logs, files, name):
    own = made(logs / name)
    grow_old(own)
    vr.scan_log(files[0], **LOG)
    assert (own / "file").read_text() == "mine"


@pytest.mark.parametrize("name", [KEY, f".{KEY}.parts"])
def test_old_logs_and_old_parts_are_removed(logs, files, name):
    grow_old(made(logs / name))
    log = vr.scan_log(files[0], **LOG)
    assert list(logs.iterdir()) == [log.folder]


@pytest.mark.parametrize("name", [KEY, f".{KEY}.parts"])
def test_what_another_process_works_on_stays(logs, files, name):
    there = made(logs / name)
    grow_old(there)
    with sole_preparer(logs / KEY):
        vr.scan_log(files[0], **LOG)
        assert (there / "file").is_file()


def test_a_log_that_is_opened_by_its_folder_is_in_use(logs, files, monkeypatch):
    folder = vr.scan_log(files[0], **LOG).folder
    grow_old(folder)
    monkeypatch.chdir(folder.parent)
    vr.scan_log(folder.name)
    vr.scan_log(files[1], **LOG)
    assert folder.is_dir()


def test_a_log_elsewhere_keeps_its_time(logs, files, tmp_path):
    folder = vr.prepare_log(files[0], tmp_path / "log", **LOG)
    grow_old(folder)
    vr.scan_log(folder)
    assert folder.stat().st_mtime == 0


DAMAGES = {
    "no facts": lambda folder: (folder / "log.json").unlink(),
    "no column": lambda folder: (folder / "by_item.arrow").unlink(),
    "half a file": lambda folder: os.truncate(folder / "by_user.arrow", 900),
    "nothing": lambda folder: [file.unlink() for file in folder.iterdir()],
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_log_is_prepared_again(logs, files, damage):
    first = vr.scan_log(files[0], **LOG)
    damage(first.folder)
    again = vr.scan_log(files[0], **LOG)
    assert again.equals(vr.read_log(files[0], **LOG))
    assert list(logs.iterdir()) == [again.folder] == [first.folder]


def test_of_several_that_find_a_log_damaged_one_prepares_it(logs, files):
    folder = vr.scan_log(files[0], **LOG).folder
    whole = Path(shutil.copytree(folder, logs.parent / "whole"))
    made_by_another = whole.stat().st_ino
    (folder / "log.json").unlink()
    with ThreadPoolExecutor(1) as pool:
        with sole_preparer(folder):
            found = pool.submit(vr.scan_log, files[0], **LOG)
            wait([found], timeout=0.5)
            assert not found.done()
            shutil.rmtree(folder)
            whole.rename(folder)
        assert len(found.result(timeout=60)) == 3
    assert folder.stat().st_ino == made_by_another


def test_an_old_log_that_was_removed_halfway_is_not_found(logs, files, monkeypatch):
    folder = vr.scan_log(files[0], **LOG).folder
    grow_old(folder)

    def halfway(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, suppress(KeyboardInterrupt):
        patched.setattr(shutil, "rmtree", halfway)
        vr.scan_log(files[1], **LOG)
    assert not folder.exists()
    other = vr.scan_log(files[1], **LOG).folder
    assert list(logs.iterdir()) == [other]
