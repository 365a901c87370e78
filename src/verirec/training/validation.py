"""Validation: an honest estimate of the error on rows that were held out, and how long to wait for a better one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from verirec.data.feedback_log import FeedbackLog
from verirec.data.splits import split
from verirec.estimation.catalogue import ESTIMATORS, Estimator
from verirec.estimation.inputs import KnownNoise
from verirec.estimation.rows import LoggedPairs
from verirec.estimation.setup import drawn_seed, make_problem
from verirec.exceptions import ParameterError
from verirec.models import Model
from verirec.nuisance.propensities import Propensities
from verirec.progress import doing
from verirec.training.heads import Head
from verirec.training.settings import TrainingSettings

SAMPLE: Final = 20_000
"""Unobserved pairs that stand for all, in estimators that look at them."""


class Validator:
    """The error on held-out rows by one estimator, the same rows and the same unobserved pairs each time.

    Parameters
    ----------
    log
        The held-out rows.
    propensities
        Of this part of the log.
    estimator
        Its name.
    rates
        Noise rates, for those that correct for noise.
    head
        What scores of the model say.
    seed
        Of the sample of unobserved pairs.
    """

    def __init__(
        self,
        log: FeedbackLog,
        propensities: Propensities,
        estimator: str,
        rates: KnownNoise | None,
        head: Head,
        seed: int,
    ) -> None:
        self.pairs, self.rates, self.head, self.seed = LoggedPairs(log, propensities), rates, head, seed
        self.estimator: Estimator = ESTIMATORS[estimator]

    def __call__(self, model: Model) -> float:
        """Estimate the error of a model as it is now."""
        log = self.pairs.log
        cells = self.head.judged(model, (log.n_users, log.n_items))
        problem = make_problem(
            cells,
            self.pairs,
            [self.estimator],
            loss=self.head.validation_loss,
            sample=SAMPLE,
            seed=drawn_seed(self.seed),
        )
        return problem.linearised(self.estimator, self.rates if self.estimator.noise_corrected else None)[0].value


def hold_out(settings: TrainingSettings, log: FeedbackLog, seed: int) -> tuple[FeedbackLog, FeedbackLog | None]:
    """Return rows to train on, and those that are held out to judge by, if any."""
    if settings.validation == 0:
        return log, None
    with doing("Holding rows out"):
        parts = split(log, settings.validation, by="random", random_state=np.random.default_rng([seed, 3]))
    if any(part.labels.min(initial=1) == part.labels.max(initial=0) for part in parts):
        raise ParameterError(
            f"validation={settings.validation:g} leaves rows of one class on a side of this log's {len(log):,}: take "
            "more of them, another random_state, or 0 to hold none out"
        )
    return parts


def make_validator(
    settings: TrainingSettings,
    rest: FeedbackLog,
    fitted: Propensities,
    rates: KnownNoise | None,
    head: Head,
    seed: int,
) -> Validator:
    """Return what judges a method on these rows: by the estimator that it names, or that fits."""
    name = settings.validation_estimator or ("ome-dr" if rates is not None else settings.own_estimator)
    if ESTIMATORS[name].noise_corrected and rates is None:
        raise ParameterError(f"validation_estimator={name!r} needs noise_rates or an audit")
    return Validator(rest, fitted, name, rates, head, seed)


@dataclass
class Patience:
    """Waits for a better value, and gives up after a number of evaluations without one."""

    most: int | None
    best: float = float("inf")
    best_epoch: int = 0
    waited: int = 0

    def better(self, value: float, epoch: int) -> bool:
        """Take note of a value; tell whether it is the best so far."""
        if value < self.best:
            self.best, self.best_epoch, self.waited = value, epoch, 0
            return True
        self.waited += 1
        return False

    @property
    def over(self) -> bool:
        """Whether it has waited long enough."""
        return self.most is not None and self.waited >= self.most
