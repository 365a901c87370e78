"""Dense predictions whose rows and columns bear labels: lined up with a log by the ids of its users and items."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.checks import as_array
from verirec.data.feedback_log import FeedbackLog
from verirec.data.frames import is_labelled
from verirec.data.ids import IdMap
from verirec.exceptions import PredictionError, UnknownIdError
from verirec.formatting import short

_SIDES: Final = {"user": "row", "item": "column"}


def frame_for(frame: Any, log: FeedbackLog) -> npt.NDArray[Any]:
    """Return a frame's scores in a log's order: its index holds the ids of users and its columns those of items.

    A frame that has the grid's size and no labels but 0, 1, 2, ... is by position, as an array is.

    Examples
    --------
    >>> import pandas as pd
    >>> log = FeedbackLog.from_arrays([0, 1], [0, 1], [1, 0], n_users=2, n_items=2, user_ids=["ann", "bob"])
    >>> frame_for(pd.DataFrame([[0.1, 0.2], [0.3, 0.4]], index=["bob", "ann"]), log).tolist()
    [[0.3, 0.4], [0.1, 0.2]]
    """
    name = f"the {type(frame).__name__}"
    if not is_labelled(frame) and frame.shape == log.shape:
        return as_array("predictions", frame, error=PredictionError)
    if not hasattr(frame, "index"):
        raise PredictionError(
            f"{name} must have columns user, item and score (or rank), by the log's ids, or, in pandas, users as its "
            "index and items as its columns"
        )
    return matrix_for(frame, frame.index, frame.columns, log, name, ("index", "columns"))


def matrix_for(
    matrix: Any, user_ids: Any, item_ids: Any, log: FeedbackLog, source: str, names: tuple[str, str]
) -> npt.NDArray[Any]:
    """Return a matrix whose rows and columns are those of a log, by ids; each of the log's must be among them.

    Parameters
    ----------
    matrix
        Of scores, shape (users, items), in an order of its own.
    user_ids, item_ids
        The log's ids of its rows and columns; `None` where they are the log's positions.
    log
        Whose users and items are looked up.
    source, names
        What messages call the matrix, and the ids of its rows and columns.
    """
    values = as_array("predictions", matrix, error=PredictionError)
    if values.ndim != 2:
        raise PredictionError(f"{source} must have a row a user and a column an item; got shape {values.shape}")
    sides = zip(("user", "item"), (user_ids, item_ids), values.shape, names, strict=True)
    rows, columns = (_places(ids, size, log, side, source, name) for side, ids, size, name in sides)
    in_order = values if rows is None else values[rows]
    return in_order if columns is None else in_order[:, columns]


def _places(ids: Any, size: int, log: FeedbackLog, side: str, source: str, name: str) -> npt.NDArray[np.int64] | None:
    """Return where in a matrix each of a log's users, or items, is; `None` where that is the log's own order."""
    catalogue: IdMap = getattr(log, f"{side}_ids")
    if ids is None:
        if size != len(catalogue):
            raise UnknownIdError(
                f"{source} has {size:,} {_SIDES[side]}s and the log {len(catalogue):,} {side}s: say whose they are, "
                f"{name}=..., in their order"
            )
        return None
    if len(ids) != size:
        raise UnknownIdError(f"{source} has {size:,} {_SIDES[side]}s; got {len(ids):,} {name}")
    own = IdMap.in_order(ids, name=f"{source}'s {name}")
    if own == catalogue:
        return None
    found = catalogue.find(own.arrow(), name=f"{source}'s {name}")
    places = np.full(len(catalogue), -1)
    places[found[found >= 0]] = np.flatnonzero(found >= 0)
    lacking = np.flatnonzero(places < 0)
    if lacking.size:
        theirs, ours = (short(ids.arrow([at]).to_pylist()[0]) for ids, at in ((own, 0), (catalogue, lacking[0])))
        raise UnknownIdError(
            f"{source} has no {_SIDES[side]} for {lacking.size:,} of the log's {len(catalogue):,} {side}s (first: "
            f"{ours}); the first of its own {size:,} is {theirs}"
        )
    return places
