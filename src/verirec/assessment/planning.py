"""What to ask people, where the answer is open."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from verirec.assessment.evidence import Evidence
from verirec.assessment.findings import Comparison
from verirec.assessment.recommenders import Judged
from verirec.data.predictions import PredictionsLike
from verirec.estimation import Estimate
from verirec.estimation.planning import LabelPlan, plan_labels
from verirec.exceptions import AuditError, EmptyLogError, SurveyWarning, UnreachableError
from verirec.losses import NoiseRates

HALF_WIDTH: Final = 0.03
"""Of a loss, or of noise rates, where no comparison says how sharp the answer has to be."""
_SHARPEST: Final = 0.005
"""Half-width below which nobody should be asked to settle a difference."""


def propose(predictions: Mapping[str, PredictionsLike], judged: Judged, evidence: Evidence) -> LabelPlan | None:
    """Plan the questions that would settle what is open; `None` where nothing is, or where no number of them would."""
    whole = [name for name, one in judged.recommenders.items() if one.estimates is not None and one.covered is None]
    contest = closest([one for one in judged.comparisons if {one.first, one.second} <= set(whole)])
    if whole and contest is None and evidence.basis != "range":
        return None
    # There are too few pairs, too few rows to tell noise rates by, or too few even to guess at these.
    with suppress(UnreachableError, AuditError, EmptyLogError):
        if contest is not None:
            both = {name: predictions[name] for name in (contest.first, contest.second)}
            return _planned(both, telling_width(contest), "difference", evidence)
        if whole:
            return _planned({name: predictions[name] for name in whole}, HALF_WIDTH, "level", evidence)
        if any(one.ranking is not None for one in judged.recommenders.values()):
            # The conclusions say what to ask about rankings.
            return None
        options = {"confidence": evidence.confidence, "random_state": evidence.seed}
        return plan_labels(evidence.pairs.log, half_width=HALF_WIDTH, **options)
    return None


def _planned(predictions: dict[str, PredictionsLike], half_width: float, purpose: str, evidence: Evidence) -> LabelPlan:
    """Plan for recommenders, by all that the assessment knows."""
    survey, noise, pairs = evidence.survey, evidence.noise, evidence.judging
    with warnings.catch_warnings():
        # What a survey is to be warned of was said when the recommenders were judged by it.
        warnings.simplefilter("ignore", SurveyWarning)
        return plan_labels(
            pairs.log,
            predictions,
            half_width=half_width,
            purpose=purpose,
            # Answers with noise in them do not say how much is liked.
            pilot=None if survey is None or survey.noisy else survey,
            exclude=evidence.exclude,
            propensities=pairs.propensities,
            guess=noise if isinstance(noise, NoiseRates) else None,
            loss=evidence.loss,
            clip=evidence.clip,
            confidence=evidence.confidence,
            random_state=evidence.seed,
        )


def telling_width(contest: Comparison | None, scale: float = 1.0) -> float:
    """Return the half-width that would tell two apart: half of what there seems to be, as what there is may be less.

    `scale` is what labels span, in the units of the loss.
    """
    widest = HALF_WIDTH * scale
    return widest if contest is None else min(max(_difference(contest) / 2, _SHARPEST * scale), widest)


def closest(comparisons: list[Comparison]) -> Comparison | None:
    """Return the open comparison with the largest difference: the one that is cheapest to settle."""
    undecided = [one for one in comparisons if one.established is None]
    return max(undecided, key=_difference) if undecided else None


def _difference(one: Comparison) -> float:
    """Return how large a difference seems to be."""
    found = one.deciding if isinstance(one.deciding, Estimate) or one.corrected is None else one.corrected
    if isinstance(found, Estimate):
        return abs(found.value)
    return abs(sum(found.range)) / 2
