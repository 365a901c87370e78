r"""Losses of logits, and the two ways of correcting them for noise.

With labels y that may be soft, or corrected and then outside of 0 and 1, every loss is linear in the label:
:math:`l(f, y) = l(f, 0) + y\,[l(f, 1) - l(f, 0)]`. `verirec.losses` has the same for probabilities, in NumPy.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import softplus

from verirec.losses import GroupedNoiseRates, NoiseRates, correct_labels
from verirec.training.task import Batch, Task


class LogitLoss(ABC):
    """A loss of logits."""

    @abstractmethod
    def base(self, logits: Tensor) -> Tensor:
        """Return l(f, 0), elementwise."""

    @abstractmethod
    def rise(self, logits: Tensor) -> Tensor:
        """Return l(f, 1) - l(f, 0), elementwise."""

    def __call__(self, logits: Tensor, labels: Tensor | float) -> Tensor:
        """Return l(f, y), elementwise."""
        return self.base(logits) + labels * self.rise(logits)


class LogLoss(LogitLoss):
    """Cross-entropy: softplus(z) - y z."""

    def base(self, logits: Tensor) -> Tensor:
        """Return softplus(z)."""
        return softplus(logits)

    def rise(self, logits: Tensor) -> Tensor:
        """Return -z."""
        return -logits


class SquaredLoss(LogitLoss):
    """Squared error of the probability: f^2 + y (1 - 2 f)."""

    def base(self, logits: Tensor) -> Tensor:
        """Return f^2."""
        return torch.sigmoid(logits) ** 2

    def rise(self, logits: Tensor) -> Tensor:
        """Return 1 - 2 f."""
        return 1 - 2 * torch.sigmoid(logits)


LOSSES: dict[str, Callable[[], LogitLoss]] = {"log": LogLoss, "squared": SquaredLoss}


class Plain:
    """No correction: labels are taken for the truth."""

    def __init__(self, loss: LogitLoss) -> None:
        self.loss = loss

    def labels(self, batch: Batch) -> Tensor:
        """Return the labels of a batch's rows, as the loss takes them."""
        return batch.labels

    def soft(self, soft_labels: Tensor) -> Tensor:
        """Return imputed labels g, as the loss takes them."""
        return soft_labels

    def errors(self, logits: Tensor, batch: Batch) -> Tensor:
        """Return e of a batch's rows."""
        return self.loss(logits, self.labels(batch))

    def imputed(self, logits: Tensor, soft_labels: Tensor) -> Tensor:
        r"""Return :math:`\hat e = l(f, g)` for imputed soft labels g."""
        return self.loss(logits, self.soft(soft_labels))

    def gap(self, logits: Tensor, batch: Batch, soft_labels: Tensor) -> Tensor:
        r"""Return :math:`e - \hat e` of a batch's rows: what does not depend on labels drops out."""
        return (self.labels(batch) - self.soft(soft_labels)) * self.loss.rise(logits)

    @property
    def bounded(self) -> bool:
        """Whether the loss is bounded below, whatever the labels are."""
        return False

    def use(self, rates: NoiseRates | GroupedNoiseRates, task: Task) -> None:
        """Take other noise rates; there is nothing to correct."""


class Surrogate(Plain):
    r"""The paper's correction (Section 3.2): :math:`l(f, \tilde r)` with :math:`\tilde r = (r - \rho_{10})/\kappa`.

    Unbiased, and unbounded below: see `verirec.training.bounds`.
    """

    rates: NoiseRates | GroupedNoiseRates
    by_row: Tensor | None = None

    def labels(self, batch: Batch) -> Tensor:
        r"""Return :math:`\tilde r` of a batch's rows."""
        if self.by_row is None:
            return (batch.labels - self.rho10).div_(self.kappa)
        return self.by_row[batch.rows] if len(batch.rows) else self.by_row

    def use(self, rates: NoiseRates | GroupedNoiseRates, task: Task) -> None:
        """Correct labels as they come by; those of groups, once and for all rows."""
        self.rates = rates
        if isinstance(rates, NoiseRates):
            self.rho10, self.kappa, self.by_row = rates.rho10, 1 - rates.rho01 - rates.rho10, None
        else:
            log = task.log
            corrected = correct_labels(log.labels, rates, log.users, log.items).values
            self.by_row = torch.as_tensor(corrected).to(task.device, torch.float32)


class Forward(Plain):
    r"""Forward correction (Patrini et al. 2017): the plain log loss of :math:`P(r = 1) = \rho_{10} + \kappa f`.

    Bounded below, with the same minimiser in the limit.
    """

    rates: NoiseRates

    def soft(self, soft_labels: Tensor) -> Tensor:
        """Return imputed labels as noise would have left them."""
        return self.rates.rho10 + (1 - self.rates.rho01 - self.rates.rho10) * soft_labels

    @property
    def bounded(self) -> bool:
        """Tell whether there are both kinds of noise: without, a probability can be 0, and the loss has no bound."""
        return min(self.rates.rho01, self.rates.rho10) > 0

    def use(self, rates: NoiseRates | GroupedNoiseRates, task: Task) -> None:
        """Take one pair of rates for all."""
        if not isinstance(rates, NoiseRates):
            raise NotImplementedError("forward correction takes one pair of noise rates for all pairs")
        self.rates, self.loss = rates, NoisyLogLoss(rates)


class NoisyLogLoss(LogitLoss):
    """Cross-entropy of what noise makes of a prediction: -y log q - (1 - y) log(1 - q), q = rho10 + kappa f.

    Parameters
    ----------
    rates
        Of the noise.
    """

    def __init__(self, rates: NoiseRates) -> None:
        self.rates = rates

    # q = [(1 - rho01) e^z + rho10] / (1 + e^z); the denominators of both classes are the same.

    def base(self, logits: Tensor) -> Tensor:
        """Return -log(1 - q)."""
        return softplus(logits) - _log_sum(logits, self.rates.rho01, 1 - self.rates.rho10)

    def rise(self, logits: Tensor) -> Tensor:
        """Return log(1 - q) - log(q)."""
        negative = _log_sum(logits, self.rates.rho01, 1 - self.rates.rho10)
        return negative - _log_sum(logits, 1 - self.rates.rho01, self.rates.rho10)


def _log_sum(logits: Tensor, of_exponential: float, constant: float) -> Tensor:
    """Return log(a e^z + c), for rates a and c of which one may be 0."""
    if constant == 0:
        return logits + math.log(of_exponential)
    if of_exponential == 0:
        return torch.full_like(logits, math.log(constant))
    return torch.logaddexp(logits + math.log(of_exponential), torch.full_like(logits, math.log(constant)))
