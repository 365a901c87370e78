"""Plans of labels: they keep their word, cost no more than a random choice, and their probabilities are right."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, ndtri

import verirec as vr
from refusals import check_refusal
from verirec.data.top_lists import TopLists
from verirec.estimation.planning.likes import SHIFTS, expect_likes
from verirec.estimation.planning.questions import PLANNED_ON, pose
from verirec.estimation.planning.random_pairs import design_random
from verirec.estimation.survey.target import Target
from verirec.exceptions import (
    EmptyLogError,
    LabelError,
    ParameterError,
    PredictionError,
    ScoreWarning,
    SurveyError,
    UnreachableError,
)
from verirec.nuisance.label_model import LabelModel
from verirec.nuisance.noise_rates.design import design_audit

RATES = vr.NoiseRates(0.2, 0.1)
FLAT = np.full((120, 150), 0.4)
REACH = ndtri(0.975)


@pytest.fixture(scope="module")
def world():
    return vr.simulate.world(120, 150, observed=0.15, noise_rates=RATES, selectivity=2, random_state=0)


@pytest.fixture(scope="module")
def given(world):
    """Three recommenders: one knows tastes, one exaggerates them, one knows only that few things are liked."""
    wave = 0.35 + 0.25 * np.sin(np.arange(120 * 150)).reshape(120, 150)
    return {"sharp": 0.15 + 0.7 * world.preferences, "wave": wave, "flat": np.full((120, 150), 0.3)}


@pytest.fixture(scope="module")
def pilot(world):
    random = np.random.default_rng(9)
    cells = random.choice(120 * 150, 200, replace=False)
    users, items = np.divmod(cells, 150)
    return vr.SurveySample(users, items, world.true_labels[users, items])


def slopes(predictions):
    """l(f, 1) - l(f, 0) of the log loss."""
    return -np.log(predictions) + np.log(1 - predictions)


def likes(log, shift):
    users, items = np.indices(log.shape)
    h = LabelModel().fit(log, np.ones(len(log)))
    return expit(h.level + h.users[users] + h.items[items] + shift)


# The formula


@pytest.mark.parametrize(("purpose", "numbers"), [("level", 3), ("difference", 3)])
def test_what_is_expected_is_the_formula(world, given, purpose, numbers):
    """By loops over all pairs: h, its mean of d^2 q (1 - q) / h, at the worst shift; and the same for equal h."""
    plan = vr.plan_labels(world.log, given, budget=200, purpose=purpose)
    d = {name: slopes(one) for name, one in given.items()}
    if purpose == "difference":
        d = {f"{a} - {b}": d[a] - d[b] for a, b in (("sharp", "wave"), ("sharp", "flat"), ("wave", "flat"))}
    spreads = [q * (1 - q) for q in (likes(world.log, shift) for shift in SHIFTS)]
    mean = np.mean(spreads, axis=0)
    sizes = np.sqrt(sum(one**2 * mean / (one**2 * mean).mean() for one in d.values()))
    best = None
    uniform = [max((one**2 * spread).mean() for spread in spreads) for one in d.values()]
    for even in (0.1, 0.3, 0.5, 1.0):
        h = even + (1 - even) * sizes / sizes.mean()
        variances = [max((one**2 * spread / h).mean() for spread in spreads) for one in d.values()]
        cost = np.mean(np.divide(variances, uniform))
        if max(variances) <= max(uniform) and (best is None or cost < best[0]):
            best = cost, variances, h
    assert len(plan.half_widths) == numbers
    assert plan.half_widths == pytest.approx(
        {name: REACH * np.sqrt(one / 200) for name, one in zip(d, best[1], strict=True)}, rel=1e-9
    )
    assert plan.simple == int(np.ceil(200 * max(uniform) / max(best[1])))
    # And the pairs were drawn with these probabilities.
    h = best[2] / best[2].mean()
    np.testing.assert_allclose(plan.probabilities, 200 * h[plan.users, plan.items] / h.size, rtol=1e-9)


def test_a_pilot_shifts_what_is_expected(world, given, pilot):
    plan = vr.plan_labels(world.log, {"flat": given["flat"]}, budget=200, pilot=pilot)
    found = vr.estimate(given["flat"], world.log, survey=pilot, estimators="survey-ppi")["survey-ppi"]
    q = likes(world.log, found.diagnostics["shift"])
    variance = (slopes(given["flat"]) ** 2 * q * (1 - q)).mean()
    # All d are the same, so that little is gained by unequal probabilities.
    assert plan.half_width == pytest.approx(REACH * np.sqrt(variance / 200), rel=0.05)
    assert plan.half_width <= REACH * np.sqrt(variance / 200) * (1 + 1e-9)
    assert "the pilot's 200" in plan.assumes


def test_without_a_pilot_the_worst_of_all_shifts_counts(world, given):
    plan = vr.plan_labels(world.log, given, budget=200)
    for shift in SHIFTS:
        q = likes(world.log, shift)
        assert (slopes(given["flat"]) ** 2 * q * (1 - q)).mean() <= (plan.half_widths["flat"] / REACH) ** 2 * 201
    assert "at worst" in plan.assumes


@pytest.mark.parametrize("width", [0.2, 0.05, 0.03])
@pytest.mark.parametrize("purpose", ["level", "difference"])
def test_a_half_width_is_kept_with_as_few_pairs_as_it_takes(world, given, pilot, width, purpose):
    plan = vr.plan_labels(world.log, given, half_width=width, purpose=purpose, pilot=pilot)
    assert plan.half_width <= width
    fewer = vr.plan_labels(world.log, given, budget=max(len(plan) - 1, 10), purpose=purpose, pilot=pilot)
    assert fewer.half_width > width or len(plan) <= 10
    assert len(plan) <= plan.simple


def test_more_confidence_takes_more_pairs(world, given):
    sizes = [len(vr.plan_labels(world.log, given, half_width=0.05, confidence=level)) for level in (0.8, 0.95, 0.99)]
    assert sizes[1] / sizes[0] == pytest.approx((ndtri(0.975) / ndtri(0.9)) ** 2, rel=0.02)
    assert sizes[2] / sizes[1] == pytest.approx((ndtri(0.995) / ndtri(0.975)) ** 2, rel=0.02)


def test_where_all_pairs_tell_as_much_each_is_as_likely(world):
    """Equal d, and q the same for all pairs: a log whose users and items do not differ."""
    random = np.random.default_rng(0)
    cells = random.choice(40 * 50, 600, replace=False)
    users, items = np.divmod(cells, 50)
    log = vr.FeedbackLog.from_arrays(users, items, (users + items) % 2, n_users=40, n_items=50)
    plan = vr.plan_labels(log, np.full((40, 50), 0.3), budget=100)
    assert plan.probabilities == pytest.approx(100 / 2_000, rel=0.1)
    assert len(plan) <= plan.simple <= 101


@pytest.mark.parametrize("purpose", ["level", "difference", "ndcg@5"])
def test_no_plan_is_wider_than_a_random_choice(world, given, purpose):
    """By the variances themselves: a plan's `simple` is never below its size, whatever they are."""
    target = Target.of(world.log.shape, None, None)
    question = pose(purpose, given, world.log, target, "log", None)
    design = design_random(question, expect_likes(world.log, None, target), np.random.default_rng(0), count=150)
    gain = design.uniform.max() / design.variances.max()
    assert gain > 1.05
    plan = vr.plan_labels(world.log, given, budget=150, purpose=purpose)
    assert plan.simple == pytest.approx(150 * gain, rel=0.05)


