"""The only loop: epochs, judging, stopping, checkpoints."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

import torch
from torch import Tensor

from verirec.exceptions import DivergenceWarning, TrainingError, warn_caller
from verirec.models import Model
from verirec.training.checkpoints import read_tensors, write_tensors
from verirec.training.learner import Learner
from verirec.training.stopping import HeldOut, Patience
from verirec.training.task import Task
from verirec.training.threads import one_thread

_RUNAWAY: Final = 1e4
_ADVICE: Final = "lower learning_rate, raise the penalties or, of methods that have it, take correction='forward'"


class Trainable(Protocol):
    """What the loop asks of a method."""

    @property
    def name(self) -> str:
        """Its name."""

    def begin_epoch(self, epoch: int) -> None:
        """Get ready for an epoch."""

    def passes(self, epoch: int) -> Iterator[dict[str, Tensor]]:
        """Train for an epoch, a step or a sweep at a time; gives losses by name, detached."""

    @property
    def passes_between(self) -> int:
        """How many of these pass at least between two judgements: on a small log they take a few milliseconds."""

    @property
    def settled(self) -> bool:
        """Whether more training would change nothing."""

    def learners(self) -> dict[str, Learner]:
        """Return all that is trained, by name."""

    def more_state(self) -> dict[str, Tensor]:
        """Return what else a checkpoint needs."""

    def load_more(self, state: dict[str, Tensor]) -> None:
        """Take it back."""

    def facts(self) -> dict[str, float]:
        """Return what the history should show of an epoch besides losses."""


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
        Told (epoch, epochs, held-out error or NaN).
    """

    epochs: int
    checkpoint: Path | None = None
    resume: bool = False
    key: str = ""
    progress: Callable[[int, int, float], None] = lambda epoch, epochs, value: None


@dataclass
class Outcome:
    """How training went.

    Parameters
    ----------
    history
        One entry an epoch: mean losses, facts, and the held-out error where it was estimated.
    reason
        Why it stopped, in words.
    best_epoch, best_value
        Where the model is from that was kept.
    """

    history: list[dict[str, Any]] = field(default_factory=list)
    reason: str = ""
    best_epoch: int = 0
    best_value: float = float("nan")


def train(
    method: Trainable, model: Model, task: Task, held_out: HeldOut | None, patience: int | None, plan: Plan
) -> Outcome:
    """Train a method's model on a task, and leave it in its best state.

    Parameters
    ----------
    method
        Which has built its learners.
    model
        The one to be judged and kept.
    task
        Rows and batches.
    held_out
        Judges the model; without it the last state is kept.
    patience
        Judgements without a better one after which training stops; `None` for never.
    """
    run = _Run(method, model, task, held_out, Patience(patience), plan)
    with one_thread():
        run.resume()
        while run.outcome.reason == "":
            run.epoch()
        run.keep_best()
    return run.outcome


class _Run:
    def __init__(
        self, method: Trainable, model: Model, task: Task, held_out: HeldOut | None, patience: Patience, plan: Plan
    ) -> None:
        self.method, self.model, self.task, self.held_out = method, model, task, held_out
        self.patience, self.plan, self.outcome = patience, plan, Outcome()
        self.done = self.since_judged = 0
        self.best: dict[str, Tensor] = {}

    def epoch(self) -> None:
        """Train for an epoch, judge if it is time to, and decide whether to go on."""
        self.method.begin_epoch(self.done)
        sums: dict[str, Tensor] = {}
        count = 0
        for losses in self.method.passes(self.done):
            count += 1
            for name, value in losses.items():
                sums[name] = sums[name] + value if name in sums else value
        self.done += 1
        self.since_judged += count
        entry: dict[str, Any] = {name: float(total) / count for name, total in sums.items()}
        entry |= self.method.facts()
        self.outcome.history.append(entry)
        settled = self.method.settled
        last = self.done >= self.plan.epochs or settled
        if not all(math.isfinite(value) for value in entry.values()) or abs(entry["loss"]) > _RUNAWAY:
            self._diverged()
        elif self.since_judged >= self.method.passes_between or last:
            self._judge(entry)
            if self.outcome.reason == "" and last:
                self.outcome.reason = "settled" if settled else f"all {self.plan.epochs} epochs"
            if self.plan.checkpoint is not None:
                self._save(self.plan.checkpoint)
        self.plan.progress(self.done, self.plan.epochs, entry.get("held_out", math.nan))

    def _judge(self, entry: dict[str, Any]) -> None:
        self.since_judged = 0
        if self.held_out is not None:
            self.model.eval()
            # Terms over the grid train users and items without ratings too: what they learn is nobody's.
            self.model.forget_cold(*self.task.cold)
            entry["held_out"] = self.held_out(self.model)
            self.model.train()
            if self.patience.better(entry["held_out"], self.done):
                self.best = {name: value.clone() for name, value in self.model.state_dict().items()}
            if self.patience.over:
                self.outcome.reason = f"no better held-out error for {self.patience.waited} judgements"

    def _diverged(self) -> None:
        if not self.best:
            raise TrainingError(
                f"{self.method.name} diverged in epoch {self.done}, before any state was worth keeping: {_ADVICE}"
            )
        self.outcome.reason = f"diverged in epoch {self.done}"
        warn_caller(
            f"{self.method.name} diverged in epoch {self.done}; the state of epoch {self.patience.best_epoch} is kept. "
            f"To train on: {_ADVICE}",
            DivergenceWarning,
        )

    def keep_best(self) -> None:
        """Put the best state back, if any was judged."""
        if self.best:
            self.model.load_state_dict(self.best)
        if not all(bool(torch.isfinite(one).all()) for one in self.model.parameters()):
            raise TrainingError(f"{self.method.name} diverged in epoch {self.done}: {_ADVICE}")
        self.outcome.best_epoch = self.patience.best_epoch if self.best else self.done
        self.outcome.best_value = self.patience.best if self.best else math.nan

    def _save(self, path: Path) -> None:
        tensors = {f"best.{name}": value for name, value in self.best.items()}
        tensors |= {f"more.{name}": value for name, value in self.method.more_state().items()}
        for learner_name, learner in self.method.learners().items():
            tensors |= {f"learner.{learner_name}.{name}": value for name, value in learner.state().items()}
        facts = {
            "kind": "checkpoint",
            "key": self.plan.key,
            "done": self.done,
            "reason": self.outcome.reason,
            "history": self.outcome.history,
            "patience": asdict(self.patience),
        }
        write_tensors(path, tensors, facts)

    def resume(self) -> None:
        """Go on from the checkpoint, if that is wanted and there is one."""
        path = self.plan.checkpoint
        if path is None or not self.plan.resume or not path.exists():
            return
        tensors, facts = read_tensors(path)
        if facts.get("key") != self.plan.key:
            raise TrainingError(
                f"{path} is of another run: method, parameters, log, noise rates and propensities must be the same"
            )
        self.done, self.outcome.history, self.outcome.reason = facts["done"], facts["history"], facts["reason"]
        self.patience = Patience(**facts["patience"])
        self.best = _under("best.", tensors)
        self.method.load_more(_under("more.", tensors))
        for name, learner in self.method.learners().items():
            learner.load(_under(f"learner.{name}.", tensors))


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
