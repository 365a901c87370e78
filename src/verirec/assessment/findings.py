"""What an assessment finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from verirec.data.feedback_log import FeedbackLog
from verirec.estimation import Estimate, EstimateRange, Estimates
from verirec.estimation.inputs import Rates
from verirec.estimation.planning import LabelPlan
from verirec.estimation.sensitivity import Sensitivity
from verirec.losses import NoiseRegion
from verirec.nuisance.propensities import Propensities, PropensityDiagnostics
from verirec.nuisance.suspects import SuspectLabels


@dataclass(frozen=True, eq=False)
class AssessedRecommender:
    """What an assessment found of one recommender.

    Parameters
    ----------
    estimates
        By estimator.
    main, selection_only
        Names of the estimate to go by, and of the one corrected for selection only.
    covered
        Logged pairs that its predictions cover and that it was judged on, where these are not for all pairs.
    """

    estimates: Estimates
    main: str
    selection_only: str
    covered: int | None = None


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two recommenders, and the difference of their inaccuracies, first minus second.

    Parameters
    ----------
    naive, corrected
        As logged, and corrected for selection and noise.
    check
        Corrected by a second estimator, which fails in other ways; `None` where there is but one.
    flip_factor
        How far the odds of the propensities may be off before the two could change places.
    """

    first: str
    second: str
    naive: Estimate
    corrected: Estimate | EstimateRange
    check: Estimate | EstimateRange | None = None
    flip_factor: float = float("inf")

    @property
    def established(self) -> str | None:
        """The better one, if the corrected interval leaves no doubt and the second estimator does not contradict."""
        return None if self.contradicted else self._ahead(self.corrected)

    @property
    def contradicted(self) -> bool:
        """Whether the corrected interval leaves no doubt, and yet the second estimator has the other one ahead."""
        ahead = self._ahead(self.corrected)
        if ahead is None or self.check is None:
            return False
        low, high = self.check.range if isinstance(self.check, EstimateRange) else (self.check.value,) * 2
        return low > 0 if ahead == self.first else high < 0

    @property
    def naive_choice(self) -> str | None:
        """The one that is better in the log as it stands, if that leaves no doubt."""
        return self._ahead(self.naive)

    def other(self, name: str) -> str:
        """Return the other of the two."""
        return self.second if name == self.first else self.first

    def _ahead(self, difference: Estimate | EstimateRange) -> str | None:
        low, high = difference.interval
        return self.first if high < 0 else self.second if low > 0 else None


@dataclass(frozen=True, eq=False)
class Findings:
    """All that an assessment found.

    Parameters
    ----------
    log
        The log.
    propensities, propensity_diagnostics
        How likely pairs are to be logged, and how far that can be trusted.
    grid_propensities
        Of a random sample of all pairs, for a picture.
    noise, noise_source
        Rates or a region, and where they come from.
    recommenders, comparisons
        By name; every two of them that can be compared.
    incomparable
        Every two of which one covers some of the logged pairs only.
    sensitivity
        Surfaces over the noise rates, and ranges under wrong propensities; `None` without recommenders for all pairs.
    suspects
        Rows by the probability that their label is wrong; `None` where only a region is known.
    plan
        Which pairs to ask about, where no true label is known.
    liked_as_logged, liked_corrected
        Share of positive labels in the log, and of liked pairs among all, with its interval.
    warnings
        What its parts warned of.
    truth
        True inaccuracies by recommender, where a simulated world knows them.
    """

    log: FeedbackLog
    loss: str
    confidence: float
    propensities: Propensities
    propensity_diagnostics: PropensityDiagnostics
    grid_propensities: npt.NDArray[np.float64]
    noise: Rates | NoiseRegion
    noise_source: str
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
