"""What a run is measured by: metrics on each part of the data, and estimates from held-out rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.data.feedback_log import FeedbackLog
from verirec.estimation.catalogue import ESTIMATORS
from verirec.estimation.rows import LoggedPairs
from verirec.estimation.setup import drawn_seed, make_problem
from verirec.losses import NoiseRates
from verirec.metrics import evaluate
from verirec.studies.table2.problems import HELD_OUT, Problem

Scores = Callable[[npt.NDArray[Any], npt.NDArray[Any]], npt.NDArray[np.float64]]

MOST_LOGIT: Final = 4.0
"""Logits are cut off at it before the held-out error is estimated: else a corrected loss rewards overconfidence."""
SAMPLE: Final = 20_000
"""Unobserved pairs that stand for all in an estimate."""
_ESTIMATORS: Final = ("naive", "ome-ips", "ome-snips", "ome-dr")


def measured(
    problem: Problem, scores: Scores, held: FeedbackLog | None, rates: dict[str, NoiseRates], seed: int
) -> dict[str, Any]:
    """Return the metrics on each part of the data, and with held-out rows the estimates to choose by."""
    if held is None:
        test, validation = problem.sliced
        parts = {"validation": validation, "test": test, "random": problem.random}
        return {name: _metrics(scores, log, problem.k) for name, log in parts.items()}
    parts = {"held_out": problem.clean(held), "test": problem.random}
    found: dict[str, Any] = {name: _metrics(scores, log, problem.k) for name, log in parts.items()}
    return found | {"estimates": _estimates(problem, scores, held, rates, seed)}


def _metrics(scores: Scores, log: FeedbackLog, k: int) -> dict[str, float]:
    found = evaluate(scores, log, k=k)
    names = {"auc": "auc", f"ndcg@{k}": "ndcg", f"recall@{k}": "recall"}
    names |= {name: name for name in ("log_loss", "brier", "calibration_error")}
    return {short: float(found[name]) for name, short in names.items()}


def _estimates(
    problem: Problem, scores: Scores, held: FeedbackLog, rates: dict[str, NoiseRates], seed: int
) -> dict[str, float]:
    """Estimate the log loss over all pairs from held-out rows, as they are and corrected."""
    pairs = LoggedPairs(held, problem.weights.constants.thinned(HELD_OUT))
    least = 1 / (1 + np.exp(MOST_LOGIT))

    def bounded(users: npt.NDArray[Any], items: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        return np.clip(scores(users, items), least, 1 - least)

    estimators = [ESTIMATORS[name] for name in _ESTIMATORS]
    study = make_problem(bounded, pairs, estimators, sample=SAMPLE, seed=drawn_seed(seed))
    found = {}
    for one in estimators:
        for source, given in rates.items() if one.noise_corrected else [("", None)]:
            value = study.linearised(one, given)[0].value
            found[f"{one.name}-{source}" if source else one.name] = float(value)
    return found
