"""The demo's page and its machine-readable summary."""

from __future__ import annotations

from typing import Any

from verirec.experiments.demo import SURVEY_PER_ITEM, Demo
from verirec.reports.page import render
from verirec.reports.plots import estimates_plot


def demo_summary(demo: Demo) -> dict[str, Any]:
    """Give the result as JSON has it: the truth, the true nuisances, and each recommender's estimates."""
    rates, propensities = demo.world.noise_rates, demo.world.propensities
    return {
        "truth": demo.truth,
        "noise_rates": {"rho01": rates.rho01, "rho10": rates.rho10, "source": "true"},
        "propensity": {
            "source": "true",
            "mean": float(propensities.mean()),
            "least": float(propensities.min()),
            "most": float(propensities.max()),
        },
        "recommenders": {
            name: {
                estimator: {"value": estimate.value, "low": estimate.interval[0], "high": estimate.interval[1]}
                for estimator, estimate in estimates.items()
            }
            for name, estimates in demo.estimates.items()
        },
    }


def demo_page(demo: Demo) -> str:
    """Give the self-contained HTML page."""
    naive = {name: estimates["naive"] for name, estimates in demo.estimates.items()}
    return render(
        "demo.html",
        demo=demo,
        naive=naive,
        liked_in_log=float(demo.world.log.labels.mean()),
        liked_in_truth=float(demo.world.true_labels.mean()),
        plot=estimates_plot(naive, demo.truth),
        survey=SURVEY_PER_ITEM,
    )
