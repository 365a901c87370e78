"""verirec demo."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

import verirec as vr
from verirec.cli.options import AsJson, OutFolder
from verirec.cli.speech import working

app = typer.Typer(add_completion=False)


@app.command("demo")
def demo(
    out: OutFolder = Path("verirec-demo"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulated world.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Assess two recommenders in a simulated world whose truth is known.

    Example: verirec demo --out demo
    """
    # Plotting takes a second to import, and only this verb needs it.
    from verirec.assessment import run_demo
    from verirec.assessment.demo_page import demo_page, demo_summary
    from verirec.pages.writing import write_report
    from verirec.sole_writer import sole_writer

    with sole_writer(out), working("Making a world and judging two recommenders in it"):
        result = run_demo(seed)
        page = write_report(out, demo_page(result), demo_summary(result))
    if as_json:
        typer.echo(json.dumps(demo_summary(result), indent=2))
        return
    console = Console(markup=False, highlight=False)
    table = Table(title="Prediction inaccuracy (log loss, smaller is better)", title_justify="left")
    table.add_column("The log", no_wrap=True)
    for name in (*result.truth, "Better"):
        table.add_column(name, justify="right", no_wrap=True)
    naive = (_of(result.assessment, name, "naive") for name in result.truth)
    table.add_row("at face value", *naive, result.preferred_by_log)
    for stage, found in result.stages.items():
        settled = found.comparisons[0].established or "left open"
        table.add_row(stage.replace("the log ", ""), *(_of(found, name) for name in result.truth), settled)
    table.add_row("truth", *(f"{truth:.3f}" for truth in result.truth.values()), result.truly_better)
    console.print(table)
    console.print(f"The page: {page}", soft_wrap=True)


def _of(found: Any, name: str, estimator: str | None = None) -> str:
    """Show an estimate of a recommender; by default, the one to go by."""
    recommender = found.recommenders[name]
    one = recommender.estimates[estimator or recommender.headline]
    low, high = one.interval
    return (
        f"{low:.3f} to {high:.3f}" if isinstance(one, vr.EstimateRange) else f"{one.value:.3f} [{low:.3f}, {high:.3f}]"
    )
