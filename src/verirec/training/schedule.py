r"""Noise rates as training goes on: those that are known stay; others are learnt by alternating denoise training.

That is the paper's Algorithm 1: a model h of P(r = 1) is trained beforehand; as f learns, the pairs where it is
smallest and largest are remembered, and :math:`\hat\rho_{10} = h(\text{smallest})`,
:math:`\hat\rho_{01} = 1 - h(\text{largest})` are refreshed, with ``anchors="batch"`` between each step of f and the
imputation model's. The trainer calls a schedule when an epoch begins and after each step of f.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import torch
from torch import Tensor

from verirec.data.cells import CellValues
from verirec.data.feedback_log import FeedbackLog
from verirec.data.grid import Grid
from verirec.data.predictions import as_predictions
from verirec.estimation.inputs import KnownNoise
from verirec.exceptions import NoiseRateWarning, PredictionError, warn_caller
from verirec.losses import NoiseRates, correct_labels
from verirec.models import Model
from verirec.nuisance.label_model import LabelModel
from verirec.nuisance.propensities import Propensities
from verirec.training.correction import Kind, NoiseCorrection
from verirec.training.data import Batch, TrainingData
from verirec.training.heads import Head

Anchors = Literal["epoch", "batch", "fixed"]
ANCHORS: Final = ("epoch", "batch", "fixed")


@dataclass(frozen=True)
class AnchorRule:
    """When learnt rates are refreshed, and how large they may get: see `verirec.methods.Method`."""

    anchors: Anchors
    refresh_after: int
    max_rate: float

    def clipped(self, rho01: float, rho10: float) -> NoiseRates:
        """Return rates that are not below 0, nor above the largest."""
        first, second = (min(max(rate, 0.0), self.max_rate) for rate in (rho01, rho10))
        return NoiseRates(first, second)

    def starting_rates(self, h: Any, log: FeedbackLog, propensities: Propensities) -> tuple[NoiseRates, CellValues]:
        """Return the rates at the extremes of h, and h itself, fitted to the log where none is given."""
        weights = 1 / propensities.at(log.users, log.items)
        own = LabelModel().fit(log, weights) if h is None else as_predictions(h, log.n_users, log.n_items)
        low, high = getattr(own, "extremes", None) or Grid(own.shape).extremes(own)
        if not 0 <= low <= high <= 1:
            raise PredictionError(f"h must be a probability of each pair; it goes from {low:g} to {high:g}")
        start = self.clipped(1 - float(high), float(low))
        # Guesses that this log refutes (more than all, or less than none, would be liked) are made smaller.
        while not 0 <= np.average(correct_labels(log.labels, start, log.users, log.items).values, weights=weights) <= 1:
            start = NoiseRates(start.rho01 / 2, start.rho10 / 2)
        return start, own


class RateSchedule:
    """Noise rates that are known, or that nobody asks for.

    Parameters
    ----------
    kind, head
        Of the correction: see `verirec.training.heads.Head.correction`.
    rates
        Noise rates, or a matrix of levels; `None` for none.
    data
        Rows that are trained on.
    """

    def __init__(self, kind: Kind, head: Head, rates: KnownNoise | None, data: TrainingData) -> None:
        self.kind, self.head, self.data = kind, head, data
        self.use(rates)

    def use(self, rates: KnownNoise | None) -> None:
        """Correct by these rates."""
        self.rates, self.correction = rates, self.at(rates)

    def at(self, rates: KnownNoise | None) -> NoiseCorrection:
        """Return the correction at other rates."""
        return self.head.correction(self.kind, rates, self.data)

    @property
    def worst(self) -> NoiseCorrection:
        """The correction at the largest rates that there can be."""
        return self.correction

    @property
    def waiting(self) -> bool:
        """Whether rates have yet to be learnt."""
        return False

    def begin_epoch(self, epoch: int, model: Model) -> None:
        """Look where the prediction model is smallest and largest, if that is due."""

    def after_prediction(self, model: Model, make_batch: Callable[[], Batch]) -> None:
        """Look at the pairs of the batch that it was just trained on, if that is due."""

    def facts(self) -> dict[str, float]:
        """Return the rates that are corrected by."""
        shown = self.kind != "none" and isinstance(self.rates, NoiseRates)
        return {"rho01": self.rates.rho01, "rho10": self.rates.rho10} if shown else {}  # type: ignore[union-attr]

    def state(self) -> dict[str, Tensor]:
        """Return what a checkpoint needs."""
        return {}

    def load(self, state: dict[str, Tensor]) -> None:
        """Go on from a checkpoint."""

    def finish(self) -> None:
        """Warn of rates that are not to be trusted."""


class AlternatingRates(RateSchedule):
    """Noise rates that are learnt as f is (paper, Algorithm 1).

    Parameters
    ----------
    kind, head, rates, data
        As for fixed ones; the rates to start from.
    h
        The model of labels whose values are read off.
    rule
        When and where.
    """

    def __init__(
        self, kind: Kind, head: Head, rates: KnownNoise | None, data: TrainingData, h: CellValues, rule: AnchorRule
    ) -> None:
        super().__init__(kind, head, rates, data)
        self.h, self.rule = h, rule
        self._due = False

    @property
    def worst(self) -> NoiseCorrection:
        """The correction at the largest rates that can be learnt."""
        return self.at(NoiseRates(self.rule.max_rate, self.rule.max_rate))

    @property
    def waiting(self) -> bool:
        """Whether the first refresh is yet to come."""
        return self.rule.anchors != "fixed" and not self._due

    def begin_epoch(self, epoch: int, model: Model) -> None:
        """Forget the extremes; of all pairs, look for them anew."""
        self._lowest, self._highest = (np.inf, 0, 0), (-np.inf, 0, 0)
        self._due = self.rule.anchors != "fixed" and epoch >= max(self.rule.refresh_after, 1)
        if not self._due or self.rule.anchors != "epoch":
            return
        with torch.no_grad():
            # All pairs, as long as they can be visited; beyond, twenty rectangles of a million.
            for block in Grid(self.data.shape, sample_cells=20_000_000).blocks(
                np.random.default_rng([self.data.seed, 5, epoch])
            ):
                users, items = (torch.as_tensor(side).to(self.data.device) for side in block)
                self._watch(model.grid(users, items), users, items)
        self._refresh()

    def after_prediction(self, model: Model, make_batch: Callable[[], Batch]) -> None:
        """Remember the extremes of the batch's pairs, and refresh the rates."""
        if not self._due or self.rule.anchors != "batch":
            return
        batch = make_batch()
        with torch.no_grad():
            if len(batch.grid_users):
                self._watch(batch.on_grid(model), batch.grid_users, batch.grid_items)
            else:
                logits = batch.on_rows(model)
                for end in (logits.argmin(), logits.argmax()):
                    self._watch(logits[end].view(1, 1), batch.users[end].view(1), batch.items[end].view(1))
        self._refresh()

    def _watch(self, logits: Tensor, users: Tensor, items: Tensor) -> None:
        def found(end: int) -> tuple[float, int, int]:
            row, column = divmod(end, logits.shape[1])
            return float(logits[row, column]), int(users[row]), int(items[column])

        low, high = found(int(logits.argmin())), found(int(logits.argmax()))
        self._lowest = low if low[0] < self._lowest[0] else self._lowest
        self._highest = high if high[0] > self._highest[0] else self._highest

    def _refresh(self) -> None:
        ends = np.array([self._lowest[1:], self._highest[1:]])
        low, high = self.h.at(ends[:, 0], ends[:, 1])
        self.use(self.rule.clipped(1 - float(high), float(low)))

    def state(self) -> dict[str, Tensor]:
        """Keep the rates."""
        assert isinstance(self.rates, NoiseRates)  # noqa: S101
        return {"rates": torch.tensor([self.rates.rho01, self.rates.rho10], dtype=torch.float64)}

    def load(self, state: dict[str, Tensor]) -> None:
        """Take them back."""
        self.use(NoiseRates(*state["rates"].tolist()))

    def finish(self) -> None:
        """Say so where learnt rates are but what they were cut off at."""
        assert isinstance(self.rates, NoiseRates)  # noqa: S101
        if max(self.rates.rho01, self.rates.rho10) >= self.rule.max_rate:
            warn_caller(
                f"learnt noise rates came out at max_rate={self.rule.max_rate:g}, where they are cut off: this log "
                "cannot tell them; give noise_rates or an audit",
                NoiseRateWarning,
            )
