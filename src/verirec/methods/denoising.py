r"""The paper's own methods: corrected for noise, alone or together with selection (Sections 3.2 to 3.5).

Each is a method without the correction, with the surrogate error :math:`\tilde e` in place of e; with noise rates of 0
it is that method. Where rates are neither given nor audited they are learnt by alternating denoise training
(Algorithm 1): a model h of P(r = 1) is trained beforehand; as f learns, the pairs where it is smallest and largest are
remembered, and :math:`\hat\rho_{10} = h(\text{smallest})`, :math:`\hat\rho_{01} = 1 - h(\text{largest})` are refreshed,
with ``anchors="batch"`` between each step of f and the imputation model's. One step of f goes with one of that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from verirec.checks import one_of
from verirec.data.cells import CellValues
from verirec.data.feedback_log import FeedbackLog
from verirec.data.grid import Grid
from verirec.data.predictions import as_predictions
from verirec.estimation.inputs import Rates
from verirec.exceptions import NoiseRateWarning, ParameterError, PredictionError, warn_caller
from verirec.losses import GroupedNoiseRates, NoiseRates, correct_labels
from verirec.methods.imputing import DRJL, EIB
from verirec.methods.naive import MF
from verirec.methods.parameters import Limits
from verirec.methods.sweeping import Sweeping
from verirec.methods.weighting import IPS
from verirec.nuisance.label_model import LabelModel
from verirec.nuisance.propensities import Propensities
from verirec.training.loop import Outcome
from verirec.training.losses import LOSSES, Forward, Plain, Surrogate
from verirec.training.task import Batch

Anchors = Literal["epoch", "batch", "fixed"]


@dataclass(kw_only=True, eq=False, repr=False)
class Denoising(Sweeping):
    r"""Correction for noise, and where rates are not known, their estimation along the way.

    Parameters
    ----------
    correction
        "surrogate": the paper's :math:`\tilde e`, unbiased and unbounded below. "forward": the plain log loss of
        :math:`\rho_{10} + \kappa f`, bounded below.
    anchors
        Where f is looked at for its smallest and largest value, if rates have to be learnt. "epoch": over all pairs, at
        the start of each epoch. "batch": over the pairs of the epoch's batches so far, after every step (the reading of
        the paper's Section 3.5). "fixed": h's own extremes over all pairs, once.
    h
        A model of P(r = 1) in any form of predictions; by default user and item constants fitted with 1/p, as
        `verirec.AnchorNoiseRates` does.
    refresh_after
        Epochs before which learnt rates stay where they start, at h's own extremes over all pairs: where an untrained f
        is largest says nothing.
    most_rate
        Learnt rates are cut off at it, with a warning.
    """

    needs_rates: ClassVar[bool] = True
    limits: ClassVar[Limits] = {"most_rate": (0.01, 0.49), "refresh_after": (0, 10**9)}

    correction: Literal["surrogate", "forward"] = "surrogate"
    anchors: Anchors = "epoch"
    h: Any = None
    refresh_after: int = 10
    most_rate: float = 0.3

    def make_errors(self) -> Plain:
        """Make the correction."""
        one_of("correction", self.correction, ("surrogate", "forward"))
        if self.correction == "forward" and self.loss != "log":
            raise ParameterError('correction="forward" is for loss="log"')
        if self.correction == "forward" and isinstance(self.noise_rates_, GroupedNoiseRates):
            raise ParameterError('correction="forward" takes one pair of noise rates for all pairs; got groups')
        errors = (Forward if self.correction == "forward" else Surrogate)(LOSSES[self.loss]())
        if self.noise_rates_ is not None:
            errors.use(self.noise_rates_, self.task_)
        return errors

    def why_no_sweeps(self) -> str | None:
        """Say that forward correction is for gradients."""
        return super().why_no_sweeps() if self.correction == "surrogate" else "sweeps are for correction='surrogate'"

    def starting_rates(
        self, log: FeedbackLog, fitted: Propensities, rates: Rates | None
    ) -> tuple[Rates, CellValues | None]:
        """Take the rates given, or start from the extremes of h."""
        one_of("anchors", self.anchors, ("epoch", "batch", "fixed"))
        if rates is not None:
            return rates, None
        weights = 1 / fitted.at(log.users, log.items)
        own = LabelModel().fit(log, weights) if self.h is None else as_predictions(self.h, log.n_users, log.n_items)
        low, high = _extremes(own)
        if not 0 <= low <= high <= 1:
            raise PredictionError(f"h must be a probability of each pair; it goes from {low:g} to {high:g}")
        start = self._bounded(1 - high, low)
        # Guesses that this log refutes (more than all, or less than none, would be liked) are made smaller.
        while not 0 <= np.average(correct_labels(log.labels, start, log.users, log.items).values, weights=weights) <= 1:
            start = NoiseRates(start.rho01 / 2, start.rho10 / 2)
        return start, own

    def _bounded(self, rho01: float, rho10: float) -> NoiseRates:
        first, second = (min(max(rate, 0.0), self.most_rate) for rate in (rho01, rho10))
        return NoiseRates(first, second)

    def begin_epoch(self, epoch: int) -> None:
        """Look where f is smallest and largest."""
        super().begin_epoch(epoch)
        self.lowest_, self.highest_ = (np.inf, 0, 0), (-np.inf, 0, 0)
        self.refreshes_ = self.h_ is not None and self.anchors != "fixed" and epoch >= max(self.refresh_after, 1)
        if not self.refreshes_ or self.anchors != "epoch":
            return
        grid = Grid(self.task_.shape, sample_cells=20_000_000)
        with torch.no_grad():
            for users, items in grid.blocks(np.random.default_rng([self.task_.seed, 5, epoch])):
                positions = [torch.as_tensor(side).to(self.task_.device) for side in (users, items)]
                self._watch(self.f.grid(*positions), *positions)
        self._refresh()

    def after_prediction(self, batch: Batch) -> None:
        """Remember the extremes of this batch's pairs, and refresh the rates."""
        if not self.refreshes_ or self.anchors != "batch":
            return
        with torch.no_grad():
            if self.needs_grid:
                self._watch(self.over_grid(self.f, batch), batch.grid_users, batch.grid_items)
            else:
                logits = self.f(batch.users, batch.items)
                for end in (logits.argmin(), logits.argmax()):
                    pair = batch.users[end].view(1), batch.items[end].view(1)
                    self._watch(logits[end].view(1, 1), *pair)
        self._refresh()

    def after_sweep(self) -> None:
        """Look at some pairs, as after a batch."""
        if self.refreshes_ and self.anchors == "batch":
            self.after_prediction(self.task_.glimpse(self.sweeper_.done))

    @property
    def settled(self) -> bool:
        """Whether more training would change nothing: not while rates have yet to be learnt."""
        waiting = self.h_ is not None and self.anchors != "fixed" and not self.refreshes_
        return super().settled and not waiting

    def _watch(self, logits: Tensor, users: Tensor, items: Tensor) -> None:
        width = logits.shape[1]
        for end, better in ((int(logits.argmin()), "lowest_"), (int(logits.argmax()), "highest_")):
            found = float(logits.view(-1)[end]), int(users[end // width]), int(items[end % width])
            known = getattr(self, better)
            if (found[0] < known[0]) if better == "lowest_" else (found[0] > known[0]):
                setattr(self, better, found)

    def _refresh(self) -> None:
        ends = np.array([self.lowest_[1:], self.highest_[1:]])
        low, high = self.h_.at(ends[:, 0], ends[:, 1])  # type: ignore[union-attr]
        self.noise_rates_ = self._bounded(1 - float(high), float(low))
        self.errors_.use(self.noise_rates_, self.task_)

    def beyond_labels(self) -> Tensor | None:
        """Return what targets have outside of 0 and 1 at worst: of learnt rates, at the largest that they can be."""
        if self.h_ is None or not isinstance(self.noise_rates_, NoiseRates):
            return super().beyond_labels()
        self.errors_.use(NoiseRates(self.most_rate, self.most_rate), self.task_)
        beyond = super().beyond_labels()
        self.errors_.use(self.noise_rates_, self.task_)
        return beyond

    def _finish(self, outcome: Outcome) -> None:
        """Say so where learnt rates are but what they were cut off at."""
        rates = self.noise_rates_
        if self.h_ is not None and isinstance(rates, NoiseRates) and max(rates.rho01, rates.rho10) >= self.most_rate:
            warn_caller(
                f"learnt noise rates came out at most_rate={self.most_rate:g}, where they are cut off: this log cannot "
                "tell them; give noise_rates or an audit",
                NoiseRateWarning,
            )
        super()._finish(outcome)

    def facts(self) -> dict[str, float]:
        """Show the rates, where they are learnt."""
        rates = self.noise_rates_
        shown = {"rho01": rates.rho01, "rho10": rates.rho10} if isinstance(rates, NoiseRates) else {}
        return super().facts() | shown

    def more_state(self) -> dict[str, Tensor]:
        """Keep the rates."""
        if self.h_ is None or not isinstance(self.noise_rates_, NoiseRates):
            return super().more_state()
        rates = torch.tensor([self.noise_rates_.rho01, self.noise_rates_.rho10], dtype=torch.float64)
        return super().more_state() | {"rates": rates}

    def load_more(self, state: dict[str, Tensor]) -> None:
        """Take them back."""
        super().load_more(state)
        if "rates" in state:
            rho01, rho10 = state["rates"].tolist()
            self.noise_rates_ = NoiseRates(rho01, rho10)
            self.errors_.use(self.noise_rates_, self.task_)


def _extremes(h: CellValues) -> tuple[float, float]:
    """Return the smallest and the largest probability of all pairs."""
    known = getattr(h, "extremes", None)
    if known is not None:
        return float(known[0]), float(known[1])
    return Grid(h.shape).extremes(h)


@dataclass(kw_only=True, eq=False, repr=False)
class OME(Denoising, MF):
    r"""Noise alone: :math:`|O|^{-1} \sum_O \tilde e`. Natarajan et al. (2013)."""

    name: ClassVar[str] = "ome"
    paper: ClassVar[str] = "Natarajan et al. 2013, Learning with noisy labels; here with the paper's noise rates"
    summary: ClassVar[str] = "MF, corrected for noise"


@dataclass(kw_only=True, eq=False, repr=False)
class OMEIPS(Denoising, IPS):
    r"""Noise and selection: :math:`|D|^{-1} \sum_O \tilde e / \hat p` (paper, Section 3.2)."""

    name: ClassVar[str] = "ome-ips"
    paper: ClassVar[str] = "Debiased recommendation with noisy feedback, Section 3.2"
    summary: ClassVar[str] = "IPS, corrected for noise"


@dataclass(kw_only=True, eq=False, repr=False)
class OMEEIB(Denoising, EIB):
    r"""Noise and selection: :math:`|D|^{-1} \sum_D [o\,\tilde e + (1-o)\,\hat e]` (paper, Section 3.2)."""

    name: ClassVar[str] = "ome-eib"
    paper: ClassVar[str] = "Debiased recommendation with noisy feedback, Section 3.2"
    summary: ClassVar[str] = "EIB, corrected for noise"


@dataclass(kw_only=True, eq=False, repr=False)
class OMEDR(Denoising, DRJL):
    r"""Noise and selection, doubly robust: :math:`|D|^{-1} \sum_D [\hat e + o\,(\tilde e - \hat e)/\hat p]`.

    g learns from :math:`\sum_O (\tilde e - \hat e)^2 / \hat p` (paper, Sections 3.2 and 3.5, Algorithm 1).
    """

    name: ClassVar[str] = "ome-dr"
    paper: ClassVar[str] = "Debiased recommendation with noisy feedback, Section 3.5, Algorithm 1"
    summary: ClassVar[str] = "DR-JL, corrected for noise"
