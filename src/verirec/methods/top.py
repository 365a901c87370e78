"""The best items of many users: blocks of scores, partly sorted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_array

from verirec.data.ids import IdMap
from verirec.models import Model

_BLOCK: Final = 1 << 25
"""Scores at a time: 128 MB of float32."""


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
        Logits, shape (n, k); for similar items, cosines.
    """

    users: npt.NDArray[Any]
    item_ids: IdMap
    positions: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float32]

    def __repr__(self) -> str:
        return f"Recommendations({len(self.users):,} x {self.positions.shape[1]})"

    @property
    def items(self) -> npt.NDArray[Any]:
        """Ids, shape (n, k), as objects; `None` where a user has no more."""
        ids = np.full(self.positions.shape, None, dtype=object)
        found = self.positions >= 0
        ids[found] = self.item_ids.ids(self.positions[found])
        return ids

    def to_frame(self) -> Any:
        """Give one row a user and an item: user, rank, item, score."""
        import pandas as pd

        n, k = self.positions.shape
        found = self.positions.ravel() >= 0
        frame = {
            "user": np.repeat(self.users, k)[found],
            "rank": np.tile(np.arange(1, k + 1), n)[found],
            "item": self.item_ids.ids(self.positions.ravel()[found]),
            "score": self.scores.ravel()[found],
        }
        return pd.DataFrame(frame)

    def _repr_html_(self) -> str:
        return str(self.to_frame().to_html(index=False, escape=True, max_rows=20))


def top_items(
    model: Model, users: npt.NDArray[Any], n_items: int, k: int, rated: csr_array | None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Find each user's k best items among those not rated; ties go to the first item.

    Parameters
    ----------
    model
        Of logits.
    users
        Positions, shape (n,).
    rated
        What to leave out, shape (n_users, n_items).
    """
    positions, scores = np.empty((len(users), k), np.int64), np.empty((len(users), k), np.float32)
    items = torch.arange(n_items)
    height = max(1, _BLOCK // n_items)
    with torch.no_grad():
        for start in range(0, len(users), height):
            part = slice(start, start + height)
            logits = model.grid(torch.as_tensor(np.ascontiguousarray(users[part], dtype=np.int64)), items).float()
            if rated is not None:
                of_part = rated[users[part]].tocoo()
                logits[
                    torch.as_tensor(of_part.coords[0].copy()), torch.as_tensor(of_part.coords[1].copy())
                ] = -torch.inf
            best, where = torch.topk(logits, k, dim=1)
            where[torch.isneginf(best)] = -1
            positions[part], scores[part] = where.numpy(), best.numpy()
    return positions, scores
