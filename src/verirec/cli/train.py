"""verirec train."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import typer
from rich.console import Console

import verirec as vr
from verirec.atomic_write import temporary_prefix
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
from verirec.cli.progress import Rounds
from verirec.cli.speech import Steps, speech, working
from verirec.exceptions import ParameterError
from verirec.formatting import short
from verirec.sole_writer import check_writable, sole_writer

CHECKPOINT: Final = "checkpoint.safetensors"
_BY_THE_LOG: Final = (
    "Chosen by held-out rows of the log, which people chose to rate: only a survey of random pairs can confirm it."
)
_LOOKED_AT, _LIST = 100, 10
"""How many users are asked for their lists, and of how many items, to find out whether all have the same."""
_NUMBER: Final = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.ASCII | re.IGNORECASE)
_WORDS: Final = {"True": True, "False": False, "None": None}
_OF_A_TRIAL: Final = ("method", "loss", "gain", "standard_error")

Resume = Annotated[bool, typer.Option("--resume", help="Continue a stopped run of the same command.")]
Force = Annotated[
    bool,
    typer.Option(
        "--force", help="Overwrite a model that is in the folder; begin anew where a stopped run left its work."
    ),
]

app = typer.Typer(add_completion=False)


@app.command("train")
@takes_groups
def train_command(
    log: AskedLogOptions,
    method: Annotated[str, typer.Option(help="One of those that verirec methods lists.")],
    out: Annotated[Path, typer.Option(parser=named_path, metavar="PATH", help="Folder for the model.")],
    noise: NoiseOptions,
    propensity: PropensityOptions,
    surveyed: SurveyOptions,
    engine: EngineOptions,
    head: Annotated[
        str | None,
        typer.Option(
            metavar="HEAD",
            help="What is predicted of a log that keeps its --levels: stars (by default), or ordinal, the chance of "
            "each level.",
        ),
    ] = None,
    parameters: Annotated[
        list[str] | None,
        typer.Option("--set", help="NAME=VALUE, once per parameter: --set dim=32 --set epochs=50."),
    ] = None,
    resume: Resume = False,
    force: Force = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Train a recommender on a log.

    Example: verirec train ratings.csv --positive-from 4 --method ome-dr --rho01 .2 --rho10 .1 --out model

    With --levels 1,2,3,4,5 in place of --positive-from, stars are learnt.
    """
    catalogue = methods_module().catalogue
    recommender = catalogue[one_of("--method", method, tuple(catalogue))](random_state=seed)
    named = {} if head is None else {"head": head}
    recommender.set_params(**named, **_parsed(parameters or [])).check_parameters()
    check_writable(out)
    keep_what_is_there(out, force=force, resume=resume)
    with working("Reading the log") as steps:
        table = log.load(propensity.propensity_column)
        steps.update("Learning how likely pairs are to be logged")
        propensities = propensity.fit(table)
        steps.update("Finding out how noisy the labels are")
        rates = noise.known_rates(table, log.of_truths, propensities)
        given = {
            "propensities": propensities,
            "audit": noise.read_audit(table, log.of_truths),
            # Rows that were shown at random are in the log, and are trained on.
            "survey": None if surveyed.survey is None else surveyed.read(table, log.of_truths),
        }
    _warn_of_unused_features(recommender, table)
    with sole_writer(out), resumable(out), working(f"Training {method}") as steps:
        # Another run may have ended there meanwhile.
        keep_what_is_there(out, force=force, resume=resume)
        rounds = of_search(steps) if method == "auto" else Rounds(steps.note)
        kept = {"checkpoint": out / CHECKPOINT, "resume": resume}
        recommender.fit(table, noise_rates=rates, **given, **kept, progress=rounds, engine=vr.engine.current_engine())
        recommender.save(out)
        forget_checkpoint(out)
    if as_json:
        typer.echo(json.dumps(training_summary(recommender, out), indent=2))
    else:
        _say(recommender, out)


def training_summary(recommender: Any, out: Path) -> dict[str, Any]:
    """Return how training went as JSON has it."""
    report, rates = recommender.report_, recommender.noise_rates_
    error = report.validation_error
    return {
        "method": report.method,
        "model": str(out),
        "solver": report.solver,
        "epochs": len(report.history),
        "best_epoch": report.best_epoch,
        "stopped_because": report.stopped_because,
        "validation_error": None if math.isnan(error) else error,
        "validation_estimator": report.validation_estimator,
        "noise_rates": {"rho01": rates.rho01, "rho10": rates.rho10} if isinstance(rates, vr.NoiseRates) else None,
        "same_list": same_list(recommender.recommender_) is not None,
        "search": report.search,
    }


def _warn_of_unused_features(recommender: Any, log: Any) -> None:
    """Say so where features were given that the model to train does not look at."""
    given = log.user_features is not None or log.item_features is not None
    unused = getattr(recommender, "model", "features") in ("mf", "constants", "ncf")
    if given and unused and getattr(recommender, "covariates", None) in (None, "none"):
        vr.exceptions.warn_caller(
            f"features are not looked at by model={recommender.model}: add --set model=features",
            vr.exceptions.FeatureWarning,
        )


def forget_checkpoint(out: Path) -> None:
    """Remove the checkpoint of a run that ended, and what a killed one may have left half-written."""
    for file in (out / CHECKPOINT, *out.glob(f"{temporary_prefix(CHECKPOINT)}*")):
        file.unlink(missing_ok=True)


