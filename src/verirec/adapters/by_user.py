"""Models that score all items of a user: their scores for the users and items of a log, gaps filled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.adapters.adapted import Adapted
from verirec.data.cells import Positions
from verirec.data.feedback_log import FeedbackLog
from verirec.data.predictions import PredictionsLike
from verirec.exceptions import ColdStartWarning, UnknownIdError, warn_caller
from verirec.formatting import short

Array = npt.NDArray[np.float64]
Scorer = Callable[[Positions], Array]
"""From positions of users to their scores of all the log's items, (users, n_items); NaN where it cannot tell."""

MOST_STORED: Final = 20_000_000
"""Pairs of grids whose scores are asked for once and kept."""
_LOOKED_AT: Final = 50
"""Users of larger grids whose scores tell what is not known, and the mean."""


def scores_by_user(score: Scorer, log: FeedbackLog, source: str) -> Adapted:
    """Make predictions of a function that scores all items of some users; what it does not know gets its mean score.

    A user or an item of the log that the model was not trained on is such; a warning counts them.

    Parameters
    ----------
    score
        See `Scorer`.
    log
        Whose positions it speaks of.
    source
        What messages call the model.
    """
    stored = log.n_cells <= MOST_STORED
    looked_at = np.arange(log.n_users)
    if not stored:
        looked_at = np.unique(np.linspace(0, log.n_users - 1, _LOOKED_AT).astype(int))
    scores = np.asarray(score(looked_at), dtype=np.float64)
    filler = _filler(scores, log, source)
    predictions: PredictionsLike = np.where(np.isfinite(scores), scores, filler) if stored else _asked(score, filler)
    return Adapted(predictions, source, probabilities=False)


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


def _asked(score: Scorer, filler: float) -> Callable[[Positions, Positions], Array]:
    """Return a function of pairs that asks for whole users, each once a call."""

    def predict(users: Positions, items: Positions) -> Array:
        asked, line = np.unique(users, return_inverse=True)
        found = np.asarray(score(asked), dtype=np.float64)[line, items]
        return np.where(np.isfinite(found), found, filler)

    return predict


def _filler(scores: Array, log: FeedbackLog, source: str) -> float:
    """Return the mean of what a model scores, and say how much it does not; refuse one that scores nothing."""
    known = np.isfinite(scores)
    if not known.any():
        first = [short(ids.arrow([0]).to_pylist()[0]) for ids in (log.user_ids, log.item_ids)]
        raise UnknownIdError(
            f"{source} scores no pair of the log: it does not know its users (first: {first[0]}) or its items (first: "
            f"{first[1]})"
        )
    if not known.all():
        users, items = int((~known.any(axis=1)).sum()), int((~known.any(axis=0)).sum())
        warn_caller(
            f"{source} does not score {int((~known).sum()):,} of {known.size:,} pairs ({users:,} users and {items:,} "
            "items of the log are unknown to it): they get its mean score",
            ColdStartWarning,
        )
    return float(scores[known].mean())
