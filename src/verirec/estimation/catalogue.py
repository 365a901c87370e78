"""The estimators by name: what each is, what it needs, and how its imputed errors are fitted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from verirec.estimation import formulas
from verirec.estimation.formulas import InfluenceExpansion
from verirec.estimation.rows import Imputed, Rows
from verirec.exceptions import ParameterError

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Estimator:
    """One of the estimators.

    Parameters
    ----------
    name
        As users write it.
    formula
        From rows and imputed errors to the estimate.
    noise_corrected
        Whether it corrects labels for noise.
    needs_all_predictions
        Whether it needs the predictions of all pairs, and not of the logged ones only.
    supports_row_weights
        Whether it can use a log's row weights.
    variance_optimal
        Whether its imputed errors are fitted with weights (1 - p)/p^2 in place of 1/p (MRDR: Guo et al. 2021).
    needs_all_propensities
        Whether it needs the propensities of all pairs.
    uses_propensities
        Whether it uses propensities at all.
    linear
        Whether it is linear in the labels, so that it is monotone in each noise rate.
    source
        What it needs besides the log: nothing ("log"), or an audit, whose true labels are then in the estimate.
    """

    name: str
    formula: Callable[[Rows, Imputed], InfluenceExpansion]
    noise_corrected: bool = False
    needs_all_predictions: bool = False
    supports_row_weights: bool = False
    variance_optimal: bool = False
    needs_all_propensities: bool = False
    uses_propensities: bool = True
    linear: bool = True
    source: Literal["log", "audit"] = "log"

    @property
    def plain_name(self) -> str:
        """The name without the noise correction."""
        return "naive" if self.name == "ome" else self.name.removeprefix("ome-")


_PLAIN: Final = (
    Estimator("naive", formulas.naive, supports_row_weights=True, uses_propensities=False),
    Estimator("eib", formulas.eib, needs_all_predictions=True),
    Estimator("ips", formulas.ips),
    Estimator("snips", formulas.snips, supports_row_weights=True),
    Estimator("dr", formulas.dr, needs_all_predictions=True),
    Estimator("mrdr", formulas.dr, needs_all_predictions=True, variance_optimal=True),
    Estimator("sdr", formulas.sdr, needs_all_predictions=True, linear=False),
    Estimator("tdr", formulas.tdr, needs_all_predictions=True, needs_all_propensities=True),
)


def _denoised(plain: Estimator) -> Estimator:
    name = "ome" if plain.name == "naive" else f"ome-{plain.name}"
    return Estimator(**(vars(plain) | {"name": name, "noise_corrected": True}))


ESTIMATORS: Final[dict[str, Estimator]] = {
    estimator.name: estimator for estimator in (*_PLAIN, *(_denoised(plain) for plain in _PLAIN))
}


AUDITED: Final = Estimator("audited-dr", formulas.dr, noise_corrected=True, needs_all_predictions=True, source="audit")
"""ome-dr, put right by an audit's true labels: see `verirec.estimation.audited`."""


def chosen(names: str | Sequence[str] | None, *, with_rates: bool, with_audit: bool = False) -> list[Estimator]:
    """Look estimators up: names, "all", or `None` for the usual ones.

    Examples
    --------
    >>> [estimator.name for estimator in chosen(None, with_rates=True)]
    ['naive', 'ips', 'dr', 'ome-ips', 'ome-dr']
    """
    known = ESTIMATORS | {AUDITED.name: AUDITED}
    if names is None:
        names = ("naive", "ips", "dr", "ome-ips", "ome-dr")[: 5 if with_rates else 3] + (AUDITED.name,) * with_audit
    elif isinstance(names, str):
        every = tuple(name for name, one in known.items() if not _lacks(one, with_rates, with_audit))
        names = every if names == "all" else (names,)
    listed: list[Any] = list(names) if isinstance(names, Iterable) else [names]
    unknown = [name for name in listed if not isinstance(name, str) or name not in known]
    if unknown or not listed:
        got = f"got {unknown[0]!r}" if unknown else "none was named"
        raise ParameterError(f"estimators must be among {', '.join(known)}; {got}")
    found = [known[name] for name in dict.fromkeys(listed)]
    for what, why in (("noise_rates", "that correct for noise"), ("audit", "with true labels")):
        lacking = [one.name for one in found if _lacks(one, with_rates, with_audit) == what]
        if lacking:
            raise ParameterError(f"{what} must be given for estimators {why}: {', '.join(lacking)}")
    return found


def _lacks(estimator: Estimator, with_rates: bool, with_audit: bool) -> str:
    """Name what an estimator needs and has not got, or nothing; with an audit, any noise rates will do, and none."""
    if estimator.source == "audit":
        return "" if with_audit else "audit"
    return "noise_rates" if estimator.noise_corrected and not with_rates else ""


def imputation_weights(estimator: Estimator, rows: Rows) -> Array:
    """Return the rows' weights in the fit of imputed labels: an imputed error's are its label's times (l1 - l0)^2."""
    if estimator.variance_optimal:
        return np.asarray((1 - rows.p) * rows.weights**2 * rows.difference**2)
    return rows.weights


def imputation_weight_slopes(estimator: Estimator, rows: Rows) -> Array | float:
    """Return the derivative of these weights' logs by the log of p: -1 of 1/p, -(2 - p)/(1 - p) of (1 - p)/p^2."""
    if not estimator.variance_optimal:
        return -1.0
    return np.asarray(np.where(rows.p < 1, -(2 - rows.p) / np.maximum(1 - rows.p, 1e-12), 0.0))
