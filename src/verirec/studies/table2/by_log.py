"""What needs no tuning: `Auto`, which chooses by the log alone, and constants as they come; surveys for both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verirec.data.feedback_log import FeedbackLog
from verirec.losses import NoiseRates

if TYPE_CHECKING:
    from verirec.methods.trained import Trained
    from verirec.nuisance.surveys import SurveySample


def trained_by_log(
    name: str, train: FeedbackLog, rates: NoiseRates, survey: SurveySample | None, seed: int
) -> tuple[Trained, dict[str, Any]]:
    """Train one of `BY_LOG`; returns it, and what its search tried and chose.

    Noise rates are for the criterion of `Auto`, where probabilities are wanted.
    """
    from verirec.methods import MF, Auto

    if name.startswith("constants"):
        return MF(model="constants", random_state=seed).fit(train, survey=survey), {}
    auto = Auto(objective="ranking" if name == "auto-ranking" else "probability", random_state=seed)
    auto.fit(train, noise_rates=rates, survey=survey)
    return auto, summary(auto.report_.search or {})


def summary(search: dict[str, Any]) -> dict[str, Any]:
    """Say how many candidates a search tried, what it chose, and by how much that is better than constants."""
    return {
        "tried": len(search["trials"]),
        "chosen": {name: value for name, value in search["trials"][search["chosen"]].items() if value is not None},
        "constants": search["chosen"] == search["reference"],
        "gain": search["guard"]["gain"],
        "standard_error": search["guard"]["standard_error"],
    }
