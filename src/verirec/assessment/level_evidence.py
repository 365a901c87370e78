"""What an assessment of a log that keeps its levels goes by, from what a user gives."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

from verirec.assessment.findings import Basis
from verirec.assessment.level_bounds import LevelBounds
from verirec.assessment.preparation import Labels, Predictions, Wishes, check_labels, excluded, lacking_of, survey_of
from verirec.assessment.training import checked_methods, hold_out_rows, refuse_taken, train_all
from verirec.data.feedback_log import FeedbackLog
from verirec.estimation.adapting import adapt_all
from verirec.estimation.gathering import audit_within
from verirec.estimation.inputs import checked_transitions, judgeable
from verirec.estimation.roots import pointwise
from verirec.estimation.survey.draws import self_selected
from verirec.exceptions import AuditError, NoiseRateError, ParameterError
from verirec.losses import TransitionMatrix, TransitionRegion, get_level_loss
from verirec.nuisance.noise_rates import AuditSample, AuditTransitionMatrix
from verirec.nuisance.propensities import Propensities, as_propensities
from verirec.resuming import kept

Told = Callable[[str], None]
Between = TransitionMatrix | TransitionRegion | None


@dataclass(frozen=True, eq=False)
class LevelEvidence:
    """What every recommender is judged by, of a log that keeps its levels; see `verirec.assessment.evidence`.

    Parameters
    ----------
    log, propensities
        The rows that judge, and how likely they were to be logged.
    noise, noise_source
        Between levels, where it is given or an audit tells; and from where.
    labels
        Audit (of these rows), survey and who errs.
    exclude, lacking
        As in `Evidence`.
    settings
        As `estimate` has them: loss, confidence, clip, sample, random_state.
    """

    log: FeedbackLog
    propensities: Propensities
    noise: Between
    noise_source: str
    labels: Labels
    exclude: Any
    lacking: str
    settings: dict[str, Any]

    @property
    def basis(self) -> Basis:
        """What answers rest on: propensities that are known decide only if noise is known or audited, too."""
        if self.labels.survey is not None:
            return "survey"
        if not self.propensities.known or (self.labels.audit is None and self.noise is None):
            return "range"
        return "known propensities" if self.labels.audit is None else "audit"

    @property
    def corrected(self) -> str:
        """Name of the log's own estimate, which is right if selection depends on user and item only."""
        if self.labels.audit is not None and self.basis != "audit":
            return "audited-dr"
        return "dr" if self.noise is None else "ome-dr"

    @property
    def check(self) -> str:
        """Name of the estimate that fails in other ways."""
        return "snips" if self.noise is None else "ome-snips"

    @property
    def options(self) -> dict[str, Any]:
        """What `estimate` and `compare` are given besides predictions and log."""
        labels = {"audit": self.labels.audit, "survey": self.labels.survey, "errors": self.labels.errors}
        given = {"propensities": self.propensities, "noise_rates": self.noise, "exclude": self.exclude}
        return labels | given | self.settings

    @property
    def estimators(self) -> tuple[str, ...]:
        """Names of what is estimated of each."""
        by_log = ("naive", "snips", "dr") + (() if self.noise is None else ("ome", "ome-snips", "ome-dr"))
        audited = () if self.labels.audit is None else ("audited-dr",)
        return by_log + audited + (() if self.labels.survey is None else ("survey", "survey-ppi"))

    @property
    def in_levels(self) -> bool:
        """Whether the loss is of predicted stars; others are of distributions."""
        return not _of_distributions(self.settings["loss"], self.log)

    @cached_property
    def bounds(self) -> LevelBounds:
        """What is possible whatever people truly think."""
        how = {name: self.settings[name] for name in ("loss", "clip", "confidence")}
        return LevelBounds(self.log, **how, exclude=self.exclude, seed=self.settings["random_state"])


class PreparedLevels(NamedTuple):
    """What an assessment of levels goes by, and the recommenders that it judges."""

    evidence: LevelEvidence
    predictions: Predictions
    trained: tuple[str, ...]
    searches: dict[str, dict[str, Any]]


def prepare_levels(
    log: FeedbackLog,
    predictions: Predictions,
    labels: Labels,
    propensities: Any,
    wishes: Wishes,
    progress: Told,
    settings: dict[str, Any],
) -> PreparedLevels:
    """Hold rows out, find out noise and propensities, and train what is to be trained."""
    if wishes.calibrate is not None:
        raise ParameterError("calibrate makes probabilities of a like: a log that keeps its levels has none")
    predictions = adapt_all(predictions, log)
    check_labels(labels, log)
    methods, seed = checked_methods(wishes.train), settings["seed"]
    refuse_taken(methods, predictions)
    whole = judgeable(self_selected(log), levels=True)
    progress("Learning how likely pairs are to be logged")
    likely = as_propensities(propensities, whole)
    progress("Finding out how noisy the labels are")
    noise, source = _noise(whole, labels)
    held = hold_out_rows(whole, wishes.hold_out, methods, seed)
    head = "ordinal" if _of_distributions(settings["loss"], log) else None
    trained = train_all(methods, held, likely, noise, seed, progress, head=head)
    judging = judgeable(held.judging, levels=True)
    survey, exclude = survey_of(labels.survey, log), excluded(wishes.exclude, held.training)
    how = {name: settings[name] for name in ("loss", "confidence", "clip", "sample")} | {"random_state": seed}
    evidence = LevelEvidence(
        judging,
        likely if held.training is None else likely.thinned(held.share),
        noise,
        source,
        labels._replace(survey=survey, audit=audit_within(labels.audit, judging)),
        exclude,
        "" if survey is None else lacking_of(survey, judging, exclude),
        how,
    )
    return PreparedLevels(evidence, predictions | trained.predictions, tuple(trained.predictions), trained.searches)


def _noise(log: FeedbackLog, labels: Labels) -> tuple[Between, str]:
    """Return noise between levels, where it is known; an audit that does not tell it still has true labels."""
    given = checked_transitions(labels.rates, log)
    if given is not None:
        return given, given.source if isinstance(given, TransitionMatrix) else "given"
    if labels.audit is None:
        return None, ""
    if not isinstance(labels.audit, AuditSample):
        raise ParameterError(f"audit must be an AuditSample; got {type(labels.audit).__name__}")
    with suppress(AuditError, NoiseRateError):
        found = kept("noise", partial(AuditTransitionMatrix().fit, log, audit=labels.audit))
        return found, found.source
    labels.audit.rows_in(log)
    return None, f"an audit of {len(labels.audit):,} rows, too few to tell"


def _of_distributions(loss: Any, log: FeedbackLog) -> bool:
    return get_level_loss(pointwise(loss)[0], log.levels or ()).distributions
