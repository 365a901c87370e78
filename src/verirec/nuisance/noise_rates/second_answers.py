"""Pairs of the log that the same people were asked about again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from verirec.checks import path_of
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.data.roles import ReaskRoles
from verirec.data.truth_files import read_truths
from verirec.formatting import html_table
from verirec.nuisance.noise_rates.asked import A_REASK, checked_pairs, checked_probabilities


@dataclass(frozen=True, eq=False, repr=False)
class ReaskSample:
    """Pairs of the log whose users were asked about them a second time, with what they said then.

    Parameters
    ----------
    users, items
        Positions, shape (m,). Pairs that are not in the log have no first answer.
    labels
        The second answers, 0/1, shape (m,): as likely to be wrong as the log's labels, and not their truth.
    probabilities
        Of each of these pairs to be asked about again, in (0, 1], shape (m,). Needed only where the choice went by more
        than the label and the score; `None` for a simple random choice.

    Examples
    --------
    >>> ReaskSample([0, 1], [3, 3], [1, 0])
    ReaskSample(2 pairs, 50.0% positive)
    >>> ReaskSample([0, 1], [3, 3], [1, 2])
    Traceback (most recent call last):
    verirec.exceptions.ReaskError: the re-ask's labels must be 0/1; 1 are not
    """

    users: npt.NDArray[Any]
    items: npt.NDArray[Any]
    labels: npt.NDArray[Any]
    probabilities: npt.NDArray[Any] | None = None

    def __post_init__(self) -> None:
        checked = checked_pairs(A_REASK, self.users, self.items, self.labels)
        for name, values in zip(("users", "items", "labels"), checked, strict=True):
            object.__setattr__(self, name, values)
        if self.probabilities is not None:
            chances = checked_probabilities(A_REASK, self.probabilities, len(self.users))
            object.__setattr__(self, "probabilities", chances)

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        log: FeedbackLog,
        *,
        user: str | None = None,
        item: str | None = None,
        answer: str | None = None,
        log_columns: Mapping[str, str | None] | None = None,
    ) -> ReaskSample:
        """Read a table with user, item and second answer, by the log's ids; rows without an answer are left out.

        An answer is 0 or 1, no or yes, false or true. A column `probability`, or one over a column `weight` as plans
        write it, are the pairs' probabilities.

        Parameters
        ----------
        path
            .csv, .tsv, .inter or .parquet.
        log
            Whose ids they are.
        user, item, answer
            The columns; left out, `log_columns` and the usual names are tried.
        log_columns
            The log's own columns, "user" and "item": taken where the table has columns of these names.
        """
        found = read_truths(
            path_of("path", path), ReaskRoles(user, item, answer), checked_log(log), log_columns, kind="again"
        )
        return cls(found.users, found.items, found.labels, found.probabilities)

    def __len__(self) -> int:
        return len(self.users)

    def __repr__(self) -> str:
        return f"ReaskSample({len(self):,} pairs, {self.labels.mean():.1%} positive)"

    def _repr_html_(self) -> str:
        positive = int(self.labels.sum())
        rows = {"pairs": f"{len(self):,}", "positive": f"{positive:,} ({positive / len(self):.1%})"}
        return html_table("Pairs asked about again", rows)
