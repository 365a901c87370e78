"""verirec demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table


def demo(
    out: Annotated[Path, typer.Option(help="Folder for report.html and summary.json.")] = Path("verirec-demo"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulated world.")] = 0,
) -> None:
    """Judge two recommenders in a simulated world whose truth is known.

    Example: verirec demo --out demo
    """
    # Plotting takes a second to import, and only this verb needs it.
    from verirec.experiments import run_demo
    from verirec.reports import demo_page, demo_summary, write_report

    console = Console(markup=False, highlight=False)
    with Console(stderr=True).status("Making a world and judging two recommenders in it"):
        result = run_demo(seed)
        page = write_report(out, demo_page(result), demo_summary(result))
    table = Table(title="Prediction inaccuracy (log loss, smaller is better)", title_justify="left")
    table.add_column("Recommender")
    table.add_column("Naive estimate [95% interval]", justify="right")
    table.add_column("Truth", justify="right")
    for name, estimates in result.estimates.items():
        estimate = estimates["naive"]
        low, high = estimate.interval
        table.add_row(name, f"{estimate.value:.4f} [{low:.4f}, {high:.4f}]", f"{result.truth[name]:.4f}")
    console.print(table)
    console.print(
        f"The log prefers the one {result.preferred_by_log}; the better one is the one {result.truly_better}.",
        soft_wrap=True,
    )
    console.print(f"The page: {page}", soft_wrap=True)
