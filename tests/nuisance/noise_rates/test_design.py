"""Designs of audits: as many pairs as it takes, fewer than at random, and each standing for its part of the log."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import verirec as vr
from refusals import check_refusal
from verirec.exceptions import AuditError, EmptyLogError, ParameterError, VerirecError
from verirec.nuisance.noise_rates.design import _Information, design_audit
from verirec.nuisance.noise_rates.strata import sort_into_strata

RATES = vr.NoiseRates(0.2, 0.1)
WIDTH = 0.04
WORLDS = 12


def made(seed, weak_separability=False):
    return vr.simulate.world(
        200, 300, observed=0.15, noise_rates=RATES, weak_separability=weak_separability, random_state=seed
    )


def half_widths(world, rows):
    """Ask about these rows, and give the half-widths of both rates that are reported."""
    users, items = world.log.users[rows], world.log.items[rows]
    audit = vr.AuditSample(users, items, world.at(users, items).true_labels)
    rates = vr.AuditNoiseRates().fit(world.log, audit=audit)
    return 1.959964 * np.sqrt(np.diag(rates.covariance)), np.array([rates.rho01, rates.rho10])


def weights_of(plan):
    """How many rows of the log each stands for."""
    return 1 / plan.probabilities


@cache
def studied(weak_separability, guess=RATES):
    """Plan in world after world: mean half-widths, the rates, and those of random choices as large, and of `simple`."""
    found = {"plan": [], "rates": [], "as many": [], "simple": [], "expected": [], "sizes": []}
    for seed in range(WORLDS if guess else 4):
        world = made(seed, weak_separability)
        plan = design_audit(world.log, half_width=WIDTH, guess=guess, random_state=seed)
        widths, rates = half_widths(world, plan.rows)
        found["plan"].append(widths)
        found["rates"].append(rates)
        if guess is None:
            continue
        random = np.random.default_rng(seed).permutation(len(world.log))
        found["as many"].append(half_widths(world, random[: len(plan.rows)])[0])
        found["simple"].append(half_widths(world, random[: plan.simple])[0])
        found["expected"].append(plan.half_widths)
        found["sizes"].append((len(plan.rows), plan.simple))
    return {name: np.array(values) for name, values in found.items()}


@pytest.fixture(scope="module")
def world():
    return made(0)


@pytest.fixture(scope="module")
def plan(world):
    return design_audit(world.log, half_width=WIDTH, guess=RATES)


@pytest.mark.parametrize("weak_separability", [False, True])
def test_the_wanted_half_width_is_reached(weak_separability):
    found = studied(weak_separability)
    assert (found["plan"].mean(axis=0) < 1.1 * WIDTH).all()
    assert found["plan"].mean(axis=0).max() > 0.9 * WIDTH  # and no more labels are asked for than that takes


@pytest.mark.parametrize("weak_separability", [False, True])
def test_the_expected_half_widths_are_those_reported_in_the_end(weak_separability):
    found = studied(weak_separability)
    np.testing.assert_allclose(found["plan"].mean(axis=0), found["expected"].mean(axis=0), rtol=0.1)
    assert (found["expected"] <= WIDTH).all()


@pytest.mark.parametrize("weak_separability", [False, True])
def test_intervals_from_a_planned_audit_hold_the_true_rates(weak_separability):
    found = studied(weak_separability)
    held = np.abs(found["rates"] - [RATES.rho01, RATES.rho10]) <= found["plan"]
    # Of 24 intervals at 95%, fewer than 19 hold with a probability below 1 in 500.
    assert held.sum() >= 19


@pytest.mark.parametrize("weak_separability", [False, True])
def test_a_random_choice_needs_more_labels(weak_separability):
    found = studied(weak_separability)
    assert (found["sizes"][:, 0] < 0.75 * found["sizes"][:, 1]).all()
    # As many labels chosen at random leave a rate more open than was asked for ...
    assert found["as many"].mean(axis=0).max() > 1.15 * WIDTH
    # ... and what the plan says a random choice would take is what it takes.
    assert found["simple"].mean(axis=0).max() == pytest.approx(WIDTH, rel=0.1)


def test_without_a_guess_the_wanted_half_width_is_reached_too():
    assert (studied(True, None)["plan"].mean(axis=0) < 1.1 * WIDTH).all()


@pytest.mark.parametrize("width", [0.02, 0.05, 0.15, 0.3, 0.49])
@pytest.mark.parametrize("guess", [None, RATES])
def test_a_plan_of_any_width_keeps_its_word_and_never_takes_more_than_a_random_choice(world, width, guess):
    plan = design_audit(world.log, half_width=width, guess=guess)
    assert max(plan.half_widths) <= width * (1 + 1e-9)
    assert weights_of(plan).sum() == pytest.approx(len(world.log), rel=1e-12)
    assert len(plan.rows) <= plan.simple


@pytest.mark.parametrize("budget", [10, 60, 100, 101, 137, 500, 2_000])
@pytest.mark.parametrize("guess", [None, RATES])
def test_a_plan_of_any_budget_spends_it_and_is_never_worse_than_a_random_choice(world, budget, guess):
    plan = design_audit(world.log, budget=budget, guess=guess)
    assert len(plan.rows) == len(np.unique(plan.rows)) == budget
    assert weights_of(plan).sum() == pytest.approx(len(world.log), rel=1e-12)
    assert budget <= plan.simple + 1
    if budget >= 500:
        assert budget < 0.75 * plan.simple


def test_a_budget_and_its_half_width_are_two_sides_of_one_plan(world):
    by_number = design_audit(world.log, budget=700, guess=RATES)
    by_width = design_audit(world.log, half_width=max(by_number.half_widths), guess=RATES)
    assert len(by_width.rows) == pytest.approx(700, abs=4)


def test_for_a_rough_answer_every_row_is_as_likely(world):
    """Five of each label in each of ten strata are a hundred, where some dozen do."""
    plan = design_audit(world.log, half_width=0.3)
    assert len(plan.rows) == plan.simple < 40
    assert set(plan.probabilities) == {len(plan.rows) / len(world.log)}


def test_a_budget_above_the_log_takes_all_of_it(world):
    small = world.log.select(np.arange(300))
    plan = design_audit(small, budget=1_000, guess=RATES)
    assert sorted(plan.rows) == list(range(300))
    assert set(plan.probabilities) == {1.0}


# What it was made for


def test_without_a_guess_all_nine_that_it_was_made_for_are_kept():
    log = vr.simulate.world(200, 300, observed=0.15, noise_rates=vr.NoiseRates(0.1, 0.05), random_state=0).log
    plan = design_audit(log, half_width=0.05, random_state=7)
    region = vr.identified_region(log)
    most = [min(one, 0.3) for one in (region.rho01_most, region.rho10_most)]
    assert [(one.rho01, one.rho10) for one in plan.guesses] == [
        (a * most[0], b * most[1]) for a in (1.0, 0.5, 0.25) for b in (1.0, 0.5, 0.25)
    ]


def test_the_expected_half_widths_are_the_worst_over_the_guesses(world):
    plan = design_audit(world.log, half_width=0.05)
    for one in plan.guesses:
        assert len(design_audit(world.log, half_width=0.05, guess=one).rows) <= len(plan.rows)


def test_a_given_guess_is_the_only_one(plan):
    assert plan.guesses == (RATES,)


def test_confidence_goes_into_the_guesses_and_the_seed_into_the_rows_alone():
    log = vr.simulate.world(200, 300, observed=0.15, noise_rates=vr.NoiseRates(0.1, 0.05), random_state=0).log
    first, other_seed, other_level = (
        design_audit(log, half_width=0.05, random_state=seed, confidence=level)
        for seed, level in ((0, 0.95), (1, 0.95), (0, 0.5))
    )
    assert first.guesses == other_seed.guesses != other_level.guesses
    assert set(first.rows) != set(other_seed.rows)


def test_a_wrong_guess_is_told_before_any_work(world, monkeypatch):
    monkeypatch.setattr(
        "verirec.nuisance.noise_rates.design.sort_into_strata", lambda *_, **__: pytest.fail("rows were sorted")
    )
    with pytest.raises(ParameterError, match="guess must be"):
        design_audit(world.log, half_width=0.03, guess="many")


# The pairs


def test_rows_are_distinct_rows_of_the_log(world, plan):
    assert len(np.unique(plan.rows)) == len(plan.rows) == len(weights_of(plan))
    assert ((plan.rows >= 0) & (plan.rows < len(world.log))).all()


def test_rows_come_in_random_order(world, plan):
    """A list that is filled in only in part should still be a fair part: neither label nor weight follows the order."""
    labels = world.log.labels[plan.rows]
    half = len(plan.rows) // 2
    assert abs(labels[:half].mean() - labels[half:].mean()) < 4 * np.sqrt(2 * 0.25 / half)
    assert abs(np.corrcoef(np.arange(len(plan.rows)), weights_of(plan))[0, 1]) < 4 / np.sqrt(len(plan.rows))


def test_weights_add_up_to_the_log_within_each_cell(world):
    """By scores that are given, the cells can be worked out by hand: tenths of the score, by label."""
    scores = np.random.default_rng(0).random((200, 300))
    plan = design_audit(world.log, half_width=WIDTH, guess=RATES, scores=scores)
    log = world.log
    score = scores[log.users, log.items]
    tenth = np.argsort(np.argsort(score)) * 10 // len(log)
    assert weights_of(plan).sum() == pytest.approx(len(log))
    for stratum in range(10):
        for label in (0, 1):
            cell = (tenth == stratum) & (log.labels == label)
            assert weights_of(plan)[cell[plan.rows]].sum() == pytest.approx(cell.sum())


def test_weighted_shares_are_fair_to_the_log():
    """The weighted share of a thing among the asked is, on average, its share in the log."""
    errors = []
    for seed in range(WORLDS):
        world = made(seed)
        plan = design_audit(world.log, half_width=WIDTH, guess=RATES, random_state=seed)
        truth = world.at(world.log.users, world.log.items).true_labels
        errors.append(np.average(truth[plan.rows], weights=weights_of(plan)) - truth.mean())
    assert abs(np.mean(errors)) < 4 * np.std(errors, ddof=1) / np.sqrt(len(errors))


def test_the_same_seed_gives_the_same_plan_and_another_seed_another(world, plan):
    again, other = (design_audit(world.log, half_width=WIDTH, guess=RATES, random_state=seed) for seed in (0, 1))
    assert again.rows.tolist() == plan.rows.tolist()
    assert again.probabilities.tolist() == plan.probabilities.tolist()
    assert other.rows.tolist() != plan.rows.tolist()


def test_a_narrower_interval_takes_more_pairs(world):
    sizes = [len(design_audit(world.log, half_width=width, guess=RATES).rows) for width in (0.02, 0.03, 0.05)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > 2.5 * sizes[2]


def test_more_confidence_takes_more_pairs(world):
    sure, less = (design_audit(world.log, half_width=0.03, guess=RATES, confidence=level) for level in (0.99, 0.8))
    assert len(sure.rows) > 2 * len(less.rows)


def test_groups_strata_are_at_most_as_many_as_there_are_rows_for(world):
    """A log of 60 rows has 3 strata of 20."""
    small = world.log.select(np.arange(60))
    plan = design_audit(small, half_width=0.3, guess=RATES)
    assert len(np.unique(np.round(weights_of(plan), 9))) <= 6


# What cannot be


@pytest.mark.parametrize("width", [0.001, 0.004])
def test_a_half_width_that_all_true_labels_would_not_give_is_an_audit_error(world, width):
    check_refusal(
        lambda: design_audit(world.log, half_width=width, guess=RATES),
        AuditError,
        rf"even the true labels of all {len(world.log):,} rows would leave a rate's half-width at 0\.\d+ where "
        rf"{width:g} was asked for; ask for a larger half_width",
    )


@pytest.fixture
def steps(monkeypatch):
    """How often the covariance is computed, which each step costs."""
    count, covariance = [0], _Information._covariances

    def counted(design, asked):
        count[0] += 1
        return covariance(design, asked)

    monkeypatch.setattr(_Information, "_covariances", counted)
    return count


def test_what_all_true_labels_would_not_give_is_refused_before_any_is_chosen(steps):
    """Ten million rows, of which a few were added at a time, took minutes."""
    design = _Information.of(np.full(20, 500_000.0), [RATES])
    with pytest.raises(AuditError, match="even the true labels of all 10,000,000 rows"):
        design.choose((0.00001 / 1.96) ** 2, None, 1.96)
    assert steps == [1]


def test_large_plans_take_few_steps_and_hardly_more_rows(steps, monkeypatch):
    design = _Information.of(np.linspace(100_000, 500_000, 20), [RATES])
    asked = design._allocate((0.001 / 1.96) ** 2, np.inf)
    assert steps[0] < 3_000  # for 700,000 rows
    assert 1.96 * np.sqrt(design.variances(asked).max()) <= 0.001
    # As many rows by a few at a time, which is as frugal as it gets: at a larger width, as that takes its time.
    sizes = [design._allocate((0.006 / 1.96) ** 2, np.inf).sum()]
    monkeypatch.setattr("verirec.nuisance.noise_rates.design._SHARE", 10**9)
    sizes.append(design._allocate((0.006 / 1.96) ** 2, np.inf).sum())
    assert sizes[1] > 4_000
    assert sizes[0] == pytest.approx(sizes[1], rel=0.01)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"guess": (0.2, 0.1)}, ParameterError, "guess must be a NoiseRates; got tuple"),
        ({"strata": 0}, ParameterError, "strata must be a whole number"),
        ({"log": "log"}, ParameterError, "a FeedbackLog is needed; got str"),
    ],
)
def test_bad_input_is_told_in_one_line(world, change, error, message):
    check_refusal(lambda: design_audit(**{"log": world.log, "half_width": 0.03} | change), error, message)


def test_a_log_that_is_too_small_is_refused(world):
    small = world.log.select(np.arange(30))
    check_refusal(
        lambda: design_audit(small, half_width=0.03),
        EmptyLogError,
        "^a log of 30 rows cannot tell how noisy its labels may be, which takes at least 40; give the noise rates: "
        r"rho01=\.\.\. and rho10=\.\.\.$",
    )
    # Which is what helps.
    assert len(design_audit(small, half_width=0.4, guess=RATES).rows) > 0
    check_refusal(lambda: design_audit(world.log.select([]), half_width=0.03), VerirecError, "rows")


def test_a_log_of_one_class_is_refused_for_what_it_is(world):
    log = world.log
    ones = vr.FeedbackLog.from_arrays(log.users, log.items, np.ones(len(log), int), n_users=200, n_items=300)
    check_refusal(lambda: design_audit(ones, half_width=0.03), VerirecError, "class|positive")


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_whatever_the_plans_seed_its_strata_are_those_of_the_audit(seed, monkeypatch):
    """Pairs chosen by other strata than those they are counted in would bias the rates."""
    counted_in = []

    def recorded(*given):
        counted_in.append(sort_into_strata(*given))
        return counted_in[-1]

    monkeypatch.setattr("verirec.nuisance.noise_rates.audit.sort_into_strata", recorded)
    world = vr.simulate.world(150, 200, noise_rates=RATES, observed=0.15, random_state=1_000 + seed)
    plan = design_audit(world.log, half_width=0.05, guess=RATES, random_state=seed)
    users, items = world.log.users[plan.rows], world.log.items[plan.rows]
    vr.AuditNoiseRates().fit(world.log, audit=vr.AuditSample(users, items, world.at(users, items).true_labels))
    cells = counted_in[0] * 2 + world.log.labels
    chosen, all_rows = np.bincount(cells[plan.rows]), np.bincount(cells)
    np.testing.assert_allclose(plan.probabilities, (chosen / all_rows)[cells[plan.rows]])
    assert len(set(plan.probabilities)) > 5


@pytest.mark.parametrize("confidence", [-0.5, 1.5, "x", float("nan")])
def test_a_confidence_that_is_none_is_refused(world, confidence):
    check_refusal(
        lambda: design_audit(world.log, half_width=0.03, guess=RATES, confidence=confidence),
        ParameterError,
        "confidence must be a finite number above 0 and below 1",
    )
