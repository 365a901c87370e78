"""What monitoring found in all periods, as a table and for machines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from verirec.assessment.findings import Origin
from verirec.assessment.monitoring.findings import Monitored
from verirec.assessment.monitoring.sentences import sentences
from verirec.assessment.summary import assessment_summary
from verirec.losses import NoiseRates


@dataclass(frozen=True, eq=False)
class OverTime:
    """All periods, and what follows from them.

    Parameters
    ----------
    every, confidence, loss, recommenders
        What was asked for.
    periods
        All from the first to the last, those that could not be assessed too.
    warnings
        What the assessments warned of, each once.
    origin
        Where it comes from, for the foot of its page.
    """

    every: str
    confidence: float
    loss: str
    recommenders: tuple[str, ...]
    periods: tuple[Monitored, ...]
    warnings: tuple[str, ...] = ()
    origin: Origin = field(default_factory=Origin)

    @property
    def verdicts(self) -> list[dict[str, Any]]:
        """Of each period, which of every two is better, and which recommender changed since the first period."""
        found: list[dict[str, Any]] = []
        for period in self.periods:
            where = {"period": period.name, "level": period.level}
            for one in period.comparisons:
                ends = dict(zip(("low", "high"), one.deciding.interval, strict=True))
                two = {"kind": "comparison", "first": one.first, "second": one.second, "better": one.established}
                found.append(where | two | ends | {"basis": one.basis, "established": one.established is not None})
            found += [where | {"kind": "change"} | change.to_dict() for change in period.changes]
        return found

    @property
    def conclusions(self) -> list[str]:
        """What can be concluded, in sentences, most important first."""
        return sentences(self.periods, self.loss, self.confidence)

    @property
    def summary(self) -> dict[str, Any]:
        """All figures, as `summary.json` has them."""
        return {
            "every": self.every,
            "confidence": self.confidence,
            "loss": self.loss,
            "conclusions": self.conclusions,
            "verdicts": self.verdicts,
            "periods": [
                {"period": one.name, "rows": one.rows, "level": one.level, "lacking": one.lacking or None}
                | {"assessment": None if one.found is None else assessment_summary(one.found)}
                for one in self.periods
            ],
            "warnings": list(self.warnings),
        }

    def to_frame(self) -> Any:
        """Return a row a period as a pandas frame: rows, rates, selection, estimates and verdicts.

        `liked_low` to `liked_high` is the interval of the share of all pairs that are liked, `delta` how much more
        readily people log these (`verirec.selection_strength`), where a survey tells.
        """
        import pandas as pd

        return pd.DataFrame([_row(one) for one in self.periods])


def _row(period: Monitored) -> dict[str, Any]:
    row: dict[str, Any] = {"period": period.name, "rows": period.rows}
    found = period.found
    if found is None:
        return row | {"lacking": period.lacking}
    row |= {"positive": found.liked_as_logged, "basis": found.basis}
    row |= dict(zip(("liked_low", "liked_high"), found.liked_corrected.interval, strict=True))
    if isinstance(found.noise, NoiseRates):
        row |= {"rho01": found.noise.rho01, "rho10": found.noise.rho10}
    if found.strength is not None:
        row |= {"delta": found.strength.value}
        row |= dict(zip(("delta_low", "delta_high"), found.strength.interval, strict=True))
    for name, one in found.recommenders.items():
        if one.estimates is not None:
            told = one.estimates[one.headline].to_dict()
            row |= {f"{name}_{key}": told[key] for key in ("value", "low", "high")}
    for pair in period.comparisons:
        row[f"{pair.first}_or_{pair.second}"] = pair.established
    for change in period.changes:
        row[f"{change.recommender}_since_{change.since}"] = change.established
    return row
