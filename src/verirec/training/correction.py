r"""Noise corrections: what turns logits and noisy labels into errors. Each is immutable; other rates are another one.

OME-X is X with a correction (paper, Section 3.2). Every method computes its errors here, whatever its loss is made of.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final, Literal

import torch
from torch import Tensor

from verirec.exceptions import ParameterError
from verirec.losses import GroupedNoiseRates, NoiseRates, correct_labels
from verirec.training.data import Batch, TrainingData
from verirec.training.losses import LOSSES, LogitLoss, NoisyLogLoss

Kind = Literal["none", "surrogate", "forward"]
KINDS: Final = ("none", "surrogate", "forward")


class NoiseCorrection(ABC):
    """How errors follow from logits and labels: a loss of logits, and labels in the form that it takes."""

    loss: LogitLoss

    @property
    def bounded(self) -> bool:
        """Whether the loss is bounded below whatever the labels are."""
        return False

    @abstractmethod
    def labels(self, batch: Batch) -> Tensor:
        """Return the labels of a batch's rows, as the loss takes them."""

    def soft(self, soft_labels: Tensor) -> Tensor:
        """Return imputed labels g, as the loss takes them."""
        return soft_labels

    def without_noise(self, labels: Tensor) -> Tensor:
        """Return the imputed labels that `soft` turns into these: a mean of labels, as it is without noise."""
        return labels

    def errors(self, logits: Tensor, batch: Batch) -> Tensor:
        """Return e of a batch's rows."""
        return self.loss(logits, self.labels(batch))

    def imputed(self, logits: Tensor, soft_labels: Tensor) -> Tensor:
        r"""Return :math:`\hat e = l(f, g)` for imputed soft labels g."""
        return self.loss(logits, self.soft(soft_labels))

    def gap(self, logits: Tensor, batch: Batch, soft_labels: Tensor) -> Tensor:
        r"""Return :math:`e - \hat e` of a batch's rows: what does not depend on labels drops out."""
        return self.loss.change(logits, self.labels(batch) - self.soft(soft_labels))

    def missed(self, logits: Tensor, batch: Batch, soft_labels: Tensor) -> Tensor:
        """Return the errors of a batch's rows that imputed labels miss, which these learn from."""
        return self.loss.missed(logits, self.labels(batch) - self.soft(soft_labels))


@dataclass(frozen=True, eq=False)
class NoCorrection(NoiseCorrection):
    """Labels are taken for the truth."""

    loss: LogitLoss

    def labels(self, batch: Batch) -> Tensor:
        """Return the labels as they are."""
        return batch.labels


@dataclass(frozen=True, eq=False)
class Surrogate(NoiseCorrection):
    r"""The paper's correction (Section 3.2): :math:`l(f, \tilde r)` with :math:`\tilde r = (r - \rho_{10})/\kappa`.

    Unbiased, and unbounded below: see `verirec.training.bounds`.

    Parameters
    ----------
    loss
        Of logits.
    rates
        Of the noise.
    by_row
        Corrected labels of all rows, where rates differ by group; else labels are corrected as they come by.
    """

    loss: LogitLoss
    rates: NoiseRates | GroupedNoiseRates
    by_row: Tensor | None = None

    def labels(self, batch: Batch) -> Tensor:
        r"""Return :math:`\tilde r` of a batch's rows."""
        if self.by_row is not None:
            return self.by_row[batch.rows] if len(batch.rows) else self.by_row
        assert isinstance(self.rates, NoiseRates)  # noqa: S101
        return (batch.labels - self.rates.rho10).div_(1 - self.rates.rho01 - self.rates.rho10)


@dataclass(frozen=True, eq=False)
class Forward(NoiseCorrection):
    r"""Forward correction (Patrini et al. 2017): the plain log loss of :math:`P(r = 1) = \rho_{10} + \kappa f`.

    Bounded below, with the same minimiser in the limit.
    """

    rates: NoiseRates

    @property
    def loss(self) -> LogitLoss:  # type: ignore[override]
        """The log loss of what noise makes of a prediction."""
        return NoisyLogLoss(self.rates)

    def labels(self, batch: Batch) -> Tensor:
        """Return the labels as they are."""
        return batch.labels

    def soft(self, soft_labels: Tensor) -> Tensor:
        """Return imputed labels as noise would have left them."""
        return self.rates.rho10 + (1 - self.rates.rho01 - self.rates.rho10) * soft_labels

    def without_noise(self, labels: Tensor) -> Tensor:
        """Return what noise leaves as these."""
        return (labels - self.rates.rho10) / (1 - self.rates.rho01 - self.rates.rho10)

    @property
    def bounded(self) -> bool:
        """Tell whether there are both kinds of noise: without, a probability can be 0, and the loss has no bound."""
        return min(self.rates.rho01, self.rates.rho10) > 0


def make_correction(
    kind: str, loss: str, rates: NoiseRates | GroupedNoiseRates | None, data: TrainingData
) -> NoiseCorrection:
    """Make a correction for some rows.

    Parameters
    ----------
    kind
        "none", "surrogate" or "forward".
    loss
        "log" or "squared"; "forward" is for "log".
    rates
        Noise rates; "forward" takes one pair for all.
    data
        Whose rows are corrected beforehand, where rates differ by group.
    """
    if kind == "none" or rates is None:
        return NoCorrection(LOSSES[loss]())
    if kind == "forward":
        if isinstance(rates, GroupedNoiseRates):
            raise ParameterError('correction="forward" takes one pair of noise rates for all pairs; got groups')
        return Forward(rates)
    if isinstance(rates, NoiseRates):
        return Surrogate(LOSSES[loss](), rates)
    log = data.log
    corrected = correct_labels(log.labels, rates, log.users, log.items).values
    return Surrogate(LOSSES[loss](), rates, torch.as_tensor(corrected, dtype=torch.float32).to(data.device))
