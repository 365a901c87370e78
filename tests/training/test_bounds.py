"""The least penalty of factors: against dense singular values, and against the objective on both sides of it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from training.tasks import a_log
from verirec import FeedbackLog, NoiseRates
from verirec.exceptions import ParameterError
from verirec.losses import correct_labels
from verirec.methods import OME
from verirec.models import FactorModel, Penalties
from verirec.training.bounds import least_factor_penalty
from verirec.training.learner import Learner
from verirec.training.losses import LogLoss


def full_log(labels):
    """A log of every pair, row by row."""
    users, items = np.divmod(np.arange(labels.size), labels.shape[1])
    return FeedbackLog.from_arrays(users, items, labels.ravel(), n_users=labels.shape[0], n_items=labels.shape[1])


def dense_bound(log, excess, rows):
    matrix = np.zeros((log.n_users, log.n_items))
    matrix[log.users, log.items] = excess
    return rows * np.linalg.svd(matrix, compute_uv=False)[0] / matrix.size


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (6, 1), (2, 9), (9, 2), (3, 3), (3, 40), (40, 3), (30, 25)])
@pytest.mark.parametrize("share", [1.0, 0.4])
def test_the_bound_is_the_largest_singular_value(shape, share):
    random = np.random.default_rng(3)
    log = a_log(max(2, round(share * shape[0] * shape[1])), shape) if shape != (1, 1) else single()
    for draw in (random.normal(size=len(log)), random.exponential(size=len(log))):
        excess = np.where(random.random(len(log)) < 0.7, draw, 0.0)
        excess[0] = 1.0
        for rows in (1.0, 2.5, len(log)):
            found = least_factor_penalty(log, excess, rows)
            assert found == pytest.approx(dense_bound(log, excess, rows), rel=1e-3)


def single():
    return FeedbackLog.from_arrays([0], [0], [1], n_users=1, n_items=1)


def test_targets_within_0_and_1_need_no_penalty():
    assert least_factor_penalty(a_log(), np.zeros(25), 25) == 0.0
    assert isinstance(least_factor_penalty(a_log(), np.eye(25)[0], 25), float)


def test_the_bound_is_of_the_size_of_the_excess():
    log, excess = a_log(), np.random.default_rng(0).normal(size=25)
    once = least_factor_penalty(log, excess, 25)
    assert least_factor_penalty(log, 10 * excess, 25) == pytest.approx(10 * once, rel=1e-3)
    assert least_factor_penalty(log, -excess, 25) == pytest.approx(once, rel=1e-3)


def test_labels_that_balance_out_have_a_bound():
    labels = np.add.outer(np.arange(4), np.arange(4)) % 2
    log, excess = full_log(labels), np.where(labels.ravel() == 1, 0.5, -0.5)
    assert least_factor_penalty(log, excess, 16) == pytest.approx(2.0, rel=1e-3)


def test_a_group_whose_labels_balance_out_is_not_overlooked():
    matrix = np.zeros((60, 60))
    matrix[:2, :2] = [[60, -60], [-60, 60]]
    matrix[2:, 2:] = np.random.default_rng(0).uniform(0.1, 1, (58, 58))
    found = least_factor_penalty(full_log((matrix > 0).astype(int)), matrix.ravel(), 3600)
    assert found == pytest.approx(120.0, rel=1e-3)


# The objective on both sides of the bound


RATES = NoiseRates(0.25, 0.15)


class Objective:
    """Mean surrogate log loss over a log's rows, plus the penalty of factors; no constants."""

    def __init__(self, log):
        self.log = log
        self.targets = correct_labels(log.labels, RATES, log.users, log.items).values
        self.excess = (self.targets - np.clip(self.targets, 0, 1)) / log.density
        self.rows = len(log)
        self.bound = least_factor_penalty(log, self.excess, self.rows)
        self.model = FactorModel(
            log.n_users, log.n_items, 2, constants=False, random=torch.Generator().manual_seed(0)
        ).double()

    def loss(self):
        users, items = (torch.as_tensor(side.astype(np.int64)) for side in (self.log.users, self.log.items))
        return LogLoss()(self.model(users, items), torch.as_tensor(self.targets)).mean()

    def __call__(self, penalty):
        with torch.no_grad():
            squares = (self.model.user_factors**2).sum() + (self.model.item_factors**2).sum()
            return float(self.loss() + penalty / (2 * self.rows) * squares)

    def along(self, user_factors, item_factors, penalty):
        with torch.no_grad():
            self.model.user_factors.copy_(torch.as_tensor(user_factors))
            self.model.item_factors.copy_(torch.as_tensor(item_factors))
        return self(penalty)

    def top(self, size):
        """Give factors whose product is `size` times the top singular vectors', at the least penalty."""
        n_users, n_items = self.model.shape
        matrix = np.zeros((n_users, n_items))
        matrix[self.log.users, self.log.items] = self.excess
        u, _, v = np.linalg.svd(matrix)
        users = np.column_stack([np.sqrt(size) * u[:, 0], np.zeros(n_users)])
        return users, np.column_stack([np.sqrt(size) * v[0], np.zeros(n_items)])


