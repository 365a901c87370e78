"""Transition matrices from an audit: their forms, what is sure of them, and audits that miss a level."""

from __future__ import annotations

import numpy as np
import pytest

import verirec as vr
from refusals import check_refusal
from verirec.exceptions import AuditError, ParameterError, SmallAuditWarning
from verirec.nuisance.noise_rates.transition_forms import FORMS

STARS = [1, 2, 3, 4, 5]
ROWS = np.array([200, 240, 300, 180, 120])
BAND = vr.TransitionMatrix.band(5, 0.3).matrix
AWAY = np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
FALLING = 0.2**AWAY / (0.2**AWAY).sum(axis=1, keepdims=True)
FREE = np.array(
    [
        [0.7, 0.1, 0.1, 0.05, 0.05],
        [0.3, 0.6, 0.05, 0.05, 0.0],
        [0.0, 0.0, 0.9, 0.05, 0.05],
        [0.1, 0.0, 0.0, 0.8, 0.1],
        [0.2, 0.0, 0.0, 0.1, 0.7],
    ]
)
TRUE = {"free": FREE, "band": BAND, "symmetric": BAND, "ordinal": FALLING}


def counts_of(matrix, seed=0, rows=ROWS):
    random = np.random.default_rng(seed)
    return np.array([random.multinomial(n, chances) for n, chances in zip(rows, matrix, strict=True)]).astype(float)


def log_and_audit(counts, **more):
    """A log and an audit with so many rows of each true and logged level."""
    truth, said = np.repeat(np.indices((5, 5)).reshape(2, -1), counts.astype(int).ravel(), axis=1)
    users, items = np.divmod(np.arange(len(truth)), 50)
    log = vr.FeedbackLog.from_arrays(users, items, said + 1, n_users=users.max() + 1, n_items=50, levels=STARS)
    return log, vr.AuditSample(users, items, truth + 1, levels=STARS, **more)


@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_as_likely_as_it_can_be(name):
    counts = counts_of(TRUE[name])
    found = FORMS[name](counts)
    np.testing.assert_allclose(found.matrix.sum(axis=1), 1)
    likely = (counts * np.log(np.where(counts > 0, found.matrix, 1))).sum()
    random = np.random.default_rng(1)
    for _ in range(20):  # Other matrices of the form: those of counts that are a little different.
        other = FORMS[name](counts * random.uniform(0.9, 1.1, counts.shape)).matrix
        assert (counts * np.log(np.where(counts > 0, other, 1))).sum() <= likely + 1e-6


@pytest.mark.parametrize("name", FORMS)
def test_covariances_are_what_audits_vary_by(name):
    found = [FORMS[name](counts_of(TRUE[name], seed)) for seed in range(150)]
    spread = np.std([one.matrix.ravel() for one in found], axis=0)
    claimed = np.sqrt(np.mean([np.diag(one.covariance) for one in found], axis=0))
    counted = TRUE[name].ravel() > 0.02
    assert spread[counted] == pytest.approx(claimed[counted], rel=0.3)


@pytest.mark.parametrize("name", ["ordinal", "band", "free"])
def test_the_form_is_chosen_by_likelihood_and_reported(name):
    log, audit = log_and_audit(np.round(3 * ROWS[:, None] * TRUE[name]))
    found = vr.AuditTransitionMatrix().fit(log, audit=audit)
    assert found.diagnostics["form"] == name
    assert min(found.diagnostics["aic"], key=found.diagnostics["aic"].get) == name
    assert set(found.diagnostics["aic"]) == set(FORMS)
    assert name in found.source
    assert found.audit.share == 1


def test_a_form_can_be_asked_for():
    log, audit = log_and_audit(counts_of(BAND))
    found = vr.AuditTransitionMatrix("symmetric").fit(log, audit=audit)
    assert found.diagnostics["form"] == "symmetric"
    np.testing.assert_allclose(found.matrix, found.matrix.T, atol=1e-6)
    assert vr.AuditTransitionMatrix("free").fit(log, audit=audit).covariance.shape == (25, 25)


def test_unequal_chances_to_be_audited_are_made_up_for():
    log, whole = log_and_audit(counts_of(BAND))
    wrong = whole.true_labels != log.labels
    chance = np.where(wrong, 0.9, 0.3)
    kept = np.random.default_rng(0).random(len(log)) < chance
    audit = vr.AuditSample(
        whole.users[kept], whole.items[kept], whole.true_labels[kept] + 1, chance[kept], levels=STARS
    )
    found, everything = (vr.AuditTransitionMatrix("free").fit(log, audit=one) for one in (audit, whole))
    assert np.abs(found.matrix - everything.matrix).max() < 0.06
    assert found.covariance[6, 6] > everything.covariance[6, 6]


def test_a_level_that_nobody_has_is_pooled_or_refused():
    log, audit = log_and_audit(counts_of(BAND, rows=np.array([200, 0, 300, 180, 120])))
    with pytest.warns(SmallAuditWarning, match=r"none of 800 audited rows has a true level of 2: its noise is pooled"):
        found = vr.AuditTransitionMatrix().fit(log, audit=audit)
    assert found.diagnostics["form"] == "ordinal"
    assert found.diagnostics["pooled"] == [2]
    for form in ("free", "band", "symmetric"):
        check_refusal(
            lambda form=form: vr.AuditTransitionMatrix(form).fit(log, audit=audit),
            AuditError,
            f"has a true level of 2, which the form '{form}' needs: audit more rows, or take form='ordinal'",
        )


def test_an_audit_gives_the_matrix_where_none_is_given():
    world = vr.simulate.stars(60, 80, propensities=(0.2, 0.2, 0.3, 0.4, 0.5), random_state=1)
    audit = vr.AuditSample(*world.audit(400, random_state=0), levels=world.levels)
    f, options = np.full((60, 80), 2.5), {"propensities": world.propensities, "loss": "squared", "audit": audit}
    found = vr.estimate(f, world.log, **options)
    assert list(found) == ["naive", "ips", "dr", "ome-ips", "ome-dr", "audited-dr"]
    given = vr.AuditTransitionMatrix().fit(world.log, audit=audit)
    again = vr.estimate(f, world.log, noise_rates=given, **options)
    assert again["ome-dr"].value == found["ome-dr"].value
    assert found["ome-dr"].diagnostics["variance"]["noise_rates"] > 0
    truth = world.true_inaccuracy(f)
    assert abs(found["ome-dr"].value - truth) < 4 * found["ome-dr"].standard_error


BAD = {
    "an unknown form": (lambda log, audit: vr.AuditTransitionMatrix("toeplitz").fit(log, audit=audit), "form must be"),
    "no audit": (lambda log, audit: vr.AuditTransitionMatrix().fit(log, audit=None), "audit must be an AuditSample"),
    "a binary log": (
        lambda log, audit: vr.AuditTransitionMatrix().fit(log.binary(positive_from=3), audit=audit),
        "a binary log: AuditNoiseRates",
    ),
}


@pytest.mark.parametrize(("function", "message"), BAD.values(), ids=BAD)
def test_what_is_refused(function, message):
    log, audit = log_and_audit(counts_of(BAND))
    check_refusal(lambda: function(log, audit), ParameterError, message)
