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
    from verirec.reports import run_demo, write_report

    console = Console(markup=False, highlight=False)
    with Console(stderr=True).status("Making a world and judging two recommenders in it"):
        result = run_demo(seed)
        page = write_report(out, result.page(), result.summary())
    table = Table(title="Prediction inaccuracy (log loss, smaller is better)", title_justify="left")
    table.add_column("Recommender")
    table.add_column("Naive estimate [95% interval]", justify="right")
    table.add_column("Truth", justify="right")
    for name, estimate in result.naive.items():
        low, high = estimate.interval
        table.add_row(name, f"{estimate.value:.4f} [{low:.4f}, {high:.4f}]", f"{result.truth[name]:.4f}")
    console.print(table)
    console.print(
        f"The log prefers the one {result.preferred_by_log}; the better one is the one {result.truly_better}.",
        soft_wrap=True,
    )
    console.print(f"The page: {page}", soft_wrap=True)