def keep_what_is_there(out: Path, *, force: bool, resume: bool) -> None:
    """Refuse to write over a finished model, or over what a stopped run left, unless that is wanted."""
    finished, stopped = (out / "model.json").exists(), (out / CHECKPOINT).exists()
    if resume and finished and not stopped:
        raise ParameterError(f"{str(out)!r} holds a finished model and no checkpoint: there is nothing to resume")
    if resume or force:
        return
    if stopped:
        raise ParameterError(f"{str(out)!r} has what a stopped run left: --resume goes on from it, --force begins anew")
    if finished:
        raise ParameterError(f"{str(out)!r} holds a model already: name another folder, or overwrite it with --force")


def of_search(steps: Steps) -> Rounds:
    """Return what is to be told of a search's trials."""
    return Rounds(steps.note, "trial", "best so far")


@contextmanager
def resumable(out: Path) -> Iterator[None]:
    """Say of a stop what `--resume` goes on from, where there is something."""
    try:
        yield
    except KeyboardInterrupt:
        kept = _kept_by(out / CHECKPOINT)
        if kept is not None:
            speech.stopped = f"stopped; --resume goes on from {kept}"
        raise


def _kept_by(checkpoint: Path) -> str | None:
    """Say what a checkpoint has, if it is there: epochs, or what a search has tried."""
    from verirec.training.checkpoints import facts_alone

    facts = facts_alone(checkpoint)
    if "done" in facts:
        return f"epoch {facts['done']}"
    tried = len(facts.get("names", ()))
    return f"{tried} finished trial{'s' * (tried > 1)}" if tried else None


def _say(recommender: Any, out: Path) -> None:
    """Say how training went, and what it was judged by."""
    console = Console(markup=False, highlight=False)
    report = recommender.report_
    kept = f"the state of epoch {report.best_epoch} of {len(report.history)} is kept"
    lines = [f"{recommender.name}: {kept} ({report.stopped_because})"]
    if report.search is not None:
        lines = search_lines(report.search)
    elif report.validation_estimator is not None:
        lines.append(f"Validation error by {report.validation_estimator}: {report.validation_error:.4f}")
    rates = recommender.noise_rates_
    if isinstance(rates, vr.NoiseRates):
        lines.append(f"Noise rates: rho01 {rates.rho01:.3f}, rho10 {rates.rho10:.3f}")
    trained = recommender.recommender_
    if (curve := trained.calibration) is not None:
        lines.append(f"By the survey: slope {curve.slope:.2f}, mean logit from {curve.centre:.2f} to {curve.level:.2f}")
    if (told := same_list(trained)) is not None:
        lines.append(told)
    cold = int(trained.cold_users.sum()), int(trained.cold_items.sum())
    if any(cold):
        lines.append(f"Without ratings to learn from: {cold[0]:,} users, {cold[1]:,} items")
    for line in (*lines, f"The model: {out}"):
        console.print(line, soft_wrap=True)


def same_list(trained: Any) -> str | None:
    """Say so where all of some users, evenly taken, have the same items on top; `None` where they do not."""
    warm = np.flatnonzero(~trained.cold_users)
    users = np.unique(warm[np.linspace(0, len(warm) - 1, _LOOKED_AT).astype(int)])
    length = min(_LIST, max(trained.shape[1] // 2, 1))
    tops = np.sort(trained.recommend(trained.user_ids.ids(users), length).items, axis=1)
    if len(users) < 2 or (tops != tops[0]).any():
        return None
    told = f"All of {len(users):,} users that were looked at get the same {tops.shape[1]} items"
    return f"{told}: of what users like differently, little or nothing was learnt"


def search_lines(search: dict[str, Any]) -> list[str]:
    """Say what a search chose, and by how much it is better than what it is held against."""
    trials, guard = search["trials"], search["guard"]
    chosen, reference = trials[search["chosen"]], trials[search["reference"]]
    parameters = ", ".join(f"{name} {value}" for name, value in chosen.items() if name not in _OF_A_TRIAL)
    held_against = "constants alone" if reference.get("model") == "constants" else "where it started"
    lines = [
        f"Tried {len(trials)} ({search['stopped']}), judged by {search['criterion']}, {search['folds']} folds",
        f"Chosen: {chosen['method']}{': ' if parameters else ''}{parameters}",
        f"The best is better than {held_against} by {guard['gain']:.4f}, standard error {guard['standard_error']:.4f}"
        f"{'' if guard['sure'] else ': not established'}",
    ]
    if (asked := search["survey"]) is not None:
        lines.append(f"By the survey it is better by {asked['gain']:.4f}, standard error {asked['standard_error']:.4f}")
    else:
        lines.append(_BY_THE_LOG)
    return lines


def _parsed(given: list[str]) -> dict[str, Any]:
    """Take NAME=VALUE apart; values are read as numbers or other JSON, and as text where they are none."""
    parsed: dict[str, Any] = {}
    for one in given:
        name, parted, text = one.partition("=")
        if not parted or not name:
            raise ParameterError(f"--set must be NAME=VALUE; got {short(one)}")
        parsed[name] = _value(text)
    return parsed


def _value(text: str) -> Any:
    """Read a value, a number as other options do: .3 and 5., which JSON has not; 1e3 is a whole one."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = float(text) if _NUMBER.fullmatch(text) else _WORDS.get(text, text)
    whole = isinstance(value, float) and "." not in text and value.is_integer()
    return int(value) if whole else value
