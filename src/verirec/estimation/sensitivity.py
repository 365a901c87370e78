r"""How an estimate depends on what cannot be known: the noise rates, and the propensities' error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from verirec.checks import named_entries, number_array, real_number
from verirec.data.parts import over_parts
from verirec.estimation.catalogue import ESTIMATORS, Estimator, chosen
from verirec.estimation.inputs import Noise, checked_noise, judgeable
from verirec.estimation.problem import EstimationProblem
from verirec.estimation.rows import LoggedPairs, Rows
from verirec.estimation.setup import drawn_seed, make_problem
from verirec.exceptions import ParameterError, UnknownNameError
from verirec.formatting import short
from verirec.losses import LossLike, NoiseRates, NoiseRegion
from verirec.losses.noise_rates import MOST_RATE
from verirec.nuisance.propensities import as_propensities
from verirec.randomness import RandomState, same_state
from verirec.resuming import kept
from verirec.scratch import each

if TYPE_CHECKING:
    from verirec.data.feedback_log import FeedbackLog
    from verirec.data.predictions import PredictionsLike

Array = npt.NDArray[np.float64]

_PROBE: Final = 0.25
_FINE: Final = 0.01
GAMMAS: Final = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0)
_LARGEST_GAMMA: Final = 1e12
"""Beyond it the weights of some rows vanish beside those of others."""
MOST_GAMMA: Final = 20.0
_EXACT_ROWS: Final = 2_000_000
"""Longer logs have their losses sorted into `_CLASSES` of one width."""
_CLASSES: Final = 1 << 16
DEFAULT_RATES: Final = np.linspace(0, 0.45, 19)


class Surface(NamedTuple):
    r"""An estimate as a function of the noise rates, :math:`t_0 + (t_1 - \rho_{10} t_2) / \kappa`.

    That is what every estimate linear in the labels is, as :math:`\tilde r = (r - \rho_{10}) / \kappa`.
    """

    t0: float
    t1: float
    t2: float

    def at(self, rho01: npt.ArrayLike, rho10: npt.ArrayLike) -> Array:
        """Return the estimate at rates that broadcast together."""
        first, second = np.asarray(rho01, float), np.asarray(rho10, float)
        return np.asarray(self.t0 + (self.t1 - second * self.t2) / (1 - first - second))

    def minus(self, other: Surface) -> Surface:
        """Return the difference, which has the same form."""
        return Surface(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity:
    """The surfaces of one or several recommenders, and their ranges under wrong propensities.

    Parameters
    ----------
    estimator
        Its name.
    rho01, rho10
        Rates at which `values` are, shapes (a,) and (b,).
    surfaces
        By recommender.
    propensity_ranges
        By recommender, for each factor Gamma: (Gamma, low, high), the range of the *self-normalised* estimate (which
        at Gamma = 1 is ome-snips) if the odds of each propensity may be wrong by up to that factor.
    """

    estimator: str
    rho01: Array
    rho10: Array
    surfaces: dict[str, Surface]
    propensity_ranges: dict[str, tuple[tuple[float, float, float], ...]]

    def __repr__(self) -> str:
        size = f"{len(self.rho01)} x {len(self.rho10)} noise rates"
        return f"Sensitivity({self.estimator} of {', '.join(self.surfaces)} at {size})"

    def values(self, name: str) -> Array:
        """Return a recommender's estimates, shape (a, b); NaN where the rates leave less than a tenth of the signal."""
        with np.errstate(divide="ignore", invalid="ignore"):  # where the rates leave no signal at all
            values = self._surface(name).at(self.rho01[:, None], self.rho10[None, :])
        return np.where(self.rho01[:, None] + self.rho10[None, :] <= MOST_RATE, values, np.nan)

    def _surface(self, name: str) -> Surface:
        if name not in list(self.surfaces):
            raise UnknownNameError(f"no recommender {short(name)}; there are: {', '.join(self.surfaces)}")
        return self.surfaces[name]

    def break_even(self, first: str, second: str) -> Array:
        r"""Return the rates at which two recommenders are estimated to be equally good: a straight line.

        Points (rho01, rho10) of it inside the box of `rho01` and `rho10`, shape (n, 2); empty if one of the two is
        better everywhere there.

        With :math:`t` the difference of their surfaces it is :math:`t_0 \kappa + t_1 - \rho_{10} t_2 = 0`.
        """
        t0, t1, t2 = self._surface(first).minus(self._surface(second))
        # t0 rho01 + (t0 + t2) rho10 = t0 + t1, walked along the rate that moves more on it.
        by_rho01 = abs(t0) < abs(t0 + t2)
        along, other = (self.rho01, self.rho10) if by_rho01 else (self.rho10, self.rho01)
        own, divisor = (t0, t0 + t2) if by_rho01 else (t0 + t2, t0)
        if divisor == 0:
            return np.empty((0, 2))
        points = np.linspace(along.min(), along.max(), 201)
        line = np.stack([points, (t0 + t1 - own * points) / divisor], axis=1)
        inside = (line[:, 1] >= other.min()) & (line[:, 1] <= other.max()) & (line.sum(axis=1) <= MOST_RATE)
        return np.asarray(line[inside] if by_rho01 else line[inside][:, ::-1])

    def to_frame(self) -> Any:
        """Return one row a recommender and a pair of rates, as a pandas frame."""
        import pandas as pd

        first, second = np.meshgrid(self.rho01, self.rho10, indexing="ij")
        frames = [
            pd.DataFrame(
                {
                    "recommender": name,
                    "rho01": first.ravel(),
                    "rho10": second.ravel(),
                    self.estimator: self.values(name).ravel(),
                }
            )
            for name in self.surfaces
        ]
        return pd.concat(frames, ignore_index=True).dropna(ignore_index=True)

    def _repr_html_(self) -> str:
        return str(self.to_frame().to_html(index=False, escape=True, max_rows=20))


