"""Training on clicks alone: how well rel-mf ranks what people like, by its power, beside popularity.

    python benchmarks/click_training.py [--worlds 5]

Worlds of 400 x 300 pairs as in docs/clicks.md, each with clicks of its own: AUC of true labels over all pairs, and the
mean of each user's, with standard errors over worlds.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

import verirec as vr

SHAPE, POWERS = (400, 300), (0.0, 0.5, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=5)
    worlds = parser.parse_args().worlds
    warnings.simplefilter("ignore", vr.exceptions.ColdStartWarning)
    found: dict[str, list[tuple[float, float]]] = {}
    for seed in range(worlds):
        for name, values in of_world(seed).items():
            found.setdefault(name, []).append(values)
    print(f"{'':<20}{'AUC':>8}{'s.e.':>8}{'by user':>10}{'s.e.':>8}")
    for name, rows in found.items():
        (whole, by_user), errors = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1) / worlds**0.5
        print(f"{name:<20}{whole:>8.4f}{errors[0]:>8.4f}{by_user:>10.4f}{errors[1]:>8.4f}")


def of_world(seed: int) -> dict[str, tuple[float, float]]:
    """Return the AUC of all pairs and by user, by what ranks them."""
    rates = vr.NoiseRates(0.3, 0.05)
    world = vr.simulate.world(*SHAPE, selectivity=2, observed=0.1, noise_rates=rates, random_state=seed)
    clicks = world.log.select(world.log.labels == 1)
    users, items = (one.ravel() for one in np.indices(SHAPE))
    scores = {
        f"rel-mf, power {power:g}": vr.methods.RELMF(power=power).fit(clicks).predict(users, items).reshape(SHAPE)
        for power in POWERS
    }
    scores["popularity"] = np.broadcast_to(np.bincount(clicks.items, minlength=SHAPE[1]), SHAPE)
    liked = world.true_labels == 1
    both = [user for user in range(SHAPE[0]) if liked[user].any() and not liked[user].all()]
    return {
        name: (auc(given.ravel(), liked.ravel()), float(np.mean([auc(given[user], liked[user]) for user in both])))
        for name, given in scores.items()
    }


def auc(scores: np.ndarray, liked: np.ndarray) -> float:
    """Return the share of pairs of a liked and a disliked one that are in order, ties by half."""
    ordered = np.sort(scores[~liked])
    below = np.searchsorted(ordered, scores[liked], "left") + np.searchsorted(ordered, scores[liked], "right")
    return float(below.mean() / (2 * len(ordered)))


if __name__ == "__main__":
    main()
