"""Figures of an assessment, for its page and for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from verirec.estimation import Estimate, EstimateRange, Sensitivity
from verirec.exceptions import ParameterError
from verirec.losses import NoiseRates, NoiseRegion
from verirec.losses.noise_rates import MOST_RATE
from verirec.pages.figures import COLOURS, MARKERS, TRUTH_COLOUR, make_figure, plain_axes, tell

Array = npt.NDArray[np.float64]

_LEGEND: Final = 80
"""Letters of a line below a figure."""


def estimates_plot(
    rows: Mapping[str, Mapping[str, Estimate | EstimateRange]], truth: Mapping[str, float], measure: str
) -> Figure:
    """Draw estimates with their intervals: one line a recommender and kind of estimate, and the truth if known."""

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        handles: dict[str, Any] = {}
        for row, (name, estimates) in enumerate(reversed(list(rows.items()))):
            handles |= _draw_estimates(axes, row, name, estimates)
            if name in truth:
                low = row - (len(estimates) / 2) * _step(estimates)
                (handles["truth"],) = axes.plot(
                    truth[name], low, "D", color=TRUTH_COLOUR, markersize=8, linestyle="none"
                )
                tell(handles["truth"], f"{name}, truth: {truth[name]:.4f}")
        axes.set_yticks(range(len(rows)), [_short(name) for name in reversed(list(rows))])
        axes.set_ylim(-0.6, len(rows) - 0.4)
        axes.set_xlabel(measure)
        plain_axes(axes, grid="x")
        axes.tick_params(axis="y", length=0)
        figure.legend(
            list(handles.values()), list(handles), loc="outside lower center", ncols=_columns(handles), frameon=False
        )

    return make_figure(draw, height=1.0 + 1.1 * len(rows))


def _columns(labels: Mapping[str, Any]) -> int:
    """Return how many labels fit beside each other below a figure."""
    return max(1, min(3, len(labels), _LEGEND // max(map(len, labels))))


def _draw_estimates(
    axes: Any, row: int, name: str, estimates: Mapping[str, Estimate | EstimateRange]
) -> dict[str, Any]:
    """Draw a recommender's estimates, one below the other, and return what stands for each in the legend."""
    handles = {}
    for place, (kind, one) in enumerate(estimates.items()):
        height = row + (len(estimates) / 2 - place) * _step(estimates)
        colour, marker = COLOURS[place], MARKERS[place]
        axes.plot(one.interval, [height] * 2, color=colour, linewidth=2, solid_capstyle="butt")
        # A range has two ends and nothing between them that is more likely than the rest.
        ends = one.range if isinstance(one, EstimateRange) else (one.value,)
        if isinstance(one, EstimateRange):
            axes.plot(ends, [height] * 2, color=colour, linewidth=6, solid_capstyle="butt")
        (handles[kind],) = axes.plot(ends, [height] * len(ends), marker, color=colour, markersize=8, linestyle="none")
        shown = " to ".join(f"{end:.4f}" for end in ends)
        tell(handles[kind], f"{name}, {kind}: {shown} (interval {one.interval[0]:.4f} to {one.interval[1]:.4f})")
    return handles


def _step(estimates: Mapping[str, Any]) -> float:
    """Return the distance between a recommender's estimates, where recommenders are 1 apart."""
    return 1 / (len(estimates) + 1.5)


def propensity_plot(of_rows: Array, of_grid: Array) -> Figure:
    """Draw how likely the logged pairs, and all pairs, were to be logged."""

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        bins = _bins(np.concatenate([of_rows, of_grid]))
        for values, label, colour, hatch in (
            (of_grid, "all pairs", "#bbbbbb", None),
            (of_rows, "logged pairs", COLOURS[0], "///"),
        ):
            if len(values):
                shares = np.full(len(values), 1 / len(values))
                look: dict[str, Any] = {"histtype": "stepfilled", "alpha": 0.55, "color": colour, "hatch": hatch}
                axes.hist(values, bins.tolist(), weights=shares, label=label, **look)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.xaxis.set_minor_formatter(lambda value, _: "")
        axes.set_xlabel("how likely a pair is to be logged")
        axes.set_ylabel("share of the pairs")
        axes.legend(frameon=False)
        plain_axes(axes)

    return make_figure(draw, height=3.2)


