"""OME-DR to the same log loss and AUC on clean labels: sweeps, our Adam, and a plain loop as the field writes it.

All minimise the same loss with the same penalties, noise rates and propensities, on one thread. Time for judging on
clean labels is not counted; all else of a fit is. In the simulated worlds propensities are the true ones: with fitted
ones, which cannot know that taste decides what is rated, the level that the loss asks for is wrong, and a loop that is
stopped on its way there looks better than one that arrives. `benchmarks.speed.tune_race` finds the learning rates, the
batch sizes and the goals that the cases have.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import torch
from benchmarks.speed.case import Taken
from benchmarks.speed.material import real_data
from benchmarks.speed.watch import Watch
from torch import nn
from torch.nn.functional import softplus

import verirec as vr
from verirec.metrics import auc, log_loss
from verirec.nuisance.propensities import as_propensities
from verirec.training import fitting
from verirec.training.trainer import Trainer

RATES = vr.NoiseRates(0.2, 0.1)
DIM, PENALTY, CONSTANT_PENALTY, IMPUTATION = 8, 32.0, 6.0, 3.0


@dataclass
class Problem:
    log: vr.FeedbackLog
    propensities: object
    users: np.ndarray
    items: np.ndarray
    labels: np.ndarray

    @property
    def rows_worth(self) -> float:
        """What the rows are worth, weighted by 1/p."""
        weights = 1 / self.propensities.at(self.log.users, self.log.items)  # type: ignore[attr-defined]
        return float(weights.sum() ** 2 / (weights**2).sum())

    def judge(self, f: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> tuple[float, float]:
        p = 1 / (1 + np.exp(-f(self.users, self.items)))
        return log_loss(self.labels, p), auc(self.labels, p)


def problem(size: str) -> Problem:
    """Return Coat, if it is at hand, or a simulated world of the size of Music or KuaiRec."""
    if size == "coat":
        coat = real_data("coat")
        noisy = coat.train.with_noise(RATES, random_state=0)
        fitted = vr.LogisticPropensity().fit(
            vr.FeedbackLog.from_arrays(
                noisy.users, noisy.items, noisy.labels, n_users=noisy.n_users, n_items=noisy.n_items
            )
        )
        return Problem(noisy, fitted, coat.test.users.astype(int), coat.test.items.astype(int), coat.test.labels)
    shapes = {"music": (15_400, 1_000, 0.02), "kuairec": (7_000, 10_000, 0.015)}
    n_users, n_items, observed = shapes[size]
    world = vr.simulate.world(n_users, n_items, observed=observed, noise_rates=RATES, random_state=0)
    random = np.random.default_rng(1)
    users, items = random.integers(n_users, size=50_000), random.integers(n_items, size=50_000)
    true = as_propensities(world.propensity_values.cells, world.log)
    return Problem(world.log, true, users, items, world.at(users, items).true_labels)


class PlainMF(nn.Module):
    def __init__(self, n_users: int, n_items: int) -> None:
        super().__init__()
        scale = 0.1**0.5 / DIM**0.25
        self.users, self.items = nn.Embedding(n_users, DIM), nn.Embedding(n_items, DIM)
        self.user_constants, self.item_constants = nn.Embedding(n_users, 1), nn.Embedding(n_items, 1)
        self.constant = nn.Parameter(torch.zeros(()))
        for factors in (self.users, self.items):
            nn.init.normal_(factors.weight, std=scale)
        for constants in (self.user_constants, self.item_constants):
            nn.init.zeros_(constants.weight)

    def forward(self, users: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
        factors = (self.users(users) * self.items(items)).sum(1)
        return factors + self.user_constants(users).squeeze(1) + self.item_constants(items).squeeze(1) + self.constant

    def groups(self, times: float, rows: float) -> list[dict[str, object]]:
        penalties = (
            (self.users, PENALTY),
            (self.items, PENALTY),
            (self.user_constants, CONSTANT_PENALTY),
            (self.item_constants, CONSTANT_PENALTY),
        )
        groups = [{"params": [part.weight], "weight_decay": times * one / rows} for part, one in penalties]
        return [*groups, {"params": [self.constant], "weight_decay": 0.0}]


def plain_loop(given: Problem, rate: float, batch: int, steps: int, judge: Callable[[object], bool]) -> None:
    """Train OME-DR as the field does: a random batch of O and one of random pairs of D a step."""
    log, density = given.log, given.log.density
    torch.manual_seed(0)
    f, g = (PlainMF(log.n_users, log.n_items) for _ in range(2))
    rows_worth = given.rows_worth
    f_optimiser = torch.optim.Adam(f.groups(1.0, rows_worth), lr=rate, eps=1e-12)
    g_optimiser = torch.optim.Adam(g.groups(IMPUTATION, rows_worth), lr=rate, eps=1e-12)
    p = given.propensities.at(log.users, log.items)  # type: ignore[attr-defined]
    for step in range(steps):
        rows = np.random.default_rng(step).integers(len(log), size=batch)
        users, items = (
            torch.as_tensor(log.users[rows].astype(np.int64)),
            torch.as_tensor(log.items[rows].astype(np.int64)),
        )
        labels = (torch.as_tensor(log.labels[rows].astype(np.float32)) - RATES.rho10) / 0.7
        weights = torch.as_tensor((1 / p[rows]).astype(np.float32))
        all_users, all_items = torch.randint(log.n_users, (batch,)), torch.randint(log.n_items, (batch,))
        z, z_all = f(users, items), f(all_users, all_items)
        imputed, imputed_all = torch.sigmoid(g(users, items)).detach(), torch.sigmoid(g(all_users, all_items)).detach()
        errors = softplus(z) - labels * z
        loss = (softplus(z_all) - imputed_all * z_all).mean()
        loss = loss + density * (weights * (errors - (softplus(z) - imputed * z))).mean()
        f_optimiser.zero_grad()
        loss.backward()
        f_optimiser.step()
        z = f(users, items).detach()
        errors = softplus(z) - labels * z
        imputed_errors = softplus(z) - torch.sigmoid(g(users, items)) * z
        imputation_loss = density * (weights * (errors - imputed_errors) ** 2).mean()
        g_optimiser.zero_grad()
        imputation_loss.backward()
        g_optimiser.step()
        if (step + 1) % max(1, len(log) // batch // 2 or 1) == 0 and judge(f):
            return


class Arrived(Exception):
    """Training has been told to stop."""


def ours(solver: str) -> Callable[..., None]:
    """Train OME-DR by the library."""

    def run(given: Problem, rate: float, batch: int, steps: int, judge: Callable[[object], bool]) -> None:
        method = vr.methods.OMEDR(
            dim=DIM,
            penalty_factors=PENALTY,
            penalty_constants=CONSTANT_PENALTY,
            imputation_penalty=IMPUTATION,
            solver=solver,
            learning_rate=rate,
            batch_size=batch,
            epochs=100 if solver == "sweep" else max(1, steps * batch // len(given.log)),
            patience=None,
            validation=0.01,
            validation_estimator="naive",
            refit=False,
        )
        with judged_trainer(judge), contextlib.suppress(Arrived):
            method.fit(given.log, noise_rates=RATES, propensities=given.propensities)

    return run


@contextlib.contextmanager
def judged_trainer(judge: Callable[[object], bool]) -> Iterator[None]:
    """Have the model judged after each epoch: users' own `progress` is told a number, not shown the model."""

    class Judged(Trainer):
        def _epoch(self) -> None:
            super()._epoch()
            if judge(self.model):
                raise Arrived

    with patch.object(fitting, "Trainer", Judged):
        yield


class Seen(NamedTuple):
    """A moment of training, judged."""

    taken: Taken
    log_loss: float
    auc: float


def course(
    run: Callable[..., None],
    given: Problem,
    rate: float,
    batch: int,
    *,
    stop: Callable[[list[Seen]], bool],
    steps: int = 20_000,
) -> list[Seen]:
    """Return how training went until it was told to stop; judging is not counted."""
    seen: list[Seen] = []
    watch, judging = Watch(), Taken(0.0, 0.0)

    def judge(model: object) -> bool:
        nonlocal judging
        now = watch.taken()
        with torch.no_grad():
            loss, area = given.judge(lambda u, i: model(torch.as_tensor(u), torch.as_tensor(i)).double().numpy())  # type: ignore[operator]
        seen.append(Seen(Taken(now.wall - judging.wall, now.cpu - judging.cpu), loss, area))
        after = watch.taken()
        judging = Taken(judging.wall + after.wall - now.wall, judging.cpu + after.cpu - now.cpu)
        return stop(seen)

    run(given, rate, batch, steps, judge)
    return seen


CONTENDERS = {"plain loop": plain_loop, "gradient": ours("gradient"), "sweep": ours("sweep")}
