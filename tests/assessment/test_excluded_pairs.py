"""Pairs that an assessment does not speak of: its figures are those of the single calls that leave them out too."""

from __future__ import annotations

import numpy as np
import pytest

import verirec as vr
from refusals import check_refusal
from verirec.assessment import assess
from verirec.assessment.page import assessment_page
from verirec.assessment.training import hold_out_rows
from verirec.exceptions import EmptyLogError, ParameterError
from verirec.nuisance.propensities import as_propensities

RATES = vr.NoiseRates(0.2, 0.1)
SHAPE = (60, 80)
BY_LOG = ("naive", "snips", "dr", "ome", "ome-snips", "ome-dr", "audited-dr")


@pytest.fixture(scope="module")
def world():
    return vr.simulate.world(*SHAPE, observed=0.4, selectivity=1, noise_rates=RATES, random_state=5)


@pytest.fixture(scope="module")
def parts(world):
    return vr.split(world.log, 0.4, by="random", random_state=1)


@pytest.fixture(scope="module")
def given(world):
    return {"sharp": 0.1 + 0.8 * world.preferences, "blunt": 0.4 + 0.2 * world.preferences}


def truths(world, log, rows, **options):
    users, items = log.users[rows], log.items[rows]
    return vr.AuditSample(users, items, world.at(users, items).true_labels, **options)


def survey_of(world, size=400):
    users, items = np.random.default_rng(0).integers(np.array(SHAPE)[:, None], size=(2, size))
    return vr.SurveySample(users, items, world.at(users, items).true_labels)


def figures(estimates, names):
    return {name: estimates[name].to_dict() for name in names}


def same_as_the_single_calls(found, given, log, audit, propensities, exclude):
    """Compare levels and the difference of an assessment with those of `estimate` and `compare`."""
    options = {"propensities": propensities, "noise_rates": found.noise, "audit": audit, "exclude": exclude}
    for name, f in given.items():
        alone = vr.estimate(f, log, estimators=BY_LOG, **options)
        assert figures(found.recommenders[name].estimates, BY_LOG) == figures(alone, BY_LOG)
        everywhere = vr.estimate(f, log, estimators=BY_LOG, **(options | {"exclude": None}))
        for estimator in ("dr", "ome-dr", "audited-dr"):
            assert alone[estimator].value != everywhere[estimator].value
    (one,) = found.comparisons
    both = vr.compare(*given.values(), log, estimators=("naive", "ome-snips", "ome-dr", "audited-dr"), **options)
    for ours, name in ((one.naive, "naive"), (one.check, "ome-snips"), (one.corrected, "ome-dr")):
        assert ours.to_dict() == both[name].to_dict()
    assert one.deciding.to_dict() == both["audited-dr"].to_dict()


@pytest.mark.parametrize("form", ["training log", "pairs", "part of the log"])
def test_levels_and_differences_leave_out_what_estimate_and_compare_do(world, parts, given, form):
    train, held_out = parts
    p = np.asarray(world.propensities)
    log, p = (world.log, p) if form == "part of the log" else (held_out, 0.4 * p)
    first_ten = tuple(side.ravel() for side in np.indices((SHAPE[0], 10)))
    exclude = first_ten if form == "pairs" else train
    audit = truths(world, log, np.random.default_rng(0).choice(len(log), 300, replace=False))
    propensities = vr.GivenPropensity(p)
    found = assess(log, given, audit=audit, propensities=propensities, exclude=exclude)
    assert found.basis == "audit"
    assert len(found.log) == ((held_out.items >= 10).sum() if form == "pairs" else len(held_out))
    same_as_the_single_calls(found, given, log, audit, propensities, exclude)
    liked = lambda f, y: y  # noqa: E731
    alone = vr.estimate(
        np.full(SHAPE, 0.5),
        log,
        propensities=propensities,
        noise_rates=found.noise,
        exclude=exclude,
        estimators="ome-snips",
        loss=liked,
    )
    assert found.liked_corrected.to_dict() == alone["ome-snips"].to_dict()


def test_rows_that_are_held_out_speak_of_the_pairs_that_are_not_trained_on(world, given):
    """Its own training part is left out, with propensities of the whole log."""
    log = world.log
    audit = truths(world, log, np.random.default_rng(0).choice(len(log), 500, replace=False))
    propensities = vr.GivenPropensity(world.propensities)
    found = assess(log, given, audit=audit, propensities=propensities, hold_out=0.4)
    held = hold_out_rows(log, 0.4, (), 0)
    thinned = as_propensities(propensities, log).thinned(held.share)
    among = np.isin(audit.users * SHAPE[1] + audit.items, held.judging.users * SHAPE[1] + held.judging.items)
    judged = audit.select(among)
    same_as_the_single_calls(found, given, held.judging, judged, thinned, held.training)


