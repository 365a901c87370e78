"""An assessment for whoever tracks experiments: numbers by name, facts, and files; MLflow, Weights & Biases."""

from __future__ import annotations

import re
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from verirec.assessment.result import Assessment
from verirec.exceptions import MissingExtraError, ParameterError


class Tracked(NamedTuple):
    """What is tracked of an assessment.

    Parameters
    ----------
    metrics
        Numbers by name: "mine/ome-dr/value", "mine/ndcg_at_5/low", "mine/headline/high", "log/rows", ...
    facts
        Words by name: the basis, the loss, and for every two recommenders which is better.
    artefacts
        Files by name: the page and the summary.
    """

    metrics: dict[str, float]
    facts: dict[str, str]
    artefacts: dict[str, Path]


def track(found: Assessment, folder: str | Path) -> Tracked:
    """Make flat dicts of an assessment, and write its page and summary into a folder.

    Names have letters, digits, and "_", "-", ".", " " and "/" only, as trackers want them.

    Examples
    --------
    >>> import numpy as np
    >>> from verirec import assess, simulate
    >>> world = simulate.world(60, 40, observed=0.4, random_state=0)
    >>> found = assess(world.log, {"mine": 0.1 + 0.8 * world.preferences})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     told = track(found, folder)
    >>> sorted(name for name in told.metrics if name.startswith("mine/range/"))
    ['mine/range/high', 'mine/range/low']
    >>> told.facts["basis"], sorted(told.artefacts)
    ('range', ['report.html', 'summary.json'])
    """
    if not isinstance(found, Assessment):
        raise ParameterError(f"what assess returns is tracked; got {type(found).__name__}")
    page = found.save(folder)
    files = {name: page.with_name(name) for name in ("report.html", "summary.json")}
    return Tracked(_metrics(found.summary), _facts(found), files)


def track_in_mlflow(found: Assessment, **run: Any) -> Tracked:
    """Log an assessment to MLflow: metrics, facts as tags, and the files; to the active run, or to a new one.

    Parameters
    ----------
    found
        What `assess` returned.
    run
        Of `mlflow.start_run`, where none is active: run_name, ...
    """
    mlflow = _tracker("mlflow")
    with tempfile.TemporaryDirectory() as folder:
        told = track(found, folder)
        began = mlflow.active_run() is None
        if began:
            mlflow.start_run(**run)
        try:
            mlflow.log_metrics(told.metrics)
            mlflow.set_tags(told.facts)
            for file in told.artefacts.values():
                mlflow.log_artifact(str(file))
        finally:
            if began:
                mlflow.end_run()
    return told


def track_in_wandb(found: Assessment, run: Any = None) -> Tracked:
    """Log an assessment to Weights & Biases: metrics and facts in the run's summary, the page as HTML.

    Parameters
    ----------
    found
        What `assess` returned.
    run
        Of `wandb.init`; by default the active one.
    """
    wandb = _tracker("wandb")
    run = wandb.run if run is None else run
    if run is None:
        raise ParameterError("no run of Weights & Biases is active: call wandb.init first, or give run=...")
    with tempfile.TemporaryDirectory() as folder:
        told = track(found, folder)
        run.log({"report": wandb.Html(told.artefacts["report.html"].read_text(encoding="utf-8"))})
        run.summary.update(told.metrics | told.facts)
    return told


def _tracker(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise MissingExtraError(f"tracking there needs {name}: pip install 'verirec[{name}]'") from None


def _metrics(summary: dict[str, Any]) -> dict[str, float]:
    """Return the summary's estimates, each with its ends, and a few counts."""
    told: dict[str, Any] = {f"log/{name}": count for name, count in summary["log"].items()}
    told |= {f"noise_rates/{name}": rate for name, rate in summary["noise_rates"].items()}
    told["verdicts/established"] = sum(one["established"] for one in summary["verdicts"])
    told["pairs_to_ask_about"] = summary["pairs_to_ask_about"]
    headlines = {name: {"headline": one} for name, one in summary["headline"].items()}
    for source in (summary["recommenders"], summary["ranking"], headlines):
        for recommender, estimates in source.items():
            for name, estimate in estimates.items():
                for part in ("value", "standard_error", "low", "high"):
                    told[f"{recommender}/{name}/{part}"] = estimate.get(part)
    numbers = {name: one for name, one in told.items() if isinstance(one, int | float)}
    return {_plain(name): float(one) for name, one in numbers.items()}


def _facts(found: Assessment) -> dict[str, str]:
    facts = {"basis": found.basis, "loss": found.loss, "noise_rates/source": found.noise_source}
    for one in found.verdicts:
        facts[_plain(f"better/{one['first']} or {one['second']}")] = one["better"] or "left open"
    return facts


def _plain(name: str) -> str:
    """Return a name in the characters that all trackers take.

    Examples
    --------
    >>> _plain("mine (v2)/ndcg@5")
    'mine _v2_/ndcg_at_5'
    """
    return re.sub(r"[^\w\-. /]", "_", name.replace("@", "_at_"), flags=re.ASCII)
