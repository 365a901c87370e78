"""The best items of many users: blocks of scores, of which only stretches that can hold one are looked at closely."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import expit
from torch import Tensor

from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.data.ids import IdMap
from verirec.data.pair_keys import NO_PAIRS, Keys, keys_of, union
from verirec.data.pair_sketch import known_pairs
from verirec.exceptions import ParameterError
from verirec.models import FactorModel, Model
from verirec.training.threads import one_thread

_BLOCK: Final = 1 << 23
"""Scores at a time: 32 MB of float32."""
_STRETCH: Final = 128
"""Neighbouring items of which the best one is found first."""
_WITHOUT: Final = {"cosine": "similar items have cosines", "stars": "a model of levels recommends by stars"}


@dataclass(frozen=True, eq=False)
class Recommendations:
    """Items for each user, best first.

    Parameters
    ----------
    users
        Ids, shape (n,).
    item_ids
        Ids by position.
    positions
        Of the items, shape (n, k); -1 where a user has no more.
    scores
        Logits, shape (n, k); stars of a model of levels; for similar items, cosines.
    kind
        "logit", "stars" or "cosine": what the scores are.
    """

    users: npt.NDArray[Any]
    item_ids: IdMap
    positions: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float32]
    kind: Literal["logit", "stars", "cosine"] = "logit"

    def __repr__(self) -> str:
        return f"Recommendations({len(self.users):,} x {self.positions.shape[1]})"

    @property
    def items(self) -> npt.NDArray[Any]:
        """Ids, shape (n, k), as objects; `None` where a user has no more."""
        ids = np.full(self.positions.shape, None, dtype=object)
        found = self.positions >= 0
        ids[found] = self.item_ids.ids(self.positions[found])
        return ids

    @property
    def probabilities(self) -> npt.NDArray[np.float64]:
        """That each item is liked, shape (n, k); 0 where a user has no more. Cosines and stars have none."""
        if self.kind != "logit":
            raise ParameterError(f"{_WITHOUT[self.kind]}, not probabilities")
        return np.asarray(expit(self.scores.astype(np.float64)))

    def to_frame(self) -> Any:
        """Return one row a user and an item: user, rank, item, and its logit and probability (or stars, or cosine)."""
        import pandas as pd

        n, k = self.positions.shape
        found = self.positions.ravel() >= 0
        frame = {
            "user": np.repeat(self.users, k)[found],
            "rank": np.tile(np.arange(1, k + 1), n)[found],
            "item": self.item_ids.ids(self.positions.ravel()[found]),
            self.kind: self.scores.ravel()[found],
        }
        if self.kind == "logit":
            frame["probability"] = self.probabilities.ravel()[found]
        return pd.DataFrame(frame)

    def _repr_html_(self) -> str:
        return str(self.to_frame().to_html(index=False, escape=True, max_rows=20))


def rated_pairs(log: FeedbackLog | None, user_ids: IdMap, item_ids: IdMap) -> Keys:
    """Return the pairs of a log whose user and item are known, by `cell_keys`, in ascending order; none of no log.

    Examples
    --------
    >>> log = FeedbackLog.from_arrays([0, 1], [0, 1], [1, 0], n_users=2, n_items=2, user_ids=["ann", "bob"])
    >>> rated_pairs(log, IdMap.of(["bob", "cat"]), IdMap(2)).tolist()
    [1]
    """
    if log is None:
        return NO_PAIRS
    checked_log(log, levels=True)
    return union(keys_of(*known_pairs(log, user_ids, item_ids), len(item_ids)))


def top_items(
    model: Model, users: npt.NDArray[Any], n_items: int, k: int, rated: Keys
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Find each user's k best items among those not rated; ties go to the first item.

    Parameters
    ----------
    model
        Of logits.
    users
        Positions, shape (n,).
    rated
        What to leave out, by `cell_keys`, in ascending order.
    """
    positions, scores = np.empty((len(users), k), np.int64), np.empty((len(users), k), np.float32)
    by_product = isinstance(model, FactorModel) and model.dim and model.covariates is None
    products = _Products(model, users) if by_product else None  # type: ignore[arg-type]
    height, workers = max(1, _BLOCK // n_items), 1 if products is None else torch.get_num_threads()

    def work(first: int) -> None:
        scorer = _AnyModel(model, users, n_items) if products is None else copy.copy(products)
        for start in range(first * height, len(users), workers * height):
            part = slice(start, start + height)
            with torch.no_grad():
                block = scorer.block(part)
                if len(rated):
                    block[_places(rated, users[part], n_items)] = -torch.inf
                best, where = first_best(block, k)
                where[torch.isneginf(best)] = -1
                positions[part], scores[part] = where.numpy(), scorer.logits(best, part).numpy()

    if products is None:
        work(0)
        return positions, scores
    # Threads that take blocks in turn: they do not wait for each other at every step, as torch's own do.
    with one_thread(), ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, range(workers)))
    return positions, scores


