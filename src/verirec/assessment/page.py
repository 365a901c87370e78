"""The assessment's page."""

from __future__ import annotations

from datetime import date
from typing import Any, Final

import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure

import verirec
from verirec.assessment.error_plots import errors_plot
from verirec.assessment.findings import AssessedRecommender, Findings
from verirec.assessment.level_plots import levels_plot, transitions_plot
from verirec.assessment.plots import (
    break_even_plot,
    estimates_plot,
    noise_plot,
    propensity_plot,
    propensity_range_plot,
    surface_plot,
)
from verirec.assessment.range_sentences import measured, open_from, supposed
from verirec.assessment.remarks import about_taste, coverage
from verirec.assessment.sentences import conclusions
from verirec.estimation import Estimate, EstimateRange
from verirec.losses import GroupedNoiseRates, NoiseRates, NoiseRegion, TransitionMatrix, TransitionRegion
from verirec.nuisance.noise_rates import GroupErrors
from verirec.pages.figures import as_svg
from verirec.pages.rendering import render

SUSPECTS: Final = 20
SURFACES: Final = 3
MOST_ACTIVE: Final = 0.1

Kinds = dict[str, Estimate | EstimateRange]


def assessment_page(found: Findings, template: str = "assessment.html", **more: Any) -> str:
    """Return the self-contained HTML page."""
    measure = f"prediction inaccuracy ({measured(found)}; smaller is better)"
    kinds = {name: _kinds(one, found) for name, one in found.recommenders.items() if one.estimates is not None}
    return render(
        "verirec.assessment",
        template,
        found=found,
        conclusions=conclusions(found),
        coverage={name: coverage(found, one) for name, one in found.recommenders.items()},
        about_taste=about_taste(found),
        supposed=supposed(found),
        open_from=lambda one: open_from(one, found),
        kinds=kinds,
        rankings=(rankings := _rankings(found)),
        unsettled=next((name for name in _metrics(found) if name.startswith("ndcg")), "")
        if any(one is None for row in rankings.values() for one in row)
        else "",
        title=_title,
        metrics=[_title(name) for name in _metrics(found)],
        version=verirec.__version__,
        date=date.today().isoformat(),
        measure=measure,
        measured=measured(found),
        plots=_plots(found, kinds, measure),
        surfaces=_surfaces(found),
        suspects=_suspect_rows(found),
        crowd={name: _crowd(getattr(found.log, name), getattr(found.log, f"n_{name}")) for name in ("users", "items")},
        is_region=isinstance(found.noise, NoiseRegion),
        is_matrix=isinstance(found.noise, TransitionMatrix),
        is_bounded=isinstance(found.noise, TransitionRegion),
        is_grouped=isinstance(found.noise, GroupedNoiseRates),
        differ=found.errors.test.p_value if isinstance(found.errors, GroupErrors) else None,
        rate_ends=found.noise.interval(found.confidence) if isinstance(found.noise, NoiseRates) else {},
        most_active=MOST_ACTIVE,
        searches={name: _searched(one) for name, one in found.searches.items()},
        **more,
    )


HEADLINE_WORDS: Final[dict[str, str]] = {
    "survey-ppi": "by the survey",
    "audited-dr": "by the audit",
    "range": "range",
}
FOR_SELECTION: Final = "corrected for selection alone, if it depends on user and item only"
IF_NOT_TASTE: Final = "corrected, if selection depends on user and item only"


def _kinds(one: AssessedRecommender, found: Findings) -> Kinds:
    """Return a recommender's estimates by what they rest on; the one to go by last."""
    if one.estimates is None:
        return {}
    kinds: Kinds = {}
    if not found.clicks:
        corrected = IF_NOT_TASTE if found.noise is not None or one.corrected == "audited-dr" else FOR_SELECTION
        kinds = {"as logged": one.estimates["naive"], corrected: one.estimates[one.corrected]}
    if one.headline in HEADLINE_WORDS:
        supposing = f", if {supposed(found)}" if found.stars is None else ", whatever people think"
        assumed = supposing if one.headline == "range" else ""
        kinds[HEADLINE_WORDS[one.headline] + assumed] = one.estimates[one.headline]
    return kinds


def _rankings(found: Findings) -> dict[str, list[Estimate | EstimateRange | None]]:
    """Return the ranking metrics of each recommender that has them, in one order; `None` for what is not settled.

    That is what a survey has too few pairs for: where taste decides what is logged, the log's own answer is far off,
    and beside what the survey says of the others it would be believed.
    """
    metrics = _metrics(found)
    return {
        name: [_settled(one.ranking[metric], "survey" if found.best is not None else found.basis) for metric in metrics]
        for name, one in found.recommenders.items()
        if one.ranking is not None
    }


