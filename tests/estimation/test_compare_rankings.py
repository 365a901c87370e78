"""The difference of two rankings: what loops give where all is known, what levels give, and the truth of worlds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import verirec as vr
from draws import largest_z
from plain_formulas.ranking_estimates import gain_at
from refusals import check_refusal
from verirec.data.predictions import as_predictions
from verirec.estimation.survey.ranking_difference import ranking_difference_by_survey
from verirec.exceptions import ParameterError, SurveyError

SHAPE = (80, 50)
WORLD = vr.simulate.world(*SHAPE, observed=0.3, selectivity=2, noise_rates=vr.NoiseRates(0.2, 0.1), random_state=1)
LOG, P, RATES = WORLD.log, WORLD.propensity_values, vr.NoiseRates(0.2, 0.1)
SHARP, BLUNT = (WORLD.preferences + size * np.random.default_rng(0).normal(size=SHAPE) for size in (0.1, 0.6))
COARSE = np.round(3 * BLUNT)
K = 5
DEEP = ("dcg@5", "ndcg@5", "precision@5", "recall@5")


def lists_of(scores, keep=None):
    items = np.argsort(-scores, axis=1, kind="stable")[:, :K]
    frame = pd.DataFrame(
        {"user": np.repeat(np.arange(80), K), "item": items.ravel(), "rank": np.tile(np.arange(1, K + 1), 80)}
    )
    return frame if keep is None else frame[frame["rank"] <= keep[frame["user"]]]


def level(name, scores):
    """Add gains of liked pairs up, one after the other; items that tie share their places."""
    metric, total = name.partition("@")[0], 0.0
    for user, line in enumerate(scores):
        for item, own in enumerate(line):
            places = range(int((line > own).sum()), int((line >= own).sum()))
            gain = np.mean([gain_at(metric, place, K, SHAPE[1]) if place < K else 0.0 for place in places])
            total += gain * WORLD.true_labels[user, item]
    return total / (WORLD.true_labels.sum() if metric == "recall" else SHAPE[0])


def of_best(size, seed, rankings=(SHARP, BLUNT)):
    """Draw pairs that are among the best by one of the rankings, those by one alone twice as likely."""
    among = sum((np.argsort(np.argsort(-one, axis=1), axis=1) < K).astype(float) for one in rankings)
    sizes = np.where(among == 1, 2.0, among / 2)
    chances = (sizes / sizes.sum()).ravel()
    cells = np.random.default_rng(seed).choice(chances.size, size, p=chances)
    users, items = np.divmod(cells, SHAPE[1])
    return vr.SurveySample(users, items, WORLD.true_labels[users, items], chances[cells], best=True)


def of_all(size, seed):
    users, items = np.random.default_rng(seed).integers([[80], [50]], size=(2, size))
    return vr.SurveySample(users, items, WORLD.true_labels[users, items])


@pytest.mark.parametrize("second", [BLUNT, COARSE], ids=["no ties", "ties"])
@pytest.mark.parametrize("by", ["log", "survey"])
def test_where_all_is_seen_it_is_the_difference(by, second):
    users, items = np.divmod(np.arange(80 * 50), 50)
    whole = vr.FeedbackLog.from_arrays(users, items, WORLD.true_labels.ravel(), n_users=80, n_items=50)
    asked = vr.SurveySample(users, items, WORLD.true_labels.ravel()) if by == "survey" else None
    found = vr.compare_rankings(SHARP, second, whole, propensities=np.ones(SHAPE), survey=asked)
    assert {*found} == {*DEEP, *(["auc"] if by == "log" else [])}
    for name in DEEP:
        assert found[name].value == pytest.approx(level(name, SHARP) - level(name, second), abs=1e-9), name
        assert found[name].diagnostics["source"] == by


@pytest.mark.parametrize("noise", [None, RATES, vr.NoiseRegion(0.2, 0.1)], ids=["none", "rates", "region"])
def test_by_the_log_it_is_the_difference_of_the_levels(noise):
    options = {"propensities": P, "noise_rates": noise, "k": K}
    found = vr.compare_rankings(SHARP, BLUNT, LOG, **options)
    one, two = (vr.estimate_ranking(scores, LOG, **options) for scores in (SHARP, BLUNT))
    assert {*found} == {*one}
    for name in found:
        if isinstance(noise, vr.NoiseRegion):
            # No noise at all is within the region.
            low, high = found[name].range
            assert low - 1e-9 <= vr.compare_rankings(SHARP, BLUNT, LOG, propensities=P, k=K)[name].value <= high + 1e-9
            continue
        levels = [each[name].diagnostics.get("outside", each[name].value) for each in (one, two)]
        assert found[name].value == pytest.approx(levels[0] - levels[1], abs=1e-9)
        # Errors of both are of the same rows: never more than both together.
        assert found[name].standard_error <= one[name].standard_error + two[name].standard_error


@pytest.mark.parametrize("by", ["best", "all", "log", "audit"])
def test_turned_round_it_changes_its_sign_alone(by):
    rows = np.random.default_rng(0).permutation(len(LOG))[:200]
    audit = vr.AuditSample(LOG.users[rows], LOG.items[rows], WORLD.true_labels[LOG.users[rows], LOG.items[rows]])
    options = {
        "best": {"survey": of_best(200, 0)},
        "all": {"survey": of_all(1500, 0)},
        "log": {"propensities": P},
        "audit": {"propensities": P, "audit": audit},
    }[by]
    found, turned = (vr.compare_rankings(*both, LOG, **options) for both in ((SHARP, BLUNT), (BLUNT, SHARP)))
    for name in found:
        assert turned[name].value == pytest.approx(-found[name].value, abs=1e-9)
        assert turned[name].interval == pytest.approx(tuple(-end for end in found[name].interval[::-1]), abs=1e-9)


def test_lists_tell_what_their_scores_tell():
    for options in ({"survey": of_best(200, 0)}, {"propensities": P}):
        found = vr.compare_rankings(lists_of(SHARP), lists_of(BLUNT), LOG, **options)
        scores = vr.compare_rankings(SHARP, BLUNT, LOG, **options)
        for name in found:
            assert found[name].value == pytest.approx(scores[name].value, rel=1e-9), name
            assert found[name].interval == pytest.approx(scores[name].interval, rel=1e-9), name


@pytest.mark.filterwarnings("ignore::verirec.exceptions.ScoreWarning")
def test_users_without_any_list_are_not_judged():
    """Those with one list are: the other has misses for them."""
    keep = np.repeat([0, 0, K, K], 20), np.repeat([0, K, K, 0], 20)
    lists = [lists_of(scores, kept) for scores, kept in zip((SHARP, BLUNT), keep, strict=True)]
    zeros = [np.where(kept[:, None] > 0, scores, 0.0) for scores, kept in zip((SHARP, BLUNT), keep, strict=True)]
    users, items = np.divmod(np.arange(80 * 50), 50)
    whole = vr.FeedbackLog.from_arrays(users, items, WORLD.true_labels.ravel(), n_users=80, n_items=50)
    found = vr.compare_rankings(*lists, whole, propensities=np.ones(SHAPE))["precision@5"]
    hits = [
        np.take_along_axis(WORLD.true_labels, np.argsort(-one, axis=1, kind="stable")[:, :K], 1).sum(axis=1)[kept > 0]
        for one, kept in zip(zeros, keep, strict=True)
    ]
    assert found.value == pytest.approx((hits[0].sum() - hits[1].sum()) / K / 60)


@pytest.mark.parametrize("design", ["best", "all"])
def test_surveys_are_right_on_average_and_know_their_error(design):
    """Over 80 surveys: means are the truth as far as chance allows, and errors as large as reported, to a quarter."""
    draw = {"best": lambda seed: of_best(150, seed), "all": lambda seed: of_all(1500, seed)}[design]
    both = [as_predictions(one, *SHAPE) for one in (SHARP, BLUNT)]
    names = DEEP if design == "all" else DEEP[:3]
    found = [ranking_difference_by_survey(both, draw(seed), LOG, None, [K]) for seed in range(80)]
    truths = np.array([level(name, SHARP) - level(name, BLUNT) for name in names])
    values = np.array([[one[name].value for name in names] for one in found])
    reported = np.sqrt(np.mean([[one[name].standard_error ** 2 for name in names] for one in found], axis=0))
    spread = values.std(axis=0, ddof=1)
    assert (np.abs((values.mean(axis=0) - truths) / spread) * np.sqrt(80) < largest_z(len(names))).all()
    assert reported / spread == pytest.approx(np.ones(len(names)), abs=0.25)


def test_the_same_ranking_twice_has_no_pair_that_tells():
    check_refusal(
        lambda: vr.compare_rankings(SHARP, SHARP, LOG, survey=of_best(200, 0)),
        SurveyError,
        r"too few pairs that stand at different places .*plan_labels\(purpose='ndcg@5'\) with both",
    )
    assert vr.compare_rankings(SHARP, SHARP, LOG, propensities=P)["ndcg@5"].interval == (0.0, 0.0)


def test_a_survey_of_one_ranking_does_not_tell_it_from_another():
    """Half of the pairs that matter could not be drawn."""
    check_refusal(
        lambda: vr.compare_rankings(SHARP, BLUNT, LOG, survey=of_best(300, 0, (SHARP,))), SurveyError, "too few pairs"
    )


def test_depths_beyond_the_lists_are_refused():
    check_refusal(
        lambda: vr.compare_rankings(lists_of(SHARP), BLUNT, LOG, propensities=P, k=6), ParameterError, "at most 5"
    )
