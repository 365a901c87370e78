"""Folds of a log's rows, and their models."""

from __future__ import annotations

import numpy as np
import pytest

import verirec as vr
from verirec.nuisance import label_folds
from verirec.nuisance.label_folds import LabelFolds


@pytest.mark.parametrize("most", [30, 79, 80, 1_000])
@pytest.mark.parametrize("count", [2, 5, 100])
def test_a_model_is_fitted_to_rows_of_other_folds(monkeypatch, most, count):
    monkeypatch.setattr(label_folds, "MOST_ROWS", most)
    folds = LabelFolds.of(100, count, np.random.default_rng(0))
    sizes = np.bincount(folds.fold, minlength=count)
    assert sizes.sum() == 100
    assert sizes.max() - sizes.min() <= 1
    for one, rows in enumerate(folds.training):
        assert len(np.unique(rows)) == len(rows) == min(most, 100 - sizes[one])
        assert (np.diff(rows) > 0).all()
        assert one not in folds.fold[rows]
    # As many rows for pairs that are in no fold, where the folds' models have not all rows that they could have.
    cut = most <= 100 - sizes.min()
    assert (folds.whole is not None) == cut
    assert folds.whole is None or len(np.unique(folds.whole)) == most


def test_each_row_has_the_logit_of_the_model_that_has_not_seen_it():
    log = vr.simulate.world(40, 60, observed=0.3, random_state=1).log
    ones, how = np.ones(len(log)), vr.nuisance.label_model.LabelModel()
    folds = LabelFolds.of(len(log), 3, np.random.default_rng(2))
    found = how.fit_folds(log, ones, folds)
    for one in range(3):
        mine = folds.fold == one
        own = how.fit(log.select(~mine), ones[~mine])
        assert found.logits()[mine] == pytest.approx(own.cell_logits(log.users[mine], log.items[mine]), rel=1e-12)
        assert found.probabilities()[mine] == pytest.approx(own.at(log.users[mine], log.items[mine]), rel=1e-12)
    assert how.cross_fit(log, ones, 3, np.random.default_rng(2)).tolist() == found.probabilities().tolist()
