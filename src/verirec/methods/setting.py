"""What training needs besides a method's models: made once, and shared by all fits along a path of penalties."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from verirec.data.cells import CellValues
from verirec.data.feedback_log import FeedbackLog
from verirec.estimation.inputs import Rates
from verirec.models.factors import SideInformation
from verirec.nuisance.propensities import Propensities
from verirec.training.stopping import HeldOut
from verirec.training.task import Task


@dataclass(frozen=True, eq=False)
class Setting:
    """A log made ready to train on.

    Parameters
    ----------
    log
        All of it.
    propensities
        Of all of it.
    rates
        Noise rates to start from, where there are any.
    held_out
        Judges the model on rows that are not trained on; `None` for no such.
    task
        The rows that are trained on.
    side
        Features, for models that take them.
    label_model
        h, where rates are learnt along the way.
    threads
        That large work may use.
    """

    log: FeedbackLog
    propensities: Propensities
    rates: Rates | None
    held_out: HeldOut | None
    task: Task
    side: SideInformation
    label_model: CellValues | None
    threads: int
    _found: dict[str, float] = field(default_factory=dict, init=False)

    def least_penalty(self, find: Callable[[], float]) -> float:
        """Find the penalty that makes sure that the loss has a minimum, once: it does not depend on the penalty."""
        if "least_penalty" not in self._found:
            self._found["least_penalty"] = find()
        return self._found["least_penalty"]
