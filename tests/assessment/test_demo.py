"""The demo: the log prefers the worse recommender, the corrected figures do not, and the page says so."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import verirec as vr
from parsed_page import Page, check_estimates_table
from verirec.assessment import Demo, run_demo
from verirec.assessment.demo_page import demo_page, demo_summary

FROM_LOG, FROM_SURVEY = "learnt from the log", "learnt from a survey"
SEEDS = range(10)


@pytest.fixture(scope="module")
def demos():
    return [run_demo(seed) for seed in SEEDS]


@pytest.fixture(scope="module")
def demo(demos):
    return demos[0]


@pytest.fixture(scope="module")
def page(demo):
    return Page(demo_page(demo))


@pytest.fixture(scope="module")
def summary(demo):
    return json.loads(json.dumps(demo_summary(demo), allow_nan=False))


def naive(demo, name):
    return demo.assessment.recommenders[name].estimates["naive"]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_log_prefers_its_own_pupil_and_the_truth_the_surveys_whatever_the_seed(demos, seed):
    demo = demos[seed]
    assert naive(demo, FROM_LOG).value < naive(demo, FROM_SURVEY).value
    assert demo.truth[FROM_SURVEY] < demo.truth[FROM_LOG]
    assert (demo.preferred_by_log, demo.truly_better) == (FROM_LOG, FROM_SURVEY)


def test_corrected_the_log_never_establishes_the_wrong_one_and_mostly_the_right_one(demos):
    established = [demo.assessment.comparisons[0].established for demo in demos]
    assert FROM_LOG not in established
    assert established.count(FROM_SURVEY) >= 8


@pytest.mark.long
def test_the_claims_of_the_page_hold_for_a_hundred_seeds_more():
    established = []
    for seed in range(10, 110):
        demo = run_demo(seed)
        assert (demo.preferred_by_log, demo.truly_better) == (FROM_LOG, FROM_SURVEY), seed
        established.append(demo.assessment.comparisons[0].established)
    assert established.count(FROM_LOG) <= 1
    assert established.count(FROM_SURVEY) >= 70


def test_corrected_intervals_hold_the_truth(demos):
    held = 0
    for demo in demos:
        for name, truth in demo.truth.items():
            low, high = demo.assessment.recommenders[name].estimates["ome-dr"].interval
            held += low <= truth <= high
    # Of 20 intervals at 95%, in pairs that go together.
    assert held >= 16


def test_the_naive_intervals_are_apart_so_that_more_of_the_same_data_would_not_help(demos):
    for demo in demos:
        assert naive(demo, FROM_LOG).interval[1] < naive(demo, FROM_SURVEY).interval[0]


def test_no_part_of_the_demo_warns(demos):
    assert [demo.assessment.warnings for demo in demos] == [()] * len(demos)


def test_the_recommenders_are_judged_on_ratings_that_none_has_learnt_from(demo):
    assert len(demo.assessment.log) == round(0.2 * len(demo.world.log))
    assert demo.assessment.noise.diagnostics["audited"] == 600


@pytest.mark.parametrize("seed", [0, 3])
def test_truth_is_the_loss_by_the_worlds_true_labels(demos, seed):
    """Both learn again here, from the same split and the same survey, and every pair's true label judges them."""
    world = demos[seed].world
    random = np.random.default_rng(seed).spawn(1)[0]
    train, _ = vr.split(world.log, 0.2, by="random", random_state=random)
    asked = [random.choice(world.n_users, 40, replace=False) for _ in range(world.n_items)]
    likes = {
        FROM_LOG: [train.labels[train.items == item].sum() for item in range(world.n_items)],
        FROM_SURVEY: [world.true_labels[users, item].sum() for item, users in enumerate(asked)],
    }
    rows = {FROM_LOG: np.bincount(train.items, minlength=world.n_items), FROM_SURVEY: 40}
    liked = world.true_labels.mean(axis=0)
    for name in (FROM_LOG, FROM_SURVEY):
        f = (np.array(likes[name]) + 1) / (rows[name] + 2)
        loss = -(liked * np.log(f) + (1 - liked) * np.log(1 - f)).mean()
        assert demos[seed].truth[name] == pytest.approx(loss, rel=1e-10)


