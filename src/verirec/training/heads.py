"""Heads: what a model's score says of a label, how it is trained, and what is predicted by it.

Binary labels have a logistic one. A log that keeps its levels has one of two: "stars", where the score is a star, or
"ordinal", where it moves the chances of all levels together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import expit, logit

from verirec.checks import number_array
from verirec.data.cells import CellValues, Positions
from verirec.data.distributions import Distributions
from verirec.data.feedback_log import FeedbackLog
from verirec.data.levels import Levels, checked_levels, in_words
from verirec.estimation.curves import PlattCurve
from verirec.estimation.inputs import KnownNoise
from verirec.exceptions import ParameterError
from verirec.losses import TransitionMatrix
from verirec.models import CumulativeModel, Model
from verirec.training.correction import Kind, NoiseCorrection, make_correction
from verirec.training.data import TrainingData
from verirec.training.level_correction import LevelChances, StarValues
from verirec.training.losses import LOSSES
from verirec.training.model_cells import ModelCells, levelled_cells, predictions_of, score_cells

Array = npt.NDArray[np.float64]
HeadName = Literal["binary", "stars", "ordinal"]
HEADS: Final = ("binary", "stars", "ordinal")

MOST_LOGIT: Final = 4.0
"""Logits are cut off at it before they are judged: else a corrected loss, unbounded below, rewards overconfidence."""
_RARE: Final = 1e-3
_CLOSE: Final = 0.05
"""What thresholds are apart at the start, at least."""


class Head(ABC):
    """What a score says of a label."""

    name: ClassVar[HeadName]
    validation_loss: str
    """Of predictions on held-out rows."""
    usual_penalty: ClassVar[float] = 8.0
    """Of factors beside constants: these explain most, and factors what is left."""
    levels: Levels | None

    @abstractmethod
    def correction(self, kind: Kind, rates: KnownNoise | None, data: TrainingData) -> NoiseCorrection:
        """Return what makes errors of scores and labels."""

    def model(self, scores: Model) -> Model:
        """Return what is trained, given a model of scores."""
        return scores

    def trained(self, model: Model) -> tuple[Model, Head]:
        """Return the model of scores, and this head with all that was learnt beside it."""
        return model, self

    @abstractmethod
    def judged(self, model: Model, shape: tuple[int, int]) -> CellValues:
        """Return what is validated of a model that is being trained."""

    @abstractmethod
    def predictions(
        self,
        model: Model,
        shape: tuple[int, int],
        places: tuple[npt.NDArray[Any], npt.NDArray[Any]] | None = None,
        curve: PlattCurve | None = None,
    ) -> Any:
        """Return predictions as `verirec.estimate` takes them, of a model's grid or of some users and items.

        A curve puts level and slope of the scores right first.
        """

    @abstractmethod
    def values(self, scores: Array) -> Array:
        """Return what is predicted at scores: one number each."""

    @abstractmethod
    def plain(self) -> dict[str, Any]:
        """Return it as JSON holds it."""


@dataclass(frozen=True)
class BinaryHead(Head):
    r"""The score is a logit: :math:`P(r^* = 1) = \sigma(z)`.

    Parameters
    ----------
    loss
        "log" or "squared".
    """

    name: ClassVar[HeadName] = "binary"
    levels: ClassVar[None] = None  # type: ignore[misc]
    loss: str = "log"

    @property
    def validation_loss(self) -> str:  # type: ignore[override]
        """The same."""
        return self.loss

    def correction(self, kind: Kind, rates: KnownNoise | None, data: TrainingData) -> NoiseCorrection:
        """Return what makes errors of logits and labels."""
        assert not isinstance(rates, TransitionMatrix)  # noqa: S101 -- refused where noise is checked
        return make_correction(kind, self.loss, rates, data)

    def judged(self, model: Model, shape: tuple[int, int]) -> CellValues:
        """Return probabilities, none of them next to 0 or 1."""
        return ModelCells(model, shape, MOST_LOGIT)

    def predictions(
        self,
        model: Model,
        shape: tuple[int, int],
        places: tuple[npt.NDArray[Any], npt.NDArray[Any]] | None = None,
        curve: PlattCurve | None = None,
    ) -> Any:
        """Return probabilities."""
        return predictions_of(model, shape, *(places or ()), curve=curve)

    def values(self, scores: Array) -> Array:
        """Return probabilities."""
        return np.asarray(expit(scores))

    def plain(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {"name": self.name, "loss": self.loss}


BINARY: Final = BinaryHead()
"""What recommenders have unless they are of levels."""


@dataclass(frozen=True)
class StarsHead(Head):
    """The score is a star, in units of how much those of the log vary: centre + spread z.

    Penalties of factors then mean the same on any scale.

    Parameters
    ----------
    levels
        Of the log.
    centre, spread
        Mean and standard deviation of the log's stars.
    """

    name: ClassVar[HeadName] = "stars"
    validation_loss: ClassVar[str] = "squared"  # type: ignore[misc]
    # Chosen by held-out rows of MovieLens 100K, best from 12 to 16 with 8 to 32 factors: tests on other splits of the
    # same log, as in docs/stars.md, are in its favour.
    usual_penalty: ClassVar[float] = 13.0
    levels: Levels
    centre: float
    spread: float

    def correction(self, kind: Kind, rates: KnownNoise | None, data: TrainingData) -> NoiseCorrection:
        """Return squares of the levels' values, or of T^-1 times these."""
        values = (np.asarray(self.levels) - self.centre) / self.spread
        if kind == "forward":
            raise ParameterError('correction="forward" is of chances: for head="ordinal", or 0/1 labels')
        if kind == "surrogate" and isinstance(rates, TransitionMatrix):
            values = rates.corrected(values)
        return StarValues(torch.tensor(values, dtype=torch.float32).to(data.device))

    def judged(self, model: Model, shape: tuple[int, int]) -> CellValues:
        """Return stars."""
        return _Values(ModelCells(model, shape), self)

    @property
    def line(self) -> PlattCurve:
        """From scores to stars."""
        return PlattCurve(self.spread, self.centre)

    def predictions(
        self,
        model: Model,
        shape: tuple[int, int],
        places: tuple[npt.NDArray[Any], npt.NDArray[Any]] | None = None,
        curve: PlattCurve | None = None,
    ) -> Any:
        """Return stars."""
        line = self.line
        if curve is not None:
            line = replace(curve, slope=self.spread * curve.slope, level=self.centre + self.spread * curve.level)
        return predictions_of(model, shape, *(places or ()), curve=line, link="identity")

    def values(self, scores: Array) -> Array:
        """Return stars."""
        return np.asarray(self.line.logits(scores))

    def plain(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {"name": self.name, "levels": list(self.levels), "centre": self.centre, "spread": self.spread}


@dataclass(frozen=True)
class OrdinalHead(Head):
    r"""The score moves all levels: :math:`P(r^* \ge c) = \sigma(z + \theta_c)`.

    Parameters
    ----------
    levels
        Of the log.
    thresholds
        K - 1 in descending order, as they start or as they were learnt.
    """

    name: ClassVar[HeadName] = "ordinal"
    validation_loss: ClassVar[str] = "log"  # type: ignore[misc]
    levels: Levels
    thresholds: tuple[float, ...]

    def correction(self, kind: Kind, rates: KnownNoise | None, data: TrainingData) -> NoiseCorrection:
        """Return log losses of levels; of noise, forward ones."""
        if kind == "surrogate":
            raise ParameterError(
                'correction="surrogate" is of 0/1 labels and of head="stars": take correction="forward" for '
                'head="ordinal"'
            )
        noise = rates if kind != "none" and isinstance(rates, TransitionMatrix) else None
        return LevelChances.of(len(self.levels), noise, data.device)

    def model(self, scores: Model) -> Model:
        """Put thresholds to the scores."""
        return CumulativeModel(scores, torch.tensor(self.thresholds, dtype=torch.float32))

    def trained(self, model: Model) -> tuple[Model, Head]:
        """Take the thresholds off again."""
        assert isinstance(model, CumulativeModel)  # noqa: S101
        return model.scores, replace(self, thresholds=tuple(model.thresholds.detach().double().tolist()))

    def judged(self, model: Model, shape: tuple[int, int]) -> CellValues:
        """Return chances of levels."""
        scores, head = self.trained(model)
        return _Chances(ModelCells(scores, shape), head)  # type: ignore[arg-type]

    def predictions(
        self,
        model: Model,
        shape: tuple[int, int],
        places: tuple[npt.NDArray[Any], npt.NDArray[Any]] | None = None,
        curve: PlattCurve | None = None,
    ) -> Any:
        """Return chances of levels, whose means are stars."""
        return _Chances(levelled_cells(score_cells(model, shape, *(places or ())), curve), self)

    def reached(self, scores: Array) -> Array:
        """Return the chance of reaching each level but the lowest, shape (K - 1, ...)."""
        return np.asarray(expit(np.stack([scores + one for one in self.thresholds])))

    def chances(self, scores: Array) -> Array:
        """Return the chance of each level, shape (K, ...)."""
        return np.asarray(-np.diff(self.reached(scores), axis=0, prepend=1.0, append=0.0))

    def values(self, scores: Array) -> Array:
        """Return the levels' mean."""
        return np.asarray(np.tensordot(np.asarray(self.levels), self.chances(scores), axes=1))

    def plain(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {"name": self.name, "levels": list(self.levels), "thresholds": list(self.thresholds)}


class _Values(CellValues):
    """What a head predicts at the scores of a model, a number a pair."""

    def __init__(self, scores: CellValues, head: Head) -> None:
        self.scores, self.head, self.shape = scores, head, scores.shape
        self.parallel = scores.parallel  # type: ignore[misc]

    def cells(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        return self.head.values(np.asarray(self.scores.cell_logits(users, items)))


class _Chances(Distributions):
    """The chances of levels at the scores of a model."""

    def __init__(self, scores: CellValues, head: OrdinalHead) -> None:
        self.scores, self.head, self.shape = scores, head, scores.shape
        self.parallel = scores.parallel  # type: ignore[misc]
        self.means = _Values(scores, head)

    def cells(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        return self.head.chances(np.asarray(self.scores.cell_logits(users, items)))


def make_head(name: HeadName | None, loss: str, log: FeedbackLog) -> Head:
    """Return the head for a log: by default "binary" for 0/1 labels, and "stars" for levels.

    Examples
    --------
    >>> log = FeedbackLog.from_arrays([0, 1, 1], [1, 0, 1], [5, 2, 2], n_users=2, n_items=2, levels=[1, 2, 3, 4, 5])
    >>> make_head(None, "log", log).centre
    3.0
    """
    if log.levels is None:
        if name not in (None, "binary"):
            raise ParameterError(f"head={name!r} needs a log that keeps its levels: levels=[1, 2, 3, 4, 5], say")
        return BinaryHead(loss)
    if name == "binary":
        raise ParameterError(
            f"head='binary' needs 0/1 labels; the log has levels {in_words(log.levels)}: take head='stars' or "
            "'ordinal', or log.binary(positive_from=...)"
        )
    if name == "ordinal":
        return OrdinalHead(log.levels, _thresholds(log))
    values = log.label_values
    return StarsHead(log.levels, float(values.mean()), float(values.std()))


def _thresholds(log: FeedbackLog) -> tuple[float, ...]:
    """Return the logits of how many rows reach each level, each below the one before."""
    assert log.levels is not None  # noqa: S101
    shares = [float((log.labels >= level).mean()) for level in range(1, len(log.levels))]
    found = logit(np.clip(shares, _RARE, 1 - _RARE))
    for place in range(1, len(found)):
        found[place] = min(found[place], found[place - 1] - _CLOSE)
    return tuple(found.tolist())


def read_head(held: dict[str, Any]) -> Head:
    """Read back what `Head.plain` made; what is no head is a `ValueError`."""
    name = held["name"]
    if name == BinaryHead.name:
        if held["loss"] not in LOSSES:
            raise ValueError(f"there is no such head: {name!r} with loss {held['loss']!r}")
        return BinaryHead(held["loss"])
    levels = checked_levels(held["levels"])
    if name == StarsHead.name:
        centre, spread = number_array("centre and spread", [held["centre"], held["spread"]], ndim=1).tolist()
        if not spread > 0 or not np.isfinite([centre, spread]).all():
            raise ValueError(f"a spread must be above 0; got {spread}")
        return StarsHead(levels, float(centre), float(spread))
    thresholds = number_array("thresholds", held["thresholds"], ndim=1).astype(np.float64)
    if name != OrdinalHead.name or len(thresholds) != len(levels) - 1 or not (np.diff(thresholds) < 0).all():
        raise ValueError(f"there is no such head: {name!r} of {len(levels)} levels with {len(thresholds)} thresholds")
    return OrdinalHead(levels, tuple(thresholds.tolist()))
