"""Sums of the loss over the pairs that nobody rated: from one walk over the grid, or from a sample of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from verirec.data.cells import cell_keys
from verirec.data.feedback_log import FeedbackLog
from verirec.data.grid import Block, Grid
from verirec.data.pair_keys import NO_PAIRS, keys_of, pairs_of, union
from verirec.data.parts import SHORT, counts, filled, totals
from verirec.estimation.cell_losses import CellLosses, KnownDifferences
from verirec.exceptions import PredictionError
from verirec.losses import errors_of, over_levels
from verirec.nuisance.imputation import Additive
from verirec.scratch import each, long_array

Array = npt.NDArray[np.float64]

_DRAWN: Final = 1 << 20
"""Cells that are drawn at a time, about."""
_LOOKED_UP: Final = 16
"""Short parts of the cells that are taken, which are looked at together."""
BLOCK_CELLS: Final = 1 << 17
"""Cells of a block: its few float64 arrays stay in the processor's second cache."""


class Sample(NamedTuple):
    """Cells drawn at random from the unobserved ones, how many each stands for, and how many each user has."""

    users: npt.NDArray[np.int32]
    items: npt.NDArray[np.int32]
    scale: float
    by_user: npt.NDArray[np.int64]

    def totals_by_user(self, values: Array) -> Array:
        """Estimate the sums of users over all their unobserved cells, from values of the sampled ones times the scale.

        How many of these a user happens to have is no property of the user: the mean of all stands for the difference.
        """
        drawn = self.scale * counts(self.users, len(self.by_user))
        mean = float(values.mean()) / self.scale if len(values) else 0.0
        return totals(self.users, values, len(self.by_user)) + mean * (self.by_user - drawn)


@dataclass(frozen=True, eq=False)
class Unobserved:
    r"""What all imputed errors :math:`\hat e = l(f, 0) + g\,[l(f, 1) - l(f, 0)]` need to know of the unobserved pairs.

    As g is a sum of constants, the imputed errors of all pairs follow from these sums, whatever the constants are:
    the grid is walked once for any number of estimators.

    Parameters
    ----------
    if_negative
        Sums of l(f, 0) by user, shape (n_users,).
    by_user, by_item
        Sums of l(f, 1) - l(f, 0) by user and by item; of K levels, of each step, with K - 1 columns in front.
    weighted_by_user
        Gives sums of l(f, 1) - l(f, 0) by user with a factor for each item, shape (n_items,) to (n_users,); factors
        of levels have columns in front, which are added up.
    sample, sampled_if_negative, sampled_difference
        The cells that stand for the others, if not all were visited, and their losses.
    """

    if_negative: Array
    by_user: Array
    by_item: Array
    weighted_by_user: Callable[[Array], Array]
    sample: Sample | None = None
    sampled_if_negative: Array | None = None
    sampled_difference: Array | None = None

    def total(self, labels: Additive) -> float:
        """Add up the imputed errors that these labels make."""
        total = np.vdot(labels.constant, self.by_user.sum(axis=-1))
        total = total + np.vdot(labels.users, self.by_user) + np.vdot(labels.items, self.by_item)
        return float(self.if_negative.sum() + total)

    def totals_by_user(self, labels: Additive) -> Array:
        """Add the imputed errors up user by user."""
        constants = np.asarray(labels.constant)[..., None] + labels.users
        by_user = errors_of(self.if_negative, self.by_user, constants)
        sampled = self.sampled(labels)
        if self.sample is not None and sampled is not None:
            by_user += self.sample.totals_by_user(sampled) - totals(self.sample.users, sampled, len(by_user))
        return by_user + self.weighted_by_user(labels.items) if labels.items.any() else by_user

    def sampled(self, labels: Additive) -> Array | None:
        """Return what each sampled cell adds to the total, if not all cells were visited."""
        if self.sample is None or self.sampled_if_negative is None or self.sampled_difference is None:
            return None
        sample, negative, difference = self.sample, self.sampled_if_negative, self.sampled_difference

        def of(part: slice) -> Array:
            imputed = labels.at(sample.users[part], sample.items[part])
            return sample.scale * errors_of(negative[part], difference[..., part], imputed)

        return filled(of, len(negative))


