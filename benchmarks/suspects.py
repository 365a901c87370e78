"""How many of the most suspect labels are wrong: ours, cleanlab's, and chance.

    pip install cleanlab      # in an environment of its own that has verirec
    python benchmarks/suspects.py [--worlds 10]

Both get the same cross-fitted probabilities (user and item constants); ours knows the noise rates from an audit of 300
pairs.
"""

from __future__ import annotations

import argparse

import numpy as np
from cleanlab.rank import get_label_quality_scores

import verirec as vr
from verirec.nuisance.label_model import LabelModel

TOPS = (0.01, 0.05, 0.1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=10)
    options = parser.parse_args()
    precision: dict[tuple[str, float], list[float]] = {}
    for seed in range(options.worlds):
        world = vr.simulate.world(600, 800, noise_rates=vr.NoiseRates(0.2, 0.1), random_state=seed)
        log, random = world.log, np.random.default_rng(seed)
        wrong = world.at(log.users, log.items).true_labels != log.labels
        rows = random.choice(len(log), 300, replace=False)
        users, items = log.users[rows], log.items[rows]
        audit = vr.AuditSample(users, items, world.at(users, items).true_labels)
        ours = vr.find_suspect_labels(log, vr.AuditNoiseRates().fit(log, audit=audit)).rows
        h = LabelModel().cross_fit(log, np.ones(len(log)), 5, 0)
        scores = get_label_quality_scores(log.labels, np.stack([1 - h, h], axis=1))
        orders = {"verirec": ours, "cleanlab": np.argsort(scores), "chance": random.permutation(len(log))}
        for name, order in orders.items():
            for top in TOPS:
                precision.setdefault((name, top), []).append(float(wrong[order[: int(top * len(log))]].mean()))
    print(
        "| share of wrong labels among the top | " + " | ".join(f"{top:.0%}" for top in TOPS) + " |\n|---|---|---|---|"
    )
    for name in ("verirec", "cleanlab", "chance"):
        print(f"| {name} | " + " | ".join(f"{np.mean(precision[name, top]):.3f}" for top in TOPS) + " |")


if __name__ == "__main__":
    main()
