"""rel-mf: what a log of clicks alone teaches, and what it does not."""

from __future__ import annotations

import numpy as np
import pytest
from method_worlds import Pieces, matrix, small_world

import verirec as vr
from plain_formulas import methods as plain
from refusals import check_refusal
from verirec.exceptions import LabelError, NoMinimumError, ParameterError

LOG = small_world().log
CLICKS = LOG.select(LOG.labels == 1)


def log_of(clicked):
    """A log of clicks, of a matrix that says where they are."""
    users, items = np.nonzero(clicked)
    shape = {"n_users": clicked.shape[0], "n_items": clicked.shape[1]}
    return vr.FeedbackLog.from_arrays(users, items, np.ones(len(users)), **shape)


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_of_clicks_alone_it_minimises_the_papers_loss_over_all_pairs(power):
    made = Pieces("rel-mf", CLICKS, validation=0.0, power=power)
    assert len(made.data.log) == len(CLICKS)
    assert float(made.loss().detach()) == pytest.approx(plain.rel_mf(made.plain(power=power)), rel=1e-5)


def test_items_that_are_liked_alike_and_seen_unlike_come_out_alike_by_the_right_power():
    """Half of the users like items 0 and 1; all of these see item 0 and a quarter item 1."""
    clicked = np.zeros((400, 2), bool)
    clicked[:200, 0] = clicked[:200:4, 1] = True
    log = log_of(clicked)

    def predicted(power):
        method = vr.methods.RELMF(power=power, dim=0, penalty_constants=1e-3, penalty_users=1e3)
        return method.fit(log).predict([0, 0], [0, 1])

    right, plainly, between = predicted(1.0), predicted(0.0), predicted(0.5)
    assert right[0] == pytest.approx(right[1], abs=0.01)
    assert right[0] == pytest.approx(0.5, abs=0.02)
    assert plainly[1] == pytest.approx(plainly[0] / 4, abs=0.02)
    assert between[1] == pytest.approx(between[0] / 2, abs=0.02)


def test_the_penalty_bound_is_of_what_clicks_count_above_once():
    clicked = np.zeros((CLICKS.n_users, CLICKS.n_items))
    clicked[CLICKS.users, CLICKS.items] = 1
    counts = clicked.sum(axis=0)
    excess = clicked * (np.sqrt(counts.max() / np.maximum(counts, 1)) - 1)
    bound = len(CLICKS) * np.linalg.svd(excess, compute_uv=False)[0] / clicked.size
    assert vr.methods.RELMF().fit(CLICKS).report_.penalty_bound == pytest.approx(bound, rel=1e-2)
    check_refusal(
        lambda: vr.methods.RELMF(penalty_factors=bound / 2).fit(CLICKS), NoMinimumError, "may have no minimum"
    )


def test_no_rows_are_held_out_and_a_survey_puts_the_level_right():
    random, truth = np.random.default_rng(0), small_world().true_labels
    places = random.choice(truth.size, 400, replace=False)
    users, items = np.divmod(places, truth.shape[1])
    survey = vr.SurveySample(users, items, truth[users, items])
    method = vr.methods.RELMF(random_state=0).fit(CLICKS, survey=survey)
    assert np.isnan(method.report_.validation_error)
    assert method.report_.validation_estimator is None
    by_clicks = vr.methods.RELMF(random_state=0).fit(CLICKS)
    means = [matrix(one).mean() for one in (by_clicks, method)]
    assert abs(means[1] - truth.mean()) < 0.06 < abs(means[0] - truth.mean())


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: vr.methods.MF().fit(CLICKS), LabelError, "mf needs rows of both classes; .*clicks alone: rel-mf"),
        (lambda: vr.methods.RELMF(validation=0.1).fit(CLICKS), ParameterError, "validation=0.1 leaves rows of one"),
        (lambda: vr.methods.RELMF(correction="surrogate").fit(CLICKS), ParameterError, "takes no correction"),
        (lambda: vr.methods.RELMF(power=-1).fit(CLICKS), ParameterError, "power must be"),
        (lambda: vr.methods.RELMF().fit(LOG.select(LOG.labels == 0)), LabelError, "both classes; all .* negative"),
    ],
)
def test_what_it_cannot_do_it_says(make, error, says):
    check_refusal(make, error, says)
