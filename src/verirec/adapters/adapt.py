"""Other libraries' models as predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from verirec.adapters.adapted import Adapted, Extras, source_of
from verirec.adapters.catalogue import CATALOGUE, MATRIX, Adapter, adapter_of
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.data.predictions import PredictionsLike, as_predictions
from verirec.exceptions import AdapterError, UnknownIdError, VerirecError


def adapt(
    model: Any,
    log: FeedbackLog,
    *,
    user_ids: Any = None,
    item_ids: Any = None,
    dataset: Any = None,
    features: Callable[[Any, Any], Any] | None = None,
    user: str | None = None,
    item: str | None = None,
    score: str | None = None,
) -> Adapted:
    """Make predictions for a log's grid of another library's fitted model, a frame, a matrix by ids, or top-k lists.

    `verirec adapters` lists the libraries. Models that need nothing besides can be given to `estimate`, `compare`,
    `estimate_ranking` and `assess` as they are. Scores that are not probabilities stay scores here; where a loss is
    estimated, some of the log's rows are set apart to calibrate them by, and a warning says so.

    Parameters
    ----------
    model
        A fitted model; a frame of lists (user, item, rank) or of scores (user, item, score); a frame with a row a user,
        by its index, and a column an item; or, with `user_ids` and `item_ids`, a matrix of scores.
    log
        Whose users and items they are for.
    user_ids, item_ids
        The log's ids of the model's users and items, or of a matrix's rows and columns, in their own order, where that
        is not the log's.
    dataset
        What the model was trained on, for libraries whose models do not know their ids themselves.
    features
        For classifiers: a function of (users, items), flat arrays of positions, that gives a row of features a pair;
        by default the log's own features of the user and the item, side by side, or, where the classifier knows the
        names of its features, those of the log that have them.
    user, item, score
        For frames of pairs: their columns, where they do not have the usual names.

    Examples
    --------
    >>> import pandas as pd
    >>> log = FeedbackLog.from_arrays([0, 0, 1], [0, 1, 1], [1, 0, 1], n_users=2, n_items=3)
    >>> adapt(pd.DataFrame({"user": [0, 0, 1], "item": [2, 0, 1], "rank": [1, 2, 1]}), log)
    Adapted(a DataFrame: TopLists(2 of 2 users, up to 2 of 3 items each))
    >>> backwards = adapt([[0.3, 0.2, 0.1], [0.6, 0.5, 0.4]], log, user_ids=[1, 0], item_ids=[2, 1, 0])
    >>> backwards.predictions.tolist()
    [[0.4, 0.5, 0.6], [0.1, 0.2, 0.3]]
    """
    checked_log(log, levels=True)
    adapter = adapter_of(model)
    if adapter is None and (user_ids is not None or item_ids is not None):
        adapter = MATRIX
    if adapter is None:
        known = ", ".join(one.library for one in CATALOGUE)
        raise AdapterError(
            f"there are adapters for {known}; got {source_of(model)}: give its scores as a function of (users, items), "
            "or a matrix of them with user_ids=... and item_ids=..., in its order"
        )
    return _read(adapter, model, log, Extras(user_ids, item_ids, dataset, features, user, item, score))


def adapted(given: PredictionsLike, log: FeedbackLog) -> PredictionsLike:
    """Adapt what is a model of another library, or a frame by ids; leave any other predictions as they are."""
    if isinstance(given, Adapted):
        _check_ids(given, log)
        return given
    adapter = adapter_of(given)
    if adapter is None:
        return given
    return _read(adapter, given, log, Extras())


def _check_ids(given: Adapted, log: FeedbackLog) -> None:
    """Refuse what was adapted for a log of other users or items: it would be held against the wrong ones."""
    for side, theirs, ours in zip(("users", "items"), given.ids or (), (log.user_ids, log.item_ids), strict=False):
        if theirs != ours:
            raise UnknownIdError(f"{given.source} was adapted for a log of other {side}: adapt it for this log")


def _read(adapter: Adapter, model: Any, log: FeedbackLog, extras: Extras) -> Adapted:
    """Read a model and try it on a pair; whatever its library says against it is told in one line."""
    try:
        found = adapter.read(model, log, extras)
        values = as_predictions(found, log.n_users, log.n_items)
        if values.covered is None:
            values.cells(log.users[:1], log.items[:1])
    except VerirecError:
        raise
    except Exception as error:  # another library's code can fail in any way, and other versions in ways of their own
        raise AdapterError(
            f"{source_of(model)} does not work as the adapter for {adapter.library} ({adapter.version}) expects: "
            f"{type(error).__name__}: {error}"
        ) from error
    return replace(found, ids=(log.user_ids, log.item_ids))
