"""Logs of clicks alone: a survey has the labels, popularity weighs the clicks, and all else is refused in one line."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import verirec as vr
from held import HALF_A_NUMBER, held_a_row
from refusals import check_refusal
from verirec.exceptions import EmptyLogError, LabelError, OverlapWarning, ParameterError, SurveyError, SurveyWarning
from verirec.nuisance.click_model import clicks_only, fit_clicks

SHAPE = 120, 150
PROMISED = (0.93, 0.97)
# Small logs have items of a few clicks.
pytestmark = pytest.mark.filterwarnings("ignore:.*fewer than 5 clicks")


def clicks_of(world):
    return world.log.select(world.log.labels == 1)


def survey_of(world, count, seed):
    users, items = np.random.default_rng(seed).integers([[world.log.n_users], [world.log.n_items]], size=(2, count))
    return vr.SurveySample(users, items, world.true_labels[users, items])


@pytest.fixture(scope="module")
def world():
    return vr.simulate.world(*SHAPE, selectivity=3, observed=0.2, noise_rates=vr.NoiseRates(0.3, 0.05), random_state=1)


@pytest.fixture(scope="module")
def log(world):
    return clicks_of(world)


@pytest.fixture(scope="module")
def survey(world):
    return survey_of(world, 400, 0)


@pytest.fixture(scope="module")
def sharp(world):
    return 0.1 + 0.8 * world.preferences


# The model of what was clicked


def test_the_click_model_fits_the_counts_with_one_click_more_of_each_user():
    log = vr.FeedbackLog.from_arrays([0, 0, 0, 1], [0, 1, 2, 0], [1] * 4, n_users=3, n_items=4)
    found = fit_clicks(log).block(np.arange(3), np.arange(4))
    np.testing.assert_allclose(found.sum(axis=1), (np.array([3, 1, 0]) + 1) * 4 / 6, rtol=1e-6)
    np.testing.assert_allclose(found.sum(axis=0), (np.array([2, 1, 1, 0]) + 3 / 4) * 4 / 6, rtol=1e-6)


def test_nothing_and_everything_clicked_have_finite_logits():
    every = vr.FeedbackLog.from_arrays(*np.divmod(np.arange(6), 3), np.ones(6), n_users=2, n_items=3)
    for log in (every, every.select([0])):
        assert np.isfinite(fit_clicks(log).cell_logits(np.arange(2)[:, None], np.arange(3)[None])).all()


def test_what_counts_as_clicks_alone(world, log):
    assert clicks_only(log)
    assert not clicks_only(world.log)
    stars = vr.FeedbackLog.from_arrays([0, 1], [0, 1], [2, 2], n_users=2, n_items=2, levels=[1, 2])
    assert not clicks_only(stars)


# With a survey


def test_only_what_the_survey_tells_is_estimated(log, survey, sharp):
    for asked in (None, "all"):
        assert list(vr.estimate(sharp, log, survey=survey, estimators=asked)) == ["survey", "survey-ppi"]
    assert list(vr.compare(sharp, 1 - sharp, log, survey=survey)) == ["survey", "survey-ppi"]


def test_survey_ppi_of_clicks_is_the_plain_formula(world, log, survey, sharp):
    found = vr.estimate(sharp, log, survey=survey)["survey-ppi"]
    q = 1 / (
        1 + np.exp(-fit_clicks(log).cell_logits(np.arange(120)[:, None], np.arange(150)) - found.diagnostics["shift"])
    )
    l0, d = -np.log1p(-sharp), np.log1p(-sharp) - np.log(sharp)
    power, expected = found.diagnostics["power"], l0 + q * d
    own = (l0 + survey_labels(world, survey) * d - power * expected)[survey.users, survey.items]
    assert found.value == pytest.approx(power * expected.mean() + own.mean(), rel=1e-9)
    assert 0 <= power <= 1


def survey_labels(world, survey):
    labels = np.zeros(SHAPE)
    labels[survey.users, survey.items] = survey.labels
    return labels


def test_intervals_hold_the_truth(sharp):
    held = []
    for seed in range(200):
        world = vr.simulate.world(
            60, 80, selectivity=4, observed=0.15, noise_rates=vr.NoiseRates(0.3, 0.05), random_state=seed
        )
        given = 0.15 + 0.7 * world.preferences
        low, high = vr.estimate(given, clicks_of(world), survey=survey_of(world, 300, [seed, 1]))["survey-ppi"].interval
        held.append(low <= world.true_inaccuracy(given) <= high)
    # Three standard errors of 200 repetitions besides.
    assert PROMISED[0] - 0.046 <= np.mean(held) <= PROMISED[1] + 0.03


def test_an_audit_of_clicks_sharpens_a_survey(world, log, survey, sharp):
    rows = np.arange(0, len(log), 3)
    audit = vr.AuditSample(log.users[rows], log.items[rows], world.true_labels[log.users[rows], log.items[rows]])
    found = vr.estimate(sharp, log, survey=survey, audit=audit)
    assert list(found) == ["survey", "survey-ppi"]
    assert found["survey-ppi"].diagnostics["audited"] == len(rows)


def test_rankings_by_survey_say_what_it_cannot_tell(log, survey, sharp):
    with pytest.warns(SurveyWarning, match="too few pairs of the right kind for dcg@3.*which clicks alone cannot tell"):
        found = vr.estimate_ranking(sharp, log, survey=survey, k=3)
    assert "auc" in found
    few = survey.select(np.flatnonzero(survey.labels == 1)[:10])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_refusal(lambda: vr.estimate_ranking(sharp, log, survey=few, k=1), SurveyError, "estimate_click_ranking")


def test_plans_are_of_random_pairs(log, sharp):
    plan = vr.plan_labels(log, {"a": sharp, "b": 0.3 + 0.1 * sharp}, budget=100, purpose="difference")
    assert not plan.logged.any()
    assert "as they are clicked or more" in plan.assumes


BOTH = r"rows of both classes; all [\d,]+ are positive: of clicks alone, a survey of random pairs will do"


@pytest.mark.parametrize(
    "call",
    [
        lambda f, log, survey: vr.estimate(f, log),
        lambda f, log, survey: vr.estimate(f, log, survey=survey, estimators=("survey-ppi", "dr")),
        lambda f, log, survey: vr.estimate(f, log, survey=survey, estimators="ome-dr"),
        lambda f, log, survey: vr.estimate(f, log, survey=survey, estimators="delta-dr"),
        lambda f, log, survey: vr.estimate(f, log, survey=survey, selection=vr.SelectionRange(0, 3)),
        lambda f, log, survey: vr.compare(f, f, log),
        lambda f, log, survey: vr.estimate_ranking(f, log),
        lambda f, log, survey: vr.plan_labels(log, budget=100),
        lambda f, log, survey: vr.selection_strength(log, survey),
        lambda f, log, survey: vr.sensitivity({"f": f}, log),
        lambda f, log, survey: vr.calibrate(f, log),
    ],
)
def test_what_needs_both_classes_says_what_would_do(log, survey, sharp, call):
    check_refusal(lambda: call(sharp, log, survey), LabelError, BOTH)


def test_nothing_but_dislikes_is_refused_as_before(log, survey, sharp):
    zeros = log.with_labels(np.zeros(len(log), int))
    check_refusal(lambda: vr.estimate(sharp, zeros, survey=survey), LabelError, r"all [\d,]+ are negative$")


# Ranking by popularity


def plain_ranking(scores, log, gamma, depth, persistence, left_out=()):
    """Go over the clicks one by one."""
    popularity = np.zeros(log.n_items)
    for _, item in [*zip(log.users, log.items, strict=True), *left_out]:
        popularity[item] += 1
    sums = dict.fromkeys(("recall", "dcg", "rbp"), 0.0)
    total = 0.0
    for user, item in zip(log.users, log.items, strict=True):
        weight = popularity[item] ** (-(gamma + 1) / 2)
        others = [i for i in range(log.n_items) if (user, i) not in left_out]
        place = 1 + sum(scores[user, i] > scores[user, item] for i in others)
        total += weight
        if place <= depth:
            sums["recall"] += weight
            sums["dcg"] += weight / math.log2(1 + place)
            sums["rbp"] += weight * (1 - persistence) * persistence ** (place - 1)
    return {name: value / total for name, value in sums.items()}


@pytest.mark.parametrize("gamma", [-1, 0, 1.5])
@pytest.mark.parametrize("trained", [False, True])
def test_values_are_those_of_the_plain_formula(gamma, trained):
    random = np.random.default_rng(3)
    users, items = np.nonzero(random.random((20, 12)) < 0.3)
    whole = vr.FeedbackLog.from_arrays(users, items, np.ones(len(users)), n_users=20, n_items=12)
    train, log = vr.split(whole, 0.5, random_state=0) if trained else (None, whole)
    scores = random.normal(size=(20, 12))
    found = vr.estimate_click_ranking(scores, log, gamma=gamma, k=4, persistence=0.7, exclude=train)
    left_out = {*zip(train.users.tolist(), train.items.tolist(), strict=True)} if trained else set()
    for name, value in plain_ranking(scores, log, gamma, 4, 0.7, left_out).items():
        assert found[f"{name}@4"].value == pytest.approx(value, rel=1e-12)
        if gamma == -1:
            assert found[f"naive-{name}@4"].value == pytest.approx(value, rel=1e-12)


def test_means_over_users_correct_nothing_where_each_has_one_click():
    items = np.array([0, 0, 0, 1, 2])
    log = vr.FeedbackLog.from_arrays(np.arange(5), items, np.ones(5), n_users=5, n_items=4)
    scores = np.random.default_rng(0).normal(size=(5, 4))
    found = vr.estimate_click_ranking(scores, log, gamma=1, k=2, average="users")
    assert found["dcg@2"].value == pytest.approx(found["naive-dcg@2"].value)
    pooled = vr.estimate_click_ranking(scores, log, gamma=1, k=2)
    assert pooled["dcg@2"].value != pytest.approx(pooled["naive-dcg@2"].value)


def test_rankings_hold_the_truth_where_the_assumption_does():
    """Items liked by share t are clicked, where liked, with a chance in proportion to t: gamma is then 0."""
    random = np.random.default_rng(8)
    likes, scores_of = np.linspace(0.05, 0.7, 40), np.linspace(0, 1, 40)
    held, naive = [], []
    for _ in range(300):
        taste = random.normal(size=(150, 40))
        liked = random.random((150, 40)) < likes
        scores = scores_of + taste + 0.5 * liked
        clicked = liked & (random.random((150, 40)) < 0.8 * likes / likes.max())
        users, items = np.nonzero(clicked)
        log = vr.FeedbackLog.from_arrays(users, items, np.ones(len(users)), n_users=150, n_items=40)
        found = vr.estimate_click_ranking(scores, log, gamma=0, k=5)
        held.append(found["recall@5"].interval)
        naive.append(found["naive-recall@5"].interval)
    # The same for all users that there could be.
    taste = random.normal(size=(40_000, 40))
    liked = random.random((40_000, 40)) < likes
    scores = scores_of + taste + 0.5 * liked
    threshold = np.sort(scores, axis=1)[:, -5][:, None]
    truth = (scores >= threshold)[liked].mean()
    cover = [np.mean([low <= truth <= high for low, high in ends]) for ends in (held, naive)]
    assert 0.95 - 0.04 <= cover[0] <= 0.95 + 0.04
    assert cover[1] < 0.5


@pytest.mark.parametrize("average", ["pairs", "users"])
@pytest.mark.parametrize("trained", [False, True])
def test_clicks_are_not_held_as_long_as_the_log(average, trained, in_small_parts, monkeypatch):
    # Of the pairs of a block, some are left out: blocks are to be shorter than the log.
    monkeypatch.setattr("verirec.estimation.survey.tops.BLOCK_CELLS", 1 << 13)

    def scores(users, items):  # No threads ask a function: how many blocks are there at once is the same each time.
        return np.sin(users * 7.0 + items)

    def work(log):
        clicks = log.with_labels(np.ones(len(log), int))
        even = np.arange(len(log)) % 2 == 0
        own, others = (clicks.select(even), clicks.select(~even)) if trained else (clicks, None)
        return lambda: vr.estimate_click_ranking(scores, own, exclude=others, average=average)

    assert held_a_row(work) < HALF_A_NUMBER


def test_an_estimate_says_what_it_assumes(log, sharp):
    found = vr.estimate_click_ranking(sharp, log, gamma=1)["recall@5"]
    assert "power 1 of its clicks" in found.diagnostics["assumes"]
    assert found.diagnostics["clicks"] == len(log)
    assert found.interval[0] < found.value < found.interval[1]


def test_row_order_and_lists_make_no_difference(log, sharp):
    frame = log.to_frame()
    mixed = vr.FeedbackLog.from_frame(
        frame.sample(frac=1, random_state=0), user="user", item="item", clicks=True,
        all_users=list(range(120)), all_items=list(range(150)),
    )  # fmt: skip
    one, two = (vr.estimate_click_ranking(sharp, each)["dcg@5"] for each in (log, mixed))
    assert (one.value, one.standard_error) == (two.value, two.standard_error)


BAD = [
    ({"gamma": -1.1}, ParameterError, "gamma must be"),
    ({"gamma": "high"}, ParameterError, "gamma must be"),
    ({"persistence": 1}, ParameterError, "persistence must be"),
    ({"average": "items"}, ParameterError, "average must be one of"),
    ({"confidence": 2}, ParameterError, "confidence"),
    ({"k": 0}, ParameterError, "k must be"),
    ({"exclude": "all"}, ParameterError, "exclude must be"),
]


@pytest.mark.parametrize(("change", "error", "message"), BAD, ids=[str(case[0]) for case in BAD])
def test_bad_arguments_are_told_in_one_line(log, sharp, change, error, message):
    check_refusal(lambda: vr.estimate_click_ranking(sharp, log, **change), error, message)


def test_logs_that_are_not_of_clicks_are_refused(world, log, sharp):
    check_refusal(lambda: vr.estimate_click_ranking(sharp, world.log), LabelError, "which estimate_ranking uses too")
    check_refusal(lambda: vr.estimate_click_ranking(sharp, log.select([0])), EmptyLogError, "at least 2 clicks")
    check_refusal(lambda: vr.estimate_click_ranking(sharp, log, exclude=log), EmptyLogError, "that exclude leaves")


def test_items_of_hardly_known_popularity_are_warned_of(log, sharp):
    with pytest.warns(OverlapWarning, match=r"^[\d]+% of the weight is on items with fewer than 5 clicks"):
        vr.estimate_click_ranking(sharp, log, gamma=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vr.estimate_click_ranking(sharp, log, gamma=-1)  # All clicks count the same.


def test_where_no_click_gains_the_interval_is_not_a_point():
    """One click a user of 60 items at random: 2 of 60 are among the best two."""
    random, held = np.random.default_rng(3), []
    for _ in range(300):
        users, items = np.arange(20), random.integers(0, 60, 20)
        log = vr.FeedbackLog.from_arrays(users, items, np.ones(20), n_users=20, n_items=60)
        low, high = vr.estimate_click_ranking(np.tile(np.arange(60.0), (20, 1)), log, gamma=-1, k=2)[
            "recall@2"
        ].interval
        held.append(low <= 2 / 60 <= high)
    assert np.mean(held) >= 0.93


def test_clicks_of_one_user_are_refused():
    log = vr.FeedbackLog.from_arrays([1, 1], [0, 1], [1, 1], n_users=2, n_items=3)
    check_refusal(lambda: vr.estimate_click_ranking(np.eye(2, 3), log), EmptyLogError, "clicks of at least 2 users")