def test_a_pair_that_two_logs_have_was_trained_on_once(world, parts, given):
    """A log trained on before and a part that is held out now overlap: neither the pairs nor their chance double."""
    train, log = parts[0], world.log
    options = {"noise_rates": RATES, "propensities": vr.GivenPropensity(world.propensities), "hold_out": 0.5}
    found = assess(log, given, exclude=train, **options)
    trained = hold_out_rows(log, 0.5, (), 0).training
    union = np.union1d(*(part.users * SHAPE[1] + part.items for part in (train, trained)))
    rows = np.flatnonzero(~np.isin(log.users * SHAPE[1] + log.items, union))
    assert len(found.log) == len(rows)
    share, p = len(rows) / len(log), world.propensities[log.users[rows], log.items[rows]]
    weights = (1 - (1 - share) * p) / (share * p)
    f = given["sharp"][log.users[rows], log.items[rows]]
    losses = np.where(log.labels[rows] == 1, -np.log(f), -np.log(1 - f))
    wanted = np.average(losses, weights=weights)
    assert found.recommenders["sharp"].estimates["snips"].value == pytest.approx(wanted, rel=1e-9)


def test_predictions_of_logged_pairs_leave_the_same_pairs_out(world, parts, given):
    train, held_out = parts
    propensities = vr.GivenPropensity(0.4 * world.propensities)
    rows = np.arange(0, len(held_out), 2)
    users, items = held_out.users[rows], held_out.items[rows]
    some = {name: (users, items, f[users, items]) for name, f in given.items()}
    found = assess(held_out, some, noise_rates=RATES, propensities=propensities, exclude=train)
    k, share = len(train) / len(held_out), len(rows) / len(held_out)
    p = 0.4 * world.propensities[users, items]
    f = some["sharp"][2]
    losses = np.where(held_out.labels[rows] == 1, -np.log(f), -np.log(1 - f))
    wanted = np.average(losses, weights=(1 - k * p) / (share * p))
    assert found.recommenders["sharp"].estimates["snips"].value == pytest.approx(wanted, rel=1e-9)


def test_an_audit_that_is_left_out_has_told_the_rates_and_no_more(world, given):
    log, rows = world.log, np.arange(400)
    audit = truths(world, log, rows)
    exclude = log.users[rows], log.items[rows]
    found = assess(log, given, audit=audit, propensities=vr.GivenPropensity(world.propensities), exclude=exclude)
    assert (found.noise_source, found.basis) == ("an audit of 400 pairs", "known propensities")
    assert "audited-dr" not in found.recommenders["sharp"].estimates


def test_what_a_survey_lacks_is_told_by_its_pairs_that_are_spoken_of(world, given):
    """Of 400 surveyed pairs three dislikes are left: nothing is established, whatever the interval says."""
    survey = survey_of(world)
    gone = np.flatnonzero(survey.labels == 0)[:-3]
    found = assess(world.log, given, survey=survey, exclude=(survey.users[gone], survey.items[gone]))
    (one,) = found.comparisons
    left = len(survey) - len(gone)
    assert one.lacking.startswith(f"only 3 of {left} surveyed pairs are disliked: nothing is established")
    assert one.lacking in found.warnings
    assert (one.established, found.verdicts[0]["established"]) == (None, False)
    assert one._ahead(one.deciding) is not None


def test_the_estimate_to_go_by_is_one_and_the_same(world, given):
    audit = truths(world, world.log, np.arange(300))
    for more in ({"audit": audit}, {"noise_rates": RATES}, {"survey": survey_of(world)}):
        for one in assess(world.log, given, **more).recommenders.values():
            assert one.headline == one.estimates.headline


# What to ask


def test_a_plan_goes_by_all_that_the_assessment_knows(world, parts, given):
    """By the survey there is, of the pairs that are spoken of, and not of those that are left out."""
    train, held_out = parts
    survey = survey_of(world, 100)
    close = {"sharp": given["sharp"], "sharper": 0.05 + 0.9 * world.preferences}
    found = assess(held_out, close, noise_rates=RATES, survey=survey, exclude=train)
    (one,) = found.comparisons
    assert one.established is None
    width = float(np.clip(abs(one.deciding.value) / 2, 0.005, 0.03))
    alone = vr.plan_labels(
        held_out, close, half_width=width, purpose="difference", pilot=survey, exclude=train, guess=RATES
    )
    assert found.plan.to_frame().equals(alone.to_frame())
    assert "the pilot's" in found.plan.assumes
    asked, trained = (set(zip(one.users.tolist(), one.items.tolist(), strict=True)) for one in (found.plan, train))
    assert not asked & trained