def visit_unobserved(
    losses: CellLosses,
    log: FeedbackLog,
    row_if_negative: Array,
    row_difference: Array,
    left_out: npt.NDArray[np.int64] = NO_PAIRS,
) -> Unobserved:
    """Walk over the whole grid, and take off what the log's rows and the pairs that are left out have added.

    Parameters
    ----------
    losses, log
        Of one grid.
    row_if_negative, row_difference
        Losses of the log's rows.
    left_out
        Other pairs that do not count, by `cell_keys`.
    """
    n_users, n_items = log.shape
    other_users, other_items = pairs_of(left_out, n_items)
    grid, parallel = Grid(log.shape, BLOCK_CELLS), losses.predictions.parallel

    def weighted_by_user(by_item: Array) -> Array:
        # The rows' losses are asked for again, rather than kept: they take room, and a bootstrap alone comes here.
        weighted = np.zeros(n_users)
        for taken, rated in ((log.users, log.items), (other_users, other_items)):
            of_rows = over_levels(losses.of_rows(taken, rated)[1] * by_item[..., rated])
            weighted -= totals(taken, of_rows, n_users)

        def visit(block: Block) -> Array:
            users, items = block
            difference = losses.cells(users[:, None], items[None, :])[1]
            return over_levels((difference @ by_item[..., items, None])[..., 0])

        for (users, _), sums in grid.map_blocks(visit, parallel=parallel):
            weighted[users] += sums
        return weighted

    try:
        negative, by_user, by_item = _all_totals(losses, grid)
    except PredictionError:
        losses.check_grid()
        raise
    other = losses.of_rows(other_users, other_items)
    negative -= totals(log.users, row_if_negative, n_users) + totals(other_users, other[0], n_users)
    by_user -= totals(log.users, row_difference, n_users) + totals(other_users, other[1], n_users)
    by_item -= totals(log.items, row_difference, n_items) + totals(other_items, other[1], n_items)
    return Unobserved(negative, by_user, by_item, weighted_by_user)


def _all_totals(losses: CellLosses, grid: Grid) -> tuple[Array, Array, Array]:
    """Walk over all pairs: sums of l(f, 0) by user, and of l(f, 1) - l(f, 0) by user and by item."""
    (n_users, n_items), columns = grid.shape, losses.columns
    known = losses.known_differences()
    if known is not None:
        return _halfway_totals(known, grid) - known.by_user / 2, known.by_user, known.by_item

    def visit(strip: list[Block]) -> tuple[slice, Array, Array, Array]:
        inside = slice(strip[0][0][0], strip[-1][0][-1] + 1)
        height = inside.stop - inside.start
        lowest, of_users, of_items = np.zeros(height), np.zeros((*columns, height)), np.zeros((*columns, n_items))
        for users, items in strip:
            negative, difference = losses.cells(users[:, None], items[None, :])
            lowest[users - inside.start] += negative.sum(axis=-1)
            of_users[..., users - inside.start] += difference.sum(axis=-1)
            of_items[..., items] += difference.sum(axis=-2)
        return inside, lowest, of_users, of_items

    negative, by_user, by_item = np.zeros(n_users), np.zeros((*columns, n_users)), np.zeros((*columns, n_items))
    for inside, lowest, of_users, of_items in grid.map_strips(visit, parallel=losses.parallel):
        negative[inside] += lowest
        by_user[..., inside] += of_users
        by_item += of_items
    return negative, by_user, by_item


def _halfway_totals(known: KnownDifferences, grid: Grid) -> Array:
    """Walk over all pairs for half of l(f, 0) + l(f, 1) alone, added up by user: all else is known without a visit."""

    def visit(strip: list[Block]) -> tuple[slice, Array]:
        inside = slice(strip[0][0][0], strip[-1][0][-1] + 1)
        of_users = np.zeros(inside.stop - inside.start)
        for users, items in strip:
            of_users[users - inside.start] += known.halfway_totals(users[:, None], items[None, :])
        return inside, of_users

    by_user = np.zeros(grid.shape[0])
    for inside, of_users in grid.map_strips(visit):
        by_user[inside] += of_users
    return by_user


