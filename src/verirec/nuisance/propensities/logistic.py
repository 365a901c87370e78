r"""Logistic propensities on the full grid, :math:`\sigma(w \cdot x + \beta_u + \gamma_i)` (paper, Section 5)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from verirec.checks import real_number, truth_value
from verirec.data.cells import Positions
from verirec.data.feedback_log import FeedbackLog
from verirec.data.parts import SHORT, PairTotals, counts, filled, over_parts
from verirec.data.threads import one_product_thread
from verirec.exceptions import ParameterError
from verirec.nuisance.propensities.base import Array, Propensities, VarianceChange, default_floor, own_slopes
from verirec.nuisance.propensities.simple import log_with_rows
from verirec.nuisance.propensities.two_way import TwoWayFit, fit_two_way
from verirec.nuisance.propensities.with_features import FeatureFit, fit_with_features
from verirec.resuming import kept

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
                return _WithFeatures(kept("propensities by features", lambda: fit_with_features(log, l2=l2)), floor)
        return _TwoWay(fit_two_way(counts(log.users, log.n_users), counts(log.items, log.n_items), l2=l2), floor)


def _checked_l2(l2: object) -> float:
    penalty = real_number("l2", l2, above=0, closed=True)
    if 0 < penalty < LEAST_L2:
        raise ParameterError(f"l2 must be 0 or at least {LEAST_L2:g}, or it is lost in rounding; got {penalty:g}")
    return penalty


class _Logistic(Propensities):
    """A logistic model; a subclass says how it adds up rows by coefficient, and what its Hessian is."""

    def variance_changes(self, log: FeedbackLog) -> VarianceChange:
        return _LogisticChange(self, log)

    @property
    @abstractmethod
    def n_coefficients(self) -> int:
        """How many there are, users' and items' constants included."""

    @abstractmethod
    def leverage(self, users: Positions, items: Positions) -> Array:
        """Return the leverage of pairs, by the diagonal of the Hessian."""

    @abstractmethod
    def by_coefficient(self, users: Positions, items: Positions, values: Array) -> Any:
        """Add values of some pairs, shape (m,), up by coefficient: the transpose of the linear predictor."""

    @abstractmethod
    def add(self, part: Any, sums: Array) -> None:
        """Add what `by_coefficient` gave to sums of all coefficients, shape (n_coefficients,)."""

    @abstractmethod
    def solve(self, side: Array) -> Array:
        """Solve with the Hessian, shape (n_coefficients,)."""


class _LogisticChange:
    """What the coefficients' own error does: `quadratic_change` of sums over rows.

    These are of slope and of influence, times the model's derivative.
    """

    def __init__(self, model: _Logistic, log: FeedbackLog) -> None:
        self.model, self.log = model, log
        users, items = log.users, log.items
        self.p = filled(lambda at: model.unfloored(users[at], items[at]), len(log))
        self.any_held = any(over_parts(lambda at: bool((self.p[at] < model.floor).any()), len(log), size=SHORT))
        model.leverage(users[:1], items[:1])  # What is worked out once is so before threads ask for it.
        self.leverage = filled(lambda at: (1 - self.p[at]) ** 3 * model.leverage(users[at], items[at]), len(log))

    def of_part(self, at: slice, slopes: Array | None, influence: Array) -> tuple[Any, Any, float]:
        model, pairs, p = self.model, (self.log.users[at], self.log.items[at]), self.p[at]
        moving = own_slopes(slopes, influence)
        if self.any_held:
            # Where the floor holds p still, nothing follows the coefficients.
            moving = np.where(p < model.floor, 0.0, moving)
        rest = 1 - p
        joint = model.by_coefficient(*pairs, rest * influence)
        plain = slopes is None and not self.any_held
        slope = None if plain else model.by_coefficient(*pairs, rest * moving)
        return joint, slope, of_themselves(moving, influence, self.leverage[at])

    def of_sums(self, parts: Iterator[list[Any]], count: int) -> Array:
        joints, slopes = np.zeros((2, count, self.model.n_coefficients))
        itself, plain = np.zeros(count), np.zeros(count, bool)
        for number, (joint, slope, own) in (one for part in parts for one in enumerate(part)):
            self.model.add(joint, joints[number])
            plain[number] = slope is None
            if slope is not None:
                self.model.add(slope, slopes[number])
            itself[number] += own
        # One after the other: sums of all coefficients take room.
        changes = []
        for number, joint in enumerate(joints):
            slope = -joint if plain[number] else slopes[number]
            changes.append(quadratic_change(slope, joint, self.model.solve(slope), itself[number]))
        return np.array(changes)


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

    @property
    def n_coefficients(self) -> int:
        return sum(self.shape)

    def leverage(self, users: Positions, items: Positions) -> Array:
        by_user, by_item = self._inverse_information
        return np.asarray(by_user[users] + by_item[items])

    @cached_property
    def _inverse_information(self) -> tuple[Array, Array]:
        by_user, by_item = self.fitted.information()
        return 1 / by_user, 1 / by_item

    def by_coefficient(self, users: Positions, items: Positions, values: Array) -> PairTotals:
        return PairTotals.of(users, items, values, self.shape[1])

    def add(self, part: PairTotals, sums: Array) -> None:
        part.add_to(sums[: self.shape[0]], sums[self.shape[0] :])

    def solve(self, side: Array) -> Array:
        return np.concatenate(self.fitted.solve(side[: self.shape[0]], side[self.shape[0] :]))


class _WithFeatures(_Logistic):
    assumption = "what gets logged depends on the user, the item and their features, and not on taste beyond that"

    def __init__(self, fitted: FeatureFit, floor: float) -> None:
        super().__init__(fitted.shape, floor)
        self.fitted = fitted

    def unfloored(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        return np.asarray(expit(self.fitted.logits.cells(users, items)))

    @property
    def n_coefficients(self) -> int:
        return len(self.fitted.coefficients)

    def leverage(self, users: Positions, items: Positions) -> Array:
        return self.fitted.leverages.cells(users, items)

    def by_coefficient(self, users: Positions, items: Positions, values: Array) -> Array:
        return self.fitted.adjoint(users, items, values)

    def add(self, part: Array, sums: Array) -> None:
        sums += part

    def solve(self, side: Array) -> Array:
        return self.fitted.solve(side)


def quadratic_change(slope: Array, joint: Array, solved: Array, itself: float) -> float:
    r"""Return :math:`2 a^\top H^{-1} c + c^\top H^{-1} c` with each row's product with itself left out.

    As sums of squares of estimates both forms are too large by what each row does to itself, (1 - p) times its product
    with itself, which would make intervals too narrow where there are few rows a constant.

    Parameters
    ----------
    slope, joint, solved
        c, a and :math:`H^{-1} c`.
    itself
        By `of_themselves`.
    """
    return float((2 * joint + slope) @ solved) - itself


def of_themselves(slopes: Array, influence: Array, leverage: Array) -> float:
    """Add up the products of some rows with themselves, shape (m,) each."""
    return float(((2 * influence + slopes) * slopes) @ leverage)
