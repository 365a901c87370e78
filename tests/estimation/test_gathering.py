"""Pairs that are left out: by loops, and what they were left out for, held-out rows beside a recommender's own."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pytest
from scipy.special import expit

import verirec as vr
from draws import largest_z
from held import held
from refusals import check_refusal
from verirec import scratch
from verirec.data.cells import cell_keys
from verirec.estimation.gathering import logged_pairs, spoken_of
from verirec.exceptions import AuditError, EmptyLogError, ParameterError, SurveyError

SHAPE = (40, 50)
NAMES = ("naive", "eib", "ips", "snips", "dr", "tdr")


@pytest.fixture(scope="module")
def world():
    return vr.simulate.world(*SHAPE, observed=0.3, random_state=0)


@pytest.fixture(scope="module")
def parts(world):
    return vr.split(world.log, 0.3, by="random", random_state=0)


@pytest.fixture(scope="module")
def f(world):
    return 0.2 + 0.6 * world.preferences


def by_loops(f, log, p, left_out):
    """The estimates of the log loss over the pairs that are not left out, one label imputed for all."""
    rows = {(int(u), int(i)): int(r) for u, i, r in zip(log.users, log.items, log.labels, strict=True)}
    rows = {pair: r for pair, r in rows.items() if pair not in left_out}
    target = [pair for pair in product(range(SHAPE[0]), range(SHAPE[1])) if pair not in left_out]
    weights = {pair: 1 / p[pair] for pair in target}
    share = sum(weights[pair] * r for pair, r in rows.items()) / sum(weights[pair] for pair in rows)

    def loss(pair, r):
        return -r * np.log(f[pair]) - (1 - r) * np.log(1 - f[pair])

    e = {pair: loss(pair, r) for pair, r in rows.items()}
    imputed = {pair: loss(pair, share) for pair in target}
    squares = sum((weights[pair] - 1) ** 2 for pair in rows)
    epsilon = sum((weights[pair] - 1) * (e[pair] - imputed[pair]) for pair in rows) / squares
    targeted = {pair: imputed[pair] + epsilon * (weights[pair] - 1) for pair in target}
    weighted, size = sum(weights[pair] * e[pair] for pair in rows), len(target)

    def doubly_robust(imputed):
        return (sum(imputed.values()) + sum(weights[pair] * (e[pair] - imputed[pair]) for pair in rows)) / size

    return {
        "naive": sum(e.values()) / len(e),
        "eib": (sum(e.values()) + sum(value for pair, value in imputed.items() if pair not in rows)) / size,
        "ips": weighted / size,
        "snips": weighted / sum(weights[pair] for pair in rows),
        "dr": doubly_robust(imputed),
        "tdr": doubly_robust(targeted),
    }


def pairs_of(log):
    return set(zip(log.users.tolist(), log.items.tolist(), strict=True))


@pytest.mark.parametrize("form", ["training log", "pairs", "part of the log"])
def test_what_is_left_by_loops(world, parts, f, form):
    train, held_out = parts
    p = np.asarray(world.propensities)
    if form == "training log":
        log, exclude, given = held_out, train, 0.3 * p
        k = len(train) / len(held_out)
        used = given / (1 - k * given)
    elif form == "pairs":
        log, exclude, given = held_out, (train.users, train.items), 0.3 * p
        used = given
    else:
        log, exclude, given = world.log, train, p
        share = len(held_out) / len(world.log)
        used = share * p / (1 - (1 - share) * p)
    wanted = by_loops(f, log, used, pairs_of(train))
    found = vr.estimate(f, log, propensities=given, exclude=exclude, estimators=NAMES)
    for name in NAMES:
        assert found[name].value == pytest.approx(wanted[name], rel=1e-9)
    cells = found["dr"].diagnostics["cells"]
    assert cells == SHAPE[0] * SHAPE[1] - len(train)
    both = vr.compare(f, 1 - f, log, propensities=given, exclude=exclude, estimators="dr")["dr"]
    other = vr.estimate(1 - f, log, propensities=given, exclude=exclude, estimators="dr")["dr"]
    assert both.value == pytest.approx(found["dr"].value - other.value)


def test_given_errors_a_model_and_a_sample_leave_them_out_too(world, parts, f):
    train, held_out = parts
    given = {"propensities": 0.3 * world.propensities, "exclude": train, "estimators": "dr"}
    loss = -world.true_labels * np.log(f) - (1 - world.true_labels) * np.log(1 - f)
    left = np.ones(SHAPE, bool)
    left[train.users, train.items] = False
    # Imputed errors that are right leave nothing to correct: what is left is their mean over the pairs spoken of.
    exact = vr.FeedbackLog.from_arrays(
        held_out.users, held_out.items, world.true_labels[held_out.users, held_out.items], n_users=40, n_items=50
    )
    found = vr.estimate(f, exact, imputation=loss, **given)["dr"]
    assert found.value == pytest.approx(loss[left].mean())
    whole = vr.estimate(f, held_out, **given)["dr"]
    sampled = vr.estimate(f, held_out, sample=1_000, **given)["dr"]
    assert 0 < abs(sampled.value - whole.value) < 4 * np.sqrt(sampled.diagnostics["variance"]["sample"])
    assert vr.estimate(f, held_out, imputation="model", **given)["dr"].value == pytest.approx(whole.value, abs=0.05)
    spread = vr.estimate(f, held_out, interval="bootstrap", draws=200, **given)["dr"]
    assert spread.standard_error == pytest.approx(whole.standard_error, rel=0.4)


def test_long_arrays_on_disk_change_no_bit(world, parts, f, limited, monkeypatch):
    train, held_out = parts
    rows = np.arange(0, len(world.log), 7)
    audit = vr.AuditSample(world.log.users[rows], world.log.items[rows], world.log.labels[rows])
    survey = vr.SurveySample(*np.divmod(np.arange(0, 2_000, 9), SHAPE[1]), world.true_labels.ravel()[::9])
    given = {"exclude": [train, (held_out.users[::5], held_out.items[::5])], "sample": 500}

    def found():
        by_log = vr.estimate(f, world.log, noise_rates=vr.NoiseRates(0.2, 0.1), audit=audit, **given)
        return [by_log, vr.compare(f, 1 - f, world.log, survey=survey, **given)]

    on_disk = found()
    monkeypatch.setattr(scratch._KEEPER, "memory", None)
    assert on_disk == found()


def test_nothing_of_the_length_of_log_or_pairs_is_held(limited):
    """They are left out part by part: 30 bytes a row it took otherwise."""
    random = np.random.default_rng(0)
    log, exclude = (
        vr.FeedbackLog.from_arrays(*np.divmod(keys, 3_000), keys % 2, n_users=2_000, n_items=3_000)
        for keys in (np.flatnonzero(random.random(6_000_000) < share) for share in (0.5, 0.3))
    )
    pairs = logged_pairs(log, vr.ConstantPropensity(), None)
    spoken_of(pairs, exclude.select(np.arange(9)))  # Threads and imports take room too.
    found = []
    assert held(lambda: found.append(spoken_of(pairs, exclude))) < 20e6 < 8 * len(log)
    left = np.setdiff1d(cell_keys(log.users, log.items, 3_000), cell_keys(exclude.users, exclude.items, 3_000))
    assert np.array_equal(cell_keys(found[0].log.users, found[0].log.items, 3_000), left)


def test_nothing_left_out_changes_nothing(world, f):
    empty = np.empty(0, int)
    one, two = (
        vr.estimate(f, world.log, propensities=world.propensities, exclude=exclude)
        for exclude in (None, (empty, empty))
    )
    for name in one:
        assert one[name].interval == two[name].interval


def test_what_cannot_be_left_out(world, f):
    log, rows = world.log, np.arange(30)
    everything = tuple(side.ravel() for side in np.indices(SHAPE))
    check_refusal(lambda: vr.estimate(f, log, exclude=everything), SurveyError, "exclude leaves no pair")
    check_refusal(lambda: vr.estimate(f, log, exclude=log), EmptyLogError, "at least 2 rows; the log has 0")
    check_refusal(lambda: vr.estimate(f, log, exclude="train.csv"), ParameterError, "a FeedbackLog or")
    audit = vr.AuditSample(log.users[rows], log.items[rows], world.true_labels[log.users[rows], log.items[rows]])
    exclude = log.users[rows], log.items[rows]
    check_refusal(
        lambda: vr.estimate(f, log, audit=audit, noise_rates=vr.NoiseRates(0.2, 0.1), exclude=exclude),
        AuditError,
        "all 30 audited pairs are among those that are left out",
    )


@pytest.mark.parametrize("judge", ["estimate", "compare"])
def test_beside_a_survey_a_log_that_was_all_trained_on_is_not_judged_by(world, f, judge):
    cells = np.random.default_rng(0).choice(40 * 50, 200, replace=False)
    survey = vr.SurveySample(cells // 50, cells % 50, world.true_labels.ravel()[cells])
    ask, given = getattr(vr, judge), [f] * (2 if judge == "compare" else 1)
    found = ask(*given, world.log, survey=survey, exclude=world.log)
    assert list(found) == ["survey", "survey-ppi"]
    named = {"survey": survey, "exclude": world.log, "estimators": ("dr", "survey")}
    check_refusal(lambda: ask(*given, world.log, **named), EmptyLogError, "the log has 0")


def test_an_audit_goes_with_its_rows(world, parts, f):
    log = world.log
    rows = np.random.default_rng(0).choice(len(log), 200, replace=False)
    labels = world.true_labels[log.users, log.items]
    audit = vr.AuditSample(log.users[rows], log.items[rows], labels[rows])
    given = {"propensities": world.propensity_values, "exclude": parts[0], "estimators": ("dr", "audited-dr")}
    found = vr.estimate(f, log, audit=audit, noise_rates=vr.NoiseRates(0.2, 0.1), **given)
    left = np.ones(SHAPE, bool)
    left[parts[0].users, parts[0].items] = False
    truth = (-world.true_labels * np.log(f) - (1 - world.true_labels) * np.log(1 - f))[left].mean()
    assert abs(found["audited-dr"].value - truth) < 4 * found["audited-dr"].standard_error


def learnt(log, strength=2.0, factors=10):
    """A recommender that knows its own rows by heart, and the constants it starts from."""
    from verirec.nuisance.label_model import LabelModel

    constants = LabelModel(penalty=5).fit(log, np.ones(len(log)))
    z = constants.cell_logits(np.arange(log.n_users)[:, None], np.arange(log.n_items)[None])
    rest = np.zeros(log.shape)
    rest[log.users, log.items] = log.labels - expit(z[log.users, log.items])
    left, values, right = np.linalg.svd(rest, full_matrices=False)
    learned = z + strength * (left[:, :factors] * values[:factors]) @ right[:factors]
    return tuple(np.clip(expit(logits), 1e-3, 1 - 1e-3) for logits in (learned, z))


def test_held_out_rows_stand_for_the_pairs_that_were_not_trained_on():
    """What `compare` was off by on dense blocks: imputed errors of pairs that the recommender knows by heart."""
    covered = {"all pairs": [], "the others": []}
    for seed in range(60):
        made = vr.simulate.world(
            150, 200, observed=0.12, selectivity=0, noise_rates=vr.NoiseRates(0, 0), random_state=seed
        )
        train, held_out = vr.split(made.log, 0.2, by="random", random_state=seed)
        one, two = learnt(train)
        labels = made.true_labels
        gain = np.where(labels == 1, np.log(two / one), np.log((1 - two) / (1 - one)))
        left = np.ones(labels.shape, bool)
        left[train.users, train.items] = False
        p = vr.LogisticPropensity().fit(made.log).thinned(0.2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name, exclude in (("all pairs", None), ("the others", train)):
                low, high = vr.compare(one, two, held_out, propensities=p, exclude=exclude, estimators="dr")[
                    "dr"
                ].interval
                covered[name].append(low <= gain[left].mean() <= high)
    room = largest_z(1) * np.sqrt(0.93 * 0.07 / 60)
    assert np.mean(covered["the others"]) > 0.93 - room
    assert np.mean(covered["all pairs"]) < np.mean(covered["the others"])
