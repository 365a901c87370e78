"""What can be concluded from an assessment, in sentences that say no more than it allows."""

from __future__ import annotations

from typing import Final

from verirec.assessment.constants import constant_loss
from verirec.assessment.findings import Basis, Comparison, Findings
from verirec.assessment.level_sentences import about_asking, about_levels_alone, about_noise
from verirec.assessment.range_sentences import MOST_NAMED, about_the_log_alone, listed, measured, open_from, supposed
from verirec.assessment.ranking_sentences import about_rankings, lists_alone
from verirec.estimation import Estimate, EstimateRange
from verirec.estimation.overlap import OF_WEIGHTED
from verirec.estimation.sensitivity import MOST_GAMMA
from verirec.losses import NoiseRates, NoiseRegion

MOST_VERDICTS: Final = 12
_BY_P: Final[tuple[Basis, ...]] = ("known propensities", "audit")
"""What rests on how likely pairs are to be logged."""


def conclusions(found: Findings) -> list[str]:
    """Return what can be concluded, most important first.

    Examples
    --------
    >>> from verirec import GivenPropensity, NoiseRates, simulate
    >>> from verirec.assessment import assess
    >>> world = simulate.world(n_users=200, n_items=300, random_state=0)
    >>> given = {"sharp": 0.1 + 0.8 * world.preferences, "blunt": 0.4 + 0.2 * world.preferences}
    >>> assess(world.log, given, noise_rates=NoiseRates(0.2, 0.1)).conclusions[0]
    'This log alone cannot tell which recommender is better.'
    >>> known = GivenPropensity(world.propensity_values)
    >>> found = assess(world.log, given, noise_rates=NoiseRates(0.2, 0.1), propensities=known)
    >>> found.conclusions[0].split(" (")[0]
    'sharp is better than blunt: its true log loss is lower by 0.157'
    """
    return [
        *_about_rates_that_do_not_fit(found),
        *(about_the_log_alone(found) if found.stars is None else about_levels_alone(found)),
        *about_rankings(found),
        *_about_the_best(found),
        *_verdicts(found),
        *_about_levels(found),
        *_about_knowing_nothing(found),
        *(_about_asking(found) if found.stars is None else about_asking(found)),
        *(_about_noise(found) if found.stars is None else about_noise(found)),
        *_about_conditions(found),
        *_about_what_was_not_compared(found),
        *_about_calibration(found),
        *_about_propensities(found),
        *_about_warnings(found),
    ]


def _about_asking(found: Findings) -> list[str]:
    """Say how many pairs to ask about, and what that would give."""
    plan = found.plan
    if plan is None:
        return []
    reach = f"±{plan.half_width:.2g}"
    if not found.recommenders:
        return [f"An audit of {len(plan):,} of the logged pairs would tell the noise rates to {reach} (verirec plan)."]
    undecided = [one for one in found.comparisons if one.established is None]
    enough = ", enough to tell a difference that is larger than that" if undecided else ""
    in_all = "" if found.survey is None else " of its own"
    logged = int(plan.logged.sum())
    kinds = [f"a survey of {len(plan) - logged:,} pairs{in_all}"] if logged < len(plan) else []
    kinds += [f"an audit of {logged:,} logged pairs"] if logged else []
    asked = " and ".join(kinds)
    return [f"{asked[0].upper()}{asked[1:]}, chosen by verirec plan, would give {reach}{enough}."]


def _about_noise(found: Findings) -> list[str]:
    """Say what an audit would tell, where noise is what leaves an answer open."""
    told = found.survey is not None and not found.survey.noisy
    if told or not isinstance(found.noise, NoiseRegion):
        return []
    return [
        "How noisy the labels are cannot be told from this log alone either, so the corrected figures are ranges "
        "over all that is possible; true labels of some logged pairs (an audit) would tell."
    ]


def _about_rates_that_do_not_fit(found: Findings) -> list[str]:
    if isinstance(found.noise, NoiseRegion) or found.stars is not None:
        return []
    low, high = found.liked_corrected.interval
    if high < 0 or low > 1:
        return [
            f"These noise rates do not fit this log: with them {low:.0%} to {high:.0%} of all pairs would be liked. "
            "No corrected figure below can be trusted."
        ]
    return []


def _about_the_best(found: Findings) -> list[str]:
    """Name the one that is better than each of the others, where there are more than two."""
    names = list(found.recommenders)
    for name in names if len(names) > 2 else []:
        won = [one for one in found.comparisons if one.established == name]
        if len(won) == len(names) - 1:
            return [f"{name} is the best of the {len(names)}: it is established to be better than each of the others."]
    return []


