"""What logged pairs are expected to buy is what audited-dr reports of them."""

from __future__ import annotations

import numpy as np
import pytest

import verirec as vr
from held import HALF_A_NUMBER, held_more
from verirec import scratch
from verirec.estimation.planning.drawing import draw, inclusion_probabilities
from verirec.estimation.planning.logged_pairs import LoggedDesign, RowErrors
from verirec.estimation.planning.size_classes import SizeClasses
from verirec.estimation.planning.splitting import Prices


@pytest.mark.parametrize("rates", [vr.NoiseRates(0.05, 0.02), vr.NoiseRates(0.2, 0.1)], ids=["little noise", "much"])
def test_the_expected_half_width_is_the_one_reported(rates):
    world = vr.simulate.world(120, 150, observed=0.4, noise_rates=rates, random_state=0)
    p, f = vr.GivenPropensity(world.propensity_values), 0.1 + 0.8 * world.preferences
    reported, expected = [], []
    for seed in range(5):
        plan = vr.plan_labels(world.log, f, budget=400, propensities=p, guess=rates, random_state=seed)
        assert plan.logged.all()
        audit = plan.audit(world.true_labels[plan.users, plan.items])
        low, high = vr.estimate(f, world.log, propensities=p, audit=audit)["audited-dr"].interval
        assert low < world.true_inaccuracy(f) + 0.02
        reported.append((high - low) / 2)
        expected.append(plan.half_width)
    assert np.mean(reported) == pytest.approx(np.mean(expected), rel=0.2)


def errors_of(squares):
    return RowErrors(np.eye(1), np.sqrt(np.atleast_2d(squares)), np.ones(np.shape(squares)[-1]))


@pytest.mark.parametrize("count", [1, 50, 3_000, 60_000, 199_999, 200_000])
def test_what_classes_of_rows_leave_open_is_what_the_rows_leave(count):
    random = np.random.default_rng(0)
    sizes, errors = 0.1 + random.exponential(size=200_000) ** 3, random.exponential(size=(3, 200_000))
    found = SizeClasses.of(sizes, lambda at: errors[:, at]).unasked(count)
    chances = inclusion_probabilities(sizes, count)
    np.testing.assert_allclose(found, errors @ (1 / chances - 1), rtol=1e-4, atol=1e-6 * errors.sum())


def test_the_formula_by_hand():
    """Two rows whose errors are 1 and 9: of one audit, chances are a quarter and three quarters, but for the tenth."""
    design = LoggedDesign(np.array([0.5]), errors_of([1.0, 9.0]), vr.NoiseRates(0.1, 0.1))
    sizes = 0.1 + 0.9 * np.array([0.5, 1.5])
    np.testing.assert_allclose(design.probabilities(1), sizes / 2)
    assert design.variances(1) == pytest.approx(0.5 + (2 / sizes[0] - 1) + 9 * (2 / sizes[1] - 1))
    assert design.variances(2) == pytest.approx(0.5)
    assert design.variances(0) == np.inf


def test_a_budget_is_split_by_what_either_kind_buys():
    """Logged pairs are cheap at first, and then leave what the log leaves open; random ones always gain."""
    logged = LoggedDesign(np.array([1e-4]), errors_of(np.full(1_000, 1e-6)), vr.NoiseRates(0.1, 0.1))
    prices = Prices(np.array([2.0]), logged, 1_000)
    few, many = prices.split(100), prices.split(100_000)
    assert (few.logged, few.random) == (100, 0)
    assert many.random > many.logged > 0
    for budget in (100, 1_000, 100_000):
        split = prices.split(budget)
        assert split.logged + split.random == budget
        ends = [
            1 / (random / 2 + 1 / logged.variances(count)[0]) for count, random in ((0, budget), (100, budget - 100))
        ]
        assert split.variances[0] <= min(ends) * 1.1
    assert Prices(np.array([2.0]), None, 1_000).split(100) == (0, 100, pytest.approx([0.02]))


def test_the_smallest_budget_that_is_enough_is_found():
    logged = LoggedDesign(np.array([1e-4]), errors_of(np.full(1_000, 1e-6)), vr.NoiseRates(0.1, 0.1))
    for wanted in (0.01, 1e-3, 1e-4):
        prices = Prices(np.array([2.0]), logged, 1_000)
        split = prices.reach(wanted)
        assert split.variances.max() <= wanted
        fewer = prices.split(int(0.97 * (split.logged + split.random)) - 2)
        assert fewer.variances.max() > wanted


@pytest.mark.parametrize("budget", [60, 3_000])
def test_a_plan_on_disk_is_the_one_in_memory(budget, limited, monkeypatch):
    world = vr.simulate.world(60, 80, observed=0.4, random_state=0)
    p, f = vr.GivenPropensity(world.propensity_values), 0.1 + 0.8 * world.preferences

    def found():
        plan = vr.plan_labels(world.log, [f, 1 - f], budget=budget, propensities=p, exclude=world.log.select([3, 5]))
        return plan.users.tolist(), plan.items.tolist(), plan.probabilities.tolist(), plan.half_widths

    on_disk = found()
    monkeypatch.setattr(scratch._KEEPER, "memory", None)
    assert on_disk == found()


def test_what_rows_leave_open_is_worked_out_part_by_part(in_small_parts):
    numbers, drawn = 6, []

    def work(numbered):
        random, rows = np.random.default_rng(0), len(numbered)
        errors = RowErrors(random.normal(size=(numbers, 3)), random.normal(size=(3, rows)), random.random(rows))

        def planned():
            design = LoggedDesign(np.zeros(numbers), errors, vr.NoiseRates(0.1, 0.1))
            design.variances(5_000)
            drawn.append(draw(design.probabilities(5_000), 5_000, np.random.default_rng(0)))

        return planned

    # Beyond some hundred thousand rows, there are no more classes of these.
    assert held_more(work, range(600_000), range(1_200_000)) < HALF_A_NUMBER
    assert [len(np.unique(one)) for one in drawn] == [5_000] * 3


def test_the_smallest_ranks_are_drawn_however_many_there_are():
    probabilities = np.random.default_rng(0).random(2_300_000)
    probabilities *= 500 / probabilities.sum()
    uniform = np.random.default_rng(1).random(len(probabilities))
    ranks = uniform / (1 - uniform) * (1 - probabilities) / probabilities
    drawn = draw(probabilities, 500, np.random.default_rng(1))
    assert sorted(drawn) == sorted(np.argsort(ranks)[:500])
