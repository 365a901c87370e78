r"""The printed table's own arithmetic: nothing here is advice.

Where it departs from the sound estimators: one imputed label for all pairs, m, is the weighted mean of the
*predictions*, and the noise-corrected estimators use it as it is, fitted to nothing that was said. MRDR weighs that
mean by w(w - 1); SDR is MRDR with its correction divided by :math:`\sum w`; TDR adds :math:`\eta w` to DR's imputed
errors. These were found by fit: the paper states none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from verirec.losses import NoiseRates

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PrintedRows:
    """One recommender, on the observed pairs (shape (n,)) and summed over all.

    Parameters
    ----------
    predictions, if_positive, if_negative
        f, l(f, 1) and l(f, 0) of the observed pairs.
    labels
        What was said of them.
    weights
        Their 1/p-hat.
    all_positive, all_negative, all_weights
        Sums of l(f, 1), l(f, 0) and 1/p-hat over all pairs.
    n_cells
        Number of all pairs.
    """

    predictions: Array
    if_positive: Array
    if_negative: Array
    labels: Array
    weights: Array
    all_positive: float
    all_negative: float
    all_weights: float
    n_cells: int

    def errors(self, rates: NoiseRates | None) -> Array:
        """Return e, or the surrogate for it at these noise rates."""
        labels = self.labels if rates is None else (self.labels - rates.rho10) / rates.kappa
        return np.asarray(self.if_negative + labels * (self.if_positive - self.if_negative))

    def imputed(self, weights: Array) -> tuple[float, Array]:
        """Impute one label, the weighted mean prediction: the errors' sum over all pairs, and the observed pairs'."""
        m = float(weights @ self.predictions / weights.sum())
        rows = m * self.if_positive + (1 - m) * self.if_negative
        return m * self.all_positive + (1 - m) * self.all_negative, rows


def printed_estimates(rows: PrintedRows, rates: Mapping[str, NoiseRates]) -> dict[tuple[str, str], float]:
    """Return every row of the printed table for one recommender, by method and source of noise rates."""
    weights, cells = rows.weights, rows.n_cells
    total, imputed = rows.imputed(weights)
    total_mrdr, imputed_mrdr = rows.imputed(weights * (weights - 1))
    plain = rows.errors(None)
    eta = float(weights @ (plain - imputed) / (weights @ weights))
    estimates = {
        ("mrdr", "none"): (total_mrdr + weights @ (plain - imputed_mrdr)) / cells,
        ("sdr", "none"): total_mrdr / cells + weights @ (plain - imputed_mrdr) / weights.sum(),
        ("tdr", "none"): (total + eta * rows.all_weights) / cells,
    }
    by_source: dict[str, tuple[str, NoiseRates | None]] = {"none": ("", None)}
    by_source |= {source: ("ome-", found) for source, found in rates.items()}
    for source, (prefix, found) in by_source.items():
        errors = rows.errors(found)
        estimates |= {
            ("ome" if prefix else "naive", source): errors.mean(),
            (f"{prefix}eib", source): (errors.sum() + total - imputed.sum()) / cells,
            (f"{prefix}ips", source): weights @ errors / cells,
            (f"{prefix}dr", source): (total + weights @ (errors - imputed)) / cells,
        }
    return {row: float(value) for row, value in estimates.items()}
