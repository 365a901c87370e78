"""Rankings by survey: against loops over all pairs, against the truth of worlds where taste decides, and refusals."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import verirec as vr
from draws import largest_z
from plain_formulas import ranking_estimates as plain
from refusals import check_refusal
from verirec.data.predictions import as_predictions
from verirec.estimation.survey import tops
from verirec.estimation.survey.auc import _hanley_mcneil
from verirec.estimation.survey.problem import SurveyProblem
from verirec.estimation.survey.ranking import ranking_by_survey
from verirec.estimation.survey.target import Target
from verirec.estimation.survey.tops import RankedTarget, best_pairs, level_of
from verirec.exceptions import (
    EmptyLogError,
    NoiseRateError,
    PositionError,
    PredictionError,
    SurveyError,
    SurveyWarning,
)
from verirec.metrics import auc

SHAPE = (40, 30)
METRICS = ("auc", "dcg@5", "ndcg@5", "precision@5", "recall@5")
pytestmark = pytest.mark.filterwarnings(
    "ignore::verirec.exceptions.SurveyWarning", "ignore::verirec.exceptions.OverlapWarning"
)


@cache
def world():
    return vr.simulate.world(*SHAPE, observed=0.2, selectivity=4, noise_rates=vr.NoiseRates(0.2, 0.1), random_state=1)


@cache
def scores_of(levels=None):
    scores = world().preferences + 0.2 * np.random.default_rng(0).normal(size=SHAPE)
    return scores if levels is None else np.round(scores * levels) / levels


def survey_of(cells, truth=None, **more):
    users, items = np.divmod(np.asarray(cells), SHAPE[1])
    truth = world().true_labels if truth is None else truth
    return vr.SurveySample(users, items, truth[users, items], **more)


def drawn(size, seed, chances=None):
    chances = np.ones(SHAPE) if chances is None else chances
    chances = chances.ravel() / chances.sum()
    cells = np.random.default_rng(seed).choice(chances.size, size, p=chances)
    return survey_of(cells, probabilities=chances[cells])


# Places and levels


@given(st.integers(1, 5), st.integers(1, 8), st.integers(1, 9), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_the_best_of_each_line_are_counted_whatever_the_ties(lines, width, depth, levels, seed):
    random = np.random.default_rng(seed)
    scores = random.integers(levels, size=(lines, width)).astype(float)
    scores[random.random(scores.shape) < 0.2] = -np.inf
    best = best_pairs(scores, depth)
    found = {(a, b): (c, d) for a, b, c, d in zip(*best, strict=True)}
    for line in range(lines):
        for item in range(width):
            own = scores[line, item]
            shared = plain.places(scores[line], item)
            inside = own > -np.inf and shared.start < depth
            assert ((line, item) in found) == inside
            if inside:
                assert found[line, item] == (shared.start, len(shared))


def test_scores_are_told_by_levels_and_what_lies_between():
    assert level_of(np.array([0.0, 1.0, 1.5, 2.0, 3.0]), np.array([1.0, 2.0])).tolist() == [0, 1, 2, 3, 4]


# Against loops over all pairs


def plain_auc(scores, q, survey, shares, power):
    """Compare every two of the target's pairs and of the draws, each with its signed share of likes and dislikes."""
    cells = [(user, item) for user in range(SHAPE[0]) for item in range(SHAPE[1])]
    own = list(zip(survey.users, survey.items, strict=True))
    score = np.array([scores[cell] for cell in cells + own])
    liked = np.array(
        [power * q[cell] / len(cells) for cell in cells]
        + [v * (y - power * q[cell]) for v, y, cell in zip(shares, survey.labels, own, strict=True)]
    )
    disliked = np.array(
        [power * (1 - q[cell]) / len(cells) for cell in cells]
        + [v * (1 - y - power * (1 - q[cell])) for v, y, cell in zip(shares, survey.labels, own, strict=True)]
    )
    contest = np.outer(liked, disliked)
    drawn_part = contest[len(cells) :, len(cells) :]
    np.fill_diagonal(drawn_part, 0)
    drawn_part /= 1 - (shares**2).sum()
    won = (score[:, None] > score) + (score[:, None] == score) / 2
    return (contest * won).sum() / contest.sum()


