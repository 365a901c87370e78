r"""Which logged pairs to ask about for noise rates of a wanted precision, and how many.

Rows are sorted into cells by stratum of a cross-fitted score and by label. An audited row of a cell tells whether it is
truly positive, which has probability q given its label and stratum; its information on the rates is
:math:`\nabla q \nabla q^\top / q (1 - q)`. Rows are added, a few at a time, where they lower the larger of the two
rates' variances most, at the worst of the rates that are thought possible. The joint likelihood of `AuditNoiseRates`
allows for any choice by label and score.
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
from verirec.losses import NoiseRates, NoiseRegion
from verirec.nuisance.noise_rates.strata import FOLDS_SEED, Strata, score_rows, sort_into_strata, table_of
from verirec.nuisance.noise_rates.tails import REGION_QUANTILE, look_at_tails, refuse_too_few, region_of
from verirec.randomness import RandomState, as_generator
from verirec.scratch import each, rows_where

Array = npt.NDArray[np.float64]

MOST_GUESSED: Final = 0.3
_AT_A_TIME: Final = 4
_SHARE: Final = 256
"""Rows are added by so many, or by this part of those there are: large plans then take hardly more steps."""
_FEWEST: Final = 5
"""Rows of each cell that are asked about where not all are as likely, so that no stratum is unknown."""
_INSIDE: Final = 0.02


@dataclass(frozen=True, eq=False)
class AuditDesign:
    """Logged pairs to ask about.

    Parameters
    ----------
    rows
        Row numbers of the log, in random order, shape (m,).
    probabilities
        How likely each was to be chosen, shape (m,).
    half_widths
        Of (rho01, rho10): what it should reach, at worst over the guesses.
    simple
        How many pairs a simple random choice would need for the same; `None` if all of the log would not do.
    guesses
        The rates that it was made for: it is enough for each of them.
    """

    rows: npt.NDArray[np.int64]
    probabilities: Array
    half_widths: tuple[float, float]
    simple: int | None
    guesses: tuple[NoiseRates, ...]


def design_audit(
    log: FeedbackLog,
    *,
    budget: int | None = None,
    half_width: float | None = None,
    confidence: float = 0.95,
    guess: NoiseRates | None = None,
    propensities: Any = None,
    scores: PredictionsLike | None = None,
    strata: int = 10,
    random_state: RandomState = 0,
) -> AuditDesign:
    """Choose the logged pairs that tell most of the noise rates; never more than a simple random choice would take.

    Parameters
    ----------
    log
        With labels of both classes.
    budget, half_width
        How many pairs, or how wide the intervals of both rates may be to either side: one of the two.
    confidence
        Of these intervals, as `AuditNoiseRates` will give them.
    guess
        What the rates may be. By default the plan is enough for all, half and a quarter of what the log allows at most
        (`identified_region`), up to .3.
    propensities, scores
        As in `AuditNoiseRates.fit`.
    strata
        Of the score.
    random_state
        Of the choice of rows within a cell. The score behind strata and guesses is that of `AuditNoiseRates()`.
    """
    check_guess(guess)
    real_number("confidence", confidence, above=0, below=1)
    count, random = whole_number("strata", strata), as_generator(random_state)
    if len(np.unique(checked_log(log).labels)) < 2:
        raise LabelError("an audit plan needs a log with rows of both classes, positive and negative")
    if guess is None:
        refuse_too_few(log)
    of_folds = as_generator(FOLDS_SEED)
    score = score_rows(log, propensities, scores, folds=5, random=of_folds)
    if guess is None:
        guesses = likely_rates(region_of(look_at_tails(log.labels, score, REGION_QUANTILE), confidence))
    else:
        guesses = [guess]
    of_row = sort_into_strata(score, count, of_folds)
    inventory = table_of(of_row, log.labels, 2).ravel()
    reach = float(ndtri((1 + confidence) / 2))
    information = _Information.of(inventory, guesses)
    wanted = None if half_width is None else (half_width / reach) ** 2
    asked, evenly = information.choose(wanted, budget, reach)
    variances = information.variances(asked).max(axis=0)
    if evenly:
        rows = random.choice(len(log), round(asked.sum()), replace=False)
        probabilities = np.full(len(rows), len(rows) / len(log))
    else:
        rows = random.permutation(_of_cells(of_row, log.labels, asked, random))
        probabilities = (asked / np.maximum(inventory, 1))[of_row[rows].astype(np.int64) * 2 + log.labels[rows]]
    half_widths = reach * np.sqrt(variances)
    simple = information.simple(variances.max() if wanted is None else wanted)
    return AuditDesign(rows, probabilities, (float(half_widths[0]), float(half_widths[1])), simple, tuple(guesses))


def _of_cells(
    strata: Strata, labels: npt.NDArray[Any], asked: Array, random: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Draw so many rows of each cell, stratum by stratum."""
    drawn = []
    for cell, count in enumerate(asked):
        if count > 0:
            stratum, label = divmod(cell, 2)
            inside = each(lambda of, r, s, one: (of == s) & (r == one), strata, labels, stratum, label, dtype=bool)
            drawn.append(random.choice(rows_where(inside), int(count), replace=False))
    return np.concatenate(drawn)


def likely_rates(region: NoiseRegion) -> list[NoiseRates]:
    """Guess that each rate is all, half or a quarter of what a log allows at most."""
    most = [min(one, MOST_GUESSED) for one in (region.rho01_most, region.rho10_most)]
    return [NoiseRates(a * most[0], b * most[1]) for a, b in product((1.0, 0.5, 0.25), repeat=2)]


