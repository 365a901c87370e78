from datetime import UTC, date, datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from refusals import check_refusal
from verirec import FeedbackLog, split, split_unbiased
from verirec.exceptions import DataError, ParameterError

KINDS = ("random", "user", "within-user", "time")
SHARES = st.floats(0.01, 0.99)


def log_of(cells, times=None, **options):
    """Make a log on a 6 x 8 grid whose weights are row numbers from 1."""
    cells = np.array(cells)
    return FeedbackLog.from_arrays(
        cells // 8,
        cells % 8,
        cells % 2,
        n_users=6,
        n_items=8,
        weights=np.arange(1, len(cells) + 1),
        timestamps=times,
        **options,
    )


@st.composite
def logs(draw):
    cells = draw(st.lists(st.integers(0, 47), min_size=9, max_size=40, unique=True).map(sorted))
    times = draw(
        st.lists(st.integers(0, 5), min_size=len(cells), max_size=len(cells)).filter(lambda t: len(set(t)) > 1)
    )
    return log_of(cells, np.array(times).astype(draw(st.sampled_from(["i8", "f8", "M8[s]"]))))


def rows_of(log):
    return [int(weight) - 1 for weight in log.weights]


def nearest(share, total):
    return min(max(1, round(share * total)), total - 1)


@pytest.mark.parametrize("by", KINDS)
@given(log=logs(), share=SHARES, seed=st.integers(0, 9))
def test_every_row_goes_to_exactly_one_side_in_its_order_and_both_keep_the_grid(by, log, share, seed):
    assume(by != "within-user" or share * np.bincount(log.users).max() >= 1)
    parts = split(log, share, by=by, random_state=seed)
    assert sorted(rows_of(parts.train) + rows_of(parts.held_out)) == list(range(len(log)))
    for part in parts:
        assert rows_of(part) == sorted(rows_of(part))
        assert (part.n_users, part.n_items) == (6, 8)
        assert part.user_ids is log.user_ids
        assert part.labels.tolist() == log.labels[rows_of(part)].tolist()
        assert part.timestamps.tolist() == log.timestamps[rows_of(part)].tolist()


@pytest.mark.parametrize("by", ["random", "user", "within-user"])
@given(log=logs(), share=SHARES)
def test_the_same_seed_gives_the_same_split(by, log, share):
    assume(by != "within-user" or share * np.bincount(log.users).max() >= 1)
    first, again = (split(log, share, by=by, random_state=seed) for seed in (3, np.random.default_rng(3)))
    assert rows_of(first.held_out) == rows_of(again.held_out)


@given(logs(), SHARES)
def test_random_holds_out_the_nearest_number_of_rows(log, share):
    assert len(split(log, share, random_state=0).held_out) == nearest(share, len(log))


@given(logs(), SHARES, st.integers(0, 9))
def test_by_user_keeps_users_whole_and_holds_out_the_nearest_number_of_them(log, share, seed):
    train, held_out = split(log, share, by="user", random_state=seed)
    assert not set(train.users.tolist()) & set(held_out.users.tolist())
    assert len(set(held_out.users.tolist())) == nearest(share, len(set(log.users.tolist())))


@given(logs(), st.sampled_from([0.125, 0.25, 0.5, 0.75]), st.integers(0, 9))
def test_within_user_holds_out_the_share_of_each_user_rounded_down(log, share, seed):
    assume(share * np.bincount(log.users).max() >= 1)
    held_out = split(log, share, by="within-user", random_state=seed).held_out
    for user in range(6):
        assert (held_out.users == user).sum() == int(share * (log.users == user).sum())


@given(logs(), SHARES)
def test_by_time_nothing_held_out_is_before_anything_in_train(log, share):
    train, held_out = split(log, share, by="time")
    assert train.timestamps.max() < held_out.timestamps.min()


@given(logs(), SHARES)
def test_by_time_holds_out_no_more_times_than_the_share_needs(log, share):
    times = np.sort(log.timestamps)
    held_out = split(log, share, by="time").held_out
    wanted = nearest(share, len(log))
    later = times[times > held_out.timestamps.min()]
    if len(held_out) >= wanted:
        assert len(later) < wanted
    else:
        assert held_out.timestamps.min() == np.unique(times)[1]


def test_random_splits_choose_every_row_equally_often():
    log = log_of(range(40))
    chosen = np.zeros(40)
    for seed in range(400):
        chosen[rows_of(split(log, 0.25, random_state=seed).held_out)] += 1
    assert abs(chosen - 100).max() < 4.5 * np.sqrt(400 * 0.25 * 0.75)


@pytest.mark.parametrize("by", KINDS)
@pytest.mark.parametrize("share", [0.001, 0.999])
def test_at_least_one_row_goes_to_either_side(by, share):
    log = log_of(range(40), np.arange(40))
    if (by, share) == ("within-user", 0.001):
        with pytest.raises(DataError, match=r"^held_out=0.001 of each user's rows, rounded down, is none"):
            split(log, share, by=by, random_state=0)
    else:
        assert all(len(part) > 0 for part in split(log, share, by=by, random_state=0))


def test_within_user_holds_out_the_share_exactly_where_it_is_whole():
    log = FeedbackLog.from_arrays(np.zeros(100, int), range(100), [0, 1] * 50, n_users=1, n_items=100)
    assert len(split(log, 0.29, by="within-user", random_state=0).held_out) == 29


