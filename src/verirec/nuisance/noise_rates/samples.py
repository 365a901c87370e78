"""Pairs of the log that people were asked about again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from verirec.checks import path_of
from verirec.data.cells import checked_rows
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.data.levels import Levels, check_scale, checked_levels, rows_on, said_of, values_at
from verirec.data.pair_keys import places_in
from verirec.data.roles import TruthRoles
from verirec.data.truth_files import frame_truths, read_truths
from verirec.exceptions import AuditError
from verirec.formatting import html_table
from verirec.nuisance.noise_rates.asked import AN_AUDIT, checked_pairs, checked_probabilities, find_rows

Array = npt.NDArray[np.float64]


class AuditedRows(NamedTuple):
    """The audited rows of a log.

    Parameters
    ----------
    rows
        Their numbers, shape (m,).
    true_labels
        0/1, or places of levels.
    probabilities
        Of each row to be audited; of a simple random audit, m over the number of rows.
    """

    rows: npt.NDArray[np.int64]
    true_labels: npt.NDArray[np.int8]
    probabilities: Array

    def among(self, kept: npt.NDArray[np.bool_], log: FeedbackLog, part: FeedbackLog) -> AuditedRows:
        """Return those of a log's rows that a part of it keeps, by their numbers there; there may be none."""
        inside = kept[self.rows]
        old = self.rows[inside]
        rows, _ = places_in(log.users[old], log.items[old], part.users, part.items)
        return AuditedRows(rows, self.true_labels[inside], self.probabilities[inside])


@dataclass(frozen=True, eq=False, repr=False)
class AuditSample:
    """Pairs that somebody was asked about again, with what they truly prefer.

    Parameters
    ----------
    users, items
        Positions, shape (m,). Pairs that are not in the log say nothing about its noise.
    true_labels
        0/1, shape (m,); with `levels`, values among these, kept as their places from 0.
    probabilities
        Of each of these pairs to be audited, given that it was logged, in (0, 1], shape (m,); as a plan has them.
        `None` for a simple random audit: all logged pairs were as likely.
    levels
        The values of the levels, as of a log that keeps its own; `None` for binary labels.

    Examples
    --------
    >>> len(AuditSample([0, 1], [3, 3], [1, 0]))
    2
    >>> AuditSample([0, 1], [3, 3], [1, 0], probabilities=[0.5, 0.0])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    verirec.exceptions.AuditError: the audit's probabilities must be above 0 (at least 1e-12) and at most 1; 1 of 2 ...
    """

    users: npt.NDArray[Any]
    items: npt.NDArray[Any]
    true_labels: npt.NDArray[Any]
    probabilities: npt.NDArray[Any] | None = None
    levels: Levels | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", None if self.levels is None else checked_levels(self.levels))
        checked = checked_pairs(AN_AUDIT, self.users, self.items, self.true_labels, self.levels)
        for name, values in zip(("users", "items", "true_labels"), checked, strict=True):
            object.__setattr__(self, name, values)
        if self.probabilities is not None:
            chances = checked_probabilities(AN_AUDIT, self.probabilities, len(self.users))
            object.__setattr__(self, "probabilities", chances)

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        log: FeedbackLog,
        *,
        user: str | None = None,
        item: str | None = None,
        true_label: str | None = None,
        log_columns: Mapping[str, str | None] | None = None,
        positive_from: float | None = None,
    ) -> AuditSample:
        """Read an audit: a table with user, item and true label, by the log's ids; rows without one are left out.

        A label is 0 or 1, no or yes, false or true. A column `probability`, or one over a column `weight` as plans
        write it, are the pairs' probabilities.

        Parameters
        ----------
        path
            .csv, .tsv, .inter or .parquet.
        log
            Whose ids they are.
        user, item, true_label
            The columns; left out, `log_columns` and the usual names are tried.
        log_columns
            The log's own columns, "user" and "item": taken where the table has columns of these names.
        positive_from
            The threshold of answers in stars; as the log's.
        """
        roles, log = TruthRoles(user, item, true_label), checked_log(log, levels=True)
        found = read_truths(path_of("path", path), roles, log, log_columns, positive_from=positive_from)
        return cls(found.users, found.items, found.labels, found.probabilities, log.levels)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        log: FeedbackLog,
        *,
        user: str | None = None,
        item: str | None = None,
        true_label: str | None = None,
        positive_from: float | None = None,
    ) -> AuditSample:
        """Take an audit from a pandas, polars or pyarrow frame, by the log's ids; else as `from_file`.

        Examples
        --------
        >>> import pandas as pd
        >>> log = FeedbackLog.from_arrays([0, 1], [0, 0], [1, 0], n_users=2, n_items=1, user_ids=["ann", "bob"])
        >>> frame = pd.DataFrame({"member": ["bob"], "item": [0], "stars": [5]})
        >>> AuditSample.from_frame(frame, log, user="member", true_label="stars", positive_from=4)
        AuditSample(1 pairs, 100.0% truly positive)
        """
        roles, log = TruthRoles(user, item, true_label), checked_log(log, levels=True)
        found = frame_truths(frame, roles, log, positive_from=positive_from)
        return cls(found.users, found.items, found.labels, found.probabilities, log.levels)

    def __len__(self) -> int:
        return len(self.users)

    def __repr__(self) -> str:
        return f"AuditSample({len(self):,} pairs, {said_of(self.true_labels, self.levels, 'truly positive')})"

    def _repr_html_(self) -> str:
        rows = {
            "pairs": f"{len(self):,}",
            **rows_on(self.true_labels, self.levels, "truly positive"),
            "users": f"{len(np.unique(self.users)):,}",
            "items": f"{len(np.unique(self.items)):,}",
        }
        return html_table("Audited pairs", rows)

    def select(self, rows: npt.NDArray[Any]) -> AuditSample:
        """Return the audit of some of its pairs, given by a mask or by numbers; at least one."""
        index = checked_rows(rows, len(self))
        chances = None if self.probabilities is None else self.probabilities[index]
        labels = self.true_labels if self.levels is None else values_at(self.true_labels, self.levels)
        return AuditSample(self.users[index], self.items[index], labels[index], chances, self.levels)

    def rows_in(self, log: FeedbackLog) -> AuditedRows:
        """Return the rows of the audited pairs, and what is known of them; other pairs are left out, with a warning."""
        check_scale("the audit", self.levels, checked_log(log, levels=True).levels, error=AuditError)
        rows, inside = find_rows(AN_AUDIT, self.users, self.items, log)
        simple = np.full(len(inside), inside.sum() / len(log))
        probabilities = simple if self.probabilities is None else self.probabilities
        return AuditedRows(rows, self.true_labels[inside], probabilities[inside])