def sensitivity(
    predictions: PredictionsLike | Mapping[str, PredictionsLike],
    log: FeedbackLog,
    *,
    propensities: Any = None,
    noise_rates: Noise = None,
    estimator: str = "ome-dr",
    rho01: npt.ArrayLike | None = None,
    rho10: npt.ArrayLike | None = None,
    gammas: Sequence[float] = GAMMAS,
    loss: LossLike = "log",
    imputation: Any = "constant",
    clip: float | None = None,
    sample: int | None = None,
    random_state: RandomState = 0,
) -> Sensitivity:
    r"""Show how estimates move with the noise rates, and how far wrong propensities could move them.

    The surface over the rates is exact, from three evaluations. For the propensities, each weight w may lie between
    :math:`1 + (w - 1)/\Gamma` and :math:`1 + (w - 1)\Gamma` (the marginal sensitivity model: Tan 2006; Zhao, Small and
    Bhattacharya 2019), and the self-normalised estimate takes its smallest and largest value.

    Parameters
    ----------
    predictions
        One recommender's, or a mapping of names to several.
    log, propensities, loss, imputation, clip, sample, random_state
        As in `estimate`.
    noise_rates
        At which the propensities are varied; over a region, all of it. By default labels are taken as they are.
    estimator
        A noise-corrected one that is linear in the labels: all but ome-sdr.
    rho01, rho10
        Rates to look at, by default 0 to .45.
    gammas
        Factors of at least 1.

    Examples
    --------
    >>> from verirec import simulate
    >>> world = simulate.world(n_users=200, n_items=300, random_state=0)
    >>> f = {"sharp": 0.1 + 0.8 * world.preferences, "blunt": 0.4 + 0.2 * world.preferences}
    >>> found = sensitivity(f, world.log, propensities=world.propensity_values)
    >>> bool(found.surfaces["sharp"].at(0.2, 0.1) < found.surfaces["blunt"].at(0.2, 0.1))
    True
    """
    one = chosen(estimator, with_rates=True)[0]
    if not one.noise_corrected or not one.linear:
        usable = ", ".join(name for name, other in ESTIMATORS.items() if other.noise_corrected and other.linear)
        raise ParameterError(f"estimator must be one of {usable}; got {short(estimator)}")
    noise = checked_noise(noise_rates, judgeable(log))
    pairs = LoggedPairs(log, as_propensities(propensities, log))
    if not isinstance(gammas, Sequence | np.ndarray) or isinstance(gammas, str | bytes) or _is_scalar(gammas):
        raise ParameterError(f"gammas must be numbers of at least 1; got {short(gammas)}")
    factors = [real_number("gammas", gamma, above=1, below=_LARGEST_GAMMA, closed=True) for gamma in gammas]
    several = isinstance(predictions, Mapping)
    named = named_entries("predictions", predictions) if several else {"recommender": predictions}
    if not named:
        raise ParameterError("predictions must name at least one recommender; got none")
    options: dict[str, Any] = {"loss": loss, "imputation": imputation, "clip": clip, "sample": sample}
    seed = same_state(random_state)
    problems = {
        name: make_problem(given, pairs, [one], seed=drawn_seed(seed), **options) for name, given in named.items()
    }
    return vary(problems, one, noise, _rates("rho01", rho01), _rates("rho10", rho10), factors)


