"""What follows from the tables of Table 2's studies: the paper's claims, and advice. No number is typed here."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

import numpy as np

from verirec.exceptions import DataError
from verirec.studies.table2.findings import OVERALL
from verirec.studies.table2.plans import OURS
from verirec.studies.table2.results import StudyTables
from verirec.studies.table2.spaces import BASELINE_FORM
from verirec.studies.table2.words import metric_in_words, name_in_words

RANKING: Final = ("auc", "ndcg", "recall")
_SMALLER_IS_BETTER: Final = ("log_loss", "brier", "calibration_error")
NEAR: Final = 0.005
"""What two methods may differ by and count as equally good, for whoever has to choose."""


class Claim(NamedTuple):
    """Something that the paper says, whether it holds here, and what it rests on."""

    said: str
    holds: bool
    found: str


def claims(tables: StudyTables, form: str = "paper") -> list[Claim]:
    """Hold what the paper says of Table 2 against a study, in the paper's form."""
    part = _part(tables, form)
    methods = [name for name in dict.fromkeys(part.method) if name != "mf"]
    if not methods:
        raise DataError(f"the paper's claims are about several methods in the form {form!r}; the tables have none")
    ahead = {
        metric: [name for name in methods if tables.mean(name, form, metric) > tables.mean("mf", form, metric)]
        for metric in RANKING
    }
    share = sum(map(len, ahead.values())) / (len(methods) * len(RANKING))
    best = {metric: _best(part, metric) for metric in RANKING}
    led = [metric for metric in RANKING if best[metric] in OURS]
    own = part[part.method.isin(OURS) & part.metric.str.split("@").str[0].isin(RANKING)]
    tested = len(own)
    better, settled = (int((own[name] == "yes").sum()) for name in ("better", "established"))
    constants = {metric: tables.mean("constants", BASELINE_FORM, metric) for metric in RANKING}
    below = [name for name in dict.fromkeys(part.method) if tables.mean(name, form, "auc") < constants["auc"]]
    counts = ", ".join(f"{len(ahead[one])} of {len(methods)} by {metric_in_words(one)}" for one in RANKING)
    leaders = ", ".join(f"{name_in_words(best[one], form)} by {metric_in_words(one)}" for one in RANKING)
    return [
        Claim("Most debiasing and denoising methods are better than MF", share > 0.5, f"better are {counts}"),
        Claim("The paper's own methods lead", len(led) == len(RANKING), f"the best is {leaders}"),
        Claim(
            "They significantly outperform the baselines",
            better == tested,
            f"in {better} of {tested} cells by seeds, corrected for the number of tests; in {settled} by the interval "
            "over users as well. Simple baselines count",
        ),
        Claim(
            "Factors alone are a fair base model (implied)",
            len(below) == 0,
            f"user and item constants alone have an AUC of {constants['auc']:.3f}, and {len(below)} of "
            f"{len(methods) + 1} methods are below it",
        ),
    ]


def moved_by_tuning(tables: StudyTables) -> dict[str, dict[str, float]]:
    """Compare, by form, what settings move in test AUC (middle half of the trials) with what methods move."""
    found = {}
    for form in (form for form in dict.fromkeys(tables.spread.form) if form != BASELINE_FORM):
        spread = tables.spread[tables.spread.form == form]
        chosen = _part(tables, form)
        auc = chosen[chosen.metric == "auc"]["mean"]
        found[form] = {
            "by_setting": float((spread.auc_upper - spread.auc_lower).median()),
            "worst_to_best": float((spread.auc_most - spread.auc_least).median()),
            "by_method": float(auc.quantile(0.75) - auc.quantile(0.25)),
            "methods_all": float(auc.max() - auc.min()),
        }
    return found


def closed_share(tables: StudyTables | None, way: str, form: str = OVERALL) -> float:
    """Return which part of the AUC gap between naive and best possible choice a way to choose closes."""
    if tables is None or tables.selection is None:
        return float("nan")
    overall = tables.selection[(tables.selection.method == OVERALL) & (tables.selection.form == form)]
    return float(overall.set_index("chosen_by").share[way])


def corrections(tables: StudyTables | None, on: str, metric: str = "log_loss") -> dict[str, float]:
    """Summarise what the correction changes on one kind of clean labels: mean, least and most over pairs and forms."""
    if tables is None or tables.correction is None:
        return {}
    part = tables.correction
    part = part[(part.choice == tables.choices[-1]) & (part.on == on) & (part.metric == metric)]
    part = part[part.form != "paper"]
    return {
        "mean": float(part.difference.mean()),
        "least": float(part.difference.min()),
        "most": float(part.difference.max()),
        "helped": int((part.difference < 0).sum()),
        "of": len(part),
        "significant": int(((part.difference < 0) & (part.p_value <= 0.05)).sum()),
    }


def advice(tables: StudyTables, form: str, metric: str) -> dict[str, Any]:
    """Return the best of a form and the simple baselines by a metric, and who is as good: within `NEAR` of it."""
    part = tables.table2[(tables.table2.choice == tables.choices[0]) & tables.table2.form.isin((form, BASELINE_FORM))]
    part = part[part.metric.str.split("@").str[0] == metric]
    sign = -1 if metric in _SMALLER_IS_BETTER else 1
    score = sign * part["mean"]
    near = part[score >= score.max() - NEAR]
    best = part.loc[score.idxmax()]
    return {
        "best": name_in_words(best.method, best.form),
        "mean": float(best["mean"]),
        "near": [name_in_words(one.method, one.form) for one in near.itertuples()],
        "mf_near": bool(((near.method == "mf") & (near.form == form)).any()),
        "constants_near": bool(((near.method == "constants") & (near.form == BASELINE_FORM)).any()),
        "ours_near": [name_in_words(one, form) for one in OURS if ((near.method == one) & (near.form == form)).any()],
        "count": len(near),
        "of": len(part),
    }


def shown_means(tables: StudyTables | None, method: str, form: str, choice: str | None = None) -> str:
    """Say AUC, NDCG, Recall and log loss of a row.

    Examples
    --------
    >>> shown_means(None, "mf", "paper")
    'not run'
    """
    if tables is None or np.isnan(tables.mean(method, form, "auc", choice)):
        return "not run"
    return " / ".join(f"{tables.mean(method, form, metric, choice):.3f}" for metric in (*RANKING, "log_loss"))


def weights_chosen(tables: StudyTables) -> dict[str, int]:
    """Count which propensities were chosen by methods that can weigh by some."""
    counts: dict[str, int] = {}
    for one in tables.settings[tables.settings.choice == tables.choices[0]].itertuples():
        kind = json.loads(one.setting).get("propensities")
        if kind is not None:
            counts[kind] = counts.get(kind, 0) + 1
    return counts


def _part(tables: StudyTables, form: str) -> Any:
    return tables.table2[(tables.table2.choice == tables.choices[0]) & (tables.table2.form == form)]


def _best(part: Any, metric: str) -> str:
    of_metric = part[part.metric.str.split("@").str[0] == metric]
    return str(of_metric.loc[of_metric["mean"].idxmax()].method)
