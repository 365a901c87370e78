import json
import pathlib

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refusals import check_refusal
from verirec import FeedbackLog, read_log
from verirec.data.feature_columns import FeatureScale
from verirec.data.feature_files import feature_table
from verirec.data.features import feature_matrix
from verirec.exceptions import (
    ColumnError,
    DataError,
    FeatureWarning,
    FileFormatError,
    IdError,
    MissingValueError,
    ParameterError,
    UnknownIdError,
)

LOG = pa.table({"user": ["ann", "bob", "ann"], "item": [7, 7, 9], "label": [1, 0, 1]})
ITEMS = {"item": [9, 7, 8], "price": [90.0, 70.0, 80.0], "new": [True, False, True], "size": [9, 7, 8]}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table])
def test_features_are_lined_up_with_positions_and_are_the_catalogue(make):
    log = FeedbackLog.from_frame(LOG, item_features=make(ITEMS))
    assert log.item_ids.ids().tolist() == [7, 8, 9]
    assert log.item_features.tolist() == [[70, 0, 7], [80, 1, 8], [90, 1, 9]]
    assert log.item_features.dtype == np.float64
    assert log.items.tolist() == [0, 2, 0]
    assert log.user_features is None


@given(st.permutations(range(6)))
def test_the_order_of_the_feature_table_does_not_matter(order):
    features = pa.table({"item": [10 * number for number in order], "x": order})
    log = FeedbackLog.from_frame(pa.table({"user": [1, 1], "item": [50, 0], "label": [1, 0]}), item_features=features)
    assert log.item_features.ravel().tolist() == list(range(6))


def test_row_numbers_of_a_frame_that_was_filtered_or_sorted_are_no_feature():
    rows = pd.DataFrame(ITEMS).sort_values("price", ascending=False)
    log = FeedbackLog.from_frame(LOG, item_features=rows)
    assert log.item_features.tolist() == [[70, 0, 7], [80, 1, 8], [90, 1, 9]]
    assert log.item_feature_names == ("price", "new", "size")


def test_a_named_catalogue_wins_and_other_features_are_left_out():
    log = FeedbackLog.from_frame(LOG, all_items=[9, 7], item_features=pa.table(ITEMS).select(["item", "price"]))
    assert log.item_ids.ids().tolist() == [7, 9]
    assert log.item_features.tolist() == [[70], [90]]


def test_a_table_of_ids_alone_gives_no_features_but_a_catalogue():
    log = FeedbackLog.from_frame(LOG, item_features=pa.table({"item": [7, 8, 9]}))
    assert log.n_items == 3
    assert log.item_features.shape == (3, 0)


BAD_FEATURES = [
    (pa.table({"item": [7], "x": [1]}), {}, UnknownIdError, r"^column 'item' has ids that item_features lacks .* 9$"),
    (pa.table({"item": ["7", "9"], "x": [1, 2]}), {}, UnknownIdError, r"^column 'item': integers .*strings"),
    (
        pa.table({"item": [7, 9], "x": [1, 2]}),
        {"all_items": [7, 8, 9]},
        UnknownIdError,
        r"^item_features must cover every id of the log; 1 of 3 are missing \(first: 8\)$",
    ),
    (
        pa.table({"thing": [7, 9], "x": [1, 2]}),
        {},
        ColumnError,
        r"^item_features must have the id column 'item'; it has thing, x$",
    ),
    (
        pa.table({"item": [7, 9, 7], "x": [1, 2, 3]}),
        {},
        IdError,
        r"^item_features' column 'item' must be distinct; 1 occur more than once \(first: 7\)$",
    ),
    (pa.table({"item": [7.0, 9.0], "x": [1, 2]}), {}, IdError, r"^item_features' column 'item' holds 2 floats"),
    (
        pa.table({"item": [7, None], "x": [1, 2]}),
        {},
        MissingValueError,
        r"^item_features' column 'item' has missing values in 1 of 2 rows \(first: 1",
    ),
    (
        pa.table({"item": [7, 9], "when": [[1], [2]]}),
        {},
        DataError,
        r"^item_features' column 'when' must hold numbers or text; got list",
    ),
    (
        pa.table({"item": [7, 9, 8], "x": ["1", "2.5", "old"]}),
        {},
        DataError,
        r"^item_features' column 'x' must hold numbers, as most of its rows do; .* where row 2 has 'old'$",
    ),
    (
        pa.table({"item": range(40), "title": [f"film {n}" for n in range(40)]}),
        {},
        DataError,
        r"^item_features' column 'title' has 40 levels in 40 rows, too many for a category",
    ),
    (
        pa.table({"item": [7, 9], "x": pa.nulls(2)}),
        {},
        DataError,
        r"^item_features' column 'x' is empty: leave it out$",
    ),
    (
        pa.table({"item": [7, 9], "x": [1.0, None]}),
        {},
        MissingValueError,
        r"^item_features' column 'x' has missing values in 1 of 2 rows \(first: 1, counting from 0\)",
    ),
    (
        pa.table({"item": [7, 9], "x": [np.nan, 1.0]}),
        {},
        MissingValueError,
        r"^item_features' column 'x' has missing values in 1 of 2 rows \(first: 0, counting from 0\)",
    ),
    (
        pa.table({"item": [7, 9], "x": [np.inf, 1.0]}),
        {},
        DataError,
        r"^item_features must be finite; 1 of 2 values are NaN or infinite$",
    ),
    (np.eye(2), {}, DataError, r"^item_features must be a pandas, polars or pyarrow frame .*; got ndarray$"),
    (
        pd.DataFrame([[7, 1, 2], [9, 1, 2]], columns=["item", "x", "x"]),
        {},
        ColumnError,
        r"^item_features cannot be read: .*'x'",
    ),
    (
        pa.table({"item": [7, 7, 9], "x": [1, 2, 3]}),
        {"all_items": [7, 9]},
        IdError,
        r"^item_features' column 'item' must be distinct",
    ),
    (
        pa.table({"thing": [7, 9], "x": [1, 2]}),
        {"all_items": [7, 9]},
        ColumnError,
        r"^item_features must have the id column 'item'",
    ),
]


