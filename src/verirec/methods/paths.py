"""Many penalties for little more than the price of one: each fit starts from where the last one ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from verirec.checks import one_of, real_number
from verirec.data.feedback_log import FeedbackLog
from verirec.estimation.inputs import Rates
from verirec.exceptions import ParameterError
from verirec.formatting import short
from verirec.methods.base import Method
from verirec.nuisance.noise_rates import AuditSample
from verirec.training.fitting import Start
from verirec.training.trainer import Plan

if TYPE_CHECKING:
    import pandas as pd

PENALTIES: Final = ("penalty_factors", "penalty_constants", "penalty_features")
_WARM_PATIENCE: Final = 2
"""Validations without a better one after which a fit by sweeps stops that started from another one's end: it is soon
there. Adam, whose steps are short, has the method's own patience."""


@dataclass(frozen=True, eq=False)
class PenaltyPath:
    """Fits of one method with several penalties.

    Parameters
    ----------
    parameter
        Which penalty.
    values
        Its values, smallest first.
    methods
        The fits, in that order.
    """

    parameter: str
    values: tuple[float, ...]
    methods: tuple[Method, ...]

    @property
    def best(self) -> Method:
        """The fit with the least validation error."""
        if self.methods[0].report_.validation_estimator is None:
            raise ParameterError("without held-out rows (validation=0) there is nothing to choose by")
        return min(self.methods, key=lambda one: one.report_.validation_error)

    def frame(self) -> pd.DataFrame:
        """Return one row a penalty: its value, the validation error and how many sweeps, or epochs, the fit took."""
        import pandas as pd  # Takes long to import.

        rows = [
            (one.report_.validation_error, len(one.report_.history), one.report_.stopped_because)
            for one in self.methods
        ]
        table = pd.DataFrame(rows, columns=["validation_error", "epochs", "stopped_because"])
        table.insert(0, self.parameter, self.values)
        return table

    def _repr_html_(self) -> str:
        return str(self.frame().to_html(index=False))


def fit_path(
    method: Method,
    log: FeedbackLog,
    values: Any,
    *,
    parameter: str = "penalty_factors",
    noise_rates: Rates | None = None,
    audit: AuditSample | None = None,
    propensities: Any = None,
    progress: Callable[[int, int, float], None] = lambda done, total, value: None,
) -> PenaltyPath:
    """Train a method with several penalties, from the smallest to the largest, each from where the last one ended.

    In this order: factors that a large penalty has shrunk to zero could not grow again. Propensities, noise rates,
    held-out rows and all else that does not depend on the penalty are made once.

    Parameters
    ----------
    method
        With all its other parameters; it is not trained itself.
    log, noise_rates, audit, propensities
        As in `Method.fit`.
    values
        Penalties to try, any number of them.
    parameter
        Which one: "penalty_factors", "penalty_constants" or "penalty_features".
    progress
        Told (done, total, validation error) after every fit.

    Examples
    --------
    >>> import verirec as vr
    >>> rates = vr.NoiseRates(0.2, 0.1)
    >>> world = vr.simulate.world(60, 40, observed=0.3, noise_rates=rates, random_state=0)
    >>> path = fit_path(vr.methods.OMEDR(), world.log, [4, 64, 16], noise_rates=rates, propensities=world.propensities)
    >>> path.values
    (4.0, 16.0, 64.0)
    >>> path.best.report_.validation_error == min(path.frame().validation_error)
    True
    """
    if not isinstance(method, Method):
        raise ParameterError(f"method must be one of verirec.methods, such as OMEDR(); got {short(method)}")
    one_of("parameter", parameter, PENALTIES)
    if not hasattr(values, "__iter__") or isinstance(values, str | bytes) or getattr(values, "ndim", 1) != 1:
        raise ParameterError(f"values must be some penalties, such as [4, 8, 16]; got {short(values)}")
    ordered = sorted({real_number("values", value, above=0, closed=True) for value in values})
    if not ordered:
        raise ParameterError("values must hold at least one penalty; got none")
    fits: list[Method] = []
    prepared = None
    for value in ordered:
        one = type(method)(**method.get_params() | {parameter: value})
        if prepared is None:
            prepared = one.prepare(log, noise_rates=noise_rates, audit=audit, propensities=propensities)
            one.fit_prepared(prepared, Plan(one.epochs))
        else:
            last = fits[-1]
            one.fit_prepared(
                prepared, Plan(one.epochs), Start(last.models_, last.report_.penalty_bound, _WARM_PATIENCE)
            )
        fits.append(one)
        progress(len(fits), len(ordered), one.report_.validation_error)
    return PenaltyPath(parameter, tuple(ordered), tuple(fits))
