"""Pictures of levels: how they are logged, and how they are shared out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from verirec.assessment.findings import Stars
from verirec.estimation import EstimateRange
from verirec.losses import TransitionMatrix
from verirec.pages.figures import COLOURS, make_figure, plain_axes, tell


def transitions_plot(noise: TransitionMatrix, levels: Sequence[float]) -> Figure:
    """Draw a transition matrix as a map of colours, true levels from the bottom up, each share written in its field.

    Parameters
    ----------
    noise
        Of K levels.
    levels
        Their values.
    """

    def draw(figure: Figure) -> None:
        axes, names = figure.add_subplot(), [f"{level:g}" for level in levels]
        drawn = axes.imshow(noise.matrix, cmap="Blues", vmin=0, vmax=1, origin="lower")
        for (true, logged), share in np.ndenumerate(noise.matrix):
            colour = "white" if share > 0.55 else "black"
            axes.text(logged, true, f"{share:.0%}", ha="center", va="center", color=colour, fontsize=10)
        axes.set_xticks(range(len(names)), names)
        axes.set_yticks(range(len(names)), names)
        axes.set_xlabel("logged at")
        axes.set_ylabel("truly at")
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        figure.colorbar(drawn, ax=axes, format=lambda value, _: f"{value:.0%}", shrink=0.85)

    return make_figure(draw, height=4.0, width=5.0)


def levels_plot(stars: Stars, levels: Sequence[float]) -> Figure:
    """Draw the share of each level among the logged rows and, where something tells it, in truth among all pairs.

    Parameters
    ----------
    stars
        What an assessment found.
    levels
        The levels' values.
    """

    def draw(figure: Figure) -> None:
        axes, at, width = figure.add_subplot(), np.arange(len(levels)), 0.4 if stars.corrected else 0.7
        left = at - width / 2 if stars.corrected else at
        bars = axes.bar(left, stars.logged, width, color="#bbbbbb", hatch="///", label="logged")
        for level, bar, share in zip(levels, bars, stars.logged, strict=True):
            tell(bar, f"level {level:g}, logged: {share:.1%}")
        for place, (level, one) in enumerate(zip(levels, stars.corrected, strict=False)):
            middle = sum(one.range) / 2 if isinstance(one, EstimateRange) else one.value
            name = "truly, of all pairs, with interval" if place == 0 else None
            (bar,) = axes.bar(place + width / 2, max(middle, 0.0), width, color=COLOURS[0], label=name)
            tell(bar, f"level {level:g}, of all pairs: {middle:.1%} ({one.interval[0]:.1%} to {one.interval[1]:.1%})")
            axes.plot([place + width / 2] * 2, np.clip(one.interval, 0, 1), color="black", linewidth=1.5)
        axes.set_xticks(at, [f"{level:g}" for level in levels])
        axes.set_ylim(0, None)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        axes.set_xlabel("level")
        axes.set_ylabel("share")
        plain_axes(axes)
        figure.legend(loc="outside lower center", ncols=2, frameon=False)

    return make_figure(draw, height=3.4)
