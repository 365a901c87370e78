import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verirec import IdMap
from verirec.data.ids import encode_ids
from verirec.exceptions import IdError, MissingValueError, PositionError, UnknownIdError

INT64 = st.integers(-(2**63), 2**63 - 1)
IDS = st.one_of(
    st.lists(INT64, min_size=1, max_size=30),
    st.lists(st.integers(-20, 20), min_size=1, max_size=30),
    st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=30),
)


def encoded(column, **options):
    codes, catalogue = encode_ids(column, "column 'user'", **options)
    return codes.tolist(), catalogue.ids().tolist()


def in_code_points(ids):
    """Sort as Arrow does: text by its UTF-8 bytes."""
    return sorted(set(ids), key=lambda one: one.encode() if isinstance(one, str) else one)


@given(IDS, st.integers(1, 7))
def test_encoding_equals_sorting_the_distinct_ids_however_the_column_is_chunked(ids, chunk):
    catalogue = in_code_points(ids)
    column = pa.chunked_array([pa.array(ids[start : start + chunk]) for start in range(0, len(ids), chunk)])
    assert encoded(column) == ([catalogue.index(one) for one in ids], catalogue)
    assert encoded(column.dictionary_encode()) == encoded(column)


@given(IDS, st.randoms(use_true_random=False))
def test_positions_do_not_depend_on_the_order_of_rows(ids, random):
    shuffled = random.sample(ids, len(ids))
    assert encode_ids(pa.chunked_array([shuffled]), "ids")[1] == encode_ids(pa.chunked_array([ids]), "ids")[1]


@given(IDS)
def test_ids_to_positions_and_back_is_the_identity(ids):
    catalogue = IdMap.of(list(dict.fromkeys(ids)))
    positions = catalogue.positions(ids)
    assert positions.dtype == np.int32
    assert catalogue.ids(positions).tolist() == ids
    assert catalogue.positions(catalogue.ids()).tolist() == list(range(len(catalogue)))


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_every_integer_type_gives_int64_ids(kind):
    codes, catalogue = encode_ids(pa.chunked_array([pa.array([100, 3, 100], kind)]), "user")
    assert (codes.tolist(), catalogue.ids().tolist()) == ([1, 0, 1], [3, 100])
    assert catalogue.ids().dtype == np.int64
    assert catalogue == IdMap.of([100, 3])


def test_negative_ids_are_ids_like_others():
    assert encoded(pa.chunked_array([[5, -3, 0, -3]])) == ([2, 0, 1, 0], [-3, 0, 5])


@pytest.mark.parametrize("spread", [1, 1_000, 999_999, 1_000_013, 2**40, 2**62])
def test_the_range_of_integers_does_not_change_their_encoding(spread):
    ids = [spread, 0, -spread, spread]
    assert encoded(pa.chunked_array([ids])) == ([2, 1, 0, 2], [-spread, 0, spread])


@pytest.mark.parametrize("index", ["int8", "uint8", "int32", "uint32", "int64"])
def test_categories_that_no_row_uses_are_no_ids(index):
    column = pa.DictionaryArray.from_arrays(pa.array([2, 0, 2], index), ["pear", "unused", "apple", "more"])
    assert encoded(pa.chunked_array([column])) == ([0, 1, 0], ["apple", "pear"])


def test_chunks_with_different_dictionaries_share_one_catalogue():
    chunks = [
        pa.DictionaryArray.from_arrays([0, 1], ["b", "a"]),
        pa.DictionaryArray.from_arrays(pa.array([], "int64"), ["z"]),
        pa.DictionaryArray.from_arrays([1, 0, 2], ["c", "a", "b"]),
    ]
    assert encoded(pa.chunked_array(chunks)) == ([1, 0, 0, 2, 1], ["a", "b", "c"])


def test_a_dictionary_that_spells_an_id_twice_means_one_id():
    column = pa.DictionaryArray.from_arrays([0, 1, 2], ["a", "a", "b"])
    assert encoded(pa.chunked_array([column])) == ([0, 0, 1], ["a", "b"])


@pytest.mark.parametrize(
    ("text", "codes", "ids"),
    [
        (["10", "9", "10"], [1, 0, 1], [9, 10]),
        (["-2", "0", "1"], [0, 1, 2], [-2, 0, 1]),
        (["999999999999999999", "1"], [1, 0], [1, 999999999999999999]),
        (["007", "7"], [0, 1], ["007", "7"]),
        (["10", "9", "x"], [0, 1, 2], ["10", "9", "x"]),
        (["+1", "1"], [0, 1], ["+1", "1"]),
        (["-0", "0"], [0, 1], ["-0", "0"]),
        (["1 ", "1"], [1, 0], ["1", "1 "]),
        (["9223372036854775808", "1"], [1, 0], ["1", "9223372036854775808"]),
    ],
)
def test_ids_from_text_become_integers_only_if_nothing_is_lost(text, codes, ids):
    assert encoded(pa.chunked_array([text]), from_text=True) == (codes, ids)