@pytest.mark.parametrize(("features", "options", "error", "message"), BAD_FEATURES)
def test_bad_features_are_refused_in_one_line_that_says_where(features, options, error, message):
    with pytest.raises(error, match=message) as caught:
        FeedbackLog.from_frame(LOG, item_features=features, **options)
    assert caught.type is error
    assert "\n" not in str(caught.value)


def test_bad_features_are_refused_before_a_warning_about_repeats():
    repeated = pa.table({"user": [1, 1], "item": [7, 7], "label": [1, 1]})
    with pytest.raises(DataError, match=r"^item_features' column 'x' is empty"):
        FeedbackLog.from_frame(repeated, item_features=pa.table({"item": [7], "x": pa.nulls(1)}))


@pytest.mark.parametrize("kind", [np.int8, np.float32, bool])
def test_a_matrix_of_any_numbers_becomes_a_float64_copy(kind):
    given = np.eye(2, dtype=kind)
    matrix = feature_matrix("user_features", given, 2)
    assert matrix.dtype == np.float64
    assert matrix.tolist() == [[1, 0], [0, 1]]
    assert not np.shares_memory(matrix, given)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.eye(3), r"^user_features must have one row per position, shape \(2, d\); got \(3, 3\)$"),
        ([1, 2], r"^user_features must have one row per position, shape \(2, d\); got \(2,\)$"),
        ([["a"], ["b"]], r"^user_features must be numbers; got <U1$"),
        ([[None], [1]], r"^user_features must be numbers; got object$"),
        ([[1, np.nan], [np.inf, -np.inf]], r"^user_features must be finite; 3 of 4 values are NaN or infinite$"),
    ],
)
def test_a_bad_matrix_is_refused(values, message):
    with pytest.raises(DataError, match=message):
        feature_matrix("user_features", values, 2)


# Categories, lists, files


KINDS = {
    "item": [9, 7, 8],
    "price": [90.0, 70.0, 80.0],
    "colour": ["red", " blue", None],
    "kinds": ["b|a", "", "b | c"],
}
NAMES = ("price", "colour=blue", "colour=red", "kinds=a", "kinds=b", "kinds=c")
VALUES = [[70, 1, 0, 0, 0, 0], [80, 0, 0, 0, 1, 1], [90, 0, 1, 1, 1, 0]]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_text_is_a_category_and_bars_make_lists(make):
    log = FeedbackLog.from_frame(LOG, item_features=make(KINDS))
    assert log.item_feature_names == NAMES
    assert log.item_features.tolist() == VALUES
    assert log.select([0]).item_feature_names == NAMES
    assert log.user_feature_names is None


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
@pytest.mark.parametrize("path", [str, pathlib.Path])
def test_features_come_from_files(tmp_path, ending, path):
    frame = pd.DataFrame(KINDS)
    file = tmp_path / f"items.{ending}"
    if ending == "parquet":
        frame.to_parquet(file)
    else:
        frame.to_csv(file, index=False, sep="," if ending == "csv" else "\t")
    LOG.to_pandas().to_csv(tmp_path / "log.csv", index=False)
    for log in (
        FeedbackLog.from_frame(LOG, item_features=path(file)),
        read_log(tmp_path / "log.csv", item_features=path(file)),
    ):
        assert log.item_ids.ids().tolist() == [7, 8, 9]
        assert log.item_feature_names == NAMES
        assert log.item_features.tolist() == VALUES


