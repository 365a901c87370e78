"""Frames of predictions by id: top-k lists, scores of pairs, or a row a user and a column an item."""

from __future__ import annotations

from typing import Any, Final

from verirec.adapters.adapted import Adapted, Extras
from verirec.data.feedback_log import FeedbackLog
from verirec.data.frames import arrow_columns
from verirec.data.labelled import frame_for
from verirec.data.pair_files import scores_of_table
from verirec.data.roles import ScoreRoles
from verirec.exceptions import AdapterError, ColumnError

_MOST_COLUMNS: Final = 20
"""Of a table of pairs: what has more, and none for user, item and score, is a row a user."""


def read(frame: Any, log: FeedbackLog, extras: Extras) -> Adapted:
    """Look users and items up in the log; with a rank the rows are top-k lists, with a score scores of pairs."""
    kind, roles = type(frame).__name__, ScoreRoles(extras.user, extras.item, extras.score)
    if extras.user_ids is not None or extras.item_ids is not None:
        raise AdapterError(
            f"a {kind} is read by its own labels or columns, and takes no user_ids=... or item_ids=...: label it with "
            "them, or give its values as a matrix"
        )
    # Arrow's tables have columns by this name too, which are no names.
    names: Any = getattr(frame, "column_names", None) or getattr(frame, "columns", ())
    columns = list(names)
    try:
        roles.settle(columns)
    except ColumnError as error:
        if roles.names() or not _is_wide(frame, columns, log):
            raise ColumnError(f"a {kind} of predictions: {error} (vr.adapt takes these names)") from None
        return Adapted(frame_for(frame, log), f"a {kind}", probabilities=None)
    table, settled = arrow_columns(frame, roles, "the predictions")
    return Adapted(scores_of_table(table, settled, log, f"the {kind}"), f"a {kind}", probabilities=None)


def _is_wide(frame: Any, columns: list[Any], log: FeedbackLog) -> bool:
    """Tell whether a frame, which is no table of pairs as it stands, is meant to have a row a user."""
    if getattr(frame, "shape", None) == log.shape or len(columns) > _MOST_COLUMNS:
        return True
    return not all(isinstance(one, str) for one in columns) or bool({*columns} & {*log.item_ids.ids().tolist()})
