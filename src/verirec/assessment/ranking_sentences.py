"""What can be concluded of rankings, in sentences that say no more than it allows."""

from __future__ import annotations

import shlex
from typing import Final

from verirec.assessment.findings import Findings, RankingComparison
from verirec.assessment.range_sentences import MOST_NAMED, listed
from verirec.estimation import EstimateRange

_NOT_OF_PLANS: Final = {
    *("--out", "--survey", "--audit", "--reask", "--hold-out", "--train", "--calibrate", "-k", "--k", "--sample"),
    "--rates-by",
}
"""Options of assess with a value that a plan does not take."""
_BUDGET: Final = 400


def about_rankings(found: Findings) -> list[str]:
    """Say which of each two ranks better; or that this log alone cannot tell, and what to ask."""
    told = [_verdict(one, found) for one in found.ranking_comparisons]
    if found.best is not None:
        told.append(
            f"The survey's {len(found.best):,} pairs are among the recommenders' best: they tell rankings, whatever "
            "decides what people log, if they were drawn as the sheet says; of losses, and of all pairs, the page says "
            "what it would without a survey."
        )
    ranked = _rank_alone(found)
    if told or not ranked or found.survey is not None or found.basis != "range":
        return told
    what = "which recommender ranks better" if len(ranked) > 1 else f"how well {ranked[0]} ranks"
    return [
        f"This log alone cannot tell {what}: the figures below hold if selection depends on user and item only, which "
        "no log shows.",
        f"What tells it are true labels of pairs among their best: {plan_command(found, ranked)} chooses them.",
    ]


def lists_alone(found: Findings) -> list[str]:
    """Say of top-k lists that they have no losses."""
    lists = [name for name, one in found.recommenders.items() if one.lists]
    if not lists:
        return []
    are = "is judged by its" if len(lists) == 1 else "are judged by their"
    return [f"{listed(lists)} {are} ranking alone: top-k lists have no losses."]


def plan_command(found: Findings, names: list[str]) -> str:
    """Return the command that plans what to ask: the one that was run, as far as a plan takes its options."""
    parts = shlex.split(found.origin.command) if found.origin.command else []
    kept = ["verirec", "plan"]
    rest = iter(parts[2:] if parts[1:2] == ["assess"] else [])
    for part in rest:
        if part in _NOT_OF_PLANS:
            next(rest, None)
        elif part != "--json" and part.partition("=")[0] not in _NOT_OF_PLANS:
            kept.append(part)
    if len(kept) == 2:
        kept += ["LOG", *(part for name in names for part in ("--predictions", f"{name}=FILE"))]
    asked = ["--purpose", f"ndcg@{found.depth}", "--budget", str(_BUDGET), "--out", "ask.csv"]
    return shlex.join([*kept, *asked])


def _rank_alone(found: Findings) -> list[str]:
    """Name those that are judged by their ranking, where none has a loss."""
    if any(one.estimates is not None for one in found.recommenders.values()):
        return []
    return [name for name, one in found.recommenders.items() if one.ranking is not None][:MOST_NAMED]


def _verdict(one: RankingComparison, found: Findings) -> str:
    metric = f"NDCG@{found.depth}"
    low, high = one.deciding.interval
    if one.established is None:
        why = f": {one.lacking}" if one.lacking else f": their {metric} differs by {low:.3f} to {high:.3f}"
        return f"Whether {one.first} or {one.second} ranks better is not established{why}."
    ends = sorted(abs(end) for end in (low, high))
    value = "" if isinstance(one.deciding, EstimateRange) else f"{abs(one.deciding.value):.3f} "
    asked = found.best if found.best is not None else found.survey
    by = f"a survey of {len(asked):,} pairs" if asked is not None else "propensities that are known"
    return (
        f"{one.established} ranks better than {one.other}: its {metric} is higher by {value}({ends[0]:.3f} to "
        f"{ends[1]:.3f}), established by {by}."
    )