def _bins(values: Array) -> Array:
    """Part propensities into forty steps of one ratio; into one step where all are the same."""
    bins = np.geomspace(max(values.min(), 1e-9), min(values.max() * 1.001, 1.0), 40)
    return bins if bins[-1] > bins[0] else np.array([values.min() / 1.1, values.max() * 1.1])


def noise_plot(noise: NoiseRates | NoiseRegion, confidence: float) -> Figure:
    """Draw the noise rates with their intervals, or the region of what the log allows."""

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        if isinstance(noise, NoiseRegion):
            corners = np.array(_outline(noise))
            axes.fill(
                corners[:, 0], corners[:, 1], color=COLOURS[0], alpha=0.3, hatch="///", label="all that is possible"
            )
            most = float(corners.max())
        else:
            ends = noise.interval(confidence)
            low01, high01 = ends["rho01"]
            low10, high10 = ends["rho10"]
            axes.plot([low01, high01], [noise.rho10] * 2, color=COLOURS[0], linewidth=3)
            axes.plot([noise.rho01] * 2, [low10, high10], color=COLOURS[0], linewidth=3)
            axes.plot(noise.rho01, noise.rho10, "o", color=COLOURS[0], markersize=9, label="estimate and intervals")
            most = max(high01, high10)
        axes.set_xlim(0, min(most * 1.3 + 0.05, 1))
        axes.set_ylim(0, min(most * 1.3 + 0.05, 1))
        axes.set_xlabel("likes logged as dislikes (ρ01)")
        axes.set_ylabel("dislikes logged as likes (ρ10)")
        axes.set_aspect("equal")
        axes.legend(frameon=False, loc="upper right")
        plain_axes(axes, grid="both")

    return make_figure(draw, height=4.0, width=5.0)


def surface_plot(found: Sensitivity, name: str, measure: str, *, rates: NoiseRates | None = None) -> Figure:
    """Draw a recommender's estimate over the noise rates, with lines of equal value.

    Parameters
    ----------
    found, name
        What `sensitivity` gave, and which of its recommenders.
    measure
        What is estimated, in words.
    rates
        Rates to mark, such as those of an audit.
    """

    def draw(figure: Figure) -> None:
        axes, _ = _contours(figure, found, found.values(name), f"{_short(name)}: {measure}", "viridis")
        _mark(axes, rates)
        _legend_below(figure, axes)

    return make_figure(draw, height=4.4, width=5.6)


def break_even_plot(found: Sensitivity, first: str, second: str, *, rates: NoiseRates | None = None) -> Figure:
    """Draw which of two recommenders is better at which noise rates, and the line where they change places.

    Parameters
    ----------
    found, first, second
        What `sensitivity` gave, and two of its recommenders.
    rates
        Rates to mark, such as those of an audit.
    """

    def draw(figure: Figure) -> None:
        difference = found.values(first) - found.values(second)
        title = f"{_short(first, 22)} minus {_short(second, 22)}"
        axes, bar = _contours(figure, found, difference, title, "RdBu_r", centre=True)
        # Inaccuracy: where the difference is below 0 the first is better.
        bar.set_label(f"← {_short(first, 20)} better      {_short(second, 20)} better →", fontsize=9)
        line = found.break_even(first, second)
        if len(line):
            axes.plot(line[:, 0], line[:, 1], color="black", linewidth=3, label="equally good")
        _mark(axes, rates)
        _legend_below(figure, axes)

    return make_figure(draw, height=4.4, width=5.6)


