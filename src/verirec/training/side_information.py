"""Features as models take them: standardised, with the propensity's logit beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from verirec.data.feature_columns import FeatureScale
from verirec.data.feedback_log import FeedbackLog
from verirec.models.factors import SideInformation
from verirec.nuisance.propensities import Propensities


def side_information(log: FeedbackLog, propensities: Propensities, device: torch.device) -> SideInformation:
    """Standardise a log's features, and the logits of propensities that are sums of a user's and an item's."""
    sides = propensities.side_logits()
    logits: list[Tensor | None] = [None, None]
    if sides is not None:
        warm = [np.bincount(log.users, minlength=log.n_users) > 0, np.bincount(log.items, minlength=log.n_items) > 0]
        # One scale for both, that of their sum; nobody knows it of those who are never logged.
        spread = np.sqrt(sum(side[has].var() for side, has in zip(sides, warm, strict=True))) or 1.0
        centred = [
            np.where(has, (side - side[has].mean()) / spread, 0.0) for side, has in zip(sides, warm, strict=True)
        ]
        logits = [_tensor(side, device) for side in centred]
    return SideInformation(_standardised(log.user_features, device), _standardised(log.item_features, device), *logits)


def _tensor(values: Any, device: torch.device) -> Tensor:
    return torch.as_tensor(values).to(device, torch.float32)


def _standardised(values: Any, device: torch.device) -> Tensor | None:
    """Standardise features as `FeatureScale` says."""
    return None if values is None else _tensor(FeatureScale.of(values).apply(values), device)
