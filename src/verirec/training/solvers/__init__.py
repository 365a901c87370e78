"""Ways to lower an objective: by steps along gradients, for all; by sweeps, for those that are pseudo-labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from torch import Tensor

from verirec.training.correction import NoiseCorrection
from verirec.training.data import Batch
from verirec.training.learner import Learners
from verirec.training.objective import Objective

AfterPrediction = Callable[[Callable[[], Batch]], NoiseCorrection]
"""Called when the prediction model has been trained on a batch, with what makes the batch; returns the correction to go
on with."""


class Solver(Protocol):
    """What the trainer asks of a solver."""

    name: str
    models: Learners
    validation_interval: int
    """How many passes lie at least between two validations."""

    goes_to_minimum: bool
    """Whether a pass goes all the way to where the loss is least, given the rest: few are then needed from nearby."""

    long_epochs: bool
    """Whether an epoch is worth a checkpoint of its own."""

    def train_epoch(self, epoch: int, after_prediction: AfterPrediction) -> Iterator[dict[str, Tensor]]:
        """Train for an epoch, a pass at a time: a step or a sweep; yields losses by name, detached."""

    @property
    def objective(self) -> Objective:
        """What is lowered."""

    def correct(self, correction: NoiseCorrection) -> None:
        """Go on with another noise correction."""

    @property
    def converged(self) -> bool:
        """Whether more training would change nothing."""

    def close(self) -> None:
        """Let go of what works elsewhere."""