def _is_scalar(value: Any) -> bool:
    """Whether an array has no length; sequences have one, whatever is in them."""
    return isinstance(value, np.ndarray) and value.ndim == 0


def vary(
    problems: Mapping[str, EstimationProblem],
    estimator: Estimator,
    noise: Noise,
    rho01: Array = DEFAULT_RATES,
    rho10: Array = DEFAULT_RATES,
    gammas: Sequence[float] = GAMMAS,
) -> Sensitivity:
    """Find the surfaces and ranges of problems of the same pairs; see `sensitivity`."""
    surfaces, ranges = {}, {}
    for name, problem in problems.items():
        surfaces[name], ranges[name] = kept(name, partial(_varied, problem, estimator, noise, gammas))
        problem.let_go_of_rows()
    return Sensitivity(estimator.name, rho01, rho10, surfaces, ranges)


def _varied(
    problem: EstimationProblem, estimator: Estimator, noise: Noise, gammas: Sequence[float]
) -> tuple[Surface, tuple[tuple[float, float, float], ...]]:
    """Find a recommender's surface, and its range for each factor."""
    surface = surface_of(problem, estimator)
    levers = [_Levers.of(rows.errors, rows) for rows in _rows_at(problem, noise)]
    reached = [[lever.reach(gamma) for lever in levers] for gamma in gammas]
    return surface, tuple(
        (gamma, min(low for low, _ in ends), max(high for _, high in ends))
        for gamma, ends in zip(gammas, reached, strict=True)
    )


def flip_factor(first: EstimationProblem, second: EstimationProblem, noise: Noise) -> float:
    r"""Return the smallest factor of the propensities' odds at which two recommenders could change places.

    By the self-normalised estimate of their difference: up to that :math:`\Gamma`, whatever the propensities are, the
    same one stays ahead (of the estimates; the sampling error comes on top). Infinite beyond `MOST_GAMMA`; 1 if noise
    rates within the region disagree.
    """
    factors, signs = [], set()
    for one, two in zip(_rows_at(first, noise), _rows_at(second, noise), strict=True):
        levers = _Levers.of(each(np.subtract, one.errors, two.errors), one)
        factors.append(levers.flip())
        signs.add(np.sign(levers.reach(1.0)[0]))
    return 1.0 if len(signs) > 1 else min(factors)


def _rows_at(problem: EstimationProblem, noise: Noise) -> Iterator[Rows]:
    """Return the rows at the rates, or at each corner of a region."""
    return (problem.rows(rates) for rates in (noise.corners if isinstance(noise, NoiseRegion) else [noise]))


