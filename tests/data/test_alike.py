"""Users who rated nearly the same items are found, and nobody else is."""

from __future__ import annotations

import numpy as np
import pytest

import verirec as vr
from held import HALF_A_NUMBER, held_a_row
from verirec.data.alike import alike_users, copies_of_rows


def log_of(logged):
    users, items = np.nonzero(logged)
    return vr.FeedbackLog.from_arrays(
        users, items, (users + items) % 2, n_users=logged.shape[0], n_items=logged.shape[1]
    )


def drawn(shape, share, seed=0):
    return np.random.default_rng(seed).random(shape) < share


def test_users_who_are_there_several_times_are_one_group_each():
    found = alike_users(log_of(np.repeat(drawn((50, 200), 0.1), 4, axis=0)))
    assert found.group.tolist() == np.repeat(np.arange(50), 4).tolist()
    assert found.copies() == 4


def test_most_near_copies_are_found():
    copies = np.repeat(drawn((40, 300), 0.1), 5, axis=0)
    changed = copies & drawn(copies.shape, 0.92, 1) | drawn(copies.shape, 0.005, 2)
    found = alike_users(log_of(changed))
    assert 3.5 < found.copies() < 5.5
    of_one = [np.bincount(found.group[5 * user : 5 * user + 5]).max() for user in range(40)]
    assert np.mean(of_one) > 4


@pytest.mark.parametrize(
    ("shape", "share"), [((300, 400), 0.05), ((2_000, 50), 0.1), ((100, 30), 0.5), ((40, 30), 1.0), ((500, 20), 0.1)]
)
def test_users_who_choose_for_themselves_are_next_to_never_alike(shape, share):
    assert copies_of_rows(log_of(drawn(shape, share))) < 1.05


def test_popular_items_make_nobody_alike():
    by_item = np.where(np.arange(300) < 20, 0.9, 0.01)
    assert copies_of_rows(log_of(drawn((500, 300), by_item))) < 1.05


def test_a_part_of_the_users_tells_how_many_copies_there_are():
    log = log_of(np.repeat(drawn((400, 200), 0.1), 10, axis=0))
    assert copies_of_rows(log, most_rows=len(log) // 4) == pytest.approx(10, rel=0.25)
    assert copies_of_rows(log, most_rows=len(log)) == pytest.approx(10, rel=0.01)


def test_the_order_of_rows_does_not_matter():
    log = log_of(np.repeat(drawn((50, 200), 0.1), 2, axis=0))
    shuffled = log.select(np.random.default_rng(3).permutation(len(log)))
    assert alike_users(shuffled).group.tolist() == alike_users(log).group.tolist()


def test_parts_of_the_rows_tell_what_all_do(monkeypatch):
    log = log_of(np.repeat(drawn((100, 200), 0.1), 2, axis=0) & drawn((200, 200), 0.95, 1))
    whole = alike_users(log)
    monkeypatch.setattr("verirec.data.alike.SHORT", 7)
    assert alike_users(log).group.tolist() == whole.group.tolist()
    assert whole.copies() > 1.5


def test_who_is_alike_is_not_told_by_all_rows_at_once(in_small_parts):
    assert held_a_row(lambda log: lambda: alike_users(log)) < HALF_A_NUMBER