@pytest.mark.parametrize("levels", [None, 4], ids=["no ties", "ties"])
@pytest.mark.parametrize("weighted", [False, True])
def test_auc_is_its_loop_over_all_pairs(levels, weighted):
    scores, log = scores_of(levels), world().log
    survey = drawn(60, 3, 0.2 + world().preferences if weighted else None)
    found = ranking_by_survey(as_predictions(scores, *SHAPE), survey, log, None, [3])["auc"]
    problem = SurveyProblem.of(survey, log, None)
    q = problem.expected_labels.block(np.arange(SHAPE[0]), np.arange(SHAPE[1]))
    expected = plain_auc(scores, q, survey, problem.draws.shares, found.diagnostics["power"])
    assert found.value == pytest.approx(expected, abs=1e-10)
    assert found.diagnostics["source"] == "survey"


def test_without_power_auc_is_that_of_the_survey_and_close_to_the_one_step_formula():
    scores, log, survey = scores_of(), world().log, drawn(400, 5)
    found = ranking_by_survey(as_predictions(scores, *SHAPE), survey, log, None, [3])["auc"]
    alone = auc(survey.labels, scores[survey.users, survey.items])
    problem = SurveyProblem.of(survey, log, None)
    q = problem.expected_labels.block(np.arange(SHAPE[0]), np.arange(SHAPE[1]))
    share = q.mean()
    below0 = np.array([((1 - q) * (scores < s)).sum() for s in scores[survey.users, survey.items]]) / (1 - q).sum()
    below1 = np.array([(q * (scores < s)).sum() for s in scores[survey.users, survey.items]]) / q.sum()
    a_q = sum(q[cell] * ((1 - q) * (scores < scores[cell])).sum() for cell in np.ndindex(SHAPE))
    a_q /= q.sum() * (1 - q).sum()
    psi = (below0 - a_q) / share - (1 - below1 - a_q) / (1 - share)
    one_step = a_q + ((survey.labels - q[survey.users, survey.items]) * psi).mean()
    assert found.value == pytest.approx(alone, abs=found.standard_error / 2)
    assert found.value == pytest.approx(one_step, abs=found.standard_error)


NAMED = ["dcg@3", "ndcg@3", "precision@3", "recall@3", "dcg@7", "ndcg@7", "precision@7", "recall@7"]


class Whole:
    """A grid as `plain_formulas.ranking_estimates` has it."""

    def __init__(self, scores, truth):
        self.f, self.truth, self.cells = scores, truth, list(np.ndindex(scores.shape))


@pytest.mark.parametrize("levels", [None, 4], ids=["no ties", "ties"])
def test_a_survey_of_every_pair_is_the_truth(levels):
    scores = scores_of(levels)
    found = vr.estimate_ranking(scores, world().log, survey=survey_of(np.arange(scores.size)), k=[3, 7])
    whole = Whole(scores, world().true_labels)
    assert {name: found[name].value for name in NAMED} == pytest.approx(
        {name: plain.true_value(name, whole) for name in NAMED}, abs=1e-10
    )
    assert found["auc"].value == pytest.approx(auc(world().true_labels.ravel(), scores.ravel()), abs=2e-3)
    assert {one.diagnostics["source"] for one in found.values()} == {"survey"}


