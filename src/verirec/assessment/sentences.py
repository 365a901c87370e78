"""What can be concluded from an assessment, in sentences that say no more than it allows."""

from __future__ import annotations

from typing import Final

from verirec.assessment.findings import AssessedRecommender, Comparison, Findings
from verirec.estimation.sensitivity import MOST_GAMMA
from verirec.losses import NoiseRegion

MOST_VERDICTS: Final = 12


def conclusions(found: Findings) -> list[str]:
    """Return what can be concluded, most important first.

    Examples
    --------
    >>> from verirec import NoiseRates, simulate
    >>> from verirec.assessment import assess
    >>> world = simulate.world(n_users=200, n_items=300, random_state=0)
    >>> given = {"sharp": 0.1 + 0.8 * world.preferences, "blunt": 0.4 + 0.2 * world.preferences}
    >>> found = assess(world.log, given, noise_rates=NoiseRates(0.2, 0.1), propensities=world.propensity_values)
    >>> for part in conclusions(found)[0].split("; "):
    ...     part
    'sharp is better than blunt: established, and the log as it stands agrees'
    'but not if the odds of being logged may be off by a factor of 1.44.'
    """
    return [
        *_about_noise(found),
        *_about_the_best(found),
        *_verdicts(found.comparisons),
        *_about_conditions(found),
        *_about_what_was_not_compared(found),
        *(f"Propensities: {warning}." for warning in found.propensity_diagnostics.warnings),
        *_about_warnings(found),
    ]


def coverage(found: Findings, recommender: AssessedRecommender) -> str:
    """Say which part of the pairs a recommender's predictions cover; nothing where they cover all."""
    rows = len(found.log)
    if recommender.covered is None:
        return ""
    if recommender.covered == rows:
        return (
            "all logged pairs but not all others: judged by the self-normalised estimators, which need no more, and "
            "whose figures differ from the doubly robust ones"
        )
    return (
        f"some of the logged pairs, {recommender.covered:,} of {rows:,}: judged on these, as if they were a fair part "
        "of the log, and by the self-normalised estimators; not to be compared with figures of other pairs"
    )


def _about_noise(found: Findings) -> list[str]:
    if isinstance(found.noise, NoiseRegion):
        asked = "" if found.plan is None else f": ask about {len(found.plan):,} of the logged pairs"
        return [
            "How noisy the labels are cannot be told from this log alone, so the corrected figures are ranges. "
            f"An audit would tell{asked} (verirec plan writes the list)."
        ]
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


def _verdicts(comparisons: list[Comparison]) -> list[str]:
    """Say what is known of every two; of very many, how many are established."""
    if len(comparisons) <= MOST_VERDICTS:
        return [_verdict(one) for one in comparisons]
    settled = sum(one.established is not None for one in comparisons)
    return [f"Of {len(comparisons):,} differences between two recommenders {settled:,} are established; see the table."]


def _verdict(one: Comparison) -> str:
    better = one.established
    if one.contradicted:
        return (
            f"Whether {one.first} or {one.second} is better is not established: two ways of correcting for selection "
            "have different ones ahead, a sign that the propensities are wrong."
        )
    if better is None:
        return f"Whether {one.first} or {one.second} is better is not established."
    beside = {better: "and the log as it stands agrees", None: "where the log as it stands cannot tell"}
    other = f"although the log as it stands prefers {one.naive_choice}"
    known = f"{better} is better than {one.other(better)}: established, {beside.get(one.naive_choice, other)}"
    if one.flip_factor > MOST_GAMMA:
        return f"{known}."
    return f"{known}; but not if the odds of being logged may be off by a factor of {one.flip_factor:.2f}."


def _about_conditions(found: Findings) -> list[str]:
    """Say what all of it rests on, and how wrong that may be."""
    if not found.recommenders:
        return []
    settled = [one for one in found.comparisons if one.established]
    rests = f"All this holds if {found.propensities.assumption}; no log can tell whether that is so."
    if settled and min(one.flip_factor for one in settled) > MOST_GAMMA:
        rests += f" No verdict would change if the odds of being logged were off by a factor of {MOST_GAMMA:g}."
    return [rests]


def _about_what_was_not_compared(found: Findings) -> list[str]:
    """Name those that cover some of the logged pairs only."""
    partial = [name for name, one in found.recommenders.items() if one.covered not in (None, len(found.log))]
    if not found.incomparable:
        return []
    *first, last = partial
    which = f"{', '.join(first)} and {last}" if first else last
    if any({one.first, one.second} <= set(partial) for one in found.comparisons):
        return [f"{which} cover some of the logged pairs only: two of them can be compared where these are the same."]
    whom = "each other" if len(partial) == len(found.recommenders) else "the others"
    return [f"{which} cannot be compared with {whom}: the predictions cover some of the logged pairs only."]


def _about_warnings(found: Findings) -> list[str]:
    count = len(found.warnings)
    if not count:
        return []
    return [
        f"There {'is 1 warning' if count == 1 else f'are {count} warnings'} at the end of the page: read them first."
    ]
