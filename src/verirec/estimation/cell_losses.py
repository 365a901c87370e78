"""The losses of a recommender's predictions, cell by cell."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from verirec.data.cells import CellValues, Positions, recount
from verirec.data.feedback_log import FeedbackLog
from verirec.data.grid import WORTH_SENDING, Grid
from verirec.data.parts import SHORT, filled, mean_of, parts_of
from verirec.data.predictions import LinkedFactors
from verirec.engine import Engine, Serial, current_engine, running_on
from verirec.exceptions import PredictionError
from verirec.losses import LevelLoss, Loss, errors_of
from verirec.scratch import each, long_array

Array = npt.NDArray[np.float64]

_SENT: Final = 4 * SHORT
"""Pairs that are sent to a worker at a time."""
_ROUNDING: Final = 1e-6
_WORSE_THAN_CHANCE: Final = 3.0
_CLIP_HINT: Final = "; clip=1e-6 would keep them inside"
_SCORES_HINT: Final = (
    "; these look like scores or ratings: calibrate makes probabilities of them, and how they rank can be judged as "
    "they are"
)


class KnownDifferences(NamedTuple):
    """What makes a walk over the grid short: of two losses a cell, only one is left to add up.

    Parameters
    ----------
    by_user, by_item
        Sums of l(f, 1) - l(f, 0) over all pairs.
    halfway_totals
        Gives the sums over a rectangle's items of [l(f, 0) + l(f, 1)] / 2: cells in the precision of the factors, sums
        in double precision.
    """

    by_user: Array
    by_item: Array
    halfway_totals: Callable[[Positions, Positions], Array]


@dataclass(frozen=True, eq=False)
class CellLosses:
    """l(f, 0) and l(f, 1) - l(f, 0), which is all that estimators need of predictions.

    Of K levels (`verirec.estimation.level_losses`) the second has a column in front for each but the lowest.

    Parameters
    ----------
    predictions
        f.
    loss
        l.
    clip
        Distance that f keeps from 0 and 1, if any.
    counts_grid
        Whether an error of a logged pair counts the wrong predictions of all pairs: all will be needed.
    """

    predictions: CellValues
    loss: Loss | LevelLoss
    clip: float | None = None
    counts_grid: bool = False

    @property
    def parallel(self) -> bool:
        """Whether two threads may ask at once."""
        return self.predictions.parallel

    def cells(self, users: Positions, items: Positions) -> tuple[Array, Array]:
        """Return both at positions that broadcast together.

        Where predictions are made of logits these are used as they are: a probability of a logit above 37 is 1, and its
        log loss infinite, while that of the logit is not.
        """
        if self.loss.from_logits is not None and self.clip is None:
            logits = self.predictions.cell_logits(users, items)
            if logits is not None:
                return self.loss.from_logits(logits)
        return self.loss.parts(self.clipped(self.predictions.cells(users, items)))

    def known_differences(self) -> KnownDifferences | None:
        """Return the sums of l(f, 1) - l(f, 0) by user and by item, if they can be had without visiting all pairs.

        So it is of the log loss of logistic factors: there it is minus the logit, whose sums follow from the factors'.
        """
        given, totals = self.predictions, self.loss.halfway_totals
        if totals is None or self.clip is not None:
            return None
        if not (isinstance(given, LinkedFactors) and given.link == "logistic"):
            return None
        by_user, by_item = given.side_totals()
        return KnownDifferences(-by_user, -by_item, lambda users, items: totals(given.walked_logits(users, items)))

    @property
    def columns(self) -> tuple[int, ...]:
        """Columns of l(f, 1) - l(f, 0): none if labels are binary, else K - 1."""
        return ()

    def clipped(self, values: npt.NDArray[Any]) -> Array:
        """Return predictions as they are judged."""
        if self.clip is None:
            return values
        if far_outside(values):
            raise PredictionError(
                f"clip={self.clip:g} is for probabilities that are 0 or 1; these predictions go from "
                f"{values.min():.4g} to {values.max():.4g}{_SCORES_HINT}"
            )
        return np.asarray(np.clip(values, self.clip, 1 - self.clip))

    def check_grid(self) -> None:
        """Raise `PredictionError` for predictions that the loss cannot take, counting them over the whole grid.

        Where the grid is too large to visit, over a sample of it.
        """
        if self.clip is None:
            grid = Grid(self.predictions.shape)
            # Here, block after block: workers would send predictions of whole blocks.
            with running_on(Serial()):
                self.check(lambda: grid.map_cells(self.predictions.cells, parallel=False))

    def check(self, values: Callable[[], Iterable[Array]]) -> None:
        """Raise as `check_grid` does, with what to do about it; `values` gives the predictions, twice if need be."""
        try:
            self.loss.check(values())
        except PredictionError as error:
            hint = ""
            if self.loss.open_unit_interval and self.clip is None:
                hint = _SCORES_HINT if any(far_outside(block) for block in values()) else _CLIP_HINT
            raise PredictionError(f"{error}{hint}") from None

    def count_clipped(self, users: Positions, items: Positions) -> int:
        """Count the pairs whose prediction the clip changes."""
        return 0 if self.clip is None else self.count_outside(users, items)

    def count_outside(self, users: Positions, items: Positions) -> int:
        """Count the pairs whose prediction is outside of what `clip` keeps, part by part."""
        parts = parts_of(len(users), size=SHORT)
        return sum(int(self._outside(self.predictions.cells(users[part], items[part])).sum()) for part in parts)

    def _outside(self, values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        clip = self.clip or 0.0
        return np.asarray((values < clip) | (values > 1 - clip))

    def _by_parts(self, users: Positions, items: Positions) -> tuple[Array, Array]:
        negative = long_array(len(users))

        def differences(part: slice) -> Array:
            negative[part], difference = self.cells(users[part], items[part])
            return difference

        difference = filled(differences, len(users), self.columns, parallel=self.parallel)
        return negative, difference

    def _by_workers(self, users: Positions, items: Positions, engine: Engine) -> tuple[Array, Array]:
        runs = list(parts_of(len(users), size=_SENT))
        negative, difference = long_array(len(users)), long_array((*self.columns, len(users)))
        # One by one, so that few replies wait for those before them.
        found = engine.map(lambda pairs: self._by_parts(*pairs), [(users[at], items[at]) for at in runs], singly=True)
        for at, (of_negative, of_difference) in zip(runs, found, strict=True):
            negative[at], difference[..., at] = of_negative, of_difference
        return negative, difference

    def of_labels(self, log: FeedbackLog) -> Array:
        """Return the loss of each row's label, shape (n,)."""
        return each(errors_of, *self.of_rows(log.users, log.items), log.labels)

    def of_rows(self, users: Positions, items: Positions) -> tuple[Array, Array]:
        """Return both for single pairs."""
        engine = current_engine()
        try:
            if engine.elsewhere and len(users) >= WORTH_SENDING:
                return self._by_workers(users, items, engine)
            return self._by_parts(users, items)
        except PredictionError:
            self._recount(users, items)
            raise

    def _recount(self, users: Positions, items: Positions) -> None:
        """Raise for what is wrong of all of some pairs, not of those of a part; part by part nevertheless."""

        def predicted(at: slice) -> Array:
            return self.predictions.cells(users[at], items[at])

        runs = list(parts_of(len(users), size=SHORT))
        recount(predicted, len(users))
        if self.clip is not None:
            ends = [(np.fmin.reduce(part, axis=None), np.fmax.reduce(part, axis=None)) for part in map(predicted, runs)]
            # The furthest out say whether these are probabilities at all.
            self.clipped(np.array([min(low for low, _ in ends), max(high for _, high in ends)]))
        if self.counts_grid:
            self.check_grid()
        self.check(lambda: (self.clipped(predicted(at)) for at in runs))


