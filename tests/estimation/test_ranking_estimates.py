"""Ranking estimates against loops over all cells, against the truth of simulated worlds, and what is refused."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import verirec as vr
from draws import largest_z
from plain_formulas import estimators as plain_estimators
from plain_formulas import ranking_estimates as plain
from refusals import check_refusal
from verirec.data.predictions import as_predictions
from verirec.estimation import places as places_module
from verirec.estimation.places import places
from verirec.exceptions import (
    EmptyLogError,
    LabelError,
    MisfitWarning,
    NoiseRateError,
    OverlapWarning,
    ParameterError,
    PredictionError,
    PropensityError,
)
from verirec.metrics import UserRankings, auc

RATES = vr.NoiseRates(0.2, 0.1)
SHAPE = (9, 14)
DEPTHS = (1, 3, 5, 14, 40)
ALL = ["auc", *(name for k in DEPTHS for name in plain.names(k))]

# The grids are small.
pytestmark = pytest.mark.filterwarnings("ignore:only .* logged pairs are among:verirec.exceptions.OverlapWarning")


def log_of(grid, **columns):
    return vr.FeedbackLog.from_arrays(**grid.rows(), **columns)


def with_ties(grid, levels):
    """Round the scores to so many levels."""
    return replace(grid, f=np.ceil(grid.f * levels) / levels)


def all_seen(grid):
    """Observe every cell, with its true label."""
    labels = {cell: int(grid.truth[cell]) for cell in grid.cells}
    return replace(grid, p=np.ones_like(grid.p), labels=labels)


def values(result):
    return {name: one.value for name, one in result.items()}


def unbounded(result):
    """Give the values before they were brought into their range."""
    return {name: one.diagnostics.get("outside", one.value) for name, one in result.items()}


@pytest.fixture(scope="module")
def grid():
    return plain_estimators.small_grid(0, SHAPE, rho01=0.2, rho10=0.1)


@pytest.fixture(scope="module")
def log(grid):
    return log_of(grid)


# Against loops over all cells


@pytest.mark.filterwarnings("ignore::verirec.exceptions.MisfitWarning")
@pytest.mark.parametrize("levels", [None, 4, 1], ids=["no ties", "ties", "all tied"])
@pytest.mark.parametrize("rates", [None, RATES, vr.NoiseRates(0.0, 0.3)], ids=str)
@pytest.mark.parametrize("seed", [0, 1])
def test_every_metric_is_its_loop_over_all_cells(seed, rates, levels):
    drawn = plain_estimators.small_grid(seed, SHAPE, rho01=0.2, rho10=0.1)
    drawn = drawn if levels is None else with_ties(drawn, levels)
    result = vr.estimate_ranking(drawn.f, log_of(drawn), propensities=drawn.p, noise_rates=rates, k=DEPTHS)
    given_rates = (0.0, 0.0) if rates is None else (rates.rho01, rates.rho10)
    expected = {name: plain.estimate(name, drawn, given_rates) for name in ALL}
    assert list(result) == ALL
    assert unbounded(result) == pytest.approx(expected, abs=1e-10)


def test_rates_may_differ_between_groups(grid, log):
    groups = np.arange(SHAPE[1]) % 2
    rates = vr.GroupedNoiseRates((RATES, vr.NoiseRates(0.05, 0.3)), item_groups=groups)
    result = vr.estimate_ranking(grid.f, log, propensities=grid.p, noise_rates=rates, k=DEPTHS)
    expected = {n: plain.estimate(n, grid, lambda cell: ((0.2, 0.1), (0.05, 0.3))[cell[1] % 2]) for n in ALL}
    assert values(result) == pytest.approx(expected, abs=1e-10)


def test_the_order_of_the_rows_does_not_matter(grid):
    shuffled = list(grid.labels.items())
    np.random.default_rng(0).shuffle(shuffled)
    other = replace(grid, labels={tuple(cell): label for cell, label in shuffled})
    one, two = (
        vr.estimate_ranking(grid.f, log_of(some), propensities=grid.p, noise_rates=RATES) for some in (grid, other)
    )
    assert values(one) == pytest.approx(values(two), abs=1e-12)
    assert [a.standard_error for a in one.values()] == pytest.approx([b.standard_error for b in two.values()])


def test_without_noise_rates_the_labels_are_taken_for_the_truth(grid, log):
    plainly = vr.estimate_ranking(grid.f, log, propensities=grid.p)
    at_zero = vr.estimate_ranking(grid.f, log, propensities=grid.p, noise_rates=vr.NoiseRates(0, 0))
    assert values(plainly) == pytest.approx(values(at_zero), abs=1e-12)


@pytest.mark.parametrize("levels", [None, 3])
def test_where_everything_is_seen_and_nothing_is_noisy_the_estimates_are_the_truth(grid, levels):
    seen = all_seen(grid if levels is None else with_ties(grid, levels))
    result = vr.estimate_ranking(seen.f, log_of(seen), propensities=seen.p, k=DEPTHS)
    assert values(result) == pytest.approx({name: plain.true_value(name, seen) for name in ALL}, abs=1e-10)
    users = np.repeat(np.arange(SHAPE[0]), SHAPE[1])
    rankings = UserRankings(users, seen.truth.ravel(), seen.f.ravel())
    assert result["auc"].value == pytest.approx(auc(seen.truth.ravel(), seen.f.ravel()), abs=1e-12)
    for k in DEPTHS:
        assert result[f"precision@{k}"].value == pytest.approx(rankings.precision(k), abs=1e-12)
    assert all(one.standard_error == pytest.approx(0, abs=1e-12) for one in result.values())


# Pairs that are left out


@pytest.mark.filterwarnings("ignore::verirec.exceptions.MisfitWarning")
@pytest.mark.parametrize("levels", [None, 4], ids=["no ties", "ties"])
def test_what_is_left_out_is_neither_ranked_nor_counted(grid, levels):
    drawn = grid if levels is None else with_ties(grid, levels)
    # One user has less than three items left, so that places stay empty.
    left_out = [cell for cell in drawn.cells if cell not in drawn.labels and (sum(cell) % 3 == 0 or cell[0] == 2)]
    f = drawn.f.copy()
    f[tuple(zip(*left_out, strict=True))] = -np.inf
    rest = SimpleNamespace(f=f, p=drawn.p, labels=drawn.labels, cells=[c for c in drawn.cells if c not in left_out])
    users, items = np.array(left_out).T
    found = vr.estimate_ranking(
        drawn.f, log_of(drawn), propensities=drawn.p, noise_rates=RATES, exclude=(users, items), k=DEPTHS
    )
    expected = {name: plain.estimate(name, rest, (0.2, 0.1)) for name in ALL}
    assert unbounded(found) == pytest.approx(expected, abs=1e-10)
    assert found["auc"].diagnostics["cells"] == len(rest.cells)


def test_rows_that_are_left_out_do_not_judge(grid, log):
    gone = np.arange(len(log)) % 4 == 0
    pairs, share = (log.users[gone], log.items[gone]), 1 - gone.mean()
    found = vr.estimate_ranking(grid.f, log, propensities=grid.p, exclude=pairs)
    without = vr.estimate_ranking(grid.f, log.select(~gone), propensities=share * grid.p, exclude=pairs)
    assert values(found) == pytest.approx(values(without), abs=1e-12)


# Only the order of scores counts


@pytest.mark.parametrize(
    "transform",
    [lambda s: 5 * s - 3, np.exp, lambda s: s**3, lambda s: np.log(s / (1 - s)), lambda s: s.astype(np.float32)],
    ids=["linear", "exp", "cube", "logit", "single"],
)
def test_transforms_that_keep_the_order_change_nothing(grid, log, transform):
    scores = np.round(grid.f, 2)
    options = {"propensities": grid.p, "noise_rates": RATES, "k": (2, 5)}
    one, two = (vr.estimate_ranking(some, log, **options) for some in (scores, transform(scores)))
    assert [(a.value, a.interval) for a in one.values()] == [(b.value, b.interval) for b in two.values()]


def test_scores_may_come_in_any_form_of_predictions(grid, log):
    everywhere = np.indices(SHAPE).reshape(2, -1)
    random = np.random.default_rng(0)
    factors = vr.Factors(random.normal(size=(SHAPE[0], 2)), random.normal(size=(SHAPE[1], 2)))
    dense = as_predictions(factors, *SHAPE).block(np.arange(SHAPE[0]), np.arange(SHAPE[1]))
    forms = [
        (grid.f, lambda users, items: grid.f[users, items]),
        (grid.f, (*everywhere, grid.f.ravel())),
        (dense, factors),
    ]
    for matrix, form in forms:
        one, two = (vr.estimate_ranking(some, log, propensities=grid.p) for some in (matrix, form))
        assert values(one) == pytest.approx(values(two), abs=1e-12)


# Places


def places_by_counting(scores, log, depth):
    above, tied = [], []
    for user, item in zip(log.users, log.items, strict=True):
        shared = plain.places(scores[user], item)
        inside = scores[user, item] >= np.sort(scores[user])[::-1][: min(depth, scores.shape[1])][-1]
        above.append(shared.start if inside else np.inf)
        tied.append(len(shared) if inside else 1)
    return above, tied


@given(
    st.integers(1, 6),
    st.integers(1, 7),
    st.integers(1, 9),
    st.integers(1, 4),
    st.sampled_from([1, 3, 8, 1 << 17]),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_places_are_counted_whatever_the_ties_and_the_blocks(n_users, n_items, depth, levels, block, by_function, seed):
    random = np.random.default_rng(seed)
    scores = random.integers(levels, size=(n_users, n_items)) / 4
    cells = random.permutation(n_users * n_items)[: random.integers(1, n_users * n_items + 1)]
    users, items = np.divmod(cells, n_items)
    log = vr.FeedbackLog.from_arrays(users, items, cells % 2, n_users=n_users, n_items=n_items)
    form = (lambda who, what: scores[who, what]) if by_function else scores
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(places_module, "BLOCK_CELLS", block)
        above, tied, *_ = places(as_predictions(form, n_users, n_items), log, depth)
    expected = places_by_counting(scores, log, depth)
    assert above.tolist() == expected[0]
    assert tied.tolist() == expected[1]


def test_without_ties_places_are_those_of_argsort():
    random = np.random.default_rng(3)
    scores = random.random((300, 1_000))
    cells = np.sort(random.choice(scores.size, 5_000, replace=False))
    users, items = np.divmod(cells, 1_000)
    log = vr.FeedbackLog.from_arrays(users, items, cells % 2, n_users=300, n_items=1_000)
    above, tied, scale, *_ = places(as_predictions(scores, 300, 1_000), log, 1_000)
    assert scale == 1
    assert (above == np.argsort(np.argsort(-scores, axis=1), axis=1)[log.users, log.items]).all()
    assert (tied == 1).all()


# Intervals


def moved(rates, by01=0.0, by10=0.0):
    return replace(rates, rho01=rates.rho01 + by01, rho10=rates.rho10 + by10)


def test_uncertain_rates_add_the_variance_of_their_gradient(grid, log):
    covariance = np.array([[4e-4, 1e-4], [1e-4, 9e-4]])
    uncertain = vr.NoiseRates(0.2, 0.1, covariance=tuple(map(tuple, covariance)))

    def at(rates):
        return vr.estimate_ranking(grid.f, log, propensities=grid.p, noise_rates=rates, k=(1, 5))

    known, result, step = at(RATES), at(uncertain), 1e-5
    sides = [(at(moved(RATES, *by)), at(moved(RATES, *-np.array(by)))) for by in ((step, 0.0), (0.0, step))]
    for name, one in result.items():
        gradient = np.array([(up[name].value - down[name].value) / (2 * step) for up, down in sides])
        added = one.diagnostics["variance"]["noise_rates"]
        assert added == pytest.approx(gradient @ covariance @ gradient, rel=5e-3)
        assert one.value == known[name].value
        assert one.standard_error**2 == pytest.approx(known[name].standard_error ** 2 + added, rel=1e-9)


def test_a_higher_confidence_widens_the_interval_around_the_same_value(grid, log):
    narrow, wide = (vr.estimate_ranking(grid.f, log, propensities=grid.p, confidence=level) for level in (0.8, 0.99))
    for name in narrow:
        assert narrow[name].value == wide[name].value
        assert wide[name].interval[0] < narrow[name].interval[0] < narrow[name].value
        assert (narrow[name].confidence, wide[name].confidence) == (0.8, 0.99)
        half = (wide[name].interval[1] - wide[name].interval[0]) / 2
        assert half == pytest.approx(2.5758293 * wide[name].standard_error, rel=1e-6)


@pytest.mark.filterwarnings("ignore:.* make up half of the variance:verirec.exceptions.OverlapWarning")
def test_the_diagnostics_say_what_the_estimates_rest_on(grid, log):
    floored = vr.GivenPropensity(grid.p, floor=0.5)
    result = vr.estimate_ranking(grid.f, log, propensities=floored)
    below = sum(grid.p[cell] < 0.5 for cell in grid.labels)
    for one in result.values():
        facts = one.diagnostics
        assert (facts["rows"], facts["cells"], facts["floored"]) == (len(log), SHAPE[0] * SHAPE[1], below)


def check_ranges(ranges, points):
    """Hold ranges against the estimates at all points of a region; shares are cut to 0 and 1."""
    for name, one in ranges.items():
        most = np.inf if name.startswith("dcg") else 1.0
        values = np.clip([point[name].value for point in points], 0, most)
        ends = np.clip([point[name].interval for point in points], 0, most)
        assert one.range == pytest.approx((values.min(), values.max()), abs=1e-9)
        assert one.interval == pytest.approx((ends[:, 0].min(), ends[:, 1].max()), abs=1e-9)


@pytest.mark.parametrize("region", [vr.NoiseRegion(0.3, 0.15), vr.NoiseRegion(0.0, 0.1)], ids=str)
def test_a_region_gives_the_range_over_all_its_rates(grid, log, region):
    options = {"propensities": grid.p, "k": iter([1, 5])}
    ranges = vr.estimate_ranking(grid.f, log, noise_rates=region, **options)
    options["k"] = [1, 5]
    assert all(isinstance(one, vr.EstimateRange) for one in ranges.values())
    points = [vr.estimate_ranking(grid.f, log, noise_rates=point, **options) for point in region.lattice]
    check_ranges(ranges, points)


def test_a_region_and_its_one_point_agree(grid, log):
    ranges = vr.estimate_ranking(grid.f, log, propensities=grid.p, noise_rates=vr.NoiseRegion(0, 0))
    points = vr.estimate_ranking(grid.f, log, propensities=grid.p)
    for name, one in ranges.items():
        assert one.range == pytest.approx((points[name].value,) * 2, abs=1e-12)
        assert one.interval == pytest.approx(points[name].interval, abs=1e-12)


# Against the truth of simulated worlds

WORLDS = 150
KNOWN = ("auc", "dcg@5", "ndcg@5", "precision@5", "recall@5", "recall@20")


def true_values(scores, truth):
    order = np.argsort(-scores, axis=1)
    liked = np.take_along_axis(truth, order, axis=1).astype(float)
    discounts = 1 / np.log2(np.arange(2, 7))
    dcg = float((liked[:, :5] @ discounts).mean())
    return {
        "auc": auc(truth.ravel(), scores.ravel()),
        "dcg@5": dcg,
        "ndcg@5": dcg / discounts.sum(),
        "precision@5": float(liked[:, :5].mean()),
        "recall@5": float(liked[:, :5].sum() / liked.sum()),
        "recall@20": float(liked[:, :20].sum() / liked.sum()),
    }


@cache
def simulated():
    """Give, by where the rates come from, estimates beside the truth: each (value, standard error, held, truth)."""
    found = {"known": [], "audit": []}
    for seed in range(WORLDS):
        world = vr.simulate.world(120, 100, observed=0.25, selectivity=1, noise_rates=RATES, random_state=seed)
        random = np.random.default_rng(seed)
        scores = world.preferences + 0.3 * random.normal(size=world.preferences.shape)
        truth = true_values(scores, world.true_labels)
        rows = random.choice(len(world.log), 500, replace=False)
        users, items = world.log.users[rows], world.log.items[rows]
        audit = vr.AuditSample(users, items, world.at(users, items).true_labels)
        rates = {"known": RATES, "audit": vr.AuditNoiseRates(method="direct").fit(world.log, audit=audit)}
        for source, some in rates.items():
            result = vr.estimate_ranking(
                scores, world.log, propensities=world.propensity_values, noise_rates=some, k=(5, 20)
            )
            found[source].append(
                {
                    name: (
                        result[name].value,
                        result[name].standard_error,
                        result[name].interval[0] <= truth[name] <= result[name].interval[1],
                        truth[name],
                    )
                    for name in KNOWN
                }
            )
    return found


@pytest.mark.parametrize("source", ["known", "audit"])
@pytest.mark.parametrize("name", KNOWN)
def test_on_average_the_estimates_are_the_truth(name, source):
    errors = np.array([one[name][0] - one[name][3] for one in simulated()[source]])
    z = errors.mean() / (errors.std(ddof=1) / np.sqrt(len(errors)))
    assert abs(z) < largest_z(2 * len(KNOWN))


@pytest.mark.parametrize("source", ["known", "audit"])
@pytest.mark.parametrize("name", KNOWN)
def test_intervals_hold_the_truth_as_often_as_they_say(name, source):
    held = np.mean([one[name][2] for one in simulated()[source]])
    reach = [largest_z(2 * len(KNOWN), 0.01) * np.sqrt(end * (1 - end) / WORLDS) for end in (0.93, 0.97)]
    assert 0.93 - reach[0] <= held <= 0.97 + reach[1]


@pytest.mark.parametrize("source", ["known", "audit"])
@pytest.mark.parametrize("name", KNOWN)
def test_the_standard_error_is_the_spread_of_the_errors(name, source):
    rows = [one[name] for one in simulated()[source]]
    spread = np.sqrt(np.mean([(value - truth) ** 2 for value, _, _, truth in rows]))
    reported = np.sqrt(np.mean([error**2 for _, error, _, _ in rows]))
    # The spread of 150 draws is itself within 5.8% (one standard error) of the truth.
    assert reported == pytest.approx(spread, rel=0.2)


def test_taking_labels_for_the_truth_or_the_log_for_the_world_is_wrong_on_average():
    off = {"noise": [], "selection": []}
    for seed in range(30):
        world = vr.simulate.world(120, 100, observed=0.25, selectivity=3, noise_rates=RATES, random_state=seed)
        truth = true_values(world.preferences, world.true_labels)["precision@5"]
        for case, p, rates in (
            ("noise", world.propensities, None),
            ("selection", np.ones_like(world.propensities), RATES),
        ):
            result = vr.estimate_ranking(world.preferences, world.log, propensities=p, noise_rates=rates)
            off[case].append(result["precision@5"].value - truth)
    for errors in off.values():
        assert abs(np.mean(errors) / (np.std(errors, ddof=1) / np.sqrt(30))) > 5


# Warnings


def test_propensities_that_cannot_be_right_are_told():
    users, items = np.divmod(np.arange(20 * 30), 30)
    log = vr.FeedbackLog.from_arrays(users, items, items < 5, n_users=20, n_items=30)
    with pytest.warns(MisfitWarning, match=r"^ndcg@5 is estimated at .*, outside of 0 and 1: the propensities") as told:
        result = vr.estimate_ranking(-items.reshape(20, 30), log, propensities=lambda u, i: np.where(i < 5, 0.2, 1.0))
    assert len(told) == 1
    assert told[0].filename == __file__
    assert result["ndcg@5"].value == result["ndcg@5"].interval[1] == 1
    assert result["ndcg@5"].diagnostics["outside"] > 2


@pytest.mark.filterwarnings("ignore::verirec.exceptions.MisfitWarning")
@given(st.integers(0, 2**32 - 1), st.sampled_from([None, RATES, vr.NoiseRates(0.0, 0.4)]), st.floats(0.5, 0.999))
def test_values_and_intervals_stay_within_the_range_of_their_metric(seed, rates, confidence):
    drawn = plain_estimators.small_grid(seed, SHAPE, rho01=0.2, rho10=0.1)
    try:
        result = vr.estimate_ranking(
            drawn.f, log_of(drawn), propensities=drawn.p, noise_rates=rates, k=DEPTHS, confidence=confidence
        )
    except (NoiseRateError, LabelError):
        return
    for name, one in result.items():
        metric, _, k = name.partition("@")
        most = sum(1 / np.log2(j + 2) for j in range(min(int(k), SHAPE[1]))) if metric == "dcg" else 1
        assert 0 <= one.interval[0] <= one.value <= one.interval[1] <= most + 1e-12


@pytest.mark.parametrize("count", [29, 30])
def test_few_logged_pairs_among_the_best_are_told(count):
    users, items = np.divmod(np.arange(30 * 20), 20)
    # Of each user the first item is best.
    kept = (items > 0) | (users < count)
    log = vr.FeedbackLog.from_arrays(users[kept], items[kept], (users + items)[kept] % 2, n_users=30, n_items=20)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        vr.estimate_ranking(-items.reshape(30, 20), log, propensities=np.ones((30, 20)), k=1)
    expected = "only 29 logged pairs are among their users' 1 best: what is said of these places rests on them, and "
    said = [str(one.message) for one in told if one.category is OverlapWarning]
    assert said == ([expected + "its intervals are not to be trusted"] if count == 29 else [])


def test_a_dcg_above_one_is_nothing_to_warn_of(grid):
    seen = all_seen(replace(grid, truth=np.maximum(grid.truth, (np.arange(SHAPE[1]) < 13).astype(int))))
    assert vr.estimate_ranking(seen.f, log_of(seen), propensities=seen.p)["dcg@5"].value > 1


# What is refused


def weighted(grid):
    return log_of(grid, weights=np.linspace(1, 2, len(grid.labels)))


def rank(grid, log=None, scores=None, **options):
    options = {"propensities": grid.p} | options
    return vr.estimate_ranking(grid.f if scores is None else scores, log or log_of(grid), **options)


REFUSED = [
    (lambda g: rank(g, log=weighted(g)), ParameterError, r"row weights, which ranking estimates cannot use"),
    (lambda g: rank(g, k=0), ParameterError, r"^k must be a whole number of at least 1; got 0$"),
    (lambda g: rank(g, k=-1), ParameterError, r"^k must be a whole number"),
    (lambda g: rank(g, k=2.0), ParameterError, r"^k must be a whole number .*got 2\.0$"),
    (lambda g: rank(g, k=True), ParameterError, r"^k must be a whole number"),
    (lambda g: rank(g, k=None), ParameterError, r"^k must be a whole number"),
    (lambda g: rank(g, k="5"), ParameterError, r"^k must be a whole number .*got '5'$"),
    (lambda g: rank(g, k=[5, 0]), ParameterError, r"^k must be a whole number"),
    (lambda g: rank(g, k=2**60), ParameterError, r"^k must be at most"),
    (lambda g: rank(g, confidence=1), ParameterError, r"^confidence must be .*below 1; got 1$"),
    (lambda g: rank(g, confidence=0.0), ParameterError, r"^confidence must be"),
    (lambda g: rank(g, confidence=95), ParameterError, r"^confidence must be"),
    (
        lambda g: rank(g, confidence=95, noise_rates=vr.NoiseRegion(0.1, 0.1)),
        ParameterError,
        r"^confidence must be",
    ),
    (lambda g: rank(g, scores=g.f[:, :-1]), PredictionError, r"must have shape \(9, 14\); got \(9, 13\)$"),
    (lambda g: rank(g, scores=g.f.T), PredictionError, r"must have shape \(9, 14\); got \(14, 9\)$"),
    (lambda g: rank(g, scores=np.where(g.f > 0.5, np.nan, g.f)), PredictionError, r"must be finite"),
    (lambda g: rank(g, scores=([0], [0], [0.5])), PredictionError, r"do not cover \d+ of the \d+ pairs"),
    (lambda g: rank(g, propensities=g.p[:-1]), PropensityError, r"log's grid of \(9, 14\); got \(8, 14\)$"),
    (lambda g: rank(g, propensities=0 * g.p), PropensityError, r"above 0 and at most 1"),
    (lambda g: rank(g, noise_rates=(0.2, 0.1)), ParameterError, r"^noise_rates must be .*got tuple$"),
    (
        lambda g: rank(g, noise_rates=vr.GroupedNoiseRates((RATES,), user_groups=np.zeros(3, int))),
        NoiseRateError,
        r"^user_groups must name the group of all 9 users; got 3$",
    ),
    (
        lambda g: rank(g, log=vr.FeedbackLog.from_arrays([0, 1], [0, 1], [1, 1], n_users=9, n_items=14)),
        LabelError,
        r"rows of both classes; all 2 are positive: of clicks alone",
    ),
    (
        lambda g: rank(g, log=vr.FeedbackLog.from_arrays([0], [0], [1], n_users=9, n_items=14)),
        EmptyLogError,
        r"at least 2 rows; the log has 1$",
    ),
    (lambda g: rank(g, k=[]), ParameterError, r"^k must name at least one depth; got none$"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_bad_input_is_refused_in_one_line(grid, call, error, message):
    check_refusal(lambda: call(grid), error, message)


def test_a_depth_may_be_an_array_of_no_dimension(grid):
    assert list(rank(grid, k=np.array(3))) == ["auc", *plain.names(3)]


def rank_one_user(labels, noise_rates):
    log = vr.FeedbackLog.from_arrays([0] * len(labels), range(len(labels)), labels, n_users=1, n_items=len(labels))
    scores, p = np.arange(len(labels))[None, :], np.ones((1, len(labels)))
    return vr.estimate_ranking(scores, log, propensities=p, noise_rates=noise_rates)


@pytest.mark.parametrize(
    ("labels", "rates", "share"),
    [
        ([0] * 9 + [1], (0.0, 0.1), r"\S+"),
        ([1] + [0] * 9, (0.0, 0.1), r"\S+"),
        ([1, 0, 1, 0], (0.0, 0.5), "0"),
        ([1, 0, 0, 0], (0.0, 0.5), r"-0\.5"),
        ([1, 0, 1, 0], (0.5, 0.0), "1"),
        ([1, 1, 1, 0], (0.5, 0.0), r"1\.5"),
    ],
    ids=["none", "a hair", "none of half", "fewer than none", "all of half", "more than all"],
)
def test_rates_that_leave_no_liked_or_no_disliked_pair_are_told(labels, rates, share):
    message = rf"^with these noise rates a share of {share} of all pairs would be liked: they do not fit this log$"
    check_refusal(lambda: rank_one_user(labels, vr.NoiseRates(*rates)), NoiseRateError, message)


def test_a_region_leaves_out_the_rates_that_leave_no_liked_pair():
    labels, region, points, refused = [1, 0, 0, 1, 0, 0, 0, 1], vr.NoiseRegion(0.0, 0.6), [], 0
    for rates in region.lattice:
        if rates.rho10 < 3 / 8:
            points.append(rank_one_user(labels, rates))
        else:
            refused += 1
            with pytest.raises(NoiseRateError):
                rank_one_user(labels, rates)
    assert (len(points), refused) == (4, 3)
    check_ranges(rank_one_user(labels, region), points)


@pytest.mark.filterwarnings("ignore:.* make up half of the variance:verirec.exceptions.OverlapWarning")
def test_a_region_of_which_no_rates_fit_is_told():
    log = vr.FeedbackLog.from_arrays([0, 0], [0, 1], [1, 0], n_users=1, n_items=2)
    options = {"propensities": np.array([[1.0, 1e-10]]), "noise_rates": vr.NoiseRegion(0.0, 0.0)}
    message = "^no noise rates of this region fit the log: nobody, or everybody, would like everything$"
    check_refusal(lambda: vr.estimate_ranking(np.array([[0.1, 0.2]]), log, **options), NoiseRateError, message)