def test_text_ids_of_a_frame_stay_text():
    assert encoded(pa.chunked_array([["10", "9"]])) == ([0, 1], ["10", "9"])


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
    ],
)
def test_every_text_type_gives_the_same_catalogue(kind):
    codes, catalogue = encode_ids(pa.chunked_array([pa.array(["b", "a", "b"], kind)]), "user")
    assert codes.tolist() == [1, 0, 1]
    assert catalogue == IdMap.of(["a", "b"])


@pytest.mark.parametrize(
    "ids",
    [
        ["b", "a"],
        ("b", "a"),
        np.array(["b", "a"]),
        np.array(["b", "a"], object),
        pd.Series(["b", "a"]),
        pd.Series(["b", "a"], dtype=object),
        pd.Categorical(["b", "a"], categories=["z", "b", "a"]),
        pd.Index(["b", "a"]),
        pl.Series(["b", "a"]),
        pl.Series(["b", "a"], dtype=pl.Categorical),
        pl.Series(["b", "a"], dtype=pl.Enum(["z", "b", "a"])),
        pa.array(["b", "a"]),
        pa.chunked_array([["b"], ["a"]]),
    ],
    ids=lambda ids: f"{type(ids).__module__}.{type(ids).__name__}",
)
def test_a_catalogue_is_the_same_from_any_container(ids):
    catalogue = IdMap.of(ids)
    assert catalogue == IdMap.of(["a", "b"])
    assert catalogue.positions(ids).tolist() == [1, 0]


def test_a_range_is_a_catalogue():
    assert IdMap.of(range(5, 0, -2)).ids().tolist() == [1, 3, 5]


BAD_IDS = [
    ([1.0, 2.0], IdError, r"^users holds 2 floats \(first: 1\.0, 2\.0\); ids must be integers or strings"),
    (np.array([1.5]), IdError, r"^users holds 1 floats \(first: 1\.5\)"),
    ([1, 2.5], IdError, r"^users holds 2 floats"),
    ([1, "a", 2], IdError, r"^users mixes 2 types: int, str \(row 0 has 1, row 1 has 'a'\); make them all"),
    (["a", "b", 3], IdError, r"^users mixes 2 types: int, str \(row 0 has 'a', row 2 has 3\)"),
    ([True, False], IdError, r"^users must hold strings or integers; got bool$"),
    ([b"a"], IdError, r"^users must hold strings or integers; got binary$"),
    ([object()], IdError, r"^users must hold strings or integers; got object$"),
    ([(1, 2)], IdError, r"^users must hold strings or integers; got list"),
    ([pd.Timestamp("2020-01-01")], IdError, r"^users must hold strings or integers; got timestamp"),
    (np.array([[1, 2]]), IdError, r"^users must hold strings or integers"),
    (5, IdError, r"^users must be a sequence of ids, in order; got 5$"),
    (None, IdError, r"^users must be a sequence of ids, in order; got None$"),
    ("ann", IdError, r"^users must be a sequence of ids; got the single string 'ann'$"),
    (np.array([2**63, 1], np.uint64), IdError, r"^users holds integers beyond 64 signed bits \(largest: 92233720368"),
    (["a", None, "b", None], MissingValueError, r"^users has missing values in 2 of 4 rows \(first: 1, 3, counting"),
    ([1, None], MissingValueError, r"^users has missing values in 1 of 2 rows \(first: 1, counting from 0\)"),
    (pd.Series([1.0, np.nan]), MissingValueError, r"^users has missing values in 1 of 2 rows \(first: 1, counting"),
    (pd.Series([1, None], dtype="Int64"), MissingValueError, r"^users has missing values in 1 of 2 rows \(first: 1"),
    ([2**70], IdError, r"^users .*64"),
    (
        pa.DictionaryArray.from_arrays([0, 1], ["a", None]),
        MissingValueError,
        r"^users has missing values in 1 of 2 rows \(first: 1, counting from 0\)",
    ),
]


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        *BAD_IDS,
        ([], IdError, r"^users must hold strings or integers; got null$"),
        ([4, 9, 4, 9, 9], IdError, r"^users must be distinct; 2 occur more than once \(first: 4\)$"),
        (["b", "a", "b"], IdError, r"^users must be distinct; 1 occur more than once \(first: 'b'\)$"),
    ],
)
def test_what_cannot_be_a_catalogue_is_refused_in_one_line(ids, error, message):
    with pytest.raises(error, match=message) as caught:
        IdMap.of(ids, name="users")
    assert caught.type is error
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("catalogue", "ids", "error", "message"),
    [
        (
            [1, 2],
            [2, 3, 1, 7],
            UnknownIdError,
            r"^users are not all in the catalogue: unknown in 2 of 4 rows \(first: 1, 3, .*; the first is 3$",
        ),
        (
            ["a"],
            ["a", "z"],
            UnknownIdError,
            r"^users are not all in the catalogue: unknown in 1 of 2 rows \(first: 1, .*; the first is 'z'$",
        ),
        ([1, 2], ["1"], UnknownIdError, r"^users: strings \(first: '1'\) where the catalogue has integers$"),
        (["1"], [1], UnknownIdError, r"^users: integers \(first: 1\) where the catalogue has strings$"),
        ([1], [1, None], MissingValueError, r"^users has missing values in 1 of 2 rows \(first: 1, counting from 0\)"),
        ([1], [1, "a"], IdError, r"^users mixes 2 types: int, str"),
        (["a"], "a", IdError, r"^users must be a sequence of ids; got the single string 'a'$"),
        ([1, 2], [1.0], IdError, r"floats"),
        ([1, 2], [1.5], IdError, r"floats"),
        ([1, 2], [True], IdError, r"bool"),
        ([1, 2], [b"1"], IdError, r"binary"),
        ([1, 2], [[1]], IdError, r"list"),
        ([1, 2], np.array([2**63], np.uint64), UnknownIdError, r"unknown in 1 of 1"),
    ],
)
def test_asking_for_ids_that_are_not_there_is_refused_in_one_line(catalogue, ids, error, message):
    with pytest.raises(error, match=message) as caught:
        IdMap.of(catalogue).positions(ids, name="users")
    assert caught.type is error
    assert "\n" not in str(caught.value)


