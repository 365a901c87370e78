"""How an assessment judges, checked: the same for every recommender."""

from __future__ import annotations

from typing import Any

from verirec.checks import listener as listener
from verirec.checks import named_entries as named_entries
from verirec.checks import real_number, whole_number
from verirec.estimation.inputs import checked_clip, checked_sample
from verirec.estimation.intervals import checked_confidence
from verirec.estimation.roots import RMSE, pointwise
from verirec.estimation.selection_range import SelectionRange
from verirec.exceptions import ParameterError
from verirec.losses import get_level_loss, get_loss
from verirec.randomness import same_state


def checked_settings(**given: Any) -> dict[str, Any]:
    """Check the settings of `assess`, and return those of `Evidence`."""
    selection = SelectionRange() if given["selection"] is None else given["selection"]
    if not isinstance(selection, SelectionRange):
        raise ParameterError(f"selection must be such as SelectionRange(0, 3); got {type(selection).__name__}")
    levels = given.get("levels")
    loss = given["loss"] if given["loss"] is not None else "log" if levels is None else RMSE
    if levels is None:
        get_loss(loss)
    elif given["selection"] is not None:
        raise ParameterError("selection is a range of how readily liked pairs are logged: levels have none")
    else:
        get_level_loss(pointwise(loss)[0], levels)
    return {
        "selection": selection,
        "loss": loss,
        "confidence": checked_confidence(given["confidence"]),
        "clip": checked_clip(given["clip"]) if levels is None else given["clip"],
        "sample": checked_sample(given["sample"]),
        # One number for all parts: a generator would be drawn from anew by each.
        "seed": same_state(given["random_state"]),
        "depth": whole_number("k", given["k"]),
    }


def named_numbers(argument: str, given: Any) -> dict[str, float]:
    """Accept a number for each of some recommenders' names."""
    return {name: real_number(f"{argument} of {name}", value) for name, value in named_entries(argument, given).items()}
