"""Corner worlds: how often 95% intervals hold where the truth is known and the data are odd.

    .venv/bin/python -m torture.worlds [--seconds 240] [--seed 0] [--only WORD] [--out FILE]

Each repetition draws tastes, truth, log and noise anew and asks `verirec.estimate` as a user would. Per world and
estimator: the share of intervals that hold the truth, the share of runs with a warning of ours, and the share refused
(a named error, or no finite interval). The rule: an estimator covers at least 92%, or warns or refuses in at least 95%
of the runs. Rows that fall short after the first repetitions get up to five times as many, since .95 looks like .92 in
one table of two hundred runs out of thirty.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from torture.corner_worlds import WORLDS, Case, World
from verirec import estimate
from verirec.estimation import EstimateRange
from verirec.exceptions import VerirecError, VerirecWarning

ROUND = 50
MOST_ROUNDS = 20
COVERS, TELLS = 0.92, 0.95


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
        """Whether the rule is kept."""
        return self.coverage >= COVERS or self.warned + self.refused >= TELLS * self.runs

    def figures(self) -> dict[str, Any]:
        """Return the row as it is written down."""
        each = max(self.printed, 1)
        return {
            "world": self.world,
            "estimator": self.estimator,
            "runs": self.runs,
            "coverage": round(self.coverage, 4) if self.printed else None,
            "standard_error": round(self.standard_error, 4) if self.printed else None,
            "warned": round(self.warned / self.runs, 4),
            "refused": round(self.refused / self.runs, 4),
            "width": round(self.width / each, 4),
            "bias": round(self.bias / each, 4),
            "holds": self.holds,
        }


def run(budget_seconds: float, seed: int, only: str = "") -> dict[str, Any]:
    """Go through all worlds, round by round, until the time is over; each world has a round at least.

    Returns
    -------
    `rows`, one a world and estimator; `defects`, those against the rule; the seed, and `unexpected`, errors that are
    not ours.
    """
    start = time.monotonic()
    worlds = [world for world in WORLDS if only in world.name]
    tables: dict[str, dict[str, Row]] = {world.name: {} for world in worlds}
    unexpected: list[str] = []
    for number in range(MOST_ROUNDS):
        for world in worlds:
            late = time.monotonic() - start > budget_seconds
            if number and (late or _settled(tables[world.name], number)):
                continue
            for repetition in range(number * ROUND, (number + 1) * ROUND):
                unexpected += _repeat(world, [seed, zlib.crc32(world.name.encode()), repetition], tables[world.name])
    rows = [row for table in tables.values() for row in table.values()]
    figures = [row.figures() for row in rows]
    return {
        "seed": seed,
        "rows": figures,
        "defects": [one for one in figures if not one["holds"]],
        "unexpected": unexpected,
    }


def _settled(table: dict[str, Row], rounds: int) -> bool:
    """Tell whether more repetitions are not needed: four rounds, and as many again while a row is near the rule."""
    if rounds < MOST_ROUNDS // 5:
        return False
    near = [row for row in table.values() if not row.holds and row.coverage > COVERS - 4 * row.standard_error]
    return not near


def _repeat(world: World, seed: list[int], table: dict[str, Row]) -> Iterator[str]:
    """Run a world once, and enter what came of it; yields errors that are not ours."""
    case = world.draw(np.random.default_rng(seed))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found: dict[str, Any] = {}
        try:
            found = dict(estimate(case.predictions, case.log, **case.options()))
        except VerirecError:
            pass
        except Exception as error:  # That is what is looked for.
            yield f"{world.name}, {seed}: {type(error).__name__}: {error}"
    foreign = [one for one in caught if not issubclass(one.category, VerirecWarning)]
    yield from (f"{world.name}, {seed}: {one.category.__name__}: {one.message}" for one in foreign)
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


def table(figures: dict[str, Any]) -> str:
    """Return the figures as Markdown."""
    lines = ["| world | estimator | runs | covered (s.e.) | warned | refused | rule |", "|---|---|--:|--:|--:|--:|---|"]
    for one in figures["rows"]:
        covered = "" if one["coverage"] is None else f"{one['coverage']:.3f} ({one['standard_error']:.3f})"
        shares = f"{one['warned']:.2f} | {one['refused']:.2f}"
        verdict = "kept" if one["holds"] else "**broken**"
        lines.append(f"| {one['world']} | {one['estimator']} | {one['runs']} | {covered} | {shares} | {verdict} |")
    return "\n".join(lines)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="worlds with this in their name")
    parser.add_argument("--out", type=Path, help="a JSON file to write")
    given = parser.parse_args()
    figures = run(given.seconds, given.seed, given.only)
    print(table(figures))
    print(f"{len(figures['defects'])} of {len(figures['rows'])} rows against the rule; seed {figures['seed']}")
    for line in figures["unexpected"][:20]:
        print(line)
    if given.out:
        given.out.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
