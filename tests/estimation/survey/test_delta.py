"""Delta-dr: exact on a small grid, by loops, with the right standard error where one delta holds."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from scipy.special import expit, logit
from test_strength import FOLDS, RATES, SHAPE, made, random_survey

import verirec as vr
from held import held_a_row
from plain_formulas import delta as plain
from refusals import check_refusal
from verirec.estimation.survey.delta import DeltaLine, row_weights
from verirec.estimation.survey.problem import SurveyProblem
from verirec.exceptions import ParameterError, SurveyError, SurveyWarning
from verirec.nuisance.label_model import LabelProbabilities
from verirec.nuisance.propensities import tilted
from verirec.nuisance.propensities.tilted import TiltedSelection

BOTH = ("survey-ppi", "delta-dr")


@pytest.fixture
def quiet():
    """One in twenty tests rejects by chance; whether it warns is tested apart."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SurveyWarning)
        yield


def predictions(one, seed):
    random = np.random.default_rng([seed, 5])
    return expit(random.normal(-0.3, 0.6, SHAPE) + 0.8 * (one.labels - 0.4))


def truth(one, f):
    return float(-np.where(one.labels == 1, np.log(f), np.log1p(-f)).mean())


@pytest.mark.parametrize("rates", [None, RATES])
def test_the_weights_are_unbiased_on_a_grid_of_four_pairs_for_any_labels_and_any_c(rates):
    """Over all sixteen logs of a 2 x 2 grid, and all that may be said of them: the mean is the truth."""
    random = np.random.default_rng(0)
    pairs = list(itertools.product(range(2), range(2)))
    b, delta = {pair: random.normal() for pair in pairs}, 1.3
    negative, positive = ({pair: random.random() * 2 for pair in pairs} for _ in range(2))
    q = {pair: random.random() for pair in pairs}
    c = {pair: negative[pair] + q[pair] * (positive[pair] - negative[pair]) for pair in pairs}
    wrong = (0.0, 0.0) if rates is None else (rates.rho10, rates.rho01)
    for likes in itertools.product((0, 1), repeat=4):
        likes_of = dict(zip(pairs, likes, strict=True))
        loops = vectors = 0.0
        for logged in itertools.product((0, 1), repeat=4):
            for flipped in itertools.product((0, 1), repeat=sum(logged)):
                kept = [pair for pair, o in zip(pairs, logged, strict=True) if o]
                chance = 1.0
                for pair, o in zip(pairs, logged, strict=True):
                    p = expit(b[pair] + delta * likes_of[pair])
                    chance *= p if o else 1 - p
                for pair, flip in zip(kept, flipped, strict=True):
                    rho = wrong[likes_of[pair]]
                    chance *= rho if flip else 1 - rho
                said = {pair: abs(likes_of[pair] - flip) for pair, flip in zip(kept, flipped, strict=True)}
                kappa = 1 - sum(wrong)
                corrected = {pair: (r - wrong[0]) / kappa for pair, r in said.items()}
                loops += chance * plain.delta_dr(pairs, set(kept), corrected, negative, positive, c, b, delta)
                of = [np.array([part[pair] for pair in kept]) for part in (corrected, q, b)]
                u = row_weights(of[0], of[1], of[2], delta).values
                d = np.array([positive[pair] - negative[pair] for pair in kept])
                vectors += chance * (sum(c.values()) + float(u @ d)) / 4
        exact = np.mean([positive[pair] if likes_of[pair] else negative[pair] for pair in pairs])
        assert loops == pytest.approx(exact, abs=1e-12)
        assert vectors == pytest.approx(exact, abs=1e-12)


