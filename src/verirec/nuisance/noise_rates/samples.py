"""Pairs of the log that people were asked about again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from verirec.checks import number_array
from verirec.data.cells import cell_keys, checked_positions
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.data.roles import TruthRoles
from verirec.data.truth_files import read_truths
from verirec.exceptions import AuditError, EmptyLogError, NoiseRateWarning, ParameterError, warn_caller
from verirec.formatting import html_table

Array = npt.NDArray[np.float64]


class AuditedRows(NamedTuple):
    """The audited rows of a log.

    Parameters
    ----------
    rows
        Their numbers, shape (m,).
    true_labels
        0/1.
    probabilities
        Of each row to be audited; of a simple random audit, m over the number of rows.
    """

    rows: npt.NDArray[np.int64]
    true_labels: npt.NDArray[np.int8]
    probabilities: Array


@dataclass(frozen=True, eq=False, repr=False)
class AuditSample:
    """Pairs that somebody was asked about again, with what they truly prefer.

    Parameters
    ----------
    users, items
        Positions, shape (m,). Pairs that are not in the log say nothing about its noise.
    true_labels
        0/1, shape (m,).
    probabilities
        Of each of these pairs to be audited, given that it was logged, in (0, 1], shape (m,); as a plan has them.
        `None` for a simple random audit: all logged pairs were as likely.

    Examples
    --------
    >>> len(AuditSample([0, 1], [3, 3], [1, 0]))
    2
    >>> AuditSample([0, 1], [3, 3], [1, 0], probabilities=[0.5, 0.0])
    Traceback (most recent call last):
    verirec.exceptions.AuditError: the audit's probabilities must be above 0 and at most 1; 1 of 2 are not (first: 0)
    """

    users: npt.NDArray[Any]
    items: npt.NDArray[Any]
    true_labels: npt.NDArray[Any]
    probabilities: npt.NDArray[Any] | None = None

    def __post_init__(self) -> None:
        largest = int(np.iinfo(np.int32).max)
        for name in ("users", "items"):
            object.__setattr__(self, name, checked_positions(f"the audit's {name}", getattr(self, name), largest))
        labels = number_array("the audit's true_labels", self.true_labels, ndim=1, error=AuditError)
        if not len(self.users) == len(self.items) == len(labels):
            raise AuditError(
                "an audit's users, items and true_labels must be of one length; got "
                f"{len(self.users):,}, {len(self.items):,} and {len(labels):,}"
            )
        if len(labels) == 0:
            raise AuditError("an audit needs pairs with true labels; got none")
        if not np.isin(labels, (0, 1)).all():
            raise AuditError(f"the audit's true_labels must be 0/1; {int((~np.isin(labels, (0, 1))).sum()):,} are not")
        object.__setattr__(self, "true_labels", labels.astype(np.int8))
        if self.probabilities is not None:
            object.__setattr__(self, "probabilities", _checked_probabilities(self.probabilities, len(labels)))

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
        """
        if not isinstance(path, str | Path):
            raise ParameterError(f"path must be a string or a Path; got {path!r}")
        found = read_truths(Path(path), TruthRoles(user, item, true_label), checked_log(log), log_columns)
        return cls(found.users, found.items, found.labels, found.probabilities)

    def __len__(self) -> int:
        return len(self.users)

    def __repr__(self) -> str:
        return f"AuditSample({len(self):,} pairs, {self.true_labels.mean():.1%} truly positive)"

    def _repr_html_(self) -> str:
        positive = int(self.true_labels.sum())
        rows = {
            "pairs": f"{len(self):,}",
            "truly positive": f"{positive:,} ({positive / len(self):.1%})",
            "users": f"{len(np.unique(self.users)):,}",
            "items": f"{len(np.unique(self.items)):,}",
        }
        return html_table("Audited pairs", rows)

    def select(self, rows: npt.NDArray[Any]) -> AuditSample:
        """Return the audit of some of its pairs, given by a mask or by numbers; at least one."""
        chances = None if self.probabilities is None else self.probabilities[rows]
        return AuditSample(self.users[rows], self.items[rows], self.true_labels[rows], chances)

    def rows_in(self, log: FeedbackLog) -> AuditedRows:
        """Return the rows of the audited pairs, and what is known of them; other pairs are left out, with a warning."""
        if len(log) == 0:
            raise EmptyLogError("an audit needs a log with rows; it has none")
        checked_positions("the audit's users", self.users, log.n_users)
        checked_positions("the audit's items", self.items, log.n_items)
        logged = cell_keys(log.users, log.items, log.n_items)
        asked = cell_keys(self.users, self.items, log.n_items)
        if len(np.unique(asked)) < len(asked):
            raise AuditError(
                f"an audit must name each pair once; {len(asked):,} rows name {len(np.unique(asked)):,} pairs"
            )
        order = np.argsort(logged)
        found = order[np.minimum(np.searchsorted(logged, asked, sorter=order), len(logged) - 1)]
        inside = logged[found] == asked
        if not inside.all():
            if not inside.any():
                raise AuditError(
                    f"none of the {len(asked):,} audited pairs is in the log: they say nothing of its noise"
                )
            warn_caller(
                f"{int((~inside).sum()):,} of {len(asked):,} audited pairs are not in the log and are left out: only "
                "pairs with both labels tell how noisy the log is",
                NoiseRateWarning,
            )
        simple = np.full(len(asked), inside.sum() / len(log))
        probabilities = simple if self.probabilities is None else self.probabilities
        return AuditedRows(found[inside], self.true_labels[inside], probabilities[inside])


def _checked_probabilities(given: Any, count: int) -> Array:
    values = number_array("the audit's probabilities", given, ndim=1, error=AuditError).astype(np.float64)
    if len(values) != count:
        raise AuditError(f"an audit's probabilities must be one a pair, {count:,}; got {len(values):,}")
    # One over a weight that was written with few digits can be a little above 1.
    wrong = ~((values > 0) & (values <= 1 + 1e-6))
    if wrong.any():
        raise AuditError(
            f"the audit's probabilities must be above 0 and at most 1; {int(wrong.sum()):,} of {count:,} are not "
            f"(first: {values[wrong][0]:g})"
        )
    return np.minimum(values, 1.0)
