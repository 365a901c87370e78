"""Adam on random batches: for every objective and every model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from torch import Tensor

from verirec.models import FactorModel
from verirec.training.correction import NoiseCorrection
from verirec.training.data import Batch, TrainingData
from verirec.training.learner import Learners
from verirec.training.logits import BatchLogits
from verirec.training.objective import Objective
from verirec.training.solvers import AfterPrediction
from verirec.training.threads import seeded

_STEPS_BETWEEN: Final = 50
"""Steps that lie at least between two validations: on a small log an epoch is a few milliseconds."""
_FEWER_STEPS: Final = 10
"""The same of factors alone, which begin near their best state."""


class GradientSolver:
    """Takes an objective's steps, batch by batch.

    Parameters
    ----------
    objective
        What to lower.
    models
        What to train.
    data
        Rows and batches.
    """

    name: str = "gradient"
    validation_interval: int = _STEPS_BETWEEN
    converged: bool = False
    """By random batches, never."""
    goes_to_minimum: bool = False
    long_epochs: bool = False

    def __init__(self, objective: Objective, models: Learners, data: TrainingData) -> None:
        self.objective, self.models, self.data = objective, models, data
        prediction = models["prediction"]
        if isinstance(prediction, FactorModel) and prediction.factors_alone:
            self.validation_interval = _FEWER_STEPS

    def close(self) -> None:
        """Do nothing: all is here."""

    def correct(self, correction: NoiseCorrection) -> None:
        """Go on with another noise correction."""
        if correction is not self.objective.correction:
            self.objective = self.objective.corrected(correction)

    def train_epoch(self, epoch: int, after_prediction: AfterPrediction) -> Iterator[dict[str, Tensor]]:
        """Train on every row once; yields losses by name."""
        # Modules of a user's own may draw from torch's global numbers, as dropout does: the same ones each time.
        with seeded(self.data.seed, epoch):
            for batch in self.data.batches(epoch):
                yield self._train_on(batch, after_prediction)

    def _train_on(self, batch: Batch, after_prediction: AfterPrediction) -> dict[str, Tensor]:
        logits, losses = BatchLogits(), {}
        batch = batch._replace(logits=logits)
        for number in range(len(self.objective.steps)):
            # Asked for anew: rates that are learnt between two steps are for the second one.
            step = self.objective.steps[number]
            for _ in range(step.times):
                loss = step.loss(self.models, batch)
                value = self.models.minimise(-loss if step.maximise else loss, step.trained, logits)
            losses[step.name] = -value if step.maximise else value
            if "prediction" in step.trained:
                self.correct(after_prediction(lambda: batch))
        return losses
