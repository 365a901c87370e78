"""verirec plan."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console

import verirec as vr
from verirec.checks import one_of
from verirec.cli.groups import takes_groups
from verirec.cli.log_options import AskedLogOptions, ExcludeOptions
from verirec.cli.options import (
    PREDICTIONS_HELP,
    AsJson,
    EngineOptions,
    OutFile,
    PropensityOptions,
    RateOptions,
    ScoreOptions,
    Seed,
    named_files,
    of_estimates,
)
from verirec.cli.speech import going_on, working
from verirec.exceptions import ParameterError, PredictionError
from verirec.pages.writing import check_writable_file, write_file, write_table

if TYPE_CHECKING:
    from verirec.data.predictions import PredictionsLike

app = typer.Typer(add_completion=False)

_FORMS: Final = ("csv", "label-studio")


@app.command("plan")
@takes_groups
def plan_command(
    log: AskedLogOptions,
    out: OutFile,
    guess: RateOptions,
    scores: ScoreOptions,
    engine: EngineOptions,
    propensity: PropensityOptions,
    excluded: ExcludeOptions,
    predictions: Annotated[
        list[str] | None,
        typer.Option(help=f"{PREDICTIONS_HELP} Without any, the plan is one for the noise rates."),
    ] = None,
    budget: Annotated[int | None, typer.Option(help="How many pairs to ask about.")] = None,
    half_width: Annotated[
        float | None, typer.Option(help="Wanted half-width of the intervals; without --budget, .03.")
    ] = None,
    purpose: Annotated[
        str | None,
        typer.Option(
            help="level, difference, ndcg@k or precision@k; by default difference, if there are several recommenders. "
            "What has a depth k is planned for the difference of each two, or for the level of a single one."
        ),
    ] = None,
    pilot: Annotated[
        Path | None, typer.Option(help="An earlier survey: a table with user, item and true_label of random pairs.")
    ] = None,
    loss: Annotated[str, of_estimates(help="Loss: log, squared or absolute.")] = "log",
    clip: Annotated[float | None, of_estimates(help="Keep predictions at least this far from 0 and 1.")] = None,
    confidence: Annotated[float, typer.Option(help="Confidence level of the intervals.")] = 0.95,
    form: Annotated[
        str, typer.Option("--format", help="csv, a sheet to fill in; or label-studio, tasks for Label Studio.")
    ] = "csv",
    titles: Annotated[
        Path | None, typer.Option(help="A CSV file with columns item and title: the questions show the titles.")
    ] = None,
    answers: Annotated[
        int, typer.Option(min=1, help="How many people to ask about each pair: so many rows, and a column person.")
    ] = 1,
    one_per_user: Annotated[bool, typer.Option("--one-per-user", help="Ask nobody about more than one pair.")] = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Choose the pairs to ask people about, and write them to a CSV file with an empty true_label column.

    With --predictions they tell how good these recommenders are, or which is better; without, how noisy the log is.
    --rho01 and --rho10 are your guess of the noise rates. Filled in, the file is read back by `verirec assess`, with
    --survey FILE (pairs of kind random; or best, of a --purpose ndcg@10, which tell rankings and no losses) and --audit
    FILE (of kind logged); so is what Label Studio exports as JSON.

    Example: verirec plan ratings.csv --positive-from 4 --predictions mine=scores.csv --budget 500 --out plan.csv
    """
    from verirec.data.feedback_log import checked_log
    from verirec.data.title_files import read_titles

    one_of("--format", form, _FORMS)
    if form == "label-studio" and (out.suffix.lower() != ".json" or answers > 1):
        raise ParameterError(
            "--format label-studio writes a .json file; how many answer a task is a setting of a project"
        )
    check_writable_file(out)
    files = named_files(predictions)
    _refuse_to_lose(out, [*log.files, *files.values(), *([] if pilot is None else [pilot])])
    with working("Choosing the pairs"):
        table = checked_log(log.load(propensity.propensity_column))
        given = {name: scores.read(file, table, log.columns) for name, file in files.items()}
        if loss == "log" and (purpose is None or "@" not in purpose):
            _refuse_scores(given, table)
        asked: dict[str, Any] = {
            "log": table,
            "recommenders": given or None,
            "budget": budget,
            "half_width": 0.03 if budget is None and half_width is None else half_width,
            "purpose": purpose or ("difference" if len(files) > 1 else "level"),
            "confidence": confidence,
            "pilot": None if pilot is None else vr.SurveySample.from_file(pilot, table, **log.of_truths),
            "propensities": _declared(propensity, table),
            "guess": guess.rates,
            "exclude": excluded.read(table, log),
            "loss": loss,
            "clip": clip,
            "one_per_user": one_per_user,
            "random_state": seed,
        }
        with going_on(out.with_name(f".{out.name}.parts"), "plan", asked):
            plan = vr.plan_labels(**asked)
            _write(out, plan, None if titles is None else read_titles(titles, table), answers, form)
    if as_json:
        typer.echo(json.dumps(_summary(plan, out), indent=2))
    else:
        _tell(plan, out)


