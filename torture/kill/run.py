"""The kill campaign: every verb that writes, every file operation of it failed in turn, and kills at random moments.

Outputs are judged by what is there afterwards: the old output or the new one, whole, and nothing in between; then the
verb is run once more and has to give the same bits as an undisturbed run.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from torture.campaign import ONE_THREAD, ROOT, Figures, environment
from torture.kill.disks import PAGE, remount, small_disk
from torture.kill.faults import Disk
from torture.kill.jobs import JOBS, Job, contents, in_child, prepare, run_verb, words_of

ERRORS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO}
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
REFUSED = 2
SHARES_OF_A_DISK = (0.0, 0.5, 0.9, 1.5)
LARGE_DISK = 2**25
LEAST = 3
"""Kills, however late it is."""


def run(budget_seconds: float, seed: int) -> Figures:
    """Run the campaign in a process of its own, with one thread: forks of it are warm."""
    command = [sys.executable, "-m", "torture.kill.run", str(budget_seconds), str(seed)]
    done = subprocess.run(command, stdout=subprocess.PIPE, env=environment(**ONE_THREAD), cwd=ROOT, check=True)
    found = json.loads(done.stdout)
    figures = Figures(seed, found["seconds"], found["counts"], found["tables"], skipped=found["skipped"])
    figures.counts.pop("failures", None)  # They are counted as they are entered.
    for what, repeat in found["failures"]:
        figures.fail(what, repeat)
    return figures


class Yard:
    """Where verbs run: the folder with what they read, undisturbed outputs to compare with, and what was counted."""

    def __init__(self, home: Path, seed: int) -> None:
        # Small disks are mounted over the folder above: outputs may name the place that they were written to.
        self.home, self.out, self.figures = home, home / "disk" / "out", Figures(seed)
        self.random = np.random.default_rng(seed)
        self.wanted: dict[str, dict[str, str]] = {}
        self.seconds: dict[str, float] = {}

    def clean(self, job: Job) -> None:
        """Run a job undisturbed, twice: the first is slower to start."""
        for _ in range(2):
            self.empty()
            started = time.monotonic()
            code, said = self.child(job)
            self.seconds[job.name] = time.monotonic() - started
            if code:
                raise RuntimeError(f"{job.name}: {said}")
        self.wanted[job.name] = contents(self.out)

    def empty(self) -> None:
        """Remove what was written."""
        shutil.rmtree(self.out, ignore_errors=True)
        self.out.mkdir(parents=True)

    def out_of(self, job: Job) -> Path:
        """Run a job undisturbed, and return where its output is."""
        self.fill(job)
        return self.out

    def fill(self, job: Job) -> None:
        """Put an earlier output there, so that there is something to lose."""
        self.empty()
        self.child(job)

    def child(
        self, job: Job, *more: str, disk: Disk | None = None, started: Any = lambda process: None
    ) -> tuple[int, str]:
        """Run a job in a fork; give its exit code and what it said."""
        said = self.home / "said"

        def work() -> int:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            if disk is not None:
                disk.install()
            try:
                code, text = run_verb(words_of(job, self.out, *more), self.home)
            except KeyboardInterrupt:
                code, text = 130, "verirec: stopped\n"
            shown = {"said": text, "done": [] if disk is None else disk.done}
            said.write_text(json.dumps(shown))
            return code

        said.unlink(missing_ok=True)
        code = in_child(work, started=started)
        return code, said.read_text() if said.exists() else "{}"

    def check(self, job: Job, before: dict[str, str], what: str) -> None:
        """Check that each output is the old or the new one, then run again and compare bits."""
        now, wanted = contents(self.out), self.wanted[job.name]
        for name in {*before, *now}:
            if now.get(name) not in (before.get(name), wanted.get(name)):
                self.figures.add("half-written")
                self.figures.fail(f"{job.name}: {name} is neither the old nor the new output", what)
        if any(name not in now for name in before):
            self.figures.add("lost")
            self.figures.fail(f"{job.name}: an output that was there is lost", what)
        resumable = job.resumes and any(self.out.glob("checkpoint*"))
        code, said = self.child(job, *(("--resume",) if resumable else job.again))
        if code == REFUSED and resumable:
            code, said = self.child(job, *job.again)
        same = contents(self.out) == wanted
        self.figures.add("resumed" if resumable else "run again")
        if code or not same:
            self.figures.fail(f"{job.name}: run again it gives {'other bits' if not code else said}", what)

    def fault(self, job: Job) -> None:
        """Fail every file operation of a job in turn, with nothing there and with an earlier output there."""
        for there in (False, True):
            self.fill(job) if there else self.empty()
            said = self.child(job, *(job.again if there else ()), disk=Disk(str(self.out)))[1]
            operations: list[str] = json.loads(said)["done"]
            row = {"verb": job.name, "over an old output": there, "operations": len(operations)}
            row |= {name: operations.count(name) for name in ("open", "write", "fsync", "replace", "unlink")}
            ends: dict[int, int] = {}
            for number in range(1, len(operations) + 1):
                for name, code in ERRORS.items():
                    ended = self._failed(job, there, number, operations[number - 1], name, code)
                    ends[ended] = ends.get(ended, 0) + 1
            self.figures.tables.setdefault("faults", []).append(
                row | {"went on": ends.get(0, 0), "said so": ends.get(2, 0)}
            )

    def _failed(self, job: Job, there: bool, number: int, operation: str, name: str, code: int) -> int:
        self.fill(job) if there else self.empty()
        before = contents(self.out)
        ended, said = self.child(job, *(job.again if there else ()), disk=Disk(str(self.out), number, code))
        self.figures.add("faults")
        what = f"operation {number} ({operation}) of {job.name} ended in {name}, {'over an old output' if there else 'new'}"
        text = json.loads(said).get("said", "") if said.startswith("{") else said
        if ended not in (0, REFUSED) or (ended == REFUSED and len(text.strip().splitlines()) != 1):
            self.figures.fail(f"{job.name}: exit code {ended}, {text[-300:]!r}", what)
        self.check(job, before, what)
        return ended

    def kill(self, number: int) -> None:
        """Kill a job at a random moment."""
        job = JOBS[number % len(JOBS)]
        killer = SIGNALS[number // len(JOBS) % len(SIGNALS)]
        there = bool(number % 2)
        self.fill(job) if there else self.empty()
        before = contents(self.out)
        moment = float(self.random.uniform(0, 1.05 * self.seconds[job.name]))

        def started(process: int) -> None:
            timer = threading.Timer(moment, _send, (process, killer))
            timer.daemon = True
            timer.start()

        ended, _ = self.child(job, *(job.again if there else ()), started=started)
        self.figures.add("kills")
        self.figures.add("kills that came in time", ended != 0)
        what = f"kill {number} of seed {self.figures.seed}: {killer.name} after {moment:.4f} s"
        if ended not in (0, -killer, 130):
            self.figures.fail(f"{job.name}: exit code {ended}", what)
        self.check(job, before, what)


def fill_disks(yard: Yard, until: float) -> None:
    """Run every job on file systems that are too small for it, and then on one that is not; one job at least."""
    for number, job in enumerate(JOBS):
        if number and time.monotonic() > until:
            return
        needed = sum(file.stat().st_size for file in yard.out_of(job).rglob("*") if file.is_file())
        row: dict[str, Any] = {"verb": job.name, "bytes of an output": needed, "disks": 0, "said so": 0}
        for share in SHARES_OF_A_DISK:
            size = max(PAGE, int(share * needed) // PAGE * PAGE)
            with small_disk(yard.home, size) as refused:
                if refused:
                    yard.figures.skipped["full disks"] = refused
                    return
                yard.empty()
                ended, said = yard.child(job)
                text = json.loads(said).get("said", "") if said.startswith("{") else said
                what = f"{job.name} on a disk of {size:,} bytes"
                if ended not in (0, REFUSED) or (ended == REFUSED and len(text.strip().splitlines()) != 1):
                    yard.figures.fail(f"{job.name}: exit code {ended}, {text[-300:]!r}", what)
                remount(yard.home, LARGE_DISK)
                yard.check(job, {}, what)
                row["disks"] += 1
                row["said so"] += ended == REFUSED
        yard.figures.add("full disks", row["disks"])
        yard.figures.tables.setdefault("full disks", []).append(row)


def _send(process: int, killer: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, killer)


def campaign(seconds: float, seed: int) -> Figures:
    """Fail all operations first, then kill for the time that is left."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        yard = Yard(Path(folder).resolve(), seed)
        prepare(yard.home)
        for job in JOBS:
            # What is imported and compiled here need not be in the forks.
            run_verb(words_of(job, yard.out), yard.home)
            yard.clean(job)
        for job in JOBS:
            if time.monotonic() - started < 0.5 * seconds:
                yard.fault(job)
        fill_disks(yard, started + 0.6 * seconds)
        number = 0
        while number < LEAST or time.monotonic() - started < seconds:
            yard.kill(number)
            number += 1
        os.chdir("/")
    yard.figures.seconds = time.monotonic() - started
    return yard.figures


if __name__ == "__main__":
    found = campaign(float(sys.argv[1]), int(sys.argv[2]))
    shown = {"seconds": found.seconds, "counts": found.counts, "tables": found.tables, "skipped": found.skipped}
    print(json.dumps(shown | {"failures": [(one.what, one.repeat) for one in found.failures]}))
