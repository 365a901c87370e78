"""Variances of several estimates from one walk: those of each by itself, and by sums over all rows."""

from __future__ import annotations

import pytest

import verirec as vr
from verirec.estimation import variance
from verirec.estimation.catalogue import ESTIMATORS
from verirec.estimation.rows import LoggedPairs
from verirec.estimation.setup import make_problem
from verirec.estimation.variance import Expanded, variances_by_source
from verirec.nuisance.propensities import as_propensities

RATES = (vr.NoiseRates(0.0, 0.0), vr.NoiseRates(0.3, 0.1))
MODELS = {
    "logistic": None,
    "floored": vr.LogisticPropensity(floor=0.05),
    "constant": vr.ConstantPropensity(),
    "popularity": vr.PopularityPropensity(),
}


def expansions(model):
    world = vr.simulate.world(n_users=400, n_items=300, observed=0.1, random_state=0)
    pairs = LoggedPairs(world.log, as_propensities(MODELS[model], world.log))
    problem = make_problem(0.1 + 0.8 * world.preferences, pairs, list(ESTIMATORS.values()))
    asked = [(one, rates) for one in ESTIMATORS.values() for rates in RATES]
    return [Expanded(*problem.linearised(*one)) for one in asked]


@pytest.mark.parametrize("model", MODELS)
def test_several_at_once_are_what_each_is_by_itself(model, monkeypatch):
    found = expansions(model)
    apart = [variances_by_source([one])[0] for one in found]
    assert variances_by_source(found) == apart
    monkeypatch.setattr(variance, "TOGETHER", 3)
    assert variances_by_source(found) == apart


@pytest.mark.parametrize("model", MODELS)
def test_parts_of_the_rows_add_up(model, monkeypatch):
    whole = variances_by_source(expansions(model))
    monkeypatch.setattr(variance, "parts_for_change", lambda log: 1_000)
    for one, other in zip(variances_by_source(expansions(model)), whole, strict=True):
        assert one == pytest.approx(other, rel=1e-9, abs=1e-16)


@pytest.mark.parametrize("model", MODELS)
def test_they_are_sums_over_all_rows(model):
    for one in expansions(model):
        found, rows = one.expansion, one.rows
        (parts,) = variances_by_source([one])
        squares = found.influence**2
        expected = squares.sum() if found.as_sample else ((1 - rows.p) * squares).sum()
        assert parts["selection"] == pytest.approx(expected, rel=1e-9)
        if not found.as_sample:
            change = rows.propensities.variance_change(rows.log, found.p_slopes, found.influence)
            assert parts["propensities"] == pytest.approx(max(change, -0.95 * expected), rel=1e-7, abs=1e-16)
            noise = (rows.p * found.label_slopes**2 * rows.labels.variance).sum()
            assert parts["noise"] == pytest.approx(max(noise, 0.0), rel=1e-9, abs=1e-16)
