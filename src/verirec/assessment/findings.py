"""What an assessment finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from verirec.data.feedback_log import FeedbackLog
from verirec.estimation import Estimate, EstimateRange, Estimates, SelectionStrength
from verirec.estimation.inputs import AnyNoise
from verirec.estimation.planning import LabelPlan
from verirec.estimation.selection_range import SelectionRange
from verirec.estimation.sensitivity import Sensitivity
from verirec.nuisance.noise_rates import WhoErrs
from verirec.nuisance.propensities import Propensities, PropensityDiagnostics
from verirec.nuisance.surveys import SurveySample
from verirec.nuisance.suspects import SuspectLabels

Basis = Literal["survey", "audit", "known propensities", "range"]
"""What an answer rests on, from the firmest: true labels of random pairs; propensities that the user vouches for, with
true labels of logged pairs or without; or every strength of taste that is thought possible."""


@dataclass(frozen=True, eq=False)
class AssessedRecommender:
    """What an assessment found of one recommender.

    Parameters
    ----------
    estimates
        Of its loss, by estimator; "range" is all that taste may have made of the log. `None` for scores that are not
        probabilities.
    headline
        Name of the estimate to go by.
    corrected, selection_only
        Names of the estimates that the log gives if selection depends on user and item only: corrected for selection
        and noise, and for selection alone.
    ranking
        Estimates of how well it ranks; `None` without scores of all pairs.
    covered
        Logged pairs that its predictions cover and that it was judged on, where these are not for all pairs.
    lists
        Whether it is top-k lists, which have no losses.
    """

    estimates: Estimates | None
    headline: str
    corrected: str
    selection_only: str
    ranking: Estimates | None = None
    covered: int | None = None
    lists: bool = False


@dataclass(frozen=True, eq=False)
class RankingComparison:
    """Two recommenders, and how much better the first one ranks.

    Parameters
    ----------
    estimates
        The differences, first minus second, by metric.
    metric
        The one that decides.
    basis
        What they rest on.
    lacking
        Why nothing is established whatever the interval says, as a sentence; empty if nothing is lacking.
    """

    first: str
    second: str
    estimates: Estimates
    metric: str
    basis: Basis
    lacking: str = ""

    @property
    def deciding(self) -> Estimate | EstimateRange:
        """The difference that decides."""
        found: Estimate | EstimateRange = self.estimates[self.metric]
        return found

    @property
    def established(self) -> str | None:
        """The one that ranks better, if that leaves no doubt."""
        low, high = self.deciding.interval
        return None if self.lacking else self.first if low > 0 else self.second if high < 0 else None

    @property
    def other(self) -> str:
        """The one that is not established to rank better."""
        return self.second if self.established == self.first else self.first


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two recommenders, and the difference of their inaccuracies, first minus second.

    Parameters
    ----------
    deciding, basis
        The estimate that decides, and what it rests on; `None` where nothing can.
    naive, corrected
        As logged, and corrected for selection and noise if selection depends on user and item only; `None` of clicks
        alone, which tell neither.
    check
        Corrected by a second estimator, which fails in other ways; `None` where there is but one.
    flip_factor
        How far the odds of the propensities may be off before the two could change places.
    lacking
        Why nothing is established whatever the interval says, as a sentence; empty if nothing is lacking.
    """

    first: str
    second: str
    deciding: Estimate | EstimateRange
    basis: Basis | None
    naive: Estimate | None
    corrected: Estimate | EstimateRange | None
    check: Estimate | EstimateRange | None = None
    flip_factor: float = float("inf")
    lacking: str = ""

    @property
    def established(self) -> str | None:
        """The better one, if what decides leaves no doubt, rests on something, and is not contradicted."""
        if self.basis is None or self.lacking or self.contradicted:
            return None
        return self._ahead(self.deciding)

    @property
    def contradicted(self) -> bool:
        """Whether propensities decide without doubt, and yet the second estimator has the other one ahead."""
        ahead = self._ahead(self.deciding)
        if ahead is None or self.check is None or self.basis not in ("audit", "known propensities"):
            return False
        low, high = self.check.range if isinstance(self.check, EstimateRange) else (self.check.value,) * 2
        return low > 0 if ahead == self.first else high < 0

    @property
    def naive_choice(self) -> str | None:
        """The one that is better in the log as it stands, if that leaves no doubt."""
        return None if self.naive is None else self._ahead(self.naive)

    @property
    def not_established_from(self) -> float | None:
        """Of a range, the smallest largest delta at which nothing is established; `None` if something is all along."""
        found: float | None = self.deciding.diagnostics.get("not_established_from") if self.basis == "range" else None
        return found

    def other(self, name: str) -> str:
        """Return the other of the two."""
        return self.second if name == self.first else self.first

    def _ahead(self, difference: Estimate | EstimateRange) -> str | None:
        low, high = difference.interval
        return self.first if high < 0 else self.second if low > 0 else None


