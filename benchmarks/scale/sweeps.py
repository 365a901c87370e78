"""Sweeps of OME-DR on many workers, measured: CPU time, memory and what is sent.

    python -m benchmarks.scale.sweeps --rows 10_000_000 --users 100_000 --items 20_000 --engine processes --workers 2

The log is made of arrays that are mapped from files, as a prepared log's are, and memory is limited as there: weights
and the models of before a sweep are in temporary files. Users have about as many rows each, items are drawn by a power
law. What comes before the first sweep of a fit (propensities, penalties) is not measured.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch

import verirec as vr
from verirec.data.feedback_log import FeedbackLog
from verirec.engine import as_engine
from verirec.engine import processes as processes_module
from verirec.engine.base import Host
from verirec.engine.worker import Reply
from verirec.models import FactorModel, Penalties
from verirec.scratch import DEFAULT_MEMORY, each, limit_memory, mapped_file
from verirec.training.correction import make_correction
from verirec.training.data import TrainingData
from verirec.training.learner import Learner, Learners
from verirec.training.objective import ImputedLabels, PseudoLabels
from verirec.training.solvers.sharded import ShardedSolver
from verirec.training.threads import one_thread

RATES = vr.NoiseRates(0.2, 0.1)
SWEEPS = 4
"""Of which the first, which compiles, is not counted."""


def made_log(folder: Path, rows: int, n_users: int, n_items: int) -> FeedbackLog:
    """Write a log's arrays, some users at a time, and map them."""
    columns = {"users": np.int32, "items": np.int32, "labels": np.int8}
    files = {name: (folder / name).open("wb") for name in columns}
    random, each = np.random.default_rng(0), rows // n_users
    for start in range(0, n_users, 10_000):
        users = np.repeat(np.arange(start, min(start + 10_000, n_users), dtype=np.int32), each)
        items = (n_items * random.random(len(users)) ** 2).astype(np.int32)
        order = np.argsort(users.astype(np.int64) * n_items + items)
        found = {"users": users, "items": items[order], "labels": random.integers(0, 2, len(users), dtype=np.int8)}
        for name, values in found.items():
            files[name].write(values.tobytes())
    for file in files.values():
        file.close()
    mapped = {name: np.frombuffer(mapped_file(folder / name), kind) for name, kind in columns.items()}
    return FeedbackLog._of_checked(**mapped, n_users=n_users, n_items=n_items)


class _Even:
    """Propensities that nobody asks for: weights are given."""


def made_solver(log: FeedbackLog, dim: int, engine: Any) -> ShardedSolver:
    data: Any = TrainingData(log, _Even(), 2_048, 0, 0, torch.device("cpu"))  # type: ignore[arg-type]
    random = torch.Generator().manual_seed(0)
    drawn = np.random.default_rng(1)
    weights = each(lambda users: 0.5 + drawn.random(len(users), np.float32), log.users, dtype=np.float32)
    vars(data)["weights"] = torch.from_numpy(weights).div_(log.density)
    objective = PseudoLabels(
        make_correction("surrogate", "log", RATES, data),
        lambda batch: batch.weights,
        ImputedLabels.learnt(lambda weights: weights, data, uses_propensities=True),
    )
    models = {
        name: Learner(
            FactorModel(log.n_users, log.n_items, dim, random=random), Penalties(4.0, 8.0, 10.0), 0.1, float(len(log))
        )
        for name in ("prediction", "imputation")
    }
    return ShardedSolver(objective, Learners(models, {}), data, 1.0, engine)


def spent(state: dict[str, Any]) -> tuple[float, int]:
    """Return CPU seconds and the number of a worker's process."""
    return time.process_time(), os.getpid()


class Watch(threading.Thread):
    """Looks at the memory of processes: the most that is their own, of each and of all at once.

    Parameters
    ----------
    driver, workers
        Numbers of the processes. Files that are mapped are not their own: such memory can be had back.
    """

    def __init__(self, driver: int, workers: list[int]) -> None:
        super().__init__(daemon=True)
        self.driver, self.workers, self.most, self.over = driver, workers, Counter[str](), threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.05):
            driver, *others = (_own(number) for number in (self.driver, *self.workers))
            seen = {"driver_memory": driver, "worker_memory": max(others), "memory": driver + sum(others)}
            self.most |= Counter(seen)


def _own(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text()
    return 1024 * int(next(line for line in status.splitlines() if line.startswith("RssAnon")).split()[1])


def counted() -> Counter[str]:
    """Count the bytes of messages between processes from now on."""
    found: Counter[str] = Counter()
    sendable, result = processes_module.sendable, Reply.result

    def sent(what: str, value: Any) -> bytes:
        message = sendable(what, value)
        found["sent"] += len(message)
        return message

    def received(reply: Reply) -> Any:
        found["received"] += sum(len(one) for one in reply.found)
        return result(reply)

    processes_module.sendable, Reply.result = sent, received  # type: ignore[assignment, method-assign]
    return found


def measured(rows: int, users: int, items: int, dim: int, engine: str, workers: int) -> dict[str, Any]:
    """Sweep, and return what the sweep that took least did take."""
    limit_memory(DEFAULT_MEMORY)
    with tempfile.TemporaryDirectory() as folder, as_engine(engine, workers) as where, one_thread():
        log = made_log(Path(folder), rows, users, items)
        solver, traffic = made_solver(log, dim, where), counted()
        solver._bring_up_to_date()
        hosts = list(solver.crew.shards)
        watch = Watch(os.getpid(), [host.begin(spent)()[1] for host in hosts])
        watch.start()
        sweeps = [_swept(solver, hosts, sweep, traffic) for sweep in range(SWEEPS)][1:]
        watch.over.set()
        watch.join()
        solver.close()
        return {
            "rows": len(log),
            "users": users,
            "items": items,
            "dim": dim,
            "engine": engine,
            "workers": len(hosts),
            "shards": solver.crew.count,
            **watch.most,
            "factors": float(solver.factors["prediction"].items.double().sum()),
            **min(sweeps, key=lambda one: one["shard_seconds"] + one["driver"]),
        }


def _swept(solver: ShardedSolver, hosts: list[Host], sweep: int, traffic: Counter[str]) -> dict[str, Any]:
    """Sweep once, and return what it took."""
    before = sum(host.begin(spent)()[0] for host in hosts)
    traffic.clear()
    here, clock = time.process_time(), time.perf_counter()
    losses = list(solver.train_epoch(sweep, lambda make_batch: solver.objective.correction))
    found = {"driver": time.process_time() - here, "wall": time.perf_counter() - clock, **traffic}
    after = sum(host.begin(spent)()[0] for host in hosts)
    return {"shard_seconds": after - before, "loss": float(losses[0]["loss"]), **found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, usual in (("rows", 2_000_000), ("users", 20_000), ("items", 20_000), ("dim", 32), ("workers", 2)):
        parser.add_argument(f"--{name}", type=lambda text: int(text.replace("_", "")), default=usual)
    parser.add_argument("--engine", default="processes")
    print(json.dumps(measured(**vars(parser.parse_args()))))


if __name__ == "__main__":
    main()
