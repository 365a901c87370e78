import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verirec import FeedbackLog
from verirec.data.features import feature_matrix
from verirec.exceptions import ColumnError, DataError, IdError, MissingValueError, UnknownIdError

LOG = pa.table({"user": ["ann", "bob", "ann"], "item": [7, 7, 9], "label": [1, 0, 1]})
ITEMS = {"item": [9, 7, 8], "price": [90.0, 70.0, 80.0], "new": [True, False, True], "size": [9, 7, 8]}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table])
def test_features_are_lined_up_with_positions_and_are_the_catalogue(make):
    log = FeedbackLog.from_frame(LOG, item_features=make(ITEMS))
    assert log.item_ids.ids().tolist() == [7, 8, 9]
    assert log.item_features.tolist() == [[70, 0, 7], [80, 1, 8], [90, 1, 9]]
    assert log.item_features.dtype == np.float64
    assert log.items.tolist() == [0, 0, 2]
    assert log.user_features is None


@given(st.permutations(range(6)))
def test_the_order_of_the_feature_table_does_not_matter(order):
    features = pa.table({"item": [10 * number for number in order], "x": order})
    log = FeedbackLog.from_frame(pa.table({"user": [1, 1], "item": [50, 0], "label": [1, 0]}), item_features=features)
    assert log.item_features.ravel().tolist() == list(range(6))


def test_a_named_catalogue_wins_and_other_features_are_left_out():
    log = FeedbackLog.from_frame(LOG, all_items=[9, 7], item_features=pa.table(ITEMS).select(["item", "price"]))
    assert log.item_ids.ids().tolist() == [7, 9]
    assert log.item_features.tolist() == [[70], [90]]


def test_a_table_of_ids_alone_gives_no_features_but_a_catalogue():
    log = FeedbackLog.from_frame(LOG, item_features=pa.table({"item": [7, 8, 9]}))
    assert log.n_items == 3
    assert log.item_features.shape == (3, 0)


BAD_FEATURES = [
    (pa.table({"item": [7], "x": [1]}), {}, UnknownIdError, r"^column 'item' has ids outside the catalogue .* 9$"),
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
        pa.table({"item": [7, 9], "colour": ["red", "blue"]}),
        {},
        DataError,
        r"^item_features' column 'colour' must hold numbers; got string",
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
    with pytest.raises(DataError, match=r"^item_features' column 'colour' must hold numbers"):
        FeedbackLog.from_frame(repeated, item_features=pa.table({"item": [7], "colour": ["red"]}))


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
