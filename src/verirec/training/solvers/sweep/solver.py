"""An objective of pseudo-labels, lowered by sweeps: f on its rows and the grid, then g on its squares."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Final

import torch
from torch import Tensor

from verirec.training.correction import NoiseCorrection
from verirec.training.data import TrainingData
from verirec.training.learner import Learners
from verirec.training.objective import ImputedLabels, PseudoLabels, mean_label
from verirec.training.solvers import AfterPrediction
from verirec.training.solvers.sweep.arrays import large_array, row_parts
from verirec.training.solvers.sweep.grid_gradient import OneLabel, Sigmoids
from verirec.training.solvers.sweep.majorizers import CrossEntropy, Squares
from verirec.training.solvers.sweep.sweeper import Sweeper
from verirec.training.threads import no_denormals

_CONVERGED: Final = 1e-5
"""Relative change of the parameters below which a sweep is taken to be the last."""


class SweepSolver:
    """Lowers an objective by quadratics that lie above it; every sweep looks at all rows.

    Parameters
    ----------
    objective
        What to lower, with cross-entropy.
    models
        Factor models; their parameters become views of the solver's matrices.
    data
        Rows and grid.
    threads
        At most; results do not depend on their number.
    damping
        How far f goes towards a quadratic's minimum at once; at most 1.
    """

    name: str = "sweep"
    validation_interval: int = 2

    def __init__(
        self, objective: PseudoLabels, models: Learners, data: TrainingData, threads: int, damping: float
    ) -> None:
        self.objective, self.models, self.data = objective, models, data
        self.sweeper = Sweeper(data, threads, damping)
        self.goes_to_minimum = damping == 1
        if not self.goes_to_minimum:
            # The best state may be any.
            self.validation_interval = 1
        self.factors = {name: self.sweeper.factors(learner) for name, learner in models.by_name.items()}
        self._labels_of: NoiseCorrection | None = None
        level = float(mean_label(self._labels(), objective.row_weights(self.sweeper.batch)))
        with torch.no_grad():
            for factors in self.factors.values():
                factors.start_from(_logit(level))

    @property
    def converged(self) -> bool:
        """Whether the last sweep changed next to nothing."""
        return self.sweeper.change < _CONVERGED

    def correct(self, correction: NoiseCorrection) -> None:
        """Go on with another noise correction."""
        if correction is not self.objective.correction:
            self.objective = self.objective.corrected(correction)

    def train_epoch(self, epoch: int, after_prediction: AfterPrediction) -> Iterator[dict[str, Tensor]]:
        """Sweep once; yields losses by name."""
        self.sweeper.begin(epoch)
        with torch.no_grad(), no_denormals():
            for factors in self.factors.values():
                factors.refresh_features()
            losses = self._sweep(epoch, after_prediction)
        yield losses

    def _sweep(self, epoch: int, after_prediction: AfterPrediction) -> dict[str, Tensor]:
        imputed = self.objective.imputed
        if imputed is None:
            losses = {"loss": self._rows_alone()}
        elif imputed.constant is not None:
            label = float(imputed.constant)
            losses = {"loss": self._rows_and_grid(OneLabel(label), lambda part: torch.tensor(label))}
        else:
            g = self.factors["imputation"]
            logits = self.sweeper.rows.logits(g)
            losses = {"loss": self._rows_and_grid(Sigmoids(g), lambda part: torch.sigmoid(logits[part]))}
        self.correct(after_prediction(lambda: self.data.sample_batch(epoch)))
        if imputed is not None and imputed.constant is None:
            losses["imputation_loss"] = self._squares(imputed, logits)
        return losses

    def _labels(self) -> Tensor:
        """Return the rows' corrected labels, worked out once for each correction."""
        if self._labels_of is not self.objective.correction:
            self._labels_of = self.objective.correction
            self._corrected = self._labels_of.labels(self.sweeper.batch)
        return self._corrected

    def _rows_alone(self) -> Tensor:
        """Improve f where no error is imputed; returns the loss as it was."""
        labels = self._labels()
        weights = self.objective.row_weights(self.sweeper.batch).expand_as(labels).contiguous()
        return self.sweeper.on_rows(self.factors["prediction"], CrossEntropy(weights, weights * labels))

    def _rows_and_grid(self, everywhere: Sigmoids, at_rows: Callable[[slice], Tensor]) -> Tensor:
        """Improve f, given g of the grid and of some rows; returns the loss as it was."""
        labels = self._labels()
        weights, linear = self.objective.row_weights(self.sweeper.batch).expand_as(labels), large_array(len(labels))

        def work(part: slice) -> None:
            torch.mul(labels[part] - at_rows(part), weights[part], out=linear[part])

        self.sweeper.rows.pool.map(work, row_parts(len(labels)))
        return self.sweeper.on_grid(self.factors["prediction"], everywhere, linear)

    def _squares(self, imputed: ImputedLabels, logits: Tensor) -> Tensor:
        """Improve g, given its logits on the rows, which follow it; returns its loss as it was."""
        effect, given = self.objective.correction.loss.label_effect, self.sweeper.batch.weights
        of_f = self.sweeper.rows.logits(self.factors["prediction"])

        def work(part: slice) -> None:
            torch.mul(effect(of_f[part]).square_(), imputed.weights(given[part]) * imputed.scale, out=of_f[part])

        self.sweeper.rows.pool.map(work, row_parts(len(of_f)))
        return self.sweeper.on_rows(self.factors["imputation"], Squares(of_f, self._labels()), logits)


def _logit(share: float) -> float:
    inside = min(max(share, 0.01), 0.99)
    return math.log(inside / (1 - inside))
