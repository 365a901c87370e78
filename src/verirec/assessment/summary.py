"""The assessment's figures for machines."""

from __future__ import annotations

from typing import Any

import numpy as np

from verirec.assessment.constants import constant_loss
from verirec.assessment.findings import Comparison, Findings
from verirec.assessment.sentences import conclusions
from verirec.losses import NoiseRates, NoiseRegion, TransitionMatrix, TransitionRegion


def assessment_summary(found: Findings) -> dict[str, Any]:
    """Return the result as JSON has it: the truth where it is known, noise, propensities, and every estimate."""
    return {
        "truth": dict(found.truth) or None,
        "loss": found.loss,
        "confidence": found.confidence,
        "log": {"rows": len(found.log), "users": found.log.n_users, "items": found.log.n_items},
        "noise_rates": _noise_numbers(found),
        "who_errs": None if found.errors is None else found.errors.to_dict(found.confidence),
        "propensity": found.propensity_diagnostics.to_dict(),
        "selection": _selection_numbers(found),
        **_labels_in_numbers(found),
        "recommenders": {
            name: {estimator: estimate.to_dict() for estimator, estimate in (one.estimates or {}).items()}
            for name, one in found.recommenders.items()
        },
        "ranking": {
            name: {
                metric: estimate.to_dict() | {"source": estimate.diagnostics.get("source", "log")}
                for metric, estimate in one.ranking.items()
            }
            for name, one in found.recommenders.items()
            if one.ranking is not None
        },
        "basis": found.basis,
        "headline": headlines(found),
        "constant": None if (constant := constant_loss(found)) is None else constant._asdict(),
        "verdicts": verdicts(found),
        "ranking_comparisons": [
            {
                "first": one.first,
                "second": one.second,
                "metric": one.metric,
                "better": one.established,
                "established": one.established is not None,
                "basis": one.basis,
                "differences": {name: estimate.to_dict() for name, estimate in one.estimates.items()},
            }
            for one in found.ranking_comparisons
        ],
        "comparisons": [_comparison(one) for one in found.comparisons],
        "sensitivity": _sensitivity_numbers(found),
        "suspect_labels_expected": None if found.suspects is None else float(found.suspects.probabilities.sum()),
        "pairs_to_ask_about": _asked_about(found),
        "trained": list(found.trained),
        "calibrated": dict(found.calibrated),
        "calibrated_by_survey": dict(found.calibrated_by_survey),
        "searches": dict(found.searches),
        "conclusions": conclusions(found),
        "warnings": list(found.warnings),
    }


def headlines(found: Findings) -> dict[str, dict[str, Any]]:
    """Return the estimate to go by of each recommender."""
    return {
        name: {"estimator": one.headline} | one.estimates[one.headline].to_dict()
        for name, one in found.recommenders.items()
        if one.estimates is not None
    }


def verdicts(found: Findings) -> list[dict[str, Any]]:
    """Return, for every two recommenders, which is better, whether that is established, and what it rests on.

    With a range there is the delta from which it is not established, too (`Comparison.not_established_from`).
    """
    return [
        {
            "first": one.first,
            "second": one.second,
            "better": one.established,
            "established": one.established is not None,
            "basis": one.basis,
        }
        | ({"not_established_from": one.not_established_from} if one.basis == "range" else {})
        for one in found.comparisons
    ]


def _asked_about(found: Findings) -> int | None:
    if found.stars is not None:
        return None if found.stars.asking is None else found.stars.asking.pairs
    return None if found.plan is None else len(found.plan)


def _selection_numbers(found: Findings) -> dict[str, Any]:
    return {
        "range": None if found.stars is not None else [found.selection.low, found.selection.high],
        "surveyed": None if found.survey is None else len(found.survey),
        "delta": None if found.strength is None else found.strength.to_dict(),
    }


def _labels_in_numbers(found: Findings) -> dict[str, Any]:
    """Return the share of likes; or, of levels, their mean and the share of each."""
    means = {"as_logged": found.liked_as_logged, "corrected": found.liked_corrected.to_dict()}
    stars = found.stars
    if stars is None:
        return {"liked": means, "stars": None}
    shares = {"as_logged": list(stars.logged), "corrected": [one.to_dict() for one in stars.corrected] or None}
    return {"liked": None, "stars": {"levels": list(found.log.levels or ()), "mean": means, "shares": shares}}


def _comparison(one: Comparison) -> dict[str, Any]:
    return {
        "first": one.first,
        "second": one.second,
        "deciding": one.deciding.to_dict(),
        "basis": one.basis,
        "naive": None if one.naive is None else one.naive.to_dict(),
        "corrected": None if one.corrected is None else one.corrected.to_dict(),
        "check": None if one.check is None else one.check.to_dict(),
        "established": one.established,
        "flip_factor": one.flip_factor if np.isfinite(one.flip_factor) else None,
    }


def _noise_numbers(found: Findings) -> dict[str, Any]:
    numbers: dict[str, Any] = {"source": found.noise_source}
    if isinstance(found.noise, NoiseRates):
        ends = found.noise.interval(found.confidence)
        return numbers | {
            "rho01": found.noise.rho01,
            "rho10": found.noise.rho10,
            "intervals": {name: list(bounds) for name, bounds in ends.items()},
        }
    if isinstance(found.noise, NoiseRegion):
        return numbers | {"rho01": [0.0, found.noise.rho01_most], "rho10": [0.0, found.noise.rho10_most]}
    if isinstance(found.noise, TransitionMatrix):
        return numbers | {"transitions": found.noise.matrix.tolist()}
    if isinstance(found.noise, TransitionRegion):
        return numbers | {"most": found.noise.most}
    if found.noise is None:
        return numbers
    return numbers | {"groups": [{"rho01": of.rho01, "rho10": of.rho10} for of in found.noise.rates]}


def _sensitivity_numbers(found: Findings) -> dict[str, Any] | None:
    varied = found.sensitivity
    if varied is None:
        return None
    return {
        "surfaces": {name: surface._asdict() for name, surface in varied.surfaces.items()},
        "propensity_ranges": {name: [list(one) for one in ranges] for name, ranges in varied.propensity_ranges.items()},
    }
