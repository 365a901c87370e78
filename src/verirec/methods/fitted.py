"""What a fitted recommender can do: predict, recommend, find similar items, be saved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_array

from verirec.checks import whole_number
from verirec.data.cells import CellValues, Positions
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.data.ids import IdMap
from verirec.data.predictions import Factors
from verirec.exceptions import ColdStartWarning, NotFittedError, ParameterError, warn_caller
from verirec.losses import GroupedNoiseRates, NoiseRates
from verirec.methods.top import Recommendations, top_items
from verirec.models import FactorModel, Model
from verirec.nuisance.propensities import Propensities
from verirec.training.cells import ModelCells
from verirec.training.loop import Outcome

if TYPE_CHECKING:
    from verirec.training.learner import Learner
    from verirec.training.losses import Plain
    from verirec.training.task import Task


class Fitted:
    """The fitted side of a method; all of it is there after `fit`, or after `verirec.load`.

    Attributes
    ----------
    model_
        The trained `torch.nn.Module`.
    models_
        All that was trained, by name: "prediction" is `model_`, in its best state, the others as the last epoch left
        them; not kept by `save`.
    user_ids_, item_ids_
        Ids by position.
    noise_rates_
        Given, audited, or as training left them; `None` for none. Methods that do not correct for noise were judged
        with them.
    solver_
        "sweep" or "gradient": what it was trained by.
    parameters_
        Plain parameters at the time of training.
    propensities_
        Of the whole log; not kept by `save`.
    history_, stopped_because_, best_epoch_, held_out_error_, judge_
        One entry an epoch, why training stopped, the epoch whose state was kept, its held-out error, and the estimator
        of that (`None` without held-out rows). It is of few rows, too rough to choose methods by: `estimate` on a
        held-out log has an interval.
    cold_users_, cold_items_
        True where there was no rating to learn from.
    """

    name: ClassVar[str]
    model_: Model
    models_: dict[str, Model]
    parameters_: dict[str, Any]
    user_ids_: IdMap
    item_ids_: IdMap
    noise_rates_: NoiseRates | GroupedNoiseRates | None
    propensities_: Propensities | None
    history_: list[dict[str, Any]]
    stopped_because_: str
    best_epoch_: int
    held_out_error_: float
    judge_: str | None
    solver_: str
    cold_users_: npt.NDArray[np.bool_]
    cold_items_: npt.NDArray[np.bool_]
    prediction_: Learner
    errors_: Plain
    task_: Task

    def learners(self) -> dict[str, Learner]:
        """Return all that is trained, by name."""
        raise NotImplementedError

    def _forget(self) -> None:
        """Let go of what an earlier fit left."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def _remember(self, log: FeedbackLog, trained_on: FeedbackLog, propensities: Propensities) -> None:
        self.user_ids_, self.item_ids_, self.propensities_ = log.user_ids, log.item_ids, propensities
        self.cold_users_ = np.bincount(trained_on.users, minlength=log.n_users) == 0
        self.cold_items_ = np.bincount(trained_on.items, minlength=log.n_items) == 0

    def _finish(self, outcome: Outcome) -> None:
        """Keep the models and how they came about; optimisers and the task's tensors are let go of."""
        self.model_ = self.prediction_.model.cpu().eval()
        self.models_ = {name: learner.model.cpu().eval() for name, learner in self.learners().items()}
        self.model_.forget_cold(*(side.cpu() for side in self.task_.cold))
        for parameter in (one for model in self.models_.values() for one in model.parameters()):
            parameter.grad, parameter.data = None, parameter.data.contiguous()
        self.history_, self.stopped_because_ = outcome.history, outcome.reason
        self.best_epoch_, self.held_out_error_ = outcome.best_epoch, outcome.best_value
        for name in ("task_", "errors_", "side_", *(f"{name}_" for name in self.models_)):
            delattr(self, name)
        for name in ("sweeper_", "pairings_"):
            vars(self).pop(name, None)

    @property
    def shape_(self) -> tuple[int, int]:
        """The grid's size."""
        self._require_fitted()
        return len(self.user_ids_), len(self.item_ids_)

    def _require_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise NotFittedError(f"this {type(self).__name__} is not trained yet: call fit first")

    @property
    def predictions(self) -> Any:
        """Probabilities of all pairs, by position, as `verirec.estimate` takes them."""
        self._require_fitted()
        if isinstance(self.model_, FactorModel):
            return _as_factors(self.model_)
        return ModelCells(self.model_, self.shape_)

    def predictions_for(self, log: FeedbackLog) -> Any:
        """Return the predictions on another log's grid, by id; what the model does not know is predicted as cold."""
        self._require_fitted()
        checked_log(log)
        if log.user_ids == self.user_ids_ and log.item_ids == self.item_ids_:
            return self.predictions
        places = [
            known.find(ids.arrow(), name=side)
            for side, known, ids in (
                ("users", self.user_ids_, log.user_ids),
                ("items", self.item_ids_, log.item_ids),
            )
        ]
        unknown = [int((place < 0).sum()) for place in places]
        if any(unknown):
            warn_caller(
                f"the model does not know {unknown[0]:,} of the log's users and {unknown[1]:,} of its items: they are "
                "predicted from what all have in common",
                ColdStartWarning,
            )
        own = self.predictions
        if isinstance(own, Factors):
            return _at_places(own, *places)
        if any(unknown):
            raise ParameterError(f"a {type(self.model_).__name__} cannot predict users or items that it has not seen")
        return _MovedCells(own, *places)

    def predict(self, users: Any, items: Any) -> npt.NDArray[np.float64]:
        """Return the probability that each user likes each item, by id: shapes (n,), result (n,).

        Users and items without ratings are predicted from what all have in common, with a warning.
        """
        self._require_fitted()
        rows = self.user_ids_.positions(users, name="users"), self.item_ids_.positions(items, name="items")
        if len(rows[0]) != len(rows[1]):
            raise ParameterError(f"users and items must have one length; got {len(rows[0])} and {len(rows[1])}")
        self._warn_of_cold(np.unique(rows[0]), np.unique(rows[1]))
        return np.asarray(ModelCells(self.model_, self.shape_).at(*rows))

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
        self._require_fitted()
        positions = self.user_ids_.positions(users, name="users")
        k = whole_number("k", k, min=1)
        if k > len(self.item_ids_):
            raise ParameterError(f"k must be at most the number of items, {len(self.item_ids_):,}; got {k:,}")
        self._warn_of_cold(np.unique(positions), np.empty(0, np.int64))
        items, scores = top_items(self.model_, positions, len(self.item_ids_), k, self._rated(exclude))
        return Recommendations(self.user_ids_.ids(positions), self.item_ids_, items, scores)

    def _rated(self, exclude: FeedbackLog | None) -> csr_array | None:
        if exclude is None:
            return None
        checked_log(exclude)
        same = exclude.user_ids == self.user_ids_ and exclude.item_ids == self.item_ids_
        users, items = exclude.users, exclude.items
        if not same:
            users = self.user_ids_.find(exclude.user_ids.arrow())[users]
            items = self.item_ids_.find(exclude.item_ids.arrow())[items]
            known = (users >= 0) & (items >= 0)
            users, items = users[known], items[known]
        return csr_array((np.ones(len(users), bool), (users, items)), shape=self.shape_)

    def similar_items(self, item: Any, k: int = 10) -> Recommendations:
        """Return the k items most like one, by the cosine of their factors; itself is left out."""
        self._require_fitted()
        factors = getattr(self.model_, "item_factors", None)
        if factors is None:
            raise ParameterError(f"similar items need a model with item factors; {type(self.model_).__name__} has none")
        position = int(self.item_ids_.positions([item], name="item")[0])
        k = whole_number("k", k, min=1)
        if k > len(self.item_ids_) - 1:
            raise ParameterError(f"k must be at most the number of other items, {len(self.item_ids_) - 1:,}; got {k:,}")
        self._warn_of_cold(np.empty(0, np.int64), np.array([position]))
        unit = factors.detach().numpy()
        unit = unit / np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-12)
        cosines = unit @ unit[position]
        cosines[position] = -np.inf
        best = np.argsort(-cosines, kind="stable")[:k]
        return Recommendations(np.array([item]), self.item_ids_, best[None, :], cosines[best][None, :])

    def _warn_of_cold(self, users: npt.NDArray[Any], items: npt.NDArray[Any]) -> None:
        counts = int(self.cold_users_[users].sum()), int(self.cold_items_[items].sum())
        if any(counts):
            warn_caller(
                f"{counts[0]:,} of these users and {counts[1]:,} of these items had no ratings to learn from: they are "
                "predicted from constants and features alone",
                ColdStartWarning,
            )

    def save(self, folder: str | Path) -> Path:
        """Save the trained model: tensors in model.safetensors, ids and the rest in model.json; nothing is pickled."""
        from verirec.methods.saving import save_method

        self._require_fitted()
        return save_method(self, Path(folder))  # type: ignore[arg-type]


