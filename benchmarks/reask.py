"""How precise noise rates from second answers are, and how often their 95% intervals hold, beside an audit's.

    .venv/bin/python benchmarks/reask.py [--logs 400] [--workers 2] [--sizes 200 500 2000]

Each repetition draws likes, a log of some 18,000 rows and its noise anew; then n of the logged pairs are asked about,
once for a second answer with the same noise and once for the truth. Worlds differ in how much the probability of a like
varies between pairs, of which the score sees the part of users and items. "Told" are fits that warned or refused:
coverage is given of those that were not refused, all of them and those without a warning. With --repeat, a share of the
wrong first answers is repeated, whatever the second would have been: errors are then not independent.
"""

from __future__ import annotations

import argparse
import os
import warnings
from concurrent.futures import ProcessPoolExecutor
from itertools import product

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import verirec as vr
from verirec.exceptions import ReaskError, SmallAuditWarning

SHAPE, OBSERVED = (300, 400), 0.15
WORLDS = {"wide": (0.0, 2.0), "middle": (0.0, 1.0), "narrow": (0.0, 0.5), "few likes": (-2.5, 1.5)}
"""Level of the logit of a like, and how much it varies with users, and with items."""
RATES = ((0.2, 0.1), (0.1, 0.2), (0.05, 0.05), (0.3, 0.25), (0.02, 0.02))

Task = tuple[str, tuple[float, float], int, tuple[int, ...], float]
Found = dict[tuple[str, str, str, int], tuple[float, ...]]


def drawn(world: str, rates: vr.NoiseRates, random: np.random.Generator) -> tuple[vr.FeedbackLog, np.ndarray]:
    """Draw a log, and the true labels of its rows."""
    level, spread = WORLDS[world]
    logits = level + random.normal(0, spread, (SHAPE[0], 1)) + random.normal(0, spread, SHAPE[1])
    users, items = np.nonzero(random.random(SHAPE) < OBSERVED)
    truth = (random.random(len(users)) < 1 / (1 + np.exp(-logits[users, items]))).astype(np.int8)
    said = rates.observe(truth, random.random(len(users)))
    return vr.FeedbackLog.from_arrays(users, items, said, n_users=SHAPE[0], n_items=SHAPE[1]), truth


def fitted(fit: object) -> tuple[float, ...]:
    """Return both rates, both standard errors, and whether there was a warning; nothing but a 2 if it was refused."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            rates = fit()
        except ReaskError:
            return (np.nan,) * 4 + (2.0,)
    warned = any(issubclass(one.category, SmallAuditWarning) for one in told)
    return rates.rho01, rates.rho10, *np.sqrt(np.diag(rates.covariance)), float(warned)


def one_repetition(task: Task) -> Found:
    """Return what second answers and true labels of as many pairs give."""
    world, (rho01, rho10), seed, sizes, repeat = task
    rates, random = vr.NoiseRates(rho01, rho10), np.random.default_rng([seed, 7])
    log, truth = drawn(world, rates, random)
    scores = log.users, log.items, vr.LabelModel().cross_fit(log, np.ones(len(log)), 5, random)
    again = rates.observe(truth, random.random(len(log)))
    again = np.where((log.labels != truth) & (random.random(len(log)) < repeat), log.labels, again)
    found: Found = {}
    for size in sizes:
        rows = random.choice(len(log), size, replace=False)
        pairs = log.users[rows], log.items[rows]
        reask, audit = vr.ReaskSample(*pairs, again[rows]), vr.AuditSample(*pairs, truth[rows])
        key = world, f"{rho01:g} / {rho10:g}"
        found[*key, "second answers", size] = fitted(
            lambda reask=reask: vr.ReaskNoiseRates().fit(log, reask=reask, scores=scores)
        )
        found[*key, "audit", size] = fitted(
            lambda audit=audit: vr.AuditNoiseRates().fit(log, audit=audit, scores=scores)
        )
    return found


def line(key: tuple[str, str, str, int], fits: np.ndarray) -> str:
    """Write a row of the table: figures of rho01 and of rho10, the standard error of a share in brackets."""
    truth = np.array([float(rate) for rate in key[1].split(" / ")])
    refused, kept = fits[:, 4] == 2, fits[fits[:, 4] < 2]
    cells = [f"{refused.mean():.0%}", f"{(fits[:, 4] == 1).mean():.0%}"]
    for part in (kept, kept[kept[:, 4] == 0]):
        errors = part[:, :2] - truth
        covered = np.abs(errors) <= 1.959964 * part[:, 2:4]
        if len(part) < 20:
            cells += ["", ""]
            continue
        share = covered.mean(axis=0)
        spread = np.sqrt(share * (1 - share) / len(part))
        cells.append(" / ".join(f"{error:.3f}" for error in np.sqrt((errors**2).mean(axis=0))))
        cells.append(" / ".join(f"{one:.3f} ({se:.3f})" for one, se in zip(share, spread, strict=True)))
    return f"| {' | '.join(map(str, key))} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=400)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--sizes", type=int, nargs="+", default=[200, 500, 2000])
    parser.add_argument("--worlds", nargs="+", default=list(WORLDS))
    parser.add_argument("--rates", type=float, nargs=2, action="append", help="rho01 and rho10; may be repeated")
    parser.add_argument("--repeat", type=float, default=0.0)
    options = parser.parse_args()
    tasks = [
        (world, rates, seed, tuple(options.sizes), options.repeat)
        for world, rates, seed in product(options.worlds, map(tuple, options.rates or RATES), range(options.logs))
    ]
    results: dict[tuple[str, str, str, int], list[tuple[float, ...]]] = {}
    with ProcessPoolExecutor(options.workers) as workers:
        for found in workers.map(one_repetition, tasks, chunksize=5):
            for key, fit in found.items():
                results.setdefault(key, []).append(fit)
    print(f"{options.logs} logs each; {options.repeat:.0%} of wrong first answers repeated")
    print(
        "| likes vary | rho01 / rho10 | labels | n | refused | warned | RMSE | coverage (s.e.) | RMSE, no warning | ",
        end="",
    )
    print("coverage, no warning |\n|---|---|---|---|---|---|---|---|---|---|")
    for key, fits in results.items():
        print(line(key, np.array(fits)))


if __name__ == "__main__":
    main()
