"""Small worlds, quick settings, and methods caught in the middle of training."""

from __future__ import annotations

from contextlib import suppress
from functools import cache

import numpy as np
import pytest
import torch

import verirec as vr
from plain_formulas import methods as plain
from verirec.data.predictions import as_predictions
from verirec.methods import base, catalogue
from verirec.training.data import Batch

EVERY = tuple(catalogue)
SWEEPING = tuple(name for name in EVERY if catalogue[name].sweeps)
BOTH = (*EVERY, *(f"{name} by gradient" for name in SWEEPING))
"""Every method by the solver that it takes by itself, and those that sweep by the other one too."""
WITH_IMPUTATION = tuple(name for name in EVERY if "imputation_model" in catalogue[name]().get_params())
WITH_PROPENSITIES = tuple(name for name in EVERY if "propensity_model" in catalogue[name]().get_params())
DENOISING = tuple(name for name in EVERY if catalogue[name].corrects)
RATES = vr.NoiseRates(0.2, 0.1)

QUICK = {"epochs": 4, "batch_size": 48, "grid_cells": 64, "validation": 0.2, "dim": 3, "learning_rate": 0.05}
"""Seven steps an epoch on the small world: with ten between judgements, it is judged twice."""


@pytest.fixture(scope="module", autouse=True)
def judge_often():
    """Judge after every few steps, as these tests take few; each module of them has to import this."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "STEPS_BETWEEN", 10)
        yield


@cache
def small_world(seed=10, n_users=30, n_items=40, observed=0.3):
    return vr.simulate.world(n_users, n_items, observed=observed, random_state=seed)


@cache
def featured_log():
    log, random = small_world().log, np.random.default_rng(5)
    return vr.FeedbackLog.from_arrays(
        users=log.users,
        items=log.items,
        labels=log.labels,
        n_users=log.n_users,
        n_items=log.n_items,
        user_features=random.normal(size=(log.n_users, 2)),
        item_features=random.normal(size=(log.n_items, 3)),
    )


def full_log(seed=0, n_users=12, n_items=15):
    """A log of all pairs."""
    labels = np.random.default_rng(seed).integers(2, size=n_users * n_items)
    users, items = np.repeat(np.arange(n_users), n_items), np.tile(np.arange(n_items), n_users)
    return vr.FeedbackLog.from_arrays(users=users, items=items, labels=labels, n_users=n_users, n_items=n_items)


def method_of(name, **parameters):
    """Make a method of the catalogue; "mf by gradient" is mf with that solver."""
    name, _, solver = name.partition(" by ")
    return catalogue[name](**{**QUICK, **({"solver": solver} if solver else {}), **parameters})


def fit(name, log=None, *, fit=None, **parameters):
    """Train a method quickly; on the small world, with its propensities known."""
    fit = dict(fit or {})
    if log is None:
        log = small_world().log
        fit.setdefault("propensities", small_world().propensities)
    return method_of(name, **parameters).fit(log, **fit)


@cache
def fitted(name):
    """A method trained quickly on the small world, once for all tests that only look at it."""
    return fit(name)


def matrix(method, predictions=None):
    """Probabilities of all pairs."""
    n_users, n_items = method.recommender_.shape
    given = method.predictions if predictions is None else predictions
    return as_predictions(given, n_users, n_items).block(np.arange(n_users), np.arange(n_items))


class Interrupted(Exception):
    """What the tests stop training with."""


def stop_after(epochs):
    def progress(epoch, of, value):
        if epoch >= epochs:
            raise Interrupted

    return progress


def built(name, log, *, spread=0.5, fit=None, **parameters):
    """Give a method in the middle of training, all its models moved to somewhere: losses can be asked of it."""
    method, halfway = method_of(name, **{"solver": "gradient", **parameters}), {}

    def stop(*at):
        halfway.update(vars(method))
        raise Interrupted

    with suppress(Interrupted):
        method.fit(log, progress=stop, **(fit or {}))
    vars(method).update(halfway)
    random = torch.Generator().manual_seed(9)
    with torch.no_grad():
        for learner in method.learners().values():
            for parameter in learner.model.parameters():
                parameter.add_(spread * torch.randn(parameter.shape, generator=random))
    method.asked_ = None
    return method


def whole_batch(method):
    """All rows and the whole grid as one batch."""
    task = method.task_
    n_users, n_items = task.shape
    rows = torch.arange(len(task.log))
    sides = torch.arange(n_users), torch.arange(n_items)
    return Batch(rows, task.users, task.items, task.labels, task.weights, *sides)


def logits_of(method, model):
    sides = (torch.arange(size) for size in method.task_.shape)
    with torch.no_grad():
        return model.grid(*sides).double().numpy()


def probabilities(method, model):
    return 1 / (1 + np.exp(-logits_of(method, model)))


def state_of(method, **options):
    """Write a method's models down as plain matrices."""
    task, log = method.task_, method.task_.log
    sides = np.arange(task.shape[0]), np.arange(task.shape[1])
    matrices = {
        as_named: probabilities(method, method.learners()[name].model)
        for name, as_named in (
            ("imputation", "g"),
            ("second_imputation", "second_g"),
            ("biased", "biased"),
            ("adversary", "adversary"),
        )
        if name in method.learners()
    }
    if "propensity" in method.learners():
        raw = probabilities(method, method.propensity_.model)
        matrices["learnt_p"] = np.maximum(raw, method.floor_)
    if getattr(method, "by_popularity", False):
        count = np.bincount(log.items, minlength=log.n_items)
        popular = vr.PopularityPropensity().fit(log).block(*sides)
        assert np.corrcoef(count, popular[0])[0, 1] > 0.99
        matrices["second_p"] = popular
    corrected = method.corrects
    return plain.State(
        labels={(int(u), int(i)): float(r) for u, i, r in zip(log.users, log.items, log.labels, strict=True)},
        f=probabilities(method, method.f),
        p=task.propensities.block(*sides),
        rates=(method.noise_rates_.rho01, method.noise_rates_.rho10) if corrected else (0.0, 0.0),
        loss=method.loss,
        forward=corrected and method.correction == "forward",
        options=options,
        **matrices,
    )
