"""One worker: draws calls by number, judges them, and says what it found, a line of JSON a second.

    python -m torture.fuzz.work SEED FIRST STEP SLOT

The slot is a file with the number of the call that is running: who starts workers knows which one killed them.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from torture.fuzz.calls import Call
from torture.fuzz.entries import ENTRIES
from torture.fuzz.judge import judged
from torture.fuzz.material import clear_folder, use_folder
from torture.fuzz.odd import changed
from torture.fuzz.reduce import reduced, sort_of

MEMORY = 4 * 2**30
"""Bytes of address space beyond what a worker begins with."""
_WEIGHTS = np.array([one.weight for one in ENTRIES]) / sum(one.weight for one in ENTRIES)


def call_of(seed: int, number: int) -> Call:
    """Draw the call of a number: the same whatever was drawn before."""
    random = np.random.default_rng([seed, number])
    return changed(ENTRIES[random.choice(len(ENTRIES), p=_WEIGHTS)].draw(random), random)


def limit_memory(more: int = MEMORY) -> None:
    """Have what takes gigabytes fail, as it would on a smaller machine."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + more, resource.RLIM_INFINITY))


def work(seed: int, first: int, step: int, slot: Path) -> None:
    """Judge calls until nobody listens."""
    limit_memory()
    home = Path(tempfile.mkdtemp(prefix="torture-", dir=_quick_folder()))
    use_folder(home)
    found: Counter[str] = Counter()
    known: set[tuple[str, str]] = set()
    said = time.monotonic()
    descriptor = os.open(slot, os.O_WRONLY | os.O_CREAT)
    try:
        for number in range(first, sys.maxsize, step):
            os.pwrite(descriptor, f"{number:<20}".encode(), 0)
            call = call_of(seed, number)
            outcome = judged(call)
            found[outcome.kind] += 1
            found["past the gate"] += outcome.past_gate
            found[f"{outcome.kind} {call.function}"] += 1
            if outcome.kind == "defect":
                sort = (call.function, sort_of(outcome.detail))
                smallest = call if sort in known else reduced(call, outcome)
                known.add(sort)
                print(json.dumps({"defect": outcome.detail, "number": number, "call": str(smallest)}), flush=True)
            clear_folder()
            if time.monotonic() - said > 1:
                print(json.dumps({"next": number + step, "found": found}), flush=True)
                found, said = Counter(), time.monotonic()
    except BrokenPipeError:
        pass
    finally:
        os.chdir("/")
        shutil.rmtree(home, ignore_errors=True)


def _quick_folder() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


if __name__ == "__main__":
    work(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
