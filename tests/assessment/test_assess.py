"""The assessment: the figures of the single calls, put together, and verdicts that say no more than they allow."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import verirec as vr
from refusals import check_refusal
from verirec.assessment import Comparison, assess, assessment_summary, conclusions
from verirec.estimation.catalogue import chosen
from verirec.estimation.coverage import covered_rows
from verirec.estimation.rows import LoggedPairs
from verirec.estimation.sensitivity import flip_factor
from verirec.estimation.setup import make_problem
from verirec.exceptions import (
    AuditError,
    EmptyLogError,
    LabelError,
    MisfitWarning,
    NoiseRateError,
    ParameterError,
    PredictionError,
    SmallAuditWarning,
)
from verirec.nuisance.propensities import as_propensities
from verirec.nuisance.suspects import SuspectLabels

RATES = vr.NoiseRates(0.2, 0.1)
SHAPE = (150, 200)


def known(world):
    """Propensities that are vouched for."""
    return vr.GivenPropensity(world.propensities)


@pytest.fixture(scope="module")
def world():
    return vr.simulate.world(*SHAPE, observed=0.2, selectivity=1, noise_rates=RATES, random_state=4)


@pytest.fixture(scope="module")
def recommenders(world):
    return {"sharp": 0.1 + 0.8 * world.preferences, "blunt": 0.4 + 0.2 * world.preferences}


@pytest.fixture(scope="module")
def found(world, recommenders):
    return assess(world.log, recommenders, noise_rates=RATES, propensities=known(world))


@pytest.fixture(scope="module")
def without_labels(world, recommenders):
    """Neither rates nor true labels are known."""
    return assess(world.log, recommenders, propensities=known(world))


@pytest.fixture(scope="module")
def close(world):
    """Two that a log alone does not tell apart."""
    return {"sharp": 0.1 + 0.8 * world.preferences, "sharper": 0.05 + 0.9 * world.preferences}


@pytest.fixture(scope="module")
def unsettled(world, close):
    """Nothing is known but the log."""
    return assess(world.log, close)


def figures(estimates):
    return {name: one.to_dict() for name, one in estimates.items()}


def triples(f, log, rows):
    users, items = log.users[rows], log.items[rows]
    return users, items, f[users, items]


def audit_of(world, size, seed=0):
    rows = np.random.default_rng(seed).choice(len(world.log), size, replace=False)
    users, items = world.log.users[rows], world.log.items[rows]
    return vr.AuditSample(users, items, world.at(users, items).true_labels)


# The figures are those of the single calls


def test_every_estimate_is_that_of_estimate(world, recommenders, found):
    for name, f in recommenders.items():
        estimators = ("naive", "snips", "dr", "ome", "ome-snips", "ome-dr")
        alone = vr.estimate(
            f, world.log, propensities=known(world), noise_rates=RATES, estimators=estimators, random_state=0
        )
        assert figures(found.recommenders[name].estimates) == figures(alone)
        one = found.recommenders[name]
        assert (one.headline, one.corrected, one.selection_only) == ("ome-dr", "ome-dr", "dr")
        assert one.covered is None


def test_every_two_are_compared_as_compare_does(world, recommenders):
    three = recommenders | {"half": np.full(SHAPE, 0.5)}
    found = assess(world.log, three, noise_rates=RATES, propensities=known(world))
    assert [(one.first, one.second) for one in found.comparisons] == [
        ("sharp", "blunt"),
        ("sharp", "half"),
        ("blunt", "half"),
    ]
    for one in found.comparisons:
        alone = vr.compare(three[one.first], three[one.second], world.log, propensities=known(world), noise_rates=RATES)
        assert one.naive.to_dict() == alone["naive"].to_dict()
        assert one.corrected.to_dict() == alone["ome-dr"].to_dict()
        assert (one.deciding, one.basis) == (one.corrected, "known propensities")
        check = vr.compare(
            three[one.first],
            three[one.second],
            world.log,
            propensities=known(world),
            noise_rates=RATES,
            estimators="ome-snips",
        )
        assert one.check.to_dict() == check["ome-snips"].to_dict()


OPTIONS = {"loss": "squared", "confidence": 0.8, "clip": 0.42, "sample": 2_000, "random_state": 7}


@pytest.mark.filterwarnings("ignore:clip=0.42 changed")
@pytest.mark.parametrize("changed", [*([name] for name in OPTIONS), [*OPTIONS]], ids=" ".join)
def test_options_reach_estimates_comparisons_and_sensitivity(world, recommenders, found, changed):
    # A seed alone changes nothing where all pairs are visited.
    options = {name: OPTIONS[name] for name in (*changed, *(["sample"] if changed == ["random_state"] else []))}
    given = {"noise_rates": RATES, "propensities": known(world)}
    other = assess(world.log, recommenders, **given, **options)
    if changed == ["random_state"]:
        found = assess(world.log, recommenders, **given, sample=OPTIONS["sample"])
    for name, f in recommenders.items():
        estimators = tuple(other.recommenders[name].estimates)
        alone = vr.estimate(f, world.log, estimators=estimators, **given, **options)
        assert (
            figures(other.recommenders[name].estimates) == figures(alone) != figures(found.recommenders[name].estimates)
        )
    (one,), (before,) = other.comparisons, found.comparisons
    both = ("naive", "ome-snips", "ome-dr")
    alone = vr.compare(*recommenders.values(), world.log, estimators=both, **given, **options)
    assert figures({"naive": one.naive, "ome-snips": one.check, "ome-dr": one.corrected}) == figures(alone)
    assert one.corrected.to_dict() != before.corrected.to_dict()
    # Sensitivity has no interval.
    varied = {name: option for name, option in options.items() if name != "confidence"}
    alone = vr.sensitivity(recommenders, world.log, **given, **varied)
    assert other.sensitivity.surfaces == alone.surfaces
    assert other.sensitivity.propensity_ranges == alone.propensity_ranges
    assert (other.sensitivity.surfaces == found.sensitivity.surfaces) == (changed == ["confidence"])
    # The ranges are of logged pairs, whatever the sample.
    same_ranges = changed in (["confidence"], ["sample"], ["random_state"])
    assert (other.sensitivity.propensity_ranges == found.sensitivity.propensity_ranges) == same_ranges
    assert (other.loss, other.confidence) == (options.get("loss", "log"), options.get("confidence", 0.95))
    reach = np.diff(other.liked_corrected.interval)[0] / np.diff(found.liked_corrected.interval)[0]
    assert reach == pytest.approx(1.2816 / 1.96 if "confidence" in changed else 1, rel=1e-4)


def test_the_seed_reaches_the_search_for_wrong_labels(world, found):
    other = assess(world.log, noise_rates=RATES, propensities=known(world), random_state=7)
    alone = vr.find_suspect_labels(world.log, RATES, random_state=7)
    assert other.suspects.rows.tolist() == alone.rows.tolist() != found.suspects.rows.tolist()
    assert other.suspects.probabilities.tolist() == alone.probabilities.tolist()


def proposed(log, recommenders, comparison, **options):
    """The plan that would settle a difference: to half of what it seems to be, within bounds."""
    width = float(np.clip(abs(sum(comparison.corrected.range)) / 4, 0.005, 0.03))
    return vr.plan_labels(log, recommenders, half_width=width, purpose="difference", **options)


def test_confidence_and_seed_reach_the_region_and_the_plan(world, close, unsettled):
    options = {"confidence": 0.8, "random_state": 7}
    other = assess(world.log, close, **options)
    assert other.noise == vr.identified_region(world.log, **options)
    plan = proposed(world.log, close, other.comparisons[0], **options)
    assert (other.plan.users.tolist(), other.plan.items.tolist()) == (plan.users.tolist(), plan.items.tolist())
    assert other.plan.confidence == 0.8
    assert len(other.plan) < len(unsettled.plan)
    for changed in ({"confidence": 0.8}, {"random_state": 7}):
        assert vr.identified_region(world.log, **changed) != unsettled.noise
        plan = proposed(world.log, close, unsettled.comparisons[0], **changed)
        assert plan.users.tolist() != unsettled.plan.users.tolist()


def test_confidence_and_seed_reach_ranges_over_the_region(world, recommenders):
    options = {"confidence": 0.8, "random_state": 7}
    other = assess(world.log, recommenders, propensities=known(world), **options)
    # The ranges are those over that region.
    given = {"propensities": known(world), "noise_rates": other.noise}
    alone = vr.compare(*recommenders.values(), world.log, estimators="ome-dr", **given, **options)["ome-dr"]
    assert other.comparisons[0].corrected.to_dict() == alone.to_dict()
    ranges = vr.sensitivity(recommenders, world.log, **given, random_state=7).propensity_ranges
    assert other.sensitivity.propensity_ranges == ranges


def test_with_a_sample_the_comparison_is_the_difference_of_the_estimates_beside_it(world, recommenders):
    found = assess(world.log, recommenders, noise_rates=RATES, propensities=known(world), sample=2_000)
    sharp, blunt = (found.recommenders[name].estimates["ome-dr"].value for name in ("sharp", "blunt"))
    assert found.comparisons[0].corrected.value == pytest.approx(sharp - blunt, abs=1e-9)


def test_with_a_generator_both_visit_the_same_pairs_too(world, recommenders):
    found = assess(
        world.log,
        {"one": recommenders["sharp"], "same": recommenders["sharp"]},
        noise_rates=RATES,
        propensities=known(world),
        sample=2_000,
        random_state=np.random.default_rng(0),
    )
    assert found.comparisons[0].corrected.value == 0


def test_suspects_and_surfaces_are_those_of_the_single_calls(world, recommenders, found):
    alone = vr.find_suspect_labels(world.log, RATES)
    assert isinstance(found.suspects, SuspectLabels)
    assert found.suspects.rows.tolist() == alone.rows.tolist()
    surfaces = vr.sensitivity(recommenders, world.log, propensities=known(world), noise_rates=RATES)
    assert found.sensitivity.surfaces == surfaces.surfaces
    assert found.sensitivity.propensity_ranges == surfaces.propensity_ranges
    assert found.plan is None


def test_the_share_of_liked_pairs_is_corrected_towards_the_truth(world, found):
    assert found.liked_as_logged == world.log.labels.mean()
    low, high = found.liked_corrected.interval
    assert low <= world.true_labels.mean() <= high
    assert not low <= found.liked_as_logged <= high
    weights = 1 / world.propensities[world.log.users, world.log.items]
    corrected = (np.average(world.log.labels, weights=weights) - 0.1) / 0.7
    assert found.liked_corrected.value == pytest.approx(corrected)


def test_rates_come_from_the_audit_if_there_is_one(world, recommenders):
    audit = audit_of(world, 400)
    found = assess(world.log, recommenders, audit=audit, propensities=known(world))
    assert found.noise == vr.AuditNoiseRates().fit(world.log, audit=audit)
    assert found.noise_source == "an audit of 400 pairs"
    assert assess(world.log, noise_rates=RATES).noise_source == "given"


def test_an_audit_works_without_recommenders(world):
    found = assess(world.log, noise_rates=RATES)
    assert (found.recommenders, found.comparisons, found.sensitivity) == ({}, [], None)
    assert len(found.suspects) == len(world.log)


def test_grouped_rates_go_through(world, recommenders):
    rates = vr.GroupedNoiseRates((RATES, vr.NoiseRates(0.1, 0.05)), user_groups=np.arange(SHAPE[0]) % 2)
    found = assess(world.log, recommenders, noise_rates=rates, propensities=known(world))
    alone = vr.estimate(recommenders["sharp"], world.log, propensities=known(world), noise_rates=rates)
    assert found.recommenders["sharp"].estimates["ome-dr"].to_dict() == alone["ome-dr"].to_dict()


def test_the_same_seed_gives_the_same_audit(world, recommenders):
    one, again = (assess(world.log, recommenders, audit=audit_of(world, 400), random_state=3) for _ in range(2))
    for name in recommenders:
        assert figures(one.recommenders[name].estimates) == figures(again.recommenders[name].estimates)
    assert assessment_summary(one) == assessment_summary(again)


def test_each_step_is_told(world, recommenders):
    steps = []
    assess(world.log, recommenders, noise_rates=RATES, progress=steps.append)
    assert "Judging sharp" in steps
    assert "Comparing sharp with blunt" in steps
    assert len(steps) == len(set(steps))


# Predictions of a part of the pairs


def test_predictions_of_all_logged_pairs_are_judged_by_what_needs_no_more(world, recommenders, found):
    log = world.log
    given = {name: triples(f, log, np.arange(len(log))) for name, f in recommenders.items()}
    part = assess(log, given, noise_rates=RATES, propensities=known(world))
    for name, one in part.recommenders.items():
        assert (one.headline, one.corrected, one.selection_only) == ("ome-snips", "ome-snips", "snips")
        assert one.ranking is None
        assert one.covered == len(log)
        whole = figures(found.recommenders[name].estimates)
        assert figures(one.estimates) == {kind: whole[kind] for kind in ("naive", "snips", "ome", "ome-snips")}
    assert part.sensitivity is None
    (both,) = part.comparisons
    expected = vr.compare(
        *recommenders.values(), log, propensities=known(world), noise_rates=RATES, estimators="ome-snips"
    )
    assert both.corrected.to_dict() == expected["ome-snips"].to_dict()
    # There is no second estimator that needs no more.
    assert both.check is None


def test_predictions_of_some_rows_are_judged_on_these_and_say_so(world, recommenders):
    log = world.log
    rows = np.sort(np.random.default_rng(0).choice(len(log), 2_000, replace=False))
    given = recommenders | {"part": triples(recommenders["sharp"], log, rows)}
    found = assess(log, given, noise_rates=RATES, propensities=known(world))
    part = found.recommenders["part"]
    users, items, scores = given["part"]
    labels = log.labels[rows]
    losses = [-np.log(f if label else 1 - f) for f, label in zip(scores, labels, strict=True)]
    assert part.estimates["naive"].value == pytest.approx(np.mean(losses))
    weights = 1 / world.propensities[users, items]
    assert part.estimates["snips"].value == pytest.approx(np.average(losses, weights=weights))
    assert part.covered == 2_000
    # It is compared with none, and the others are compared all the same.
    assert [(one.first, one.second) for one in found.comparisons] == [("sharp", "blunt")]
    assert found.incomparable == [("sharp", "part"), ("blunt", "part")]


def test_two_that_cover_the_very_same_rows_are_compared_on_these(world, recommenders):
    log = world.log
    random = np.random.default_rng(0)
    rows = np.sort(random.choice(len(log), 2_000, replace=False))
    given = recommenders | {
        "part of sharp": triples(recommenders["sharp"], log, rows),
        # In whatever order they come.
        "part of blunt": triples(recommenders["blunt"], log, random.permutation(rows)),
        "other part": triples(recommenders["blunt"], log, rows[1:]),
    }
    found = assess(log, given, noise_rates=RATES, propensities=known(world))
    compared = {(one.first, one.second): one for one in found.comparisons}
    assert list(compared) == [("sharp", "blunt"), ("part of sharp", "part of blunt")]
    assert len(found.incomparable) == 10 - 2
    both = compared["part of sharp", "part of blunt"]
    first, second = (found.recommenders[name].estimates for name in ("part of sharp", "part of blunt"))
    for difference, name in ((both.naive, "naive"), (both.corrected, "ome-snips")):
        assert difference.value == pytest.approx(first[name].value - second[name].value, rel=1e-9)
    # Of two that are so far apart that is told from a third of the rows, and by a narrower interval than one by one.
    assert both.established == "part of sharp"
    assert both.corrected.standard_error < first["ome-snips"].standard_error + second["ome-snips"].standard_error
    assert both.check is None


def test_judging_a_fair_part_of_the_rows_is_no_misfit_of_the_propensities(world, recommenders):
    log = world.log
    rows = np.sort(np.random.default_rng(0).choice(len(log), 2_000, replace=False))
    given = {"part": triples(recommenders["sharp"], log, rows)}
    found = assess(log, given, noise_rates=RATES, propensities=known(world))
    assert not [warning for warning in found.warnings if "add up to" in warning]


def test_triples_of_every_pair_are_predictions_of_all_pairs(world, recommenders):
    users, items = (side.ravel() for side in np.indices(SHAPE))
    assert covered_rows((users, items, recommenders["sharp"].ravel()), world.log) is None
    assert covered_rows(recommenders["sharp"], world.log) is None
    assert covered_rows(lambda u, i: np.full(len(u), 0.5), world.log) is None


def test_predictions_of_pairs_that_are_not_in_the_log_are_refused(world):
    users, items = np.nonzero(~world.observed)
    outside = (users[:50], items[:50], np.full(50, 0.5))
    check_refusal(
        lambda: assess(world.log, {"x": outside}, noise_rates=RATES),
        PredictionError,
        "predictions cover 0 of the .* logged pairs; at least 2 are needed",
    )


# Without rates or true labels


def test_without_true_labels_the_figures_are_ranges_over_what_the_log_allows(world, recommenders, without_labels):
    region = vr.identified_region(world.log)
    assert without_labels.noise == region
    assert without_labels.noise_source == "all that the log allows"
    for name, f in recommenders.items():
        alone = vr.estimate(f, world.log, propensities=known(world), noise_rates=region, estimators=("ome-dr", "naive"))
        one = without_labels.recommenders[name].estimates
        assert isinstance(one["ome-dr"], vr.EstimateRange)
        assert one["ome-dr"].to_dict() == alone["ome-dr"].to_dict()
        assert one["naive"].to_dict() == alone["naive"].to_dict()
    assert isinstance(without_labels.comparisons[0].corrected, vr.EstimateRange)
    assert isinstance(without_labels.liked_corrected, vr.EstimateRange)
    assert without_labels.suspects is None


def test_what_is_open_is_planned_for(world, close, unsettled):
    """Two recommenders that are not told apart: a survey of random pairs. None at all: an audit of logged ones."""
    (one,) = unsettled.comparisons
    assert (one.basis, one.established) == ("range", None)
    plan = proposed(world.log, close, one)
    assert unsettled.plan.users.tolist() == plan.users.tolist()
    assert len(unsettled.plan) > 20
    assert not unsettled.plan.logged.any()
    alone = assess(world.log).plan
    assert alone.users.tolist() == vr.plan_labels(world.log, half_width=0.03).users.tolist()
    assert alone.logged.all()


def test_where_nothing_is_open_nobody_is_asked(found, without_labels):
    for one in (found, without_labels):
        assert (one.comparisons[0].established, one.plan) == ("sharp", None)


def test_a_log_too_small_for_the_proposed_plan_is_audited_all_the_same():
    """Noise rates to +-.03 would take more labels than there are rows."""
    small = vr.simulate.world(60, 50, observed=0.2, selectivity=1, random_state=0)
    assert assess(small.log).plan is None
    found = assess(small.log, {"mine": 0.1 + 0.7 * small.preferences})
    assert isinstance(found.recommenders["mine"].estimates["ome-dr"], vr.EstimateRange)
    assert found.plan.purpose == "level"


# Verdicts


def test_a_difference_beyond_doubt_is_established(found):
    (one,) = found.comparisons
    assert one.corrected.interval[1] < 0
    assert (one.established, one.naive_choice) == ("sharp", "sharp")


def test_the_order_of_the_recommenders_does_not_matter(world, recommenders):
    turned = dict(reversed(recommenders.items()))
    found = assess(world.log, turned, noise_rates=RATES, propensities=known(world))
    assert found.comparisons[0].corrected.interval[0] > 0


def test_a_difference_within_its_error_is_not_established(world, recommenders):
    nearly = recommenders["sharp"] + 0.02 * np.random.default_rng(0).normal(size=SHAPE).clip(-2, 2)
    given = {"one": recommenders["sharp"], "other": np.clip(nearly, 0.05, 0.95)}
    found = assess(world.log, given, noise_rates=RATES, propensities=known(world))
    low, high = found.comparisons[0].corrected.interval
    assert low < 0 < high
    assert found.comparisons[0].established is None


def test_a_recommender_and_itself_are_not_told_apart(world, recommenders):
    given = {"one": recommenders["sharp"], "other": recommenders["sharp"].copy()}
    found = assess(world.log, given, noise_rates=RATES, propensities=known(world))
    assert found.comparisons[0].established is None


BASES = ("survey", "audit", "known propensities", "range")


def estimate(low, high):
    return vr.Estimate((low + high) / 2, (high - low) / 4, (low, high))


def ranging(low, high):
    """A range, widened by a tenth to its interval."""
    ends = estimate(low, low), estimate(high, high)
    return vr.EstimateRange((low, high), (low - 0.1, high + 0.1), 0.95, *ends)


@pytest.mark.parametrize(
    ("interval", "better"),
    [((-0.2, -0.1), "a"), ((0.1, 0.2), "b"), ((-0.1, 0.1), None), ((0.0, 0.0), None), ((0.0, 0.1), None)],
)
def test_established_is_what_the_interval_leaves_no_doubt_of(interval, better):
    one, open_ = estimate(*interval), estimate(-0.1, 0.1)
    for basis in BASES:
        decided = Comparison("a", "b", one, basis, open_, open_)
        assert (decided.established, decided.naive_choice, decided.contradicted) == (better, None, False)
    # Neither the log as it stands nor its correction decides where something else does, or nothing.
    for basis in (*BASES, None):
        undecided = Comparison("a", "b", open_, basis, one, one)
        assert (undecided.established, undecided.naive_choice) == (None, better)
    assert Comparison("a", "b", one, None, one, one).established is None
    assert Comparison("a", "b", one, "survey", one, one, lacking="too few").established is None


@pytest.mark.parametrize(
    ("corrected", "check", "better", "contradicted"),
    [
        (estimate(-0.2, -0.1), None, "a", False),
        (estimate(-0.2, -0.1), estimate(-0.3, -0.2), "a", False),
        # The second one need not be sure, but must not have the other ahead.
        (estimate(-0.2, -0.1), estimate(-0.3, 0.2), "a", False),
        (estimate(-0.2, -0.1), estimate(0.0, 0.0), "a", False),
        (estimate(-0.2, -0.1), estimate(-0.2, 0.3), None, True),
        (estimate(-0.2, -0.1), estimate(0.2, 0.3), None, True),
        (estimate(0.1, 0.2), estimate(0.1, 0.2), "b", False),
        (estimate(0.1, 0.2), estimate(-0.2, 0.3), "b", False),
        (estimate(0.1, 0.2), estimate(-0.3, 0.2), None, True),
        (estimate(0.1, 0.2), estimate(-0.3, -0.2), None, True),
        # Nothing to contradict.
        (estimate(-0.1, 0.1), estimate(0.2, 0.3), None, False),
        (estimate(-0.1, 0.1), estimate(-0.3, -0.2), None, False),
        # Ranges: by the interval, and contradicted where all of the second range has the other ahead.
        (ranging(-0.5, -0.2), ranging(-0.5, -0.2), "a", False),
        (ranging(-0.5, -0.05), ranging(-0.5, -0.2), None, False),
        (ranging(-0.5, -0.2), ranging(-0.5, 0.2), "a", False),
        (ranging(-0.5, -0.2), ranging(0.01, 0.2), None, True),
        (ranging(0.2, 0.5), ranging(0.2, 0.5), "b", False),
        (ranging(0.2, 0.5), ranging(-0.3, 0.5), "b", False),
        (ranging(0.2, 0.5), ranging(-0.3, -0.01), None, True),
    ],
)
def test_a_second_estimator_that_has_the_other_ahead_contradicts(corrected, check, better, contradicted):
    for naive in (estimate(-0.2, -0.1), estimate(0.1, 0.2)):
        for basis in ("audit", "known propensities"):
            one = Comparison("a", "b", corrected, basis, naive, corrected, check)
            assert (one.established, one.contradicted) == (better, contradicted)
        # Estimates by propensities cannot contradict what does not rest on them.
        for basis in ("survey", "range"):
            one = Comparison("a", "b", corrected, basis, naive, corrected, check)
            assert (one.established, one.contradicted) == (one._ahead(corrected), False)


def test_the_other_of_two():
    one = Comparison("a", "b", estimate(0, 1), "survey", estimate(0, 1), estimate(0, 1))
    assert (one.other("a"), one.other("b")) == ("b", "a")


@pytest.fixture(scope="module")
def tasteful():
    """A world where taste decides what is logged, with propensities that know nothing of taste and are vouched for."""
    world = vr.simulate.world(*SHAPE, observed=0.2, selectivity=5, noise_rates=RATES, random_state=1)
    given = {
        "sharp": 0.1 + 0.8 * world.preferences,
        "rosy": 0.3 + 0.6 * world.preferences,
        "half": np.full(SHAPE, 0.45),
    }
    blind = vr.LogisticPropensity().fit(world.log)
    vouched = vr.GivenPropensity(blind.block(np.arange(SHAPE[0]), np.arange(SHAPE[1])))
    return world, given, assess(world.log, given, noise_rates=RATES, propensities=vouched)


def compared(found, first, second):
    return next(one for one in found.comparisons if (one.first, one.second) == (first, second))


def test_verdicts_by_propensities_state_what_they_assume(tasteful):
    _, _, found = tasteful
    said = [one for one in conclusions(found) if f"All this holds if {found.propensities.assumption};" in one]
    assert len(said) == 1


def test_where_two_corrections_disagree_nothing_is_established(tasteful):
    """By its interval the doubly robust estimate would be sure of the wrong one."""
    world, given, found = tasteful
    one = compared(found, "sharp", "rosy")
    assert one.corrected.interval[0] > 0 > one.check.value
    assert world.true_inaccuracy(given["sharp"]) < world.true_inaccuracy(given["rosy"])
    assert (one.contradicted, one.established) == (True, None)
    (said,) = (sentence for sentence in conclusions(found) if sentence.startswith("Whether sharp or rosy"))
    assert "a sign that the propensities are wrong" in said


@pytest.mark.parametrize("propensities", ["estimated", "unvouched", "default"])
def test_propensities_that_nobody_vouches_for_establish_nothing_of_themselves(tasteful, propensities):
    """The very propensities that were sure of the wrong one, estimated or as a bare matrix: the range decides."""
    world, given, vouched = tasteful
    blind = vr.LogisticPropensity()
    matrix = blind.fit(world.log).block(np.arange(SHAPE[0]), np.arange(SHAPE[1]))
    used = {"estimated": blind, "unvouched": matrix, "default": None}[propensities]
    found = assess(world.log, given, noise_rates=RATES, propensities=used)
    assert {one.basis for one in found.comparisons} == {found.basis} == {"range"}
    for one in found.comparisons:
        assert isinstance(one.deciding, vr.EstimateRange)
        # The correction is shown, and does not decide.
        assert one.corrected.value == pytest.approx(compared(vouched, one.first, one.second).corrected.value, rel=1e-9)
        truly = min((one.first, one.second), key=lambda name: world.true_inaccuracy(given[name]))
        assert one.established in (None, truly)
    assert all(one.headline == "range" for one in found.recommenders.values())


def test_with_the_right_propensities_the_same_two_are_told_apart(tasteful):
    world, given, _ = tasteful
    other = assess(world.log, given, noise_rates=RATES, propensities=known(world))
    one = next(one for one in other.comparisons if (one.first, one.second) == ("sharp", "rosy"))
    assert (one.contradicted, one.established) == (False, "sharp")


def test_the_flip_factor_is_that_of_both_recommenders_and_of_the_noise(world, recommenders, found, without_labels):
    """Up to it the range of the self-normalised difference leaves 0 out, and a little beyond it does not."""
    pairs = LoggedPairs(world.log, as_propensities(world.propensities, world.log))
    studies = [make_problem(f, pairs, chosen("ome-snips", with_rates=True)) for f in recommenders.values()]
    for other in (found, without_labels):
        factor = flip_factor(*studies, other.noise)
        assert other.comparisons[0].flip_factor == factor
        assert 1 < factor < 20
    assert found.comparisons[0].flip_factor > without_labels.comparisons[0].flip_factor


# Warnings


def test_warnings_are_collected_once_and_not_shown(world, recommenders):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = assess(
            world.log, recommenders, audit=audit_of(world, 30), propensities=np.full(SHAPE, 0.5), random_state=0
        )
    assert len(found.warnings) == len(set(found.warnings))
    assert len([warning for warning in found.warnings if "an audit of 30 pairs" in warning]) == 1
    assert len([warning for warning in found.warnings if "weights add up to" in warning]) == 1


def test_what_is_collected_is_what_the_single_calls_warn_of(world, recommenders):
    found = assess(world.log, recommenders, audit=audit_of(world, 30), propensities=np.full(SHAPE, 0.5))
    with pytest.warns(SmallAuditWarning) as small:
        rates = vr.AuditNoiseRates().fit(world.log, audit=audit_of(world, 30))
    with pytest.warns(MisfitWarning) as misfit:
        vr.estimate(recommenders["sharp"], world.log, propensities=np.full(SHAPE, 0.5), noise_rates=rates)
    assert {str(one.message) for one in [*small, *misfit]} <= set(found.warnings)


def test_warnings_that_are_not_ours_go_on_to_the_caller(world):
    def old(users, items):
        warnings.warn("old", DeprecationWarning, stacklevel=1)
        return np.full(np.broadcast(users, items).shape, 0.5)

    with pytest.warns(DeprecationWarning, match="old"):
        found = assess(world.log, {"mine": old}, noise_rates=RATES, propensities=known(world))
    assert not [warning for warning in found.warnings if "old" in warning]


# Refusals


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"noise_rates": (0.2, 0.1)}, ParameterError, "noise_rates must be such as"),
        ({"noise_rates": None, "audit": "file.csv"}, ParameterError, "audit must be an AuditSample; got str"),
        ({"confidence": 1.5}, ParameterError, "confidence must be"),
        ({"loss": "nope"}, ParameterError, "loss must be"),
        ({"clip": 0.7}, ParameterError, "clip must be"),
        ({"predictions": {"x": np.full((2, 2), 0.5)}}, PredictionError, "^x: .*shape"),
        ({"sample": 1}, ParameterError, "sample must be"),
        ({"random_state": -1}, ParameterError, "random_state must be"),
        ({"predictions": np.full(SHAPE, 0.5)}, ParameterError, "^predictions must be a mapping .*; got ndarray$"),
        ({"predictions": [np.full(SHAPE, 0.5)]}, ParameterError, "^predictions must be a mapping .*; got list$"),
        ({"truth": [0.5]}, ParameterError, "^truth must be a mapping .*; got list$"),
        ({"truth": 0.5}, ParameterError, "^truth must be a mapping .*; got float$"),
        ({"truth": {"sharp": "low"}}, ParameterError, "^truth of sharp must be a finite number; got 'low'$"),
        ({"truth": {"sharp": np.nan}}, ParameterError, "^truth of sharp must be a finite number; got nan$"),
        ({"truth": {"sharp": None}}, ParameterError, "^truth of sharp must be a finite number; got None$"),
        ({"truth": {"sharp": [0.5]}}, ParameterError, r"^truth of sharp must be a finite number; got \[0.5\]$"),
        ({"progress": 3}, ParameterError, "^progress must be a function of a line of text; got 3$"),
        ({"ready": "now"}, ParameterError, "^ready must be a function of an Assessment; got 'now'$"),
        ({"log": "one class"}, LabelError, "both classes"),
        ({"log": "empty"}, EmptyLogError, "at least 2 rows"),
        (
            {"noise_rates": vr.GroupedNoiseRates((RATES,), item_groups=np.zeros(3, int))},
            NoiseRateError,
            "item_groups must name the group of all 200 items",
        ),
        (
            {"noise_rates": None, "audit": vr.AuditSample([0, 1], [0, 0], [1, 1])},
            AuditError,
            "none of the 2 audited pairs|true negative",
        ),
    ],
)
def test_bad_input_is_told_in_one_line(world, recommenders, change, error, message):
    log = world.log
    logs = {
        "one class": vr.FeedbackLog.from_arrays(log.users, log.items, np.ones(len(log), int), n_users=150, n_items=200),
        "empty": log.select([]),
    }
    given = {"predictions": recommenders, "noise_rates": RATES} | change | {"log": logs.get(change.get("log"), log)}
    check_refusal(lambda: assess(**given), error, message)


def test_both_rates_and_an_audit_are_refused(world):
    check_refusal(
        lambda: assess(world.log, noise_rates=RATES, audit=audit_of(world, 300)), ParameterError, "noise_rates|audit"
    )


@pytest.mark.parametrize("name", [1, None, "", "  ", "\ud800", "\x1b", "a\nb", "a\u202eb", b"a", ("a", "b")], ids=repr)
@pytest.mark.parametrize("argument", ["predictions", "truth"])
def test_a_name_that_cannot_be_written_down_is_refused(world, argument, name):
    given = {"predictions": {name: np.full(SHAPE, 0.5)}, "truth": {name: 0.5}}
    check_refusal(
        lambda: assess(world.log, noise_rates=RATES, **{argument: given[argument]}),
        ParameterError,
        f"^{argument} must name recommenders by printable text; got ",
    )


@pytest.mark.parametrize("name", ["a b", "推荐", "🎬", "0", "<b>"])
def test_any_other_text_is_a_name(world, name):
    found = assess(world.log, {name: np.full(SHAPE, 0.4)}, noise_rates=RATES, propensities=known(world))
    assert list(found.recommenders) == [name]


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (np.full((2, 2), 0.5), PredictionError, "shape"),
        (np.full(SHAPE, np.nan), PredictionError, "finite"),
        (np.ones(SHAPE), PredictionError, "strictly between 0 and 1"),
        (([0, 0], [0, 0], [0.5, 0.5]), PredictionError, "twice|more than once|duplicate"),
        ("file.csv", PredictionError, "predictions"),
    ],
)
def test_an_error_of_one_recommender_names_it(world, recommenders, wrong, error, message):
    given = recommenders | {"the third": wrong}
    check_refusal(
        lambda: assess(world.log, given, noise_rates=RATES, propensities=known(world)),
        error,
        f"^the third: .*({message})",
    )


# Scores that are not probabilities


def test_only_scores_that_are_no_probabilities_are_calibrated_and_they_are_named(world, recommenders):
    given = recommenders | {"stars": 1 + 4 * recommenders["sharp"]}
    found = assess(world.log, given, noise_rates=RATES, propensities=known(world), calibrate="platt")
    rest, apart = vr.split(world.log, 0.2, random_state=0)
    assert found.calibrated == assessment_summary(found)["calibrated"] == {"stars": len(apart)}
    told = f"Scores that are not probabilities were made such for stars (by {len(apart):,} logged rows); the other"
    assert any(sentence.startswith(told) for sentence in conclusions(found))
    p = known(world).thinned(len(rest) / len(world.log))
    for name in recommenders:
        own = vr.estimate(given[name], rest, propensities=p, noise_rates=RATES)["ome-dr"]
        assert found.recommenders[name].estimates["ome-dr"].value == pytest.approx(own.value, rel=1e-12)


def test_where_all_are_probabilities_calibrating_changes_nothing(world, recommenders, found):
    same = assess(world.log, recommenders, noise_rates=RATES, propensities=known(world), calibrate="platt")
    assert same.calibrated == {}
    assert figures(same.recommenders["sharp"].estimates) == figures(found.recommenders["sharp"].estimates)


@pytest.mark.parametrize("loss", ["log", "squared"])
def test_scores_stay_scores_with_a_clip(world, recommenders, loss):
    given = {"sharp": recommenders["sharp"], "stars": 1 + 4 * recommenders["sharp"]}
    found = assess(world.log, given, noise_rates=RATES, propensities=known(world), clip=1e-6, loss=loss)
    assert found.recommenders["stars"].estimates is None
    assert found.comparisons == []


def test_its_repr_is_one_short_line(found):
    assert repr(found) == (
        f"Assessment({len(found.log):,} rows, 2 recommenders, by known propensities: 1 of 1 differences established)"
    )


def test_the_main_part_is_given_before_the_rest(world, recommenders):
    early = []
    whole = assess(world.log, recommenders, noise_rates=RATES, ready=early.append)
    (main,) = early
    assert main.verdicts == whole.verdicts
    assert (main.sensitivity, main.plan) == (None, None)
    assert whole.sensitivity is not None
    assert "not finished" in main.warnings[0]
    assert not any("not finished" in told for told in whole.warnings)
    assert main.summary["recommenders"] == whole.summary["recommenders"]
