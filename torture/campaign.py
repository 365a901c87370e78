"""What a campaign finds: figures, failures that can be repeated, and the file that keeps them."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

ROOT = Path(__file__).parents[1]
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
MOST_FAILURES = 50
"""Failures that are kept in the file; all are counted."""


@dataclass(frozen=True)
class Failure:
    """Something that did not hold, and how to see it again."""

    what: str
    repeat: str


@dataclass
class Figures:
    """What a campaign counted; `tables` have a row a dictionary."""

    seed: int
    seconds: float = 0.0
    counts: dict[str, float] = field(default_factory=dict)
    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    """Parts that could not be run here, and why."""

    def add(self, name: str, number: float = 1) -> None:
        """Count something."""
        self.counts[name] = self.counts.get(name, 0) + number

    def fail(self, what: str, repeat: str) -> None:
        """Count a failure, and keep it with what repeats it."""
        self.add("failures")
        if len(self.failures) < MOST_FAILURES:
            self.failures.append(Failure(what, repeat))


class Campaign(Protocol):
    """A module of a campaign."""

    def run(self, budget_seconds: float, seed: int) -> Figures:
        """Try as much as fits into so many seconds; the same seed tries the same things in the same order."""


@dataclass
class Results:
    """Campaigns by name, with the revision that they were run on."""

    campaigns: dict[str, Figures] = field(default_factory=dict)
    about: dict[str, dict[str, str]] = field(default_factory=dict)

    def add(self, name: str, figures: Figures) -> None:
        """Take in a campaign, in place of an earlier one."""
        self.campaigns[name] = figures
        self.about[name] = {"date": datetime.now(UTC).date().isoformat(), "revision": revision()}

    @property
    def failures(self) -> int:
        """How many failures there are in all campaigns."""
        return int(sum(one.counts.get("failures", 0) for one in self.campaigns.values()))

    def save(self, path: Path) -> None:
        """Write the JSON file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> Results:
        """Read it back."""
        found = json.loads(path.read_text())
        figures = {
            name: Figures(**one | {"failures": [Failure(**failure) for failure in one["failures"]]})
            for name, one in found["campaigns"].items()
        }
        return cls(figures, found["about"])


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a process that imports this source, whatever is installed."""
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])} | more


def revision() -> str:
    """Return the revision of the source that is tried, with a plus where it was changed since."""
    done = subprocess.run(
        ["git", "describe", "--always", "--exclude", "*", "--dirty=+"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout.strip() or "unknown"
