"""A plan as a list to fill in, and back."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import verirec as vr
from refusals import check_refusal
from verirec.exceptions import AuditError, SurveyError
from verirec.pages.writing import write_table


@pytest.fixture(scope="module")
def world():
    return vr.simulate.world(80, 90, observed=0.3, noise_rates=vr.NoiseRates(0.05, 0.02), random_state=0)


@pytest.fixture(scope="module")
def log(world):
    """The world's log, with ids."""
    given = world.log
    return vr.FeedbackLog.from_arrays(
        given.users,
        given.items,
        given.labels,
        n_users=80,
        n_items=90,
        user_ids=[f"=u{place:03}" for place in range(80)],
        item_ids=np.arange(90) * 10,
    )


@pytest.fixture(scope="module")
def plan(world, log):
    """A plan of both kinds of pairs."""
    import dataclasses

    random = vr.plan_labels(log, 0.1 + 0.8 * world.preferences, budget=120)
    audit = vr.plan_labels(log, budget=80, guess=vr.NoiseRates(0.05, 0.02))
    parts = ("users", "items", "logged", "probabilities")
    order = np.random.default_rng(0).permutation(200)
    joined = {name: np.concatenate([getattr(random, name), getattr(audit, name)])[order] for name in parts}
    return dataclasses.replace(random, **joined)


def test_the_frame_is_a_list_to_fill_in(plan, log):
    frame = plan.to_frame()
    assert list(frame.columns) == ["kind", "user", "item", "label", "true_label", "probability"]
    assert len(frame) == len(plan) == 200
    assert frame["true_label"].isna().all()
    assert frame["user"].tolist() == [f"=u{user:03}" for user in plan.users]
    assert frame["item"].tolist() == (10 * plan.items).tolist()
    assert frame["kind"].tolist() == ["logged" if one else "random" for one in plan.logged]
    assert frame["probability"].tolist() == plan.probabilities.tolist()
    said = {(user, item): label for user, item, label in zip(log.users, log.items, log.labels, strict=True)}
    for row, user, item in zip(frame.itertuples(), plan.users, plan.items, strict=True):
        assert pd.isna(row.label) if row.kind == "random" else row.label == said[user, item]
    assert "<table" in plan._repr_html_()


def test_a_plan_says_what_it_is(plan):
    simple, width = plan.simple, plan.half_width
    assert repr(plan) == (
        f"LabelPlan(200 pairs: 80 logged, 120 random, {simple} if chosen at random; level to within {width:.2g})"
    )
    assert plan.half_width == max(plan.half_widths.values())


@pytest.mark.parametrize("part", ["all", "some"])
def test_answers_come_back_as_samples_from_python_and_from_files_alike(world, log, plan, tmp_path, part):
    truth = world.true_labels[plan.users, plan.items].astype(float)
    if part == "some":
        truth[::3] = np.nan
    write_table(tmp_path / "plan.csv", plan.to_frame().assign(true_label=truth))
    survey, audit = plan.survey(truth), plan.audit(truth)
    from_file = (
        vr.SurveySample.from_file(tmp_path / "plan.csv", log),
        vr.AuditSample.from_file(tmp_path / "plan.csv", log),
    )
    told = ~np.isnan(truth)
    for kind, sample, read, labels in (
        (~plan.logged, survey, from_file[0], "labels"),
        (plan.logged, audit, from_file[1], "true_labels"),
    ):
        assert sample.users.tolist() == read.users.tolist() == plan.users[kind & told].tolist()
        assert sample.items.tolist() == read.items.tolist() == plan.items[kind & told].tolist()
        assert getattr(sample, labels).tolist() == getattr(read, labels).tolist() == truth[kind & told].tolist()
        share = (kind & told).sum() / kind.sum()
        np.testing.assert_allclose(sample.probabilities, share * plan.probabilities[kind & told], rtol=1e-12)
        np.testing.assert_allclose(read.probabilities, sample.probabilities, rtol=1e-12)


def test_options_of_a_survey_are_passed_on(plan, world):
    truth = world.true_labels[plan.users, plan.items]
    assert plan.survey(truth, noisy=True).noisy


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.ones(3), "true_labels must have an entry for each of the 200 pairs; got 3"),
        (np.full(200, 2.0), "must be 0/1"),
        (np.full(200, np.nan), "no (logged|random) pair of the plan has a true label"),
        (["a"] * 200, "true_labels must be numbers"),
    ],
)
def test_bad_answers_are_told_in_one_line(plan, labels, message):
    check_refusal(lambda: plan.audit(labels), AuditError, message)
    check_refusal(lambda: plan.survey(labels), SurveyError, message)


def test_a_plan_of_best_pairs_is_no_survey_of_losses(world, log, tmp_path):
    scores = 0.1 + 0.8 * world.preferences
    plan = vr.plan_labels(log, scores, budget=60, purpose="ndcg@5")
    truths = world.true_labels[plan.users, plan.items]
    frame = plan.to_frame()
    assert set(frame["kind"]) == {"best"}
    frame["true_label"] = truths
    frame.to_csv(tmp_path / "plan.csv", index=False)
    for survey in (plan.survey(truths), vr.SurveySample.from_file(tmp_path / "plan.csv", log)):
        assert survey.best
        check_refusal(
            lambda survey=survey: vr.estimate(scores, log, survey=survey), SurveyError, "among their users' best"
        )
