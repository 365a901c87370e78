"""The audit's page and its machine-readable summary."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from verirec.experiments.audit import LogAudit
from verirec.losses import GroupedNoiseRates, NoiseRates, NoiseRegion
from verirec.reports.page import render
from verirec.reports.plots import (
    as_svg,
    break_even_plot,
    estimates_plot,
    noise_plot,
    propensity_plot,
    propensity_range_plot,
    surface_plot,
)
from verirec.reports.sentences import conclusions, coverage

SUSPECTS: Final = 20
SURFACES: Final = 3
MOST_ACTIVE: Final = 0.1


def audit_summary(audit: LogAudit) -> dict[str, Any]:
    """Return the result as JSON has it: the truth where it is known, noise, propensities, and every estimate."""
    return {
        "truth": dict(audit.truth) or None,
        "loss": audit.loss,
        "confidence": audit.confidence,
        "log": {"rows": len(audit.log), "users": audit.log.n_users, "items": audit.log.n_items},
        "noise_rates": _noise_numbers(audit),
        "propensity": audit.propensity_diagnostics.to_dict(),
        "liked": {"as_logged": audit.liked_as_logged, "corrected": audit.liked_corrected.to_dict()},
        "recommenders": {
            name: {estimator: estimate.to_dict() for estimator, estimate in one.estimates.items()}
            for name, one in audit.recommenders.items()
        },
        "comparisons": [
            {
                "first": one.first,
                "second": one.second,
                "naive": one.naive.to_dict(),
                "corrected": one.corrected.to_dict(),
                "check": None if one.check is None else one.check.to_dict(),
                "established": one.established,
                "flip_factor": one.flip_factor if np.isfinite(one.flip_factor) else None,
            }
            for one in audit.comparisons
        ],
        "sensitivity": _sensitivity_numbers(audit),
        "suspect_labels_expected": None if audit.suspects is None else float(audit.suspects.probabilities.sum()),
        "pairs_to_ask_about": None if audit.plan is None else len(audit.plan),
        "conclusions": conclusions(audit),
        "warnings": list(audit.warnings),
    }


def audit_page(audit: LogAudit, template: str = "audit.html", **more: Any) -> str:
    """Return the self-contained HTML page."""
    measure = f"prediction inaccuracy ({audit.loss} loss; smaller is better)"
    kinds = {
        name: {
            "as logged": one.estimates["naive"],
            "corrected for selection": one.estimates[one.selection_only],
            "corrected for selection and noise": one.estimates[one.main],
        }
        for name, one in audit.recommenders.items()
    }
    of_rows = audit.propensities.at(audit.log.users, audit.log.items)
    plots = {
        "propensities": as_svg(
            propensity_plot(np.asarray(of_rows, dtype=np.float64), audit.grid_propensities), "propensities"
        ),
        "estimates": as_svg(estimates_plot(kinds, audit.truth, measure), "estimates") if kinds else None,
        "noise": None
        if isinstance(audit.noise, GroupedNoiseRates)
        else as_svg(noise_plot(audit.noise, audit.confidence), "noise"),
    }
    return render(
        template,
        audit=audit,
        conclusions=conclusions(audit),
        coverage={name: coverage(audit, one) for name, one in audit.recommenders.items()},
        kinds=kinds,
        measure=measure,
        plots=plots,
        surfaces=_surfaces(audit),
        suspects=_suspect_rows(audit),
        crowd={
            "users": _crowd(audit.log.users, audit.log.n_users),
            "items": _crowd(audit.log.items, audit.log.n_items),
        },
        is_region=isinstance(audit.noise, NoiseRegion),
        is_grouped=isinstance(audit.noise, GroupedNoiseRates),
        rate_ends=audit.noise.interval(audit.confidence) if isinstance(audit.noise, NoiseRates) else {},
        most_active=MOST_ACTIVE,
        **more,
    )


def _noise_numbers(audit: LogAudit) -> dict[str, Any]:
    numbers: dict[str, Any] = {"source": audit.noise_source}
    if isinstance(audit.noise, NoiseRates):
        ends = audit.noise.interval(audit.confidence)
        return numbers | {
            "rho01": audit.noise.rho01,
            "rho10": audit.noise.rho10,
            "intervals": {name: list(bounds) for name, bounds in ends.items()},
        }
    if isinstance(audit.noise, NoiseRegion):
        return numbers | {"rho01": [0.0, audit.noise.rho01_most], "rho10": [0.0, audit.noise.rho10_most]}
    return numbers | {"groups": [{"rho01": of.rho01, "rho10": of.rho10} for of in audit.noise.rates]}


def _sensitivity_numbers(audit: LogAudit) -> dict[str, Any] | None:
    found = audit.sensitivity
    if found is None:
        return None
    return {
        "surfaces": {name: surface._asdict() for name, surface in found.surfaces.items()},
        "propensity_ranges": {name: [list(one) for one in ranges] for name, ranges in found.propensity_ranges.items()},
    }


def _surfaces(audit: LogAudit) -> list[dict[str, Any]]:
    """Draw the surfaces: of every two recommenders where they change places, or of the only one."""
    found = audit.sensitivity
    if found is None:
        return []
    rates, loss = audit.noise if isinstance(audit.noise, NoiseRates) else None, f"{audit.loss} loss"
    drawn = [
        {
            "title": "Wrong propensities",
            "plot": as_svg(propensity_range_plot(found, f"{loss}, self-normalised"), "range"),
            "kind": "propensities",
        }
    ]
    pairs = [(one.first, one.second) for one in audit.comparisons if {one.first, one.second} <= set(found.surfaces)]
    for first, second in pairs[:SURFACES]:
        drawn.append(
            {
                "title": f"{first} or {second}, at other noise rates",
                "plot": as_svg(break_even_plot(found, first, second, rates=rates), f"pair{len(drawn)}"),
                "kind": "pair",
                "first": first,
                "second": second,
            }
        )
    if not pairs:
        for name in list(found.surfaces)[:SURFACES]:
            drawn.append(
                {
                    "title": f"{name}, at other noise rates",
                    "plot": as_svg(surface_plot(found, name, loss, rates=rates), f"surface{len(drawn)}"),
                    "kind": "one",
                    "first": name,
                }
            )
    return drawn


def _suspect_rows(audit: LogAudit) -> list[dict[str, Any]]:
    if audit.suspects is None:
        return []
    rows: list[dict[str, Any]] = audit.suspects.to_frame(SUSPECTS).to_dict("records")
    return rows


def _crowd(positions: Any, size: int) -> float:
    """Return the share of the rows that the most active tenth has."""
    counts = np.sort(np.bincount(positions, minlength=size))[::-1]
    return float(counts[: max(1, round(MOST_ACTIVE * size))].sum() / counts.sum())
