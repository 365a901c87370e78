"""Pictures of who errs."""

from __future__ import annotations

from typing import Final

import numpy as np
from matplotlib.figure import Figure

from verirec.nuisance.noise_rates import ErrorCurve, GroupErrors
from verirec.pages.figures import COLOURS, MARKERS, make_figure, plain_axes, tell

_MOST_GROUPS: Final = 20
_LIKES: Final = "likes logged as dislikes (ρ01)"
_DISLIKES: Final = "dislikes logged as likes (ρ10)"


def errors_plot(errors: GroupErrors | ErrorCurve, confidence: float = 0.95) -> Figure:
    """Draw how often labels are wrong, along a score or by group, with intervals.

    Parameters
    ----------
    errors
        What `who_errs`, `AuditErrors` or `AuditErrorCurve` found.
    confidence
        Of bands and intervals.
    """
    return _curve_plot(errors, confidence) if isinstance(errors, ErrorCurve) else _groups_plot(errors, confidence)


def _curve_plot(curve: ErrorCurve, confidence: float) -> Figure:
    at = np.linspace(*curve.span, 200)
    shares = curve.shares()

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        for place, (name, label) in enumerate((("rho01", _LIKES), ("rho10", _DISLIKES))):
            band = getattr(curve, name)(at, confidence)
            axes.fill_between(at, band.low, band.high, color=COLOURS[place], alpha=0.2, linewidth=0)
            axes.plot(at, band.values, color=COLOURS[place], linestyle=("-", "--")[place], linewidth=2, label=label)
            for score, share, rows in shares[name]:
                (point,) = axes.plot(score, share, MARKERS[place], color=COLOURS[place], markersize=6, linestyle="none")
                tell(point, f"{label}: {share:.1%} of {rows:.0f} audited pairs with scores around {score:.2f}")
        axes.set_ylim(0, None)
        axes.set_xlabel("score of the pair")
        axes.set_ylabel("share of wrong labels")
        plain_axes(axes)
        figure.legend(loc="outside lower center", ncols=2, frameon=False)

    return make_figure(draw, height=3.8)


def _groups_plot(errors: GroupErrors, confidence: float) -> Figure:
    counts = errors.audited.sum(axis=2)
    shown = np.sort(np.argsort(-counts.sum(axis=1), kind="stable")[:_MOST_GROUPS])
    low, high = errors.interval(confidence)
    levels = [(1, _LIKES), (0, _DISLIKES)]
    if errors.log.levels is not None:
        levels = [(place, f"true level {level:g}") for place, level in enumerate(errors.log.levels)]

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        step = 0.8 / (len(levels) + 1)
        for place, (level, label) in enumerate(levels):
            heights = np.arange(len(shown))[::-1] + step * ((len(levels) - 1) / 2 - place)
            colour, marker = COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]
            axes.hlines(heights, low[shown, level], high[shown, level], color=colour, linewidth=2)
            axes.plot(errors.wrong[shown, level], heights, marker, color=colour, linestyle="none", label=label)
        axes.set_yticks(np.arange(len(shown))[::-1], [errors.names[group] for group in shown])
        axes.set_ylim(-0.6, len(shown) - 0.4)
        axes.set_xlim(0, None)
        axes.set_xlabel("share of wrong labels")
        plain_axes(axes, grid="x")
        axes.tick_params(axis="y", length=0)
        figure.legend(loc="outside lower center", ncols=2, frameon=False)

    return make_figure(draw, height=1.4 + 0.5 * len(shown) * max(1.0, len(levels) / 3))
