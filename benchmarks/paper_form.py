"""How good factors alone, the paper's form, come out: by sweeps, by Adam, and by a plain loop as the field writes it.

    .venv/bin/python benchmarks/paper_form.py [--problems coat coat-clean kuairec music] [--data FOLDER] [--seeds 5]

The loop: small random factors, Adam on batches of rows and of random pairs, weight decay, no more. All contenders have
the same rows, held-out rows, noise rates, propensities (logistic, of users and items), number of factors and six
penalties (the loop's decay is the penalty over the number of rows, which is what ours means). All stop, and choose one
of the six, by the same estimate of the error on the held-out rows. Judged on clean labels of random pairs: nothing
is chosen by them. Labels of "coat", "kuairec" (its complete block, with selection on top) and "music" (a simulated
world of that size) are flipped at rates (.2, .1); those of "coat-clean" are not. One thread.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

import verirec as vr
from verirec.methods.base import Method
from verirec.metrics import auc, log_loss
from verirec.models import Model
from verirec.studies.table2.problems import load_problem
from verirec.training.preparation import Preparation

RATES = vr.NoiseRates(0.2, 0.1)
METHODS = ("mf", "ips", "dr-jl", "ome-dr")
PENALTIES = (0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
DIM = 8
LOOP = "loop"


@dataclass
class Problem:
    log: vr.FeedbackLog
    test: vr.FeedbackLog
    rates: vr.NoiseRates | None
    batch: int
    """Of the plain loop: about as many steps a pass on each."""

    def judge(self, model: Model) -> tuple[float, float]:
        users, items = (torch.as_tensor(side.astype(np.int64)) for side in (self.test.users, self.test.items))
        with torch.no_grad():
            p = torch.sigmoid(model(users, items).double()).numpy()
        return auc(self.test.labels, p), log_loss(self.test.labels, p)


def problem(name: str, seed: int, data: str) -> Problem:
    if name == "music":
        world = vr.simulate.world(15_400, 1_000, observed=0.02, noise_rates=RATES, selectivity=1.0, random_state=seed)
        pairs = np.random.default_rng(1).choice(15_400 * 1_000, size=50_000, replace=False)
        users, items = pairs // 1_000, pairs % 1_000
        labels = world.at(users, items).true_labels
        test = vr.FeedbackLog.from_arrays(users, items, labels, n_users=15_400, n_items=1_000)
        return Problem(world.log, test, RATES, 2_048)
    found = load_problem(name.removesuffix("-clean"), data)
    if name.endswith("-clean"):
        # Other held-out rows and other factors are what seeds differ by.
        return Problem(found.train, found.random, None, 128)
    return Problem(found.noisy(RATES, seed), found.random, RATES, 128 if name == "coat" else 512)


class PlainFactors(Model):
    """Small random factors."""

    def __init__(self, shape: tuple[int, int], random: torch.Generator) -> None:
        super().__init__()
        self.users, self.items = (nn.Parameter(0.1 * torch.randn(n, DIM, generator=random)) for n in shape)

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        return (self.users[users] * self.items[items]).sum(1)

    def grid(self, users: Tensor, items: Tensor) -> Tensor:
        return self.users[users] @ self.items[items].T


class PlainLoop:
    """The field's loop for one method."""

    def __init__(self, name: str, prepared: Preparation, decay: float, batch: int, rates: vr.NoiseRates | None) -> None:
        self.name, self.data, self.batch = name, prepared.data, batch
        self.random = torch.Generator().manual_seed(prepared.data.seed)
        self.f, self.g = (PlainFactors(self.data.shape, self.random) for _ in range(2))
        self.optimisers = [torch.optim.Adam(one.parameters(), lr=0.01, weight_decay=decay) for one in (self.f, self.g)]
        self.labels = self.data.labels
        if name.startswith("ome") and rates is not None:
            self.labels = (self.labels - rates.rho10) / (1 - rates.rho01 - rates.rho10)

    def batches(self) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
        for rows in torch.randperm(len(self.data.log), generator=self.random).split(self.batch):
            yield self.data.users[rows], self.data.items[rows], self.labels[rows], self.data.weights[rows]

    def epoch(self) -> None:
        for users, items, labels, weights in self.batches():
            z = self.f(users, items)
            self._step(0, self._loss(z, users, items, labels, self.data.density * weights))
            if "dr" in self.name:
                missed = (torch.sigmoid(self.g(users, items)) - labels) * self.f(users, items).detach()
                self._step(1, (self.data.density * weights * missed**2).mean())

    def _loss(self, z: Tensor, users: Tensor, items: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        if self.name == "mf":
            return (softplus(z) - labels * z).mean()
        if self.name == "ips":
            return (weights * (softplus(z) - labels * z)).mean()
        pairs = [torch.randint(n, (len(z),), generator=self.random) for n in self.data.shape]
        everywhere = self.f(*pairs)
        with torch.no_grad():
            imputed, at_rows = torch.sigmoid(self.g(*pairs)), torch.sigmoid(self.g(users, items))
        return (softplus(everywhere) - imputed * everywhere).mean() + (weights * (at_rows - labels) * z).mean()

    def _step(self, number: int, loss: Tensor) -> None:
        self.optimisers[number].zero_grad()
        loss.backward()
        self.optimisers[number].step()


@dataclass
class Trial:
    validation_error: float
    auc: float
    log_loss: float


def by_loop(method: Method, prepared: Preparation, given: Problem, penalty: float) -> Trial:
    rows = prepared.data.effective_rows if method.uses_propensities else len(prepared.data.log)
    loop = PlainLoop(method.name, prepared, penalty / rows, given.batch, given.rates)
    best, waited = Trial(np.inf, np.nan, np.nan), 0
    for _ in range(100):
        loop.epoch()
        error = prepared.validator(loop.f)  # type: ignore[misc]
        waited += 1
        if error < best.validation_error:
            best, waited = Trial(error, *given.judge(loop.f)), 0
        if waited == method.patience:
            break
    return best


def by_library(method: Method, prepared: Preparation, given: Problem, penalty: float) -> Trial:
    fitted = type(method)(**method.get_params() | {"penalty_factors": penalty})
    fitted.fit(given.log, noise_rates=given.rates)
    return Trial(fitted.report_.validation_error, *given.judge(fitted.models_["prediction"]))


def contend(name: str, seed: int, data: str, contenders: list[str]) -> Iterator[dict[str, Any]]:
    """Train each method by each contender with each penalty, and keep the one that held-out rows choose."""
    given = problem(name, seed, data)
    for method_name in METHODS[: 4 if given.rates else 3]:
        for contender in contenders:
            # The loop is not trained once more on all rows, so neither are the others.
            options = {"constants": False, "dim": DIM, "refit": False, "random_state": seed}
            solver = "auto" if contender == LOOP else contender
            method = vr.methods.catalogue[method_name](solver=solver, **options)
            start = time.process_time()
            prepared = method.prepare(given.log, noise_rates=given.rates, audit=None, propensities=None)
            run = by_loop if contender == LOOP else by_library
            best = min((run(method, prepared, given, one) for one in PENALTIES), key=lambda one: one.validation_error)
            seconds = time.process_time() - start
            of = {"problem": name, "method": method_name, "contender": contender, "seed": seed}
            yield of | {"auc": best.auc, "log_loss": best.log_loss, "cpu_s": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="+", default=["coat", "coat-clean", "kuairec", "music"])
    parser.add_argument("--data", required=True, help="folder with Coat and KuaiRec")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--contenders", nargs="+", default=[LOOP, "gradient", "sweep"])
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for name in options.problems:
        table = pd.DataFrame(
            [row for seed in range(options.seeds) for row in contend(name, seed, options.data, options.contenders)]
        )
        groups = table.groupby(["problem", "method", "contender"], sort=False)[["auc", "log_loss", "cpu_s"]]
        shown = groups.mean().join(groups.sem()[["auc", "log_loss"]], rsuffix="_se")
        print(shown.to_string(float_format="{:.4f}".format), flush=True)


if __name__ == "__main__":
    main()
