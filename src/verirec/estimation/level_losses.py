"""The losses of predicted stars, or of predicted distributions over levels, cell by cell."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.checks import real_number
from verirec.data.cells import Positions
from verirec.data.distributions import Distributions, as_distributions
from verirec.data.feedback_log import FeedbackLog
from verirec.data.levels import in_words
from verirec.data.parts import SHORT, parts_of
from verirec.data.predictions import PredictionsLike, as_predictions
from verirec.estimation.cell_losses import CellLosses
from verirec.exceptions import PredictionError, ScoreWarning, warn_caller
from verirec.losses import LevelLoss, LossLike, get_level_loss

Array = npt.NDArray[np.float64]

_MUCH: Final = 0.5


class LevelLosses(CellLosses):
    """The loss at the lowest level, and the steps from each level to the next: shapes (...) and (K - 1, ...)."""

    loss: LevelLoss

    @classmethod
    def of(
        cls, predictions: PredictionsLike, log: FeedbackLog, loss: LossLike, clip: float | None, *, counts_grid: bool
    ) -> LevelLosses:
        """Check predictions of a log that keeps its levels, and put them together with the loss that judges them.

        Parameters
        ----------
        predictions, log, loss
            As in `estimate`.
        clip
            Distance that stars keep from the ends of the scale, 0 being the ends themselves; of distributions, the
            least probability. `None` leaves predictions as they are.
        counts_grid
            As in `CellLosses`.
        """
        assert log.levels is not None  # noqa: S101 -- others have binary losses
        judged = get_level_loss(loss, log.levels)
        if judged.distributions:
            kept = None if clip is None else real_number("clip", clip, above=0, below=1 / len(log.levels))
            values = as_distributions(predictions, log.n_users, log.n_items, len(log.levels))
            return cls(values, judged, kept, counts_grid)
        if _are_distributions(predictions):
            raise PredictionError(
                f"the {judged.name} loss judges predicted stars, one number a pair; these predictions are "
                f"distributions over {len(log.levels)} levels: take log or rps, or their means"
            )
        most = (log.levels[-1] - log.levels[0]) / 2
        kept = None if clip is None else real_number("clip", clip, above=0, below=most, closed=True)
        return cls(as_predictions(predictions, log.n_users, log.n_items), judged, kept, counts_grid)

    @property
    def columns(self) -> tuple[int, ...]:
        """K - 1."""
        return (len(self.loss.levels) - 1,)

    @property
    def _ends(self) -> tuple[float, float]:
        """What stars are kept between."""
        return self.loss.levels[0] + (self.clip or 0.0), self.loss.levels[-1] - (self.clip or 0.0)

    def clipped(self, values: npt.NDArray[Any]) -> Array:
        """Return predictions as they are judged: stars within the scale, probabilities above 0 and adding up to 1."""
        if self.clip is None:
            return values
        if not self.loss.distributions:
            return np.asarray(np.clip(values, *self._ends))
        raised = np.maximum(values, self.clip)
        return np.asarray(raised / raised.sum(axis=0))

    def check(self, values: Callable[[], Iterable[Array]]) -> None:
        """Raise `PredictionError` for predictions that the loss cannot take, with what to do about it."""
        try:
            self.loss.check(values())
        except PredictionError as error:
            hint = "; clip=1e-6 would raise them" if self.loss.open_unit_interval and self.clip is None else ""
            raise PredictionError(f"{error}{hint}") from None

    def count_clipped(self, users: Positions, items: Positions) -> int:
        """Count the pairs whose prediction the clip changes."""
        if self.clip is None:
            return 0
        if self.loss.distributions:
            least = self.clip
            return self._count(users, items, lambda raw: np.asarray((raw < least).any(axis=0)))
        return self._count(users, items, self._outside)

    def _outside(self, stars: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        low, high = self._ends
        return np.asarray((stars < low) | (stars > high))

    def _count(self, users: Positions, items: Positions, those: Callable[[Array], npt.NDArray[np.bool_]]) -> int:
        """Count pairs by their predictions, part by part."""
        parts = parts_of(len(users), size=SHORT)
        return sum(int(those(self.predictions.cells(users[at], items[at])).sum()) for at in parts)

    def warn_of_scale(self, log: FeedbackLog) -> None:
        """Say so where most of the logged pairs' predicted stars are outside of the scale."""
        if self.loss.distributions or self.clip is not None:
            return
        outside = self._count(log.users, log.items, self._outside)
        if outside > _MUCH * len(log):
            warn_caller(
                f"the predictions of {outside:,} of {len(log):,} logged pairs are outside of the scale, "
                f"{in_words(self.loss.levels)}, and are judged as they are: clip=0 would keep them inside",
                ScoreWarning,
            )


def _are_distributions(predictions: Any) -> bool:
    """Tell whether predictions are distributions whose means are not known, which no loss of stars takes."""
    if isinstance(predictions, Distributions):
        return predictions.means is None
    return getattr(predictions, "ndim", 2) == 3
