"""Who errs as a control variate of audited-dr: right whatever it is, and the more precise the better it fits."""

from __future__ import annotations

import numpy as np
import pytest

import verirec as vr
from refusals import check_refusal
from verirec.exceptions import ParameterError

# That one pair of rates does not fit such worlds is what these are about.
pytestmark = pytest.mark.filterwarnings("ignore::verirec.exceptions.NoiseRateWarning")


def drawn(seed, *, unequal=False, **options):
    world = vr.simulate.world(60, 80, observed=0.25, random_state=seed, **options)
    rows = np.random.default_rng([seed, 1]).choice(len(world.log), 250, replace=False)
    chances = None
    if unequal:
        every = np.where(world.log.users % 4 == 0, 0.05, 0.5)
        rows = np.flatnonzero(np.random.default_rng([seed, 1]).random(len(world.log)) < every)
        chances = every[rows]
    pairs = world.log.users[rows], world.log.items[rows]
    return world, vr.AuditSample(*pairs, world.at(*pairs).true_labels, chances)


def audited(world, audit, errors, **more):
    predicted = 0.2 + 0.5 * world.preferences
    return vr.estimate(
        predicted, world.log, propensities=world.propensities, audit=audit, errors=errors, estimators="audited-dr",
        **more,
    )["audited-dr"]  # fmt: skip


def test_it_is_the_doubly_robust_estimate_put_right_by_the_audit():
    world, audit = drawn(0, bots=0.3)
    errors = vr.AuditErrors(user_groups=world.bot_users).fit(world.log, audit=audit)
    f, log = 0.2 + 0.5 * world.preferences, world.log
    found = audited(world, audit, errors, imputation=np.zeros(f.shape), loss="squared")
    q, p = errors.expected(log).values, world.propensities
    of_log = sum(
        ((1 - q[row]) * f[u, i] ** 2 + q[row] * (f[u, i] - 1) ** 2) / p[u, i]
        for row, (u, i) in enumerate(zip(log.users, log.items, strict=True))
    )
    rows, truths, _ = audit.rows_in(log)
    own = errors.leverage(log, rows)
    off = [
        (truth - q[row]) / (1 - h) * ((f[u, i] - 1) ** 2 - f[u, i] ** 2) / p[u, i]
        for row, truth, h, u, i in zip(rows, truths, own, log.users[rows], log.items[rows], strict=True)
    ]
    assert found.value == pytest.approx((of_log + len(log) * np.mean(off)) / log.n_cells, rel=1e-9)


@pytest.mark.filterwarnings("ignore:shares of wrong labels along:verirec.exceptions.MisfitWarning")
def test_it_holds_and_gains_where_groups_differ():
    found = {"alone": [], "groups": [], "curve": []}
    for seed in range(60):
        world, audit = drawn(seed, bots=0.4)
        truth = world.true_inaccuracy(0.2 + 0.5 * world.preferences)
        ways = {
            "alone": None,
            "groups": vr.AuditErrors(user_groups=world.bot_users).fit(world.log, audit=audit),
            "curve": vr.AuditErrorCurve().fit(world.log, audit=audit),
        }
        for name, errors in ways.items():
            one = audited(world, audit, errors)
            found[name].append((one.value - truth, one.standard_error, one.interval[0] <= truth <= one.interval[1]))
    off, error, covered = (
        {name: np.array([row[place] for row in rows]) for name, rows in found.items()} for place in range(3)
    )
    for name in found:
        assert abs(off[name].mean()) < 3.5 * off[name].std() / np.sqrt(60), name
        assert covered[name].mean() >= 0.85, name
    assert error["groups"].mean() < 0.8 * error["alone"].mean()
    assert off["groups"].std() < 0.85 * off["alone"].std()
    assert error["curve"].mean() < error["alone"].mean()


