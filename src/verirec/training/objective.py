r"""What a method minimises, in one place for both solvers.

Most losses of this field are one thing: errors of the log, weighted, and where errors are imputed, those everywhere,

.. math:: |D|^{-1} \Big\{ \sum_D l(f, g) + \sum_O w\,[e - l(f, g)] \Big\}
   \quad\text{or}\quad |D|^{-1} \sum_O w\, e .

`PseudoLabels` is that: a method says its weights w and its imputed labels g; the loss of a batch, what a sweep lowers
and the penalty below which there is no minimum all follow from these. Other methods write an `Objective` of their own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import NamedTuple, Self, final

import torch
from torch import Tensor

from verirec.training.correction import NoiseCorrection
from verirec.training.data import Batch, TrainingData, multiplied
from verirec.training.learner import Learners
from verirec.training.losses import LogitLoss


class Step(NamedTuple):
    """One of the steps that a batch is trained by.

    Parameters
    ----------
    trained
        Names of the models that take a step down, together.
    loss
        Of the models and a batch.
    name
        What the history calls it.
    maximise
        Whether they go up instead.
    times
        How often.
    """

    trained: tuple[str, ...]
    loss: Callable[[Learners, Batch], Tensor]
    name: str = "loss"
    maximise: bool = False
    times: int = 1


@dataclass(frozen=True, eq=False)
class Objective(ABC):
    """What is minimised; it has no state: what changes in training is in the models, and in `models.state`, which a
    loss may bring up to date.

    Parameters
    ----------
    correction
        What makes errors of logits and labels.
    """

    correction: NoiseCorrection

    @abstractmethod
    def loss(self, models: Learners, batch: Batch) -> Tensor:
        """Return an estimate of the mean loss of a pair, with a gradient for the prediction model."""

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps that a batch is trained by, in order; one of them trains "prediction", and is named "loss"."""
        return (Step(("prediction",), self.loss),)

    def initial_state(self) -> dict[str, Tensor]:
        """Return what else changes as it is trained, as it starts; checkpoints keep it."""
        return {}

    def facts(self, models: Learners) -> dict[str, float]:
        """Return what the history should show of an epoch besides losses."""
        return {}

    def target_excess(self, data: TrainingData) -> Tensor | None:
        """Return by how much the log loss's targets lie outside of [0, 1], shape (n,); `None` where none do.

        It is what the loss can fall without end by: see `verirec.training.bounds`.
        """
        return None

    def corrected(self, correction: NoiseCorrection) -> Self:
        """Return the same objective with another correction, in the objectives that it is made of too."""
        parts = {one.name: getattr(self, one.name) for one in fields(self)}
        own = {name: part.corrected(correction) for name, part in parts.items() if isinstance(part, Objective)}
        return replace(self, correction=correction, **own)


@dataclass(frozen=True, eq=False)
class ImputedLabels:
    r"""Soft labels g of all pairs: one for all, or a model "imputation" that is learnt in turn with f.

    The model learns from :math:`|D|^{-1} \sum_O a\,(e - l(f, g))^2`.

    Parameters
    ----------
    constant
        The label; `None` where a model says it.
    constant_at
        What it is with another correction.
    weights
        a of 1/p of some rows.
    scale
        What these are multiplied by.
    """

    constant: Tensor | None = None
    constant_at: Callable[[NoiseCorrection], Tensor] | None = None
    weights: Callable[[Tensor], Tensor] = torch.ones_like
    scale: Tensor | float = 1.0

    @classmethod
    def mean(cls, data: TrainingData, correction: NoiseCorrection) -> Self:
        """Return one label for all pairs: the mean of the labels, weighted by 1/p, as it is without noise."""

        def at(correction: NoiseCorrection) -> Tensor:
            return correction.without_noise(mean_label(data.of_rows(correction.labels), data.weights))

        return cls(at(correction), at)

    @classmethod
    def learnt(cls, weights: Callable[[Tensor], Tensor], data: TrainingData, *, uses_propensities: bool) -> Self:
        """Give the weights the mean that 1/p has: g's penalty then means the same everywhere, and on sparse logs."""
        usual = data.weights.mean() if uses_propensities else 1 / data.density
        own = data.of_rows(lambda batch: weights(batch.weights)).mean()
        return cls(weights=weights, scale=usual / own if own > 0 else own.new_ones(()))

    def on_rows(self, models: Learners, batch: Batch, loss: LogitLoss) -> Tensor:
        """Return g of a batch's rows, with a gradient for the model."""
        return loss.response(batch.on_rows(models["imputation"])) if self.constant is None else self.constant

    def on_grid(self, models: Learners, batch: Batch, loss: LogitLoss) -> Tensor:
        """Return g of a batch's rectangle, detached."""
        if self.constant is not None:
            return self.constant
        with torch.no_grad():
            return loss.response(batch.on_grid(models["imputation"]))


