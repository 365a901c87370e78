import copy
import pickle
import warnings
from dataclasses import FrozenInstanceError
from datetime import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from verirec import FeedbackLog, IdMap, NoiseRates
from verirec.exceptions import (
    ColumnError,
    DataError,
    DuplicatePairError,
    EmptyLogError,
    IdError,
    LabelError,
    MissingValueError,
    NoiseRateWarning,
    ParameterError,
    PositionError,
    RepeatedPairWarning,
    UnknownIdError,
    VerirecError,
)

COLUMNS = {"user": ["cid", "ann", "bob", "ann"], "item": [70, 7, 70, 9], "rating": [5, 2, 4, 1]}
ORDER = [1, 3, 2, 0]
"""Of these rows by user and item."""
OPTIONAL = {"timestamp": [4, 3, 2, 1], "propensity": [0.5, 1, 0.1, 0.2], "weight": [1, 0, 2, 1]}
ROW_FIELDS = ("users", "items", "labels", "ratings", "timestamps", "propensities", "weights", "unbiased")
FINGERPRINT = 3_081_860_023  # of ARRAYS
ARRAYS = {"users": [0, 1, 1], "items": [0, 0, 2], "labels": [1, 0, 1], "n_users": 2, "n_items": 3}


def table(**changes):
    """Give the columns with some replaced, added or (None) left out."""
    return {name: values for name, values in (COLUMNS | changes).items() if values is not None}


def assert_same(log, other):
    assert (log.n_users, log.n_items) == (other.n_users, other.n_items)
    assert (log.user_ids, log.item_ids) == (other.user_ids, other.item_ids)
    for name in ROW_FIELDS:
        mine, theirs = getattr(log, name), getattr(other, name)
        assert (mine is None) == (theirs is None), name
        if mine is not None:
            assert mine.dtype == theirs.dtype, name
            assert mine.tolist() == theirs.tolist(), name


def rows_of(log):
    return list(zip(log.users.tolist(), log.items.tolist(), log.labels.tolist(), strict=True))


def as_categories(frame):
    return frame.assign(user=frame["user"].astype(pd.CategoricalDtype(["zoe", "cid", "bob", "ann"])))


def polars_categories(columns):
    """Give a frame whose categories know a user that no row has."""
    first = {"user": ["zoe"], "item": [1], "rating": [1]}
    frame = pl.DataFrame({name: first[name] + values for name, values in columns.items()})
    return frame.cast({"user": pl.Categorical})[1:]


FRAMES = {
    "pandas": pd.DataFrame,
    "pandas object": lambda columns: pd.DataFrame(columns).astype({"user": object, "item": object}),
    "pandas nullable": lambda columns: pd.DataFrame(columns).convert_dtypes(),
    "pandas arrow": lambda columns: pd.DataFrame(columns).convert_dtypes(dtype_backend="pyarrow"),
    "pandas categories": lambda columns: as_categories(pd.DataFrame(columns)),
    "pandas integer categories": lambda columns: pd.DataFrame(columns).astype({"item": "category"}),
    "pandas small integers": lambda columns: pd.DataFrame(columns).astype({"item": "uint8", "rating": "int8"}),
    "polars": pl.DataFrame,
    "polars lazy": pl.LazyFrame,
    "polars categories": polars_categories,
    "polars enum": lambda columns: pl.DataFrame(columns).cast({"user": pl.Enum(["zoe", "cid", "bob", "ann"])}),
    "polars chunks": lambda columns: pl.concat([pl.DataFrame(columns)[:1], pl.DataFrame(columns)[1:]], rechunk=False),
    "arrow": pa.table,
    "arrow dictionary": lambda columns: pa.table(columns | {"user": pa.array(columns["user"]).dictionary_encode()}),
    "arrow chunks": lambda columns: pa.concat_tables([pa.table(columns)[:3], pa.table(columns)[3:]]),
    "arrow decimals": lambda columns: pa.table(
        columns | {"rating": pa.array(columns["rating"]).cast(pa.decimal128(19))}
    ),
    "arrow string views": lambda columns: pa.table(columns | {"user": pa.array(columns["user"], pa.string_view())}),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_a_log_is_the_same_from_any_frame(kind):
    log = FeedbackLog.from_frame(FRAMES[kind](COLUMNS), positive_from=3)
    assert log.user_ids == IdMap.of(["ann", "bob", "cid"])
    assert log.item_ids == IdMap.of([7, 9, 70])
    assert rows_of(log) == [(0, 0, 0), (0, 1, 0), (1, 2, 1), (2, 2, 1)]
    assert log.ratings.tolist() == [2, 1, 4, 5]
    assert [column.dtype for column in (log.users, log.items, log.labels, log.ratings)] == [
        np.int32,
        np.int32,
        np.int8,
        np.float32 if kind == "arrow decimals" else np.int8,
    ]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table])
def test_optional_columns_arrive_by_role(make):
    frame = make(COLUMNS | OPTIONAL | {"random": [True, False, False, True]})
    log = FeedbackLog.from_frame(
        frame, positive_from=3, timestamp="timestamp", propensity="propensity", weight="weight", unbiased="random"
    )
    assert log.timestamps.tolist() == [3, 1, 2, 4]
    assert log.propensities.tolist() == [1, 0.2, 0.1, 0.5]
    assert log.weights.tolist() == [0, 1, 2, 1]
    assert log.unbiased.tolist() == [False, True, False, True]
    assert log.unbiased.dtype == bool


@pytest.mark.parametrize(
    ("user", "item", "rating"),
    [
        ("user_id", "movieId", "rating"),
        ("USER", "Item ID", "stars"),
        ("uid", "asin", "label"),
        ("User", "video_id", "click"),
    ],
)
def test_usual_names_are_recognised(user, item, rating):
    frame = pd.DataFrame({user: ["a"], "extra": [0], item: [1], rating: [1]})
    assert len(FeedbackLog.from_frame(frame)) == 1


def test_named_columns_win_over_usual_names():
    frame = pd.DataFrame(table(who=[1, 2, 3, 4], liked=[True, False, False, True]))
    log = FeedbackLog.from_frame(frame, user="who", rating="liked")
    assert log.user_ids.ids().tolist() == [1, 2, 3, 4]
    assert log.labels.tolist() == [1, 0, 0, 1]
    assert log.ratings is None


