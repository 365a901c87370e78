"""What finished parts and logs in the cache are found again by: inputs, settings and the code."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import verirec as vr
from verirec.data.prepared import prepare as preparing
from verirec.data.prepared import settings
from verirec.data.prepared.settings import Settings
from verirec.engine.worker import versions
from verirec.exceptions import ReusedWorkWarning


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("VERIREC_CACHE", str(tmp_path / "cache"))
    place = tmp_path / "ratings.csv"
    place.write_text("user,item,rating\n1,1,5\n1,2,1\n2,1,4\n")
    return place


def test_a_log_that_other_code_prepared_is_not_found_in_the_cache(file, monkeypatch):
    before = vr.scan_log(file, positive_from=4).folder
    assert vr.scan_log(file, positive_from=4).folder == before
    monkeypatch.setattr(settings, "versions", lambda: versions()._replace(verirec="another"))
    assert vr.scan_log(file, positive_from=4).folder != before


@pytest.mark.parametrize("changed", [None, "verirec", "libraries"])
def test_parts_that_other_versions_finished_are_not_used(file, tmp_path, monkeypatch, changed):
    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(preparing.Steps, "by_user", stop)
        with pytest.raises(KeyboardInterrupt):
            vr.prepare_log(file, tmp_path / "log", positive_from=4)
    if changed == "verirec":
        monkeypatch.setattr(settings, "versions", lambda: versions()._replace(verirec="another"))
    elif changed == "libraries":
        monkeypatch.setattr(settings, "versions", lambda: versions()._replace(libraries=(("numpy", "0"),)))
    with pytest.warns(ReusedWorkWarning) if changed is None else nullcontext():
        vr.prepare_log(file, tmp_path / "log", positive_from=4)


def said(**catalogues):
    return Settings.of(catalogues, function="prepare_log").said()


def frame(**changed):
    return pd.DataFrame({"user": [f"u{number}" for number in range(5)], "age": range(5)} | changed)


def test_catalogues_that_are_equal_are_the_same_whatever_was_done_with_them():
    used = frame()
    used["user"].nunique()
    used.columns.get_loc("age")
    filtered = pd.concat([frame(), frame()], ignore_index=True)[5:]
    same = [frame(), used, frame()[["user"]].assign(age=range(5)), filtered]
    assert len({said(user_features=one)["user_features"] for one in same}) == 1
    chunked = pa.concat_tables([pa.table(pl.DataFrame(frame())[:2]), pa.table(pl.DataFrame(frame())[2:])])
    assert said(user_features=chunked) == said(user_features=chunked.combine_chunks())
    others = [frame(age=range(1, 6)), frame(user=list("abcde")), frame(colour="red"), frame().rename(columns=str.upper)]
    assert len({said(user_features=one)["user_features"] for one in [frame(), *others]}) == 5


def test_ids_that_are_equal_are_the_same_whatever_holds_them():
    ids = ["u0", "u1"]
    same = [
        ids,
        tuple(f"u{number}" for number in range(2)),
        np.array(ids, object),
        pd.Series(ids, dtype=object),
        iter(ids),
    ]
    assert len({said(all_users=one)["all_users"] for one in same}) == 1
    others = [ids, ids[:1], ids[::-1], [0, 1], np.array([0.0, 1.0])]
    assert len({said(all_users=one)["all_users"] for one in others}) == 5


def test_ids_that_can_be_read_once_are(file, tmp_path):
    log = vr.scan_log(vr.prepare_log(file, tmp_path / "log", positive_from=4, all_items=iter(range(5))))
    assert log.n_items == 5
    assert vr.scan_log(tmp_path / "log", all_items=range(5)).equals(log)
