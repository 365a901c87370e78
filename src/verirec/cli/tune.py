"""verirec tune."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from verirec.checks import one_of
from verirec.cli.groups import takes_groups
from verirec.cli.log_options import AskedLogOptions
from verirec.cli.options import (
    AsJson,
    EngineOptions,
    NoiseOptions,
    PropensityOptions,
    Seed,
    SurveyOptions,
    methods_module,
    named_path,
)
from verirec.cli.speech import working
from verirec.cli.train import (
    CHECKPOINT,
    Force,
    Resume,
    _parsed,
    forget_checkpoint,
    keep_what_is_there,
    of_search,
    resumable,
    search_lines,
    training_summary,
)
from verirec.exceptions import ParameterError
from verirec.sole_writer import check_writable, sole_writer

app = typer.Typer(add_completion=False)


@app.command("tune")
@takes_groups
def tune_command(
    log: AskedLogOptions,
    out: Annotated[Path, typer.Option(parser=named_path, metavar="PATH", help="Folder for the model.")],
    noise: NoiseOptions,
    survey: SurveyOptions,
    engine: EngineOptions,
    propensity: PropensityOptions,
    method: Annotated[
        str, typer.Option(help="auto, which searches among methods, or one of those that verirec methods lists.")
    ] = "auto",
    objective: Annotated[str, typer.Option(help="What the model is for: ranking or probability.")] = "ranking",
    trials: Annotated[int, typer.Option(help="Try at most this many candidates.")] = 60,
    seconds: Annotated[float | None, typer.Option(help="Begin no candidate after so many seconds.")] = None,
    folds: Annotated[int, typer.Option(help="Hold rows out in this many parts, in turn.")] = 5,
    parameters: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME=VALUE, once per parameter of the method that is not searched for."),
    ] = None,
    resume: Resume = False,
    force: Force = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Search for parameters, train with the best, and list all that was tried.

    Example: verirec tune ratings.csv --positive-from 4 --method ome-dr --rho01 .2 --rho10 .1 --trials 20 --out model
    """
    catalogue = methods_module().catalogue
    chosen = catalogue[one_of("--method", method, tuple(catalogue))](random_state=seed)
    budget = {"objective": objective, "trials": trials, "seconds": seconds, "folds": folds}
    chosen.set_params(**_parsed(parameters or []), **(budget if method == "auto" else {})).check_parameters()
    check_writable(out)
    keep_what_is_there(out, force=force, resume=resume)
    with working("Reading the log"):
        table = log.load(propensity.propensity_column)
        given: dict[str, Any] = {"audit": noise.read_audit(table, log.of_truths), "noise_rates": noise.rates}
        if propensity.given:
            given["propensities"] = propensity.fit(table)
        asked = survey.read(table, log.of_truths)
    with sole_writer(out), resumable(out), working(f"Tuning {method}") as steps:
        keep_what_is_there(out, force=force, resume=resume)
        given |= {"checkpoint": out / CHECKPOINT, "resume": resume, "progress": of_search(steps)}
        tuned = _searched(chosen, table, budget, asked, given)
        tuned.save(out)
        forget_checkpoint(out)
    if as_json:
        typer.echo(json.dumps(training_summary(tuned, out), indent=2))
    else:
        _say(tuned, out)


def _searched(method: Any, log: Any, budget: dict[str, Any], survey: Any, given: dict[str, Any]) -> Any:
    """Search among methods, or for one method's parameters."""
    if method.name == "auto":
        return method.fit(log, survey=survey, **given)
    if survey is not None:
        raise ParameterError("a survey decides between candidates of --method auto; leave --survey out")
    return methods_module().tune(method, log, **budget, **given)


def _say(tuned: Any, out: Path) -> None:
    """Show all that was tried, best first, and what was chosen."""
    search = tuned.report_.search
    names = list(dict.fromkeys(name for trial in search["trials"] for name in trial))
    table = Table()
    for name in names:
        table.add_column(name)
    for trial in sorted(search["trials"], key=lambda one: float(one["loss"])):
        table.add_row(*(_shown(trial.get(name)) for name in names))
    console = Console(markup=False, highlight=False)
    console.print(table)
    for line in (*search_lines(search), f"The model: {out}"):
        console.print(line, soft_wrap=True)


def _shown(value: Any) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