# The pairs


def test_pairs_are_distinct_random_ones_of_the_grid(world, given):
    plan = vr.plan_labels(world.log, given, budget=300)
    assert not plan.logged.any()
    assert len(np.unique(plan.users * 150 + plan.items)) == len(plan) == 300


def test_pairs_that_are_excluded_are_not_asked_about(world, given):
    log = world.log
    plan = vr.plan_labels(log, given, budget=400, exclude=log)
    assert not np.isin(plan.users * 150 + plan.items, log.users * 150 + log.items).any()
    # Their probabilities are those of the pairs that are left.
    assert (1 / plan.probabilities).sum() == pytest.approx(120 * 150 - len(log), rel=0.15)


@pytest.mark.parametrize("purpose", ["level", "difference"])
def test_weighted_means_over_planned_pairs_are_those_of_all_pairs(purpose):
    """300 plans: the mean of the weighted likes is that of all pairs, within four standard errors."""
    small = vr.simulate.world(30, 40, observed=0.3, random_state=0)
    given = [0.1 + 0.8 * small.preferences, np.full((30, 40), 0.3)]
    truth, found = small.true_labels, []
    for seed in range(300):
        plan = vr.plan_labels(small.log, given, budget=60, purpose=purpose, random_state=seed)
        found.append((truth[plan.users, plan.items] / plan.probabilities).sum() / truth.size)
    assert abs(np.mean(found) - truth.mean()) < 4 * np.std(found) / np.sqrt(len(found))