def test_derivatives_of_the_weights():
    random = np.random.default_rng(1)
    labels, q, b = random.random(30) * 1.4 - 0.2, random.random(30), random.normal(size=30)
    step = 1e-6
    found = row_weights(labels, q, b, 0.7)
    for by, up, down in (
        (found.by_label, (labels + step, q, b, 0.7), (labels - step, q, b, 0.7)),
        (found.by_constant, (labels, q, b + step, 0.7), (labels, q, b - step, 0.7)),
        (found.by_delta, (labels, q, b, 0.7 + step), (labels, q, b, 0.7 - step)),
    ):
        np.testing.assert_allclose(by, (row_weights(*up).values - row_weights(*down).values) / (2 * step), rtol=1e-5)
    floored = row_weights(labels, q, b, 0.7, floor=0.999)
    assert not floored.by_delta.any()
    assert not floored.by_constant.any()


def test_chances_over_all_labels_follow_from_those_of_each():
    """odds(o) = e^b e^h: what the offset of the regression says, by the tilt identity."""
    liked, b = np.meshgrid(np.linspace(0.05, 0.95, 7), np.linspace(-4, 2, 7))
    for delta in (-1.0, 0.0, 2.0):
        p = liked * expit(b + delta) + (1 - liked) * expit(b)
        among_logged = logit(liked * expit(b + delta) / p)
        np.testing.assert_allclose(logit(p), b + tilted.tilt_offset(among_logged, delta), atol=1e-10)


@pytest.mark.parametrize("left_out", [(), ((0, 1), (2, 3), (4, 0))])
def test_constants_by_loops(left_out, monkeypatch):
    random = np.random.default_rng(2)
    n_users, n_items, delta = 5, 6, 1.2
    liked = LabelProbabilities(-0.3, random.normal(size=n_users), random.normal(size=n_items))
    x = [[float(liked.cell_logits(np.array([u]), np.array([i]))[0]) for i in range(n_items)] for u in range(n_users)]
    target = [pair for pair in itertools.product(range(n_users), range(n_items)) if pair not in left_out]
    logged = {target[place] for place in random.choice(len(target), 12, replace=False)}
    users, items = (np.array(side) for side in zip(*sorted(logged), strict=True))
    out = tuple(np.array([pair[side] for pair in left_out], dtype=int) for side in (0, 1))
    monkeypatch.setattr(tilted, "_ROUNDS", 60)
    found = TiltedSelection.fit(users, items, (n_users, n_items), liked, delta, out)
    # Pairs that are left out, filled in as expected, bring the same constants as a sum without them.
    of_users, of_items = plain.constants(logged, target, x, delta, n_users, n_items, ridge=0.01)
    wanted = np.array(of_users)[:, None] + np.array(of_items)
    grid = np.indices((n_users, n_items)).reshape(2, -1)
    np.testing.assert_allclose(found.logits(*grid), wanted.ravel(), atol=2e-4)


def test_classes_of_long_sides_change_next_to_nothing(monkeypatch):
    one = made(1.5, 3)
    line = SurveyProblem.of(one.survey(300, 3), one.log, None).delta_line
    rows = line.users, line.log.items
    exact = line.selection
    monkeypatch.setattr(tilted, "MOST_CLASSES", 20)
    grouped = TiltedSelection.fit(*rows, SHAPE, exact.liked, exact.delta)
    assert len(grouped.fitted.users.size) < SHAPE[0]
    # By thirds of a standard error of a user's own constant, at most: it is some 1/sqrt(rows).
    assert np.abs(grouped.logits(*rows) - exact.logits(*rows)).max() < 0.05


