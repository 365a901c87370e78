"""Comparing two recommenders: the difference of their estimates, with an interval that knows what they share."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest

import verirec as vr
from draws import largest_z
from refusals import check_refusal
from verirec.exceptions import (
    LabelError,
    MisfitWarning,
    NoiseRateWarning,
    OverlapWarning,
    ParameterError,
    PredictionError,
    ScoreWarning,
)

RATES = vr.NoiseRates(0.2, 0.1)
UNCERTAIN = vr.NoiseRates(0.2, 0.1, covariance=((4e-4, 1e-5), (1e-5, 2e-4)))
ALL = tuple(
    f"{noise}{name}" for noise in ("", "ome-") for name in ("naive", "eib", "ips", "snips", "dr", "mrdr", "sdr", "tdr")
)
NAMES = tuple("ome" if name == "ome-naive" else name for name in ALL)
PROMISED = (0.93, 0.97)
WORLDS = 100
COVERED = ("ome-snips", "ome-dr")


@pytest.fixture(scope="module")
def world():
    return vr.simulate.world(60, 80, observed=0.2, selectivity=1, random_state=1)


@pytest.fixture(scope="module")
def pair(world):
    """A sharp recommender and a blunt one, not too far apart."""
    random = np.random.default_rng(0)
    return 0.1 + 0.8 * world.preferences, 0.3 + 0.3 * world.preferences + 0.2 * random.random(world.preferences.shape)


@pytest.fixture(scope="module")
def options(world):
    return {"propensities": world.propensities, "noise_rates": UNCERTAIN, "estimators": NAMES}


@pytest.mark.parametrize("loss", ["log", "squared"])
@pytest.mark.parametrize("imputation", ["constant", "model"])
@pytest.mark.parametrize("name", NAMES)
def test_the_value_is_the_difference_of_the_two_estimates(world, pair, options, name, imputation, loss):
    options = options | {"estimators": name, "imputation": imputation, "loss": loss}
    first, second = (vr.estimate(f, world.log, **options)[name].value for f in pair)
    assert vr.compare(*pair, world.log, **options)[name].value == pytest.approx(first - second, abs=1e-12)


@pytest.mark.parametrize("more", [{"imputation": "model"}, {"sample": 1_000}], ids=["model", "sample"])
def test_with_one_random_state_it_is_the_difference_of_the_two_estimates_too(world, pair, options, more):
    options = options | {"estimators": "ome-dr"} | more
    first, second = (vr.estimate(f, world.log, **options, random_state=0)["ome-dr"].value for f in pair)
    both = vr.compare(*pair, world.log, **options, random_state=0)["ome-dr"]
    assert both.value == pytest.approx(first - second, abs=1e-12)


def test_a_sample_of_the_unobserved_pairs_is_the_same_for_both(world, pair, options):
    exact, sampled = (
        vr.compare(*pair, world.log, **options | {"estimators": "ome-dr"}, sample=sample)["ome-dr"]
        for sample in (None, 1_000)
    )
    assert sampled.value != exact.value
    assert abs(sampled.value - exact.value) < 4 * np.sqrt(sampled.diagnostics["variance"]["sample"])
    same = vr.compare(pair[0], pair[0], world.log, **options | {"estimators": "ome-dr"}, sample=1_000)["ome-dr"]
    assert same.value == 0


OVER_GRID = ("ome-eib", "dr", "ome-dr", "ome-mrdr", "ome-tdr", "ome-sdr")
SAMPLES = 150


@cache
def sampled(kind):
    """Give the differences and their samples' parts of the error over seeds, which draw the sample and nothing else."""
    world = vr.simulate.world(60, 80, observed=0.2, selectivity=1, random_state=1)
    random = np.random.default_rng(5)
    first = 0.1 + 0.8 * world.preferences
    second = {
        "opposed": 1 - first,
        "nearly equal": np.clip(first + 0.004 * random.normal(size=first.shape), 0.05, 0.95),
        "apart": 0.3 + 0.3 * world.preferences + 0.2 * random.random(first.shape),
    }[kind]
    options = {"propensities": world.propensities, "noise_rates": UNCERTAIN, "estimators": OVER_GRID, "sample": 500}
    found = [vr.compare(first, second, world.log, random_state=seed, **options) for seed in range(SAMPLES)]
    alone = vr.estimate(first, world.log, random_state=0, **options)
    return {
        name: (
            np.array([one[name].value for one in found]),
            np.sqrt([one[name].diagnostics["variance"]["sample"] for one in found]),
            np.sqrt(alone[name].diagnostics["variance"]["sample"]),
        )
        for name in OVER_GRID
    }


