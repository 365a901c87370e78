"""verirec monitor."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer
from rich.text import Text

import verirec as vr
from verirec.cli.groups import takes_groups
from verirec.cli.log_options import AskedLogOptions, ExcludeOptions
from verirec.cli.options import (
    PREDICTIONS_HELP,
    AsJson,
    EngineOptions,
    EstimateOptions,
    NoiseOptions,
    OutFolder,
    ScoreOptions,
    Seed,
    named_files,
    of_noise,
    of_propensities,
)
from verirec.cli.pages import conclude, origin_of
from verirec.cli.speech import working
from verirec.exceptions import ParameterError
from verirec.sole_writer import sole_writer

app = typer.Typer(add_completion=False)


@app.command("monitor")
@takes_groups
def monitor_command(
    log: AskedLogOptions,
    out: OutFolder,
    noise: NoiseOptions,
    how: EstimateOptions,
    excluded: ExcludeOptions,
    scores: ScoreOptions,
    engine: EngineOptions,
    every: Annotated[str, typer.Option(help="day, week (from Monday), month or year.")] = "month",
    predictions: Annotated[list[str] | None, typer.Option(help=PREDICTIONS_HELP)] = None,
    survey: Annotated[
        list[str] | None,
        of_noise(
            metavar="PERIOD=FILE",
            help="True labels of random pairs that people were asked about in a period, such as 2024-01=january.csv "
            "(of weeks, the date of their Monday); once per period.",
        ),
    ] = None,
    propensity_column: Annotated[
        str | None,
        of_propensities(
            help="The log's column of propensities, of being logged within a period; else they are fitted."
        ),
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Assess each week or month of a log, with verdicts that allow for looking many times.

    Rates, selection and estimates of each period, and whether a recommender is better than another, or has become
    worse: a page, a picture and a table. Rows that --unbiased marks are the survey of their period.

    Example: verirec monitor ratings.csv --positive-from 4 --timestamp when --every month --predictions mine=scores.csv
    --survey 2024-01=january.csv --survey 2024-02=february.csv --out monitoring
    """
    if log.timestamp is None:
        raise ParameterError("periods need times: name their column, --timestamp")
    if noise.reask is not None:
        raise ParameterError("--reask is for one log: give --audit, or --rho01 and --rho10")
    files, asked = named_files(predictions), named_files(survey, "--survey", "PERIOD=FILE")
    origin = origin_of(log.log)
    with sole_writer(out), working("Reading the log") as status:
        table = log.load(propensity_column)
        found = vr.monitor(
            table,
            {name: scores.read(file, table, log.columns) for name, file in files.items()},
            every=every,  # type: ignore[arg-type]
            surveys={name: vr.SurveySample.from_file(file, table, **log.of_truths) for name, file in asked.items()},
            audit=noise.read_audit(table, log.of_truths),
            noise_rates=noise.rates,
            exclude=excluded.read(table, log),
            **vars(how),
            progress=lambda step: status.update(Text(step)),
            random_state=seed,
        )
        status.update("Writing the page")
        page = replace(found, origin=origin).save(out)
    conclude(found, page, as_json=as_json)
