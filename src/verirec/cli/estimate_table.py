"""What verirec estimate prints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from verirec.cli.judging import Judged
from verirec.cli.options import EstimateOptions
from verirec.data import FeedbackLog
from verirec.estimation import Estimate, EstimateRange, Estimates
from verirec.losses import NoiseRates, NoiseRegion, TransitionMatrix, TransitionRegion
from verirec.nuisance.noise_rates import AuditSample, ErrorCurve, WhoErrs
from verirec.nuisance.propensities import Propensities

SIDE_BY_SIDE: Final = 2
"""Recommenders whose figures fit a line of 80 characters."""
_NAMES: Final = {"rmse": "root mean squared error", "mae": "mean absolute error", "rps": "ranked probability score"}
"""What is no loss by its name."""
_RESTS_ON: Final = {
    "survey-ppi": "which rests on the survey's own labels",
    "survey": "which rests on the survey's own labels",
    "audited-dr": "which has the audit's own labels in it: it is right whatever the noise is, if the propensities are",
}
"""Estimates to go by that rest on labels in hand, and how."""
_SHOWN: Final = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Quantiles of the audited pairs' scores at which a curve is told."""


@dataclass(frozen=True)
class Noise:
    """The noise rates, where they come from, and the audit that told them, if one did."""

    rates: NoiseRates | NoiseRegion | TransitionMatrix | TransitionRegion | None
    source: str
    audit: AuditSample | None = None


def summary(
    results: dict[str, Judged],
    noise: Noise,
    propensities: Propensities,
    log: FeedbackLog,
    errors: WhoErrs | None = None,
) -> dict[str, Any]:
    """Return all estimates and what they rest on, as JSON has it."""
    rates: dict[str, Any] = {"source": noise.source}
    if isinstance(noise.rates, NoiseRates):
        rates |= {"rho01": noise.rates.rho01, "rho10": noise.rates.rho10, "covariance": noise.rates.covariance}
    elif isinstance(noise.rates, NoiseRegion):
        rates |= {"rho01": [0.0, noise.rates.rho01_most], "rho10": [0.0, noise.rates.rho10_most]}
    elif isinstance(noise.rates, TransitionRegion):
        rates |= {"form": noise.rates.form, "wrong": [0.0, noise.rates.most], "cut_off": noise.rates.cut_off}
    elif isinstance(noise.rates, TransitionMatrix):
        rates |= {"transitions": noise.rates.matrix.tolist(), "form": noise.rates.diagnostics["form"]}
    return {
        "noise_rates": rates,
        "who_errs": None if errors is None else errors.to_dict(),
        "propensity": propensities.diagnostics(log).to_dict(),
        "recommenders": {name: _plain(one.losses) for name, one in results.items()},
        "calibrated": {name: one.calibrated for name, one in results.items() if one.calibrated and not one.by_survey},
        "calibrated_by_survey": {name: one.calibrated for name, one in results.items() if one.by_survey},
        "ranking": {name: _with_sources(one.ranking) for name, one in results.items()},
    }


def _plain(estimates: Estimates | None) -> dict[str, Any]:
    return {} if estimates is None else {name: one.to_dict() for name, one in estimates.items()}


def _with_sources(ranking: Estimates | None) -> dict[str, Any]:
    return {} if ranking is None else {name: one.to_dict() | {"source": _source(one)} for name, one in ranking.items()}


def _calibrations(results: dict[str, Judged]) -> Iterator[str]:
    """Say what made probabilities of scores."""
    for name, one in results.items():
        count = f"{one.calibrated:,}"
        if one.by_survey:
            yield f"{name} was calibrated by the survey's {count} pairs, each judged by a curve of the others."
        elif one.calibrated:
            yield f"{name}'s scores are not probabilities; {count} rows made them such, and the others judge them."


def show(
    results: dict[str, Judged],
    noise: Noise,
    log: FeedbackLog,
    how: EstimateOptions,
    errors: WhoErrs | None = None,
) -> None:
    """Print tables of all estimates, and what they rest on."""
    console = Console(markup=False, highlight=False)
    console.print(f"{log.n_users:,} users x {log.n_items:,} items, {len(log):,} rows", soft_wrap=True)
    console.print(f"Noise rates: {_in_words(noise, how.confidence)}", soft_wrap=True)
    if errors is not None:
        console.print(_who_errs(errors, how.confidence))
    losses = {name: one.losses for name, one in results.items() if one.losses is not None}
    if losses:
        console.print(
            f"True prediction inaccuracy ({_NAMES.get(how.loss, f'{how.loss} loss')}, smaller is better), "
            f"{how.confidence:.0%} intervals",
            soft_wrap=True,
        )
        console.print(_table(losses, "Estimator"))
    for told in _calibrations(results):
        console.print(told, soft_wrap=True)
    rankings = {name: _shown(one.ranking) for name, one in results.items() if one.ranking is not None}
    if rankings:
        console.print(
            f"How well all items are ranked, rated or not (larger is better), {how.confidence:.0%} intervals",
            soft_wrap=True,
        )
        console.print(_table(rankings, "Metric"))
        for assumed in dict.fromkeys(_assumed(one.ranking) for one in results.values() if one.ranking is not None):
            if assumed:
                console.print(
                    f"The ranking is by clicks alone, without a true label, and right only if {assumed}: where taste "
                    "decides what is shown it can prefer the worse recommender.",
                    soft_wrap=True,
                )
                console.print('"naive" takes the clicks as they are.', soft_wrap=True)
                if not losses:
                    told = "Clicks have no dislikes, and so tell no losses: scores of all pairs and a --survey would."
                    console.print(told, soft_wrap=True)
    firm = [name for name in _RESTS_ON if any(one.headline == name for one in losses.values())]
    for headline in firm:
        console.print(f"Go by {headline}, {_RESTS_ON[headline]}.", soft_wrap=True)
    if losses and not firm and noise.rates is None:
        hint = "Labels are taken as true; give --rho01 and --rho10, --audit, --reask or --region to correct them."
        console.print(hint, soft_wrap=True)


