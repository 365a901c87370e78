"""The estimators by name: what each is, what it needs, and how its imputed errors are fitted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from verirec.estimation import formulas
from verirec.estimation.expansion import InfluenceExpansion
from verirec.estimation.rows import Imputed, RowPart, Rows
from verirec.exceptions import ParameterError
from verirec.losses import over_levels

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
    audited
        Whether an audit's true labels are in it: then any noise rates will do, or none.
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
    audited: bool = False

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


AUDIT_ESTIMATORS: Final = {
    "audited-dr": Estimator("audited-dr", formulas.dr, noise_corrected=True, needs_all_predictions=True, audited=True)
}
"""Those with an audit's true labels in them: `verirec.estimation.audited` has what these add."""
DELTA: Final = "delta-dr"
SURVEY_ESTIMATORS: Final = ("survey", "survey-ppi", DELTA)
"""Those that rest on a survey; `verirec.estimation.survey` has their formulas."""
_USUAL: Final = ("naive", "ips", "dr", "ome-ips", "ome-dr", *AUDIT_ESTIMATORS, "survey", "survey-ppi")
"""Not delta-dr: it assumes one delta for all pairs, and costs about half a walk over the grid more."""
_BY_LOG: Final = ESTIMATORS | AUDIT_ESTIMATORS


class Chosen(NamedTuple):
    """Estimators by what they rest on: the log, with or without an audit of it, and a survey.

    `ranged` is the name of the log's that becomes a range, if one does.
    """

    log: list[Estimator]
    survey: list[str]
    ranged: str | None = None

    def with_range(self, *, with_rates: bool) -> Chosen:
        """Make a range of the log's best: "ome-dr" or, where there are no noise rates, "dr".

        Examples
        --------
        >>> found = chosen_by_source(None, with_rates=True).with_range(with_rates=True)
        >>> [estimator.name for estimator in found.log], found.ranged
        (['naive', 'ips', 'dr', 'ome-ips'], 'ome-dr')
        """
        name = "ome-dr" if with_rates else "dr"
        others = [one for one in self.log if one.name != name]
        if len(others) == len(self.log):
            raise ParameterError(f"selection makes a range of {name}: name it among the estimators")
        return Chosen(others, self.survey, name)


def chosen_by_source(names: Any, *, with_rates: bool, with_audit: bool = False, with_survey: bool = False) -> Chosen:
    """Look estimators up: names, "all", or `None` for the usual ones.

    Parameters
    ----------
    names
        What was asked for.
    with_rates, with_audit, with_survey
        Whether there are noise rates, an audit, and a survey.

    Examples
    --------
    >>> found = chosen_by_source(None, with_rates=False, with_survey=True)
    >>> [estimator.name for estimator in found.log], found.survey
    (['naive', 'ips', 'dr'], ['survey', 'survey-ppi'])
    """
    possible = [name for name, one in ESTIMATORS.items() if with_rates or not one.noise_corrected]
    possible += AUDIT_ESTIMATORS if with_audit else ()
    possible += SURVEY_ESTIMATORS if with_survey else ()
    if isinstance(names, np.ndarray):
        names = names.tolist()
    if names is None:
        names = [name for name in _USUAL if name in possible]
    elif isinstance(names, str):
        names = possible if names == "all" else (names,)
    try:
        listed: list[Any] = list(names) if isinstance(names, Iterable) else [names]
    except TypeError:  # Some matrices can be asked for an iterator, and have none.
        listed = [names]
    every = (*_BY_LOG, *SURVEY_ESTIMATORS)
    unknown = [name for name in listed if not isinstance(name, str) or name not in every]
    if unknown or not listed:
        got = f"got {unknown[0]!r}" if unknown else "none was named"
        raise ParameterError(f"estimators must be among {', '.join(every)}; {got}")
    found = list(dict.fromkeys(listed))
    _refuse_without([name for name in found if name not in possible])
    return Chosen([_BY_LOG[name] for name in found if name in _BY_LOG], [name for name in found if name not in _BY_LOG])


def _refuse_without(missing: list[str]) -> None:
    """Say what estimators need that is not there."""
    for what, those in (("survey", SURVEY_ESTIMATORS), ("audit", tuple(AUDIT_ESTIMATORS))):
        for name in missing:
            if name in those:
                raise ParameterError(f"{what} must be given for estimators that rest on one: {name}")
    if missing:
        raise ParameterError(f"noise_rates must be given for estimators that correct for noise: {', '.join(missing)}")


def chosen(names: str | Sequence[str] | None, *, with_rates: bool, with_audit: bool = False) -> list[Estimator]:
    """Look up estimators that rest on the log: names, "all", or `None` for the usual ones.

    Examples
    --------
    >>> [estimator.name for estimator in chosen(None, with_rates=True)]
    ['naive', 'ips', 'dr', 'ome-ips', 'ome-dr']
    """
    return chosen_by_source(names, with_rates=with_rates, with_audit=with_audit).log


def imputation_weights(estimator: Estimator, rows: Rows) -> Array:
    """Return the rows' weights in the fit of imputed labels: an imputed error's are its label's times (l1 - l0)^2.

    Of levels, all K - 1 labels of a row have one weight, by the squares of all steps.
    """
    if estimator.variance_optimal:
        return rows.each(lambda part: over_levels((1 - part.p) * (part.weights * part.difference) ** 2))
    return rows.weights


def imputation_weight_slopes(estimator: Estimator) -> Callable[[RowPart], Array | float]:
    """Return the derivative of these weights' logs by the log of p: -1 of 1/p, -(2 - p)/(1 - p) of (1 - p)/p^2."""
    if not estimator.variance_optimal:
        return lambda part: -1.0
    return lambda part: np.where(part.p < 1, -(2 - part.p) / np.maximum(1 - part.p, 1e-12), 0.0)
