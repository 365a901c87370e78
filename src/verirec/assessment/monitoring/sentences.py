"""What can be concluded from monitoring, in sentences that say no more than it allows."""

from __future__ import annotations

from collections.abc import Sequence

from verirec.assessment.monitoring.findings import Monitored


def sentences(periods: Sequence[Monitored], loss: str, confidence: float) -> list[str]:
    """Return what can be concluded, most important first."""
    return [
        *_about_changes(periods, loss),
        *_about_comparisons(periods),
        *_about_looking(periods, confidence),
        *_about_gaps(periods),
    ]


def _about_changes(periods: Sequence[Monitored], loss: str) -> list[str]:
    """Say who became worse or better, first and last; of those who did not, that nothing is established."""
    told, still = [], []
    for name in dict.fromkeys(one.recommender for period in periods for one in period.changes):
        found = [(period.name, one) for period in periods for one in period.changes if one.recommender == name]
        settled = [(where, one) for where, one in found if one.established]
        if not settled:
            still.append(name)
            continue
        where, first = settled[0]
        low, high = sorted(abs(end) for end in first.interval)
        moved = "higher" if first.established == "worse" else "lower"
        told.append(
            f"{name} became {first.established}: in {where} its true {loss} loss was {moved} than in {first.since} by "
            f"{abs(first.value):.3f} ({low:.3f} to {high:.3f}); established in {len(settled)} of {len(found)} periods "
            "since."
        )
    if still:
        told.append(f"No change is established for {', '.join(still)}.")
    return told


def _about_comparisons(periods: Sequence[Monitored]) -> list[str]:
    """Say of every two in which periods one is established to be better."""
    pairs = dict.fromkeys((one.first, one.second) for period in periods for one in period.comparisons)
    told = []
    for first, second in pairs:
        found = [
            (period.name, one.established)
            for period in periods
            for one in period.comparisons
            if (one.first, one.second) == (first, second)
        ]
        parts = [
            f"{name} is better in {_listed([where for where, better in found if better == name])}"
            for name in (first, second)
            if any(better == name for _, better in found)
        ]
        which = "; ".join(parts) if parts else "no difference is established in any period"
        told.append(f"{first} or {second}: {which}.")
    return told


def _listed(names: list[str]) -> str:
    """Name a few periods, or count many."""
    return ", ".join(names) if len(names) <= 3 else f"{len(names)} periods, from {names[0]} to {names[-1]}"


def _about_looking(periods: Sequence[Monitored], confidence: float) -> list[str]:
    if not any(period.comparisons or period.changes for period in periods):
        return []
    return [
        f"The chance that any of these verdicts is wrong, over {len(periods)} periods and those to come, is at most "
        f"{1 - confidence:.2g}, if what each period's answer rests on holds."
    ]


def _about_gaps(periods: Sequence[Monitored]) -> list[str]:
    lacking = [period for period in periods if period.found is None]
    if not lacking:
        return []
    first = lacking[0]
    were = "was" if len(lacking) == 1 else "were"
    return [f"{len(lacking)} of {len(periods)} periods {were} not assessed; {first.name}: {first.lacking}."]
