"""What monitoring finds: of each period, and of what changed since the first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from verirec.assessment.findings import Comparison
from verirec.assessment.result import Assessment
from verirec.estimation import Estimate


@dataclass(frozen=True)
class Change:
    r"""By how much larger a recommender's inaccuracy is than in the first period that tells it.

    The interval of a difference of two independent estimates from those of either (Zou and Donner 2008):
    :math:`d - \sqrt{(a - l_a)^2 + (u_b - b)^2}` to :math:`d + \sqrt{(u_a - a)^2 + (b - l_b)^2}`.

    Parameters
    ----------
    recommender, since
        Whose, and the name of the first period.
    value, interval
        The difference, at the level of this period's verdicts.
    """

    recommender: str
    since: str
    value: float
    interval: tuple[float, float]

    @classmethod
    def of(cls, recommender: str, since: str, now: Estimate, then: Estimate) -> Change:
        """Take the difference; the earlier interval is brought to the level of the later one, as a normal one's is."""
        reach = float(ndtri((1 + now.confidence) / 2) / ndtri((1 + then.confidence) / 2))
        down, up = now.value - now.interval[0], now.interval[1] - now.value
        then_down, then_up = ((then.value - then.interval[0]) * reach, (then.interval[1] - then.value) * reach)
        value = now.value - then.value
        ends = value - float(np.hypot(down, then_up)), value + float(np.hypot(up, then_down))
        return cls(recommender, since, value, ends)

    @property
    def established(self) -> str | None:
        """Whether it is "worse" or "better", if the interval leaves no doubt."""
        low, high = self.interval
        return "worse" if low > 0 else "better" if high < 0 else None

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        low, high = self.interval
        told = {"recommender": self.recommender, "since": self.since, "value": self.value, "low": low, "high": high}
        return told | {"change": self.established, "established": self.established is not None}


@dataclass(frozen=True, eq=False)
class Monitored:
    """One period.

    Parameters
    ----------
    name, rows
        Its name, and how many rows of the log are in it.
    found
        The assessment of its rows, with intervals of the usual level; `None` where these tell nothing.
    level
        Of the intervals that its verdicts rest on (`verirec.assessment.monitoring.levels`).
    comparisons
        Of every two recommenders, with intervals of that level.
    changes
        Of each recommender since the first period, where both periods have an estimate on the same basis.
    lacking
        Why it was not assessed; empty where it was.
    """

    name: str
    rows: int
    found: Assessment | None
    level: float
    comparisons: tuple[Comparison, ...] = ()
    changes: tuple[Change, ...] = ()
    lacking: str = ""