def test_columns_that_are_not_needed_are_not_touched():
    def explode(_):
        raise AssertionError("touched")

    lazy = pl.LazyFrame(COLUMNS).with_columns(extra=pl.col("rating").map_batches(explode, return_dtype=pl.Int64))
    mixed = pd.DataFrame(table(extra=[1, "a", None, object()]))
    assert_same(
        FeedbackLog.from_frame(lazy, positive_from=3),
        FeedbackLog.from_frame(mixed, positive_from=3),
    )


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (pd.to_datetime(["2020-01-02", "2020-01-01", "2021-01-01", "2020-01-01"]), "2021-01-01"),
        (pd.to_datetime(["2020-01-02", "2020-01-01", "2021-01-01", "2020-01-01"], utc=True), "2021-01-01"),
        (pa.array([1, 2, 3, 0], pa.date32()), "1970-01-04"),
    ],
)
def test_dates_are_timestamps(times, expected):
    frame = pa.table(COLUMNS | {"when": times})
    log = FeedbackLog.from_frame(frame, positive_from=3, timestamp="when")
    assert log.timestamps.dtype.kind == "M"
    assert log.timestamps.max() == np.datetime64(expected)


IDS = st.one_of(
    st.tuples(st.just(a), st.just(b))
    for a in (st.integers(-9, 9), st.integers(-(2**63), 2**63 - 1), st.text(min_size=1, max_size=3))
    for b in (st.integers(0, 9), st.text(min_size=1, max_size=3))
)


@st.composite
def rows(draw):
    users, items = draw(IDS)
    number = st.integers(1, 2**20)
    return draw(
        st.lists(
            st.tuples(users, items, st.integers(0, 1), number, st.booleans()),
            min_size=1,
            max_size=20,
            unique_by=lambda row: row[:2],
        )
    )


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
@given(rows=rows())
def test_frame_to_log_to_frame_is_the_identity_of_sorted_rows(backend, rows):
    users, items, labels, numbers, flags = (list(column) for column in zip(*sorted(rows), strict=True))
    columns = {
        "user": users,
        "item": items,
        "label": labels,
        "timestamp": numbers,
        "propensity": [number / 2**20 for number in numbers],
        "weight": [number / 7 for number in numbers],
        "unbiased": flags,
    }
    roles = {role: role for role in ("timestamp", "propensity", "weight", "unbiased")}
    log = FeedbackLog.from_frame(pa.table(columns), **roles)
    frame = log.to_frame(backend)
    assert {
        name: list(frame[name].to_pylist() if backend == "pyarrow" else frame[name].to_list()) for name in columns
    } == columns
    assert_same(FeedbackLog.from_frame(frame, **roles), log)


@given(rows(), st.randoms(use_true_random=False))
def test_a_log_does_not_depend_on_the_order_of_rows(rows, random):
    def log_of(some):
        columns = [list(column) for column in zip(*some, strict=True)]
        names = ["user", "item", "label", "timestamp", "unbiased"]
        return FeedbackLog.from_frame(pa.table(columns, names), timestamp="timestamp", unbiased="unbiased")

    log = log_of(rows)
    assert log.equals(log_of(random.sample(rows, len(rows))))
    pairs = list(zip(log.users.tolist(), log.items.tolist(), strict=True))
    assert pairs == sorted(pairs)


def test_ratings_survive_the_round_trip():
    frame = FeedbackLog.from_frame(pd.DataFrame(COLUMNS), positive_from=3).to_frame()
    assert frame.columns.tolist() == ["user", "item", "label", "rating"]
    assert frame["rating"].tolist() == [COLUMNS["rating"][row] for row in ORDER]
    assert frame["label"].tolist() == [0, 0, 1, 1]


