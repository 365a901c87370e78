"""How likely each pair is to be observed: one file a model, one owner of the floor."""

from __future__ import annotations

from typing import Any

from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.exceptions import PropensityError
from verirec.formatting import short
from verirec.nuisance.propensities.base import Propensities, PropensityModel
from verirec.nuisance.propensities.by_level import LevelPropensity
from verirec.nuisance.propensities.diagnostics import PropensityDiagnostics
from verirec.nuisance.propensities.given import GivenPropensity, LoggedPropensity
from verirec.nuisance.propensities.logistic import LogisticPropensity
from verirec.nuisance.propensities.simple import ConstantPropensity, NaiveBayesPropensity, PopularityPropensity

__all__ = [
    "ConstantPropensity",
    "GivenPropensity",
    "LevelPropensity",
    "LoggedPropensity",
    "LogisticPropensity",
    "NaiveBayesPropensity",
    "PopularityPropensity",
    "Propensities",
    "PropensityDiagnostics",
    "PropensityModel",
    "as_propensities",
]


def as_propensities(given: Any, log: FeedbackLog) -> Propensities:
    """Bring propensities of any form into one, for this log's grid.

    Parameters
    ----------
    given
        Fitted propensities; a model, which is fitted to the log; a matrix or a function of (users, items); or `None`:
        the log's own column if it has one, and else `LogisticPropensity()`.

    Examples
    --------
    >>> log = FeedbackLog.from_arrays([0, 1], [0, 1], [1, 0], n_users=2, n_items=2)
    >>> as_propensities(ConstantPropensity(), log).at([0], [0]).tolist()
    [0.5]
    """
    checked_log(log, levels=True)
    if given is None:
        return LogisticPropensity().fit(log) if log.propensities is None else LoggedPropensity(log)
    if isinstance(given, type | str):
        raise PropensityError(f"propensities must be fitted ones, a model, a matrix or a function; got {short(given)}")
    if isinstance(given, Propensities):
        propensities = given
    elif hasattr(given, "fit"):
        propensities = given.fit(log)
        if not isinstance(propensities, Propensities):
            raise PropensityError(f"a propensity model's fit must give Propensities; got {type(propensities).__name__}")
    else:
        propensities = GivenPropensity(given, known=False)
    if isinstance(propensities, GivenPropensity):
        propensities = propensities.on_grid((log.n_users, log.n_items))
    if propensities.shape != (log.n_users, log.n_items):
        raise PropensityError(
            f"propensities must be for the log's grid of {(log.n_users, log.n_items)}; got {propensities.shape}"
        )
    return propensities
