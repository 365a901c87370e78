"""The printed table's arithmetic, against loops and against the library where the two must agree."""

from __future__ import annotations

import numpy as np
import pytest

import verirec as vr
from plain_formulas.printed_table import printed_estimates as plain_estimates
from verirec.simulate import level_propensities, prediction_matrices
from verirec.studies.semi_synthetic.plans import ALIASED_PROPENSITIES, Setting, table1_plan
from verirec.studies.semi_synthetic.populations import Population
from verirec.studies.semi_synthetic.seeds import given_propensities, run_seed

SETTING = table1_plan("printed").settings[0]


@pytest.fixture(scope="module")
def population():
    random = np.random.default_rng(0)
    return Population(random.choice(5, (40, 50), p=(0.53, 0.24, 0.14, 0.07, 0.02)).astype(np.int8) + 1)


@pytest.fixture(scope="module")
def records(population):
    return run_seed(table1_plan("printed"), population, seed=3)


def test_every_cell_is_what_loops_give(population, records):
    world = population.draw(SETTING, np.random.default_rng([3, 0]))
    matrices = prediction_matrices(population.levels, random_state=np.random.default_rng([3, 1]))
    given = given_propensities(SETTING, world).block(np.arange(40), np.arange(50))
    rates = {one.rho: (one.rho01, one.rho10) for one in records if one.rho != "none"}
    for name, predictions in matrices.items():
        plain = plain_estimates(
            predictions.tolist(), world.observed.tolist(), world.noisy_labels.tolist(), given.tolist(), rates
        )
        ours = {(one.method, one.rho): one.estimate for one in records if one.matrix == name}
        assert ours == pytest.approx(plain, rel=1e-10)


def test_what_needs_no_imputation_is_what_the_library_gives(population, records):
    world = population.draw(SETTING, np.random.default_rng([3, 0]))
    predictions = prediction_matrices(population.levels, random_state=np.random.default_rng([3, 1]))["CRS"]
    found = vr.estimate(
        predictions,
        world.log,
        propensities=given_propensities(SETTING, world),
        noise_rates=world.noise_rates,
        estimators=("naive", "ips", "ome", "ome-ips"),
    )
    ours = {one.method: one.estimate for one in records if one.matrix == "CRS" and one.rho in ("none", "true")}
    assert {name: ours[name] for name in found} == pytest.approx({name: one.value for name, one in found.items()})


def test_the_given_propensities_are_the_papers_mixture(population):
    world = population.draw(SETTING, np.random.default_rng([3, 0]))
    given = given_propensities(SETTING, world).at([0, 1], [0, 1])
    p = np.array((np.nan, *ALIASED_PROPENSITIES))[population.levels[[0, 1], [0, 1]]]
    assert given == pytest.approx(1 / (0.5 / p + 0.5 / world.log.density))
    assert given_propensities(Setting("exact"), world).at([0], [0])[0] in level_propensities()


def test_records_carry_no_interval(records):
    assert {one.covers for one in records} == {None}
    assert len(records) == 90