@final
@dataclass(frozen=True, eq=False)
class PseudoLabels(Objective):
    """Weighted errors of the log, and imputed ones elsewhere: both solvers lower it.

    It is final so that neither solver can be led past the other: another loss is another `Objective`, with its own
    steps, which may be made of this one's parts.

    Parameters
    ----------
    row_weights
        w of a batch's rows, per pair of the grid: one for all, or shape (b,).
    imputed
        g; `None` for no imputed errors.
    """

    row_weights: Callable[[Batch], Tensor]
    imputed: ImputedLabels | None = None

    def corrected(self, correction: NoiseCorrection) -> Self:
        """Return the same objective with another correction; a label that was made of corrected ones follows."""
        imputed = self.imputed
        if imputed is not None and imputed.constant_at is not None:
            imputed = replace(imputed, constant=imputed.constant_at(correction))
        return replace(self, correction=correction, imputed=imputed)

    def loss(self, models: Learners, batch: Batch) -> Tensor:
        """Return the loss of a batch."""
        return self.loss_with(self.row_weights(batch), models, batch)

    def loss_with(self, weights: Tensor, models: Learners, batch: Batch) -> Tensor:
        """Return the loss of a batch with weights w that are given."""
        f = models["prediction"]
        logits = batch.on_rows(f)
        if self.imputed is None:
            return batch.over_log(weights * self.correction.errors(logits, batch))
        with torch.no_grad():
            of_rows = self.imputed.on_rows(models, batch, self.correction.loss)
        missed = self.correction.gap(logits, batch, of_rows)
        of_grid = self.imputed.on_grid(models, batch, self.correction.loss)
        everywhere = self.correction.imputed(batch.on_grid(f), of_grid).mean()
        return everywhere + batch.over_log(weights * missed)

    def missed(self, models: Learners, batch: Batch) -> Tensor:
        """Return what the imputed errors of the rows miss, with a gradient for g; f is held fixed."""
        assert self.imputed is not None  # noqa: S101
        with torch.no_grad():
            logits = batch.on_rows(models["prediction"])
        return self.correction.missed(logits, batch, self.imputed.on_rows(models, batch, self.correction.loss))

    def squares(self, batch: Batch, missed: Tensor) -> Tensor:
        """Add up squares of a batch's rows with g's weights, per pair of the grid."""
        assert self.imputed is not None  # noqa: S101
        return batch.over_log(self.imputed.scale * self.imputed.weights(batch.weights) * missed**2)

    def imputation_loss(self, models: Learners, batch: Batch) -> Tensor:
        """Return the weighted squares of what the imputed errors miss."""
        return self.squares(batch, self.missed(models, batch))

    @property
    def learns_labels(self) -> bool:
        """Whether g is a model."""
        return self.imputed is not None and self.imputed.constant is None

    @property
    def imputation_step(self) -> Step:
        """The step that trains g."""
        return Step(("imputation",), self.imputation_loss, "imputation_loss")

    @property
    def steps(self) -> tuple[Step, ...]:
        """Train f, then g."""
        first = Step(("prediction",), self.loss)
        return (first, self.imputation_step) if self.learns_labels else (first,)

    def target_excess(self, data: TrainingData) -> Tensor:
        """Return what targets, w (r - g) + g or w r, have outside of [0, 1]; for learnt g, by the labels' mean."""
        labels_of, weights_of = self.correction.labels, self.row_weights
        if self.imputed is None:
            return data.of_rows(lambda batch: _outside(labels_of(batch)) * weights_of(batch))
        constant = self.imputed.constant
        if constant is None:
            prior = mean_label(data.of_rows(labels_of), data.of_rows(weights_of)).clamp(0, 1)
        else:
            prior = self.correction.soft(constant).clamp(0, 1)
        return data.of_rows(lambda batch: _outside(((labels_of(batch) - prior) * weights_of(batch)).add_(prior)))


def mean_label(labels: Tensor, weights: Tensor) -> Tensor:
    """Return the weighted mean of labels, for one weight or for as many as there are labels; of levels, shape (c, 1).

    Examples
    --------
    >>> float(mean_label(torch.tensor([1.0, 0.0]), torch.tensor([3.0, 1.0])))
    0.75
    """
    total = weights.sum() if weights.ndim else weights * labels.shape[-1]
    weighted = multiplied(weights, labels)
    return (weighted.sum() if labels.ndim == 1 else weighted.sum(-1, keepdim=True)) / total


def _outside(targets: Tensor) -> Tensor:
    """Return what targets have outside of [0, 1], shape (n,); of levels, the highest above 1 and the lowest below 0.

    Where a score is far out, an ordinal loss changes with it by these two alone.
    """
    if targets.ndim == 1:
        return targets - targets.clamp(0, 1)
    return (targets[-1] - 1).clamp_min(0) + targets[0].clamp_max(0)
