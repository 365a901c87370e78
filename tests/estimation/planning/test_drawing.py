"""Pairs drawn with unequal probabilities: as many as asked for, each as often as it should be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verirec.estimation.planning.drawing import draw, draw_one_each, inclusion_probabilities


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=50), st.floats(1e-6, 1))
def test_probabilities_add_up_and_follow_the_sizes_below_one(sizes, part):
    sizes, count = np.array(sizes), part * len(sizes)
    found = inclusion_probabilities(sizes, count)
    assert found.sum() == pytest.approx(count)
    assert ((found >= 0) & (found <= 1)).all()
    below = found < 1
    if below.any():
        ratio = found[below] / sizes[below]
        np.testing.assert_allclose(ratio, ratio[0], rtol=1e-9)
        # None of those that are certain would have been below 1.
        assert (sizes[~below] * ratio[0] >= 1 - 1e-9).all()


def test_pairs_are_drawn_as_often_as_their_probabilities_say():
    """Twenty of sixty, 4,000 times: a share's standard error is at most .008."""
    random = np.random.default_rng(0)
    probabilities = inclusion_probabilities(random.exponential(size=60), 20)
    drawn = np.zeros(60)
    for _ in range(4_000):
        found = draw(probabilities, 20, random)
        assert len(np.unique(found)) == 20
        drawn[found] += 1
    error = np.sqrt(probabilities * (1 - probabilities) / 4_000) + 1e-3
    assert (np.abs(drawn / 4_000 - probabilities) < 4 * error).all()
    assert (drawn[probabilities == 1] == 4_000).all()


def test_drawn_pairs_come_in_random_order():
    """Each is drawn as often first as last: those of higher probability too."""
    random = np.random.default_rng(1)
    probabilities = inclusion_probabilities(np.arange(1.0, 9.0), 4)
    drawn = np.array([draw(probabilities, 4, random) for _ in range(2_000)])
    first, last = (np.bincount(drawn[:, place], minlength=8) for place in (0, -1))
    assert (np.abs(first - last) < 4 * np.sqrt(first + last + 1)).all()


def test_none_and_all_can_be_drawn():
    random = np.random.default_rng(0)
    assert draw(np.full(3, 0.1), 0, random).tolist() == []
    assert sorted(draw(np.ones(3), 3, random).tolist()) == [0, 1, 2]


def test_one_of_each_owner_is_drawn_as_often_as_its_probability_says():
    """Ten of sixty, of 20 owners, 4,000 times; no owner is certain."""
    random = np.random.default_rng(2)
    sizes, owners = 0.5 + random.exponential(size=60), random.permutation(np.repeat(np.arange(20), 3))
    wanted = 10 * sizes / sizes.sum()
    drawn = np.zeros(60)
    for _ in range(4_000):
        found, chances = draw_one_each(sizes, owners, 10, random)
        assert len(np.unique(owners[found])) == 10
        np.testing.assert_allclose(chances, wanted[found])
        drawn[found] += 1
    error = np.sqrt(wanted * (1 - wanted) / 4_000) + 1e-3
    assert (np.abs(drawn / 4_000 - wanted) < 4 * error).all()


def test_owners_that_are_certain_share_what_they_have():
    sizes, owners = np.array([30.0, 10.0, 1.0, 1.0]), np.array([0, 0, 1, 2])
    found, chances = draw_one_each(sizes, owners, 2, np.random.default_rng(0))
    assert (
        dict(zip(found.tolist(), chances.tolist(), strict=True)).items() <= {0: 0.75, 1: 0.25, 2: 0.5, 3: 0.5}.items()
    )