def _settled(estimate: Estimate | EstimateRange, basis: str) -> Estimate | EstimateRange | None:
    return None if basis == "survey" and estimate.diagnostics.get("source") != "survey" else estimate


def _metrics(found: Findings) -> list[str]:
    """Return the names of the ranking metrics; DCG, which NDCG says better, is left to the summary."""
    every = [one.ranking for one in found.recommenders.values() if one.ranking is not None]
    told = [name for name in every[0] if all(name in one for one in every)] if every else []
    return [name for name in told if not name.startswith("dcg")]


def _title(metric: str) -> str:
    """Write a metric as people do: AUC, NDCG@5, Recall@5."""
    return metric.upper() if metric.startswith(("auc", "ndcg")) else metric.capitalize()


def _plots(found: Findings, kinds: dict[str, Kinds], measure: str) -> dict[str, Markup | None]:
    """Draw propensities, estimates and noise; `None` where there is nothing to draw."""
    of_rows = np.asarray(found.propensities.at(found.log.users, found.log.items), dtype=np.float64)
    return {
        "propensities": as_svg(propensity_plot(of_rows, found.grid_propensities), "propensities"),
        "estimates": as_svg(estimates_plot(kinds, found.truth, measure), "estimates") if kinds else None,
        "errors": as_svg(errors_plot(found.errors, found.confidence), "errors") if found.errors else None,
        "noise": as_svg(drawn, "noise") if (drawn := _noise_drawn(found)) else None,
        "levels": None if found.stars is None else as_svg(levels_plot(found.stars, found.log.levels or ()), "levels"),
    }


def _noise_drawn(found: Findings) -> Figure | None:
    """Draw rates, a region of them, or a matrix between levels."""
    if isinstance(found.noise, TransitionMatrix):
        return transitions_plot(found.noise, found.log.levels or ())
    return noise_plot(found.noise, found.confidence) if isinstance(found.noise, NoiseRates | NoiseRegion) else None


def _surfaces(found: Findings) -> list[dict[str, Any]]:
    """Draw the surfaces: of every two recommenders where they change places, or of the only one."""
    varied = found.sensitivity
    if varied is None:
        return []
    rates, loss = found.noise if isinstance(found.noise, NoiseRates) else None, f"{found.loss} loss"
    ranges = as_svg(propensity_range_plot(varied, f"{loss}, self-normalised"), "range")
    drawn: list[dict[str, Any]] = [{"title": "Wrong propensities", "plot": ranges, "kind": "propensities"}]
    pairs = [(one.first, one.second) for one in found.comparisons if {one.first, one.second} <= set(varied.surfaces)]
    for first, second in pairs[:SURFACES]:
        plot = as_svg(break_even_plot(varied, first, second, rates=rates), f"pair{len(drawn)}")
        title = f"{first} or {second}, at other noise rates"
        drawn.append({"title": title, "plot": plot, "kind": "pair", "first": first, "second": second})
    for name in [] if pairs else list(varied.surfaces)[:SURFACES]:
        plot = as_svg(surface_plot(varied, name, loss, rates=rates), f"surface{len(drawn)}")
        drawn.append({"title": f"{name}, at other noise rates", "plot": plot, "kind": "one", "first": name})
    return drawn


def _searched(search: dict[str, Any]) -> dict[str, Any]:
    """Return what a search tried, best first, a row each, with the columns that it has."""
    trials, ends = search["trials"], ("loss", "gain", "standard_error")
    names = [name for name in dict.fromkeys(name for trial in trials for name in trial) if name not in ends]
    order = sorted(range(len(trials)), key=lambda number: float(trials[number]["loss"]))
    rows = [
        {
            "chosen": number == search["chosen"],
            "cells": [trials[number].get(name, "") for name in names],
            "numbers": [trials[number][name] for name in ends],
        }
        for number in order
    ]
    return search | {"names": names, "rows": rows}


def _suspect_rows(found: Findings) -> list[dict[str, Any]]:
    if found.suspects is None:
        return []
    rows: list[dict[str, Any]] = found.suspects.to_frame(SUSPECTS).to_dict("records")
    return rows


def _crowd(positions: Any, size: int) -> float:
    """Return the share of the rows that the most active tenth has."""
    counts = np.sort(np.bincount(positions, minlength=size))[::-1]
    return float(counts[: max(1, round(MOST_ACTIVE * size))].sum() / counts.sum())
