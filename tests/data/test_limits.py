"""Limits of readers: what unpacks to far more than it takes is refused early, and each limit can be raised."""

from __future__ import annotations

import gzip
import io
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import verirec as vr
from verirec.data import limits
from verirec.exceptions import FileLimitError, MemoryBudgetError, ParameterError

ROWS = "".join(f"u{row % 9},i{row // 9},{row % 2}\n" for row in range(90))


@pytest.fixture(autouse=True)
def small_files_count(monkeypatch):
    """Have small files counted too: a bomb of 64 MB would take seconds."""
    monkeypatch.setattr(limits, "_SMALL", 10_000)


def text(tmp_path, content, name="log.csv"):
    file = tmp_path / name
    file.write_bytes(gzip.compress(content.encode()) if name.endswith(".gz") else content.encode())
    return file


def equal_rows(tmp_path, kind):
    """A log of one pair, a hundred thousand times."""
    if kind == "gz":
        return text(tmp_path, "user,item,rating\n" + "u,i,1\n" * 100_000, "log.csv.gz")
    file = tmp_path / "log.parquet"
    zeros = np.zeros(100_000, np.int32)
    pq.write_table(pa.table({"user": zeros, "item": zeros, "rating": zeros}), file)
    return file


@pytest.mark.parametrize("kind", ["gz", "parquet"])
def test_a_bomb_is_refused_and_can_be_allowed(tmp_path, kind):
    file = equal_rows(tmp_path, kind)
    with pytest.raises(FileLimitError, match=r"unpacks to [\d,]+ times its .* read_limits\(expansion=...\)"):
        vr.read_log(file)
    with vr.read_limits(expansion=1e6), pytest.warns(vr.exceptions.RepeatedPairWarning):
        assert len(vr.read_log(file)) == 1


def test_a_bomb_is_given_up_long_before_its_end(tmp_path, monkeypatch):
    file, read = equal_rows(tmp_path, "gz"), []
    unpacked = limits._Unpacked.read

    def slowly(self, size=-1):
        read.append(size)
        return unpacked(self, min(size, 1000))

    monkeypatch.setattr(limits._Unpacked, "read", slowly)
    with pytest.raises(FileLimitError):
        vr.read_log(file)
    assert len(read) < 300


def test_archives_of_predictions_too(tmp_path):
    log = vr.FeedbackLog.from_arrays([0, 1], [0, 1], [1, 0], n_users=2, n_items=2)
    file = tmp_path / "factors.npz"
    np.savez_compressed(file, user_factors=np.zeros((2, 50_000)), item_factors=np.zeros((2, 50_000)))
    with pytest.raises(FileLimitError, match="unpacks to"):
        vr.read_predictions(file, log)
    with vr.read_limits(expansion=1e6, memory=1e5), pytest.raises(MemoryBudgetError, match=r"2 arrays.* 1\.6 MB"):
        vr.read_predictions(file, log)
    with vr.read_limits(expansion=1e6):
        assert vr.read_predictions(file, log).user_factors.shape == (2, 50_000)


def test_an_archive_that_lies_about_its_size_is_refused(tmp_path):
    log = vr.FeedbackLog.from_arrays([0, 1], [0, 1], [1, 0], n_users=2, n_items=2)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (2, 10**9)})
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        for name in ("user_factors", "item_factors"):
            archive.writestr(f"{name}.npy", header.getvalue() + b"12345678")
    with pytest.raises(vr.exceptions.FileFormatError, match="not a readable npz"):
        vr.read_predictions(tmp_path / "a.npz", log)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"rows": 50}, "has about [0-9]+ rows, above the limit of 50"),
        ({"columns": 2}, "has 3 columns, above the limit of 2"),
        ({"field_bytes": 1}, "has a text of 2 bytes, above the limit of 1"),
    ],
)
def test_each_limit_is_kept_for_text(tmp_path, given, told):
    file = text(tmp_path, "user,item,rating\n" + ROWS)
    with vr.read_limits(**given), pytest.raises(FileLimitError, match=told):
        vr.read_log(file)
    assert len(vr.read_log(file)) == 90


@pytest.mark.parametrize(
    ("given", "told"),
    [({"rows": 50}, "has 90 rows"), ({"columns": 2}, "has 3 columns"), ({"field_bytes": 1}, "a text of 2 bytes")],
)
def test_and_for_parquet(tmp_path, given, told):
    table = pyarrow.csv.read_csv(io.BytesIO(("user,item,rating\n" + ROWS).encode()))
    pq.write_table(table, tmp_path / "log.parquet")
    with vr.read_limits(**given), pytest.raises(FileLimitError, match=told):
        vr.read_log(tmp_path / "log.parquet")
    assert len(vr.read_log(tmp_path / "log.parquet")) == 90


def test_compressed_text_is_counted_as_it_is_read(tmp_path):
    file = text(tmp_path, "user,item,rating\n" + ROWS, "log.csv.gz")
    with vr.read_limits(rows=50), pytest.raises(FileLimitError, match="at least 90 rows"):
        vr.read_log(file)
    assert vr.read_log(file).equals(vr.read_log(text(tmp_path, "user,item,rating\n" + ROWS)))


def test_what_reading_costs_is_said_before_it_is_read(tmp_path):
    file = text(tmp_path, "user,item,rating\n" + ROWS)
    with (
        vr.read_limits(memory=1000),
        pytest.raises(MemoryBudgetError, match=r"takes 9\.\d kB of memory, above the 1\.0"),
    ):
        vr.read_log(file)


def test_files_of_features_have_limits(tmp_path):
    features = tmp_path / "f.csv"
    features.write_text("user,x,y\n" + "".join(f"u{user},{user % 2},{user}\n" for user in range(9)))
    file = text(tmp_path, "user,item,rating\n" + ROWS)
    with vr.read_limits(columns=3):
        vr.read_log(file, user_features=features)
    features.write_text("user,x,y,z\n" + "".join(f"u{user},{user % 2},{user},{user % 3}\n" for user in range(9)))
    with vr.read_limits(columns=3), pytest.raises(FileLimitError, match="4 columns"):
        vr.read_log(file, user_features=features)


@pytest.mark.parametrize("given", [{"rows": 0}, {"rows": "a"}, {"lines": 3}, {"memory": float("nan")}])
def test_limits_are_checked(given):
    with pytest.raises(ParameterError), vr.read_limits(**given):
        pass


def test_limits_end_with_their_block():
    before = limits.current_limits().rows
    with vr.read_limits(rows=3), vr.read_limits(columns=4):
        assert (limits.current_limits().rows, limits.current_limits().columns) == (3, 4)
    assert limits.current_limits().rows == before
