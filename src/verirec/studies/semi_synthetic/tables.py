"""From the records of many seeds to tables: means, spreads, coverage, gaps to the paper, paired t-tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from verirec.studies.semi_synthetic.paper import HEADER_OF_MATRIX, HEADERS, TABLE1, Printed
from verirec.studies.semi_synthetic.plans import Plan
from verirec.studies.semi_synthetic.seeds import Record

SIGNIFICANT: Final = 0.05
CLOSE_RMSE: Final = 0.003
CLOSE_GAP: Final = 0.006
"""What the same number may differ by, in relative error: over all cells, and in any one of them."""
PRINTED_FOR: Final = "movielens-100k"
"""Whose preferences the printed table is of."""
BY_FIT: Final = ("mrdr", "sdr", "tdr")
"""Methods whose formula behind the printed numbers was found by fit."""
OVERALL: Final = "all seven"
OURS: Final = ("ome-eib", "ome-ips", "ome-dr")
"""The paper's own methods; all others are its baselines."""


def as_frame(seeds: Iterable[Iterable[Record]]) -> Any:
    """Return one row an estimate, with its seed, relative error `re` and whether its interval `covers` the truth."""
    rows = [
        record._asdict() | {"seed": seed, "re": record.relative_error, "covers": record.covers}
        for seed, records in enumerate(seeds)
        for record in records
    ]
    return pd.DataFrame(rows)


def table1(frame: Any, plan: Plan) -> Any:
    """Summarise Table 1: one row a method, source of noise rates and matrix, ours beside theirs.

    Columns: method, rho, matrix, mean, std, paper, gap, paper_std, made_as, coverage, rho01, rho10, baseline, p_value,
    better, seeds. `made_as` is the recommender as the text defines it. `matrix` is the same, except where the printed
    variant has a printed number beside it: the paper's header. `paper` is the number printed for the recommender,
    wherever it stands. `p_value`: of a paired t-test of the relative errors against those of the best baseline;
    `better`: smaller, and significantly so.
    """
    rows = []
    names = names_in_table1(plan)
    for (method, rho, matrix), of_cell in frame.groupby(["method", "rho", "matrix"], sort=False):
        printed = printed_cell(plan, method, rho, matrix)
        mean = float(of_cell.re.mean())
        rows.append(
            {
                "method": method,
                "rho": rho,
                "matrix": names[matrix],
                "mean": mean,
                "std": _spread(of_cell.re),
                "paper": np.nan if printed is None else printed.mean,
                "gap": np.nan if printed is None else mean - printed.mean,
                "paper_std": np.nan if printed is None else printed.std,
                "made_as": matrix,
                "coverage": _share(of_cell.covers),
                "rho01": float(of_cell.rho01.astype(float).mean()),
                "rho10": float(of_cell.rho10.astype(float).mean()),
                **_against_best_baseline(frame[frame.matrix == matrix], method, rho),
                "seeds": len(of_cell),
            }
        )
    table = pd.DataFrame(rows)
    return table.sort_values("matrix", key=lambda names: names.map(HEADERS.index), kind="stable", ignore_index=True)


def names_in_table1(plan: Plan) -> dict[str, str]:
    """Name the recommenders in Table 1: by the printed header where the table is to be held against the printed one."""
    return {
        matrix: HEADER_OF_MATRIX[matrix] if plan.variant == "printed" and plan.preferences == PRINTED_FOR else matrix
        for matrix in plan.matrices
    }


def printed_cell(plan: Plan, method: str, rho: str, matrix: str) -> Printed | None:
    """Return the paper's number for a recommender as the text defines it, wherever it stands; `None` if it has none.

    Examples
    --------
    >>> from verirec.studies.semi_synthetic.plans import table1_plan
    >>> printed_cell(table1_plan(), "naive", "none", "SKEW")
    Printed(mean=0.125, std=0.002)
    """
    return TABLE1.get((method, rho, HEADER_OF_MATRIX[matrix])) if plan.preferences == PRINTED_FOR else None