BAD_FRAMES = {
    "no rating": (
        table(rating=None),
        {},
        ColumnError,
        r"^cannot tell which column is the rating \(none has a usual name\); name it: .* are: user, item$",
    ),
    "two ratings": (
        table(label=[1, 0, 1, 0]),
        {},
        ColumnError,
        r"^cannot tell which column is the rating \(several could be it: rating, label\)",
    ),
    "unknown name": (
        table(),
        {"user": "who"},
        ColumnError,
        r"^no column 'who' \(for user\); the columns are: user, item, rating$",
    ),
    "unknown timestamp": (table(), {"timestamp": "when"}, ColumnError, r"^no column 'when' \(for timestamp\)"),
    "unknown propensity": (table(), {"propensity": "p"}, ColumnError, r"^no column 'p' \(for propensity\)"),
    "unknown weight": (table(), {"weight": "w"}, ColumnError, r"^no column 'w' \(for weight\)"),
    "unknown flag": (table(), {"unbiased": "random"}, ColumnError, r"^no column 'random' \(for unbiased\)"),
    "no columns": ({}, {}, ColumnError, r"^cannot tell which column is the user"),
    "no rows": (
        table(user=[], item=[], rating=[]),
        {},
        EmptyLogError,
        r"^the log is empty: it must have at least one row$",
    ),
    "ratings without a rule": (
        table(rating=[0, 1, 3, 5]),
        {"positive_from": None},
        LabelError,
        r"^column 'rating' must be 0/1, or needs a rule .* from 0 to 5, and 2 of 4 rows \(first: 2, 3, .* neither",
    ),
    "one rating without a rule": (
        table(rating=[0, 1, 0, 5]),
        {"positive_from": None},
        LabelError,
        r"1 of 4 rows \(first: 3, counting from 0\) is neither 0 nor 1$",
    ),
    "threshold too low": (
        table(),
        {"positive_from": 1},
        LabelError,
        r"^positive_from=1 makes all 4 labels 1: column 'rating' goes from 1 to 5$",
    ),
    "threshold too high": (
        table(),
        {"positive_from": 5.5},
        LabelError,
        r"^positive_from=5\.5 makes all 4 labels 0: column 'rating' goes from 1 to 5$",
    ),
    "threshold NaN": (
        table(),
        {"positive_from": np.nan},
        ParameterError,
        r"^positive_from must be a finite number; got nan$",
    ),
    "threshold text": (
        table(),
        {"positive_from": "3"},
        ParameterError,
        r"^positive_from must be a finite number; got '3'$",
    ),
    "text ratings": (
        table(rating=["5", "x", "4", "y"]),
        {},
        LabelError,
        r"^column 'rating' must hold numbers; got .*'x'",
    ),
    "infinite ratings": (
        table(rating=[5, np.inf, 1, -np.inf]),
        {},
        DataError,
        r"^column 'rating' must be finite; infinite in 2 of 4 rows \(first: 1, 3, counting from 0\)$",
    ),
    "float users": (
        table(user=[1.0, 2.0, 3.0, 4.0]),
        {},
        IdError,
        r"^column 'user' holds 4 floats \(first: 1\.0, 2\.0, 3\.0\); ids must be integers or strings",
    ),
    "float items": (
        table(item=[1.5, 2.0, 3.0, 4.0]),
        {},
        IdError,
        r"^column 'item' holds 4 floats \(first: 1\.5, 2\.0, 3\.0\)",
    ),
    "float categories": (
        table(user=pd.Categorical([1.0, 2.0, 1.0, 2.0])),
        {},
        IdError,
        r"^column 'user' holds 4 floats",
    ),
    "boolean users": (
        table(user=[True, False, True, False]),
        {},
        IdError,
        r"^column 'user' must hold strings or integers; got bool$",
    ),
    "bytes as users": (
        table(user=[b"a", b"b", b"c", b"d"]),
        {},
        IdError,
        r"^column 'user' must hold strings or integers; got binary$",
    ),
    "dates as items": (
        table(item=pd.date_range("2020-01-01", periods=4)),
        {},
        IdError,
        r"^column 'item' must hold strings or integers; got timestamp",
    ),
    "mixed users": (
        table(user=["a", "b", 3, "c"]),
        {},
        IdError,
        r"^column 'user' mixes 2 types: int, str \(row 0 has 'a', row 2 has 3\); make .* \.astype\(str\), or with",
    ),
    "objects as items": (
        table(item=[object()] * 4),
        {},
        IdError,
        r"^column 'item' must hold strings or integers; got object$",
    ),
    "propensity 0": (
        table(p=[0.5, 0, 1, -1]),
        {"propensity": "p"},
        DataError,
        r"^column 'p' must be above 0 and at most 1; not so in 2 of 4 rows \(first: 1, 3, .*row 1 has 0$",
    ),
    "propensity above 1": (
        table(p=[0.5, 1, 1, 1.5]),
        {"propensity": "p"},
        DataError,
        r"^column 'p' must be above 0 and at most 1; not so in 1 of 4 rows \(first: 3, .*row 3 has 1\.5$",
    ),
    "negative weight": (
        table(w=[1, -2, 1, 1]),
        {"weight": "w"},
        DataError,
        r"^column 'w' must be at least 0; not so in 1 of 4 rows \(first: 1, .*row 1 has -2$",
    ),
    "no weight at all": (table(w=[0, 0, 0, 0]), {"weight": "w"}, DataError, r"^column 'w' must not be 0 in every row$"),
    "infinite weight": (
        table(w=[1, np.inf, 1, 1]),
        {"weight": "w"},
        DataError,
        r"^column 'w' must be finite; infinite in 1 of 4 rows \(first: 1, counting from 0\)$",
    ),
    "flag 2": (
        table(f=[0, 1, 2, 0]),
        {"unbiased": "f"},
        DataError,
        r"^column 'f' must be 0/1 or booleans; not so in 1 of 4 rows \(first: 2, .*row 2 has 2$",
    ),
    "text times": (
        table(t=["a", "b", "c", "d"]),
        {"timestamp": "t"},
        DataError,
        r"^column 't' must hold numbers, dates or ISO text .* row 0 has 'a'",
    ),
    "times of day": (
        table(t=pa.array([1, 2, 3, 4], pa.time32("s")).to_pylist()),
        {"timestamp": "t"},
        DataError,
        r"^column 't' must hold numbers, dates or timestamps; got time",
    ),
    "durations": (
        table(t=pd.to_timedelta([1, 2, 3, 4])),
        {"timestamp": "t"},
        DataError,
        r"^column 't' must hold numbers, dates or timestamps; got duration",
    ),
    "infinite times": (
        table(t=[1, np.inf, 2, 3]),
        {"timestamp": "t"},
        DataError,
        r"^column 't' must be finite; infinite in 1 of 4 rows \(first: 1, counting from 0\)$",
    ),
    "two labels for a pair": (
        table(user=["ann"] * 4, item=[7, 7, 9, 8]),
        {},
        DuplicatePairError,
        r"^1 user-item pairs occur with both labels, in 2 of 4 rows \(first: 0, 1, counting from 0\)",
    ),
    "unknown policy": (
        table(),
        {"duplicates": "newest"},
        ParameterError,
        r"^duplicates must be one of error, first, highest, last, latest; got 'newest'$",
    ),
    "latest without times": (
        table(),
        {"duplicates": "latest"},
        ParameterError,
        r"^duplicates='latest' needs timestamps; name their column: timestamp=\.\.\.$",
    ),
    "users not in the catalogue": (
        table(),
        {"all_users": ["ann", "bob"]},
        UnknownIdError,
        r"^column 'user' has ids outside the catalogue .*'cid'$",
    ),
    "items not in the catalogue": (
        table(),
        {"all_items": [7, 70]},
        UnknownIdError,
        r"^column 'item' has ids outside the catalogue .*9$",
    ),
    "catalogue of another kind": (
        table(),
        {"all_items": ["7", "9", "70"]},
        UnknownIdError,
        r"^column 'item': integers \(first: 7\) where the catalogue has strings$",
    ),
    "catalogue with repeats": (
        table(),
        {"all_items": [7, 9, 70, 7]},
        IdError,
        r"^all_items must be distinct; 1 occur more than once \(first: 7\)$",
    ),
    "catalogue with nulls": (
        table(),
        {"all_items": [7, 9, None]},
        MissingValueError,
        r"^all_items has missing values in 1 of 3 rows \(first: 2, counting from 0\)",
    ),
    "catalogue of floats": (
        table(),
        {"all_items": [7.0, 9.0, 70.0]},
        IdError,
        r"^all_items holds 3 floats \(first: 7\.0, 9\.0, 70\.0\)",
    ),
}
BAD_FRAMES |= {
    "huge users": (
        table(user=pd.Series([2**70, 1, 2, 3], dtype=object)),
        {},
        IdError,
        r"^column 'user' .*64",
    ),
    "null in a dictionary": (
        table(user=pa.DictionaryArray.from_arrays([0, 1, 0, 2], ["a", None, "b"])),
        {},
        MissingValueError,
        r"^column 'user' has missing values in 1 of 4 rows \(first: 1, counting from 0\)",
    ),
    "catalogue row numbers": (
        table(),
        {"all_users": ["ann", "bob"]},
        UnknownIdError,
        r"1 of 4 rows \(first: 0, counting from 0\)",
    ),
    "mixed ratings": (
        table(rating=[5, "x", 4, 1]),
        {},
        DataError,
        r"^column 'rating' mixes 2 types: int, str \(row 0 has 5, row 1 has 'x'\)",
    ),
}


