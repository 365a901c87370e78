"""Monitoring's picture and its page."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import verirec
from verirec.assessment.monitoring.tables import OverTime
from verirec.assessment.page import HEADLINE_WORDS
from verirec.estimation import EstimateRange
from verirec.losses import NoiseRates
from verirec.pages.figures import COLOURS, MARKERS, as_svg, make_figure, plain_axes, tell
from verirec.pages.rendering import render

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from verirec.assessment.result import Assessment

_MOST_NAMED: Final = 12
"""Periods whose names fit below a picture."""
_HEIGHT: Final = 1.9
Point = tuple[float | None, float, float]
"""A value, `None` of a range, and the ends of its interval."""


def monitoring_page(found: OverTime) -> str:
    """Return the self-contained HTML page."""
    frame = found.to_frame()
    return render(
        "verirec.assessment",
        "monitoring.html",
        found=found,
        picture=as_svg(over_time_plot(found), "time"),
        words=HEADLINE_WORDS,
        columns=[name for name in ("rho01", "rho10", "delta") if name in frame and frame[name].notna().any()],
        rows=frame.to_dict("records"),
        version=verirec.__version__,
        date=date.today().isoformat(),
    )


def over_time_plot(found: OverTime) -> Figure:
    """Draw rows, rates, selection and estimates over the periods, one below the other, with intervals."""
    panels = [("rows of\nthe log", _rows), ("share of\npositives", _shares)]
    assessed = [one.found for one in found.periods if one.found is not None]
    if any(isinstance(one.noise, NoiseRates) and one.noise.covariance is not None for one in assessed):
        panels.append(("noise rates", _rates))
    if any(one.strength is not None for one in assessed):
        panels.append(("selection by\ntaste (delta)", _strength))
    if found.recommenders:
        panels.append((f"{found.loss} loss", _estimates))

    def draw(figure: Figure) -> None:
        every = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
        for axes, (label, panel) in zip(every, panels, strict=True):
            panel(axes, found)
            axes.set_ylabel(label)
            plain_axes(axes)
        names = [one.name for one in found.periods]
        step = -(-len(names) // _MOST_NAMED)
        every[-1].set_xticks(range(0, len(names), step), names[::step], rotation=45, ha="right")
        every[-1].set_xlim(-0.6, len(names) - 0.4)
        figure.align_ylabels(every)

    return make_figure(draw, height=0.8 + _HEIGHT * len(panels))


def _rows(axes: Any, found: OverTime) -> None:
    axes.bar(range(len(found.periods)), [one.rows for one in found.periods], color="#bbbbbb", width=0.7)


def _shares(axes: Any, found: OverTime) -> None:
    _series(axes, found, 0, "as logged", lambda one: (one.liked_as_logged, one.liked_as_logged, one.liked_as_logged))
    _series(axes, found, 1, "of all pairs", lambda one: _point(one.liked_corrected))
    axes.legend(frameon=False, ncols=2, fontsize="small")


def _rates(axes: Any, found: OverTime) -> None:
    for place, rate in enumerate(("rho01", "rho10")):

        def of(one: Assessment, rate: str = rate) -> Point | None:
            if not isinstance(one.noise, NoiseRates):
                return None
            return (getattr(one.noise, rate), *one.noise.interval(one.confidence)[rate])

        label = "likes logged as dislikes" if rate == "rho01" else "dislikes logged as likes"
        _series(axes, found, place, label, of)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, ncols=2, fontsize="small")


def _strength(axes: Any, found: OverTime) -> None:
    def of(one: Assessment) -> Point | None:
        return None if one.strength is None else (one.strength.value, *one.strength.interval)

    _series(axes, found, 0, "delta", of, among=1)
    axes.axhline(0, color="#777777", linewidth=1)


def _estimates(axes: Any, found: OverTime) -> None:
    for place, name in enumerate(found.recommenders):

        def of(one: Assessment, name: str = name) -> Point | None:
            judged = one.recommenders[name]
            return None if judged.estimates is None else _point(judged.estimates[judged.headline])

        _series(axes, found, place, name, of, among=len(found.recommenders))
    axes.legend(frameon=False, ncols=3, fontsize="small")


def _point(one: Any) -> Point:
    return (None if isinstance(one, EstimateRange) else one.value, *one.interval)


def _series(
    axes: Any,
    found: OverTime,
    place: int,
    label: str,
    of: Callable[[Assessment], Point | None],
    among: int = 2,
) -> None:
    """Draw a value with its interval in each period that has one, beside those of others."""
    colour, marker = COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]
    aside = (place - (among - 1) / 2) * 0.5 / max(among, 1)
    points = [
        (at, one.name, point)
        for at, one in enumerate(found.periods)
        if one.found is not None and (point := of(one.found)) is not None
    ]
    for at, name, (value, low, high) in points:
        if np.isfinite([low, high]).all() and high > low:
            (line,) = axes.plot([at + aside] * 2, [low, high], color=colour, linewidth=2, solid_capstyle="butt")
            shown = "a range" if value is None else f"{value:.4f}"
            tell(line, f"{label}, {name}: {shown} (interval {low:.4f} to {high:.4f})")
    values = [(at + aside, value) for at, _, (value, _, _) in points if value is not None]
    axes.plot(*zip(*values, strict=True) if values else ([], []), marker, color=colour, label=label, markersize=6)
