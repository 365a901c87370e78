"""Plots for pages, drawn by matplotlib as SVG."""

from __future__ import annotations

import io
from typing import Any, Final

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from verirec.estimators import Estimate
from verirec.reports.page import picture

ESTIMATE_COLOUR: Final = "#0072b2"
TRUTH_COLOUR: Final = "#d55e00"
"""From Okabe and Ito's palette, told apart by shape as well."""

_STYLE: Final[dict[Any, Any]] = {
    "font.family": "sans-serif",
    "font.size": 11,
    "svg.fonttype": "none",
    "svg.hashsalt": "verirec",
    # A name with dollar signs is a name, not a formula.
    "text.parse_math": False,
}


def estimates_plot(estimates: dict[str, Estimate], truth: dict[str, float]) -> Markup:
    """Draw each recommender's estimate with its interval, and the truth beside it."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(7, 0.9 + 0.75 * len(estimates)), layout="constrained")
        axes = figure.add_subplot()
        level = next(iter(estimates.values())).confidence
        for row, (name, estimate) in enumerate(reversed(estimates.items())):
            low, high = estimate.interval
            axes.plot([low, high], [row + 0.12] * 2, color=ESTIMATE_COLOUR, linewidth=3, solid_capstyle="butt")
            (dot,) = axes.plot(estimate.value, row + 0.12, "o", color=ESTIMATE_COLOUR, markersize=8)
            (diamond,) = axes.plot(truth[name], row - 0.12, "D", color=TRUTH_COLOUR, markersize=8)
        axes.set_yticks(range(len(estimates)), list(reversed(estimates)))
        axes.set_ylim(-0.6, len(estimates) - 0.4)
        axes.set_xlabel("prediction inaccuracy (log loss; smaller is better)")
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", color="#dddddd")
        axes.set_axisbelow(True)
        figure.legend(
            [dot, diamond],
            [f"naive estimate from the log, {level:.0%} interval", "truth"],
            loc="outside lower center",
            ncols=2,
            frameon=False,
        )
        return _svg(figure)


def _svg(figure: Figure) -> Markup:
    """Give a figure as SVG to stand in a page: no XML header, no date, so that the same figure is the same text."""
    FigureCanvasSVG(figure)
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    return picture(text[text.index("<svg") :])
