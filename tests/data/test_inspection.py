"""Everything that is wrong with a file, at once: each fault is found, and its option mends it."""

from __future__ import annotations

import gzip
import warnings

import pandas as pd
import pytest

import verirec as vr
from verirec.data.inspection import check_file, check_frame
from verirec.exceptions import VerirecError

HEADER = "user,item,rating\n"
GOOD = "".join(f"u{row % 40},{row % 7},{'13445'[row % 5]}\n" for row in range(280))
FAULTS = {
    "nothing": (HEADER + GOOD, [], {"positive_from": 4.0}),
    "user": (HEADER + ",1,2\n" + GOOD, ["column 'user' has no value"], {"drop_missing": True}),
    "word": (HEADER + GOOD + "a,1,five\n", ["column 'rating' is no number (first: 'five')"], {"drop_missing": True}),
    "null": (HEADER + GOOD + "a,NULL,5\n", ["column 'item' has no value"], {"drop_missing": True}),
    "fields": (HEADER + GOOD + "a,1\n", ["1 lines do not have as many fields as"], {"drop_missing": True}),
    "spaces": (HEADER + GOOD + "a ,1,5\n", ["column 'user' has spaces or .0 around ids"], {"clean_ids": True}),
    "floats": (HEADER + GOOD + "a,1.0,5\n", ["column 'item' has spaces or .0"], {"clean_ids": True}),
    "scale": (
        HEADER + GOOD + "a,1,99\n", ["column 'rating' is not within 1 and 5, as nearly all of it is"],
        {"scale": (1, 5), "drop_missing": True},
    ),
    "repeats": (HEADER + GOOD + "u0,0,5\n", ["1 user-item pairs occur with both labels"], {"duplicates": "last"}),
    "separator": ((HEADER + GOOD).replace(",", ";"), ["fields are separated by ';'"], {"delimiter": ";"}),
    "header": (GOOD, ["there is no header: the first line is u0, 0, 1"], {"columns": ["user", "item", "rating"]}),
    "encoding": (HEADER + GOOD + "josé,1,5\n", ["the text is not UTF-8; cp1252 reads it"], {"encoding": "cp1252"}),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_and_its_option_mends_it(tmp_path, fault):
    text, named, mend = FAULTS[fault]
    file = tmp_path / "ratings.csv"
    file.write_text(text, encoding=mend.get("encoding", "utf-8"))
    found = check_file(file)
    told = [one.what for one in found.faults]
    assert [any(one.startswith(name) for one in told) for name in named] == [True] * len(named)
    # The label rule is what every file of stars lacks.
    assert len(told) == len(named) + 1
    assert found.mend == mend | {"positive_from": 4.0}
    assert found.log is not None
    assert found.log.equals(silently(vr.read_log, file, **found.mend))
    assert (fault == "nothing") == is_read(file, found.log)


@pytest.mark.parametrize(
    "fault", [name for name in FAULTS if name not in ("fields", "separator", "header", "encoding")]
)
def test_a_frame_has_the_faults_of_its_file(tmp_path, fault):
    text, _, mend = FAULTS[fault]
    file = tmp_path / "ratings.csv"
    file.write_text(text)
    frame = pd.read_csv(file, dtype={"user": str, "item": str}, keep_default_na=False)
    of_file, of_frame = check_file(file), check_frame(frame)
    assert [(one.what, one.rows, one.first) for one in of_frame.faults] == [
        (one.what, one.rows, one.first) for one in of_file.faults
    ]
    assert of_frame.mend == of_file.mend == mend | {"positive_from": 4.0}
    assert of_frame.log.equals(silently(vr.FeedbackLog.from_frame, frame, **of_frame.mend))


def test_a_frame_whose_ids_mix_numbers_and_text_is_mended_by_clean_ids():
    frame = pd.DataFrame({"user": [7, "ann", "7"], "item": [1, 1, 2], "rating": [1, 0, 1]})
    found = check_frame(frame)
    assert [one.what.partition(" (")[0] for one in found.faults] == ["column 'user' mixes 2 types: int, str"]
    assert found.mend == {"clean_ids": True}
    assert found.log.user_ids.ids().tolist() == ["7", "ann"]


def test_what_is_no_frame_is_a_fault_that_nothing_mends():
    found = check_frame("ratings.csv")
    assert [one.mend for one in found.faults] == [{}]
    assert found.log is None


def is_read(file, log):
    """Tell whether the file is read as this log without its options."""
    try:
        return vr.read_log(file, positive_from=4).equals(log)
    except VerirecError:
        return False


def silently(function, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments, **options)


def test_all_faults_of_a_file_are_listed_at_once_with_their_first_rows(tmp_path):
    file = tmp_path / "ratings.csv.gz"
    messy = "user;item;rating\n ann;7.0;5\nbob;7;four\nbob;;3\n" + GOOD.replace(",", ";") + "a;1\nu0;0;5\nb;1;99\n"
    file.write_bytes(gzip.compress(messy.encode()))
    found = check_file(file)
    assert found.mend == {
        "delimiter": ";", "drop_missing": True, "clean_ids": True, "scale": (1, 5), "positive_from": 4.0,
        "duplicates": "last",
    }  # fmt: skip
    rows = {one.what.partition(" (")[0]: (one.rows, one.first) for one in found.faults if one.rows}
    assert rows == {
        "column 'user' has spaces or .0 around ids": (1, (0,)),
        "column 'item' has spaces or .0 around ids": (1, (0,)),
        "column 'rating' is not within 1 and 5, as nearly all of it is": (1, (284,)),
        "column 'item' has no value": (1, (2,)),
        "column 'rating' is no number": (1, (1,)),
    }
    assert len(found.log) == 281


def test_what_options_mend_already_is_not_listed(tmp_path):
    file = tmp_path / "ratings.csv"
    file.write_text(HEADER + ",1,2\n" + GOOD)
    assert check_file(file, drop_missing=True, positive_from=3).faults == ()
    assert check_file(file, drop_missing=True, positive_from=3).mend == {}
    timed = tmp_path / "timed.csv"
    timed.write_text("user,item,label,when\na,1,0,1\na,1,1,2\nb,2,0,3\n")
    assert check_file(timed, timestamp="when").mend == {"duplicates": "latest"}


def test_what_no_option_mends_is_said_and_nothing_is_read(tmp_path):
    file = tmp_path / "ratings.csv"
    file.write_text("who,what,much\na,1,5\n")
    found = check_file(file)
    assert found.log is None
    assert "cannot tell which column is the user" in found.faults[-1].what
    assert found.faults[-1].mend == {}


def test_a_table_in_parquet_is_checked_too(tmp_path):
    file = tmp_path / "ratings.parquet"
    pd.DataFrame({"user": [1.0, 2.0, None], "item": ["a", "b ", "c"], "rating": [1, 0, 1]}).to_parquet(file)
    found = check_file(file)
    assert found.mend == {"clean_ids": True, "drop_missing": True}
    assert len(found.log) == 2


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_logs_own_table_is_read_back_without_options(tmp_path, small_log, ending):
    frame, file = small_log.to_frame(), tmp_path / f"log.{ending}"
    frame.to_csv(file, index=False) if ending == "csv" else frame.to_parquet(file, index=False)
    back = vr.read_log(file)
    for name in ("users", "items", "labels", "timestamps", "propensities", "weights", "unbiased"):
        assert getattr(back, name).tolist() == getattr(small_log, name).tolist(), name
    assert vr.FeedbackLog.from_frame(frame).equals(back)