def test_large_grids_are_planned_on_a_part_of_them(given):
    """Nothing of the grid's size: 40 million pairs, of which some hundred thousand are looked at."""
    asked = []

    def scores(users, items):
        asked.append(len(users))
        return 0.3 + 0.2 * np.sin(users * 7.0 + items)

    random = np.random.default_rng(0)
    cells = random.choice(20_000 * 2_000, 5_000, replace=False)
    users, items = np.divmod(cells, 2_000)
    log = vr.FeedbackLog.from_arrays(users, items, random.integers(2, size=5_000), n_users=20_000, n_items=2_000)
    plan = vr.plan_labels(log, scores, half_width=0.02)
    assert sum(asked) <= 3 * max(PLANNED_ON, 50 * len(plan))
    assert (1 / plan.probabilities).sum() == pytest.approx(log.n_cells, rel=0.2)
    assert abs(plan.users.mean() / 20_000 - 0.5) < 4 * 0.29 / np.sqrt(len(plan))


def test_the_same_seed_gives_the_same_plan_and_another_seed_another(world, given):
    plans = [vr.plan_labels(world.log, given, budget=50, random_state=seed) for seed in (0, 0, 1)]
    assert plans[0].users.tolist() == plans[1].users.tolist()
    assert plans[0].probabilities.tolist() == plans[1].probabilities.tolist()
    assert plans[0].users.tolist() != plans[2].users.tolist()


# What they save, and whether they keep their word


def test_planned_pairs_save_where_recommenders_differ_on_some_pairs_only(world, pilot):
    """Two that agree on nine tenths of the pairs: those tell nothing."""
    first = 0.2 + 0.6 * world.preferences
    second = first.copy()
    second[:, ::10] = 0.5
    plan = vr.plan_labels(world.log, [first, second], budget=200, purpose="difference", pilot=pilot)
    assert plan.simple > 3 * len(plan)
    told = np.mean(plan.items % 10 == 0)
    assert told > 0.6


