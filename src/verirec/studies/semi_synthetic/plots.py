"""Pictures of the reproduction: Table 1 beside the paper's, Figure 1, and the robustness study."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from matplotlib.figure import Figure

from verirec.pages.figures import COLOURS, MARKERS, TRUTH_COLOUR, make_figure, plain_axes
from verirec.studies.semi_synthetic.words import rho_in_words, row_in_words, rows_of

_DASHES: Final = ("-", "--", "-.", ":", (0, (3, 1, 1, 1, 1, 1)))


def table1_plot(table: Any) -> Figure:
    """Draw Table 1: a panel a recommender, a line a method; ours with its spread, the paper's number beside it."""
    names = list(dict.fromkeys(table.matrix))
    rows = rows_of(table)

    def draw(figure: Figure) -> None:
        panels = figure.subplots(2, -(-len(names) // 2), sharey=True, squeeze=False).ravel()
        for axes, name in zip(panels, names, strict=False):
            cells = table[table.matrix == name].set_index(["method", "rho"]).loc[rows]
            heights = np.arange(len(rows))[::-1]
            axes.barh(heights, cells["mean"], xerr=cells["std"], height=0.62, color="#9ecae1", ecolor="#08519c")
            axes.plot(cells["paper"], heights, "D", color=TRUTH_COLOUR, markersize=4.5, linestyle="none")
            axes.set_yticks(heights, [row_in_words(*row) for row in rows], fontsize=9)
            axes.set_title(name, fontsize=11, loc="left")
            axes.set_xlim(left=0)
            axes.tick_params(axis="y", length=0)
            plain_axes(axes, grid="x")
        for axes in panels[-(-len(names) // 2) :]:
            axes.set_xlabel("relative error")
        handles = {"ours, with its standard deviation over seeds": panels[0].patches[0]}
        if table.paper.notna().any():
            handles["printed"] = panels[0].lines[-1]
        figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=2, frameon=False)

    return make_figure(draw, height=1.6 + 0.42 * len(rows), width=10.0)


def figure1_plot(table: Any) -> Figure:
    """Draw Figure 1: error of the estimated rates, and of each family of estimators, by the share of observed data."""
    families = (("EIB", "eib"), ("IPS", "ips"), ("DR", "dr"))

    def draw(figure: Figure) -> None:
        panels = figure.subplots(2, 2).ravel()
        sources = [rho for rho in dict.fromkeys(table.rho) if rho not in ("none", "true")]
        for place, (source, rate) in enumerate((source, rate) for source in sources for rate in ("rho01", "rho10")):
            part = table[(table.rho == source) & (table.method == "ome-dr")]
            marker = MARKERS[sources.index(source)]
            label = f"{'ρ01' if rate == 'rho01' else 'ρ10'}, {rho_in_words(source)}"
            filled = "full" if rate == "rho01" else "none"
            panels[0].plot(
                100 * part.observed,
                part[f"{rate}_error"],
                _DASHES[place % 2],
                marker=marker,
                fillstyle=filled,
                color=COLOURS[sources.index(source)],
                label=label,
            )
        panels[0].set_title("(a) error of the noise rates", fontsize=11, loc="left")
        panels[0].set_ylabel("mean absolute error")
        for letter, (axes, (family, name)) in zip("bcd", zip(panels[1:], families, strict=True), strict=True):
            _draw_family(axes, table, name)
            axes.set_title(f"({letter}) {family} and OME-{family}", fontsize=11, loc="left")
            axes.set_ylabel("relative error")
        for axes in panels:
            axes.set_xlabel("observed share of the grid, %")
            axes.set_ylim(bottom=0)
            plain_axes(axes, grid="both")
        panels[0].legend(frameon=False, fontsize=8.5)
        panels[2].legend(frameon=False, fontsize=8.5)

    return make_figure(draw, height=7.2, width=9.6)


def _draw_family(axes: Any, table: Any, name: str) -> None:
    rows = [(name, "none"), *((f"ome-{name}", rho) for rho in dict.fromkeys(table.rho) if rho != "none")]
    for place, (method, rho) in enumerate(rows):
        part = table[(table.method == method) & (table.rho == rho)]
        label = "no correction for noise" if rho == "none" else rho_in_words(rho)
        axes.errorbar(
            100 * part.observed,
            part["mean"],
            part["std"].fillna(0),
            label=label,
            capsize=2,
            linewidth=1.4,
            color=_colour(place),
            marker=MARKERS[(place - 2) % len(MARKERS)],
            linestyle=_DASHES[place % len(_DASHES)],
        )


def _colour(place: int) -> str:
    """Keep the sources' colours those of the first panel: no correction and the true rates come before them."""
    return ("#777777", "#000000", *COLOURS)[place]


def robustness_plot(table: Any) -> Figure:
    """Draw the robustness study: a number a setting and source of noise rates, the darker the worse."""
    settings = list(dict.fromkeys(table.setting))
    sources = list(dict.fromkeys(table.rho))
    values = table.pivot(index="setting", columns="rho", values="mean").loc[settings, sources].to_numpy()
    estimated = np.array([rho != "true" for rho in sources])
    best = estimated & (values.round(3) == values[:, estimated].min(axis=1, keepdims=True).round(3))

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        most = float(values.max())
        axes.imshow(values, cmap="Greys", vmin=0, vmax=most * 1.15, aspect="auto")
        for (row, column), value in np.ndenumerate(values):
            axes.text(
                column,
                row,
                f"{value:.3f}",
                ha="center",
                va="center",
                fontweight="bold" if best[row, column] else "normal",
                color="white" if value > 0.6 * most else "black",
            )
        axes.set_xticks(range(len(sources)), [rho_in_words(rho).replace(" ", "\n", 1) for rho in sources], fontsize=9)
        axes.set_yticks(range(len(settings)), settings)
        axes.axhline(len(settings) - 1.5, color="black", linewidth=1.2)
        axes.xaxis.tick_top()
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)

    return make_figure(draw, height=1.0 + 0.42 * len(settings), width=10.0)