def _write(out: Path, plan: vr.LabelPlan, titles: list[str] | None, answers: int, form: str) -> None:
    if form == "csv":
        write_table(out, plan.to_frame(titles=titles, answers=answers))
    else:
        tasks = json.dumps(plan.to_label_studio(titles=titles), indent=1, ensure_ascii=False)
        write_file(out, tasks.encode())


def _summary(plan: vr.LabelPlan, out: Path) -> dict[str, Any]:
    logged = int(plan.logged.sum())
    return {
        "file": str(out),
        "pairs": {"logged": logged, plan.kind: len(plan) - logged},
        "if_chosen_at_random": plan.simple,
        "half_widths": plan.half_widths,
        "assumes": plan.assumes,
    }


def _refuse_scores(given: Mapping[str, PredictionsLike], log: vr.FeedbackLog) -> None:
    """Say what can be done about scores that have no log loss to plan for."""
    from verirec.data.top_lists import TopLists
    from verirec.estimation.calibration import are_probabilities

    for name, one in given.items():
        if isinstance(one, TopLists):
            raise PredictionError(
                f"{name} has lists, and no probabilities: plan for its ranking, --purpose ndcg@{one.depth}"
            )
        if not are_probabilities(one, log):
            raise PredictionError(
                f"{name}: its scores are not probabilities, so there is no log loss to plan for; plan for its ranking, "
                "purpose='ndcg@5', or make probabilities of them in Python, with verirec.calibrate"
            )


def _declared(options: PropensityOptions, log: vr.FeedbackLog) -> object:
    """Return propensities that the user names; others are not needed for a plan."""
    usual = options.propensity_column is None and options.propensity == "logistic"
    return None if usual else options.fit(log)


def _tell(plan: vr.LabelPlan, out: Path) -> None:
    console = Console(markup=False, highlight=False)
    logged = int(plan.logged.sum())
    kinds = " and ".join(
        f"{count:,} {kind}" for count, kind in ((logged, "logged"), (len(plan) - logged, plan.kind)) if count
    )
    console.print(
        f"{len(plan):,} pairs to ask about ({kinds}) are in {out}; fill in true_label with 0 or 1.", soft_wrap=True
    )
    if plan.simple is not None:
        console.print(f"Chosen at random it would take {plan.simple:,}.", soft_wrap=True)
    if plan.of_best:
        console.print(
            f"They are among the best of their users, to tell {_served(plan)}; and no losses.", soft_wrap=True
        )
    widths = ", ".join(f"{width:.3f} of {name}" for name, width in plan.half_widths.items())
    console.print(f"Expected half-widths: {widths}, {plan.assumes}.", soft_wrap=True)


def _served(plan: vr.LabelPlan) -> str:
    """Say what a plan for a ranking serves."""
    metric = plan.purpose.replace("ndcg", "NDCG")
    return f"the difference in {metric} of each two" if " - " in next(iter(plan.half_widths)) else f"the {metric}"


def _refuse_to_lose(out: Path, read: list[Path]) -> None:
    """Refuse to write over a file that is read, or over a plan that somebody has begun to fill in."""
    if not out.is_file():
        return
    for file in read:
        if file.is_file() and out.samefile(file):
            raise ParameterError(f"--out {str(out)!r} is a file that is read: name another one")
    filled = _filled_in(out)
    if filled:
        raise ParameterError(
            f"--out {str(out)!r} has {filled:,} true label{'s' if filled > 1 else ''} filled in, which would be "
            "lost: name another file, or move this one"
        )


def _filled_in(file: Path) -> int:
    """Count the true labels in a plan, as we or a spreadsheet wrote it; a file of another kind has none."""
    try:
        with file.open(newline="", encoding="utf-8-sig", errors="replace") as opened:
            delimiter = max(",;\t", key=opened.readline().count)
            opened.seek(0)
            rows = csv.DictReader(opened, delimiter=delimiter)
            return sum(bool((row.get("true_label") or "").strip()) for row in rows)
    except csv.Error:
        return 0
