"""An objective of pseudo-labels, lowered by sweeps: f on its rows and the grid, then g on its squares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import torch
from torch import Tensor

from verirec.training.correction import NoiseCorrection
from verirec.training.data import TrainingData
from verirec.training.learner import Learners
from verirec.training.objective import ImputedLabels, PseudoLabels, mean_label
from verirec.training.solvers import AfterPrediction
from verirec.training.solvers.sweep.forms import FORMS
from verirec.training.solvers.sweep.grid_gradient import OneLabel, Sigmoids
from verirec.training.solvers.sweep.sweeper import Sweeper
from verirec.training.solvers.sweep.targets import RowTargets
from verirec.training.threads import no_denormals

_CONVERGED: Final = 1e-5
"""Relative change of the parameters below which a sweep is taken to be the last."""


class SweepSolver:
    """Lowers an objective by quadratics that lie above it; every sweep looks at all rows.

    Parameters
    ----------
    objective
        What to lower, with cross-entropy or stars.
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
    long_epochs: bool = False

    def __init__(
        self, objective: PseudoLabels, models: Learners, data: TrainingData, threads: int, damping: float
    ) -> None:
        self.objective, self.models, self.data = objective, models, data
        self.form = FORMS[type(objective.correction.loss)]
        self.sweeper = Sweeper(data, threads, damping, self.form.gradient)
        self.goes_to_minimum = damping == 1
        if not self.goes_to_minimum:
            # The best state may be any.
            self.validation_interval = 1
        self.factors = {name: self.sweeper.factors(learner) for name, learner in models.by_name.items()}
        self._targets_of: NoiseCorrection | None = None
        self._logits: Tensor | None = None
        level = float(mean_label(self._targets().labels, self._targets().weights))
        with torch.no_grad():
            for factors in self.factors.values():
                factors.start_from(self.form.start(level))

    @property
    def converged(self) -> bool:
        """Whether the last sweep changed next to nothing."""
        return self.sweeper.change < _CONVERGED

    def close(self) -> None:
        """Do nothing: all is here."""

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
        losses = {"loss": self._improve_prediction(imputed)}
        self.correct(after_prediction(lambda: self.data.sample_batch(epoch)))
        if imputed is not None and imputed.constant is None:
            losses["imputation_loss"] = self._improve_imputation(imputed)
        return losses

    def _targets(self) -> RowTargets:
        """Return the rows' corrected labels and weights, worked out once for each correction."""
        if self._targets_of is not self.objective.correction:
            self._targets_of = self.objective.correction
            labels = self.data.of_rows(self._targets_of.labels)
            least, most = (float(one) for one in labels.aminmax())
            weights = self.data.of_rows(self.objective.row_weights)
            self._kept = RowTargets(self.sweeper.rows, labels, weights, (least, most))
        return self._kept

    def _improve_prediction(self, imputed: ImputedLabels | None) -> Tensor:
        """Improve f; returns the loss as it was."""
        f, targets = self.factors["prediction"], self._targets()
        if imputed is None:
            return self.sweeper.on_rows(f, self.form.of_rows(targets))
        if imputed.constant is not None:
            label = imputed.constant.float()
            return self.sweeper.on_grid(f, OneLabel(float(label)), targets.linear(lambda part: label))
        g, loss = self.factors["imputation"], self.objective.correction.loss
        self._logits = logits = self.sweeper.rows.logits(g)
        return self.sweeper.on_grid(f, Sigmoids(g), targets.linear(lambda part: loss.response(logits[part])))

    def _improve_imputation(self, imputed: ImputedLabels) -> Tensor:
        """Improve g, given its logits on the rows, which follow it; returns its loss as it was."""
        given = self.sweeper.batch.weights

        def weights(part: slice) -> Tensor:
            return imputed.weights(given[part]) * imputed.scale

        loss = self.form.of_imputation(self._targets(), self.factors["prediction"], weights)
        logits, self._logits = self._logits, None
        return self.sweeper.on_rows(self.factors["imputation"], loss, logits)
