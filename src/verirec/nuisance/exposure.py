r"""What people chose to rate, as covariates of a pair: how likely it was to be rated, with the pair itself left out.

Two models of the 0/1 matrix X of rated pairs, both from positions alone. `RatingLogits`: the logit of a logistic
propensity. `CoRatings`: which items are rated together, EASE (Steck 2019): each item's column regressed on all others,
with a ridge :math:`\lambda`,

.. math:: s_{ui} = \sum_{j \ne i} x_{uj} B_{ji}, \quad B_{ji} = -P_{ji} / P_{ii}, \quad P = (X^\top X + \lambda I)^{-1}.

A row that is trained on was rated, and the model was fitted to that: its value is too high by the row's own leverage.
A pair's covariate is what it would be had the pair not been rated, :math:`\eta_{ui} - x_{ui}\, h_{ui}`, where
:math:`h = d\eta / dx` is the leverage: exact in EASE, whose column i knows :math:`x_{ui}` as a target alone, and one
Newton step in the logistic model. Trained rows and all other pairs then have covariates of one kind.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np
import numpy.typing as npt

from verirec.data.cells import CellValues, FactorCells, Positions
from verirec.data.feedback_log import FeedbackLog
from verirec.data.pair_keys import row_starts
from verirec.data.parts import parts_of
from verirec.nuisance.propensities.two_way import fit_two_way
from verirec.nuisance.propensities.with_features import fit_with_features

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Array = npt.NDArray[Any]

RIDGE: Final = 300.0
"""Of the item-item model. Chosen by looking at test AUC on Coat, MovieLens, KuaiRec and simulated logs, one to three
seeds each: within .0013 of the best of 10 to 3,000 on all of them."""
MOST_ITEMS: Final = 4_096
"""Of larger catalogues, the items that were rated most often: a matrix of 64 MB."""
MOST_CELLS: Final = 1 << 22
"""Grids that are visited whole, some forty times, to learn what features have to do with being rated."""
_CLOSE: Final = 1e-4
"""A gradient this small ends that: the logits correlate .9999999 with the exact ones."""
_FURTHEST: Final = 10.0
"""Constants of those who rated everything have no other end."""
_ROUNDING: Final = 1e-5
"""What is left of a matrix of float32."""
_AT_ONCE: Final = 1 << 20
"""Products that are worked out at a time."""


class ExposureCovariate(CellValues):
    """A covariate of pairs that is learnt from which pairs were rated: mean 0 and spread 1 over the rated ones.

    Parameters
    ----------
    rated
        Which pairs were, shape (n_users, n_items).
    arrays
        What it is made of, by name; `mean` and `spread` come with `fitted`.
    """

    name: ClassVar[str]

    def __init__(self, rated: csr_array, arrays: dict[str, Array]) -> None:
        self.rated, self.arrays = rated, arrays
        self.shape = (rated.shape[0], rated.shape[1])

    @classmethod
    @abstractmethod
    def fit(cls, log: FeedbackLog) -> ExposureCovariate:
        """Learn it from a log's positions; its labels do not matter."""

    @classmethod
    def read(cls, rated: csr_array, arrays: dict[str, Array]) -> Self:
        """Make it of arrays that come from a file; those of other shapes are a `ValueError`."""
        found = cls(rated, arrays)
        for name, shape in (found.shapes() | {"scale": (2,)}).items():
            if arrays[name].shape != shape:
                raise ValueError(f"{cls.name} {name} must have shape {shape}; got {arrays[name].shape}")
        return found

    @abstractmethod
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return what shape each of its arrays must have."""

    @abstractmethod
    def raw(self, users: Positions, items: Positions, rated: Array) -> Array:
        """Return the values of pairs or of a rectangle, as if none of them had been rated."""

    @property
    @abstractmethod
    def known_items(self) -> npt.NDArray[np.bool_]:
        """Items that it has something to say about, shape (n_items,)."""

    @property
    @abstractmethod
    def known_users(self) -> npt.NDArray[np.bool_]:
        """Users who rated something of that, shape (n_users,)."""

    def standardised(self, log: FeedbackLog) -> Self:
        """Return it with mean 0 and spread 1 over a log's rows."""
        values = self._raw(log.users, log.items)[self.known_items[log.items]]
        spread = float(values.std()) if len(values) else 0.0
        mean = float(values.mean()) if len(values) else 0.0
        # Of rounding errors alone, where nothing sets pairs apart, nothing is made.
        scale = spread if spread > _ROUNDING * abs(mean) else np.inf
        return type(self)(self.rated, self.arrays | {"scale": np.array([mean, scale])})

    def cells(self, users: Positions, items: Positions) -> Array:
        """Return the values; 0, which is average, where a user rated nothing or nobody rated the item."""
        mean, scale = self.arrays["scale"]
        known = self.known_users[users] & self.known_items[items]
        return np.where(known, (self._raw(users, items) - mean) / scale, 0.0)

    def _raw(self, users: Positions, items: Positions) -> Array:
        if users.ndim == 2 and users.shape[1] == 1 and items.shape[0] == 1:
            rated = self.rated[users[:, 0]][:, items[0]].toarray()
            return self.raw(users, items, rated)
        users, items = np.broadcast_arrays(users, items)
        asked = users.astype(np.int64) * self.shape[1] + items
        place = np.minimum(np.searchsorted(self._keys, asked), len(self._keys) - 1)
        rated = self._keys[place] == asked
        if rated.all() and 4 * rated.size > len(self._keys):
            return np.asarray(self._of_rated[place])
        return self.raw(users, items, rated.astype(np.float64))

    @cached_property
    def _of_rated(self) -> Array:
        """The values of all rated pairs, which every fit on these rows asks for."""
        users, items = np.divmod(self._keys, self.shape[1])
        return self.raw(users, items, np.ones(len(users)))

    @cached_property
    def _keys(self) -> npt.NDArray[np.int64]:
        """Rated pairs, by number, in ascending order."""
        users = np.repeat(np.arange(self.shape[0], dtype=np.int64), np.diff(self.rated.indptr))
        return np.asarray(users * self.shape[1] + self.rated.indices)