def test_what_moves_it_by_finite_differences():
    one = made(1.5, 4)
    line = SurveyProblem.of(one.survey(300, 4), one.log, None).delta_line
    difference = np.random.default_rng(0).normal(0.7, 1, len(line.log))
    found, taste, step = line.moved(difference), line.tilt.taste, 1e-3

    def value(delta, coefficients):
        selection = TiltedSelection.fit(line.users, line.log.items, SHAPE, taste.at(coefficients), delta)
        constants = selection.logits(line.users, line.log.items)
        unseen = expit(taste.logits + line.shift)
        u = row_weights(taste.labels.values, unseen, constants, delta, len(line.log) / len(line.target) / 100).values
        return float(u @ difference) / len(line.target)

    delta, own = line.tilt.delta, taste.coefficients
    assert found.by_delta == pytest.approx((value(delta + step, own) - value(delta - step, own)) / (2 * step), rel=1e-4)
    for at in range(2):
        moved = np.eye(2)[at] * step
        slope = (value(delta, own + moved) - value(delta, own - moved)) / (2 * step)
        assert found.direct[at] == pytest.approx(slope, rel=1e-3, abs=1e-7)


def test_the_value_by_loops():
    one, survey = made(1.0, 5), made(1.0, 5).survey(200, 5)
    f = predictions(one, 5)
    left = vr.FeedbackLog.from_arrays([0, 3, 7], [1, 5, 9], [1, 0, 1], n_users=SHAPE[0], n_items=SHAPE[1])
    frame = np.unique(np.concatenate([survey.users, np.arange(0, SHAPE[0], 2)]))
    framed = vr.SurveySample(survey.users, survey.items, survey.labels, frame=frame)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SurveyWarning)
        problem = SurveyProblem.of(framed, one.log, None, exclude=left)
        found = vr.estimate(f, one.log, survey=framed, exclude=left, estimators="delta-dr", random_state=0)["delta-dr"]
        seed = int(np.random.default_rng(0).integers(2**32))
        line = DeltaLine.of(one.log, problem.target, problem.draws, None, problem.expected_labels, problem.shift, seed)
    target = [(int(u), i) for u in frame for i in range(SHAPE[1]) if (int(u), i) not in {(0, 1), (3, 5), (7, 9)}]
    rows = list(zip(line.log.users.tolist(), line.log.items.tolist(), strict=True))
    q = dict(zip(target, problem.expected_labels.cells(*np.array(target).T), strict=True))
    # c of a logged pair is that of a model that has not seen it, in the sum over the target too.
    q |= dict(zip(rows, expit(line.tilt.taste.logits + problem.shift), strict=True))
    negative = {pair: -np.log1p(-f[pair]) for pair in target}
    positive = {pair: -np.log(f[pair]) for pair in target}
    c = {pair: negative[pair] + q[pair] * (positive[pair] - negative[pair]) for pair in target}
    constants = line.selection.logits(line.users, line.log.items)
    b = dict(zip(rows, constants.tolist(), strict=True)) | dict.fromkeys(set(target) - set(rows), 0.0)
    labels = dict(zip(rows, line.log.labels.tolist(), strict=True))
    by_loops = plain.delta_dr(target, set(rows), labels, negative, positive, c, b, line.tilt.delta)
    assert found.value == pytest.approx(by_loops, rel=1e-9)
    assert found.diagnostics["delta"] == pytest.approx(line.tilt.delta)


@pytest.mark.parametrize(("delta", "noisy"), [(0.0, False), (2.0, False), (1.0, True)])
def test_its_error_is_about_what_it_says_where_one_delta_holds(delta, noisy, quiet):
    """24 worlds find a bias of .7 standard errors, or an error off by half; coverage: benchmarks/delta_coverage.py."""
    rates, scaled, tests, beside = RATES if noisy else None, [], [], []
    for seed in range(24):
        one = made(delta, seed, noisy=noisy)
        f = predictions(one, seed)
        found = vr.estimate(f, one.log, survey=one.survey(300, seed), noise_rates=rates, estimators=BOTH)
        line = found["delta-dr"]
        scaled.append((line.value - truth(one, f)) / line.standard_error)
        test = line.diagnostics["test"]
        tests.append(test.difference / test.standard_error)
        beside.append(line.standard_error / found["survey-ppi"].standard_error)
        assert test.difference == pytest.approx(line.value - found["survey-ppi"].value)
    for values in (scaled, tests):
        assert abs(np.mean(values)) < 3.5 / np.sqrt(24)
        assert 0.6 < np.std(values) < 1.45
    assert noisy or np.mean(beside) < 1


