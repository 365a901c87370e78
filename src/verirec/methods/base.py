"""What all methods share: parameters, what a method writes and gets, and fitting."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, Self

import numpy as np
import torch
from torch import Tensor

from verirec.checks import one_of
from verirec.data.cells import CellValues
from verirec.data.feedback_log import FeedbackLog
from verirec.data.splits import split
from verirec.estimation.catalogue import ESTIMATORS
from verirec.estimation.inputs import Rates, checked_rates, judgeable, refuse_weights
from verirec.exceptions import NoiseRateError, NoMinimumError, ParameterError
from verirec.formatting import short
from verirec.methods.fitted import Fitted
from verirec.methods.parameters import Limits, Parameters
from verirec.methods.setting import Setting
from verirec.methods.side import side_information
from verirec.models import Model, ModelKind, Penalties, build_model
from verirec.models.factors import SideInformation
from verirec.nuisance.noise_rates import AuditSample, rates_from_audit
from verirec.nuisance.propensities import Propensities, as_propensities
from verirec.randomness import RandomState, same_state
from verirec.training.bounds import least_factor_penalty
from verirec.training.learner import Learner
from verirec.training.loop import Plan, train
from verirec.training.losses import LOSSES, Plain
from verirec.training.stopping import HeldOut
from verirec.training.task import Batch, Task
from verirec.training.threads import one_thread, seeded, work_threads

STEPS_BETWEEN: Final = 50
"""Steps that pass at least between two judgements: on a small log an epoch is a few milliseconds."""


@dataclass(kw_only=True, eq=False, repr=False)
class Method(Parameters, Fitted, ABC):
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
        Precisions of normal priors: of each kind of parameter half the squares times its penalty, divided by the number
        of rows (by what they are worth, where they are weighted), is added to the mean loss of a pair. A penalty of 4
        stands for parameters of about 1/2, whatever the size of the log.
    solver
        "sweep": each user's and each item's parameters improved in turn, without a learning rate, by quadratics that
        lie above the loss (`verirec.training.sweeps`); for many methods, with cross-entropy and models "mf",
        "constants" and "features". "gradient": Adam, for all. "auto": sweeps where they fit and the penalty makes sure
        of a minimum (`penalty_bound_`).
    learning_rate, batch_size, grid_cells
        Of Adam; rows of the log and cells of the grid in a batch.
    epochs, patience
        At most so many passes over the log, and judgements without a better one after which training stops (`None`:
        never).
    validation
        Share of the rows that are held out to judge by; 0 for none.
    stop_on
        The estimator of the held-out error. By default ome-dr where there are noise rates (those that training starts
        from, where it learns them), and else the method's own kind.
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
    sweeps: ClassVar[bool] = False
    """Whether it can be trained by sweeps."""
    needs_all_propensities: ClassVar[bool] = False
    """Whether its loss has propensities of pairs that nobody rated."""
    limits: ClassVar[Limits] = {
        "dim": (1, 10_000),
        "batch_size": (1, 10**9),
        "grid_cells": (1, 10**9),
        "epochs": (1, 10**9),
        "patience": (1, 10**9),
        "penalty_factors": (0, 1e9),
        "penalty_constants": (0, 1e9),
        "penalty_features": (0, 1e9),
        "learning_rate": (1e-12, 1e3),
        "validation": (0, 0.99),
    }

    model: ModelKind | Any = "mf"
    dim: int = 8
    constants: bool = True
    loss: Literal["log", "squared"] = "log"
    penalty_factors: float = 8.0
    penalty_constants: float = 4.0
    penalty_features: float = 10.0
    solver: Literal["auto", "gradient", "sweep"] = "auto"
    learning_rate: float = 0.01
    batch_size: int = 2_048
    grid_cells: int = 16_384
    epochs: int = 500
    patience: int | None = 8
    validation: float = 0.1
    stop_on: str | None = None
    random_state: RandomState = 0
    device: str = "cpu"

    # What a method writes

    @abstractmethod
    def prediction_loss(self, batch: Batch) -> Tensor:
        """Return the loss of the prediction model on a batch."""

    def build(self) -> None:
        """Make what is trained besides the prediction model."""

    def start(self, threads: int) -> None:
        """Get ready to train, once all is built; large work may use so many threads."""

    def begin_epoch(self, epoch: int) -> None:
        """Get ready for an epoch."""

    def passes(self, epoch: int) -> Iterator[dict[str, Tensor]]:
        """Train for an epoch, a batch at a time; gives losses by name."""
        # Modules of a user's own may draw from torch's global numbers, as dropout does: the same ones each time.
        with seeded(self.task_.seed, epoch):
            for batch in self.task_.batches(epoch):
                yield self.step(batch)

    @property
    def passes_between(self) -> int:
        """Steps that pass at least between two judgements."""
        return STEPS_BETWEEN

    @property
    def settled(self) -> bool:
        """Whether more training would change nothing: never, by random batches."""
        return False

    def step(self, batch: Batch) -> dict[str, Tensor]:
        """Train on a batch, in the order of the method's paper."""
        loss = self.prediction_.minimise(self.prediction_loss(batch))
        self.after_prediction(batch)
        return {"loss": loss}

    def after_prediction(self, batch: Batch) -> None:
        """Do what is to be done between the prediction model's step and those of others."""

    def starting_rates(
        self, log: FeedbackLog, fitted: Propensities, rates: Rates | None
    ) -> tuple[Rates | None, CellValues | None]:
        """Return the noise rates to start from (those given) and a label model where they are learnt: none."""
        return rates, None

    def beyond_labels(self) -> Tensor | None:
        r"""Return by how much the log loss's targets lie outside of 0 and 1, per pair of the grid, shape (n,).

        They are what the loss can fall without end by: see `verirec.training.bounds`. `None` where none do.
        """
        return None

    def more_state(self) -> dict[str, Tensor]:
        """Return what else a checkpoint needs."""
        return {}

    def load_more(self, state: dict[str, Tensor]) -> None:
        """Take it back."""

    def facts(self) -> dict[str, float]:
        """Return what the history should show of an epoch besides losses."""
        return {}

    # What it gets

    @property
    def f(self) -> Model:
        """The prediction model."""
        return self.prediction_.model

    def over_grid(self, model: Model, batch: Batch) -> Tensor:
        """Return a model's logits on a batch's rectangle."""
        return model.grid(batch.grid_users, batch.grid_items)

    def over_log(self, values: Tensor) -> Tensor:
        r"""Return :math:`|D|^{-1} \sum_O` of values of a batch's rows: their mean, times the density."""
        return self.task_.density * values.mean()

    def learner(self, stream: int, *, model: Any = None, penalty: float = 1.0) -> Learner:
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
            self.dim,
            constants=self.constants,
            side=self.side_,
            random=self.task_.generator(0, stream),
        ).to(self.task_.device)
        penalties = Penalties(
            constants=penalty * self.penalty_constants,
            factors=penalty * self.penalty_factors,
            features=penalty * self.penalty_features,
        )
        return Learner(built, penalties, self.learning_rate, self._rows)

    @property
    def _rows(self) -> float:
        return self.task_.effective_rows if self.uses_propensities else float(len(self.task_.log))

    def learners(self) -> dict[str, Learner]:
        """Return all that is trained, by name."""
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
        with self._or_as_before():
            self._forget()
            setting = self.make_ready(log, noise_rates=noise_rates, audit=audit, propensities=propensities)
            self.train_on(setting, Plan(self.epochs, _checkpoint_file(checkpoint), resume, "", progress))
        return self

    @contextmanager
    def _or_as_before(self) -> Iterator[None]:
        """Leave what was trained before as it was, if training fails."""
        before = dict(vars(self))
        try:
            yield
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    def make_ready(
        self, log: FeedbackLog, *, noise_rates: Rates | None, audit: AuditSample | None, propensities: Any
    ) -> Setting:
        """Check all that `fit` was given, find propensities and noise rates, and hold rows out."""
        self.check_parameters()
        if noise_rates is not None and audit is not None:
            raise ParameterError("give noise_rates or an audit: one of the two")
        rates = checked_rates(noise_rates, judgeable(log))
        refuse_weights(log, [f"training by {self.name}"])
        fitted = as_propensities(propensities, log)
        if self.needs_all_propensities:
            fitted.require_everywhere(f"training by {self.name}")
        if audit is not None:
            rates = rates_from_audit(log, audit, fitted)[0]
        seed, device = same_state(self.random_state), _device(self.device)
        train_log, rest = self._parts(log, seed)
        share = len(train_log) / len(log)
        rates, label_model = self.starting_rates(train_log, _part(fitted, share), rates)
        held_out = None if rest is None else self._judge_of(rest, _part(fitted, 1 - share), rates, seed)
        cells = self.grid_cells if self.needs_grid else 0
        task = Task(train_log, _part(fitted, share), self.batch_size, cells, seed, device)
        side = side_information(log, fitted, device) if self._takes_features else SideInformation()
        return Setting(log, fitted, rates, held_out, task, side, label_model, work_threads())

    def train_on(
        self,
        setting: Setting,
        plan: Plan,
        *,
        start: Mapping[str, Model] | None = None,
        patience: int | None = None,
    ) -> None:
        """Build all models and train them.

        Parameters
        ----------
        setting
            What `make_ready` made.
        plan
            How long, and where checkpoints go.
        start
            Models to start from, by name; by default new ones.
        patience
            By default the method's own.
        """
        held_out = setting.held_out
        self.judge_ = None if held_out is None else held_out.estimator.name
        self._remember(setting.log, setting.task.log, setting.propensities)
        self.parameters_ = self.savable_parameters()
        self.task_, self.noise_rates_, self.side_ = setting.task, setting.rates, setting.side
        self.h_, self.solver_ = setting.label_model, "gradient"
        with one_thread():
            # What models start from must not depend on the number of threads.
            self.errors_ = self.make_errors()
            self.prediction_ = self.learner(0)
            self.build()
            self._guard_penalty(setting)
            self.start(setting.threads)
        for name, learner in self.learners().items():
            if start is not None:
                learner.model.load_state_dict(start[name].state_dict())
        if plan.checkpoint is not None:
            plan = replace(plan, key=self._key(setting))
        patience = self.patience if patience is None else patience
        self._finish(train(self, self.f, self.task_, held_out, patience, plan))

    @property
    def _takes_features(self) -> bool:
        kinds = (getattr(self, name, None) for name in ("model", "imputation_model", "propensity_model"))
        return any(isinstance(kind, str) and kind == "features" for kind in kinds)

    def _guard_penalty(self, setting: Setting) -> None:
        """Find the penalty that makes sure that the loss has a minimum; without rows to judge by, insist on it."""
        self._refuse_rates_that_do_not_fit()
        self.penalty_bound_ = setting.least_penalty(self._least_penalty)
        if self.validation > 0 or self.penalty_bound_ == 0:
            return
        remedy = "or hold rows out, so that the best state can be kept (validation)"
        if getattr(self.f, "dim", 0) and self.penalty_factors < self.penalty_bound_:
            raise NoMinimumError(
                f"with penalty_factors={self.penalty_factors:g} the loss of {self.name} may have no minimum: take at "
                f"least {self.penalty_bound_:.3g}, {remedy}"
            )
        if min(self.penalty_constants, self.penalty_features) == 0:
            raise NoMinimumError(
                f"without penalties of constants and features the loss of {self.name} may have no minimum: take some "
                f"above 0, {remedy}"
            )

    def _least_penalty(self) -> float:
        beyond = self.beyond_labels() if self.loss == "log" and not self.errors_.bounded else None
        return 0.0 if beyond is None else least_factor_penalty(self.task_.log, beyond.cpu().numpy(), self._rows)

    def _refuse_rates_that_do_not_fit(self) -> None:
        """Raise where corrected labels are above 1 or below 0 on average: the loss then falls without end."""
        if self.errors_.bounded:
            return
        labels = self.errors_.labels(self.task_.whole)
        weights = self.task_.weights if self.uses_propensities else torch.ones(len(labels))
        share = float((weights * labels).sum(dtype=torch.float64) / weights.sum(dtype=torch.float64))
        # Labels of one class alone may come out beyond the last digit of float32.
        if not -1e-6 <= share <= 1 + 1e-6:
            raise NoiseRateError(
                f"with these noise rates a share of {share:.3g} of the pairs would be liked: they do not fit this log"
            )

    def make_errors(self) -> Plain:
        """Make what turns logits and labels into errors."""
        return Plain(LOSSES[self.loss]())

    def _parts(self, log: FeedbackLog, seed: int) -> tuple[FeedbackLog, FeedbackLog | None]:
        """Hold rows out to judge by."""
        if self.validation == 0:
            return log, None
        parts = split(log, self.validation, by="random", random_state=np.random.default_rng([seed, 3]))
        if any(part.labels.min(initial=1) == part.labels.max(initial=0) for part in parts):
            raise ParameterError(
                f"validation={self.validation:g} leaves rows of one class on a side of this log's {len(log):,}: take "
                "more of them, another random_state, or 0 to hold none out"
            )
        return parts

    def _judge_of(self, rest: FeedbackLog, fitted: Propensities, rates: Rates | None, seed: int) -> HeldOut:
        """Make of held-out rows what judges the model."""
        name = self.stop_on or ("ome-dr" if rates is not None else self.judged_by)
        if ESTIMATORS[name].noise_corrected and rates is None:
            raise ParameterError(f"stop_on={name!r} needs noise_rates or an audit")
        return HeldOut(rest, fitted, name, rates, self.loss, seed)

    def check_parameters(self) -> None:
        """Raise `ParameterError` for a parameter that is not what it must be; `fit` does so first."""
        self.check_numbers()
        one_of("loss", self.loss, tuple(LOSSES))
        one_of("solver", self.solver, ("auto", "gradient", "sweep"))
        if self.solver == "sweep" and not self.sweeps:
            raise self.no_sweeps(f"{self.name} has no sweeps")
        if self.stop_on is not None:
            one_of(
                "stop_on",
                self.stop_on,
                tuple(name for name, one in ESTIMATORS.items() if not one.needs_all_propensities),
            )

    @staticmethod
    def no_sweeps(why: str) -> ParameterError:
        """Make the error of a method that cannot be trained by sweeps, and name those that can."""
        from verirec.methods.catalogue import catalogue

        able = ", ".join(name for name, one in catalogue.items() if one.sweeps)
        return ParameterError(f'solver="sweep": {why}; take "auto" or "gradient". Methods with sweeps are {able}')

    def _key(self, setting: Setting) -> str:
        """Return a checksum of all that decides how training goes."""
        log, fitted, seed = setting.log, setting.propensities, setting.task.seed
        rates = repr(setting.rates)
        facts = [self.name, self.plain_parameters(), log.fingerprint, log.n_users, log.n_items, rates, seed]
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
        digest.update(fitted.at(log.users, log.items).astype(np.float32).tobytes())
        for features in (log.user_features, log.item_features):
            digest.update(b"" if features is None else features.tobytes())
        return digest.hexdigest()


def _checkpoint_file(given: object) -> Path | None:
    if given is None:
        return None
    if not isinstance(given, str | Path) or not str(given) or "\0" in str(given):
        raise ParameterError(f"checkpoint must be the path of a file; got {short(given)}")
    file = Path(given)
    if file.exists() and not file.is_file():
        raise ParameterError(f"checkpoint must be the path of a file; {str(given)!r} is something else")
    return file


def _device(name: str) -> torch.device:
    try:
        found = torch.zeros(1, device=name)
        float(found.sum())
        return found.device
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        raise ParameterError(f"device={name!r} is not to be had: {str(error).splitlines()[0]}") from None


def _part(fitted: Propensities, share: float) -> Propensities:
    return fitted if share == 1 else fitted.thinned(share)
