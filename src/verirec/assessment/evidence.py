"""What an assessment goes by: the log, the labels in hand, and what is assumed where there are none."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from verirec.assessment.findings import Basis
from verirec.data.cells import Positions
from verirec.data.predictions import PredictionsLike
from verirec.estimation import (
    Estimate,
    EstimateRange,
    Estimates,
    SelectionStrength,
    compare_rankings,
    estimate_ranking,
    selection_strength,
)
from verirec.estimation.catalogue import chosen
from verirec.estimation.inference import judge
from verirec.estimation.problem import EstimationProblem
from verirec.estimation.range_ends import judge_by_range
from verirec.estimation.rows import LoggedPairs
from verirec.estimation.selection_range import RangeProblem, SelectionRange
from verirec.estimation.setup import drawn_seed, make_problem
from verirec.estimation.survey.problem import Losses, survey_results
from verirec.exceptions import EmptyLogError, LabelError, NoiseRateError, SurveyError, SurveyWarning
from verirec.losses import GroupedNoiseRates, LossLike, NoiseRates, NoiseRegion
from verirec.nuisance.surveys import SurveySample

if TYPE_CHECKING:
    from verirec.data.feedback_log import FeedbackLog
    from verirec.nuisance.noise_rates import AuditSample
    from verirec.nuisance.propensities import Propensities

Array = npt.NDArray[np.float64]

RANGE_SAMPLE: Final = 4_000_000
_RANKED: Final = 400
"""Scores that are ranked for each pair of a sample: a metric of users needs many of them, and each has all items."""
_GRID_SAMPLE: Final = 100_000
SURVEYED: Final = ("survey", "survey-ppi")
ESTIMATE_OF_BASIS: Final[dict[Basis, str]] = {
    "survey": "survey-ppi",
    "audit": "audited-dr",
    "known propensities": "ome-dr",
    "range": "range",
}


@dataclass(frozen=True, eq=False)
class Evidence:
    """What every recommender of an assessment is judged by, so that all are alike.

    Parameters
    ----------
    pairs
        The logged pairs at hand, with their propensities and their audit.
    judging
        Those of them that judge: that are spoken of, standing for all that are.
    noise
        Rates, or a region of them.
    survey
        True labels of random pairs, if there are any.
    best
        True labels of pairs among their users' best, which tell rankings alone, if there are any.
    selection
        How strongly taste may decide what is logged.
    audit
        True labels of these pairs, if there are any.
    exclude
        Pairs that are not spoken of, such as those that were trained on.
    lacking
        Why the survey establishes nothing, as a sentence; empty if nothing is lacking.
    clicks
        Whether the log has clicks alone: then the survey judges, and nothing else does.
    loss, confidence, clip, sample, seed, depth
        As in `estimate` and, the depth, in `estimate_ranking`.
    """

    pairs: LoggedPairs
    judging: LoggedPairs
    noise: NoiseRates | GroupedNoiseRates | NoiseRegion
    survey: SurveySample | None
    selection: SelectionRange
    audit: AuditSample | None
    exclude: Any
    lacking: str
    loss: LossLike
    confidence: float
    clip: float | None
    sample: int | None
    seed: Any
    depth: int = 5
    clicks: bool = False
    best: SurveySample | None = None

    @property
    def basis(self) -> Basis:
        """What answers for all pairs rest on: the firmest of what there is."""
        if self.survey is not None:
            return "survey"
        if not self.pairs.propensities.known:
            return "range"
        return "known propensities" if self.judging.audited is None else "audit"

    @property
    def headline(self) -> str:
        """Name of the estimate to go by."""
        return ESTIMATE_OF_BASIS[self.basis]

    @property
    def audited(self) -> tuple[str, ...]:
        """Names of estimators that rest on the audit, if there is one."""
        return () if self.judging.audited is None else ("audited-dr",)

    @property
    def grid_propensities(self) -> Array:
        """The propensities of a random sample of all pairs, if they are known there."""
        return grid_propensities(self.pairs.propensities, self.pairs.log)

    def problem(
        self, predictions: PredictionsLike, pairs: LoggedPairs, estimators: tuple[str, ...]
    ) -> EstimationProblem:
        """Put a recommender and the pairs that it is judged on together."""
        return make_problem(
            predictions,
            pairs,
            chosen(estimators, with_rates=True),
            loss=self.loss,
            clip=self.clip,
            sample=self.sample,
            seed=drawn_seed(self.seed),
        )

    def by_labels(self, losses: Sequence[Losses]) -> list[dict[str, Any]]:
        """Judge by the survey or, without one, by the range: each of `losses` by name of the estimator."""
        if self.survey is not None:
            options: dict[str, Any] = {"confidence": self.confidence, "audited": self.pairs.audited}
            options |= {"exclude": self.exclude, "sample": self.sample, "seed": drawn_seed(self.seed)}
            return survey_results(losses, SURVEYED, self.survey, self.pairs.log, self.noise, **options)
        if self.basis != "range":
            return [{} for _ in losses]
        return [{"range": one} for one in judge_by_range(self._range, losses, self.confidence)]

    @cached_property
    def _range(self) -> RangeProblem:
        """What the log alone says of labels."""
        # A range is wide: a sample of a large grid, whose error is in the interval, serves it as well as all pairs.
        large = self.sample is None and self.pairs.log.n_cells > RANGE_SAMPLE
        return RangeProblem.of(
            self.pairs,
            self.selection,
            self.noise,
            exclude=self.exclude,
            sample=RANGE_SAMPLE if large else self.sample,
            seed=drawn_seed(self.seed),
        )

    def liked(self) -> Estimate | EstimateRange:
        """Estimate the share of liked pairs: the mean of a "loss" that counts a liked pair as 1."""
        if self.basis in ("survey", "range"):
            found: Estimate | EstimateRange = self.by_labels([_Liked()])[0][self.headline]
            return found

        def half(users: Positions, items: Positions) -> Array:
            return np.full(len(users), 0.5)

        def is_liked(predictions: Array, labels: Array) -> Array:
            return labels

        weighted = chosen("ome-snips", with_rates=True)
        problem = make_problem(half, self.judging, weighted, loss=is_liked)
        return judge(problem, weighted, self.noise, self.confidence)["ome-snips"]  # type: ignore[no-any-return]

    def strength(self) -> SelectionStrength | None:
        """Estimate how much more readily people log what they like; nothing where there is no survey to tell it."""
        if self.survey is None or self.clicks:
            return None
        # Of a region of rates none is known: then it is what was said that is held against the survey.
        rates = None if isinstance(self.noise, NoiseRegion) else self.noise
        # Rates that do not fit, or a survey without unlogged pairs of both classes, leave nothing to say.
        with warnings.catch_warnings(), suppress(NoiseRateError, SurveyError, np.linalg.LinAlgError):
            # What a survey is to be warned of was said when the recommenders were judged by it.
            warnings.simplefilter("ignore", SurveyWarning)
            return selection_strength(
                self.pairs.log,
                self.survey,
                rates,
                propensities=self.pairs.propensities,
                exclude=self.exclude,
                confidence=self.confidence,
                random_state=drawn_seed(self.seed),
            )
        return None

    def ranking(self, *scores: PredictionsLike) -> Estimates | None:
        """Estimate how well scores of all pairs rank, or by how much better the first of two does.

        Nothing where weights, rates, too few rows, or a survey of other pairs forbid it.
        """
        if self.pairs.log.weights is not None:
            return None
        with warnings.catch_warnings(), suppress(NoiseRateError, SurveyError, EmptyLogError, LabelError):
            # The page says which metrics rest on the log; each has its source in the summary.
            warnings.simplefilter("ignore", SurveyWarning)
            judged: Any = estimate_ranking if len(scores) == 1 else compare_rankings
            found: Estimates = judged(
                *scores,
                self.pairs.log,
                propensities=self.pairs.propensities,
                noise_rates=self.noise,
                audit=None if self.judging.audited is None else self.audit,
                survey=self.survey if self.best is None else self.best,
                exclude=self.exclude,
                k=self.depth,
                confidence=self.confidence,
                max_scores=None if self.sample is None else _RANKED * self.sample,
            )
            return found
        # The conclusions say that the rates do not fit, and a warning that few rows are left.
        return None


def grid_propensities(propensities: Propensities, log: FeedbackLog) -> Array:
    """Return the propensities of a random sample of all pairs, if they are known there."""
    if not propensities.known_everywhere:
        return np.empty(0)
    cells = np.random.default_rng(0).integers(log.n_cells, size=min(_GRID_SAMPLE, 4 * log.n_cells))
    return np.asarray(propensities.at(*np.divmod(cells, log.n_items)), dtype=np.float64)


class _Liked:
    """Losses of 1 for liked pairs and 0 for others."""

    parallel = True

    def cells(self, users: Positions, items: Positions) -> tuple[Array, Array]:
        """Return 0 and 1."""
        shape = np.broadcast(users, items).shape
        return np.broadcast_to(0.0, shape), np.broadcast_to(1.0, shape)

    of_rows = cells
