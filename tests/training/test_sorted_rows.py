"""Where each user's rows are."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as some

from held import HALF_A_NUMBER, held_a_row
from verirec import FeedbackLog
from verirec.training.sorted_rows import SortedRows


@some.composite
def logs(draw):
    n_users, n_items = draw(some.integers(1, 9)), draw(some.integers(1, 9))
    cells = draw(some.lists(some.integers(0, n_users * n_items - 1), min_size=1, max_size=40, unique=True))
    users, items = np.divmod(np.array(cells), n_items)
    return FeedbackLog.from_arrays(users, items, np.array(cells) % 2, n_users=n_users, n_items=n_items)


@given(log=logs())
def test_rows_are_the_logs_own_and_each_users_are_where_it_begins(log):
    rows = SortedRows.of(log)
    assert rows.items is log.items
    for user in range(log.n_users):
        assert np.flatnonzero(log.users == user).tolist() == list(range(rows.starts[user], rows.starts[user + 1]))
    assert (len(rows), rows.shape) == (len(log), (log.n_users, log.n_items))


@given(log=logs(), count=some.integers(1, 12))
def test_parts_are_all_users_once_and_of_about_as_many_rows(log, count):
    rows = SortedRows.of(log)
    parts = rows.parts(count)
    assert [user for part in parts for user in range(part.start, part.stop)] == list(range(log.n_users))
    assert 1 <= len(parts) <= count
    most = np.diff(rows.starts).max()
    assert all(rows.starts[part.stop] - rows.starts[part.start] <= len(log) / count + most for part in parts)


def test_nothing_is_as_long_as_the_log():
    assert held_a_row(lambda log: lambda: SortedRows.of(log)) < HALF_A_NUMBER
