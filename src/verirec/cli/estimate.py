"""verirec estimate."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from verirec.checks import one_of
from verirec.cli.options import (
    PREDICTIONS_HELP,
    PROPENSITIES,
    AllItems,
    AllUsers,
    AuditFile,
    Clip,
    Confidence,
    Delimiter,
    Duplicates,
    Item,
    LogFile,
    Loss,
    PositiveFrom,
    Propensity,
    PropensityColumn,
    Rating,
    Rho01,
    Rho10,
    Sample,
    ScoreColumn,
    Seed,
    Timestamp,
    User,
    fitted_propensities,
    given_rates,
    load_log,
    named_files,
    read_audit,
    read_recommender,
)
from verirec.data import FeedbackLog
from verirec.estimation import EstimateRange, Estimates, estimate
from verirec.exceptions import ParameterError
from verirec.losses import NoiseRates, NoiseRegion
from verirec.nuisance.noise_rates import identified_region, rates_from_audit
from verirec.nuisance.propensities import Propensities

SIDE_BY_SIDE: Final = 2
"""Recommenders whose figures fit a line of 80 characters."""


@dataclass(frozen=True)
class _Noise:
    """The noise rates, and where they come from."""

    rates: NoiseRates | NoiseRegion | None
    source: str


app = typer.Typer(add_completion=False)


@app.command("estimate")
def estimate_command(
    log: LogFile,
    predictions: Annotated[list[str], typer.Option(help=PREDICTIONS_HELP)],
    rho01: Rho01 = None,
    rho10: Rho10 = None,
    audit: AuditFile = None,
    region: Annotated[
        bool, typer.Option("--region", help="Without rates or audit: the range over all rates that the log allows.")
    ] = False,
    user: User = None,
    item: Item = None,
    rating: Rating = None,
    positive_from: PositiveFrom = None,
    timestamp: Timestamp = None,
    duplicates: Duplicates = "error",
    delimiter: Delimiter = None,
    all_users: AllUsers = None,
    all_items: AllItems = None,
    score_column: ScoreColumn = None,
    propensity: Propensity = "logistic",
    propensity_column: PropensityColumn = None,
    estimators: Annotated[str | None, typer.Option(help="Names parted by commas, or all.")] = None,
    loss: Loss = "log",
    imputation: Annotated[str, typer.Option(help="constant or model.")] = "constant",
    interval: Annotated[str, typer.Option(help="delta or bootstrap (over users).")] = "delta",
    confidence: Confidence = 0.95,
    clip: Clip = None,
    sample: Sample = None,
    seed: Seed = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """Estimate how good each recommender really is.

    Example: verirec estimate ratings.csv --positive-from 4 --predictions mine=scores.csv --rho01 .2 --rho10 .1
    """
    files = named_files(predictions)
    one_of("--propensity", propensity, PROPENSITIES)
    with Console(stderr=True).status("Reading the log"):
        table = load_log(
            log,
            user=user,
            item=item,
            rating=rating,
            positive_from=positive_from,
            propensity=propensity_column,
            timestamp=timestamp,
            duplicates=duplicates,
            delimiter=delimiter,
            all_users=all_users,
            all_items=all_items,
        )
    propensities = fitted_propensities("logged" if propensity_column else propensity, table)
    columns = {"user": user, "item": item}
    noise = _noise(table, rho01, rho10, audit, region, propensities, confidence, seed, columns)
    results = {}
    for name, file in files.items():
        with Console(stderr=True).status(Text(f"Estimating {name}")):
            results[name] = estimate(
                read_recommender(file, table, score_column, columns),
                table,
                propensities=propensities,
                noise_rates=noise.rates,
                estimators=_listed(estimators),
                loss=loss,
                imputation=one_of("--imputation", imputation, ("constant", "model")),
                interval=interval,  # type: ignore[arg-type]
                confidence=confidence,
                clip=clip,
                sample=sample,
                random_state=seed,
            )
    if as_json:
        typer.echo(json.dumps(_summary(results, noise, propensities, table), indent=2))
    else:
        _print(results, noise, table, loss, confidence)


def _listed(estimators: str | None) -> Any:
    if estimators is None or estimators == "all":
        return estimators
    return [name.strip() for name in estimators.split(",")]


def _noise(
    log: FeedbackLog,
    rho01: float | None,
    rho10: float | None,
    audit: Path | None,
    region: bool,
    propensities: Propensities,
    confidence: float,
    seed: int,
    columns: dict[str, str | None],
) -> _Noise:
    given = rho01 is not None or rho10 is not None
    if given + (audit is not None) + region > 1:
        raise ParameterError("give --rho01 and --rho10, or --audit, or --region: one of the three")
    if given:
        return _Noise(given_rates(rho01, rho10), "given")
    sample = read_audit(audit, log, columns)
    if sample is not None:
        return _Noise(*rates_from_audit(log, sample, propensities))
    if region:
        return _Noise(identified_region(log, confidence=confidence, random_state=seed), "all that the log allows")
    return _Noise(None, "not corrected")


def _summary(
    results: dict[str, Estimates], noise: _Noise, propensities: Propensities, log: FeedbackLog
) -> dict[str, Any]:
    rates: dict[str, Any] = {"source": noise.source}
    if isinstance(noise.rates, NoiseRates):
        rates |= {"rho01": noise.rates.rho01, "rho10": noise.rates.rho10, "covariance": noise.rates.covariance}
    elif isinstance(noise.rates, NoiseRegion):
        rates |= {"rho01": [0.0, noise.rates.rho01_most], "rho10": [0.0, noise.rates.rho10_most]}
    return {
        "noise_rates": rates,
        "propensity": propensities.diagnostics(log).to_dict(),
        "recommenders": {
            name: {estimator: one.to_dict() for estimator, one in estimates.items()}
            for name, estimates in results.items()
        },
    }


def _print(results: dict[str, Estimates], noise: _Noise, log: FeedbackLog, loss: str, confidence: float) -> None:
    console = Console(markup=False, highlight=False)
    console.print(f"{log.n_users:,} users x {log.n_items:,} items, {len(log):,} rows", soft_wrap=True)
    console.print(f"Noise rates: {_in_words(noise, confidence)}", soft_wrap=True)
    console.print(
        f"True prediction inaccuracy ({loss} loss, smaller is better), {confidence:.0%} intervals", soft_wrap=True
    )
    console.print(_table(results))
    if noise.rates is None:
        hint = "Labels are taken for the truth; give --rho01 and --rho10, --audit or --region to correct them."
        console.print(hint, soft_wrap=True)


def _table(results: dict[str, Estimates]) -> Table:
    """Put recommenders side by side, or below each other where there are too many for a line."""
    table = Table()
    if len(results) > SIDE_BY_SIDE:
        table.add_column("Recommender")
    table.add_column("Estimator", no_wrap=True)
    if len(results) > SIDE_BY_SIDE:
        table.add_column("Estimate [interval]", no_wrap=True, justify="right")
        for name, estimates in results.items():
            for estimator, one in estimates.items():
                table.add_row(Text(name), estimator, _cell(one))
        return table
    for name in results:
        table.add_column(Text(name), justify="right", no_wrap=True)
    for estimator in next(iter(results.values())):
        table.add_row(estimator, *(_cell(estimates[estimator]) for estimates in results.values()))
    return table


def _cell(one: Any) -> str:
    low, high = one.interval
    if isinstance(one, EstimateRange):
        return f"{one.range[0]:.4f} to {one.range[1]:.4f} [{low:.4f}, {high:.4f}]"
    return f"{one.value:.4f} [{low:.4f}, {high:.4f}]"


def _in_words(noise: _Noise, confidence: float) -> str:
    if isinstance(noise.rates, NoiseRates):
        ends = noise.rates.interval(confidence)
        shown = [
            f"{name} {getattr(noise.rates, name):.3f}"
            + (f" [{ends[name][0]:.3f}, {ends[name][1]:.3f}]" if noise.rates.covariance else "")
            for name in ("rho01", "rho10")
        ]
        return f"{', '.join(shown)} ({noise.source})"
    if isinstance(noise.rates, NoiseRegion):
        return f"rho01 up to {noise.rates.rho01_most:.3f}, rho10 up to {noise.rates.rho10_most:.3f} ({noise.source})"
    return noise.source