def test_an_unknown_id_is_a_key_error_with_a_readable_message():
    with pytest.raises(KeyError) as caught:
        IdMap.of([1]).positions([2])
    assert str(caught.value).startswith("ids are not all in the catalogue")


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        ([0, 2], r"^positions must be positions from 0 to 1; 1 of 2 is not \(row 1 has 2\)$"),
        ([-1], r"^positions must be positions from 0 to 1; 1 of 1 is not \(row 0 has -1\)$"),
        ([0.0], r"^positions must be integers \(positions\); got float64$"),
        ([[0]], r"^positions must be a flat array of positions; got shape \(1, 1\)$"),
    ],
)
@pytest.mark.parametrize("catalogue", [IdMap.of(["a", "b"]), IdMap(2)])
def test_positions_outside_the_catalogue_have_no_id(catalogue, positions, message):
    with pytest.raises(PositionError, match=message):
        catalogue.ids(positions)


def test_no_ids_have_no_positions():
    assert IdMap.of(["a"]).positions([]).tolist() == []
    assert IdMap.of(["a"]).ids(np.empty(0, int)).tolist() == []


def test_a_size_alone_means_that_ids_are_positions():
    catalogue = IdMap(4)
    assert len(catalogue) == 4
    assert catalogue.positions([3, 0]).tolist() == [3, 0]
    assert catalogue.ids([3, 0]).tolist() == [3, 0]
    assert catalogue == IdMap.of(range(4))
    assert catalogue != IdMap(5)
    assert catalogue != [0, 1, 2, 3]


def test_a_catalogue_says_its_size_and_kind():
    assert repr(IdMap(1234)) == "IdMap(1,234 ids, positions)"
    assert repr(IdMap.of([1])) == "IdMap(1 ids, int64)"
    assert repr(IdMap.of(["a"])) == "IdMap(1 ids, large_string)"


@pytest.mark.parametrize(
    ("ids", "kind"),
    [(["ann", "bob"], "U"), (["a", "b\0"], "O"), (["a", "b" * 5_000], "O"), ([7, 8], "i")],
    ids=["text", "a null at the end", "a long one", "integers"],
)
def test_ids_come_in_an_array_that_can_be_saved_where_that_loses_nothing(ids, kind, tmp_path):
    found = IdMap.of(ids).ids()
    assert found.dtype.kind == kind
    assert found.tolist() == ids
    if kind != "O":
        np.save(tmp_path / "ids.npy", found, allow_pickle=False)
        assert IdMap.in_order(np.load(tmp_path / "ids.npy")) == IdMap.of(ids)
