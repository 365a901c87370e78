"""Propensities of a grid's cells: the one place that owns their floor, and says what it did."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from verirec.checks import real_number
from verirec.data.cells import CellValues, Positions
from verirec.data.feedback_log import FeedbackLog, checked_log
from verirec.data.grid import Grid
from verirec.data.parts import SHORT, parts_of
from verirec.exceptions import PropensityError
from verirec.nuisance.propensities.diagnostics import PropensityDiagnostics, diagnose

Array = npt.NDArray[np.float64]


class VarianceChange(Protocol):
    """What estimating propensities adds to the variances of estimates: from sums over a log's rows, in parts."""

    def of_part(self, at: slice, slopes: Array | None, influence: Array) -> Any:
        """Return the sums of some rows, from slopes and influence of an estimate, shape (m,).

        Slopes of `None` are minus the influence: so they are of whatever counts a row by 1/p and by nothing else.
        """
        ...

    def of_sums(self, parts: Iterator[list[Any]], count: int) -> Array:
        """Take the sums of all parts, in order, one for each of k estimates, and return their changes, shape (k,)."""
        ...


class NoChange:
    """Of propensities that nobody estimated."""

    def of_part(self, at: slice, slopes: Array | None, influence: Array) -> None:
        """There is nothing to add up."""

    def of_sums(self, parts: Iterator[list[Any]], count: int) -> Array:
        """Return zeros."""
        for _ in parts:
            pass
        return np.zeros(count)


def parts_for_change(log: FeedbackLog) -> int:
    """Return how many rows to take at a time: sums by item of fewer would take longer than the rows themselves."""
    return max(SHORT, 2 * log.n_items)


class PropensityModel(Protocol):
    """Something that estimates propensities from a log."""

    def fit(self, log: FeedbackLog) -> Propensities:
        """Estimate the propensities of all pairs from which pairs were logged."""
        ...


