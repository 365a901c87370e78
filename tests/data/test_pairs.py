from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from verirec import FeedbackLog
from verirec.data.pairs import repeated_rows
from verirec.exceptions import DuplicatePairError, ParameterError, RepeatedPairWarning

MULTIPLIER = 2654435761
HUGE = 2**31 - 1


def columns(pairs):
    flat = np.array(pairs, np.int32).reshape(-1, 2)
    return flat[:, 0].copy(), flat[:, 1].copy()


def counted(pairs):
    count = Counter(pairs)
    return [row for row, pair in enumerate(pairs) if count[pair] > 1]


def colliding_pairs(key, users):
    """Give pairs of a huge grid that all have the same key in 32-bit arithmetic."""
    candidates = ((user, (key - user * MULTIPLIER) % 2**32) for user in users)
    return [(user, item) for user, item in candidates if item < HUGE]


@pytest.mark.parametrize(("n_users", "n_items"), [(6, 6), (HUGE, HUGE), (2**16, 2**16), (2**16 - 1, 2**16 + 1)])
@given(data=st.data())
def test_repeated_rows_are_those_that_a_counter_finds(n_users, n_items, data):
    sides = [st.sampled_from([0, 1, 2, size - 3, size - 2, size - 1]) for size in (n_users, n_items)]
    pairs = data.draw(st.lists(st.tuples(*sides), max_size=30))
    assert repeated_rows(*columns(pairs), n_users, n_items).tolist() == counted(pairs)


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 40), max_size=8))
def test_pairs_of_a_huge_grid_that_share_a_32_bit_key_are_not_taken_for_repeats(key, again):
    different = colliding_pairs(key, range(40))
    assert len(different) > 5
    assert repeated_rows(*columns(different), HUGE, HUGE).size == 0
    pairs = different + [different[place % len(different)] for place in again]
    assert repeated_rows(*columns(pairs), HUGE, HUGE).tolist() == counted(pairs)


def test_repeats_are_found_among_many_rows_of_a_huge_grid():
    random = np.random.default_rng(0)
    pairs = [(int(user), int(item)) for user, item in random.integers(0, HUGE, (20_000, 2))]
    pairs += colliding_pairs(12345, range(2000)) + pairs[100:110] + pairs[500:502]
    assert repeated_rows(*columns(pairs), HUGE, HUGE).tolist() == counted(pairs)


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
    return sorted(best.values())


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
        assert rows_of(log_of(pairs, labels)) == list(range(len(pairs)))


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