def test_the_same_seed_gives_the_same_demo_to_the_letter(demos, demo, page):
    again = run_demo(0)
    assert demo_summary(again) == demo_summary(demo)
    assert demo_page(again) == page.source
    assert demo_summary(demos[1]) != demo_summary(demo)


# The summary


def test_the_summary_has_the_published_schema(summary):
    assert {"truth", "noise_rates", "propensity", "recommenders"} <= set(summary)
    assert summary["truth"].keys() == summary["recommenders"].keys() == {FROM_LOG, FROM_SURVEY}
    for recommender in summary["recommenders"].values():
        assert {"naive", "dr", "ome-dr"} <= set(recommender)
        for one in recommender.values():
            assert one["low"] < one["value"] < one["high"]


def test_the_summarys_rates_are_those_of_its_audit_and_near_the_worlds(demo, summary):
    rates = summary["noise_rates"]
    assert rates["source"] == "an audit of 600 pairs"
    for name in ("rho01", "rho10"):
        low, high = rates["intervals"][name]
        assert low < rates[name] < high
        assert abs(rates[name] - getattr(demo.world.noise_rates, name)) < high - low


# The page


def test_the_page_loads_nothing_and_runs_nothing(page):
    assert {"html", "body", "svg", "table"} <= page.tags
    page.check_self_contained()


def test_ids_in_the_page_are_unique(page):
    assert len(page.ids) == len(set(page.ids))


def test_what_refers_to_an_id_in_the_page_finds_it(page):
    assert page.references <= set(page.ids)


def test_the_figures_of_the_page_are_those_of_the_summary(page, summary):
    check_estimates_table(page.tables["estimates"], summary)


def test_the_words_of_the_page_are_true_of_the_world(demo, page):
    text = page.text
    assert f"As it stands, the log prefers the recommender {demo.preferred_by_log} ." in text
    assert f"The better one is the recommender {demo.truly_better} ." in text
    assert f"{100 * demo.assessment.log.labels.mean():.1f}% of the logged labels are positive" in text
    assert "truth" in page.plot_texts


def test_the_page_says_how_the_world_was_made(demo, page):
    world, text = demo.world, page.text
    assert "How this world was made" in text
    assert "2,000 users and 600 items" in text
    assert f"{100 * world.true_labels.mean():.0f}% of all pairs are liked" in text
    assert f"{len(world.log):,} pairs ({100 * world.log.density:.1f}% of all) are in the log" in text
    assert "20% of the likes are logged as dislikes, and 10% of the dislikes as likes" in text
    assert "40 random users" in text
    assert "the true labels of 600 of the held-out pairs" in text


def test_what_is_established_is_said_as_it_is(demo):
    """Beyond doubt, the wrong way round, or left open."""
    comparison = demo.assessment.comparisons[0]
    assert (comparison.first, comparison.second) == (FROM_LOG, FROM_SURVEY)
    for interval, sentence in (
        ((0.1, 0.2), "the same ratings say so."),
        ((-0.2, -0.1), "the same ratings get it wrong here."),
        ((-0.1, 0.1), "the same ratings leave it open."),
    ):
        estimate = vr.Estimate(sum(interval) / 2, 0.01, interval)
        assert said_by(demo, replace(comparison, corrected=estimate, check=estimate)) == sentence


def said_by(demo, comparison):
    text = Page(demo_page(Demo(demo.world, replace(demo.assessment, comparisons=[comparison])))).text
    return re.search(r"Corrected for selection and noise, (the same ratings [^.]*\.)", text)[1]


def test_what_a_second_correction_contradicts_is_left_open(demo):
    comparison = demo.assessment.comparisons[0]
    assert said_by(demo, comparison) == "the same ratings say so."
    against = vr.Estimate(-0.1, 0.01, (-0.2, 0.1))
    assert said_by(demo, replace(comparison, check=against)) == "the same ratings leave it open."
