"""The propensities that methods are tried with: all of one training log, fitted once."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from verirec.data.cells import Positions
from verirec.data.feedback_log import FeedbackLog
from verirec.nuisance.propensities import LogisticPropensity, Propensities, as_propensities


class Tempered(Propensities):
    r"""A power of other propensities, :math:`c\, p^{\eta}`, with the same mean over the logged pairs' weights.

    Between no weights (:math:`\eta = 0`) and those of p itself (1). What a model takes as a covariate, the logit of p,
    stays what it is.

    Parameters
    ----------
    whole
        The others.
    power
        :math:`\eta`.
    log
        Whose rows have the same mean weight as before.
    covariate
        Whose logits a model takes as a covariate; by default those of the others.

    Examples
    --------
    >>> from verirec import ConstantPropensity
    >>> log = FeedbackLog.from_arrays([0, 1], [0, 1], [1, 0], n_users=2, n_items=2)
    >>> Tempered(ConstantPropensity().fit(log), 0.5, log).at([0], [1]).round(6).tolist()
    [0.5]
    """

    assumption = "weights are tempered: they take a part of the selection away, and less precision"

    def __init__(
        self, whole: Propensities, power: float, log: FeedbackLog, covariate: Propensities | None = None
    ) -> None:
        super().__init__(whole.shape)
        self.whole, self.power, self.covariate = whole, power, whole if covariate is None else covariate
        p = whole.at(log.users, log.items)
        self.scale = float((p**-power).mean() / (1 / p).mean())

    def unfloored(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        """Return the power, at most 1."""
        return np.asarray(np.minimum(self.scale * self.whole.cells(users, items) ** self.power, 1.0))

    def side_logits(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]] | None:
        """Return those of the covariate."""
        return self.covariate.side_logits()


class Weights:
    """Propensities of a log by name. Labels do not matter: one fit serves all seeds.

    Parameters
    ----------
    log
        What people chose to rate.
    published
        A matrix that came with the data, if any.
    """

    def __init__(self, log: FeedbackLog, published: npt.NDArray[np.float64] | None = None) -> None:
        self.log, self.matrix = log, published

    @property
    def names(self) -> tuple[str, ...]:
        """What a method that weighs by 1/p is tried with: those of the data or logistic ones, roots of such, and none.

        Roots lie between: less selection is taken away, and less precision.
        """
        if self.matrix is not None:
            return "published", "published_root", "root", "flat"
        has_features = self.log.user_features is not None and self.log.item_features is not None
        return ("features", "constants", "root", "flat") if has_features else ("constants", "root", "flat")

    @cached_property
    def published(self) -> Propensities:
        """Those that came with the data."""
        return Tempered(as_propensities(self.matrix, self.log), 1.0, self.log, self.constants)

    @cached_property
    def published_root(self) -> Propensities:
        """Their square roots."""
        return Tempered(as_propensities(self.matrix, self.log), 0.5, self.log, self.constants)

    @cached_property
    def features(self) -> Propensities:
        """The paper's: logistic, with features where the log has some."""
        return LogisticPropensity().fit(self.log)

    @cached_property
    def constants(self) -> Propensities:
        """Logistic, user and item constants alone."""
        return LogisticPropensity(features=False).fit(self.log)

    @cached_property
    def root(self) -> Propensities:
        """Their square roots."""
        return Tempered(self.constants, 0.5, self.log)

    @cached_property
    def flat(self) -> Propensities:
        """The same weight for all rows."""
        return Tempered(self.constants, 0.0, self.log)

    def named(self, name: str) -> Propensities:
        """Look one up."""
        found: Propensities = getattr(self, name)
        return found