@pytest.mark.parametrize(
    ("columns", "options", "error", "message"),
    [pytest.param(*case, id=name) for name, case in BAD_FRAMES.items()],
)
def test_a_bad_frame_is_refused_in_one_line_that_says_where(columns, options, error, message):
    frame = pa.table(columns) if isinstance(columns.get("user"), pa.Array) else pd.DataFrame(columns)
    with pytest.raises(error, match=message) as caught:
        FeedbackLog.from_frame(frame, **{"positive_from": 3} | options)
    assert caught.type is error
    assert "\n" not in str(caught.value)


def test_a_refused_construction_leaves_its_input_alone():
    frame, given = pd.DataFrame(COLUMNS), {name: np.array(ARRAYS[name]) for name in ("users", "items", "labels")}
    with pytest.raises(LabelError):
        FeedbackLog.from_frame(frame)
    with pytest.raises(DataError):
        FeedbackLog.from_arrays(**ARRAYS | given, weights=[-1, 0, 1])
    assert frame.equals(pd.DataFrame(COLUMNS))
    assert {name: array.tolist() for name, array in given.items()} == {name: ARRAYS[name] for name in given}
    assert all(array.flags.writeable for array in given.values())


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table])
@pytest.mark.parametrize(
    ("role", "values"),
    [
        ("user", ["cid", None, "bob", None]),
        ("user", [1, None, 3, None]),
        ("item", [7, None, 9, None]),
        ("rating", [1, None, 0, None]),
        ("rating", [0.5, float("nan"), 0.1, float("nan")]),
        ("rating", [True, None, False, None]),
        ("timestamp", [1, None, 2, None]),
        ("timestamp", [datetime(2020, 1, 1), None, datetime(2020, 1, 2), None]),
        ("propensity", [0.1, None, 0.2, None]),
        ("weight", [1, None, 2, None]),
        ("unbiased", [True, None, False, None]),
        ("unbiased", [None, None, None, None]),
    ],
)
def test_missing_values_are_refused_with_column_count_and_first_rows(make, role, values):
    first = (
        "2 of 4 rows (first: 1, 3, counting from 0)"
        if values[0] is not None
        else "4 of 4 rows (first: 0, 1, 2, counting from 0)"
    )
    with pytest.raises(MissingValueError) as caught:
        FeedbackLog.from_frame(make(table(**{role: values})), **{"positive_from": 1, role: role})
    assert str(caught.value) == f"column {role!r} has missing values in {first}; drop or fill them"


@pytest.mark.parametrize(
    "frame",
    [COLUMNS, None, [(1, 2, 1)], np.zeros((2, 3)), pd.Series([1]), pl.Series([1]), "log.csv"],
    ids=lambda frame: type(frame).__name__,
)
def test_what_is_not_a_frame_is_refused(frame):
    with pytest.raises(
        DataError, match=rf"^the log must be a pandas, polars or pyarrow frame .*; got {type(frame).__name__}$"
    ):
        FeedbackLog.from_frame(frame)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame([[1, 2, 3, 0]], columns=["user", "item", "user", "rating"]),
        pa.table([[1], [2], [3], [0]], ["user", "item", "user", "rating"]),
    ],
    ids=["pandas", "arrow"],
)
def test_a_column_that_occurs_twice_is_refused(frame):
    with pytest.raises(ColumnError, match="user") as caught:
        FeedbackLog.from_frame(frame)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("options", [{}, {"user": 0, "item": 1, "rating": 2}])
def test_columns_without_names_are_refused(options):
    with pytest.raises(ColumnError):
        FeedbackLog.from_frame(pd.DataFrame([[1, 2, 1], [2, 3, 0]]), **options)


def test_repeats_that_agree_are_merged_with_a_warning_that_points_here():
    frame = pd.DataFrame({"user": [1, 1, 2], "item": [5, 5, 5], "label": [1, 1, 0]})
    with pytest.warns(RepeatedPairWarning, match=r"^1 user-item pairs .* \(1 of 3 rows dropped\)$") as caught:
        log = FeedbackLog.from_frame(frame)
    assert rows_of(log) == [(0, 0, 1), (1, 0, 0)]
    assert caught[0].filename == __file__


REPEATED = ARRAYS | {"users": [0, 1, 1], "items": [0, 2, 2], "labels": [1, 1, 1]}


@pytest.mark.parametrize(
    "make",
    [
        FeedbackLog.from_arrays,
        FeedbackLog,
        lambda users, items, labels, n_users, n_items: FeedbackLog.from_sparse(
            sparse.coo_array((labels, (users, items)), shape=(n_users, n_items))
        ),
    ],
    ids=["from_arrays", "constructor", "from_sparse"],
)
def test_the_warning_about_repeats_points_to_the_caller(make):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        log = make(**REPEATED)
    assert rows_of(log) == [(0, 0, 1), (1, 2, 1)]
    assert [warning.category for warning in caught] == [RepeatedPairWarning]
    assert caught[0].filename == __file__


