"""Compares two JSON files: what got faster, what got slower, by more than either's own noise.

    python -m benchmarks.speed.compare OLD.json NEW.json

A case that has a contender is compared by its ratio to it, so that another state of the machine does not matter; the
others by their CPU seconds, and only on the same kind of machine. Where a target is one of wall time, that is compared.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from pathlib import Path

from benchmarks.speed.case import Measure
from benchmarks.speed.results import Result, Results

LEAST_NOISE = 0.05
"""A change by less is none: rounds within one process agree better than processes do."""


@dataclass(frozen=True)
class Change:
    """How a case's time changed: below 1 is faster.

    Examples
    --------
    >>> [Change("a", factor, 0.1, None).verdict for factor in (0.5, 1.08, 1.3)]
    ['faster', 'same', 'slower']
    """

    name: str
    factor: float
    noise: float
    beside: str | None

    @property
    def verdict(self) -> str:
        """Say faster, slower, or the same within the noise."""
        if self.factor > 1 + self.noise:
            return "slower"
        return "faster" if self.factor < 1 / (1 + self.noise) else "same"


def change(old: Result, new: Result, same_machine: bool) -> Change | None:
    """Compare a case, by wall time if that was asked of it; nothing, where there is nothing to compare it by.

    A contender of another name does other work.
    """
    if new.ours not in old.rounds:
        return None
    shared = [name for name in list(new.rounds)[1:] if name in old.rounds]
    if not shared and not same_machine:
        return None
    contenders = [new.ours, *shared[:1]]
    measure: Measure = "wall" if any(one.measure == "wall" for one in new.targets) else "cpu"
    spreads = [one.noise(name, measure) for one in (old, new) for name in contenders if name in one.rounds]
    noise = max(LEAST_NOISE, math.hypot(*(spread for spread in spreads if not math.isnan(spread))))
    if not shared:
        return Change(new.name, new.least(new.ours, measure) / old.least(old.ours, measure), noise, None)
    return Change(new.name, new.ratio(shared[0], measure) / old.ratio(shared[0], measure), noise, shared[0])


def changes(old: Results, new: Results) -> list[Change]:
    """Compare all cases that both have."""
    same = old.machine == new.machine
    both = (change(old.cases[name], one, same) for name, one in new.cases.items() if name in old.cases)
    return [one for one in both if one is not None]


def table(found: list[Change]) -> str:
    """Show changes, what got slower first."""
    lines = [f"{'':<28}{'new / old':>16}{'noise':>8}  verdict"]
    for one in sorted(found, key=lambda one: -one.factor):
        beside = f", beside {one.beside}" if one.beside else ""
        lines.append(f"{one.name:<28}{one.factor:>16.2f}{one.noise:>8.2f}  {one.verdict}{beside}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    options = parser.parse_args()
    print(table(changes(Results.load(options.old), Results.load(options.new))))


if __name__ == "__main__":
    main()
