"""Matrices of scores, users by items, in an order of their own."""

from __future__ import annotations

from typing import Any

from verirec.adapters.adapted import Adapted, Extras
from verirec.data.feedback_log import FeedbackLog
from verirec.data.labelled import matrix_for


def read(matrix: Any, log: FeedbackLog, extras: Extras) -> Adapted:
    """Line rows and columns up with the log's users and items."""
    values = matrix_for(matrix, extras.user_ids, extras.item_ids, log, "the matrix", ("user_ids", "item_ids"))
    return Adapted(values, "a matrix", probabilities=None)
