"""Covariates that are kept from candidate to candidate: those of the same rows of the same grid, and no others."""

from __future__ import annotations

import numpy as np
import torch

import verirec as vr
from verirec.methods import folds
from verirec.models.covariates import KINDS
from verirec.training.side_information import side_information

LOG = vr.simulate.world(30, 20, observed=0.5, random_state=0).log


def test_the_same_rows_of_a_larger_grid_have_covariates_of_their_own():
    larger = vr.FeedbackLog.from_arrays(LOG.users, LOG.items, LOG.labels, n_users=30, n_items=25)
    learnt = {}
    for log in (LOG, larger, LOG):
        side_information(log, next(iter(KINDS)), torch.device("cpu"), learnt=learnt)
    assert len(learnt) == 2


def test_a_worker_keeps_those_of_the_latest_folds(monkeypatch):
    monkeypatch.setattr(folds, "in_worker", lambda: True)
    first, second, third = (
        folds.folds_of(LOG, 2, seed, None, None, np.full(LOG.shape, 0.5), None) for seed in range(3)
    )
    kept = first._learnt_here()
    kept["mark"] = None
    assert second._learnt_here() == {}
    assert first._learnt_here() is kept
    assert third._learnt_here() == {}
    assert first._learnt_here() == {}
