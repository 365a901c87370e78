"""How far inverse propensities can be trusted as weights."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from verirec.data.cells import CellValues
from verirec.data.feedback_log import FeedbackLog
from verirec.data.grid import Grid
from verirec.data.parts import counts, parts_of, totals
from verirec.exceptions import EmptyLogError
from verirec.formatting import html_table
from verirec.scratch import each

Array = npt.NDArray[np.float64]

GRID_SAMPLE: Final = 200_000
"""Cells that stand for the grid where it is larger: enough for a calibration table of ten bins."""
_BINS: Final = 10
_FEW_EFFECTIVE: Final = 0.05
_HEAVY_ROW: Final = 0.01
_MASS_OFF: Final = 0.1
_UNBALANCED: Final = 0.1


@dataclass(frozen=True)
class PropensityDiagnostics:
    """What to look at before trusting a weighted estimate.

    Parameters
    ----------
    rows
        Rows of the log.
    floor, floored
        The floor, and the number of rows whose weight it changed.
    effective_sample_size
        Kish's (sum w)^2 / sum w^2: the number of equally weighted rows that would be as precise.
    largest_weights
        The five largest 1/p, largest first.
    largest_share
        Share of all weight that the heaviest row carries.
    mass
        Sum of the rows' weights divided by the number of cells: 1 if the propensities are right.
    calibration
        For ten groups of cells by propensity, lowest first: (mean propensity, share observed). Empty where
        propensities are known on observed pairs only.
    balance
        For users' and items' activity: standardised difference between log and grid, (as logged, when weighted).
    warnings
        In words, what is wrong.
    """

    rows: int
    floor: float
    floored: int
    effective_sample_size: float
    largest_weights: tuple[float, ...]
    largest_share: float
    mass: float
    calibration: tuple[tuple[float, float], ...]
    balance: dict[str, tuple[float, float]]
    warnings: tuple[str, ...]

    def _repr_html_(self) -> str:
        facts = {
            "rows": f"{self.rows:,}, worth {self.effective_sample_size:,.0f} of equal weight",
            "largest weights": ", ".join(f"{one:.4g}" for one in self.largest_weights),
            "share of the heaviest row": f"{self.largest_share:.2%}",
            "mass (1 if right)": f"{self.mass:.3f}",
            "floored": f"{self.floored:,} rows at {self.floor:g}",
        }
        for name, (logged, weighted) in self.balance.items():
            facts[f"balance of {name}"] = f"{logged:.3f} as logged, {weighted:.3f} weighted"
        facts |= {f"warning {place}": one for place, one in enumerate(self.warnings, 1)}
        return html_table("Propensities: what to look at before trusting them", facts)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain numbers, ready for JSON."""
        return asdict(self)


def diagnose(propensities: CellValues, log: FeedbackLog, *, floor: float, floored: int) -> PropensityDiagnostics:
    """Look at the weights that propensities give the rows of a log."""
    if len(log) == 0:
        raise EmptyLogError("diagnostics need a log with rows; it has none")
    p = propensities.at(log.users, log.items)
    weights = each(lambda p: 1 / p, p)
    total = float(weights.sum())
    heaviest = _largest(weights, 5)
    effective = total**2 / float(each(np.square, weights).sum())
    largest_share, mass = float(heaviest[0]) / total, total / log.n_cells
    balance = {
        "user activity": _imbalance(log.users, log.n_users, weights),
        "item popularity": _imbalance(log.items, log.n_items, weights),
    }
    return PropensityDiagnostics(
        rows=len(log),
        floor=floor,
        floored=floored,
        effective_sample_size=effective,
        largest_weights=tuple(heaviest.tolist()),
        largest_share=largest_share,
        mass=mass,
        calibration=_calibration(propensities, p, log) if getattr(propensities, "known_everywhere", True) else (),
        balance=balance,
        warnings=tuple(_in_words(len(log), floored, effective, largest_share, mass, balance)),
    )


def _largest(values: Array, count: int) -> Array:
    """Return the largest values, largest first: those of each part, and of these."""
    # Copies: a view would keep its whole part in memory.
    largest = [np.sort(values[at])[-count:].copy() for at in parts_of(len(values))]
    return np.sort(np.concatenate(largest))[::-1][:count]


def _imbalance(positions: npt.NDArray[np.integer[Any]], size: int, weights: Array) -> tuple[float, float]:
    """Compare log activity's mean over the rows with its mean over the grid, in the grid's standard deviations."""
    rows = counts(positions, size)
    activity = np.log1p(rows)
    spread = float(activity.std())
    if spread < 1e-9:
        return 0.0, 0.0
    of_positions = totals(positions, weights, size)
    plain, weighted = (float((activity * one).sum() / one.sum()) for one in (rows, of_positions))
    center = float(activity.mean())
    return (plain - center) / spread, (weighted - center) / spread


def _calibration(propensities: CellValues, of_rows: Array, log: FeedbackLog) -> tuple[tuple[float, float], ...]:
    """Compare observed with predicted shares in groups of cells; a fixed sample stands for a large grid."""
    size = min(GRID_SAMPLE, 4 * log.n_cells)
    of_grid = propensities.at(*Grid(log.shape).sample(size, np.random.default_rng(0)))
    edges = np.unique(np.quantile(of_grid, np.linspace(0, 1, _BINS + 1)[1:-1]))
    bins, bin_of_grid = len(edges) + 1, np.searchsorted(edges, of_grid, side="right")
    in_grid, sums = np.bincount(bin_of_grid, minlength=bins), np.bincount(bin_of_grid, weights=of_grid, minlength=bins)
    bins_of_rows = (np.searchsorted(edges, of_rows[at], side="right") for at in parts_of(len(of_rows)))
    in_rows = np.sum([np.bincount(one, minlength=bins) for one in bins_of_rows], axis=0)
    cells_of_bin = in_grid / size * log.n_cells
    return tuple(
        (float(total / count), float(rows / size))
        for total, count, rows, size in zip(sums, in_grid, in_rows, cells_of_bin, strict=True)
        if count > 0
    )


def _in_words(
    rows: int,
    floored: int,
    effective: float,
    largest_share: float,
    mass: float,
    balance: dict[str, tuple[float, float]],
) -> list[str]:
    said = []
    if effective < _FEW_EFFECTIVE * rows:
        said.append(f"overlap is poor: {rows:,} weighted rows are worth {effective:,.0f} equally weighted ones")
    if largest_share > _HEAVY_ROW and rows * _HEAVY_ROW > 1:
        said.append(f"one row carries {largest_share:.1%} of all weight")
    if abs(mass - 1) > _MASS_OFF:
        said.append(
            f"the weights add up to {mass:.2f} of the grid where 1 is right: the propensities do not fit the log"
        )
    for name, (_, weighted) in balance.items():
        if abs(weighted) > _UNBALANCED:
            said.append(f"weighted rows and grid differ in {name} by {weighted:+.2f} standard deviations")
    if floored > 0:
        said.append(f"the floor changed the weights of {floored:,} of {rows:,} rows")
    return said
