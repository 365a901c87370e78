"""From runs to the table: means, spreads, paired tests against the best baseline, intervals over users."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from verirec.studies.semi_synthetic.tables import SIGNIFICANT, paired_p_value
from verirec.studies.store import Row
from verirec.studies.table2.paper import TABLE2
from verirec.studies.table2.plans import OURS, Task
from verirec.studies.table2.runs import Results
from verirec.studies.table2.spaces import BASELINE_FORM, BY_LOG_FORM
from verirec.studies.table2.users import METRICS as WITH_INTERVALS
from verirec.studies.table2.users import half_width

METRICS: Final = ("auc", "ndcg", "recall", "log_loss", "brier", "calibration_error")
LARGER_IS_BETTER: Final = ("auc", "ndcg", "recall")
COLUMNS: Final = [
    "dataset",
    "method",
    "metric",
    "mean",
    "std",
    "paper",
    "p_value",
    "form",
    "protocol",
    "choice",
    "p_holm",
    "baseline",
    "difference",
    "low",
    "high",
    "better",
    "established",
    "on_all",
    "seeds",
    "trials",
    "seconds",
    "rho01",
    "rho10",
    "rates",
]

Array = npt.NDArray[np.float64]
Influences = Callable[[str], npt.NDArray[Any]]


def table2(results: Results, k: int, influences: Influences) -> Any:
    """Summarise a study: one row a method, form, metric and what settings are chosen by.

    `p_value`: paired t-test over the seeds against the best baseline, the best of all methods that are not the paper's
    own in the same form and of the simple baselines; `p_holm`: corrected for all methods of the form (Holm 1979).
    `low` and `high`: a 95% interval over test users of the difference to it, which the seeds say nothing about.
    `better`: "yes" or "no" where `p_holm` is at most .05; `established`: the same, where the interval leaves 0 out too.
    `on_all`: the mean over all random ratings, the slice that settings were chosen by included.

    Parameters
    ----------
    influences
        Gives what each test user adds to a run's metrics, by the run's key: see `users.influences`.
    """
    tables = [_of_choice(results, choice, k, influences) for choice in results.study.choices]
    return pd.concat(tables, ignore_index=True)[list(COLUMNS)]


def _of_choice(results: Results, choice: str, k: int, influences: Influences) -> Any:
    runs = {task: of for (task, by), of in results.chosen.items() if by == choice}
    users = {task: _mean_influence(of, influences) for task, of in runs.items()}
    rows = []
    for task in runs:
        for metric in METRICS:
            best = best_baseline(runs, task, metric)
            rows.append(_row(results, task, metric, k, choice, runs) | _against(runs, users, task, best, metric))
    table = pd.DataFrame(rows)
    table["p_holm"] = np.nan
    for _, family in table[table.form != BASELINE_FORM].groupby(["form", "metric"]):
        table.loc[family.index, "p_holm"] = holm(family.p_value.to_numpy())
    gained = table.difference.to_numpy() * np.where(table.metric.str.split("@").str[0].isin(LARGER_IS_BETTER), 1, -1)
    table["better"] = np.where(table.p_holm <= SIGNIFICANT, np.where(gained > 0, "yes", "no"), "")
    settled = (table.low > 0) | (table.high < 0)
    table["established"] = np.where(settled, table.better, "")
    return table


def _mean_influence(runs: list[Row], influences: Influences) -> Array:
    """Average over the runs that did not fail; NaN where all did."""
    found = [influences(run["key"]) for run in runs if "failed" not in run]
    return np.asarray(np.mean(found, axis=0)) if found else np.full((len(WITH_INTERVALS), 1), np.nan)


def _row(results: Results, task: Task, metric: str, k: int, choice: str, runs: dict[Task, list[Row]]) -> dict[str, Any]:
    study, values = results.study, values_of(runs[task], metric)
    printed = TABLE2.get((study.dataset, task.method, metric)) if task.form == "paper" else None
    return {
        "dataset": study.dataset,
        "method": task.method,
        "metric": f"{metric}@{k}" if metric in ("ndcg", "recall") else metric,
        "mean": float(values.mean()),
        "std": spread(values),
        "paper": np.nan if printed is None else printed.mean,
        "form": task.form,
        "protocol": study.protocol,
        "choice": choice,
        "on_all": float(values_of(runs[task], metric, "random").mean()),
        "seeds": len(values),
        "trials": len(results.trials[task]),
        "seconds": float(np.mean([run["cpu_seconds"] for run in runs[task]])),
        "rho01": study.rho01,
        "rho10": study.rho10,
        "rates": study.rates,
    }


def values_of(runs: Sequence[Row], metric: str, part: str = "test") -> Array:
    """Return a metric run by run; NaN where training failed. Under `honest` all random ratings are the test."""
    parts = (part, "test") if part == "random" else (part,)
    found: list[dict[str, float]] = [next((run[name] for name in parts if name in run), {}) for run in runs]
    return np.array([one.get(metric, np.nan) for one in found])


def best_baseline(runs: dict[Task, list[Row]], task: Task, metric: str) -> Task:
    """Name the best of what the paper's own methods are held against, in a task's form or a simple one.

    What goes by the log alone is held against the simple ones, and is no rival of any.
    """
    sign = 1 if metric in LARGER_IS_BETTER else -1
    forms = {task.form, BASELINE_FORM} - {BY_LOG_FORM}
    rivals = [one for one in runs if one.method not in OURS and one.form in forms]
    means = {one: sign * values_of(runs[one], metric).mean() for one in rivals}
    return max(means, key=lambda one: means[one] if np.isfinite(means[one]) else -np.inf)


def _against(
    runs: dict[Task, list[Row]], users: dict[Task, Array], task: Task, best: Task, metric: str
) -> dict[str, Any]:
    named = best.method if best.form != BASELINE_FORM else f"{best.method} ({BASELINE_FORM})"
    if task == best:
        return {"baseline": named, "p_value": np.nan, "difference": 0.0, "low": np.nan, "high": np.nan}
    own, theirs = values_of(runs[task], metric), values_of(runs[best], metric)
    difference = float((own - theirs).mean())
    width = np.nan
    if metric in WITH_INTERVALS:
        row = WITH_INTERVALS.index(metric)
        width = half_width(users[task][row] - users[best][row])
    return {
        "baseline": named,
        "p_value": paired_p_value(own, theirs),
        "difference": difference,
        "low": difference - width,
        "high": difference + width,
    }


def holm(p_values: Array) -> Array:
    """Correct p-values for their number: the i-th smallest of n times n - i + 1, never below a smaller one's (Holm).

    NaN, which is no test, stays.

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03, np.nan])).round(3).tolist()
    [0.03, 0.06, 0.06, nan]
    """
    found = np.full(len(p_values), np.nan)
    tests = np.flatnonzero(~np.isnan(p_values))
    order = tests[np.argsort(p_values[tests], kind="stable")]
    found[order] = np.minimum(np.maximum.accumulate(p_values[order] * np.arange(len(order), 0, -1)), 1.0)
    return found


def spread(values: Array) -> float:
    """Return the standard deviation over seeds; NaN of one."""
    return float(values.std(ddof=1)) if len(values) > 1 else float("nan")
