"""What is concluded from an assessment: sentences that are true of its figures, and say no more than these allow."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import verirec as vr
from verirec.assessment import Comparison, assess, conclusions
from verirec.assessment.sentences import coverage

RATES = vr.NoiseRates(0.2, 0.1)
SHAPE = (150, 200)
AGREES = "sharp is better than blunt: established, and the log as it stands agrees"
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


def estimate(low, high):
    return vr.Estimate((low + high) / 2, (high - low) / 4, (low, high))


BELOW, ABOVE, AROUND = estimate(-0.3, -0.1), estimate(0.1, 0.3), estimate(-0.1, 0.1)


def comparison(first="a", second="b", *, naive=BELOW, corrected=BELOW, check=BELOW, flip_factor=float("inf")):
    return Comparison(first, second, naive, corrected, check, flip_factor)


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
    assert AGREES + unless(found.comparisons[0]) in conclusions(found)


@pytest.mark.parametrize(
    ("naive", "corrected", "check", "sentence"),
    [
        (BELOW, BELOW, BELOW, "a is better than b: established, and the log as it stands agrees."),
        (AROUND, BELOW, BELOW, "a is better than b: established, where the log as it stands cannot tell."),
        (ABOVE, BELOW, BELOW, "a is better than b: established, although the log as it stands prefers b."),
        (ABOVE, ABOVE, ABOVE, "b is better than a: established, and the log as it stands agrees."),
        (AROUND, ABOVE, ABOVE, "b is better than a: established, where the log as it stands cannot tell."),
        (BELOW, ABOVE, None, "b is better than a: established, although the log as it stands prefers a."),
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
    expected = "sober is better than rosy: established, although the log as it stands prefers rosy"
    assert expected + unless(found.comparisons[0]) in conclusions(found)


# The best of several


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
    assert conclusions(found)[:2] == [best, AGREES + unless(found.comparisons[0])]


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
    assert re.fullmatch(rf"[^;]*(established|agrees){re.escape(said)}", first)


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
    assert conclusions(found)[0] == AGREES + unless(one)
    assert unless(one).endswith(f" {one.flip_factor:.2f}.")


@pytest.mark.parametrize("model", [vr.ConstantPropensity(), vr.PopularityPropensity(), vr.LogisticPropensity()])
def test_the_condition_is_that_of_the_propensities(world, recommenders, model):
    propensities = model.fit(world.log)
    said = conclusions(assess(world.log, recommenders, noise_rates=RATES, propensities=model))
    starting = f"All this holds if {propensities.assumption}; no log can tell whether that is so."
    assert len([sentence for sentence in said if sentence.startswith(starting)]) == 1


def test_without_recommenders_there_is_nothing_to_hold(world):
    assert conclusions(assess(world.log, noise_rates=RATES, propensities=known(world))) == []


# Noise


def test_without_true_labels_it_says_how_many_to_ask_about(world, recommenders):
    found = assess(world.log, recommenders, propensities=known(world))
    said = conclusions(found)[0]
    assert said.startswith("How noisy the labels are cannot be told from this log alone, so the corrected figures are")
    assert f"An audit would tell: ask about {len(found.plan):,} of the logged pairs (" in said
    without = conclusions(replace(found, plan=None))[0]
    assert "An audit would tell (verirec plan writes the list)." in without


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


@pytest.mark.parametrize(
    ("warnings", "sentences"),
    [
        ((), []),
        (("one",), ["There is 1 warning at the end of the page: read them first."]),
        (("one", "two"), ["There are 2 warnings at the end of the page: read them first."]),
    ],
)
def test_warnings_are_pointed_to(found, warnings, sentences):
    said = conclusions(replace(found, warnings=warnings))
    assert [sentence for sentence in said if "warning" in sentence] == sentences
