"""Which setting to try next: optuna's sampler, made anew from past trials, so that a stopped study goes on alike."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Sequence
from typing import Any, Final

from verirec.exceptions import MissingExtraError
from verirec.studies.table2.plans import Task
from verirec.studies.table2.spaces import Choice, Space

STARTUP: Final = 8
"""Trials that are drawn at random before the sampler looks at any."""

Row = dict[str, Any]
Score = Callable[[Row], float]


def next_setting(
    space: Space, task: Task, past: Sequence[tuple[dict[str, Any], float]], *, at_random: bool = False
) -> dict[str, Any]:
    """Return the setting of trial number `len(past)`, from the settings before it and their scores (larger is better).

    The sampler (tree-structured Parzen estimator, Bergstra et al. 2011; or `at_random`) is seeded by the form and the
    trial's number: the same past gives the same setting, in any process and after any interruption, and methods of one
    kind start with the same ones.

    Examples
    --------
    >>> next_setting({"dim": Choice((4, 8))}, Task("mf", "paper"), [])["dim"] in (4, 8)
    True
    """
    if not space:
        return {}
    optuna = require_optuna()
    distributions = {name: _distribution(optuna, one) for name, one in space.items()}
    seed = zlib.crc32(f"{task.form} {len(past)}".encode())
    with warnings.catch_warnings():
        # That a way of sampling is an experimental one.
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        by_past = optuna.samplers.TPESampler(seed=seed, n_startup_trials=STARTUP, multivariate=True)
        sampler = optuna.samplers.RandomSampler(seed=seed) if at_random else by_past
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for setting, score in past:
        study.add_trial(optuna.trial.create_trial(params=setting, distributions=distributions, value=score))
    return dict(study.ask(distributions).params)


def _distribution(optuna: Any, one: Any) -> Any:
    if isinstance(one, Choice):
        return optuna.distributions.CategoricalDistribution(one.values)
    return optuna.distributions.FloatDistribution(one.low, one.high, log=True)


def require_optuna() -> Any:
    """Return optuna, or say how to get it."""
    try:
        with warnings.catch_warnings():
            # tqdm says, in a notebook without ipywidgets, that its bars will be plain: there are none.
            warnings.filterwarnings("ignore", message="IProgress not found")
            import optuna
    except ImportError:
        raise MissingExtraError("tuning needs optuna: pip install 'verirec[study]'") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


FAILED: Final = -1e3
"""The score of a setting with which training fails."""


def score_of(choice: str, row: Row) -> float:
    """Return how good a run is by what a protocol may choose by; larger is better.

    "validation": AUC + NDCG@K + Recall@K - log loss on the slice of random ratings, all that the table is about in one
    number. All others name an estimate of the log loss from held-out rows.

    Examples
    --------
    >>> score_of("naive", {"estimates": {"naive": 0.6}}), score_of("naive", {"failed": "diverged"})
    (-0.6, -1000.0)
    """
    if "failed" in row:
        return FAILED
    if choice == "validation":
        found = row["validation"]
        return float(found["auc"] + found["ndcg"] + found["recall"] - found["log_loss"])
    return -float(row["estimates"][choice])


def best_of(choice: str, rows: Sequence[Row]) -> Row:
    """Return the trial that a protocol chooses; of equal ones the first."""
    return max(rows, key=lambda row: score_of(choice, row))
