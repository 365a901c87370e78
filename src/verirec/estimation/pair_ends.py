"""The ends of a range at single pairs: what is asked of every pair of the grid, by whichever worker."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from verirec.data.cells import Positions
from verirec.estimation.selection_range import SelectionRange
from verirec.estimation.survey.problem import Losses
from verirec.nuisance.label_model import LabelProbabilities

Array = npt.NDArray[np.float64]

_STEEPEST: Final = 300.0


class Curve(NamedTuple):
    """The square of d, in units of its size; it goes on flat beyond the rows' d, where no curve is known.

    Parameters
    ----------
    scale
        The size of d.
    within
        Its extremes among the rows.
    """

    scale: float
    within: tuple[float, float]

    def of(self, difference: Array) -> Array:
        """Return it of pairs."""
        return np.asarray((np.clip(difference, *self.within) / self.scale) ** 2)


class PairEnds(NamedTuple):
    """What ends of single pairs are made of: sent to workers, so nothing of the log's length.

    Parameters
    ----------
    losses, selection
        What they are ends of, and over what.
    liked
        The label model, as far as it is in x.
    by_difference, by_square, curve
        c and e, and what they are multiplied by.
    """

    losses: Losses
    selection: SelectionRange
    liked: LabelProbabilities
    by_difference: float
    by_square: float
    curve: Curve

    @np.errstate(over="ignore")
    def of(self, users: Positions, items: Positions) -> list[Array]:
        """Return the low and the high end of pairs, and their losses by the better label and by the worse."""
        negative, difference = self.losses.cells(users, items)
        odds = self.liked.cell_odds(users, items)
        bent = self.by_difference / self.curve.scale * difference + self.by_square * self.curve.of(difference)
        odds = odds * np.exp(-np.clip(bent, -_STEEPEST, _STEEPEST))
        often, rarely = (1 / (1 + odds * np.exp(delta)) for delta in (self.selection.low, self.selection.high))
        middle, change = negative + difference * often, difference * (rarely - often)
        by_label = [negative + np.minimum(difference, 0), negative + np.maximum(difference, 0)]
        return [middle + np.minimum(change, 0), middle + np.maximum(change, 0), *by_label]
