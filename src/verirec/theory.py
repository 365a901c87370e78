r"""The paper's theory as functions: bias, double robustness, Lipschitz constants, the generalisation bound.

Where the printed statement errs, the right one is here, and the docstring says what was printed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.checks import number_array, real_number, truth_value, whole_number
from verirec.exceptions import DataError, LabelError, MemoryBudgetError, ParameterError, PropensityError
from verirec.losses import LossLike, NoiseRates, TransitionMatrix, get_loss
from verirec.randomness import RandomState, as_generator

__all__ = [
    "Bias",
    "double_robustness",
    "generalisation_bound",
    "lipschitz_constant",
    "ome_dr_bias",
    "rademacher_complexity",
    "remaining_bias",
    "surrogate_bound",
]

Array = npt.NDArray[np.float64]

_MOST_CELLS: Final = 50_000_000
_POWER_STEPS: Final = 1_000

_LEAST: Final = 1e-50
"""The smallest propensity: one over less leaves the range of numbers."""


@dataclass(frozen=True)
class Bias:
    r"""The bias of an OME-DR estimate, in the three terms of Theorem 3.1.

    Parameters
    ----------
    imputation
        :math:`|D|^{-1} \sum_D (1 - p / \hat p)\, \bar e`.
    positives, negatives
        The sums over truly liked and over truly disliked pairs, divided by :math:`|D|`.
    """

    imputation: float
    positives: float
    negatives: float

    @property
    def signed(self) -> float:
        """Expected estimate minus truth."""
        return self.imputation + self.positives + self.negatives

    @property
    def absolute(self) -> float:
        """What the paper calls the bias."""
        return abs(self.signed)


def ome_dr_bias(
    predictions: npt.ArrayLike,
    true_labels: npt.ArrayLike,
    *,
    propensities: npt.ArrayLike,
    estimated_propensities: npt.ArrayLike,
    imputed_errors: npt.ArrayLike,
    noise_rates: NoiseRates,
    estimated_rates: NoiseRates,
    loss: LossLike = "log",
) -> Bias:
    r"""Return the exact bias of OME-DR under wrong propensities, imputed errors and noise rates (paper, Theorem 3.1).

    The expectation is over who rates what, :math:`o \sim Bern(p)`, and over noise. The printed theorem has
    :math:`o / \hat p` in its first term; the expectation, and the paper's own proof, have :math:`p / \hat p`. OME-IPS
    is the case of imputed errors 0, OME-EIB that of :math:`\hat p = 1`.

    Parameters
    ----------
    predictions, true_labels, propensities, estimated_propensities, imputed_errors
        Of all pairs, of one shape; estimated propensities above 0.
    noise_rates, estimated_rates
        The true ones, and those that the estimator uses.
    loss
        As in `estimate`.

    Examples
    --------
    >>> f, p, truth = np.full((2, 2), 0.4), np.full((2, 2), 0.5), np.array([[1, 0], [0, 0]])
    >>> rates = NoiseRates(0.2, 0.1)
    >>> bias = ome_dr_bias(f, truth, propensities=p, estimated_propensities=p, imputed_errors=0 * f,
    ...                    noise_rates=rates, estimated_rates=rates)
    >>> abs(bias.signed) < 1e-12
    True
    """
    f, truth, p, estimated, imputed = _matching(
        predictions=predictions,
        true_labels=true_labels,
        propensities=propensities,
        estimated_propensities=estimated_propensities,
        imputed_errors=imputed_errors,
    )
    _check_rates(noise_rates, estimated_rates)
    if not ((estimated >= _LEAST) & (estimated <= 1)).all() or not ((p >= 0) & (p <= 1)).all():
        raise PropensityError("propensities must be within 0 and 1, and estimated ones above 0")
    of_loss = get_loss(loss)
    of_loss.check([f])
    if_positive, if_negative = of_loss.halves(f)
    rho01, rho10, kappa = noise_rates.rho01, noise_rates.rho10, estimated_rates.kappa
    ratio = p / estimated
    omega_11, omega_01 = (1 - rho01 - estimated_rates.rho10) / kappa, (rho01 - estimated_rates.rho01) / kappa
    omega_10, omega_00 = (rho10 - estimated_rates.rho10) / kappa, (1 - estimated_rates.rho01 - rho10) / kappa
    of_positives = (ratio * omega_11 - 1) * if_positive + ratio * omega_01 * if_negative
    of_negatives = ratio * omega_10 * if_positive + (ratio * omega_00 - 1) * if_negative
    return Bias(
        float(((1 - ratio) * imputed).mean()),
        float(np.where(truth == 1, of_positives, 0.0).mean()),
        float(np.where(truth == 0, of_negatives, 0.0).mean()),
    )


def double_robustness(
    predictions: npt.ArrayLike,
    true_labels: npt.ArrayLike,
    *,
    propensities: npt.ArrayLike,
    estimated_propensities: npt.ArrayLike,
    imputed_errors: npt.ArrayLike,
    noise_rates: NoiseRates,
    loss: LossLike = "log",
) -> tuple[float, float]:
    """Return the bias left with right propensities, and with right imputed errors: both 0 (paper, Corollary 3.2).

    The noise rates must be right for either: nothing is robust to wrong ones, see `remaining_bias`.

    Examples
    --------
    >>> f, truth, wrong = np.full((2, 2), 0.4), np.array([[1, 0], [0, 0]]), np.full((2, 2), 0.3)
    >>> left = double_robustness(f, truth, propensities=np.full((2, 2), 0.5), estimated_propensities=wrong,
    ...                          imputed_errors=wrong, noise_rates=NoiseRates(0.2, 0.1))
    >>> [abs(bias) < 1e-12 for bias in left]
    [True, True]
    """
    f, truth = _matching(predictions=predictions, true_labels=true_labels)
    true_errors = get_loss(loss).of(f, truth)
    options: dict[str, Any] = {"propensities": propensities, "loss": loss}
    options |= {"noise_rates": noise_rates, "estimated_rates": noise_rates}
    right_p = ome_dr_bias(f, truth, estimated_propensities=propensities, imputed_errors=imputed_errors, **options)
    right_errors = ome_dr_bias(
        f, truth, estimated_propensities=estimated_propensities, imputed_errors=true_errors, **options
    )
    return right_p.signed, right_errors.signed


def remaining_bias(
    predictions: npt.ArrayLike,
    true_labels: npt.ArrayLike,
    *,
    noise_rates: NoiseRates,
    estimated_rates: NoiseRates,
    loss: LossLike = "log",
) -> float:
    r"""Return the bias that wrong noise rates leave even where propensities are right.

    :math:`[(\rho_{01} - \hat\rho_{01}) S_1 + (\rho_{10} - \hat\rho_{10}) S_0] / (|D| \hat\kappa)` with
    :math:`S_1 = \sum_{r^*=1} (l_0 - l_1)` and :math:`S_0 = \sum_{r^*=0} (l_1 - l_0)`: Theorem 3.1 with
    :math:`\hat p = p`.

    Examples
    --------
    >>> f, truth = np.full((2, 2), 0.3), np.array([[1, 0], [0, 0]])
    >>> round(remaining_bias(f, truth, noise_rates=NoiseRates(0.2, 0.1), estimated_rates=NoiseRates(0.0, 0.0)), 4)
    0.0212
    """
    f, truth = _matching(predictions=predictions, true_labels=true_labels)
    _check_rates(noise_rates, estimated_rates)
    of_loss = get_loss(loss)
    of_loss.check([f])
    if_positive, if_negative = of_loss.halves(f)
    difference = if_negative - if_positive
    positives = float(difference[truth == 1].sum())
    negatives = -float(difference[truth == 0].sum())
    off01, off10 = noise_rates.rho01 - estimated_rates.rho01, noise_rates.rho10 - estimated_rates.rho10
    return (off01 * positives + off10 * negatives) / (f.size * estimated_rates.kappa)


def lipschitz_constant(constant: float, rates: NoiseRates | TransitionMatrix, *, tight: bool = True) -> float:
    r"""Return a Lipschitz constant of the surrogate loss where the loss itself has `constant` L (paper, Lemma 3.3).

    The tight one is :math:`(1 + |\rho_{01} - \rho_{10}|) L / \kappa`; the paper's is :math:`2 L / \kappa`. Of K levels
    it is :math:`\|T^{-1}\|_\infty L`, the norm being the largest absolute row sum: with two levels the tight one.

    Examples
    --------
    >>> rates = NoiseRates(0.2, 0.1)
    >>> round(lipschitz_constant(1.0, rates), 4), round(lipschitz_constant(1.0, rates, tight=False), 4)
    (1.5714, 2.8571)
    """
    own = real_number("constant", constant, above=0, closed=True)
    if isinstance(rates, TransitionMatrix):
        return rates.norm * own
    _check_rates(rates)
    factor = 1 + abs(rates.rho01 - rates.rho10) if truth_value("tight", tight) else 2.0
    return factor * own / rates.kappa


def surrogate_bound(rates: NoiseRates, clip: float, loss: LossLike = "log") -> float:
    r"""Return :math:`C_l`, the largest absolute surrogate error of predictions within `clip` and 1 - `clip`.

    Without a clip the log loss has no bound, and Theorem 3.4 says nothing about it.

    Examples
    --------
    >>> round(surrogate_bound(NoiseRates(0.2, 0.1), 0.01), 3)
    5.918
    """
    _check_rates(rates)
    low = real_number("clip", clip, above=0, below=0.5, closed=True)
    # Both halves are monotone in f for every proper loss, so that the ends would do; the points between are for others.
    if_positive, if_negative = get_loss(loss).halves(np.linspace(low, 1 - low, 10_001))
    rho01, rho10 = rates.rho01, rates.rho10
    of_positive = ((1 - rho10) * if_positive - rho01 * if_negative) / rates.kappa
    of_negative = ((1 - rho01) * if_negative - rho10 * if_positive) / rates.kappa
    return float(max(np.abs(of_positive).max(), np.abs(of_negative).max()))


def rademacher_complexity(
    n_users: int, n_items: int, *, user_norm: float, item_norm: float, draws: int = 20, random_state: RandomState = 0
) -> tuple[float, float]:
    r"""Return the empirical Rademacher complexity of norm-bounded factor models, and its Monte Carlo error.

    For :math:`F = \{U V^\top : \|U\|_F \le a, \|V\|_F \le b\}`, of any rank,
    :math:`\sup_F \langle \sigma, U V^\top \rangle = a\,b\,\|\sigma\|_2` (attained by the leading singular vectors), so
    that :math:`R(F) = a\,b\,E\|\sigma\|_2 / |D|` with :math:`\sigma` a matrix of random signs.

    Parameters
    ----------
    n_users, n_items
        The grid's size, up to 50 million cells.
    user_norm, item_norm
        a and b, Frobenius norms. Rows of norm at most c make a Frobenius norm of at most c times the root of their
        number.
    draws
        Random sign matrices.

    Examples
    --------
    >>> value, error = rademacher_complexity(1, 1, user_norm=2.0, item_norm=3.0)
    >>> round(value, 6), round(error, 6)
    (6.0, 0.0)
    """
    shape = whole_number("n_users", n_users), whole_number("n_items", n_items)
    if shape[0] * shape[1] > _MOST_CELLS:
        raise MemoryBudgetError(
            f"a matrix of {shape[0]:,} x {shape[1]:,} signs is above {_MOST_CELLS:,} cells; the norm of smaller ones "
            "grows like sqrt(n_users) + sqrt(n_items)"
        )
    scale = real_number("user_norm", user_norm, above=0, closed=True)
    scale *= real_number("item_norm", item_norm, above=0, closed=True)
    random = as_generator(random_state)
    norms = np.array([_spectral_norm(shape, random) for _ in range(whole_number("draws", draws, min=2, max=100_000))])
    factor = scale / (shape[0] * shape[1])
    return factor * float(norms.mean()), factor * float(norms.std(ddof=1)) / float(np.sqrt(len(norms)))


def generalisation_bound(
    estimate: float,
    bias: float,
    *,
    complexity: float,
    constant: float,
    rates: NoiseRates | TransitionMatrix,
    propensity_floor: float,
    loss_bound: float,
    n_cells: int,
    eta: float = 0.05,
    tight: bool = False,
) -> float:
    r"""Bound the true inaccuracy of the model that minimises OME-DR, with probability 1 - eta (paper, Theorem 3.4).

    :math:`E + Bias + (1 + 2/C_p)\,[\,2 L' R(F) + (C_l + 2 L')\sqrt{2 \log(4/\eta) / |D|}\,]` with
    :math:`L' = 2L/\kappa` as printed.

    Parameters
    ----------
    estimate, bias
        The OME-DR estimate of that model, and its bias (`ome_dr_bias`).
    complexity
        R(F), as from `rademacher_complexity`.
    constant
        L, the loss's own Lipschitz constant.
    rates
        The estimated ones; of levels a matrix, whose inverse's norm takes the place of :math:`2/\kappa`.
    propensity_floor
        :math:`C_p`, below all estimated propensities.
    loss_bound
        :math:`C_l`, as from `surrogate_bound`.
    n_cells
        :math:`|D|`.
    tight
        True takes the tight Lipschitz constant of the surrogate in place of the paper's.

    Examples
    --------
    >>> bound = generalisation_bound(0.5, 0.0, complexity=0.001, constant=1.0, rates=NoiseRates(0.2, 0.1),
    ...                              propensity_floor=0.1, loss_bound=5.9, n_cells=1_500_000)
    >>> round(bound, 3)
    1.21
    """
    surrogate = 2 * lipschitz_constant(constant, rates, tight=tight)
    floor = real_number("propensity_floor", propensity_floor, above=0, below=1 + 1e-12)
    chance = real_number("eta", eta, above=0, below=1)
    cells = whole_number("n_cells", n_cells, max=2**63 - 1)
    deviation = np.sqrt(2 * np.log(4 / chance) / cells)
    within = surrogate * real_number("complexity", complexity, above=0, closed=True)
    within += (real_number("loss_bound", loss_bound, above=0, closed=True) + surrogate) * deviation
    return float(real_number("estimate", estimate) + abs(real_number("bias", bias)) + (1 + 2 / floor) * within)


def _spectral_norm(shape: tuple[int, int], random: np.random.Generator) -> float:
    """Return the largest singular value of a matrix of random signs, by power iteration."""
    signs = (random.integers(2, size=shape, dtype=np.int8) * 2 - 1).astype(np.float32)
    vector = random.normal(size=shape[1]).astype(np.float32)
    norm = 0.0
    for _ in range(_POWER_STEPS):
        other = signs @ vector
        other /= np.linalg.norm(other)
        vector = signs.T @ other
        length = float(np.linalg.norm(vector))
        vector /= length
        if abs(length - norm) <= 1e-7 * length:
            return length
        norm = length
    return norm


def _matching(**arrays: npt.ArrayLike) -> tuple[Array, ...]:
    """Accept matrices of finite numbers of one shape."""
    checked = {name: number_array(name, values, ndim=2) for name, values in arrays.items()}
    shapes = {array.shape for array in checked.values()}
    if len(shapes) > 1:
        raise ParameterError(
            "all of these must have one shape; got " + ", ".join(f"{name} {a.shape}" for name, a in checked.items())
        )
    for name, array in checked.items():
        if array.size == 0 or not np.isfinite(array).all():
            raise DataError(f"{name} must be finite numbers, at least one")
    if "true_labels" in checked and not np.isin(checked["true_labels"], (0, 1)).all():
        raise LabelError("true_labels must be 0/1")
    return tuple(array.astype(np.float64) for array in checked.values())


def _check_rates(*rates: object) -> None:
    for one in rates:
        if not isinstance(one, NoiseRates):
            raise ParameterError(f"noise rates must be a NoiseRates; got {type(one).__name__}")
