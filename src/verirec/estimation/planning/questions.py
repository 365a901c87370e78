"""What a plan is to answer: numbers that are linear in the labels of pairs, and the pairs that they are made of."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, repeat
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from verirec.adapters.adapt import adapted
from verirec.checks import one_of
from verirec.data.cells import CellValues, Positions, cell_keys
from verirec.data.feedback_log import FeedbackLog
from verirec.data.predictions import PredictionsLike, as_predictions
from verirec.estimation.calibration import calibrate
from verirec.estimation.cell_losses import CellLosses
from verirec.estimation.inputs import check_lists, checked_clip
from verirec.estimation.places import judged_users
from verirec.estimation.ranking_formulas import place_gains, shared_gains
from verirec.estimation.score_calibration import gives_scores
from verirec.estimation.survey.target import Target
from verirec.estimation.survey.tops import RankedTarget
from verirec.exceptions import ParameterError
from verirec.losses import LossLike, get_loss

Array = npt.NDArray[np.float64]
Recommenders = Mapping[str, PredictionsLike] | list[PredictionsLike] | PredictionsLike

PLANNED_ON: Final = 200_000
"""Pairs, of all there are, that a design is worked out on: variances are then known to within a percent or two."""

_FEW: Final = 100
"""Users whose best pairs are counted first: where many scores tie, each has more than the depth."""


class Candidates(NamedTuple):
    r"""Pairs that may be asked about, a random part of all that matter, and what each of their labels adds.

    Parameters
    ----------
    users, items
        Positions, shape (m,), no pair twice.
    slopes
        By how much the mean over all that matter rises if the pair is liked, times their number; by recommender,
        shape (r, m).
    share
        The part of all that they are.
    """

    users: Positions
    items: Positions
    slopes: Array
    share: float

    @property
    def total(self) -> int:
        """How many pairs matter: of a random part of the users, about."""
        return round(len(self.users) / self.share)


def levels(names: Sequence[str]) -> tuple[tuple[str, ...], Array]:
    """Ask for a number a recommender."""
    return tuple(names), np.eye(len(names))


def differences(names: Sequence[str]) -> tuple[tuple[str, ...], Array]:
    """Ask for the difference of each two recommenders.

    Examples
    --------
    >>> names, weights = differences(["a", "b"])
    >>> names, weights.tolist()
    (('a - b',), [[1.0, -1.0]])
    """
    one = np.eye(len(names))
    pairs = list(combinations(range(len(names)), 2))
    return tuple(f"{names[a]} - {names[b]}" for a, b in pairs), np.array([one[a] - one[b] for a, b in pairs])


@dataclass(frozen=True, eq=False)
class MeanLosses:
    """Mean losses over a target, or their differences: :math:`d = l(f, 1) - l(f, 0)`."""

    losses: Sequence[CellLosses]
    target: Target
    names: tuple[str, ...]
    weights: Array

    def candidates(self, size: int, random: np.random.Generator) -> Candidates:
        """Draw pairs of the target."""
        users, items = _some_pairs(self.target, size, random)
        return Candidates(users, items, self.slopes_at(users, items), len(users) / len(self.target))

    def slopes_at(self, users: Positions, items: Positions) -> Array:
        """Return d by recommender and pair, shape (recommenders, m)."""
        return np.array([one.of_rows(users, items)[1] for one in self.losses])


@dataclass(frozen=True, eq=False)
class TopGains:
    """A metric at a depth: what matters are the pairs that are among a user's best by any of the recommenders."""

    scores: Sequence[CellValues]
    target: Target
    metric: str
    depth: int
    names: tuple[str, ...]
    weights: Array

    def candidates(self, size: int, random: np.random.Generator) -> Candidates:
        """Take all of the best of some users: as many of these as have about so many pairs."""
        users = self.target.users
        few = self._some(min(_FEW, len(users)), random)
        each = max(max(len(keys) for keys, _ in map(self._gains, self.scores, repeat(few))) / len(few), 1)
        some = self._some(min(max(int(size / each), 1), len(users)), random)
        lists = [self._gains(one, some) for one in self.scores]
        keys = np.unique(np.concatenate([found for found, _ in lists]))
        slopes = np.zeros((len(lists), len(keys)))
        judged = judged_users(self.scores, users) / len(users)
        for line, (found, gains) in zip(slopes, lists, strict=True):
            line[np.searchsorted(keys, found)] = gains * len(keys) / len(some) / judged
        return Candidates(*np.divmod(keys, self.target.shape[1]), slopes, len(some) / len(users))

    def _some(self, count: int, random: np.random.Generator) -> Positions:
        """Draw users, in ascending order; or all of them."""
        users = self.target.users
        return users if count == len(users) else np.sort(random.choice(users, count, replace=False))

    def _gains(self, values: CellValues, users: Positions) -> tuple[npt.NDArray[np.int64], Array]:
        """Return the pairs at the top of these users' rankings, by `cell_keys`, and what each gains if it is liked."""
        parts = list(RankedTarget(values, self.target, self.depth).best_keys(users))
        keys, above, tied = (np.concatenate([part[column] for part in parts]) for column in range(3))
        by_place = place_gains(self.depth, min(self.depth, self.target.shape[1]))[self.metric]
        return keys, shared_gains(by_place, above, tied)


