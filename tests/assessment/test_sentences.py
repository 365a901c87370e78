"""What is concluded from an assessment: sentences that are true of its figures, and say no more than these allow."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import verirec as vr
from verirec.assessment import Comparison, assess, conclusions
from verirec.assessment.remarks import coverage
from verirec.estimation.overlap import OF_WEIGHTED

RATES = vr.NoiseRates(0.2, 0.1)
SHAPE = (150, 200)
CONDITION = (
    "All this holds if pairs are as likely to be logged as the propensities given say; no log can tell whether "
    "that is so."
)


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
def alone(world):
    """Nothing but a log, and two that it does not tell apart."""
    return assess(world.log, {"sharp": 0.1 + 0.8 * world.preferences, "sharper": 0.05 + 0.9 * world.preferences})


@pytest.fixture(scope="module")
def surveyed(world, recommenders):
    users, items = np.random.default_rng(0).integers(np.array(SHAPE)[:, None], size=(2, 400))
    survey = vr.SurveySample(users, items, world.at(users, items).true_labels)
    return assess(world.log, recommenders, survey=survey)


def estimate(low, high):
    return vr.Estimate((low + high) / 2, (high - low) / 4, (low, high))


BELOW, ABOVE, AROUND = estimate(-0.3, -0.1), estimate(0.1, 0.3), estimate(-0.1, 0.1)


LEAD = "its true log loss is lower by 0.200 (0.100 to 0.300), established by propensities that are known"


def open_at(delta):
    """A range that tells nothing from a delta on."""
    return vr.EstimateRange((-0.3, 0.1), (-0.3, 0.1), 0.95, BELOW, ABOVE, {"not_established_from": delta})


def comparison(
    first="a",
    second="b",
    *,
    naive=BELOW,
    corrected=BELOW,
    check=BELOW,
    flip_factor=float("inf"),
    basis="known propensities",
    lacking="",
):
    return Comparison(first, second, corrected, basis, naive, corrected, check, flip_factor, lacking)


def agrees(one, better="sharp", other="blunt"):
    """The verdict on an established difference that the log as it stands has too."""
    low, high = sorted(abs(end) for end in one.deciding.interval)
    lead = f"{abs(one.deciding.value):.3f} ({low:.3f} to {high:.3f})"
    return (
        f"{better} is better than {other}: its true log loss is lower by {lead}, established by propensities that are "
        f"known, and the log as it stands agrees{unless(one)}"
    )


def unless(one):
    """What is said after a verdict that wrong propensities could turn."""
    return f"; but not if the odds of being logged may be off by a factor of {one.flip_factor:.2f}."


def said_of(found, *comparisons, **changes):
    return conclusions(replace(found, comparisons=list(comparisons), **changes))


def triples(f, log, rows):
    users, items = log.users[rows], log.items[rows]
    return users, items, f[users, items]


# Which one is better


@pytest.mark.parametrize("turned", [False, True])
def test_a_difference_beyond_doubt_is_established_whatever_the_order(world, recommenders, turned):
    given = dict(reversed(recommenders.items())) if turned else recommenders
    found = assess(world.log, given, noise_rates=RATES, propensities=known(world))
    assert agrees(found.comparisons[0]) in conclusions(found)


@pytest.mark.parametrize(
    ("naive", "corrected", "check", "sentence"),
    [
        (BELOW, BELOW, BELOW, f"a is better than b: {LEAD}, and the log as it stands agrees."),
        (AROUND, BELOW, BELOW, f"a is better than b: {LEAD}, where the log as it stands cannot tell."),
        (ABOVE, BELOW, BELOW, f"a is better than b: {LEAD}, although the log as it stands prefers b."),
        (ABOVE, ABOVE, ABOVE, f"b is better than a: {LEAD}, and the log as it stands agrees."),
        (AROUND, ABOVE, ABOVE, f"b is better than a: {LEAD}, where the log as it stands cannot tell."),
        (BELOW, ABOVE, None, f"b is better than a: {LEAD}, although the log as it stands prefers a."),
        (BELOW, AROUND, BELOW, "Whether a or b is better is not established."),
        (
            BELOW,
            BELOW,
            ABOVE,
            "Whether a or b is better is not established: two ways of correcting for selection have different ones "
            "ahead, a sign that the propensities are wrong.",
        ),
    ],
)
def test_a_verdict_says_what_is_established_and_what_the_log_makes_of_it(found, naive, corrected, check, sentence):
    assert said_of(found, comparison(naive=naive, corrected=corrected, check=check))[0] == sentence


def test_where_log_and_truth_disagree_it_says_which_one_the_log_prefers():
    """People rate what they like: predicting likes for all looks well in the log and is wrong elsewhere."""
    none = vr.NoiseRates(0, 0)
    world = vr.simulate.world(*SHAPE, observed=0.2, selectivity=5, noise_rates=none, random_state=1)
    given = {"rosy": np.full(SHAPE, 0.62), "sober": np.full(SHAPE, 0.38)}
    truth = {name: world.true_inaccuracy(f) for name, f in given.items()}
    assert truth["sober"] < truth["rosy"]
    found = assess(world.log, given, noise_rates=none, propensities=known(world))
    assert (found.comparisons[0].naive_choice, found.comparisons[0].established) == ("rosy", "sober")
    (one,) = found.comparisons
    expected = f", established by propensities that are known, although the log as it stands prefers rosy{unless(one)}"
    assert [
        sentence.endswith(expected) for sentence in conclusions(found) if "sober is better than rosy" in sentence
    ] == [True]


def test_a_verdict_says_what_it_rests_on(found, surveyed):
    """In words for whoever has to decide."""
    survey = surveyed.survey
    audit = {"basis": "audit", "noise_source": "an audit of 300 pairs"}
    for changes, words in (
        ({"basis": "survey", "survey": survey}, "a survey of 400 random pairs"),
        (
            {"basis": "survey", "survey": survey, "not_spoken_of": 24},
            "a survey of 400 random pairs, 24 of them left out as excluded",
        ),
        (audit, "propensities that are known and an audit of 300 pairs"),
        ({"basis": "known propensities"}, "propensities that are known"),
        ({"basis": "range"}, "the log, if liked pairs are logged at 1 to 20 times the odds of others"),
    ):
        said = said_of(found, comparison(basis=changes["basis"]), **changes)[0]
        assert said == (
            f"a is better than b: its true log loss is lower by 0.200 (0.100 to 0.300), established by {words}, and "
            "the log as it stands agrees."
        )


def test_each_verdict_says_what_it_rests_on_itself(world, recommenders, surveyed):
    """Of recommenders that cover the logged pairs only a survey says nothing: what decides is the propensities."""
    log, every = world.log, np.arange(len(world.log))
    logged = {f"logged {name}": triples(f, log, every) for name, f in recommenders.items()}
    options = {"noise_rates": RATES, "propensities": known(world), "survey": surveyed.survey}
    found = assess(log, logged, **options)
    assert [one["basis"] for one in found.verdicts] == ["known propensities"]
    assert "established by propensities that are known" in found.conclusions[0]
    said = " ".join(found.conclusions)
    assert CONDITION in said
    for wrong in ("a survey of 400", "whatever decides what people log"):
        assert wrong not in said
    both = assess(log, recommenders | logged, **options)
    of_bases = {"survey": "a survey of 400 random pairs", "known propensities": "propensities that are known"}
    assert {one["basis"] for one in both.verdicts if one["established"]} == set(of_bases)
    for one in (one for one in both.comparisons if one.established):
        verdict = f"{one.established} is better than {one.other(one.established)}: "
        (said,) = [sentence for sentence in both.conclusions if sentence.startswith(verdict)]
        assert f"established by {of_bases[one.basis]}" in said
    (of_survey,) = [one for one in both.conclusions if "whatever decides what people log" in one]
    assert of_survey.startswith("What rests on the survey holds")
    assert CONDITION.replace("All this", "What rests on propensities") in both.conclusions


def test_a_range_says_from_where_on_it_is_open(world, recommenders):
    """As a factor of odds; not where it is open all along, or where nothing is."""
    alone = assess(world.log, recommenders, noise_rates=RATES, selection=vr.SelectionRange(0, 8))
    (one,) = alone.comparisons
    factor = np.exp(one.deciding.diagnostics["not_established_from"])
    assert 10 < factor < 1000
    told = "If taste decided less, this log would tell which is better of "
    assert alone.conclusions[2] == f"{told}sharp and blunt (below {factor:.0f} times the odds)."
    assert alone.verdicts[0]["not_established_from"] == pytest.approx(np.log(factor))
    pairs = [comparison("a", "b", corrected=open_at(1.0), basis="range")]
    pairs.append(comparison("a", "c", corrected=open_at(0.0), basis="range"))
    said = said_of(alone, *pairs)
    assert said[2] == f"{told}a and b (below 2.7 times the odds)."
    assert "not_established_from" not in said_of(alone, comparison())[0]
    settled = said_of(alone, *pairs, comparison("b", "c", basis="range"))
    assert settled[0] == (
        "Whether a or b is better is not established if liked pairs are logged at 2.7 times the odds of others or more."
    )
    assert settled[1] == "Whether a or c is better is not established."
    assert not [sentence for sentence in settled if sentence.startswith(told)]


@pytest.mark.parametrize(("low", "high", "words"), [(0, 3, "1 to 20"), (-1, 0.5, "0.37 to 1.6"), (1, 1, "2.7")])
def test_a_range_is_said_with_what_was_supposed(alone, low, high, words):
    said = conclusions(replace(alone, selection=vr.SelectionRange(low, high)))[1]
    assert said.startswith(f"If liked pairs are logged at {words} times the odds of others (on two public data sets")


def test_a_range_is_said_by_its_ends(found):
    ends = vr.EstimateRange((-0.3, -0.1), (-0.33, -0.07), 0.95, BELOW, BELOW)
    said = said_of(found, comparison(corrected=ends, basis="range"), basis="range")[0]
    assert said.startswith("a is better than b: its true log loss is lower by 0.070 to 0.330, established by the log,")


@pytest.mark.parametrize("basis", ["survey", "range"])
def test_wrong_propensities_cannot_turn_what_does_not_rest_on_them(found, surveyed, basis):
    one = comparison(basis=basis, flip_factor=1.1, check=ABOVE)
    said = said_of(found, one, basis=basis, survey=surveyed.survey)
    assert said[0].startswith("a is better than b: ")
    assert "odds of being logged may be off" not in " ".join(said)


def test_what_a_survey_lacks_is_said_with_how_many_it_takes(world, recommenders, surveyed):
    """Nine liked pairs establish nothing, whatever the interval says; ten may."""
    users, items, labels = (getattr(surveyed.survey, name) for name in ("users", "items", "labels"))
    for liked in (9, 10):
        kept = np.sort(np.concatenate([np.flatnonzero(labels == 1)[:liked], np.flatnonzero(labels == 0)[:90]]))
        small = vr.SurveySample(users[kept], items[kept], labels[kept])
        found = assess(world.log, recommenders, noise_rates=RATES, survey=small)
        (one,) = found.comparisons
        assert (one.lacking == "") == (liked == 10)
        said = [sentence for sentence in found.conclusions if "surveyed pairs are liked" in sentence]
        if liked == 9:
            assert one.established is None
            assert found.verdicts[0] == {
                "first": "sharp",
                "second": "blunt",
                "better": None,
                "established": False,
                "basis": "survey",
            }
            assert said == [
                "Whether sharp or blunt is better is not established: only 9 of 99 surveyed pairs are liked: nothing "
                "is established by fewer than 10; about 100 pairs would have so many."
            ]
        else:
            assert said == []


# A log alone


def test_a_log_alone_says_that_it_cannot_tell_what_it_leaves_open_and_what_to_ask(alone):
    first, second, third = alone.conclusions[:3]
    assert first == "This log alone cannot tell which recommender is better."
    for name, one in alone.recommenders.items():
        low, high = one.estimates["range"].interval
        assert f"between {low:.3f} and {high:.3f} for {name}" in second
    assert third.startswith(
        f"A survey of {len(alone.plan):,} pairs, chosen by verirec plan, would give ±{alone.plan.half_width:.2g}"
    )
    assert not [sentence for sentence in alone.conclusions if " is better than" in sentence]


def test_a_log_whose_noise_was_asked_about_is_not_alone(alone):
    asked = replace(alone, noise=RATES, noise_source="an audit of 300 pairs")
    expected = "This log, even with an audit of 300 pairs, cannot tell which recommender is better."
    assert conclusions(asked)[0] == expected


def test_of_one_recommender_a_log_alone_cannot_tell_how_good_it_is(world, recommenders):
    found = assess(world.log, {"sharp": recommenders["sharp"]}, noise_rates=RATES)
    assert found.conclusions[0] == "This log alone cannot tell how good sharp is."
    assert f"A survey of {len(found.plan):,} pairs, chosen by verirec plan, would give ±0.03" in " ".join(
        found.conclusions
    )


@pytest.mark.parametrize(("count", "rest"), [(4, False), (5, True)])
def test_up_to_four_ranges_are_said(alone, count, rest):
    named = {f"number {place}": alone.recommenders["sharp"] for place in range(count)}
    second = conclusions(replace(alone, recommenders=named))[1]
    assert second.count(" for number ") == 4
    assert second.endswith(" (the table has the others).") == rest


def test_without_a_plan_nobody_is_sent_to_ask(alone):
    assert not [sentence for sentence in conclusions(replace(alone, plan=None)) if "random pairs" in sentence]


# The best of several# The best of several


def three_of(found, *comparisons):
    named = dict.fromkeys("abc", next(iter(found.recommenders.values())))
    return said_of(found, *comparisons, recommenders=named)


@pytest.mark.parametrize(
    ("ab", "ac", "bc", "best"),
    [
        (BELOW, BELOW, BELOW, "a"),
        (ABOVE, AROUND, BELOW, "b"),
        (AROUND, ABOVE, ABOVE, "c"),
        (BELOW, AROUND, BELOW, None),
        (BELOW, ABOVE, BELOW, None),
        (AROUND, AROUND, AROUND, None),
    ],
)
def test_the_best_of_three_is_the_one_that_beats_each_of_the_others(found, ab, ac, bc, best):
    pairs = (("a", "b", ab), ("a", "c", ac), ("b", "c", bc))
    said = three_of(found, *(comparison(*names, naive=d, corrected=d, check=d) for *names, d in pairs))
    naming = [sentence for sentence in said if "the best" in sentence]
    expected = f"{best} is the best of the 3: it is established to be better than each of the others."
    assert naming == ([expected] if best else [])
    # It comes before the single verdicts, which are all there too.
    assert len([sentence for sentence in said if " is better" in sentence]) == 3
    assert not best or said[0] == expected


def test_one_that_is_contradicted_once_is_not_the_best(found):
    said = three_of(
        found, comparison("a", "b"), comparison("a", "c", check=ABOVE), comparison("b", "c", corrected=AROUND)
    )
    assert not [sentence for sentence in said if "the best" in sentence]


def test_one_that_was_not_compared_with_all_is_not_the_best(found):
    assert not [one for one in three_of(found, comparison("a", "b"), comparison("b", "c")) if "the best" in one]


def test_of_two_the_verdict_is_enough(found):
    assert not [sentence for sentence in conclusions(found) if "the best" in sentence]


def test_the_best_of_real_recommenders_is_named(world, recommenders):
    three = recommenders | {"wrong": 0.9 - 0.8 * world.preferences}
    found = assess(world.log, three, noise_rates=RATES, propensities=known(world))
    best = "sharp is the best of the 3: it is established to be better than each of the others."
    assert conclusions(found)[:2] == [best, agrees(found.comparisons[0])]


@pytest.mark.parametrize(("count", "listed"), [(12, True), (13, False)])
def test_up_to_twelve_verdicts_are_listed_and_more_are_counted(found, count, listed):
    many = [comparison(f"a{place}", f"b{place}", corrected=BELOW if place < 5 else AROUND) for place in range(count)]
    many[0] = replace(many[0], check=ABOVE)
    said = said_of(found, *many)
    verdicts = [sentence for sentence in said if " is better" in sentence]
    counted = [sentence for sentence in said if "differences between two recommenders" in sentence]
    # Of the five with an interval apart from 0, one is contradicted.
    total = "Of 13 differences between two recommenders 4 are established; see the table."
    assert (len(verdicts), counted) == ((12, []) if listed else (0, [total]))


# What it rests on


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (comparison(flip_factor=1.0732), "; but not if the odds of being logged may be off by a factor of 1.07."),
        (comparison(flip_factor=19.9), "; but not if the odds of being logged may be off by a factor of 19.90."),
        (comparison(), "."),
        (comparison(corrected=AROUND, flip_factor=1.5), "."),
    ],
    ids=["weak", "strong", "infinite", "open"],
)
def test_an_established_verdict_is_said_with_its_own_flip_factor(found, one, said):
    first = said_of(found, one)[0]
    assert re.fullmatch(rf"[^;]*(not established|agrees){re.escape(said)}", first)


def test_each_verdict_has_the_flip_factor_of_its_own_comparison(found):
    said = said_of(found, comparison("a", "b", flip_factor=1.731), comparison("a", "c", flip_factor=4.0), comparison())
    ends = [sentence.partition("agrees")[2] for sentence in said[:3]]
    factors = ["1.73", "4.00"]
    assert ends == [
        *(f"; but not if the odds of being logged may be off by a factor of {one}." for one in factors),
        ".",
    ]


def test_a_verdict_that_is_contradicted_has_no_flip_factor(found):
    assert "a factor of" not in " ".join(said_of(found, comparison(check=ABOVE, flip_factor=1.5)))


@pytest.mark.parametrize(
    ("comparisons", "rest"),
    [
        ([comparison("a", "b", flip_factor=1.731), comparison("a", "c", flip_factor=4.0)], ""),
        ([comparison("a", "b"), comparison("a", "c", flip_factor=3.0)], ""),
        ([comparison()], " No verdict would change if the odds of being logged were off by a factor of 20."),
        (
            [comparison(), comparison("a", "c", corrected=AROUND, flip_factor=1.1)],
            " No verdict would change if the odds of being logged were off by a factor of 20.",
        ),
        ([comparison(corrected=AROUND, flip_factor=1.0)], ""),
        ([comparison(check=ABOVE, flip_factor=1.5)], ""),
        ([], ""),
    ],
    ids=["both may", "one may", "infinite", "infinite and open", "open", "contradicted", "none"],
)
def test_the_condition_says_that_no_verdict_would_change_only_if_none_would(found, comparisons, rest):
    (said,) = (sentence for sentence in said_of(found, *comparisons) if sentence.startswith("All this holds if"))
    assert said == f"{CONDITION}{rest}"


def test_the_flip_factor_said_is_that_of_the_comparison(found):
    (one,) = found.comparisons
    assert 1 < one.flip_factor < 20
    assert conclusions(found)[0] == agrees(one)
    assert unless(one).endswith(f" {one.flip_factor:.2f}.")


def test_the_condition_of_a_survey_is_that_its_pairs_are_random(surveyed):
    (said,) = (sentence for sentence in surveyed.conclusions if sentence.startswith("This holds whatever decides"))
    assert said.endswith("if the surveyed pairs were drawn at random.")
    assert "All this holds if" not in " ".join(surveyed.conclusions)


@pytest.mark.parametrize("model", [vr.ConstantPropensity(), vr.PopularityPropensity(), vr.LogisticPropensity()])
def test_estimated_propensities_are_no_condition_as_nothing_rests_on_them(world, recommenders, model):
    said = assess(world.log, recommenders, noise_rates=RATES, propensities=model).conclusions
    assert "All this holds if" not in " ".join(said)
    assert "propensities that are known" not in " ".join(said)


def test_without_recommenders_there_is_nothing_to_hold_and_what_to_ask(world):
    found = assess(world.log, noise_rates=RATES, propensities=known(world))
    width = f"{found.plan.half_width:.2g}"
    assert conclusions(found) == [
        f"An audit of {len(found.plan):,} of the logged pairs would tell the noise rates to ±{width} (verirec plan)."
    ]


# Noise


def test_without_an_audit_it_says_that_noise_cannot_be_told_either(world, alone, surveyed, found):
    said = "How noisy the labels are cannot be told from this log alone either, so the corrected figures are ranges"
    nobody = assess(world.log)
    for one in (alone, nobody):
        assert len([sentence for sentence in one.conclusions if sentence.startswith(said)]) == 1
    # True labels of random pairs need no noise rates; labels as logged do.
    assert isinstance(surveyed.noise, vr.NoiseRegion)
    as_logged = replace(surveyed, survey=replace(surveyed.survey, noisy=True))
    assert len([sentence for sentence in as_logged.conclusions if sentence.startswith(said)]) == 1
    for one in (surveyed, found):
        assert not [sentence for sentence in one.conclusions if "How noisy the labels are" in sentence]


def test_answers_that_are_never_wrong_are_not_called_noisy(surveyed):
    as_logged = replace(surveyed, survey=replace(surveyed.survey, noisy=True), noise_source="given")
    for rates, said in (
        (RATES, "answers, which are as noisy as the log's"),
        (vr.NoiseRates(0, 0), "no answer of theirs"),
    ):
        told = " ".join(replace(as_logged, noise=rates).conclusions)
        assert said in told
        assert ("as noisy as" in told) == (rates is RATES)


@pytest.mark.parametrize(
    ("low", "high", "fits"),
    [(-0.4, -0.1, False), (1.02, 1.1, False), (-0.1, 0.02, True), (0.9, 1.2, True), (0.2, 0.3, True)],
)
def test_noise_rates_that_no_share_of_likes_goes_with_are_said_not_to_fit(found, low, high, fits):
    said = conclusions(replace(found, liked_corrected=estimate(low, high)))
    expected = (
        f"These noise rates do not fit this log: with them {low:.0%} to {high:.0%} of all pairs would be liked. "
        "No corrected figure below can be trusted."
    )
    assert (said[0] == expected) != fits
    assert len([sentence for sentence in said if "do not fit" in sentence]) == (not fits)


@pytest.mark.parametrize(("rates", "fits"), [((0.2, 0.1), True), ((0.05, 0.7), False), ((0.7, 0.05), False)])
def test_rates_of_a_real_audit_that_do_not_fit_its_log_are_said_not_to(world, rates, fits):
    found = assess(world.log, noise_rates=vr.NoiseRates(*rates), propensities=known(world))
    low, high = found.liked_corrected.interval
    assert (0 < low < high < 1) == fits
    assert any(sentence.startswith("These noise rates do not fit this log") for sentence in conclusions(found)) != fits


# Predictions of a part of the pairs


def test_coverage_says_which_part_of_the_pairs_there_is_a_prediction_for(world, recommenders):
    log = world.log
    given = {
        "whole": recommenders["sharp"],
        "logged": triples(recommenders["sharp"], log, np.arange(len(log))),
        "part": triples(recommenders["sharp"], log, np.arange(2_000)),
    }
    found = assess(log, given, noise_rates=RATES, propensities=known(world))
    words = {name: coverage(found, one) for name, one in found.recommenders.items()}
    assert words["whole"] == ""
    assert words["logged"].startswith("all logged pairs but not all others: judged by the self-normalised estimators")
    assert words["part"].startswith(f"some of the logged pairs, 2,000 of {len(log):,}: judged on these")
    assert words["part"].endswith("not to be compared with figures of other pairs")
    # The one that covers a part is named, and that it is compared with none.
    said = [sentence for sentence in conclusions(found) if "cannot be compared" in sentence]
    assert said == ["part cannot be compared with the others: the predictions cover some of the logged pairs only."]


def test_all_that_cover_a_part_are_named(world, recommenders):
    log = world.log
    given = recommenders | {
        "early": triples(recommenders["sharp"], log, np.arange(2_000)),
        "late": triples(recommenders["sharp"], log, np.arange(3_000, 5_000)),
    }
    found = assess(log, given, noise_rates=RATES, propensities=known(world))
    assert len(found.incomparable) == 5
    said = [sentence for sentence in conclusions(found) if "cannot be compared" in sentence]
    assert [sentence.partition(" cannot")[0] for sentence in said] == ["early and late"]


def test_where_all_cover_a_part_it_is_not_said_that_there_are_others(world, recommenders):
    log = world.log
    given = {
        "early": triples(recommenders["sharp"], log, np.arange(2_000)),
        "late": triples(recommenders["blunt"], log, np.arange(3_000, 5_000)),
    }
    found = assess(log, given, noise_rates=RATES, propensities=known(world))
    (said,) = (sentence for sentence in conclusions(found) if "cannot be compared" in sentence)
    assert said.startswith("early and late ")
    assert "the others" not in said


def test_where_some_that_cover_a_part_are_compared_it_is_not_said_that_they_cannot_be(world, recommenders):
    log = world.log
    given = {
        "early": triples(recommenders["sharp"], log, np.arange(2_000)),
        "as early": triples(recommenders["blunt"], log, np.arange(2_000)),
        "late": triples(recommenders["blunt"], log, np.arange(3_000, 5_000)),
    }
    found = assess(log, given, noise_rates=RATES, propensities=known(world))
    assert [(one.first, one.second) for one in found.comparisons] == [("early", "as early")]
    said = [sentence for sentence in conclusions(found) if "be compared" in sentence]
    assert said == [
        "early, as early and late cover some of the logged pairs only: two of them can be compared where these are the "
        "same."
    ]
    alike = {name: given[name] for name in ("early", "as early")}
    found = assess(log, alike, noise_rates=RATES, propensities=known(world))
    assert not [sentence for sentence in conclusions(found) if "be compared" in sentence]


def test_where_all_can_be_compared_nothing_is_said_of_it(found):
    assert not [sentence for sentence in conclusions(found) if "cannot be compared" in sentence]


# Doubts


def test_doubts_about_the_propensities_are_among_the_conclusions(found):
    doubtful = replace(
        found, propensity_diagnostics=replace(found.propensity_diagnostics, warnings=("one row carries it all",))
    )
    assert "Propensities: one row carries it all." in conclusions(doubtful)
    assert "Propensities: one row carries it all." not in conclusions(found)
    ranged = replace(doubtful, basis="range", comparisons=[comparison(basis="range")])
    assert not [one for one in conclusions(ranged) if one.startswith("Propensities")]


def test_how_good_each_is_follows_the_verdict(found):
    (said,) = [one for one in conclusions(found) if one.startswith("The true log loss is")]
    for name, one in found.recommenders.items():
        level = one.estimates[one.headline]
        low, high = level.interval
        assert f"{level.value:.3f} ({low:.3f} to {high:.3f}) for {name}" in said


@pytest.mark.parametrize(
    ("warnings", "sentences"),
    [
        ((), []),
        (("one",), ["There is 1 warning at the end of the page: read it first."]),
        (("one", "two"), ["There are 2 warnings at the end of the page: read them first."]),
    ],
)
def test_warnings_are_pointed_to(found, warnings, sentences):
    said = conclusions(replace(found, warnings=warnings))
    assert [sentence for sentence in said if "warning" in sentence] == sentences


def test_a_warning_of_what_the_survey_does_not_rest_on_is_not_to_be_read_first(found, surveyed):
    reach = f"a 95% interval {OF_WEIGHTED} covers the truth only about 19% of the time"
    for basis, warnings, first in (
        ("survey", (reach,), False),
        ("survey", (reach, "one"), True),
        ("known propensities", (reach,), True),
    ):
        said = conclusions(replace(found, warnings=warnings, basis=basis, survey=surveyed.survey))
        assert any("first." in sentence for sentence in said if "warning" in sentence) == first


def test_scores_beside_probabilities_are_said_not_to_have_been_compared(world):
    given = {"scores": 5 * world.preferences, "likely": 0.1 + 0.8 * world.preferences}
    found = assess(world.log, given, noise_rates=RATES)
    assert found.verdicts == []
    said = (
        "scores has scores that are not probabilities: it is judged by the ranking alone and not compared with likely;"
    )
    assert any(said in one for one in found.conclusions)
