"""Rows by user, against plain sorting."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as some

from training.tasks import a_log
from verirec import FeedbackLog
from verirec.training.sorted_rows import SortedRows


@some.composite
def logs(draw):
    n_users, n_items = draw(some.integers(1, 9)), draw(some.integers(1, 9))
    cells = draw(some.lists(some.integers(0, n_users * n_items - 1), min_size=1, max_size=40, unique=True))
    if draw(some.booleans()):
        cells = sorted(cells)
    users, items = np.divmod(np.array(cells), n_items)
    return FeedbackLog.from_arrays(users, items, np.array(cells) % 2, n_users=n_users, n_items=n_items)


@given(log=logs())
def test_rows_are_those_of_a_plain_sort(log):
    rows = SortedRows.of(log)
    order = np.argsort(log.users, kind="stable")
    numbers = rows.numbers if len(rows.numbers) else np.arange(len(log))
    assert numbers.tolist() == order.tolist()
    assert rows.items.tolist() == log.items[order].tolist()
    assert rows.starts.tolist() == np.searchsorted(log.users[order], range(log.n_users + 1)).tolist()
    assert (len(rows), rows.shape) == (len(log), (log.n_users, log.n_items))


@given(log=logs(), count=some.integers(1, 12))
def test_parts_are_all_users_once_and_of_about_as_many_rows(log, count):
    rows = SortedRows.of(log)
    parts = rows.parts(count)
    assert [user for part in parts for user in range(part.start, part.stop)] == list(range(log.n_users))
    assert 1 <= len(parts) <= count
    most = np.diff(rows.starts).max()
    assert all(rows.starts[part.stop] - rows.starts[part.start] <= len(log) / count + most for part in parts)


@given(log=logs())
def test_a_log_in_the_order_of_users_is_used_as_it_is(log):
    rows = SortedRows.of(log)
    sorted_already = bool((np.diff(log.users) >= 0).all())
    assert (len(rows.numbers) == 0) == sorted_already
    assert (rows.items is log.items) == sorted_already


def test_the_log_stays_as_it_is():
    log = a_log()
    before = log.users.tolist(), log.items.tolist()
    SortedRows.of(log)
    assert (log.users.tolist(), log.items.tolist()) == before
