"""A search for parameters: candidates are fitted on all folds but one at a time, and judged on the one left out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch

from verirec.exceptions import TrainingError
from verirec.methods.base import Method
from verirec.methods.criteria import Criterion, Gain
from verirec.methods.folds import Folds
from verirec.training.checkpoints import read_tensors, whole, write_tensors

Array = npt.NDArray[Any]
MOST_STEPS: Final = 4
"""Times that a parameter is doubled or halved, as long as it helps."""
_DIGITS: Final = 6
"""Of a loss: what differs by less is the same."""


@dataclass(frozen=True, eq=False)
class Trial:
    """One candidate.

    Parameters
    ----------
    method
        With its parameters; not fitted.
    changed
        Those that the search chose.
    logits
        Of each row, by the fit that did not see it, shape (n,).
    losses
        Of each fold.
    on_survey
        Mean logits of the survey's pairs, shape (m,).
    """

    method: Method
    changed: dict[str, Any]
    logits: Array
    losses: Array
    on_survey: Array

    @property
    def loss(self) -> float:
        """Mean over folds."""
        return float(self.losses.mean())

    @property
    def plain(self) -> bool:
        """Whether it is constants of users and items, and nothing else."""
        return self.method.name == "mf" and self.method.model == "constants" and not self._covariates

    @property
    def _covariates(self) -> bool:
        return self.method.covariates not in (None, "none")


class Budget:
    """How many trials and how much time there may be.

    Parameters
    ----------
    trials
        At most.
    seconds
        After which no trial is begun; `None` for no limit.
    """

    def __init__(self, trials: int, seconds: float | None) -> None:
        self.trials, self.seconds, self.began, self.stopped = trials, seconds, time.monotonic(), ""

    def allows(self, done: int) -> bool:
        """Whether one more may begin; the first always may."""
        if done >= self.trials:
            self.stopped = f"after {self.trials} trials"
        elif done and self.seconds is not None and time.monotonic() - self.began > self.seconds:
            self.stopped = f"after {self.seconds:g} seconds"
        return self.stopped == ""


class Search:
    """Tries candidates, each one once, and keeps what they said of held-out rows.

    Parameters
    ----------
    folds
        The log in parts.
    criterion
        What decides.
    budget
        How much may be tried.
    progress
        Told (done, at most, best loss so far) after every trial.
    file, key
        Where trials are kept as they are made, to go on from, and what they depend on.
    resume
        Whether to take those that are there.
    """

    def __init__(
        self,
        folds: Folds,
        criterion: Criterion,
        budget: Budget,
        progress: Callable[[int, int, float], None],
        file: Path | None = None,
        key: str = "",
        resume: bool = False,
    ) -> None:
        self.folds, self.criterion, self.budget, self.progress = folds, criterion, budget, progress
        self.file, self.key = file, key
        self.trials: list[Trial] = []
        self.known = self._read() if resume and file is not None and file.exists() else {}

    @property
    def best(self) -> Trial:
        """The trial with the least loss, the first of those that are the same up to rounding."""
        return self._best_of(plain=False)

    def _best_of(self, *, plain: bool) -> Trial:
        candidates = [trial for trial in self.trials if trial.plain or not plain]
        return min(candidates, key=lambda trial: round(trial.loss, _DIGITS))

    def attempt(self, method: Method, changes: Iterable[dict[str, Any]]) -> None:
        """Try a method with some changes of its parameters, as long as the budget lasts."""
        for changed in changes:
            if any(trial.method.name == method.name and trial.changed == changed for trial in self.trials):
                continue
            if not self.budget.allows(len(self.trials)):
                return
            candidate = type(method)(**method.get_params() | changed)
            logits, on_survey = self._judged(candidate, changed)
            self.trials.append(Trial(candidate, changed, logits, self.criterion.losses(logits), on_survey))
            self.progress(len(self.trials), self.budget.trials, self.best.loss)

    def climb(self, parameter: str, start: float, *, plain: bool = False) -> None:
        """Double, and halve, a parameter of the best trial, or of the best `plain` one, on as long as that helps."""
        for factor in (2.0, 0.5):
            for _ in range(MOST_STEPS):
                best = self._best_of(plain=plain)
                value = type(start)(best.changed.get(parameter, start) * factor)
                self.attempt(best.method, [best.changed | {parameter: value}])
                if self._best_of(plain=plain) is best:
                    break

    def _judged(self, method: Method, changed: dict[str, Any]) -> tuple[Array, Array]:
        name = f"{method.name} {sorted(changed.items())}"
        if name not in self.known:
            self.known[name] = self.folds.logits(method)
            self._write()
        return self.known[name]

    def _write(self) -> None:
        if self.file is None:
            return
        tensors = {
            f"{number} {which}": torch.as_tensor(value)
            for number, both in enumerate(self.known.values())
            for which, value in zip(("rows", "survey"), both, strict=True)
        }
        write_tensors(self.file, tensors, {"kind": "search", "key": self.key, "names": list(self.known)})

    def _read(self) -> dict[str, tuple[Array, Array]]:
        assert self.file is not None  # noqa: S101
        tensors, facts = read_tensors(self.file)
        if facts.get("key") != self.key:
            raise TrainingError(
                f"{self.file} is of another search: parameters, log, survey, noise rates, propensities "
                "and versions must be the same"
            )
        with whole(self.file):
            return {
                name: (tensors[f"{number} rows"].numpy(), tensors[f"{number} survey"].numpy())
                for number, name in enumerate(facts["names"])
            }

    def nested_gain(self, reference: list[Trial]) -> Gain:
        """Return how much the best of all trials is better than the best of some, each fold by picks made without it.

        So no row judges a choice that it had a part in.
        """
        count = len(self.criterion.rows)

        def picks(trials: list[Trial]) -> list[Array]:
            losses = np.array([trial.losses for trial in trials])
            without = (losses.sum(1, keepdims=True) - losses) / (count - 1)
            return [trials[int(one)].logits for one in without.round(_DIGITS).argmin(0)]

        return self.criterion.gain(picks(reference), picks(self.trials))