def test_pairs_that_are_left_out_are_neither_ranked_nor_counted():
    scores, truth, log = scores_of(), world().true_labels, world().log
    seen = np.zeros(SHAPE, bool)
    seen[log.users, log.items] = True
    found = vr.estimate_ranking(scores, log, survey=survey_of(np.arange(scores.size)), exclude=log, k=[3])
    left = [np.flatnonzero(~seen[user]) for user in range(SHAPE[0])]
    best = [items[np.argsort(-scores[user, items])][:3] for user, items in enumerate(left)]
    assert found["precision@3"].value == pytest.approx(np.mean([truth[u, best[u]].mean() for u in range(SHAPE[0])]))
    hits = sum(truth[user, best[user]].sum() for user in range(SHAPE[0]))
    assert found["recall@3"].value == pytest.approx(hits / truth[~seen].sum())
    assert found["auc"].value == pytest.approx(auc(truth[~seen], scores[~seen]), abs=2e-3)


def test_a_survey_of_some_users_speaks_for_these():
    users = np.arange(0, SHAPE[0], 2)
    cells = (users[:, None] * SHAPE[1] + np.arange(SHAPE[1])).ravel()
    survey = survey_of(cells, frame=users)
    found = vr.estimate_ranking(scores_of(), world().log, survey=survey, k=[3])
    whole = Whole(scores_of()[users], world().true_labels[users])
    for name in ("ndcg@3", "precision@3", "recall@3"):
        assert found[name].value == pytest.approx(plain.true_value(name, whole), abs=1e-10)


@pytest.mark.parametrize("transform", [lambda s: 5 * s - 3, np.exp, lambda s: s.astype(np.float32).astype(float)])
def test_only_the_order_of_scores_counts(transform):
    scores = np.round(scores_of(), 2)
    one, two = (vr.estimate_ranking(some, world().log, survey=drawn(300, 1)) for some in (scores, transform(scores)))
    for name in one:
        assert one[name].value == pytest.approx(two[name].value, abs=1e-9)
        assert one[name].interval == pytest.approx(two[name].interval, abs=1e-9)


# Where they come from


def test_a_survey_of_random_pairs_tells_auc_and_the_log_the_rest():
    with pytest.warns(
        SurveyWarning, match=r"^the survey has too few pairs .* for dcg@1, ndcg@1, precision@1, recall@1:"
    ):
        found = vr.estimate_ranking(scores_of(), world().log, survey=drawn(100, 1), k=1)
    sources = {name: one.diagnostics["source"] for name, one in found.items()}
    assert sources == {"auc": "survey"} | dict.fromkeys(["dcg@1", "ndcg@1", "precision@1", "recall@1"], "log")
    by_log = vr.estimate_ranking(scores_of(), world().log, k=1)
    assert found["ndcg@1"] == by_log["ndcg@1"]
    assert by_log["auc"].diagnostics["source"] == "log"


def top_chances(scores, depth=5):
    place = np.argsort(np.argsort(-scores, axis=1), axis=1)
    return np.where(place < depth, 1 / np.log2(place + 2), 0.0)


def test_a_survey_of_top_pairs_tells_what_has_a_depth_and_the_log_the_rest():
    with pytest.warns(SurveyWarning, match=r"^the survey has too few pairs of the right kind for auc, recall@5:"):
        found = vr.estimate_ranking(scores_of(), world().log, survey=drawn(80, 1, top_chances(scores_of())))
    sources = {name: one.diagnostics["source"] for name, one in found.items()}
    assert sources == {
        "auc": "log", "dcg@5": "survey", "ndcg@5": "survey", "precision@5": "survey", "recall@5": "log",
    }  # fmt: skip


# Against the truth of a world where taste decides

SURVEYS = 160


def true_values(scores, truth, k=5):
    whole = Whole(scores, truth)
    names = [f"{metric}@{k}" for metric in ("ndcg", "precision", "recall")]
    return {"auc": auc(truth.ravel(), scores.ravel())} | {name: plain.true_value(name, whole) for name in names}