BAD_ARRAYS = [
    ({"users": [0, -1, 1]}, PositionError, r"^users must be positions from 0 to 1; 1 of 3 is not \(row 1 has -1\)$"),
    ({"users": [0, 2, 3]}, PositionError, r"^users must be positions from 0 to 1; 2 of 3 are not \(row 1 has 2\)$"),
    ({"items": [0, 1, 3]}, PositionError, r"^items must be positions from 0 to 2; 1 of 3 is not \(row 2 has 3\)$"),
    ({"users": [0.0, 1.0, 1.0]}, PositionError, r"^users must be integers \(positions\); got float64$"),
    ({"items": ["a", "b", "c"]}, PositionError, r"^items must be integers \(positions\); got <U1$"),
    ({"users": [[0, 1, 1]]}, PositionError, r"^users must be a flat array of positions; got shape \(1, 3\)$"),
    ({"items": [0, 1]}, DataError, r"^items must be as long as users, shape \(3,\); got \(2,\)$"),
    ({"labels": [0, 1]}, DataError, r"^labels must be as long as users, shape \(3,\); got \(2,\)$"),
    ({"timestamps": [1, 2, 3, 4]}, DataError, r"^timestamps must be as long as users, shape \(3,\); got \(4,\)$"),
    ({"weights": 1.0}, DataError, r"^weights must be as long as users, shape \(3,\); got \(\)$"),
    ({"users": [], "items": [], "labels": []}, EmptyLogError, r"^the log is empty"),
    (
        {"labels": [0, 2, -1]},
        LabelError,
        r"^labels must be 0/1, .* from -1 to 2, and 2 of 3 rows \(first: 1, 2, .* are neither",
    ),
    (
        {"labels": [0, np.nan, 1]},
        MissingValueError,
        r"^labels has missing values in 1 of 3 rows \(first: 1, counting from 0\)",
    ),
    ({"labels": ["0", "1", "1"]}, DataError, r"^labels must be numbers; got <U1$"),
    ({"labels": [0, None, 1]}, DataError, r"^labels must be numbers; got object$"),
    (
        {"labels": [0, 1, np.inf]},
        DataError,
        r"^labels must be finite; infinite in 1 of 3 rows \(first: 2, counting from 0\)$",
    ),
    ({"timestamps": [1, np.nan, 2]}, MissingValueError, r"^timestamps has missing values in 1 of 3 rows \(first: 1"),
    ({"timestamps": ["a", "b", "c"]}, DataError, r"^timestamps must be numbers or dates; got <U1$"),
    (
        {"propensities": [1, 0, 2]},
        DataError,
        r"^propensities must be above 0 and at most 1; not so in 2 of 3 rows \(first: 1, 2, .*row 1 has 0$",
    ),
    ({"propensities": [1, np.nan, 1]}, MissingValueError, r"^propensities has missing values in 1 of 3 rows"),
    (
        {"weights": [1, 1, -0.5]},
        DataError,
        r"^weights must be at least 0; not so in 1 of 3 rows \(first: 2, .*row 2 has -0\.5$",
    ),
    ({"weights": [0, 0, 0]}, DataError, r"^weights must not be 0 in every row$"),
    (
        {"weights": [1, np.inf, 1]},
        DataError,
        r"^weights must be finite; infinite in 1 of 3 rows \(first: 1, counting from 0\)$",
    ),
    (
        {"unbiased": [0, 1, 3]},
        DataError,
        r"^unbiased must be 0/1 or booleans; not so in 1 of 3 rows \(first: 2, .*row 2 has 3$",
    ),
    ({"n_users": 0}, ParameterError, r"^n_users must be a whole number from 1 to 2,147,483,647; got 0$"),
    ({"n_items": 2.0}, ParameterError, r"^n_items must be a whole number .*; got 2\.0$"),
    ({"n_users": 2**31}, ParameterError, r"^n_users must be a whole number .*; got 2147483648$"),
    ({"user_ids": ["a"]}, DataError, r"^user_ids must have n_users=2 ids; got 1$"),
    ({"item_ids": ["a", "b", "a"]}, IdError, r"^item_ids must be distinct; 1 occur more than once \(first: 'a'\)$"),
    ({"user_ids": [1.0, 2.0]}, IdError, r"^user_ids holds 2 floats"),
    ({"user_ids": ["a", None]}, MissingValueError, r"^user_ids has missing values in 1 of 2 rows \(first: 1"),
    ({"user_ids": ["a", 1]}, IdError, r"^user_ids mixes 2 types"),
    (
        {"user_features": [[1], [2], [3]]},
        DataError,
        r"^user_features must have one row per position, shape \(2, d\); got \(3, 1\)$",
    ),
    (
        {"item_features": [1, 2, 3]},
        DataError,
        r"^item_features must have one row per position, shape \(3, d\); got \(3,\)$",
    ),
    ({"user_features": [["a"], ["b"]]}, DataError, r"^user_features must be numbers; got <U1$"),
    (
        {"user_features": [[1, np.nan], [np.inf, 2]]},
        DataError,
        r"^user_features must be finite; 2 of 4 values are NaN or infinite$",
    ),
    (
        {"users": [0, 1, 1], "items": [0, 2, 2], "labels": [1, 0, 1]},
        DuplicatePairError,
        r"^1 user-item pairs occur with both labels, in 2 of 3 rows \(first: 1, 2, counting from 0\)",
    ),
    (
        {"timestamps": np.array([1, "NaT", 2], "M8[s]")},
        MissingValueError,
        r"^timestamps .* 1 of 3 rows \(first: 1",
    ),
    (
        {"timestamps": [1, np.inf, 2]},
        DataError,
        r"^timestamps must be finite",
    ),
    ({"labels": None}, DataError, r"^labels"),
    (
        {"labels": np.array([0, 1, 1], "M8[s]")},
        DataError,
        r"^labels must be numbers",
    ),
    (
        {"propensities": np.array([0, 1, 1], "M8[s]")},
        DataError,
        r"^propensities must be numbers",
    ),
    ({"labels": [[0], [0, 1], [1]]}, DataError, r"^labels"),
    ({"user_features": [[0], [0, 1]]}, DataError, r"^user_features"),
]


@pytest.mark.parametrize("make", [FeedbackLog.from_arrays, FeedbackLog], ids=["from_arrays", "constructor"])
@pytest.mark.parametrize(("changes", "error", "message"), BAD_ARRAYS)
def test_bad_arrays_are_refused_in_one_line_that_says_where(make, changes, error, message):
    with pytest.raises(error, match=message) as caught:
        make(**ARRAYS | changes)
    assert caught.type is error
    assert "\n" not in str(caught.value)


def test_infinite_ratings_in_arrays_are_refused():
    with pytest.raises(DataError, match=r"^labels must be finite"):
        FeedbackLog.from_arrays(**ARRAYS | {"labels": [1, 2, np.inf], "positive_from": 2})


def test_arrays_keep_their_row_order_and_take_ids_in_the_order_given():
    log = FeedbackLog.from_arrays(**ARRAYS | {"user_ids": ["zoe", "ann"], "item_ids": [30, 10, 20]})
    assert rows_of(log) == [(0, 0, 1), (1, 0, 0), (1, 2, 1)]
    assert log.to_frame()["user"].tolist() == ["zoe", "ann", "ann"]
    assert log.to_frame()["item"].tolist() == [30, 30, 20]
    assert log.user_ids.positions(["ann", "zoe"]).tolist() == [1, 0]
    assert log.item_ids.positions([20]).tolist() == [2]


