"""Losses of levels in training: stars by their distance, chances of levels by their logs, both corrected for noise."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tasks import a_log, a_task

import verirec as vr
from plain_formulas.star_training import level_chances, logged_chance
from verirec.data.predictions import as_predictions
from verirec.estimation.curves import PlattCurve
from verirec.models import CumulativeModel, FactorModel
from verirec.training.heads import BinaryHead, OrdinalHead, StarsHead, make_head, read_head
from verirec.training.losses import OrdinalLoss, StarsLoss

LEVELS = (1.0, 2.0, 3.0, 4.0, 5.0)
THRESHOLDS = (2.0, 0.7, -0.2, -1.5)
BAND = vr.TransitionMatrix.band(5, 0.3)
SCORES = np.linspace(-6, 6, 13)


def graded_task():
    log = a_log()
    stars = np.random.default_rng(5).integers(1, 6, len(log))
    shape = {"n_users": log.n_users, "n_items": log.n_items}
    return a_task(vr.FeedbackLog.from_arrays(log.users, log.items, stars, levels=LEVELS, **shape))


def cumulative(scores):
    return torch.tensor(scores + np.array(THRESHOLDS)[:, None])


def test_the_loss_of_stars_is_half_the_squared_distance_but_for_what_no_score_can_change():
    z, y = torch.linspace(-2, 2, 9, dtype=torch.float64), torch.tensor(0.6, dtype=torch.float64)
    loss = StarsLoss()
    torch.testing.assert_close(loss(z, y), 0.5 * (z - y) ** 2 - 0.5 * y**2)
    torch.testing.assert_close(loss.response(z), z)


@pytest.mark.parametrize("matrix", [np.eye(5), BAND.matrix], ids=["none", "band"])
def test_the_ordinal_loss_is_minus_the_log_of_the_logged_levels_chance(matrix):
    loss = OrdinalLoss(None if matrix[0, 0] == 1 else torch.tensor(matrix).log())
    values = loss.values(cumulative(SCORES)).numpy()
    for place, score in enumerate(SCORES):
        for level in range(5):
            expected = -np.log(logged_chance(score, THRESHOLDS, matrix, level))
            assert values[level, place] == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("log_matrix", [None, torch.tensor(BAND.matrix).log()], ids=["none", "band"])
def test_the_ordinal_loss_and_its_gradient_are_finite_far_out(log_matrix):
    logits = (torch.tensor([-80.0, 80.0]) + torch.tensor(THRESHOLDS)[:, None]).requires_grad_()
    values = OrdinalLoss(log_matrix).values(logits)
    values.sum().backward()
    assert bool(values.isfinite().all())
    assert bool(logits.grad.isfinite().all())


def test_labels_that_are_levels_give_the_loss_at_the_level():
    loss, logits = OrdinalLoss(), cumulative(SCORES)
    for level in range(5):
        labels = torch.tensor([1.0 if level >= c else 0.0 for c in range(1, 5)], dtype=torch.float64)
        torch.testing.assert_close(loss(logits, labels), loss.values(logits)[level])


@pytest.mark.parametrize("kind", ["none", "surrogate"])
def test_what_stands_for_a_star_is_right_on_average_over_noise(kind):
    data = graded_task()
    head = make_head("stars", "log", data.log)
    table = head.correction(kind, BAND, data).table.double().numpy()
    values = (np.array(LEVELS) - head.centre) / head.spread
    np.testing.assert_allclose(BAND.matrix @ table if kind == "surrogate" else table, values, atol=1e-6)


def test_stars_of_rows_are_those_of_their_levels_whatever_the_batch():
    data = graded_task()
    correction = make_head("stars", "log", data.log).correction("surrogate", BAND, data)
    whole = correction.labels(data.all_rows)
    for batch in data.batches(0):
        torch.testing.assert_close(correction.labels(batch), whole[batch.rows])


def test_imputed_chances_meet_noise_as_the_levels_do():
    data = graded_task()
    correction = OrdinalHead(LEVELS, THRESHOLDS).correction("forward", BAND, data)
    levels = np.array(level_chances(0.3, THRESHOLDS))
    reached = torch.tensor(np.cumsum(levels[::-1])[::-1][1:].copy(), dtype=torch.float32)
    logged = levels @ BAND.matrix
    expected = np.cumsum(logged[::-1])[::-1][1:]
    found = correction.soft(reached[:, None])
    np.testing.assert_allclose(found.ravel().numpy(), expected, atol=1e-6)
    np.testing.assert_allclose(correction.without_noise(found).ravel().numpy(), reached.numpy(), atol=1e-5)


def test_thresholds_stay_in_their_order_whatever_they_are_trained_to():
    model = CumulativeModel(FactorModel(2, 2, 0, random=torch.Generator()), torch.tensor(THRESHOLDS))
    torch.testing.assert_close(model.thresholds, torch.tensor(THRESHOLDS))
    with torch.no_grad():
        model.distances.copy_(torch.tensor([-3.0, 5.0, -9.0]))
    assert bool((model.thresholds.diff() < 0).all())


def test_an_ordinal_heads_mean_and_chances_are_those_of_its_thresholds():
    head = OrdinalHead(LEVELS, THRESHOLDS)
    chances = head.chances(SCORES)
    for place, score in enumerate(SCORES):
        np.testing.assert_allclose(chances[:, place], level_chances(score, THRESHOLDS), atol=1e-12)
    np.testing.assert_allclose(head.values(SCORES), np.array(LEVELS) @ chances)
    assert (np.diff(head.values(SCORES)) > 0).all()


@pytest.mark.parametrize(
    "head", [BinaryHead(), BinaryHead("squared"), StarsHead(LEVELS, 3.2, 1.1), OrdinalHead(LEVELS, THRESHOLDS)]
)
def test_a_head_is_read_back_from_what_a_file_holds(head):
    assert read_head(head.plain()) == head


@pytest.mark.parametrize(
    "held",
    [
        {"name": "binary", "loss": "other"},
        {"name": "other", "levels": [1, 2], "thresholds": [0.0]},
        {"name": "ordinal", "levels": [1, 2, 3], "thresholds": [0.0, 1.0]},
        {"name": "stars", "levels": [1, 2, 3], "centre": 2.0, "spread": 0.0},
        {"name": "stars", "levels": [1, 2, 3], "centre": float("nan"), "spread": 1.0},
    ],
)
def test_what_is_no_head_is_not_read(held):
    with pytest.raises(ValueError, match=r"spread must be|no such head"):
        read_head(held)


@pytest.mark.parametrize("head", [BinaryHead(), StarsHead(LEVELS, 3.2, 1.1), OrdinalHead(LEVELS, THRESHOLDS)])
@pytest.mark.parametrize("places", [None, (np.array([2, 0]), np.array([1, 1, 0]))], ids=["own grid", "another"])
def test_a_curve_is_put_to_scores_before_what_any_head_predicts(head, places):
    model, curve = FactorModel(3, 2, 4, random=torch.Generator().manual_seed(1)), PlattCurve(1.7, -0.4, 0.2, 2.5)
    with torch.no_grad():
        model.user_factors.mul_(20)
    users, items = places or (np.arange(3), np.arange(2))
    made = head.predictions(model, (3, 2), places, curve)
    found = as_predictions(getattr(made, "means", made), len(users), len(items))
    scores = model.grid(torch.as_tensor(users), torch.as_tensor(items)).detach().double().numpy()
    expected = head.values(curve.logits(scores))
    block = found.block(np.arange(len(users)), np.arange(len(items)))
    np.testing.assert_allclose(block, expected, rtol=1e-5)
    assert np.abs(expected - head.values(scores)).max() > 0.01