def test_a_delta_that_varies_is_told(quiet):
    found = []
    for seed in range(6):
        one = made(1.0, seed, by_activity=1.2)
        found.append(vr.estimate(predictions(one, seed), one.log, survey=one.survey(2500, seed), estimators="delta-dr"))
    assert sum(not one["delta-dr"].diagnostics["one_delta"] for one in found) >= 4
    one = made(1.0, 0, by_activity=1.5)
    with pytest.warns(SurveyWarning, match="delta-dr assumes that one delta holds for all pairs, and .*: go by survey"):
        vr.estimate(predictions(one, 0), one.log, survey=one.survey(4000, 0), estimators="delta-dr")


def test_what_it_reports_and_that_it_is_never_the_headline(quiet):
    one = made(1.0, 0)
    f = predictions(one, 0)
    found = vr.estimate(f, one.log, survey=one.survey(300, 0), estimators="all")
    assert found.headline == "survey-ppi"
    facts = found["delta-dr"].diagnostics
    parts = {"survey", "selection", "noise", "propensities", "noise_rates", "sample"}
    assert set(facts["variance"]) == parts
    assert found["delta-dr"].standard_error == pytest.approx(np.sqrt(sum(facts["variance"].values())))
    assert set(facts["slopes"]) == {"activity", "popularity"}
    assert facts["delta_standard_error"] > 0
    assert 0 <= facts["test"].p_value <= 1
    strength = vr.selection_strength(one.log, one.survey(300, 0))
    assert facts["delta"] == pytest.approx(strength.value, abs=0.05)
    assert list(vr.estimate(f, one.log, survey=one.survey(300, 0))) == ["naive", "ips", "dr", "survey", "survey-ppi"]
    sampled = vr.estimate(f, one.log, survey=one.survey(300, 0), estimators=BOTH, sample=5_000)["delta-dr"]
    assert sampled.diagnostics["variance"]["sample"] > 0


def test_a_difference_is_the_difference_of_two(quiet):
    one = made(1.0, 1)
    first, second = predictions(one, 1), np.full(SHAPE, 0.4)
    given = {"survey": one.survey(300, 1), "estimators": "delta-dr"}
    levels = [vr.estimate(f, one.log, **given)["delta-dr"].value for f in (first, second)]
    assert vr.compare(first, second, one.log, **given)["delta-dr"].value == pytest.approx(levels[0] - levels[1])


def test_designs_and_noise_widen_it_or_make_it_a_range(quiet):
    one = made(1.0, 2, noisy=True)
    f, survey = predictions(one, 2), one.survey(400, 2)

    def found(survey, rates=RATES):
        return vr.estimate(f, one.log, survey=survey, noise_rates=rates, estimators="delta-dr")["delta-dr"]

    plain_one = found(survey)
    uncertain = found(survey, vr.NoiseRates(0.2, 0.1, covariance=((1e-3, 0.0), (0.0, 1e-3))))
    assert uncertain.diagnostics["variance"]["noise_rates"] > 0 == plain_one.diagnostics["variance"]["noise_rates"]
    grouped = vr.SurveySample(
        survey.users, survey.items, survey.labels, clusters=survey.labels * 100 + survey.users % 50
    )
    assert found(grouped).diagnostics["variance"]["survey"] > plain_one.diagnostics["variance"]["survey"]
    equal = vr.SurveySample(
        survey.users, survey.items, survey.labels, probabilities=np.full(400, 400 / one.log.n_cells)
    )
    assert found(equal).value == pytest.approx(plain_one.value)
    noisy = found(one.survey(400, 2, noisy=True))
    assert noisy.diagnostics["variance"]["survey"] > plain_one.diagnostics["variance"]["survey"]
    ranged = vr.estimate(f, one.log, survey=survey, noise_rates=vr.NoiseRegion(0.2, 0.0), estimators=BOTH)
    assert ranged["delta-dr"].range[0] < ranged["delta-dr"].range[1]
    assert isinstance(ranged["survey-ppi"], vr.Estimate)


