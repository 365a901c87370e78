"""Which labels of a log are probably wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.checks import whole_number
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.data.parts import order_of
from verirec.data.predictions import PredictionsLike, as_predictions
from verirec.exceptions import ParameterError, PredictionError
from verirec.losses import GroupedNoiseRates, NoiseRates
from verirec.nuisance.label_model import LabelModel
from verirec.randomness import RandomState
from verirec.scratch import each

Array = npt.NDArray[np.float64]

_TINY: Final = 1e-12


@dataclass(frozen=True, eq=False)
class SuspectLabels:
    """Each row's probability that its label is wrong, most suspect first.

    Parameters
    ----------
    log
        The log they are of.
    rows
        Row numbers of the log, whose rows are sorted by user and item, most suspect first, shape (n,).
    probabilities
        Of these rows, shape (n,).
    """

    log: FeedbackLog
    rows: npt.NDArray[np.int64]
    probabilities: Array

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"SuspectLabels({len(self):,} rows, {self.probabilities.sum():,.0f} wrong labels expected)"

    def to_frame(self, most: int | None = None) -> Any:
        """Return user, item, label and probability, most suspect first, as a pandas frame.

        Parameters
        ----------
        most
            How many; all by default.
        """
        import pandas as pd

        rows = self.rows if most is None else self.rows[: whole_number("most", most, min=0)]
        columns = {
            "user": self.log.user_ids.ids(self.log.users[rows]),
            "item": self.log.item_ids.ids(self.log.items[rows]),
            "label": self.log.labels[rows],
            "probability_wrong": self.probabilities[: len(rows)],
        }
        return pd.DataFrame(columns)

    def _repr_html_(self) -> str:
        return f"<p>{self!r}</p>{self.to_frame(10).to_html(index=False, escape=True)}"


def find_suspect_labels(
    log: FeedbackLog,
    noise_rates: NoiseRates | GroupedNoiseRates,
    *,
    h: PredictionsLike | None = None,
    folds: int = 5,
    random_state: RandomState = 0,
) -> SuspectLabels:
    r"""Return the probability that each label is wrong, by Bayes's rule, most suspect first.

    With :math:`h = P(r = 1 \mid x)` and :math:`\gamma = (h - \rho_{10}) / \kappa` cut to [0, 1], a positive label is
    wrong with probability :math:`\rho_{10} (1 - \gamma) / h`, a negative one with :math:`\rho_{01} \gamma / (1 - h)`.

    Parameters
    ----------
    log
        n rows.
    noise_rates
        Given or estimated.
    h
        P(r = 1) of pairs, in any form of predictions, by a model that has not seen these labels; by default user and
        item constants, cross-fitted.
    folds, random_state
        Of the cross-fitting.

    Examples
    --------
    >>> from verirec import simulate
    >>> world = simulate.world(n_users=200, n_items=300, random_state=0)
    >>> suspects = find_suspect_labels(world.log, NoiseRates(0.2, 0.1))
    >>> top = suspects.rows[:100]
    >>> wrong = world.at(world.log.users, world.log.items).true_labels != world.log.labels
    >>> bool(wrong[top].mean() > 2 * wrong.mean())
    True
    """
    if not isinstance(noise_rates, NoiseRates | GroupedNoiseRates):
        raise ParameterError(f"noise_rates must be NoiseRates or GroupedNoiseRates; got {type(noise_rates).__name__}")
    checked_log(log)
    if isinstance(noise_rates, GroupedNoiseRates):
        noise_rates.check_grid(log.n_users, log.n_items)
    if h is None:
        said = LabelModel().cross_fit(log, np.broadcast_to(1.0, len(log)), folds, random_state)
    else:
        said = as_predictions(h, log.n_users, log.n_items).at(log.users, log.items)
    if not (said.min(initial=0) >= 0 and said.max(initial=0) <= 1):
        raise PredictionError("h must be a probability of each pair: some are outside of 0 and 1")
    wrong = each(_probability_wrong, log.labels, said, *noise_rates.of_pairs(log.users, log.items))
    order = order_of(each(np.negative, wrong))
    return SuspectLabels(log, order, each(lambda rows: wrong[rows], order))


def _probability_wrong(
    labels: npt.NDArray[Any], said: Array, rho01: Array | float, rho10: Array | float
) -> npt.NDArray[Any]:
    """Return the probability that each label is wrong, where P(r = 1) is `said`."""
    liked = np.clip((said - rho10) / (1 - rho01 - rho10), 0, 1)
    # What h should be if gamma is a probability: h itself, but for the cut.
    positive = rho10 + (1 - rho01 - rho10) * liked
    if_positive = rho10 * (1 - liked) / np.maximum(positive, _TINY)
    if_negative = rho01 * liked / np.maximum(1 - positive, _TINY)
    return np.minimum(np.where(labels == 1, if_positive, if_negative), 1.0)
