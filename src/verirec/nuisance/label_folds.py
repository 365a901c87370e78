"""Folds of a log's rows: models of labels that have not seen the rows that they are asked about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from verirec.data.feedback_log import FeedbackLog
from verirec.data.parts import filled, parts_of, shuffled_rows
from verirec.scratch import each

Array = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.integer[Any]]

MOST_ROWS: Final = 1_000_000
"""Rows that a fold's model is fitted to at most: a score needs no more, and may not see its own row in any case."""


class LabelFolds(NamedTuple):
    """Which fold each row is held out in, and which rows its model is fitted to.

    Parameters
    ----------
    fold
        Of each row, shape (n,).
    training
        For each fold, row numbers in ascending order, `MOST_ROWS` at most.
    whole
        Rows for a model of pairs that are in no fold: all (`None`) or, where the folds' models have `MOST_ROWS`, as
        many: logits of fewer rows are less spread, and what is learnt of the held-out ones has to hold for these.

    Examples
    --------
    >>> folds = LabelFolds.of(6, 3, np.random.default_rng(0))
    >>> np.bincount(folds.fold).tolist(), [len(rows) for rows in folds.training]
    ([2, 2, 2], [4, 4, 4])
    """

    fold: Numbers
    training: list[Numbers]
    whole: Numbers | None

    @classmethod
    def of(cls, length: int, count: int, random: np.random.Generator) -> LabelFolds:
        """Shuffle the rows: a fold is a stretch of them, and its model is fitted to those after it, then before it."""
        shuffled = shuffled_rows(length, random)
        fold, training = np.empty(length, np.min_scalar_type(count)), []
        for one in range(count):
            start, stop = (length * edge // count for edge in (one, one + 1))
            for at in parts_of(stop - start):
                fold[shuffled[start + at.start : start + at.stop]] = one
            after = shuffled[stop : stop + MOST_ROWS]
            before = shuffled[: min(start, MOST_ROWS - len(after))]
            training.append(np.sort(np.concatenate([after, before])))
        cut = any(len(rows) == MOST_ROWS for rows in training)
        whole: Numbers | None = np.sort(shuffled[:MOST_ROWS]) if cut else None
        return cls(each(np.positive, fold, dtype=fold.dtype), training, whole)


class Constants(Protocol):
    """A model of labels: a level, and constants of users and items, shapes (n_users,) and (n_items,)."""

    level: float
    users: Array
    items: Array


class FoldModels:
    """A model for each fold, of which every row is asked the one that has not seen it.

    Parameters
    ----------
    log, folds
        The rows, and their folds.
    models
        One a fold.
    """

    def __init__(self, log: FeedbackLog, folds: LabelFolds, models: Sequence[Constants]) -> None:
        self._log, self._fold = log, folds.fold
        self._levels = np.array([one.level for one in models])
        self._users, self._items = np.array([one.users for one in models]), np.array([one.items for one in models])

    def logits(self) -> Array:
        """Return the logit of each row, shape (n,)."""
        return filled(self._at, len(self._log))

    def probabilities(self) -> Array:
        """Return the probability that each row is positive, shape (n,)."""
        return filled(lambda at: expit(self._at(at)), len(self._log))

    def _at(self, at: slice) -> Array:
        fold = self._fold[at]
        found = self._levels[fold] + self._users[fold, self._log.users[at]]
        return np.asarray(found + self._items[fold, self._log.items[at]])
