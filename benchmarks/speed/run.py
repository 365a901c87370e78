"""Runs cases: contenders in turn, round by round, in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.speed.case import Case

ROOT = Path(__file__).parents[2]


@dataclass
class Found:
    """What a case's rounds took: for each contender, for each measure, a figure a round."""

    rounds: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def note(self, contender: str, answer: dict[str, object]) -> None:
        """Take note of a round, or of why there is none."""
        if "left_out" in answer:
            self.left_out[contender] = str(answer["left_out"])
            return
        figures = self.rounds.setdefault(contender, {})
        for measure, figure in answer.items():
            figures.setdefault(measure, []).append(float(str(figure)))


class Worker:
    """A process that runs contenders of a case when told to (`benchmarks.speed.work`)."""

    def __init__(self, case: Case) -> None:
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.speed.work", case.name]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | _threads(case.threads),
            cwd=ROOT,
        )

    def __call__(self, contender: str) -> dict[str, object]:
        """Have it run a contender once."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{contender}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{contender!r} ended with code {self.process.wait()}; see above")
        return dict(json.loads(line))

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


def _threads(number: int | None) -> dict[str, str]:
    """Return the environment's part of it. A BLAS with threads of its own would compete with implicit's."""
    if number is None:
        return {}
    return {"OMP_NUM_THREADS": str(number), "NUMBA_NUM_THREADS": str(number), "OPENBLAS_NUM_THREADS": "1"}


def run_case(case: Case, worker: Callable[[Case], Worker] = Worker) -> Found:
    """Run all contenders of a case in turn, round by round; one that cannot run is left out."""
    found = Found()
    one = None if case.apart else worker(case)
    workers = {name: one or worker(case) for name in case.contenders}
    try:
        for _ in range(case.rounds):
            for name, run in workers.items():
                if name not in found.left_out:
                    found.note(name, run(name))
            if next(iter(case.contenders)) in found.left_out:
                break
    finally:
        for each in {id(one): one for one in workers.values()}.values():
            each.close()
    return found
