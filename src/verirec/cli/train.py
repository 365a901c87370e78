"""verirec train."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from verirec.checks import one_of
from verirec.cli.options import (
    PROPENSITIES,
    AllItems,
    AllUsers,
    AuditFile,
    Delimiter,
    Duplicates,
    Item,
    LogFile,
    PositiveFrom,
    Propensity,
    PropensityColumn,
    Rating,
    Rho01,
    Rho10,
    Seed,
    Timestamp,
    User,
    fitted_propensities,
    given_rates,
    load_log,
    methods_module,
    read_audit,
)
from verirec.exceptions import ParameterError
from verirec.losses import NoiseRates
from verirec.pages.writing import check_writable

CHECKPOINT: Final = "checkpoint.safetensors"


app = typer.Typer(add_completion=False)


@app.command("train")
def train_command(
    log: LogFile,
    method: Annotated[str, typer.Option(help="One of verirec methods.")],
    out: Annotated[Path, typer.Option(help="Folder for the model.")],
    parameters: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME=VALUE, once a parameter: --set dim=32 --set epochs=50."),
    ] = None,
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
    propensity: Propensity = "logistic",
    propensity_column: PropensityColumn = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from where a stopped run of the same command was.")
    ] = False,
    seed: Seed = 0,
) -> None:
    """Train a recommender on a log.

    Example: verirec train ratings.csv --positive-from 4 --method ome-dr --rho01 .2 --rho10 .1 --out model
    """
    catalogue = methods_module().catalogue
    chosen = catalogue[one_of("--method", method, tuple(catalogue))]
    one_of("--propensity", propensity, PROPENSITIES)
    rates = given_rates(rho01, rho10)
    if rates is not None and audit is not None:
        raise ParameterError("give --rho01 and --rho10, or --audit: one of the two")
    recommender = chosen(random_state=seed).set_params(**_parsed(parameters or []))
    recommender.check_parameters()
    check_writable(out)
    if resume and (out / "model.json").exists() and not (out / CHECKPOINT).exists():
        raise ParameterError(f"{str(out)!r} holds a finished model and no checkpoint: there is nothing to resume")
    columns = {"user": user, "item": item, "rating": rating}
    with Console(stderr=True).status("Reading the log"):
        table = load_log(
            log,
            **columns,
            positive_from=positive_from,
            timestamp=timestamp,
            duplicates=duplicates,
            delimiter=delimiter,
            all_users=all_users,
            all_items=all_items,
            propensity=propensity_column,
        )
        propensities = fitted_propensities("logged" if propensity_column else propensity, table)
    out.mkdir(parents=True, exist_ok=True)
    checkpoint = out / CHECKPOINT
    with _progress() as bar:
        task = bar.add_task(f"Training {method}", total=None, held="")

        def show(epoch: int, epochs: int, held_out: float) -> None:
            bar.update(task, completed=epoch, total=epochs)
            if not math.isnan(held_out):
                bar.update(task, held=f"validation error {held_out:.4f}")

        recommender.fit(
            table,
            noise_rates=rates,
            audit=read_audit(audit, table, columns),
            propensities=propensities,
            checkpoint=checkpoint,
            resume=resume,
            progress=show,
        )
    recommender.save(out)
    # What a killed run may have left half-written, too.
    for file in (checkpoint, *out.glob(f".{CHECKPOINT}-*")):
        file.unlink(missing_ok=True)
    _say(recommender, out)


def _say(recommender: Any, out: Path) -> None:
    """Say how training went, and what it was judged by."""
    console = Console(markup=False, highlight=False)
    report = recommender.report_
    kept = f"the state of epoch {report.best_epoch} of {len(report.history)} is kept"
    lines = [f"{recommender.name}: {kept} ({report.stopped_because})"]
    if recommender.validation:
        lines.append(f"Validation error by {report.validation_estimator}: {report.validation_error:.4f}")
    rates = recommender.noise_rates_
    if isinstance(rates, NoiseRates):
        lines.append(f"Noise rates: rho01 {rates.rho01:.3f}, rho10 {rates.rho10:.3f}")
    trained = recommender.recommender_
    cold = int(trained.cold_users.sum()), int(trained.cold_items.sum())
    if any(cold):
        lines.append(f"Without ratings to learn from: {cold[0]:,} users, {cold[1]:,} items")
    for line in (*lines, f"The model: {out}"):
        console.print(line, soft_wrap=True)


def _progress() -> Progress:
    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[held]}"), TimeElapsedColumn()
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _parsed(given: list[str]) -> dict[str, Any]:
    """Take NAME=VALUE apart; values are read as JSON, and as text where they are none."""
    parsed: dict[str, Any] = {}
    for one in given:
        name, parted, text = one.partition("=")
        if not parted or not name:
            raise ParameterError(f"--set must be NAME=VALUE; got {one!r}")
        try:
            parsed[name] = json.loads(text)
        except (ValueError, RecursionError):
            parsed[name] = {"True": True, "False": False, "None": None}.get(text, text)
    return parsed
