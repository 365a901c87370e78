"""Predictions of some pairs only: which logged rows they cover, and an estimation on these."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from verirec.data.cells import Positions, cell_keys
from verirec.data.feedback_log import FeedbackLog
from verirec.data.pair_keys import among
from verirec.data.predictions import PredictionsLike, as_predictions
from verirec.estimation.rows import LoggedPairs
from verirec.exceptions import PredictionError
from verirec.scratch import each


def covered_rows(given: PredictionsLike, log: FeedbackLog) -> npt.NDArray[np.bool_] | None:
    """Tell which rows of a log predictions in triples cover; `None` for predictions of all pairs.

    Examples
    --------
    >>> log = FeedbackLog.from_arrays([0, 0, 1], [0, 1, 1], [1, 0, 1], n_users=2, n_items=2)
    >>> covered_rows(([0, 1], [0, 1], [0.5, 0.6]), log).tolist()
    [True, False, True]
    """
    if log.levels is not None and getattr(given, "ndim", 2) == 3:
        return None  # A distribution over the levels of every pair.
    cells = as_predictions(given, log.n_users, log.n_items)
    keys = cells.covered
    if keys is None:
        return None

    def are_covered(users: Positions, items: Positions) -> npt.NDArray[np.bool_]:
        return among(cell_keys(users, items, log.n_items), keys)

    covered: npt.NDArray[np.bool_] = each(are_covered, log.users, log.items, dtype=bool)
    if covered.sum() < 2:
        raise PredictionError(
            f"predictions cover {int(covered.sum())} of the {len(log):,} logged pairs; at least 2 are needed"
        )
    return covered


def on_covered(pairs: LoggedPairs, covered: npt.NDArray[np.bool_]) -> LoggedPairs:
    """Return the pairs of the rows that are covered, as if these were a random part of the log.

    Parameters
    ----------
    pairs
        Of all n rows.
    covered
        Which of them, shape (n,).
    """
    if covered.all():
        return pairs
    log, share = pairs.log.select(covered), float(covered.mean())
    return LoggedPairs(log, pairs.propensities.thinned(share), left_out=pairs.left_out)
