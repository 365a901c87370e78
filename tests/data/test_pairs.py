from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from verirec import FeedbackLog
from verirec.data.pairs import pair_order, repeated_rows
from verirec.exceptions import DuplicatePairError, ParameterError, RepeatedPairWarning

HUGE = 2**31 - 1


def columns(pairs):
    flat = np.array(pairs, np.int32).reshape(-1, 2)
    return flat[:, 0].copy(), flat[:, 1].copy()


def found(pairs, n_users, n_items):
    """Return the order of pairs, and the rows that are repeated."""
    users, items = columns(pairs)
    order = pair_order(users, items, n_users, n_items)
    if order is None:
        return list(range(len(pairs))), []
    return order.tolist(), repeated_rows(order, users, items).tolist()


def expected(pairs):
    """Sort plainly, and count."""
    count = Counter(pairs)
    order = sorted(range(len(pairs)), key=lambda row: pairs[row])
    return order, [row for row, pair in enumerate(pairs) if count[pair] > 1]


@pytest.mark.parametrize(("n_users", "n_items"), [(6, 6), (HUGE, HUGE), (2**16, 2**16), (2**16 - 1, 2**16 + 1)])
@given(data=st.data())
def test_the_order_is_that_of_a_plain_sort_and_repeats_those_that_a_counter_finds(n_users, n_items, data):
    sides = [st.sampled_from([0, 1, 2, size - 3, size - 2, size - 1]) for size in (n_users, n_items)]
    pairs = data.draw(st.lists(st.tuples(*sides), max_size=30))
    assert found(pairs, n_users, n_items) == expected(pairs)


def test_many_rows_of_a_huge_grid_are_sorted_though_pair_and_row_need_more_than_64_bits():
    random = np.random.default_rng(0)
    pairs = [(int(user), int(item)) for user, item in random.integers(0, HUGE, (20_000, 2))]
    pairs += [(pairs[0][0], item) for item in range(2_000, 0, -1)] + pairs[100:110] + pairs[500:502]
    assert found(pairs, HUGE, HUGE) == expected(pairs)


def test_sorted_rows_are_told_at_once_and_one_that_is_out_of_place_anywhere_is_found():
    pairs = np.arange(70_000)
    users, items = (side.astype(np.int32) for side in np.divmod(pairs, 300))
    assert pair_order(users, items, 300, 300) is None
    for place in (0, 65_534, 65_535, 65_536, 69_998):
        turned = pairs.copy()
        turned[[place, place + 1]] = turned[[place + 1, place]]
        assert pair_order(users[turned], items[turned], 300, 300).tolist() == turned.tolist()


def kept(policy, pairs, values, times):
    """Apply a policy with a dictionary: pair -> row; a later row wins a tie."""
    better = {
        "first": lambda row, held: False,
        "last": lambda row, held: True,
        "latest": lambda row, held: times[row] >= times[held],
        "highest": lambda row, held: values[row] >= values[held],
    }[policy]
    best = {}
    for row, pair in enumerate(pairs):
        if pair not in best or better(row, best[pair]):
            best[pair] = row
    return sorted(best.values(), key=lambda row: pairs[row])


def log_of(pairs, labels, **options):
    """Make a log whose weights are row numbers from 1, so that they tell which rows were kept."""
    return FeedbackLog.from_arrays(
        *columns(pairs), labels, n_users=4, n_items=4, weights=np.arange(1, len(pairs) + 1), **options
    )


def rows_of(log):
    return [int(weight) - 1 for weight in log.weights]


ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 5), st.integers(0, 4)), min_size=1, max_size=30
)


@pytest.mark.parametrize("times_type", [np.int64, np.float64, "M8[s]"])
@pytest.mark.parametrize("policy", ["first", "last", "latest", "highest"])
@given(rows=ROWS)
def test_a_policy_keeps_the_rows_that_a_dictionary_keeps(policy, times_type, rows):
    pairs = [row[:2] for row in rows]
    ratings, times = [row[2] for row in rows], np.array([row[3] for row in rows]).astype(times_type)
    pairs, ratings = [*pairs, (0, 0), (0, 0)], [*ratings, 1, 5]
    times = np.append(times, times[[0, 0]])
    labels = {ratings[row] >= 3 for row in kept(policy, pairs, ratings, times)}
    assume(len(labels) == 2)
    log = log_of(pairs, ratings, positive_from=3, timestamps=times, duplicates=policy)
    expected = kept(policy, pairs, ratings, times)
    assert rows_of(log) == expected
    assert log.ratings.tolist() == [ratings[row] for row in expected]
    assert log.labels.tolist() == [int(ratings[row] >= 3) for row in expected]
    assert log.timestamps.tolist() == times[expected].tolist()
    assert list(zip(log.users.tolist(), log.items.tolist(), strict=True)) == [pairs[row] for row in expected]


@given(ROWS)
def test_the_error_policy_refuses_disagreement_and_otherwise_keeps_first_rows(rows):
    pairs, labels = [row[:2] for row in rows], [int(row[2] >= 3) for row in rows]
    of_pair = {pair: {labels[row] for row, other in enumerate(pairs) if other == pair} for pair in pairs}
    if any(len(both) == 2 for both in of_pair.values()):
        with pytest.raises(DuplicatePairError):
            log_of(pairs, labels)
    elif len(of_pair) < len(pairs):
        with pytest.warns(RepeatedPairWarning):
            log = log_of(pairs, labels)
        assert rows_of(log) == kept("first", pairs, labels, None)
    else:
        assert rows_of(log_of(pairs, labels)) == sorted(range(len(pairs)), key=lambda row: pairs[row])


def test_disagreement_is_counted_in_pairs_and_rows():
    pairs = [(0, 0), (1, 1), (2, 2), (1, 1), (0, 0), (0, 0), (2, 2)]
    with pytest.raises(DuplicatePairError) as caught:
        log_of(pairs, [1, 0, 1, 1, 0, 0, 1])
    assert str(caught.value) == (
        "2 user-item pairs occur with both labels, in 5 of 7 rows (first: 0, 1, 3, counting from 0); "
        "choose which row counts, first, last, highest or (by timestamp) latest: duplicates='first'"
    )


def test_merging_says_how_many_pairs_and_rows():
    pairs = [(0, 0), (0, 1), (0, 0), (0, 0), (0, 1), (2, 2)]
    with pytest.warns(RepeatedPairWarning, match=r"^2 user-item pairs occur .*; .* \(3 of 6 rows dropped\)$"):
        log = log_of(pairs, np.ones(6))
    assert rows_of(log) == [0, 1, 5]


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("newest", r"^duplicates must be one of error, first, highest, last, latest; got 'newest'$"),
        (None, r"^duplicates must be one of .*; got None$"),
        ("latest", r"^duplicates='latest' needs timestamps; name their column: timestamp=\.\.\.$"),
    ],
)
def test_a_policy_that_cannot_be_applied_is_refused_even_without_repeats(policy, message):
    with pytest.raises(ParameterError, match=message):
        log_of([(0, 0)], [1], duplicates=policy)