def _verdicts(found: Findings) -> list[str]:
    """Say what is known of every two; of very many, how many are established."""
    comparisons = found.comparisons
    settled = [one for one in comparisons if one.established]
    if not settled and all(one.basis == "range" for one in comparisons):
        return []
    if len(comparisons) <= MOST_VERDICTS:
        return [_verdict(one, found) for one in comparisons]
    return [
        f"Of {len(comparisons):,} differences between two recommenders {len(settled):,} are established; see the table."
    ]


def _verdict(one: Comparison, found: Findings) -> str:
    better = one.established
    if one.contradicted:
        return (
            f"Whether {one.first} or {one.second} is better is not established: two ways of correcting for selection "
            "have different ones ahead, a sign that the propensities are wrong."
        )
    if better is None:
        limit = open_from(one, found)
        why = (
            f" if liked pairs are logged at {limit} times the odds of others or more"
            if limit
            else f": {one.lacking}"
            if one.lacking
            else ""
        )
        return f"Whether {one.first} or {one.second} is better is not established{why}."
    known = (
        f"{better} is better than {one.other(better)}: its true {measured(found)} is lower by {_lead(one.deciding)}, "
        f"established by {_by_what(one, found)}{_beside(one, better)}"
    )
    if one.basis not in _BY_P or one.flip_factor > MOST_GAMMA:
        return f"{known}."
    return f"{known}; but not if the odds of being logged may be off by a factor of {one.flip_factor:.2f}."


def _about_levels(found: Findings) -> list[str]:
    """Say how good each recommender is, where that has one value."""
    levels = {
        name: one.estimates[one.headline]
        for name, one in found.recommenders.items()
        if one.estimates is not None and one.headline != "range"
    }
    named = [
        f"{one.value:.3f} ({one.interval[0]:.3f} to {one.interval[1]:.3f}) for {name}"
        for name, one in levels.items()
        if isinstance(one, Estimate)
    ]
    if not named:
        return []
    rest = "" if len(named) <= MOST_NAMED else " (the table has the others)"
    return [f"The true {measured(found)} is {listed(named[:MOST_NAMED])}{rest}."]


def _about_knowing_nothing(found: Findings) -> list[str]:
    """Say what a constant would have, and which recommenders do no better by their figures."""
    constant = constant_loss(found)
    levels = {
        name: one.estimates[one.headline] for name, one in found.recommenders.items() if one.estimates is not None
    }
    if constant is None or not levels:
        return []
    told = (
        f"Knowing nothing but the share of liked pairs, a constant has a {measured(found)} of {constant.value:.3f} "
        f"({constant.low:.3f} to {constant.high:.3f})"
    )
    above = [name for name, one in levels.items() if isinstance(one, Estimate) and one.value >= constant.value]
    return [
        f"{told}: {listed(above[:MOST_NAMED])} {'has' if len(above) == 1 else 'have'} no less." if above else f"{told}."
    ]


def _lead(difference: Estimate | EstimateRange) -> str:
    low, high = sorted(abs(end) for end in difference.interval)
    if isinstance(difference, EstimateRange):
        return f"{low:.3f} to {high:.3f}"
    return f"{abs(difference.value):.3f} ({low:.3f} to {high:.3f})"


def _by_what(one: Comparison, found: Findings) -> str:
    """Say what a verdict rests on."""
    if one.basis == "survey" and found.survey is not None:
        left = f", {found.not_spoken_of:,} of them left out as excluded" if found.not_spoken_of else ""
        return f"a survey of {len(found.survey):,} random pairs{left}"
    if one.basis == "range":
        return f"the log, if {supposed(found)}" if found.stars is None else "what is possible at all"
    return "propensities that are known" + (f" and {found.noise_source}" if one.basis == "audit" else "")


def _beside(one: Comparison, better: str) -> str:
    if one.naive is None:
        return ""
    if one.naive_choice is None:
        return ", where the log as it stands cannot tell"
    return (
        ", and the log as it stands agrees"
        if one.naive_choice == better
        else (f", although the log as it stands prefers {one.naive_choice}")
    )


