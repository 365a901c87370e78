"""The campaign of corner worlds: how often 95% intervals hold where the truth is known and the data are odd.

Each repetition draws tastes, truth, log and noise anew and asks `verirec.estimate` as a user would. Per world and
estimator: the share of intervals that hold the truth, the share of runs with a warning of ours, and the share refused
(a named error, or no finite interval). The rule: an estimator covers at least 92%, or warns or refuses in at least 95%
of the runs. Rows that fall short after the first repetitions get up to five times as many, since .95 looks like .92 in
one table of two hundred runs out of thirty; with fewer runs than that a row is against the rule only if it is so beyond
chance.
"""

from __future__ import annotations

import time
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from torture.campaign import Figures
from torture.worlds.cases import WORLDS, Case, World
from verirec import estimate
from verirec.estimation import EstimateRange
from verirec.exceptions import VerirecError, VerirecWarning

ROUND = 10
MOST_ROUNDS = 100
ENOUGH = 200
"""Repetitions that make a row's figures its own."""
COVERS, TELLS = 0.92, 0.95
BEYOND_CHANCE = 3.0


@dataclass
class Row:
    """What became of one estimator in one world.

    Parameters
    ----------
    world, estimator
        Their names.
    runs, refused, warned, held
        Repetitions: all, those without an interval, those with one and a warning, those whose interval held.
    width
        Of the intervals, added up.
    bias
        Estimate less truth, added up.
    """

    world: str
    estimator: str
    runs: int = 0
    refused: int = 0
    warned: int = 0
    held: int = 0
    width: float = 0.0
    bias: float = 0.0

    @property
    def printed(self) -> int:
        """Intervals that there were."""
        return self.runs - self.refused

    @property
    def coverage(self) -> float:
        """The share of these that held the truth."""
        return self.held / self.printed if self.printed else float("nan")

    @property
    def standard_error(self) -> float:
        """Of the coverage, at no less than one interval that failed."""
        share = min(max(self.coverage, 1 / (self.printed + 1)), self.printed / (self.printed + 1))
        return float(np.sqrt(share * (1 - share) / self.printed)) if self.printed else float("nan")

    @property
    def holds(self) -> bool:
        """Whether the rule is kept, or, of few runs, whether chance may be why it is not."""
        told, slack = (self.warned + self.refused) / self.runs, 0.0 if self.runs >= ENOUGH else BEYOND_CHANCE
        spread = (max(told * (1 - told), 1 / self.runs) / self.runs) ** 0.5
        return self.coverage + slack * self.standard_error >= COVERS or told + slack * spread >= TELLS

    def figures(self) -> dict[str, Any]:
        """Return the row as it is written down."""
        each = max(self.printed, 1)
        return {
            "world": self.world,
            "estimator": self.estimator,
            "runs": self.runs,
            "covered": round(self.coverage, 3) if self.printed else "",
            "standard error": round(self.standard_error, 3) if self.printed else "",
            "warned": round(self.warned / self.runs, 2),
            "refused": round(self.refused / self.runs, 2),
            "width": round(self.width / each, 3),
            "bias": round(self.bias / each, 3),
            "rule kept": self.holds,
        }


def run(budget_seconds: float, seed: int) -> Figures:
    """Go through all worlds, round by round, until the time is over; each world has a round at least."""
    figures, start = Figures(seed), time.monotonic()
    tables: dict[str, dict[str, Row]] = {world.name: {} for world in WORLDS}
    for number in range(MOST_ROUNDS):
        for world in WORLDS:
            late = time.monotonic() - start > budget_seconds
            if number and (late or _settled(tables[world.name], number)):
                continue
            figures.add("repetitions", ROUND)
            for repetition in range(number * ROUND, (number + 1) * ROUND):
                drawn = [seed, zlib.crc32(world.name.encode()), repetition]
                for what in _repeat(world, drawn, tables[world.name]):
                    figures.fail(f"{world.name}: {what}", f"repetition {repetition} of seed {seed}")
    rows = [row for table in tables.values() for row in table.values()]
    figures.tables["worlds"] = [row.figures() for row in rows]
    for row in rows:
        if not row.holds:
            figures.add("against the rule")
            figures.fail(f"{row.world}, {row.estimator}: covers {row.coverage:.3f}", f"seed {seed}")
    figures.counts |= {"worlds": len(WORLDS), "rows": len(rows)}
    figures.seconds = time.monotonic() - start
    return figures


def _settled(table: dict[str, Row], rounds: int) -> bool:
    """Tell whether more repetitions are not needed: there are enough, and no row is near the rule."""
    if rounds * ROUND < ENOUGH:
        return False
    near = [row for row in table.values() if not row.holds and row.coverage > COVERS - 4 * row.standard_error]
    return not near


def _repeat(world: World, seed: list[int], table: dict[str, Row]) -> Iterator[str]:
    """Run a world once, and enter what came of it; yields errors that are not ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Of a world that is made; what counts is said of its log.
        case = world.draw(np.random.default_rng(seed))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found: dict[str, Any] = {}
        try:
            found = dict(estimate(case.predictions, case.log, **case.options()))
        except VerirecError:
            pass
        except Exception as error:  # That is what is looked for.
            yield f"{type(error).__name__}: {error}"
    foreign = [one for one in caught if not issubclass(one.category, VerirecWarning)]
    yield from (f"{one.category.__name__}: {one.message}" for one in foreign)
    for name in case.estimators:
        row = table.setdefault(name, Row(world.name, name))
        _enter(row, found.get(name), case, warned=len(caught) > len(foreign))


def _enter(row: Row, one: Any, case: Case, *, warned: bool) -> None:
    row.runs += 1
    if one is None or not np.isfinite(one.interval).all():
        row.refused += 1
        return
    low, high = one.interval
    row.warned += warned
    # A truth that is known to the last digit is held by an interval without width.
    slack = 1e-9 * max(abs(case.truth), 1.0)
    row.held += low - slack <= case.truth <= high + slack
    row.width += high - low
    row.bias += (one.range[0] if isinstance(one, EstimateRange) else one.value) - case.truth
