"""Coat (Schnabel, Swaminathan, Singh, Chandak, Joachims 2016): self-selected and random ratings of 300 coats."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.data.datasets.dataset import Dataset, Published
from verirec.data.feedback_log import FeedbackLog
from verirec.exceptions import FileFormatError

SIZE: Final = Published(290, 300, 11_600)
SHAPE: Final = (SIZE.users, SIZE.items)


def read(folder: Path, positive_from: float) -> Dataset:
    """Read the ASCII matrices, 0 for no rating; propensities and features where the folder has them."""
    from scipy.sparse import coo_array  # Takes long to import.

    features: dict[str, Any] = {
        f"{side}_features": _matrix(file, (SHAPE[side == "item"], None))
        for side in ("user", "item")
        if (file := folder / "user_item_features" / f"{side}_features.ascii").is_file()
    }
    parts = {}
    for part in ("train", "test"):
        ratings = _matrix(folder / f"{part}.ascii", SHAPE)
        if not np.isin(ratings, range(6)).all():
            raise FileFormatError(f"{part}.ascii must hold ratings 1 to 5, and 0 for none")
        parts[part] = FeedbackLog.from_sparse(coo_array(ratings), positive_from=positive_from, **features)
    return Dataset("coat", train=parts["train"], test=parts["test"], propensities=_propensities(folder))


def _propensities(folder: Path) -> npt.NDArray[Any] | None:
    file = folder / "propensities.ascii"
    if not file.is_file():
        return None
    propensities = _matrix(file, SHAPE)
    if not ((propensities > 0) & (propensities <= 1)).all():
        raise FileFormatError(f"{file.name} must hold probabilities above 0 and at most 1")
    return propensities


def _matrix(file: Path, shape: tuple[int, int | None]) -> npt.NDArray[Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # NumPy only warns of a file without numbers
            matrix = np.loadtxt(file, ndmin=2)
    except (ValueError, UserWarning) as error:
        raise FileFormatError(f"{file.name} is not a matrix of numbers: {' '.join(str(error).split())}") from None
    if matrix.shape[0] != shape[0] or shape[1] not in (None, matrix.shape[1]):
        wanted = f"{shape[0]} x {shape[1] or 'any'}"
        raise FileFormatError(f"{file.name} must be {wanted}; got {matrix.shape[0]} x {matrix.shape[1]}")
    return matrix