def test_comparisons_by_planned_pairs_are_right_and_as_sharp_as_expected(world, given, pilot):
    """80 surveys of 200 planned pairs, and as many of random ones."""
    first, second, truth = given["sharp"], given["wave"], world.true_labels
    losses = [-np.where(truth == 1, np.log(one), np.log(1 - one)).mean() for one in (first, second)]
    errors, widths, expected, simple = [], [], [], []
    for seed in range(80):
        plan = vr.plan_labels(
            world.log, [first, second], budget=200, purpose="difference", pilot=pilot, random_state=seed
        )
        random = np.random.default_rng(seed)
        cells = np.divmod(random.choice(truth.size, 200, replace=False), 150)
        for survey, into in (
            (plan.survey(truth[plan.users, plan.items]), errors),
            (vr.SurveySample(*cells, truth[cells]), simple),
        ):
            found = vr.compare(first, second, world.log, survey=survey, estimators="survey-ppi")["survey-ppi"]
            into.append(found.value - (losses[0] - losses[1]))
            if into is errors:
                widths.append((found.interval[1] - found.interval[0]) / 2)
                expected.append(plan.half_width)
    assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(len(errors))
    assert np.mean(widths) == pytest.approx(np.mean(expected), rel=0.2)
    # More than 12 of 80 miss an interval of 95% once in 10,000 times.
    assert (np.abs(errors) > widths).sum() <= 12
    assert np.var(simple) > 1.1 * np.var(errors)


# Rankings


def test_only_the_top_of_rankings_is_asked_about(world, given):
    plan = vr.plan_labels(world.log, {"wave": given["wave"]}, budget=200, purpose="ndcg@5")
    order = np.argsort(-given["wave"], axis=1, kind="stable")[:, :5]
    assert all(item in order[user] for user, item in zip(plan.users, plan.items, strict=True))
    assert (1 / plan.probabilities).sum() == pytest.approx(120 * 5, rel=0.15)
    # The first place counts most.
    place = np.array([list(order[user]).index(item) for user, item in zip(plan.users, plan.items, strict=True)])
    assert np.mean(place == 0) > 1.3 * np.mean(place == 4)


def test_what_is_expected_of_rankings_is_the_formula(world, given):
    plan = vr.plan_labels(world.log, {"wave": given["wave"]}, budget=200, purpose="ndcg@5")
    users, items = np.arange(120)[:, None], np.argsort(-given["wave"], axis=1, kind="stable")[:, :5]
    gains = 1 / np.log2(np.arange(2, 7))
    d = np.broadcast_to(5 * gains / gains.sum(), items.shape)
    spreads = [q[users, items] * (1 - q[users, items]) for q in (likes(world.log, shift) for shift in SHIFTS)]
    sizes = d * np.sqrt(np.mean(spreads, axis=0))
    h = 0.1 + 0.9 * sizes / sizes.mean()
    variance = max((d**2 * spread / h).mean() for spread in spreads)
    assert plan.half_width == pytest.approx(REACH * np.sqrt(variance / 200), rel=1e-9)


def test_the_labels_of_the_top_tell_ndcg(world, given):
    """100 plans: the mean of what is estimated from them is the truth, and their spread what was expected."""
    truth, scores = world.true_labels, given["wave"]
    gains = 1 / np.log2(np.arange(2, 7))
    order = np.argsort(-scores, axis=1, kind="stable")[:, :5]
    ndcg = float((np.take_along_axis(truth, order, axis=1) @ gains / gains.sum()).mean())
    place = np.full(truth.shape, -1)
    np.put_along_axis(place, order, np.arange(5), axis=1)
    model, found, expected = likes(world.log, 0.0), [], []
    whole = (np.take_along_axis(model, order, axis=1) @ gains / gains.sum()).mean()
    for seed in range(100):
        plan = vr.plan_labels(world.log, {"a": scores}, budget=100, purpose="ndcg@5", random_state=seed)
        worth = gains[place[plan.users, plan.items]] / gains.sum()
        q = model[plan.users, plan.items]
        rest = (truth[plan.users, plan.items] - q) * worth / plan.probabilities
        found.append(whole + rest.sum() / 120)
        expected.append(plan.half_width)
    assert abs(np.mean(found) - ndcg) < 4 * np.std(found) / np.sqrt(len(found))
    assert REACH * np.std(found) < 1.2 * np.mean(expected)