@pytest.mark.parametrize(
    ("log", "options", "error", "message"),
    [
        (
            log_of([0, 9]),
            {"held_out": 0},
            ParameterError,
            r"^held_out must be a finite number above 0 and below 1; got 0$",
        ),
        (log_of([0, 9]), {"held_out": 1.0}, ParameterError, r"^held_out must be .*; got 1\.0$"),
        (log_of([0, 9]), {"held_out": "0.2"}, ParameterError, r"^held_out must be .*; got '0\.2'$"),
        (
            log_of([0, 9]),
            {"by": "item"},
            ParameterError,
            r"^by must be one of random, time, user, within-user; got 'item'$",
        ),
        (log_of([0, 9]), {"random_state": -1}, ParameterError, r"^random_state must be .*; got -1$"),
        (
            log_of([0, 9]),
            {"by": "time"},
            DataError,
            r"^a split by time needs timestamps; name their column: timestamp=\.\.\.$",
        ),
        (
            log_of([0, 9], [4, 4]),
            {"by": "time"},
            DataError,
            r"^a split by time needs at least 2 distinct timestamps; all 2 rows have 4$",
        ),
        (log_of([0]), {}, DataError, r"^a split needs at least 2 rows; the log has 1$"),
        (log_of([0], [4]), {"by": "time"}, DataError, r"^a split needs at least 2 rows; the log has 1$"),
        (log_of([0, 1]), {"by": "user"}, DataError, r"^a split needs at least 2 users; the log has 1$"),
    ],
)
def test_a_split_that_cannot_be_made_is_refused(log, options, error, message):
    with pytest.raises(error, match=message) as caught:
        split(log, **options)
    assert caught.type is error
    assert "\n" not in str(caught.value)


@given(st.lists(st.booleans(), min_size=1, max_size=20))
def test_the_unbiased_slice_is_what_the_log_marks(flags):
    parts = split_unbiased(log_of(range(len(flags)), unbiased=flags))
    assert rows_of(parts.unbiased) == [row for row, flag in enumerate(flags) if flag]
    assert rows_of(parts.self_selected) == [row for row, flag in enumerate(flags) if not flag]


def test_a_log_without_marks_has_no_unbiased_slice():
    with pytest.raises(DataError, match=r"^the log does not say which rows are unbiased; name the column that does"):
        split_unbiased(log_of([0, 9]))


SECONDS = np.array(["1998-02-01", "1998-03-01", "1998-03-01T12:00", "1999-01-01"], "M8[s]")


@pytest.mark.parametrize(
    ("before", "earlier"),
    [
        ("1998-03-01", 1),
        ("1998-03-01T06:00", 2),
        ("1998-03-01T13:00:00+02:00", 2),
        ("1998-03-01T12:00:00Z", 2),
        ("1999", 3),
        (date(1998, 3, 1), 1),
        (datetime(1998, 3, 1, 1), 2),
        (datetime(1998, 3, 1, 0, tzinfo=UTC), 1),
        (pd.Timestamp("1998-03-01 00:30"), 2),
        (np.datetime64("1998-03-01"), 1),
    ],
    ids=str,
)
@pytest.mark.parametrize("unit", ["dates", "s", "ms", "us", "ns"])
def test_a_split_at_a_moment(before, earlier, unit):
    """The same whether timestamps are dates or numbers since 1970."""
    times = SECONDS if unit == "dates" else SECONDS.astype(f"M8[{unit}]").astype(np.int64)
    train, held_out = split(log_of([0, 9, 18, 27], times), by="time", before=before)
    assert rows_of(train) == list(range(earlier))
    assert rows_of(held_out) == list(range(earlier, 4))


def test_a_split_at_a_number():
    train, held_out = split(log_of([0, 9, 18], [3, 1, 2]), by="time", before=2.5)
    assert (rows_of(train), rows_of(held_out)) == ([1, 2], [0])


@pytest.mark.parametrize(
    ("times", "options", "error", "message"),
    [
        (SECONDS, {"before": "spring"}, ParameterError, "before must be a date or ISO text .*; got 'spring'"),
        (SECONDS, {"before": 3}, ParameterError, "before must be a date or ISO text .*; got 3"),
        (SECONDS, {"before": "NaT"}, ParameterError, "before must be a date or ISO text"),
        (SECONDS, {"before": "1998-02-31"}, ParameterError, "before must be a date or ISO text"),
        (SECONDS, {"before": "1998-01-01"}, DataError, "leaves no row before it: timestamps go from 1998-02-01"),
        (SECONDS, {"before": "2005"}, DataError, "before='2005' leaves no row to hold out"),
        (SECONDS, {"before": "1998-03-01", "by": "user"}, ParameterError, 'before=... is for by="time"; got by='),
        (SECONDS, {"before": "1998-03-01", "held_out": 0.3}, ParameterError, "give held_out or before=..."),
        ([1, 2, 3, 4], {"before": "1998-03-01"}, ParameterError, "before must be a number, .* from 1 to 4; got '1998"),
        ([1, 2, 3, 4], {"before": True}, ParameterError, "before must be"),
        ([1, 2, 3, 4], {"before": float("nan")}, ParameterError, "before must be"),
        (None, {"before": 3}, DataError, "a split by time needs timestamps"),
    ],
)
def test_moments_that_part_nothing_are_refused(times, options, error, message):
    check_refusal(lambda: split(log_of([0, 9, 18, 27], times), **{"by": "time", **options}), error, message)
