"""The ways to come by noise rates that the studies compare, fitted to one world's log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.losses import NoiseRates
from verirec.nuisance.label_model import LabelModel, LabelProbabilities
from verirec.nuisance.noise_rates import AnchorNoiseRates, AuditNoiseRates, AuditSample
from verirec.nuisance.propensities import Propensities
from verirec.simulate import World

_FOLDS: Final = 2


@dataclass(frozen=True, eq=False)
class FittedRates:
    """Sources of noise rates for one world; what they share is fitted once.

    Parameters
    ----------
    world
        The world.
    propensities
        That the estimators are given, and h's weights come from.
    seed
        Of folds and audits.
    """

    world: World
    propensities: Propensities
    seed: int

    def of(self, source: str) -> NoiseRates:
        """Return the rates of a source by its name in `SOURCES`."""
        return SOURCES[source](self)

    @cached_property
    def h(self) -> LabelProbabilities:
        """P(r = 1) of every pair, by inverse-propensity weighting."""
        log = self.world.log
        return LabelModel().fit(log, 1 / self.propensities.at(log.users, log.items))

    @cached_property
    def scores(self) -> tuple[Any, Any, npt.NDArray[np.float64]]:
        """The rows' cross-fitted h."""
        log = self.world.log
        random = np.random.default_rng([self.seed, 3])
        return log.users, log.items, LabelModel().cross_fit(log, np.ones(len(log)), _FOLDS, random)

    def anchor(self, rule: Any) -> NoiseRates:
        """Apply an anchor rule to h."""
        h = self.scores if rule == "tails" else self.h
        return AnchorNoiseRates(rule=rule).fit(self.world.log, propensities=self.propensities, h=h)

    def audit(self, size: int, method: Any = "joint") -> NoiseRates:
        """Ask about so many random pairs of the log again; a larger audit contains the smaller."""
        log = self.world.log
        rows = np.random.default_rng([self.seed, 2]).permutation(len(log))[:size]
        users, items = log.users[rows], log.items[rows]
        asked = AuditSample(users, items, self.world.at(users, items).true_labels)
        scores = self.scores if method == "joint" else None
        model = AuditNoiseRates(method=method, random_state=self.seed)
        # Without groups these are one pair of rates.
        return model.fit(log, audit=asked, scores=scores)  # type: ignore[return-value]


SOURCES: Final[dict[str, Callable[[FittedRates], NoiseRates]]] = {
    "true": lambda fitted: fitted.world.noise_rates,
    "paper": lambda fitted: fitted.anchor("extremes"),
    "quantiles": lambda fitted: fitted.anchor("quantiles"),
    "tails": lambda fitted: fitted.anchor("tails"),
    "audit-50": lambda fitted: fitted.audit(50),
    "audit-200-direct": lambda fitted: fitted.audit(200, "direct"),
    "audit-200": lambda fitted: fitted.audit(200),
    "audit-500": lambda fitted: fitted.audit(500),
}
"""True rates; the paper's rule (extremes of h) and its robust forms; audits, by the joint likelihood or directly."""
