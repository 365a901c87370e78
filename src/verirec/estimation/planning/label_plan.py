"""A plan: the pairs to ask people about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from verirec.checks import number_array, whole_number
from verirec.data.cells import Positions
from verirec.data.feedback_log import FeedbackLog
from verirec.data.label_studio import label_studio_tasks
from verirec.data.pair_keys import places_in
from verirec.exceptions import AuditError, DataError, ParameterError, SurveyError
from verirec.nuisance.noise_rates import AuditSample
from verirec.nuisance.surveys import SurveySample

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class LabelPlan:
    """The pairs to ask people about, with how likely each was to be chosen.

    Parameters
    ----------
    log
        The log that it is of.
    users, items
        Positions, in random order, so that a list filled in only in part is still a fair one; shape (m,).
    logged
        Which of them are of the log, for an audit; the others are random pairs, for a survey. Shape (m,).
    probabilities
        Of being chosen: of a logged pair among the log's, of a random one among all that matter. Shape (m,).
    purpose
        "level", "difference", "ndcg@k", "precision@k" or "noise rates".
    half_widths
        What can be expected to either side, by name of what is asked for.
    confidence
        Of these intervals.
    simple
        How many pairs a simple random choice would need for the same; `None` if there are not as many.
    assumes
        What the expectation rests on, in words.
    """

    log: FeedbackLog
    users: Positions
    items: Positions
    logged: npt.NDArray[np.bool_]
    probabilities: Array
    purpose: str
    half_widths: dict[str, float]
    confidence: float
    simple: int | None
    assumes: str

    @property
    def half_width(self) -> float:
        """The widest of those expected."""
        return max(self.half_widths.values())

    @property
    def of_best(self) -> bool:
        """Whether its random pairs are among their users' best: such tell how well these are ranked, and no loss."""
        return "@" in self.purpose

    @property
    def kind(self) -> str:
        """What its pairs that are not logged ones are: "random", or "best" where they are among their users' best."""
        return "best" if self.of_best else "random"

    def __len__(self) -> int:
        return len(self.users)

    def __repr__(self) -> str:
        logged = int(self.logged.sum())
        simple = "" if self.simple is None else f", {self.simple:,} if chosen at random"
        return (
            f"LabelPlan({len(self):,} pairs: {logged:,} logged, {len(self) - logged:,} {self.kind}{simple}; "
            f"{self.purpose} to within {self.half_width:.2g})"
        )

    def to_frame(self, *, titles: Sequence[str] | None = None, answers: int = 1) -> Any:
        """Return kind, user, item, label (of logged pairs), an empty true_label, and probability, as a pandas frame.

        Parameters
        ----------
        titles
            Of all items, by position: adds a column `title`, for a mail merge or whoever answers.
        answers
            How many people are asked about each pair: so many rows each, with a column `person` to say who answered.
        """
        import pandas as pd

        labels = pd.array([None] * len(self), dtype="Int8")
        labels[self.logged] = self.log.labels[self._rows()]
        columns = {
            "kind": np.where(self.logged, "logged", self.kind),
            "user": self.log.user_ids.ids(self.users),
            "item": self.log.item_ids.ids(self.items),
            "label": labels,
            "true_label": None,
            "probability": self.probabilities,
        }
        frame = pd.DataFrame(columns)
        if titles is not None:
            if len(titles) != self.log.n_items:
                raise ParameterError(f"titles must be one an item, {self.log.n_items:,}; got {len(titles):,}")
            frame.insert(3, "title", np.asarray(titles, dtype=object)[self.items])
        if whole_number("answers", answers, min=1, max=1_000) > 1:
            frame = frame.loc[frame.index.repeat(answers)].reset_index(drop=True)
            frame["person"] = np.tile(np.arange(1, answers + 1), len(self))
        return frame

    def to_label_studio(self, *, titles: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Return tasks for Label Studio, as its JSON has them; `verirec.data.label_studio.LABELLING` shows them.

        Its export in JSON is read where a file of answers is, by `SurveySample.from_file` and `AuditSample.from_file`:
        several people may answer a task.
        """
        return label_studio_tasks(self.to_frame(titles=titles).to_dict("records"))

    def _rows(self) -> npt.NDArray[np.int64]:
        """Return the log's rows of the logged pairs."""
        rows, _ = places_in(self.users[self.logged], self.items[self.logged], self.log.users, self.log.items)
        return rows

    def audit(self, true_labels: npt.ArrayLike) -> AuditSample:
        """Return the audit of the logged pairs, with their probabilities.

        Parameters
        ----------
        true_labels
            Of all pairs of the plan, in its order: 0, 1, or NaN where nobody answered; shape (m,).
        """
        answered, labels, share = self._answered(true_labels, self.logged, AuditError, "logged")
        users, items, chosen = self.users[answered], self.items[answered], self.probabilities[answered]
        return AuditSample(users, items, labels, probabilities=share * chosen)

    def survey(self, true_labels: npt.ArrayLike, **options: Any) -> SurveySample:
        """Return the survey of the random pairs, with their probabilities; `true_labels` as in `audit`.

        Parameters
        ----------
        options
            As `SurveySample` takes them: noisy, clusters.
        """
        answered, labels, share = self._answered(true_labels, ~self.logged, SurveyError, "random")
        users, items, chosen = self.users[answered], self.items[answered], self.probabilities[answered]
        return SurveySample(users, items, labels, probabilities=share * chosen, best=self.of_best, **options)

    def _answered(
        self, true_labels: npt.ArrayLike, of_kind: npt.NDArray[np.bool_], error: type[DataError], kind: str
    ) -> tuple[npt.NDArray[np.bool_], Array, float]:
        """Return which pairs of a kind have an answer, the answers, and their share of that kind."""
        labels = number_array("true_labels", true_labels, ndim=1, error=error).astype(np.float64)
        if len(labels) != len(self):
            raise error(f"true_labels must have an entry for each of the {len(self):,} pairs; got {len(labels):,}")
        answered = of_kind & ~np.isnan(labels)
        if not answered.any():
            raise error(f"no {kind} pair of the plan has a true label")
        return answered, labels[answered], float(answered.sum() / of_kind.sum())

    def _repr_html_(self) -> str:
        return f"<p>{self!r}</p>{self.to_frame().head(10).to_html(index=False, escape=True)}"