@pytest.mark.parametrize("name", OVER_GRID)
@pytest.mark.parametrize("kind", ["opposed", "nearly equal", "apart"])
def test_the_samples_part_of_the_error_is_the_spread_over_samples(kind, name):
    """Both visit the same cells: what they share cancels, whether that is nearly all or makes it worse."""
    values, reported, _ = sampled(kind)[name]
    # The spread of 150 draws is known to 6%.
    assert reported.mean() == pytest.approx(values.std(ddof=1), rel=0.25)


def test_of_two_that_are_nearly_equal_next_to_nothing_is_left_of_the_samples_error():
    for name in ("dr", "ome-dr"):
        _, reported, alone = sampled("nearly equal")[name]
        assert reported.max() < 0.2 * alone


# Warnings


def warned(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return sorted({(one.category, str(one.message)) for one in caught}, key=str)


@pytest.mark.parametrize("factor", [0.5, 1.0, 1.5])
def test_propensities_that_do_not_fit_the_log_are_warned_of_as_estimate_does(world, pair, factor):
    given = {"propensities": np.clip(world.propensities * factor, 0, 1), "noise_rates": RATES}
    for names in ("ome-dr", ("naive", "snips"), "naive", ("naive", "ome")):
        told = warned(lambda names=names: vr.compare(*pair, world.log, estimators=names, **given))
        assert told == warned(lambda names=names: vr.estimate(pair[0], world.log, estimators=names, **given))
        misfit = factor != 1 and names in ("ome-dr", ("naive", "snips"))
        assert [category for category, _ in told] == [MisfitWarning] * misfit


def test_a_few_heavy_rows_are_warned_of_as_estimate_does():
    users, items = np.arange(40), np.arange(40)
    log = vr.FeedbackLog.from_arrays(users, items, users % 2, n_users=40, n_items=40)
    p = np.full((40, 40), 40 / 1_600)
    p[0, 0] = 0.0005
    with pytest.warns(OverlapWarning, match="the weighted rows are worth 3 equally weighted ones"):
        vr.compare(np.full((40, 40), 0.4), np.full((40, 40), 0.5), log, propensities=p)
    vr.compare(np.full((40, 40), 0.4), np.full((40, 40), 0.5), log, propensities=p, estimators="naive")


def test_rates_of_an_audit_that_ought_to_have_been_weighted_are_warned_of():
    world = vr.simulate.world(60, 80, observed=0.4, random_state=0)
    first, second = 0.1 + 0.7 * world.preferences, np.full(world.preferences.shape, 0.4)
    rows = np.random.default_rng(0).choice(len(world.log), 400, replace=False)
    users, items = world.log.users[rows], world.log.items[rows]
    audit = vr.AuditSample(users, items, world.at(users, items).true_labels)
    by_label = vr.NaiveBayesPropensity(unbiased=world.log.select(rows)).fit(world.log)
    weighted, unweighted = (
        vr.AuditNoiseRates(method="direct").fit(world.log, audit=audit, propensities=p) for p in (by_label, None)
    )
    with pytest.warns(NoiseRateWarning, match="^these propensities depend on the label, and the audit behind"):
        vr.compare(first, second, world.log, propensities=by_label, noise_rates=unweighted)
    for p, rates in ((by_label, weighted), (by_label, RATES), (world.propensities, unweighted)):
        vr.compare(first, second, world.log, propensities=p, noise_rates=rates)


@pytest.mark.parametrize("name", NAMES)
def test_turned_around_it_is_the_negative(world, pair, options, name):
    there = vr.compare(*pair, world.log, **options)[name]
    back = vr.compare(*pair[::-1], world.log, **options)[name]
    assert back.value == pytest.approx(-there.value, abs=1e-12)
    assert back.standard_error == pytest.approx(there.standard_error, rel=1e-9)
    assert back.interval == pytest.approx((-there.interval[1], -there.interval[0]), abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_a_recommender_is_as_good_as_itself_beyond_doubt(world, pair, options, name):
    one = vr.compare(pair[0], pair[0].copy(), world.log, **options)[name]
    assert (one.value, one.standard_error, one.interval) == (0, 0, (0, 0))


@pytest.mark.parametrize("name", ["naive", "snips", "dr", "ome-snips", "ome-dr"])
def test_the_error_is_smaller_than_that_of_two_logs_apart(world, pair, options, name):
    apart = [vr.estimate(f, world.log, **options)[name].standard_error for f in pair]
    assert vr.compare(*pair, world.log, **options)[name].standard_error < 0.9 * np.hypot(*apart)


def test_the_interval_is_that_of_the_difference_of_losses_where_the_log_is_a_sample(world, pair):
    one = vr.compare(*pair, world.log, estimators="naive", confidence=0.9)["naive"]
    log = world.log
    differences = []
    for user, item, label in zip(log.users, log.items, log.labels, strict=True):
        losses = [-np.log(f[user, item] if label else 1 - f[user, item]) for f in pair]
        differences.append(losses[0] - losses[1])
    error = np.std(differences) / np.sqrt(len(differences))
    assert one.value == pytest.approx(np.mean(differences))
    assert one.standard_error == pytest.approx(error, rel=2e-3)
    assert one.interval[1] - one.interval[0] == pytest.approx(2 * 1.6449 * one.standard_error, rel=1e-4)


@cache
def coverage():
    """Give how often the interval of a difference holds the true one: by (rates, propensities, estimator)."""
    hits = {}
    for seed in range(WORLDS):
        world = vr.simulate.world(100, 150, observed=0.2, selectivity=0, noise_rates=RATES, random_state=seed)
        random = np.random.default_rng(seed)
        first, second = 0.1 + 0.7 * world.preferences, 0.25 + 0.5 * random.random(world.preferences.shape)
        truth = world.true_inaccuracy(first) - world.true_inaccuracy(second)
        rows = random.choice(len(world.log), 300, replace=False)
        users, items = world.log.users[rows], world.log.items[rows]
        audit = vr.AuditSample(users, items, world.at(users, items).true_labels)
        rates = {"known": RATES, "audited": vr.AuditNoiseRates().fit(world.log, audit=audit)}
        propensities = {"true": world.propensities, "learnt": vr.LogisticPropensity().fit(world.log)}
        for by_rates, some_rates in rates.items():
            for by_p, p in propensities.items():
                found = vr.compare(first, second, world.log, propensities=p, noise_rates=some_rates, estimators=COVERED)
                for name in COVERED:
                    low, high = found[name].interval
                    hits.setdefault((by_rates, by_p, name), []).append(low <= truth <= high)
    return {case: float(np.mean(held)) for case, held in hits.items()}


CASES = [(rates, p, name) for rates in ("known", "audited") for p in ("true", "learnt") for name in COVERED]


@pytest.mark.filterwarnings("ignore::verirec.exceptions.NoiseRateWarning")
@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_intervals_hold_the_true_difference_as_often_as_they_say(case):
    reach = [largest_z(len(CASES), 0.01) * np.sqrt(end * (1 - end) / WORLDS) for end in PROMISED]
    assert PROMISED[0] - reach[0] <= coverage()[case] <= PROMISED[1] + reach[1]


@pytest.mark.parametrize("which", ["first", "second", "both", "neither"])
def test_a_clip_that_changes_many_predictions_is_warned_of_whichever_it_is(world, which):
    log, many = world.log, len(world.log) // 8
    f = {"first": np.full((60, 80), 0.4), "second": np.full((60, 80), 0.6)}
    for place, name in enumerate(f):
        if which in (name, "both"):
            f[name][log.users[: many + place], log.items[: many + place]] = 0.001
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        vr.compare(*f.values(), log, propensities=world.propensities, clip=0.01)
    said = [str(one.message) for one in caught if one.category is ScoreWarning]
    counts = {"first": [many], "second": [many + 1], "both": [many, many + 1], "neither": []}[which]
    start = "clip=0.01 changed the predictions of"
    assert said == [
        f"{start} {count:,} of {len(log):,} logged pairs: what is judged are the changed ones" for count in counts
    ]


# A region in place of rates


def test_a_region_gives_the_range_of_the_difference_over_it(world, pair):
    region = vr.NoiseRegion(0.3, 0.2)
    options = {"propensities": world.propensities, "estimators": ("naive", "ome-snips", "ome-dr")}
    found = vr.compare(*pair, world.log, noise_rates=region, **options)
    assert isinstance(found["naive"], vr.Estimate)
    inside = [
        vr.compare(*pair, world.log, noise_rates=vr.NoiseRates(a, b), **options)
        for a in np.linspace(0, 0.3, 5)
        for b in np.linspace(0, 0.2, 5)
    ]
    for name in ("ome-snips", "ome-dr"):
        values = [one[name].value for one in inside]
        assert found[name].range == pytest.approx((min(values), max(values)), abs=1e-12)
        assert found[name].interval[0] == pytest.approx(min(one[name].interval[0] for one in inside), abs=1e-9)
        assert found[name].interval[1] == pytest.approx(max(one[name].interval[1] for one in inside), abs=1e-9)


@pytest.mark.filterwarnings("ignore:.* make up half of the variance:verirec.exceptions.OverlapWarning")
def test_a_range_of_differences_may_lie_below_0(world, pair):
    """A loss is never negative, a difference of losses is."""
    found = vr.compare(*pair, world.log, noise_rates=vr.NoiseRegion(0.1, 0.05), estimators="ome-dr")["ome-dr"]
    assert found.interval[0] < found.range[0] < found.range[1] < 0


def test_the_same_generator_state_gives_the_same_figures(world, pair, options):
    options = options | {"estimators": "ome-dr", "imputation": "model", "sample": 500}
    one, again, other = (vr.compare(*pair, world.log, **options, random_state=seed)["ome-dr"] for seed in (3, 3, 4))
    assert one.value == again.value != other.value


def test_predictions_of_the_logged_pairs_are_enough_for_estimators_that_need_no_more(world, pair):
    log = world.log
    triples = [(log.users, log.items, f[log.users, log.items]) for f in pair]
    options = {"propensities": world.propensities, "noise_rates": RATES, "estimators": ("naive", "ome-snips")}
    one, whole = vr.compare(*triples, log, **options), vr.compare(*pair, log, **options)
    assert {name: of.to_dict() for name, of in one.items()} == {name: of.to_dict() for name, of in whole.items()}


def one_class(log):
    return vr.FeedbackLog.from_arrays(
        log.users, log.items, np.ones(len(log), int), n_users=log.n_users, n_items=log.n_items
    )


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"confidence": 1}, ParameterError, "confidence must be a finite number"),
        ({"confidence": 0}, ParameterError, "confidence must be a finite number"),
        ({"noise_rates": 0.2}, ParameterError, "noise_rates must be such as"),
        ({"noise_rates": None, "estimators": "ome-dr"}, ParameterError, "noise_rates must be given"),
        ({"estimators": "nope"}, ParameterError, "estimators must be among"),
        ({"imputation": "nope"}, ParameterError, "imputation must be one of"),
        ({"loss": "nope"}, ParameterError, "loss must be"),
        ({"sample": 1}, ParameterError, "sample must be a whole number"),
        ({"first": np.full((3, 4), 0.5)}, PredictionError, "shape"),
        ({"second": np.full((60, 80), np.nan)}, PredictionError, "finite"),
        ({"second": (np.array([0]), np.array([0]), np.array([0.5]))}, PredictionError, "need predictions for all"),
        ({"log": "log"}, ParameterError, "a FeedbackLog is needed; got str"),
        ({"log": "one class"}, LabelError, "both classes"),
    ],
)
def test_bad_input_is_told_in_one_line(world, pair, change, error, message):
    log = one_class(world.log) if change.get("log") == "one class" else change.get("log", world.log)
    given = {"first": pair[0], "second": pair[1], "noise_rates": RATES} | change | {"log": log}
    check_refusal(lambda: vr.compare(**given), error, message)
