"""verirec assess."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from verirec.assessment import assess
from verirec.cli.groups import takes_groups
from verirec.cli.options import (
    PREDICTIONS_HELP,
    EstimateOptions,
    LogOptions,
    NoiseOptions,
    OutFolder,
    PropensityOptions,
    ScoreOptions,
    Seed,
    named_files,
)
from verirec.pages.writing import check_writable

app = typer.Typer(add_completion=False)


@app.command("assess")
@takes_groups
def assess_command(
    log: LogOptions,
    out: OutFolder,
    noise: NoiseOptions,
    propensity: PropensityOptions,
    how: EstimateOptions,
    scores: ScoreOptions,
    predictions: Annotated[list[str] | None, typer.Option(help=PREDICTIONS_HELP)] = None,
    seed: Seed = 0,
) -> None:
    """Report how selective and noisy a log is, and how good each recommender really is, on one page.

    Example: verirec assess ratings.csv --positive-from 4 --predictions mine=scores.csv --out assessment
    """
    files, rates = named_files(predictions), noise.rates
    check_writable(out)
    with Console(stderr=True).status("Reading the log") as status:
        table = log.load(propensity.propensity_column)
        found = assess(
            table,
            {name: scores.read(file, table, log.columns) for name, file in files.items()},
            audit=noise.read_audit(table, log.columns),
            noise_rates=rates,
            propensities=propensity.fit(table),
            **vars(how),
            progress=lambda step: status.update(Text(step)),
            random_state=seed,
        )
        status.update("Writing the page")
        page = found.save(out)
    console = Console(markup=False, highlight=False)
    for sentence in found.conclusions:
        console.print(f"- {sentence}", soft_wrap=True)
    console.print(f"The page: {page}", soft_wrap=True)
