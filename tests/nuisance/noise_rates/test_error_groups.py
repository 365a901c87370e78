"""Who errs by group: rates partially pooled, whether groups differ, and audits that cannot tell."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import betabinom, binomtest

import verirec as vr
from refusals import check_refusal
from verirec.exceptions import AuditError, NoiseRateError, ParameterError, SmallAuditWarning
from verirec.nuisance.noise_rates.error_groups import differ
from verirec.nuisance.noise_rates.partial_pooling import shrink


@pytest.fixture(scope="module")
def careless():
    return vr.simulate.world(120, 150, careless=0.4, observed=0.3, random_state=1)


def audit_of(world, size=800, seed=0, chances=None):
    log, random = world.log, np.random.default_rng([seed, 1])
    rows = random.choice(len(log), size, replace=False)
    if chances is not None:
        rows = np.flatnonzero(random.random(len(log)) < chances)
    pairs = log.users[rows], log.items[rows]
    return vr.AuditSample(*pairs, world.at(*pairs).true_labels, None if chances is None else chances[rows])


def graded_audit(world, size=600, seed=1):
    return vr.AuditSample(*world.audit(size, seed), levels=world.levels)


def test_shares_are_means_over_all_strengths_of_the_beta_binomial_model():
    wrong, sizes = np.array([2, 9, 3, 12, 1]), np.array([20, 30, 25, 40, 15])
    counts = np.stack([sizes - wrong, wrong], axis=-1)[:, None, :].astype(float)
    found = shrink(counts)
    share = (wrong.sum() + 0.5) / (sizes.sum() + 1)
    weights, means = [], []
    for s in np.geomspace(0.5, 1e5, 3_000):
        likely = sum(betabinom.logpmf(k, n, s * share, s * (1 - share)) for k, n in zip(wrong, sizes, strict=True))
        weights.append(np.exp(likely) * s / (sizes.mean() + s) ** 2)
        drawn = 2 / 4 * s / (sizes + s)
        rows = np.maximum(sizes * drawn / (1 - drawn), 1)
        means.append((wrong + rows * share) / (sizes + rows))
    expected = np.average(means, axis=0, weights=weights)
    assert found.shares[:, 0, 1] == pytest.approx(expected, abs=2e-3)


def test_groups_that_are_alike_are_shrunk_towards_each_other_and_others_left_apart():
    alike = shrink(np.array([[[90.0, 10.0]], [[17.0, 3.0]], [[46.0, 4.0]]] * 4))
    apart = shrink(np.array([[[99.0, 1.0]], [[50.0, 50.0]], [[10.0, 90.0]]] * 4))
    assert np.ptp(alike.shares[:, 0, 1]) < 0.5 * 0.07
    assert apart.shares[:3, 0, 1] == pytest.approx([0.01, 0.5, 0.9], abs=0.02)
    assert alike.own.max() < 0.6 < apart.own.min()


def test_two_groups_are_left_apart():
    shares = shrink(np.array([[[90.0, 10.0]], [[85.0, 15.0]]])).shares[:, 0, 1]
    assert shares == pytest.approx([0.1, 0.15], abs=0.002)


def test_a_group_without_rows_has_the_rates_of_all():
    found = shrink(np.array([[[8.0, 2.0]], [[0.0, 0.0]]]))
    assert found.shares[1, 0, 1] == pytest.approx(2.5 / 11)


def test_shuffling_has_its_size_in_small_groups():
    random, reached, runs = np.random.default_rng(0), 0, 400
    for seed in range(runs):
        group, truths = random.integers(12, size=40), random.integers(2, size=40)
        said = np.where(random.random(40) < 0.15, 1 - truths, truths)
        reached += differ(group, truths, said, np.ones(40), shuffles=99, seed=seed).p_value <= 0.1
    # A test is never too keen: three standard errors above a tenth.
    assert reached / runs <= 0.1 + 3 * np.sqrt(0.09 / runs)
    assert reached > 0


def test_the_statistic_is_pearsons():
    group, said = np.array([0, 0, 0, 1, 1, 1, 1]), np.array([0, 1, 1, 0, 0, 0, 1])
    expected = sum((n - e) ** 2 / e for n, e in ((1, 12 / 7), (2, 9 / 7), (3, 16 / 7), (1, 12 / 7)))
    assert differ(group, np.zeros(7, int), said, np.ones(7)).statistic == pytest.approx(expected)


def test_careless_users_are_found(careless):
    found = vr.AuditErrors(user_groups=careless.careless_users).fit(careless.log, audit=audit_of(careless))
    assert found.names == ("False", "True")
    assert found.test.p_value < 0.01
    low, high = found.interval(0.999)
    for group, (rho10, rho01) in enumerate(((0.1, 0.2), (0.3, 0.35))):
        assert low[group, 0] < rho10 < high[group, 0]
        assert low[group, 1] < rho01 < high[group, 1]
    assert isinstance(found.noise_rates, vr.GroupedNoiseRates)
    assert found.noise_rates.rates[1].rho01 == pytest.approx(found.wrong[1, 1])
    assert "groups differ" in repr(found)
    assert "who errs" in found._repr_html_().lower()


@pytest.mark.filterwarnings("ignore::verirec.exceptions.SmallAuditWarning")
def test_intervals_hold_groups_own_rates():
    inside = []
    for seed in range(25):
        world = vr.simulate.world(60, 80, careless=0.5, observed=0.3, random_state=seed)
        groups = np.where(world.careless_users, 8, 0) + np.arange(60) % 8
        found = vr.AuditErrors(user_groups=groups).fit(world.log, audit=audit_of(world, 400, seed))
        low, high = found.interval()
        careless = np.array([int(name) >= 8 for name in found.names])
        for truth, rates in ((0, (0.1, 0.3)), (1, (0.2, 0.35))):
            true = np.where(careless, rates[1], rates[0])
            inside.append((low[:, truth] <= true) & (true <= high[:, truth]))
    share = np.concatenate(inside).mean()
    assert share > 0.88, share


def test_pairs_audited_by_their_label_are_weighted(careless):
    chances = np.where(careless.log.labels == 1, 0.6, 0.15)
    found = vr.AuditErrors(user_groups=careless.careless_users).fit(
        careless.log, audit=audit_of(careless, chances=chances)
    )
    low, high = found.interval(0.999)
    assert (low[:, 0] < [0.1, 0.3]).all()
    assert (high[:, 0] > [0.1, 0.3]).all()
    assert (low[:, 1] < [0.2, 0.35]).all()
    assert (high[:, 1] > [0.2, 0.35]).all()


@pytest.mark.parametrize("strata_of", ["score", "propensity"])
def test_strata_are_groups_too(careless, strata_of):
    found = vr.AuditErrors(strata_of=strata_of, strata=4).fit(careless.log, audit=audit_of(careless))
    assert len(found.names) == 4
    assert found.names[0].startswith(strata_of)
    with pytest.raises(AuditError, match="users or items"):
        found.noise_rates  # noqa: B018 -- a property


def test_strata_of_one_score_are_one(careless):
    found = vr.AuditErrors(strata_of="score").fit(careless.log, audit=audit_of(careless), scores=np.zeros((120, 150)))
    assert found.names == ("score 0 to 0",)
    assert found.test.p_value == 1
    near = 1_000 + careless.preferences
    assert len(vr.AuditErrors(strata_of="score").fit(careless.log, audit=audit_of(careless), scores=near).names) == 5


def test_exact_intervals_are_those_of_each_groups_own_rows(careless):
    frame = vr.AuditErrors(user_groups=np.arange(120) % 3).fit(careless.log, audit=audit_of(careless, 60)).to_frame(0.9)
    for row in frame.itertuples():
        own = binomtest(round(row.wrong), round(row.audited)).proportion_ci(0.9, method="exact")
        assert (row.exact_low, row.exact_high) == pytest.approx((own.low, own.high), abs=1e-6)


@pytest.mark.filterwarnings("ignore::verirec.exceptions.SmallAuditWarning")
def test_an_exact_interval_holds_the_rate_of_a_group_unlike_all_others():
    held = []
    for seed in range(60):
        random = np.random.default_rng(seed)
        true, groups = (random.random((60, 60)) < 0.4).astype(int), np.arange(60) % 20
        said = np.where(random.random((60, 60)) < np.where(groups == 0, 0.4, 0.03)[:, None], 1 - true, true)
        users, items = np.nonzero(random.random((60, 60)) < 0.4)
        log = vr.FeedbackLog.from_arrays(users, items, said[users, items], n_users=60, n_items=60)
        rows = random.choice(len(log), 200, replace=False)
        audit = vr.AuditSample(users[rows], items[rows], true[users[rows], items[rows]])
        low, high = vr.AuditErrors(user_groups=groups).fit(log, audit=audit).exact_interval()
        held += [(low[0] <= 0.4) & (high[0] >= 0.4)]
    assert np.mean(held) >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / np.size(held))


def test_levels_have_a_matrix_a_group():
    world = vr.simulate.stars(80, 100, random_state=0)
    found = vr.AuditErrors(item_groups=np.arange(100) % 3).fit(world.log, audit=graded_audit(world))
    assert found.rates.shares.shape == (3, 5, 5)
    assert found.rates.shares.sum(axis=2) == pytest.approx(np.ones((3, 5)))
    assert len(found.to_frame()) == 15
    assert np.abs(found.rates.shares.mean(axis=0) - world.noise.matrix).max() < 0.15


def test_groups_that_say_nothing_have_no_rates_to_correct_by():
    world = vr.simulate.world(60, 80, bots=0.4, observed=0.3, random_state=1)
    found = vr.AuditErrors(user_groups=world.bot_users).fit(world.log, audit=audit_of(world, 400))
    with pytest.raises(NoiseRateError, match="must be below 1"):
        found.noise_rates  # noqa: B018 -- a property


def test_all_pairs_are_one_group_where_none_are_named(careless):
    found = vr.AuditErrors().fit(careless.log, audit=audit_of(careless))
    assert found.names == ("all",)
    assert found.test.p_value == 1


def test_the_same_audit_gives_the_same_bits(careless):
    audit = audit_of(careless)
    first, second = (vr.AuditErrors(strata_of="score").fit(careless.log, audit=audit) for _ in range(2))
    assert (first.wrong == second.wrong).all()
    assert first.test == second.test


def test_groups_without_audited_pairs_are_told(careless):
    groups = np.where(np.isin(np.arange(120), careless.log.users[:50]), "seen", "other")
    log = careless.log
    rows = np.flatnonzero(groups[log.users] == "other")[:300]
    pairs = log.users[rows], log.items[rows]
    audit = vr.AuditSample(*pairs, careless.at(*pairs).true_labels)
    with pytest.warns(SmallAuditWarning, match=r"1 of 2 groups have no audited pair \(seen\)"):
        vr.AuditErrors(user_groups=groups).fit(log, audit=audit)


BAD = {
    "two kinds of groups": ({"user_groups": np.zeros(120), "strata_of": "score"}, "one of user_groups"),
    "one group": ({"user_groups": np.zeros(120)}, "at least two groups; got 0.0 alone"),
    "not all named": ({"user_groups": np.array(["a", "b", None] * 40, object)}, "must be names or numbers"),
    "no names": ({"user_groups": [{}] * 120}, "must be names or numbers, one for each position; got dict"),
    "NaN": ({"user_groups": np.array([1.0, np.nan] * 60)}, "must have a group for each position; 60 of 120"),
    "no dates": ({"user_groups": np.array(["2024-01-01", "NaT"] * 60, "M8[D]")}, "60 of 120 have none"),
    "too few": ({"item_groups": np.arange(3)}, "must have 150 entries"),
    "a stratum": ({"strata_of": "age"}, "strata_of must be"),
    "no strata": ({"strata_of": "score", "strata": 1}, "strata must be"),
}


@pytest.mark.parametrize(("given", "said"), BAD.values(), ids=BAD)
def test_bad_groups(careless, given, said):
    check_refusal(lambda: vr.AuditErrors(**given).fit(careless.log, audit=audit_of(careless)), ParameterError, said)


def test_an_audit_that_misses_a_level_is_refused():
    world = vr.simulate.stars(60, 80, random_state=0)
    users, items, levels = world.audit(300, 0)
    audit = vr.AuditSample(users[levels < 5], items[levels < 5], levels[levels < 5], levels=world.levels)
    check_refusal(lambda: vr.AuditErrors(strata_of="score").fit(world.log, audit=audit), AuditError, "true label of 5")


def test_no_audit_is_refused(careless):
    check_refusal(lambda: vr.AuditErrors().fit(careless.log, audit=None), ParameterError, "must be an AuditSample")
    check_refusal(lambda: vr.AuditErrorCurve().fit(careless.log, audit=None), ParameterError, "must be an AuditSample")


@pytest.fixture(scope="module")
def featured(careless):
    log = careless.log
    features = pd.DataFrame(
        {
            "user": np.arange(120),
            "kind": np.where(careless.careless_users, "careless", "ordinary"),
            "age": np.linspace(18, 80, 120),
        }
    )
    frame = pd.DataFrame({"user": log.users, "item": log.items, "rating": log.labels})
    return vr.FeedbackLog.from_frame(frame, positive_from=1, user_features=features, all_items=np.arange(150))


def test_columns_of_features_are_groups(careless, featured):
    audit = audit_of(careless)
    by_kind = vr.who_errs(featured, audit=audit, by="kind")
    assert by_kind.names == ("careless", "ordinary")
    assert by_kind.test.p_value < 0.01
    assert len(vr.who_errs(featured, audit=audit, by="age").names) == 5
    assert isinstance(vr.who_errs(featured, audit=audit, by="score"), vr.ErrorCurve)
    check_refusal(lambda: vr.who_errs(featured, audit=audit, by="city"), ParameterError, "the log has kind, age")
    check_refusal(lambda: vr.who_errs(careless.log, audit=audit, by="city"), ParameterError, "no features with names")


def test_what_is_given_and_not_used_is_refused_and_seeds_are_used(careless, featured):
    audit = audit_of(careless, 200)
    for by in ("kind", "score"):
        check_refusal(
            lambda by=by: vr.who_errs(featured, audit=audit, by=by, propensities=np.full((120, 150), 0.5)),
            ParameterError,
            f"propensities are for by=\"propensity\"; got by='{by}'",
        )
    seeds = [vr.who_errs(featured, audit=audit, by="age", random_state=seed).test.p_value for seed in (0, 0, 1, 2, 3)]
    assert seeds[0] == seeds[1]
    assert len(set(seeds)) > 1