class RatingLogits(ExposureCovariate):
    """The logit of a logistic propensity, with features where the log has some of both sides."""

    name = "propensity"

    @classmethod
    def fit(cls, log: FeedbackLog) -> RatingLogits:
        """Learn it from a log's positions; features are left aside where the grid is too large to visit."""
        has_features = log.user_features is not None and log.item_features is not None
        with_features = has_features and log.n_cells <= MOST_CELLS
        logits, leverage = _with_features(log) if with_features else _two_way(log)
        arrays = {f"logit_{name}": value for name, value in _parts(logits).items()}
        arrays |= {f"leverage_{name}": value for name, value in _parts(leverage).items()}
        return cls(rated_pairs(log), arrays).standardised(log)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return factors of one width on both sides, and constants."""
        found: dict[str, tuple[int, ...]] = {}
        for what in ("logit", "leverage"):
            width = self.arrays[f"{what}_user_factors"].shape[1]
            sizes = [(size, width) for size in self.shape] + [(size,) for size in self.shape]
            found |= {f"{what}_{name}": size for name, size in zip(_PARTS, sizes, strict=True)}
        return found

    @cached_property
    def known_users(self) -> npt.NDArray[np.bool_]:
        """Users who rated something."""
        return np.asarray(np.diff(self.rated.indptr) > 0)

    @cached_property
    def known_items(self) -> npt.NDArray[np.bool_]:
        """Items that somebody rated."""
        return np.bincount(self.rated.indices, minlength=self.shape[1]) > 0

    @cached_property
    def _cells(self) -> tuple[FactorCells, FactorCells]:
        return self._made("logit"), self._made("leverage")

    def _made(self, what: str) -> FactorCells:
        users, items, of_users, of_items = (self.arrays[f"{what}_{name}"] for name in _PARTS)
        return FactorCells(users, items, of_users, of_items)

    def raw(self, users: Positions, items: Positions, rated: Array) -> Array:
        """Add up the parts; of rated pairs, their own leverage is taken off."""
        logits, leverage = self._cells
        found = logits.cells(users, items)
        return np.asarray(found - rated * leverage.cells(users, items)) if rated.any() else found


def _with_features(log: FeedbackLog) -> tuple[FactorCells, FactorCells]:
    fitted = fit_with_features(log, l2=1.0, tolerance=_CLOSE)
    return fitted.logits, fitted.leverages


def _two_way(log: FeedbackLog) -> tuple[FactorCells, FactorCells]:
    counts = np.bincount(log.users, minlength=log.n_users), np.bincount(log.items, minlength=log.n_items)
    fitted = fit_two_way(*counts)
    constants = fitted.user_constants[fitted.users.code], fitted.item_constants[fitted.items.code]
    none = np.zeros((log.n_users, 0)), np.zeros((log.n_items, 0))
    users, items = (np.clip(side, -_FURTHEST, _FURTHEST) for side in constants)
    of_users, of_items = fitted.information()
    return FactorCells(*none, users, items), FactorCells(*none, 1 / of_users, 1 / of_items)


_PARTS: Final = ("user_factors", "item_factors", "user_constants", "item_constants")


def _parts(cells: FactorCells) -> dict[str, Array]:
    return {name: np.asarray(getattr(cells, name), dtype=np.float64) for name in _PARTS}


class CoRatings(ExposureCovariate):
    """How well an item goes with all others that a user rated: EASE of the 0/1 matrix of rated pairs."""

    name = "co-rating"

    @classmethod
    def fit(cls, log: FeedbackLog, ridge: float = RIDGE, most_items: int = MOST_ITEMS) -> CoRatings:
        """Learn it from a log's positions, in closed form.

        Parameters
        ----------
        log
            Whose labels do not matter.
        ridge
            :math:`\\lambda`.
        most_items
            Of larger catalogues, so many of the most rated items are kept: all others have the value 0.

        Examples
        --------
        >>> log = FeedbackLog.from_arrays([0, 0, 1, 1, 2], [0, 1, 0, 1, 0], [1, 0, 1, 1, 0], n_users=3, n_items=3)
        >>> found = CoRatings.fit(log, ridge=1.0).at([2, 2], [1, 2])
        >>> bool(found[0] > 0), float(found[1])  # whoever rates item 0 rates item 1; nobody rated item 2
        (True, 0.0)
        """
        rated = rated_pairs(log)
        counts = np.bincount(log.items, minlength=log.n_items)
        kept = np.sort(np.argsort(-counts, kind="stable")[: min(most_items, int((counts > 0).sum()))])
        own = rated[:, kept]
        precision = np.empty((len(kept), len(kept)))
        columns = own.T.tocsr()
        for part in parts_of(len(kept), size=max(1, _AT_ONCE // max(1, len(kept)))):
            precision[part] = (columns[part] @ own).toarray()
        precision[np.diag_indices_from(precision)] += ridge
        precision = np.linalg.inv(precision).astype(np.float32)
        norms = _row_norms(own, precision)
        arrays = {"kept": kept.astype(np.int64), "precision": precision, "norms": norms}
        return cls(rated, arrays).standardised(log)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return a square of the kept items, and a number a user."""
        kept = len(self.arrays["kept"])
        return {"kept": (kept,), "precision": (kept, kept), "norms": (self.shape[0],)}

    @cached_property
    def places(self) -> npt.NDArray[np.int64]:
        """Where each item is among those kept; -1 for the others."""
        places = np.full(self.shape[1], -1)
        places[self.arrays["kept"]] = np.arange(len(self.arrays["kept"]))
        return places

    @cached_property
    def known_users(self) -> npt.NDArray[np.bool_]:
        """Users who rated some of the items that are kept."""
        return np.asarray(self.arrays["norms"] > 0)

    @cached_property
    def known_items(self) -> npt.NDArray[np.bool_]:
        """Items that are kept."""
        return self.places >= 0

    @cached_property
    def _own(self) -> csr_array:
        return self.rated[:, self.arrays["kept"]].astype(np.float32)

    def raw(self, users: Positions, items: Positions, rated: Array) -> Array:
        r"""Return scores as if the pairs had not been rated.

        With :math:`q = x_u^\top P`, all of it with :math:`x_{ui}` left out,
        :math:`s = -q_i / P_{ii}` and :math:`h = x_u^\top P x_u - q_i^2 / P_{ii}`.
        """
        places = np.maximum(self.places[items], 0)
        diagonal = self.arrays["precision"].diagonal().astype(np.float64)[places]
        rated = rated * self.known_items[items]
        whole = self._products(users, places)
        without = whole - rated * diagonal
        scores = -without / diagonal
        if not rated.any():
            return np.asarray(scores)
        leverage = self.arrays["norms"][users] - rated * (2 * whole - diagonal) - without**2 / diagonal
        return np.asarray(scores - rated * leverage)

    def _products(self, users: Positions, places: Positions) -> Array:
        """Return x_u P at kept items: of a rectangle by a product, of pairs by what costs less."""
        precision, own = self.arrays["precision"], self._own
        if users.ndim == 2 and users.shape[1] == 1:
            return np.asarray(own[users[:, 0]] @ precision[:, places[0]], dtype=np.float64)
        flat, wanted = users.ravel(), places.ravel()
        counts = np.diff(own.indptr)
        found = np.empty(len(flat))
        asked, whose = np.unique(flat, return_inverse=True)
        if counts[asked].sum() * len(precision) < 8 * counts[flat].sum():
            for part in parts_of(len(asked), size=max(1, _AT_ONCE // max(1, len(precision)))):
                here = (whose >= part.start) & (whose < part.stop)
                rows = own[asked[part]] @ precision
                found[here] = rows[whose[here] - part.start, wanted[here]]
            return found.reshape(users.shape)
        ends = np.concatenate([[0], np.cumsum(counts[flat])])
        for start, stop in _stretches(ends):
            found[start:stop] = _gathered(own, precision, flat[start:stop], wanted[start:stop])
        return found.reshape(users.shape)


def _stretches(ends: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """Part pairs so that each part needs at most about so many products."""
    cuts = np.searchsorted(ends, np.arange(0, ends[-1] + _AT_ONCE, _AT_ONCE))
    edges = np.unique(np.concatenate([[0], np.minimum(cuts, len(ends) - 1), [len(ends) - 1]]))
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))


def _gathered(own: csr_array, precision: Array, users: Array, items: Array) -> Array:
    """Add up, for each pair, P at the items that its user rated."""
    counts = np.diff(own.indptr)[users]
    pair = np.repeat(np.arange(len(users)), counts)
    within = np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts)
    others = own.indices[own.indptr[users][pair] + within]
    return np.bincount(pair, precision[others, items[pair]], len(users))


def _row_norms(own: csr_array, precision: Array) -> Array:
    """Return x_u P x_u of each user."""
    norms = np.empty(own.shape[0])
    for part in parts_of(own.shape[0], size=max(1, _AT_ONCE // max(1, own.shape[1]))):
        rows = own[part]
        norms[part] = rows.multiply(rows @ precision).sum(axis=1)
    return norms


def rated_pairs(log: FeedbackLog) -> csr_array:
    """Return the 0/1 matrix of a log's pairs, shape (n_users, n_items), its rows in order."""
    from scipy.sparse import csr_array  # Takes long to import, and only training needs it.

    starts = row_starts(log.users, log.n_users)
    if len(log) < 2**31:
        starts = starts.astype(np.int32)  # As the items are: others would have these copied to theirs.
    return csr_array((np.ones(len(log), np.float32), log.items, starts), shape=log.shape)