def tight():
    """A full log of labels that are a product of signs: the top singular vectors have the targets' signs."""
    liked = np.outer([1, 1, -1, 1], [1, -1, -1, 1, 1, -1]) > 0
    return Objective(full_log(liked.astype(int)))


def test_below_the_bound_the_objective_falls_without_end():
    objective = tight()
    penalty = 0.95 * objective.bound
    values = [objective.along(*objective.top(size), penalty) for size in 10.0 ** np.arange(1, 8)]
    assert all(later < earlier for earlier, later in itertools.pairwise(values[1:]))
    assert values[-1] < -1e4
    # Its slope is what is missing from the bound.
    slope = (values[-1] - values[-2]) / (10.0**7 - 10.0**6)
    assert slope == pytest.approx((penalty - objective.bound) / 24, rel=1e-3)


def test_at_the_bound_it_is_bounded_along_the_same_direction():
    objective = tight()
    penalty = (1 + 1e-6) * objective.bound
    values = [objective.along(*objective.top(size), penalty) for size in 10.0 ** np.arange(-2, 8)]
    assert min(values) >= 0
    assert values[-1] > values[0] or values[-1] == pytest.approx(values[-2], abs=1)


@pytest.mark.parametrize("make", [tight, lambda: Objective(a_log(40))])
def test_above_the_bound_it_is_never_negative(make):
    objective, random = make(), np.random.default_rng(1)
    penalty = 1.001 * objective.bound
    n_users, n_items = objective.model.shape
    assert min(objective.along(*objective.top(size), penalty) for size in 10.0 ** np.arange(-3, 8)) >= 0
    for size in np.repeat(10.0 ** np.arange(-2, 5), 40):
        factors = size * random.normal(size=(n_users, 2)), size * random.normal(size=(n_items, 2))
        assert objective.along(*factors, penalty) >= 0


def trained(penalty_in_bounds, steps=400):
    """Give the objective before and after a descent."""
    objective = tight()
    penalty = penalty_in_bounds * objective.bound
    learner = Learner(objective.model, Penalties(0, penalty, 0), 0.2, objective.rows)
    before = objective(penalty)
    for _ in range(steps):
        learner.minimise(objective.loss())
    return before, objective(penalty)


def test_training_finds_the_way_down_below_the_bound_and_none_above():
    before, after = trained(0.5)
    assert after < -1 < 0 < before
    before, after = trained(1.1)
    assert 0 <= after < before


def test_no_penalty_of_factors_makes_up_for_a_mean_target_above_1():
    """Nearly all labels are 1, and corrected ones 1.43: training must refuse, or stay where it can be."""
    labels = np.ones((6, 8), int)
    labels[0, 0] = 0
    method = OME(validation=0, penalty_factors=10.0, epochs=200, learning_rate=0.2)
    try:
        method.fit(full_log(labels), noise_rates=NoiseRates(0.3, 0), propensities=np.full((6, 8), 0.5))
    except ParameterError:
        return
    assert method.report_.penalty_bound < 10
    assert method.recommender_.model.constant.item() < 10
