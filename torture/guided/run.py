"""The campaign of readers guided by coverage; where atheris is not installed it says so and is left out."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from torture.campaign import ONE_THREAD, ROOT, Figures, environment
from torture.fuzz.entries.files import text
from torture.fuzz.material import npy, npz, parquet

START = 300
"""Seconds that it may take to begin and to end."""
READERS = 14


def run(budget_seconds: float, seed: int) -> Figures:
    """Have atheris change files for so many seconds; an input that is not a result or one of our errors is a failure."""
    figures, started = Figures(seed), time.monotonic()
    if find_spec("atheris") is None:
        figures.skipped["guided"] = "atheris is not installed (pip install atheris)"
        return figures
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder)
        figures.counts["starting files"] = _begin(corpus, seed)
        command = [sys.executable, "-m", "torture.guided.work", f"{max(1, budget_seconds):.0f}", str(seed), folder]
        done = subprocess.run(
            command,
            env=environment(**ONE_THREAD),
            cwd=ROOT,
            capture_output=True,
            timeout=budget_seconds + START,
            check=False,
        )
        said = done.stderr.decode(errors="replace")
        _count(figures, said, corpus)
        if done.returncode:
            wrong = [line for line in said.splitlines() if "Error" in line or "Exception" in line]
            bad = next(
                (
                    file.read_bytes()
                    for file in sorted(corpus.iterdir())
                    if file.name.startswith(("crash", "oom", "timeout"))
                ),
                b"",
            )
            figures.fail("; ".join(wrong[-2:]) or said[-200:], f"one_input({bad[:300]!r})")
    figures.seconds = time.monotonic() - started
    return figures


def _begin(corpus: Path, seed: int) -> int:
    """Write files to begin with, a reader's number before each."""
    random = np.random.default_rng(seed)
    contents = [text(random) for _ in range(40)]
    contents += [parquet({"user": ["a", "b"], "item": [1, 2], "rating": [1, 0]}), npy(np.full((4, 3), 0.5))]
    contents.append(npz(user_factors=np.ones((4, 2)), item_factors=np.ones((3, 2))))
    for number, content in enumerate(contents):
        for reader in range(READERS):
            (corpus / f"{number}-{reader}").write_bytes(bytes([reader]) + content)
    return len(contents) * READERS


def _count(figures: Figures, said: str, corpus: Path) -> None:
    found = re.search(r"stat::number_of_executed_units:\s+(\d+)", said)
    counted = re.findall(r"^#(\d+)", said, re.MULTILINE)
    figures.counts["inputs"] = int(found[1]) if found else max(map(int, counted), default=0)
    new = sum(re.fullmatch("[0-9a-f]{40}", file.name) is not None for file in corpus.iterdir())
    figures.counts["files that reached something new"] = new
