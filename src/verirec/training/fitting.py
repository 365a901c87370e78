"""From a prepared log and a method's objective to a recommender."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from verirec.estimation.inputs import KnownNoise
from verirec.exceptions import NoMinimumError, TrainingError
from verirec.models import FactorModel, Model, build_model
from verirec.training.correction import NoiseCorrection
from verirec.training.data import TrainingData
from verirec.training.learner import Learner, Learners
from verirec.training.objective import Objective, PseudoLabels
from verirec.training.preparation import Preparation
from verirec.training.recommender import Recommender
from verirec.training.report import TrainingReport
from verirec.training.settings import TrainingSettings
from verirec.training.solvers.choice import choose_solver
from verirec.training.starting import (
    FactorsAlone,
    factor_bound,
    factor_penalty,
    start_factors,
    vanishing_penalty,
    warn_if_vanished,
)
from verirec.training.threads import one_thread
from verirec.training.trainer import Outcome, Plan, Trainer


class ModelSpec(NamedTuple):
    """Another model that an objective trains.

    Parameters
    ----------
    stream
        A number of its own, of the random numbers it starts from: not 0, the prediction model's.
    kind
        As the parameter `model`; `None` for the same.
    penalty
        All penalties are multiplied by it.
    start
        Sets where it starts from; by default as any model.
    make
        Makes it, where it is of none of these kinds.
    """

    stream: int
    kind: Any = None
    penalty: float = 1.0
    start: Callable[[Model, TrainingData], None] = lambda model, data: None
    make: Callable[[], Model] | None = None


MakeObjective = Callable[[TrainingData, NoiseCorrection], Objective]
"""What makes an objective for some rows, with errors by a correction."""


@dataclass(frozen=True, eq=False)
class Start:
    """Where a fit starts that goes on from another one with another penalty; factors alone start anew.

    Parameters
    ----------
    models
        All that was trained, by name.
    penalty_bound
        Which does not depend on the penalty.
    patience
        Of this fit, where its solver goes straight to the minimum.
    """

    models: Mapping[str, Model]
    penalty_bound: float
    patience: int | None


class Fit(NamedTuple):
    """What training leaves: a recommender, and all models by name, "prediction" in its best state."""

    recommender: Recommender
    models: dict[str, Model]


def train(
    settings: TrainingSettings,
    make_objective: MakeObjective,
    specs: Mapping[str, ModelSpec],
    prepared: Preparation,
    plan: Plan,
    start: Start | None = None,
) -> Fit:
    """Build models and train them on an objective.

    Parameters
    ----------
    settings
        A method's parameters.
    make_objective
        Makes what is minimised.
    specs
        What is trained besides the prediction model, by name.
    prepared
        The log, made ready.
    plan
        How long, and where checkpoints go.
    start
        Where to start from; by default anew.
    """
    data, schedule = prepared.data, prepared.schedule(settings)
    rows = data.effective_rows if settings.uses_propensities else float(len(data.log))
    with one_thread():
        # What models start from must not depend on the number of threads.
        objective = make_objective(data, schedule.correction)
        _check_weights(settings.name, objective, data)
        bound = factor_bound(objective, settings, schedule, data, rows) if start is None else start.penalty_bound
        alone = FactorsAlone.of(settings, objective, data)
        penalty = factor_penalty(settings.penalty_factors, bound, alone, rows, prepared.head.usual_penalty)
        settings = replace(settings, penalty_factors=penalty)
        models = Learners(_learners(settings, specs, prepared, rows), objective.initial_state())
        _check_objective(settings.name, objective, models)
        scores, _ = prepared.head.trained(models["prediction"])
        has_factors = isinstance(scores, FactorModel) and bool(scores.dim)
        _insist_on_minimum(settings, penalty, bound, has_factors)
        size = _start(models["prediction"], alone, prepared)
        has_minimum = penalty >= bound or not has_factors
        solver = choose_solver(
            settings.solver,
            objective,
            models,
            data,
            prepared.threads,
            has_minimum=has_minimum,
            engine=plan.engine,
        )
    patience = settings.patience
    if start is not None and alone is None:
        patience = start.patience if solver.goes_to_minimum else patience
        for name, learner in models.by_name.items():
            learner.model.load_state_dict(start.models[name].state_dict())
    with closing(solver):
        outcome = Trainer(settings.name, solver, schedule, prepared.validator, data.cold, patience, plan).run()
    if alone is not None and prepared.start_size is None:
        warn_if_vanished(settings.name, models["prediction"], penalty, vanishing_penalty(*alone, rows))
    report = replace(_report(settings, prepared, solver.name, outcome, bound, penalty), start_size=size)
    return _fitted(prepared, models, schedule.rates, report)


def _start(model: Model, alone: FactorsAlone | None, prepared: Preparation) -> float | None:
    """Start factors alone along the labels; returns at what part of the size that fits best."""
    if alone is None:
        return None
    assert isinstance(model, FactorModel)  # noqa: S101
    return start_factors(model, *alone, prepared.validator, prepared.start_size)


def _check_objective(name: str, objective: Objective, models: Learners) -> None:
    """Raise `TrainingError` for steps that cannot be taken."""
    steps = objective.steps
    unknown = [one for step in steps for one in step.trained if one not in models.by_name]
    if unknown:
        raise TrainingError(f"a step of {name} trains {unknown[0]!r}; it has {', '.join(models.by_name)}")
    if [step.name for step in steps if "prediction" in step.trained] != ["loss"] or not all(
        one.times > 0 for one in steps
    ):
        raise TrainingError(f"{name} must have one step that trains 'prediction', named 'loss', and take each step")


def _check_weights(name: str, objective: Objective, data: TrainingData) -> None:
    """Raise `TrainingError` for weights that rows cannot have."""
    if isinstance(objective, PseudoLabels):
        for batch in data.row_parts():
            _check_weights_of(name, objective.row_weights(batch), len(batch.users))


def _check_weights_of(name: str, weights: Any, rows: int) -> None:
    right = isinstance(weights, Tensor) and weights.shape in ((), (rows,))
    if not right or not bool(torch.isfinite(weights).all()) or bool((weights < 0).any()):
        got = f"of shape {tuple(weights.shape)}" if isinstance(weights, Tensor) else type(weights).__name__
        raise TrainingError(
            f"row_weights of {name} must be a tensor of finite numbers of at least 0, one or one a row; got {got}"
        )


def _learners(
    settings: TrainingSettings, specs: Mapping[str, ModelSpec], prepared: Preparation, rows: float
) -> dict[str, Learner]:
    """Build all models, in the order of their names."""
    data = prepared.data

    def built(spec: ModelSpec) -> Model:
        return build_model(
            settings.model if spec.kind is None else spec.kind,
            data.shape,
            settings.dim,
            constants=settings.constants,
            side=prepared.side,
            random=data.generator(0, spec.stream),
        )

    def learner(spec: ModelSpec) -> Learner:
        model = prepared.head.model(spec.make() if spec.make is not None else built(spec)).to(data.device)
        spec.start(model, data)
        return Learner(model, settings.penalties(spec.penalty), settings.learning_rate, rows)

    return {name: learner(spec) for name, spec in ({"prediction": ModelSpec(0)} | dict(specs)).items()}


def _insist_on_minimum(settings: TrainingSettings, penalty: float, bound: float, has_factors: bool) -> None:
    """Raise where the loss may have no minimum, and no rows are held out to stop on the way down."""
    if settings.validation > 0 or bound == 0:
        return
    remedy = "or hold rows out, so that the best state can be kept (validation)"
    if has_factors and penalty < bound:
        raise NoMinimumError(
            f"with penalty_factors={penalty:g} the loss of {settings.name} may have no minimum: "
            f"take at least {bound:.3g}, {remedy}"
        )
    if settings.penalties().least_of_constants_and_features == 0:
        raise NoMinimumError(
            f"without penalties of constants and features the loss of {settings.name} may have no minimum: "
            f"take some above 0, {remedy}"
        )


def _report(
    settings: TrainingSettings, prepared: Preparation, solver: str, outcome: Outcome, bound: float, penalty: float
) -> TrainingReport:
    return TrainingReport(
        method=settings.name,
        parameters=settings.savable_parameters,
        solver=solver,
        history=outcome.history,
        stopped_because=outcome.reason,
        best_epoch=outcome.best_epoch,
        validation_error=outcome.best_value,
        validation_estimator=None if prepared.validator is None else prepared.validator.estimator.name,
        penalty_bound=bound,
        penalty_factors=penalty,
        start_size=None,
    )


def _fitted(prepared: Preparation, models: Learners, rates: KnownNoise | None, report: TrainingReport) -> Fit:
    """Keep the models and how they came about; optimisers and the rows' tensors are let go of."""
    data, log = prepared.data, prepared.log
    trained = {name: learner.model.cpu().eval() for name, learner in models.by_name.items()}
    cold_users, cold_items = (side.cpu() for side in data.cold)
    trained["prediction"].forget_cold(cold_users, cold_items)
    for parameter in (one for model in trained.values() for one in model.parameters()):
        parameter.grad, parameter.data = None, parameter.data.contiguous()
    cold = (
        np.isin(np.arange(log.n_users), cold_users.numpy()),
        np.isin(np.arange(log.n_items), cold_items.numpy()),
    )
    model, head = prepared.head.trained(trained["prediction"])
    return Fit(Recommender.of(model, log, cold, rates, report, head), trained)
