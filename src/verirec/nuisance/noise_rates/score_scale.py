"""From the scores of an error curve to the logit of what is said at them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import logit

from verirec.checks import number_array
from verirec.exceptions import ParameterError
from verirec.nuisance.small_logistic import fit_small

Array = npt.NDArray[np.float64]

_INSIDE: Final = 0.005
"""Chances are taken to be this far from 0 and 1: surer ones would decide the curve by themselves."""
_ENOUGH: Final = 200_000
"""Rows that tell what is said at a score."""
_LARGEST: Final = 1e100
"""Of a score: its square has to be a number."""


@dataclass(frozen=True)
class Scale:
    """From scores to the logit of what is said, :math:`a + b s`; of chances, s is their logit.

    Parameters
    ----------
    constant, slope
        a and b.
    of_chances
        Whether scores are chances, and not numbers of any size.
    """

    constant: float
    slope: float
    of_chances: bool

    @classmethod
    def of(cls, scores: Array, labels: npt.NDArray[np.int8]) -> Scale:
        """Fit the logit of what is said to the rows of a log."""
        checked_scores(scores)
        plain = cls(0.0, 1.0, bool(((scores >= 0) & (scores <= 1)).all()))
        some = slice(None, None, -(-len(scores) // _ENOUGH))
        given = plain.logits(scores[some])
        # Chances have a unit of their own, and other scores are of any size.
        middle, spread = (0.0, 1.0) if plain.of_chances else (float(given.mean()), float(given.std()) or 1.0)
        features = np.stack([np.ones(len(given)), (given - middle) / spread], axis=-1)
        fitted = fit_small(features, labels[some].astype(np.float64), np.ones(len(features)), np.array([0.0, 1.0]))
        constant, slope = fitted.coefficients.tolist()
        return cls(constant - slope * middle / spread, slope / spread, plain.of_chances)

    def logits(self, scores: npt.ArrayLike) -> Array:
        """Return the logits at scores."""
        given = np.asarray(scores, np.float64)
        if self.of_chances:
            given = logit(np.clip(given, _INSIDE, 1 - _INSIDE))
        return np.asarray(self.constant + self.slope * given)

    def logits_of(self, scores: object) -> Array:
        """Return the logits at scores that somebody asks about, shape (n,); chances are from 0 to 1.

        Examples
        --------
        >>> Scale(0.0, 1.0, of_chances=True).logits_of([0.5, 5])
        Traceback (most recent call last):
        verirec.exceptions.ParameterError: scores must be from 0 to 1, as those of the log are; got 5
        """
        given = checked_scores(scores)
        outside = (given < 0) | (given > 1)
        if self.of_chances and outside.any():
            raise ParameterError(f"scores must be from 0 to 1, as those of the log are; got {given[outside][0]:g}")
        return self.logits(given)


def checked_scores(given: object) -> Array:
    """Accept scores, shape (n,), that are finite and not too large to be fitted to.

    Examples
    --------
    >>> checked_scores([0.2, np.nan])
    Traceback (most recent call last):
    verirec.exceptions.ParameterError: scores must be numbers from -1e+100 to 1e+100; 1 of 2 are not (first: nan)
    """
    scores = number_array("scores", given, ndim=1).astype(np.float64)
    wrong = ~(np.abs(scores) <= _LARGEST)
    if wrong.any():
        raise ParameterError(
            f"scores must be numbers from -{_LARGEST:g} to {_LARGEST:g}; {int(wrong.sum()):,} of {len(scores):,} are "
            f"not (first: {scores[wrong][0]:g})"
        )
    return scores
