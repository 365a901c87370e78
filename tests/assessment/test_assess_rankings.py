"""Assessments of rankings: by pairs among the best, with a verdict; and what is said where nothing can tell."""

from __future__ import annotations

import shlex
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest

import verirec as vr
from parsed_page import Page
from verirec.assessment.findings import Origin
from verirec.assessment.page import assessment_page

SHAPE = (120, 90)
pytestmark = pytest.mark.filterwarnings("ignore::verirec.exceptions.VerirecWarning")


@cache
def world():
    return vr.simulate.world(*SHAPE, observed=0.15, selectivity=2, random_state=0)


@cache
def lists():
    found = {}
    for name, size in (("sharp", 0.05), ("blunt", 0.8)):
        scores = world().preferences + size * np.random.default_rng(1).normal(size=SHAPE)
        items = np.argsort(-scores, axis=1)[:, :5]
        found[name] = pd.DataFrame(
            {"user": np.repeat(np.arange(120), 5), "item": items.ravel(), "rank": np.tile(np.arange(1, 6), 120)}
        )
    return found


@cache
def asked():
    plan = vr.plan_labels(world().log, lists(), budget=250, purpose="ndcg@5")
    return plan.survey(world().true_labels[plan.users, plan.items])


@cache
def by_best():
    return vr.assess(world().log, lists(), survey=asked())


@cache
def alone():
    return vr.assess(world().log, lists())


def test_rankings_that_are_too_many_to_compare_every_two_are_counted():
    many = {f"{name} {copy}": one for copy in range(3) for name, one in lists().items()}
    found = vr.assess(world().log, many, survey=asked())
    (told,) = (one for one in found.warnings if "pairs of recommenders" in one)
    assert told.startswith("the rankings of 12 pairs of recommenders are compared")
    assert "those of 3 more are not" in told


def test_pairs_among_the_best_tell_which_one_ranks_better():
    found = by_best()
    (one,) = found.ranking_comparisons
    same = vr.compare_rankings(lists()["sharp"], lists()["blunt"], world().log, survey=asked())
    assert one.deciding.interval == same["ndcg@5"].interval
    assert (one.established, one.other, one.basis) == ("sharp", "blunt", "survey")
    assert found.conclusions[0].startswith("sharp ranks better than blunt: its NDCG@5 is higher by")
    assert "of losses, and of all pairs, the page says what it would without a survey" in found.conclusions[1]
    assert found.summary["ranking_comparisons"][0]["better"] == "sharp"
    assert found.recommenders["sharp"].ranking["ndcg@5"].diagnostics["source"] == "survey"


def test_all_else_is_as_without_a_survey():
    found, other = by_best(), alone()
    assert found.survey is None
    assert (found.basis, found.liked_corrected.interval) == (other.basis, other.liked_corrected.interval)
    likely = np.clip(world().preferences, 0.02, 0.98)
    losses = [vr.assess(world().log, {"a": likely}, survey=survey) for survey in (asked(), None)]
    assert losses[0].summary["recommenders"] == losses[1].summary["recommenders"]


def test_the_page_has_the_verdict_and_no_condition_on_it():
    text = Page(assessment_page(by_best())).text
    assert "sharp ranks better" in text
    assert "How well they rank, if selection" not in text
    assert "250 pairs among the recommenders' best were asked about besides" in text
    assert "not settled" in text  # Recall, which such a survey does not tell.


def test_of_lists_alone_it_begins_with_what_cannot_be_told():
    found = alone()
    assert found.ranking_comparisons == ()
    assert found.conclusions[0].startswith("This log alone cannot tell which recommender ranks better")
    assert "verirec plan LOG --predictions sharp=FILE --predictions blunt=FILE" in found.conclusions[1]
    told = " ".join(found.conclusions)
    assert "calibrated" not in told
    assert "would give" not in told
    assert "top-k lists have no losses" in told
    assert "How well they rank, if selection depends on user and item only" in Page(assessment_page(found)).text


def test_the_command_to_copy_is_the_one_that_was_run():
    command = "verirec assess log.csv --rating 'my thumb' --predictions a=a.csv -k 10 --json --survey=s.csv --out page"
    told = replace(alone(), origin=Origin("log.csv", command), depth=10).conclusions[1]
    wanted = (
        "verirec plan log.csv --rating 'my thumb' --predictions a=a.csv --purpose ndcg@10 --budget 400 --out ask.csv"
    )
    assert shlex.split(wanted) == shlex.split(told.partition("best: ")[2].removesuffix(" chooses them."))


def test_known_propensities_tell_which_lists_rank_better():
    known = vr.GivenPropensity(world().propensity_values)
    found = vr.assess(world().log, lists(), propensities=known, noise_rates=vr.NoiseRates(0.0, 0.0))
    assert found.ranking_comparisons[0].basis == "known propensities"
