"""Small tasks to train on."""

from __future__ import annotations

import numpy as np
import torch

from verirec import FeedbackLog, GivenPropensity
from verirec.training.data import TrainingData

SHAPE = 7, 9


def a_log(rows=25, shape=SHAPE, seed=0):
    random = np.random.default_rng(seed)
    cells = random.choice(shape[0] * shape[1], rows, replace=False)
    users, items = np.divmod(cells, shape[1])
    labels = random.integers(2, size=rows)
    labels[:2] = 0, 1
    return FeedbackLog.from_arrays(users, items, labels, n_users=shape[0], n_items=shape[1])


def known_propensities(shape=SHAPE):
    return np.random.default_rng(1).uniform(0.2, 0.9, shape)


def a_task(log=None, batch_size=4, grid_cells=6, seed=0):
    log = a_log() if log is None else log
    shape = log.n_users, log.n_items
    propensities = GivenPropensity(known_propensities(shape)).on_grid(shape)
    return TrainingData(log, propensities, batch_size, grid_cells, seed, torch.device("cpu"))
