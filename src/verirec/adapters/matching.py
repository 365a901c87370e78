"""Rows and columns of another library's model, by the ids of a log."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from verirec.adapters.adapted import Extras
from verirec.data.feedback_log import FeedbackLog
from verirec.data.ids import IdMap
from verirec.data.missing_scores import rows_or_mean, told_of_lacking
from verirec.data.predictions import Factors
from verirec.exceptions import AlignmentWarning, ColdStartWarning, UnknownIdError, warn_caller
from verirec.formatting import short


def rows_of(ids: Any, size: int, log: FeedbackLog, side: str, source: str) -> npt.NDArray[np.int32]:
    """Return which of a model's users, or items, each of a log's is, by position; -1 for those that it lacks.

    Parameters
    ----------
    ids
        Of the model's, in its own order; `None` where they are the log's positions, which is said of other ids than
        0, 1, 2, ...
    size
        How many the model has.
    log
        Whose `side`, "user" or "item", is looked up.
    source
        What messages call the model.

    Examples
    --------
    >>> log = FeedbackLog.from_arrays([0, 1], [0, 1], [1, 0], n_users=2, n_items=2, user_ids=["ann", "bob"])
    >>> rows_of(["bob", "ann"], 2, log, "user", "a model").tolist()
    [1, 0]
    """
    catalogue = getattr(log, f"{side}_ids")
    if ids is None:
        if size != len(catalogue):
            raise UnknownIdError(
                f"{source} has {size:,} {side}s and the log {len(catalogue):,}: say whose they are, {side}_ids=..., in "
                "the model's order"
            )
        _say_unless_numbered(catalogue, side, source)
        return np.arange(size, dtype=np.int32)
    if len(ids) != size:
        raise UnknownIdError(f"{source} has {size:,} {side}s; got {len(ids):,} {side}_ids")
    own = IdMap.in_order(ids, name=f"{side}_ids")
    found = own.find(catalogue.arrow(), name=f"{source}: the log's {side} ids")
    lacking = np.flatnonzero(found < 0)
    if lacking.size == len(catalogue):
        first, theirs = (short(one.arrow([0]).to_pylist()[0]) for one in (catalogue, own))
        raise UnknownIdError(
            f"{source} knows none of the log's {len(catalogue):,} {side}s: the first of its own is {theirs}, of the "
            f"log's {first}"
        )
    if lacking.size:
        warn_caller(
            f"{source} does not know {told_of_lacking(catalogue, lacking, side)}: they are scored as its mean {side}",
            ColdStartWarning,
        )
    return found


def _say_unless_numbered(catalogue: IdMap, side: str, source: str) -> None:
    """Warn that a model of as many users, or items, is taken to have them in the order of a log that names them."""
    if catalogue != IdMap(len(catalogue)):
        first = short(catalogue.arrow([0]).to_pylist()[0])
        warn_caller(
            f"{source} does not say whose its {side}s are: they are taken to be in the log's order, {first} first; "
            f"give {side}_ids=... to vr.adapt, in the model's order",
            AlignmentWarning,
        )


def factors_for(
    log: FeedbackLog, sides: tuple[Any, Any], constants: tuple[Any, Any], extras: Extras, source: str
) -> Factors:
    """Line factors, and constants or `None`, up with a log; their sums are scores."""
    ids = {"user": extras.user_ids, "item": extras.item_ids}
    rows = [rows_of(ids[side], len(part), log, side, source) for side, part in zip(ids, sides, strict=True)]
    factors = [rows_or_mean(part, at) for part, at in zip(sides, rows, strict=True)]
    added = [None if part is None else rows_or_mean(part, at) for part, at in zip(constants, rows, strict=True)]
    return Factors(factors[0], factors[1], added[0], added[1], link="identity")