def _source(one: Estimate | EstimateRange) -> str:
    """Say whether a ranking metric rests on a survey, on an audit or on the log."""
    return str((one.lowest if isinstance(one, EstimateRange) else one).diagnostics["source"])


def _assumed(ranking: Estimates) -> str:
    """Return what a ranking by clicks assumes; empty of others."""
    first = next(iter(ranking.values()))
    return str(first.diagnostics.get("assumes", "")) if isinstance(first, Estimate) else ""


def _shown(ranking: Estimates) -> Estimates:
    """Leave DCG out, which NDCG says as a share; beside what rests on a survey, say what rests on something else."""
    kept = {name: one for name, one in ranking.items() if not name.startswith("dcg") or _source(one) == "clicks"}
    if len({_source(one) for one in kept.values()}) > 1:
        kept = {name if _source(one) == "survey" else f"{name} ({_source(one)})": one for name, one in kept.items()}
    return Estimates(kept, ranking.of)


def _table(results: dict[str, Estimates], what: str) -> Table:
    """Put recommenders side by side, or below each other where there are too many for a line."""
    table = Table()
    if len(results) > SIDE_BY_SIDE:
        table.add_column("Recommender")
    table.add_column(what, no_wrap=True)
    if len(results) > SIDE_BY_SIDE:
        table.add_column("Estimate [interval]", no_wrap=True, justify="right")
        for name, estimates in results.items():
            for estimator, one in estimates.items():
                table.add_row(Text(name), estimator, _cell(one))
        return table
    for name in results:
        table.add_column(Text(name), justify="right", no_wrap=True)
    for estimator in dict.fromkeys(name for estimates in results.values() for name in estimates):
        table.add_row(estimator, *(_cell(estimates.get(estimator)) for estimates in results.values()))
    return table


def _cell(one: Any) -> str:
    if one is None:
        return ""
    low, high = one.interval
    if isinstance(one, EstimateRange):
        return f"{one.range[0]:.4f} to {one.range[1]:.4f} [{low:.4f}, {high:.4f}]"
    return f"{one.value:.4f} [{low:.4f}, {high:.4f}]"


def _who_errs(errors: WhoErrs, confidence: float) -> Table:
    """Return rates of wrong labels with their intervals: by group, or at some scores."""
    if isinstance(errors, ErrorCurve):
        at = np.quantile(errors.audited[0], _SHOWN)
        table = Table("score", "rho01", "rho10", title="Who errs, along the score")
        bands = [one(at, confidence) for one in (errors.rho01, errors.rho10)]
        for place, score in enumerate(at):
            shown = [f"{one.values[place]:.3f} [{one.low[place]:.3f}, {one.high[place]:.3f}]" for one in bands]
            table.add_row(f"{score:.3f}", *shown)
        return table
    table = Table("group", "true label", "audited", "wrong", "rate", title=f"Who errs (p = {errors.test.p_value:.3g})")
    for row in errors.to_frame(confidence).itertuples():
        rate = f"{row.rate:.3f} [{row.low:.3f}, {row.high:.3f}]"
        table.add_row(row.group, f"{row.true_label:g}", f"{row.audited:.0f}", f"{row.wrong:.0f}", rate)
    return table


def _in_words(noise: Noise, confidence: float) -> str:
    if isinstance(noise.rates, NoiseRates):
        ends = noise.rates.interval(confidence)
        shown = [
            f"{name} {getattr(noise.rates, name):.3f}"
            + (f" [{ends[name][0]:.3f}, {ends[name][1]:.3f}]" if noise.rates.covariance else "")
            for name in ("rho01", "rho10")
        ]
        return f"{', '.join(shown)} ({noise.source})"
    if isinstance(noise.rates, TransitionMatrix):
        kept = float(np.diag(noise.rates.matrix).mean())
        return f"{kept:.1%} of levels kept on average ({noise.source})"
    if isinstance(noise.rates, TransitionRegion):
        return f"up to {noise.rates.most:.1%} of levels taken for others on average ({noise.source})"
    if isinstance(noise.rates, NoiseRegion):
        return f"rho01 up to {noise.rates.rho01_most:.3f}, rho10 up to {noise.rates.rho10_most:.3f} ({noise.source})"
    return noise.source
