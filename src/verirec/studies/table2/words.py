"""Table 2's rows and cells in words, for Markdown, HTML and the terminal alike."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from verirec.studies.semi_synthetic.words import method_in_words
from verirec.studies.table2.spaces import BASELINE_FORM, BY_LOG_FORM

FORMS: Final = {
    "paper": "Factors alone, the paper's form",
    "constants": "With user and item constants",
    "features": "With constants and features",
    "exposure": "With constants, features and what people chose to rate",
}
CHOICES: Final = {
    "validation": "chosen on a slice of the random ratings",
    "naive": "chosen by log loss of held-out log ratings, as they are",
    "ome-ips-audit": "chosen by OME-IPS of held-out log ratings, audited rates",
    "ome-snips-audit": "chosen by OME-SNIPS of held-out log ratings, audited rates",
    "ome-dr-audit": "chosen by OME-DR of held-out log ratings, audited rates",
    "ome-ips-true": "chosen by OME-IPS of held-out log ratings, true rates",
    "ome-snips-true": "chosen by OME-SNIPS of held-out log ratings, true rates",
    "ome-dr-true": "chosen by OME-DR of held-out log ratings, true rates",
}
_BASELINES: Final = {
    "global-mean": "global mean",
    "item-mean": "item mean",
    "item-ips-mean": "item mean, weighted by 1/p",
    "popularity": "popularity",
    "constants": "user + item constants alone",
}
_BY_LOG: Final = {
    "auto-ranking": "auto, for ranking",
    "auto-probability": "auto, for probabilities",
    "auto-survey": "auto, for probabilities, survey of 200",
    "constants-default": "constants as they come",
    "constants-survey": "constants as they come, survey of 200",
}
_METRICS: Final = {
    "auc": "AUC",
    "ndcg": "NDCG",
    "recall": "Recall",
    "log_loss": "log loss",
    "brier": "Brier",
    "calibration_error": "calibration error",
}
MARKS: Final = (
    "↑ better than the best baseline, ↓ worse: paired t-test over the seeds, p ≤ .05 after Holm's correction. ⇑ and ⇓: "
    "and the 95% interval over test users leaves 0 out. In brackets: the paper's number."
)


def name_in_words(method: str, form: str) -> str:
    """Name a row.

    Examples
    --------
    >>> name_in_words("ome-dr", "paper"), name_in_words("item-mean", "baseline")
    ('OME-DR', 'item mean')
    """
    return {BASELINE_FORM: _BASELINES, BY_LOG_FORM: _BY_LOG}.get(form, {}).get(method, method_in_words(method))


def metric_in_words(metric: str) -> str:
    """Name a metric, with its depth.

    Examples
    --------
    >>> metric_in_words("ndcg@5"), metric_in_words("log_loss")
    ('NDCG@5', 'log loss')
    """
    name, at, depth = metric.partition("@")
    return f"{_METRICS[name]}{at}{depth}"


def cell(one: Any) -> str:
    """Say a mean with its spread, how it compares, and the paper's number.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> cell(SimpleNamespace(mean=0.7412, std=0.0031, better="yes", established="", paper=0.651))
    '0.741 ±0.003 ↑ (0.651)'
    """
    spread = "" if np.isnan(one.std) else f" ±{one.std:.3f}"
    marks = {"yes": "⇑", "no": "⇓"} if one.established else {"yes": "↑", "no": "↓"}
    mark = f" {marks[one.better]}" if one.better in marks else ""
    return f"{one.mean:.3f}{spread}{mark}" + ("" if np.isnan(one.paper) else f" ({one.paper:.3f})")


def laid_out(table: Any, form: str, choice: str, metrics: tuple[str, ...] | None = None) -> tuple[list[str], list[Any]]:
    """Lay one form's table out: the header, and rows of texts, simple baselines and what goes by the log first."""
    part = table[(table.choice == choice) & table.form.isin((form, BASELINE_FORM, BY_LOG_FORM))]
    names = [name for name in dict.fromkeys(part.metric) if metrics is None or name.split("@")[0] in metrics]
    rows = []
    for (of_form, method), cells in part.groupby(["form", "method"], sort=False):
        by_metric = {one.metric: one for one in cells.itertuples()}
        rows.append([name_in_words(method, of_form), *(cell(by_metric[name]) for name in names)])
    return ["", *(metric_in_words(name) for name in names)], rows


def title(table: Any) -> str:
    """Say what a table is of."""
    one = table.iloc[0]
    trials = int(table.trials.max())
    return (
        f"Table 2 under equal tuning: {one.dataset}, {one.protocol}, {_counted(trials, 'trial')} a method, "
        f"{_counted(int(one.seeds), 'seed')}, labels flipped at ({one.rho01:g}, {one.rho10:g})"
    )


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
