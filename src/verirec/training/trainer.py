"""The only loop: epochs, validation, patience, checkpoints."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from verirec.checks import truth_value
from verirec.engine.base import Engine
from verirec.engine.choice import running_on
from verirec.exceptions import DivergenceWarning, TrainingError, warn_caller
from verirec.progress import doing
from verirec.training.checkpoints import read_tensors, whole, write_tensors
from verirec.training.correction import NoiseCorrection
from verirec.training.data import Batch
from verirec.training.schedule import RateSchedule
from verirec.training.solvers import Solver
from verirec.training.threads import one_thread
from verirec.training.validation import Patience, Validator

_RUNAWAY: Final = 1e4
_ADVICE: Final = "lower learning_rate, raise the penalties or, of methods that have it, take correction='forward'"


@dataclass(frozen=True)
class Plan:
    """How long to train, and where checkpoints go.

    Parameters
    ----------
    epochs
        At most.
    checkpoint
        A file, or `None` for none.
    resume
        Whether to go on from that file, if it is there.
    key
        What a checkpoint must have been made with to be gone on from.
    progress
        Told (epoch, epochs, validation error or NaN).
    engine
        Whose workers have the rows; `None` for this process.
    """

    epochs: int
    checkpoint: Path | None = None
    resume: bool = False
    key: str = ""
    progress: Callable[[int, int, float], None] = lambda epoch, epochs, value: None
    engine: Engine | None = None


@dataclass
class Outcome:
    """How training went.

    Parameters
    ----------
    history
        One entry an epoch: mean losses, facts, and the validation error where it was estimated.
    reason
        Why it stopped, in words.
    best_epoch, best_value
        Where the model is from that was kept.
    """

    history: list[dict[str, Any]] = field(default_factory=list)
    reason: str = ""
    best_epoch: int = 0
    best_value: float = float("nan")


class Trainer:
    """Trains models by a solver, and leaves the prediction model in its best state.

    Parameters
    ----------
    name
        Of the method, for messages.
    solver
        With its objective and its models.
    schedule
        Of the noise rates.
    validator
        Judges the prediction model; without it the last state is kept.
    cold
        Positions of users and items without rows.
    patience
        Validations without a better one after which training stops; `None` for never.
    plan
        How long, and where checkpoints go.
    """

    def __init__(
        self,
        name: str,
        solver: Solver,
        schedule: RateSchedule,
        validator: Validator | None,
        cold: tuple[Tensor, Tensor],
        patience: int | None,
        plan: Plan,
    ) -> None:
        self.name, self.solver, self.schedule, self.validator, self.cold = name, solver, schedule, validator, cold
        self.patience, self.plan, self.outcome = Patience(patience), plan, Outcome()
        self.models, self.model = solver.models, solver.models["prediction"]
        self.done = self.since_validated = 0
        self.best: dict[str, Tensor] = {}

    def run(self) -> Outcome:
        """Train until the epochs are over, patience is, or there is nothing left to gain."""
        # Workers that have the rows may have no time for anything else: validation is done here.
        with one_thread(), running_on(None if self.plan.engine is None else "serial"):
            self._resume()
            if self.outcome.reason == "":
                # The longest of all: code is compiled, workers get their rows. What comes after it is told by it.
                with doing(f"Epoch {self.done + 1}"):
                    self._epoch()
            while self.outcome.reason == "":
                self._epoch()
            self._keep_best()
        self.schedule.finish()
        return self.outcome

    def _epoch(self) -> None:
        """Train for an epoch, validate if it is time to, and decide whether to go on."""
        entry = self._train_epoch()
        converged = self.solver.converged and not self.schedule.waiting
        last = self.done >= self.plan.epochs or converged
        if not all(math.isfinite(value) for value in entry.values()) or abs(entry["loss"]) > _RUNAWAY:
            self._diverged()
        else:
            validated = self.since_validated >= self.solver.validation_interval or last
            if validated:
                self._validate(entry)
            if self.outcome.reason == "" and last:
                self.outcome.reason = "converged" if converged else f"all {self.plan.epochs} epochs"
            if self.plan.checkpoint is not None and (validated or self.solver.long_epochs):
                self._save(self.plan.checkpoint)
        self.plan.progress(self.done, self.plan.epochs, entry.get("validation_error", math.nan))

    def _train_epoch(self) -> dict[str, Any]:
        """Train for an epoch; returns its entry in the history."""
        self.models.epoch = self.done
        self.schedule.begin_epoch(self.done, self.model)
        self.solver.correct(self.schedule.correction)
        sums: dict[str, Tensor] = {}
        count = 0
        for losses in self.solver.train_epoch(self.done, self._after_prediction):
            count += 1
            for name, value in losses.items():
                sums[name] = sums[name] + value if name in sums else value
        self.done += 1
        self.since_validated += count
        entry = {name: float(total) / count for name, total in sums.items()}
        entry |= self.solver.objective.facts(self.models) | self.schedule.facts()
        self.outcome.history.append(entry)
        return entry

    def _after_prediction(self, make_batch: Callable[[], Batch]) -> NoiseCorrection:
        self.schedule.after_prediction(self.model, make_batch)
        return self.schedule.correction

    def _validate(self, entry: dict[str, Any]) -> None:
        self.since_validated = 0
        if self.validator is None:
            return
        self.model.eval()
        # Terms over the grid train users and items without ratings too: what they learn is nobody's.
        self.model.forget_cold(*self.cold)
        entry["validation_error"] = self.validator(self.model)
        self.model.train()
        if self.patience.better(entry["validation_error"], self.done):
            self.best = {name: value.clone() for name, value in self.model.state_dict().items()}
        if self.patience.over:
            self.outcome.reason = f"no better validation error for {self.patience.waited} validations"

    def _diverged(self) -> None:
        if not self.best:
            raise TrainingError(
                f"{self.name} diverged in epoch {self.done}, before any state was worth keeping: {_ADVICE}"
            )
        self.outcome.reason = f"diverged in epoch {self.done}"
        warn_caller(
            f"{self.name} diverged in epoch {self.done}; the state of epoch {self.patience.best_epoch} is kept. "
            f"To train on: {_ADVICE}",
            DivergenceWarning,
        )

    def _keep_best(self) -> None:
        """Put the best state back, if any was validated."""
        if self.best:
            self.model.load_state_dict(self.best)
        if not all(bool(torch.isfinite(one).all()) for one in self.model.parameters()):
            raise TrainingError(f"{self.name} diverged in epoch {self.done}: {_ADVICE}")
        self.outcome.best_epoch = self.patience.best_epoch if self.best else self.done
        self.outcome.best_value = self.patience.best if self.best else math.nan

    def _save(self, path: Path) -> None:
        parts = {"best": self.best, "state": self.models.state, "schedule": self.schedule.state()}
        parts |= {f"learner.{name}": learner.state() for name, learner in self.models.by_name.items()}
        tensors = {f"{part}.{name}": value for part, values in parts.items() for name, value in values.items()}
        facts = {
            "kind": "checkpoint",
            "key": self.plan.key,
            "done": self.done,
            "since_validated": self.since_validated,
            "reason": self.outcome.reason,
            "history": self.outcome.history,
            "patience": asdict(self.patience),
        }
        write_tensors(path, tensors, facts)

    def _resume(self) -> None:
        """Go on from the checkpoint, if that is wanted and there is one."""
        path = self.plan.checkpoint
        if not truth_value("resume", self.plan.resume) or path is None or not path.exists():
            return
        tensors, facts = read_tensors(path)
        if facts.get("key") != self.plan.key:
            raise TrainingError(
                f"{path} is of another run: method, parameters, log, noise rates, propensities and versions must be "
                "the same"
            )
        with whole(path):
            self.done, self.outcome.history, self.outcome.reason = facts["done"], facts["history"], facts["reason"]
            self.since_validated, self.patience = facts["since_validated"], Patience(**facts["patience"])
            self.best = _under("best.", tensors)
            for name, value in _under("state.", tensors).items():
                self.models.state[name] = value.to(self.models.state[name].device)
            self.schedule.load(_under("schedule.", tensors))
            for name, learner in self.models.by_name.items():
                learner.load(_under(f"learner.{name}.", tensors))


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
