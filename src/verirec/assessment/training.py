"""Rows held out to judge by, and recommenders trained on the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from verirec.checks import real_number
from verirec.data.feedback_log import FeedbackLog
from verirec.data.predictions import PredictionsLike
from verirec.data.splits import split
from verirec.estimation.inputs import AnyNoise
from verirec.exceptions import MissingExtraError, ParameterError
from verirec.formatting import short
from verirec.losses import AnyRegion
from verirec.nuisance.propensities import Propensities
from verirec.resuming import kept

HELD_OUT: Final = 0.2


class Held(NamedTuple):
    """A log in parts: what judges, what trains (if anything does), and the share of all rows that judges."""

    judging: FeedbackLog
    training: FeedbackLog | None
    share: float


class TrainedHere(NamedTuple):
    """Predictions of what was trained, and of what was searched for what the search tried and chose, by name."""

    predictions: dict[str, PredictionsLike]
    searches: dict[str, dict[str, Any]]


def hold_out_rows(log: FeedbackLog, hold_out: float | None, train: Sequence[str], seed: int) -> Held:
    """Part a log at random; where something is to be trained, a fifth of it is held out if nobody says otherwise."""
    if hold_out is None and not train:
        return Held(log, None, 1.0)
    share = real_number("hold_out", HELD_OUT if hold_out is None else hold_out, above=0, below=1)
    training, judging = split(log, share, random_state=seed)
    return Held(judging, training, len(judging) / len(log))


def checked_methods(train: Any) -> tuple[str, ...]:
    """Accept names of training methods, each once."""
    if not isinstance(train, str) and (
        not isinstance(train, Sequence) or not all(isinstance(name, str) for name in train)
    ):
        raise ParameterError(f"train must name methods, such as mf or ome-dr; got {short(train)}")
    names = (train,) if isinstance(train, str) else tuple(train)
    if not names:
        return ()
    catalogue = _catalogue()
    for name in names:
        if name not in catalogue:
            raise ParameterError(
                f"train must name methods, such as mf or ome-dr (verirec methods lists them); got {short(name)}"
            )
    if len(set(names)) < len(names):
        raise ParameterError(f"train must name each method once; got {', '.join(names)}")
    return names


def refuse_taken(methods: Sequence[str], predictions: Mapping[str, Any]) -> None:
    """Refuse methods whose name a given recommender has."""
    taken = sorted(set(methods) & set(predictions))
    if taken:
        raise ParameterError(f"predictions and train both name {taken[0]!r}")


def train_all(
    names: Sequence[str],
    held: Held,
    propensities: Propensities,
    noise: AnyNoise,
    seed: int,
    progress: Callable[[str], None],
    *,
    head: str | None = None,
) -> TrainedHere:
    """Train methods on the rows that do not judge, with the propensities and the noise rates of the whole log.

    Where only a region of rates is known, methods that need rates learn their own. `head` is what they predict of
    levels; `None` for stars.
    """
    if held.training is None:
        return TrainedHere({}, {})
    rates = None if isinstance(noise, AnyRegion) else noise
    thinned = propensities.thinned(1 - held.share)
    found = TrainedHere({}, {})
    for name in names:
        progress(f"Training {name}")
        method = _catalogue()[name](**({} if head is None else {"head": head}), random_state=seed)
        fitted = partial(_fitted, method, held.training, propensities=thinned, noise_rates=rates)
        found.predictions[name], search = kept(f"training {name}", fitted)
        if search is not None:
            found.searches[name] = search
    return found


def _fitted(method: Any, log: FeedbackLog, **known: Any) -> tuple[PredictionsLike, dict[str, Any] | None]:
    """Train, and return what the model predicts and what was tried."""
    method.fit(log, **known)
    return method.predictions, method.report_.search


def _catalogue() -> Any:
    """Import what needs torch, or say what to install."""
    try:
        from verirec import methods
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"training needs {error.name}: pip install 'verirec[train]'") from None
    return methods.catalogue
