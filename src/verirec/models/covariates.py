"""Covariates of pairs: numbers over the grid that a model has one weight each for, worked out where they are asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from verirec.data.cells import CellValues
from verirec.nuisance.exposure import CoRatings, ExposureCovariate, RatingLogits

KINDS: Final[dict[str, type[ExposureCovariate]]] = {one.name: one for one in (RatingLogits, CoRatings)}
_PREFIX: Final = "covariate"


class Covariates:
    """Some columns of numbers over the grid, as tensors.

    Parameters
    ----------
    columns
        Values on the cells; at positions beyond their grid, of users or items that nobody knew of, they are 0.
    device
        Where the tensors go.
    """

    def __init__(self, columns: Sequence[CellValues], device: torch.device | str = "cpu") -> None:
        self.columns, self.device = tuple(columns), device
        self.shape = self.columns[0].shape

    def __len__(self) -> int:
        return len(self.columns)

    def pairs(self, users: Tensor, items: Tensor) -> Tensor:
        """Return the covariates of pairs, positions of shape (n,): shape (n, columns)."""
        return torch.stack(self._cells(users.cpu().numpy(), items.cpu().numpy()), -1)

    def rectangle(self, users: Tensor, items: Tensor) -> Tensor:
        """Return the covariates of a rectangle, positions of shape (a,) and (b,): shape (columns, a, b)."""
        return torch.stack(self._cells(users.cpu().numpy()[:, None], items.cpu().numpy()[None, :]))

    def _cells(self, users: Any, items: Any) -> list[Tensor]:
        known = (users < self.shape[0]) & (items < self.shape[1])
        inside = np.minimum(users, self.shape[0] - 1), np.minimum(items, self.shape[1] - 1)
        found = (np.where(known, column.cells(*inside), 0.0) for column in self.columns)
        return [torch.from_numpy(one).to(torch.float32).to(self.device) for one in found]

    def tensors(self) -> dict[str, Tensor]:
        """Return all they are made of, by names that `of_tensors` knows; of exposure covariates alone."""
        columns = [one for one in self.columns if isinstance(one, ExposureCovariate)]
        rated = columns[0].rated
        found = {"rated.starts": rated.indptr, "rated.items": rated.indices}
        found |= {f"{one.name}.{name}": value for one in columns for name, value in one.arrays.items()}
        return {f"{_PREFIX}.{name}": torch.from_numpy(np.ascontiguousarray(value)) for name, value in found.items()}

    @classmethod
    def of_tensors(cls, tensors: dict[str, Tensor], shape: tuple[int, int]) -> Covariates | None:
        """Make them again, taking what is theirs out of some tensors; `None` where there is nothing of theirs."""
        names = [name for name in tensors if name.startswith(f"{_PREFIX}.")]
        own = {name.removeprefix(f"{_PREFIX}."): tensors.pop(name).numpy() for name in names}
        if not own:
            return None
        starts, items = own.pop("rated.starts"), own.pop("rated.items")
        rated = csr_array((np.ones(len(items), np.float32), items, starts), shape=shape)
        rated.check_format(full_check=True)
        kinds = [kind for kind in KINDS if any(name.startswith(f"{kind}.") for name in own)]
        return cls([KINDS[kind].read(rated, _of_kind(own, kind)) for kind in kinds])


def _of_kind(arrays: dict[str, Any], kind: str) -> dict[str, Any]:
    return {name.removeprefix(f"{kind}."): value for name, value in arrays.items() if name.startswith(f"{kind}.")}
