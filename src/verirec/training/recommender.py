"""What training leaves: a recommender that predicts, recommends, finds similar items, and can be saved."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import torch

from verirec.checks import truth_value, whole_number
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.data.levels import check_scale
from verirec.data.pair_sketch import PairSketch
from verirec.exceptions import ColdStartWarning, ParameterError, warn_caller
from verirec.formatting import html_table
from verirec.losses import TransitionMatrix
from verirec.training.folding import fold_in, rows_of_known_items
from verirec.training.heads import BINARY, Head, OrdinalHead
from verirec.training.model_cells import levelled_cells, marked, score_cells
from verirec.training.recommendations import Recommendations as Recommendations
from verirec.training.recommendations import rated_pairs, top_items
from verirec.training.recommender_files import read_recommender
from verirec.training.report import TrainingReport
from verirec.training.saving import plain_rates, write_model
from verirec.training.survey_calibration import level_of

if TYPE_CHECKING:
    from verirec.data.feature_columns import FeatureScale
    from verirec.data.ids import IdMap
    from verirec.estimation.curves import PlattCurve
    from verirec.estimation.inputs import KnownNoise
    from verirec.losses import GroupedNoiseRates, NoiseRates
    from verirec.models import Model
    from verirec.nuisance.surveys import SurveySample


@dataclass(frozen=True, eq=False)
class Recommender:
    """A trained model, with the ids of its users and items: immutable, and independent of the method that made it.

    Parameters
    ----------
    model
        Of logits, in evaluation mode.
    user_ids, item_ids
        Ids by position.
    cold_users, cold_items
        True where there was no rating to learn from.
    noise_rates
        Given, audited, or as training left them; `None` for none. A model that is not corrected for noise was validated
        with them.
    report
        How it was trained.
    calibration
        Puts the level and the slope of the model's logits right, where a survey told them: see `calibrated`.
    user_scale
        How the features of users were standardised; `None` where there were none.
    head
        What the model's scores say: chances of a like, stars, or chances of all levels.
    trained_on
        Which pairs it was trained on, as far as a sketch of them says.

    Examples
    --------
    >>> import verirec as vr
    >>> world = vr.simulate.world(60, 40, observed=0.3, random_state=0)
    >>> recommender = vr.methods.MF(epochs=3).fit(world.log).recommender_
    >>> recommender.recommend([0, 1], k=5).items.shape
    (2, 5)
    """

    model: Model
    user_ids: IdMap
    item_ids: IdMap
    cold_users: npt.NDArray[np.bool_]
    cold_items: npt.NDArray[np.bool_]
    noise_rates: KnownNoise | None
    report: TrainingReport
    calibration: PlattCurve | None = None
    user_scale: FeatureScale | None = None
    head: Head = BINARY
    trained_on: PairSketch | None = None

    @classmethod
    def of(
        cls,
        model: Model,
        log: FeedbackLog,
        cold: tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]],
        rates: KnownNoise | None,
        report: TrainingReport,
        head: Head,
    ) -> Self:
        """Put a model together with the ids of the log that it was trained on, and with what is kept of its pairs."""
        own = {"user_scale": log.user_scale, "head": head, "trained_on": PairSketch.of(log)}
        return cls(model, log.user_ids, log.item_ids, *cold, rates, report, **own)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"Recommender({self.report.method}, {self.shape[0]:,} users x {self.shape[1]:,} items)"

    def _repr_html_(self) -> str:
        report = self.report
        facts = {
            "method": report.method,
            "grid": f"{self.shape[0]:,} users x {self.shape[1]:,} items",
            "trained": f"epoch {report.best_epoch} of {len(report.history)} is kept: {report.stopped_because}",
        }
        if report.validation_estimator is not None:
            facts["validation error"] = f"{report.validation_error:.4f} by {report.validation_estimator}"
        return html_table("A trained recommender", facts)

    @property
    def shape(self) -> tuple[int, int]:
        """The grid's size."""
        return len(self.user_ids), len(self.item_ids)

    @property
    def predictions(self) -> Any:
        """Probabilities of all pairs, stars or chances of levels, by position, as `verirec.estimate` takes them."""
        return marked(self.head.predictions(self.model, self.shape, curve=self.calibration), self.trained_on)

    def predictions_for(self, log: FeedbackLog) -> Any:
        """Return the predictions on another log's grid, by id; what the model does not know is predicted as cold."""
        checked_log(log, levels=True)
        if log.user_ids == self.user_ids and log.item_ids == self.item_ids:
            return self.predictions
        places = [
            known.find(ids.arrow(), name=side)
            for side, known, ids in (
                ("users", self.user_ids, log.user_ids),
                ("items", self.item_ids, log.item_ids),
            )
        ]
        unknown = [int((place < 0).sum()) for place in places]
        model = self.model
        if any(unknown):
            cold = (torch.as_tensor(np.flatnonzero(mask)) for mask in (self.cold_users, self.cold_items))
            model = model.with_strangers(*cold)
            places = [np.where(place < 0, size, place) for place, size in zip(places, self.shape, strict=True)]
            warn_caller(
                f"the model does not know {unknown[0]:,} of the log's users and {unknown[1]:,} of its items: they are "
                "predicted from what all have in common",
                ColdStartWarning,
            )
        found = self.head.predictions(model, self.shape, (places[0], places[1]), self.calibration)
        return marked(found, self.trained_on)

    def predict(self, users: Any, items: Any, *, clip: bool = False) -> npt.NDArray[np.float64]:
        """Return the probability that each user likes each item, by id: shapes (n,), result (n,).

        Of a model of levels, the stars that each user gives each item: those of head="stars" may lie outside of the
        scale, and are kept inside with `clip`; those of head="ordinal" are means. Users and items without ratings are
        predicted from what all have in common, with a warning.
        """
        clip = truth_value("clip", clip)
        found = self.head.values(self._scores(users, items))
        levels = self.head.levels
        return np.clip(found, levels[0], levels[-1]) if clip and levels is not None else found

    def predict_distribution(self, users: Any, items: Any) -> npt.NDArray[np.float64]:
        """Return the chance of each level of each pair, by id: shapes (n,), result (n, K); for head="ordinal"."""
        if not isinstance(self.head, OrdinalHead):
            raise ParameterError(
                f"a distribution over levels needs a model of head='ordinal'; this one has {self.head.name!r}"
            )
        return np.ascontiguousarray(self.head.chances(self._scores(users, items)).T)

    def _scores(self, users: Any, items: Any) -> npt.NDArray[np.float64]:
        """Return the model's scores of pairs, by id, level and slope put right."""
        rows = self.user_ids.positions(users, name="users"), self.item_ids.positions(items, name="items")
        if len(rows[0]) != len(rows[1]):
            raise ParameterError(f"users and items must have one length; got {len(rows[0])} and {len(rows[1])}")
        self._warn_of_cold(np.unique(rows[0]), np.unique(rows[1]))
        return np.asarray(levelled_cells(score_cells(self.model, self.shape), self.calibration).cell_logits(*rows))

    def recommend(self, users: Any, k: int = 10, *, exclude: FeedbackLog | None = None) -> Recommendations:
        """Return each user's k best items, best first.

        Parameters
        ----------
        users
            Ids, shape (n,).
        k
            How many; no more than there are items. A user with fewer left has the rest blank.
        exclude
            Pairs of this log are left out: what a user has rated already.
        """
        positions = self.user_ids.positions(users, name="users")
        k = whole_number("k", k, min=1)
        if k > len(self.item_ids):
            raise ParameterError(f"k must be at most the number of items, {len(self.item_ids):,}; got {k:,}")
        self._warn_of_cold(np.unique(positions), np.empty(0, np.int64))
        items, scores = top_items(
            self.model, positions, len(self.item_ids), k, rated_pairs(exclude, self.user_ids, self.item_ids)
        )
        if self.calibration is not None:
            found = items >= 0
            scores[found] = self.calibration.logits(scores[found].astype(np.float64))
        if self.head.levels is None:
            return Recommendations(self.user_ids.ids(positions), self.item_ids, items, scores)
        found = items >= 0
        scores[found] = self.head.values(scores[found].astype(np.float64))
        return Recommendations(self.user_ids.ids(positions), self.item_ids, items, scores, "stars")

    def similar_items(self, item: Any, k: int = 10) -> Recommendations:
        """Return the k items most like one, by the cosine of their factors; itself is left out."""
        factors = getattr(self.model, "item_factors", None)
        if factors is None:
            raise ParameterError(f"similar items need a model with item factors; {type(self.model).__name__} has none")
        position = int(self.item_ids.positions([item], name="item")[0])
        k = whole_number("k", k, min=1)
        if k > len(self.item_ids) - 1:
            raise ParameterError(f"k must be at most the number of other items, {len(self.item_ids) - 1:,}; got {k:,}")
        self._warn_of_cold(np.empty(0, np.int64), np.array([position]))
        unit = factors.detach().numpy()
        unit = unit / np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-12)
        cosines = unit @ unit[position]
        cosines[position] = -np.inf
        best = np.argsort(-cosines, kind="stable")[:k]
        return Recommendations(np.array([item]), self.item_ids, best[None, :], cosines[best][None, :], "cosine")

    def calibrated(
        self,
        survey: SurveySample,
        *,
        exclude: FeedbackLog | None = None,
        noise_rates: NoiseRates | GroupedNoiseRates | None = None,
    ) -> Recommender:
        r"""Return the same recommender with its level and slope put right by true labels of random pairs.

        What people chose to rate, and wrong labels, shift and flatten the logits z of any model that is trained on
        them. :math:`\sigma(b + a (z - m))` puts that right, with a and b by maximum likelihood under a prior around
        what the model says itself: see `verirec.estimation.curves.levelled_curve`. The order of items stays.

        Parameters
        ----------
        survey
            Pairs by the positions of this recommender's ids, weighted by how likely each was to be drawn; one that was
            asked about several times counts once. One class tells the level alone, with a warning. Both must be worth
            10 pairs (`SurveySample.worth`); below 100 a warning says that it may do harm.
        exclude
            Surveyed pairs of this log are left out: those it was trained on, of which it is surer than of others.
        noise_rates
            To correct the labels of a noisy survey with; by default the recommender's own.

        Examples
        --------
        >>> import verirec as vr
        >>> world = vr.simulate.world(60, 40, observed=0.3, selectivity=2.0, random_state=0)
        >>> recommender = vr.methods.MF(epochs=3).fit(world.log).recommender_
        >>> users, items = np.divmod(np.random.default_rng(0).permutation(2_400)[:300], 40)
        >>> survey = vr.SurveySample(users, items, world.true_labels[users, items])
        >>> better = recommender.calibrated(survey, exclude=world.log)
        >>> bool(better.predict([0], [0])[0] < recommender.predict([0], [0])[0])
        True
        """
        rates = self.noise_rates if noise_rates is None else noise_rates
        if self.head.levels is not None or isinstance(rates, TransitionMatrix):
            raise ParameterError(f"level and slope are put right of 0/1 labels; this model has head={self.head.name!r}")
        rated = rated_pairs(exclude, self.user_ids, self.item_ids)
        return replace(self, calibration=level_of(self.model, self.shape, survey, rated, rates))

    def fold_in(self, ratings: FeedbackLog) -> Recommender:
        """Return a recommender of the users of other ratings, by id, without training again.

        Their own factors and constants are fitted to these ratings alone, given the items' and under the same
        penalties (`verirec.training.folding.fold_in`); labels are corrected for noise where the model's were. Features
        come with the ratings, and are average where they do not; a level that was not there in training has no weight,
        with a warning. Rows of items that the model does not know are left out, with a warning.

        Examples
        --------
        >>> import verirec as vr
        >>> world = vr.simulate.world(60, 40, observed=0.3, random_state=0)
        >>> recommender = vr.methods.MF(epochs=3).fit(world.log).recommender_
        >>> new = vr.FeedbackLog.from_arrays([0, 0], [3, 8], [1, 0], n_users=1, n_items=40, user_ids=["ann"])
        >>> recommender.fold_in(new).recommend(["ann"], k=5, exclude=new).items.shape
        (1, 5)
        """
        check_scale("the ratings", checked_log(ratings, levels=True).levels, self.head.levels)
        rows, items = rows_of_known_items(ratings, self.item_ids)
        rates = self.noise_rates if self.report.trained_with["correction"] != "none" else None
        features = None
        if ratings.user_features is not None and self.user_scale is not None:
            features = self.user_scale.align(ratings.user_features, ratings.user_feature_names, "user_features")
        penalties = self.report.trained_with | {"penalty_factors": self.report.penalty_factors}
        model = fold_in(self.model, rows, items, self.cold_users, penalties, rates, features, self.head)
        cold = np.bincount(rows.users, minlength=rows.n_users) == 0
        return replace(self, model=model, user_ids=ratings.user_ids, cold_users=cold, trained_on=PairSketch.of(ratings))

    def _warn_of_cold(self, users: npt.NDArray[Any], items: npt.NDArray[Any]) -> None:
        counts = int(self.cold_users[users].sum()), int(self.cold_items[items].sum())
        if any(counts):
            warn_caller(
                f"{counts[0]:,} of these users and {counts[1]:,} of these items had no ratings to learn from: they are "
                "predicted from what all have in common, and from features",
                ColdStartWarning,
            )

    def save(self, folder: str | Path) -> Path:
        """Save it: tensors in model.safetensors, ids and the rest in model.json; nothing is pickled."""
        facts = asdict(self.report) | {
            "user_ids": self.user_ids.ids().tolist(),
            "item_ids": self.item_ids.ids().tolist(),
            "noise_rates": plain_rates(self.noise_rates),
            "calibration": None if self.calibration is None else asdict(self.calibration),
            "user_scale": None if self.user_scale is None else self.user_scale.plain(),
            "head": self.head.plain(),
            "trained_on": None if self.trained_on is None else self.trained_on.plain(),
            "validation_error": self.report.validation_error if np.isfinite(self.report.validation_error) else None,
        }
        masks = {name: torch.as_tensor(getattr(self, name)) for name in ("cold_users", "cold_items")}
        return write_model(folder, self.model, masks, facts)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Load what `save` wrote; what was changed since, or is of another version, is a `ModelFileError`."""
        return cls(*read_recommender(folder))


def load(folder: str | Path) -> Recommender:
    """Load a recommender that `save` wrote: see `Recommender.load`."""
    return Recommender.load(folder)
