"""How often labels are wrong along a score."""

from __future__ import annotations

import numpy as np
import pytest

import verirec as vr
from refusals import check_refusal
from verirec.exceptions import AuditError, LabelError, MisfitWarning, ParameterError

RATES = vr.NoiseRates(0.4, 0.3)


def drawn(seed, size=500, shape=(100, 120), **options):
    world = vr.simulate.world(*shape, observed=0.2, noise_rates=RATES, random_state=seed, **options)
    rows = np.random.default_rng([seed, 1]).choice(len(world.log), size, replace=False)
    pairs = world.log.users[rows], world.log.items[rows]
    return world, vr.AuditSample(*pairs, world.at(*pairs).true_labels)


def test_errors_near_the_threshold_are_within_the_band():
    inside = []
    for seed in range(30):
        world, audit = drawn(seed, near_threshold=True)
        curve = vr.AuditErrorCurve().fit(world.log, audit=audit, scores=world.preferences)
        at = np.linspace(*curve.span, 30)
        for which in ("rho01", "rho10"):
            true, band = getattr(RATES, which) * 4 * at * (1 - at), getattr(curve, which)(at)
            inside.append(((band.low <= true) & (true <= band.high)).mean())
    assert np.mean(inside) >= 0.9


def test_a_curve_of_many_rows_is_the_true_one():
    world, audit = drawn(0, size=6_000, shape=(200, 300), near_threshold=True)
    curve = vr.AuditErrorCurve().fit(world.log, audit=audit, scores=world.preferences)
    at = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    assert curve.rho01(at).values == pytest.approx(0.4 * 4 * at * (1 - at), abs=0.05)
    assert curve.rho10(at).values == pytest.approx(0.3 * 4 * at * (1 - at), abs=0.05)


def test_rates_that_are_the_same_everywhere_give_flat_curves():
    world, audit = drawn(1, size=2_000)
    curve = vr.AuditErrorCurve().fit(world.log, audit=audit)
    at = np.linspace(*curve.span, 20)
    assert np.abs(curve.rho01(at).values - 0.4).max() < 0.12
    assert np.abs(curve.rho10(at).values - 0.3).max() < 0.12


def test_scores_of_any_size_give_the_same_curve_as_the_chances_behind_them():
    world, audit = drawn(2, near_threshold=True)
    gamma = np.clip(world.preferences, 0.005, 0.995)
    logits = 10 + 3 * np.log(gamma / (1 - gamma))
    chances, scores = (vr.AuditErrorCurve().fit(world.log, audit=audit, scores=one) for one in (gamma, logits))
    at = np.array([0.2, 0.5, 0.8])
    shifted = 10 + 3 * np.log(at / (1 - at))
    assert chances.rho01(at).values == pytest.approx(scores.rho01(shifted).values, abs=0.01)


def test_bands_grow_with_confidence_and_shares_are_the_audits_own():
    world, audit = drawn(3)
    curve = vr.AuditErrorCurve().fit(world.log, audit=audit)
    narrow, wide = (curve.rho10([0.5], level) for level in (0.5, 0.99))
    assert wide.low < narrow.low < narrow.values < narrow.high < wide.high
    shares = curve.shares()
    assert shares["rho01"][:, 2].sum() == audit.true_labels.sum()
    told = curve.to_dict()
    assert len(told["scores"]) == len(told["rho01"]["low"])
    assert repr(curve).startswith("ErrorCurve(500 audited rows")


def test_what_is_expected_of_labels_is_calibrated_on_the_audit():
    world, audit = drawn(4, size=1_000, near_threshold=True)
    curve = vr.AuditErrorCurve().fit(world.log, audit=audit)
    rows, truths, _ = audit.rows_in(world.log)
    expected = curve.expected(world.log).values[rows]
    for said in (0, 1):
        own = world.log.labels[rows] == said
        assert expected[own].mean() == pytest.approx(truths[own].mean(), abs=0.01)


def test_one_score_for_all_pairs_gives_the_rates_of_all():
    world, audit = drawn(6)
    curve = vr.AuditErrorCurve().fit(world.log, audit=audit, scores=np.full(world.preferences.shape, 0.4))
    rows, truths, _ = audit.rows_in(world.log)
    wrong = (world.log.labels[rows] != truths)[truths == 1].mean()
    assert curve.rho01([0.4]).values == pytest.approx(wrong, abs=0.01)