@dataclass(frozen=True)
class Origin:
    """Where an assessment comes from, for the foot of its page; empty where nobody said.

    Parameters
    ----------
    file, command
        The log's file, and the command that was run.
    """

    file: str = ""
    command: str = ""


class Asking(NamedTuple):
    """About how many random pairs a survey needs, and the half-width of what it would tell."""

    pairs: int
    half_width: float


@dataclass(frozen=True)
class Stars:
    """What an assessment found of levels, where a log keeps them.

    Parameters
    ----------
    logged, corrected
        Share of each level among the rows that judge, and among all pairs in truth; the latter empty where nothing
        tells it.
    asking
        How many random pairs to ask about, where that would settle what is open.
    """

    logged: tuple[float, ...]
    corrected: tuple[Estimate | EstimateRange, ...] = ()
    asking: Asking | None = None


@dataclass(frozen=True, eq=False)
class Findings:
    """All that an assessment found.

    Parameters
    ----------
    log
        The rows that judge.
    propensities, propensity_diagnostics
        How likely pairs are to be logged, and how far that can be trusted.
    grid_propensities
        Of a random sample of all pairs, for a picture.
    noise, noise_source
        Rates or a region, and where they come from; of levels, a matrix, or `None` where nothing tells it.
    selection, survey
        How strongly taste may decide what is logged, and the survey, if there is one.
    best
        A survey of pairs among their users' best, which tells rankings alone.
    ranking_comparisons
        Every two of which the survey, or known propensities, tell which one ranks better.
    depth
        Of the ranking metrics.
    strength
        How much more readily people log what they like, where a survey tells.
    basis
        What the headlines of recommenders for all pairs rest on.
    excludes
        Whether there are pairs that are not spoken of.
    not_spoken_of
        How many of the surveyed pairs are among these.
    clicks
        Whether the log has clicks alone, so that only the survey tells what people do not like.
    trained
        Names of recommenders that were trained on the rows that were not held out.
    calibrated
        Recommenders whose scores were made probabilities, and by how many logged rows, which do not judge.
    calibrated_by_survey
        Those that were calibrated by the survey, and by how many pairs, each judged by a curve of the others.
    searches
        What was tried and chosen for those of them whose parameters were searched for.
    recommenders, comparisons
        By name; every two of them that can be compared.
    incomparable
        Every two of which one covers some of the logged pairs only.
    sensitivity
        Surfaces over the noise rates, and ranges under wrong propensities; `None` without recommenders for all pairs.
    suspects
        Rows by the probability that their label is wrong; `None` where only a region is known.
    plan
        Which pairs to ask about, where a survey would settle what is open.
    liked_as_logged, liked_corrected
        Share of positive labels in the log, and of liked pairs among all, with its interval; of levels, their means.
    warnings
        What its parts warned of.
    truth
        True inaccuracies by recommender, where a simulated world knows them.
    errors
        Who errs, where an audit tells.
    stars
        What was found of levels, where the log keeps them; `None` if it is binary.
    origin
        Where it comes from.
    """

    log: FeedbackLog
    loss: str
    confidence: float
    propensities: Propensities
    propensity_diagnostics: PropensityDiagnostics
    grid_propensities: npt.NDArray[np.float64]
    noise: AnyNoise
    noise_source: str
    selection: SelectionRange
    survey: SurveySample | None
    strength: SelectionStrength | None
    basis: Basis
    recommenders: dict[str, AssessedRecommender]
    comparisons: list[Comparison]
    incomparable: list[tuple[str, str]]
    sensitivity: Sensitivity | None
    suspects: SuspectLabels | None
    plan: LabelPlan | None
    liked_as_logged: float
    liked_corrected: Estimate | EstimateRange
    warnings: tuple[str, ...] = ()
    truth: Mapping[str, float] = field(default_factory=dict)
    excludes: bool = False
    not_spoken_of: int = 0
    trained: tuple[str, ...] = ()
    clicks: bool = False
    calibrated: Mapping[str, int] = field(default_factory=dict)
    calibrated_by_survey: Mapping[str, int] = field(default_factory=dict)
    searches: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    errors: WhoErrs | None = None
    stars: Stars | None = None
    best: SurveySample | None = None
    ranking_comparisons: tuple[RankingComparison, ...] = ()
    depth: int = 5
    origin: Origin = field(default_factory=Origin)