@pytest.mark.parametrize(
    "ids",
    [
        pd.Series(["b", "a"]),
        pl.Series(["b", "a"]),
        pa.chunked_array([["b"], ["a"]]),
        np.array(["b", "a"], object),
        pd.Categorical(["b", "a"]),
    ],
    ids=lambda ids: type(ids).__name__,
)
def test_ids_of_positions_can_come_in_any_container(ids):
    log = FeedbackLog.from_arrays(**ARRAYS | {"user_ids": ids})
    assert log.user_ids.ids().tolist() == ["b", "a"]
    assert log.user_ids.positions(["a", "b"]).tolist() == [1, 0]


@pytest.mark.parametrize("ids", [["a", "b"], np.array([1, 2], np.int32)], ids=["text", "int32"])
def test_equal_ids_make_equal_catalogues_however_the_log_was_made(ids):
    assert FeedbackLog.from_arrays(**ARRAYS | {"user_ids": ids}).user_ids == IdMap.of(ids)


def test_the_constructor_makes_the_log_that_from_arrays_makes():
    changes = {"timestamps": [1, 2, 3], "propensities": [0.1, 0.2, 0.3], "weights": [1, 2, 3], "unbiased": [1, 0, 0]}
    assert_same(FeedbackLog(**ARRAYS | changes), FeedbackLog.from_arrays(**ARRAYS | changes))


FORMATS = ["coo", "csr", "csc", "lil", "dok"]


@pytest.mark.parametrize("make", [sparse.coo_array, sparse.coo_matrix], ids=["array", "matrix"])
@pytest.mark.parametrize("form", FORMATS)
def test_sparse_formats_give_the_same_pairs(form, make):
    dense = np.array([[5, 0, 1], [0, 0, 4]])
    log = FeedbackLog.from_sparse(make(dense).asformat(form), positive_from=3)
    assert (log.n_users, log.n_items) == (2, 3)
    assert sorted(rows_of(log)) == [(0, 0, 1), (0, 2, 0), (1, 2, 1)]
    assert sorted(log.ratings.tolist()) == [1, 4, 5]


def test_a_stored_zero_is_an_observation():
    matrix = sparse.csr_array(([1, 0], ([0, 1], [2, 0])), shape=(2, 3))
    assert rows_of(FeedbackLog.from_sparse(matrix)) == [(0, 2, 1), (1, 0, 0)]


@pytest.mark.parametrize(
    ("matrix", "error", "message"),
    [
        (np.eye(2), DataError, r"^from_sparse needs a scipy sparse matrix with two dimensions; got ndarray$"),
        (sparse.coo_array(np.array([1, 0])), DataError, r"^from_sparse needs .* two dimensions; got coo_array$"),
        (None, DataError, r"^from_sparse needs .*; got NoneType$"),
        (sparse.coo_array((2, 3)), EmptyLogError, r"^the log is empty"),
        (sparse.coo_array((0, 3)), ParameterError, r"^n_users must be a whole number"),
        (sparse.csr_array([[2.0, 0], [0, 1]]), LabelError, r"^labels must be 0/1"),
        (sparse.coo_array(([1, 0], ([0, 0], [1, 1])), shape=(2, 2)), DuplicatePairError, r"^1 user-item pairs"),
    ],
)
def test_a_bad_sparse_matrix_is_refused(matrix, error, message):
    with pytest.raises(error, match=message) as caught:
        FeedbackLog.from_sparse(matrix)
    assert caught.type is error


def test_what_nobody_rated_is_part_of_the_grid():
    log = FeedbackLog.from_frame(
        pd.DataFrame(COLUMNS), positive_from=3, all_users=["zoe", "cid", "bob", "ann"], all_items=range(100)
    )
    assert (log.n_users, log.n_items, log.n_cells) == (4, 100, 400)
    assert log.density == 4 / 400
    assert rows_of(log) == [(0, 7, 0), (0, 9, 0), (1, 70, 1), (2, 70, 1)]
    assert log.user_ids.ids().tolist() == ["ann", "bob", "cid", "zoe"]


CONSTRUCTED = {
    "from_frame": lambda: FeedbackLog.from_frame(
        pa.table(COLUMNS | OPTIONAL), positive_from=3, **{name: name for name in OPTIONAL}
    ),
    "from_arrays": lambda: FeedbackLog.from_arrays(**ARRAYS, weights=[1, 2, 3], user_features=np.eye(2)),
    "from_sparse": lambda: FeedbackLog.from_sparse(sparse.csr_array(np.eye(2))),
    "select": lambda: FeedbackLog.from_arrays(**ARRAYS, weights=[1, 2, 3]).select([0, 1]),
    "with_labels": lambda: FeedbackLog.from_arrays(**ARRAYS).with_labels([0, 0, 0]),
    "constructor": lambda: FeedbackLog(**ARRAYS, weights=[1, 2, 3]),
}


@pytest.mark.parametrize("make", CONSTRUCTED.values(), ids=CONSTRUCTED.keys())
def test_attributes_cannot_be_replaced(make):
    log = make()
    with pytest.raises(FrozenInstanceError):
        log.labels = np.zeros(len(log))
    with pytest.raises(FrozenInstanceError):
        del log.users


@pytest.mark.parametrize("make", CONSTRUCTED.values(), ids=CONSTRUCTED.keys())
def test_arrays_cannot_be_written_to(make):
    log = make()
    arrays = [value for value in vars(log).values() if isinstance(value, np.ndarray)]
    assert len(arrays) >= 3
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.parametrize("field", ["users", "items", "labels", "timestamps"])
def test_a_log_does_not_change_with_the_arrays_it_was_made_of(field):
    given = {"users": np.array([0, 1, 1], np.int32), "items": np.array([0, 0, 2], np.int32)}
    given |= {"labels": np.array([1, 0, 1], np.int8), "timestamps": np.array([5, 6, 7])}
    log = FeedbackLog.from_arrays(**ARRAYS | given)
    before = getattr(log, field).tolist()
    given[field][:] = 1
    assert getattr(log, field).tolist() == before


@given(st.data())
def test_select_gives_those_rows_and_keeps_the_grid(data):
    log = CONSTRUCTED["from_frame"]()
    chosen = data.draw(st.lists(st.integers(0, len(log) - 1), unique=True))
    mask = np.isin(np.arange(len(log)), chosen)
    for part in (log.select(np.array(chosen, int)), log.select(mask)):
        assert (part.n_users, part.n_items) == (log.n_users, log.n_items)
        assert part.user_ids is log.user_ids
        assert part.item_ids is log.item_ids
        for name in ROW_FIELDS:
            column = getattr(log, name)
            assert column is None or getattr(part, name).tolist() == [column[row] for row in sorted(chosen)]


