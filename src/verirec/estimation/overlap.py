"""Whether the logged pairs reach all pairs: what weighted estimates warn of before any label is looked at."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from verirec.data.parts import SHORT, each_part, over_parts
from verirec.estimation.inputs import AnyNoise
from verirec.estimation.rows import LoggedPairs
from verirec.estimation.survey.target import Target
from verirec.exceptions import OverlapWarning, warn_caller
from verirec.losses import AnyRegion, over_levels
from verirec.nuisance.propensities.reach import Reach, reach

Array = npt.NDArray[np.float64]

SAMPLE: Final = 100_000
"""Pairs that stand for all, at most."""
MOST_ROWS: Final = 1_000_000
"""Of longer logs, rows whose propensities are next to each other are taken together."""
_AN_OCTAVE: Final = 256
"""Classes between a propensity and twice of it: those of one differ by .3% at most."""
_PIECES: Final = 32
"""Of a class, at least, if it has so many rows: of rare ones, it is told to so many parts how many there are."""
_TOO_LITTLE: Final = 0.93
"""Coverage of a 95% interval below which there is a warning: chosen on the worlds "chosen" of
`benchmarks/tiny_propensities.py`, by 40 runs each."""
OF_WEIGHTED: Final = "of an estimator that weights by propensities (ips, snips, dr and their kin, not a survey's)"
_BEYOND_CHANCE: Final = 1.64
_ESTIMATED_ZERO: Final = 1e-60
_MOST_NOISE: Final = 0.9


def warn_of_reach(pairs: LoggedPairs, noise: AnyNoise) -> None:
    """Say so where pairs that are hardly ever logged may keep intervals from holding."""
    found = reach_of(pairs, noise)
    if found.coverage < _TOO_LITTLE:
        warn_caller(
            f"{found.share:.2%} of all pairs, of which {found.rows:.1f} rows are to be expected, make up half of the "
            f"variance: if these are unlike the others, a 95% interval {OF_WEIGHTED} covers the truth only about "
            f"{found.coverage:.0%} of the time; survey random pairs, exclude the rare ones, or raise the floor and "
            "accept its bias",
            OverlapWarning,
        )


def reach_of(pairs: LoggedPairs, noise: AnyNoise = None) -> Reach:
    """Work out how far a log reaches, from all pairs or a fixed sample of them.

    Noise in the labels hides differences: residuals differ by so much less of their standard deviation.
    """
    given = _of_rows(pairs) if not pairs.propensities.known_everywhere else _of_grid(pairs)
    return reach(*given, unlike=_free_of_noise(pairs, noise))


def _of_grid(pairs: LoggedPairs) -> tuple[Array, Array, Array]:
    target = Target(pairs.log.shape, None, pairs.left_out)
    cells = target.sample(min(SAMPLE, target.grid.n_cells), np.random.default_rng(0))
    given = pairs.propensities
    p, used = (values.astype(np.float64) for values in (given.without_floor(*cells), given.cells(*cells)))
    # Estimates say 0 of users and items without a row, of whom nothing is known: they are not known to be rare.
    kept = np.flatnonzero(p > _ESTIMATED_ZERO)
    return p[kept], used[kept], np.full(len(kept), pairs.n_cells / max(len(p), 1))


def _of_rows(pairs: LoggedPairs) -> tuple[Array, Array, Array]:
    """Let each row stand for 1/p pairs; what is missing of all, beyond chance, is never logged."""
    if len(pairs.log) <= MOST_ROWS:
        p = _without_floor(pairs, slice(None))
        used, counts = pairs.p, 1 / p
    else:
        p, used, counts = _of_classes(pairs)
    if pairs.by_level is not None:
        return p, used, counts  # By logged levels, which may be wrong: nothing is known to be missing.
    missing = max(pairs.n_cells - pairs.weight_sums.total - _BEYOND_CHANCE * pairs.chance, 0.0)
    tiny = np.full(1, _ESTIMATED_ZERO)
    return np.append(p, tiny), np.append(used, tiny), np.append(counts, missing)


def _without_floor(pairs: LoggedPairs, at: slice) -> Array:
    return pairs.propensities.without_floor(pairs.log.users[at], pairs.log.items[at]).astype(np.float64)


def _of_classes(pairs: LoggedPairs) -> tuple[Array, Array, Array]:
    """Put rows of about the same propensity together, and let a few of each class stand for it.

    Not every so-manieth row: what there is to warn of are few, and each of them counts. A class has the means of the
    pairs that its rows stand for.
    """
    size = int(-_AN_OCTAVE * np.log2(_ESTIMATED_ZERO)) + 1
    floored = pairs.p

    def visit(at: slice) -> tuple[int, Array]:
        p = _without_floor(pairs, at)
        number = np.minimum(-_AN_OCTAVE * np.log2(p), size - 1).astype(np.int64)
        first = int(number.min())
        number -= first
        return first, np.array([np.bincount(number, of) for of in (np.ones(len(p)), 1 / p, floored[at] / p)])

    total = np.zeros((3, size))
    for first, sums in each_part(visit, len(floored), parallel=pairs.propensities.parallel):
        total[:, first : first + sums.shape[1]] += sums
    rows, counts, of_used = total[:, total[0] > 0]
    pieces = np.minimum(rows, np.maximum(rows * SAMPLE // len(floored), _PIECES)).astype(np.int64)
    p, used = rows / counts, of_used / counts
    return np.repeat(p, pieces), np.repeat(used, pieces), np.repeat(counts / pieces, pieces)


def _free_of_noise(pairs: LoggedPairs, noise: AnyNoise) -> float:
    """Return the share of the labels' standard deviation that is not noise."""
    if noise is None or isinstance(noise, AnyRegion):
        return 1.0
    labels, n_rows = pairs.labels(noise), len(pairs.log)

    def visit(at: slice) -> tuple[float, float, float]:
        own = labels.values[..., at]
        # Of levels, of how many steps up a row is.
        steps = over_levels(own)
        return float(steps.sum()), float(steps @ steps), float(labels.noise_variance(at, np.ones(own.shape)).sum())

    total, squares, noisy = (sum(one) for one in zip(*over_parts(visit, n_rows, size=SHORT), strict=True))
    variance = (squares - total * (total / n_rows)) / n_rows
    share = noisy / n_rows / max(variance, np.finfo(float).tiny)
    return float(np.sqrt(1 - min(max(share, 0.0), _MOST_NOISE)))
