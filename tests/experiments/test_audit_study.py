"""The audit: the figures of the single calls, put together, and conclusions that say no more than they allow."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import verirec as vr
from refusals import check_refusal
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
from verirec.experiments import run_audit
from verirec.experiments.audit import Comparison, covered_rows
from verirec.nuisances.suspects import SuspectLabels

RATES = vr.NoiseRates(0.2, 0.1)
SHAPE = (150, 200)


@pytest.fixture(scope="module")
def world():
    return vr.simulate.world(*SHAPE, observed=0.2, selectivity=1, noise_rates=RATES, random_state=4)


@pytest.fixture(scope="module")
def recommenders(world):
    return {"sharp": 0.1 + 0.8 * world.preferences, "blunt": 0.4 + 0.2 * world.preferences}


@pytest.fixture(scope="module")
def found(world, recommenders):
    return run_audit(world.log, recommenders, noise_rates=RATES, propensities=world.propensities)


@pytest.fixture(scope="module")
def without_labels(world, recommenders):
    """Neither rates nor true labels are known."""
    return run_audit(world.log, recommenders, propensities=world.propensities)


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
            f, world.log, propensities=world.propensities, noise_rates=RATES, estimators=estimators, random_state=0
        )
        assert figures(found.recommenders[name].estimates) == figures(alone)
        assert (found.recommenders[name].main, found.recommenders[name].selection_only) == ("ome-dr", "dr")
        assert found.recommenders[name].coverage == ""


def test_every_two_are_compared_as_compare_does(world, recommenders):
    three = recommenders | {"half": np.full(SHAPE, 0.5)}
    found = run_audit(world.log, three, noise_rates=RATES, propensities=world.propensities)
    assert [(one.first, one.second) for one in found.comparisons] == [
        ("sharp", "blunt"),
        ("sharp", "half"),
        ("blunt", "half"),
    ]
    for one in found.comparisons:
        alone = vr.compare(
            three[one.first], three[one.second], world.log, propensities=world.propensities, noise_rates=RATES
        )
        assert one.naive.to_dict() == alone["naive"].to_dict()
        assert one.corrected.to_dict() == alone["ome-dr"].to_dict()


def test_options_reach_the_estimates(world, recommenders):
    options = {"loss": "squared", "confidence": 0.8, "clip": 0.01, "sample": 2_000, "random_state": 7}
    found = run_audit(world.log, recommenders, noise_rates=RATES, propensities=world.propensities, **options)
    alone = vr.estimate(
        recommenders["sharp"],
        world.log,
        noise_rates=RATES,
        propensities=world.propensities,
        estimators="ome-dr",
        **options,
    )
    assert found.recommenders["sharp"].estimates["ome-dr"].to_dict() == alone["ome-dr"].to_dict()
    assert (found.loss, found.confidence) == ("squared", 0.8)


def test_with_a_sample_the_comparison_is_the_difference_of_the_estimates_beside_it(world, recommenders):
    found = run_audit(world.log, recommenders, noise_rates=RATES, propensities=world.propensities, sample=2_000)
    sharp, blunt = (found.recommenders[name].estimates["ome-dr"].value for name in ("sharp", "blunt"))
    assert found.comparisons[0].corrected.value == pytest.approx(sharp - blunt, abs=1e-9)


def test_with_a_generator_both_visit_the_same_pairs_too(world, recommenders):
    found = run_audit(
        world.log,
        {"one": recommenders["sharp"], "same": recommenders["sharp"]},
        noise_rates=RATES,
        propensities=world.propensities,
        sample=2_000,
        random_state=np.random.default_rng(0),
    )
    assert found.comparisons[0].corrected.value == 0


def test_suspects_and_surfaces_are_those_of_the_single_calls(world, recommenders, found):
    alone = vr.find_suspect_labels(world.log, RATES)
    assert isinstance(found.suspects, SuspectLabels)
    assert found.suspects.rows.tolist() == alone.rows.tolist()
    surfaces = vr.sensitivity(recommenders, world.log, propensities=world.propensities, noise_rates=RATES)
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
    found = run_audit(world.log, recommenders, audit=audit, propensities=world.propensities)
    assert found.noise == vr.AuditNoiseRates().fit(world.log, audit=audit)
    assert found.noise_source == "an audit of 400 pairs"
    assert run_audit(world.log, noise_rates=RATES).noise_source == "given"


def test_an_audit_works_without_recommenders(world):
    found = run_audit(world.log, noise_rates=RATES)
    assert (found.recommenders, found.comparisons, found.sensitivity) == ({}, [], None)
    assert len(found.suspects) == len(world.log)


def test_grouped_rates_go_through(world, recommenders):
    rates = vr.GroupedNoiseRates((RATES, vr.NoiseRates(0.1, 0.05)), user_groups=np.arange(SHAPE[0]) % 2)
    found = run_audit(world.log, recommenders, noise_rates=rates, propensities=world.propensities)
    alone = vr.estimate(recommenders["sharp"], world.log, propensities=world.propensities, noise_rates=rates)
    assert found.recommenders["sharp"].estimates["ome-dr"].to_dict() == alone["ome-dr"].to_dict()


def test_the_same_seed_gives_the_same_audit(world, recommenders):
    one, again = (run_audit(world.log, recommenders, audit=audit_of(world, 400), random_state=3) for _ in range(2))
    for name in recommenders:
        assert figures(one.recommenders[name].estimates) == figures(again.recommenders[name].estimates)
    assert one.conclusions == again.conclusions


def test_each_step_is_told(world, recommenders):
    steps = []
    run_audit(world.log, recommenders, noise_rates=RATES, progress=steps.append)
    assert "Judging sharp" in steps
    assert "Comparing sharp with blunt" in steps
    assert len(steps) == len(set(steps))


# Predictions of a part of the pairs


def test_predictions_of_all_logged_pairs_are_judged_by_what_needs_no_more(world, recommenders, found):
    log = world.log
    given = {name: triples(f, log, np.arange(len(log))) for name, f in recommenders.items()}
    part = run_audit(log, given, noise_rates=RATES, propensities=world.propensities)
    for name, one in part.recommenders.items():
        assert (one.main, one.selection_only) == ("ome-snips", "snips")
        assert one.coverage.startswith("all logged pairs but not all others")
        whole = figures(found.recommenders[name].estimates)
        assert figures(one.estimates) == {kind: whole[kind] for kind in ("naive", "snips", "ome", "ome-snips")}
    assert part.sensitivity is None
    (both,) = part.comparisons
    expected = vr.compare(
        *recommenders.values(), log, propensities=world.propensities, noise_rates=RATES, estimators="ome-snips"
    )
    assert both.corrected.to_dict() == expected["ome-snips"].to_dict()


def test_predictions_of_some_rows_are_judged_on_these_and_say_so(world, recommenders):
    log = world.log
    rows = np.sort(np.random.default_rng(0).choice(len(log), 2_000, replace=False))
    given = recommenders | {"part": triples(recommenders["sharp"], log, rows)}
    found = run_audit(log, given, noise_rates=RATES, propensities=world.propensities)
    part = found.recommenders["part"]
    users, items, scores = given["part"]
    labels = log.labels[rows]
    losses = [-np.log(f if label else 1 - f) for f, label in zip(scores, labels, strict=True)]
    assert part.estimates["naive"].value == pytest.approx(np.mean(losses))
    weights = 1 / world.propensities[users, items]
    assert part.estimates["snips"].value == pytest.approx(np.average(losses, weights=weights))
    assert part.coverage.startswith(f"some of the logged pairs, 2,000 of {len(log):,}: judged on these")
    # It is compared with none, and the others are compared all the same.
    assert [(one.first, one.second) for one in found.comparisons] == [("sharp", "blunt")]


def test_judging_a_fair_part_of_the_rows_is_no_misfit_of_the_propensities(world, recommenders):
    log = world.log
    rows = np.sort(np.random.default_rng(0).choice(len(log), 2_000, replace=False))
    given = {"part": triples(recommenders["sharp"], log, rows)}
    found = run_audit(log, given, noise_rates=RATES, propensities=world.propensities)
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
        lambda: run_audit(world.log, {"x": outside}, noise_rates=RATES),
        PredictionError,
        "predictions cover 0 of the .* logged pairs; at least 2 are needed",
    )


# Without rates or true labels


def test_without_true_labels_the_figures_are_ranges_over_what_the_log_allows(world, recommenders, without_labels):
    region = vr.identified_region(world.log)
    assert without_labels.noise == region
    assert without_labels.noise_source == "all that the log allows"
    for name, f in recommenders.items():
        alone = vr.estimate(
            f, world.log, propensities=world.propensities, noise_rates=region, estimators=("ome-dr", "naive")
        )
        one = without_labels.recommenders[name].estimates
        assert isinstance(one["ome-dr"], vr.EstimateRange)
        assert one["ome-dr"].to_dict() == alone["ome-dr"].to_dict()
        assert one["naive"].to_dict() == alone["naive"].to_dict()
    assert isinstance(without_labels.comparisons[0].corrected, vr.EstimateRange)
    assert isinstance(without_labels.liked_corrected, vr.EstimateRange)
    assert without_labels.suspects is None


def test_without_true_labels_it_says_how_many_to_ask_about(world, without_labels):
    plan = vr.plan_audit(world.log, half_width=0.03)
    assert without_labels.plan.rows.tolist() == plan.rows.tolist()
    assert f"ask about {len(plan):,} of the logged pairs" in without_labels.conclusions[0]
    assert "cannot be told from this log alone" in without_labels.conclusions[0]


def test_a_log_too_small_for_the_proposed_plan_is_audited_all_the_same():
    small = vr.simulate.world(60, 50, observed=0.2, selectivity=1, random_state=0)
    found = run_audit(small.log, {"mine": 0.1 + 0.7 * small.preferences})
    assert found.plan is None
    assert isinstance(found.recommenders["mine"].estimates["ome-dr"], vr.EstimateRange)
    assert "cannot be told from this log alone" in found.conclusions[0]


# Conclusions


def test_a_difference_beyond_doubt_is_established(found):
    (one,) = found.comparisons
    assert one.corrected.interval[1] < 0
    assert (one.established, one.naive_choice) == ("sharp", "sharp")
    assert "sharp is better than blunt: established, and the log as it stands agrees." in found.conclusions


def test_the_order_of_the_recommenders_does_not_matter(world, recommenders):
    turned = dict(reversed(recommenders.items()))
    found = run_audit(world.log, turned, noise_rates=RATES, propensities=world.propensities)
    assert found.comparisons[0].corrected.interval[0] > 0
    assert "sharp is better than blunt: established, and the log as it stands agrees." in found.conclusions


def test_a_difference_within_its_error_is_not_established(world, recommenders):
    nearly = recommenders["sharp"] + 0.02 * np.random.default_rng(0).normal(size=SHAPE).clip(-2, 2)
    given = {"one": recommenders["sharp"], "other": np.clip(nearly, 0.05, 0.95)}
    found = run_audit(world.log, given, noise_rates=RATES, propensities=world.propensities)
    low, high = found.comparisons[0].corrected.interval
    assert low < 0 < high
    assert found.comparisons[0].established is None
    assert "Whether one or other is better is not established." in found.conclusions


def test_a_recommender_and_itself_are_not_told_apart(world, recommenders):
    given = {"one": recommenders["sharp"], "other": recommenders["sharp"].copy()}
    found = run_audit(world.log, given, noise_rates=RATES, propensities=world.propensities)
    assert found.comparisons[0].established is None


def test_where_log_and_truth_disagree_it_says_which_one_the_log_prefers():
    """People rate what they like: predicting likes for all looks well in the log and is wrong elsewhere."""
    world = vr.simulate.world(*SHAPE, observed=0.2, selectivity=5, noise_rates=vr.NoiseRates(0, 0), random_state=1)
    given = {"rosy": np.full(SHAPE, 0.62), "sober": np.full(SHAPE, 0.38)}
    truth = {name: world.true_inaccuracy(f) for name, f in given.items()}
    assert truth["sober"] < truth["rosy"]
    found = run_audit(world.log, given, noise_rates=vr.NoiseRates(0, 0), propensities=world.propensities)
    assert found.comparisons[0].naive_choice == "rosy"
    assert found.comparisons[0].established == "sober"
    expected = "sober is better than rosy: established, although the log as it stands prefers rosy."
    assert expected in found.conclusions


@pytest.mark.parametrize(
    ("interval", "better"),
    [((-0.2, -0.1), "a"), ((0.1, 0.2), "b"), ((-0.1, 0.1), None), ((0.0, 0.0), None), ((0.0, 0.1), None)],
)
def test_established_is_what_the_interval_leaves_no_doubt_of(interval, better):
    one = vr.Estimate(sum(interval) / 2, 0.01, interval)
    assert Comparison("a", "b", one, one).established == better


def test_doubts_about_the_propensities_are_among_the_conclusions(found):
    doubtful = replace(
        found, propensity_diagnostics=replace(found.propensity_diagnostics, warnings=("one row carries it all",))
    )
    assert doubtful.conclusions[-1] == "Propensities: one row carries it all."


# Warnings


def test_warnings_are_collected_once_and_not_shown(world, recommenders):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = run_audit(
            world.log, recommenders, audit=audit_of(world, 30), propensities=np.full(SHAPE, 0.5), random_state=0
        )
    assert len(found.warnings) == len(set(found.warnings))
    assert len([warning for warning in found.warnings if "an audit of 30 pairs" in warning]) == 1
    assert len([warning for warning in found.warnings if "weights add up to" in warning]) == 1


def test_what_is_collected_is_what_the_single_calls_warn_of(world, recommenders):
    found = run_audit(world.log, recommenders, audit=audit_of(world, 30), propensities=np.full(SHAPE, 0.5))
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
        found = run_audit(world.log, {"mine": old}, noise_rates=RATES, propensities=world.propensities)
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
        ({"predictions": {"x": np.full((2, 2), 0.5)}}, PredictionError, "shape"),
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
    check_refusal(lambda: run_audit(**given), error, message)


def test_both_rates_and_an_audit_are_refused(world):
    check_refusal(
        lambda: run_audit(world.log, noise_rates=RATES, audit=audit_of(world, 300)), ParameterError, "noise_rates|audit"
    )
