"""What was measured, on what, and of which revision: the JSON file, and what is read off it."""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import metadata, util
from pathlib import Path
from typing import Any

from benchmarks.speed.case import Case, Measure, Target
from benchmarks.speed.run import Found

_LIBRARIES = ("numpy", "scipy", "pandas", "pyarrow", "torch", "numba", "polars", "implicit", "scikit-learn")
MEASURES: tuple[Measure, ...] = ("cpu", "wall", "extra_gb")


@dataclass(frozen=True)
class Result:
    """A case's rounds. The least counts, of memory the largest: a later round uses what an earlier one gave back.

    Examples
    --------
    >>> rounds = {"ours": {"cpu": [1.2, 1.0, 1.1], "wall": [1, 1, 1]}, "theirs": {"cpu": [2, 2, 2], "wall": [1, 2, 2]}}
    >>> one = Result("a/b", "", "", rounds, {}, [Target(0.6, "theirs")], None, "abc")
    >>> one.least("ours", "cpu"), one.ratio("theirs", "cpu"), one.met(one.targets[0])
    (1.0, 0.5, True)
    """

    name: str
    title: str
    size: str
    rounds: dict[str, dict[str, list[float]]]
    left_out: dict[str, str]
    targets: list[Target]
    threads: int | None
    revision: str

    @property
    def ours(self) -> str:
        """The contender that is judged."""
        return next(iter(self.rounds))

    @property
    def group(self) -> str:
        """The part of the name before the slash."""
        return self.name.split("/")[0]

    def least(self, contender: str, measure: Measure) -> float:
        """Return the figure that counts."""
        figures = self.rounds[contender][measure]
        return max(figures) if measure == "extra_gb" else min(figures)

    def ratio(self, other: str, measure: Measure) -> float:
        """Return the first contender's figure, divided by another's."""
        return self.least(self.ours, measure) / self.least(other, measure)

    def noise(self, contender: str, measure: Measure) -> float:
        """Return how far the second least lies above the least, relatively: what another run may differ by."""
        least, *more = sorted(self.rounds[contender][measure])
        return (more[0] - least) / least if more else float("nan")

    @property
    def busy(self) -> float:
        """The share of the machine that others used in the least round of a contender, at most, as far as is known."""
        known = [one for one in map(self._others, self.rounds) if not math.isnan(one)]
        return max(known, default=0.0)

    def _others(self, contender: str) -> float:
        figures = self.rounds[contender]
        return figures.get("others", [math.nan] * len(figures["cpu"]))[figures["cpu"].index(min(figures["cpu"]))]

    def figure(self, target: Target) -> float | None:
        """Return what a target speaks of, if it was measured."""
        if target.of is None:
            return self.least(self.ours, target.measure)
        return self.ratio(target.of, target.measure) if target.of in self.rounds else None

    def met(self, target: Target) -> bool | None:
        """Tell whether a target was met, if it was measured."""
        figure = self.figure(target)
        return None if figure is None else figure <= target.at_most


def result_of(case: Case, found: Found, revision: str) -> Result:
    """Put what a case found together with what the page says of it."""
    return Result(
        case.name, case.title, case.size, found.rounds, found.left_out, list(case.targets), case.threads, revision
    )


@dataclass
class Results:
    """All cases measured on a machine; each with the revision that it was measured at."""

    machine: dict[str, Any]
    versions: dict[str, str]
    cases: dict[str, Result] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    date: str = ""

    def add(self, result: Result) -> None:
        """Take in a case, in place of an earlier one of its name; without a figure of ours it is left out."""
        self.cases.pop(result.name, None)
        self.left_out.pop(result.name, None)
        if result.rounds:
            self.cases[result.name] = result
        else:
            self.left_out[result.name] = "; ".join(result.left_out.values())
        self.date = datetime.now(UTC).date().isoformat()

    @property
    def busy(self) -> list[str]:
        """Names of the cases that were measured while others used a tenth of the machine or more."""
        return [name for name, one in self.cases.items() if one.busy >= 0.1]

    @property
    def busiest(self) -> float:
        """The largest share of the machine that others used while one of these cases was measured."""
        return max((one.busy for one in self.cases.values()), default=0.0)

    @property
    def revisions(self) -> list[str]:
        """All revisions of these cases, in the order in which they were measured."""
        return list(dict.fromkeys(one.revision for one in self.cases.values()))

    def save(self, path: Path) -> None:
        """Write the JSON file, figures to a microsecond and a kilobyte; null is what was not measured."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(_rounded(asdict(self)), indent=1, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: Path) -> Results:
        """Read it back."""
        found = json.loads(path.read_text())
        found["cases"] = {name: _result(one) for name, one in found["cases"].items()}
        return cls(**found)

    @classmethod
    def here(cls) -> Results:
        """Return an empty set for this machine."""
        return cls(machine(), versions())


def _result(found: dict[str, Any]) -> Result:
    rounds = {
        name: {measure: [math.nan if one is None else one for one in figures] for measure, figures in measured.items()}
        for name, measured in found["rounds"].items()
    }
    return Result(**found | {"targets": [Target(**one) for one in found["targets"]], "rounds": rounds})


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    if isinstance(value, float):
        return None if math.isnan(value) else round(value, 6)
    return value


def machine() -> dict[str, Any]:
    """Return the processor, its cores and the memory: no name, no path."""
    facts = dict(
        (part.strip() for part in line.split(":", 1))
        for line in _text("/proc/cpuinfo").split("\n\n")[0].splitlines()
        if ":" in line
    )
    vectors = {"avx512f": "AVX-512", "avx2": "AVX2", "asimd": "NEON"}
    flags = facts.get("flags", facts.get("Features", "")).split()
    return {
        "processor": facts.get("model name") or platform.processor() or platform.machine(),
        "vectors": next((name for flag, name in vectors.items() if flag in flags), "none known"),
        "cache": facts.get("cache size", "unknown"),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
        "system": platform.system(),
    }


def _text(path: str) -> str:
    return Path(path).read_text() if Path(path).exists() else ""


def versions() -> dict[str, str]:
    """Return the versions of Python and of all libraries that matter, where they are installed."""
    found = {"python": platform.python_version()}
    for library in _LIBRARIES:
        try:
            found[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    return found


def revision() -> str:
    """Return the revision of the library that is imported, and whether it has been changed since."""
    spec = util.find_spec("verirec")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent
    git = ["git", "-C", str(folder)]
    head = subprocess.run([*git, "rev-parse", "--short=7", "HEAD"], capture_output=True, text=True, check=False)
    if head.returncode:
        return "unknown"
    changed = subprocess.run([*git, "status", "--porcelain", "."], capture_output=True, text=True, check=False)
    return head.stdout.strip() + ("+" if changed.stdout.strip() else "")