def _against_best_baseline(frame: Any, method: str, rho: str) -> dict[str, Any]:
    """Test a method of the paper's against the baseline with the smallest mean error on the same recommender."""
    if method not in OURS:
        return {"baseline": "", "p_value": np.nan, "better": ""}
    baselines = frame[~frame.method.isin(OURS) & frame.rho.isin(("none", "true", rho))]
    name, best = min(baselines.groupby(["method", "rho"]), key=lambda one: one[1].re.mean())
    own = frame[(frame.method == method) & (frame.rho == rho)].sort_values("seed").re.to_numpy()
    theirs = best.sort_values("seed").re.to_numpy()
    p_value = paired_p_value(own, theirs)
    better = "" if np.isnan(p_value) else str(bool(own.mean() < theirs.mean() and p_value <= SIGNIFICANT)).lower()
    return {
        "baseline": name[0] if name[1] == "none" else f"{name[0]} ({name[1]})",
        "p_value": p_value,
        "better": better,
    }


def paired_p_value(first: Any, second: Any) -> float:
    """Return the two-sided p-value of a paired t-test; NaN for fewer than two pairs or differences that never vary.

    Examples
    --------
    >>> round(paired_p_value([0.1, 0.2, 0.4], [0.2, 0.4, 0.5]), 3)
    0.057
    """
    differences = np.asarray(first) - np.asarray(second)
    if len(differences) < 2 or np.ptp(differences) == 0:
        return float("nan")
    return float(stats.ttest_1samp(differences, 0.0).pvalue)


class Gaps(NamedTuple):
    """How far cells are from the printed ones."""

    cells: int
    rmse: float
    largest: float

    @property
    def reproduces(self) -> bool:
        """Whether both are within what we call the same.

        Examples
        --------
        >>> Gaps(66, 0.0014, 0.0037).reproduces, Gaps(66, 0.0014, 0.007).reproduces
        (True, False)
        """
        return self.cells > 0 and self.rmse <= CLOSE_RMSE and self.largest <= CLOSE_GAP


def gaps(table: Any) -> Gaps:
    """Return how many cells have a printed number and use no estimated noise rates, their RMSE, and the largest gap."""
    return gaps_of(table[table.rho != "paper"])


def gaps_of(table: Any) -> Gaps:
    """Return the same for all cells of a table, or of some of its rows."""
    known = table[table.paper.notna()].gap.to_numpy()
    if len(known) == 0:
        return Gaps(0, float("nan"), float("nan"))
    return Gaps(len(known), float(np.sqrt((known**2).mean())), float(np.abs(known).max()))


def figure1(frame: Any, plan: Plan) -> Any:
    """Summarise Figure 1: one row a share of observed data, method and source, with the error of the rates."""
    rows = []
    true_rates = {setting.name: setting for setting in plan.settings}
    for (setting, method, rho), part in frame.groupby(["setting", "method", "rho"], sort=False):
        rows.append(
            {
                "observed": float(part.observed.mean()),
                "scale": float(setting),
                "method": method,
                "rho": rho,
                "matrix": part.matrix.iloc[0],
                "mean": float(part.re.mean()),
                "std": _spread(part.re),
                "coverage": _share(part.covers),
                "rho01_error": float((part.rho01.astype(float) - true_rates[setting].rho01).abs().mean()),
                "rho10_error": float((part.rho10.astype(float) - true_rates[setting].rho10).abs().mean()),
                "seeds": len(part),
            }
        )
    return pd.DataFrame(rows)


def robustness(frame: Any) -> Any:
    """Summarise the robustness study: RE over all matrices of OME-DR by setting and source, of DR for no rates.

    The last rows are the means over the settings.
    """
    rows = []
    for (setting, rho), part in frame.groupby(["setting", "rho"], sort=False):
        by_seed = part.groupby("seed").re.mean()
        rows.append(
            {
                "setting": setting,
                "rho": rho,
                "mean": float(by_seed.mean()),
                "std": _spread(by_seed),
                "worst": float(part.groupby("matrix").re.mean().max()),
                "coverage": _share(part.covers),
                "rho01": float(part.rho01.astype(float).mean()),
                "rho10": float(part.rho10.astype(float).mean()),
                "seeds": len(by_seed),
            }
        )
    table = pd.DataFrame(rows)
    overall = table.groupby("rho", sort=False)[["mean", "worst", "coverage"]].agg(
        {"mean": "mean", "worst": "max", "coverage": "mean"}
    )
    overall = overall.reset_index().assign(setting=OVERALL, seeds=table.seeds.iloc[0])
    return pd.concat([table, overall], ignore_index=True)


def _spread(values: Any) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else float("nan")


def _share(covers: Any) -> float:
    known = covers.dropna()
    return float(known.astype(float).mean()) if len(known) else float("nan")