def _places(rated: Keys, users: npt.NDArray[Any], n_items: int) -> tuple[Tensor, Tensor]:
    """Return rows and columns of the pairs of some users, one after the other."""
    keys = users.astype(np.int64) * n_items
    starts, stops = np.searchsorted(rated, keys), np.searchsorted(rated, keys + n_items)
    lines = np.repeat(np.arange(len(users)), stops - starts)
    own = np.concatenate([rated[start:stop] for start, stop in zip(starts, stops, strict=True)])
    return torch.from_numpy(lines), torch.from_numpy(own % n_items)


class _AnyModel:
    """Scores of any model, for parts of the users that are asked for."""

    def __init__(self, model: Model, users: npt.NDArray[Any], n_items: int) -> None:
        self.model, self.users, self.items = model, _positions(users), torch.arange(n_items)

    def block(self, part: slice) -> Tensor:
        return self.model.grid(self.users[part], self.items).float().contiguous()

    def logits(self, best: Tensor, part: slice) -> Tensor:
        return best


class _Products:
    """Scores of a factor model by one matrix product: item constants are a factor, user constants come last.

    Only the factors of users that are asked for are gathered, so that few of many cost little. A copy has the same
    factors and, from its first block on, memory of its own.
    """

    def __init__(self, model: FactorModel, asked: npt.NDArray[Any]) -> None:
        who = _positions(asked)
        with torch.no_grad():
            users: list[Tensor] = [model.user_factors[who]]
            items: list[Tensor] = [model.item_factors]
            if model.user_features is not None and model.item_features is not None:
                users.append(model.user_features[who] @ model.interactions)
                items.append(model.item_features)
            if model.has_item_part:
                users.append(torch.ones(len(who), 1))
                items.append(model.of_items()[:, None])
            self.users, self.items = torch.cat(users, 1), torch.cat(items, 1)
            self.of_users = model.of_users()[who] if model.has_user_part else torch.zeros(len(who))
            if model.constants:
                self.of_users = self.of_users + model.constant
        self.memory = torch.empty(0)

    def block(self, part: slice) -> Tensor:
        users = self.users[part]
        if len(self.memory) != len(users):
            self.memory = torch.empty(len(users), len(self.items))
        return torch.mm(users, self.items.T, out=self.memory)

    def logits(self, best: Tensor, part: slice) -> Tensor:
        return best + self.of_users[part, None]


def _positions(users: npt.NDArray[Any]) -> Tensor:
    return torch.as_tensor(np.ascontiguousarray(users, dtype=np.int64))


def first_best(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Find the k largest of each row and where they are; ties go to the first.

    The k best are in the k stretches with the best best ones, equal stretches being taken in order: were one in
    another, each of these k would hold one that comes before it. So one pass over the scores finds each stretch's best,
    and the rest looks at k stretches.

    Parameters
    ----------
    scores
        Float32, shape (n, m).
    k
        At most m.

    Examples
    --------
    >>> first_best(torch.tensor([[1.0, 3.0, 2.0, 3.0]]), 3)[1].tolist()
    [[1, 3, 2]]
    """
    n, m = scores.shape
    whole = m // _STRETCH
    if whole <= k:
        where = _first_of(scores, torch.arange(m).expand(n, m), k)
    else:
        bests = torch.unflatten(scores[:, : whole * _STRETCH], 1, (whole, _STRETCH)).amax(2)
        if whole * _STRETCH < m:
            bests = torch.cat([bests, scores[:, whole * _STRETCH :].amax(1, keepdim=True)], 1)
        chosen = _first_of(bests, torch.arange(bests.shape[1]).expand_as(bests), k)
        places = (chosen[:, :, None] * _STRETCH + torch.arange(_STRETCH)).flatten(1)
        beyond = places >= m
        inside = scores.gather(1, places.masked_fill(beyond, 0)).masked_fill_(beyond, -torch.inf)
        where = _first_of(inside, places, k)
    return scores.gather(1, where), where


def _first_of(scores: Tensor, places: Tensor, k: int) -> Tensor:
    """Return the places of the k largest of each row, best first: by score, then by place, in one whole number."""
    bits = (scores + 0.0).view(torch.int32)  # of 0 and -0 the same
    ordered = torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits).long()
    keys = (ordered << 32) | (0x7FFFFFFF - places)
    return 0x7FFFFFFF - (torch.topk(keys, k, dim=1).values & 0x7FFFFFFF)
