"""Rows by user and by item, against plain sorting."""

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
    assert rows.by_user.others.tolist() == log.items[order].tolist()
    assert rows.by_user.starts.tolist() == np.searchsorted(log.users[order], range(log.n_users + 1)).tolist()
    assert len(rows.by_user.places) == 0
    by_item = np.argsort(log.items[order], kind="stable")
    assert rows.by_item.places.tolist() == by_item.tolist()
    assert rows.by_item.others.tolist() == log.users[order][by_item].tolist()
    assert rows.by_item.starts.tolist() == np.searchsorted(np.sort(log.items), range(log.n_items + 1)).tolist()
    assert (len(rows.by_user), len(rows.by_item)) == (log.n_users, log.n_items)
    assert rows.sides == (rows.by_user, rows.by_item)


@given(log=logs())
def test_a_log_in_the_order_of_users_is_used_as_it_is(log):
    rows = SortedRows.of(log)
    sorted_already = bool((np.diff(log.users) >= 0).all())
    assert (len(rows.numbers) == 0) == sorted_already
    assert (rows.by_user.others is log.items) == sorted_already


def test_the_log_stays_as_it_is():
    log = a_log()
    before = log.users.tolist(), log.items.tolist()
    SortedRows.of(log)
    assert (log.users.tolist(), log.items.tolist()) == before
