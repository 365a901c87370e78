"""What a log alone can say: ranges over how readily people log what they like."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.optimize import root
from scipy.special import expit, logit

import verirec as vr
from refusals import check_refusal
from verirec.estimation.rows import LoggedPairs
from verirec.estimation.selection_range import FOLDS, RangeProblem
from verirec.exceptions import ParameterError, PredictionError
from verirec.nuisance.propensities import as_propensities

# Small logs with estimated propensities: what the other estimators of the log have to say of it is not the matter here.
pytestmark = pytest.mark.filterwarnings("ignore:.* make up half of the variance:verirec.exceptions.OverlapWarning")

RATES = vr.NoiseRates(0.2, 0.1)
REGION = vr.NoiseRegion(0.25, 0.15)
SHAPE = (60, 80)


@cache
def world(selectivity: float = 2.0, noise: vr.NoiseRates = RATES, seed: int = 0) -> vr.simulate.World:
    return vr.simulate.world(*SHAPE, noise_rates=noise, observed=0.2, selectivity=selectivity, random_state=seed)


def sharp(of: vr.simulate.World) -> np.ndarray:
    return 0.15 + 0.7 * of.preferences


def blunt(of: vr.simulate.World) -> np.ndarray:
    return 0.4 + 0.2 * of.preferences


def plain_logits(log: vr.FeedbackLog, rates, difference: np.ndarray, seed: int) -> np.ndarray:
    """Solve the weighted equations of the calibrated logits by a general solver; return those of all cells."""
    pairs = LoggedPairs(log, as_propensities(None, log))
    known = RangeProblem(pairs, vr.SelectionRange(), rates, seed=seed).known[0]
    scale = np.abs(difference[log.users, log.items]).mean()

    of_rows = difference[log.users, log.items]

    def features(z, d):
        bent = (np.clip(d, of_rows.min(), of_rows.max()) / scale) ** 2
        return np.stack([np.ones_like(z), z, d / scale, bent], axis=-1)

    rows = features(known.held_out, of_rows)
    corrected = log.labels if rates is None else (log.labels - rates.rho10) / (1 - rates.rho01 - rates.rho10)
    weights = 1 / pairs.p - 1
    weights = weights / weights.mean()
    start = np.array([0.0, 1.0, 0.0, 0.0])
    found = root(lambda t: rows.T @ (weights * (corrected - expit(rows @ t))) - (t - start), start, tol=1e-12).x
    z = known.model.level + known.model.users[:, None] + known.model.items
    return features(z, difference) @ found


@pytest.mark.parametrize("rates", [None, RATES])
@pytest.mark.parametrize(("low", "high"), [(0, 3), (0.5, 0.5), (-1, 2)])
def test_the_range_is_that_of_a_plain_loop(rates, low, high):
    of = world()
    log, f = of.log, sharp(of)
    name = "dr" if rates is None else "ome-dr"
    found = vr.estimate(f, log, noise_rates=rates, selection=vr.SelectionRange(low, high), random_state=5)[name]
    seed = int(np.random.default_rng(5).integers(2**32))
    difference = -logit(f)
    x = plain_logits(log, rates, difference, seed)
    ends = np.zeros(2)
    logged = {(u, i): label for u, i, label in zip(log.users, log.items, log.labels, strict=True)}
    for u in range(SHAPE[0]):
        for i in range(SHAPE[1]):
            negative, d = -np.log(1 - f[u, i]), difference[u, i]
            if (u, i) in logged:
                label = logged[u, i] if rates is None else (logged[u, i] - rates.rho10) / 0.7
                ends += negative + label * d
            else:
                both = [negative + d * expit(x[u, i] - delta) for delta in (low, high)]
                ends += min(both), max(both)
    np.testing.assert_allclose(found.range, ends / log.n_cells, rtol=1e-7)


@pytest.mark.parametrize("rates", [RATES, REGION])
def test_a_delta_that_all_pairs_share_is_within(rates):
    of = world()

    def over(low, high):
        given = {"noise_rates": rates, "estimators": "ome-dr", "selection": vr.SelectionRange(low, high)}
        return vr.compare(sharp(of), blunt(of), of.log, **given)["ome-dr"].range

    low, high = over(0, 3)
    for delta in (0.0, 0.4, 1.7, 3.0):
        one = over(delta, delta)
        assert low - 1e-12 <= one[0] <= one[1] <= high + 1e-12


def test_at_delta_zero_the_value_is_doubly_robust():
    """The weighted residuals of the calibrated model vanish, so that no model is needed where p is right."""
    errors = []
    for seed in range(30):
        of = world(0.0, RATES, seed)
        found = vr.estimate(
            sharp(of),
            of.log,
            propensities=of.propensity_values,
            noise_rates=RATES,
            selection=vr.SelectionRange(0, 0),
            estimators="ome-dr",
        )["ome-dr"]
        assert found.range[0] == pytest.approx(found.range[1])
        errors.append((found.range[0] - of.true_inaccuracy(sharp(of))) / found.lowest.standard_error)
    # A mean of 0 and a spread of 1, within what 30 worlds can tell.
    assert abs(np.mean(errors)) < 3.5 / np.sqrt(30)
    assert 0.65 < np.std(errors) < 1.35


@pytest.mark.parametrize("selectivity", [0.0, 2.0, 4.0])
def test_intervals_hold_the_truth_and_no_comparison_points_the_wrong_way(selectivity):
    missed = wrong = 0
    for seed in range(8):
        of = world(selectivity, RATES, seed)
        f, g = np.clip(0.5 + 0.48 * of.preferences, 0.02, 0.98), sharp(of)
        options = {"noise_rates": RATES, "selection": vr.SelectionRange(0, 3), "estimators": "ome-dr"}
        truth = of.true_inaccuracy(f), of.true_inaccuracy(g)
        for given_, true in ((f, truth[0]), (g, truth[1])):
            low, high = vr.estimate(given_, of.log, **options)["ome-dr"].interval
            missed += not low <= true <= high
        low, high = vr.compare(f, g, of.log, **options)["ome-dr"].interval
        wrong += (low > 0 and truth[0] < truth[1]) or (high < 0 and truth[0] > truth[1])
    assert missed <= 1
    assert wrong == 0


def test_a_region_of_rates_is_the_union_over_its_corners():
    of, selection = world(), vr.SelectionRange(0, 2)
    found = vr.estimate(sharp(of), of.log, noise_rates=REGION, selection=selection, estimators="ome-dr")["ome-dr"]
    each = [
        vr.estimate(sharp(of), of.log, noise_rates=corner, selection=selection, estimators="ome-dr")["ome-dr"]
        for corner in REGION.corners
    ]
    assert found.range == (min(one.range[0] for one in each), max(one.range[1] for one in each))
    assert found.interval == (min(one.interval[0] for one in each), max(one.interval[1] for one in each))


def test_uncertain_rates_widen_the_interval_and_not_the_range():
    of = world()
    uncertain = vr.NoiseRates(0.2, 0.1, covariance=((4e-4, 0.0), (0.0, 4e-4)))
    narrow, wide = (
        vr.estimate(sharp(of), of.log, noise_rates=rates, selection=vr.SelectionRange())["ome-dr"]
        for rates in (RATES, uncertain)
    )
    assert wide.range == narrow.range
    assert wide.interval[0] < narrow.interval[0]
    assert wide.interval[1] > narrow.interval[1]


def test_the_variance_by_rates_is_the_delta_method():
    """Against a numeric derivative of the ends, the label model held fixed being the only thing left out."""
    of, h = world(), 1e-4
    selection = vr.SelectionRange(0, 1)

    def end(rho01, rho10):
        pairs = LoggedPairs(of.log, as_propensities(None, of.log))
        return vr.estimate(
            sharp(of),
            of.log,
            propensities=pairs.propensities,
            noise_rates=vr.NoiseRates(rho01, rho10),
            selection=selection,
            estimators="ome-dr",
        )["ome-dr"].range[0]

    numeric = np.array([(end(0.2 + h, 0.1) - end(0.2 - h, 0.1)), (end(0.2, 0.1 + h) - end(0.2, 0.1 - h))]) / (2 * h)
    uncertain = vr.NoiseRates(0.2, 0.1, covariance=((1e-4, 0.0), (0.0, 2e-4)))
    found = vr.estimate(sharp(of), of.log, noise_rates=uncertain, selection=selection, estimators="ome-dr")["ome-dr"]
    expected = numeric**2 @ np.array([1e-4, 2e-4])
    assert found.lowest.diagnostics["variance"]["noise_rates"] == pytest.approx(expected, rel=0.35)


def test_pairs_that_are_left_out_do_not_count():
    of = world(2.0, vr.NoiseRates(0, 0))
    log, f = of.log, sharp(of)
    some = (np.repeat(np.arange(30), 80), np.tile(np.arange(80), 30))
    constant = np.where(np.arange(60)[:, None] < 30, 0.1, f)
    options = {"selection": vr.SelectionRange(0, 3), "estimators": "dr", "exclude": some, "propensities": 0.2 + 0 * f}
    found = vr.estimate(constant, log, **options)["dr"]
    facts = found.diagnostics
    inside = int((log.users >= 30).sum())
    assert facts["target_pairs"] == 30 * 80
    assert facts["unlogged_pairs"] == 30 * 80 - inside
    truth = -(np.log(f) * of.true_labels + np.log(1 - f) * (1 - of.true_labels))[30:].mean()
    assert found.interval[0] <= truth <= found.interval[1]


def test_a_sample_of_the_grid_says_much_the_same():
    of = world()
    options = {"noise_rates": RATES, "selection": vr.SelectionRange(0, 3), "estimators": "ome-dr"}
    whole = vr.estimate(sharp(of), of.log, **options)["ome-dr"]
    part = vr.estimate(sharp(of), of.log, sample=2_000, **options)["ome-dr"]
    error = part.lowest.diagnostics["variance"]["sample"] ** 0.5
    assert error > 0
    assert abs(part.range[0] - whole.range[0]) < 4 * error
    assert part.range != whole.range


def test_where_a_difference_ceases_to_be_established():
    of = world(0.0, vr.NoiseRates(0, 0))
    f, g = 0.02 + 0.96 * of.preferences, np.full(SHAPE, 0.4)

    def at(high):
        return vr.compare(f, g, of.log, selection=vr.SelectionRange(0, high))["dr"]

    far = vr.compare(np.full(SHAPE, 0.95), np.full(SHAPE, 0.3), of.log, selection=vr.SelectionRange(0, 3))["dr"]
    assert far.diagnostics["not_established_from"] is None
    assert far.interval[0] > 0
    jitter = np.random.default_rng(0).uniform(-1e-3, 1e-3, SHAPE)
    twins = vr.compare(f, f + jitter, of.log, selection=vr.SelectionRange(0.5, 3))["dr"]
    assert twins.diagnostics["not_established_from"] == 0.5
    ceases = at(3).diagnostics["not_established_from"]
    assert 0 < ceases < 3
    # The derivation from sampled pairs agrees with the walk.
    assert at(ceases - 0.1).interval[1] < 0 < at(ceases + 0.1).interval[1]


def test_rows_shown_at_random_are_no_part_of_it():
    of = world()
    log = of.log
    marked = np.arange(len(log)) % 5 == 0
    with_marks = vr.FeedbackLog.from_arrays(
        log.users, log.items, log.labels, n_users=SHAPE[0], n_items=SHAPE[1], unbiased=marked
    )
    options = {"selection": vr.SelectionRange(), "propensities": np.full(SHAPE, 0.2), "estimators": "dr"}
    one = vr.estimate(sharp(of), with_marks, **options)["dr"]
    two = vr.estimate(sharp(of), log.select(np.flatnonzero(~marked)), **options)["dr"]
    assert one.range == two.range


def test_a_constant_d_and_a_fully_logged_grid():
    labels = np.arange(12) % 2
    log = vr.FeedbackLog.from_arrays(np.repeat(np.arange(3), 4), np.tile(np.arange(4), 3), labels, n_users=3, n_items=4)
    options = {"selection": vr.SelectionRange(), "propensities": np.ones((3, 4)), "estimators": "dr"}
    found = vr.estimate(np.full((3, 4), 0.3), log, **options)["dr"]
    expected = -(np.log(0.3) + np.log(0.7)) / 2
    assert found.range == pytest.approx((expected, expected))


def test_the_same_seed_gives_the_same_range():
    of = world()
    one, two = (
        vr.estimate(sharp(of), of.log, noise_rates=RATES, selection=vr.SelectionRange(), random_state=3)["ome-dr"]
        for _ in range(2)
    )
    assert one.interval == two.interval
    assert FOLDS > 1


def test_the_headline_is_the_range_unless_there_is_a_survey():
    of = world()
    random = np.random.default_rng(0)
    users, items = random.integers(60, size=150), random.integers(80, size=150)
    survey = vr.SurveySample(users, items, of.true_labels[users, items])
    rows = np.arange(0, len(of.log), 5)
    at = of.log.users[rows], of.log.items[rows]
    audit = vr.AuditSample(*at, of.true_labels[at])
    options = {"audit": audit, "selection": vr.SelectionRange()}
    alone = vr.estimate(sharp(of), of.log, **options)
    assert alone.headline == "ome-dr"
    assert isinstance(alone["ome-dr"], vr.EstimateRange)
    assert vr.estimate(sharp(of), of.log, survey=survey, **options).headline == "survey-ppi"


def refusals():
    of = world()
    f, log = sharp(of), of.log
    yield lambda: vr.SelectionRange(2, 1), "high must be"
    yield lambda: vr.SelectionRange(float("nan"), 1), "low must be a finite number"
    yield lambda: vr.SelectionRange(0, 100), "high must be"
    yield lambda: vr.estimate(f, log, selection=(0, 3)), "selection must be such as SelectionRange"
    yield (
        lambda: vr.estimate(f, log, selection=vr.SelectionRange(), estimators="ips"),
        "selection makes a range of dr: name it",
    )
    yield (
        lambda: vr.compare(f, f, log, noise_rates=RATES, selection=vr.SelectionRange(), estimators="dr"),
        "selection makes a range of ome-dr",
    )


@pytest.mark.parametrize(("call", "message"), list(refusals()))
def test_bad_input(call, message):
    check_refusal(call, ParameterError, message)


def test_predictions_of_some_pairs_are_refused():
    of = world()
    log = of.log
    triples = (log.users, log.items, np.full(len(log), 0.4))
    options = {"selection": vr.SelectionRange(), "estimators": "dr"}
    check_refusal(lambda: vr.estimate(triples, log, **options), PredictionError, "predictions")
