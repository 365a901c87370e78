"""Keys of trainings and searches: what they depend on, so that none goes on from another's checkpoint."""

from __future__ import annotations

import hashlib
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from verirec.data.feedback_log import FeedbackLog
from verirec.data.parts import parts_of
from verirec.methods.parameters import told_parameters
from verirec.progress import doing
from verirec.resuming import job_key, told_by

if TYPE_CHECKING:
    from verirec.data.cells import CellValues
    from verirec.estimation.inputs import KnownNoise
    from verirec.nuisance.propensities import Propensities
    from verirec.training.preparation import Preparation


def training_key(method: Any, prepared: Preparation) -> str:
    """Return a checksum of all that decides how training goes."""
    with doing("Taking checksums of what training goes by"):
        given = _facts(method, prepared.log, prepared.rates, prepared.propensities)
        if prepared.h is not None:  # It may be a function.
            given["h"] = _of_rows(prepared.h, prepared.log)
        return job_key("train", given | {"parameters": told_parameters(method), "seed": prepared.data.seed})


def search_key(
    method: Any, log: FeedbackLog, rates: KnownNoise | None, propensities: Propensities, own: dict[str, Any]
) -> str:
    """Return a checksum of all that a search goes by, its own facts included, but the budget: that may be larger."""
    lasting = {name: told for name, told in told_parameters(method).items() if name not in ("trials", "seconds")}
    return job_key("search", _facts(method, log, rates, propensities) | own | {"parameters": lasting})


def _facts(method: Any, log: FeedbackLog, rates: KnownNoise | None, propensities: Propensities) -> dict[str, Any]:
    """Return what both depend on; propensities that cannot be recognised are told by those of the log's rows."""
    return {
        "method": [method.name, type(method).__name__],
        "log": {field.name: getattr(log, field.name) for field in fields(FeedbackLog)},
        "noise_rates": rates,
        "propensities": [told_by(propensities), _of_rows(propensities, log)],
    }


def _of_rows(values: CellValues, log: FeedbackLog) -> str:
    """Return a checksum of the values at a log's rows, which need not fit into memory."""
    digest = hashlib.sha256()
    for part in parts_of(len(log)):
        digest.update(values.at(log.users[part], log.items[part]).tobytes())
    return digest.hexdigest()
