"""Surveys that could draw a part of the grid only are found out, and others are not."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import verirec as vr
from refusals import check_refusal
from verirec.estimation.survey.support import drawable_share
from verirec.exceptions import SurveyError, SurveyWarning

SHAPE = (120, 90)
CELLS = SHAPE[0] * SHAPE[1]
pytestmark = pytest.mark.filterwarnings("ignore::verirec.exceptions.VerirecWarning")


@cache
def world():
    return vr.simulate.world(*SHAPE, observed=0.1, selectivity=2, random_state=3)


@cache
def scores_of(seed=0):
    return world().preferences + 0.3 * np.random.default_rng(seed).normal(size=SHAPE)


def place_of(scores):
    return np.argsort(np.argsort(-scores, axis=1), axis=1)


def survey_of(cells, chances, **more):
    users, items = np.divmod(cells, SHAPE[1])
    return vr.SurveySample(users, items, world().true_labels[users, items], probabilities=chances, **more)


def independent(chances, seed, **more):
    """Draw each pair by itself, with its own probability."""
    cells = np.flatnonzero(np.random.default_rng(seed).random(CELLS) < chances.ravel())
    return survey_of(cells, chances.ravel()[cells], **more)


def one_by_one(sizes, count, seed, **more):
    """Draw pairs one after the other; the probabilities are those of a single draw."""
    chances = sizes.ravel() / sizes.sum()
    cells = np.random.default_rng(seed).choice(CELLS, count, p=chances)
    return survey_of(cells, chances[cells], **more)


def tops(count=300, seed=0, depth=5, **more):
    return independent(np.where(place_of(scores_of()) < depth, count / (depth * SHAPE[0]), 0.0), seed, **more)


SIZES = {
    "even": np.ones(SHAPE),
    "as a plan's": 0.1 + 0.9 * np.abs(np.random.default_rng(0).normal(size=SHAPE)),
    "log-normal": np.exp(np.random.default_rng(0).normal(size=SHAPE)),
}


@pytest.mark.parametrize("count", [20, 100, 500])
@pytest.mark.parametrize("name", SIZES)
def test_surveys_of_all_pairs_are_taken_for_such(name, count):
    """In each of 200 surveys of either kind; an alarm at four standard errors would be one in 16,000."""
    sizes = SIZES[name]
    chances = count * sizes / sizes.sum()
    for seed in range(200):
        for survey in (independent(chances, seed), one_by_one(sizes, count, seed)):
            assert drawable_share(survey, np.arange(len(survey)), CELLS) is None


def test_surveys_of_clusters_are_taken_for_such():
    """Pairs of a user are drawn together, or not at all: the total varies more."""
    for seed in range(100):
        random = np.random.default_rng(seed)
        users = np.flatnonzero(random.random(SHAPE[0]) < 0.2)
        cells = (users[:, None] * SHAPE[1] + random.integers(SHAPE[1], size=(len(users), 10))).ravel()
        survey = survey_of(cells, np.full(len(cells), 0.2 * 10 / SHAPE[1]))
        assert drawable_share(survey, np.repeat(np.arange(len(users)), 10), CELLS) is None


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("kind", ["in all", "in each"])
def test_a_part_of_the_grid_is_found_out_with_its_size(kind, seed):
    wide = np.where(place_of(scores_of()) < 45, 1.0, 0.0)
    survey = independent(wide * 400 / wide.sum(), seed) if kind == "in all" else one_by_one(wide, 400, seed)
    share = drawable_share(survey, np.arange(len(survey)), CELLS)
    assert share == pytest.approx(0.5, abs=0.15)


def test_what_cannot_be_known_is_not_said():
    survey = tops()
    for chances in (None, 1e3 * survey.probabilities, 1e-9 * survey.probabilities):
        other = vr.SurveySample(survey.users, survey.items, survey.labels, chances)
        assert drawable_share(other, np.arange(len(other)), CELLS) is None


def likely():
    return np.clip(world().preferences, 0.02, 0.98)


ENTRIES = {
    "estimate": lambda survey: vr.estimate(likely(), world().log, survey=survey),
    "compare": lambda survey: vr.compare(likely(), scores_in_range(), world().log, survey=survey),
    "assess": lambda survey: vr.assess(world().log, {"mine": likely()}, survey=survey),
    "strength": lambda survey: vr.selection_strength(world().log, survey),
    "pilot": lambda survey: vr.plan_labels(world().log, likely(), budget=50, pilot=survey),
}


def scores_in_range():
    return np.clip(scores_of(), 0.01, 0.99)


@pytest.mark.parametrize("entry", ENTRIES)
def test_nothing_is_said_of_the_grid_by_top_pairs(entry):
    message = r"could draw only [56]\.\d% of the 10,800 pairs that the answer is for .*tells nothing of the others"
    check_refusal(lambda: ENTRIES[entry](tops()), SurveyError, message)


def test_pairs_that_are_left_out_need_not_be_drawn():
    """A survey of pairs that nobody logged is one of all that are spoken of without the log; not of all."""
    log = world().log
    unlogged = np.ones(SHAPE)
    unlogged[log.users, log.items] = 0
    survey = independent(unlogged * 2_000 / unlogged.sum(), 0)
    assert vr.estimate(likely(), log, survey=survey, exclude=log)["survey"].value > 0
    check_refusal(lambda: vr.estimate(likely(), log, survey=survey), SurveyError, "could draw only [89].\\..%")


def test_users_who_could_be_asked_are_the_frame():
    some = np.zeros(SHAPE)
    some[:30] = 300 / (30 * SHAPE[1])
    framed = independent(some, 0, frame=np.arange(30))
    assert vr.estimate(likely(), world().log, survey=framed)["survey"].diagnostics["target_users"] == 30
    check_refusal(
        lambda: vr.estimate(likely(), world().log, survey=independent(some, 0)),
        SurveyError,
        r"say which pairs could be drawn \(frame=",
    )


# Rankings


@pytest.mark.parametrize("best", [False, True])
def test_top_pairs_tell_the_ranking_that_they_are_of_and_no_other(best):
    survey = tops(best=best)
    own = vr.estimate_ranking(scores_of(), world().log, survey=survey)
    assert own["ndcg@5"].diagnostics["source"] == "survey"
    assert own["recall@5"].diagnostics["source"] == own["auc"].diagnostics["source"] == "log"
    with pytest.warns(SurveyWarning, match="too few pairs of the right kind for .*ndcg@5"):
        other = vr.estimate_ranking(scores_of(1), world().log, survey=survey)
    assert other["ndcg@5"].diagnostics["source"] == "log"


def test_pairs_of_fewer_places_tell_no_deeper_ranking():
    found = vr.estimate_ranking(scores_of(), world().log, survey=tops(depth=5, best=True), k=[5, 10])
    assert {name: one.diagnostics["source"] for name, one in found.items() if "n" in name} == {
        "ndcg@5": "survey",
        "precision@5": "survey",
        "ndcg@10": "log",
        "precision@10": "log",
    }
