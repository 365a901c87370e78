"""verirec assess."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
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
    OutFolder,
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
from verirec.exceptions import ParameterError

app = typer.Typer(add_completion=False)


@app.command("assess")
def assess_command(
    log: LogFile,
    out: OutFolder,
    predictions: Annotated[list[str] | None, typer.Option(help=PREDICTIONS_HELP)] = None,
    audit: AuditFile = None,
    rho01: Rho01 = None,
    rho10: Rho10 = None,
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
    loss: Loss = "log",
    confidence: Confidence = 0.95,
    clip: Clip = None,
    sample: Sample = None,
    seed: Seed = 0,
) -> None:
    """Tell how selective and how noisy a log is, and how good each recommender really is, on one page.

    Example: verirec assess ratings.csv --positive-from 4 --predictions mine=scores.csv --out assessment
    """
    from verirec.assessment import assess
    from verirec.pages.writing import check_writable

    files = named_files(predictions or [])
    rates = given_rates(rho01, rho10)
    if rates is not None and audit is not None:
        raise ParameterError("give --rho01 and --rho10, or --audit: one of the two")
    one_of("--propensity", propensity, PROPENSITIES)
    check_writable(out)
    with Console(stderr=True).status("Reading the log") as status:
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
        columns = {"user": user, "item": item}
        found = assess(
            table,
            {name: read_recommender(file, table, score_column, columns) for name, file in files.items()},
            audit=read_audit(audit, table, columns),
            noise_rates=rates,
            propensities=fitted_propensities("logged" if propensity_column else propensity, table),
            loss=loss,
            confidence=confidence,
            clip=clip,
            sample=sample,
            progress=lambda step: status.update(Text(step)),
            random_state=seed,
        )
        status.update("Writing the page")
        page = found.save(out)
    console = Console(markup=False, highlight=False)
    for sentence in found.conclusions:
        console.print(f"- {sentence}", soft_wrap=True)
    console.print(f"The page: {page}", soft_wrap=True)
