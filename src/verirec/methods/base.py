"""What all methods share: parameters, fitting, and what a fitted one can do."""

from __future__ import annotations

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from verirec.checks import one_of, real_number, whole_number
from verirec.data.feedback_log import FeedbackLog
from verirec.data.splits import split
from verirec.estimators.catalogue import ESTIMATORS
from verirec.estimators.inputs import Rates, checked_rates, judgeable, refuse_weights
from verirec.exceptions import NoiseRateError, ParameterError
from verirec.losses import NoiseRates
from verirec.methods.fitted import Fitted
from verirec.methods.side import side_information
from verirec.models import Model, ModelKind, Penalties, build_model
from verirec.nuisances.noise_rates import AuditSample, rates_from_audit
from verirec.nuisances.propensities import Propensities, as_propensities
from verirec.randomness import RandomState, same_state
from verirec.training.bounds import least_factor_penalty
from verirec.training.learner import Learner
from verirec.training.loop import Plan, train
from verirec.training.losses import LOSSES, Plain
from verirec.training.stopping import HeldOut
from verirec.training.task import Batch, Task


@dataclass(kw_only=True, eq=False, repr=False)
class Method(Fitted, ABC):
    """A way to train a recommender: stores its parameters, and trains in `fit`.

    Parameters
    ----------
    model
        "mf", "constants", "features", "ncf", a `torch.nn.Module` of (users, items) that gives logits, or a function of
        (n_users, n_items) that makes one.
    dim
        Number of factors.
    constants
        Whether users, items and all have a constant; the paper's form has none.
    loss
        "log" or "squared".
    penalty_factors, penalty_constants, penalty_features
        Strengths: half of each times the mean square of a user's and of an item's factors or constants, and times the
        squares of feature weights, is added to the mean loss of a pair.
    learning_rate, batch_size, grid_cells
        Of Adam; rows of the log and cells of the grid in a batch.
    epochs, patience
        At most so many passes over the log, and judgements without a better one after which training stops (`None`:
        never).
    validation
        Share of the rows that are held out to judge by; 0 for none.
    stop_on
        The estimator of the held-out error. By default ome-dr where noise rates are given or audited, and else the
        method's own kind.
    random_state, device
        Seed; where to train.
    """

    name: ClassVar[str]
    paper: ClassVar[str]
    summary: ClassVar[str]
    needs_grid: ClassVar[bool] = False
    """Whether its loss looks at pairs that nobody rated."""
    uses_propensities: ClassVar[bool] = True
    """Whether its loss has propensities in it; all may be judged with them."""
    needs_rates: ClassVar[bool] = False
    """Whether it corrects for noise."""
    judged_by: ClassVar[str] = "naive"
    """The estimator that stops it where noise rates are not known."""
    limits: ClassVar[dict[str, tuple[float, float]]] = {
        "dim": (1, 10**6),
        "batch_size": (1, 10**9),
        "grid_cells": (1, 10**9),
        "epochs": (1, 10**9),
        "patience": (1, 10**9),
        "penalty_factors": (0, math.inf),
        "penalty_constants": (0, math.inf),
        "penalty_features": (0, math.inf),
        "learning_rate": (1e-12, 1e3),
        "validation": (0, 0.99),
    }
    """Of number parameters, both ends allowed; a class's own come on top of those it inherits."""

    model: ModelKind | Any = "mf"
    dim: int = 8
    constants: bool = True
    loss: Literal["log", "squared"] = "log"
    penalty_factors: float = 0.15
    penalty_constants: float = 0.05
    penalty_features: float = 0.001
    learning_rate: float = 0.01
    batch_size: int = 2_048
    grid_cells: int = 4_096
    epochs: int = 500
    patience: int | None = 8
    validation: float = 0.1
    stop_on: str | None = None
    random_state: RandomState = 0
    device: str = "cpu"

    # What a method writes

    @abstractmethod
    def prediction_loss(self, batch: Batch) -> Tensor:
        """Give the loss of the prediction model on a batch."""

    def build(self) -> None:
        """Make what is trained besides the prediction model."""

    def begin_epoch(self, epoch: int) -> None:
        """Get ready for an epoch."""

    def step(self, batch: Batch) -> dict[str, Tensor]:
        """Train on a batch, in the order of the method's paper."""
        loss = self.prediction_.minimise(self.prediction_loss(batch))
        self.after_prediction(batch)
        return {"loss": loss}

    def after_prediction(self, batch: Batch) -> None:
        """Do what is to be done between the prediction model's step and those of others."""

    def starting_rates(self, log: FeedbackLog, fitted: Propensities, rates: Rates | None) -> Rates | None:
        """Give the noise rates to start from: those given, if any."""
        return rates

    def beyond_labels(self) -> npt.NDArray[np.float64] | None:
        r"""Give by how much the log loss's targets lie outside of 0 and 1, per pair of the grid, shape (n,).

        They are what the loss can fall without end by: see `verirec.training.bounds`. `None` where none do.
        """
        return None

    def more_state(self) -> dict[str, Tensor]:
        """Give what else a checkpoint needs."""
        return {}

    def load_more(self, state: dict[str, Tensor]) -> None:
        """Take it back."""

    def facts(self) -> dict[str, float]:
        """Give what the history should show of an epoch besides losses."""
        return {}

    # What it gets

    @property
    def f(self) -> Model:
        """The prediction model."""
        return self.prediction_.model

    def over_grid(self, model: Model, batch: Batch) -> Tensor:
        """Give a model's logits on a batch's rectangle."""
        return model.grid(batch.grid_users, batch.grid_items)

    def over_log(self, values: Tensor) -> Tensor:
        r"""Give :math:`|D|^{-1} \sum_O` of values of a batch's rows: their mean, times the density."""
        return self.task_.density * values.mean()

    def learner(self, stream: int, *, model: Any = None, penalty: float = 1.0, dim: int | None = None) -> Learner:
        """Make another model to train.

        Parameters
        ----------
        stream
            A number of its own, of the random numbers it starts from.
        model
            Kind, as the parameter `model`; by default the same.
        penalty
            All penalties are multiplied by it.
        """
        built = build_model(
            self.model if model is None else model,
            self.task_.shape,
            self.dim if dim is None else dim,
            constants=self.constants,
            side=self.side_,
            random=self.task_.generator(0, stream),
        ).to(self.task_.device)
        penalties = Penalties(*(penalty * one for one in self._penalties))
        return Learner(built, penalties, self.learning_rate)

    @property
    def _penalties(self) -> tuple[float, float, float]:
        return self.penalty_constants, self.penalty_factors, self.penalty_features

    def learners(self) -> dict[str, Learner]:
        """Give all that is trained, by name."""
        return {name.removesuffix("_"): one for name, one in vars(self).items() if isinstance(one, Learner)}

    # Fitting

    def fit(
        self,
        log: FeedbackLog,
        *,
        noise_rates: Rates | None = None,
        audit: AuditSample | None = None,
        propensities: Any = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        progress: Callable[[int, int, float], None] = lambda epoch, epochs, value: None,
    ) -> Self:
        """Train on a log.

        Parameters
        ----------
        log
            Of both classes.
        noise_rates, audit
            Rates, or true labels of some logged pairs that tell them. Methods that correct for noise estimate rates by
            anchors where neither is given; all others use them to judge the held-out error by.
        propensities
            As in `estimate`: fitted ones, a model, a matrix, a function; by default the log's own or a logistic model.
        checkpoint, resume
            A file that training writes as it goes; with `resume`, it goes on from there to the same result.
        progress
            Told (epoch, epochs, held-out error or NaN) after every epoch.
        """
        self.check_parameters()
        if noise_rates is not None and audit is not None:
            raise ParameterError("give noise_rates or an audit: one of the two")
        rates = checked_rates(noise_rates, judgeable(log))
        refuse_weights(log, [f"training by {self.name}"])
        fitted = as_propensities(propensities, log)
        seed = same_state(self.random_state)
        if audit is not None:
            rates = rates_from_audit(log, audit, fitted)[0]
        rates = self.starting_rates(log, fitted, rates)
        self._remember(log, fitted)
        train_log, held_out = self._parts(log, fitted, rates, seed)
        device = _device(self.device)
        cells = self.grid_cells if self.needs_grid else 0
        share = len(train_log) / len(log)
        self.task_ = Task(train_log, _part(fitted, share), self.batch_size, cells, seed, device)
        self.noise_rates_ = rates
        self.side_ = side_information(log, fitted, device) if self.model == "features" else side_information(None, None)
        self.errors_ = self.make_errors()
        self.prediction_ = self.learner(0)
        self.build()
        self._guard_penalty()
        plan = Plan(
            self.epochs,
            None if checkpoint is None else Path(checkpoint),
            resume,
            self._key(log, rates, fitted),
            progress,
        )
        outcome = train(self, self.f, self.task_, held_out, self.patience, plan)
        self._finish(outcome)
        return self

    def _guard_penalty(self) -> None:
        """Find the penalty below which the loss has no minimum; without held-out rows to stop on, refuse it."""
        labels = self.errors_.targets(self.task_)
        if labels is not None and not 0 <= labels.mean() <= 1:
            raise NoiseRateError(
                f"with these noise rates a share of {labels.mean():.3g} of the logged pairs would be liked: they do "
                "not fit this log"
            )
        beyond = self.beyond_labels() if self.loss == "log" else None
        self.penalty_bound_ = 0.0 if beyond is None else least_factor_penalty(self.task_.log, beyond)
        if getattr(self.f, "dim", 0) and self.penalty_factors < self.penalty_bound_ and self.validation == 0:
            raise ParameterError(
                f"with penalty_factors={self.penalty_factors:g} the loss of {self.name} has no minimum: take at least "
                f"{self.penalty_bound_:.3g}, or hold rows out, so that the best state can be kept (validation)"
            )

    def make_errors(self) -> Plain:
        """Make what turns logits and labels into errors."""
        return Plain(LOSSES[self.loss]())

    def _parts(
        self, log: FeedbackLog, fitted: Propensities, rates: Rates | None, seed: int
    ) -> tuple[FeedbackLog, HeldOut | None]:
        """Hold rows out, and make of them what judges the model."""
        if self.validation == 0:
            return log, None
        train_log, rest = split(log, self.validation, by="random", random_state=np.random.default_rng([seed, 3]))
        judgeable(train_log), judgeable(rest)
        name = self.stop_on or ("ome-dr" if rates is not None else self.judged_by)
        if ESTIMATORS[name].denoised and rates is None:
            raise ParameterError(f"stop_on={name!r} needs noise_rates or an audit")
        return train_log, HeldOut(rest, _part(fitted, len(rest) / len(log)), name, rates, self.loss, seed)

    def check_parameters(self) -> None:
        """Raise `ParameterError` for a parameter that is not what it must be; `fit` does so first."""
        one_of("loss", self.loss, tuple(LOSSES))
        limits = {
            name: ends for kind in reversed(type(self).__mro__) for name, ends in vars(kind).get("limits", {}).items()
        }
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(one.default, bool):
                one_of(one.name, value, (True, False))
            elif one.name in limits and not (value is None and one.name == "patience"):
                least, most = limits[one.name]
                if isinstance(one.default, int):
                    whole_number(one.name, value, least=int(least), most=int(most))
                else:
                    real_number(one.name, value, above=least, below=most, closed=True)
        if self.stop_on is not None:
            one_of("stop_on", self.stop_on, tuple(ESTIMATORS))
            if ESTIMATORS[self.stop_on].everywhere:
                raise ParameterError(f"stop_on={self.stop_on!r} is too slow to judge by; take dr, snips, ips or naive")

    def _key(self, log: FeedbackLog, rates: Rates | None, fitted: Propensities) -> str:
        """Give a checksum of all that decides how training goes."""
        of_rows = fitted.at(log.users, log.items).astype(np.float32).tobytes()
        parts = [self.name, json.dumps(self._plain_parameters(), sort_keys=True), str(log.fingerprint), repr(rates)]
        return hashlib.sha256("|".join(parts).encode() + of_rows).hexdigest()

    def _plain_parameters(self) -> dict[str, Any]:
        """Give the parameters as JSON can hold them; arrays and modules by their checksums."""
        return {name: _plain(value) for name, value in self.get_params().items()}

    def savable_parameters(self) -> dict[str, Any]:
        """Give the parameters that a file can hold; objects, such as modules of one's own, are left out."""
        return {name: value for name, value in self.get_params().items() if isinstance(value, _PLAIN)}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Give the parameters by name, as scikit-learn's `clone` wants them."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters."""
        known = self.get_params()
        for name, value in parameters.items():
            if name not in known:
                raise ParameterError(f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(known)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = {one.name: one.default for one in fields(self)}
        changed = [f"{name}={value!r}" for name, value in self.get_params().items() if value != defaults[name]]
        return f"{type(self).__name__}({', '.join(changed)})"


def _device(name: str) -> torch.device:
    try:
        return torch.zeros(0, device=name).device
    except (RuntimeError, AssertionError, TypeError) as error:
        raise ParameterError(f"device={name!r} is not to be had: {str(error).splitlines()[0]}") from None


def _part(fitted: Propensities, share: float) -> Propensities:
    return fitted if share == 1 else fitted.thinned(share)


_PLAIN: Final = (bool, int, float, str, type(None))
"""What JSON holds as it is."""


def _plain(value: Any) -> Any:
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, NoiseRates):
        return repr(value)
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, np.ndarray):
        return f"{name} {hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}"
    if isinstance(value, torch.nn.Module):
        parts = [one.detach().cpu().numpy().tobytes() for one in value.state_dict().values()]
        return f"{name} {hashlib.sha256(b''.join(parts)).hexdigest()}"
    return name