def test_pairs_in_the_top_of_any_are_asked_about_once(world, given):
    given = {"wave": given["wave"], "other": np.cos(7.0 * np.arange(120 * 150)).reshape(120, 150)}
    plan = vr.plan_labels(world.log, given, budget=300, purpose="ndcg@4")
    tops = [np.argsort(-one, axis=1, kind="stable")[:, :4] for one in given.values()]
    frame = {(user, item) for top in tops for user, items in enumerate(top) for item in items}
    asked = set(zip(plan.users.tolist(), plan.items.tolist(), strict=True))
    assert len(asked) == 300
    assert asked <= frame


@pytest.mark.parametrize("purpose", ["ndcg@4", "precision@4"])
def test_of_two_rankings_the_difference_is_planned_for(world, given, purpose):
    """Pairs in the one top and not in the other matter most; what is expected is the formula."""
    both = {"wave": given["wave"], "near": given["wave"] + 0.001 * np.cos(7.0 * np.arange(120 * 150)).reshape(120, 150)}
    plan = vr.plan_labels(world.log, both, budget=200, purpose=purpose)
    assert list(plan.half_widths) == ["wave - near"]
    gains = {"ndcg": 1 / np.log2(np.arange(2, 6)), "precision": np.ones(4)}[purpose.partition("@")[0]]
    worth = np.zeros((2, 120, 150))
    for line, scores in zip(worth, both.values(), strict=True):
        np.put_along_axis(line, np.argsort(-scores, axis=1, kind="stable")[:, :4], gains / gains.sum(), axis=1)
    users, items = np.nonzero(worth.any(axis=0))
    d = (worth[0] - worth[1])[users, items] * len(users) / 120
    spreads = [q[users, items] * (1 - q[users, items]) for q in (likes(world.log, shift) for shift in SHIFTS)]
    sizes = np.abs(d) * np.sqrt(np.mean(spreads, axis=0))
    variances = [
        max((d**2 * spread / (part + (1 - part) * sizes / sizes.mean())).mean() for spread in spreads)
        for part in (0.1, 0.3, 0.5)
    ]
    assert plan.half_width == pytest.approx(REACH * np.sqrt(min(variances) / 200), rel=1e-9)
    apart = (worth[0] != worth[1])[plan.users, plan.items]
    assert apart.mean() > 1.1 * (worth[0] != worth[1]).sum() / len(users)


def test_rankings_are_not_planned_for_beyond_their_lists(world):
    lists = TopLists(np.repeat(np.arange(100), 3), np.tile([4, 5, 6], 100), np.tile([1, 2, 3], 100), world.log.shape)
    check_refusal(
        lambda: vr.plan_labels(world.log, lists, budget=50, purpose="ndcg@5"), ParameterError, "k must be at most 3"
    )
    # The 20 users without a list are not judged: the interval is that of a mean over all of 120 who have one.
    filled = TopLists(np.repeat(np.arange(120), 3), np.tile([4, 5, 6], 120), np.tile([1, 2, 3], 120), world.log.shape)
    with pytest.warns(ScoreWarning, match="20 of 120 users have no list"):
        some = vr.plan_labels(world.log, lists, budget=50, purpose="precision@3")
    every = vr.plan_labels(world.log, filled, budget=50, purpose="precision@3")
    assert some.half_width == pytest.approx(every.half_width, rel=0.1)


def test_nobody_is_asked_twice_if_so_wished(world, given):
    both = {name: given[name] for name in ("wave", "flat")}
    for purpose in ("difference", "ndcg@5"):
        plan = vr.plan_labels(world.log, both, budget=90, purpose=purpose, one_per_user=True)
        free = vr.plan_labels(world.log, both, budget=90, purpose=purpose)
        assert len(np.unique(plan.users)) == len(plan) == 90 > len(np.unique(free.users))
        assert plan.half_widths == free.half_widths
    check_refusal(
        lambda: vr.plan_labels(world.log, both, budget=121, one_per_user=True),
        UnreachableError,
        "121 pairs, one of each user, are more than the 120 users to ask",
    )
    known = vr.GivenPropensity(world.propensity_values)
    check_refusal(
        lambda: vr.plan_labels(world.log, both, budget=90, one_per_user=True, propensities=known),
        ParameterError,
        "one_per_user is for random pairs",
    )


