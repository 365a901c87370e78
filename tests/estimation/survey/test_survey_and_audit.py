"""A survey and an audit together: unbiased over all that may be drawn, by loops, and intervals that hold."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from scipy.stats import t as student

import verirec as vr
from draws import largest_z
from verirec.estimation.survey.draws import draws_of, target_of, with_audit
from verirec.estimation.survey.inference import Mean, inferred
from verirec.exceptions import NoiseRateWarning
from verirec.nuisance.noise_rates import AuditedRows

pytestmark = pytest.mark.filterwarnings("ignore::verirec.exceptions.SurveyWarning")


def together(survey, audited, log):
    target = target_of(survey, log, None)
    return with_audit(draws_of(survey, target, log, None, of_all=False), audited, target, log)


def test_unbiased_over_all_surveys_and_audits_of_a_small_grid():
    """Three chosen rows and one shown at random of six pairs; a survey of three draws, an audit of two rows."""
    truth, value = np.array([1, 0, 0, 1, 1, 0]), np.array([0.3, 1.1, 0.2, 2.0, 0.7, 1.6])
    log = vr.FeedbackLog.from_arrays(
        [0, 0, 1, 1], [0, 2, 1, 2], [1, 0, 0, 0], n_users=2, n_items=3, unbiased=[False, False, False, True]
    )
    cells = log.users * 3 + log.items
    chosen = set(cells[:3].tolist())
    found = []
    for drawn, rows in itertools.product(itertools.product(range(6), repeat=3), itertools.combinations(range(4), 2)):
        if chosen.issuperset(drawn):
            continue  # Nothing is known of pairs that nobody chose.
        users, items = np.divmod(drawn, 3)
        # Each draw a cluster: three are needed.
        survey = vr.SurveySample(users, items, truth[list(drawn)], clusters=np.arange(3), frame=[0, 1])
        audited = AuditedRows(np.array(rows), truth[cells[list(rows)]].astype(np.int8), np.full(2, 0.5))
        draws = together(survey, audited, log)
        if 3 in rows:
            # One row is left, which tells no error: the survey alone.
            assert len(draws) == 3
            continue
        assert draws.shares.sum() == pytest.approx(1)
        found.append(float(draws.shares @ value[draws.users * 3 + draws.items]))
    assert len(found) == (6**3 - 3**3) * 3
    assert np.mean(found) == pytest.approx(value.mean(), abs=1e-12)


def test_rows_shown_at_random_are_no_part_of_the_logged_stratum():
    world = vr.simulate.world(40, 50, observed=0.2, random_state=0)
    log = world.log
    shown = np.random.default_rng(0).random(len(log)) < 0.4
    marked = vr.FeedbackLog.from_arrays(log.users, log.items, log.labels, n_users=40, n_items=50, unbiased=shown)
    cells = np.random.default_rng(1).choice(2_000, 100, replace=False)
    survey = vr.SurveySample(*np.divmod(cells, 50), world.true_labels.ravel()[cells])
    rows = np.arange(0, len(log), 4)
    truth = world.true_labels[log.users[rows], log.items[rows]].astype(np.int8)
    draws = together(survey, AuditedRows(rows, truth, np.full(len(rows), 0.25)), marked)
    assert draws.shares[draws.logged].sum() == pytest.approx((~shown).sum() / 2_000)
    assert draws.facts["audited"] == (~shown[rows]).sum()


def clustered(world, users, each, seed):
    random = np.random.default_rng(seed)
    asked = np.repeat(random.choice(world.log.n_users, users, replace=False), each)
    items = np.concatenate([random.choice(world.log.n_items, each, replace=False) for _ in range(users)])
    survey = vr.SurveySample(asked, items, world.true_labels[asked, items], clusters=asked)
    rows = random.choice(len(world.log), 400, replace=False)
    truth = world.true_labels[world.log.users[rows], world.log.items[rows]].astype(np.int8)
    return survey, AuditedRows(rows, truth, np.full(400, 400 / len(world.log)))


@pytest.fixture(scope="module")
def world():
    return vr.simulate.world(100, 120, observed=0.1, selectivity=3, random_state=2)


def test_an_audit_adds_no_clusters_to_a_survey_of_five(world):
    """By loops: the survey's groups by 5/(5 - 1), audited rows by their own number, t on 3."""
    draws = together(*clustered(world, 5, 20, 0), world.log)
    values = np.random.default_rng(0).normal(size=len(draws)) + draws.labels.values
    found = inferred(Mean(0.0, values, np.zeros(len(draws))), draws, 0.95)
    keep = len(draws) / (len(draws) + 4)
    mean = sum(share * one for share, one in zip(draws.shares, values, strict=True))
    weights = [share / len(draws) for share in draws.shares]
    centre = keep * mean + (1 - keep) * sum(w * one for w, one in zip(weights, values, strict=True)) / sum(weights)
    middle = {}
    for stratum in (False, True):
        own = [at for at in range(len(draws)) if draws.logged[at] == stratum]
        total = sum(draws.shares[at] for at in own)
        middle[stratum] = sum(draws.shares[at] * values[at] for at in own) / total + centre - mean
    sums, audited, added = {}, 0.0, 0.0
    for at, (share, one, cluster) in enumerate(zip(draws.shares, values, draws.clusters, strict=True)):
        apart = share * (one - middle[bool(draws.logged[at])])
        if at < 100:
            sums[cluster] = sums.get(cluster, 0.0) + apart
        else:
            audited += apart**2
        added += 2 * 2 * (share * (one - centre)) ** 2 / len(draws)
    logged = int(draws.logged.sum())
    variance = keep**2 * ((sum(one**2 for one in sums.values()) + added) * 5 / 4 + audited * logged / (logged - 1))
    assert found.standard_error == pytest.approx(np.sqrt(variance))
    reach = student.ppf(0.975, 3) * np.sqrt(variance)
    assert found.interval == pytest.approx((centre - reach, centre + reach))