@pytest.mark.parametrize("unequal", [False, True])
@pytest.mark.parametrize("way", ["groups", "curve"])
def test_a_row_without_itself_is_expected_as_the_leverage_says(way, unequal):
    world, audit = drawn(5, unequal=unequal, bots=0.3)
    how = vr.AuditErrors(user_groups=world.bot_users) if way == "groups" else vr.AuditErrorCurve()
    rows, truths, chances = audit.rows_in(world.log)
    whole = how.fit(world.log, audit=audit)
    expected, own = whole.expected(world.log).values[rows], whole.leverage(world.log, rows)
    # Those of the least chances weigh the most.
    for place in np.argsort(chances, kind="stable")[:: len(rows) // 10]:
        at = rows[place]
        pair = world.log.users[at] == audit.users, world.log.items[at] == audit.items
        rest = np.flatnonzero(~(pair[0] & pair[1]))
        without = how.fit(world.log, audit=audit.select(rest))
        off = truths[place] - without.expected(world.log).values[at]
        assert (truths[place] - expected[place]) / (1 - own[place]) == pytest.approx(off, rel=0.03)


def test_levels_gain_too():
    world = vr.simulate.stars(60, 80, random_state=0, propensities=(0.3, 0.3, 0.3, 0.4, 0.5))
    audit = vr.AuditSample(*world.audit(300, 0), levels=world.levels)
    errors = vr.who_errs(world.log, audit=audit, by="score")
    f = 0.5 + 0.7 * world.true_values + np.random.default_rng(0).normal(0, 0.5, world.places.shape)
    given = {"propensities": world.propensities, "audit": audit, "loss": "absolute", "estimators": "audited-dr"}
    alone, helped = (vr.estimate(f, world.log, errors=one, **given)["audited-dr"] for one in (None, errors))
    truth = world.true_inaccuracy(f, "absolute")
    assert abs(helped.value - truth) < 4 * helped.standard_error
    assert helped.standard_error < alone.standard_error


def test_two_levels_are_as_binary_labels():
    world, audit = drawn(1, bots=0.3)
    log = world.log
    graded = vr.FeedbackLog.from_arrays(
        log.users, log.items, log.labels, n_users=log.n_users, n_items=log.n_items, levels=[0, 1]
    )
    same = vr.AuditSample(audit.users, audit.items, audit.true_labels, levels=[0, 1])
    f = 0.2 + 0.5 * world.preferences
    values = [
        vr.estimate(
            f, one, propensities=world.propensities, audit=asked, loss="squared", estimators="audited-dr",
            errors=vr.AuditErrors(user_groups=world.bot_users).fit(one, audit=asked),
        )["audited-dr"]
        for one, asked in ((log, audit), (graded, same))
    ]  # fmt: skip
    assert values[0].value == pytest.approx(values[1].value, abs=1e-10)
    assert values[0].standard_error == pytest.approx(values[1].standard_error, abs=1e-10)


def test_a_difference_has_it_too():
    world, audit = drawn(2, bots=0.3)
    errors = vr.AuditErrors(user_groups=world.bot_users).fit(world.log, audit=audit)
    first, second = 0.2 + 0.5 * world.preferences, np.full(world.preferences.shape, 0.4)
    given = {"propensities": world.propensities, "audit": audit, "errors": errors, "estimators": "audited-dr"}
    apart = [vr.estimate(one, world.log, **given)["audited-dr"].value for one in (first, second)]
    found = vr.compare(first, second, world.log, **given)["audited-dr"]
    assert found.value == pytest.approx(apart[0] - apart[1], abs=1e-9)


def test_pairs_that_are_left_out_keep_who_errs():
    world, audit = drawn(3, bots=0.3)
    errors = vr.AuditErrors(user_groups=world.bot_users).fit(world.log, audit=audit)
    some = (world.log.users[:20], world.log.items[:20])
    helped, alone = (audited(world, audit, one, exclude=some) for one in (errors, None))
    assert helped.standard_error < alone.standard_error


def test_what_is_refused():
    world, audit = drawn(4)
    errors = vr.AuditErrors().fit(world.log, audit=audit)
    f = 0.2 + 0.5 * world.preferences
    check_refusal(lambda: vr.estimate(f, world.log, errors=errors), ParameterError, "give the audit too")
    check_refusal(
        lambda: vr.estimate(f, world.log, audit=audit, errors="score"), ParameterError, "AuditErrors or AuditErrorCurve"
    )
    other = vr.simulate.world(30, 40, observed=0.3, random_state=0)
    check_refusal(lambda: vr.estimate(f[:30, :40], other.log, audit=audit, errors=errors), ParameterError, "this log")


@pytest.mark.parametrize("how", [vr.AuditErrors(), vr.AuditErrorCurve()], ids=["groups", "curve"])
def test_errors_of_another_audit_are_refused(how):
    world, audit = drawn(6)
    half, other = audit.select(np.arange(150)), audit.select(np.arange(100, 250))
    turned = vr.AuditSample(audit.users, audit.items, 1 - audit.true_labels)
    f = 0.2 + 0.5 * world.preferences
    for given, said in ((other, "100 of its 150 pairs were not in theirs"), (turned, "250 of its 250 pairs")):
        errors = how.fit(world.log, audit=given)
        audit_of = half if given is other else audit
        for call in (vr.estimate, lambda f, log, **more: vr.assess(log, {"mine": f}, **more)):
            check_refusal(
                lambda call=call, errors=errors, audit_of=audit_of: call(f, world.log, audit=audit_of, errors=errors),
                ParameterError,
                said,
            )
    audited(world, half, how.fit(world.log, audit=audit))