def test_rankings_that_tie_share_their_places(world, given):
    """Of a recommender that scores all pairs the same, each is in the top with the same small gain."""
    plan = vr.plan_labels(world.log, {"flat": given["flat"]}, budget=300, purpose="ndcg@4")
    assert (1 / plan.probabilities).sum() == pytest.approx(120 * 150, rel=0.15)


# Without recommenders: the noise rates


def test_without_recommenders_it_is_an_audit_of_the_log(world):
    plan = vr.plan_labels(world.log, half_width=0.05, guess=RATES, random_state=3)
    design = design_audit(world.log, half_width=0.05, guess=RATES, random_state=3)
    assert plan.logged.all()
    assert plan.users.tolist() == world.log.users[design.rows].tolist()
    assert plan.items.tolist() == world.log.items[design.rows].tolist()
    assert plan.probabilities.tolist() == design.probabilities.tolist()
    assert tuple(plan.half_widths.values()) == design.half_widths
    assert (plan.simple, plan.purpose) == (design.simple, "noise rates")
    assert plan.assumes == "if they are about 0.20 and 0.10"
    assert len(vr.plan_labels(world.log, budget=77)) == 77


# Known propensities: logged pairs too


def test_logged_pairs_are_asked_about_only_where_propensities_are_known(world, given):
    p = world.propensity_values
    options = {"budget": 300, "guess": vr.NoiseRates(0.05, 0.02)}
    for unknown in (None, p, vr.LogisticPropensity(), vr.GivenPropensity(p, known=False)):
        assert not vr.plan_labels(world.log, given, propensities=unknown, **options).logged.any()
    plan = vr.plan_labels(world.log, given, propensities=vr.GivenPropensity(p), **options)
    assert plan.logged.any()
    logged = set((world.log.users * 150 + world.log.items).tolist())
    assert set((plan.users * 150 + plan.items)[plan.logged].tolist()) <= logged
    assert "noise rates are about 0.05 and 0.02" in plan.assumes


def test_a_split_is_never_worse_than_either_kind(world, given):
    p = vr.GivenPropensity(world.propensity_values)
    for guess in (vr.NoiseRates(0.05, 0.02), RATES):
        for budget in (100, 1_000, 2_500):
            both = vr.plan_labels(world.log, given, budget=budget, propensities=p, guess=guess)
            random = vr.plan_labels(world.log, given, budget=budget)
            assert len(both) == budget
            assert both.half_width <= random.half_width * (1 + 1e-9)
            narrow = vr.plan_labels(world.log, given, half_width=both.half_width, propensities=p, guess=guess)
            assert len(narrow) <= 1.02 * budget + 2


def test_little_noise_makes_logged_pairs_worth_more(world, given):
    p = vr.GivenPropensity(world.propensity_values)
    widths = [
        vr.plan_labels(world.log, given, budget=300, propensities=p, guess=guess).half_width
        for guess in (vr.NoiseRates(0.02, 0.01), vr.NoiseRates(0.1, 0.05), vr.NoiseRates(0.3, 0.3))
    ]
    assert widths == sorted(widths)


# What is refused


