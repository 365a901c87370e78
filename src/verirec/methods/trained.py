"""What all that can be fitted have in common: parameters, and a recommender once they are."""

from __future__ import annotations

from abc import ABC
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from verirec.data.feedback_log import FeedbackLog
from verirec.estimation.inputs import KnownNoise
from verirec.exceptions import NotFittedError, ParameterError
from verirec.methods.parameters import parameters_of, savable_parameters, shown
from verirec.nuisance.surveys import SurveySample
from verirec.training.recommender import Recommendations, Recommender
from verirec.training.report import TrainingReport


class Trained(ABC):
    """Parameters in scikit-learn's manner, and `recommender_`, which `fit` leaves and everything is handed over to."""

    name: ClassVar[str]
    paper: ClassVar[str]
    summary: ClassVar[str]
    recommender_: Recommender

    # What was trained

    def _trained(self) -> Recommender:
        if "recommender_" not in vars(self):
            raise NotFittedError(f"this {type(self).__name__} is not trained yet: call fit first")
        return self.recommender_

    @property
    def report_(self) -> TrainingReport:
        """How training went: history, why it stopped, validation error."""
        return self._trained().report

    @property
    def noise_rates_(self) -> KnownNoise | None:
        """Given, audited, or as training left them; `None` for none."""
        return self._trained().noise_rates

    @property
    def predictions(self) -> Any:
        """Probabilities of all pairs, stars or chances of levels, by position, as `verirec.estimate` takes them."""
        return self._trained().predictions

    def predictions_for(self, log: FeedbackLog) -> Any:
        """Return the predictions on another log's grid, by id: see `Recommender.predictions_for`."""
        return self._trained().predictions_for(log)

    def predict(self, users: Any, items: Any, *, clip: bool = False) -> npt.NDArray[np.float64]:
        """Return the probability that each user likes each item, or stars, by id: see `Recommender.predict`."""
        return self._trained().predict(users, items, clip=clip)

    def predict_distribution(self, users: Any, items: Any) -> npt.NDArray[np.float64]:
        """Return the chance of each level of each pair, by id: see `Recommender.predict_distribution`."""
        return self._trained().predict_distribution(users, items)

    def recommend(self, users: Any, k: int = 10, *, exclude: FeedbackLog | None = None) -> Recommendations:
        """Return each user's k best items: see `Recommender.recommend`."""
        return self._trained().recommend(users, k, exclude=exclude)

    def similar_items(self, item: Any, k: int = 10) -> Recommendations:
        """Return the k items most like one: see `Recommender.similar_items`."""
        return self._trained().similar_items(item, k)

    def calibrated(self, survey: SurveySample, **options: Any) -> Recommender:
        """Return the recommender with level and slope put right: see `Recommender.calibrated`."""
        return self._trained().calibrated(survey, **options)

    def fold_in(self, ratings: FeedbackLog) -> Recommender:
        """Return a recommender of new users, without training again: see `Recommender.fold_in`."""
        return self._trained().fold_in(ratings)

    def save(self, folder: str | Path) -> Path:
        """Save the trained recommender: see `Recommender.save`."""
        return self._trained().save(folder)

    # Parameters, in scikit-learn's manner

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, as scikit-learn's `clone` wants them."""
        return parameters_of(self)

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters."""
        known = self.get_params()
        for name, value in parameters.items():
            if name not in known:
                raise ParameterError(f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(known)}")
            setattr(self, name, value)
        return self

    @property
    def savable_parameters(self) -> dict[str, Any]:
        """The parameters that a file can hold; objects, such as modules of one's own, are left out."""
        return savable_parameters(self)

    def __repr__(self) -> str:
        return shown(self)
