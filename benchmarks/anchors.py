"""How far learnt noise rates are from the true ones, by where f is looked at (Algorithm 1, `anchors=`).

    .venv/bin/python benchmarks/anchors.py [--data FOLDER] [--seeds 20]

OME-DR at its defaults, on Coat with flipped labels and on simulated worlds of 400 x 600 whose rates are known, with and
without pairs that are surely liked. For each: the root mean squared error of both rates, the share of seeds that end at
`max_rate`, and AUC and log loss on clean labels of random pairs, beside those with the true rates. One thread.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import torch

import verirec as vr

WORLDS = {
    "separable (.2, .1)": ((0.2, 0.1), {}),
    "separable (.1, .2)": ((0.1, 0.2), {}),
    "separable (.05, .05)": ((0.05, 0.05), {}),
    "separable, no selection (.2, .1)": ((0.2, 0.1), {"selectivity": 0.0}),
    "not separable (.2, .1)": ((0.2, 0.1), {"weak_separability": False}),
}
COAT = {"coat (.2, .1)": (0.2, 0.1), "coat (.1, .2)": (0.1, 0.2)}


def problems(data: str | None, seed: int) -> Iterator[tuple[str, vr.NoiseRates, vr.FeedbackLog, vr.FeedbackLog]]:
    """Make every world once: its name, true rates, log, and clean labels of random pairs."""
    for name, (rates, options) in WORLDS.items():
        true = vr.NoiseRates(*rates)
        world = vr.simulate.world(400, 600, noise_rates=true, random_state=seed, **options)
        pairs = np.random.default_rng(seed).choice(400 * 600, size=20_000, replace=False)
        users, items = pairs // 600, pairs % 600
        labels = world.at(users, items).true_labels
        yield name, true, world.log, vr.FeedbackLog.from_arrays(users, items, labels, n_users=400, n_items=600)
    for name, rates in COAT.items() if data else ():
        coat, true = vr.load_dataset("coat", data_home=data), vr.NoiseRates(*rates)
        yield name, true, coat.train.with_noise(true, random_state=seed), coat.test


def rows(data: str | None, seed: int) -> Iterator[dict[str, Any]]:
    for name, true, log, test in problems(data, seed):
        for anchors in ("epoch", "batch", "fixed", "true rates"):
            known = anchors == "true rates"
            method = vr.methods.OMEDR(anchors="fixed" if known else anchors, refit=False, random_state=seed)
            method.fit(log, noise_rates=true if known else None)
            found, learnt = vr.metrics.evaluate(method.predictions, test, k=5), method.noise_rates_
            yield {
                "world": name,
                "anchors": anchors,
                "rho01_mse": (learnt.rho01 - true.rho01) ** 2,
                "rho10_mse": (learnt.rho10 - true.rho10) ** 2,
                "at_cap": max(learnt.rho01, learnt.rho10) >= method.max_rate,
                "auc": found["auc"],
                "log_loss": found["log_loss"],
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder with Coat; without it simulated worlds alone")
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    table = pd.DataFrame([row for seed in range(options.seeds) for row in rows(options.data, seed)])
    groups = table.groupby(["world", "anchors"], sort=False)
    shown = groups.mean().rename(columns={"rho01_mse": "rho01_rmse", "rho10_mse": "rho10_rmse"})
    shown[["rho01_rmse", "rho10_rmse"]] **= 0.5
    shown = shown.join(groups[["auc", "log_loss"]].sem(), rsuffix="_se")
    print(shown.to_string(float_format="{:.4f}".format))
    print(shown.groupby("anchors", sort=False).mean().to_string(float_format="{:.4f}".format))


if __name__ == "__main__":
    main()