BAD = [
    ({"budget": None}, ParameterError, "give budget=... or half_width=...: one of the two"),
    ({"half_width": 0.1}, ParameterError, "one of the two"),
    ({"budget": 9}, ParameterError, "budget must be a whole number of at least 10; got 9"),
    ({"budget": 10.5}, ParameterError, "budget must be a whole number"),
    ({"budget": None, "half_width": 0}, ParameterError, "half_width must be a finite number above 0"),
    ({"budget": None, "half_width": float("nan")}, ParameterError, "half_width must be"),
    ({"budget": None, "half_width": 0.5, "recommenders": None}, ParameterError, "above 0 and below 0.5"),
    (
        {"budget": None, "half_width": 1e-5},
        SurveyError,
        r"takes [\d,]+ random pairs, more than the 18,000",
    ),
    ({"budget": 18_001}, SurveyError, "18,001 random pairs are more than the 18,000 that"),
    ({"confidence": 1}, ParameterError, "confidence must be"),
    (
        {"purpose": "ranking"},
        ParameterError,
        "purpose must be one of difference, level, ndcg@k, precision@k; got 'ranking'",
    ),
    ({"purpose": 3}, ParameterError, "purpose must be one of"),
    ({"purpose": "ndcg@k"}, ParameterError, r"purpose must say how deep: ndcg@5, precision@10, \.\.\.; got 'ndcg@k'"),
    ({"purpose": "ndcg@0"}, ParameterError, "purpose must be one of"),
    ({"recommenders": {}}, ParameterError, "recommenders must be predictions, by name or in a list; got none"),
    ({"recommenders": []}, ParameterError, "got none"),
    ({"recommenders": {"a": np.full((2, 2), 0.5)}}, PredictionError, "shape"),
    ({"recommenders": {"a": np.ones((120, 150))}}, PredictionError, "clip=1e-6"),
    (
        {"recommenders": {"a": np.full((120, 150), 0.5)}, "purpose": "difference"},
        ParameterError,
        "two .* or more; got 1",
    ),
    (
        {"recommenders": [np.full((120, 150), 0.4)] * 2, "purpose": "difference"},
        UnreachableError,
        "nothing to tell apart",
    ),
    ({"pilot": "pilot.csv"}, SurveyError, "pilot must be a SurveySample; got str"),
    ({"exclude": "all"}, ParameterError, "exclude must be"),
    ({"guess": (0.2, 0.1), "recommenders": None}, ParameterError, "guess must be a NoiseRates; got tuple"),
    ({"loss": "hinge"}, ParameterError, "loss"),
    ({"log": "log"}, ParameterError, "a FeedbackLog is needed; got str"),
]


@pytest.mark.parametrize(("change", "error", "message"), BAD, ids=[str(case[0])[:40] for case in BAD])
def test_bad_input_is_told_in_one_line(world, given, change, error, message):
    options = {"log": world.log, "recommenders": given, "budget": 100} | change
    check_refusal(lambda: vr.plan_labels(**options), error, message)


def test_logs_that_say_nothing_are_refused(world, given):
    log = world.log
    check_refusal(lambda: vr.plan_labels(log.select([]), given, budget=100), EmptyLogError, "rows")
    ones = vr.FeedbackLog.from_arrays(log.users, log.items, np.ones(len(log), int), n_users=120, n_items=150)
    check_refusal(lambda: vr.plan_labels(ones, budget=100), LabelError, "both classes")


def test_predictions_of_some_pairs_only_are_refused(world):
    log = world.log
    some = (log.users, log.items, np.full(len(log), 0.4))
    check_refusal(lambda: vr.plan_labels(log, {"a": some}, budget=100), PredictionError, "do not cover")
    # Unless the others do not count.
    users, items = np.divmod(np.setdiff1d(np.arange(120 * 150), log.users * 150 + log.items), 150)
    assert len(vr.plan_labels(log, {"a": some}, budget=100, exclude=(users, items))) == 100


def test_designs_know_their_worst_case(world, given):
    """The design's own figures: equal probabilities are one of those to choose from."""
    target = Target.of(world.log.shape, None, None)
    question = pose("difference", given, world.log, target, "log", None)
    design = design_random(question, expect_likes(world.log, None, target), np.random.default_rng(0))
    assert design.sizes.mean() == pytest.approx(1)
    assert design.sizes.min() >= 0.1
    assert design.variances.max() <= design.uniform.max()
