"""Losses against levels: each against its own formula, and with two levels against the binary losses."""

from __future__ import annotations

import numpy as np
import pytest

from refusals import check_refusal
from verirec.exceptions import ParameterError, PredictionError
from verirec.losses import errors_of, get_level_loss, get_loss
from verirec.losses.levels import checked_distributions

STARS = (1.0, 2.0, 3.0, 4.0, 5.0)
BOTH = (0.0, 1.0)


def distributions(count, n_levels, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(n_levels), count).T


@pytest.mark.parametrize(
    ("name", "plain"), [("squared", lambda f, v: (f - v) ** 2), ("absolute", lambda f, v: abs(f - v))]
)
def test_stars_are_compared_with_the_value_of_the_level(name, plain):
    stars, places = np.random.default_rng(0).uniform(0, 6, 20), np.arange(20) % 5
    found = get_level_loss(name, STARS).of(stars, places)
    np.testing.assert_allclose(found, [plain(f, STARS[j]) for f, j in zip(stars, places, strict=True)], atol=1e-12)


def test_the_log_loss_is_that_of_the_probability_of_the_level():
    given, places = distributions(20, 5), np.arange(20) % 5
    found = get_level_loss("log", STARS).of(given, places)
    np.testing.assert_allclose(found, [-np.log(given[j, n]) for n, j in enumerate(places)], atol=1e-12)


def test_the_ranked_probability_score_goes_by_what_is_reached():
    given, places = distributions(20, 5), np.arange(20) % 5
    plain = [
        sum((given[c:, n].sum() - (j >= c)) ** 2 for c in range(1, 5)) for n, j in enumerate(places)
    ]  # A plain loop over thresholds.
    np.testing.assert_allclose(get_level_loss("rps", STARS).of(given, places), plain, atol=1e-12)


@pytest.mark.parametrize(
    ("of_levels", "binary", "shown"),
    [("squared", "squared", False), ("absolute", "absolute", False), ("log", "log", True), ("rps", "squared", True)],
)
def test_two_levels_of_0_and_1_are_binary(of_levels, binary, shown):
    f = np.random.default_rng(0).uniform(0.01, 0.99, 50)
    lowest, steps = get_level_loss(of_levels, BOTH).parts(np.stack([1 - f, f]) if shown else f)
    expected = get_loss(binary).parts(f)
    np.testing.assert_allclose(lowest, expected[0], atol=1e-12)
    np.testing.assert_allclose(steps[0], expected[1], atol=1e-12)


def test_a_function_is_a_loss_of_stars():
    def within_one(f, y):
        return np.abs(f - y) > 1

    loss = get_level_loss(within_one, STARS)
    assert loss.name == "within_one"
    assert loss.of(np.array([1.5, 1.5, 4.2]), np.array([0, 3, 3])).tolist() == [0, 1, 0]


def test_steps_add_up_to_the_losses():
    lowest, steps = get_level_loss("squared", STARS).parts(np.array([2.5]))
    labels = np.array([[1.0], [1.0], [0.5], [0.0]])
    assert errors_of(lowest, steps, labels).tolist() == pytest.approx([(0.5**2 + 1.5**2) / 2])


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda: get_level_loss("hinge", STARS), ParameterError, "absolute, log, rps, squared or a function"),
        (lambda: get_level_loss(get_loss("log"), STARS), ParameterError, "got 'log'"),
        (lambda: get_level_loss(get_level_loss("log", BOTH), STARS), ParameterError, "other levels than the log's"),
        (
            lambda: get_level_loss("log", BOTH).parts(np.array([[0.0, 0.5], [1.0, 0.5]])),
            PredictionError,
            "needs probabilities above 0 of all levels; 1 of 2 predictions lack them",
        ),
        (lambda: get_level_loss("squared", BOTH).parts(np.array([np.nan])), PredictionError, "1 of 1 predictions lack"),
        (
            lambda: checked_distributions("predictions", np.array([[0.5, 1.2], [0.5, -0.2]])),
            PredictionError,
            "of 1 of 2 pairs they do not",
        ),
    ],
)
def test_what_is_no_loss_or_cannot_be_judged_by_it(function, error, message):
    check_refusal(function, error, message)