def test_intervals_of_few_clusters_hold_beside_a_large_audit(world):
    losses = np.random.default_rng(3).random((100, 120)) + world.preferences
    covered = []
    for seed in range(300):
        draws = together(*clustered(world, 5, 20, seed), world.log)
        found = inferred(Mean(0.0, losses[draws.users, draws.items], np.zeros(len(draws))), draws, 0.95)
        covered.append(found.interval[0] <= losses.mean() <= found.interval[1])
    room = largest_z(1) * np.sqrt(0.95 * 0.05 / len(covered))
    assert 0.95 - room < np.mean(covered)


def test_an_audit_sharpens_what_a_survey_says(world):
    random = np.random.default_rng(5)
    cells = random.choice(12_000, 300, replace=False)
    survey = vr.SurveySample(*np.divmod(cells, 120), world.true_labels.ravel()[cells])
    rows = random.choice(len(world.log), 400, replace=False)
    users, items = world.log.users[rows], world.log.items[rows]
    audit = vr.AuditSample(users, items, world.true_labels[users, items])
    f = 0.1 + 0.8 * world.preferences
    alone, both = (
        vr.estimate(f, world.log, survey=survey, estimators="survey-ppi", **more)["survey-ppi"]
        for more in ({}, {"audit": audit})
    )
    assert both.diagnostics["audited"] == 400
    assert both.standard_error < alone.standard_error
    assert both.interval[0] < world.true_inaccuracy(f) < both.interval[1]


def test_noisy_answers_that_an_audit_corrects_are_warned_of():
    world = vr.simulate.world(60, 50, observed=0.3, noise_rates=vr.NoiseRates(0.2, 0.1), random_state=0)
    random = np.random.default_rng(0)
    rows = random.choice(len(world.log), 300, replace=False)
    users, items = world.log.users[rows], world.log.items[rows]
    audit = vr.AuditSample(users, items, world.true_labels[users, items])
    asked, about = np.divmod(random.choice(3_000, 400, replace=False), 50)
    truth = world.true_labels[asked, about]
    said = np.where(random.random(400) < np.where(truth == 1, 0.2, 0.1), 1 - truth, truth)
    given = {"audit": audit, "estimators": "survey"}
    with pytest.warns(NoiseRateWarning, match=r"as noisy as the log's, .* holds if people err alike on all pairs"):
        vr.estimate(
            0.1 + 0.8 * world.preferences, world.log, survey=vr.SurveySample(asked, about, said, noisy=True), **given
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error", NoiseRateWarning)
        vr.estimate(0.1 + 0.8 * world.preferences, world.log, survey=vr.SurveySample(asked, about, truth), **given)
