"""All metrics of a recommender on a test log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from verirec.adapters.adapt import adapted
from verirec.checks import one_of
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.data.pair_sketch import warn_of_trained_rows
from verirec.data.predictions import PredictionsLike, as_predictions
from verirec.exceptions import ScoreWarning, UnknownNameError, warn_caller
from verirec.metrics.inputs import checked_scores
from verirec.metrics.probability import are_probabilities, brier_score, calibration_error, log_loss
from verirec.metrics.ranking import Convention, GradedRankings, UserRankings, checked_depths, warn_of_one_class
from verirec.scratch import each


class Evaluation(dict[str, float]):
    """Metrics by name, and the convention they are in.

    Parameters
    ----------
    values
        Name to number.
    convention
        What became of users without a positive: see `verirec.metrics.Convention`.
    """

    def __init__(self, values: dict[str, float], convention: Convention) -> None:
        super().__init__(values)
        self.convention = convention

    def __repr__(self) -> str:
        return f"Evaluation({super().__repr__()}, convention={self.convention!r})"

    def __missing__(self, name: str) -> float:
        raise UnknownNameError(f"no metric {name!r}; there are: {', '.join(self)}")

    def to_frame(self) -> Any:
        """Return one row a metric, as a pandas frame."""
        import pandas as pd

        return pd.DataFrame({"metric": list(self), "value": list(self.values()), "convention": self.convention})

    def _repr_html_(self) -> str:
        return str(self.to_frame().to_html(index=False))


def evaluate(
    scores: PredictionsLike, test_log: FeedbackLog, k: int | Iterable[int] = 5, *, convention: Convention = "paper"
) -> Evaluation:
    r"""Measure a recommender on a test log, as it stands: every row counts once, nothing is corrected.

    Parameters
    ----------
    scores
        Predictions in any form that `as_predictions` takes; of the log's pairs alone, (users, items, scores). Scores
        without their pairs are refused: a log's rows are sorted, and need not be in the order of whoever has scores.
    test_log
        Clean ratings of pairs that people did not choose, ideally.
    k
        Depth of the ranking metrics, or several.
    convention
        "paper": a user without a positive counts as an NDCG of 1, and as 0 elsewhere; "usual": is left out.

    Returns
    -------
    Evaluation
        auc (over all pairs), ndcg@k, recall@k, precision@k and f1@k (means over users, over each user's test items),
        and log_loss, brier and calibration_error, which are NaN, with a warning, if the scores are not probabilities.
        Ties count as their expected value. AUC of one class is NaN, with a warning, and so is what needs a user with
        positives.

        Of a log that keeps its levels: ndcg@k with a gain of :math:`2^j - 1` for the level at place j, and rmse and mae
        of the scores as predicted stars.

    Examples
    --------
    >>> log = FeedbackLog.from_arrays([0, 0, 1, 1], [0, 1, 0, 1], [1, 0, 0, 1], n_users=2, n_items=2)
    >>> result = evaluate([[0.9, 0.2], [0.4, 0.7]], log, k=1)
    >>> result["auc"], result["ndcg@1"], round(result["log_loss"], 3)
    (1.0, 1.0, 0.299)
    """
    checked_log(test_log, levels=True)
    one_of("convention", convention, ("paper", "usual"))
    depths = checked_depths(k)
    predictions = as_predictions(adapted(scores, test_log), test_log.n_users, test_log.n_items)
    warn_of_trained_rows(predictions, test_log)
    values = checked_scores(predictions.at(test_log.users, test_log.items))
    if test_log.levels is not None:
        return Evaluation(_graded(values, test_log, depths, convention), convention)
    rankings = UserRankings(test_log.users, test_log.labels, values)
    warn_of_one_class(test_log.labels)
    result = {"auc": rankings.auc}
    for depth in depths:
        for name in ("ndcg", "recall", "precision", "f1"):
            result[f"{name}@{depth}"] = getattr(rankings, name)(depth, convention=convention)
    proper = {"log_loss": log_loss, "brier": brier_score, "calibration_error": calibration_error}
    if are_probabilities(values):
        result |= {name: metric(test_log.labels, values) for name, metric in proper.items()}
    else:
        warn_caller(
            f"scores go from {values.min():g} to {values.max():g}, so they are not probabilities: "
            f"{', '.join(proper)} are left out (NaN)",
            ScoreWarning,
        )
        result |= dict.fromkeys(proper, float("nan"))
    return Evaluation(result, convention)


def _graded(
    stars: npt.NDArray[np.float64], log: FeedbackLog, depths: list[int], convention: Convention
) -> dict[str, float]:
    """Measure predicted stars on a log that keeps its levels."""
    rankings = GradedRankings(log.users, each(lambda level: 2.0**level - 1, log.labels), stars)
    found = {f"ndcg@{depth}": rankings.ndcg(depth, convention=convention) for depth in depths}
    levels = np.asarray(log.levels)
    off = each(lambda star, level: star - levels[level], stars, log.labels)
    return found | {"rmse": float(np.sqrt(each(np.square, off).mean())), "mae": float(each(np.abs, off).mean())}
