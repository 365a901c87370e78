"""How long OME-DR takes to train: by sweeps, by Adam on blocks of the grid, and by a plain loop as the field writes it.

    .venv/bin/python benchmarks/training.py [--sizes coat music kuairec] [--rounds 2] [--data FOLDER] [--out FOLDER]

CPU seconds on one thread until the log loss and the AUC on clean labels of random pairs are as good as the worst of the
three gets (within .001), all interleaved, the least of the rounds. All minimise the same loss with the same penalties,
noise rates and propensities; the two loops have their best of several learning rates and batch sizes. Time for judging
on clean labels is not counted; all else of a fit is. In the simulated worlds propensities are the true ones: with
fitted ones, which cannot know that taste decides what is rated, the level that the loss asks for is wrong, and a loop
that is stopped on its way there looks better than one that arrives.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.nn.functional import softplus

import verirec as vr
from verirec.metrics import auc, log_loss
from verirec.nuisance.propensities import as_propensities

RATES = vr.NoiseRates(0.2, 0.1)
DIM, PENALTY, CONSTANT_PENALTY, IMPUTATION = 8, 32.0, 6.0, 3.0


@dataclass
class Problem:
    log: vr.FeedbackLog
    propensities: object
    users: np.ndarray
    items: np.ndarray
    labels: np.ndarray

    @property
    def rows_worth(self) -> float:
        """What the rows are worth, weighted by 1/p."""
        weights = 1 / self.propensities.at(self.log.users, self.log.items)  # type: ignore[attr-defined]
        return float(weights.sum() ** 2 / (weights**2).sum())

    def judge(self, f: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> tuple[float, float]:
        p = 1 / (1 + np.exp(-f(self.users, self.items)))
        return log_loss(self.labels, p), auc(self.labels, p)


def problem(size: str, data: str | None) -> Problem:
    if size == "coat" and data is not None:
        coat = vr.load_dataset("coat", data_home=data)
        noisy = coat.train.with_noise(RATES, random_state=0)
        fitted = vr.LogisticPropensity().fit(
            vr.FeedbackLog.from_arrays(
                noisy.users, noisy.items, noisy.labels, n_users=noisy.n_users, n_items=noisy.n_items
            )
        )
        return Problem(noisy, fitted, coat.test.users.astype(int), coat.test.items.astype(int), coat.test.labels)
    shapes = {"coat": (290, 300, 0.08), "music": (15_400, 1_000, 0.02), "kuairec": (7_000, 10_000, 0.015)}
    n_users, n_items, observed = shapes[size]
    world = vr.simulate.world(n_users, n_items, observed=observed, noise_rates=RATES, random_state=0)
    random = np.random.default_rng(1)
    users, items = random.integers(n_users, size=50_000), random.integers(n_items, size=50_000)
    true = as_propensities(world.propensity_values.cells, world.log)
    return Problem(world.log, true, users, items, world.at(users, items).true_labels)


class PlainMF(nn.Module):
    def __init__(self, n_users: int, n_items: int) -> None:
        super().__init__()
        scale = 0.1**0.5 / DIM**0.25
        self.users, self.items = nn.Embedding(n_users, DIM), nn.Embedding(n_items, DIM)
        self.user_constants, self.item_constants = nn.Embedding(n_users, 1), nn.Embedding(n_items, 1)
        self.constant = nn.Parameter(torch.zeros(()))
        for factors in (self.users, self.items):
            nn.init.normal_(factors.weight, std=scale)
        for constants in (self.user_constants, self.item_constants):
            nn.init.zeros_(constants.weight)

    def forward(self, users: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
        factors = (self.users(users) * self.items(items)).sum(1)
        return factors + self.user_constants(users).squeeze(1) + self.item_constants(items).squeeze(1) + self.constant

    def groups(self, times: float, rows: float) -> list[dict[str, object]]:
        penalties = (
            (self.users, PENALTY),
            (self.items, PENALTY),
            (self.user_constants, CONSTANT_PENALTY),
            (self.item_constants, CONSTANT_PENALTY),
        )
        groups = [{"params": [part.weight], "weight_decay": times * one / rows} for part, one in penalties]
        return [*groups, {"params": [self.constant], "weight_decay": 0.0}]


def plain_loop(given: Problem, rate: float, batch: int, steps: int, judge: Callable[[object], bool]) -> None:
    """Train OME-DR as the field does: a random batch of O and one of random pairs of D a step."""
    log, density = given.log, given.log.density
    torch.manual_seed(0)
    f, g = (PlainMF(log.n_users, log.n_items) for _ in range(2))
    rows_worth = given.rows_worth
    f_optimiser = torch.optim.Adam(f.groups(1.0, rows_worth), lr=rate, eps=1e-12)
    g_optimiser = torch.optim.Adam(g.groups(IMPUTATION, rows_worth), lr=rate, eps=1e-12)
    p = given.propensities.at(log.users, log.items)  # type: ignore[attr-defined]
    for step in range(steps):
        rows = np.random.default_rng(step).integers(len(log), size=batch)
        users, items = (
            torch.as_tensor(log.users[rows].astype(np.int64)),
            torch.as_tensor(log.items[rows].astype(np.int64)),
        )
        labels = (torch.as_tensor(log.labels[rows].astype(np.float32)) - RATES.rho10) / 0.7
        weights = torch.as_tensor((1 / p[rows]).astype(np.float32))
        all_users, all_items = torch.randint(log.n_users, (batch,)), torch.randint(log.n_items, (batch,))
        z, z_all = f(users, items), f(all_users, all_items)
        imputed, imputed_all = torch.sigmoid(g(users, items)).detach(), torch.sigmoid(g(all_users, all_items)).detach()
        errors = softplus(z) - labels * z
        loss = (softplus(z_all) - imputed_all * z_all).mean()
        loss = loss + density * (weights * (errors - (softplus(z) - imputed * z))).mean()
        f_optimiser.zero_grad()
        loss.backward()
        f_optimiser.step()
        z = f(users, items).detach()
        errors = softplus(z) - labels * z
        imputed_errors = softplus(z) - torch.sigmoid(g(users, items)) * z
        imputation_loss = density * (weights * (errors - imputed_errors) ** 2).mean()
        g_optimiser.zero_grad()
        imputation_loss.backward()
        g_optimiser.step()
        if (step + 1) % max(1, len(log) // batch // 2 or 1) == 0 and judge(f):
            return


def ours(solver: str) -> Callable[..., None]:
    """Train OME-DR by the library."""

    def run(given: Problem, rate: float, batch: int, steps: int, judge: Callable[[object], bool]) -> None:
        epochs = 100 if solver == "sweep" else max(1, steps * batch // len(given.log))

        class Enough(Exception):
            pass

        method = vr.methods.OMEDR(
            dim=DIM,
            penalty_factors=PENALTY,
            penalty_constants=CONSTANT_PENALTY,
            imputation_penalty=IMPUTATION,
            solver=solver,
            learning_rate=rate,
            batch_size=batch,
            epochs=epochs,
            patience=None,
            validation=0.01,
            validation_estimator="naive",
        )

        def look(epoch: int, epochs: int, held_out: float) -> None:
            if judge(method.f):
                raise Enough

        with contextlib.suppress(Enough):
            method.fit(given.log, noise_rates=RATES, propensities=given.propensities, progress=look)

    return run


def course(
    run: Callable[..., None], given: Problem, rate: float, batch: int, steps: int, budget: float
) -> list[tuple[float, float, float]]:
    """Return (CPU seconds, log loss, AUC) as training goes; judging is not counted."""
    seen: list[tuple[float, float, float]] = []
    start, spent = time.process_time(), [0.0]

    def judge(model: object) -> bool:
        now = time.process_time()
        with torch.no_grad():
            loss, area = given.judge(lambda u, i: model(torch.as_tensor(u), torch.as_tensor(i)).double().numpy())  # type: ignore[operator]
        seen.append((now - start - spent[0], loss, area))
        spent[0] += time.process_time() - now
        worse = len(seen) > 8 and min(one[1] for one in seen[-6:]) > min(one[1] for one in seen) + 0.003
        return seen[-1][0] > budget or worse

    run(given, rate, batch, steps, judge)
    return seen


CONTENDERS = {"plain loop": plain_loop, "gradient": ours("gradient"), "sweep": ours("sweep")}
RATES_TRIED, BATCHES_TRIED = (0.003, 0.01, 0.03), (2_048, 8_192)


def compare(size: str, options: argparse.Namespace) -> list[dict[str, object]]:
    """Run all contenders on a problem, and give a row for each."""
    given = problem(size, options.data)
    runs: dict[str, list[tuple[float, int, list[tuple[float, float, float]]]]] = {name: [] for name in CONTENDERS}
    course(CONTENDERS["sweep"], given, 0.01, 2_048, 2, 1.0)  # compiles
    for _ in range(options.rounds):
        for rate, batch in itertools.product(RATES_TRIED, BATCHES_TRIED):
            for name, run in CONTENDERS.items():
                if name != "sweep" or (rate, batch) == (RATES_TRIED[0], BATCHES_TRIED[0]):
                    runs[name].append((rate, batch, course(run, given, rate, batch, 20_000, options.budget)))
    reached = {name: min(one[1] for run in all_ for one in run[2]) for name, all_ in runs.items()}
    target = max(reached.values()) + 0.001
    areas = {name: max(one[2] for run in all_ for one in run[2] if one[1] <= target) for name, all_ in runs.items()}
    area = min(areas.values()) - 0.001
    rows: list[dict[str, object]] = []
    for name, all_ in runs.items():
        times = [min((t for t, loss, auc in run[2] if loss <= target and auc >= area), default=np.inf) for run in all_]
        best = int(np.argmin(times))
        rate, batch, seen = all_[best]
        found = {"size": size, "rows": len(given.log), "contender": name, "cpu_s": times[best]}
        tuned = {} if name == "sweep" else {"learning_rate": rate, "batch_size": batch}
        rows.append(found | tuned | {"log_loss": reached[name], "auc": areas[name], "target": target, "course": seen})
    for row in rows:
        row["less_than_plain"] = rows[0]["cpu_s"] / row["cpu_s"]  # type: ignore[operator]
    return rows


def draw(rows: list[dict[str, object]], path: Path) -> None:
    """Draw the log loss against CPU seconds, a panel a size."""
    sizes = list(dict.fromkeys(str(row["size"]) for row in rows))
    figure, panels = plt.subplots(1, len(sizes), figsize=(4.2 * len(sizes), 3.4), squeeze=False, layout="constrained")
    for axes, size in zip(panels[0], sizes, strict=True):
        for row, colour in zip(
            [row for row in rows if row["size"] == size], ("#999999", "#1f77b4", "#d62728"), strict=True
        ):
            times, losses, _ = zip(*row["course"], strict=True)  # type: ignore[call-overload]
            axes.plot(times, np.minimum.accumulate(losses), color=colour, label=row["contender"], marker=".")
        axes.axhline(float(str(row["target"])), color="#cccccc", linewidth=1)
        axes.set(xscale="log", title=f"{size}, {row['rows']:,} rows", xlabel="CPU seconds, one thread")
        axes.spines[["top", "right"]].set_visible(False)
    panels[0][0].set_ylabel("log loss on clean labels, best so far")
    panels[0][0].legend(frameon=False)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", default=["coat", "music", "kuairec"])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--budget", type=float, default=60.0, help="CPU seconds of one run, at most")
    parser.add_argument("--data", help="folder with the real Coat; without it a simulated one of its size")
    parser.add_argument("--out", type=Path, help="folder for training.csv and training.png")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = [row for size in options.sizes for row in compare(size, options)]
    table = pd.DataFrame(rows).drop(columns="course")
    print(table.to_string(index=False, float_format="{:.4g}".format))
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        table.to_csv(options.out / "training.csv", index=False, float_format="%.5g")
        draw(rows, options.out / "training.png")


if __name__ == "__main__":
    main()
