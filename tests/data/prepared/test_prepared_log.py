"""A prepared log is the log that the same rows give in memory: its columns, its ids, and what is worked out of it."""

from __future__ import annotations

import json
import os
import pickle
from contextlib import nullcontext
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import verirec as vr
from verirec import scratch
from verirec.data.prepared import prepare as preparing
from verirec.data.prepared import sources
from verirec.exceptions import DroppedRowsWarning, LabelError, RepeatedPairWarning, ReusedWorkWarning
from verirec.progress import shown_to
from verirec.scratch import memory_limit

ROWS = 4_000
LAST = {"positive_from": 4, "duplicates": "last", "rating": "rating"}


@pytest.fixture(autouse=True)
def small_parts(monkeypatch, tmp_path_factory):
    """Work on so few rows at a time that each step has many parts, and keep nothing in anybody's cache."""
    monkeypatch.setenv("VERIREC_CACHE", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setattr(preparing, "_LEAST_ROWS", 333)
    monkeypatch.setattr(preparing, "_MOST_ROWS", 333)


@pytest.fixture(scope="module")
def frame():
    random = np.random.default_rng(4)
    users, items = random.integers(0, 90, ROWS), random.integers(0, 70, ROWS)
    return pd.DataFrame(
        {
            "user": 7 * users - 20,
            "item": [f"i{item}" for item in items],
            "rating": random.integers(1, 6, ROWS),
            "at": random.integers(0, 10**6, ROWS),
            "day": np.datetime64("2024-01-01", "us") + random.integers(0, 10**6, ROWS),
            "p": random.uniform(0.1, 1, ROWS),
            "w": random.integers(0, 3, ROWS) / 2,
            "shown": random.random(ROWS) < 0.1,
        }
    )


def in_files(frame, folder, form="parquet", cuts=(0, 1500, 1501, ROWS)):
    """Write a frame as several files, which differ in their sizes."""
    folder.mkdir(exist_ok=True)
    for number, (start, stop) in enumerate(pairwise(cuts)):
        part = frame.iloc[start:stop]
        if form == "parquet":
            # Small row groups, of which none ends where a piece does.
            table = pa.Table.from_pandas(part, preserve_index=False)
            pq.write_table(table, folder / f"{number}.parquet", row_group_size=250)
        else:
            part.to_csv(folder / f"{number}.csv", index=False)
    return f"{folder}/*.{form}"


WAYS = {
    "threshold": {"positive_from": 4, "duplicates": "last"},
    "levels": {"levels": [1, 2, 3, 4, 5], "duplicates": "first"},
    "highest": {"positive_from": 3, "duplicates": "highest"},
    "latest": {"positive_from": 3, "duplicates": "latest", "timestamp": "at"},
    "all columns": {
        "positive_from": 4,
        "duplicates": "latest",
        "timestamp": "day",
        "propensity": "p",
        "weight": "w",
        "unbiased": "shown",
    },
    "scale": {"positive_from": 4, "duplicates": "first", "scale": (1, 5)},
}


@pytest.mark.parametrize("form", ["parquet", "csv"])
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_the_same_rows_give_the_same_log(frame, tmp_path, way, form):
    whole = in_files(frame, tmp_path / "whole", form, (0, ROWS)).replace("*", "0")
    expected = vr.read_log(whole, user="user", item="item", rating="rating", **way)
    found = vr.scan_log(
        vr.prepare_log(in_files(frame, tmp_path / "parts", form), tmp_path / "log", rating="rating", **way)
    )
    assert expected.equals(found)
    assert expected.fingerprint == found.fingerprint
    for name, values in vars(expected).items():
        if isinstance(values, np.ndarray):
            assert getattr(found, name).dtype == values.dtype, name
    order = np.lexsort((expected.users, expected.items))
    for name in ("users", "items", "labels"):
        np.testing.assert_array_equal(getattr(found.by_item, name), getattr(expected, name)[order])


def test_estimates_of_it_are_the_same_bits(frame, tmp_path):
    whole = in_files(frame, tmp_path / "whole", cuts=(0, ROWS)).replace("*", "0")
    there = vr.read_log(whole, positive_from=4, duplicates="last")
    found = vr.scan_log(in_files(frame, tmp_path / "parts"), positive_from=4, duplicates="last")
    scores = np.random.default_rng(0).uniform(0.1, 0.9, there.shape)
    rates = vr.NoiseRates(0.1, 0.2)
    assert vr.estimate(scores, there, noise_rates=rates) == vr.estimate(scores, found, noise_rates=rates)


@pytest.mark.parametrize("ids", [lambda n: f"{n:05}", str, lambda n: str(n) if n % 3 else f"x{n}"])
def test_ids_of_text_files_are_what_they_are_in_one_file(tmp_path, ids):
    """Plain integers are numbers if all are, whichever piece has an id that is none."""
    random = np.random.default_rng(1)
    rows = pd.DataFrame({"user": np.sort(random.integers(0, 2_000, ROWS)), "item": random.integers(0, 50, ROWS)})
    rows = rows.drop_duplicates().assign(user=lambda all: all["user"].map(ids), rating=1)
    rows.iloc[::2, 2] = 0
    whole = in_files(rows, tmp_path / "whole", "csv", (0, len(rows))).replace("*", "0")
    expected = vr.read_log(whole)
    parts = in_files(rows, tmp_path / "parts", "csv", (0, 100, 2000, len(rows)))
    assert expected.equals(vr.scan_log(vr.prepare_log(parts, tmp_path / "log")))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_ids_that_are_numbers_in_some_text_files_and_words_in_others_are_text_in_all(order, tmp_path):
    texts = ["007,1,5\n1,2,1\n2,1,4\n", "x,1,5\n1,i,1\n"]
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.csv").write_text(f"user,item,rating\n{text}")
    (tmp_path / "all.csv").write_text("user,item,rating\n" + "".join(texts))
    expected = vr.read_log(tmp_path / "all.csv", positive_from=4)
    found = vr.prepare_log([tmp_path / f"{number}.csv" for number in order], tmp_path / "log", positive_from=4)
    assert expected.equals(vr.scan_log(found))
    assert expected.user_ids.ids().tolist() == ["007", "1", "2", "x"]


def test_ratings_that_become_halves_late_in_a_text_file(tmp_path):
    """Arrow settles a column's type by the first block of a file, a megabyte."""
    lines = [f"{row % 997},{row // 997 + 1000},{1 + row % 5}" for row in range(120_000)]
    lines[-1] = lines[-1][:-1] + "4.5"
    file = tmp_path / "ratings.csv"
    file.write_text("user,item,rating\n" + "\n".join(lines) + "\n")
    expected = vr.read_log(file, positive_from=4)
    assert expected.equals(vr.scan_log(vr.prepare_log(file, tmp_path / "log", positive_from=4)))


def test_a_word_late_in_a_column_of_ratings_does_not_make_a_file_be_read_whole(tmp_path, monkeypatch):
    def refuse(*given):
        raise AssertionError("the file is read whole")

    lines = [f"{row % 997},{row // 997 + 1000},{1 + row % 5}" for row in range(120_000)]
    lines[-1] = lines[-1][:-1] + "four"
    lines[5], lines[-2] = lines[5][:-1] + "2.5", lines[-2][:-1] + "4.5"
    file = tmp_path / "ratings.csv"
    file.write_text("user,item,rating\n" + "\n".join(lines) + "\n")
    options = {"positive_from": 4, "drop_missing": True}
    with pytest.warns(DroppedRowsWarning, match="is no number"):
        expected = vr.read_log(file, **options)
    monkeypatch.setattr(sources, "read_columns", refuse)
    with pytest.warns(DroppedRowsWarning, match="1 of .* rows are left out: column 'rating' is no number"):
        found = vr.scan_log(vr.prepare_log(file, tmp_path / "log", **options))
    assert expected.equals(found)
    with pytest.raises(LabelError, match=r"ratings.csv.*'four'"):
        vr.prepare_log(file, tmp_path / "other", positive_from=4)
    assert not (tmp_path / "other").exists()


def test_a_worker_takes_as_much_memory_as_was_asked_for(frame, tmp_path):
    log = vr.scan_log(vr.prepare_log(in_files(frame, tmp_path / "parts"), tmp_path / "log", **LAST), memory="70MB")
    some = log.select(np.arange(len(log)) > 3)
    with vr.engine.Processes(1) as engine:
        assert list(engine.map(lambda part: (len(some), memory_limit())[part], [0, 1])) == [len(some), memory_limit()]
        assert list(engine.map(lambda part: len(log), [0])) == [len(log)]
    assert memory_limit() <= 70_000_000


def test_a_log_takes_its_memory_along_to_a_process_of_the_users_own(frame, tmp_path, monkeypatch):
    log = vr.scan_log(vr.prepare_log(in_files(frame, tmp_path / "parts"), tmp_path / "log", **LAST), memory="70MB")
    asked, pickled = memory_limit(), pickle.dumps(log)
    monkeypatch.setattr(scratch._KEEPER, "memory", None)
    assert len(pickle.loads(pickled)) == len(log)
    assert memory_limit() == asked


def test_logs_in_the_cache_that_nobody_opens_are_removed_in_the_end(frame, tmp_path):
    first, second, third = (
        in_files(frame, tmp_path / name, cuts=cuts).replace("*", "0")
        for name, cuts in {"a": (0, 1_000), "b": (0, 2_000), "c": (0, 3_000)}.items()
    )
    logs = [vr.scan_log(file, **LAST) for file in (first, second)]
    for log in logs:
        os.utime(log.folder, times=(0, 0))
    vr.scan_log(second, **LAST)
    vr.scan_log(third, **LAST)
    assert [log.folder.is_dir() for log in logs] == [False, True]
    assert logs[0].labels.sum() == vr.scan_log(first, **LAST).labels.sum()


def test_catalogues_and_features(frame, tmp_path):
    rows = frame.drop_duplicates(["user", "item"])
    ages = pd.DataFrame({"user": 7 * np.arange(120) - 20, "age": np.arange(120) % 50, "town": ["a", "b", "c"] * 40})
    items = tmp_path / "items.txt"
    items.write_text("".join(f"i{item}\n" for item in range(100)))
    options = {"positive_from": 4, "user_features": ages, "all_items": items}
    expected = vr.FeedbackLog.from_frame(rows, rating="rating", **options)
    parts = in_files(rows, tmp_path / "parts", cuts=(0, 900, len(rows)))
    found = vr.scan_log(vr.prepare_log(parts, tmp_path / "log", rating="rating", **options))
    assert expected.equals(found)
    assert found.user_feature_names == ("age", "town=a", "town=b", "town=c")


def test_rows_that_are_left_out_are_counted(frame, tmp_path):
    rows = frame.drop_duplicates(["user", "item"]).astype({"rating": float})
    rows.iloc[[3, 700, 701], 2] = np.nan
    parts = in_files(rows, tmp_path / "parts", "csv", (0, 900, len(rows)))
    told = rf"^3 of {len(rows):,} rows are left out, in 2 pieces \(first: 0.csv, .*: 1 of 333 rows are left out"
    with pytest.warns(DroppedRowsWarning, match=told) as warned:
        prepared = vr.prepare_log(parts, tmp_path / "log", rating="rating", positive_from=4, drop_missing=True)
    assert {one.filename for one in warned} == {__file__}
    kept = rows.dropna()
    assert len(vr.scan_log(prepared)) == len(kept)


def test_repeats_that_agree_are_merged_with_a_word(frame, tmp_path):
    rows = frame.drop_duplicates(["user", "item"])
    twice = pd.concat([rows, rows.iloc[:50], rows.iloc[5:10]])
    whole = in_files(twice, tmp_path / "whole", cuts=(0, len(twice))).replace("*", "0")
    with pytest.warns(RepeatedPairWarning) as theirs:
        expected = vr.read_log(whole, rating="rating", positive_from=4)
    with pytest.warns(RepeatedPairWarning) as ours:
        found = vr.scan_log(vr.prepare_log(whole, tmp_path / "log", rating="rating", positive_from=4))
    assert str(ours[0].message) == str(theirs[0].message)
    assert expected.equals(found)


@pytest.fixture
def prepared(frame, tmp_path):
    return vr.prepare_log(in_files(frame, tmp_path / "parts"), tmp_path / "log", positive_from=4, duplicates="last")


def test_it_goes_to_another_process_by_its_name(prepared):
    log = vr.scan_log(prepared)
    sent = pickle.dumps(log)
    assert len(sent) < 1_000
    assert log.equals(pickle.loads(sent))


def test_parts_of_it_are_ordinary_logs(prepared):
    log = vr.scan_log(prepared)
    part = log.select(log.labels == 1)
    assert type(part) is vr.FeedbackLog
    assert part.labels.all()


def test_its_columns_cannot_be_written(prepared):
    log = vr.scan_log(prepared)
    with pytest.raises(ValueError, match="read-only"):
        log.labels[0] = 1


def test_any_reader_of_arrow_reads_it(prepared):
    with pa.ipc.open_file(prepared / "by_user.arrow") as opened:
        rows = opened.read_all()
    assert rows.column_names == ["users", "items", "labels", "ratings"]
    assert len(rows) == json.loads((prepared / "log.json").read_text())["rows"]


def test_nothing_but_the_log_is_left(prepared):
    assert sorted(file.name for file in prepared.parent.iterdir()) == ["log", "parts"]
    assert {file.name for file in prepared.iterdir()} == {
        "by_user.arrow",
        "by_item.arrow",
        "users.arrow",
        "items.arrow",
        "log.json",
    }


def test_scanning_files_twice_prepares_them_once(frame, tmp_path, monkeypatch):
    monkeypatch.setenv("VERIREC_CACHE", str(tmp_path / "cache"))
    parts = in_files(frame, tmp_path / "parts")
    first = vr.scan_log(parts, positive_from=4, duplicates="last")
    again = vr.scan_log(parts, positive_from=4, duplicates="last")
    other = vr.scan_log(parts, positive_from=3, duplicates="last")
    assert first.folder == again.folder != other.folder
    assert len(list((tmp_path / "cache" / "logs").iterdir())) == 2


def test_stopped_work_goes_on_where_it_was(frame, tmp_path, monkeypatch):
    """Whichever step it is stopped in, and the result is the same."""
    parts = in_files(frame, tmp_path / "parts")
    options = {"positive_from": 4, "duplicates": "last"}
    expected = vr.scan_log(vr.prepare_log(parts, tmp_path / "whole", **options))
    done = 0
    for step in (2, 9, 14, 22, 30):
        calls = iter(range(step - done))

        def part(place, name, make, calls=calls, real=preparing.Workplace.part):
            if not place.has(name) and next(calls, None) is None:
                raise KeyboardInterrupt
            return real(place, name, make)

        with monkeypatch.context() as patched:
            patched.setattr(preparing.Workplace, "part", part)
            reuse = pytest.warns(ReusedWorkWarning, match=f"^{done} finished parts of") if done else nullcontext()
            with reuse, pytest.raises(KeyboardInterrupt):
                vr.prepare_log(parts, tmp_path / "log", **options)
        assert not (tmp_path / "log").exists()
        done = step
    with pytest.warns(ReusedWorkWarning, match="30 finished parts"):
        assert expected.equals(vr.scan_log(vr.prepare_log(parts, tmp_path / "log", **options)))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["log", "parts", "whole"]


def test_parts_of_an_earlier_run_say_nothing_of_the_pace(frame, tmp_path, monkeypatch):
    parts = in_files(frame, tmp_path / "parts")
    heard = {}

    def listen(task):
        heard[task.what] = task.done, task.skipped

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(preparing.Workplace, "finish", stop)
        with shown_to(listen), pytest.raises(KeyboardInterrupt):
            vr.prepare_log(parts, tmp_path / "log", positive_from=4, duplicates="last")
    first = dict(heard)
    with shown_to(listen), pytest.warns(ReusedWorkWarning):
        vr.prepare_log(parts, tmp_path / "log", positive_from=4, duplicates="last")
    for what in ("Reading ratings", "Sorting by user", "Sorting by item"):
        assert first[what] == (first[what][0], 0)
        assert heard[what] == (first[what][0],) * 2


def test_parts_of_other_settings_are_not_used(frame, tmp_path, monkeypatch):
    parts = in_files(frame, tmp_path / "parts")

    def fail(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(preparing.Steps, "by_user", fail)
        with pytest.raises(KeyboardInterrupt):
            vr.prepare_log(parts, tmp_path / "log", positive_from=4, duplicates="last")
    log = vr.scan_log(vr.prepare_log(parts, tmp_path / "log", positive_from=2, duplicates="last"))
    assert log.labels.mean() > 0.7


@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_how_many_rows_there_are_to_read_is_guessed_well(frame, tmp_path, ending):
    """Of packed text by how much of it the first rows take: it was six times too many."""
    heard = []
    for number in range(3):
        part = frame.sample(40_000, replace=True, random_state=number)
        part["user"] = np.arange(len(part))
        part[["user", "item", "rating"]].to_csv(tmp_path / f"{number}.{ending}", index=False)
    with shown_to(lambda task: heard.append((task.what, task.done, task.total))):
        vr.prepare_log(tmp_path / f"*.{ending}", tmp_path / "log", positive_from=4, duplicates="last")
    reading = [(done, total) for what, done, total in heard if what == "Reading ratings"]
    assert all(100_000 < total < 150_000 for _, total in reading)
    assert reading[-1] == (120_000, 120_000)
