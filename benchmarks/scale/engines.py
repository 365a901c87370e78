"""Ray beside processes on one machine: wall and CPU time of the same jobs, and whether their bits are the same.

    python -m benchmarks.scale.engines grid --log LOG      # an estimate over all pairs of the log's grid
    python -m benchmarks.scale.engines sample --log LOG    # one of sampled pairs
    python -m benchmarks.scale.engines sweeps              # sweeps of OME-DR, with the rows at workers
    python -m benchmarks.scale.engines tune                # a search by folds
    python -m benchmarks.scale.engines page                # writes the table into docs/scale.md

LOG is a prepared log (`benchmarks/prepared_logs.py`). The engines take turns. The first round starts workers, sends
rows and compiles: it is kept apart. What a job took is kept in engines.json; CPU time is that of this process and all
that were started under it, Ray's own among them.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
from benchmarks.scale.cost_model import PAGE, shown_time
from benchmarks.scale.sweeps import made_log, made_solver

import verirec as vr
from verirec.atomic_write import replace_file
from verirec.engine import Engine, as_engine
from verirec.engine.revision import revision
from verirec.training.threads import one_thread

KEPT: Final = Path(__file__).with_name("engines.json")
BEGIN, END = "<!-- written by benchmarks/scale/engines.py -->\n", "<!-- end of the engines -->\n"
FACTORS: Final = 32
RATES: Final = vr.NoiseRates(0.2, 0.1)
WANTED: Final = 1.3
Run = Callable[[], list[str]]
"""Does a job, and returns the bits that came of it."""


def estimated(options: argparse.Namespace, engine: Engine) -> tuple[Run, str]:
    """Estimate a loss, of all pairs or of a sample."""
    log = vr.scan_log(options.log, memory="2GB")
    random = np.random.default_rng(0)
    sides = (random.normal(0, 0.1, (size, FACTORS)).astype(np.float32) for size in log.shape)
    factors, sample = vr.Factors(*sides, link="logistic"), options.pairs if options.job == "sample" else None

    def run() -> list[str]:
        found = vr.estimate(factors, log, estimators=("dr",), sample=sample, engine=engine)["dr"]
        return [found.value.hex(), float(found.standard_error).hex()]

    pairs = f"{sample:,} sampled pairs" if sample else f"all {log.n_cells:,} pairs"
    return run, f"`estimate` over {pairs}, {len(log):,} rows"


def swept(options: argparse.Namespace, engine: Engine) -> tuple[Run, str]:
    """Sweep, from where the last round came to."""
    folder = tempfile.mkdtemp(dir=options.folder)
    log = made_log(Path(folder), options.rows, options.users, options.items)
    solver, epochs = made_solver(log, FACTORS, engine), iter(range(1_000))

    def run() -> list[str]:
        losses = []
        for _ in range(options.sweeps):
            losses += list(solver.train_epoch(next(epochs), lambda make_batch: solver.objective.correction))
        bits = [float(one["loss"]).hex() for one in losses]
        return [*bits, *(float(one.users.double().sum()).hex() for one in solver.factors.values())]

    return run, f"{options.sweeps} sweeps of OME-DR, {FACTORS} factors, {len(log):,} rows"


def tuned(options: argparse.Namespace, engine: Engine) -> tuple[Run, str]:
    """Search the settings of a method by folds."""
    random, users, items = np.random.default_rng(0), 20_000, 10_000
    pairs = np.divmod(np.unique(random.integers(users * items, size=100 * users)), items)
    labels = random.integers(0, 2, len(pairs[0]))
    log = vr.FeedbackLog.from_arrays(*pairs, labels, n_users=users, n_items=items)

    def run() -> list[str]:
        method = vr.methods.OMEIPS(dim=FACTORS, epochs=20, solver="sweep", random_state=0)
        found = vr.methods.tune(method, log, trials=3, folds=4, noise_rates=RATES, engine=engine)
        return [float(one).hex() for one in found.predict(log.user_ids.ids()[:100], log.item_ids.ids()[:100])]

    return run, f"`tune`, 3 trials of 4 folds, {len(log):,} rows"


JOBS: Final = {"grid": estimated, "sample": estimated, "sweeps": swept, "tune": tuned}


def cpu_seconds() -> float:
    """Return what this process and those under it have taken."""
    parents, ticks = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        parents[int(folder.name)], ticks[int(folder.name)] = int(fields[1]), int(fields[11]) + int(fields[12])

    def ours(process: int) -> bool:
        return process == os.getpid() or (process in parents and ours(parents[process]))

    return sum(value for process, value in ticks.items() if ours(process)) / os.sysconf("SC_CLK_TCK")


@contextmanager
def both(workers: int) -> Iterator[dict[str, Engine]]:
    with as_engine("processes", workers) as processes, as_engine("ray", workers) as ray:
        yield {"processes": processes, "ray": ray}


def raced(options: argparse.Namespace) -> dict[str, Any]:
    """Have both engines do a job in turns."""
    told: dict[str, Any] = {"job": options.job, "revision": revision(), "workers": options.workers}
    bits: dict[str, list[list[str]]] = {"processes": [], "ray": []}
    with tempfile.TemporaryDirectory() as folder, both(options.workers) as engines, one_thread():
        options.folder = folder
        made = {name: JOBS[options.job](options, engine) for name, engine in engines.items()}
        told["what"] = made["ray"][1]
        told |= {name: {"wall": [], "cpu": []} for name in engines}
        for round_ in range(options.rounds + 1):
            for name in list(engines)[:: -1 if round_ % 2 else 1]:
                clock, before = time.perf_counter(), cpu_seconds()
                bits[name].append(made[name][0]())
                took = {"wall": time.perf_counter() - clock, "cpu": cpu_seconds() - before}
                for key, value in took.items():
                    told[name][key].append(round(value, 3))
                print(name, took, flush=True)
    return told | {"same_bits": bits["processes"] == bits["ray"]}


def table(found: list[dict[str, Any]]) -> str:
    """Return the page's table."""
    lines = [
        "| job | processes | Ray | ratio of medians | of the least | CPU | same bits | first round |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in found:
        walls = {name: np.array(one[name]["wall"][1:]) for name in ("processes", "ray")}
        cpus = {name: float(np.median(one[name]["cpu"][1:])) for name in walls}
        ratios = [float(of(walls["ray"]) / of(walls["processes"])) for of in (np.median, np.min)]
        cells = [
            one["what"],
            *(f"{shown_time(np.median(wall))} ({shown_time(np.min(wall))})" for wall in walls.values()),
            f"{ratios[0]:.2f}" + ("" if ratios[0] <= WANTED else " (missed)"),
            f"{ratios[1]:.2f}",
            f"{shown_time(cpus['processes'])}, {shown_time(cpus['ray'])}",
            "yes" if one["same_bits"] else "**no**",
            ", ".join(shown_time(one[name]["wall"][0]) for name in walls),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def written() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else []
    return found


def write_page() -> None:
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    replace_file(PAGE, f"{before}{BEGIN}\n{table(written())}\n\n{END}{rest.split(END)[1]}".encode())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", choices=[*JOBS, "page"])
    parser.add_argument("--log", type=Path)
    sizes = {"pairs": 30_000_000, "rows": 20_000_000, "users": 200_000, "items": 60_000, "sweeps": 5}
    for name, usual in {**sizes, "rounds": 3, "workers": 2}.items():
        parser.add_argument(f"--{name}", type=int, default=usual)
    options = parser.parse_args()
    if options.job == "page":
        return write_page()
    warnings.simplefilter("ignore")
    told = raced(options)
    found = {one["job"]: one for one in written()} | {told["job"]: told}
    kept = [found[name] for name in JOBS if name in found]
    replace_file(KEPT, (json.dumps(kept, indent=1) + "\n").encode())
    return print(table([told]))


if __name__ == "__main__":
    main()
