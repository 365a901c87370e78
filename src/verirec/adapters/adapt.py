"""Other libraries' models as predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from verirec.adapters.adapted import Adapted, Extras, source_of
from verirec.adapters.catalogue import CATALOGUE, Adapter, adapter_of
from verirec.adapters.frames import is_table_of_pairs
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
) -> Adapted:
    """Make predictions for a log's grid of another library's fitted model, or of top-k lists.

    `verirec adapters` lists the libraries. Models that need nothing besides can be given to `estimate`, `compare`,
    `estimate_ranking` and `assess` as they are. Scores that are not probabilities stay scores here; where a loss is
    estimated, some of the log's rows are set apart to calibrate them by, and a warning says so.

    Parameters
    ----------
    model
        A fitted model, or a frame of lists (user, item, rank) or of scores (user, item, score).
    log
        Whose users and items they are for.
    user_ids, item_ids
        The log's ids of the model's users and items in the model's own order, where that is not the log's.
    dataset
        What the model was trained on, for libraries whose models do not know their ids themselves.
    features
        For classifiers: a function of (users, items), flat arrays of positions, that gives a row of features a pair;
        by default the log's own features of the user and the item, side by side.

    Examples
    --------
    >>> import pandas as pd
    >>> log = FeedbackLog.from_arrays([0, 0, 1], [0, 1, 1], [1, 0, 1], n_users=2, n_items=3)
    >>> adapt(pd.DataFrame({"user": [0, 0, 1], "item": [2, 0, 1], "rank": [1, 2, 1]}), log)
    Adapted(a DataFrame: TopLists(2 of 2 users, up to 2 of 3 items each))
    """
    checked_log(log, levels=True)
    adapter = adapter_of(model)
    if adapter is None:
        known = ", ".join(one.library for one in CATALOGUE)
        raise AdapterError(
            f"there are adapters for {known}; got {source_of(model)}: give its scores as a function of (users, items)"
        )
    return _read(adapter, model, log, Extras(user_ids, item_ids, dataset, features))


def adapted(given: PredictionsLike, log: FeedbackLog) -> PredictionsLike:
    """Adapt what is a model of another library, or a frame by ids; leave any other predictions as they are."""
    if isinstance(given, Adapted):
        _check_ids(given, log)
        return given
    adapter = adapter_of(given)
    if adapter is None or ("pandas" in adapter.modules and not is_table_of_pairs(given)):
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
