r"""Losses of logits, linear in the label.

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

from verirec.losses import NoiseRates


class LogitLoss(ABC):
    """A loss of logits."""

    @abstractmethod
    def base(self, logits: Tensor) -> Tensor:
        """Return l(f, 0), elementwise."""

    @abstractmethod
    def label_effect(self, logits: Tensor) -> Tensor:
        """Return l(f, 1) - l(f, 0), elementwise."""

    def __call__(self, logits: Tensor, labels: Tensor | float) -> Tensor:
        """Return l(f, y), elementwise."""
        return self.base(logits) + labels * self.label_effect(logits)


class LogLoss(LogitLoss):
    """Cross-entropy: softplus(z) - y z."""

    def base(self, logits: Tensor) -> Tensor:
        """Return softplus(z)."""
        return softplus(logits)

    def label_effect(self, logits: Tensor) -> Tensor:
        """Return -z."""
        return -logits

    def __call__(self, logits: Tensor, labels: Tensor | float) -> Tensor:
        """Return softplus(z) - y z."""
        if isinstance(labels, Tensor):
            return torch.addcmul(softplus(logits), labels, logits, value=-1)
        return softplus(logits) - labels * logits


class SquaredLoss(LogitLoss):
    """Squared error of the probability: f^2 + y (1 - 2 f)."""

    def base(self, logits: Tensor) -> Tensor:
        """Return f^2."""
        return torch.sigmoid(logits) ** 2

    def label_effect(self, logits: Tensor) -> Tensor:
        """Return 1 - 2 f."""
        return 1 - 2 * torch.sigmoid(logits)


LOSSES: dict[str, Callable[[], LogitLoss]] = {"log": LogLoss, "squared": SquaredLoss}


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

    def label_effect(self, logits: Tensor) -> Tensor:
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
