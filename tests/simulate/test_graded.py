"""Worlds of levels: what is true, what is said and what is logged."""

from __future__ import annotations

import numpy as np
import pytest

import verirec as vr
from draws import fits, z_scores
from refusals import check_refusal
from verirec.exceptions import EmptyLogError, LabelError, ParameterError
from verirec.simulate import on_stars, stars

HALVES = (0.5, 1.0, 1.5, 2.0)
TRUTH = np.random.default_rng(0).choice(HALVES, (60, 80))


def test_what_is_said_and_what_is_logged_go_by_the_true_level():
    noise, chances = vr.TransitionMatrix.band(4, 0.4), (0.1, 0.2, 0.4, 0.8)
    world = on_stars(TRUTH, levels=HALVES, noise=noise, propensities=chances, random_state=0)
    log, places = world.log, world.places
    assert (world.true_values == TRUTH).all()
    logged = np.zeros(TRUTH.shape, bool)
    logged[log.users, log.items] = True
    assert fits(z_scores(logged, world.propensities, places))
    assert world.propensities[0, 0] == chances[places[0, 0]]
    truths = places[log.users, log.items]
    for said in range(4):
        assert fits(z_scores(log.labels == said, noise.matrix[truths, said], truths))


def test_samples_have_the_truth():
    world = stars(30, 40, propensities=(0.3,) * 5, random_state=0)
    users, items, values = world.survey(200, random_state=1)
    assert (values == world.true_values[users, items]).all()
    users, items, values = world.audit(50, random_state=1)
    assert (values == world.true_values[users, items]).all()
    assert len(np.unique(users * 40 + items)) == 50
    assert vr.AuditSample(users, items, values, levels=world.levels).rows_in(world.log).rows.shape == (50,)


def test_the_same_seed_gives_the_same_world():
    assert stars(20, 30, random_state=3).log.equals(stars(20, 30, random_state=3).log)
    assert not stars(20, 30, random_state=3).log.equals(stars(20, 30, random_state=4).log)
    assert "TransitionMatrix(5 levels" in repr(stars(20, 30, random_state=3))


def test_true_inaccuracy_is_the_mean_over_all_pairs():
    world = stars(30, 40, random_state=0)
    f = np.random.default_rng(0).dirichlet(np.ones(5), (30, 40))
    plain = -np.log(np.take_along_axis(f, world.places[..., None].astype(int), -1)).mean()
    assert world.true_inaccuracy(f, "log") == pytest.approx(plain)
    assert world.true_inaccuracy(np.full((30, 40), 3.0)) == pytest.approx(((3 - world.true_values) ** 2).mean())


BAD = {
    "values that are no levels": ({"levels": (1, 2)}, LabelError, "must be one of the levels 1, 2"),
    "noise of other levels": ({"noise": vr.TransitionMatrix.band(3, 0.1)}, ParameterError, "of 4 levels"),
    "too few chances": ({"propensities": (0.1, 0.2)}, ParameterError, "must be 4 numbers, one a level; got 2"),
    "a chance above 1": ({"propensities": (0.1, 0.2, 0.3, 2)}, ParameterError, "propensities must be"),
    "nothing logged": ({"propensities": (0, 0, 0, 0)}, EmptyLogError, "no pair was observed"),
}


@pytest.mark.parametrize(("change", "error", "message"), BAD.values(), ids=BAD)
def test_what_is_refused(change, error, message):
    given = {"levels": HALVES, "propensities": (0.2,) * 4, "random_state": 0} | change
    check_refusal(lambda: on_stars(TRUTH, **given), error, message)
