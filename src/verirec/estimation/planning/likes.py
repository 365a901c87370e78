"""How likely pairs are to be liked, as far as a log and a pilot survey say before anybody is asked."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from verirec.data.cells import Positions
from verirec.data.feedback_log import FeedbackLog
from verirec.estimation.survey.draws import check_survey, draws_of, self_selected
from verirec.estimation.survey.inference import intercept
from verirec.estimation.survey.target import Target
from verirec.nuisance.click_model import clicks_only, fit_clicks
from verirec.nuisance.label_model import LabelModel, LabelProbabilities
from verirec.nuisance.surveys import SurveySample
from verirec.resuming import kept

Array = npt.NDArray[np.float64]

SHIFTS: Final = tuple(np.linspace(0.0, -3.0, 7))
"""By how much the logits of pairs that nobody logged may be lower than the log's, where no pilot says."""
RISES: Final = tuple(np.linspace(0.0, 6.0, 7))
"""By how much the logits of being liked may be above those of being clicked, where no pilot says."""
RISES_SAID: Final = f"as often as they are clicked or more, by up to {RISES[-1]:g} in logits"


class ExpectedLikes(NamedTuple):
    r""":math:`q = \sigma(z + c)`.

    Parameters
    ----------
    model
        z, fitted to the log's labels or, of clicks alone, to what was clicked.
    shifts
        What c may be.
    assumes
        What this rests on, in words.
    """

    model: LabelProbabilities
    shifts: tuple[float, ...]
    assumes: str

    def spreads(self, users: Positions, items: Positions) -> Array:
        """Return q (1 - q) by shift and pair, shape (shifts, m)."""
        likes = expit(self.model.cell_logits(users, items) + np.array(self.shifts)[:, None])
        return np.asarray(likes * (1 - likes))


def expect_likes(log: FeedbackLog, pilot: SurveySample | None, target: Target) -> ExpectedLikes:
    """Fit a model to the log and, if there is a pilot, shift it to agree with that."""
    if pilot is not None:
        check_survey(pilot, log, "pilot")
    own = self_selected(log)
    clicks = clicks_only(own)
    model = LabelProbabilities(*kept("model of likes", lambda: _model(own, clicks).constants))
    if pilot is None and clicks:
        return ExpectedLikes(model, RISES, f"at worst, if pairs are liked {RISES_SAID}")
    if pilot is None:
        return ExpectedLikes(
            model, SHIFTS, f"at worst, if pairs are liked as the log says or less, by up to {-SHIFTS[-1]:g} in logits"
        )
    draws = draws_of(pilot, target, log, None)
    shift = intercept(model.cell_logits(draws.users, draws.items), draws)
    return ExpectedLikes(
        model, (shift,), f"if pairs are liked as the pilot's {len(draws):,} are, {shift:+.2f} in logits from the log's"
    )


def _model(log: FeedbackLog, clicks: bool) -> LabelProbabilities:
    return fit_clicks(log) if clicks else LabelModel().fit(log, np.broadcast_to(1.0, len(log)))
