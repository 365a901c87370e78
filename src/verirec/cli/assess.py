"""verirec assess."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer
from rich.text import Text

import verirec as vr
from verirec.cli.groups import takes_groups
from verirec.cli.log_options import AskedLogOptions, ExcludeOptions
from verirec.cli.options import (
    PREDICTIONS_HELP,
    AsJson,
    AssessOptions,
    EngineOptions,
    ErrorOptions,
    NoiseOptions,
    OutFolder,
    PropensityOptions,
    ScoreOptions,
    Seed,
    SurveyOptions,
    named_files,
    of_estimates,
)
from verirec.cli.pages import conclude, origin_of
from verirec.cli.speech import going_on, working
from verirec.sole_writer import sole_writer

app = typer.Typer(add_completion=False)


@app.command("assess")
@takes_groups
def assess_command(
    log: AskedLogOptions,
    out: OutFolder,
    noise: NoiseOptions,
    rates: ErrorOptions,
    survey: SurveyOptions,
    propensity: PropensityOptions,
    how: AssessOptions,
    excluded: ExcludeOptions,
    scores: ScoreOptions,
    engine: EngineOptions,
    predictions: Annotated[list[str] | None, typer.Option(help=PREDICTIONS_HELP)] = None,
    hold_out: Annotated[
        float | None, typer.Option(help="Share of the rows to judge by; the others are for training (.2 with --train).")
    ] = None,
    train: Annotated[
        list[str] | None, typer.Option(metavar="METHOD", help="Train a method on the other rows, and judge it too.")
    ] = None,
    calibrate: Annotated[
        str | None,
        of_estimates(
            help="platt or isotonic: make probabilities of scores that are none: by the survey, then of all "
            "recommenders; or else by a fifth of the rows."
        ),
    ] = None,
    k: Annotated[int, of_estimates("-k", "--k", min=1, help="Depth of the ranking metrics.")] = 5,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Report how selective and noisy a log is, and how good each recommender really is, on one page.

    A --survey of random pairs settles it; without one the page says what the log leaves open, and what to ask.
    Stopped work goes on where it was when the same command is called again.

    Example: verirec assess ratings.csv --positive-from 4 --train mf --train ome-dr --survey asked.csv --out assessment;
    with --levels 1,2,3,4,5 in place of --positive-from, predicted stars are judged, by their RMSE.
    """
    from verirec.estimation.survey.draws import self_selected

    files = named_files(predictions)
    origin = origin_of(log.log)
    with sole_writer(out), working("Reading the log") as status:
        table = log.load(propensity.propensity_column)
        chosen = self_selected(table)
        propensities = propensity.fit(chosen)
        audit = noise.read_audit(table, log.of_truths)
        given: dict[str, Any] = {
            "log": table,
            "predictions": {name: scores.read(file, table, log.columns) for name, file in files.items()},
            "audit": audit,
            "errors": rates.found(chosen, audit, propensities),
            "survey": survey.read(table, log.of_truths),
            "noise_rates": noise.known_rates(chosen, log.of_truths, propensities),
            "propensities": propensities,
            "hold_out": hold_out,
            "train": train or (),
            "exclude": excluded.read(table, log),
            "calibrate": calibrate,
            "k": k,
            "random_state": seed,
            **vars(how),
        }
        with going_on(out / ".parts", "assess", given):
            found = vr.assess(
                **given,
                progress=lambda step: status.update(Text(step)),
                ready=lambda early: replace(early, origin=origin).save(out),
            )
            status.update("Writing the page")
            found = replace(found, origin=origin)
            page = found.save(out)
    conclude(found, page, as_json=as_json)
