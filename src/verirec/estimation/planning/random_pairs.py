r"""Which random pairs to ask about, so that the fewest tell most (Neyman allocation).

survey-ppi's error is that of the mean over the survey of w (y - q) d: with n pairs drawn with probabilities in
proportion to h (of mean 1), its variance is :math:`n^{-1} |D|^{-1} \sum_D d^2 q (1 - q) / h`. It is least for h in
proportion to :math:`|d| \sqrt{q (1 - q)}`; for several numbers at once, to the square root of the sum of their
:math:`d^2 q (1 - q)`, each divided by its mean. A part of h is the same for all pairs, so that none stands for very
many.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from verirec.estimation.planning.likes import ExpectedLikes
from verirec.estimation.planning.questions import PLANNED_ON, Candidates, Question
from verirec.exceptions import UnreachableError

Array = npt.NDArray[np.float64]

EVEN_PARTS: Final = (0.1, 0.3, 0.5, 1.0)
"""Parts of h that are the same for all pairs, to choose from; the last is a simple random choice."""
_TIMES: Final = 50
"""Candidates are at least so many times the pairs drawn, so that the candidates' own error hardly counts."""


@dataclass(frozen=True, eq=False)
class RandomDesign:
    """How likely each candidate is to be asked about, and what that buys.

    Parameters
    ----------
    candidates
        m of them.
    sizes
        h, of mean 1, shape (m,).
    variances
        Of each number asked for, times the number of pairs, at the worst of the shifts; shape (numbers,).
    uniform
        The same for a simple random choice.
    """

    candidates: Candidates
    sizes: Array
    variances: Array
    uniform: Array


def candidates_for(count: int) -> int:
    """Return how many candidates it takes to draw so many pairs from."""
    return max(PLANNED_ON, _TIMES * count)


def design_random(
    question: Question, likes: ExpectedLikes, random: np.random.Generator, *, count: int | None = None
) -> RandomDesign:
    """Work out the best probabilities, or equal ones where no others make the widest interval narrower.

    Parameters
    ----------
    question
        What is asked for.
    likes
        q, and by how much it may be off.
    count
        Pairs that will be drawn, if known: there are then candidates enough.
    """
    found = question.candidates(candidates_for(count or 0), random)
    spreads = likes.spreads(found.users, found.items)
    squares = _Squares(question.weights, found.slopes)
    sizes = _neyman(squares, spreads.mean(axis=0))
    uniform = squares.worst(spreads)
    designs = [part + (1 - part) * sizes for part in EVEN_PARTS]
    variances = [squares.worst(spreads / one) for one in designs]
    best = int(np.argmin([_cost(one, uniform) for one in variances]))
    return RandomDesign(found, designs[best], variances[best], uniform)


def _cost(variances: Array, uniform: Array) -> float:
    """Return the variance of the numbers asked for, as a part of a simple random choice's, if the widest gains."""
    told = uniform > 0
    return float((variances[told] / uniform[told]).mean()) if variances.max() <= uniform.max() else np.inf


@dataclass(frozen=True, eq=False)
class _Squares:
    """Squared slopes of the numbers asked for, one number at a time: of many recommenders there are many pairs."""

    weights: Array
    slopes: Array

    def of(self, number: int) -> Array:
        """Return those of a number, shape (m,)."""
        return np.asarray((self.weights[number] @ self.slopes) ** 2)

    def worst(self, spreads: Array) -> Array:
        """Average squared slopes times spreads of labels, shape (shifts, m), and take the largest; shape (numbers,)."""
        means = [float((spreads @ self.of(number)).max()) / spreads.shape[1] for number in range(len(self.weights))]
        return np.array(means)


def _neyman(squares: _Squares, spread: Array) -> Array:
    """Return h of mean 1 without its even part."""
    together = np.zeros(len(spread))
    for number in range(len(squares.weights)):
        one = squares.of(number) * spread
        mean = float(one.mean())
        together += one / mean if mean > 0 else 0.0
    if not together.any():
        raise UnreachableError("the recommenders predict the same of all pairs: there is nothing to tell apart")
    sizes = np.sqrt(together)
    return np.asarray(sizes / sizes.mean())
