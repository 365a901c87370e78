"""The demo: the log prefers the worse recommender, labels in hand do not, and the page says so."""

from __future__ import annotations

import json

import numpy as np
import pytest

import verirec as vr
from parsed_page import Page, as_shown, check_estimates_table
from verirec.assessment import run_demo
from verirec.assessment.demo_page import demo_page, demo_summary

FROM_LOG, FROM_PANEL = "log-trained", "panel-trained"
ALONE, AUDITED, SURVEYED = "the log alone", "with an audit", "with a survey"
SEEDS = range(2)


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
def test_the_log_prefers_its_own_pupil_and_the_truth_the_panels_whatever_the_seed(demos, seed):
    demo = demos[seed]
    assert naive(demo, FROM_LOG).value < naive(demo, FROM_PANEL).value
    assert demo.truth[FROM_PANEL] < demo.truth[FROM_LOG]
    assert (demo.preferred_by_log, demo.truly_better) == (FROM_LOG, FROM_PANEL)


def check_stages(demo):
    """A range and no verdict, the same with an audit, and a verdict with a survey."""
    assert list(demo.stages) == [ALONE, AUDITED, SURVEYED]
    assert [(one.basis, one.comparisons[0].established) for one in demo.stages.values()] == [
        ("range", None),
        ("range", None),
        ("survey", FROM_PANEL),
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_only_the_survey_settles_it_and_settles_it_right(demos, seed):
    check_stages(demos[seed])


def held(demo, stage):
    """How many of a stage's headlines hold the truth."""
    found = demo.stages[stage]
    intervals = {name: one.estimates[one.headline].interval for name, one in found.recommenders.items()}
    return sum(low <= demo.truth[name] <= high for name, (low, high) in intervals.items())


def test_ranges_hold_the_truth_and_so_do_the_surveys_intervals(demos):
    for stage in (ALONE, AUDITED):
        assert [held(demo, stage) for demo in demos] == [2] * len(demos)
    # Of 4 intervals at 95%, in pairs that go together.
    assert sum(held(demo, SURVEYED) for demo in demos) >= 3


def test_an_audit_narrows_the_range(demo):
    for name in demo.truth:
        widths = [
            np.diff(demo.stages[stage].recommenders[name].estimates["range"].interval) for stage in (ALONE, AUDITED)
        ]
        assert widths[1] < 0.9 * widths[0]


def test_the_correction_that_assumes_no_taste_is_confidently_wrong_here(demos):
    """Why an audit is not enough: ome-dr with estimated propensities, beside the truth."""
    for demo in demos:
        for name, truth in demo.truth.items():
            low, high = demo.stages[AUDITED].recommenders[name].estimates["ome-dr"].interval
            assert not low <= truth <= high


@pytest.mark.long
def test_the_claims_of_the_page_hold_for_thirty_seeds_more():
    surveyed = 0
    for seed in range(10, 40):
        demo = run_demo(seed)
        assert (demo.preferred_by_log, demo.truly_better) == (FROM_LOG, FROM_PANEL), seed
        check_stages(demo)
        assert held(demo, ALONE) == held(demo, AUDITED) == 2, seed
        surveyed += held(demo, SURVEYED)
    # Of 60 intervals at 95%, in pairs that go together.
    assert surveyed >= 52


def test_the_naive_intervals_are_apart_so_that_more_of_the_same_data_would_not_help(demos):
    for demo in demos:
        assert naive(demo, FROM_LOG).interval[1] < naive(demo, FROM_PANEL).interval[0]


def test_no_part_of_the_demo_warns(demo):
    assert [found.warnings for found in demo.stages.values()] == [()] * 3


def test_the_recommenders_are_judged_on_ratings_that_none_has_learnt_from(demo):
    for found in demo.stages.values():
        assert len(found.log) == round(0.2 * len(demo.world.log))
    assert demo.stages[AUDITED].noise.diagnostics["audited"] == 600
    assert len(demo.assessment.survey) == 1_000


def test_the_survey_is_of_random_pairs_and_tells_the_truth(demo):
    world, survey = demo.world, demo.assessment.survey
    assert (world.true_labels[survey.users, survey.items] == survey.labels).all()
    assert not survey.noisy
    # As many of them are logged as of all pairs.
    assert abs(world.observed[survey.users, survey.items].mean() - world.observed.mean()) < 4 * np.sqrt(0.08 / 1_000)


@pytest.mark.parametrize("seed", SEEDS)
def test_truth_is_the_loss_by_the_worlds_true_labels(demos, seed):
    """Both learn again here, from the same split and the same panel, and every pair's true label judges them."""
    world = demos[seed].world
    random = np.random.default_rng(seed).spawn(1)[0]
    train, _ = vr.split(world.log, 0.2, by="random", random_state=random)
    asked = [random.choice(world.n_users, 40, replace=False) for _ in range(world.n_items)]
    likes = {
        FROM_LOG: [train.labels[train.items == item].sum() for item in range(world.n_items)],
        FROM_PANEL: [world.true_labels[users, item].sum() for item, users in enumerate(asked)],
    }
    rows = {FROM_LOG: np.bincount(train.items, minlength=world.n_items), FROM_PANEL: 40}
    liked = world.true_labels.mean(axis=0)
    for name in (FROM_LOG, FROM_PANEL):
        f = (np.array(likes[name]) + 1) / (rows[name] + 2)
        loss = -(liked * np.log(f) + (1 - liked) * np.log(1 - f)).mean()
        assert demos[seed].truth[name] == pytest.approx(loss, rel=1e-10)


def test_the_same_seed_gives_the_same_demo_to_the_letter(demos, demo, page):
    again = run_demo(0)
    assert demo_summary(again) == demo_summary(demo)
    assert demo_page(again) == page.source
    assert demo_summary(demos[1]) != demo_summary(demo)


# The summary


def test_the_summary_has_the_published_schema(demo, summary):
    published = ("truth", "noise_rates", "propensity", "selection", "recommenders", "headline", "verdicts")
    assert set(published) <= set(summary)
    assert summary["truth"].keys() == summary["recommenders"].keys() == {FROM_LOG, FROM_PANEL}
    for name, recommender in summary["recommenders"].items():
        assert {"naive", "dr", "survey", "survey-ppi"} <= set(recommender)
        assert summary["headline"][name] == {"estimator": "survey-ppi"} | recommender["survey-ppi"]
        assert recommender["survey-ppi"]["low"] < recommender["survey-ppi"]["value"] < recommender["survey-ppi"]["high"]
    assert summary["verdicts"] == [
        {"first": FROM_LOG, "second": FROM_PANEL, "better": FROM_PANEL, "established": True, "basis": "survey"}
    ]


def test_the_summary_has_what_every_stage_says(demo, summary):
    assert list(summary["stages"]) == [ALONE, AUDITED, SURVEYED]
    for stage, found in demo.stages.items():
        numbers = summary["stages"][stage]
        assert (numbers["basis"], numbers["verdicts"]) == (found.basis, found.verdicts)
        for name, one in found.recommenders.items():
            assert numbers["headline"][name] == {"estimator": one.headline} | one.estimates[one.headline].to_dict()
    assert summary["stages"][SURVEYED]["headline"] == summary["headline"]


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
    assert f"As it stands, the log prefers the {demo.preferred_by_log} recommender." in text
    assert f"The better one is the {demo.truly_better} recommender." in text
    assert f"{100 * demo.assessment.log.labels.mean():.1f}% of the logged labels are positive" in text
    assert "truth" in page.plot_texts


def test_the_page_says_how_the_world_was_made(demo, page):
    world, text = demo.world, page.text
    assert "How this world was made" in text
    assert "2,000 users and 600 items" in text
    assert f"{100 * world.true_labels.mean():.0f}% of all pairs are liked" in text
    assert f"{len(world.log):,} pairs ({100 * world.log.density:.1f}% of all) are in the log" in text
    assert (
        "40% of the likes are logged as dislikes and 30% of the dislikes as likes; the surer they are, the fewer"
        in text
    )
    assert "40 random users" in text
    assert "The true labels of 600 logged pairs" in text
    assert "Those of 1,000 random pairs" in text


def test_the_stages_stand_beside_the_truth(demo, page, summary):
    head, naive, *rows = [[cell.strip() for cell in row] for row in page.tables["stages"]]
    assert head == ["Judged by", *(f"{name}\ntruth {truth:.4f}" for name, truth in demo.truth.items()), "Verdict"]
    assert naive[0] == "the log at face value"
    assert naive[1:] == [
        *("\n".join(as_shown(summary["recommenders"][name]["naive"])) for name in demo.truth),
        f"{FROM_LOG}: wrong",
    ]
    for row, (stage, numbers) in zip(rows, summary["stages"].items(), strict=True):
        shown = ["\n".join(as_shown(numbers["headline"][name])) for name in demo.truth]
        assert row == [stage, *shown, numbers["verdicts"][0]["better"] or "left open"]
