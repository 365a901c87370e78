r"""Losses of logits, linear in the label, or in the K - 1 labels "is level c reached" of a log that keeps its levels.

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

    def response(self, logits: Tensor) -> Tensor:
        """Return the labels that logits stand for."""
        return torch.sigmoid(logits)

    def change(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return what the loss changes by where labels change by so much."""
        return labels * self.label_effect(logits)

    def missed(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the error that imputed labels miss, where they miss labels by so much: what they learn to make small.

        It is what the loss changes by.
        """
        return self.change(logits, labels)


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


class StarsLoss(LogitLoss):
    r"""Half the squared distance of a score from a star, less what no score can change: :math:`z^2/2 - y z`.

    The error that imputed stars miss is that of the residuals, y - z less g - z: what Wang et al. (2019) impute.
    """

    def base(self, logits: Tensor) -> Tensor:
        """Return z^2 / 2."""
        return 0.5 * logits**2

    def label_effect(self, logits: Tensor) -> Tensor:
        """Return -z."""
        return -logits

    def response(self, logits: Tensor) -> Tensor:
        """Return the scores: they are stars."""
        return logits

    def missed(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return what labels are missed by, whatever the score is."""
        return labels


class OrdinalLoss(LogitLoss):
    r"""Minus the log chance of each level, from logits :math:`a_c` of "level c is reached", shape (K - 1, ...).

    :math:`P(r^* = j) = \sigma(a_j) - \sigma(a_{j+1}) = \sigma(a_j)\,\sigma(-a_{j+1})\,(1 - e^{a_{j+1} - a_j})`
    (McCullagh 1980); with a transition matrix it is the log chance of the logged level, :math:`-\log (T^\top f)_r` (the
    forward correction of Patrini et al. 2017). Labels are :math:`1[r \ge c]`, shape (K - 1, ...).

    Parameters
    ----------
    log_matrix
        Logarithms of the transition matrix, shape (K, K); `None` for no noise.
    """

    def __init__(self, log_matrix: Tensor | None = None) -> None:
        self.log_matrix = log_matrix

    def values(self, logits: Tensor) -> Tensor:
        """Return the loss at each level, shape (K, ...)."""
        none = torch.zeros_like(logits[:1])
        reached, not_next = -softplus(-logits), -softplus(logits)
        apart = torch.log(-torch.expm1(logits[1:] - logits[:-1]))
        chances = torch.cat([none, reached]) + torch.cat([not_next, none]) + torch.cat([none, apart, none])
        if self.log_matrix is not None:
            by_level = self.log_matrix.reshape(*self.log_matrix.shape, *[1] * (logits.ndim - 1))
            chances = torch.logsumexp(chances[:, None] + by_level, 0)
        return -chances

    def base(self, logits: Tensor) -> Tensor:
        """Return the loss at the lowest level."""
        return self.values(logits)[0]

    def label_effect(self, logits: Tensor) -> Tensor:
        """Return the steps of the loss from each level to the next, shape (K - 1, ...)."""
        return self.values(logits).diff(dim=0)

    def change(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Add up over levels."""
        return _over_levels(labels, self.label_effect(logits))

    def __call__(self, logits: Tensor, labels: Tensor | float) -> Tensor:
        """Return the loss at labels."""
        values = self.values(logits)
        return values[0] + _over_levels(torch.as_tensor(labels), values.diff(dim=0))


def _over_levels(labels: Tensor, steps: Tensor) -> Tensor:
    """Add up labels times steps over levels; labels may be the same for all pairs."""
    return (labels.reshape(*labels.shape, *[1] * (steps.ndim - labels.ndim)) * steps).sum(0)


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
