"""The fuzzing campaign: workers side by side, watched from outside; see `torture.fuzz.work` for what each does."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from torture.campaign import ONE_THREAD, ROOT, Figures, environment
from torture.fuzz.judge import LONGEST, PATIENCE

HANGS = 1.5 * PATIENCE * LONGEST
"""Seconds without a word after which a worker hangs: a call has so long, and then its reduction."""


def run(budget_seconds: float, seed: int) -> Figures:
    """Judge as many calls as fit into so many seconds."""
    figures = Figures(seed)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        workers = [Worker(seed, number, Path(folder, str(number))) for number in range(_cores())]
        try:
            while not figures.counts or time.monotonic() - started < budget_seconds:
                for one in _ready(workers):
                    one.listen(figures)
                for one in workers:
                    one.check(figures)
        finally:
            for one in workers:
                one.close()
    figures.seconds = time.monotonic() - started
    return _summed(figures)


class Worker:
    """A process that judges calls, and what is known of it."""

    def __init__(self, seed: int, first: int, slot: Path) -> None:
        self.seed, self.slot, self.step = seed, slot, _cores()
        self.start(first)

    def start(self, first: int) -> None:
        """Start it at a number."""
        command = [sys.executable, "-m", "torture.fuzz.work", *map(str, (self.seed, first, self.step)), str(self.slot)]
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self.errors, env=environment(**ONE_THREAD), cwd=ROOT
        )
        self.heard = time.monotonic()

    def listen(self, figures: Figures) -> None:
        """Take a line."""
        line = self.process.stdout.readline() if self.process.stdout else b""
        if not line:
            return
        self.heard = time.monotonic()
        found: dict[str, Any] = json.loads(line)
        if "defect" in found:
            figures.fail(found["defect"], f"call {found['number']} of seed {self.seed}: {found['call']}")
        for name, count in found.get("found", {}).items():
            figures.add(name, count)

    def check(self, figures: Figures) -> None:
        """Start it again where it died or hangs, after the call that did it."""
        ended = self.process.poll()
        if ended is None and time.monotonic() - self.heard < HANGS:
            return
        number = int(self.slot.read_text() or 0) if self.slot.exists() else 0
        self.errors.seek(0)
        last = self.errors.read().decode(errors="replace").strip().splitlines()[-1:]
        what = "no answer: killed" if ended is None else f"the process died (exit code {ended}): {last}"
        self.close()
        from torture.fuzz.work import call_of

        figures.fail(what, f"call {number} of seed {self.seed}: {call_of(self.seed, number)}")
        self.start(number + self.step)

    def close(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()
        self.errors.close()


def _ready(workers: list[Worker]) -> list[Worker]:
    streams = {one.process.stdout: one for one in workers}
    return [streams[stream] for stream in select.select([*streams], [], [], 1.0)[0]]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _summed(figures: Figures) -> Figures:
    """Keep the totals as counts, and what became of each entry as a table."""
    kinds = ("result", "refused", "defect")
    entries: dict[str, dict[str, Any]] = {}
    for name, count in list(figures.counts.items()):
        kind, _, function = name.partition(" ")
        if kind in (*kinds, "void") and function:
            del figures.counts[name]
            if kind != "void":
                entries.setdefault(function, {"entry": function} | dict.fromkeys(kinds, 0))[kind] = int(count)
    figures.tables["entries"] = sorted(entries.values(), key=lambda row: str(row["entry"]))
    figures.counts["inputs"] = sum(figures.counts.get(kind, 0) for kind in kinds)
    return figures