@dataclass(frozen=True, eq=False)
class _Information:
    """What labels and audited rows tell of (rho01, rho10, shares of likes by stratum), for each of g guesses.

    Parameters
    ----------
    inventory
        Rows by cell, shape (2 strata,): stratum times 2 plus label.
    from_labels
        Information of all the log's labels, shape (g, k, k).
    per_row
        What an audited row of a cell adds: its direction d, of information d d', shape (g, 2 strata, k).
    """

    inventory: Array
    from_labels: Array
    per_row: Array

    @classmethod
    def of(cls, inventory: Array, guesses: list[NoiseRates]) -> _Information:
        parts = [_of_guess(inventory.reshape(-1, 2), one) for one in guesses]
        return cls(inventory, np.array([part[0] for part in parts]), np.array([part[1] for part in parts]))

    def _covariances(self, asked: Array) -> Array:
        information = self.from_labels + (self.per_row.swapaxes(1, 2) * asked) @ self.per_row
        return np.asarray(np.linalg.inv(information + 1e-6 * np.eye(information.shape[-1])), dtype=np.float64)

    def variances(self, asked: Array) -> Array:
        """Return the variances of both rates after asking about so many rows of each cell, shape (g, 2)."""
        return np.diagonal(self._covariances(asked), axis1=1, axis2=2)[:, :2]

    def choose(self, wanted: float | None, budget: int | None, reach: float) -> tuple[Array, bool]:
        """Choose how many rows of each cell to ask about, and whether rather so many of all cells at random.

        Where unequal numbers gain nothing, a simple random choice does as well, and has no cells to fill.
        """
        if wanted is not None:
            self._refuse_too_much(wanted, reach)
        total = float(self.inventory.sum())
        most = total if budget is None else min(budget, total)
        asked = self._allocate(wanted, most)
        simple = None if wanted is None else self.simple(wanted)
        evenly = self.inventory * (most if simple is None else simple) / total
        if asked is None:
            return evenly, True
        if wanted is not None:
            gains = asked.sum() < evenly.sum()
        else:
            gains = self.variances(asked).max() < self.variances(evenly).max()
        return (asked, False) if gains else (evenly, True)

    def _refuse_too_much(self, wanted: float, reach: float) -> None:
        least = float(self.variances(self.inventory).max())
        if least > wanted:
            raise AuditError(
                f"even the true labels of all {int(self.inventory.sum()):,} rows would leave a rate's half-width at "
                f"{reach * np.sqrt(least):.2g} where {reach * np.sqrt(wanted):.2g} was asked for; ask for a larger "
                "half_width"
            )

    def _allocate(self, wanted: float | None, most: float) -> Array | None:
        """Add rows where they help most, until both rates are known well enough; `None` if `most` are too few."""
        asked = np.minimum(self.inventory, _FEWEST)
        if asked.sum() > most:
            return None
        while asked.sum() < most:
            covariances = self._covariances(asked)
            by_rate = np.diagonal(covariances, axis1=1, axis2=2)[:, :2]
            guess, rate = np.unravel_index(int(np.argmax(by_rate)), by_rate.shape)
            if wanted is not None and by_rate[guess, rate] <= wanted:
                break
            gain = (self.per_row[guess] @ covariances[guess, rate]) ** 2
            gain[asked >= self.inventory] = -1.0
            best = int(np.argmax(gain))
            step = min(max(_AT_A_TIME, int(asked.sum()) // _SHARE), most - asked.sum())
            asked[best] = min(asked[best] + step, self.inventory[best])
        return asked

    def simple(self, wanted: float) -> int | None:
        """Return how many rows, chosen at random from all, would do; `None` if all of them would not."""
        total = float(self.inventory.sum())
        if self.variances(self.inventory).max() > wanted * (1 + 1e-9):
            return None
        low, high = 0.0, total
        while high - low > 1:
            middle = (low + high) / 2
            enough = self.variances(self.inventory * middle / total).max() <= wanted * (1 + 1e-9)
            low, high = (low, middle) if enough else (middle, high)
        return int(np.ceil(high))


def _of_guess(table: Array, guess: NoiseRates) -> tuple[Array, Array]:
    """Return the information of the labels, (k, k), and the direction that an audited row adds, (2 strata, k)."""
    strata = len(table)
    rho01, rho10, kappa = guess.rho01, guess.rho10, guess.kappa
    said = np.clip(table[:, 1] / np.maximum(table.sum(axis=1), 1), rho10 + _INSIDE * kappa, 1 - rho01 - _INSIDE * kappa)
    share = (said - rho10) / kappa
    own = np.arange(strata)
    by_said = np.zeros((strata, 2 + strata))
    by_said[:, 0], by_said[:, 1], by_said[own, 2 + own] = -share, 1 - share, kappa
    scaled = by_said * np.sqrt(table.sum(axis=1) / (said * (1 - said)))[:, None]
    per_row = np.zeros((strata, 2, 2 + strata))
    for label, (joint, of_label, sign) in enumerate(
        ((share * rho01, 1 - said, -1.0), (share * (1 - rho01), said, 1.0))
    ):
        q = np.clip(joint / of_label, 1e-6, 1 - 1e-6)
        by_joint = np.zeros((strata, 2 + strata))
        by_joint[:, 0], by_joint[own, 2 + own] = -sign * share, rho01 if label == 0 else 1 - rho01
        # q is the joint probability over that of the label.
        slope = (by_joint - q[:, None] * sign * by_said) / of_label[:, None]
        per_row[:, label] = slope / np.sqrt(q * (1 - q))[:, None]
    return scaled.T @ scaled, per_row.reshape(2 * strata, 2 + strata)


def check_guess(guess: Any) -> None:
    """Refuse a guess of the noise rates that is none."""
    if guess is not None and not isinstance(guess, NoiseRates):
        raise ParameterError(f"guess must be a NoiseRates; got {type(guess).__name__}")
