"""What is checked of a method and of what `fit` is given, beyond the log."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verirec.checks import can_be_encoded, one_of
from verirec.engine.base import Engine, current_engine
from verirec.estimation.catalogue import ESTIMATORS
from verirec.exceptions import ParameterError
from verirec.formatting import short
from verirec.methods.keys import training_key as training_key
from verirec.methods.parameters import check_numbers
from verirec.training.admission import check_labels as check_labels
from verirec.training.correction import KINDS
from verirec.training.heads import HEADS
from verirec.training.losses import LOSSES
from verirec.training.schedule import ANCHORS
from verirec.training.side_information import COVARIATES
from verirec.training.solvers.choice import SOLVERS, no_sweeps
from verirec.training.survey_calibration import check_survey as check_survey

if TYPE_CHECKING:
    from verirec.engine.choice import EngineLike


def check(method: Any) -> None:
    """Raise `ParameterError` for a parameter of a method that is not what it must be."""
    check_numbers(method)
    one_of("loss", method.loss, tuple(LOSSES))
    if method.head is not None:
        one_of("head", method.head, HEADS)
    one_of("solver", method.solver, SOLVERS)
    if method.solver == "sweep" and not method.sweeps:
        raise no_sweeps(f"{method.name} has no sweeps")
    if method.validation_estimator is not None:
        usable = tuple(name for name, one in ESTIMATORS.items() if not one.needs_all_propensities)
        one_of("validation_estimator", method.validation_estimator, usable)
    _check_correction(method)
    if isinstance(method.model, str) and method.model == "ncf" and method.dim == 0:
        raise ParameterError('dim must be a whole number from 1 with model="ncf"; got 0')
    if method.model == "mf" and method.dim == 0 and not method.constants and method.covariates is None:
        raise ParameterError("a model needs constants or factors: constants=True, or dim from 1")
    if method.covariates is not None:
        one_of("covariates", method.covariates, tuple(COVARIATES))
        linear = isinstance(method.model, str) and method.model in ("mf", "constants", "features")
        if method.covariates != "none" and not linear:
            raise ParameterError(
                f'covariates are for models "mf", "constants" and "features"; got model={short(method.model)}'
            )


def _check_correction(method: Any) -> None:
    one_of("correction", method.correction, KINDS)
    one_of("anchors", method.anchors, ANCHORS)
    if method.correction != "none" and not method.takes_correction:
        raise ParameterError(f'correction must be "none" for {method.name}: it takes no correction for noise')
    if method.correction == "forward" and method.loss != "log":
        raise ParameterError('correction="forward" is for loss="log"')


def workers_of(method: Any, engine: EngineLike, kinds: Iterable[Any]) -> Engine | None:
    """Return the engine that a method was asked to train on, which is in use; `None` for this process.

    Parameters
    ----------
    method, engine
        What was asked.
    kinds
        All methods, to name those that can.
    """
    if engine is None or not current_engine().elsewhere:
        return None
    if not method.sweeps:
        able = ", ".join(kind.name for kind in kinds if kind.sweeps)
        raise ParameterError(f"{method.name} is trained on one machine, engine='serial'; on many workers: {able}")
    return current_engine()


def checkpoint_file(given: object) -> Path | None:
    """Accept the path of a file that is there or can be, or none."""
    if given is None:
        return None
    if not isinstance(given, str | Path) or not str(given) or "\0" in str(given) or not can_be_encoded(str(given)):
        raise ParameterError(f"checkpoint must be the path of a file; got {short(given)}")
    file = Path(given)
    if file.exists() and not file.is_file():
        raise ParameterError(f"checkpoint must be the path of a file; {str(given)!r} is something else")
    return file
