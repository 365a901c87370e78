"""Scores of what a file of predictions lacks: means of what it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from verirec.data.cells import CellValues, Positions, cell_keys
from verirec.data.predictions import PairScores
from verirec.exceptions import ScoreWarning, warn_caller
from verirec.formatting import short

if TYPE_CHECKING:
    from verirec.data.feedback_log import FeedbackLog
    from verirec.data.ids import IdMap

MISSING: Final = ("error", "mean")
"""What can be done about pairs without a score."""


class FilledScores(CellValues):
    """Scores of some pairs, and for each other pair the mean score of its item, or of all pairs if it has none.

    Parameters
    ----------
    given
        Scores of at least one pair.

    Examples
    --------
    >>> filled = FilledScores(PairScores(([0, 1, 0], [0, 0, 1], [0.2, 0.4, 0.9]), 3, 3))
    >>> filled.block([0, 2], [0, 1, 2]).tolist()
    [[0.2, 0.9, 0.5], [0.30000000000000004, 0.9, 0.5]]
    """

    def __init__(self, given: PairScores) -> None:
        self.shape, self.given = given.shape, given
        items = given.keys % given.shape[1]
        counts = np.bincount(items, minlength=given.shape[1])
        sums = np.bincount(items, given.scores, minlength=given.shape[1])
        self.item_means = np.where(counts > 0, sums / np.maximum(counts, 1), given.scores.mean())

    def cells(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        """Look the scores up, and the means where there are none."""
        wanted = cell_keys(users, items, self.shape[1])
        found = np.minimum(np.searchsorted(self.given.keys, wanted), len(self.given.keys) - 1)
        known = self.given.keys[found] == wanted
        return np.where(known, self.given.scores[found], np.broadcast_to(self.item_means[items], wanted.shape))


def fill_missing(triples: tuple[Positions, Positions, Any], log: FeedbackLog, source: str) -> CellValues:
    """Give each pair without a score the mean of its item's, and say how many there are; see `FilledScores`.

    Parameters
    ----------
    triples
        Users, items and scores, by the log's positions.
    log
        Whose grid is filled.
    source
        What the warning calls the scores.
    """
    given = PairScores(triples, log.n_users, log.n_items)
    if given.covered is None:
        return given
    lacking = [
        f", among them all of {told_of_lacking(ids, np.setdiff1d(np.arange(len(ids)), have), side)}"
        for side, ids, have in (("user", log.user_ids, triples[0]), ("item", log.item_ids, triples[1]))
        if len(np.unique(have)) < len(ids)
    ]
    warn_caller(
        f"{source} has no score of {log.n_cells - len(given.keys):,} of the {log.n_cells:,} pairs{''.join(lacking)}: "
        "they are scored as the mean of their item, or of all",
        ScoreWarning,
    )
    return FilledScores(given)


def told_of_lacking(ids: IdMap, lacking: npt.NDArray[Any], side: str) -> str:
    """Say how many of a log's users or items are lacking, and which are the first three.

    Examples
    --------
    >>> from verirec.data.ids import IdMap
    >>> told_of_lacking(IdMap.of(["ann", "bob", "cy"]), np.array([0, 2]), "user")
    "2 of the log's 3 users (first: 'ann', 'cy')"
    """
    first = ", ".join(map(short, ids.arrow(lacking[:3]).to_pylist()))
    return f"{lacking.size:,} of the log's {len(ids):,} {side}s (first: {first})"


def rows_or_mean(values: Any, at: npt.NDArray[np.int32]) -> npt.NDArray[Any]:
    """Take rows of an array; -1 is their mean.

    Examples
    --------
    >>> rows_or_mean([1.0, 3.0], np.array([1, -1])).tolist()
    [3.0, 2.0]
    """
    given = np.asarray(values)
    return np.concatenate([given, given.mean(axis=0, keepdims=True)])[at]
