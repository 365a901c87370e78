"""An audit's true labels in the estimate: right whatever the noise is."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from scipy.stats import binom

import verirec as vr
from plain_formulas import estimators as plain
from plain_formulas.inaccuracy import LOSSES
from refusals import check_refusal
from verirec.exceptions import AuditError, NoiseRateWarning, ParameterError

pytestmark = pytest.mark.filterwarnings(
    "ignore::verirec.exceptions.SmallAuditWarning",
    "ignore::verirec.exceptions.NoiseRateWarning",
    "ignore::verirec.exceptions.OverlapWarning",
)
RATES = vr.NoiseRates(0.2, 0.1)


def log_of(grid):
    return vr.FeedbackLog.from_arrays(**grid.rows())


def audit_of(grid, rows, probabilities=None):
    log = log_of(grid)
    users, items = log.users[rows], log.items[rows]
    return vr.AuditSample(users, items, grid.truth[users, items], probabilities)


def plain_audited_dr(grid, loss, rates, audited):
    """The formula of its docstring in loops; `audited` maps a cell to its probability."""
    ebar = plain.imputed_label("ome-dr", grid, loss, lambda cell: rates)
    total = plain.estimate("ome-dr", grid, loss, rates)
    stand = sum(1 / chance for chance in audited.values())
    share = len(grid.labels) / stand
    # A label also moves the imputed one, by its part of the weights: what that does to all cells is in the slope.
    weights = {cell: 1 / grid.p[cell] for cell in grid.labels}
    d = {cell: loss(grid.f[cell], 1) - loss(grid.f[cell], 0) for cell in grid.cells}
    by_imputed = sum(d.values()) - sum(weights[cell] * d[cell] for cell in grid.labels)
    for cell, chance in audited.items():
        off = grid.truth[cell] - (grid.labels[cell] - rates[1]) / (1 - sum(rates))
        slope = weights[cell] * d[cell] + by_imputed * weights[cell] / sum(weights.values())
        total += share / chance * slope * off / len(grid.cells)
    assert ebar is not None
    return total


@pytest.fixture(scope="module")
def grid():
    return plain.small_grid(0, rho01=0.2, rho10=0.1)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("chances", [None, "unequal"])
def test_it_is_its_plain_formula(grid, loss, chances):
    rows = np.arange(0, len(grid.labels), 3)
    given = None if chances is None else np.random.default_rng(1).uniform(0.2, 1, len(rows))
    audit = audit_of(grid, rows, given)
    cells = list(grid.labels)
    each = np.full(len(rows), len(rows) / len(cells)) if given is None else given
    expected = plain_audited_dr(
        grid, LOSSES[loss], (0.2, 0.1), dict(zip([cells[row] for row in rows], each, strict=True))
    )
    options = {"propensities": grid.p, "noise_rates": RATES, "loss": loss, "estimators": "audited-dr"}
    found = vr.estimate(grid.f, log_of(grid), audit=audit, **options)["audited-dr"]
    assert found.value == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("rates", [(0.2, 0.1), (0.0, 0.0), (0.45, 0.3)])
def test_over_all_audits_its_mean_is_what_true_labels_would_give_whatever_the_rates(rates):
    grid = plain.small_grid(4, (3, 4), (0.3, 0.9), 0.3, 0.2)
    log, known = log_of(grid), plain.Grid(grid.f, grid.p, grid.truth, {c: int(grid.truth[c]) for c in grid.labels})
    options = {"propensities": grid.p, "estimators": "audited-dr", "noise_rates": vr.NoiseRates(*rates)}
    values = [
        vr.estimate(grid.f, log, audit=audit_of(grid, np.array(rows)), **options)["audited-dr"].value
        for rows in combinations(range(len(log)), 3)
    ]
    assert np.mean(values) == pytest.approx(plain.estimate("dr", known, LOSSES["log"]), rel=1e-10)


def test_over_all_logs_too_its_mean_is_the_truth():
    grid = plain.small_grid(5, (2, 3), (0.4, 0.8))
    said = {
        cell: int(1 - grid.truth[cell]) if k % 3 == 0 else int(grid.truth[cell]) for k, cell in enumerate(grid.cells)
    }
    errors = np.full(grid.f.shape, 0.7)
    mean = total = 0.0
    for seen in product((False, True), repeat=6):
        logged = {cell: said[cell] for cell, here in zip(grid.cells, seen, strict=True) if here}
        if len(set(logged.values())) < 2:
            continue
        chance = np.prod([grid.p[c] if here else 1 - grid.p[c] for c, here in zip(grid.cells, seen, strict=True)])
        part = plain.Grid(grid.f, grid.p, grid.truth, logged)
        audits = list(combinations(range(len(logged)), 2))
        for rows in audits:
            found = vr.estimate(
                grid.f,
                log_of(part),
                propensities=grid.p,
                noise_rates=vr.NoiseRates(0.1, 0.1),
                audit=audit_of(part, np.array(rows)),
                imputation=errors,
                estimators="audited-dr",
            )["audited-dr"]
            # Logs of one class are refused: compare with what dr of the true labels has on the same ones.
            exact = plain.estimate(
                "dr",
                plain.Grid(grid.f, grid.p, grid.truth, {c: int(grid.truth[c]) for c in logged}),
                LOSSES["log"],
                imputed=lambda cell: 0.7,
            )
            mean += chance / len(audits) * (found.value - exact)
        total += chance
    assert total > 0.5
    assert mean == pytest.approx(0, abs=1e-12)


def test_an_audit_of_all_rows_is_dr_with_the_true_labels(grid):
    log = log_of(grid)
    clean = vr.FeedbackLog.from_arrays(
        log.users, log.items, grid.truth[log.users, log.items], n_users=log.n_users, n_items=log.n_items
    )
    audit = audit_of(grid, np.arange(len(log)))
    found = vr.estimate(grid.f, log, propensities=grid.p, audit=audit)
    expected = vr.estimate(grid.f, clean, propensities=grid.p)["dr"]
    assert found.headline == "audited-dr"
    assert list(found) == ["naive", "ips", "dr", "ome-ips", "ome-dr", "audited-dr"]
    assert found["audited-dr"].value == pytest.approx(expected.value, rel=1e-10)
    # The imputed label, too, moves with the labels, which the standard error follows to first order only.
    assert found["audited-dr"].standard_error == pytest.approx(expected.standard_error, rel=0.02)
    parts = found["audited-dr"].diagnostics["variance"]
    assert parts["audit"] == parts["noise"] == parts["noise_rates"] == 0
    ranked, exact = (
        vr.estimate_ranking(grid.f, one, propensities=grid.p, k=3, **more)
        for one, more in ((log, {"audit": audit}), (clean, {}))
    )
    for name in ranked:
        assert ranked[name].value == pytest.approx(exact[name].value, rel=1e-9), name


def test_a_difference_is_that_of_two_levels(grid):
    other = np.clip(grid.f + 0.2, 0, 0.95)
    options = {"propensities": grid.p, "audit": audit_of(grid, np.arange(0, len(grid.labels), 2))}
    one, two = (vr.estimate(f, log_of(grid), **options)["audited-dr"].value for f in (grid.f, other))
    found = vr.compare(grid.f, other, log_of(grid), **options)
    assert found.headline == "audited-dr"
    assert found["audited-dr"].value == pytest.approx(one - two, rel=1e-9)


@pytest.mark.parametrize("imputation", ["constant", "model"])
def test_a_bootstrap_over_users_gives_an_interval_around_it(grid, imputation):
    options = {"propensities": grid.p, "audit": audit_of(grid, np.arange(0, len(grid.labels), 2))}
    way = {"imputation": imputation, "estimators": "audited-dr"}
    plainly = vr.estimate(grid.f, log_of(grid), **way, **options)["audited-dr"]
    drawn = vr.estimate(grid.f, log_of(grid), **way, interval="bootstrap", draws=200, **options)["audited-dr"]
    assert drawn.value == plainly.value
    assert drawn.interval[0] < drawn.value < drawn.interval[1]
    assert 0.3 < drawn.standard_error / plainly.standard_error < 3


def test_an_audit_of_one_class_cannot_tell_rates_but_still_puts_the_estimate_right(grid):
    log = log_of(grid)
    rows = np.flatnonzero(grid.truth[log.users, log.items] == 1)[:10]
    audit = audit_of(grid, rows)
    found = vr.estimate(grid.f, log, propensities=grid.p, audit=audit)
    assert list(found) == ["naive", "ips", "dr", "audited-dr"]
    same = vr.estimate(grid.f, log, propensities=grid.p, audit=audit, noise_rates=vr.NoiseRates(0, 0))["audited-dr"]
    assert found["audited-dr"] == same
    for names in ("ome-dr", ("ome-ips", "audited-dr")):
        check_refusal(
            lambda names=names: vr.estimate(grid.f, log, propensities=grid.p, audit=audit, estimators=names),
            AuditError,
            "without a true negative cannot tell rho10",
        )
    assert "auc" in vr.estimate_ranking(grid.f, log, propensities=grid.p, audit=audit)


def test_with_a_region_of_rates_it_is_a_value_and_not_a_range(grid):
    audit = audit_of(grid, np.arange(0, len(grid.labels), 2))
    found = vr.estimate(
        grid.f, log_of(grid), propensities=grid.p, noise_rates=vr.NoiseRegion(0.2, 0.1), audit=audit, estimators="all"
    )
    plainly = vr.estimate(
        grid.f, log_of(grid), propensities=grid.p, noise_rates=vr.NoiseRates(0, 0), audit=audit, estimators="audited-dr"
    )
    assert found["audited-dr"] == plainly["audited-dr"]
    assert not hasattr(found["ome-dr"], "value")


def test_pairs_outside_of_the_log_are_left_out_with_a_warning(grid):
    log = log_of(grid)
    audit = audit_of(grid, np.arange(12))
    outside = next(cell for cell in grid.cells if cell not in grid.labels)
    more = vr.AuditSample(
        *([*old, new] for old, new in zip((audit.users, audit.items), outside, strict=True)), [*audit.true_labels, 1]
    )
    options = {"propensities": grid.p, "noise_rates": RATES, "estimators": "audited-dr"}
    with pytest.warns(NoiseRateWarning, match="1 of 13 audited pairs are not in the log"):
        found = vr.estimate(grid.f, log, audit=more, **options)
    assert found["audited-dr"] == vr.estimate(grid.f, log, audit=audit, **options)["audited-dr"]


@pytest.mark.parametrize(
    ("audit", "error", "message"),
    [
        (None, ParameterError, "^audit must be given for estimators that rest on one: audited-dr$"),
        (vr.NoiseRates(0.1, 0.1), ParameterError, "^audit must be an AuditSample; got NoiseRates$"),
    ],
)
def test_what_is_no_audit_is_refused(grid, audit, error, message):
    for call in (vr.estimate, lambda f, *rest, **more: vr.compare(f, f, *rest, **more)):
        check_refusal(
            lambda call=call: call(grid.f, log_of(grid), propensities=grid.p, audit=audit, estimators="audited-dr"),
            error,
            message,
        )


# How often its intervals hold, where people err near their threshold


def errors_near_the_threshold(seed, *, audits, shape=(100, 120)):
    """Give (covered by the level's interval, by the difference's, by that of ome-dr) for each of some audits."""
    random = np.random.default_rng(seed)
    utility = random.normal(size=(shape[0], 1)) * 0.4 + random.normal(size=shape[1]) * 0.6
    utility = utility + 0.5 * random.normal(size=(shape[0], 3)) @ random.normal(size=(3, shape[1]))
    p = np.clip(0.12 * np.exp(0.5 * utility + 0.3 * random.normal(size=shape)), 0.03, 0.9)
    one, two = 1 / (1 + np.exp(0.3 - 1.5 * utility)), np.full(shape, 0.4)
    found = []
    for _ in range(audits):
        felt = utility + random.normal(0, 0.5, shape)
        truth, said = felt > 0.3, felt + random.normal(0, 0.6, shape) > 0.5
        users, items = np.nonzero(random.random(shape) < p)
        log = vr.FeedbackLog.from_arrays(
            users, items, said[users, items].astype(int), n_users=shape[0], n_items=shape[1]
        )
        chance = np.where(log.labels == 1, 2.0, 1.0)
        chance *= 300 / chance.sum()
        rows = np.flatnonzero(random.random(len(log)) < chance)
        audit = vr.AuditSample(users[rows], items[rows], truth[users[rows], items[rows]].astype(int), chance[rows])
        options = {"propensities": p, "audit": audit, "estimators": ("ome-dr", "audited-dr")}
        level, difference = vr.estimate(one, log, **options), vr.compare(one, two, log, **options)
        losses = [float(-np.where(truth, np.log(f), np.log(1 - f)).mean()) for f in (one, two)]
        of = (
            (level["audited-dr"], losses[0]),
            (difference["audited-dr"], losses[0] - losses[1]),
            (level["ome-dr"], losses[0]),
        )
        found.append([one.interval[0] <= true <= one.interval[1] for one, true in of])
    return np.array(found).sum(axis=0)


@pytest.mark.parametrize("audits", [40, pytest.param(400, marks=pytest.mark.long)])
def test_its_intervals_hold_where_people_err_near_their_threshold(audits):
    level, difference, by_rates_alone = errors_near_the_threshold(0, audits=audits)
    low, high = binom.ppf([1e-3, 1 - 1e-3], audits, 0.95)
    assert low <= level <= high
    assert low <= difference <= high
    assert by_rates_alone < low
