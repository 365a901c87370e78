r"""A second line beside the survey's: one delta for all pairs, and the whole log weighted by it.

In the model :math:`P(o = 1 | r^*) = \sigma(b + \delta r^*)`, :math:`b = \beta_u + \gamma_i`, a logged pair is weighted
by how likely its own label was to be logged, :math:`p_1 = \sigma(b + \delta)` or :math:`p_0 = \sigma(b)`:

.. math:: c + o \left[ \tilde r \frac{l_1 - c}{p_1} + (1 - \tilde r) \frac{l_0 - c}{p_0} \right]

has mean :math:`l(f, r^*)` for any c that does not depend on o. With :math:`c = l_0 + q d`, q what survey-ppi expects,
the sum over the target is survey-ppi's own, and what is added is linear in d:

.. math:: |T|^{-1} \sum_T c + |T|^{-1} \sum_O u\,d, \qquad u = \tilde r\,(1 - q)/p_1 - (1 - \tilde r)\,q/p_0.

q of a row comes from a label model that has not seen it, so that c does not depend on o there either; the difference
to what the sum over the target has is put right in u. Delta comes from the survey (`Tilt`), beta and gamma from which
pairs were logged (`TiltedSelection`). Where one delta holds for all pairs this is worth many more surveyed pairs; where
it does not, it is biased, whatever its interval says. So it is held against survey-ppi, and decides nothing. Even with
one delta, its intervals were measured to cover less than they say where tastes have factors that constants of users and
items miss (docs/surveys.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit, stdtr, stdtrit

from verirec.data.cells import Positions
from verirec.data.feedback_log import FeedbackLog
from verirec.data.pair_keys import pairs_of
from verirec.data.parts import filled, totals
from verirec.estimation.inputs import Rates, refuse_weights
from verirec.estimation.intervals import Estimate
from verirec.estimation.survey.draws import Draws, self_selected
from verirec.estimation.survey.inference import Mean
from verirec.estimation.survey.strength import Tilt
from verirec.estimation.survey.target import Target
from verirec.exceptions import PredictionError, SurveyError, SurveyWarning, warn_caller
from verirec.nuisance.label_model import LabelProbabilities
from verirec.nuisance.propensities.logistic import of_themselves, quadratic_change
from verirec.nuisance.propensities.tilted import TiltedSelection
from verirec.scratch import each, long_array

Array = npt.NDArray[np.float64]

NAME: Final = "delta-dr"
_REJECTED: Final = 0.05


class RowWeights(NamedTuple):
    """u of each row, and its derivatives: by label, by b with delta as it is, and by delta with b as it is."""

    values: Array
    by_label: Array
    by_constant: Array
    by_delta: Array


def row_weights(labels: Array, expected: Array, constants: Array, delta: float, floor: float = 0.0) -> RowWeights:
    r"""Return :math:`u = \tilde r (1 - q)/p_1 - (1 - \tilde r) q/p_0`.

    Parameters
    ----------
    labels, expected, constants
        Corrected labels, q and b of logged pairs, shape (n,).
    delta
        By how much a like raises the log-odds of being logged.
    floor
        Of p; below it nothing changes p.

    Examples
    --------
    >>> found = row_weights(np.array([1.0, 0.0]), np.array([0.5, 0.5]), np.zeros(2), np.log(3.0))
    >>> found.values.round(3).tolist()  # 1/p is 4/3 for a like, and 2 for a dislike
    [0.667, -1.0]
    """
    chances = [expit(constants + delta), expit(constants)]
    liked, disliked = (1 / np.maximum(p, floor) for p in chances)
    # d(1/p)/db = -(1 - p)/p
    moves = [np.where(p > floor, (1 - p) / np.maximum(p, floor), 0.0) for p in chances]
    by_delta = -labels * (1 - expected) * moves[0]
    return RowWeights(
        labels * (1 - expected) * liked - (1 - labels) * expected * disliked,
        (1 - expected) * liked + expected * disliked,
        by_delta + (1 - labels) * expected * moves[1],
        by_delta,
    )


class DeltaTest(NamedTuple):
    """Whether delta-dr and survey-ppi differ by more than chance: delta-dr minus survey-ppi."""

    difference: float
    standard_error: float
    p_value: float


@dataclass(frozen=True, eq=False)
class DeltaLine:
    """The logged pairs of a target, weighted by one delta.

    Parameters
    ----------
    log
        Rows that people chose themselves, of the target; users by their place among the target's.
    target, tilt
        The pairs to speak of, and delta.
    expected
        q of all pairs, users by their place among the target's.
    shift
        What q's logits were moved by from those of the label model.
    """

    log: FeedbackLog
    target: Target
    tilt: Tilt
    expected: LabelProbabilities
    shift: float

    @classmethod
    def of(
        cls,
        log: FeedbackLog,
        target: Target,
        draws: Draws,
        rates: Rates | None,
        expected: LabelProbabilities,
        shift: float,
        seed: int,
    ) -> DeltaLine:
        """Find delta, from a survey of a target and the log beside it; or say why it cannot be found."""
        refuse_weights(log, [NAME])
        own = self_selected(log)
        own = own.select(target.holds(own.users, own.items))
        liked = int(own.labels.sum())
        if min(liked, len(own) - liked) < 1:
            raise SurveyError(
                f"{NAME} needs logged pairs of both classes that people chose themselves, among those to speak of; got "
                f"{liked:,} liked and {len(own) - liked:,} disliked"
            )
        nobody = LabelProbabilities(0.0, np.zeros(len(target.users)), np.zeros(target.shape[1]))
        p = each(_selection(own, target, nobody, 0.0).chances, _places(target, own.users), own.items)
        return cls(own, target, Tilt.settled(own, rates, draws, p, seed), expected, shift)

    @cached_property
    def selection(self) -> TiltedSelection:
        """Beta and gamma."""
        taste = self.tilt.taste
        fitted = taste.at(taste.coefficients)
        among = LabelProbabilities(fitted.level, fitted.users[self.target.users], fitted.items)
        return _selection(self.log, self.target, among, self.tilt.delta)

    @cached_property
    def users(self) -> Positions:
        """The rows' users, by place among the target's."""
        return _places(self.target, self.log.users)

    @cached_property
    def weights(self) -> RowWeights:
        """U of each row, per pair of the target."""
        taste, log, users, selection = self.tilt.taste, self.log, self.users, self.selection

        def part(at: slice) -> npt.NDArray[Any]:
            items = log.items[at]
            seen, unseen = self.expected.cells(log.users[at], items), expit(taste.logits[at] + self.shift)
            constants = selection.logits(users[at], items)
            found = row_weights(taste.labels.values[at], unseen, constants, self.tilt.delta, self._floor)
            found = found._replace(values=found.values + unseen - seen)
            return np.array(found) / len(self.target)

        return RowWeights(*filled(part, len(log), (len(RowWeights._fields),)))

    @property
    def _floor(self) -> float:
        return len(self.log) / len(self.target) / 100

    def chances(self, at: slice) -> Array:
        """P(o = 1) of some rows, at their labels."""
        logits = self.selection.logits(self.users[at], self.log.items[at])
        return np.asarray(expit(logits + self.tilt.delta * self.log.labels[at]))

    @cached_property
    def of_delta(self) -> tuple[Array, Array, Array]:
        """What moves delta: each draw, (n,); a and b of the logged pairs' logits, (2,); the noise rates, (rates,)."""
        by_draw, by_taste, by_rate = self.tilt.influences(np.ones((len(self.tilt.unlogged), 1)), self.tilt.common)
        return by_draw[:, 0], by_taste[0], by_rate[0]

    def moved(self, difference: Array) -> Moved:
        """Return what moves the estimate, for d of the rows."""
        slopes = each(np.multiply, self.weights.by_constant, difference)
        shape = len(self.target.users), self.target.shape[1]
        sums = totals(self.users, slopes, shape[0]), totals(self.log.items, slopes, shape[1])
        solved = self.selection.solve(*sums)
        by_delta, by_x, by_x_squared = self.selection.pull(solved)
        by_delta += float(self.weights.by_delta @ difference)
        a, b = self.tilt.taste.coefficients
        direct = np.array([by_x, (by_x_squared - a * by_x) / b if abs(b) > 1e-6 else 0.0])
        return Moved(by_delta, direct, direct + by_delta * self.of_delta[1], slopes, sums, solved)

    def row_variance(self, difference: Array, moved: Moved) -> dict[str, float]:
        """Return what varies with who logs what, and with which labels are wrong."""
        taste, weights, users, items = self.tilt.taste, self.weights, self.users, self.log.items
        information = self.selection.fitted.information()
        moving = long_array(len(self.log))

        def visit(at: slice) -> tuple[float, float, float]:
            influence = weights.values[at] * difference[at] + taste.row_influence(at) @ moved.by_taste
            rest = 1 - self.selection.chances(users[at], items[at])
            moving[at] = rest * influence
            leverage = rest * (1 / information[0][users[at]] + 1 / information[1][items[at]])
            by_label = weights.by_label[at] * difference[at] + taste.label_influence(at) @ moved.by_taste
            chances = self.chances(at)
            return (
                float((1 - chances) @ influence**2),
                float((chances * by_label**2) @ taste.labels.variance[at]),
                of_themselves(moved.slopes[at], moving[at], leverage),
            )

        selection, noise, itself = (sum(one) for one in zip(*taste.over_rows(visit), strict=True))
        joint = totals(users, moving, len(self.target.users)), totals(items, moving, self.target.shape[1])
        slope, joint_sums, solved = (np.concatenate(sides) for sides in (moved.sums, joint, moved.solved))
        change = quadratic_change(slope, joint_sums, solved, itself)
        return {
            "selection": selection,
            "noise": max(noise, 0.0),
            # Learning who logs what cannot make an estimate better than knowing every label.
            "propensities": max(change, -0.95 * selection),
        }

    def by_rates(self, difference: Array, moved: Moved) -> Array:
        """Return the slope by each uncertain noise rate, shape (rates,)."""
        taste, by_label = self.tilt.taste, self.weights.by_label
        slopes = taste.over_rows(lambda at: taste.rate_slopes(at) @ (by_label[at] * difference[at]))
        by_rate = sum(slopes) + moved.direct @ taste.by_rate
        return np.asarray(by_rate + moved.by_delta * self.of_delta[2])

    def inferred(
        self, difference: Array, expected: tuple[float, float], ppi: Mean, confidence: float, more: dict[str, Any]
    ) -> Estimate:
        """Estimate a mean over the target, and hold it against survey-ppi.

        Parameters
        ----------
        difference
            d of the rows, shape (n,).
        expected
            The mean over the target of c, and its variance where a sample stood for the target.
        ppi
            The same by survey-ppi.
        confidence, more
            Of the interval; diagnostics to add.
        """
        draws, moved = self.tilt.draws, self.moved(difference)
        value = expected[0] + float(self.weights.values @ difference)
        by_draw, by_rates = moved.by_delta * self.of_delta[0], self.by_rates(difference, moved)
        rows = self.row_variance(difference, moved)
        variance = {
            "survey": draws.variance(totals(draws.clusters, by_draw, draws.groups)),
            **rows,
            "noise_rates": self._of_rates(by_rates),
            "sample": expected[1],
        }
        error = float(np.sqrt(sum(variance.values())))
        if not np.isfinite(error):
            raise PredictionError("the losses of these predictions are too large to add up their squares")
        test = self._against(value, ppi, by_draw, by_rates, sum(rows.values()), expected[1])
        reach = float(stdtrit(draws.freedom, (1 + confidence) / 2)) * error
        facts = draws.facts | more | self.tilt.facts() | {"against": "survey-ppi", "test": test, "variance": variance}
        _warn_where_delta_varies(facts)
        return Estimate(value, error, (value - reach, value + reach), confidence, facts)

    def _against(
        self, value: float, ppi: Mean, by_draw: Array, by_rates: Array, of_rows: float, of_sample: float
    ) -> DeltaTest:
        """Test whether the two differ; both use the same draws, whose errors cancel in part."""
        draws = self.tilt.draws
        own = ppi.constants + draws.labels.values * ppi.slopes
        difference = value - ppi.base - float(draws.shares @ own)
        sums = totals(draws.clusters, by_draw, draws.groups) - draws.deviations(own)
        rates = by_rates
        if len(by_rates) and draws.labels.slopes:
            rates = by_rates - np.array(draws.labels.slopes) @ (draws.shares * ppi.slopes)
        power = ppi.facts.get("power", 1.0)
        variance = draws.variance(sums, ppi.fitted) + of_rows + self._of_rates(rates)
        error = float(np.sqrt(variance + (1 - power) ** 2 * of_sample))
        p = 2 * float(stdtr(draws.freedom, -abs(difference) / error)) if error > 0 else 1.0
        return DeltaTest(difference, error, p)

    def _of_rates(self, by_rates: Array) -> float:
        covariance = self.tilt.taste.labels.covariance
        return 0.0 if covariance is None or not len(by_rates) else float(by_rates @ covariance @ by_rates)


