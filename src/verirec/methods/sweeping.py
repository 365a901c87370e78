"""Methods that can be trained by sweeps: what they have in common, and when sweeps fit."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

import torch
from torch import Tensor

from verirec.exceptions import MissingExtraWarning, warn_caller
from verirec.methods.base import Method
from verirec.models import FactorModel
from verirec.training.sweeps.rows import compiled_rows
from verirec.training.sweeps.solver import Sweeper
from verirec.training.task import Batch
from verirec.training.threads import no_denormals

PASSES_BETWEEN: Final = 2
_SETTLED: Final = 1e-5
_SLOW: Final = 0.2
"""Of the way down, what is gone at once where the loss may have no minimum: else the best state is passed by."""
_LARGE: Final = 200_000
"""Rows from which on it matters whether there is a compiler."""


@dataclass(kw_only=True, eq=False, repr=False)
class Sweeping(Method):
    r"""A method whose loss, with cross-entropy, is a regression on pseudo-labels: see `verirec.training.sweeps`."""

    sweeps: ClassVar[bool] = True

    def after_sweep(self) -> None:
        """Do what is to be done between the prediction model's sweep and those of others."""

    @abstractmethod
    def sweep(self) -> dict[str, Tensor]:
        """Improve all models once; gives losses by name."""

    def start(self, threads: int) -> None:
        """Get ready to sweep, if that fits and is wanted."""
        super().start(threads)
        why_not = self.why_no_sweeps()
        by_itself = self.sweeps and why_not is None and self.has_minimum
        if self.solver == "gradient" or (self.solver == "auto" and not by_itself):
            return
        if why_not is not None:
            raise self.no_sweeps(why_not)
        if compiled_rows() is None and (self.solver == "sweep" or len(self.task_.log) >= _LARGE):
            warn_caller("sweeps are several times faster with numba: pip install 'verirec[fast]'", MissingExtraWarning)
        self.solver_ = "sweep"
        self.sweeper_ = Sweeper(self.task_, threads, self.pace)
        self.pairings_ = {name: self.sweeper_.pairing(one) for name, one in self.learners().items()}
        with torch.no_grad():
            for pairing in self.pairings_.values():
                pairing.start_from(_logit(self.usual_label()))

    @property
    def has_minimum(self) -> bool:
        """Whether the penalty makes sure that the loss has a minimum, which is what sweeps go to.

        Where it may have none, held-out rows decide where to stop on the way down. Adam's many short steps give them
        more to choose from: `solver="auto"` takes those.
        """
        return self.penalty_factors >= self.penalty_bound_ or not getattr(self.f, "dim", 0)

    @property
    def pace(self) -> float:
        """How far f goes towards a quadratic's minimum at once: all the way, where the loss has one too."""
        return 1.0 if self.has_minimum else _SLOW

    def why_no_sweeps(self) -> str | None:
        """Say why sweeps do not fit; `None` where they do."""
        if self.has_own_loss:
            return "sweeps would lower its parent's loss, not its own"
        if self.loss != "log":
            return 'sweeps are for loss="log"'
        if not all(isinstance(one.model, FactorModel) for one in self.learners().values()):
            return 'sweeps are for models "mf", "constants" and "features"'
        if self.task_.device.type != "cpu":
            return 'sweeps are for device="cpu"'
        return None

    @property
    def has_own_loss(self) -> bool:
        """Whether a class further down than the one that defines `sweep` has a loss or a step of its own."""
        order = type(self).__mro__
        place = next(number for number, one in enumerate(order) if "sweep" in vars(one))
        return any(
            name in vars(one) for one in order[:place] for name in ("prediction_loss", "imputation_loss", "step")
        )

    def usual_label(self) -> float:
        """Return the mean label of the rows, weighted as the method does."""
        weights, labels = self.row_weights(self.sweeper_.batch), self.errors_.labels(self.sweeper_.batch)
        weighted = weights * labels
        return float(weighted.sum() / (weights.sum() if weights.ndim else weights * len(labels)))

    @abstractmethod
    def row_weights(self, batch: Batch) -> Tensor:
        """Return the weight of each row's error in the loss, per pair of the grid; one for all, or shape (b,)."""

    def passes(self, epoch: int) -> Iterator[dict[str, Tensor]]:
        """Sweep once, or take the steps of an epoch."""
        if not self.sweeping:
            yield from super().passes(epoch)
            return
        self.sweeper_.begin(epoch)
        with torch.no_grad(), no_denormals():
            for pairing in self.pairings_.values():
                pairing.refresh_features()
            losses = self.sweep()
        yield losses

    @property
    def sweeping(self) -> bool:
        """Whether this training goes by sweeps."""
        return hasattr(self, "sweeper_")

    @property
    def passes_between(self) -> int:
        """Sweeps between judgements."""
        return PASSES_BETWEEN if self.sweeping else super().passes_between

    @property
    def settled(self) -> bool:
        """Whether the last sweep changed next to nothing."""
        return self.sweeping and self.sweeper_.change < _SETTLED


def _logit(share: float) -> float:
    inside = min(max(share, 0.01), 0.99)
    return math.log(inside / (1 - inside))
