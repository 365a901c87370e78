"""What cannot be prepared or opened is refused in one line, and nothing half-written is left."""

from __future__ import annotations

import contextlib
import gzip
import json
import shutil
from collections import namedtuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import verirec as vr
from refusals import check_refusal
from verirec.data.prepared import columns_file
from verirec.exceptions import (
    ColumnError,
    DiskSpaceError,
    DuplicatePairError,
    EmptyLogError,
    FileFormatError,
    IdError,
    LabelError,
    MissingValueError,
    ParameterError,
    UnknownIdError,
)


def rows(count=600, **changed):
    columns = {"user": np.arange(count) // 20, "item": np.arange(count) % 20, "rating": 1 + np.arange(count) % 5}
    return pa.table(columns | changed)


def parts(folder, *tables):
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"{number}.parquet")
    return f"{folder}/*.parquet"


def texts(folder, *files):
    for number, text in enumerate(files):
        (folder / f"{number}.csv").write_text(text)
    return f"{folder}/*.csv"


def truncated(folder):
    named = parts(folder, rows(), rows())
    content = (folder / "1.parquet").read_bytes()
    (folder / "1.parquet").write_bytes(content[: len(content) // 2])
    return named


def damaged_page(folder):
    """Whose end, which says where all is, is whole."""
    named = parts(folder, rows(), rows(20_000, user=np.random.default_rng(0).integers(0, 2**40, 20_000)))
    content = bytearray((folder / "1.parquet").read_bytes())
    content[4:2_000] = bytes(1_996)
    (folder / "1.parquet").write_bytes(bytes(content))
    return named


def truncated_text(folder):
    (folder / "0.csv.gz").write_bytes(gzip.compress(TWO.encode()))
    (folder / "1.csv.gz").write_bytes(gzip.compress(TWO.encode())[:-12])
    return f"{folder}/*.gz"


TWO = "user,item,rating\n1,1,5\n1,2,1\n"

FILES = [
    (lambda to: f"{to}/*.parquet", FileFormatError, "no file is called"),
    (lambda to: to / "nothing.parquet", FileFormatError, "no file '.*nothing.parquet'"),
    (lambda to: to, FileFormatError, r"'.*/in' is a folder: name the files in it, by a pattern such as '\*.parquet'"),
    *(
        (lambda to, odd=odd: f"{to}/{odd}/*.csv", ParameterError, r"a pattern has \*\* for folders .* got '[^']*\*\*")
        for odd in ("part**", "**part", "a**b", "***")
    ),
    (lambda to: [], ParameterError, "paths must be one or more names of files"),
    (lambda to: [to / "a.csv", to / "a.csv"], ParameterError, "named twice"),
    (
        lambda to: parts(to, rows(), rows().drop_columns(["item"])),
        ColumnError,
        r"1.parquet: no column 'item'.*0.parquet",
    ),
    (
        lambda to: parts(to, rows(), rows(rating=[4.5] * 600)),
        ColumnError,
        "column 'rating' must be of one type in all files: integers in 0.parquet, floats in 1.parquet",
    ),
    (
        lambda to: parts(to, rows(), rows(user=[f"u{row}" for row in range(600)])),
        ColumnError,
        "column 'user' must be of one type in all files: integers in 0.parquet, strings in 1.parquet",
    ),
    (truncated, FileFormatError, "1.parquet is not a readable parquet file"),
    (truncated_text, FileFormatError, "1.csv.gz is not a readable csv file: Truncated compressed stream"),
    (damaged_page, FileFormatError, "1.parquet is not a readable parquet file"),
    (
        lambda to: [parts(to, rows()), texts(to, TWO)],
        FileFormatError,
        "files of one kind are needed; 0.parquet and 0.csv",
    ),
    (lambda to: texts(to, TWO, TWO.replace("item", "thing")), ColumnError, "1.csv: no column 'item'"),
    (lambda to: texts(to, TWO, ""), FileFormatError, "1.csv is empty"),
    (lambda to: texts(to, TWO, TWO + "3,4\n"), FileFormatError, "1.csv is not a readable csv file"),
    (
        lambda to: texts(to, TWO, TWO + "3,,4\n"),
        MissingValueError,
        "1.csv: column 'item' has missing values in 1 of 3 rows",
    ),
    (lambda to: texts(to, TWO, TWO + "3,4,x\n"), LabelError, "1.csv.*must hold numbers.*row 2 has 'x'"),
    (
        lambda to: parts(to, rows(), rows(user=np.arange(600.0))),
        ColumnError,
        "integers in 0.parquet, floats in 1.parquet",
    ),
    (lambda to: parts(to, rows(user=np.arange(600.0))), IdError, "0.parquet: column 'user' holds 600 floats"),
    (lambda to: parts(to, rows(0)), EmptyLogError, "the log is empty"),
    (lambda to: parts(to, rows(rating=[5] * 600)), LabelError, "positive_from=4 makes all 600 labels 1"),
    (
        lambda to: parts(to, rows(), rows(1, rating=[4])),
        DuplicatePairError,
        r"1 user-item pairs occur with both labels, in 2 of 601 rows \(the first is user 0, item 0\); choose which",
    ),
]


@pytest.mark.parametrize(("files", "error", "message"), FILES)
def test_files_that_cannot_be_a_log(tmp_path, files, error, message):
    (tmp_path / "in").mkdir()
    named = files(tmp_path / "in")
    check_refusal(lambda: vr.prepare_log(named, tmp_path / "log", positive_from=4), error, message)
    # Parts that are finished are kept for the next attempt.
    assert {one.name for one in tmp_path.iterdir()} <= {"in", ".log.parts"}


def catalogue(folder, name):
    folder.mkdir()
    (folder / "ids.txt.parquet").write_text("1\n2\n")
    for kind, ids in (("floats", [1.5]), ("nulls", [1, None]), ("none", pa.array([], pa.int64()))):
        pq.write_table(pa.table({"user": ids}), folder / f"{kind}.parquet")
    return folder / name


OPTIONS = [
    ({"memory": "lots"}, ParameterError, "memory must be such as 2GB"),
    ({"memory": "1MB"}, ParameterError, "at least 64MB"),
    ({"memory": "9" * 400}, ParameterError, "at least 64MB"),
    ({"duplicates": "latest"}, ParameterError, "needs timestamps"),
    ({"duplicates": "best"}, ParameterError, "duplicates must be"),
    ({"levels": [1, 2, 3]}, ParameterError, "levels or positive_from, not both"),
    (
        {"all_users": [0, 1]},
        UnknownIdError,
        "0.parquet: column 'user' has ids outside the catalogue in 560 of 600 rows",
    ),
    ({"all_users": "ids.txt.parquet"}, FileFormatError, "ids.txt.parquet is not a readable parquet file"),
    (
        {"all_users": "floats.parquet"},
        FileFormatError,
        "column 'user' must hold ids, integers or text; got double, and 0 m",
    ),
    ({"all_users": "nulls.parquet"}, FileFormatError, "must hold ids, integers or text; got int64, and 1 missing"),
    ({"all_users": "none.parquet"}, EmptyLogError, "none.parquet is empty: it must have at least one id"),
    ({"scale": (1, 3)}, LabelError, "0.parquet: column 'rating' must be within the scale"),
    ({"rating": "stars"}, ColumnError, "0.parquet: no column 'stars'"),
]


@pytest.mark.parametrize(("options", "error", "message"), OPTIONS)
def test_options_that_do_not_fit(tmp_path, options, error, message):
    named = parts(tmp_path, rows())
    if isinstance(options.get("all_users"), str):
        options = {"all_users": catalogue(tmp_path / "given", options["all_users"])}
    check_refusal(lambda: vr.prepare_log(named, tmp_path / "log", **({"positive_from": 4} | options)), error, message)
    assert not (tmp_path / "log").exists()


def test_no_room_on_the_disk_is_said_before_the_work(tmp_path, monkeypatch):
    named = parts(tmp_path, rows())
    monkeypatch.setattr(shutil, "disk_usage", lambda _: namedtuple("Usage", "free")(1_000))
    check_refusal(
        lambda: vr.prepare_log(named, tmp_path / "log", positive_from=4),
        DiskSpaceError,
        r"preparing the log needs about \d.* in .*, which has 1.0 kB free",
    )
    assert not list(tmp_path.glob(".log.parts/*/run-*"))


def test_a_place_that_is_taken(tmp_path):
    named = parts(tmp_path, rows())
    (tmp_path / "log").mkdir()
    check_refusal(lambda: vr.prepare_log(named, tmp_path / "log"), ParameterError, "is there already")


def test_unknown_options_are_no_options(tmp_path):
    with pytest.raises(TypeError, match=r"prepare_log\(\) got an unexpected keyword argument 'positive'"):
        vr.prepare_log(parts(tmp_path, rows()), tmp_path / "log", positive=4)


@pytest.fixture
def log(tmp_path):
    return vr.prepare_log(parts(tmp_path, rows()), tmp_path / "log", positive_from=4)


def changed(file, change):
    facts = json.loads(file.read_text())
    change(facts)
    file.write_text(json.dumps(facts))


def flip(file, place):
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    file.write_bytes(bytes(content))


DAMAGES = [
    (lambda log: (log / "log.json").unlink(), "is no prepared log: it has no log.json"),
    (lambda log: (log / "log.json").write_text("{"), "log.json is damaged"),
    (
        lambda log: changed(log / "log.json", lambda facts: facts.update(version=9)),
        "is a prepared log of version 9; this verirec reads version 3: prepare it again",
    ),
    *(
        (lambda log, key=key: changed(log / "log.json", lambda facts: facts.pop(key)), "log.json is damaged")
        for key in ("n_users", "levels", "checksums", "dtypes", "user_checksum", "item_feature_names")
    ),
    (lambda log: changed(log / "log.json", lambda facts: facts.update(checksums=3)), "log.json is damaged"),
    (
        lambda log: (log / "by_user.arrow").write_bytes((log / "by_user.arrow").read_bytes().replace(b"<i4", b"<f4")),
        "by_user.arrow has columns or types other than log.json says",
    ),
    (lambda log: flip(log / "by_user.arrow", 1_000), "by_user.arrow has a wrong checksum in column"),
    (lambda log: (log / "by_user.arrow").unlink(), "by_user.arrow is missing"),
    (lambda log: (log / "by_user.arrow").write_bytes(b""), "by_user.arrow is not a readable Arrow file"),
    (
        lambda log: (log / "by_user.arrow").write_bytes((log / "by_user.arrow").read_bytes()[:3_000]),
        "by_user.arrow is not a readable Arrow file",
    ),
    (lambda log: flip(log / "by_item.arrow", 1_000), "by_item.arrow has a wrong checksum in column"),
    (lambda log: (log / "by_item.arrow").unlink(), "by_item.arrow is missing"),
    (lambda log: (log / "users.arrow").write_bytes(b"ARROW1"), "users.arrow is damaged"),
    (lambda log: shutil.copy(log / "items.arrow", log / "users.arrow"), "users.arrow is damaged"),
    (lambda log: flip(log / "users.arrow", 400), "users.arrow is damaged"),
    (lambda log: (log / "items.arrow").unlink(), "items.arrow is damaged"),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGES)
def test_folders_that_are_no_whole_log(log, damage, message):
    damage(log)
    check_refusal(lambda: vr.scan_log(log), FileFormatError, message)


def test_no_flipped_bit_is_anything_but_a_damaged_file(log):
    """Wherever it is: in a column, its name or type, or in what says where it is."""
    file = log / "by_user.arrow"
    whole = file.read_bytes()
    columns = {name: values.copy() for name, values in columns_file.read_columns_file(file).items()}
    for place in range(0, len(whole), 11):
        content = bytearray(whole)
        content[place] ^= 1 << place % 8
        file.write_bytes(bytes(content))
        with contextlib.suppress(FileFormatError):  # What is between the columns may be anything.
            found = vr.scan_log(log)
            for name, values in columns.items():
                np.testing.assert_array_equal(getattr(found, name), values)


def test_settings_that_log_json_lacks(log):
    changed(log / "log.json", lambda facts: facts.pop("made_from"))
    check_refusal(lambda: vr.scan_log(log, positive_from=4), FileFormatError, "log.json is damaged")


def test_no_flipped_bit_of_what_a_log_says_of_itself_is_believed(log):
    file = log / "log.json"
    whole = file.read_bytes()
    for place in range(0, len(whole), 3):
        content = bytearray(whole)
        content[place] ^= 1 << place % 5
        file.write_bytes(bytes(content))
        with contextlib.suppress(FileFormatError):  # A blank that is another.
            vr.scan_log(log)
            assert json.loads(bytes(content)) == json.loads(whole)


def test_settings_other_than_those_it_was_prepared_with(log):
    assert len(vr.scan_log(log, positive_from=4)) == 600
    check_refusal(
        lambda: vr.scan_log(log, positive_from=3),
        ParameterError,
        r"was prepared with positive_from=4; got positive_from=3: leave it out, or prepare the log again",
    )
    check_refusal(lambda: vr.scan_log(log, weight="w"), ParameterError, "was prepared without weight; got weight='w'")


def test_catalogues_other_than_those_it_was_prepared_with_are_named_by_their_file(log, tmp_path):
    (tmp_path / "users.txt").write_text("1\n2\n")
    check_refusal(
        lambda: vr.scan_log(log, all_users=tmp_path / "users.txt"),
        ParameterError,
        r"was prepared without all_users; got all_users='users.txt': leave it out, or prepare the log again with it$",
    )
    check_refusal(
        lambda: vr.scan_log(log, all_items=[1, 2]), ParameterError, r"without all_items; got all_items=\.\.\.:"
    )


def test_a_survey_of_users_that_a_prepared_log_lacks_says_when_they_are_named(log, tmp_path):
    opened = vr.scan_log(log)
    pair = str(opened.user_ids.ids()[0]), str(opened.item_ids.ids()[0])
    (tmp_path / "survey.csv").write_text(f"user,item,true_label\n{','.join(pair)},1\n999999,{pair[1]},0\n")
    check_refusal(
        lambda: vr.SurveySample.from_file(tmp_path / "survey.csv", opened),
        UnknownIdError,
        r"users that have no row are named when a log is prepared: prepare it again with all_users=\.\.\.$",
    )
