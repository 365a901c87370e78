"""Which solver an objective is lowered by."""

from __future__ import annotations

from typing import Final

from verirec.engine.base import Engine
from verirec.exceptions import MissingExtraWarning, ParameterError, warn_caller
from verirec.models import FactorModel, Model
from verirec.training.correction import Forward
from verirec.training.data import TrainingData
from verirec.training.learner import Learners
from verirec.training.losses import StarsLoss
from verirec.training.objective import Objective, PseudoLabels
from verirec.training.solvers import Solver
from verirec.training.solvers.gradient import GradientSolver
from verirec.training.solvers.sharded import ShardedSolver
from verirec.training.solvers.sweep import SweepSolver, compiled_rows
from verirec.training.solvers.sweep.forms import FORMS

SOLVERS: Final = ("auto", "gradient", "sweep")
_SLOW: Final = 0.2
"""Of the way down, what is gone at once where the best state may be on the way: else it is passed by."""
_LARGE: Final = 200_000
"""Rows from which on it matters whether there is a compiler."""


def choose_solver(
    wanted: str,
    objective: Objective,
    models: Learners,
    data: TrainingData,
    threads: int,
    *,
    has_minimum: bool,
    engine: Engine | None = None,
) -> Solver:
    """Return sweeps where they fit and are wanted, else gradients.

    Where the loss may have no minimum, held-out rows decide where to stop on the way down. Adam's many short steps give
    them more to choose from: "auto" takes those. Of factors alone, which overfit long before they converge, they decide
    in any case: sweeps then go a part of the way at once, are all validated, and do as well.

    Parameters
    ----------
    wanted
        "auto", "gradient" or "sweep".
    objective, models, data
        What is lowered, by what, and on which rows.
    threads
        That sweeps may use.
    has_minimum
        Whether the penalty makes sure that the loss has a minimum.
    engine
        Whose workers have the rows; `None` for this process.
    """
    prediction = models["prediction"]
    alone = isinstance(prediction, FactorModel) and prediction.factors_alone
    damping = 1.0 if has_minimum and not alone else _SLOW
    if engine is not None:
        return _sharded(wanted, objective, models, data, damping, engine)
    if wanted == "gradient" or (wanted == "auto" and not has_minimum and not alone):
        return GradientSolver(objective, models, data)
    why_not = why_no_sweeps(objective, models, data)
    if not isinstance(objective, PseudoLabels) or why_not is not None:
        if wanted == "sweep":
            raise no_sweeps(why_not or "")
        return GradientSolver(objective, models, data)
    if compiled_rows() is None and (wanted == "sweep" or len(data.log) >= _LARGE):
        warn_caller("sweeps are several times faster with numba: pip install 'verirec[fast]'", MissingExtraWarning)
    return SweepSolver(objective, models, data, threads, damping)


def _sharded(
    wanted: str, objective: Objective, models: Learners, data: TrainingData, damping: float, engine: Engine
) -> Solver:
    """Return sweeps on many workers, or say why not."""
    why_not = why_no_sweeps(objective, models, data)
    if wanted == "gradient":
        why_not = 'solver="gradient" goes by batches'
    elif isinstance(objective.correction.loss, StarsLoss):
        why_not = why_not or "stars are for one machine"
    elif any(_has_more_than_factors(one.model) for one in models.by_name.values()):
        why_not = why_not or "features and covariates are for one machine"
    if not isinstance(objective, PseudoLabels) or why_not is not None:
        raise ParameterError(f"many workers train by sweeps: {why_not}; take engine='serial'")
    return ShardedSolver(objective, models, data, damping, engine)


def _has_more_than_factors(model: Model) -> bool:
    return isinstance(model, FactorModel) and (model.has_features or model.covariates is not None)


def why_no_sweeps(objective: Objective, models: Learners, data: TrainingData) -> str | None:
    """Say why sweeps do not fit; `None` where they do."""
    if not isinstance(objective, PseudoLabels):
        return "its objective is not one of pseudo-labels"
    if isinstance(objective.correction, Forward):
        return "sweeps are for correction='none' and 'surrogate'"
    if type(objective.correction.loss) not in FORMS:
        return 'sweeps are for loss="log", or head="stars" of levels'
    if not all(isinstance(one.model, FactorModel) for one in models.by_name.values()):
        return 'sweeps are for models "mf", "constants" and "features"'
    of_stars = isinstance(objective.correction.loss, StarsLoss) and objective.imputed is not None
    if of_stars and any(_has_more_than_factors(one.model) for one in models.by_name.values()):
        return "features and covariates are for methods that impute no stars"
    if data.device.type != "cpu":
        return 'sweeps are for device="cpu"'
    return None


def no_sweeps(why: str) -> ParameterError:
    """Make the error of a method that cannot be trained by sweeps."""
    return ParameterError(
        f'solver="sweep": {why}; take "auto" or "gradient" (`verirec methods` lists those with sweeps)'
    )