def clustered(size, seed):
    random = np.random.default_rng(seed)
    users = np.repeat(random.integers(SHAPE[0], size=size // 4), 4)
    cells = users * SHAPE[1] + random.integers(SHAPE[1], size=len(users))
    return survey_of(cells, clusters=np.repeat(np.arange(size // 4), 4))


DESIGNS = {
    "uniform": (lambda seed: drawn(300, seed), ("auc", "ndcg@5", "precision@5", "recall@5")),
    "weighted": (lambda seed: drawn(300, seed, 0.2 + world().preferences), ("auc", "precision@5", "recall@5")),
    "clustered": (lambda seed: clustered(300, seed), ("auc", "precision@5")),
    "top": (lambda seed: drawn(150, seed, top_chances(scores_of())), ("ndcg@5", "precision@5")),
}
CASES = [(design, name) for design, (_, names) in DESIGNS.items() for name in names]


@cache
def surveyed(design):
    """Give (error, standard error, held) of each estimate of many surveys of one world."""
    truth, found = true_values(scores_of(), world().true_labels), []
    values = as_predictions(scores_of(), *SHAPE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(SURVEYS):
            result = ranking_by_survey(values, DESIGNS[design][0](seed), world().log, None, [5])
            found.append(
                {
                    name: (
                        one.value - truth[name],
                        one.standard_error,
                        one.interval[0] <= truth[name] <= one.interval[1],
                    )
                    for name, one in result.items()
                    if name in truth
                }
            )
    return found


@pytest.mark.parametrize(("design", "name"), CASES)
def test_on_average_surveys_tell_the_truth(design, name):
    errors = np.array([one[name][0] for one in surveyed(design)])
    reported = np.sqrt(np.mean([one[name][1] ** 2 for one in surveyed(design)]))
    # A ratio is right to first order only: an eighth of its standard error is let pass.
    reach = largest_z(len(CASES)) * errors.std(ddof=1) / np.sqrt(SURVEYS) + reported / 8
    assert abs(errors.mean()) < reach
    assert reported == pytest.approx(errors.std(), rel=0.25)


@pytest.mark.parametrize(("design", "name"), CASES)
def test_intervals_hold_the_truth_as_often_as_they_say(design, name):
    held = np.mean([one[name][2] for one in surveyed(design)])
    reach = [largest_z(len(CASES), 0.01) * np.sqrt(end * (1 - end) / SURVEYS) for end in (0.93, 0.97)]
    assert 0.93 - reach[0] <= held <= 0.97 + reach[1]


def test_the_log_alone_is_wrong_where_taste_decides():
    truth = true_values(scores_of(), world().true_labels)["auc"]
    found = vr.estimate_ranking(scores_of(), world().log, noise_rates=vr.NoiseRates(0.2, 0.1))["auc"]
    by_survey = np.mean([abs(one["auc"][0]) for one in surveyed("uniform")])
    assert abs(found.value - truth) > 2 * by_survey or not found.interval[0] < truth < found.interval[1]


# Noisy answers


def noisy_survey(size, seed, rates):
    survey, random = drawn(size, seed), np.random.default_rng([seed, 1])
    flipped = random.random(size) < np.where(survey.labels == 1, rates.rho01, rates.rho10)
    return vr.SurveySample(survey.users, survey.items, np.where(flipped, 1 - survey.labels, survey.labels), noisy=True)


def test_noisy_answers_are_corrected_with_the_rates():
    rates, truth = vr.NoiseRates(0.2, 0.1), true_values(scores_of(), world().true_labels)["auc"]
    values = as_predictions(scores_of(), *SHAPE)
    found = [ranking_by_survey(values, noisy_survey(400, s, rates), world().log, rates, [5])["auc"] for s in range(60)]
    errors = np.array([one.value - truth for one in found])
    assert abs(errors.mean()) < 4 * errors.std() / np.sqrt(60)
    uncertain = vr.NoiseRates(0.2, 0.1, covariance=((4e-4, 0.0), (0.0, 4e-4)))
    one = ranking_by_survey(values, noisy_survey(400, 0, rates), world().log, uncertain, [5])
    assert one["auc"].value == pytest.approx(found[0].value, abs=1e-9)
    for name in ("auc", "precision@5", "recall@5"):
        assert one[name].diagnostics["variance"]["noise_rates"] > 0


def test_the_variance_of_the_rates_is_that_of_their_gradient():
    covariance = np.array([[4e-4, 1e-4], [1e-4, 9e-4]])
    values, survey = as_predictions(scores_of(), *SHAPE), noisy_survey(400, 0, vr.NoiseRates(0.2, 0.1))

    def at(rho01, rho10, **more):
        return ranking_by_survey(values, survey, world().log, vr.NoiseRates(rho01, rho10, **more), [5])

    told, step = at(0.2, 0.1, covariance=tuple(map(tuple, covariance))), 1e-3
    sides = [(at(0.2 + step, 0.1), at(0.2 - step, 0.1)), (at(0.2, 0.1 + step), at(0.2, 0.1 - step))]
    for name in ("auc", "precision@5", "recall@5"):
        gradient = np.array([(up[name].value - down[name].value) / (2 * step) for up, down in sides])
        added = told[name].diagnostics["variance"]["noise_rates"]
        # The label model moves with the rates too, which changes nothing to first order.
        assert np.sqrt(added) == pytest.approx(np.sqrt(gradient @ covariance @ gradient), rel=0.15)


def test_a_ratio_that_peaks_inside_a_region_is_found(monkeypatch):
    def peaked(values, survey, log, rates, depths, **options):
        value = 0.5 - (rates.rho01 - 0.1) ** 2 - (rates.rho10 - 0.05) ** 2
        return {name: vr.Estimate(value, 0.1, (0.0, 1.0), 0.95, {"source": "survey"}) for name in METRICS}

    monkeypatch.setattr("verirec.estimation.ranking.ranking_by_survey", peaked)
    survey, region = noisy_survey(400, 0, vr.NoiseRates(0.2, 0.1)), vr.NoiseRegion(0.2, 0.1)
    found = vr.estimate_ranking(scores_of(), world().log, survey=survey, noise_rates=region, k=[5])
    assert found["auc"].range == pytest.approx((0.4875, 0.5))


def test_a_region_of_rates_gives_a_range_where_answers_are_noisy_and_none_where_they_are_true():
    region = vr.NoiseRegion(0.2, 0.1)
    noisy = vr.estimate_ranking(
        scores_of(), world().log, survey=noisy_survey(400, 0, vr.NoiseRates(0.2, 0.1)), noise_rates=region, k=[5]
    )["auc"]
    assert isinstance(noisy, vr.EstimateRange)
    assert noisy.range[0] < noisy.range[1]
    true = vr.estimate_ranking(scores_of(), world().log, survey=drawn(300, 0), noise_rates=region)["auc"]
    assert isinstance(true, vr.Estimate)


# Intervals of few likes, large targets


@pytest.mark.parametrize("wrong", [0, 1, 3])
def test_few_likes_give_an_interval_inside_0_and_1_that_is_not_empty(wrong):
    truth = np.zeros(SHAPE, int)
    truth[np.arange(6), 0] = 1
    scores = np.random.default_rng(0).random(SHAPE) + 2 * truth
    scores[:wrong, 0] = -1
    cells = np.append(np.arange(6) * SHAPE[1], np.random.default_rng(1).choice(np.arange(200, 1_200), 100, False))
    found = ranking_by_survey(as_predictions(scores, *SHAPE), survey_of(cells, truth), world().log, None, [5])["auc"]
    low, high = found.interval
    assert 0 < low < found.value <= high <= 1
    assert found.value == pytest.approx(1 - wrong / 6, abs=0.1)
    assert high - low > 0.05


@pytest.mark.parametrize("likes", [0, 2, 3, 198, 200])
def test_a_survey_of_nearly_one_class_tells_no_auc(likes):
    """Three of each class are the least; without them it is the log that tells."""
    truth = np.zeros(SHAPE, int)
    cells = np.random.default_rng(0).choice(truth.size, 200, replace=False)
    truth.ravel()[cells[:likes]] = 1
    found = vr.estimate_ranking(scores_of(), world().log, survey=survey_of(cells, truth), k=[5, 29])
    assert found["auc"].diagnostics["source"] == ("survey" if likes == 3 else "log")
    for one in found.values():
        assert 0 <= one.interval[0] <= one.value <= one.interval[1]
        assert np.isfinite(one.standard_error)


def test_hanley_and_mcneils_variance_is_that_of_draws():
    """Their formula is that of exponential scores."""
    random, odds = np.random.default_rng(0), 4.0
    areas = [
        auc(np.repeat([1, 0], [8, 60]), np.concatenate([random.exponential(odds, 8), random.exponential(1, 60)]))
        for _ in range(3_000)
    ]
    assert np.var(areas) == pytest.approx(_hanley_mcneil(odds / (1 + odds), 8, 60), rel=0.08)


def test_of_a_large_target_a_sample_of_users_is_ranked_and_its_error_counts(monkeypatch):
    survey = drawn(300, 0)
    whole = vr.estimate_ranking(scores_of(), world().log, survey=survey, k=5)
    monkeypatch.setattr(tops, "MOST_CELLS", 20 * SHAPE[1])
    monkeypatch.setattr(tops, "BLOCK_CELLS", 2 * SHAPE[1])
    part = vr.estimate_ranking(scores_of(), world().log, survey=survey, k=5)
    for name in ("auc", "ndcg@5"):
        sampled = part[name].diagnostics["variance"]["sample"]
        assert whole[name].diagnostics["variance"]["sample"] == 0
        assert (sampled > 0) == (part[name].diagnostics["power"] > 0)
        assert part[name].value == pytest.approx(whole[name].value, abs=5 * np.sqrt(sampled) + 1e-9)


def test_blocks_change_nothing(monkeypatch):
    survey = drawn(200, 2)
    whole = vr.estimate_ranking(scores_of(), world().log, survey=survey, k=5, exclude=world().log)
    monkeypatch.setattr(tops, "BLOCK_CELLS", 3 * SHAPE[1])
    parts = vr.estimate_ranking(scores_of(), world().log, survey=survey, k=5, exclude=world().log)
    for name in whole:
        assert parts[name].value == pytest.approx(whole[name].value, abs=1e-12)


def test_places_of_pairs_that_are_left_out_are_nowhere():
    target = Target.of(SHAPE, None, world().log)
    ranked = RankedTarget(as_predictions(scores_of(), *SHAPE), target, 5)
    above, tied = ranked.places(world().log.users, world().log.items)
    assert np.isinf(above).all()
    assert (tied == 1).all()


# What is refused

REFUSED = [
    (lambda: vr.estimate_ranking(scores_of(), world().log, exclude=world().log), EmptyLogError, r"the log has 0"),
    (lambda: vr.estimate_ranking(scores_of(), world().log, survey=[0, 1]), SurveyError, r"must be a SurveySample; got"),
    (
        lambda: vr.estimate_ranking(scores_of(), world().log, survey=noisy_survey(50, 0, vr.NoiseRates(0.2, 0.1))),
        NoiseRateError,
        r"the survey's labels are noisy: give noise_rates",
    ),
    (
        lambda: vr.estimate_ranking(
            vr.Factors(np.full((SHAPE[0], 1), 1e200), np.full((SHAPE[1], 1), 1e200), link="identity"),
            world().log,
            survey=drawn(50, 0),
        ),
        PredictionError,
        r"scores must be finite",
    ),
    (
        lambda: vr.estimate_ranking(scores_of(), world().log, survey=vr.SurveySample([99], [0], [1])),
        PositionError,
        r"positions from 0 to 39",
    ),
]


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_bad_input_is_refused_in_one_line(call, error, message):
    check_refusal(call, error, message)