def stepped(seed, rates):
    """Draw labels whose rate of wrong ones along the score is any function of it; audit 300 of them."""
    random = np.random.default_rng(seed)
    scores = random.random((60, 60))
    true = (random.random(scores.shape) < scores).astype(int)
    said = np.where(random.random(scores.shape) < rates(scores), 1 - true, true)
    users, items = np.nonzero(random.random(scores.shape) < 0.4)
    log = vr.FeedbackLog.from_arrays(users, items, said[users, items], n_users=60, n_items=60)
    rows = random.choice(len(log), 300, replace=False)
    pairs = log.users[rows], log.items[rows]
    return vr.AuditErrorCurve().fit(log, audit=vr.AuditSample(*pairs, true[pairs]), scores=scores)


def test_rates_of_another_form_are_warned_of():
    with pytest.warns(MisfitWarning, match=r"not as an error curve has them \(p = 0\.0"):
        found = [stepped(seed, lambda scores: np.where(scores > 0.6, 0.35, 0.03)).p_value for seed in range(40)]
    # More than half of such audits tell: three standard errors below half.
    assert np.mean(np.array(found) <= 0.01) > 0.5 - 3 * np.sqrt(0.25 / 40)


@pytest.mark.filterwarnings("ignore:shares of wrong labels:verirec.exceptions.MisfitWarning")
def test_the_test_of_the_form_has_its_size():
    found = [stepped(seed, lambda scores: np.full(scores.shape, 0.1)).p_value for seed in range(50)]
    assert np.mean(np.array(found) <= 0.1) <= 0.1 + 3 * np.sqrt(0.09 / 50)
    assert np.mean(found) > 0.5 - 3 * np.sqrt(1 / 12 / 50)


def test_the_form_is_judged_alike_in_any_order_of_the_audit():
    world, audit = drawn(3)
    turned = audit.select(np.arange(len(audit.users))[::-1])
    first, second = (vr.AuditErrorCurve().fit(world.log, audit=one).p_value for one in (audit, turned))
    assert first == second


BAD_SCORES = {
    "one number": (0.5, "flat array"),
    "none": (None, "numbers"),
    "text": ("x", "numbers"),
    "a matrix": ([[0.1, 0.2]], "flat array"),
    "NaN": ([np.nan], "scores must be numbers from"),
    "above a chance": ([0.5, 5], "^scores must be from 0 to 1, as those of the log are; got 5$"),
    "endless": ([1e308], "scores must be numbers from"),
}


@pytest.mark.parametrize(("scores", "message"), BAD_SCORES.values(), ids=BAD_SCORES)
def test_bad_scores(scores, message):
    world, audit = drawn(3)
    curve = vr.AuditErrorCurve().fit(world.log, audit=audit)
    check_refusal(lambda: curve.rho01(scores), ParameterError, message)
    check_refusal(lambda: curve.rho10(scores), ParameterError, message)


@pytest.mark.parametrize("parts", [0, -1, "x", np.nan])
def test_bad_parts(parts):
    world, audit = drawn(3)
    curve = vr.AuditErrorCurve().fit(world.log, audit=audit)
    check_refusal(lambda: curve.shares(parts), ParameterError, "parts must be a whole number")


def test_scores_too_large_to_fit_are_refused_and_other_sizes_are_none():
    world, audit = drawn(2)
    plain = world.preferences - 0.5
    endless = np.where(plain > 0, 1e308, -1e308)
    fit = vr.AuditErrorCurve().fit
    check_refusal(lambda: fit(world.log, audit=audit, scores=endless), ParameterError, "scores must be numbers from")
    small, large = (fit(world.log, audit=audit, scores=size * plain).rho01([size * 0.2]) for size in (1.0, 1e50))
    assert large.values == pytest.approx(small.values)


def test_audits_that_cannot_tell():
    world, audit = drawn(5)
    few = audit.select(np.flatnonzero(audit.true_labels == 1)[:50])
    check_refusal(lambda: vr.AuditErrorCurve().fit(world.log, audit=few), AuditError, "at least 10 audited pairs")
    same = audit.select(world.log.labels[audit.rows_in(world.log).rows] == 1)
    check_refusal(lambda: vr.AuditErrorCurve().fit(world.log, audit=same), AuditError, "both logged labels")
    scores = np.full(world.preferences.shape, np.nan)
    with pytest.raises((ParameterError, vr.exceptions.PredictionError)):
        vr.AuditErrorCurve().fit(world.log, audit=audit, scores=scores)
    graded = vr.simulate.stars(40, 50, random_state=0)
    levels = vr.AuditSample(*graded.audit(100, 0), levels=graded.levels)
    check_refusal(lambda: vr.AuditErrorCurve().fit(graded.log, audit=levels), LabelError, "binary labels are needed")