def test_ids_of_a_file_stay_text_where_the_logs_are(tmp_path):
    (tmp_path / "users.csv").write_text("user,age\n007,30\nann,40\n")
    log = FeedbackLog.from_frame(
        pa.table({"user": ["007", "ann"], "item": [1, 1], "label": [1, 0]}), user_features=tmp_path / "users.csv"
    )
    assert log.user_ids.ids().tolist() == ["007", "ann"]


def test_a_constant_column_is_said_to_say_nothing():
    table = pa.table({"item": [7, 9], "x": [1, 1], "colour": ["red", "red"], "y": [1, 2]})
    with pytest.warns(FeatureWarning) as told:
        log = FeedbackLog.from_frame(LOG, item_features=table)
    assert [str(one.message) for one in told] == [
        f"item_features' column {name!r} is the same in all 2 rows: it says nothing" for name in ("x", "colour")
    ]
    assert log.item_feature_names == ("x", "colour=red", "y")


@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [
        ("items.xlsx", "", ParameterError, "features must end in .csv, .tsv or .parquet; got 'items.xlsx'"),
        ("nope.csv", None, FileFormatError, "no file '.*nope.csv'"),
        ("empty.csv", "", FileFormatError, "empty.csv is not a readable csv file"),
        ("broken.parquet", "hello", FileFormatError, "broken.parquet is not a readable parquet file"),
        ("ragged.csv", "item,x\n7,1\n9\n", FileFormatError, "ragged.csv is not a readable csv file"),
        ("other.csv", "thing,x\n7,1\n", ColumnError, "other.csv, must have the id column 'item'; it has thing"),
        ("blank.csv", "item,x\n7,1\n,2\n", MissingValueError, "blank.csv, column 'item' has missing values in 1 of 2"),
        ("few.csv", "item,x\n7,1\n8,2\n", UnknownIdError, "column 'item' has ids that item_features lacks .* 9$"),
        ("words.csv", "item,x\n7,1\n9,2\n8,old\n", DataError, "column 'x' must hold numbers, as most .* has 'old'"),
    ],
)
def test_bad_files_of_features_are_refused_in_one_line(tmp_path, name, content, error, message):
    if content is not None:
        (tmp_path / name).write_text(content)
    check_refusal(lambda: FeedbackLog.from_frame(LOG, item_features=tmp_path / name), error, message)


def test_another_table_is_brought_to_the_columns_of_training():
    log = FeedbackLog.from_frame(LOG, item_features=pa.table(KINDS))
    scale = FeatureScale.of(log.item_features, log.item_feature_names)
    again = FeatureScale.read(json.loads(json.dumps(scale.plain())))
    np.testing.assert_array_equal(again.align(log.item_features, NAMES, "x"), scale.apply(log.item_features))
    names = ("price", "colour=green", "colour=red", "kinds=c")
    with pytest.warns(FeatureWarning, match=r"^x has levels that were not there in training, .* colour=green$"):
        found = again.align(np.array([[80.0, 1, 0, 1]]), names, "x")
    np.testing.assert_array_equal(found, scale.apply(np.array([[80.0, 0, 0, 0, 0, 1]])))
    for wrong, error, message in (
        (("price", "colour=red"), ColumnError, "x' column 'kinds' is missing; the columns were: colour, kinds, price"),
        ((*NAMES, "age"), ColumnError, "x' column 'age' was not there in training"),
        (None, DataError, "x must have 6 columns, as in training; got 3"),
    ):
        values = np.zeros((1, 3 if wrong is None else len(wrong)))
        check_refusal(lambda values=values, wrong=wrong: again.align(values, wrong, "x"), error, message)


def test_line_breaks_inside_of_quotes_are_no_rows(tmp_path):
    rows = "".join(f'{item},"tale of\n{item + 9},x,1",{item % 3}\n' for item in range(60_000))
    (tmp_path / "items.csv").write_text("item,story,x\n" + rows)
    table = feature_table(tmp_path / "items.csv", "item_features", "item", reads_integers=True)
    assert table.num_rows == 60_000