class Moved(NamedTuple):
    """What moves an estimate: delta, all it does included; a and b, at delta and in all; and the rows' constants."""

    by_delta: float
    direct: Array
    by_taste: Array
    slopes: Array
    sums: tuple[Array, Array]
    solved: tuple[Array, Array]


def _places(target: Target, users: Positions) -> Positions:
    frame = target.frame
    return users if frame is None else each(lambda some: np.searchsorted(frame, some), users, dtype=np.int64)


def _selection(own: FeedbackLog, target: Target, liked: LabelProbabilities, delta: float) -> TiltedSelection:
    shape = len(target.users), target.shape[1]
    who, what = pairs_of(target.left_out, target.shape[1])
    pairs = _places(target, who), what
    return TiltedSelection.fit(_places(target, own.users), own.items, shape, liked, delta, pairs)


def _warn_where_delta_varies(facts: dict[str, Any]) -> None:
    """Say so where one delta for all pairs does not hold."""
    steep = [name for name, one in facts["slopes"].items() if one.steep]
    reasons = [f"delta rises or falls with {name}" for name in steep]
    if facts["test"].p_value < _REJECTED:
        reasons.append(f"it differs from survey-ppi beyond chance (p = {facts['test'].p_value:.2g})")
    facts["one_delta"] = not reasons
    if reasons:
        warn_caller(
            f"{NAME} assumes that one delta holds for all pairs, and {' and '.join(reasons)}: go by survey-ppi",
            SurveyWarning,
        )
