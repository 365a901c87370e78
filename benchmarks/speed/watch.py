"""The only clock: wall and CPU seconds, child processes included, and memory."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

from benchmarks.speed.case import Taken

_STATUS, _REFERENCES = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_PROCESSORS = Path("/proc/stat")
_SHORTEST = 0.5
"""Seconds: the system counts what processors do in hundredths."""


class Watch:
    """Starts when it is made."""

    def __init__(self) -> None:
        self.wall, self.cpu = time.perf_counter(), _cpu()

    def taken(self) -> Taken:
        """Return what it took since."""
        return Taken(time.perf_counter() - self.wall, _cpu() - self.cpu)


class Laps:
    """Times each of several like parts; the least of all but the first, which may compile, counts."""

    def __init__(self) -> None:
        self.watch, self.seen = Watch(), []  # type: ignore[var-annotated]

    def lap(self, *_: object) -> None:
        """End a part, and begin the next."""
        self.seen.append(self.watch.taken())
        self.watch = Watch()

    def least(self) -> Taken:
        """Return the least wall and the least CPU seconds."""
        walls, cpus = zip(*self.seen[1:], strict=True)
        return Taken(min(walls), min(cpus))


class Memory:
    """Gigabytes beyond what the process held when this was made."""

    def __init__(self) -> None:
        try:
            _REFERENCES.write_text("5")  # resets the peak
        except OSError:
            self.before = float("nan")
        else:
            self.before = _gigabytes("VmRSS")

    def extra(self) -> float:
        """Return the peak since, beyond what was held then; not a number where the system does not tell."""
        return float("nan") if self.before != self.before else _gigabytes("VmHWM") - self.before


class Others:
    """The share of the machine's processors that others used since this was made: a busy machine's figures are poor."""

    def __init__(self) -> None:
        self.watch, self.busy = Watch(), _busy()

    def share(self) -> float:
        """Return it; not a number where the system does not tell, or only to the nearest tick."""
        wall, own = self.watch.taken()
        if wall < _SHORTEST:
            return float("nan")
        share = (_busy() - self.busy - own) / (wall * (os.cpu_count() or 1))
        return max(0.0, share) if share == share else share


def _busy() -> float:
    """Return the seconds that all processors have worked, the host's taking them away included."""
    if not _PROCESSORS.exists():
        return float("nan")
    user, nice, system, _, _, *interrupts = map(int, _PROCESSORS.read_text().splitlines()[0].split()[1:9])
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


def _cpu() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _gigabytes(what: str) -> float:
    line = next(one for one in _STATUS.read_text().splitlines() if one.startswith(f"{what}:"))
    return int(line.split()[1]) * 1024 / 1e9
