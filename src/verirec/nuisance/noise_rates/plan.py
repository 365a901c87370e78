r"""Which pairs to ask about, and how many, for noise rates of a wanted precision.

Rows are sorted into cells by stratum of a cross-fitted score and by label. An audited row of a cell tells whether it is
truly positive, which has probability q given its label and stratum; its information on the rates is
:math:`\nabla q \nabla q^\top / q (1 - q)`. Rows are added, a few at a time, where they lower the larger of the two
rates' variances most. The joint likelihood of `AuditNoiseRates` allows for any choice by label and score.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from verirec.checks import real_number, whole_number
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.data.predictions import PredictionsLike
from verirec.exceptions import AuditError, LabelError, ParameterError
from verirec.losses import NoiseRates
from verirec.nuisance.noise_rates.strata import FOLDS_SEED, sort_into_strata
from verirec.nuisance.noise_rates.tails import identified_region
from verirec.randomness import RandomState, as_generator

Array = npt.NDArray[np.float64]

MOST_GUESSED: Final = 0.3
_AT_A_TIME: Final = 4
_SHARE: Final = 256
"""Rows are added by so many, or by this part of those there are: large plans then take hardly more steps."""
_FEWEST: Final = 5
"""Rows of each cell that are asked about in any case, so that no stratum is unknown."""
_INSIDE: Final = 0.02


@dataclass(frozen=True, eq=False)
class AuditPlan:
    """The pairs to ask about.

    Parameters
    ----------
    log
        The log they are of.
    rows
        Its row numbers, in random order, shape (m,).
    weights
        How many rows of the log each stands for, shape (m,).
    half_width, confidence
        What was asked for.
    expected
        Half-widths of (rho01, rho10) that the plan should reach, at worst over the guesses.
    simple
        How many pairs a simple random choice would need for the same; `None` if all of the log would not do. For a
        rough answer that may be fewer, as the plan asks about a few pairs of every kind.
    guesses
        The rates that the plan was made for: it is enough for each of them.
    """

    log: FeedbackLog
    rows: npt.NDArray[np.int64]
    weights: Array
    half_width: float
    confidence: float
    expected: tuple[float, float]
    simple: int | None
    guesses: tuple[NoiseRates, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        simple = "" if self.simple is None else f" ({self.simple:,} if chosen at random)"
        return f"AuditPlan({len(self):,} pairs{simple} for half-widths of {self.half_width:g})"

    def to_frame(self) -> Any:
        """Return user, item, label, an empty true_label to fill in, and weight, as a pandas frame."""
        frame = self.log.select(self.rows).to_frame()[["user", "item", "label"]]
        return frame.assign(true_label=None, weight=self.weights)

    def _repr_html_(self) -> str:
        return f"<p>{self!r}</p>{self.to_frame().head(10).to_html(index=False, escape=True)}"


def plan_labels(
    log: FeedbackLog,
    *,
    half_width: float = 0.03,
    confidence: float = 0.95,
    guess: NoiseRates | None = None,
    propensities: Any = None,
    scores: PredictionsLike | None = None,
    strata: int = 10,
    random_state: RandomState = 0,
) -> AuditPlan:
    """Plan an audit: how many true labels are needed for rates of a wanted half-width, and of which pairs.

    Parameters
    ----------
    log
        With labels of both classes.
    half_width, confidence
        Of the intervals of both rates, as `AuditNoiseRates` will give them.
    guess
        What the rates may be. By default the plan is enough for all, half and a quarter of what the log allows at most
        (`identified_region`), up to .3.
    propensities, scores
        As in `AuditNoiseRates.fit`.
    strata
        Of the score.
    random_state
        Of the guesses, and of the choice of rows within a cell. The strata are those of `AuditNoiseRates()`.

    Examples
    --------
    >>> from verirec import simulate
    >>> world = simulate.world(n_users=400, n_items=600, random_state=0)
    >>> plan = plan_labels(world.log, half_width=0.05)
    >>> len(plan) < plan.simple
    True
    """
    width = real_number("half_width", half_width, above=0, below=0.5)
    level = real_number("confidence", confidence, above=0, below=1)
    if guess is not None and not isinstance(guess, NoiseRates):
        raise ParameterError(f"guess must be a NoiseRates; got {type(guess).__name__}")
    count = whole_number("strata", strata)
    random = as_generator(random_state)
    if len(np.unique(checked_log(log).labels)) < 2:
        raise LabelError("an audit plan needs a log with rows of both classes, positive and negative")
    guesses = [guess] if guess is not None else _guesses(log, scores, level, random_state)
    folds = as_generator(FOLDS_SEED)
    of_row = sort_into_strata(log, propensities, scores, strata=count, folds=5, random=folds)
    cells = of_row * 2 + log.labels
    inventory = np.bincount(cells, minlength=2 * (int(of_row.max()) + 1)).astype(float)
    reach = float(ndtri((1 + level) / 2))
    designs = [_Design.of(inventory, one) for one in guesses]
    # Enough for each of the guesses, whichever is right.
    asked = np.max([design.allocate(width, reach) for design in designs], axis=0)
    counts = [design.simple((width / reach) ** 2) for design in designs]
    rows = random.permutation(
        np.concatenate(
            [
                random.choice(np.flatnonzero(cells == cell), int(count), replace=False)
                for cell, count in enumerate(asked)
                if count > 0
            ]
        )
    )
    expected = reach * np.sqrt(np.max([design.variances(asked) for design in designs], axis=0))
    return AuditPlan(
        log,
        rows,
        (inventory / np.maximum(asked, 1))[cells[rows]],
        width,
        level,
        (float(expected[0]), float(expected[1])),
        None if None in counts else max(count for count in counts if count is not None),
        tuple(guesses),
    )


def _guesses(
    log: FeedbackLog, scores: PredictionsLike | None, confidence: float, random_state: RandomState
) -> list[NoiseRates]:
    """Guess that each rate is all, half or a quarter of what the log allows at most."""
    region = identified_region(log, scores=scores, confidence=confidence, random_state=random_state)
    most = [min(one, MOST_GUESSED) for one in (region.rho01_most, region.rho10_most)]
    return [NoiseRates(a * most[0], b * most[1]) for a, b in product((1.0, 0.5, 0.25), repeat=2)]


@dataclass(frozen=True, eq=False)
class _Design:
    """The information that labels and audited rows carry on (rho01, rho10, shares of likes by stratum).

    Parameters
    ----------
    inventory
        Rows by cell, shape (2 strata,): stratum times 2 plus label.
    from_labels
        Information of all the log's labels, shape (k, k).
    per_row
        What an audited row of a cell adds: its direction d, of information d d', shape (2 strata, k).
    """

    inventory: Array
    from_labels: Array
    per_row: Array

    @classmethod
    def of(cls, inventory: Array, guess: NoiseRates) -> _Design:
        strata = len(inventory) // 2
        table = inventory.reshape(strata, 2)
        rho01, rho10, kappa = guess.rho01, guess.rho10, guess.kappa
        said = np.clip(
            table[:, 1] / np.maximum(table.sum(axis=1), 1), rho10 + _INSIDE * kappa, 1 - rho01 - _INSIDE * kappa
        )
        share = (said - rho10) / kappa
        size = 2 + strata
        by_said = np.zeros((strata, size))
        by_said[:, 0], by_said[:, 1] = -share, 1 - share
        by_said[np.arange(strata), 2 + np.arange(strata)] = kappa
        scaled = by_said * np.sqrt(table.sum(axis=1) / (said * (1 - said)))[:, None]
        per_row = np.zeros((strata, 2, size))
        for label, (joint, of_label, sign) in enumerate(
            ((share * rho01, 1 - said, -1.0), (share * (1 - rho01), said, 1.0))
        ):
            q = np.clip(joint / of_label, 1e-6, 1 - 1e-6)
            by_joint = np.zeros((strata, size))
            by_joint[:, 0] = -sign * share
            by_joint[np.arange(strata), 2 + np.arange(strata)] = rho01 if label == 0 else 1 - rho01
            # q is the joint probability over that of the label.
            slope = (by_joint - q[:, None] * sign * by_said) / of_label[:, None]
            per_row[:, label] = slope / np.sqrt(q * (1 - q))[:, None]
        return cls(inventory, scaled.T @ scaled, per_row.reshape(2 * strata, size))

    def _covariance(self, asked: Array) -> Array:
        information = self.from_labels + (self.per_row.T * asked) @ self.per_row
        return np.asarray(np.linalg.inv(information + 1e-6 * np.eye(len(information))), dtype=np.float64)

    def variances(self, asked: Array) -> Array:
        """Return the variances of both rates after asking about so many rows of each cell."""
        return np.diag(self._covariance(asked))[:2]

    def allocate(self, half_width: float, reach: float) -> Array:
        """Add rows where they help most, until both rates are known well enough; a half-width is `reach` errors."""
        wanted = (half_width / reach) ** 2
        least = float(self.variances(self.inventory).max())
        if least > wanted:
            raise AuditError(
                f"even the true labels of all {int(self.inventory.sum()):,} rows would leave a rate's half-width at "
                f"{reach * np.sqrt(least):.2g} where {half_width:.2g} was asked for; ask for a larger half_width"
            )
        asked = np.minimum(self.inventory, _FEWEST)
        while True:
            covariance = self._covariance(asked)
            worse = int(np.argmax(np.diag(covariance)[:2]))
            if covariance[worse, worse] <= wanted or (asked >= self.inventory).all():
                return asked
            gain = (self.per_row @ covariance[worse]) ** 2
            gain[asked >= self.inventory] = -1.0
            best = int(np.argmax(gain))
            step = max(_AT_A_TIME, int(asked.sum()) // _SHARE)
            asked[best] = min(asked[best] + step, self.inventory[best])

    def simple(self, wanted: float) -> int | None:
        """Return how many rows, chosen at random from all, would do the same."""
        total = float(self.inventory.sum())
        if self.variances(self.inventory).max() > wanted:
            return None
        low, high = 0.0, total
        while high - low > 1:
            middle = (low + high) / 2
            enough = self.variances(self.inventory * middle / total).max() <= wanted
            low, high = (low, middle) if enough else (middle, high)
        return int(np.ceil(high))
