r"""Noise between levels that a log allows, without an audit.

Rows of any kind, say those of one stratum of a score, have true levels with some shares :math:`\pi \ge 0`, and are
logged with shares :math:`q = \pi^\top T`. So noise T is possible only if :math:`q^\top T^{-1}` has no negative entry in
any stratum. With two levels these are the bounds of `identified_region`. A form of one number is bounded by it; the
K (K - 1) numbers of a free matrix are not, in any way that would be of use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from verirec.checks import real_number, whole_number
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.data.levels import Levels
from verirec.data.predictions import PredictionsLike
from verirec.exceptions import EmptyLogError, NoiseRateWarning, ParameterError, warn_caller
from verirec.formatting import short
from verirec.losses import TransitionMatrix
from verirec.losses.noise_rates import LATTICE, WEAK_SIGNAL
from verirec.losses.regions import TransitionRegion
from verirec.nuisance.noise_rates.strata import score_levels, sort_into_strata, table_of
from verirec.nuisance.noise_rates.transition_forms import MOST_LEVELS, band_matrix, ordinal_matrix
from verirec.randomness import RandomState, as_generator

Array = npt.NDArray[np.float64]

_FORMS: Final[dict[str, Callable[[int, float], Array]]] = {"ordinal": ordinal_matrix, "band": band_matrix}
_TRIED: Final = np.linspace(0, 1, 201)
_HALVINGS: Final = 20
_FEWEST: Final = 40


def identified_transitions(
    log: FeedbackLog,
    *,
    form: str = "ordinal",
    strata: int = 10,
    scores: PredictionsLike | None = None,
    confidence: float = 0.95,
    random_state: RandomState = 0,
) -> TransitionRegion:
    r"""Return the noise of one form that a log of levels allows without an audit.

    In each stratum of a score the shares of true levels, :math:`q^\top T^{-1}`, must not be below 0 by more than
    chance. Noise of which hardly any signal is left (an inverse with a norm above 10) is not considered. Where the log
    allows even that, the region is cut off there: it says so (`cut_off`) and warns. Most logs do, unless `scores` know
    well which rows are of the lowest and of the highest levels.

    Parameters
    ----------
    log
        That keeps its levels.
    form
        "ordinal": chances fall with the distance by one factor. "band": only neighbours are taken for each other, all
        with one rate. Forms of more numbers are not bounded by a log: they are refused.
    strata
        Number of strata.
    scores
        What sorts the rows, in any form of predictions, by a model that was not fitted to these labels; by default
        user and item constants, cross-fitted.
    confidence
        With which the noise, if it has this form, is in the region or beyond the cut.
    random_state
        Of the cross-fitting.

    Examples
    --------
    >>> from verirec import simulate
    >>> world = simulate.stars(100, 120, noise=TransitionMatrix.band(5, 0.3), random_state=0)
    >>> region = identified_transitions(world.log, form="band", scores=world.true_values)
    >>> region.most > 0.24, region.cut_off  # 24% are taken for a neighbour, on average over levels
    (True, False)
    """
    level = real_number("confidence", confidence, above=0, below=1)
    levels = _checked_scale(log)
    if not isinstance(form, str) or form not in _FORMS:
        raise ParameterError(
            f"form must be one of {', '.join(_FORMS)}, which have one number each: a log alone does not bound forms of "
            f"more, which take an audit; got {short(form)}"
        )
    make = _FORMS[form]
    counts = _counts(log, whole_number("strata", strata), scores, random_state)
    most, cut_off = _most(lambda rate: make(len(levels), rate), counts, level)
    matrices = tuple(TransitionMatrix(make(len(levels), rate)) for rate in np.linspace(0, most, LATTICE))
    region = TransitionRegion(matrices, form, float(1 - np.diag(matrices[-1].matrix).mean()), cut_off)
    if cut_off:
        warn_caller(
            f"the log does not bound noise of {form} form: the region is cut off at {region.most:.1%} of levels taken "
            "for others, where hardly any signal is left; an audit would tell more",
            NoiseRateWarning,
        )
    return region


def _checked_scale(log: FeedbackLog) -> Levels:
    """Accept a log of a few levels that has enough rows; return the levels."""
    levels = checked_log(log, levels=True).levels
    if levels is None:
        raise ParameterError("noise between levels is for a log that keeps them; a binary log: identified_region")
    if len(levels) > MOST_LEVELS:
        raise ParameterError(f"noise is told of at most {MOST_LEVELS} levels; the log has {len(levels)}: take fewer")
    if len(log) < _FEWEST:
        raise EmptyLogError(f"a log of {len(log):,} rows cannot tell how noisy its levels may be: it takes {_FEWEST}")
    return levels


def _most(make: Callable[[float], Array], counts: Array, confidence: float) -> tuple[float, bool]:
    """Return the largest rate that is possible, rounded up, and whether it is where too little signal is left."""
    # Beyond noise without an inverse there may be matrices that have one, which take most levels for others.
    clear = int(np.argmin([_leaves_signal(make(rate)) for rate in _TRIED]))
    last, _ = _halved(_TRIED[clear - 1], _TRIED[clear], lambda rate: _leaves_signal(make(rate)))
    tried = [*_TRIED[:clear], last]
    most = max(place for place, rate in enumerate(tried) if _is_possible(make(rate), counts, confidence))
    if most == clear:
        return last, True
    _, beyond = _halved(tried[most], tried[most + 1], lambda rate: _is_possible(make(rate), counts, confidence))
    return beyond, False


def _halved(inside: float, outside: float, holds: Callable[[float], bool]) -> tuple[float, float]:
    """Return two rates close to each other, of which something holds at the first and not at the second."""
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if holds(middle) else (inside, middle)
    return float(inside), float(outside)


def _counts(log: FeedbackLog, strata: int, scores: PredictionsLike | None, random_state: RandomState) -> Array:
    """Count rows by stratum and logged level."""
    assert log.levels is not None  # noqa: S101 -- checked above
    random = as_generator(random_state)
    of_row = sort_into_strata(score_levels(log, scores, random), strata, random)
    return table_of(of_row, log.labels, len(log.levels))


def _leaves_signal(matrix: Array) -> bool:
    """Tell whether the inverse is there, with a norm of at most 10."""
    if np.linalg.cond(matrix) > 1 / np.finfo(float).eps:
        return False
    return bool(np.abs(np.linalg.inv(matrix)).sum(axis=1).max() <= 1 / WEAK_SIGNAL)


def _is_possible(matrix: Array, counts: Array, confidence: float) -> bool:
    """Tell whether no stratum has a share of a true level below 0, beyond chance.

    How much chance may do is that of the closest shares that are possible (a score test), not of what was counted: of
    a level that no row has, counts would be sure that it cannot come.
    """
    inverse = np.linalg.inv(matrix)
    size = counts.sum(axis=1, keepdims=True)
    true_shares = counts / size @ inverse
    closest = np.maximum(true_shares, 0)
    closest /= closest.sum(axis=1, keepdims=True)
    spread = closest @ matrix @ inverse**2 - closest**2
    reach = float(ndtri(1 - (1 - confidence) / counts.size))
    return bool((true_shares + reach * np.sqrt(np.maximum(spread, 0) / size) >= 0).all())