def test_select_keeps_features(small_log):
    assert small_log.select([5]).user_features is not None
    assert small_log.select([5]).user_features.tolist() == small_log.user_features.tolist()


@pytest.mark.parametrize("mask", [[True], [True] * 7, [[True] * 6]])
def test_a_mask_must_be_as_long_as_the_log(small_log, mask):
    with pytest.raises(ParameterError, match=r"^a mask of rows must have shape \(6,\); got"):
        small_log.select(mask)


def test_selecting_no_rows_gives_an_empty_part(small_log):
    assert len(small_log.select([])) == 0


@pytest.mark.parametrize("rows", [[6], [-7], [0.0], [[0, 1]], 0, "0", None])
def test_rows_that_are_not_in_the_log_cannot_be_selected(small_log, rows):
    with pytest.raises(VerirecError):
        len(small_log.select(rows))


def test_with_labels_changes_labels_only_and_drops_ratings(small_log):
    other = small_log.with_labels([0, 1, 0, 1, 0, 1])
    assert other.labels.tolist() == [0, 1, 0, 1, 0, 1]
    assert other.labels.dtype == np.int8
    assert other.ratings is None
    for name in ("users", "items", "timestamps", "propensities", "weights", "unbiased", "user_features"):
        assert getattr(other, name).tolist() == getattr(small_log, name).tolist()
    assert other.user_ids is small_log.user_ids
    assert other.item_ids is small_log.item_ids
    assert small_log.labels.tolist() == [1, 0, 1, 0, 1, 0]


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        ([1], DataError, r"^labels must have shape \(6,\); got \(1,\)$"),
        ([[1] * 6], DataError, r"^labels must be a flat array; got shape \(1, 6\)$"),
        ([0, 1, 2, 0, 1, 5], LabelError, r"^labels must be 0/1.*2 of 6 rows \(first: 2, 5, counting from 0\)"),
        ([0, 1, np.nan, 0, 1, 1], DataError, r"^labels .*1 of 6 rows \(first: 2"),
        (list("010101"), DataError, r"^labels must be numbers"),
        ([0, None, 1, 0, 1, 1], DataError, r"^labels must be numbers"),
    ],
)
def test_with_labels_refuses_what_is_not_a_label_for_each_row(small_log, labels, error, message):
    with pytest.raises(error, match=message) as caught:
        small_log.with_labels(labels)
    assert "\n" not in str(caught.value)


@pytest.fixture(scope="module")
def large_log():
    random = np.random.default_rng(0)
    cells = random.choice(500 * 400, 60_000, replace=False)
    labels = random.random(60_000) < 0.4
    return FeedbackLog.from_arrays(cells // 400, cells % 400, labels, n_users=500, n_items=400)


def test_noise_flips_labels_at_the_wanted_rates_and_changes_nothing_else(large_log):
    rates = NoiseRates(0.3, 0.1)
    noisy = large_log.with_noise(rates, random_state=1)
    for label, rate in ((1, rates.rho01), (0, rates.rho10)):
        of_class = large_log.labels == label
        flipped = (noisy.labels[of_class] != label).mean()
        assert abs(flipped - rate) < 4 * np.sqrt(rate * (1 - rate) / of_class.sum())
    assert_same(noisy.with_labels(large_log.labels), large_log)


def test_the_same_seed_gives_the_same_noise_and_another_seed_another(large_log):
    first, again, other = (large_log.with_noise(NoiseRates(0.2, 0.2), random_state=seed) for seed in (5, 5, 6))
    assert_same(first, again)
    assert (first.labels != other.labels).any()


def test_noise_takes_a_generator_and_goes_on_with_it(large_log):
    generator = np.random.default_rng(5)
    first, second = (large_log.with_noise(NoiseRates(0.2, 0.2), random_state=generator) for _ in range(2))
    assert_same(first, large_log.with_noise(NoiseRates(0.2, 0.2), random_state=5))
    assert (first.labels != second.labels).any()


def flipped(log, row):
    labels = log.labels.copy()
    labels[row] = 1 - labels[row]
    return FeedbackLog.from_arrays(log.users, log.items, labels, n_users=log.n_users, n_items=log.n_items)


def test_a_fingerprint_is_of_pairs_and_labels_and_of_nothing_else(large_log):
    rows = np.arange(len(large_log))
    bare = FeedbackLog.from_arrays(large_log.users, large_log.items, large_log.labels, n_users=500, n_items=400)
    weighted = FeedbackLog.from_arrays(
        large_log.users.astype(np.int64),
        large_log.items.tolist(),
        large_log.labels.astype(bool),
        n_users=500,
        n_items=400,
        weights=np.ones(len(rows)),
    )
    same = [large_log.select(rows), bare, weighted, copy.deepcopy(large_log), pickle.loads(pickle.dumps(large_log))]
    assert {log.fingerprint for log in same} == {large_log.fingerprint}
    assert type(large_log.fingerprint) is int


@pytest.mark.parametrize("row", [0, 31_234, -1])
def test_one_label_flipped_makes_another_fingerprint(large_log, row):
    assert flipped(large_log, row).fingerprint != large_log.fingerprint
    assert flipped(flipped(large_log, row), row).fingerprint == large_log.fingerprint


def test_other_rows_make_another_fingerprint(large_log):
    rows = np.arange(len(large_log))
    parts = [large_log.select(some) for some in (rows[:-1], rows[1:], rows[::2], rows[:0])]
    swapped = FeedbackLog.from_arrays(large_log.items, large_log.users, large_log.labels, n_users=400, n_items=500)
    noisy = large_log.with_noise(NoiseRates(0.2, 0.2), random_state=1)
    assert len({log.fingerprint for log in (large_log, *parts, swapped, noisy)}) == 7


def test_a_fingerprint_is_the_same_in_any_process_and_order_of_rows():
    assert FeedbackLog.from_arrays(**ARRAYS).fingerprint == FINGERPRINT
    turned = {name: ARRAYS[name][::-1] for name in ("users", "items", "labels")}
    assert FeedbackLog.from_arrays(**ARRAYS | turned).fingerprint == FINGERPRINT


def test_no_noise_changes_no_label(large_log):
    assert_same(large_log.with_noise(NoiseRates(0, 0), random_state=1), large_log)


def test_total_false_negatives_leave_positives_only_from_the_other_rate(large_log):
    with pytest.warns(NoiseRateWarning, match=r"^kappa = 1 - rho01 - rho10 is 0\.001: labels carry so little signal"):
        rates = NoiseRates(0.999, 0)
    noisy = large_log.with_noise(rates, random_state=1)
    assert (noisy.labels <= large_log.labels).all()
    assert noisy.labels.mean() < 0.002


@pytest.mark.parametrize("backend", ["dask", "", None, 3])
def test_an_unknown_backend_is_refused(small_log, backend):
    with pytest.raises(ParameterError) as caught:
        small_log.to_frame(backend)
    assert str(caught.value) == f"backend must be one of pandas, polars, pyarrow; got {backend!r}"


def test_each_backend_gives_its_own_frame(small_log):
    assert isinstance(small_log.to_frame(), pd.DataFrame)
    assert isinstance(small_log.to_frame("polars"), pl.DataFrame)
    assert small_log.to_frame("pyarrow").equals(small_log.to_arrow())


def test_a_log_describes_itself(small_log):
    assert repr(small_log) == "FeedbackLog(6 rows, 3 users x 4 items, 50.00% of the grid, 50.0% positive)"
    assert "no labels" in repr(small_log.select(np.empty(0, int)))


def test_html_shows_the_first_rows_with_ids_escaped():
    log = FeedbackLog.from_frame(pd.DataFrame({"user": ["<b>"] * 7, "item": range(7), "label": [0, 1] * 3 + [0]}))
    html = log._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert html.count("<tr>") == 5


@pytest.mark.parametrize("form", ["bsr", "dia"])
def test_sparse_formats_that_fill_in_zeros_are_refused(form):
    with pytest.raises(DataError, match=rf"cannot tell what a {form} matrix observed"):
        FeedbackLog.from_sparse(sparse.coo_array(np.eye(4)).asformat(form))


@pytest.mark.parametrize("column", ["users", "labels", "weights", "timestamps"])
def test_masked_values_are_refused(column):
    changes = {"weights": [1, 2, 3], "timestamps": [1, 2, 3]}
    masked = np.ma.masked_array((ARRAYS | changes)[column], mask=[False, True, False])
    with pytest.raises(DataError, match=rf"^{column} must not be masked; 1 of 3 values are$"):
        FeedbackLog.from_arrays(**ARRAYS | changes | {column: masked})


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda log: pickle.loads(pickle.dumps(log))], ids=["copy", "pickle"])
def test_a_copy_is_equal_and_as_frozen_as_the_log(small_log, copied):
    other = copied(small_log)
    assert other.equals(small_log)
    with pytest.raises(ValueError, match="read-only"):
        other.labels[0] = 1


