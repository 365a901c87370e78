"""What follows from the tables of Table 2's studies: the paper's claims, and advice. No number is typed here."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Final, NamedTuple

import numpy as np
from scipy import stats

from verirec.exceptions import DataError
from verirec.studies.table2.findings import OVERALL, SELECTORS
from verirec.studies.table2.paper import TABLE2
from verirec.studies.table2.plans import OURS
from verirec.studies.table2.results import StudyTables
from verirec.studies.table2.spaces import BASELINE_FORM, FORMS
from verirec.studies.table2.words import metric_in_words, name_in_words

RANKING: Final = ("auc", "ndcg", "recall")
_SMALLER_IS_BETTER: Final = ("log_loss", "brier", "calibration_error")
NEAR: Final = 0.005
"""What two methods may differ by and count as equally good, for whoever has to choose."""
_CHANCE: Final = 0.52
"""An AUC below it is hardly better than chance."""


class Estimate(NamedTuple):
    """A mean and its standard error."""

    value: float
    error: float

    def __str__(self) -> str:
        """Return it with its sign.

        Examples
        --------
        >>> str(Estimate(-0.0123, 0.0041))
        '-0.012 ±0.004'
        """
        return f"{self.value:+.3f} ±{self.error:.3f}"

    @property
    def sure(self) -> bool:
        """Whether it is two standard errors from 0."""
        return abs(self.value) > 2 * self.error


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
    for form in (form for form in dict.fromkeys(tables.spread.form) if form in FORMS):
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


def regret(tables: StudyTables, way: str, metric: str, form: str = OVERALL) -> Estimate:
    """Return how much worse, on average over methods, a way to choose is than the best trial: "auc" or "log_loss"."""
    overall = tables.selection[(tables.selection.method == OVERALL) & (tables.selection.form == form)]
    one = overall.set_index("chosen_by").loc[way]
    return Estimate(float(one[f"{metric}_regret"]), float(one[f"{metric}_error"]))


def least_regret(tables: StudyTables, metric: str) -> str:
    """Name the way to choose that loses least, among those that need no true noise rates."""
    known = [way for way in SELECTORS if not way.endswith("-true")]
    return min(known, key=lambda way: regret(tables, way, metric).value)


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


def shown_means(tables: StudyTables | None, method: str, form: str) -> str:
    """Say AUC, NDCG, Recall and log loss of a row.

    Examples
    --------
    >>> shown_means(None, "mf", "paper")
    'not run'
    """
    if tables is None or tables.cell(method, form, "auc") is None:
        return "not run"
    return " / ".join(f"{tables.mean(method, form, metric):.3f}" for metric in (*RANKING, "log_loss"))


def shown_with_errors(tables: StudyTables, method: str, form: str) -> list[str]:
    """Say the same, each with its standard error over seeds."""
    cells = (tables.cell(method, form, metric) for metric in (*RANKING, "log_loss"))
    return [f"{one['mean']:.3f} ±{one['std'] / one['seeds'] ** 0.5:.3f}" for one in cells]


def gain(tables: StudyTables, method: str, form: str, metric: str) -> Estimate:
    """Return a row's difference to the best baseline; its standard error over seeds is what gave the paired p-value."""
    one = tables.cell(method, form, metric)
    if np.isnan(one.p_value) or one.p_value == 1:
        return Estimate(float(one.difference), float("nan"))
    quantile = stats.t.isf(max(one.p_value, 1e-300) / 2, one.seeds - 1)
    return Estimate(float(one.difference), float(abs(one.difference) / quantile))


def best_tuned(tables: StudyTables, metric: str) -> tuple[str, str]:
    """Name the method and the form that are best of all that were tuned."""
    part = tables.table2[(tables.table2.choice == tables.choices[0]) & tables.table2.form.isin(FORMS)]
    part = part[part.metric.str.split("@").str[0] == metric]
    score = -part["mean"] if metric in _SMALLER_IS_BETTER else part["mean"]
    best = part.loc[score.idxmax()]
    return str(best.method), str(best.form)


def beyond_printed(tables: StudyTables) -> dict[str, tuple[float, float]]:
    """Return the metrics by which constants alone are above all that the paper prints: theirs, and the best printed."""
    found = {}
    for metric in RANKING:
        printed = max(one.mean for (data, _, of), one in TABLE2.items() if (data, of) == (tables.dataset, metric))
        own = tables.mean("constants", BASELINE_FORM, metric)
        if own > printed:
            found[metric] = (own, printed)
    return found


def collapsed(tables: StudyTables, form: str = "paper") -> list[str]:
    """Name the methods that rank hardly better than chance."""
    part = _part(tables, form)
    low = part[(part.metric == "auc") & (part["mean"] < _CHANCE)]
    return [name_in_words(one, form) for one in low.method]


def chosen_values(tables: StudyTables, name: str) -> dict[str, int]:
    """Count the values of a part of the chosen settings, over methods that have it, the most frequent first."""
    settings = tables.settings[tables.settings.choice == tables.choices[0]].setting
    values = [json.loads(one).get(name) for one in settings]
    return dict(Counter(value for value in values if value is not None).most_common())


def _part(tables: StudyTables, form: str) -> Any:
    return tables.table2[(tables.table2.choice == tables.choices[0]) & (tables.table2.form == form)]


def _best(part: Any, metric: str) -> str:
    of_metric = part[part.metric.str.split("@").str[0] == metric]
    return str(of_metric.loc[of_metric["mean"].idxmax()].method)
