"""verirec estimate."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer
from rich.text import Text

import verirec as vr
from verirec.checks import one_of
from verirec.cli.groups import takes_groups
from verirec.cli.log_options import AskedLogOptions, ExcludeOptions
from verirec.cli.options import (
    PREDICTIONS_HELP,
    AsJson,
    EngineOptions,
    ErrorOptions,
    EstimateOptions,
    NoiseOptions,
    PropensityOptions,
    RankingOptions,
    ScoreOptions,
    Seed,
    SurveyOptions,
    named_files,
    named_path,
    of_estimates,
    of_noise,
)
from verirec.cli.speech import going_on, working

if TYPE_CHECKING:
    from verirec.cli.estimate_table import Noise
    from verirec.cli.judging import Judge, Judged
    from verirec.data.predictions import PredictionsLike

app = typer.Typer(add_completion=False)


@dataclass(frozen=True, kw_only=True)
class _NoiseOptions(NoiseOptions):
    """What is known of the noise, if only what the log says of it."""

    choice: ClassVar = "--rho01 and --rho10, or --audit, or --reask, or --region: one of the four"
    region: Annotated[
        bool,
        of_noise("--region", help="Without rates or an audit: report the range over all rates that the log allows."),
    ] = False

    @property
    def others(self) -> int:
        return super().others + self.region

    def found(
        self, log: vr.FeedbackLog, as_in_log: dict[str, Any], propensities: vr.Propensities, **options: Any
    ) -> Noise:
        """Take the rates or find them out; `options` as in `identified_region`."""
        from verirec.cli.estimate_table import Noise
        from verirec.data.feedback_log import checked_log
        from verirec.nuisance.noise_rates import AuditTransitionMatrix, rates_from_audit

        if self.audit is None and not self.region and (self.others or self.rho01 is not None):
            checked_log(log)  # What is neither an audit nor a region gives rates of two classes.
        rates = self.known_rates(log, as_in_log, propensities)
        if rates is not None:
            return Noise(rates, rates.source)
        audit = self.read_audit(log, as_in_log)
        if audit is not None and log.levels is not None:
            between = AuditTransitionMatrix().fit(log, audit=audit)
            return Noise(between, between.source, audit)
        if audit is not None:
            audited = rates_from_audit(log, audit, propensities)
            return Noise(audited, audited.source, audit)
        if self.region and log.levels is not None:
            between_levels = vr.identified_transitions(log, **options)
            told = f"all of {between_levels.form} form that the log allows"
            if between_levels.cut_off:
                told = f"of {between_levels.form} form, cut off where hardly any signal is left: the log allows more"
            return Noise(between_levels, told)
        if self.region:
            return Noise(vr.identified_region(log, **options), "all that the log allows")
        return Noise(None, "not corrected")


@app.command("estimate")
@takes_groups
def estimate_command(
    log: AskedLogOptions,
    predictions: Annotated[list[str], typer.Option(help=PREDICTIONS_HELP)],
    noise: _NoiseOptions,
    rates: ErrorOptions,
    survey: SurveyOptions,
    propensity: PropensityOptions,
    how: EstimateOptions,
    scores: ScoreOptions,
    engine: EngineOptions,
    excluded: ExcludeOptions,
    ranking: RankingOptions,
    estimators: Annotated[
        str | None,
        of_estimates(
            help="Comma-separated names, or all; by default naive, ips, dr, with noise rates ome-ips, ome-dr, with an "
            "audit audited-dr, and with a survey survey, survey-ppi (delta-dr by name)."
        ),
    ] = None,
    imputation: Annotated[str, of_estimates(help="How unobserved pairs are imputed: constant or model.")] = "constant",
    interval: Annotated[
        str, of_estimates(help="How intervals are computed: delta, or bootstrap over users.")
    ] = "delta",
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            parser=named_path, metavar="PATH", help="Folder for finished parts: a stopped command goes on from there."
        ),
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Estimate how good each recommender really is: its loss, and how it ranks all items.

    Example: verirec estimate ratings.csv --positive-from 4 --predictions mine=scores.csv --rho01 .2 --rho10 .1; with
    --levels 1,2,3,4,5 --loss rmse in place of --positive-from, predicted stars are judged.
    """
    from verirec.cli.estimate_table import show, summary
    from verirec.cli.judging import Judge
    from verirec.cli.ranking_difference import as_figures, show_difference
    from verirec.estimation.inputs import judgeable
    from verirec.estimation.rows import LoggedPairs
    from verirec.estimation.score_calibration import calibrated_where_needed
    from verirec.estimation.survey.draws import self_selected
    from verirec.nuisance.click_model import clicks_only

    files = named_files(predictions)
    with working("Reading the log"):
        whole = log.load(propensity.propensity_column)
    surveyed, table = survey.read(whole, log.of_truths), self_selected(whole)
    asked_for = log.clicks or surveyed is not None or ranking.ranking_only
    clicks = asked_for and len(table) > 1 and clicks_only(table)
    if not clicks:
        judgeable(table, levels=True)
    propensities = propensity.fit(table)
    found = noise.found(table, log.of_truths, propensities, confidence=how.confidence, random_state=seed)
    options = {
        "imputation": one_of("--imputation", imputation, ("constant", "model")),
        "interval": interval,
        "random_state": seed,
    }
    errors = rates.found(table, found.audit, propensities)
    pairs = LoggedPairs(table, propensities, errors=errors)
    given = {name: scores.read(file, table, log.columns) for name, file in files.items()}
    exclude = excluded.read(table, log)
    judged = Judge(
        pairs,
        found.rates,
        _listed(estimators),
        vars(how) | options,
        ranking,
        surveyed,
        found.audit,
        clicks,
        exclude,
        calibrated_where_needed(given, table, ranking.calibrate, seed, surveyed, exclude),
    )
    with going_on(checkpoint, "estimate", {"predictions": given, "judge": judged}):
        results = _judged(judged, given)
        if as_json:
            more = as_figures(judged, given, results)
            typer.echo(json.dumps(summary(results, found, propensities, table, errors) | more, indent=2))
        else:
            show(results, found, table, how, errors)
            show_difference(judged, given, results)


def _judged(judge: Judge, given: dict[str, PredictionsLike]) -> dict[str, Judged]:
    """Judge one recommender after the other."""
    results = {}
    for name, one in given.items():
        with working(Text(f"Estimating {name}")):
            results[name] = judge(name, one)
    return results


def _listed(estimators: str | None) -> Sequence[str] | str | None:
    if estimators is None or estimators == "all":
        return estimators
    return [name.strip() for name in estimators.split(",")]
