"""Pictures of Table 2: differences to the best baseline, what tuning alone moves, and accuracy against time."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from verirec.pages.figures import COLOURS, MARKERS, TRUTH_COLOUR, make_figure, plain_axes
from verirec.studies.table2.spaces import BASELINE_FORM, BY_LOG_FORM
from verirec.studies.table2.words import FORMS, metric_in_words, name_in_words

_WIDE: Final = 10.0
_TITLES: Final = {
    "paper": "factors alone",
    "constants": "+ constants",
    "features": "+ features",
    "exposure": "+ what people rated",
    BASELINE_FORM: "constants alone",
    BY_LOG_FORM: "by the log alone",
}
"""Forms in few words: panels are narrow."""


def intervals_plot(table: Any, choice: str) -> Figure:
    """Draw each method's difference to the best baseline with its 95% interval over test users: AUC and log loss."""
    part = table[(table.choice == choice) & table.form.isin(list(FORMS))]
    forms = [form for form in FORMS if (part.form == form).any()]
    methods = list(dict.fromkeys(part.method))

    def draw(figure: Figure) -> None:
        panels = figure.subplots(2, len(forms), sharey=True, squeeze=False)
        for line, metric in zip(panels, ("auc", "log_loss"), strict=True):
            for axes, form in zip(line, forms, strict=True):
                cells = part[(part.form == form) & (part.metric == metric)].set_index("method").loc[methods]
                heights = np.arange(len(methods))[::-1]
                axes.axvline(0, color="#555555", linewidth=0.8)
                axes.hlines(heights, cells.low, cells.high, color=COLOURS[0], linewidth=1.6)
                axes.plot(cells.difference, heights, "o", color=COLOURS[0], markersize=4)
                ours = np.array([name.startswith("ome-") for name in methods])
                axes.plot(cells.difference[ours], heights[ours], "D", color=TRUTH_COLOUR, markersize=5.5)
                axes.set_yticks(heights, [name_in_words(name, form) for name in methods], fontsize=8.5)
                axes.tick_params(axis="y", length=0)
                axes.set_title(_TITLES[form], fontsize=10, loc="left")
                axes.set_xlabel(f"{metric_in_words(metric)} less the best baseline's", fontsize=9)
                plain_axes(axes, grid="x")

    return make_figure(draw, height=2.4 + 0.36 * len(methods), width=_WIDE)


def spread_plot(spread: Any, table: Any, choice: str) -> Figure:
    """Draw test AUC over all settings that were tried: whiskers, quartiles, median, and what was chosen."""
    part = spread[spread.trials > 1]
    forms = [form for form in FORMS if (part.form == form).any()]
    methods = list(dict.fromkeys(part[part.form != BASELINE_FORM].method))
    chosen = table[(table.choice == choice) & (table.metric == "auc")].set_index(["form", "method"])["mean"]

    def draw(figure: Figure) -> None:
        panels = figure.subplots(1, len(forms), sharey=True, squeeze=False).ravel()
        for axes, form in zip(panels, forms, strict=True):
            cells = part[part.form == form].set_index("method").loc[methods]
            heights = np.arange(len(methods))[::-1]
            axes.hlines(heights, cells.auc_least, cells.auc_most, color="#9ecae1", linewidth=1.5)
            axes.hlines(heights, cells.auc_lower, cells.auc_upper, color=COLOURS[0], linewidth=5)
            axes.plot(cells.auc_median, heights, "|", color="white", markersize=8)
            axes.plot([chosen[form, name] for name in methods], heights, "D", color=TRUTH_COLOUR, markersize=4.5)
            axes.set_yticks(heights, [name_in_words(name, form) for name in methods], fontsize=8.5)
            axes.tick_params(axis="y", length=0)
            axes.set_title(_TITLES[form], fontsize=10, loc="left")
            axes.set_xlabel("test AUC", fontsize=9)
            plain_axes(axes, grid="x")

    return make_figure(draw, height=1.2 + 0.2 * len(methods), width=_WIDE)


def time_plot(table: Any, choice: str) -> Figure:
    """Draw test AUC against CPU seconds of training; means, which need none, are left out."""
    part = table[(table.choice == choice) & (table.metric == "auc")]
    part = part[(part.form != BASELINE_FORM) | (part.method == "constants")]
    forms = [form for form in (BASELINE_FORM, *FORMS, BY_LOG_FORM) if (part.form == form).any()]

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        for place, form in enumerate(forms):
            cells = part[part.form == form]
            shape: dict[str, Any] = {"color": COLOURS[place], "label": _TITLES[form], "linestyle": "none"}
            axes.plot(cells.seconds, cells["mean"], MARKERS[place], **shape)
            for one in cells[cells.method.isin(("ome-dr", "auto-ranking"))].itertuples():
                axes.annotate(
                    name_in_words(one.method, form),
                    (one.seconds, one.mean),
                    xytext=(5, -9),
                    textcoords="offset points",
                    fontsize=8,
                )
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, place: f"{value:g}")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel("CPU seconds of training, one thread")
        axes.set_ylabel("test AUC")
        plain_axes(axes, grid="both")
        axes.legend(frameon=False, fontsize=9)

    return make_figure(draw, height=4.2, width=8.0)