@pytest.mark.parametrize("noisy", [False, True])
def test_a_value_that_peaks_inside_a_region_is_found(noisy, quiet, monkeypatch):
    def peaked(losses, names, survey, log, rates, **options):
        value = 1.0 if rates is None else 0.5 - (rates.rho01 - 0.1) ** 2 - (rates.rho10 - 0.05) ** 2
        return [{name: vr.Estimate(value, 0.1, (0.0, 1.0), 0.95, {}) for name in names} for _ in losses]

    monkeypatch.setattr("verirec.estimation.survey.problem._at_rates", peaked)
    one = made(1.0, 2, noisy=True)
    survey, region = one.survey(400, 2, noisy=noisy), vr.NoiseRegion(0.2, 0.1)
    found = vr.estimate(predictions(one, 2), one.log, survey=survey, noise_rates=region, estimators=BOTH)
    assert found["delta-dr"].range == pytest.approx((0.4875, 0.5))
    assert isinstance(found["survey-ppi"], vr.EstimateRange) == noisy


def test_rows_shown_at_random_are_left_out(quiet):
    one = made(1.0, 6)
    log = one.log
    shown = np.random.default_rng(0).random(len(log)) < 0.2
    marked = vr.FeedbackLog.from_arrays(
        log.users, log.items, log.labels, n_users=SHAPE[0], n_items=SHAPE[1], unbiased=shown
    )
    given = {"survey": one.survey(300, 6), "estimators": "delta-dr"}
    f = predictions(one, 6)
    alone = log.select(np.flatnonzero(~shown))
    assert vr.estimate(f, marked, **given)["delta-dr"].value == vr.estimate(f, alone, **given)["delta-dr"].value


def test_it_is_refused_where_it_cannot_work(quiet):
    one = made(1.0, 0)
    f, survey = predictions(one, 0), one.survey(100, 0)
    log = one.log
    check_refusal(lambda: vr.estimate(f, log, estimators="delta-dr"), ParameterError, "survey must be given")
    grid = {"n_users": SHAPE[0], "n_items": SHAPE[1]}
    shown = vr.FeedbackLog.from_arrays(log.users, log.items, log.labels, unbiased=np.ones(len(log), bool), **grid)
    check_refusal(
        lambda: vr.estimate(f, shown, survey=survey, estimators="delta-dr"), SurveyError, "people chose themselves"
    )
    weighted = vr.FeedbackLog.from_arrays(log.users, log.items, log.labels, weights=np.ones(len(log)), **grid)
    check_refusal(lambda: vr.estimate(f, weighted, survey=survey, estimators="delta-dr"), ParameterError, "row weights")
    check_refusal(
        lambda: vr.estimate(f, log, survey=survey, exclude=log, estimators="delta-dr"),
        SurveyError,
        "got 0 liked and 0 disliked",
    )
    full = np.nonzero(np.ones(SHAPE))
    whole = vr.FeedbackLog.from_arrays(*full, one.labels[full], **grid)
    check_refusal(
        lambda: vr.estimate(f, whole, survey=survey, estimators="delta-dr"), SurveyError, "pairs that nobody logged"
    )


def test_nothing_but_folds_is_as_long_as_the_log(in_small_parts, quiet, monkeypatch):
    monkeypatch.setattr(tilted, "MOST_CLASSES", 20)

    def work(log):
        random = np.random.default_rng(0)
        f = vr.Factors(*(random.normal(size=(size, 4)) for size in log.shape))
        return lambda: vr.estimate(f, log, survey=random_survey(log), sample=10_000, estimators="delta-dr")

    assert held_a_row(work) < FOLDS + 2