def _about_conditions(found: Findings) -> list[str]:
    """Say what all of it rests on, and how wrong that may be; where parts rest on different things, of each part."""
    settled = [one for one in found.comparisons if one.established]
    rests = {found.basis if one.covered is None else _BY_P[0] for one in found.recommenders.values()}
    rests |= {one.basis for one in settled if one.basis is not None}
    said = []
    if "survey" in rests:
        what = "This" if rests == {"survey"} else "What rests on the survey"
        said.append(f"{what} holds whatever decides what people log{_about_answers(found)}.")
    if rests & set(_BY_P):
        what = "All this" if rests <= set(_BY_P) else "What rests on propensities"
        said.append(f"{what} holds if {found.propensities.assumption}; no log can tell whether that is so.")
        factors = [one.flip_factor for one in settled if one.basis in _BY_P]
        if factors and min(factors) > MOST_GAMMA and found.stars is None:
            said[-1] += f" No verdict would change if the odds of being logged were off by a factor of {MOST_GAMMA:g}."
    strangers = [name for name, one in found.recommenders.items() if name not in found.trained]
    ranked_alone = found.basis == "range" and all(one.estimates is None for one in found.recommenders.values())
    if strangers and rests != {"survey"} and not ranked_alone:
        said.append(
            f"And if {listed(strangers[:MOST_NAMED])} did not see the rows that judge: that, too, no log tells."
        )
    return said


def _about_answers(found: Findings) -> str:
    """Say what a survey's verdicts rest on besides: its draw and, where its answers are logged labels, their noise."""
    drawn = "if the surveyed pairs were drawn at random"
    if found.survey is None or not found.survey.noisy:
        return f", and however wrong the logged labels are, {drawn}"
    if isinstance(found.noise, NoiseRates) and found.noise.rho01 == found.noise.rho10 == 0:
        return f", {drawn}, and if no answer of theirs is wrong, as noise rates of 0 ({found.noise_source}) say"
    return (
        f", {drawn}, and if their answers, which are as noisy as the log's, are wrong as often in all pairs of a class"
    )


def _about_what_was_not_compared(found: Findings) -> list[str]:
    """Name those that cover some of the logged pairs only, and those that only rank."""
    ranked = [name for name, one in found.recommenders.items() if one.estimates is None and not one.lists]
    told = lists_alone(found)
    if ranked:
        verb, form = ("has", "it is") if len(ranked) == 1 else ("have", "they are")
        told += [
            f"{listed(ranked)} {verb} scores that are not probabilities: {form} judged by the ranking alone"
            f"{_and_not_compared(found, ranked)}; calibrated by some of the rows, they could be judged by their losses "
            "too."
        ]
    partial = [name for name, one in found.recommenders.items() if one.covered not in (None, len(found.log))]
    if not found.incomparable:
        return told
    if any({one.first, one.second} <= set(partial) for one in found.comparisons):
        where = "cover some of the logged pairs only: two of them can be compared where these are the same."
        return [*told, f"{listed(partial)} {where}"]
    whom = "each other" if len(partial) == len(found.recommenders) else "the others"
    return [
        *told,
        f"{listed(partial)} cannot be compared with {whom}: the predictions cover some of the logged pairs only.",
    ]


def _and_not_compared(found: Findings, ranked: list[str]) -> str:
    """Say with whom those that only rank were not compared."""
    others = [name for name in found.recommenders if name not in ranked]
    if len(found.recommenders) < 2 or found.ranking_comparisons:
        return ""
    return f" and not compared with {listed(others) if others else 'each other'}"


def _about_calibration(found: Findings) -> list[str]:
    """Name those whose scores were made probabilities, and by how many rows."""
    if found.calibrated_by_survey:
        pairs = max(found.calibrated_by_survey.values())
        were = "was" if len(found.calibrated_by_survey) == 1 else "were"
        return [
            f"As there are scores that are not probabilities, {listed(list(found.calibrated_by_survey))} {were} "
            f"calibrated by the survey's {pairs:,} pairs, each of which is judged by a curve of the others."
        ]
    if not found.calibrated:
        return []
    named = [f"{name} (by {rows:,} logged rows)" for name, rows in found.calibrated.items()]
    return [f"Scores that are not probabilities were made such for {listed(named)}; the other rows judge."]


def _about_propensities(found: Findings) -> list[str]:
    """Say what speaks against the propensities, where a verdict rests on them."""
    if found.basis not in _BY_P and not any(one.established and one.basis in _BY_P for one in found.comparisons):
        return []
    return [f"Propensities: {warning}." for warning in found.propensity_diagnostics.warnings]


def _about_warnings(found: Findings) -> list[str]:
    count = len(found.warnings)
    if not count:
        return []
    if found.basis == "survey" and all(OF_WEIGHTED in one for one in found.warnings):
        return ["A warning at the end of the page is about estimators that the survey's verdicts do not rest on."]
    are, them = ("is 1 warning", "it") if count == 1 else (f"are {count} warnings", "them")
    return [f"There {are} at the end of the page: read {them} first."]
