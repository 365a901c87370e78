"""Frames of predictions by id: top-k lists (user, item, rank), or scores of pairs (user, item, score)."""

from __future__ import annotations

from typing import Any

from verirec.adapters.adapted import Adapted, Extras
from verirec.data.feedback_log import FeedbackLog
from verirec.data.frames import arrow_columns
from verirec.data.pair_files import scores_of_table
from verirec.data.roles import ScoreRoles
from verirec.exceptions import ColumnError


def read(frame: Any, log: FeedbackLog, extras: Extras) -> Adapted:
    """Look users and items up in the log; with a rank the rows are top-k lists, else scores."""
    table, settled = arrow_columns(frame, ScoreRoles(), "the predictions")
    found = scores_of_table(table, settled, log, f"the {type(frame).__name__}")
    return Adapted(found, f"a {type(frame).__name__}", probabilities=None)


def is_table_of_pairs(frame: Any) -> bool:
    """Tell whether a frame has columns for user, item, and rank or score; others may be dense predictions."""
    # Arrow's tables have columns by this name too, which are no names.
    columns: Any = getattr(frame, "column_names", None) or getattr(frame, "columns", ())
    try:
        ScoreRoles().settle(list(columns))
    except ColumnError:
        return False
    return True
