"""What a log alone leaves open, in sentences that say no more than it allows."""

from __future__ import annotations

from typing import Final

import numpy as np

from verirec.assessment.findings import Comparison, Findings
from verirec.losses import NoiseRegion

MOST_NAMED: Final = 4
_MEASURES: Final = {"rmse": "RMSE", "mae": "MAE", "rps": "ranked probability score"}
MOST_TIMES: Final = 1_000


def about_the_log_alone(found: Findings) -> list[str]:
    """Say what a log without a survey cannot tell, and what it leaves open."""
    ranges = {
        name: one.estimates["range"]
        for name, one in found.recommenders.items()
        if one.estimates is not None and one.headline == "range"
    }
    if not ranges or any(one.established for one in found.comparisons):
        return []
    what = "which recommender is better" if len(ranges) > 1 else f"how good {next(iter(ranges))} is"
    asked = not isinstance(found.noise, NoiseRegion) and found.noise_source != "given"
    who = f"This log, even with {found.noise_source}," if asked else "This log alone"
    named = list(ranges.items())[:MOST_NAMED]
    within = [f"between {_ends(one.interval)} for {name}" for name, one in named]
    rest = "" if len(named) == len(ranges) else " (the table has the others)"
    return [
        f"{who} cannot tell {what}.",
        f"If {supposed(found)} (on two public data sets it was 1.8 to 15 times), the true {measured(found)} lies "
        f"{listed(within)}{rest}.",
        *_about_less_taste(found),
    ]


def _about_less_taste(found: Findings) -> list[str]:
    """Say how little taste would have to decide what is logged for the log to tell two apart."""
    limits = {f"{one.first} and {one.second}": open_from(one, found) for one in found.comparisons}
    named = [f"of {pair} (below {limit} times the odds)" for pair, limit in limits.items() if limit]
    if not named:
        return []
    rest = "" if len(named) <= MOST_NAMED else "; the table has the others"
    return [f"If taste decided less, this log would tell which is better {listed(named[:MOST_NAMED])}{rest}."]


def measured(found: Findings) -> str:
    """Name what is estimated."""
    return _MEASURES.get(found.loss, f"{found.loss} loss")


def open_from(one: Comparison, found: Findings) -> str:
    """Return the odds ratio from which a range leaves open which of two is better; nothing if all of it does, or none.

    Examples
    --------
    >>> from verirec import NoiseRates, simulate
    >>> from verirec.assessment import assess
    >>> world = simulate.world(n_users=200, n_items=300, random_state=0)
    >>> given = {"sharp": 0.1 + 0.8 * world.preferences, "blunt": 0.4 + 0.2 * world.preferences}
    >>> found = assess(world.log, given, noise_rates=NoiseRates(0.2, 0.1))
    >>> float(open_from(found.comparisons[0], found)) > 1
    True
    """
    delta = one.not_established_from
    return "" if delta is None or delta <= found.selection.low else times(float(np.exp(delta)))


def supposed(found: Findings) -> str:
    """Say how strongly taste is thought to decide what is logged."""
    low, high = (times(float(np.exp(end))) for end in (found.selection.low, found.selection.high))
    return f"liked pairs are logged at {low if low == high else f'{low} to {high}'} times the odds of others"


def times(ratio: float) -> str:
    """Write two digits of a factor; beyond any sense, so many."""
    return f"over {MOST_TIMES:,}" if ratio > MOST_TIMES else f"{ratio:.2g}" if ratio < 10 else f"{ratio:.0f}"


def listed(parts: list[str]) -> str:
    """Put parts in a row, with an "and" before the last."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def _ends(ends: tuple[float, float]) -> str:
    return f"{ends[0]:.3f} and {ends[1]:.3f}"
