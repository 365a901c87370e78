"""What to ask people, where the answer is open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from verirec.assessment.evidence import Evidence
from verirec.assessment.findings import Comparison
from verirec.assessment.recommenders import Judged
from verirec.data.predictions import PredictionsLike
from verirec.estimation import Estimate
from verirec.estimation.planning import LabelPlan, plan_labels
from verirec.exceptions import VerirecError

HALF_WIDTH: Final = 0.03
"""Of a loss, or of noise rates, where no comparison says how sharp the answer has to be."""
_SHARPEST: Final = 0.005
"""Half-width below which nobody should be asked to settle a difference."""


def propose(predictions: Mapping[str, PredictionsLike], judged: Judged, evidence: Evidence) -> LabelPlan | None:
    """Plan the questions that would settle what is open; `None` where nothing is, or where no number of them would."""
    whole = [name for name, one in judged.recommenders.items() if one.estimates is not None and one.covered is None]
    contest = _closest([one for one in judged.comparisons if {one.first, one.second} <= set(whole)])
    if whole and contest is None and evidence.basis != "range":
        return None
    options = {"confidence": evidence.confidence, "random_state": evidence.seed}
    log = evidence.pairs.log
    try:
        if contest is not None:
            both = {name: predictions[name] for name in (contest.first, contest.second)}
            # Half of what there seems to be, as what there is may be less.
            width = min(max(_difference(contest) / 2, _SHARPEST), HALF_WIDTH)
            return plan_labels(log, both, half_width=width, purpose="difference", loss=evidence.loss, **options)
        if whole:
            alone = {name: predictions[name] for name in whole}
            return plan_labels(log, alone, half_width=HALF_WIDTH, purpose="level", loss=evidence.loss, **options)
        return plan_labels(log, half_width=HALF_WIDTH, **options)
    except VerirecError:
        return None


def _closest(comparisons: list[Comparison]) -> Comparison | None:
    """Return the open comparison with the largest difference: the one that is cheapest to settle."""
    undecided = [one for one in comparisons if one.established is None]
    return max(undecided, key=_difference) if undecided else None


def _difference(one: Comparison) -> float:
    """Return how large a difference seems to be."""
    found = one.deciding if isinstance(one.deciding, Estimate) else one.corrected
    if isinstance(found, Estimate):
        return abs(found.value)
    return abs(sum(found.range)) / 2