def test_answers_with_noise_in_them_are_no_pilot(world, given, monkeypatch):
    asked, random = [], np.random.default_rng(0)
    monkeypatch.setattr("verirec.assessment.planning.plan_labels", lambda *_, **options: asked.append(options))
    close = {"sharp": given["sharp"], "nearly": np.clip(given["sharp"] + random.normal(0, 0.02, SHAPE), 0.05, 0.95)}
    clean = survey_of(world, 100)
    noisy = vr.SurveySample(clean.users, clean.items, clean.labels, noisy=True)
    for survey in (clean, noisy):
        found = assess(world.log, close, noise_rates=RATES, survey=survey)
        assert found.comparisons[0].established is None
    assert [options["pilot"] for options in asked] == [clean, None]


def test_clipped_predictions_are_planned_for(world):
    certain = {"yes": (world.preferences > 0.5) * 1.0, "no": (world.preferences > 0.55) * 1.0}
    found = assess(world.log, certain, noise_rates=RATES, clip=0.1)
    assert found.plan is not None
    assert any("chosen by verirec plan" in sentence for sentence in found.conclusions)


def test_where_propensities_are_known_logged_pairs_are_planned_too(world, given):
    close = {"sharp": given["sharp"], "sharper": 0.05 + 0.9 * world.preferences}
    found = assess(world.log, close, propensities=vr.GivenPropensity(world.propensities))
    assert found.comparisons[0].established is None
    logged = int(found.plan.logged.sum())
    assert logged > 0
    assert any(
        f"an audit of {logged:,} logged pairs, chosen by verirec plan, would give" in one.lower()
        for one in found.conclusions
    )


def test_where_no_number_of_pairs_would_do_there_is_no_plan(world, given):
    same = {"one": given["sharp"], "same": given["sharp"]}
    assert assess(world.log, same, noise_rates=RATES).plan is None


def test_any_other_mistake_in_planning_is_told(world, given, monkeypatch):
    def broken(*_, **__):
        raise ParameterError("broken")

    monkeypatch.setattr("verirec.assessment.planning.plan_labels", broken)
    check_refusal(lambda: assess(world.log, given, noise_rates=RATES), ParameterError, "broken")


def test_surveyed_pairs_that_are_left_out_are_counted(world, parts, given):
    survey = survey_of(world)
    trained = {*zip(parts[0].users.tolist(), parts[0].items.tolist(), strict=True)}
    both = sum(pair in trained for pair in zip(survey.users.tolist(), survey.items.tolist(), strict=True))
    assert assess(world.log, given, noise_rates=RATES, survey=survey).not_spoken_of == 0
    assert assess(world.log, given, noise_rates=RATES, survey=survey, exclude=parts[0]).not_spoken_of == both > 0


# Nothing left


def test_where_all_rows_are_left_out_only_labels_and_ranges_can_speak(world, given):
    log = world.log
    told = "exclude leaves too few rows of the log to judge by"
    for more in ({"survey": survey_of(world)}, {}):
        found = assess(log, given, noise_rates=RATES, exclude=log, **more)
        assert any(warning.startswith(told) for warning in found.warnings)
        name = "survey-ppi" if more else "range"
        selection = {} if more else {"selection": vr.SelectionRange()}
        alone = vr.estimate(given["sharp"], log, noise_rates=RATES, exclude=log, **more, **selection)
        ours = found.recommenders["sharp"].estimates[name]
        assert ours.interval == pytest.approx(alone[alone.headline].interval, rel=1e-9)
    known = {"propensities": vr.GivenPropensity(world.propensities), "noise_rates": RATES, "exclude": log}
    check_refusal(lambda: assess(log, given, **known), EmptyLogError, "at least 2 rows; the log has 0")


@pytest.mark.parametrize("left_out", [True, False])
def test_the_page_says_that_pairs_are_left_out(world, parts, given, left_out):
    exclude = parts[0] if left_out else None
    known = vr.GivenPropensity(world.propensities)
    page = assessment_page(assess(world.log, given, noise_rates=RATES, propensities=known, exclude=exclude))
    said = " ".join(page.split())
    assert ("rated or not, but for those left out; smaller" in said) == left_out
    assert ("rated or not, but for those left out, by what people" in said) == left_out
