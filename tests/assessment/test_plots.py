"""Plots: any surface can be drawn, figures can be told apart, and nothing covers what it explains."""

from __future__ import annotations

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import verirec as vr
from refusals import check_refusal
from verirec.assessment.plots import break_even_plot, estimates_plot, propensity_range_plot, surface_plot
from verirec.estimation import Estimate, EstimateRange
from verirec.estimation.sensitivity import Sensitivity, Surface
from verirec.exceptions import ParameterError
from verirec.pages.figures import as_svg

AXIS = np.linspace(0, 0.45, 10)
RATES = vr.NoiseRates(0.2, 0.1)


def of(**surfaces):
    """Make a sensitivity of surfaces (t0, t1, t2)."""
    return Sensitivity("ome-dr", AXIS, AXIS, {name: Surface(*three) for name, three in surfaces.items()}, {})


CLOSE = of(sharp=(0.1, 0.2, 0.3), sharper=(0.1, 0.2001, 0.3005))


def drawn(figure):
    """Draw a figure without a warning, and give its texts."""
    FigureCanvasAgg(figure)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.canvas.draw()
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    ticks = [text.get_text() for axes in figure.axes for text in axes.get_yticklabels()]
    labels = [getattr(axes, f"get_{side}label")() for axes in figure.axes for side in "xy"]
    legends = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    return texts, ticks, labels, legends


@pytest.mark.parametrize("value", [0.0, 0.5, -3.0, 1e6, 1e-9, 0.1 + 1e-17])
def test_a_constant_surface_can_be_drawn(value):
    found = of(flat=(value, 0.0, 0.0), same=(value, 0.0, 0.0))
    drawn(surface_plot(found, "flat", "log loss"))
    drawn(break_even_plot(found, "flat", "same"))


def test_numbers_of_close_recommenders_can_be_told_apart():
    figure = break_even_plot(CLOSE, "sharp", "sharper")
    drawn(figure)
    on_bar = [text.get_text() for text in figure.axes[1].get_yticklabels()]
    on_lines = [text.get_text() for text in figure.axes[0].texts]
    assert len(set(on_bar)) == len(on_bar) > 5
    assert len(set(on_lines)) == len(on_lines) > 1
    assert max(abs(float(shown)) for shown in on_bar) < 0.01
    assert "0.00" not in on_bar + on_lines


def test_a_map_of_two_says_where_which_is_better():
    _, _, labels, legends = drawn(break_even_plot(CLOSE, "sharp", "sharper"))
    (bar,) = [label for label in labels if "better" in label]
    assert bar.startswith("← sharp better")
    assert bar.endswith("sharper better →")
    assert "equally good" in legends or not len(CLOSE.break_even("sharp", "sharper"))


@pytest.mark.parametrize("plot", ["surface", "pair"])
def test_given_rates_are_marked_and_named(plot):
    def draw(**options):
        if plot == "pair":
            return break_even_plot(CLOSE, "sharp", "sharper", **options)
        return surface_plot(CLOSE, "sharp", "log loss", **options)

    def stars(figure):
        return [line.get_xydata().tolist() for line in figure.axes[0].lines if line.get_marker() == "*"]

    assert stars(draw()) == []
    assert stars(draw(rates=RATES)) == [[[0.2, 0.1]]]
    assert "rates of 0.2 and 0.1" in drawn(draw(rates=RATES))[3]
    estimated = vr.NoiseRates(0.2, 0.1, ((1e-4, 0), (0, 1e-4)))
    assert "rates of 0.2 and 0.1 (estimated)" in drawn(draw(rates=estimated))[3]
    assert stars(draw(rates=vr.NoiseRates(0.6, 0.1))) == []


def test_the_legend_of_a_map_covers_none_of_it():
    figure = break_even_plot(CLOSE, "sharp", "sharper", rates=RATES)
    drawn(figure)
    assert figure.axes[0].get_legend() is None
    (legend,) = figure.legends
    assert legend.get_window_extent().y1 <= figure.axes[0].get_window_extent().y0


def test_a_range_is_drawn_by_its_ends_alone():
    one = Estimate(0.5, 0.01, (0.48, 0.52))
    wide = EstimateRange((0.3, 0.7), (0.25, 0.75), 0.95, one, one)
    figure = estimates_plot({"mine": {"as logged": one, "corrected": wide}}, {}, "inaccuracy")
    points = [line.get_xdata().tolist() for line in figure.axes[0].lines if line.get_marker() not in ("None", "")]
    assert points == [[0.5], [0.3, 0.7]]


def test_every_plot_is_a_picture_for_a_page():
    for figure in (surface_plot(CLOSE, "sharp", "loss", rates=RATES), break_even_plot(CLOSE, "sharp", "sharper")):
        assert str(as_svg(figure, "one")).startswith("<svg")


@pytest.mark.parametrize(
    ("rho01", "rho10", "message"),
    [
        ([0.2], AXIS, "at least two values of rho01 and two of rho10; there are 1 and 10"),
        (AXIS, [0.1], "at least two values of rho01 and two of rho10; there are 10 and 1"),
        ([0.2, 0.2], AXIS, "there are 1 and 10"),
        ([0.5, 0.6], [0.5, 0.6], r"nothing to draw: rho01 \+ rho10 is above 0.9 at all rates"),
    ],
)
def test_a_map_without_two_rates_of_each_kind_or_without_a_value_is_refused(rho01, rho10, message):
    found = replace(CLOSE, rho01=np.asarray(rho01), rho10=np.asarray(rho10))
    check_refusal(lambda: surface_plot(found, "sharp", "log loss"), ParameterError, message)
    check_refusal(lambda: break_even_plot(found, "sharp", "sharper"), ParameterError, message)


def test_a_map_of_two_by_two_rates_can_be_drawn():
    found = replace(CLOSE, rho01=np.array([0.1, 0.4]), rho10=np.array([0.1, 0.3]))
    drawn(surface_plot(found, "sharp", "log loss"))


def test_a_recommender_that_is_not_there_cannot_be_drawn():
    check_refusal(lambda: surface_plot(CLOSE, "nope", "log loss"), ParameterError, "no recommender 'nope'")


def test_the_legend_of_wrong_propensities_covers_no_line():
    ranges = [(1, 0.4, 0.4), (2, 0.3, 0.5)]
    figure = propensity_range_plot(SimpleNamespace(propensity_ranges={"a": ranges, "b": ranges}), "log loss")
    assert [axes.get_legend() for axes in figure.axes] == [None]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]
