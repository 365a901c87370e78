"""What an assessment of levels concludes where it differs from one of likes, in sentences."""

from __future__ import annotations

from verirec.assessment.findings import Findings
from verirec.assessment.range_sentences import MOST_NAMED, listed, measured


def about_levels_alone(found: Findings) -> list[str]:
    """Say what a log of levels without a survey cannot tell, and what is possible.

    Examples
    --------
    >>> import numpy as np
    >>> from verirec import simulate
    >>> from verirec.assessment import assess
    >>> world = simulate.stars(60, 80, random_state=0)
    >>> for sentence in about_levels_alone(assess(world.log, {"middle": np.full((60, 80), 3.0)})):
    ...     print(sentence)
    This log alone cannot tell how good middle is.
    Whatever people truly think of the pairs, the true RMSE lies between 0.000 and 2.000 for middle.
    """
    if found.basis != "range" or not found.recommenders or any(one.established for one in found.comparisons):
        return []
    names = list(found.recommenders)
    what = "which recommender is better" if len(names) > 1 else f"how good {names[0]} is"
    asked = found.noise is not None and found.noise_source != "given"
    who = f"This log, even with {found.noise_source}," if asked else "This log alone"
    ends = {name: one.estimates["range"].interval for name, one in found.recommenders.items() if one.estimates}
    within = [f"between {low:.3f} and {high:.3f} for {name}" for name, (low, high) in list(ends.items())[:MOST_NAMED]]
    rest = "" if len(names) <= MOST_NAMED else " (the table has the others)"
    return [
        f"{who} cannot tell {what}.",
        f"Whatever people truly think of the pairs, the true {measured(found)} lies {listed(within)}{rest}.",
    ]


def about_asking(found: Findings) -> list[str]:
    """Say about how many random pairs a survey needs, and what it would give."""
    asking = None if found.stars is None else found.stars.asking
    if asking is None:
        return []
    undecided = any(one.established is None for one in found.comparisons)
    enough = ", enough to tell a difference that is larger than that" if undecided else ""
    in_all = "" if found.survey is None else " in all"
    of = "the difference" if undecided else f"the {measured(found)}"
    return [
        f"A survey of {asking.pairs:,} random pairs{in_all} would give {of} to about ±{asking.half_width:.2g}{enough}."
    ]


def about_noise(found: Findings) -> list[str]:
    """Say what an audit would tell, where noise between levels is not known and no survey makes up for it."""
    if found.noise is not None or found.survey is not None or not found.recommenders:
        return []
    return [
        "How often people are logged at another level than they mean cannot be told from this log either: figures that "
        "are corrected for selection take the logged levels for true. True levels of some logged pairs (an audit) "
        "would tell."
    ]