def propensity_range_plot(found: Sensitivity, measure: str) -> Figure:
    """Draw how far wrong propensities could move each estimate."""

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        for place, (name, ranges) in enumerate(found.propensity_ranges.items()):
            gammas, low, high = np.array(ranges).T
            colour = COLOURS[place % len(COLOURS)]
            axes.fill_between(gammas, low, high, color=colour, alpha=0.2)
            axes.plot(gammas, low, color=colour, marker=MARKERS[place % len(MARKERS)], label=_short(name))
            axes.plot(gammas, high, color=colour, marker=MARKERS[place % len(MARKERS)])
        axes.set_xlabel("odds of being logged are wrong by up to a factor of")
        axes.set_ylabel(measure)
        _legend_below(figure, axes)
        plain_axes(axes, grid="both")

    return make_figure(draw, height=3.4, width=5.6)


def _contours(
    figure: Figure, found: Sensitivity, values: Array, title: str, colours: str, *, centre: bool = False
) -> tuple[Any, Any]:
    """Draw values over the noise rates; give the axes and the bar of colours."""
    sizes = [len(np.unique(rates)) for rates in (found.rho01, found.rho10)]
    if min(sizes) < 2:
        raise ParameterError(
            f"a map needs at least two values of rho01 and two of rho10; there are {sizes[0]} and {sizes[1]}"
        )
    if not np.isfinite(values).any():
        raise ParameterError(
            f"nothing to draw: rho01 + rho10 is above {MOST_RATE:g} at all rates of the map, which leaves no signal"
        )
    axes = figure.add_subplot()
    levels = _levels(values[np.isfinite(values)], centre=centre)
    filled = axes.contourf(found.rho01, found.rho10, values.T, levels=levels, cmap=colours)
    lines = axes.contour(found.rho01, found.rho10, values.T, levels=levels[::2], colors="black", linewidths=0.6)
    axes.clabel(lines, fmt=_number, fontsize=9)
    bar = figure.colorbar(filled, ax=axes, format=lambda value, _: _number(value))
    axes.set_title(title, fontsize=11, loc="left")
    axes.set_xlabel("likes logged as dislikes (ρ01)")
    axes.set_ylabel("dislikes logged as likes (ρ10)")
    return axes, bar


def _levels(finite: Array, *, centre: bool) -> Array:
    """Part what there is to see into twelve steps; a surface that is flat but for rounding gets a little room."""
    low, high = float(finite.min()), float(finite.max())
    least = max(abs(low), abs(high), 1e-6) * 1e-6
    if centre:
        reach = max(-low, high, least)
        return np.linspace(-reach, reach, 13)
    if high - low < least:
        low, high = (low + high) / 2 - least, (low + high) / 2 + least
    return np.linspace(low, high, 13)


def _number(value: float) -> str:
    """Show a level with three digits that count; what is 0 but for rounding as 0."""
    return f"{value:.3g}" if abs(value) > 1e-12 else "0"


def _mark(axes: Any, rates: NoiseRates | None) -> None:
    """Put a marker at the rates, if they are on the map."""
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    if rates is None or not (left <= rates.rho01 <= right and bottom <= rates.rho10 <= top):
        return
    axes.plot(
        rates.rho01,
        rates.rho10,
        "*",
        color="white",
        markeredgecolor="black",
        markersize=15,
        linestyle="none",
        label=f"rates of {rates.rho01:.3g} and {rates.rho10:.3g}" + (" (estimated)" if rates.covariance else ""),
        clip_on=False,
        zorder=5,
    )


def _legend_below(figure: Figure, axes: Any) -> None:
    """Say below the axes, where it covers nothing, what is drawn on it."""
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        columns = min(len(handles), 3)
        figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=10)


def _outline(region: NoiseRegion) -> list[tuple[float, float]]:
    """Return the region's corners in the order of its border."""
    most01, most10 = region.rho01_most, region.rho10_most
    if most01 + most10 <= MOST_RATE:
        return [(0, 0), (most01, 0), (most01, most10), (0, most10)]
    return [(0, 0), (most01, 0), (most01, MOST_RATE - most01), (MOST_RATE - most10, most10), (0, most10)]


def _short(name: str, most: int = 32) -> str:
    shown = name.encode("utf-8", "replace").decode()
    return shown if len(shown) <= most else shown[: most - 1] + "…"
