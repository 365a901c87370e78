"""Surveys: what people truly prefer of pairs that were drawn at random, whether or not anybody logged them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.checks import as_array, number_array, path_of
from verirec.data.cells import IDS_HINT, cell_keys, checked_positions, checked_rows
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.data.levels import Levels, checked_labels, checked_levels, rows_on, said_of, values_at
from verirec.data.roles import TruthRoles
from verirec.data.splits import split_unbiased
from verirec.data.truth_files import frame_truths, read_truths
from verirec.exceptions import SurveyError
from verirec.formatting import html_table

Array = npt.NDArray[np.float64]

FEWEST: Final = 10
"""Labels of a class below which nothing is established."""
FEWEST_WORTH: Final = 30.0
"""What pairs with unequal probabilities must be worth, in pairs that are as likely."""
_MOST_UNEVEN: Final = 1e12
BEYOND_CHANCE: Final = 4.0
"""Standard errors above which nobody blames chance."""


def _worth(weights: Array) -> float:
    """Return how many equally weighted draws weighted ones are worth (Kish 1965)."""
    return float(weights.sum() ** 2 / (weights @ weights))


@dataclass(frozen=True, eq=False, repr=False)
class SurveySample:
    """Random pairs of the grid, with what people truly prefer of them.

    A survey makes an answer right whatever decides what people log, and however wrong their logged labels are: it is
    drawn by us, not by them. Rows of exploration traffic, shown at random, are one too (`from_unbiased`).

    Parameters
    ----------
    users, items
        Positions, shape (n,). Several draws of one pair must agree.
    labels
        0/1, shape (n,); with `levels`, values among these, kept as their places from 0.
    probabilities
        Of each pair to be drawn, in all or in each draw, shape (n,); `None` if all pairs were as likely. If one over
        them adds up to fewer pairs than there are, the survey is refused where all are spoken of. Numbers above 1 are
        taken to be in proportion, and nothing is checked.
    clusters
        Which draws were made together, any integers, shape (n,): of a few users who were asked about many items each,
        the users. By default each pair is its own. Where the survey's pairs are of far fewer users than random pairs
        would be, these users are taken for the frame, with a warning: if they were drawn from all, they are clusters.
    noisy
        True where the labels are as wrong as the log's, and have to be corrected with its noise rates.
    frame
        Users who could have been asked, as positions; `None` for all. The survey speaks for these users.
    best
        True where only pairs among their user's best could be drawn, as a plan for NDCG draws them. Such a survey tells
        DCG, NDCG and precision of the rankings that it was drawn from, and no loss.
    levels
        The values of the levels, as of a log that keeps its own; `None` for binary labels.
    shown
        True where the pairs are rows of the log that were shown at random (`from_unbiased`): as a pair is in a log
        once, none of them is among the rows that people chose.

    Examples
    --------
    >>> SurveySample([0, 1, 1], [3, 0, 2], [1, 0, 0])
    SurveySample(3 pairs, 33.3% positive)
    """

    users: npt.NDArray[Any]
    items: npt.NDArray[Any]
    labels: npt.NDArray[Any]
    probabilities: npt.NDArray[Any] | None = None
    clusters: npt.NDArray[Any] | None = None
    noisy: bool = False
    frame: npt.NDArray[Any] | None = None
    best: bool = False
    levels: Levels | None = None
    shown: bool = False

    def __post_init__(self) -> None:
        largest = int(np.iinfo(np.int32).max)
        for name in ("users", "items"):
            self._set(name, checked_positions(f"the survey's {name}", getattr(self, name), largest, IDS_HINT))
        labels = number_array("the survey's labels", self.labels, ndim=1, error=SurveyError)
        if not len(self.users) == len(self.items) == len(labels):
            raise SurveyError(
                "a survey's users, items and labels must be of one length; got "
                f"{len(self.users):,}, {len(self.items):,} and {len(labels):,}"
            )
        if len(labels) == 0:
            raise SurveyError("a survey needs pairs with labels; got none")
        self._set("levels", None if self.levels is None else checked_levels(self.levels))
        hint = ": if they are stars, say which there are, levels=[1, 2, 3, 4, 5]"
        self._set("labels", checked_labels("the survey's labels", labels, self.levels, error=SurveyError, hint=hint))
        for name in ("noisy", "best", "shown"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise SurveyError(f"{name} must be True or False; got {getattr(self, name)!r}")
        self._check_design()
        self._refuse_contradictions()

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _check_design(self) -> None:
        """Accept probabilities, clusters and frame."""
        if self.probabilities is not None:
            given = number_array("the survey's probabilities", self.probabilities, ndim=1, error=SurveyError)
            values = self._of_each("probabilities", given).astype(np.float64)
            wrong = ~(np.isfinite(values) & (values > 0))
            if wrong.any():
                raise SurveyError(
                    f"the survey's probabilities must be finite and above 0; {int(wrong.sum()):,} of {len(values):,} "
                    f"are not (row {int(np.flatnonzero(wrong)[0])} has {values[wrong][0]:g})"
                )
            if values.max() / _MOST_UNEVEN > values.min():
                raise SurveyError(
                    f"the survey's probabilities must be within a factor of {_MOST_UNEVEN:g} of each other; they are "
                    f"from {values.min():g} to {values.max():g}"
                )
            self._set("probabilities", values)
        if self.clusters is not None:
            given = self._of_each("clusters", as_array("the survey's clusters", self.clusters, error=SurveyError))
            try:
                self._set("clusters", np.unique(given, return_inverse=True)[1])
            except TypeError:
                raise SurveyError("the survey's clusters must be numbers or text, all of one kind") from None
        if self.frame is not None:
            frame = np.unique(checked_positions("the survey's frame", self.frame, int(np.iinfo(np.int32).max)))
            outside = int((~np.isin(self.users, frame)).sum())
            if outside:
                raise SurveyError(f"the survey's frame must have all its users; {outside:,} pairs are of others")
            self._set("frame", frame)

    def _of_each(self, name: str, given: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if given.shape != (len(self),):
            raise SurveyError(f"the survey's {name} must have one entry a pair, {len(self):,}; got shape {given.shape}")
        return given

    def _refuse_contradictions(self) -> None:
        """A person prefers one thing; only noisy answers may differ."""
        if self.noisy:
            return
        keys = cell_keys(self.users, self.items, int(self.items.max()) + 1)
        answers = np.unique(np.stack([keys, self.labels]), axis=1)[0]
        several = np.unique(answers[1:][answers[1:] == answers[:-1]])
        if several.size:
            user, item = np.divmod(several[0], int(self.items.max()) + 1)
            kinds = "both" if self.levels is None else "different ones"
            raise SurveyError(
                f"a survey's labels of one pair must agree; {several.size:,} pairs have {kinds} (first: user {user}, "
                f"item {item}); if answers are noisy, say noisy=True"
            )

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
    ) -> SurveySample:
        """Read a survey: a table with user, item and true label, by the log's ids; rows without one are left out.

        Columns `probability` (or `weight`), `cluster` and `person` are taken where there are such, and of a plan with
        both kinds the random pairs.

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
        roles = TruthRoles(user, item, true_label)
        source, log = path_of("path", path), checked_log(log, levels=True)
        found = read_truths(source, roles, log, log_columns, kind="random", positive_from=positive_from)
        return cls(*found[:5], best=found.best, levels=log.levels)

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
    ) -> SurveySample:
        """Take a survey from a pandas, polars or pyarrow frame, by the log's ids; else as `from_file`.

        Examples
        --------
        >>> import pandas as pd
        >>> log = FeedbackLog.from_arrays([0, 1], [0, 0], [1, 0], n_users=2, n_items=1, user_ids=["ann", "bob"])
        >>> frame = pd.DataFrame({"member": ["bob"], "item": [0], "stars": [5]})
        >>> SurveySample.from_frame(frame, log, user="member", true_label="stars", positive_from=4)
        SurveySample(1 pair, 100.0% positive)
        """
        roles, log = TruthRoles(user, item, true_label), checked_log(log, levels=True)
        found = frame_truths(frame, roles, log, kind="random", positive_from=positive_from)
        return cls(*found[:5], best=found.best, levels=log.levels)

    @classmethod
    def from_unbiased(cls, log: FeedbackLog) -> SurveySample:
        """Take the rows of a log that were shown at random, with labels as logged: noisy.

        Where the log has propensities, those of these rows say how likely each was to be shown so; without, all pairs
        are taken to have been as likely.

        Examples
        --------
        >>> log = FeedbackLog.from_arrays([0, 1], [0, 0], [1, 0], n_users=2, n_items=1, unbiased=[True, False])
        >>> SurveySample.from_unbiased(log)
        SurveySample(1 pair, 100.0% positive, noisy)
        """
        rows = split_unbiased(log).unbiased
        if len(rows) == 0:
            raise SurveyError("no row of the log is marked as unbiased")
        of_rows = rows.users, rows.items, rows.label_values, rows.propensities
        return cls(*of_rows, noisy=True, levels=rows.levels, shown=True)

    def __len__(self) -> int:
        return len(self.users)

    @property
    def label_values(self) -> npt.NDArray[Any]:
        """The labels as they were given: of levels, their values."""
        return self.labels if self.levels is None else values_at(self.labels, self.levels)

    def __repr__(self) -> str:
        pairs = "1 pair" if len(self) == 1 else f"{len(self):,} pairs"
        return f"SurveySample({pairs}, {said_of(self.labels, self.levels)}{', noisy' if self.noisy else ''})"

    def _repr_html_(self) -> str:
        rows = {
            "pairs": f"{len(self):,}",
            **rows_on(self.labels, self.levels, "positive"),
            "users": f"{len(np.unique(self.users)):,}",
            "items": f"{len(np.unique(self.items)):,}",
            "drawn": "each as likely" if self.probabilities is None else "with given probabilities",
        }
        return html_table("Surveyed pairs" + (", noisy" if self.noisy else ""), rows)

    @property
    def lacking(self) -> str:
        """Why nothing can be established by it, as a sentence; empty if it has enough.

        Examples
        --------
        >>> SurveySample(np.arange(40), np.zeros(40, int), np.arange(40) < 4).lacking.split(": ")[0]
        'only 4 of 40 surveyed pairs are liked'
        """
        rarer, kind = self._rarer
        if rarer < FEWEST:
            wanted = int(np.ceil(FEWEST * (len(self) + 1) / (rarer + 1)))
            return (
                f"only {rarer} of {len(self):,} surveyed pairs are {kind}: nothing is established by fewer than "
                f"{FEWEST}; about {wanted:,} pairs would have so many"
            )
        if self.probabilities is None or np.ptp(self.probabilities) == 0:
            return ""
        weights = self.probabilities.min() / self.probabilities
        common = self.labels == np.bincount(self.labels).argmax()
        worth = min(_worth(weights), *(_worth(weights[part]) * FEWEST_WORTH / FEWEST for part in (common, ~common)))
        if worth >= FEWEST_WORTH:
            return ""
        return (
            f"the {len(self):,} surveyed pairs, as unlike as their probabilities are, are worth {worth:.0f} that are "
            f"as likely: nothing is established by fewer than {FEWEST_WORTH:.0f}"
        )

    @property
    def _rarer(self) -> tuple[int, str]:
        """How many pairs are not of the commonest label, and what they are."""
        counts = np.bincount(self.labels, minlength=2)
        kind = "liked" if counts.argmax() == 0 else "disliked"
        return len(self) - int(counts.max()), kind if self.levels is None else "of other levels than the commonest"

    @property
    def worth(self) -> float:
        """How many pairs, all different and as likely, it is worth: draws of one pair count once (Kish 1965).

        Examples
        --------
        >>> SurveySample([0, 0, 1], [3, 3, 2], [1, 1, 0]).worth
        2.0
        """
        keys = cell_keys(self.users, self.items, int(self.items.max()) + 1)
        first = np.unique(keys, return_index=True)[1]
        chances = np.ones(len(self)) if self.probabilities is None else self.probabilities
        return _worth(chances.min() / chances[first])

    def select(self, rows: npt.NDArray[Any]) -> SurveySample:
        """Return the survey of some of its draws, given by a mask or by numbers; at least one."""
        index = checked_rows(rows, len(self))

        def part(values: npt.NDArray[Any] | None) -> npt.NDArray[Any] | None:
            return None if values is None else values[index]

        return SurveySample(
            self.users[index],
            self.items[index],
            self.label_values[index],
            part(self.probabilities),
            part(self.clusters),
            self.noisy,
            self.frame,
            self.best,
            self.levels,
            self.shown,
        )


def check_of_all(survey: SurveySample) -> None:
    """Raise `SurveyError` unless this is a survey, and one that could draw other pairs than their users' best.

    Examples
    --------
    >>> check_of_all(SurveySample([0], [0], [1]))
    """
    if not isinstance(survey, SurveySample):
        raise SurveyError(f"survey must be a SurveySample; got {type(survey).__name__}")
    if survey.best:
        raise SurveyError("this survey is of pairs among their users' best, from which no curve of all pairs follows")
