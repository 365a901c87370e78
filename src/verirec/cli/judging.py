"""What `verirec estimate` says of each recommender: its losses, and how it ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from verirec.cli.options import RankingOptions
from verirec.data.feedback_log import checked_log
from verirec.data.top_lists import TopLists
from verirec.estimation import Estimates, estimate, estimate_click_ranking, estimate_ranking
from verirec.estimation.calibration import apart_for_calibration, calibrate_by, need_calibration
from verirec.estimation.catalogue import chosen
from verirec.estimation.coverage import covered_rows, on_covered
from verirec.estimation.gathering import audit_within
from verirec.estimation.rows import LoggedPairs
from verirec.exceptions import ParameterError, PredictionError, ScoreWarning, naming, warn_caller
from verirec.losses import NoiseRates, NoiseRegion, TransitionMatrix, TransitionRegion
from verirec.nuisance.noise_rates import AuditSample
from verirec.nuisance.surveys import SurveySample
from verirec.resuming import kept, within

if TYPE_CHECKING:
    from verirec.data import FeedbackLog, PredictionsLike


@dataclass(frozen=True)
class Judged:
    """Estimates of a recommender's losses and of its ranking, where they were asked for and there is one.

    `calibrated` is how many rows, or surveyed pairs, made probabilities of its scores; 0 where these are as they were
    given.
    """

    losses: Estimates | None
    ranking: Estimates | None
    calibrated: int = 0
    by_survey: bool = False


@dataclass(frozen=True)
class Judge:
    """Judges one recommender after the other, by the same noise rates and options.

    Parameters
    ----------
    pairs
        All logged pairs.
    rates
        What is known of the noise.
    estimators
        Of the losses; `None` for the usual ones.
    options
        Of `estimate`.
    ranking
        What of rankings and scores was asked for.
    survey, audit
        True labels of random pairs, and of logged ones, if there are any.
    exclude
        Pairs that are not spoken of, if there are any.
    clicks
        Whether the log has clicks alone: then these tell the ranking, and only a survey tells losses.
    by_survey
        Those that the survey calibrated, by name.
    """

    pairs: LoggedPairs
    rates: NoiseRates | NoiseRegion | TransitionMatrix | TransitionRegion | None
    estimators: Sequence[str] | str | None
    options: dict[str, Any]
    ranking: RankingOptions
    survey: SurveySample | None = None
    audit: AuditSample | None = None
    clicks: bool = False
    exclude: FeedbackLog | None = None
    by_survey: Mapping[str, PredictionsLike] = field(default_factory=dict)

    def __call__(self, name: str, predictions: PredictionsLike) -> Judged:
        """Judge a recommender; scores of some pairs only rank nothing, and top-k lists have no losses."""
        with within(f"judging {name}"):
            return self._judged(name, predictions)

    def _judged(self, name: str, predictions: PredictionsLike) -> Judged:
        ranking = self._ranking(name, predictions)
        lacks_labels = self.clicks and self.survey is None and self.estimators is None
        if self.ranking.ranking_only or isinstance(predictions, TopLists) or lacks_labels:
            return Judged(None, ranking)
        if self.ranking.calibrate is not None:
            checked_log(self.pairs.log)
        if name in self.by_survey and self.survey is not None:
            found = self._losses(name, self.by_survey[name], self.pairs)
            return Judged(found, ranking, len(self.survey), by_survey=True)
        if self.ranking.calibrate is None or not need_calibration(predictions, self.pairs.log):
            return Judged(self._losses(name, predictions, self.pairs), ranking)
        apart, rest = self._apart
        fitted, rows = calibrate_by(apart, predictions, self.ranking.calibrate)  # type: ignore[arg-type]
        return Judged(self._losses(name, fitted, rest), ranking, rows)

    def _losses(self, name: str, predictions: PredictionsLike, judging: LoggedPairs) -> Estimates:
        """Estimate on the pairs that the predictions cover; unless named, by estimators that need no others."""
        covered = covered_rows(predictions, judging.log)
        pairs = judging if covered is None else on_covered(judging, covered)
        if pairs is not judging:
            warn_caller(
                f"{name} has scores of {len(pairs.log):,} of the {len(judging.log):,} logged pairs: judged on "
                "these, as if they were a random part of the log; missing='mean' fills the others",
                ScoreWarning,
            )
        audit = self.audit if pairs is self.pairs else audit_within(self.audit, pairs.log)
        with naming(name, PredictionError):
            return estimate(
                predictions,
                pairs.log,
                propensities=pairs.propensities,
                noise_rates=self.rates,
                audit=audit,
                survey=self.survey if covered is None else None,
                errors=self.pairs.errors if audit is not None else None,
                exclude=self.exclude,
                estimators=self.estimators if covered is None else self._on_logged(),
                **self.options,
            )

    @cached_property
    def _apart(self) -> tuple[FeedbackLog, LoggedPairs]:
        """The rows to calibrate by, and those to judge by what is calibrated."""
        return apart_for_calibration(self.pairs, random_state=self.options["random_state"])

    def _on_logged(self) -> Sequence[str] | str:
        if self.estimators is not None:
            return self.estimators
        usual = chosen(None, with_rates=self.rates is not None)
        return [one.name for one in usual if not one.needs_all_predictions]

    def _ranking(self, name: str, predictions: PredictionsLike) -> Estimates | None:
        """Estimate how well all items are ranked, by all rows: the order of scores needs no calibration."""
        log = self.pairs.log
        lacking = "has no scores of all pairs" if covered_rows(predictions, log) is not None else None
        if log.levels is not None:
            lacking = "is judged by levels, which rankings cannot use yet"
        if log.weights is not None:
            lacking = "is judged by rows with weights, which rankings cannot use"
        if lacking is None and self.clicks:
            by_clicks = partial(
                estimate_click_ranking,
                predictions,
                log,
                gamma=self.ranking.gamma,
                exclude=self.exclude,
                k=self.ranking.k,
                confidence=self.options["confidence"],
            )
            return kept("ranking", by_clicks)
        if lacking is None:
            assert not isinstance(self.rates, TransitionMatrix | TransitionRegion)  # noqa: S101 -- those are of levels
            by_all = partial(
                estimate_ranking,
                predictions,
                log,
                propensities=self.pairs.propensities,
                noise_rates=self.rates,
                audit=self.audit,
                survey=self.survey,
                exclude=self.exclude,
                k=self.ranking.k,
                confidence=self.options["confidence"],
            )
            return kept("ranking", by_all)
        if self.ranking.ranking_only:
            raise ParameterError(f"{name} {lacking}: there is no ranking to judge")
        return None
