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
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from torture.campaign import ONE_THREAD, ROOT, Figures, environment
from torture.kill.disks import PAGE, remount, small_disk
from torture.kill.faults import OPERATIONS, Disk, available, preloaded
from torture.kill.jobs import JOBS, Job, contents, in_child, prepare, run_verb, words_of
from verirec.resuming import pieces

ERRORS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO}
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
REFUSED = 2
SHARES_OF_A_DISK = (0.0, 0.5, 0.9, 1.5)
LARGE_DISK = 2**25
LEAST = 3
"""Kills, however late it is."""
FAULTS, DISKS = 0.5, 0.1
"""Shares of the time that faults and full disks may take before a verb is begun; kills have the rest."""


def run(budget_seconds: float, seed: int) -> Figures:
    """Run the campaign in a process of its own, with one thread: forks of it are warm."""
    command = [sys.executable, "-m", "torture.kill.run", str(budget_seconds), str(seed)]
    with tempfile.TemporaryDirectory() as folder:
        variables = environment(**ONE_THREAD, **preloaded(Path(folder)))
        done = subprocess.run(command, stdout=subprocess.PIPE, env=variables, cwd=ROOT, check=True)
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
        self.whole: dict[str, list[dict[str, str]]] = {}
        self.seconds: dict[str, float] = {}

    def clean(self, job: Job) -> None:
        """Run a job undisturbed: an earlier output first, which is kept, and then what is wanted."""
        self.empty()
        self._undisturbed(job, *job.other)
        shutil.copytree(self.out, self.home / "earlier" / job.name)
        self.empty()
        started = time.monotonic()
        self._undisturbed(job)
        self.seconds[job.name] = time.monotonic() - started
        self.wanted[job.name] = contents(self.out)
        self.whole[job.name] = [self.wanted[job.name]]
        if job.rest is not None:
            self.empty()
            self.child(job, stopped_at=job.rest)
            self.whole[job.name].append(contents(self.out))

    def _undisturbed(self, job: Job, *more: str) -> None:
        code, said = self.child(job, *more)
        if code:
            raise RuntimeError(f"{job.name}: {said}")

    def empty(self) -> None:
        """Remove what was written."""
        shutil.rmtree(self.out.parent, ignore_errors=True)
        self.out.mkdir(parents=True)

    def begin(self, job: Job, *, there: bool) -> dict[str, str]:
        """Have an earlier output there, so that there is something to lose, or nothing; return what there is."""
        self.empty()
        if there:
            shutil.copytree(self.home / "earlier" / job.name, self.out, dirs_exist_ok=True)
        return contents(self.out)

    def child(
        self,
        job: Job,
        *more: str,
        disk: Disk | None = None,
        stopped_at: tuple[str, str] | None = None,
        started: Any = lambda process: None,
    ) -> tuple[int, str]:
        """Run a job in a fork; give its exit code and what it said."""
        said = self.home / "said"

        def work() -> int:
            if stopped_at is not None:
                setattr(import_module(stopped_at[0]), stopped_at[1], _stop)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            if disk is not None:
                disk.install()
            try:
                code, text = run_verb(words_of(job, self.out, *more), self.home)
            except KeyboardInterrupt:
                code, text = 130, "verirec: stopped\n"
            shown = {"said": text, "done": [] if disk is None else disk.done()}
            said.write_text(json.dumps(shown))
            return code

        said.unlink(missing_ok=True)
        code = in_child(work, started=started)
        return code, said.read_text() if said.exists() else "{}"

    def check(self, job: Job, before: dict[str, str], what: str) -> None:
        """Check that each output is the old or the new one, then run again and compare bits."""
        now, wanted = contents(self.out), self.wanted[job.name]
        for name in {*before, *now}:
            if now.get(name) not in (before.get(name), *(one.get(name) for one in self.whole[job.name])):
                self.figures.add("half-written")
                self.figures.fail(f"{job.name}: {name} is neither the old nor the new output", what)
        if any(name not in now for name in before):
            self.figures.add("lost")
            self.figures.fail(f"{job.name}: an output that was there is lost", what)
        # Several files cannot all be renamed at once: a run that was killed between two may leave some of each run.
        self.figures.add("of both runs", now not in (before, *self.whole[job.name]) and bool(before))
        if job.again is None and now == wanted:
            return
        resumable = job.resumes and any(self.out.glob("checkpoint*"))
        code, said = self.child(job, *(("--resume",) if resumable else job.again or ()))
        if code == REFUSED and resumable:
            code, said = self.child(job, *(job.again or ()))
        same = contents(self.out) == wanted
        self.figures.add("resumed" if resumable else "run again")
        if code or not same:
            self.figures.fail(f"{job.name}: run again it gives {'other bits' if not code else said}", what)

    def fault(self, job: Job) -> None:
        """Fail every file operation of a job in turn, with nothing there and with an earlier output there."""
        for there in (False, True) if job.again is not None else (False,):
            self.begin(job, there=there)
            said = self.child(job, *_added(job, there), disk=Disk(str(self.out.parent)))[1]
            operations: list[str] = json.loads(said)["done"]
            row = {"verb": job.name, "over an old output": there, "operations": len(operations)}
            row |= {name: operations.count(name) for name in OPERATIONS.values()}
            ends: dict[int, int] = {}
            for number in range(1, len(operations) + 1):
                for name, code in ERRORS.items():
                    ended = self._failed(job, there, number, operations[number - 1], name, code)
                    ends[ended] = ends.get(ended, 0) + 1
            self.figures.tables.setdefault("faults", []).append(
                row | {"went on": ends.get(0, 0), "said so": ends.get(2, 0)}
            )

    def _failed(self, job: Job, there: bool, number: int, operation: str, name: str, code: int) -> int:
        before = self.begin(job, there=there)
        ended, said = self.child(job, *_added(job, there), disk=Disk(str(self.out.parent), number, code))
        self.figures.add("faults")
        what = f"operation {number} ({operation}) of {job.name} ended in {name}, {'over an old output' if there else 'new'}"
        self._judge_end(job, ended, said, what)
        self.check(job, before, what)
        return ended

    def _judge_end(self, job: Job, ended: int, said: str, what: str) -> None:
        text = json.loads(said).get("said", "") if said.startswith("{") else said
        if ended not in (0, REFUSED) or (ended == REFUSED and len(text.strip().splitlines()) != 1):
            self.figures.fail(f"{job.name}: exit code {ended}, {text[-300:]!r}", what)
        if ended == 0 and contents(self.out) != self.wanted[job.name]:
            self.figures.fail(f"{job.name}: said nothing, and its output is not there", what)

    def kill(self, number: int) -> None:
        """Kill a job at a random moment."""
        job = JOBS[number % len(JOBS)]
        killer = SIGNALS[number // len(JOBS) % len(SIGNALS)]
        there = bool(number // len(JOBS) // len(SIGNALS) % 2) and job.again is not None
        before = self.begin(job, there=there)
        moment = float(self.random.uniform(0, 1.05 * self.seconds[job.name]))

        def started(process: int) -> None:
            timer = threading.Timer(moment, _send, (process, killer))
            timer.daemon = True
            timer.start()

        ended, _ = self.child(job, *_added(job, there), started=started)
        self.figures.add("kills")
        self.figures.add("kills that came in time", ended != 0)
        what = f"kill {number} of seed {self.figures.seed}: {killer.name} after {moment:.4f} s"
        if ended not in (0, -killer, 130):
            self.figures.fail(f"{job.name}: exit code {ended}", what)
        self.check(job, before, what)

    def fill_disks(self, job: Job) -> bool:
        """Run a job on file systems that are too small for it, and then on one that is not; return whether there are any."""
        needed = sum(file.stat().st_size for file in (self.home / "earlier" / job.name).rglob("*") if file.is_file())
        row: dict[str, Any] = {"verb": job.name, "bytes of an output": needed, "disks": 0, "said so": 0}
        for share in SHARES_OF_A_DISK:
            size = max(PAGE, int(share * needed) // PAGE * PAGE)
            self.empty()
            with small_disk(self.home, size) as refused:
                if refused:
                    self.figures.skipped["full disks"] = refused
                    return False
                self.out.mkdir()
                what = f"{job.name} on a disk of {size:,} bytes"
                ended, said = self.child(job)
                self._judge_end(job, ended, said, what)
                remount(self.home, LARGE_DISK)
                self.check(job, {}, what)
                row["disks"] += 1
                row["said so"] += ended == REFUSED
        self.figures.add("full disks", row["disks"])
        self.figures.tables.setdefault("full disks", []).append(row)
        return True


def _stop(*_: Any) -> None:
    raise KeyboardInterrupt


def _added(job: Job, there: bool) -> tuple[str, ...]:
    return (job.again or ()) if there else ()


def _send(process: int, killer: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, killer)


def campaign(seconds: float, seed: int) -> Figures:
    """Fail all operations first, then kill for the time that is left."""
    started = time.monotonic()
    pieces.WORTH_KEEPING = 0.0  # Such small jobs would keep none of their parts.
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        yard = Yard(Path(folder).resolve(), seed)
        prepare(yard.home)
        for job in JOBS:
            # What is imported and compiled here need not be in the forks.
            run_verb(words_of(job, yard.out), yard.home)
            yard.clean(job)
        if not available():
            yard.figures.skipped["faults"] = "there is no C compiler for the layer that fails, or this is not Linux"
        # In a short form, one verb or two.
        for number, job in enumerate(JOBS):
            if available() and (not number or time.monotonic() - started < FAULTS * seconds):
                yard.fault(job)
        for number, job in enumerate(JOBS):
            if (number and time.monotonic() - started > (FAULTS + DISKS) * seconds) or not yard.fill_disks(job):
                break
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
