"""Worlds in which some users, and some pairs, err more than others."""

from __future__ import annotations

import numpy as np
import pytest

import verirec as vr
from refusals import check_refusal
from verirec.exceptions import ParameterError


def shares_of_wrong(world, users):
    cells = world.block(np.flatnonzero(users), np.arange(world.n_items))
    wrong = cells.noisy_labels != cells.true_labels
    return wrong[cells.true_labels == 0].mean(), wrong[cells.true_labels == 1].mean()


def test_careless_users_and_bots_err_as_they_are_said_to():
    world = vr.simulate.world(300, 300, careless=0.3, bots=0.2, random_state=0)
    ordinary = ~(world.careless_users | world.bot_users)
    assert shares_of_wrong(world, ordinary) == pytest.approx((0.1, 0.2), abs=0.01)
    assert shares_of_wrong(world, world.careless_users) == pytest.approx((0.3, 0.35), abs=0.015)
    assert shares_of_wrong(world, world.bot_users) == pytest.approx((0.9, 0.1), abs=0.015)
    assert world.careless_users.mean() == pytest.approx(0.3, abs=0.08)
    assert world.bot_users.mean() == pytest.approx(0.2, abs=0.08)


@pytest.mark.parametrize("options", [{}, {"near_threshold": True}, {"careless": 0.5}, {"bots": 0.5}])
def test_labels_are_wrong_as_often_as_their_chances_say(options):
    world = vr.simulate.world(200, 200, random_state=1, **options)
    users, items = (one.ravel() for one in np.indices((200, 200)))
    cells, chances = world.at(users, items), world.wrong_chances(users, items)
    wrong = cells.noisy_labels != cells.true_labels
    for low, high in ((0, 0.15), (0.15, 0.3), (0.3, 1)):
        own = (chances >= low) & (chances < high)
        if own.sum() > 500:
            assert wrong[own].mean() == pytest.approx(chances[own].mean(), abs=4 * 0.5 / np.sqrt(own.sum()))


def test_worlds_without_habits_are_as_they_were():
    plain, same = (vr.simulate.world(40, 60, random_state=0, **more) for more in ({}, {"careless": 0.0, "bots": 0.0}))
    assert (plain.noisy_labels == same.noisy_labels).all()
    assert not plain.careless_users.any()


@pytest.mark.parametrize("given", [{"careless": -0.1}, {"bots": 1.1}, {"careless": 0.6, "bots": 0.6}, {"bots": "many"}])
def test_bad_shares(given):
    check_refusal(lambda: vr.simulate.world(20, 30, **given), ParameterError, "careless|bots")


def test_shares_that_add_up_to_all_users_leave_no_ordinary_ones():
    assert 1 - 0.9 - 0.1 < 0, "the shares are such that their rest is below 0 by rounding"
    world = vr.simulate.world(50, 40, careless=0.9, bots=0.1, random_state=0)
    assert (world.careless_users | world.bot_users).all()