class _MovedCells(CellValues):
    """Values on another grid, whose positions stand for these."""

    parallel = False

    def __init__(self, cells: CellValues, users: npt.NDArray[np.int32], items: npt.NDArray[np.int32]) -> None:
        self.own, self.users, self.items, self.shape = cells, users, items, (len(users), len(items))

    def cells(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        return self.own.cells(self.users[users], self.items[items])

    def cell_logits(self, users: Positions, items: Positions) -> npt.NDArray[Any] | None:
        return self.own.cell_logits(self.users[users], self.items[items])


def _at_places(factors: Factors, users: npt.NDArray[np.int32], items: npt.NDArray[np.int32]) -> Factors:
    """Take factors and constants at places; zeros where there is none (-1)."""

    def taken(values: Any, places: npt.NDArray[np.int32]) -> npt.NDArray[Any]:
        found = np.asarray(values)[np.maximum(places, 0)]
        found[places < 0] = 0
        return found

    return Factors(
        taken(factors.user_factors, users),
        taken(factors.item_factors, items),
        taken(factors.user_constants, users),
        taken(factors.item_constants, items),
        factors.constant,
        factors.link,
    )


def _as_factors(model: FactorModel) -> Factors:
    """Return a factor model as its factors: features are folded in."""
    with torch.no_grad():
        n_users, n_items = model.shape
        users, items = torch.zeros(n_users, 0), torch.zeros(n_items, 0)
        if model.dim:
            users, items = model.user_factors, model.item_factors
        if model.user_features is not None and model.item_features is not None:
            users = torch.cat([users, model.user_features @ model.interactions], 1)
            items = torch.cat([items, model.item_features], 1)
        return Factors(
            users.numpy().copy(),
            items.numpy().copy(),
            model.of_users().numpy().copy() if model.has_user_part else None,
            model.of_items().numpy().copy() if model.has_item_part else None,
            float(model.constant) if model.constants else 0.0,
        )
