import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verirec.data.cells import DenseCells, FactorCells, checked_positions
from verirec.data.parts import totals
from verirec.exceptions import ParameterError, PositionError

MATRIX = np.arange(20.0).reshape(4, 5)


def rank_one():
    """Give a factor form of `MATRIX`: 5 u + i + 0."""
    return FactorCells(np.zeros((4, 2)), np.ones((5, 2)), 5.0 * np.arange(4), np.arange(5.0) - 1, 1.0)


@pytest.mark.parametrize("cells", [DenseCells(MATRIX), rank_one()], ids=["dense", "factors"])
@given(users=st.lists(st.integers(0, 3), max_size=6), items=st.lists(st.integers(0, 4), max_size=6))
def test_a_block_holds_the_values_of_its_pairs_whatever_the_positions(cells, users, items):
    rows, columns = np.array(users, int), np.array(items, int)
    expected = np.array([[5.0 * user + item for item in items] for user in users]).reshape(len(users), len(items))
    assert np.array_equal(cells.block(rows, columns), expected)
    pairs = np.array([(user, item) for user in users for item in items], int).reshape(-1, 2)
    assert cells.at(pairs[:, 0], pairs[:, 1]).tolist() == expected.ravel().tolist()


@pytest.mark.parametrize(
    ("users", "items"), [([4], [0]), ([0], [5]), ([-1], [0]), ([0, 1], [4, 5]), ([3, 4], [0, 1]), ([0], [7, 8])]
)
def test_a_dense_block_outside_the_grid_is_refused(users, items):
    with pytest.raises(IndexError):
        DenseCells(MATRIX).block(users, items)


@pytest.mark.parametrize(("users", "items"), [([0, 1], [0]), ([[0]], [[0]]), (0, 0)])
def test_pairs_must_be_two_flat_arrays_of_one_length(users, items):
    with pytest.raises(
        (ParameterError, PositionError), match=r"^users (and items must be of one length|must be a flat array)"
    ):
        DenseCells(MATRIX).at(users, items)


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        ([0, -1], r"^users must be positions from 0 to 1,999; 1 of 2 is not \(row 1 has -1\)$"),
        ([2000, 0, 5000], r"^users must be positions from 0 to 1,999; 2 of 3 are not \(row 0 has 2000\)$"),
        (np.array([2**63], np.uint64), r"1 of 1 is not \(row 0 has 9223372036854775808\)$"),
        ([0.0, 1.0], r"^users must be integers \(positions\); got float64$"),
        ([True], r"^users must be integers \(positions\); got bool$"),
        (["0"], r"^users must be integers \(positions\); got <U1$"),
        ([None], r"^users must be integers \(positions\); got object$"),
        ([[0]], r"^users must be a flat array of positions; got shape \(1, 1\)$"),
        (0, r"^users must be a flat array of positions; got shape \(\)$"),
        ([[0], [0, 1]], r"^users must be an array; got a list"),
    ],
)
def test_what_is_not_a_position_is_refused_in_one_line(positions, message):
    with pytest.raises(PositionError, match=message) as caught:
        checked_positions("users", positions, 2000)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.int32, np.int64, np.uint64])
def test_positions_of_any_integer_type_become_int32(kind):
    positions = checked_positions("users", np.array([0, 99], kind), 100)
    assert positions.dtype == np.int32
    assert positions.tolist() == [0, 99]


def test_no_positions_are_positions():
    assert checked_positions("users", [], 3).tolist() == []


@given(st.lists(st.tuples(st.integers(0, 6), st.floats(-100, 100)), max_size=30), st.integers(7, 10))
def test_totals_add_values_up_by_position(rows, size):
    positions = np.array([position for position, _ in rows], np.int32)
    added = totals(positions, np.array([value for _, value in rows], float), size)
    expected = [0.0] * size
    for position, value in rows:
        expected[position] += value
    assert added.dtype == np.float64
    assert added.tolist() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint8, np.int64, np.float32])
def test_totals_of_any_numbers_are_floats_that_do_not_wrap(kind):
    added = totals(np.zeros(300, np.int32), np.ones(300, kind), 2)
    assert (added.dtype, added.tolist()) == (np.float64, [300.0, 0.0])
