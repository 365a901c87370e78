"""Models that score all items of a user: their scores for the users and items of a log, gaps filled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.adapters.adapted import Adapted
from verirec.data.cells import Positions
from verirec.data.feedback_log import FeedbackLog
from verirec.exceptions import ColdStartWarning, UnknownIdError, warn_caller
from verirec.formatting import short

Array = npt.NDArray[np.float64]
Scorer = Callable[[Positions], Array]
"""From positions of users to their scores of all the log's items, (users, n_items); NaN where it cannot tell."""

MOST_STORED: Final = 20_000_000
"""Pairs of grids whose scores are asked for once and kept."""
_LOOKED_AT: Final = 50
"""Users of larger grids, of those that the model knows, whose scores tell which items it knows, and the mean."""


def scores_by_user(
    score: Scorer, log: FeedbackLog, source: str, known_users: npt.NDArray[np.bool_] | None = None
) -> Adapted:
    """Make predictions of a function that scores all items of some users; what it does not know gets its mean score.

    A user or an item of the log that the model was not trained on is such; a warning counts them. Where a grid is too
    large to ask for all of it and nothing says which users the model knows, it comes with the first that it does not.

    Parameters
    ----------
    score
        See `Scorer`.
    log
        Whose positions it speaks of.
    source
        What messages call the model.
    known_users
        Which of the log's users it knows, if that is known without asking it, shape (n_users,).
    """
    if log.n_cells <= MOST_STORED:
        scores = np.asarray(score(np.arange(log.n_users)), dtype=np.float64)
        filler = _filler(scores, np.ones(log.n_users, bool), log, source)
        return Adapted(np.where(np.isfinite(scores), scores, filler), source, probabilities=False)
    known = np.ones(log.n_users, bool) if known_users is None else known_users
    candidates = np.flatnonzero(known) if known.any() else np.arange(log.n_users)
    looked_at = candidates[np.unique(np.linspace(0, len(candidates) - 1, _LOOKED_AT).astype(int))]
    scores = np.asarray(score(looked_at), dtype=np.float64)
    told = known_users is not None or not np.isfinite(scores).any(axis=1).all()
    asked = _Asked(score, _filler(scores, known, log, source), log, source, told=told)
    return Adapted(asked, source, probabilities=False)


def places_of(ids: Sequence[Any], known: dict[Any, int]) -> npt.NDArray[np.int64]:
    """Return the numbers that a model has for ids, -1 for those it lacks; a model of text may know 7 as "7".

    Examples
    --------
    >>> places_of([7, 8], {"7": 0}).tolist(), places_of(["b", "c"], {"a": 0, "b": 1}).tolist()
    ([0, -1], [1, -1])
    """
    found = [known.get(one, -1) for one in ids]
    if max(found, default=-1) < 0:
        found = [known.get(str(one), -1) for one in ids]
    return np.array(found, dtype=np.int64)


class _Asked:
    """A function of pairs that asks for whole users, each once a call.

    Parameters
    ----------
    score, filler
        What is asked, and what stands for scores that it lacks.
    log, source
        For what is said of the first user without any score.
    told
        Whether such users have been told of.
    """

    def __init__(self, score: Scorer, filler: float, log: FeedbackLog, source: str, *, told: bool) -> None:
        self._score, self._filler, self._log, self._source, self._told = score, filler, log, source, told

    def __call__(self, users: Positions, items: Positions) -> Array:
        asked, line = np.unique(users, return_inverse=True)
        scores = np.asarray(self._score(asked), dtype=np.float64)
        if not self._told:
            self._tell(asked[~np.isfinite(scores).any(axis=1)])
        found = scores[line, items]
        return np.where(np.isfinite(found), found, self._filler)

    def _tell(self, unknown: Positions) -> None:
        if len(unknown):
            self._told = True
            first = short(self._log.user_ids.arrow(unknown[:1]).to_pylist()[0])
            warn_caller(
                f"{self._source} does not score some users of the log (first: {first}), which it may not know: they "
                "get its mean score",
                ColdStartWarning,
            )


def _filler(scores: Array, known_users: npt.NDArray[np.bool_], log: FeedbackLog, source: str) -> float:
    """Return the mean of what a model scores, and say how much it does not; refuse one that scores nothing.

    Parameters
    ----------
    scores
        Of all items, for all users or some of those that are known, shape (users, n_items).
    known_users
        Which of the log's users are not known to be unknown.
    """
    scored = np.isfinite(scores)
    if not scored.any():
        first = [short(ids.arrow([0]).to_pylist()[0]) for ids in (log.user_ids, log.item_ids)]
        raise UnknownIdError(
            f"{source} scores no pair of the log: it does not know its users (first: {first[0]}) or its items (first: "
            f"{first[1]})"
        )
    n_unknown = int((~known_users).sum())
    if n_unknown or not scored.all():
        users, items = n_unknown + int((~scored.any(axis=1)).sum()), int((~scored.any(axis=0)).sum())
        # Of users that are known and were not asked for, as many as of those that were.
        lacking = n_unknown * log.n_items + round(float((~scored).mean()) * int(known_users.sum()) * log.n_items)
        warn_caller(
            f"{source} does not score {lacking:,} of {log.n_cells:,} pairs ({users:,} users and {items:,} items of the "
            "log are unknown to it): they get its mean score",
            ColdStartWarning,
        )
    return float(scores[scored].mean())