def coin_losses(loss: Loss | LevelLoss, log: FeedbackLog) -> Array:
    """Return the losses of a log's labels if a half is predicted for each pair, shape (n,)."""
    return each(lambda labels: loss.of(np.full(len(labels), 0.5), labels), log.labels)


def far_outside(values: Array) -> bool:
    """Tell whether a prediction is outside of [0, 1] by more than rounding."""
    # By the extremes, NaN left out: nothing of the values' length is made.
    return values.size > 0 and bool(
        np.fmin.reduce(values, axis=None) < -_ROUNDING or np.fmax.reduce(values, axis=None) > 1 + _ROUNDING
    )


def of_both(
    function: Callable[[Array, Array], Array], one: tuple[Array, Array], two: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Apply a function to both kinds of losses of rows, as many as a log has, part by part."""

    def applied(first: Array, second: Array) -> Array:
        whole = long_array(first.shape, np.result_type(first, second))
        for at in parts_of(first.shape[-1]):
            whole[..., at] = function(first[..., at], second[..., at])
        return whole

    return applied(one[0], two[0]), applied(one[1], two[1])


def worse_than_a_coin(errors: Array, coins: Array) -> bool:
    """Tell whether losses are larger on average than those of a coin, beyond chance."""
    worse = each(np.subtract, errors, coins)
    mean = mean_of(worse)
    squares = sum(float(((worse[part] - mean) ** 2).sum()) for part in parts_of(len(worse), size=SHORT))
    return mean > _WORSE_THAN_CHANCE * float(np.sqrt(squares)) / len(worse)
