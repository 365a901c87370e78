"""Features as models take them: standardised, with the propensity's logit beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from verirec.data.feedback_log import FeedbackLog
from verirec.models.factors import SideInformation
from verirec.nuisances.propensities import Propensities


def side_information(
    log: FeedbackLog | None, propensities: Propensities | None, device: torch.device | None = None
) -> SideInformation:
    """Standardise a log's features, and take the logits of propensities that are sums of a user's and an item's."""
    if log is None:
        return SideInformation()
    sides = propensities.side_logits() if propensities is not None else None
    user_logits, item_logits = (None, None) if sides is None else (_standardised(side, device) for side in sides)
    return SideInformation(
        _standardised(log.user_features, device), _standardised(log.item_features, device), user_logits, item_logits
    )


def _standardised(values: Any, device: torch.device | None) -> Tensor | None:
    """Shift and scale each column to mean 0 and standard deviation 1; columns that do not vary become 0."""
    if values is None:
        return None
    spread = values.std(axis=0)
    scaled = (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return torch.as_tensor(scaled).to(device, torch.float32)
