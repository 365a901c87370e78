"""What else a study tells: what tuning alone moves, how settings are best chosen, what the correction changes."""

from __future__ import annotations

import json
from typing import Any, Final

import numpy as np
import pandas as pd

from verirec.studies.semi_synthetic.tables import paired_p_value
from verirec.studies.table2.plans import Task
from verirec.studies.table2.runs import Results
from verirec.studies.table2.spaces import BY_LOG_FORM, FORMS
from verirec.studies.table2.tables import spread, values_of
from verirec.studies.table2.tuning import best_of

SELECTORS: Final = (
    "naive",
    "ome-ips-true",
    "ome-ips-audit",
    "ome-snips-true",
    "ome-snips-audit",
    "ome-dr-true",
    "ome-dr-audit",
)
OVERALL: Final = "all"
PAIRS: Final = {"mf": "ome", "eib": "ome-eib", "ips": "ome-ips", "dr-jl": "ome-dr"}
"""Methods, and the same corrected for noise."""


def tuning_spread(results: Results) -> Any:
    """Return how far test AUC and log loss go over the settings that were tried, one row a method and form."""
    rows = []
    for task, trials in results.trials.items():
        auc, loss = (values_of(trials, metric) for metric in ("auc", "log_loss"))
        known = auc[~np.isnan(auc)]
        rows.append(
            {
                "method": task.method,
                "form": task.form,
                "trials": len(trials),
                "failed": int(np.isnan(auc).sum()),
                "auc_least": float(known.min()) if len(known) else np.nan,
                "auc_lower": float(np.quantile(known, 0.25)) if len(known) else np.nan,
                "auc_median": float(np.median(known)) if len(known) else np.nan,
                "auc_upper": float(np.quantile(known, 0.75)) if len(known) else np.nan,
                "auc_most": float(known.max()) if len(known) else np.nan,
                "log_loss_median": float(np.nanmedian(loss)) if len(known) else np.nan,
                "seconds": float(np.mean([row["cpu_seconds"] for row in trials])),
            }
        )
    return pd.DataFrame(rows)


def chosen_settings(results: Results) -> Any:
    """Return the setting of each task and choice, as JSON."""
    rows = [
        {"method": task.method, "form": task.form, "choice": choice, "setting": json.dumps(runs[0]["setting"])}
        for (task, choice), runs in results.chosen.items()
    ]
    return pd.DataFrame(rows)


def selection(results: Results) -> Any:
    """Return what each way to choose a setting loses on the test, one row a method, form and way.

    Only for `honest`. `auc_regret` and `log_loss_regret`: how much worse the chosen trial is than the best one, by each
    metric on its own; `auc_error` and `log_loss_error` of the rows of method "all", which have the means over methods:
    standard errors over methods. Test labels choose nothing here: they tell what the choices were worth.
    """
    rows: list[dict[str, Any]] = []
    for task, trials in results.trials.items():
        usable = [row for row in trials if "failed" not in row]
        if task.form not in FORMS or not usable:
            continue
        most = max(row["test"]["auc"] for row in usable)
        least = min(row["test"]["log_loss"] for row in usable)
        for by in SELECTORS:
            test = best_of(by, usable)["test"]
            regrets = {"auc_regret": most - test["auc"], "log_loss_regret": test["log_loss"] - least}
            rows.append({"method": task.method, "form": task.form, "chosen_by": by, **regrets})
    table = pd.DataFrame(rows)
    if len(table) == 0:
        return table
    return pd.concat([table, *(_mean_regrets(part, form) for form, part in _by_form(table))], ignore_index=True)


def _by_form(table: Any) -> list[tuple[Any, Any]]:
    return [*table.groupby("form", sort=False), (OVERALL, table)]


def _mean_regrets(part: Any, form: Any) -> Any:
    by = part.groupby("chosen_by", sort=False)[["auc_regret", "log_loss_regret"]]
    errors = by.sem().rename(columns={"auc_regret": "auc_error", "log_loss_regret": "log_loss_error"})
    return pd.concat([by.mean(), errors], axis=1).reset_index().assign(method=OVERALL, form=form)


def searches(results: Results) -> Any:
    """Return what each search by the log alone tried and chose, one row a search and seed."""
    runs = [(task, run) for (task, _), of in results.chosen.items() if task.form == BY_LOG_FORM for run in of]
    rows = [
        {"method": task.method, "seed": run["seed"], **run["search"], "chosen": json.dumps(run["search"]["chosen"])}
        for task, run in runs
        if run.get("search")
    ]
    return pd.DataFrame(rows)


def correction(results: Results) -> Any:
    """Compare methods with their corrected forms, seed by seed, on clean labels.

    Under `honest` on rows of the log that were held out ("held-out log") and on random ratings ("random test"); else on
    the latter alone. `difference` is corrected minus plain: below 0 the correction helps.
    """
    rows = []
    parts = {"held_out": "held-out log", "test": "random test"}
    for (task, choice), plain in results.chosen.items():
        other = results.chosen.get((Task(PAIRS.get(task.method, ""), task.form), choice))
        if other is None:
            continue
        for part, words in parts.items():
            for metric in ("log_loss", "brier", "auc"):
                if part not in plain[0]:
                    continue
                own, theirs = values_of(other, metric, part), values_of(plain, metric, part)
                rows.append(
                    {
                        "method": task.method,
                        "corrected": PAIRS[task.method],
                        "form": task.form,
                        "choice": choice,
                        "on": words,
                        "metric": metric,
                        "plain": float(theirs.mean()),
                        "with_correction": float(own.mean()),
                        "difference": float((own - theirs).mean()),
                        "std": spread(own - theirs),
                        "p_value": paired_p_value(own, theirs),
                        "rho01": results.study.rho01,
                        "rho10": results.study.rho10,
                        "seeds": len(own),
                    }
                )
    return pd.DataFrame(rows)