def surface_of(problem: EstimationProblem, estimator: Estimator) -> Surface:
    """Find an estimator's surface over the noise rates from its values at three of them."""
    none, first, second = (
        problem.linearised(estimator, rates)[0].value
        for rates in (NoiseRates(0.0, 0.0), NoiseRates(_PROBE, 0.0), NoiseRates(0.0, _PROBE))
    )
    t1 = (first - none) / (1 / (1 - _PROBE) - 1)
    t0 = none - t1
    return Surface(t0, t1, (t1 - (second - t0) * (1 - _PROBE)) / _PROBE)


class _Levers(NamedTuple):
    """A weighted mean whose weights 1 + (w - 1) t may each have another t between 1/gamma and gamma.

    The weights that make it smallest or largest switch once from one end to the other along the sorted values, so that
    running sums of (w - 1) and of (w - 1) times the value tell where.
    """

    mass: float
    total: float
    lever_mass: Array
    lever_total: Array

    @classmethod
    def of(cls, values: Array, rows: Rows) -> _Levers:
        """Sort and add up: row by row or, of a long log, in narrow classes of values."""
        log_weights = rows.log.weights
        own = np.broadcast_to(1.0, len(values)) if log_weights is None else log_weights / log_weights.max()
        if len(values) > _EXACT_ROWS:
            return cls._in_classes(values, own, rows.weights)
        order = np.argsort(values)
        values, own = values[order], own[order]
        lever = own * (rows.weights[order] - 1)
        mass, total = float(own.sum()), float(own @ values)
        return cls(mass, total, np.cumsum(lever), np.cumsum(values * lever))

    @classmethod
    def _in_classes(cls, values: Array, own: Array, weights: Array) -> _Levers:
        """Switch weights between classes alone.

        A mean so made is one that weights within their bounds can make. It falls short of the farthest one by at most
        what the one class does in which the switch should be: its share of all weight times its width.
        """
        low, high = float(values.min()), float(values.max())
        per_value = _CLASSES / (high - low) if high > low else 0.0

        def visit(at: slice) -> tuple[Any, Any, float, float]:
            number = np.minimum(((values[at] - low) * per_value).astype(np.int64), _CLASSES - 1)
            lever = own[at] * (weights[at] - 1)
            masses, totals = (np.bincount(number, one, _CLASSES) for one in (lever, lever * values[at]))
            return masses, totals, float(own[at].sum()), float(own[at] @ values[at])

        lever_mass, lever_total, mass, total = (sum(one) for one in zip(*over_parts(visit, len(values)), strict=True))
        return cls(mass, total, np.cumsum(lever_mass), np.cumsum(lever_total))

    def reach(self, gamma: float) -> tuple[float, float]:
        """Return the smallest mean (large weights for the first k, small ones for the others) and the largest."""
        return float(self._means(gamma, 1 / gamma).min()), float(self._means(1 / gamma, gamma).max())

    def _means(self, first: float, then: float) -> Array:
        """Weigh the levers of the first k values by `first` and the others by `then`, for k of 1 to n."""
        means = self.lever_total * (first - then)
        means += self.total + then * self.lever_total[-1]
        masses = self.lever_mass * (first - then)
        masses += self.mass + then * self.lever_mass[-1]
        means /= masses
        return means

    def flip(self) -> float:
        """Return the smallest gamma at which the mean may be 0, to a hundredth; infinite beyond `MOST_GAMMA`."""

        def certain(gamma: float) -> bool:
            low, high = self.reach(gamma)
            return low > 0 or high < 0

        if not certain(1.0):
            return 1.0
        if certain(MOST_GAMMA):
            return float("inf")
        least, most = 1.0, MOST_GAMMA
        while most - least > _FINE * least:
            middle = float(np.sqrt(least * most))
            least, most = (middle, most) if certain(middle) else (least, middle)
        return least


def _rates(name: str, given: npt.ArrayLike | None) -> Array:
    if given is None:
        return DEFAULT_RATES
    rates = number_array(name, given, ndim=1).astype(np.float64)
    if rates.size == 0 or not ((rates >= 0) & (rates < 1)).all():
        raise ParameterError(f"{name} must be rates of at least 0 and below 1, at least one; got shape {rates.shape}")
    return rates
