"""A log made ready to train on: checked, with propensities and noise rates, a part of its rows held out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import torch

from verirec.data.cells import CellValues
from verirec.data.feedback_log import FeedbackLog
from verirec.estimation.inputs import KnownNoise, refuse_weights
from verirec.exceptions import ParameterError
from verirec.models.factors import SideInformation
from verirec.nuisance.noise_rates import AuditSample
from verirec.nuisance.propensities import LogisticPropensity, Propensities, as_propensities
from verirec.randomness import same_state
from verirec.training.admission import admitted, insist_on_noise, known_noise, refuse_true_levels
from verirec.training.data import TrainingData
from verirec.training.heads import Head
from verirec.training.schedule import AlternatingRates, RateSchedule
from verirec.training.settings import TrainingSettings
from verirec.training.side_information import Learnt, side_information
from verirec.training.validation import Validator, hold_out, make_validator

_LEAST: Final = 1 / 3
"""Of the log's density: estimated propensities to train by are at least so large."""


@dataclass(frozen=True, eq=False)
class Preparation:
    """What training needs besides a method's models: made once, and shared by all fits along a path of penalties.

    Parameters
    ----------
    log, propensities
        All rows, and their propensities.
    rates
        Noise rates to start from, or the transition matrix of levels, where there are any.
    validator
        Judges the model on rows that are not trained on; `None` for no such.
    data
        The rows that are trained on.
    side
        Features, for models that take them.
    h
        A model of labels, where noise rates are learnt along the way.
    threads
        That large work may use.
    head
        What scores say of labels.
    start_size
        Where factors alone start, if a first fit has chosen: see `verirec.training.starting`.
    """

    log: FeedbackLog
    propensities: Propensities
    rates: KnownNoise | None
    validator: Validator | None
    data: TrainingData
    side: SideInformation
    h: CellValues | None
    threads: int
    head: Head
    start_size: float | None = None

    def on_all_rows(
        self, settings: TrainingSettings, rates: KnownNoise | None, start_size: float | None = None
    ) -> Preparation:
        """Return the same with no rows held out, and with the noise rates and the start of a first fit."""
        old = self.data
        data = TrainingData(self.log, self.propensities, old.batch_size, old.grid_cells, old.seed, old.device)
        side = side_information(self.log, settings.exposure_covariates, old.device, features=settings.takes_features)
        return replace(self, rates=rates, validator=None, data=data, side=side, h=None, start_size=start_size)

    def schedule(self, settings: TrainingSettings) -> RateSchedule:
        """Return the noise rates as training goes on, known or learnt."""
        if self.h is None:
            return RateSchedule(settings.correction, self.head, self.rates, self.data)
        return AlternatingRates(settings.correction, self.head, self.rates, self.data, self.h, settings.anchor_rule)


def prepare(
    settings: TrainingSettings,
    log: FeedbackLog,
    noise_rates: KnownNoise | None,
    audit: AuditSample | None,
    propensities: Any,
    learnt: Learnt | None = None,
) -> Preparation:
    """Check all that `fit` was given, find propensities and noise rates, and hold rows out."""
    if noise_rates is not None and audit is not None:
        raise ParameterError("give noise_rates or an audit: one of the two")
    rates, head = admitted(settings, log, noise_rates)
    refuse_weights(log, [f"training by {settings.name}"])
    fitted = as_propensities(_model(log) if propensities is None else propensities, log)
    refuse_true_levels(settings, fitted)
    if settings.needs_all_propensities:
        fitted.require_everywhere(f"training by {settings.name}")
    rates = known_noise(rates, audit, log, fitted)
    seed, device, h = same_state(settings.random_state), _device(settings.device), None
    trained_on, rest = hold_out(settings, log, seed)
    share = len(trained_on) / len(log)
    own = _part(fitted, share)
    if settings.correction != "none" and rates is None:
        insist_on_noise(settings.name, log)
        rates, h = settings.anchor_rule.starting_rates(settings.h, trained_on, own)
    validator = None if rest is None else make_validator(settings, rest, _part(fitted, 1 - share), rates, head, seed)
    data = TrainingData(
        trained_on, own, settings.batch_size, settings.grid_cells if settings.needs_grid else 0, seed, device
    )
    side = side_information(
        trained_on, settings.exposure_covariates, device, features=settings.takes_features, learnt=learnt
    )
    # Only what does not depend on the number of threads is done by more than one.
    return Preparation(log, fitted, rates, validator, data, side, h, torch.get_num_threads(), head)


def _model(log: FeedbackLog) -> LogisticPropensity | None:
    """Return the propensity model by default, for even weights: without features, and no row above thrice the mean.

    Estimates may rest on a few heavy rows, and say so in their intervals; what is trained on them follows their noise.
    `None` where the log has propensities of its own.
    """
    return None if log.propensities is not None else LogisticPropensity(features=False, floor=log.density * _LEAST)


def _part(fitted: Propensities, share: float) -> Propensities:
    return fitted if share == 1 else fitted.thinned(share)


def _device(name: str) -> torch.device:
    try:
        found = torch.zeros(1, device=name)
        float(found.sum())
        return found.device
    except (RuntimeError, AssertionError, TypeError, ValueError, NotImplementedError) as error:
        raise ParameterError(f"device={name!r} is not available: {str(error).splitlines()[0]}") from None
