"""How much taste decides what is logged: delta from a survey of pairs that nobody logged."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from scipy.special import expit, logit

import verirec as vr
from held import held_a_row
from refusals import check_refusal
from verirec.exceptions import NoiseRateError, ParameterError, SurveyError

FOLDS = 5
"""Bytes a row of the random order that folds are drawn by, and of these: all that is as long as the log."""
SHAPE = (150, 180)
RATES = vr.NoiseRates(0.2, 0.1)


class Made(NamedTuple):
    log: vr.FeedbackLog
    labels: np.ndarray

    def survey(self, size: int, seed: int, **options) -> vr.SurveySample:
        random = np.random.default_rng([seed, 9])
        users, items = random.integers(SHAPE[0], size=size), random.integers(SHAPE[1], size=size)
        return vr.SurveySample(users, items, self.labels[users, items], **options)


def made(delta: float, seed: int, *, noisy: bool = False, by_activity: float = 0.0) -> Made:
    """Log pairs by sigma(beta + gamma + delta r*)."""
    random = np.random.default_rng(seed)
    taste = -0.5 + 0.7 * random.normal(size=SHAPE[0])[:, None] + 0.7 * random.normal(size=SHAPE[1])
    labels = (random.random(SHAPE) < expit(taste)).astype(int)
    active = random.normal(size=SHAPE[0])[:, None]
    chosen = -3.0 + 0.7 * active + 0.7 * random.normal(size=SHAPE[1]) + (delta + by_activity * active) * labels
    users, items = np.nonzero(random.random(SHAPE) < expit(chosen))
    said = labels[users, items]
    if noisy:
        said = np.where(random.random(len(said)) < np.where(said == 1, 0.2, 0.1), 1 - said, said)
    return Made(vr.FeedbackLog.from_arrays(users, items, said, n_users=SHAPE[0], n_items=SHAPE[1]), labels)


@pytest.mark.parametrize("delta", [-1.0, 0.0, 2.0])
def test_the_tilt_identity(delta):
    """logit P(r* = 1 | o = 0) = logit P(r* = 1 | o = 1) - delta, by Bayes' rule, whatever the pair's constants."""
    liked, constant = np.meshgrid(np.linspace(0.05, 0.95, 7), np.linspace(-4, 2, 7))
    logged = {label: expit(constant + delta * label) for label in (0, 1)}
    among_logged = liked * logged[1] / (liked * logged[1] + (1 - liked) * logged[0])
    among_others = liked * (1 - logged[1]) / (liked * (1 - logged[1]) + (1 - liked) * (1 - logged[0]))
    np.testing.assert_allclose(logit(among_others), logit(among_logged) - delta, atol=1e-12)
    # And the rows' weights: odds of not being logged, over all labels, undone by what is liked among the logged.
    p = liked * logged[1] + (1 - liked) * logged[0]
    np.testing.assert_allclose((1 - p) / p / (1 - among_logged + among_logged * np.exp(-delta)), np.exp(-constant))


@pytest.mark.parametrize(("delta", "noisy"), [(0.0, False), (1.5, False), (1.5, True)])
def test_delta_is_found_with_its_standard_error(delta, noisy):
    rates = RATES if noisy else None
    found = []
    for seed in range(20):
        one = made(delta, seed, noisy=noisy)
        found.append(vr.selection_strength(one.log, one.survey(600, seed), rates))
    errors = np.array([(one.value - delta) / one.standard_error for one in found])
    assert abs(errors.mean()) < 3.5 / np.sqrt(20)
    assert 0.6 < errors.std() < 1.45
    assert sum(low <= delta <= high for low, high in (one.interval for one in found)) >= 16


def test_a_delta_that_varies_with_activity_shows_in_its_slope():
    found = [
        vr.selection_strength((one := made(1.0, seed, by_activity=0.8)).log, one.survey(900, seed)) for seed in range(8)
    ]
    assert np.mean([one.slopes["activity"].value for one in found]) > 0.2
    assert abs(np.mean([one.slopes["popularity"].value for one in found])) < 0.2


def test_noisy_answers_and_uncertain_rates_widen_it():
    one = made(1.0, 3, noisy=True)
    exact = vr.selection_strength(one.log, one.survey(500, 3), RATES)
    uncertain = vr.NoiseRates(0.2, 0.1, covariance=((1e-3, 0.0), (0.0, 1e-3)))
    assert vr.selection_strength(one.log, one.survey(500, 3), uncertain).standard_error > exact.standard_error
    noisy = vr.selection_strength(one.log, one.survey(500, 3, noisy=True), RATES)
    assert noisy.standard_error > exact.standard_error


def test_the_same_seed_gives_the_same_and_clusters_count():
    one = made(1.0, 0)
    survey = one.survey(300, 0)
    first, second = (vr.selection_strength(one.log, survey) for _ in range(2))
    assert first == second
    grouped = vr.SurveySample(
        survey.users, survey.items, survey.labels, clusters=survey.labels * 100 + survey.users % 50
    )
    assert vr.selection_strength(one.log, grouped).standard_error > first.standard_error
    assert "delta" in first._repr_html_()


def test_bad_input():
    one = made(1.0, 0)
    survey = one.survey(100, 0)
    check_refusal(lambda: vr.selection_strength(one.log, "x"), SurveyError, "survey must be a SurveySample")
    check_refusal(lambda: vr.selection_strength(one.log, survey, 0.2), ParameterError, "noise_rates must be")
    check_refusal(
        lambda: vr.selection_strength(one.log, one.survey(100, 0, noisy=True)),
        NoiseRateError,
        "survey's labels are noisy",
    )
    check_refusal(lambda: vr.selection_strength(one.log, survey, confidence=2), ParameterError, "confidence")


def random_survey(log):
    random = np.random.default_rng(0)
    users, items = random.integers([[log.n_users], [log.n_items]], size=(2, 600))
    return vr.SurveySample(users, items, random.integers(0, 2, 600))


@pytest.mark.parametrize("rates", [None, RATES], ids=["true labels", "noise"])
def test_nothing_but_folds_is_as_long_as_the_log(rates, in_small_parts):
    def work(log):
        given = vr.LogisticPropensity().fit(log)
        return lambda: vr.selection_strength(log, random_survey(log), rates, propensities=given)

    assert held_a_row(work) < FOLDS + 2
