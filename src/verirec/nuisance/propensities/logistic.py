r"""Logistic propensities on the full grid, :math:`\sigma(w \cdot x + \beta_u + \gamma_i)` (paper, Section 5)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from verirec.checks import real_number, truth_value
from verirec.data.cells import Positions
from verirec.data.feedback_log import FeedbackLog
from verirec.data.parts import SHORT, counts, filled, over_parts, totals_by_pair
from verirec.data.threads import one_product_thread
from verirec.exceptions import ParameterError
from verirec.nuisance.propensities.base import Array, Propensities, VarianceChange, default_floor
from verirec.nuisance.propensities.simple import log_with_rows
from verirec.nuisance.propensities.two_way import TwoWayFit, fit_two_way
from verirec.nuisance.propensities.with_features import FeatureFit, fit_with_features
from verirec.scratch import each

LEAST_L2: Final = 1e-9


@dataclass(frozen=True, kw_only=True)
class LogisticPropensity:
    r"""Logistic regression of being observed, over all pairs: the paper's propensity model.

    :math:`p_{ui} = \sigma(x_u^\top W x_i + \beta_u + \gamma_i)`, by maximum likelihood over the whole grid; the first
    term is there if the log has both user and item features, which are standardised. Without features the counts of
    users and items are sufficient, and the fit takes milliseconds; with them Newton walks over the grid in blocks.

    Parameters
    ----------
    l2
        Penalty :math:`\lambda/2` on the sum of squares: of the constants' deviations from their common level, or of W
        where there are features. 0 is plain maximum likelihood. By default 0 without features and 1 with them, where
        there are too many coefficients to go without.
    features
        False leaves the log's features aside.
    floor
        As in `Propensities`; by default a hundredth of the log's density.

    Examples
    --------
    >>> users, items = [0, 0, 0, 1, 2, 2], [0, 1, 2, 0, 0, 1]
    >>> log = FeedbackLog.from_arrays(users, items, [1, 0, 1, 1, 0, 0], n_users=4, n_items=4)
    >>> p = LogisticPropensity(l2=0.1).fit(log)
    >>> p.at([0, 3], [0, 3]).round(3).tolist()
    [0.978, 0.004]
    """

    l2: float | None = None
    features: bool = True
    floor: float | None = None

    def fit(self, log: FeedbackLog) -> Propensities:
        """Learn the coefficients, to a gradient below 1e-8 of its scale."""
        floor = default_floor(log_with_rows(log), self.floor)
        with_features = (
            truth_value("features", self.features) and log.user_features is not None and log.item_features is not None
        )
        l2 = float(with_features) if self.l2 is None else _checked_l2(self.l2)
        if with_features:
            with one_product_thread():
                return _WithFeatures(fit_with_features(log, l2=l2), floor)
        return _TwoWay(fit_two_way(counts(log.users, log.n_users), counts(log.items, log.n_items), l2=l2), floor)


def _checked_l2(l2: object) -> float:
    penalty = real_number("l2", l2, above=0, closed=True)
    if 0 < penalty < LEAST_L2:
        raise ParameterError(f"l2 must be 0 or at least {LEAST_L2:g}, or it is lost in rounding; got {penalty:g}")
    return penalty


class _Logistic(Propensities):
    """A logistic model; a subclass says how it adds up rows by coefficient, and what its Hessian is."""

    def variance_changes(self, log: FeedbackLog) -> VarianceChange:
        users, items = log.users, log.items
        p = filled(lambda at: self.unfloored(users[at], items[at]), len(log))
        rest, held = each(lambda one: 1 - one, p), each(np.less, p, self.floor, dtype=bool)
        any_held = bool(held.any())
        self._leverage(users[:0], items[:0])  # What is worked out once is so before threads ask for it.
        leverage = filled(lambda at: rest[at] ** 3 * self._leverage(users[at], items[at]), len(log))

        def change(slopes: Array | None, influence: Array) -> float:
            def moving(at: slice) -> Array:
                own = -influence[at] if slopes is None else slopes[at]
                # Where the floor holds p still, nothing follows the coefficients.
                return np.where(held[at], 0.0, own) if any_held else own

            joint = self._by_coefficient(log, lambda at: rest[at] * influence[at])
            if slopes is None and not any_held:
                slope = tuple(-side for side in joint)
            else:
                slope = self._by_coefficient(log, lambda at: rest[at] * moving(at))
            return quadratic_change(slope, joint, self._solve(slope), leverage, moving, influence)

        return change

    @abstractmethod
    def _leverage(self, users: Positions, items: Positions) -> Array:
        """Return the leverage of pairs, by the diagonal of the Hessian."""

    @abstractmethod
    def _by_coefficient(self, log: FeedbackLog, values: Callable[[slice], Array]) -> tuple[Array, ...]:
        """Add values of rows, given part by part, up by coefficient: the transpose of the linear predictor."""

    @abstractmethod
    def _solve(self, sides: tuple[Array, ...]) -> tuple[Array, ...]:
        """Solve with the Hessian."""


class _TwoWay(_Logistic):
    assumption = (
        "what gets logged depends on how active a user and how popular an item is, and not on taste beyond that"
    )

    def __init__(self, fitted: TwoWayFit, floor: float) -> None:
        super().__init__((len(fitted.users.code), len(fitted.items.code)), floor)
        self.fitted = fitted
        self.user_constants = fitted.user_constants[fitted.users.code]
        self.item_constants = fitted.item_constants[fitted.items.code]

    def unfloored(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        return np.asarray(expit(self.user_constants[users] + self.item_constants[items]))

    def side_logits(self) -> tuple[Array, Array]:
        most = 10.0
        return np.clip(self.user_constants, -most, most), np.clip(self.item_constants, -most, most)

    @cached_property
    def inverse_total(self) -> float:
        table = np.maximum(self.fitted.table, self.floor)
        return float(self.fitted.users.size @ (1 / table) @ self.fitted.items.size)

    def _leverage(self, users: Positions, items: Positions) -> Array:
        by_user, by_item = self._inverse_information
        return np.asarray(by_user[users] + by_item[items])

    @cached_property
    def _inverse_information(self) -> tuple[Array, Array]:
        by_user, by_item = self.fitted.information()
        return 1 / by_user, 1 / by_item

    def _by_coefficient(self, log: FeedbackLog, values: Callable[[slice], Array]) -> tuple[Array, ...]:
        return totals_by_pair(log.users, log.items, values, self.shape)

    def _solve(self, sides: tuple[Array, ...]) -> tuple[Array, ...]:
        return self.fitted.solve(*sides)


class _WithFeatures(_Logistic):
    assumption = "what gets logged depends on the user, the item and their features, and not on taste beyond that"

    def __init__(self, fitted: FeatureFit, floor: float) -> None:
        super().__init__(fitted.shape, floor)
        self.fitted = fitted

    def unfloored(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        return np.asarray(expit(self.fitted.logits.cells(users, items)))

    def _leverage(self, users: Positions, items: Positions) -> Array:
        return self.fitted.leverages.cells(users, items)

    def _by_coefficient(self, log: FeedbackLog, values: Callable[[slice], Array]) -> tuple[Array, ...]:
        return (self.fitted.adjoint(log.users, log.items, filled(values, len(log))),)

    def _solve(self, sides: tuple[Array, ...]) -> tuple[Array, ...]:
        return (self.fitted.solve(*sides),)


def quadratic_change(
    slope: tuple[Array, ...],
    joint: tuple[Array, ...],
    solved: tuple[Array, ...],
    leverage: Array,
    slopes: Callable[[slice], Array],
    influence: Array,
) -> float:
    r"""Return :math:`2 a^\top H^{-1} c + c^\top H^{-1} c` with each row's product with itself left out.

    c and a are sums over rows of slope and influence times the model's derivative. As sums of squares of estimates
    both forms are too large by what each row does to itself, (1 - p) times its product with itself, which would make
    intervals too narrow where there are few rows a constant.
    """
    change = sum(float((2 * a + c) @ b) for a, b, c in zip(joint, solved, slope, strict=True))

    def itself(at: slice) -> float:
        own = slopes(at)
        return float(((2 * influence[at] + own) * own) @ leverage[at])

    return change - float(sum(over_parts(itself, len(influence), size=SHORT)))
