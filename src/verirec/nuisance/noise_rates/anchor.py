r"""Noise rates from anchors: pairs that are surely liked or surely not (paper, Section 3.3).

If some pair is surely disliked, the smallest P(r = 1) of any pair is :math:`\rho_{10}`; if some pair is surely liked,
the largest is :math:`1 - \rho_{01}`. Both rest on that assumption, weak separability, and on h being right where it is
most extreme.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from verirec.checks import one_of, real_number, whole_number
from verirec.data.cells import CellValues, Positions
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.data.grid import Grid
from verirec.data.predictions import PredictionsLike, as_predictions
from verirec.exceptions import NoiseRateError, NoiseRateWarning, ParameterError, PredictionError, warn_caller
from verirec.formatting import short
from verirec.losses import NoiseRates
from verirec.nuisance.label_model import LabelModel, LabelProbabilities
from verirec.nuisance.noise_rates.tails import tail_rates
from verirec.nuisance.propensities import as_propensities
from verirec.randomness import RandomState, as_generator

Array = npt.NDArray[np.float64]
Pairs = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
Rule = Literal["extremes", "quantiles", "tails", "batches"]

_BINS: Final = 1 << 16


@dataclass(frozen=True, kw_only=True)
class AnchorNoiseRates:
    r"""The paper's anchor rule, and its robust forms.

    Parameters
    ----------
    rule
        "extremes" (the paper's): min and max of h over all pairs. "quantiles": the `quantile` and 1 - `quantile` of h
        over all pairs. "tails": the mean label of the log's rows with the lowest and the highest cross-fitted h, a
        share `quantile` each. "batches" (Algorithm 1): h where the predictions f are smallest and largest among
        `batches` random batches of `batch_size` pairs.
    quantile
        Of "quantiles" and "tails".
    model
        h, if it is to be fitted here.
    folds
        Of the cross-fitting of "tails".
    refits
        For the covariance of the other rules h is fitted this often again, with random weights on the rows (the
        Bayesian bootstrap). Fewer than 2 leave it out.
    batches, batch_size
        Of "batches".
    random_state
        Of all of it.

    Examples
    --------
    >>> import warnings
    >>> from verirec import simulate
    >>> world = simulate.world(n_users=200, n_items=300, observed=0.2, random_state=0)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     rates = AnchorNoiseRates(rule="tails").fit(world.log, propensities=world.propensity_values)
    >>> round(rates.rho01, 2), round(rates.rho10, 2)
    (0.33, 0.27)
    """

    rule: Rule = "extremes"
    quantile: float = 0.01
    model: LabelModel | None = None
    folds: int = 5
    refits: int = 20
    batches: int = 10
    batch_size: int = 2_048
    random_state: RandomState = 0

    def fit(
        self,
        log: FeedbackLog,
        *,
        propensities: Any = None,
        h: PredictionsLike | None = None,
        predictions: PredictionsLike | None = None,
    ) -> NoiseRates:
        """Estimate the rates, with a warning of what they rest on.

        Parameters
        ----------
        log
            To learn h from, and for "tails" to count labels in.
        propensities
            As in `estimate`: h is fitted with inverse-propensity weights.
        h
            A model of P(r = 1) of your own, pre-trained by a debiased method, in any form of predictions; its
            uncertainty is not known, and so neither are the rates' (but for "tails").
        predictions
            f, for "batches".
        """
        one_of("rule", self.rule, get_args(Rule))
        real_number("quantile", self.quantile, above=0, below=0.5)
        weights = 1 / as_propensities(propensities, checked_log(log)).at(log.users, log.items)
        random = as_generator(self.random_state)
        model = LabelModel() if self.model is None else self.model
        if not isinstance(model, LabelModel):
            raise ParameterError(f"model must be a LabelModel; give your own as h=...; got {short(model)}")
        own = None if h is None else as_predictions(h, log.n_users, log.n_items)
        if self.rule == "tails":
            scores = model.cross_fit(log, weights, self.folds, random) if own is None else own.at(log.users, log.items)
            rates = tail_rates(log.labels, scores, self.quantile)
        else:
            rates = self._from_grid(log, weights, model, own, predictions, random)
        warn_caller(
            f"anchor noise rates ({self.rule}) assume that some pairs are surely liked and some surely not, and that h "
            "is right at its extremes; where that fails they are too large, or too small if h is over-fitted. An audit "
            "needs neither",
            NoiseRateWarning,
        )
        return rates

    def _from_grid(
        self,
        log: FeedbackLog,
        weights: Array,
        model: LabelModel,
        own: CellValues | None,
        predictions: PredictionsLike | None,
        random: np.random.Generator,
    ) -> NoiseRates:
        pairs = self._batch_extremes(log, predictions, random) if self.rule == "batches" else None
        fitted = model.fit(log, weights) if own is None else own
        low, high = self._low_and_high(fitted, pairs)
        if low >= high:
            raise NoiseRateError(
                f"h is {low:.3g} where it should be smallest and {high:.3g} where it should be largest: no anchors"
            )
        covariance = None
        refits = whole_number("refits", self.refits, min=0, max=10_000)
        if own is None and refits > 1:
            # Each row's weight times a random one of mean 1: what other logs of the same size would have given.
            again = [
                self._low_and_high(model.fit(log, weights * random.exponential(size=len(log))), pairs)
                for _ in range(refits)
            ]
            (a, b), (_, d) = np.cov(np.array([(1 - top, bottom) for bottom, top in again]), rowvar=False).tolist()
            covariance = ((a, b), (b, d))
        return NoiseRates(1 - high, low, covariance, diagnostics={"method": f"anchor, {self.rule}"})

    def _low_and_high(self, h: CellValues, pairs: Pairs | None) -> tuple[float, float]:
        if pairs is not None:
            low, high = h.at(*pairs)
            return _probability(float(low)), _probability(float(high))
        if self.rule == "quantiles":
            return grid_quantiles(h, self.quantile)
        if isinstance(h, LabelProbabilities):
            return h.extremes
        low, high = Grid(h.shape).extremes(h)
        return _probability(low), _probability(high)

    def _batch_extremes(
        self, log: FeedbackLog, predictions: PredictionsLike | None, random: np.random.Generator
    ) -> Pairs:
        """Find the pairs with the smallest and the largest f among random ones."""
        if predictions is None:
            raise ParameterError('rule="batches" needs predictions: it looks for their smallest and largest')
        count = whole_number("batches", self.batches, max=10_000) * whole_number(
            "batch_size", self.batch_size, max=10_000
        )
        users, items = random.integers(log.n_users, size=count), random.integers(log.n_items, size=count)
        f = as_predictions(predictions, log.n_users, log.n_items).at(users, items)
        ends = [int(np.argmin(f)), int(np.argmax(f))]
        return users[ends], items[ends]


def grid_quantiles(values: CellValues, quantile: float) -> tuple[float, float]:
    """Return a low and a high quantile of probabilities over the grid, to 1/65,536: by counting, not by sorting.

    Examples
    --------
    >>> values = as_predictions(np.arange(100).reshape(10, 10) / 100, 10, 10)
    >>> [round(value, 2) for value in grid_quantiles(values, 0.1)]
    [0.09, 0.89]
    """

    def count(users: Positions, items: Positions) -> npt.NDArray[np.int64]:
        part = values.cells(users, items)
        _probability(float(part.min())), _probability(float(part.max()))
        return np.bincount(np.minimum((part.ravel() * _BINS).astype(np.int64), _BINS - 1), minlength=_BINS)

    counts = np.zeros(_BINS, np.int64)
    for part in Grid(values.shape).map_cells(count, parallel=values.parallel):
        counts += part
    below = np.cumsum(counts) / counts.sum()
    low, high = (np.searchsorted(below, share) / _BINS for share in (quantile, 1 - quantile))
    return float(low), float(high)


def _probability(value: float) -> float:
    if not 0 <= value <= 1:
        raise PredictionError(f"h must be a probability of each pair; got {value:g}")
    return value