Question = MeanLosses | TopGains
"""Numbers that labels tell: `names` of them, one a row of `weights`, made of the recommenders' slopes."""


def pose(
    purpose: object, recommenders: Recommenders, log: FeedbackLog, target: Target, loss: LossLike, clip: float | None
) -> Question:
    """Make a question of what a user asks for: "level", "difference", "ndcg@k" or "precision@k" of some recommenders.

    What has a depth is asked of each two, where there are several.
    """
    deep = re.fullmatch(r"(ndcg|precision)@([1-9][0-9]{0,8})", purpose) if isinstance(purpose, str) else None
    # A ranking needs no calibration, which turns it round where the log's labels fall with the scores.
    as_given = adapted if deep is not None else _entrant
    named = {name: as_predictions(as_given(one, log), *log.shape) for name, one in _named(recommenders).items()}
    if deep is not None:
        metric, depth = deep[1], int(deep[2])
        for one in named.values():
            check_lists(one, [depth])
        return TopGains(
            list(named.values()), target, metric, depth, *(differences if len(named) > 1 else levels)(list(named))
        )
    if one_of("purpose", purpose, ("level", "difference", "ndcg@k", "precision@k")).endswith("@k"):
        raise ParameterError(f"purpose must say how deep: ndcg@5, precision@10, ...; got {purpose!r}")
    if purpose == "difference" and len(named) < 2:
        raise ParameterError(f"a difference takes two recommenders or more; got {len(named)}")
    losses = [CellLosses(one, get_loss(loss), checked_clip(clip)) for one in named.values()]
    return MeanLosses(losses, target, *(differences if purpose == "difference" else levels)(list(named)))


def _entrant(given: PredictionsLike, log: FeedbackLog) -> PredictionsLike:
    """Adapt another library's model; scores are calibrated by the log, which is close enough to plan by."""
    found = adapted(given, log)
    return calibrate(found, log) if gives_scores(found, log) else found


def _named(recommenders: Recommenders) -> dict[str, PredictionsLike]:
    """Return recommenders by name; those of a list are numbered, and a single one is just that."""
    if isinstance(recommenders, Mapping):
        found = dict(recommenders)
    elif isinstance(recommenders, list):
        found = {str(place + 1): one for place, one in enumerate(recommenders)}
    else:
        found = {"recommender": recommenders}
    if not found:
        raise ParameterError("recommenders must be predictions, by name or in a list; got none")
    return found


def _some_pairs(target: Target, size: int, random: np.random.Generator) -> tuple[Positions, Positions]:
    """Draw about so many pairs of a target, each once; or all, if there are no more."""
    n_items = target.shape[1]
    if len(target) <= size:
        keys = cell_keys(target.users[:, None], np.arange(n_items)[None, :], n_items).ravel()
        return np.divmod(np.setdiff1d(keys, target.left_out, assume_unique=True), n_items)
    users, items = target.sample(size, random)
    return np.divmod(np.unique(cell_keys(users, items, n_items)), n_items)