def sample_unobserved(
    log: FeedbackLog, size: int, random: np.random.Generator, left_out: npt.NDArray[np.int64] = NO_PAIRS
) -> Sample:
    """Draw cells uniformly, with replacement, from those that the log does not have and that are not left out.

    They come in ascending order: how many fall into each range of cells is drawn first, and then those of each range.
    """
    unobserved = log.n_cells - len(log) - len(left_out)
    taken = log.n_items - counts(log.users, log.n_users) - counts(pairs_of(left_out, log.n_items)[0], log.n_users)
    size_drawn = size if unobserved > 0 else 0
    users, items = long_array(size_drawn, np.int32), long_array(size_drawn, np.int32)
    before, start = _CellsBefore(log, left_out), 0
    ends = np.linspace(0, unobserved, -(-size_drawn // _DRAWN) + 1).astype(np.int64)
    shares = np.diff(ends) / max(unobserved, 1)
    for (low, high), count in zip(pairwise(ends), random.multinomial(size_drawn, shares), strict=True):
        rank = np.sort(random.integers(low, high, size=count))
        inside = slice(start, start + count)
        users[inside], items[inside] = np.divmod(before.passed(rank), log.n_items)
        start += count
    return Sample(users, items, unobserved / size, taken)


class _CellsBefore:
    """Counts the cells that are taken, logged or left out, before any that is not; no array is of their number."""

    def __init__(self, log: FeedbackLog, left_out: npt.NDArray[np.int64]) -> None:
        self._log = log
        self._merged: npt.NDArray[np.int64] | None = None
        if len(left_out):
            self._merged = union(keys_of(log.users, log.items, log.n_items), left_out)
        self._length = len(log) + len(left_out)
        places = range(0, self._length, SHORT)
        self._coarse = np.array([int(self._keys(at, at + 1)[0]) - at for at in places], np.int64)

    def _keys(self, start: int, stop: int) -> npt.NDArray[np.int64]:
        """Return some of the cells that are taken, which are in ascending order."""
        log = self._log
        if self._merged is not None:
            return self._merged[start:stop]
        return cell_keys(log.users[start:stop], log.items[start:stop], log.n_items)

    def passed(self, rank: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the k-th cells that are not taken, for ascending k: k plus the number of those before."""
        found = np.empty_like(rank)
        ends, done = np.searchsorted(self._coarse, rank, side="right"), 0
        while done < len(rank):
            # In stretches: a few cells may be drawn from all, and those that are taken are as many as the log's.
            first = max(int(ends[done]) - 1, 0)
            part = slice(done, int(np.searchsorted(ends, first + _LOOKED_UP, side="right")))
            start, stop = first * SHORT, min(int(ends[part][-1]) * SHORT, self._length)
            # A cell that is taken has as many others before it as its number is larger than its place.
            before = self._keys(start, stop) - np.arange(start, stop)
            found[part] = rank[part] + start + np.searchsorted(before, rank[part], side="right")
            done = part.stop
        return found


def visit_sample(
    losses: CellLosses, log: FeedbackLog, sample: Sample, left_out: npt.NDArray[np.int64] = NO_PAIRS
) -> Unobserved:
    """Estimate the sums from a sample of the unobserved pairs, without bias.

    Where the sums of l(f, 1) - l(f, 0) are known without a visit, they are taken as they are, and what is linear in it
    of l(f, 0) too: the sample stands for the rest alone, which varies far less (a control variate).
    """
    negative, difference = losses.of_rows(sample.users, sample.items)
    by_user = sample.scale * totals(sample.users, difference, log.n_users)
    by_item = sample.scale * totals(sample.items, difference, log.n_items)
    slope, sampled_difference = 0.0, difference
    known = _known_differences(losses, log, left_out)
    if known is not None:
        by_user, by_item, slope = known
        negative = each(lambda one, two: one + slope * two, negative, difference)
        sampled_difference = np.broadcast_to(0.0, difference.shape)
    return Unobserved(
        sample.scale * totals(sample.users, negative, log.n_users) - over_levels(slope * by_user),
        by_user,
        by_item,
        lambda factors: (
            sample.scale * totals(sample.users, over_levels(difference * factors[..., sample.items]), log.n_users)
        ),
        sample,
        negative,
        sampled_difference,
    )


def _known_differences(
    losses: CellLosses, log: FeedbackLog, left_out: npt.NDArray[np.int64]
) -> tuple[Array, Array, float] | None:
    """Return the sums of l(f, 1) - l(f, 0) over the unobserved pairs, by user and by item, if known without a visit.

    And the slope of l(f, 0) by minus that: the mean prediction. It is that of the logged pairs, settled before anything
    is drawn, so that it makes no bias.
    """
    known = losses.known_differences()
    if known is None:
        return None
    by_user, by_item, of_log = known.by_user, known.by_item, losses.of_rows(log.users, log.items)[1]
    others = pairs_of(left_out, log.n_items)
    for (users, items), difference in (((log.users, log.items), of_log), (others, losses.of_rows(*others)[1])):
        by_user = by_user - totals(users, difference, log.n_users)
        by_item = by_item - totals(items, difference, log.n_items)
    return by_user, by_item, float(each(lambda one: expit(-one), of_log).mean())
