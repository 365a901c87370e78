"""Features as models take them, standardised, and covariates that are learnt from what was rated."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor

from verirec.data.cells import CellValues
from verirec.data.feature_columns import FeatureScale
from verirec.data.feedback_log import FeedbackLog
from verirec.models.covariates import KINDS, Covariates
from verirec.models.factors import SideInformation
from verirec.progress import doing

COVARIATES: Final = {"none": (), **{name: (name,) for name in KINDS}, "both": tuple(KINDS)}
"""What the parameter `covariates` stands for."""

Learnt = dict[tuple[int, tuple[int, int], str], CellValues]
"""Covariates by the fingerprint of the rows that they were learnt from, the grid's shape, and by name."""


def side_information(
    log: FeedbackLog, covariates: str, device: torch.device, *, features: bool = True, learnt: Learnt | None = None
) -> SideInformation:
    """Standardise a log's features, and learn covariates from its positions.

    Parameters
    ----------
    log
        The rows that are trained on, and no others: a covariate would know of those that were held out.
    covariates
        Of `COVARIATES`.
    device
        Where tensors go.
    features
        Whether features are wanted.
    learnt
        Covariates that are known already; new ones are put there.
    """
    known = {} if learnt is None else learnt
    columns = []
    for name in COVARIATES[covariates]:
        key = (log.fingerprint, log.shape, name)
        if key not in known:
            with doing("Learning what people chose to rate"):
                known[key] = KINDS[name].fit(log)
        columns.append(known[key])
    pairs = Covariates(columns, device) if columns else None
    users, items = (_standardised(one, device) if features else None for one in (log.user_features, log.item_features))
    return SideInformation(users, items, pairs)


def _standardised(values: Any, device: torch.device) -> Tensor | None:
    """Standardise features as `FeatureScale` says."""
    if values is None:
        return None
    return torch.as_tensor(FeatureScale.of(values).apply(values)).to(device, torch.float32)