class Propensities(CellValues):
    """P(o = 1) of each pair, never below a floor.

    A subclass writes `unfloored`; `at` and `block` give what estimators use.

    Parameters
    ----------
    shape
        The grid's (n_users, n_items).
    floor
        Propensities below it are raised to it, which bounds the weights at 1/floor; 0 leaves them alone.
    """

    known_everywhere: ClassVar[bool] = True
    """False for those that are known on observed pairs only; asking for others is a `PropensityError`."""
    known: ClassVar[bool] = False
    """True for those that somebody declares to be right, such as what the logging system wrote down."""
    depends_on_label: ClassVar[bool] = False
    """True where what was said decides what gets logged: then an audit of logged pairs has to be weighted too."""
    assumption: ClassVar[str] = "pairs are as likely to be logged as the propensities given say"
    """What must hold for estimates with these to be right, as the end of a sentence."""

    def __init__(self, shape: tuple[int, int], floor: float = 0.0) -> None:
        self.shape = shape
        self.floor = real_number("floor", floor, above=0, below=1, closed=True)

    @abstractmethod
    def unfloored(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        """Return the propensities before the floor, at positions that broadcast together."""

    def cells(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        """Return the propensities."""
        return np.asarray(np.maximum(self.unfloored(users, items), self.floor))

    def without_floor(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        """Return the propensities as they would be without any floor, those that they follow from included."""
        return self.unfloored(users, items)

    def count_floored(self, log: FeedbackLog) -> int:
        """Count the rows of a log whose weight the floor changed."""
        checked_log(log, levels=True)
        if self.floor == 0:
            return 0
        parts = parts_of(len(log), size=SHORT)
        return sum(int((self.unfloored(log.users[at], log.items[at]) < self.floor).sum()) for at in parts)

    def variance_changes(self, log: FeedbackLog) -> VarianceChange:
        """Return `variance_change` on one log, for any number of estimates: what depends on neither is worked out once.

        Given propensities change nothing; models that estimate theirs write their own.
        """
        return NoChange()

    def variance_change(self, log: FeedbackLog, slopes: Array | None, influence: Array) -> float:
        r"""Return what estimating the propensities adds to an estimate's variance; mostly it takes some away.

        Parameters
        ----------
        log
            n rows.
        slopes
            :math:`\partial T / \partial \log p` of each row, shape (n,); `None` for minus the influence.
        influence
            What each row adds to the estimate by being observed, shape (n,).
        """
        change = self.variance_changes(log)
        parts = (
            [change.of_part(at, None if slopes is None else slopes[at], influence[at])]
            for at in parts_of(len(log), size=parts_for_change(log))
        )
        return float(change.of_sums(parts, 1)[0])

    def thinned(self, share: float) -> Propensities:
        """Return the propensities of a random part of the log, such as held-out rows: `share` times these.

        Fit to the whole log, then thin: a logistic model fitted to the part alone would not be of the right form.

        Examples
        --------
        >>> from verirec import ConstantPropensity, FeedbackLog
        >>> log = FeedbackLog.from_arrays([0, 1], [0, 1], [1, 0], n_users=2, n_items=2)
        >>> ConstantPropensity().fit(log).thinned(0.2).at([0], [0]).tolist()
        [0.1]
        """
        return _Thinned(self, checked_share(share))

    def apart_from(self, others: float) -> Propensities:
        r"""Return the propensities on the pairs that another random part of the log, such as training rows, has not.

        With t the propensities of this part, and k times as many rows in the other, a pair that is not in the other is
        in this part with probability :math:`t / (1 - k t)`: held-out rows stand for the pairs that were not trained on.

        Parameters
        ----------
        others
            k, rows of the other part for each row of this one.

        Examples
        --------
        >>> from verirec import ConstantPropensity, FeedbackLog
        >>> log = FeedbackLog.from_arrays([0, 1], [0, 1], [1, 0], n_users=2, n_items=2)
        >>> ConstantPropensity().fit(log).thinned(0.2).apart_from(4).at([0], [0]).round(4).tolist()
        [0.1667]
        """
        return _Apart(self, checked_others(others))

    @cached_property
    def inverse_total(self) -> float:
        r"""The sum of 1/p over the whole grid; estimated from a sample of its cells where it is too large to visit."""
        self.require_everywhere("the sum of 1/p over the grid")
        mean = Grid(self.shape).mean(lambda users, items: 1 / self.cells(users, items), parallel=self.parallel)
        return mean * self.shape[0] * self.shape[1]

    def side_logits(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]] | None:
        """Return logits by user and by item whose sum is the propensity's, shapes (n_users,) and (n_items,).

        `None` for propensities that are not such a sum. Those of users and items that are never, or always, logged are
        kept finite.
        """
        return None

    def require_everywhere(self, what: str) -> None:
        """Raise `PropensityError` if propensities are known on observed pairs only."""
        if not self.known_everywhere:
            raise PropensityError(
                f"{what} needs the propensities of all pairs; {type(self).__name__} has those of observed pairs only"
            )

    def diagnostics(self, log: FeedbackLog) -> PropensityDiagnostics:
        """Say how far the weights can be trusted on this log."""
        return diagnose(self, checked_log(log, levels=True), floor=self.floor, floored=self.count_floored(log))

    def __repr__(self) -> str:
        floor = f", floor {self.floor:.2g}" if self.floor > 0 else ""
        return f"{type(self).__name__}({self.shape[0]:,} users x {self.shape[1]:,} items{floor})"


class _Derived(Propensities):
    """Propensities that follow from others."""

    def __init__(self, whole: Propensities) -> None:
        super().__init__(whole.shape)
        self.whole = whole
        self.parallel = whole.parallel  # type: ignore[misc]
        self.known_everywhere = whole.known_everywhere  # type: ignore[misc]
        self.known = whole.known  # type: ignore[misc]
        self.depends_on_label = whole.depends_on_label  # type: ignore[misc]
        self.assumption = whole.assumption  # type: ignore[misc]

    def count_floored(self, log: FeedbackLog) -> int:
        return self.whole.count_floored(log)


def checked_share(share: object) -> float:
    """Accept the share of a log that a part of it has."""
    return real_number("share", share, above=0, below=1 + 1e-12)


def checked_others(others: object) -> float:
    """Accept how many rows another part has for each row of one."""
    return real_number("others", others, above=0, closed=True)


class _Thinned(_Derived):
    """What is left of propensities when each logged pair is kept with one and the same chance."""

    def __init__(self, whole: Propensities, share: float) -> None:
        super().__init__(whole)
        self.share = share

    def unfloored(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        return np.asarray(self.share * self.whole.cells(users, items))

    def without_floor(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        return np.asarray(self.share * self.whole.without_floor(users, items))

    def side_logits(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]] | None:
        sides = self.whole.side_logits()
        # Of a share of rare pairs, the odds are that share of theirs.
        return None if sides is None else (sides[0] + np.log(self.share), sides[1])

    def variance_changes(self, log: FeedbackLog) -> VarianceChange:
        return self.whole.variance_changes(log)


class _Apart(_Derived):
    """Propensities of a part of a log on the pairs that another part does not have."""

    def __init__(self, whole: Propensities, others: float) -> None:
        super().__init__(whole)
        self.others = others

    def unfloored(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        return self._apart(self.whole.cells(users, items))

    def without_floor(self, users: Positions, items: Positions) -> npt.NDArray[Any]:
        return self._apart(self.whole.without_floor(users, items))

    def _apart(self, part: npt.NDArray[Any]) -> npt.NDArray[Any]:
        # A pair is in this part, in the other or in neither: where rounding leaves nothing for neither, it is here.
        return np.asarray(part / np.maximum(1 - self.others * part, part))

    def variance_changes(self, log: FeedbackLog) -> VarianceChange:
        return _ApartChange(self, log)


class _ApartChange:
    """That of the whole, with slopes by its own propensities: the log of t / (1 - k t) moves 1 / (1 - k t) as much."""

    def __init__(self, apart: _Apart, log: FeedbackLog) -> None:
        self.apart, self.log, self.of_whole = apart, log, apart.whole.variance_changes(log)

    def of_part(self, at: slice, slopes: Array | None, influence: Array) -> Any:
        pairs = self.log.users[at], self.log.items[at]
        steeper = self.apart.cells(*pairs) / self.apart.whole.cells(*pairs)
        return self.of_whole.of_part(at, steeper * own_slopes(slopes, influence), influence)

    def of_sums(self, parts: Iterator[list[Any]], count: int) -> Array:
        return self.of_whole.of_sums(parts, count)


def own_slopes(slopes: Array | None, influence: Array) -> Array:
    """Spell out slopes that are minus the influence."""
    return -influence if slopes is None else slopes


def default_floor(log: FeedbackLog, floor: float | None) -> float:
    """Choose the floor of a model that was not given one: a hundredth of the log's density.

    No weight is then above a hundred times the average one; and a sparse log does not run into it.
    """
    return log.density / 100 if floor is None else real_number("floor", floor, above=0, below=1, closed=True)