def test_logs_that_differ_in_anything_are_not_equal(small_log):
    assert small_log.equals(small_log.select(np.arange(6)))
    assert not small_log.equals(small_log.select(np.arange(5)))
    assert not small_log.equals(small_log.with_labels([0, 0, 1, 0, 1, 0]))


def test_a_row_cannot_be_selected_twice(small_log):
    with pytest.raises(ParameterError, match=r"^rows must be distinct, as pairs are; 3 name 2$"):
        small_log.select([0, 1, 1])


def test_a_threshold_that_leaves_one_class_after_repeats_are_settled_is_refused():
    frame = pd.DataFrame({"user": list("aab"), "item": [1, 1, 2], "rating": [5, 1, 2]})
    with pytest.raises(LabelError, match=r"^positive_from=4 makes all 2 labels 0: column 'rating' goes from 1 to 2$"):
        FeedbackLog.from_frame(frame, positive_from=4, duplicates="last")


def test_empty_ids_are_missing_ids():
    with pytest.raises(MissingValueError, match=r"^column 'user' has empty ids in 1 of 2 rows \(first: 1, "):
        FeedbackLog.from_frame(pd.DataFrame({"user": ["a", ""], "item": [1, 2], "label": [0, 1]}))


def test_a_long_id_is_not_told_in_full():
    frame = pd.DataFrame({"user": ["a" * 10**5, "b"], "item": [1, 2], "label": [0, 1]})
    with pytest.raises(UnknownIdError) as caught:
        FeedbackLog.from_frame(frame, all_users=["b"])
    assert len(str(caught.value)) < 250


def test_an_unused_null_among_the_categories_is_no_missing_value():
    users = pa.DictionaryArray.from_arrays([0, 0, 2], ["a", None, "b"])
    log = FeedbackLog.from_frame(pa.table({"user": users, "item": [1, 2, 3], "label": [0, 1, 0]}))
    assert log.user_ids.ids().tolist() == ["a", "b"]


@pytest.mark.parametrize("kind", [">i8", "M8[h]", "M8[M]", np.longdouble])
def test_timestamps_of_any_width_can_be_shown(kind):
    log = FeedbackLog.from_arrays(**ARRAYS, timestamps=np.array([1, 2, 3]).astype(kind))
    assert len(log.to_frame()) == 3


def test_ratings_beyond_single_precision_are_refused():
    with pytest.raises(DataError, match="single precision"):
        FeedbackLog.from_arrays([0, 1], [0, 0], [1e300, 1], n_users=2, n_items=1, positive_from=3)


def test_a_huge_catalogue_of_positions_is_never_spelt_out():
    log = FeedbackLog.from_arrays([5, 2**31 - 2], [0, 9], [1, 0], n_users=2**31 - 1, n_items=2**31 - 1)
    assert log.to_frame()["user"].tolist() == [5, 2**31 - 2]
    assert log.user_ids.positions([7, 2**31 - 2]).tolist() == [7, 2**31 - 2]
    assert log.user_ids.find([-1, 2**31 - 1]).tolist() == [-1, -1]
    assert log.equals(log.select([0, 1]))


@pytest.mark.parametrize(
    ("ratings", "kind"), [([1, 5], np.int8), ([-1, 300], np.int16), ([1, 70_000], np.float32), ([0.5, 5], np.float32)]
)
def test_ratings_are_kept_in_few_bytes(ratings, kind):
    log = FeedbackLog.from_arrays([0, 1], [0, 0], ratings, n_users=2, n_items=1, positive_from=3)
    assert log.ratings.dtype == kind
    assert log.ratings.tolist() == ratings


def test_a_catalogue_does_not_change_with_the_array_it_was_made_of():
    ids = np.array([10, 20])
    log = FeedbackLog.from_arrays([0, 1], [0, 0], [1, 0], n_users=2, n_items=1, user_ids=ids)
    ids[0] = 99
    assert log.user_ids.ids().tolist() == [10, 20]
